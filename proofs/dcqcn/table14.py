"""DCQCN's Table 14 (printed as Figure 14): what each of its six values does, and where the settings settle.

Each parameter is varied on its own over a grid around the printed value, with 2 and with 8 senders that start
as in Figure 11, half of them at line rate and half at 0. The fixed points are those of section 5.1.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import xarray as xr
from matplotlib.ticker import NullLocator
from scipy.optimize import brentq

from fluidcc import units
from fluidcc.builders import incast
from fluidcc.files import write_atomically
from fluidcc.plotting.style import Picture, label
from fluidcc.plotting.style import figure as new_figure
from fluidcc.proofs import papers
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, LINE_RATE, WIDTH
from fluidcc.proofs.verdict.figure import Check, Figure, Result, printed, reproduces
from fluidcc.scenario.model import Scenario
from fluidcc.schemes.dcqcn import PRESETS
from fluidcc.studies.sweeps import SweepResult, sweep
from fluidcc.theory.control.equilibrium import equilibrium

SCHEME, MARKING = PRESETS["paper"][:2]
UNTIL, UNTIL_QUICK = 200e-3, 60e-3  # s; the window is the second half
SENDERS = (2.0, 8.0)
LARGEST = 20  # senders, in the picture of the fixed points


class Axis(NamedTuple):
    """A parameter of Table 14: values as ticks, the printed one, and the quantity they are."""

    text: str
    dimension: str
    printed: str
    ticks: tuple[str, ...]

    def values(self, between: int) -> np.ndarray:
        """The ticks, and so many values evenly between two of them in the logarithm."""
        at = [units.parse(tick, self.dimension) for tick in self.ticks]
        parts = [np.geomspace(a, b, between + 2)[:-1] for a, b in itertools.pairwise(at)]
        return np.concatenate([*parts, at[-1:]])


AXES = {
    "timer": Axis("timer T", units.TIME, "55us", ("55us", "110us", "220us", "440us", "1.5ms")),
    "byte_counter": Axis("byte counter B", units.SIZE, "10MB", ("150KB", "500KB", "2MB", "10MB", "40MB")),
    "kmax": Axis("Kmax", units.SIZE, "200KB", ("50KB", "100KB", "200KB", "400KB", "800KB")),
    "kmin": Axis("Kmin", units.SIZE, "5KB", ("1KB", "5KB", "20KB", "50KB", "150KB")),
    "pmax": Axis("Pmax", units.RATIO, "1%", ("0.2%", "1%", "5%", "20%", "100%")),
    "g": Axis("g", units.RATIO, "1/256", ("1/4096", "1/1024", "1/256", "1/64", "1/16")),
}
METRICS = {
    "queue_bytes.mean": ("mean queue", "KB", 1e3),
    "utilisation": ("utilisation", "", 1.0),
    "rate_gap_bytes_per_s": ("difference of\nthe mean rates", "Gbps", GBPS),
}


@reproduces("dcqcn-table14", papers.DCQCN, "Figure 14 (table): what each parameter does")
def make_table14(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make both pictures and the table."""
    between = 0 if quick else 2
    grid = {name: axis.values(between) for name, axis in AXES.items()}
    until = UNTIL_QUICK if quick else UNTIL
    result = _sweep(grid, until)
    fixed_points = [_fixed_point(float(n)) for n in range(2, LARGEST + 1)]
    values, expected = _verdicts(fixed_points)
    values |= _at_table(result, grid)
    error = [float(result.dataset.attrs[f"discretisation_error.{key}"]) for key in ("queue_rel", "rate_rel")]
    values |= dict(zip(("discretisation_error_queue_rel", "discretisation_error_rate_rel"), error, strict=True))
    if not quick:
        fixed_point = expected["fixed_point_2_queue_bytes"].value
        why = "the simulated queue settles at the fixed point; 0.1 % for what is left of the way there at 100 ms"
        expected["table14_2_senders_queue_mean_bytes"] = Check(fixed_point, 1e-3 * fixed_point, why)
    notes = ["one parameter varied at a time; half of the senders start at 40 Gb/s, half at 0; second half of the run"]
    if quick:
        notes.append(f"quick: the ticks only, {UNTIL_QUICK * 1e3:g} ms in place of {UNTIL * 1e3:g}: not yet settled")
    files = (
        _draw(result, grid, until).write(folder / f"{figure.name}.png"),
        _draw_fixed_points(fixed_points).write(folder / f"{figure.name}-fixed-points.png"),
        _write(result, grid, folder / f"{figure.name}.csv"),
    )
    return Result(
        figure,
        values,
        expected,
        files,
        tuple(notes),
        sample=sample.fluid(until, result.dataset.sizes["case"] * len(SENDERS), since=until / 2),
    )


