"""The scheme's parameters: what users set, and what is filled in for them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fluidcc.contract.fields import base_rtt_field, feedback_delay_field
from fluidcc.contract.preset import Preset
from fluidcc.scenario.model import RED
from fluidcc.scenario.parameters import parameter, register
from fluidcc.units import RATE, RATIO

if TYPE_CHECKING:
    from fluidcc.contract.bind import PathInformation


MARKING = RED("5KB", "400KB", "20%")  # of links that are given none


@register()
class AIMD:
    """Parameters of an AIMD sender."""

    rate_ai: Any = parameter(RATE, "increase of the rate in a base RTT", default="40Mbps", symbol="a", low=0)
    beta: Any = parameter(RATIO, "share that a mark cuts", default=1 / 16, symbol="b", low=0, high=1, open_low=True)
    min_rate: Any = parameter(RATE, "least rate", default="10Mbps", low=0, open_low=True)
    base_rtt: Any = base_rtt_field(source="")
    feedback_delay: Any = feedback_delay_field()

    name: ClassVar[str] = "aimd-ecn"
    int_bytes = 0.0  # collects no telemetry
    default_marking: ClassVar[RED] = MARKING
    default_rate: ClassVar[str] = "10Gbps"
    feedback_pause = 0.0  # ACKs come at once

    def bind(self, path: PathInformation) -> Self:
        """What a scenario leaves open: here the base RTT. Both engines and the equilibrium read the result."""
        return dataclasses.replace(self, base_rtt=path.largest_base_rtt if self.base_rtt is None else self.base_rtt)


PRESETS = {"paper": Preset(AIMD(), MARKING), "gentle": Preset(AIMD(beta=1 / 64), MARKING)}
