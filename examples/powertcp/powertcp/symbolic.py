"""PowerTCP's equations on symbols: the map of a round trip with a standing queue, all ACKs of which come at once."""

from __future__ import annotations

from typing import Any

import sympy

from fluidcc.contract.signals import Progress
from powertcp import law

_LATE: Any = sympy.Integer(2**62)  # bytes: later than all that a round trip waits for


def equations(one: Any) -> None:
    """Write the equations into a `fluidcc.theory.symbolic.system.System`."""
    rules, p = one.law(law), one.parameters
    bdp = one.capacity * p.base_rtt
    full = one.number(bdp + one.flows * p.beta)  # what all windows hold with the queue N beta
    window = one.state("W", full / one.number(one.flows))
    power = one.algebraic("Gamma", full / one.number(bdp))
    line, none = one.symbol("line", float(one.scenario.flows[0].line_rate)), 0 * _LATE
    progress = Progress(_LATE, _LATE, window, one.packet, one.packet, line, none + 1, p.base_rtt, p.base_rtt)
    state = rules.State(window / p.base_rtt, window, power, window, window, none, none)
    one.maps({window: rules.on_step(p, state, progress, power).window})
    one.holds({power: rules.on_hop(p, one.flows * window - bdp, one.capacity, one.capacity, one.capacity)})
