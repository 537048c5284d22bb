"""The marking clock against numerical integration, and the numbers that it is held against."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy import integrate, optimize, stats

from fluidcc.engines.hybrid import random_marks

PROBABILITIES = st.floats(0.0, 0.99)


@njit
def gained(p, q, span):
    return random_marks.gained(p, random_marks.hazard(p), q, random_marks.hazard(q), span)


@njit
def wait_for(p, pace, wanted, most):
    return random_marks.wait_for(
        p, random_marks.hazard(p), pace, wanted, most, random_marks.antiderivative(most, random_marks.hazard(most))
    )


@njit
def uniforms(seed, hop, count):
    return np.array([random_marks.uniform(seed, hop, i) for i in range(count)])


def integral(p: float, pace: float, span: float) -> float:
    """Of the hazard over a time, by quadrature."""
    return float(
        integrate.quad(
            lambda t: -math.log1p(-min(p + pace * t, 1 - 1e-15)), 0, span, epsabs=0, limit=200, full_output=1
        )[0]
    )


@pytest.mark.parametrize("p", [1e-9, 1e-5, 0.9999e-4, 1.0001e-4, 1e-2, 0.5])
def test_the_integral_of_the_hazard_is_its_power_series(p: float) -> None:
    """-log(1 - p) is the sum of p^k/k, whose integral is that of p^k/(k (k - 1)): each further term is seen."""
    exact = math.fsum(p**k / (k * (k - 1)) for k in range(2, 200))
    found = random_marks.antiderivative.py_func(p, -math.log1p(-p))
    assert found == pytest.approx(exact, rel=1e-12 if p < 1e-4 else 1e-7, abs=0.0)


@given(PROBABILITIES, PROBABILITIES)
def test_the_clock_is_the_integral_of_the_hazard(p: float, q: float) -> None:
    expected = integral(p, (q - p) / 3.0, 3.0)
    assert gained(p, q, 3.0) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(PROBABILITIES, st.floats(-1e3, 1e3).filter(lambda x: abs(x) > 1e-6), st.floats(1e-6, 20.0))
def test_a_wait_ends_when_the_clock_has_come_far_enough(p: float, pace: float, wanted: float) -> None:
    span = ((1.0 if pace > 0 else 0.0) - p) / pace
    wait = wait_for(p, pace, wanted, 1.0)
    most = integral(p, pace, span)
    if math.isinf(wait):
        assert most <= wanted * (1 + 1e-6) or p == 0.0
        return
    assert 0 <= wait <= span * (1 + 1e-9)
    assert integral(p, pace, wait) == pytest.approx(wanted, rel=1e-6, abs=1e-12)


def test_a_wait_is_the_root_that_another_solver_finds() -> None:
    for p, pace, wanted, most in ((0.01, 200.0, 5e-4, 0.5), (0.4, -30.0, 0.001, 0.6), (0.0, 1e4, 3e-5, 1.0)):
        span = ((most if pace > 0 else 0.0) - p) / pace
        root = optimize.brentq(lambda t, p=p, pace=pace, w=wanted: integral(p, pace, t) - w, 0, span, xtol=1e-15)
        assert wait_for(p, pace, wanted, most) == pytest.approx(root, rel=1e-9)
    assert wait_for(0.01, 200.0, 0.1, 0.5) == math.inf  # it comes to 0.5 before
    assert wait_for(0.0, 200.0, 0.0, 0.5) == wait_for(0.3, -2.0, -1e-18, 0.5) == 0.0  # nothing is left to wait for


def test_numbers_are_uniform_and_independent() -> None:
    found = np.array([uniforms(seed, hop, 4000) for seed in (0, 1, 2**62) for hop in (0, 1, 77)])
    assert found.min() > 0
    assert found.max() <= 1
    assert len(np.unique(found)) == found.size
    for row in found:
        assert stats.kstest(row, "uniform").pvalue > 1e-3
    between = np.corrcoef(found) - np.eye(len(found))
    along = [np.corrcoef(row[:-1], row[1:])[0, 1] for row in found]
    assert max(np.abs(between).max(), *np.abs(along)) < 5 / math.sqrt(4000)
