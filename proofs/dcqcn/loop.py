"""DCQCN's published loop transfer function (`fluidcc.schemes.dcqcn.published`) against the Jacobian of its equations.

ECN or Delay expands (7)-(9) in p. sympy does the same here and differentiates, with respect to the present state and to
what is observed a lag later, and compares the coefficients one by one; and the equations as they are, unexpanded.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import sympy

import fluidcc as fc
from fluidcc.compiling.settings import our_settings
from fluidcc.proofs.dcqcn.equations import setting
from fluidcc.proofs.equilibria.formulas import SHORT, TAU_PRIME, formulas, value
from fluidcc.proofs.equilibria.marking import PAPER, marking
from fluidcc.proofs.papers import ECN_OR_DELAY
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main
from fluidcc.scenario.model import resolve
from fluidcc.schemes.dcqcn import fluid as model
from fluidcc.schemes.dcqcn.published import published

p, R, R_T, alpha, g, T, B, F, tau, A, C, N = sympy.symbols("p R R_T alpha g T B F tau A C N", positive=True)
R_AI, HEARD = sympy.symbols("R_AI R_heard", positive=True)
STATE = (alpha, R_T, R)
G, PER_PACKET = 1 / 256, 0.01 / 195  # gain; slope of the RED line [1/packet]

Jacobians = tuple[Any, Any, Any]  # by the present state, by the rate observed, by the marking observed


def derived(*, expanded: bool) -> Jacobians:
    """Derivatives of (7)-(9); ``expanded``: to first order in p, with A = 1/B + 1/(T R) held constant."""
    if expanded:
        marked, cut = p * TAU_PRIME * HEARD, p * tau * HEARD
        rise, aim = HEARD * (A - (1 + A / 2) * p), HEARD * (A - (1 + 2 * F + A / 2) * p)
    else:
        a, b, c, d, e = (expression.subs(R, HEARD) for expression in SHORT.values())
        marked, cut = 1 - (1 - p) ** (TAU_PRIME * HEARD), a
        rise, aim = HEARD * (b + d), HEARD * (c + e)
    moves = sympy.Matrix(
        [
            g / TAU_PRIME * (marked - alpha),  # (7)
            -(R_T - R) / tau * cut + R_AI * aim,  # (8)
            -R * alpha / (2 * tau) * cut + (R_T - R) / 2 * rise,  # (9)
        ]
    )
    return tuple(moves.jacobian(symbols).subs(HEARD, R) for symbols in (STATE, [HEARD], [p]))  # pyright: ignore


def printed() -> dict[str, Any]:
    """The note's coefficients, with k, the slope that p has for the queue, divided out, and R = C/N."""
    h = sympy.Rational(1, 2) + A / 4
    S, rise = A * R / 2 - h * p * R, 1 + 2 * F + A / 2
    return {
        "AA": -(R**2) * alpha / 2 - h * R * R_T + h * R**2,
        "BB": -p * R * alpha / 2 - A * R / 2 + h * p * R,
        "CC": -p * R * alpha / 2 - A * R / 2 + A * R_T / 2 + h * p * R - h * p * R_T,
        "DD": -p * R**2 * g * R / 2,
        "EE": S * (p * R + A * R_AI),
        "FF": S * (-p * R_T + p * R + A * R_AI - rise * R_AI * p),
        "GG": S * (-R * R_T + R**2 - rise * R_AI * R),
        "pole of alpha": g * R,
        "rate observed by alpha": sympy.Integer(0),
    }


def coefficients(of: Jacobians) -> dict[str, Any]:
    """Return the note's coefficients as a characteristic equation with these derivatives has them."""
    now, rate, marks = of
    S = now[2, 1]
    return {
        "AA": marks[2],
        "BB": rate[2],
        "CC": now[2, 2],
        "DD": now[2, 0] * marks[0],
        "EE": S * now[1, 2],
        "FF": S * rate[1],
        "GG": S * marks[1],
        "pole of alpha": -now[0, 0],
        "rate observed by alpha": rate[0],
    }


def as_printed(of: Jacobians) -> Jacobians:
    """The derivatives whose loop is the published one."""
    now, rate, marks = (matrix.copy() for matrix in of)
    now[2, 2], rate[2] = rate[2], now[2, 2]
    now[1, 2] += A * R_AI
    now[0, 0], rate[0], marks[0] = -g * R, sympy.Integer(0), g * R
    return now, rate, marks


def numbers(of: Jacobians, at: dict[str, float]) -> tuple[Any, ...]:
    """Arrays of them."""
    return tuple(np.array([value(one, **at) for one in matrix]).reshape(matrix.shape) for matrix in of)


def loop(of: tuple[Any, ...], w: Any, flows: float, delay: float) -> Any:
    """L(i w) of the loop cut at the lag: the rate observed to the rate, with the marks that the queue makes of it."""
    now, rate, marks = of
    s = 1j * np.atleast_1d(w)
    right = rate[:, 0] + marks[:, 0] * (flows * PER_PACKET / s)[:, None]
    found = np.linalg.solve(s[:, None, None] * np.eye(3) - now, right[..., None])
    return -found[:, 2, 0] * np.exp(-s * delay)


