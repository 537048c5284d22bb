"""Picture of stability over two parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.plotting.style import Picture, figure
from fluidcc.plotting.sweeps import logarithmic

if TYPE_CHECKING:
    from fluidcc.studies.sweeps.chart import StabilityChart
    from fluidcc.studies.sweeps.result import SweepResult

_OSCILLATES = 5  # contours


def plot_chart(
    chart: StabilityChart,
    *,
    title: str | None = None,
    labels: Mapping[str, str],
    oscillations: SweepResult | None = None,
) -> Picture:
    """Rightmost root over two names, with the boundary; hatched where p* is beyond the RED ramp.

    Raises
    ------
    InputError
        If not two names were swept, or the oscillations were swept over others.
    """
    picture, axes = figure(1, 1, size=(7.0, 5.0))
    (axis,) = axes[0]
    draw_chart(picture, axis, chart, labels, oscillations)
    picture.suptitle("red: unstable; hatched: beyond the RED ramp" if title is None else title)
    return picture


def draw_chart(
    picture: Picture,
    axis: Any,
    chart: StabilityChart,
    labels: Mapping[str, str],
    oscillations: SweepResult | None = None,
) -> None:
    """Draw a chart into one of a picture's axes.

    A label that ends in a unit that fluidcc reads, as in "feedback delay [us]", scales its axis to it. The
    sweep ``oscillations``, over the same two names, adds lines of equal largest less smallest queue.

    Raises
    ------
    InputError
        If not two names were swept, or the oscillations were swept over others.
    """
    data = chart.dataset
    names = [str(name) for name in data["root"].dims]
    if len(names) != 2:
        raise InputError(f"plot: the chart is over {len(names)} names; it can be drawn over two")
    texts = [labels.get(name, f"{name} [SI]") for name in names]
    scales = [scale_of(text) for text in texts]
    x, y = (data[name].values / scale for name, scale in zip(names, scales, strict=True))
    values = data["root"].values.T
    known = np.abs(values[np.isfinite(values)])
    most = float(np.percentile(known, 90)) if len(known) else 1.0
    axis.set_facecolor("0.85")  # where there is no equilibrium
    mesh = axis.pcolormesh(x, y, values, cmap="RdBu_r", vmin=-most, vmax=most, shading="nearest")
    picture.colorbar(mesh, ax=axis, label="real part of the rightmost root [1/s]", extend="both")
    beyond = np.nan_to_num(1.0 - data["on_ramp"].values.T)
    if beyond.max() > 0 and min(beyond.shape) > 1:
        axis.contourf(x, y, beyond, levels=[0.5, 1.5], colors="none", hatches=["//"])
    edge, curve = data["boundary"].values / scales, data["curve"].values
    for number in np.unique(curve):
        label = "boundary of stability" if number == 0 else None
        style = "k-" if (curve == number).sum() > 1 else "k."  # a jump has no curve to follow
        axis.plot(*edge[curve == number].T, style, lw=1.5, ms=3, label=label)
    if oscillations is not None:
        _draw_oscillations(axis, oscillations, names, scales)
    if len(edge):
        axis.legend(fontsize=8, loc="upper right")
    kinds = ["log" if logarithmic(values) else "linear" for values in (x, y)]
    axis.set(xlabel=texts[0], xscale=kinds[0], xlim=(x.min(), x.max()))
    axis.set(ylabel=texts[1], yscale=kinds[1], ylim=(y.min(), y.max()))


def _draw_oscillations(axis: Any, oscillations: SweepResult, names: list[str], scales: list[float]) -> None:
    if set(oscillations.names) != set(names):
        raise InputError(f"oscillations: swept over {', '.join(oscillations.names)}; sweep over {' and '.join(names)}")
    data = oscillations.dataset.transpose(*names, ...)
    far = (data["queue_bytes.max"] - data["queue_bytes.min"]).values.T / 1e3
    x, y = (data[name].values / scale for name, scale in zip(names, scales, strict=True))
    top = np.nanmax(far)
    if not top > 0:
        return
    levels = top * np.arange(1, _OSCILLATES + 1) / (_OSCILLATES + 1)
    lines = axis.contour(x, y, far, levels=levels, colors="black", linewidths=0.9, linestyles="--")
    for text in axis.clabel(lines, fmt="%.3g", fontsize=7):
        text.set_bbox({"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5})
    axis.plot([], [], color="black", lw=0.9, ls="--", label="the run's queue oscillates by [KB]")


def scale_of(label: str) -> float:
    """SI units in the unit that ends a label; 1 if it names none."""
    unit = re.search(r"\[([A-Za-zµμ]+)\]$", label)
    if unit is None:
        return 1.0
    for dimension in (units.TIME, units.RATE, units.SIZE):
        try:
            return units.parse(f"1{unit[1]}", dimension)
        except InputError:
            continue
    return 1.0
