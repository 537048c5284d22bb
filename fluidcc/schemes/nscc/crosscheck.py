"""Tolerances of NSCC's fluid model against packets."""

from __future__ import annotations

from fluidcc.contract.bind import bind
from fluidcc.contract.tolerance import Tolerance
from fluidcc.scenario.model import Scenario

UNTIL = "5ms"  # first windows are gone within some round trips of 10 us to 100 us


def tolerances(scenario: Scenario) -> dict[str, Tolerance]:
    """Tolerances of an incast, by the keys of `Comparison.difference`; none for other scenarios."""
    if len(scenario.links) != 1:
        return {}
    flow, flows = scenario.flows[0], sum(each.multiplicity for each in scenario.flows)
    p = bind(scenario, flow)
    share = (1.0 + p.target_delay / p.base_rtt) * p.bdp / p.mtu / flows  # packets in a window at the target
    return {
        "queue_mean_rel": Tolerance(0.15, "equal flows of the fluid cut together, packets' one after the other"),
        "queue_peak_rel": Tolerance(0.1, "the first windows are whole packets"),
        "window_rel": Tolerance(0.15 + 0.5 / share, "a window of packets holds a whole number of them"),
    }
