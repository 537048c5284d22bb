"""Starts to come, in order of time: a heap of transfers; and what an end sets going."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel

ANSWER, RECEIPT, DEPARTURE = map(np.int64, range(3))  # of a last byte: its ACK comes, it arrives, it leaves its host
ENDS, ALL = map(np.int64, (1 << ANSWER | 1 << RECEIPT, 7))  # bit sets of them


@kernel
def push(heap: Any, held: Any, begins: Any, t: Any) -> None:
    """Put a transfer among those to start, at its time."""
    at = held
    while at > 0:
        above = (at - 1) // 2
        if begins[heap[above]] <= begins[t]:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = t


@kernel
def pop(heap: Any, held: Any, begins: Any) -> Any:
    """Take the first of ``held``, which is one more than are left."""
    first, last = heap[0], heap[held - 1]
    left, at = held - 1, 0
    while True:
        below = 2 * at + 1
        if below >= left:
            break
        if below + 1 < left and begins[heap[below + 1]] < begins[heap[below]]:
            below += 1
        if begins[last] <= begins[heap[below]]:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = last
    return first


@kernel
def tell(
    waits_at: Any, listed: Any, what: Any, awaits: Any, delay: Any, begins: Any, t: Any, told: Any, left: Any,
    received: Any, answered: Any, heap: Any, held: Any,
) -> Any:  # fmt: skip
    """Notify followers of a transfer's known ends, a bit set: one that waits for no other starts ``delay`` later.

    Returns how many are to start now. Until then ``begins`` of who waits is the latest end so far.
    """
    for k in range(waits_at[t], waits_at[t + 1]):
        if told >> what[k] & 1 == 0:
            continue
        follower = listed[k]
        end = answered if what[k] == ANSWER else received if what[k] == RECEIPT else left
        begins[follower] = max(begins[follower], end)
        awaits[follower] -= 1
        if awaits[follower] == 0:
            begins[follower] += delay[follower]
            push(heap, held, begins, follower)
            held += 1
    return held


@kernel
def pass_by(
    waits_at: Any, listed: Any, what: Any, awaits: Any, delay: Any, begins: Any, ends: Any, t: Any, heap: Any,
    held: Any,
) -> Any:  # fmt: skip
    """End a wait, which sends nothing, as it begins."""
    at = begins[t]
    ends[t, 0] = ends[t, 1] = ends[t, 2] = at
    return tell(waits_at, listed, what, awaits, delay, begins, t, ALL, at, at, at, heap, held)
