"""ACC, appendix A: Propositions 1 and 2, (3)-(11), how full the link is in that model, how fast rates rise (4.5, B.2).

Rates over C, queues over C T. r = RI/C; a cycle is a period that sends at the increased rates, and then M - 1 halted
ones in which the queue drains, M = ceil(rN - r + 1).
"""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from typing import Any, NamedTuple

import sympy
from scipy.optimize import brentq

from fluidcc.proofs.acc.algorithm import listed
from fluidcc.proofs.papers import ACC
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main

CASES = ((Fraction(1, 250), 2), (Fraction(1, 100), 10), (Fraction(10, 250), 32), (Fraction(1, 5), 64))  # r and N


class Cycle(NamedTuple):
    """Shares at the end, bytes served over those of a full link, and the largest queue."""

    shares: list[Fraction]
    served: Fraction
    queue: Fraction


def cycle(shares: list[Fraction], r: Fraction, whole: bool) -> Cycle:
    """Compute one cycle of (4)-(8), or, not ``whole``, one that halts only until the queue has drained."""
    rates = [(1 - r) * share + r for share in shares]  # (4)
    queue = sum(rates, Fraction(0)) - 1
    periods = 1 + (math.ceil(queue) if whole else queue)
    return Cycle([rate / sum(rates) for rate in rates], Fraction(sum(rates) / periods), queue)  # (5), (7)


def start(flows: int) -> list[Fraction]:
    """Shares that sum to 1, of all sizes."""
    weights = [Fraction(k * k + 1) for k in range(flows)]
    return [weight / sum(weights) for weight in weights]


def mapped(shares: list[Fraction], r: Fraction, cycles: int) -> list[list[Fraction]]:
    """Shares with which each cycle of `fluidcc.theory.acc_map` begins, from a start just above C."""
    from fluidcc.schemes.acc.period_map import acc_map

    M = math.ceil(r * len(shares) - r + 1)
    run = acc_map([share * Fraction(9, 8) for share in shares], r=r, steps=2 + M * cycles, exact=True)
    ends = [n for n in range(1, len(run.halted)) if run.halted[n - 1] and not run.halted[n]]
    return [list(run.shares[n]) for n in ends[:cycles]]


@claim("acc-a-prop-1", ACC, "4.6, A, (2)-(3)", "Proposition 1: a sum of rates above C comes to C within one period T")
def proposition_1() -> Finding:
    from fluidcc.schemes.acc.period_map import acc_maps

    S = sympy.symbols("S1:5", positive=True)
    total = sum(S)
    identity = sympy.simplify(sympy.Add(*(rate / total for rate in S))) == 1  # (2), over C
    recorded, sent, late = [], [], []
    for r, flows in CASES:
        for load in (Fraction(11, 10), Fraction(7, 2)):
            printed, algorithm = acc_maps([load * share for share in start(flows)], r=r, steps=60, exact=True)
            recorded.append(printed.recorded[1].sum())
            sent += [row.sum() for row in printed.sent[1:]]
            late.append(algorithm.time[next(n for n in range(60) if algorithm.halted[n])])
    return Finding(
        {
            "rates recorded, appendix": bool(identity) and set(recorded) == {1},
            "rates sent, appendix": any(one == 1 for one in sent),
            "rates recorded, Algorithm 1": set(late) == {1},
        },
        {"sums_sent_appendix": sorted(set(sent))[:3], "periods_until_recorded_Algorithm_1": late[0]},
        [Way("sum recorded after a period: (2), fluidcc.theory.acc_map", Fraction(1), recorded[0])],
        restricted=bool(identity) and set(recorded) == {1} and set(late) == {2},
        conditions=f"rates as recorded in the appendix; those that it sends are {listed(sorted(set(sent)))} C, never C "
        f"itself: 0 while the flows halt, 1 + r(N-1) after; and Algorithm 1 records them after {listed(late)} periods",
    )


@claim("acc-a-prop-2", ACC, "4.6, A", "Proposition 2: rates come to C/N regardless of where flows start")
def proposition_2() -> Finding:
    from fluidcc.schemes.acc.period_map import acc_map

    def shares(**options: Any) -> Any:
        """Return the rates over C that were recorded at each halt, at the end of the run."""
        return acc_map(**options, steps=4000).shares[-1]

    starts = [[[0.9, 0.05, 0.01]], [[0.01, 0.02, 0.03]], [[1.0, 1.0, 1.0]], [[3.0, 0.1, 2.0]]]
    apart = abs(shares(rates=starts, r=[[0.004], [0.2], [1.0]]) - 1 / 3).max()
    low, high = 0.004, 0.04
    own = shares(rates=[0.5, 0.5], r=[low, high])
    load: Any = brentq(lambda above: low / (above + low) + high / (above + high) - 1, 1e-6, 1)  # (5) with an r of each
    nics = shares(rates=[0.5, 0.5, 0.5], line_rates=[1, 2, 5], r=0.02)
    return Finding(
        {"one RI": bool(apart < 1e-9), "each its own N_u, so its own RI": bool(abs(own - 0.5).max() < 1e-9)},
        {"share_RI_low": own[0], "share_RI_high": own[1], "shares_of_NICs_of_1_2_5": list(nics)},
        [
            Way("share of RI = C/250 beside C/25: map, root of (5)", own[0], low / (load + low), 1e-9),
            Way("share of a NIC of C beside 2 C and 5 C: map, L/sum L", nics[0], 1 / 8, 1e-9),
            Way("share of the NIC of 5 C: map, L/sum L", nics[2], 5 / 8, 1e-9),
        ],
        restricted=bool(apart < 1e-9),
        conditions=f"recorded rates, and one RI for all: flows with C/250 and C/25, by different N_u, come to "
        f"{own[0]:.2f} and {own[1]:.2f}, and of NICs of 1, 2 and 5 C, with RI in proportion, to "
        + ", ".join(f"{one:.3f}" for one in nics),
    )


