"""HPCC's fluid model: Algorithm 1 of Li et al., SIGCOMM 2019, per flow class.

Between ACKs of a step nothing is distinguished: U follows the telemetry by dU/dt = (u - U)/T, the limit of line 9 for
many ACKs in T, and W follows U after every step (lines 12-20). W^c and incStage change when the first byte
sent with the present W^c is acknowledged (lines 21-27).

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

from fluidcc.contract.signals import Progress, Signals, Telemetry
from fluidcc.schemes.hpcc.parameters import HPCC
from fluidcc.schemes.vai_sf import fluid as vai_sf

NEEDS = frozenset({"telemetry", "inflight"})
_STEPS_PER_BASE_RTT = 40
_LEAST_U = 1e-3


class State(NamedTuple):
    """State, (flows, points) or (registers, flows, points). Only U and, in the rate form, W^c move between jumps."""

    rate: Array  # R = W/T [bytes/s]
    window: Array  # W [bytes]
    reference_window: Array  # W^c of each register [bytes]
    utilisation: Array  # U of each register
    stage: Array  # incStage of each register
    last_update: Array  # lastUpdateSeq [bytes]; -1 before the first ACK
    tokens: vai_sf.Tokens | None = None  # with mechanisms


class Feedback(NamedTuple):
    """Utilisation of each register's links, and the longest queue of the path."""

    utilisation: Array  # normalised inflight bytes u
    queue: Array | None  # largest of the path, (flows, points) [bytes]; None without Variable AI


