"""HPCC's fluid model: its law per flow class, with registers for links, the rate form and the mechanisms.

Here U moves between steps too, by dU/dt = (u - U)/T, the limit of line 9 for many ACKs in T.

A register is a U with its W^c and incStage: one, which observes the most loaded link of the path, or one for each link,
joined by (7) of appendix A.3. ``form="rate"`` is that appendix's law, T dR/dt = R eta/U - R + a, without windows.

``variant="hpcc-sim"`` takes T and W_init as that simulator counts them, and its least rate instead of a least window;
all else is as in the paper.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.law import in_world
from fluidcc.contract.signals import Progress, Signals
from fluidcc.schemes.hpcc import law
from fluidcc.schemes.hpcc.parameters import HPCC
from fluidcc.schemes.vai_sf import fluid as vai_sf

NEEDS = frozenset({"telemetry", "inflight"})
_STEPS_PER_BASE_RTT = 40

after, first_ack, least_window, on_hop, class_utilisation, proposed, updates = (
    in_world(rule, jnp)
    for rule in (
        *(law.after, law.first_ack, law.least_window, law.on_hop, law.class_utilisation, law.proposed, law.updates),
    )
)
rate, largest_window = law.rate, law.largest_window


class State(NamedTuple):
    """State, (flows, points) or (registers, flows, points). Only U and, in the rate form, W^c move between jumps."""

    rate: Array  # and the others of the law's state
    window: Array
    reference_window: Array  # of each register, as the next two
    utilisation: Array
    stage: Array
    last_update: Array
    tokens: vai_sf.Tokens | None = None  # with mechanisms


class Feedback(NamedTuple):
    """Utilisation of each register's links, and the longest queue of the path."""

    utilisation: Array  # normalised inflight bytes u
    queue: Array | None  # largest of the path, (flows, points) [bytes]; None without Variable AI


