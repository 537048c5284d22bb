"""A window for rate-based schemes: HPCC's section 5.1 adds one to DCQCN and TIMELY, rate times base RTT."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from fluidcc.contract.fields import base_rtt_field
from fluidcc.scenario.parameters import parameter

if TYPE_CHECKING:
    from fluidcc.contract.bind import PathInformation

_P = TypeVar("_P")


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


def bound_win(parameters: _P, path: PathInformation) -> _P:
    """Parameters with `win_switch`: if it is on, with the base RTT that the window fills."""
    p: Any = parameters
    if not p.win or p.base_rtt is not None:
        return parameters
    base_rtt = path.largest_payload_rtt if p.variant == "hpcc-sim" else path.largest_base_rtt
    return dataclasses.replace(p, base_rtt=base_rtt)
