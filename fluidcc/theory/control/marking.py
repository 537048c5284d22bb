"""Equilibria of schemes that equilibrium on a marking: link by link the probability that makes the flows fill it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from scipy.optimize import root_scalar

from fluidcc.errors import InputError
from fluidcc.scenario.model import Link, Scenario
from fluidcc.schemes.bind import binder
from fluidcc.schemes.protocol import FixedPoint

_ROUNDS = 500  # of the iteration over links; two or three do for one link
_SMALLEST, _LARGEST = 1e-15, 1 - 1e-12  # marking probabilities searched


def marked_equilibria(scenario: Scenario, solvers: list[Callable[..., FixedPoint]]) -> tuple[list[float], list[Any]]:
    """Marking probability of every link, and every flow's equilibrium under those along its path.

    Parameters
    ----------
    scenario : Scenario
        Resolved, of plain numbers.
    solvers : list of callable
        Of each flow its scheme's ``solve_equilibrium``.

    Raises
    ------
    InputError
        If a loaded link has no marking, or the flows exceed a link even when everything is marked.
    """
    packets = [scenario.wire_packet_of(flow) for flow in scenario.flows]
    bound = [*map(binder(scenario), scenario.flows)]
    probabilities = [0.0] * len(scenario.links)

    def excess(link: int, p: float) -> float:
        marks = [*probabilities[:link], p, *probabilities[link + 1 :]]
        load = sum(
            flow.multiplicity * solve(parameters, along(marks, flow.path), flow.line_rate, packet).rate
            for solve, parameters, flow, packet in zip(solvers, bound, scenario.flows, packets, strict=True)
            if link in flow.path
        )
        return load / scenario.links[link].rate - 1.0

    for _ in range(_ROUNDS):
        before = list(probabilities)
        for link in range(len(scenario.links)):
            probabilities[link] = _root(scenario.links[link], link, lambda p, i=link: excess(i, p))
        if all(abs(p - q) <= 1e-13 * q for p, q in zip(before, probabilities, strict=True)):
            break
    else:
        raise InputError("equilibrium: the links' markings do not settle; simulate instead")
    states = [
        solve(parameters, along(probabilities, flow.path), flow.line_rate, packet)
        for solve, parameters, flow, packet in zip(solvers, bound, scenario.flows, packets, strict=True)
    ]
    return probabilities, states


def along(marks: list[float], path: tuple[int, ...]) -> float:
    """Probability of a mark along a path."""
    if len(path) == 1:  # exact where 1 - (1 - p) is not
        return marks[path[0]]
    return 1.0 - math.prod(1.0 - marks[i] for i in path)


def _root(link: Link, index: int, excess: Any) -> float:
    if excess(0.0) <= 1e-12:
        return 0.0
    name = link.name or f"link {index}"
    if link.marking is None:
        raise InputError(f"equilibrium: {name} is overloaded and marks nothing; give it marking=RED(kmin, kmax, pmax)")
    if excess(_LARGEST) > 0:
        raise InputError(f"equilibrium: the flows exceed {name} even if all is marked; lower min_rate or the flows")
    if excess(_SMALLEST) <= 0:
        return 0.0
    span = math.log(_SMALLEST), math.log(_LARGEST)
    return math.exp(root_scalar(lambda x: excess(math.exp(x)), bracket=span, xtol=1e-14, rtol=1e-14).root)
