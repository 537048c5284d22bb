"""The explorer's pictures in Bokeh: made once, then only their numbers change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, Label, Legend, LegendItem, LinearColorMapper, Range1d, Span
from bokeh.plotting import figure
from contourpy import contour_generator

from fluidcc.explorer.answers import Answer
from fluidcc.explorer.chart import Chart
from fluidcc.explorer.knobs import Knob
from fluidcc.explorer.views import Run, bin_edges
from fluidcc.theory.delay_systems.delay_system import Array
from fluidcc.units import SIZE, show

_COLOURS = {"fluid": "#3f90da", "hybrid": "#ffa90e", "packets": "#94a4a2", "kept": "#717581"}  # of petroff10
_SECOND = ("#3f90da", "#bd1f01", "#832db6", "#a96b59", "#e76300", "#b9ac70")  # of flow classes, the same
_RED_TO_BLUE = (  # ColorBrewer's RdBu: told apart also by those who see fewer colours
    "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b",
)  # fmt: skip
_LINEAR = 100.0  # 1/s, below which the axes of the root map are linear
_TICKS = 5
_PIXELS = 1000  # of a figure that holds lines, about
_CLASSES = 6  # that have a line
_BEGINS = 0.1  # of the run: the queue's axis holds what comes after
_INK, _GRID = "#444444", "#e8e8e8"


def symlog(values: Any) -> Array:
    """A scale for roots: logarithmic far from 0, linear near it."""
    values = np.asarray(values, float)
    return np.sign(values) * np.log10(1.0 + np.abs(values) / _LINEAR)


def _plain(title: str, x: str, y: str, height: int, **options: Any) -> Any:
    """A figure in the house's light style."""
    plot = figure(
        title=title,
        x_axis_label=x,
        y_axis_label=y,
        height=height,
        sizing_mode="stretch_width",
        tools="pan,box_zoom,wheel_zoom,reset,save",
        toolbar_location="right",
        output_backend="canvas",
        **options,
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.outline_line_color = None
    heading: Any = plot.title
    heading.text_font_size, heading.text_color = "13px", _INK
    for axis in plot.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "11px"
        axis.axis_label_text_color = axis.major_label_text_color = _INK
        axis.axis_line_color = axis.major_tick_line_color = "#999999"
        axis.minor_tick_line_color = None
        formatter: Any = axis.formatter
        formatter.use_scientific = False
    plot.grid.grid_line_color = _GRID
    return plot


def _source(*names: str) -> Any:
    return ColumnDataSource({name: [] for name in names})


def _put(source: Any, data: dict[str, Any]) -> None:
    """New numbers; nothing is sent where there were none and are none."""
    if any(map(len, data.values())) or any(map(len, source.data.values())):
        source.data = data


def _with_legend(plot: Any, entries: Sequence[tuple[str, Any]]) -> dict[str, LegendItem]:
    """A legend above; its items by name, to be hidden while there is nothing of them."""
    items = {name: LegendItem(label=name, renderers=[glyph]) for name, glyph in entries}
    legend: Any = Legend(items=list(items.values()), orientation="horizontal")
    legend.label_text_font_size, legend.border_line_color, legend.padding = "11px", None, 0
    legend.spacing, legend.glyph_width, legend.margin, legend.click_policy = 10, 16, 0, "hide"
    plot.add_layout(legend, "above")
    return items


def _appear(items: Mapping[str, LegendItem], **there: object) -> None:
    for name, item in items.items():
        if name in there:
            item.visible = there[name] is not None


class QueuePlot:
    """Queue over time: the fluid, the hybrid's mean and range over seeds, packets, and what is kept."""

    def __init__(self, height: int) -> None:
        self.plot = _plain("Queue of the most loaded link", "time [ms]", "queue [KB]", height)
        self._band = _source("x", "low", "high")
        self._lines = {name: _source("x", "y") for name in ("fluid", "hybrid", "packets", "kept")}
        area = self.plot.varea("x", "low", "high", source=self._band, color=_COLOURS["hybrid"], alpha=0.25)
        style = {"fluid": (2.0, "solid"), "hybrid": (1.5, "solid"), "packets": (1.5, "solid"), "kept": (1.5, "dashed")}
        entries = [("range over seeds", area)]
        for name in ("packets", "hybrid", "fluid", "kept"):
            width, dash = style[name]
            glyph = self.plot.line(
                "x", "y", source=self._lines[name], color=_COLOURS[name], line_width=width, line_dash=dash
            )
            entries.append((name, glyph))
        self._items = _with_legend(self.plot, list(reversed(entries)))
        self.plot.y_range = Range1d(start=0, end=1)
        # Not in the title: to change that lays out the page anew, which takes longer than all that is drawn.
        self._note = Label(x=8, y=2, x_units="screen", y_units="screen", text="", text_font_size="11px")
        self._note.text_color, self._note.background_fill_color = _INK, "white"
        self._note.background_fill_alpha = 0.7
        self.plot.add_layout(self._note)

    def show(self, now: Answer, packets: Run | None, kept: Answer | None) -> None:
        """Put in new numbers."""
        runs = {"fluid": now.fluid, "hybrid": now.hybrid, "packets": packets, "kept": kept and kept.fluid}
        for name, run in runs.items():
            _put(self._lines[name], _line(run))
        _appear(self._items, **runs)
        # Flows that start at line rate fill the queue for a moment, far beyond where it stays: that is cut off.
        tops = [run.queue[:, run.time >= _BEGINS * run.time[-1]].max() for run in runs.values() if run is not None]
        peak = max(run.queue.max() for run in runs.values() if run is not None)
        top = min(1.25 * max(tops), 1.05 * peak) or 1e3
        self.plot.y_range.end, self.plot.y_range.reset_end = top / 1e3, 1.05 * peak / 1e3
        self._note.text = f"at first up to {show(peak, SIZE, 3)}" if peak > top else ""
        shown = packets or now.hybrid
        low, _, high = shown.band if shown is not None else (np.empty(0),) * 3
        time = shown.time * 1e3 if shown is not None else np.empty(0)
        _put(self._band, {"x": time, "low": low / 1e3, "high": high / 1e3})


def _seen(run: Run) -> slice:
    """Samples that are drawn: no more than there are pixels."""
    return slice(None, None, max(1, run.time.size // _PIXELS))


def _line(run: Run | None) -> dict[str, Array]:
    if run is None:
        return {"x": np.empty(0), "y": np.empty(0)}
    seen = _seen(run)
    return {"x": run.time[seen] * 1e3, "y": run.band[1][seen] / 1e3}


class RatePlot:
    """Sending rate of a flow of each class: the fluid in full lines, the hybrid's mean dotted."""

    def __init__(self, height: int) -> None:
        self.plot = _plain("Sending rate of a flow", "time [ms]", "rate [Gbps]", height)
        columns = ("xs", "ys", "colour", "name")
        self._fluid, self._hybrid, self._kept = _source(*columns), _source(*columns), _source(*columns)
        kept = self.plot.multi_line("xs", "ys", source=self._kept, color=_COLOURS["kept"], line_dash="dashed")
        mean = self.plot.multi_line("xs", "ys", source=self._hybrid, color="colour", line_alpha=0.45, line_width=1.2)
        full = self.plot.multi_line("xs", "ys", source=self._fluid, color="colour", line_width=2)
        entries = [("fluid, by class", full), ("hybrid or packets, mean of seeds", mean), ("kept", kept)]
        self._items = _with_legend(self.plot, entries)

    def show(self, now: Answer, packets: Run | None, kept: Answer | None) -> None:
        """Put in new numbers."""
        _put(self._fluid, _rates(now.fluid))
        _put(self._hybrid, _rates(packets or now.hybrid))
        _put(self._kept, _rates(kept and kept.fluid))
        _appear(self._items, kept=kept, **{"hybrid or packets, mean of seeds": packets or now.hybrid})


def _rates(run: Run | None) -> dict[str, list[Any]]:
    rates = [] if run is None else list(run.rates[:_CLASSES, _seen(run)] * 8e-9)
    times = [] if run is None else [run.time[_seen(run)] * 1e3] * len(rates)
    names = [f"class {k}" for k in range(len(rates))]
    return {"xs": times, "ys": rates, "colour": list(_SECOND[: len(rates)]), "name": names}


class RootPlot:
    """The rightmost roots in the complex plane; what lies right of the axis grows."""

    def __init__(self, height: int) -> None:
        self.plot = _plain("Characteristic roots", "real part [1/s]", "imaginary part [1/s]", height)
        for axis, least in ((self.plot.xaxis[0], 2), (self.plot.yaxis[0], 3)):
            ticks = [0.0, *(sign * 10.0**k for k in range(least, 9) for sign in (-1, 1))]
            labels = {float(symlog(t)): _power(t) for t in ticks}
            axis.ticker = FixedTicker(ticks=sorted(labels))
            axis.major_label_overrides = labels  # type: ignore[assignment]
        self.plot.add_layout(Span(location=0, dimension="height", line_color="#bd1f01", line_dash="dashed"))
        self._sets = {name: _source("x", "y") for name in ("kept", "fairness", "aggregate")}
        looks = {"aggregate": ("circle", "#3f90da"), "fairness": ("x", "#bd1f01"), "kept": ("circle", "#c0c0c0")}
        entries = []
        for name, source in self._sets.items():
            marker, colour = looks[name]
            glyph = self.plot.scatter(
                "x", "y", source=source, marker=marker, size=8, line_color=colour, fill_color=None, line_width=1.5
            )
            entries.append((name, glyph))
        self._items = _with_legend(self.plot, list(reversed(entries)))
        self.plot.x_range = Range1d(start=-1, end=1)

    def show(self, now: Answer, packets: Run | None, kept: Answer | None) -> None:
        """Put in new numbers."""
        del packets
        _appear(self._items, kept=kept)
        old = [] if kept is None else [kept.roots.aggregate, kept.roots.fairness]
        sets = {"aggregate": [now.roots.aggregate], "fairness": [now.roots.fairness], "kept": old}
        for name, parts in sets.items():
            s = np.concatenate([*parts, np.empty(0, complex)])
            _put(self._sets[name], {"x": symlog(np.real(s)), "y": symlog(np.imag(s))})
        real = symlog(np.real(np.concatenate([now.roots.aggregate, now.roots.fairness])))
        # The axis between growth and decay is always seen.
        self.plot.x_range.start = min(float(real.min(initial=0.0)), -1.0) - 0.3
        self.plot.x_range.end = max(float(real.max(initial=0.0)), 0.5) + 0.3


def _power(value: float) -> str:
    if not value:
        return "0"
    digits = str(round(math.log10(abs(value)))).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{'−' if value < 0 else ''}10{digits}"


class DistributionPlot:
    """How long the queue is for which share of the second half."""

    def __init__(self, height: int) -> None:
        self.plot = _plain("Queue's distribution, second half", "queue [KB]", "share of time [%]", height)
        self._sets = {name: _source("left", "right", "top") for name in ("packets", "hybrid", "fluid", "kept")}
        entries = []
        for name, source in self._sets.items():
            fill = None if name == "kept" else _COLOURS[name]
            glyph = self.plot.quad(
                left="left", right="right", top="top", bottom=0, source=source, line_color=_COLOURS[name],
                fill_color=fill, fill_alpha=0.35, line_alpha=0.8, line_width=0.5 if fill else 1.0,
            )  # fmt: skip
            entries.append((name, glyph))
        self.plot.y_range.start = 0  # type: ignore[union-attr]
        self._items = _with_legend(self.plot, [entries[2], entries[1], entries[0], entries[3]])

    def show(self, now: Answer, packets: Run | None, kept: Answer | None) -> None:
        """Put in new numbers."""
        runs = {"packets": packets, "hybrid": now.hybrid, "fluid": now.fluid, "kept": kept and kept.fluid}
        _appear(self._items, **runs)
        edges = bin_edges(*runs.values())
        for name, run in runs.items():
            share = np.empty(0) if run is None else 100 * run.distribution(edges)
            some = np.flatnonzero(share)
            _put(self._sets[name], {"left": edges[some] / 1e3, "right": edges[some + 1] / 1e3, "top": share[some]})


class ChartPlot:
    """Rightmost root over two values, with its zero line and the point where the setting stands."""

    def __init__(self, height: int) -> None:
        spans = {axis: Range1d(start=0, end=1) for axis in ("x_range", "y_range")}
        self.plot = _plain("Stability: red grows, blue decays", "", "", height, **spans)
        self.plot.background_fill_color = "#dddddd"  # where there is no equilibrium
        self.plot.grid.grid_line_color = None
        self._mapper = LinearColorMapper(palette=list(_RED_TO_BLUE), low=-1, high=1, nan_color="rgba(0,0,0,0)")
        self._image: Any = ColumnDataSource({"image": [np.full((2, 2), np.nan)]})
        self.plot.image("image", x=0, y=0, dw=1, dh=1, source=self._image, color_mapper=self._mapper)
        self._edge = _source("xs", "ys")
        self._points = {name: _source("x", "y") for name in ("kept", "here")}
        self.plot.multi_line("xs", "ys", source=self._edge, color="black", line_width=1.5)
        self.plot.scatter("x", "y", source=self._points["kept"], size=11, color="white", line_color="#717581")
        self.plot.scatter("x", "y", source=self._points["here"], size=12, color="#ffa90e", line_color="black")

    def clear(self) -> None:
        """Take away what was of another kind of setting."""
        _put(self._image, {"image": [np.full((2, 2), np.nan)]})
        _put(self._edge, {"xs": [], "ys": []})
        for source in self._points.values():
            _put(source, {"x": [], "y": []})

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
        _put(self._image, {"image": [paces]})
        places = np.linspace(0, 1, chart.x.size), np.linspace(0, 1, chart.y.size)
        lines: Any = contour_generator(*places, np.ma.masked_invalid(chart.root)).lines(0.0)
        _put(self._edge, {"xs": [line[:, 0] for line in lines], "ys": [line[:, 1] for line in lines]})
        axes = (self.plot.xaxis[0], self.plot.yaxis[0])
        for axis, name, values in zip(axes, chart.names, (chart.x, chart.y), strict=True):
            where = np.unique(np.linspace(0, values.size - 1, _TICKS).astype(int))
            ticks = [float(k / (values.size - 1)) for k in where]
            axis.ticker = FixedTicker(ticks=ticks)
            axis.major_label_overrides = {
                t: _short(knobs[name], float(values[k])) for t, k in zip(ticks, where, strict=True)
            }
            axis.axis_label = knobs[name].label
        for name, at in (("here", here), ("kept", kept)):
            _put(self._points[name], _place(chart, at))


def _short(knob: Knob, value: float) -> str:
    return show(float(value), knob.spec.dimension, 3)


def _place(chart: Chart, at: Mapping[str, float]) -> dict[str, list[float]]:
    """A setting's place in a chart's unit square; nowhere if it is outside."""
    found = []
    for name, values in zip(chart.names, (chart.x, chart.y), strict=True):
        value = at.get(name)
        if not isinstance(value, float) or not values[0] <= value <= values[-1]:
            return {"x": [], "y": []}
        found.append(float(np.interp(value, values, np.linspace(0, 1, values.size))))
    return {"x": [found[0]], "y": [found[1]]}
