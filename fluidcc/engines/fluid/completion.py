"""End times of finite flows, and when those that wait for them begin.

A flow's end is when its last byte is sent, and its wait in each queue on its way. Who waits for whom is fixed; when is
part of the state. A flow's first step sends what goes in it from the flow's beginning on, which lies between steps, or
what would have gone since, if that was known only a step later: else each flow of a chain would lose or gain up to half
a step of time.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.dde.stepping import Clock
from fluidcc.engines.fluid.network import Network, Order
from fluidcc.engines.fluid.state import Memory, State, rows_of

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
    that sends for longer (`told`) reaches back as far.

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


def found(network: Network, hops: Hops, clock: Clock, z: Memory, queue: Array) -> tuple[Array, Array, Array]:
    """Find the queue that the last byte of every flow met at each hop.

    In the step after its arrival nothing more comes of flows that ended with it: the queue's change in that step gives
    its length when the byte came.

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

    Returns
    -------
    there : Array, shape (hops, points)
        Whether the byte came before the step began.
    since : Array, shape (hops, points)
        How long before [s].
    queued : Array, shape (hops, points)
        Bytes ahead of it then; valid in the step after its arrival only [bytes].
    """
    assert z.finish is not None
    assert z.queue is not None
    flow_of, queue_of = (tuple(hop[i] for hop in hops) for i in (0, 2))
    since = clock.time - clock.dt - rows_of(z.finish, flow_of)
    if network.arrival_lag is not None:
        since = since - network.arrival_lag
    growth = (queue - z.queue) / clock.dt
    queued = rows_of(z.queue, queue_of) - rows_of(growth, queue_of) * jnp.clip(since, 0.0, clock.dt)
    queued = jnp.where(rows_of(z.queue, queue_of) > 0, jnp.maximum(queued, 0.0), 0.0)
    return since >= -_ON_GRID * clock.dt, since, queued


def waits(network: Network, hops: Hops, clock: Clock, z: Memory, queue: Array, service: Array) -> Memory:
    """Fill in the waits of last bytes in each queue; NaN until the step after their arrival there.

    Parameters
    ----------
    network, hops, clock, z, queue
        As for `found`.
    service : Array, shape (queues, points)
        Constant [bytes/s].
    """
    assert z.drain is not None
    there, _, queued = found(network, hops, clock, z, queue)
    wait = queued / jnp.maximum(rows_of(service, tuple(hop[2] for hop in hops)), 1e-30)
    return z._replace(drain=jnp.where(there & jnp.isnan(z.drain), wait, z.drain))


def waits_served(network: Network, hops: Hops, clock: Clock, z: Memory, queue: Array, service: Array) -> Memory:
    """Do as `waits` does, where service changes from step to step: NaN until all bytes ahead have been served."""
    assert z.drain is not None
    assert z.ahead is not None
    there, since, queued = found(network, hops, clock, z, queue)
    served = jnp.broadcast_to(rows_of(service, tuple(hop[2] for hop in hops)), z.drain.shape)
    new = there & jnp.isinf(z.ahead)
    ahead = jnp.where(new, queued - served * jnp.clip(since, 0.0, clock.dt), z.ahead)  # as the step began
    leaves = there & (ahead <= served * clock.dt) & jnp.isnan(z.drain)
    wait = jnp.maximum(since + ahead / jnp.maximum(served, 1e-30), 0.0)
    drain = jnp.where(leaves, jnp.where(new & (queued <= 0), 0.0, wait), z.drain)
    return z._replace(drain=drain, ahead=jnp.where(there, ahead - served * clock.dt, z.ahead))


def at_rest(order: Order, start: Array, z: Memory, shape: tuple[int, ...]) -> Memory:
    """Return the memory before anything has ended: the first flows begin at their starts, no others are known to."""
    free = np.array([not ends for ends in order.waits])[:, None]
    began = jnp.broadcast_to(jnp.where(free, start, jnp.inf), shape)
    return z._replace(began=began, stretch=jnp.ones(shape, start.dtype))


def _rows(values: Array, rows: Sequence[Sequence[int]]) -> Array:
    """Gather rows of values (rows, points) for each place, padded with zeros: (places, most, points)."""
    # Read from a table, not summed into places: XLA compiles no loop with a scatter in it as one function.
    most = max(map(len, rows))
    table = np.array([[*own, *[len(values)] * (most - len(own))] for own in rows], int)
    return jnp.concatenate([values, jnp.zeros_like(values[:1])])[jnp.asarray(table)]


def begun(clock: Clock, began: Array) -> Array:
    """Check whether flows send in a step, (flows, points)."""
    return (clock.step + (1.0 - _ON_GRID)) * clock.dt > began


def share(clock: Clock, since: Array) -> Array:
    """Compute the part of a step after a given time, as a share of the step."""
    return jnp.clip(clock.step + 1.0 - since / clock.dt, 0.0, 1.0)


def told(order: Order, start: Array, flow_of: tuple[int, ...], clock: Clock, z: Memory) -> Memory:
    """Update when flows begin, as far as that is known at a step's end, and how long the next step is for them.

    Parameters
    ----------
    order : Order
    start : Array, shape (flows, points) or (1, points)
        Delay of a flow that waits, after the last end [s].
    flow_of : tuple of int
        Flow of each hop.
    clock : Clock
        At the step's end.
    z : Memory
    """
    assert z.finish is not None
    assert z.drain is not None
    assert z.began is not None
    first = np.searchsorted(flow_of, np.arange(len(order.waits) + 1))
    hops = [
        range(first[f], first[f + 1]) if queues else () for f, queues in zip(order.before, order.queues, strict=True)
    ]
    queued = jnp.sum(_rows(z.drain, hops), axis=1)
    ends = rows_of(z.finish, order.before) + queued + order.way
    ends = jnp.where(jnp.isnan(ends), jnp.inf, ends)  # a byte that is still under way
    began = jnp.max(_rows(ends, order.waits), axis=1) + start
    new = begun(clock, began) & ~begun(clock._replace(step=clock.step - 1), z.began)
    stretch = jnp.where(new, (clock.time + clock.dt - began) / clock.dt, 1.0)
    return z._replace(began=began, stretch=stretch)
