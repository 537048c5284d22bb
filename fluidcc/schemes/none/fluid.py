"""No congestion control: the initial rate, or the rates of a schedule from the steps on that begin at or after them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.signals import Signals
from fluidcc.schemes.none.parameters import NoControl, steps_of


class State(NamedTuple):
    """State of the flows, arrays (flows, points)."""

    rate: Array  # [bytes/s]
    elapsed: Array  # since the flow's start [s]


def start(parameters: NoControl, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """The initial rate, or a schedule's that begins with the flow."""
    rate = jnp.broadcast_to(initial_rate, shape)
    return project(parameters, State(rate, jnp.zeros(shape, rate.dtype)), jnp.inf)


def rate(state: State) -> Array:
    """Sending rate [bytes/s]."""
    return state.rate


def feedback(parameters: NoControl, signals: Signals) -> Array:
    """Return no feedback: the scheme uses no signal."""
    return jnp.zeros_like(signals.rate)


def derivative(parameters: NoControl, state: State, observed: Array) -> State:
    """Time passes."""
    return State(jnp.zeros_like(state.rate), jnp.ones_like(state.elapsed))


def project(parameters: NoControl, state: State, line_rate: Any) -> State:
    """The schedule's rate by now, at most the line rate."""
    rate = state.rate
    # Elapsed time is a sum of steps: a time on the grid is reached but for rounding.
    now = state.elapsed * (1.0 + 1e-9)
    if parameters.repeat is not None:
        now = jnp.mod(now, parameters.repeat)
    for time, step in [] if parameters.schedule is None else steps_of(parameters.schedule):
        rate = jnp.where(now >= time, jnp.minimum(step, line_rate), rate)
    return state._replace(rate=rate)


OBSERVABLES: dict[str, tuple[str, str]] = {}


def observables(state: State) -> dict[str, Array]:
    """Return no observables: there is only the rate."""
    return {}


def time_scale(parameters: NoControl, line_rate: Any) -> Any:
    """None: the step is that of the delays [s]."""
    return np.inf
