"""Roots that stay at 0 whatever the parameter is: sums that an equation keeps, and its symmetries.

They are no crossings, and do not decide on stability among the states that the sum allows: what else lies near the
axis does.
"""

from __future__ import annotations

import numpy as np

from fluidcc.delay.checks import Array
from fluidcc.theory.delay_systems.delay_system import DelaySystem
from fluidcc.theory.delay_systems.roots import roots

_SINGULAR = 1e-9  # least over largest singular value, scaled: a matrix without inverse, but for where it was taken
_ZERO = 1e-7  # of |A0| + sum |A_k|: a double root that is 0 is found to the square root of rounding
_SAMPLES = 16
_SCALINGS = 8
_MOST = 64


def size(batch: DelaySystem) -> Array:
    """|A0| + sum |A_k| of each system (batch,), its states scaled so that their units do not matter."""
    scaled, unit = batch.normalised()
    norms = np.linalg.norm(scaled.A0, axis=(-2, -1)) + np.linalg.norm(scaled.A, axis=(-2, -1)).sum(axis=-1)
    return norms / unit


def structural(batch: DelaySystem) -> int:
    """How many roots are 0, as often as they count, in all systems (batch,)."""
    (count,) = batch.shape
    if not count or not _singular(batch.A0 + batch.A.sum(axis=-3)).all():  # where s = 0 is a root
        return 0
    some = batch[np.unique(np.linspace(0, count - 1, min(count, _SAMPLES)).astype(int))]
    wanted = batch.order + 2
    while True:
        found = roots(some, wanted, threads=1)
        near = np.abs(found.s) <= _ZERO * size(some)[:, None]
        last = np.where(np.isfinite(found.s), found.s.real, np.inf).min(axis=-1, initial=np.inf)
        if wanted >= _MOST or (last < -_ZERO * size(some)).all() or (found.number < wanted).all():
            return int(near.sum(axis=-1).min())
        wanted *= 2


def _singular(matrices: Array) -> Array:
    """Whether matrices (batch, n, n) have no inverse, their rows and columns scaled: a slow state is not a dead one."""
    scaled = np.array(matrices)
    for _ in range(_SCALINGS):
        for axis in (-1, -2):
            most = np.sqrt(np.abs(scaled).max(axis=axis, keepdims=True))
            scaled = scaled / np.where(most > 0, most, 1.0)
    sigma = np.linalg.svd(scaled, compute_uv=False)
    return sigma[:, -1] <= _SINGULAR * np.maximum(sigma[:, 0], 1e-300)


def without(s: Array, zeros: int, sizes: Array) -> Array:
    """Roots (batch, width) without that many that are 0, by falling real part; NaN fills up."""
    if not zeros:
        return s
    modulus = np.where(np.isfinite(s), np.abs(s), np.inf)
    order = np.argsort(modulus, axis=-1, kind="stable")[:, :zeros]
    rows = np.arange(len(s))[:, None]
    gone = np.zeros(s.shape, bool)
    gone[rows, order] = modulus[rows, order] <= _ZERO * np.maximum(sizes, 1e-300)[:, None]
    kept = np.where(gone, complex(np.nan, np.nan), s)
    return np.take_along_axis(kept, np.argsort(gone, axis=-1, kind="stable"), axis=-1)
