"""Equilibria of the schemes' equations, derived by sympy from their right-hand sides.

Each function takes the equations of one scheme, solves them, and returns what it found as equations by name. `formulas`
has all of them; docs/theory/equilibria.md prints them.
"""

from __future__ import annotations

import functools
from typing import Any

import mpmath
import sympy
from sympy import Eq, Symbol, solve, sqrt, symbols

# All positive: rates, sizes, times, probabilities, gains.
N, C, R, p, q, g, T, B, F, tau, alpha, beta, delta, eta, U, W, A, K = symbols(
    "N C R p q g T B F tau alpha beta delta eta U W A K", positive=True
)
a, b, c, d, e, x = symbols("a b c d e x", positive=True)
R_AI, R_T, W_AI, TARGET, TAU_PRIME, Q_PRIME, P_0 = symbols("R_AI R_T W_AI U_target tauprime qprime p_0", positive=True)

SHORT = {
    a: 1 - (1 - p) ** (tau * R),
    b: p / ((1 - p) ** (-B) - 1),
    c: (1 - p) ** (F * B) * p / ((1 - p) ** (-B) - 1),
    d: p / ((1 - p) ** (-T * R) - 1),
    e: (1 - p) ** (F * T * R) * p / ((1 - p) ** (-T * R) - 1),
}
"""DCQCN's abbreviations a to e, of (8) and (9)."""

Formulas = dict[str, Any]  # of sympy.Eq, which is a bool to its stubs where it might simplify


def only(found: list[Any]) -> Any:
    """The one solution.

    Raises
    ------
    ValueError
        If there are others, or none.
    """
    (one,) = found
    return one


@functools.cache
def dcqcn() -> Formulas:
    """(6)-(9) of N flows, with their left sides zero; data in packets."""
    queue = N * R - C  # (6)
    estimate = g / TAU_PRIME * (1 - (1 - p) ** (TAU_PRIME * R) - alpha)  # (7)
    target = -(R_T - R) / tau * a + R_AI * R * (c + e)  # (8)
    rate = -R * alpha / (2 * tau) * a + (R_T - R) / 2 * R * (b + d)  # (9)
    aim = only(solve(target, R_T))
    balanced = only(solve(rate.subs(R_T, aim), alpha))
    share = (b + d) * (c + e) / a**2
    return {
        "dcqcn.rate": Eq(R, only(solve(queue, R))),
        "dcqcn.target_rate": Eq(R_T - R, sympy.simplify(aim - R)),
        "dcqcn.alpha": Eq(alpha, only(solve(estimate, alpha))),
        "dcqcn.marking": Eq(alpha / share, sympy.simplify(balanced / share)),
    }


@functools.cache
def dcqcn_small() -> Formulas:
    """p* as p -> 0: what the left side is per p^3 gives p_0, its relative slope kappa the next order."""

    def expanded(expression: Any, order: int) -> Any:
        return sympy.series(expression, p, 0, order).removeO()

    hit, marked = (expanded(one, 3) for one in (SHORT[a], dcqcn()["dcqcn.alpha"].rhs))
    up, aim = (expanded(SHORT[one], 2) + expanded(SHORT[other], 2) for one, other in ((b, d), (c, e)))
    per_cube = sympy.simplify(hit**2 * marked / (up * aim * p**3))
    lead = per_cube.subs(p, 0)
    slope = (sympy.diff(per_cube, p) / per_cube).subs(p, 0)
    in_a = {B: 1 / (A - 1 / (T * R))}
    kappa = Symbol("kappa")
    return {
        "dcqcn.small.sum": Eq(A, 1 / B + 1 / (T * R)),
        "dcqcn.small.leading": Eq(P_0**3, sympy.simplify((dcqcn()["dcqcn.marking"].rhs / lead).subs(in_a))),
        "dcqcn.small.slope": Eq(kappa, sympy.expand(sympy.simplify(slope.subs(in_a)))),
        "dcqcn.small.marking": Eq(p, P_0 * (1 - kappa * P_0 / 3) + sympy.O(P_0**3)),
    }


