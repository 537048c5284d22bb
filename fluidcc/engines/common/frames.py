"""Sizes of what is no data on the wire."""

from __future__ import annotations

import math

from fluidcc.scenario.model import Flow, Scenario

CONTROL_BYTES = 64  # of a PFC frame and a CNP


def whole_bytes(value: float) -> int:
    """Round a size up, but for rounding."""
    return math.ceil(value - 1e-9)


def ack_size(scenario: Scenario, flow: Flow) -> int:
    """Return an ACK's bytes on the wire; the simulator pads it to 60."""
    size = whole_bytes(scenario.ack_bytes + flow.scheme.int_bytes)
    return max(size, 60) if scenario.timing == "ns3" else size