@claim("acc-a-queue", ACC, "A, (3), (7)", "the queue is (sum S - C)T - (k-1)CT, (rN-r-m+1)CT, and 0 after M periods")
def queue() -> Finding:
    from fluidcc.schemes.acc.period_map import acc_map

    printed, ways, corrected = {}, [], []
    for r, flows in CASES:
        M = math.ceil(r * flows - r + 1)
        formula = [r * flows - r - m + 1 for m in range(1, M + 1)]  # (7)
        printed[f"Q_after_M_periods_C_T_r_{r}_N_{flows}"] = formula[-1]
        run = acc_map(start(flows), r=r, steps=2 * M + 4, exact=True)
        k_1 = next(n for n in range(len(run.queue)) if run.recorded[n].sum() == 1 - r + r * flows)
        rows = list(run.queue[k_1 + 1 : k_1 + M + 1])
        ended = [max(one, Fraction(0)) for one in formula]
        corrected.append(rows == ended)
        ways.append(Way(f"sum of Q over a cycle, N = {flows}: map, (7) ended at 0", sum(rows), sum(ended)))
        corrected += [not run.sent[k_1 + m].any() for m in range(1, M)]
    return Finding(
        {"as printed": all(value == 0 for value in printed.values())},
        printed,
        ways,
        correction=f"the queue is the larger of (7) and 0: as printed, (3) and (7) end a cycle below it, at "
        f"{listed(sorted(printed.values()))} C T. And R_i = 0 until the queue is empty: with (3)'s R_i = phi_i C it "
        "would not drain",
        corrected=all(corrected),
    )


@claim("acc-a-shares", ACC, "A, (5), (9)", "a cycle takes a share phi to ((1-r)phi + r)/(1-r+rN)")
def shares_after() -> Finding:
    phi, r, N = sympy.symbols("phi r N", positive=True)
    others = sympy.Symbol("others", positive=True)  # sum of the other N - 1 shares
    rise = (1 - r) * phi + r  # (4)
    rest = (1 - r) * others + (N - 1) * r
    identity = sympy.simplify((rise / (rise + rest)).subs(others, 1 - phi) - rise / (1 - r + r * N)) == 0
    ways = []
    for at, flows in CASES:
        before = start(flows)
        ways.append(
            Way(
                f"first share after a cycle, N = {flows}: map, (5)",
                mapped(before, at, 1)[0][0],
                ((1 - at) * before[0] + at) / (1 - at + at * flows),
            )
        )
    return Finding({"as printed": bool(identity)}, {"cases": len(ways)}, ways)


@claim("acc-a-closed", ACC, "A, (10)", "phi(k1+kM) = a^(k+1) phi(k0) + sum_0^k a^j r/(1-r+rN), a = (1-r)/(1-r+rN)")
def closed(cycles: int = 6) -> Finding:
    phi, a, b = sympy.symbols("phi a b", positive=True)
    k = sympy.Symbol("k", integer=True, nonnegative=True)

    def formula(k: sympy.Expr) -> sympy.Expr:
        """(10), its sum of powers being (1 - a^(k+1))/(1 - a)."""
        return a ** (k + 1) * phi + b * (1 - a ** (k + 1)) / (1 - a)

    first_step = sympy.simplify(formula(sympy.Integer(0)) - a * phi - b) == 0
    induction = first_step and sympy.simplify(a * formula(k) + b - formula(k + 1)) == 0
    ways = []
    for at, flows in CASES:
        shrink, add = (1 - at) / (1 - at + at * flows), at / (1 - at + at * flows)
        first = start(flows)[0]
        printed = shrink**cycles * first + sum(shrink**j * add for j in range(cycles))
        found = mapped(start(flows), at, cycles)[-1][0]
        ways.append(Way(f"share after {cycles} cycles, N = {flows}: map, (10)", found, printed))
    return Finding({"as printed": bool(induction)}, {"cycles": cycles}, ways)


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


