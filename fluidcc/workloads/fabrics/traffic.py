"""Traffic of a fabric's hosts: a published workload, a pattern, or a list of flows.

Workloads have names: a published distribution of flow sizes, a file's, or a mix of several.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidcc.builders.workloads import (
    SIZES,
    all_to_all_flows,
    incasts,
    load_of,
    mean_of,
    pair_flows,
    permutation_flows,
    poisson_flows,
    rebuild_flows,
)
from fluidcc.errors import InputError
from fluidcc.files import refuse_special
from fluidcc.surface import constructor, one_of, public
from fluidcc.units import RATIO, SIZE, TIME, quantity, whole
from fluidcc.workloads.fabrics.hpcc_files import FlowList, read_flows, read_sizes
from fluidcc.workloads.fabrics.htsim import read_connections
from fluidcc.workloads.fabrics.lines import LARGEST_LIST, Lines
from fluidcc.workloads.fabrics.topology import Topology

PATTERNS = ("permutation", "all-to-all")
KNOWN = ", ".join([*SIZES, *PATTERNS])

Sizes = Sequence[tuple[float, float]]  # size [bytes], and the share of flows of at most that size


class Part(NamedTuple):
    """One workload of a mix, and its share of the load."""

    name: str
    share: float


def parts_of(workload: str | os.PathLike[str]) -> list[Part]:
    """Return the parts of a workload: of ``A+B`` two with half the load each, of ``A:70%+B:30%`` as it says.

    Raises
    ------
    InputError
        If shares do not add up, are given for some parts only, or a part has no sizes.
    """
    text = os.fspath(workload)
    if text in PATTERNS or text in SIZES or os.path.exists(text) or "+" not in text:
        return [Part(text, 1.0)]
    words = [each.strip() for each in text.split("+")]
    if not all(words):
        raise InputError(f"workload: {text[:60]!r} lacks a part; write for example web-search+alibaba-storage")
    split = [(each, None) if _is_one(each) else _named(each) for each in words]
    names = [name for name, _ in split]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"workload: {twice[:60]!r} is in the mix twice; write it once, with its whole share")
    alien = next((name for name in names if name in PATTERNS), None)
    if alien is not None:
        raise InputError(f"workload: {alien} is all at once and has no load to share; a mix is of {', '.join(SIZES)}")
    given = [share for _, share in split if share is not None]
    if not given:
        return [Part(name, 1 / len(names)) for name in names]
    if len(given) < len(names):
        raise InputError(f"workload: {text[:60]!r} has shares of some parts only; give all of them, or none")
    if not math.isclose(sum(given), 1.0, rel_tol=1e-6):
        raise InputError(f"workload: the shares of {text[:60]!r} add up to {sum(given):.0%}, not to 100%")
    return [Part(name, share) for name, share in zip(names, given, strict=True)]


def sizes_of(workload: str | os.PathLike[str]) -> Sizes:
    """The distribution of flow sizes of a workload that has one.

    Flows of independent parts that arrive at random are, together, flows that arrive at random, whose sizes are of a
    part as often as it sends: its share of the load over its mean size.

    Raises
    ------
    InputError
        If a part is neither known nor a file, or as `parts_of`.
    """
    parts = parts_of(workload)
    tables = [np.array(_table(part.name)).T for part in parts]
    if len(parts) == 1:
        return [(float(at), float(share)) for at, share in tables[0].T]
    rates = np.array([part.share / mean_of(*table) for part, table in zip(parts, tables, strict=True)])
    at = np.unique(np.concatenate([table[0] for table in tables]))
    each = np.array([np.interp(at, *table, left=0.0, right=1.0) for table in tables])
    share = rates @ each
    return [(float(size), float(below)) for size, below in zip(at, share / share[-1], strict=True)]


def mean_size(workload: str | os.PathLike[str]) -> float:
    """Mean size of a workload's flows [bytes].

    Raises
    ------
    InputError
        As `sizes_of`.
    """
    return mean_of(*np.array(sizes_of(workload)).T)


def words_of(workload: str | os.PathLike[str]) -> str:
    """A workload in a few words, files without their folders."""
    parts = parts_of(workload)
    names = [os.path.basename(part.name) for part in parts]
    if len({part.share for part in parts}) == 1:
        return " + ".join(names)
    return " + ".join(f"{name} ({100 * part.share:g} %)" for name, part in zip(names, parts, strict=True))


def _is_one(name: str) -> bool:
    return name in SIZES or name in PATTERNS or os.path.exists(name)


def _named(text: str) -> tuple[str, float | None]:
    """Split ``NAME:SHARE`` into name and share."""
    name, colon, share = text.rpartition(":")
    if not colon:
        return text, None
    value = quantity(share, RATIO, "workload")
    if not 0 < value <= 1:
        raise InputError(f"workload: {share[:20]!r} of {name[:40]!r} is no share of the load; write for example 70%")
    return name.strip(), value


def _table(name: str) -> Sizes:
    if name in SIZES:
        return SIZES[name]
    if not os.path.exists(name):
        raise InputError(f"workload: {name[:60]!r} is neither known nor a file; {one_of(name, [*SIZES, *PATTERNS])}")
    return read_sizes(name)


@constructor()
@dataclasses.dataclass(frozen=True)
class Incast:
    """An incast mix: random senders send to one random receiver at once, again and again.

    Parameters
    ----------
    senders : int
        Number of senders of each incast.
    size : quantity
        Payload of each sender [bytes].
    load : quantity
        Of all together, over the rate of all hosts [1].
    """

    senders: int = 60
    size: Any = "500KB"  # HPCC 5.3: 60 senders, 500 KB each, 2 % of the capacity
    load: Any = 0.02

    def __post_init__(self) -> None:
        """Read with units."""
        object.__setattr__(self, "senders", whole(self.senders, 1, 1 << 20, "incast"))
        object.__setattr__(self, "size", quantity(self.size, SIZE, "incast"))
        object.__setattr__(self, "load", quantity(self.load, RATIO, "incast"))

    @classmethod
    def parsed(cls, text: str) -> Incast:
        """Parse ``DEGREE:SIZE:LOAD``, the form of the command line.

        Raises
        ------
        InputError
            If the text has another form.
        """
        parts = text.split(":")
        if len(parts) != 3 or not parts[0].strip().isdecimal():
            raise InputError(f"incast: {text[:40]!r} is no DEGREE:SIZE:LOAD; write for example 60:500KB:2%")
        return cls(int(parts[0]), parts[1], parts[2])


@constructor()
@dataclasses.dataclass(frozen=True)
class Traffic:
    """Flows of a fabric, for any seed.

    Parameters
    ----------
    workload : str or path, optional
        ``web-search``, ``hadoop``, ``alibaba-storage``, or a file of sizes and percents (`read_sizes`): flows between
        random hosts that arrive at random until ``until``; several of them with ``+`` between: a mix, in which each
        has an equal share of the load, or the one that it says (``hadoop:70%+web-search:30%``). ``permutation`` or
        ``all-to-all``: all at once, of ``size``.
    load : quantity
        Of a workload, or of all parts of a mix together, over the rate of all hosts [1]; half of it by default.
    until : quantity
        A workload's arrivals end then [s].
    incast : Incast or str, optional
        An incast in addition to the workload; text is ``DEGREE:SIZE:LOAD``.
    size : quantity
        Of a pattern's flows [bytes]; 1 MB by default.
    pairs : int, optional
        Instead of a load: n random pairs of hosts send a workload's flows back to back until the run ends, at
        ``until`` (`fluidcc.fabrics.pair_flows`).
    rebuild : int, optional
        In addition: n random hosts send to another from 0 until the run ends (`fluidcc.fabrics.rebuild_flows`).
    flows : FlowList, sequence of rows, or path, optional
        Instead of all that: flows as `Topology.scenario` takes them, a ``flow.txt``, or htsim's connection matrix.

    Raises
    ------
    InputError
        If there is nothing to send, or what is given does not fit together.
    """

    workload: str | os.PathLike[str] | None = None
    load: Any = None
    until: Any = None
    incast: Any = None
    size: Any = None
    pairs: Any = None
    rebuild: Any = None
    flows: Any = None

    def __post_init__(self) -> None:
        """Check that the fields fit together, and parse them."""
        if isinstance(self.incast, str):
            object.__setattr__(self, "incast", Incast.parsed(self.incast))
        if self.flows is not None:
            others = ("workload", "load", "until", "incast", "size", "pairs", "rebuild")
            alien = next((name for name in others if getattr(self, name) is not None), None)
            if alien is not None:
                raise InputError(f"{alien}: flows are listed already; leave it out, or the list")
            if isinstance(self.flows, (str, os.PathLike)):
                object.__setattr__(self, "flows", _listed(self.flows))
            return
        if self.workload is None and self.incast is None and self.rebuild is None:
            raise InputError(f"workload: nothing is sent; write one of {KNOWN}, or a file of sizes, or a list of flows")
        if self.pairs is not None and (self.workload is None or self.workload in PATTERNS):
            raise InputError("pairs: need flows' sizes; write workload='web-search', or another's, beside them")
        for name in ("pairs", "rebuild"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(getattr(self, name), 1, 4096, name))
        self._refuse_unused()
        if self.load is not None:
            object.__setattr__(self, "load", load_of(self.load))
        if self.workload not in PATTERNS or self.incast is not None or self.rebuild is not None:
            if self.until is None:
                raise InputError("until: says when arrivals end; write for example until='2ms'")
            object.__setattr__(self, "until", quantity(self.until, TIME, "until"))
        self._sizes()

    def _refuse_unused(self) -> None:
        """Refuse a field that would change nothing, by name."""
        pattern, at_random = self.workload in PATTERNS, self.incast is not None or self.rebuild is not None
        unused = {
            "load": self.workload is None or pattern or self.pairs is not None,
            "size": not pattern,
            "until": pattern and not at_random,
        }
        alien = next((name for name, no in unused.items() if no and getattr(self, name) is not None), None)
        if alien is not None:
            what = "pairs" if self.pairs is not None else self.workload or "an incast"
            raise InputError(f"{alien}: changes nothing for {str(what)[:60]}; leave it out")

    def _sizes(self) -> Any:
        name = self.workload
        return name if name is None or name in PATTERNS or name in SIZES else sizes_of(name)

    @property
    def _load(self) -> Any:
        return 0.5 if self.load is None else self.load

    @property
    def _size(self) -> Any:
        return "1MB" if self.size is None else self.size

    @property
    def endless(self) -> bool:
        """True if hosts send until the run ends: then no flow is waited for."""
        return self.pairs is not None or self.rebuild is not None

    @property
    def says(self) -> str:
        """Short description of the traffic."""
        if self.flows is not None:
            return f"{len(self.flows):,} flows of a list"
        if self.workload in PATTERNS:
            told = [f"{self.workload} of {quantity(self._size, SIZE, 'size') / 1e3:g} KB"]
        else:
            sent = f"by {self.pairs} pairs" if self.pairs is not None else f"at {_percent(self._load)} load"
            told = [] if self.workload is None else [f"{words_of(self.workload)} {sent}"]
        if self.rebuild is not None:
            told.append(f"rebuild from {self.rebuild}")
        if self.incast is not None:
            told.append(f"incast of {self.incast.senders} at {_percent(self.incast.load)}")
        return ", ".join(told)

    @public()
    def rows(self, topology: Topology, seed: int = 0) -> np.ndarray | Sequence[Any]:
        """The flows of a seed; those of a list are always the same.

        Parameters
        ----------
        topology : Topology
            Whose hosts send; loads are of their mean rate.
        seed : int

        Returns
        -------
        array, shape (flows, 4), or sequence
            Source, target, start [s] and size [bytes], by start; behind the flows of pairs, as
            `fluidcc.fabrics.pair_flows` has them, if there are any. A list as it was given.

        Raises
        ------
        InputError
            If a value makes no sense, or nothing is sent.
        """
        if self.flows is not None:
            return self.flows.rows if isinstance(self.flows, FlowList) else self.flows
        count, rate = len(topology.hosts), topology.host_rate
        parts, name = [], self._sizes()
        if self.workload == "permutation":
            parts.append(permutation_flows(count, size=self._size, seed=seed))
        elif self.workload == "all-to-all":
            parts.append(all_to_all_flows(count, size=self._size))
        elif name is not None and self.pairs is None:
            parts.append(poisson_flows(count, load=self._load, until=self.until, rate=rate, sizes=name, seed=seed))
        if self.incast is not None:
            mix = self.incast
            parts.append(
                incasts(
                    count, load=mix.load, until=self.until, senders=mix.senders, size=mix.size, rate=rate, seed=seed
                )
            )
        hosts = set(topology.hosts)
        fastest = max(cable.rate for cable in topology.cables if hosts.intersection(cable.ends))
        if self.rebuild is not None:
            parts.append(rebuild_flows(count, senders=self.rebuild, until=self.until, rate=fastest, seed=seed))
        rows = np.concatenate(parts) if parts else np.zeros((0, 4))
        if not len(rows) and self.pairs is None:
            raise InputError("until: no flow arrives in so short a time; write a longer one, or a larger load")
        rows = rows[np.argsort(rows[:, 2], kind="stable")]
        numbers = np.array(topology.hosts, float)
        rows[:, :2] = numbers[rows[:, :2].astype(int)]
        if self.pairs is None or name is None:
            return rows
        sent = pair_flows(count, pairs=self.pairs, until=self.until, rate=fastest, sizes=name, seed=seed)
        first = [(topology.hosts[int(row[0])], topology.hosts[int(row[1])], *row[2:]) for row in sent]
        return [*first, *((int(a), int(b), start, size) for a, b, start, size in rows.tolist())]


def _listed(path: str | os.PathLike[str]) -> Any:
    """Read the flows of a file, whichever of the two kinds it is."""
    expected = "a flow.txt, or a connection matrix of htsim"
    refuse_special(path, expected)  # it is read twice
    for words in Lines(path, expected, LARGEST_LIST).rows():
        return read_connections(path) if words[0] in ("Nodes", "Connections") else read_flows(path)
    raise InputError(f"{str(path)[:200]}: is empty; give {expected}")


def _percent(load: Any) -> str:
    return f"{100 * quantity(load, RATIO, 'load'):g} %"
