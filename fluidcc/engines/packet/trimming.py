"""Trimming at hosts: a receiver answers a header by a NACK, and the sender sends again exactly what that names.

Switches that have no room for data send its header on (`switch.refuse`; Ultra Ethernet Specification 1.0, 4.1). So loss
is reported and not inferred: packets may come in any order, and a gap is no sign. For each packet a sender knows that
it has been acknowledged, that it must go again, or neither; what is known to be lost is no longer in flight. A packet
of which nothing is known for `retransmission_timeout` is lost with its header (UE 3.5.12).

An ACK reports what came in order and the packet that it answers, as IRN's does. `Flow.acked` is how much has been
acknowledged in whatever order, and `Flow.una` from where on something has not.
"""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.packet import dispatch, pool
from fluidcc.engines.packet.calendar import schedule
from fluidcc.engines.packet.layout import (
    ACKNOWLEDGED,
    LOST_TIMEOUT,
    LOST_TRIMMED,
    NACK,
    NEVER,
    RECEIVED,
    TIMEOUT,
)
from fluidcc.engines.packet.record import write
from fluidcc.engines.packet.switch import CONTROL_BYTES, queue_up

UNKNOWN, ARRIVED, LOST = range(3)  # what a sender knows of a packet that it has sent


@kernel
def answer(sim: Any, k: Any) -> Any:
    """Turn a header at its receiver round as a NACK, which goes with the control frames; return the NIC."""
    core, packet = sim.core[0], sim.packets[k]
    flow = sim.flows[packet.flow]
    nic = sim.routes[flow.back, 0]
    if sim.log.size:
        write(core, sim.log, RECEIVED, nic, packet.flow, packet.kind, packet.end, 0, 0.0)
    packet.kind = NACK
    packet.wire = CONTROL_BYTES
    packet.queue = 0
    packet.route = flow.back
    packet.hop = 0
    packet.ingress = -1
    queue_up(core, sim.links, sim.bins, sim.packets, sim.ports[nic], 0, k)
    return nic


# -- sender ----------------------------------------------------------------------------------------------------


@kernel
def place(flow: Any, n: Any) -> Any:
    """Return the place of the sender's mark of its packet ``n``."""
    return flow.bits + flow.room + n % flow.room


@kernel
def size_of(core: Any, flow: Any, n: Any) -> Any:
    """Packet ``n`` as windows count it [bytes]."""
    payload = min(flow.payload, flow.total - n * flow.payload)
    return payload if core.payload_window else payload + flow.overhead


@kernel
def too_far(flow: Any, again: Any) -> Any:
    """Check whether there are no marks for a new packet: the first one that is missing lies too far back."""
    return not again and flow.sent - flow.una >= flow.recovery_cap


@kernel
def departed(sim: Any, f: Any, end: Any) -> None:
    """Record when a data packet up to ``end`` has left its sender, and have a timer look after it."""
    core, flow = sim.core[0], sim.flows[f]
    if end <= flow.reached:
        core.retransmissions += 1
    flow.reached = max(flow.reached, end)
    sim.lists[flow.times + (end - 1) // flow.payload % flow.room] = core.now
    if flow.look == NEVER:  # whatever went before is looked after sooner
        flow.look = core.now + core.timeout
        schedule(core, sim.calendar, flow.look, TIMEOUT, f)


@kernel
def on_ack(core: Any, flow: Any, bitmaps: Any, ack: Any) -> None:
    """Handle an ACK at its sender, and rewrite it to say how much has been acknowledged in all."""
    if ack.end > flow.una:
        for n in range(flow.una // flow.payload, (ack.end + flow.payload - 1) // flow.payload):
            arrived(core, flow, bitmaps, n)
            bitmaps[place(flow, n)] = UNKNOWN  # of the packet that takes its place
        flow.una = ack.end
    if ack.reports > flow.una:
        arrived(core, flow, bitmaps, (ack.reports - 1) // flow.payload)
    seek(flow, bitmaps)
    ack.end = flow.acked
    ack.wire_end = flow.acked_wire


@kernel
def arrived(core: Any, flow: Any, bitmaps: Any, n: Any) -> None:
    """Count packet ``n`` as acknowledged, once; it need not go again."""
    at = place(flow, n)
    if bitmaps[at] == ARRIVED:
        return
    if bitmaps[at] == LOST:
        flow.away -= size_of(core, flow, n)
    bitmaps[at] = ARRIVED
    payload = min(flow.payload, flow.total - n * flow.payload)
    flow.acked += payload
    flow.acked_wire += payload + flow.overhead


@kernel
def on_nack(sim: Any, k: Any) -> Any:
    """Handle a NACK at its sender: resend what it names, unless its fate is known otherwise; return the NIC."""
    core, packet = sim.core[0], sim.packets[k]
    f = packet.flow
    flow = sim.flows[f]
    if sim.log.size:
        write(core, sim.log, ACKNOWLEDGED, flow.nic, f, packet.kind, packet.end, 0, flow.rate)
    n = (packet.end - 1) // flow.payload
    if flow.state == 1 and packet.end > flow.una and sim.bitmaps[place(flow, n)] == UNKNOWN:
        lose(core, flow, sim.bitmaps, n)
        dispatch.on_loss(sim, f, size_of(core, flow, n), LOST_TRIMMED, packet.sent)
    pool.free(core, sim.packets, k)
    return flow.nic


@kernel
def lose(core: Any, flow: Any, bitmaps: Any, n: Any) -> None:
    """Mark packet ``n`` as lost: it is in flight no longer, and is sent again as soon as it may."""
    bitmaps[place(flow, n)] = LOST
    flow.away += size_of(core, flow, n)
    begin = n * flow.payload
    if flow.again >= flow.missing:
        flow.again = begin
        flow.missing = begin + flow.payload
    else:
        flow.again = min(flow.again, begin)
        flow.missing = max(flow.missing, begin + flow.payload)


@kernel
def resend(core: Any, flow: Any, bitmaps: Any, payload: Any) -> None:
    """Return the packet at ``again``, which is sent again, to flight, and seek the next one."""
    n = flow.again // flow.payload
    bitmaps[place(flow, n)] = UNKNOWN
    flow.away -= size_of(core, flow, n)
    flow.again += payload
    seek(flow, bitmaps)


@kernel
def seek(flow: Any, bitmaps: Any) -> None:
    """Move ``again`` to the next lost packet below ``missing``; there is none if the two meet."""
    flow.again = max(flow.again, flow.una)
    while flow.again < flow.missing and bitmaps[place(flow, flow.again // flow.payload)] != LOST:
        flow.again += flow.payload


@kernel
def timer_over(sim: Any, f: Any) -> Any:
    """Handle a timer that has run out; return whether packets are lost, unheard of for so long."""
    core, flow, bitmaps = sim.core[0], sim.flows[f], sim.bitmaps
    flow.look = NEVER
    if flow.state != 1:
        return False
    oldest, over = NEVER, False
    for n in range(flow.una // flow.payload, (flow.sent + flow.payload - 1) // flow.payload):
        if bitmaps[place(flow, n)] != UNKNOWN:
            continue
        when = sim.lists[flow.times + n % flow.room]
        if core.now - when >= core.timeout:
            over = True
            lose(core, flow, bitmaps, n)
            dispatch.on_loss(sim, f, size_of(core, flow, n), LOST_TIMEOUT, when)
        else:
            oldest = min(oldest, when)
    core.timeouts += over
    if oldest < NEVER:
        flow.look = oldest + core.timeout
        schedule(core, sim.calendar, flow.look, TIMEOUT, f)
    return over
