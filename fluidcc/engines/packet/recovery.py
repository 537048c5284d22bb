"""Loss recovery at hosts: go-back-N, and the selective retransmission of IRN (Mittal et al., SIGCOMM 2018, section 3).

Go-back-N is that of RoCE NICs (HPCC, section 2.1; DCQCN, section 7): a receiver takes packets in their turn alone, and
reports each gap once; the sender goes back to it. An IRN receiver takes all that comes, and every ACK beyond a gap
names the packet that caused it. What is missing below the highest such packet is sent again, once, and before anything
new. Whatever that leaves open, or a flow that lost a whole window, waits for a timeout. Schemes that have a rule for it
are notified of each packet that IRN takes for lost, and of the first of those that go-back-N sends again. The reaction
to trimmed headers is in packet/trimming.py.

All sequence numbers are payload bytes at the borders of packets, which are the same each time that they are sent.

Settings say which classes and wires lose packets, and have timeouts and the room that IRN needs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.packet import dispatch
from fluidcc.engines.packet.calendar import schedule
from fluidcc.engines.packet.layout import (
    GO_BACK_N,
    IRN,
    LOST_TIMEOUT,
    NEVER,
    NO_RECOVERY,
    PAUSE,
    PS,
    TIMEOUT,
    TRIMMING,
    UNLIMITED,
)
from fluidcc.errors import InputError
from fluidcc.scenario.model import Flow, Scenario, base_rtt
from fluidcc.scenario.round_trips import largest_base_rtt, serialisation_rtt
from fluidcc.units import TIME, show

DISCARDED, IN_TURN, AT_ONCE = range(3)  # what a receiver does with data: no answer, one in its turn, one now
_RECOVERY = {"none": NO_RECOVERY, "gbn": GO_BACK_N, "irn": IRN, "trimming": TRIMMING}
_SPAN = 8  # bandwidth-delay products that a flow's packets may span until the first of them is acknowledged


@kernel
def lost(core: Any, uniforms: Any, port: Any, packet: Any) -> Any:
    """Draw whether the wire behind a port loses a packet; never a frame of PFC, which real switches repeat."""
    if port.loss <= 0.0 or packet.kind >= PAUSE:
        return False
    draw = uniforms[core.drawn]
    core.drawn += 1
    return draw < port.loss


# -- receiver --------------------------------------------------------------------------------------------------


@kernel
def note_order(flow: Any, packet: Any) -> None:
    """Count a packet that comes after a later one."""
    if packet.end < flow.farthest:
        flow.disorder += 1
    flow.farthest = max(flow.farthest, packet.end)


@kernel
def take(core: Any, flow: Any, bitmaps: Any, packet: Any) -> Any:
    """Take data at its receiver: give each byte to the application once; return how to answer."""
    note_order(flow, packet)
    begin = packet.end - packet.payload
    if begin < flow.received_end:
        return IN_TURN  # had before: its ACK was lost, or is under way
    if begin == flow.received_end:
        flow.received += packet.payload
        flow.received_end = packet.end
        flow.received_wire += packet.wire
        return IN_TURN if core.recovery == GO_BACK_N else close_gap(flow, bitmaps)
    if core.recovery == GO_BACK_N:
        if flow.nacked == flow.received_end and core.now < flow.nack_next:
            return DISCARDED
        flow.nacked = flow.received_end
        flow.nack_next = min(core.now + core.nack_interval, NEVER)
    else:
        at = flow.bits + begin // flow.payload % flow.room
        if not bitmaps[at]:
            bitmaps[at] = 1
            flow.received += packet.payload
    flow.reports = packet.end
    return AT_ONCE


@kernel
def close_gap(flow: Any, bitmaps: Any) -> Any:
    """Count as arrived what lies in order behind a packet that was awaited."""
    found = IN_TURN
    while flow.received_end < flow.total:
        at = flow.bits + flow.received_end // flow.payload % flow.room
        if not bitmaps[at]:
            break
        bitmaps[at] = 0
        payload = min(flow.payload, flow.total - flow.received_end)
        flow.received_end += payload
        flow.received_wire += payload + flow.overhead
        found = AT_ONCE
    return found


# -- sender ----------------------------------------------------------------------------------------------------


@kernel
def departed(core: Any, calendar: Any, flow: Any, f: Any, end: Any) -> None:
    """Record that a data packet up to ``end`` has left: count it if it did before, and await its ACK."""
    if end <= flow.reached:
        core.retransmissions += 1
    flow.reached = max(flow.reached, end)
    if end - flow.payload <= flow.acked:  # the oldest under way
        flow.news = core.now
    watch(core, calendar, flow, f)


@kernel
def on_ack(core: Any, calendar: Any, flow: Any, f: Any, bitmaps: Any, ack: Any) -> Any:
    """Handle an ACK at its sender; return from where on it reports losses (`tell`), or -1."""
    found = -1
    if ack.end > flow.acked:
        if core.recovery != GO_BACK_N:
            for n in range(flow.acked // flow.payload, (ack.end + flow.payload - 1) // flow.payload):
                bitmaps[flow.bits + flow.room + n % flow.room] = 0
        flow.acked = ack.end
        flow.acked_wire = ack.wire_end
        flow.news = core.now
        if flow.sent < flow.acked:  # it was under way when the sender went back
            flow.sent_again -= flow.acked_wire - flow.sent_wire
            flow.sent = flow.acked
            flow.sent_wire = flow.acked_wire
    if core.recovery == GO_BACK_N:
        if ack.reports > flow.acked == ack.end:
            go_back(core, flow)
            found = flow.acked
    else:
        if ack.reports > flow.acked:
            n = (ack.reports - 1) // flow.payload
            at = flow.bits + flow.room + n % flow.room
            if not bitmaps[at]:
                bitmaps[at] = 1
                flow.news = core.now
            if n * flow.payload > flow.missing:
                found = max(flow.missing, flow.acked)
                flow.missing = n * flow.payload
        seek(flow, bitmaps)
    watch(core, calendar, flow, f)
    return found


@kernel
def tell(sim: Any, f: Any, begin: Any, why: Any) -> None:
    """Tell a flow's scheme of what is lost: the packet from ``begin`` on, or all up to ``missing`` that none reported.

    When these last went is not known.
    """
    core, flow = sim.core[0], sim.flows[f]
    end = begin + 1 if core.recovery == GO_BACK_N else flow.missing
    while begin < end:
        at = flow.bits + flow.room + begin // flow.payload % max(flow.room, 1)
        if core.recovery == GO_BACK_N or not sim.bitmaps[at]:
            size = min(flow.payload, flow.total - begin)
            dispatch.on_loss(sim, f, size if core.payload_window else size + flow.overhead, why, NEVER)
        begin += flow.payload


@kernel
def go_back(core: Any, flow: Any) -> None:
    """Send again from the first byte that is not acknowledged."""
    flow.sent_again += flow.sent_wire - flow.acked_wire
    flow.sent = flow.acked
    flow.sent_wire = flow.acked_wire
    flow.news = core.now


@kernel
def resend(flow: Any, bitmaps: Any, payload: Any) -> None:
    """Advance past the packet at ``again``, which IRN sends again, and seek the next one."""
    flow.again += payload
    seek(flow, bitmaps)


@kernel
def seek(flow: Any, bitmaps: Any) -> None:
    """Move ``again`` to the packet that IRN sends again next: below ``missing``, and not reported as arrived."""
    flow.again = max(flow.again, flow.acked)
    while flow.again < flow.missing:
        if not bitmaps[flow.bits + flow.room + flow.again // flow.payload % flow.room]:
            break
        flow.again += flow.payload


@kernel
def due(core: Any, flow: Any) -> Any:
    """Compute when a sender's timeout expires; IRN's is shorter if few packets are under way, which may show no gap."""
    packets = (flow.sent - flow.acked + flow.payload - 1) // flow.payload
    return flow.news + (core.low_timeout if packets <= core.few else core.timeout)


@kernel
def watch(core: Any, calendar: Any, flow: Any, f: Any) -> None:
    """Have the timer of a flow with packets under way run out no later than it must."""
    if flow.state == 1 and flow.sent > flow.acked:
        time = due(core, flow)
        if time < flow.look:
            flow.look = time
            schedule(core, calendar, time, TIMEOUT, f)


@kernel
def timer_over(sim: Any, f: Any) -> Any:
    """Handle a timer that has run out; return whether the flow sends again, or False if it was too early.

    IRN takes all that nobody has reported as arrived for lost. (Its paper sends one packet, and takes others for lost
    once a later one arrives: a window that was lost at the end of a flow would then wait for a timeout each.)
    """
    core, flow, bitmaps = sim.core[0], sim.flows[f], sim.bitmaps
    if core.now != flow.look:  # an earlier one has taken its place
        return False
    flow.look = NEVER
    if flow.state != 1 or flow.sent == flow.acked:
        return False
    over = core.now >= due(core, flow)
    if over:
        core.timeouts += 1
        flow.news = core.now
        if core.recovery == GO_BACK_N:
            go_back(core, flow)
            tell(sim, f, flow.acked, LOST_TIMEOUT)
        else:
            flow.again = flow.acked
            flow.missing = flow.sent
            tell(sim, f, flow.acked, LOST_TIMEOUT)
            seek(flow, bitmaps)
    watch(core, sim.calendar, flow, f)
    return over


def round_trip(scenario: Scenario, flow: Flow) -> float:
    """Round trip of a flow's packet and its ACK through empty queues [s], as packets take it."""
    return base_rtt(scenario, flow) + serialisation_rtt(scenario, flow)


