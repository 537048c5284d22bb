"""HPCC's equations on symbols: the map of a round trip, Algorithm 1, or the rates of appendix A.3."""

from __future__ import annotations

from typing import Any

import sympy

from fluidcc.contract.signals import Progress, Signals, Telemetry
from fluidcc.errors import InputError
from fluidcc.schemes.hpcc import fluid

_LATE: Any = sympy.Integer(2**62)  # bytes: later than all that a round trip waits for


def equations(one: Any) -> None:
    """Write the equations into a `fluidcc.theory.symbolic.system.System`.

    Windows are mapped from one round trip to the next; rates of ``form="rate"`` move.

    Raises
    ------
    InputError
        Of parameters with which nothing rests.
    """
    found = one.rest
    if "window_bytes" not in found:
        raise InputError("symbolic: hpcc does not rest with these parameters; see fluidcc.limit_cycle")
    law, p = one.law(fluid), one.parameters
    window = one.state("W", found["window_bytes"])
    used = one.algebraic("U", found["utilisation_estimate"])
    none: Any = sympy.Integer(0)
    unit: Any = sympy.Integer(1)
    state = fluid.State(window / p.base_rtt, window, window, used, none, none)
    if p.form == "rate":
        observed = fluid.Feedback(one.lagged(used, one.symbol("tau", one.delays[0])), None)
        one.moves({window: law.derivative(p, state, observed).reference_window})
        one.holds({used: _observed(one, law, one.flows * window / p.base_rtt, none).utilisation})
        return
    line = one.symbol("line", float(one.scenario.flows[0].line_rate))
    progress = Progress(_LATE, _LATE - 1, window, one.packet, one.packet, line, unit, p.base_rtt)
    standing = found["queue_bytes"] > 0
    sent = one.capacity if standing else one.flows * window / p.base_rtt
    queue = one.flows * window - one.capacity * p.base_rtt if standing else none
    observed = _observed(one, law, sent, queue)
    one.maps({window: law.jump(p, state, progress, observed).window})
    one.holds({used: observed.utilisation})


def _observed(one: Any, law: Any, sent: Any, queue: Any) -> Any:
    none: Any = sympy.Integer(0)
    told = Telemetry(queue, sent, sent, one.capacity, queue, sent, none + 1)
    return law.feedback(one.parameters, Signals(none, sent, one.packet, told))
