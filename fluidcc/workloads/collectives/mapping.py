"""Mapping of jobs to a fabric: ranks to hosts, transfers to connections between hosts.

Ranks go to hosts in order, rack by rack, at random, or as listed. For engines that take a flow for each transfer, a
wait becomes a flow of a byte over a link that stands apart from the fabric and takes no time to cross, so that every
engine that knows flows which wait for others runs it.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fluidcc.errors import InputError
from fluidcc.scenario.dependencies import SENT
from fluidcc.scenario.model import Scenario
from fluidcc.surface import public
from fluidcc.units import Rate, whole
from fluidcc.workloads.collectives.graph import Graph
from fluidcc.workloads.collectives.jobs import Job, Replay, is_list
from fluidcc.workloads.fabrics.topology import Cable, Topology

MOST_FLOWS = 1 << 20
_APART = Rate(1e14)  # bytes/s of the link of waits: a byte is sent in no time that is counted
_APART_DELAY = 5e-9  # s, of Variable AI alone, which looks at the least bandwidth-delay product of all paths
PLACEMENTS = ("block", "round-robin", "random")


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


class NoRoomError(InputError):
    """A job has no hosts; its place tells a file's reader the line."""

    def __init__(self, message: str, job: int) -> None:
        super().__init__(message)
        self.job = job


@public()
def placed(
    jobs: Sequence[Job | Replay], topology: Topology, placement: Any = "block", seed: int = 0
) -> list[list[int]]:
    """Hosts of every job's ranks.

    Parameters
    ----------
    jobs : sequence of Job or Replay
    topology : Topology
    placement : {"block", "round-robin", "random"} or sequence of int
        Hosts in order, one of each rack in turn, at random by the seed, or as listed; jobs take them one after the
        other. Jobs whose ranks are listed have theirs.
    seed : int

    Returns
    -------
    list of list of int

    Raises
    ------
    InputError
        If there are too few, or no such hosts.
    """
    given = {host: j for j, job in enumerate(jobs) if isinstance(job.ranks, tuple) for host in job.ranks}
    known = set(topology.hosts)
    alien = next((host for host in sorted(given) if host not in known), None)
    if alien is not None:
        raise NoRoomError(f"ranks: there is no host {alien}; the topology has {len(known)}", given[alien])
    order = [host for host in _order(topology, placement, seed) if host not in given]
    found: list[list[int]] = []
    taken, last = 0, 0
    for j, job in enumerate(jobs):
        if isinstance(job.ranks, tuple):
            found.append(list(job.ranks))
            continue
        found.append(order[taken : taken + job.count])
        if taken <= len(order):
            last = j
        taken += job.count
    if taken > len(order):
        raise NoRoomError(
            f"ranks: {taken} need as many hosts, and there are {len(order)}; give fewer, or a larger topology", last
        )
    return found


def _order(topology: Topology, placement: Any, seed: int) -> list[int]:
    hosts = list(topology.hosts)
    if not isinstance(placement, str):
        if not is_list(placement):
            raise InputError(
                f"placement: {repr(placement)[:40]} is none; write one of {', '.join(PLACEMENTS)}, or hosts"
            )
        listed = [whole(each, 0, 1 << 30, "placement") for each in placement]
        alien = next((host for host in listed if host not in set(hosts)), None)
        if alien is not None or len(set(listed)) < len(listed):
            why = "a host is there twice" if alien is None else f"there is no host {alien}"
            raise InputError(f"placement: {why}; name hosts of the topology, each once")
        return listed
    if placement not in PLACEMENTS:
        raise InputError(f"placement: {placement[:40]!r} is unknown; write one of {', '.join(PLACEMENTS)}, or hosts")
    if placement == "random":
        return [hosts[k] for k in np.random.default_rng(seed).permutation(len(hosts))]
    if placement == "block":
        return hosts
    racks: dict[int, list[int]] = defaultdict(list)
    above = {end: other for cable in topology.cables for end, other in (cable.ends, cable.ends[::-1])}
    for host in hosts:
        racks[above[host]].append(host)
    longest = max(map(len, racks.values()))
    return [rack[k] for k in range(longest) for rack in racks.values() if k < len(rack)]