def check_timeouts(scenario: Scenario) -> None:
    """Refuse timeouts that run out before an ACK can come.

    Raises
    ------
    InputError
    """
    if scenario.loss_recovery == "none":
        return
    names = (
        ("retransmission_timeout", "low_timeout") if scenario.loss_recovery == "irn" else ("retransmission_timeout",)
    )
    kinds: dict[Any, int] = {}
    for f, flow in enumerate(scenario.flows):
        path = (flow.path, flow.line_rate, flow.access_delay, flow.egress_delay, flow.target, flow.scheme.int_bytes)
        kinds.setdefault(path, f)
    for f in kinds.values():
        least = round_trip(scenario, scenario.flows[f])
        for name in names:
            if getattr(scenario, name) <= least:
                raise InputError(
                    f"{name}: {show(getattr(scenario, name), TIME)} is over before flow {f}'s first ACK can come "
                    f"({show(least, TIME)}); write for example {show(10 * least, TIME)}"
                )


def settle_losses(scenario: Scenario, core: Any) -> None:
    """Set which queues and wires lose packets, and how hosts recover them."""
    pfc, classes = scenario.pfc is not None, scenario.classes
    lossless = sum(1 << q for q, each in enumerate(classes, 1) if pfc and each.lossless)
    core.pfc = lossless
    alpha = scenario.egress_alpha
    if alpha is None and (pfc or scenario.loss_recovery != "none"):
        alpha = 1.0
    if alpha is not None and math.isfinite(scenario.buffer):
        core.lossy = sum(1 << q for q in range(1, len(classes) + 1)) & ~lossless
        core.egress_alpha = min(alpha, 1e18)  # finite, so that nothing of it is nothing
    if scenario.loss_recovery == "trimming":
        core.header_queue = 1 + len(classes)
        core.trims = sum(1 << q for q in range(1, len(classes) + 1)) & ~lossless
        if core.lossy:
            core.lossy |= 1 << core.header_queue
    core.lossy_links = any(link.loss > 0 for link in scenario.links)
    core.recovery = _RECOVERY[scenario.loss_recovery]
    core.timeout = round(scenario.retransmission_timeout * PS)
    core.low_timeout = min(core.timeout, round(scenario.low_timeout * PS))
    core.few = round(scenario.low_timeout_packets) if core.recovery == IRN else -1
    interval = scenario.nack_interval
    core.nack_interval = NEVER if interval is None else round(interval * PS)


