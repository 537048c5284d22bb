"""The fluid side: dR/dt = a/T - b R(t) p(t - tau) R(t - tau)/packet. Arrays are (flows, points)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from aimd_ecn.parameters import AIMD
from jax import Array

from fluidcc.contract.signals import Signals

OBSERVABLES: dict[str, tuple[str, str]] = {}  # nothing beside queue and rate


class State(NamedTuple):
    """State of a flow."""

    rate: Array  # R [bytes/s]


def start(parameters: AIMD, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first ACK."""
    return State(jnp.broadcast_to(initial_rate, shape))


def rate(state: State) -> Array:
    """Sending rate [bytes/s]."""
    return state.rate


def feedback(parameters: AIMD, signals: Signals) -> Array:
    """Marked ACKs in a second, of the packets sent a round trip ago."""
    return signals.marking * signals.rate / signals.packet


def derivative(parameters: AIMD, state: State, feedback: Array) -> State:
    """Additive increase, multiplicative decrease."""
    p = parameters
    return State(p.rate_ai / p.base_rtt - p.beta * state.rate * feedback)


def project(parameters: AIMD, state: State, line_rate: Array) -> State:
    """Rates stay between the least and the line's."""
    return State(jnp.clip(state.rate, jnp.minimum(parameters.min_rate, line_rate), line_rate))


def observables(state: State) -> dict[str, Array]:
    """Nothing beside the rate."""
    return {}


def time_scale(parameters: AIMD, line_rate: Any) -> Any:
    """None of its own: the step is that of the delays [s]."""
    return np.inf
