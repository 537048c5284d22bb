"""Collectives by the fluid against packets, on random fabrics: what `--engine fluid` may be used for.

``python -m benchmarks.fluid_collectives`` draws 60 cases of each pattern and runs each scheme in both engines (about 20
minutes of a core), and prints for each scheme and pattern in how many the time was within 5 %, with Wilson's 95 %
interval. ``--jobs ring,tree --cases 0:40 --schemes hpcc`` take less or more of it. With ``--kept FILE.jsonl`` results
are kept line by line, and those there are not run again. Every case is drawn from its pattern and number alone.
``--jobs trace`` draws SimAI workloads, whose rings of two kinds of groups overlap with each other and with compute.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fluidcc as fc
from benchmarks.flow_level import fabric
from fluidcc.workloads.collectives import Job, Replay, read_simai
from fluidcc.workloads.collectives.engines import beyond_target
from fluidcc.workloads.collectives.mapping import laid_out
from fluidcc.workloads.collectives.run import Case, run
from fluidcc.workloads.fabrics import Topology

SCHEMES = ("none", "dctcp", "swift", "hpcc", "nscc", "timely", "acc", "dcqcn")
PATTERNS = ("ring", "tree", "all-to-all", "chain")
TRACE = "trace"
CASES = 60
SEEDS = {"dcqcn": 4}  # of schemes in which chance decides; 1 of others
AIM = 0.05
_TOTAL = 3e8  # payload of a case [bytes], at most
_NORMAL = 1.959964  # of 95 %


class Drawn(NamedTuple):
    """A fabric, jobs on it, and where they are placed."""

    says: str
    topology: Topology
    case: Case
    placement: str


def drawn(pattern: str, number: int) -> Drawn:
    """One of the random cases: jobs of one kind, one or two of them side by side."""
    rng = np.random.default_rng([20, 4, (*PATTERNS, TRACE).index(pattern), number])
    topology, name, over, links = fabric(rng)
    if pattern == TRACE:
        return _trace(rng, topology, f"{name}{'' if over is None else f' {over:g}:1'} {links}")
    jobs = 2 if rng.random() < 1 / 4 else 1
    count = len(topology.hosts)
    most = count // jobs
    ranks = int(rng.integers(min(max(4 * jobs, count // 2) // jobs, most), most + 1))
    each = 10 ** rng.uniform(4.5, 6.5)  # bytes of a transfer
    fields: dict[str, Any] = {}
    if pattern == "ring":
        kind = str(rng.choice(["all-reduce", "all-gather", "reduce-scatter"]))
        fields["chunks"] = int(rng.choice([1, 1, 2, 4]))
        size, sent = each * ranks * fields["chunks"], (2 if kind == "all-reduce" else 1) * (ranks - 1)
    elif pattern == "tree":
        kind, fields["algorithm"] = "all-reduce", "tree"
        size, sent = each * 32, 2 * (ranks - 1)
    elif pattern == "all-to-all":
        kind, fields["skew"] = "all-to-all", str(rng.choice(["0", "0.5", "1"]))
        size, sent = each * ranks, ranks - 1
    else:
        kind, fields["chunks"] = str(rng.choice(["broadcast", "pipeline"])), int(rng.choice([1, 4, 16]))
        if kind == "pipeline" and rng.random() < 0.5:
            fields["compute"] = "50us"
        size, sent = each * fields["chunks"], (2 if kind == "pipeline" else 1) * (ranks - 1)
    size = float(round(min(size, _TOTAL / (sent * jobs))))
    placement = str(rng.choice(["block", "round-robin", "random"]))
    job = Job(kind, size, ranks=ranks, **fields)
    over_words = "" if over is None else f" {over:g}:1"
    says = f"{name}{over_words} {links}, {jobs} x {job.says} {fields}, {placement}"
    return Drawn(says, topology, Case(kind, (job,) * jobs), placement)


def _trace(rng: np.random.Generator, topology: Topology, says: str) -> Drawn:
    """A SimAI workload of rings: two to four layers with compute of 3 to 300 us, and 0.2 to 6 MB in each collective."""
    tensor = int(rng.choice([2, 2, 4]))
    ranks = len(topology.hosts) // tensor * tensor
    layers = int(rng.integers(2, 5))
    kinds = rng.choice(["ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "NONE"], (layers, 3))
    kinds[:, 2] = "ALLREDUCE"
    sizes = 10 ** rng.uniform(5.3, 6.8, (layers, 3))
    sizes *= min(1.0, _TOTAL / (2 * ranks * sizes.sum()))
    times = 10 ** rng.uniform(3.5, 5.5, (layers, 3))  # ns
    text = f"HYBRID_TRANSFORMER model_parallel_NPU_group: {tensor} all_gpus: {ranks}\n{layers}\n"
    for row in zip(times, kinds, sizes, strict=True):
        parts = " ".join(f"{time:.0f} {kind} {size:.0f}" for time, kind, size in zip(*row, strict=True))
        text += f"layer -1 {parts} 0\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / TRACE
        path.write_text(text)
        schedule = read_simai(path)
    placement = str(rng.choice(["block", "round-robin", "random"]))
    job = Replay(schedule)
    return Drawn(f"{says}, {job.says}, groups of {tensor}, {placement}", topology, Case(TRACE, (job,)), placement)


def measured(
    each: Drawn, pattern: str, number: int, scheme: str, before: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Mean times over seeds [s] by packets, or as they were before, and by the fluid; None where one did not end."""
    options = fc.preset(scheme, "hpcc-eval").options()
    times: dict[str, list[Any]] = {"packet": before["times_s"]["packet"] if before else [], "fluid": []}
    walls = dict(before["wall_s"], fluid=0.0) if before else dict.fromkeys(times, 0.0)
    for k in range(SEEDS.get(scheme, 1)):
        for engine in ("fluid",) if before else times:
            found = run(
                each.case,
                each.topology,
                scheme,
                options,
                number + 1000 * k,
                engine=engine,
                placement=each.placement,
                unchecked=True,
            )
            times[engine].append(found.numbers["time_s"])
            walls[engine] += found.numbers["wall_s"]
    means = {engine: None if None in values else float(np.mean(values)) for engine, values in times.items()}
    known = None not in means.values()
    return {
        "pattern": pattern,
        "number": number,
        "scheme": scheme,
        "error": means["fluid"] / means["packet"] - 1.0 if known else None,  # type: ignore[operator]
        "times_s": times,
        "wall_s": walls,
        "says": each.says,
    }


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    share, z2 = hits / count, _NORMAL**2
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = _NORMAL * np.sqrt(share * (1 - share) / count + z2 / (4 * count**2)) / (1 + z2 / count)
    return middle - float(half), middle + float(half)


