"""NSCC for transfers in numbers: NSCC.OnACK for all ACKs of a step, as in `fluidcc.schemes.nscc.fluid`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.schemes.nscc.parameters import NSCC, gains

NEEDS = frozenset({"delay"})
ONLY: dict[str, Any] = {}
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
        ("average", _F),  # of the delay [s]
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


def fill(parameters: NSCC, flow: Any, me: Any) -> None:
    """Write a flow's parameters and first state."""
    p, g = parameters, gains(parameters)
    me.alpha, me.fair, me.fast_gain, me.eta = g.alpha, g.fair, g.fast, g.eta
    me.target_delay, me.clear_delay, me.averaging = p.target_delay, p.clear_delay, p.averaging
    me.gamma, me.max_md_jump, me.adjust_period = p.gamma, p.max_md_jump, p.adjust_period
    me.qa_threshold, me.qa_gate, me.adapts = p.qa_threshold, 2.0**-p.qa_gate, p.quick_adapt
    me.most_per_s, me.base_rtt, me.qa_left = p.max_window / p.base_rtt, p.base_rtt, -1.0
    me.window = max(p.initial_window * (flow.initial_rate / flow.line_rate), flow.counted)
    flow.rate, flow.window = flow.line_rate, max(me.window - 0.5 * flow.counted, flow.counted)


@kernel
def on_step(flow: Any, me: Any, dt: Any) -> None:
    """Adjust the window by marks and delay, in four cases, after a check for Quick Adapt."""
    newly, marks = flow.newly * flow.counted / flow.packet, flow.marking
    adapts = over = acts = cuts = ends = False
    if flow.acked > 0.0:
        me.base_rtt = min(me.base_rtt, flow.rtt)
        delay = flow.rtt - me.base_rtt
    else:
        delay = 0.0
    most = max(me.most_per_s * me.base_rtt, flow.counted)
    first = me.qa_left < 0.0
    me.achieved += newly
    me.to_ignore = max(me.to_ignore - newly, 0.0)
    if newly > 0.0:
        gain = 1.0 if first else min(dt / me.averaging, 1.0)
        me.average += gain * (delay - me.average)
        ignores = me.to_ignore > 0.0 and marks > 0.0
        over = not (ignores and marks >= 1.0) and me.qa_left <= dt
        adapts = over and not first and delay > me.qa_threshold and me.achieved < most * me.qa_gate and me.adapts
        acts = not ignores and not adapts
    if acts:
        unmarked = (1.0 - marks) * newly
        grown = me.window
        low = delay < me.target_delay
        if low and delay < me.clear_delay:
            me.clear += unmarked
            me.fast = me.fast or me.clear > me.window
        else:
            if low:
                me.clear = 0.0
            me.fast = 0
        if me.fast:
            grown += me.fast_gain * unmarked
        elif low:
            grown += me.alpha * (me.target_delay - delay) * unmarked / me.window
        else:
            grown += me.fair * unmarked / me.window
        if not low and me.since_cut + dt > me.base_rtt:
            me.expected += marks * newly / flow.counted
            if me.expected >= 1.0 and me.average > me.target_delay:
                cuts = True
                factor = max(1.0 - me.gamma * (me.average - me.target_delay) / max(me.average, 1e-12), me.max_md_jump)
                grown = max(grown * factor, flow.counted)
        else:
            me.expected = 0.0
        if not low and marks > 0.0:
            me.clear, me.fast = 0.0, 0
        ends = me.since_adjust + dt >= me.adjust_period
        if ends:
            grown += me.eta
        me.window = min(grown, most)
    else:
        me.expected = 0.0
    if adapts:
        me.window = max(me.achieved, flow.counted)
        me.to_ignore = (flow.sent - flow.acked) * flow.counted / flow.packet
    me.since_adjust = 0.0 if ends else me.since_adjust + dt
    me.since_cut = 0.0 if cuts else me.since_cut + dt
    if cuts:
        me.expected = 0.0
    if over:
        me.achieved, me.qa_left = 0.0, me.base_rtt + me.target_delay
    elif not first:
        me.qa_left = max(me.qa_left - dt, 0.0)
    flow.window = max(me.window - 0.5 * flow.counted, flow.counted)
