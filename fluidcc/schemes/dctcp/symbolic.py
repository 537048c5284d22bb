"""DCTCP's equations on symbols: those of its analysis (Alizadeh et al., SIGMETRICS 2011)."""

from __future__ import annotations

from typing import Any

import sympy
from scipy.optimize import brentq

from fluidcc.contract.signals import Progress
from fluidcc.errors import InputError
from fluidcc.schemes.dctcp import analysis, fluid


def equations(one: Any) -> None:
    """Write the equations into a `fluidcc.theory.symbolic.system.System`.

    Raises
    ------
    InputError
        Of the protocol, which cuts in jumps; of more flows than marking holds.
    """
    if one.scenario.flows[0].scheme.form != "analysis":
        raise InputError(
            "symbolic: dctcp cuts its window in jumps, so there is no smooth equilibrium; write "
            "fluidcc.DCTCP(form='analysis')"
        )
    law, p, link = one.law(analysis), one.parameters, one.scenario.links[0]
    none: Any = sympy.Integer(0)
    marking: Any = link.marking
    low, high = float(marking.kmin), float(marking.kmax)
    base, packet = one.number(p.base_rtt), one.number(one.packet * p.increase)

    def beyond(queue: float) -> float:
        size = (queue + float(link.rate) * base) / len(one.scenario.flows)
        return float(marking.pmax) * (queue - low) / (high - low) - (2.0 * packet / size) ** 0.5

    if low < high and beyond(high) < 0.0:
        raise InputError(
            "symbolic: marking: these flows need more marks than pmax; write fewer flows, or a larger pmax"
        )
    standing: Any = low if low == high else brentq(beyond, low, high)
    size = (standing + float(link.rate) * base) / len(one.scenario.flows)
    window, alpha = one.state("W", size), one.state("alpha", (2.0 * packet / size) ** 0.5)
    marked, queue = one.algebraic("p", (2.0 * packet / size) ** 0.5), one.algebraic("q", standing)
    rtt = p.base_rtt + queue / one.capacity
    line = one.symbol("line", float(one.scenario.flows[0].line_rate))
    state = fluid.State(line, window, alpha, none, none, none, none, none, none, none)
    progress = Progress(none + 2, none + 1, window, one.packet, one.packet, line, none + 1, rtt)
    state = law.jump(p, state, progress, sympy.true)
    late = one.lagged(marked, one.symbol("tau", one.number(rtt)))
    moves = law.derivative(p, state, late, state)
    one.moves({window: moves.window, alpha: moves.alpha})
    one.holds({queue: one.flows * window - one.capacity * p.base_rtt})
    if low == high:
        one.keeps(marked, one.symbol("K", low), queue)
    else:
        one.holds({marked: one.marking(queue)})
