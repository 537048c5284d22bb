"""Tolerances of Swift's fluid model against packets."""

from __future__ import annotations

from fluidcc.contract.tolerance import Tolerance
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.round_trips import switches

UNTIL = "5ms"  # line-rate windows are cut within some round trips of 10 us to 100 us


def tolerances(scenario: Scenario) -> dict[str, Tolerance]:
    """Tolerances of an incast, by the keys of `Comparison.difference`; none for other scenarios."""
    if len(scenario.links) != 1:
        return {}
    flow, flows = scenario.flows[0], sum(each.multiplicity for each in scenario.flows)
    target = flow.scheme.base_target + switches(scenario, flow) * flow.scheme.hop_target
    share = scenario.links[0].rate * target / scenario.wire_packet_of(flow) / flows  # packets in a window, or more
    return {
        "queue_mean_rel": Tolerance(0.25, "N windows of packets rise by ai in a round trip before they observe it"),
        "queue_peak_rel": Tolerance(0.1, "the first windows are whole packets"),
        "window_rel": Tolerance(0.1 + 0.5 / share, "a window of packets holds the next whole number of them"),
    }
