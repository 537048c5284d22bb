"""Equilibria of the schemes: sympy's derivation from their equations (`formulas`) against numbers found without it.

`formulas` returns the equations by name, as docs/theory/equilibria.md shows them.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import sympy
from scipy.optimize import brentq, root

import fluidcc as fc
from fluidcc.proofs.equilibria.formulas import SHORT, TAU_PRIME, formulas, value
from fluidcc.proofs.papers import ECN_OR_DELAY, HPCC
from fluidcc.proofs.shared import sample
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main
from fluidcc.scenario.model import TrafficClass, resolve
from fluidcc.scenario.round_trips import largest_base_rtt
from fluidcc.units import Rate

__all__ = ["formulas", "value"]

# DCQCN's Table 14 at 40 Gb/s, in packets of 1000 B.
PAPER = {"C": 5e6, "tau": 50e-6, TAU_PRIME.name: 55e-6, "T": 55e-6, "R_AI": 5e3, "B": 1e4, "F": 5}
KMIN, KMAX, PMAX = 5e3, 200e3, 0.01
LINE = Rate(100e9 / 8)


def marking(flows: float, r_ai: float = PAPER["R_AI"]) -> float:
    """p* of DCQCN from the derived equation, in 30 digits."""
    found = formulas()
    given = PAPER | {"R_AI": r_ai, "R": PAPER["C"] / flows}
    left, right = (
        side.subs(found["dcqcn.alpha"].lhs, found["dcqcn.alpha"].rhs).subs(SHORT)
        for side in found["dcqcn.marking"].args
    )
    free = sorted((left / right).free_symbols, key=str)
    ratio = sympy.lambdify(free, left / right, "mpmath")
    with mpmath.workdps(30):

        def surplus(log: Any) -> Any:
            at = given | {"p": mpmath.exp(log)}
            return mpmath.log(ratio(*(mpmath.mpf(at[one.name]) for one in free)))

        solved: Any = mpmath.findroot(surplus, (mpmath.log("1e-16"), mpmath.log("0.9")), solver="anderson", tol=1e-20)
        return float(mpmath.exp(solved))


def by_code(flows: int, near: float) -> dict[str, float]:
    """Solve the engine's own code by `fluidcc.symbolic`: p* is the root of what that leaves to numbers."""
    found = fc.symbolic("dcqcn", flows=flows)
    (left,) = found.remaining

    def surplus(log: float) -> float:
        return found.number(left.rhs, {"p": float(np.exp(log))}).real

    solved: Any = brentq(surplus, np.log(near / 2), np.log(2 * near), xtol=1e-14)
    p = float(np.exp(solved))
    named = {"queue_bytes": "q", "alpha": "alpha", "target_rate_bytes_per_s": "R_T"}
    explicit = {symbol.name: value for symbol, value in found.explicit.items()}
    numbers = {key: found.number(explicit[name], {"p": p}).real for key, name in named.items()}
    return {"marking_probability": p} | numbers


