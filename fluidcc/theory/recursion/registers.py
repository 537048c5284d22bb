"""HPCC A.3 with a register for each link of a path: alpha-fair rates (7)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from numpy.typing import ArrayLike

from fluidcc.compiling.functions import per_shape
from fluidcc.compiling.settings import our_settings
from fluidcc.surface import public
from fluidcc.theory.recursion.additive import noisy
from fluidcc.theory.recursion.checks import Array, incidence, positive, scalar, whole
from fluidcc.theory.recursion.result import Rates

_CEILING = 600.0  # log of a register over its start: beyond it, its link counts for nothing whatever alpha


@public()
def alpha_fair(
    A: ArrayLike,
    C: ArrayLike,
    R0: ArrayLike,
    *,
    alpha: float,
    increase: float,
    target: float = 0.95,
    steps: int = 1000,
    noise: float = 0.0,
    seed: int = 0,
) -> Rates:
    """Run R_i(t + RTT) = R_i(t) Ut / U_i(t + RTT) + a for each link i of a path of rate (sum R_i^-alpha)^(-1/alpha).

    Parameters
    ----------
    A : array_like
        Incidence, (links, paths).
    C : array_like
        Capacities, (links,), in any unit of rate.
    R0 : array_like
        What all registers of a path start from, (paths,). A path over several links starts slower than that.
    alpha : float
        1 for proportional fairness; max-min fairness as it grows, greatest throughput as it goes to 0.
    increase : float
        a, in the unit of ``C``.
    target : float
        Ut, the target utilisation.
    steps : int
        Round trips, the same for all paths.
    noise, seed
        As in `fluidcc.theory.recursion.additive.additive_increase`.

    Returns
    -------
    Rates

    Raises
    ------
    InputError
        If the network makes no sense or a parameter is out of range.

    Notes
    -----
    HPCC (SIGCOMM 2019), appendix A.3, (7). The registers of a link that settles below Ut have no equilibrium: they grow
    by Ut / U_i each round trip. Ours: they stop at exp(600) times their start, where they no longer matter.
    Registers are kept as logarithms, so that no power of them overflows.
    """
    matrix = incidence(A)
    links, paths = matrix.shape
    capacities, rates = positive("C", C, links, "link"), positive("R0", R0, paths, "path")
    with our_settings():
        found = _run(
            matrix,
            capacities,
            rates,
            scalar("alpha", alpha),
            scalar("increase", increase),
            scalar("target", target, most=1.0),
            scalar("noise", noise, zero=True),
            jax.random.key(whole("seed", seed, least=0)),
            steps=whole("steps", steps),
        )
    return Rates(matrix, capacities, np.asarray(found), f"HPCC (7), alpha = {alpha:g}")


@per_shape()
def _run(
    A: Array, C: Array, R0: Array, alpha: Array, a: Array, Ut: Array, noise: Array, key: jax.Array, *, steps: int
) -> jax.Array:
    def rate(registers: jax.Array) -> jax.Array:
        return jnp.exp(-logsumexp(-alpha * registers, axis=0, b=A) / alpha)  # HPCC (7)

    def advance(registers: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
        # A link that nobody uses has no utilisation; its registers weigh nothing in (7).
        load = jnp.where(A.sum(axis=1) > 0, A @ rate(registers), C)
        U = noisy(jnp.broadcast_to((load / C)[:, None], A.shape), noise, jax.random.fold_in(key, n))
        grown = jnp.logaddexp(registers + jnp.log(Ut / U), jnp.log(a))
        registers = jnp.minimum(grown, jnp.log(R0) + _CEILING)
        return registers, rate(registers)

    start = jnp.broadcast_to(jnp.log(R0), A.shape)
    _, rows = jax.lax.scan(advance, start, jnp.arange(steps))
    return jnp.concatenate([rate(start)[None], rows])
