"""A branch of periodic solutions along a parameter, with its folds, where stable and unstable ones meet and end.

Steps go along the tangent and then at right angles to it (pseudo-arclength), so that a branch is followed around its
folds: there the tangent's part along the parameter changes sign.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from fluidcc.dde.equation import Array
from fluidcc.dde.orbit import Along, Law, Orbit, length, scaled, solve_orbit, tangent

_SHORTEST = 1e-4  # step, of the length of a way across the whole range of the parameter
_LONGEST = 0.5
_FIRST = 0.02
_BENT = 0.3  # of a step: how far from its end the solution may be
_SHORT = 2e-3  # step, of the same; so short a one may end around a corner, where the orbit comes to touch a limit:
_TURNED = 4.0  # of such a step
_GROWTH = 1.5
_MOST, _USUAL = 400, 60  # points
_SECANTS = 8
_PAST = 1.05  # of the way to a point, so that a step of that length does not end before it
_LEVEL = 5e-3  # part of the tangent along the parameter that is none: the fold is off by its square

NO_DIRECTION = "no direction: several branches meet"

LawAt = Callable[[float], Law]


class Point(NamedTuple):
    """An orbit of a branch, and the branch's direction there."""

    orbit: Orbit
    along: Along


class Branch(NamedTuple):
    """Points in order, those at folds (see ``folds``) among them, and why the branch ends at each of its two ends."""

    points: list[Point]
    folds: list[int]
    ends: tuple[str, str]


def point_at(orbit: Orbit, span: float, way: float = 1.0) -> Point | None:
    """The branch's direction at an orbit that lies on it, towards larger (``way`` 1) or smaller values (-1)."""
    along = tangent(orbit, Along(np.zeros_like(orbit.x), 0.0, way * span, span))
    return None if along is None else Point(orbit, along)


def follow(
    law_at: LawAt,
    orbit: Orbit,
    ends: tuple[float, float],
    smallest: float,
    report: Callable[[float], None] = lambda share: None,
) -> Branch:
    """Follow the branch of an orbit both ways.

    Parameters
    ----------
    law_at : callable
        The law at a value of the parameter.
    orbit : Orbit
        Between the ends.
    ends : tuple of float
        Least and largest value of the parameter.
    smallest : float
        Part of the first orbit's size below which a branch ends at an equilibrium.
    report : callable
        Called with about the share that is done.

    Returns
    -------
    Branch
    """
    span = ends[1] - ends[0]
    halves, whys = [], []
    for way in (-1.0, 1.0):
        begin = point_at(orbit, span, way)
        if begin is None:
            halves.append([])
            whys.append(NO_DIRECTION)
            continue
        points, why = [begin], ""
        for point, why in _points(law_at, begin, ends, smallest):  # noqa: B007 (the last is the reason)
            if point is not None:
                points.append(point)
                report(min((sum(map(len, halves)) + len(points)) / _USUAL, 0.99))
        halves.append(points)
        whys.append(why)
    back = [Point(each.orbit, scaled(each.along, -1.0)) for each in reversed(halves[0])]
    points = back[:-1] + (halves[1] or back[-1:])
    return Branch(*_with_folds(law_at, points), (whys[0], whys[1]))


def _points(
    law_at: LawAt, begin: Point, ends: tuple[float, float], smallest: float
) -> Iterator[tuple[Point | None, str]]:
    """Points one after another; the last says why it is."""
    reach, step, here = np.ptp(begin.orbit.x, axis=0), _FIRST, begin
    for _ in range(_MOST):
        new = step_from(law_at, here, step)
        if new is None:
            step /= 2
            if step < _SHORTEST:
                yield None, "lost: no orbit is found further on"
                return
            continue
        point, bent = new
        if not ends[0] <= point.orbit.value <= ends[1]:
            end = min(max(point.orbit.value, ends[0]), ends[1])
            yield None if end == here.orbit.value else at_value(law_at, here, point, end), "the range ends"
            return
        if (np.ptp(point.orbit.x, axis=0) < smallest * reach).all():
            yield point, "it shrinks to an equilibrium"
            return
        yield point, ""
        here = point
        step = min(_LONGEST, step * (_GROWTH if bent < _BENT / 3 else 1.0))
    yield None, f"more than {_MOST} points"


