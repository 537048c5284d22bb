"""Equilibria that are followed: beyond folds, among others next to them, beside slow states, of numbers that cancel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fluidcc as fc
from fluidcc.dde import Equation
from tests.dde.equations import BUDWORM, CANCELS, HAYES, SIRS, SLOW, SMALL, TOGGLE

OF_SUM_1 = [0.25, 1 / 3, 0.75 * 5 / 9]


def test_one_of_many_is_not_followed_where_it_moves() -> None:
    with pytest.raises(fc.InputError, match=r"the equilibrium moves with b, but others lie next to it"):
        fc.delay.crossings(SIRS, "b", (0.6, 8.0), at=OF_SUM_1, points=32)
    with pytest.raises(fc.InputError, match=r"\(0.3, 0.3, 0.4\) is none itself"):
        fc.delay.critical_delay(SIRS, "tau", at=[0.3, 0.3, 0.4])
    found = fc.delay.chart(SIRS, {"b": [1.5, 2.0]}, at=OF_SUM_1)
    assert found.dataset["reason"].values[0].startswith("the equilibrium moves")
    assert found.dataset["reason"].values[1] == "ok"


def test_where_it_stays_it_is() -> None:
    """The delay moves nothing: stable for each, as a run shows, by SciPy with the delay as a chain of 60 stages."""
    found = fc.delay.critical_delay(SIRS, "tau", at=OF_SUM_1)
    assert found.state == "never; left out: 1 root at 0 for every lag"
    stages, tau = 60, 6.0

    def chain(t: float, y: np.ndarray) -> np.ndarray:
        s, i, r, late = y[0], y[1], y[2], y[3:]
        moved = np.diff(np.concatenate([[r], late])) * -stages / tau
        return np.concatenate([[-2 * s * i + 0.4 * late[-1], 2 * s * i - 0.5 * i, 0.5 * i - 0.4 * late[-1]], moved])

    start = np.concatenate([OF_SUM_1, np.full(stages, OF_SUM_1[2])])
    start[:2] += [0.01, -0.01]
    end = solve_ivp(chain, (0, 600), start, rtol=1e-8).y[:, -1]
    assert end[:3] == pytest.approx(OF_SUM_1, rel=1e-2)


def test_beyond_a_fold_it_is_lost() -> None:
    r = np.linspace(0.4, 0.9, 26)
    found = fc.delay.chart(BUDWORM, {"r": r}, at=[0.5]).dataset
    ok = found["reason"].values == "ok"
    # At an equilibrium other than 0, r (1 - x / 10) (1 + x^2) = x: a cubic, whose least root merges with the next.
    for value, state, good in zip(r, found["state_x"].values, ok, strict=True):
        real = np.sort([s.real for s in np.roots([-value / 10, value, -value / 10 - 1, value]) if abs(s.imag) < 1e-9])
        assert good == (len(real) == 3)
        if good:
            assert state == pytest.approx(real[0], rel=1e-9)
    for points in (3, 20):
        with pytest.raises(fc.InputError, match="the equilibrium is lost"):
            fc.delay.crossings(BUDWORM, "r", (0.4, 10.0), at=[0.5], points=points)


@pytest.mark.slow
def test_a_slow_state_is_no_kept_sum() -> None:
    """Beside a gain of 1e4 it grows by 1e-4."""
    assert not fc.delay.chart(SLOW, {"tau": [1e-5, 5e-5, 1e-4]}, at=[0, 0]).dataset["stable"].any()
    (zero,) = fc.delay.crossings(SLOW, "e", (-1e-4, 2.2e-4), at=[0, 0])
    assert (zero.value, zero.kind) == (pytest.approx(0, abs=1e-15), "zero")
    assert fc.delay.critical_delay(SLOW, "tau", at=[0, 0]).state == "unstable"


@pytest.mark.parametrize("k", [1e-10, 1.0, 1e10])
def test_a_slow_oscillation_is_a_hopf_point(k: float) -> None:
    (found,) = fc.delay.crossings(HAYES.at(k=k, tau=0.1 / k), "tau", (0.1 / k, 3 / k), points=32)
    assert (found.kind, found.unstable) == ("hopf", 2)
    assert (found.value * k, found.frequency / k) == (pytest.approx(np.pi / 2), pytest.approx(1))


@pytest.mark.parametrize("large", [1e8, 1e10, 1e16])
def test_large_numbers_that_cancel_blur_nothing(large: float) -> None:
    two = CANCELS.at(M=large)
    assert fc.delay.equilibria(two, {"n": (0, 2 * large), "x": (0.1, 3)}) == pytest.approx(np.array([[large, 1.0]]))
    assert fc.delay.linearize(two, at=[large, 1.5]).A[0, 1, 1] == pytest.approx(-2, rel=1e-12)


def test_small_ones_are_two_in_a_large_box() -> None:
    found = fc.delay.equilibria(SMALL, (-1e10, 1e10))
    assert found[:, 1] * 1e9 == pytest.approx(np.sqrt(2) * np.array([-1, 1]))


def test_states_that_differ_are_looked_for_too() -> None:
    """A switch of two genes: (2, 2) is one of three."""
    with pytest.raises(fc.InputError, match="there are several equilibria"):
        fc.delay.abscissa(TOGGLE)


@pytest.mark.slow
def test_a_lag_that_is_elsewhere_too() -> None:
    both = Equation(lambda t, x, past, p: [-past[0][0] - past[1][0]], ["tau", lambda x, p: 2 * p.tau], {"tau": 0.1})
    with pytest.raises(fc.InputError, match=r"tau is in the function too, or in another lag; use fluidcc.delay.cross"):
        fc.delay.critical_delay(both, "tau")
    # x' = -x(t - tau) - x(t - 2 tau): i w = -e^(-i w tau) (1 + e^(-i w tau)); w tau = pi / 3, w = 2 cos(pi / 6).
    assert fc.delay.crossings(both, "tau", (0.1, 1.0))[0].value == pytest.approx(np.pi / 3 / np.sqrt(3))


def test_where_the_slope_vanishes_nothing_rests() -> None:
    """1 + x^2 is least at 0, and never 0: a step of nothing is no sign of an equilibrium."""
    rising = Equation(lambda t, x, past, p: [1 + past[0][0] ** 2], [1.0])
    assert len(fc.delay.equilibria(rising, (-1, 1))) == 0
    with pytest.raises(fc.InputError, match="no equilibrium found"):
        fc.delay.linearize(rising, at=[0.0])
