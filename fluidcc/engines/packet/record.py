"""Records of a run: exact statistics of queues over the window, samples for the trace, and the log of events."""

from __future__ import annotations

import math
from typing import Any

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.packet.layout import BINS, PAUSE, RECEIVED

_FINE = 128  # bytes in a bin up to _KNEE
_KNEE = 65536  # bytes; beyond, bins grow by 1 %
_LINEAR = _KNEE // _FINE
_PER_E = 1 / math.log(1.01)


@kernel
def bin_of(queue: Any) -> Any:
    """Bin of a queue length [bytes]: 128 B wide up to 64 KiB, then 1 %."""
    if queue < _KNEE:
        return queue // _FINE
    return min(_LINEAR + int(math.log(queue / _KNEE) * _PER_E), BINS - 1)


@kernel
def account(core: Any, links: Any, bins: Any, row: Any, queue: Any) -> None:
    """Count the time that a link's queue has had its present length; call before it changes.

    The length after the change goes to `peak`.
    """
    link = links[row]
    span = core.now - link.changed
    link.changed = core.now
    if span > 0 and core.watching:
        weight = span * 1e-12
        if queue < link.least_in_window:
            link.least_in_window = queue
        area = weight * queue
        link.area += area
        link.area2 += area * queue
        at = bin_of(queue)
        if at == 0:
            link.near[0] += weight
            link.near[1] += area
        else:
            bins[row, at, 0] += weight
            bins[row, at, 1] += area


@kernel
def peak(core: Any, links: Any, row: Any, queue: Any) -> None:
    """Keep the longest queue, of the run and of the window."""
    link = links[row]
    if queue > link.most:
        link.most = queue
    if core.watching and queue > link.most_in_window:
        link.most_in_window = queue


@kernel
def write(core: Any, log: Any, what: Any, port: Any, flow: Any, kind: Any, end: Any, queue: Any, value: Any) -> None:
    """Write a line of the log; the loop returns to Python to grow it before it is full."""
    if core.frames_only and (what != RECEIVED or kind < PAUSE):
        return
    line = log[core.logged]
    core.logged += 1
    line.time = core.now
    line.what = what
    line.port = port
    line.flow = flow
    line.kind = kind
    line.end = end
    line.queue = queue
    line.value = value
