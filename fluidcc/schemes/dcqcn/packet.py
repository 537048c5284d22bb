"""DCQCN at packet level: its reaction point on a clock of picoseconds.

The congestion point is the switch's marking, the notification point the host's CNP timer. ``variant="hpcc-sim"`` is
another reaction point, `fluidcc.schemes.dcqcn.simulator`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidcc.schemes.dcqcn.reaction_point as point
import fluidcc.schemes.dcqcn.simulator as simulator
from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.packet.calendar import schedule
from fluidcc.engines.packet.layout import NEVER, TIMER
from fluidcc.engines.packet.pacing import repace
from fluidcc.schemes.dcqcn.parameters import DCQCN
from fluidcc.schemes.dcqcn.reaction_point import OBSERVABLES as OBSERVABLES

_I, _F = np.int64, np.float64

STATE = point.record(
    _I,
    ("waits", _I),  # for the timer's event that comes first; one that comes sooner is of before
    ("win", np.bool_),
    ("base_rtt", _F),
    *simulator.FIELDS,
)


def init_state(parameters: DCQCN, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    point.init_state(p, flow, state, lambda time: round(time * 1e12), NEVER, 0)
    state.waits, state.win, state.base_rtt = NEVER, p.win, p.base_rtt if p.win else 0.0
    flow.ternary = p.tcd
    if p.variant == "hpcc-sim":
        simulator.init_state(p, state)
    else:
        flow.cnp_interval, flow.nic_cnp_interval = round(p.cnp_interval * 1e12), round(p.nic_cnp_interval * 1e12)


@kernel
def begin(sim: Any, f: Any, flow: Any, state: Any) -> None:
    """R_C = R_T = the rate at start; the simulator's timers start with a mark."""
    point.begin(flow, state, sim.core[0].now)
    if state.sim:
        state.increase_at = 0
    else:
        wait(sim, f, flow, state)
    follow(flow, state)


@kernel
def wait(sim: Any, f: Any, flow: Any, state: Any) -> None:
    """Enter the timer in the calendar; one that has moved away keeps its event, which finds that it is early."""
    if flow.timer < state.waits:
        state.waits = flow.timer
        schedule(sim.core[0], sim.calendar, flow.timer, TIMER, f * simulator.TIMERS)


@kernel
def follow(flow: Any, state: Any) -> None:
    """Set the window that the rate fills in a base RTT (HPCC 5.1), if ``win`` is on."""
    if state.win:
        flow.window = flow.rate * state.base_rtt


@kernel
def on_cnp(sim: Any, f: Any, flow: Any, state: Any, cnp: Any) -> None:
    """A CNP, which is gentler if it tells of UE."""
    if point.on_cnp(flow, state, sim.core[0].now, state.ue_gain if cnp.undetermined else 1.0):
        follow(flow, state)
        repace(sim.core[0], flow)
    wait(sim, f, flow, state)


@kernel
def on_timer(sim: Any, f: Any, flow: Any, state: Any, which: Any) -> None:
    """An event of the timer, which may be early."""
    core = sim.core[0]
    if state.sim:
        simulator.on_timer(sim, f, flow, state, which)
        follow(flow, state)
        return
    if core.now != state.waits:
        return
    state.waits = NEVER
    if flow.timer <= core.now:
        point.on_timer(flow, state, core.now)
        follow(flow, state)
        repace(core, flow)
    wait(sim, f, flow, state)


@inlined
def on_sent(flow: Any, state: Any, size: Any) -> None:
    """Count bytes; the packet that ends a count is paced already by the rate at which it left (no paper says)."""
    if state.sim:
        return
    flow.gone += size
    if flow.gone >= flow.counter:
        point.on_bytes(flow, state)
        follow(flow, state)


@inlined
def on_ack(sim: Any, f: Any, flow: Any, state: Any, ack: Any) -> None:
    """An ACK; only the public simulator's variant observes marks from it."""
    if state.sim and ack.marks > 0:
        simulator.on_mark(sim, f, flow, state)


@kernel
def observe(core: Any, flow: Any, state: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`; alpha stands before the flow's start and after its end."""
    samples[row, f, 3] = state.target
    alpha = state.alpha
    if flow.state > 0 and not state.sim:
        alpha = point.alpha_now(state, core.now if flow.state == 1 else flow.finish)
    samples[row, f, 4] = alpha
