"""Published Hopf points, folds, kept sums, cycles and users' cases; `python -m tests.dde.frozen` writes their values.

A guard of Newton's method or of a branch that no case here needs can go (docs/theory/delay_guards.md).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import fluidcc as fc
from tests.dde import equations as of

TABLE = Path(__file__).parent.parent / "data" / "delay_equations.toml"
# Relative: crossings and equilibria are found to rounding, cycles to the error that collocation aims at.
WITHIN = {"hopf": 1e-12, "fold": 1e-12, "sum": 1e-12, "user": 1e-12, "cycle": 1e-9}
BLOOD_13 = of.BLOOD.at(tau=13.4)
VALVE = of.equation(
    lambda t, x, past, p: [x[1], p.mu * (1 - x[0] ** 2) * x[1] - x[0] + 0.2 * past[0][0]], {"mu": 1.0}, ("x", "v")
)
MAY = of.equation(
    lambda t, x, past, p: [x[0] * (1 - 0.5 * past[0][0] - 0.5 * x[1]), x[1] * (-0.5 + x[0] - 0.25 * x[1])],
    {},
    ("prey", "predator"),
)
NEURONS = fc.delay.Equation(
    lambda t, x, past, p: [
        -0.5 * x[0] - jnp.tanh(past[2][0]) + jnp.tanh(past[1][1]),
        -0.5 * x[1] - jnp.tanh(past[2][1]) + p.a21 * jnp.tanh(past[0][0]),
    ],
    [0.2, 0.2, 1.5],
    {"a21": 0.5},
    states=["x1", "x2"],
)
TWO_LAGS = fc.delay.Equation(
    lambda t, x, past, p: [-4.75 * x[0] - p.k1 * past[0][0] - 2 * past[1][0]],
    [lambda x, p: 1.3 + x[0], lambda x, p: 6 + x[0]],
    {"k1": 0.5},
)
SIGMOIDS = of.equation(
    lambda t, x, past, p: [
        -x[0] - 2 * (1 / (1 + jnp.exp(-past[0][1])) - 0.5),
        -x[1] + 2 * (1 / (1 + jnp.exp(-past[0][0])) - 0.5),
    ],
    {},
    ("x1", "x2"),
)
VIRUS_BOX = {"T": (0.0, 1e7), "I": (-1e6, 1e6), "V": (-1e7, 1e7)}


class Case(NamedTuple):
    """One row of the table: its kind, name, source, and how its numbers are computed."""

    kind: str
    name: str
    source: str
    values: Callable[[], Any]


def crossings(equation: Any, parameter: str, between: tuple[float, float], at: Any = None) -> list[float]:
    """Compute value, frequency and change of the number of unstable roots of each crossing."""
    found = fc.delay.crossings(equation, parameter, between, at=at, points=32)
    return [number for each in found for number in (each.value, each.frequency, float(each.unstable))]


def states(equation: Any, over: dict[str, list[float]], at: Any) -> Any:
    """Compute the states of a chart, NaN where the equilibrium is lost."""
    data = fc.delay.chart(equation, over, at=at).dataset
    return np.stack([data[f"state_{name}"].values for name in equation.states], axis=-1)


def roots(equation: Any, over: dict[str, list[float]], at: Any) -> Any:
    """Compute the number of roots at 0 and the rightmost of the others, of a chart."""
    data = fc.delay.chart(equation, over, at=at).dataset
    return [float(data.attrs["roots_at_0"]), *data["root"].values]


def cycle(equation: Any, **options: Any) -> list[float]:
    """Compute period and peak to peak of a cycle."""
    found = fc.delay.limit_cycle(equation, **options)
    return [found.period, *found.amplitude.values()]


def hopf(equation: Any, parameter: str, between: tuple[float, float], at: Any, place: int = 0) -> Any:
    """Find a Hopf point."""
    return [c for c in fc.delay.crossings(equation, parameter, between, at=at, points=32) if c.kind == "hopf"][place]


def _of_blood() -> Any:
    return hopf(of.BLOOD, "tau", (1, 10), [1.0])


def _of_sine() -> list[float]:
    near = hopf(of.SINE, "sine", (0.5, 35.0), [0.0], 3)
    return cycle(of.SINE.at(sine=near.value + 0.3), near=near)


def _of_hard(a: float, c: float) -> list[float]:
    hard = of.HARD.at(c=c)
    return cycle(hard.at(a=a), near=hopf(hard, "a", (1, 2), [0.0]))


CASES = [
    Case("hopf", "delay alone", "Hayes 1950", lambda: crossings(of.HAYES, "tau", (0.1, 3))),
    Case("hopf", "gain", "Hayes 1950", lambda: crossings(of.HAYES.at(a=1 / np.tan(1.0)), "k", (1.0, 1.3))),
    Case("hopf", "slow oscillation", "Hayes 1950", lambda: crossings(of.HAYES.at(k=1e-10), "tau", (1e9, 3e10))),
    Case("hopf", "delayed logistic", "Wright 1955", lambda: crossings(of.PEOPLE.at(r=1.0), "r", (0.5, 3), [1.0])),
    Case("hopf", "blood, tau", "Mackey and Glass 1977", lambda: crossings(of.BLOOD, "tau", (0, 40), [1.0])),
    Case(
        "hopf",
        "blood, n",
        "Mackey and Glass 1977",
        lambda: crossings(of.BLOOD.at(beta=2.0, gamma=1.0, n=3.0, tau=2.0), "n", (3, 9), [1.0]),
    ),
    Case("hopf", "blowflies", "Gurney et al. 1980", lambda: crossings(of.FLIES, "tau", (0, 20), [2.59])),
    Case("hopf", "Duffing", "Hsu and Bhatt 1966", lambda: crossings(of.DUFFING, "tau", (0, 14), [0, 0])),
    Case("hopf", "predator and prey", "Song and Wei 2005", lambda: crossings(MAY, "tau", (0, 10), [0.8, 1.2])),
    Case("hopf", "two neurons", "DDE-BIFTOOL 2, manual", lambda: crossings(NEURONS, "a21", (0.1, 2), [0, 0])),
    Case("hopf", "two state-dependent lags", "Humphries et al. 2012", lambda: crossings(TWO_LAGS, "k1", (0.5, 6), [0])),
    Case(
        "fold", "budworm", "Ludwig et al. 1978", lambda: states(of.BUDWORM, {"r": [0.45, 0.5, 0.55, 0.57, 1.0]}, [0.5])
    ),
    Case(
        "fold",
        "gap between two",
        "normal form of two branches that nearly meet",
        lambda: states(of.NEAR.at(m=1.0, e=1e-3), {"m": [-2, -0.5, 0.5, 2]}, [1.0]),
    ),
    Case(
        "fold",
        "two folds",
        "normal form of two branches that nearly meet",
        lambda: states(of.NEAR.at(m=1.0, e=-1e-3), {"m": [-2, -0.5, 0.5, 2]}, [1.0]),
    ),
    Case(
        "fold",
        "exchange of stability",
        "normal form of a transcritical point",
        lambda: crossings(of.NEAR.at(m=1.0, e=0.0), "m", (-2, 2.1), [0.0]),
    ),
    Case(
        "fold",
        "two next to each other",
        "normal form of a fold",
        lambda: [fc.delay.equilibria(of.NEAR.at(e=e), (-1, 1)).ravel() for e in (-1e-12, 1e-12)][1],
    ),
    Case(
        "sum",
        "epidemic, moved",
        "Hethcote 1976",
        lambda: states(of.SIRS, {"b": [1.5, 2.0]}, [0.25, 1 / 3, 0.75 * 5 / 9]),
    ),
    Case(
        "sum",
        "epidemic, delay",
        "Hethcote 1976",
        lambda: roots(of.SIRS, {"tau": [1.0, 6.0]}, [0.25, 1 / 3, 0.75 * 5 / 9]),
    ),
    Case(
        "sum",
        "outbreak",
        "Kermack and McKendrick 1927",
        lambda: crossings(of.SIR, "b", (0.1, 1.0), [1.0, 0.0, 0.0]),
    ),
    Case("sum", "reaction", "A to B", lambda: fc.delay.linearize(of.EXCHANGE, at=[0.0, 1.0]).A.ravel()),
    Case(
        "sum",
        "exchange nearly kept",
        "two pools, one of which grows",
        lambda: states(of.LEAKS.at(K=1e9, tau=1e-9), {"p": [-1.0, 1.0]}, [0, 0]),
    ),
    Case("cycle", "blood", "Mackey and Glass 1977", lambda: cycle(of.BLOOD, past=[0.5])),
    Case("cycle", "blood, doubled", "Mackey and Glass 1977", lambda: cycle(BLOOD_13, past=[0.5])),
    Case("cycle", "blood, repels", "Mackey and Glass 1977", lambda: cycle(BLOOD_13, near=_of_blood())),
    Case("cycle", "pulses", "Wright 1955", lambda: cycle(of.PEOPLE.at(r=2.5), past=[0.5], until=200.0)),
    Case("cycle", "relaxation", "van der Pol 1926", lambda: cycle(VALVE.at(mu=6.0), past=[1.0, 0.0])),
    Case("cycle", "hard loss of stability", "normal form", lambda: _of_hard(1.5, 0.0)),
    Case("cycle", "branch that turns back", "normal form", lambda: _of_hard(1.6, 0.5)),
    Case(
        "cycle",
        "branch that turns within a step",
        "normal form of Bautin's point",
        lambda: cycle(of.POLAR, near=hopf(of.POLAR, "mu", (-1.0, 1.0), [0, 0])),
    ),
    Case("cycle", "fourth branch", "loop of a phase detector", _of_sine),
    Case("user", "documentation", "delay_equations.md", lambda: fc.delay.equilibria(of.BLOOD, (0, 2)).ravel()),
    Case(
        "user",
        "documentation, chart",
        "delay_equations.md",
        lambda: states(of.BLOOD, {"n": [4.0, 9.0, 14.0], "tau": [1.0, 20.0]}, [1.0]),
    ),
    Case("user", "laser in SI", "1e24 carriers", lambda: states(of.LASER, {"P": [1.5, 2.0, 3.0]}, [1e24, 1.0])),
    Case("user", "sizes", "1e10 and 1", lambda: states(of.SIZES, {"A": [1.0, 2.0, 3.0]}, [1e10, 1.4])),
    Case("user", "virus", "Nelson and Perelson 2002", lambda: fc.delay.equilibria(of.VIRUS, VIRUS_BOX)[0]),
    Case("user", "neurons with sigmoids", "at rest at 0", lambda: fc.delay.equilibria(SIGMOIDS, (-0.5, 0.9)).ravel()),
    Case(
        "user",
        "virus, cured",
        "Nelson and Perelson 2002",
        lambda: [
            fc.delay.linearize(of.VIRUS.at(k=k), at=at).A0[0, 2]
            for k in (2e-7, 1e-8)
            for at in ([1e6, 0, 0], [1.01e6, 0, 0], [1e6, 1.0, 1.0])
        ],
    ),
    Case("user", "rivals", "Lotka 1925", lambda: states(of.RIVALS, {"M": [10.0, 100.0, 300.0]}, [0, 46])),
    Case("user", "rivals, crossing", "Lotka 1925", lambda: crossings(of.RIVALS, "M", (10, 300), [0, 46])),
    Case("user", "switch of genes", "Gardner et al. 2000", lambda: fc.delay.equilibria(of.TOGGLE, (0, 12)).ravel()),
    Case("user", "locked phase", "many equilibria 2 pi apart", lambda: states(of.LOCKED, {"w": [0, 12, 60]}, [0])),
    Case("user", "slow state", "gains of 1e4 and 1e-4", lambda: crossings(of.SLOW, "e", (-1e-4, 2.2e-4), [0, 0])),
]


def frozen() -> dict[str, list[float]]:
    """Read the table."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["case"]
    return {row["name"]: row["values"] for row in rows}


def main() -> None:
    """Write the table."""
    text = ["# Written by `python -m tests.dde.frozen`; NaN: the equilibrium is lost there.\n"]
    for case in CASES:
        values = ", ".join(repr(float(value)) for value in np.ravel(case.values()))
        text.append(f'[[case]]\nkind = "{case.kind}"\nname = "{case.name}"\nsource = "{case.source}"\n')
        text.append(f"values = [{values}]\n\n")
    TABLE.write_text("".join(text).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
