"""Engines for a scenario of flows that wait for each other: a table of functions with one signature.

The fluid is used for schemes and patterns for which it was compared with packets. The bound, stated before the
measurement: a time within 5 % of packets' in nine of ten random cases. The numbers are from
``python -m benchmarks.fluid_collectives``; docs/collectives.md has them with their intervals.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, Protocol

import numpy as np

from fluidcc.contract.bind import binder
from fluidcc.errors import InputError
from fluidcc.scenario.round_trips import base_rtt_with_serialisation, likeness
from fluidcc.units import SIZE, show
from fluidcc.workloads.collectives.algorithms import KINDS
from fluidcc.workloads.collectives.jobs import Job, Replay
from fluidcc.workloads.collectives.mapping import MOST_FLOWS, Laid

_COMPILING = threading.Lock()  # of runs in threads, one compiles and the others find it done
SHARE = 0.9
PATTERNS = ("ring", "tree", "all-to-all", "chain")
MOST_RANKS = 128  # of a job that packets have run to its end beside the fluid,
MOST_HOSTS = 1024  # and hosts of a fabric
LEAST_SIZE = 25e3  # bytes of a transfer, in the median: of the cases that were measured, the fewest


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Result of an engine's run.

    Parameters
    ----------
    began, finished : ndarray, shape (flows,)
        Time at which each began to send, and at which its sender knew that all had arrived [s]; NaN if never.
    left, arrived : ndarray, shape (flows,)
        Time at which the last packet of each went onto its sender's link, for which the next transfer of that host
        waits, and at which its last byte arrived, for which others wait [s]; NaN if never.
    times : ndarray, shape (samples,)
        [s]
    sent : ndarray, shape (samples, links)
        Bytes that each of the scenario's links has sent until then.
    pauses : dict
        For each port that flow control has paused (``source->target``), frames received, and the time that it was
        paused [s].
    numbers : dict
        ``pfc_pauses``, ``drops``, ``trims``, ``retransmissions``, ``setup_s``, ``compile_s``, ``wall_s`` (the loop
        alone), and what else the engine counts.
    """

    began: np.ndarray
    finished: np.ndarray
    left: np.ndarray
    arrived: np.ndarray
    times: np.ndarray
    sent: np.ndarray
    pauses: dict[str, tuple[int, float]]
    numbers: dict[str, Any]


class Engine(Protocol):
    """A function that runs what is laid out until a time [s], and keeps links' loads at some interval [s].

    It ends earlier if all flows have, after `expected` [s] at the earliest; ``report`` is told how much is done.
    """

    def __call__(
        self,
        laid: Laid,
        until: float,
        *,
        seed: int,
        interval: float,
        expected: float,
        report: Callable[[float], None] | None = None,
    ) -> Outcome:
        """Run it."""
        ...


def packets(
    laid: Laid,
    until: float,
    *,
    seed: int,
    interval: float,
    expected: float = 1.0,
    report: Callable[[float], None] | None = None,
) -> Outcome:
    """Run packet by packet."""
    from fluidcc.engines.packet.build import Times, prepare
    from fluidcc.engines.packet.dependents import LEFT, RECEIPT, began
    from fluidcc.engines.packet.layout import NEVER, PS
    from fluidcc.engines.packet.record import paused_for
    from fluidcc.engines.packet.run import execute, warm_up

    ends, began_at = round(until * PS), time.perf_counter()
    plan = prepare(laid.scenario, Times(ends, 0, ends, max(1, round(interval * PS))), 0, links_only=True)
    ready = time.perf_counter()
    with _COMPILING:
        warm_up(plan)
    compile_s = time.perf_counter() - ready

    def told(share: float) -> None:
        if report is not None:  # most of it is over when the idle fabric would be done, if it is much slower, never
            report(share * until / (share * until + expected))

    sim, wall_s = execute(plan, seed, report=told)
    core, rows = sim.core[0], int(sim.core[0].sampled)
    start, ended = began(sim), np.where(sim.flows["ended"] >= 0, sim.flows["ended"] / PS, np.nan)
    finish = sim.flows["finish"]
    stood = zip(plan.topology.ports, sim.ports["pauses"], paused_for(sim) / PS, strict=True)
    pauses = {f"{port.source}->{port.target}": (int(count), float(spent)) for port, count, spent in stood if count}
    return Outcome(
        np.where(start < NEVER, start / PS, np.nan),
        np.where(finish >= 0, finish / PS, np.nan),
        ended[:, LEFT],
        ended[:, RECEIPT],
        np.arange(rows) * (plan.times.interval / PS),
        sim.link_samples[:rows, :, 1],
        pauses,
        {
            "pfc_pauses": int(core.pauses),
            "drops": int(core.dropped),
            "trims": int(core.trimmed),
            "retransmissions": int(core.retransmissions),
            "packets": int(core.delivered),
            "events": int(core.events),
            "setup_s": ready - began_at,
            "compile_s": compile_s,
            "wall_s": wall_s,
        },
    )


def fluid(
    laid: Laid,
    until: float,
    *,
    seed: int,
    interval: float,
    expected: float = 1.0,
    report: Callable[[float], None] | None = None,
) -> Outcome:
    """Run by rates instead of packets: the dynamics of `fluidcc.engines.flow_level`."""
    from fluidcc.engines.flow_level.run import flow_times
    from fluidcc.engines.flow_level.transfers import DEPARTURE, RECEIPT, Transfers

    graph = laid.graph
    ends = np.where(graph.behind, DEPARTURE, RECEIPT).astype(np.int8)
    transfers = Transfers(laid.connection, graph.size, graph.delay, graph.after, graph.after_at, ends)
    with ExitStack() as held:
        held.enter_context(_COMPILING)

        def told(share: float) -> None:
            held.close()  # it is compiled when it goes on
            if report is not None:
                report(share)

        times = flow_times(laid.connections, transfers, model="dynamics", until=until, seed=seed, report=told)
    rates = np.array([float(link.rate) for link in laid.connections.links])
    sent = np.zeros((len(times.load) + 1, len(rates)))
    sent[1:] = np.cumsum(times.load[:, : len(rates)], axis=0) * (rates * times.interval)
    # What would lose packets is refused.
    numbers = {"pfc_pauses": times.numbers["pauses"], "drops": 0, "trims": 0, "retransmissions": 0}
    return Outcome(
        times.start,
        times.answered,
        times.left,
        times.received,
        np.arange(len(sent)) * times.interval,
        sent,
        times.numbers["paused"],
        {**numbers, **{key: times.numbers[key] for key in ("steps", "setup_s", "compile_s", "wall_s")}},
    )


ENGINES: dict[str, Engine] = {"packet": packets, "fluid": fluid}


def engine_of(name: Any) -> Engine:
    """An engine by its name.

    Raises
    ------
    InputError
        If there is none.
    """
    found = ENGINES.get(name) if isinstance(name, str) else None
    if found is None:
        raise InputError(f"engine: {repr(name)[:30]} runs no collectives; write {' or '.join(ENGINES)}")
    return found


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
