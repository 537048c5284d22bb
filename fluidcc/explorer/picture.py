"""Common parts of the explorer's figures: a style, data sent only if they change, lines thinned to pixels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, Legend, LegendItem, Range1d
from bokeh.plotting import figure

from fluidcc.dde.delay_system import Array
from fluidcc.plotting.colours import ENGINES, SERIES

COLOURS = {"fluid": ENGINES["fluid"], "hybrid": ENGINES["hybrid"], "packets": ENGINES["packet"], "kept": SERIES[8]}
INK, _GRID = "#444444", "#e8e8e8"
COLUMNS = 600  # of pixels that a line is drawn on, about; each shows the line's least and largest value there
_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


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
