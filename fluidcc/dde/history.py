"""History of a delay equation: a ring of records, one per step, and how to read between them.

Shapes: a record has a row per signal; the last axis is the point of a batch. In a ``values`` ring, a record
is the signals at one grid instant, enough when every lag is a whole number of steps. In a ``cubic`` ring, a
record is one interval: the signals and slopes at its two ends. Both slopes are one-sided, so a kink at a
grid instant costs no accuracy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax


@partial(jax.tree_util.register_dataclass, data_fields=["offset", "theta"], meta_fields=[])
@dataclasses.dataclass(frozen=True)
class Place:
    """Place of a lagged time on the grid, relative to the present step n.

    Parameters
    ----------
    offset : Array of int32
        Record to read is n + offset; never above -1 in a cubic ring.
    theta : Array
        Position inside it, in steps; in [0, 1] for lags of at least one step.
    """

    offset: Array
    theta: Array


def place(lag: Array, dt: Array, node: float, aligned: bool) -> Place:
    """Locate t_n + node*dt - lag.

    The whole and the fractional part are taken of the lag alone, relative to the present step: forming
    floor((t - lag)/dt) from absolute times gives wrong records under jit, because fused code rounds the
    index and the fraction differently. The barrier makes all that follows see one rounding of lag/dt.

    Parameters
    ----------
    lag, dt : Array
        In seconds; any shape for ``lag``.
    node : float
        Fraction of the step at which the stage stands, 0 to 1.
    aligned : bool
        Whether the lag is known to be a whole number of steps and the ring holds values.
    """
    steps = lax.optimization_barrier(lag / dt)
    # A lag that is a whole number of steps but for rounding is that whole number.
    whole = jnp.round(steps)
    near = jnp.abs(steps - whole) < 1e-9 * jnp.maximum(whole, 1.0)
    steps = steps + lax.stop_gradient(jnp.where(near, whole - steps, 0.0))
    position = node - steps
    if aligned:
        return Place(jnp.round(position).astype(jnp.int32), jnp.zeros_like(steps))
    offset = jnp.minimum(jnp.floor(position), -1.0)
    return Place(offset.astype(jnp.int32), position - offset)


@partial(jax.tree_util.register_dataclass, data_fields=["ring"], meta_fields=["signals", "cubic"])
@dataclasses.dataclass(frozen=True)
class History:
    """A ring of the last records.

    Parameters
    ----------
    ring : Array, shape (depth, rows, points)
        ``depth`` is a power of two; ``rows`` is ``signals``, or four times that in a cubic ring: value and
        right slope at the interval's start, value and left slope at its end, slopes per step.
    signals : int
    cubic : bool
    """

    ring: Array
    signals: int
    cubic: bool

    @property
    def depth(self) -> int:
        """Records that fit."""
        return self.ring.shape[0]

    def push(self, n: Array, record: Array) -> History:
        """Write the record of step n; must come before this step's reads, or XLA copies the whole ring."""
        slot = n & (self.depth - 1)
        ring = lax.dynamic_update_index_in_dim(self.ring, record, slot, 0, allow_negative_indices=False)
        return dataclasses.replace(self, ring=ring)

    def read(self, n: Array, where: Place, rows: tuple[int, ...], slopes: bool = False, linear: bool = False) -> Array:
        """Signals ``rows`` at a place, shape (len(rows), points); with ``slopes``, their slopes per step below.

        ``linear`` takes lines between the records of a cubic ring, without slopes.

        A place of size one serves all rows and points by one contiguous slice. Any other shape, (rows, 1) or
        (rows, points), gives each its own record.
        """
        take = self._slice if where.offset.size == 1 else self._gather
        if not self.cubic:
            return take(n, where, rows)
        if linear:
            start, end = self._parts(take, n, where, rows, (0, 2))
            return start + where.theta * (end - start)
        ends = self._parts(take, n, where, rows, (0, 1, 2, 3))
        values = hermite(where.theta, *ends)
        return jnp.concatenate([values, hermite_slope(where.theta, *ends)]) if slopes else values

    def at(self, n: Array, offset: Array, rows: tuple[int, ...], start_only: bool = False) -> list[Array]:
        """Signals ``rows`` at the start and the end of the records n + offset of a cubic ring, (len(rows), points)."""
        where = Place(offset, jnp.zeros(offset.shape))
        return self._parts(self._gather, n, where, rows, (0,) if start_only else (0, 2))

    def _parts(
        self, take: Callable[..., Array], n: Array, where: Place, rows: tuple[int, ...], parts: tuple[int, ...]
    ) -> list[Array]:
        """Parts of a cubic ring's records; gathered by one operation, which is compiled faster than several."""
        each = [tuple(part * self.signals + row for row in rows) for part in parts]
        if where.offset.size == 1:
            return [take(n, where, part) for part in each]
        if where.offset.shape[0] != 1:
            where = Place(jnp.concatenate([where.offset] * len(parts)), where.theta)
        return jnp.split(take(n, where, sum(each, ())), len(parts))

    def _slice(self, n: Array, where: Place, rows: tuple[int, ...]) -> Array:
        _, each, points = self.ring.shape
        index = (n + where.offset.reshape(())) & (self.depth - 1)
        first, count = rows[0], len(rows)
        whole = rows != tuple(range(first, first + count))
        begin, size = (index, np.int32(0 if whole else first), np.int32(0)), (1, each if whole else count, points)
        # As in `_gather`, indices without checks.
        block = lax.dynamic_slice(self.ring, begin, size, allow_negative_indices=False).reshape(size[1:])
        if not whole:
            return block
        return block.at[np.array(rows)].get(mode="promise_in_bounds", wrap_negative_indices=False)

    def _gather(self, n: Array, where: Place, rows: tuple[int, ...]) -> Array:
        depth, each, points = self.ring.shape
        index = ((n + where.offset) & (depth - 1)) * each + np.array(rows, np.int32)[:, None]
        # Indices without checks: else half of all that is compiled would be these.
        return jnp.take_along_axis(
            self.ring.reshape(depth * each, points),
            jnp.broadcast_to(index, (len(rows), points)),
            axis=0,
            mode="promise_in_bounds",
            wrap_negative_indices=False,
        )


