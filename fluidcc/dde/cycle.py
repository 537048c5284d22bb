"""Limit cycles of an equation, from where a run ends up or from a Hopf point: found twice, compared, and weighed.

A run's end gives one period of it, if the last periods repeat. A profile that satisfies the equation on one mesh must
do so on one twice as fine, with the same period; it must be what the integration shows, if one was asked for; and
Floquet's multipliers say whether it attracts.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline, PchipInterpolator

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.branch import from_hopf
from fluidcc.dde.characteristic import abscissa
from fluidcc.dde.equation import Array, Equation, check_autonomous, state_of
from fluidcc.dde.hopf import Crossing
from fluidcc.dde.linear import systems
from fluidcc.dde.periodic import (
    DEGREE,
    ONE,
    Course,
    Profile,
    apart,
    everywhere,
    lags_along,
    mesh_for,
    multipliers,
    refined,
    residual,
    sampled,
    solved,
)
from fluidcc.dde.solution import solve
from fluidcc.errors import InputError
from fluidcc.results.dataset import DatasetResult, Row
from fluidcc.results.drawing import draw
from fluidcc.results.metrics import upward_crossings
from fluidcc.surface import constructor, public

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
_REPEATS_WITHIN = 1e-2  # of peak to peak: how far they may be from the last
_PLACES = 4001  # at which they are compared
_INTERVALS = (16, 32, 64, 128, 256, 512, 1024)
_LAST = 256  # intervals: if nothing is found until then, it is given up
_MOST = 40_000  # unknowns
_WANTED = 1e-9  # of the error: no finer mesh is tried
_ALLOWED = 1e-5
_SHOWN = 2e-2  # of peak to peak: how far a cycle may be from the run that led to it
_SAME_PERIOD = 1e-3
_NEUTRAL = 1e-5  # from 1: of a multiplier that decides nothing
_REPEATS = 12  # parts of a period that may be alike
_ALIKE = 1e-6
_FAR = 0.5  # of peak to peak or of the period: no neighbour
_DENSE = 8192  # nodes at which extremes are read: to 1e-7 of what is smooth


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
        if found is not None and found[1] >= _PER_PERIOD * until / samples and _well_sampled(times, x, found[1]):
            return found, ""
        if samples >= _MOST_SAMPLES:
            break
        if found is None and (len(ups) <= _PERIODS + 1 or _well_sampled(times, x, float(ups[-1] - ups[-2]))):
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
        if all((np.abs(last(theta - k) - shown) <= _REPEATS_WITHIN * size).all() for k in range(1, _PERIODS + 1)):
            return last, period
    return None


def _well_sampled(times: Array, x: Array, period: float) -> bool:
    """Check whether samples resolve what lies between them: every second one predicts the others."""
    some = times >= times[-1] - 1.5 * period
    t, late = times[some], x[some]
    missed = np.abs(PchipInterpolator(t[::2], late[::2])(t[1:-1:2]) - late[1:-1:2]).max(axis=0)
    return bool((missed <= _RESOLVED * np.maximum(np.ptp(late, axis=0), _FLAT * np.abs(x).max(axis=0))).all())


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Cycle(DatasetResult):
    """A periodic solution, made by `limit_cycle`.

    Parameters
    ----------
    dataset : xarray.Dataset
        Each state over one period, ``time``, closer where it moves fast.
    period : float
    error : float
        The larger of two: the equation's residual between the nodes, of each state's largest derivative; and the
        difference to the solution on half as many intervals, of the period and of each state's peak to peak.
    intervals : int
        In each of which the solution is a polynomial of degree 8.
    multipliers : ndarray
        Floquet multipliers of largest modulus but the one that is 1, the largest first, complex: by what a small
        disturbance grows in a period.
    """

    KEPT: ClassVar[tuple[str, ...]] = ("time",)

    period: float
    error: float
    intervals: int
    multipliers: Array

    @property
    def amplitude(self) -> dict[str, float]:
        """Largest less smallest value of each state."""
        time = self.dataset["time"].values
        return {str(n): _highest(time, v.values) + _highest(time, -v.values) for n, v in self.dataset.data_vars.items()}

    @property
    def attracts(self) -> bool:
        """Check whether all small disturbances die out: each multiplier but that of a shift in time is less than 1."""
        return bool((np.abs(self.multipliers) < 1 - _NEUTRAL).all())

    def __repr__(self) -> str:
        """Period, amplitudes, and whether it attracts."""
        parts = ", ".join(f"{name} {value:.6g}" for name, value in self.amplitude.items())
        return f"<Cycle of period {self.period:.8g}, {self._kind()}, peak to peak {parts}; error {self.error:.1g}>"

    def _kind(self) -> str:
        return "attracts" if self.attracts else "repels" if _repels(self.multipliers) else "neutral"

    def _rows(self) -> list[Row]:
        data = self.dataset
        rows = [(str(n), f"{float(v.min()):.6g} to {float(v.max()):.6g}") for n, v in data.data_vars.items()]
        return [
            ("period", f"{self.period:.8g}"),
            *rows,
            ("largest multiplier", f"{np.abs(self.multipliers).max(initial=0.0):.6g} ({self._kind()})"),
            ("intervals", str(self.intervals)),
            ("error", f"{self.error:.1g}"),
        ]

    @public()
    def plot(self, *, title: str | None = None) -> Any:
        """Plot one period of each state; of two states or more also the second over the first.

        Parameters
        ----------
        title : str
            Above the picture.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_solution", self, title=title)


