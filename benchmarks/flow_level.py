"""Flow level against packets on random fabrics and jobs: collective times, completion times by size, speed.

``python -m benchmarks.flow_level`` measures (9 minutes); ``--cases A:B``, ``--schemes A,B`` and ``--models A,B`` take
less of it, and ``--speed 320,1024,all-reduce`` large fabrics in its place. Every case is drawn from its number alone.
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any, NamedTuple

import numpy as np

import fluidcc as fc
from fluidcc.engines.flow_level.run import flow_times
from fluidcc.engines.flow_level.transfers import Transfers
from fluidcc.workloads.fabrics import Topology, named_topology
from fluidcc.workloads.fabrics.run import run

SCHEMES = ("hpcc", "dcqcn", "swift", "dctcp", "timely", "acc", "none")
JOBS = ("ring", "all-to-all", "permutation", "poisson")
BINS = (0.0, 10e3, 100e3, 1e6, np.inf)
_TOTAL = 1e9  # payload of a case [bytes], at most
CASES = 30
_SEEDS = {"dcqcn": 4}  # of schemes in which chance decides; 1 of others
_AIM = 0.05
_SHOWN, _EDGE = 30.0, 27.0  # per cent: how far the picture reaches, and where what is beyond stands
_FEW = 20  # flows, of which no percentile is taken
_DRAIN = 0.5  # s that are waited for the last
_MOST_SEEDED = 320  # hosts of a workload under DCQCN, to measure speed
_STEPS = 8  # of a ring, to measure speed


class Case(NamedTuple):
    """A fabric and what is sent over it."""

    number: int
    job: str
    says: str
    topology: Topology
    rows: list[tuple[Any, ...]]


def fabric(rng: np.random.Generator) -> tuple[Topology, str, float | None, str]:
    """A random fabric: its shape's name, its oversubscription, and rate and delay of its links."""
    rate, delay = rng.choice(["25Gbps", "100Gbps", "200Gbps"]), rng.choice(["0.5us", "1us", "2us"])
    if rng.random() < 1 / 3:
        name, over = f"k-ary:{rng.choice([4, 6])}", None
    else:
        leaves, spines, hosts = rng.integers(2, 7), rng.integers(1, 5), rng.integers(3, 11)
        name, over = f"leaf-spine:{leaves}x{spines}x{hosts}", float(rng.choice([1.0, 1.5, 2.0, 3.0, 4.0]))
    return named_topology(name, rate=rate, delay=delay, oversubscription=over), name, over, f"{rate} {delay}"


