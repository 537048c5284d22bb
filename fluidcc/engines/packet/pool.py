"""Packets: taking them from the pool, giving them back, and putting them in lists."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.packet.prefetch import prefetch


@kernel
def allocate(core: Any, packets: Any) -> Any:
    """Take a packet from the free list; the loop returns to Python to grow the pool before it is empty."""
    k = core.free
    core.free = packets[k].next
    core.spare -= 1
    return k


@kernel
def free(core: Any, packets: Any, k: Any) -> None:
    """Return a packet to the free list."""
    packets[k].next = core.free
    core.free = k
    core.spare += 1


@kernel
def join(packets: Any, port: Any, q: Any, k: Any) -> None:
    """Put a packet at the end of one of a port's queues."""
    packets[k].next = -1
    queue = port.queues[q]
    if queue.tail < 0:
        queue.head = k
        port.waiting |= 1 << q
    else:
        packets[queue.tail].next = k
    queue.tail = k


@kernel
def leave(packets: Any, port: Any, q: Any) -> Any:
    """Take the packet at the head of a queue."""
    queue = port.queues[q]
    k = queue.head
    following = packets[k].next
    queue.head = following
    if following < 0:
        queue.tail = -1
        port.waiting &= ~(1 << q)
    else:
        prefetch(packets, following, 0)  # of a long queue it has left the processor's caches long ago
    return k
