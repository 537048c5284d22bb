"""Integration of an equation: a step that suits its lags, halved until the solution no longer depends on it."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.checks import (
    check_lags,
    check_parameter,
    column,
    positive,
    refusing,
    shown,
    stacked,
    state_of,
    tried,
    whole,
)
from fluidcc.dde.equation import Array, Equation, Kernels, Same, check_equation
from fluidcc.dde.history import ring_depth
from fluidcc.dde.integrate import integrate
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.dataset import DatasetResult, Row
from fluidcc.results.drawing import draw
from fluidcc.surface import constructor, public

_FIRST = 8  # steps in the shortest lag, to begin with
_LEAST = 256  # steps in a run, to begin with
_LOOKS = 256  # times at least at which lags that depend on the state are looked at, if there are as many steps
_HALVINGS = 8
_MOST_STEPS = 50_000_000
_MOST_KEPT = 2**27  # numbers that are remembered
_TOLERANCE = 1e-6
_POINTS = 4096  # at once


def vectors_of(equation: Equation, over: Any) -> tuple[str | None, Array]:
    """The parameter that is given in several values, and all parameters (points, m)."""
    if over is None:
        return None, equation.vector[None]
    if not isinstance(over, Mapping) or len(over) != 1:
        raise InputError(f"over: {shown(over)}; give one parameter and its values, for example {{'tau': [1, 2]}}")
    ((name, values),) = over.items()
    check_parameter(equation, name, "over")
    values = column(f"over {name}", list(values) if isinstance(values, Iterable) else values)
    vectors = np.tile(equation.vector, (len(values), 1))
    vectors[:, list(equation.parameters).index(name)] = values
    if name in equation.lags and (values < 0).any():
        raise InputError(f"over {name}: {values.min():g} is a lag; give 0 or more")
    return name, vectors


def past_of(equation: Equation, past: Any) -> tuple[Array, Any]:
    """The state at 0, and the function of time that gives the past, if it is one."""
    if not callable(past):
        return state_of(equation, past, "past"), None
    n = len(equation.states)
    with our_settings():
        tried("past", lambda t: stacked(past(t), n, float), (0.0,), (jnp.asarray(0.0),))
        with refusing("past"):
            first = np.asarray(stacked(past(jnp.asarray(0.0)), n, float))
    return state_of(equation, first, "past(0)"), past


def lags_of(equation: Equation, vectors: Array, begin: Array) -> Array:
    """Lags (points, K) at a state."""
    with our_settings():
        found = np.asarray(jax.vmap(equation.kernels.lags, in_axes=(None, 0))(jnp.asarray(begin), jnp.asarray(vectors)))
    check_lags(found)
    return found


def bound_of(equation: Equation, lags: Array, longest: Any) -> float:
    """Return an upper bound of all lags."""
    if equation.state_dependent:
        if longest is None:
            raise InputError("longest_lag: needed, as lags depend on the state; give a bound")
        return positive("longest_lag", longest)
    return float(lags.max())


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Solution(DatasetResult):
    """A solution, made by `solve`.

    Parameters
    ----------
    dataset : xarray.Dataset
        Each state over ``time``, and over a parameter's values where several were given.
    dt : float
        Step of the solution.
    error : float
        Largest difference to the solution with twice the step, of each state's largest modulus, at the samples. Where
        all is smooth it is some times what is left. Where the right-hand side, or the past, jumps, the method is of
        first order and it may be ten times less than that.
    """

    KEPT: ClassVar[tuple[str, ...]] = ("time",)

    dt: float
    error: float

    def __repr__(self) -> str:
        """States, end and error."""
        end = float(self.dataset["time"][-1])
        sizes = "".join(f", {n} values of {name}" for name, n in self.dataset.sizes.items() if name != "time")
        names = ", ".join(str(name) for name in self.dataset.data_vars)
        return f"<Solution of {names} to {end:g}{sizes}; error {self.error:.1g} with a step of {self.dt:.3g}>"

    def _rows(self) -> list[Row]:
        data = self.dataset
        rows = [(str(n), f"{float(v.min()):.6g} to {float(v.max()):.6g}") for n, v in data.data_vars.items()]
        return [*rows, ("step", f"{self.dt:.3g}"), ("error", f"{self.error:.1g}")]

    @public()
    def plot(self, *, title: str | None = None) -> Any:
        """Plot each state over time; of two states or more also the second over the first.

        Parameters
        ----------
        title : str
            Above the picture.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_solution", self, title=title)


