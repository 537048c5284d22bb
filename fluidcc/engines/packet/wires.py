"""Records of ports, their transmission times, and the order in which they serve their queues."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from fluidcc.engines.common.topology import Topology
from fluidcc.engines.packet import layout
from fluidcc.engines.packet.layout import NEVER, PS, QUEUES, records
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario

HEADERS = 0.25  # share of a link that trimmed headers have where others wait (UE 4.1)


def ports_of(topology: Topology) -> Any:
    """Records of all ports."""
    ports = records(layout.PORT, len(topology.ports))
    ports["queues"]["head"] = ports["queues"]["tail"] = -1
    columns = ("rate", "delay", "node", "peer", "reverse", "host", "link", "loss")
    index = {name: n for n, name in enumerate(topology.nodes)}
    told = [
        (
            port.rate,
            round(port.delay * PS),
            index[port.source],
            index[port.target],
            port.reverse,
            port.source in topology.hosts,
            port.link,
            port.loss,
        )
        for port in topology.ports
    ]
    for name, values in zip(columns, zip(*told, strict=True), strict=True):
        ports[name] = values
    ports["wire_head"] = ports["wire_tail"] = ports["turn"] = ports["max_on"] = -1
    ports["wake"] = ports["paused_since"] = NEVER
    ports["turns"] = ports["fresh"] = 1
    ports["kmin"] = ports["kmax"] = math.inf
    for row, port in zip(ports, topology.ports, strict=True):
        if port.marking is not None:
            row.kmin, row.kmax, row.pmax = port.marking.kmin, port.marking.kmax, port.marking.pmax
            row.counts_sending = port.marking.counts_sending
            row.in_cells, row.cell = port.marking.cell is not None, port.marking.cell or 0
            row.on_departure = port.marking.mark_on == "departure"
            row.max_on = -1 if port.marking.max_on is None else round(port.marking.max_on * PS)
    return ports


def ticks_of(scenario: Scenario, topology: Topology, ports: Any, largest: int) -> Any:
    """Transmission time [ps] of every size of packet at every rate; writes each port's row."""
    rates = sorted({port.rate for port in topology.ports})
    ticks = np.zeros((len(rates), largest + 1), np.int64)
    for r, rate in enumerate(rates):
        ticks[r] = _ticks(rate, largest, scenario.timing == "exact")
    ports["ticks"] = np.searchsorted(rates, [port.rate for port in topology.ports])
    return ticks


@functools.lru_cache(maxsize=64)  # a sweep asks for the same again and again, and fractions are slow
def _ticks(rate: float, largest: int, exact: bool) -> tuple[int, ...]:
    """Transmission time [ps] of every size of packet up to the largest."""
    per_byte = PS / Fraction(rate)
    return tuple(round(size * per_byte) if exact else _simulator_time(size, rate) for size in range(largest + 1))


def _simulator_time(size: int, rate: float) -> int:
    """Transmission time [ps] in the public simulator: seconds as a double, 64.64 fixed point, whole nanoseconds."""
    fixed = int(Fraction(size * 8.0 / (rate * 8.0)) * 2**64)
    return fixed * 10**9 // 2**64 * 1000


def weights_of(scenario: Scenario, largest: int) -> Any:
    """Priority and quantum [bytes] of each queue; a round serves at least one packet of each class.

    Raises
    ------
    InputError
        If there are more classes than queues.
    """
    if len(scenario.classes) > QUEUES - 1:
        raise InputError(f"classes: {len(scenario.classes)} are more than a port's {QUEUES - 1} queues")
    if scenario.loss_recovery == "trimming" and len(scenario.classes) == QUEUES - 1:
        raise InputError(f"classes: {QUEUES - 1} leave trimmed headers no queue; write {QUEUES - 2} at most")
    weights = np.zeros((QUEUES, 2))
    least = min(each.weight for each in scenario.classes)
    for q, each in enumerate(scenario.classes, 1):
        weights[q] = each.priority, each.weight / least * largest
    if scenario.loss_recovery == "trimming":  # headers go with the classes of the highest priority
        highest = max(each.priority for each in scenario.classes)
        beside = sum(quantum for priority, quantum in weights if priority == highest)
        weights[1 + len(scenario.classes)] = highest, beside * HEADERS / (1 - HEADERS)
    return weights
