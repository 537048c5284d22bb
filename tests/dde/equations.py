"""Equations that several tests ask about, at any parameters: to compile one takes a second, most of what they take."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from fluidcc.dde import Equation


def equation(function: Any, parameters: dict[str, float], states: tuple[str, ...] = ("x",)) -> Equation:
    """An equation of one lag, the parameter "tau"; 1 if it is not given."""
    return Equation(function, ["tau"], {"tau": 1.0, **parameters}, states=states)


# With a = 0 the lag alone (Hayes 1950 has both).
HAYES = equation(
    lambda t, x, past, p: [p.a * x[0] - p.k * past[0][0]],
    {"a": 0.0, "k": 1.0},
)


def _several(t: Any, x: Any, past: Any, p: Any) -> list[Any]:
    x, y = x[0], past[0][0]
    folds = p.m * y - p.square * y**2 + p.e
    grows = p.r * x * (1 - y / 10) - p.eaten * y**2 / (1 + x**2)
    turns = -(p.sine + p.steeper * jnp.tanh(y / 10)) * jnp.sin(y - p.w)
    return [folds + grows + turns - p.parabolas * (y - p.q**2) * (y - p.q**2 + p.g)]


# Several that are followed, in one equation, so that what one of them compiles serves all: each leaves out what is 0.
_OFF = ("m", "square", "e", "r", "eaten", "sine", "steeper", "w", "parabolas", "q", "g")
SEVERAL = equation(_several, dict.fromkeys(_OFF, 0.0))
# Two branches that nearly meet, x = (m +- sqrt(m^2 + 4 e)) / 2; with m = 0 a fold at e = 0.
NEAR = SEVERAL.at(square=1.0, e=1.0, tau=0.1)
# An insect and its predators (Ludwig et al. 1978): the low equilibrium ends at a fold at r = 0.56.
BUDWORM = SEVERAL.at(r=0.4, eaten=1.0, tau=0.5)
# x = w is an equilibrium for each w, and so is w + 2 pi k. The gain grows with x: unstable from pi / 2 on.
LOCKED = SEVERAL.at(sine=1.3, steeper=0.6)
# Two equilibria on parabolas, one beside the other.
PARALLEL = SEVERAL.at(parabolas=1.0, g=0.1)
# Many equilibria, n pi.
SINE = SEVERAL.at(sine=1.0)
# Mackey and Glass, Science 1977.
BLOOD = equation(
    lambda t, x, past, p: [p.beta * past[0][0] / (1 + past[0][0] ** p.n) - p.gamma * x[0]],
    {"beta": 0.2, "gamma": 0.1, "n": 10.0, "tau": 6.0},
)
PEOPLE = equation(
    lambda t, x, past, p: [p.r * x[0] * (1 - past[0][0])],
    {"r": 1.8},
)
HARD = equation(
    lambda t, x, past, p: [-p.a * past[0][0] - past[0][0] ** 3 + p.c * past[0][0] ** 5],
    {"a": 1.5, "c": 0.0},
)


# Gurney, Blythe and Nisbet, Nature 1980.
FLIES = equation(
    lambda t, x, past, p: [p.P * past[0][0] * jnp.exp(-past[0][0]) - p.d * x[0]],
    {"P": 8.0, "d": 0.6},
)
SWINGS = equation(
    lambda t, x, past, p: [-jnp.sin(past[0][0] - 15 * jnp.sin(p.w))],
    {"w": 0.0, "tau": 0.1},
)
GAP = equation(
    lambda t, x, past, p: [(p.a - 1) * (p.a - 1.2) - x[0] ** 2],
    {"a": 0.0},
)


def polar(t: Any, x: Any, past: Any, p: Any) -> list[Any]:
    square = x[0] ** 2 + x[1] ** 2
    gain = p.mu + square - square**2
    return [gain * x[0] - x[1], gain * x[1] + x[0]]


# Two species that compete: (0, M) is an equilibrium for each M, and loses its stability at M = K / A.
RIVALS = equation(
    lambda t, x, past, p: [
        x[0] * (1 - (x[0] + p.A * past[0][1]) / p.K),
        p.s * x[1] * (1 - (x[1] + p.B * past[0][0]) / p.M),
    ],
    {"A": 0.7, "K": 100.0, "s": 0.3, "B": 0.4, "M": 46.0},
    ("x", "y"),
)
POLAR = equation(polar, {"mu": 0.1}, ("x", "y"))
# Hsu and Bhatt, J. Appl. Mech. 1966.
DUFFING = equation(
    lambda t, x, past, p: [x[1], -p.c * x[1] - x[0] - p.e * x[0] ** 3 + p.k * past[0][0]],
    {"c": 0.1, "e": 0.3, "k": 0.5, "tau": 0.0},
    ("x", "v"),
)
# Beside a gain of 1e4 one state grows by 1e-4.
SLOW = equation(lambda t, x, past, p: [-1e4 * past[0][0], p.e * x[1]], {"tau": 1e-4, "e": 1e-4}, ("x", "y"))
# 1e24 carriers and a field of 1: N = 1e24 and E^2 = P - 1.
LASER = equation(
    lambda t, x, past, p: [1e24 * p.P - x[0] * (1 + x[1] ** 2), 50 * past[0][1] * (x[0] / 1e24 - 1)],
    {"P": 2.0},
    ("N", "E"),
)
SIZES = equation(lambda t, x, past, p: [1e10 - x[0], p.A - x[1] ** 2], {"A": 2.0}, ("big", "small"))
# Two states that exchange what they hold, and one of them grows.
LEAKS = equation(
    lambda t, x, past, p: [p.K * (x[1] - x[0]) + p.p * past[0][0], p.K * (x[0] - x[1])],
    {"p": -1.0, "K": 1.0},
    ("a", "b"),
)
# Two equilibria in one state, and a number that is rounded in another.
ROUNDED = equation(
    lambda t, x, past, p: [p.A - x[0] / (1 + x[0]) + 0 * past[0][0], x[1] * (p.g - x[1]) / p.g],
    {"A": 0.5, "g": 1e-6},
    ("x", "y"),
)
# Large numbers that cancel: x = 1 whatever M is.
CANCELS = equation(lambda t, x, past, p: [p.M - x[0], (x[0] - p.M) + 1 - past[0][1] ** 2], {"M": 1e8}, ("n", "x"))
SMALL = equation(lambda t, x, past, p: [1e9 - x[0], 2 - (past[0][1] * 1e9) ** 2], {}, ("large", "small"))
# A switch of two genes: (2, 2) is one of three equilibria.
TOGGLE = equation(lambda t, x, past, p: [10 / (1 + past[0][1 - i] ** 2) - x[i] for i in (0, 1)], {}, ("u", "v"))
# A -> B: the sum stays, and every (0, b) is an equilibrium.
EXCHANGE = equation(lambda t, x, past, p: [-p.k * past[0][0], p.k * past[0][0]], {"k": 1.0}, ("a", "b"))


# The sum stays, and so does S without the ill; I grows from b S = g on.
SIR = equation(
    lambda t, x, past, p: [-p.b * x[0] * past[0][1], p.b * x[0] * past[0][1] - p.g * x[1], p.g * x[1]],
    {"b": 0.5, "g": 0.2, "tau": 2.0},
    ("S", "I", "R"),
)
# Those who recover are susceptible again after a delay: every sum has its own equilibrium.
SIRS = equation(
    lambda t, x, past, p: [
        -p.b * x[0] * x[1] + p.e * past[0][2],
        p.b * x[0] * x[1] - p.g * x[1],
        p.g * x[1] - p.e * past[0][2],
    ],
    {"b": 2.0, "g": 0.5, "e": 0.4, "tau": 6.0},
    ("S", "I", "R"),
)
# Those who are not infected, infected cells, and the virus (Nelson and Perelson): all equilibria in closed form.
VIRUS = equation(
    lambda t, x, past, p: [
        p.s - p.d * x[0] - p.k * x[0] * x[2],
        p.k * past[0][0] * past[0][2] - p.e * x[1],
        p.p * x[1] - p.c * x[2],
    ],
    {"s": 1e4, "d": 0.01, "k": 2e-7, "e": 0.7, "p": 100.0, "c": 13.0},
    ("T", "I", "V"),
)
# Two states that exchange what they keep, a billion times a second, and one of its own.
BESIDE = equation(
    lambda t, x, past, p: [1e9 * (x[1] - x[0]), 1e9 * (x[0] - x[1]), p.p * x[2] - x[2] ** 3],
    {"tau": 1e-9, "p": 1.0},
    ("x", "y", "z"),
)
# One root leaves to the right at k = 1.0001, two come back at 1.0003.
THREE = equation(
    lambda t, x, past, p: [
        (p.k - 1.0001) * x[0],
        -(p.k - 1.0003) * x[1] + 2 * x[2],
        -(p.k - 1.0003) * x[2] - 2 * x[1],
    ],
    {"k": 1.0},
    ("x", "y", "z"),
)


_MIX = np.array([[1, 0.3, 0.2], [0.1, 1, 0.7], [0.5, 0.2, 1]])
_CHAIN = _MIX @ np.diag([1.0, 1.0], 1) @ np.linalg.inv(_MIX)
# Four states on their own, each of which stands still at 0, and only to rounding.
CONSTANTS = equation(
    lambda t, x, past, p: [
        1 - jnp.exp(past[0][0]),
        -x[1] - 2 * (1 / (1 + jnp.exp(-past[0][1])) - 0.5),
        1 / (1 + past[0][2] + past[0][2] ** 2) - 1 - x[2],
        -jnp.log(1 + past[0][3]),
    ],
    {},
    ("a", "b", "c", "d"),
)
# A chain of three that keeps its last state, mixed, and one state of its own.
CHAIN = equation(
    lambda t, x, past, p: [*(_CHAIN @ jnp.stack([x[0], x[1], x[2]])), p.r * past[0][3]],
    {"r": -1.0, "tau": 0.01},
    ("a", "b", "c", "d"),
)
