"""Spectral abscissae of 10 000 random systems with delays at once: ``python -m benchmarks.control``."""

from __future__ import annotations

import json
import time

import numpy as np

from fluidcc.control.delay_system import DelaySystem
from fluidcc.control.roots import abscissa
from fluidcc.control.winding import count_right

SYSTEMS, ORDER, DELAYS = 10_000, 4, 2
LONGEST = 2.0  # of the delays, in units of one over a matrix entry's standard deviation
CHECKED = 200  # of them also counted by the argument principle
ROUNDS = 3
AIM = 20.0  # s on two cores


def measure(systems: int = SYSTEMS) -> dict[str, float]:
    """Least seconds of the rounds, worst residual, how many are unresolved, how many signs a count contradicts."""
    rng = np.random.default_rng(1)
    batch = DelaySystem(
        rng.normal(size=(systems, ORDER, ORDER)),
        rng.normal(size=(systems, DELAYS, ORDER, ORDER)),
        rng.uniform(0, LONGEST, size=(systems, DELAYS)),
    )
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        found = abscissa(batch)
        seconds.append(time.perf_counter() - start)
    # One pair or one real root right of a line just left of the rightmost, none just right of it.
    some = slice(CHECKED)
    apart = 1e-6 * (1 + np.abs(found.value[some]))
    left, right = (count_right(batch[some], found.value[some] + side * apart) for side in (-1, 1))
    expected = np.where(found.frequency[some] > 0, 2, 1)
    return {
        "seconds": min(seconds),
        "worst_residual": float(found.residual.max()),
        "unresolved": int((found.state != "ok").sum()),
        "contradicted": int(((left != expected) | (right != 0)).sum()),
    }


if __name__ == "__main__":
    print(json.dumps(measure() | {"aim": AIM}, indent=2))
