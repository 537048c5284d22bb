"""Directions that a trace determines, and what is said of the others: from Jacobians that are written here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fluidcc.studies.fitting.model import space_of
from fluidcc.studies.fitting.result import Estimate, combinations, in_words


def test_strengths_are_by_the_logarithm_of_what_is_searched_so() -> None:
    """A range of e^2 in logarithms, and one from 0, of which the share counts."""
    space = space_of({"timer": (1e-5, 1e-5 * math.e**2), "kmin": (0, "8KB")})
    values, rows = combinations(np.array([[6.0, 0.0], [0.0, 5.0], [0.0, 0.0]]), space)
    assert values == pytest.approx([5.0, 3.0])
    assert rows == pytest.approx(np.array([[0.0, 1.0], [1.0, 0.0]]))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_direction_points_where_its_largest_part_is_above_0(sign: float) -> None:
    space = space_of({"kmin": (0, 1), "kmax": (0, 1)})
    values, rows = combinations(sign * np.array([[3.0, -4.0], [0.0, 0.0]]), space)
    assert values == pytest.approx([5.0, 0.0])
    assert rows[0] == pytest.approx([-0.6, 0.8])
    assert rows[1] == pytest.approx([0.8, 0.6])


@pytest.mark.parametrize(
    ("value", "row", "known", "said"),
    [
        (7.85, [1.0, 0.0], (False, False), []),  # 3.92 of it is below a half
        (7.83, [1.0, 0.0], (False, True), ["the trace does not determine a to within half of its value"]),
        (0.0, [0.0, 1.0], (True, False), ["the trace does not determine b to within half of its value"]),
        (1.0, [1.0, 0.0], (True, False), []),  # of what is known all the same nothing is said
        (1.0, [0.8, -0.6], (True, True), []),
        (
            1.0,
            [0.8, -0.6],
            (True, False),
            ["a and b cannot be told apart: a^0.8 * b^-0.6 may change and the trace stays as it is"],
        ),
        (1.0, [0.97, 0.24], (False, True), ["the trace does not determine a to within half of its value"]),
        (
            1.0,
            [0.97, -0.25],
            (False, True),
            ["a and b cannot be told apart: a^0.97 * b^-0.25 may change and the trace stays as it is"],
        ),
    ],
)
def test_directions_that_are_not_determined_are_said(
    value: float, row: list[float], known: tuple[bool, bool], said: list[str]
) -> None:
    assert in_words(np.array([value]), np.array([row]), dict(zip("ab", known, strict=True))) == said


@pytest.mark.parametrize(
    ("estimate", "width"),
    [
        (Estimate(2.0, 1.5, 2.25), 0.375),
        (Estimate(-2.0, -3.0, -1.0), 1.0),
        (Estimate(0.0, 0.0, 1.0), math.inf),
        (Estimate(4.0, 4.0, 4.0), 0.0),
    ],
)
def test_a_width_is_a_share_of_the_value(estimate: Estimate, width: float) -> None:
    assert estimate.width == width
