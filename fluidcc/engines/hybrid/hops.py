"""A flow at one link: at what rate it arrives there, and which of its packets is the next that is marked and matters.

A hop listens until the marking clock of its queue has gone far enough, and its next packet is marked then; above Kmax
every next packet is. Where a packet takes longer to come than the queue to drain, or marks are likely, the clock would
mark packets of a queue that is no more: they are drawn one by one, as they join. After a mark that settles what its
receiver will do, a hop is deaf: it waits for the first packet that comes after the end of the receiver's interval.

The receiver is the notification point (DCQCN, Fig. 6): a CNP for a marked packet, and one more for all that come in an
interval. A marked packet's way to it is known as the packet joins its last queue: the wait ahead of it there, and the
path. All that an interval asks is whether a marked packet came in it, so its CNP is known with the first one, and what
else is marked before the interval's end changes nothing: the flow is deaf until then.

Where a NIC also keeps CNPs of all its flows apart (DCQCN 3.3), a flow asks for its CNP when it has one to send, and the
NIC gives it the first free turn: first come, first served, whatever is marked for that flow until then. When the turn
is, depends on what others ask for before, so a request is an event; the marked packets that come after it wait for it.
"""

from __future__ import annotations

import math
from typing import Any

from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.hybrid.calendar import put_least, put_sum, schedule
from fluidcc.engines.hybrid.layout import (
    DEAF,
    GROW_CNPS,
    GROW_MARKS,
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

_WHOLE = 1e-9  # of a packet: a boundary that has just been passed
_NOW = 1e-6  # of a packet: what is left of one that goes at once
_BYTE = 0.5
_SLACK = 4  # places that a ring keeps free, more than an event can fill


@kernel
def marked(core: Any, flow: Any, cnps: Any, f: Any, time: Any) -> None:
    """Handle a marked packet that reaches a flow's receiver at a time still to come; they come in order."""
    if time < flow.deaf:
        return
    if time < flow.cnp_next:  # in an interval: the CNP goes at its end
        time = flow.deaf = flow.cnp_next
    notify(core, flow, cnps, f, time)


@kernel
def notify(core: Any, flow: Any, cnps: Any, f: Any, time: Any) -> None:
    """Send a CNP from the receiver of a flow at a time, and open its next interval."""
    flow.cnp_next = time + flow.cnp_interval
    at = flow.head + flow.waiting
    ring = cnps.shape[1]
    cnps[f, at if at < ring else at - ring] = time + flow.back
    flow.waiting += 1
    if flow.waiting > ring - _SLACK:
        core.status = GROW_CNPS


@kernel
def marked_for_nic(core: Any, flow: Any, marks: Any, f: Any, time: Any) -> None:
    """Handle a marked packet where the NIC spaces its CNPs: the flow asks now or at its interval's end."""
    if time < flow.deaf:
        return
    if flow.request == NEVER:
        flow.request = flow.deaf = max(time, flow.cnp_next)
        return
    ring = marks.shape[1]
    marks[f, (flow.first_mark + flow.marks) % ring] = time
    flow.marks += 1
    if flow.marks > ring - _SLACK:
        core.status = GROW_MARKS


@kernel
def ask(core: Any, flow: Any, nics: Any, cnps: Any, marks: Any, f: Any) -> None:
    """Ask a flow's NIC for a CNP now; marked packets on their way to it may make it ask again."""
    turn = max(core.now, nics[flow.nic])
    nics[flow.nic] = turn + flow.nic_cnp_interval
    flow.request, flow.deaf = NEVER, turn
    notify(core, flow, cnps, f, turn)
    while flow.marks > 0:
        time = marks[f, flow.first_mark]
        if time >= flow.deaf:
            if flow.request < NEVER:
                return
            flow.request = flow.deaf = max(time, flow.cnp_next)
        flow.first_mark = (flow.first_mark + 1) % marks.shape[1]
        flow.marks -= 1


@kernel
def arrive(core: Any, flow: Any, hop: Any, trees: Any, sums: Any, link: Any, s: Any, rate: Any) -> None:
    """Set the rate at which a flow arrives, from now on, at a link that has been brought to now."""
    hop.came += hop.rate * (link.at - hop.at)
    hop.at = link.at
    if hop.last and rate == 0.0 and hop.rate > 0.0:
        complete(core, link, hop, flow)
    hop.rate = rate
    put_sum(sums, link.tree, link.leaves, hop.place, rate)
    link.arriving = sums[link.tree + 1]
    if not link.on_departure:
        candidates(core, flow, hop, trees, link, s, rate)


@kernel
def complete(core: Any, link: Any, hop: Any, flow: Any) -> None:
    """Finish a flow whose last byte has come to its last queue; its last packet came as a whole, when it began."""
    if flow.state == 2 and hop.came >= flow.total - _BYTE:
        joined = link.at - min(hop.packet, flow.total) / hop.rate
        flow.finish = max(departure(link, link.at) + joined - link.at, 0.0) + flow.beyond + flow.answer
        if flow.followers < flow.followers_end:
            flow.next_ended = core.ended
            core.ended = hop.flow + 1


@kernel
def candidates(core: Any, flow: Any, hop: Any, trees: Any, link: Any, s: Any, rate: Any) -> None:
    """Set the rate at which packets that may be marked come, from now on."""
    if hop.wait == LISTENING:
        hop.left -= (link.hazard - hop.hazard) * hop.mark_rate / hop.packet
        hop.hazard = link.hazard
    came = hop.mark_came + hop.mark_rate * (link.at - hop.mark_at)
    if hop.wait == RIPE or hop.wait == SINGLY or (hop.wait == LISTENING and link.zone >= link.likely):
        came = min(came, boundary(hop) - _NOW * hop.packet)  # a packet that is whole now is yet to take its chance
    hop.mark_came, hop.mark_at, hop.mark_rate = came, link.at, rate
    if hop.wait == SINGLY:
        if not rare(link, flow, hop, s):
            hear(core, link, hop, s)
    elif (hop.wait == LISTENING or hop.wait == RIPE) and rare(link, flow, hop, s):
        hop.wait = SINGLY
    retime(flow, hop, trees, link)


@kernel
def rare(link: Any, flow: Any, hop: Any, s: Any) -> Any:
    """Check for packets that take longer to come than the queue from the top to nothing."""
    rate = flow.rate if s == flow.first else hop.mark_rate
    return 0.0 < rate * link.draining < hop.packet


@kernel
def hear(core: Any, link: Any, hop: Any, s: Any) -> None:
    """Draw how far the marking clock goes until the next mark."""
    hop.wait = LISTENING
    hop.hazard = link.hazard
    hop.left = exponential(core.seed, s, hop.draws)
    hop.draws += 1
    if link.zone < link.likely:
        catch_up(link, hop)


@kernel
def retime(flow: Any, hop: Any, trees: Any, link: Any) -> None:
    """Set when a hop's wait is over, on each of its link's clocks."""
    due, packet, wake = NEVER, NEVER, NEVER
    if hop.wait == DEAF:
        wake = flow.deaf - flow.beyond
    elif hop.mark_rate > 0.0 and hop.wait != IDLE:
        if hop.wait == LISTENING:
            due = hop.hazard + max(hop.left, 0.0) * hop.packet / hop.mark_rate
        if hop.wait == RIPE or hop.wait == SINGLY or link.zone >= link.likely:
            packet = hop.mark_at + (boundary(hop) - hop.mark_came) / hop.mark_rate
    leaf = link.tree + link.leaves + hop.place
    if trees[HAZARDS, leaf] != due:
        put_least(trees[HAZARDS], link.tree, link.leaves, hop.place, due)
    if trees[PACKETS, leaf] != packet:
        put_least(trees[PACKETS], link.tree, link.leaves, hop.place, packet)
    if trees[WAKES, leaf] != wake:
        put_least(trees[WAKES], link.tree, link.leaves, hop.place, wake)


@kernel
def boundary(hop: Any) -> Any:
    """Return the bytes at which the next packet is whole."""
    return (math.floor(hop.mark_came / hop.packet + _WHOLE) + 1.0) * hop.packet


@kernel
def listen(core: Any, flow: Any, hop: Any, trees: Any, link: Any, s: Any) -> None:
    """Wait for the next mark from now on, the packet that is under way included."""
    hop.mark_came += hop.mark_rate * (link.at - hop.mark_at)
    hop.mark_at = link.at
    if rare(link, flow, hop, s):
        hop.wait = SINGLY
    else:
        hear(core, link, hop, s)
    retime(flow, hop, trees, link)


@kernel
def catch_up(link: Any, hop: Any) -> None:
    """Count the packet that is under way from its beginning, as one packet is one chance."""
    begun = hop.mark_came - (boundary(hop) - hop.packet)
    if begun > 0.0:
        hop.left -= link.per_packet * begun / hop.packet
    if hop.left <= 0.0:
        hop.wait = RIPE


@inlined
def rezone(sim: Any, link: Any, was: Any) -> None:
    """Update hops as the queue crosses the top: those that listen get every next packet marked, or by chance."""
    if (link.zone >= link.likely) == (was >= link.likely):
        return
    for i in range(link.hops):
        s = sim.hops_at[link.first + i]
        hop = sim.hops[s]
        if hop.wait == LISTENING:
            hop.mark_came += hop.mark_rate * (link.at - hop.mark_at)
            hop.left -= (link.hazard - hop.hazard) * hop.mark_rate / hop.packet
            hop.mark_at, hop.hazard = link.at, link.hazard
            if link.zone < link.likely:
                catch_up(link, hop)
            retime(sim.flows[hop.flow], hop, sim.trees, link)


@inlined
def ripen(sim: Any, link: Any, s: Any) -> None:
    """Have the next packet marked, as the marking clock has gone far enough."""
    hop = sim.hops[s]
    hop.mark_came += hop.mark_rate * (link.at - hop.mark_at)
    hop.mark_at = link.at
    hop.wait = RIPE
    retime(sim.flows[hop.flow], hop, sim.trees, link)


@inlined
def packet(sim: Any, link: Any, s: Any) -> None:
    """Mark a flow's packet that comes now; if packets are drawn one by one, draw whether to."""
    core, hop = sim.core[0], sim.hops[s]
    flow = sim.flows[hop.flow]
    hop.mark_came = boundary(hop)
    hop.mark_at = link.at
    if hop.wait != RIPE and not drawn(core, link, hop, s):
        retime(flow, hop, sim.trees, link)
        return
    core.marks += 1
    leaves = link.at if link.on_departure else departure(link, link.at)
    if hop.last:
        received(core, flow, hop, sim.trees, sim.looks, sim.cnps, sim.marks, sim.calendar, link, leaves)
    else:
        send_on(core, sim.transit_times, sim.transit_hops, link, s + 1, leaves)
    if hop.wait != DEAF:
        listen(core, flow, hop, sim.trees, link, s)


@kernel
def drawn(core: Any, link: Any, hop: Any, s: Any) -> Any:
    """Draw whether chance marks a packet that comes now."""
    if link.zone == link.top:
        return True
    if link.chance <= 0.0:
        return False
    hop.draws += 1
    return uniform(core.seed, s, hop.draws - 1) <= link.chance


@kernel
def send_on(core: Any, times: Any, hops: Any, link: Any, s: Any, leaves: Any) -> None:
    """Move a marked packet on to a hop, behind all that left before it."""
    ring = times.shape[1]
    at = (link.transit_head + link.transit) % ring
    times[link.number, at] = leaves + link.after
    hops[link.number, at] = s
    link.transit += 1
    if link.transit > ring - _SLACK:
        core.status = GROW_TRANSIT


@kernel
def received(
    core: Any, flow: Any, hop: Any, trees: Any, looks: Any, cnps: Any, marks: Any, calendar: Any, link: Any, at: Any
) -> None:
    """Deliver a marked packet that leaves its flow's last queue at a time; update what the receiver waits for."""
    time = at + flow.beyond
    if flow.nic_cnp_interval > 0.0:
        marked_for_nic(core, flow, marks, hop.flow, time)
    else:
        marked(core, flow, cnps, hop.flow, time)
    schedule(core, flow, hop.flow, looks, cnps, calendar)
    if flow.deaf > time and hop.wait != IDLE:
        hop.wait = DEAF
        retime(flow, hop, trees, link)