def margin(of: tuple[Any, ...], flows: float, delay: float = 50e-6) -> float:
    """The least phase margin [degrees], on a grid of 1e-4 of a frequency."""
    w = np.geomspace(10, 1e6, 115_000)
    response = loop(of, w, flows, delay)
    crossed = np.flatnonzero(np.diff(np.sign(np.abs(response) - 1)))
    return float(np.degrees(np.angle(-response[crossed])).min())


def fixed_point(flows: int, p_star: float) -> dict[str, float]:
    """Numbers for all symbols, with the fixed point's other values at this marking."""
    at = PAPER | {"R": PAPER["C"] / flows, "N": flows, "g": G, "p": p_star}
    found = formulas()
    gap = value(found["dcqcn.target_rate"].rhs.subs(SHORT), **at)
    return at | {
        "A": 1 / at["B"] + 1 / (at["T"] * at["R"]),
        "alpha": value(found["dcqcn.alpha"].rhs, **at),
        "R_T": at["R"] + gap,
    }


@functools.cache
def by_jax(flows: int) -> tuple[Any, ...]:
    """The same derivatives of fluidcc's fluid at its own fixed point, in packets."""
    import jax
    import jax.numpy as jnp

    at, own = fixed_point(flows, marking(flows)), fc.DCQCN()
    scheme = resolve(fc.incast(1, scheme=own)).flows[0].scheme
    with our_settings():

        def moves(state: Any, rate: Any, marks: Any) -> Any:
            def one(number: Any) -> Any:
                return jnp.reshape(number, (1, 1))

            observed = model.feedback(scheme, model.Signals(one(marks), one(rate), one(jnp.asarray(1000.0))))
            now = model.State(rate=one(state[2]), target_rate=one(state[1]), alpha=one(state[0]))
            change = model.derivative(scheme, now, observed)
            return jnp.stack([change.alpha[0, 0], change.target_rate[0, 0], change.rate[0, 0]])

        where = jnp.array([at["alpha"], 1e3 * at["R_T"], 1e3 * at["R"]]), 1e3 * at["R"], at["p"]
        now, rate, marks = (np.asarray(one) for one in jax.jacfwd(moves, (0, 1, 2))(*where))
    unit = np.array([1.0, 1e-3, 1e-3])
    return now * unit[:, None] / unit, (rate * unit * 1e3)[:, None], (marks * unit)[:, None]


@claim(
    "dcqcn-conext-loop",
    ECN_OR_DELAY,
    "DCQCN, stability",
    "L(s) is the fluid model, expanded in p and linearised",
    slow=True,
)
def transfer_function() -> Finding:
    expanded, exact = derived(expanded=True), derived(expanded=False)
    mine, theirs = coefficients(expanded), printed()
    same = {name: sympy.simplify(mine[name] - theirs[name]) == 0 for name in theirs}
    mended = coefficients(as_printed(expanded))
    explained = all(sympy.simplify(mended[name] - theirs[name]) == 0 for name in theirs)
    ways, margins = [], {}
    for flows in (2, 8, 10):
        paper = published(flows=flows)
        at = fixed_point(flows, paper.marking_probability)
        there, w = numbers(as_printed(expanded), at), paper.crossovers()[0]
        one, other = complex(loop(there, w, flows, paper.delay)[0]), complex(paper.response(w))
        ways += [
            Way(
                f"L at its crossover, {flows} flows, {part}: the published formula, these derivatives changed",
                x,
                y,
                1e-6,
            )
            for part, x, y in (("real", other.real, one.real), ("imaginary", other.imag, one.imag))
        ]
        own = numbers(exact, fixed_point(flows, marking(flows)))
        margins[flows] = {
            "published": paper.phase_margin(),
            "expanded": margin(numbers(expanded, at), flows),
            "equations": margin(own, flows),
        }
        one, other = (float(np.abs(loop(each, 2500.0, flows, 50e-6)[0])) for each in (own, by_jax(flows)))
        ways.append(Way(f"|L(2500 i)|, {flows} flows: sympy, the fluid by jax", one, other, 1e-6))
    return Finding(
        {"as printed": all(same.values())},
        {"coefficients_that_are": [n for n in same if same[n]], "margin_degrees": margins},
        ways,
        correction="CC delayed and BB not, EE = S p R, alpha's pole at g/tau' in place of g C/N, and alpha observes "
        "rates; even so its margins are not the equations' own, at tau* = 50 us ("
        f"{setting(runs=False)}) "
        + ", ".join(f"{row['equations']:.2f} degrees (N = {n})" for n, row in margins.items()),
        corrected=explained,
    )


if __name__ == "__main__":
    main(__name__)
