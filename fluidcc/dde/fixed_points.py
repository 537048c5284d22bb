"""Equilibria of an equation: Newton's method from many starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import qmc

from fluidcc.dde.checks import shown, state_of, whole
from fluidcc.dde.equation import Array, Equation, check_autonomous, check_equation
from fluidcc.dde.newton import Found, newton, same
from fluidcc.errors import InputError
from fluidcc.surface import public, refuse_unknown

_MOST = 2**20  # starts
_SAME = 1e-7  # relative to each state: nearer than that two are one
_CLOSE = 1e-6  # of a box: where rounding may have made two of one
_TINY = 1e-280  # a state that falls towards 0 ends below that
_STARTS = (0.1, -0.1, 1.0, -1.0, 10.0, -10.0, 100.0, -100.0, 0.0)  # for all states
_APART = 24  # further starts whose states differ, in sign and from 0.1 to 100
_CONTINUUM = "equilibria lie next to each other (a symmetry, or a sum that the equation keeps)"


@public()
def equilibria(equation: Equation, between: Any, *, starts: int = 256) -> Array:
    """Equilibria in a box: constant solutions.

    Parameters
    ----------
    equation : Equation
        Autonomous.
    between : mapping of str to (float, float), or a pair
        Least and largest value of each state; one pair for all.
    starts : int
        From how many places, spread evenly (Sobol), Newton's method starts: 256 are 256 tries, no proof. An equilibrium
        that no start leads to is missed, and so is one at which the slope vanishes (a fold itself).

    Returns
    -------
    ndarray, shape (count, n)
        By the first state, then the next; count may be 0.

    Raises
    ------
    InputError
        If the box makes no sense, the equation depends on time, or equilibria form a continuum.
    """
    check_equation(equation)
    low, high = _box(equation, between)
    starts = whole("starts", starts)
    if starts > _MOST:
        raise InputError(f"starts: {starts}; give at most {_MOST}")
    check_autonomous(equation)
    places = qmc.Sobol(len(low), rng=0).random_base2(int(np.ceil(np.log2(starts))))
    found = newton(equation, low + places * (high - low), np.tile(equation.vector, (len(places), 1)))
    room = _SAME * (high - low)  # beyond the edges
    inside = found.good & (found.x >= low - room).all(axis=1) & (found.x <= high + room).all(axis=1)
    order = np.flatnonzero(inside)
    kept: list[int] = []
    for i in order[np.lexsort(found.x[order].T[::-1])]:
        if not _alike(equation, found, int(i), kept, high - low).any():
            kept.append(int(i))
    rows = found.x[kept].reshape(-1, len(low))
    loose = rows[found.singular[kept]] if kept else rows
    if len(loose) > 1:
        raise InputError(
            f"between: {_CONTINUUM}: {_told(loose[0])} and {_told(loose[len(loose) // 2])} are two of {len(loose)} "
            "found; name the one that you mean as at="
        )
    return rows


def equilibrium_near(equation: Equation, at: Any = None) -> Array:
    """The equilibrium (n,) that Newton's method finds from a state.

    If none is given, from 0, +-0.1, +-1, +-10 and +-100 for all states, and of several states from 24 more where they
    differ, as long as no two of these lead to different ones.

    Raises
    ------
    InputError
        If it finds none, or several.
    """
    check_equation(equation)
    n = len(equation.states)
    guesses = _starts(n) if at is None else [state_of(equation, at, "at")]
    check_autonomous(equation)
    found = newton(equation, np.array(guesses), np.tile(equation.vector, (len(guesses), 1)))
    if not found.good.any():
        where = "several starts" if at is None else _told(guesses[0])
        raise InputError(
            f"at: no equilibrium found from {where}; give a state near one, or look with fluidcc.delay.equilibria"
        )
    places = np.flatnonzero(found.good)
    apart = ~_alike(equation, found, int(places[0]), places, np.abs(guesses).max(axis=0))
    if apart.any():
        other = int(places[np.argmax(apart)])
        one, two = found.x[places[0]], found.x[other]
        what = _CONTINUUM if found.singular[[places[0], other]].all() else "there are several equilibria"
        raise InputError(f"at: {what}, {_told(one)} and {_told(two)} among them; say near which, at=[...]")
    x, blur = found.x[places[0]], found.blur[places[0]]
    if at is not None and found.singular[places[0]] and (np.abs(x - guesses[0]) > _SAME * np.abs(x) + blur).any():
        raise InputError(
            f"at: {_CONTINUUM}; {_told(guesses[0])} is none itself, and {_told(x)} is only one near by; give one to "
            "all digits, or leave out a state by what is kept"
        )
    return x


def _starts(n: int) -> list[Array]:
    """Return the default starts of a search: all states equal, and states apart."""
    alike = [np.full(n, v) for v in _STARTS]
    if n == 1:
        return alike
    places = qmc.Sobol(2 * n, rng=0).random(_APART + 8)[:_APART]
    return alike + list(np.where(places[:, n:] < 0.5, -1.0, 1.0) * 10 ** (3 * places[:, :n] - 1))


def _alike(equation: Equation, found: Found, i: int, others: Any, scale: Array) -> Array:
    """Check whether a start led to the equilibrium of others (count,): each state in its own units, or by the slope."""
    x, y = found.x[i], found.x[others]
    away = np.abs(x - y)
    room = _SAME * np.maximum(np.abs(x), np.abs(y)) + found.blur[i] + found.blur[others] + _TINY
    alike = (away <= room).all(axis=-1)
    rest = np.flatnonzero(~alike & (away <= _CLOSE * scale).all(axis=-1))
    if len(rest):
        alike[rest] = same(equation, x, y[rest])
    return alike


def _told(x: Array) -> str:
    return "(" + ", ".join(f"{v + 0.0:.6g}" for v in x) + ")"


def _box(equation: Equation, between: Any) -> tuple[Array, Array]:
    if isinstance(between, Mapping):
        refuse_unknown(between, equation.states, "between")
        missing = [state for state in equation.states if state not in between]
        if missing:
            raise InputError(f"between: {missing[0]} is missing; give a pair for each of {', '.join(equation.states)}")
        pairs = [between[state] for state in equation.states]
    else:
        pairs = [between] * len(equation.states)
    try:
        box = np.array(pairs, float)
    except (TypeError, ValueError, OverflowError):
        box = np.empty(0)
    if box.shape != (len(equation.states), 2) or not np.isfinite(box).all() or (box[:, 0] >= box[:, 1]).any():
        example = ", ".join(f"{state!r}: (0, 1)" for state in equation.states)
        raise InputError(f"between: {shown(between)}; give least and largest, for example {{{example}}}")
    return box[:, 0], box[:, 1]
