"""Arguments of `solve`: values of a parameter, pasts, and bounds on lags; numbers, lists and names as users write."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde import checks
from fluidcc.dde.solution import bound_of, lags_of, past_of, vectors_of
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
    """Take the lags of all points; where they depend on the state a bound is needed, and only there it is used."""
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


# -- numbers, lists and names -------------------------------------------------------------------------------------


class Odd:
    """Something of another library."""

    def __repr__(self) -> str:
        raise ValueError

    def __float__(self) -> float:
        raise LookupError("of another kind")


def test_what_was_given_is_shown_in_short() -> None:
    assert checks.shown("a\n  b") == r"'a\n b'"
    assert checks.shown([1, 2]) == "[1, 2]"
    assert checks.shown("x" * 50) == "'" + "x" * 39
    assert checks.shown(Odd()) == "a value of type Odd"


def test_numbers_are_finite() -> None:
    """And as Python writes them: text is none, truth is one."""
    assert [checks.number("k", value) for value in (2, -0.5, np.float32(0.25), True, jnp.asarray(3.0))] == [
        2.0,
        -0.5,
        0.25,
        1.0,
        3.0,
    ]
    assert [checks.positive("k", value) for value in (2, 1e-300)] == [2.0, 1e-300]
    for value, says in (
        ("1", "k: '1' is no number"),
        (b"1", "k: b'1' is no number"),
        (None, "k: None is no number"),
        (10**400, "k: more than a number of 64 bits holds"),
        (math.inf, "k: inf; give a finite number"),
        (math.nan, "k: nan; give a finite number"),
        (Odd(), r"k: a value of type Odd is no number \(of another kind\)"),
    ):
        with pytest.raises(InputError, match=says):
            checks.number("k", value)
        with pytest.raises(InputError, match=r"k: .*; give a number greater than 0"):
            checks.positive("k", value)
    for value in (0, -1, -0.0):
        with pytest.raises(InputError, match=f"k: {value}; give a number greater than 0"):
            checks.positive("k", value)


def test_whole_numbers_have_a_least() -> None:
    assert [checks.whole("m", 1), checks.whole("m", np.int16(7), 7), checks.whole("m", -2, -3)] == [1, 7, -2]
    for value, least in ((0, 1), (6, 7), (True, 1), (2.0, 1), ("2", 1)):
        with pytest.raises(InputError, match=f"m: .*; give a whole number of {least} or more"):
            checks.whole("m", value, least)


def test_lists_are_not_empty() -> None:
    """Nor text, nor tables."""
    for values in ([1, 2], (1, 2), np.array([1, 2]), range(1, 3)):
        assert checks.listed("of", values) == [1, 2]
    for values in ([], "ab", b"ab", 3, np.ones((1, 2)), np.array([]), np.array(2.0), {1, 2}, iter([1])):
        with pytest.raises(InputError, match=r"of: .*; give a list of one or more"):
            checks.listed("of", values)


def test_columns_are_of_finite_numbers() -> None:
    assert checks.column("of", 2).tolist() == [2.0]
    assert checks.column("of", [2, 3]).tolist() == [2.0, 3.0]
    for values in ([], [[1.0, 2.0]], ["a"], [1.0, math.inf], [10**400], None):
        with pytest.raises(InputError, match=r"of: .*; give finite numbers"):
            checks.column("of", values)


def test_names_are_text_and_once_there() -> None:
    checks.check_names(["x", "y"], {"a": 1.0})
    for states, parameters, says in (
        (["x", ""], {}, "name '': states and parameters are named by text"),
        (["x"], {3: 1.0}, "name 3: states and parameters are named by text"),
        (["x", "x"], {}, "name 'x' is there twice"),
        (["x"], {"x": 1.0}, "name 'x' is there twice"),
        (["x"], {"time": 1.0}, "name 'time': .* for example 'time0'"),
        (["state_x"], {}, "name 'state_x'"),
    ):
        with pytest.raises(InputError, match=says):
            checks.check_names(states, parameters)
    checks.check_names(["state", "times"], {})


def test_lags_that_are_none_are_told_by_their_place() -> None:
    checks.check_lags(np.array([[0.0, 1.0], [2.0, 3.0]]))
    for bad in (-1e-9, math.nan, math.inf):
        with pytest.raises(InputError, match=rf"lags\[1\]: is {bad:g} at this state"):
            checks.check_lags(np.array([[0.0, 1.0], [2.0, bad]]))


def test_states_are_given_in_order_or_by_names() -> None:
    for given in ([3, 4], (3, 4), np.array([3, 4]), {"y": 4, "x": 3}):
        assert checks.state_of(FIXED, given, "at").tolist() == [3.0, 4.0]
    for given, says in (
        ({"x": 3}, "at: y is missing; give a number for each of x, y"),
        ({"x": 3, "y": 4, "z": 5}, "z"),
        (["a", 4], "at: .* is no state; give 2 numbers"),
        ([10**400, 4], "at: .* is no state; give 2 numbers"),
        ([1.0], r"at: .*; give 2 finite numbers \(x, y\)"),
        ([[1.0, 2.0]], r"at: .*; give 2 finite numbers"),
        ([1.0, math.nan], r"at: .*; give 2 finite numbers"),
        (3.0, r"at: 3.0; give 2 finite numbers"),
    ):
        with pytest.raises(InputError, match=says):
            checks.state_of(FIXED, given, "at")
