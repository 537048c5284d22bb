"""Switches: they admit a packet to their buffer, mark it, stamp it, and pause a port that sends too much.

Marking follows DCQCN's congestion point (Zhu et al., SIGCOMM 2015, section 3.1, Fig. 5), telemetry HPCC's
Fig. 7 (Li et al., SIGCOMM 2019), and the accounting of PFC that of shared-buffer switches: each ingress port and
class has a reserve, then shares a pool up to a threshold, and what comes after its PAUSE goes to its headroom. The
settings of these, for a scenario, come first.
"""

from __future__ import annotations

import math
from typing import Any

from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.common.topology import CONTROL_BYTES, Port, Topology
from fluidcc.engines.packet import layout, pool
from fluidcc.engines.packet.calendar import schedule
from fluidcc.engines.packet.layout import (
    DATA,
    DEPTHS,
    DROPPED,
    ENQUEUED,
    HEADER,
    HOPS,
    MARKED,
    NEVER,
    PAUSE,
    PAUSED,
    PORT_ID,
    QLEN,
    QLEN_CLASS,
    QUEUES,
    RECEIVED,
    RESUME,
    RESUMED,
    TRIMMED,
    TS,
    TX_BYTES,
    TX_CLASS,
    UNLIMITED,
    WAKE,
    Sim,
    records,
)
from fluidcc.engines.packet.marking import CE, UE, cells, marks, seen, ternary
from fluidcc.engines.packet.record import account, peak, write
from fluidcc.engines.packet.telemetry import SWITCH_IDS
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario
from fluidcc.units import SIZE, show


def nodes_of(scenario: Scenario, topology: Topology) -> Any:
    """Records of all nodes; hosts' memory is unlimited, and switches are numbered from 1 in order."""
    nodes = records(layout.NODE, len(topology.nodes))
    switches = [name for name in topology.nodes if name not in topology.hosts]
    ids = {name: i % SWITCH_IDS for i, name in enumerate(switches, 1)}
    for node, name in zip(nodes, topology.nodes, strict=True):
        node.switch_id = ids.get(name, 0)
        unlimited = name in topology.hosts or math.isinf(scenario.buffer)
        node.buffer = node.shared = UNLIMITED if unlimited else int(scenario.buffer)
    return nodes


def set_thresholds(scenario: Scenario, topology: Topology, sim: Sim, largest: int) -> None:
    """PFC's thresholds, and what each switch must keep for bytes that come after a PAUSE.

    Raises
    ------
    InputError
        If a buffer does not hold it.
    """
    pfc, classes = scenario.pfc, sum(each.lossless for each in scenario.classes)
    if pfc is None:
        return
    simulator = scenario.timing == "ns3"
    nic_rate = max(flow.line_rate for flow in scenario.flows)
    for row, port in zip(sim.ports, topology.ports, strict=True):
        if port.target in topology.hosts:
            continue
        if pfc.headroom is not None:
            row.headroom = int(pfc.headroom)
        elif simulator:
            row.headroom = int(port.rate * port.delay * 3)
        else:
            row.headroom = headroom(port, topology.ports[port.reverse], largest)
        row.alpha = pfc.alpha
        if simulator:  # ports faster than the NICs get a larger share
            row.alpha *= 2.0 ** min(3, max(0, math.ceil(math.log2(port.rate / nic_rate) - 1e-9)))
        row.xoff = -1 if pfc.xoff is None else int(pfc.xoff)
        node = sim.nodes[row.peer]
        node.reserve, node.xon_gap = int(pfc.reserve), int(pfc.xon_gap)
        if node.shared < UNLIMITED:
            node.shared -= classes * (row.headroom + node.reserve)
    for node, name in zip(sim.nodes, topology.nodes, strict=True):
        refuse_small(name, float(node.buffer), float(node.shared), largest)


