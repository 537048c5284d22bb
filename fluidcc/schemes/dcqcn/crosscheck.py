"""Tolerances of DCQCN's fluid model against packets."""

from __future__ import annotations

from fluidcc.contract.tolerance import Tolerance
from fluidcc.scenario.model import Scenario

UNTIL = "200ms"  # fairness takes some 50 ms, and queues some 10 ms to settle


def tolerances(scenario: Scenario) -> dict[str, Tolerance]:
    """Tolerances of an incast, by the keys of `Comparison.difference`; none for other scenarios."""
    if len(scenario.links) > 1:
        return {}
    few = sum(flow.multiplicity for flow in scenario.flows) <= 4
    return {
        "queue_mean_rel": Tolerance(0.2, "marks are random; with up to 4 flows the fixed point damps them well")
        if few
        else Tolerance(0.35, "at 8 flows 1.9 degrees of phase margin are left, so the marks' noise excites the loop"),
        "rate_rel_max": Tolerance(
            0.05, "the bottleneck is full and shared evenly; the rest is the spread of the seeds"
        ),
        "settling_time_rel": Tolerance(
            0.25, "rates approach each other slowly, over noise of the size of the gap left"
        ),
    }
