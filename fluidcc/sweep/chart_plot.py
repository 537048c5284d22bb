"""Picture of stability over two parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fluidcc.errors import InputError
from fluidcc.plots import Picture, figure

if TYPE_CHECKING:
    from fluidcc.sweep.chart import StabilityChart


def plot_chart(chart: StabilityChart, *, title: str | None = None, labels: Mapping[str, str]) -> Picture:
    """Rightmost root over two names, with the boundary; hatched where p* is beyond the RED ramp.

    Raises
    ------
    InputError
        If not two names were swept.
    """
    data = chart.dataset
    names = data["root"].dims
    if len(names) != 2:
        raise InputError(f"plot: the chart is over {len(names)} names; it can be drawn over two")
    x, y = (str(name) for name in names)
    picture, axes = figure(1, 1, size=(7.0, 5.0))
    (axis,) = axes[0]
    values = data["root"].values.T
    most = float(np.nanpercentile(np.abs(values), 90))
    mesh = axis.pcolormesh(data[x], data[y], values, cmap="RdBu_r", vmin=-most, vmax=most, shading="nearest")
    picture.colorbar(mesh, ax=axis, label="real part of the rightmost root [1/s]", extend="both")
    beyond = np.nan_to_num(1.0 - data["on_ramp"].values.T)
    if beyond.max() > 0 and min(beyond.shape) > 1:
        axis.contourf(data[x], data[y], beyond, levels=[0.5, 1.5], colors="none", hatches=["//"])
    edge, curve = data["boundary"].values, data["curve"].values
    for number in np.unique(curve):
        label = "boundary of stability" if number == 0 else None
        style = "k-" if (curve == number).sum() > 1 else "k."  # a jump has no curve to follow
        axis.plot(*edge[curve == number].T, style, lw=1.5, ms=3, label=label)
    if len(edge):
        axis.legend(fontsize=8)
    axis.set(xlabel=labels.get(x, f"{x} [SI]"), ylabel=labels.get(y, f"{y} [SI]"))
    picture.suptitle("red: unstable; hatched: beyond the RED ramp" if title is None else title)
    return picture
