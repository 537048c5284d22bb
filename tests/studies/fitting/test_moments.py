"""Simulated moments on models whose answer is known."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.studies.fitting import moments
from fluidcc.studies.fitting.fit import nearest_trajectory as nearest
from fluidcc.studies.fitting.model import space_of
from fluidcc.studies.fitting.result import combinations, in_words

fitting = importlib.import_module("fluidcc.studies.fitting.fit")
NUMBERS = 8
SLOPES = np.random.default_rng(5).normal(size=(NUMBERS, 2)) * 3
MIXED = np.eye(NUMBERS) + 0.3 * np.random.default_rng(6).normal(size=(NUMBERS, NUMBERS))
CHANCE = 0.2 * MIXED  # of a run's numbers


def line(points: np.ndarray, seed: int) -> np.ndarray:
    """A linear model with chance."""
    random = np.random.default_rng(seed)
    return points @ SLOPES.T + random.normal(size=(len(points), NUMBERS)) @ CHANCE.T


def solved(observed: np.ndarray, seed: int = 1, model: object = line) -> moments.Solution:
    """Fitted with 700 runs."""
    none = np.zeros(NUMBERS)
    return moments.minimise(model, observed, 2, runs=700, errors=none, first_seed=seed)  # type: ignore[arg-type]


def test_a_linear_model_gives_generalised_least_squares() -> None:
    truth = np.array([0.4, 0.55])
    observed = line(truth[None], 12345)[0]
    found = solved(observed)
    inverse = np.linalg.inv(CHANCE @ CHANCE.T)
    covariance = np.linalg.inv(SLOPES.T @ inverse @ SLOPES)
    expected, deviation = covariance @ SLOPES.T @ inverse @ observed, np.sqrt(np.diag(covariance))
    assert (np.abs(found.at - expected) < 0.5 * deviation).all()  # the weights are estimated
    width = (found.high - found.low) / 2 / max(1.0, found.residual)
    np.testing.assert_allclose(width / (1.96 * deviation), 1.1, atol=0.2)


def test_slopes_are_central_differences() -> None:
    """A square's slope is twice its root; over a box off the middle. Of a quadratic they are exact, up to rounding."""
    random, step = np.random.default_rng(3), 1e-3
    points = random.uniform([0.1, 0.5, 0.0], [0.3, 0.9, 0.4], (60, 3))
    squares = points**2 @ random.normal(size=(3, NUMBERS)) + np.prod(points[:, :2], axis=1)[:, None] + points[:, 2:]
    model = moments._regress(points, squares, np.zeros(NUMBERS), np.full(NUMBERS, 0.1))
    at = np.array([0.15, 0.8, 0.1])
    moved = [(model.misfit((at + side)[None]) - model.misfit((at - side)[None]))[0] for side in step * np.eye(3)]
    np.testing.assert_allclose(model.jacobian(at), np.transpose(moved) / 2 / step, rtol=1e-8, atol=1e-8)
    terms = [(moments._terms((at + side)[None]) - moments._terms((at - side)[None]))[0] for side in step * np.eye(3)]
    np.testing.assert_allclose(moments._slopes(at), np.transpose(terms) / 2 / step, rtol=1e-9, atol=1e-12)
    assert moments._terms(np.array([[2.0, 3.0]])).tolist() == [[1, 2, 3, 4, 6, 9]]


def test_the_best_point_is_within_what_was_possible() -> None:
    """Numbers of a point beyond the box lead to its side; and what is possible is what is not much further off."""
    random = np.random.default_rng(8)
    points = random.random((80, 2))
    model = moments._regress(points, points @ SLOPES.T, SLOPES @ [0.9, 0.55], np.full(NUMBERS, 0.05))
    box = 0.5 + 0.1 * random.random((500, 2))
    best, near = moments._possible(model, box, 10.0, random)
    assert best[0] == pytest.approx(box[:, 0].max(), abs=1e-3)
    assert (best >= box.min(axis=0)).all()
    assert (best <= box.max(axis=0)).all()
    assert (near >= box.min(axis=0) - 1e-12).all()
    assert (near <= box.max(axis=0) + 1e-12).all()
    least = model.distance(box).min()
    assert (model.distance(near) < least + 10).mean() == 1
    assert near[:, 1].max() > best[1] > near[:, 1].min()
    inside = moments._within(
        np.array([[0.5, 0.5], [0.488, 0.5], [0.4, 0.5], [0.5, 0.62]]), np.array([[0.5, 0.5], [0.6, 0.6]])
    )
    assert inside.tolist() == [True, False, False, False]
    assert moments._within(np.array([[0.499, 0.601]]), np.array([[0.5, 0.5], [0.6, 0.6]])).all()  # 2 % beyond


