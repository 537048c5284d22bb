"""ACC's fluid model: its law at the end of each step, per flow class, as a hybrid system."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.law import in_world
from fluidcc.contract.signals import Progress, Signals
from fluidcc.schemes.acc import law
from fluidcc.schemes.acc.parameters import ACC

NEEDS = frozenset({"inflight", "undetermined"})
_STEPS_PER_PERIOD = 80

State = law.State
after = in_world(law.after, jnp)


class Feedback(NamedTuple):
    """Shares of the packets acknowledged now, each (flows, points) or (1, points)."""

    ce: Array
    ue: Array


def start(parameters: ACC, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first ACK."""
    none = jnp.zeros(shape, jnp.result_type(initial_rate))
    return State(*(none + each for each in in_world(law.start, jnp)(parameters, initial_rate)))


def rate(state: State) -> Array:
    """R_s, "the rate determined by the algorithm" [bytes/s]."""
    return state.rate


def sending(parameters: ACC, state: State, dt: Array) -> Array:
    """Compute the rate of sending in the next step [bytes/s]: R_s in the share of it that lies beyond the halt."""
    return state.rate * jnp.clip(1.0 - state.halt / dt, 0.0, 1.0)


def feedback(parameters: ACC, signals: Signals) -> Feedback:
    """Shares of CE and of UE among the ACKs."""
    ue = jnp.zeros_like(signals.marking) if signals.undetermined is None else signals.undetermined
    return Feedback(signals.marking, ue)


def derivative(parameters: ACC, state: State, observed: Feedback) -> State:
    """Return slopes of 0: nothing moves between jumps."""
    return State(*(jnp.zeros_like(leaf) for leaf in state))


def jump(parameters: ACC, state: State, progress: Progress, observed: Feedback) -> State:
    """Follow the law for the ACKs of a step."""
    return after(parameters, state, progress, observed.ce, observed.ue)


OBSERVABLES = {
    "halt_time": ("s", "last halt, t_Halt + t_extend"),
    "ack_rate": ("bytes/s", "last arrival rate R of ACKs"),
    "halting": ("1", "whether the source halts"),
    "inflight": ("bytes", "bytes in flight"),
}


def observables(state: State) -> dict[str, Array]:
    """Return what a trace shows in addition to queue and rate, as named in `OBSERVABLES`."""
    return {
        "halt_time": state.halt_time,
        "ack_rate": state.ack_rate,
        "halting": jnp.where(state.halt > 0, 1.0, 0.0),
        "inflight": state.inflight,
    }


def time_scale(parameters: ACC, line_rate: Any) -> Any:
    """Time [s] from which the step is chosen, four of which are taken in it: events fall inside steps."""
    return np.asarray(parameters.period) * (4 / _STEPS_PER_PERIOD)
