"""Periodic solutions with jumps and their branches: closed forms, and the collocation of `fc.delay`.

Tolerances were stated before measuring: Heun's method and lines between steps are of second order, so at n steps of a
period of length 2 pi (in units of the fastest rate) some (2 pi/n)^2, times 2 for the several places where it enters.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde import orbit as orbit_module
from fluidcc.dde.delay_system import Array
from fluidcc.dde.orbit import Along, Limited, Orbit, Rates, linear, solve_orbit, tangent
from fluidcc.dde.orbit_branch import at_value, follow, next_fold, point_at
from tests.dde.equations import equation

NOWHERE = (0, math.inf, 0.0)


@dataclasses.dataclass(frozen=True)
class Written:
    """A law written for a test: x' = f(x, x(t - lag)), one observed value for each state, no limits but x >= floor."""

    lag: tuple[float, float]
    jump: tuple[int, float, float] = NOWHERE
    floor: float = -math.inf
    states: int = 1

    @property
    def observed(self) -> Array:
        """All states are observed."""
        return np.eye(self.states)

    def limits(self, x: Array) -> Limited:
        """No state below the floor."""
        own = np.eye(self.states) * (x > self.floor)[:, :, None]
        return Limited(np.maximum(x, self.floor), own, np.zeros_like(x))


@dataclasses.dataclass(frozen=True)
class Relay(Written):
    """x' = -x - sign(x(t - 1) - level): a thermostat, whose cycle is made of two exponentials."""

    def rates(self, x: Array, u: Array) -> Rates:
        """Right-hand side."""
        side = np.where(u > self.jump[1], 1.0, -1.0)
        one = np.ones_like(x)[:, :, None]
        return Rates(-x - side, -one, 0 * one, 0 * x)


@dataclasses.dataclass(frozen=True)
class Logistic(Written):
    """x' = r x (1 - x(t - 1)); the parameter is r."""

    r: float = 1.8

    def rates(self, x: Array, u: Array) -> Rates:
        """Right-hand side."""
        r = self.r
        return Rates(r * x * (1 - u), (r * (1 - u))[:, :, None], (-r * x)[:, :, None], x * (1 - u))


@dataclasses.dataclass(frozen=True)
class Folding(Written):
    """In polar coordinates r' = r (mu + r^2 - r^4) and a turn in 2 pi: cycles fold at mu = -1/4, r^2 = 1/2."""

    states: int = 2
    mu: float = 0.2

    def rates(self, x: Array, u: Array) -> Rates:
        """Right-hand side."""
        square = (x**2).sum(axis=1)[:, None]
        grow, steep = self.mu + square - square**2, 2 - 4 * square
        turned = np.stack([-x[:, 1], x[:, 0]], axis=1)
        own = grow[:, :, None] * np.eye(2) + (steep * x)[:, :, None] * x[:, None, :] + np.array([[0.0, -1], [1, 0]])
        return Rates(grow * x + turned, own, np.zeros((len(x), 2, 2)), x)


def folding(mu: float) -> Folding:
    """The law at a value of mu; its lag is of no consequence."""
    return Folding((0.1, 0.0), mu=mu)


def circle(mu: float, steps: int) -> Orbit:
    """The stable cycle at mu, as the closed form has it."""
    angle = 2 * math.pi * np.arange(1, steps + 1) / steps
    r = math.sqrt((1 + math.sqrt(1 + 4 * mu)) / 2)
    return Orbit(folding(mu), r * np.stack([np.cos(angle), np.sin(angle)], axis=1), 2 * math.pi, mu)


def relay_period(level: float = 0.0) -> float:
    """Period of the thermostat about a level: each half is a lag and the way back from its peak."""
    high, low = (side + (level - side) * math.exp(-1) for side in (1.0, -1.0))
    back = [math.log((high + 1) / (level + 1)), math.log((1 - low) / (1 - level))]
    return 2.0 + sum(back)


def relayed(level: float, steps: int) -> Orbit:
    """A triangle about a level, as a guess."""
    share = (np.arange(steps) + 0.3) / steps
    wave = 0.5 * (4 * np.abs(share - 0.5) - 1)
    return Orbit(Relay((1.0, 0.0), (0, level, 1.0)), (level + wave)[:, None], 3.0, level)


