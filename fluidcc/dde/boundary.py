"""Curves on which a function of two parameters is zero: followed from point to point, not read off a grid.

A grid gives the starts, one on each of its edges whose ends differ in sign. From all of them at once the curve is
followed by tangent and correction (predictor and corrector of numerical continuation), the positive side on the right,
until each meets the next start, or ends at the rim of the grid or of the function's domain. Lengths are in
cells of the grid, so that any spacing of its values will do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fluidcc.dde.delay_system import Array

_SECANTS = 40  # steps to a start; a third do for most
_CLOSE = 1e-9  # cells: a change that counts as none
_KINK = 1.0  # cells between two ends that are one
_JUMP = 1e-3  # of the lesser end's value: more is left where a function jumps
_ROUNDING = 1e-12  # of the greater end's value: nothing, where a curve goes through a corner of the grid
_STEP = 0.25  # cells from point to point
_CORRECTIONS = 6
_ASIDE = 1e-4  # cells, for slopes
_MEETS = 0.5  # steps
_FAR = 16.0  # cells that a curve is followed without meeting another start


def traced(function: Callable[[Array], Array], axes: tuple[Array, Array], values: Array) -> list[Array]:
    """Curves on which a function is zero.

    Parameters
    ----------
    function : callable
        ``function(places) -> values``, (n, 2) to (n,); NaN where it is not defined.
    axes : tuple of ndarray
        Values of the two parameters, rising or falling.
    values : ndarray, shape of the grid
        The function there.

    Returns
    -------
    list of ndarray
        Points (n, 2) in order along each curve; a closed one ends where it began. Where the function jumps from one
        sign to the other there is nothing to follow: such points are curves of their own, (1, 2).
    """
    if min(values.shape) < 2:
        return []

    def at(cells: Array) -> Array:
        places = [np.interp(cells[:, k], np.arange(len(axis)), axis) for k, axis in enumerate(axes)]
        inside = ((cells >= 0) & (cells <= np.array(values.shape) - 1)).all(axis=1)
        return np.where(inside, function(np.stack(places, axis=1)), np.nan) if len(cells) else np.empty(0)

    starts, jumps = _starts(at, values)
    curves = _chains(starts, *_followed(at, starts)) if len(starts) else []
    curves += [place[None] for place in jumps]
    return [np.stack([np.interp(c[:, k], np.arange(len(a)), a) for k, a in enumerate(axes)], axis=1) for c in curves]


def _starts(at: Callable[[Array], Array], values: Array) -> tuple[Array, Array]:
    """A zero or a jump on each edge whose ends differ in sign, (n, 2) in cells each; by the Illinois method."""
    low, high, at_low, at_high = [], [], [], []
    for axis in (0, 1):
        a = np.take(values, range(values.shape[axis] - 1), axis=axis)
        b = np.take(values, range(1, values.shape[axis]), axis=axis)
        found = np.argwhere(a * b < 0)
        low.append(found)
        high.append(found + np.eye(2, dtype=int)[axis])
        at_low.append(a[tuple(found.T)])
        at_high.append(b[tuple(found.T)])
    start, end = np.concatenate(low).astype(float), np.concatenate(high).astype(float)
    first, last = np.concatenate(at_low), np.concatenate(at_high)
    lesser, greater = np.sort(np.abs([first, last]), axis=0)
    count = len(start)
    left, right, moved, share = np.zeros(count), np.ones(count), np.zeros(count), np.zeros(count)
    open_ = np.arange(count)
    for _ in range(_SECANTS):
        if not len(open_):
            break
        o = open_
        before = share[o]
        share[o] = (left[o] * last[o] - right[o] * first[o]) / (last[o] - first[o])
        value = at(start[o] + share[o, None] * (end[o] - start[o]))
        as_first = value * first[o] > 0
        # An end that stays twice in a row counts half, or the other would creep.
        last[o] = np.where(as_first, np.where(moved[o] == 1, last[o] / 2, last[o]), value)
        first[o] = np.where(as_first, value, np.where(moved[o] == 2, first[o] / 2, first[o]))
        left[o], right[o] = np.where(as_first, share[o], left[o]), np.where(as_first, right[o], share[o])
        moved[o] = np.where(as_first, 1, 2)
        open_ = o[(np.abs(share[o] - before) >= _CLOSE) & (value != 0) & np.isfinite(value)]
    found = start + share[:, None] * (end - start)
    remains = at(found)
    known = np.isfinite(share) & np.isfinite(remains)  # an edge may cross where nothing is defined
    zero = np.abs(remains) < np.maximum(_JUMP * lesser, _ROUNDING * greater)
    starts = found[known & zero]
    same = np.abs(starts[:, None] - starts[None]).max(axis=2) < _CLOSE  # on both edges of a corner
    return starts[~np.triu(same, 1).any(axis=0)], found[known & ~zero]


def _jacobians(at: Callable[[Array], Array], cells: Array) -> tuple[Array, Array]:
    """Values (n,) and gradients (n, 2) per cell; the latter one-sided at the rim."""
    aside = _ASIDE * np.eye(2)
    all_ = at(np.concatenate([cells, cells + aside[0], cells - aside[0], cells + aside[1], cells - aside[1]]))
    here, *sides = np.split(all_, 5)
    gradient = []
    for up, down in (sides[:2], sides[2:]):
        both = (up - down) / (2 * _ASIDE)
        one = np.where(np.isfinite(up), up - here, here - down) / _ASIDE
        gradient.append(np.where(np.isfinite(both), both, one))
    return here, np.stack(gradient, axis=1)


def _followed(at: Callable[[Array], Array], starts: Array) -> tuple[list[list[Array]], Array]:
    """Follow the curve from each start; return its points and the start that it reaches next, -1 if it ends before."""
    count = len(starts)
    paths: list[list[Array]] = [[] for _ in range(count)]
    following = np.full(count, -1)
    here, open_ = starts.copy(), np.arange(count)
    _, gradient = _jacobians(at, here)
    for _ in range(round(_FAR / _STEP)):
        tangent = np.stack([-gradient[:, 1], gradient[:, 0]], axis=1)
        tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
        ahead = here[open_] + _STEP * tangent
        # The next start lies about on the way to the predicted point.
        aim = starts[None] - here[open_, None]
        along = np.einsum("isk,ik->is", aim, tangent)
        off = np.abs(np.einsum("isk,ik->is", aim, np.stack([-tangent[:, 1], tangent[:, 0]], axis=1)))
        along[np.arange(len(open_)), open_] = np.where(
            np.array([len(paths[i]) > 2 for i in open_]), along[np.arange(len(open_)), open_], np.inf
        )
        near = (along > _CLOSE) & (along <= _STEP * (1 + _MEETS)) & (off < _MEETS * _STEP)
        nearest = np.where(near, along, np.inf).argmin(axis=1)
        met = near.any(axis=1)
        following[open_[met]] = nearest[met]
        go = ~met & np.isfinite(tangent).all(axis=1)
        open_, ahead, normal = open_[go], ahead[go], gradient[go]
        if not len(open_):
            break
        normal = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        slope = np.linalg.norm(gradient[go], axis=1)
        ahead, good = _corrected(at, ahead, normal, slope)
        open_, ahead = open_[good], ahead[good]
        if not len(open_):
            break
        here[open_] = ahead
        for i, place in zip(open_, ahead, strict=True):
            paths[i].append(place)
        _, gradient = _jacobians(at, ahead)
    return paths, following


def _corrected(at: Callable[[Array], Array], cells: Array, normal: Array, slope: Array) -> tuple[Array, Array]:
    """Points moved along a normal to where the function is zero, and whether that came out."""
    t, value = np.zeros(len(cells)), at(cells)
    good = np.isfinite(value)
    change = np.full(len(cells), np.inf)
    for _ in range(_CORRECTIONS):
        step = np.clip(-value / slope, -_STEP, _STEP)
        new = at(cells + (t + step)[:, None] * normal)
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = np.where(np.abs(step) > 1e-12, (new - value) / step, slope)
        t, value, change = t + step, new, np.abs(step)
        if not (good & (change > _CLOSE * 1e2)).any():
            break
    good &= np.isfinite(value) & (change < _MEETS * _STEP) & (np.abs(t) < 2 * _STEP)
    return cells + t[:, None] * normal, good


def _chains(starts: Array, paths: list[list[Array]], following: Array) -> list[Array]:
    """Segments joined to curves; those that begin at an end of a curve first, then closed ones."""
    heads = [i for i in range(len(starts)) if i not in set(following.tolist())]
    left, curves = set(range(len(starts))), []
    for first in [*heads, *range(len(starts))]:
        if first not in left:
            continue
        curve, at = [], first
        while at >= 0 and at in left:
            left.discard(at)
            curve += [starts[at], *paths[at]]
            at = int(following[at])
        if at >= 0:
            curve.append(starts[at])
        curves.append(np.array(curve))
    return _joined(curves)


def _joined(curves: list[Array]) -> list[Array]:
    """Curves of which one ends where another begins, but for a step or two: a kink, around which neither went."""
    done: list[Array] = []
    while curves:
        curve = curves.pop(0)
        gaps = [np.linalg.norm(curve[-1] - other[0]) for other in curves]
        if len(curve) > 1 and not np.array_equal(curve[0], curve[-1]) and gaps and min(gaps) <= _KINK:
            other = curves.pop(int(np.argmin(gaps)))
            curves.insert(0, np.concatenate([curve, other]))
        else:
            done.append(curve)
    return done
