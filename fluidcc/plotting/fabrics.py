"""Pictures of fabrics, in the style of the papers' evaluations: slowdown by size, queues, what was paused.

An evaluation has a row for each traffic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from fluidcc import units
from fluidcc.plotting.colours import scheme_colours
from fluidcc.plotting.style import Picture, figure, label, legend, nothing, say_coinciding, zeros
from fluidcc.workloads.fabrics.study import LEAST_SEEDS, interval, intervals_of, spread

if TYPE_CHECKING:
    import xarray as xr

    from fluidcc.workloads.fabrics.study import FabricStudy

_MARKS = "os^Dv<>P"
_MOST_TICKS = 10
_BANDS = 4  # an axis of slowdowns ends at so many times the highest line: intervals of few seeds may reach beyond
_NARROW = 10  # an axis of slowdowns that spans less than this factor has more ticks
_PERCENTILES = {"p50": "median", "p95": "95th percentile", "p99": "99th percentile"}
_FAR_APART = 20  # bars of more than that are drawn on a logarithmic axis
Bars = Mapping[str, Mapping[str, np.ndarray]]  # by traffic and scheme, a number of each seed


def plot_slowdowns(study: FabricStudy, bins: Any = 10) -> Picture:
    """Slowdown by flow size: a panel for each percentile, a line for each scheme, 95 % intervals over seeds."""
    found = study.bins(bins)
    picture, axes = figure(1, len(_PERCENTILES), size=(4.1 * len(_PERCENTILES), 3.9), sharey=True)
    for axis, (name, text) in zip(axes[0], _PERCENTILES.items(), strict=True):
        slowdown_panel(axis, found, name)
        axis.set_title(text, fontsize="medium")
    slowdown_axis(axes[0, 0])  # of all three, whose axis is one, and only once all is drawn
    for axis in axes[0]:
        legend(axis, fontsize="small")
    picture.suptitle(_title(study), fontsize="medium")
    return picture


def plot_fabric_queues(study: FabricStudy) -> Picture:
    """Share of time for which ports' queues are longer than something, and how long each tier was paused."""
    paused = any(seconds > 0 for run in study.runs for seconds in run.numbers["paused_s"].values())
    picture, axes = figure(1, 1 + paused, size=(5.5 * (1 + paused), 3.9))
    queue_panel(axes[0, 0], study)
    legend(axes[0, 0], fontsize="small")
    if paused:
        pause_panel(axes[0, 1], study)
        axes[0, 1].legend(fontsize="small")
    else:
        axes[0, 0].set_title("no port was ever paused", fontsize="medium")
    picture.suptitle(_title(study), fontsize="medium", wrap=True)
    return picture


def slowdown_panel(axis: Axes, found: xr.Dataset, name: str) -> None:
    """Draw a percentile of `FabricStudy.bins` by size: a line for each scheme, 95 % intervals over seeds."""
    ends = found["to_bytes"].values[0, 0]
    places = np.arange(len(ends))
    shades = scheme_colours(map(str, found["scheme"].values))
    alpha = min(0.2, 0.7 / len(shades))  # of bands, which lie on each other
    for k, scheme in enumerate(found["scheme"].values):
        values = found[name].sel(scheme=scheme).values
        # Of the logarithms, as the axis has it: an interval of ratios does not reach below 0.
        mean, low, high = np.exp([interval(np.log(column)) for column in values.T]).T
        look = {"color": shades[str(scheme)], "marker": _MARKS[k % len(_MARKS)], "ms": 4, "lw": 1.4}
        axis.plot(places, mean, label=str(scheme), path_effects=[withStroke(linewidth=3, foreground="white")], **look)
        if found.sizes["seed"] >= LEAST_SEEDS:
            axis.fill_between(places, low, high, color=shades[str(scheme)], alpha=alpha, lw=0)
    axis.set_yscale("log")
    step = -(-len(ends) // _MOST_TICKS)
    axis.set_xticks(places[::step], [_short(end) for end in ends[::step]], rotation=45, ha="right")
    axis.set_xlabel("flow size up to")
    axis.grid(alpha=0.3, which="both")


def slowdown_axis(axis: Axes) -> None:
    """Ticks, limits and label of slowdowns, once all is drawn."""
    lines = [line for each in axis.get_shared_y_axes().get_siblings(axis) for line in each.get_lines()]
    highest = max((float(np.nanmax(line.get_ydata(), initial=1.0)) for line in lines), default=1.0)
    axis.set_ylim(0.9, min(axis.get_ylim()[1], _BANDS * highest))
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > _NARROW * low else (1, 1.2, 1.5, 2, 3, 4, 6, 8)))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_ylabel("completion time over that alone [1]")


def longest_queue(study: FabricStudy) -> float:
    """Longest queue of a port in any run [bytes]."""
    return max((float(each.queue[0].max(initial=0.0)) for each in study.runs), default=0.0)


def queue_panel(axis: Axes, study: FabricStudy, longest: float | None = None) -> None:
    """Draw the share of time and ports for which queues are longer than something, all seeds together.

    Panels side by side share the unit of the longest of all queues.
    """
    factor, unit = units.scale_of(longest_queue(study) if longest is None else longest, units.SIZE)
    shades = scheme_colours(study.schemes)
    for scheme in study.schemes:
        lengths, above = queues_above(study, scheme)
        axis.plot(lengths / factor, above, color=shades[scheme], lw=1.4, drawstyle="steps-post", label=scheme)
    axis.set_yscale("log")
    axis.set_ylim(1e-5, 1)
    axis.set_xlabel(label("queue of a switch's port", unit or "B"))
    axis.set_ylabel("share of time and ports above [1]")
    axis.grid(alpha=0.3)


