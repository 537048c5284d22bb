"""Effects of W_AI on one link, in closed form (HPCC 3.3 and A.3): utilisation, queue, and time to fairness.

With a = W_AI/T once per base RTT, R = R Ut/U + a settles at U = Ut + N a/C where T is the path's round trip and U stays
below 1 (else: `fluidcc.contract.one_link`). Around it the load returns within a round trip, and differences between
flows shrink by Ut/U in each.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from fluidcc.contract.one_link import settled
from fluidcc.errors import InputError, NoClosedFormError
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.schemes.hpcc.equilibrium import balances
from fluidcc.schemes.hpcc.parameters import HPCC


class FixedPoint(NamedTuple):
    """One link at equilibrium under HPCC.

    Parameters
    ----------
    utilisation : float
        U, above 1 if a queue stands.
    queue : float
        Standing queue [bytes].
    window : float
        Of each flow [bytes].
    boundary : float
        Largest W_AI without a standing queue [bytes]; (1 - eta) C T/N, the rule of thumb of section 3.3, where the
        path's round trip is no longer than T.
    shrinks : float
        Factor by which differences between flows shrink in a base RTT.
    base_rtt : float
        T [s].
    """

    utilisation: float
    queue: float
    window: float
    boundary: float
    shrinks: float
    base_rtt: float

    def fairness_time(self, ratio: float) -> float:
        """Time until differences between flows are a ``ratio`` of what they were [s].

        Raises
        ------
        InputError
            If the ratio is not between 0 and 1.
        """
        if not 0 < ratio < 1:
            raise InputError(f"ratio: {ratio:g} is no share of a difference; write a number between 0 and 1")
        return self.base_rtt * math.log(ratio) / math.log(self.shrinks)


def solve_equilibrium(scenario: Scenario) -> FixedPoint:
    """Equilibrium of an incast of HPCC flows.

    Parameters
    ----------
    scenario : Scenario
        One link, all flows with the same parameters.

    Raises
    ------
    InputError
        If it has several links, flows that differ, are not HPCC's or have no windows, or there is no closed form.
    """
    scenario = resolve(scenario)
    (link, *more), (flow, *others) = scenario.links, scenario.flows
    alike = all(other.scheme == flow.scheme for other in others)
    if more or not alike or not isinstance(flow.scheme, HPCC):
        raise InputError(
            "scenario: the closed form is of one link and equal HPCC flows; write fluidcc.incast(..., HPCC())"
        )
    try:
        balance = balances(scenario)(flow)
        if not balance.windows:
            raise NoClosedFormError("rates without windows hold no bytes; write form=window")
        found = settled(scenario, balance, link.rate)
    except NoClosedFormError as error:
        raise InputError(f"scenario: {error}") from None
    return FixedPoint(
        utilisation=found.utilisation,
        queue=found.queue,
        window=found.window,
        boundary=found.boundary,
        shrinks=balance.target / found.utilisation,
        base_rtt=balance.base_rtt,
    )
