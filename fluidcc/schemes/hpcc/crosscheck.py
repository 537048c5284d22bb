"""Tolerances of HPCC's fluid model against packets."""

from __future__ import annotations

from fluidcc.contract.tolerance import Tolerance
from fluidcc.scenario.model import Scenario

UNTIL = "5ms"  # an incast drains in 100 us, which samples must resolve, and windows settle in some ms


def tolerances(scenario: Scenario) -> dict[str, Tolerance]:
    """Tolerances of an incast, by the keys of `Comparison.difference`; none for other scenarios."""
    if len(scenario.links) > 1:
        return {}
    return {
        "queue_peak_rel": Tolerance(0.15, "the first windows are whole packets, one of them beyond the window"),
        "drain_time_rel": Tolerance(0.1, "reactions come with single ACKs; the fluid's are continuous"),
        "window_rel": Tolerance(0.05, "the fixed point is the same, but for packets' rounding of window and telemetry"),
    }