def group(row: dict[str, Any]) -> str:
    """The scheme; of Swift, whether its target is below a round trip, apart."""
    if row["scheme"] != "swift":
        return row["scheme"]
    each, number = drawn(row["pattern"], row["number"]), row["number"]
    work = each.case.work(each.topology, each.placement, number)
    laid = laid_out(work.graph, each.topology, work.hosts, number, fc.preset("swift", "hpcc-eval").options())
    return "swift, target below the round trip" if beyond_target(laid) else "swift"


def told(rows: list[dict[str, Any]]) -> str:
    """Shares within the bound, by scheme and pattern."""
    lines = []
    groups = [group(row) for row in rows]
    for scheme in sorted(set(groups)):
        for pattern in dict.fromkeys(row["pattern"] for row in rows):
            errors = [
                row["error"]
                for row, mine in zip(rows, groups, strict=True)
                if (mine, row["pattern"]) == (scheme, pattern)
            ]
            if not errors:
                continue
            hits = sum(error is not None and abs(error) <= AIM for error in errors)
            low, high = wilson(hits, len(errors))
            known = np.array([error for error in errors if error is not None])
            worst = f"{known[np.argmax(np.abs(known))]:+.1%}" if len(known) else "none"
            lost = f", {len(errors) - len(known)} not ended" if len(known) < len(errors) else ""
            lines.append(
                f"{scheme:6s} {pattern:10s} {hits:3d} of {len(errors):3d} within 5 %: {hits / len(errors):4.0%} "
                f"({low:.0%} to {high:.0%}), median {np.median(np.abs(known)):.1%}, worst {worst}{lost}"
            )
    return "\n".join(lines)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fluid_collectives", description=__doc__)
    parser.add_argument("--jobs", default=",".join(PATTERNS))
    parser.add_argument("--cases", default=f"0:{CASES}")
    parser.add_argument("--schemes", default=",".join(SCHEMES))
    parser.add_argument("--kept", metavar="FILE.jsonl", help="keep each result there, and go on from those that are")
    parser.add_argument("--again", action="store_true", help="run the fluid anew, beside packets that are kept")
    arguments = parser.parse_args()
    first, last = map(int, arguments.cases.split(":"))
    kept = Path(arguments.kept) if arguments.kept else None
    lines = kept.read_text().splitlines() if kept is not None and kept.exists() else []
    done = {(row["pattern"], row["number"], row["scheme"]): row for row in map(json.loads, lines)}
    rows = []
    for number in range(first, last):
        for pattern in arguments.jobs.split(","):
            each = drawn(pattern, number)
            for scheme in arguments.schemes.split(","):
                before = done.get((pattern, number, scheme))
                row = None if arguments.again else before
                if row is None:
                    began = time.perf_counter()
                    row = measured(each, pattern, number, scheme, before)
                    if kept is not None:
                        with kept.open("a") as file:
                            file.write(json.dumps(row) + "\n")
                    error = "not ended" if row["error"] is None else f"{row['error']:+7.2%}"
                    took = time.perf_counter() - began
                    sys.stdout.write(f"{number:3d} {scheme:6s} {error:9s} {took:5.1f} s  {row['says']}\n")
                    sys.stdout.flush()
                rows.append(row)
    sys.stdout.write(told(rows) + "\n")


if __name__ == "__main__":
    main()
