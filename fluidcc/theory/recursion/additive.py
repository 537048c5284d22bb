"""HPCC A.3: the multiplicative step with an additive increase, which makes rates fair.

>>> network = linear(2)
>>> additive_increase(network.A, network.C, np.ones(3), increase=0.01, steps=2000).final
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from fluidcc.compiling.functions import per_shape
from fluidcc.compiling.settings import our_settings
from fluidcc.surface import public
from fluidcc.theory.recursion.checks import Array, incidence, positive, scalar, whole, whole_numbers
from fluidcc.theory.recursion.result import Rates


@public()
def additive_increase(
    A: ArrayLike,
    C: ArrayLike,
    R0: ArrayLike,
    *,
    increase: float,
    target: float = 0.95,
    steps: int = 1000,
    periods: ArrayLike = 1,
    delays: ArrayLike | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> Rates:
    """Run R(t + RTT) = R(t) Ut / U(t + RTT) + a, U being the most loaded link of the path.

    U(t + RTT) is what the source saw of the round trip just over, in which R(t) was its rate: in a step it is the
    utilisation by the rates of the row before. A path with a longer RTT updates every ``periods``-th step, with the
    utilisation of the step in which its present rate was new.

    Parameters
    ----------
    A : array_like
        Incidence, (links, paths).
    C : array_like
        Capacities (the links', not the target's), (links,), in any unit of rate.
    R0 : array_like
        Rates to start from, (paths,); they count as the rates before the start, too.
    increase : float
        a, in the unit of ``C``.
    target : float
        Ut, the target utilisation.
    steps : int
        Of the shortest RTT.
    periods : int or array_like
        RTT of each path in steps, (paths,). Path j first updates in step ``periods[j]``.
    delays : int or array_like
        Age in steps of the utilisation that a path updates with, (paths,); ``periods - 1`` by default.
    noise : float
        Standard deviation of log U as observed, by path, link and step independently; the mean of U is kept.
    seed : int
        Of the noise.

    Returns
    -------
    Rates

    Raises
    ------
    InputError
        If the network makes no sense or a parameter is out of range.

    Notes
    -----
    HPCC (SIGCOMM 2019), appendix A.3. It settles where `fluidcc.theory.recursion.optimal.equilibrium` says.
    """
    matrix = incidence(A)
    links, paths = matrix.shape
    capacities, rates = positive("C", C, links, "link"), positive("R0", R0, paths, "path")
    every = whole_numbers("periods", periods, paths, least=1)
    ages = every - 1 if delays is None else whole_numbers("delays", delays, paths, least=0)
    with our_settings():
        found = _run(
            matrix,
            capacities,
            rates,
            scalar("increase", increase, zero=True),
            scalar("target", target, most=1.0),
            every,
            ages,
            scalar("noise", noise, zero=True),
            jax.random.key(whole("seed", seed, least=0)),
            steps=whole("steps", steps),
            depth=int(ages.max()) + 1,
        )
    return Rates(matrix, capacities, np.asarray(found), "HPCC A.3")


def single_link_modes(flows: int, *, increase: float, target: float = 0.95, capacity: float = 1.0) -> Array:
    """Eigenvalues of A.3 about its equilibrium on one link, in ascending order, (flows,).

    They are those of the Jacobian of the step, by automatic differentiation: 0 for the load, Ut / (Ut + N a / C) for
    each of the N - 1 differences between flows.

    Parameters
    ----------
    flows : int
        N.
    increase, target, capacity : float
        As in `additive_increase`.

    Returns
    -------
    ndarray
        Real: equal flows make the Jacobian symmetric.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    N, a, Ut = whole("flows", flows), scalar("increase", increase), scalar("target", target, most=1.0)
    C = np.array([scalar("capacity", capacity)])
    A = np.ones((1, N))
    at_equilibrium = np.full(N, Ut * C[0] / N + a)  # N R = U C and R = a / (1 - Ut / U)
    with our_settings():
        jacobian = jax.jacfwd(lambda R: _updated(A, R, (A @ R / C)[:, None], a, Ut))(jnp.asarray(at_equilibrium))
    return np.linalg.eigvalsh(np.asarray(jacobian))


def noisy(U: jax.Array, noise: Array, key: jax.Array) -> jax.Array:
    """Utilisations as observed: each times an independent lognormal factor of mean 1."""
    return U * jnp.exp(noise * jax.random.normal(key, U.shape) - noise**2 / 2)


def _updated(A: Array, R: jax.Array, U: jax.Array, a: float | Array, Ut: float | Array) -> jax.Array:
    """HPCC A.3's update by the utilisations (links, paths) that the paths observe."""
    return R * Ut / (A * U).max(axis=0) + a


@per_shape()
def _run(
    A: Array,
    C: Array,
    R0: Array,
    a: Array,
    Ut: Array,
    every: Array,
    ages: Array,
    noise: Array,
    key: jax.Array,
    *,
    steps: int,
    depth: int,
) -> jax.Array:
    def advance(carry: tuple[jax.Array, jax.Array], n: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        R, past = carry
        past = jnp.concatenate([(A @ R / C)[None], past[:-1]])  # row d: utilisations d steps ago
        U = noisy(past[ages].T, noise, jax.random.fold_in(key, n))
        R = jnp.where((n + 1) % every == 0, _updated(A, R, U, a, Ut), R)
        return (R, past), R

    start = jnp.asarray(R0), jnp.tile(A @ R0 / C, (depth, 1))
    _, rows = jax.lax.scan(advance, start, jnp.arange(steps))
    return jnp.concatenate([R0[None], rows])
