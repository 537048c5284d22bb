"""Equations of a law of rates on symbols: its slope, as the fluid follows it, a link's queue, and its marking."""

from __future__ import annotations

from typing import Any

import sympy

from fluidcc.contract.models import Scheme
from fluidcc.contract.signals import Progress
from fluidcc.engines.fluid.network import lags_of
from fluidcc.errors import InputError
from fluidcc.theory.control.fixed_point import key_of

_SHORT = 1e-12  # s: the time that decides branches of a slope


def has_slope(scheme: Scheme) -> bool:
    """Check whether a scheme's fluid is made of a law of rates, which observes marks alone."""
    return scheme.law is not None and scheme.law.window is None and not scheme.law.NEEDS and scheme.law.on_hop is None


def equations(one: Any, scheme: Scheme) -> None:
    """Write the equations into a `fluidcc.theory.symbolic.system.System`.

    Raises
    ------
    InputError
        Where marking does not hold the flows, or the law does not show a part of its state.
    """
    found, p, module = one.rest, one.parameters, scheme.module("law")
    if not found["exists"]:
        raise InputError(
            "symbolic: marking: it has no equilibrium with these flows; write fewer flows, a larger pmax, or kmax "
            "above kmin"
        )
    keys = {name: key_of(module.OBSERVABLES[name][0], name) for name in getattr(module, "OBSERVABLES", {})}
    keys = {"rate": "rate_bytes_per_s"} | keys
    hidden = [name for name in module.State._fields if keys.get(name) not in found]
    if hidden:
        raise InputError(f"symbolic: {scheme.name}: its law does not show {hidden[0]}; add it to OBSERVABLES of law.py")
    law, time = one.law(module), one.symbol("t", _SHORT)
    named = {name: one.state("R" if name == "rate" else name, found[keys[name]]) for name in module.State._fields}
    state = module.State(**named)
    queue, marking = one.state("q", found["queue_bytes"], shared=True), one.algebraic("p", found["marking_probability"])
    lags = lags_of(one.scenario, one.scenario.flows[0])
    wait = 0.0 if lags.fixed else found["queue_bytes"] / float(one.scenario.links[0].rate)
    # From the queue to the sender and, where that is not in it, from the sender to the queue.
    tau, line = one.symbol("tau", lags.marking[0] + wait), one.symbol("line", float(one.scenario.flows[0].line_rate))
    way = one.symbol("tau_f", lags.arrival[0]) if lags.arrival[0] > 0 else sympy.Integer(0)
    sent, late = one.lagged(state.rate, tau + way) * time, one.lagged(marking, tau)
    arriving = one.lagged(state.rate, way) if way != 0 else state.rate
    none: Any = sympy.Integer(0)
    progress = Progress(sent, sent, sent, one.packet, one.packet, line, none, p.base_rtt, time)
    after = law.on_step(p, state, progress, late)
    one.moves({own: sympy.diff(new, time).subs(time, 0) for own, new in zip(state, after, strict=True)})
    one.moves({queue: one.flows * law.rate(state._replace(rate=arriving)) - one.capacity})
    one.holds({marking: one.marking(queue)})
    one.assumed[:] = [each.subs(time, 0) for each in one.assumed]
