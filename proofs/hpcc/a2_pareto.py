"""HPCC, Appendix A.2: where the recursion (5)-(6) goes, how fast, and whether it arrives: Lemma (iii).

Exact: every small network, in rational numbers. Independent of it: batches of larger random networks in floats; and,
where z3 is installed, every small incidence matrix over all real capacities and rates.

Lemma (iii) is false. Its proof removes a saturated resource together with all paths through it, but not the load of
these paths on other resources. Such a resource k, with frozen load F, is approached by the path x through it alone as

    x(n+1) = x(n) C/(F + x(n)),   hence   1/x(n) - 1/x* = (F/C)^(n-1) (1/x(1) - 1/x*),   x* = C - F,

and is never saturated. What holds in its place is in `corrected_rate`, and a repair in `removal`.
"""

from __future__ import annotations

import functools
import random
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import numpy as np

from fluidcc.proofs.hpcc import smt
from fluidcc.proofs.hpcc.networks import (
    BATCH,
    LARGE,
    STEPS,
    Network,
    Rates,
    arrays,
    batch,
    family,
    float_step,
    networks,
    sample_of,
)
from fluidcc.proofs.papers import HPCC
from fluidcc.proofs.shared import sample
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main
from fluidcc.theory.recursion.pareto import pareto, residual

MANY = 5_000  # steps in floats
ITERATED = 12  # of them in 140 digits
DRAWN, DRAWN_SEED = 1000, 1  # networks of two to four links and paths
LARGER = 50  # of the random batch, with the repair


def smallest_failing() -> Network:
    """First network for which R(I+1) is not R(I), or R(I) not Pareto optimal: fewest paths, links, then sums."""
    for size in range(2, 7):
        for links in range(1, size):
            for network in networks(links, size - links, (1, 2, 3), (1, 2)):
                run = network.trajectory(links + 1)
                if run[links] != run[links + 1] or not network.pareto(run[links]):
                    return network
    raise LookupError("no network fails")


def share_failing(count: int = DRAWN, seed: int = DRAWN_SEED) -> float:
    """Share of random networks, two to four links and paths, that fail (iii)."""
    draw = random.Random(seed)
    failing = 0
    for _ in range(count):
        links, paths = draw.randint(2, 4), draw.randint(2, 4)
        columns = tuple(tuple(sorted(draw.sample(range(links), draw.randint(1, links)))) for _ in range(paths))
        numbers = [tuple(Fraction(draw.randint(1, 10)) for _ in range(n)) for n in (links, paths)]
        network = Network(columns, numbers[0], numbers[1])
        run = network.trajectory(links + 1)
        failing += int(run[links] != run[links + 1] or not network.pareto(run[links]))
    return failing / count


def searched() -> tuple[dict[str, Any], list[Way], bool]:
    """Search exceptions to (iii) with z3: return evidence, ways, and whether it found none."""
    found = smt.exceptions(*smt.SMALLER[0])
    if found is None:
        return {"z3": "not installed, not used"}, [], True
    failing = {matrix: one for matrix, one in found.items() if one}
    moving = 0
    for (links, paths), one in failing.items():
        run = pareto(*arrays(Network(paths, one.capacities, one.start)), steps=links + 1, exact=True)
        moving += bool((run.rates[links] != run.rates[links + 1]).any() and run.settled_after is None)
    # After merging, a matrix that never fails consists of links with one path each.
    mixed = sum(max(map(len, (core := smt.merged(*matrix)[0]))) > 1 or len(set(core)) < len(core) for matrix in found)
    (_, paths), least = min(failing.items(), key=lambda item: (item[0][0] + len(item[0][1]), item[0]))
    evidence = {
        "smallest_by_z3": {
            "paths": [[link + 1 for link in path] for path in paths],
            "capacities": least.capacities,
            "start": least.start,
        },
        "matrices_for_which_z3_finds_an_exception": len(failing),
        "matrices_for_which_z3_proves_that_there_is_none": len(found) - len(failing),
    }
    ways = [
        Way("exceptions found by z3, and still moving after I steps in fluidcc.theory.recursion", len(failing), moving),
        Way("matrices with exceptions: by z3, those that merging does not take apart", len(failing), mixed),
        Way("fewest links and paths of an exception: z3, enumeration", _size(paths), _size(smallest_failing().paths)),
    ]
    return evidence, ways, not failing


