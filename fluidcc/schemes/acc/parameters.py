"""ACC's parameters and their presets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self

from fluidcc.contract.fields import feedback_delay_field
from fluidcc.contract.preset import EVALUATION, Preset
from fluidcc.errors import InputError
from fluidcc.scenario.model import RED
from fluidcc.scenario.parameters import bound, parameter, register
from fluidcc.units import COUNT, RATE, RATIO, TIME, is_concrete, show

if TYPE_CHECKING:
    from fluidcc.contract.bind import PathInformation

_ALGORITHM = "ACC Algorithm 1"
_SETUP = "ACC 6.1"
_LOW, _HIGH = 1 / 250, 1 / 25  # RI_Low and RI_High of the line rate


@register()
class ACC:
    """Parameters of an ACC sender (Zhang et al., NSDI 2024, Algorithm 1 and section 6.1).

    What the paper leaves open is chosen here; docs/theory/acc.md gives the reasons. ``paper`` leaves the increments in
    proportion to the line rate, as section 6.1 recommends.
    """

    period: Any = parameter(
        TIME,
        "control period; auto: the largest base RTT of the scenario",
        default=None,
        symbol="T",
        source=_SETUP,
        low=0,
        open_low=True,
        none_word="auto",
    )
    ri_low: Any = parameter(
        RATE,
        "rate increment of the first uncongested periods; auto: 1/250 of the line rate",
        default=None,
        symbol="RI_Low",
        source=_SETUP,
        low=0,
        open_low=True,
        none_word="auto",
    )
    ri_high: Any = parameter(
        RATE,
        "rate increment of the later ones; auto: 1/25 of the line rate",
        default=None,
        symbol="RI_High",
        source=_SETUP,
        low=0,
        open_low=True,
        none_word="auto",
    )
    low_periods: Any = parameter(
        COUNT,
        "uncongested periods in a row with RI_Low, before RI_High",
        default=2.0,
        source=f"{_ALGORITHM}, line 14",
        low=0,
        integer=True,
    )
    p_thresh: Any = parameter(
        COUNT,
        "periods in a row with UE, beyond which each halves the rate",
        default=1.0,
        symbol="P_thresh",
        source=_SETUP,
        low=0,
        integer=True,
    )
    mark_fraction: Any = parameter(
        RATIO,
        "share of CE among a period's ACKs, above which a flow is congested",
        default=0.9,
        source="ACC 4.1",
        low=0,
        high=1,
        open_low=True,
    )
    min_rate: Any = parameter(
        RATE, "least rate of a flow, so that halvings end", default="10Mbps", low=0, open_low=True
    )
    halt: bool = parameter(
        "on|off",
        "halt until excessive packets have drained; off: only match the ACKs' rate (ACC w/o halt)",
        default=True,
        source="ACC 6.4",
        choices=(False, True),
    )
    extension: str = parameter(
        "choice",
        "t_Halt's extension: with it (all that it needs is known), a period later as printed, never, or with it and "
        "again in each period, until what is in flight fits the pipe",
        default="at-once",
        source=f"{_ALGORITHM}, lines 6-10",
        choices=("at-once", "printed", "never", "inflight"),
    )
    ack_rate: str = parameter(
        "choice",
        "arrival rate of ACKs: their bytes over the time between them, or over T as printed (packet engine)",
        default="spacing",
        symbol="R",
        source=f"{_ALGORITHM}, line 3",
        choices=("spacing", "count"),
    )
    some_marks: str = parameter(
        "choice",
        "what a share of CE above 0, but not above mark_fraction, does to the rate",
        default="hold",
        source="ACC 4.1 leaves it open",
        choices=("hold", "increase"),
    )
    feedback_delay: Any = feedback_delay_field()
    empty_rtt: Any = bound("round trip of the flow's empty path, as packets measure it [s]")

    name: ClassVar[str] = "acc"
    tcd: ClassVar[bool] = True  # needs switches that tell congested from undetermined (`fluidcc.scenario.model.RED`)
    int_bytes = 0.0  # collects no telemetry
    # Two packets of the default size (section 6.1), as they leave; max(T_on) of the paper's fat tree.
    default_marking: ClassVar[RED] = RED("2KB", "2KB", 1.0, mark_on="departure", max_on="24us")
    default_rate: ClassVar[str] = "100Gbps"
    feedback_pause = 0.0  # time that feedback waits at the receiver [s]

    @property
    def holds(self) -> bool:
        """Check whether some CE holds the rate, but not enough to throttle it."""
        return self.some_marks == "hold"

    @property
    def extends_at_once(self) -> bool:
        """Check whether a halt comes with its extension."""
        return self.extension in ("at-once", "inflight")

    @property
    def extends_later(self) -> bool:
        """Check whether a halt is extended in a later period."""
        return self.extension == "printed"

    @property
    def extends_again(self) -> bool:
        """Check whether a halt is extended in each period."""
        return self.extension == "inflight"

    def bind(self, path: PathInformation) -> Self:
        """T, RI_Low and RI_High (ACC 6.1).

        Raises
        ------
        InputError
            If T is below the flow's own base RTT: what a period sends is to be acknowledged in the next (section 6.1).
        """
        period = path.largest_base_rtt if self.period is None else self.period
        check_period(period, path.base_rtt)
        return dataclasses.replace(
            self,
            period=period,
            empty_rtt=path.empty_rtt,
            ri_low=path.line_rate * _LOW if self.ri_low is None else self.ri_low,
            ri_high=path.line_rate * _HIGH if self.ri_high is None else self.ri_high,
        )


def check_period(period: Any, base_rtt: Any) -> None:
    """Refuse a period that is shorter than a flow's base RTT; not of traced values.

    Raises
    ------
    InputError
    """
    if is_concrete(period) and is_concrete(base_rtt) and period < base_rtt * (1 - 1e-9):
        raise InputError(
            f"period: {show(period, TIME)} is shorter than the base RTT {show(base_rtt, TIME)}, so that a period's "
            "packets are not acknowledged in the next; give at least that, or leave it out"
        )


PRESETS = {
    "paper": Preset(ACC(), ACC.default_marking),
    "printed": Preset(ACC(ack_rate="count", extension="printed"), ACC.default_marking),  # Algorithm 1 to the letter
    "hpcc-eval": Preset(ACC(), ACC.default_marking, EVALUATION),
}