@public()
def solve(
    equation: Equation,
    until: float,
    *,
    past: Any,
    over: Mapping[str, Any] | None = None,
    samples: int = 1000,
    dt: float | None = None,
    tolerance: float = _TOLERANCE,
    longest_lag: float | None = None,
) -> Solution:
    """Integrate an equation.

    Parameters
    ----------
    equation : Equation
    until : float
        When to end.
    past : array_like, mapping or callable
        The state (n,) until time 0, constant, in order or by names; or ``past(t)`` for t <= 0, differentiable.
    over : mapping of str to sequence, optional
        One parameter and its values, which are integrated side by side.
    samples : int
        How many intervals are kept.
    dt : float, optional
        Longest step: it is taken, and then half of it, whose solution is returned. By default an eighth of the
        shortest lag, halved until the solution changes by less than the tolerance.
    tolerance : float
        Of the change, in shares of each state's largest modulus; where it is missed, a warning says so. Of no effect
        with ``dt``.
    longest_lag : float, optional
        Bound on lags that depend on the state; needed for these.

    Returns
    -------
    Solution

    Raises
    ------
    InputError
        If an argument makes no sense, a lag gets shorter than the step or longer than the bound, the solution is not
        finite, or steps would be too many.

    Notes
    -----
    Runge-Kutta's classical method with cubic Hermite polynomials for the past, of fourth order where the solution is
    smooth. It is not at multiples of the lags after 0 if the past does not end as the equation continues; steps are not
    placed there, so that the error falls more slowly at first. A pulse that is shorter than all steps that were tried
    may fall between them, in the past and in the right-hand side: it is missed, and the error does not tell. Give a
    ``dt`` that is shorter than it. Lags that depend on the state are looked at at the samples, and at 256 times at
    least if there are as many steps: one that is too short or too long in between only is missed in the same way.
    """
    check_equation(equation)
    kernels = equation.kernels
    until, samples, tolerance = positive("until", until), whole("samples", samples), positive("tolerance", tolerance)
    name, vectors = vectors_of(equation, over)
    begin, function = past_of(equation, past)
    lags = lags_of(equation, vectors, begin)
    shortest = float(np.min(lags[lags > 0], initial=until))
    bound = bound_of(equation, lags, longest_lag)
    zero = () if equation.state_dependent else tuple(int(k) for k in np.flatnonzero((lags == 0).all(axis=0)))
    if not equation.state_dependent and ((lags == 0).any(axis=0) & ~(lags == 0).all(axis=0)).any():
        raise InputError(f"over: a lag of 0 among longer ones; leave out {name} = 0, or solve it alone")
    wanted = min(shortest / _FIRST, until / _LEAST) if dt is None else positive("dt", dt)
    if wanted > shortest * (1 + 1e-9):
        raise InputError(f"dt: {wanted:g}; no step may be longer than the shortest lag, {shortest:g}")
    steps = until / wanted
    if not max(steps, samples) <= _MOST_STEPS:
        raise InputError(f"until: {max(steps, samples):.3g} steps of {wanted:.2g}; end sooner, or give fewer samples")
    stride = max(1, math.ceil(steps / samples * (1 - 1e-9)))
    looks = min(stride, math.ceil(_LOOKS / samples)) if equation.state_dependent else 1  # in each interval
    samples, stride = samples * looks, math.ceil(stride / looks)
    halvings = _HALVINGS if dt is None else 1
    with Bar("solving", len(vectors), "") as bar, our_settings():

        def run(stride: int) -> Array:
            if samples * stride > _MOST_STEPS:
                raise InputError(f"until: {samples * stride:.3g} steps of {until / (samples * stride):.2g}; end sooner")
            step = until / (samples * stride)
            if not bound / step * 4 * len(begin) * min(len(vectors), _POINTS) <= _MOST_KEPT:
                raise InputError(
                    f"until: with steps of {step:.2g}, a lag of {bound:.3g} is {bound / step:.2g} steps to remember; "
                    "end later, or give fewer samples or a greater dt"
                )
            depth = ring_depth(bound, step)
            key = ("solve", samples, depth, zero, Same(function))
            compiled = kernels.once(key, lambda: _compiled(kernels, samples, depth, zero, function, equation))
            parts = []
            for first in range(0, len(vectors), _POINTS):
                some = vectors[first : first + _POINTS]
                parts.append(
                    np.asarray(
                        compiled(jnp.asarray(begin), jnp.asarray(some.T), jnp.asarray(step), jnp.asarray(stride))
                    )
                )
            return np.concatenate(parts, axis=2)

        before, error = run(stride), math.inf
        states = before
        for k in range(halvings):
            stride *= 2
            states = run(stride)
            error = _difference(before, states)
            bar((k + 1) / halvings)
            if error <= tolerance:
                break
            before = states
        bar(1.0)
    if not np.isfinite(states).all():
        raise InputError("solve: the solution is not finite; give a shorter run, or a smaller dt")
    if dt is None and error > tolerance:
        text = (
            f"solve: with steps of {until / (samples * stride):.2g} the solution still changes by {error:.1g}, "
            f"more than the tolerance of {tolerance:.1g}; it may be chaotic, stiff or jump: end sooner, or give dt"
        )
        warnings.warn(text, UserWarning, stacklevel=3)
    step = until / (samples * stride)
    _check_lags(equation, vectors, states, step, bound)
    times = np.linspace(0.0, until, samples + 1)
    return Solution(_dataset(equation, times[::looks], states[::looks], name, vectors), step, error)


