"""The queue's distribution, in Bokeh."""

from __future__ import annotations

import numpy as np

from fluidcc.explorer.answers import Answer
from fluidcc.explorer.picture import COLOURS, appear, plain, put, rounded_up, source, span, with_legend
from fluidcc.explorer.views import Run, bin_edges


class DistributionPlot:
    """Distribution of the queue's length over the second half."""

    def __init__(self, height: int) -> None:
        self.plot = plain("Queue's distribution, second half", "queue [KB]", "share of time [%]", height)
        self._sets = {name: source("left", "right", "top") for name in ("packets", "hybrid", "fluid", "kept")}
        glyphs = {}
        for name, data in self._sets.items():
            fill = None if name == "kept" else COLOURS[name]
            glyphs[name] = self.plot.quad(
                left="left", right="right", top="top", bottom=0, source=data, line_color=COLOURS[name],
                fill_color=fill, fill_alpha=0.35, line_alpha=0.8, line_width=0.5 if fill else 1.0,
            )  # fmt: skip
        order = ("fluid", "hybrid", "packets", "kept")
        self._items = with_legend(self.plot, [(name, glyphs[name]) for name in order])

    def show(self, now: Answer, packets: Run | None, kept: Answer | None) -> None:
        """Put in new numbers."""
        runs = {"packets": packets, "hybrid": now.hybrid, "fluid": now.fluid, "kept": kept and kept.fluid}
        appear(self._items, **runs)
        edges = bin_edges(*runs.values())
        most = 1.0
        for name, run in runs.items():
            share = np.empty(0) if run is None else 100 * run.distribution(edges)
            some = np.flatnonzero(share)
            most = max(most, float(share.max(initial=0.0)))
            put(self._sets[name], {"left": edges[some] / 1e3, "right": edges[some + 1] / 1e3, "top": share[some]})
        span(self.plot.x_range, 0, rounded_up(max(float(edges[-1]), 1e3) / 1e3))
        span(self.plot.y_range, 0, min(rounded_up(most), 100.0))
