"""DCQCN Figure 11: how far apart two flows stay, against one parameter at a time (section 5.2).

One flow starts at 40 Gb/s, the other at 0, both with alpha = 1; 200 ms, the first 10 ms left out. The figure's
own text is not in our copy of the paper. Section 5.2 calls the strawman the "innermost edge" of (a), so each
panel is read as: the strawman (B = 150 KB, T = 1.5 ms, Kmin = Kmax = 40 KB, Pmax = 1, g = 1/16) with its
parameter varied; (d), where Pmax means nothing unless Kmax > Kmin, at Kmax = 200 KB. A second reading is drawn
as a line: (b) with the byte counter of 10 MB that the text recommends beside a fast timer, (c) and (d) with
Kmin = 5 KB.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.ticker import NullLocator

from fluidcc import units
from fluidcc.builders import incast
from fluidcc.engines.run import simulate
from fluidcc.plotting.style import figure as new_figure
from fluidcc.plotting.style import label
from fluidcc.proofs import papers
from fluidcc.proofs.dcqcn.fig11_checks import (
    CONVERGED,
    LAST,
    OMITTED,
    PROBES,
    SAMPLED,
    STEP_MARKING,
    STRAWMAN,
    UNTIL,
    Variant,
    cell,
    numbers,
    strawman,
)
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.runs import GBPS, LINE_RATE, WIDTH, save, side_by_side, variable
from fluidcc.proofs.verdict.figure import Figure, Result, reproduces
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import RED
from fluidcc.studies.sweeps import sweep

VALUES, VALUES_QUICK = 17, 5  # of the parameter, in the heat map
COARSE, FINE, FINE_QUICK = 1e-6, 0.25e-6, 0.5e-6  # steps [s]; picture and data use the first
DRAWN = 0.5e-3  # s, between columns of the heat map
DENSITY = 4  # intervals of the line per interval of the heat map


class Panel(NamedTuple):
    """One of the four panels: what is varied, over which ticks (the ends are the range), and what stays."""

    name: str
    text: str
    dimension: str
    ticks: tuple[str, ...]
    log: bool
    held: str
    readings: dict[str, Callable[[Any], Variant]]  # the first is the heat map's

    def values(self, count: int) -> np.ndarray:
        """Values from end to end."""
        low, high = (units.parse(tick, self.dimension) for tick in (self.ticks[0], self.ticks[-1]))
        return np.geomspace(low, high, count) if self.log else np.linspace(low, high, count)


PANELS = {
    "dcqcn-fig11a": Panel(
        "byte_counter",
        "byte counter B",
        units.SIZE,
        ("150KB", "500KB", "1MB", "2MB", "5MB", "10MB"),
        True,
        "T = 1.5 ms, Kmin = Kmax = 40 KB, Pmax = 1, g = 1/16",
        {"strawman": lambda x: (strawman(byte_counter=x), STEP_MARKING)},
    ),
    "dcqcn-fig11b": Panel(
        "timer",
        "timer T",
        units.TIME,
        ("55us", "100us", "200us", "400us", "800us", "1.5ms"),
        True,
        "B = 150 KB (or 10 MB), Kmin = Kmax = 40 KB, Pmax = 1, g = 1/16",
        {
            "B = 150 KB": lambda x: (strawman(timer=x), STEP_MARKING),
            "B = 10 MB": lambda x: (strawman(timer=x, byte_counter="10MB"), STEP_MARKING),
        },
    ),
    "dcqcn-fig11c": Panel(
        "kmax",
        "Kmax",
        units.SIZE,
        ("40KB", "100KB", "200KB", "300KB", "400KB"),
        False,
        "B = 150 KB, T = 1.5 ms, Kmin = 40 KB (or 5 KB), Pmax = 1, g = 1/16",
        {
            "Kmin = 40 KB": lambda x: (STRAWMAN, RED("40KB", x, 1.0)),
            "Kmin = 5 KB": lambda x: (STRAWMAN, RED("5KB", x, 1.0)),
        },
    ),
    "dcqcn-fig11d": Panel(
        "pmax",
        "Pmax",
        units.RATIO,
        ("0.1%", "1%", "5%", "10%", "30%", "100%"),
        True,
        "B = 150 KB, T = 1.5 ms, Kmin = 40 KB (or 5 KB), Kmax = 200 KB, g = 1/16",
        {
            "Kmin = 40 KB": lambda x: (STRAWMAN, RED("40KB", "200KB", x)),
            "Kmin = 5 KB": lambda x: (STRAWMAN, RED("5KB", "200KB", x)),
        },
    ),
}


@reproduces("dcqcn-fig11a", papers.DCQCN, "Figure 11(a): convergence against the byte counter")
@reproduces("dcqcn-fig11b", papers.DCQCN, "Figure 11(b): convergence against the timer")
@reproduces("dcqcn-fig11c", papers.DCQCN, "Figure 11(c): convergence against Kmax")
@reproduces("dcqcn-fig11d", papers.DCQCN, "Figure 11(d): convergence against Pmax")
def make_fig11(figure: Figure, folder: Path, quick: bool) -> Result:
    """Make one of the four figures."""
    panel, probe = PANELS[figure.name], PROBES[figure.name]
    count, fine = (VALUES_QUICK, FINE_QUICK) if quick else (VALUES, FINE)
    grid = [variant(float(x)) for variant in panel.readings.values() for x in panel.values(count)]
    checked = probe.variants(quick)
    # The coarse run holds all; only what is checked is run again at the finer step.
    coarse, finer = _run([*grid, *checked.values()], COARSE), _run([*checked.values()], fine)
    found = {name: numbers(finer, k) for k, name in enumerate(checked)}
    before = {name: numbers(coarse, len(grid) + k) for k, name in enumerate(checked)}
    error = {name: {key: at[key] - before[name][key] for key in at} for name, at in found.items()}
    values, expected = probe.judge(found, error)
    surface = _surface(panel, count, coarse)
    if quick:
        lines = _coarse_lines(panel, count, coarse)
    else:
        lines = {name: _line(panel, variant, count) for name, variant in panel.readings.items()}
    data = surface.assign(
        {f"last_gap_{i}": line.assign_attrs(reading=name) for i, (name, line) in enumerate(lines.items())}
    )
    picture = _draw(panel, surface, lines, f"DCQCN {figure.figure}")
    ran = len(grid) + len(checked) + (0 if quick else sum(line.size for line in lines.values()))
    files = (picture.write(folder / f"{figure.name}.png"), save(data, folder / f"{figure.name}.nc"))
    return Result(
        figure,
        values,
        expected,
        files,
        _notes(panel, quick),
        sample=sample.fluid(UNTIL, ran, since=LAST),
    )


def _notes(panel: Panel, quick: bool) -> tuple[str, ...]:
    read = f"read as: {panel.text} varied, {panel.held}; the figure's own text is not in our copy of the paper"
    if not quick:
        return (read,)
    steps = [units.show(step, units.TIME) for step in (FINE_QUICK, FINE)]
    less = (
        f"quick: {VALUES_QUICK} values in place of {VALUES} (of {DENSITY * (VALUES - 1) + 1} in the line), "
        f"finest step {steps[0]} in place of {steps[1]}"
    )
    return (read, f"{less}; Pmax checked on fewer settings" if panel.name == "pmax" else less)


def _run(variants: list[Variant], step: float) -> Trace:
    """Simulate all settings side by side, in one run."""
    scenario = side_by_side([cell(variant) for variant in variants])
    return simulate(scenario, UNTIL, window=(LAST, UNTIL), dt=step, sample_interval=SAMPLED, estimate_error=False)


def _surface(panel: Panel, count: int, trace: Trace) -> xr.Dataset:
    """R_1 - R_2 over time for each value under the first reading."""
    every = round(DRAWN / SAMPLED)
    rates = trace["rate"].values[::every, : 2 * count].reshape(-1, count, 2)
    axis = variable(panel.name, panel.values(count), panel.dimension, panel.text)
    return xr.Dataset(
        {"gap": variable(("time", panel.name), rates[..., 0] - rates[..., 1], "bytes/s", "R_1 - R_2")},
        {"time": trace["time"][::every], panel.name: axis},
    )


_LAST_GAP = {"units": "bytes/s", "long_name": "difference of the mean rates of the last 20 ms"}


def _coarse_lines(panel: Panel, count: int, trace: Trace) -> dict[str, xr.DataArray]:
    """Compute `_line`'s differences for all readings, at the values that have already run."""
    means = np.array(trace.summary["rate_bytes_per_s"])[: 2 * count * len(panel.readings)].reshape(-1, count, 2)
    gaps = np.abs(means[..., 0] - means[..., 1])
    axis = {panel.name: panel.values(count)}
    return {name: xr.DataArray(row, axis, attrs=_LAST_GAP) for name, row in zip(panel.readings, gaps, strict=True)}


