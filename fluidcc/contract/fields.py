"""Fields that the parameters of several schemes have in common."""

from __future__ import annotations

from typing import Any

from fluidcc.scenario.parameters import parameter
from fluidcc.units import RATIO, SIZE, TIME


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
