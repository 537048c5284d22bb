"""Pictures of collectives: which rank sends when, and how full links are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.collections import PolyCollection
from matplotlib.ticker import MaxNLocator

from fluidcc import units
from fluidcc.plotting.style import Picture, colour, figure, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fluidcc.collectives.run import CollectiveRun
    from fluidcc.collectives.study import CollectiveStudy

_MOST_BARS = 40_000  # that are drawn, those of the first repetitions
_THICK = 0.84


def plot_steps(study: CollectiveStudy, case: str) -> Picture:
    """A Gantt chart for each scheme, of the first seed: a row for each rank, a bar for each transfer that it sends."""
    runs = [study.of(scheme, case)[0] for scheme in study.schemes]
    ends = max(float(np.nanmax(run.transfers["finished"].values, initial=0.0)) for run in runs)
    factor, unit = units.scale_of(ends, units.TIME)
    picture, axes = figure(len(runs), 1, size=(9, 0.9 + 2.5 * len(runs)), sharex=True)
    for axis, run in zip(axes[:, 0], runs, strict=True):
        _gantt(axis, run, factor)
        axis.set_title(f"{run.scheme}: {_told(run)}", fontsize="medium", loc="left")
    axes[-1, 0].set_xlabel(label("time", unit))
    axes[-1, 0].set_xlim(0, ends / factor or 1)
    picture.suptitle(f"{study.says[study.cases.index(case)]}: colours by step, seed {runs[0].seed}", fontsize="medium")
    return picture


def _gantt(axis: Axes, run: CollectiveRun, factor: float) -> None:
    """Bars of transfers that overlap at one rank share its row."""
    table = run.transfers.isel(transfer=np.flatnonzero(np.isfinite(run.transfers["finished"].values)))
    table = table.isel(transfer=slice(_MOST_BARS))
    rank, step = table["rank"].values, table["step"].values
    began, ended = table["began"].values / factor, table["finished"].values / factor
    shades = colormaps["viridis"](step / max(1, int(step.max(initial=1))))
    low = rank - _THICK / 2
    corners = np.stack(
        [
            np.stack([x, y], axis=1)
            for x, y in ((began, low), (ended, low), (ended, low + _THICK), (began, low + _THICK))
        ],
        axis=1,
    )
    axis.add_collection(PolyCollection([*corners], facecolors=shades, alpha=0.75, linewidths=0))
    jobs = run.transfers["job"].values
    for job in np.unique(jobs)[1:]:
        axis.axhline(run.transfers["rank"].values[jobs == job].min() - 0.5, color="black", lw=0.8)
    axis.set_ylim(int(run.transfers["rank"].values.max(initial=0)) + 0.6, -0.6)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylabel("rank" if len(np.unique(jobs)) < 2 else "rank, by job")


def plot_load(study: CollectiveStudy, case: str) -> Picture:
    """Load of links over time, a panel for each tier and a line for each scheme: their mean, and the fullest thin."""
    runs = [study.of(scheme, case)[0] for scheme in study.schemes]
    tiers = [str(tier) for tier in runs[0].load["tier"].values]
    ends = max(float(run.load["time"].values.max(initial=0.0)) for run in runs)
    factor, unit = units.scale_of(ends, units.TIME)
    picture, axes = figure(len(tiers), 1, size=(9, 0.9 + 2.0 * len(tiers)), sharex=True, sharey=True)
    for axis, tier in zip(axes[:, 0], tiers, strict=True):
        for k, run in enumerate(runs):
            times, load = run.load["time"].values / factor, run.load.sel(tier=tier)
            axis.plot(times, load["mean"].values, color=colour(k), lw=1.5, label=run.scheme)
            axis.plot(times, load["most"].values, color=colour(k), lw=0.5, alpha=0.6)
        axis.set_title(tier, fontsize="medium", loc="left")
        axis.set_ylabel("sent over rate")
        axis.set_ylim(0, 1.05)
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="small")
    axes[-1, 0].set_xlabel(label("time", unit))
    text = f"{study.says[study.cases.index(case)]}: mean of links, and the fullest (thin), seed {runs[0].seed}"
    picture.suptitle(text, fontsize="medium")
    return picture


def _told(run: CollectiveRun) -> str:
    took = run.numbers["time_s"]
    if took is None:
        return f"{run.numbers['unfinished']:,} transfers unfinished"
    rate = run.numbers["bus_bandwidth_bytes_per_s"]
    bus = "" if rate is None else f", bus bandwidth {units.show(rate, units.RATE, 3)}"
    return f"{units.show(took, units.TIME, 3)}{bus}"
