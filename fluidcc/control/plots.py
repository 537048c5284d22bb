"""Pictures of stability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator

from fluidcc.errors import InputError
from fluidcc.plots import Picture, figure

if TYPE_CHECKING:
    from fluidcc.control.chart import StabilityChart
    from fluidcc.control.stability import Stability


def plot_stability(points: Sequence[Stability], *, title: str | None = None) -> Picture:
    """Rightmost roots and phase margins over the number of flows; off the RED ramp hollow."""
    picture, axes = figure(1, 2, size=(11.0, 4.4))
    roots, margins = axes[0]
    flows = [point.flows for point in points]

    def draw(axis: object, values: Sequence[float | None], color: str, name: str, mark: str = "o") -> None:
        known = [math.nan if value is None else value for value in values]
        axis.plot(flows, known, "-", color=color, lw=1)  # type: ignore[attr-defined]
        for on_ramp, face in ((True, color), (False, "none")):
            here = [value if point.on_ramp == on_ramp else math.nan for point, value in zip(points, known, strict=True)]
            axis.plot(flows, here, mark, color=color, mfc=face, ms=4, label=name if on_ramp else None)  # type: ignore[attr-defined]

    for name, color in (("aggregate", "C0"), ("fairness", "C2")):
        values = [getattr(point, f"{name}_root") for point in points]
        draw(roots, [None if root is None else root.real for root in values], color, f"{name} mode")
    draw(margins, [point.phase_margin for point in points], "C0", "exact")
    if any(point.paper_phase_margin is not None for point in points):
        draw(margins, [point.paper_phase_margin for point in points], "C1", "published linearisation", "s")
    roots.set(xlabel="flows", ylabel="real part of the rightmost root [1/s]", title="below 0: stable")
    margins.set(xlabel="flows", ylabel="phase margin [degrees]", title="of the loop cut at the queue")
    for axis in (roots, margins):
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.axhline(0, color="0.3", ls="--", lw=0.8)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8, title="hollow: off the RED ramp", title_fontsize=8)
    picture.suptitle("stability of the fixed point" if title is None else title)
    return picture


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
    edge = data["boundary"].values
    if len(edge):
        axis.plot(edge[:, 0], edge[:, 1], "k.", ms=3, label="boundary of stability")
        axis.legend(fontsize=8)
    axis.set(xlabel=labels.get(x, f"{x} [SI]"), ylabel=labels.get(y, f"{y} [SI]"))
    picture.suptitle("red: unstable; hatched: beyond the RED ramp" if title is None else title)
    return picture
