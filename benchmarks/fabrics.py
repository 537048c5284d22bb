"""Whole fabrics: setup by flow, cost of an event and of a packet as hosts grow, threads; beside a pointer chase.

``python -m benchmarks fabrics`` measures all of it in one sitting. Times by themselves say little about another
machine: what memory costs there is measured beside them, by a chain of reads of which each waits for the one before.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

import fluidcc as fc
from fluidcc.engines.packet.build import prepare
from fluidcc.engines.packet.run import execute, times_of, warm_up
from fluidcc.workloads.fabrics import named_topology

HOSTS = (128, 320, 512, 1024)
LOAD, ARRIVALS, UNTIL = 0.5, 300e-6, 600e-6
LONGER = 2e-3  # of arrivals, to see what a flow's setup is among many
ROUNDS = 3
_CHASE = 1 << 23  # numbers: 64 MB
_STEPS = 4_000_000


@numba.njit
def _chase(onward: Any, steps: Any) -> Any:
    at = 0
    for _ in range(steps):
        at = onward[at]
    return at


def pointer_chase(numbers: int) -> float:
    """Time [ns] of a read that depends on the one before, among so many numbers of 8 B in random order."""
    order = np.random.default_rng(0).permutation(numbers)
    onward = np.empty(numbers, np.int64)
    onward[order] = np.roll(order, 1)
    _chase(onward, 10)
    began = time.perf_counter()
    _chase(onward, _STEPS)
    return (time.perf_counter() - began) / _STEPS * 1e9


def tree(hosts: int, arrivals: float = ARRIVALS) -> tuple[Any, int, float]:
    """Scenario of FB_Hadoop on HPCC's tree, its flows, and the time that it took to make [s]."""
    topology = named_topology(f"fat-tree:{hosts}")
    rows = fc.fabrics.poisson_flows(hosts, load=LOAD, until=arrivals, sizes="hadoop", seed=1)
    options = fc.preset("hpcc", "hpcc-sim").options()
    began = time.perf_counter()
    scenario = topology.scenario(rows, ecmp_seed=1, **options)
    return scenario, len(rows), time.perf_counter() - began


def measured(hosts: int) -> dict[str, float]:
    """Least times of some rounds."""
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        scenario, flows, made = tree(hosts)
        began = time.perf_counter()
        plan = prepare(scenario, times_of(scenario, UNTIL, (0.0, ARRIVALS), UNTIL), 0)
        planned = time.perf_counter() - began
        warm_up(plan)
        sim, seconds = execute(plan, 1)
        core = sim.core[0]
        found = {
            "setup_us_per_flow": (made + planned) / flows * 1e6,
            "ns_per_event": seconds / int(core.events) * 1e9,
            "ns_per_packet": seconds / int(core.delivered) * 1e9,
        }
        best = {name: min(value, best.get(name, value)) for name, value in found.items()}
        del scenario, plan, sim, core  # or the next round's memory is added to this one's
    return best


def setup_of_many() -> float:
    """Setup of a flow [us] among the tens of thousands of some milliseconds; the least of some rounds."""
    spent = []
    for _ in range(ROUNDS):
        scenario, flows, made = tree(320, LONGER)
        began = time.perf_counter()
        prepare(scenario, times_of(scenario, 2 * LONGER, (0.0, LONGER), 2 * LONGER), 0)
        spent.append((made + time.perf_counter() - began) / flows * 1e6)
    return min(spent)


def share_of_two_threads() -> float:
    """Of two cores, what two runs at once get, against one after the other."""
    plans = []
    for _ in range(4):
        scenario, _, _ = tree(HOSTS[0])
        plans.append(prepare(scenario, times_of(scenario, UNTIL, (0.0, ARRIVALS), UNTIL), 0))
    warm_up(plans[0])
    began = time.perf_counter()
    for plan in plans[:2]:
        execute(plan, 1)
    one = time.perf_counter() - began
    began = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda plan: execute(plan, 1), plans[2:]))
    return one / (2 * (time.perf_counter() - began))


def web_search() -> dict[str, float]:
    """10 ms of WebSearch at half load on 320 hosts with HPCC, from the command to the pictures [s]."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["fabric", "hpcc", "--workload", "web-search", "--load", "50%", "--until", "10ms", "--json"]
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "fluidcc", *words, "--out", folder], capture_output=True, text=True, check=True
        )
        total = time.perf_counter() - began
    run = json.loads(done.stdout)["runs"][0]
    return {"total": total, **{name: run[f"{name}_s"] for name in ("setup", "compile", "wall", "analysis")}}


def measure() -> dict[str, Any]:
    """All of it, in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "benchmarks.fabrics"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    """Print what was found as JSON."""
    study = web_search()  # also compiles
    found: dict[str, Any] = {"chase_ns": pointer_chase(_CHASE), "hosts": {hosts: measured(hosts) for hosts in HOSTS}}
    found["memory_MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found["two_threads"], found["setup_of_many_us"] = share_of_two_threads(), setup_of_many()
    sys.stdout.write(json.dumps({**found, "web_search_s": study}) + "\n")


if __name__ == "__main__":
    main()