# -- one orbit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.0, 0.2])
def test_a_thermostat_that_switches_late(level: float) -> None:
    """Period and extremes in closed form; all that is remembered at a switch is its time, so nothing else is carried.

    Catches a crossing that is not located within its step: the period would be off by a step, 1/60 of it.
    """
    steps = 60
    found = solve_orbit(lambda _: relayed(level, steps).law, relayed(level, steps))
    assert found is not None
    second = 2 * (relay_period(level) / steps) ** 2
    assert found.period == pytest.approx(relay_period(level), rel=second)
    assert found.x.max() == pytest.approx(1 + (level - 1) * math.exp(-1), abs=relay_period(level) / steps)
    assert found.multipliers[0].real == pytest.approx(1.0, abs=0.02)
    assert np.abs(found.multipliers[1:]).max() < 0.02


def test_the_period_is_that_of_the_equation_in_the_limit() -> None:
    """Half the step, a quarter of the error: catches a part that is of first order only."""
    errors = []
    for steps in (101, 202, 404):
        found = solve_orbit(lambda _, steps=steps: relayed(0.1, steps).law, relayed(0.1, steps))
        assert found is not None
        errors.append(abs(found.period - relay_period(0.1)))
    assert errors[0] / errors[2] > 8


def test_delayed_logistic_as_the_collocation_has_it() -> None:
    """Period, extremes and multipliers of `fc.delay`: 1e-3, a hundred times the second-order error at 1000 steps."""
    logistic = equation(lambda t, x, past, p: [p.r * x[0] * (1 - past[0][0])], {"r": 1.8})
    known = fc.delay.limit_cycle(logistic, past=[0.5])
    share = np.arange(1, 1001) / 1000
    course = np.interp(share * known.period, known["time"].values, known["x"].values)
    guess = Orbit(Logistic((1.0, 0.0)), course[:, None], known.period, 1.8)
    found = solve_orbit(lambda r: Logistic((1.0, 0.0), r=r), guess)
    assert found is not None
    assert found.period == pytest.approx(known.period, rel=1e-3)
    assert np.ptp(found.x) == pytest.approx(known.amplitude["x"], rel=1e-3)
    assert found.multipliers[0].real == pytest.approx(1.0, abs=1e-3)
    assert np.abs(found.multipliers[1]) == pytest.approx(np.abs(known.multipliers).max(), abs=1e-3)


@pytest.mark.parametrize(
    "orbit",
    [relayed(0.1, 37), Orbit(Logistic((1.0, 0.3), r=1.7), 1 + 0.4 * np.sin(np.arange(40) / 6)[:, None], 4.3, 1.7)],
    ids=["jumps", "smooth"],
)
def test_derivatives_are_those_of_the_residual(orbit: Orbit) -> None:
    """By states, period and parameter, against central differences: catches a term that was left out."""

    def residual(x: Array, period: float, aside: float) -> Array:
        law = orbit.law
        if isinstance(law, Relay):
            law = dataclasses.replace(law, jump=(0, law.jump[1] + aside, 1.0))
        else:
            assert isinstance(law, Logistic)
            law = dataclasses.replace(law, r=law.r + aside, lag=(law.lag[0] + 0.3 * aside, 0.3))
        return linear(law, x, period).residual

    at, tiny = linear(orbit.law, orbit.x, orbit.period), 1e-7
    way = np.random.default_rng(0).normal(size=orbit.x.shape)
    by_state = np.zeros(orbit.x.size)
    np.add.at(by_state, at.rows, at.entries * way.ravel()[at.columns])
    for wanted, (x, period, aside) in (
        (by_state, (way, 0.0, 0.0)),
        (at.by_period, (0 * way, 1.0, 0.0)),
        (at.by_vector[:, 0], (0 * way, 0.0, 1.0)),
    ):
        ends = [residual(orbit.x + k * tiny * x, orbit.period + k * tiny * period, k * tiny * aside) for k in (1, -1)]
        assert (ends[0] - ends[1]) / (2 * tiny) == pytest.approx(wanted, abs=1e-5)


