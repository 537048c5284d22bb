"""Characteristic roots: closed forms, Lambert's W, the argument principle, hard cases, batches, bad input."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag
from scipy.special import lambertw

from fluidcc.dde.characteristic import _first_guess, abscissa, count_right, roots
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.errors import InputError

EXACT = 1e-10  # relative to 1 + |s|, stated first; Newton leaves a few roundings times the condition of the root
RESIDUAL = 1e-9  # relative backward error, stated first
SAME = 1e-12  # of one root computed in two ways, relative to 1 + |s|: rounding times the condition of random systems
PRINTED = 5e-7  # six printed decimals


def scalar(a, b, tau=1.0):
    """x'(t) = a x(t) + b x(t - tau)."""
    return DelaySystem([[a]], [[[b]]], [tau])


def draw(rng, most_states=6, most_delays=3):
    """Random system of order 1: entries and delays (up to 2) from unit scales."""
    n, count = rng.integers(1, most_states + 1), rng.integers(1, most_delays + 1)
    return DelaySystem(rng.normal(size=(n, n)), rng.normal(size=(count, n, n)), rng.uniform(0, 2, size=count))


def distance(found, expected):
    """Largest distance, relative to 1 + |s|, of the roots of either list from the other."""
    apart = np.abs(found[:, None] - expected) / (1 + np.abs(expected))
    return max(apart.min(axis=0).max(), apart.min(axis=1).max())


def test_roots_right_of_a_line_far_from_the_imaginary_axis():
    """x' = 10 x, beside a delay that matters little: one root, right of -10 and of 0, none right of 20."""
    assert [int(count_right(scalar(10.0, 1e-9), line)) for line in (-10.0, 0.0, 20.0)] == [1, 1, 0]


def test_no_undelayed_term():
    found = roots(scalar(0, -1), 2)
    assert found.s.real == pytest.approx([-0.318132, -0.318132], abs=PRINTED)
    assert found.s.imag == pytest.approx([1.337236, -1.337236], abs=PRINTED)
    assert found.state == "ok"
    value, frequency, residual, state = abscissa(scalar(0, -1))
    assert (value, frequency) == pytest.approx((-0.318132, 1.337236), abs=PRINTED)
    assert state == "ok"
    assert residual < RESIDUAL


