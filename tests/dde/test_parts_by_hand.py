"""Small parts of delay systems by hand: norms, bounds, scales, sizes of matrices, joined curves, places and starts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.special import lambertw
from scipy.stats import qmc

from fluidcc.dde import characteristic, fixed_points, linear, response
from fluidcc.dde.boundary import _chains, _joined
from fluidcc.dde.characteristic import _chunks, _ladder, _possible
from fluidcc.dde.delay_system import DelaySystem, _mutual, balance, perron
from fluidcc.dde.equation import Equation, padded
from fluidcc.dde.fixed_points import _alike, _box, _starts, _told
from fluidcc.dde.linear import _lags, _merged, _size
from fluidcc.dde.periodic import everywhere
from fluidcc.dde.response import DelayLoop, _nearest_to_one
from fluidcc.dde.solution import _difference
from fluidcc.errors import InputError

EXACT = 1e-12
SYSTEM: Any = DelaySystem  # also of lists
LOOP: Any = DelayLoop


def test_without_delays_the_unit_is_that_of_all_matrices() -> None:
    """Frobenius norms of each lag's, summed: sqrt(2) of a swap; norms of its columns would be 2."""
    _, unit = SYSTEM(np.zeros((1, 2, 2)), np.array([[[[0.0, 1.0], [1.0, 0.0]]]]), np.zeros((1, 1))).normalised()
    assert unit == pytest.approx([1 / np.sqrt(2)], rel=EXACT)


@pytest.mark.parametrize(("sigma", "farthest"), [(0.5, 10.5), (-0.5, np.hypot(10, 0.5)), (0.0, 10.0)])
def test_nodes_are_those_of_the_farthest_root(sigma: float, farthest: float) -> None:
    """A disc of 10 around 0, right of a line on its left or its right."""
    system: Any = SimpleNamespace(bound=lambda _: np.array([10.0]), tau=np.ones((1, 1)))
    wanted = np.ceil(farthest / 2 + 4 * farthest ** (1 / 3) + 2 + 0.4 * max(-sigma, 0.0))
    assert characteristic.nodes_needed(system, np.array([sigma])).tolist() == [wanted]


def test_a_singular_value_of_rounding_is_no_signal() -> None:
    """A millionth of a millionth, to the bit, is rounding; twice that is a second signal."""
    one = SYSTEM(-np.eye(2), [np.diag([1.0, 1e-12])], [1.0])
    assert linear.loop(one, 0).C.tolist() in ([1.0, 0.0], [-1.0, 0.0])
    with pytest.raises(InputError, match="2 signals come back"):
        linear.loop(SYSTEM(-np.eye(2), [np.diag([1.0, 2e-12])], [1.0]), 0)


def test_ends_that_are_a_cell_apart_are_one() -> None:
    first, near, far = (np.array([[x, 0.0], [x + 1, 0.0]]) for x in (0.0, 2.0, 2.0 + 1e-9))
    assert [len(each) for each in _joined([first, near])] == [4]
    assert [len(each) for each in _joined([first, far])] == [2, 2]


def test_norms_and_derivatives_of_a_system_at_a_point() -> None:
    """With e^(-s tau) by hand, of two delays, at a complex s."""
    A0, A, tau = (
        np.array([[1.0, 2.0], [0.0, -3.0]]),
        np.array([np.diag([4.0, 0.0]), [[0.0, 1.0], [2.0, 0.0]]]),
        [0.5, 2],
    )
    s = 0.3 + 1.7j
    system = SYSTEM(A0, A, tau)
    factors = [np.exp(-s * 0.5), np.exp(-s * 2)]
    wanted = s * np.eye(2) - A0 - factors[0] * A[0] - factors[1] * A[1]
    assert system.characteristic(s) == pytest.approx(wanted)
    assert system.derivative(s) == pytest.approx(np.eye(2) + 0.5 * factors[0] * A[0] + 2 * factors[1] * A[1])
    size = abs(s) + np.sqrt(14) + np.exp(-0.15) * 4 + np.exp(-0.6) * np.sqrt(5)
    assert float(system.size(s)) == pytest.approx(size)
    batch = SYSTEM(np.stack([A0, 2 * A0]), A, tau)
    assert batch.size(np.array([[s, 1j], [s, 0]])).shape == (2, 2)
    assert batch.size(np.array([[s, 1j], [s, 0]]))[1, 0] == pytest.approx(size + np.sqrt(14))
    assert _size(system) == pytest.approx(np.sqrt(14) + 4 + np.sqrt(5))


