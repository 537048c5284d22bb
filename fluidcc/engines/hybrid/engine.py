"""The event loop: flows, links and the instants at which something is looked at take turns, the soonest first.

At a link its mixture changes, its queue crosses a threshold, a mark falls due, or something leaves.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.engines.common.jit import entry, inlined, kernel
from fluidcc.engines.hybrid import dispatch, hops
from fluidcc.engines.hybrid.calendar import least, put_least, schedule, tell
from fluidcc.engines.hybrid.layout import (
    CNP,
    COUNTER,
    CROSSING,
    DONE,
    EMPTY,
    END,
    GROW_OUTPUT,
    HAZARDS,
    JOIN,
    LEAVE,
    LOOK,
    MARK,
    NEVER,
    NOTHING,
    PACE,
    PACKET,
    PACKETS,
    REQUEST,
    RUNNING,
    START,
    TIMER,
    TRANSIT,
    WAKE,
    WAKES,
)
from fluidcc.engines.hybrid.queue import advance, bin_of, busy, cross, departure, per_byte, steer, until_crossing
from fluidcc.engines.hybrid.random_marks import antiderivative, hazard, wait_for

_SLACK = 4
_SLIGHT = 1e-3  # of a pace: such a change moves the next burst by less than a thousandth of its gap


@inlined
def settle(sim: Any, link: Any, time: Any) -> None:
    """Bring a link to a time."""
    if link.watch < NEVER and departure(link, time) >= link.watch:
        count_acknowledged(sim, link, time)
    advance(sim.core[0], link, time)


@kernel
def count_acknowledged(sim: Any, link: Any, time: Any) -> None:
    """Bytes whose ACKs are back at an edge of the window, of each flow that leaves the network here."""
    core = sim.core[0]
    since, until = departure(link, link.at), departure(link, time)
    link.watch = NEVER
    for i in range(link.hops):
        hop = sim.hops[sim.hops_at[link.first + i]]
        flow = sim.flows[hop.flow]
        if not hop.last:
            continue
        for edge in range(2):
            leaves = (core.closes if edge else core.opens) - flow.answer - flow.beyond
            if leaves > until:
                link.watch = min(link.watch, leaves)
            elif leaves > since:
                joined = link.at + (leaves - since) / (until - since) * (time - link.at)
                bytes_ = hop.came + hop.rate * (joined - hop.at)
                if edge:
                    flow.acked_close = bytes_
                else:
                    flow.acked_open = bytes_


@inlined
def changed(sim: Any, link: Any) -> None:
    """Update a link's queue and output after the mixture that arrives has changed."""
    steer(link)
    if link.reading:
        write_output(sim, link)
    plan(sim.core[0], link, sim.trees, sim.output_times, sim.transit_times, sim.calendar, len(sim.flows))


@kernel
def write_output(sim: Any, link: Any) -> None:
    """Record the rates at which flows leave the link from the time when bytes that join now depart."""
    full = busy(link)
    if full and link.arriving <= 0.0:  # nothing joins
        return
    ring = sim.output_times.shape[1]
    at = (link.head + link.stored) % ring
    sim.output_times[link.number, at] = departure(link, link.at)
    share = link.rate / link.arriving if full else 1.0
    for i in range(link.hops):
        sim.output_rates[link.number, at, i] = sim.hops[sim.hops_at[link.first + i]].rate * share
    link.stored += 1
    if link.stored > ring - _SLACK:
        sim.core[0].status = GROW_OUTPUT


@kernel
def plan(core: Any, link: Any, trees: Any, outputs: Any, transits: Any, calendar: Any, flows: Any) -> None:
    """Find what a link does next, and enter it in the calendar."""
    todo, soonest = NOTHING, NEVER
    after = until_crossing(link)
    if link.at + after < soonest:
        todo, soonest = CROSSING, link.at + after
    base = link.tree + 1
    if link.zone < link.likely and trees[HAZARDS, base] < NEVER:
        time = link.at + until_marked(link, trees[HAZARDS, base] - link.hazard)
        if time < soonest:
            todo, soonest = MARK, time
    if trees[PACKETS, base] < soonest:
        todo, soonest = PACKET, trees[PACKETS, base]
    if trees[WAKES, base] < NEVER:
        time = waking(link, trees[WAKES, base])
        if time < soonest:
            todo, soonest = WAKE, time
    if link.reading:
        ring = outputs.shape[1]
        if link.on_departure and link.stored > link.left:
            time = outputs[link.number, (link.head + link.left) % ring]
            if time < soonest:
                todo, soonest = LEAVE, time
        if link.onward and link.stored > 0:
            time = outputs[link.number, link.head] + link.after
            if time < soonest:
                todo, soonest = JOIN, time
    if link.transit > 0 and transits[link.number, link.transit_head] < soonest:
        todo, soonest = TRANSIT, transits[link.number, link.transit_head]
    link.todo = todo
    put_least(calendar, 0, core.leaves, flows + link.number, max(soonest, core.now))