@claim("acc-63-utilisation", ACC, "6.3", "steady and near-full link utilisation")
def utilisation() -> Finding:
    from fluidcc.schemes.acc.period_map import acc_maps

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
        for run, expected in zip(
            acc_maps(start(flows), r=at, r_high=at, steps=80, exact=True), (counted, 1), strict=True
        ):
            ways.append(
                Way(f"N = {flows}, r = {at}: {run.form} of fluidcc.theory.acc_map, a cycle", run.utilization, expected)
            )
    return Finding(
        {
            "appendix A, halts of whole periods": all(used > 0.95 for used in whole.values()),
            "halts until the queue has drained (Algorithm 1)": all(used > 0.95 for used in exact.values()),
        },
        {f"utilisation_{name}": used for name, used in whole.items()},
        ways,
        restricted=all(used == 1 for used in exact.values()),
        conditions="halts just as long as the queue takes to drain, as in Algorithm 1. The appendix, which claims "
        "convergence and fairness and not utilisation, has halts of whole periods: (1 + r(N-1))/M, as little as "
        f"{float(min(whole.values())):.3f}",
    )


@claim(
    "acc-b-recovery",
    ACC,
    "B.2, Fig. 20",
    "full utilisation is back after about 1.5 ms (N = 10), 2 ms (N = 20)",
    slow=True,
)
def recovery(r: Fraction = Fraction(4, 100), period: Fraction = Fraction(20, 10**6)) -> Finding:
    """Raise R from half the line rate by RI (C - R)/C each period, in which N does not occur; also in packets.

    What counts as full the paper does not say, but bounds in its text: more than HPCC's 95 % (B.2), at most the 99.7 %
    that ten flows have in equilibrium (acc-fig10). No share is chosen: those that the law has reached after the printed
    times are compared with these bounds.
    """
    from fluidcc.proofs.acc.fig20 import BURST, FULL, PHASE, PHASES, QUICK_UNTIL, SAMPLED, below_full, scenario_of
    from fluidcc.proofs.shared.runs import packet_runs

    def periods(full: float) -> int:
        rate, count = 0.5, 0
        while rate < full:
            rate, count = rate + float(r) * (1 - rate), count + 1
        return count

    def share(seconds: float) -> float:
        """Return the flow's share of the line after a time [s]."""
        return 1 - 0.5 * (1 - float(r)) ** (seconds / float(period))

    fulls = (0.95, 0.98, 0.99, 0.997)
    counts = {full: periods(full) for full in fulls}
    closed = {full: math.log((1 - full) / 0.5) / math.log(1 - float(r)) for full in fulls}
    times = {full: count * float(period) * 1e3 for full, count in counts.items()}
    printed = {10: (1.45e-3, 1.55e-3), 20: (1.5e-3, 2.5e-3)}  # s: what is written 1.5 and 2 ms
    reached = {hosts: [share(end) for end in ends] for hosts, ends in printed.items()}
    low, high = (best(ends[k] for ends in reached.values()) for k, best in enumerate((max, min)))
    took = {}
    for hosts in printed:
        scenarios = [scenario_of("acc", hosts, BURST + k * PHASE) for k in range(PHASES)]
        runs = packet_runs(scenarios, QUICK_UNTIL, sample_interval=SAMPLED)
        took[hosts] = sorted(below_full(trace, FULL) * 1e3 for trace in runs)
    middle = {hosts: statistics.median(each) for hosts, each in took.items()}
    return Finding(
        {
            "a share above 95 and up to 99.7 % that the law reaches at both printed times": max(low, 0.95)
            < min(high, 0.997),
            "longer at N = 20 than at N = 10, in packets": middle[20] > middle[10],
        },
        {f"ms_to_{full:.1%}": time for full, time in times.items()}
        | {f"share_after_printed_N_{hosts}": ends for hosts, ends in reached.items()}
        | {f"packets_ms_to_{FULL:.0%}_N_{hosts}_by_phase": each for hosts, each in took.items()},
        [Way(f"periods to {full:.1%}: iteration, logarithm", counts[full], math.ceil(closed[full])) for full in fulls],
        correction=f"from half the line with RI = {float(r):g} C, whatever N, {times[0.95]:.2f} ms to 95 %, "
        f"{times[0.98]:.2f} to 98, "
        f"{times[0.99]:.2f} to 99; in packets to 98 % {middle[10]:.2f} ms at N = 10, {middle[20]:.2f} at N = 20",
        corrected=all(abs(one - times[FULL]) < 0.25 * times[FULL] for one in middle.values()),
        sample=f"{PHASES} runs of packets of {1e3 * QUICK_UNTIL:g} ms for each N, whose burst begins at evenly spaced "
        "phases of ACC's period; medians of them, and "
        + ", ".join(f"N = {hosts}: {each[0]:.2f} to {each[-1]:.2f} ms in all" for hosts, each in took.items()),
    )


if __name__ == "__main__":
    main(__name__)