def test_the_bound_of_one_state_is_where_its_moduli_meet() -> None:
    """|z| = e^(-sigma tau) |A| without damping; with a_11 = -3 it is that of sqrt(z^2 + 9) = 5, with +3 it is 8.

    A state that grows faster than the line does adds what it is ahead.
    """
    for own, line, wanted in ((0.0, 0.0, 5.0), (-3.0, 0.0, 4.0), (3.0, 0.0, 8.0), (0.0, -0.5, 5 * np.e)):
        found = float(SYSTEM([[own]], [[[-5.0]]], [2.0]).bound(line))
        assert wanted * (1 - EXACT) <= found <= wanted * 1.2
    assert float(SYSTEM([[3.0]], [[[-5.0]]], [2.0]).bound(0.0)) == pytest.approx(8.0)
    assert float(SYSTEM([[0.0]], [[[-5.0]]], [2.0]).bound(-0.5)) == pytest.approx(0.5 + 5 * np.e)
    # With damping each round lowers it: z <- 5 z / sqrt(z^2 + 9) from 5, four times.
    z = 5.0
    for _ in range(4):
        z = min(z, 5 * z / np.hypot(z, 3.0))
    assert float(SYSTEM([[-3.0]], [[[-5.0]]], [2.0]).bound(0.0)) == pytest.approx(z)


def test_units_of_a_normalised_system() -> None:
    """The longest delay that a state reads; without delays one over the norm; what acts one way only is left out."""
    A0, A = np.array([[-1.0, 2.0], [0.0, -3.0]]), np.array([np.zeros((2, 2)), [[0.0, 0.0], [0.0, 5.0]]])
    scaled, unit = SYSTEM(A0, A, [9.0, 0.5]).normalised()
    assert unit.tolist() == [0.5]
    assert scaled.A0[0].tolist() == [[-0.5, 0.0], [0.0, -1.5]]
    assert scaled.A[0, 1].tolist() == [[0.0, 0.0], [0.0, 2.5]]
    assert scaled.tau[0].tolist() == [0.0, 1.0]
    _, unit = SYSTEM([[3.0]], [[[4.0]]], [0.0]).normalised()
    assert unit == pytest.approx([1 / 7])
    assert SYSTEM([[0.0]], np.zeros((0, 1, 1)), []).normalised()[1].tolist() == [1.0]


def test_balanced_rows_and_columns_are_alike_within_a_power_of_two() -> None:
    scale = balance(np.array([[[9.0, 2.0**12], [2.0**-8, 7.0]], [[0.0, 1.0], [0.0, 0.0]]]))
    assert scale[0, 0] / scale[0, 1] == 2.0**10
    assert scale[1].tolist() == [1.0, 1.0]
    system = SYSTEM([[[0.0, 0.0], [2.0**-8, 0.0]]], [[[[0.0, 2.0**12], [0.0, 0.0]]]], [[2.0]])
    even = system.balanced(np.array([0.0]))
    assert (even.A0[0, 1, 0], even.A[0, 0, 0, 1]) == (4.0, 4.0)
    even = system.balanced(np.array([-2 * np.log(2.0)]))  # the delayed one counts 16 times
    assert (even.A0[0, 1, 0], even.A[0, 0, 0, 1]) == (16.0, 1.0)
    assert perron(np.array([[[0.0, 4.0], [1.0, 0.0]]])) == pytest.approx([2.0])


def test_states_act_on_each_other_through_others() -> None:
    """All states of a ring of five act on each other; in a chain each acts on itself alone."""
    ring = np.roll(np.eye(5, dtype=bool), 1, axis=1)
    assert _mutual(ring[None]).all()
    assert (_mutual(np.triu(np.ones((4, 4), bool), 1)[None])[0] == np.eye(4)).all()
    assert _mutual(np.zeros((1, 1, 1), bool)).all()


