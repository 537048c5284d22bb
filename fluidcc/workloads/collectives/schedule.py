"""Operations of ranks and what each waits for, as files of schedules and traces have them, built into a graph."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import numpy as np

from fluidcc.errors import InputError
from fluidcc.scenario.dependencies import ordered, told_circle
from fluidcc.surface import constructor, public
from fluidcc.workloads.collectives.algorithms import Team, done
from fluidcc.workloads.collectives.graph import Building

LARGEST = 10**15  # bytes of a transfer, or ns of a calculation: digits that files may have
_NS = 1e-9


@dataclasses.dataclass
class Operation:
    """Work of one rank: a send, a receive, a calculation, or its part of a collective."""

    line: int  # or number of the node, in a file of nodes
    kind: str  # send, recv, calc, or a kind of collective
    rank: int
    amount: int  # ns of a calculation, or bytes: of a collective as nccl-tests count them
    peer: int = -1
    tag: int = 0  # or number of the communicator
    requires: list[int] = dataclasses.field(default_factory=list)
    started: list[int] = dataclasses.field(default_factory=list)  # those that must have started
    group: tuple[int, ...] = ()  # ranks of a collective, in the order of its ring


@constructor()
@dataclasses.dataclass(frozen=True, repr=False)
class Schedule:
    """Contents of a file of operations: a GOAL schedule, a SimAI workload or Chakra execution traces.

    Parameters
    ----------
    name : str
        Of the file.
    ranks : int
        How many.
    operations : list
        Sends, receives, calculations and collectives, as `read_goal`, `read_simai` and `read_chakra` make them.
    line : int
        The line that gives the number of ranks.
    words : tuple of str
        Parts of the file that have no effect.
    files : tuple of str
        Of each rank, where it has one of its own, with nodes instead of lines.
    """

    name: str
    ranks: int
    operations: list[Any]
    line: int = 1
    words: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show the name, and the numbers of ranks and operations."""
        return f"<Schedule {self.name}: {self.ranks} ranks, {len(self.operations):,} operations>"

    @property
    def kinds(self) -> set[str]:
        """Kinds of operations that cross the fabric: send, or a kind of collective."""
        return {each.kind for each in self.operations if each.kind == "send" or len(each.group) > 1}

    @property
    def unreceived(self) -> tuple[str, ...]:
        """Say which send is the first that no receive is left for, and how many there are."""
        left = Counter((each.peer, each.rank, each.tag) for each in self.operations if each.kind == "recv")
        alone = []
        for each in self.operations:
            if each.kind == "send":
                key = (each.rank, each.peer, each.tag)
                left[key] -= 1
                alone += [each] if left[key] < 0 else []
        if not alone:
            return ()
        more = f" (and {len(alone) - 1} more)" if alone[1:] else ""
        return (f"{_where(self, alone[0])}: rank {alone[0].peer} never receives what this sends{more}; it is sent",)

    @public()
    def build(self) -> tuple[Building, list[list[int]]]:
        """Build the graph, and for each rank the places of all that it does or receives.

        Returns
        -------
        Building, list of list of int

        Raises
        ------
        InputError
            If operations wait for each other, a message is received that nobody sends, or a rank lacks a collective of
            its group, with the line or node.
        """
        graph = Building()
        return graph, Builder(self).add_to(graph, 0, [[] for _ in range(self.ranks)])


def _where(schedule: Schedule, operation: Operation) -> str:
    """Return the file of an operation, and its line or node."""
    if schedule.files:
        return f"{schedule.files[operation.rank]}, node {operation.line}"
    return f"{schedule.name}, line {operation.line}"


