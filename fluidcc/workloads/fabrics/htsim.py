"""Files of htsim (Broadcom/csg-htsim): connection matrices, with the triggers by which flows wait, and topologies.

Topologies are fat trees of two or three tiers, by the counts of their switches' ports.
"""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any

from fluidcc.errors import InputError
from fluidcc.scenario.dependencies import ANSWER, RECEIPT
from fluidcc.surface import public
from fluidcc.units import Rate
from fluidcc.workloads.fabrics.hpcc_files import LARGEST_NODE
from fluidcc.workloads.fabrics.lines import LARGEST_LIST, Lines
from fluidcc.workloads.fabrics.topology import Cable, Topology

_CONNECTIONS = "a connection matrix: Nodes, Connections, then a line like 0->5 id 1 start 0 size 2000000 for each"
_SAID = ("Nodes", "Connections", "Triggers", "Failures")
_DONE = {"send_done_trigger": ANSWER, "recv_done_trigger": RECEIPT}
_NUMBERS = ("start", "size", "id", "prio", "trigger", *_DONE)

Row = tuple[Any, ...]
_TOPOLOGY = "htsim's topology: Nodes 16, Tiers 2, Podsize 16, then for each tier lines such as Radix_Down 4"
_HEAD = ("nodes", "tiers", "podsize")
_GBPS, _NS = 1e9 / 8, 1e-9
# Of a tier, and what htsim takes where it is not there; None: it must be.
_TIER: dict[str, int | None] = {
    "downlink_speed_gbps": None,
    "downlink_latency_ns": None,
    "radix_down": None,
    "radix_up": 0,
    "oversubscribed": 1,
    "bundle": 1,
    "switch_latency_ns": 0,
}
_TOP = 2  # the tier of core switches


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
    lines = Lines(path, _CONNECTIONS, LARGEST_LIST)
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


@dataclasses.dataclass(frozen=True)
class _File:
    """Numbers of a file: of its head, and of each tier."""

    name: str
    head: dict[str, int]
    tiers: list[dict[str, int]]

    def of(self, tier: int, key: str) -> int:
        return self.tiers[tier][key]

    def wrong(self, text: str) -> InputError:
        return InputError(f"{self.name}: {text}")

    def divided(self, whole: int, by: int, what: str) -> int:
        """Divide what must be a multiple."""
        if whole % by:
            raise self.wrong(f"{what}: {whole} is not a multiple of {by}; change one of the counts")
        return whole // by


def is_htsim_topology(words: list[str]) -> bool:
    """Tell this form by the words of the first line."""
    return words[0].lower() in (*_HEAD, "tier")