def refuse_small(name: str, buffer: float, shared: float, largest: int) -> None:
    """Refuse a switch whose buffer its ports' headroom and reserves leave next to nothing of.

    Raises
    ------
    InputError
    """
    if shared < 2 * largest:
        raise InputError(
            f"buffer: {show(buffer, SIZE)} of {name!r} does not hold the headroom and reserves of its "
            f"ports ({show(buffer - shared, SIZE)}); write a larger buffer or less headroom"
        )


def headroom(port: Port, back: Port, largest: int) -> int:
    """Bytes [bytes] that may still come in by a port after its PAUSE is decided.

    The PAUSE waits for a packet and for the control frames of other classes on its own link, crosses it, finds the
    neighbour at the start of a packet, and what is then on the wire still arrives (DCQCN, section 4).
    """
    waits = (largest + QUEUES * CONTROL_BYTES) / back.rate
    return math.ceil(port.rate * (waits + back.delay + port.delay)) + 2 * largest


@kernel
def threshold(port: Any, node: Any) -> Any:
    """Bytes of an ingress port in the shared pool above which it is paused."""
    if port.xoff >= 0:
        return port.xoff
    return int(port.alpha * max(node.shared - node.shared_used, 0))


@kernel
def admit(core: Any, port: Any, node: Any, q: Any, waiting: Any, size: Any) -> Any:
    """Count a packet that came in from ``port`` to the buffer of its switch; False if it has no room.

    A class that may lose packets has a dynamic threshold at the egress (Choudhury and Hahne, ToN 1998), where
    ``waiting`` bytes of it are.
    """
    if node.used + size > node.buffer:
        return False
    if core.lossy >> q & 1:
        free = node.shared - node.shared_used
        if size > free or waiting + size > core.egress_alpha * free:
            return False
        node.shared_used += size
    elif core.pfc >> q & 1:
        limit = threshold(port, node)
        above = max(port.queues[q].ingress - node.reserve, 0)
        if above + size > limit and port.queues[q].headroom_used + size > port.headroom:
            return False
        new = port.queues[q].ingress + size
        if new <= node.reserve:
            port.queues[q].ingress = new
        elif new - node.reserve > limit:
            port.queues[q].headroom_used += size
        else:
            port.queues[q].ingress = new
            node.shared_used += min(size, new - node.reserve)
    node.used += size
    if node.used > node.used_max:
        node.used_max = node.used
    return True


@kernel
def release(core: Any, port: Any, node: Any, q: Any, size: Any) -> Any:
    """Take a packet that came in from ``port`` off the buffer of the switch that it leaves; True asks for a RESUME."""
    node.used -= size
    if core.pfc >> q & 1 == 0:
        if core.lossy >> q & 1:
            node.shared_used -= size
        return False
    headroom = min(port.queues[q].headroom_used, size)
    shared = min(size - headroom, max(port.queues[q].ingress - node.reserve, 0))
    port.queues[q].headroom_used -= headroom
    port.queues[q].ingress -= size - headroom
    node.shared_used -= shared
    if port.stopping >> q & 1 == 0:
        return False
    above = max(port.queues[q].ingress - node.reserve, 0)
    return port.queues[q].headroom_used == 0 and (above == 0 or above + node.xon_gap <= threshold(port, node))


@kernel
def resume(sim: Any, i: Any, q: Any) -> None:
    """Let a class of packets come in by port ``i`` again."""
    sim.ports[i].stopping &= ~(1 << q)
    send_pfc(sim, i, q, RESUME)


@kernel
def send_pfc(sim: Any, i: Any, q: Any, kind: Any) -> None:
    """Send PAUSE or RESUME for a class to the node that sends through port ``i``."""
    core = sim.core[0]
    back = sim.ports[i].reverse
    port = sim.ports[back]
    k = pool.allocate(core, sim.packets)
    packet = sim.packets[k]
    packet.kind = kind
    packet.flow = -1
    packet.wire = CONTROL_BYTES
    packet.payload = 0
    packet.queue = 0
    packet.route = -1
    packet.ingress = -1
    packet.marks = q  # the class that it is about
    queue_up(core, sim.links, sim.bins, sim.packets, port, 0, k)
    schedule(core, sim.calendar, core.now, WAKE, back)
    core.pauses += kind == PAUSE
    if sim.log.size:
        write(core, sim.log, PAUSED if kind == PAUSE else RESUMED, i, -1, kind, 0, port.queued, q)


