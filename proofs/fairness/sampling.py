"""Fast convergence to fairness, section IV: multiplicative decrease per RTT, R(t), and per s packets, S(t).

S' = -beta S^2/(s MTU) and R' = -beta R/r have S(t) = C/(1 + beta C t/(s MTU)), R(t) = C exp(-beta t/r).
Settings of Fig. 4 in bytes and nanoseconds: r = 30 000, MTU = 1000, s = 30, beta = 0.5, 100 and 50 Gb/s.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import sympy
from scipy.integrate import solve_ivp
from sympy.physics.units import byte, second

from fluidcc.proofs.papers import VAI
from fluidcc.proofs.shared.sample import share
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main
from fluidcc.theory.fairness.lead import sampling_lead

SETTINGS, SEED = 200, 1  # drawn
RTT, SAMPLE, BETA, FAST, SLOW = 30_000.0, 30_000.0, 0.5, 12.5, 6.25  # ns, bytes (s MTU), 1, bytes/ns
ETA, LINK = 0.95, 100_000.0  # of HPCC's simulations: 1, Mb/s


def closed(t: Any, fast: float = FAST, slow: float = SLOW, rtt: float = RTT) -> Any:
    """(2): by how much sampling is fairer at t, in bytes/ns."""
    s1, s0 = (c / (1 + BETA * c * t / SAMPLE) for c in (fast, slow))
    return (fast - slow) * mpmath.exp(-BETA * t / rtt) - (s1 - s0)


def integrated(times: np.ndarray) -> np.ndarray:
    """(2) by integrating the differential equations."""
    found = solve_ivp(
        lambda _, y: np.concatenate([-BETA * y[:2] / RTT, -BETA * y[2:] ** 2 / SAMPLE]),
        (0, times[-1]),
        [FAST, SLOW] * 2,
        t_eval=times,
        rtol=1e-11,
        atol=1e-13,
    ).y
    return found[0] - found[1] - found[2] + found[3]


@claim("sf-condition", VAI, "IV", "sampling converges faster at first if 1/r < (C1 + C0)/(s MTU)")
def condition() -> Finding:
    t, b, c1, c0, r, m = sympy.symbols("t beta C1 C0 r m", positive=True)
    slope = sympy.diff((c1 - c0) * sympy.exp(-b * t / r) - c1 / (1 + b * c1 * t / m) + c0 / (1 + b * c0 * t / m), t)
    same = sympy.simplify(slope.subs(t, 0) - b * (c1 - c0) * ((c1 + c0) / m - 1 / r)) == 0
    step = 1.0
    right = all(
        (closed(step, fast, fast / 2, rtt) > 0) == (1 / rtt < 1.5 * fast / SAMPLE)
        for fast in (0.2, 1.0, 5.0, 12.5)
        for rtt in (1e3, 1e4, 1e5, 1e6)
    )
    early = float(integrated(np.array([0.0, step]))[1])
    return Finding(
        {"as printed": bool(same) and right},
        {"slope_at_0_in_fig_4": BETA * (FAST - SLOW) * ((FAST + SLOW) / SAMPLE - 1 / RTT)},
        [Way("difference after 1 ns: closed form, integration", float(closed(step)), early, 1e-4)],
    )


@claim("sf-figure", VAI, "IV, Fig. 4", "the fairness difference (2) is positive and diminishes over time")
def positive() -> Finding:
    with mpmath.workdps(30):
        slope = lambda t: mpmath.diff(closed, t)  # noqa: E731
        peak: Any = mpmath.findroot(slope, (5e3, 3e4), solver="anderson", tol=1e-20)
        change: Any = mpmath.findroot(closed, (1e5, 1e6), solver="anderson", tol=1e-20)
        top = float(closed(peak))
    times = np.linspace(0, 1.2e6, 240_001)
    values = integrated(times)
    where = np.flatnonzero(np.diff(np.sign(values[1:]))) + 1
    return Finding(
        {"for all t > 0": bool((values[1:] > 0).all())},
        {
            "peak_bytes_per_ns": top,
            "peak_at_ns": float(peak),
            "changes_sign_at_ns": float(change),
            "changes": len(where),
        },
        [
            Way("peak: root of the derivative, integration", top, float(values.max()), 1e-6),
            Way(
                "time of the change of sign: root, integration (grid 5 ns)", float(change), float(times[where[0]]), 1e-4
            ),
        ],
        restricted=bool((values[1 : where[0]] > 0).all()),
        conditions=f"until {float(change) / 1e3:.1f} us; later the per-RTT decrease has the smaller difference",
    )


@claim("sf-beta", VAI, "IV", "over one decrease interval f = s MTU/S the rate decreases by a factor of beta")
def by_beta() -> Finding:
    factor = 1 / (1 + BETA)
    found = solve_ivp(lambda _, y: -BETA * y**2 / SAMPLE, (0, SAMPLE / FAST), [FAST], rtol=1e-11, atol=1e-13)
    factor_rtt = float(np.exp(-BETA))
    left = solve_ivp(lambda _, y: -BETA * y / RTT, (0, RTT), [1.0], rtol=1e-11, atol=1e-13)
    return Finding(
        {"times beta": abs(factor - BETA) < 0.01, "times 1 - beta": abs(factor - (1 - BETA)) < 0.01},
        {"factor": factor, "factor_of_the_per_rtt_model": factor_rtt, "beta": BETA},
        [Way("rate after one interval: closed form, integration", factor, float(found.y[0, -1]) / FAST, 1e-9)],
        correction=f"it is multiplied by 1/(1 + beta), here {factor:.4f}; in the per-RTT model by e^-beta, "
        f"{factor_rtt:.4f}",
        corrected=abs(float(found.y[0, -1]) / FAST - factor) < 1e-9 and abs(float(left.y[0, -1]) - factor_rtt) < 1e-9,
    )


@claim("sf-ratio", VAI, "IV", "the rates converge to fairness, faster with sampling (fairness as a ratio)")
def ratio() -> Finding:
    end = 2e6
    per_rtt = [c * np.exp(-BETA * end / RTT) for c in (FAST, SLOW)]
    sampled = [c / (1 + BETA * c * end / SAMPLE) for c in (FAST, SLOW)]
    found = solve_ivp(
        lambda _, y: np.concatenate([-BETA * y[:2] / RTT, -BETA * y[2:] ** 2 / SAMPLE]),
        (0, end), [FAST, SLOW] * 2, rtol=1e-11, atol=1e-30,
    ).y[:, -1]  # fmt: skip
    before = FAST / SLOW
    return Finding(
        {"both": max(one[0] / one[1] for one in (sampled, per_rtt)) < 1 + 0.05 * (before - 1)},
        {
            "ratio_at_start": before,
            "sampled_after_2_ms": sampled[0] / sampled[1],
            "per_rtt_after_2_ms": per_rtt[0] / per_rtt[1],
        },
        [
            Way("ratio with sampling: closed form, integration", sampled[0] / sampled[1], found[2] / found[3], 1e-6),
            Way("ratio per RTT: closed form, integration", per_rtt[0] / per_rtt[1], found[0] / found[1], 1e-6),
        ],
        restricted=bool(sampled[0] / sampled[1] < 1.05),
        conditions=f"with sampling only, from {before:g} to {sampled[0] / sampled[1]:.3f} in {end / 1e6:g} ms: a "
        f"decrease per RTT leaves {per_rtt[0] / per_rtt[1]:g}, which (2) hides",
    )


@claim("sf-closed", VAI, "IV", "with f substituted S' = -beta S^2/(s MTU), and per RTT R' = -beta R/r")
def closed_forms() -> Finding:
    t, b, c, r, m = sympy.symbols("t beta C r m", positive=True)
    rate = sympy.Function("S")
    sampled, per_rtt = c / (1 + b * c * t / m), c * sympy.exp(-b * t / r)
    solves = [
        sympy.simplify(sampled.diff(t) + b * sampled**2 / m) == 0,
        sympy.simplify(per_rtt.diff(t) + b * per_rtt / r) == 0,
        sampled.subs(t, 0) == per_rtt.subs(t, 0) == c,
    ]
    substituted = sympy.simplify(-b * rate(t) / (m / rate(t)) + b * rate(t) ** 2 / m) == 0
    times = np.array([0.0, 1e3, 1e4, 1e5])
    return Finding(
        {"as printed": substituted and all(solves)},
        {"S": "C/(1 + beta C t/(s MTU))", "R": "C exp(-beta t/r)"},
        [
            Way(f"(2) after {ns / 1e3:g} us: closed form, integration", float(closed(ns)), float(value), 1e-8)
            for ns, value in zip(times[1:], integrated(times)[1:], strict=True)
        ],
    )


@claim("sf-interval", VAI, "IV", "f = s MTU/S is the frequency of the multiplicative decrease")
def interval(acks: int = 30, mtu: float = 1000.0) -> Finding:
    sample, rate = sympy.symbols("sample S", positive=True)
    unit = sympy.simplify(sample * byte / (rate * byte / second) / (sample / rate))
    acknowledged = np.arange(1, 20 * acks + 1) * mtu / FAST  # ns
    between = np.diff(acknowledged[acks - 1 :: acks])
    return Finding(
        {"its unit is 1/s": unit == 1 / second},
        {"unit": str(unit), "f_ns_in_fig_4": acks * mtu / FAST},
        [Way("ns between decreases: f, packet by packet", acks * mtu / FAST, float(between.mean()), 1e-12)],
        correction=f"f, in {unit}s, is the interval between decreases, with which S' = -beta S/f is right; the "
        "frequency is 1/f",
        corrected=unit == second,
    )


@claim("sf-once", VAI, "IV", "under the condition the rates of sampling become fairer faster: (2) is positive")
def once(settings: int = SETTINGS) -> Finding:
    """Show that (2) has the sign of h = ln(1 + a x) + ln(1 + b x) - x, x = beta t/r, a, b = C r/(s MTU).

    h(0) = 0, h'(0) = a + b - 1, h'' < 0, and h < 0 where x > 16 a. So x h' - h, whose slope is x h'', falls from 0, and
    h/x with it, from a + b - 1 to below 0: it is 0 exactly once if a + b > 1, and never if not.
    """
    x, a, b = sympy.symbols("x a b", positive=True)
    h = sympy.log(1 + a * x) + sympy.log(1 + b * x) - x
    two = (a - b) * sympy.exp(-x) - (a / (1 + a * x) - b / (1 + b * x))  # (2) in units of s MTU/r
    curve = sympy.Poly(sympy.expand(sympy.numer(sympy.together(-h.diff(x, 2)))), x, a, b)
    slope = h.diff(x)
    steps = {
        "sign": sympy.simplify(two - (a - b) * sympy.exp(-x) * (1 - sympy.exp(-h))) == 0,
        "start": h.subs(x, 0) == 0 and sympy.simplify(slope.subs(x, 0) - (a + b - 1)) == 0,
        "concave": all(coefficient > 0 for coefficient in curve.coeffs()),  # -h'': that over a square
        "falls": sympy.simplify((x * slope - h).diff(x) - x * h.diff(x, 2)) == 0
        and sympy.simplify((h / x).diff(x) - (x * slope - h) / x**2) == 0,
        "ends": ends_below(),
    }
    rng = np.random.default_rng(SEED)
    big = 10.0 ** rng.uniform(-1, 6, settings)
    small = big * rng.uniform(0.001, 0.999, settings)
    roots = sampling_lead(big, small, rtt=1.0, acks=1, mtu=1.0, beta=0.5).sign_change.values * 0.5
    changes, apart = 0, 0.0
    for one, other, root in zip(big, small, roots, strict=True):
        grid = np.geomspace(1e-3 / one, 100.0, 20_001)
        where = np.flatnonzero(np.diff(np.sign(np.exp(-grid) - 1 / ((1 + one * grid) * (1 + other * grid)))))
        changes += len(where)
        if one + other > 1:
            apart = max(apart, abs(root / grid[where[-1]] - 1))
    expected = int((big + small > 1).sum())
    return Finding(
        {"for all t > 0": changes == 0},
        {"steps": steps, "settings": settings, "settings_with_a_change": changes, "largest_distance_of_roots": apart},
        [
            Way("changes of sign: on a grid, settings with a + b > 1", changes, expected),
            Way("time of the change: worst of root over grid, 1", 1 + apart, 1.0, 0.002),  # the grid: 0.1 % apart
        ],
        restricted=all(steps.values()),
        conditions=f"up to one time, as in {changes} of {settings} settings, the {expected} in which the condition is "
        "met; after it, and always without the condition, (2) is negative",
        sample=f"proved in five steps; beside them {settings} drawn settings, seed {SEED}, of which "
        f"{share(changes, settings)} have a change of sign",
    )


def ends_below() -> bool:
    """Show h < 0 for x > 16 a > 16 b by ln(1 + u) <= 2 sqrt(u): h <= 4 sqrt(a x) - x and 16 a x < x^2.

    ln v <= v - 1 at v = sqrt(1 + u) gives ln(1 + u) <= 2 (sqrt(1 + u) - 1), and sqrt(1 + u) <= 1 + sqrt(u) by squares.
    """
    u, a, gap = sympy.symbols("u a gap", positive=True)
    x = 16 * a + gap
    squares = sympy.expand((1 + sympy.sqrt(u)) ** 2 - (1 + u))
    return bool(squares.is_positive) and bool(sympy.expand(x**2 - 16 * a * x).is_positive)


@claim("sf-ratio-any", VAI, "IV", "rates converge to fair rates: as a ratio, whatever the settings")
def ratio_of_any() -> Finding:
    t, b, r, m, low, more = sympy.symbols("t beta r m C0 more", positive=True)
    high = low + more
    per_rtt = sympy.simplify((high * sympy.exp(-b * t / r)) / (low * sympy.exp(-b * t / r)))
    sampled = sympy.simplify((high / (1 + b * high * t / m)) / (low / (1 + b * low * t / m)))
    left, falls = sympy.factor(sampled - 1), sympy.factor(sampled.diff(t))
    goes = {
        name: sympy.simplify(sympy.limit(rates, t, sympy.oo) - 1) == 0
        for name, rates in (("sampling", sampled), ("per RTT", per_rtt))
    }
    at = float(sampled.subs({t: 522_957, b: BETA, m: SAMPLE, low: SLOW, more: FAST - SLOW}))
    numeric = [c / (1 + BETA * c * 522_957 / SAMPLE) for c in (FAST, SLOW)]
    return Finding(
        {"both": all(goes.values())},
        {"sampled_less_1": str(left), "sampled_slope": str(falls), "at_sign_change_in_fig_4": at},
        [Way("ratio at the sign change of Fig. 4: symbols, floats", at, numeric[0] / numeric[1], 1e-12)],
        restricted=goes["sampling"] and bool(left.is_positive) and bool(falls.is_negative) and per_rtt.diff(t) == 0,
        conditions=f"with sampling, whose slope {falls} is negative; a decrease per RTT leaves {per_rtt} for ever",
    )


@claim("vai-default-ai", VAI, "III-D", "HPCC's parameters as suggested: an additive increase of 50 Mb/s")
def default_increase(w_ai: float = 80.0, trip: float = 13e-6) -> Finding:
    """HPCC 5.1: 80 B, T = 13 us; and what flows add to the load of a link of 100 Gb/s, where A.3's recursion rests.

    What they add there, above eta, is their additive increases: N a/C. Beside it, the 1 Gb/s that is also tried.
    """
    rate, flows = w_ai * 8 / trip / 1e6, 16
    load = {(n, mbps): ETA + n * mbps / LINK for n in (16, 96) for mbps in (50, 1000)}
    bdp = LINK * 1e6 / 8 * trip  # bytes
    added = (_load_at_equilibrium(flows, w_ai / bdp) - ETA) * LINK / flows
    return Finding(
        {"within 2 %": abs(rate / 50 - 1) < 0.02},
        {"mbps": rate, "mbps_by_the_load_that_16_flows_add": added}
        | {f"utilisation_{n}_flows_{mbps}_mbps": used for (n, mbps), used in load.items()},
        [
            Way("increase [Mb/s]: 80 B in 13 us, what 16 flows of 80 B add to the load", rate, added, 1e-9),
            Way(
                "U* of 16 flows at 1 Gb/s: A.3, iteration",
                load[flows, 1000],
                _load_at_equilibrium(flows, 1000 / LINK),
                1e-12,
            ),
        ],
    )


def _load_at_equilibrium(flows: int, increase: float) -> float:
    """U at which W <- W eta/U + W_AI of equal flows comes to rest, by iteration; sizes in bandwidth-delay products."""
    windows = np.full(flows, 1 / flows)
    for _ in range(2000):
        windows = windows * ETA / windows.sum() + increase
    return float(windows.sum())


if __name__ == "__main__":
    main(__name__)
