"""Pictures of traces, and of fluid traces over packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from fluidcc import units
from fluidcc.plotting.style import Picture, figure, label, scaled

if TYPE_CHECKING:
    from fluidcc.results.comparison import Comparison
    from fluidcc.results.trace import Trace

_MOST_LINES = 12  # flows drawn one by one; more become a band


def plot_trace(trace: Trace, *, title: str | None = None) -> Picture:
    """Queue of every link and rate of every flow over time.

    Parameters
    ----------
    trace : Trace
    title : str

    Returns
    -------
    Picture
    """
    return plot_traces({"": trace}, title=title or trace.dataset.attrs.get("title", ""))


def plot_traces(traces: dict[str, Trace], *, title: str = "") -> Picture:
    """Several traces in one picture, for comparison; queues above, rates below."""
    picture, axes = figure(2, 1, sharex=True)
    top, bottom = axes[0, 0], axes[1, 0]
    queue_unit = scaled(np.concatenate([t["queue"].values.ravel() for t in traces.values()]), units.SIZE)[1]
    rate_unit = scaled(np.concatenate([t["rate"].values.ravel() for t in traces.values()]), units.RATE)[1]
    end = max(float(t["time"][-1]) for t in traces.values())
    second, time_unit = units.scale_of(end, units.TIME)
    for i, (name, trace) in enumerate(traces.items()):
        time = trace["time"].values / second
        queues = trace["queue"].values / units.parse(f"1{queue_unit}", units.SIZE)
        prefix = f"{name}: " if name else ""
        for k, link in enumerate(trace["link"].values):
            top.plot(time, queues[:, k], lw=1.2, color=f"C{i + k}", label=f"{prefix}{link}")
        _draw_rates(
            bottom, time, trace, units.parse(f"1{rate_unit}", units.RATE), prefix, i if len(traces) > 1 else None
        )
    top.set_ylabel(label("queue", queue_unit))
    bottom.set_ylabel(label("rate per flow", rate_unit))
    bottom.set_xlabel(label("time", time_unit))
    for axis in (top, bottom):
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        if len(axis.get_legend_handles_labels()[0]) > 1:
            axis.legend(fontsize="small", ncols=2)
    picture.suptitle(title)
    return picture


def _draw_rates(axis: Axes, time: np.ndarray, trace: Trace, scale: float, prefix: str, colour: int | None) -> None:
    rates = trace["rate"].values / scale
    names = trace["flow"].values
    if rates.shape[1] > _MOST_LINES:
        shade = f"C{colour or 0}"
        axis.fill_between(time, rates.min(axis=1), rates.max(axis=1), alpha=0.3, color=shade, lw=0)
        axis.plot(time, rates.mean(axis=1), color=shade, lw=1.2, label=f"{prefix}{rates.shape[1]} flows: mean, range")
        return
    for k in range(rates.shape[1]):
        shade = f"C{k}" if colour is None else f"C{colour}"
        axis.plot(
            time,
            rates[:, k],
            lw=1.2,
            color=shade,
            label=names[k] if colour is None else f"{prefix}each flow" if k == 0 else None,
        )


def plot_comparison(comparison: Comparison, *, title: str | None = None) -> Picture:
    """One engine over the mean, the standard deviation and the range of another's runs; queue above, rates below.

    Parameters
    ----------
    comparison : Comparison
    title : str

    Returns
    -------
    Picture
    """
    data = comparison.dataset
    second, time_unit = units.scale_of(float(data.time[-1]), units.TIME)
    time = data.time.values / second
    picture, axes = figure(2, 1, sharex=True)
    for axis, name, text, dimension in (
        (axes[0, 0], "queue", "queue", units.SIZE),
        (axes[1, 0], "rate", "rate per flow", units.RATE),
    ):
        fluid, packet = (data[f"{name}_{engine}"] for engine in comparison.engines)
        if "seed_first" in fluid.dims:
            fluid = fluid.mean("seed_first")
        factor, unit = units.scale_of(float(max(fluid.max(), packet.max())), dimension)
        fluid, packet = fluid / factor, packet / factor
        if "flow" in fluid.dims and fluid.sizes["flow"] > _MOST_LINES:
            text = f"mean rate of {fluid.sizes['flow']} flows"
            fluid, packet = (part.weighted(data.multiplicity).mean("flow") for part in (fluid, packet))
        if "flow" not in fluid.dims:
            fluid, packet = fluid.expand_dims("flow", -1), packet.expand_dims("flow", -1)
        for k in range(fluid.sizes["flow"]):
            _draw_ensemble(axis, time, fluid[:, k].values, packet[:, :, k].values, k, comparison.engines)
        axis.set_ylabel(label(text, unit))
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="small", ncols=2)
    axes[1, 0].set_xlabel(label("time", time_unit))
    shown = title if title is not None else f"{data.attrs['title'].rpartition(', ')[0]}: queue of {data.attrs['link']}"
    picture.suptitle(shown)
    return picture


def _draw_ensemble(
    axis: Axes, time: np.ndarray, line: np.ndarray, runs: np.ndarray, k: int, engines: tuple[str, str]
) -> None:
    """One engine's line over the bands and the mean of another's runs (seeds, times)."""
    mean, std, shade, seeds = runs.mean(axis=0), runs.std(axis=0), f"C{k}", len(runs)
    name = {"packet": "packets"}.get(engines[1], engines[1])
    if seeds > 1:
        band = {"color": shade, "lw": 0}
        whole = f"{name}, range of {seeds} seeds"
        axis.fill_between(time, runs.min(axis=0), runs.max(axis=0), alpha=0.12, label=whole, **band)
        axis.fill_between(time, mean - std, mean + std, alpha=0.25, label=f"{name}, standard deviation", **band)
    axis.plot(time, mean, color=shade, lw=0.8, alpha=0.7, label=name + (", mean" if seeds > 1 else ""))
    axis.plot(time, line, color="black", lw=1.0, label=engines[0])
