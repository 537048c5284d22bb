"""When finite flows end: the last byte sent, and what it waits in each queue on its way."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from fluidcc.engines.fluid.kernel import Clock
from fluidcc.engines.fluid.network import Network


def last_bytes(
    network: Network,
    hops: tuple[tuple[int, int, int], ...],
    clock: Clock,
    sent: Array,
    rates: Array,
    wait: Array,
    finish: Array,
    drain: Array,
) -> tuple[Array, Array]:
    """Follow the last byte of every flow that ended by the end of this step.

    A flow is switched off at the step after its last byte, so it may send up to a step's bytes too many.

    Parameters
    ----------
    network : Network
    hops : tuple of (flow, position, queue)
    clock : Clock
        At the step's end.
    sent, rates : Array, shape (flows, points)
        Bytes sent so far, and the rates [bytes/s].
    wait : Array, shape (queues, points)
        Of a byte that arrives at the step's end [s].
    finish : Array, shape (flows, points)
        Time of the last byte [s]; infinite before.
    drain : Array, shape (hops, points)
        What it waited at each hop [s]; NaN until it has arrived there.

    Returns
    -------
    finish, drain : Array
    """
    over = sent - network.size
    ended = (over >= 0) & jnp.isinf(finish)
    when = clock.time - jnp.maximum(over, 0.0) / jnp.maximum(rates, 1e-300)
    finish = jnp.where(ended, when, finish)
    flow_of, queue_of = (jnp.asarray([hop[i] for hop in hops]) for i in (0, 2))
    lag: Any = 0.0 if network.arrival_lag is None else network.arrival_lag
    arrived = finish[flow_of] + lag <= clock.time
    return finish, jnp.where(arrived & jnp.isnan(drain), wait[queue_of], drain)
