"""Buffers of switches: what their ports share, and flow control's thresholds and headroom."""

from __future__ import annotations

import math
from typing import Any

from fluidcc.engines.common.topology import CONTROL_BYTES, Port, Topology
from fluidcc.engines.packet import layout
from fluidcc.engines.packet.layout import QUEUES, UNLIMITED, Sim, records
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
