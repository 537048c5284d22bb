"""Points of which none is better than another in every objective, and the knee of their curve."""

from __future__ import annotations

import numpy as np

_STRAIGHT = 1e-9  # share of the ranges below which a front has no knee


def front_of(costs: np.ndarray) -> np.ndarray:
    """Indices of the points that no other is better than, by the first cost.

    Parameters
    ----------
    costs : ndarray, shape (points, objectives)
        Less is better.

    Returns
    -------
    ndarray of int
        Of points with the same costs, the first.
    """
    kept = []
    for i in np.lexsort(costs.T[::-1]):
        if not any((costs[k] <= costs[i]).all() for k in kept):
            kept.append(int(i))
    return np.array(kept, int)


def knee_of(costs: np.ndarray) -> int | None:
    """The point of a front that is furthest below the line between its ends, costs in shares of their ranges.

    Parameters
    ----------
    costs : ndarray, shape (points, 2)
        Of a front, by the first.

    Returns
    -------
    int or None
        None where it has no such point: fewer than three, or all on the line or above.
    """
    if len(costs) < 3 or costs.shape[1] != 2:
        return None
    span = np.ptp(costs, axis=0)
    if (span <= 0).any():
        return None
    scaled = (costs - costs.min(axis=0)) / span
    below = 1.0 - scaled.sum(axis=1)  # the ends are (0, 1) and (1, 0)
    at = int(np.argmax(below))
    return at if below[at] > _STRAIGHT else None
