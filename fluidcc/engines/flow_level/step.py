"""One step of the network: NICs send, ports pass on and hold back, last bytes arrive.

A port serves all that waits before it in proportion, so that bytes are conserved; when a transfer's last byte has left
follows from the bytes that stood before it as it came (first in, first out). From port to port takes a step; the rest
of the round trip lies on the way back. A transfer that waits for an end is notified when steps have found it, and so
starts late; its own ends are reported earlier by as much, so that steps do not add up along a chain.
"""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import entry, kernel
from fluidcc.engines.flow_level.layout import (
    ARRIVING,
    DRAINING,
    FOUND,
    FREE,
    FULL,
    HELD,
    IDLE,
    INPUT,
    LEFT,
    OUTPUT,
    OVER,
    PAUSES,
    QUEUE,
    RUNNING,
    SENDING,
    STATUS,
    STEP,
    STOOD,
    USED,
    widen,
)  # fmt: skip
from fluidcc.engines.flow_level.transfers import DEPARTURE, ENDS, pass_by, pop, tell

_LEAST = 1e-2  # share of a NIC that ACKs leave to data
_PASSES = 4  # of a NIC's sharing
_CRUMB = 1.0  # bytes; a transfer with less on its way is through
_EMPTY = 1e-3  # bytes, below which a port holds nothing


@kernel
def acknowledge(m: Any, dt: Any) -> None:
    """Count the bytes that senders know to be acknowledged by the end of the step."""
    slots, net, ports, n = m.slots, m.net, m.ports, m.now[STEP]
    records = slots.delivered_at.shape[1]
    for i in range(m.now[USED]):
        s = m.used[i]
        f = slots.flow[s]
        lag = ack_lag(net, ports, f, dt)
        at = min(max(lag, 1.0), records - 2.0)
        whole = int(at)
        part = at - whole
        later = slots.delivered_at[s, (n + records - whole) % records]
        before = slots.delivered_at[s, (n + records - whole - 1) % records]
        if n - whole - 1 < slots.since[s] - 1:
            before = later = 0.0
        acked = max(slots.acked[s], (1.0 - part) * later + part * before)
        slots.newly[s] = acked - slots.acked[s]
        slots.acked[s] = acked


@kernel
def answering(m: Any) -> Any:
    """Check whether ACKs are on their way."""
    for k in range(len(m.net.used)):
        p = m.net.used[k]
        if m.ports.acks[p] + m.ports.waiting_acks[p] > 0.0:
            return True
    return False


@entry
def answers_left(m: Any) -> Any:
    """Check whether ACKs are on their way; called from Python."""
    return answering(m)


@kernel
def ack_lag(net: Any, ports: Any, f: Any, dt: Any) -> Any:
    """Return the steps from that in which bytes leave the last port to that at whose end their ACK is known."""
    lag = net.rtt[f] - (net.hops[f] - 1) * dt
    for h in range(1, net.hops[f]):
        p = net.back[f, h]
        lag += ports.backlog[p] / net.rate[p]
    return lag / dt - 1.0


@kernel
def send(m: Any, dt: Any, time: Any, begins: Any) -> None:
    """Put onto each NIC what senders' pace and window allow; one that cannot carry it shares itself equally."""
    slots, net, ports, now = m.slots, m.net, m.ports, m.now
    for i in range(now[USED]):
        s = m.used[i]
        p = net.there[slots.flow[s], 0]
        ports.want[p] = ports.count[p] = 0
        m.level[p] = 1e300
    for i in range(now[USED]):
        s = m.used[i]
        slots.want[s] = 0.0
        if slots.doing[s] == SENDING:
            span = min(dt, time + dt - begins[slots.transfer[s]])
            may = slots.window[s] - slots.sent[s] + slots.acked[s]
            slots.want[s] = max(min(slots.pace[s] * span, may), 0.0)
            p = net.there[slots.flow[s], 0]
            ports.want[p] += min(slots.want[s], slots.left[s])
            ports.count[p] += 1
    over = False
    for i in range(now[USED]):
        p = net.there[slots.flow[m.used[i]], 0]
        if ports.want[p] > _room(net, ports, p, dt) and m.level[p] > 1e200:
            over = True
            m.level[p] = _room(net, ports, p, dt) / ports.count[p]
    for _ in range(_PASSES if over else 0):  # a flow that wants less than its share leaves the rest to the others
        for i in range(now[USED]):
            p = net.there[slots.flow[m.used[i]], 0]
            ports.want[p] = ports.count[p] = 0
        for i in range(now[USED]):
            s = m.used[i]
            p = net.there[slots.flow[s], 0]
            want = min(slots.want[s], slots.left[s])
            if slots.doing[s] == SENDING and want > m.level[p]:
                ports.count[p] += 1
            ports.want[p] += min(want, m.level[p])
        for i in range(now[USED]):
            p = net.there[slots.flow[m.used[i]], 0]
            if m.level[p] < 1e200 and ports.count[p] > 0:
                m.level[p] += (_room(net, ports, p, dt) - ports.want[p]) / ports.count[p]
                ports.count[p] = 0  # once
    for i in range(now[USED]):
        s = m.used[i]
        f = slots.flow[s]
        p = net.there[f, 0]
        may = min(slots.want[s], m.level[p])
        x = min(may, slots.left[s])
        if slots.doing[s] == SENDING:
            span = min(dt, time + dt - begins[slots.transfer[s]])
            if slots.left[s] <= may:
                slots.doing[s] = ARRIVING
                slots.end[s] = time + dt - span + span * slots.left[s] / max(may, 1e-300)
                slots.part[s] = (slots.end[s] - time) / dt
                slots.hop[s], slots.ready[s], slots.target[s] = 1, now[STEP] + 1, -1.0
            slots.left[s] -= x
            slots.sent[s] += x
        slots.want[s] = x


