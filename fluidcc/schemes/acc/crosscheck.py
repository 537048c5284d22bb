"""Tolerances of ACC's fluid model against packets."""

from __future__ import annotations

from fluidcc.contract.tolerance import Tolerance
from fluidcc.scenario.model import Scenario

UNTIL = "1ms"  # a line-rate start of N flows drains in 2 N base RTTs of some us


def tolerances(scenario: Scenario) -> dict[str, Tolerance]:
    """Tolerances of an incast, by the keys of `Comparison.difference`; none for other scenarios.

    The halt of the fluid is within 10 % too, and the rates recorded in it within 5 %.
    """
    if len(scenario.links) > 1:
        return {}
    return {
        "queue_peak_rel": Tolerance(0.1, "two periods at line rate; a flow's clock starts with a whole packet's ACK"),
        "drain_time_rel": Tolerance(0.1, "a period holds a whole number of ACKs, on which the halt depends"),
        "rate_rel_max": Tolerance(0.05, "flows alike are averaged, and the link is full"),
    }
