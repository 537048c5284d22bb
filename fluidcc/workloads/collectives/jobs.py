"""Jobs: which ranks do which collective or replay which schedule, how often, with what compute between."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fluidcc.errors import InputError
from fluidcc.surface import constructor, nearest
from fluidcc.units import RATE, RATIO, SIZE, TIME, quantity, refuse_bare_rate, show, whole
from fluidcc.workloads.collectives.algorithms import KINDS, Ends, Kind, Team, done
from fluidcc.workloads.collectives.graph import Building, Graph
from fluidcc.workloads.collectives.schedule import Builder, Schedule

MOST_RANKS = 16384
_LARGEST = 1e15  # bytes
_CHUNKS = 16  # of a tree by default,
_LEAST = 4096  # or fewer, of so many bytes at least
_LONGEST = 1e3  # s


@constructor()
@dataclasses.dataclass(frozen=True)
class Job:
    """A collective that some ranks do, once or again and again.

    Parameters
    ----------
    kind : str
        ``all-reduce``, ``all-gather``, ``reduce-scatter``, ``all-to-all``, ``broadcast`` or ``pipeline``.
    bytes : quantity
        As nccl-tests count them: what a rank has, of all-gather and reduce-scatter what all have together; of a
        pipeline what a stage hands to the next for a whole batch [bytes].
    ranks : int, or tuple of int
        How many, placed with those of other jobs; or the host of each.
    steps : int
        How often it is done. A rank begins the next as it has all of the last.
    compute : quantity
        Of a rank before each; of a pipeline, of a stage for each of its chunks, there and back [s].
    chunks : int
        Rings side by side, each with its share; of trees, broadcast and pipeline parts that follow each other, each
        sent behind the one before. 1 by default; of trees, which would store and forward all at each rank, 16, or
        fewer of 4 KiB at least.
    algorithm : str
        ``ring`` or ``tree`` of all-reduce; the others have one.
    skew : quantity
        Of all-to-all: the k-th most popular rank receives a share as k to the power of minus this, as experts do; which
        is which is drawn by the seed. 0: all alike [1].
    server : int
        Ranks of one server, neighbours in order: they copy at ``server_rate``, and all-reduce, all-gather and
        reduce-scatter are done inside servers first, or last, with a ring of each rank's like between them.
    server_rate : quantity
        Of each rank inside its server, all its copies together, which follow each other [bytes/s].
    start : quantity
        Before the first [s].
    name : str

    Raises
    ------
    InputError
        If a value cannot be read, is out of range, or changes nothing.
    """

    kind: str
    bytes: Any = "1MB"
    ranks: Any = None
    steps: Any = 1
    compute: Any = 0.0
    chunks: Any = None
    algorithm: str | None = None
    skew: Any = None
    server: Any = 1
    server_rate: Any = None
    start: Any = 0.0
    name: str = ""

    def __post_init__(self) -> None:
        """Read with units."""
        kind = KINDS.get(self.kind) if isinstance(self.kind, str) else None
        if kind is None:
            near = nearest(self.kind, KINDS) if isinstance(self.kind, str) else None
            hint = f"did you mean {near}? All are" if near else "write one of"
            raise InputError(f"kind: {repr(self.kind)[:40]} is unknown; {hint} {', '.join(KINDS)}")
        server, rate = _server(self.server, self.server_rate)
        fields: dict[str, Any] = {
            "bytes": _within(self.bytes, SIZE, "bytes", 1.0, _LARGEST, "64MB"),
            "steps": whole(self.steps, 1, 100_000, "steps"),
            "compute": _within(self.compute, TIME, "compute", 0.0, _LONGEST, "1ms"),
            "chunks": whole(1 if self.chunks is None else self.chunks, 1, 4096, "chunks"),
            "skew": _within(0.0 if self.skew is None else self.skew, RATIO, "skew", 0.0, 10.0, "0.5"),
            "server": server,
            "start": _within(self.start, TIME, "start", 0.0, _LONGEST, "1ms"),
        }
        for name in ("chunks", "skew"):
            if getattr(self, name) is not None and name not in kind.takes:
                raise InputError(f"{name}: changes nothing for {self.kind}; leave it out")
        algorithm = next(iter(kind.algorithms)) if self.algorithm is None else self.algorithm
        if not isinstance(algorithm, str) or algorithm not in kind.algorithms:
            known = " or ".join(kind.algorithms)
            raise InputError(f"algorithm: {self.kind} has no {repr(self.algorithm)[:30]}; write {known}")
        if self.ranks is not None:
            fields["ranks"] = self._ranks(fields["server"])
        if self.chunks is None and algorithm == "tree":
            fields["chunks"] = max(1, min(_CHUNKS, int(fields["bytes"] / (2 * fields["server"] * _LEAST))))
        for name, value in (*fields.items(), ("algorithm", algorithm), ("server_rate", rate)):
            object.__setattr__(self, name, value)
        self._check_parts(kind)

    def _check_parts(self, kind: Kind) -> None:
        """Refuse transfers of less than a byte."""
        if self.ranks is None:
            return
        parts = kind.parts(self.algorithm or "", self.count, self.chunks, self.server)
        if self.bytes < parts:
            fewer = ", or fewer chunks" if self.chunks > 1 else ""
            raise InputError(
                f"bytes: {self.bytes:g} B are fewer than the {parts} parts that they are sent in; "
                f"write {parts}B or more{fewer}"
            )

    def _ranks(self, server: int) -> int | tuple[int, ...]:
        ranks = _hosts(self.ranks) if is_list(self.ranks) else None
        count = whole(len(ranks) if ranks is not None else self.ranks, 2, MOST_RANKS, "ranks")
        _divide(count, server)
        return count if ranks is None else ranks

    @property
    def count(self) -> int:
        """Number of ranks."""
        return len(self.ranks) if isinstance(self.ranks, tuple) else int(self.ranks)

    @property
    def factor(self) -> float:
        """Bus bandwidth over bytes per second, as nccl-tests have it."""
        return KINDS[self.kind].factor(self.count)

    @property
    def says(self) -> str:
        """Short description of the job."""
        told = f"{self.kind} ({self.algorithm}) of {show(self.bytes, SIZE)} on {self.count} ranks"
        return told + (f", {self.steps} times" if self.steps > 1 else "")


@constructor()
@dataclasses.dataclass(frozen=True)
class Replay:
    """A schedule or trace that ranks replay, once or again and again, alone or next to other jobs.

    Parameters
    ----------
    schedule : Schedule
        As `fluidcc.collectives.read_goal`, `read_simai` and `read_chakra` return it.
    ranks : tuple of int, optional
        The host of each; by default placed with those of other jobs.
    steps : int
        How often. A rank begins the next as it has done all of the last.
    start : quantity
        Before the first [s].
    name : str
    server, server_rate
        As of `Job`: ranks of one server, neighbours in order, copy inside it, and collectives go through it first.

    Raises
    ------
    InputError
        If a value cannot be read or is out of range.
    """

    schedule: Schedule
    ranks: Any = None
    steps: Any = 1
    start: Any = 0.0
    name: str = ""
    server: Any = 1
    server_rate: Any = None

    def __post_init__(self) -> None:
        """Read with units."""
        if not isinstance(self.schedule, Schedule):
            raise InputError(f"schedule: {repr(self.schedule)[:40]} is none; write read_goal('schedule.goal')")
        if self.ranks is not None:
            hosts = _hosts(self.ranks) if is_list(self.ranks) else ()
            if len(hosts) != self.count:
                raise InputError(f"ranks: the file has {self.count}; list as many hosts, or leave them out")
            object.__setattr__(self, "ranks", hosts)
        server, rate = _server(self.server, self.server_rate)
        _divide(self.count, server)
        fields: dict[str, Any] = {
            "steps": whole(self.steps, 1, 100_000, "steps"),
            "start": _within(self.start, TIME, "start", 0.0, _LONGEST, "1ms"),
            "server": server,
            "server_rate": rate,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def count(self) -> int:
        """Number of ranks."""
        return self.schedule.ranks

    @property
    def says(self) -> str:
        """Short description of the job."""
        told = f"{Path(self.schedule.name).name}: {len(self.schedule.operations):,} operations of {self.count} ranks"
        return told + (f", {self.steps} times" if self.steps > 1 else "")


def _server(server: Any, rate: Any) -> tuple[int, float]:
    """Read the number of ranks of a server, and the rate inside it [bytes/s], infinite without servers."""
    refuse_bare_rate(rate, "server_rate")
    found = whole(server, 1, 1024, "server")
    if found > 1 and rate is None:
        raise InputError("server_rate: none is given beside server; write for example 400GB/s")
    if found == 1 and rate is not None:
        raise InputError("server_rate: changes nothing without servers; write server=8 beside it")
    return found, math.inf if rate is None else _within(rate, RATE, "server_rate", 1.0, 1e15, "3.6Tbps")


def _divide(ranks: int, server: int) -> None:
    """Refuse ranks that are no whole number of servers."""
    if ranks % server:
        raise InputError(f"server: {ranks} ranks are no whole number of servers of {server}; write a divisor")


def _hosts(ranks: Any) -> tuple[int, ...]:
    """Read a list of hosts, one for each rank."""
    hosts = tuple(whole(each, 0, 1 << 30, "ranks") for each in ranks)
    if len(set(hosts)) < len(hosts):
        raise InputError("ranks: two are on one host, which has one NIC; give each rank a host")
    return hosts


def is_list(value: Any) -> bool:
    """Check whether a value is a list of values: list, tuple, range or one-dimensional array."""
    return isinstance(value, (list, tuple, range)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _within(value: Any, dimension: str, name: str, low: float, high: float, example: str) -> float:
    found = quantity(value, dimension, name)
    if not low <= found <= high:
        raise InputError(
            f"{name}: {show(found, dimension)} is not between {show(low, dimension)} and {show(high, dimension)}; "
            f"write for example {example}"
        )
    return float(found)


@dataclasses.dataclass(frozen=True)
class Work:
    """The graph of all jobs, and in it the waits that begin and end each repetition of a rank.

    Parameters
    ----------
    graph : Graph
    hosts : list of int
        Of each rank, through all jobs.
    begins, ends : list of list of list of int
        For each job and repetition, places of its ranks' waits.
    """

    graph: Graph
    hosts: list[int]
    begins: list[list[list[int]]]
    ends: list[list[list[int]]]


def work_of(jobs: Sequence[Job | Replay], hosts: Sequence[Sequence[int]], seed: int = 0) -> Work:
    """Build the graph of jobs on their hosts; the seed draws which ranks of a skewed all-to-all are popular."""
    graph = Building()
    placed, all_begins, all_ends = [host for each in hosts for host in each], [], []
    first = 0
    for j, job in enumerate(jobs):
        ranks = range(first, first + job.count)
        first += job.count
        if isinstance(job, Replay):
            begins, ends = _replayed(job, graph, j, ranks)
            all_begins.append(begins)
            all_ends.append(ends)
            continue
        weights = _weights(job, np.random.default_rng((seed, hosts[j][0])))
        begins, ends = [], []
        before: Ends = [[] for _ in ranks]
        for iteration in range(job.steps):
            graph.now = j, iteration
            pause = (job.start if iteration == 0 else 0.0) + (0.0 if job.kind == "pipeline" else job.compute)
            start = [[graph.wait(rank, pause, after)] for rank, after in zip(ranks, before, strict=True)]
            came = _collective(job, graph, ranks, start, weights)
            before = [[graph.wait(rank, 0.0, each)] for rank, each in zip(ranks, came, strict=True)]
            begins.append([each[0] for each in start])
            ends.append([each[0] for each in before])
        all_begins.append(begins)
        all_ends.append(ends)
    return Work(graph.done(), placed, all_begins, all_ends)


def _replayed(job: Replay, graph: Building, j: int, ranks: range) -> tuple[list[list[int]], list[list[int]]]:
    """Add a schedule as often as it is replayed; waits that begin and end each time."""
    builder, begins, ends = Builder(job.schedule, job.server, job.server_rate), [], []
    before: list[list[int]] = [[] for _ in ranks]
    for iteration in range(job.steps):
        graph.now = j, iteration
        if iteration or job.start:
            pause = 0.0 if iteration else job.start
            before = [[graph.wait(rank, pause, after)] for rank, after in zip(ranks, before, strict=True)]
        begins.append([place for each in before for place in each])
        came = builder.add_to(graph, ranks[0], before)
        last = [[graph.wait(rank, 0.0, each)] if each else [] for rank, each in zip(ranks, came, strict=True)]
        before = [mine or earlier for mine, earlier in zip(last, before, strict=True)]
        ends.append([place for each in last for place in each])
    return begins, ends


def _weights(job: Job, generator: np.random.Generator) -> np.ndarray | None:
    if not job.skew:
        return None
    weights = generator.permutation(np.arange(1, job.count + 1, dtype=float) ** -job.skew)
    return weights / weights.sum()


def _collective(job: Job, graph: Building, ranks: range, start: Ends, weights: np.ndarray | None) -> Ends:
    team = Team(
        graph, ranks, job.bytes, start, job.chunks, job.server, job.server_rate, job.compute, weights
    )  # fmt: skip
    return done(job.kind, team, job.algorithm)
