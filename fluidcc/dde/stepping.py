"""The integrator of delay-differential equations, by explicit Runge-Kutta methods: signals in, derivatives out.

It knows nothing of queues or congestion control. A `System` says which of its signals are remembered, which lags
it reads, and how feedback and derivatives follow from that; `Loop` advances it by fixed steps. Everything
has the points of a batch on its last axis, contiguous, so that each operation runs over them as one loop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array, lax

from fluidcc.dde.history import History, Place, place
from fluidcc.errors import InputError

State = Any
Memory = Any
Lagged = Any


@dataclasses.dataclass(frozen=True)
class Method:
    """Butcher tableau of an explicit method.

    Parameters
    ----------
    name : str
    order : int
        Order of convergence on smooth problems, delays included.
    nodes : tuple of float
    matrix : tuple of tuple of float
        Row i weighs the slopes of the stages before i.
    weights : tuple of float
    """

    name: str
    order: int
    nodes: tuple[float, ...]
    matrix: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]


EULER = Method("euler", 1, (0.0,), ((),), (1.0,))
HEUN = Method("heun", 2, (0.0, 1.0), ((), (1.0,)), (0.5, 0.5))
RK4 = Method(
    "rk4",
    4,
    (0.0, 0.5, 0.5, 1.0),
    ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)),
    (1 / 6, 1 / 3, 1 / 3, 1 / 6),
)
METHODS = {m.name: m for m in (EULER, HEUN, RK4)}


def method_named(name: str) -> Method:
    """Look a method up.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if not isinstance(name, str) or name not in METHODS:
        raise InputError(f"method: {repr(name)[:40]} is unknown; write one of {', '.join(METHODS)}")
    return METHODS[name]


class Clock(NamedTuple):
    """The present: step number (int32), the time [s] of the stage within it, and the step size [s]."""

    step: Array
    time: Array
    dt: Array


class Read(NamedTuple):
    """Signals that are read at one lag.

    Parameters
    ----------
    rows : tuple of int
        Rows of the remembered signals.
    slopes : bool
        Whether to read their slopes [1/s] too.
    linear : bool
        Whether to join records by lines, instead of cubics: for signals that are constant or linear within a step, or
        that a jump holds (the cubic through an empty queue, whose slopes are negative, is not 0).
    """

    rows: tuple[int, ...]
    slopes: bool = False
    linear: bool = False


class System(Protocol):
    """A system of delay-differential equations with jumps.

    The continuous state is a pytree ``y``, what only jumps change a pytree ``z``; leaves have the points on
    the last axis. `feedback` is evaluated once per distinct stage time and shared by the stages there, also
    across steps, unless `state_dependent_lags`.
    """

    @property
    def reads(self) -> tuple[Read, ...]:
        """Signals that are read at each lag."""
        ...

    @property
    def state_dependent_lags(self) -> bool:
        """Check whether `lags` depends on ``y``, so that each stage has its own."""
        ...

    def remembered(self, y: State) -> Array:
        """Signals (signals, points) that the history keeps: a linear map of the state."""
        ...

    def lags(self, y: State, z: Memory, node: float) -> tuple[Array, ...]:
        """Lags [s] at a stage; each of size one (shared by rows and points), (rows, 1) or (rows, points)."""
        ...

    def look_back(self, history: History, n: Array, dt: Array, y: State, z: Memory) -> Memory:
        """Set the part of the memory that the history decides, before step n from ``y``."""
        ...

    def feedback(self, lagged: tuple[Array, ...]) -> Lagged:
        """Reduce the lagged signals to what derivative and jump need: one array per read, slopes below values."""
        ...

    def derivative(self, clock: Clock, y: State, z: Memory, feedback: Lagged) -> State:
        """dy/dt."""
        ...

    def limited(self, y: State) -> State:
        """A stage's state put back within limits: one that runs along a limit is of first order without."""
        ...

    def jump(self, clock: Clock, y: State, z: Memory, feedback: Lagged) -> tuple[State, Memory]:
        """State after a step: projections, and whatever changes at once. ``clock`` is at the step's end."""
        ...


class Carry(NamedTuple):
    """State that one step passes to the next."""

    step: Array
    y: State
    z: Memory
    history: History
    interval: Array  # cubic ring: record of the interval that ended at this step
    feedback: Lagged  # at this step's start; None if lags depend on the state


