"""Equations that several test files ask about: what is compiled of one serves all of them, at any parameters."""

from __future__ import annotations

from typing import Any

from fluidcc.delay import Equation


def mackey_glass(t: Any, x: Any, past: Any, p: Any) -> list[Any]:
    return [p.beta * past[0][0] / (1 + past[0][0] ** p.n) - p.gamma * x[0]]


# With a = 0 the lag alone (Hayes 1950 has both).
HAYES = Equation(lambda t, x, past, p: [p.a * x[0] - p.k * past[0][0]], ["tau"], {"a": 0.0, "k": 1.0, "tau": 1.0})
# Two branches that nearly meet, x = (m +- sqrt(m^2 + 4 e)) / 2; with m = 0 a fold at e = 0.
NEAR = Equation(
    lambda t, x, past, p: [past[0][0] * (p.m - past[0][0]) + p.e], ["tau"], {"m": 0.0, "e": 1.0, "tau": 0.1}
)
BLOOD = Equation(mackey_glass, ["tau"], {"beta": 0.2, "gamma": 0.1, "n": 10.0, "tau": 6.0})
PEOPLE = Equation(lambda t, x, past, p: [p.r * x[0] * (1 - past[0][0])], [1.0], {"r": 1.8})
