"""A link's queue: a straight line until the next event, its marking clock, what it lets through, and its statistics.

First in, first out: what joins at t leaves at D(t) = t + q(t)/C. While there is a queue, a flow leaves at C a/A, its
share of what arrived; else as it arrives. Each change of the mixture is written down with the time at which it leaves.

Statistics over the window are exact moments, and the distribution in bins. A line from one length to another spends its
time evenly over the lengths between; midpoints of segments would put the 95th percentile off by a tenth. Whole bins
that a line crosses share one density, kept as two steps of it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.hybrid.layout import BINS, EMPTY, FIRST, LOADS, NEVER
from fluidcc.engines.hybrid.random_marks import gained, hazard

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


@kernel
def busy(link: Any) -> Any:
    """Check whether the link has a queue, or is about to have one."""
    return link.queue > 0.0 or link.arriving > link.rate


@kernel
def departure(link: Any, time: Any) -> Any:
    """Compute when what joins the queue at a time leaves it; the time is not before that of the link's state."""
    if not busy(link):
        return time
    return time + max(link.queue + link.slope * (time - link.at), 0.0) / link.rate


@kernel
def per_byte(link: Any) -> Any:
    """Slope of the probability on a piece of the marking."""
    z = link.zone
    return (link.chances[z + 1] - link.chances[z]) / (link.queues[z + 1] - link.queues[z])


@kernel
def chance(link: Any, queue: Any) -> Any:
    """Return the probability of a queue on the present piece."""
    z = link.zone
    p = link.chances[z] + per_byte(link) * (queue - link.queues[z])
    return min(max(p, 0.0), link.chances[z + 1])


@kernel
def at_load(link: Any) -> Any:
    """Return the probability of an empty queue, by its load."""
    load = min(link.arriving / link.rate, 1.0) * LOADS
    at = int(load)
    return link.meeting[at] + (load - at) * (link.meeting[at + 1] - link.meeting[at])


@kernel
def advance(core: Any, link: Any, time: Any) -> None:
    """Bring a queue, its marking clock and its statistics to a time."""
    span = time - link.at
    link.at = time
    if span <= 0.0:
        return
    before = link.queue
    after = max(before + link.slope * span, 0.0)
    link.queue = after
    link.sent += span * (link.rate if before > 0.0 or after > 0.0 else min(link.arriving, link.rate))
    if link.zone == EMPTY:
        link.hazard += link.per_packet * span
    elif link.zone < link.top:
        now = chance(link, after)
        per_packet = hazard(now)
        if link.zone < link.likely:
            link.hazard += gained(link.chance, link.per_packet, now, per_packet, span)
        link.chance, link.per_packet = now, per_packet
    if after > link.most:
        link.most = after
    if core.watching:
        account(link, before, after, span)


@kernel
def place(link: Any, queue: Any, zone: Any) -> None:
    """Put a queue exactly to where it was found to be."""
    link.queue = queue
    link.zone = zone
    if zone < link.top:
        link.chance = at_load(link) if zone == EMPTY else chance(link, queue)
        link.per_packet = hazard(link.chance)


@kernel
def cross(link: Any) -> None:
    """Move the queue to the next piece in its way, or to nothing, as it has come to the end of this one."""
    if link.slope > 0.0:
        place(link, link.queues[link.zone + 1], link.zone + 1)
    elif link.zone > FIRST:
        place(link, link.queues[link.zone], link.zone - 1)
    else:
        place(link, 0.0, EMPTY)


@kernel
def until_crossing(link: Any) -> Any:
    """Return the time until the queue comes to the end of its piece; infinite if it does not move that way."""
    if link.slope > 0.0 and link.zone < link.top:
        return max(link.queues[link.zone + 1] - link.queue, 0.0) / link.slope
    if link.slope < 0.0:
        return max(link.queue - link.queues[link.zone], 0.0) / -link.slope
    return NEVER


@kernel
def steer(link: Any) -> None:
    """Set the queue's slope after a change of arrivals or at its end; an empty queue is marked by its load."""
    if busy(link):
        link.slope = link.arriving - link.rate
        if link.zone == EMPTY:
            place(link, 0.0, FIRST)
    else:
        link.slope = 0.0
        place(link, 0.0, EMPTY)
