"""Tolerances of DCTCP's fluid model against packets."""

from __future__ import annotations

from fluidcc.contract.tolerance import Tolerance
from fluidcc.scenario.model import Scenario

UNTIL = "20ms"  # sawteeth of some hundred us, after a line-rate start


def tolerances(scenario: Scenario) -> dict[str, Tolerance]:
    """Tolerances of an incast, by the keys of `Comparison.difference`; none for other scenarios."""
    if len(scenario.links) > 1:
        return {}
    return {
        "queue_mean_rel": Tolerance(0.1, "equal flows of the fluid cut together, packets' one after the other"),
        "queue_peak_rel": Tolerance(0.1, "the first windows are whole packets"),
        "rate_rel_max": Tolerance(0.1, "flows of packets do not cut in turn: one cuts twice while another does not"),
    }
