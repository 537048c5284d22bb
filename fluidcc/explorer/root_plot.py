"""Characteristic roots in the complex plane, in Bokeh."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from bokeh.models import FixedTicker, Span

from fluidcc.dde.delay_system import Array
from fluidcc.explorer.answers import Answer
from fluidcc.explorer.picture import plain, put, source, span, with_legend
from fluidcc.explorer.views import RootMap

_LINEAR = 100.0  # 1/s, below which the axes are linear
_LOOKS = {"aggregate": ("circle", "#3f90da"), "fairness": ("x", "#bd1f01"), "kept": ("circle", "#a0a0a0")}


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
