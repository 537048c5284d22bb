"""HPCC's equilibrium against where its fluid settles. Tolerances were set before anything was measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidcc as fc


def lot(**options: Any) -> fc.Scenario:
    return fc.parking_lot(3, rate="100Gbps", scheme=fc.HPCC(w_ai="800B", **options))


@pytest.mark.parametrize(
    "scenario",
    [
        fc.incast(16, rate="100Gbps", scheme=fc.HPCC()),
        fc.incast(16, rate="100Gbps", scheme=fc.HPCC(w_ai="300B")),  # a queue stands
        fc.incast(64, rate="100Gbps", scheme=fc.HPCC()),  # windows of one packet
        fc.incast(4, rate="100Gbps", scheme=fc.HPCC(form="rate"), initial_rate="20Gbps"),
        lot(),
    ],
)
def test_the_fluid_settles_there(scenario: fc.Scenario) -> None:
    """Rates and windows to 1e-6, queues to a byte."""
    fixed_point = fc.equilibrium(scenario)
    assert fixed_point.exists
    run = fc.simulate(scenario, "20ms", estimate_error=False)
    expected = [flow["rate_bytes_per_s"] for flow in fixed_point.flows]
    assert run.summary["rate_bytes_per_s"] == pytest.approx(expected, rel=1e-6)
    windows = [flow["window_bytes"] for flow in fixed_point.flows]
    assert run["window"].values[-1] == pytest.approx(windows, rel=1e-6)
    queues = [link["queue_bytes"]["mean"] for link in run.summary["links"]]
    assert queues == pytest.approx([link["queue_bytes"] for link in fixed_point.links], abs=1.0)


def test_multiplicity_counts_flows() -> None:
    one = fc.equilibrium(fc.incast(1, rate="100Gbps", scheme=fc.HPCC(), multiplicity=16)).flows[0]
    many = fc.equilibrium(fc.incast(16, rate="100Gbps", scheme=fc.HPCC())).flows[0]
    assert one["rate_bytes_per_s"] == pytest.approx(many["rate_bytes_per_s"], rel=1e-12)


def test_rates_that_overfill_the_link_hold_no_bytes() -> None:
    """N a/(1 - eta/U) = C: U = eta/(1 - N a/C), where windows would have eta + N a/C."""
    scheme = fc.HPCC(form="rate", rate_ai="1Gbps")
    fixed_point = fc.equilibrium(fc.incast(16, rate="100Gbps", scheme=scheme))
    assert fixed_point.flows[0]["utilisation_estimate"] == pytest.approx(0.95 / (1 - 0.16), rel=1e-12)
    windows = fc.equilibrium(fc.incast(16, rate="100Gbps", scheme=fc.HPCC(rate_ai="1Gbps")))
    assert windows.flows[0]["utilisation_estimate"] == pytest.approx(0.95 + 0.16, rel=1e-12)


@pytest.mark.slow
def test_what_has_no_closed_form_is_run() -> None:
    """Registers per link rest; links that are overloaded together oscillation, about the mean of a plain run, to
    2 %.
    """
    apart = fc.equilibrium(lot(registers="per-link"))
    assert apart.exists
    assert apart.cycle is not None
    assert apart.cycle.kind == "equilibrium"
    crowded = fc.parking_lot(3, rate="100Gbps", scheme=fc.HPCC(w_ai="8KB"))
    over = fc.equilibrium(crowded)
    assert not over.exists
    assert over.cycle is not None
    assert over.cycle.kind in ("cycle", "irregular")  # two links oscillate out of step
    plain = fc.simulate(crowded, "10ms", estimate_error=False).summary["queue_bytes"]
    assert over.as_dict()["queue_bytes"] == pytest.approx(plain["mean"], rel=0.02)


def test_a_rest_that_is_run_to_is_the_one_that_is_solved_for() -> None:
    """Windows of one link: limit_cycle ends at the closed form, to 1e-6."""
    scenario = fc.incast(2, rate="100Gbps", scheme=fc.HPCC(rate_ai="1Gbps"))
    run = fc.limit_cycle(scenario, estimate_error=False)
    assert run.kind == "equilibrium"
    assert run.rates[0] == pytest.approx(fc.equilibrium(scenario).flows[0]["rate_bytes_per_s"], rel=1e-6)


def test_shares_of_a_parking_lot_are_nearly_max_min() -> None:
    shares = np.array([flow["rate_bytes_per_s"] for flow in fc.equilibrium(lot()).flows])
    assert shares == pytest.approx([shares.mean()] * 3, rel=1e-9)