@kernel
def until_marked(link: Any, wanted: Any) -> Any:
    """Return the time until the marking clock has gone ``wanted``; infinite if it does not on this piece."""
    if link.zone == EMPTY:
        return max(wanted, 0.0) / link.per_packet if link.per_packet > 0.0 else NEVER
    end = link.zone + 1
    pace = link.slope * per_byte(link)
    if link.per_packet <= 0.0 and pace <= 0.0:
        return NEVER
    return wait_for(link.chance, link.per_packet, pace, wanted, link.chances[end], link.wholes[end])


@kernel
def waking(link: Any, leaves: Any) -> Any:
    """Convert a time of departure to that of marking: when a packet joins, or leaves if marks are set on departure."""
    if link.on_departure:
        return leaves
    now = departure(link, link.at)
    if leaves <= now:
        return link.at
    if not busy(link):
        return leaves
    return link.at + (leaves - now) * link.rate / link.arriving if link.arriving > 0.0 else NEVER


@inlined
def happen(sim: Any, link: Any) -> None:
    """Do what a link was to do now."""
    settle(sim, link, sim.core[0].now)
    if link.todo == CROSSING:
        was = link.zone
        cross(link)
        before = link.slope
        steer(link)
        if link.slope != before and link.reading:  # it has run empty
            write_output(sim, link)
        hops.rezone(sim, link, was)
    elif link.todo == MARK:
        s = sim.hops_at[link.first + least(sim.trees[HAZARDS], link.tree, link.leaves)]
        link.hazard = max(link.hazard, sim.trees[HAZARDS, link.tree + 1])
        hops.ripen(sim, link, s)
    elif link.todo == PACKET:
        s = sim.hops_at[link.first + least(sim.trees[PACKETS], link.tree, link.leaves)]
        hops.packet(sim, link, s)
    elif link.todo == WAKE:
        s = sim.hops_at[link.first + least(sim.trees[WAKES], link.tree, link.leaves)]
        hop = sim.hops[s]
        hops.listen(sim.core[0], sim.flows[hop.flow], hop, sim.trees, link, s)
    elif link.todo == LEAVE:
        leave(sim, link)
    elif link.todo == JOIN:
        join(sim, link)
    elif link.todo == TRANSIT:
        carry_on(sim, link)
    plan(sim.core[0], link, sim.trees, sim.output_times, sim.transit_times, sim.calendar, len(sim.flows))


@inlined
def leave(sim: Any, link: Any) -> None:
    """Let the next mixture leave, some of whose packets are marked."""
    at = (link.head + link.left) % sim.output_times.shape[1]
    for i in range(link.hops):
        s, rate = sim.hops_at[link.first + i], sim.output_rates[link.number, at, i]
        hop = sim.hops[s]
        hops.candidates(sim.core[0], sim.flows[hop.flow], hop, sim.trees, link, s, rate)
    link.left += 1
    if not link.onward:
        forget(sim, link)


@kernel
def forget(sim: Any, link: Any) -> None:
    """Drop the oldest recorded mixture, which all have read."""
    link.head = (link.head + 1) % sim.output_times.shape[1]
    link.stored -= 1
    link.left = max(link.left - 1, 0)