def test_lambert_w():
    """s = a + W_k(b tau e^(-a tau)) / tau, 40 roots of each of 20 equations."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        a, b, tau = *rng.normal(scale=3, size=2), rng.uniform(0.1, 3)
        found = roots(scalar(a, b, tau), 40)
        branches = a + lambertw(b * tau * np.exp(-a * tau), np.arange(-60, 61)) / tau
        expected = branches[np.argsort(-branches.real)][: found.number]
        assert found.state == "ok"
        assert distance(found.s * tau, expected * tau) < EXACT


@pytest.mark.slow
def test_rings():
    """Each state drives the next, one of them late: (s + 1)^n = b e^(-s T), Lambert's W once more, weak and strong.

    Eigenvalues of the collocated matrix are known to its rounding, 1e-13, times e^(-T Re s): down to T Re s = -20 that
    is less than Newton may move a root, 1e-3. Roots farther left may be unresolved; what is found is right anyway.
    """
    rng = np.random.default_rng(8)
    resolved = 0
    for _ in range(60):
        n, T = int(rng.integers(2, 6)), rng.uniform(0.2, 2)
        gains = 10 ** rng.uniform(-3, 2, size=n) * rng.choice([-1, 1], size=n)
        A0, A = -np.eye(n) + np.diag(gains[:-1], -1), np.zeros((1, n, n))
        A[0, 0, -1] = gains[-1]
        found = roots(DelaySystem(A0, A, [T]), 8)
        b = np.prod(gains)
        each = np.abs(b) ** (1 / n) * np.exp(1j * (np.pi * (b < 0) + 2 * np.pi * np.arange(n)) / n)
        expected = (-1 + n / T * lambertw(T / n * each * np.exp(T / n), np.arange(-40, 41)[:, None])).ravel()
        expected = expected[np.argsort(-expected.real)]
        assert found.state == "ok" or expected[7].real * T < -20
        assert distance(found.s * T, expected[: found.number] * T) < EXACT
        resolved += int(found.state == "ok")
    assert resolved > 40


def test_random_systems():
    """Residuals, and none missed: the argument principle counts as many roots right of a line between two of them."""
    rng = np.random.default_rng(2)
    for _ in range(40):
        system = draw(rng)
        found = roots(system, 8)
        assert found.state == "ok"
        assert found.residual.max() < RESIDUAL
        gaps = -np.diff(found.s.real)
        last = int(np.argmax(gaps))
        assert count_right(system, found.s.real[last] - gaps[last] / 2) == last + 1
        assert count_right(system, found.s.real[0] + 1e-3) == 0
        most = abscissa(system)
        assert most.value == pytest.approx(found.s.real[0], abs=SAME * (1 + abs(found.s[0])))


def test_order_and_pairs():
    rng = np.random.default_rng(3)
    for count in (1, 2, 5, 9):
        found = roots(draw(rng), count)
        assert found.number in (count, count + 1)
        assert len(found.s) == len(found.residual) == found.number
        assert (np.diff(found.s.real) <= 0).all()
        upper = found.s[found.s.imag > 0]
        np.testing.assert_array_equal(np.sort(upper.conj()), np.sort(found.s[found.s.imag < 0]))


@given(st.integers(1, 6), st.integers(0, 3), st.integers(0, 1000))
def test_zero_delays(n, count, seed):
    """The eigenvalues of A0 + sum A_k, all of them and no more."""
    rng = np.random.default_rng(seed)
    A0, A = rng.normal(size=(n, n)), rng.normal(size=(count, n, n))
    found = roots(DelaySystem(A0, A, np.zeros(count)), n + 3)
    assert found.number == n
    assert found.state == "ok"
    assert distance(found.s, np.linalg.eigvals(A0 + A.sum(axis=0))) < EXACT


def test_delays_of_very_different_size():
    """Ratio 1e4: an ordinary problem while no dynamics are as fast as the short delay, and a state when they are."""
    slow = DelaySystem([[-1.0]], [[[0.5]], [[-2.0]]], [1e-4, 1.0])
    found = roots(slow, 10)
    assert found.state == "ok"
    assert found.residual.max() < RESIDUAL
    line = (found.s.real[5] + found.s.real[6]) / 2
    assert count_right(slow, line) == 6
    fast = DelaySystem([[0.0]], [[[-5e3]], [[-2.0e3]]], [1e-4, 1.0])
    value, _, residual, state = abscissa(fast)
    assert state == "unresolved"
    assert np.isfinite(value) or value == -np.inf
    assert residual < RESIDUAL or value == -np.inf


def test_fast_lag_beside_slow_delay():
    """A filter 1e6 times faster than the delay, followed by the rest, needs no more nodes than none."""
    found = abscissa(DelaySystem([[-1e6, 1e6], [0, 0]], [[[0, 0], [-1, 0]]], [1.0]))
    assert found.state == "ok"
    assert found.value == pytest.approx(-0.318132, abs=1e-5)  # the filter's lag shifts it by 1e-6 times |s|^2 or so


def test_identical_flows():
    """N flows alike: one aggregate mode, and N - 1 equal fairness modes, semi-simple."""
    rng = np.random.default_rng(4)
    N = 4
    own, lagged, shared = (rng.normal(size=(2, 2)) for _ in range(3))
    whole = DelaySystem(np.kron(np.eye(N), own), [np.kron(np.eye(N), lagged) + np.kron(np.ones((N, N)), shared)], [1.0])
    fairness = roots(DelaySystem(own, [lagged], [1.0]), 6).s
    aggregate = roots(DelaySystem(own, [lagged + N * shared], [1.0]), 12).s
    found = roots(whole, 16)
    assert found.residual.max() < RESIDUAL
    assert found.state == "ok"
    expected = np.concatenate([np.repeat(fairness, N - 1), aggregate])
    expected = expected[np.argsort(-expected.real, kind="stable")][: len(found.s)]
    np.testing.assert_allclose(found.s.real, expected.real, rtol=0, atol=1e-9)
    assert distance(found.s, expected) < EXACT


def test_copies_side_by_side():
    rng = np.random.default_rng(5)
    A0, A = rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    one = roots(DelaySystem(A0, [A], [1.0]), 4).s
    three = roots(DelaySystem(block_diag(A0, A0, A0), [block_diag(A, A, A)], [1.0]), 3 * len(one))
    assert distance(three.s, one) < EXACT
    assert all((np.abs(three.s - s) < EXACT * (1 + abs(s))).sum() == 3 for s in one)


def test_double_root():
    """x' = -x(t - 1) / e has the double root -1, known to the square root of the precision only."""
    found = roots(scalar(0, -np.exp(-1)), 2)
    assert found.residual.max() < RESIDUAL
    assert np.abs(found.s + 1).max() < 1e-6
    assert count_right(scalar(0, -np.exp(-1)), -1.1) == 2