def start(parameters: HPCC, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first ACK."""
    p, none = parameters, jnp.zeros(shape, jnp.result_type(initial_rate))
    first = State(
        *(none + each for each in in_world(law.start, jnp)(p, initial_rate)),
        tokens=vai_sf.start(p, shape, none.dtype),
    )
    each = jnp.ones((hops if p.registers == "per-link" else 1, 1, 1), none.dtype)
    return first._replace(
        reference_window=first.reference_window * each, utilisation=first.utilisation * each, stage=first.stage * each
    )


def window(parameters: HPCC, state: State) -> Any:
    """Limit W of the bytes in flight; none in the rate form."""
    return state.window if parameters.form == "window" else jnp.inf


def feedback(parameters: HPCC, signals: Signals) -> Feedback:
    """Normalised inflight bytes u (2), (3) of each register: q/(B T) + txRate/B of its link, or the largest."""
    p, t = parameters, signals.telemetry
    assert t is not None
    if p.multiq != "off":
        u = class_utilisation(p, t.class_queue, t.class_output, t.output, t.capacity, t.share)
    else:
        u = on_hop(p, t.queue, t.output, t.arriving, t.capacity)
    queue = None
    if p.vai:
        queue = jnp.max(t.queue if p.multiq == "off" else t.class_queue, axis=0)
    return Feedback(u if p.registers == "per-link" else jnp.max(u, axis=0, keepdims=True), queue)


def derivative(parameters: HPCC, state: State, observed: Feedback) -> State:
    """Line 9, from the first ACK on; in the rate form also A.3's T dR/dt = R eta/u - R + a, as windows W = R T."""
    p, s = parameters, state
    nothing, still = jnp.zeros_like(s.window), jnp.zeros_like(s.reference_window)
    since = s.last_update >= 0
    moves = still
    if p.form == "rate":
        move = s.reference_window * (p.eta / jnp.maximum(observed.utilisation, law.LEAST_U) - 1.0) + p.w_ai
        moves = jnp.where(since, move / p.base_rtt, 0.0)
    towards = jnp.where(since, (observed.utilisation - s.utilisation) / p.base_rtt, 0.0)
    tokens = None if s.tokens is None else vai_sf.Tokens(*(jnp.zeros_like(leaf) for leaf in s.tokens))
    return State(nothing, nothing, moves, towards, still, nothing, tokens)


def jump(parameters: HPCC, state: State, progress: Progress, observed: Feedback) -> State:
    """Lines 11-27 after a step, for each register."""
    p, s, tokens = parameters, state, state.tokens
    runs, least, most = s.last_update >= 0, least_window(p, progress), p.initial_window
    increase, update = p.w_ai, updates(s, progress)
    if tokens is not None:
        queue = jnp.zeros_like(s.window) if observed.queue is None else observed.queue
        tokens, _ = vai_sf.observed(p, tokens, progress, queue, s.utilisation[0] >= p.eta)
        increase = tokens.factor * p.w_ai
    if p.form == "rate":
        changed, update, least = s.reference_window, runs, 0.0
    else:
        changed, update = proposed(p, s, progress, increase), runs if p.by_ack else update
    # Registers of links that do not limit the flow grow until they add a hundredth to (7) together, and no further:
    # they must come back when theirs becomes the bottleneck.
    room = (100.0 * jnp.sum(progress.own, axis=0)) ** (1.0 / _alpha(p))
    changed = jnp.clip(changed, least, most * room)
    ignored = passes = jnp.zeros_like(runs)
    if tokens is not None:
        decreases = changed[0] < s.reference_window[0]
        update = runs & vai_sf.adjusts(p, tokens, decreases, update)
        share = s.reference_window[0] / most
        ignored, tokens = vai_sf.ignores(p, tokens, progress, update & decreases, share)
        update &= ~ignored
        passes = ignored & vai_sf.ends_period(p)
        tokens = vai_sf.adjusted(p, tokens, update)
    joined = jnp.clip(_joined(p, changed, progress.own), least, most)
    moves, last = update if p.by_rtt else runs & ~ignored, first_ack(s, progress) | update | passes
    return State(*after(p, s, progress, joined, changed, moves, update, last), tokens=tokens)


def _alpha(p: HPCC) -> Any:
    return p.alpha_fair if p.registers == "per-link" else jnp.inf


def _joined(p: HPCC, registers: Array, own: Array) -> Array:
    """(sum_i R_i^-alpha)^(-1/alpha) over a path's own links (7); their least for an infinite alpha."""
    if p.registers == "one":
        return jnp.min(registers, axis=0)
    least = jnp.min(jnp.where(own > 0, registers, jnp.inf), axis=0)
    alpha = jnp.where(jnp.isinf(p.alpha_fair), 1.0, p.alpha_fair)
    share = jnp.sum(own * (jnp.maximum(least, 1e-9) / jnp.maximum(registers, 1e-9)) ** alpha, axis=0)
    return jnp.where(jnp.isinf(p.alpha_fair), least, least * share ** (-1.0 / alpha))


OBSERVABLES = {
    "window": ("bytes", "window W"),
    "reference_window": ("bytes", "reference window W^c"),
    "utilisation_estimate": ("1", "normalised inflight bytes U"),
    **vai_sf.OBSERVABLES,
}


def observables(state: State) -> dict[str, Array]:
    """Return what a trace shows in addition to queue and rate, as named in `OBSERVABLES`."""
    return {
        "window": state.window,
        "reference_window": jnp.min(state.reference_window, axis=0),
        "utilisation_estimate": jnp.max(state.utilisation, axis=0),
        **vai_sf.observables(state.tokens),
    }


def time_scale(parameters: HPCC, line_rate: Any) -> Any:
    """Time [s] from which the step is chosen, four of which are taken in it: events fall between steps."""
    return np.asarray(parameters.base_rtt) * (4 / _STEPS_PER_BASE_RTT)