def case(number: int) -> Case:
    """One of the random fabrics with its job."""
    rng = np.random.default_rng([20, number])
    topology, name, over, links = fabric(rng)
    count, job = len(topology.hosts), JOBS[number % len(JOBS)]
    if job == "poisson":
        load, sizes = float(rng.choice([0.3, 0.5])) / (over or 1.0) ** 0.5, str(rng.choice(["web-search", "hadoop"]))
        until = 0.25 * _TOTAL / (count * float(topology.host_rate) * load)
        found = fc.fabrics.poisson_flows(
            count, load=load, until=until, sizes=sizes, seed=number, rate=topology.host_rate
        )
        rows = [tuple(row) for row in found]
        what = f"{sizes} at {load:.0%}"
    else:
        ranks = int(rng.integers(max(4, count // 2), count + 1))
        placed = rng.permutation(count)[:ranks] if rng.random() < 0.5 else np.arange(ranks)
        size = float(np.round(10 ** rng.uniform(4.5, 6.5)))
        rows = {"ring": ring, "all-to-all": all_to_all, "permutation": permutation}[job](placed, size, rng)
        what = f"of {ranks}, {rows[0][3]:.3g} B each"
    over_words = "" if over is None else f" {over:g}:1"
    return Case(number, job, f"{name}{over_words} {links}, {job} {what}", topology, rows)


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
        ends = int(placed[shuffled[i]]), int(placed[shuffled[to[i]]])
        rows.append((*ends, 0.0, size, ((k - 1) * n + i,) if k else ()))
    return rows


def ring_transfers(hosts: int, bytes_: float) -> tuple[list[tuple[int, int, float, float]], Transfers]:
    """A ring's all-reduce as connections, and what is sent on them."""
    steps = 2 * (hosts - 1)
    chunk = bytes_ / hosts
    i = np.tile(np.arange(hosts), steps)
    before = np.repeat(np.arange(steps) - 1, hosts) * hosts
    after = np.column_stack([before + (i - 1) % hosts, before + i])[hosts:].ravel()
    at = np.concatenate([np.zeros(hosts, int), np.arange(0, len(after) + 1, 2)])
    return [(k, (k + 1) % hosts, 0.0, chunk) for k in range(hosts)], Transfers(i, chunk, 0.0, after, at)


class Measured(NamedTuple):
    """Completion times of both, (seeds, flows), and what they took."""

    sizes: np.ndarray
    packets: np.ndarray
    flow_level: np.ndarray
    makespans: tuple[float, float]  # means over seeds
    seconds: tuple[float, float]
    pauses: int

    @property
    def end(self) -> float:
        """Error of the time at which all have ended."""
        return self.makespans[1] / self.makespans[0] - 1.0

    def error(self, percent: float, low: float = 0.0, high: float = np.inf) -> float:
        """Error of a percentile of completion times, of sizes in a bin; NaN of fewer than 20."""
        inside = (self.sizes > low) & (self.sizes <= high)
        if inside.sum() < _FEW:
            return float("nan")
        a, b = (np.percentile(each[:, inside], percent) for each in (self.packets, self.flow_level))
        return float(b / a - 1.0)


def measured(each: Case, scheme: str, models: list[str]) -> dict[str, Measured]:
    """One scheme on one case, by packets and by each model; over seeds where chance decides."""
    options = fc.preset(scheme, "hpcc-eval").options()
    seeds = [each.number + 1000 * k for k in range(_SEEDS.get(scheme, 1))]
    took, last, walls, pauses = [], [], [], 0
    other: dict[str, list[Any]] = {model: [] for model in models}
    for seed in seeds:
        found = run(each.topology, each.rows, "packets", options, seed, drain=_DRAIN)
        starts, times = found.slowdown["start"].values, found.slowdown["completion"].values
        took.append(times)
        last.append((starts + times).max())
        walls.append(found.numbers["wall_s"])
        pauses += found.numbers["pfc_pauses"]
        scenario = each.topology.scenario(each.rows, ecmp_seed=seed, **options)
        for model in models:
            other[model].append(flow_times(scenario, model=model, seed=seed, until=_DRAIN + 1.0))
    sizes = np.array([row[3] for row in each.rows])
    return {
        model: Measured(
            sizes,
            np.array(took),
            np.array([times.completion for times in runs]),
            (float(np.mean(last)), float(np.mean([times.answered.max() for times in runs]))),
            (sum(walls), sum(times.numbers["wall_s"] for times in runs)),
            pauses,
        )
        for model, runs in other.items()
    }


def speed(hosts: int) -> None:
    """A fabric of so many hosts, by packets and by each model: seconds of the loops, and how they agree."""
    topology = named_topology(f"fat-tree:{hosts}")
    steps = [row for step in range(_STEPS) for row in ring_step(hosts, step, 1e6)]
    poisson = [
        tuple(row)
        for row in fc.fabrics.poisson_flows(
            hosts, load=0.5, until=5e-4, sizes="web-search", seed=1, rate=topology.host_rate
        )
    ]
    for job, rows in ((f"{_STEPS} steps of a ring, 1 MB each", steps), ("web-search at 50 %", poisson)):
        long = job[0].isdigit() or hosts <= _MOST_SEEDED  # four seeds of DCQCN take packets too long
        for scheme in ("hpcc", "dcqcn") if long else ("hpcc",):
            each = Case(1, "ring" if job[0].isdigit() else "poisson", job, topology, rows)
            for model, found in measured(each, scheme, ["ideal", "dynamics"]).items():
                print(
                    f"{hosts} hosts, {job}, {scheme}, {model}: end {found.end:+.1%}, p50 {found.error(50):+.1%}, "
                    f"p99 {found.error(99):+.1%}; {found.seconds[0]:.1f} s by packets, {found.seconds[1]:.2f} s: "
                    f"{found.seconds[0] / found.seconds[1]:.0f} times as fast",
                    flush=True,
                )


def ring_step(hosts: int, step: int, size: float) -> list[tuple[Any, ...]]:
    """One step of a ring of all hosts."""
    before = (step - 1) * hosts
    return [
        (i, (i + 1) % hosts, 0.0, size, (before + (i - 1) % hosts, before + i) if step else ()) for i in range(hosts)
    ]


def all_reduce() -> None:
    """1 GB on 1024 hosts, which takes packets too long."""
    topology = named_topology("fat-tree:1024")
    rows, transfers = ring_transfers(1024, 1e9)
    for scheme in ("hpcc", "dcqcn"):
        scenario = topology.scenario(rows, ecmp_seed=1, **fc.preset(scheme, "hpcc-eval").options())
        for model in ("ideal", "dynamics"):
            began = time.perf_counter()
            found = flow_times(scenario, transfers, model=model)
            took = time.perf_counter() - began
            print(f"all-reduce of 1 GB on 1024 hosts, {scheme}, {model}: {found.makespan * 1e3:.1f} ms in {took:.0f} s")


def cases(numbers: range, schemes: list[str], models: list[str]) -> dict[tuple[str, str], list[tuple[Case, Measured]]]:
    """Random fabrics and jobs: a line for each, and what they come to."""
    everything: dict[tuple[str, str], list[tuple[Case, Measured]]] = {}
    for number in numbers:
        each = case(number)
        for scheme in schemes:
            for model, found in measured(each, scheme, models).items():
                everything.setdefault((scheme, model), []).append((each, found))
                print(
                    f"{number:3d} {scheme:6s} {model:8s} end {found.makespans[0] * 1e3:8.3f} ms {found.end:+7.2%}  "
                    f"p50 {found.error(50):+7.2%} p99 {found.error(99):+7.2%}  {found.seconds[0]:6.2f} s "
                    f"{found.seconds[0] / found.seconds[1]:6.1f}x {found.pauses:6d}  {each.says}",
                    flush=True,
                )
    for (scheme, model), pairs in everything.items():
        ends = {job: np.array([m.end for c, m in pairs if c.job == job]) for job in JOBS}
        jobs = np.concatenate([ends[job] for job in JOBS if job != "poisson"])
        if len(jobs):
            within = "; ".join(f"{job} {np.mean(np.abs(ends[job]) <= _AIM):.0%}" for job in JOBS if len(ends[job]))
            worst = jobs[np.argmax(np.abs(jobs))]
            print(
                f"{scheme} {model}: {np.mean(np.abs(jobs) <= _AIM):.0%} of {len(jobs)} jobs within 5 %, worst "
                f"{worst:+.1%} ({within})"
            )
        for low, high in itertools.pairwise(BINS):
            told = []
            for percent in (50, 99):
                errors = np.array([m.error(percent, low, high) for c, m in pairs if c.job == "poisson"])
                errors = errors[np.isfinite(errors)]
                if len(errors):
                    worst = errors[np.argmax(np.abs(errors))]
                    told.append(f"p{percent} {np.median(np.abs(errors)):.1%}, worst {worst:+.1%}")
            if told:
                print(f"    FCT, {low / 1e3:g} to {high / 1e3:g} KB: median error of {'; of '.join(told)}")
    return everything


def picture(everything: dict[tuple[str, str], list[tuple[Case, Measured]]], path: str) -> None:
    """Error of each job's end beside its length, a column for each scheme."""
    from fluidcc.plotting.colours import SCHEMES as COLOURS
    from fluidcc.plotting.style import figure

    found = {key: [(c, m) for c, m in pairs if c.job != "poisson"] for key, pairs in everything.items()}
    made, axes = figure(1, len(found), size=(2.2 * len(found), 3.2), sharex=True, sharey=True)
    for axis, ((scheme, _), pairs) in zip(axes[0], found.items(), strict=True):
        axis.axhspan(-5, 5, color="0.92", zorder=0)
        for job, marker in zip(JOBS, "osD", strict=False):
            mine = [m for c, m in pairs if c.job == job]
            x, errors = [m.makespans[0] * 1e3 for m in mine], np.array([100 * m.end for m in mine])
            for place, error in zip(x, errors, strict=True):
                if abs(error) > _EDGE:  # at the edge, with its number
                    at = (place, np.sign(error) * _EDGE)
                    away = {"xytext": (-4, -3), "textcoords": "offset points", "ha": "right"}
                    axis.annotate(f"{error:+.0f} %", at, fontsize="small", **away)
            axis.plot(
                x,
                np.clip(errors, -_EDGE, _EDGE),
                marker,
                ms=4,
                color=COLOURS[scheme],
                mfc="none" if job == "all-to-all" else None,
                label=job,
            )
        axis.set(xscale="log", title=scheme, xlabel="by packets [ms]", ylim=(-_SHOWN, _SHOWN))
    axes[0, 0].set_ylabel("error of the job's end [%]")
    axes[0, 0].legend(fontsize=7, loc="lower left")
    made.write(path)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flow_level", description=__doc__)
    parser.add_argument("--cases", default=f"0:{CASES}")
    parser.add_argument("--schemes", default=",".join(SCHEMES))
    parser.add_argument("--models", default="ideal,dynamics")
    parser.add_argument("--speed", help="in their place: fabrics of so many hosts, or all-reduce; 320,1024,all-reduce")
    parser.add_argument("--plot", metavar="FILE.png", help="errors of the jobs' ends by dynamics")
    arguments = parser.parse_args()
    if arguments.speed:
        for what in arguments.speed.split(","):
            all_reduce() if what == "all-reduce" else speed(int(what))
        return
    first, last = map(int, arguments.cases.split(":"))
    found = cases(range(first, last), arguments.schemes.split(","), arguments.models.split(","))
    if arguments.plot:
        picture({key: pairs for key, pairs in found.items() if key[1] == "dynamics"}, arguments.plot)


if __name__ == "__main__":
    main()
