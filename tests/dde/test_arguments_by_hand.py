"""Arguments of `solve`: values of a parameter, pasts, and bounds on lags."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde.arguments import bound_of, lags_of, past_of, vectors_of
from fluidcc.errors import InputError


def equation(*lags: Any) -> Any:
    return fc.delay.Equation(
        lambda t, x, past, p: [-p.a * past[0][0], x[0] - x[1]],
        list(lags or ["tau"]),
        {"a": 1.5, "tau": 2.0},
        ["x", "y"],
    )


FIXED = equation()


def test_one_parameter_is_given_in_several_values() -> None:
    """The others stay; any iterable of numbers does, and one alone."""
    name, vectors = vectors_of(FIXED, None)
    assert (name, vectors.tolist()) == (None, [[1.5, 2.0]])
    for values in ([3.0, 4.0, 3.5], (3, 4, 3.5), np.array([3.0, 4.0, 3.5]), iter([3.0, 4.0, 3.5])):
        name, vectors = vectors_of(FIXED, {"tau": values})
        assert (name, vectors.tolist()) == ("tau", [[1.5, 3.0], [1.5, 4.0], [1.5, 3.5]])
    assert vectors_of(FIXED, {"tau": [0.0]})[1].tolist() == [[1.5, 0.0]]
    assert vectors_of(FIXED, {"a": [-1.0, 2.0]})[1].tolist() == [[-1.0, 2.0], [2.0, 2.0]]  # which is no lag


@pytest.mark.parametrize(
    ("over", "says"),
    [
        ("tau", "over: 'tau'; give one parameter"),
        (["a"], "over: .*; give one parameter"),
        ({}, "over: .*; give one parameter"),
        ({"a": [1.0], "tau": [1.0]}, "over: .*; give one parameter"),
        ({"b": [1.0]}, "b"),
        ({"tau": [1.0, -0.5, -0.2]}, "over tau: -0.5 is a lag; give 0 or more"),
        ({"tau": [math.nan]}, "over tau"),
        ({"tau": []}, "over tau"),
    ],
)
def test_values_that_are_refused(over: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        vectors_of(FIXED, over)


def test_a_past_is_a_state_or_a_function_of_time() -> None:
    begin, function = past_of(FIXED, [3.0, 4.0])
    assert (begin.tolist(), function) == ([3.0, 4.0], None)

    def past(t: Any) -> list[Any]:
        return [3.0 + t, jnp.exp(-t)]

    begin, function = past_of(FIXED, past)
    assert (begin.tolist(), function) == ([3.0, 1.0], past)
    for wrong in ([1.0], lambda t: [1.0], lambda t: [t, math.nan], [1.0, math.inf]):
        with pytest.raises(InputError, match="past"):
            past_of(FIXED, wrong)


def test_lags_reach_as_far_as_the_longest_or_as_a_bound_that_is_given() -> None:
    """Of all points; where they depend on the state a bound is needed, and only there it is used."""
    several = equation("tau", 3.0)
    lags = lags_of(several, np.array([[1.0, 2.0], [1.0, 5.0]]), np.array([1.0, 1.0]))
    assert lags.tolist() == [[2.0, 3.0], [5.0, 3.0]]
    assert [bound_of(several, lags, longest) for longest in (None, 99.0)] == [5.0, 5.0]
    moving = equation(lambda x, p: p.tau + x[0])
    assert lags_of(moving, np.array([[1.0, 2.0]]), np.array([4.0, 1.0])).tolist() == [[6.0]]
    assert bound_of(moving, np.array([[6.0]]), 7.0) == 7.0
    for longest in (None, 0.0, -1.0, math.nan):
        with pytest.raises(InputError, match="longest_lag"):
            bound_of(moving, np.array([[6.0]]), longest)
    with pytest.raises(InputError):
        lags_of(moving, np.array([[1.0, 2.0]]), np.array([-4.0, 1.0]))
