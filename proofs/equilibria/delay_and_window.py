"""Equilibria of Swift, TIMELY, patched TIMELY and DCTCP, or proofs of none: sympy against their right-hand sides.

DCTCP's sawtooth is compared with fluidcc's fluid.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import sympy
from scipy.optimize import brentq, root

import fluidcc as fc
from fluidcc.proofs.equilibria.equations import (
    ROUND_TRIPS,
    Swift,
    Timely,
    cycle,
    dctcp_trace,
    patched_rhs,
    swift_rhs,
    swift_targets,
    timely_rhs,
)
from fluidcc.proofs.equilibria.formulas import formulas, value
from fluidcc.proofs.papers import ECN_OR_DELAY, VAI
from fluidcc.proofs.shared import sample
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main
from fluidcc.scenario.model import resolve
from fluidcc.scenario.round_trips import largest_base_rtt
from fluidcc.schemes.timely import PRESETS

DCTCP = "DCTCP, SIGCOMM 2010"
DCTCP_ANALYSIS = "Analysis of DCTCP, SIGMETRICS 2011"
SWIFT_FLOWS, UNEQUAL = (4, 16, 64), (0.6, 1.4)  # numbers of flows; drawn windows over those at equilibrium
SPLITS = 200  # of C and q, drawn
PATCHED_FLOWS, STARTS = (2, 10, 40), 5  # numbers of flows; drawn starts of the search for roots, each
SAWTOOTHS = ((2, 1 / 16), (8, 1 / 16), (16, 1 / 16), (2, 1 / 256), (8, 1 / 256))  # flows, g
SLOW, FAST = 100e-3, 40e-3  # s, runs of the sawtooth of fewer than 8 flows, and of others


@claim(
    "vai-2-fbs", VAI, "II", "flow-based scaling improves fairness: the lower the window, the higher the target delay"
)
def scaled_targets() -> Finding:
    found, own, x = formulas(), Swift(), sympy.Symbol("x", positive=True)
    # One change of sign in the cubic's coefficients: one positive root, whatever the sign of D + b_fs.
    cubic = sympy.Poly(found["swift.window"].lhs, x).all_coeffs()
    single = cubic[0].is_positive and cubic[1] == 0 and cubic[3] == -found["swift.slope"].lhs
    at = {"fs_min": own.least, "fs_max": own.most, "fs_range": own.span, "C": own.C, "D": own.fixed}
    at["alpha_fs"] = value(found["swift.slope"].rhs, **at)
    at["b_fs"] = value(found["swift.offset"].rhs, **at)

    def window(flows: int) -> float:
        (real,) = (
            r.real
            for r in np.roots([value(one, **at, N=flows) for one in cubic])
            if abs(r.imag) < 1e-9 * abs(r) and r.real > 0
        )
        return float(real) ** 2

    (many,) = sympy.solve(found["swift.window"], sympy.Symbol("N", positive=True))
    fewest, most = (value(many, **at, x=end**0.5) for end in (own.most, own.least))
    ways, equal = [], True
    for flows in SWIFT_FLOWS:

        def signs(one: float, n: int = flows) -> float:
            return float(swift_rhs(np.full(n, one), own)[0])

        # Where the right-hand side of equal windows turns from growth to decrease.
        turns: Any = brentq(signs, own.least * 1.001, own.most * 2, xtol=1e-13, rtol=np.float64(1e-14))
        ways.append(
            Way(f"window of {flows} flows: cubic, sign of the right-hand side", window(flows), float(turns), 1e-9)
        )
        # All flows at their targets, from unequal windows.
        rng = np.random.default_rng(flows)
        start = window(flows) * rng.uniform(*UNEQUAL, flows)
        settled_run = root(
            lambda w: w.sum() / own.C - swift_targets(w, own), start, tol=1e-13, options={"xtol": 1e-13}
        ).x
        equal &= bool(np.abs(settled_run / window(flows) - 1).max() < 1e-6)
    # Beyond fs_max, on a faster link, the targets are the same for all, and so is the delay: any split settles.
    fast = dataclasses.replace(own, C=4 * own.C)
    unequal = np.array([0.7, 0.3]) * fast.C * fast.fixed
    still = bool((swift_rhs(unequal * (1 + 1e-12), fast) <= 0).all() and np.abs(swift_rhs(unequal, fast)).max() < 1e-3)
    return Finding(
        {"whatever the windows": not still},
        {
            "window_packets": {n: window(n) for n in SWIFT_FLOWS},
            "delay_s": {n: n * window(n) / own.C for n in SWIFT_FLOWS},
            "unequal_windows_at_equilibrium": unequal,
            "flows_at_fs_max": fewest,
            "flows_at_fs_min": most,
        },
        ways,
        restricted=bool(single) and equal,
        conditions=f"windows between fs_min and fs_max, here of {np.ceil(fewest):.0f} to {most:.0f} flows: equal ones "
        "are the one equilibrium; beyond, targets are equal and any split settles",
        sample=f"that equal windows are the only equilibrium: one search from drawn windows, {UNEQUAL[0]:g} to "
        f"{UNEQUAL[1]:g} times these, for {sample.listed(SWIFT_FLOWS)} flows each (seed: their number); the rest draws "
        "nothing",
    )


@claim(
    "timely-conext-continuum",
    ECN_OR_DELAY,
    "TIMELY",
    "any split of C with q between the thresholds is a fixed point: no unique one",
)
def continuum(flows: int = 3) -> Finding:
    found, own = formulas(), Timely()
    rng = np.random.default_rng(1)
    moves: dict[bool, float] = {}
    for strict in (False, True):
        states = []
        for _ in range(SPLITS):
            q = own.C * rng.uniform(own.low, own.high)
            states.append(np.concatenate([[q], np.zeros(flows), own.C * rng.dirichlet(np.ones(flows))]))
        moves[strict] = max(np.abs(timely_rhs(s, s[0], flows, own, strict=strict)).max() / own.C for s in states)
    # Unknowns that the split leaves free, and q: against those that the right-hand side does not feel.
    split = found["timely.split"].rhs
    free = len(split.free_symbols - {sympy.Symbol("C", positive=True)}) + 1
    two = np.concatenate([[own.C * 2e-4], np.zeros(2), own.C * np.array([0.7, 0.3])])
    steps = np.diag(np.array([1.0, 1e-6, 1e-6, 1.0, 1.0]))
    jacobian = [timely_rhs(two + h, two[0] + h[0], 2, own, strict=True) for h in steps]
    flat = 5 - np.linalg.matrix_rank(np.array(jacobian) / np.diag(steps)[:, None] / own.C, tol=1e-9)
    grows = value(found["timely.printed"].rhs, **{"delta": own.delta, "tau^*": own.least_rtt})
    at = np.concatenate([[own.C * 2e-4], np.zeros(1), [own.C]])
    return Finding(
        {"the increase at g <= 0, as printed": moves[False] < 1e-12},
        {"fastest_change_as_printed_1/s": moves[False], "fastest_change_with_g_below_0_1/s": moves[True]},
        [
            Way("directions left free of two flows: derived, rank of the right-hand side", free, int(flat)),
            Way(
                "growth at equilibrium as printed: derived, right-hand side",
                grows,
                float(timely_rhs(at, at[0], 1, own, strict=False)[2]),
                1e-12,
            ),
        ],
        restricted=moves[True] < 1e-12,
        conditions="the increase only at g < 0; at g <= 0, as printed, rates grow by delta/tau*, here "
        f"{grows / own.C:.3g} C/s, at each of these, and there is no fixed point",
        sample=f"{SPLITS} drawn splits of C among {flows} flows, each with a drawn queue, for each reading (seed 1); "
        "the numbers are the largest of them, not estimates",
    )


@claim(
    "timely-conext-patched",
    ECN_OR_DELAY,
    "patched TIMELY",
    "a unique fixed point: equal rates, q* = N delta q'/(beta C) + q'; differences of rates shrink exponentially",
)
def patched() -> Finding:
    found, own = formulas(), Timely(beta=0.008)
    at = {
        "C": own.C,
        "beta": own.beta,
        "delta": own.delta,
        "qprime": own.C * own.low,
        "T_low": own.low,
        "T_high": own.high,
    }
    most = value(found["patched.most"].rhs, **at)
    N, C, delta, beta, reference = sympy.symbols("N C delta beta qprime", positive=True)
    printed = sympy.simplify(found["patched.queue"].rhs - (N * delta * reference / (beta * C) + reference)) == 0
    shrinks = found["patched.fairness"].rhs.is_negative

    def timed(z: Any, scale: Any, flows: int) -> Any:
        """Rates' changes in their own tau*: a rate of 0 has none, and would be a root."""
        tau = np.maximum(own.segment / np.abs(z * scale)[flows + 1 :], own.least_rtt)
        return patched_rhs(z * scale, flows, own) / scale * np.concatenate([[1.0], tau, tau])

    silent = np.array([(1 + own.delta / own.beta / own.C) * at["qprime"], 0.0, 0.0, 1e-9, own.C])
    stays = float(np.abs(patched_rhs(silent, 2, own)).max() / own.C) < 1e-12
    ways, unique = [], True
    for flows in PATCHED_FLOWS:
        queue = value(found["patched.queue"].rhs, **at, N=flows)
        rng = np.random.default_rng(flows)
        scale = np.concatenate([[queue], np.ones(flows), np.full(flows, own.C / flows)])
        fixed_points = []
        for _ in range(STARTS):
            start = np.concatenate(
                [[rng.uniform(0.9, 1.3)], rng.uniform(-0.1, 0.1, flows), rng.uniform(0.5, 1.5, flows)]
            )
            fixed_points.append(scale * root(timed, start, args=(scale, flows), method="lm", tol=1e-14).x)
        unique &= all(np.allclose(one / scale, [1, *[0] * flows, *[1] * flows], atol=1e-7) for one in fixed_points)
        ways.append(
            Way(f"q* of {flows} flows: derived, root of the right-hand side", queue, float(fixed_points[0][0]), 1e-9)
        )
        fluid = fc.incast(1, multiplicity=flows, rate="10Gbps", scheme=PRESETS["patched"].scheme)
        newton = fc.equilibrium(fluid).as_dict()["queue_bytes"]
        ways.append(Way(f"q* of {flows} flows: derived, Newton on fluidcc's fluid", queue, newton, 1e-9))
        code = fc.symbolic(PRESETS["patched"].scheme, flows=flows, rate="10Gbps")
        assert code.solution is not None
        solved = {symbol.name: code.number(root).real for symbol, root in code.solution.items()}
        ways.append(Way(f"q* of {flows} flows: derived, solved from the engine's code", queue, solved["q"], 1e-9))
        fixed_point, h = np.concatenate([[queue], np.zeros(flows), np.full(flows, own.C / flows)]), 1e-4 * own.C / flows
        apart = np.zeros_like(fixed_point)
        apart[flows + 1 : flows + 3] = h, -h
        change = patched_rhs(fixed_point + apart, flows, own) - patched_rhs(fixed_point - apart, flows, own)
        tau = max(own.segment / fixed_point[-1], own.least_rtt)
        mode = value(found["patched.fairness"].rhs, **at, N=flows, **{"tau^*": tau})
        ways.append(
            Way(
                f"decay of differences of {flows} flows [1/s]: derived, by differences",
                mode,
                float(change[flows + 1] / 2 / h),
                1e-3,
            )
        )
    few, many = (value(found["patched.queue"].rhs, **at, N=n) < own.C * own.high for n in (most - 1, most + 1))
    return Finding(
        {"for any N and start": few and many and not stays},
        {
            "most_flows": most,
            "q_over_q'": {n: value(found["patched.queue"].rhs, **at, N=n) / at["qprime"] for n in PATCHED_FLOWS},
        },
        ways,
        restricted=printed and bool(shrinks) and unique and few,
        conditions=f"fewer than beta C (T_high/T_low - 1)/delta = {most:.0f} flows, beyond which q* is above C T_high, "
        "where another rule holds; and every flow sends: with tau* = Seg/R a rate of 0 stays",
        sample=f"that the fixed point is the only one: searches from {STARTS} drawn states for each of "
        f"{sample.listed(PATCHED_FLOWS)} flows (seed: the number of flows); the rest draws nothing",
    )


