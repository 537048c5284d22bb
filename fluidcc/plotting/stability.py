"""Pictures of stability: roots and margins, a loop's response, and stability over two parameters."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.plotting.style import Picture, colour, figure
from fluidcc.plotting.sweeps import logarithmic

if TYPE_CHECKING:
    from fluidcc.dde.response import DelayLoop
    from fluidcc.studies.sweeps.chart import StabilityChart
    from fluidcc.studies.sweeps.result import SweepResult
    from fluidcc.theory.control.linearize import Linearization
    from fluidcc.theory.control.stability import Stability

_OSCILLATES = 5  # contours


def plot_stability(points: Sequence[Stability], *, title: str | None = None) -> Picture:
    """Rightmost roots and phase margins over numbers of flows; hollow off the RED ramp, grey where there are none."""
    picture, axes = figure(1, 2, size=(11.0, 4.4))
    roots, margins = axes[0]
    flows = [point.flows for point in points]

    def draw(axis: Any, values: Sequence[float | None], color: str, name: str, mark: str = "o") -> None:
        known = [math.nan if value is None else value for value in values]
        if all(value is None for value in values):
            return
        axis.plot(flows, known, "-", color=color, lw=1)
        for on_ramp, face in ((True, color), (False, "none")):
            here = [value if point.on_ramp == on_ramp else math.nan for point, value in zip(points, known, strict=True)]
            axis.plot(flows, here, mark, color=color, mfc=face, ms=4, label=name if on_ramp else None)

    for name, color in (("aggregate", colour(0)), ("fairness", colour(2))):
        values = [getattr(point, f"{name}_root") for point in points]
        draw(roots, [None if root is None else root.real for root in values], color, f"{name} mode")
    draw(margins, [point.phase_margin for point in points], colour(0), "exact")
    if any(point.paper_phase_margin is not None for point in points):
        draw(margins, [point.paper_phase_margin for point in points], colour(1), "published linearisation", "s")
    roots.set(xlabel="flows", ylabel="real part of the rightmost root [1/s]", title="below 0: stable")
    margins.set(xlabel="flows", ylabel="phase margin [degrees]", title="of the loop cut at the queue")
    off_ramp = any(not point.on_ramp and point.aggregate_root is not None for point in points)
    grey = [point.flows for point in points if point.aggregate_root is None]
    for axis, nothing in (
        (roots, _reasons(points)),
        (margins, "" if len(grey) == len(flows) else "no queue to cut at"),
    ):
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_xlim(min(flows) - 0.5, max(flows) + 0.5)
        axis.grid(alpha=0.3)
        for count in grey:
            axis.axvspan(count - 0.5, count + 0.5, color="0.85", lw=0, zorder=0)
        if axis.get_legend_handles_labels()[0]:
            axis.axhline(0, color="0.3", ls="--", lw=0.8)
            notes = ["hollow: off the RED ramp"] * off_ramp + ["grey: nothing to linearise"] * bool(grey)
            axis.legend(fontsize=8, title="; ".join(notes), title_fontsize=8)
        else:
            axis.set_yticks([])
            axis.text(0.5, 0.5, nothing, ha="center", va="center", transform=axis.transAxes)
    picture.suptitle("stability of the fixed point" if title is None else title)
    return picture


def _reasons(points: Sequence[Stability]) -> str:
    """Return why there are no numbers, in short lines."""
    return "\n".join(fill(text, 44) for text in dict.fromkeys(point.state for point in points))


def plot_roots(found: Linearization, count: int, *, title: str | None = None) -> Picture:
    """The rightmost roots in the complex plane, those of the aggregate and of the fairness modes."""
    from fluidcc.dde.characteristic import roots

    picture, axes = figure(1, 1, size=(6.5, 5.0))
    (axis,) = axes[0]
    sets = [("aggregate", "o", found.system), *(("fairness", "x", each.system) for each in found.fairness)]
    for k, (name, mark, system) in enumerate(sets):
        s = roots(system, count).s
        axis.plot(s.real, s.imag, mark, color=colour(k), mfc="none", label=f"{name} mode")
    axis.axvline(0, color="0.3", ls="--", lw=0.8)
    axis.set_xscale("symlog", linthresh=100.0)
    axis.set_yscale("symlog", linthresh=100.0)
    axis.set(xlabel="real part [1/s]", ylabel="imaginary part [1/s]")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    picture.suptitle("rightmost characteristic roots" if title is None else title)
    return picture


def plot_loop(loop: DelayLoop, frequency: np.ndarray | None, *, title: str | None = None) -> Picture:
    """Bode and Nyquist diagrams with the crossings that the margins come from."""
    margins = loop.margins()
    crossings = np.concatenate([margins.gain_crossings, margins.phase_crossings])
    crossings = crossings[crossings > 0]
    middle = crossings if crossings.size else np.array([1.0])
    w = np.geomspace(middle.min() / 100, middle.max() * 10, 2000) if frequency is None else frequency
    L = loop.response(w)
    picture, axes = figure(2, 2, size=(11.0, 6.6))
    (gain, nyquist), (phase, close) = axes
    gain.semilogx(w, 20 * np.log10(np.abs(L)), lw=1)
    phase.semilogx(w, np.degrees(np.unwrap(np.angle(L))), lw=1)
    gain.plot(margins.gain_crossings, np.zeros(len(margins.gain_crossings)), "o", color=colour(1), ms=4)
    gain.set(ylabel="gain [dB]", xlabel="frequency [rad/s]", title="Bode")
    phase.set(ylabel="phase [degrees]", xlabel="frequency [rad/s]")
    for axis, reach in ((nyquist, 5.0), (close, 1.5)):
        axis.plot(L.real, L.imag, lw=1)
        axis.plot(-1, 0, "r+", ms=10, label="-1")
        axis.plot(np.cos(turn := np.linspace(0, 2 * np.pi, 200)), np.sin(turn), color="0.7", lw=0.8)
        axis.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="Re L", ylabel="Im L", aspect="equal")
    nyquist.set(title="Nyquist, and near -1 below")
    nyquist.legend(fontsize=8)
    for axis in axes.flat:
        axis.grid(alpha=0.3)
    least = "" if not np.isfinite(margins.phase.value) else f": phase margin {np.degrees(margins.phase.value):.2f}°"
    picture.suptitle(f"open loop{least}" if title is None else title)
    return picture


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
