"""The event loop."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import entry, inlined, inlined_by_llvm, kernel
from fluidcc.engines.packet import dependents, dispatch, host, marking, pool, recovery, switch, trimming
from fluidcc.engines.packet.calendar import BESIDE, SHIFT, next_sequence, open_slot, pop, push, schedule
from fluidcc.engines.packet.layout import (
    ARRIVAL,
    CLOSE,
    DONE,
    FAIL,
    FOLLOW,
    FREE,
    GROW_CALENDAR,
    GROW_LOG,
    GROW_PACKETS,
    JAM,
    NEVER,
    NOTIFY,
    OPEN,
    PAUSE,
    REFILL,
    RELEASE,
    REROUTE,
    RUNNING,
    SAMPLE,
    START,
    TELL,
    TIMEOUT,
    TIMER,
    TRANSMITTED,
    TRIMMING,
    WAKE,
)
from fluidcc.engines.packet.pool import prefetch
from fluidcc.engines.packet.record import account, write

DRAWS = 32  # random numbers that one event may need
TIMERS = 4  # of each flow
_INDEX = (1 << BESIDE) - 1
_LINES = 4  # of a packet that is asked for: what every hop reads, and the first telemetry
_PACKET = (1 << (SHIFT - BESIDE)) - 1


@entry
def run(sim: Any, until: Any, most: Any) -> Any:
    """Execute events until a time, or a number of them; return why it stopped.

    Parameters
    ----------
    sim : Sim
    until : int
        Time [ps] beyond which nothing is executed.
    most : int
        Events to execute before returning, so that Python can report and be interrupted.
    """
    core, calendar = sim.core[0], sim.calendar
    last = core.events + most
    while core.pending > 0 and core.events < last:
        if core.due == 0:
            open_slot(core, calendar, NEVER)
        first = calendar[0]
        if first.time > until:
            return DONE
        if core.spare < core.margin:
            return GROW_PACKETS
        if core.pending + core.margin > core.rows:
            return GROW_CALENDAR
        if core.drawn + DRAWS > len(sim.uniforms):
            return REFILL
        if sim.log.size and core.logged + core.margin + len(sim.packets) > len(sim.log):
            return GROW_LOG
        core.now = first.time
        core.present = first.order
        event = first.event
        pop(core, calendar)
        look_ahead(sim, first.event)
        core.events += 1
        kind, i = event >> SHIFT, event & _INDEX
        if kind == FREE:
            sim.ports[i].busy = 0
            sim.ports[i].awaited = 0
        elif kind == ARRIVAL:
            i = arrive(sim, i)
        elif kind == WAKE:
            sim.ports[i].wake = max(sim.ports[i].wake, core.now)
        elif kind == TIMER:
            i = expire(sim, i)
        else:
            i = handle_slow_event(sim, kind, i)
        if i >= 0:
            serve(sim, i)
    return DONE if core.pending == 0 else RUNNING


@inlined
def look_ahead(sim: Any, event: Any) -> None:
    """Ask for what the next event will touch first."""
    i, k = event & _INDEX, event >> BESIDE & _PACKET
    prefetch(sim.ports, i, 0)
    for line in range(_LINES):
        prefetch(sim.packets, k, line)


@inlined_by_llvm
def arrive(sim: Any, i: Any) -> Any:
    """Bring the packet at the head of a wire to the far end; return the port that may send because of it."""
    core, port = sim.core[0], sim.ports[i]
    k = port.wire_head
    packet = sim.packets[k]
    following = packet.next
    port.wire_head = following
    if following < 0:
        port.wire_tail = -1
    else:
        push(core, sim.calendar, packet.next_arrives, packet.next_order, (ARRIVAL << SHIFT) | (following << BESIDE) | i)
    if port.down or (core.lossy_links and recovery.lost(core, sim.uniforms, port, packet)):
        switch.drop(sim, i, k)
        return -1
    if packet.kind >= PAUSE:
        switch.on_pfc_frame(sim, k, i)
        return port.reverse
    packet.hop += 1
    onward = packet.onward
    if onward >= 0:
        packet.ingress = i
        switch.forward(sim, onward, k)
        return onward
    return host.receive(sim, k)


@inlined_by_llvm
def serve(sim: Any, i: Any) -> None:
    """Begin the transmission of a port's next packet, if it is idle and has one."""
    core, port = sim.core[0], sim.ports[i]
    if port.busy and not free_again(core, sim.calendar, port, i):
        return
    if port.down:
        return
    q = choose(sim, port)
    if q >= 0:
        if port.link >= 0:
            account(core, sim.links, sim.bins, port.link, port.queued)
        k = pool.leave(sim.packets, port, q)
        size = sim.packets[k].wire
        port.queues[q].bytes -= size
        if port.in_cells:
            port.queues[q].cells -= marking.cells(port, size)
        port.queued -= size
        switch.stamp(sim, i, k)
        port.queues[q].sent += size
    elif port.host:
        if port.wake <= core.now:
            port.wake = switch.NEVER
        k = host.emit(sim, i)
        if k < 0:
            return
    else:
        return
    packet = sim.packets[k]
    port.busy = 1
    if port.counts_sending:
        port.sending = marking.cells(port, packet.wire) if port.in_cells else packet.wire
    port.sent += packet.wire
    if sim.log.size:
        write(core, sim.log, TRANSMITTED, i, packet.flow, packet.kind, packet.end, port.queued, 0.0)
    over = core.now + sim.ticks[port.ticks, packet.wire]
    port.free_at = over
    port.free_order = next_sequence(core)
    # With several classes, an empty one loses its credit when the port is free.
    port.awaited = port.waiting != 0 or (port.host and port.active > 0) or core.queues > 2
    if port.awaited:
        push(core, sim.calendar, over, port.free_order, (FREE << SHIFT) | i)
    arrives = over + port.delay
    order = next_sequence(core)
    packet.next = -1
    packet.onward = -1
    if packet.route >= 0 and packet.hop + 1 < sim.routes.shape[1]:
        packet.onward = sim.routes[packet.route, packet.hop + 1]
    if port.wire_tail < 0:
        port.wire_head = k
        push(core, sim.calendar, arrives, order, (ARRIVAL << SHIFT) | (k << BESIDE) | i)
    else:
        before = sim.packets[port.wire_tail]
        before.next = k
        before.next_arrives = arrives
        before.next_order = order
    port.wire_tail = k


