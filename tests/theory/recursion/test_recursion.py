"""HPCC's appendix A: its true lemmas on random networks in rationals, its false one refuted, optima by other means.

Tolerances, stated before measuring: 1e-12 relative between float and exact arithmetic (64 contracting steps of a few
roundings each); 1e-3 against the convex optimiser, which stops at gaps of that order in flat directions; what is first
order in the increase `a` must shrink about tenfold with it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import fluidcc as fc
from fluidcc.theory import additive_increase, alpha_fair, pareto
from fluidcc.theory.recursion import networks
from fluidcc.theory.recursion.additive import single_link_modes
from fluidcc.theory.recursion.optimal import alpha_optimum, equilibrium, is_pareto, max_min
from fluidcc.theory.recursion.pareto import pareto_batch, residual, step
from fluidcc.theory.recursion.windows import window_limit

SHAPES = ((3, 2), (4, 4))
COUNTEREXAMPLE = ([[1, 1, 0], [1, 0, 1]], [1, 2], [1, 1, 1])  # A on both links, B on the first, C on the second


@st.composite
def problems(draw, shapes=None):
    """Incidence, whole capacities and whole rates of a network of at most 4 links and paths.

    Floats are given ``shapes``, since each is compiled; a smaller network has links there that nobody uses.
    """
    links, paths = draw(st.sampled_from(shapes) if shapes else st.tuples(st.integers(1, 4), st.integers(1, 4)))
    used = draw(st.lists(st.sets(st.integers(0, links - 1), min_size=1), min_size=paths, max_size=paths))
    sizes = st.integers(1, 9)
    C = draw(st.lists(sizes, min_size=links, max_size=links))
    R0 = draw(st.lists(sizes, min_size=paths, max_size=paths))
    return networks.from_paths([sorted(u) for u in used], C).A.astype(int), C, R0


# A.2: the lemma


def test_counterexample_never_arrives():
    run = pareto(*COUNTEREXAMPLE, steps=12, exact=True)
    assert [str(r) for r in run.rates[:5, 2]] == ["1", "1", "4/3", "16/11", "64/43"]
    assert list(run.limit) == [Fraction(1, 2), Fraction(1, 2), Fraction(3, 2)]
    assert run.settled_after is None
    assert run.asymptotic_rate == 0.25
    assert list(run.bottleneck) == [0, 0, 1]
    assert run.pareto_optimal
    assert not is_pareto(*COUNTEREXAMPLE[:2], run.rates[2])  # after as many steps as there are links
    gaps = [1 / rate - Fraction(2, 3) for rate in run.rates[1:, 2]]
    assert all(b == a / 4 != 0 for a, b in pairwise(gaps))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_one_link_beside_a_frozen_load(frozen, room, start):
    """1/x_n - 1/x* = (F/C)^(n-1) (1/x_1 - 1/x*), exactly."""
    # The frozen path fills a link of its own, so that its rate is that link's from the first step on.
    F, C = Fraction(frozen), Fraction(frozen + room)
    run = pareto([[1, 0], [1, 1]], [F, C], [100 * frozen, start], steps=6, exact=True)
    x = run.rates[:, 1]
    for n in range(1, 7):
        assert 1 / x[n] - 1 / (C - F) == (F / C) ** (n - 1) * (1 / x[1] - 1 / (C - F))


@given(problems())
@settings(max_examples=40)
def test_true_parts_of_the_lemma(problem):
    A, C, R0 = problem
    run = pareto(A, C, R0, steps=5, exact=True)
    assert (run.utilization[1:] <= 1).all()  # (i)
    assert (run.rates[2:] >= run.rates[1:-1]).all()  # (ii)
    assert run.utilization[1][run.utilization[0].argmax()] == 1  # the most loaded link fills in the first step
    m = np.where(A[None] > 0, run.utilization[:, :, None], 0).max(axis=1)
    shortest = np.where(A > 0, np.array(C)[:, None], 0).max(axis=0)
    for j in range(A.shape[1]):
        kept = 1 - run.rates[1, j] / int(shortest[j])
        for n in range(1, 6):
            assert 1 - m[n, j] <= (1 - m[1, j]) * kept ** (n - 1)


@given(problems(SHAPES))
@settings(max_examples=30)
def test_limit_is_approached_at_the_asymptotic_rate_and_pareto_optimal(problem):
    A, C, R0 = problem
    run = pareto(A, C, R0, steps=300)
    assert run.pareto_optimal
    bound = max(run.asymptotic_rate, 0.95) ** 250  # 300 steps less those until the bottlenecks stay
    np.testing.assert_allclose(run.final, run.limit, rtol=100 * bound + 1e-11)


def test_measured_ratio_of_gaps_is_the_asymptotic_rate():
    network = networks.random(5, 6, seed=11)
    run = pareto(network.A, network.C, np.arange(1, 7), steps=14, exact=True)
    assert 0 < run.asymptotic_rate < 1
    gaps = [float(max(1 - r / s for r, s in zip(row, run.limit, strict=True))) for row in run.rates[-2:]]
    assert gaps[1] / gaps[0] == pytest.approx(run.asymptotic_rate, rel=1e-2)


@given(problems())
@settings(max_examples=40)
def test_residual_capacity_keeps_the_promise(problem):
    A, C, R0 = problem
    run = residual(A, C, R0, exact=True)
    assert run.settled_after <= min(A.shape)
    assert (run.utilization[1:] <= 1).all()
    full = run.utilization[-1] == 1
    assert (A[full] > 0).any(axis=0).all()  # every path has a full link
    assert run.pareto_optimal
    np.testing.assert_allclose(residual(A, C, R0).final, run.final.astype(float), rtol=1e-12)


def test_finite_runs_say_so():
    one = [[1, 1], [0, 0], [0, 0]]  # a link, and two that nobody uses: a shape of `SHAPES`
    for exact in (False, True):
        run = pareto(one, [3, 1, 1], [1, 1], steps=8, exact=exact)
        assert run.settled_after == 1
        assert run.asymptotic_rate == 0
        assert pareto(one, [2, 1, 1], [1, 1], steps=8, exact=exact).settled_after == 0
        # Path 1 is limited by the link that it shares, until path 0 slows down, and then by its own.
        run = pareto([[1, 0], [1, 1], [0, 1]], [5, 50, 1], [500, 5], steps=8, exact=exact)
        assert run.settled_after == 2
        assert list(run.bottleneck) == [0, 2]


@given(problems(SHAPES))
@settings(max_examples=30)
def test_floats_judge_as_fractions_do(problem):
    exact, floats = (pareto(*problem, steps=8, exact=flag) for flag in (True, False))
    if exact.asymptotic_rate > 0.01 or exact.settled_after is not None:
        assert floats.asymptotic_rate == pytest.approx(exact.asymptotic_rate, rel=1e-6)
        assert floats.settled_after == exact.settled_after
        assert list(floats.bottleneck) == list(exact.bottleneck)
        np.testing.assert_allclose(floats.limit, exact.limit.astype(float), rtol=1e-9)


def test_pareto_check_sees_waste_and_excess():
    A, C = networks.linear(2)
    assert is_pareto(A, C, [0.3, 0.7, 0.7])
    assert not is_pareto(A, C, [0.3, 0.7, 0.6])
    assert not is_pareto(A, C, [0.4, 0.7, 0.7])


def test_step_on_fractions_and_floats():
    A, C = np.array([[1, 1, 0], [1, 0, 1]]), np.array([1, 2])
    R = step(A, C, np.array([Fraction(1)] * 3))
    assert list(R) == [Fraction(1, 2), Fraction(1, 2), 1]
    np.testing.assert_allclose(step(A, C, np.ones(3)), [0.5, 0.5, 1.0], rtol=1e-15)


# Batches


def _compare(count: int, steps: int) -> float:
    A, C = networks.random(8, 12, seed=5, count=count)
    R0 = np.random.default_rng(6).integers(1, 11, size=(count, 12))
    batch = pareto_batch(A, C, R0, steps)
    worst = 0.0
    for k in range(count):
        exact = pareto(A[k], C[k], R0[k], steps, exact=True)
        one = pareto(A[k], C[k], R0[k], steps)
        assert batch.rates[k] == pytest.approx(one.final, rel=1e-14)
        worst = max(worst, float(np.abs(one.rates / exact.rates.astype(float) - 1).max()))
    return worst


def test_batch_is_the_loop_and_floats_are_the_fractions():
    assert _compare(20, 16) < 1e-12


@pytest.mark.slow
def test_floats_are_the_fractions_on_a_thousand():
    # 24 steps, which Python's own integers do in time; 64 with gmpy2's are in test_exact.py.
    assert _compare(1000, 24) < 1e-12


def test_batches_broadcast_and_fill_chunks():
    A, C = networks.linear(2)
    R0 = np.random.default_rng(0).uniform(0.1, 2, size=(2, 300, 3))
    batch = pareto_batch(A, C, R0, 5)
    assert batch.rates.shape == (2, 300, 3)
    assert batch.utilization.shape == (2, 300, 2)
    R = R0[1, 299]
    for _ in range(5):
        R = step(A, C, R)
    np.testing.assert_allclose(batch.rates[1, 299], R, rtol=1e-14)
    np.testing.assert_allclose(batch.utilization, batch.rates @ A.T / C, rtol=1e-14)


# A.3


@pytest.mark.parametrize(
    "network",
    [
        pytest.param(networks.linear(3), marks=pytest.mark.slow),
        networks.parking_lot(4),
        pytest.param(networks.random(4, 6, seed=3), marks=pytest.mark.slow),
    ],
    ids=["linear", "parking lot", "random"],
)
def test_additive_increase_settles_where_the_paper_says(network):
    a = 0.01
    paths = network.A.shape[1]
    expected = equilibrium(network.A, network.C, increase=a)
    U = network.A @ expected / network.C
    worst = (network.A * U[:, None]).max(axis=0)
    np.testing.assert_allclose(expected, a / (1 - 0.95 / worst), rtol=1e-12)
    for periods in (1, np.arange(paths) % 3 + 1):
        run = additive_increase(
            network.A, network.C, np.linspace(0.1, 0.9, paths), increase=a, steps=20_000, periods=periods
        )
        np.testing.assert_allclose(run.final, expected, rtol=1e-9)


def test_small_increases_are_max_min_fair_to_first_order():
    A, C = networks.random(4, 6, seed=3)
    fair = max_min(A, 0.95 * C)
    errors = [np.abs(equilibrium(A, C, increase=a) / fair - 1).max() for a in (1e-3, 1e-4)]
    assert 9 < errors[0] / errors[1] < 11


def test_max_min_against_linear_programmes():
    """The classical sequence: raise the least rate, fix who cannot have more, repeat."""
    for seed in range(5):
        A, C = networks.random(4, 6, seed=seed)
        J = A.shape[1]
        fixed = np.full(J, np.nan)
        while np.isnan(fixed).any():
            free = np.isnan(fixed)
            room = C - A[:, ~free] @ fixed[~free]
            level = linprog([-1.0], A_ub=A[:, free].sum(axis=1)[:, None], b_ub=room).x[0]
            for j in np.flatnonzero(free):
                slack = room - A[:, free].sum(axis=1) * level
                if slack[A[:, j] > 0].min() < 1e-9:
                    fixed[j] = level
        np.testing.assert_allclose(max_min(A, C), fixed, rtol=1e-9)


def test_modes_of_one_link():
    N, a, Ut = 5, 0.02, 0.95
    modes = single_link_modes(N, increase=a, target=Ut)
    np.testing.assert_allclose(modes, [0, *[Ut / (Ut + N * a)] * (N - 1)], atol=1e-14)
    np.testing.assert_allclose(single_link_modes(N, increase=40 * a, target=Ut, capacity=40.0), modes, atol=1e-14)


@pytest.mark.parametrize(("eigenvalue", "settles"), [(0.69, True), (0.72, False)])
def test_two_more_round_trips_of_delay_destabilise(eigenvalue, settles):
    """The load's mode is z^3 = lambda (z^2 - 1), on the unit circle at lambda = 1/sqrt(2)."""
    a = 0.95 * (1 / eigenvalue - 1)
    run = additive_increase([[1]], [1], [1.01 * (0.95 + a)], increase=a, delays=2, steps=2000)
    late = np.abs(run.rates[-50:, 0] / (0.95 + a) - 1).max()
    assert (late < 1e-6) == settles


