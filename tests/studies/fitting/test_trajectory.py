"""Least squares on a trajectory, of models that are straight lines: slopes, intervals and their noise by hand."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

from fluidcc.studies.fitting.moments import Solution

fitting = importlib.import_module("fluidcc.studies.fitting.fit")
COUNT = 16
ALTERNATING = (-1.0) ** np.arange(COUNT)


def told(share: float) -> None:
    assert 0 < share < 1


def test_the_share_done_rises_from_the_first_run_on() -> None:
    """A bar that began at its end would say nothing."""
    shares: list[float] = []
    fitting.nearest_trajectory(lambda at: at[None] * np.ones((COUNT, 1)), np.full((COUNT, 1), 0.5), 1, shares.append)
    assert shares[0] < 0.1 < shares[-1] < 1
    assert shares == sorted(shares)


@pytest.mark.parametrize(
    ("at", "slope"),
    [
        (0.5, 1.0),  # of a square: twice the place
        (0.25, 0.5),
        (0.0, 2e-3),  # from 0 up to 0.002 alone
        (1.0, 2.0 - 2e-3),
        (0.001, 3e-3),  # from 0 to 0.003
    ],
)
def test_slopes_are_central_but_stay_in_the_cube(at: float, slope: float) -> None:
    def signals(place: np.ndarray) -> np.ndarray:
        assert ((place >= 0) & (place <= 1)).all()
        return np.array([[place[0] ** 2, 3 * place[1]], [0.0, place[0] * place[1]]])

    place = np.array([at, 0.5])
    found = fitting._slopes(signals, place)
    assert found.shape == (2, 2, 2)  # time, signals, unknowns
    assert found[:, :, 0] == pytest.approx(np.array([[slope, 0.0], [0.0, 0.5]]), abs=1e-12)
    assert found[:, :, 1] == pytest.approx(np.array([[0.0, 3.0], [0.0, at]]), abs=1e-12)
    assert place.tolist() == [at, 0.5]


@pytest.mark.parametrize(
    ("count", "variance"),
    [
        (8, 8 - 7),  # one lag, of weight 1/2, counts twice
        (16, 16 - 2 * 15 * 2 / 3 + 2 * 14 / 3),  # two, of weights 2/3 and 1/3
        (24, 24 - 2 * 23 * 3 / 4 + 2 * 22 / 2 - 2 * 21 / 4),
        (4, 4 - 3),  # one at least
    ],
)
def test_lags_of_an_eighth_count_less_the_longer_they_are(count: int, variance: float) -> None:
    scores = (-1.0) ** np.arange(count)[:, None]
    assert fitting._long_run(3 * scores) == pytest.approx(np.array([[9.0 * variance]]))


def test_scores_of_two_unknowns_vary_together() -> None:
    """One lag, both ways. In a direction without any a millionth of the mean is left."""
    first, second = np.array([1.0, 2.0, 0.0, -1.0, 3.0, 1.0, 0.0, 2.0]), np.array([0.0, 1.0, 0, 0, 0, -1.0, 2.0, 0])
    found = fitting._long_run(np.stack([first, second], axis=1))
    own = [each @ each + each[1:] @ each[:-1] for each in (first, second)]
    both = first @ second + 0.5 * (first[1:] @ second[:-1] + second[1:] @ first[:-1])
    assert found == pytest.approx(np.array([[own[0], both], [both, own[1]]]))
    blind = fitting._long_run(np.stack([first, 0 * first], axis=1))
    assert blind == pytest.approx(np.array([[own[0], 0.0], [0.0, 20e-6 / 2]]))


def nearest(observed: np.ndarray, *columns: np.ndarray, start: float = 0.0) -> Solution:
    """A signal that is a sum of columns, each times an unknown."""
    design = np.stack(columns, axis=1)
    return fitting.nearest_trajectory(lambda at: (start + design @ at)[:, None], observed[:, None], len(columns), told)


@pytest.mark.parametrize("missing", [0, 4])
def test_an_interval_is_of_the_noise_that_is_left(missing: int) -> None:
    """A mean, with 0.01 up and down about it.

    The sum of squares 16 and the lags' sums -15 and 14 leave 16/3 of a hundredth's square in the long run, of 16
    samples with 15 freedoms: c^2/45 for the mean's variance. What is not measured counts for nothing.
    """
    noise = 0.01 * ALTERNATING
    observed = np.r_[0.4 + noise, np.full(missing, np.nan)]
    found = nearest(observed, np.ones(COUNT + missing))
    assert found.at == pytest.approx([0.4], abs=1e-6)
    deviation = math.sqrt(1e-4 / 45 + 1e-8 / 16)
    for end, side in ((found.low, -1.0), (found.high, 1.0)):
        assert end == pytest.approx(found.at + side * 2.34 * deviation, abs=1e-6)
    assert found.residual == pytest.approx(0.04 / math.sqrt(16 * (0.16 + 1e-4)), rel=1e-6)
    assert np.square(found.jacobian).sum() == pytest.approx(deviation**-2, rel=1e-5)
    assert found.misfits[:COUNT] == pytest.approx(-noise, abs=1e-6)
    assert found.misfits[COUNT:].tolist() == [0.0] * missing
    assert found.inside.tolist() == [True]


def test_without_noise_an_interval_is_that_of_the_integration() -> None:
    """A ten thousandth of the signals, through the inverse of their squares: of a mean and a slope across it."""
    across = np.linspace(-1.0, 1.0, 21)
    found = nearest(0.5 + 0.25 * across, np.ones(21), across)
    assert found.at == pytest.approx([0.5, 0.25], abs=1e-8)
    reach = 2.34e-4 / np.sqrt(np.array([21.0, float(across @ across)]))
    assert found.high - found.at == pytest.approx(reach, rel=1e-3)
    assert found.at - found.low == pytest.approx(reach, rel=1e-3)
    assert found.residual < 1e-6


@pytest.mark.parametrize(("strength", "lost"), [(0.0, True), (0.5e-3, True), (2e-3, False)])
def test_what_is_hardly_felt_may_be_anything(strength: float, lost: bool) -> None:
    """A thousandth of the strongest slope is the error of differences: below that an unknown is lost."""
    across = np.linspace(-1.0, 1.0, 21) / np.linalg.norm(np.linspace(-1.0, 1.0, 21))
    found = nearest(np.full(21, 0.5), np.ones(21) / math.sqrt(21), strength * across, start=0.4)
    assert found.inside.tolist() == [True, not lost]
    assert ((found.low[1], found.high[1]) == (0.0, 1.0)) is lost
    assert found.high[0] - found.low[0] < 0.01
    assert bool(np.abs(found.jacobian[:, 1]).max() < 1e-6) is lost


def test_unknowns_that_act_as_one_are_both_lost() -> None:
    column = np.linspace(1.0, 2.0, 21)
    found = nearest(0.6 * column, column, column)
    assert (found.low.tolist(), found.high.tolist()) == ([0.0, 0.0], [1.0, 1.0])
    assert found.at.sum() == pytest.approx(0.6, abs=1e-6)
    assert found.inside.tolist() == [False, False]
