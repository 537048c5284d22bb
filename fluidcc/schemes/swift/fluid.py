"""Swift's fluid model: Algorithm 1 of Kumar et al., SIGCOMM 2020, per flow class.

The delay is the round trip of the bytes whose ACKs arrive when a step ends. All of a step's ACKs have it; they raise
the window together, or cut it once for what had been sent by then.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.signals import Progress, Signals
from fluidcc.schemes.swift.parameters import Swift, scaling
from fluidcc.schemes.vai_sf import fluid as vai_sf

NEEDS = frozenset({"inflight"})
_STEPS_PER_BASE_RTT = 40


class Mechanisms(NamedTuple):
    """State of Variable AI, Sampling Frequency and probabilistic feedback, each (flows, points)."""

    tokens: vai_sf.Tokens
    reference: Array  # with Sampling Frequency: window that every ACK starts from [bytes]
    last_update: Array  # with it: byte whose ACK ends the round trip of the reference; -1 before the first ACK
    factor: Array  # without it: of the increase of this round trip


class State(NamedTuple):
    """State of the flows, arrays (flows, points); it changes in jumps only."""

    rate: Array  # line rate, or below one packet that of the pacer [bytes/s]
    window: Array  # W [bytes]
    rtt: Array  # [s]
    target: Array  # that it was compared with [s]
    cut_end: Array  # a cut holds for the data up to this [bytes]
    mechanisms: Mechanisms | None = None


def start(parameters: Swift, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first ACK: the first window, or what an initial rate is of it."""
    p = parameters
    window = jnp.broadcast_to(jnp.minimum(p.initial_window, initial_rate * p.base_rtt), shape)
    none = jnp.zeros(shape, window.dtype)
    tokens = vai_sf.start(p, shape, window.dtype)
    mechanisms = None if tokens is None else Mechanisms(tokens, window, none - 1.0, none + 1.0)
    return State(jnp.broadcast_to(initial_rate, shape), window, none, none + p.base_target, none, mechanisms)


def rate(state: State) -> Array:
    """Pacing rate [bytes/s]."""
    return state.rate


def window(parameters: Swift, state: State) -> Array:
    """Limit W of the bytes in flight."""
    return state.window


def largest_window(parameters: Swift) -> Any:
    """The first window, or the largest later one [bytes]."""
    return np.maximum(parameters.initial_window, parameters.max_window)


def feedback(parameters: Swift, signals: Signals) -> Array:
    """Return zeros: the delay comes with the ACKs (`Progress.rtt`)."""
    return jnp.zeros_like(signals.rate)


def derivative(parameters: Swift, state: State, observed: Array) -> State:
    """Return slopes of 0: nothing moves between ACKs."""
    return jax.tree.map(jnp.zeros_like, state)


def target_delay(parameters: Swift, packets: Array) -> Any:
    """Target of a path, and what flow scaling adds for a small window [s]; NaN unless fs_min is below fs_max."""
    p = parameters
    if not p.flow_scaling:
        return p.base_target
    slope, offset = scaling(p)
    added = jnp.clip(slope * packets**-0.5 + offset, 0.0, p.fs_range)
    return p.base_target + jnp.where(p.fs_min < p.fs_max, added, jnp.nan)


