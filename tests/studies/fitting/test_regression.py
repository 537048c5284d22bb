"""The quadratic of simulated moments, what it leaves possible, and its intervals: by hand, on one or two numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.studies.fitting import moments
from fluidcc.studies.fitting.moments import Regression, Solution

Array = np.ndarray

# -- the regression ----------------------------------------------------------------------------------------------

# What is left of a quadratic on evenly spaced points: discrete polynomials of the third and fourth degree.
CUBIC = {4: [-1.0, 3.0, -3.0, 1.0], 5: [-1.0, 2.0, 0.0, -2.0, 1.0], 7: [-1.0, 1.0, 1.0, 0.0, -1.0, -1.0, 1.0]}
QUARTIC = {5: [1.0, -4.0, 6.0, -4.0, 1.0], 7: [3.0, -7.0, 1.0, 6.0, 1.0, -7.0, 3.0]}


def on_a_line(count: int, *left: list[float], error: float = 0.0, low: float = 0.2, high: float = 0.6) -> Regression:
    """Regression of 2 + x for each number, with what is left over."""
    at = np.linspace(low, high, count)
    numbers = np.stack([2.0 + at + np.array(each) for each in left], axis=1)
    return moments._regress(at[:, None], numbers, np.full(len(left), 2.5), np.full(len(left), error))


@pytest.mark.parametrize(
    ("count", "variance"),
    [
        (4, 20.0 * 1.75 * 5),  # one freedom, which is taken for a fifth
        (5, 5.0 * 1.6 * 5),  # sum of squares 10 over two freedoms; 1 + 3/5; two over the least, two fifths
        (7, 1.5 * 10 / 7 * 2),  # 6 over four; 1 + 3/7; four over 4 - 1 - 1
    ],
)
@pytest.mark.parametrize("error", [0.3, 0.0])
def test_the_variance_of_a_run_counts_freedoms_and_the_constant(count: int, variance: float, error: float) -> None:
    found = on_a_line(count, [0.1 * each for each in CUBIC[count]], error=error)
    least = max(error, 1e-3)
    deviation = math.sqrt(0.01 * variance + least**2)
    assert found.deviations == pytest.approx([deviation], rel=1e-9)
    assert (found.centre, found.half) == (pytest.approx([0.4]), pytest.approx([0.2]))
    at = np.array([[0.2], [0.5], [0.6]])
    assert found.misfit(at)[:, 0] == pytest.approx(np.array([-0.3, 0.0, 0.1]) / deviation, abs=1e-9)
    assert found.distance(at) == pytest.approx(np.array([0.09, 0.0, 0.01]) / deviation**2, abs=1e-9)
    assert found.jacobian(np.array([0.3])) == pytest.approx(np.array([[1 / deviation]]), rel=1e-9)


def test_numbers_that_vary_together_are_weighed_by_the_inverse_of_their_covariance() -> None:
    """Covariances are 0.98 of what they share. Sums of squares 6 and 154, and 6 in common, over four freedoms."""
    shared, other = np.array(CUBIC[7]), np.array(QUARTIC[7])
    found = on_a_line(7, list(0.1 * shared), list(0.1 * (shared + other)), error=0.1)
    factor = 0.01 / 4 * (10 / 7) * 4 / max(4 - 2 - 1, 0.8)
    covariance = factor * np.array([[6.0, 0.98 * 6.0], [0.98 * 6.0, 160.0]]) + 0.01 * np.eye(2)
    assert found.weight.T @ found.weight == pytest.approx(np.linalg.inv(covariance), rel=1e-8)
    assert found.deviations == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-9)


@pytest.mark.parametrize(("chance", "factor"), [(1.0, 10 / 7), (0.1, 0.1 + 3 / 7), (0.0, 3 / 7)])
def test_what_was_observed_for_longer_has_less_chance(chance: float, factor: float) -> None:
    """Sum of squares 6 over four freedoms; the constant of seven runs is as uncertain as before."""
    at = np.linspace(0.2, 0.6, 7)
    numbers = (2.0 + at + 0.1 * np.array(CUBIC[7]))[:, None]
    found = moments._regress(at[:, None], numbers, np.array([2.5]), np.zeros(1), chance)
    assert found.deviations == pytest.approx([math.sqrt(0.01 * 1.5 * factor * 2 + 1e-6)], rel=1e-9)


def test_runs_are_brought_to_the_conditions_that_were_observed() -> None:
    """Numbers 2 + x + 3 z at z of their own, where 0.7 was observed: at that they are 4.1 + x, and nothing is left."""
    at, z = np.linspace(0.0, 1.0, 9), np.array([0.1, 0.9, 0.4, 0.2, 0.8, 0.3, 0.6, 0.0, 0.5])
    numbers = np.stack([2.0 + at + 3 * z, z], axis=1)
    found = moments._regress(at[:, None], numbers, np.array([4.6, 0.7]), np.full(1, 0.1), known=1)
    assert found.fitted.shape == (3, 1)
    assert found.deviations == pytest.approx([0.1], rel=1e-9)
    assert found.misfit(np.array([[0.0], [0.5], [1.0]]))[:, 0] == pytest.approx([-5.0, 0.0, 5.0], abs=1e-9)


def test_points_of_one_value_have_a_box_all_the_same() -> None:
    at = np.array([[0.3, 0.1], [0.3, 0.5], [0.3, 0.9], [0.3, 0.7]])
    found = moments._regress(at, at[:, 1:], np.array([0.5]), np.array([0.1]))
    assert found.centre == pytest.approx([0.3, 0.5])
    assert found.half == pytest.approx([1e-6, 0.4])
    assert np.isfinite(found.misfit(at)).all()


# -- what is possible --------------------------------------------------------------------------------------------


class Counted:
    """Stand-in for a regression: so many of the points asked are possible, call by call; its best is at 0.5."""

    def __init__(self, *counts: int) -> None:
        self.counts = list(counts)
        self.asked: list[Array] = []

    def distance(self, points: Array) -> Array:
        self.asked.append(points)
        count = self.counts.pop(0)
        return np.where(np.arange(len(points)) < count, np.arange(len(points)) * 1e-9, 1e3)

    def misfit(self, points: Array) -> Array:
        return points - 0.5

    def jacobian(self, point: Array) -> Array:
        return np.eye(len(point))


def possible(regression: Any, candidates: Array, bound: float = 10.0) -> tuple[Array, Array]:
    return moments._possible(regression, candidates, bound, np.random.default_rng(1))


LINE = np.linspace(0.0, 1.0, 8192)[:, None]


def test_a_quarter_of_all_candidates_is_enough() -> None:
    best, near = possible(Counted(8192, 2048), LINE)
    assert best == pytest.approx([0.5])
    assert near.tolist() == LINE[:2048].tolist()
    few = Counted(8192, 2047, 4000)
    _, near = possible(few, LINE)
    assert len(few.asked) == 3
    assert len(near) == 4000


@pytest.mark.parametrize(
    ("unknowns", "few", "enough"),
    [(1, 1023, 1024), (2, 1023, 1024), (8, 1279, 1280)],  # an eighth, or twenty for each pair
)
def test_as_many_fresh_points_as_a_quadratic_needs_end_the_search(unknowns: int, few: int, enough: int) -> None:
    candidates = np.repeat(LINE, unknowns, axis=1)
    counted = Counted(8192, 100, enough)
    _, near = possible(counted, candidates)
    assert len(near) == enough
    assert near.tolist() == counted.asked[2][:enough].tolist()
    counted = Counted(8192, 100, few, 3000)
    _, near = possible(counted, candidates)
    assert len(counted.asked) == 4
    assert len(near) == 3000


def test_where_nothing_is_enough_the_nearest_eighth_is_kept() -> None:
    counted = Counted(8192, *[5] * 24, 8192)
    _, near = possible(counted, LINE)
    assert len(counted.asked) == 26
    assert near.tolist() == counted.asked[-1][:1024].tolist()


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        (2000, 0.0, 0.2441 * 1.1 + 0.02),  # those from 0 to 0.2441: a tenth of it beyond, and 2 % of the room
        (1, 0.48, 0.52),  # one says nothing of their spread: about the best
        (0, 0.48, 0.52),
        (2, 0.0, 0.02),
    ],
)
def test_the_next_box_is_a_little_beyond_what_is_possible(count: int, low: float, high: float) -> None:
    counted = Counted(8192, count, 4000)
    possible(counted, LINE)
    fresh = counted.asked[2]
    assert len(fresh) == 8192
    assert (fresh.min(), fresh.max()) == (pytest.approx(low, abs=2e-3), pytest.approx(high, abs=2e-3))


def test_margins_are_of_each_box_and_never_beyond_the_one_before() -> None:
    """A box from 0.2 to 0.6, and one of the first 100 fresh points of these; twice."""
    candidates = 0.2 + 0.4 * LINE
    counted = Counted(8192, 3, 0, 3, 4000)
    possible(counted, candidates)
    first, second = counted.asked[2], counted.asked[4]
    assert (first.min(), first.max()) == (pytest.approx(0.2, abs=1e-3), pytest.approx(0.208, abs=1e-3))
    below, above = first[:3].min(), first[:3].max()
    margin = 0.1 * (above - below) + 0.02 * 0.0081
    assert second.min() == pytest.approx(max(0.2, below - margin), abs=2e-5)
    assert second.max() == pytest.approx(min(0.2081, above + margin), abs=2e-5)


class Valleys(Counted):
    """Two places without a slope: one at 0.2, and the best at 0.9, where 3 is left."""

    def distance(self, points: Array) -> Array:
        self.asked.append(points)
        return np.abs(points[:, 0] - 0.25) if len(self.asked) == 1 else (self.misfit(points) ** 2).sum(axis=1)

    def misfit(self, points: Array) -> Array:
        x = points[:, 0]
        return np.stack([(x - 0.2) * (x - 0.9), 0.5 * (x - 0.9), np.full(len(x), 3.0)], axis=1)

    def jacobian(self, point: Array) -> Array:
        return np.array([[2 * point[0] - 1.1], [0.5], [0.0]])


def test_the_best_of_three_starts_counts_and_what_is_a_bound_further() -> None:
    """Squared distance 9 is the least there is: with a bound of 0.01 more, what is within 0.2 or so of 0.9 is left."""
    candidates = np.r_[[0.25, 0.26, 0.8], np.linspace(0.5, 0.7, 5000)][:, None]
    valleys = Valleys()
    valleys.distance(candidates)
    valleys.asked.clear()
    best, near = possible(valleys, candidates[:3], 0.01)
    assert best == pytest.approx([0.8], abs=1e-4)  # the end of the box
    least = float((valleys.misfit(best[None]) ** 2).sum())
    assert ((valleys.misfit(near) ** 2).sum(axis=1) < least + 0.01 + 1e-9).all()


@pytest.mark.parametrize(("turn", "bound"), [(0, 120.0), (1, 60.0), (2, 40.0), (3, 40.0), (99, 40.0)])
def test_less_is_possible_in_later_rounds(turn: int, bound: float) -> None:
    assert moments._possible_at(turn) == bound


# -- intervals ---------------------------------------------------------------------------------------------------


def gaussian(sigma: float, *rest: float, at: float = 0.5) -> Regression:
    """A number that tells x with this deviation, and others that are off by some of their own, whatever x is."""
    numbers = 1 + len(rest)
    fitted = np.zeros((3, numbers))
    fitted[1, 0] = 1.0
    fitted[0, 1:] = rest
    weight = np.diag([1 / sigma, *np.ones(len(rest))])
    return Regression(np.zeros(1), np.ones(1), fitted, weight, np.full(numbers, 4.0), np.r_[at, np.zeros(len(rest))])


def solved(regression: Regression, at: float = 0.5, before: float | None = None) -> Solution:
    other = np.array([at if before is None else before])
    return moments._solution(regression, np.array([at]), other, np.linspace(0.0, 1.0, 2001)[:, None])


def test_an_interval_has_the_quantiles_of_the_likelihood() -> None:
    """1.96 deviations to both sides; a jacobian of one over the deviation, and nothing is left."""
    found = solved(gaussian(0.1))
    assert (found.low, found.high) == (pytest.approx([0.304], abs=1e-3), pytest.approx([0.696], abs=1e-3))
    assert found.residual == 0.0
    assert found.jacobian == pytest.approx(np.array([[10.0]]))
    assert found.misfits.tolist() == [0.0]
    assert found.inside.tolist() == [True]


@pytest.mark.parametrize(
    ("rest", "residual"),
    [((2.0,), 2.0), ((2.0, 2.0), 2.0), ((3.0, 4.0), 5 / math.sqrt(2)), ((0.5, 0.5), 0.5), ((1.0, 1.0, 1.0), 1.0)],
)
def test_what_is_left_widens_intervals_but_never_narrows_them(rest: tuple[float, ...], residual: float) -> None:
    """Each of the other numbers is a freedom; 0.02 of deviation, so that the range ends nowhere near."""
    found = solved(gaussian(0.02, *rest))
    assert found.residual == pytest.approx(residual)
    wide = max(1.0, residual)
    assert found.high - found.at == pytest.approx([1.96 * 0.02 * wide], rel=0.02)
    assert found.at - found.low == pytest.approx([1.96 * 0.02 * wide], rel=0.02)
    assert found.jacobian[0] == pytest.approx([50.0 / wide])
    assert found.misfits == pytest.approx([0.0, *(each / 4.0 for each in rest)])  # in deviations, with their sign


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_two_designs_that_disagree_are_uncertain_both_ways(side: float) -> None:
    """Sides of 0.196 and 0.147 at a right angle: 0.245."""
    found = solved(gaussian(0.1), before=0.5 + side * 0.147)
    assert (found.low, found.high) == (pytest.approx([0.255], abs=1e-3), pytest.approx([0.745], abs=1e-3))


@pytest.mark.parametrize(("at", "low", "high"), [(0.0, 0.0, 0.2241), (1.0, 0.7759, 1.0)])
def test_an_estimate_at_an_end_has_an_interval_to_one_side(at: float, low: float, high: float) -> None:
    """Ends of half a Gaussian with deviation 0.1, of which 2.5 % are beyond 2.241."""
    found = solved(gaussian(0.1, at=at), at=at)
    assert (found.low, found.high) == (pytest.approx([low], abs=1e-3), pytest.approx([high], abs=1e-3))
    assert found.inside.tolist() == [False]


@pytest.mark.parametrize(
    ("sigma", "rest", "at", "inside"),
    [
        (0.2425, (), 0.5, True),  # 0.4805 away: 3.93 of squared distance, beyond 3.84
        (0.2475, (), 0.5, False),  # 3.77
        (0.2425, (2.0,), 0.5, False),  # with a residual of 2 it takes four times as much
        (0.1225, (2.0,), 0.5, True),  # 15.39 of 15.36
        (0.1240, (2.0,), 0.5, False),  # 15.02
        (0.1, (), 0.2, False),  # near the lower end
        (0.1, (), 0.8, False),  # near the upper
        (0.08, (), 0.2, True),  # 0.1805 away: 5.09
        (0.08, (), 0.8, True),
    ],
)
def test_an_estimate_is_inside_if_the_ends_of_its_range_are_unlikely(
    sigma: float, rest: tuple[float, ...], at: float, inside: bool
) -> None:
    """Ends are the outer 2 %."""
    assert solved(gaussian(sigma, *rest, at=at), at=at).inside.tolist() == [inside]


# -- rounds ------------------------------------------------------------------------------------------------------


def linear(points: Array) -> Array:
    return points @ np.array([[1.0, 0.5, 0.0, 1.0], [0.0, 1.0, 1.0, -0.5]])


def asked(model: Callable[[Array], Array], runs: int, first_seed: int) -> tuple[Solution, list[tuple[int, int]]]:
    """A fit to what the model has at (0.4, 0.6), and how many runs it asked for from which seed on."""
    batches: list[tuple[int, int]] = []

    def run(points: Array, seed: int) -> Array:
        assert ((points >= 0) & (points <= 1)).all()
        batches.append((len(points), seed))
        return model(points)

    observed = linear(np.array([[0.4, 0.6]]))[0]
    found = moments.minimise(run, observed, 2, runs=runs, errors=np.full(4, 0.01), first_seed=first_seed)
    return found, batches


def test_every_run_has_a_seed_of_its_own_and_the_last_round_has_what_is_left() -> None:
    found, batches = asked(linear, 150, 7)
    assert batches == [(21, 7), (21, 28), (21, 49), (21, 70), (21, 91), (45, 112)]
    assert found.at == pytest.approx([0.4, 0.6], abs=1e-3)
    assert found.residual < 1e-3


@pytest.mark.parametrize(("sound", "refused"), [(10, False), (9, True)])
def test_a_first_round_of_which_half_makes_no_sense_is_refused(sound: int, refused: bool) -> None:
    """Ten of 21 will do."""

    def model(points: Array) -> Array:
        found = linear(points)
        found[sound:] = np.nan
        return found

    if refused:
        with pytest.raises(InputError, match=f"over: {sound} of 21 runs made sense"):
            asked(model, 150, 1)
    else:
        asked(model, 150, 1)


def test_later_rounds_use_what_is_near_and_at_least_half_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distances are 1000 x: 120 beyond the best is 0.12, and then 0.06; what is outside the box is never near."""
    used: list[Array] = []
    boxes = [np.array([[0.0], [1.0]]), np.array([[0.3], [0.4]])]

    class Far:
        def distance(self, points: Array) -> Array:
            return 1e3 * points[:, 0]

    def regress(points: Array, *_: Any) -> Any:
        used.append(points[:, 0])
        return Far()

    def possible_(regression: Any, candidates: Array, bound: float, random: Any) -> tuple[Array, Array]:
        box = boxes[min(len(used), 2) - 1]
        return box[0], box[0] + (box[1] - box[0]) * np.linspace(0, 1, 8192)[:, None]

    monkeypatch.setattr(moments, "_regress", regress)
    monkeypatch.setattr(moments, "_possible", possible_)
    monkeypatch.setattr(moments, "_solution", lambda *_: None)
    moments.minimise(lambda points, seed: points, np.zeros(1), 1, runs=700, errors=np.zeros(1), first_seed=3)
    assert len(used[0]) == 100  # the first round has all
    second = np.sort(used[1])
    assert len(second) == 50  # of those within 0.12 there are some 24, of the box as large as the cube
    assert second.max() < 0.4
    third = used[2]
    assert len(third) > 50
    assert ((third >= 0.298) & (third < 0.36)).all()  # the box begins at 0.3, and 2 % before it is near


@pytest.mark.parametrize(("least", "inside"), [(3.84, False), (3.85, True)])
def test_ends_that_are_just_as_unlikely_as_an_intervals_are_possible(least: float, inside: bool) -> None:
    class Flat:
        """All candidates are so much less likely than the best."""

        fitted, centre, half, observed, deviations = np.zeros((3, 2)), np.zeros(1), np.ones(1), np.zeros(2), np.ones(2)

        def misfit(self, points: Array) -> Array:
            return np.zeros((len(points), 2))

        def distance(self, points: Array) -> Array:
            return np.full(len(points), least)

        def jacobian(self, point: Array) -> Array:
            return np.ones((2, 1))

    flat: Any = Flat()
    half = np.array([0.5])
    assert moments._solution(flat, half, half, LINE).inside.tolist() == [inside]
