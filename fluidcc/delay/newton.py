"""Newton's method for where an equation stands still: every state is judged in its own units.

The slope's rows and columns are scaled until the largest of each is 1 (Ruiz, RAL-TR-2001-034), so that neither a large
nor a small state hides another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fluidcc.compiling.settings import our_settings
from fluidcc.delay.equation import Array, Equation, Kernels, padded

_STEPS = 60
_HALVINGS = 12  # of a step that makes things worse
_NEAR = 1e-10  # of a Newton step, relative to each state: nearer than that it has converged
_ROUNDING = 8 * float(np.finfo(float).eps)  # relative, of what is summed up to a derivative
_SOLVES = 1e-6  # of the residual: more is left where a step does not lead to an equilibrium
_SHARP = 1e-3  # of a state: what rounding moves by more is not known
_RANK = 1e-12  # of the scaled slope's largest singular value: what is below does not steer
_SCALINGS = 8
_TINY = 1e-290  # what falls towards 0 ends below that
_TOWARDS = 8  # steps from one set of parameters to another
_BACK = 1e-6  # relative: how near to where it came from the way back must lead


class Found(NamedTuple):
    """Where Newton's method ended.

    Parameters
    ----------
    x : ndarray
        (batch, n)
    good : ndarray of bool
        (batch,): whether it converged.
    blur : ndarray
        (batch, n): how far rounding alone moves each state.
    singular : ndarray of bool
        (batch,): whether other equilibria may be next to it: the slope does not tell where it is.
    """

    x: Array
    good: Array
    blur: Array
    singular: Array


def newton(equation: Equation, x: Array, vectors: Array) -> Found:
    """Equilibria (batch, n) from starts, for parameters (batch, m)."""
    kernels = equation.kernels
    solve = kernels.once("newton", lambda: jax.jit(jax.vmap(lambda s, v: _newton(kernels, s, v))))
    return Found(*_batched(solve, x, vectors))


def followed(equation: Equation, x: Array, vectors: Array) -> tuple[Array, Array, Array]:
    """The equilibrium (n,) of the equation's own parameters, followed to others (batch, m) on straight ways.

    A step counts if the way back leads to where it came from: beyond a fold, Newton's method may find some other
    equilibrium. One that has others next to it (`Found.singular`) counts while it stays where it is: nothing tells
    which of them it would be elsewhere.

    Returns
    -------
    x, good, loose : ndarray
        (batch, n); whether it was found, (batch,); whether it was not because others lie next to it.
    """
    kernels = equation.kernels

    def follow(x: Any, end: Any, begin: Any) -> Any:
        def step(k: Any, carry: Any) -> Any:
            old, good, loose = carry
            before, after = (begin + share / _TOWARDS * (end - begin) for share in (k, k + 1))
            new, found, blur, singular = _newton(kernels, old, after)
            back, returned, _, _ = _newton(kernels, new, before)
            same = _nearby(back, old, _BACK, blur)
            moved = singular & ~_nearby(new, old, _NEAR, blur)
            found = found & returned & same & ~moved
            return jnp.where(good & found, new, old), good & found, loose | (good & moved)

        return lax.fori_loop(0, _TOWARDS, step, (x, jnp.asarray(True), jnp.asarray(False)))

    solve = kernels.once("followed", lambda: jax.jit(jax.vmap(follow)))
    own = np.tile(equation.vector, (len(vectors), 1))
    found, good, loose = _batched(solve, np.tile(x, (len(vectors), 1)), vectors, own)
    return found, good, loose


def _nearby(one: Any, other: Any, share: float, blur: Any) -> Any:
    return (jnp.abs(one - other) <= share * jnp.maximum(jnp.abs(one), jnp.abs(other)) + 2 * blur + _TINY).all()


def _batched(solve: Any, *columns: Array) -> list[Array]:
    """What a compiled function of batches gives for these columns."""
    count = len(columns[0])
    rows = padded(count)
    with our_settings():
        found = solve(*(jnp.asarray(column[rows]) for column in columns))
        return [np.asarray(part)[:count] for part in found]


class _Slope(NamedTuple):
    """The residual and its slope at a state, scaled; and what rounding makes of it."""

    value: Any
    move: Any
    weights: Any  # of residuals, that make them comparable
    rounding: Any  # of the residual
    blur: Any
    solves: Any
    singular: Any


def _slope(kernels: Kernels, x: Any, vector: Any) -> _Slope:
    value = kernels.still(x, vector)
    by_x = jax.jacfwd(lambda x: kernels.still(x, vector))(x)
    summed = jnp.abs(by_x) @ jnp.abs(x)
    if vector.shape[0]:  # parameters are rounded as well: 1 - a / b of a = b is not known better
        by_p = jax.jacfwd(lambda v: kernels.still(x, v))(vector)
        summed = summed + jnp.abs(by_p) @ jnp.abs(vector)
    rounding = jnp.where(jnp.isfinite(summed), _ROUNDING * summed, 0.0)

    def scale(_: Any, carry: Any) -> Any:
        rows, columns = carry
        now = jnp.abs(rows[:, None] * by_x * columns)
        down, across = now.max(axis=1), now.max(axis=0)
        return (
            rows / jnp.sqrt(jnp.where(down > 0, down, 1.0)),
            columns / jnp.sqrt(jnp.where(across > 0, across, 1.0)),
        )

    rows, columns = lax.fori_loop(0, _SCALINGS, scale, (jnp.ones_like(x), jnp.ones_like(x)))
    scaled = rows[:, None] * by_x * columns
    finite = jnp.isfinite(scaled).all()
    u, sigma, vh = jnp.linalg.svd(jnp.where(finite, scaled, 0.0))
    kept = sigma > _RANK * jnp.maximum(sigma[0], 1e-300)
    inverse = columns[:, None] * ((vh.T * jnp.where(kept, 1 / jnp.where(kept, sigma, 1.0), 0.0)) @ u.T) * rows
    move = -inverse @ value
    left = jnp.abs(value + by_x @ move)
    solves = (left <= rounding) | (rows * left <= _SOLVES * (rows * jnp.abs(value)).max())
    return _Slope(
        value, move, rows, rounding, jnp.abs(inverse) @ rounding, solves.all() & finite, ~kept.all() | ~finite
    )


def _newton(kernels: Kernels, x: Any, vector: Any) -> tuple[Any, Any, Any, Any]:
    """Newton's method with halved steps where a whole one makes things worse; the parts of `Found`."""

    def step(carry: Any) -> Any:
        count, x, *_ = carry
        at = _slope(kernels, x, vector)
        rounded = (jnp.abs(at.value) <= at.rounding).all()

        def size(x: Any) -> Any:
            found = jnp.abs(at.weights * kernels.still(x, vector)).max()  # whose square may be less than any number
            return jnp.where(jnp.isfinite(found), found, jnp.inf)

        before = size(x)
        shares = 0.5 ** jnp.arange(_HALVINGS)
        after = jax.vmap(lambda share: size(x + share * at.move))(shares)
        best = jnp.argmax(after < before)
        better = (after < before).any()
        # Among large numbers that cancel, rounding might be all of the residual, and is not: steps are taken as long as
        # they help, and what rounding blurs altogether is no equilibrium unless the residual is 0. Where others lie
        # next to it there is nothing to gain from a step.
        sharp = at.singular | (at.blur <= _SHARP * jnp.abs(x)).all()
        rests = (rounded & sharp & (at.singular | ~better)) | (at.value == 0).all()
        new = jnp.where(better & ~rests, x + shares[best] * at.move, x)
        near = jnp.abs(at.move) <= _NEAR * jnp.abs(x)
        blurred = (near | (jnp.abs(at.move) <= at.blur)).all() & sharp & ~better
        done = ((near.all() | blurred) & at.solves) | rests
        return count + 1, jnp.where(jnp.isfinite(new), new, x), done, at.blur, at.singular

    first = 0, x, jnp.asarray(False), jnp.zeros_like(x), jnp.asarray(False)
    _, x, done, blur, singular = lax.while_loop(lambda carry: (carry[0] < _STEPS) & ~carry[2], step, first)
    x = jnp.where(jnp.abs(x) < _TINY, 0.0, x)
    return x, done & jnp.isfinite(x).all(), blur, singular
