"""Running transfers, and when each began and ended: at an ideal scheme's rates, or by a scheme's own dynamics."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.contract import registry
from fluidcc.engines.common.topology import Topology
from fluidcc.engines.flow_level import dispatch, ideal, layout, senders
from fluidcc.engines.flow_level.layout import (
    FULL,
    HELD,
    IDLE,
    LEFT,
    OVER,
    PAUSES,
    STATUS,
    STEP,
    USED,
    Alone,
    Load,
    Paths,
    Ports,
    alone_of,
    layout_of,
    load_of,
    shares_of,
)
from fluidcc.engines.flow_level.step import answers_left
from fluidcc.engines.flow_level.transfers import Transfers, Waits, transfers_of, waits_of
from fluidcc.engines.packet.switch import headroom, refuse_small
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.scenario.switches import in_bytes
from fluidcc.surface import constructor, public
from fluidcc.units import SIZE, TIME, quantity, show, whole

_APART = 1 / 8  # of the shortest round trip, within which the ideal's events share the work
_STEPS = 8  # of the dynamics, in the longest round trip
MODELS = ("ideal", "dynamics")
_AT_ONCE = 1 << 10  # events between reports
_SLOTS = 64  # to begin with, at least
_WAITS = 4.0  # times the longest round trip, by which feedback to senders may be late
_BETWEEN_REPORTS = 256  # steps
_FOUND = 4  # steps by which ends may be found late


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FlowTimes:
    """Start and end times of transfers, and the load of ports meanwhile.

    Parameters
    ----------
    start, received, answered : ndarray, shape (transfers,)
        Start, arrival of the last byte, and of its ACK at the sender [s]; NaN for those that did not begin or end.
    left : ndarray, shape (transfers,)
        Time at which the last byte had left its host [s].
    alone : ndarray, shape (transfers,)
        Time from the start to the last ACK in an idle network [s].
    ports : list of str
        ``source->target`` of each direction of a cable, NICs among them.
    load : ndarray, shape (intervals, ports)
        Share of its rate that each port sent, on average over an interval, ACKs among it.
    interval : float
        [s].
    numbers : dict
        ``model``, ``setup_s``, ``compile_s``, ``wall_s`` (the loop alone), ``ended``.
    """

    start: np.ndarray
    received: np.ndarray
    answered: np.ndarray
    left: np.ndarray
    alone: np.ndarray
    ports: list[str]
    load: np.ndarray
    interval: float
    numbers: dict[str, Any]

    @property
    def completion(self) -> np.ndarray:
        """Time from the start to the last ACK [s], (transfers,); NaN for those that did not end."""
        return self.answered - self.start

    @property
    def makespan(self) -> float:
        """Time at which the last byte of all arrived [s]; NaN if one did not."""
        return float(np.max(self.received))

    def __repr__(self) -> str:
        """Show how many transfers ended, and when the last did."""
        ended = int(np.isfinite(self.received).sum())
        last = f", the last at {np.nanmax(self.received):.6g} s" if ended else ""
        return f"<FlowTimes of {len(self.start)} transfers ({self.numbers['model']}): {ended} ended{last}>"


@public()
def flow_times(
    scenario: Scenario,
    transfers: Transfers | None = None,
    *,
    model: str = "ideal",
    until: Any = None,
    apart: Any = None,
    dt: Any = None,
    seed: int = 0,
    report: Callable[[float], None] | None = None,
) -> FlowTimes:
    """Compute when flows end, by rates instead of packets.

    Parameters
    ----------
    scenario : Scenario
        Of finite flows, which may wait for others, or of the connections that ``transfers`` take.
    transfers : Transfers, optional
        What is sent; each flow of the scenario once by default.
    model : {"ideal", "dynamics"}
        Max-min fair rates at each moment, those of an ideal scheme; or the flows' own scheme, step by step, over ports
        with queues and flow control.
    until : quantity, optional
        Time at which the run ends [s]; by default, when all transfers have ended.
    apart : quantity, optional
        Events that are less than this apart share the work [s] (ideal): an eighth of the shortest round trip by
        default. 0: none do.
    dt : quantity, optional
        Step [s] (dynamics): an eighth of the longest round trip by default, or less, so that no path has more ports
        than its way there has steps.
    seed : int
        Seed of the marks that make CNPs (dynamics).
    report : callable, optional
        Called with the share of transfers that have ended.

    Returns
    -------
    FlowTimes

    Raises
    ------
    InputError
        If the scenario has what the engine leaves out, transfers wait for each other, or an option makes no sense.

    Examples
    --------
    >>> from fluidcc.workloads.fabrics import named_topology
    >>> flows = [(0, 2, 0.0, "1MB"), (1, 2, 0.0, "1MB", (0,))]  # the second begins as the first has ended
    >>> scenario = named_topology("leaf-spine:2x1x2").scenario(flows, scheme="hpcc")
    >>> times = flow_times(scenario)
    >>> bool(times.start[1] == times.answered[0])
    True
    """
    if model not in MODELS:
        raise InputError(f"model: {str(model)[:20]!r} is unknown; write {', '.join(MODELS)}")
    began = time.perf_counter()
    scenario = resolve(scenario)
    if not isinstance(transfers, Transfers | None):
        raise InputError(f"transfers: {repr(transfers)[:40]} is no Transfers; write Transfers([0, 0], [1e6, 2e6])")
    if report is not None and not callable(report):
        raise InputError(f"report: {repr(report)[:40]} cannot be called; give a function of the share that is done")
    if model == "ideal" and dt is not None:
        raise InputError("dt: the ideal goes from event to event, without steps; leave it out, or write 'dynamics'")
    transfers = transfers_of(scenario) if transfers is None else transfers
    if transfers.flow.min() < -1 or not 0 <= transfers.flow.max() < len(scenario.flows):
        raise InputError(f"transfers flow: names none of the scenario's {len(scenario.flows)}, counted from 0")
    seed = whole(seed, 0, (1 << 63) - 1, "seed")
    horizon = math.inf if until is None else quantity(until, TIME, "until")
    if not horizon > 0:
        raise InputError(f"until: {show(horizon, TIME)} is no horizon; write for example 10ms")
    topology, ports, paths = layout_of(scenario)
    alone, waits = alone_of(scenario, paths, transfers), waits_of(scenario, transfers)
    if apart is None:
        apart = float(paths.rtt.min()) * _APART
    else:
        apart = quantity(apart, TIME, "apart")
        if not 0 <= apart < math.inf:
            raise InputError(f"apart: {show(apart, TIME)} is no time; write 0, or for example 1us")
    setup = time.perf_counter() - began
    if model != "ideal":
        if dt is None:
            # A last byte takes a step from port to port: more steps than half a round trip has would make it late.
            dt = min(float(paths.rtt.max()) / _STEPS, float((paths.rtt / (2 * paths.hops)).min()))
        else:
            dt = quantity(dt, TIME, "dt")
        if not 0 < dt <= paths.rtt.min() / 2:
            raise InputError(
                f"dt: {show(dt, TIME)} is no step; write at most half of the shortest round trip, "
                f"{show(float(paths.rtt.min()) / 2, TIME)}"
            )
        found = _dynamics(scenario, transfers, topology, ports, paths, alone, waits, dt, horizon, seed, report)
    else:
        found = _ideal(scenario, transfers, ports, paths, alone, waits, horizon, apart, report)
    return _made(transfers, ports, alone, *found, horizon, setup)


def _made(
    transfers: Transfers, ports: Ports, alone: Alone, begins: np.ndarray, ends: np.ndarray, load: Load,
    numbers: dict[str, Any], until: float, setup: float,
) -> FlowTimes:  # fmt: skip
    begins, ends = (np.where(each <= until, each, np.nan) for each in (begins, ends))  # later ones may be known too
    ended = np.isfinite(ends[:, 1])
    last = float(np.max(ends[:, 1])) if ended.all() else until
    return FlowTimes(
        begins,
        ends[:, 0],
        ends[:, 1],
        ends[:, 2],
        alone.answered,
        ports.names,
        shares_of(load, ports.rate, last),
        float(load.width[0]),
        {**numbers, "setup_s": setup, "ended": int(ended.sum())},
    )


def _ideal(
    scenario: Scenario, transfers: Transfers, ports: Ports, paths: Paths, alone: Alone, waits: Waits, until: float,
    apart: float, report: Callable[[float], None] | None,
) -> tuple[np.ndarray, np.ndarray, Load, dict[str, Any]]:  # fmt: skip
    count, many = len(transfers), len(ports.rate)
    utilisation = min(float(getattr(flow.scheme, "target_utilisation", 1.0)) for flow in scenario.flows)
    slowest = np.where(paths.there >= 0, ports.rate[paths.there], np.inf).min(axis=1)
    wire, flow = alone.wire, np.ascontiguousarray(transfers.flow, np.int32)
    # What leaves within a round trip is sent as fast as if nothing were held back.
    first = np.minimum(wire, (slowest * paths.rtt)[flow])
    tail = np.column_stack([alone.received, alone.answered]) - (wire / slowest[flow])[:, None]
    ends = np.full((count, 3), np.nan)
    begins = np.full(count, 0.0)
    kept = np.array([-1.0, 0.0, 0.0, count])
    load = load_of(many, float(paths.rtt.max()))
    zeros = [np.zeros(many) for _ in range(4)]
    arguments = (
        paths.there, paths.back, paths.ack_share, flow, np.where(ports.host, 1.0, utilisation) * ports.rate, wire,
        (1.0 - utilisation) * first, tail, transfers.start, tuple(waits), begins, ends, kept,
    )  # fmt: skip
    work = (
        np.zeros(count, np.int32), np.zeros(count, np.int32), np.zeros(count), np.zeros(count),
        zeros[0], zeros[1], np.zeros(many, np.int64), zeros[2], np.zeros(many, np.int8), zeros[3], tuple(load),
    )  # fmt: skip
    clock = time.perf_counter()
    ideal.run(*arguments, 0, apart, until, *work)
    compile_s, clock = time.perf_counter() - clock, time.perf_counter()
    while kept[ideal.LEFT] > 0:
        before = kept.copy()
        ideal.run(*arguments, _AT_ONCE, apart, until, *work)
        if report is not None:
            report(1.0 - kept[ideal.LEFT] / count)
        if (kept == before).all():
            break
    wall = time.perf_counter() - clock
    waiting = np.flatnonzero(waits.awaits > 0)
    if len(waiting) and kept[ideal.HELD] == kept[ideal.ACTIVE] == 0:
        raise InputError(f"transfer {waiting[0]}: waits for itself by way of others; break the circle in after")
    begins[waits.awaits > 0] = np.nan
    return begins, ends, load, {"model": "ideal", "compile_s": compile_s, "wall_s": wall}


def _dynamics(
    scenario: Scenario, transfers: Transfers, topology: Topology, ports: Ports, paths: Paths, alone: Alone,
    waits: Waits, dt: float, until: float, seed: int, report: Callable[[float], None] | None,
) -> tuple[np.ndarray, np.ndarray, Load, dict[str, Any]]:  # fmt: skip
    """Run the transfers; return starts, ends, loads, and what it took.

    Raises
    ------
    InputError
        If flows run several schemes, or one that asks for what is not followed here.
    """
    names = sorted({flow.scheme.name for flow in scenario.flows})
    if len(names) > 1 or len({id(flow.scheme) for flow in scenario.flows}) > 1:
        raise InputError(f"scheme: flows of the flow-level engine run one; these run {' and '.join(names)}, or several")
    if dispatch.SCHEMES.side(names[0]) is None:
        raise InputError(
            f"scheme {names[0]}: the flow-level engine runs laws, and it has none; write model='ideal', or "
            "engine='packet'"
        )
    if float(scenario.ack_interval) > 1 and registry.scheme(names[0]).hybrid is None:  # those hear of CNPs alone
        raise InputError(
            f"ack_interval: each packet's ACK tells {names[0]} of the flow-level engine; write 1, model='ideal', or "
            "engine='packet'"
        )
    count, longest = len(transfers), int(paths.there.shape[1])
    if longest - 1 > layout.HOPS:
        raise InputError(f"flows: a path crosses {longest - 1} switches; at most {layout.HOPS} are followed")
    pause = float(scenario.flows[0].scheme.feedback_pause)
    records = math.ceil((_WAITS * float(paths.rtt.max()) + pause) / dt) + 2 * longest + 4
    free = np.flatnonzero(waits.awaits == 0)
    begins = np.zeros(count)
    begins[free] = transfers.start[free]
    heap = np.zeros(count, np.int32)
    heap[: len(free)] = free[np.argsort(begins[free], kind="stable")]
    now = np.zeros(8, np.int64)
    now[HELD], now[LEFT] = len(free), count
    slots = _SLOTS
    while len(free) and slots < 1.5 * (begins[free] < begins[free].min() + paths.rtt.max()).sum():
        slots *= 2
    m = layout.Steps(
        net_of(scenario, topology, ports, paths),
        layout.ports_of(len(ports.rate), records),
        layout.slots_of(slots, longest, records),
        np.arange(slots),
        now,
        np.zeros(len(topology.nodes)),
        np.ascontiguousarray(transfers.flow, np.int32),
        np.zeros(len(ports.rate)),
    )
    slowest = np.where(paths.there >= 0, ports.rate[paths.there], np.inf).min(axis=1)
    tail = np.column_stack([alone.received, alone.answered]) - (alone.wire / slowest[transfers.flow])[:, None]
    ends = np.full((count, 3), np.nan)
    load = load_of(len(ports.rate), dt * 8)
    given = (alone.wire, tail, transfers.start, tuple(waits), begins, ends, heap, tuple(load))
    law = senders.Compiled(scenario, paths.first, m.net, slots, seed)
    clock, compile_s = time.perf_counter(), law.prepare(m, dt, given)
    if report is not None:
        report(0.0)  # it is compiled
    steps, began = 0, time.perf_counter()
    clock, last = began, until / dt + _FOUND
    while (now[LEFT] > 0 or now[USED] > 0 or answers_left(m)) and now[STEP] < last:  # loads are of all bytes
        steps += law.go(m, dt, math.ceil(min(_BETWEEN_REPORTS, last - now[STEP])), given)
        if now[STATUS] == FULL:
            m = m._replace(slots=layout.grown(m.slots), used=np.concatenate([m.used, np.arange(slots, 2 * slots)]))
            slots *= 2
            again = time.perf_counter()
            law.grow()
            compile_s += law.prepare(m, dt, given)
            clock += time.perf_counter() - again
        elif now[STATUS] == OVER:
            _refuse_overflow(scenario, topology, m, dt)
        elif now[STATUS] == IDLE:
            now[STEP] = layout.step_of(float(begins[heap[0]]), dt)
            for each in (m.ports.seen, m.ports.acks, m.ports.next_acks, m.ports.waiting_acks):
                each[:] = 0.0
        elif now[USED] == 0 and now[HELD] == 0 and not answers_left(m):
            break
        if report is not None:
            report(1.0 - now[LEFT] / count)
    wall = time.perf_counter() - clock
    circle = np.flatnonzero(waits.awaits > 0)
    if len(circle) and now[USED] == now[HELD] == 0:
        raise InputError(f"transfer {circle[0]}: waits for itself by way of others; break the circle in after")
    begins[circle] = begins[heap[: now[HELD]]] = np.nan
    stood = zip(ports.names, m.ports.pauses, m.ports.paused_s, strict=True)
    paused = {name: (int(count), float(spent)) for name, count, spent in stood if count}
    numbers = {"model": "dynamics", "compile_s": compile_s, "wall_s": wall, "steps": steps, "dt_s": dt,
               "pauses": int(now[PAUSES]), "paused": paused, "slots": slots}  # fmt: skip
    return begins, ends, load, numbers


def _refuse_overflow(scenario: Scenario, topology: Topology, m: layout.Steps, dt: float) -> None:
    """Say which switch would lose packets."""
    free = (m.net.shared - m.node_used)[m.net.source]
    room = np.where(free < 0.0, -np.inf, m.net.dropping[0] * free - m.ports.backlog)
    port = int(np.argmin(np.where(m.net.source >= 0, room, np.inf)))
    raise InputError(
        f"buffer: {show(scenario.buffer, SIZE)} of {topology.ports[port].source!r} overflows at "
        f"{show(m.now[STEP] * dt, TIME)}, and packets would be lost, which the flow-level engine's are not; "
        "write a larger buffer, PFC, model='ideal', or engine='packet'"
    )


def net_of(scenario: Scenario, topology: Topology, ports: Ports, paths: Paths) -> layout.Net:
    """Collect the data of the network that does not change."""
    switches = {name: i for i, name in enumerate(topology.nodes) if name not in topology.hosts}
    never = (math.inf, math.inf, 1.0)
    markings = [port.marking and in_bytes(port.marking, scenario.wire_packet) for port in topology.ports]
    marking = [never if m is None else (m.kmin, m.kmax, m.pmax) for m in markings]
    joining = np.array([port.marking is not None and port.marking.mark_on != "departure" for port in topology.ports])
    source = np.array([switches.get(port.source, -1) for port in topology.ports])
    target = np.array([switches.get(port.target, -1) for port in topology.ports])
    shared = np.full(len(topology.nodes), float(scenario.buffer))
    pfc = scenario.pfc
    if pfc is not None:
        largest = math.ceil(paths.packet.max())
        for port, node in zip(topology.ports, target, strict=True):
            if node >= 0:
                kept = headroom(port, topology.ports[port.reverse], largest) if pfc.headroom is None else pfc.headroom
                shared[node] -= kept + pfc.reserve
        for name, left in zip(topology.nodes, shared, strict=True):
            if name in switches:
                refuse_small(name, float(scenario.buffer), left, largest)
    flows = scenario.flows
    crossed = np.unique(np.concatenate([paths.there.ravel(), paths.back.ravel()]))
    return layout.Net(
        paths.there, paths.back, paths.hops, paths.ack_share, paths.rtt, paths.kind,
        np.array([float(flow.initial_rate) for flow in flows]),
        ports.rate, np.array(marking, float), joining, source, target,
        np.full(len(source), -1.0 if pfc is None or pfc.xoff is None else float(pfc.xoff)), shared,
        np.array([0.0 if pfc is None else float(pfc.alpha)]), np.array([0.0 if pfc is None else float(pfc.xon_gap)]),
        np.array([pfc is not None]), np.array([1e18 if scenario.egress_alpha is None else scenario.egress_alpha]),
        crossed[crossed >= 0].astype(np.int64),
    )  # fmt: skip
