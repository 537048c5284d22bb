"""Fields that the parameters of several schemes have in common.

Among them a window for rate-based schemes: HPCC's section 5.1 adds one to DCQCN and TIMELY, rate times base RTT.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from fluidcc.scenario.parameters import parameter
from fluidcc.units import RATIO, SIZE, TIME

if TYPE_CHECKING:
    from fluidcc.contract.bind import PathInformation

_P = TypeVar("_P")


def base_rtt_field(what: str = "base RTT", source: str = "HPCC 3.2") -> Any:
    """Field ``base_rtt``."""
    return parameter(
        TIME,
        f"{what}; auto: the largest of the scenario",
        default=None,
        symbol="T",
        source=source,
        low=0,
        open_low=True,
        none_word="auto",
    )


def initial_window_field(source: str) -> Any:
    """Field ``initial_window``."""
    return parameter(
        SIZE,
        "window at start; auto: line rate times base RTT",
        default=None,
        symbol="W_init",
        source=source,
        low=0,
        open_low=True,
        none_word="auto",
    )


def feedback_delay_field() -> Any:
    """Field ``feedback_delay`` of a scheme whose feedback takes as long as the path."""
    return parameter(TIME, "control-loop delay; path: that of the path", default=None, low=0, none_word="path")


def tcd_switch() -> Any:
    """Field ``tcd``."""
    return parameter(
        "on|off",
        "switches tell congested from undetermined, and the sender obeys it (packet engine)",
        default=False,
        source="ACC 6.1",
        choices=(False, True),
    )


def ue_gain_field() -> Any:
    """Field ``ue_gain`` of a scheme with `tcd_switch`; the papers that we have give no number."""
    return parameter(
        RATIO, "with tcd: share of a decrease that UE makes, where CE makes all of it", default=0.5, low=0, high=1
    )


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
