"""Swift's parameters and their presets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fluidcc.contract.fields import base_rtt_field, feedback_delay_field, initial_window_field
from fluidcc.contract.preset import EVALUATION, Preset
from fluidcc.errors import InputError
from fluidcc.scenario.model import RED
from fluidcc.scenario.parameters import bound, parameter, register
from fluidcc.schemes.vai_sf.mechanisms import VaiSf, ai_div_field, token_rule_field, token_thresh_field
from fluidcc.units import COUNT, RATE, RATIO, SIZE, TIME, is_concrete

if TYPE_CHECKING:
    from fluidcc.contract.bind import PathInformation

_SWIFT = "Swift, SIGCOMM 2020"
_VAI = "Fast Convergence to Fairness III-D"


@register()
class Swift(VaiSf):
    """Parameters of a Swift sender (Kumar et al., SIGCOMM 2020).

    Swift suggests no additive increase, range of flow scaling or first window: those of the preset ``paper`` are ours.
    Snyder and Lebeck ("Fast Convergence to Fairness", III-D) choose the increase of ``fairness``, and to start at line
    rate.
    """

    ai: Any = parameter(
        COUNT, "packets that the window grows by in an RTT below the target", default=1.0, symbol="ai", low=0
    )
    rate_ai: Any = parameter(
        RATE,
        "additive increase as a rate, ai packets per base_rtt; ai: from ai",
        default=None,
        source=_VAI,
        low=0,
        none_word="ai",
    )
    beta: Any = parameter(
        RATIO,
        "share of the excess of the delay that a decrease takes away",
        default=0.8,
        symbol="beta",
        source=_VAI,
        low=0,
        high=1,
    )
    max_mdf: Any = parameter(
        RATIO,
        "least factor of a decrease",
        default=0.5,
        symbol="max_mdf",
        source="Fast Convergence to Fairness (1)",
        low=0,
        high=1,
        open_low=True,
    )
    base_target: Any = parameter(
        TIME, "target delay of a path without switches: a round trip", default="5us", source=_VAI, low=0, open_low=True
    )
    hop_target: Any = parameter(
        TIME, "added to the target for each switch on the path", default="2us", source=_VAI, low=0
    )
    flow_scaling: bool = parameter(
        "on|off",
        "add to the target of small windows",
        default=True,
        source=_SWIFT,
        choices=(False, True),
    )
    fs_range: Any = parameter(
        TIME, "most that flow scaling adds: five base targets", default="25us", symbol="fs_range", low=0
    )
    fs_min: Any = parameter(
        COUNT,
        "packets in the window up to which it adds that",
        default=0.1,
        symbol="fs_min",
        source=_SWIFT,
        low=0,
        open_low=True,
    )
    fs_max: Any = parameter(
        COUNT,
        "packets in the window from which it adds nothing",
        default=100.0,
        symbol="fs_max",
        source=_SWIFT,
        low=0,
        open_low=True,
    )
    min_cwnd: Any = parameter(COUNT, "least window, in packets", default=0.001, low=0, open_low=True)
    max_window: Any = parameter(
        SIZE,
        "largest window; auto: what the line rate sends within the target delay",
        default=None,
        low=0,
        open_low=True,
        none_word="auto",
    )
    initial_window: Any = initial_window_field(source=_VAI)
    base_rtt: Any = base_rtt_field("base RTT of the first window and of rate_ai")
    feedback_delay: Any = feedback_delay_field()

    token_thresh: Any = token_thresh_field(
        TIME, "RTT that makes tokens once a round trip; auto: the path's target, and the delay of the least BDP"
    )
    ai_div: Any = ai_div_field(TIME, "delay for a token", "30ns")
    token_rule: str = token_rule_field("excess")
    fs_slope: Any = bound("flow scaling adds fs_slope/sqrt(packets) + fs_offset to the target [s]")
    fs_offset: Any = bound("see fs_slope [s]")

    name: ClassVar[str] = "swift"
    int_bytes = 0.0  # collects no telemetry
    default_marking: ClassVar[RED | None] = None
    default_rate: ClassVar[str] = "100Gbps"
    feedback_pause = 0.0  # time that feedback waits at the receiver [s]

    def bind(self, path: PathInformation) -> Self:
        """T, windows and the increase in packets; in ``base_target`` also what the switches on the path add to it."""
        base_rtt = path.largest_base_rtt if self.base_rtt is None else self.base_rtt
        target = self.base_target + path.switches * self.hop_target
        useful = largest_useful_window(self, target, path.line_rate, path.packet)
        tokens = self.token_thresh
        slope, offset = scaling(self) if self.flow_scaling else (0.0, 0.0)
        return dataclasses.replace(
            self,
            base_rtt=base_rtt,
            initial_window=path.line_rate * base_rtt if self.initial_window is None else self.initial_window,
            max_window=useful if self.max_window is None else self.max_window,
            ai=self.ai if self.rate_ai is None else self.rate_ai * base_rtt / path.window_packet,
            rate_ai=None,
            base_target=target,
            hop_target=0.0,
            fs_slope=slope,
            fs_offset=offset,
            token_thresh=target + path.least_bdp / path.slowest_rate if tokens is None else tokens,
        )


def scaling(p: Swift) -> tuple[Any, Any]:
    """Slope and offset of flow scaling: it adds slope/sqrt(packets) + offset to the target [s].

    Raises
    ------
    InputError
        If fs_min is not below fs_max; not of traced values, of which the slope is then negative or infinite.
    """
    if is_concrete(p.fs_min) and is_concrete(p.fs_max) and p.fs_min >= p.fs_max:
        raise InputError(f"fs_min: {p.fs_min:g} is not below fs_max {p.fs_max:g}; give less, for example 0.1")
    slope = p.fs_range / (p.fs_min**-0.5 - p.fs_max**-0.5)
    return slope, -slope * p.fs_max**-0.5


def largest_useful_window(p: Swift, fixed: Any, line_rate: Any, packet: Any) -> Any:
    """Bound on the bytes that the line rate sends within the target delay of a window of as many [bytes].

    Parameters
    ----------
    p : Swift
    fixed : float or Array
        Target without flow scaling [s].
    line_rate, packet : float or Array
        [bytes/s], [bytes].
    """
    window = line_rate * fixed
    return line_rate * (fixed + scaling(p)[0] * (window / packet) ** -0.5) if p.flow_scaling else window


PRESETS = {
    "paper": Preset(Swift()),
    "fairness": Preset(Swift(rate_ai="50Mbps", fs_max=50.0)),
    "hpcc-eval": Preset(Swift(), None, EVALUATION),
    "vai-sf": Preset(Swift(rate_ai="50Mbps", flow_scaling=False, vai=True, sampling=30)),
}
