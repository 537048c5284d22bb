"""Buffers of a lossless network that can wait for each other in a circle: the condition for a deadlock.

A port's queue that flow control has stopped fills the buffer of its switch, so that the ports that feed it are stopped
in turn. Where flows lead from port to port back to the first, all may wait forever (ACC 2.1; Hu et al., HotNets 2016).
"""

from __future__ import annotations

import graphlib
import itertools
from typing import Literal

from fluidcc.engines.common.topology import topology_of
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.scenario.routing import Path, ShortestPaths
from fluidcc.surface import public


@public()
def buffer_cycle(scenario: Scenario, *, routes: Literal["used", "possible"] = "used") -> list[str] | None:
    """A circle of ports, each of which can be made to wait for the next; None if there is none.

    Without one, flow control cannot deadlock. With one, it can, if traffic fills all of its buffers at once.

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
