"""HPCC A.2: from any rates to feasible ones in one step, and on to a Pareto optimal allocation.

>>> run = pareto([[1, 1, 0], [1, 0, 1]], [1, 2], [1, 1, 1], steps=5, exact=True)
>>> [str(rate) for rate in run.rates[:, 2]]
['1', '1', '4/3', '16/11', '64/43', '256/171']
>>> run.asymptotic_rate, [str(rate) for rate in run.limit]
(0.25, ['1/2', '1/2', '3/2'])
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from fluidcc.compiling.functions import per_shape
from fluidcc.compiling.settings import our_settings
from fluidcc.errors import InputError
from fluidcc.surface import public
from fluidcc.theory.recursion.checks import Array, Numbers, incidence, positive, rational, whole
from fluidcc.theory.recursion.exact import trajectory
from fluidcc.theory.recursion.result import Pareto, Repaired, on_path

_CHUNK = 512  # networks at a time: what one step reads stays in the processor's cache
_FULL = 1e-12  # relative: a link with less room than this is full, in floats


def step(A: Array, C: Array, R: Array) -> Array:
    """Take one step of (5)-(6), on floats or, exactly, on `Fraction`.

    Parameters
    ----------
    A : ndarray
        Incidence, (links, paths), 0 or 1.
    C : ndarray
        Capacities, (links,).
    R : ndarray
        Rates, (paths,); an object array of `Fraction` stays one.

    Returns
    -------
    ndarray
        The next rates, (paths,).
    """
    Y = A @ R  # HPCC (5)
    return R / on_path(A, Y / C).max(axis=-2)  # HPCC (6)


@public()
def pareto(A: ArrayLike, C: Numbers, R0: Numbers, steps: int = 64, exact: bool = False) -> Pareto:
    """Run HPCC's multi-bottleneck recursion R_j(n+1) = R_j(n) / max_i U_i over the links i of path j.

    Parameters
    ----------
    A : array_like
        Incidence, (links, paths): 1 where the path uses the link, else 0.
    C : array_like
        Target capacities, (links,), in any unit of rate.
    R0 : array_like
        Rates to start from, (paths,), in that unit.
    steps : int
        Round trips.
    exact : bool
        Rationals (`Fraction`) instead of floats. Floats given are taken at their exact binary value. Fractions grow to
        millions of bits in some networks: beyond some 30 steps have gmpy2 installed, which is then used inside.

    Returns
    -------
    Pareto
        Rates at every step, bottlenecks, limit, how fast it is approached and whether it is Pareto optimal.

    Raises
    ------
    InputError
        If A is not of zeros and ones, a path uses no link, shapes do not fit, or a capacity, a rate or the number of
        steps is not positive.

    Notes
    -----
    HPCC (SIGCOMM 2019), appendix A.2, (5)-(6). Rates are feasible after one step and do not fall afterwards. They
    converge to a Pareto optimal allocation, but not within I steps, as (iii) of its lemma says, nor in
    general within any number; see `residual`.
    """
    matrix = incidence(A)
    links, paths = matrix.shape
    whole("steps", steps)
    if exact:
        matrix = matrix.astype(np.int64)
        capacities, rates = rational("C", C, links, "link"), rational("R0", R0, paths, "path")
        return Pareto(matrix, capacities, trajectory(matrix, capacities, rates, steps), "HPCC (5)-(6)")
    capacities, rates = positive("C", C, links, "link"), positive("R0", R0, paths, "path")
    with our_settings():
        found = _trajectory(matrix, capacities, rates, steps=steps)
    return Pareto(matrix, capacities, np.asarray(found), "HPCC (5)-(6)")


class Batch(NamedTuple):
    """Rates (..., paths) and utilisations (..., links) of many networks after the last step."""

    rates: Array
    utilization: Array


def pareto_batch(A: ArrayLike, C: ArrayLike, R0: ArrayLike, steps: int = 64) -> Batch:
    """Run the recursion (5)-(6) on many networks of equal size at once, in floats.

    Parameters
    ----------
    A : array_like
        (..., links, paths).
    C : array_like
        (..., links).
    R0 : array_like
        (..., paths). Leading axes are broadcast against each other.
    steps : int

    Returns
    -------
    Batch

    Raises
    ------
    InputError
        As `pareto`, or if the leading axes do not fit.
    """
    matrix = incidence(A, batched=True)
    links, paths = matrix.shape[-2:]
    capacities = positive("C", C, links, "link", batched=True)
    rates = positive("R0", R0, paths, "path", batched=True)
    whole("steps", steps)
    leading = matrix.shape[:-2], capacities.shape[:-1], rates.shape[:-1]
    try:
        shape = np.broadcast_shapes(*leading)
    except ValueError:
        raise InputError(
            f"leading axes: A has {leading[0]}, C {leading[1]}, R0 {leading[2]}, which do not fit; "
            "give equal ones, or leave out those that are shared"
        ) from None
    count = int(np.prod(shape))
    padded = -(-count // _CHUNK) * _CHUNK if count > _CHUNK else count

    def chunks(values: Array, own: tuple[int, ...]) -> Array:
        """Networks last, so that one instruction handles several, and in chunks; the last repeats to fill its chunk."""
        flat = np.broadcast_to(values, shape + own).reshape(count, *own)
        flat = np.concatenate([flat, np.repeat(flat[-1:], padded - count, axis=0)])
        return np.moveaxis(flat.reshape(-1, min(_CHUNK, padded), *own), 1, -1)

    with our_settings():
        R, U = _ends(chunks(matrix, (links, paths)), chunks(capacities, (links,)), chunks(rates, (paths,)), steps=steps)
    return Batch(*(np.moveaxis(np.asarray(v), -1, 1).reshape(padded, -1)[:count].reshape(*shape, -1) for v in (R, U)))


def residual(A: ArrayLike, C: Numbers, R0: Numbers, exact: bool = False) -> Repaired:
    """Run our repair of (5)-(6): what paths through a full link use is taken off the capacities first.

    A path through a full link is frozen; the others follow (6) with the capacity that is left. At each step the most
    loaded link fills and freezes its paths, so that the rates are Pareto optimal after at most min(links, paths)
    steps, what the paper's lemma (iii) promises.

    Parameters
    ----------
    A, C, R0, exact
        As in `pareto`.

    Returns
    -------
    Repaired
        With as many steps as it took.

    Raises
    ------
    InputError
        As `pareto`.
    """
    matrix = incidence(A)
    links, paths = matrix.shape
    capacities = rational("C", C, links, "link") if exact else positive("C", C, links, "link")
    rates = rational("R0", R0, paths, "path") if exact else positive("R0", R0, paths, "path")
    if exact:
        matrix = matrix.astype(np.int64)
    full = 1 if exact else 1 - _FULL
    rows, free = [rates], np.ones(paths, dtype=bool)
    while free.any():
        room = capacities - matrix[:, ~free] @ rows[-1][~free]
        used = matrix[:, free].any(axis=1)
        following = rows[-1].copy()
        following[free] = step(matrix[used][:, free], room[used], rows[-1][free])
        rows.append(following)
        free &= ~(matrix[matrix @ following >= capacities * full] > 0).any(axis=0)
    return Repaired(matrix, capacities, np.stack(rows), "HPCC (5)-(6) on what capacity is left")


@per_shape()
def _trajectory(A: Array, C: Array, R0: Array, *, steps: int) -> jax.Array:
    def advance(R: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        following = _next(A, C, R)
        return following, following

    _, rest = jax.lax.scan(advance, jnp.asarray(R0), None, steps)
    return jnp.concatenate([R0[None], rest])


@per_shape()
def _ends(A: Array, C: Array, R0: Array, *, steps: int) -> tuple[jax.Array, jax.Array]:
    """Last rates and utilisations, chunk by chunk; shapes (chunks, ..., networks)."""

    def run(chunk: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        A, C, R = chunk
        R = jax.lax.fori_loop(0, steps, lambda _, R: _next(A, C, R), R)
        return R, (A * R).sum(axis=1) / C

    return jax.lax.map(run, (A, C, R0))


def _next(A: Array | jax.Array, C: Array | jax.Array, R: jax.Array) -> jax.Array:
    """`step` on JAX arrays; a last axis of networks is carried along."""
    U = (A * R[None]).sum(axis=1) / C  # HPCC (5)
    return R / (A * U[:, None]).max(axis=0)  # HPCC (6)
