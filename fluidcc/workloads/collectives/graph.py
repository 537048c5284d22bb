"""Operations of ranks and their dependencies: sends over the fabric, and waits inside ranks.

A rank has received a transfer when its last byte arrives. Transfers of one connection follow each other as messages of
a queue pair do: each begins when the last byte of the previous one leaves.

A wait does not use the fabric: compute, a copy inside a server, or a join of what a rank has received. Its start is the
time at which all before it had ended.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np

from fluidcc.engines.flow_level.transfers import begin_after


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
