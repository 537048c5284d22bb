"""Values of a parameter at which characteristic roots cross the imaginary axis: Hopf points, and folds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from fluidcc.delay.equation import Array, Equation
from fluidcc.delay.fixed_points import equilibrium_near
from fluidcc.delay.newton import followed, newton
from fluidcc.delay.linear import systems
from fluidcc.errors import InputError
from fluidcc.surface import constructor, public, refuse_unknown
from fluidcc.theory.delay_systems.delay_system import DelaySystem
from fluidcc.theory.delay_systems.roots import roots

_COUNT = 8  # roots to begin with
_MOST = 256
_ROUNDING = 4 * np.finfo(float).eps
_ON_AXIS = 1e-9  # |Im s| / (1 + |s|): less is a real root


@constructor()
class Crossing(NamedTuple):
    """A root on the imaginary axis.

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
    """

    value: float
    frequency: float
    kind: str
    unstable: int
    state: Array

    @property
    def period(self) -> float:
        """2 pi / frequency, of the cycle that is born at a Hopf point."""
        return 2 * np.pi / self.frequency if self.frequency else np.inf


@public()
def crossings(
    equation: Equation, parameter: str, between: tuple[float, float], *, at: Any = None, points: int = 200
) -> list[Crossing]:
    """All crossings along one parameter, of the equilibrium that is followed along it.

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
    refuse_unknown([parameter], equation.parameters, "parameter")
    low, high = _range(equation, parameter, between)
    if isinstance(points, bool) or not isinstance(points, (int, np.integer)) or points < 2:
        raise InputError(f"points: {points!r}; give 2 or more")
    column = list(equation.parameters).index(parameter)
    values = np.linspace(low, high, points)
    vectors = np.tile(equation.vector, (points, 1))
    vectors[:, column] = values
    x, good = followed(equation, equilibrium_near(equation, at), vectors)
    if not good.all():
        lost = values[np.argmin(good)]
        raise InputError(f"between: the equilibrium is lost by {parameter} = {lost:.6g}; give a narrower range")
    right, width = _unstable(systems(equation, x, vectors))
    found: list[Crossing] = []
    for i in np.flatnonzero(np.diff(right)):

        def root(value: float, slot: int, i: int = int(i)) -> complex:
            """The root with the slot-th largest real part, which depends on the parameter continuously."""
            state, vector = _between(equation, x[i], vectors[i], column, value)
            return complex(roots(systems(equation, state[None], vector[None])[0], width, threads=1).s[slot])

        slots = range(*sorted((int(right[i]), int(right[i + 1]))))
        sign, slot = int(np.sign(right[i + 1] - right[i])), slots.start
        while slot < slots.stop:
            bracket = float(values[i]), float(values[i + 1])
            value = root_scalar(lambda v, k=slot: root(v, k).real, bracket=bracket, xtol=1e-300, rtol=_ROUNDING).root
            s = root(value, slot)
            pair = abs(s.imag) > _ON_AXIS * (1 + abs(s))
            state, _ = _between(equation, x[i], vectors[i], column, value)
            frequency = abs(s.imag) if pair else 0.0
            found.append(Crossing(float(value), frequency, "hopf" if pair else "zero", sign * (1 + pair), state))
            slot += 1 + pair
    return sorted(found, key=lambda each: each.value)


def _unstable(batch: DelaySystem) -> tuple[Array, int]:
    """How many roots of each lie right of the axis, and how many roots that took."""
    count = _COUNT
    while True:
        found = roots(batch, count)
        right = (found.s.real > 0).sum(axis=-1)
        enough = (right < found.number) | (found.number < count)
        if enough.all():
            if (found.state != "ok").any():
                raise InputError("between: too many roots lie near the axis to be told apart; give a narrower range")
            return right, count
        count *= 2
        if count > _MOST:
            raise InputError(f"between: more than {_MOST} roots are unstable; give a narrower range")


def _between(equation: Equation, x: Array, vector: Array, column: int, value: float) -> tuple[Array, Array]:
    vector = vector.copy()
    vector[column] = value
    state, good, *_ = newton(equation, x[None], vector[None])
    return (state[0] if good[0] else x), vector


def _range(equation: Equation, parameter: str, between: Any) -> tuple[float, float]:
    try:
        low, high = (float(each) for each in between)
    except (TypeError, ValueError):
        low = high = np.nan
    if not (np.isfinite([low, high]).all() and low < high):
        raise InputError(f"between: {repr(between)[:40]}; give least and largest value, for example (0, 1)")
    if parameter in equation.lags and low < 0:
        raise InputError(f"between: {parameter} is a lag; give 0 or more")
    return low, high
