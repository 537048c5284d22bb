"""Engines for a scenario of flows that wait for each other: a table of functions with one signature."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Protocol

import numpy as np

from fluidcc.errors import InputError
from fluidcc.workloads.collectives.mapping import Laid


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


_COMPILING = threading.Lock()  # of runs in threads, one compiles and the others find it done


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
