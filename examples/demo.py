"""What to change on a switch: audit its configuration, sweep around it, compare it with the best setting.

Reads examples/leaf-100g (or another folder with config_db.json and nic.txt), writes pictures and data into out/.

    python examples/demo.py [FOLDER] [--out DIR]
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table

import fluidcc as fc
from fluidcc import units
from fluidcc.cli.audit import print_audit
from fluidcc.plotting.sweeps import format_value, plot_sweep
from fluidcc.plotting.traces import plot_traces

FLOWS = 8  # seven from the start, one that joins at 10 ms, all at line rate
UNTIL, WINDOW = "50ms", ("25ms", "50ms")
USED, FAIR = 0.99, 0.95  # a setting must keep this share of the link busy, and reach this Jain index
METRIC = "queue_bytes.p95"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "leaf-100g")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    console = Console(highlight=False)
    began = time.perf_counter()

    console.rule("1. What the switch and the NIC are set to")
    found = fc.audit(options.folder / "config_db.json", options.folder / "nic.txt", flows=FLOWS)
    print_audit(found)
    port, red, g = found.switch, found.switch.red, found.scheme.g
    if red is None:
        raise fc.InputError(f"{port.source}: queue {port.queue} of {port.name} has no WRED profile to sweep around")

    def make(kmin: float, kmax: float, pmax: float, g: float) -> fc.Scenario:
        return found.scenario(
            flows=2,
            multiplicity=[FLOWS - 1.0, 1.0],
            start=["0s", "10ms"],
            marking=fc.RED(kmin, kmax, pmax),
            scheme=dataclasses.replace(found.scheme, g=g),
        )

    present = {"kmin": red.kmin, "kmax": red.kmax, "pmax": red.pmax, "g": g}
    over = {
        "kmin": red.kmin * 2.0 ** np.arange(-6, 1),
        "kmax": red.kmax * 2.0 ** np.arange(-4, 2),
        "pmax": np.unique([red.pmax, 0.01, 0.1, 0.2, 0.5]),
        "g": np.unique([g, 1 / 1024, 1 / 512, 1 / 64, 1 / 16, 1 / 4]),
    }
    console.rule("2. Settings around it")
    result = fc.sweep(make, over, until=UNTIL, window=WINDOW)
    attrs = result.dataset.attrs
    rate = f"{attrs['points_per_s']:,.0f} settings/s, compiling {attrs['compile_s']:.1f} s"
    console.print(f"{result.points:,} settings of {UNTIL} each, {result.failed} infeasible (Kmin > Kmax); {rate}")
    good = (result["utilisation"] >= USED) & (result["jain"] >= FAIR)
    here = {name: int(np.argmin(np.abs(result.dataset[name].values - value))) for name, value in present.items()}
    best = best_point(result, good)
    rank, among = rank_of(result, good, here)

    picture = plot_sweep(result, METRIC, best=best, mark=present)
    picture.write(options.out / "heatmap.png")
    result.save(options.out / "sweep.nc")
    result.save(options.out / "sweep.csv")

    console.rule("3. The present setting against the best")
    traces = {
        name: fc.simulate(make(**values), UNTIL, window=WINDOW)
        for name, values in (("present", present), ("best", best))
    }
    plot_traces(traces, title=f"{port.name}: {FLOWS} flows into {units.show(port.rate, units.RATE)}").write(
        options.out / "present-vs-best.png"
    )
    edge = [name for name in present if best[name] in (over[name][0], over[name][-1])]
    for name, trace in traces.items():
        trace.save(options.out / f"{name}.nc")
    print_comparison(console, present, best, traces)
    console.print(
        f"the present setting ranks {rank} of {among} "
        f"(first those that use >= {USED:.0%} of the link with Jain >= {FAIR}, by queue p95; then by utilisation)"
    )
    if edge:
        console.print(f"the best {', '.join(edge)} lie at the end of their range: a sweep beyond may find better")
    console.print(f"pictures and data: {options.out}/  ({time.perf_counter() - began:.0f} s)")


def best_point(result: fc.SweepResult, good: xr.DataArray) -> dict[str, float]:
    """Setting with the lowest 95th percentile of the queue among the good ones, or the most used link if none is."""
    values = result[METRIC].where(good) if bool(good.any()) else -result["utilisation"]
    at = values.argmin(dim=result.names, skipna=True)
    return {name: float(result.dataset[name][int(at[name])]) for name in result.names}


def rank_of(result: fc.SweepResult, good: xr.DataArray, here: dict[str, int]) -> tuple[int, int]:
    """Rank of a grid point: good ones first, by queue; then the rest, by utilisation."""
    queue, used = result[METRIC], result["utilisation"]
    valid = result["reason"] == 0
    if bool(good.isel(here)):
        better = good & (queue < queue.isel(here))
    else:
        better = good | (valid & (used > used.isel(here)))
    return 1 + int(better.sum()), int(valid.sum())


def print_comparison(
    console: Console, present: dict[str, float], best: dict[str, float], traces: dict[str, fc.Trace]
) -> None:
    """A row per setting and per metric."""
    table = Table(box=None, header_style="bold")
    for column, side in (("", "left"), ("present", "right"), ("best", "right"), ("change", "left")):
        table.add_column(column, justify=side)  # type: ignore[arg-type]
    for name, value in present.items():
        same = np.isclose(value, best[name])
        change = "keep" if same else f"set to {format_value(name, best[name])} (x {best[name] / value:.3g})"
        table.add_row(name, format_value(name, value), format_value(name, best[name]), change)
    before, after = (traces[name].summary for name in ("present", "best"))
    rows = [
        (f"queue {p}", before["queue_bytes"][p], after["queue_bytes"][p], units.SIZE) for p in ("mean", "p95", "p99")
    ]
    rows += [("utilisation", before["utilisation"], after["utilisation"], units.RATIO)]
    rows += [("Jain index", before["jain"], after["jain"], units.RATIO)]
    table.add_section()
    for name, old, new, dimension in rows:
        change = f"x {new / old:.3g}" if old else ""
        table.add_row(name, units.show(old, dimension), units.show(new, dimension), change)
    console.print(table)


if __name__ == "__main__":
    main()
