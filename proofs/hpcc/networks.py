"""Networks for the proofs of HPCC's A.2: all small ones with their runs in rationals, random larger ones in floats."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

STEPS = 8  # of the exact trajectories; the size of the fractions doubles at each
LARGE = (6, 10)  # links and paths of the random networks, at most
BATCH, SEED = 400, 1  # random networks

Rates = tuple[Fraction, ...]


class Network(NamedTuple):
    """Links of each path, capacity of each link, and rates at the start."""

    paths: tuple[tuple[int, ...], ...]
    capacities: Rates
    start: Rates

    def utilisations(self, rates: Sequence[Fraction]) -> list[Fraction]:
        """(5), divided by the capacities."""
        loads = [Fraction(0)] * len(self.capacities)
        for path, rate in zip(self.paths, rates, strict=True):
            for link in path:
                loads[link] += rate
        return [load / capacity for load, capacity in zip(loads, self.capacities, strict=True)]

    def highest(self, rates: Sequence[Fraction]) -> list[Fraction]:
        """Return the utilisation of the most loaded link of each path."""
        used = self.utilisations(rates)
        return [max(used[link] for link in path) for path in self.paths]

    def step(self, rates: Rates) -> Rates:
        """(6)."""
        return tuple(rate / most for rate, most in zip(rates, self.highest(rates), strict=True))

    def trajectory(self, steps: int = STEPS) -> list[Rates]:
        """R(0) to R(steps)."""
        return list(itertools.accumulate(range(steps), lambda rates, _: self.step(rates), initial=self.start))

    def pareto(self, rates: Sequence[Fraction]) -> bool:
        """Feasible, and a saturated link on every path: then no rate can rise unless another falls."""
        return bool(max(self.utilisations(rates)) <= 1 and min(self.highest(rates)) == 1)


def networks(links: int, paths: int, capacities: Sequence[int], starts: Sequence[int]) -> Iterator[Network]:
    """Yield all networks of these sizes with values from these, every link in use, in the order of their sums."""
    subsets = [s for size in range(1, links + 1) for s in itertools.combinations(range(links), size)]
    for columns in sorted(itertools.combinations_with_replacement(subsets, paths), key=lambda c: sum(map(len, c))):
        if len(set().union(*columns)) < links:
            continue
        numbers = itertools.product(
            itertools.product(starts, repeat=paths), itertools.product(capacities, repeat=links)
        )
        for start, capacity in sorted(numbers, key=lambda n: (sum(n[0]), sum(n[1]), n)):
            yield Network(columns, tuple(map(Fraction, capacity)), tuple(map(Fraction, start)))


def arrays(network: Network) -> tuple[np.ndarray, list[Fraction], list[Fraction]]:
    """Incidence, capacities and start as `fluidcc.theory.recursion` takes them."""
    links = range(len(network.capacities))
    incidence = np.array([[int(link in path) for path in network.paths] for link in links])
    return incidence, list(network.capacities), list(network.start)


@functools.cache
def family() -> list[tuple[Network, list[Rates]]]:
    """Return every network of up to three links and three paths with small numbers, and its exact trajectory."""
    found: list[Network] = []
    for links, paths in itertools.product((1, 2, 3), repeat=2):
        found += networks(links, paths, (1, 2, 3), (1, 2) if links < 3 else (1,))
    return [(network, network.trajectory()) for network in found]


@functools.cache
def batch(seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Random incidence (network, link, path) over capacity, so that a product with the rates is U; and start rates."""
    random = np.random.default_rng(seed)
    links, paths = LARGE
    incidence = random.random((BATCH, links, paths)) < 0.35
    lacking = ~np.any(incidence, axis=1, keepdims=True)
    incidence |= lacking & (np.arange(links)[:, None] == random.integers(0, links, (BATCH, 1, paths)))
    return incidence / random.uniform(1, 10, (BATCH, links, 1)), random.uniform(0.1, 10, (BATCH, paths))


def sample_of(count: int = BATCH) -> str:
    """Describe the networks that were checked: all small ones, and random larger ones."""
    return (
        f"all {len(family())} small networks, exactly; and {count} random ones of {LARGE[0]} links and {LARGE[1]} "
        f"paths, seed {SEED}"
    )


def float_step(shares: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(5)-(6) of a batch: U of links, the highest U of each path, next rates."""
    used = np.einsum("nij,nj->ni", shares, rates)
    highest = np.where(shares > 0, used[:, :, None], 0.0).max(axis=1)
    return used, highest, rates / highest
