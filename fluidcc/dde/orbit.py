"""Periodic solutions of equations with corners and limits, such as queues that empty and marking that jumps.

The period has equal steps, each taken by Heun's method and put back within limits. What is observed late lies on lines
between the steps' ends, and a step in which it crosses the place where the equation jumps is divided there.
So the residual has corners, but no jumps, and Newton's method with the slopes of the piece where it is converges.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import splu

from fluidcc.dde.equation import Array
from fluidcc.dde.periodic import ONE, Linear, floquet

_STEPS = 30
_CONVERGED = 1e-8  # of a last step, after which Newton's method leaves rounding
_HALVINGS = 4  # of a step that misses by more than the one before
_PATIENCE = 12  # steps after which they have to miss by less and less
_FARTHEST = 0.3  # of a state's modulus, in a step
_SIDE = 1e-6  # of a step's change: each side of a jump


class Rates(NamedTuple):
    """Right-hand side f(x, u) at some places, and its derivatives."""

    slope: Array  # (places, n)
    own: Array  # (places, n, n) by the state
    gain: Array  # (places, n, k) by what is observed
    by: Array  # (places, n) by the parameter


class Limited(NamedTuple):
    """States as limits let them be, and their derivatives."""

    x: Array  # (places, n)
    own: Array  # (places, n, n) by the state before
    by: Array  # (places, n) by the parameter


class Law(Protocol):
    """An equation x' = f(x(t), C x(t - lag)) at one value of its parameter, with limits to x."""

    @property
    def observed(self) -> Array:
        """Matrix C (k, n)."""
        ...

    @property
    def lag(self) -> tuple[float, float]:
        """The lag, and its derivative by the parameter."""
        ...

    @property
    def jump(self) -> tuple[int, float, float]:
        """Row of C x at a value of which f jumps, that value (inf: nowhere), and its derivative by the parameter."""
        ...

    def rates(self, x: Array, u: Array) -> Rates:
        """F at states (places, n) and observed values (places, k)."""
        ...

    def limits(self, x: Array) -> Limited:
        """Put states (places, n) back within limits."""
        ...


class Along(NamedTuple):
    """Direction of a branch: of the states (steps, n), the period and the parameter, and the parameter's scale."""

    x: Array
    period: float
    value: float
    span: float


