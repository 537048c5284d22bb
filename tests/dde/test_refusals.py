"""What users write amiss is said in words, as an equation is made or before anything runs."""

from __future__ import annotations

import copy
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde import checks
from fluidcc.dde.linear import systems
from fluidcc.errors import InputError
from tests.dde.equations import HAYES

Equation = fc.delay.Equation
TWO = ["a", "b"]


def lag_alone(t, x, past, p):
    return [-p.k * past[0][0]]


def raises(t, x, past, p):
    raise RuntimeError("boom")


def made(function=lag_alone, lags=("tau",), parameters=None, **options):
    return Equation(function, lags, {"k": 1.0, "tau": 1.0} if parameters is None else parameters, **options)


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        (raises, {}, "function: fails with RuntimeError: boom"),
        (lambda t, x, past, p: [-x[7], x[0]], {"states": TWO}, "function: index 7 is out of bounds"),
        (lambda t, x, past, p: [-past[0][2]], {}, "function: index 2 is out of bounds"),
        (lambda t, x, past, p: [-past[1][0]], {}, "function: tuple index out of range"),
        (lambda t, x, past, p: [-p.kk * x[0]], {}, "there is no 'kk'; did you mean k"),
        (lambda t, x, past, p: None, {}, "gives nothing .None.; give a list of 1"),
        (lambda t, x, past, p: {"x": x[0]}, {}, "gives a dict; give a list"),
        (lambda t, x, past, p: "x", {}, "gives a str; give a list"),
        (lambda t, x, past, p: (v for v in [1.0]), {}, "gives a generator; give a list"),
        (lambda t, x, past, p: [1j * x[0]], {}, "gives complex numbers"),
        (lambda t, x, past, p: [x], {}, r"gives an array of shape \(1,\) at place 0; give a number"),
        (lambda t, x, past, p: [[x[0]]], {}, "gives a list at place 0; give a number"),
        (lambda t, x, past, p: [x[0], x[0]], {}, "gives 2 numbers for 1 state"),
        (lambda t, x, past, p: [sum(x[0] for _ in range(p.k))], {}, "jax.numpy instead of numpy"),
        (lambda t, x, past, p: np.array([-x[0]]), {}, "jax.numpy instead of numpy"),
        (3, {}, "function: int cannot be called"),
        (lag_alone, {"states": ["time"]}, "name 'time': is a column of the results"),
        (lag_alone, {"states": ["state_x"]}, "name 'state_x': is a column of the results"),
        (lag_alone, {"parameters": {"k": 1, "tau": 1, "root": 1}}, "name 'root': is a column of the results"),
        (lag_alone, {"parameters": {"k": 1, "tau": 1j}}, "tau: 1j is no number"),
        (lag_alone, {"parameters": {"k": 10**400, "tau": 1}}, "k: more than a number of 64 bits holds"),
        (lag_alone, {"parameters": "k"}, "parameters: 'k'; give names and numbers"),
        (lag_alone, {"time_unit": None}, "time_unit: None; give text"),
        (lag_alone, {"lags": [lambda x, p: x]}, r"lags\[0\]: gives an array of shape \(1,\)"),
        (lag_alone, {"lags": [lambda x, p: "a"]}, r"lags\[0\]: gives a str; give a number"),
        (lag_alone, {"lags": [lambda x, p: np.exp(x[0])]}, r"lags\[0\]: asks for a number .*jax.numpy"),
        (lag_alone, {"lags": [lambda x, p: math.exp(x[0])]}, r"lags\[0\]: asks for a number .*jax.numpy"),
        (lag_alone, {"lags": [lambda x, p: 1.0 if x[0] > 0 else 2.0]}, r"lags\[0\]: asks for a number .*if"),
        (lag_alone, {"lags": [lambda x, p: x[3]]}, r"lags\[0\]: index 3 is out of bounds"),
        (lag_alone, {"lags": [lambda x: 1.0]}, r"lags\[0\]: fails with TypeError: .*positional argument"),
    ],
)
def test_equations(function, options, says):
    with pytest.raises(fc.InputError, match=says):
        made(function, **options)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda e: e.at("k"), "at: 'k'; give names and numbers"),
        (lambda e: e.at(k=math.nan), "k: nan; give a finite number"),
        (lambda e: fc.delay.equilibria("e", (0, 1)), "equation: 'e'; give a fluidcc.delay.Equation"),
        (lambda e: fc.delay.crossings(None, "tau", (0, 1)), "equation: None; give"),
        (lambda e: fc.delay.chart("e", {"tau": [1]}), "equation: 'e'; give"),
        (lambda e: fc.delay.solve("e", 1.0, past=[1]), "equation: 'e'; give"),
        (lambda e: fc.delay.abscissa("e"), "equation: 'e'; give"),
        (lambda e: fc.delay.equilibria(e, (0, 1), starts=True), "starts: True; give a whole number"),
        (lambda e: fc.delay.roots(e, 2.5), "count: 2.5; give a whole number"),
        (lambda e: fc.delay.roots(e, threads="a"), "threads: 'a'; give a whole number"),
        (lambda e: fc.delay.crossings(e, ["tau"], (0, 1)), "parameter: .*give the name of a parameter"),
        (lambda e: fc.delay.crossings(e, "tau", (0, 1), points=1), "points: 1; give a whole number of 2 or more"),
        (lambda e: fc.delay.critical_delay(e, "tau", "a"), "start: 'a' is no number"),
        (lambda e: fc.delay.critical_delay(e, "tau", -1.0), "start: -1.0; give a lag of 0 or more"),
        (lambda e: fc.delay.chart(e, {}), "over: 0 parameters; give one or two"),
        (lambda e: fc.delay.chart(e, {"tau": [1, math.nan]}), "over tau: .*give finite numbers"),
        (lambda e: fc.delay.chart(e, {"tau": [2, 1]}), "over tau: .*give values that ascend"),
        (lambda e: fc.delay.solve(e, 1.0, past=[1], tolerance=-1), "tolerance: -1; give a number greater"),
        (lambda e: fc.delay.solve(e, 1e-12, past=[1]), r"until: with steps of 1e-15, a lag of 1 is 1e\+15 steps"),
        (lambda e: fc.delay.solve(e, 1e300, past=[1]), r"until: 8e\+300 steps of 0.12; end sooner"),
        (lambda e: fc.delay.solve(e, 1.0, past=lambda t: [np.sin(t)]), "past: asks for a number .*jax.numpy"),
        (lambda e: fc.delay.solve(e, 1.0, past=lambda t: None), "past: gives nothing"),
        (lambda e: fc.delay.solve(e, 1.0, past=lambda t: [1.0, 2.0]), "past: gives 2 numbers for 1 state"),
        (lambda e: fc.delay.roots(made(lags=[lambda x, p: -1.0])), r"lags\[0\]: is -1 at this state"),
    ],
)
def test_questions(ask, says):
    with pytest.raises(fc.InputError, match=says):
        ask(HAYES)


