"""A graph laid out on a fabric: connections between hosts, and which operation is a transfer of which.

For engines that take a flow for each transfer, a wait becomes a flow of a byte over a link that stands apart from the
fabric and takes no time to cross, so that every engine that knows flows which wait for others runs it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fluidcc.errors import InputError
from fluidcc.scenario.dependencies import SENT
from fluidcc.scenario.model import Scenario
from fluidcc.units import Rate
from fluidcc.workloads.collectives.graph import Graph
from fluidcc.workloads.fabrics.topology import Cable, Topology

MOST_FLOWS = 1 << 20
_APART = Rate(1e14)  # bytes/s of the link of waits: a byte is sent in no time that is counted
_APART_DELAY = 5e-9  # s, of Variable AI alone, which looks at the least bandwidth-delay product of all paths


@dataclasses.dataclass(frozen=True, eq=False)
class Laid:
    """A graph on a fabric.

    Parameters
    ----------
    graph : Graph
    topology : Topology
    hosts : sequence of int
        Of each rank.
    seed : int
        Of ECMP.
    options : dict
        Of `Topology.scenario`.
    connections : Scenario
        A flow for each connection, of no meaning but its path, hosts and scheme.
    connection : ndarray of int, shape (operations,)
        Which of them each operation is sent on; -1 of waits.
    """

    graph: Graph
    topology: Topology
    hosts: Sequence[int]
    seed: int
    options: dict[str, Any]
    connections: Scenario
    connection: np.ndarray

    @property
    def links(self) -> int:
        """Number of links of the fabric."""
        return len(self.connections.links)

    @cached_property
    def scenario(self) -> Scenario:
        """The same with a flow for each operation; its last two links are apart, for waits.

        Raises
        ------
        InputError
            If there are too many.
        """
        graph, topology = self.graph, self.topology
        if len(graph) > MOST_FLOWS:
            raise InputError(
                f"collective: has {len(graph):,} transfers and waits, and packets follow {MOST_FLOWS:,} at most; "
                "give fewer ranks, chunks or steps, or write engine='fluid'"
            )
        apart = max((*topology.hosts, *topology.switches)) + 1
        delay = _APART_DELAY if getattr(self.options.get("scheme"), "vai", False) else 0.0
        whole = Topology(
            (*topology.hosts, apart, apart + 1),
            (*topology.switches, apart + 2),
            (*topology.cables, *(Cable((end, apart + 2), _APART, delay) for end in (apart, apart + 1))),
        )
        rows: list[Any] = []
        keys: list[Any] = []
        columns = zip(
            graph.source.tolist(), graph.target.tolist(), graph.size.tolist(), graph.delay.tolist(),
            graph.channel.tolist(), strict=True,
        )  # fmt: skip
        for i, (source, target, size, delay, channel) in enumerate(columns):
            ends = (self.hosts[source], self.hosts[target]) if size > 0 else (apart, apart + 1)
            rows.append((*ends, delay, size or 1.0, tuple(graph.before(i)), SENT))
            keys.append((*ends, channel))
        return whole.scenario(rows, ecmp_seed=self.seed, connections=keys, **self.options)


def laid_out(graph: Graph, topology: Topology, hosts: Sequence[int], seed: int, options: dict[str, Any]) -> Laid:
    """Lay a graph out on a fabric.

    Parameters
    ----------
    graph : Graph
    topology : Topology
    hosts : sequence of int
        Of each rank.
    seed : int
        Of ECMP.
    options : dict
        Of `Topology.scenario`.

    Returns
    -------
    Laid

    Raises
    ------
    InputError
        If nothing crosses the fabric, or a value makes no sense.
    """
    sends = np.flatnonzero(graph.sends)
    if not len(sends):
        raise InputError("collective: nothing crosses the fabric; give more ranks than a server has")
    of = np.array(hosts)
    # Whichever job a connection is of: alone it takes the same paths.
    ends = of[graph.source[sends]], of[graph.target[sends]], graph.channel[sends].astype(np.int64)
    shape = tuple(int(each.max()) + 1 for each in ends)
    keys = (ends[0].astype(np.int64) * shape[1] + ends[1]) * shape[2] + ends[2]
    distinct, first, which = np.unique(keys, return_index=True, return_inverse=True)
    if len(distinct) > MOST_FLOWS:
        raise InputError(f"collective: has {len(distinct):,} connections, of {MOST_FLOWS:,} at most; give fewer ranks")
    order = np.argsort(first)  # as they come first in the graph
    place = np.empty(len(order), int)
    place[order] = np.arange(len(order))
    connection = np.full(len(graph), -1)
    connection[sends] = place[which.ravel()]
    rows = list(zip(*(each[first[order]].tolist() for each in ends), strict=True))
    scenario = topology.scenario(
        [(source, target, 0.0, 1.0) for source, target, _ in rows], ecmp_seed=seed, connections=rows, **options
    )
    return Laid(graph, topology, hosts, seed, options, scenario, connection)
