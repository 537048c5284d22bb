"""The last choice: finalists by other seeds, and points that packets' differences make better, by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.sweeps.grid import format_value
from fluidcc.tuning import choice
from fluidcc.tuning.choice import Proof, candidate_of
from fluidcc.tuning.evaluate import Measured
from fluidcc.tuning.goal import Goal, Objective, goal_of
from fluidcc.tuning.proof import Packets
from fluidcc.tuning.smoothing import smoothed
from fluidcc.tuning.space import Point, space_of
from fluidcc.tuning.tune import _front

SPACE = space_of({"eta": (0.4, 0.8)})
USED = Goal((Objective("utilisation", True),), (), True)


def measured(used: Any, error: float = 0.0, **more: Any) -> Measured:
    metrics = {"utilisation": np.atleast_1d(np.asarray(used, float))} | {k: np.atleast_1d(v) for k, v in more.items()}
    return Measured(metrics, {name: np.full(len(each), error) for name, each in metrics.items()})


class Checker:
    """In place of an evaluator: utilisation by a function of eta, with some seeds."""

    def __init__(self, of: Any, seeds: int) -> None:
        self.of, self.seeds, self.asked = of, list(range(seeds)), []
        self.draws = SimpleNamespace(until=1e-3, window=None)

    def __call__(self, points: list[Point], report: Any = None, *, label: str = "") -> list[Measured]:
        self.asked.append((label, [point["eta"] for point in points]))
        return [measured(self.of(point["eta"])) for point in points]

    def scenarios(self, point: Point) -> list[float]:
        return [point["eta"]]


def proof(rows: list[tuple[float, Measured]], *checkers: Checker, goal: Goal = USED, searched: int = 2) -> Proof:
    return Proof(goal, SPACE, checkers, [({"eta": at}, one) for at, one in rows], searched, [1, 2, 3], 1)


def test_the_lucky_are_found_out_by_other_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """True utilisation 0.9 - |eta - 0.6|; the search has 1 of the worst. 24 finalists are run again, and the best 8.

    Those 24 then weigh 8/2, as the search had two seeds.
    """
    weights: list[np.ndarray] = []

    def watched(goal: Goal, places: np.ndarray, found: Any, seeds: np.ndarray, at: Any) -> list[Measured]:
        weights.append(seeds.copy())
        return smoothed(goal, places, found, seeds, at)

    monkeypatch.setattr(choice, "smoothed", watched)
    places = np.linspace(0.4, 0.8, 41)
    found = [(at, measured(0.9 - abs(at - 0.6) if at > 0.405 else 1.0)) for at in places]
    first, second = (Checker(lambda at: 0.9 - abs(at - 0.61), seeds) for seeds in (8, 32))
    best = proof(found, first, second).by_search()
    assert best.point["eta"] == pytest.approx(0.61)
    assert best.metrics["utilisation"] == pytest.approx(0.9)
    assert [(label, len(at)) for label, at in first.asked + second.asked] == [
        ("checking finalists, 8 seeds", 24),
        ("checking finalists, 32 seeds", 8),
    ]
    assert 0.4 in first.asked[0][1]
    assert [np.unique(each, return_counts=True)[1].tolist() for each in weights] == [[41], [17, 24]]
    assert weights[1].max() == 4.0
    assert sorted(second.asked[0][1]) == pytest.approx(np.linspace(0.57, 0.64, 8), abs=0.011)


def test_what_packets_differ_by_is_believed_nearby() -> None:
    """Packets have 0.2 less at eta 0.4. A quarter of the range off that weighs e^-0.5, at its other end e^-8.

    Of w/(w + 0.05) of it are then 0.95 -> 0.7652 and 0.80 -> 0.7987, where the search has it the other way round.
    """
    rows = [(0.4, measured(0.9)), (0.5, measured(0.95)), (0.8, measured(0.80))]
    made = proof(rows, Checker(lambda at: 0.9, 8))
    made._learn({"eta": 0.4}, Packets({"utilisation": np.array([0.7])}, {}, {}, []))
    assert made._next([{"eta": 0.4}], None) == {"eta": 0.8}
    assert made._next([{"eta": 0.4}, {"eta": 0.8}], None) == {"eta": 0.5}
    assert made._next([{"eta": at} for at, _ in rows], None) is None
    for at, used, seen in ((0.8, 0.80, []), (0.5, 0.95, [{"eta": 0.8}])):
        weight = math.exp(-(((at - 0.4) / 0.4) ** 2) / 2 / 0.25**2)
        corrected = used - 0.2 * weight / (weight + 0.05)
        assert made._next([{"eta": 0.4}, *seen], (0.0, -corrected - 1e-9)) is None  # as good is not enough
        assert made._next([{"eta": 0.4}, *seen], (0.0, -corrected + 1e-9)) == {"eta": at}
    made._learn({"eta": 0.8}, Packets({"utilisation": np.array([math.nan])}, {}, {}, []))  # says nothing
    assert made._next([{"eta": 0.4}], None) == {"eta": 0.8}


def test_queues_differ_by_factors() -> None:
    """Packets have (3 KB + 1 KB)/(1 KB + 1 KB): twice. At the same place, 1/1.05 of its logarithm is believed."""
    goal = Goal((Objective("queue_bytes.p99"),), (), True)
    rows = [(0.4, measured(1.0, **{"queue_bytes.p99": 1e3})), (0.40001, measured(1.0, **{"queue_bytes.p99": 7e3}))]
    checker: Any = Checker(None, 8)
    checker.__class__ = type("Queue", (Checker,), {"__call__": lambda self, points, **_: [rows[0][1]]})
    made = proof(rows, checker, goal=goal)
    made._learn({"eta": 0.4}, Packets({"queue_bytes.p99": np.array([3e3])}, {}, {}, []))
    corrected = round(8e3 * 2 ** (1 / 1.05) - 1e3)
    assert made._next([{"eta": 0.4}], (0.0, corrected + 3.0)) == {"eta": 0.40001}
    assert made._next([{"eta": 0.4}], (0.0, corrected - 3.0)) is None


def test_packets_choose_until_one_is_not_contradicted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search claims 0.95 everywhere; packets have it from eta 0.7 on, and 0.8 below, where 0.9 is asked for."""

    def packets(scenarios: list[float], until: float, window: Any, seeds: list[int], **_: Any) -> Packets:
        used = 0.95 if scenarios[0] >= 0.7 else 0.8
        each = {"utilisation": np.full((1, len(seeds)), used)}
        return Packets({"utilisation": np.array([used])}, {"utilisation": np.zeros(1)}, each, [])

    monkeypatch.setattr(choice, "packets", packets)
    goal = goal_of("utilisation", True, "utilisation>=0.9", True, 1.0)
    goal = Goal(goal.objectives[:1], goal.constraints, True)
    rows = [(at, measured(0.95 + 0.001 * (0.8 - at))) for at in (0.4, 0.5, 0.6, 0.7, 0.8)]
    made = proof(rows, Checker(lambda at: 0.95, 8), goal=goal)
    first = candidate_of(goal, {"eta": 0.4}, rows[0][1])
    best = made.by_packets(first, None)
    assert best.point["eta"] in (0.7, 0.8)
    assert made.confirmed is True
    assert made.packets["best"].metrics["utilisation"] == 0.95
    assert made.notes
    assert all("utilisation>=0.9 is missed" in note for note in made.notes)
    assert format_value("eta", 0.4) in made.notes[0]
    none = proof(rows[:2], Checker(lambda at: 0.95, 8), goal=goal)
    assert none.by_packets(first, {"eta": 0.5}).point == {"eta": 0.4}  # all are contradicted: the first of equals
    assert none.confirmed is False
    assert set(none.packets) == {"start", "best"}
    fine = proof(rows, Checker(lambda at: 0.95, 8), goal=goal)
    assert fine.by_packets(candidate_of(goal, {"eta": 0.8}, rows[4][1]), None).point == {"eta": 0.8}
    assert fine.notes == []


