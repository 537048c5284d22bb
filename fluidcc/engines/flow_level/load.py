"""Bytes that each port carries in each interval of time; intervals double as the run grows longer."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fluidcc.engines.common.jit import kernel

INTERVALS = 256
_CRUMB = 1e-9  # of what a port sends in an interval: rounding


class Load(NamedTuple):
    """Bytes that ports have carried."""

    carried: np.ndarray  # (intervals, ports) [bytes]
    width: np.ndarray  # (1,) of an interval [s]


def load_of(ports: int, width: float) -> Load:
    """Return the load of a number of ports before any traffic, in intervals of a given width."""
    return Load(np.zeros((INTERVALS, ports)), np.array([width]))


@kernel
def carry(load: Any, rates: Any, since: Any, until: Any) -> None:
    """Add what ports carry at their rates from one time to another."""
    carried, width = load
    intervals, ports = carried.shape
    widen(carried, width, until)
    k = int(since / width[0])
    while k < intervals and k * width[0] < until:
        spent = min(until, (k + 1) * width[0]) - max(since, k * width[0])
        if spent > 0.0:
            for p in range(ports):
                carried[k, p] += rates[p] * spent
        k += 1


@kernel
def carry_on(load: Any, ways: Any, f: Any, rate: Any, since: Any, until: Any) -> None:
    """Add to all ports of a path what one flow sends at a rate; the intervals must reach that far already."""
    carried, width = load
    k = int(since / width[0])
    while k < len(carried) and k * width[0] < until:
        spent = min(until, (k + 1) * width[0]) - max(since, k * width[0])
        if spent > 0.0:
            for h in range(ways.shape[1]):
                if ways[f, h] >= 0:
                    carried[k, ways[f, h]] += rate * spent
        k += 1


@kernel
def widen(carried: Any, width: Any, until: Any) -> None:
    """Have the intervals reach a time: each takes the next one in, as often as it needs."""
    half, ports = carried.shape[0] // 2, carried.shape[1]
    while until > 2 * half * width[0]:
        for k in range(half):
            for p in range(ports):
                carried[k, p] = carried[2 * k, p] + carried[2 * k + 1, p]
        carried[half:, :] = 0.0
        width[0] *= 2.0


def shares_of(load: Load, rate: np.ndarray, until: float) -> np.ndarray:
    """Share of its rate that each port sent in each interval until a time, or until all is sent; (intervals, ports).

    What would be more than its rate, since others' rates follow an end or a start a little late, is sent in the next.
    """
    most = load.width[0] * rate
    carried = list(np.maximum(load.carried, 0.0))
    kept = max(math.ceil(min(until / load.width[0], len(carried))), 1)
    owed, found = np.zeros_like(rate), []
    while carried or (owed > _CRUMB * most).any():
        owed = owed + (carried.pop(0) if carried else 0.0)
        found.append(np.minimum(owed, most))
        owed = owed - found[-1]
    last = np.flatnonzero(np.any(found, axis=1))
    return np.array(found[: max(kept, last[-1] + 1 if len(last) else 0)]) / most
