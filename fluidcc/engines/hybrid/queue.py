"""A link's queue: a straight line until the next event, its marking clock, and what it lets through.

First in, first out: what joins at t leaves at D(t) = t + q(t)/C. While there is a queue, a flow leaves at C a/A, its
share of what arrived; else as it arrives. Each change of the mixture is written down with the time at which it leaves.
"""

from __future__ import annotations

from typing import Any

from fluidcc.engines.hybrid.chance import gained, hazard
from fluidcc.engines.hybrid.layout import ABOVE, BELOW, NEVER, RAMP
from fluidcc.engines.hybrid.statistics import account
from fluidcc.engines.packet.jit import kernel


@kernel
def busy(link: Any) -> Any:
    """Whether the link has a queue, or is about to."""
    return link.queue > 0.0 or link.arriving > link.rate


@kernel
def departure(link: Any, time: Any) -> Any:
    """When what joins the queue at a time leaves it; the time is not before that of the link's state."""
    if not busy(link):
        return time
    return time + max(link.queue + link.slope * (time - link.at), 0.0) / link.rate


@kernel
def chance(link: Any, queue: Any) -> Any:
    """RED's probability (DCQCN, Fig. 5) on the ramp, which step marking does not have."""
    p = link.pmax * (queue - link.kmin) / (link.kmax - link.kmin)
    return min(max(p, 0.0), 1.0)


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
    if link.zone == RAMP:
        now = chance(link, after)
        per_packet = hazard(now)
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
    if zone == RAMP:
        link.chance = chance(link, queue)
        link.per_packet = hazard(link.chance)


@kernel
def zone_of(link: Any, queue: Any) -> Any:
    """Where a length is; at a threshold, below it."""
    if queue <= link.kmin:
        return BELOW
    return RAMP if queue <= link.kmax else ABOVE


@kernel
def cross(link: Any) -> None:
    """The queue has come to the next threshold in its way, or to nothing."""
    if link.slope > 0.0:
        if link.zone == BELOW:  # step marking has no ramp
            place(link, link.kmin, RAMP if link.kmin < link.kmax else ABOVE)
        else:
            place(link, link.kmax, ABOVE)
    elif link.zone == ABOVE:
        place(link, link.kmax, RAMP if link.kmin < link.kmax else BELOW)
    elif link.zone == RAMP:
        place(link, link.kmin, BELOW)
    else:
        place(link, 0.0, BELOW)


@kernel
def until_crossing(link: Any) -> Any:
    """Time until the queue comes there; infinite if it does not move that way."""
    if link.slope > 0.0 and link.zone != ABOVE:
        return max((link.kmin if link.zone == BELOW else link.kmax) - link.queue, 0.0) / link.slope
    if link.slope < 0.0:
        goal = 0.0
        if link.zone != BELOW:
            goal = link.kmax if link.zone == ABOVE else link.kmin
        return max(link.queue - goal, 0.0) / -link.slope
    return NEVER


@kernel
def steer(link: Any) -> None:
    """The slope of the queue, after a change of what arrives or at its end."""
    link.slope = link.arriving - link.rate if busy(link) else 0.0
