"""Linear systems with delays, x'(t) = A0 x(t) + sum_k A_k x(t - tau_k), and their characteristic matrix.

>>> lag = DelaySystem(A0=[[0.0]], A=[[[-1.0]]], tau=[1.0])  # x'(t) = -x(t - 1)
>>> lag.characteristic(1j)
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.errors import InputError
from fluidcc.surface import constructor, public

Array = np.ndarray[Any, Any]

_SWEEPS = 20  # of balancing at most; two or three do unless few states act on each other and units differ widely
_BOUND_ROUNDS = 4  # each gives a bound, and a lower one than the round before


@constructor()
@dataclasses.dataclass(frozen=True, eq=False)
class DelaySystem:
    """x'(t) = A0 x(t) + sum_k A_k x(t - tau_k), or a batch of such systems.

    Parameters
    ----------
    A0 : array_like
        (..., n, n) [1/s]. Leading axes are a batch; those of the three arrays are broadcast together.
    A : array_like
        (..., K, n, n) [1/s].
    tau : array_like
        (..., K) [s], in any order, zero or equal delays included; a zero delay counts as undelayed.

    Raises
    ------
    InputError
        If the shapes do not belong together, or a number is not real and finite, or a delay is negative.
    """

    A0: Array
    A: Array
    tau: Array

    def __post_init__(self) -> None:
        A0, A, tau = real("A0", self.A0), real("A", self.A), real("tau", self.tau)
        if A0.ndim < 2 or A0.shape[-1] != A0.shape[-2] or A0.shape[-1] == 0:
            raise InputError(f"A0: shape {A0.shape}; give square matrices (..., n, n), for example [[0.0]]")
        n = A0.shape[-1]
        if A.ndim < 3 or A.shape[-2:] != (n, n):
            raise InputError(f"A: shape {A.shape}; give one matrix per delay, (..., K, {n}, {n}), as A0 is {n} x {n}")
        count = A.shape[-3]
        if tau.ndim < 1 or tau.shape[-1] != count:
            raise InputError(f"tau: shape {tau.shape}; give one delay per matrix of A, (..., {count})")
        negative = np.argwhere(tau < 0)
        if negative.size:
            at = tuple(int(i) for i in negative[0])
            raise InputError(f"tau{list(at)}: {tau[at]:g} s; give delays of 0 s or more")
        try:
            lead = np.broadcast_shapes(A0.shape[:-2], A.shape[:-3], tau.shape[:-1])
        except ValueError:
            shapes = f"{A0.shape[:-2]}, {A.shape[:-3]} and {tau.shape[:-1]}"
            raise InputError(
                f"DelaySystem: the batch axes of A0, A and tau, {shapes}, differ; give equal ones"
            ) from None
        object.__setattr__(self, "A0", np.broadcast_to(A0, (*lead, n, n)))
        object.__setattr__(self, "A", np.broadcast_to(A, (*lead, count, n, n)))
        object.__setattr__(self, "tau", np.broadcast_to(tau, (*lead, count)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the batch; () for a single system."""
        return self.A0.shape[:-2]

    @property
    def order(self) -> int:
        """n, the number of states."""
        return self.A0.shape[-1]

    @public()
    def characteristic(self, s: ArrayLike) -> Array:
        """S I - A0 - sum_k A_k exp(-s tau_k).

        Parameters
        ----------
        s : array_like
            Complex [1/s]: the axes of the batch, and any more after them; a single number is meant for all.

        Returns
        -------
        ndarray
            Complex, the shape of ``s`` followed by (n, n).
        """
        at, factors = self._factors(s)
        return at[..., None, None] * np.eye(self.order) - self._spread(self.A0, at) - self._weighted(factors)

    @public()
    def derivative(self, s: ArrayLike) -> Array:
        """d/ds of `characteristic`, I + sum_k tau_k A_k exp(-s tau_k); same shapes.

        Parameters
        ----------
        s : complex or ndarray
            Where [1/s].

        Returns
        -------
        ndarray
        """
        _, factors = self._factors(s)
        return np.eye(self.order) + self._weighted(factors * self._spread_delays(factors))

    @public()
    def size(self, s: ArrayLike) -> Array:
        """``|s| + |A0| + sum_k |A_k exp(-s tau_k)|`` in Frobenius norms: what a residual at s is measured by.

        Parameters
        ----------
        s : complex or ndarray
            Where [1/s].

        Returns
        -------
        float or ndarray
        """
        at, factors = self._factors(s)
        norms = np.linalg.norm(self.A, axis=(-2, -1))
        own = np.linalg.norm(self.A0, axis=(-2, -1))
        extra = at.ndim - len(self.shape)
        norms = norms.reshape(*self.shape, *(1,) * extra, norms.shape[-1])
        own = np.reshape(own, (*self.shape, *(1,) * extra))
        return np.abs(at) + own + (np.abs(factors) * norms).sum(axis=-1)

    @public()
    def bound(self, sigma: ArrayLike) -> Array:
        """R such that every root s with Re s >= sigma has ``|s - sigma| <= R``.

        Parameters
        ----------
        sigma : array_like
            [1/s], one per system.

        Returns
        -------
        ndarray
            [1/s], the shape of the batch.

        Notes
        -----
        From ``s x = (A0 + sum A_k e^(-s tau_k)) x``, row by row, ``|s - a_ii| |x_i| <= sum_j M_ij |x_j|``, where M has
        the moduli of A0's other entries and of ``A_k e^(-sigma tau_k)``. With z = s - sigma, ``|s - a_ii|`` is at least
        the square root of ``|z|^2 + (sigma - a_ii)^2`` if a_ii <= sigma, else at least ``|z| - (a_ii - sigma)``. So the
        modulus of z is at most the spectral radius of a matrix without negative entries (Horn and Johnson, Matrix
        Analysis, 8.1.18 and 8.3.1) that grows with it: iterated from above, every iterate is a bound. Wu and Michiels
        (2012) bound that of s by a sampled spectrum; this is coarser, costs a few n x n eigenvalue problems, and does
        not depend on the states' units.
        """
        line = np.broadcast_to(np.asarray(sigma, float), self.shape)
        n = self.order
        own = self.A0[..., range(n), range(n)] - line[..., None]
        with np.errstate(over="ignore"):
            weights = np.exp(-line[..., None] * self.tau)
            M = np.abs(self.A0) + (weights[..., None, None] * np.abs(self.A)).sum(axis=-3)
        M[..., range(n), range(n)] += np.maximum(own, 0) - np.abs(self.A0[..., range(n), range(n)])
        M = np.minimum(M, 1e150)  # so far left that exp overflows: a bound of no use, but a number
        damping = np.maximum(-own, 0)
        radius = perron(M)
        for _ in range(_BOUND_ROUNDS):
            size = np.hypot(radius[..., None], damping)
            gain = np.divide(radius[..., None], size, out=np.ones_like(size), where=size > 0)
            radius = np.minimum(radius, perron(gain[..., None] * M))
        return radius

    @public()
    def normalised(self) -> tuple[DelaySystem, Array]:
        """The batch flattened, time in units of the longest delay that matters, states scaled; and those units [s].

        Roots times unit are roots of the normalised systems; without delays the unit is ``1 / |A0|``. What one state
        does to another that has no effect on it in turn is left out: by blocks the matrices are triangular, and the
        determinant does not depend on it.
        """
        n, count = self.order, self.tau.shape[-1]
        batch = math.prod(self.shape)
        A0, A = self.A0.reshape(batch, n, n), self.A.reshape(batch, count, n, n)
        tau = self.tau.reshape(batch, count)
        mutual = _mutual((A0 != 0) | (A != 0).any(axis=-3))
        A0, A = A0 * mutual, A * mutual[:, None]
        even = DelaySystem(A0, A, np.where(A.any(axis=(-2, -1)), tau, 0.0)).balanced(np.zeros(batch))
        norm = np.linalg.norm(even.A0, axis=(-2, -1)) + np.linalg.norm(even.A, axis=(-2, -1)).sum(axis=-1)
        longest = even.tau.max(axis=-1, initial=0.0)
        unit = np.where(longest > 0, longest, 1 / np.where(norm > 0, norm, 1.0))
        scale = unit[:, None, None]
        return DelaySystem(even.A0 * scale, even.A * scale[:, None], even.tau / unit[:, None]), unit

    @public()
    def balanced(self, sigma: Array) -> DelaySystem:
        """States of a batch (batch,) scaled by powers of two: ``|A0| + sum |A_k| e^(-sigma tau_k)`` is balanced.

        Rows and columns are then alike, whatever the states' units are, and norms say something (Osborne 1960; Parlett
        and Reinsch 1969).

        Parameters
        ----------
        sigma : float
            Real part at which it is balanced [1/s].

        Returns
        -------
        DelaySystem
        """
        weights = np.exp(-sigma[:, None] * self.tau)
        scale = balance(np.abs(self.A0) + (weights[..., None, None] * np.abs(self.A)).sum(axis=-3))
        ratio = scale[:, None, :] / scale[:, :, None]
        return DelaySystem(self.A0 * ratio, self.A * ratio[:, None], self.tau)

    def __getitem__(self, index: Any) -> DelaySystem:
        """Some systems of the batch."""
        if not self.shape:
            raise TypeError("this is a single system, not a batch")
        return DelaySystem(self.A0[index], self.A[index], self.tau[index])

    def _factors(self, s: ArrayLike) -> tuple[Array, Array]:
        """The points s with the batch's axes first, and exp(-s tau_k), (..., K)."""
        at = np.asarray(s, complex)
        if at.ndim < len(self.shape):
            at = np.broadcast_to(at, self.shape)
        if at.shape[: len(self.shape)] != self.shape:
            raise InputError(f"s: shape {at.shape}; begin with the axes of the batch, {self.shape}")
        return at, np.exp(-at[..., None] * self._spread_delays(at[..., None]))

    def _spread_delays(self, factors: Array) -> Array:
        extra = factors.ndim - self.tau.ndim
        return self.tau.reshape(*self.shape, *(1,) * extra, self.tau.shape[-1])

    def _spread(self, matrices: Array, s: Array) -> Array:
        return matrices.reshape(*self.shape, *(1,) * (s.ndim - len(self.shape)), *matrices.shape[-2:])

    def _weighted(self, factors: Array) -> Array:
        """sum_k f_k A_k: one product of matrices per system of the batch."""
        n, count = self.order, self.tau.shape[-1]
        inner = math.prod(factors.shape[len(self.shape) : -1])
        rows = factors.reshape(*self.shape, inner, count)
        return (rows @ self.A.reshape(*self.shape, count, n * n)).reshape(*factors.shape[:-1], n, n)


