"""Space, goal, front and search, without an engine: against what is known by formula or by looking at every point."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidcc.errors import InputError
from fluidcc.studies.sweeps.result import parse_constraint
from fluidcc.studies.tuning.evaluate import Measured
from fluidcc.studies.tuning.goal import TUNED, Goal, Objective, better, front_of, goal_of, knee_of
from fluidcc.studies.tuning.result import sensitivity
from fluidcc.studies.tuning.search import search
from fluidcc.studies.tuning.space import space_of
from fluidcc.studies.tuning.surfaces import smoothed

DCQCN = {"kmin": ("1KB", "400KB"), "kmax": ("20KB", "2MB"), "pmax": ("1%", "100%"), "g": ("1/1024", "1/4")}


class Formula:
    """In place of an evaluator: metrics by a function of the point."""

    def __init__(self, function, space) -> None:
        self.function, self.space, self.table = function, space, {}

    @property
    def runs(self) -> int:
        return len(self.table)

    def __call__(self, points, report=None, *, label=""):
        found = []
        for point in points:
            key = tuple(point.values())
            if key not in self.table:
                metrics = {name: np.array([math.nan]) for name in TUNED} | {
                    name: np.atleast_1d(value) for name, value in self.function(point).items()
                }
                self.table[key] = Measured(metrics, metrics)
            found.append(self.table[key])
        return found

    def known(self):
        return list(self.table.items())


@given(st.lists(st.floats(-0.5, 1.5), min_size=4, max_size=4))
def test_points_can_be_set_and_stay_where_they_are(shares: list[float]) -> None:
    space = space_of(DCQCN)
    point = space.point(shares)
    assert point["kmin"] <= point["kmax"]
    for each in space.variables:
        value = point[each.name]
        assert each.low <= value <= each.high
        assert each.step is not None
        assert value / each.step == pytest.approx(round(value / each.step), abs=1e-9)
    assert space.point(space.shares(point)) == point
    assert 1024 * point["g"] == round(1024 * point["g"])


def test_the_next_value_that_can_be_set_is_within_the_spacing() -> None:
    space = space_of(DCQCN)
    at = space.shares(space.point(np.array([0.0, 0.5, 0.3, 0.0])))
    spacing = space.spacing(at)
    assert spacing[3] == pytest.approx(math.log(2) / math.log(256))  # g: from 1/1024 to 2/1024 of 8 octaves
    for k, step in enumerate(spacing):
        there = space.snapped(at + step * np.eye(4)[k] * (1 if at[k] < 0.9 else -1))[0]
        assert there[k] != at[k], space.names[k]
    assert (space_of({"eta": (0.9, 0.98)}).spacing(np.array([0.5])) == 0.0).all()


@pytest.mark.parametrize(
    ("over", "word"),
    [
        ({}, "nothing to tune"),
        ({"g": "1/256"}, "two bounds"),
        ({"g": ("1/16", "1/256")}, "smaller first"),
        ({"g": (0.00101, 0.0019)}, "can be set"),
        ({"g": (True, 1.0)}, "no number"),
        ({"kmin": ("5KB", "abc")}, "kmin"),
        ({"kmin": (0.0, math.inf)}, "bounds"),
    ],
)
def test_what_is_no_range_is_refused(over: dict, word: str) -> None:
    with pytest.raises(InputError, match=word) as said:
        space_of(over)
    assert "\n" not in str(said.value)


def test_the_worst_case_counts_or_the_mean() -> None:
    goal = goal_of("queue_bytes.p99", None, ["utilisation>=0.99", "settling_time<=10ms"], True, 1.0)
    found = {
        "queue_bytes.p99": np.array([5.0, 9.0]),
        "utilisation": np.array([0.98, 1.0]),
        "settling_time": np.array([0.004, 0.015]),
    }
    assert goal.costs(found).tolist() == [9.0, -0.98]
    assert goal.violations(found) == pytest.approx([0.01 / 0.99, 0.5])
    mean = Goal(goal.objectives, goal.constraints, worst=False)
    assert mean.costs(found).tolist() == [7.0, -0.99]
    assert mean.violations(found) == pytest.approx([0.0, 0.0])
    never = found | {"settling_time": np.array([0.004, math.nan])}
    assert goal.violations(never)[1] > 100
    fine, missed = np.zeros(1), np.array([0.1])
    assert better(goal, (np.array([9.0, 0.0]), fine), (np.array([1.0, 0.0]), missed))
    assert not better(goal, (np.array([2.0, -1.0]), fine), (np.array([1.0, 0.0]), fine))
    assert better(goal, (np.array([0.2, -0.99]), fine), (np.array([0.1, -0.98]), fine))  # the same queue, more used


@pytest.mark.parametrize("worst", [True, False])
@pytest.mark.parametrize(
    ("bound", "value", "violation"),
    [
        ("utilisation>=0.8", 0.81, 0.01 / 0.8),  # above, but within its error: to be kept it needs 0.82
        ("utilisation>=0.8", 0.79, 0.03 / 0.8),
        ("utilisation>=0.8", 0.83, 0.0),
        ("jain<=0.8", 0.79, 0.01 / 0.8),
        ("jain<=0.8", 0.81, 0.03 / 0.8),
        ("jain<=0.8", 0.77, 0.0),
    ],
)
def test_a_bound_is_kept_with_an_error_to_spare(bound: str, value: float, violation: float, worst: bool) -> None:
    """Its sign, both ways: of a point within an error of 0.02 of a bound; without errors 0.79 is 0.01 short."""
    goal = goal_of("queue_bytes.p99", None, bound, worst, 1.0)
    name = bound.partition("=")[0][:-1]
    found = {name: np.array([value, value])}
    assert goal.violations(found, {name: np.array([0.02, 0.02])}) == pytest.approx([violation])
    assert goal.violations(found, {name: np.full(2, math.nan)}) == pytest.approx(goal.violations(found))
    kept = value >= 0.8 if ">=" in bound else value <= 0.8
    assert goal.violations(found) == pytest.approx([0.0 if kept else 0.01 / 0.8])
    assert goal.violations(found, {"drops": np.ones(2)}) == pytest.approx(goal.violations(found))


def test_a_metric_that_there_is_not_is_refused() -> None:
    for objective, bounds in (("queue", None), ("jain", "speed>=1"), ([], None), (["jain", "jain"], None)):
        with pytest.raises(InputError):
            goal_of(objective, None, bounds, True, 1.0)
    with pytest.raises(InputError, match="settling_time"):
        parse_constraint("settling_time<=1ms")  # of a sweep, which has none


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=30))
def test_the_front_is_what_no_other_is_better_than(rows: list[tuple[int, int]]) -> None:
    costs = np.array(rows, float)
    kept = front_of(costs)

    def beaten(a: np.ndarray) -> bool:
        return any((b <= a).all() and (b < a).any() for b in costs)

    assert {tuple(row) for row in costs[kept]} == {tuple(row) for row in costs if not beaten(row)}
    assert (np.diff(costs[kept, 0]) > 0).all()


def test_the_knee_of_a_hyperbola_is_in_its_middle() -> None:
    x = np.geomspace(0.1, 10.0, 101)
    assert knee_of(np.column_stack([x, 1 / x])) == 50
    assert knee_of(np.array([[0.0, 1.0], [0.2, 0.2], [1.0, 0.0]])) == 1  # three will do
    assert knee_of(np.column_stack([x, -x])) is None  # straight
    assert knee_of(np.array([[0.0, 1.0], [1.0, 0.0]])) is None


def _bowl(point: dict[str, float]) -> dict[str, float]:
    """In MB, least of a / b under a b >= 1 for a in 1/8..8, b in 1/8..4: at b = 4, a = 1/4 it is 1/16."""
    a, b = point["eta"], point["w_ai"]
    return {"queue_bytes.p99": 1e6 * (a / b + 0.05 * (1 - math.cos(20 * a))), "utilisation": a * b}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_search_finds_a_known_optimum_at_a_bound(seed: int) -> None:
    """Within 2 % with 300 points, and as good as the best of 3000 random ones."""
    space = space_of({"eta": (1 / 8, 8.0), "w_ai": (1 / 8, 4.0)})
    goal = goal_of("queue_bytes.p99", None, "utilisation>=1", True, 1.0)
    fine = np.array([_bowl({"eta": a, "w_ai": 4.0})["queue_bytes.p99"] for a in np.linspace(0.25, 8.0, 100_001)])
    evaluator = Formula(_bowl, space)
    search(space, goal, evaluator, evaluations=300, seed=seed, known=[])
    kept = [goal.costs(m.metrics)[0] for _, m in evaluator.known() if not goal.violations(m.metrics).any()]
    assert min(kept) <= 1.02 * fine.min()
    assert min(kept) >= fine.min() - 1e-12
    assert evaluator.runs <= 320
    random = Formula(_bowl, space)
    random([space.point(row) for row in np.random.default_rng(seed).random((3000, 2))])
    theirs = [goal.costs(m.metrics)[0] for _, m in random.known() if not goal.violations(m.metrics).any()]
    assert min(kept) <= min(theirs)


def test_a_small_grid_is_searched_whole_and_the_search_ends() -> None:
    space = space_of({"pmax": ("1%", "5%"), "timer": ("10us", "14us")})
    goal = Goal((Objective("queue_bytes.p99"), Objective("utilisation", True)), (), True)
    evaluator = Formula(
        lambda p: {"queue_bytes.p99": (p["pmax"] - 0.03) ** 2 + (p["timer"] - 12e-6) ** 2, "utilisation": 1.0}, space
    )
    search(space, goal, evaluator, evaluations=500, seed=1, known=[{"pmax": 0.5, "timer": 1e-6}])
    assert evaluator.runs <= 25
    best = min(evaluator.known(), key=lambda each: goal.costs(each[1].metrics)[0])[0]
    assert best == pytest.approx((0.03, 12e-6))


def test_the_best_are_ranked_again_only_when_a_point_is_new(monkeypatch) -> None:
    """Near its end a search draws what it knows, time after time: that took longer than all runs before."""
    space = space_of({"kmin": ("2KB", "40KB"), "pmax": ("1%", "30%")})
    goal = goal_of("queue_bytes.p99", None, (), True, 1.0)
    evaluator = Formula(lambda p: {"queue_bytes.p99": 1e3 * p["pmax"] + p["kmin"], "utilisation": 1.0}, space)
    ranked_at = []

    def counting(*arguments):
        ranked_at.append(evaluator.runs)
        return smoothed(*arguments)

    monkeypatch.setattr("fluidcc.studies.tuning.search.smoothed", counting)
    search(space, goal, evaluator, evaluations=60, seed=1, known=[])
    assert ranked_at
    assert len(ranked_at) <= len(set(ranked_at)) + 1  # once where the pattern search begins


def test_a_search_of_the_same_seed_runs_the_same_points() -> None:
    space = space_of({"kmin": ("2KB", "100KB"), "pmax": ("1%", "100%")})
    goal = goal_of("queue_bytes.p99", None, (), True, 1.0)
    tried = []
    for seed in (1, 1, 2):
        evaluator = Formula(lambda p: {"queue_bytes.p99": p["kmin"], "utilisation": round(p["pmax"], 1)}, space)
        search(space, goal, evaluator, evaluations=60, seed=seed, known=[])
        tried.append([values for values, _ in evaluator.known()])
    assert tried[0] == tried[1]
    assert tried[0] != tried[2]


def test_sobols_indices_are_those_of_ishigamis_function() -> None:
    """sin x + 7 sin^2 y + 0.1 z^4 sin x on (-pi, pi): its indices are known in closed form. Within 0.05."""
    space = space_of(dict.fromkeys(("eta", "max_stage", "w_ai"), (-math.pi, math.pi)))
    goal = goal_of("queue_bytes.p99", None, (), True, 1.0)

    def ishigami(p: dict[str, float]) -> dict[str, float]:
        x, y, z = p["eta"], p["max_stage"], p["w_ai"]
        return {"queue_bytes.p99": math.sin(x) + 7 * math.sin(y) ** 2 + 0.1 * z**4 * math.sin(x)}

    best = {"eta": 0.0, "max_stage": 0.0, "w_ai": 0.0}
    found = sensitivity(space, goal, Formula(ishigami, space), best, 2048, 1)
    assert not found.logarithmic
    known = {"eta": (0.3139, 0.5576), "max_stage": (0.4424, 0.4424), "w_ai": (0.0, 0.2437)}
    for name, (first, total) in known.items():
        assert found.indices[name]["first"] == pytest.approx(first, abs=0.05)
        assert found.indices[name]["total"] == pytest.approx(total, abs=0.05)
    along = found.along["max_stage"]
    assert along["objective"] == pytest.approx([7 * math.sin(y) ** 2 for y in along["values"]])