@dataclasses.dataclass(frozen=True, eq=False)
class Orbit:
    """A periodic solution.

    Parameters
    ----------
    law : Law
    x : ndarray, shape (steps, n)
        States at the end of each step; the last is also the first one's beginning.
    period : float
    value : float
        Of the parameter.
    """

    law: Law
    x: Array
    period: float
    value: float

    @property
    def size(self) -> Array:
        """Largest modulus of each state (n,)."""
        return np.maximum(np.abs(self.x).max(axis=0), 1e-300)

    @cached_property
    def _linear(self) -> Linear:
        return linear(self.law, self.x, self.period, curved=True)

    @cached_property
    def multipliers(self) -> Array:
        """Floquet multipliers of largest modulus, complex: that of a shift in time, which is 1, then the largest."""
        grow = floquet(self._linear, self.x.size)
        one = int(np.abs(grow - 1).argmin())
        return np.concatenate([grow[[one]], np.delete(grow, one)])

    def multipliers_of(self, states: Array) -> Array:
        """Floquet multipliers of some of the states (indices) while the others stay as they are, the largest first."""
        at, (n, m) = self._linear, self.x.shape
        place = np.full(m, -1)
        place[states] = np.arange(len(states))
        row, column = place[at.rows % m], place[at.columns % m]
        kept = (row >= 0) & (column >= 0)
        count = len(states)
        part = at._replace(
            rows=(at.rows // m * count + row)[kept],
            columns=(at.columns // m * count + column)[kept],
            back=at.back[kept],
            entries=at.entries[kept],
        )
        return floquet(part, n * count)


def linear(law: Law, x: Array, period: float, *, curved: bool = False) -> Linear:
    """Residual of each step (the equations), and its derivatives by states, period and parameter.

    With ``curved`` the time of a crossing depends on the states as on a cubic through four ends of steps, not as on a
    line: no derivative of the residual, but closer to that of the equation.
    """
    n, m = x.shape
    h, at = period / n, np.arange(n)
    late = law.lag[0] / h
    before, after = _between(x, at - 1 - late), _between(x, at - late)
    u = before.x @ law.observed.T, after.x @ law.observed.T
    row, level, _ = law.jump
    step = _step(law, x[at - 1], x, u, _slope(u[1][:, row], level, curved), h)
    by_before, by_after = step.by_before @ law.observed, step.by_after @ law.observed
    parts = [
        (at, np.broadcast_to(np.eye(m), (n, m, m))),
        (at - 1, step.by_state),
        (before.first, by_before * (1 - before.share)[:, None, None]),
        (before.first + 1, by_before * before.share[:, None, None]),
        (after.first, by_after * (1 - after.share)[:, None, None]),
        (after.first + 1, by_after * after.share[:, None, None]),
    ]
    # A longer lag, in steps, looks further back.
    later = -np.einsum("kab,kb->ka", by_before, before.slope) - np.einsum("kab,kb->ka", by_after, after.slope)
    rows, columns, back, entries = [], [], [], []
    for node, block in parts:
        own = np.arange(m)
        rows.append(np.broadcast_to((at[:, None] * m + own)[:, :, None], block.shape).ravel())
        columns.append(np.broadcast_to(((node % n)[:, None] * m + own)[:, None, :], block.shape).ravel())
        back.append(np.broadcast_to(-(node // n)[:, None, None], block.shape).ravel())
        entries.append(block.ravel())
    return Linear(
        rows=np.concatenate(rows),
        columns=np.concatenate(columns),
        back=np.concatenate(back),
        entries=np.concatenate(entries),
        residual=step.residual.ravel(),
        by_period=(step.by_h / n - later * late / period).ravel(),
        by_vector=(step.by_value + later * law.lag[1] / h).reshape(n * m, 1),
    )


def _slope(ends: Array, level: float, curved: bool) -> Array:
    """Change of a value in a step, where it crosses a level, from its values at the ends of all steps."""
    before, first, last, after = (np.roll(ends, k) for k in (2, 1, 0, -1))
    width = last - first
    if not curved:
        return width
    crosses = (first <= level) != (last <= level)
    s = np.where(crosses, (level - first) / np.where(crosses, width, 1.0), 0.0)
    # Derivative of Lagrange's cubic through -1, 0, 1 and 2.
    weights = (
        -(3 * s**2 - 6 * s + 2) / 6,
        (3 * s**2 - 4 * s - 1) / 2,
        -(3 * s**2 - 2 * s - 2) / 2,
        (3 * s**2 - 1) / 6,
    )
    found = sum((w * each for w, each in zip(weights, (before, first, last, after), strict=True)), np.zeros(len(s)))
    return np.where(crosses & (found * width > 0), found, width)


class _Late(NamedTuple):
    x: Array  # (n, m) states there
    slope: Array  # (n, m) by the place, in steps
    first: Array  # (n,) step whose end lies before
    share: Array  # (n,) of the way to the next


def _between(x: Array, place: Array) -> _Late:
    """States on lines between the steps' ends, at places counted in steps."""
    first = np.floor(place).astype(int)
    share, n = place - first, len(x)
    left, right = x[first % n], x[(first + 1) % n]
    return _Late(left + share[:, None] * (right - left), right - left, first, share)


class _Step(NamedTuple):
    residual: Array  # (n, m)
    by_state: Array  # (n, m, m)
    by_before: Array  # (n, m, k) each
    by_after: Array
    by_h: Array  # (n, m) each
    by_value: Array


class _Moved(NamedTuple):
    """Ends (n, m) of steps, and their derivatives as of `_Step`; ``speed`` is that by the step's length."""

    x: Array
    by_state: Array
    by_before: Array
    by_after: Array
    speed: Array
    by_value: Array


def _step(law: Law, x0: Array, x1: Array, u: tuple[Array, Array], slope: Array, h: float) -> _Step:
    """Residual of steps from x0 to x1 in which u is observed at both ends, divided where that crosses the jump.

    ``slope`` (n,) is by how much the observed value changes in a step, where it crosses.
    """
    row, level, level_by = law.jump
    u0, u1 = u
    first, last = u0[:, row], u1[:, row]
    crosses = (first <= level) != (last <= level)
    share = np.where(crosses, (level - first) / np.where(crosses, last - first, 1.0), 1.0)
    middle = u0 + share[:, None] * (u1 - u0)
    below, above = middle.copy(), middle.copy()
    aside = _SIDE * (last - first)
    below[:, row] -= np.where(crosses, aside, 0.0)
    above[:, row] += np.where(crosses, aside, 0.0)
    one = _heun(law, x0, u0, below, share * h)
    two = _heun(law, one.x, above, u1, (1 - share) * h)
    # The observed value at a crossing is the jump's: only its time depends on the ends.
    free = np.ones((len(x0), 1, u0.shape[1]))
    free[:, 0, row] = ~crosses
    s = share[:, None, None]
    held = one.by_after * free, two.by_before * free
    by_middle = two.by_state @ held[0] + held[1]
    by_before = two.by_state @ one.by_before + (1 - s) * by_middle
    by_after = two.by_after + s * by_middle
    # A later crossing makes the first part longer, and what is observed in the middle another.
    across = np.einsum("kab,kb->ka", by_middle, u1 - u0)
    by_share = across + h * (np.einsum("kab,kb->ka", two.by_state, one.speed) - two.speed)
    by_share = np.where(crosses[:, None], by_share / np.where(crosses, slope, 1.0)[:, None], 0.0)
    by_before[:, :, row] -= (1 - share)[:, None] * by_share
    by_after[:, :, row] -= share[:, None] * by_share
    by_level = two.by_state @ (one.by_after - held[0]) + (two.by_before - held[1])
    by_h = share[:, None] * np.einsum("kab,kb->ka", two.by_state, one.speed) + (1 - share)[:, None] * two.speed
    by_value = np.einsum("kab,kb->ka", two.by_state, one.by_value) + two.by_value
    return _Step(
        residual=x1 - two.x,
        by_state=-two.by_state @ one.by_state,
        by_before=-by_before,
        by_after=-by_after,
        by_h=-by_h,
        by_value=-by_value - (by_share + by_level[:, :, row]) * level_by,
    )


def _heun(law: Law, x: Array, u0: Array, u1: Array, dt: Array) -> _Moved:
    """Heun's method from states (n, m), a step of its own length (n,) each, within limits at both of its stages."""
    h, H = dt[:, None], dt[:, None, None]
    here = law.rates(x, u0)
    end = law.limits(x + h * here.slope)
    there = law.rates(end.x, u1)
    by_end = there.own @ end.own
    # Derivatives of the second slope.
    own = by_end + H * by_end @ here.own
    gain = H * by_end @ here.gain
    by_dt = np.einsum("kab,kb->ka", by_end, here.slope)
    by = h * np.einsum("kab,kb->ka", by_end, here.by) + np.einsum("kab,kb->ka", there.own, end.by) + there.by
    new = law.limits(x + h / 2 * (here.slope + there.slope))
    P = new.own
    speed = (here.slope + there.slope + h * by_dt) / 2
    return _Moved(
        x=new.x,
        by_state=P + H / 2 * P @ (here.own + own),
        by_before=H / 2 * P @ (here.gain + gain),
        by_after=H / 2 * P @ there.gain,
        speed=np.einsum("kab,kb->ka", P, speed),
        by_value=h / 2 * np.einsum("kab,kb->ka", P, here.by + by) + new.by,
    )


def solve_orbit(law_at: Callable[[float], Law], guess: Orbit, along: Along | None = None) -> Orbit | None:
    """Newton's method from a guess, with as many steps.

    Parameters
    ----------
    law_at : callable
        The law at a value of the parameter.
    guess : Orbit
    along : Along, optional
        The parameter is unknown as well, and the way from the guess to the solution is at right angles to this.

    Returns
    -------
    Orbit or None
        None if it does not converge, or ends at an equilibrium.
    """
    rows = _rows(guess, along)
    scale = np.append(np.tile(guess.size, len(guess.x)), guess.period)
    if along is not None:
        scale = np.append(scale, along.span)

    def equations(at: Orbit) -> tuple[Linear, Array, float]:
        """Linear equations, their right-hand side, and by how much the steps miss."""
        found = linear(at.law, at.x, at.period)
        away = np.append((at.x - guess.x).ravel(), [at.period - guess.period, at.value - guess.value])
        extra = [rows[0] @ away[:-2]] if along is None else [rows[0] @ away[:-2], rows[1] @ away]
        return found, np.append(found.residual, extra), float(np.linalg.norm(found.residual / scale[: at.x.size]))

    here = guess
    at, right, misses = equations(here)
    best = misses
    for k in range(_STEPS):
        columns = [at.by_period] if along is None else [at.by_period, at.by_vector[:, 0]]
        move = swept(at, columns, rows, right, scale)
        if move is None:
            return None
        most = float(np.abs(move / scale).max())
        share, new, after = min(1.0, _FARTHEST / max(most, 1e-300)), here, misses
        for _ in range(_HALVINGS):
            value = here.value if along is None else here.value - share * float(move[-1])
            new = Orbit(
                here.law if along is None else law_at(value),
                here.x - share * move[: here.x.size].reshape(here.x.shape),
                here.period - share * float(move[here.x.size]),
                value,
            )
            if not new.period > 0:
                return None
            if share == 1.0 and most < _CONVERGED:
                moves = (np.ptp(new.x, axis=0) > ONE * new.size).any()
                return new if moves else None
            at, right, after = equations(new)
            if after < misses:
                break
            share /= 2
        here, misses = new, after
        best = min(best, misses)
        if k > _PATIENCE and misses > best:
            return None
    return None


def swept(at: Linear, columns: list[Array], rows: list[Array], right: Array, scale: Array) -> Array | None:
    """Solve the linear equations of all steps, with columns and rows next to those of the states.

    Each step follows from those before it, so that all follow, step by step, from the few states of the period before
    that are still observed in this one: only these and the additional unknowns are solved for together.

    Parameters
    ----------
    at : Linear
    columns, rows : list of ndarray
        By additional unknowns (equations,), and of additional equations (unknowns,) or (states,).
    right : ndarray
    scale : ndarray
        Sizes of all unknowns; a step's residual is of the size of its state.

    Returns
    -------
    ndarray or None
        None where the equations are singular or not finite.
    """
    size, more = len(at.residual), len(columns)
    own, other = scale[:size], scale[size:]
    entries = at.entries * own[at.columns] / own[at.rows]
    given = np.stack([right[:size], *(-each * one for each, one in zip(columns, other, strict=True))], axis=1)
    given = given / own[:, None]
    if not (np.isfinite(entries).all() and np.isfinite(given).all()):
        return None
    now, past = at.back == 0, at.back > 0
    carried, place = np.unique(at.columns[past], return_inverse=True)
    before = coo_matrix((-entries[past], (at.rows[past], place)), shape=(size, len(carried))).toarray()
    matrix = coo_matrix((entries[now], (at.rows[now], at.columns[now])), shape=(size, size)).tocsc()
    try:
        steps = splu(matrix, permc_spec="NATURAL", diag_pivot_thresh=0.0)
    except RuntimeError:  # singular
        return None
    # States as a constant, and by the additional unknowns and those carried over.
    states = steps.solve(np.concatenate([given, before], axis=1))
    whole = np.zeros((len(carried) + more, len(carried) + more))
    held = np.zeros(len(carried) + more)
    held[: len(carried)] = states[carried, 0]
    whole[: len(carried), : len(carried)] = np.eye(len(carried)) - states[carried, 1 + more :]
    whole[: len(carried), len(carried) :] = -states[carried, 1 : 1 + more]
    for k, row in enumerate(rows):
        weights = row[:size] * own
        by = weights @ states
        largest = max(np.abs(weights).max(), 1e-300)
        whole[len(carried) + k, : len(carried)] = by[1 + more :] / largest
        whole[len(carried) + k, len(carried) :] = by[1 : 1 + more] / largest
        extra = row[size:] * other[: len(row) - size]
        whole[len(carried) + k, len(carried) : len(carried) + len(extra)] += extra / largest
        held[len(carried) + k] = (right[size + k] - by[0]) / largest
    if not (np.isfinite(whole).all() and np.isfinite(held).all()):
        return None
    try:
        found = np.linalg.solve(whole, held)
    except np.linalg.LinAlgError:
        return None
    first, added = found[: len(carried)], found[len(carried) :]
    x = states[:, 0] + states[:, 1 : 1 + more] @ added + states[:, 1 + more :] @ first
    return np.concatenate([x * own, added * other])


def tangent(orbit: Orbit, along: Along) -> Along | None:
    """Direction of the branch at one of its orbits, of length 1 (`length`), turned as ``along`` is."""
    at = linear(orbit.law, orbit.x, orbit.period)
    scale = np.append(np.tile(orbit.size, len(orbit.x)), [orbit.period, along.span])
    right = np.append(np.zeros(orbit.x.size + 1), 1.0)
    found = swept(at, [at.by_period, at.by_vector[:, 0]], _rows(orbit, along), right, scale)
    if found is None:
        return None
    new = Along(found[: orbit.x.size].reshape(orbit.x.shape), float(found[-2]), float(found[-1]), along.span)
    return scaled(new, 1 / length(orbit, new))


def scaled(along: Along, by: float) -> Along:
    """The same direction, so many times as long."""
    return Along(by * along.x, by * along.period, by * along.value, along.span)


def length(orbit: Orbit, way: Along) -> float:
    """Length of a way from an orbit: of its states, period and parameter, each by its size."""
    squares = (
        ((way.x / orbit.size) ** 2).mean(axis=0).sum(),
        (way.period / orbit.period) ** 2,
        (way.value / way.span) ** 2,
    )
    return float(np.sqrt(sum(squares)))


def _rows(guess: Orbit, along: Along | None) -> list[Array]:
    """Return rows of the phase condition, which keeps a solution in step with the guess, and of a direction."""
    n, size = len(guess.x), guess.size
    moves = (np.roll(guess.x, -1, axis=0) - np.roll(guess.x, 1, axis=0)) * (n / 2)
    rows = [(moves / size**2 / n).ravel()]
    if along is not None:
        weighted = (along.x / size**2 / n).ravel()
        rows.append(np.append(weighted, [along.period / guess.period**2, along.value / along.span**2]))
    return rows
