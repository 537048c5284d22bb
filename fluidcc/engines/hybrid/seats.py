"""A flow at one link: at what rate it arrives there, and which of its packets is the next that is marked and matters.

A seat listens until the marking clock of its queue has gone far enough, and its next packet is marked then; above Kmax
every next packet is. After a mark that settles what its receiver will do, it is deaf: it waits for the first packet
that comes after the end of the receiver's interval.
"""

from __future__ import annotations

import math
from typing import Any

from fluidcc.engines.hybrid import receiver
from fluidcc.engines.hybrid.calendar import schedule
from fluidcc.engines.hybrid.chance import exponential, hazard
from fluidcc.engines.hybrid.layout import (
    ABOVE,
    DEAF,
    GROW_CNPS,
    GROW_TRANSIT,
    HAZARDS,
    IDLE,
    LISTENING,
    NEVER,
    PACKETS,
    RAMP,
    RIPE,
    WAKES,
)
from fluidcc.engines.hybrid.queue import departure
from fluidcc.engines.hybrid.tree import put_least, put_sum
from fluidcc.engines.packet.jit import inlined, kernel

_WHOLE = 1e-9  # of a packet: a boundary that has just been passed
_BYTE = 0.5
_SLACK = 4  # places that a ring keeps free, more than an event can fill
_MOST = 1.0 - 1e-12


@kernel
def arrive(flows: Any, seats: Any, trees: Any, sums: Any, link: Any, s: Any, rate: Any) -> None:
    """A flow arrives at another rate from now on, at a link that has been brought to now."""
    seat = seats[s]
    seat.came += seat.rate * (link.at - seat.at)
    seat.at = link.at
    if seat.last and rate == 0.0 and seat.rate > 0.0:
        complete(link, seat, flows[seat.flow])
    seat.rate = rate
    put_sum(sums, link.tree, link.leaves, seat.place, rate)
    link.arriving = sums[link.tree + 1]
    if not link.on_departure:
        candidates(flows, seats, trees, link, s, rate)


@kernel
def complete(link: Any, seat: Any, flow: Any) -> None:
    """The last byte of a finite flow has come to its last queue; its last packet came as a whole, when it began."""
    if flow.state == 2 and seat.came >= flow.total - _BYTE:
        joined = link.at - min(seat.packet, flow.total) / seat.rate
        flow.finish = max(departure(link, link.at) + joined - link.at, 0.0) + flow.beyond + flow.answer


@kernel
def candidates(flows: Any, seats: Any, trees: Any, link: Any, s: Any, rate: Any) -> None:
    """The packets that may be marked come at another rate from now on."""
    seat = seats[s]
    if seat.wait == LISTENING:
        seat.left -= (link.hazard - seat.hazard) * seat.mark_rate / seat.packet
        seat.hazard = link.hazard
    seat.mark_came += seat.mark_rate * (link.at - seat.mark_at)
    seat.mark_at = link.at
    seat.mark_rate = rate
    retime(flows, seats, trees, link, s)


@kernel
def retime(flows: Any, seats: Any, trees: Any, link: Any, s: Any) -> None:
    """When a seat's wait is over, on each of its link's clocks."""
    seat = seats[s]
    due, packet, wake = NEVER, NEVER, NEVER
    if seat.wait == DEAF:
        wake = flows[seat.flow].deaf - flows[seat.flow].beyond
    elif seat.mark_rate > 0.0 and seat.wait != IDLE:
        if seat.wait == LISTENING:
            due = seat.hazard + max(seat.left, 0.0) * seat.packet / seat.mark_rate
        if seat.wait == RIPE or link.zone == ABOVE:
            packet = seat.mark_at + (boundary(seat) - seat.mark_came) / seat.mark_rate
    put_least(trees[HAZARDS], link.tree, link.leaves, seat.place, due)
    put_least(trees[PACKETS], link.tree, link.leaves, seat.place, packet)
    put_least(trees[WAKES], link.tree, link.leaves, seat.place, wake)


