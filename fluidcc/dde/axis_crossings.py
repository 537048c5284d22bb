"""Frequencies at which curves cross zero: adaptive sampling separates them, root-finding makes them exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import root_scalar

from fluidcc.dde.delay_system import Array

_DECADES = 10  # below the highest frequency
_PER_DECADE = 24
_PER_RADIAN = 4  # of the phase of the delays
_MOST = 1_000_000
_NARROWEST = 1e-9  # relative width of an interval that is not halved any more: there the curves only touch zero


def grid(poles: Array, longest: float, high: float) -> Array:
    """Frequencies to begin with, up to ``high`` [rad/s].

    By decades, as fine as the phase of e^(-i w longest) needs, and closer around the poles, roots [1/s] of the open
    loop: a lightly damped one is a peak that no even grid sees.
    """
    low = high * 10.0**-_DECADES
    parts = [np.geomspace(low, high, _DECADES * _PER_DECADE)]
    turns = min(int(high * longest * _PER_RADIAN), _MOST)
    parts.append(np.linspace(low, high, turns + 2))
    poles = poles[poles.imag > 0]
    width = np.maximum(np.abs(poles.real), 1e-7 * poles.imag)
    parts += [poles.imag + step * width for step in (-9, -3, -1, -0.3, 0.3, 1, 3, 9)]
    together = np.unique(np.concatenate(parts))
    return together[(together >= low) & (together <= high)]


def crossings(curves: Callable[[Array], Array], frequencies: Array) -> list[tuple[float, int]]:
    """Zeros of continuous curves between the first and the last of these frequencies.

    Parameters
    ----------
    curves : callable
        Frequencies (m,) to values (m, r).
    frequencies : ndarray
        (m,), ascending: the sampling to begin with. Intervals in which a curve bends so much that it may reach zero
        are halved.

    Returns
    -------
    list of (float, int)
        Frequency and curve, by frequency. Two zeros that the sampling does not separate, closer than what it
        resolves, are missed.
    """
    a, b = frequencies[:-1], frequencies[1:]
    at_a, at_b = _split(curves(frequencies))
    found: list[tuple[float, int]] = []
    while a.size:
        if a.size > _MOST:
            raise ArithmeticError("crossings: a curve rests on zero")
        middle = (a + b) / 2
        at_middle = curves(middle)
        bend = np.abs(at_middle - (at_a + at_b) / 2)
        lowest = np.minimum(np.minimum(np.abs(at_a), np.abs(at_b)), np.abs(at_middle))
        one_sign = (np.sign(at_a) == np.sign(at_b)) & (np.sign(at_a) == np.sign(at_middle))
        none = one_sign & (lowest > 4 * bend)
        once = (at_a * at_b < 0) & (bend < 0.1 * np.abs(at_b - at_a))
        narrow = (b - a <= _NARROWEST * b)[:, None] & np.ones_like(none)
        decided = (none | once | narrow).all(axis=-1)
        for i, curve in np.argwhere(decided[:, None] & (at_a * at_b <= 0) & ~none):
            found.append((_refine(curves, float(a[i]), float(b[i]), int(curve)), int(curve)))
        open_ = ~decided
        a, middle, b = a[open_], middle[open_], b[open_]
        at_a, at_middle, at_b = at_a[open_], at_middle[open_], at_b[open_]
        a, b = np.concatenate([a, middle]), np.concatenate([middle, b])
        at_a, at_b = np.concatenate([at_a, at_middle]), np.concatenate([at_middle, at_b])
    return _distinct(sorted(found))


def _split(values: Array) -> tuple[Array, Array]:
    return values[:-1], values[1:]


def _refine(curves: Callable[[Array], Array], a: float, b: float, curve: int) -> float:
    def value(w: float) -> float:
        return float(curves(np.array([w]))[0, curve])

    ends = value(a), value(b)
    if ends[0] * ends[1] >= 0:
        return a if abs(ends[0]) <= abs(ends[1]) else b
    return root_scalar(value, bracket=(a, b), xtol=1e-300, rtol=4 * np.finfo(float).eps).root


def _distinct(found: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """A zero on the border of two intervals is found in both."""
    kept: list[tuple[float, int]] = []
    for w, curve in found:
        if not any(curve == other and w - at <= _NARROWEST * w for at, other in kept[-4:]):
            kept.append((w, curve))
    return kept