def test_sizes_of_matrices() -> None:
    """Nodes by twos to 32 and by eights above; parts so small that matrices fit what a thread may hold."""
    assert _ladder(np.array([0, 1, 2, 31, 32, 33, 40, 41])).tolist() == [0, 2, 2, 32, 32, 40, 40, 48]
    members = np.arange(10)
    assert [len(part) for part in _chunks(members, 1000)] == [2, 2, 2, 2, 2]
    assert [len(part) for part in _chunks(members, 724)] == [4, 3, 3]
    assert [len(part) for part in _chunks(members, 9000)] == [1] * 10
    assert characteristic._MEMORY // (8 * 1000**2) == 2


def test_nodes_that_roots_need_grow_with_their_distance() -> None:
    """By the formula, of a bound of 5 right of 0, of 5 sqrt(e) right of -1/2; none where no delay is read."""
    system = SYSTEM(np.zeros((3, 1, 1)), [[[[-5.0]]]] * 3, [[1.0], [1.0], [0.0]])
    far = np.hypot(5 * np.exp(0.5), 0.5)
    wanted = [5 / 2 + 4 * 5 ** (1 / 3) + 2, far / 2 + 4 * far ** (1 / 3) + 2 + 0.2]
    found = characteristic.nodes_needed(system, np.array([0.0, -0.5, 0.0]))
    assert found.tolist() == [*np.ceil(wanted), 0]
    A = np.array([[[[0.0, 1.0, 0.0]] * 3, [[0.0, 0.0, 1.0]] * 3]])
    assert characteristic.history_columns(SYSTEM(np.zeros((1, 3, 3)), A, [[1.0, 0.0]])).tolist() == [1]
    assert characteristic.history_columns(SYSTEM(np.zeros((1, 3, 3)), A, [[1.0, 2.0]])).tolist() == [1, 2]


def test_a_generator_shifts_polynomials() -> None:
    """The past (1 + theta)^2 and x' = 2 x - 3 x(t - 1/2) give 2 - 3/4 at 0, and 2 (1 + theta) at the nodes."""
    matrix = characteristic.generator(SYSTEM([[[2.0]]], [[[[-3.0]]]], [[0.5]]), 4)[0]
    theta = (np.cos(np.pi * np.arange(5) / 4) - 1) / 2
    assert matrix @ (1 + theta) ** 2 == pytest.approx(np.append(2 - 3 / 4, 2 * (1 + theta[1:])), abs=1e-12)
    undelayed = characteristic.generator(SYSTEM([[[2.0]]], [[[[-3.0]]]], [[0.0]]), 4)[0]
    assert undelayed.tolist() == [[-1.0]]


def test_values_beyond_the_bound_are_no_roots() -> None:
    system = SYSTEM([[[0.0]]], [[[[-5.0]]]], [[1.0]])
    given = np.array([[1j * 5.004, 1j * 5.006, 1 + 1j * 5, -300 + 1j, 2.0]])
    kept = _possible(system, given)[0]
    assert np.isneginf(kept.real).tolist() == [False, True, True, False, False]


def test_curves_that_end_where_others_begin_are_joined() -> None:
    """Within one cell; the nearest of several; closed curves and single points are left alone."""
    a, b, c = (np.array(points, float) for points in ([[0, 0], [1, 0]], [[1.5, 0], [2, 0]], [[1.9, 0], [1.9, 5]]))
    assert [len(curve) for curve in _joined([a, b])] == [4]
    assert _joined([a, c, b])[0].tolist() == [[0, 0], [1, 0], [1.5, 0], [2, 0], [1.9, 0], [1.9, 5]]
    assert len(_joined([a, b + 0.51])) == 2
    assert len(_joined([a, a + np.array([2.01, 0])])) == 2
    closed = np.array([[0.0, 0], [1, 1], [0, 0]])
    assert len(_joined([closed, a])) == 2
    assert len(_joined([a[:1], a])) == 2


def test_segments_are_chained_from_a_head() -> None:
    """2 to 0 to 1, and 3 to itself: an open curve, and one that ends where it began."""
    starts = np.array([[1.0, 0], [2.0, 0], [0.0, 0], [9.0, 9.0]])
    paths: Any = [[np.array([1.5, 0])], [], [np.array([0.5, 0])], [np.array([9.0, 12.0])]]
    found = _chains(starts, paths, np.array([1, -1, 0, 3]))
    assert found[0].tolist() == [[0, 0], [0.5, 0], [1, 0], [1.5, 0], [2, 0]]
    assert found[1].tolist() == [[9, 9], [9, 12], [9, 9]]


