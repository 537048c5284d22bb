"""A scheme's own dynamics: steps of the network and of its law, in turn."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.settings import our_settings
from fluidcc.engines.flow_level import law as laws
from fluidcc.engines.flow_level import memory, step
from fluidcc.engines.flow_level.layout import Alone, Paths, Ports
from fluidcc.engines.flow_level.load import Load, load_of
from fluidcc.engines.flow_level.memory import DONE, FULL, HELD, IDLE, LEFT, PAUSES, STATUS, STEP, USED
from fluidcc.engines.flow_level.transfers import Transfers, Waits
from fluidcc.engines.packet.buffers import headroom
from fluidcc.engines.packet.network import Topology
from fluidcc.scenario.model import Scenario

_SLOTS = 64  # to begin with, at least
_WAITS = 4.0  # times the longest round trip, that what is told may be late
_STEPS = 256  # between reports


def run(
    scenario: Scenario, transfers: Transfers, topology: Topology, ports: Ports, paths: Paths, alone: Alone,
    waits: Waits, dt: float, until: float, report: Callable[[float], None] | None,
) -> tuple[np.ndarray, np.ndarray, Load, dict[str, Any]]:  # fmt: skip
    """Starts, ends, loads, and what it took.

    Raises
    ------
    InputError
        If the scheme asks for what is not followed here.
    """
    law = laws.law_of(scenario, paths.first)
    count, many = len(transfers), len(ports.rate)
    longest = int(paths.there.shape[1])
    records = math.ceil((_WAITS * float(paths.rtt.max()) + law.pause) / dt) + 2 * longest + 4
    free = np.flatnonzero(waits.awaits == 0)
    begins = np.zeros(count)
    begins[free] = transfers.start[free]
    heap = np.zeros(count, np.int32)
    heap[: len(free)] = free[np.argsort(begins[free], kind="stable")]
    now = np.zeros(8, np.int64)
    now[HELD], now[LEFT] = len(free), count
    early = int((begins[free] < begins[free].min() + paths.rtt.max()).sum())
    slots = _SLOTS
    while slots < 1.5 * early:
        slots *= 2
    m = memory.Steps(
        net_of(scenario, topology, ports, paths),
        memory.ports_of(many, records),
        memory.slots_of(slots, longest, records),
        np.arange(slots),
        now,
        np.zeros(len(topology.nodes)),
        np.ascontiguousarray(transfers.flow, np.int32),
        np.zeros(many),
    )
    slowest = np.where(paths.there >= 0, ports.rate[paths.there], np.inf)[:, 0]
    tail = np.column_stack([alone.received, alone.answered]) - _before(scenario, paths, ports, alone, transfers)[:, None]
    ends = np.full((count, 2), np.nan)
    load = load_of(many, dt * 8)
    given = (alone.wire, tail, transfers.start, tuple(waits), begins, ends, heap, tuple(load))
    hops = longest - 1
    columns = np.zeros((step.FIXED + 5 * hops, slots))
    name = scenario.flows[0].scheme.name
    with our_settings():
        table = laws.on_device(law.table)
        state, size, payload = laws.empty(law, slots, hops), jnp.asarray(dt), jnp.asarray(law.payload)
        began = time.perf_counter()
        call, _ = laws.step.ready(table, state, jnp.asarray(columns), size, payload, scheme=name)
        compile_s, clock = time.perf_counter() - began, time.perf_counter()
        steps = 0
        while now[LEFT] > 0 and now[STEP] * dt < until:
            step.advance(m, dt, *given)
            if now[STATUS] == FULL:
                m = m._replace(slots=memory.grown(m.slots), used=np.concatenate([m.used, np.arange(slots, 2 * slots)]))
                columns = np.concatenate([columns, np.zeros_like(columns)], axis=1)
                state = laws.grown(state)
                slots *= 2
                again = time.perf_counter()
                call, _ = laws.step.ready(table, state, jnp.asarray(columns), size, payload, scheme=name)
                compile_s, clock = compile_s + time.perf_counter() - again, clock + time.perf_counter() - again
                continue
            if now[STATUS] == IDLE:
                now[STEP] = int(begins[heap[0]] / dt)
                for each in (m.ports.queue, m.ports.output, m.ports.arriving, m.ports.acks, m.ports.next_acks):
                    each[:] = 0.0
                continue
            if now[USED] == 0 and now[HELD] == 0:
                break
            step.signals(m, dt, law.pause, columns)
            state, told = call(table, state, jnp.asarray(columns), size, payload)
            told = np.asarray(told)
            m.slots.pace[:], m.slots.window[:] = told
            steps += 1
            if report is not None and steps % _STEPS == 0:
                report(1.0 - now[LEFT] / count)
    wall = time.perf_counter() - clock
    begins[waits.awaits > 0] = np.nan
    begins[heap[: now[HELD]]] = np.nan
    numbers = {"model": "fluid", "compile_s": compile_s, "wall_s": wall, "steps": steps, "pauses": int(now[PAUSES]), "slots": slots}
    return begins, ends, load, numbers


def _before(scenario: Scenario, paths: Paths, ports: Ports, alone: Alone, transfers: Transfers) -> np.ndarray:
    """Time for which a NIC sends a transfer at its line rate, and what then waits before slower ports."""
    slowest = np.where(paths.there >= 0, ports.rate[paths.there], np.inf).min(axis=1)
    return alone.wire / slowest[transfers.flow]


def net_of(scenario: Scenario, topology: Topology, ports: Ports, paths: Paths) -> memory.Net:
    """What of the network does not change."""
    switches = {name: i for i, name in enumerate(topology.nodes) if name not in topology.hosts}
    never = (math.inf, math.inf, 1.0)
    marking = [never if p.marking is None else (p.marking.kmin, p.marking.kmax, p.marking.pmax) for p in topology.ports]
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
    flows = scenario.flows
    return memory.Net(
        paths.there, paths.back, paths.hops, paths.ack_share, paths.rtt, paths.packet, paths.kind,
        np.array([float(flow.line_rate) for flow in flows]), np.array([float(flow.initial_rate) for flow in flows]),
        ports.rate, np.array(marking, float), source, target,
        np.full(len(source), -1.0 if pfc is None or pfc.xoff is None else float(pfc.xoff)), shared,
        np.array([0.0 if pfc is None else float(pfc.alpha)]), np.array([0.0 if pfc is None else float(pfc.xon_gap)]),
        np.array([pfc is not None]),
    )  # fmt: skip
