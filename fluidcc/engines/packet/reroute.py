"""Paths after link failures."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.packet.network import Topology, host_names
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.routing import route


def reroutes(scenario: Scenario, topology: Topology, failures: Any, rerouted: Any) -> bool:
    """Fill the tables of failing ports and of the routes that flows take afterwards; whether routes were added.

    A flow whose path holds keeps it; any other takes one of the shortest paths that are left, chosen by its hash.

    Raises
    ------
    InputError
        If a flow has no path left.
    """
    names = [link.name or f"link {i}" for i, link in enumerate(scenario.links)]
    lost: set[int] = set()
    forward, backward = list(topology.forward), list(topology.backward)
    known = {way: r for r, way in enumerate(topology.routes)}
    before = len(topology.routes)
    order = sorted(range(len(scenario.failures)), key=lambda i: scenario.failures[i].at)
    for i in order:
        down = names.index(scenario.failures[i].link)
        failures[i].port, failures[i].reverse = down, topology.ports[down].reverse
        lost |= {int(failures[i].port), int(failures[i].reverse)}
        for m, flow in enumerate(scenario.flows):
            way = topology.routes[forward[m]]
            if not lost & {*way, *topology.routes[backward[m]]}:
                continue
            first, last = topology.ports[way[1]].source, topology.ports[way[len(flow.path)]].target
            source, target = host_names(flow, m, last)
            out = {p for p in lost if p < len(scenario.links)}
            path = route(scenario.links, first, last, (source, target, m), name=f"flow {m}", without=out)
            new = (way[0], *path, *way[1 + len(flow.path) :])
            back = tuple(topology.ports[p].reverse for p in reversed(new))
            for table, made in ((forward, new), (backward, back)):
                if made not in known:
                    known[made] = len(topology.routes)
                    topology.routes.append(made)
                table[m] = known[made]
        rerouted[i, :, 0], rerouted[i, :, 1] = forward, backward
    return len(topology.routes) > before
