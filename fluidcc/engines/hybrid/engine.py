"""The event loop: flows, links and the instants at which something is looked at take turns, the soonest first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.engines.common.jit import entry, inlined, kernel
from fluidcc.engines.hybrid import dependents, dispatch, hops, links, receiver
from fluidcc.engines.hybrid.calendar import schedule
from fluidcc.engines.hybrid.layout import CNP, COUNTER, DONE, END, LOOK, NEVER, PACE, REQUEST, RUNNING, START, TIMER
from fluidcc.engines.hybrid.random_marks import antiderivative, hazard
from fluidcc.engines.hybrid.statistics import bin_of
from fluidcc.engines.hybrid.tree import least, put_least

_SLIGHT = 1e-3  # of a pace: such a change moves the next burst by less than a thousandth of its gap


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
            links.happen(sim, sim.links[i - flows])
        else:
            look(sim)
        while core.ended > 0:
            ended = core.ended - 1
            core.ended = sim.flows[ended].next_ended
            dependents.tell(sim, ended, False)
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
        dependents.tell(sim, f, True)
    elif todo == CNP:
        flow.head = flow.head + 1 if flow.head + 1 < sim.cnps.shape[1] else 0
        flow.waiting -= 1
        core.cnps += 1
        flow.cnps += 1
        dispatch.on_cnp(sim, f)
    elif todo == REQUEST:
        receiver.ask(core, flow, sim.nics, sim.cnps, sim.marks, f)
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
        links.settle(sim, link, core.now)
        hops.arrive(core, flow, hop, sim.trees, sim.sums, link, flow.first, flow.pace)
        links.changed(sim, link)
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
            links.settle(sim, link, sim.core[0].now)
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
        links.settle(sim, link, core.now)
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
