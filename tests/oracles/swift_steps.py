"""Swift for the ACKs of a step, one flow at a time in plain Python: Algorithm 1 of Kumar et al., SIGCOMM 2020.

It shares no line with the law in the package.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.schemes.swift.parameters import Swift

_I, _F = np.int64, np.float64

STATE = np.dtype(
    [
        ("ai", _F),
        ("beta", _F),
        ("max_mdf", _F),
        ("base_target", _F),
        ("scales", _I),
        ("slope", _F),
        ("offset", _F),
        ("range", _F),
        ("least", _F),  # packets
        ("most", _F),
        ("window", _F),  # [bytes]
        ("cut_end", _F),  # a cut holds for the data up to this [bytes]
    ],
    align=True,
)


def init_state(parameters: Swift, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    state.ai, state.beta, state.max_mdf, state.base_target = p.ai, p.beta, p.max_mdf, p.base_target
    state.scales, state.range = p.flow_scaling, p.fs_range
    if state.scales:
        # fs_range at fs_min packets, nothing at fs_max.
        state.slope = p.fs_range / (1.0 / math.sqrt(p.fs_min) - 1.0 / math.sqrt(p.fs_max))
        state.offset = -state.slope / math.sqrt(p.fs_max)
    state.least, state.most = p.min_cwnd, p.max_window / flow.counted
    state.window = flow.window = min(p.initial_window, flow.initial_rate * p.base_rtt)


def on_step(flow: Any, state: Any) -> None:
    """Algorithm 1 for the ACKs of a step; all have the delay of the last."""
    if flow.acked <= 0.0:
        return
    packets, delay = state.window / flow.counted, flow.rtt
    target = state.base_target
    if state.scales:
        target += min(max(state.slope / math.sqrt(packets) + state.offset, 0.0), state.range)
    under_way = (flow.sent - flow.acked + flow.newly) * flow.counted / flow.packet
    if delay < target:
        # A window that holds nothing back, of a flow at line rate with less in flight, does not grow.
        if flow.rate < flow.line_rate or under_way >= state.window:
            packets += state.ai * flow.newly / flow.packet / max(packets, 1.0)
    elif flow.newly > 0.0 and flow.acked > state.cut_end:
        packets *= max(1.0 - state.beta * (delay - target) / delay, state.max_mdf)
        state.cut_end = flow.sent
    packets = max(min(packets, state.most), state.least)
    flow.rate = min(packets * flow.packet / delay, flow.line_rate) if packets < 1.0 else flow.line_rate
    state.window = flow.window = packets * flow.counted