def queues_above(study: FabricStudy, scheme: str) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of all seeds' queues together [bytes], and the share of time above each."""
    queue = np.concatenate([each.queue for each in study.of(scheme)], axis=1)
    order = np.argsort(queue[0], kind="stable")
    share = queue[1, order] / queue[1].sum()
    return np.concatenate([[0.0], queue[0, order]]), np.concatenate([[1.0], np.maximum(1 - np.cumsum(share), 1e-12)])


def pause_panel(axis: Axes, study: FabricStudy) -> None:
    """Draw how long each tier's ports were paused, with 95 % intervals over seeds."""
    tiers = list(study.runs[0].numbers["paused_s"])
    width = 0.8 / len(study.schemes)
    most, shades = 0.0, scheme_colours(study.schemes)
    for k, scheme in enumerate(study.schemes):
        each = np.array([[run.numbers["paused_s"][tier] for tier in tiers] for run in study.of(scheme)])
        mean, low, high = np.array([interval(column) for column in each.T]).T
        bars = np.arange(len(tiers)) + (k - (len(study.schemes) - 1) / 2) * width
        known = len(study.seeds) >= LEAST_SEEDS
        errors = np.stack([np.minimum(mean, mean - low), high - mean]) * 1e3 if known else None
        zeros(axis, axis.bar(bars, mean * 1e3, width, yerr=errors, color=shades[scheme], capsize=2, label=scheme))
        most = max(most, float(mean.max()))
    axis.set_xticks(np.arange(len(tiers)), ["tier 1 (ToR)" if tier == "tier 1" else str(tier) for tier in tiers])
    axis.set_ylabel(label("time paused by PFC, all ports together", "ms"))
    axis.grid(alpha=0.3, axis="y")
    if most == 0:
        nothing(axis, "no port was ever paused")


def _short(size: float) -> str:
    return units.show(float(size), units.SIZE, 3)


def _title(study: FabricStudy) -> str:
    seeds = f", {intervals_of(len(study.seeds), 'bands: 95 % intervals')}"
    unfinished = sum(each.slowdown.unfinished for each in study.runs)
    lost = f"; {unfinished:,} flows unfinished, in no mean" if unfinished else ""
    return f"{len(study.topology.hosts)} hosts, {study.says}{seeds}{lost}"


def plot_evaluation(
    studies: Mapping[str, FabricStudy],
    edges: Any,
    title: str,
    *,
    percentiles: Sequence[str] = ("p95",),
    bars: tuple[Bars, str, str] | None = None,
    paused: bool = True,
) -> Picture:
    """Draw several traffics under the same schemes.

    Parameters
    ----------
    studies : mapping
        By the name of their traffic.
    edges : sequence of quantity
        Ends of bins, as of `FabricStudy.bins`.
    title : str
    percentiles : sequence of str
        A panel each.
    bars : tuple, optional
        Numbers, what they are, and their unit.
    paused : bool
        Whether there is a panel of PAUSE time.
    """
    columns = len(percentiles) + (bars is not None) + 1 + paused
    picture, axes = figure(len(studies), columns, size=(3.9 * columns, 0.5 + 3.5 * len(studies)))
    longest = max(map(longest_queue, studies.values()))
    for row, (traffic, study) in zip(axes, studies.items(), strict=True):
        panels = iter(row)
        found = study.bins(edges)
        for name in percentiles:
            axis = next(panels)
            slowdown_panel(axis, found, name)
            slowdown_axis(axis)
            say_coinciding(axis)
            axis.set_title(f"{traffic}: {_PERCENTILES[name]}", fontsize="medium")
        if bars is not None:
            numbers, text, unit = bars
            axis = next(panels)
            bar_panel(axis, numbers[traffic])
            axis.set_ylabel(label(text, unit))
        axis = next(panels)
        queue_panel(axis, study, longest)
        say_coinciding(axis)
        if paused:
            axis = next(panels)
            pause_panel(axis, study)
            axis.set_ylabel(label("time paused, all ports together", "ms"), fontsize="small")
    lines, names = axes[0, 0].get_legend_handles_labels()
    picture.legend(lines, names, loc="outside lower center", ncols=len(names), fontsize="medium")
    picture.suptitle(title, fontsize="medium")
    return picture


def bar_panel(axis: Axes, numbers: Mapping[str, np.ndarray]) -> None:
    """Draw a bar for each scheme, of the mean over seeds with its 95 % interval."""
    found = np.array([list(spread(values).values()) for values in numbers.values()])
    apart = found[:, 0].min() > 0 and found[:, 0].max() > _FAR_APART * found[:, 0].min()
    shades = scheme_colours(numbers)
    for k, (name, (mean, low, high)) in enumerate(zip(numbers, found, strict=True)):
        errors = None if np.isnan(low) else [[mean - low], [high - mean]]
        zeros(axis, axis.bar(k, mean, 0.7, yerr=errors, color=shades[name], capsize=3, log=apart))
    axis.set_xticks(range(len(numbers)), list(numbers), rotation=45, ha="right")
    axis.grid(alpha=0.3, axis="y")
    if not found.any():
        nothing(axis, "none in any run")