def set_trimming(scenario: Scenario, ports: Any) -> None:
    """Set the queue above which ports trim; the default is what each port sends in the largest base RTT.

    Raises
    ------
    InputError
        If no class may lose packets.
    """
    if scenario.loss_recovery != "trimming":
        return
    if scenario.pfc is not None and all(each.lossless for each in scenario.classes):
        raise InputError(
            "loss_recovery: PFC keeps all that might be trimmed; write pfc=None (--set pfc=off), or "
            "TrafficClass(lossless=False) for classes that lose packets"
        )
    ports["trims"] = 1
    above = scenario.trim_above
    if above is None:
        ports["trim_above"] = np.ceil(ports["rate"] * largest_base_rtt(scenario))
    else:
        ports["trim_above"] = min(above, UNLIMITED)


def bitmaps_of(flows: Any) -> np.ndarray:
    """Return zeroed marks of the packets that selective recovery knows of, flow after flow; one without it."""
    return np.zeros(max(1, 2 * int(flows["room"].sum())), np.uint8)


def give_room(scenario: Scenario, flow: Flow, row: Any) -> None:
    """Set how far a flow may go before what is lost of it has come, and for how many packets it has marks."""
    row.recovery_cap, row.room = _window(scenario, flow)


def _window(scenario: Scenario, flow: Flow) -> tuple[float, int]:
    """Return a flow's own bandwidth-delay product in the unit of windows (IRN 3.2), and packets under way in it."""
    if scenario.loss_recovery not in ("irn", "trimming"):
        return math.inf, 0
    wire = scenario.wire_packet_of(flow)
    packets = flow.line_rate * round_trip(scenario, flow) / wire
    if scenario.loss_recovery == "trimming":  # payload bytes, whatever windows count
        room = math.ceil(_SPAN * packets) + round(scenario.ack_interval) + 1
        return (room - 1) * float(scenario.packet_size), room
    unit = scenario.packet_size if scenario.window_unit == "payload" else wire
    # A window lets out a packet beyond it, and at least as many as an ACK answers.
    return packets * unit, max(math.ceil(packets) + 1, round(scenario.ack_interval)) + 1
