"""DCQCN's equations on symbols: (7)-(9) of equal flows, their queue (6), and its marking (5)."""

from __future__ import annotations

from typing import Any

from fluidcc.contract.signals import Signals
from fluidcc.errors import InputError
from fluidcc.schemes.dcqcn import fluid


def equations(one: Any) -> None:
    """Write the equations into a `fluidcc.theory.symbolic.system.System`.

    Raises
    ------
    InputError
        Where marking holds not so many flows, or the delay is the path's.
    """
    found = one.rest
    if one.parameters.feedback_delay is None:
        raise InputError("symbolic: feedback_delay: DCQCN's equations have one, tau*; write feedback_delay='50us'")
    if not found["exists"]:
        raise InputError(
            "symbolic: marking: it has no equilibrium with these flows; write fewer flows, a larger pmax, or kmax "
            "above kmin"
        )
    law, p = one.law(fluid), one.parameters
    state = fluid.State(
        one.state("R", found["rate_bytes_per_s"]),
        one.state("R_T", found["target_rate_bytes_per_s"]),
        one.state("alpha", found["alpha"]),
    )
    queue, marking = one.state("q", found["queue_bytes"], shared=True), one.algebraic("p", found["marking_probability"])
    signals = Signals(one.lagged(marking, p.feedback_delay), one.lagged(state.rate, p.feedback_delay), one.packet)
    one.moves(dict(zip(state, law.derivative(p, state, law.feedback(p, signals)), strict=True)))
    one.moves({queue: one.flows * law.rate(state) - one.capacity})
    one.holds({marking: one.marking(queue)})
