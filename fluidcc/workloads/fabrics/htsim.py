"""Connection matrices of htsim (Broadcom/csg-htsim), read, with the triggers by which flows wait for others."""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any

from fluidcc.errors import InputError
from fluidcc.scenario.dependencies import ANSWER, RECEIPT
from fluidcc.surface import public
from fluidcc.workloads.fabrics.hpcc_files import LARGEST_NODE
from fluidcc.workloads.fabrics.lines import LARGEST_LIST, Lines

_EXPECTED = "a connection matrix: Nodes, Connections, then a line like 0->5 id 1 start 0 size 2000000 for each"
_SAID = ("Nodes", "Connections", "Triggers", "Failures")
_DONE = {"send_done_trigger": ANSWER, "recv_done_trigger": RECEIPT}
_NUMBERS = ("start", "size", "id", "prio", "trigger", *_DONE)

Row = tuple[Any, ...]


@dataclasses.dataclass
class _Connection:
    """A line of a flow."""

    line: int
    ends: tuple[int, int]
    numbers: dict[str, float]


@dataclasses.dataclass
class _Trigger:
    """A line of a trigger."""

    line: int
    count: int  # of those that must be done; 0 for the first of any


@public()
def read_connections(path: str | os.PathLike[str]) -> list[tuple[Any, ...]]:
    """Read an htsim connection matrix.

    Lines ``Nodes N``, ``Connections M`` and ``Triggers K``, then one for each flow: ``source->target``, and pairs of a
    word and a number: ``start`` [ps], ``size`` [bytes; 0 for a flow without end], ``id`` and ``prio``, which are not
    used; in place of a start ``trigger``, the number of what starts it; ``send_done_trigger`` and
    ``recv_done_trigger``, what this flow is for as its last ACK, or its last byte, comes. And one for each trigger:
    ``trigger id 1 oneshot``, or ``trigger id 2 barrier count 8``. What begins with ``#`` is left out.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    list of tuple
        Source, target, start [s] and size [bytes], in the order of the file; and of those that wait, places of the
        flows that they wait for, and what of these counts (`fluidcc.Flow`).

    Raises
    ------
    InputError
        If it is none, with the line; if links fail, which is not read; or if a flow waits for the first of several, or
        for ends of both kinds, which no flow here does.
    """
    lines = Lines(path, _EXPECTED, LARGEST_LIST)
    said: dict[str, int] = {}
    flows: list[_Connection] = []
    triggers: dict[int, _Trigger] = {}
    for words in lines.rows():
        if "->" in words[0]:
            flows.append(_connection(lines, words, said.get("Nodes", 0)))
        elif words[0] == "trigger":
            number, found = _trigger(lines, words)
            if number in triggers:
                raise lines.wrong(f"trigger {number} is there twice; keep one")
            triggers[number] = found
        elif words[0] in _SAID:
            _count(lines, words, said)
        else:
            raise lines.wrong(
                f"{words[0][:30]!r} begins no line of a connection matrix; write 0->5 start 0 size 2000000"
            )
    for name, found in (("Connections", flows), ("Triggers", triggers)):
        if said.get(name, 0 if name == "Triggers" else None) != len(found):
            raise lines.wrong(
                f"the file has {len(found):,} {name.lower()} and says {said.get(name, 'no number of them')}"
            )
    return _rows(lines, flows, triggers)


def _count(lines: Lines, words: list[str], said: dict[str, int]) -> None:
    name = words[0]
    if len(words) != 2:
        raise lines.wrong(f"{name} is one number; write for example {name} 16")
    if name in said:
        raise lines.wrong(f"{name} is there twice; keep one")
    said[name] = lines.number(words[1], int, 0, f"the number of {name}")
    if name == "Failures" and said[name]:
        raise lines.wrong("Failures are not read; delete them, and give failures= in Python")
    if name == "Nodes" and said[name] > LARGEST_NODE:
        raise lines.wrong(f"{said[name]:,} nodes are more than {LARGEST_NODE:,}")


