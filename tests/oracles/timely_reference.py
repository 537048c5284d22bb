"""TIMELY's fluid equations as Zhu et al. ("ECN or Delay", CoNEXT 2016) print them, apart from the package.

Rates in bytes/s, queues in bytes, times in seconds; N flows share one link.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import Array


@dataclasses.dataclass(frozen=True)
class Constants:
    """Their defaults."""

    C: float = 10e9 / 8
    beta: float = 0.8
    alpha: float = 0.875
    T_low: float = 50e-6
    T_high: float = 500e-6
    D_minRTT: float = 20e-6
    delta: float = 10e6 / 8
    Seg: float = 16e3
    patched: bool = False


def interval(c: Constants, R: Any, xp: Any = jnp) -> Array:
    """tau*_i; ``xp``: the arrays' library."""
    return xp.maximum(c.Seg / R, c.D_minRTT)


def gradient(c: Constants, g: Any, R: Any, q: Any, earlier: Any, xp: Any = jnp) -> Array:
    """dg_i/dt, from q(t - tau') and q(t - tau' - tau*_i)."""
    return c.alpha / interval(c, R, xp) * (-g + (q - earlier) / (c.C * c.D_minRTT))


def rate(c: Constants, g: Any, R: Any, q: Any, xp: Any = jnp) -> Array:
    """dR_i/dt, the first branch that applies; ``q`` is q(t - tau')."""
    tau = interval(c, R, xp)
    if c.patched:
        w, reference = xp.clip(2 * g + 0.5, 0, 1), c.C * c.T_low
        between = (1 - w) * c.delta / tau - w * c.beta * R / tau * (q - reference) / reference
    else:
        between = xp.where(g <= 0, c.delta / tau, -g * c.beta / tau * R)
    above = -c.beta / tau * (1 - c.C * c.T_high / xp.maximum(q, 1.0)) * R
    return xp.where(q < c.C * c.T_low, c.delta / tau, xp.where(q > c.C * c.T_high, above, between))
