"""HPCC for the ACKs of a step, one flow at a time in plain Python: Algorithm 1 of Li et al., SIGCOMM 2019.

It shares no line with the law in the package.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.schemes.hpcc.parameters import HPCC

_LEAST_U = 1e-3
_I, _F = np.int64, np.float64

STATE = np.dtype(
    [
        ("eta", _F),
        ("max_stage", _F),
        ("w_ai", _F),
        ("base_rtt", _F),
        ("most", _F),  # W_init
        ("least", _F),
        ("by_rtt", _I),  # W changes together with W^c alone
        ("by_ack", _I),  # W^c changes at every ACK
        ("arrivals", _I),  # of a link's rates, those that arrive
        ("counts_queue", _I),
        ("simulator", _I),
        # state
        ("window", _F),
        ("reference", _F),  # W^c
        ("load", _F),  # U
        ("stage", _F),
        ("last_update", _F),  # lastUpdateSeq [bytes]; -1 before the first ACK
    ],
    align=True,
)


def init_state(parameters: HPCC, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    state.eta, state.max_stage, state.w_ai, state.base_rtt = p.eta, p.max_stage, p.w_ai, p.base_rtt
    state.by_rtt, state.by_ack = p.reaction == "per-rtt", p.reaction == "per-ack"
    state.arrivals, state.counts_queue, state.simulator = p.u_rate == "rx", p.u_queue, p.variant == "hpcc-sim"
    state.most = p.initial_window
    state.least = p.min_rate * p.base_rtt if state.simulator else min(flow.counted, p.initial_window)
    state.window = state.reference = flow.window = min(p.initial_window, flow.initial_rate * p.base_rtt)
    state.load, state.last_update = 1.0, -1.0


def on_step(flow: Any, state: Any, dt: Any) -> None:
    """Line 9, and lines 11-27 for the ACKs of a step."""
    waiting = state.last_update < 0.0
    if not waiting:
        load = 0.0
        for h in range(flow.hops):  # (2), (3)
            u = (flow.arriving[h] if state.arrivals else flow.output[h]) / flow.capacity[h]
            if state.counts_queue:
                u += flow.queue[h] / (flow.capacity[h] * state.base_rtt)
            load = max(load, u)
        state.load += min(dt / state.base_rtt, 1.0) * (load - state.load)
    elif flow.acked > 0.0:  # the first ACK records L
        state.last_update = flow.sent
    ratio = state.eta / max(state.load, _LEAST_U)
    below = state.load < state.eta
    adds = below and state.stage < state.max_stage
    update = not waiting and (state.by_ack or flow.acked > state.last_update)  # line 22
    if state.by_ack:
        acks = 0.0 if waiting else flow.newly / flow.packet
        changed = state.reference * ratio ** (acks / (state.max_stage + 1.0) if below else acks) + acks * state.w_ai
    else:
        changed = (state.reference if adds else state.reference * ratio) + state.w_ai  # (4); lines 13, 17
    changed = min(max(changed, state.least), state.most)
    if update or not (waiting or state.by_rtt):
        state.window = changed
    elif state.simulator:
        state.window = min(state.window, flow.rate * state.base_rtt)
    if update:
        state.reference = changed  # lines 15, 19
        if not state.by_ack:
            state.stage = state.stage + 1.0 if adds else 0.0
        state.last_update = flow.sent  # line 24
    flow.rate = min(state.window / state.base_rtt, flow.line_rate)  # line 27
    flow.window = max(state.window, flow.counted) if state.simulator else state.window
