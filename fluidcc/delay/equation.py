"""A delay-differential equation that a user wrote down.

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

from fluidcc.compiling.settings import our_settings
from fluidcc.errors import InputError
from fluidcc.surface import constructor, public, refuse_unknown

Array = np.ndarray[Any, Any]
_SMALLEST = 64  # of a batch of several
_FUNCTIONS = 32  # of each, compiled; the oldest goes first
_KEPT = 64  # equations whose compiled functions are kept


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Equation:
    """x'(t) = f(t, x(t), [x(t - lag) for each lag], p).

    Parameters
    ----------
    function : callable
        ``function(t, x, delayed, p)`` gives the derivative of each state, a sequence as long as ``states``. ``x`` and
        each of ``delayed`` are arrays (n,), ``p`` has the parameters as attributes. Written with ``jax.numpy`` (or
        plain arithmetic), as it is differentiated and compiled.
    lags : sequence
        Each a number, the name of a parameter, or a function ``lag(x, p)`` of the present state; not negative.
    parameters : mapping of str to float
        Names and values.
    states : sequence of str
        Names of the states.
    time_unit : str
        For pictures; "" if time has no unit.

    Raises
    ------
    InputError
        If names or numbers make no sense, or the function does not give one number for each state.
    """

    function: Callable[[Any, Any, Any, Any], Any]
    lags: Sequence[Any]
    parameters: Mapping[str, float] = dataclasses.field(default_factory=dict)
    states: Sequence[str] = ("x",)
    time_unit: str = "s"

    def __post_init__(self) -> None:
        """Check it, and call the function once with shapes alone."""
        for what in ("lags", "states"):
            value = getattr(self, what)
            if isinstance(value, str) or not isinstance(value, Sequence) or not value:
                raise InputError(f"{what}: {repr(value)[:40]}; give a list of one or more")
        object.__setattr__(self, "lags", tuple(self.lags))
        object.__setattr__(self, "states", tuple(self.states))
        object.__setattr__(self, "parameters", {name: _number(name, v) for name, v in dict(self.parameters).items()})
        names = [*self.states, *self.parameters]
        for name in names:
            if not isinstance(name, str) or not name:
                raise InputError(f"name {name!r}: states and parameters are named by text; write for example 'tau'")
            if names.count(name) > 1:
                raise InputError(f"name {name!r} is there twice; name each state and parameter once")
        for i, lag in enumerate(self.lags):
            if isinstance(lag, str):
                refuse_unknown([lag], self.parameters, f"lags[{i}]: parameters")
            elif not callable(lag) and _number(f"lags[{i}]", lag) < 0:
                raise InputError(f"lags[{i}]: {lag}; give a lag of 0 or more")
        self._check_lags()
        n = len(self.states)
        try:
            with our_settings():
                shaped = jax.eval_shape(
                    lambda x, v: self.kernels.rate(0.0, x, (x,) * len(self.lags), v),
                    jnp.zeros(n),
                    jnp.asarray(self.vector),
                )
        except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
            raise InputError(
                "function: asks for a number where there is none yet; write jax.numpy in place of numpy and math, and "
                "jax.numpy.where in place of if"
            ) from None
        if shaped.shape != (n,):
            raise InputError(
                f"function: gives an array of shape {shaped.shape} for {n} states ({', '.join(self.states)}); "
                "return one number for each"
            )

    def __repr__(self) -> str:
        """Function, states and parameters."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        values = ", ".join(f"{key}={value:g}" for key, value in self.parameters.items())
        return f"<Equation {name} of {', '.join(self.states)}{': ' + values if values else ''}>"

    def at(self, values: Mapping[str, float] | None = None, /, **parameters: float) -> Equation:
        """The same equation with other values of some parameters; nothing is compiled anew.

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
            If there is no such parameter.
        """
        changed = {**(values or {}), **parameters}
        refuse_unknown(changed, self.parameters, "parameters")
        return dataclasses.replace(self, parameters={**self.parameters, **changed})

    @property
    def vector(self) -> Array:
        """Values of the parameters, in their order."""
        return np.array(list(self.parameters.values()), float)

    @property
    def kernels(self) -> Kernels:
        """Its functions, compiled once for all values of its parameters."""
        return _kernels(self.function, tuple(self.lags), tuple(self.parameters), len(self.states))

    @property
    def state_dependent(self) -> bool:
        """Whether some lag may depend on the state."""
        return any(callable(lag) for lag in self.lags)

    @public()
    def lags_at(self, x: Any) -> Array:
        """The lags at a state.

        Parameters
        ----------
        x : array_like, shape (n,)

        Returns
        -------
        ndarray, shape (K,)
        """
        with our_settings():
            return np.asarray(self.kernels.lags(jnp.asarray(x, float), jnp.asarray(self.vector)))

    def _check_lags(self) -> None:
        for i, lag in enumerate(self.lags):
            if isinstance(lag, str) and self.parameters[lag] < 0:
                raise InputError(f"{lag}: {self.parameters[lag]:g} is a lag (lags[{i}]); give 0 or more")


