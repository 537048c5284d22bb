"""The calendar: a binary heap of (time, order, event), smallest first, ties by order of scheduling."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.packet.jit import kernel

# An event is kind << SHIFT | packet << BESIDE | index; only those of arrival have a packet.
SHIFT, BESIDE = map(np.int64, (58, 28))


@kernel
def push(core: Any, heap: Any, time: Any, order: Any, event: Any) -> None:
    """Schedule an event; an order taken earlier (`ticket`) may be given to it."""
    i = core.heap
    core.heap = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if heap[up, 0] < time or (heap[up, 0] == time and heap[up, 1] < order):
            break
        heap[i, 0] = heap[up, 0]
        heap[i, 1] = heap[up, 1]
        heap[i, 2] = heap[up, 2]
        i = up
    heap[i, 0] = time
    heap[i, 1] = order
    heap[i, 2] = event


@kernel
def pop(core: Any, heap: Any) -> None:
    """Remove the first event, which the caller has read from row 0."""
    n = core.heap - 1
    core.heap = n
    time, order, event = heap[n, 0], heap[n, 1], heap[n, 2]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= n:
            break
        other = down + 1
        if other < n and (
            heap[other, 0] < heap[down, 0] or (heap[other, 0] == heap[down, 0] and heap[other, 1] < heap[down, 1])
        ):
            down = other
        if time < heap[down, 0] or (time == heap[down, 0] and order < heap[down, 1]):
            break
        heap[i, 0] = heap[down, 0]
        heap[i, 1] = heap[down, 1]
        heap[i, 2] = heap[down, 2]
        i = down
    heap[i, 0] = time
    heap[i, 1] = order
    heap[i, 2] = event


@kernel
def next_sequence(core: Any) -> Any:
    """Next place in the order of scheduling."""
    core.order += 1
    return core.order


@kernel
def schedule(core: Any, heap: Any, time: Any, kind: Any, index: Any) -> None:
    """Schedule an event of a kind for some port or flow."""
    push(core, heap, time, next_sequence(core), (kind << SHIFT) | index)