def _connection(lines: Lines, words: list[str], nodes: int) -> _Connection:
    source, target = (lines.number(word, int, 0, "a node") for word in words[0].split("->", 1))
    beyond = next((end for end in (source, target) if end >= nodes), None)
    if beyond is not None:
        raise lines.wrong(f"node {beyond} is none of {nodes}, which count from 0")
    found: dict[str, float] = {}
    rest = iter(words[1:])
    for word in rest:
        if word not in _NUMBERS:
            raise lines.wrong(f"{word[:30]!r} is unknown; write one of {', '.join(_NUMBERS)}")
        if word in found:
            raise lines.wrong(f"{word} is there twice; keep one")
        read = float if word in ("start", "size") else int
        found[word] = lines.number(next(rest, ""), read, 0, word)
    if ("start" in found) == ("trigger" in found):
        raise lines.wrong("has no start, or a trigger beside it; write for example start 0, or trigger 1 alone")
    return _Connection(lines.at, (source, target), found)


def _trigger(lines: Lines, words: list[str]) -> tuple[int, _Trigger]:
    if len(words) < 4 or words[1] != "id":
        raise lines.wrong("is no trigger; write for example trigger id 1 oneshot")
    number = lines.number(words[2], int, 0, "a trigger's id")
    if words[3] in ("oneshot", "multishot") and len(words) == 4:
        return number, _Trigger(lines.at, 0)
    if words[3] == "barrier" and len(words) == 6 and words[4] == "count":
        return number, _Trigger(lines.at, lines.number(words[5], int, 1, "the count"))
    raise lines.wrong(f"{' '.join(words[3:])[:40]!r} is no kind of trigger; write oneshot, or barrier count 8")


def _rows(lines: Lines, flows: list[_Connection], triggers: dict[int, _Trigger]) -> list[Row]:
    """Return the flows with what they wait for."""
    pulled: dict[int, dict[str, list[int]]] = {}
    for place, flow in enumerate(flows):
        for word, what in _DONE.items():
            if word in flow.numbers:
                number = int(flow.numbers[word])
                _known(lines, flow, word, triggers)
                pulled.setdefault(number, {}).setdefault(what, []).append(place)
    rows = []
    for flow in flows:
        size = flow.numbers.get("size", 0.0) or math.inf
        if "start" in flow.numbers:
            rows.append((*flow.ends, flow.numbers["start"] * 1e-12, size))
            continue
        _known(lines, flow, "trigger", triggers)
        number = int(flow.numbers["trigger"])
        rows.append((*flow.ends, 0.0, size, *_waits(lines, number, triggers[number], pulled.get(number, {}))))
    return rows


def _waits(lines: Lines, number: int, trigger: _Trigger, pulled: dict[str, list[int]]) -> tuple[tuple[int, ...], str]:
    """Return the places of flows that a trigger's flows wait for, and until what."""
    places = [place for each in pulled.values() for place in each]
    if trigger.count and trigger.count != len(places):
        problem = f"counts {trigger.count}, and {len(places)} flows are for it; write barrier count {len(places)}"
    elif not places:
        problem = "is for no flow to set off; write send_done_trigger or recv_done_trigger in another's line"
    elif not trigger.count and len(places) > 1:
        problem = f"goes off with the first of {len(places)}, which is not read; write barrier count {len(places)}"
    elif len(pulled) > 1:
        problem = "is for ACKs of some flows and data of others, which is not read; write one kind"
    else:
        return tuple(places), next(iter(pulled))
    raise InputError(f"{lines.name}, line {trigger.line}: trigger {number} {problem}")


def _known(lines: Lines, flow: _Connection, word: str, triggers: dict[int, _Trigger]) -> None:
    number = int(flow.numbers[word])
    if number not in triggers:
        raise InputError(
            f"{lines.name}, line {flow.line}: {word} {number} is none of the file's {len(triggers)}; write a line "
            f"trigger id {number} oneshot"
        )
