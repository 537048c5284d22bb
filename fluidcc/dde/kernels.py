"""Functions that are computed from an equation: traceable in state and parameters, and their compiled forms."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import partial_eval

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.checks import Array, stacked
from fluidcc.surface import refuse_unknown

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
