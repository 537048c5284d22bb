"""Steps that each point of a batch chooses for itself, to a relative tolerance, with their past (docs: delay kernel).

The classical method of order 4, because its stages stand at two new instants only, and what depends on lagged signals
is most of a step. Its error is estimated from the slopes it has: at the start, the middle and the end of the step, and
in the middle of the step before.

The past is a ring of intervals, whose clock is the loop: every attempted step writes one record, contiguous over the
points. A point whose attempt failed, or that has come to its end, writes its last interval again, of which only the
first is ever found. Each point keeps a cursor per lag. Lagged times only go forward, so a cursor does too, by a step or
two at a time.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array, lax

from fluidcc.dde.history import hermite, hermite_slope
from fluidcc.dde.stepping import Clock, Lagged, Memory, State, System

LEAST_STEP = 1e-12  # s: taken whatever its error; a state that is not finite then stops its point
_FIRST_STEP = 1e-7  # s
_FLOOR = 0.1  # of a quantity's largest value so far: what its tolerance is relative to at least
_SAFETY, _SHRINK, _GROW = 0.9, 0.15, 4.0  # of the next step over this one
PASSED = 1e-13  # relative: an instant this little ahead has been reached
_NODES = (0.5, 1.0)  # instants of a step at which lagged signals are read; at its start they are known
# Of the four stages, and of the slope at the end: where they stand; of the slope before and of the mean slope, how much
# leads there; of their own, its share of the mean, and of that in the middle.
_STAGES = (
    (0.0, 0.0, 0.0, 1 / 6, 0.0),
    (0.5, 0.5, 0.0, 1 / 3, 0.5),
    (0.5, 0.5, 0.0, 1 / 3, 0.5),
    (1.0, 1.0, 0.0, 1 / 6, 0.0),
    (1.0, 0.0, 1.0, 0.0, 0.0),
)


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


class Adaptable(System, Protocol):
    """A system whose steps may differ from point to point, so that a clock's numbers are (points,).

    Nothing but projections changes its state at once.
    """

    @property
    def lags_move(self) -> bool:
        """Check whether lags follow the state, through the memory."""
        ...

    def bounded(self, y: State) -> State:
        """The nearest state within all limits."""
        ...

    def paced(self, z: Memory, ratio: Array) -> Memory:
        """The memory of a step that is ``ratio`` times as long as the last."""
        ...

    def settle(self, clock: Clock, z: Memory, stopped: State, feedback: Lagged) -> Memory:
        """The memory after a step, whose limits added ``stopped`` to the state. ``clock`` is at its end."""
        ...


class Steps(NamedTuple):
    """State that one attempt passes to the next; arrays end with the points' axis."""

    turn: Array  # () attempts so far
    time: Array  # (points,) [s]
    width: Array  # (points,) step to try next [s]
    y: State
    z: Memory
    feedback: Lagged  # at the present instant
    middle: State  # slopes in the middle of the last step
    before: Array  # (points,) its length [s]; 0 at first
    largest: State  # of |y| so far
    knots: Knots
    cursors: tuple[Array, ...]  # (lags, points) of each read
    last: Interval
    taken: Array  # (points,) steps
    failed: Array  # (points,) attempts in addition to them
    lost: Array  # (points,) whether its history was too short


class Step(NamedTuple):
    """One attempted step of each point."""

    took: Array  # (points,) whether the step was accepted
    time: Array  # (points,) its start [s]
    width: Array  # (points,) [s]
    y: State  # at its start
    z: Memory
    right: State  # slopes there, from within the step
    left: State  # and at its end


class _Stage(NamedTuple):
    """Values that one stage hands to the next: as few as possible, as XLA copies them each time."""

    slope: State  # its own, within limits
    total: State  # weighed sums of slopes: within limits,
    free: State  # and as the equations have them
    first: State  # slope at the step's start
    middle: State  # mean of those in its middle
    y: State


