"""Range of validity of the fluid: schemes and patterns for which it was compared with packets.

The bound, stated before the measurement: a time within 5 % of packets' in nine of ten random cases. The numbers are
from ``python -m benchmarks.fluid_collectives``; docs/collectives.md has them with their intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fluidcc.contract.bind import binder
from fluidcc.errors import InputError
from fluidcc.scenario.round_trips import base_rtt_with_serialisation, likeness
from fluidcc.units import SIZE, show
from fluidcc.workloads.collectives.algorithms import KINDS
from fluidcc.workloads.collectives.jobs import Job, Replay
from fluidcc.workloads.collectives.mapping import MOST_FLOWS, Laid

SHARE = 0.9
PATTERNS = ("ring", "tree", "all-to-all", "chain")
MOST_RANKS = 128  # of a job that packets have run to its end beside the fluid,
MOST_HOSTS = 1024  # and hosts of a fabric
LEAST_SIZE = 25e3  # bytes of a transfer, in the median: of the cases that were measured, the fewest


class Measured(NamedTuple):
    """Number of random cases, and number of those within 5 % of packets."""

    within: int
    cases: int

    @property
    def says(self) -> str:
        """Description in a few words."""
        return f"{self.within / self.cases:.0%} of {self.cases}"


MEASURED: dict[str, dict[str, Measured]] = {
    "none": {
        "ring": Measured(59, 60),
        "tree": Measured(58, 60),
        "all-to-all": Measured(60, 60),
        "chain": Measured(60, 60),
    },
    "dctcp": {
        "ring": Measured(57, 60),
        "tree": Measured(58, 60),
        "all-to-all": Measured(58, 60),
        "chain": Measured(59, 60),
    },
    "swift": {  # where its target is above the round trip
        "ring": Measured(37, 44),
        "tree": Measured(38, 42),
        "all-to-all": Measured(38, 40),
        "chain": Measured(37, 38),
    },
    "hpcc": {
        "ring": Measured(54, 60),
        "tree": Measured(48, 60),
        "all-to-all": Measured(54, 60),
        "chain": Measured(56, 60),
    },
    "nscc": {
        "ring": Measured(52, 60),
        "tree": Measured(52, 60),
        "all-to-all": Measured(49, 60),
        "chain": Measured(60, 60),
    },
    "timely": {
        "ring": Measured(53, 60),
        "tree": Measured(45, 60),
        "all-to-all": Measured(34, 60),
        "chain": Measured(59, 60),
    },
    "acc": {
        "ring": Measured(51, 60),
        "tree": Measured(48, 60),
        "all-to-all": Measured(30, 60),
        "chain": Measured(59, 60),
    },
    "dcqcn": {
        "ring": Measured(29, 36),
        "tree": Measured(23, 36),
        "all-to-all": Measured(25, 36),
        "chain": Measured(32, 36),
    },
}


def patterns_of(job: Job | Replay) -> list[str]:
    """Return the patterns of a job's transfers, of those that were measured separately; of any sends, all."""
    if isinstance(job, Replay):
        kinds = sorted(job.schedule.kinds)
        if "send" in kinds:
            return list(PATTERNS)
        return [_pattern(kind, next(iter(KINDS[kind].algorithms))) for kind in kinds]
    return [_pattern(job.kind, str(job.algorithm))]


def _pattern(kind: str, algorithm: str) -> str:
    if kind in ("broadcast", "pipeline"):
        return "chain"
    return "all-to-all" if kind == "all-to-all" else algorithm


def doubts_of(laid: Laid, jobs: Sequence[Job | Replay]) -> list[str]:
    """Return reasons in words why the fluid is not known to be as good here as packets; none where it is.

    Jobs of several patterns are as good as the worst of their patterns.
    """
    found = []
    scheme = laid.connections.flows[0].scheme.name
    patterns = list(dict.fromkeys(name for job in jobs for name in patterns_of(job)))
    known = MEASURED.get(scheme)
    if known is None:
        found.append(f"{scheme} was not measured by the fluid")
    else:
        poor = [name for name in patterns if known[name].within < SHARE * known[name].cases]
        if poor:
            told = ", ".join(f"{name} {known[name].says}" for name in poor)
            good = [name for name in PATTERNS if name not in poor and name in known and name not in patterns]
            good = [name for name in good if known[name].within >= SHARE * known[name].cases]
            listed = " and ".join(filter(None, (", ".join(good[:-1]), *good[-1:])))
            rest = f"; {listed} of it are good enough" if good else ""
            found.append(f"{scheme} was within 5 % of packets in {told} random cases, which is not nine of ten{rest}")
    if scheme == "swift" and beyond_target(laid):
        found.append(
            "swift's target is below the round trip of an empty path (base_target, hop_target): its windows are less "
            "than a packet, which rates do not follow"
        )
    return found


def beyond_target(laid: Laid) -> bool:
    """Check whether some path's round trip is longer than Swift's target for it."""
    scenario = laid.connections
    key, bind = likeness(scenario), binder(scenario)
    paths = {key(flow): flow for flow in scenario.flows}
    return any(
        float(base_rtt_with_serialisation(scenario, flow)) >= float(bind(flow).base_target) for flow in paths.values()
    )


def sizes_of(laid: Laid, jobs: Sequence[Job | Replay]) -> list[str]:
    """Return reasons in words why no run of this size has been compared with packets; none if one has."""
    found, ranks = [], max(job.count for job in jobs)
    if len(laid.topology.hosts) > MOST_HOSTS:
        found.append(f"fabrics of more than {MOST_HOSTS} hosts were not compared with packets")
    if len(laid.graph) > MOST_FLOWS:
        found.append(f"packets follow {MOST_FLOWS:,} transfers at most, and these are {len(laid.graph):,}")
    elif ranks > MOST_RANKS:
        found.append(f"jobs of more than {MOST_RANKS} ranks were not compared with packets")
    usual = float(np.median(laid.graph.size[laid.graph.sends]))
    if usual < LEAST_SIZE:
        found.append(
            f"transfers of less than {show(LEAST_SIZE, SIZE)} were not compared with packets, and these have "
            f"{show(usual, SIZE)} in the median"
        )
    return found


def checked(laid: Laid, jobs: Sequence[Job | Replay], unchecked: bool) -> list[str]:
    """Return what is unchecked in a run by the fluid; none if it is known to be as good as packets.

    Raises
    ------
    InputError
        If the fluid is not known to be as good, and ``unchecked`` does not permit the run.
    """
    doubts = doubts_of(laid, jobs)
    if doubts and not unchecked:
        raise InputError(
            f"engine: {'; '.join(doubts)} (docs: flow level). Write engine='packet', or unchecked=True "
            "(--unchecked) to run it all the same"
        )
    return doubts + sizes_of(laid, jobs)
