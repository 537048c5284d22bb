"""DCTCP at packet level: Alizadeh et al., SIGCOMM 2010, section 3.1, without slow start (HPCC, section 5.1).

Every ACK echoes the marks of the packets that it answers. Packets are clocked by ACKs and also paced, at
window/base RTT and at most at line rate (ours: the NICs of HPCC's comparison pace). A window that holds nothing
back, of a flow at line rate with less in flight, does not grow (ours, as RFC 7661). ``variant="hpcc-sim"`` is
what the HPCC authors' public simulator does instead: its state is a rate, and the window follows from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidcc.schemes.dctcp.law as law
from fluidcc.contract.law import in_world
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.common.rules import constants, copy
from fluidcc.engines.packet.pacing import inflight, repace
from fluidcc.schemes.dctcp.parameters import DCTCP

ONLY = {"form": "protocol"}
_I, _F = np.int64, np.float64
averaged, cut, increase = (in_world(rule, scalars, kernel) for rule in (law.averaged, law.cut, law.increase))

_GIVEN = constants(DCTCP, ("simulates",))
STATE = np.dtype(
    [
        *_GIVEN,
        ("packet", _F),  # in the bytes that windows count
        # state
        ("W", _F),
        ("alpha", _F),
        ("answered", _I),  # packets acknowledged since alpha's last update
        ("marked", _I),  # how many of them carried marks
        ("batch", _I),  # hpcc-sim: packets that a window is taken to have
        ("window_end", _I),  # alpha's next update comes with data beyond this
        ("cut_end", _I),  # a cut holds for the data up to this
    ],
    align=True,
)

OBSERVABLES = {
    "window": ("bytes", "window W"),
    "alpha": ("1", "estimate alpha of the share of marked packets"),
    "inflight": ("bytes", "bytes in flight"),
}


def init_state(parameters: DCTCP, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    copy(parameters, state, _GIVEN)
    state.alpha = parameters.initial_alpha


@kernel
def begin(core: Any, flow: Any, state: Any) -> None:
    """Start at line rate, or at the share of W_init that an initial rate is of it."""
    state.packet = flow.payload if core.payload_window else flow.payload + flow.overhead
    state.W = max(state.initial_window * (flow.rate / flow.line_rate), state.packet)
    flow.window = state.W


@inlined
def on_ack(core: Any, flow: Any, state: Any, ack: Any) -> None:
    """Section 3.1: (1) once per window of data; (2) at a window's first mark; else the increase of TCP."""
    if state.simulates:
        simulator_acknowledged(flow, state, ack)
        return
    state.answered += ack.covers
    state.marked += ack.marks
    if ack.end > state.window_end:
        if state.window_end > 0:
            state.alpha = averaged(state, state.alpha, state.marked, state.answered)  # (1)
            state.answered = state.marked = 0
        state.window_end = flow.sent
    if ack.end <= state.cut_end:
        return
    if ack.marks > 0:
        state.W = max(cut(state.W, state.alpha), state.packet)  # (2)
        state.cut_end = flow.sent
    else:
        answered = ack.covers * state.packet
        if flow.rate >= flow.line_rate and inflight(core, flow) + answered < state.W:
            return
        state.W += increase(state, state.W, state.packet, answered)
    flow.window = state.W
    flow.rate = min(state.W / state.base_rtt, flow.line_rate)
    repace(core, flow)


@kernel
def simulator_acknowledged(flow: Any, state: Any, ack: Any) -> None:
    """The public simulator: once per window alpha, and a larger rate unless this window has been cut."""
    state.marked += ack.marks > 0
    over = ack.end > state.window_end
    if over:
        if state.window_end == 0:
            state.batch = flow.sent // flow.payload + 1
        else:
            state.alpha = averaged(state, state.alpha, min(1.0, state.marked / state.batch), 1.0)
            state.marked = 0
            state.batch = (flow.sent - ack.end) // flow.payload + 1
        state.window_end = flow.sent
    if ack.end <= state.cut_end:
        return
    if ack.marks > 0:
        rate = int(cut(flow.rate, state.alpha) * 8.0) / 8.0  # whole bits per second
        flow.rate = max(rate, state.min_rate)
        state.cut_end = flow.sent
    elif over:
        flow.rate = min(flow.rate + state.rate_ai, flow.line_rate)
    else:
        return
    # The packet that waits for the pacer keeps its time.
    state.W = float(int(state.initial_window * flow.rate / flow.line_rate))
    flow.window = state.W


@kernel
def observe(core: Any, flow: Any, state: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = state.W
    samples[row, f, 4] = state.alpha
    samples[row, f, 5] = inflight(core, flow)