def _line(panel: Panel, variant: Callable[[Any], Variant], count: int) -> xr.DataArray:
    """Difference of the mean rates of the last 20 ms, at more values than the surface has."""
    fine = f"{panel.name}_fine"

    def pair(**swept: Any) -> Any:
        scheme, marking = variant(swept[fine])
        return incast(2, scheme=scheme, marking=marking, initial_rate=[LINE_RATE, 0.0])

    axis = {fine: panel.values(DENSITY * (count - 1) + 1)}
    found = sweep(pair, axis, until=UNTIL, window=(LAST, UNTIL), dt=COARSE, estimate_error=False)
    return found["rate_gap_bytes_per_s"].assign_attrs(_LAST_GAP)


def _draw(panel: Panel, surface: xr.Dataset, lines: dict[str, xr.DataArray], title: str) -> Any:
    picture, axes = new_figure(1, 2, size=(WIDTH, 5.0), width_ratios=(1.25, 1))
    left, right = axes[0]
    shown = surface.sel(time=slice(OMITTED, None))
    gap = np.abs(shown["gap"].values.T) / GBPS
    time, values = shown["time"].values * 1e3, shown[panel.name].values
    mesh = left.pcolormesh(time, values, gap, cmap="viridis_r", vmin=0, vmax=40, shading="nearest", rasterized=True)
    picture.colorbar(mesh, ax=left, label=label("difference of the rates", "Gbps"))
    first = next(iter(lines))
    left.set(xlabel=label("time", "ms"), ylabel=panel.text, title=f"over time, {first}")
    for name, line in lines.items():
        right.plot(line[line.dims[0]].values, line.values / GBPS, marker="o", ms=2.5, lw=1.2, label=name)
    right.axhline(CONVERGED / GBPS, color="0.4", lw=0.8, ls="--", label="counts as converged")
    right.set(xlabel=panel.text, ylabel=label("difference of the mean rates", "Gbps"), ylim=(0, 40))
    right.set_title("over the last 20 ms")
    right.legend()
    right.grid(alpha=0.3)
    if panel.log:
        left.set_yscale("log")
        right.set_xscale("log")
    ticks = [units.parse(tick, panel.dimension) for tick in panel.ticks]
    for axis in (left.yaxis, right.xaxis):
        axis.set_ticks(ticks, panel.ticks)
        axis.set_minor_locator(NullLocator())
    picture.suptitle(f"{title}\n{panel.held}", fontsize="large")
    return picture
