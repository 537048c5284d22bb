"""What holds a flow back: its pacer, and its bytes in flight."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.packet.jit import kernel
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
    """A flow's rate has changed: the packet that waits for the pacer goes by the new rate."""
    if flow.last_size > 0:
        flow.next = flow.last + gap(core, flow.last_size, flow.rate)


@kernel
def inflight(core: Any, flow: Any) -> Any:
    """Bytes sent and not acknowledged, nor known to be lost by a NACK, in the unit of windows."""
    flying = flow.sent - flow.acked if core.payload_window else flow.sent_wire - flow.acked_wire
    return flying - flow.away if core.recovery == TRIMMING else flying
