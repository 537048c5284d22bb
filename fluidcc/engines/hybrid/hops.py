"""A flow at one link: at what rate it arrives there, and which of its packets is the next that is marked and matters.

A seat listens until the marking clock of its queue has gone far enough, and its next packet is marked then; above Kmax
every next packet is. Where a packet takes longer to come than the queue to drain, the clock would mark packets of a
queue that is long gone: they are drawn one by one, as they join. After a mark that settles what its receiver will do,
a seat is deaf: it waits for the first packet that comes after the end of the receiver's interval.
"""

from __future__ import annotations

import math
from typing import Any

from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.hybrid import receiver
from fluidcc.engines.hybrid.calendar import schedule
from fluidcc.engines.hybrid.layout import (
    DEAF,
    GROW_TRANSIT,
    HAZARDS,
    IDLE,
    LISTENING,
    NEVER,
    PACKETS,
    RIPE,
    SINGLY,
    WAKES,
)
from fluidcc.engines.hybrid.queue import departure
from fluidcc.engines.hybrid.random_marks import exponential, uniform
from fluidcc.engines.hybrid.tree import put_least, put_sum

_WHOLE = 1e-9  # of a packet: a boundary that has just been passed
_NOW = 1e-6  # of a packet: what is left of one that goes at once
_BYTE = 0.5
_SLACK = 4  # places that a ring keeps free, more than an event can fill


@kernel
def arrive(core: Any, flow: Any, seat: Any, trees: Any, sums: Any, link: Any, s: Any, rate: Any) -> None:
    """Set the rate at which a flow arrives, from now on, at a link that has been brought to now."""
    seat.came += seat.rate * (link.at - seat.at)
    seat.at = link.at
    if seat.last and rate == 0.0 and seat.rate > 0.0:
        complete(core, link, seat, flow)
    seat.rate = rate
    put_sum(sums, link.tree, link.leaves, seat.place, rate)
    link.arriving = sums[link.tree + 1]
    if not link.on_departure:
        candidates(core, flow, seat, trees, link, s, rate)


@kernel
def pace(link: Any, seat: Any, rate: Any) -> None:
    """Set a sender's next packet to go the newest rate's gap after its last one, whatever the rates were since.

    So what counts as come of that packet is the time since the last one at the newest rate; the fluid is as it is.
    Where marks are set on departure, and at later links, packets stay as far into the fluid as they are.
    """
    seat.mark_came += seat.mark_rate * (link.at - seat.mark_at)
    seat.mark_at = link.at
    if seat.mark_rate > 0.0 and not link.on_departure:
        last = boundary(seat) - seat.packet
        begun = max(seat.mark_came - last, 0.0) * rate / seat.mark_rate
        seat.mark_came = last + min(begun, (1.0 - _NOW) * seat.packet)


@kernel
def complete(core: Any, link: Any, seat: Any, flow: Any) -> None:
    """Finish a flow whose last byte has come to its last queue; its last packet came as a whole, when it began."""
    if flow.state == 2 and seat.came >= flow.total - _BYTE:
        joined = link.at - min(seat.packet, flow.total) / seat.rate
        flow.finish = max(departure(link, link.at) + joined - link.at, 0.0) + flow.beyond + flow.answer
        if flow.followers < flow.followers_end:
            flow.next_ended = core.ended
            core.ended = seat.flow + 1


@kernel
def candidates(core: Any, flow: Any, seat: Any, trees: Any, link: Any, s: Any, rate: Any) -> None:
    """Set the rate at which packets that may be marked come, from now on."""
    if seat.wait == LISTENING:
        seat.left -= (link.hazard - seat.hazard) * seat.mark_rate / seat.packet
        seat.hazard = link.hazard
    seat.mark_came += seat.mark_rate * (link.at - seat.mark_at)
    seat.mark_at = link.at
    seat.mark_rate = rate
    if seat.wait == SINGLY:
        if not rare(link, seat):
            hear(core, link, seat, s)
    elif (seat.wait == LISTENING or seat.wait == RIPE) and rare(link, seat):
        seat.wait = SINGLY
    retime(flow, seat, trees, link)


@kernel
def rare(link: Any, seat: Any) -> Any:
    """Check for a packet that takes longer to come than the queue from the top to nothing."""
    return 0.0 < seat.mark_rate * link.draining < seat.packet


@kernel
def hear(core: Any, link: Any, seat: Any, s: Any) -> None:
    """Draw how far the marking clock goes until the next mark."""
    seat.wait = LISTENING
    seat.hazard = link.hazard
    seat.left = exponential(core.seed, s, seat.draws)
    seat.draws += 1
    if link.zone < link.top:
        catch_up(link, seat)


