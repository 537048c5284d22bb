"""What neighbours say of a point: against surfaces that are known, with chance and without."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fluidcc.studies.tuning.evaluate import Measured
from fluidcc.studies.tuning.goal import goal_of
from fluidcc.studies.tuning.surfaces import apart, back, smoothed

GOAL = goal_of("queue_bytes.p99", None, ["utilisation>=0.9"], True, 1.0)


def measured(values: np.ndarray, used: np.ndarray, error: float) -> list[Measured]:
    names = ("queue_bytes.p99", "utilisation")
    sizes = (error * (values + 1e3), np.full(len(values), 0.01 * error))
    return [
        Measured(
            dict(zip(names, np.atleast_2d([value, use]).T, strict=True)),
            {name: np.array([size[k]]) for name, size in zip(names, sizes, strict=True)},
        )
        for k, (value, use) in enumerate(zip(values, used, strict=True))
    ]


def surface(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.exp(10 + places @ [0.8, -0.5]), 0.95 + places @ [0.01, 0.02]


def test_chance_averages_out_on_a_plane() -> None:
    rng = np.random.default_rng(1)
    places = rng.random((300, 2))
    true, used = surface(places)
    noisy = (true + 1e3) * np.exp(0.1 * rng.standard_normal(300)) - 1e3
    found = smoothed(GOAL, places, measured(noisy, used, 0.1), np.ones(300), range(300))
    after = np.array([each.metrics["queue_bytes.p99"][0] for each in found])
    errors = [np.std(np.log((values + 1e3) / (true + 1e3))) for values in (noisy, after)]
    assert errors[1] < errors[0] / 2.5  # the mean of some ten neighbours
    assert abs(np.mean(np.log((after + 1e3) / (true + 1e3)))) < 0.02
    assert np.allclose([each.metrics["utilisation"][0] for each in found], used, atol=1e-4)


def test_without_chance_values_stay_what_they_are() -> None:
    rng = np.random.default_rng(2)
    places = rng.random((200, 3))
    values, used = np.exp(8 + np.sin(9 * places[:, 0]) + 3 * places[:, 1] ** 2), rng.random(200)
    for error in (0.0, math.nan):
        found = smoothed(GOAL, places, measured(values, used, error), np.ones(200), [0, 7, 199])
        assert np.allclose([each.metrics["queue_bytes.p99"][0] for each in found], values[[0, 7, 199]])
        assert np.allclose([each.metrics["utilisation"][0] for each in found], used[[0, 7, 199]])


def test_what_strays_by_more_than_chance_keeps_its_value() -> None:
    """A rough surface, measured to 1 %: a plane through its neighbours would move a point by a half."""
    rng = np.random.default_rng(6)
    places = rng.random((200, 2))
    values, used = np.exp(10 + rng.uniform(-1, 1, 200)), np.full(200, 0.95)
    found = smoothed(GOAL, places, measured(values, used, 0.01), np.ones(200), range(200))
    after = np.array([each.metrics["queue_bytes.p99"][0] for each in found])
    assert np.abs(np.log((after + 1e3) / (values + 1e3))).max() < 0.005


def test_more_seeds_weigh_more_and_no_value_stays_none() -> None:
    rng = np.random.default_rng(3)
    places = rng.random((100, 2))
    true, used = surface(places)
    off = 0.3 * np.where(np.arange(100) == 5, 1.0, rng.standard_normal(100))
    noisy = (true + 1e3) * np.exp(off) - 1e3
    noisy[9] = math.nan
    few, many = (
        smoothed(GOAL, places, measured(noisy, used, 0.3), np.where(np.arange(100) == 5, weight, 1.0), [5, 9])
        for weight in (1.0, 50.0)
    )
    assert few[0].metrics["queue_bytes.p99"] < many[0].metrics["queue_bytes.p99"]
    assert np.isnan(few[1].metrics["queue_bytes.p99"]).all()
    assert few[1].metrics["utilisation"][0] > 0.9


def test_a_surface_that_is_flat_stays_as_it_is_to_the_last_digit() -> None:
    """Points without chance and slope have nothing to divide by, and keep their own values."""
    places = np.random.default_rng(4).random((60, 2))
    flat = np.full(60, 0.9)
    found = smoothed(GOAL, places, measured(np.full(60, 5e4), flat, 0.0), np.ones(60), [0, 30, 59])
    assert [each.metrics["utilisation"][0] for each in found] == [0.9] * 3


def test_many_points_are_smoothed_in_parts_that_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    places = np.random.default_rng(5).random((60, 2))
    true, used = surface(places)
    rows = measured(true, used, 0.1)
    whole = smoothed(GOAL, places, rows, np.ones(60), range(60))
    monkeypatch.setattr("fluidcc.studies.tuning.surfaces._AT_ONCE", 600)  # ten of them
    parts = smoothed(GOAL, places, rows, np.ones(60), range(60))
    assert [each.metrics["utilisation"][0] for each in parts] == pytest.approx(
        [each.metrics["utilisation"][0] for each in whole], rel=1e-12
    )
    monkeypatch.setattr("fluidcc.studies.tuning.surfaces._AT_ONCE", 1)  # one at least
    assert len(smoothed(GOAL, places, rows, np.ones(60), [3])) == 1


def test_queues_are_compared_by_their_logarithm_and_shares_as_they_are() -> None:
    values = np.array([0.0, 1e3, 9e3])
    assert apart("queue_bytes.mean", values) == pytest.approx(np.log([1e3, 2e3, 1e4]))
    assert back("queue_bytes.mean", apart("queue_bytes.mean", values)) == pytest.approx(values, abs=1e-9)
    assert apart("jain", values) is values
    assert back("jain", values) is values
