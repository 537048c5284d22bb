"""Statistics over the window of a queue that is made of straight lines: exact moments, and its distribution in bins.

A line from one length to another spends its time evenly over the lengths between; midpoints of segments would put the
95th percentile off by a tenth. Whole bins that a line crosses share one density, kept as two steps of it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.hybrid.layout import BINS, LOADS

_FINE = 128.0  # bytes in a bin up to _KNEE
_KNEE = 65536.0  # bytes; beyond, each doubling has 128 bins
_LINEAR = 512
_PER_DOUBLING = 128
_AT = np.arange(BINS + 1 - _LINEAR)
_EDGES = np.concatenate(  # as of `edge`
    [_FINE * np.arange(_LINEAR), _KNEE * 2.0 ** (_AT // _PER_DOUBLING) * (1 + _AT % _PER_DOUBLING / _PER_DOUBLING)]
)
_WIDTHS, _CENTRES = np.diff(_EDGES), (_EDGES[1:] + _EDGES[:-1]) / 2


@kernel
def bin_of(queue: Any) -> Any:
    """Bin of a queue length [bytes]: 128 B wide up to 64 KiB, then 0.4 to 0.8 %."""
    if queue < _KNEE:
        return int(queue / _FINE)
    share, doublings = math.frexp(queue / _KNEE)  # share in [1/2, 1)
    return min(_LINEAR + _PER_DOUBLING * (doublings - 1) + int((2.0 * share - 1.0) * _PER_DOUBLING), BINS - 1)


@kernel
def edge(i: Any) -> Any:
    """Lower edge of a bin."""
    if i <= _LINEAR:
        return _FINE * i
    doubling = (i - _LINEAR) // _PER_DOUBLING
    return math.ldexp(_KNEE * (1.0 + (i - _LINEAR) % _PER_DOUBLING / _PER_DOUBLING), int(doubling))


@kernel
def account(link: Any, start: Any, stop: Any, span: Any) -> None:
    """Count a straight line from one length of the queue to another."""
    link.area += span * 0.5 * (start + stop)
    link.area2 += span * (start * start + start * stop + stop * stop) / 3.0
    link.least_in_window = min(link.least_in_window, stop)
    link.most_in_window = max(link.most_in_window, stop)
    was, now = link.bin, bin_of(stop)
    link.bin = now
    if was == now:
        link.mass[now] += span
        if start == 0.0 and stop == 0.0:
            load = min(link.arriving / link.rate, 1.0) * LOADS
            at = int(load)
            link.idle[at] += span * (1.0 - (load - at))
            link.idle[at + 1] += span * (load - at)
        elif now == 0:
            link.lowest += span * 0.5 * (start + stop)
    else:
        density = span / abs(stop - start)
        low, high, first, last = (start, stop, was, now) if stop > start else (stop, start, now, was)
        top, bottom = edge(first + 1), edge(last)
        link.mass[first] += density * (top - low)
        link.mass[last] += density * (high - bottom)
        if first == 0:
            link.lowest += density * 0.5 * (top * top - low * low)
        link.density[first + 1] += density
        link.density[last] -= density
    link.above_xoff += span * share_above(start, stop, link.xoff)
    link.above_room += span * share_above(start, stop, link.room)


@kernel
def share_above(start: Any, stop: Any, level: Any) -> Any:
    """Share of a straight line that is above a level."""
    low, high = min(start, stop), max(start, stop)
    if low >= level:
        return 1.0
    return (high - level) / (high - low) if high > level else 0.0


def lengths_of(link: Any, span: float) -> tuple[Any, Any]:
    """Lengths of the fluid's queue [bytes], from nothing on, and the time that it had each in a window [s]."""
    density = np.cumsum(link.density[:BINS])
    step = np.abs(link.density).max(initial=0.0)
    density[np.abs(density) < 1e-12 * step] = 0.0  # what steps up and down leaves behind
    spent = np.maximum(link.mass + density * _WIDTHS, 0.0)
    spent[0] = max(spent[0] - link.idle.sum(), 0.0)
    lengths = _CENTRES.copy()
    lengths[0] = link.lowest / spent[0] if spent[0] > 0.0 else 0.0  # much of it may be of a queue that is nearly empty
    there = spent > 1e-12 * span
    return lengths[there], spent[there]


def in_bins(lengths: Any, times: Any) -> tuple[Any, Any]:
    """Time spent empty and in each bin [s], and the integral of the queue over it, both (1 + bins,)."""
    at = np.where(lengths > 0.0, np.searchsorted(_EDGES, lengths, side="right"), 0)
    spent, area = np.zeros(BINS + 1), np.zeros(BINS + 1)
    np.add.at(spent, np.minimum(at, BINS), times)
    np.add.at(area, np.minimum(at, BINS), times * lengths)
    return spent, area
