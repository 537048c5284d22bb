"""Marks that a port sets on the packets that leave it: RED's, and those of ternary congestion detection.

TCD (Zhang et al., SIGCOMM 2021) is the basis of ACC (NSDI 2024, section 2.2). A port that flow control has just
resumed may be only a branch of a tree of congestion whose root lies elsewhere: it is undetermined and marks UE. One
that has been sending for ``max_on`` decides by its queue: whether that grows, and then by the threshold. This is
evaluated as each packet leaves, for each queue of a port.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.contract import red as rules
from fluidcc.contract.law import in_world
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import inlined, kernel

# States of a queue.
UNCONGESTED, CONGESTED, UNDETERMINED, CHECKING = map(np.int64, range(4))
# What a packet is marked with.
NOTHING, UE, CE = map(np.int64, range(3))
_GROWTH = 0.9  # packets that a queue gains within max(T_on), at least, if its port is itself congested
_SMALL = 2.0  # packets, up to which a queue that is being checked is no sign of congestion
red = in_world(rules.red, scalars, kernel)


@inlined
def cells(port: Any, size: Any) -> Any:
    """Return the bytes of the cells that a packet [bytes] fills."""
    return (size + port.cell - 1) // port.cell * port.cell


@inlined
def seen(port: Any, q: Any) -> Any:
    """Return the queue that marks see: bytes, or those of the cells that they fill."""
    return port.queues[q].cells if port.in_cells else port.queues[q].bytes


@kernel
def marks(core: Any, uniforms: Any, port: Any, queue: Any) -> Any:
    """Decide whether a packet that sees a queue [bytes], as of `seen`, is marked: DCQCN's Fig. 5.

    Off the ramp `red` is certain: no number is drawn there.
    """
    if port.counts_sending and port.busy and port.free_at > core.now:
        queue += port.sending
    if queue > port.kmax:
        return True
    if queue <= port.kmin:
        return False
    draw = uniforms[core.drawn]
    core.drawn += 1
    return draw < red(queue, port.kmin, port.kmax, port.pmax)


@kernel
def ternary(core: Any, uniforms: Any, port: Any, q: Any, packet: Any) -> Any:
    """Return the mark of a packet of ``packet`` bytes that leaves queue ``q``, and set the queue's next state."""
    queue, state = port.queues[q].bytes, port.queues[q].state
    if port.resumed[q] > 0 and core.now - port.resumed[q] <= port.max_on:
        port.queues[q].state = UNDETERMINED
        return UE
    if state == UNDETERMINED and queue < port.at_resume[q]:
        port.queues[q].state = CHECKING
        port.checked[q] = core.now
        port.at_check[q] = queue
        return NOTHING
    if state == CHECKING:
        if core.now - port.checked[q] > port.max_on:
            if queue - port.at_check[q] >= _GROWTH * packet:
                port.queues[q].state = CONGESTED
                return CE
            port.checked[q] = core.now
            port.at_check[q] = queue
        if queue <= _SMALL * packet:
            port.queues[q].state = UNCONGESTED
        return NOTHING
    # Determined; or of late undetermined, and the queue has not shrunk since: its own threshold decides.
    over = marks(core, uniforms, port, seen(port, q))
    port.queues[q].state = CONGESTED if over else UNCONGESTED
    return CE if over else NOTHING
