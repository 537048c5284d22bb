"""Pictures of collectives: which rank sends when, and how full links are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator

from fluidcc import units
from fluidcc.plotting.colours import scheme_colours
from fluidcc.plotting.style import Picture, figure, label, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fluidcc.workloads.collectives.run import CollectiveRun
    from fluidcc.workloads.collectives.study import CollectiveStudy

_MOST_BARS = 40_000  # that are drawn: of as many ranks, evenly spaced, as have no more
_THICK = 0.84  # of a row
_TOUCH = 1e-6  # of the time: bars that overlap by less follow each other


def plot_steps(study: CollectiveStudy, case: str) -> Picture:
    """A Gantt chart for each scheme, of the first seed: a row for each rank, a bar for each transfer that it sends.

    A bar ends as its last packet leaves; pale it goes on until that has arrived, or, hatched, until the run is over.
    """
    runs = [study.of(scheme, case)[0] for scheme in study.schemes]
    ends = max(map(_end, runs))
    factor, unit = units.scale_of(ends, units.TIME)
    shades = ScalarMappable(
        Normalize(0, max(int(run.transfers["step"].values.max(initial=0)) for run in runs)), "viridis"
    )
    picture, axes = figure(len(runs), 1, size=(9, 0.9 + 2.5 * len(runs)), sharex=True)
    for axis, run in zip(axes[:, 0], runs, strict=True):
        _gantt(axis, run, factor, shades)
        axis.set_title(f"{run.scheme}: {_told(run)}", fontsize="medium", loc="left")
    axes[-1, 0].set_xlabel(label("time", unit))
    axes[-1, 0].set_xlim(0, ends / factor or 1)
    if shades.norm.vmax:
        picture.colorbar(shades, ax=axes, label="step", ticks=MaxNLocator(integer=True))
    text = f"{study.says[study.cases.index(case)]}: sent, and pale on the way, seed {runs[0].seed}"
    picture.suptitle(text, fontsize="medium", parse_math=False)  # it may be a file's name
    return picture


def _end(run: CollectiveRun) -> float:
    """Return when all was done, or when the run ended if some was not [s]."""
    total = run.numbers["total_s"]
    return float(run.numbers["until_s"] if total is None else total)


def _gantt(axis: Axes, run: CollectiveRun, factor: float, shades: ScalarMappable) -> None:
    """Bars of transfers that a rank sends at once share its row."""
    shown, every, _ = drawn_of(run)
    table = run.transfers.isel(transfer=shown)
    rank, starts, left, arrived = (table[name].values for name in ("rank", "began", "left", "arrived"))
    over = np.full(len(rank), _end(run))
    gone, lacking = np.where(np.isfinite(left), left, starts), ~np.isfinite(arrived)
    lane, lanes = lanes_of(rank, starts, np.where(np.isfinite(left), left, over))
    row = _THICK * every
    thick = row / lanes
    low, colours = rank - row / 2 + lane * thick, shades.to_rgba(table["step"].values)

    def add(chosen: np.ndarray, begins: np.ndarray, ends: np.ndarray, **drawn: Any) -> None:
        x, y = (begins / factor, ends / factor), (low, low + thick)
        corners = np.stack([np.stack([x[a], y[b]], axis=1) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))], axis=1)
        if chosen.any():
            axis.add_collection(PolyCollection([*corners[chosen]], facecolors=colours[chosen], **drawn))

    add(lacking, gone, over, alpha=0.35, hatch="////", linewidths=0.3)
    add(~lacking, gone, arrived, alpha=0.35, linewidths=0)  # on the way
    add(gone > starts, starts, gone, alpha=0.9, linewidths=0)
    jobs = run.transfers["job"].values
    for job in np.unique(jobs)[1:]:
        axis.axhline(run.transfers["rank"].values[jobs == job].min() - 0.5, color="black", lw=0.8)
    axis.set_ylim(int(run.transfers["rank"].values.max(initial=0)) + 0.6 * every, -0.6 * every)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylabel("rank" if len(np.unique(jobs)) < 2 else "rank, by job")


def drawn_of(run: CollectiveRun) -> tuple[np.ndarray, int, int]:
    """Transfers that are drawn: all that began, or those of every so many-th rank, which is the second; of how many."""
    began, ranks = np.isfinite(run.transfers["began"].values), run.transfers["rank"].values
    count = np.bincount(ranks[began], minlength=int(ranks.max(initial=0)) + 1)
    every = 1
    while every < len(count) and count[::every].sum() > _MOST_BARS:
        every += 1
    shown = np.flatnonzero(began & (ranks % every == 0))
    return shown[:_MOST_BARS], every, int(began.sum())


def lanes_of(rank: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lane of each bar in its rank's row, and of how many: as many as overlap there until all have ended (bars,)."""
    lane, lanes = np.zeros(len(rank), int), np.ones(len(rank), int)
    group: list[int] = []  # bars that overlap each other, in turn
    free: list[float] = []  # when each lane is free
    for k in np.lexsort((ends, starts, rank)).tolist():
        slack = _TOUCH * ends[k]
        if not group or rank[group[0]] != rank[k] or starts[k] >= max(free) - slack:
            lanes[group] = len(free)
            group, free = [], []
        lane[k] = next((n for n, end in enumerate(free) if end <= starts[k] + slack), len(free))
        at = int(lane[k])
        free[at : at + 1] = [float(ends[k])]
        group.append(k)
    lanes[group] = len(free)
    return lane, lanes