@inlined
def join(sim: Any, link: Any) -> None:
    """Let the next mixture join the queues that follow."""
    at = link.head
    for i in range(link.hops):
        s = sim.hops_at[link.first + i]
        if not sim.hops[s].last:
            hop = sim.hops[s + 1]
            onward = sim.links[hop.link]
            settle(sim, onward, sim.core[0].now)
            rate = sim.output_rates[link.number, at, i]
            hops.arrive(sim.core[0], sim.flows[hop.flow], hop, sim.trees, sim.sums, onward, s + 1, rate)
    forget(sim, link)
    for i in range(link.hops):  # once each
        s = sim.hops_at[link.first + i]
        if not sim.hops[s].last and first_to(sim, link, i):
            changed(sim, sim.links[sim.hops[s + 1].link])


@kernel
def first_to(sim: Any, link: Any, place: Any) -> Any:
    """Check whether a hop is the first of its link that leads to its next link."""
    following = sim.hops[sim.hops_at[link.first + place] + 1].link
    for i in range(place):
        s = sim.hops_at[link.first + i]
        if not sim.hops[s].last and sim.hops[s + 1].link == following:
            return False
    return True


@inlined
def carry_on(sim: Any, link: Any) -> None:
    """Move a packet that is marked already to the next queue, or out of the last one."""
    core, ring = sim.core[0], sim.transit_times.shape[1]
    time, s = sim.transit_times[link.number, link.transit_head], sim.transit_hops[link.number, link.transit_head]
    link.transit_head = (link.transit_head + 1) % ring
    link.transit -= 1
    hop = sim.hops[s]
    here = hop.link == link.number  # it has waited here
    following = sim.links[hop.link]
    leaves = time - link.after if here else departure(following, time)
    if here or (hop.last and not following.on_departure):
        flow = sim.flows[hop.flow]
        hops.received(core, flow, hop, sim.trees, sim.looks, sim.cnps, sim.marks, sim.calendar, following, leaves)
    else:  # marks that are set as packets leave their last queue come in between
        after = s if hop.last else s + 1
        hops.send_on(core, sim.transit_times, sim.transit_hops, following, after, leaves)
    if not here:
        plan(core, following, sim.trees, sim.output_times, sim.transit_times, sim.calendar, len(sim.flows))


@entry
def run(sim: Any, most: Any) -> Any:
    """Execute events, up to a number, until the horizon or until a ring must grow; return which."""
    core = sim.core[0]
    core.status = RUNNING
    if not core.begun:
        core.begun = True
        prime(sim)
    flows, count = len(sim.flows), len(sim.flows) + len(sim.links)
    for _ in range(most):
        time = sim.calendar[1]
        if time > core.until:
            return DONE
        core.now = time
        core.events += 1
        i = least(sim.calendar, 0, core.leaves)
        if i < flows:
            act(sim, i)
        elif i < count:
            happen(sim, sim.links[i - flows])
        else:
            look(sim)
        while core.ended > 0:
            ended = core.ended - 1
            core.ended = sim.flows[ended].next_ended
            tell(sim, ended, False)
        if core.status != RUNNING:
            return core.status
    return RUNNING


@inlined
def prime(sim: Any) -> None:
    """Enter the first of everything in the calendar."""
    core = sim.core[0]
    for i in range(len(sim.links)):
        link = sim.links[i]
        for k in range(link.top + 1):
            link.wholes[k] = antiderivative(link.chances[k], hazard(link.chances[k]))
    for f in range(len(sim.flows)):
        flow = sim.flows[f]
        link = sim.links[sim.hops[flow.first + flow.hops - 1].link]
        for edge in (core.opens, core.closes):
            leaves = edge - flow.answer - flow.beyond
            if leaves > 0.0:
                link.watch = min(link.watch, leaves)
        schedule(core, flow, f, sim.looks, sim.cnps, sim.calendar)
    put_least(sim.calendar, 0, core.leaves, len(sim.flows) + len(sim.links), sim.looks[0])