@functools.cache
def hpcc() -> Formulas:
    """R <- R U_target/U + a; N flows on one link; windows and rates in a class served at A of B."""
    at_equilibrium = only(solve(Eq(R, R * TARGET / U + a), R))
    one_link = only(solve(at_equilibrium.subs(R, U * C / N) - U * C / N, U))
    # A class's U is q/(B T) + A/B, and its windows hold N W = q + A T.
    class_queue = only(solve(Eq(U, q / (B * T) + A / B), q))
    windows = only(solve(Eq(W, W * eta / U + W_AI).subs(W, (class_queue + A * T) / N), U))
    rates = only(solve(Eq(R, R * eta / U + a).subs(R, A / N), U))
    return {
        "hpcc.rate": Eq(R, at_equilibrium),
        "hpcc.one_link": Eq(U, one_link),
        "hpcc.class.queue": Eq(q, class_queue),
        "hpcc.class.windows": Eq(U, sympy.expand(windows)),
        "hpcc.class.rates": Eq(U, rates),
    }


@functools.cache
def swift() -> Formulas:
    """AIMD about the target delay, with flow scaling; data in packets, x is sqrt(W).

    D is the target without it, alpha_fs/sqrt(W) + b_fs what it adds: fs_range at fs_min, nothing at fs_max.
    """
    delay, fixed, span, least, most, goal = symbols("delay D fs_range fs_min fs_max target", positive=True)
    slope, offset = symbols("alpha_fs b_fs", real=True)
    added = slope / sqrt(W) + offset
    ends = solve([added.subs(W, least) - span, added.subs(W, most)], [slope, offset], dict=True)
    # Above the target dW/dt = -beta (delay - target)/delay W/RTT, below it the windows grow.
    fixed_points = only(solve(-beta * (delay - goal) / delay, delay))
    held = (N * W / C - fixed_points.subs(goal, fixed + added)).subs(W, x**2)
    cubic = sympy.Poly(sympy.expand(held * x), x)
    return {
        "swift.slope": Eq(slope, sympy.factor(only(ends)[slope])),
        "swift.offset": Eq(offset, sympy.simplify(only(ends)[offset] / only(ends)[slope]) * slope),
        "swift.delay": Eq(delay, fixed_points),
        "swift.window": Eq(cubic.as_expr(), 0),
    }


@functools.cache
def timely() -> Formulas:
    """Two flows between the thresholds: the gradient at equilibrium, what it does to rates, what stays undetermined."""
    rates, tau_star, span = symbols("R_1 R_2", positive=True), *symbols("tau^* D_minRTT", positive=True)
    gradient, now, then = symbols("g q_1 q_2", real=True)
    drift = alpha / tau_star * (-gradient + (now - then) / (C * span))
    fixed_points = only(solve(drift.subs(then, now), gradient))
    increase = delta / tau_star  # where g <= 0
    decrease = [-gradient * beta / tau_star * rate for rate in rates]  # where g > 0
    split = only(
        list(sympy.linsolve([sum(rates) - C, *(one.subs(gradient, fixed_points) for one in decrease)], *rates))
    )
    return {
        "timely.gradient": Eq(gradient, fixed_points),
        "timely.printed": Eq(Symbol(r"\dot{R}"), increase),
        "timely.split": Eq(sympy.Tuple(*rates), split),
    }


@functools.cache
def patched() -> Formulas:
    """Patched TIMELY between the thresholds, where w(0) = 1/2."""
    tau_star, low, high, most = symbols("tau^* T_low T_high N_most", positive=True)
    weight = sympy.Rational(1, 2)
    moves = (1 - weight) * delta / tau_star - weight * beta * R / tau_star * (q - Q_PRIME) / Q_PRIME
    rate = only(solve(moves, R))
    queue = only(solve(N * rate - C, q))
    last = only(solve((queue - C * high).subs(Q_PRIME, C * low), N))
    # Rates that differ while their sum does not: q stays, and tau* multiplies a zero.
    fairness = sympy.diff(moves, R).subs(q, queue)
    return {
        "patched.rate": Eq(R, rate),
        "patched.queue": Eq(q, sympy.expand(queue)),
        "patched.most": Eq(most, sympy.factor(last)),
        "patched.fairness": Eq(Symbol("lambda"), sympy.simplify(fairness)),
    }


