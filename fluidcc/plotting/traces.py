"""Pictures of traces, and of fluid traces over packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from fluidcc import units
from fluidcc.builders import toml_file
from fluidcc.plotting.style import Picture, colour, figure, label, scaled

if TYPE_CHECKING:
    from collections.abc import Iterator

    import xarray as xr

    from fluidcc.results.comparison import Comparison
    from fluidcc.results.trace import Trace
    from fluidcc.theory.control.equilibrium import Equilibrium

_MOST_LINES = 12  # flows drawn one by one; more become a band
_DWARFS = 3.0  # times the largest queue of the window: a start's that leaves nothing of it to be seen
_ROOM = 1.85  # times what comes after the start: the inset is above it
_NEAR = 1.6  # times what is drawn: thresholds within it are drawn too


def plot_trace(trace: Trace, *, title: str | None = None, equilibrium: Equilibrium | None = None) -> Picture:
    """Queue of every link and rate of every flow over time.

    Where the start's queue dwarfs what comes later, the axes show the latter, and an inset the whole. Kmin and Kmax are
    lines where queues come near them.

    Parameters
    ----------
    trace : Trace
    title : str
    equilibrium : Equilibrium, optional
        Drawn as lines.

    Returns
    -------
    Picture
    """
    picture, axes = figure(2, 1, sharex=True)
    top, bottom = axes[0, 0], axes[1, 0]
    second, time_unit = units.scale_of(float(trace["time"][-1]), units.TIME)
    time = trace["time"].values / second
    late = time >= trace.summary["window_s"][0] / second
    queues = trace["queue"].values
    peak, calm = float(queues.max(initial=0.0)), float(queues[late].max(initial=0.0))
    dwarfed = calm > 0 and peak > _DWARFS * calm
    byte, queue_unit = units.scale_of(calm if dwarfed else peak, units.SIZE)
    rate, rate_unit = units.scale_of(float(trace["rate"].max()), units.RATE)
    for k, link in enumerate(trace["link"].values):
        top.plot(time, queues[:, k] / byte, lw=1.2, color=colour(k), label=link)
    _draw_rates(bottom, time, trace, rate)
    if dwarfed:
        top.set_ylim(top=_ROOM * calm / byte)
        _inset(top, time, queues, [colour(k) for k in range(queues.shape[1])])
    _thresholds(top, trace, byte)
    if equilibrium is not None and equilibrium.exists:
        found = equilibrium.as_dict()
        levels = [(top, link["queue_bytes"] / byte) for link in found["links"]]
        levels += [(bottom, each / rate) for each in {flow["rate_bytes_per_s"] for flow in found["flows"]}]
        for axis, level in levels:
            axis.axhline(level, color="black", ls="-.", lw=1.0, label="equilibrium")
    top.set_ylabel(label("queue", queue_unit))
    bottom.set_ylabel(label("rate per flow", rate_unit))
    bottom.set_xlabel(label("time", time_unit))
    for axis in (top, bottom):
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        handles = {text: handle for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)}
        if len(handles) > 1:
            axis.legend(
                handles.values(), handles.keys(), fontsize="small", ncols=2, loc="upper left" if axis is top else "best"
            )
    picture.suptitle(title or trace.dataset.attrs.get("title", ""))
    return picture


def _inset(axis: Axes, time: np.ndarray, queues: np.ndarray, colours: list[str]) -> None:
    """The whole run's queues (times, lines), small, where the axes show what comes after the start."""
    small = axis.inset_axes((0.66, 0.56, 0.32, 0.34))
    values, unit = scaled(queues, units.SIZE)
    for k, shade in enumerate(colours):
        small.plot(time, values[:, k], lw=0.8, color=shade)
    small.set_title(f"whole run [{unit}]", fontsize="x-small", pad=2)
    small.tick_params(labelsize="x-small")


def _thresholds(axis: Axes, trace: Trace, byte: float) -> None:
    """Kmin and Kmax of the links that mark, as far as they are on the axes or near."""
    most = _NEAR * axis.get_ylim()[1]
    links = {link.name: link for link in toml_file.from_toml(trace.dataset.attrs["scenario"]).links}
    markings = [links[name].marking for name in trace["link"].values if name in links]
    for name, style in (("kmin", ":"), ("kmax", "--")):
        for level in sorted({float(getattr(each, name)) / byte for each in markings if each is not None}):
            if level <= most:
                axis.axhline(level, color="0.4", ls=style, lw=1.0, label=f"K{name[1:]}")


def _draw_rates(axis: Axes, time: np.ndarray, trace: Trace, scale: float) -> None:
    rates = trace["rate"].values / scale
    if rates.shape[1] > _MOST_LINES:
        axis.fill_between(time, rates.min(axis=1), rates.max(axis=1), alpha=0.3, color=colour(0), lw=0)
        axis.plot(time, rates.mean(axis=1), color=colour(0), lw=1.2, label=f"{rates.shape[1]} flows: mean, range")
        axis.legend(fontsize="small")
        return
    for k, name in enumerate(trace["flow"].values):
        axis.plot(time, rates[:, k], lw=1.2, color=colour(k), label=name)


def plot_comparison(comparison: Comparison, *, title: str | None = None) -> Picture:
    """Plot one engine over the mean, standard deviation and range of another's runs; queue above, rates below.

    Where the start's queue dwarfs that of the second half, the axes show the latter, and an inset the whole.

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
        peak, calm = (max(float(part.max()) for part in parts) for parts in _halves(fluid, packet))
        dwarfed = name == "queue" and calm > 0 and peak > _DWARFS * calm
        factor, unit = units.scale_of(calm if dwarfed else peak, dimension)
        if dwarfed:
            means = np.stack([packet.mean("seed").values, fluid.values], axis=1)
            _inset(axis, time, means, [colour(0), "black"])
            axis.set_ylim(top=_ROOM * calm / factor)
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
    inset = bool(axes[0, 0].child_axes)
    axes[0, 0].legend(fontsize="x-small" if inset else "small", ncols=2, loc="upper left" if inset else "best")
    axes[1, 0].set_xlabel(label("time", time_unit))
    shown = title if title is not None else f"{data.attrs['title'].rpartition(', ')[0]}: queue of {data.attrs['link']}"
    picture.suptitle(shown)
    return picture


def _halves(*parts: xr.DataArray) -> Iterator[list[xr.DataArray]]:
    """Signals over all of the time, then over its second half."""
    for share in (0.0, 0.5):
        yield [part.isel(time=slice(int(share * part.sizes["time"]), None)) for part in parts]


def _draw_ensemble(
    axis: Axes, time: np.ndarray, line: np.ndarray, runs: np.ndarray, k: int, engines: tuple[str, str]
) -> None:
    """Draw one engine's line over the bands and the mean of another's runs (seeds, times)."""
    mean, std, shade, seeds = runs.mean(axis=0), runs.std(axis=0), colour(k), len(runs)
    name = {"packet": "packets"}.get(engines[1], engines[1])
    if seeds > 1:
        band = {"color": shade, "lw": 0}
        whole = f"{name}, range of {seeds} seeds"
        axis.fill_between(time, runs.min(axis=0), runs.max(axis=0), alpha=0.12, label=whole, **band)
        axis.fill_between(time, mean - std, mean + std, alpha=0.25, label=f"{name}, standard deviation", **band)
    axis.plot(time, mean, color=shade, lw=0.8, alpha=0.7, label=name + (", mean" if seeds > 1 else ""))
    axis.plot(time, line, color="black", lw=1.0, label=engines[0])
