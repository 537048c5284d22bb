"""Tolerances of TIMELY's fluid model against packets."""

from __future__ import annotations

from fluidcc.contract.tolerance import Tolerance
from fluidcc.scenario.model import Scenario

UNTIL = "400ms"  # patched TIMELY's rates draw near each other within some 100 ms, after a burst of up to 100 ms
_LONGEST_BURST = 0.12  # s


def tolerances(scenario: Scenario) -> dict[str, Tolerance]:
    """Tolerances of an incast, by the keys of `Comparison.difference`; none for other scenarios.

    None for TIMELY's mean queue, which goes with the split of the rates, and that with chance in packets. Nor any for
    patched TIMELY where packets are still draining the burst of the start, or where the fluid's equilibrium is not
    theirs: at or above C T_high.
    """
    if len(scenario.links) != 1:
        return {}
    capacity, p = scenario.links[0].rate, scenario.flows[0].scheme
    flows = sum(flow.multiplicity for flow in scenario.flows)
    start = sum(flow.multiplicity * flow.initial_rate for flow in scenario.flows)
    found = {}
    if start <= capacity:
        found["queue_peak_rel"] = Tolerance(0.15, "rates rise by a tau* after the queue has reached T_low")
    if not p.patched:
        found["queue_p95_rel"] = Tolerance(0.25, "T_low bounds it in both, but how often it is reached differs")
        return found
    # Above T_high packets' rates fall by beta in each N Seg/C, at which the link serves a flow's segments.
    burst = 0.0 if start <= capacity else start * flows * p.segment / (capacity**2 * p.beta)
    if burst > _LONGEST_BURST or flows * p.rate_ai * p.t_low >= p.beta * capacity * (p.t_high - p.t_low):
        return {}
    fixed_point = Tolerance(0.01, "both settle where the excess over T_low takes what the increase gives")
    return found | {"queue_mean_rel": fixed_point, "rate_rel_max": fixed_point}
