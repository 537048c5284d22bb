"""GOAL schedules, the text that LogGOPSim, ATLAHS and their generators write, as a graph of operations.

After the grammar of LogGOPSim's ``txt2bin``: ``num_ranks N``, then for each rank ``rank K {``, lines such as
``l1: send 8b to 1 tag 5``, ``l2: recv 8b from 0 tag 5``, ``l3: calc 100``, ``l3 requires l2``, ``l3 irequires l1``,
and ``}``.
"""

from __future__ import annotations

import os
import re

from fluidcc.surface import public
from fluidcc.workloads.collectives.jobs import MOST_RANKS
from fluidcc.workloads.collectives.mapping import MOST_FLOWS
from fluidcc.workloads.collectives.schedule import Operation, Schedule
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
    return goal_of(Lines(path, _EXPECTED, LARGEST_LIST))


def goal_of(lines: Lines) -> Schedule:
    """Read the lines of a GOAL schedule."""
    ranks, rank, comment, line = 0, -1, False, 1
    operations: list[Operation] = []
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


def _wait(lines: Lines, found: re.Match[str], labels: dict[str, int], operations: list[Operation]) -> None:
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
    operations: list[Operation],
    unused: dict[str, int],
) -> None:
    label, rest = _LABEL.match(text).groups()  # type: ignore[union-attr]  # it matches anything
    made = None
    for kind, pattern in (("send", _SEND), ("recv", _RECV), ("calc", _CALC)):
        if found := pattern.match(rest):
            made = Operation(lines.at, kind, rank, int(found[1]))
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
