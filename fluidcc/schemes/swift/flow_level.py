"""Swift for transfers in numbers: Algorithm 1 for all ACKs of a step, as in `fluidcc.schemes.swift.fluid`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.schemes.swift.parameters import Swift, scaling

NEEDS = frozenset({"delay"})
ONLY = {"vai": False, "sampling": None}
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


def fill(parameters: Swift, flow: Any, me: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    me.ai, me.beta, me.max_mdf, me.base_target = p.ai, p.beta, p.max_mdf, p.base_target
    me.scales, me.range = p.flow_scaling, p.fs_range
    if me.scales:
        me.slope, me.offset = scaling(p)
    me.least, me.most = p.min_cwnd, p.max_window / flow.counted
    me.window = flow.window = min(p.initial_window, flow.initial_rate * p.base_rtt)


@kernel
def on_step(flow: Any, me: Any) -> None:
    """Algorithm 1 for the ACKs of a step; all have the delay of the last."""
    if flow.acked <= 0.0:
        return
    packets, delay = me.window / flow.counted, flow.rtt
    target = me.base_target
    if me.scales:
        target += min(max(me.slope / packets**0.5 + me.offset, 0.0), me.range)
    under_way = (flow.sent - flow.acked + flow.newly) * flow.counted / flow.packet
    if delay < target:
        # A window that holds nothing back, of a flow at line rate with less in flight, does not grow.
        if flow.rate < flow.line_rate or under_way >= me.window:
            packets += me.ai * flow.newly / flow.packet / max(packets, 1.0)
    elif flow.newly > 0.0 and flow.acked > me.cut_end:
        packets *= max(1.0 - me.beta * (delay - target) / delay, me.max_mdf)
        me.cut_end = flow.sent
    packets = max(min(packets, me.most), me.least)
    flow.rate = min(packets * flow.packet / delay, flow.line_rate) if packets < 1.0 else flow.line_rate
    me.window = flow.window = packets * flow.counted
