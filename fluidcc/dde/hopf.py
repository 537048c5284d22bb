"""Values of a parameter at which characteristic roots cross the imaginary axis: Hopf points, and folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from fluidcc.dde.characteristic import roots, size, structural, without
from fluidcc.dde.checks import check_parameter, shown, whole
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.dde.equation import Array, Equation, check_equation
from fluidcc.dde.fixed_points import equilibrium_near, followed, newton
from fluidcc.dde.linear import systems
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.surface import constructor, public

_COUNT = 8  # roots to begin with
_MOST = 256
_CHUNK = 256  # systems between two reports
_ROUNDING = 4 * np.finfo(float).eps
_REAL = 1e-11  # |Im s| over |A0| + sum |A_k|: less is a real root
_AT_AN_END = 1e-7  # the same of |Re s|: less may have been counted on the wrong side
_BESIDE = 0.01  # of a state: how far off the line between two equilibria the next may be, relative to their distance
LOOSE = "others lie next to it (a symmetry, or a sum that is kept), and which it is elsewhere cannot be told"


@constructor()
class Crossing(NamedTuple):
    """A root on the imaginary axis, made by `crossings`.

    Parameters
    ----------
    value : float
        Of the parameter.
    frequency : float
        Of the root [rad/time]; 0 where a real root crosses.
    kind : str
        "hopf", or "zero" (a fold, or a transcritical or pitchfork point).
    unstable : int
        How many roots lie right of the axis just above ``value``, less how many just below.
    state : ndarray, shape (n,)
        The equilibrium there.
    parameter : str
        Its name.
    """

    value: float
    frequency: float
    kind: str
    unstable: int
    state: Array
    parameter: str

    @property
    def period(self) -> float:
        """2 pi / frequency, of the cycle that is born at a Hopf point."""
        return 2 * np.pi / self.frequency if self.frequency else np.inf


@public()
def crossings(
    equation: Equation, parameter: str, between: tuple[float, float], *, at: Any = None, points: int = 200
) -> list[Crossing]:
    """Crossings along one parameter, of the equilibrium that is followed along it.

    A root that is 0 all along (an equation that keeps a sum, or has a symmetry) crosses nothing and is left out.

    Parameters
    ----------
    equation : Equation
    parameter : str
        A lag too, if it has a name.
    between : (float, float)
        From where to where.
    at : array_like or mapping, optional
        A state near the equilibrium at the equation's own parameters, from where it is followed; needed where there
        are several.
    points : int
        At how many values roots are counted first. Crossings that undo each other between two of them are missed.

    Returns
    -------
    list of Crossing
        By value, each to rounding.

    Raises
    ------
    InputError
        If there is no such parameter, the range makes no sense, or the equilibrium is lost or its roots are too many.
    """
    check_equation(equation)
    check_parameter(equation, parameter, "parameter")
    low, high = _range(equation, parameter, between)
    points = whole("points", points, least=2)
    column = list(equation.parameters).index(parameter)
    values = np.linspace(low, high, points)
    vectors = np.tile(equation.vector, (points, 1))
    vectors[:, column] = values
    x, good, loose = followed(equation, equilibrium_near(equation, at), vectors)
    if loose.any():
        raise InputError(f"at: the equilibrium moves with {parameter}, but {LOOSE}; leave out a state by what is kept")
    if not good.all():
        own = equation.vector[column]
        lost = min(values[~good], key=lambda value: abs(value - own))
        raise InputError(
            f"between: the equilibrium is lost by {parameter} = {lost:.6g}: it ends there, or meets another; give "
            "a range on one side of it"
        )
    batch = systems(equation, x, vectors)
    zeros = structural(batch)
    with Bar("counting roots", points, "points") as bar:
        right, width = _unstable(batch, zeros, bar)
    found: list[Crossing] = []
    sizes = size(batch)
    steps = np.flatnonzero(np.diff(right))
    with Bar("finding crossings", len(steps), "") as bar:
        for k, i in enumerate(steps):

            def root(value: float, slot: int, i: int = int(i)) -> complex:
                """The root with the slot-th largest real part, which depends on the parameter continuously.

                One that is not there (yet: at a lag of 0 there are no more than states) is far left.
                """
                state, vector = _between(equation, x[i : i + 2], vectors[i : i + 2], column, value)
                one = systems(equation, state[None], vector[None])
                large = size(one)
                s = without(roots(one, width, threads=1).s, zeros, large)[0]
                there = slot < len(s) and np.isfinite(s[slot])
                return complex(s[slot]) if there else complex(-max(float(large[0]), 1e-300))

            bracket = float(values[i]), float(values[i + 1])
            slots = range(*sorted((int(right[i]), int(right[i + 1]))))
            sign, slot, before = int(np.sign(right[i + 1] - right[i])), slots.start, len(found)
            while slot < slots.stop:
                value = _zero(lambda v, k=slot: root(v, k).real, *bracket, _AT_AN_END * sizes[i])
                s = root(value, slot)
                state, vector = _between(equation, x[i : i + 2], vectors[i : i + 2], column, value)
                pair = abs(s.imag) > _REAL * float(size(systems(equation, state[None], vector[None]))[0])
                frequency = abs(s.imag) if pair else 0.0
                kind = "hopf" if pair else "zero"
                found.append(Crossing(value, frequency, kind, sign * (1 + pair), state, parameter))
                slot += 1 + pair
            if sum(each.unstable for each in found[before:]) != right[i + 1] - right[i]:
                raise InputError(
                    f"points: roots cross to and fro between {bracket[0]:.6g} and {bracket[1]:.6g}; give more points"
                )
            bar((k + 1) / len(steps))
    return sorted(found, key=lambda each: each.value)


def _zero(real: Callable[[float], float], low: float, high: float, small: float) -> float:
    """Find where a real part changes its sign; return an end of the range if rounding hides the change there."""
    ends = real(low), real(high)
    if ends[0] * ends[1] < 0:
        found = root_scalar(real, bracket=(low, high), xtol=_ROUNDING * (high - low), rtol=_ROUNDING)
        return float(found.root)
    if min(map(abs, ends)) > small:
        raise InputError(
            f"points: a root crosses between {low:.6g} and {high:.6g}, but not along one way; give more points there"
        )
    return low if abs(ends[0]) <= abs(ends[1]) else high


def _unstable(batch: DelaySystem, zeros: int, report: Callable[[float], None]) -> tuple[Array, int]:
    """Count the roots of each system right of the axis, without those that are 0; and the roots computed for that."""
    total = batch.shape[0]
    count = _COUNT
    for some in (np.unique([0, total // 2, total - 1]), np.arange(total)):  # the ends show early if there are too many
        while True:
            rights: list[Array] = []
            for part in np.array_split(some, -(-len(some) // _CHUNK)):
                found = roots(batch[part], count)
                rights.append((without(found.s, zeros, size(batch[part])).real > 0).sum(axis=-1))
                if not ((rights[-1] + zeros < found.number) | (found.number < count)).all():
                    break
                if (found.state != "ok").any():
                    raise InputError("between: too many roots lie near the axis to tell them apart; narrow the range")
                report(part[-1] / total if len(some) == total else 0.0)
            else:
                break
            count *= 2
            if count > _MOST:
                raise InputError(f"between: more than {_MOST} roots are unstable; give a narrower range")
    return np.concatenate(rights), count


def _between(equation: Equation, x: Array, vectors: Array, column: int, value: float) -> tuple[Array, Array]:
    """The equilibrium between two that are known (2, n), and the parameters there."""
    low, high = vectors[:, column]
    vector = vectors[0].copy()
    vector[column] = value
    begin = x[0] + (value - low) / (high - low) * (x[1] - x[0])
    found = newton(equation, begin[None], vector[None])
    state, room = found.x[0], np.abs(x[1] - x[0]) + _BESIDE * np.abs(begin) + found.blur[0]
    if not found.good[0] or (np.abs(state - begin) > room).any():
        name = list(equation.parameters)[column]
        raise InputError(f"between: the equilibrium is lost at {name} = {value:.6g}; give a narrower range")
    return state, vector


def _range(equation: Equation, parameter: str, between: Any) -> tuple[float, float]:
    try:
        low, high = (float(each) for each in between)
    except (TypeError, ValueError, OverflowError):
        low = high = np.nan
    if not (np.isfinite([low, high]).all() and low < high):
        raise InputError(f"between: {shown(between)}; give least and largest value, for example (0, 1)")
    if parameter in equation.lags and low < 0:
        raise InputError(f"between: {parameter} is a lag; give 0 or more")
    return low, high
