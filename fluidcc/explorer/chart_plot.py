"""The stability chart, in Bokeh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, LinearColorMapper
from contourpy import contour_generator

from fluidcc.explorer.answers import Chart
from fluidcc.explorer.picture import plain, put, source
from fluidcc.explorer.root_plot import symlog
from fluidcc.explorer.settings import Knob
from fluidcc.units import show

_RED_TO_BLUE = (  # ColorBrewer's RdBu: told apart also by those who see fewer colours
    "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d", "#b2182b",
)  # fmt: skip
_TICKS = 5


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
