"""A delay-differential equation that a user wrote down, and the functions that are computed from it.

>>> def mackey_glass(t, x, delayed, p):
...     return [p.beta * delayed[0][0] / (1 + delayed[0][0] ** p.n) - p.gamma * x[0]]
>>> blood = Equation(mackey_glass, lags=["tau"], parameters={"beta": 0.2, "gamma": 0.1, "n": 10, "tau": 17})
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import partial_eval

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.checks import (
    Array,
    argument_count,
    check_names,
    listed,
    named,
    number,
    numbers,
    scalar,
    shown,
    stacked,
    tried,
)
from fluidcc.dde.checks import state_of as state_of
from fluidcc.errors import InputError
from fluidcc.surface import constructor, public, refuse_unknown

_SMALLEST = 64  # of a batch of several
_FUNCTIONS = 32  # compiled of one equation; the oldest goes first


class Named(types.SimpleNamespace):
    """Parameters as attributes; of a name that is not there it says which are."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse_unknown([name], vars(self), "p")
        raise AttributeError(name)


class Kernels:
    """Traceable functions of an equation, with parameters as a vector (m,).

    One object serves an equation and its copies with other parameters.
    """

    def __init__(self, function: Any, lags: tuple[Any, ...], names: tuple[str, ...], order: int) -> None:
        self._function, self._lags, self._names = function, lags, names
        self.order = order
        self.compiled: dict[Any, Any] = {}

    def named(self, vector: Any) -> Any:
        """Parameters as attributes."""
        return Named(**{name: vector[i] for i, name in enumerate(self._names)})

    def rate(self, t: Any, x: Any, delayed: Sequence[Any], vector: Any) -> Any:
        """dx/dt, (n,)."""
        return stacked(self._function(t, x, tuple(delayed), self.named(vector)), self.order, x.dtype)

    def lags(self, x: Any, vector: Any) -> Any:
        """Lags at a state, (K,)."""
        p = self.named(vector)
        found = [
            vector[self._names.index(lag)] if isinstance(lag, str) else lag(x, p) if callable(lag) else lag
            for lag in self._lags
        ]
        return jnp.stack([jnp.asarray(lag, x.dtype) for lag in found])

    def still(self, x: Any, vector: Any) -> Any:
        """Compute dx/dt of a state that has stood still for all time, (n,)."""
        return self.rate(0.0, x, (x,) * len(self._lags), vector)

    def jacobians(self, x: Any, vector: Any) -> tuple[Any, Any, Any]:
        """A0 (n, n), A (K, n, n), and the lags (K,), at an equilibrium.

        A lag that depends on the state is taken as it is there: what it looks back on has not moved.
        """
        still = (x,) * len(self._lags)
        own = jax.jacfwd(lambda now: self.rate(0.0, now, still, vector))(x)
        lagged = jax.jacfwd(lambda past: self.rate(0.0, x, past, vector))(still)
        return own, jnp.stack(lagged), self.lags(x, vector)

    @functools.cached_property
    def timed(self) -> bool:
        """Check whether the right-hand side uses the time, at any time and value, by the program that JAX traces."""
        with our_settings():
            x = jnp.zeros(self.order)
            vector = jnp.zeros(len(self._names))
            traced = jax.make_jaxpr(lambda t, x, v: self.rate(t, x, (x,) * len(self._lags), v))(0.0, x, vector)
        _, used = partial_eval.dce_jaxpr(traced.jaxpr, [True] * len(traced.jaxpr.outvars), instantiate=False)
        return bool(used[0])

    def uses(self, name: str) -> bool:
        """Check whether the right-hand side, or a lag that is a function, uses a parameter."""

        def all_of_it(x: Any, *values: Any) -> Any:
            p = Named(**dict(zip(self._names, values, strict=True)))
            rate = stacked(self._function(0.0, x, (x,) * len(self._lags), p), self.order, x.dtype)
            return rate, [jnp.asarray(lag(x, p), x.dtype) for lag in self._lags if callable(lag)]

        with our_settings():
            x = jnp.zeros(self.order)
            traced = jax.make_jaxpr(all_of_it)(x, *(jnp.zeros(()) for _ in self._names))
        _, used = partial_eval.dce_jaxpr(traced.jaxpr, [True] * len(traced.jaxpr.outvars), instantiate=False)
        return bool(used[1 + self._names.index(name)])

    def once(self, name: Any, make: Callable[[], Any]) -> Any:
        """A compiled function by what tells it from others, made when first asked for."""
        if name not in self.compiled:
            self.compiled[name] = make()
            while len(self.compiled) > _FUNCTIONS:
                del self.compiled[next(iter(self.compiled))]
        return self.compiled[name]


class Same:
    """A key that is only equal to one of the very same object, which it keeps alive."""

    def __init__(self, it: Any) -> None:
        self._it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self._it is other._it

    def __hash__(self) -> int:
        return id(self._it)


