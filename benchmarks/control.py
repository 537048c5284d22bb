"""Spectral abscissae of 10 000 random systems with delays, and charts of DCQCN: ``python -m benchmarks.control``."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.dde.characteristic import abscissa
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.dde.winding import count_right

SYSTEMS, ORDER, DELAYS = 10_000, 4, 2
LONGEST = 2.0  # of the delays, in units of one over a matrix entry's standard deviation
CHECKED = 200  # of them also counted by the argument principle
ROUNDS = 3
AIM = 20.0  # s on two cores, for the random systems and for as many points of DCQCN
SIDE, CHART_AIM = 64, 10.0  # points of a side of the chart, and s for it with its boundary


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


def dcqcn(n: Any, tau: Any) -> fc.Scenario:
    return fc.incast(1, multiplicity=n, scheme=fc.DCQCN(feedback_delay=tau))


def charts() -> dict[str, float]:
    """Seconds for 10 000 points of DCQCN and for a chart with its boundary, the first time and again."""
    found = {}
    line = {"n": list(np.linspace(2, 40, SYSTEMS))}
    square = {"n": list(np.linspace(2, 40, SIDE)), "tau": list(np.linspace(10e-6, 150e-6, SIDE))}
    for name, make, over in (("points", lambda n: dcqcn(n, 50e-6), line), ("chart", dcqcn, square)):
        for again in ("", "_again"):
            start = time.perf_counter()
            fc.studies.stability_chart(make, over)
            found[f"{name}_seconds{again}"] = time.perf_counter() - start
    return found


if __name__ == "__main__":
    print(json.dumps(measure() | {"aim": AIM} | charts() | {"chart_aim": CHART_AIM}, indent=2))
