"""One run of a fabric: flows of one seed under one scheme, packet by packet."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fluidcc.engines.common.outcome import QueueMoments, pooled
from fluidcc.engines.packet.build import PreparedRun, prepare
from fluidcc.engines.packet.layout import PAUSE, PS, Sim
from fluidcc.engines.packet.record import paused_for
from fluidcc.engines.packet.run import execute, outcome_of, summary_of, times_of, warm_up
from fluidcc.errors import InputError
from fluidcc.files import read_netcdf, write_netcdf
from fluidcc.results.metrics import binned_percentiles
from fluidcc.results.schema import plain
from fluidcc.scenario.model import Flow
from fluidcc.surface import constructor, public
from fluidcc.units import TIME, show
from fluidcc.workloads.fabrics.hpcc_files import interfaces
from fluidcc.workloads.fabrics.slowdowns import Slowdown, alone, slowdown_of
from fluidcc.workloads.fabrics.topology import Topology

PATIENCE = 20.0  # times the longest flow's time alone, that are waited for flows after the last has started
_FRAMES = 1 << 12  # frames to begin with
_COUNTS = ("pfc_pauses", "drops", "trims", "retransmissions", "reordered", "packets", "events")
_SHARE = 0.9  # of a run's work, that is done when the last flow starts
_COMPILING = threading.Lock()  # of runs in threads, one compiles and the others find it done
_PERCENTS = (50, 95, 99, 99.9)


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FabricRun:
    """Result of one scheme with the flows of one seed.

    Parameters
    ----------
    scheme : str
    seed : int
    slowdown : Slowdown
        Of every flow.
    numbers : dict
        ``pfc_pauses``, ``drops``, ``trims``, ``retransmissions``, ``reordered``, ``packets``, ``events``;
        ``goodput_bytes_per_s``, acknowledged payload of all flows over the window; ``queue_bytes``, mean and
        percentiles over all switches' ports and the window; ``pauses`` and ``paused_s``, by the tier that was paused:
        ``hosts``, ``tier 1`` (ToRs), ...; the latter a sum over ports; ``deadlock_s``; ``setup_s``, ``compile_s``,
        ``wall_s`` (the loop alone), ``analysis_s``.
    queue : ndarray, shape (2, lengths)
        Distribution of queues over all switches' ports and the window: length [bytes], and the share of time at it.
    frames : ndarray, shape (frames, 4), or None
        Of flow control, as they arrived: time [s], the node that it stopped or let go on, its interface in the order of
        cables from 1, and 1 for PAUSE or 0 for RESUME. None where they were not kept.
    """

    scheme: str
    seed: int
    slowdown: Slowdown
    numbers: dict[str, Any]
    queue: np.ndarray
    frames: np.ndarray | None = None

    def __repr__(self) -> str:
        """Scheme, seed, and slowdowns in short."""
        return f"<FabricRun {self.scheme}, seed {self.seed}: {repr(self.slowdown).strip('<>')}>"

    @public()
    def as_dict(self, edges: Any = 10) -> dict[str, Any]:
        """Counts, slowdowns in all and by size, and numbers, as ``--json`` prints it.

        Parameters
        ----------
        edges : int or sequence of quantity
            As of `Slowdown.bins`.

        Returns
        -------
        dict
            None for what is not finite.
        """
        found = self.slowdown.statistics()
        bins = self.slowdown.bins(edges)
        rows = [{str(name): bins[name].values[k].item() for name in bins} for k in range(bins.sizes["bin"])]
        unfinished = np.flatnonzero(np.isnan(self.slowdown["slowdown"].values))
        return plain(
            {
                "scheme": self.scheme,
                "seed": self.seed,
                "flows": int(found.pop("flows")) + len(unfinished),
                "unfinished": int(found.pop("unfinished")),
                "unfinished_flows": [str(name) for name in self.slowdown["flow"].values[unfinished[:20]]],
                "slowdown": found,
                "bins": rows,
                **self.numbers,
            }
        )

    @public()
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write NetCDF: a variable over ``flow`` each for size, start, completion and slowdown, and the rest beside.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        InputError
            If it cannot be written.
        """
        kept = {"scheme": self.scheme, "seed": self.seed, "numbers": json.dumps(self.numbers)}
        dataset = self.slowdown.dataset.assign(queue=(("of_queue", "length"), self.queue))
        if self.frames is not None:
            dataset = dataset.assign(frames=(("frame", "of_frame"), self.frames))
        write_netcdf(os.fspath(path), dataset.assign_attrs(kept))