@claim(
    "dcqcn-conext-fixed-point",
    ECN_OR_DELAY,
    "DCQCN",
    "the fixed point: p* is the single root of a^2 alpha/((b+d)(c+e)) = tau^2 R_AI R",
)
def single_root() -> Finding:
    found, (a, b, c, d, e) = formulas(), SHORT
    tau, R_AI, R, alpha, y, n = sympy.symbols("tau R_AI R alpha y n", positive=True)
    printed = a**2 * alpha / ((b + d) * (c + e)) - tau**2 * R_AI * R
    derived = found["dcqcn.marking"].lhs - found["dcqcn.marking"].rhs
    # With y = 1 - p: y^n falls with p, so a and alpha rise; (y^-n - 1)/p rises, convex in p and 0 at 0, so b to e fall.
    # The left side rises from 0 without end, as b to e are 0 at p = 1.
    single = bool(
        sympy.diff(y**n, y).is_positive and sympy.diff(y**-n - 1, y, 2).is_positive and (y**n).subs(y, 0) == 0
    )
    ways, evidence = [], {}
    for flows in (2, 8, 14):
        there = fc.equilibrium(fc.incast(flows, packet_size="1000B")).as_dict()
        p = marking(flows)
        at = PAPER | {"R": PAPER["C"] / flows, "p": p}
        mine = {
            "marking_probability": p,
            "queue_bytes": KMIN + p / PMAX * (KMAX - KMIN),
            "alpha": value(found["dcqcn.alpha"].rhs, **at),
            "target_rate_bytes_per_s": 1e3 * (value(found["dcqcn.target_rate"].rhs.subs(SHORT), **at) + at["R"]),
        }
        evidence[f"N_{flows}"] = mine
        coded = by_code(flows, p)
        ways += [
            Way(f"{key} of {flows} flows: derived, {how}", mine[key], other[key], 1e-9)
            for how, other in (("fluidcc.equilibrium", there), ("solved from the engine's code", coded))
            for key in mine
        ]
    return Finding(
        {"as printed": sympy.simplify(printed - derived) == 0 and single},
        evidence | {"derived": str(found["dcqcn.marking"])},
        ways,
    )


@claim("dcqcn-conext-small-p", ECN_OR_DELAY, "DCQCN", "for small p, by Taylor's expansion, p* is the cube root")
def small_marking() -> Finding:
    found = formulas()
    R_AI, N, C, T, B, R, tau1 = sympy.symbols("R_AI N C T B R tauprime", positive=True)
    printed = R_AI * N**2 / (tau1 * C**2) * (1 / B + N / (T * C)) ** 2
    total, cube = found["dcqcn.small.sum"], found["dcqcn.small.leading"].rhs
    derived = cube.subs(total.lhs, total.rhs).subs(R, C / N)

    def at(flows: float, r_ai: float = PAPER["R_AI"]) -> tuple[float, float]:
        """Return the relative excess of the cube root over p*, and the excess that the next order predicts."""
        given = PAPER | {"R": PAPER["C"] / flows, "R_AI": r_ai}
        given["A"] = value(total.rhs, **given)
        lead, slope = value(cube, **given) ** (1 / 3), value(found["dcqcn.small.slope"].rhs, **given)
        return lead / marking(flows, r_ai) - 1, slope * lead / 3

    faint = PAPER["R_AI"] * 1e-18  # p falls 1e6 times, until F p B << 1 too, in which the next orders are
    return Finding(
        {"to leading order": sympy.simplify(printed - derived) == 0},
        {"too_high_by": {n: at(n)[0] for n in (2, 8, 32)}, "next_order": {n: at(n)[1] for n in (2, 8, 32)}},
        [Way(f"excess of {n} flows at R_AI 1e-18: found, kappa p_0/3", *at(n, faint), 1e-3) for n in (2, 8, 32)],
    )


def _hpcc(flows: int, rate_ai: float, *, served: float = 1.0, until: float, **options: Any) -> dict[str, float]:
    """U and queue where the fluid of some flows settles that start at their share, and its T; 100 Gb/s."""
    scheme = fc.HPCC(rate_ai=rate_ai, multiq="class" if served < 1 else "off", **options)
    link = fc.Link("100Gbps", "1us", None, "bottleneck", "switch", "receiver")
    share: dict[str, Any] = {"initial_rate": 0.95 * served * LINE / flows}
    made = [fc.Flow((0,), scheme, "100Gbps", multiplicity=flows, **share)]
    if served < 1:
        fixed_point = {"initial_rate": LINE * (1 - served), "traffic_class": 1}
        made.append(fc.Flow((0,), fc.NoControl(), "100Gbps", source="other", **fixed_point))
    of = fc.Scenario((link,), tuple(made), classes=(TrafficClass(), TrafficClass()))
    last = fc.simulate(of, until, sample_interval=until / 1000, estimate_error=False).sel(time=slice(0.9 * until, None))
    return {
        "U": float(last["utilisation_estimate"][:, 0].mean()),
        "queue_bytes": float(last["class_queue"][:, 0, 0].mean()),
        "base_rtt_s": float(options.get("base_rtt") or largest_base_rtt(resolve(of))),
    }


