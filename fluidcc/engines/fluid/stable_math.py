"""Forms of (1-p)^n that stay finite, exact and differentiable at p = 0, p = 1 and large exponents.

With l = -ln(1-p), the `hazard` of a mark per packet: 1-(1-p)^n = `saturation` of n*l, and
p/((1-p)^-n - 1) = (p/l)/n * `bernoulli` of n*l.

In double precision exp, expm1 and log1p are spelled out: XLA's take two thirds of a step on a CPU, and its log1p is
120 ulp off around p = 0.4. Each function ends in a division, because XLA copies a cheap last operation, with all
that leads to it, into every use, but never a division. Derivatives are given, because those of the formulas
cancel near 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array, lax

_LARGEST_PROBABILITY = {8: 1.0 - 2.0**-53, 4: 1.0 - 2.0**-24}
_LOG2_E, _LN_2 = 1.4426950408889634, 0.6931471805599453
_LN_2_HIGH, _LN_2_LOW = 6.93145751953125e-1, 1.42860682030941723212e-6  # the first times k < 2^11 is exact
_LARGEST_EXPONENT = 708.0  # exp(-708) is the last normal number
# exp(r) = (Q + P)/(Q - P), |r| <= ln(2)/2 (Cephes); ln(1+f) = f/(2+f) (2 + z L(z)), z = (f/(2+f))^2 (fdlibm).
_P = (1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1)
_Q = (3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.0)
_L = (
    1.479819860511658591e-01,
    1.531383769920937332e-01,
    1.818357216161805012e-01,
    2.222219843214978396e-01,
    2.857142874366239149e-01,
    3.999999999940941908e-01,
    6.666666666666735130e-01,
)
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Horner's scheme, highest power first."""
    total = jnp.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total = total * x + c
    return total


def _exponential(y: Array) -> tuple[Array, Array, Array]:
    """2^-k, P and Q with exp(-y) = 2^-k (Q + P)/(Q - P), for y >= 0."""
    y = jnp.minimum(y, _LARGEST_EXPONENT)
    whole = (y * _LOG2_E + 0.5).astype(jnp.int64)
    k = whole.astype(y.dtype)
    r = (k * _LN_2_HIGH - y) + k * _LN_2_LOW
    z = r * r
    return lax.bitcast_convert_type((1023 - whole) << 52, y.dtype), r * _polynomial(z, _P), _polynomial(z, _Q)


@jax.custom_jvp
def _minus_log1p(p: Array) -> Array:
    """-ln(1-p) for 0 <= p < 1."""
    if p.dtype != jnp.float64:
        return -jnp.log1p(-p)
    bits = lax.bitcast_convert_type(1.0 - p, jnp.int64)
    k = (bits - _SQRT_HALF_BITS) >> 52
    # 1-p = 2^k (1+f); with k = 0 f is -p itself, without the rounding of 1-p.
    f = jnp.where(k == 0, -p, lax.bitcast_convert_type(bits - (k << 52), p.dtype) - 1.0)
    below = 2.0 + f
    z = (f / below) ** 2
    return (k.astype(p.dtype) * -_LN_2 * below - f * (2.0 + z * _polynomial(z, _L))) / below


@_minus_log1p.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return _minus_log1p(*primals), tangents[0] / (1.0 - primals[0])


@jax.custom_jvp
def _per_log(p: Array, log: Array) -> Array:
    """p/l as a function of p, given l."""
    positive = log > 0
    return jnp.where(positive, p, 1.0) / jnp.where(positive, log, 1.0)


@_per_log.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    p, log = primals
    value = _per_log(p, log)
    small = p < 1e-3
    slope = (1.0 - value / (1.0 - p)) / jnp.where(small, 1.0, log)
    return value, jnp.where(small, _polynomial(p, (-3 / 32, -19 / 180, -1 / 8, -1 / 6, -1 / 2)), slope) * tangents[0]


def hazard(p: Array) -> tuple[Array, Array]:
    """Return l = -ln(1-p) and p/l, whose limit at p = 0 is 1.

    p = 1 is read as the next smaller number, for which l = 36.7 (16.6 in float32): (1-p)^n is then below
    1e-15 as soon as n exceeds one packet.
    """
    p = jnp.minimum(p, _LARGEST_PROBABILITY[p.dtype.itemsize])
    log = _minus_log1p(p)
    return log, _per_log(p, log)


@jax.custom_jvp
def decay(y: Array) -> Array:
    """Return exp(-y) for y >= 0."""
    if y.dtype != jnp.float64:
        return jnp.exp(-y)
    scale, p, q = _exponential(y)
    return scale * (q + p) / (q - p)


@decay.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    value = decay(*primals)
    return value, -value * tangents[0]


@jax.custom_jvp
def saturation(y: Array) -> Array:
    """Return 1 - exp(-y) for y >= 0, to full relative accuracy."""
    if y.dtype != jnp.float64:
        return -jnp.expm1(-y)
    scale, p, q = _exponential(y)
    return ((1.0 - scale) * (q - p) - 2.0 * scale * p) / (q - p)


@saturation.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return saturation(*primals), decay(*primals) * tangents[0]


@jax.custom_jvp
def bernoulli(y: Array) -> Array:
    """Return y / (exp(y) - 1) for y >= 0, to full relative accuracy; 1 at y = 0, no overflow."""
    if y.dtype != jnp.float64:
        above, below = y * jnp.exp(-y), -jnp.expm1(-y)
    else:  # decay over saturation: their common denominator cancels
        scale, p, q = _exponential(y)
        above, below = y * scale * (q + p), (1.0 - scale) * (q - p) - 2.0 * scale * p
    positive = below > 0
    return jnp.where(positive, above, 1.0) / jnp.where(positive, below, 1.0)


@bernoulli.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (y,) = primals
    value = bernoulli(y)
    small = y < 0.1
    slope = value * (1.0 / jnp.where(small, 1.0, y) - 1.0 / jnp.where(small, 1.0, saturation(y)))
    series = -0.5 + y * _polynomial(y * y, (1 / 5040, -1 / 180, 1 / 6))
    return value, jnp.where(small, series, slope) * tangents[0]