def test_places_of_a_profile_are_spread_evenly_and_in_each_interval() -> None:
    wanted = {*np.linspace(0, 1, 6), *(k / 64 for k in range(16)), *(1 / 4 + 3 / 64 * k for k in range(16))}
    found = everywhere(np.array([0.0, 0.25, 1.0]), 6)
    assert found == pytest.approx(sorted(wanted), abs=1e-14)


def test_lags_by_name_and_place() -> None:
    equation = Equation(lambda t, x, past, p: [-past[0][0]], ["a", "b", "a", 1.0], {"a": 1.0, "b": 2.0})
    assert [_lags(equation, lag) for lag in ("a", "b", 0, 3)] == [[0, 2], [1], [0], [3]]
    for lag in (4, -1, True, "c", 1.0):
        with pytest.raises(InputError, match="lag: "):
            _lags(equation, lag)
    system = SYSTEM([[0.0]], [[[1.0]], [[2.0]], [[4.0]], [[8.0]]], [1.0, 2.0, 1.0, 1.0])
    merged, place = _merged(system, [0, 2])
    assert (merged.A.ravel().tolist(), merged.tau.tolist(), place) == ([5.0, 2.0, 8.0], [1.0, 2.0, 1.0], 0)
    merged, place = _merged(system, [2])
    assert (merged.A.ravel().tolist(), place) == ([1.0, 2.0, 4.0, 8.0], 2)
    assert system.A.ravel().tolist() == [1.0, 2.0, 4.0, 8.0]


def test_gain_margins_beyond_a_million_are_none() -> None:
    """The loop k e^(-s) / s has it at pi / 2 over k."""
    for margin, found in ((0.9e6, 0.9e6), (1.5e6, np.inf), (3e6, np.inf)):
        k = np.pi / 2 / margin
        loop = LOOP(SYSTEM([[0.0]], np.zeros((0, 1, 1)), []), [[k]], np.array([1.0]), np.array([1.0]))
        assert loop.margins().gain.value == pytest.approx(found, rel=1e-9)
    assert _nearest_to_one(np.array([0.25, 3.0, 5.0])) == pytest.approx(3.0)
    assert _nearest_to_one(np.array([0.5, 3.0])) == pytest.approx(2.0)
    assert _nearest_to_one(np.empty(0)) == np.inf


def test_a_root_at_0_is_not_stable() -> None:
    """The root of x' = -k x is on the axis with k = 0."""
    for k, stable in ((1.0, True), (0.0, False), (-1.0, False)):
        loop = LOOP(SYSTEM([[0.0]], np.zeros((0, 1, 1)), []), [[k]], [0.0], [1.0])
        assert loop._stable() is stable


def test_starts_differ_in_sign_and_size() -> None:
    """All alike first; then 24 between a tenth and a hundred, each state with its own sign."""
    found = np.array(_starts(2))
    assert found.shape == (33, 2)
    assert (found[:9, 0] == found[:9, 1]).all()
    drawn = qmc.Sobol(4, rng=0).random(32)[:24]
    assert (np.sign(found[9:]) == np.where(drawn[:, 2:] < 0.5, -1, 1)).all()
    assert np.log10(np.abs(found[9:])) == pytest.approx(3 * drawn[:, :2] - 1)
    assert len(_starts(1)) == 9


def test_two_are_one_equilibrium_to_a_share_and_blur() -> None:
    """Within 1e-7 of each state and what rounding blurs."""
    x = np.array([[1.0], [1 + 0.9e-7], [1 + 1.2e-7], [1.2], [1.3]])
    blur = np.array([[0.0]] * 3 + [[0.2], [0.25]])
    found: Any = SimpleNamespace(x=x, blur=blur)
    assert _alike(found, 0, np.arange(5)).tolist() == [True, True, False, True, False]
    assert _told(np.array([-0.0, 1 / 3])) == "(0, 0.333333)"


