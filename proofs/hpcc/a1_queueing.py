"""HPCC, Appendix A.1: the queue of periodic sources, N*D/D/1.

N sources send a packet each per period D (in service times, so the load is N/D), phases independent and uniform. The
unfinished work V at a random time exceeds x with

    P(V > x) = sum over n > x of  C(N,n) ((n-x)/D)^n (1-(n-x)/D)^(N-n) (D-N+x)/(D-n+x)

(Roberts and Virtamo 1991; from the ballot theorem). The number in the system is V rounded up, so P(L > k) = P(V > k).
Against it stand a Markov chain over the service times of one period, a simulation, and the Brownian bridge.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import mpmath
import numpy as np

from fluidcc.proofs.papers import HPCC
from fluidcc.proofs.shared import sample
from fluidcc.proofs.verdict.claim import Finding, Way, claim, rounds_to
from fluidcc.proofs.verdict.registry import main

SOURCES, LOAD = 50, 0.95
DIGITS = 40
RUNS, SEED = 20_000, 1  # draws of all sources' phases
WALKS, WALK_STEPS, WALK_SEED = 4000, 800, 5
MIXES = 30_000  # draws of phases of each mix of streams
ABOUT = 0.1  # "about" is read as 10 %


def exceeds(x: float, sources: int, period: float) -> float:
    """P(V > x), exact, in `DIGITS` digits."""
    with mpmath.workdps(DIGITS):
        D, total = mpmath.mpf(period), mpmath.mpf(0)
        for n in range(int(mpmath.floor(x)) + 1, sources + 1):
            share = (n - mpmath.mpf(x)) / D
            if share < 1:
                weight = mpmath.binomial(sources, n) * share**n * (1 - share) ** (sources - n)
                total += weight * (D - sources + x) / (D - n + x)
            else:  # D = N and the last term: all sources within the period, and 0/0 above
                total += 1 if x == 0 else 0
        return float(total)


@functools.cache
def arrivals(sources: int, period: float) -> np.ndarray:
    """Transition probabilities (t, before, after) of the number of packets within t service times back."""
    from scipy.stats import binom

    counts, share = np.arange(sources + 1), 1 / (period - np.arange(int(min(period, sources))))
    more = counts[None, :] - counts[:, None]
    # Each packet still to come is uniform on what is left of the period.
    return binom.pmf(more, sources - counts[:, None], share[:, None, None])


def chain_exceeds(k: int, sources: int, period: float) -> float:
    """P(V > k) another way: packets within t service times back, t = 1, 2, ..., as a Markov chain.

    V > k if the n-th packet back is less than n - k service times old for some n: at some integer t there are t + k
    or more within t. Summing the probability that is absorbed keeps the digits of a small result.
    """
    alive, absorbed = np.eye(sources + 1)[0], 0.0
    for t, step in enumerate(arrivals(sources, period)[: sources - k], 1):
        after = alive @ step
        absorbed += after[t + k :].sum()
        alive = np.where(np.arange(sources + 1) >= t + k, 0.0, after)
    return float(absorbed)


def means(sources: int, period: float, tail: Callable[..., float] = exceeds) -> tuple[float, float]:
    """Mean number in the system and, less the packet in service, waiting."""
    system = sum(tail(k, sources, period) for k in range(sources))
    return system, system - sources / period


def mean_work(sources: int, period: float) -> float:
    """Integral of P(V > x), which is smooth between whole numbers; to about 1e-6."""
    from scipy.integrate import fixed_quad

    pieces = ((k, min(k + 1, sources)) for k in range(sources))
    return sum(
        float(fixed_quad(lambda xs: [exceeds(x, sources, period) for x in xs], *piece, n=4)[0]) for piece in pieces
    )


def phases_drawn(mean: float, error: float) -> str:
    """Describe what `simulated` draws, with the interval of its mean."""
    return (
        f"the verdict is exact; beside it {RUNS} draws of all sources' phases, seed {SEED}: mean waiting {mean:.3f}, "
        f"95 % interval {mean - 1.96 * error:.3f} to {mean + 1.96 * error:.3f}"
    )


@functools.cache
def simulated(sources: int, period: float, runs: int = RUNS, seed: int = SEED) -> tuple[float, float, float]:
    """Mean number waiting, its standard error, and P(more than 8 wait), by a queue of random phases.

    The waiting times of a period obey Lindley's equation; a first period brings it to its steady state. The mean
    number follows by Little's law, the tail from the time that the work takes to fall to 9 packets.
    """
    phases = np.sort(np.random.default_rng(seed).uniform(0, period, (runs, sources)), axis=1)
    gaps = np.diff(phases, axis=1, append=phases[:, :1] + period)
    wait = np.zeros(runs)
    waits = np.zeros((runs, sources))
    for turn in range(2 * sources):
        waits[:, turn % sources] = wait
        wait = np.maximum(wait + 1 - gaps[:, turn % sources], 0)
    number = waits.mean(axis=1) * sources / period
    # Time with more than 9 in the system, in each interval: V falls from wait + 1 at rate 1.
    time = np.minimum(np.maximum(waits + 1 - 9, 0), gaps).sum(axis=1) / period
    return float(number.mean()), float(number.std() / np.sqrt(runs)), float(time.mean())


@claim("hpcc-a1-mean", HPCC, "A.1", "at 95 % load from 50 sources, the mean number of packets in the queue is about 3")
def mean(load: float = LOAD) -> Finding:
    period = SOURCES / load
    system, waiting = means(SOURCES, period)
    average, error, _ = simulated(SOURCES, period)
    readings = {"without the packet in service": rounds_to(waiting, "3"), "with it": rounds_to(system, "3")}
    return Finding(
        readings,
        {"mean_waiting": waiting, "mean_in_system": system, "simulated_waiting": average, "standard_error": error},
        [
            Way("mean waiting: ballot formula, Markov chain", waiting, means(SOURCES, period, chain_exceeds)[1], 1e-9),
            Way("mean waiting: formula, simulation (4 standard errors)", waiting, average, 4 * error / average),
        ],
        restricted=readings["without the packet in service"],
        conditions=f"the packet in service is not counted; with it the mean is {system:.4f}",
        sample=phases_drawn(average, error),
    )


@claim("hpcc-a1-tail", HPCC, "A.1", "at 95 % load from 50 sources, P(more than 20 packets in the queue) is about 1e-9")
def tail(load: float = LOAD) -> Finding:
    period = SOURCES / load
    waiting, system = exceeds(21, SOURCES, period), exceeds(20, SOURCES, period)
    # "About 10^-9": the nearest power of ten.
    readings = {
        "without the packet in service": bool(rounds_to(float(np.log10(waiting)), "-9")),
        "with it": bool(rounds_to(float(np.log10(system)), "-9")),
    }
    return Finding(
        readings,
        {"p_more_than_20_wait": waiting, "p_more_than_20_in_system": system},
        [
            Way("P(> 20 wait): ballot formula, Markov chain", waiting, chain_exceeds(21, SOURCES, period), 1e-9),
            Way("P(> 20 in system): ballot formula, Markov chain", system, chain_exceeds(20, SOURCES, period), 1e-9),
            # 1 % of the time in some thousand independent excursions: 5 % is above four standard errors.
            Way("P(> 8 wait): formula, simulation", exceeds(9, SOURCES, period), simulated(SOURCES, period)[2], 0.05),
        ],
        restricted=readings["without the packet in service"],
        conditions=f"the packet in service is not counted; with it the probability is {system:.3g}",
        sample=f"the verdict is exact; P(> 8 wait) beside it by {RUNS} draws of all sources' phases, seed {SEED}; in "
        "the tail of 1e-9 nothing could be drawn",
    )


@claim(
    "hpcc-a1-full-load", HPCC, "A.1", "at full load the mean queue is about (pi N/8)^0.5, less than 5 for 50 sources"
)
def full_load(sources: int = SOURCES) -> Finding:
    printed = float(np.sqrt(np.pi * sources / 8))
    work = mean_work(sources, sources)
    system, waiting = means(sources, sources)
    average, error, _ = simulated(sources, float(sources))
    many = 200
    ratio = means(many, many)[1] / np.sqrt(np.pi * many / 8)
    return Finding(
        {"as printed": abs(work / printed - 1) <= ABOUT and max(work, waiting, system) < 5},
        {
            "printed_formula": printed,
            "mean_work": work,
            "mean_waiting": waiting,
            "mean_in_system": system,
            "simulated_waiting": average,
            "standard_error": error,
            "waiting_over_formula_for_200_sources": ratio,
        },
        [
            Way("mean waiting: ballot formula, Markov chain", waiting, means(sources, sources, chain_exceeds)[1], 1e-9),
            Way("mean waiting: formula, simulation (4 standard errors)", waiting, average, 4 * error / average),
            # The server is always busy, so what is being served is half done on average.
            Way("mean work against the number in the system less a half", work, system - 0.5, 1e-3),
        ],
        sample=phases_drawn(average, error),
    )


@claim("hpcc-a1-bridge", HPCC, "A.1", "a Brownian bridge approximation is accurate in heavy traffic")
def bridge() -> Finding:
    # A bridge over the period crosses y + c s with probability exp(-2 y (y + c)); here y = x/sqrt N, c = (D-N)/sqrt N.
    def crosses(x: float, sources: int, load: float) -> float:
        return float(np.exp(-2 * x * (x + sources / load - sources) / sources))

    def error(sources: int, load: float) -> float:
        """Largest difference of P(V > x)."""
        period = sources / load
        some = range(0, sources, 1 + sources // 50)
        return max(abs(crosses(x, sources, load) - exceeds(x, sources, period)) for x in some)

    grid = {f"N_{n}_load_{load:g}": error(n, load) for n in (50, 200) for load in (0.8, 0.95, 1.0)}
    accurate = all(grid[f"N_{n}_load_{load:g}"] <= ABOUT for n in (50, 200) for load in (0.95, 1.0))
    better = grid["N_200_load_1"] < grid["N_50_load_1"]
    normal = np.random.default_rng(WALK_SEED).normal(size=(WALKS, WALK_STEPS)) / np.sqrt(WALK_STEPS)
    walk = np.cumsum(normal, axis=1)
    along = np.linspace(1 / WALK_STEPS, 1, WALK_STEPS)
    pinned = walk - walk[:, -1:] * along
    y, c = 4 / np.sqrt(50), (50 / 0.95 - 50) / np.sqrt(50)
    # A walk of 800 steps misses crossings between them: it acts as a bridge with a boundary 0.58/sqrt(800) higher.
    met = (pinned - c * along).max(axis=1) > y - 0.5826 / np.sqrt(WALK_STEPS)
    return Finding(
        {"as printed": accurate and better},
        grid | {"p_more_than_20_wait": crosses(21, SOURCES, LOAD), "exact": exceeds(21, SOURCES, SOURCES / LOAD)},
        [Way("P(bridge crosses): formula, random walk of 800 steps", crosses(4, 50, 0.95), float(met.mean()), 0.08)],
        sample=f"the verdict is from two formulas, exactly; beside it random walks, seed {WALK_SEED}, of which "
        f"{sample.share(int(met.sum()), WALKS)} cross",
    )


@claim("hpcc-a1-homogeneous", HPCC, "A.1", "homogeneous streams yield the greatest buffer requirement for a given load")
def homogeneous(runs: int = MIXES) -> Finding:
    def work(periods: np.ndarray, seed: int) -> np.ndarray:
        """V at time 0 of streams with these periods, in packets: sup over t of (arrivals in the last t) - t.

        Only an age at which a packet arrived can attain it; four of the longest periods are looked back.
        """
        draw = np.random.default_rng(seed)
        phases = draw.uniform(0, 1, (runs, len(periods))) * periods
        turns = [np.arange(int(np.ceil(4 * periods.max() / p))) * p for p in periods]
        times = np.concatenate([phases[:, [i]] + turn for i, turn in enumerate(turns)], axis=1)
        times.sort(axis=1)
        return np.maximum((np.arange(1, times.shape[1] + 1) - times).max(axis=1), 0)

    errors: list[float] = []

    def need(periods: np.ndarray, seed: int) -> float:
        """Mean of V: the whole tail."""
        drawn = work(np.asarray(periods, float), seed)
        errors.append(float(drawn.std() / np.sqrt(runs)))
        return float(drawn.mean())

    load, sources = 0.9, 10
    equal = need(np.full(sources, sources / load), 1)
    # The same number of streams, unequal rates: half of the streams have 0.2 of the load.
    unequal = need(np.repeat([sources / 2 / (0.2 * load), sources / 2 / (0.8 * load)], sources // 2), 2)
    fewer = need(np.full(sources // 2, sources / 2 / load), 3)
    many = need(np.full(2 * sources, 2 * sources / load), 4)
    exact = mean_work(sources, sources / load)
    # Streams may also differ in number: twenty unequal ones against ten equal ones.
    mixed = need(np.repeat([sources / (0.3 * load), sources / (0.7 * load)], sources), 5)
    return Finding(
        {"number of streams fixed": unequal < equal, "any number of streams": max(unequal, mixed) <= equal},
        {
            "ten_equal": equal,
            "ten_unequal": unequal,
            "five_equal": fewer,
            "twenty_equal": many,
            "twenty_unequal": mixed,
            "load": load,
        },
        [Way("mean work of ten equal streams: simulation, ballot formula", equal, exact, 0.03)],
        restricted=unequal < equal,
        conditions=f"among mixes of the same number of streams, of {sources} at {load:.0%} load {unequal:.2f} packets "
        f"against {equal:.2f} of equal ones; {2 * sources} unequal ones need {mixed:.2f}",
        sample=f"{runs} draws of phases for each of {len(errors)} mixes, seeds 1 to {len(errors)}; the means are known "
        f"to ±{1.96 * max(errors):.3f} packets or better (95 %)",
    )


if __name__ == "__main__":
    main(__name__)
