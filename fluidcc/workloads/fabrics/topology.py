"""A fabric as nodes and cables, whatever its shape, and the scenario of flows that ECMP routes over it."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fluidcc.builders.common import NETWORK, Marking, assembled, chosen, flow_row, marking_of
from fluidcc.errors import InputError
from fluidcc.scenario.frames import IN_BUFFER, payloads, wire_share
from fluidcc.scenario.model import Flow, Link, Scenario
from fluidcc.scenario.routing import ShortestPaths, ecmp
from fluidcc.surface import constructor, public
from fluidcc.units import RATE, RATIO, TIME, Rate, quantity

_FASTEST = 1.25e14  # bytes/s: a petabit each second, beyond which bytes under way are more than can be counted


@constructor()
@dataclasses.dataclass(frozen=True)
class Cable:
    """Two nodes, and what is between them: the same both ways.

    Parameters
    ----------
    ends : tuple of int
        Two nodes.
    rate : quantity
        [bytes/s].
    delay : quantity
        One way [s].
    loss : quantity
        Probability that a packet is lost on it [1], each way.

    Raises
    ------
    InputError
        If a value cannot be read, the rate is not above 0, or the delay below it.
    """

    ends: tuple[int, int]
    rate: Any
    delay: Any
    loss: Any = 0.0

    def __post_init__(self) -> None:
        """Read with units."""
        object.__setattr__(self, "rate", quantity(self.rate, RATE, "cable rate"))
        object.__setattr__(self, "delay", quantity(self.delay, TIME, "cable delay"))
        object.__setattr__(self, "loss", quantity(self.loss, RATIO, "cable loss"))
        if not 0 < self.rate <= _FASTEST or not 0 <= self.delay < math.inf:
            raise InputError(
                f"cable {self.ends[0]} to {self.ends[1]}: rate or delay is none, or too large; write 100Gbps and 1us"
            )


@constructor()
@dataclasses.dataclass(frozen=True, repr=False)
class Topology:
    """Hosts, switches and cables.

    Parameters
    ----------
    hosts, switches : tuple of int
        Numbers of the nodes.
    cables : tuple of Cable
        Each host has one, to a switch. Several between two switches are paths of their own.
    words : tuple of str
        What is not as in the file that it was read from.

    Raises
    ------
    InputError
        If a cable names no node, or a host has not one cable to a switch.
    """

    hosts: tuple[int, ...]
    switches: tuple[int, ...]
    cables: tuple[Cable, ...]
    words: tuple[str, ...] = dataclasses.field(default=(), compare=False)

    def __post_init__(self) -> None:
        """Check that flows can start and end at the hosts."""
        hosts, switches = set(self.hosts), set(self.switches)
        twice = [node for node, count in Counter([*self.hosts, *self.switches]).items() if count > 1]
        if twice:
            raise InputError(f"topology: node {twice[0]} is there twice; give each node one number")
        plugged: Counter[int] = Counter()
        for cable in self.cables:
            for end in cable.ends:
                if end not in hosts and end not in switches:
                    raise InputError(f"topology: a cable leads to node {end}, which is none; give it among the nodes")
            if not switches.intersection(cable.ends):
                a, b = cable.ends
                raise InputError(f"topology: hosts {a} and {b} are linked with each other; put a switch between them")
            plugged.update(hosts.intersection(cable.ends))
        wrong = next((host for host in self.hosts if plugged[host] != 1), None)
        if wrong is not None:
            raise InputError(f"topology: host {wrong} has {plugged[wrong]} cables; give it one, to a switch")

    def __repr__(self) -> str:
        """Show the numbers of hosts, switches and cables."""
        return f"<Topology {len(self.hosts)} hosts, {len(self.switches)} switches, {len(self.cables)} cables>"

    @property
    def host_rate(self) -> Rate:
        """Mean rate of the hosts' cables [bytes/s]."""
        hosts = set(self.hosts)
        rates = [cable.rate for cable in self.cables if hosts.intersection(cable.ends)]
        return Rate(sum(rates) / len(rates))

    @property
    def tiers(self) -> dict[int, int]:
        """Number of cables between each switch and the nearest host: 1 for a ToR, 2 for an Agg, ..."""
        next_to: dict[int, list[int]] = defaultdict(list)
        for a, b in (cable.ends for cable in self.cables):
            next_to[a].append(b)
            next_to[b].append(a)
        found = dict.fromkeys(self.hosts, 0)
        reached = list(self.hosts)
        for node in reached:
            for other in next_to[node]:
                if other not in found:
                    found[other] = found[node] + 1
                    reached.append(other)
        return {switch: found[switch] for switch in self.switches if switch in found}

    @property
    def places(self) -> set[tuple[int, float]]:
        """Places and rates [bytes/s] of links: 0 to a host, else the tier of the switch where it begins."""
        tiers, hosts = self.tiers, set(self.hosts)
        found = set()
        for cable in self.cables:
            for a, b in (cable.ends, cable.ends[::-1]):
                if a not in hosts:
                    found.add((0 if b in hosts else tiers.get(a, 1), float(cable.rate)))
        return found

    @public(passes_on=NETWORK)
    def scenario(
        self,
        flows: Iterable[Sequence[Any]],
        *,
        scheme: Any = None,
        preset: str | None = None,
        marking: Marking | list[Marking] = None,
        payload: Any = None,
        ecmp_seed: int = 0,
        connections: Sequence[Any] | None = None,
        **network: Any,
    ) -> Scenario:
        """Flows between hosts, each on one of the shortest paths.

        Links between switches are named like ``320->340``, the second between the same switches ``320->340#2``, and a
        switch's port to a host ``320->7``. A host's own port
        is its flows' ``line_rate`` and ``access_delay``.

        Parameters
        ----------
        flows : iterable of (source, target[, start[, size[, after[, after_what]]]])
            Numbers of hosts, start [s] and payload [bytes]; at once and long-lived if not given. An array of these
            columns, as `read_flows` and `poisson_flows` have them, will do. What a flow waits for is as of `Flow`.
        scheme, preset
            As in `incast`.
        marking : RED, callable, or a list of these
            Marking of every link, or a function of a link's rate; of a list, the first for links to hosts, the next
            for ToRs' other links, then for those of the tier above, ..., and the last for all further. The scheme's own
            default if not given.
        payload : quantity
            Of RoCEv2 packets, with their headers and the gaps between them (`fluidcc.scenario.frames`) [bytes]; by
            default packets are as ``packet_size`` and ``header_bytes`` say, without gaps.
        ecmp_seed : int
            Selects another outcome of ECMP, which hashes seed, hosts and the flow's index. A flow that waits for one
            between the same hosts takes its path, as the next transfer of a connection does.
        connections : sequence, optional
            For each flow the connection that it is a transfer of: those of one, between the same hosts, take one path,
            whatever they wait for.
        **network
            Fields of `Scenario`.

        Returns
        -------
        Scenario

        Raises
        ------
        InputError
            If a flow names no host or its own, no path leads there, or a value cannot be read.
        """
        switches, hosts = set(self.switches), set(self.hosts)
        by_tier = marking if isinstance(marking, list) else []
        for_all = None if isinstance(marking, list) else marking
        scheme, for_all, network = chosen(scheme, preset, for_all, None, network)
        tiers = self.tiers if by_tier else {}
        share = 1.0
        if payload is not None:
            payload = payloads(None, payload)[0]
            share = wire_share(payload)
            network = {**network, "packet_size": payload, "header_bytes": float(IN_BUFFER)}

        def link(cable: Cable, a: int, b: int, name: str) -> Link:
            place = 0 if b in hosts else tiers.get(a, 1)
            rule = by_tier[min(place, len(by_tier) - 1)] if by_tier else for_all
            marks = marking_of(rule, scheme, cable.rate)
            return Link(
                cable.rate * share, cable.delay, marks, name=name, source=str(a), target=str(b), loss=cable.loss
            )

        between, access, down = [], {}, {}
        for cable, names in zip(self.cables, link_names(self.cables), strict=True):
            for (a, b), name in zip((cable.ends, cable.ends[::-1]), names, strict=True):
                if a in switches and b in switches:
                    between.append(link(cable, a, b, name))
                elif a in hosts:
                    access[a] = cable, b
        links = list(between)
        for host, (cable, switch) in access.items():
            down[host] = len(links)
            links.append(link(cable, switch, host, f"{switch}->{host}"))
        shortest = ShortestPaths(between)
        paths: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        which = f"the topology's hosts are {_listed(self.hosts)}"
        made: list[Flow] = []
        connection: list[Any] = []  # first of the flows whose path each takes
        for i, row in enumerate(flows.tolist() if isinstance(flows, np.ndarray) else flows):
            source, target, fields = flow_row(row, i, hosts, which)
            connection.append(i if connections is None else connections[i])
            before = fields.get("after") or ()
            if connections is None and isinstance(before, (tuple, list)) and len(before) == 1 and before[0] in range(i):
                last = made[before[0]]
                if (last.source, last.target) == (str(source), str(target)):
                    connection[i] = connection[before[0]]
            cable, first = access[source]
            ends = first, access[target][1]
            if ends not in paths:
                paths[ends] = shortest.between(str(first), str(ends[1])) if first != ends[1] else [()]
            if not paths[ends]:
                raise InputError(f"flow {i}: no path leads from host {source} to {target}; add cables between switches")
            made.append(
                Flow(
                    path=(*ecmp(paths[ends], (ecmp_seed, source, target, connection[i])), down[target]),
                    scheme=scheme,
                    line_rate=Rate(cable.rate * share),
                    access_delay=cable.delay,
                    name=f"flow {i}",
                    source=str(source),
                    target=str(target),
                    **fields,
                )
            )
        return assembled(links, made, network)


def link_names(cables: Iterable[Cable]) -> list[tuple[str, str]]:
    """Name each cable's links, there and back: of several between two nodes the second has ``#2`` behind its name."""
    count: Counter[frozenset[int]] = Counter()
    found = []
    for a, b in (cable.ends for cable in cables):
        count[frozenset((a, b))] += 1
        ending = "" if count[frozenset((a, b))] == 1 else f"#{count[frozenset((a, b))]}"
        found.append((f"{a}->{b}{ending}", f"{b}->{a}{ending}"))
    return found


def _listed(hosts: Sequence[int]) -> str:
    """Describe which numbers there are, in a few words."""
    if len(hosts) > 1 and list(hosts) == list(range(hosts[0], hosts[-1] + 1)):
        return f"{hosts[0]} to {hosts[-1]}"
    shown = ", ".join(map(str, hosts[:8]))
    return shown if len(hosts) <= 8 else f"{shown} and {len(hosts) - 8} more"
