"""HPCC's recursion (5)-(6) on 100 000 random networks at once."""

from __future__ import annotations

import time

import numpy as np

from fluidcc.theory.recursion.networks import random
from fluidcc.theory.recursion.pareto import pareto_batch

NETWORKS, LINKS, PATHS, STEPS = 100_000, 8, 12, 64
ROUNDS = 3


def measure() -> dict[str, float]:
    """Seconds of the first call, which compiles, and the least of later ones; largest utilisation in the end."""
    A, C = random(LINKS, PATHS, seed=1, count=NETWORKS)
    R0 = np.random.default_rng(2).uniform(1, 10, size=(NETWORKS, PATHS))
    seconds = []
    for _ in range(1 + ROUNDS):
        start = time.perf_counter()
        batch = pareto_batch(A, C, R0, STEPS)
        seconds.append(time.perf_counter() - start)
    return {"first": seconds[0], "again": min(seconds[1:]), "largest_utilisation": float(batch.utilization.max())}
