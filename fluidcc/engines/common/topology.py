"""From a scenario to ports, nodes and routes.

The scenario's links are egress ports of switches. Around them stand what it leaves implicit: the NIC of every
host, the other direction of every link, and the access links of receivers. ACKs take the reverse path.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools

from fluidcc.errors import InputError
from fluidcc.scenario.model import RED, Flow, Scenario
from fluidcc.units import RATE, show


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
