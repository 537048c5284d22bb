"""Swift at packet level: Algorithm 1 of Kumar et al., SIGCOMM 2020.

The delay is that of the packet answered, from the start of its transmission at the NIC to its ACK, against one target
for all of it. What the text leaves open: a decrease is answered by the packets sent since, so "once per RTT" lets the
first of these cut again; a window that holds nothing back, of a flow at line rate with less in flight, does not grow
(as RFC 7661); flows start at line rate (Snyder and Lebeck, III-D). Losses, and delays within hosts, are not modelled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.packet.pacing import inflight, repace
from fluidcc.schemes.swift.parameters import Swift, scaling
from fluidcc.schemes.vai_sf import packet as vai_sf

_I, _F = np.int64, np.float64

STATE = np.dtype(
    [
        ("ai", _F),  # packets in an RTT
        ("beta", _F),
        ("max_mdf", _F),
        ("fixed", _F),  # target of the path, s
        ("slope", _F),  # of flow scaling, s; zero, as are the next two, without it
        ("offset", _F),
        ("range", _F),
        ("w_init", _F),  # bytes
        ("w_most", _F),  # bytes
        ("least", _F),  # packets
        ("most", _F),  # packets
        ("packet", _F),  # in the bytes that windows count
        # state
        ("W", _F),  # packets
        ("rtt", _F),  # s
        ("target", _F),  # s
        ("decreased", _I),  # when W was last cut
        # with Sampling Frequency
        ("W_reference", _F),  # packets
        ("last_update", _I),  # payload byte whose ACK ends the round trip of the reference; -1 before the first ACK
        ("factor", _F),  # without it: of the increase of this round trip
        *vai_sf.COLUMNS,
    ],
    align=True,
)

OBSERVABLES = {
    "window": ("bytes", "window W"),
    "rtt": ("s", "last RTT"),
    "target_delay": ("s", "target that it was compared with"),
    "inflight": ("bytes", "bytes in flight"),
    **vai_sf.OBSERVABLES,
}


def fill(parameters: Swift, flow: Any, me: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    me.ai, me.beta, me.max_mdf = p.ai, p.beta, p.max_mdf
    me.fixed = p.base_target
    me.slope, me.offset = scaling(p) if p.flow_scaling else (0.0, 0.0)
    me.range = p.fs_range if p.flow_scaling else 0.0
    me.w_init, me.w_most, me.least = p.initial_window, p.max_window, p.min_cwnd
    me.last_update, me.factor = -1, 1.0
    vai_sf.fill(p, me, p.token_thresh)


def shown(parameters: Swift) -> int:
    """Return the number of observables, without those of mechanisms that are off."""
    return len(OBSERVABLES) - (0 if parameters.mechanisms else len(vai_sf.OBSERVABLES))


@kernel
def begin(core: Any, flow: Any, me: Any) -> None:
    """Start at line rate, or at the share of W_init that an initial rate is of it."""
    me.packet = flow.payload if core.payload_window else flow.payload + flow.overhead
    me.most = me.w_most / me.packet
    me.W = max(me.w_init * (flow.rate / flow.line_rate) / me.packet, me.least)
    me.W_reference = me.W
    me.target = target_delay(me)
    flow.window = me.W * me.packet


@kernel
def target_delay(me: Any) -> Any:
    """Target of a path, and what flow scaling adds for a small window [s]."""
    return me.fixed + max(0.0, min(me.slope / me.W**0.5 + me.offset, me.range))


@kernel
def cut(me: Any) -> Any:
    """Factor of a multiplicative decrease, (1) of Snyder and Lebeck; 1 below the target."""
    if me.rtt < me.target:
        return 1.0
    return max(1.0 - me.beta * (me.rtt - me.target) / me.rtt, me.max_mdf)


@kernel
def limited(core: Any, flow: Any, me: Any, ack: Any) -> Any:
    """Check whether the window holds the flow back, or its pacer does: it grows only then."""
    return flow.rate < flow.line_rate or inflight(core, flow) + ack.covers * me.packet >= me.W * me.packet


@kernel
def by_round_trip(core: Any, uniforms: Any, flow: Any, me: Any, ack: Any) -> None:
    """Algorithm 1: an increase by every ACK, a decrease once per round trip."""
    if me.rtt < me.target:
        if limited(core, flow, me, ack):
            me.W += me.ai * me.factor * ack.covers / max(me.W, 1.0)
    elif ack.sent >= me.decreased:
        ignored = vai_sf.ignores(core, uniforms, me, me.W * me.packet / me.w_init)
        if not ignored:
            me.W *= cut(me)
        if not ignored or me.ignored_ends_period:
            me.decreased = core.now


@kernel
def by_reference(core: Any, uniforms: Any, flow: Any, me: Any, ack: Any) -> None:
    """Set W at each ACK from a reference, with an increase even if congested (Sampling Frequency, V-B)."""
    if me.last_update < 0:
        me.last_update = flow.sent
    new = max(min(me.W_reference * cut(me) + me.ai * vai_sf.increases(me), me.most), me.least)
    decreases = new < me.W_reference
    if not decreases and not limited(core, flow, me, ack):
        return
    if vai_sf.adjusts(me, decreases, ack.end > me.last_update):
        if decreases and vai_sf.ignores(core, uniforms, me, me.W_reference * me.packet / me.w_init):
            if me.ignored_ends_period:
                me.last_update = flow.sent
            return
        me.W_reference = new
        me.last_update = flow.sent
        vai_sf.adjusted(me)
    me.W = new


@inlined
def on_ack(sim: Any, flow: Any, me: Any, ack: Any) -> None:
    """Algorithm 1, on an ACK, or what Sampling Frequency makes of it."""
    core = sim.core[0]
    me.rtt = (core.now - ack.sent) * 1e-12
    me.target = target_delay(me)
    if me.sampling > 0:
        vai_sf.observed(flow, me, ack, me.rtt, me.rtt >= me.target)
        by_reference(core, sim.uniforms, flow, me, ack)
    else:
        if me.vai and vai_sf.observed(flow, me, ack, me.rtt, me.rtt >= me.target):
            me.factor = vai_sf.increases(me)  # tokens are for the increases of a round trip
            vai_sf.adjusted(me)
        by_round_trip(core, sim.uniforms, flow, me, ack)
    me.W = max(min(me.W, me.most), me.least)
    flow.window = me.W * me.packet
    # Below one packet: one in rtt/W.
    paced = me.W * (flow.payload + flow.overhead) / me.rtt if me.W < 1.0 else flow.line_rate
    flow.rate = min(paced, flow.line_rate)
    repace(core, flow)


@kernel
def observe(core: Any, flow: Any, me: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = me.W * me.packet
    samples[row, f, 4] = me.rtt
    samples[row, f, 5] = me.target
    samples[row, f, 6] = inflight(core, flow)
    vai_sf.observe(me, samples, row, f, 7)
