"""End state of a run from a past: one period of it, if the last periods repeat."""

from __future__ import annotations

import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.interpolate import PchipInterpolator

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.characteristic import abscissa
from fluidcc.dde.equation import Array, Equation, state_of
from fluidcc.dde.linear import systems
from fluidcc.dde.periodic import Course
from fluidcc.dde.solution import solve
from fluidcc.errors import InputError
from fluidcc.results.metrics import upward_crossings

_TIMES = 60  # the longest scale of the equation, for a run
_LONGER = 4
_TOLERANCE = 1e-6
_ACCURATE = 5e-3  # of a run whose end is believed: a cycle is compared with it
_FLAT = 1e-5  # of a state's largest modulus: less is an equilibrium
_SAMPLES, _MOST_SAMPLES = 20_000, 1_280_000  # each try has four times as many as the one before
_PER_PERIOD = 200  # samples, at least
_RESOLVED = 1e-2  # of peak to peak: what is missed where every second sample is left out
_PATTERN = 16  # crossings of the mean within a period, at most
_PERIODS = 4  # that repeat
_EVEN = 1e-3  # how far their lengths may differ
_REPEATS = 1e-2  # of peak to peak: how far they may be from the last
_PLACES = 4001  # at which they are compared


def settled(equation: Equation, past: Any, until: float | None, longest_lag: float | None) -> tuple[Course, float]:
    """The last period of a run, as states over shares of it (to -_PERIODS for those before), and its length.

    Raises
    ------
    InputError
        If the run comes to rest, is not accurate, or its last periods do not repeat.
    """
    begin = _begin(equation, past)
    if equation.state_dependent and longest_lag is None:
        longest_lag = 4 * float(equation.lags_at(begin).max())
        if not longest_lag > 0:
            raise InputError("longest_lag: the lags at the begin of past= are 0; give a bound on them")
    usual = _TIMES * _scale(equation, begin)
    found, why = _period(equation, past, usual if until is None else until, longest_lag)
    if found is None and until is None:
        found, why = _period(equation, past, _LONGER * usual, longest_lag)
    if found is None:
        raise InputError(why)
    return found


def _begin(equation: Equation, past: Any) -> Array:
    if not callable(past):
        return state_of(equation, past, "past")
    with our_settings():
        return state_of(equation, np.asarray(past(jnp.asarray(0.0))), "past(0)")


def _scale(equation: Equation, begin: Array) -> float:
    found = systems(equation, begin[None], equation.vector[None])[0]
    fastest = max(float(np.linalg.norm(found.A0)), float(np.linalg.norm(found.A, axis=(1, 2)).sum()), 1e-300)
    return max(float(found.tau.max()) * 4, 2 * np.pi / fastest)


def _period(
    equation: Equation, past: Any, until: float, longest_lag: float | None
) -> tuple[tuple[Course, float] | None, str]:
    """The last period of a run; or None, and in words why a longer one may have one."""
    samples = _SAMPLES
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the tolerance: what is missed is judged here
            run = solve(equation, until, past=past, samples=samples, tolerance=_TOLERANCE, longest_lag=longest_lag)
        if not run.error <= _ACCURATE:
            raise InputError(
                f"limit_cycle: the run is uncertain by {run.error:.1g} of the solution at its finest step, as where it "
                "is chaotic; begin nearer to the cycle and give a shorter until="
            )
        times = run["time"].values
        x = np.stack([run[name].values for name in equation.states], axis=1)
        ups = _crossings(equation, times, x, max(_FLAT, 10 * run.error))
        found = _repeating(times, x, ups)
        if found is not None and found[1] >= _PER_PERIOD * until / samples and _resolved(times, x, found[1]):
            return found, ""
        if samples >= _MOST_SAMPLES:
            break
        if found is None and (len(ups) <= _PERIODS + 1 or _resolved(times, x, float(ups[-1] - ups[-2]))):
            break  # samples are not what it lacks
        samples *= 4
    if found is not None:
        raise InputError(f"limit_cycle: {samples} samples do not resolve a period of {found[1]:.6g}; end sooner")
    return None, (
        f"limit_cycle: the run is not periodic by {until:g}: no {_PERIODS + 1} periods in a row are alike; give a "
        "longer until=, or other parameters"
    )


def _crossings(equation: Equation, times: Array, x: Array, flat: float) -> Array:
    """Find when the state that moves most, relative to its size, passes its later mean upwards."""
    late = times >= times[-1] / 2
    moving = np.ptp(x[late], axis=0) / np.maximum(np.abs(x).max(axis=0), 1e-300)
    lead = int(np.argmax(moving))
    if moving[lead] <= flat:
        rest = systems(equation, x[-1][None], equation.vector[None])[0]
        if float(abscissa(rest).value) > 0:
            raise InputError(
                "limit_cycle: the run has come to rest where nothing stays at rest: at numbers too small for it; begin "
                "elsewhere, or write the equation for logarithms"
            )
        raise InputError("limit_cycle: the run has come to rest; it is no cycle that attracts from there")
    return upward_crossings(times, x[:, lead], float(x[late, lead].mean()))


def _repeating(times: Array, x: Array, ups: Array) -> tuple[Course, float] | None:
    """The last period, if those before are like it in all states."""
    course = PchipInterpolator(times, x)
    theta = np.linspace(0.0, 1.0, _PLACES)
    for count in range(1, min(_PATTERN, (len(ups) - 1) // (_PERIODS + 1)) + 1):
        ends = ups[::-1][: count * (_PERIODS + 1) + 1 : count]
        lengths = -np.diff(ends)
        if np.ptp(lengths) > _EVEN * lengths[0]:
            continue
        end, period = float(ends[0]), float(lengths.mean())

        def last(share: Array, end: float = end, period: float = period) -> Array:
            return course(end - period + period * share)

        shown = last(theta)
        size = np.maximum(np.ptp(shown, axis=0), _FLAT * np.abs(x).max(axis=0))
        if all((np.abs(last(theta - k) - shown) <= _REPEATS * size).all() for k in range(1, _PERIODS + 1)):
            return last, period
    return None


def _resolved(times: Array, x: Array, period: float) -> bool:
    """Check whether samples resolve what lies between them: every second one predicts the others."""
    some = times >= times[-1] - 1.5 * period
    t, late = times[some], x[some]
    missed = np.abs(PchipInterpolator(t[::2], late[::2])(t[1:-1:2]) - late[1:-1:2]).max(axis=0)
    return bool((missed <= _RESOLVED * np.maximum(np.ptp(late, axis=0), _FLAT * np.abs(x).max(axis=0))).all())
