"""PowerTCP's parameters: what users set, and what is filled in for them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fluidcc.contract.fields import base_rtt_field, feedback_delay_field, initial_window_field
from fluidcc.contract.preset import EVALUATION, Preset
from fluidcc.scenario.model import RED
from fluidcc.scenario.parameters import parameter, register
from fluidcc.units import COUNT, RATIO, SIZE

if TYPE_CHECKING:
    from fluidcc.contract.bind import PathInformation

_SOURCE = "PowerTCP, NSDI 2022"


@register()
class PowerTCP:
    """Parameters of a PowerTCP sender."""

    gamma: Any = parameter(
        RATIO, "weight of a new window", default=0.9, symbol="gamma", source=_SOURCE, low=0, high=1, open_low=True
    )
    expected_flows: Any = parameter(COUNT, "flows that share a link, for beta", default=10.0, source=_SOURCE, low=1)
    beta: Any = parameter(
        SIZE,
        "additive increase; auto: the first window over expected_flows",
        default=None,
        symbol="beta",
        source=_SOURCE,
        low=0,
        none_word="auto",
    )
    int_bytes: Any = parameter(SIZE, "telemetry in every packet and ACK", default="42B", source="HPCC 4.1", low=0)
    initial_window: Any = initial_window_field(source=_SOURCE)
    base_rtt: Any = base_rtt_field(source=_SOURCE)
    feedback_delay: Any = feedback_delay_field()

    name: ClassVar[str] = "powertcp"
    default_marking: ClassVar[RED | None] = None
    default_rate: ClassVar[str] = "100Gbps"
    feedback_pause = 0.0  # ACKs come at once

    def bind(self, path: PathInformation) -> Self:
        """Fill in tau, the first window and beta."""
        base_rtt = path.largest_base_rtt if self.base_rtt is None else self.base_rtt
        window = path.line_rate * base_rtt if self.initial_window is None else self.initial_window
        beta = window / self.expected_flows if self.beta is None else self.beta
        return dataclasses.replace(self, base_rtt=base_rtt, initial_window=window, beta=beta)


PRESETS = {"paper": Preset(PowerTCP()), "hpcc-eval": Preset(PowerTCP(), None, EVALUATION)}
