"""NSCC for the ACKs of a step, one flow at a time in plain Python: NSCC.OnACK of Ultra Ethernet 1.0, 3.6.13.

It shares no line with the law in the package.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.schemes.nscc.parameters import NSCC, gains

_I, _F = np.int64, np.float64

STATE = np.dtype(
    [
        ("alpha", _F),  # gains
        ("fair", _F),
        ("fast_gain", _F),
        ("eta", _F),
        ("target_delay", _F),
        ("clear_delay", _F),
        ("averaging", _F),
        ("gamma", _F),
        ("max_md_jump", _F),
        ("adjust_period", _F),
        ("qa_threshold", _F),
        ("qa_gate", _F),  # share of the largest window
        ("adapts", _I),
        ("most_per_s", _F),  # largest window over the base RTT
        ("base_rtt", _F),
        ("window", _F),  # [bytes]
        ("average_delay", _F),  # [s]
        ("clear", _F),  # bytes acknowledged in a row without marks and delay
        ("fast", _I),  # whether in fast increase
        ("since_adjust", _F),
        ("since_cut", _F),
        ("expected", _F),  # packets with marks since the window may be cut again
        ("achieved", _F),  # bytes acknowledged in this period of Quick Adapt
        ("qa_left", _F),  # what is left of that period [s]; -1 before the first ACK
        ("to_ignore", _F),  # bytes yet to be acknowledged whose marks tell what Quick Adapt has reacted to
    ],
    align=True,
)


def init_state(parameters: NSCC, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    p, g = parameters, gains(parameters)
    state.alpha, state.fair, state.fast_gain, state.eta = g.alpha, g.fair, g.fast, g.eta
    state.target_delay, state.clear_delay, state.averaging = p.target_delay, p.clear_delay, p.averaging
    state.gamma, state.max_md_jump, state.adjust_period = p.gamma, p.max_md_jump, p.adjust_period
    state.qa_threshold, state.qa_gate, state.adapts = p.qa_threshold, 2.0**-p.qa_gate, p.quick_adapt
    state.most_per_s, state.base_rtt, state.qa_left = p.max_window / p.base_rtt, p.base_rtt, -1.0
    state.window = max(p.initial_window * (flow.initial_rate / flow.line_rate), flow.counted)
    flow.rate, flow.window = flow.line_rate, max(state.window - 0.5 * flow.counted, flow.counted)


def on_step(flow: Any, state: Any, dt: Any) -> None:
    """Adjust the window by marks and delay, in four cases, after a check for Quick Adapt."""
    newly, marks = flow.newly * flow.counted / flow.packet, flow.marking
    adapts = over = acts = cuts = ends = False
    if flow.acked > 0.0:
        state.base_rtt = min(state.base_rtt, flow.rtt)
        delay = flow.rtt - state.base_rtt
    else:
        delay = 0.0
    most = max(state.most_per_s * state.base_rtt, flow.counted)
    first = state.qa_left < 0.0
    state.achieved += newly
    state.to_ignore = max(state.to_ignore - newly, 0.0)
    if newly > 0.0:
        gain = 1.0 if first else min(dt / state.averaging, 1.0)
        state.average_delay += gain * (delay - state.average_delay)
        ignores = state.to_ignore > 0.0 and marks > 0.0
        over = not (ignores and marks >= 1.0) and state.qa_left <= dt
        adapts = (
            over and not first and delay > state.qa_threshold and state.achieved < most * state.qa_gate and state.adapts
        )
        acts = not ignores and not adapts
    if acts:
        unmarked = (1.0 - marks) * newly
        grown = state.window
        low = delay < state.target_delay
        if low and delay < state.clear_delay:
            state.clear += unmarked
            state.fast = state.fast or state.clear > state.window
        else:
            if low:
                state.clear = 0.0
            state.fast = 0
        if state.fast:
            grown += state.fast_gain * unmarked
        elif low:
            grown += state.alpha * (state.target_delay - delay) * unmarked / state.window
        else:
            grown += state.fair * unmarked / state.window
        if not low and state.since_cut + dt > state.base_rtt:
            state.expected += marks * newly / flow.counted
            if state.expected >= 1.0 and state.average_delay > state.target_delay:
                cuts = True
                factor = max(
                    1.0 - state.gamma * (state.average_delay - state.target_delay) / max(state.average_delay, 1e-12),
                    state.max_md_jump,
                )
                grown = max(grown * factor, flow.counted)
        else:
            state.expected = 0.0
        if not low and marks > 0.0:
            state.clear, state.fast = 0.0, 0
        ends = state.since_adjust + dt >= state.adjust_period
        if ends:
            grown += state.eta
        state.window = min(grown, most)
    else:
        state.expected = 0.0
    if adapts:
        state.window = max(state.achieved, flow.counted)
        state.to_ignore = (flow.sent - flow.acked) * flow.counted / flow.packet
    state.since_adjust = 0.0 if ends else state.since_adjust + dt
    state.since_cut = 0.0 if cuts else state.since_cut + dt
    if cuts:
        state.expected = 0.0
    if over:
        state.achieved, state.qa_left = 0.0, state.base_rtt + state.target_delay
    elif not first:
        state.qa_left = max(state.qa_left - dt, 0.0)
    flow.window = max(state.window - 0.5 * flow.counted, flow.counted)
