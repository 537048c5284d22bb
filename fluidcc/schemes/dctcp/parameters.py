"""DCTCP's parameters and their presets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fluidcc.contract.fields import base_rtt_field, feedback_delay_field, initial_window_field
from fluidcc.contract.preset import EVALUATION, SIMULATOR, Preset
from fluidcc.scenario.model import RED
from fluidcc.scenario.parameters import parameter, register
from fluidcc.units import COUNT, RATE, RATIO

if TYPE_CHECKING:
    from fluidcc.contract.bind import PathInformation


@register()
class DCTCP:
    """Parameters of a DCTCP sender (Alizadeh et al., SIGCOMM 2010) without slow start (HPCC 5.1).

    What the papers leave open: the first window is HPCC's W_init, line rate times base RTT, and packets are paced
    at window/base RTT, at most at line rate.
    """

    g: Any = parameter(
        RATIO, "gain of alpha", default=1 / 16, symbol="g", source="DCTCP 4", low=0, high=1, open_low=True
    )
    initial_alpha: Any = parameter(
        RATIO, "alpha at start", default=1.0, symbol="alpha_0", source="RFC 8257", low=0, high=1
    )
    increase: Any = parameter(
        COUNT, "packets that the window grows by in an RTT without marks", default=1.0, source="DCTCP 3.1", low=0
    )
    base_rtt: Any = base_rtt_field()
    initial_window: Any = initial_window_field(source="HPCC 5.1")
    rate_ai: Any = parameter(
        RATE,
        "increase of the rate in a window without marks (variant hpcc-sim)",
        default="615Mbps",
        source="1000 B in 13 us, HPCC 5.1",
        low=0,
    )
    min_rate: Any = parameter(RATE, "least rate (variant hpcc-sim)", default="1Gbps", low=0)
    feedback_delay: Any = feedback_delay_field()
    form: str = parameter(
        "choice",
        "cuts once per window, or the analysis' two differential equations (fluid engine)",
        default="protocol",
        source="SIGMETRICS 2011",
        choices=("protocol", "analysis"),
    )
    variant: str = parameter(
        "choice",
        "the window of DCTCP, or the rate of the HPCC authors' simulator (packet engine)",
        default="paper",
        choices=("paper", "hpcc-sim"),
    )

    name: ClassVar[str] = "dctcp"
    int_bytes = 0.0  # collects no telemetry
    default_marking: ClassVar[RED] = RED("300KB", "300KB", 1.0)  # HPCC 5.1's K at default_rate
    default_rate: ClassVar[str] = "100Gbps"
    feedback_pause = 0.0  # time that feedback waits at the receiver [s]

    @property
    def simulates(self) -> bool:
        """Check whether it is what the HPCC authors' public simulator does."""
        return self.variant == "hpcc-sim"

    def bind(self, path: PathInformation) -> Self:
        """T and the first window (HPCC 5.1)."""
        simulator = self.variant == "hpcc-sim"
        base_rtt, window = self.base_rtt, self.initial_window
        if base_rtt is None:
            base_rtt = path.largest_payload_rtt if simulator else path.largest_base_rtt
        if window is None:
            window = (path.slowest_rate if simulator else path.line_rate) * base_rtt
        return dataclasses.replace(self, base_rtt=base_rtt, initial_window=window)


# HPCC 5.1: Kmin = Kmax = 30 KB for 10 Gb/s, in proportion to the link.
_STEP_MARKING = RED("30KB", "30KB", 1.0)

PRESETS = {
    "paper": Preset(DCTCP(), _STEP_MARKING, marking_rate="10Gbps"),
    "hpcc-sim": Preset(
        DCTCP(variant="hpcc-sim"),
        dataclasses.replace(_STEP_MARKING, mark_on="departure"),
        SIMULATOR,
        marking_rate="10Gbps",
    ),
    "hpcc-eval": Preset(DCTCP(), _STEP_MARKING, EVALUATION, marking_rate="10Gbps"),
}
