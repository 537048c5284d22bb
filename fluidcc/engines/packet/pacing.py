"""Limits on a flow's sending: its pacer, and its bytes in flight."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.packet.layout import PS, TRIMMING

_LONGEST_GAP = 10 * PS  # between two packets of a flow whose rate has fallen to nothing


@kernel
def gap(core: Any, size: Any, rate: Any) -> Any:
    """Time between the starts of two packets at a rate [ps]; whole nanoseconds, rounded down, in ns3 timing."""
    if rate * 10.0 <= size:
        return _LONGEST_GAP
    if core.ns3:
        return int(size / rate * 1e9) * 1000
    return int(size / rate * 1e12 + 0.5)


@kernel
def repace(core: Any, flow: Any) -> None:
    """Reschedule the packet that waits for the pacer, after the flow's rate has changed."""
    if flow.last_size > 0 and flow.in_burst == 0:
        flow.next = flow.last + wait(core, flow)


@kernel
def wait(core: Any, flow: Any) -> Any:
    """Time from the start of a flow's last burst to that of the next [ps]."""
    time = gap(core, flow.last_size, flow.rate)
    return int(time * flow.stretch + 0.5) if core.jitter > 0.0 else time


@kernel
def pace(core: Any, uniforms: Any, flow: Any, size: Any) -> None:
    """Set when the next packet may go after this one, which goes now: at once within a burst."""
    if flow.in_burst == 0:
        flow.last = core.now
        flow.last_size = 0
    flow.last_size += size
    flow.in_burst += 1
    flow.next = core.now
    if flow.in_burst < core.burst:
        return
    flow.in_burst = 0
    if core.jitter > 0.0:
        flow.stretch = 1.0 + core.jitter * (2.0 * uniforms[core.drawn] - 1.0)
        core.drawn += 1
    flow.next = flow.last + wait(core, flow)


@kernel
def inflight(core: Any, flow: Any) -> Any:
    """Bytes sent and not acknowledged, nor known to be lost by a NACK, in the unit of windows."""
    flying = flow.sent - flow.acked if core.payload_window else flow.sent_wire - flow.acked_wire
    return flying - flow.away if core.recovery == TRIMMING else flying