def jump(parameters: Swift, state: State, progress: Progress, observed: Array) -> State:
    """Algorithm 1 for the ACKs of a step."""
    p, s, packet = parameters, state, progress.packet
    newly, per_packet = progress.newly, packet / progress.wire_packet
    W, delay = s.window / packet, progress.rtt
    target = jnp.broadcast_to(target_delay(p, W), jnp.shape(W))
    below = delay < target
    # A window that holds nothing back, of a flow at line rate with less in flight, does not grow.
    inflight = (progress.sent - progress.acked + newly) * per_packet
    held = (s.rate < progress.line_rate) | (inflight >= s.window)
    cut = jnp.maximum(1.0 - p.beta * (delay - target) / delay, p.max_mdf)
    passes = jnp.zeros_like(below)
    m, cuts = s.mechanisms, ~below & (newly > 0) & (progress.acked > s.cut_end)
    if p.sampling is not None:
        assert m is not None
        new, m = _by_reference(p, s.window, m, progress, jnp.where(below, 1.0, cut), below, held)
    else:
        ai = p.ai
        if m is not None:
            tokens, over = vai_sf.observed(p, m.tokens, progress, delay, ~below)
            m = m._replace(tokens=tokens, factor=jnp.where(over, tokens.factor, m.factor))
            ai = p.ai * m.factor  # tokens are for the increases of a round trip
            ignored, tokens = vai_sf.ignores(p, tokens, progress, cuts, s.window / p.initial_window)
            cuts &= ~ignored
            passes = ignored & vai_sf.ends_period(p)
            drawn = tokens.drawn if vai_sf.ends_period(p) else jnp.where(cuts, 0.0, tokens.drawn)
            m = m._replace(tokens=vai_sf.adjusted(p, tokens, over)._replace(drawn=drawn))
        grown = W + jnp.where(held, ai * newly / progress.wire_packet / jnp.maximum(W, 1.0), 0.0)
        new = jnp.where(cuts, W * cut, jnp.where(below, grown, W))
    new = jnp.where(progress.acked > 0, _bounded(p, new, packet), W)
    paced = jnp.where(new < 1.0, new * progress.wire_packet / delay, progress.line_rate)
    return State(
        rate=jnp.where(progress.acked > 0, jnp.minimum(paced, progress.line_rate), s.rate),
        window=new * packet,
        rtt=jnp.broadcast_to(delay, jnp.shape(W)),
        target=target,
        cut_end=jnp.where(cuts | passes, progress.sent, s.cut_end),
        mechanisms=m,
    )


def _bounded(p: Swift, packets: Array, packet: Array) -> Array:
    return jnp.maximum(jnp.minimum(packets, p.max_window / packet), p.min_cwnd)


def _by_reference(
    p: Swift, window: Array, m: Mechanisms, progress: Progress, cut: Array, below: Array, held: Array
) -> tuple[Array, Mechanisms]:
    """Set W at ACKs from a reference, with an increase even if congested (Sampling Frequency, V-B)."""
    packet, delay = progress.packet, progress.rtt
    tokens, _ = vai_sf.observed(p, m.tokens, progress, delay, ~below)
    reference = m.reference / packet
    new = _bounded(p, reference * cut + p.ai * tokens.factor, packet)
    decreases, any_ack = new < reference, progress.newly > 0
    first = (m.last_update < 0) & (progress.acked > 0)
    trip_over = (m.last_update >= 0) & (progress.acked > m.last_update)
    moves = any_ack & (decreases | held)
    update = moves & vai_sf.adjusts(p, tokens, decreases, trip_over)
    ignored, tokens = vai_sf.ignores(p, tokens, progress, update & decreases, m.reference / p.initial_window)
    update &= ~ignored
    passes = ignored & vai_sf.ends_period(p)
    return jnp.where(moves & ~ignored, new, window / packet), m._replace(
        tokens=vai_sf.adjusted(p, tokens, update),
        reference=jnp.where(update, new * packet, m.reference),
        last_update=jnp.where(first | update | passes, progress.sent, m.last_update),
    )


OBSERVABLES = {
    "window": ("bytes", "window W"),
    "rtt": ("s", "last RTT"),
    "target_delay": ("s", "target that it was compared with"),
    **vai_sf.OBSERVABLES,
}


def observables(state: State) -> dict[str, Array]:
    """Return what a trace shows in addition to queue and rate, as named in `OBSERVABLES`."""
    shown = {"window": state.window, "rtt": state.rtt, "target_delay": state.target}
    return shown | vai_sf.observables(None if state.mechanisms is None else state.mechanisms.tokens)


def time_scale(parameters: Swift, line_rate: Any) -> Any:
    """Time [s] from which the step is chosen, four of which are taken in it: events fall between steps."""
    return np.asarray(parameters.base_rtt) * (4 / _STEPS_PER_BASE_RTT)