@kernel
def retime(flow: Any, seat: Any, trees: Any, link: Any) -> None:
    """Set when a seat's wait is over, on each of its link's clocks."""
    due, packet, wake = NEVER, NEVER, NEVER
    if seat.wait == DEAF:
        wake = flow.deaf - flow.beyond
    elif seat.mark_rate > 0.0 and seat.wait != IDLE:
        if seat.wait == LISTENING:
            due = seat.hazard + max(seat.left, 0.0) * seat.packet / seat.mark_rate
        if seat.wait == RIPE or seat.wait == SINGLY or link.zone == link.top:
            packet = seat.mark_at + (boundary(seat) - seat.mark_came) / seat.mark_rate
    leaf = link.tree + link.leaves + seat.place
    if trees[HAZARDS, leaf] != due:
        put_least(trees[HAZARDS], link.tree, link.leaves, seat.place, due)
    if trees[PACKETS, leaf] != packet:
        put_least(trees[PACKETS], link.tree, link.leaves, seat.place, packet)
    if trees[WAKES, leaf] != wake:
        put_least(trees[WAKES], link.tree, link.leaves, seat.place, wake)


@kernel
def boundary(seat: Any) -> Any:
    """Return the bytes at which the next packet is whole."""
    return (math.floor(seat.mark_came / seat.packet + _WHOLE) + 1.0) * seat.packet


@kernel
def listen(core: Any, flow: Any, seat: Any, trees: Any, link: Any, s: Any) -> None:
    """Wait for the next mark from now on, the packet that is under way included."""
    seat.mark_came += seat.mark_rate * (link.at - seat.mark_at)
    seat.mark_at = link.at
    if rare(link, seat):
        seat.wait = SINGLY
    else:
        hear(core, link, seat, s)
    retime(flow, seat, trees, link)


@kernel
def catch_up(link: Any, seat: Any) -> None:
    """Count the packet that is under way from its beginning, as one packet is one chance."""
    begun = seat.mark_came - (boundary(seat) - seat.packet)
    if begun > 0.0:
        seat.left -= link.per_packet * begun / seat.packet
    if seat.left <= 0.0:
        seat.wait = RIPE


@inlined
def rezone(sim: Any, link: Any, was: Any) -> None:
    """Update seats as the queue crosses the top: those that listen get every next packet marked, or by chance."""
    if (link.zone == link.top) == (was == link.top):
        return
    for i in range(link.seats):
        s = sim.seats_at[link.first + i]
        seat = sim.seats[s]
        if seat.wait == LISTENING:
            seat.mark_came += seat.mark_rate * (link.at - seat.mark_at)
            seat.left -= (link.hazard - seat.hazard) * seat.mark_rate / seat.packet
            seat.mark_at, seat.hazard = link.at, link.hazard
            if link.zone < link.top:
                catch_up(link, seat)
            retime(sim.flows[seat.flow], seat, sim.trees, link)


@inlined
def ripen(sim: Any, link: Any, s: Any) -> None:
    """Have the next packet marked, as the marking clock has gone far enough."""
    seat = sim.seats[s]
    seat.mark_came += seat.mark_rate * (link.at - seat.mark_at)
    seat.mark_at = link.at
    seat.wait = RIPE
    retime(sim.flows[seat.flow], seat, sim.trees, link)


@inlined
def packet(sim: Any, link: Any, s: Any) -> None:
    """Mark a flow's packet that comes now; if packets are drawn one by one, draw whether to."""
    core, seat = sim.core[0], sim.seats[s]
    flow = sim.flows[seat.flow]
    seat.mark_came = boundary(seat)
    seat.mark_at = link.at
    if seat.wait == SINGLY and not drawn(core, link, seat, s):
        retime(flow, seat, sim.trees, link)
        return
    core.marks += 1
    leaves = link.at if link.on_departure else departure(link, link.at)
    if seat.last:
        received(core, flow, seat, sim.trees, sim.looks, sim.cnps, sim.marks, sim.calendar, link, leaves)
    else:
        send_on(core, sim.transit_times, sim.transit_seats, link, s + 1, leaves)
    if seat.wait != DEAF:
        listen(core, flow, seat, sim.trees, link, s)


@kernel
def drawn(core: Any, link: Any, seat: Any, s: Any) -> Any:
    """Draw whether chance marks a packet that comes now."""
    if link.zone == link.top:
        return True
    if link.chance <= 0.0:
        return False
    seat.draws += 1
    return uniform(core.seed, s, seat.draws - 1) <= link.chance


@kernel
def send_on(core: Any, times: Any, seats: Any, link: Any, s: Any, leaves: Any) -> None:
    """Move a marked packet on to a seat, behind all that left before it."""
    ring = times.shape[1]
    at = (link.transit_head + link.transit) % ring
    times[link.number, at] = leaves + link.after
    seats[link.number, at] = s
    link.transit += 1
    if link.transit > ring - _SLACK:
        core.status = GROW_TRANSIT


@kernel
def received(
    core: Any, flow: Any, seat: Any, trees: Any, looks: Any, cnps: Any, marks: Any, calendar: Any, link: Any, at: Any
) -> None:
    """Deliver a marked packet that leaves its flow's last queue at a time; update what the receiver waits for."""
    time = at + flow.beyond
    if flow.nic_cnp_interval > 0.0:
        receiver.marked_for_nic(core, flow, marks, seat.flow, time)
    else:
        receiver.marked(core, flow, cnps, seat.flow, time)
    schedule(core, flow, seat.flow, looks, cnps, calendar)
    if flow.deaf > time and seat.wait != IDLE:
        seat.wait = DEAF
        retime(flow, seat, trees, link)
