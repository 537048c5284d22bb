"""What runs a scenario of flows that wait for each other: a table of engines, all called alike."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from fluidcc.collectives.graph import APART
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What an engine says of a run.

    Parameters
    ----------
    began, finished : ndarray, shape (flows,)
        When each began to send, and when its sender knew that all had arrived [s]; NaN if it has not.
    left, arrived : ndarray, shape (flows,)
        When the last packet of each went onto its sender's link, which is what the next of that host waits for, and
        when its last byte had arrived, which is what others wait for [s]; NaN if it has not.
    times : ndarray, shape (samples,)
        [s]
    sent : ndarray, shape (samples, links)
        Bytes that each of the scenario's links has sent until then.
    pauses : dict
        For each node that flow control has paused, frames received, and seconds for which its ports stood still.
    numbers : dict
        ``pfc_pauses``, ``drops``, ``trims``, ``retransmissions``, ``compile_s``, ``wall_s`` (the loop alone), and what
        else the engine counts.
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
    """A function that runs a resolved scenario until a time [s], and keeps links' loads at some interval [s].

    It ends earlier if all flows have; ``report`` is told how much of the horizon is done.
    """

    def __call__(
        self,
        scenario: Scenario,
        until: float,
        *,
        seed: int,
        interval: float,
        report: Callable[[float], None] | None = None,
    ) -> Outcome:
        """Run it."""
        ...


_COMPILING = threading.Lock()  # of runs in threads, one compiles and the others find it done


def packets(
    scenario: Scenario,
    until: float,
    *,
    seed: int,
    interval: float,
    report: Callable[[float], None] | None = None,
) -> Outcome:
    """Packet by packet."""
    from fluidcc.engines.packet.build import Times, prepare
    from fluidcc.engines.packet.flow_control import paused_for
    from fluidcc.engines.packet.followers import LEFT, RECEIPT, began
    from fluidcc.engines.packet.layout import NEVER, PS
    from fluidcc.engines.packet.run import execute, warm_up

    ends = round(until * PS)
    plan = prepare(scenario, Times(ends, 0, ends, max(1, round(interval * PS))), 0, links_only=True)
    ready = time.perf_counter()
    with _COMPILING:
        warm_up(plan)
    compile_s = time.perf_counter() - ready
    sim, wall_s = execute(plan, seed, report=report)
    core, rows = sim.core[0], int(sim.core[0].sampled)
    start, ended = began(sim), np.where(sim.flows["ended"] >= 0, sim.flows["ended"] / PS, np.nan)
    finish = sim.flows["finish"]
    pauses: dict[str, tuple[int, float]] = {}
    for port, count, spent in zip(plan.topology.ports, sim.ports["pauses"], paused_for(sim) / PS, strict=True):
        if count:
            before = pauses.get(port.source, (0, 0.0))
            pauses[port.source] = before[0] + int(count), before[1] + float(spent)
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
            "compile_s": compile_s,
            "wall_s": wall_s,
        },
    )


def fluid(
    scenario: Scenario,
    until: float,
    *,
    seed: int,
    interval: float,
    report: Callable[[float], None] | None = None,
) -> Outcome:
    """By rates instead of packets: the dynamics of `fluidcc.engines.flow_level`, for schemes of which they hold.

    Raises
    ------
    InputError
        If the scheme is not one of these.
    """
    from fluidcc.engines.flow_level.run import flow_times
    from fluidcc.engines.flow_level.transfers import connections_of

    name = scenario.flows[0].scheme.name
    if name not in FLUID:
        raise InputError(
            f"scheme {name}: jobs of the fluid end within 5 % of packets' in 90 % of cases for {' and '.join(FLUID)} "
            "alone (docs: flow level); write engine='packet'"
        )
    connections, transfers = connections_of(scenario, [flow.line_rate >= APART for flow in scenario.flows])
    with _COMPILING:
        times = flow_times(connections, transfers, model="dynamics", until=until, seed=seed, report=report)
    links = len(scenario.links)
    rates = np.array([float(link.rate) for link in connections.links])
    sent = np.zeros((len(times.load) + 1, links))
    sent[1:, : len(rates)] = np.cumsum(times.load[:, : len(rates)], axis=0) * (rates * times.interval)
    pauses: dict[str, tuple[int, float]] = {}
    for port, (count, spent) in times.numbers["paused"].items():
        node = port.partition("->")[0]
        before = pauses.get(node, (0, 0.0))
        pauses[node] = before[0] + count, before[1] + spent
    numbers = {"pfc_pauses": times.numbers["pauses"], "drops": 0, "trims": 0, "retransmissions": 0}
    return Outcome(
        times.start,
        times.answered,
        times.left,
        times.received,
        np.arange(len(sent)) * times.interval,
        sent,
        pauses,
        {**numbers, "steps": times.numbers["steps"], **{key: times.numbers[key] for key in ("compile_s", "wall_s")}},
    )


FLUID = ("none", "dctcp")  # by measurement: python -m benchmarks.flow_level
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
