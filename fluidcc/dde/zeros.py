"""Roots that stay at 0 whatever the parameter is: sums that an equation keeps, and its symmetries.

They are no crossings, and do not decide on stability among the states that the sum allows: the other roots near the
axis do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.dde.delay_system import Array, DelaySystem

_SINGULAR = 1e-12  # least over largest singular value, scaled: a matrix without inverse, but for where it was taken
_ZERO = 1e-7  # of |A0| + sum |A_k|: a double root that is 0 is found to the square root of rounding
_SAMPLES = 16
_SCALINGS = 8
_LONGEST = 4  # chains


def size(batch: DelaySystem) -> Array:
    """|A0| + sum |A_k| of each system (batch,), its states scaled so that their units do not matter."""
    scaled, unit = batch.normalised()
    norms = np.linalg.norm(scaled.A0, axis=(-2, -1)) + np.linalg.norm(scaled.A, axis=(-2, -1)).sum(axis=-1)
    return norms / unit


def structural(batch: DelaySystem) -> int:
    """Count the roots that are 0, with multiplicity, in all systems (batch,).

    There are as many as chains v_0, v_1, ... with D(s) (v_0 + v_1 s + ...) = O(s^k), D the characteristic matrix: found
    by rank, so that a slow root next to fast ones is not taken for 0.
    """
    (count,) = batch.shape
    if not count or not _singular(batch.A0 + batch.A.sum(axis=-3)).any(axis=-1).all():  # where s = 0 is a root
        return 0
    some = batch[np.unique(np.linspace(0, count - 1, min(count, _SAMPLES)).astype(int))]
    sizes = size(some)[:, None, None]
    unit = np.where(sizes > 0, sizes, 1.0)  # of s, so that 1 is neither large nor small next to the rest
    tau = some.tau[..., None, None]
    n = some.order
    terms = [-(some.A0 + some.A.sum(axis=-3)) / unit]  # of D by powers of s, over the unit
    for k in range(1, _LONGEST):
        power = (-1) ** k / math.factorial(k) * (some.A * (tau * unit[:, None]) ** k).sum(axis=-3) / unit
        terms.append((np.eye(n) if k == 1 else 0.0) - power)
    found = 0
    for length in range(1, _LONGEST + 1):
        rows = [np.concatenate([terms[i - j] if j <= i else np.zeros_like(terms[0]) for j in range(length)], axis=-1)
                for i in range(length)]  # fmt: skip
        lost = int((_singular(np.concatenate(rows, axis=-2)).sum(axis=-1)).min())
        if lost == found:
            break
        found = lost
    return found


def _singular(matrices: Array) -> Any:
    """Find which singular values (batch, n) are 0, with rows and columns scaled: a slow state is not a dead one."""
    scaled = np.array(matrices)
    for _ in range(_SCALINGS):
        for axis in (-1, -2):
            most = np.sqrt(np.abs(scaled).max(axis=axis, keepdims=True))
            scaled = scaled / np.where(most > 0, most, 1.0)
    sigma = np.linalg.svd(scaled, compute_uv=False)
    return sigma <= _SINGULAR * np.maximum(sigma[:, :1], 1e-300)


def without(s: Array, zeros: int, sizes: Array) -> Array:
    """Roots (batch, width) without that many that are 0, by falling real part; NaN fills up."""
    if not zeros:
        return s
    modulus = np.where(np.isfinite(s), np.abs(s), np.inf)
    order = np.argsort(modulus, axis=-1, kind="stable")[:, :zeros]
    rows = np.arange(len(s))[:, None]
    near = max(_ZERO, 10 * float(np.finfo(float).eps) ** (1 / zeros))  # how far rounding moves roots at one place
    gone = np.zeros(s.shape, bool)
    gone[rows, order] = modulus[rows, order] <= near * np.maximum(sizes, 1e-300)[:, None]
    kept = np.where(gone, complex(np.nan, np.nan), s)
    return np.take_along_axis(kept, np.argsort(gone, axis=-1, kind="stable"), axis=-1)
