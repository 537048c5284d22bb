"""Pictures of traces, comparisons of traces, and sweeps; axes carry units that suit the values."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.files import write_whole
from fluidcc.parameters import specs

if TYPE_CHECKING:
    from fluidcc.compare import Comparison
    from fluidcc.sweep.result import SweepResult
    from fluidcc.trace import Trace

_MOST_LINES = 12  # flows drawn one by one; more become a band
_MOST_TICKS = 10  # swept values ticked one by one
_COLOURS = {True: "viridis_r", False: "viridis"}  # by whether less is better: bright is good


class Picture(Figure):
    """A figure that notebooks show by themselves and that saves whole or not at all."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()

    def write(self, path: str | Path) -> Path:
        """Write PNG, PDF or SVG by the name's ending.

        Raises
        ------
        InputError
            If the ending is unknown or the file cannot be written.
        """
        kind = Path(path).suffix.lstrip(".").lower()
        if kind not in ("png", "pdf", "svg"):
            raise InputError(f"{path}: unknown ending {kind!r}; write a name that ends in .png, .pdf or .svg")
        return write_whole(path, lambda target: self.savefig(target, format=kind, dpi=150))


def figure(rows: int = 1, columns: int = 1, *, size: tuple[float, float] | None = None, **options: Any) -> Any:
    """A `Picture` and its axes, an array (rows, columns)."""
    picture = Picture(figsize=size or (7.5 * columns, 0.8 + 2.4 * rows), layout="constrained")
    return picture, picture.subplots(rows, columns, squeeze=False, **options)


def label(text: str, unit: str) -> str:
    """Axis label with its unit."""
    return f"{text} [{unit}]" if unit else text


def scaled(values: np.ndarray, dimension: str) -> tuple[np.ndarray, str]:
    """Values and the suffix they are in, chosen by the largest."""
    finite = np.abs(values[np.isfinite(values)])
    factor, suffix = units.scale_of(float(finite.max()) if finite.size else 0.0, dimension)
    return values / factor, suffix


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
    """A fluid trace over the mean, the standard deviation and the range of packet traces; queue above, rates below.

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
    time, seeds = data.time.values / second, data.sizes["seed"]
    picture, axes = figure(2, 1, sharex=True)
    for axis, name, text, dimension in (
        (axes[0, 0], "queue", "queue", units.SIZE),
        (axes[1, 0], "rate", "rate per flow", units.RATE),
    ):
        fluid, packet = data[f"{name}_fluid"], data[f"{name}_packet"]
        factor, unit = units.scale_of(float(max(fluid.max(), packet.max())), dimension)
        fluid, packet = fluid / factor, packet / factor
        if "flow" in fluid.dims and fluid.sizes["flow"] > _MOST_LINES:
            text = f"mean rate of {fluid.sizes['flow']} flows"
            fluid, packet = (part.weighted(data.multiplicity).mean("flow") for part in (fluid, packet))
        if "flow" not in fluid.dims:
            fluid, packet = fluid.expand_dims("flow", -1), packet.expand_dims("flow", -1)
        for k in range(fluid.sizes["flow"]):
            _draw_ensemble(axis, time, fluid[:, k].values, packet[:, :, k].values, k, seeds)
        axis.set_ylabel(label(text, unit))
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="small", ncols=2)
    axes[1, 0].set_xlabel(label("time", time_unit))
    shown = (
        title if title is not None else f"{data.attrs['title'].partition(', fluid')[0]}: queue of {data.attrs['link']}"
    )
    picture.suptitle(shown)
    return picture


def _draw_ensemble(axis: Axes, time: np.ndarray, fluid: np.ndarray, runs: np.ndarray, k: int, seeds: int) -> None:
    """A fluid's line over the bands and the mean of packet runs (seeds, times)."""
    mean, std, shade = runs.mean(axis=0), runs.std(axis=0), f"C{k}"
    if seeds > 1:
        axis.fill_between(
            time,
            runs.min(axis=0),
            runs.max(axis=0),
            color=shade,
            alpha=0.12,
            lw=0,
            label=f"packets, range of {seeds} seeds",
        )
        axis.fill_between(
            time, mean - std, mean + std, color=shade, alpha=0.25, lw=0, label="packets, standard deviation"
        )
    axis.plot(time, mean, color=shade, lw=0.8, alpha=0.7, label="packets" + (", mean" if seeds > 1 else ""))
    axis.plot(time, fluid, color="black", lw=1.0, label="fluid")