def _size(paths: smt.Paths) -> int:
    """Links and paths."""
    return len(set().union(*paths)) + len(paths)


@claim("hpcc-a2-finite", HPCC, "A.2, Lemma (iii)", "R(n) = R for n >= I, and R is Pareto optimal")
def finite() -> Finding:
    failing = [
        (network, run)
        for network, run in family()
        for links in [len(network.capacities)]
        if run[links] != run[links + 1] or not network.pareto(run[links])
    ]
    late = [
        next(n for n in range(STEPS) if run[n] == run[n + 1]) - len(network.capacities)
        for network, run in failing
        if run[-1] == run[-2]
    ]
    least = smallest_failing()
    run = least.trajectory()
    # The path that still grows, the one link where it ends, and the load on that link which does not change.
    j = next(j for j in range(len(least.paths)) if run[STEPS][j] != run[STEPS - 1][j])
    k = max(least.paths[j], key=lambda link: least.utilisations(run[STEPS])[link])
    frozen = least.utilisations(run[1])[k] * least.capacities[k] - run[1][j]
    limit = least.capacities[k] - frozen
    ratio = frozen / least.capacities[k]
    closed = [1 / (1 / limit + ratio ** (n - 1) * (1 / run[1][j] - 1 / limit)) for n in range(1, STEPS + 1)]
    again = pareto(*arrays(least), steps=STEPS, exact=True)
    random_share = share_failing()
    printed = Network(((0, 1), (0,), (1,)), (Fraction(1), Fraction(2)), (Fraction(1),) * 3).trajectory(5)
    solver, ways, unrefuted = searched()
    return Finding(
        {"as printed": not failing and unrefuted},
        {
            "counterexample": {
                "paths": [[link + 1 for link in path] for path in least.paths],
                "capacities": least.capacities,
                "start": least.start,
                "growing_rate": [rates[j] for rates in run[:6]],
                "limit": limit,
            },
            "three_flows_each_start_1_capacities_1_2": [rates[2] for rates in printed],
            "failing_share_of_small_networks": len(failing) / len(family()),
            "failing_share_of_random_networks": random_share,
            "small_networks": len(family()),
            "most_steps_beyond_I_where_finite": max(late, default=0),
        }
        | solver,
        [
            Way(f"R({n}) of the counterexample, by (5)-(6) and in closed form", run[n][j], closed[n - 1])
            for n in range(1, STEPS + 1)
        ]
        + [
            Way("last R of the counterexample: here, fluidcc.theory.recursion", run[STEPS][j], again.rates[STEPS, j]),
            Way("its rate of convergence: F/C, fluidcc.theory.recursion", float(ratio), again.asymptotic_rate, 1e-12),
            *ways,
        ],
        correction=f"R(n) converges to a Pareto optimal R, geometrically (hpcc-a2-rate), in general never reaching it: "
        f"{len(failing)} of {len(family())} small networks are not there after I steps",
        corrected=all(rates[j] < limit for rates in run[1:]) and closed[-1] < limit,
        sample=f"all {len(family())} small networks, exactly; and random ones of two to four links and paths, "
        f"seed {DRAWN_SEED}, of which {sample.share(round(random_share * DRAWN), DRAWN)} fail",
    )


class Settled(NamedTuple):
    """The random batch after many steps: rates, least m_j of each network, and 1 - that over time.

    ``ends`` is, of each path, the link that was its most loaded one when last another on it was distinctly below.
    """

    rates: np.ndarray
    least: np.ndarray
    gaps: np.ndarray
    ends: np.ndarray


@functools.cache
def settled() -> Settled:
    """Iterate the random batch to the end."""
    shares, rates = batch()
    ends, highest = np.zeros(rates.shape, int), rates
    gaps = []
    for _ in range(MANY):
        used, highest, after = float_step(shares, rates)
        gaps.append(1 - highest.min(axis=1))
        along = np.where(shares > 0, used[:, :, None], 0.0)
        second = np.partition(along, -2, axis=1)[:, -2]
        ends = np.where(1 - second > 1e-12, along.argmax(axis=1), ends)
        if (after == rates).all():
            break
        rates = after
    return Settled(rates, highest.min(axis=1), np.array(gaps), ends)