@public()
def read_htsim_topology(path: str | os.PathLike[str]) -> Topology:
    """Read an htsim topology, such as ``leaf_spine_tiny.topo``.

    Lines ``Nodes``, ``Tiers`` (2 or 3) and ``Podsize``; then ``Tier 0`` (ToRs), ``Tier 1`` and ``Tier 2``, each
    followed by ``Downlink_speed_Gbps``, ``Downlink_Latency_ns``, ``Radix_Down``, ``Radix_Up``, ``Oversubscribed``,
    ``Bundle`` and ``Switch_Latency_ns``. How many switches there are follows from these, as in htsim. Half of a
    switch's latency is on each of its cables.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Topology
        Hosts are numbered from 0, ToR by ToR; switches after them: ToRs, Aggs, Cores.

    Raises
    ------
    InputError
        If it is none, with the line, or counts do not fit together.
    """
    file, said = _numbers(Lines(path, _TOPOLOGY))
    nodes, pod = file.head["nodes"], file.head["podsize"]
    pods = file.divided(nodes, pod, "Nodes over Podsize")
    tors = file.divided(pod, file.of(0, "radix_down"), "Podsize over Radix_Down of tier 0")
    speed = [each["downlink_speed_gbps"] for each in file.tiers]
    up = file.divided(
        nodes * speed[0], speed[1] * file.of(0, "oversubscribed"), "what hosts send over the speed above the ToRs"
    )
    aggs = file.divided(
        up, pods * file.of(1, "radix_down"), "cables above the ToRs over Pods times Radix_Down of tier 1"
    )
    first_tor, first_agg = nodes, nodes + pods * tors
    first_core = first_agg + pods * aggs
    two = len(file.tiers) == 2
    ups = aggs * file.of(1, "bundle") * (pods if two else 1)
    if ups != file.of(0, "radix_up"):
        said.append(
            f"{file.name}: ToRs have {ups} cables up, as follows from speeds, Oversubscribed and Radix_Down, and not "
            f"Radix_Up {file.of(0, 'radix_up')}"
        )
    cables = [_cable(file, 0, host, first_tor + host // file.of(0, "radix_down")) for host in range(nodes)]
    for tor in range(pods * tors):
        over = range(pods * aggs) if two else range(tor // tors * aggs, (tor // tors + 1) * aggs)
        cables += [
            _cable(file, 1, first_tor + tor, first_agg + agg) for agg in over for _ in range(file.of(1, "bundle"))
        ]
    cores = 0
    if not two:
        bundle = file.of(_TOP, "bundle")
        above = file.divided(
            up * speed[1], speed[2] * file.of(1, "oversubscribed"), "what Aggs send over the speed above"
        )
        cores = file.divided(above, file.of(_TOP, "radix_down"), "cables above the Aggs over Radix_Down of tier 2")
        fan = file.divided(file.of(1, "radix_up"), bundle, "Radix_Up of tier 1 over Bundle of tier 2")
        if aggs * fan != cores:
            raise file.wrong(f"{aggs} Aggs of a pod lead to {aggs * fan} Cores, and there are {cores}; change Radix_Up")
        for agg in range(pods * aggs):
            cores_above = [agg % aggs + aggs * k for k in range(fan)]
            cables += [_cable(file, 2, first_agg + agg, first_core + c) for c in cores_above for _ in range(bundle)]
    return Topology(tuple(range(nodes)), tuple(range(nodes, first_core + cores)), tuple(cables), words=tuple(said))


def _cable(file: _File, tier: int, below: int, above: int) -> Cable:
    """Make a cable down from a tier's switch."""
    latency = file.of(tier, "switch_latency_ns") + (file.of(tier - 1, "switch_latency_ns") if tier else 0)
    delay = (file.of(tier, "downlink_latency_ns") + latency / 2) * _NS
    return Cable((below, above), Rate(file.of(tier, "downlink_speed_gbps") * _GBPS), delay)


def _numbers(lines: Lines) -> tuple[_File, list[str]]:
    """Read head and tiers, and say which keys were not used."""
    head: dict[str, int] = {}
    tiers: dict[int, dict[str, int]] = {}
    here: dict[str, int] | None = None
    unused: list[str] = []
    for words in lines.rows():
        key = words[0].lower()
        if len(words) == 1:
            raise lines.wrong(f"{words[0][:40]!r} has no number behind it; write for example {words[0][:40]} 4")
        if key == "tier":
            at = lines.number(words[1], int, 0, "a tier", _TOP)
            if at in tiers:
                raise lines.wrong(f"tier {at} is there twice; keep one")
            here = tiers[at] = {}
        elif key in (_TIER if here is not None else _HEAD):
            kept = head if here is None else here
            if key in kept:
                raise lines.wrong(f"{words[0]} is there twice; keep one")
            least = 0 if key.endswith("latency_ns") else 1
            kept[key] = lines.number(words[1], int, least, words[0], LARGEST_NODE * 1000)
        else:
            unused.append(f"{lines.name}, line {lines.at}: {words[0][:40]} is not used")
    return _complete(lines.name, head, tiers), unused


def _complete(name: str, head: dict[str, int], tiers: dict[int, dict[str, int]]) -> _File:
    """Check that nothing is missing, and fill in what htsim takes where a line is."""
    missing = next((key for key in _HEAD if key not in head), None)
    if missing is not None:
        raise InputError(f"{name}: has no {missing.capitalize()}; give {_TOPOLOGY}")
    if head["tiers"] not in (2, 3) or head["nodes"] > LARGEST_NODE:
        raise InputError(f"{name}: has {head['tiers']} tiers and {head['nodes']:,} nodes; htsim has 2 or 3 tiers")
    absent = next((k for k in range(head["tiers"]) if k not in tiers), None)
    if absent is not None:
        raise InputError(f"{name}: has no Tier {absent}; write its lines")
    found = []
    for k in range(head["tiers"]):
        wanted = [key for key, default in _TIER.items() if default is None]
        wanted += ["radix_up"] if k < head["tiers"] - 1 else []
        lacking = next((key for key in wanted if key not in tiers[k]), None)
        if lacking is not None:
            raise InputError(f"{name}: Tier {k} has no {lacking}; write one")
        found.append({key: tiers[k].get(key, default or 0) for key, default in _TIER.items()})
    if found[0]["bundle"] != 1:
        raise InputError(f"{name}: Tier 0 has a Bundle of {found[0]['bundle']}; a host has one cable; write Bundle 1")
    return _File(name, head, found)
