"""Files of the HPCC authors' public simulator (alibaba-edu/High-Precision-Congestion-Control): read, and written.

Nodes are numbered from 0. Lines that are empty or begin with # are left out; the simulator itself has none.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fluidcc.errors import InputError
from fluidcc.fabrics.slowdown import Slowdown
from fluidcc.fabrics.topology import Cable, Topology
from fluidcc.files import read_bounded, write_atomically
from fluidcc.surface import constructor, public
from fluidcc.units import RATE, TIME, parse

T = TypeVar("T")
_SOURCE_PORT = 10_000  # of the first flow between two hosts
# What a flow's line has, how it is read, and the least that makes sense.
_FLOW: dict[str, tuple[Callable[[str], Any], float]] = {
    "source": (int, 0),
    "target": (int, 0),
    "priority group": (int, 0),
    "port": (int, 0),
    "size": (int, 1),
    "start": (float, 0.0),
}
LARGEST_NODE = 1 << 20
_LARGEST = 1 << 30  # bytes of a list of flows


class Lines:
    """The lines of a file that hold something, with their numbers."""

    def __init__(self, path: str | os.PathLike[str], expected: str) -> None:
        self.name, self.expected = str(path)[:200], expected
        raw = b""
        try:
            raw = read_bounded(Path(path), _LARGEST)
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            at = raw.count(b"\n", 0, error.start) + 1
            raise InputError(f"{self.name}, line {at}: is no text (UTF-8); give {expected}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{self.name}: {reason}; give {expected}") from None
        self._rows = ((n, line.split()) for n, line in enumerate(text.splitlines(), 1) if line.strip()[:1] not in "#")
        self.at = 0

    def rows(self) -> Iterator[list[str]]:
        """What is left, in words."""
        for at, words in self._rows:
            self.at = at
            yield words

    def next(self, what: str) -> list[str]:
        """The next line."""
        for words in self.rows():
            return words
        raise InputError(f"{self.name}: ends before {what}; give {self.expected}")

    def wrong(self, text: str) -> InputError:
        """What is wrong with the last line read."""
        return InputError(f"{self.name}, line {self.at}: {text}")

    def number(self, word: str, read: Callable[[str], T], least: float, what: str) -> T:
        """One number of it."""
        try:
            value: Any = read(word)
        except ValueError:
            value = None
        if value is not None and value < least:
            raise self.wrong(f"{what} {word[:30]!r} is less than {least:g}; write at least that")
        if value is None or not value < float("inf"):
            raise self.wrong(f"{what} {word[:30]!r} is none; write {'a whole' if read is int else 'a'} number")
        return value


@public()
def read_topology(path: str | os.PathLike[str]) -> Topology:
    """Read a ``topology.txt``.

    A line with the numbers of nodes, switches and cables; a line with the switches; a line for each cable: two nodes,
    rate, delay and loss rate.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Topology

    Raises
    ------
    InputError
        If it is none, with the line.
    """
    lines = Lines(path, "the simulator's topology.txt: nodes, switches and cables")
    words, head = lines.next("its first line"), lines.at
    if len(words) != 3:
        raise lines.wrong(f"has {len(words)} entries, not the numbers of nodes, switches and cables")
    nodes, count, cables = (lines.number(word, int, 0, "a count") for word in words)
    if nodes > LARGEST_NODE:
        raise lines.wrong(f"{nodes:,} nodes are more than {LARGEST_NODE:,}")
    switches = tuple(lines.number(word, int, 0, "a node") for word in (lines.next("its switches") if count else []))
    if len(switches) != count or len(set(switches)) != count:
        raise lines.wrong(f"names {len(set(switches))} switches, not {count}")
    beyond = next((node for node in switches if node >= nodes), None)
    if beyond is not None:
        raise lines.wrong(f"node {beyond} is none of the {nodes}, which count from 0")
    found: list[Cable] = []
    at: dict[frozenset[int], int] = {}
    for words in lines.rows():
        found.append(_cable(lines, words, nodes))
        ends = frozenset(found[-1].ends)
        if ends in at:
            raise lines.wrong(f"nodes {words[0]} and {words[1]} have a cable already, in line {at[ends]}; keep one")
        at[ends] = lines.at
    if len(found) != cables:
        raise InputError(f"{lines.name}, line {head}: says {cables} cables, and the file has {len(found)}")
    hosts = tuple(sorted(set(range(nodes)) - set(switches)))
    try:
        return Topology(hosts, switches, tuple(found))
    except InputError as error:
        raise InputError(f"{lines.name}: {error}") from None


def _cable(lines: Lines, words: list[str], nodes: int) -> Cable:
    if len(words) != 5:
        raise lines.wrong(f"has {len(words)} entries, not two nodes, rate, delay and loss rate")
    a, b = (lines.number(word, int, 0, "a node") for word in words[:2])
    if max(a, b) >= nodes:
        raise lines.wrong(f"node {max(a, b)} is none of the {nodes}, which count from 0")
    try:
        rate, delay = parse(words[2], RATE, "rate"), parse(words[3], TIME, "delay")
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
    """

    rows: np.ndarray
    begins: float
    priority: np.ndarray
    port: np.ndarray
    where: tuple[str, ...] = ()

    def __len__(self) -> int:
        """How many there are."""
        return len(self.rows)

    def __repr__(self) -> str:
        """How many, and how long they come."""
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

    A line with the number of flows; a line for each, by start: source, target, priority group, the receiver's port,
    payload [bytes] and start [s].

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
    lines = Lines(path, "the simulator's flow.txt: a count, then a line for each flow")
    words, head = lines.next("its first line"), lines.at
    if len(words) != 1:
        raise lines.wrong(f"has {len(words)} entries, not the number of flows alone")
    count = lines.number(words[0], int, 0, "the number of flows")
    found, at = [], []
    for words in lines.rows():
        if len(words) != len(_FLOW):
            raise lines.wrong(f"has {len(words)} entries, not {', '.join(_FLOW)}")
        found.append(words)
        at.append(lines.at)
    if len(found) != count:
        raise InputError(f"{lines.name}, line {head}: says {count:,} flows, and the file has {len(found):,}")
    table = _numbers(lines, found, at)
    begins = float(table[:, 5].min(initial=np.inf)) if count else 0.0
    # As decimals: a float of 2.000000114 s less one of 2 s is off by what a packet takes at 400 Gb/s.
    start = np.round((table[:, 5] - begins) * 1e12) * 1e-12
    rows = np.column_stack([table[:, 0], table[:, 1], start, table[:, 4]])
    where = tuple(f"{lines.name}, line {number}" for number in at)
    return FlowList(rows, begins, table[:, 2].astype(int), table[:, 3].astype(int), where)