def test_a_queue_stays_at_0_until_it_grows() -> None:
    """A floor that is reached: what happened before is forgotten, and the multipliers are 1 and 0.

    Catches limits whose slopes are left out: Newton's method would not converge.
    """
    made = dataclasses.replace(relayed(0.2, 80), law=Relay((1.0, 0.0), (0, 0.2, 1.0), floor=-0.1))
    found = solve_orbit(lambda _: made.law, made)
    assert found is not None
    assert found.x.min() == -0.1
    assert (found.x == -0.1).sum() > 5
    high = 1 - 0.8 * math.exp(-1)
    # From the floor up to the level and a lag on, down to the level and a lag on, of which some at the floor.
    period = math.log(1.1 / 0.8) + 1 + math.log((high + 1) / 1.2) + 1
    assert found.period == pytest.approx(period, rel=2 * (period / 80) ** 2)
    assert np.abs(found.multipliers[1:]).max() < 1e-6


# -- branches ---------------------------------------------------------------------------------------------------


def test_a_fold_in_closed_form() -> None:
    """mu = -1/4 and r^2 = 1/2; 200 steps: (2 pi/200)^2 = 1e-3, and the fold is off by its square."""
    first = solve_orbit(folding, circle(0.2, 200))
    assert first is not None
    branch = follow(folding, first, (-0.5, 0.4), 0.05)
    assert branch.ends == ("it shrinks to an equilibrium", "the range ends")
    (k,) = branch.folds
    fold = branch.points[k].orbit
    assert fold.value == pytest.approx(-0.25, abs=1e-3)
    assert abs(branch.points[k].along.value / branch.points[k].along.span) <= 5e-3  # upright, as a fold is
    assert (fold.x**2).sum(axis=1).mean() == pytest.approx(0.5, abs=0.02)
    assert branch.points[-1].orbit.value == pytest.approx(0.4, abs=1e-9)
    for point in branch.points:
        square = float((point.orbit.x**2).sum(axis=1).mean())
        assert point.orbit.value == pytest.approx(square**2 - square, abs=2e-3)
        grows = point.orbit.value + 3 * square - 5 * square**2
        wanted = math.exp(2 * math.pi * grows)
        assert np.abs(point.orbit.multipliers - wanted).min() < 0.02 * max(wanted, 1.0)
    stable = [point.orbit.value for point in branch.points[k + 1 :]]
    assert stable == sorted(stable)  # from the fold on the branch goes one way


def test_the_next_fold_alone() -> None:
    """The same fold without the rest of the branch; none the other way."""
    first = solve_orbit(folding, circle(0.2, 100))
    assert first is not None
    begin = point_at(first, 0.9, -1.0)
    assert begin is not None
    fold, why = next_fold(folding, begin, (-0.5, 0.4), 0.05)
    assert fold is not None
    assert (fold.orbit.value, why) == (pytest.approx(-0.25, abs=4e-3), "")
    up = point_at(first, 0.9, 1.0)
    assert up is not None
    assert next_fold(folding, up, (-0.5, 0.4), 0.05) == (None, "no fold: the range ends")


def test_a_value_between_two_points() -> None:
    """At the value itself, not near it."""
    ends = [solve_orbit(folding, circle(mu, 60)) for mu in (0.1, 0.2)]
    assert ends[0] is not None
    assert ends[1] is not None
    points = [point_at(end, 1.0) for end in ends if end is not None]
    assert points[0] is not None
    assert points[1] is not None
    found = at_value(folding, points[0], points[1], 0.17)
    assert found is not None
    assert found.orbit.value == 0.17
    assert found.orbit.law == folding(0.17)


def test_a_direction_turns_as_the_last() -> None:
    """Catches a branch that would turn back at each of its points."""
    first = solve_orbit(folding, circle(0.2, 60))
    assert first is not None
    for way in (1.0, -1.0):
        found = tangent(first, Along(0 * first.x, 0.0, way, 1.0))
        assert found is not None
        assert found.value * way > 0
        assert orbit_module.length(first, found) == pytest.approx(1.0, rel=1e-12)


def test_what_does_not_converge_or_stands_still_is_none() -> None:
    """A guess far from any cycle, and an equilibrium."""
    far = dataclasses.replace(circle(0.2, 40), law=folding(-3.0))
    assert solve_orbit(folding, far) is None
    small = dataclasses.replace(relayed(0.0, 40), law=Logistic((1.0, 0.0), r=0.5), x=1 + 1e-3 * relayed(0.0, 40).x)
    assert solve_orbit(lambda r: Logistic((1.0, 0.0), r=r), small) is None
