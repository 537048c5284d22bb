"""Queue and rates over time, in Bokeh: made once, then only their numbers change."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import Label

from fluidcc.dde.delay_system import Array
from fluidcc.explorer.answers import Answer
from fluidcc.explorer.picture import (
    COLOURS,
    INK,
    appear,
    extremes,
    plain,
    put,
    rounded_up,
    source,
    span,
    with_legend,
)
from fluidcc.explorer.views import Run
from fluidcc.plotting.colours import SERIES
from fluidcc.units import SIZE, show

_CLASS_COLOURS = tuple(SERIES[k] for k in (0, 2, 4, 5, 6, 7))  # of flow classes
_CLASSES = 6  # that have a line
_BEGINS = 0.1  # of the run: the queue's axis holds what comes after
_MEAN = "hybrid or packets, mean"


class QueuePlot:
    """Queue over time: the fluid, the hybrid's mean and range over seeds, packets, and what is kept."""

    def __init__(self, height: int) -> None:
        self.plot = plain("Queue of the most loaded link", "time [ms]", "queue [KB]", height)
        self._band = source("x", "low", "high")
        self._lines = {name: source("x", "y") for name in ("fluid", "hybrid", "packets", "kept")}
        area = self.plot.varea("x", "low", "high", source=self._band, color=COLOURS["hybrid"], alpha=0.25)
        style = {"fluid": (2.0, "solid"), "hybrid": (1.5, "solid"), "packets": (1.5, "solid"), "kept": (1.5, "dashed")}
        entries = [("range", area)]
        for name in ("packets", "hybrid", "fluid", "kept"):
            width, dash = style[name]
            glyph = self.plot.line(
                "x", "y", source=self._lines[name], color=COLOURS[name], line_width=width, line_dash=dash
            )
            entries.append((name, glyph))
        self._items = with_legend(self.plot, list(reversed(entries)))
        # Not in the title: to change that lays out the page anew, which takes longer than all that is drawn.
        self._note = Label(x=14, y=height - 110, x_units="screen", y_units="screen", text="", text_font_size="11px")
        self._note.text_color, self._note.background_fill_color = INK, "white"
        self._note.background_fill_alpha = 0.7
        self.plot.add_layout(self._note)

    def show(self, now: Answer, packets: Run | None, kept: Answer | None) -> None:
        """Put in new numbers."""
        runs = {"fluid": now.fluid, "hybrid": now.hybrid, "packets": packets, "kept": kept and kept.fluid}
        for name, run in runs.items():
            put(self._lines[name], _line(run))
        shown = packets or now.hybrid
        appear(self._items, **runs, **{"range": shown})
        put(self._band, _band(shown))
        some = [run for run in runs.values() if run is not None]
        # Flows that start at line rate fill the queue for a moment, far beyond where it stays: that is cut off.
        late = max(run.queue[:, run.time >= _BEGINS * run.time[-1]].max() for run in some)
        peak = max(run.queue.max() for run in some)
        top = rounded_up(max(min(1.2 * late, 1.05 * peak), 1e3))
        span(self.plot.y_range, 0, top / 1e3, max(1.05 * peak, top) / 1e3)
        span(self.plot.x_range, 0, max(run.time[-1] for run in some) * 1e3)
        self._note.text = f"at first up to {show(peak, SIZE, 3)}" if peak > top else ""


def _line(run: Run | None) -> dict[str, Array]:
    if run is None:
        return {"x": np.empty(0), "y": np.empty(0)}
    queue = run.band[1]
    seen = extremes(queue)
    return {"x": run.time[seen] * 1e3, "y": queue[seen] / 1e3}


def _band(run: Run | None) -> dict[str, Array]:
    """Least and largest of the runs; samples are few enough to be drawn all."""
    if run is None:
        return {name: np.empty(0) for name in ("x", "low", "high")}
    low, _, high = run.band
    return {"x": run.time * 1e3, "low": low / 1e3, "high": high / 1e3}


class RatePlot:
    """Sending rate of a flow of each class: the fluid in full lines, the hybrid's mean paler."""

    def __init__(self, height: int) -> None:
        self.plot = plain("Sending rate of a flow", "time [ms]", "rate [Gbps]", height)
        columns = ("xs", "ys", "colour")
        self._fluid, self._mean, self._kept = source(*columns), source(*columns), source(*columns)
        kept = self.plot.multi_line("xs", "ys", source=self._kept, color=COLOURS["kept"], line_dash="dashed")
        mean = self.plot.multi_line("xs", "ys", source=self._mean, color="colour", line_alpha=0.45, line_width=1.2)
        full = self.plot.multi_line("xs", "ys", source=self._fluid, color="colour", line_width=2)
        self._items = with_legend(self.plot, [("fluid, by class", full), (_MEAN, mean), ("kept", kept)])

    def show(self, now: Answer, packets: Run | None, kept: Answer | None) -> None:
        """Put in new numbers."""
        runs = (now.fluid, packets or now.hybrid, kept and kept.fluid)
        for data, run in zip((self._fluid, self._mean, self._kept), runs, strict=True):
            put(data, _rates(run))
        appear(self._items, kept=kept, **{_MEAN: packets or now.hybrid})
        some = [run for run in runs if run is not None]
        span(self.plot.y_range, 0, rounded_up(max(run.rates.max() for run in some) * 8e-9))
        span(self.plot.x_range, 0, max(run.time[-1] for run in some) * 1e3)


def _rates(run: Run | None) -> dict[str, list[Any]]:
    rates = [] if run is None else list(run.rates[:_CLASSES] * 8e-9)
    seen = [extremes(rate) for rate in rates]
    times = [] if run is None else [run.time[places] * 1e3 for places in seen]
    rows = [rate[places] for rate, places in zip(rates, seen, strict=True)]
    return {"xs": times, "ys": rows, "colour": list(_CLASS_COLOURS[: len(rates)])}