def bounds_hold() -> tuple[bool, float]:
    """Check 1 - m_j(n) <= (1 - m_j(1)) (1 - rho_j)^(n-1) exactly on all small networks; find the largest ratio."""
    hold, closest = True, Fraction(0)
    for network, run in family():
        rho = [
            rate / max(network.capacities[link] for link in path)
            for rate, path in zip(run[1], network.paths, strict=True)
        ]
        first = network.highest(run[1])
        for n in range(2, STEPS + 1):
            for j, most in enumerate(network.highest(run[n])):
                bound = (1 - first[j]) * (1 - rho[j]) ** (n - 1)
                hold &= 1 - most <= bound
                closest = max(closest, (1 - most) / bound if bound else Fraction(0))
    return bool(hold), float(closest)


@claim("hpcc-a2-limit", HPCC, "A.2", "the recursion converges to a Pareto optimal allocation")
def limit() -> Finding:
    # Rates rise (ii) and are bounded (i), so they converge; the bound lets every path's m_j tend to 1.
    proved, _ = bounds_hold()
    end = settled()
    least = float(end.least.min())
    return Finding(
        {"as printed": proved and least > 1 - 1e-9},
        {"small_networks": len(family()), "random_networks": BATCH, "steps": len(end.gaps), "least_m_j": least},
        [Way("m_j of every path in the limit: by the bound, by iteration", 1, least, 1e-9)],
        sample=sample_of(),
    )


def last_ratio(shares: np.ndarray, start: np.ndarray, smallest: str = "1e-120") -> float:
    """Return the factor by which 1 - m falls in the step that brings it to ``smallest``; in 140 digits."""
    with mpmath.workdps(140):
        rates = [mpmath.mpf(x) for x in start]
        links = [[(j, mpmath.mpf(share)) for j, share in enumerate(row) if share] for row in shares]
        paths = [np.flatnonzero(column) for column in shares.T]
        before = gap = mpmath.mpf(1)
        while gap > mpmath.mpf(smallest):
            used = [mpmath.fsum(share * rates[j] for j, share in row) for row in links]
            highest = [max(used[k] for k in path) for path in paths]
            before, gap = gap, abs(1 - min(highest))  # all overloaded at the start
            rates = [rate / most for rate, most in zip(rates, highest, strict=True)]
        return float(gap / before)


@claim("hpcc-a2-rate", HPCC, "A.2, corrected", "fast convergence: after at most I steps R(n) is constant")
def corrected_rate() -> Finding:
    hold, closest = bounds_hold()
    shares, _ = batch()
    rates, _, _, ends = settled()
    formula, spectral, iterated = [], [], []
    for net in range(BATCH):
        active = [k for k in np.unique(ends[net])]
        formula.append(max((shares[net, k] * rates[net])[ends[net] != k].sum() for k in active))
        # The same from the Jacobian of (6) at the limit, whose other eigenvalues are 1: the limit depends on the start.
        jacobian = np.eye(LARGE[1]) - rates[net][:, None] * shares[net, ends[net]]
        moduli = np.abs(np.linalg.eigvals(jacobian))
        spectral.append(moduli[moduli < 1 - 1e-7].max())
        if len(iterated) < ITERATED and 0.1 < formula[-1] < 0.8:
            iterated.append((formula[-1], last_ratio(shares[net], batch()[1][net])))
    apart = np.abs(np.subtract(formula, spectral))
    worst, far = int(apart.argmax()), max(iterated, key=lambda pair: abs(pair[0] - pair[1]))
    _, run = next((network, run) for network, run in family() if run[-1] != run[-2])
    return Finding(
        {"as printed": run[-1] == run[-2]},
        {
            "closest_to_bound": closest,
            "networks": BATCH,
            "largest_rate_per_step": max(formula),
            "median_rate_per_step": float(np.median(formula)),
        },
        [
            Way("slowest rate per step, by formula and by eigenvalue (worst)", formula[worst], spectral[worst], 1e-6),
            # Where modes of the same rate feed each other the ratio is off by 1/n, and n is above 100.
            Way("slowest rate per step, by formula and by iteration (worst)", far[0], far[1], 0.01),
        ],
        correction=(
            "1 - m_j(n) <= (1 - m_j(1)) (1 - rho_j)^(n-1), with m_j the highest U on path j, rho_j = R_j(1) / max C on"
            " j; asymptotically by the largest, over saturated k, of (load on k of paths that end elsewhere) / C_k:"
            f" {np.median(formula):.2f} in the median of {BATCH} networks, {max(formula):.2f} at most"
        ),
        corrected=hold,
        sample=f"{sample_of()}, of which {len(iterated)} in 140 digits; median and largest rate are of these networks",
    )


