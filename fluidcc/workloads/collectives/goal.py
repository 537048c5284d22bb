"""GOAL schedules, the text that LogGOPSim, ATLAHS and their generators write, as a graph of operations.

After the grammar of LogGOPSim's ``txt2bin``: ``num_ranks N``, then for each rank ``rank K {``, lines such as
``l1: send 8b to 1 tag 5``, ``l2: recv 8b from 0 tag 5``, ``l3: calc 100``, ``l3 requires l2``, ``l3 irequires l1``,
and ``}``.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections import defaultdict
from typing import Any

from fluidcc.errors import InputError
from fluidcc.surface import constructor, public
from fluidcc.workloads.collectives.building import Building
from fluidcc.workloads.collectives.jobs import MOST_RANKS
from fluidcc.workloads.collectives.mapping import MOST_FLOWS
from fluidcc.workloads.fabrics.lines import LARGEST_LIST, Lines

_EXPECTED = "a GOAL schedule: num_ranks 2, then for each rank: rank 0 {, lines like l1: send 8b to 1 tag 5, and }"
_LABEL = re.compile(r"(?:([A-Za-z][A-Za-z0-9_]*)\s*:\s*)?(.*)")
_WAITS = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s+(i?requires)\s+([A-Za-z][A-Za-z0-9_]*)$")
# Of cpu and nic the first of each rank, 0, is what there is here.
_REST = r"(?:\s+tag\s+(-?\d{1,10}))?(?:\s+cpu\s+(?P<cpu>\d{1,9}))?(?:\s+nic\s+(?P<nic>\d{1,9}))?$"
_SEND = re.compile(r"send\s+(\d{1,15})\s*b\s+to\s+(\d{1,9})" + _REST)
_RECV = re.compile(r"recv\s+(\d{1,15})\s*b\s+from\s+(-?\d{1,9})" + _REST)
_CALC = re.compile(r"calc\s+(\d{1,15})(?:\s+cpu\s+(?P<cpu>\d{1,9}))?(?P<nic>)$")
_RANK = re.compile(r"rank\s+(\d{1,9})\s*\{$")
_COUNT = re.compile(r"num_ranks\s+(\d{1,9})$")
_OPENING = re.compile(r"/\*.*?(\*/|$)")
_NS = 1e-9


@dataclasses.dataclass
class _Operation:
    """A line of a rank."""

    line: int
    kind: str  # send, recv or calc
    rank: int
    amount: int  # bytes, or ns
    peer: int = -1
    tag: int = 0
    requires: list[int] = dataclasses.field(default_factory=list)
    started: list[int] = dataclasses.field(default_factory=list)  # those that must have started


@constructor()
@dataclasses.dataclass(frozen=True, repr=False)
class Schedule:
    """Contents of a GOAL file.

    Parameters
    ----------
    name : str
        Of the file.
    ranks : int
        How many.
    operations : list
        Sends, receives and calculations, as `read_goal` makes them.
    line : int
        The line that gives the number of ranks.
    words : tuple of str
        Parts of the file that have no effect.
    """

    name: str
    ranks: int
    operations: list[Any]
    line: int = 1
    words: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show the name, and the numbers of ranks and operations."""
        return f"<Schedule {self.name}: {self.ranks} ranks, {len(self.operations):,} operations>"

    @public()
    def build(self) -> tuple[Building, list[list[int]]]:
        """Build the graph, and for each rank the places of all that it does or receives.

        Returns
        -------
        Building, list of list of int

        Raises
        ------
        InputError
            If operations wait for each other, or a message is received that nobody sends, with the line.
        """
        return _Builder(self).build()