def test_no_further_delay_is_that_of_one_round_trip():
    default, none = (
        additive_increase([[1, 1]], [1], [0.2, 0.5], increase=0.01, **more) for more in ({}, {"delays": 0})
    )
    assert none.rates.tolist() == default.rates.tolist()
    with pytest.raises(fc.InputError, match="delays"):
        additive_increase([[1, 1]], [1], [0.2, 0.5], increase=0.01, delays=-1)


def test_noise_favours_short_paths():
    """Towards proportional fairness, (1, 2)/3 here, while it is small against a / R; beyond it when it is not."""
    A, C = networks.linear(2)
    shares = []
    for noise in (0.0, 0.005, 0.02, 0.05):
        run = additive_increase(A, C, [0.4, 0.4, 0.4], increase=0.01, steps=10_000, noise=noise, seed=1)
        mean = run.rates[5000:].mean(axis=0)
        shares.append(mean[0] / mean[1])
    assert shares[0] == pytest.approx(1, abs=1e-9)
    assert 1 > shares[1] > shares[2] > 0.5 > shares[3]
    again = additive_increase(A, C, [0.4, 0.4, 0.4], increase=0.01, steps=10_000, noise=0.05, seed=1)
    assert (again.final == run.final).all()


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 8.0])
def test_registers_are_alpha_fair(alpha):
    A, C = networks.random(4, 6, seed=1)
    errors = []
    for a in (3e-2, 3e-3):
        run = alpha_fair(A, C, np.ones(6), alpha=alpha, increase=a, steps=int(100 / a))
        U = run.utilization[-1]
        # At equilibrium the rates solve the problem whose capacities are the loads of the links with a price, exactly.
        np.testing.assert_allclose(run.final, alpha_optimum(A, np.where(U > 0.95, U * C, C), alpha=alpha), rtol=1e-3)
        errors.append(np.abs(run.final / alpha_optimum(A, 0.95 * C, alpha=alpha) - 1).max())
    assert 8 < errors[0] / errors[1] < 12


