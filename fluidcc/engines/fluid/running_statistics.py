"""Metrics reduced while integrating, so that memory does not grow with the horizon.

Means are trapezoid sums over the window's grid instants, exact for the numerical solution. Percentiles come
from equally spaced samples (`fluid.engine`), whose number does not depend on the output grid.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fluidcc.dde.stepping import Carry, Clock
from fluidcc.engines.fluid.queues import QueueNetwork


class RunningStatistics(NamedTuple):
    """Running sums over a window of steps; arrays (links or flows, points)."""

    weight: Array
    queue: Array  # sum of weight * queue
    queue_squared: Array
    queue_min: Array
    queue_max: Array
    queue_max_whole_run: Array
    rate: Array  # sum of weight * sending rate
    idle_before: Array  # idle bytes when the window opened
    idle: Array  # idle bytes when it closed
    sent_before: Array | None  # (flows, points) bytes sent when it opened; None if no flow ends
    sent: Array | None  # and when it closed


def start(links: int, flows: int, points: int, dtype: jnp.dtype, *, ends: bool) -> RunningStatistics:
    """RunningStatistics before the first step; ``ends`` says whether bytes of flows are counted."""
    link = jnp.zeros((links, points), dtype)
    rate = jnp.zeros((flows, points), dtype)
    sent = rate if ends else None
    return RunningStatistics(jnp.zeros((), dtype), link, link, link + jnp.inf, link, link, rate, link, link, sent, sent)


def cleared(statistics: RunningStatistics) -> RunningStatistics:
    """The tally of a window that opens now, in buffers of its own; the whole run's maximum is kept."""
    new = jax.tree.map(jnp.zeros_like, statistics)
    kept = statistics.queue_max_whole_run
    return new._replace(queue_min=jnp.full_like(kept, jnp.inf), queue_max_whole_run=kept)


def observe(
    system: QueueNetwork, first: Array, last: Array, statistics: RunningStatistics, carry: Carry, dt: Array
) -> RunningStatistics:
    """Add the state at a step; ``first`` and ``last`` are the window's steps, which weigh one half."""
    n, y, z = carry.step, carry.y, carry.z
    inside = (n >= first) & (n <= last)
    edge = (n == first) | (n == last)
    weight = jnp.where(inside, jnp.where(edge, 0.5, 1.0), 0.0).astype(y.queue.dtype)
    rate = system.sending(Clock(n, n * dt, dt), y, z)
    queue = system.network.by_link(y.queue)
    return RunningStatistics(
        weight=statistics.weight + weight,
        queue=statistics.queue + weight * queue,
        queue_squared=statistics.queue_squared + weight * queue**2,
        queue_min=jnp.minimum(statistics.queue_min, jnp.where(inside, queue, jnp.inf)),
        queue_max=jnp.maximum(statistics.queue_max, jnp.where(inside, queue, 0.0)),
        queue_max_whole_run=jnp.maximum(statistics.queue_max_whole_run, queue),
        rate=statistics.rate + weight * rate,
        idle_before=jnp.where(n <= first, z.idle, statistics.idle_before),
        idle=jnp.where(n <= last, z.idle, statistics.idle),
        sent_before=_until(n <= first, y.sent, statistics.sent_before),
        sent=_until(n <= last, y.sent, statistics.sent),
    )


def _until(still: Array, now: Array, kept: Array | None) -> Array | None:
    """Return ``now`` while ``still`` holds, and ``kept`` after; None where nothing is kept."""
    return None if kept is None else jnp.where(still, now, kept)


class Summary(NamedTuple):
    """Statistics of a tally; arrays (links or flows, points), of JAX while traced and of NumPy in an outcome."""

    queue_mean: Any
    queue_std: Any
    queue_min: Any
    queue_max: Any
    queue_max_whole_run: Any
    rate_mean: Any  # per flow of a class
    utilisation: Any
    waited: Any = None  # (points,) longest wait or round trip of the run [s]; None without flow control


def summarise(system: QueueNetwork, statistics: RunningStatistics, dt: Array) -> Summary:
    """Turn sums into means."""
    mean = statistics.queue / statistics.weight
    variance = jnp.maximum(statistics.queue_squared / statistics.weight - mean**2, 0.0)
    capacity = system.network.link_capacity * statistics.weight * dt
    rate = statistics.rate / statistics.weight
    if statistics.sent is not None and statistics.sent_before is not None:
        # Of a flow that ends, bytes: a trapezoid halves what is sent in a step at the window's edge.
        sent = (statistics.sent - statistics.sent_before) / (statistics.weight * dt)
        rate = jnp.where(jnp.isinf(system.network.size), rate, sent)
    return Summary(
        queue_mean=mean,
        queue_std=jnp.where(variance > 0, jnp.sqrt(jnp.where(variance > 0, variance, 1.0)), 0.0),
        queue_min=statistics.queue_min,
        queue_max=statistics.queue_max,
        queue_max_whole_run=statistics.queue_max_whole_run,
        rate_mean=rate,
        utilisation=1.0 - (statistics.idle - statistics.idle_before) / capacity,
    )
