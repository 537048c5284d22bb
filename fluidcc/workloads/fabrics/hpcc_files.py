"""Files of the HPCC authors' public simulator (alibaba-edu/High-Precision-Congestion-Control): read, and written.

Nodes are numbered from 0. Lines that are empty or begin with # are left out; the simulator itself has none. Counts and
cables of a ``topology.txt`` are read as these simulators do: as many as the first line announces, and nothing behind
them. Numbers are as ns-3 reads them: a bare rate is in bits/s there, and a bare time in seconds.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fluidcc.errors import InputError
from fluidcc.files import write_atomically
from fluidcc.surface import constructor, public
from fluidcc.units import LEAST_RATE, RATE, TIME, Rate, parse
from fluidcc.workloads.fabrics.lines import LARGEST_LIST, Lines
from fluidcc.workloads.fabrics.slowdowns import Slowdown
from fluidcc.workloads.fabrics.topology import Cable, Topology

LARGEST_NODE = 1 << 20
_ENTRIES = 5  # of a cable: two nodes, rate, delay and loss rate
_HEADS = (
    "nodes, switches and cables (HPCC's simulator); nodes, switches, ToRs and cables (PowerTCP's); or nodes, GPUs of a "
    "server, NVSwitches, switches, cables and the GPU's name (SimAI's)"
)
_SOURCE_PORT = 10_000  # of the first flow between two hosts
_PORT = 100  # of flows without one, as the simulator's traffic generator writes it


def ns3_rate(text: str, name: str) -> Rate:
    """Read a rate with or without a unit [bytes/s].

    Parameters
    ----------
    text : str
        Such as ``100Gbps``, or ``100000000000.0``, as scripts that generate topologies print it.
    name : str
        What the rate is, for the error message.

    Raises
    ------
    InputError
        If it is none; and if it is bare and less than a megabit each second, which is a forgotten unit.
    """
    try:
        bits = float(text)
    except ValueError:
        return Rate(parse(text, RATE, name))
    if 0 < bits < LEAST_RATE:
        raise InputError(f"{name}: {text[:30]} without a unit is in bits/s there; write for example 100Gbps")
    if not 0 <= bits < math.inf:
        raise InputError(f"{name}: {text[:30]!r} is none; write for example 100Gbps")
    return Rate(bits / 8)


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


class _Field(NamedTuple):
    """An entry of a flow's line, and its range."""

    read: Callable[[str], Any]
    least: float
    most: float = math.inf