def read_run(path: str | os.PathLike[str]) -> FabricRun:
    """Read what `FabricRun.save` wrote.

    Raises
    ------
    InputError
        If it is none.
    """
    dataset = read_netcdf(path, "a run of a fabric").load()
    try:
        scheme, seed = str(dataset.attrs.pop("scheme")), int(dataset.attrs.pop("seed"))
        numbers, queue = json.loads(dataset.attrs.pop("numbers")), dataset["queue"].values
    except (KeyError, ValueError):
        raise InputError(f"{path}: is no run of a fabric; give a folder that fabric wrote") from None
    frames = dataset["frames"].values if "frames" in dataset else None
    flows = Slowdown(dataset.drop_vars(["queue", "frames"], errors="ignore"))
    return FabricRun(scheme, seed, flows, numbers, queue, frames)


def begun(found: FabricRun) -> FabricRun:
    """Drop flows that waited for others in vain."""
    kept = np.flatnonzero(np.isfinite(found.slowdown["start"].values))
    return dataclasses.replace(found, slowdown=Slowdown(found.slowdown.dataset.isel(flow=kept)))


def run(
    topology: Topology,
    rows: Any,
    name: str,
    chosen: Mapping[str, Any],
    seed: int,
    *,
    until: float | None = None,
    since: float = 0.0,
    drain: float | None = None,
    ideal: str = "alone",
    network: dict[str, Any] | None = None,
    frames: bool = False,
    report: Callable[[float, str], None] | None = None,
) -> FabricRun:
    """Run flows to the end, or as long as is waited for them.

    Parameters
    ----------
    topology : Topology
    rows : sequence
        As of `Topology.scenario`.
    name : str
        Of the scheme, in results.
    chosen : mapping
        Options of `Topology.scenario`: the scheme, its marking and its network.
    seed : int
        Of ECMP's hashes and of the engine's random numbers.
    until : float
        When the last flows start [s]; that of the last row if not given.
    since : float
        From when on queues and goodput count [s].
    drain : float
        How long is waited for flows after that [s]; by default `PATIENCE` times as long as the longest, or the longest
        chain of flows that wait for each other, would take alone.
    ideal : {"alone", "hpcc-sim"}
        As of `slowdown`.
    network : dict
        Fields of the scenario in place of the preset's.
    frames : bool
        Whether each frame of flow control is kept.
    report : callable
        Given the share of the work that is done, and in words where it is; what it raises ends the run.

    Returns
    -------
    FabricRun

    Raises
    ------
    InputError
        If the flows and the topology do not go together, or a value makes no sense.
    """
    began = time.perf_counter()
    scenario = topology.scenario(rows, ecmp_seed=seed, **{**chosen, **(network or {})})
    longest = _longest(scenario.flows, alone(scenario))
    if longest == 0:
        raise InputError("flows: none has an end, so that none completes; give their sizes")
    last = max(until or 0.0, max(flow.start for flow in scenario.flows if not flow.after))
    horizon = last + (PATIENCE * longest if drain is None else drain)
    # Of arrivals, while they last; a list of flows may start all at once.
    window = (since, last if until is not None else min(horizon, max(last, longest)))
    if not 0 <= window[0] < window[1]:
        raise InputError(f"since: counting ends at {window[1] * 1e3:g} ms; write an earlier time")
    plan = prepare(scenario, times_of(scenario, horizon, window, horizon), _FRAMES if frames else 0, frames_only=True)
    ready = time.perf_counter()
    with _COMPILING:
        warm_up(plan)
    compile_s = time.perf_counter() - ready
    busy = last / horizon  # most of the work: what is left then drains

    def told(share: float) -> None:
        if report is not None:
            done = _SHARE * share / busy if share < busy else _SHARE + (1 - _SHARE) * (share - busy) / (1 - busy)
            report(done, f"{name}, seed {seed}, is at {show(share * horizon, TIME)}")

    sim, wall_s = execute(plan, seed, report=told)
    looped = time.perf_counter()
    summary = summary_of(scenario, plan, sim, {"seed": seed, "compile_s": compile_s, "wall_s": wall_s})
    found = slowdown_of(scenario, summary["fct_s"], ideal, summary["began_s"])
    outcome = outcome_of(plan, sim)
    units = {"units": "bytes/s", "long_name": "acknowledged payload over the window"}
    sized = [math.isfinite(flow.size) for flow in scenario.flows]
    found = Slowdown(found.dataset.assign(goodput=("flow", outcome.goodput[sized], units)))
    queues = pooled(outcome.links)
    numbers: dict[str, Any] = {key: summary[key] for key in _COUNTS if key in summary}
    numbers["goodput_bytes_per_s"] = float(outcome.goodput.sum())
    values = binned_percentiles(queues.spent, queues.area_in, _PERCENTS)
    numbers["queue_bytes"] = {
        "mean": queues.area / queues.span,
        **{f"p{percent}".replace(".", ""): value for percent, value in zip(_PERCENTS, values, strict=True)},
        "max": queues.most,
    }
    numbers |= _pauses(topology, plan, sim)
    numbers["deadlock_s"] = (summary["pfc"] or {}).get("deadlock_s")
    numbers["window_s"] = list(window)
    numbers["horizon_s"] = horizon
    numbers |= {
        "setup_s": ready - began,
        "compile_s": compile_s,
        "wall_s": wall_s,
        "analysis_s": time.perf_counter() - looped,
    }
    return FabricRun(
        name, seed, found, numbers, _distribution(queues), _frames(topology, plan, sim) if frames else None
    )


