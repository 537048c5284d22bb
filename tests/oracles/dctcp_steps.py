"""DCTCP for the ACKs of a step, one flow at a time in plain Python: section 3.1 of Alizadeh et al., SIGCOMM 2010.

It shares no line with the law in the package.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.schemes.dctcp.parameters import DCTCP

_F = np.float64

STATE = np.dtype(
    [
        ("g", _F),
        ("increase", _F),
        ("base_rtt", _F),
        ("window", _F),  # [bytes]
        ("alpha", _F),
        ("answered", _F),  # bytes acknowledged since alpha's last update
        ("marked", _F),  # how many of them carried marks
        ("expected", _F),  # packets with marks since the last cut was acknowledged
        ("window_end", _F),  # alpha's next update comes with data beyond this [bytes]
        ("cut_end", _F),  # a cut holds for the data up to this [bytes]
    ],
    align=True,
)


def init_state(parameters: DCTCP, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    state.g, state.increase, state.base_rtt, state.alpha = p.g, p.increase, p.base_rtt, p.initial_alpha
    state.window = flow.window = min(p.initial_window, flow.initial_rate * p.base_rtt)


def on_step(flow: Any, state: Any) -> None:
    """(1) once per window of data; (2) at a mark; else the increase of TCP."""
    per_packet = flow.counted / flow.packet
    # A window that holds nothing back, of a flow at line rate with less in flight, does not grow.
    under_way = (flow.sent - flow.acked + flow.newly) * per_packet
    held = flow.rate < flow.line_rate or under_way >= state.window
    state.answered += flow.newly
    state.marked += flow.marking * flow.newly
    if flow.acked > state.window_end:
        if state.window_end > 0.0:
            state.alpha = (1.0 - state.g) * state.alpha + state.g * state.marked / max(state.answered, 1e-9)  # (1)
            state.answered = state.marked = 0.0
        state.window_end = flow.sent
    if flow.acked > state.cut_end:
        state.expected += flow.marking * flow.newly / flow.packet
        if state.expected >= 1.0:
            state.window = max(state.window * (1.0 - state.alpha / 2.0), flow.counted)  # (2)
            state.expected, state.cut_end = 0.0, flow.sent
        elif held:
            state.window += (
                state.increase * flow.counted * (1.0 - flow.marking) * flow.newly * per_packet / state.window
            )
    else:
        state.expected = 0.0
    flow.rate, flow.window = min(state.window / state.base_rtt, flow.line_rate), state.window
