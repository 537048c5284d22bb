"""Where an equation can stand still: Newton's method from many starts, and along a path of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy.stats import qmc

from fluidcc.compiling.settings import our_settings
from fluidcc.delay.equation import Array, Equation, Kernels, padded, state_of
from fluidcc.errors import InputError
from fluidcc.surface import public, refuse_unknown

_STEPS = 60
_HALVINGS = 12  # of a step that makes things worse
_ROUNDING = 1e-10  # of a Newton step, relative to the state: nearer than that it has converged
_SOLVES = 1e-6  # of the residual: more is left where a step does not lead to an equilibrium
_SAME = 1e-7  # relative to the box: nearer than that two are one
_TOWARDS = 8  # steps from one set of parameters to another


@public()
def equilibria(equation: Equation, between: Any, *, starts: int = 256) -> Array:
    """Equilibria in a box: constant solutions.

    Parameters
    ----------
    equation : Equation
        Autonomous.
    between : mapping of str to (float, float), or a pair
        Least and largest value of each state; one pair for all.
    starts : int
        From how many places, spread evenly (Sobol), Newton's method starts. One that no start leads to is missed.

    Returns
    -------
    ndarray, shape (count, n)
        By the first state, then the next; count may be 0.

    Raises
    ------
    InputError
        If the box makes no sense, or the equation depends on time.
    """
    low, high = _box(equation, between)
    if not isinstance(starts, (int, np.integer)) or starts < 1:
        raise InputError(f"starts: {starts!r}; give a number of 1 or more")
    _autonomous(equation, (low + high) / 2)
    places = qmc.Sobol(len(low), rng=0).random_base2(max(int(np.ceil(np.log2(starts))), 0))
    x, converged = newton(equation, low + places * (high - low), np.tile(equation.vector, (len(places), 1)))
    room = _SAME * (high - low)
    found = x[converged & (x >= low - room).all(axis=1) & (x <= high + room).all(axis=1)]
    kept: list[Array] = []
    for each in found[np.lexsort(found.T[::-1])] if len(found) else []:
        if not any((np.abs(each - other) <= room).all() for other in kept):
            kept.append(each)
    return np.array(kept).reshape(-1, len(low))


def equilibrium_near(equation: Equation, at: Any = None) -> Array:
    """The equilibrium (n,) that Newton's method finds from a state; from 0, 1, 0.1 and 10 if none is given.

    Raises
    ------
    InputError
        If it finds none.
    """
    n = len(equation.states)
    guesses = [np.full(n, v) for v in (0.1, 1.0, 10.0, 0.0)] if at is None else [state_of(equation, at, "at")]
    _autonomous(equation, guesses[0])
    x, converged = newton(equation, np.array(guesses), np.tile(equation.vector, (len(guesses), 1)))
    if not converged.any():
        where = "several starts" if at is None else ", ".join(f"{v:g}" for v in guesses[0])
        raise InputError(
            f"at: no equilibrium found from {where}; give a state near one, or look with fluidcc.delay.equilibria"
        )
    distinct = x[converged]
    if at is None and np.ptp(distinct, axis=0).max() > _SAME * max(1.0, np.abs(distinct).max()):
        listed = " and ".join("(" + ", ".join(f"{v:.4g}" for v in each) + ")" for each in distinct[:2])
        raise InputError(f"at: there are several equilibria, {listed} among them; say near which, at=[...]")
    return distinct[0]


def newton(equation: Equation, x: Array, vectors: Array) -> tuple[Array, Array]:
    """Equilibria (batch, n) from starts, for parameters (batch, m); and whether each converged, (batch,)."""
    kernels = equation.kernels
    solve = kernels.once("newton", lambda: jax.jit(jax.vmap(lambda s, v: _newton(kernels, s, v))))
    return _batched(solve, x, vectors)


def followed(equation: Equation, x: Array, vectors: Array) -> tuple[Array, Array]:
    """The equilibrium (n,) of the equation's own parameters, followed to others (batch, m) on straight ways."""
    kernels = equation.kernels

    def follow(x: Any, end: Any, begin: Any) -> Any:
        def step(k: Any, carry: Any) -> Any:
            share = (k + 1) / _TOWARDS
            new, good = _newton(kernels, carry[0], begin + share * (end - begin))
            return jnp.where(good, new, carry[0]), good

        return lax.fori_loop(0, _TOWARDS, step, (x, jnp.asarray(True)))

    solve = kernels.once("followed", lambda: jax.jit(jax.vmap(follow)))
    return _batched(solve, np.tile(x, (len(vectors), 1)), vectors, np.tile(equation.vector, (len(vectors), 1)))


def _batched(solve: Any, *columns: Array) -> tuple[Array, Array]:
    """What a compiled function of batches gives for these columns."""
    count = len(columns[0])
    rows = padded(count)
    with our_settings():
        x, good = solve(*(jnp.asarray(column[rows]) for column in columns))
        return np.asarray(x)[:count], np.asarray(good)[:count]


def _newton(kernels: Kernels, x: Any, vector: Any) -> tuple[Any, Any]:
    """Newton's method with halved steps where a whole one makes things worse."""

    def residual(x: Any) -> Any:
        return kernels.still(x, vector)

    def size(x: Any) -> Any:
        found = jnp.linalg.norm(residual(x))
        return jnp.where(jnp.isfinite(found), found, jnp.inf)

    def step(carry: Any) -> Any:
        count, x, _ = carry
        slope, value = jax.jacfwd(residual)(x), residual(x)
        move = -jnp.linalg.lstsq(slope, value)[0]
        before = size(x)
        solves = jnp.linalg.norm(value + slope @ move) <= _SOLVES * before  # at a fold it does not
        shares = 0.5 ** jnp.arange(_HALVINGS)
        after = jax.vmap(lambda share: size(x + share * move))(shares)
        best = jnp.argmax(after < before)
        small = jnp.linalg.norm(move) <= _ROUNDING * jnp.maximum(jnp.linalg.norm(x), 1e-300)
        new = jnp.where((after < before).any(), x + shares[best] * move, x)
        return count + 1, jnp.where(jnp.isfinite(new), new, x), (small & solves) | (before == 0)

    first = 0, x, jnp.asarray(False)
    _, x, done = lax.while_loop(lambda carry: (carry[0] < _STEPS) & ~carry[2], step, first)
    return x, done & jnp.isfinite(x).all()


def _autonomous(equation: Equation, x: Array) -> None:
    with our_settings():
        moves = np.asarray(equation.kernels.moves(jnp.asarray(x), jnp.asarray(equation.vector)))
    if np.abs(moves).max() > 0:
        raise InputError("function: depends on time, so that nothing stands still; solve() integrates it")


def _box(equation: Equation, between: Any) -> tuple[Array, Array]:
    if isinstance(between, Mapping):
        refuse_unknown(between, equation.states, "between")
        missing = [state for state in equation.states if state not in between]
        if missing:
            raise InputError(f"between: {missing[0]} is missing; give a pair for each of {', '.join(equation.states)}")
        pairs = [between[state] for state in equation.states]
    else:
        pairs = [between] * len(equation.states)
    try:
        box = np.array(pairs, float)
    except (TypeError, ValueError):
        box = np.empty(0)
    if box.shape != (len(equation.states), 2) or not np.isfinite(box).all() or (box[:, 0] >= box[:, 1]).any():
        example = ", ".join(f"{state!r}: (0, 1)" for state in equation.states)
        raise InputError(f"between: {repr(between)[:60]}; give least and largest, for example {{{example}}}")
    return box[:, 0], box[:, 1]