# -- the sweep -----------------------------------------------------------------------------------------------


def _sweep(grid: dict[str, np.ndarray], until: float) -> SweepResult:
    """Sweep all single-parameter lines at once, over their cases, so that there is one compile."""
    table = _cases(grid)

    def scenario(case: Any, senders: Any) -> Scenario:
        at = {name: jnp.asarray(column)[jnp.asarray(case).astype(int)] for name, column in table.items()}
        marking = dataclasses.replace(MARKING, **{name: at[name] for name in ("kmin", "kmax", "pmax")})
        scheme = dataclasses.replace(SCHEME, **{name: at[name] for name in ("timer", "byte_counter", "g")})
        return incast(2, scheme=scheme, marking=marking, initial_rate=[LINE_RATE, 0.0], multiplicity=senders / 2)

    cases = len(next(iter(table.values())))
    return sweep(scenario, {"case": np.arange(cases), "senders": np.array(SENDERS)}, until=until)


def _cases(grid: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A row per value of each parameter, the others as in Table 14."""
    base = {name: units.parse(axis.printed, axis.dimension) for name, axis in AXES.items()}
    rows = [base | {name: value} for name, values in grid.items() for value in values]
    return {name: np.array([row[name] for row in rows]) for name in AXES}


def _line(result: SweepResult, grid: dict[str, np.ndarray], name: str, metric: str) -> xr.DataArray:
    """A metric over one parameter, (values, senders)."""
    first = sum(len(values) for values in list(grid.values())[: list(grid).index(name)])
    return result[metric][first : first + len(grid[name])]


def _at_table(result: SweepResult, grid: dict[str, np.ndarray]) -> dict[str, float]:
    """Metrics at Table 14 itself."""
    at = int(np.argmin(np.abs(grid["g"] - units.parse(AXES["g"].printed, units.RATIO))))
    found = {}
    for k, n in enumerate(SENDERS):
        queue, used, gap = (float(_line(result, grid, "g", metric)[at, k]) for metric in METRICS)
        name = f"table14_{n:.0f}_senders"
        found |= {f"{name}_queue_mean_bytes": queue, f"{name}_utilisation": used, f"{name}_gap_bytes_per_s": gap}
    return found


# -- fixed points --------------------------------------------------------------------------------------------


def _fixed_point(senders: float) -> dict[str, Any]:
    return {"senders": senders, **equilibrium(incast(1, multiplicity=senders)).as_dict()}


def _verdicts(fixed_points: list[dict[str, Any]]) -> tuple[dict[str, float | bool], dict[str, Check]]:
    by_count = {int(fixed_point["senders"]): fixed_point for fixed_point in fixed_points}
    kmin, pmax = (units.parse(AXES[name].printed, AXES[name].dimension) for name in ("kmin", "pmax"))
    last: Any = brentq(lambda n: _fixed_point(n)["marking_probability"] - pmax, 2.0, LARGEST, xtol=1e-10)
    values: dict[str, float | bool] = {}
    for n in (2, 8):
        values[f"fixed_point_{n}_marking_probability"] = by_count[n]["marking_probability"]
        values[f"fixed_point_{n}_queue_bytes"] = by_count[n]["queue_bytes"]
    values |= {
        "fixed_point_2_alpha": by_count[2]["alpha"],
        "fixed_point_2_target_rate_bytes_per_s": by_count[2]["target_rate_bytes_per_s"],
        "senders_where_p_is_pmax": last,
        "most_senders_with_fixed_point": float(max(n for n, fixed_point in by_count.items() if fixed_point["exists"])),
        "p_below_1_percent_at_14": by_count[14]["marking_probability"] < pmax,
        "p_below_1_percent_at_15": by_count[15]["marking_probability"] < pmax,
        **{f"queue_over_kmin_{n}_senders": by_count[n]["queue_bytes"] / kmin for n in (2, 4, 5, 10)},
    }
    crossing = by_count[4]["queue_bytes"] < 10 * kmin < by_count[5]["queue_bytes"]
    values["queue_passes_10_kmin_between_4_and_5_senders"] = crossing
    why = "independent root of (7)-(9); half its last digit"
    expected = {
        "fixed_point_2_marking_probability": printed(7.7698863e-4, 1e-11, 0.0, why),
        "fixed_point_2_queue_bytes": printed(20.151278e3, 1e-3, 0.0, why),
        "fixed_point_2_alpha": printed(0.10136422, 1e-8, 0.0, why),
        "fixed_point_2_target_rate_bytes_per_s": printed(20.21798986 * GBPS, 1e-8 * GBPS, 0.0, why),
        "fixed_point_8_marking_probability": printed(4.5521115e-3, 1e-10, 0.0, why),
        "fixed_point_8_queue_bytes": printed(93.766173e3, 1e-3, 0.0, why),
        "senders_where_p_is_pmax": printed(14.963, 1e-3, 0.0, why),
        "p_below_1_percent_at_14": Check(True, 0, "section 5.1: p is less than 1 %"),
        "p_below_1_percent_at_15": Check(False, 0, "against section 5.1: beyond Pmax (5) jumps to 1, no fixed point"),
        "queue_over_kmin_2_senders": printed(4.0, 1.0, 0.0, "independent: 4x at 2 senders"),
        "queue_passes_10_kmin_between_4_and_5_senders": Check(
            True, 0, "section 5.2: one order of magnitude above Kmin; independent: for about 4 to 10 senders"
        ),
    }
    return values, expected


# -- files ---------------------------------------------------------------------------------------------------


def _write(result: SweepResult, grid: dict[str, np.ndarray], path: Path) -> Path:
    """A row per parameter, value and number of senders; SI."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    columns = ("queue_mean_bytes", "utilisation", "rate_gap_bytes_per_s")
    writer.writerow(["parameter", "value", "unit", "senders", *columns])
    for name, values in grid.items():
        lines = [_line(result, grid, name, metric).values for metric in METRICS]
        for i, value in enumerate(values):
            for k, n in enumerate(SENDERS):
                cells = (repr(float(line[i, k])) for line in lines)
                writer.writerow([name, repr(float(value)), AXES[name].dimension, int(n), *cells])
    return write_atomically(path, text.getvalue().encode())


def _draw(result: SweepResult, grid: dict[str, np.ndarray], until: float) -> Picture:
    picture, axes = new_figure(len(METRICS), len(AXES), size=(WIDTH + 2, 7.0), sharey="row", sharex="col")
    for column, (name, spec) in enumerate(AXES.items()):
        for row, (metric, (text, unit, scale)) in enumerate(METRICS.items()):
            axis = axes[row, column]
            for k, n in enumerate(SENDERS):
                line = _line(result, grid, name, metric).values[:, k] / scale
                axis.plot(grid[name], line, marker="o", ms=3, lw=1.2, label=f"{n:.0f} senders")
            axis.axvline(units.parse(spec.printed, spec.dimension), color="0.4", lw=0.9, ls="--", label="Table 14")
            axis.grid(alpha=0.3)
            axis.set_xscale("log")
            ticks = [units.parse(tick, spec.dimension) for tick in spec.ticks]
            axis.xaxis.set_ticks(ticks, spec.ticks, rotation=60)
            axis.xaxis.set_minor_locator(NullLocator())
            if column == 0:
                axis.set_ylabel(label(text, unit))
            if metric == "rate_gap_bytes_per_s":
                axis.set_yscale("symlog", linthresh=0.01)
                axis.set_ylim(0, 40)
                axis.set_xlabel(spec.text)
    axes[0, 0].set_ylim(bottom=0)
    handles, texts = axes[0, 0].get_legend_handles_labels()
    picture.legend(handles, texts, loc="outside upper right", ncols=3)
    picture.suptitle(f"DCQCN Table 14: one parameter at a time, second half of {until * 1e3:g} ms", x=0.05, ha="left")
    return picture


def _draw_fixed_points(fixed_points: list[dict[str, Any]]) -> Picture:
    picture, axes = new_figure(1, 2, size=(WIDTH, 4.4))
    left, right = axes[0]
    count = np.array([fixed_point["senders"] for fixed_point in fixed_points])
    exists = np.array([fixed_point["exists"] for fixed_point in fixed_points])
    marks = np.array([fixed_point["marking_probability"] for fixed_point in fixed_points]) * 100
    queues = np.array([fixed_point["queue_bytes"] for fixed_point in fixed_points]) / 1e3
    for axis, values in ((left, marks), (right, queues)):
        axis.plot(count[exists], values[exists], "o-", color="C0", ms=4, label="fixed point")
        axis.plot(count[~exists], values[~exists], "o--", color="0.6", ms=4, label="none: line beyond Kmax")
        axis.set(xlabel="senders", ylim=(0, None), xticks=range(2, LARGEST + 1, 2))
        axis.grid(alpha=0.3)
    left.axhline(1.0, color="C3", lw=0.9, ls=":", label="Pmax")
    left.set_ylabel(label("marking probability", "%"))
    right.axhline(200, color="C3", lw=0.9, ls=":", label="Kmax")
    right.axhline(50, color="C2", lw=0.9, ls=":", label="10 Kmin")
    right.set_ylabel(label("queue", "KB"))
    left.legend()
    right.legend()
    picture.suptitle("DCQCN Table 14: fixed points")
    return picture
