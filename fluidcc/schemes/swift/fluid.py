"""Swift's fluid model: its law at the end of each step, per flow class, with Variable AI and Sampling Frequency."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.law import held, in_world
from fluidcc.contract.signals import Progress, Signals
from fluidcc.schemes.swift import law
from fluidcc.schemes.swift.parameters import Swift
from fluidcc.schemes.vai_sf import fluid as vai_sf

NEEDS = frozenset({"inflight"})
_STEPS_PER_BASE_RTT = 40

after, bounded, decrease, on_step, reaction, target_delay = (
    in_world(rule, jnp) for rule in (law.after, law.bounded, law.decrease, law.on_step, law.reaction, law.target_delay)
)
rate, window, largest_window = law.rate, law.window, law.largest_window


class Mechanisms(NamedTuple):
    """State of Variable AI, Sampling Frequency and probabilistic feedback, each (flows, points)."""

    tokens: vai_sf.Tokens
    reference: Array  # with Sampling Frequency: window that every ACK starts from [bytes]
    last_update: Array  # with it: byte whose ACK ends the round trip of the reference; -1 before the first ACK
    factor: Array  # without it: of the increase of this round trip


class State(NamedTuple):
    """State of the flows, arrays (flows, points); it changes in jumps only."""

    rate: Array  # and the others of the law's state
    window: Array
    rtt: Array
    target: Array
    cut_end: Array
    mechanisms: Mechanisms | None = None


def start(parameters: Swift, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first ACK."""
    p, none = parameters, jnp.zeros(shape, jnp.result_type(initial_rate))
    first = State(*(none + each for each in in_world(law.start, jnp)(p, initial_rate)))
    tokens = vai_sf.start(p, shape, none.dtype)
    return first if tokens is None else first._replace(mechanisms=Mechanisms(tokens, first.window, none - 1, none + 1))


def feedback(parameters: Swift, signals: Signals) -> Array:
    """Return zeros: the delay comes with the ACKs (`Progress.rtt`)."""
    return jnp.zeros_like(signals.rate)


def derivative(parameters: Swift, state: State, observed: Array) -> State:
    """Return slopes of 0: nothing moves between ACKs."""
    return jax.tree.map(jnp.zeros_like, state)


def jump(parameters: Swift, state: State, progress: Progress, observed: Array) -> State:
    """Follow the law for the ACKs of a step, or what the mechanisms make of it."""
    p, m = parameters, state.mechanisms
    if m is None:
        return state._replace(**on_step(p, state, progress, observed)._asdict())
    target = target_delay(p, state.window / progress.packet)
    if p.sampling is not None:
        packets, m = _by_reference(p, state, m, progress, target)
        cut_end = state.cut_end
    else:
        packets, m, cut_end = _by_round_trip(p, state, m, progress, target)
    return State(*after(p, state, progress, target, packets, cut_end), mechanisms=m)


def _by_round_trip(
    p: Swift, s: State, m: Mechanisms, progress: Progress, target: Array
) -> tuple[Array, Mechanisms, Array]:
    """Return the window [packets], and to what byte a cut holds: tokens are for the increases of a round trip."""
    late = ~(progress.rtt < target)
    cuts = late & (progress.newly > 0) & (progress.acked > s.cut_end)
    tokens, over = vai_sf.observed(p, m.tokens, progress, progress.rtt, late)
    factor = jnp.where(over, tokens.factor, m.factor)
    ignored, tokens = vai_sf.ignores(p, tokens, progress, cuts, s.window / p.initial_window)
    cuts &= ~ignored
    passes = ignored & vai_sf.ends_period(p)
    drawn = tokens.drawn if vai_sf.ends_period(p) else jnp.where(cuts, 0.0, tokens.drawn)
    tokens = vai_sf.adjusted(p, tokens, over)._replace(drawn=drawn)
    packets = reaction(p, s, progress, target, p.ai * factor, cuts)
    return packets, m._replace(tokens=tokens, factor=factor), jnp.where(cuts | passes, progress.sent, s.cut_end)


def _by_reference(p: Swift, s: State, m: Mechanisms, progress: Progress, target: Array) -> tuple[Array, Mechanisms]:
    """Set W at ACKs from a reference, with an increase even if congested (Sampling Frequency, V-B)."""
    packet, delay = progress.packet, progress.rtt
    below = delay < target
    tokens, _ = vai_sf.observed(p, m.tokens, progress, delay, ~below)
    reference = m.reference / packet
    cut = jnp.where(below, 1.0, decrease(p, delay, target))
    new = bounded(p, reference * cut + p.ai * tokens.factor, packet)
    decreases, any_ack = new < reference, progress.newly > 0
    first = (m.last_update < 0) & (progress.acked > 0)
    trip_over = (m.last_update >= 0) & (progress.acked > m.last_update)
    moves = any_ack & (decreases | held(s, progress))
    update = moves & vai_sf.adjusts(p, tokens, decreases, trip_over)
    ignored, tokens = vai_sf.ignores(p, tokens, progress, update & decreases, m.reference / p.initial_window)
    update &= ~ignored
    passes = ignored & vai_sf.ends_period(p)
    return jnp.where(moves & ~ignored, new, s.window / packet), m._replace(
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
