"""Figures of the explorer, in Bokeh: made once, then only their numbers change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, Label, Legend, LegendItem, LinearColorMapper, Range1d, Span
from bokeh.plotting import figure
from contourpy import contour_generator

from fluidcc.dde.delay_system import Array
from fluidcc.explorer.answers import Answer, Chart
from fluidcc.explorer.settings import Knob
from fluidcc.explorer.views import RootMap, Run, bin_edges
from fluidcc.plotting.colours import ENGINES, SERIES
from fluidcc.units import SIZE, show

COLOURS = {"fluid": ENGINES["fluid"], "hybrid": ENGINES["hybrid"], "packets": ENGINES["packet"], "kept": SERIES[8]}
INK, _GRID = "#444444", "#e8e8e8"
COLUMNS = 600  # of pixels that a line is drawn on, about; each shows the line's least and largest value there
_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_CLASS_COLOURS = tuple(SERIES[k] for k in (0, 2, 4, 5, 6, 7))  # of flow classes
_CLASSES = 6  # that have a line
_BEGINS = 0.1  # of the run: the queue's axis holds what comes after
_MEAN = "hybrid or packets, mean"
_LINEAR = 100.0  # 1/s, below which the axes are linear
_LOOKS = {"aggregate": ("circle", "#3f90da"), "fairness": ("x", "#bd1f01"), "kept": ("circle", "#a0a0a0")}
_RED_TO_BLUE = (  # ColorBrewer's RdBu: told apart also by those who see fewer colours
    "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b",
)  # fmt: skip
_TICKS = 5


def plain(title: str, x: str, y: str, height: int) -> Any:
    """A figure in the house's light style, with axes that stand still until `span` moves them."""
    plot = figure(
        title=title,
        x_axis_label=x,
        y_axis_label=y,
        height=height,
        # Followed by the browser itself, each move would come back to the server as moves of the axes.
        x_range=Range1d(start=0, end=1),
        y_range=Range1d(start=0, end=1),
        sizing_mode="stretch_width",
        tools="pan,box_zoom,wheel_zoom,reset,save",
        toolbar_location="right",
        output_backend="canvas",
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.outline_line_color = None
    heading: Any = plot.title
    heading.text_font_size, heading.text_color = "13px", INK
    for axis in plot.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "11px"
        axis.axis_label_text_color = axis.major_label_text_color = INK
        axis.axis_line_color = axis.major_tick_line_color = "#999999"
        axis.minor_tick_line_color = None
        formatter: Any = axis.formatter
        formatter.use_scientific = False
    plot.grid.grid_line_color = _GRID
    return plot


def source(*names: str) -> Any:
    """Return a glyph's data source, empty at first."""
    return ColumnDataSource({name: [] for name in names})


def put(data: Any, columns: dict[str, Any]) -> None:
    """Replace the numbers; send nothing where there were none and are none."""
    if any(map(len, columns.values())) or any(map(len, data.data.values())):
        data.data = columns


def span(axis: Any, start: float, end: float, whole: float | None = None) -> None:
    """Have an axis reach from `start` to `end`, after a reset to `whole`.

    An axis that moves lays out its figure anew, so ends are best rounded: they then stand still while a hand moves on.
    """
    axis.start, axis.end = start, end
    axis.reset_start, axis.reset_end = start, end if whole is None else whole


def rounded_up(value: float) -> float:
    """The next larger of 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 and 10, times a power of ten; 1 for nothing."""
    if not value > 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step for step in _STEPS if step * power >= value * (1 - 1e-12)) * power


def extremes(values: Array) -> Array:
    """Places of samples that can be seen: the least and the largest in each column of pixels, and both ends."""
    if values.size <= 2 * COLUMNS:
        return np.arange(values.size)
    wide = values.size // COLUMNS + 1
    columns = np.pad(values, (0, -values.size % wide), mode="edge").reshape(-1, wide)
    begins = wide * np.arange(len(columns))
    found = np.concatenate([[0, values.size - 1], begins + columns.argmin(axis=1), begins + columns.argmax(axis=1)])
    return np.unique(np.minimum(found, values.size - 1))


def with_legend(plot: Any, entries: Sequence[tuple[str, Any]]) -> dict[str, LegendItem]:
    """A legend above; its items by name, to be hidden while there is nothing of them."""
    items = {name: LegendItem(label=name, renderers=[glyph]) for name, glyph in entries}
    legend: Any = Legend(items=list(items.values()), orientation="horizontal")
    legend.label_text_font_size, legend.border_line_color, legend.padding = "11px", None, 0
    legend.spacing, legend.glyph_width, legend.margin, legend.click_policy = 10, 16, 0, "hide"
    plot.add_layout(legend, "above")
    return items


def appear(items: Mapping[str, LegendItem], **there: object) -> None:
    """Show the legend's items of what there is, hide the others."""
    for name, item in items.items():
        if name in there:
            item.visible = there[name] is not None


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


def symlog(values: Any) -> Array:
    """A scale for roots: logarithmic far from 0, linear near it."""
    values = np.asarray(values, float)
    return np.sign(values) * np.log10(1.0 + np.abs(values) / _LINEAR)


