"""ACC, sections 1, 5 and 6: numbers that follow from others."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from fluidcc.proofs.papers import ACC
from fluidcc.proofs.shared import sample
from fluidcc.proofs.verdict.claim import Finding, Way, claim, rounds_to
from fluidcc.proofs.verdict.registry import main


@claim("acc-61-increments", ACC, "6.1", "RI_Low = C/250 and RI_High = 10 RI_Low: 400 Mb/s and 4 Gb/s at 100 Gb/s")
def increments(line: Fraction = Fraction(10**11), share: Fraction = Fraction(1, 250)) -> Finding:
    import fluidcc as fc
    from fluidcc.contract.bind import bind
    from fluidcc.scenario.model import resolve

    low, high = line * share, 10 * line * share
    scenario = resolve(fc.incast(2, rate="100Gbps", scheme="acc"))
    bound = bind(scenario, scenario.flows[0])
    return Finding(
        {"as printed": (low, high) == (4 * 10**8, 4 * 10**9)},
        {"ri_low_mbps": low / 10**6, "ri_high_gbps": high / 10**9},
        [
            Way(f"{name} [bit/s]: rule, what fluidcc.ACC takes at 100 Gb/s", float(rule), 8 * float(own), 1e-12)
            for name, rule, own in (("RI_Low", low, bound.ri_low), ("RI_High", high, bound.ri_high))
        ],
    )


@claim("acc-5-memory", ACC, "5", "less than 40 B for each QP: for 1K QPs less than 40 KB")
def memory(each: int = 40) -> Finding:
    # Whole bytes below 40, and K as 1000 or as 1024 in either place.
    total = {(qps, kilo): qps * (each - 1) / (40 * kilo) for qps in (1000, 1024) for kilo in (1000, 1024)}
    return Finding(
        {"as printed": all(share < 1 for share in total.values())},
        {"bytes_of_1000_qps": 1000 * (each - 1), "largest_share_of_40_KB": max(total.values())},
    )


@claim(
    "acc-64-ratios",
    ACC,
    "1, 6.4",
    "small flows' FCT is 1.3 to 3.3 (mean) and 1.4 to 11.5 times (99th percentile) better: DCQCN's is 3.3 and 11.5 "
    "times ACC's, and ACC's 29 % and 40 % less than HPCC's",
)
def ratios(less: tuple[float, float] = (29, 40), dcqcn: tuple[float, float] = (3.3, 11.5)) -> Finding:
    better = [float(1 / (1 - Fraction(str(one)) / 100)) for one in less]
    # What the last digits of the printed reductions allow.
    least, most = ([1 / (1 - (one + half) / 100) for one in less] for half in (-0.5, 0.5))
    added = [1 + one / 100 for one in less]
    return Finding(
        {"as printed": all(map(rounds_to, better, ("1.3", "1.4"))) and all(map(rounds_to, dcqcn, ("3.3", "11.5")))},
        {
            "times_better_than_hpcc": better,
            "least_by_rounding": least,
            "most_by_rounding": most,
            "one_and_the_reduction": added,
        },
        correction=f"{better[0]:.2f} to {dcqcn[0]} and {better[1]:.2f} to {dcqcn[1]} times, if no other scheme is "
        "nearer; 1.3 and 1.4 are 1 and the reduction",
        corrected=least[0] > 1.35 and least[1] > 1.45 and all(map(rounds_to, added, ("1.3", "1.4"))),
    )


@claim(
    "acc-63-deadlocks", ACC, "6.3, Table 2", "of 50 runs 3 of DCQCN and 37 of TIMELY end in deadlock: ACC is resilient"
)
def deadlocks(runs: int = 50, counts: tuple[int, int, int] = (0, 3, 37)) -> Finding:
    """Test the counts of 50 runs against ACC's none by Fisher's exact test, and bound ACC's true share."""
    from scipy import stats

    exact: Any = stats.fisher_exact
    chance = [float(exact([[count, runs - count], [0, runs]]).pvalue) for count in counts[1:]]
    # Hypergeometric by hand: both tails where all that happened is on one side.
    byhand = [2 * np.prod([(runs - k) / (2 * runs - k) for k in range(count)]) for count in counts[1:]]
    upper = float(stats.binomtest(counts[0], runs).proportion_ci(0.95, "exact").high)
    return Finding(
        {"than DCQCN, at 5 %": chance[0] < 0.05, "than TIMELY, at 5 %": chance[1] < 0.05},
        {
            "p_values_dcqcn_timely": chance,
            "share_of_deadlocks_dcqcn_timely": [count / runs for count in counts[1:]],
            "acc_share_at_most_at_95_percent": upper,
        },
        [
            *(Way(f"p-value, {name}: scipy, by hand", a, float(b), 1e-9)
              for name, a, b in zip(("DCQCN", "TIMELY"), chance, byhand, strict=True)),
            Way("the most that none of 50 allows: scipy, (1 - p)^50 = 0.025", upper, 1 - 0.025 ** (1 / runs), 1e-6),
        ],
        restricted=chance[1] < 0.05,
        conditions=f"beside TIMELY; {counts[1]} of {runs} against none may be chance (p = {chance[0]:.2f}), and none "
        f"of {runs} leaves up to {upper:.1%} open",
        sample=f"the paper's {runs} runs of each scheme: "
        + "; ".join(f"{name}, {sample.share(count, runs)}"
                    for name, count in zip(("ACC", "DCQCN", "TIMELY"), counts, strict=True)),
    )  # fmt: skip


if __name__ == "__main__":
    main(__name__)
