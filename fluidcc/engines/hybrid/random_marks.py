"""Chance: the marking hazard of a queue that is a straight line, and the numbers that it is held against.

Each packet is marked with probability p, so that n packets pass unmarked with (1 - p)^n = exp(-n h), where
h = -log(1 - p): the next mark is at the first packet at or after the moment at which the integral of h over packets
reaches an exponential number. On the ramp p is a straight line in time while the queue is, and the integral of h is

    G(p) = (1 - p) log(1 - p) + p,

by which a wait is found without a step. The numbers are a function of seed, hop and count alone (SplitMix64: Steele,
Lea, Flood, OOPSLA 2014), and do not depend on what else runs: two settings that share a seed share their chance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel, wrapping

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = (np.uint64(n) for n in (30, 27, 31, 11))
_UNIT = 2.0**-53
_NARROW = 1e-3  # change of p over which the trapezoid with its ends' slopes does: (1e-3)^4/120 against G's cancellation
_STILL = 1e-6  # change of p over which h is a straight line
_NEARLY = 1.0 - 1e-12  # the largest p from which Newton starts: h is infinite at 1
_SMALL = 1e-4  # p below which G is its series
_NEAR = 1e-7  # a relative step of Newton's method after which the next one would be of the order of its square


@wrapping
def mixed(x: Any) -> Any:
    """SplitMix64's finaliser."""
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@wrapping
def uniform(seed: Any, hop: Any, count: Any) -> Any:
    """A number in (0, 1] for each seed, hop and count."""
    stream = mixed(mixed(np.uint64(seed) + _GOLDEN) + np.uint64(hop + 1) * _GOLDEN)
    bits = mixed(stream + np.uint64(count + 1) * _GOLDEN) >> _S11
    return (np.float64(bits) + 1.0) * _UNIT


@kernel
def exponential(seed: Any, hop: Any, count: Any) -> Any:
    """An exponential number of mean 1."""
    return -math.log(uniform(seed, hop, count))


@kernel
def hazard(p: Any) -> Any:
    """Hazard h = -log(1 - p) of a packet."""
    return -math.log1p(-p) if p < 1.0 else math.inf


@kernel
def antiderivative(p: Any, h: Any) -> Any:
    """G(p), the integral of h from 0 to p, where h is that of p."""
    if p < _SMALL:
        return p * p * (0.5 + p * (1.0 / 6.0 + p / 12.0))
    return p - (1.0 - p) * h if p < 1.0 else 1.0


@kernel
def gained(p: Any, before: Any, q: Any, after: Any, span: Any) -> Any:
    """Integral of h over a time in which the probability goes from p to q, and h from one to the other."""
    change = q - p
    if abs(change) < _NARROW * (1.0 - max(p, q)):
        return span * (0.5 * (before + after) - change * change / (12.0 * (1.0 - p) * (1.0 - q)))
    return span * (antiderivative(q, after) - antiderivative(p, before)) / change


@kernel
def wait_for(p: Any, now: Any, pace: Any, wanted: Any, most: Any, whole: Any) -> Any:
    """Return the time until the integral of h is ``wanted``.

    p, where h is ``now``, changes at a pace until it is nothing or ``most``, where G is ``whole``. Infinite if it comes
    there before.
    """
    if wanted <= 0.0:
        return 0.0
    rough = wanted / now if now > 0.0 else math.inf
    if abs(pace) * rough < _STILL * (1.0 - p):  # h t + h' pace t^2/2, h' = 1/(1 - p)
        root = now * now + 2.0 * pace * wanted / (1.0 - p)
        wait = 2.0 * wanted / (now + math.sqrt(max(root, 0.0)))
        return wait if 0.0 <= p + pace * wait <= most else math.inf
    goal = antiderivative(p, now) + pace * wanted
    if goal <= 0.0 or goal > whole:
        return math.inf
    # Newton from above, where G is convex: it falls to the root without passing it. With s^2 = 2 G the root is
    # s - s^2/6 - s^3/72 - ..., whose further terms are negative; and h only grows with p.
    series = math.sqrt(2.0 * goal)
    series *= 1.0 - series * (1.0 / 6.0 + series / 72.0)
    at = min(most, p + pace * rough, series, _NEARLY) if pace > 0.0 else min(p, series)
    for _ in range(100):
        slope = hazard(at)
        step = (antiderivative(at, slope) - goal) / slope
        at -= step
        if abs(step) <= _NEAR * at:
            break
    return max((at - p) / pace, 0.0)