_FLOW = {
    "source": _Field(int, 0, LARGEST_NODE),
    "target": _Field(int, 0, LARGEST_NODE),
    "priority group": _Field(int, 0, 2**16 - 1),
    "port": _Field(int, 0, 2**16 - 1),
    "size": _Field(int, 1, 2**53),  # beyond, a float holds no bytes
    "start": _Field(float, 0.0),
}


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class FlowList:
    """Flows of a file.

    Parameters
    ----------
    rows : ndarray, shape (flows, 4)
        Source, target, start [s] after the first, payload [bytes].
    begins : float
        When the first starts, in the file's time [s].
    priority, port : ndarray of int, shape (flows,)
        Priority group, and the receiver's port.
    where : tuple of str
        File and line of each, for messages; empty if there is none.
    words : tuple of str
        What is not as in the file.
    """

    rows: np.ndarray
    begins: float
    priority: np.ndarray
    port: np.ndarray
    where: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of flows."""
        return len(self.rows)

    def __repr__(self) -> str:
        """Show the number of flows, and the time of the last start."""
        return f"<FlowList {len(self):,} flows over {self.rows[:, 2].max(initial=0.0):.6g} s>"


def check_hosts(flows: FlowList, topology: Topology) -> None:
    """Refuse a flow between what are no hosts of a topology, or from a host to itself, by its line.

    Raises
    ------
    InputError
    """
    hosts = np.array(topology.hosts)
    ends = flows.rows[:, :2].astype(int)
    wrong = np.flatnonzero(~np.isin(ends, hosts).all(axis=1) | (ends[:, 0] == ends[:, 1]))
    if not len(wrong):
        return
    i = int(wrong[0])
    alien = next((end for end in ends[i].tolist() if end not in topology.hosts), None)
    what = (
        f"node {alien} is no host of the topology" if alien is not None else f"leads from host {ends[i, 0]} to itself"
    )
    raise InputError(f"{flows.where[i] if flows.where else f'flow {i}'}: {what}; give one of its {len(hosts)} hosts")


@public()
def read_flows(path: str | os.PathLike[str]) -> FlowList:
    """Read a ``flow.txt``.

    A line with the number of flows; a line for each, by start: source, target, priority group, the receiver's port
    (ConWeave's have none), payload [bytes] and start [s]. What is behind as many lines as the first announces is left
    out, as in that simulator.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    FlowList

    Raises
    ------
    InputError
        If it is none, with the line.
    """
    lines = Lines(path, "the simulator's flow.txt: a count, then a line for each flow", LARGEST_LIST)
    words, head = lines.next("its first line"), lines.at
    if len(words) != 1:
        raise lines.wrong(f"has {len(words)} entries, not the number of flows alone")
    count = lines.number(words[0], int, 0, "the number of flows")
    found, at = [], []
    extra = 0  # flows beyond those announced
    for words in lines.rows():
        if len(found) == count:
            extra += len(words) in (len(_FLOW), len(_FLOW) - 1) and words[0].isdecimal() and words[1].isdecimal()
            continue
        if len(words) == len(_FLOW) - 1:
            words = [*words[:3], str(_PORT), *words[3:]]
        if len(words) != len(_FLOW):
            raise lines.wrong(f"has {len(words)} entries, not {', '.join(_FLOW)}")
        found.append(words)
        at.append(lines.at)
    if len(found) < count:
        raise InputError(f"{lines.name}, line {head}: says {count:,} flows, and the file has {len(found):,}")
    said = (f"{lines.name}, line {head}: says {count:,} flows, and {extra:,} more are left out",) if extra else ()
    table = _numbers(lines, found, at)
    begins = float(table[:, 5].min(initial=np.inf)) if count else 0.0
    # As decimals: a float of 2.000000114 s less one of 2 s is off by what a packet takes at 400 Gb/s.
    start = np.round((table[:, 5] - begins) * 1e12) * 1e-12
    rows = np.column_stack([table[:, 0], table[:, 1], start, table[:, 4]])
    where = tuple(f"{lines.name}, line {number}" for number in at)
    return FlowList(rows, begins, table[:, 2].astype(int), table[:, 3].astype(int), where, said)


def _numbers(lines: Lines, found: list[list[str]], at: list[int]) -> np.ndarray:
    """Parse all numbers at once; those of invalid lines one by one, to report which is wrong."""
    fields = _FLOW.values()
    least, most = (np.array([getattr(field, name) for field in fields]) for name in ("least", "most"))
    whole = np.array([field.read is int for field in fields])
    try:
        table = np.array(found, float).reshape(len(found), len(_FLOW))
        inside = np.isfinite(table) & (table >= least) & (table <= most)
        fine = inside & (~whole | (np.floor(table) == table))
    except ValueError:
        fine = np.zeros((len(found), len(_FLOW)), bool)
        table = fine.astype(float)
    for k in np.flatnonzero(~fine.all(axis=1)):
        lines.at = at[k]
        table[k] = [
            lines.number(word, field.read, field.least, what, field.most)
            for word, (what, field) in zip(found[k], _FLOW.items(), strict=True)
        ]
    return table


@public()
def read_sizes(path: str | os.PathLike[str]) -> list[tuple[float, float]]:
    """Read a distribution of flow sizes: sizes [bytes], and the percents of flows up to each.

    Of a file that ends at 1 the second column is fractions: others than the simulator's traffic generator have these.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    list of (size, share)
        For ``sizes`` of `poisson_flows`.

    Raises
    ------
    InputError
        If it is none, with the line.
    """
    lines = Lines(path, "lines of a size and the percents of flows up to it")
    found: list[tuple[float, float]] = []
    for words in lines.rows():
        if len(words) != 2:
            raise lines.wrong(f"has {len(words)} entries, not a size [bytes] and the percents of flows up to it")
        size, percent = (
            lines.number(word, float, 0.0, what) for word, what in zip(words, ("size", "percents"), strict=True)
        )
        if found and (size < found[-1][0] or percent < found[-1][1]):
            raise lines.wrong("sizes and percents must grow from line to line")
        found.append((size, percent))
    whole = found[-1][1] if found else 0.0
    if len(found) < 2 or found[0][1] != 0 or whole not in (1.0, 100.0):
        raise InputError(f"{lines.name}: goes not from 0 to 100 percent, or from 0 to 1; give {lines.expected}")
    return _rising([(size, share / whole) for size, share in found])


def _rising(found: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Make sizes rise: one of which several shares are given has the flows between the first and the last of these."""
    shares: dict[float, list[float]] = defaultdict(list)
    for size, share in found:
        shares[size].append(share)
    rising = []
    for size, each in shares.items():
        if each[-1] > each[0]:  # a step: from just below that size to it, and sizes of flows are rounded up
            rising.append((math.nextafter(size, 0.0), each[0]))
            size = size or math.nextafter(0.0, 1.0)
        rising.append((size, each[-1]))
    return rising


@public()
def write_fct(path: str | os.PathLike[str], flows: FlowList, found: Slowdown) -> Path:
    """Write an ``fct.txt``, as the simulator does and its users' scripts read it.

    A line for each flow that finished, in the order in which they did: addresses of source and target, ports, size
    [bytes], start, completion time, and that in an idle network [ns].

    Parameters
    ----------
    path : str or path
    flows : FlowList
    found : Slowdown
        Of these flows, in their order; with ``ideal="hpcc-sim"`` the last column is the simulator's.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        If the flows are others, or it cannot be written.
    """
    took, alone = (found.dataset[name].values for name in ("completion", "alone"))
    if len(took) != len(flows):
        raise InputError(
            f"write_fct: {len(flows)} flows were read and {len(took)} run; give the results of these flows"
        )
    between: dict[tuple[int, int], int] = {}
    ports = []
    for source, target in flows.rows[:, :2].astype(int).tolist():
        ports.append(between.setdefault((source, target), _SOURCE_PORT))
        between[source, target] += 1
    start = np.round((flows.rows[:, 2] + flows.begins) * 1e9).astype(int)
    ends = flows.rows[:, 2] + took
    text = []
    for i in np.argsort(ends, kind="stable"):
        if np.isnan(took[i]):
            continue
        source, target = (_address(int(node)) for node in flows.rows[i, :2])
        text.append(
            f"{source:08x} {target:08x} {ports[i]} {flows.port[i]} {int(flows.rows[i, 3])} {start[i]} "
            f"{round(float(took[i]) * 1e9)} {math.floor(float(alone[i]) * 1e9 + 1e-3)}\n"  # as that simulator, down
        )
    return write_atomically(Path(path), "".join(text).encode())


def interfaces(topology: Topology) -> dict[tuple[int, int], list[int]]:
    """Numbers of the interfaces, by a node and the one at the cables' other end: in the order of cables, from 1."""
    count: Counter[int] = Counter()
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for a, b in (cable.ends for cable in topology.cables):
        for here, there in ((a, b), (b, a)):
            count[here] += 1
            found[here, there].append(count[here])
    return found


@public()
def write_pfc(path: str | os.PathLike[str], topology: Topology, frames: np.ndarray, begins: float = 0.0) -> Path:
    """Write a ``pfc.txt``, as the simulator does.

    A line for each frame of flow control, as it arrives: time [ns], the node that is to stop or go on, whether that is
    a switch, its interface in the order of cables from 1, and 1 for PAUSE or 0 for RESUME.

    Parameters
    ----------
    path : str or path
    topology : Topology
    frames : ndarray, shape (frames, 4)
        As of `FabricRun`.
    begins : float
        When the first flow starts, in the file's time: as of `FlowList` [s].

    Returns
    -------
    Path

    Raises
    ------
    InputError
        If it cannot be written.
    """
    switches, text = set(topology.switches), []
    for time, node, interface, pauses in frames.tolist():
        ns = round((time + begins) * 1e9)
        text.append(f"{ns} {int(node)} {int(node in switches)} {int(interface)} {int(pauses)}\n")
    return write_atomically(Path(path), "".join(text).encode())


def _address(node: int) -> int:
    """Return the address of a node in that simulator: 11.a.b.1."""
    return 0x0B000001 + (node // 256) * 0x10000 + (node % 256) * 0x100