def next_fold(law_at: LawAt, begin: Point, ends: tuple[float, float], smallest: float) -> tuple[Point | None, str]:
    """The first fold on the way along a branch; None, and why it ends, if there is none."""
    here, why = begin, ""
    for point, why in _points(law_at, begin, ends, smallest):  # noqa: B007 (the last is the reason)
        if point is None:
            break
        if here.along.value * point.along.value < 0:
            return fold_between(law_at, here, point), ""
        here = point
    return None, f"no fold: {why}"


def step_from(law_at: LawAt, here: Point, step: float) -> tuple[Point, float] | None:
    """The point a step further along, and how far off straight on it is, of the step; None if there is none near."""
    orbit, along = here
    guess = dataclasses.replace(
        orbit,
        x=orbit.x + step * along.x,
        period=orbit.period + step * along.period,
        value=orbit.value + step * along.value,
    )
    if not guess.period > 0:
        return None
    try:
        guess = dataclasses.replace(guess, law=law_at(guess.value))
        found = solve_orbit(law_at, guess, along)
    except ValueError:  # the parameter makes no sense there
        return None
    if found is None:
        return None
    off = Along(found.x - guess.x, found.period - guess.period, found.value - guess.value, along.span)
    bent = length(orbit, off) / step
    direction = tangent(found, along)
    if bent > (_TURNED if step <= _SHORT else _BENT) or direction is None:
        return None
    return Point(found, direction), bent


def at_value(law_at: LawAt, first: Point, second: Point, value: float) -> Point | None:
    """The point between two at a value of the parameter."""
    share = (value - first.orbit.value) / (second.orbit.value - first.orbit.value)
    guess = dataclasses.replace(
        first.orbit,
        law=law_at(value),
        x=first.orbit.x + share * (second.orbit.x - first.orbit.x),
        period=first.orbit.period + share * (second.orbit.period - first.orbit.period),
        value=value,
    )
    found = solve_orbit(law_at, guess)
    along = None if found is None else tangent(found, first.along)
    return None if found is None or along is None else Point(found, along)


def fold_between(law_at: LawAt, first: Point, second: Point) -> Point:
    """The fold between two points, where the tangent's part along the parameter is 0; by the Illinois method.

    Where that is not found, as next to a corner of the branch, it is the nearer of the two.
    """
    sign = np.sign(first.along.value)
    ends = [(0.0, first), (_PAST * _reach(first, second), second)]
    weights = [1.0, 1.0]
    best = min((first, second), key=_off_fold)
    for _ in range(_SECANTS):
        values = [w * sign * point.along.value / point.along.span for w, (_, point) in zip(weights, ends, strict=True)]
        if abs(best.along.value) <= _LEVEL * best.along.span or values[0] <= values[1]:
            break
        share = ends[0][0] + (ends[1][0] - ends[0][0]) * values[0] / (values[0] - values[1])
        new = step_from(law_at, first, share)
        if new is None:
            break
        best = min((best, new[0]), key=_off_fold)
        side = int(new[0].along.value * sign <= 0)
        # An end that stays twice in a row counts half, or the other would creep.
        weights[1 - side] = weights[1 - side] / 2 if weights[side] == 1.0 else 1.0
        ends[side], weights[side] = (share, new[0]), 1.0
    return best


def _off_fold(point: Point) -> float:
    return abs(point.along.value)


def _with_folds(law_at: LawAt, points: list[Point]) -> tuple[list[Point], list[int]]:
    """The same points with those at folds put in."""
    found: list[Point] = []
    folds: list[int] = []
    for k, point in enumerate(points):
        found.append(point)
        if k + 1 < len(points) and point.along.value * points[k + 1].along.value < 0:
            fold = fold_between(law_at, point, points[k + 1])
            if fold is point or fold is points[k + 1]:
                folds.append(len(found) - (fold is point))
            else:
                folds.append(len(found))
                found.append(fold)
    return found, folds


def _reach(first: Point, second: Point) -> float:
    """Length from a point to another, along the first one's direction."""
    a, b = first.orbit, second.orbit
    size, along = a.size, first.along
    parts: Array = (along.x / size) * ((b.x - a.x) / size)
    rest = along.period * (b.period - a.period) / a.period**2 + along.value * (b.value - a.value) / along.span**2
    return float(parts.mean(axis=0).sum() + rest)