def _numbers(lines: Lines, found: list[list[str]], at: list[int]) -> np.ndarray:
    """All at once; one by one where some are none, to say which."""
    least = np.array([limit for _, limit in _FLOW.values()])
    whole = np.array([read is int for read, _ in _FLOW.values()])
    try:
        table = np.array(found, float).reshape(-1, len(_FLOW))
        fine = np.isfinite(table) & (table >= least) & (~whole | (np.floor(table) == table))
    except ValueError:
        fine = np.zeros((len(found), len(_FLOW)), bool)
        table = fine.astype(float)
    for k in np.flatnonzero(~fine.all(axis=1)):
        lines.at = at[k]
        table[k] = [
            lines.number(word, read, limit, what)
            for word, (what, (read, limit)) in zip(found[k], _FLOW.items(), strict=True)
        ]
    return table


@public()
def read_sizes(path: str | os.PathLike[str]) -> list[tuple[float, float]]:
    """Read a distribution of flow sizes, as the simulator's traffic generator has them: size [bytes] and percents.

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
            raise lines.wrong(f"has {len(words)} entries, not a size and the percents of flows up to it")
        size, percent = (
            lines.number(word, float, 0.0, what) for word, what in zip(words, ("size", "percents"), strict=True)
        )
        if found and (size < found[-1][0] or percent < 100 * found[-1][1]):
            raise lines.wrong("sizes and percents must grow from line to line")
        found.append((size, percent / 100))
    if len(found) < 2 or found[0][1] != 0 or found[-1][1] != 1:
        raise InputError(f"{lines.name}: goes not from 0 to 100 percent; give {lines.expected}")
    # A size of which two shares are given has those in between.
    return [each for k, each in enumerate(found) if k == 0 or each[0] > found[k - 1][0]]


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


def interfaces(topology: Topology) -> dict[tuple[int, int], int]:
    """Number of the interface, by a node and the one at the cable's other end: in the order of cables, from 1."""
    count: Counter[int] = Counter()
    found: dict[tuple[int, int], int] = {}
    for a, b in (cable.ends for cable in topology.cables):
        for here, there in ((a, b), (b, a)):
            count[here] += 1
            found[here, there] = count[here]
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
    """Of a node in that simulator: 11.a.b.1."""
    return 0x0B000001 + (node // 256) * 0x10000 + (node % 256) * 0x100