def hermite(theta: Array, start: Array, right: Array, end: Array, left: Array) -> Array:
    """Cubic through two values with two slopes (per step); theta above 1 extrapolates."""
    rise = end - start
    bend = right - rise
    twist = left - rise
    return start + theta * (rise + (1.0 - theta) * (bend * (1.0 - theta) - twist * theta))


def hermite_slope(theta: Array, start: Array, right: Array, end: Array, left: Array) -> Array:
    """Slope (per step) of that cubic."""
    rise = end - start
    return right + theta * (2.0 * (3.0 * rise - 2.0 * right - left) + 3.0 * theta * (right + left - 2.0 * rise))


def constant_past(signals: Array, depth: int, cubic: bool) -> History:
    """History that has always been ``signals`` (signals, points)."""
    record = jnp.concatenate([signals, jnp.zeros_like(signals)] * 2) if cubic else signals
    return History(jnp.tile(record[None], (depth, 1, 1)), signals.shape[0], cubic)


def past_function(past: Any, dt: Array, depth: int, cubic: bool, dtype: Any) -> History:
    """History before t = 0 given by a differentiable function of time, ``past(t) -> (signals, points)``."""
    steps = jnp.arange(-depth, 0)
    slots = steps & (depth - 1)

    def record(j: Array) -> Array:
        at = partial(_value_and_slope, past, dt)
        start, right = at(j.astype(dtype))
        if not cubic:
            return start
        end, left = at((j + 1).astype(dtype))
        return jnp.concatenate([start, right, end, left])

    records = jax.vmap(record)(steps)
    ring = jnp.zeros_like(records).at[slots].set(records)
    signals = records.shape[1] // (4 if cubic else 1)
    return History(ring, signals, cubic)


def _value_and_slope(past: Any, dt: Array, step: Array) -> tuple[Array, Array]:
    value, slope = jax.jvp(lambda s: past(s * dt), (step,), (jnp.ones_like(step),))
    return value, slope


def ring_depth(longest_lag: float, dt: float) -> int:
    """Power of two that holds every record a lag up to ``longest_lag`` [s] can ask for."""
    return 1 << max(2, int(longest_lag / dt + 3).bit_length())
