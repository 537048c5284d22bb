"""Periodic solutions as boundary-value problems: piecewise polynomials that satisfy the equation at Gauss points.

After Engelborghs, Luzyanina, in 't Hout and Roose, SIAM J. Sci. Comput. 22 (2000) 1593-1609. The same equations, linear
and with each period apart, give Floquet multipliers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import legendre

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.equation import Array, Equation, Kernels
from fluidcc.dde.mesh import DEGREE, STILL, Profile, local, moves, places, values
from fluidcc.dde.periodic import Linear, floquet, newton_step

_AT_ONCE = 512  # points: one size, compiled once
_STEPS = 25
_CONVERGED = 1e-8  # of a last step, after which Newton's method leaves rounding

_GAUSS, _WEIGHTS = (each / 2 for each in legendre.leggauss(DEGREE))
_GAUSS = _GAUSS + 0.5


class Direction(NamedTuple):
    """Direction of a branch: of states at the nodes (M, n), the period and a parameter, with its column and scale."""

    x: Array
    period: float
    value: float
    column: int
    span: float


def residual(equation: Equation, profile: Profile) -> float:
    """Compute the residual halfway between the places where the equation is satisfied; the largest over states.

    It is relative to a state's largest derivative, or to its modulus over the period if it stands still.
    """
    between = np.concatenate([[0.0], (_GAUSS[:-1] + _GAUSS[1:]) / 2])
    theta = (profile.mesh[:-1, None] + np.diff(profile.mesh)[:, None] * between).ravel()
    found = _Pointwise(equation.kernels, equation.vector, profile, theta)
    still = np.ptp(profile.x, axis=0) <= STILL * np.abs(profile.x).max(axis=0)
    scale = np.where(still, np.abs(profile.x).max(axis=0), np.abs(found.slope).max(axis=0))
    return float((np.abs(found.residual).max(axis=0) / np.maximum(scale, 1e-300)).max())


def lags_along(equation: Equation, profile: Profile) -> Array:
    """Lags (count, K) on the way."""
    return _Pointwise(equation.kernels, equation.vector, profile, _collocated(profile.mesh)).lags


class _Pointwise:
    """The equation and its derivatives at shares of the period."""

    def __init__(self, kernels: Kernels, vector: Array, profile: Profile, theta: Array) -> None:
        self.now = places(profile.mesh, theta)
        self.x, self.slope = values(self.now, profile.x), moves(self.now, profile.x)
        at_lags = kernels.once("cycle lags", lambda: jax.jit(jax.vmap(_lags(kernels), in_axes=(0, None))))
        self.lags, self.steer, self.lags_by = _chunks(at_lags, [self.x], vector)
        T = profile.period
        self.then = [places(profile.mesh, theta - lag / T) for lag in self.lags.T]
        delayed = np.stack([values(each, profile.x) for each in self.then], axis=1)
        self.moving = np.stack([moves(each, profile.x) for each in self.then], axis=1)
        rates = kernels.once("cycle rates", lambda: jax.jit(jax.vmap(_rates(kernels), in_axes=(0, 0, None))))
        self.rate, self.own, self.gain, self.by = _chunks(rates, [self.x, delayed], vector)
        self.residual = self.slope - T * self.rate


def _lags(kernels: Kernels) -> Any:
    def found(x: Any, vector: Any) -> Any:
        return kernels.lags(x, vector), *jax.jacfwd(kernels.lags, argnums=(0, 1))(x, vector)

    return found


def _rates(kernels: Kernels) -> Any:
    def rate(x: Any, delayed: Any, vector: Any) -> Any:
        return kernels.rate(0.0, x, tuple(delayed), vector)

    def found(x: Any, delayed: Any, vector: Any) -> Any:
        return rate(x, delayed, vector), *jax.jacfwd(rate, argnums=(0, 1, 2))(x, delayed, vector)

    return found


def _chunks(function: Any, columns: list[Array], vector: Array) -> list[Array]:
    count = len(columns[0])
    rows = np.arange(-(-count // _AT_ONCE) * _AT_ONCE).clip(max=count - 1).reshape(-1, _AT_ONCE)
    with our_settings():
        parts = [function(*(jnp.asarray(c[some]) for c in columns), jnp.asarray(vector)) for some in rows]
        return [np.concatenate([np.asarray(part) for part in each])[:count] for each in zip(*parts, strict=True)]


def _linear(kernels: Kernels, vector: Array, profile: Profile) -> Linear:
    theta = _collocated(profile.mesh)
    at, T = _Pointwise(kernels, vector, profile, theta), profile.period
    M, n = profile.x.shape
    now = np.einsum("ji,ab->jiab", at.now.slopes, np.eye(n)) - T * np.einsum("ji,jab->jiab", at.now.weights, at.own)
    by_period, by_vector = -at.rate, -T * at.by
    parts = []
    for k, then in enumerate(at.then):
        gain = at.gain[:, :, k]
        later = np.einsum("jab,jb->ja", gain, at.moving[:, k])  # by a smaller lag
        now = now + np.einsum("ji,ja,jb->jiab", at.now.weights, later, at.steer[:, k])
        by_period = by_period - later * at.lags[:, k, None] / T
        by_vector = by_vector + later[:, :, None] * at.lags_by[:, k, None, :]
        parts.append((then, -T * np.einsum("ji,jab->jiab", then.weights, gain)))
    rows, columns, back, entries = [], [], [], []
    shape = (M, DEGREE + 1, n, n)
    for where, block in [(at.now, now), *parts]:
        rows.append(np.broadcast_to(np.arange(M * n).reshape(M, 1, n, 1), shape).ravel())
        columns.append(np.broadcast_to(where.nodes[:, :, None, None] * n + np.arange(n), shape).ravel())
        back.append(np.broadcast_to(where.back[:, :, None, None], shape).ravel())
        entries.append(block.ravel())
    return Linear(
        rows=np.concatenate(rows),
        columns=np.concatenate(columns),
        back=np.concatenate(back),
        entries=np.concatenate(entries),
        residual=at.residual.ravel(),
        by_period=by_period.ravel(),
        by_vector=by_vector.reshape(M * n, -1),
    )


def _collocated(mesh: Array) -> Array:
    return (mesh[:-1, None] + np.diff(mesh)[:, None] * _GAUSS).ravel()


def _phase(guess: Profile) -> Array:
    """Return the phase condition that keeps a solution in step with the guess, as a row over the nodes (M * n,)."""
    theta = _collocated(guess.mesh)
    where = places(guess.mesh, theta)
    along = moves(where, guess.x) / guess.size**2 * (np.diff(guess.mesh)[:, None] * _WEIGHTS).ravel()[:, None]
    row = np.zeros(guess.x.shape)
    np.add.at(row, where.nodes, np.einsum("ji,ja->jia", where.weights, along))
    return row.ravel()


def solved(
    equation: Equation, vector: Array, guess: Profile, along: Direction | None = None
) -> tuple[Profile, Array] | None:
    """Newton's method from a guess on its own mesh.

    Parameters
    ----------
    equation : Equation
    vector : ndarray, shape (m,)
        Parameters.
    guess : Profile
    along : Direction, optional
        The parameter is unknown as well, and the way from the guess to the solution is at right angles to this.

    Returns
    -------
    (Profile, ndarray) or None
        The solution and the parameters; None if it does not converge.
    """
    M, n = guess.x.shape
    begin, vector = vector, vector.copy()
    x, T, span, phase = guess.x.copy(), guess.period, guess.size, _phase(guess)
    tangent = np.empty(0)
    if along is not None:
        weighted = (along.x / span**2 / M).ravel()
        tangent = np.append(weighted, [along.period / T**2, along.value / along.span**2])
    for _ in range(_STEPS):
        at = _linear(equation.kernels, vector, Profile(guess.mesh, x, T))
        scale = np.append(local(x).ravel(), T)
        columns, rows, right = [at.by_period], [phase], np.append(at.residual, phase @ (x - guess.x).ravel())
        if along is not None:
            columns.append(at.by_vector[:, along.column])
            rows.append(tangent)
            away = [T - guess.period, vector[along.column] - begin[along.column]]
            right = np.append(right, tangent @ np.append((x - guess.x).ravel(), away))
            scale = np.append(scale, along.span)
        move = newton_step(at, columns, rows, right, scale)
        if move is None:
            return None
        most = np.abs(move / scale).max()
        share = min(1.0, 0.5 / max(most, 1e-300))
        x, T = x - share * move[: M * n].reshape(M, n), T - share * float(move[M * n])
        if along is not None:
            vector[along.column] -= share * move[-1]
        if not np.isfinite(T):  # a share never takes more than half of it
            return None
        if share == 1.0 and most < _CONVERGED:
            return Profile(guess.mesh, x, T), vector
    return None


def multipliers(equation: Equation, profile: Profile) -> Array:
    """Floquet multipliers of a profile, as `floquet` gives them."""
    return floquet(_linear(equation.kernels, equation.vector, profile), profile.x.size)
