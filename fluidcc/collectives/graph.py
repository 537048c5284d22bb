"""What ranks do, and after what: sends over the fabric, and waits of their own, as flows that wait for each other.

A rank has received a transfer as its last byte arrives. Those of one connection follow each other as messages of a
queue pair do: each begins as the last byte of the one before leaves.

A wait takes no fabric: compute, a copy inside a server, or a join of what a rank has received. It becomes a flow of a
byte over a link that stands apart from the fabric and takes no time to cross, so that every engine that knows flows
which wait for others runs it, and its start says when all before it had ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidcc.errors import InputError
from fluidcc.fabrics.topology import Cable, Topology
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.order import SENT
from fluidcc.units import Rate

MOST_OPERATIONS = 1 << 20
APART = Rate(1e14)  # bytes/s of the link of waits: a byte is sent in no time that is counted
_APART_DELAY = 5e-9  # s, of Variable AI alone, which looks at the least bandwidth-delay product of all paths

After = Sequence[int]


class Graph:
    """Operations in an order in which all can be done: each after some before it.

    Ranks are numbered through all jobs. Lists over operations: ``source``, the rank that does it; ``target``, the rank
    that receives it, or the same of a wait; ``size`` [bytes], 0 of a wait; ``delay`` [s] after the last of ``after``;
    ``job``, ``iteration`` and ``step`` of it, -1 of what is no transfer; ``channel``, which connection between two
    ranks a send is of.
    """

    def __init__(self) -> None:
        self.source: list[int] = []
        self.target: list[int] = []
        self.size: list[float] = []
        self.delay: list[float] = []
        self.after: list[After] = []
        self.job: list[int] = []
        self.iteration: list[int] = []
        self.step: list[int] = []
        self.channel: list[int] = []
        self.now: tuple[int, int] = 0, 0  # job and iteration of what is added
        self._last: dict[tuple[int, int, int], int] = {}  # transfer of each connection
        self._copied: dict[int, int] = {}  # copy of each rank inside its server

    def __len__(self) -> int:
        """How many operations there are."""
        return len(self.source)

    def send(
        self,
        source: int,
        target: int,
        size: float,
        after: After = (),
        step: int = 0,
        channel: int = 0,
        *,
        in_order: bool = True,
    ) -> int:
        """Add a transfer over the fabric, behind the last of its connection if they are in order; its place."""
        connection = source, target, channel
        if in_order and connection in self._last:
            after = [*after, self._last[connection]]
        self._last[connection] = self._add(source, target, max(1.0, round(size)), 0.0, after, step, channel)
        return self._last[connection]

    def wait(self, rank: int, delay: float, after: After = ()) -> int:
        """Add a time that passes in a rank; its place."""
        return self._add(rank, rank, 0.0, delay, after, -1, 0)

    def copy(self, source: int, target: int, delay: float, after: After = (), step: int = 0) -> int:
        """Add a copy inside a server that takes so long, behind the last that its rank has sent there; its place."""
        if source in self._copied:
            after = [*after, self._copied[source]]
        self._copied[source] = self._add(source, target, 0.0, delay, tuple(dict.fromkeys(after)), step, 0)
        return self._copied[source]

    def _add(self, source: int, target: int, size: float, delay: float, after: After, step: int, channel: int) -> int:
        place = len(self.source)
        if place >= MOST_OPERATIONS:
            raise InputError(
                f"collective: has more than {MOST_OPERATIONS:,} transfers; give fewer ranks, chunks or steps"
            )
        self.source.append(source)
        self.target.append(target)
        self.size.append(size)
        self.delay.append(delay)
        self.after.append(after)
        self.job.append(self.now[0])
        self.iteration.append(self.now[1])
        self.step.append(step)
        self.channel.append(channel)
        return place

    def behind(self, i: int, k: int) -> bool:
        """Whether an operation waits for the departure of another's last byte, not its arrival: both from one end."""
        apart = self.size[k] == 0  # all waits are of one flow's ends
        return apart == (self.size[i] == 0) and (apart or self.source[i] == self.source[k])

    def longest(self, left: np.ndarray, arrived: np.ndarray) -> float:
        """Length [s] of the longest chain, of how long after their begin operations leave and arrive (operations,)."""
        begins = np.zeros(len(self))
        for i, before in enumerate(self.after):
            released = (begins[k] + (left[k] if self.behind(i, k) else arrived[k]) for k in before)
            begins[i] = self.delay[i] + max(released, default=0.0)
        return float((begins + arrived).max(initial=0.0))

    def critical(self, began: np.ndarray, left: np.ndarray, arrived: np.ndarray) -> list[int]:
        """The chain behind the wait that began last: of what each had waited for, what released it last."""
        at = int(np.argmax(np.where(np.array(self.size) > 0, 0.0, began)))
        chain = [at]
        while self.after[at]:
            at = max(self.after[at], key=lambda k: left[k] if self.behind(at, k) else arrived[k])
            chain.append(at)
        return chain[::-1]


@dataclasses.dataclass(frozen=True)
class Laid:
    """A graph as a scenario, a flow for each operation.

    Parameters
    ----------
    graph : Graph
    scenario : Scenario
        Of `fabric`, and of a link apart.
    links : int
        How many of the scenario's links are the fabric's; the last two are apart, for waits.
    """

    graph: Graph
    scenario: Scenario
    links: int


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
    if not any(size > 0 for size in graph.size):
        raise InputError("collective: nothing crosses the fabric; give more ranks than a server has")
    apart = max((*topology.hosts, *topology.switches)) + 1
    rows, connections = _rows(graph, hosts, (apart, apart + 1))
    delay = _APART_DELAY if getattr(options.get("scheme"), "vai", False) else 0.0
    whole = Topology(
        (*topology.hosts, apart, apart + 1),
        (*topology.switches, apart + 2),
        (*topology.cables, *(Cable((end, apart + 2), APART, delay) for end in (apart, apart + 1))),
    )
    scenario = whole.scenario(rows, ecmp_seed=seed, connections=connections, **options)
    return Laid(graph, scenario, len(scenario.links) - 2)


def _rows(graph: Graph, hosts: Sequence[int], apart: tuple[int, int]) -> tuple[list[Any], list[Any]]:
    """Rows of `Topology.scenario`, and their connections."""
    rows: list[Any] = []
    connections: list[Any] = []
    for source, target, size, delay, after, channel in zip(
        graph.source, graph.target, graph.size, graph.delay, graph.after, graph.channel, strict=True
    ):
        ends = (hosts[source], hosts[target]) if size > 0 else apart
        rows.append((*ends, delay, size or 1.0, tuple(after), SENT))
        connections.append((*ends, channel))  # whichever job it is of: alone it takes the same paths
    return rows, connections


def ended(graph: Graph, began: np.ndarray, finished: np.ndarray) -> np.ndarray:
    """Ends of operations [s], of the flows that they are: a wait's as it began, which is after its delay."""
    return np.where(np.array(graph.size) > 0, finished, began)
