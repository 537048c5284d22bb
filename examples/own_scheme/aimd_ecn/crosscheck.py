"""How far the fluid side may be from packets, and why."""

from __future__ import annotations

from fluidcc.contract.tolerance import Tolerance
from fluidcc.scenario.model import Scenario

UNTIL = "40ms"  # queues settle within some ms


def tolerances(scenario: Scenario) -> dict[str, Tolerance]:
    """Tolerances of an incast, by the keys of `Comparison.difference`."""
    if len(scenario.links) > 1:
        return {}
    return {
        "queue_mean_rel": Tolerance(0.2, "marks are random, and rates oscillate with them: a product of means is off"),
        "rate_rel_max": Tolerance(0.1, "the link is full and shared evenly; the rest is the spread of the seeds"),
    }
