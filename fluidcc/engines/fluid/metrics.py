"""Metrics of a run: from its arrays, for all points of a batch, and as a pure function of the scenario.

The function is for gradients, `jax.vmap` and users' own loops.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.compiling.functions import per_shape
from fluidcc.compiling.settings import our_settings
from fluidcc.engines.fluid.classes import system_of
from fluidcc.engines.fluid.engine import Numbers, Outcome, RunState, begin, numbers_of, proceed
from fluidcc.engines.fluid.network import Network, network_of, with_points
from fluidcc.engines.fluid.plan import Plan, plan_of
from fluidcc.engines.fluid.running_statistics import summarise
from fluidcc.results.metrics import PERCENTILES, jain, most_loaded, rate_gap
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.surface import public

# As in a run's summary and in sweeps; JAX returns names sorted.
_ORDER = ("queue_bytes.mean", "queue_bytes.std", "queue_bytes.max", "utilisation", "rate_bytes_per_s", "jain")


def queue_statistics(plan: Plan, outcome: Outcome) -> dict[str, np.ndarray]:
    """`fluidcc.results.schema.QUEUE_STATISTICS` of every link over the window, each (links, points) [bytes]."""
    s = outcome.summary
    picked = outcome.queue[:: plan.every]
    step = plan.stride * plan.every
    low, high = -(-plan.first // step), plan.last // step
    inside = picked[low : high + 1] if high >= low else picked[low : low + 1]
    inside = inside if len(inside) else picked[-1:]
    quantiles = np.percentile(inside, PERCENTILES, axis=0)
    stats = {"mean": s.queue_mean, "std": s.queue_std}
    stats |= {f"p{p}": values for p, values in zip(PERCENTILES, quantiles, strict=True)}
    return stats | {"min": s.queue_min, "max": s.queue_max, "max_whole_run": s.queue_max_whole_run}


def metrics_of(network: Network, plan: Plan, outcome: Outcome, payload: Any) -> dict[str, np.ndarray]:
    """`fluidcc.results.schema.METRICS` of every point, each (points,).

    Parameters
    ----------
    network : Network
        Of plain numbers.
    plan : Plan
    outcome : Outcome
    payload : array_like
        Payload of a packet [bytes].
    """
    link = most_loaded(outcome.summary.queue_mean)
    points = np.arange(len(link))
    found = {f"queue_bytes.{k}": v[link, points] for k, v in queue_statistics(plan, outcome).items()}
    rates = outcome.summary.rate_mean
    weights = np.asarray(network.multiplicity, dtype=float)
    weights, packet = (a[:, None] if a.ndim == 1 else a for a in (weights, np.asarray(network.packet, dtype=float)))
    found["jain"] = jain(rates, weights, axis=0)
    found["utilisation"] = outcome.summary.utilisation[link, points]
    found["rate_gap_bytes_per_s"] = rate_gap(rates, axis=0)
    found["goodput_bytes_per_s"] = np.sum(weights * rates / packet, axis=0) * np.asarray(payload)
    return found


@public()
def measure(
    scenario: Scenario,
    *,
    until: Any,
    window: Any = None,
    dt: Any = "1us",
    method: str = "heun",
    longest_lag: Any = None,
) -> dict[str, Array]:
    """Integrate and reduce, traceable and differentiable forwards and in reverse.

    Call it inside ``with jax.enable_x64(True):`` for double precision; it follows JAX's setting. The gradient
    is that of the steps as taken: where marking jumps at kmax, it does not see the crossing move to another
    step.

    Parameters
    ----------
    scenario : Scenario
        Any number in it may be traced, except that flows and links are fixed.
    until, window, dt : quantity
        As in `simulate`; ``dt`` is not chosen automatically.
    method : {"heun", "rk4", "euler"}
    longest_lag : quantity
        Bound on the lags [s]; needed if a delay is traced.

    Returns
    -------
    dict of Array
        ``queue_bytes.mean``, ``queue_bytes.std``, ``queue_bytes.max``, ``utilisation`` (links,);
        ``rate_bytes_per_s`` (flows,) per flow of a class, the mean; ``jain`` ().

    Raises
    ------
    InputError
        If the scenario or an option makes no sense.

    Examples
    --------
    >>> import jax, fluidcc as fc
    >>> def queue(kmin):
    ...     return fc.measure(fc.incast(2, marking=fc.RED(kmin, 2e5, 0.01)), until="1ms")["queue_bytes.mean"][0]
    >>> with jax.enable_x64(True):
    ...     slope = jax.grad(queue)(5e3)
    """
    with our_settings(double=None):
        network = network_of(resolve(scenario))
        plan = plan_of(
            network,
            until=until,
            window=window,
            dt=dt,
            method=method,
            dtype=str(jnp.zeros(()).dtype),
            samples=64,
            longest_lag=longest_lag,
        )
        network = with_points(network, plan.dtype)
        static = {name: getattr(plan, name) for name in ("depth", "method", "aligned", "samples", "stride")}
        found = _measured(network, numbers_of(plan), **static)
    return {name: found[name] for name in _ORDER}


@per_shape()
def _measured(
    network: Network, numbers: Numbers, *, depth: int, method: str, aligned: bool, samples: int, stride: int
) -> dict[str, Array]:
    static = {"points": 1, "depth": depth, "method": method, "aligned": aligned}
    progress = begin(network, numbers, **static)

    @jax.checkpoint
    def segment(state: RunState) -> RunState:
        return proceed(network, numbers, state, stride, samples=1, full=False, **static)[0]

    progress, _ = jax.lax.scan(lambda state, _: (segment(state), None), progress, None, length=samples)
    system = system_of(network, 1, numbers.limit)
    # Only here: in earlier segments the window may still be empty, and 0/0 would poison the gradient.
    summary = jax.tree.map(lambda a: a[:, 0], summarise(system, progress.statistics, numbers.dt))
    weights = jnp.broadcast_to(network.multiplicity[:, 0], summary.rate_mean.shape)
    total = jnp.sum(weights * summary.rate_mean)
    return {
        "queue_bytes.mean": summary.queue_mean,
        "queue_bytes.std": summary.queue_std,
        "queue_bytes.max": summary.queue_max,
        "utilisation": summary.utilisation,
        "rate_bytes_per_s": summary.rate_mean,
        "jain": total**2 / (jnp.sum(weights) * jnp.sum(weights * summary.rate_mean**2)),
    }
