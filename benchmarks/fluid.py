"""The measurements. Each runs in a process of its own: ``python -m benchmarks.fluid one_core`` prints its JSON.

Contenders take turns, round by round, so that whatever else the machine does meets all of them. Times are the least
over the rounds, ratios the median over the rounds of the ratio within a round.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from benchmarks import problem

ROUNDS = 7
HORIZONS = (0.01, 0.1, 1.0)  # s
WARM = 3  # runs before memory is looked at
PARTS = 4  # chunks of a batch
AGREEMENT = 1e-9  # of our queues and the C kernel's: rounding, grown by 20000 steps over two jumps of the marking
WIDTHS = {"smooth": (None,), "rough": (0.3, 0.1, 0.03)}  # packets
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
CASES = {"smooth": problem.SMOOTH, "rough": problem.ROUGH}


def timed(work: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def in_turn(contenders: dict[str, Callable[[], Any]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Seconds of each contender, round by round."""
    for work in contenders.values():
        work()  # compiles
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            times[name].append(timed(work))
    return times


def ratio(times: dict[str, list[float]], slow: str, fast: str) -> float:
    """How many times longer ``slow`` took than ``fast``."""
    return statistics.median(a / b for a, b in zip(times[slow], times[fast], strict=True))


def per_point_step(seconds: list[float], points: int) -> float:
    """Least time per point and step [ns]."""
    return min(seconds) / points / problem.plan().steps * 1e9


# -- measurements, each in its own process -------------------------------------------------------------------


def one_core() -> dict[str, Any]:
    """A batch of one chunk, against C, and in float32; single runs against JiTCDDE of the same accuracy."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    points = problem.CHUNK
    _agree(points)
    contenders: dict[str, Callable[[], Any]] = {
        "ours": lambda: problem.ours(points),
        "float32": lambda: problem.ours(points, dtype="float32"),
        "c": lambda: problem.in_c(problem.gains(points)),
        "single": lambda: problem.ours(),
    }
    found: dict[str, Any] = {}
    sampled = np.arange(1, problem.plan().samples) * problem.plan().stride * problem.STEP
    for name, case in CASES.items():
        solver, chosen = _jitcdde(name, case)
        found[name] = chosen
        tolerance = chosen["tolerance"]
        contenders[f"jitcdde {name}"] = lambda s=solver, t=tolerance: s(t, sampled[-1:])
        contenders[f"jitcdde {name} sampled"] = lambda s=solver, t=tolerance: s(t, sampled)
    times = in_turn(contenders)
    ours = [seconds / points for seconds in times["ours"]]
    exact = problem.ours(points)[0].queue
    single = problem.ours(points, dtype="float32")[0].queue
    return {
        "ns": {name: per_point_step(times[name], points) for name in ("ours", "float32", "c")},
        "over_c": ratio(times, "ours", "c"),
        "float32_gain": ratio(times, "ours", "float32"),
        "float32_error": float(np.max(np.abs(exact - single)) / np.max(exact)),
        "single_ms": min(times["single"]) * 1e3,
        "jitcdde": {
            name: found[name]
            | {
                label: {
                    "ms": min(times[key]) * 1e3,
                    "per_point": ratio({"a": times[key], "b": ours}, "a", "b"),
                    "single": ratio(times, key, "single"),
                }
                for label, key in (("end", f"jitcdde {name}"), ("sampled", f"jitcdde {name} sampled"))
            }
            for name in CASES
        },
    }


def two_cores() -> dict[str, Any]:
    """Chunks run by two threads, ours and C."""
    points = problem.CHUNK
    with ThreadPoolExecutor(2) as pool:

        def ours() -> None:
            list(pool.map(lambda part: problem.ours(points, part, PARTS), range(PARTS)))

        def c() -> None:
            list(pool.map(lambda part: problem.in_c(problem.gains(points, part, PARTS)), range(PARTS)))

        times = in_turn({"ours": ours, "c": c})
    return {
        "ns": {name: per_point_step(seconds, points * PARTS) for name, seconds in times.items()},
        "over_c": ratio(times, "ours", "c"),
    }


def single() -> dict[str, Any]:
    """A single run with the whole loop compiled as one function, against JiTCDDE sampled as ours."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    sampled = np.arange(1, problem.plan().samples) * problem.plan().stride * problem.STEP
    contenders: dict[str, Callable[[], Any]] = {"single": lambda: problem.ours()}
    for name, case in CASES.items():
        solver, chosen = _jitcdde(name, case)
        contenders[name] = lambda s=solver, t=chosen["tolerance"]: s(t, sampled)
    times = in_turn(contenders)
    return {"ms": min(times["single"]) * 1e3} | {name: ratio(times, name, "single") for name in CASES}


