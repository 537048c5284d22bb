"""Arguments of `solve`: values of a parameter, the past, and how far back lags reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.checks import check_lags, check_parameter, column, positive, refusing, shown, stacked, state_of, tried
from fluidcc.dde.equation import Array, Equation
from fluidcc.errors import InputError


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