@dataclasses.dataclass(frozen=True)
class Loop:
    """Integration of one system by one method with one step size.

    Parameters
    ----------
    system : System
    method : Method
    dt : Array, shape ()
        Step [s].
    aligned : bool
        Whether every lag is a whole number of steps and the method's nodes are 0 and 1 only; the history
        then needs no slopes.
    """

    system: System
    method: Method
    dt: Array
    aligned: bool

    def start(self, y: State, z: Memory, history: History) -> Carry:
        """State of the loop at t = 0."""
        zero = jnp.int32(0)
        slot = (zero - 1) & (history.depth - 1)
        last = lax.dynamic_index_in_dim(history.ring, slot, 0, keepdims=False)
        feedback = None
        if not self.system.state_dependent_lags:
            feedback = self._feedback(history, zero, self._places(y, z, 0.0))
        return Carry(zero, y, z, history, last, feedback)

    def step(self, carry: Carry) -> Carry:
        """Advance by dt."""
        system, method, n, y, z = self.system, self.method, carry.step, carry.y, carry.z
        record = system.remembered(y) if self.aligned else carry.interval
        history = carry.history.push(n if self.aligned else n - 1, record)
        z = system.look_back(history, n, self.dt, y, z)
        feedback = carry.feedback
        feedbacks = {0.0: feedback}
        slopes: list[State] = []
        time = n.astype(self.dt.dtype) * self.dt
        for node, row in zip(method.nodes, method.matrix, strict=True):
            stage = system.limited(_combine(y, self.dt, row, slopes)) if slopes else y
            if system.state_dependent_lags:
                feedback = self._feedback(history, n, self._places(stage, z, node))
            else:
                feedback = self._shared(feedbacks, history, n, y, z, node)
            slopes.append(system.derivative(Clock(n, time + node * self.dt, self.dt), stage, z, feedback))
        new = _combine(y, self.dt, method.weights, slopes)
        if not system.state_dependent_lags:
            ahead = self._shared(feedbacks, history, n, y, z, 1.0)
        elif method.nodes[-1] == 1.0:
            ahead = feedback
        else:
            ahead = self._feedback(history, n, self._places(new, z, 1.0))
        new, z = system.jump(Clock(n + 1, time + self.dt, self.dt), new, z, ahead)
        interval = carry.interval
        if not self.aligned:
            start, end = system.remembered(y), system.remembered(new)
            right, left = (self.dt * system.remembered(k) for k in (slopes[0], slopes[-1]))
            interval = jnp.concatenate([start, right, end, left])
        return Carry(n + 1, new, z, history, interval, None if system.state_dependent_lags else ahead)

    def _shared(
        self, feedbacks: dict[float, Lagged], history: History, n: Array, y: State, z: Memory, node: float
    ) -> Lagged:
        if node not in feedbacks:
            feedbacks[node] = self._feedback(history, n, self._places(y, z, node))
        return feedbacks[node]

    def _places(self, y: State, z: Memory, node: float) -> tuple[Place, ...]:
        return tuple(place(lag, self.dt, node, self.aligned) for lag in self.system.lags(y, z, node))

    def _feedback(self, history: History, n: Array, places: tuple[Place, ...]) -> Lagged:
        lagged = []
        for where, read in zip(places, self.system.reads, strict=True):
            values = history.read(n, where, read.rows, read.slopes, read.linear)
            if read.slopes:
                count = len(read.rows)
                values = jnp.concatenate([values[:count], values[count:] / self.dt])
            lagged.append(values)
        return self.system.feedback(tuple(lagged))


def _combine(y: State, dt: Array, weights: tuple[float, ...], slopes: list[State]) -> State:
    """Add dt * the sum of weighted slopes to y, leaving out zero weights."""
    used = [(w, k) for w, k in zip(weights, slopes, strict=False) if w]
    if not used:
        return y

    def leaf(base: Array, *ks: Array) -> Array:
        first, *others = (k if w == 1 else w * k for (w, _), k in zip(used, ks, strict=True))
        return base + dt * sum(others, first)

    return jax.tree.map(leaf, y, *(k for _, k in used))


def advance(
    loop: Loop,
    carry: Carry,
    statistics: Any,
    observe: Callable[[Any, Carry], Any],
    sample: Callable[[Carry], Any],
    *,
    samples: int,
    stride: int | Array,
    end: Array | None = None,
) -> tuple[Carry, Any, Any]:
    """Take ``samples * stride`` steps, or as many as there are until the end.

    Parameters
    ----------
    loop : Loop
    carry : Carry
        Where to start from.
    tally : pytree
        Online metrics; memory does not grow with the number of steps.
    observe : callable
        ``observe(tally, carry) -> tally``, called before every step.
    sample : callable
        ``sample(carry) -> pytree``, called before the first of every ``stride`` steps.
    samples : int
    stride : int or Array
        A traced stride compiles once for every horizon, but cannot be differentiated in reverse.
    end : Array
        Step that is the last to be taken, if the stride is traced; samples beyond repeat the last.

    Returns
    -------
    carry : Carry
    tally : pytree
    trace : pytree
        Leaves have ``samples`` on their first axis.
    """

    def one(state: tuple[Carry, Any], _: None) -> tuple[tuple[Carry, Any], None]:
        inner, counts = state
        return (loop.step(inner), observe(counts, inner)), None

    def block(state: tuple[Carry, Any], _: None) -> tuple[tuple[Carry, Any], Any]:
        taken = sample(state[0])
        if isinstance(stride, int):
            state, _ = lax.scan(one, state, None, length=stride)
        else:
            ahead = stride if end is None else jnp.clip(end + 1 - state[0].step, 0, stride)
            state = lax.fori_loop(0, ahead, lambda _, s: one(s, None)[0], state)
        return state, taken

    (carry, statistics), trace = lax.scan(block, (carry, statistics), None, length=samples)
    return carry, statistics, trace
