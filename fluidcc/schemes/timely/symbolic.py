"""TIMELY's equations on symbols: those of "ECN or Delay", section 4, with the delays of their equilibrium."""

from __future__ import annotations

from typing import Any

import sympy

from fluidcc.contract.signals import Signals, Waits
from fluidcc.errors import InputError
from fluidcc.schemes.timely import fluid


def equations(one: Any) -> None:
    """Write the equations into a `fluidcc.theory.symbolic.system.System`.

    Raises
    ------
    InputError
        Of TIMELY that is not patched, which has no equilibrium.
    """
    if not one.scenario.flows[0].scheme.patched:
        raise InputError(
            "symbolic: timely has no equilibrium: its rates rise or fall wherever the gradient is 0; write "
            "fluidcc.TIMELY(patched=True)"
        )
    found, (forward, back, _) = one.rest, one.delays
    law, p = one.law(fluid), one.parameters
    none: Any = sympy.Integer(0)
    rate, gradient = one.state("R", found["rate_bytes_per_s"]), one.state("g", found["rtt_gradient"])
    queue = one.state("q", found["queue_bytes"], shared=True)
    state = fluid.State(rate, gradient, none)
    there, later = one.symbol("tau_f", forward), one.symbol("tau'", back)
    now, before = (one.lagged(queue, lag) / one.capacity for lag in (later, later + law.interval(p, state)))
    observed = law.feedback(p, Signals(none, rate, one.packet, waits=Waits(now, before)))
    moves = law.derivative(p, state, observed)
    one.moves({rate: moves.rate, gradient: moves.gradient})
    one.moves({queue: one.flows * one.lagged(rate, there) - one.capacity})