def test_defective_eigenvalues_without_delay():
    """(s + 1)^6, hidden by a similarity: the rounding to its sixth root, 3e-3, is more than Newton may move a root."""
    rng = np.random.default_rng(9)
    hidden, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    found = roots(DelaySystem(hidden @ (np.eye(6, k=1) - np.eye(6)) @ hidden.T, np.zeros((0, 6, 6)), []), 6)
    assert found.state == "ok"
    assert found.number == 6
    assert found.residual.max() < RESIDUAL
    assert np.abs(found.s + 1).max() < 0.02


def test_empty_batch():
    nothing = DelaySystem(np.zeros((0, 2, 2)), np.zeros((0, 1, 2, 2)), np.zeros((0, 1)))
    assert abscissa(nothing).value.shape == (0,)
    assert roots(nothing, 3).number.shape == (0,)


def test_one_way_coupling_adds_no_root():
    """A delay on the way from one state to another that does not act back: n roots, whatever is asked."""
    found = roots(DelaySystem([[-1, 0], [0, -2]], [[[0, 1], [0, 0]]], [1.0]), 6)
    assert found.number == 2
    np.testing.assert_allclose(found.s, [-1, -2], atol=SAME)
    assert found.state == "ok"


@given(st.integers(0, 1000), st.floats(-9, 9), st.floats(-9, 9))
@pytest.mark.slow
def test_units_do_not_matter(seed, time, state):
    """Seconds or nanoseconds, bytes or terabytes."""
    rng = np.random.default_rng(seed)
    system = draw(rng, 4, 2)
    unit = 10.0**time
    scale = 10.0 ** (state * np.arange(system.order) / system.order)
    similar = scale / scale[:, None]
    other = DelaySystem(system.A0 * similar / unit, system.A * similar / unit, system.tau * unit)
    a, b = roots(system, 4), roots(other, 4)
    assert b.state == "ok"
    assert distance(b.s * unit, a.s) < EXACT


def test_batch_equals_single():
    rng = np.random.default_rng(6)
    A0, A, tau = rng.normal(size=(5, 7, 3, 3)), rng.normal(size=(5, 7, 2, 3, 3)), rng.uniform(0, 3, size=(5, 7, 2))
    A[0, 0], tau[0, 1], A[0, 2, 0] = 0, 0, 0  # no delay, zero delay, one of two unread
    batch = DelaySystem(A0, A, tau)
    many, most, counts = roots(batch, 5), abscissa(batch), count_right(batch)
    assert most.value.shape == counts.shape == (5, 7)
    assert (many.state == "ok").all()
    for at in np.ndindex(5, 7):
        one = roots(batch[at], 5)
        assert one.number == many.number[at]
        assert distance(one.s, many.s[at][: one.number]) < EXACT
        assert np.isnan(many.s[at][one.number :]).all()
        assert most.value[at] == pytest.approx(one.s.real[0], abs=EXACT)
        assert counts[at] == count_right(batch[at])
    two = roots(batch, 5, threads=2)
    np.testing.assert_array_equal(two.s, many.s)


