"""Graphs of operations: sends over the fabric, waits inside ranks, and what each of them waits for.

A rank has received a transfer when its last byte arrives. Transfers of one connection follow each other as messages of
a queue pair do: each begins when the last byte of the previous one leaves.

A wait does not use the fabric: compute, a copy inside a server, or a join of what a rank has received. Its start is the
time at which all before it had ended.

A graph is built one operation at a time or many at once: rings of a thousand ranks have millions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fluidcc.engines.flow_level.transfers import begin_after
from fluidcc.errors import InputError

MOST_OPERATIONS = 1 << 22  # of an engine that needs no flow for each; `Graph` says what they take
After = Sequence[int] | np.ndarray
_COLUMNS: dict[str, Any] = {
    "source": np.int32, "target": np.int32, "size": float, "delay": float, "job": np.int32, "iteration": np.int32,
    "step": np.int32, "channel": np.int32, "queue": np.int8,
}  # fmt: skip
_ANY_ORDER, _IN_ORDER, _COPY = range(3)  # what an operation follows beside what it waits for


@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """Operations in an order in which all can be done: each after some before it.

    Ranks are numbered through all jobs. A million operations take some 100 MB here, and four times that in a run.

    Parameters
    ----------
    source, target : ndarray of int, shape (operations,)
        The rank that does it, and the one that receives it, the same of a wait.
    size : ndarray, shape (operations,)
        [bytes], 0 of a wait.
    delay : ndarray, shape (operations,)
        After the last of ``after`` [s].
    job, iteration, step : ndarray of int, shape (operations,)
        Of it; step -1 of what is no transfer.
    channel : ndarray of int, shape (operations,)
        Which connection between two ranks a send is of.
    after : ndarray of int, shape (waits,)
        Places of the operations that each waits for, one after the other.
    after_at : ndarray of int, shape (operations + 1,)
        From where to where in ``after`` those of an operation are.
    """

    source: np.ndarray
    target: np.ndarray
    size: np.ndarray
    delay: np.ndarray
    job: np.ndarray
    iteration: np.ndarray
    step: np.ndarray
    channel: np.ndarray
    after: np.ndarray
    after_at: np.ndarray

    def __len__(self) -> int:
        """Return the number of operations."""
        return len(self.source)

    def before(self, i: int) -> list[int]:
        """Return the operations that an operation waits for."""
        return self.after[self.after_at[i] : self.after_at[i + 1]].tolist()

    @cached_property
    def sends(self) -> np.ndarray:
        """True for operations that cross the fabric, (operations,)."""
        return self.size > 0

    @cached_property
    def behind(self) -> np.ndarray:
        """True for each of ``after`` whose last byte's departure is waited for, not its arrival: one rank sends both.

        A wait departs and arrives when it begins.
        """
        of = np.repeat(np.arange(len(self)), np.diff(self.after_at))
        return self.sends[of] & self.sends[self.after] & (self.source[of] == self.source[self.after])

    def longest(self, left: np.ndarray, arrived: np.ndarray) -> float:
        """Return the length [s] of the longest chain; operations leave and arrive so long after begin (operations,)."""
        begins = np.zeros(len(self))
        begin_after(self.after, self.after_at, self.behind, self.delay, left, arrived, begins)
        return float((begins + arrived).max(initial=0.0))

    def critical(self, began: np.ndarray, left: np.ndarray, arrived: np.ndarray) -> list[int]:
        """Return the chain behind the wait that began last: for each operation, what released it last."""
        at = int(np.argmax(np.where(self.sends, 0.0, began)))
        chain = [at]
        while self.after_at[at] < self.after_at[at + 1]:
            mine = slice(self.after_at[at], self.after_at[at + 1])
            before = self.after[mine]
            at = int(before[np.argmax(np.where(self.behind[mine], left[before], arrived[before]))])
            chain.append(at)
        return chain[::-1]

    def ended(self, began: np.ndarray, finished: np.ndarray) -> np.ndarray:
        """Return the ends of operations [s] (operations,): a wait's as it began, which is after its delay."""
        return np.where(self.sends, finished, began)