def _compiled(
    kernels: Kernels, samples: int, depth: int, zero: tuple[int, ...], past: Any, equation: Equation
) -> Callable[..., Any]:
    """States (samples + 1, n, points) from the state that stood still, parameters (m, points), step and stride."""
    varying, dependent = [k for k in range(len(equation.lags)) if k not in zero], equation.state_dependent

    def run(begin: Any, vectors: Any, dt: Any, stride: Any) -> Any:
        def rate(t: Any, x: Any, lagged: tuple[Any, ...]) -> Any:
            given = dict(zip(varying, lagged, strict=True))

            def one(x: Any, delayed: Any, vector: Any) -> Any:
                return kernels.rate(t, x, [delayed.get(k, x) for k in range(len(equation.lags))], vector)

            return jax.vmap(one, in_axes=(1, {k: 1 for k in given}, 1), out_axes=1)(x, given, vectors)

        def lags(x: Any) -> list[Any]:
            found = jax.vmap(kernels.lags, in_axes=(1, 1), out_axes=1)(x, vectors)
            return [found[k] for k in varying]

        def before(t: Any) -> Any:
            value = begin if past is None else stacked(past(t), len(begin), begin.dtype)
            return jnp.broadcast_to(value[:, None], (len(begin), vectors.shape[1])) + 0.0 * t

        return integrate(rate, before, lags, dt, samples=samples, stride=stride, depth=depth, state_dependent=dependent)

    return jax.jit(run)


def _difference(before: Array, after: Array) -> float:
    size = np.maximum(np.abs(after).max(axis=0), 1e-300)
    with np.errstate(invalid="ignore"):
        apart = (np.abs(after - before).max(axis=0) / size).max()
    return float(apart) if np.isfinite(apart) else math.inf


def _check_lags(equation: Equation, vectors: Array, states: Array, dt: float, bound: float) -> None:
    """Lags that depend on the state are seen after the run: by then it may have read what was not there."""
    if not equation.state_dependent:
        return
    with our_settings():
        each = jax.vmap(jax.vmap(equation.kernels.lags, in_axes=(1, 1)), in_axes=(0, None))
        lags = np.asarray(each(jnp.asarray(states), jnp.asarray(vectors.T)))
    if lags.min() <= 0:
        turns = "0" if lags.min() == 0 else f"negative, {lags.min():.3g},"
        raise InputError(
            f"lags: one turns {turns} on the way, where the past ends: no step helps; change the lag, or the "
            "parameters and the past that lead there, or stop before"
        )
    if lags.min() < dt * (1 - 1e-9):
        raise InputError(
            f"lags: one gets as short as {lags.min():.3g}, and the step is {dt:.3g}; give dt={lags.min() / 2:.2g}"
        )
    if lags.max() > bound * (1 + 1e-9):
        raise InputError(f"longest_lag: {bound:g}, but a lag reaches {lags.max():.6g}; give more")


def _dataset(equation: Equation, times: Array, states: Array, name: str | None, vectors: Array) -> xr.Dataset:
    dims = ("time",) if name is None else ("time", name)
    coords: dict[str, Any] = {"time": ("time", times, {"units": equation.time_unit, "long_name": "time"})}
    if name is not None:
        coords[name] = vectors[:, list(equation.parameters).index(name)]
    columns = {
        state: (dims, states[:, i, 0] if name is None else states[:, i], {"long_name": state})
        for i, state in enumerate(equation.states)
    }
    return xr.Dataset(columns, coords=coords)
