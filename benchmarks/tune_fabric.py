"""Race settings on a fabric against ten times as many runs of random settings: ``python -m benchmarks.tune_fabric``.

Random settings all get as many seeds as the race gives its finalists, and the best of them is chosen by the same rule.
Both winners then run with seeds that neither was chosen by. The aim: the race's is no worse, within the intervals.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scipy.stats import qmc

from fluidcc.cli import tune_fabric as cli
from fluidcc.cli.contenders import contenders, read, with_values
from fluidcc.studies.tuning import on_fabric
from fluidcc.studies.tuning.on_fabric import told, tune_fabric
from fluidcc.studies.tuning.race import CHOOSING, OBJECTIVES, RUNGS, Racer, Rule
from fluidcc.studies.tuning.space import Space, space_of
from fluidcc.workloads.fabrics.shapes import named_topology
from fluidcc.workloads.fabrics.topology import Topology

HERE = Path(__file__).parents[1] / "examples"
OVER = ["kmin", "kmax", "pmax", "g"]
_FRESH, _SEEDS = 9000, 16


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=HERE / "fabric-400g")
    parser.add_argument("--topology", default="leaf-spine:4x4x8")
    parser.add_argument("--workload", default="web-search")
    parser.add_argument("--packet-size", default="4096")
    parser.add_argument("--settings", type=int, default=40)
    parser.add_argument("--times", type=float, default=10.0, help="as many runs of random settings; 0: none")
    parser.add_argument("--seeds", nargs="*", type=int, default=[1], help="of the draws")
    options = parser.parse_args()
    files = [str(options.folder / name) for name in ("config_db.json", "nic.txt")]
    sent = contenders(["dcqcn"], "hpcc-eval", None, read(files, None), options.packet_size)
    base = next(iter(sent.options.values()))
    network = named_topology(options.topology, **sent.rates(options.topology, {}))
    bounds = cli._bounds("dcqcn", OVER, network.host_rate, [base])
    traffic = {"workload": options.workload, "load": "50%", "until": None, "collective": None, "bytes": None}
    cases = cli._cases(traffic, [], network, sent)

    def make(**values: float) -> dict[str, Any]:
        return with_values("dcqcn", base, [f"{name}={cli._text(name, value)}" for name, value in values.items()])

    print(
        "| search | runs | CPU s | wall s | setting | p99 to 100 KB | p99 beyond 1 MB |\n|---|---|---|---|---|---|---|"
    )
    for seed in options.seeds:
        began, used = time.perf_counter(), _cpu()
        found = tune_fabric(
            make, bounds, network, cases=cases, settings=options.settings, seed=seed,
            start=cli._present("dcqcn", base, OVER, network.host_rate),
        )  # fmt: skip
        best = None if found.best is None else found.proofs[found.best]
        _told(f"race, seed {seed}", found.runs, began, used, best, make, network, cases)
        if options.times == 0:
            continue
        began, used = time.perf_counter(), _cpu()
        runs = on_fabric._Runs(make, network, {}, cases, {}, 0)
        racers = _random(space_of(bounds), runs, int(options.times * found.runs / sum(RUNGS) / len(cases)), seed)
        kept = Rule(OBJECTIVES).kept(racers)
        _told(f"{len(racers)} at random", runs.count, began, used, kept[0] if kept else None, make, network, cases)


def _random(space: Space, runs: Any, count: int, seed: int) -> list[Racer]:
    places = qmc.LatinHypercube(len(space.variables), rng=1000 + seed).random(count)
    points = {f"r{k}": space.point(row) for k, row in enumerate(places)}
    with runs.bar:
        found = runs.measure(points, range(CHOOSING + 1, CHOOSING + 1 + sum(RUNGS)))
    return [Racer(name, points[name], each) for name, each in found.items()]


def _told(
    what: str,
    count: int,
    began: float,
    used: float,
    best: Racer | None,
    make: Any,
    network: Topology,
    cases: list[dict[str, Any]],
) -> None:
    spent = f"{_cpu() - used:.0f} | {time.perf_counter() - began:.0f}"
    if best is None:
        print(f"| {what} | {count} | {spent} | none | | |", flush=True)
        return
    fresh = on_fabric._Runs(make, network, {}, cases, {}, 0).measure(
        {"best": best.point}, range(_FRESH + 1, _FRESH + 1 + _SEEDS)
    )
    ratios = Racer("best", best.point, fresh["best"]).ratios(0)
    cells = [_cell(ratios[name]) for name in ("slowdown.small.p99", "slowdown.large.p99")]
    print(f"| {what} | {count} | {spent} | {told(best.point)} | {' | '.join(cells)} |", flush=True)


def _cell(ratio: Mapping[str, float]) -> str:
    return f"{ratio['mean']:.3f} ({ratio['low']:.3f}–{ratio['high']:.3f})"


def _cpu() -> float:
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])


if __name__ == "__main__":
    main()
