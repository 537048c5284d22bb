"""Paths of packets: several of one flow, which there are and the choice of one, and those after link failures.

A sender draws a path for each packet, or for each flowlet: a train with no gap longer than `Scenario.flowlet_gap`
before it. ECMP's path is kept until the first such gap. All shortest paths between a flow's ends are equally likely.
ACKs go one way back, that of ECMP.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.common.topology import Topology, host_names
from fluidcc.engines.packet.layout import BY_FLOW, BY_FLOWLET, BY_PACKET
from fluidcc.engines.packet.recovery import note_order
from fluidcc.scenario.model import Flow, Scenario
from fluidcc.scenario.routing import Path, ShortestPaths, route

MODES = {"flow": BY_FLOW, "packet": BY_PACKET, "flowlet": BY_FLOWLET}


@kernel
def choose(core: Any, uniforms: Any, lists: Any, flow: Any) -> None:
    """Choose the route of a flow's next packet."""
    if flow.paths > 1 and (core.spraying == BY_PACKET or core.now - flow.last > core.flowlet_gap):
        draw = uniforms[core.drawn]
        core.drawn += 1
        flow.route = lists[flow.first_path + int(draw * flow.paths)]


@kernel
def take(flow: Any, packet: Any) -> None:
    """Count data at a receiver that takes it in any order; what is missing is on its way."""
    note_order(flow, packet)
    flow.received += packet.payload
    flow.received_end = flow.received
    flow.received_wire += packet.wire


class Spray:
    """Paths of all flows, in one list of routes; flows with the same ones share them.

    Parameters
    ----------
    scenario : Scenario
        Resolved, of single flows.
    topology : Topology
        Whose routes grow.
    first : int
        Place of the list's begin.
    """

    def __init__(self, scenario: Scenario, topology: Topology, first: int) -> None:
        self.scenario, self.topology, self.first = scenario, topology, first
        self.routes: list[int] = []
        self._first: dict[tuple[int, ...], int] = {}
        self._shortest: dict[frozenset[int], ShortestPaths] = {}
        self._between: dict[Any, list[Path]] = {}

    def over(
        self, flow: Flow, way: tuple[int, ...], present: tuple[int, ...], without: Collection[int] = ()
    ) -> tuple[int, int]:
        """Return the place in the list of a flow's first path, and how many it has.

        Parameters
        ----------
        flow : Flow
        way : tuple of int
            Ports of its own path of links, and those beside it.
        present : tuple of int
            Where ECMP sends it now: its only path, if its ends have no names that lead to others.
        without : collection of int
            Links not to use.
        """
        ports, path = self.topology.ports, flow.path
        # What leads from the last switch to the host is the same for all.
        tail = path[-1:] if ports[path[-1]].target in self.topology.hosts and path[-1] not in without else ()
        ends = ports[path[0]].source, ports[tail[0]].source if tail else ports[path[-1]].target
        left_out = frozenset(without)
        key = (*ends, left_out)
        if key not in self._between:
            if left_out not in self._shortest:
                self._shortest[left_out] = ShortestPaths(self.scenario.links, left_out)
            self._between[key] = self._shortest[left_out].between(*ends) if ends[0] != ends[1] else [()]
        beyond = way[1 + len(path) :]
        found = [(way[0], *each, *tail, *beyond) for each in self._between[key]] or [present]
        numbers = tuple(map(self.topology.route, found))
        if numbers not in self._first:
            self._first[numbers] = self.first + len(self.routes)
            self.routes += numbers
        return self._first[numbers], len(numbers)


def reroutes(scenario: Scenario, topology: Topology, spray: Spray | None, sim: Any) -> None:
    """Fill the table of the routes that flows take after each failure.

    A flow whose path holds keeps it; any other takes one of the shortest paths that are left, chosen by its hash. Those
    whose packets take several paths take what is left of these.

    Raises
    ------
    InputError
        If a flow has no path left.
    """
    names = [link.name or f"link {i}" for i, link in enumerate(scenario.links)]
    lost: set[int] = set()
    forward, backward = list(topology.forward), list(topology.backward)
    spread = np.stack([sim.flows["first_path"], sim.flows["paths"]], axis=1)
    order = sorted(range(len(scenario.failures)), key=lambda i: scenario.failures[i].at)
    for i in order:
        down = names.index(scenario.failures[i].link)
        lost |= {down, topology.ports[down].reverse}
        out = {p for p in lost if p < len(scenario.links)}
        for m, flow in enumerate(scenario.flows):
            way = topology.routes[topology.forward[m]]
            if lost & {*topology.routes[forward[m]], *topology.routes[backward[m]]}:
                first, last = topology.ports[flow.path[0]].source, topology.ports[flow.path[-1]].target
                key = (*host_names(flow, m, last), m)
                path = route(scenario.links, first, last, key, name=f"flow {m}", without=out)
                new = (way[0], *path, *way[1 + len(flow.path) :])
                forward[m] = topology.route(new)
                backward[m] = topology.route(tuple(topology.ports[p].reverse for p in reversed(new)))
            if spray is not None:
                spread[m] = spray.over(flow, way, topology.routes[forward[m]], out)
        sim.rerouted[i, :, 0], sim.rerouted[i, :, 1], sim.rerouted[i, :, 2:] = forward, backward, spread
