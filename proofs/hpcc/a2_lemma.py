"""HPCC, Appendix A.2: what one step of the recursion (5)-(6) does to loads and rates: the lemma's true parts.

Exact: every small network, in rational numbers. Independent of it: batches of larger random networks in floats; and,
where z3 is installed, every small incidence matrix over all real capacities and rates.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from fluidcc.proofs.hpcc.networks import BATCH, LARGE, STEPS, Network, batch, family, float_step, sample_of
from fluidcc.proofs.hpcc.smt import SMALLER, by_solver
from fluidcc.proofs.papers import HPCC
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main

ROUND_OFF = 1e-12


@claim("hpcc-a2-one-step", HPCC, "A.2, 3.2", "a single bottleneck is brought to its target load in one RTT")
def one_step() -> Finding:
    single = [(network, run) for network, run in family() if len(network.capacities) == 1]
    reached = sum(network.utilisations(run[1]) == [1] for network, run in single)
    shares = np.random.default_rng(3).uniform(0.1, 1.0, (BATCH, 1, LARGE[1]))  # one link: every path crosses it
    shares[:] = shares[:, :, :1]
    after = float_step(shares, float_step(shares, np.random.default_rng(4).uniform(0.1, 10, (BATCH, LARGE[1])))[2])[0]
    return Finding(
        {"as printed": reached == len(single)},
        {"networks": len(single), "on_target_after_one_step": reached},
        [Way("load after one step, exact and floats", 1.0, float(after.max()), ROUND_OFF)],
        sample=f"all {len(single)} small networks of one link, exactly; and {BATCH} random ones of {LARGE[1]} paths, "
        "seeds 3 and 4",
    )


@claim("hpcc-a2-feasible", HPCC, "A.2, Lemma (i)", "Y(n) <= C for n = 1, 2, ...: after one step rates are feasible")
def feasible() -> Finding:
    most = max(max(network.utilisations(rates)) for network, run in family() for rates in run[1:])
    # The proof's own inequality, term by term: R_j(n+1) <= R_j(n) C_i/Y_i(n) for every link i of path j.
    terms = all(
        run[n + 1][j] * used[i] <= run[n][j]
        for network, run in family()
        for n in range(STEPS)
        for used in [network.utilisations(run[n])]
        for j, path in enumerate(network.paths)
        for i in path
    )
    shares, rates = batch()
    largest = 0.0
    for _ in range(STEPS):
        rates = float_step(shares, rates)[2]
        largest = max(largest, float(float_step(shares, rates)[0].max()))
    solver, ways = by_solver("feasible")
    return Finding(
        {"as printed": most <= 1 and terms},
        {"networks": len(family()), "steps": STEPS, "largest_utilisation": most, "random_networks": BATCH} | solver,
        [
            Way("largest load after the first step: all small networks, random larger ones", most, largest, ROUND_OFF),
            *ways,
        ],
        sample=sample_of(),
    )


@claim("hpcc-a2-monotone", HPCC, "A.2, Lemma (ii)", "R(n+1) >= R(n) for n = 1, 2, ...")
def monotone() -> Finding:
    least = min(
        min(b / a for a, b in zip(run[n], run[n + 1], strict=True)) for _, run in family() for n in range(1, STEPS)
    )
    first = min(min(b / a for a, b in zip(run[0], run[1], strict=True)) for _, run in family())
    shares, rates = batch()
    smallest = np.inf
    rates = float_step(shares, rates)[2]
    for _ in range(STEPS):
        after = float_step(shares, rates)[2]
        smallest, rates = min(smallest, float((after / rates).min())), after
    solver, ways = by_solver("monotone", SMALLER)
    return Finding(
        {"as printed": least >= 1},
        {"networks": len(family()), "least_growth": least, "least_growth_in_first_step": first} | solver,
        [
            Way("least growth after step 1: all small networks, random larger ones", least, smallest, ROUND_OFF),
            *ways,
        ],
        sample=sample_of(),
    )


@claim("hpcc-a2-saturated", HPCC, "A.2, proof", "the most loaded resource is saturated after one step")
def saturated() -> Finding:
    missed = 0
    for network, run in family():
        before, after = network.utilisations(run[0]), network.utilisations(run[1])
        missed += any(after[k] != 1 for k, used in enumerate(before) if used == max(before))
    shares, start = batch()
    before, _, rates = float_step(shares, start)
    after = np.take_along_axis(float_step(shares, rates)[0], before.argmax(axis=1)[:, None], axis=1)
    solver, ways = by_solver("saturated")
    return Finding(
        {"as printed": missed == 0},
        {"networks": len(family()), "missed": missed} | solver,
        [Way("its load after one step: exact, and least in random larger networks", 1, after.min(), ROUND_OFF), *ways],
        sample=sample_of(),
    )


@claim(
    "hpcc-a2-start", HPCC, "A.2", "the allocation will not in general be fair, and depends on the initial state R(0)"
)
def depends_on_start() -> Finding:
    ends = [
        Network(((0,), (0,)), (Fraction(3),), (Fraction(a), Fraction(b))).trajectory(1)[1] for a, b in ((1, 1), (1, 2))
    ]
    # Another way: (6) keeps the ratio of rates of paths with the same links for ever.
    kept = all(
        rates[a] * run[0][b] == rates[b] * run[0][a]
        for network, run in family()
        for a, b in itertools.combinations(range(len(network.paths)), 2)
        if network.paths[a] == network.paths[b]
        for rates in run
    )
    return Finding(
        {"as printed": ends[0] != ends[1]},
        {"from_1_1": ends[0], "from_1_2": ends[1], "ratios_on_equal_paths_kept": kept},
        [Way("ratio of the two rates: by iteration, by invariance", ends[1][1] / ends[1][0], 2 if kept else 0)],
        sample=f"two starts of one network, and all {len(family())} small networks, exactly",
    )


if __name__ == "__main__":
    main(__name__)