@kernel
def _room(net: Any, ports: Any, p: Any, dt: Any) -> Any:
    return 0.0 if ports.paused[p] else max(net.rate[p] * dt - ports.acks[p], _LEAST * net.rate[p] * dt)


@entry
def one_step(m: Any, dt: Any, steps: Any, given: Any) -> None:
    """Run one step, or none; called from Python."""
    wire, tail, delay, waits, begins, ends, heap, load = given
    if steps > 0:
        advance(m, dt, wire, tail, delay, waits, begins, ends, heap, load)


@kernel
def advance(
    m: Any, dt: Any, wire: Any, tail: Any, delay: Any, waits: Any, begins: Any, ends: Any, heap: Any, load: Any,
) -> None:  # fmt: skip
    """Take a step, or say why not: no slot is free, or nothing happens until the next start."""
    slots, now = m.slots, m.now
    waits_at, listed, what, awaits = waits
    n = now[STEP]
    time = n * dt
    held, used = now[HELD], now[USED]
    if used == 0 and held > 0 and begins[heap[0]] >= time + dt and not answering(m):
        now[STATUS] = IDLE
        return
    while held > 0 and begins[heap[0]] < time + dt:
        if used == len(slots.doing):
            now[STATUS], now[HELD], now[USED] = FULL, held, used
            return
        t = pop(heap, held, begins)
        held -= 1
        if m.flow_of[t] < 0:
            held = pass_by(waits_at, listed, what, awaits, delay, begins, ends, t, heap, held)
            now[LEFT] -= 1
            continue
        _open(m, used, t, wire[t], n)
        slots.late[m.used[used]] = max(time - begins[t], 0.0)
        used += 1
    now[HELD], now[USED], now[STATUS] = held, used, RUNNING
    acknowledge(m, dt)
    send(m, dt, time, begins)
    _depart(m, waits, delay, begins, ends, heap)
    _pass_on(m, dt, load)
    _pause(m, dt)
    _arrive(m, dt, tail, delay, waits, begins, ends, heap)
    now[STEP] = n + 1


@kernel
def _open(m: Any, used: Any, t: Any, bytes_: Any, n: Any) -> None:
    """Give a transfer the free slot behind those in use."""
    slots, net = m.slots, m.net
    s = m.used[used]
    f = slots.flow[s] = m.flow_of[t]
    slots.doing[s], slots.transfer[s] = SENDING, t
    slots.left[s] = bytes_
    slots.sent[s] = slots.delivered[s] = slots.acked[s] = slots.newly[s] = slots.waited[s] = 0.0
    slots.pace[s], slots.window[s] = net.initial_rate[f], 1e300
    slots.since[s], slots.fresh[s] = n, 1
    slots.queue[s, :] = 0.0
    slots.flux[s, :] = 0.0
    slots.delivered_at[s, :] = 0.0


@kernel
def _depart(m: Any, waits: Any, delay: Any, begins: Any, ends: Any, heap: Any) -> None:
    """Notify transfers that wait for a last byte to leave its host, once it has left."""
    slots, now = m.slots, m.now
    waits_at, listed, what, awaits = waits
    for i in range(now[USED]):
        s = m.used[i]
        if slots.doing[s] == ARRIVING and slots.hop[s] == 1 and slots.ready[s] == now[STEP] + 1:
            t, left = slots.transfer[s], slots.end[s] - slots.late[s]
            ends[t, 2] = left
            now[HELD] = tell(
                waits_at, listed, what, awaits, delay, begins, t, 1 << DEPARTURE, left, left, left, heap, now[HELD]
            )


