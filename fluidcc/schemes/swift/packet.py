"""Swift at packet level: Algorithm 1 of Kumar et al., SIGCOMM 2020.

The delay is that of the packet answered, from the start of its transmission at the NIC to its ACK, against one target
for all of it. What the text leaves open: a decrease is answered by the packets sent since, so "once per RTT" lets the
first of these cut again; a window that holds nothing back, of a flow at line rate with less in flight, does not grow
(as RFC 7661); flows start at line rate (Snyder and Lebeck, III-D). Losses, and delays within hosts, are not modelled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidcc.schemes.swift.law as law
import fluidcc.schemes.vai_sf.packet as vai_sf
from fluidcc.contract.law import in_world
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.common.rules import constants, copy
from fluidcc.engines.packet.pacing import inflight, repace
from fluidcc.schemes.swift.parameters import Swift

_I, _F = np.int64, np.float64
bounded, decrease, target_delay = (
    in_world(rule, scalars, kernel) for rule in (law.bounded, law.decrease, law.target_delay)
)

_GIVEN = constants(Swift)
STATE = np.dtype(
    [
        *_GIVEN,
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
    copy(parameters, state, _GIVEN)
    state.last_update, state.factor = -1, 1.0
    vai_sf.init_state(parameters, state)


def shown(parameters: Swift) -> int:
    """Return the number of observables, without those of mechanisms that are off."""
    return len(OBSERVABLES) - (0 if parameters.mechanisms else len(vai_sf.OBSERVABLES))


@kernel
def begin(core: Any, flow: Any, state: Any) -> None:
    """Start at line rate, or at the share of W_init that an initial rate is of it."""
    state.packet = flow.payload if core.payload_window else flow.payload + flow.overhead
    state.W = max(state.initial_window * (flow.rate / flow.line_rate) / state.packet, state.min_cwnd)
    state.W_reference = state.W
    state.target = target_delay(state, state.W)
    flow.window = state.W * state.packet


@kernel
def cut(state: Any) -> Any:
    """Factor of a multiplicative decrease; 1 below the target."""
    return 1.0 if state.rtt < state.target else decrease(state, state.rtt, state.target)


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
        ignored = vai_sf.ignores(core, uniforms, state, state.W * state.packet / state.initial_window)
        if not ignored:
            state.W *= cut(state)
        if not ignored or state.ignored_ends_period:
            state.decreased = core.now


@kernel
def by_reference(core: Any, uniforms: Any, flow: Any, state: Any, ack: Any) -> None:
    """Set W at each ACK from a reference, with an increase even if congested (Sampling Frequency, V-B)."""
    if state.last_update < 0:
        state.last_update = flow.sent
    new = bounded(state, state.W_reference * cut(state) + state.ai * vai_sf.increases(state), state.packet)
    decreases = new < state.W_reference
    if not decreases and not limited(core, flow, state, ack):
        return
    if vai_sf.adjusts(state, decreases, ack.end > state.last_update):
        if decreases and vai_sf.ignores(core, uniforms, state, state.W_reference * state.packet / state.initial_window):
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
    state.target = target_delay(state, state.W)
    if state.sampling > 0:
        vai_sf.observed(flow, state, ack, state.rtt, state.rtt >= state.target)
        by_reference(core, sim.uniforms, flow, state, ack)
    else:
        if state.vai and vai_sf.observed(flow, state, ack, state.rtt, state.rtt >= state.target):
            state.factor = vai_sf.increases(state)  # tokens are for the increases of a round trip
            vai_sf.adjusted(state)
        by_round_trip(core, sim.uniforms, flow, state, ack)
    state.W = bounded(state, state.W, state.packet)
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