def padded(count: int) -> Array:
    """Places 0 to ``count`` - 1, the last one repeated: batches of few sizes share what is compiled."""
    size = 1 if count == 1 else max(_SMALLEST, 1 << math.ceil(math.log2(max(count, 1))))
    return np.minimum(np.arange(size), count - 1)


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Equation:
    """x'(t) = f(t, x(t), [x(t - lag) for each lag], p).

    Parameters
    ----------
    function : callable
        ``function(t, x, delayed, p)`` gives the derivative of each state, a list or an array as long as ``states``.
        ``x`` and each of ``delayed`` are arrays (n,), ``p`` has the parameters as attributes. Written with
        ``jax.numpy`` (or plain arithmetic), as it is differentiated and compiled: what it reads from elsewhere is
        fixed when it is first used.
    lags : sequence
        Each a number, the name of a parameter, or a function ``lag(x, p)`` of the present state; not negative.
    parameters : mapping of str to float
        Names and values.
    states : sequence of str
        Names of the states. Neither these nor parameters may be called as columns of the results are (``time``,
        ``root``, ``frequency``, ``stable``, ``reason``, ``boundary``, ``curve``, ``point``, ``name``, ``state_...``).
    time_unit : str
        For pictures; "" if time has no unit.

    Raises
    ------
    InputError
        If names or numbers make no sense, or a function fails, reads a state or a lag that is not there, or does not
        give one real number for each state. Functions are called twice: with plain numbers, and traced.
    """

    function: Callable[[Any, Any, Any, Any], Any]
    lags: Sequence[Any]
    parameters: Mapping[str, float] = dataclasses.field(default_factory=dict)
    states: Sequence[str] = ("x",)
    time_unit: str = "s"

    def __post_init__(self) -> None:
        """Check it, and try its functions."""
        argument_count("function", self.function, "def f(t, x, delayed, p): return [-delayed[0][0]]")
        object.__setattr__(self, "lags", tuple(listed("lags", self.lags)))
        object.__setattr__(self, "states", tuple(listed("states", self.states)))
        object.__setattr__(self, "parameters", named("parameters", self.parameters))
        if not isinstance(self.time_unit, str):
            raise InputError(f"time_unit: {shown(self.time_unit)}; give text, for example 's', or ''")
        check_names(self.states, self.parameters)
        for i, lag in enumerate(self.lags):
            if isinstance(lag, str):
                refuse_unknown([lag], self.parameters, f"lags[{i}]: parameters")
            elif not callable(lag) and number(f"lags[{i}]", lag) < 0:
                raise InputError(f"lags[{i}]: {shown(lag)}; give a lag of 0 or more")
        lags = tuple(lag if isinstance(lag, str) or callable(lag) else float(lag) for lag in self.lags)
        object.__setattr__(self, "lags", lags)
        self._check_lags()
        kernels = Kernels(self.function, lags, tuple(self.parameters), len(self.states))
        object.__setattr__(self, "_kernels", kernels)
        self._try(kernels)

    def _try(self, kernels: Kernels) -> None:
        """Call its functions, for what they give and what they index."""
        n = len(self.states)
        with our_settings():
            plain, traced = (numbers(n), self.vector), (jnp.zeros(n), jnp.asarray(self.vector))
        for i, lag in enumerate(self.lags):
            if callable(lag):
                tried(f"lags[{i}]", lambda x, v, lag=lag: scalar(lag(x, kernels.named(v))), plain, traced)

        def rate(t: Any, x: Any, v: Any) -> None:
            stacked(self.function(t, x, (x,) * len(self.lags), kernels.named(v)), n, float)

        tried("function", rate, (0.0, *plain), (0.0, *traced))

    def __repr__(self) -> str:
        """Function, states and parameters."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        values = ", ".join(f"{key}={value:g}" for key, value in self.parameters.items())
        return f"<Equation {name} of {', '.join(self.states)}{': ' + values if values else ''}>"

    def __reduce__(self) -> Any:
        """Reduce the equation for copying and pickling, without compiled functions."""
        return Equation, (self.function, self.lags, self.parameters, self.states, self.time_unit)

    def at(self, values: Mapping[str, float] | None = None, /, **parameters: float) -> Equation:
        """The same equation with other values of some parameters; nothing is compiled again.

        Parameters
        ----------
        values : mapping, optional
            Names and values; or write them as keywords.
        **parameters : float

        Returns
        -------
        Equation

        Raises
        ------
        InputError
            If there is no such parameter, or a value is no finite number.
        """
        changed = {**named("at", {} if values is None else values), **named("at", parameters)}
        refuse_unknown(changed, self.parameters, "parameters")
        other = object.__new__(Equation)
        other.__dict__.update(self.__dict__, parameters={**self.parameters, **changed})
        other._check_lags()
        return other

    @property
    def vector(self) -> Array:
        """Values of the parameters, in their order."""
        return np.array(list(self.parameters.values()), float)

    @property
    def kernels(self) -> Kernels:
        """Functions of the equation, compiled once for all values of its parameters."""
        return self.__dict__["_kernels"]

    @property
    def state_dependent(self) -> bool:
        """Check whether some lag may depend on the state."""
        return any(callable(lag) for lag in self.lags)

    @public()
    def lags_at(self, x: Any) -> Array:
        """The lags at a state.

        Parameters
        ----------
        x : array_like or mapping, shape (n,)

        Returns
        -------
        ndarray, shape (K,)
        """
        with our_settings():
            return np.asarray(self.kernels.lags(jnp.asarray(state_of(self, x, "x")), jnp.asarray(self.vector)))

    def _check_lags(self) -> None:
        for i, lag in enumerate(self.lags):
            if isinstance(lag, str) and self.parameters[lag] < 0:
                raise InputError(f"{lag}: {self.parameters[lag]:g} is a lag (lags[{i}]); give 0 or more")


def check_equation(given: Any) -> None:
    """Refuse what is no `Equation`."""
    if not isinstance(given, Equation):
        raise InputError(f"equation: {shown(given)}; give a fluidcc.delay.Equation")


def check_autonomous(equation: Equation) -> None:
    """Refuse an equation whose right-hand side uses the time.

    The traced program is searched from its results back (sub-programs included), so that no particular time or value
    decides: cos t, whose slope is 0 at t = 0, uses the time, and so do a step that comes later and a term whose factor
    happens to be 0.

    Raises
    ------
    InputError
        If it uses the time.
    """
    if equation.kernels.timed:
        raise InputError(
            "function: depends on time, so that nothing stands still and no cycle is its own; leave t out of it, or "
            "integrate with solve()"
        )
