"""Equal flows as one class."""

from __future__ import annotations

import dataclasses

import numpy as np

from fluidcc.scenario.model import Flow, Scenario


def merged(scenario: Scenario) -> tuple[Scenario, tuple[int, ...]]:
    """A scenario whose equal flows are one class, always active and long-lived.

    Parameters
    ----------
    scenario : Scenario
        Resolved, of plain numbers.

    Returns
    -------
    scenario : Scenario
    classes : tuple of int
        Of each flow, its class.
    """
    classes: dict[Flow, list[float]] = {}
    order: dict[Flow, int] = {}
    found = []
    for flow in scenario.flows:
        plain = dataclasses.replace(
            flow, name="", source="", target="", start=0.0, size=np.inf, multiplicity=1.0, initial_rate=flow.line_rate
        )
        classes.setdefault(plain, []).append(flow.multiplicity)
        found.append(order.setdefault(plain, len(order)))
    flows = tuple(dataclasses.replace(flow, multiplicity=float(sum(n))) for flow, n in classes.items())
    return dataclasses.replace(scenario, flows=flows), tuple(found)
