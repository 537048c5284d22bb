"""Delay equations given as a plain function, for problems that are not networks.

>>> solution = solve(lambda t, y, lagged: -lagged[0], past=lambda t: jnp.ones(1), lags=[1.0], until=3.0, dt=0.1)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.dde.history import History, past_function, ring_depth
from fluidcc.dde.stepping import Clock, Loop, Read, advance, method_named
from fluidcc.errors import InputError


class Solution(NamedTuple):
    """Times (samples,) [s] and states (samples, n, points) of a delay equation."""

    time: Array
    state: Array


@dataclasses.dataclass(frozen=True)
class _Equation:
    """A `System` whose signals are its whole state, each lag read in full."""

    function: Callable[[Array, Array, tuple[Array, ...]], Array]
    lag_function: Callable[[Array], Sequence[Any]]
    state_dependent_lags: bool
    size: int
    count: int

    @property
    def reads(self) -> tuple[Read, ...]:
        return (Read(tuple(range(self.size))),) * self.count

    def remembered(self, y: Array) -> Array:
        return y

    def lags(self, y: Array, z: None, node: float) -> tuple[Array, ...]:
        def shaped(lag: Any) -> Array:
            lag = jnp.asarray(lag, y.dtype)
            # Per point: the same for every component of the state.
            return lag if lag.size == 1 else jnp.broadcast_to(lag, (self.size, y.shape[1]))

        return tuple(shaped(lag) for lag in self.lag_function(y))

    def look_back(self, history: History, n: Array, dt: Array, y: Array, z: None) -> None:
        return None

    def feedback(self, lagged: tuple[Array, ...]) -> tuple[Array, ...]:
        return lagged

    def derivative(self, clock: Clock, y: Array, z: None, feedback: tuple[Array, ...]) -> Array:
        return self.function(clock.time, y, feedback)

    def limited(self, y: Array) -> Array:
        return y

    def jump(self, clock: Clock, y: Array, z: None, feedback: Any) -> tuple[Array, None]:
        return y, None


def solve(
    function: Callable[[Array, Array, tuple[Array, ...]], Array],
    *,
    past: Callable[[Array], Array],
    lags: Sequence[Any] | Callable[[Array], Sequence[Any]],
    until: float,
    dt: float,
    method: str = "rk4",
    longest_lag: float | None = None,
    stride: int = 1,
) -> Solution:
    """Integrate y'(t) = f(t, y(t), [y(t - lag) for each lag]).

    Parameters
    ----------
    function : callable
        ``function(t, y, lagged) -> dy/dt``; ``y`` and each of ``lagged`` have shape (n,) or (n, points).
    past : callable
        ``past(t) -> y`` for t <= 0, differentiable, of that shape.
    lags : sequence of float or Array, or callable
        Constant lags [s], scalars or of shape (points,); or ``lags(y)`` for lags that depend on the state.
    until : float
        Horizon [s], a whole number of steps.
    dt : float
        Step [s]; no lag may be shorter.
    method : {"rk4", "heun", "euler"}
    longest_lag : float
        Bound on the lags [s]; needed if they are not plain numbers.
    stride : int
        Steps between samples.

    Returns
    -------
    Solution
        Sampled at 0, stride*dt, ... up to ``until``.

    Raises
    ------
    InputError
        If the step does not divide the horizon, or a lag is shorter than the step.
    """
    steps = round(until / dt)
    if steps < 1 or abs(steps * dt - until) > 1e-9 * until or steps % stride:
        raise InputError(f"dt: {dt} s times stride {stride} does not divide until = {until} s; give one that does")
    example = jax.eval_shape(past, jnp.zeros(()))
    flat = example.ndim == 1
    dtype = example.dtype
    state_dependent = callable(lags)
    if not state_dependent:
        plain = [lag for lag in lags if isinstance(lag, (int, float, np.ndarray))]
        if any(np.any(np.asarray(lag) < dt * (1 - 1e-9)) for lag in plain):
            raise InputError(f"lags: {plain} s; no lag may be shorter than dt = {dt} s, so give a smaller dt")
        if longest_lag is None and len(plain) == len(lags):
            longest_lag = float(max(np.max(lag) for lag in plain))
    if longest_lag is None:
        raise InputError("longest_lag: needed, because the lags are not plain numbers; give a bound in seconds")

    def columns(t: Array) -> Array:
        value = past(t)
        return value[:, None] if flat else value

    def wrapped(t: Array, y: Array, lagged: tuple[Array, ...]) -> Array:
        if not flat:
            return function(t, y, lagged)
        return function(t, y[:, 0], tuple(v[:, 0] for v in lagged))[:, None]

    def lag_function(y: Array) -> Sequence[Any]:
        if not callable(lags):
            return lags
        return [jnp.atleast_1d(lag) for lag in lags(y[:, 0] if flat else y)]

    states = integrate(
        wrapped,
        columns,
        lag_function,
        jnp.asarray(dt, dtype),
        samples=steps // stride,
        stride=stride,
        depth=ring_depth(longest_lag, dt),
        method=method,
        state_dependent=state_dependent,
    )
    time = jnp.arange(steps // stride + 1) * (stride * jnp.asarray(dt, dtype))
    return Solution(time, states[:, :, 0] if flat else states)


def integrate(
    function: Callable[[Array, Array, tuple[Array, ...]], Array],
    past: Callable[[Array], Array],
    lags: Callable[[Array], Sequence[Any]],
    dt: Array,
    *,
    samples: int,
    stride: int | Array,
    depth: int,
    method: str = "rk4",
    state_dependent: bool = False,
) -> Array:
    """States (samples + 1, n, points) of a delay equation, every ``stride`` steps; traceable.

    Parameters
    ----------
    function, past, lags : callable
        As of `solve`, of states (n, points); lags always a function of the state.
    dt : Array
        Step [s]; no lag may be shorter.
    samples : int
    stride : int or Array
        Steps between them; traced, one compilation serves any number.
    depth : int
        Steps that are remembered, a power of two (`fluidcc.dde.history.ring_depth`).
    method : {"rk4", "heun", "euler"}
    state_dependent : bool
        Whether lags depend on the state.
    """
    y = past(jnp.zeros((), dt.dtype))
    equation = _Equation(function, lags, state_dependent, y.shape[0], len(lags(y)))
    loop = Loop(equation, method_named(method), dt, aligned=False)
    history = past_function(past, dt, depth, cubic=True, dtype=dt.dtype)
    carry, _, trace = advance(
        loop,
        loop.start(y, None, history),
        None,
        lambda statistics, _: statistics,
        lambda c: c.y,
        samples=samples,
        stride=stride,
    )
    return jnp.concatenate([trace, carry.y[None]])
