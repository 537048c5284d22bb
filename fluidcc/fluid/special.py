"""Forms of (1-p)^n that stay finite, exact and differentiable at p = 0, p = 1 and large exponents.

With l = -ln(1-p): 1-(1-p)^n = `saturation` of n*l, and p/((1-p)^-n - 1) = (p/l)/n * `bernoulli` of n*l.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

_LARGEST_PROBABILITY = {8: 1.0 - 2.0**-53, 4: 1.0 - 2.0**-24}


def log_odds_rate(p: Array) -> tuple[Array, Array]:
    """Return l = -ln(1-p) and p/l, whose limit at p = 0 is 1.

    p = 1 is read as the next smaller number, for which l = 36.7 (16.6 in float32): (1-p)^n is then below
    1e-15 as soon as n exceeds one packet.
    """
    p = jnp.minimum(p, _LARGEST_PROBABILITY[p.dtype.itemsize])
    log = -jnp.log1p(-p)
    positive = log > 0
    return log, jnp.where(positive, p, 1.0) / jnp.where(positive, log, 1.0)


def saturation(y: Array) -> Array:
    """Return 1 - exp(-y) for y >= 0, to full relative accuracy."""
    return -jnp.expm1(-y)


def bernoulli(y: Array, saturated: Array) -> Array:
    """Return y / (exp(y) - 1) for y >= 0, given ``saturated = saturation(y)``; 1 at y = 0, no overflow."""
    positive = saturated > 0
    ratio = jnp.where(positive, y, 1.0) / jnp.where(positive, saturated, 1.0)
    return ratio * (1.0 - saturated)
