"""Marking of an egress queue: RED on the instantaneous length (DCQCN eq. (5)), and ternary detection."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fluidcc.contract import red as rules
from fluidcc.contract.law import in_world

red = in_world(rules.red, jnp)


def along_path(probabilities: Array) -> Array:
    """Probability (1, points) of a mark on any hop, from one row per hop: 1 - prod(1 - p)."""
    if probabilities.shape[0] == 1:
        return probabilities
    return 1.0 - jnp.prod(1.0 - probabilities, axis=0, keepdims=True)


_DETERMINED, _UNDETERMINED, _CHECKING = 0.0, 1.0, 2.0
_GROWTH, _SMALL = 0.9, 2.0  # packets, as in `fluidcc.engines.packet.marking`
_ROUNDING = 1e-6  # of a step


class TernaryState(NamedTuple):
    """State of ternary detection (TCD, Zhang et al., SIGCOMM 2021) at a queue; each (queues, points)."""

    paused: Array  # time of the step for which it was paused [s]
    held: Array  # 1 if it is at the step's end
    on: Array  # time since the last RESUME [s]; infinite before any
    at_resume: Array  # the queue then [bytes]
    state: Array
    checked: Array  # time since the queue was last remembered, to see whether it grows [s]
    at_check: Array  # the queue then [bytes]


def after_pause(port: TernaryState, paused: Array, queue: Array, dt: Array) -> TernaryState:
    """Update a port for a step in which it is paused for a time [s]; a RESUME is where that grows shorter."""
    shorter = paused < port.paused - _ROUNDING * dt
    held = (paused > 0) & ~shorter
    ends = (port.held > 0) & ~held
    return port._replace(
        paused=paused,
        held=jnp.where(held, 1.0, 0.0),
        on=jnp.where(ends, 0.0, port.on),
        at_resume=jnp.where(ends, queue, port.at_resume),
    )


def ternary(
    port: TernaryState, over: Array, queue: Array, leaves: Array, max_on: Array, packet: Array, dt: Array
) -> tuple[Array, Array, TernaryState]:
    """Return the shares of what leaves queues in a step that are marked CE, and UE; and the states after it.

    Parameters
    ----------
    port : Port
        As of `after_pause`.
    over, queue : Array, shape (queues, points)
        Probability of a mark by the threshold alone, and the queue [bytes].
    leaves : Array of bool, shape (queues, points)
        Whether anything leaves: states are looked at as packets do.
    max_on : Array
        max(T_on) [s]; negative where the threshold alone marks.
    packet : Array
        [bytes]
    dt : Array
        The step [s].
    """
    undetermined = port.on <= max_on
    begins = ~undetermined & (port.state == _UNDETERMINED) & (queue < port.at_resume)
    checking = ~undetermined & (port.state == _CHECKING)
    due = checking & (port.checked > max_on)
    grown = due & (queue - port.at_check >= _GROWTH * packet)
    small = checking & (queue <= _SMALL * packet)
    waits = begins | (checking & ~grown)
    ce = jnp.where(undetermined | waits, 0.0, jnp.where(grown, 1.0, over))
    state = jnp.where(undetermined, _UNDETERMINED, jnp.where(waits & ~small, _CHECKING, _DETERMINED))
    anew = leaves & (begins | (due & ~grown))
    return (
        ce,
        jnp.where(undetermined, 1.0, 0.0),
        port._replace(
            on=port.on + dt,
            state=jnp.where(leaves, state, port.state),
            checked=jnp.where(anew, 0.0, port.checked) + dt,
            at_check=jnp.where(anew, queue, port.at_check),
        ),
    )
