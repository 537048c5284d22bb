"""TIMELY's fluid model: the equations of Zhu et al., "ECN or Delay", CoNEXT 2016, and hyperactive increase.

q(t - tau') and q(t - tau' - tau*) there, over C, are here what two packets sent tau* apart waited; tau' is not frozen
at the present queue but solved for along the way, as everywhere in this engine. Without hyperactive increase
(``hai_gain=1``) and with ``thresholds="queueing"`` these are their equations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.signals import Signals
from fluidcc.schemes.timely.parameters import TIMELY

NEEDS = frozenset({"delay"})
ONLY = {"variant": "paper", "win": False, "tcd": False}


class State(NamedTuple):
    """State of the flows, arrays (flows, points)."""

    rate: Array  # R [bytes/s]
    gradient: Array  # g, of the round trip, in D_minRTT per tau*
    streak: Array  # completions since g was last above 0


class Feedback(NamedTuple):
    """Feedback to the flows, arrays (flows, points) [s]."""

    delay: Array  # round trip or time in queues, as the thresholds count it
    rise: Array  # of the round trip over tau*


def start(parameters: TIMELY, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first completion."""
    rate = jnp.broadcast_to(initial_rate, shape)
    return State(rate, jnp.zeros(shape, rate.dtype), jnp.zeros(shape, rate.dtype))


def rate(state: State) -> Array:
    """Sending rate [bytes/s]."""
    return state.rate


def interval(parameters: TIMELY, state: State) -> Array:
    """tau* = max(Seg/R, D_minRTT) [s], from one completion to the next."""
    least = jnp.minimum(parameters.min_rate, parameters.segment / parameters.min_rtt)
    return jnp.maximum(parameters.segment / jnp.maximum(state.rate, least), parameters.min_rtt)


def longest_interval(parameters: TIMELY) -> Any:
    """Return the interval of a flow at its least rate [s]."""
    return np.maximum(np.asarray(parameters.segment) / np.asarray(parameters.min_rate), np.asarray(parameters.min_rtt))


def feedback(parameters: TIMELY, signals: Signals) -> Feedback:
    """The delay of the packet answered now, and by how much it exceeds that of the one a segment earlier."""
    assert signals.waits is not None
    now, before = signals.waits
    whole = now if parameters.thresholds == "queueing" else parameters.own_rtt + now
    return Feedback(whole, now - before)


def derivative(parameters: TIMELY, state: State, observed: Feedback) -> State:
    """dg/dt and dR/dt, and the streak's."""
    p, s, delay = parameters, state, observed.delay
    per_completion = 1.0 / interval(p, s)
    low, high = delay < p.t_low, delay > p.t_high
    falls = s.gradient <= 0
    hyper = (s.streak >= p.hai_steps) & ~low & ~high & falls
    increase = p.rate_ai * jnp.where(hyper, p.hai_gain, 1.0)
    excess = 1.0 - p.t_high / jnp.maximum(delay, p.t_high)
    if p.patched:
        weight = jnp.clip(2.0 * s.gradient + 0.5, 0.0, 1.0)
        between = (1.0 - weight) * p.rate_ai - weight * p.beta * s.rate * (delay - p.t_low) / p.t_low
    else:
        between = jnp.where(falls, increase, -s.gradient * p.beta * s.rate)
    step = jnp.where(low, p.rate_ai, jnp.where(high, -p.beta * excess * s.rate, between))
    return State(
        rate=per_completion * step,
        gradient=p.ewma * per_completion * (observed.rise / p.min_rtt - s.gradient),
        streak=jnp.where(falls, per_completion, 0.0),
    )


def project(parameters: TIMELY, state: State, line_rate: Array) -> State:
    """R stays between the least rate and the line rate (ours); a rising round trip ends a streak."""
    low = jnp.minimum(parameters.min_rate, line_rate)
    streak = jnp.where(state.gradient <= 0, state.streak, 0.0)
    return State(jnp.clip(state.rate, low, line_rate), state.gradient, streak)


OBSERVABLES = {"rtt_gradient": ("1", "normalised gradient of the RTT")}


def observables(state: State) -> dict[str, Array]:
    """Return what a trace shows in addition to queue and rate, as named in `OBSERVABLES`."""
    return {"rtt_gradient": state.gradient}


def time_scale(parameters: TIMELY, line_rate: Any) -> Any:
    """Shortest time constant of g [s], from which the step is chosen."""
    return np.asarray(parameters.min_rtt) / np.asarray(parameters.ewma)
