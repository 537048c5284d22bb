"""Tune the samples with other rate timers of the NIC: ``python -m benchmarks.timers [FOLDER ...] [--timers US ...]``.

With the byte counter off a flow climbs by the timer alone. For each timer the demo's search finds its own thresholds,
Pmax and g; packets run them in the demo's 30 cases, and its trial runs them on a fabric.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import fluidcc as fc
from examples import demo
from fluidcc.builders.names import format_value
from fluidcc.cli.contenders import WORKLOAD, tried
from fluidcc.operators.nvidia_settings import NEVER
from fluidcc.studies.tuning.trial import RECOMMENDED
from fluidcc.units import show

MEASURES = ("p99_small", "p99_large", "p50_largest")


def row(folder: Path, timer: float, evaluations: int) -> list[str]:
    """Tune with a timer [s], try the setting, and return cells of the table."""
    files = (folder / "config_db.json", folder / "nic.txt")
    found = fc.audit(*files, flows=demo.FLOWS)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    samples = [demo.HERE / "leaf-100g", demo.HERE / "fabric-400g"]
    parser.add_argument("folders", nargs="*", type=Path, default=samples)
    parser.add_argument("--timers", nargs="*", type=float, default=[300, 150, 100, 75], metavar="US")
    parser.add_argument("--evaluations", type=int, default=100)
    options = parser.parse_args()
    columns = ("sample", "timer", "setting", "p99", "utilisation", "Jain", "PAUSEs", "p99 to 100 KB",
               "p99 beyond 1 MB", "p50 beyond 10 MB")  # fmt: skip
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    for folder in options.folders:
        for timer in options.timers:
            print(f"| {' | '.join(row(folder, timer / 1e6, options.evaluations))} |", flush=True)


if __name__ == "__main__":
    main()