def plot_load(study: CollectiveStudy, case: str) -> Picture:
    """Load of links over time, a panel for each tier and a line for each scheme: their mean, and the fullest thin."""
    runs = [study.of(scheme, case)[0] for scheme in study.schemes]
    shades, tiers = scheme_colours(study.schemes), [str(tier) for tier in runs[0].load["tier"].values]
    ends = max(float(run.load["time"].values.max(initial=0.0)) for run in runs)
    factor, unit = units.scale_of(ends, units.TIME)
    picture, axes = figure(len(tiers), 1, size=(9, 0.9 + 2.0 * len(tiers)), sharex=True, sharey=True)
    for axis, tier in zip(axes[:, 0], tiers, strict=True):
        for run in runs:
            times, load = run.load["time"].values / factor, run.load.sel(tier=tier)
            axis.plot(times, load["mean"].values, color=shades[run.scheme], lw=1.5, label=run.scheme)
            axis.plot(times, load["most"].values, color=shades[run.scheme], lw=0.5, alpha=0.6)
        axis.set_title(tier, fontsize="medium", loc="left")
        axis.set_ylabel("sent over rate [1]")
        axis.set_ylim(0, 1.05)
        axis.grid(alpha=0.3)
    legend(axes[0, 0], fontsize="small")
    axes[-1, 0].set_xlabel(label("time", unit))
    what = "mean of links in use, and the fullest (thin); hosts' own are not there"
    text = f"{study.says[study.cases.index(case)]}: {what}, seed {runs[0].seed}"
    picture.suptitle(text, fontsize="medium", parse_math=False)
    return picture


def _told(run: CollectiveRun) -> str:
    shown, every, bars = drawn_of(run)
    if len(shown) == bars:
        return _took(run)
    ranks = f", every {every}th rank" if every > 1 else ""
    return f"{_took(run)} ({len(shown):,} of {bars:,} transfers{ranks})"


def _took(run: CollectiveRun) -> str:
    took = run.numbers["time_s"]
    if took is None:
        return f"{run.numbers['unfinished']:,} transfers unfinished"
    rate = run.numbers["bus_bandwidth_bytes_per_s"]
    bus = "" if rate is None else f", bus bandwidth {units.show(rate, units.RATE, 3)}"
    return f"{units.show(took, units.TIME, 3)}{bus}"
