"""Hosts: a NIC sends, paces and takes turns among flows; receivers answer."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.common.topology import CONTROL_BYTES
from fluidcc.engines.packet import dependents, dispatch, paths, pool, recovery, trimming
from fluidcc.engines.packet.calendar import schedule
from fluidcc.engines.packet.layout import (
    ACK,
    ACKNOWLEDGED,
    CNP,
    DATA,
    HEADER,
    IRN,
    LOST_GAP,
    NEVER,
    NOTIFIED,
    NOTIFY,
    RECEIVED,
    SENT,
    TRIMMING,
    WAKE,
)
from fluidcc.engines.packet.marking import CE, UE
from fluidcc.engines.packet.pacing import inflight, pace
from fluidcc.engines.packet.record import write
from fluidcc.engines.packet.switch import queue_up


@kernel
def blocked(core: Any, flow: Any, again: Any) -> Any:
    """Check whether the window holds a flow back: a packet may go while less than the window is in flight.

    A packet may also go while fewer are in flight than an ACK answers: those would never be answered.
    """
    if core.recovery == TRIMMING and trimming.too_far(flow, again):
        return True
    flying = inflight(core, flow)
    if flying < flow.window and not (core.recovery == IRN and flying >= flow.recovery_cap):
        return False
    if core.ack_interval == 1 or flow.notifies:
        return True
    return flying >= core.ack_interval * (flow.payload if core.payload_window else flow.payload + flow.overhead)


@inlined
def emit(sim: Any, i: Any) -> Any:
    """Emit the next data packet of a NIC, its flows in turn; return -1, and set a timer, if none may send now."""
    core, port = sim.core[0], sim.ports[i]
    soonest = NEVER
    slot = port.turn
    for _ in range(port.active):
        slot += 1
        if slot >= port.active:
            slot = 0
        f = sim.lists[port.first + slot]
        flow = sim.flows[f]
        again = flow.again < flow.missing  # what selective recovery sends again; 0 < 0 otherwise
        if flow.sent >= flow.total and not again:
            continue
        # A window no longer counts what NACKs name, and holds it back; IRN's has room for what it sends again.
        waits = (not again or core.recovery == TRIMMING) and blocked(core, flow, again)
        held = waits or (port.paused >> flow.queue & 1) == 1
        if not held and flow.next <= core.now:
            port.turn = slot
            return packet_of(sim, f, again)
        if flow.next < soonest and (not held or core.ns3):
            soonest = flow.next
    # The simulator's timer looks at flows that are held as well, and is not set if one of them is due.
    if core.now < soonest < NEVER and soonest < port.wake:
        port.wake = soonest
        schedule(core, sim.calendar, soonest, WAKE, i)
    return -1


@kernel
def resend(core: Any, flow: Any, bitmaps: Any, payload: Any) -> None:
    """Update selective recovery as a data packet is sent again."""
    if core.recovery == TRIMMING:
        trimming.resend(core, flow, bitmaps, payload)
    else:
        recovery.resend(flow, bitmaps, payload)


@inlined
def packet_of(sim: Any, f: Any, again: Any) -> Any:
    """Make a flow's next packet, new or one that selective recovery sends again."""
    core, flow = sim.core[0], sim.flows[f]
    k = pool.allocate(core, sim.packets)
    packet = sim.packets[k]
    begin = flow.again if again else flow.sent
    payload = min(flow.payload, flow.total - begin)
    size = payload + flow.overhead
    if again:
        flow.sent_again += size
        resend(core, flow, sim.bitmaps, payload)
        packet.end = begin + payload
        packet.wire_end = packet.end + (begin // flow.payload + 1) * flow.overhead
    else:
        flow.sent += payload
        flow.sent_wire += size
        packet.end = flow.sent
        packet.wire_end = flow.sent_wire
        if flow.sent >= flow.total:
            dependents.ended(core, sim.calendar, flow, f, dependents.LEFT)
    if core.spraying:
        paths.choose(core, sim.uniforms, sim.lists, flow)
    pace(core, sim.uniforms, flow, size)
    packet.kind = DATA
    packet.flow = f
    packet.wire = size
    packet.payload = payload
    packet.queue = flow.queue
    packet.route = flow.route
    packet.hop = 0
    packet.ingress = -1
    packet.sent = core.now
    packet.marks = 0
    packet.undetermined = 0
    packet.hops = 0
    packet.path = 0
    packet.stamped = flow.telemetry
    core.injected += 1
    if sim.log.size:
        write(core, sim.log, SENT, flow.nic, f, packet.kind, packet.end, 0, inflight(core, flow) - flow.window)
    dispatch.on_sent(sim, f, size)
    if core.recovery:
        look_after(sim, f, packet.end)
    return k


@kernel
def look_after(sim: Any, f: Any, end: Any) -> None:
    """Update loss recovery as a data packet up to ``end`` has left."""
    core = sim.core[0]
    if core.recovery == TRIMMING:
        trimming.departed(sim, f, end)
    else:
        recovery.departed(core, sim.calendar, sim.flows[f], f, end)


@inlined
def receive(sim: Any, k: Any) -> Any:
    """Handle a packet at the host that it is for; return the NIC that may have something to send."""
    kind = sim.packets[k].kind
    if kind == DATA:
        return deliver(sim, k)
    if kind == ACK:
        return on_ack(sim, k)
    if kind == CNP:
        return on_cnp(sim, k)
    return trimming.answer(sim, k) if kind == HEADER else trimming.on_nack(sim, k)


@inlined
def deliver(sim: Any, k: Any) -> Any:
    """Count data at its receiver, and answer at once or later by an ACK, the packet turned round."""
    core, packet = sim.core[0], sim.packets[k]
    f = packet.flow
    flow = sim.flows[f]
    core.delivered += 1
    before = flow.received
    answer = recovery.IN_TURN
    if core.recovery:
        answer = recovery.take(core, flow, sim.bitmaps, packet)
    elif core.spraying:
        paths.take(flow, packet)
    else:
        flow.received += packet.payload
        flow.received_end = max(flow.received_end, packet.end)
        flow.received_wire = max(flow.received_wire, packet.wire_end)
    nic = sim.routes[flow.back, 0]
    if sim.log.size:
        write(core, sim.log, RECEIVED, nic, f, packet.kind, packet.end, 0, packet.marks)
    if answer != recovery.DISCARDED:
        flow.unanswered += 1
    if packet.marks or packet.undetermined:
        if answer != recovery.DISCARDED:
            flow.unanswered_marks += packet.marks
            flow.unanswered_undetermined += packet.undetermined
        if flow.cnp_interval > 0 and (packet.marks or flow.ternary):
            flow.cnp_severity = max(flow.cnp_severity, CE if packet.marks else UE)
            if core.now >= flow.cnp_next:
                notify(sim, f)
            else:
                flow.cnp_pending = 1
    if answer == recovery.DISCARDED:
        pool.free(core, sim.packets, k)
        return nic
    if before == 0 < flow.received:
        sim.ports[nic].incoming += 1
    done = before < flow.total <= flow.received
    if done:
        sim.ports[nic].incoming -= 1
        dependents.ended(core, sim.calendar, flow, f, dependents.RECEIPT)
    if flow.notifies:
        due = dispatch.on_packet(sim, f, k, nic) or done or core.now >= flow.answer_next or answer == recovery.AT_ONCE
        if not due and not flow.answer_armed:  # if nothing else comes, the timer answers
            flow.answer_armed = 1
            schedule(core, sim.calendar, flow.answer_next, NOTIFY, f)
    else:
        last = packet.end >= flow.total or (core.spraying and done)
        due = flow.unanswered >= core.ack_interval or last or answer == recovery.AT_ONCE
    if due:
        send_ack(sim, f, k)
    else:
        pool.free(core, sim.packets, k)
    return nic


@kernel
def send_ack(sim: Any, f: Any, k: Any) -> None:
    """Send packet ``k`` back as the ACK of all that has come."""
    core, packet, flow = sim.core[0], sim.packets[k], sim.flows[f]
    nic = sim.routes[flow.back, 0]
    core.acks += 1
    packet.kind = ACK
    packet.flow = f
    packet.wire = flow.ack_size
    packet.payload = 0
    packet.route = flow.back
    packet.hop = 0
    packet.ingress = -1
    packet.queue = 0 if core.ack_control else flow.queue
    packet.marks = flow.unanswered_marks
    packet.undetermined = flow.unanswered_undetermined
    packet.covers = flow.unanswered
    packet.confirms = flow.received
    flow.unanswered = 0
    flow.unanswered_marks = 0
    flow.unanswered_undetermined = 0
    if flow.notifies:
        packet.end = flow.received_end
        packet.wire_end = flow.received_wire
        flow.answer_next = core.now + flow.answer_period
        dispatch.on_answer(sim, f, k)
    if core.spraying:
        packet.end = flow.received_end
        packet.wire_end = flow.received_wire
    if core.recovery:
        packet.end = flow.received_end
        packet.wire_end = flow.received_wire
        packet.reports = flow.reports
        flow.reports = -1
    queue_up(core, sim.links, sim.bins, sim.packets, sim.ports[nic], packet.queue, k)


@kernel
def send_last_ack(sim: Any, f: Any) -> None:
    """Answer, at the end of a notification's period, what has come in it, with the telemetry of before."""
    core, flow = sim.core[0], sim.flows[f]
    flow.answer_armed = 0
    if flow.unanswered == 0:
        return
    if core.now < flow.answer_next:
        flow.answer_armed = 1
        schedule(core, sim.calendar, flow.answer_next, NOTIFY, f)
        return
    k = pool.allocate(core, sim.packets)
    sim.packets[k].hops = 0
    send_ack(sim, f, k)
    schedule(core, sim.calendar, core.now, WAKE, sim.routes[flow.back, 0])


@kernel
def notify(sim: Any, f: Any) -> None:
    """Send a CNP for a flow, when its NIC has a turn for it, and open the next interval (DCQCN, Fig. 6).

    A NIC that keeps CNPs apart gives turns as they are asked for: a flow whose interval ends just as the NIC is free
    again must not overtake those that have waited.
    """
    core, flow = sim.core[0], sim.flows[f]
    i = sim.routes[flow.back, 0]
    nic = sim.ports[i]
    if flow.nic_cnp_interval > 0 and flow.cnp_turn == 0:
        turn = max(core.now, nic.cnp_free)
        nic.cnp_free = turn + flow.nic_cnp_interval
        if turn > core.now:
            flow.cnp_turn = flow.cnp_pending = 1
            flow.cnp_next = turn
            schedule(core, sim.calendar, turn, NOTIFY, f)
            return
    flow.cnp_turn = flow.cnp_pending = 0
    flow.cnps += 1
    flow.cnp_next = core.now + flow.cnp_interval
    schedule(core, sim.calendar, flow.cnp_next, NOTIFY, f)
    k = pool.allocate(core, sim.packets)
    packet = sim.packets[k]
    packet.kind = CNP
    packet.flow = f
    packet.wire = CONTROL_BYTES
    packet.payload = 0
    packet.queue = 0
    packet.route = flow.back
    packet.hop = 0
    packet.ingress = -1
    packet.marks = flow.cnp_severity == CE
    packet.undetermined = flow.cnp_severity == UE
    packet.hops = 0
    flow.cnp_severity = 0
    queue_up(core, sim.links, sim.bins, sim.packets, nic, 0, k)
    schedule(core, sim.calendar, core.now, WAKE, i)


@kernel
def interval_over(sim: Any, f: Any) -> None:
    """End of a CNP interval: another CNP if a marked packet came during it (DCQCN, Fig. 6)."""
    flow = sim.flows[f]
    if flow.notifies:
        send_last_ack(sim, f)
    elif sim.core[0].now >= flow.cnp_next and flow.cnp_pending:
        notify(sim, f)


@inlined
def on_ack(sim: Any, k: Any) -> Any:
    """Handle an ACK at its sender."""
    core, packet = sim.core[0], sim.packets[k]
    f = packet.flow
    flow = sim.flows[f]
    if core.recovery:
        learn(sim, f, k)
        flow.confirmed = flow.acked
    else:
        flow.acked = max(flow.acked, packet.end)
        flow.acked_wire = max(flow.acked_wire, packet.wire_end)
        flow.confirmed = max(flow.confirmed, packet.confirms)
    if sim.log.size:
        write(core, sim.log, ACKNOWLEDGED, flow.nic, f, packet.kind, packet.end, 0, flow.rate)
    if flow.state == 1:
        dispatch.on_ack(sim, f, k)
        if flow.acked >= flow.total and (core.recovery or flow.lost == 0):
            finish(sim, f)
    pool.free(core, sim.packets, k)
    return flow.nic


@kernel
def learn(sim: Any, f: Any, k: Any) -> None:
    """Update loss recovery by an ACK."""
    core, flow, packet = sim.core[0], sim.flows[f], sim.packets[k]
    if core.recovery == TRIMMING:
        trimming.on_ack(core, flow, sim.bitmaps, packet)
        return
    begin = recovery.on_ack(core, sim.calendar, flow, f, sim.bitmaps, packet)
    if begin >= 0:
        recovery.tell(sim, f, begin, LOST_GAP)


@inlined
def on_cnp(sim: Any, k: Any) -> Any:
    """Handle a CNP at its sender."""
    core, packet = sim.core[0], sim.packets[k]
    f = packet.flow
    flow = sim.flows[f]
    if sim.log.size:
        write(core, sim.log, NOTIFIED, flow.nic, f, packet.kind, 0, 0, 0.0)
    if flow.state == 1:
        dispatch.on_cnp(sim, f, k)
    pool.free(core, sim.packets, k)
    return flow.nic


@kernel
def begin(sim: Any, f: Any) -> Any:
    """Start a flow; return its NIC."""
    core, flow = sim.core[0], sim.flows[f]
    port = sim.ports[flow.nic]
    sim.lists[port.first + port.active] = f
    port.active += 1
    flow.state = 1
    flow.next = core.now
    flow.rate = flow.initial_rate
    if core.share_start and port.active > 1:
        flow.rate = min(flow.rate, flow.line_rate / port.active)
    dispatch.begin(sim, f)
    return flow.nic


@kernel
def finish(sim: Any, f: Any) -> None:
    """Finish a flow whose last byte is acknowledged: it leaves its NIC."""
    core, flow = sim.core[0], sim.flows[f]
    port = sim.ports[flow.nic]
    flow.state = 2
    flow.finish = core.now
    dependents.ended(core, sim.calendar, flow, f, dependents.ANSWER)
    found = 0
    for slot in range(port.active):
        if found:
            sim.lists[port.first + slot - 1] = sim.lists[port.first + slot]
        elif sim.lists[port.first + slot] == f:
            found = 1
            if port.turn >= slot:
                port.turn -= 1
    port.active -= 1