def test_arrays_are_lists():
    equation = made(lags=np.array([1.0, 2.0]), states=np.array(["x"]))
    assert (equation.lags, equation.states) == ((1.0, 2.0), ("x",))
    assert made(lambda t, x, past, p: -p.k * past[0]).kernels.order == 1
    assert made(lambda t, x, past, p: x.at[0].set(-past[0][0])).kernels.order == 1


def test_each_equation_has_its_own_compiled_functions():
    """A method of an object that has changed since, and a callable that cannot be hashed."""

    class Model:
        gain = 1.0
        __hash__ = None  # type: ignore[assignment]

        def rate(self, t, x, past, p):
            return [-self.gain * past[0][0]]

        def __call__(self, t, x, past, p):
            return self.rate(t, x, past, p)

    def gain(equation):
        (system,) = systems(equation, np.zeros((1, 1)), equation.vector[None])
        return system.A.item()

    model = Model()
    before = made(model.rate), made(model)
    first = [gain(each) for each in before]
    model.gain = 5.0
    after = [gain(made(each)) for each in (model.rate, model)]
    assert (first, after) == ([-1.0, -1.0], [-5.0, -5.0])
    assert before[0].at(k=3.0).kernels is before[0].kernels
    assert copy.copy(before[0]).parameters == before[0].parameters


def test_a_tolerance_that_is_missed_is_said():
    """A past that jumps is of first order: 1e-6 is not reached, nor is it claimed."""

    def jump(t):
        return [jnp.where(t < -0.4567, 2.0, 1.0)]

    with pytest.warns(UserWarning, match=r"solve: with steps of .* the solution still changes by .*more than"):
        found = fc.delay.solve(HAYES, 1.0, past=jump, tolerance=1e-12, samples=100)
    t = found["time"].values
    exact = 1 - np.where(t < 1 - 0.4567, 2 * t, (1 - 0.4567) + t)
    assert np.abs(found["x"].values - exact).max() < 1e-4