def _frames(topology: Topology, plan: PreparedRun, sim: Sim) -> np.ndarray:
    """Return the frames of flow control as they arrived, as `FabricRun` has them."""
    log = sim.log[: int(sim.core[0].logged)]
    # Ports of several cables between two nodes are in the order of these, there and back.
    numbers = {ends: iter(each) for ends, each in interfaces(topology).items()}
    ends = [(int(port.target), int(port.source)) for port in plan.topology.ports]
    places = np.array([(node, next(numbers[node, peer])) for node, peer in ends], float)
    return np.column_stack([log["time"] / PS, places[log["port"]], log["kind"] == PAUSE])


def _longest(flows: Sequence[Flow], times: np.ndarray) -> float:
    """Time of the longest flow, or chain of flows that wait for each other, of their times alone [s]; 0 for none."""
    finite = np.where(np.isfinite(times), times, 0.0)
    if not any(flow.after for flow in flows):
        return float(finite.max(initial=0.0))
    found: dict[int, float] = {}
    for first in range(len(flows)):
        waiting = [first]
        while waiting:  # those before a flow come first
            i = waiting[-1]
            lacking = [place for place in flows[i].after if place not in found]
            if lacking:
                waiting += lacking
                continue
            waiting.pop()
            before = max((found[place] for place in flows[i].after), default=0.0)
            found[i] = float(finite[i]) + before + (float(flows[i].start) if flows[i].after else 0.0)
    return max(found.values())


def _distribution(queues: QueueMoments) -> np.ndarray:
    spent = queues.spent > 0
    return np.stack([queues.area_in[spent] / queues.spent[spent], queues.spent[spent] / queues.spent.sum()])


def _pauses(topology: Topology, plan: PreparedRun, sim: Sim) -> dict[str, dict[str, Any]]:
    """PAUSE frames that each tier's ports received, and for how long these stood still."""
    tiers = topology.tiers
    names = {str(node): f"tier {tier}" for node, tier in tiers.items()}
    kept = ["hosts", *(f"tier {tier}" for tier in sorted(set(tiers.values())))]
    frames, seconds = (dict.fromkeys(kept, zero) for zero in (0, 0.0))
    times = paused_for(sim) / PS
    for port, count, spent in zip(plan.topology.ports, sim.ports["pauses"], times, strict=True):
        tier = names.get(port.source, "hosts")
        frames[tier] += int(count)
        seconds[tier] += float(spent)
    return {"pauses": frames, "paused_s": seconds}
