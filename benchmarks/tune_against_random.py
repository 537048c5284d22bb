"""Tuning against ten times as many random points, and against itself with other seeds.

    python -m benchmarks.tune_against_random [POINTS] [--packets]

On three configurations: the best of POINTS (10 000) random settings that keep the bounds, and what `fluidcc.tune` finds
in a tenth of them with three seeds; both by the hybrid engine with the same four seeds of the runs. Aims, stated before
measuring: each tuned objective is at most that of the best random setting, and the three lie within 5 % of each other.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.tuning.evaluate import Evaluator, engine_draws
from fluidcc.tuning.goal import Goal, goal_of
from fluidcc.tuning.search import search
from fluidcc.tuning.space import space_of

UNTIL, SEEDS = "30ms", [1, 2, 3, 4]
BOUNDS = ["utilisation>=0.99", "jain>=0.9"]
OVER = {"kmin": ("4KB", "400KB"), "kmax": ("20KB", "4MB"), "pmax": ("1%", "100%"), "g": ("1/1024", "1/4")}


def incast(flows: int, rate: str, scheme: fc.DCQCN, delay: str, **marking: Any) -> fc.Scenario:
    g = marking.pop("g")
    start = np.linspace(0.0, 20e-6, flows).tolist()
    return fc.incast(
        flows, rate=rate, delay=delay, start=start, scheme=dataclasses.replace(scheme, g=g), marking=fc.RED(**marking)
    )


def configurations() -> dict[str, Any]:
    """Speeds, flows and NICs that have little in common."""
    paper, vendor = fc.preset("dcqcn").scheme, fc.preset("dcqcn", "vendor").scheme
    return {
        "40G, 4 flows, paper's NIC, 1 us": lambda **v: incast(4, "40Gbps", paper, "1us", **v),
        "100G, 8 flows, vendor's NIC, 2 us": lambda **v: incast(8, "100Gbps", vendor, "2us", **v),
        "25G, 16 flows, paper's NIC, 5 us": lambda **v: incast(16, "25Gbps", paper, "5us", **v),
    }


def least(goal: Goal, evaluator: Evaluator) -> float:
    """The first objective of the best point that keeps the bounds."""
    kept = [goal.costs(m.metrics)[0] for _, m in evaluator.known() if not goal.violations(m.metrics).any()]
    return min(kept, default=float("nan"))


def main() -> None:
    points = int(next((a for a in sys.argv[1:] if a.isdigit()), 10_000))
    space, goal = space_of(OVER), goal_of("queue_bytes.p99", None, BOUNDS, True, 1.0)
    draws = engine_draws("hybrid", UNTIL, None)
    print(f"{'configuration':38} {'random':>10} {'tuned, 3 seeds':>34} {'spread':>7}  aims")
    for name, make in configurations().items():
        began = time.perf_counter()
        random = Evaluator(make, [{}], draws, SEEDS, set())
        places = np.random.default_rng(1).random((points, len(space.variables)))
        random([space.point(row) for row in places])
        theirs, taken = least(goal, random), time.perf_counter() - began
        ours, ran = [], []
        for seed in (1, 2, 3):
            tuned = Evaluator(make, [{}], draws, SEEDS, set())
            search(space, goal, tuned, evaluations=points // 10, seed=seed, known=[])
            ours.append(least(goal, tuned))
            ran.append(tuned.runs)
        spread = (max(ours) - min(ours)) / min(ours)
        aims = f"{'as good' if max(ours) <= theirs else 'WORSE'}, {'within' if spread <= 0.05 else 'NOT within'} 5 %"
        texts = " ".join(f"{each:11.0f}" for each in ours)
        print(
            f"{name:38} {theirs:10.0f} {texts:>34} {spread:7.1%}  {aims} ({max(ran)} runs; random took {taken:.0f} s)"
        )


if __name__ == "__main__":
    main()
