"""Flow level against packets on random fabrics and jobs: collective times, completion times by size, speed.

``python -m benchmarks.flow_level`` measures; ``--cases N``, ``--schemes A,B`` and ``--models A,B`` take less of it.
Every case is drawn from its number alone.
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any, NamedTuple

import numpy as np

import fluidcc as fc
from fluidcc.engines.flow_level.run import flow_times
from fluidcc.fabrics import Topology, named_topology
from fluidcc.fabrics.run import run

SCHEMES = ("hpcc", "dcqcn", "swift", "none")
JOBS = ("ring", "all-to-all", "permutation", "poisson")
BINS = (0.0, 10e3, 100e3, 1e6, np.inf)
_TOTAL = 1e9  # payload of a case [bytes], at most
CASES = 30


class Case(NamedTuple):
    """A fabric and what is sent over it."""

    number: int
    job: str
    says: str
    topology: Topology
    rows: list[tuple[Any, ...]]


def case(number: int) -> Case:
    """One of the random fabrics with its job."""
    rng = np.random.default_rng([20, number])
    rate, delay = rng.choice(["25Gbps", "100Gbps", "200Gbps"]), rng.choice(["0.5us", "1us", "2us"])
    if rng.random() < 1 / 3:
        name, over = f"k-ary:{rng.choice([4, 6])}", None
    else:
        leaves, spines, hosts = rng.integers(2, 7), rng.integers(1, 5), rng.integers(3, 11)
        name, over = f"leaf-spine:{leaves}x{spines}x{hosts}", float(rng.choice([1.0, 1.5, 2.0, 3.0, 4.0]))
    topology = named_topology(name, rate=rate, delay=delay, oversubscription=over)
    count, job = len(topology.hosts), JOBS[number % len(JOBS)]
    if job == "poisson":
        load, sizes = float(rng.choice([0.3, 0.5])) / (over or 1.0) ** 0.5, str(rng.choice(["web-search", "hadoop"]))
        until = 0.25 * _TOTAL / (count * float(topology.host_rate) * load)
        rows = [tuple(row) for row in fc.poisson_flows(count, load=load, until=until, sizes=sizes, seed=number, rate=topology.host_rate)]  # fmt: skip
        what = f"{sizes} at {load:.0%}"
    else:
        ranks = int(rng.integers(max(4, count // 2), count + 1))
        placed = rng.permutation(count)[:ranks] if rng.random() < 0.5 else np.arange(ranks)
        size = float(np.round(10 ** rng.uniform(4.5, 6.5)))
        rows = {"ring": ring, "all-to-all": all_to_all, "permutation": permutation}[job](placed, size, rng)
        what = f"of {ranks}, {rows[0][3]:.3g} B each"
    over_words = "" if over is None else f" {over:g}:1"
    return Case(number, job, f"{name}{over_words} {rate} {delay}, {job} {what}", topology, rows)


def ring(placed: Any, size: float, rng: Any = None) -> list[tuple[Any, ...]]:
    """A ring's all-reduce: each rank sends on what it received in the step before, and one piece at a time."""
    n = len(placed)
    size = min(size, _TOTAL / (2 * (n - 1) * n))
    rows: list[tuple[Any, ...]] = []
    for step, i in itertools.product(range(2 * (n - 1)), range(n)):
        before = ((step - 1) * n + (i - 1) % n, (step - 1) * n + i) if step else ()
        rows.append((int(placed[i]), int(placed[(i + 1) % n]), 0.0, size, before))
    return rows


def all_to_all(placed: Any, size: float, rng: Any) -> list[tuple[Any, ...]]:
    """Each rank sends to every other at once."""
    n = len(placed)
    size = min(size, _TOTAL / (n * (n - 1)))
    return [(int(a), int(b), 0.0, size) for a, b in itertools.permutations(placed, 2)]


def permutation(placed: Any, size: float, rng: Any) -> list[tuple[Any, ...]]:
    """Each rank sends to one other and receives from one, again and again."""
    n, rows = len(placed), []
    rounds = int(rng.integers(1, 9))
    size = min(size, _TOTAL / (n * rounds))
    to = (np.arange(n) + int(rng.integers(1, n))) % n
    shuffled = rng.permutation(n)
    for k, i in itertools.product(range(rounds), range(n)):
        rows.append((int(placed[shuffled[i]]), int(placed[shuffled[to[i]]]), 0.0, size, ((k - 1) * n + i,) if k else ()))  # fmt: skip
    return rows


class Measured(NamedTuple):
    """Completion times of both, and what they took."""

    sizes: np.ndarray
    packets: np.ndarray
    flow_level: np.ndarray
    makespans: tuple[float, float]
    seconds: tuple[float, float]
    pauses: int


def by_packets(each: Case, options: Any) -> tuple[np.ndarray, np.ndarray, float, int]:
    """Starts, completion times, and the seconds that the loop took."""
    found = run(each.topology, each.rows, "packets", options, each.number, drain=0.5)
    return (
        found.slowdown["start"].values,
        found.slowdown["completion"].values,
        found.numbers["wall_s"],
        found.numbers["pfc_pauses"],
    )


def measured(each: Case, scheme: str, models: list[str]) -> dict[str, Measured]:
    """One scheme on one case, by packets and by each model."""
    options = fc.preset(scheme, "hpcc-eval").options()
    start, took, wall, pauses = by_packets(each, options)
    scenario = each.topology.scenario(each.rows, ecmp_seed=each.number, **options)
    found = {}
    for model in models:
        times = flow_times(scenario, model=model)
        began = time.perf_counter()
        times = flow_times(scenario, model=model)
        whole = time.perf_counter() - began
        found[model] = Measured(
            np.array([row[3] for row in each.rows]), took, times.completion,
            (float((start + took).max()), float(times.answered.max())), (wall, whole), pauses,
        )  # fmt: skip
    return found


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flow_level", description=__doc__)
    parser.add_argument("--cases", default=f"0:{CASES}")
    parser.add_argument("--schemes", default=",".join(SCHEMES))
    parser.add_argument("--models", default="ideal")
    arguments = parser.parse_args()
    first, last = map(int, arguments.cases.split(":"))
    schemes, models = arguments.schemes.split(","), arguments.models.split(",")
    everything: dict[tuple[str, str], list[tuple[Case, Measured]]] = {}
    for number in range(first, last):
        each = case(number)
        for scheme in schemes:
            for model, found in measured(each, scheme, models).items():
                everything.setdefault((scheme, model), []).append((each, found))
                a, b = found.makespans
                fcts = [np.percentile(f, q) for q in (50, 99) for f in (found.packets, found.flow_level)]
                print(
                    f"{number:3d} {scheme:6s} {model:6s} end {a * 1e3:8.3f} ms {b / a - 1:+7.2%}  "
                    f"p50 {fcts[1] / fcts[0] - 1:+7.2%} p99 {fcts[3] / fcts[2] - 1:+7.2%}  "
                    f"{found.seconds[0]:6.2f} s {found.seconds[0] / found.seconds[1]:6.0f}x  {found.pauses:6d}  {each.says}",
                    flush=True,
                )
    for (scheme, model), pairs in everything.items():
        ends = np.array([m.makespans[1] / m.makespans[0] - 1 for c, m in pairs if c.job != "poisson"])
        if len(ends):
            print(f"{scheme} {model}: {np.mean(np.abs(ends) <= 0.05):.0%} of {len(ends)} jobs within 5 %, worst {ends[np.argmax(np.abs(ends))]:+.1%}")  # fmt: skip


if __name__ == "__main__":
    main()
