"""Pictures of stability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from fluidcc.plots import Picture, figure

if TYPE_CHECKING:
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