@dataclasses.dataclass(frozen=True)
class Adaptive:
    """A system, and how exact its steps are to be.

    Parameters
    ----------
    system : Adaptable
    rtol : Array, shape ()
        Estimated error of a step, relative to each quantity or a tenth of its largest value so far.
    shortest : Array, shape (points,) or ()
        Bound on the steps [s]: the shortest lag.
    """

    system: Adaptable
    rtol: Array
    shortest: Array

    def start(self, y: State, z: Memory, depth: int) -> Steps:
        """Return the `Steps` at t = 0, after a constant history."""
        signals = self.system.remembered(y)
        points, zero = signals.shape[1], jnp.zeros(signals.shape[1], signals.dtype)
        knots, turn = constant_past(signals, depth), jnp.int32(0)
        lags = self.system.lags(y, z, 0.0)
        cursors = tuple(jnp.zeros((1 if lag.size == 1 else lag.shape[0], points), jnp.int32) for lag in lags)
        feedback, cursors = self._look(knots, turn, cursors, zero, zero, z, y, jnp.asarray(0.0, zero.dtype))
        count = jnp.zeros(points, jnp.int32)
        still = jax.tree.map(jnp.zeros_like, y)
        return Steps(
            turn, zero, zero + _FIRST_STEP, y, z, feedback, still, zero, jax.tree.map(jnp.abs, y), knots, cursors,
            nothing(signals), count, count, zero > 1.0,
        )  # fmt: skip

    def _look(
        self,
        knots: Knots,
        turn: Array,
        cursors: tuple[Array, ...],
        time: Array,
        h: Array,
        z: Memory,
        y: State,
        node: Any,
    ) -> tuple[Lagged, tuple[Array, ...]]:
        """Feedback at an instant of the step, and the cursors there."""
        found, lagged = [], []
        for lag, read, cursor in zip(self.system.lags(y, z, node), self.system.reads, cursors, strict=True):
            at = jnp.broadcast_to(time + node * h - lag, cursor.shape)
            found.append(knots.find(turn, cursor, at))
            lagged.append(knots.read(found[-1], at, read.rows, read.slopes))
        return self.system.feedback(tuple(lagged)), tuple(found)

    def attempt(self, s: Steps, ahead: Array) -> tuple[Steps, Step]:
        """Try a step; points whose next instant to land on, ``ahead`` (points,), is reached already take none."""
        system = self.system
        knots = s.knots.push(s.turn, s.time, s.last)
        left = ahead - s.time
        live = left > PASSED * ahead
        h = jnp.clip(jnp.minimum(s.width, self.shortest), LEAST_STEP, jnp.where(live, left, 1.0))
        z = system.paced(s.z, jnp.where(s.before > 0, h / jnp.where(s.before > 0, s.before, 1.0), 0.0))

        # Loops over two instants and five stages: what a loop carries XLA computes once, and else in every use.
        def look(cursors: tuple[Array, ...], node: Array) -> tuple[tuple[Array, ...], Lagged]:
            feedback, cursors = self._look(knots, s.turn, cursors, s.time, h, z, s.y, node)
            return cursors, feedback

        cursors, feedbacks = lax.scan(look, s.cursors, jnp.asarray(_NODES, h.dtype))
        feedbacks = jax.tree.map(lambda now, later: jnp.concatenate([now[None], later]), s.feedback, feedbacks)
        clock = Clock(s.time / h, s.time, h)

        def stage(state: _Stage, k: Array) -> tuple[_Stage, None]:
            node, before, whole, weight, middle = jnp.asarray(_STAGES, h.dtype)[k]
            y = system.bounded(
                jax.tree.map(lambda base, a, b: base + h * (before * a + whole * b), s.y, state.slope, state.total)
            )
            heard = jax.tree.map(lambda f: lax.dynamic_index_in_dim(f, (2.0 * node).astype(int), 0, False), feedbacks)
            free = system.derivative(clock._replace(time=s.time + node * h), y, z, heard)
            # A state at a limit, which its slope would leave, stays: an empty queue, a rate at the line's.
            on = system.bounded(jax.tree.map(lambda a, b: a + h * b, y, free))
            slope = jax.tree.map(lambda a, b, c: jnp.where(a == b, 0.0, c), on, y, free)

            def add(share: Array, totals: State, values: State) -> State:
                return jax.tree.map(lambda a, b: a + share * b, totals, values)

            return _Stage(
                slope=slope,
                total=add(weight, state.total, slope),
                free=add(weight, state.free, free),
                first=jax.tree.map(lambda a, b: jnp.where(k == 0, a, b), slope, state.first),
                middle=add(middle, state.middle, slope),
                y=y,
            ), None

        still = jax.tree.map(jnp.zeros_like, s.y)
        begun = _Stage(still, still, still, still, still, s.y)
        (end, total, free, right, middle, new), _ = lax.scan(stage, begun, jnp.arange(5, dtype=jnp.int32))
        stopped = jax.tree.map(lambda a, b: h * (a - b), total, free)
        here = jax.tree.map(lambda f: f[-1], feedbacks)
        settled = system.settle(Clock((s.time + h) / h, s.time + h, h), z, stopped, here)
        error = self._error(s, h, (right, middle, end), new)
        if system.lags_move:
            error = jnp.maximum(error, self._lag_error(s.y, z, settled, h))

        finite = functools.reduce(jnp.logical_and, [jnp.isfinite(row) for row in _rows(new)])
        error = jnp.where(finite, error, jnp.inf)
        least = h <= LEAST_STEP
        took = live & ((error <= 1.0) | least)
        # A quarter: steps are as long as an error of order 4 allows, and shrink fast enough where it is of another.
        factor = jnp.clip(_SAFETY * jnp.maximum(error, 1e-12) ** -0.25, _SHRINK, _GROW)
        factor = jnp.where(error <= 1.0, factor, jnp.minimum(factor, _SAFETY))
        # A step that was cut short, to land on an instant, says nothing against the one that was to be.
        width = jnp.where(took & (h < s.width), jnp.maximum(h * factor, s.width), h * factor)

        def pick(new: Any, old: Any) -> Any:
            return jax.tree.map(lambda a, b: jnp.where(took, a, b), new, old)

        interval = Interval(*map(system.remembered, (s.y, right, new, end)))
        lost = s.lost | (live & self._forgotten(s, knots))
        dead = lost | (took & least & ~finite)
        y = jax.tree.map(lambda leaf: jnp.where(dead, jnp.nan, leaf), pick(new, s.y))
        steps = Steps(
            turn=s.turn + 1,
            time=jnp.where(dead, jnp.inf, jnp.where(took, s.time + h, s.time)),
            width=jnp.where(live, width, s.width),
            y=y,
            z=pick(settled, s.z),
            feedback=pick(here, s.feedback),
            middle=pick(middle, s.middle),
            before=jnp.where(took, h, s.before),
            largest=pick(jax.tree.map(lambda a, b: jnp.maximum(a, jnp.abs(b)), s.largest, new), s.largest),
            knots=knots,
            cursors=tuple(jnp.where(took, a, b) for a, b in zip(cursors, s.cursors, strict=True)),
            last=pick(interval, s.last),
            taken=s.taken + took,
            failed=s.failed + (live & ~took),
            lost=lost,
        )
        return steps, Step(took & ~dead, s.time, h, s.y, s.z, right, end)

    def _forgotten(self, s: Steps, knots: Knots) -> Array:
        """Check whether a lag reaches back beyond the history, (points,)."""
        found = [
            jnp.any(knots.forgotten(s.turn, cursor) & (s.time > lag), axis=0)
            for cursor, lag in zip(s.cursors, self.system.lags(s.y, s.z, 0.0), strict=True)
        ]
        return functools.reduce(jnp.logical_or, found)

    def _error(self, s: Steps, h: Array, slopes: tuple[State, State, State], new: State) -> Array:
        """Estimated error of a step over what is tolerated, (points,): the largest of all quantities.

        The less of two: by the second difference of slopes over the step, and by the third one, which reaches back into
        the step before and is of order 4, but sees there what this step no longer has.
        """
        back = jnp.where(s.before > 0, s.before, 1.0)

        def rows(
            y: Array, y_new: Array, right: Array, middle: Array, left: Array, before: Array, largest: Array
        ) -> list[Array]:
            second = jnp.abs(right - 2.0 * middle + left) * (h / 6.0)
            rise, fall = (middle - right) / (0.5 * h), (left - middle) / (0.5 * h)
            bend = (rise - (right - before) / (0.5 * back)) / (0.5 * (h + back))
            third = jnp.abs((fall - rise) / h - bend) / (h + 0.5 * back) * (h**4 / 8.0)
            estimate = jnp.where(s.before > 0, jnp.minimum(second, third), second)
            scale = jnp.maximum(jnp.maximum(jnp.abs(y), jnp.abs(y_new)), _FLOOR * largest)
            return list(estimate / (self.rtol * jnp.where(scale > 0, scale, 1.0)))

        found = jax.tree.map(rows, s.y, new, *slopes, s.middle, s.largest)
        return functools.reduce(jnp.maximum, jax.tree.leaves(found))

    def _lag_error(self, y: State, z: Memory, settled: Memory, h: Array) -> Array:
        """Return the error, over the tolerance, that wrong lags cause in a signal that changes within a lag."""
        taken, found = self.system.lags(y, z, 1.0), self.system.lags(y, settled, 0.0)
        off = [row for a, b in zip(taken, found, strict=True) for row in jnp.abs(a - b)]
        worst = functools.reduce(jnp.maximum, [jnp.broadcast_to(row, h.shape) for row in off])
        return worst * h / (self.shortest**2 * self.rtol)


def _rows(y: State) -> list[Array]:
    return [row for leaf in jax.tree.leaves(y) for row in leaf]


def within(system: Adaptable, step: Step, new: State, theta: Array) -> State:
    """The state in a step, at a fraction (points,) of it: the cubic through its ends, within limits."""

    def leaf(start: Array, end: Array, right: Array, left: Array) -> Array:
        return hermite(theta, start, step.width * right, end, step.width * left)

    return system.bounded(jax.tree.map(leaf, step.y, new, step.right, step.left))