class RootPlot:
    """The rightmost roots in the complex plane; what lies right of the axis grows."""

    def __init__(self, height: int) -> None:
        self.plot = plain("Characteristic roots", "real part [1/s]", "imaginary part [1/s]", height)
        ticks = [0.0, *(sign * 10.0**k for k in range(3, 12) for sign in (-1, 1))]
        labels = {float(symlog(t)): _power(t) for t in ticks}
        for axis in (self.plot.xaxis[0], self.plot.yaxis[0]):
            axis.ticker = FixedTicker(ticks=sorted(labels))
            axis.major_label_overrides = labels  # type: ignore[assignment]
        self.plot.add_layout(Span(location=0, dimension="height", line_color="#bd1f01", line_dash="dashed"))
        self._sets = {name: source("x", "y") for name in ("kept", "fairness", "aggregate")}
        entries = []
        for name, data in self._sets.items():
            marker, colour = _LOOKS[name]
            glyph = self.plot.scatter(
                "x", "y", source=data, marker=marker, size=8, line_color=colour, fill_color=None, line_width=1.5
            )
            entries.append((name, glyph))
        self._items = with_legend(self.plot, list(reversed(entries)))

    def show(self, now: Answer, kept: Answer | None) -> None:
        """Put in new roots; before they are worked out the old ones stay."""
        if now.roots is None:
            return
        old = None if kept is None else kept.roots
        self._items["kept"].visible = old is not None
        both = [] if old is None else [old.aggregate, old.fairness]
        for name, parts in (("aggregate", [now.roots.aggregate]), ("fairness", [now.roots.fairness]), ("kept", both)):
            s = np.concatenate([*parts, np.empty(0, complex)])
            put(self._sets[name], {"x": symlog(np.real(s)), "y": symlog(np.imag(s))})
        self._reach(now.roots)

    def _reach(self, found: RootMap) -> None:
        """Axes in whole steps about the present roots; the border between growth and decay is always seen."""
        s = np.concatenate([found.aggregate, found.fairness])
        real, imaginary = symlog(np.real(s)), float(np.abs(symlog(np.imag(s))).max(initial=1.0))
        low, high = min(float(real.min(initial=0.0)), -1.0), max(float(real.max(initial=0.0)), 0.5)
        span(self.plot.x_range, math.floor(2 * low - 0.2) / 2, math.ceil(2 * high + 0.2) / 2)
        tall = math.ceil(2 * imaginary + 0.2) / 2
        span(self.plot.y_range, -tall, tall)


def _power(value: float) -> str:
    if not value:
        return "0"
    digits = str(round(math.log10(abs(value)))).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{'−' if value < 0 else ''}10{digits}"


class ChartPlot:
    """Rightmost root over two values, with its zero line and the point where the setting stands."""

    def __init__(self, height: int) -> None:
        self.plot = plain("Stability: red grows, blue decays", "", "", height)
        self.plot.background_fill_color = "#dddddd"  # where there is no equilibrium
        self.plot.grid.grid_line_color = None
        self._axes = (self.plot.xaxis[0], self.plot.yaxis[0])
        for axis in self._axes:
            axis.ticker = FixedTicker(ticks=[])
        self._mapper = LinearColorMapper(palette=list(_RED_TO_BLUE), low=-1, high=1, nan_color="rgba(0,0,0,0)")
        self._image: Any = ColumnDataSource({"image": [np.full((2, 2), np.nan)]})
        self.plot.image("image", x=0, y=0, dw=1, dh=1, source=self._image, color_mapper=self._mapper)
        self._edge = source("xs", "ys")
        self._points = {name: source("x", "y") for name in ("kept", "here")}
        self.plot.multi_line("xs", "ys", source=self._edge, color="black", line_width=1.5)
        self.plot.scatter("x", "y", source=self._points["kept"], size=11, color="white", line_color="#717581")
        self.plot.scatter("x", "y", source=self._points["here"], size=12, color="#ffa90e", line_color="black")

    def clear(self) -> None:
        """Take away what was of another kind of setting."""
        put(self._image, {"image": [np.full((2, 2), np.nan)]})
        put(self._edge, {"xs": [], "ys": []})
        for data in self._points.values():
            put(data, {"x": [], "y": []})

    def show(
        self, chart: Chart, knobs: Mapping[str, Knob], here: Mapping[str, float], kept: Mapping[str, float]
    ) -> None:
        """Put in a new chart, with the places of the setting and of the one that is kept."""
        if not chart.root.size:
            self.clear()
            return
        paces = symlog(chart.root)  # by factors, as roots differ by them
        most = float(np.abs(paces[np.isfinite(paces)]).max(initial=0.1))
        self._mapper.low, self._mapper.high = -most, most
        put(self._image, {"image": [paces]})
        places = np.linspace(0, 1, chart.x.size), np.linspace(0, 1, chart.y.size)
        lines: Any = contour_generator(*places, np.ma.masked_invalid(chart.root)).lines(0.0)
        put(self._edge, {"xs": [line[:, 0] for line in lines], "ys": [line[:, 1] for line in lines]})
        for axis, name, values in zip(self._axes, chart.names, (chart.x, chart.y), strict=True):
            where = np.unique(np.linspace(0, values.size - 1, _TICKS).astype(int))
            ticks = [float(k / (values.size - 1)) for k in where]
            # A new ticker would have Bokeh search all models of the page for new ones, in a tenth of a second.
            axis.ticker.ticks = ticks
            axis.major_label_overrides = {
                t: show(float(values[k]), knobs[name].spec.dimension, 3) for t, k in zip(ticks, where, strict=True)
            }
            axis.axis_label = knobs[name].label
        for name, at in (("here", here), ("kept", kept)):
            put(self._points[name], _place(chart, at))


def _place(chart: Chart, at: Mapping[str, float]) -> dict[str, list[float]]:
    """Return a setting's place in a chart's unit square; none if it is outside."""
    found = []
    for name, values in zip(chart.names, (chart.x, chart.y), strict=True):
        value = at.get(name)
        if not isinstance(value, float) or not values[0] <= value <= values[-1]:
            return {"x": [], "y": []}
        found.append(float(np.interp(value, values, np.linspace(0, 1, values.size))))
    return {"x": [found[0]], "y": [found[1]]}
