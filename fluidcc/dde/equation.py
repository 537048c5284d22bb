"""A delay-differential equation that a user wrote down.

>>> def mackey_glass(t, x, delayed, p):
...     return [p.beta * delayed[0][0] / (1 + delayed[0][0] ** p.n) - p.gamma * x[0]]
>>> blood = Equation(mackey_glass, lags=["tau"], parameters={"beta": 0.2, "gamma": 0.1, "n": 10, "tau": 17})
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.checks import Array as Array
from fluidcc.dde.checks import (
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
from fluidcc.dde.kernels import Kernels as Kernels
from fluidcc.dde.kernels import padded as padded
from fluidcc.errors import InputError
from fluidcc.surface import constructor, public, refuse_unknown


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
