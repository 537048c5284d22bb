"""Roots of schemes that change their state in updates, once in a round trip: from the multipliers of their map."""

from __future__ import annotations

import cmath
from typing import NamedTuple

from fluidcc.contract.bind import binder
from fluidcc.contract.registry import equilibrium_of
from fluidcc.errors import NoClosedFormError
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.round_trips import base_rtt_with_serialisation
from fluidcc.theory.control.equilibrium import equilibrium

_EQUAL = 1e-9  # relative


class Roots(NamedTuple):
    """Roots of what equal flows do together, and of differences between them, None for one flow [1/s]."""

    together: complex
    apart: complex | None


def has_updates(scenario: Scenario) -> bool:
    """Check whether the flows' scheme says what its updates do near an equilibrium."""
    sides = [equilibrium_of(flow.scheme) for flow in scenario.flows]
    return all(side is not None and side.multipliers is not None for side in sides)


def roots_of_updates(scenario: Scenario) -> Roots:
    """Find the root r = log(z)/period of each multiplier z: deviations change by e^(r t) from update to update.

    Parameters
    ----------
    scenario : Scenario
        Resolved; flows start together, so that they update together.

    Raises
    ------
    NoClosedFormError
        For flows that differ in scheme, path or round trip, and where the scheme says that it is not known.
    """
    bound = binder(scenario)
    first = scenario.flows[0]
    period, side = base_rtt_with_serialisation(scenario, first), equilibrium_of(first.scheme)
    assert side is not None
    assert side.multipliers is not None
    for flow in scenario.flows:
        late = base_rtt_with_serialisation(scenario, flow)
        if flow.path != first.path or bound(flow) != bound(first) or abs(late - period) > _EQUAL * period:
            raise NoClosedFormError(
                "windows of flows that differ in path, round trip or parameters change at different times, and the map "
                "of their updates is not known; make them equal"
            )
    observed = equilibrium(scenario).flows[0]
    found = side.multipliers(bound(first), observed, period)
    several = sum(flow.multiplicity for flow in scenario.flows) > 1
    together, apart = (cmath.log(each) / found.period for each in (found.together, found.apart))
    return Roots(together, apart if several else None)
