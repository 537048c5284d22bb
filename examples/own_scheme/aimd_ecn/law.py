"""The law, written once: a rate that grows with time, and that each marked packet cuts by a share.

fluidcc makes packets, the flow level and the fluid of it: a law that has no window is one of rates, and its slope
is dR/dt = a/T + R(t) ln(1 - b p(t - tau)) R(t - tau)/packet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as xp

from aimd_ecn.parameters import AIMD
from fluidcc.contract.signals import Progress


class State(NamedTuple):
    """State of a flow."""

    rate: Any  # R [bytes/s]


def start(parameters: AIMD, initial_rate: Any) -> State:
    """State before the first ACK."""
    return State(initial_rate)


def rate(state: State) -> Any:
    """Sending rate [bytes/s]."""
    return state.rate


def on_step(parameters: AIMD, state: State, progress: Progress, observed: Any) -> State:
    """Additive increase in the time of a step, and a decrease for its packets, of which a share carries marks."""
    p = parameters
    grown = state.rate + p.rate_ai / p.base_rtt * progress.dt
    cut = grown * (1.0 - p.beta * observed) ** (progress.newly / progress.wire_packet)
    return State(xp.minimum(xp.maximum(cut, p.min_rate), progress.line_rate))
