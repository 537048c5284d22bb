"""From a run's arrays to the numbers people ask for, for all points of a batch at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.fluid.engine import Outcome
from fluidcc.engines.fluid.network import Network
from fluidcc.engines.fluid.plan import Plan
from fluidcc.results.metrics import PERCENTILES, jain, most_loaded, rate_gap


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
