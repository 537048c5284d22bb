"""DCTCP's fluid model: its law at the end of each step, per flow class.

``form="analysis"`` is another fluid, of `fluidcc.schemes.dctcp.analysis`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.law import held, in_world
from fluidcc.contract.signals import Progress, Signals
from fluidcc.schemes.dctcp import analysis, law
from fluidcc.schemes.dctcp.parameters import DCTCP

NEEDS = frozenset({"inflight"})
ONLY = {"variant": "paper"}
_STEPS_PER_BASE_RTT = 40


on_step = in_world(law.on_step, jnp)
rate, window, largest_window = law.rate, law.window, law.largest_window


class State(NamedTuple):
    """State of the flows, arrays (flows, points); only W and alpha of the analysis change other than in jumps."""

    rate: Array  # and the others of the law's state
    window: Array
    alpha: Array
    answered: Array
    marked: Array
    expected: Array
    window_end: Array
    cut_end: Array
    round_trips: Array  # analysis: 1/RTT, and 0 before the first ACK [1/s]
    growth: Array  # analysis: dW/dt without marks [bytes/s]


def start(parameters: DCTCP, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first ACK."""
    none = jnp.zeros(shape, jnp.result_type(initial_rate))
    first = in_world(law.start, jnp)(parameters, initial_rate)
    return State(*(none + each for each in first), round_trips=none, growth=none)


def feedback(parameters: DCTCP, signals: Signals) -> Array:
    """Share of the packets acknowledged now that carry marks."""
    return signals.marking


def derivative(parameters: DCTCP, state: State, observed: Array) -> State:
    """Return slopes of 0 between ACKs, but those of W and alpha of the analysis."""
    still = State(*(jnp.zeros_like(leaf) for leaf in state))
    return analysis.derivative(parameters, state, observed, still) if parameters.form == "analysis" else still


def jump(parameters: DCTCP, state: State, progress: Progress, observed: Array) -> State:
    """Follow the law for the ACKs of a step, or the analysis."""
    if parameters.form == "analysis":
        return analysis.jump(parameters, state, progress, held(state, progress))
    return state._replace(**on_step(parameters, state, progress, observed)._asdict())


OBSERVABLES = {
    "window": ("bytes", "window W"),
    "alpha": ("1", "estimate alpha of the share of marked packets"),
}


def observables(state: State) -> dict[str, Array]:
    """Return what a trace shows in addition to queue and rate, as named in `OBSERVABLES`."""
    return {"window": state.window, "alpha": state.alpha}


def time_scale(parameters: DCTCP, line_rate: Any) -> Any:
    """Time [s] from which the step is chosen, four of which are taken in it: events fall between steps."""
    return np.asarray(parameters.base_rtt) * (4 / _STEPS_PER_BASE_RTT)
