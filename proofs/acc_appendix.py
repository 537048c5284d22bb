"""ACC, appendix A: shares under (4)-(11), how full the link is in that model, and how fast rates rise (4.5, B.2).

Rates over C, queues over C T. r = RI/C; a cycle is a period that sends at the increased rates, and then M - 1 halted
ones in which the queue drains, M = ceil(rN - r + 1).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import sympy

from fluidcc.verify import ACC, Finding, Way, claim, main

CASES = ((Fraction(1, 250), 2), (Fraction(1, 100), 10), (Fraction(10, 250), 32), (Fraction(1, 5), 64))  # r and N


class Cycle(NamedTuple):
    """Shares at the end, bytes served over those of a full link, and the largest queue."""

    shares: list[Fraction]
    served: Fraction
    queue: Fraction


def cycle(shares: list[Fraction], r: Fraction, whole: bool) -> Cycle:
    """One cycle of (4)-(8), or, not ``whole``, one that halts only until the queue has drained."""
    rates = [(1 - r) * share + r for share in shares]  # (4)
    queue = sum(rates, Fraction(0)) - 1
    periods = 1 + (math.ceil(queue) if whole else queue)
    return Cycle([rate / sum(rates) for rate in rates], sum(rates) / periods, queue)  # (5), (7)


def start(flows: int) -> list[Fraction]:
    """Shares that sum to 1, of all sizes."""
    weights = [Fraction(k * k + 1) for k in range(flows)]
    return [weight / sum(weights) for weight in weights]


@claim("acc-a-fair", ACC, "A, (11)", "shares tend to 1/N, by (1-r)/(1-r+rN) a cycle, from any start")
def fair(count: int = 40) -> Finding:
    share, r, N = sympy.symbols("share r N", positive=True)
    after = ((1 - r) * share + r) / (1 - r + r * N)
    ratio = sympy.simplify((after - 1 / N) / (share - 1 / N) - (1 - r) / (1 - r + r * N)) == 0
    ways, monotone = [], True
    for at, flows in CASES:
        shares = start(flows)
        first = shares[0]
        for _ in range(count):
            before = max(abs(one - Fraction(1, flows)) for one in shares)
            shares = cycle(shares, at, whole=True).shares
            monotone &= max(abs(one - Fraction(1, flows)) for one in shares) < before
        power = ((1 - at) / (1 - at + at * flows)) ** count
        closed = Fraction(1, flows) + power * (first - Fraction(1, flows))
        ways.append(Way(f"share after {count} cycles, N = {flows}: iteration, (10)", shares[0], closed))
    factors = {f"factor_per_cycle_r_{at}_N_{n}": float((1 - at) / (1 - at + at * n)) for at, n in CASES}
    return Finding({"as printed": bool(ratio) and monotone}, factors, ways)


@claim("acc-63-utilisation", ACC, "6.3, A", "steady and near-full link utilisation")
def utilisation() -> Finding:
    r, N = sympy.symbols("r N", positive=True)
    whole = {f"r_{at}_N_{flows}": cycle(start(flows), at, whole=True).served for at, flows in CASES}
    exact = {f"r_{at}_N_{flows}": cycle(start(flows), at, whole=False).served for at, flows in CASES}
    formula = (1 + r * (N - 1)) / sympy.ceiling(r * (N - 1) + 1)
    ways = []
    for at, flows in CASES:
        predicted = formula.subs({r: sympy.Rational(at.numerator, at.denominator), N: flows})
        counted = whole[f"r_{at}_N_{flows}"]
        ways.append(
            Way(f"N = {flows}, r = {at}: formula, a cycle", Fraction(int(predicted.p), int(predicted.q)), counted)
        )
    return Finding(
        {
            "appendix A, halts of whole periods": all(used > 0.95 for used in whole.values()),
            "halts until the queue has drained (Algorithm 1)": all(used > 0.95 for used in exact.values()),
        },
        {f"utilisation_{name}": used for name, used in whole.items()},
        ways,
        restricted=all(used == 1 for used in exact.values()),
        conditions="halts just as long as the queue takes to drain; with appendix A's, of whole periods, it is "
        f"(1 + r(N-1))/M, as little as {float(min(whole.values())):.3f}",
    )


@claim("acc-b-recovery", ACC, "B.2, Fig. 20", "full utilisation is back after about 1.5 ms (N = 10), 2 ms (N = 20)")
def recovery(r: Fraction = Fraction(4, 100), period_us: int = 20) -> Finding:
    """From half the line rate by R + RI (C - R)/C each period; full to what is printed, two digits."""

    def periods(full: float) -> int:
        rate, count = Fraction(1, 2), 0
        while rate < full:
            rate, count = (rate + r * (1 - rate)).limit_denominator(10**15), count + 1
        return count

    times = {full: periods(full) * period_us / 1e3 for full in (0.98, 0.99)}
    closed = {full: math.log((1 - full) / 0.5) / math.log(1 - float(r)) * period_us / 1e3 for full in times}
    printed = (1.5, 2.0)  # at N = 10 and 20; the law of increase knows no N
    return Finding(
        {f"full is {full:.0%}": all(abs(time / ms - 1) < 0.1 for ms in printed) for full, time in times.items()},
        {f"ms_to_{full:.0%}": time for full, time in times.items()},
        [Way(f"ms to {full:.0%}: iteration, logarithm", times[full], closed[full], 0.02) for full in times],
        restricted=all(abs(time / ms - 1) < 0.1 for time, ms in zip(times.values(), printed, strict=True)),
        conditions="to 98 % of the line at N = 10, to 99 % at N = 20; the law of increase itself knows no N",
    )


if __name__ == "__main__":
    main(__name__)
