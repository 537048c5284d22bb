"""Bytes that each port carries in each interval of time; intervals double as the run grows longer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fluidcc.engines.packet.jit import kernel

INTERVALS = 256


class Load(NamedTuple):
    """What ports have carried."""

    carried: np.ndarray  # (intervals, ports) [bytes]
    width: np.ndarray  # (1,) of an interval [s]


def load_of(ports: int, width: float) -> Load:
    """Nothing yet."""
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
def add(load: Any, there: Any, f: Any, time: Any, sent: Any) -> None:
    """Add bytes to all ports of a path at once."""
    carried, width = load
    widen(carried, width, time)
    k = min(int(time / width[0]), len(carried) - 1)
    for h in range(there.shape[1]):
        if there[f, h] >= 0:
            carried[k, there[f, h]] += sent


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
