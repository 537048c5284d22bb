"""TIMELY's parameters and their presets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fluidcc.contract.fields import bound_win, feedback_delay_field, tcd_switch, ue_gain_field, win_base_rtt, win_switch
from fluidcc.contract.preset import EVALUATION, SIMULATOR, Preset
from fluidcc.scenario.model import RED
from fluidcc.scenario.parameters import bound, parameter, register
from fluidcc.units import COUNT, RATE, RATIO, SIZE, TIME

if TYPE_CHECKING:
    from fluidcc.contract.bind import PathInformation

_ALGORITHM = "TIMELY Algorithm 1"


@register()
class TIMELY:
    """Parameters of a TIMELY sender (Mittal et al., SIGCOMM 2015, Algorithm 1).

    The values are TIMELY's as Zhu et al. (CoNEXT 2016, "ECN or Delay") restate them; ``patched`` is their repair. What
    Algorithm 1 leaves open: the first completion only records its RTT, and rates stay between ``min_rate`` and the
    line rate.
    """

    ewma: Any = parameter(
        RATIO,
        "weight of a new RTT difference",
        default=0.875,
        symbol="alpha",
        source=_ALGORITHM,
        low=0,
        high=1,
        open_low=True,
    )
    beta: Any = parameter(
        RATIO, "multiplicative decrease", default=0.8, symbol="beta", source=_ALGORITHM, low=0, high=1
    )
    rate_ai: Any = parameter(RATE, "additive increase", default="10Mbps", symbol="delta", source=_ALGORITHM, low=0)
    hai_gain: Any = parameter(
        COUNT, "additive increases in one hyperactive increase", default=5.0, symbol="N", source=_ALGORITHM, low=1
    )
    hai_steps: Any = parameter(
        COUNT,
        "completions without a rising RTT before hyperactive increase",
        default=5.0,
        source=_ALGORITHM,
        low=1,
        integer=True,
    )
    t_low: Any = parameter(
        TIME, "RTT below which the rate always rises", default="50us", symbol="T_low", source=_ALGORITHM, low=0
    )
    t_high: Any = parameter(
        TIME, "RTT above which the rate always falls", default="500us", symbol="T_high", source=_ALGORITHM, low=0
    )
    min_rtt: Any = parameter(
        TIME,
        "RTT that gradients are measured in",
        default="20us",
        symbol="D_minRTT",
        source="ECN or Delay",
        low=0,
        open_low=True,
    )
    segment: Any = parameter(
        SIZE, "data of one completion event", default="16KB", symbol="Seg", source="ECN or Delay", low=0, open_low=True
    )
    min_rate: Any = parameter(
        RATE,
        "least rate of a flow",
        default="100Mbps",
        source="1 % of the line, as in the HPCC authors' simulator",
        low=0,
        open_low=True,
    )
    feedback_delay: Any = feedback_delay_field()
    thresholds: str = parameter(
        "choice",
        "what T_low and T_high bound: round trips (Algorithm 1), or the time in queues (ECN or Delay's equations)",
        default="rtt",
        choices=("rtt", "queueing"),
    )
    patched: bool = parameter(
        "on|off",
        "between the thresholds, both rules at once by a weight, and the excess over T_low instead of the gradient",
        default=False,
        source="ECN or Delay",
        choices=(False, True),
    )
    base_rtt: Any = win_base_rtt()
    win: bool = win_switch()
    tcd: bool = tcd_switch()
    ue_gain: Any = ue_gain_field()
    variant: str = parameter(
        "choice",
        "Algorithm 1, or what the HPCC authors' simulator does (packet engine)",
        default="paper",
        choices=("paper", "hpcc-sim"),
    )
    own_rtt: Any = bound("with thresholds=rtt: round trip of the flow's empty path, as its feedback takes [s]")
    empty_rtt: Any = bound("with thresholds=queueing: the same, as packets measure it, else 0 [s]")

    name: ClassVar[str] = "timely"
    default_marking: ClassVar[RED | None] = None
    default_rate: ClassVar[str] = "10Gbps"
    feedback_pause = 0.0  # time that feedback waits at the receiver [s]

    @property
    def int_bytes(self) -> float:
        """Bytes that each packet carries for the scheme: the public simulator's timestamp."""
        return 8.0 if self.variant == "hpcc-sim" else 0.0

    def bind(self, path: PathInformation) -> Self:
        """The round trip that delays are counted from; with ``win``, the base RTT that its window fills."""
        whole = self.thresholds == "rtt"
        own, empty = (path.base_rtt, 0.0) if whole else (None, path.empty_rtt)
        return dataclasses.replace(bound_win(self, path), own_rtt=own, empty_rtt=empty)


# The public simulator's script scales the step with the NIC; here it is that of 100 Gb/s.
PRESETS = {
    "paper": Preset(TIMELY()),
    # The equations of ECN or Delay, which have no hyperactive increase; their patch takes a hundredth of beta.
    "fluid": Preset(TIMELY(thresholds="queueing", hai_gain=1.0)),
    "patched": Preset(TIMELY(thresholds="queueing", hai_gain=1.0, patched=True, beta=0.008)),
    "hpcc-sim": Preset(TIMELY(variant="hpcc-sim", rate_ai="100Mbps", min_rate="1Gbps"), None, SIMULATOR),
    "hpcc-eval": Preset(TIMELY(), None, EVALUATION),
}