@kernel
def boundary(seat: Any) -> Any:
    """Bytes at which the next packet is whole."""
    return (math.floor(seat.mark_came / seat.packet + _WHOLE) + 1.0) * seat.packet


@kernel
def listen(sim: Any, link: Any, s: Any) -> None:
    """Wait for the next mark from now on, the packet that is under way included."""
    seat = sim.seats[s]
    seat.mark_came += seat.mark_rate * (link.at - seat.mark_at)
    seat.mark_at = link.at
    seat.wait = LISTENING
    seat.hazard = link.hazard
    seat.left = exponential(sim.core[0].seed, s, seat.draws)
    seat.draws += 1
    if link.zone == RAMP:
        catch_up(link, seat)
    retime(sim.flows, sim.seats, sim.trees, link, s)


@kernel
def catch_up(link: Any, seat: Any) -> None:
    """Count the packet that is under way from its beginning, as one packet is one chance."""
    begun = seat.mark_came - (boundary(seat) - seat.packet)
    seat.left -= hazard(min(link.chance, _MOST)) * max(begun, 0.0) / seat.packet
    if seat.left <= 0.0:
        seat.wait = RIPE


@inlined
def rezone(sim: Any, link: Any, was: Any) -> None:
    """The queue has come above Kmax, or back: who listens has every next packet marked, or waits by chance again."""
    if (link.zone == ABOVE) == (was == ABOVE):
        return
    for i in range(link.seats):
        s = sim.seats_at[link.first + i]
        seat = sim.seats[s]
        if seat.wait == LISTENING:
            seat.mark_came += seat.mark_rate * (link.at - seat.mark_at)
            seat.left -= (link.hazard - seat.hazard) * seat.mark_rate / seat.packet
            seat.mark_at, seat.hazard = link.at, link.hazard
            if link.zone == RAMP:
                catch_up(link, seat)
            retime(sim.flows, sim.seats, sim.trees, link, s)


@inlined
def ripen(sim: Any, link: Any, s: Any) -> None:
    """The marking clock has gone far enough: the next packet is marked."""
    seat = sim.seats[s]
    seat.mark_came += seat.mark_rate * (link.at - seat.mark_at)
    seat.mark_at = link.at
    seat.wait = RIPE
    retime(sim.flows, sim.seats, sim.trees, link, s)


@inlined
def mark(sim: Any, link: Any, s: Any) -> None:
    """A packet of a flow is marked now."""
    core, seat = sim.core[0], sim.seats[s]
    core.marks += 1
    seat.mark_came = boundary(seat)
    seat.mark_at = link.at
    leaves = link.at if link.on_departure else departure(link, link.at)
    if seat.last:
        received(sim, link, s, leaves)
    else:
        send_on(sim, link, s + 1, leaves)
    if seat.wait != DEAF:
        listen(sim, link, s)


@kernel
def send_on(sim: Any, link: Any, s: Any, leaves: Any) -> None:
    """A marked packet goes on to a seat, behind all that left before it."""
    ring = sim.transit_times.shape[1]
    at = (link.transit_head + link.transit) % ring
    sim.transit_times[link.number, at] = leaves + link.after
    sim.transit_seats[link.number, at] = s
    link.transit += 1
    if link.transit > ring - _SLACK:
        sim.core[0].status = GROW_TRANSIT


@kernel
def received(sim: Any, link: Any, s: Any, leaves: Any) -> None:
    """A marked packet leaves the last queue of its flow at a time; what its receiver then waits for."""
    core, seat = sim.core[0], sim.seats[s]
    flow = sim.flows[seat.flow]
    time = leaves + flow.beyond
    receiver.marked(flow, sim.cnps, seat.flow, time)
    if flow.waiting > sim.cnps.shape[1] - _SLACK:
        core.status = GROW_CNPS
    schedule(core, flow, seat.flow, sim.looks, sim.cnps, sim.calendar)
    if flow.deaf > time and seat.wait != IDLE:
        seat.wait = DEAF
        retime(sim.flows, sim.seats, sim.trees, link, s)