def plot_sweep(
    result: SweepResult,
    metric: str,
    *,
    best: dict[str, float] | None = None,
    mark: dict[str, float] | None = None,
    minimise: bool = True,
) -> Picture:
    """A metric over one swept name as a line, over two as a heat map.

    Parameters
    ----------
    result : SweepResult
    metric : str
    best : dict
        The point to mark as best, at which further names are held; that of the metric alone by default.
    mark : dict
        A point to mark on the heat map, for example the present setting.
    minimise : bool
        Whether less of the metric is better.

    Returns
    -------
    Picture
    """
    chosen = best if best is not None else result.best(metric, minimise=minimise)
    shown = sorted(result.names, key=lambda n: -result.dataset.sizes[n])[:2]
    shown = [name for name in result.names if name in shown]
    held = {n: chosen[n] for n in result.names if n not in shown}
    values = result[metric].sel({n: v for n, v in held.items() if v is not None}, method="nearest")
    dimension = str(values.attrs.get("units", ""))
    data, unit = scaled(values.values, dimension)
    picture, axes = figure(1, 1, size=(7.5, 5.0))
    axis = axes[0, 0]
    text = str(values.attrs.get("long_name", metric))
    if len(shown) == 1:
        axis.plot(result.dataset[shown[0]], data, marker="o", ms=3)
        axis.set_ylabel(label(metric, unit))
        axis.grid(alpha=0.3)
        _name_axis(axis, "x", result, shown[0])
    else:
        y, x = (result.dataset[name].values for name in shown)
        finite = np.ma.masked_invalid(data if values.dims == tuple(shown) else data.T)
        wide = finite.count() > 0 and finite.min() > 0 and finite.max() > 20 * finite.min()
        norm = LogNorm() if wide else None
        mesh = axis.pcolormesh(_edges(x), _edges(y), finite, cmap=_COLOURS[minimise], norm=norm)
        axis.set_facecolor("0.85")
        _name_axis(axis, "x", result, shown[1])
        _name_axis(axis, "y", result, shown[0])
        bar = picture.colorbar(mesh, ax=axis, label=label(metric, unit))
        if wide:
            bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        _mark_points(axis, shown, chosen, mark)
    fixed = ", ".join(f"{n} = {format_value(n, float(values[n]))}" for n in held)
    axis.set_title(f"{text}" + (f"\nat {fixed}" if fixed else ""), fontsize="medium")
    return picture


def _mark_points(axis: Axes, shown: Sequence[str], best: dict[str, Any], mark: dict[str, float] | None) -> None:
    points = [("best", best, "*", "white")]
    if mark:
        # The map is a slice through the best point: a mark with other held values is not on it, and says so.
        other = [name for name in best if name in mark and name not in shown and not np.isclose(best[name], mark[name])]
        where = f" (there with another {', '.join(other)})" if other else ""
        points.append((f"present {', '.join(shown)}{where}", mark, "o", "none"))
    style = {"mec": "crimson", "mew": 1.5, "ms": 12, "ls": "none", "clip_on": False}
    for name, point, symbol, fill in points:
        if point[shown[0]] is not None:
            axis.plot(point[shown[1]], point[shown[0]], symbol, mfc=fill, label=name, **style)
    axis.figure.legend(loc="outside lower center", ncols=2, fontsize="small")


def _name_axis(axis: Axes, which: str, result: SweepResult, name: str) -> None:
    """Label an axis; few values are ticked one by one, logarithmic spacing makes a logarithmic axis."""
    values = result.dataset[name].values
    line = axis.xaxis if which == "x" else axis.yaxis
    if logarithmic(values):
        (axis.set_xscale if which == "x" else axis.set_yscale)("log")
    dimension = dimension_of(name)
    if len(values) <= _MOST_TICKS:
        line.set_ticks(values, labels=[units.show(float(v), dimension, 3) for v in values], fontsize="small")
        line.set_ticks([], minor=True)
    else:
        line.set_major_formatter(FuncFormatter(lambda v, _: units.show(v, dimension, 3)))
    (axis.set_xlabel if which == "x" else axis.set_ylabel)(name)


def _edges(values: np.ndarray) -> np.ndarray:
    """Borders of the cells around values, halfway between them as the axis shows them."""
    if len(values) == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    at = np.log(values) if logarithmic(values) else values
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
    return np.exp(edges) if logarithmic(values) else edges


def logarithmic(values: np.ndarray) -> bool:
    """Whether positive values spread more evenly in the logarithm."""
    if len(values) < 3 or (values <= 0).any():
        return False
    ratios, steps = np.diff(np.log(values)), np.diff(values)
    return bool(np.ptp(ratios) * abs(steps.mean()) < np.ptp(steps) * abs(ratios.mean()))


def format_value(name: str, value: float) -> str:
    """A value of a named parameter, with its unit."""
    return units.show(value, dimension_of(name))


def dimension_of(name: str) -> str:
    """Dimension of a parameter of any scheme, of the marking, or of a builder; plain if unknown."""
    from fluidcc.scenario import RED, Flow, Scenario
    from fluidcc.schemes.dispatch import SCHEMES, parameters_of

    for owner in (RED, Flow, Scenario, *(parameters_of(scheme) for scheme in SCHEMES)):
        if name in specs(owner):
            return specs(owner)[name].dimension
    return {"rate": units.RATE, "delay": units.TIME}.get(name, units.RATIO)
