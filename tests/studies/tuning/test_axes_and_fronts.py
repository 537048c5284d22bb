"""Sensitivities of formulas: indices that are known, points that have no value, and the axes through the best."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.studies.tuning.evaluate import Measured
from fluidcc.studies.tuning.goal import SETTLING, Goal, Objective, front_of, knee_of
from fluidcc.studies.tuning.result import Sensitivity, sensitivity
from fluidcc.studies.tuning.space import Space, Variable

SPACE = Space((Variable("x", 0.0, 1.0), Variable("y", 0.0, 1.0)))


def found(formula: Callable[..., float], size: int = 64, maximise: bool = False) -> Sensitivity:
    """Sensitivity about (0.5, 0.25), of two cases of which one is half of the other."""
    goal = Goal((Objective(SETTLING, maximise),), ())

    def evaluator(points: list[dict[str, float]], *, label: str) -> list[Measured]:
        return [Measured({SETTLING: np.array([formula(**point), 0.5 * formula(**point)])}, {}) for point in points]

    standing: Any = evaluator
    return sensitivity(SPACE, goal, standing, {"x": 0.5, "y": 0.25}, size, 1)


def test_a_variable_alone_has_all_of_the_share_and_none_the_other() -> None:
    one = found(lambda x, y: 2 + x)
    assert one.indices["x"]["first"] == pytest.approx(1.0, abs=0.1)
    assert one.indices["x"]["total"] == pytest.approx(1.0, abs=0.1)
    assert one.indices["y"]["first"] == one.indices["y"]["total"] == 0.0
    assert one.points == 64 * 4
    assert set(one.indices["x"]) == {"first", "total", "first_conf", "total_conf"}
    assert one.along["x"]["values"] == pytest.approx([k / 6 for k in range(7)])
    assert one.along["x"]["objective"] == pytest.approx([2 + k / 6 for k in range(7)])  # the worse case
    assert one.along["y"]["objective"] == [2.5] * 7
    assert found(lambda x, y: 2 + x, 2, maximise=True).along["y"]["objective"] == [1.25] * 7


@pytest.mark.parametrize(
    ("least", "most", "logarithmic"), [(1.0, 9.0, False), (1.0, 11.0, True), (0.0, 11.0, False), (-1.0, 11.0, False)]
)
def test_logarithms_are_taken_of_what_spreads_over_a_factor_of_ten(
    least: float, most: float, logarithmic: bool
) -> None:
    """Many of 256 points are below a half, and some above."""
    assert found(lambda x, y: least if x < 0.5 else most).logarithmic is logarithmic


def test_what_never_changes_depends_on_nothing() -> None:
    flat = found(lambda x, y: 3.0)
    assert all(value == 0.0 for each in flat.indices.values() for value in each.values())


def test_points_without_a_value_are_counted_and_refused() -> None:
    with pytest.raises(InputError, match=r"sensitivity: \d+ of 16 points have no value"):
        found(lambda x, y: math.nan if x < 0.5 else 1.0, 4)


# -- fronts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("costs", "front"),
    [
        ([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]], [0, 1, 2]),
        ([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0]], [1, 2, 0]),  # by the first cost
        ([[1.0, 3.0], [1.0, 2.0], [1.0, 4.0]], [1]),
        ([[1.0, 3.0], [2.0, 3.0], [2.0, 1.0]], [0, 2]),  # as good in one, and worse in the other
        ([[1.0, 1.0], [1.0, 1.0]], [0]),
        ([[2.0], [1.0], [1.0]], [1]),
        ([[1.0, 1.0, 3.0], [1.0, 2.0, 1.0], [1.0, 2.0, 2.0]], [0, 1]),
    ],
)
def test_a_front_has_none_that_another_is_at_least_as_good_as(costs: list[list[float]], front: list[int]) -> None:
    assert front_of(np.array(costs)).tolist() == front


@pytest.mark.parametrize(
    ("costs", "knee"),
    [
        ([[0.0, 10.0], [1.0, 4.0], [2.0, 3.0], [4.0, 0.0]], 1),  # below the line by 0.35, 0.2
        ([[0.0, 10.0], [1.0, 7.0], [2.0, 3.0], [4.0, 0.0]], 2),
        ([[0.0, 10.0], [2.0, 5.0], [4.0, 0.0]], None),  # on it
        ([[0.0, 10.0], [2.0, 6.0], [4.0, 0.0]], None),  # above
        ([[0.0, 10.0], [4.0, 0.0]], None),
        ([[5.0, 1.0], [5.0, 1.0], [5.0, 1.0]], None),
        ([[0.0, 1.0, 2.0]] * 3, None),
    ],
)
def test_a_knee_is_furthest_below_the_line_between_the_ends(costs: list[list[float]], knee: int | None) -> None:
    assert knee_of(np.array(costs)) == knee


def test_a_spread_of_one_is_a_spread() -> None:
    """An objective of 1 or 2, by x alone."""
    step = found(lambda x, y: 1.0 if x < 0.5 else 2.0)
    assert step.indices["x"]["total"] == pytest.approx(1.0, abs=0.1)
