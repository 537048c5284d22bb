"""The packet side: the rate grows with time, and each mark that an ACK echoes cuts it."""

from __future__ import annotations

from typing import Any

import numpy as np
from aimd_ecn.parameters import AIMD

from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.packet.pacing import repace

OBSERVABLES: dict[str, tuple[str, str]] = {}
STATE = np.dtype(
    [
        ("slope", np.float64),  # a/T [bytes/s^2]
        ("beta", np.float64),
        ("min_rate", np.float64),
        ("last", np.int64),  # when the last ACK came [ps]
    ],
    align=True,
)


def init_state(parameters: AIMD, flow: Any, state: Any) -> None:
    """Copy what is bound into the flow's record."""
    p = parameters
    state.slope, state.beta, state.min_rate = p.rate_ai / p.base_rtt, p.beta, min(p.min_rate, flow.line_rate)


@kernel
def begin(core: Any, state: Any) -> None:
    """A flow starts, at its initial rate."""
    state.last = core.now


@inlined
def on_ack(core: Any, flow: Any, state: Any, ack: Any) -> None:
    """An ACK; it may answer several packets."""
    rate = flow.rate + state.slope * (core.now - state.last) * 1e-12
    state.last = core.now
    rate *= (1.0 - state.beta) ** ack.marks
    flow.rate = min(max(rate, state.min_rate), flow.line_rate)
    repace(core, flow)
