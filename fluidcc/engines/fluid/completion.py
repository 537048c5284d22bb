"""When finite flows end: the last byte sent, and what it waits in each queue on its way."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from fluidcc.engines.fluid.kernel import Clock
from fluidcc.engines.fluid.network import Network
from fluidcc.engines.fluid.rows import rows_of
from fluidcc.engines.fluid.state import Memory, State

_ROUNDING = 8  # of a flow's bytes, in units in the last place of its size
_ON_GRID = 1e-3  # steps by which a time may seem to lie before an instant of the grid on which it lies

Hops = tuple[tuple[int, int, int], ...]  # (flow, position on its path, queue) of every hop of every flow


def rest(network: Network, hops: Hops, y: State, z: Memory) -> Memory:
    """Take down what flows have left to send, and what of it is still to arrive at each hop, as a step begins from y.

    No more is sent and arrives in the step (`QueueNetwork.sending`).
    """
    assert y.sent is not None
    assert z.finish is not None
    left = jnp.where(jnp.isinf(z.finish), jnp.maximum(network.size - y.sent, 0.0), 0.0)
    sizes = rows_of(network.size, tuple(flow for flow, _, _ in hops))
    due = None if y.arrived is None else jnp.maximum(sizes - y.arrived, 0.0)
    return z._replace(left=left, due=due, queue=y.queue)


def sent_by(clock: Clock, size: Array, y: State, z: Memory, pace: Array) -> Array:
    """Time (flows, points) at which flows sent their last byte [s]; infinite if they have not.

    In a flow's last step its bytes are spread over the whole; they end where its own pace would have ended them. A step
    that sends for longer (`fluid.order`) reaches back as far.

    Parameters
    ----------
    clock : Clock
        At the step's end.
    size : Array, shape (flows, points)
        [bytes].
    y : State
        At the step's end.
    z : Memory
        Of the step.
    pace : Array, shape (flows, points)
        Rate of the step if its bytes were without end [bytes/s].
    """
    assert y.sent is not None
    assert z.finish is not None
    assert z.left is not None
    ended = (y.sent >= size * (1.0 - _ROUNDING * jnp.finfo(y.sent.dtype).eps)) & jnp.isinf(z.finish)
    spare = clock.dt - jnp.minimum(z.left / jnp.maximum(pace, 1e-30), clock.dt)
    when = clock.time - (spare if z.stretch is None else spare * z.stretch)
    return jnp.where(ended, when, z.finish)


def waits(network: Network, hops: Hops, clock: Clock, z: Memory, queue: Array, service: Array) -> Array:
    """What the last byte of every flow waited in each queue [s]; NaN until the step after its arrival there.

    In that step nothing comes any more of flows that ended with it: from how the queue then moves follows how long it
    was when the byte came.

    Parameters
    ----------
    network : Network
    hops : Hops
    clock : Clock
        At the step's end.
    z : Memory
        Of the step.
    queue : Array, shape (queues, points)
        At its end, below 0 by what an empty one could have sent [bytes].
    service : Array, shape (queues, points)
        [bytes/s].

    Returns
    -------
    Array, shape (hops, points)
    """
    assert z.finish is not None
    assert z.drain is not None
    assert z.queue is not None
    flow_of, queue_of = (tuple(hop[i] for hop in hops) for i in (0, 2))
    since = clock.time - clock.dt - rows_of(z.finish, flow_of)
    if network.arrival_lag is not None:
        since = since - network.arrival_lag
    growth = (queue - z.queue) / clock.dt
    there = rows_of(z.queue, queue_of) - rows_of(growth, queue_of) * jnp.clip(since, 0.0, clock.dt)
    wait = jnp.maximum(there, 0.0) / jnp.maximum(rows_of(service, queue_of), 1e-30)
    wait = jnp.where(rows_of(z.queue, queue_of) > 0, wait, 0.0)
    return jnp.where((since >= -_ON_GRID * clock.dt) & jnp.isnan(z.drain), wait, z.drain)