@pytest.mark.parametrize("alpha", [0.5, 1, 2, 8])
def test_alpha_fairness_of_a_linear_network(alpha):
    """The long path pays three prices: x^-alpha = 3 (1 - x)^-alpha."""
    A, C = networks.linear(3)
    x = 1 / (1 + 3 ** (1 / alpha))
    np.testing.assert_allclose(alpha_optimum(A, C, alpha=alpha), [x, 1 - x, 1 - x, 1 - x], rtol=1e-4)


def test_max_min_fairness_of_a_linear_network():
    A, C = networks.linear(3)
    np.testing.assert_allclose(max_min(A, C), 0.5)


# A.4


def test_window_limit_of_the_paper():
    run = window_limit(64)
    # Arrivals of 64.95 in one base RTT, less what the link serves in it.
    assert run.peak_queue == pytest.approx(63.95)
    assert run.last_rtt == pytest.approx(64.95)
    assert 1 / run.last_window == pytest.approx(64.95)
    assert 1 / window_limit(64, target=0.95).last_window == pytest.approx(64.95 / 0.95)
    burst = run.sent[np.searchsorted(run.time, 1.0 - 1e-9)]
    assert 0 < run.sent_after_burst == pytest.approx(run.sent[-1] - burst)
    assert run.sent_after_burst < 1 / 60
    free = window_limit(64, limited=False)
    assert free.peak_queue > 5 * run.peak_queue
    # Stamped as it leaves, behind the last packet there is only what came meanwhile.
    assert window_limit(64, background=0.0, stamp="departure").last_utilization < 16
    assert window_limit(64, background=0.0).last_utilization == pytest.approx(64.0)


