"""A scheme's own dynamics: steps of the network and of its senders, in turn."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.contract import registry
from fluidcc.engines.common.topology import Topology
from fluidcc.engines.flow_level import dispatch, memory, senders
from fluidcc.engines.flow_level.hosts import answers_left
from fluidcc.engines.flow_level.layout import Alone, Paths, Ports
from fluidcc.engines.flow_level.load import Load, load_of
from fluidcc.engines.flow_level.memory import FULL, HELD, IDLE, LEFT, OVER, PAUSES, STATUS, STEP, USED
from fluidcc.engines.flow_level.transfers import Transfers, Waits
from fluidcc.engines.packet.buffers import headroom, refuse_small
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.switches import in_bytes
from fluidcc.units import SIZE, TIME, show

_SLOTS = 64  # to begin with, at least
_WAITS = 4.0  # times the longest round trip, by which feedback to senders may be late
_STEPS = 256  # between reports
_FOUND = 4  # steps by which ends may be found late


def run(
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
    if longest - 1 > memory.HOPS:
        raise InputError(f"flows: a path crosses {longest - 1} switches; at most {memory.HOPS} are followed")
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
    m = memory.Steps(
        net_of(scenario, topology, ports, paths),
        memory.ports_of(len(ports.rate), records),
        memory.slots_of(slots, longest, records),
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
        steps += law.go(m, dt, math.ceil(min(_STEPS, last - now[STEP])), given)
        if now[STATUS] == FULL:
            m = m._replace(slots=memory.grown(m.slots), used=np.concatenate([m.used, np.arange(slots, 2 * slots)]))
            slots *= 2
            again = time.perf_counter()
            law.grow()
            compile_s += law.prepare(m, dt, given)
            clock += time.perf_counter() - again
        elif now[STATUS] == OVER:
            _refuse_overflow(scenario, topology, m, dt)
        elif now[STATUS] == IDLE:
            now[STEP] = memory.step_of(float(begins[heap[0]]), dt)
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


def _refuse_overflow(scenario: Scenario, topology: Topology, m: memory.Steps, dt: float) -> None:
    """Say which switch would lose packets."""
    free = (m.net.shared - m.node_used)[m.net.source]
    room = np.where(free < 0.0, -np.inf, m.net.dropping[0] * free - m.ports.backlog)
    port = int(np.argmin(np.where(m.net.source >= 0, room, np.inf)))
    raise InputError(
        f"buffer: {show(scenario.buffer, SIZE)} of {topology.ports[port].source!r} overflows at "
        f"{show(m.now[STEP] * dt, TIME)}, and packets would be lost, which the flow-level engine's are not; "
        "write a larger buffer, PFC, model='ideal', or engine='packet'"
    )


def net_of(scenario: Scenario, topology: Topology, ports: Ports, paths: Paths) -> memory.Net:
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
    return memory.Net(
        paths.there, paths.back, paths.hops, paths.ack_share, paths.rtt, paths.kind,
        np.array([float(flow.initial_rate) for flow in flows]),
        ports.rate, np.array(marking, float), joining, source, target,
        np.full(len(source), -1.0 if pfc is None or pfc.xoff is None else float(pfc.xoff)), shared,
        np.array([0.0 if pfc is None else float(pfc.alpha)]), np.array([0.0 if pfc is None else float(pfc.xon_gap)]),
        np.array([pfc is not None]), np.array([1e18 if scenario.egress_alpha is None else scenario.egress_alpha]),
        crossed[crossed >= 0].astype(np.int64),
    )  # fmt: skip