@kernel
def queue_up(core: Any, links: Any, bins: Any, packets: Any, port: Any, q: Any, k: Any) -> None:
    """Put a packet into a port's queue and count it."""
    if port.link >= 0:
        account(core, links, bins, port.link, port.queued)
    pool.join(packets, port, q, k)
    size = packets[k].wire
    port.queues[q].bytes += size
    if port.in_cells:
        port.queues[q].cells += cells(port, size)
    port.queued += size
    port.came += size
    if port.link >= 0:
        peak(core, links, port.link, port.queued)


@inlined
def forward(sim: Any, i: Any, k: Any) -> None:
    """Put a packet that is on its way through a switch into the queue of port ``i``, or refuse it."""
    core, port, packet = sim.core[0], sim.ports[i], sim.packets[k]
    q, came = packet.queue, packet.ingress
    source = sim.ports[came]
    node = sim.nodes[source.peer]
    full = port.trims and too_long(core, port, packet)
    if port.down or full or not admit(core, source, node, q, port.queues[q].bytes, packet.wire):
        refuse(sim, i, k)
        return
    if packet.kind == DATA and not port.on_departure and marks(core, sim.uniforms, port, seen(port, q)):
        packet.marks = 1
        if sim.log.size:
            write(core, sim.log, MARKED, i, packet.flow, packet.kind, packet.end, port.queues[q].bytes, 0.0)
    queue_up(core, sim.links, sim.bins, sim.packets, port, q, k)
    if sim.log.size:
        write(core, sim.log, ENQUEUED, i, packet.flow, packet.kind, packet.end, port.queued, 0.0)
    if core.pfc >> q & 1 and source.stopping >> q & 1 == 0:
        above = max(source.queues[q].ingress - node.reserve, 0)
        if source.queues[q].headroom_used > 0 or above >= threshold(source, node):
            source.stopping |= 1 << q
            send_pfc(sim, came, q, PAUSE)


@kernel
def too_long(core: Any, port: Any, packet: Any) -> Any:
    """Check whether a packet is to be trimmed because its queue is as long as it may become; an empty one takes any."""
    q, waiting = packet.queue, port.queues[packet.queue].bytes
    return packet.kind == DATA and core.trims >> q & 1 and waiting > 0 and waiting + packet.wire > port.trim_above


@kernel
def refuse(sim: Any, i: Any, k: Any) -> None:
    """Refuse a packet at the queue of port ``i``: forward data that may be trimmed as its header, drop others.

    What is cut off is the payload but for 64 bytes, as much as a frame has at least. Headers have a queue of their own.
    """
    core, port, packet = sim.core[0], sim.ports[i], sim.packets[k]
    if packet.kind != DATA or port.down or not core.trims >> packet.queue & 1:
        drop(sim, i, k)
        return
    source, q = sim.ports[packet.ingress], core.header_queue
    size = min(packet.wire, packet.wire - packet.payload + CONTROL_BYTES)
    if not admit(core, source, sim.nodes[source.peer], q, port.queues[q].bytes, size):
        drop(sim, i, k)
        return
    core.trimmed += 1
    if sim.log.size:
        write(core, sim.log, TRIMMED, i, packet.flow, DATA, packet.end, port.queues[packet.queue].bytes, packet.payload)
    packet.kind = HEADER
    packet.wire = size
    packet.queue = q
    queue_up(core, sim.links, sim.bins, sim.packets, port, q, k)
    if sim.log.size:
        write(core, sim.log, ENQUEUED, i, packet.flow, HEADER, packet.end, port.queued, 0.0)


