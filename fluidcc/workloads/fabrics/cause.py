"""Parts of completion times that a fabric itself adds: paths that collide, and hosts slower than others.

The same flows run again without each of these, with the same setting. What then gets better is its part; how much of it
another setting would mend, that setting says beside it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.surface import constructor, keywords, public
from fluidcc.units import RATE, Rate, show
from fluidcc.workloads.fabrics.run import FabricRun
from fluidcc.workloads.fabrics.slowdowns import Slowdown
from fluidcc.workloads.fabrics.study import OF_TRAFFIC, FabricStudy, fabric
from fluidcc.workloads.fabrics.topology import Topology
from fluidcc.workloads.fabrics.traffic import Traffic

PATHS, SPEEDS = "paths", "speeds"
_AS_IT_IS = "as it is"


@constructor()
@dataclasses.dataclass(frozen=True)
class Cause:
    """A fault of a fabric, and what it costs.

    Parameters
    ----------
    name : {"paths", "speeds"}
    says : str
        What was taken away.
    ratios : dict
        Of the numbers without it to those with it, as of `FabricStudy.against`; completion times count as multiples of
        what they are alone on the fabric as it is.
    """

    name: str
    says: str
    ratios: dict[str, dict[str, float]]


@public(passes_on=keywords(fabric))
def causes(options: Mapping[str, Any], topology: Topology, *, seeds: int | Sequence[int], **sent: Any) -> list[Cause]:
    """Run the same flows with packets spread over all paths, and with all hosts as fast as the fastest.

    Parameters
    ----------
    options : mapping
        Of `Topology.scenario`, such as those of the present setting.
    topology : Topology
    seeds : int or sequence of int
        As of `fabric`.
    **sent
        What is sent, and ``threads``, ``dask`` and ``folder``, as of `fabric`.

    Returns
    -------
    list of Cause
        Collisions of ECMP where there are several switches, and speeds where those of hosts differ and flows end.

    Raises
    ------
    InputError
        As `fabric`.
    """
    spread = {**options, "load_balancing": "packet"}
    if options.get("loss_recovery") == "gbn" or options.get("pfc") is not None:
        # Go-back-N takes what comes late for lost, and sends it again; with PFC nothing is lost.
        spread["loss_recovery"] = "none" if options.get("pfc") is not None else "trimming"
    there = fabric({_AS_IT_IS: options, PATHS: spread}, topology, seeds=seeds, **sent)
    found = []
    if len(topology.switches) > 1:
        says = "with each packet on a path of its own, so that no flows collide"
        found.append(Cause(PATHS, says, there.against(PATHS, _AS_IT_IS)))
    rates = _host_rates(topology)
    fastest = max(rates.values())
    slow = [host for host, rate in rates.items() if rate < fastest]
    of_traffic = {name: sent.pop(name) for name in list(sent) if name in OF_TRAFFIC}
    traffic = Traffic(**of_traffic)
    if slow and not traffic.endless:
        fast, runs = _as_fast(topology, Rate(fastest)), list[FabricRun]()
        for base in there.of(_AS_IT_IS):  # each with the flows of its seed, as loads would be of the faster hosts
            flows = traffic.rows(topology, base.seed)
            (run,) = fabric({SPEEDS: options}, fast, seeds=[base.seed], flows=flows, **sent).runs
            runs.append(_over(run, base))
        both = FabricStudy((*there.of(_AS_IT_IS), *runs), topology, there.says)
        found.append(Cause(SPEEDS, _slow_in_words(slow, rates, fastest), both.against(SPEEDS, _AS_IT_IS)))
    return found


def _host_rates(topology: Topology) -> dict[int, float]:
    hosts = set(topology.hosts)
    return {end: float(cable.rate) for cable in topology.cables for end in cable.ends if end in hosts}


def _as_fast(topology: Topology, rate: Rate) -> Topology:
    """The fabric with all hosts' cables at one rate."""
    hosts = set(topology.hosts)
    cables = [
        dataclasses.replace(cable, rate=rate) if hosts.intersection(cable.ends) else cable for cable in topology.cables
    ]
    return dataclasses.replace(topology, cables=tuple(cables))


def _slow_in_words(slow: Sequence[int], rates: Mapping[int, float], fastest: float) -> str:
    if len(slow) == 1:
        return f"with host {slow[0]} at {show(fastest, RATE)} as the others, not at {show(rates[slow[0]], RATE)}"
    kinds = Counter(rates[host] for host in slow)
    told = ", ".join(f"{count} at {show(rate, RATE)}" for rate, count in sorted(kinds.items()))
    return f"with all hosts at {show(fastest, RATE)}, not {told}"


def _over(run: FabricRun, base: FabricRun) -> FabricRun:
    """A run whose completion times count as multiples of those alone in another."""
    table = run.slowdown.dataset.copy()
    table["slowdown"] = table["completion"] / base.slowdown["alone"].values
    return dataclasses.replace(run, slowdown=Slowdown(table))


def part(cause: Cause) -> float:
    """Share by which the 99th percentile falls that falls most by more than chance, 0 to 1."""
    falls = [1 - each["mean"] for name, each in cause.ratios.items() if name.startswith("p99") and each["high"] < 1]
    return float(np.max(falls, initial=0.0))
