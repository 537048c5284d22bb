"""Fast convergence to fairness, sections II to VI: examples of two and three flows, and a delay."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fluidcc.proofs.papers import VAI
from fluidcc.proofs.shared.queues import BEHIND, delay_behind
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main


def decreased(rates: tuple[int, int], marked: Fraction, per_packet: bool) -> list[Fraction]:
    """Rates [packets per RTT] after one RTT, counted packet by packet: each halves at a mark, or once in the RTT."""
    after = []
    for rate in rates:
        every = int(1 / marked)
        marks = sum(packet % every == 0 for packet in range(rate))
        after.append(Fraction(rate, 2 ** (marks if per_packet else min(marks, 1))))
    return after


@claim(
    "vai-3-two-flows",
    VAI,
    "III-B",
    "of two flows the one with twice the rate has twice the marks: once per RTT both halve, per mark it decreases "
    "twice as often",
)
def two_flows(rates: tuple[int, int] = (8, 4), marked: Fraction = Fraction(1, 4)) -> Finding:
    once, each = (decreased(rates, marked, per_packet) for per_packet in (False, True))
    marks = [rate * marked for rate in rates]
    halvings = [np.log2(float(rate / after)) for rate, after in zip(rates, each, strict=True)]
    return Finding(
        {
            "as printed": once == [Fraction(rate, 2) for rate in rates]
            and halvings[0] == 2 * halvings[1]
            and each[0] / each[1] < once[0] / once[1]
        },
        {
            "packets_per_rtt": rates,
            "marked": marked,
            "once_per_rtt": once,
            "per_mark": each,
            "ratio_once_per_rtt": once[0] / once[1],
            "ratio_per_mark": each[0] / each[1],
        },
        [
            Way("marks of the faster: share of its packets, halvings counted", float(marks[0]), halvings[0], 1e-12),
            Way("ratio after it: counted, ratio over 2^(difference of marks)",
                each[0] / each[1], Fraction(*rates) / 2 ** int(marks[0] - marks[1])),
        ],
    )  # fmt: skip


@claim(
    "vai-4-third-flow",
    VAI,
    "IV",
    "two flows have B/2 each, their sum is < B; a third joins at B; halved, they have B/4, B/4 and B/2",
)
def third_flow(target: Fraction = Fraction(19, 20)) -> Finding:
    before = [Fraction(1, 2), Fraction(1, 2), Fraction(1)]
    after = [rate / 2 for rate in before]
    # Below B, as with HPCC's target of 95 %, the third is a little further ahead.
    below = np.array([target / 2, target / 2, Fraction(1)], dtype=float) / 2
    jain = float(sum(after) ** 2 / (3 * sum(rate**2 for rate in after)))
    return Finding(
        {"as printed": after == [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)] and sum(before[:2]) < 1},
        {
            "sum_before_the_third": sum(before[:2]),
            "sum_of_three": sum(before),
            "after": after,
            "jain_after": jain,
            "after_from_a_sum_of_0.95_B": below,
        },
        [Way("Jain: sums, mean and variance", jain, 1 / (1 + float(np.var([float(r) for r in after])) * 9), 1e-12)],
        restricted=after[2] == 2 * after[0] and float(below[2] / below[0]) > 2,
        conditions=f"a sum of B: B/2 and B/2 are not < B; from {float(target):g} B the third has "
        f"{float(below[2] / below[0]):.3g} times the others' rate in place of {after[2] / after[0]}",
    )


@claim(
    "vai-2-swift",
    VAI,
    "II, (1)",
    "Swift's decrease: mdf = max(1 - beta (Delay - Target)/Delay, max_mdf), with beta 0.8 and max_mdf 0.5 (III-D)",
)
def swift(beta: Fraction = Fraction(4, 5), max_mdf: Fraction = Fraction(1, 2)) -> Finding:
    """Check (1) as a factor on the window: at most halved, and set by beta below some delay."""
    target = Fraction(1)
    delays = [target * Fraction(n, 40) for n in range(40, 400)]

    def both(most: Fraction) -> tuple[list[Fraction], list[Fraction]]:
        free = [1 - beta * (delay - target) / delay for delay in delays]
        # Swift (SIGCOMM 2020), Algorithm 1, line 13: the same with the largest decrease subtracted from 1.
        return [max(factor, most) for factor in free], [max(factor, 1 - most) for factor in free]

    printed, original = both(max_mdf)
    same = [most for most in (Fraction(n, 10) for n in range(3, 10)) if both(most)[0] == both(most)[1]]
    reached = next(delay for delay, factor in zip(delays, printed, strict=True) if factor == max_mdf)
    bound = target * beta / (beta - (1 - max_mdf))  # 1 - beta (1 - target/delay) = max_mdf
    return Finding(
        {"Swift's own, with 0.5": printed == original, "with any max_mdf": len(same) == 7},
        {"halved_from_delay_over_target": bound, "factor_at_twice_the_target": 1 - beta / 2},
        [Way("delay over target from which it is halved: solved, searched", float(bound), float(reached), 1 / 40)],
        restricted=same == [max_mdf],
        conditions=f"max_mdf {', '.join(str(float(most)) for most in same)}: Swift subtracts it from 1, (1) does not",
    )


@claim("vai-6-delay", VAI, "VI-A", "4 us is the delay incurred when queue depth is 50 KB (100 Gb/s)")
def queue_delay(queue: Fraction = Fraction(50_000), rate: Fraction = Fraction(10**11, 8)) -> Finding:
    delay = float(queue / rate * 10**6)
    return Finding(
        {"as printed": delay == 4},
        {"delay_us": delay},
        [Way("us: quotient, packets behind as many others",
             delay, 1e6 * delay_behind(float(queue), float(rate)), 1e-9)],
        sample=BEHIND,
    )  # fmt: skip


if __name__ == "__main__":
    main(__name__)