def _highest(time: Array, x: Array) -> float:
    """The largest value of a period, between its nodes: of the parabola through the three about the largest of them."""
    period, n = time[-1] - time[0], len(x) - 1  # the last node is the first
    k = int(np.argmax(x[:n]))
    around = np.array([k - 1, k, k + 1])
    t = time[around % n] + (around // n) * period - time[k]
    second, first, value = np.polyfit(t / (t[2] - t[0]), x[around % n], 2)
    return float(value - first**2 / (4 * second)) if second < 0 else float(x[k])


@public()
def limit_cycle(
    equation: Equation,
    *,
    past: Any = None,
    until: float | None = None,
    near: Crossing | Cycle | None = None,
    longest_lag: float | None = None,
) -> Cycle:
    """A periodic solution and its period, to many digits.

    Parameters
    ----------
    equation : Equation
        Autonomous.
    past : array_like, mapping or callable, optional
        The state before time 0, from which the equation is integrated to where it settles, as of `solve`. A cycle is
        returned only if it is what the end of that run shows, and does not repel.
    until : float, optional
        For how long. By default 60 times the longest of the lags and of the period that the equation's derivatives at
        the begin tell, and four times that if it has not settled.
    near : Crossing or Cycle, optional
        In place of that: a Hopf point of this equation, from which the branch of cycles is followed to its parameters,
        or the cycle of other parameters close by. So cycles that repel are found too.
    longest_lag : float, optional
        Bound on lags that depend on the state, with ``past``; four times those at the begin if not given.

    Returns
    -------
    Cycle

    Raises
    ------
    InputError
        If the equation depends on time, the run comes to rest, misses its accuracy or is not periodic, the branch does
        not reach the parameters, or what is found is not resolved, not the same on two meshes, or not what was begun
        with.
    """
    if not isinstance(equation, Equation):
        raise InputError(f"equation: {repr(equation)[:40]}; give a fluidcc.delay.Equation")
    if (past is None) == (near is None):
        raise InputError("limit_cycle: give past= to integrate from, or near= a Hopf point or a cycle to begin with")
    if near is not None and (until is not None or longest_lag is not None):
        raise InputError("limit_cycle: until= and longest_lag= are those of a run from past=; leave them out")
    check_autonomous(equation)
    if past is not None:
        return _from_run(equation, past, until, longest_lag)
    course, period = _of_cycle(equation, near) if isinstance(near, Cycle) else from_hopf(equation, near)
    found = _resolved(equation, course, period)
    if max(_away(found.profile, course, period)) > (_FAR if isinstance(near, Cycle) else _SHOWN):
        raise InputError("near: what is found from there is another cycle, far from it; begin nearer to one")
    return _cycle(equation, found, multipliers(equation, found.profile))


@dataclasses.dataclass(frozen=True)
class _Found:
    profile: Profile
    error: float


def _from_run(equation: Equation, past: Any, until: float | None, longest_lag: float | None) -> Cycle:
    """The cycle that a run ends up on; of twice the period if the first one repels, as where periods double."""
    course, period = settled(equation, past, until, longest_lag)
    found, shown = _compared(equation, course, period)
    if not shown:
        raise InputError(
            f"limit_cycle: the solution found, of period {found.profile.period:.6g}, is not what the run shows, whose "
            f"period is {period:.6g}; give a longer until=, so that the run settles, or use solve()"
        )
    grow = multipliers(equation, found.profile)
    if not _repels(_others(grow)):
        return _cycle(equation, found, grow)
    with contextlib.suppress(InputError):
        twice, shown = _compared(equation, lambda share: course(2 * share - 1), 2 * period)
        grow_twice = multipliers(equation, twice.profile)
        if shown and not _repels(_others(grow_twice)):
            return _cycle(equation, twice, grow_twice)
    raise InputError(
        f"limit_cycle: the run passes by a cycle of period {found.profile.period:.6g} that repels (multiplier "
        f"{_others(grow)[0]:.5g}), and will leave it; give a longer until="
    )


def _compared(equation: Equation, course: Course, period: float) -> tuple[_Found, bool]:
    """Find the cycle that a course leads to, and check that the course follows it."""
    found = _resolved(equation, course, period)
    shape, time = _away(found.profile, course, period)
    return found, shape <= _SHOWN and time <= _SAME_PERIOD


def _away(profile: Profile, course: Course, period: float) -> tuple[float, float]:
    """Measure how far a course is from one or more periods of a profile: of peak to peak, and of the period."""
    parts = max(round(period / profile.period), 1)
    shapes = [apart(profile, lambda share, j=j: course((j + share) / parts)) for j in range(parts)]
    return max(shapes), abs(parts * profile.period / period - 1)


def _of_cycle(equation: Equation, near: Cycle) -> tuple[Course, float]:
    names = [str(name) for name in near.dataset.data_vars]
    if names != list(equation.states):
        raise InputError(
            f"near: a cycle of {', '.join(names)}; give one of this equation, {', '.join(equation.states)}"
        )
    theta = near["time"].values / near.period
    x = np.stack([near[name].values for name in names], axis=1)
    x[-1] = x[0]
    return CubicSpline(theta, x, bc_type="periodic"), near.period


def _resolved(equation: Equation, guess: Course, period: float) -> _Found:
    """The solution on a mesh after another, until two agree and the equation is satisfied between the nodes too."""
    best, last, least, count = None, None, np.inf, 0
    for count in _INTERVALS:
        if count * DEGREE * len(equation.states) > _MOST or (best is None and last is None and count > _LAST):
            break
        begin = sampled(guess, mesh_for(guess, count), period)
        if last is not None:
            begin = sampled(last, refined(last, count), last.period)
        found = solved(equation, equation.vector, begin)
        if found is None or not found[0].moves:
            last = None  # and begin with the guess again
            continue
        new = found[0]
        agree = np.inf if last is None else max(apart(new, last), abs(new.period / last.period - 1))
        error = max(residual(equation, new), agree)
        if error < least:
            best, least = _Found(new, error), error
        if least <= _WANTED:
            break
        last = new if agree < _FAR or last is None else None
    if best is None:
        raise InputError(
            f"limit_cycle: no periodic solution is found from there with up to {_LAST} intervals; begin nearer to one, "
            "by a longer until= or a nearer near=, or use solve()"
        )
    if not least <= _ALLOWED:
        raise InputError(
            f"limit_cycle: the best solution is uncertain by {least:.1g}; it moves faster than {count} intervals "
            "resolve, as where the right-hand side jumps: write it smoothly, or for logarithms where it is never "
            "negative, or use solve()"
        )
    return _minimal(equation, best)


def _minimal(equation: Equation, found: _Found) -> _Found:
    """The same with its least period."""
    profile, theta = found.profile, np.linspace(0, 1, 2001)
    for times in range(_REPEATS, 1, -1):
        if (np.abs(profile(theta + 1 / times) - profile(theta)) / profile.size).max() < _ALIKE:
            return _resolved(equation, lambda share, k=times: profile(share / k), profile.period / times)
    return found


def _others(grow: Array) -> Array:
    """Multipliers but that of a shift in time.

    Raises
    ------
    InputError
        If none is 1, as one must be.
    """
    if not len(grow) or np.abs(grow - 1).min() > ONE:
        raise InputError(
            "limit_cycle: whether it attracts is not resolved, as no multiplier that is found is 1; where states that "
            "are never negative get close to 0, write the equation for logarithms; where lags are a hundred periods "
            "long, use solve()"
        )
    return np.delete(grow, np.abs(grow - 1).argmin())


def _repels(others: Array) -> bool:
    return bool((np.abs(others) > 1 + _NEUTRAL).any())


def _cycle(equation: Equation, found: _Found, grow: Array) -> Cycle:
    profile = found.profile
    shortest = float(lags_along(equation, profile).min())
    if shortest < 0:
        raise InputError(f"lags: one gets as low as {shortest:.3g} on the cycle, and would look ahead; change it")
    theta = everywhere(profile.mesh, _DENSE + 1)
    x = profile(theta)
    x[-1] = x[0]
    data = xr.Dataset(
        {s: ("time", x[:, i], {"long_name": s}) for i, s in enumerate(equation.states)},
        coords={"time": ("time", theta * profile.period, {"units": equation.time_unit, "long_name": "time"})},
    )
    return Cycle(data, profile.period, found.error, len(profile.mesh) - 1, _others(grow))
