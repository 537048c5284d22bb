"""Equal flows as one class."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence

import numpy as np

from fluidcc.scenario.model import Flow, Scenario


def merged(scenario: Scenario, apart: Sequence[Hashable] | None = None) -> tuple[Scenario, tuple[int, ...]]:
    """A scenario whose equal flows are one class, always active and long-lived.

    Parameters
    ----------
    scenario : Scenario
        Resolved, of plain numbers.
    apart : sequence, optional
        Of each flow what it must have in common with the others of its class besides.

    Returns
    -------
    scenario : Scenario
    classes : tuple of int
        Of each flow, its class.
    """
    classes: dict[tuple[Flow, Hashable], list[float]] = {}
    order: dict[tuple[Flow, Hashable], int] = {}
    found = []
    for flow, also in zip(scenario.flows, apart or [None] * len(scenario.flows), strict=True):
        plain = dataclasses.replace(
            flow, name="", source="", target="", start=0.0, size=np.inf, multiplicity=1.0, initial_rate=flow.line_rate
        )
        classes.setdefault((plain, also), []).append(flow.multiplicity)
        found.append(order.setdefault((plain, also), len(order)))
    flows = tuple(dataclasses.replace(flow, multiplicity=float(sum(n))) for (flow, _), n in classes.items())
    return dataclasses.replace(scenario, flows=flows), tuple(found)