def test_a_candidates_error_is_the_largest_and_its_value_the_worst() -> None:
    goal = goal_of("utilisation", True, "utilisation>=0.9", True, 1.0)
    two = Measured({"utilisation": np.array([0.95, 0.91])}, {"utilisation": np.array([0.01, 0.03])})
    found = candidate_of(goal, {"eta": 0.5}, two)
    assert (found.metrics["utilisation"], found.errors["utilisation"], found.kept) == (0.91, 0.03, True)
    assert not candidate_of(goal, {"eta": 0.5}, measured([0.95, 0.89])).kept


def test_the_front_keeps_bounds_with_an_error_to_spare() -> None:
    goal = goal_of("queue_bytes.p99", None, "utilisation>=0.9", True, 1.0)
    rows = [
        ({"eta": at}, Measured({"queue_bytes.p99": np.array([queue]), "utilisation": np.array([used])}, errors))
        for at, queue, used, errors in (
            (0.4, 1.0, 0.91, {"utilisation": np.array([0.02])}),  # within its error of the bound
            (0.5, 2.0, 0.91, {}),
            (0.6, 3.0, 0.90, {}),  # a longer queue, and less used
            (0.7, 4.0, 0.99, {}),
            (0.8, math.nan, 0.999, {}),
        )
    ]
    assert [point["eta"] for point, _ in _front(goal, rows)] == [0.5, 0.7]
    assert _front(goal, rows[:1]) == []


def test_smoothing_is_a_weighted_plane_and_steins_shrinkage() -> None:
    """One point by itself: rows times roots of weights, least squares with a small ridge; seeds weigh, and chance."""
    random = np.random.default_rng(4)
    places, seeds = random.random((90, 2)), random.integers(1, 9, 90).astype(float)
    values = 0.5 + 0.2 * places[:, 0] ** 2 - 0.1 * places[:, 1] + 0.01 * random.normal(size=90)
    errors = 0.008 * (1 + random.random(90))
    rows = [
        Measured({"utilisation": np.array([v])}, {"utilisation": np.array([e])})
        for v, e in zip(values, errors, strict=True)
    ]
    found = smoothed(USED, places, rows, seeds, [3, 50])
    for i, row in zip((3, 50), found, strict=True):
        off = places - places[i]
        square = (off**2).sum(axis=1)
        width = max(0.1, math.sqrt(np.sort(square)[40]) / 2)
        weight = seeds * np.exp(-square / 2 / width**2)
        design = np.column_stack([np.ones(90), off])
        ridge = math.sqrt(1e-3 * weight.sum()) * width * np.eye(3)[1:]
        left = np.vstack([design * np.sqrt(weight)[:, None], ridge])
        plane, *_ = np.linalg.lstsq(left, np.r_[values * np.sqrt(weight), 0, 0], rcond=None)
        strays = np.average((values - design @ plane) ** 2, weights=weight)
        chance = np.average(errors**2, weights=weight)
        own = chance * min(1.0, np.average(seeds, weights=weight) / seeds[i])
        rough = max(strays - chance, 0.0)
        believed = rough / (own + rough)
        assert 0.05 < believed < 0.95
        expected = believed * values[i] + (1 - believed) * plane[0]
        assert row.metrics["utilisation"][0] == pytest.approx(expected, rel=1e-8)