@kernel
def free_again(core: Any, calendar: Any, port: Any, i: Any) -> Any:
    """Check whether a busy port's transmission is over; if not, schedule the event of its end.

    For a port at which nothing waits that event would do nothing, and is left out. Its place among events of the same
    time is kept, so that whatever comes is served as if it were there.
    """
    if port.awaited:
        return False
    if port.free_at < core.now or (port.free_at == core.now and port.free_order < core.present):
        port.busy = 0
        return True
    port.awaited = 1
    push(core, calendar, port.free_at, port.free_order, (FREE << SHIFT) | i)
    return False


@inlined
def choose(sim: Any, port: Any) -> Any:
    """Queue that a port serves next: control frames, then traffic classes; -1 if none may send."""
    if port.waiting & 1:
        return 0
    if sim.core[0].queues == 2:
        return 1 if (port.waiting & ~port.paused) >> 1 & 1 else -1
    return take_turns(sim, port)


@kernel
def take_turns(sim: Any, port: Any) -> Any:
    """Strict priority; deficit round robin among classes of the same (Shreedhar and Varghese, SIGCOMM 1995).

    Each priority has a round of its own: what goes first ends nobody's turn.
    """
    queues = sim.core[0].queues
    best = -1.0
    for q in range(1, queues):
        if port.queues[q].head < 0:
            port.queues[q].deficit = 0.0  # a class that empties keeps no credit
        elif (port.paused >> q & 1) == 0 and sim.weights[q, 0] > best:
            best = sim.weights[q, 0]
    if best < 0:
        return -1
    level = int(best)
    while True:
        q = port.turns[level]
        if port.queues[q].head >= 0 and (port.paused >> q & 1) == 0 and sim.weights[q, 0] == best:
            if port.fresh[level]:
                port.queues[q].deficit += sim.weights[q, 1]
                port.fresh[level] = 0
            size = sim.packets[port.queues[q].head].wire
            if size <= port.queues[q].deficit:
                port.queues[q].deficit -= size
                return q
        port.turns[level] = q + 1 if q + 1 < queues else 1
        port.fresh[level] = 1


@inlined
def expire(sim: Any, i: Any) -> Any:
    """Handle a timer of a flow's scheme that ran out; return the NIC that may send because of it."""
    f = i // TIMERS
    if sim.flows[f].state != 1:
        return -1
    dispatch.on_timer(sim, f, i % TIMERS)
    return sim.flows[f].nic


