"""NSCC's fluid model: its law at the end of each step, per flow class."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.law import in_world
from fluidcc.contract.signals import Signals
from fluidcc.schemes.nscc import law
from fluidcc.schemes.nscc.law import State
from fluidcc.schemes.nscc.parameters import NSCC

NEEDS = frozenset({"inflight"})
_STEPS_PER_BASE_RTT = 40

rate, largest_window = law.rate, law.largest_window
window, jump = (in_world(rule, jnp) for rule in (law.window, law.on_step))


def start(parameters: NSCC, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first ACK."""
    none = jnp.zeros(shape, jnp.result_type(initial_rate))
    return State(*(none + each for each in in_world(law.start, jnp)(parameters, initial_rate)))


def feedback(parameters: NSCC, signals: Signals) -> Array:
    """Share of the packets acknowledged now that carry marks; the delay comes with the ACKs (`Progress.rtt`)."""
    return signals.marking


def derivative(parameters: NSCC, state: State, observed: Array) -> State:
    """Return slopes of 0: nothing moves between ACKs."""
    return jax.tree.map(jnp.zeros_like, state)


OBSERVABLES = {
    "window": ("bytes", "window"),
    "queueing_delay": ("s", "RTT of the last ACK less the base RTT"),
    "average_delay": ("s", "average queueing delay, by which decreases are measured"),
}


def observables(state: State) -> dict[str, Array]:
    """Return what a trace shows in addition to queue and rate, as named in `OBSERVABLES`."""
    return {"window": state.window, "queueing_delay": state.delay, "average_delay": state.average}


def time_scale(parameters: NSCC, line_rate: Any) -> Any:
    """Time [s] from which the step is chosen, four of which are taken in it: events fall between steps."""
    return np.asarray(parameters.base_rtt) * (4 / _STEPS_PER_BASE_RTT)
