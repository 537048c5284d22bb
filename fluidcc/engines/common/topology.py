"""From a scenario to ports, nodes and routes, sizes on the wire, and circles of buffers that wait for each other.

The scenario's links are egress ports of switches. Around them stand what it leaves implicit: the NIC of every
host, the other direction of every link, and the access links of receivers. ACKs take the reverse path.
"""

from __future__ import annotations

import dataclasses
import functools
import graphlib
import itertools
import math
from typing import Literal

from fluidcc.errors import InputError
from fluidcc.scenario.model import RED, Flow, Scenario, resolve
from fluidcc.scenario.routing import Path, ShortestPaths
from fluidcc.surface import public
from fluidcc.units import RATE, show

CONTROL_BYTES = 64  # of a PFC frame and a CNP


@dataclasses.dataclass
class Port:
    """Port that sends in one direction of a link."""

    source: str
    target: str
    rate: float  # bytes/s
    delay: float  # s
    link: int = -1  # of the scenario
    marking: RED | None = None
    reverse: int = -1
    loss: float = 0.0


@dataclasses.dataclass(frozen=True)
class Topology:
    """Ports, nodes, and the route of every flow of the scenario there and back."""

    ports: list[Port]
    nodes: list[str]
    hosts: frozenset[str]
    routes: list[tuple[int, ...]]
    forward: list[int]  # route of each flow
    backward: list[int]

    @functools.cached_property
    def _numbers(self) -> dict[tuple[int, ...], int]:
        return {way: number for number, way in enumerate(self.routes)}

    def route(self, way: tuple[int, ...]) -> int:
        """Return the number of a route, after adding it if it is new."""
        number = self._numbers.setdefault(way, len(self.routes))
        if number == len(self.routes):
            self.routes.append(way)
        return number

    def node(self, name: str) -> int:
        """Index of a node."""
        return self.nodes.index(name)


def single_flows(scenario: Scenario) -> Scenario:
    """The scenario with a flow for each of a class: independent senders, each on a host of its own.

    The fluid has no NIC that a class could share. A class between named hosts stands for as many such pairs.
    """
    ends = _ends(scenario)
    flows: list[Flow] = []
    for m, flow in enumerate(scenario.flows):
        if flow.multiplicity == 1 and flow.source and flow.target:
            flows.append(flow)
            continue
        last = ends[flow.path[-1]][1]
        source, target = host_names(flow, m, last)
        for k in range(round(flow.multiplicity)):
            own = f"\n{k}" if k else ""  # no user gives a host a name of two lines
            there = target if target == last else target + own
            flows.append(dataclasses.replace(flow, source=source + own, target=there))
    return dataclasses.replace(scenario, flows=tuple(flows))


def topology_of(scenario: Scenario) -> Topology:
    """Lay out a resolved scenario, each flow on the hosts that it names.

    Raises
    ------
    InputError
        If hosts, links and paths do not fit together.
    """
    return _Builder(scenario).build()


class _Builder:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.ends = _ends(scenario)
        self.ports = [
            Port(source, target, link.rate, link.delay, i, link.marking, loss=link.loss)
            for i, (link, (source, target)) in enumerate(zip(scenario.links, self.ends, strict=True))
        ]
        self.between: dict[tuple[str, str], list[int]] = {}
        for i, port in enumerate(self.ports):
            self.between.setdefault((port.source, port.target), []).append(i)
        self.hosts: set[str] = set()
        self.routes: dict[tuple[int, ...], int] = {}

    def build(self) -> Topology:
        flows = self.scenario.flows
        ways = []
        for f, flow in enumerate(flows):
            first, last = self.ends[flow.path[0]][0], self.ends[flow.path[-1]][1]
            source, target = host_names(flow, f, last)
            if source == target:
                raise InputError(f"flow {f} target: it is its own source {source!r}; give another host")
            nic = self._port(source, first, flow.line_rate, flow.access_delay, f)
            way = [nic, *flow.path]
            if last != target:
                way.append(self._port(last, target, flow.line_rate, flow.egress_delay, f))
            self.hosts |= {source, target}
            ways.append(tuple(way))
        starting = next((port for port in self.ports if port.link >= 0 and port.source in self.hosts), None)
        if starting is not None:
            raise InputError(
                f"link {starting.link} source: {starting.source!r} is a host; a host's own link is its flow's "
                "line_rate and access_delay, so start the path at the switch"
            )
        for i in range(len(self.ports)):
            self._pair(i)
        for port in self.ports:  # the other direction of a link, where that is no link itself
            if port.link < 0:
                port.loss = self.ports[port.reverse].loss
        forward = [self._route(way) for way in ways]
        backward = [self._route(tuple(self.ports[i].reverse for i in reversed(way))) for way in ways]
        nodes = list(dict.fromkeys(name for port in self.ports for name in (port.source, port.target)))
        return Topology(self.ports, nodes, frozenset(self.hosts), list(self.routes), forward, backward)

    def _port(self, source: str, target: str, rate: float, delay: float, f: int) -> int:
        """An access link, shared by the flows of a host."""
        found = self.between.get((source, target))
        if found is None:
            self.ports.append(Port(source, target, rate, delay))
            found = self.between[source, target] = [len(self.ports) - 1]
        port = self.ports[found[0]]
        if port.link < 0 and (port.rate != rate or port.delay != delay):
            raise InputError(
                f"flow {f} line_rate: {show(rate, RATE)} differs from that of another flow of host {source!r}; "
                "flows of one host share its NIC"
            )
        return found[0]

    def _pair(self, i: int) -> None:
        """Find or make the other direction of a port."""
        port = self.ports[i]
        if port.reverse >= 0:
            return
        for j in self.between.get((port.target, port.source), []):
            if self.ports[j].reverse < 0 and j != i:
                port.reverse, self.ports[j].reverse = j, i
                return
        self.ports.append(Port(port.target, port.source, port.rate, port.delay, reverse=i))
        port.reverse = len(self.ports) - 1

    def _route(self, way: tuple[int, ...]) -> int:
        return self.routes.setdefault(way, len(self.routes))


