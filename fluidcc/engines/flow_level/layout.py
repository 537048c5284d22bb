"""A scenario in numbers: ports, the paths over them there and back, and what a transfer takes alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc.engines.common.topology import Topology, single_flows, topology_of
from fluidcc.engines.flow_level.transfers import Transfers
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario, base_rtt, refuse_losses
from fluidcc.scenario.round_trips import likeness, serialisation_rtt, train
from fluidcc.scenario.routing import refuse_spraying


class Ports(NamedTuple):
    """Ports of NICs and switches, one for each direction of each cable."""

    rate: np.ndarray  # [bytes/s]
    host: np.ndarray  # whether it is a NIC
    names: list[str]


class Paths(NamedTuple):
    """Ports that each flow of the scenario crosses, one after the other; -1 beyond the end."""

    there: np.ndarray  # (flows, hops)
    back: np.ndarray  # (flows, hops), of its ACKs
    hops: np.ndarray  # (flows,)
    packet: np.ndarray  # (flows,) on the wire [bytes]
    overhead: np.ndarray  # (flows,) of a packet [bytes]
    ack_share: np.ndarray  # (flows,) bytes of ACKs for each byte of data on the wire
    rtt: np.ndarray  # (flows,) of packets on an empty path, with serialisation; no fixed feedback_delay is read [s]
    kind: np.ndarray  # (flows,) number of the paths that are alike
    first: np.ndarray  # (kinds,) a flow of each kind


class Alone(NamedTuple):
    """Bytes of each transfer, and its times in an idle network."""

    wire: np.ndarray  # bytes on the wire
    received: np.ndarray  # from the start until its last byte has arrived, in an idle network [s]
    answered: np.ndarray  # until its ACK has [s]


def layout_of(scenario: Scenario) -> tuple[Topology, Ports, Paths]:
    """Ports and paths of a resolved scenario.

    Raises
    ------
    InputError
        If it has what flows without packets leave out.
    """
    refuse(scenario)
    topology = topology_of(single_flows(scenario))
    hosts = topology.hosts
    ports = Ports(
        np.array([port.rate for port in topology.ports]),
        np.array([port.source in hosts for port in topology.ports]),
        [f"{port.source}->{port.target}" for port in topology.ports],
    )
    flows = scenario.flows
    key = likeness(scenario)
    kinds: dict[Any, int] = {}
    kind = np.array([kinds.setdefault(key(flow), len(kinds)) for flow in flows])
    first = np.unique(kind, return_index=True)[1]
    packet = np.array([float(scenario.wire_packet_of(flows[i])) for i in first])
    ack = np.array([float(scenario.ack_bytes) + float(flows[i].scheme.int_bytes) for i in first])
    rtt = np.array([float(base_rtt(scenario, flows[i]) + serialisation_rtt(scenario, flows[i])) for i in first])
    there = _table([topology.routes[number] for number in topology.forward])
    return (
        topology,
        ports,
        Paths(
            there,
            _table([topology.routes[number] for number in topology.backward]),
            (there >= 0).sum(axis=1),
            packet[kind],
            (packet - float(scenario.packet_size))[kind],
            (ack / packet / float(scenario.ack_interval))[kind],
            rtt[kind],
            kind,
            first,
        ),
    )


def alone_of(scenario: Scenario, paths: Paths, transfers: Transfers) -> Alone:
    """Compute the bytes of each transfer, and its times in an idle network; paths that are alike share the work."""
    sizes, kind = transfers.size, paths.kind[transfers.flow]
    received, answered = np.empty_like(sizes), np.empty_like(sizes)
    for k, first in enumerate(paths.first):
        mine = np.flatnonzero((kind == k) & (transfers.flow >= 0))
        if not len(mine):
            continue
        distinct, which = np.unique(sizes[mine], return_inverse=True)
        there, both = train(scenario, scenario.flows[first], distinct)
        received[mine], answered[mine] = there[which], both[which]
    waits = transfers.flow < 0
    received[waits] = answered[waits] = 0.0
    packets = np.where(waits, 0.0, np.ceil(sizes / float(scenario.packet_size)))
    return Alone(sizes + packets * paths.overhead[transfers.flow], received, answered)


def refuse(scenario: Scenario) -> None:
    """Refuse what flows without packets leave out.

    Raises
    ------
    InputError
        That names it.
    """
    name = "flow-level"
    refuse_losses(scenario, name)
    refuse_spraying(scenario, name)
    for what in ("failures", "storms"):
        if getattr(scenario, what):
            raise InputError(f"{what}: the {name} engine's ports stand; leave them out, or write engine='packet'")
    if len(scenario.classes) > 1:
        raise InputError(f"classes: the {name} engine has one queue at a port; write one, or engine='packet'")
    if scenario.ack_queue != "data":
        raise InputError(f"ack_queue: ACKs of the {name} engine share the data's queue; write 'data'")
    if scenario.timing != "exact":
        raise InputError(f"timing: the {name} engine's is exact; write timing='exact', or engine='packet'")
    for i, flow in enumerate(scenario.flows):
        if flow.multiplicity != 1:
            raise InputError(f"flow {i} multiplicity: flows of the {name} engine are single; write 1")


def _table(ways: list[tuple[int, ...]]) -> np.ndarray:
    longest = max(map(len, ways))
    return np.array([[*way, *[-1] * (longest - len(way))] for way in ways], np.int32)
