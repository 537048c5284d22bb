"""Swift's equations on symbols: the map of a round trip, Algorithm 1, where it cuts.

About its target Swift adds below and cuts above, so that windows never rest; the map that cuts rests at the target.
"""

from __future__ import annotations

from typing import Any

import sympy
from scipy.optimize import brentq

from fluidcc.contract.bind import binder
from fluidcc.contract.signals import Progress
from fluidcc.scenario.model import Scenario
from fluidcc.schemes.swift import fluid
from fluidcc.schemes.swift.parameters import scaling

_LATE: Any = sympy.Integer(2**62)  # bytes: later than all that a round trip waits for
_ABOVE = 1e-6  # of a window: as much above the target it is cut


def equations(one: Any) -> None:
    """Write the equations into a `fluidcc.theory.symbolic.system.System`."""
    law, p = one.law(fluid), one.parameters
    if p.flow_scaling:  # what is bound, by the parameters that it is made of
        for name, value in zip(("fs_slope", "fs_offset"), scaling(p), strict=True):
            object.__setattr__(p, name, value)
    window = one.state("W", _resting(one.scenario) * (1.0 + _ABOVE))
    rtt = one.algebraic("rtt", one.number(one.flows * window / one.capacity))
    line, none = one.symbol("line", float(one.scenario.flows[0].line_rate)), _LATE * 0
    progress = Progress(_LATE, _LATE - 1, window, one.packet, one.packet, line, none + 1, rtt)
    state = fluid.State(line, window, none, none, none)
    one.maps({window: law.jump(p, state, progress, none).window})
    one.holds({rtt: one.flows * window / one.capacity})


def _resting(scenario: Scenario) -> float:
    """Window of each flow with which the round trip is the target [bytes]."""
    flow = scenario.flows[0]
    p, packet = binder(scenario)(flow), float(scenario.wire_packet_of(flow))
    per_window = len(scenario.flows) / float(scenario.links[0].rate)

    def above(window: float) -> float:
        target = float(p.base_target)
        if p.flow_scaling:
            slope, offset = scaling(p)
            target += min(max(slope * (window / packet) ** -0.5 + offset, 0.0), p.fs_range)
        return window * per_window - target

    root: Any = brentq(above, 1e-6 * packet, 1e9 * packet)
    return float(root)
