"""Metrics of unfairness over the last axis of rates: the paper's difference, and ratios."""

from __future__ import annotations

from fluidcc.results.metrics import jain, rate_gap
from fluidcc.theory.fairness.settings import Array


def ratio(rates: Array) -> Array:
    """Largest over smallest rate: 1 if fair."""
    return rates.max(axis=-1) / rates.min(axis=-1)


METRICS = {
    "difference": (rate_gap, "bytes/s", "largest less smallest rate"),
    "ratio": (ratio, "1", "largest over smallest rate"),
    "jain": (jain, "1", "Jain's index"),
}
