"""Results of ACC's maps: rates, halts and queue row by row, and what follows from them."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fluidcc.errors import InputError
from fluidcc.results.display import draw
from fluidcc.results.metrics import jain
from fluidcc.results.result import Comparable

if TYPE_CHECKING:
    from fluidcc.results.display import Picture

Array = np.ndarray[Any, Any]


class Fair(NamedTuple):
    """Time until shares are fair, counted from the row in which the last flow starts; inf where they never are.

    Parameters
    ----------
    cycles : ndarray
        Halts begun until then, (...).
    periods : ndarray
        Time until then, over T, (...).
    """

    cycles: Array
    periods: Array


@dataclasses.dataclass(frozen=True, eq=False)
class AccMap(Comparable):
    """A run of `fluidcc.theory.acc_map`. A row is a period, or of the algorithm a whole halt; the last one is not run.

    Parameters
    ----------
    form : str
    capacity, period : ndarray
        C and T [s], (...).
    time : ndarray
        When each row begins [s], (steps + 1, ...).
    recorded : ndarray
        S_i, (steps + 1, ..., N), in the unit of ``capacity``. 0 before the flow starts.
    sent : ndarray
        R_i, what is sent on average in the row, alike.
    queue : ndarray
        When each row begins, (steps + 1, ...), in C T [bytes].
    halted : ndarray
        Whether the row is a halt, (steps + 1, ...).
    joined : ndarray
        Whether the flow has started, (steps + 1, ..., N).
    """

    form: str
    capacity: Array
    period: Array
    time: Array
    recorded: Array
    sent: Array
    queue: Array
    halted: Array
    joined: Array

    def __getitem__(self, index: Any) -> AccMap:
        """Select one run, or some, of a batch."""
        after = (slice(None), *(index if isinstance(index, tuple) else (index,)))
        rows = {name: getattr(self, name)[after] for name in ("time", "recorded", "sent", "queue", "halted", "joined")}
        links = {name: np.asarray(getattr(self, name)[index]) for name in ("capacity", "period")}
        return dataclasses.replace(self, **links, **rows)

    @cached_property
    def shares(self) -> Array:
        """phi_i = S_i / sum S, (steps + 1, ..., N)."""
        total = self.recorded.sum(axis=-1, keepdims=True)
        return self.recorded / np.where(total > 0, total, 1)

    @cached_property
    def jain(self) -> Array:
        """Jain's index of the shares of the flows that have started, (steps + 1, ...)."""
        return jain(self.recorded, self.joined)

    @cached_property
    def served(self) -> Array:
        """Amount that the link served in each row, (steps, ...) [bytes]: what was sent and is not queued."""
        return self.sent[:-1].sum(axis=-1) * np.diff(self.time, axis=0) - np.diff(self.queue, axis=0)

    @cached_property
    def cycles(self) -> Array:
        """Halts begun until each row, it included, (steps + 1, ...)."""
        begins = self.halted.copy()
        begins[1:] &= ~self.halted[:-1]
        return begins.cumsum(axis=0)

    @cached_property
    def cycle(self) -> Array:
        """Length of the last cycle [s], (...): from the end of a halt to that of the next; inf where there is none."""
        complete, first, last = self._last_cycle
        return np.where(complete, _at(self.time, last) - _at(self.time, first), np.inf)[()]

    @cached_property
    def cycle_periods(self) -> Array:
        """Length of the last cycle over T, (...); inf where there is none."""
        return np.where(self._last_cycle[0], self.cycle / self.period, np.inf)[()]

    @cached_property
    def utilization(self) -> Array:
        """Bytes served over those of a busy link, in the last cycle, (...); in the last row where there is no cycle."""
        _, first, last = self._last_cycle
        done = np.concatenate([0 * self.served[:1], self.served.cumsum(axis=0)])
        spent = _at(self.time, last) - _at(self.time, first)
        return (_at(done, last) - _at(done, first)) / (self.capacity * spent)

    @cached_property
    def peak(self) -> Array:
        """Largest queue in the last cycle, (...) [bytes]; 0 where there is none. ``queue.max(0)``: of the run."""
        complete, first, last = self._last_cycle
        row = _rows(self.queue)
        return np.where(complete & (row >= first) & (row <= last), self.queue, 0).max(axis=0)

    @cached_property
    def peak_periods(self) -> Array:
        """`peak` over C T, (...)."""
        return self.peak / (self.capacity * self.period)

    def fair(self, tol: float = 0.01, *, jain: float | None = None) -> Fair:
        """Find when all flows have started and each share stays within ``tol`` of 1/N for the rest of the run.

        Parameters
        ----------
        tol : float
            Largest abs(phi_i - 1/N), in (0, 1).
        jain : float
            Instead, the least index of Jain, in (0, 1).

        Returns
        -------
        Fair

        Raises
        ------
        InputError
            If a number is out of range.
        """
        name, value = ("tol", tol) if jain is None else ("jain", jain)
        if not 0 < value < 1:
            raise InputError(f"{name}: {value}; give a number between 0 and 1, for example 0.01 of tol or 0.99 of jain")
        gap = np.where(self.joined, abs(self.shares - 1 / self._flows[..., None]), 0).max(axis=-1)
        good = gap <= tol if jain is None else self.jain >= jain
        complete = (self.joined == self.joined[-1]).all(axis=-1)
        lasting = np.logical_and.accumulate((good & complete)[::-1], axis=0)[::-1]
        first, start = lasting.argmax(axis=0), complete.argmax(axis=0)
        found = lasting.any(axis=0)
        cycles = np.where(start > 0, _at(self.cycles, np.maximum(start - 1, 0)), 0)
        spent = (_at(self.time, first) - _at(self.time, start)) / self.period
        return Fair(np.where(found, _at(self.cycles, first) - cycles, np.inf)[()], np.where(found, spent, np.inf)[()])

    def summary(self, tol: float = 0.01) -> dict[str, Array]:
        """Utilisation, peak queue [bytes, and over C T], cycle [s, and over T], and when shares are fair (`fair`)."""
        fair = self.fair(tol)
        return {
            "utilization": self.utilization,
            "peak": self.peak,
            "peak_periods": self.peak_periods,
            "cycle": self.cycle,
            "cycle_periods": self.cycle_periods,
            "fair_cycles": fair.cycles,
            "fair_periods": fair.periods,
        }

    def plot(self, *, title: str | None = None) -> Picture:
        """Rates sent, queue and shares over time, of a run that is no batch."""
        return draw("plot_maps", [self], title=title)

    @cached_property
    def _flows(self) -> Array:
        """Number of flows that have started, (steps + 1, ...), at least 1."""
        return np.maximum(self.joined.sum(axis=-1), 1)

    @cached_property
    def _last_cycle(self) -> tuple[Array, Array, Array]:
        """Check whether there is a whole cycle, and return the rows that it is between; else the last two."""
        row = _rows(self.queue)
        ends = np.zeros(self.halted.shape, dtype=bool)
        ends[1:] = self.halted[:-1] & ~self.halted[1:]
        last = np.where(ends, row, -1).max(axis=0)
        first = np.where(ends & (row < last), row, -1).max(axis=0)
        complete = first > 0  # no cycle ends in the first row
        return complete, np.where(complete, first, len(ends) - 2), np.where(complete, last, len(ends) - 1)


class AccMaps(NamedTuple):
    """Both forms of `fluidcc.theory.acc_map`, from the same start."""

    appendix: AccMap
    algorithm: AccMap

    def summary(self, tol: float = 0.01) -> dict[str, dict[str, Array]]:
        """`AccMap.summary` of each, by its name."""
        return {run.form: run.summary(tol) for run in self}

    def plot(self, *, title: str | None = None) -> Picture:
        """`AccMap.plot` of both, side by side."""
        return draw("plot_maps", list(self), title=title)


def _rows(like: Array) -> Array:
    """Numbers of the rows, to be broadcast."""
    return np.arange(len(like)).reshape(-1, *(1 for _ in like.shape[1:]))


def _at(values: Array, row: Array) -> Array:
    """The entries in these rows, (...)."""
    return np.take_along_axis(values, np.asarray(row)[None], axis=0)[0]