def test_boxes_have_a_pair_for_each_state() -> None:
    equation: Any = SimpleNamespace(states=("a", "b"))
    assert [each.tolist() for each in _box(equation, {"b": (2, 3), "a": (0, 1)})] == [[0.0, 2.0], [1.0, 3.0]]
    assert [each.tolist() for each in _box(equation, (0, 1))] == [[0.0, 0.0], [1.0, 1.0]]
    for given in ((1, 1), (1, 0), (0, np.inf), {"a": (0, 1), "b": (3, 2)}, {"a": (0, 1)}, 3):
        with pytest.raises(InputError, match="between"):
            _box(equation, given)


def test_differences_are_of_each_states_largest_modulus() -> None:
    before, after = np.array([[[1.0]], [[-4.0]]]), np.array([[[1.1]], [[-5.0]]])
    assert _difference(before, after) == pytest.approx(0.2)
    before, after = np.array([[[1.0], [100.0]]]), np.array([[[2.0], [110.0]]])
    assert _difference(before, after) == pytest.approx(0.5)
    assert _difference(before, after * np.nan) == np.inf


def test_batches_are_filled_with_their_last() -> None:
    assert padded(1).tolist() == [0]
    size = len(padded(2))
    assert padded(3).tolist()[:4] == [0, 1, 2, 2]
    assert [len(padded(count)) for count in (size, size + 1, 4 * size)] == [size, 2 * size, 4 * size]


