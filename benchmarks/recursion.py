"""HPCC's recursion (5)-(6) on 100 000 random networks: ``python -m benchmarks.recursion``."""

from __future__ import annotations

import time

import numpy as np

from fluidcc.recursion.networks import random
from fluidcc.recursion.pareto import pareto_batch

NETWORKS, LINKS, PATHS, STEPS = 100_000, 8, 12, 64


def measure() -> dict[str, float]:
    """Seconds of the first call, which compiles, and of the next; largest utilisation left, which (i) says is 1."""
    A, C = random(LINKS, PATHS, seed=1, count=NETWORKS)
    R0 = np.random.default_rng(2).uniform(1, 10, size=(NETWORKS, PATHS))
    found = {}
    for name in ("first_s", "again_s"):
        start = time.perf_counter()
        batch = pareto_batch(A, C, R0, STEPS)
        found[name] = time.perf_counter() - start
    return {**found, "largest_utilisation": float(batch.utilization.max())}


if __name__ == "__main__":
    result = measure()
    print(f"{NETWORKS} networks of {LINKS} links and {PATHS} paths, {STEPS} steps:")
    print(f"  first call {result['first_s']:.2f} s, next {result['again_s']:.2f} s (aim: under 10 s)")
    print(f"  largest utilisation in the end {result['largest_utilisation']:.16f}")