class Builder:
    """Operations of a schedule in an order in which all can be done, to be added to a graph once or several times."""

    def __init__(self, schedule: Schedule, server: int = 1, server_rate: float = np.inf) -> None:
        self.schedule, self.server, self.server_rate = schedule, server, server_rate
        self.operations = schedule.operations
        self.sender = self._matched()
        self.parts: dict[int, list[int]] = {}  # of a collective, its ranks' operations, by the first of them
        self.first = list(range(len(self.operations)))  # of each operation's collective; of others itself
        self.before = [self._before(i) for i in range(len(self.operations))]
        self._join()
        self.order = self._ordered()
        if not schedule.kinds:
            raise self._wrong(0, "nobody sends, and nothing crosses the fabric; add a send there, and its recv")

    def _wrong(self, i: int, text: str) -> InputError:
        return InputError(f"{_where(self.schedule, self.operations[i])}: {text}")

    def _there(self, i: int) -> str:
        each = self.operations[i]
        return f"node {each.line} of rank {each.rank}" if self.schedule.files else f"line {each.line}"

    def _matched(self) -> dict[int, int]:
        """Match each recv with a send: the first unmatched of its rank, peer and tag, in the order of the file."""
        sent: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for i, each in enumerate(self.operations):
            if each.kind == "send":
                sent[each.rank, each.peer, each.tag].append(i)
        for queue in sent.values():
            queue.reverse()
        found = {}
        for i, each in enumerate(self.operations):
            if each.kind == "recv":
                queue = sent.get((each.peer, each.rank, each.tag))
                if not queue:
                    raise self._wrong(i, f"rank {each.peer} sends no such message, or too few; add it there")
                found[i] = queue.pop()
                size = self.operations[found[i]].amount
                if each.amount < size:
                    there = self._there(found[i])
                    raise self._wrong(i, f"{each.amount} B have no room for the {size} B of {there}; write as many")
        return found

    def _join(self) -> None:
        """Join the k-th collectives of a communicator, each behind the one before, as NCCL does them."""
        listed: dict[tuple[int, tuple[int, ...]], dict[int, list[int]]] = {}
        for i, each in enumerate(self.operations):
            if each.group:
                listed.setdefault((each.tag, each.group), {rank: [] for rank in each.group})[each.rank].append(i)
        for (_, group), of in listed.items():
            longest = max(of.values(), key=len)
            for k, i in enumerate(longest):
                lacking = next((rank for rank in group if k >= len(of[rank])), None)
                if lacking is not None:
                    told = f"is collective {k + 1} of a group of {len(group)} ranks"
                    raise self._wrong(i, f"{told}, and rank {lacking} has {len(of[lacking])}; give each as many")
                self.parts[i] = [of[rank][k] for rank in group]
                for part in self.parts[i]:
                    self.first[part] = i
                    one, other = self.operations[i], self.operations[part]
                    if (one.kind, one.amount) != (other.kind, other.amount):
                        told = f"is {other.kind} of {other.amount} B, and {self._there(i)}, the same collective, is"
                        raise self._wrong(part, f"{told} {one.kind} of {one.amount} B; write the same")
            for mine in of.values():
                for last, following in pairwise(mine):
                    self.before[following].append(last)

    def _before(self, i: int) -> list[int]:
        """Return what must end before an operation starts, with the needs of those whose start it waits for."""
        found, waiting, seen = list(self.operations[i].requires), list(self.operations[i].started), set[int]()
        while waiting:
            k = waiting.pop()
            if k not in seen:
                seen.add(k)
                found += self.operations[k].requires
                waiting += self.operations[k].started
        return found

    def add_to(self, graph: Building, first: int, begins: list[list[int]]) -> list[list[int]]:
        """Add all operations, with ranks from ``first`` on and after what each rank ``begins`` with; ends by rank."""
        place: dict[int, int] = {}
        ends: list[list[int]] = [[] for _ in range(self.schedule.ranks)]
        for i in self.order:
            each = self.operations[i]
            if i in self.parts:
                self._add_collective(graph, first, i, place, begins)
                for part in self.parts[i]:
                    ends[self.operations[part].rank].append(place[part])
                continue
            if i in place:  # a collective's other ranks
                continue
            after, rank = self._after(i, place, begins), first + each.rank
            if each.kind == "send":
                if each.rank // self.server == each.peer // self.server:
                    place[i] = graph.copy(rank, first + each.peer, each.amount / self.server_rate, after)
                else:
                    place[i] = graph.send(rank, first + each.peer, each.amount, after, in_order=False)
                ends[each.peer].append(place[i])
            elif each.kind == "calc":
                # No time behind one other is the other, but for a send, which is done for a calculation as it arrives.
                alone = len(after) == 1 and all(self.operations[k].kind != "send" for k in self.before[i])
                place[i] = after[0] if alone and not each.amount else graph.wait(rank, each.amount * _NS, after)
            else:
                message = place[self.sender[i]]
                place[i] = graph.wait(rank, 0.0, [*after, message]) if self.before[i] else message
            if each.kind != "send":  # which is over as it arrives, at the other end
                ends[each.rank].append(place[i])
        return [list(dict.fromkeys(each)) for each in ends]

    def _after(self, i: int, place: dict[int, int], begins: list[list[int]]) -> list[int]:
        if not self.before[i]:
            return begins[self.operations[i].rank]
        return list(dict.fromkeys(place[k] for k in self.before[i]))

    def _add_collective(
        self, graph: Building, first: int, i: int, place: dict[int, int], begins: list[list[int]]
    ) -> None:
        """Add a collective, which begins on each rank as that is ready."""
        each, parts = self.operations[i], self.parts[i]
        ranks = [first + rank for rank in each.group]
        ends: Any = [
            [graph.wait(rank, 0.0, self._after(part, place, begins))] for rank, part in zip(ranks, parts, strict=True)
        ]
        if len(ranks) > 1:
            # On connections of its own, so that no communicator waits behind another.
            server = {"server": self._together(i), "server_rate": self.server_rate}
            ends = done(each.kind, Team(graph, ranks, each.amount, ends, channel=each.tag, **server))
        for rank, part, came in zip(ranks, parts, ends, strict=True):
            place[part] = graph.wait(rank, 0.0, came)

    def _together(self, i: int) -> int:
        """Return how many ranks of a collective are in each server."""
        group = self.operations[i].group
        counts = Counter(rank // self.server for rank in group)
        if len(set(counts.values())) > 1:
            told = f"has {max(counts.values())} of its {len(group)} ranks in one server and {min(counts.values())}"
            raise self._wrong(i, f"{told} in another, which is not read; give another server")
        return counts.popitem()[1]

    def _ordered(self) -> list[int]:
        """Return all operations, each behind what it needs; a collective needs what any of its ranks needs."""
        needs: list[list[int]] = [[] for _ in self.operations]
        for i, before in enumerate(self.before):
            mine = [self.first[k] for k in before] + ([self.sender[i]] if i in self.sender else [])
            needs[self.first[i]] += mine
            if self.first[i] != i:
                needs[i] = [self.first[i]]
        order, circle = ordered(needs)
        if circle:
            told = told_circle([self._there(k) for k in circle])
            raise self._wrong(circle[0], f"{told}; break the circle")
        return order
