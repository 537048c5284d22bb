"""The fixed point in closed form, apart from the fluid side: a/T = b p R^2/packet."""

from __future__ import annotations

import math
from typing import NamedTuple

from aimd_ecn.parameters import AIMD

MOVES = ("rate",)  # fields of the fluid's state that are linearised


class FixedPoint(NamedTuple):
    """A flow that does not move."""

    rate: float  # [bytes/s]

    def observables(self) -> dict[str, float]:
        """Nothing more to show."""
        return {}


def smooth(parameters: AIMD) -> bool:
    """Nothing changes in jumps."""
    return True


def solve_equilibrium(parameters: AIMD, marking: float, line_rate: float, packet: float) -> FixedPoint:
    """Rate under a constant marking, R = sqrt(a packet/(T b p)), within limits."""
    p = parameters
    free = math.inf if marking <= 0 else math.sqrt(p.rate_ai * packet / (p.base_rtt * p.beta * marking))
    return FixedPoint(min(max(free, p.min_rate), line_rate))
