"""Pictures of delay equations: solutions and cycles over time and as orbits, and stability charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.plotting.style import Picture, colour, figure, label

if TYPE_CHECKING:
    from fluidcc.dde.charts import Chart
    from fluidcc.results.result import DatasetResult

_MOST = 8  # curves of one panel


def plot_solution(result: DatasetResult, *, title: str | None = None) -> Picture:
    """Plot each state over time; of two states or more also the second over the first, at the right."""
    data = result.dataset
    names = [str(name) for name in data.data_vars]
    time = data["time"]
    several = next((str(dim) for dim in data[names[0]].dims if dim != "time"), None)
    columns = 2 if len(names) > 1 else 1
    picture, axes = figure(len(names), columns, size=(7.0 if columns == 1 else 10.5, 0.8 + 2.4 * max(len(names), 1.4)))
    chosen = [None] if several is None else _some(data.sizes[several])
    for k, i in enumerate(chosen):
        part = data if i is None else data.isel({several: i})
        text = None if i is None else f"{several} = {float(part[several]):.4g}"
        for row, name in enumerate(names):
            axes[row][0].plot(time, part[name], color=colour(k), lw=1.3, label=text)
        if columns == 2:
            axes[0][1].plot(part[names[0]], part[names[1]], color=colour(k), lw=1.0)
    for row, name in enumerate(names):
        axes[row][0].set_ylabel(name)
    axes[-1][0].set_xlabel(label("time", str(time.attrs.get("units", ""))))
    if columns == 2:
        axes[0][1].set_xlabel(names[0])
        axes[0][1].set_ylabel(names[1])
        for row in range(1, len(names)):
            axes[row][1].set_axis_off()
    if several is not None:
        axes[0][0].legend(fontsize="small")
    picture.suptitle(repr(result).strip("<>") if title is None else title, fontsize="medium")
    return picture


def plot_delay_chart(chart: Chart, *, title: str | None = None) -> Picture:
    """The rightmost root's real part: over one parameter a curve, over two a map with its zero."""
    root = chart.dataset["root"]
    names = [str(name) for name in root.dims]
    labels = [label(name, str(root[name].attrs.get("units", ""))) for name in names]
    unit = str(root.attrs.get("units", ""))
    picture, axes = figure(1, 1, size=(7.0, 4.6))
    axis = axes[0][0]
    if len(names) == 1:
        axis.plot(root[names[0]], root, color=colour(0))
        axis.axhline(0.0, color="0.4", lw=0.8)
        axis.set_xlabel(labels[0])
        axis.set_ylabel(label("real part of the rightmost root", unit))
    else:
        values = root.transpose(names[1], names[0]).values
        finite = values[np.isfinite(values)]
        above = finite[finite > 0]  # far below the axis nothing is of interest
        most = float(np.max(above if above.size else -finite, initial=0.0)) or 1.0
        drawn: Any = axis.pcolormesh(
            root[names[0]],
            root[names[1]],
            values,
            cmap="RdBu_r",
            vmin=-most,
            vmax=most,
            shading="nearest",
            rasterized=True,
        )
        picture.colorbar(drawn, ax=axis, label=label("real part of the rightmost root", unit), extend="min")
        points, curve = chart.dataset["boundary"].values, chart.dataset["curve"].values
        for k in np.unique(curve):
            line = points[curve == k]
            axis.plot(*line.T, color="k", lw=1.4) if len(line) > 1 else axis.plot(*line.T, "k.", ms=3)
        axis.set_xlabel(labels[0])
        axis.set_ylabel(labels[1])
    picture.suptitle("red: unstable; line: a root on the axis" if title is None else title, fontsize="medium")
    return picture


def _some(count: int) -> list[Any]:
    """Places of a few of many, spread evenly."""
    return [int(i) for i in np.unique(np.linspace(0, count - 1, min(count, _MOST)).round())]
