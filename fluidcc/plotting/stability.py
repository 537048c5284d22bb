"""Pictures of stability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from fluidcc.plotting.style import Picture, colour, figure

if TYPE_CHECKING:
    from fluidcc.dde.response import DelayLoop
    from fluidcc.theory.control.linearize import Linearization
    from fluidcc.theory.control.stability import Stability


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
