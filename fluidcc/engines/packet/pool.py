"""Packets: taking them from the pool, giving them back, and putting them in lists."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.packet.jit import kernel


@kernel
def allocate(core: Any, packets: Any) -> Any:
    """A packet from the free list; the loop returns to Python to grow the pool before it is empty."""
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
    tail = port.tail[q]
    if tail < 0:
        port.head[q] = k
    else:
        packets[tail].next = k
    port.tail[q] = k


@kernel
def leave(packets: Any, port: Any, q: Any) -> Any:
    """Take the packet at the head of a queue."""
    k = port.head[q]
    following = packets[k].next
    port.head[q] = following
    if following < 0:
        port.tail[q] = -1
    return k
