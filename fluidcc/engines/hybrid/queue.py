"""A link's queue: a straight line until the next event, its marking clock, and what it lets through.

First in, first out: what joins at t leaves at D(t) = t + q(t)/C. While there is a queue, a flow leaves at C a/A, its
share of what arrived; else as it arrives. Each change of the mixture is written down with the time at which it leaves.
"""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.hybrid.layout import EMPTY, FIRST, LOADS, NEVER
from fluidcc.engines.hybrid.random_marks import gained, hazard
from fluidcc.engines.hybrid.statistics import account


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