def real(name: str, values: ArrayLike) -> Array:
    """Finite real numbers as float64.

    Raises
    ------
    InputError
        If they are not.
    """
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "biuf":
            raise ValueError
        numbers = numbers.astype(float)
    except ValueError:
        raise InputError(f"{name}: not an array of real numbers; give nested lists of equal lengths") from None
    bad = np.argwhere(~np.isfinite(numbers))
    if bad.size:
        at = tuple(int(i) for i in bad[0])
        raise InputError(f"{name}{list(at)}: {numbers[at]}; give finite numbers")
    return numbers


def perron(matrices: Array) -> Array:
    """Spectral radius of matrices (..., n, n)."""
    return np.abs(np.linalg.eigvals(matrices)).max(axis=-1)


def _mutual(acts: Array) -> Array:
    """Mark pairs of states that act on each other, directly or through others, (batch, n, n), from direct actions."""
    n = acts.shape[-1]
    reach = acts | np.eye(n, dtype=bool)
    for _ in range(max(n - 1, 1).bit_length()):
        reach = (reach.astype(float) @ reach.astype(float)) > 0
    return reach & reach.swapaxes(-1, -2)


def balance(moduli: Array) -> Array:
    """Scales (batch, n), powers of two, such that row i and column i of scale_j / scale_i M_ij are alike."""
    n = moduli.shape[-1]
    moduli = moduli * (1 - np.eye(n))
    scale = np.ones(moduli.shape[:-1])
    for _ in range(_SWEEPS):
        before = scale.copy()
        for i in range(n):
            row = (moduli[:, i] * scale).sum(axis=-1) / scale[:, i]
            column = (moduli[:, :, i] / scale).sum(axis=-1) * scale[:, i]
            both = (row > 0) & (column > 0)
            step = np.sqrt(np.where(both, row, 1.0) / np.where(both, column, 1.0))
            scale[:, i] *= np.exp2(np.round(np.log2(step)))
        if (scale == before).all():
            break
    return scale