@inlined
def act(sim: Any, f: Any) -> None:
    """Do what a flow was to do now."""
    core, flow = sim.core[0], sim.flows[f]
    flow.sent += flow.pace * (core.now - flow.at)
    flow.at = core.now
    before, paced, todo = flow.rate, flow.pace, flow.todo
    if todo == COUNTER:
        flow.sent = flow.counted
    elif todo == PACE:
        flow.sent = flow.repace
    flow.gone = math.floor(flow.sent / flow.burst) * flow.burst
    if todo == LOOK:
        watch(sim, f)
    elif todo == START:
        flow.state = 1
        flow.rate = flow.initial_rate
        dispatch.begin(sim, f)
        begin(sim, f)
    elif todo == TIMER:
        dispatch.on_timer(sim, f)
    elif todo == COUNTER:
        dispatch.on_bytes(sim, f)
    elif todo == END:
        flow.sent = flow.total
        flow.state = 2
        flow.rate = 0.0
        tell(sim, f, True)
    elif todo == CNP:
        flow.head = flow.head + 1 if flow.head + 1 < sim.cnps.shape[1] else 0
        flow.waiting -= 1
        core.cnps += 1
        flow.cnps += 1
        dispatch.on_cnp(sim, f)
    elif todo == REQUEST:
        hops.ask(core, flow, sim.nics, sim.cnps, sim.marks, f)
    flow.counted = np.ceil(flow.counter / flow.burst) * flow.burst
    if todo == COUNTER and abs(flow.rate - paced) > _SLIGHT * paced:
        flow.last, flow.repace = core.now, flow.gone + flow.burst  # this one is paced already, by the rate before
    elif todo in (PACE, COUNTER):
        flow.pace, flow.repace = flow.rate, NEVER
    elif flow.rate != before:
        repace(core, flow)
    if flow.pace != paced:
        hop = sim.hops[flow.first]
        link = sim.links[hop.link]
        settle(sim, link, core.now)
        hops.arrive(core, flow, hop, sim.trees, sim.sums, link, flow.first, flow.pace)
        changed(sim, link)
    schedule(core, flow, f, sim.looks, sim.cnps, sim.calendar)


@kernel
def repace(core: Any, flow: Any) -> None:
    """Have the next burst leave the newest rate's gap after the last one, whatever the rates were since."""
    small = flow.repace == NEVER and abs(flow.rate - flow.pace) <= _SLIGHT * flow.pace
    if small or flow.rate <= 0.0 or flow.pace <= 0.0:
        flow.pace, flow.repace = flow.rate, NEVER
        return
    if flow.repace == NEVER:
        flow.last = core.now - (flow.sent - flow.gone) / flow.pace
    flow.repace = flow.gone + flow.burst
    rest = flow.last + flow.burst / flow.rate - core.now
    flow.pace = min((flow.repace - flow.sent) / rest, flow.line_rate) if rest > 0.0 else flow.line_rate


@inlined
def begin(sim: Any, f: Any) -> None:
    """Let the hops of a flow listen, if its receiver reports marks."""
    flow = sim.flows[f]
    if flow.cnp_interval <= 0.0:
        return
    for s in range(flow.first, flow.first + flow.hops):
        hop = sim.hops[s]
        link = sim.links[hop.link]
        if link.top > 0:
            settle(sim, link, sim.core[0].now)
            hops.listen(sim.core[0], flow, hop, sim.trees, link, s)


@inlined
def watch(sim: Any, f: Any) -> None:
    """Look at a flow: at an instant by its own clock."""
    flow = sim.flows[f]
    kind = sim.kinds[flow.look]
    if kind == 1:
        flow.sent_open = flow.sent
    elif kind == 2:
        flow.sent_close = flow.sent
    elif len(sim.flow_samples) > 0:
        row = sim.rows[flow.look]
        sim.flow_samples[row, f, 0] = flow.sent
        sim.flow_samples[row, f, 1] = flow.rate
        if flow.state > 0:
            dispatch.observe(sim, f, row)
    flow.look += 1


@inlined
def look(sim: Any) -> None:
    """Look at all links at an instant."""
    core = sim.core[0]
    kind = sim.kinds[core.look]
    for i in range(len(sim.links)):
        link = sim.links[i]
        settle(sim, link, core.now)
        if kind == 1:
            link.sent_open = link.sent
            link.bin = bin_of(link.queue)
            link.least_in_window = link.most_in_window = link.queue
        elif kind == 2:
            link.sent_close = link.sent
        else:
            sim.link_samples[sim.rows[core.look], i, 0] = link.queue
            sim.link_samples[sim.rows[core.look], i, 1] = link.sent
    if kind > 0:
        core.watching = kind == 1
    core.look += 1
    more = core.look < len(sim.looks)
    at = sim.looks[core.look] if more else NEVER
    put_least(sim.calendar, 0, core.leaves, len(sim.flows) + len(sim.links), at)