# Networks


def test_shapes_of_the_generators():
    assert networks.linear(3).A.sum(axis=0).tolist() == [3, 1, 1, 1]
    assert networks.parking_lot(3).A.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert networks.star(4).A.shape == (8, 12)
    assert (networks.star(4).A.sum(axis=1) == 3).all()
    assert set(networks.leaf_spine(3, 2, 4, paths=50).A.sum(axis=0)) == {2, 4}
    tree = networks.fat_tree(4, paths=200, seed=1)
    assert tree.A.shape == (96, 200)
    assert set(tree.A.sum(axis=0)) == {2, 4, 6}
    many = networks.random(8, 12, seed=0, count=200, density=0.05)
    assert (many.A.sum(axis=1) >= 1).all()
    for network in (networks.fat_tree(4, paths=30), networks.leaf_spine(3, 2, 4, paths=30), networks.star(4)):
        assert residual(network.A, network.C, np.ones(network.A.shape[1])).pareto_optimal


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pareto([[1, 0]], [1], [1, 1]), r"path 1 uses no link; set A\[i, 1\] = 1"),
        (lambda: pareto([[2]], [1], [1]), r"A\[0, 0\]: 2; give 1 where"),
        (lambda: pareto([1, 1], [1], [1]), r"A: shape \(2,\); give a matrix"),
        (lambda: pareto([[[1]]], [[1]], [[1]]), "call pareto_batch"),
        (lambda: pareto([[1], [1, 0]], [1], [1]), "A: not an array of numbers"),
        (lambda: pareto([[np.nan]], [1], [1]), r"A\[0, 0\]: nan; give finite"),
        (lambda: pareto([[1]], [0], [1]), r"C\[0\]: 0; give every link"),
        (lambda: pareto([[1]], [1], [-1]), r"R0\[0\]: -1; give every path"),
        (lambda: pareto([[1]], [1, 2], [1]), r"C: shape \(2,\); A has 1 links, so give shape \(1,\)"),
        (lambda: pareto([[1]], [1], [np.nan], exact=True), r"R0\[0\]: nan is no rational"),
        (lambda: pareto([[1]], [1], [0], exact=True), r"R0\[0\]: 0; give every path"),
        (lambda: pareto([[1]], [1], [[1]], exact=True), r"R0: shape \(1, 1\)"),
        (lambda: pareto([[1]], [1], [1], steps=0), "steps: 0; give a whole number of at least 1"),
        (lambda: pareto_batch(np.ones((3, 1, 1)), np.ones((2, 1)), [1]), "leading axes"),
        (
            lambda: alpha_fair([[1]], [1], [1], alpha=0, increase=0.1),
            "alpha: 0; give one number greater than 0",
        ),
        (
            lambda: alpha_fair([[1]], [1], [1], alpha=-1, increase=0.1),
            "alpha: -1; give one number greater than 0",
        ),
        (lambda: alpha_fair([[1]], [1], [1], alpha=np.nan, increase=0.1), "alpha: nan; give finite numbers"),
        (lambda: additive_increase([[1]], [1], [1], increase=np.inf), "increase: inf; give finite numbers"),
        (lambda: additive_increase([[1]], [-1], [1], increase=0.1), r"C\[0\]: -1; give every link"),
        (lambda: additive_increase([[1]], [1], [0], increase=0.1), r"R0\[0\]: 0; give every path"),
        (lambda: alpha_fair([[1, 0]], [1], [1, 1], alpha=1, increase=0.1), "path 1 uses no link"),
        (lambda: residual([[1]], [0], [1]), r"C\[0\]: 0; give every link"),
        (lambda: pareto_batch([[[1]]], [[0]], [1]), r"C\[0, 0\]: 0; give every link"),
        (lambda: additive_increase([[1]], [1], [1], increase=-1), "increase: -1; give one number at least 0"),
        (lambda: additive_increase([[1]], [1], [1], increase=0.1, target=1.5), "at most 1"),
        (
            lambda: additive_increase([[1]], [1], [1], increase=0.1, periods=0.5),
            r"periods\[0\]: 0.5; give whole",
        ),
        (lambda: networks.from_paths([[0, 2]], [1, 1]), r"paths\[0\]: there is no link 2; links are 0 to 1"),
        (lambda: networks.from_paths([[0], []], [1]), r"paths\[1\]: uses no link"),
        (lambda: networks.from_paths([[0, 0]], [1]), "uses a link twice"),
        (lambda: networks.from_paths([], [1]), "paths: none"),
        (lambda: networks.from_paths(np.array([0, 1]), [1, 1]), "paths: not a list of lists"),
        (lambda: networks.from_paths([[0]], []), r"capacities: shape \(0,\); give a list"),
        (lambda: networks.from_paths([[0]], 1), r"capacities: shape \(\); give a list"),
        (lambda: networks.from_paths([[0]], [[1], [1, 2]]), "capacities: not an array of numbers"),
        (lambda: networks.fat_tree(3, paths=1), "k: 3 ports; a fat tree needs an even number, give 4"),
        (lambda: networks.star(2, [(0, 0)]), r"pairs\[0\]"),
        (lambda: networks.random(2, 2, seed=0, density=2), "density: 2"),
        (lambda: window_limit(64, stamp="late"), "give one of arrival, departure"),
        (lambda: window_limit(1, background=0), "make no queue"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(fc.InputError, match=message):
        call()


def test_pictures():
    assert pareto(*COUNTEREXAMPLE, steps=5, exact=True).plot()._repr_png_()
    assert additive_increase([[1, 1]], [1], [0.2, 0.5], increase=0.01).plot(title="two")._repr_png_()
    assert window_limit(8).plot()._repr_png_()