class Building:
    """Operations as they are added, in an order in which all can be done: each after some before it.

    Transfers of a connection (two ranks and a channel), if they are in order, and copies of a rank inside its server,
    follow each other: what each is behind need not be said.
    """

    def __init__(self) -> None:
        self.now: tuple[int, int] = 0, 0  # job and iteration of what is added
        self._count = 0
        self._rows: list[tuple[Any, ...]] = []  # added one by one, not yet in columns
        self._after: list[After] = []  # of these
        self._columns: dict[str, list[np.ndarray]] = {name: [] for name in _COLUMNS}
        self._waits: list[np.ndarray] = []
        self._counts: list[np.ndarray] = []  # how many of the waits each operation has

    def __len__(self) -> int:
        """Return the number of operations."""
        return self._count

    def send(
        self,
        source: int,
        target: int,
        size: float,
        after: After = (),
        step: int = 0,
        channel: int = 0,
        *,
        in_order: bool = True,
    ) -> int:
        """Add a transfer over the fabric, behind the last of its connection if they are in order; its place."""
        return self._add(source, target, _whole(size), 0.0, after, step, channel, _IN_ORDER if in_order else _ANY_ORDER)

    def wait(self, rank: int, delay: float, after: After = ()) -> int:
        """Add a time that passes in a rank; its place."""
        return self._add(rank, rank, 0.0, delay, after, -1, 0, _ANY_ORDER)

    def copy(self, source: int, target: int, delay: float, after: After = (), step: int = 0) -> int:
        """Add a copy inside a server that takes so long, behind the last that its rank has sent there; its place."""
        return self._add(source, target, 0.0, delay, after, step, 0, _COPY)

    def send_all(
        self,
        source: Any,
        target: Any,
        size: Any,
        after: np.ndarray | None = None,
        step: Any = 0,
        channel: Any = 0,
    ) -> np.ndarray:
        """Add transfers at once, each in order behind the last of its connection; their places (transfers,).

        Parameters
        ----------
        source, target : ndarray, shape (transfers,)
        size, step, channel : float or int, or ndarray
            Of all, or of each.
        after : ndarray, shape (transfers, waits), or None
            What each waits for; none of them if there is none.
        """
        self._settle()
        count = len(source)
        self._grow(count)
        values = {
            "source": source, "target": target, "size": np.maximum(1.0, np.round(size)), "delay": 0.0,
            "job": self.now[0], "iteration": self.now[1], "step": step, "channel": channel, "queue": _IN_ORDER,
        }  # fmt: skip
        for name, kind in _COLUMNS.items():
            self._columns[name].append(np.full(count, values[name], kind))
        waits = 0 if after is None else after.shape[1]
        if after is not None:
            self._waits.append(after.ravel().astype(np.int32))
        self._counts.append(np.full(count, waits, np.int32))
        return np.arange(self._count - count, self._count)

    def _add(
        self, source: int, target: int, size: float, delay: float, after: After, step: int, channel: int, queue: int
    ) -> int:
        self._grow(1)
        self._rows.append((source, target, size, delay, *self.now, step, channel, queue))
        self._after.append(after)
        return self._count - 1

    def _grow(self, count: int) -> None:
        if self._count + count > MOST_OPERATIONS:
            raise InputError(
                f"collective: has more than {MOST_OPERATIONS:,} transfers; give fewer ranks, chunks or steps"
            )
        self._count += count

    def _settle(self) -> None:
        """Move the operations that were added one by one into columns."""
        if not self._rows:
            return
        for (name, kind), values in zip(_COLUMNS.items(), zip(*self._rows, strict=True), strict=True):
            self._columns[name].append(np.array(values, kind))
        self._waits.append(np.array([k for each in self._after for k in each], np.int32))
        self._counts.append(np.array([len(each) for each in self._after], np.int32))
        self._rows, self._after = [], []

    def done(self) -> Graph:
        """Return the whole graph, as arrays."""
        self._settle()
        columns = {
            name: np.concatenate(parts) if parts else np.zeros(0, _COLUMNS[name])
            for name, parts in self._columns.items()
        }
        waits, counts = (
            np.concatenate(parts) if parts else np.zeros(0, np.int32) for parts in (self._waits, self._counts)
        )
        last = _last_of_queue(columns)
        del columns["queue"]
        after, after_at = _with_last(waits, counts, last)
        return Graph(**columns, after=after, after_at=after_at)


def _whole(size: float) -> float:
    return max(1.0, round(size))


def _last_of_queue(columns: dict[str, np.ndarray]) -> np.ndarray:
    """Return for each operation the previous one of its connection, or of its rank's copies; -1 if none."""
    queue = columns["queue"]
    last = np.full(len(queue), -1, np.int32)
    for kind, names in ((_IN_ORDER, ("channel", "target", "source")), (_COPY, ("source",))):
        mine = np.flatnonzero(queue == kind)
        keys = np.array([columns[name][mine] for name in names])
        order = np.lexsort(keys)  # stable: in the order in which they were added
        same = (np.diff(keys[:, order], axis=1) == 0).all(axis=0)
        last[mine[order[1:][same]]] = mine[order[:-1][same]]
    return last


def _with_last(waits: np.ndarray, counts: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Add to each operation's waits the last of its queue, unless it is there; waits and offsets as in `Graph`."""
    owner = np.repeat(np.arange(len(counts)), counts)
    more = last >= 0
    more[owner[waits == last[owner]]] = False
    at = np.concatenate([[0], np.cumsum(counts + more)])
    after = np.empty(at[-1], np.int32)
    after[at[1:][more] - 1] = last[more]
    after[np.arange(len(waits)) + (np.cumsum(more) - more)[owner]] = waits
    return after, at