def test_a_long_run_variance_is_that_of_sums() -> None:
    """Scores each half of the last and chance: sums vary by 1/(1 - 0.5)^2 of the chance. Bartlett's weights lose some.

    Of 200 series of 4000 the mean is within 10 %: lags reach 500, and lose 500 of 4000 at the ends.
    """
    random, found = np.random.default_rng(5), []
    for _ in range(40):
        chance = random.normal(size=4000)
        scores = np.empty((4000, 1))
        last = 0.0
        for k, one in enumerate(chance):
            scores[k, 0] = last = 0.5 * last + one
        found.append(fitting._long_run(scores)[0, 0] / 4000)
    assert np.mean(found) == pytest.approx(
        4.0, rel=0.2
    )  # deviation of one is sqrt(2/3 x 2 x 500/4000), 0.4; of 40 0.065
    alternate = (-1.0) ** np.arange(4000)[:, None]
    assert fitting._long_run(alternate)[0, 0] < 0.01 * 4000
    by_hand = np.array([[1.0], [2.0], [0.0], [-1.0], [3.0], [1.0], [0.0], [2.0]])  # one lag, of weight 1/2
    assert fitting._long_run(by_hand)[0, 0] == pytest.approx(20 + 2 * 0.5 * (2 - 3 + 3), rel=1e-12)


def test_intervals_hold_as_often_as_they_say() -> None:
    truth, held = np.array([0.4, 0.55]), 0
    for k in range(40):
        found = solved(line(truth[None], 10_000 + k)[0], seed=1000 * k)
        held += int(((found.low <= truth) & (truth <= found.high)).sum())
    assert 70 <= held <= 80  # 76 expected, three standard deviations of the binomial below


def test_what_cannot_be_told_apart_is_said() -> None:
    def product(points: np.ndarray, seed: int) -> np.ndarray:
        return line(np.stack([points.sum(axis=1) / 2] * 2, axis=1), seed)

    found = solved(product(np.array([[0.45, 0.5]]), 12345)[0], model=product)
    space = space_of({"timer": (1e-5, 1e-3), "cnp_interval": (1e-5, 1e-3)})
    values, rows = combinations(found.jacobian, space)
    said = in_words(values, rows, dict.fromkeys(space.names, False))
    assert len(said) == 1
    assert "timer and cnp_interval cannot be told apart" in said[0]
    assert values[0] > 20 * values[1]
    np.testing.assert_allclose(np.abs(rows[0]), np.sqrt(0.5), atol=0.05)
    assert (found.high - found.low > 0.2).all()


def test_points_that_make_no_sense_are_left_out_and_too_many_refused() -> None:
    def half(points: np.ndarray, seed: int) -> np.ndarray:
        found = line(points, seed)
        found[points[:, 0] > 0.7] = np.nan
        return found

    truth = np.array([0.4, 0.55])
    found = solved(line(truth[None], 12345)[0], model=half)
    assert ((found.low <= truth) & (truth <= found.high)).all()
    with pytest.raises(InputError, match="made sense; narrow the ranges"):
        solved(np.zeros(NUMBERS), model=lambda points, seed: np.full((len(points), NUMBERS), np.nan))


def test_a_trajectory_with_noise_gives_least_squares() -> None:
    time = np.linspace(0, 1, 400)

    def run(at: np.ndarray) -> np.ndarray:
        return (at[0] * np.exp(-(1 + 4 * at[1]) * time))[:, None]

    truth, noise, held = np.array([0.6, 0.3]), 0.01, 0
    step = 1e-6
    slopes = np.stack([(run(truth + step * one) - run(truth - step * one))[:, 0] / 2 / step for one in np.eye(2)], 1)
    deviation = noise * np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))
    for k in range(40):
        observed = run(truth) + np.random.default_rng(k).normal(size=(400, 1)) * noise
        found = nearest(run, observed, 2, lambda share: None)
        held += int(((found.low <= truth) & (truth <= found.high)).sum())
        assert (np.abs(found.at - truth) < 5 * deviation).all()
    assert held >= 64  # of 80; the covariance over lags of an eighth of the trace makes intervals somewhat narrow


def test_an_unknown_without_effect_is_not_called_known() -> None:
    def blind(points: np.ndarray, seed: int) -> np.ndarray:
        return line(points * [1.0, 0.0] + [0.0, 0.5], seed)

    for k in range(10):
        found = solved(blind(np.array([[0.4, 0.5]]), 20_000 + k)[0], seed=1000 * k, model=blind)
        assert found.inside[0]
        assert not found.inside[1]


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_product_cannot_be_told_apart_by_its_trajectory(noise: float) -> None:
    time = np.linspace(0, 1, 400)
    space = space_of({"timer": (1.0, 10.0), "cnp_interval": (1.0, 10.0)})

    def run(at: np.ndarray) -> np.ndarray:
        values = space.values(at)
        return np.exp(-values["timer"] * values["cnp_interval"] * time / 9)[:, None]

    observed = run(np.array([0.4, 0.55])) + noise * np.random.default_rng(1).normal(size=(400, 1))
    found = nearest(run, observed, 2, lambda share: None)
    assert (found.high - found.low > 0.9).all()
    (said,) = in_words(*combinations(found.jacobian, space), dict.fromkeys(space.names, False))
    assert "timer and cnp_interval cannot be told apart" in said


def test_an_unknown_that_does_nothing_may_be_anything() -> None:
    time = np.linspace(0, 1, 200)
    found = nearest(lambda at: np.sin(3 * at[0] * time)[:, None], np.sin(1.5 * time)[:, None], 2, lambda share: None)
    assert found.high[0] - found.low[0] < 0.01
    assert (found.low[1], found.high[1]) == (0.0, 1.0)
    assert found.inside.tolist() == [True, False]
