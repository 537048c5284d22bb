"""Test of a steady oscillation, by its size in successive windows of equal length.

An oscillation is the largest less the smallest value in a window. Two equal oscillations are not enough: one that
decays by a thousandth per window is still far from equilibrium. So the remaining change is extrapolated from three.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

AGREE = 0.01  # of an oscillation: change from window to window, and change still to come, of one that is steady
SMALLEST = 1e-3  # of the mean (of one packet, if that is more): an oscillation that counts as none
_NO_CHANGE = 1e-5  # of an oscillation: what steps leave undecided

KINDS = ("equilibrium", "cycle", "irregular", "growing", "decaying", "unsettled")


def to_come(oscillations: Array) -> Array:
    """Compute how far an oscillation would still change if its changes were a geometric series.

    Parameters
    ----------
    oscillations : ndarray, shape (3, points)
        In successive windows.

    Returns
    -------
    ndarray, shape (points,)
        In the unit of the oscillation; the last change where changes alternate, infinity where they do not get smaller.
    """
    first, second = np.diff(oscillations, axis=0)
    nothing = _NO_CHANGE * np.max(oscillations, axis=0)
    ratio = np.where(first == 0, 1.0, second / np.where(first == 0, 1.0, first))
    series = np.abs(second) * ratio / np.where(ratio < 1, 1 - ratio, 1.0)
    left = np.where(ratio <= 0, np.abs(second), np.where(ratio < 1, series, np.inf))
    return np.where(np.abs(second) <= nothing, 0.0, left)


def kinds(oscillations: Array, scale: Array) -> tuple[Array, Array]:
    """Classify the oscillation of each point, and decide whether more windows could change its kind.

    Parameters
    ----------
    oscillations : ndarray, shape (windows, points)
        Of all windows so far.
    scale : ndarray, shape (points,)
        Mean of the last window; one packet if that is more.

    Returns
    -------
    kind : ndarray of str, shape (points,)
        One of `KINDS`. "equilibrium": the last three oscillations are below 0.001 of the scale, and do not grow.
        "cycle": the last three agree within 1 %, and so does what they converge to. Else "growing" or "decaying", if
        the last three rise or fall, or "irregular"; "unsettled" before there are three.
    settled : ndarray of bool, shape (points,)
        Whether the kind is "equilibrium" or "cycle"; points that are not finite count as settled.
    """
    points = oscillations.shape[1]
    finite: Array = np.asarray(np.isfinite(oscillations).all(axis=0))
    if len(oscillations) < 3:
        return np.full(points, "unsettled", dtype="<U11"), ~finite
    last = np.where(finite, oscillations[-3:], 0.0)
    size = np.max(last, axis=0)
    fixed_points = (size <= SMALLEST * scale) & (last[2] <= (1 + AGREE) * last[1])
    steady = (np.ptp(last, axis=0) <= AGREE * size) & (to_come(last) <= AGREE * size) & (size > SMALLEST * scale)
    changes = np.diff(last, axis=0)
    names = np.select(
        [fixed_points, steady, (changes > 0).all(axis=0), (changes < 0).all(axis=0)],
        ["equilibrium", "cycle", "growing", "decaying"],
        "irregular",
    )
    return names, np.asarray(fixed_points | steady | ~finite)