@claim("hpcc-a3-rest", HPCC, "A.3", "rates settle at R = a/(1 - U_target/U), with U that of their link", slow=True)
def hpcc_equilibrium(flows: int = 4) -> Finding:
    found = formulas()
    cases = {  # N a/B, service, formula of U, and what the fluid is told
        "rates below the link's": (0.02, 1.0, "one_link", {"form": "rate", "until": 3e-3}),
        # Rates behind a queue are two integrators in a loop, stable only if it is far shorter than T.
        "rates behind a queue": (0.07, 1.0, "class.rates", {"form": "rate", "base_rtt": 1e-3, "until": 0.3}),
        "windows served at 0.6": (0.08, 0.6, "class.windows", {"until": 3e-3}),
    }
    ways, evidence, readings = [], {}, {"rates": True, "windows, R = W/T": True}
    for what, (share, served, name, options) in cases.items():
        rate_ai = share * LINE / flows
        settled_run = _hpcc(flows, rate_ai, served=served, **options)
        T = settled_run["base_rtt_s"]
        at = {
            "eta": 0.95,
            "U_target": 0.95,
            "N": flows,
            "a": rate_ai,
            "W_AI": rate_ai * T,
            "B": LINE,
            "C": LINE,
            "T": T,
        }
        at["A"] = served * LINE
        at["U"] = value(found[f"hpcc.{name}"].rhs, **at)
        queue = 0.0 if name == "one_link" else value(found["hpcc.class.queue"].rhs, **at)
        # Windows hold the backlog too: W/T is U B/N, not A/N.
        R = at["A"] / flows if name == "class.rates" else at["U"] * LINE / flows
        kept = abs(value(found["hpcc.rate"].rhs, **at) / R - 1) < 1e-9
        readings["rates" if "form" in options else "windows, R = W/T"] &= kept
        evidence[what] = settled_run
        # The fluid circles around its equilibrium by what changes in a step; a queue is U less what is served.
        ways.append(Way(f"U of {what}: derived, fluid", at["U"], settled_run["U"], 1e-3))
        ways.append(
            Way(f"queue/(B T) of {what}: derived, fluid", queue / LINE / T, settled_run["queue_bytes"] / LINE / T, 1e-3)
        )
    rate_ai, A = 0.08 * LINE / flows, 0.6 * LINE

    def moves(at: Any) -> list[float]:
        return [at[0] * 0.95 / at[1] - at[0] + rate_ai / LINE, flows * at[0] - A / LINE]

    U = value(found["hpcc.class.rates"].rhs, eta=0.95, N=flows, a=rate_ai, A=A)
    low = 0.02 * LINE / flows  # no queue stands, and rates rest
    code = fc.symbolic(fc.HPCC(form="rate", rate_ai=f"{8 * low:.12g}bps"), flows=flows, rate="100Gbps")
    assert code.solution is not None
    solved = {symbol.name: code.number(root_of).real for symbol, root_of in code.solution.items()}
    plain = value(found["hpcc.one_link"].rhs, U_target=0.95, N=flows, a=low, C=LINE)
    ways.append(Way("U of rates alone: derived, solved from the engine's code", plain, solved["U"], 1e-9))
    ways.append(
        Way(
            "U of rates served at 0.6: derived, root of the right-hand side",
            U,
            float(root(moves, [0.1, 1.0]).x[1]),
            1e-9,
        )
    )
    lasted: list[Any] = [1e3 * options["until"] for *_, options in cases.values()]
    return Finding(
        readings,
        evidence,
        ways,
        sample=f"{len(cases)} runs of the fluid of {sample.listed(lasted)} ms, means of their last tenths; nothing is "
        "drawn",
    )


if __name__ == "__main__":
    main(__name__)
