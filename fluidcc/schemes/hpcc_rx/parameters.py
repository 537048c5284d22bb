"""Parameters of receiver-based HPCC: HPCC's, and when a notification is sent."""

from __future__ import annotations

from typing import Any, ClassVar

from fluidcc.contract.preset import EVALUATION, Preset
from fluidcc.scenario.parameters import parameter, register
from fluidcc.schemes.hpcc.parameters import HPCC
from fluidcc.units import RATIO, TIME


@register()
class HPCCRx(HPCC):
    """Parameters of a receiver that runs HPCC for its senders (HPCC++ slides, receiver-based HPCC).

    A notification takes the place of ACKs: once per period in which data came, or at once if the window has changed
    by more than a threshold. The slides name a dynamic W_AI without saying what it is; ours is a share of the
    headroom (1 - eta) W_init, divided by the flows that the receiver observes.
    """

    np_period: Any = parameter(
        TIME, "time between notifications", default="4.5us", source="HPCC++ Rx", low=0, open_low=True
    )
    np_threshold: Any = parameter(
        RATIO, "change of the window that is reported at once", default=0.25, source="HPCC++ Rx", low=0, high=1
    )
    dynamic_ai: bool = parameter(
        "on|off", "W_AI by the flows that the receiver observes, instead of w_ai", default=True, choices=(False, True)
    )
    ai_headroom: Any = parameter(
        RATIO, "share of (1 - eta) W_init that dynamic increases add up to", default=0.5, low=0, high=1, open_low=True
    )

    name: ClassVar[str] = "hpcc-rx"


PRESETS = {"paper": Preset(HPCCRx()), "hpcc-eval": Preset(HPCCRx(), None, EVALUATION)}
