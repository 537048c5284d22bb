"""HPCC for transfers in numbers: Algorithm 1 for all ACKs of a step, as in `fluidcc.schemes.hpcc.fluid`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.schemes.hpcc.parameters import HPCC

NEEDS = frozenset({"telemetry"})
ONLY = {"form": "window", "registers": "one", "multiq": "off", "vai": False, "sampling": None, "int_format": "exact"}
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


def fill(parameters: HPCC, flow: Any, me: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    me.eta, me.max_stage, me.w_ai, me.base_rtt = p.eta, p.max_stage, p.w_ai, p.base_rtt
    me.by_rtt, me.by_ack = p.reaction == "per-rtt", p.reaction == "per-ack"
    me.arrivals, me.counts_queue, me.simulator = p.u_rate == "rx", p.u_queue, p.variant == "hpcc-sim"
    me.most = p.initial_window
    me.least = p.min_rate * p.base_rtt if me.simulator else min(flow.counted, p.initial_window)
    me.window = me.reference = flow.window = min(p.initial_window, flow.initial_rate * p.base_rtt)
    me.load, me.last_update = 1.0, -1.0


@kernel
def on_step(flow: Any, me: Any, dt: Any) -> None:
    """Line 9, and lines 11-27 for the ACKs of a step."""
    waiting = me.last_update < 0.0
    if not waiting:
        load = 0.0
        for h in range(flow.hops):  # (2), (3)
            u = (flow.arriving[h] if me.arrivals else flow.output[h]) / flow.capacity[h]
            if me.counts_queue:
                u += flow.queue[h] / (flow.capacity[h] * me.base_rtt)
            load = max(load, u)
        me.load += min(dt / me.base_rtt, 1.0) * (load - me.load)
    elif flow.acked > 0.0:  # the first ACK records L
        me.last_update = flow.sent
    ratio = me.eta / max(me.load, _LEAST_U)
    below = me.load < me.eta
    adds = below and me.stage < me.max_stage
    update = not waiting and (me.by_ack or flow.acked > me.last_update)  # line 22
    if me.by_ack:
        acks = 0.0 if waiting else flow.newly / flow.packet
        changed = me.reference * ratio ** (acks / (me.max_stage + 1.0) if below else acks) + acks * me.w_ai
    else:
        changed = (me.reference if adds else me.reference * ratio) + me.w_ai  # (4); lines 13, 17
    changed = min(max(changed, me.least), me.most)
    if update or not (waiting or me.by_rtt):
        me.window = changed
    elif me.simulator:
        me.window = min(me.window, flow.rate * me.base_rtt)
    if update:
        me.reference = changed  # lines 15, 19
        if not me.by_ack:
            me.stage = me.stage + 1.0 if adds else 0.0
        me.last_update = flow.sent  # line 24
    flow.rate = min(me.window / me.base_rtt, flow.line_rate)  # line 27
    flow.window = max(me.window, flow.counted) if me.simulator else me.window
