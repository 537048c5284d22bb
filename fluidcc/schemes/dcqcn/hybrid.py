"""DCQCN between fluid queues: its reaction point on a clock of seconds.

Two times are the same if they are within a picosecond: times add up rounding over a run.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import fluidcc.schemes.dcqcn.reaction_point as point
from fluidcc.engines.common.jit import kernel
from fluidcc.schemes.dcqcn.parameters import DCQCN
from fluidcc.schemes.dcqcn.reaction_point import OBSERVABLES as OBSERVABLES
from fluidcc.schemes.dcqcn.reaction_point import begin as begin
from fluidcc.schemes.dcqcn.reaction_point import on_bytes as on_bytes
from fluidcc.schemes.dcqcn.reaction_point import on_timer as on_timer

ONLY = {"variant": "paper", "win": False, "tcd": False}
PACED_BY = ("timer", "byte_counter")
STATE = point.record(np.float64)


def init_state(parameters: DCQCN, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    point.init_state(p, flow, state, float, math.inf, 1e-12)
    flow.cnp_interval, flow.nic_cnp_interval = p.cnp_interval, p.nic_cnp_interval


@kernel
def on_cnp(flow: Any, state: Any, now: Any) -> None:
    """A CNP, which tells of CE."""
    point.on_cnp(flow, state, now, 1.0)


@kernel
def observe(state: Any, samples: Any, row: Any, f: Any, now: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 2] = state.target
    samples[row, f, 3] = point.alpha_now(state, now)
