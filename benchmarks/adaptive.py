"""Steps chosen by their error against the fixed step and JiTCDDE, at equal accuracy: ``python -m benchmarks.adaptive``.

Both starts of `benchmarks.problem`. Accuracy is the largest difference of the queue from RK4 at 1/16 us over a hundred
instants, relative to its largest value. Each contender has the loosest tolerance that is as accurate as Heun at 1 us,
and is timed to the end of the run, whose state alone is asked for. All take turns in one process on one core; times are
those of the processor, because others may use it too.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import problem
from benchmarks.fluid import CASES, _jitcdde
from fluidcc.engines.fluid import adaptive_run
from fluidcc.engines.fluid.adaptive_run import AdaptiveOutcome
from fluidcc.engines.fluid.engine import execute
from fluidcc.engines.fluid.plan import Plan

TOLERANCES = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8)
ROUNDS = 5


def plan(rtol: float, samples: int = 1) -> Plan:
    """A run of the problem to a tolerance."""
    return problem.plan_of(problem.network(), until=problem.HORIZON, rtol=rtol, samples=samples)


def run(case: problem.Case, rtol: float, points: int = 1, samples: int = 1) -> AdaptiveOutcome:
    """Run it."""
    return adaptive_run.execute(problem.network(points, case=case), plan(rtol, samples), points=points)[0]


def loosest(case: problem.Case) -> tuple[float, float]:
    """The loosest tolerance whose queue is as accurate as Heun's at 1 us, and its error."""
    at = slice(20, None, 20)
    reference = problem.ours(dt=problem.STEP / 16, method="rk4", case=case)[0].queue[:, 0, 0][at]

    def error(queue: np.ndarray) -> float:
        return float(np.max(np.abs(queue - reference)) / np.max(reference))

    fixed = problem.plan()
    heun = error(problem.ours(case=case)[0].queue[:, 0, 0][at])
    for rtol in TOLERANCES:
        found = error(run(case, rtol, samples=2000).samples["queue"][: fixed.samples, 0, 0][at])
        if found <= heun:
            return rtol, found
    raise AssertionError(f"no tolerance is as accurate as Heun at 1 us, {heun:.1e}")


def seconds(work: Callable[[], Any]) -> float:
    """Of the processor that a call takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def measure() -> dict[str, Any]:
    """Times per point and per run [us], and ratios within a round, for both starts."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    points, found = problem.CHUNK, {}
    at_end = np.array([problem.HORIZON])
    for name, case in CASES.items():
        rtol, error = loosest(case)
        solver, chosen = _jitcdde(name, case)
        network, tight = problem.network(case=case), plan(rtol)
        contenders: dict[str, tuple[int, Callable[[], Any]]] = {
            "heun batch": (points, lambda c=case: problem.ours(points, case=c)),
            "rtol batch": (points, lambda c=case, r=rtol: run(c, r, points)),
            "heun single": (1, lambda n=network: execute(n, problem.plan())),
            "rtol single": (1, lambda n=network, p=tight: execute(n, p)),
            "jitcdde": (1, lambda s=solver, t=chosen["tolerance"]: s(t, at_end)),
        }
        for _, work in contenders.values():
            work()  # compiles
        times: dict[str, list[float]] = {key: [] for key in contenders}
        for _ in range(ROUNDS):
            for key, (count, work) in contenders.items():
                repeats = 1 if count > 1 else 5
                times[key].append(min(seconds(work) for _ in range(repeats)) / count)

        def ratio(slow: str, fast: str, times: dict[str, list[float]] = times) -> float:
            return statistics.median(a / b for a, b in zip(times[slow], times[fast], strict=True))

        outcome = run(case, rtol, points)
        found[name] = {
            "rtol": rtol,
            "error": error,
            "heun_error": chosen["our_error"],
            "jitcdde_error": chosen["its_error"],
            "steps": float(outcome.taken.mean()),
            "attempts": float((outcome.taken + outcome.failed).mean()),
            "most_attempts": int((outcome.taken + outcome.failed).max()),
            "us": {key: min(each) * 1e6 for key, each in times.items()},
            "heun_over_rtol_batch": ratio("heun batch", "rtol batch"),
            "heun_over_rtol_single": ratio("heun single", "rtol single"),
            "jitcdde_over_heun_batch": ratio("jitcdde", "heun batch"),
            "jitcdde_over_rtol_batch": ratio("jitcdde", "rtol batch"),
            "jitcdde_over_heun_single": ratio("jitcdde", "heun single"),
            "jitcdde_over_rtol_single": ratio("jitcdde", "rtol single"),
        }
    return found


if __name__ == "__main__":
    json.dump(measure(), sys.stdout, indent=1)
    print()
