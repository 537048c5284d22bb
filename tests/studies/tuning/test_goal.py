"""Goals of tuning over cases: the worst in a metric's usual sense, or the mean."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.studies.sweeps.result import parse_constraint
from fluidcc.studies.tuning.goal import TUNED, Goal, Objective, better, goal_of, order_of, rank_of

FOUND = {
    "queue_bytes.p99": np.array([10e3, 40e3]),
    "utilisation": np.array([0.9, 1.0]),
    "jain": np.array([0.5, 0.75]),
}


SHORT = Objective("queue_bytes.p99")


def goal(worst: bool, *bounds: str, objective: Objective = SHORT) -> Goal:
    return Goal((objective,), tuple(parse_constraint(each, known=TUNED) for each in bounds), worst)


def test_the_worst_of_what_should_be_large_is_the_least() -> None:
    assert goal(True).summary(FOUND) == {"queue_bytes.p99": 40e3, "utilisation": 0.9, "jain": 0.5}
    assert goal(False).summary(FOUND) == {"queue_bytes.p99": 25e3, "utilisation": 0.95, "jain": 0.625}
    sought = goal(True, objective=Objective("queue_bytes.p99", maximise=True))
    assert sought.summary(FOUND)["queue_bytes.p99"] == 10e3  # as the objective says, whatever is usual
    assert np.isnan(goal(True).summary({**FOUND, "jain": np.array([0.5, np.nan])})["jain"])


def test_costs_are_less_where_it_is_better() -> None:
    assert goal(True).costs(FOUND).tolist() == [40e3]
    assert goal(True, objective=Objective("utilisation", maximise=True)).costs(FOUND).tolist() == [-0.9]
    assert goal(True).costs({"queue_bytes.p99": np.array([1.0, np.nan])}).tolist() == [np.inf]


def test_a_bound_is_missed_or_kept_by_a_share_of_it() -> None:
    """Utilisation 0.9 misses 0.96 by a sixteenth; the queue keeps 50 KB by a fifth."""
    bounds = goal(True, "utilisation>=0.96", "queue_bytes.p99<=50KB")
    assert bounds.violations(FOUND) == pytest.approx([0.06 / 0.96, 0.0])
    assert bounds.spare(FOUND) == pytest.approx(-0.06 / 0.96)
    assert goal(True, "queue_bytes.p99<=50KB").spare(FOUND) == pytest.approx(0.2)
    assert goal(True).spare(FOUND) == np.inf
    assert goal(False, "utilisation>=0.96").violations(FOUND) == pytest.approx([0.01 / 0.96])
    assert (
        bounds.violations({**FOUND, "utilisation": np.array([np.nan, 1.0])})[0] == 1e3
    )  # what has no value is far off


@pytest.mark.parametrize(
    ("objective", "maximise", "objectives"),
    [
        ("queue_bytes.p99", None, "least queue_bytes.p99, largest utilisation"),
        ("queue_bytes.p99", True, "largest queue_bytes.p99, largest utilisation"),
        ("utilisation", None, "largest utilisation, least queue_bytes.p99"),
        ("utilisation", False, "least utilisation, least queue_bytes.p99"),
        ("queue_bytes.min", None, "largest queue_bytes.min, largest utilisation"),
        (
            ["jain", "queue_bytes.mean", "settling_time"],
            None,
            "largest jain, least queue_bytes.mean, least settling_time",
        ),
    ],
)
def test_a_single_objective_has_a_second_to_span_the_front(
    objective: str | list[str], maximise: bool | None, objectives: str
) -> None:
    found = goal_of(objective, maximise, (), True, 1.0)
    assert ", ".join(map(str, found.objectives)) == objectives


USUAL = ["utilisation>=0.98", "jain>=0.9"]


@pytest.mark.parametrize(
    ("objective", "maximise", "given", "defaults", "bounds"),
    [
        ("queue_bytes.p99", None, None, None, USUAL),
        ("queue_bytes.p99", None, None, True, USUAL),
        ("queue_bytes.p99", None, None, False, []),
        ("queue_bytes.p99", True, None, True, []),  # a long queue needs none
        ("jain", None, None, True, []),
        ("queue_bytes.p99", None, [], True, []),
        ("queue_bytes.p99", None, "drops", None, None),
        ("queue_bytes.p99", None, "settling_time<=1ms", None, ["settling_time<=1ms"]),
        ("queue_bytes.p99", None, "settling_time<=1ms", False, ["settling_time<=1ms"]),
        ("queue_bytes.p99", None, "settling_time<=1ms", True, [*USUAL, "settling_time<=1ms"]),
        ("queue_bytes.p99", None, ["jain>=0.5"], True, ["utilisation>=0.98", "jain>=0.5"]),  # in place of the usual
        ("queue_bytes.p99", None, ["jain<=0.95"], True, [*USUAL, "jain<=0.95"]),  # beside it
        ("queue_bytes.p99", None, ["utilisation>=0", "jain>=1"], True, ["utilisation>=0", "jain>=1"]),
        ("queue_bytes.p99", None, ["utilisation>=1.01"], True, None),
        ("queue_bytes.p99", None, ["jain>=-0.1"], True, None),
    ],
)
def test_short_queues_keep_the_usual_bounds_unless_others_are_given(
    objective: str,
    maximise: bool | None,
    given: str | list[str] | None,
    defaults: bool | None,
    bounds: list[str] | None,
) -> None:
    if bounds is None:
        with pytest.raises(InputError, match="subject_to"):
            goal_of(objective, maximise, given, True, 1.0, defaults)
    else:
        found = goal_of(objective, maximise, given, True, 1.0, defaults)
        assert [str(each) for each in found.constraints] == bounds


def test_a_target_below_the_link_lowers_the_bound_of_its_use() -> None:
    assert str(goal_of("queue_bytes.p99", None, None, True, 0.95).constraints[0]) == "utilisation>=0.931"


@pytest.mark.parametrize("objective", [[], ["jain", "jain"], "delay", ["jain", "delay"]])
def test_objectives_that_are_none_or_twice_are_refused(objective: str | list[str]) -> None:
    with pytest.raises(InputError, match="objective"):
        goal_of(objective, None, (), True, 1.0)


def test_queues_less_than_a_byte_apart_are_the_same_and_violations_come_first() -> None:
    two = Goal((SHORT, Objective("utilisation", True)), ())
    assert order_of(two, np.array([10.4, -0.91])) == (10.0, -0.91)
    assert order_of(two, np.array([np.inf, -0.91])) == (np.inf, -0.91)
    assert order_of(Goal((Objective("jain"),), ()), np.array([0.4])) == (0.4,)
    none, some = np.zeros(2), np.array([0.1, 0.2])
    assert rank_of(two, (np.array([10.4, -0.91]), some)) == (pytest.approx(0.3), 10.0, -0.91)
    assert better(two, (np.array([99.0, 0.0]), none), (np.array([1.0, 0.0]), some))
    assert not better(two, (np.array([10.4, 0.0]), none), (np.array([10.2, 0.0]), none))
    assert better(two, (np.array([10.4, -0.5]), none), (np.array([9.6, -0.4]), none))


@pytest.mark.parametrize(
    ("bound", "value", "error", "violation", "spare"),
    [
        ("queue_bytes.p99<=0", 5.0, 0.0, 5e12, -5e12),  # a bound of 0 has no shares
        ("queue_bytes.p99<=40KB", 40e3, 0.0, 0.0, 0.0),
        ("queue_bytes.p99<=40KB", 39e3, 2e3, 0.025, 0.025),
        ("utilisation>=0.8", 0.8, 0.0, 0.0, 0.0),
        ("utilisation>=0.8", 0.82, 0.04, 0.025, 0.025),
    ],
)
def test_a_bound_is_missed_by_what_its_error_leaves(
    bound: str, value: float, error: float, violation: float, spare: float
) -> None:
    found = goal(True, bound)
    name = bound.partition("<")[0].partition(">")[0]
    metrics = {name: np.array([value])}
    assert found.violations(metrics, {name: np.array([error])}) == pytest.approx([violation])
    assert found.spare(metrics) == pytest.approx(spare)


def test_the_least_spare_of_all_bounds_counts() -> None:
    found = goal(True, "utilisation>=0.45", "queue_bytes.p99<=44KB", "jain>=0.4")
    assert found.spare(FOUND) == pytest.approx(0.1 / 1.1)
    assert found.metrics == {"queue_bytes.p99", "utilisation", "jain"}


def test_what_never_settles_misses_by_a_thousand() -> None:
    found = goal(True, "settling_time<=1ms")
    assert found.violations({"settling_time": np.array([np.nan])}).tolist() == [1e3]