@public()
def read_goal(path: str | os.PathLike[str]) -> Schedule:
    """Read a GOAL schedule.

    Rank k is on the k-th host of the placement. A ``calc`` is in ns. A message is received as it has arrived and what
    its ``recv`` requires is done; it is sent whether or not that is posted. A ``send`` is done
    for another as its last byte leaves, and for a ``calc`` as that arrives.
    Calculations of a rank that do not require each other overlap, whatever their ``cpu``, and a rank has one NIC: where
    a file has another ``cpu`` or ``nic`` than 0, `Schedule.words` says so.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Schedule

    Raises
    ------
    InputError
        If it is none, with the line.
    """
    lines = Lines(path, _EXPECTED, LARGEST_LIST)
    ranks, rank, comment, line = 0, -1, False, 1
    operations: list[_Operation] = []
    labels: dict[str, int] = {}
    unused: dict[str, int] = {}  # the first line of each
    done: set[int] = set()
    for words in lines.rows():
        text = " ".join(words)
        if comment:
            text, comment = (text.partition("*/")[2], False) if "*/" in text else ("", True)
        text = re.sub(r"/\*.*?\*/", " ", text).partition("//")[0]
        if "/*" in text:
            text, comment = text.partition("/*")[0], True
        text = text.strip()
        if not text:
            continue
        if found := _COUNT.match(text):
            if ranks:
                raise lines.wrong("num_ranks is there twice; keep one")
            ranks, line = int(found[1]), lines.at
            if not 2 <= ranks <= MOST_RANKS:
                raise lines.wrong(f"{ranks} ranks are none that can send; write 2 to {MOST_RANKS}")
        elif found := _RANK.match(text):
            if rank >= 0:
                raise lines.wrong(f"rank {rank} is not closed; write }} before")
            rank = int(found[1])
            if rank >= ranks or rank in done:
                raise lines.wrong(f"rank {rank} is there twice, or not below num_ranks, which is {ranks}")
            done.add(rank)
            labels = {}
        elif rank < 0:
            raise lines.wrong(f"{text[:40]!r} belongs to no rank; write num_ranks N, then rank 0 {{")
        elif text == "}":
            rank = -1
        elif found := _WAITS.match(text):
            _wait(lines, found, labels, operations)
        else:
            if len(operations) >= MOST_FLOWS:
                raise lines.wrong(f"there are more than {MOST_FLOWS:,} operations; give a part of it")
            _operation(lines, text, rank, ranks, labels, operations, unused)
    lines.at = max(1, lines.at)
    if rank >= 0:
        raise lines.wrong("the file ends before a rank is closed; write }")
    if not operations:
        raise lines.wrong(f"there is no operation; give {_EXPECTED}")
    effects = {"cpu": "calculations of a rank overlap, whatever their cpu", "nic": "a rank has one NIC"}
    words = [f"{lines.name}, line {at}: {name} has no effect: {effects[name]}" for name, at in unused.items()]
    return Schedule(lines.name, ranks, operations, line, tuple(words))


def _wait(lines: Lines, found: re.Match[str], labels: dict[str, int], operations: list[_Operation]) -> None:
    unknown = next((name for name in (found[1], found[3]) if name not in labels), None)
    if unknown is not None:
        raise lines.wrong(f"{unknown[:40]!r} labels nothing above in this rank; label an operation, as l1: calc 100")
    mine = operations[labels[found[1]]]
    (mine.requires if found[2] == "requires" else mine.started).append(labels[found[3]])


