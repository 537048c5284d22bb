"""Tuning against ten times as many random points, and against itself with other seeds.

    python -m benchmarks.tune_against_random [POINTS]

On three configurations: the best of POINTS (10 000) random settings that keep the bounds, and what `fluidcc.tune` finds
in a tenth of them with three seeds; both by the hybrid engine with the same four seeds of the runs, and chosen and
measured by 16 and 64 others, as `tune` does. Aims, stated before measuring: each tuned objective is at most that of the
best random setting, and the three lie within 5 % of each other.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import Any

import numpy as np

import fluidcc as fc
from fluidcc.studies.tuning.choice import Proof
from fluidcc.studies.tuning.evaluate import Evaluator, engine_draws
from fluidcc.studies.tuning.goal import Goal, goal_of
from fluidcc.studies.tuning.search import search
from fluidcc.studies.tuning.space import Space, space_of

_CHECKED = (4, 16)  # times as many seeds
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


def checked(goal: Goal, make: Any, searched: Evaluator, space: Space) -> float:
    """The objective of what would be chosen, by seeds that nothing was chosen by."""
    rows = [(space.named(v), m) for v, m in searched.known() if not m.reason]
    checkers = [
        Evaluator(make, [{}], searched.draws, range(1001, 1001 + k * len(SEEDS)), goal.metrics) for k in _CHECKED
    ]
    best = Proof(goal, space, checkers, rows, len(SEEDS), [], None).by_search()
    return best.metrics["queue_bytes.p99"] if best.kept else float("inf")


def main() -> None:
    points = int(next((a for a in sys.argv[1:] if a.isdigit()), 10_000))
    space, goal = space_of(OVER), goal_of("queue_bytes.p99", None, BOUNDS, True, 1.0)
    draws = engine_draws("hybrid", UNTIL, None)
    print(f"{'configuration':34} {'random':>8} {'tuned, three seeds':>26} {'spread':>7}  aims", flush=True)
    for name, make in configurations().items():
        began = time.perf_counter()
        random = Evaluator(make, [{}], draws, SEEDS, set())
        places = np.random.default_rng(1).random((points, len(space.variables)))
        random([space.point(row) for row in places])
        theirs, taken = checked(goal, make, random, space), time.perf_counter() - began
        ours = []
        for seed in (1, 2, 3):
            tuned = Evaluator(make, [{}], draws, SEEDS, set())
            search(space, goal, tuned, evaluations=points // 10, seed=seed, known=[])
            ours.append(checked(goal, make, tuned, space))
        spread = (max(ours) - min(ours)) / min(ours)
        aims = f"{'as good' if max(ours) <= theirs else 'WORSE'}, {'within' if spread <= 0.05 else 'NOT within'} 5 %"
        texts = " ".join(f"{each:8.0f}" for each in ours)
        print(f"{name:34} {theirs:8.0f} {texts:>26} {spread:7.1%}  {aims} (random: {taken:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
