"""NSCC's parameters and their presets."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from fluidcc.contract.fields import base_rtt_field, feedback_delay_field
from fluidcc.contract.preset import EVALUATION, Preset
from fluidcc.scenario.model import RED
from fluidcc.scenario.parameters import bound, parameter, register
from fluidcc.units import COUNT, RATIO, SIZE, TIME

if TYPE_CHECKING:
    from fluidcc.contract.bind import PathInformation

_CONFIG = "UE 3.6.13.3"
_ALGORITHM = "UE 3.6.13.5"
_INTERNAL = "UE 3.6.13.6"
_HTSIM = "uet-htsim"

# The network that the specification's gains are given for: 100 Gb/s and a base RTT of 12 us.
REFERENCE_BDP = 150e3  # bytes
REFERENCE_RTT = 12e-6  # s


@register()
class NSCC:
    """Parameters of NSCC, the network-signalled congestion control of Ultra Ethernet (Specification 1.0, 3.6.13).

    The defaults are those of a network without trimming, or with it where the scenario trims. Gains are in packets of
    the specification's reference network, 100 Gb/s and 12 us; `gains` scales them to the flow's own. What the
    specification leaves to implementations is the averaging of the delay and how small a delay counts as none.
    """

    target_delay: Any = parameter(
        TIME,
        "queueing delay that tells congested from not; auto: base_rtt, three quarters of it with trimming",
        default=None,
        symbol="target_qdelay",
        source=_CONFIG,
        low=0,
        open_low=True,
        none_word="auto",
    )
    proportional_increase: Any = parameter(
        COUNT,
        "packets that the window grows by in an RTT without marks and delay, times scaling_a and scaling_b",
        default=4.0,
        symbol="alpha",
        source=_CONFIG,
        low=0,
    )
    fair_increase: Any = parameter(
        COUNT,
        "packets that it grows by in an RTT of delays without marks, times scaling_a",
        default=5.0,
        symbol="fi",
        source=_CONFIG,
        low=0,
    )
    eta: Any = parameter(
        COUNT,
        "packets that it grows by in each adjustment period, times scaling_a",
        default=0.15,
        symbol="eta",
        source=_CONFIG,
        low=0,
    )
    fast_increase: Any = parameter(
        RATIO,
        "bytes that it grows by for each acknowledged once the path is found empty, times scaling_a",
        default=0.25,
        symbol="fi_scale",
        source=_CONFIG,
        low=0,
    )
    gamma: Any = parameter(
        RATIO,
        "share of the average delay's excess that a decrease takes away",
        default=0.8,
        symbol="gamma",
        source=_CONFIG,
        low=0,
        high=1,
    )
    max_md_jump: Any = parameter(
        RATIO, "least factor of a decrease", default=0.5, source=_CONFIG, low=0, high=1, open_low=True
    )
    quick_adapt: bool = parameter(
        "on|off",
        "set the window to what came through in the last period where delays are extreme",
        default=True,
        source=_INTERNAL,
        choices=(False, True),
    )
    qa_threshold: Any = parameter(
        TIME,
        "queueing delay that is extreme; auto: four times target_delay, unlimited with trimming",
        default=None,
        source=_CONFIG,
        low=0,
        unlimited=True,
        none_word="auto",
    )
    qa_gate: Any = parameter(
        COUNT,
        "it does so only if less than the largest window by two to the power of this came through",
        default=3.0,
        source=_CONFIG,
        low=0,
        high=63,
        integer=True,
    )
    adjust_packets: Any = parameter(
        COUNT, "packets acknowledged after which increases take effect", default=8.0, source=_CONFIG, low=0
    )
    adjust_period: Any = parameter(
        TIME,
        "time after which they do, and eta is added; auto: base_rtt",
        default=None,
        source=_CONFIG,
        low=0,
        open_low=True,
        none_word="auto",
    )
    averaging: Any = parameter(
        TIME,
        "time constant of the average delay; auto: base_rtt",
        default=None,
        source=_INTERNAL,
        low=0,
        open_low=True,
        none_word="auto",
    )
    clear_delay: Any = parameter(
        TIME, "queueing delay below which a path counts as empty", default="1us", source=_HTSIM, low=0
    )
    max_window: Any = parameter(
        SIZE,
        "largest window, in proportion to the base RTT as it is measured; auto: 1.5 BDP",
        default=None,
        symbol="MaxWnd",
        source=_CONFIG,
        low=0,
        open_low=True,
        none_word="auto",
    )
    initial_window: Any = parameter(
        SIZE,
        "window at start; auto: the largest",
        default=None,
        source="UE 3.6.13.4",
        low=0,
        open_low=True,
        none_word="auto",
    )
    base_rtt: Any = base_rtt_field("base RTT until less is measured", source=_CONFIG)
    feedback_delay: Any = feedback_delay_field()
    mtu: Any = bound("a packet as windows count it [bytes]")
    line_rate: Any = bound("rate of the sender's NIC [bytes/s]")
    bdp: Any = bound("slowest rate of the path times base_rtt [bytes]")

    name: ClassVar[str] = "nscc"
    int_bytes = 0.0  # collects no telemetry
    default_marking: ClassVar[RED | None] = RED("30KB", "120KB", 1.0, mark_on="departure")
    default_rate: ClassVar[str] = "100Gbps"
    feedback_pause = 0.0  # time that feedback waits at the receiver [s]

    def bind(self, path: PathInformation) -> Self:
        """T, BDP, packet, and the delays and windows that follow from them."""
        base_rtt = path.largest_base_rtt if self.base_rtt is None else self.base_rtt
        bdp = path.slowest_rate * base_rtt
        target = base_rtt * (0.75 if path.trims else 1.0) if self.target_delay is None else self.target_delay
        extreme = math.inf if path.trims else 4.0 * target
        most = 1.5 * bdp if self.max_window is None else self.max_window
        return dataclasses.replace(
            self,
            base_rtt=base_rtt,
            target_delay=target,
            qa_threshold=extreme if self.qa_threshold is None else self.qa_threshold,
            adjust_period=base_rtt if self.adjust_period is None else self.adjust_period,
            averaging=base_rtt if self.averaging is None else self.averaging,
            max_window=most,
            initial_window=most if self.initial_window is None else self.initial_window,
            mtu=path.window_packet,
            line_rate=path.line_rate,
            bdp=bdp,
        )


class Gains(NamedTuple):
    """Gains of a flow in its own network."""

    alpha: Any  # bytes per second of delay below the target
    fair: Any  # bytes
    fast: Any  # bytes for each byte
    eta: Any  # bytes


def gains(p: NSCC) -> Gains:
    """Compute the specification's gains in a flow's network (3.6.13.3); of bound parameters, which may be traced."""
    scaling_a = p.bdp / REFERENCE_BDP
    scaling_b = p.target_delay / REFERENCE_RTT
    return Gains(
        alpha=p.proportional_increase * scaling_a * scaling_b * p.mtu / p.target_delay,
        fair=p.fair_increase * scaling_a * p.mtu,
        fast=p.fast_increase * scaling_a,
        eta=p.eta * scaling_a * p.mtu,
    )


# uet-htsim marks from 20 % to 80 % of a BDP, here that of the reference network; packets are marked as they leave
# (UE 3.6.13). Without trimming switches hold five BDPs (UE 3.6.13.3); ours have no limit, or PFC.
_MARKING = RED("30KB", "120KB", 1.0, mark_on="departure")

PRESETS = {
    "paper": Preset(NSCC(), _MARKING, marking_rate="100Gbps"),
    "hpcc-eval": Preset(NSCC(), _MARKING, EVALUATION, marking_rate="100Gbps"),
}