def with_residuals(network: Network) -> tuple[Rates, int]:
    """The proof's procedure with the removed paths' load taken off the capacities: end and number of steps."""
    rates, left = list(network.start), list(network.capacities)
    free, steps = set(range(len(network.paths))), 0
    while free:
        loads = [sum((rates[j] for j in free if k in network.paths[j]), Fraction(0)) for k in range(len(left))]
        for j in free:
            rates[j] /= max(loads[k] / left[k] for k in network.paths[j])
        steps += 1
        loads = [sum((rates[j] for j in free if k in network.paths[j]), Fraction(0)) for k in range(len(left))]
        full = {k for k, load in enumerate(loads) if load and load == left[k]}
        done = {j for j in free if full & set(network.paths[j])}
        for j in done:
            for k in network.paths[j]:
                left[k] -= rates[j]
        free -= done
    return tuple(rates), steps


@claim("hpcc-a2-removal", HPCC, "A.2, proof", "at each subsequent step at least one more resource becomes bottlenecked")
def removal() -> Finding:
    stalled = 0
    for network, run in family():
        full = [{k for k, used in enumerate(network.utilisations(rates)) if used == 1} for rates in run[1:]]
        stalled += any(
            full[n] == full[n + 1] and not network.pareto(run[n + 1]) for n in range(len(network.capacities))
        )
    repaired = [(network, *with_residuals(network)) for network, _ in family()]
    optimal = all(network.pareto(rates) for network, rates, _ in repaired)
    margin = max(steps - min(len(network.capacities), len(network.paths)) for network, _, steps in repaired)
    some = repaired[:: len(repaired) // 40]
    again = [residual(*arrays(network), exact=True) for network, *_ in some]
    same = [tuple(run.final) == rates for run, (_, rates, _) in zip(again, some, strict=True)]
    # Larger networks, from the rounded numbers.
    shares, start = batch()
    larger = []
    for net in range(LARGER):
        links = tuple(tuple(map(int, np.flatnonzero(shares[net, :, j]))) for j in range(LARGE[1]))
        capacities = [Fraction(round(1e3 / row.max()), 1000) if row.max() else Fraction(1) for row in shares[net]]
        network = Network(links, tuple(capacities), tuple(Fraction(round(1e3 * x), 1000) for x in start[net]))
        rates, steps = with_residuals(network)
        larger.append(network.pareto(rates) and steps <= min(LARGE))
    solver, ways = smt.by_solver("repaired", smt.SMALLER)
    return Finding(
        {"as printed": stalled == 0},
        {
            "small_networks": len(repaired),
            "without_a_new_bottleneck_in_some_step": stalled,
            "repair_most_steps": max(steps for *_, steps in repaired),
            "repair_steps_beyond_min_I_J": margin,
        }
        | solver,
        [
            Way("share of Pareto optimal ends with the repair: small networks, larger ones", optimal, np.mean(larger)),
            Way("networks with the same end here and in fluidcc.theory.recursion", sum(same), len(same)),
            *ways,
        ],
        correction="with residual capacities (C less the removed paths' load) it is so: Pareto in at most min(I, J) "
        f"steps, here {max(steps for *_, steps in repaired)}; as printed {stalled} of {len(repaired)} small networks "
        "have a step without one",
        corrected=optimal and margin <= 0 and all(larger),
        sample=sample_of(LARGER),
    )


if __name__ == "__main__":
    main(__name__)
