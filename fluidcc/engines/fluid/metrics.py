"""From a run's arrays to the numbers people ask for, for all points of a batch at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.fluid.engine import Outcome
from fluidcc.engines.fluid.network import Network
from fluidcc.engines.fluid.plan import Plan

PERCENTILES = (5, 50, 95, 99)
QUEUE_STATISTICS = ("mean", "std", "p5", "p50", "p95", "p99", "min", "max", "max_whole_run")

METRICS: dict[str, tuple[str, str]] = {
    **{f"queue_bytes.{name}": ("bytes", f"queue of the most loaded link, {name}") for name in QUEUE_STATISTICS},
    "jain": ("1", "Jain's fairness index of the flows' mean rates"),
    "utilisation": ("1", "share of the most loaded link's capacity that was used"),
    "rate_gap_bytes_per_s": ("bytes/s", "largest less smallest of the flows' mean rates"),
    "goodput_bytes_per_s": ("bytes/s", "sum of the flows' payload rates"),
}


def queue_statistics(plan: Plan, outcome: Outcome) -> dict[str, np.ndarray]:
    """`QUEUE_STATISTICS` of every link over the window, each (links, points) [bytes]."""
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


def most_loaded(outcome: Outcome) -> np.ndarray:
    """Index (points,) of the link with the largest mean queue; ties go to the lower index."""
    return np.argmax(np.nan_to_num(outcome.summary.queue_mean, nan=-1.0), axis=0)


def jain(rates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Jain's index (points,) of rates (flows, points) of classes with multiplicities; NaN if all are 0."""
    total = np.sum(weights * rates, axis=0)
    squares = np.sum(weights * rates**2, axis=0) * np.sum(np.broadcast_to(weights, rates.shape), axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(squares > 0, total**2 / squares, np.nan)


def metrics_of(network: Network, plan: Plan, outcome: Outcome, payload: Any) -> dict[str, np.ndarray]:
    """`METRICS` of every point, each (points,).

    Parameters
    ----------
    network : Network
        Of plain numbers.
    plan : Plan
    outcome : Outcome
    payload : array_like
        Payload of a packet [bytes].
    """
    link = most_loaded(outcome)
    points = np.arange(len(link))
    found = {f"queue_bytes.{k}": v[link, points] for k, v in queue_statistics(plan, outcome).items()}
    rates = outcome.summary.rate_mean
    weights = np.asarray(network.multiplicity, dtype=float)
    weights, packet = (a[:, None] if a.ndim == 1 else a for a in (weights, np.asarray(network.packet, dtype=float)))
    found["jain"] = jain(rates, weights)
    found["utilisation"] = outcome.summary.utilisation[link, points]
    found["rate_gap_bytes_per_s"] = np.max(rates, axis=0) - np.min(rates, axis=0)
    found["goodput_bytes_per_s"] = np.sum(weights * rates / packet, axis=0) * np.asarray(payload)
    return found