@claim("dctcp-analysis-no-rest", DCTCP_ANALYSIS, "fluid model", "marks at a step make a limit cycle, not a fixed point")
def no_equilibrium(C: float = 1.25e6, D: float = 100e-6, K: float = 60.0) -> Finding:
    found = formulas()
    most = value(found["dctcp.most"].rhs, C=C, D=D, K=K)
    few, many = (2, 10, int(most) - 2), int(most) + 8
    oscillations, kept = {}, True
    for flows in few:
        time, _, queue = dctcp_trace(flows, C, D, K)
        oscillations[flows] = cycle(time, queue)
        # It neither dies out nor is what the start left over.
        kept &= (
            oscillations[flows][0] > 1.0 and abs(oscillations[flows][0] / np.ptp(queue[-len(queue) // 4 :]) - 1) < 0.1
        )
    _, window, queue = dctcp_trace(many, C, D, K)
    behind = value(found["dctcp.marked"].rhs, C=C, D=D, N=many)
    return Finding(
        {"for any N": behind <= K},
        {
            "most_flows": most,
            "amplitude_packets": {n: amplitude for n, (amplitude, _) in oscillations.items()},
            "period_s": {n: period for n, (_, period) in oscillations.items()},
        },
        [
            Way(f"queue of {many} flows [packets]: derived, integrated", behind, float(queue[-1]), 1e-6),
            Way(f"window of {many} flows [packets]", 2.0, float(window[-1]), 1e-6),
        ],
        restricted=bool(kept) and found["dctcp.unmarked"].rhs.is_positive is True,
        conditions=f"N < (C D + K)/2, here {most:g}; with more all is marked for ever: W = 2, alpha = 1, q = 2 N - C D",
        sample=f"{len(few) + 1} integrations of the fluid over {ROUND_TRIPS} round trips each; nothing is drawn",
    )


def _amplitude(flows: int, g: float) -> tuple[dict[str, float], float, float]:
    """Numbers for the formulas; peak to peak [packets] and period [s] of the fluid's queue, in packets of 1 KB."""
    fast = flows >= 8
    rate, delay, K = ("100Gbps", "5us", 300.0) if fast else ("10Gbps", "25us", 60.0)
    marking = fc.RED(K * 1e3, K * 1e3, 1.0)
    plain = fc.incast(1, multiplicity=flows, rate=rate, delay=delay, scheme=fc.DCTCP(), marking=marking)
    at = {"K": K, "N": flows, "g": g, "D": float(largest_base_rtt(resolve(plain)))}
    at["C"] = float(resolve(plain).links[0].rate) / 1e3
    at["W"] = value(formulas()["dctcp.crossing"].rhs, **at)
    # alpha starts where the formula has it: from 1 it would take some 1/g round trips.
    scheme = fc.DCTCP(g=g, initial_alpha=value(formulas()["dctcp.alpha.leading"].rhs, **at))
    of = fc.incast(1, multiplicity=flows, rate=rate, delay=delay, scheme=scheme, marking=marking)
    trace = fc.simulate(of, FAST if fast else SLOW, sample_interval="2us", estimate_error=False)
    amplitude, period = cycle(trace["time"].values, trace["queue"].values[:, 0] / 1e3)
    return at | {"W_peak": at["W"] + 1}, amplitude, period


@claim(
    "dctcp-33-sawtooth",
    DCTCP,
    "3.3",
    "the queue oscillates by about (N (C RTT + K)/2)^(1/2) packets, every ((C RTT + K)/(2 N))^(1/2) round trips",
    slow=True,
)
def sawtooth() -> Finding:
    found = formulas()
    W, N, C, RTT, K = sympy.symbols("W N C D K", positive=True)
    crossing, whole = found["dctcp.crossing"].rhs, RTT + K / C
    printed = [sympy.sqrt(N * (C * RTT + K) / 2), whole * sympy.sqrt((C * RTT + K) / (2 * N))]
    derived = [found[f"dctcp.{name}.leading"].rhs.subs(W, crossing) for name in ("amplitude", "period")]
    same = all(sympy.simplify(one / other) == 1 for one, other in zip(printed, derived, strict=True))

    def lasting(n: float, at: dict[str, float]) -> float:
        """Return the windows that a cycle lasts with the alpha that n windows lead to, less n."""
        alpha = value(found["dctcp.hold.alpha"].rhs, **at, n=n)
        return value(found["dctcp.hold.windows"].rhs, **at, alpha=alpha) - n

    readings, ways, evidence, close, worst = {"amplitude": True, "period": True}, [], {}, [], 0.0
    for flows, g in SAWTOOTHS:
        at, amplitude, period = _amplitude(flows, g)
        plain = [value(found[f"dctcp.{name}.leading"].rhs, **at) for name in ("amplitude", "period")]
        off = [one / other - 1 for one, other in zip(plain, (amplitude, period), strict=True)]
        if g == 1 / 16:  # the paper's
            worst = max(worst, *map(abs, off))
            readings = {name: ok and abs(x) < 0.1 for (name, ok), x in zip(readings.items(), off, strict=True)}
        else:
            close += [abs(x) < 0.1 for x in off]
        last: Any = brentq(lasting, 1.01, 1e3, args=(at,))
        n = float(last)
        at["alpha"] = value(found["dctcp.hold.alpha"].rhs, **at, n=n)
        mine = [value(found[f"dctcp.{name}"].rhs, **at) for name in ("amplitude", "hold.period")]
        # All flows cut in the same instant; a first mark comes within a packet of the threshold.
        what = f"of {flows} flows, g = 1/{1 / g:.0f}: with g and the round trip after a cut, fluid"
        ways += [Way(f"oscillation {what}", mine[0], amplitude, 0.1), Way(f"period {what}", mine[1], period, 0.1)]
        evidence[f"N_{flows}_g_1/{1 / g:.0f}"] = {
            "amplitude_packets": amplitude,
            "period_s": period,
            "printed_amplitude_off_by": off[0],
            "printed_period_off_by": off[1],
        }
    return Finding(
        {name: ok and same for name, ok in readings.items()},
        evidence,
        ways,
        restricted=same and all(close),
        conditions="g times the windows of a cycle << 1 (g = 1/256), and windows of some 60 packets or more; "
        f"at g = 1/16 within {100 * worst:.0f} %",
        sample=f"{len(SAWTOOTHS)} runs of the fluid of {1e3 * FAST:g} to {1e3 * SLOW:g} ms, of which the second half "
        "counts; nothing is drawn",
    )


if __name__ == "__main__":
    main(__name__)
