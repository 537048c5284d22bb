"""DCQCN's fluid model: equations (7)-(9) of Zhu et al., SIGCOMM 2015, one state per flow class.

The equations count packets; rates and the byte counter are converted here, once. With l = -ln(1-p) all
their powers of 1-p are functions of n*l that stay finite at p = 0, p = 1 and R = 0 (`fluid.stable_math`).

Of what NVIDIA's NICs do beyond the paper the means are ours (docs: theory, DCQCN): cuts are the longer of the CNP
interval and the monitor period apart; without ``clamp_tgt_rate`` the target falls at the share of cuts before which an
increase came, by the half of the gap that it left; and (7) as printed is the mean of an alpha that moves once a slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.signals import Signals
from fluidcc.engines.fluid.stable_math import bernoulli, decay, hazard, saturation
from fluidcc.schemes.dcqcn.parameters import DCQCN

ONLY = {
    "win": False,
    "variant": "paper",
    "tcd": False,
    "rate_on_first_cnp": 0.0,
    "clamp_looks_at": "any-increase",
}


class State(NamedTuple):
    """R_C and R_T [bytes/s] and alpha, each (flows, points)."""

    rate: Array
    target_rate: Array
    alpha: Array


class Feedback(NamedTuple):
    """Effects of the marks at the lagged time on a flow, each (flows, points)."""

    cut: Array  # cuts per second: (1-(1-p)^(tau R))/tau
    fall: Array  # share of the gap R_T - R_C that the target loses to cuts [1/s]
    recovery: Array  # half the rate of increase events [1/s]
    increase: Array  # growth of the target [bytes/s^2]
    marked: Array  # share of alpha intervals with a CNP


def start(parameters: DCQCN, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first mark: R_C = R_T = the initial rate."""
    rate = jnp.broadcast_to(largest(parameters, initial_rate), shape)
    return State(rate, rate, jnp.broadcast_to(parameters.initial_alpha, shape))


def largest(parameters: DCQCN, rate: Array) -> Array:
    """A rate within the largest [bytes/s]."""
    return rate if parameters.max_rate is None else jnp.minimum(parameters.max_rate, rate)


def rate(state: State) -> Array:
    """Sending rate [bytes/s]."""
    return state.rate


def feedback(parameters: DCQCN, signals: Signals) -> Feedback:
    """Compute all terms of (7)-(9) that depend only on the lagged p and R_C."""
    p = parameters
    packets = signals.rate / signals.packet  # R_C(t - tau*) [packets/s]
    counter = p.byte_counter / signals.packet  # B [packets]
    log, probability_per_log = hazard(signals.marking)
    per_log = packets * log

    apart = jnp.maximum(p.cnp_interval, p.rate_decrease_interval)
    cut = saturation(apart * per_log) / apart  # (1-(1-p)^(tau R))/tau
    hit = saturation(p.cnp_interval * per_log)
    # (7), first term. Where alpha's period is shorter than the CNP interval, (7) would count one CNP in
    # several periods; at most alpha_timer/cnp_interval of them can hold one (our extension).
    ours = p.alpha_timer / p.cnp_interval
    marked = jnp.where(ours < 1.0, ours * hit, saturation(p.alpha_timer * per_log))

    byte_steps = counter * log
    byte_events = packets * probability_per_log / counter * bernoulli(byte_steps)
    timer_steps = p.timer * per_log
    timer_events = probability_per_log / p.timer * bernoulli(timer_steps)
    # (8): a target rises only at events that have F others since the last mark behind them.
    steps = p.fast_recovery_steps
    after_bytes = decay(steps * byte_steps) * byte_events
    after_timer = decay(steps * timer_steps) * timer_events
    increase = p.rate_ai * (after_bytes + after_timer)
    if p.hyper_increase:
        # Fig. 7: hyper increase once both stages exceed F, that is F max(B, T R) packets after the last mark
        # (ours; the paper's equations leave the phase out).
        both = decay(steps * jnp.maximum(byte_steps, timer_steps))
        increase = increase + (p.rate_hai - p.rate_ai) * both * (byte_events + timer_events)
    fall = cut
    if not p.clamp_tgt_rate:
        # Ours: (1-p)^m of the cuts have an increase before them, m packets after the cut before; it halved the gap.
        first = jnp.minimum(byte_steps, timer_steps) if p.clamp_tgt_rate_after_time_inc else byte_steps
        fall = 0.5 * decay(first) * cut
    return Feedback(cut, fall, 0.5 * (byte_events + timer_events), increase, marked)


def derivative(parameters: DCQCN, state: State, observed: Feedback) -> State:
    """Equations (7)-(9)."""
    gap = state.target_rate - state.rate
    depth = jnp.minimum(parameters.decrease_gain * state.alpha, parameters.max_decrease)
    return State(
        rate=gap * observed.recovery - state.rate * depth * observed.cut,  # (9)
        target_rate=observed.increase - gap * observed.fall,  # (8)
        alpha=parameters.g / parameters.alpha_timer * (observed.marked - state.alpha),  # (7)
    )


def project(parameters: DCQCN, state: State, line_rate: Array) -> State:
    """R_C and R_T stay between the least and the largest rate (not in the equations; the NIC does it)."""
    high = largest(parameters, line_rate)
    low = jnp.minimum(parameters.min_rate, high)
    return State(jnp.clip(state.rate, low, high), jnp.clip(state.target_rate, low, high), state.alpha)


OBSERVABLES = {"target_rate": ("bytes/s", "target rate R_T"), "alpha": ("1", "rate reduction factor alpha")}


def observables(state: State) -> dict[str, Array]:
    """Return what a trace shows in addition to queue and rate, as named in `OBSERVABLES`."""
    return {"target_rate": state.target_rate, "alpha": state.alpha}


def time_scale(parameters: DCQCN, line_rate: Any) -> Any:
    """Shortest time constant of (7)-(9) [s], from which the step is chosen."""
    p = parameters
    return np.minimum(
        np.minimum(np.maximum(p.cnp_interval, p.rate_decrease_interval), 2 * np.asarray(p.timer)),
        np.minimum(2 * np.asarray(p.byte_counter) / np.asarray(line_rate), np.asarray(p.alpha_timer) / np.asarray(p.g)),
    )