@functools.cache
def dctcp() -> Formulas:
    """Two candidates for an equilibrium, and the sawtooth of N windows that are cut together; data in packets.

    D is the round trip without queues. Windows grow by a packet per window acknowledged, up to W_peak: W is where the
    queue is K, and one round trip passes until the mark is observed. Link and senders never idle. `hold` counts the
    round trip after a cut, too, in which nothing grows, and has the filter's alpha at the cut: of n windows in a cycle
    one is marked.
    """
    rtt, span, peak, period, amplitude = symbols("RTT D W_peak P Delta_q", positive=True)
    window = 1 / rtt - W * alpha / (2 * rtt) * p
    estimate = g / rtt * (p - alpha)
    fills = N * W / (span + q / C) - C
    marked = {alpha: only(solve(estimate.subs(p, 1), alpha)), p: 1}
    least = only(solve(window.subs(marked), W))
    behind = only(solve(fills.subs(W, least), q))
    crossing = only(solve(fills.subs(q, K), W))

    def sent(low: Any, high: Any) -> Any:
        return (high**2 - low**2) / 2  # the integral of W dW: packets acknowledged while W grows

    rising = sent(peak * (1 - alpha / 2), peak)
    share = sent(W, W + 1) / rising
    first: Any = Eq(sympy.factor(alpha * rising * 2 / peak**2), sympy.factor(share * rising * 2 / peak**2))
    # To leading order in 1/W: alpha = z/sqrt(W).
    z = symbols("z", positive=True)
    small = (first.lhs - first.rhs).subs(peak, W + 1).subs(alpha, z / sqrt(W))
    lead = only(solve(sympy.limit(small * W, W, sympy.oo), z)) / sqrt(W)
    drop, lasts = N * peak * alpha / 2, N / C * rising
    n, after, cut = symbols("n alpha_1 alpha_0", positive=True)
    filtered = solve([(1 - g) * cut + g - after, (1 - g) ** (n - 1) * after - cut], [after, cut], dict=True)
    return {
        "dctcp.unmarked": Eq(Symbol(r"\dot{W}"), window.subs(p, 0)),
        "dctcp.marked": Eq(q, behind),
        "dctcp.most": Eq(N, only(solve(behind - K, N))),
        "dctcp.crossing": Eq(W, crossing),
        "dctcp.alpha": first,
        "dctcp.alpha.leading": Eq(alpha, lead),
        "dctcp.amplitude": Eq(amplitude, drop),
        "dctcp.amplitude.leading": Eq(amplitude, leading(drop, peak, lead)),
        "dctcp.period": Eq(period, sympy.factor(lasts)),
        "dctcp.period.leading": Eq(period, leading(lasts, peak, lead)),
        "dctcp.hold.windows": Eq(n, 1 + peak * alpha / 2),
        "dctcp.hold.alpha": Eq(alpha, sympy.simplify(only(filtered)[cut])),
        "dctcp.hold.period": Eq(period, sympy.factor(lasts) + N * peak / C),
    }


def leading(expression: Any, peak: Any, lead: Any) -> Any:
    """Return the leading order of an expression for large W, where the peak is W + 1 and alpha is `lead`."""
    whole = expression.subs(peak, W + 1).subs(alpha, lead)
    power = sympy.limit(W * sympy.diff(sympy.log(whole), W), W, sympy.oo)
    return sympy.limit(sympy.simplify(whole / W**power), W, sympy.oo) * W**power


def formulas() -> Formulas:
    """Return all formulas by name."""
    return dcqcn() | dcqcn_small() | hpcc() | swift() | timely() | patched() | dctcp()


def value(expression: Any, **values: float) -> float:
    """Number of an expression whose symbols have these values, by name, in 30 digits on the way.

    Parameters
    ----------
    expression : sympy expression
    **values : number

    Returns
    -------
    float
    """
    free = sorted(expression.free_symbols, key=str)
    with mpmath.workdps(30):
        return float(sympy.lambdify(free, expression, "mpmath")(*(mpmath.mpf(values[one.name]) for one in free)))
