"""Periodic solutions as boundary-value problems: piecewise polynomials that satisfy the equation at Gauss points.

After Engelborghs, Luzyanina, in 't Hout and Roose, SIAM J. Sci. Comput. 22 (2000) 1593-1609. Time over the period runs
from 0 to 1. Intervals are short where the function moves fast; an interval's polynomial shares its values at both ends
with its neighbours.

Each entry of the linear equations says to how many periods before it belongs: all together they are those of Newton's
step, each period apart those that carry a disturbance from one period to the next (Floquet multipliers).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import legendre
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs, splu

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.equation import Array, Equation, Kernels

_DENSE = 200  # unknowns of an eigenproblem that is solved whole
_MULTIPLIERS, _MOST_MULTIPLIERS = 6, 96  # asked for at first, and where all of them exceed 1
ONE = 1e-4  # from 1: the multiplier of a shift in time
_VECTORS, _MORE_VECTORS = 20, 4  # of an eigenproblem, and for each period of a lag: the longer, the closer its roots
DEGREE = 8
STILL = 1e-9  # of a state's modulus: less is rounding
_NOISE = 1e-13
_FLAT = 1e-7  # of a state's largest modulus: less moves no more than rounding does
_LOCAL = 1e-200  # of a state's largest modulus: not looked at closer
_LOG = 12.0  # change of a logarithm over the period, from which on it counts as much as the rest
_FINE = 20001  # places at which a profile is looked at to choose intervals
_NODES = (1 - np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)) / 2  # Chebyshev's, both ends among them
_TO_LEGENDRE = np.linalg.inv(legendre.legvander(2 * _NODES - 1, DEGREE))
_DERIVATIVE = 2 * np.array([np.append(legendre.legder(row), 0.0) for row in np.eye(DEGREE + 1)])
Course = Callable[[Array], Array]  # states (count, n) at shares of the period (count,)
_AT_ONCE = 512  # points: one size, compiled once
_STEPS = 25
_CONVERGED = 1e-8  # of a last step, after which Newton's method leaves rounding
_GAUSS, _WEIGHTS = (each / 2 for each in legendre.leggauss(DEGREE))
_GAUSS = _GAUSS + 0.5


class Linear(NamedTuple):
    """Linear equations about a periodic solution: entries by row, column and period back, and what else they hold."""

    rows: Array
    columns: Array
    back: Array
    entries: Array
    residual: Array  # (equations,)
    by_period: Array
    by_vector: Array  # (equations, parameters)


def newton_step(at: Linear, columns: list[Array], rows: list[Array], right: Array, scale: Array) -> Array | None:
    """Solve the linear equations with columns and rows next to those of the nodes; unknowns and equations to scale."""
    size, more = len(at.residual), len(columns)
    entries, row, column = [at.entries], [at.rows], [at.columns]
    for k, each in enumerate(columns):
        entries.append(each)
        row.append(np.arange(size))
        column.append(np.full(size, size + k))
    for k, each in enumerate(rows):
        entries.append(each)
        row.append(np.full(len(each), size + k))
        column.append(np.arange(len(each)))
    joined = np.concatenate(row), np.concatenate(column)
    content = np.concatenate(entries) * scale[joined[1]]
    if not (np.isfinite(content).all() and np.isfinite(right).all()):
        return None
    largest = np.full(size + more, 1e-300)
    np.maximum.at(largest, joined[0], np.abs(content))
    matrix = coo_matrix((content / largest[joined[0]], joined), shape=(size + more,) * 2).tocsc()
    try:
        found = splu(matrix).solve(right / largest) * scale
    except RuntimeError:  # singular
        return None
    return found if np.isfinite(found).all() else None


def floquet(at: Linear, size: int) -> Array:
    """Floquet multipliers of largest modulus, the largest first, complex (count,).

    What a small disturbance grows by in a period; one is 1, of a shift in time. So many that one is less than 1, unless
    that takes more than `_MOST_MULTIPLIERS`. ``size`` is the number of unknowns.
    """
    most = int(at.back.max())

    def part(back: int) -> Any:
        some = at.back == back
        return coo_matrix((at.entries[some], (at.rows[some], at.columns[some])), shape=(size, size)).tocsc()

    now, before = splu(part(0)), [part(back) for back in range(1, most + 1)]

    def later(past: Array) -> Array:
        """The next period's states and those of all but the first of periods before, newest first."""
        each = past.reshape(most, size)
        new = -now.solve(np.sum([matrix @ one for matrix, one in zip(before, each, strict=True)], axis=0))
        return np.concatenate([new, each[:-1].ravel()])

    whole = size * most
    if whole <= _DENSE:
        return _largest(np.linalg.eigvals(np.stack([later(row) for row in np.eye(whole)], axis=1)))
    operator = LinearOperator((whole, whole), matvec=later, dtype=float)  # pyright: ignore[reportCallIssue]
    start, count = np.random.default_rng(0).normal(size=whole), _MULTIPLIERS
    found: Any
    while True:
        try:
            space = min(whole - 1, _VECTORS + _MORE_VECTORS * most + 2 * (count - _MULTIPLIERS))
            found = eigs(operator, count, ncv=space, v0=start, maxiter=60, return_eigenvectors=False)
        except ArpackNoConvergence as error:  # of those next to 0: all others have
            found = error.eigenvalues
        except ArpackError:
            found = np.empty(0)
        if not len(found) or np.abs(found).min() < 1 - ONE or 2 * count > min(_MOST_MULTIPLIERS, whole // 4):
            return _largest(found)
        count *= 2


def _largest(found: Array) -> Array:
    """The largest few in order, and of more than these all down to the first that is less than 1."""
    found = np.asarray(found, complex)
    found = found[np.argsort(-np.abs(found))]
    return found[: max(_MULTIPLIERS, int((np.abs(found) >= 1 - ONE).sum()) + 1)]


class Places(NamedTuple):
    """Weights that interpolate from values at the nodes to other places: (count, DEGREE + 1) each."""

    nodes: Array
    back: Array  # periods before the one that begins at 0
    weights: Array
    slopes: Array


@dataclasses.dataclass(frozen=True)
class Profile:
    """One period of a solution.

    Parameters
    ----------
    mesh : ndarray, shape (L + 1,)
        Ends of the intervals, from 0 to 1.
    x : ndarray, shape (L * DEGREE, n)
        States at the nodes, but that at 0; the last is at 1.
    period : float
    """

    mesh: Array
    x: Array
    period: float

    def __call__(self, theta: Array) -> Array:
        """States (count, n) at shares of the period."""
        return values(places(self.mesh, theta), self.x)

    def slope(self, theta: Array) -> Array:
        """Derivatives by share of the period."""
        return moves(places(self.mesh, theta), self.x)

    @property
    def size(self) -> Array:
        """Peak to peak of each state; the modulus of one that stands still."""
        return _size(self.x)

    @property
    def moves(self) -> bool:
        """Check whether the profile is no equilibrium."""
        return bool((np.ptp(self.x, axis=0) > _FLAT * np.maximum(np.abs(self.x).max(axis=0), 1e-300)).any())


def places(mesh: Array, theta: Array) -> Places:
    """Compute the `Places` of shares of the period (count,), any numbers."""
    count = len(mesh) - 1
    turns = np.floor(theta)
    share = theta - turns
    interval = np.clip(np.searchsorted(mesh, share, "right") - 1, 0, count - 1)
    width = mesh[interval + 1] - mesh[interval]
    basis = legendre.legvander(2 * (share - mesh[interval]) / width - 1, DEGREE)
    number = interval[:, None] * DEGREE + np.arange(DEGREE + 1) - 1
    nodes = number % (count * DEGREE)
    back = -(number // (count * DEGREE)) - turns[:, None].astype(int)
    slopes = basis @ _DERIVATIVE.T @ _TO_LEGENDRE / width[:, None]
    return Places(nodes, back, basis @ _TO_LEGENDRE, slopes)


def values(where: Places, x: Array) -> Array:
    """States (count, n) from those at the nodes."""
    return np.einsum("ji,jia->ja", where.weights, x[where.nodes])


def moves(where: Places, x: Array) -> Array:
    """Derivatives (count, n); what all nodes share is left out, so that it causes no rounding."""
    at = x[where.nodes]
    return np.einsum("ji,jia->ja", where.slopes, at - at[:, :1])


def everywhere(mesh: Array, count: int) -> Array:
    """Shares of the period, some spread evenly and 16 in each interval."""
    inner = mesh[:-1, None] + np.diff(mesh)[:, None] * np.arange(2 * DEGREE) / (2 * DEGREE)
    return np.unique(np.concatenate([np.linspace(0.0, 1.0, count), inner.ravel()]))


def _size(x: Array) -> Array:
    """Peak to peak of states (count, n); the modulus of one that stands still."""
    ptp, modulus = np.ptp(x, axis=0), np.abs(x).max(axis=0)
    return np.where(ptp > STILL * modulus, ptp, np.maximum(modulus, 1e-300))


def local(x: Array) -> Array:
    """Return the scale of a state's changes, (count, n): itself if it never changes sign, else its peak to peak."""
    least = np.maximum(np.abs(x), _LOCAL * np.abs(x).max(axis=0))
    return np.where(x.min(axis=0) * x.max(axis=0) > 0, least, _size(x))


def tail(profile: Profile) -> Array:
    """Last coefficients of each interval's polynomials (L,), of what changes are measured by there: the largest."""
    theta = (profile.mesh[:-1, None] + np.diff(profile.mesh)[:, None] * _NODES).ravel()
    x = profile(theta)
    each = x.reshape(-1, DEGREE + 1, x.shape[1])
    last = np.abs(np.einsum("ki,jia->jka", _TO_LEGENDRE[-2:], each)).max(axis=1)
    return (last / local(x).reshape(each.shape).max(axis=1)).max(axis=1)


def refined(profile: Profile, count: int) -> Array:
    """Ends of intervals (count + 1,) that share out what a profile's own intervals leave."""
    density = (tail(profile) + _NOISE) ** (1 / (DEGREE + 1)) / np.diff(profile.mesh)
    smooth = np.maximum(density, (np.roll(density, 1) + np.roll(density, -1)) / 2)
    return _shared(smooth * np.diff(profile.mesh), profile.mesh, count)


def _shared(parts: Array, ends: Array, count: int) -> Array:
    """Ends of count intervals that have the same share of parts, which lie between ends."""
    reached = np.append(0.0, np.cumsum(parts)) / parts.sum()
    return np.interp(np.linspace(0.0, 1.0, count + 1), reached, ends)


def mesh_for(course: Course, count: int) -> Array:
    """Ends of intervals (count + 1,) that share out a solution's slope, curvature, and growth if of one sign."""
    theta = np.linspace(0.0, 1.0, _FINE)
    x = course(theta)
    slope = np.gradient(x / _size(x), theta, axis=0)
    bend = np.sqrt(np.linalg.norm(np.gradient(slope, theta, axis=0), axis=1))
    speed = np.linalg.norm(slope, axis=1)
    density = 0.5 + speed / max(speed.mean(), 1e-300) + bend / max(bend.mean(), 1e-300)
    for state in x.T:
        if state.min() * state.max() > 0:
            growth = np.abs(np.gradient(np.log(np.abs(state)), theta))
            density = density + 3 * growth / max(growth.mean(), _LOG)
    return _shared((density[1:] + density[:-1]) / 2 + 0.05 * density.mean(), theta, count)


def sampled(course: Course, mesh: Array, period: float) -> Profile:
    """A profile through a course."""
    theta = (mesh[:-1, None] + np.diff(mesh)[:, None] * _NODES[1:]).ravel()
    return Profile(mesh, course(theta), period)


def apart(profile: Profile, other: Course) -> float:
    """Largest difference to another course, of each state's peak to peak, with both in step."""
    theta = everywhere(profile.mesh, 2001)
    weight, shown, shift = profile.size, other(theta), 0.0
    for _ in range(3):
        slope, miss = profile.slope(theta + shift) / weight, (shown - profile(theta + shift)) / weight
        shift += float(np.clip((slope * miss).sum() / max((slope**2).sum(), 1e-300), -0.02, 0.02))
    return float((np.abs(shown - profile(theta + shift)) / weight).max())


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
