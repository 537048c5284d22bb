"""Paths after link failures."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.topology import Topology, host_names
from fluidcc.engines.packet.spraying import Spray
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.routing import route


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