def host_names(flow: Flow, f: int, last: str) -> tuple[str, str]:
    """Names of a flow's hosts; unnamed receivers are the end of the last link, if nothing lies beyond it."""
    if flow.target:
        target = flow.target
    else:
        target = last if flow.egress_delay == 0 else f"receiver {f}"
    return flow.source or f"sender {f}", target


def _ends(scenario: Scenario) -> list[tuple[str, str]]:
    """Names of the nodes at both ends of every link, made up where the scenario gives none."""
    sources = [link.source or f"switch {i}" for i, link in enumerate(scenario.links)]
    onward: dict[int, str] = {}
    first: dict[tuple[int, ...], int] = {}  # of each path, a flow that takes it
    for f, flow in enumerate(scenario.flows):
        first.setdefault(flow.path, f)
    for path, f in first.items():
        for here, there in itertools.pairwise(path):
            target = scenario.links[here].target or onward.setdefault(here, sources[there])
            if target != sources[there]:
                raise InputError(
                    f"flow {f} path: link {here} leads to {target!r}, but link {there} starts at {sources[there]!r}; "
                    "give links that meet"
                )
    targets = [link.target or onward.get(i, f"end of link {i}") for i, link in enumerate(scenario.links)]
    for path, f in first.items():
        visited = [sources[path[0]], *(targets[i] for i in path)]
        if len(set(visited)) < len(visited):
            raise InputError(
                f"flow {f} path: it visits a switch twice ({', '.join(visited)}); give a path without loop"
            )
    return list(zip(sources, targets, strict=True))


def whole_bytes(value: float) -> int:
    """Round a size up, but for rounding."""
    return math.ceil(value - 1e-9)


def ack_size(scenario: Scenario, flow: Flow) -> int:
    """Return an ACK's bytes on the wire; the simulator pads it to 60."""
    size = whole_bytes(scenario.ack_bytes + flow.scheme.int_bytes)
    return max(size, 60) if scenario.timing == "ns3" else size


@public()
def buffer_cycle(scenario: Scenario, *, routes: Literal["used", "possible"] = "used") -> list[str] | None:
    """A circle of ports, each of which can be made to wait for the next; None if there is none.

    A port's queue that flow control has stopped fills the buffer of its switch, so that the ports that feed it are
    stopped in turn. Where flows lead from port to port back to the first, all may wait forever (ACC 2.1; Hu et al.,
    HotNets 2016). Without a circle, flow control cannot deadlock. With one, it can, if traffic fills all of its buffers
    at once.

    Parameters
    ----------
    scenario : Scenario
    routes : {"used", "possible"}
        Whether flows take the paths that they have, or any of the shortest ones between their first and last switch,
        as they might if ECMP hashed them otherwise. ACKs go back the same way, in the queue of their data
        unless ``ack_queue="control"``.

    Returns
    -------
    list of str or None
        Ports like ``L1->T2``, each feeding the next and the last the first.

    Raises
    ------
    InputError
        If ``routes`` is unknown, or the scenario makes no sense.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.fabrics.buffer_cycle(fc.fat_tree([(0, 319), (319, 0)])) is None
    True
    """
    if routes not in ("used", "possible"):
        raise InputError(f"routes: {str(routes)[:20]!r} is unknown; write used or possible")
    scenario = resolve(scenario)
    topology = topology_of(scenario)
    waits: dict[tuple[int, int], set[tuple[int, int]]] = {}
    shortest = ShortestPaths(scenario.links)
    found: dict[tuple[str, str], list[Path]] = {}
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for f, flow in enumerate(scenario.flows):
        way = topology.routes[topology.forward[f]]
        ways = [way]
        if routes == "possible":
            ends = topology.ports[way[1]].source, topology.ports[flow.path[-1]].target
            if ends not in found:
                found[ends] = shortest.between(*ends)
            ways += [(way[0], *path, *way[1 + len(flow.path) :]) for path in found[ends]]
        if scenario.ack_queue == "data":
            ways += [tuple(topology.ports[i].reverse for i in reversed(each)) for each in ways]
        queue = round(flow.traffic_class)
        if not scenario.classes[queue].lossless:
            continue  # nothing pauses it
        for each in ways:
            if (queue, each) not in seen:
                seen.add((queue, each))
                for here, there in itertools.pairwise(each):
                    waits.setdefault((here, queue), set()).add((there, queue))
    try:
        graphlib.TopologicalSorter(waits).prepare()
    except graphlib.CycleError as error:
        ring = error.args[1][:-1][::-1]  # the sorter lists each before the one that waits for it
        return [f"{topology.ports[i].source}->{topology.ports[i].target}" for i, _ in ring]
    return None
