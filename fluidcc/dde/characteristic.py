"""Characteristic roots of linear delay systems: collocation finds them all, Newton's method makes them exact.

>>> roots(DelaySystem(A0=[[0.0]], A=[[[-1.0]]], tau=[1.0]), count=2).s  # -0.318132 +- 1.337236i
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fluidcc.compiling.threads import cores, parallel
from fluidcc.dde.delay_system import Array, DelaySystem
from fluidcc.dde.spectral import generator, history_columns, nodes_needed
from fluidcc.errors import InputError
from fluidcc.surface import public

_LARGEST = 800  # order of the largest matrix: a second
_BEGIN = 40  # nodes at most to begin with: the first roots found tell how many are needed
_MEMORY = 2**24  # bytes of the matrices that a thread works on
_NEWTON_STEPS = 12
_CONVERGED = 1e-10  # residual of what counts as a root
_MOVED = 1e-3  # by Newton, in units of 1 / (longest delay) and of |s|: farther is another root, or none
_FAR_LEFT = -200.0  # Re s times the longest delay, below which e^(-s tau) says nothing in double precision


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
    Collocation (`dde.spectral`) with as many nodes as all roots right of the last one need. Each is
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
