"""Characteristic roots of linear delay systems: collocation finds them all, Newton's method makes them exact.

>>> roots(DelaySystem(A0=[[0.0]], A=[[[-1.0]]], tau=[1.0]), count=2).s  # -0.318132 +- 1.337236i

Collocation discretises the infinitesimal generator on Chebyshev points (Breda, Maset, Vermiglio, Pseudospectral
differencing methods for characteristic roots of delay differential equations, SIAM J. Sci. Comput. 27 (2005) 482-495).
The history on [-1, 0] is a polynomial of degree N: at 0 it is the state and obeys the equation, at the N other points
its derivative is the shift. Components that no delayed term reads have no history. The argument principle checks how
many roots lie right of a line.

Roots that stay at 0 whatever a parameter is (sums that an equation keeps, and its symmetries) are no crossings, and do
not decide on stability among the states that the sum allows: the other roots near the axis do.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike

from fluidcc.compiling.threads import cores, parallel
from fluidcc.dde.delay_system import Array, DelaySystem
from fluidcc.errors import InputError
from fluidcc.surface import public

_LARGEST = 800  # order of the largest matrix: a second
_BEGIN = 40  # nodes at most to begin with: the first roots found tell how many are needed
_MEMORY = 2**24  # bytes of the matrices that a thread works on
_NEWTON_STEPS = 12
_CONVERGED = 1e-10  # residual of what counts as a root
_MOVED = 1e-3  # by Newton, in units of 1 / (longest delay) and of |s|: farther is another root, or none
_FAR_LEFT = -200.0  # Re s times the longest delay, below which e^(-s tau) says nothing in double precision
_MOST = 2_000_000  # points on the line
_TURN = 0.8  # of half a turn: the most that the determinant's argument can change between neighbours
_BEYOND = 1.5  # the line is followed up to this many times the bound on its roots' frequency
_SINGULAR = 1e-12  # least over largest singular value, scaled: a matrix without inverse, but for where it was taken
_ZERO = 1e-7  # of |A0| + sum |A_k|: a double root that is 0 is found to the square root of rounding
_SAMPLES = 16
_SCALINGS = 8
_LONGEST = 4  # chains


def nodes_needed(system: DelaySystem, sigma: Array) -> Array:
    """N that resolves all roots right of the line Re s = sigma, (batch,); 0 where no delay is read.

    Notes
    -----
    Like Wu and Michiels (Numer. Math. 120, 2012), from a bound on the roots there. For s in that region the
    collocated polynomial differs from e^(s theta) by less than 1e-6 of its largest modulus on [-1, 0]: a fit, within
    one node, to the least N that does, for |s| up to 60 and sigma down to -10. Delays must be in units of the
    longest.
    """
    radius = system.bound(sigma)
    farthest = np.where(sigma < 0, np.hypot(radius, sigma), radius + sigma)
    needed = np.ceil(farthest / 2 + 4 * np.cbrt(farthest) + 2 + 0.4 * np.maximum(-sigma, 0))
    return np.where(system.tau.any(axis=-1), np.minimum(needed, 1e6), 0).astype(int)


def history_columns(system: DelaySystem) -> Array:
    """The states that a delayed term of any system of the batch reads, as indices."""
    return np.flatnonzero((system.A.any(axis=-2) & (system.tau > 0)[..., None]).any(axis=(0, 1)))


def generator(system: DelaySystem, nodes: int) -> Array:
    """Matrices (batch, n + m N, n + m N) whose eigenvalues approximate the roots.

    Parameters
    ----------
    system : DelaySystem
        Normalised: one batch axis, delays at most 1.
    nodes : int
        N; 0 where no delay is read.

    Returns
    -------
    ndarray
        States first, then the m columns with a history, node by node.
    """
    n, columns = system.order, history_columns(system)
    if nodes == 0 or not columns.size:
        return system.A0 + system.A.sum(axis=-3)
    inverse, slopes = _mesh(nodes)
    weights = chebyshev.chebvander(1 - 2 * system.tau, nodes) @ inverse  # (batch, K, N + 1): interpolation at -tau
    size, m = n + columns.size * nodes, columns.size
    matrix = np.zeros((len(system.tau), size, size))
    matrix[:, :n, :n] = system.A0 + np.einsum("bk,bkij->bij", weights[..., 0], system.A)
    unread = np.setdiff1d(np.arange(n), columns)
    if unread.size:  # no history: a column with a positive delay is zero, one without is not delayed
        matrix[:, :n, unread] = (system.A0 + system.A.sum(axis=-3))[:, :, unread]
    lagged = np.einsum("bkp,bkij->bipj", weights[..., 1:], system.A[..., columns])
    matrix[:, :n, n:] = lagged.reshape(-1, n, nodes * m)
    matrix[:, n:, columns] = np.kron(slopes[1:, :1], np.eye(m))
    matrix[:, n:, n:] = np.kron(slopes[1:, 1:], np.eye(m))
    return matrix


@functools.lru_cache(maxsize=256)
def _mesh(nodes: int) -> tuple[Array, Array]:
    """Return matrices on Chebyshev points from 1 to -1: values to coefficients; d/d theta on [-1, 0] (twice d/dx)."""
    points = np.cos(np.pi * np.arange(nodes + 1) / nodes)
    inverse = np.linalg.inv(chebyshev.chebvander(points, nodes))
    slopes = 2 * chebyshev.chebvander(points, nodes - 1) @ chebyshev.chebder(np.eye(nodes + 1)) @ inverse
    return inverse, slopes


class Roots(NamedTuple):
    """Rightmost characteristic roots.

    Parameters
    ----------
    s : ndarray
        Complex [1/s], (..., width): by falling real part, each pair with its mate, the positive imaginary part first;
        multiple roots as often as they count. In a batch, entries beyond ``number`` are fill (NaN).
    residual : ndarray
        (..., width): relative backward error, the least singular value of the characteristic matrix over |s| + |A0| +
        sum |A_k e^(-s tau_k)|.
    number : ndarray of int
        (...,): how many roots these are: ``count``, one more where that would part a pair, fewer where there are no
        more.
    state : ndarray of str
        (...,): "ok", or "unresolved" where some may be missed, because too many roots lie near.
    """

    s: Array
    residual: Array
    number: Array
    state: Array


class Abscissa(NamedTuple):
    """Real part of the rightmost root and its imaginary part, not negative [1/s], residual and state as in `Roots`.

    Where the state is "unresolved" the value is only a lower bound, -inf if no root was found.
    """

    value: Array
    frequency: Array
    residual: Array
    state: Array


@public()
def roots(system: DelaySystem, count: int = 10, *, threads: int | None = None) -> Roots:
    """Rightmost roots of det(s I - A0 - sum A_k e^(-s tau_k)) = 0.

    Parameters
    ----------
    system : DelaySystem
        One, or a batch.
    count : int
        How many.
    threads : int, optional
        Among which to divide a batch; by default one per core.

    Returns
    -------
    Roots

    Raises
    ------
    InputError
        If ``count`` is less than 1.

    Notes
    -----
    Collocation with as many nodes as all roots right of the last one need. Each is
    then corrected by s -= sigma / (u* Delta'(s) v), with the least singular value of Delta(s) and its vectors:
    Newton's method, of second order at semi-simple multiple roots too (at defective ones of first order, and to the
    square root of the precision).
    """
    if count < 1:
        raise InputError(f"count: {count}; ask for 1 root or more")
    scaled, unit = system.normalised()
    batch = len(unit)
    s = np.full((batch, count + 1), complex(np.nan, np.nan))
    residual = np.full((batch, count + 1), np.nan)
    number, resolved = np.zeros(batch, int), np.zeros(batch, bool)
    nodes = _ladder(np.minimum(nodes_needed(scaled, _first_guess(scaled)), _BEGIN))
    largest = max((_LARGEST - system.order) // max(history_columns(scaled).size, 1), 8)
    pending = np.arange(batch)
    while pending.size:
        nodes = np.minimum(nodes, largest)
        parts = [
            part
            for N in np.unique(nodes[pending])
            for part in _chunks(pending[nodes[pending] == N], system.order * (N + 1))
        ]
        work = [(scaled[part], int(nodes[part[0]]), count) for part in parts]
        for part, found in zip(parts, parallel(_attempt, work, threads or cores()), strict=True):
            s[part], residual[part], number[part], complete, needed = found
            resolved[part] = complete & (needed <= nodes[part])
            nodes[part] = np.where(
                resolved[part] | (nodes[part] == largest), -1, _ladder(np.maximum(needed, nodes[part] * 3 // 2 + 1))
            )
        pending = np.flatnonzero(nodes >= 0)
    width = int(number.max(initial=0)) if not system.shape else count + 1
    shape = system.shape
    return Roots(
        (s / unit[:, None])[:, :width].reshape(*shape, width),
        residual[:, :width].reshape(*shape, width),
        number.reshape(shape),
        np.where(resolved, "ok", "unresolved").reshape(shape),
    )


@public()
def abscissa(system: DelaySystem, *, threads: int | None = None) -> Abscissa:
    """The spectral abscissa: the system is stable where it is negative.

    Parameters
    ----------
    system : DelaySystem
        One, or a batch.
    threads : int, optional
        Among which to divide a batch; by default one per core.

    Returns
    -------
    Abscissa
    """
    found = roots(system, 1, threads=threads)
    if not found.s.shape[-1]:
        nothing = np.full(system.shape, -np.inf)
        return Abscissa(nothing, np.zeros(system.shape), np.full(system.shape, np.inf), found.state)
    s, none = found.s[..., 0], found.number == 0
    return Abscissa(
        np.where(none, -np.inf, s.real),
        np.where(none, 0.0, s.imag),
        np.where(none, np.inf, found.residual[..., 0]),
        found.state,
    )


def newton(system: DelaySystem, s: Array, steps: int = _NEWTON_STEPS) -> tuple[Array, Array]:
    """Correct approximate roots (batch, m) of normalised systems; the roots, and their residuals."""
    best, least = s.copy(), np.full(s.shape, np.inf)
    at = s.copy()
    rows, slots = np.nonzero(np.isfinite(s) & (s.real > _FAR_LEFT))
    one = system[rows].balanced(s.real[rows, slots])  # far left e^(-s tau) is large: the residual must not hide there
    for _ in range(1 + steps):
        here = at[rows, slots]
        u, sigma, vh = np.linalg.svd(one.characteristic(here))
        error = sigma[:, -1] / np.maximum(one.size(here), np.finfo(float).tiny)
        better = error < least[rows, slots]
        best[rows[better], slots[better]] = here[better]
        least[rows[better], slots[better]] = error[better]
        slope = (u[:, None, :, -1].conj() @ one.derivative(here) @ vh[:, -1, :, None].conj())[:, 0, 0]
        room = 0.5 * (1 + np.abs(here))
        step = sigma[:, -1] / np.where(np.abs(slope) * room > sigma[:, -1], slope, np.inf)
        going = (error > 1e-15) & ((here - step).real > _FAR_LEFT)
        at[rows, slots] = here - step
        if not going.any():
            break
        rows, slots, one = rows[going], slots[going], one[going]
    return best, least


def _attempt(work: tuple[DelaySystem, int, int]) -> tuple[Array, Array, Array, Array, Array]:
    """Roots and residuals (batch, count + 1), their number, whether that is enough, and the nodes that they need."""
    system, nodes, count = work
    values: Array = np.linalg.eigvals(generator(system, nodes)).astype(complex)
    values = np.where(values.imag >= 0, values, -np.inf)  # the mates follow
    total = min(count, system.order) if nodes == 0 else count
    found = _confirmed(system, values, count, exact=nodes == 0)
    short = np.flatnonzero(found[2] < total)
    if short.size:
        again = _confirmed(system[short], _possible(system[short], values[short]), count)
        for mine, new in zip(found, again, strict=True):
            mine[short] = new
    s, residual, number, last = found
    needed = nodes_needed(system, np.clip(last, _FAR_LEFT, None))
    return s, residual, number, number >= total, needed


def _confirmed(system: DelaySystem, values: Array, count: int, exact: bool = False) -> tuple[Array, ...]:
    """The rightmost eigenvalues corrected: roots and residuals (batch, count + 1), their number, the last abscissa.

    Without delays they are the roots, and stay as they are where Newton's method would merge them (defective ones).
    """
    values = np.take_along_axis(values, np.argsort(-values.real, axis=-1), axis=-1)[:, : count + 2]
    start: Array = np.where(np.isneginf(values.real), complex(np.nan, 0), values)
    s: Array
    s, residual = newton(system, start)
    s.imag[start.imag == 0] = 0  # up to rounding it is
    room = _MOVED * (1 + np.abs(start))
    good = (residual < _CONVERGED) & (np.abs(s - start) <= room)
    same = np.abs(s[:, :, None] - s[:, None, :]) < 1e-9 * (1 + np.abs(s[:, :, None]))
    good &= ~(same & (np.abs(start[:, :, None] - start[:, None, :]) > room[:, :, None])).any(axis=-1)
    if exact:
        s, residual = np.where(good, s, start), np.where(good, residual, newton(system, start, steps=0)[1])
        good = np.isfinite(start)
    # What lies right of an eigenvalue that is no root cannot be complete without it.
    good = np.logical_and.accumulate(good, axis=-1)
    order = np.argsort(np.where(good, -s.real, np.inf), axis=-1, kind="stable")
    s, residual, good, paired = (np.take_along_axis(x, order, -1) for x in (s, residual, good, start.imag > 0))
    weight = np.where(good, 1 + paired, 0)
    before = np.cumsum(weight, axis=-1) - weight
    taken = good & (before < count)
    filled = np.full((len(s), count + 1), complex(np.nan, np.nan))
    errors = np.full((len(s), count + 1), np.nan)
    for mate in (False, True):
        rows, slots = np.nonzero(taken & paired if mate else taken)
        to = before[rows, slots] + mate
        filled[rows, to] = s[rows, slots].conj() if mate else s[rows, slots]
        errors[rows, to] = residual[rows, slots]
    last = np.where(taken, s.real, np.inf).min(axis=-1)
    return filled, errors, (weight * taken).sum(axis=-1), np.where(np.isfinite(last), last, 0.0)


def _possible(system: DelaySystem, values: Array) -> Array:
    """Eigenvalues without those that the bound on the roots rules out, which are not resolved: |Im s| > bound(Re s)."""
    rows, slots = np.nonzero(values.real > _FAR_LEFT)
    at = values[rows, slots]
    out = np.abs(at.imag) > (1 + _MOVED) * system[rows].bound(at.real)
    kept = values.copy()
    kept[rows[out], slots[out]] = -np.inf
    return kept


def _first_guess(system: DelaySystem) -> Array:
    """A line that is likely left of the rightmost root; wrong guesses cost time only."""
    undelayed = np.linalg.eigvals(system.A0 + system.A.sum(axis=-3)).real.max(axis=-1)
    return np.clip(undelayed, -1.0, 0.0)


def _ladder(nodes: Array) -> Array:
    """Rounded up to even numbers, above 32 to multiples of 8, so that systems share matrices of one size."""
    step = np.where(nodes > 32, 8, 2)
    return -(-nodes // step) * step


def _chunks(members: Array, order: int) -> list[Array]:
    return np.array_split(members, -(-len(members) // max(_MEMORY // (8 * order * order), 1)))


@public()
def count_right(system: DelaySystem, sigma: ArrayLike = 0.0) -> Array:
    """Number of roots s with Re s > sigma, multiple ones as often as they count.

    Parameters
    ----------
    system : DelaySystem
        One, or a batch.
    sigma : array_like
        The line [1/s], one for all or one per system.

    Returns
    -------
    ndarray of int
        (...,)

    Raises
    ------
    InputError
        If a root is on the line, as near as double precision can tell, or the line is so far left that its values
        overflow.

    Notes
    -----
    Mikhailov's form of the principle: f(s) = det Delta(s) turns by n pi / 2 - pi Z along the upper half of the line.
    Between two points h apart Delta changes by at most h L with ``L = 1 + sum tau_k |A_k| e^(-sigma tau_k)``, so that
    each eigenvalue of Delta(a)^-1 Delta(b) is within h L / smin(Delta(a)) of 1; intervals are halved until n times
    the arcsine of that is less than half a turn, and the change of the argument is then known, not guessed. From
    where all the matrices together are smaller than ``|s|`` to infinity it is a closed form.
    """
    scaled, unit = system.normalised()
    lines = np.broadcast_to(np.asarray(sigma, float), system.shape).reshape(-1) * unit
    counts = [_count(scaled[i : i + 1], float(line)) for i, line in enumerate(lines)]
    return np.array(counts, int).reshape(system.shape)


def _count(system: DelaySystem, line: float) -> int:
    n = system.order
    with np.errstate(over="ignore"):
        if np.isfinite(np.exp(-line * system.tau)).all():
            system = system.balanced(np.array([line]))
        norms = np.linalg.norm(system.A, axis=(-2, -1))[0] * np.exp(-line * system.tau[0])
    reach = np.linalg.norm(system.A0[0] - line * np.eye(n)) + norms.sum()
    steepest = 1 + (system.tau[0] * norms).sum()
    if not np.isfinite(reach):
        raise InputError(f"sigma: e^(-sigma tau) overflows at {line:.3g} / longest delay; give a line nearer to 0")
    end = _BEYOND * max(reach, 1e-300)
    share = np.sin(np.pi * min(_TURN / n, 0.45))  # of smin that the change may be
    begins, ends = np.array([0.0]), np.array([end])
    turned, points = 0.0, 0
    floor = 1e-14 * (1 + end)
    while begins.size:
        left = system.characteristic(line + 1j * begins[None])[0]
        right = system.characteristic(line + 1j * ends[None])[0]
        smallest = np.linalg.svd(left, compute_uv=False)[:, -1]
        smallest = np.maximum(smallest, np.linalg.svd(right, compute_uv=False)[:, -1])
        width = ends - begins
        sure = width * steepest <= share * smallest
        turn = np.linalg.slogdet(right[sure])[0] * np.linalg.slogdet(left[sure])[0].conj()
        turned += np.angle(turn).sum()
        begins, ends, width = begins[~sure], ends[~sure], width[~sure]
        points += begins.size
        if (begins.size and width.min() < floor) or points > _MOST:
            at = begins[np.argmin(width)]
            raise InputError(
                f"sigma: a root is on the line, at {at:.6g} / longest delay, or too many are near; move the line"
            )
        middle = (begins + ends) / 2
        begins, ends = np.concatenate([begins, middle]), np.concatenate([middle, ends])
    top = line + 1j * end
    last = np.linalg.eigvals(np.eye(n) - system.characteristic(np.array([top]))[0] / (1j * end))
    turned -= np.angle(1 - last).sum()
    zeros = n / 2 - turned / np.pi
    if abs(zeros - round(zeros)) > 1e-6:
        raise ArithmeticError(f"the argument turned by a fraction, {zeros}")
    return round(zeros)


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