def test_states_are_near_in_shares_or_in_blurs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state of 0 is compared with a share of the others, in units that make them comparable."""
    monkeypatch.setattr(fixed_points, "jnp", np)
    one, blur = np.array([1.0, -2.0]), np.zeros(2)
    for other, share, good in (([1.1, -2.0], 0.1, True), ([1.0, -2.3], 0.1, False), ([1.2, -2.0], 0.1, False)):
        assert fixed_points._nearby(one, np.array(other), share, blur) == good
        assert fixed_points._nearby(np.array(other), one, share, blur) == good
    assert fixed_points._nearby(one, np.array([1.3, -2.0]), 0.1, np.array([0.09, 0.0]))
    assert not fixed_points._nearby(one, np.array([1.3, -2.0]), 0.1, np.array([0.08, 0.0]))
    assert fixed_points._scale(np.array([0.0, -6.0, 2.0]), np.array([5.0, 3.0, 0.5])) == pytest.approx([2e-3, 6.0, 2.0])


def attempts(monkeypatch: pytest.MonkeyPatch, needs: dict[float, Any], rates: list[float], memory: int = 2**24) -> Any:
    """Roots of x' = -a x(t - 1) for some a, each attempt as told: nodes that it needs, or None if it misses roots.

    Returns the roots, and each attempt's number of systems, nodes and first a.
    """
    asked: list[tuple[int, int, float]] = []

    def attempt(work: Any) -> Any:
        system, nodes, count = work
        a = (-system.A[:, 0, 0, 0]).round(9).tolist()
        asked.append((len(a), nodes, a[0]))
        told = [needs[each](nodes) if callable(needs[each]) else needs[each] for each in a]
        s = np.full((len(a), count + 1), complex(np.nan, np.nan))
        s[:, 0] = a
        complete = np.array([each is not None for each in told])
        return s, np.abs(s), np.ones(len(a), int), complete, np.array([each or 0 for each in told])

    monkeypatch.setattr(characteristic, "_attempt", attempt)
    monkeypatch.setattr(characteristic, "_MEMORY", memory)
    monkeypatch.setattr(characteristic, "parallel", lambda function, work, threads: [function(each) for each in work])
    monkeypatch.setattr(characteristic, "nodes_needed", lambda system, line: 10 * np.ones(len(line), int))
    batch = SYSTEM(np.zeros((len(rates), 1, 1)), -np.array(rates)[:, None, None, None], np.full((len(rates), 1), 1.0))
    return characteristic.roots(batch, 1, threads=1), asked


def test_nodes_grow_until_they_resolve_the_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once where they are told, else by half and one, on the ladder; up to the largest matrix there may be."""
    needs = {1.0: 10, 2.0: 50, 3.0: None, 4.0: lambda nodes: 2000, 5.0: 11}
    found, asked = attempts(monkeypatch, needs, [1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.state.tolist() == ["ok", "ok", "unresolved", "unresolved", "ok"]
    assert found.s[:, 0].tolist() == [1, 2, 3, 4, 5]
    largest, nodes, missing = 800 - 1, 10, []
    while nodes < largest:
        nodes = nodes * 3 // 2 + 1
        step = 8 if nodes > 32 else 2
        nodes = min(-(-nodes // step) * step, largest)
        missing.append(nodes)
    assert [number for _, number, a in asked if a == 3.0] == missing
    assert asked[0] == (5, 10, 1.0)
    assert {a: number for _, number, a in asked if a in (2.0, 4.0)} == {2.0: 56, 4.0: largest}


def test_matrices_of_a_thread_have_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 10 nodes and one state have 11 rows: three at once in what holds three."""
    rates = [1.0 + k for k in range(7)]
    needs: dict[float, Any] = dict.fromkeys(rates, 10)
    for memory, sizes in ((3 * 8 * 11 * 11, [3, 2, 2]), (3 * 8 * 11 * 11 - 1, [2, 2, 2, 1]), (1, [1] * 7)):
        assert [size for size, *_ in attempts(monkeypatch, needs, rates, memory)[1]] == sizes


def confirmed(
    monkeypatch: pytest.MonkeyPatch, values: Any, count: int, bad: Any = (), moved: Any = None, **more: Any
) -> Any:
    """Roots of eigenvalues, of which those at some places are none, or are moved by the correction."""

    def newton(system: Any, s: Any, steps: int = 12) -> Any:
        assert s.shape[1] <= count + 2  # each takes time
        found = s.copy() if moved is None or steps == 0 else s + np.pad(moved, (0, s.shape[1] - len(moved)))
        return found, np.where(np.isin(np.arange(s.shape[1]), bad), 1e-3, 1e-16) * np.ones(s.shape)

    monkeypatch.setattr(characteristic, "newton", newton)
    s, residual, number, last = characteristic._confirmed(cast(Any, None), np.array([values], complex), count, **more)
    kept = np.isfinite(s[0])
    assert kept.sum() == number[0] == np.isfinite(residual[0]).sum()
    return s[0][kept].tolist(), float(last[0])


def test_rightmost_eigenvalues_are_taken_with_their_mates(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many, or one more where that would part a pair; the last is that of those which are taken."""
    values = [-3.0, 0.5, 1 + 2j, -1 + 1j, -5.0]
    pair, other = [1 + 2j, 1 - 2j], [-1 + 1j, -1 - 1j]
    assert confirmed(monkeypatch, values, 1) == (pair, 1.0)
    assert confirmed(monkeypatch, values, 2) == (pair, 1.0)
    assert confirmed(monkeypatch, values, 3) == ([*pair, 0.5], 0.5)
    assert confirmed(monkeypatch, values, 4) == ([*pair, 0.5, *other], -1.0)
    assert confirmed(monkeypatch, [2.0, -np.inf], 3) == ([2.0], 2.0)
    assert confirmed(monkeypatch, [-np.inf], 3) == ([], 0.0)


def test_nothing_left_of_what_is_no_root_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its residual, by how far it was moved, or as another's; without delays eigenvalues are the roots."""
    values = [2.0, 1.0, 0.0, -1.0]
    assert confirmed(monkeypatch, values, 4, bad=[1]) == ([2.0], 2.0)
    assert confirmed(monkeypatch, values, 4, moved=[0, 0, 0.9e-3, 0])[0] == [2.0, 1.0, 0.9e-3, -1.0]
    assert confirmed(monkeypatch, values, 4, moved=[0, 0, 1.1e-3, 0])[0] == [2.0, 1.0]
    assert confirmed(monkeypatch, values, 4, bad=[1], exact=True)[0] == values
    assert confirmed(monkeypatch, values, 4, moved=[0, 0, 0.9e-3, 0], exact=True)[0] == [2.0, 1.0, 0.9e-3, -1.0]
    close = [1.0, 1.0 - 1e-4]
    assert confirmed(monkeypatch, close, 2, moved=[0, 1e-4])[0] == pytest.approx([1.0, 1.0])  # a multiple one
    turned = [1e-4 + 1j, 0.0]
    assert confirmed(monkeypatch, turned, 3, moved=[-1e-4, 0])[0] == [1j, -1j, 0]


def test_roots_are_corrected_to_lamberts() -> None:
    """Roots of x' = -k x(t - 1), from a hundredth off; without steps they stay, and so does what is too far left."""
    k = 2.0
    exact = np.array([lambertw(-k, branch) for branch in (0, 1, -3)])
    system = SYSTEM(np.zeros((1, 1, 1)), [[[[-k]]]], [[1.0]])
    begin = (exact * (1 + 0.01j))[None]
    found, residual = characteristic.newton(system, begin)
    np.testing.assert_allclose(found[0], exact, rtol=1e-13)
    assert (residual < 1e-15).all()
    same, far = characteristic.newton(system, begin, steps=0)
    assert same.tolist() == begin.tolist()
    sizes = np.abs(begin[0]) + k * np.exp(-begin[0].real)
    np.testing.assert_allclose(far[0], np.abs(begin[0] + k * np.exp(-begin[0])) / sizes, rtol=1e-9)
    left, none = characteristic.newton(system, np.array([[-201.0 + 1j, np.nan]]))
    assert left[0, 0] == -201 + 1j
    assert np.isinf(none).all()


def test_a_double_root_is_met_to_half_the_digits() -> None:
    """s + e^-1 e^(-s) has -1 twice."""
    system = SYSTEM(np.zeros((1, 1, 1)), [[[[-np.exp(-1)]]]], [[1.0]])
    found, residual = characteristic.newton(system, np.array([[-0.9 + 0.0j]]), steps=40)
    assert found[0, 0] == pytest.approx(-1.0, abs=1e-6)
    assert residual[0, 0] < 1e-13


# -- an equation about its equilibrium ----------------------------------------------------------------------------


def test_a_loop_is_opened_where_one_signal_comes_back() -> None:
    """Minus what comes back, times the output, is the lag's matrix; equal lags are one; ranks are to rounding."""
    A0 = np.array([[-1.0, 2.0], [0.0, -3.0]])
    one, other = np.outer([2.0, -1.0], [3.0, 4.0]), np.diag([5.0, 6.0])
    system = SYSTEM(A0, np.array([one, other]), [0.5, 2.0])
    loop = linear.loop(system, 0)
    np.testing.assert_allclose(-loop.B[0][:, None] * loop.C, one, rtol=1e-12)
    assert (loop.input_delay.tolist(), loop.system.tau.tolist()) == ([0.5], [2.0])
    np.testing.assert_array_equal(loop.system.A, [other])
    np.testing.assert_array_equal(loop.system.A0, A0)
    assert np.linalg.norm(loop.C) == pytest.approx(1.0)
    for matrix, told in ((other, "2 signals come"), (np.zeros((2, 2)), "nothing comes")):
        with pytest.raises(InputError, match=told):
            linear.loop(SYSTEM(A0, np.array([matrix, one]), [0.5, 2.0]), 0)
    linear.loop(SYSTEM(A0, np.array([one + np.diag([0, 1e-14])]), [0.5]), 0)
    with pytest.raises(InputError, match="2 signals"):
        linear.loop(SYSTEM(A0, np.array([one + np.diag([0, 1e-10])]), [0.5]), 0)


@pytest.mark.parametrize(
    ("zeros", "said"), [(0, "ok"), (1, "ok; left out: 1 root at 0"), (2, "ok; left out: 2 roots at 0")]
)
def test_roots_that_stay_at_0_are_left_out_of_a_critical_delay(
    monkeypatch: pytest.MonkeyPatch, zeros: int, said: str
) -> None:
    """They are those at the lag that is begun with and at three others, by the longest of lag, begin and gains."""
    seen: list[Any] = []

    def structural(batch: Any) -> int:
        seen.append(batch.tau)
        return zeros

    def critical_delay(system: Any, k: int, begin: float, zeros: int) -> Any:
        seen.append((system, k, begin, zeros))
        return response.CriticalDelay(1.5, 2.0, 0.0, "ok")

    monkeypatch.setattr(linear, "structural", structural)
    monkeypatch.setattr(linear.response, "critical_delay", critical_delay)
    system = SYSTEM([[-3.0]], [[[-4.0]], [[1.0]]], [0.5, 2.0])
    found = linear.critical_delay(system, 1, 0.25)
    assert found.state.startswith(said)
    assert found.delay == 1.5
    assert seen[0][:, 1] == pytest.approx(0.25 + 2.0 * np.array([0.0, 0.37, 1.0, 2.7]))
    assert seen[0][:, 0].tolist() == [0.5] * 4
    assert seen[1][1:] == (1, 0.25, zeros)
    linear.critical_delay(SYSTEM([[-3.0]], [[[-4.0]]], [0.01]), 0)
    assert seen[2][:, 0] == pytest.approx(np.array([0.0, 0.37, 1.0, 2.7]) / 7)  # one over the gains
    linear.critical_delay(system, 1, 9.0)
    assert seen[4][:, 1] == pytest.approx(9.0 * (1 + np.array([0.0, 0.37, 1.0, 2.7])))
    with pytest.raises(InputError, match="lag of 0 or more"):
        linear.critical_delay(system, 0, -1.0)


def test_wrappers_pass_on_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line for all systems or for each; a number of roots, and threads."""
    asked: list[Any] = []
    monkeypatch.setattr(linear.characteristic, "count_right", lambda system, line: asked.append(line) or 3)
    monkeypatch.setattr(linear.characteristic, "roots", lambda system, count, threads: asked.append((count, threads)))
    monkeypatch.setattr(linear.characteristic, "abscissa", lambda system, threads: asked.append(threads))
    system = SYSTEM([[[-3.0]], [[-4.0]]], [[[-1.0]]], [0.5])
    assert linear.count_right(system) == 3
    linear.count_right(system, [0.5, -1.0])
    linear.roots(system, 4, threads=2)
    linear.roots(system)
    linear.abscissa(system)
    assert [each.tolist() if isinstance(each, np.ndarray) else each for each in asked] == [
        0.0, [0.5, -1.0], (4, 2), (10, None), None
    ]  # fmt: skip
    for wrong in (0, 1.5):
        with pytest.raises(InputError, match="count"):
            linear.roots(system, cast(Any, wrong))
    with pytest.raises(InputError, match="about its equilibrium already"):
        linear.roots(system, at=[0.0])
    with pytest.raises(InputError, match=r"give a fluidcc\.delay\.Equation or a DelaySystem"):
        linear.roots(cast(Any, 3))
    with pytest.raises(InputError, match="a batch of shape"):
        linear.loop(system)


@pytest.mark.parametrize(
    ("A0", "right"),
    [
        ([[2.0]], 1), ([[-2.0]], 0), ([[1.0, 0.0], [0.0, 3.0]], 2), ([[0.1, 4.0], [-4.0, 0.1]], 2),
        ([[-0.1, 4.0], [-4.0, -0.1]], 0), ([[1.0, 1.0], [0.0, -1.0]], 1),
    ],
)  # fmt: skip
def test_roots_right_of_a_line_are_counted_by_turns(A0: Any, right: int) -> None:
    """Roots of matrices, without delays, in any unit; and of lines elsewhere."""
    n = len(A0)
    for unit in (1.0, 1e6):
        system = SYSTEM(np.array(A0) * unit, np.zeros((0, n, n)), [])
        assert int(characteristic.count_right(system)) == right
        own = np.linalg.eigvals(np.array(A0) * unit)
        for line in (-5.0 * unit, 0.05 * unit, 5.0 * unit):
            assert int(characteristic.count_right(system, line)) == int((own.real > line).sum())


def test_roots_on_a_line_are_refused() -> None:
    """And lines so far left that nothing is a number there."""
    with pytest.raises(InputError, match="a root is on the line"):
        characteristic.count_right(SYSTEM([[0.0]], np.zeros((0, 1, 1)), []))
    with pytest.raises(InputError, match="overflows"):
        characteristic.count_right(SYSTEM([[-1.0]], [[[1.0]]], [1.0]), -1e4)
    # Hayes: x' = -k x(t - 1) has as many pairs to the right as k has passed pi / 2 + 2 pi n.
    for k, right in ((1.5, 0), (1.6, 2), (7.8, 2), (7.9, 4), (20.0, 6)):
        assert int(characteristic.count_right(SYSTEM([[0.0]], [[[-k]]], [1.0]))) == right
