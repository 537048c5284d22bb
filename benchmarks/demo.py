"""Try the demo's answers with other seeds, in cases that nobody asked for, and with other rate timers of the NIC.

    python -m benchmarks.demo seeds [FOLDER ...] [--seeds 1 2 3]
    python -m benchmarks.demo cases [FOLDER ...] [--flows N ...] [--bursts N ...] [--seeds N]
    python -m benchmarks.demo timers [FOLDER ...] [--timers US ...] [--evaluations K]

Seeds: luck would find another queue with each seed of the search. The aim: packets confirm every answer, and the
largest 99th percentile of the queue is at most a quarter above the least.

Cases: `make demo`'s search, then its present setting and its best in packets of 1024 and 4096 B, with 2, 8 and 32
senders that begin at line rate and send bursts of 1, 4 and 16. Stated before measuring: in no case is the best below
its bounds where it was confirmed, or below the present setting in a burst of 16.

Timers: with the byte counter off a flow climbs by the timer alone. For each timer the search finds its own thresholds,
Pmax and g; packets run them in the demo's 30 cases, and its trial runs them on a fabric.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import fluidcc as fc
from examples import demo
from fluidcc.builders.names import format_value
from fluidcc.cli.trial import WORKLOAD, tried
from fluidcc.operators.nvidia_settings import NEVER
from fluidcc.studies.tuning.cases import length
from fluidcc.studies.tuning.trial import RECOMMENDED
from fluidcc.units import show

SAMPLES = [demo.HERE / "leaf-100g", demo.HERE / "fabric-400g"]
FIRST_SEED, SEEDS = 11, 2
MEASURES = ("p99_small", "p99_large", "p50_largest")


def audited(folder: Path) -> fc.Audit:
    return fc.audit(folder / "config_db.json", folder / "nic.txt", flows=demo.FLOWS)


def head(columns: Sequence[str]) -> str:
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def seeds(folders: list[Path], chosen: list[int]) -> None:
    print(head(("sample", "seed", "setting", "p99", "utilisation", "Jain", "confirmed")))
    for folder in folders:
        found = audited(folder)
        for seed in chosen:
            tuned = demo.tune(found, 100, seed)
            worst = tuned.best.metrics
            told = f"{show(worst['queue_bytes.p99'], 'bytes', 3)} | {worst['utilisation']:.3f} | {worst['jain']:.3f}"
            point = ", ".join(f"{name} {format_value(name, value)}" for name, value in tuned.best.point.items())
            print(f"| {folder.name} | {seed} | {point} | {told} | {tuned.confirmed} |", flush=True)


def figures(found: fc.Audit, point: dict[str, float], case: dict[str, int], seeds: int = SEEDS) -> np.ndarray:
    """Utilisation, 99th percentile [bytes], Jain's index and PAUSEs of each seed, (seed, 4)."""
    until = length(found.switch.rate, max(found.payloads)) * max(1.0, case["flows"] / 8)  # as the demo's
    rows = list[tuple[float, float, float, float]]()
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        scenario = demo.scenario_of(found, **point, **case, begin="line")
        run = fc.simulate(scenario, until, engine="packet", seed=seed, sample_interval=until).summary
        rows.append((run["utilisation"], run["queue_bytes"]["p99"], run["jain"], run["pfc_pauses"]))
    return np.array(rows)


def cases(folders: list[Path], flow_counts: list[int], bursts: list[int], seeds: int) -> None:
    for folder in folders:
        found = audited(folder)
        tuned = demo.tune(found, 100)
        assert tuned.start is not None
        print(f"\n{folder.name}: present {tuned.start.point}\nbest {tuned.best.point}, {demo.summary_of(tuned)}\n")
        columns = ("packets", "senders", "bursts", "setting", "utilisation (least)", "p99", "Jain (least)", "PAUSEs",
                   f"Jain below {demo.FAIR}")  # fmt: skip
        print(head(columns))
        for size, flows, burst in itertools.product((1024, 4096), flow_counts, bursts):
            for name, each in (("present", tuned.start), ("best", tuned.best)):
                case = {"packet_size": size, "flows": flows, "burst": burst}
                runs = figures(found, each.point, case, seeds)
                (used, queue, fair, pauses), least = runs.mean(axis=0), runs.min(axis=0)
                told = f"{used:.3f} ({least[0]:.3f}) | {show(queue, 'bytes', 3)} | {fair:.3f} ({least[2]:.3f}) | "
                told += f"{pauses:.0f} | {np.mean(runs[:, 2] < demo.FAIR):.0%} |"
                print(f"| {size} B | {flows} | {burst} | {name} | {told}", flush=True)


def row(folder: Path, timer: float, evaluations: int) -> list[str]:
    """Tune with a timer [s], try the setting, and return cells of the table."""
    files = (folder / "config_db.json", folder / "nic.txt")
    found = audited(folder)
    nic = {"byte_counter": NEVER, "timer": timer}
    demo.registers = lambda _: nic
    tuned = demo.tune(found, evaluations)
    queue, used, fair, pauses = (
        demo.worst(tuned, "best", each)[0] for each in ("queue_bytes.p99", "utilisation", "jain", "pfc_pauses")
    )
    cells = [
        folder.name,
        show(timer, "s"),
        ", ".join(format_value(name, value) for name, value in tuned.best.point.items()),
        f"{show(queue, 'bytes', 3)}{'' if tuned.confirmed else ', not confirmed'}",
        f"{used:.3f}",
        f"{fair:.2f}",
        f"{pauses:.0f}",
    ]
    trial = tried("dcqcn", files, {**tuned.best.point, **nic}, make=demo.maker_of(found), tuned=tuned).trial
    if trial is not None:
        ratios = {each.measure: each.ratio(RECOMMENDED) for each in trial.of(WORKLOAD) if each.measure in MEASURES}
        cells += ["{mean:.2f} ({low:.2f}–{high:.2f})".format(**ratios[each]) for each in MEASURES]
    return cells


def timers(folders: list[Path], chosen: list[float], evaluations: int) -> None:
    columns = ("sample", "timer", "setting", "p99", "utilisation", "Jain", "PAUSEs", "p99 to 100 KB",
               "p99 beyond 1 MB", "p50 beyond 10 MB")  # fmt: skip
    print(head(columns), flush=True)
    for folder in folders:
        for timer in chosen:
            print(f"| {' | '.join(row(folder, timer / 1e6, evaluations))} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    given = parser.add_subparsers(dest="what", required=True)
    of = {name: given.add_parser(name) for name in ("seeds", "cases", "timers")}
    for each in of.values():
        each.add_argument("folders", nargs="*", type=Path, default=SAMPLES)
    of["seeds"].add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3, 4, 5])
    of["cases"].add_argument("--flows", nargs="*", type=int, default=list(demo.FLOW_COUNTS))
    of["cases"].add_argument("--bursts", nargs="*", type=int, default=[1, 4, 16])
    of["cases"].add_argument("--seeds", type=int, default=SEEDS)
    of["timers"].add_argument("--timers", nargs="*", type=float, default=[300, 150, 100, 75], metavar="US")
    of["timers"].add_argument("--evaluations", type=int, default=100)
    options = parser.parse_args()
    if options.what == "seeds":
        seeds(options.folders, options.seeds)
    elif options.what == "cases":
        cases(options.folders, options.flows, options.bursts, options.seeds)
    else:
        timers(options.folders, options.timers, options.evaluations)


if __name__ == "__main__":
    main()
