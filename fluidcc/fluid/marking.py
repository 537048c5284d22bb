"""Marking of an egress queue: RED on the instantaneous length (DCQCN eq. (5))."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def red(queue: Array, kmin: Array, kmax: Array, pmax: Array) -> Array:
    """Probability that a packet arriving at a queue is marked, DCQCN eq. (5); jumps to 1 above kmax."""
    width = kmax - kmin
    ramp = width > 0
    share = (queue - kmin) / jnp.where(ramp & (width < jnp.inf), width, 1.0)
    on_ramp = jnp.where(queue <= kmin, 0.0, jnp.clip(share, 0.0, 1.0) * pmax)
    return jnp.where(queue > kmax, 1.0, on_ramp)


def along_path(probabilities: Array) -> Array:
    """Probability (1, points) of a mark on any hop, from one row per hop: 1 - prod(1 - p)."""
    if probabilities.shape[0] == 1:
        return probabilities
    return 1.0 - jnp.prod(1.0 - probabilities, axis=0, keepdims=True)
