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


def init_state(parameters: Swift, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    state.ai, state.beta, state.max_mdf = p.ai, p.beta, p.max_mdf
    state.fixed = p.base_target
    state.slope, state.offset = scaling(p) if p.flow_scaling else (0.0, 0.0)
    state.range = p.fs_range if p.flow_scaling else 0.0
    state.w_init, state.w_most, state.least = p.initial_window, p.max_window, p.min_cwnd
    state.last_update, state.factor = -1, 1.0
    vai_sf.init_state(p, state, p.token_thresh)


def shown(parameters: Swift) -> int:
    """Return the number of observables, without those of mechanisms that are off."""
    return len(OBSERVABLES) - (0 if parameters.mechanisms else len(vai_sf.OBSERVABLES))


@kernel
def begin(core: Any, flow: Any, state: Any) -> None:
    """Start at line rate, or at the share of W_init that an initial rate is of it."""
    state.packet = flow.payload if core.payload_window else flow.payload + flow.overhead
    state.most = state.w_most / state.packet
    state.W = max(state.w_init * (flow.rate / flow.line_rate) / state.packet, state.least)
    state.W_reference = state.W
    state.target = target_delay(state)
    flow.window = state.W * state.packet


@kernel
def target_delay(state: Any) -> Any:
    """Target of a path, and what flow scaling adds for a small window [s]."""
    return state.fixed + max(0.0, min(state.slope / state.W**0.5 + state.offset, state.range))


@kernel
def cut(state: Any) -> Any:
    """Factor of a multiplicative decrease, (1) of Snyder and Lebeck; 1 below the target."""
    if state.rtt < state.target:
        return 1.0
    return max(1.0 - state.beta * (state.rtt - state.target) / state.rtt, state.max_mdf)


@kernel
def limited(core: Any, flow: Any, state: Any, ack: Any) -> Any:
    """Check whether the window holds the flow back, or its pacer does: it grows only then."""
    return flow.rate < flow.line_rate or inflight(core, flow) + ack.covers * state.packet >= state.W * state.packet


@kernel
def by_round_trip(core: Any, uniforms: Any, flow: Any, state: Any, ack: Any) -> None:
    """Algorithm 1: an increase by every ACK, a decrease once per round trip."""
    if state.rtt < state.target:
        if limited(core, flow, state, ack):
            state.W += state.ai * state.factor * ack.covers / max(state.W, 1.0)
    elif ack.sent >= state.decreased:
        ignored = vai_sf.ignores(core, uniforms, state, state.W * state.packet / state.w_init)
        if not ignored:
            state.W *= cut(state)
        if not ignored or state.ignored_ends_period:
            state.decreased = core.now


@kernel
def by_reference(core: Any, uniforms: Any, flow: Any, state: Any, ack: Any) -> None:
    """Set W at each ACK from a reference, with an increase even if congested (Sampling Frequency, V-B)."""
    if state.last_update < 0:
        state.last_update = flow.sent
    new = max(min(state.W_reference * cut(state) + state.ai * vai_sf.increases(state), state.most), state.least)
    decreases = new < state.W_reference
    if not decreases and not limited(core, flow, state, ack):
        return
    if vai_sf.adjusts(state, decreases, ack.end > state.last_update):
        if decreases and vai_sf.ignores(core, uniforms, state, state.W_reference * state.packet / state.w_init):
            if state.ignored_ends_period:
                state.last_update = flow.sent
            return
        state.W_reference = new
        state.last_update = flow.sent
        vai_sf.adjusted(state)
    state.W = new


@inlined
def on_ack(sim: Any, flow: Any, state: Any, ack: Any) -> None:
    """Algorithm 1, on an ACK, or what Sampling Frequency makes of it."""
    core = sim.core[0]
    state.rtt = (core.now - ack.sent) * 1e-12
    state.target = target_delay(state)
    if state.sampling > 0:
        vai_sf.observed(flow, state, ack, state.rtt, state.rtt >= state.target)
        by_reference(core, sim.uniforms, flow, state, ack)
    else:
        if state.vai and vai_sf.observed(flow, state, ack, state.rtt, state.rtt >= state.target):
            state.factor = vai_sf.increases(state)  # tokens are for the increases of a round trip
            vai_sf.adjusted(state)
        by_round_trip(core, sim.uniforms, flow, state, ack)
    state.W = max(min(state.W, state.most), state.least)
    flow.window = state.W * state.packet
    # Below one packet: one in rtt/W.
    paced = state.W * (flow.payload + flow.overhead) / state.rtt if state.W < 1.0 else flow.line_rate
    flow.rate = min(paced, flow.line_rate)
    repace(core, flow)


@kernel
def observe(core: Any, flow: Any, state: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = state.W * state.packet
    samples[row, f, 4] = state.rtt
    samples[row, f, 5] = state.target
    samples[row, f, 6] = inflight(core, flow)
    vai_sf.observe(state, samples, row, f, 7)