def _operation(
    lines: Lines,
    text: str,
    rank: int,
    ranks: int,
    labels: dict[str, int],
    operations: list[_Operation],
    unused: dict[str, int],
) -> None:
    label, rest = _LABEL.match(text).groups()  # type: ignore[union-attr]  # it matches anything
    made = None
    for kind, pattern in (("send", _SEND), ("recv", _RECV), ("calc", _CALC)):
        if found := pattern.match(rest):
            made = _Operation(lines.at, kind, rank, int(found[1]))
            if kind != "calc":
                made.peer, made.tag = int(found[2]), int(found[3] or 0)
            for name in ("cpu", "nic"):
                if int(found[name] or 0):
                    unused.setdefault(name, lines.at)
    if made is None:
        raise lines.wrong(f"{rest[:40]!r} is no operation; write send 8b to 1 tag 5, recv 8b from 0 tag 5, or calc 100")
    if made.kind != "calc":
        if made.peer < 0 or made.tag < 0:
            raise lines.wrong("takes a message from anybody, or with any tag, which is not read; name both")
        if made.peer >= ranks or made.peer == rank:
            raise lines.wrong(f"rank {made.peer} is itself, or none of {ranks}; write another, which count from 0")
    if label is not None:
        if label in labels:
            raise lines.wrong(f"{label[:40]} labels two operations of this rank; give each its own")
        labels[label] = len(operations)
    operations.append(made)


class _Builder:
    """Operations in an order in which all can be done."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.operations = schedule.operations
        self.sender = self._matched()

    def _wrong(self, i: int, text: str) -> InputError:
        return InputError(f"{self.schedule.name}, line {self.operations[i].line}: {text}")

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
                if each.amount < self.operations[found[i]].amount:
                    there = self.operations[found[i]]
                    raise self._wrong(
                        i, f"{each.amount} B have no room for the {there.amount} B of line {there.line}; write as many"
                    )
        return found

    def before(self, i: int) -> list[int]:
        """Return what must end before an operation starts, with the needs of those whose start it waits for."""
        found, waiting, seen = list(self.operations[i].requires), list(self.operations[i].started), set[int]()
        while waiting:
            k = waiting.pop()
            if k not in seen:
                seen.add(k)
                found += self.operations[k].requires
                waiting += self.operations[k].started
        return found

    def build(self) -> tuple[Building, list[list[int]]]:
        before = [self.before(i) for i in range(len(self.operations))]
        needs = [[*b, *([self.sender[i]] if i in self.sender else [])] for i, b in enumerate(before)]
        order = self._ordered(needs)
        if all(each.kind == "calc" for each in self.operations):
            raise self._wrong(0, "nobody sends, and nothing crosses the fabric; add a send there, and its recv")
        graph = Building()
        place: dict[int, int] = {}
        ends: list[list[int]] = [[] for _ in range(self.schedule.ranks)]
        for i in order:
            each, after = self.operations[i], list(dict.fromkeys(place[k] for k in before[i]))
            if each.kind == "send":
                place[i] = graph.send(each.rank, each.peer, each.amount, after, in_order=False)
                ends[each.peer].append(place[i])
            elif each.kind == "calc":
                place[i] = graph.wait(each.rank, each.amount * _NS, after)
            else:
                message = place[self.sender[i]]
                place[i] = graph.wait(each.rank, 0.0, [*after, message]) if after else message
            if each.kind != "send":  # which is over as it arrives, at the other end
                ends[each.rank].append(place[i])
        return graph, [list(dict.fromkeys(each)) for each in ends]

    def _ordered(self, needs: list[list[int]]) -> list[int]:
        left = [len(each) for each in needs]
        followers: list[list[int]] = [[] for _ in needs]
        for i, each in enumerate(needs):
            for k in each:
                followers[k].append(i)
        free = [i for i, count in enumerate(left) if count == 0]
        for i in free:  # grows meanwhile
            for each in followers[i]:
                left[each] -= 1
                if left[each] == 0:
                    free.append(each)
        if len(free) < len(needs):
            at = next(i for i, count in enumerate(left) if count > 0)
            seen: list[int] = []
            while at not in seen:
                seen.append(at)
                at = next(k for k in needs[at] if left[k] > 0)
            shown = [f"line {self.operations[k].line}" for k in seen[seen.index(at) :]]
            shown = [*shown[:8], *([f"{len(shown) - 8} more"] if len(shown) > 8 else [])]
            raise self._wrong(at, f"{' waits for '.join([*shown, shown[0]])}; break the circle")
        return free
