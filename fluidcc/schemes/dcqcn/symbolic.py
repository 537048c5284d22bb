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
        Of more flows than marking holds.
    """
    found = one.rest
    if not found["exists"]:
        raise InputError(
            "symbolic: marking: these flows need more marks than pmax; write fewer flows, or a larger pmax"
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
