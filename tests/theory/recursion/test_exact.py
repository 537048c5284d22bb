"""HPCC's appendix A in exact rationals on drawn networks: what is said holds with equality or not at all."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.theory.recursion import exact, networks
from fluidcc.theory.recursion.optimal import equilibrium
from fluidcc.theory.recursion.pareto import residual

TARGET = Fraction(19, 20)
positive = st.fractions(Fraction(1, 5), 9, max_denominator=7)


@st.composite
def incidences(draw, most=4):
    """Small incidence matrices; every link is used."""
    links, paths = draw(st.integers(1, most)), draw(st.integers(1, most))
    used = draw(st.lists(st.sets(st.integers(0, links - 1), min_size=1), min_size=paths, max_size=paths))
    A = networks.from_paths([sorted(u) for u in used], [1] * links).A.astype(int)
    return A[A.any(axis=1)]


@st.composite
def problems(draw):
    """Incidence, capacities and rates."""
    A = draw(incidences())
    C, R0 = (draw(st.lists(positive, min_size=n, max_size=n)) for n in A.shape)
    return A, C, R0


def over_links(A, values, pick):
    """Per path, the least or greatest value of its links."""
    return np.array([pick(values[i] for i in np.flatnonzero(column)) for column in A.T], dtype=object)


# A.2


@given(problems())
@settings(max_examples=50)
def test_lemma_and_the_bound_in_its_place(problem):
    """(i), (ii), the full link, and 1 - m_j(n) <= (1 - m_j(1)) (1 - rho_j)^(n-1); rates have any numerators."""
    A, C, R0 = problem
    run = fc.theory.pareto(A, C, R0, steps=5, exact=True)
    U, R = run.utilization, run.rates
    assert (U[1:] <= 1).all()
    assert (R[2:] >= R[1:-1]).all()
    assert (U[1][U[0] == U[0].max()] == 1).all()
    m = [over_links(A, used, max) for used in U]
    rho = R[1] / over_links(A, C, max)
    for n in range(1, 6):
        assert (1 - m[n] <= (1 - m[1]) * (1 - rho) ** (n - 1)).all()


@given(problems())
@settings(max_examples=50)
def test_a_link_beside_settled_paths_fills_at_its_rate(problem):
    """1/x - 1/x* falls by F/C a step, exactly, while the paths that end elsewhere send F and x ends there."""
    A, C, R0 = problem
    run = fc.theory.pareto(A, C, R0, steps=6, exact=True)
    U, R = run.utilization, run.rates
    for n in range(1, 6):
        for k in range(len(C)):
            here = [(A[k] > 0) & (over_links(A, U[m], max) == U[m][k]) for m in (n, n + 1)]
            elsewhere = (A[k] > 0) & ~here[0]
            if U[n][k] == 1 or (here[0] != here[1]).any() or not here[0].any():
                continue
            if (R[n][elsewhere] != R[n + 1][elsewhere]).any():
                continue
            F, x, after = R[n][elsewhere].sum(), R[n][here[0]].sum(), R[n + 1][here[0]].sum()
            fixed_point = C[k] - F
            assert 1 / after - 1 / fixed_point == Fraction(F) / C[k] * (1 / x - 1 / fixed_point)


@given(problems())
@settings(max_examples=30)
def test_the_limit_fills_a_link_of_every_path(problem):
    """`limit` is exact: where the bottlenecks stay, feasible, with a full link on every path."""
    A, C, R0 = problem
    run = fc.theory.pareto(A, C, R0, steps=8, exact=True)
    U = A @ run.limit / np.array(C, dtype=object)
    if (over_links(A, run.utilization[-1], max) != over_links(A, run.utilization[-2], max)).any() and (U > 1).any():
        return  # too few steps: the bottlenecks still change
    if run.pareto_optimal:
        assert (U <= 1).all()
        assert (over_links(A, U, max) == 1).all()


@given(problems())
@settings(max_examples=50)
def test_repair_ends_in_time_at_a_pareto_optimum(problem):
    A, C, R0 = problem
    run = residual(A, C, R0, exact=True)
    assert run.settled_after <= min(A.shape)
    assert (run.utilization[1:] <= 1).all()
    assert (over_links(A, run.utilization[-1], max) == 1).all()


@given(problems())
@settings(max_examples=30)
def test_fractions_are_the_same_by_either_arithmetic(problem):
    """gmpy2's rationals, where they are installed, and Python's; what is returned is `Fraction` in lowest terms."""
    rows = [fc.theory.pareto(*problem, steps=5, exact=True).rates]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "rational_type", lambda: Fraction)
        rows.append(fc.theory.pareto(*problem, steps=5, exact=True).rates)
    assert (rows[0] == rows[1]).all()
    for a, b in zip(*(row.ravel() for row in rows), strict=True):
        assert type(a) is Fraction
        assert (a.numerator, a.denominator, hash(a)) == (b.numerator, b.denominator, hash(b))
        assert type(a.numerator) is int


def compare(places, steps):
    """Largest relative difference of floats from rationals, over all rates and steps."""
    A, C = networks.random(8, 12, seed=5, count=1000)
    R0 = np.random.default_rng(6).integers(1, 11, size=(1000, 12))
    worst = 0.0
    for k in places:
        rates = (fc.theory.pareto(A[k], C[k], R0[k], steps, exact=flag).rates.astype(float) for flag in (True, False))
        worst = max(worst, float(np.abs(np.divide(*rates) - 1).max()))
    return worst


# It comes with the extra `test`; where it is missing, 24 steps are still compared (test_recursion.py).
no_gmpy2 = importlib.util.find_spec("gmpy2") is None
needs_gmpy2 = pytest.mark.skipif(no_gmpy2, reason="64 exact steps need gmpy2's fast gcd, an optional extra")


@needs_gmpy2
def test_floats_are_the_fractions_for_64_steps():
    assert compare(range(20), 64) < 1e-12


@needs_gmpy2
@pytest.mark.slow
def test_floats_are_the_fractions_for_64_steps_on_ten_more():
    assert compare(range(20, 30), 64) < 1e-12


# A.3, backwards: rates and links' levels are chosen, capacities follow, and everything is rational


@st.composite
def fixed_points(draw):
    """Incidence, a, and R_i = a/(1 - Ut/U_i) of each link, greater than a; a fourth power, so that roots are exact."""
    A = draw(incidences())
    a = draw(st.fractions(Fraction(1, 100), Fraction(1, 2), max_denominator=100))
    roots = draw(st.lists(positive, min_size=len(A), max_size=len(A)))
    return A, a, np.array([a * (1 + root**4) for root in roots], dtype=object)


@given(fixed_points())
@settings(max_examples=50)
@pytest.mark.slow
def test_equilibrium_of_the_additive_increase(fixed_point):
    """R = a/(1 - Ut/U) is at equilibrium, exactly; ordered as A.3 says; below full if a < R_(1)(1 - Ut); and the
    solver's.
    """
    A, a, levels = fixed_point
    U = TARGET / (1 - a / levels)
    R = over_links(A, levels, min)
    C = A @ R / U
    most = over_links(A, U, max)
    assert (R * TARGET / most + a == R).all()
    order = np.argsort(R, kind="stable")
    assert (np.diff(most[order]) <= 0).all()
    assert (most.max() < 1) == (a < R.min() * (1 - TARGET))
    floats = R.astype(float)
    # Rounding of C moves the rest by about R/a times as much: a relative 1e-16 times at most 6600.
    np.testing.assert_allclose(equilibrium(A, C, increase=float(a)), floats, rtol=1e-11)
    run = fc.theory.additive_increase(A, C.astype(float), floats, increase=float(a), steps=3)
    np.testing.assert_allclose(run.rates, np.tile(floats, (4, 1)), rtol=1e-13)


@given(fixed_points(), st.sampled_from([1, 2, 4]), st.data())
@settings(max_examples=50)
def test_registers_at_rest_are_alpha_fair(fixed_point, n, data):
    """(7) with alpha = 1/n: R^-alpha is the sum of the links' prices, so no feasible rates R' do better, exactly.

    Optimal if and only if the sum of R_j^-alpha (R'_j - R_j) is at most 0 for all R' within the loads.
    """
    A, a, _ = fixed_point
    draw = st.lists(positive, min_size=len(A), max_size=len(A))
    roots = 1 + np.array(data.draw(draw), dtype=object)
    levels, prices = roots**n, 1 / roots  # R_i and R_i^-alpha
    U = TARGET / (1 - a / levels)
    assert (levels * TARGET / U + a == levels).all()  # the registers rest
    price = A.T @ prices
    R = 1 / price**n  # (7)
    loads = A @ R
    others = np.array(data.draw(st.lists(positive, min_size=A.shape[1], max_size=A.shape[1])), dtype=object)
    others = others / (A @ others / loads).max()  # feasible, and touching a link's load
    assert (price * (others - R)).sum() <= 0


@given(st.lists(positive, min_size=1, max_size=30))
def test_one_link_is_on_its_load_after_one_step(rates):
    """The load's eigenvalue is 0: sum of R = Ut C + N a after one step, from anywhere; differences shrink by Ut/U."""
    flows = len(rates)
    a, load = Fraction(1, 50), sum(rates)
    after = [rate * TARGET / load + a for rate in rates]
    assert sum(after) == TARGET + flows * a
    again = [rate * TARGET / sum(after) + a for rate in after]
    for (one, two), (next_one, next_two) in zip(pairwise(after), pairwise(again), strict=True):
        assert next_two - next_one == (two - one) * TARGET / (TARGET + flows * a)
