"""How unfair rates are, over their last axis: the paper's difference, and ratios."""

from __future__ import annotations

from fluidcc.theory.fairness.settings import Array


def difference(rates: Array) -> Array:
    """Largest less smallest rate; of two flows the difference that Snyder and Lebeck's (2) compares."""
    return rates.max(axis=-1) - rates.min(axis=-1)


def ratio(rates: Array) -> Array:
    """Largest over smallest rate: 1 if fair."""
    return rates.max(axis=-1) / rates.min(axis=-1)


def jain(rates: Array) -> Array:
    """Jain's index, (sum R)^2/(n sum R^2): 1 if fair, 1/n if one flow has all. It depends on ratios alone.

    `fluidcc.results.trace.jain_index` over an axis; scaled first, so that rates may be as small as floats are.
    """
    scaled = rates / rates.max(axis=-1, keepdims=True)
    return scaled.sum(axis=-1) ** 2 / (rates.shape[-1] * (scaled**2).sum(axis=-1))


METRICS = {
    "difference": (difference, "bytes/s", "largest less smallest rate"),
    "ratio": (ratio, "1", "largest over smallest rate"),
    "jain": (jain, "1", "Jain's index"),
}