@kernel
def _pass_on(m: Any, dt: Any, load: Any) -> None:
    """Add to the queues what came in the step before, and let ports serve them."""
    slots, net, ports, now = m.slots, m.net, m.ports, m.now
    n, count = now[STEP], now[USED]
    record = n % len(ports.seen)
    for k in range(len(net.used)):
        p = net.used[k]
        ports.backlog[p] = ports.serving[p] = ports.came_in[p] = ports.next_acks[p] = 0.0
        ports.seen[record, p, INPUT] = 0.0
    for i in range(count):
        s = m.used[i]
        f = slots.flow[s]
        for h in range(net.hops[f] - 1, 0, -1):
            p = net.there[f, h]
            x = slots.flux[s, h - 1]
            slots.queue[s, h] += x
            ports.backlog[p] += slots.queue[s, h]
            ports.seen[record, p, INPUT] += x
        p = net.there[f, 0]
        slots.flux[s, 0] = slots.want[s]
    for k in range(len(net.used)):
        p = net.used[k]
        if net.source[p] >= 0:  # ACKs wait among the data, first come, first served
            ports.waiting_acks[p] += ports.acks[p]
            ports.backlog[p] += ports.waiting_acks[p]
            room = 0.0 if ports.paused[p] else net.rate[p] * dt
            ports.passing[p] = 1.0 if ports.backlog[p] <= room else room / ports.backlog[p]
    for i in range(count):
        s = m.used[i]
        f = slots.flow[s]
        ports.serving[net.there[f, 0]] += slots.flux[s, 0]
        for h in range(1, net.hops[f]):
            p = net.there[f, h]
            x = slots.queue[s, h] * ports.passing[p]
            slots.queue[s, h] -= x
            slots.flux[s, h] = x
            ports.serving[p] += x
            ports.came_in[net.there[f, h - 1]] += slots.queue[s, h]
        x = slots.flux[s, net.hops[f] - 1]
        slots.delivered[s] += x
        slots.delivered_at[s, n % slots.delivered_at.shape[1]] = slots.delivered[s]
        answered = _answered(m, s, f, dt) * net.ack_share[f]
        for h in range(net.hops[f]):
            ports.next_acks[net.back[f, h]] += answered
    _count(m, dt, load)


@kernel
def _count(m: Any, dt: Any, load: Any) -> None:
    """Record what ports did in the step."""
    net, ports, n = m.net, m.ports, m.now[STEP]
    record, row = n % len(ports.seen), n % len(ports.log)
    m.node_used[:] = 0.0
    carried, width = load
    widen(carried, width, (n + 1) * dt)
    k = int((n + 0.5) * dt / width[0])
    for j in range(len(net.used)):
        p = net.used[j]
        answers = ports.acks[p]
        if net.source[p] >= 0:
            answers = ports.waiting_acks[p] * ports.passing[p]
            ports.waiting_acks[p] -= answers
            ports.backlog[p] = max(ports.backlog[p] - ports.serving[p] - answers, 0.0)
            m.node_used[net.source[p]] += ports.backlog[p]
        ports.serving[p] += answers
        ports.served[p] += ports.serving[p]
        ports.seen[record, p, QUEUE] = ports.backlog[p]
        ports.seen[record, p, OUTPUT] = ports.serving[p] / dt
        ports.seen[record, p, INPUT] = (ports.seen[record, p, INPUT] + ports.acks[p]) / dt
        _follow(ports, p, n, record, row, net.rate[p] * dt)
        carried[k, p] += ports.serving[p]
        ports.acks[p] = ports.next_acks[p]
    if net.pausing[0] == 0:
        for j in range(len(net.used)):
            node = net.source[net.used[j]]
            if node >= 0:
                free = net.shared[node] - m.node_used[node]
                if free < 0.0 or ports.backlog[net.used[j]] > net.dropping[0] * free:
                    m.now[STATUS] = OVER


@kernel
def _follow(ports: Any, p: Any, n: Any, record: Any, row: Any, most: Any) -> None:
    """Record when the bytes that leave a port now came, first in, first out, and the queue that they joined.

    They came when as much had come as is served by now. The search continues where it ended in the step before, so
    each step is passed once. Before what the log keeps a queue is taken to have stood, which passed `most` in a step.
    """
    log, served, kept = ports.log, ports.served[p], len(ports.log)
    log[row, p, 0], log[row, p, 1] = served + ports.backlog[p], ports.backlog[p]
    if ports.backlog[p] < _EMPTY:  # whatever crumbs of slots that were freed are missing from what was served
        ports.joined[p] = n
        ports.seen[record, p, FOUND] = ports.seen[record, p, STOOD] = 0.0
        return
    joined = max(ports.joined[p], n - kept + 1)
    while joined < n and log[(joined + 1) % kept, p, 0] <= served:
        joined += 1
    ports.joined[p] = joined
    came, found = log[joined % kept, p]
    part = max(came - served, 0.0) / -most
    if came <= served:
        more, later = log[(joined + 1) % kept, p]
        part = (served - came) / (more - came)
        found = (1.0 - part) * found + part * later
    ports.seen[record, p, FOUND], ports.seen[record, p, STOOD] = found, n - joined - part