def test_batch_axes_are_broadcast():
    """One equation, many delays: x' = -x(t - tau) is unstable from pi / 2 on."""
    tau = np.array([[0.5], [1.5], [1.6], [3.0]])
    family = DelaySystem([[0.0]], [[[-1.0]]], tau)
    assert family.shape == (4,)
    np.testing.assert_array_equal(abscissa(family).value > 0, [False, False, True, True])
    np.testing.assert_array_equal(count_right(family), [0, 0, 2, 2])


def test_characteristic_matrix():
    """Shapes, and the derivative against a central difference: error of order h^2, 1e-10, over rounding 1e-11."""
    rng = np.random.default_rng(7)
    batch = DelaySystem(rng.normal(size=(5, 3, 3)), rng.normal(size=(5, 2, 3, 3)), rng.uniform(0, 1, (5, 2)))
    s = rng.normal(size=(5, 4)) + 1j * rng.normal(size=(5, 4))
    assert batch.characteristic(s).shape == (5, 4, 3, 3)
    assert batch.characteristic(1j).shape == (5, 3, 3)
    np.testing.assert_allclose(batch.characteristic(s)[2, 1], batch[2].characteristic(s[2, 1]), atol=SAME)
    h = 1e-5
    slope = (batch.characteristic(s + h) - batch.characteristic(s - h)) / (2 * h)
    np.testing.assert_allclose(batch.derivative(s), slope, atol=1e-8)


@given(st.integers(0, 1000), st.floats(-1.5, 0.5))
@settings(max_examples=40)
def test_bound_holds(seed, sigma):
    system = draw(np.random.default_rng(seed))
    s = roots(system, 12).s
    assert (np.abs(s[s.real >= sigma] - sigma) <= system.bound(sigma) * (1 + SAME)).all()


def test_counting_on_a_root_is_refused():
    with pytest.raises(InputError, match="on the line"):
        count_right(DelaySystem([[0.0]], np.zeros((0, 1, 1)), []), 0.0)
    with pytest.raises(InputError, match="overflows"):
        count_right(scalar(0, -1), -1e6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0, 2.0]], [[[1.0]]], [1.0]), "A0: shape"),
        ((1.0, [[[1.0]]], [1.0]), "A0: shape"),
        (([[1.0]], [[[1.0, 2.0]]], [1.0]), "A: shape"),
        (([[1.0]], [[1.0]], [1.0]), "A: shape"),
        (([[1.0]], [[[1.0]]], [1.0, 2.0]), "tau: shape"),
        (([[1.0]], [[[1.0]]], [-1.0]), r"tau\[0\]: -1 s"),
        (([[np.nan]], [[[1.0]]], [1.0]), r"A0\[0, 0\]: nan"),
        (([[1.0]], [[[np.inf]]], [1.0]), r"A\[0, 0, 0\]: inf"),
        (([[1j]], [[[1.0]]], [1.0]), "A0: not an array of real numbers"),
        (([["a"]], [[[1.0]]], [1.0]), "A0: not an array of real numbers"),
        (([[1.0], [1.0, 2.0]], [[[1.0]]], [1.0]), "A0: not an array of real numbers"),
        ((np.zeros((3, 1, 1)), np.zeros((2, 1, 1, 1)), [1.0]), "batch axes"),
    ],
)
def test_bad_systems(arguments, message):
    with pytest.raises(InputError, match=message):
        DelaySystem(*arguments)


def test_bad_requests():
    with pytest.raises(InputError, match="count: 0"):
        roots(scalar(0, -1), 0)
    with pytest.raises(InputError, match="s: shape"):
        DelaySystem(np.zeros((3, 1, 1)), np.zeros((1, 1, 1)), [1.0]).characteristic(np.zeros(4))


@pytest.mark.parametrize(
    ("own", "delayed", "guess"),
    [(-0.5, [0.25], -0.25), (-0.5, [0.125, 0.25], -0.125), (-3.0, [0.5], -1.0), (0.5, [0.25], 0.0)],
)
def test_a_search_begins_where_the_system_without_delays_has_its_root(own: float, delayed: Any, guess: float) -> None:
    """Within (-1, 0): a wrong guess costs time, and nothing else would notice it."""
    system: Any = SimpleNamespace(A0=np.array([[own]]), A=np.array(delayed)[:, None, None])
    assert _first_guess(system) == pytest.approx(guess)