def compilation() -> dict[str, float]:
    """Compiling a batch, for the first time in a process."""
    return {"seconds": problem.ours(problem.CHUNK, until=1e-4)[1]}


def memory() -> dict[str, list[float]]:
    """Peak memory of a batch of 512 after a horizon of 10 ms, 100 ms and 1 s, in this order in one process.

    Between processes the peak differs by a twelfth at one and the same horizon, with what the compiler leaves behind;
    in one process, after a few runs, only the horizon changes.
    """
    for _ in range(WARM):
        problem.ours(512, until=HORIZONS[0])
    peaks = []
    for horizon in HORIZONS:
        problem.ours(512, until=horizon)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
    return {"MB": peaks}


def startup() -> dict[str, float]:
    """Time the command's help, in processes of its own [s]."""
    program = "import sys; sys.argv[0] = 'fluidcc'; from fluidcc.cli import main; main()"
    run = partial(subprocess.run, [sys.executable, "-c", program, "--help"], capture_output=True, check=True)
    return {"help": min(timed(run) for _ in range(5))}


def _agree(points: int) -> None:
    for name, case in CASES.items():
        ours = problem.ours(points, case=case)[0].queue[:, 0]
        theirs = problem.in_c(problem.gains(points), case)
        error = float(np.max(np.abs(ours - theirs)) / np.max(ours))
        if error > AGREEMENT:
            raise AssertionError(f"{name}: the C kernel differs from fluidcc by {error:.1e}, more than {AGREEMENT}")


def _jitcdde(name: str, case: problem.Case) -> tuple[problem.JiTCDDE, dict[str, Any]]:
    """The fastest setting that is as accurate as ours at 1 us, or the most accurate one."""
    plan = problem.plan()
    at = slice(20, None, 20)
    times = (np.arange(plan.samples) * plan.stride * plan.dt)[at]
    reference = problem.ours(dt=plan.dt / 16, method="rk4", case=case)[0].queue[:, 0, 0][at]

    def error(queue: np.ndarray) -> float:
        return float(np.max(np.abs(queue - reference)) / np.max(reference))

    ours = error(problem.ours(case=case)[0].queue[:, 0, 0][at])
    tried = []
    for width in WIDTHS[name]:
        solver = problem.JiTCDDE(case, width)
        for tolerance in TOLERANCES:
            theirs = error(solver(tolerance, times))
            seconds = min(timed(lambda s=solver, t=tolerance: s(t, times[-1:])) for _ in range(3))
            tried.append((theirs > ours, seconds if theirs <= ours else theirs, theirs, width, tolerance, solver))
    _, _, theirs, width, tolerance, solver = min(tried, key=lambda row: row[:2])
    return solver, {"our_error": ours, "its_error": theirs, "width": width, "tolerance": tolerance}


def measure(name: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run a measurement in a process of its own, with what importing fluidcc sets unless the environment forbids it."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.fluid", name, *arguments]
    values = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"} | environment
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=values)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    measurements = {f.__name__: f for f in (one_core, two_cores, single, compilation, memory, startup)}
    print(json.dumps(measurements[sys.argv[1]](*sys.argv[2:])))
