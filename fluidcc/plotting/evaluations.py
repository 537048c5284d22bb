"""Pictures of papers' evaluations: a row for each traffic; slowdowns by size, bars, queues, what was paused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.plotting.colours import scheme_colours
from fluidcc.plotting.fabrics import longest_queue, pause_panel, queue_panel, slowdown_axis, slowdown_panel
from fluidcc.plotting.style import Picture, figure, label, nothing, say_coinciding, zeros
from fluidcc.workloads.fabrics.study import spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fluidcc.workloads.fabrics.study import FabricStudy

_PERCENTILES = {"p50": "median", "p95": "95th percentile", "p99": "99th percentile"}
_FAR_APART = 20  # bars of more than that are drawn on a logarithmic axis
Bars = Mapping[str, Mapping[str, np.ndarray]]  # by traffic and scheme, a number of each seed


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