@kernel
def _answered(m: Any, s: Any, f: Any, dt: Any) -> Any:
    """Return the bytes whose ACKs pass now: those delivered `ack_delay` steps earlier."""
    slots, n = m.slots, m.now[STEP]
    records = slots.delivered_at.shape[1]
    ago = ack_delay(m.net, f, dt)
    if n - ago <= slots.since[s]:
        return 0.0
    return slots.delivered_at[s, (n - ago) % records] - slots.delivered_at[s, (n - ago - 1) % records]


@kernel
def ack_delay(net: Any, f: Any, dt: Any) -> Any:
    """Return by how many steps half a round trip exceeds the steps along it."""
    return max(int(0.5 * net.rtt[f] / dt - 0.5 * net.hops[f] + 0.5), 0)


@kernel
def _pause(m: Any, dt: Any) -> None:
    """Pause each port while too much of what it sent waits at its far end."""
    net, ports = m.net, m.ports
    if net.pausing[0] == 0:
        return
    for k in range(len(net.used)):
        p = net.used[k]
        node = net.target[p]
        if node < 0:
            continue
        limit = net.xoff[p] if net.xoff[p] >= 0.0 else net.alpha[0] * max(net.shared[node] - m.node_used[node], 0.0)
        if ports.paused[p]:
            ports.paused_s[p] += dt
            if ports.came_in[p] <= max(limit - net.gap[0], 0.0):
                ports.paused[p] = 0
        elif ports.came_in[p] > limit:
            ports.paused[p] = 1
            ports.pauses[p] += 1.0
            m.now[PAUSES] += 1


@kernel
def _arrive(m: Any, dt: Any, tail: Any, delay: Any, waits: Any, begins: Any, ends: Any, heap: Any) -> None:
    """Move last bytes from port to port; after the last, notify who waits for them. Slots that are empty are free."""
    slots, net, ports, now = m.slots, m.net, m.ports, m.now
    waits_at, listed, what, awaits = waits
    n, i = now[STEP], 0
    while i < now[USED]:
        s = m.used[i]
        f = slots.flow[s]
        if slots.doing[s] == ARRIVING and n >= slots.ready[s]:
            p = net.there[f, slots.hop[s]]
            if slots.target[s] < 0.0:
                slots.target[s] = ports.served[p] + ports.backlog[p]
                slots.ready[s] = n
            # An empty port has let all go, also the crumbs of slots that were freed.
            if ports.served[p] >= slots.target[s] - _EMPTY or ports.backlog[p] < _EMPTY:
                if n > slots.ready[s]:
                    # What stood before it went at the port's rate, also in a step that did not keep it busy.
                    before = slots.target[s] - (ports.served[p] - ports.serving[p])
                    leaves = min(max(before / (net.rate[p] * dt), 0.0), 1.0)
                    slots.waited[s] += dt * (n - slots.ready[s] + leaves - slots.part[s])
                    slots.part[s] = leaves
                slots.hop[s] += 1
                slots.ready[s], slots.target[s] = n + 1, -1.0
                if slots.hop[s] == net.hops[f]:
                    t, sent = slots.transfer[s], slots.end[s] - slots.late[s]
                    answers = slots.waited[s]
                    for h in range(1, net.hops[f]):
                        p = net.back[f, h]
                        answers += ports.backlog[p] / net.rate[p]
                    ends[t, 0] = sent + tail[t, 0] + slots.waited[s]
                    ends[t, 1] = sent + tail[t, 1] + answers
                    now[HELD] = tell(
                        waits_at,
                        listed,
                        what,
                        awaits,
                        delay,
                        begins,
                        t,
                        ENDS,
                        sent,
                        ends[t, 0],
                        ends[t, 1],
                        heap,
                        now[HELD],
                    )
                    now[LEFT] -= 1
                    slots.doing[s] = DRAINING
        if slots.doing[s] == DRAINING:
            under_way = 0.0
            for h in range(net.hops[f]):
                under_way += slots.queue[s, h]
                if h < net.hops[f] - 1:
                    under_way += slots.flux[s, h]
            records = slots.delivered_at.shape[1]
            heard = slots.delivered_at[s, (n - ack_delay(net, f, dt)) % records]
            if under_way < _CRUMB and heard > slots.delivered[s] - _CRUMB:
                slots.doing[s] = FREE
                now[USED] -= 1
                m.used[i], m.used[now[USED]] = m.used[now[USED]], s
                continue
        i += 1