@kernel
def drop(sim: Any, i: Any, k: Any) -> None:
    """Lose a packet."""
    core, packet = sim.core[0], sim.packets[k]
    if packet.kind == DATA:
        core.dropped += 1
        sim.flows[packet.flow].lost += packet.payload
    else:
        core.dropped_control += 1
    if sim.log.size:
        write(core, sim.log, DROPPED, i, packet.flow, packet.kind, packet.end, sim.ports[i].queued, 0.0)
    pool.free(core, sim.packets, k)


@inlined
def stamp(sim: Any, i: Any, k: Any) -> None:
    """Prepare a packet that a switch emits: leave the buffer, mark, and add telemetry of the queue left behind."""
    core, port, packet = sim.core[0], sim.ports[i], sim.packets[k]
    if packet.ingress < 0:
        return
    source = sim.ports[packet.ingress]
    if release(core, source, sim.nodes[source.peer], packet.queue, packet.wire):
        resume(sim, packet.ingress, packet.queue)
    if packet.kind != DATA:
        return
    if port.max_on >= 0:
        mark = ternary(core, sim.uniforms, port, packet.queue, packet.wire)
        if mark == CE:  # goes before UE
            packet.marks = 1
            packet.undetermined = 0
        elif mark == UE:
            packet.undetermined = 1 - packet.marks
        marked = mark == CE
    else:
        marked = port.on_departure and marks(core, sim.uniforms, port, seen(port, packet.queue))
        if marked:
            packet.marks = 1
    if marked and sim.log.size:
        write(core, sim.log, MARKED, i, packet.flow, packet.kind, packet.end, port.queues[packet.queue].bytes, 0.0)
    if packet.stamped and packet.hops < HOPS:
        at = packet.hops
        packet.telemetry[at, QLEN] = port.queued
        packet.telemetry[at, TX_BYTES] = port.came if packet.stamped == 2 else port.sent
        packet.telemetry[at, TS] = core.now
        packet.telemetry[at, PORT_ID] = i
        packet.telemetry[at, QLEN_CLASS] = port.queues[packet.queue].bytes
        packet.telemetry[at, TX_CLASS] = port.queues[packet.queue].sent
        packet.path ^= sim.nodes[port.node].switch_id
        packet.hops = at + 1


@kernel
def on_pfc_frame(sim: Any, k: Any, i: Any) -> None:
    """Obey a PAUSE or RESUME that came in by port ``i``: stop or start a class of the port towards its sender."""
    packet = sim.packets[k]
    back = sim.ports[i].reverse
    if sim.log.size:
        write(sim.core[0], sim.log, RECEIVED, i, -1, packet.kind, 0, 0, packet.marks)
    if packet.kind == PAUSE:
        sim.ports[back].pauses += 1
        stop(sim, back, packet.marks)
    elif not sim.ports[back].jammed:
        resume_queue(sim, back, packet.marks)
    pool.free(sim.core[0], sim.packets, k)


@kernel
def stop(sim: Any, i: Any, q: Any) -> None:
    """Stop a class of port ``i`` by flow control: if it is the first, the port is one hop further from the root."""
    core, port = sim.core[0], sim.ports[i]
    before = port.paused
    port.paused |= 1 << q
    if before != 0:
        return
    port.paused_since = core.now
    port.depth = 1
    for depth in range(1, DEPTHS - 1):
        if sim.nodes[port.peer].paused[depth] > 0:
            port.depth = depth + 1
    sim.nodes[port.node].paused[port.depth] += 1
    core.depths[port.depth] += 1
    core.stopped += port.rate
    core.stopped_max = max(core.stopped_max, core.stopped)


@kernel
def resume_queue(sim: Any, i: Any, q: Any) -> None:
    """Resume a class of port ``i`` that flow control has stopped."""
    core, port = sim.core[0], sim.ports[i]
    before = port.paused
    port.paused &= ~(1 << q)
    port.resumed[q] = core.now
    port.at_resume[q] = port.queues[q].bytes
    if before == 0 or port.paused != 0:
        return
    port.paused_for += core.now - port.paused_since
    port.paused_since = NEVER
    sim.nodes[port.node].paused[port.depth] -= 1
    core.stopped -= port.rate