class Kernels:
    """What is computed of an equation, of parameters (m,) as a vector; traceable."""

    def __init__(self, function: Any, lags: tuple[Any, ...], names: tuple[str, ...], order: int) -> None:
        self._function, self._lags, self._names = function, lags, names
        self.order = order
        self.compiled: dict[Any, Any] = {}

    def _named(self, vector: Any) -> Any:
        return types.SimpleNamespace(**{name: vector[i] for i, name in enumerate(self._names)})

    def rate(self, t: Any, x: Any, delayed: Sequence[Any], vector: Any) -> Any:
        """dx/dt, (n,)."""
        given = self._function(t, x, tuple(delayed), self._named(vector))
        parts = given if isinstance(given, (list, tuple)) else jnp.atleast_1d(jnp.asarray(given))
        return jnp.stack([jnp.asarray(part, x.dtype) for part in parts])

    def lags(self, x: Any, vector: Any) -> Any:
        """Lags at a state, (K,)."""
        p = self._named(vector)
        found = [
            vector[self._names.index(lag)] if isinstance(lag, str) else lag(x, p) if callable(lag) else lag
            for lag in self._lags
        ]
        return jnp.stack([jnp.asarray(lag, x.dtype) for lag in found])

    def still(self, x: Any, vector: Any) -> Any:
        """dx/dt of a state that has stood still for ever, (n,)."""
        return self.rate(0.0, x, (x,) * len(self._lags), vector)

    def jacobians(self, x: Any, vector: Any) -> tuple[Any, Any, Any]:
        """A0 (n, n), A (K, n, n), and the lags (K,), at an equilibrium.

        A lag that depends on the state is taken as it is there: what it looks back on has not moved.
        """
        still = (x,) * len(self._lags)
        own = jax.jacfwd(lambda now: self.rate(0.0, now, still, vector))(x)
        lagged = jax.jacfwd(lambda past: self.rate(0.0, x, past, vector))(still)
        return own, jnp.stack(lagged), self.lags(x, vector)

    def moves(self, x: Any, vector: Any) -> Any:
        """How fast the right-hand side itself changes with time, (n,): 0 of an autonomous equation."""
        still = (x,) * len(self._lags)
        return jax.jvp(lambda t: self.rate(t, x, still, vector), (0.0,), (1.0,))[1]

    def once(self, name: Any, make: Callable[[], Any]) -> Any:
        """A compiled function by what tells it from others, made when first asked for."""
        if name not in self.compiled:
            self.compiled[name] = make()
            while len(self.compiled) > _FUNCTIONS:
                del self.compiled[next(iter(self.compiled))]
        return self.compiled[name]


@functools.lru_cache(maxsize=_KEPT)
def _kernels(function: Any, lags: tuple[Any, ...], names: tuple[str, ...], order: int) -> Kernels:
    return Kernels(function, lags, names, order)


def padded(count: int) -> Array:
    """Places 0 to ``count`` - 1, the last one repeated: batches of few sizes share what is compiled."""
    size = 1 if count == 1 else max(_SMALLEST, 1 << math.ceil(math.log2(max(count, 1))))
    return np.minimum(np.arange(size), count - 1)


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}: {repr(value)[:40]} is no number; write for example {name}=1.5") from None
    if not np.isfinite(number):
        raise InputError(f"{name}: {number}; give a finite number")
    return number


def state_of(equation: Equation, given: Any, name: str) -> Array:
    """A state (n,) as an array, by names or in order.

    Raises
    ------
    InputError
        If it has another size, or is not finite.
    """
    if isinstance(given, Mapping):
        refuse_unknown(given, equation.states, name)
        missing = [state for state in equation.states if state not in given]
        if missing:
            raise InputError(f"{name}: {missing[0]} is missing; give a number for each of {', '.join(equation.states)}")
        given = [given[state] for state in equation.states]
    try:
        x = np.atleast_1d(np.asarray(given, float))
    except (TypeError, ValueError):
        raise InputError(f"{name}: {repr(given)[:40]} is no state; give {len(equation.states)} numbers") from None
    if x.shape != (len(equation.states),) or not np.isfinite(x).all():
        raise InputError(
            f"{name}: {repr(given)[:40]}; give {len(equation.states)} finite numbers ({', '.join(equation.states)})"
        )
    return x
