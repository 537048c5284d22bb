"""History of points that each choose their own steps: a ring of intervals, and how lagged times are found in it.

The loop is the clock of the ring: every attempted step writes one record, contiguous over the points. A point whose
attempt failed, or that has come to its end, writes its last interval again, of which only the first is ever found.
Each point keeps a cursor per lag. Lagged times only go forward, so a cursor does too, by a step or two at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from fluidcc.dde.history import hermite, hermite_slope


class Interval(NamedTuple):
    """Signals and their slopes [1/s] at the two ends of a step, from within it; each (signals, points)."""

    start: Array
    right: Array
    end: Array
    left: Array


class Knots(NamedTuple):
    """The last intervals of every point."""

    ends: Array  # (depth, points) times [s] at which intervals end
    intervals: Interval  # each (depth, signals * points): an axis more makes XLA's gathers five times slower
    past: Array  # (signals, points) before t = 0

    @property
    def depth(self) -> int:
        """Intervals that fit, a power of two."""
        return self.ends.shape[0]

    def push(self, turn: Array, end: Array, interval: Interval) -> Knots:
        """Write the interval of the turn before; must come before the reads of this one."""
        slot = (turn - 1) & (self.depth - 1)
        ends = lax.dynamic_update_index_in_dim(self.ends, end, slot, 0)
        rings = (
            lax.dynamic_update_index_in_dim(ring, values.reshape(-1), slot, 0)
            for ring, values in zip(self.intervals, interval, strict=True)
        )
        return Knots(ends, Interval(*rings), self.past)

    def find(self, turn: Array, cursor: Array, time: Array) -> Array:
        """Cursors, (lags, points), moved on to the intervals in which times lie."""
        points = jnp.arange(self.ends.shape[1], dtype=jnp.int32)

        def on(state: tuple[Array, Array]) -> tuple[Array, Array]:
            at, _ = state
            end = self.ends.at[at & (self.depth - 1), points].get(mode="promise_in_bounds")
            behind = (end < time) & (at < turn - 1)
            return at + behind, behind

        return lax.while_loop(lambda state: jnp.any(state[1]), on, (cursor, jnp.full(cursor.shape, True)))[0]

    def forgotten(self, turn: Array, cursor: Array) -> Array:
        """Check whether the intervals at the cursors are overwritten, or the next to be; shaped as ``cursor``."""
        return turn - cursor > self.depth - 3

    def read(self, cursor: Array, time: Array, rows: tuple[int, ...], slopes: bool) -> Array:
        """Signals ``rows`` at times, (len(rows), points); with ``slopes``, theirs [1/s] below.

        Parameters
        ----------
        cursor : Array of int32, shape (1, points) or (len(rows), points)
        time : Array
            Of the same shape [s].
        rows : tuple of int
        slopes : bool
        """
        points = self.ends.shape[1]
        columns = jnp.arange(points, dtype=jnp.int32)
        values, rates = [], []
        for i, row in enumerate(rows):
            k = min(i, cursor.shape[0] - 1)
            at, when = cursor[k] & (self.depth - 1), time[k]
            end = self.ends.at[at, columns].get(mode="promise_in_bounds")
            begin = self.ends.at[(at - 1) & (self.depth - 1), columns].get(mode="promise_in_bounds")
            width = jnp.where(end > begin, end - begin, 1.0)
            theta = jnp.where(end > begin, jnp.clip((when - begin) / width, 0.0, 1.0), 1.0)
            start, right, stop, left = (
                lax.slice(ring, (0, row * points), (self.depth, (row + 1) * points))
                .at[at, columns]
                .get(mode="promise_in_bounds")
                for ring in self.intervals
            )
            before = when <= 0
            values.append(jnp.where(before, self.past[row], hermite(theta, start, right * width, stop, left * width)))
            if slopes:
                rate = hermite_slope(theta, start, right * width, stop, left * width) / width
                rates.append(jnp.where(before, 0.0, rate))
        return jnp.stack(values + rates)


def constant_past(signals: Array, depth: int) -> Knots:
    """Return a history without intervals, whose signals (signals, points) have been constant so far."""
    ring = jnp.zeros((depth, signals.size), signals.dtype)
    return Knots(jnp.zeros((depth, signals.shape[1]), signals.dtype), Interval(ring, ring, ring, ring), signals)


def nothing(signals: Array) -> Interval:
    """An interval of no length."""
    return Interval(signals, jnp.zeros_like(signals), signals, jnp.zeros_like(signals))
