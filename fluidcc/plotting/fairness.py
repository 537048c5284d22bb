"""Pictures of the two rules over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc import units
from fluidcc.plotting.style import Picture, colour, figure, label, scaled

if TYPE_CHECKING:
    from fluidcc.theory.fairness.queue import SharedDecrease
    from fluidcc.theory.fairness.rates import DecreaseRates

_STYLE = {"per RTT": "--", "sampling": "-"}
_MOST_LINES = 6  # more flows are drawn without a legend


def plot_decrease(run: DecreaseRates, *, title: str | None = None) -> Picture:
    """Rates, the difference (2) compares and its lead, and the ratio, over time."""
    data = run.dataset
    picture, axes = figure(3, 1, sharex=True)
    rates, lead, ratio = axes[:, 0]
    time, unit = scaled(data.time.values, units.TIME)
    draw_rates(rates, time, data)
    draw_lead(lead, time, data)
    draw_ratio(ratio, time, data)
    ratio.set_xlabel(label("time", unit))
    _finish(picture, axes, "Decrease per RTT and by sampling" if title is None else title)
    return picture


def plot_shared(run: SharedDecrease, *, title: str | None = None) -> Picture:
    """Rates, queue and ratio over time."""
    data = run.dataset
    picture, axes = figure(3, 1, sharex=True)
    rates, queue, ratio = axes[:, 0]
    time, unit = scaled(data.time.values, units.TIME)
    draw_rates(rates, time, data)
    values, suffix = scaled(data.queue.values, units.SIZE)
    for k, (rule, style) in enumerate(_STYLE.items()):
        queue.plot(time, values[k], "k", ls=style, lw=1.2, label=rule)
    queue.set_ylabel(label("queue", suffix))
    draw_ratio(ratio, time, data)
    ratio.set_xlabel(label("time", unit))
    _finish(picture, axes, "Decrease per RTT and by sampling, each in a queue" if title is None else title)
    return picture


def draw_rates(axis: Any, time: np.ndarray, data: Any) -> None:
    """Rate of each flow by each rule."""
    values, suffix = scaled(data.rate.values, units.RATE)
    flows = values.shape[-1]
    for k, (rule, style) in enumerate(_STYLE.items()):
        for j in range(flows):
            text = f"flow {j}, {rule}" if flows <= _MOST_LINES else None
            axis.plot(time, values[k, :, j], color=colour(j), ls=style, lw=1.2, label=text)
    axis.set_ylabel(label("rate", suffix))


def draw_lead(axis: Any, time: np.ndarray, data: Any) -> None:
    """(2) over time, with the zero that it crosses."""
    values, suffix = scaled(data.lead.values, units.RATE)
    axis.plot(time, values, "k", lw=1.2, label="(2): positive where sampling is fairer by difference")
    axis.axhline(0, color="0.5", lw=0.8)
    axis.set_ylabel(label("lead of sampling", suffix))


def draw_ratio(axis: Any, time: np.ndarray, data: Any) -> None:
    """Largest over smallest rate."""
    for k, (rule, style) in enumerate(_STYLE.items()):
        axis.plot(time, data.ratio.values[k], color=colour(2), ls=style, lw=1.2, label=rule)
    axis.set_ylabel("largest over smallest rate")
    axis.set_ylim(bottom=1 - 0.04 * float(data.ratio.max() - 1))


def _finish(picture: Picture, axes: np.ndarray, title: str) -> None:
    for axis in axes[:, 0]:
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize="small", ncols=2)
    axes[0, 0].set_ylim(bottom=0)
    picture.suptitle(title)