@kernel
def handle_slow_event(sim: Any, kind: Any, i: Any) -> Any:
    """Handle an event of any other kind; return the port that may send because of it, or -1."""
    core = sim.core[0]
    if kind == TIMEOUT:
        over = trimming.timer_over(sim, i) if core.recovery == TRIMMING else recovery.timer_over(sim, i)
        if over:
            return sim.flows[i].nic
    elif kind == NOTIFY:
        host.interval_over(sim, i)
    elif kind == START:
        core.started += 1
        if core.started < core.starts_end:
            following = sim.lists[core.started]
            schedule(core, sim.calendar, sim.flows[following].start, START, following)
        return host.begin(sim, i)
    elif kind == TELL:
        dependents.tell(core, sim.calendar, sim.flows, sim.lists, i)
    elif kind == FOLLOW:
        return host.begin(sim, i)
    elif kind == SAMPLE:
        sample(sim)
    elif kind == OPEN:
        toggle_window(sim, True)
    elif kind == CLOSE:
        toggle_window(sim, False)
    elif kind == FAIL:
        fail(sim, i)
        fail(sim, sim.ports[i].reverse)
    elif kind == REROUTE:
        for f in range(len(sim.flows)):
            sim.flows[f].route = sim.rerouted[i, f, 0]
            sim.flows[f].back = sim.rerouted[i, f, 1]
            sim.flows[f].first_path = sim.rerouted[i, f, 2]
            sim.flows[f].paths = sim.rerouted[i, f, 3]
    elif kind == JAM:
        start_storm(sim, i)
    elif kind == RELEASE:
        end_storm(sim, i)
        return i
    return -1


@kernel
def start_storm(sim: Any, i: Any) -> None:
    """Begin a storm of PAUSE frames: stop all classes of port ``i`` that flow control may pause."""
    sim.ports[i].jammed += 1
    for q in range(1, sim.core[0].queues):
        if sim.core[0].pfc >> q & 1:
            switch.stop(sim, i, q)


@kernel
def end_storm(sim: Any, i: Any) -> None:
    """End a storm: if it is the port's last, resume all classes but those that the far end has paused itself."""
    port = sim.ports[i]
    port.jammed -= 1
    if port.jammed > 0:
        return
    for q in range(1, sim.core[0].queues):
        if sim.core[0].pfc >> q & 1 and port.stopping >> q & 1 == 0:
            switch.resume_queue(sim, i, q)


@kernel
def sample(sim: Any) -> None:
    """Write a row of the trace."""
    core = sim.core[0]
    row = core.sampled
    core.sampled = row + 1
    for j in range(len(sim.links)):
        port = sim.ports[sim.links[j].port]
        sim.link_samples[row, j, 0] = port.queued
        sim.link_samples[row, j, 1] = port.sent
        for c in range(sim.class_samples.shape[2]):
            sim.class_samples[row, j, c, 0] = port.queues[c + 1].bytes
            sim.class_samples[row, j, c, 1] = port.queues[c + 1].sent
    for f in range(0 if core.links_only else len(sim.flows)):
        flow = sim.flows[f]
        sim.flow_samples[row, f, 0] = flow.sent_wire + flow.sent_again
        sim.flow_samples[row, f, 1] = flow.confirmed
        sim.flow_samples[row, f, 2] = flow.rate
        dispatch.observe(sim, f, row)
    if core.sampled < len(sim.link_samples):
        # Counted from zero, so that the spacing has no error that adds up.
        schedule(core, sim.calendar, core.sampled * core.sample_interval, SAMPLE, 0)


@kernel
def toggle_window(sim: Any, opens: Any) -> None:
    """Open or close the window of the metrics."""
    core = sim.core[0]
    for j in range(len(sim.links)):
        link = sim.links[j]
        port = sim.ports[link.port]
        account(core, sim.links, sim.bins, j, port.queued)
        if opens:
            link.sent_open = port.sent
            link.most_in_window = port.queued
            link.least_in_window = port.queued
        else:
            link.sent_close = port.sent
    for f in range(len(sim.flows)):
        flow = sim.flows[f]
        if opens:
            flow.sent_open, flow.confirmed_open = flow.sent_wire + flow.sent_again, flow.confirmed
        else:
            flow.sent_close, flow.confirmed_close = flow.sent_wire + flow.sent_again, flow.confirmed
    core.watching = 1 if opens else 0


@kernel
def fail(sim: Any, i: Any) -> None:
    """Take down one direction of a link: packets that wait are lost now, those on the wire when they would arrive."""
    core, port = sim.core[0], sim.ports[i]
    port.down = 1
    if port.link >= 0:
        account(core, sim.links, sim.bins, port.link, port.queued)
    for q in range(core.queues):
        while port.queues[q].head >= 0:
            k = pool.leave(sim.packets, port, q)
            packet = sim.packets[k]
            port.queues[q].bytes -= packet.wire
            if port.in_cells:
                port.queues[q].cells -= marking.cells(port, packet.wire)
            port.queued -= packet.wire
            if packet.ingress >= 0:
                source = sim.ports[packet.ingress]
                if switch.release(core, source, sim.nodes[source.peer], q, packet.wire):
                    switch.resume(sim, packet.ingress, q)
            switch.drop(sim, i, k)