def start(parameters: HPCC, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first ACK: W = W^c = W_init and U = 1; W_init/T is the line rate unless given."""
    p = parameters
    window = jnp.broadcast_to(jnp.minimum(p.initial_window, initial_rate * p.base_rtt), shape)
    one = jnp.ones((hops if p.registers == "per-link" else 1, *shape), window.dtype)
    tokens = vai_sf.start(p, shape, window.dtype)
    return State(jnp.broadcast_to(initial_rate, shape), window, window * one, one, 0.0 * one, -one[0], tokens)


def rate(state: State) -> Array:
    """Pacing rate R [bytes/s]."""
    return state.rate


def window(parameters: HPCC, state: State) -> Any:
    """Limit W of the bytes in flight; none in the rate form."""
    return state.window if parameters.form == "window" else jnp.inf


def largest_window(parameters: HPCC) -> Any:
    """W_init, which W never exceeds [bytes]."""
    return parameters.initial_window


def feedback(parameters: HPCC, signals: Signals) -> Feedback:
    """Normalised inflight bytes u (2), (3) of each register: q/(B T) + txRate/B of its link, or the largest."""
    observed = signals.telemetry
    assert observed is not None
    if parameters.multiq != "off":
        u = class_utilisation(parameters, observed)
    else:
        flow = observed.output if parameters.u_rate == "tx" else observed.arriving
        u = flow / observed.capacity
        if parameters.u_queue:
            u = u + observed.queue / (observed.capacity * parameters.base_rtt)
    queue = None
    if parameters.vai:
        queue = jnp.max(observed.queue if parameters.multiq == "off" else observed.class_queue, axis=0)
    return Feedback(u if parameters.registers == "per-link" else jnp.max(u, axis=0, keepdims=True), queue)


def class_utilisation(parameters: HPCC, observed: Telemetry) -> Array:
    """U of a class that shares its links (HPCC++ MultiQ): its rate and backlog over what it may count on.

    ``class``: over the whole link; ``slides``: three branches about the guaranteed rate; ``spare``, ours: over the
    guaranteed rate, or its present rate and all that nobody uses, whichever is more.
    """
    B, T, queue, own = observed.capacity, parameters.base_rtt, observed.class_queue, observed.class_output
    if parameters.multiq == "class":
        return queue / (B * T) + own / B
    guaranteed = observed.share * B
    if parameters.multiq == "spare":
        counted = jnp.maximum(guaranteed, own + jnp.maximum(B - observed.output, 0.0))
        return queue / (counted * T) + own / counted
    above = jnp.where(
        queue > parameters.min_backlog,
        queue / (jnp.maximum(own, guaranteed) * T) + 1.0,
        own / ((own + B) / 2),
    )
    return jnp.where(own <= guaranteed, queue / (guaranteed * T) + own / guaranteed, above)


def derivative(parameters: HPCC, state: State, observed: Feedback) -> State:
    """Line 9, from the first ACK on; in the rate form also A.3's T dR/dt = R eta/u - R + a, as windows W = R T."""
    p, s = parameters, state
    nothing, still = jnp.zeros_like(s.window), jnp.zeros_like(s.reference_window)
    since = s.last_update >= 0
    moves = still
    if p.form == "rate":
        move = s.reference_window * (p.eta / jnp.maximum(observed.utilisation, _LEAST_U) - 1.0) + p.w_ai
        moves = jnp.where(since, move / p.base_rtt, 0.0)
    towards = jnp.where(since, (observed.utilisation - s.utilisation) / p.base_rtt, 0.0)
    tokens = None if s.tokens is None else vai_sf.Tokens(*(jnp.zeros_like(leaf) for leaf in s.tokens))
    return State(nothing, nothing, moves, towards, still, nothing, tokens)


def jump(parameters: HPCC, state: State, progress: Progress, observed: Feedback) -> State:
    """Lines 11-27 after a step.

    ``reaction="per-ack"`` sets W^c = W at every ACK: each multiplies W by eta/U and adds W_AI. With n ACKs in a step
    that is W (eta/U)^n + n W_AI; below eta, where one ACK in maxStage + 1 multiplies, the share of such ACKs.
    ``"per-rtt"`` changes W only together with W^c.
    """
    p, s = parameters, state
    waiting = s.last_update < 0
    first = waiting & (progress.acked > 0)  # records L, and lastUpdateSeq = snd_nxt
    ratio = p.eta / jnp.maximum(s.utilisation, _LEAST_U)
    below = s.utilisation < p.eta
    adds = below & (s.stage < p.max_stage)
    update = ~waiting & (progress.acked > s.last_update)  # line 22
    packet = jnp.minimum(progress.packet, p.initial_window)
    least = packet if p.variant == "paper" else p.min_rate * p.base_rtt
    tokens = s.tokens
    if p.form == "rate":
        changed, update, least = s.reference_window, ~waiting, 0.0
    elif p.reaction == "per-ack":
        acks = jnp.where(waiting, 0.0, progress.newly / progress.wire_packet)
        share = jnp.where(below, 1.0 / (p.max_stage + 1.0), 1.0)
        changed = s.reference_window * ratio ** (acks * share) + acks * p.w_ai
        update = ~waiting
    else:
        if tokens is not None:
            queue = jnp.zeros_like(s.window) if observed.queue is None else observed.queue
            tokens, _ = vai_sf.observed(p, tokens, progress, queue, ~below[0])
        increase = p.w_ai if tokens is None else tokens.factor * p.w_ai
        changed = jnp.where(adds, s.reference_window, s.reference_window * ratio) + increase  # (4); lines 13, 17
    # Registers of links that do not limit the flow grow until they add a hundredth to (7) together, and no further:
    # they must come back when theirs becomes the bottleneck.
    most = p.initial_window
    room = (100.0 * jnp.sum(progress.own, axis=0)) ** (1.0 / _alpha(p))
    changed = jnp.clip(changed, least, most * room)
    ignored = passes = jnp.zeros_like(waiting)
    if tokens is not None:
        decreases = changed[0] < s.reference_window[0]
        update = ~waiting & vai_sf.adjusts(p, tokens, decreases, update)
        share = s.reference_window[0] / p.initial_window
        ignored, tokens = vai_sf.ignores(p, tokens, progress, update & decreases, share)
        update &= ~ignored
        passes = ignored & vai_sf.ends_period(p)
        tokens = vai_sf.adjusted(p, tokens, update)
    moves = update if p.reaction == "per-rtt" else ~waiting & ~ignored
    joined = jnp.clip(_joined(p, changed, progress.own), least, most)
    # The simulator's windows follow from its rates, and one packet may always be in flight.
    kept = s.window if p.variant == "paper" else jnp.minimum(s.window, s.rate * p.base_rtt)
    window = jnp.where(moves, joined, kept)
    stage = s.stage if p.reaction == "per-ack" else jnp.where(update, jnp.where(adds, s.stage + 1.0, 0.0), s.stage)
    return State(
        rate=jnp.minimum(window / p.base_rtt, progress.line_rate),  # line 27
        window=window if p.variant == "paper" else jnp.maximum(window, packet),
        reference_window=jnp.where(update, changed, s.reference_window),  # lines 15, 19
        utilisation=s.utilisation,
        stage=stage,
        last_update=jnp.where(first | update | passes, progress.sent, s.last_update),  # line 24
        tokens=tokens,
    )


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
