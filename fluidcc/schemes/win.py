"""A window for rate-based schemes: HPCC's section 5.1 adds one to DCQCN and TIMELY, rate times base RTT."""

from __future__ import annotations

from typing import Any

from fluidcc.scenario.parameters import parameter
from fluidcc.schemes.fields import base_rtt_field


def win_base_rtt() -> Any:
    """Field ``base_rtt`` of a scheme with `win_switch`."""
    return base_rtt_field("base RTT that win fills", source="HPCC 5.1")


def win_switch() -> Any:
    """Field ``win``."""
    return parameter(
        "on|off",
        "limit the bytes in flight to rate times base RTT (packet engine)",
        default=False,
        source="HPCC 5.1",
        choices=(False, True),
    )
