"""Search for the byte that leaves a queue now: forward through the history."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

# The search for the byte whose ACK arrives goes forward by these numbers of records, each if it may. A longer silence
# is crossed in several steps of the integrator.
_STRIDES = (1024, 256, 64, 16, 8, 4, 2, 1, 1)
# Up to 2^14 records, without gaps: where pauses make silences of any length, and bytes must not be held up by them.
ALL_STRIDES = (*(1 << k for k in reversed(range(14))), 1)


def search(
    ends: Callable[..., list[Array]],
    filling: Callable[[Array], Array],
    target: Array,
    left: Array,
    begin: Array,
    strides: tuple[int, ...] = _STRIDES,
) -> Array:
    """Latest time up to ``left`` at which a function that never falls is at most ``target``; times in steps from n.

    Parameters
    ----------
    ends : callable
        The function at the two ends of records, from their numbers; at their start with ``start_only``.
    filling : callable
        Whether queues begin to fill somewhere inside records. What comes in the next then also came in a part of these,
        and nothing before: by a line over the whole record, bytes that many flows send at once would be acknowledged
        as if spread over the step, wrongly for as many steps as there are flows.
    target, left : Array, shape (queues, points)
    begin : Array
        Time not after the one sought, from which the search goes forward.
    strides : tuple of int
        By which it does.
    """
    record = jnp.minimum(jnp.floor(jnp.broadcast_to(begin, left.shape)), -1.0).astype(jnp.int32)
    by = jnp.array(strides, jnp.int32)

    def stepped(k: int, record: Array) -> Array:
        ahead = record + by[k]
        return jnp.where((ahead <= -1) & (ends(jnp.minimum(ahead, -1), start_only=True)[0] <= target), ahead, record)

    # A loop: unrolled, XLA would compute a step again wherever one after it reads it, 2^14 times for the first.
    record = lax.fori_loop(0, len(strides), stepped, record)
    first, last = ends(record)
    share = jnp.clip((target - first) / jnp.maximum(last - first, 1e-9), 0.0, 1.0)
    start, end = ends(jnp.minimum(record + 1, -1))
    bends = filling(record) & (end > start) & (record < -1)
    onward = jnp.maximum(1.0 - (start - target) / jnp.where(bends, end - start, 1.0), 0.0)
    return jnp.minimum(record + jnp.where(bends, onward, share), left)
