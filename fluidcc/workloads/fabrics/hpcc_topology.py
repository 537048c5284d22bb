"""The ``topology.txt`` of the HPCC authors' simulator and of those made from it: which nodes, switches and cables.

Counts and cables are read as these simulators do: as many as the first line announces, and nothing behind them.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from fluidcc.errors import InputError
from fluidcc.surface import public
from fluidcc.units import TIME, parse
from fluidcc.workloads.fabrics.lines import Lines
from fluidcc.workloads.fabrics.ns3_numbers import ns3_rate
from fluidcc.workloads.fabrics.topology import Cable, Topology

LARGEST_NODE = 1 << 20
_ENTRIES = 5  # of a cable: two nodes, rate, delay and loss rate
_HEADS = (
    "nodes, switches and cables (HPCC's simulator); nodes, switches, ToRs and cables (PowerTCP's); or nodes, GPUs of a "
    "server, NVSwitches, switches, cables and the GPU's name (SimAI's)"
)


class _Head(NamedTuple):
    """Counts of the first line."""

    nodes: int
    switches: int
    cables: int
    nvswitches: int = 0  # named before the switches
    more: int = 0  # that may be named behind the switches
    server: int = 0  # GPUs


@public()
def read_topology(path: str | os.PathLike[str]) -> Topology:
    """Read a ``topology.txt``.

    A line with the numbers of nodes, switches and cables; a line with the switches; a line for each cable: two nodes,
    rate, delay and loss rate. The first line may be PowerTCP's (nodes, switches, ToRs, cables) or SimAI's (nodes,
    GPUs of a server, NVSwitches, switches, cables, name of the GPU), whose NVSwitches are left out where hosts have a
    cable to another switch. A rate without a unit is in bits/s.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Topology
        Its ``words`` say what is not as in the file.

    Raises
    ------
    InputError
        If it is none, with the line.
    """
    lines = Lines(path, "the simulator's topology.txt: nodes, switches and cables")
    words, at = lines.next("its first line"), lines.at
    head = _head(lines, words)
    named = _switches(lines, head)
    inside, switches = set(named[: head.nvswitches]), named[head.nvswitches :]
    found: list[Cable] = []
    extra = 0  # cables beyond those announced
    said: list[str] = []
    first: dict[frozenset[int], int] = {}
    for words in lines.rows():
        if len(found) == head.cables:
            extra += _looks_like_a_cable(words)
            continue
        found.append(_cable(lines, words, head.nodes))
        before = first.setdefault(frozenset(found[-1].ends), lines.at)
        if before != lines.at:
            said.append(
                f"{lines.name}, lines {before} and {lines.at}: nodes {words[0]} and {words[1]} have several cables, "
                "and each flow takes one of them; HPCC's simulator sends all over the last"
            )
    if len(found) < head.cables:
        raise InputError(f"{lines.name}, line {at}: says {head.cables} cables, and the file has {len(found)}")
    if extra:
        said.append(f"{lines.name}, line {at}: says {head.cables} cables, and {extra} more are left out")
    hosts = tuple(sorted(set(range(head.nodes)) - set(named)))
    if inside:
        switches, found = _without_nvswitches(lines.name, head, hosts, inside, switches, found, said)
    try:
        return Topology(hosts, switches, tuple(found), words=tuple(said))
    except InputError as error:
        raise InputError(f"{lines.name}: {error}") from None


def _head(lines: Lines, words: list[str]) -> _Head:
    """Read the first line, whichever simulator's it is."""
    if len(words) not in (3, 4, 6):
        raise lines.wrong(f"has {len(words)} entries; write {_HEADS}")
    counts = [lines.number(word, int, 0, "a count") for word in words[:5]]
    if len(words) == 3:
        head = _Head(*counts)
    elif len(words) == 4:
        nodes, switches, more, cables = counts
        head = _Head(nodes, switches, cables, more=more)
    else:
        nodes, server, nvswitches, switches, cables = counts
        head = _Head(nodes, switches, cables, nvswitches, server=server)
    if head.nodes > LARGEST_NODE:
        raise lines.wrong(f"{head.nodes:,} nodes are more than {LARGEST_NODE:,}")
    return head


def _switches(lines: Lines, head: _Head) -> tuple[int, ...]:
    """Read all nodes that are switches, of one line or several."""
    wanted = head.nvswitches + head.switches
    words: list[str] = []
    while len(words) < wanted:
        at, row = lines.at, lines.next("its switches")
        if _looks_like_a_cable(row):
            lines.at = at
            break
        words += row
    found = tuple(lines.number(word, int, 0, "a node") for word in words)
    # Of four counts the third is of ToRs, which are among the switches, or of others that are named behind them.
    if len(found) not in (wanted, wanted + head.more) or len(set(found)) != len(found):
        raise lines.wrong(f"names {len(set(found))} switches, not {wanted}")
    beyond = next((node for node in found if node >= head.nodes), None)
    if beyond is not None:
        raise lines.wrong(f"node {beyond} is none of the {head.nodes}, which count from 0")
    return found


def _looks_like_a_cable(words: list[str]) -> bool:
    return len(words) == _ENTRIES and words[0].isdecimal() and words[1].isdecimal() and not words[3].isdecimal()


def _cable(lines: Lines, words: list[str], nodes: int) -> Cable:
    if len(words) != _ENTRIES:
        raise lines.wrong(f"has {len(words)} entries, not two nodes, rate, delay and loss rate")
    a, b = (lines.number(word, int, 0, "a node") for word in words[:2])
    if max(a, b) >= nodes:
        raise lines.wrong(f"node {max(a, b)} is none of the {nodes}, which count from 0")
    try:
        rate, delay = ns3_rate(words[2], "rate"), parse(words[3], TIME, "delay")
    except InputError as error:
        raise lines.wrong(str(error)) from None
    if not rate > 0:
        raise lines.wrong(f"rate {words[2]} is none above 0")
    loss = lines.number(words[4], float, 0.0, "a loss rate")
    if loss > 1:
        raise lines.wrong(f"loss rate {words[4]} is no probability; write at most 1")
    try:
        return Cable((a, b), rate, delay, loss)
    except InputError as error:
        raise lines.wrong(str(error)) from None


def _without_nvswitches(
    name: str,
    head: _Head,
    hosts: tuple[int, ...],
    inside: set[int],
    switches: tuple[int, ...],
    cables: list[Cable],
    said: list[str],
) -> tuple[tuple[int, ...], list[Cable]]:
    """Leave out what is inside servers, unless hosts have nothing else: a host has one cable here."""
    outside = [cable for cable in cables if not inside.intersection(cable.ends)]
    if {end for cable in outside for end in cable.ends} >= set(hosts):
        said.append(
            f"{name}: {len(inside)} NVSwitches and their {len(cables) - len(outside)} cables are left out: flows "
            f"inside a server of {head.server} GPUs cross the fabric"
        )
        return switches, outside
    return (*sorted(inside), *switches), cables