def test_crossings_report(monkeypatch):
    """To a bar, which is seen where it takes long."""
    told = []
    monkeypatch.setattr(
        "fluidcc.progress.Bar.__call__", lambda self, share, where="": told.append((self._label, share))
    )
    fc.delay.crossings(HAYES, "tau", (0.1, 2.0), points=600)
    counted = [share for label, share in told if label == "counting roots"]
    assert len(counted) >= 3
    assert counted[-1] > 0.99
    assert ("finding crossings", 1.0) in told


@pytest.mark.parametrize(
    ("lags", "named", "says"),
    [
        ([lambda x, p: p.d], "d", r"d is a parameter, but no lag is that alone; write 0 \(a function\), or follow d"),
        ([lambda x, p: p.d], "e", r"'e' is no lag of this equation; write 0 \(a function\)$"),
        ([0.5, "d"], 2, r"2 is no lag of this equation; write one of 0 \(0.5\), 1 \(d\), 'd'$"),
    ],
)
def test_a_lag_that_cannot_be_named_is_told_with_those_that_can(lags, named, says):
    equation = made(lags=lags, parameters={"k": 1.0, "d": 0.1})
    for question in (fc.delay.critical_delay, fc.delay.margins):
        with pytest.raises(fc.InputError, match=f"lag: {says}"):
            question(equation, named)


# -- what a user's function returns --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "count", "found"),
    [
        ([1.0, 2], 2, [1.0, 2.0]),
        ((1.0,), 1, [1.0]),
        (np.array([1.0, 2.0]), 2, [1.0, 2.0]),
        (np.float64(3.0), 1, [3.0]),
        (np.array(3.0), 1, [3.0]),
        (3.0, 1, [3.0]),
        (3, 1, [3.0]),
        ([np.array(1.0), 2.0], 2, [1.0, 2.0]),
        ("x", 1, "a str; give a list of 1"),
        (None, 2, "nothing"),
        (3.0, 2, "a float; give a list of 2"),
        (np.array(3.0), 2, "1 number for 2 states"),
        ([1.0, 2.0], 3, "2 numbers for 3 states"),
        ([1.0], 2, "1 number for 2 states"),
        (np.zeros((2, 1)), 2, r"an array of shape \(2, 1\)"),
        (np.zeros(3), 2, r"an array of shape \(3,\)"),
        ([1.0, None], 2, "nothing .None. at place 1"),
        ([1.0, "a"], 2, "a str at place 1"),
        ([np.zeros(1), 1.0], 2, r"an array of shape \(1,\) at place 0"),
        ([1.0, 2j], 2, "complex numbers"),
    ],
)
def test_numbers_of_each_state(given: Any, count: int, found: Any) -> None:
    """A list or an array of so many, or one alone of one state; anything else is said."""
    if isinstance(found, list):
        assert np.asarray(checks.stacked(given, count, float)).tolist() == found
        return
    with pytest.raises(TypeError, match=found):
        checks.stacked(given, count, float)


def test_one_number_and_no_other() -> None:
    for given in (1, 2.0, np.float64(1.0), np.array(2.0), True):
        checks.scalar(given)
    for given, said in (
        ("a", "a str"), (None, "nothing"), ([1.0], "a list"), (np.zeros(1), r"shape \(1,\)"), (2j, "a complex"),
        (np.array(2j), "complex number"), ({}, "a dict"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=said):
            checks.scalar(given)


def test_errors_of_others_are_said_in_our_words() -> None:
    """Ours pass as they are; long ones are cut, and those of tracers ask for jax.numpy."""
    with pytest.raises(InputError, match=r"^ours$"), checks.refusing("f"):
        raise InputError("ours")
    with pytest.raises(InputError, match=r"^f: fails with ValueError: a b$"), checks.refusing("f"):
        raise ValueError("a\n  b")
    with pytest.raises(InputError) as caught, checks.refusing("f"):
        raise ValueError("x" * 400)
    assert str(caught.value).endswith(": " + "x" * 300)
    with pytest.raises(InputError, match=r"jax\.numpy instead"), checks.refusing("f"):
        raise TypeError("loop of ufunc does not support")
    for function, said in ((3, "int cannot be called"), (None, "NoneType cannot")):
        with pytest.raises(InputError, match=said):
            checks.argument_count("f", function, "g")
    checks.argument_count("f", len, "g")
