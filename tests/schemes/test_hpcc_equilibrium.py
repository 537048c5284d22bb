"""HPCC's equilibrium against where its fluid settles. Tolerances were set before anything was measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract import one_link
from fluidcc.scenario.model import resolve
from fluidcc.schemes.hpcc.equilibrium import Balance

GBPS = 1e9 / 8


def lot(**options: Any) -> fc.Scenario:
    return fc.parking_lot(3, rate="100Gbps", scheme=fc.HPCC(w_ai="800B", **options))


def flows(count: int, rate: str = "100Gbps", network: dict[str, Any] | None = None, **options: Any) -> fc.Scenario:
    """An incast of equal flows, as one class."""
    return fc.incast(1, multiplicity=count, rate=rate, scheme=fc.HPCC(**options), **(network or {}))


@pytest.mark.parametrize(
    ("w_ai", "least", "window", "U"),
    [
        (12.8, 60.0, 60.0, 2.5),  # W is 12.8 / (1 - 0.9 / 2.5) = 20, sent in T; a packet of 60 may be in flight
        (12.0, 15.0, 30.0, 1.5),  # W is 12 / (1 - 0.9 / 1.5), sent in D + q/C = 3 s
    ],
)
def test_a_window_is_no_less_than_what_may_always_be_in_flight(
    w_ai: float, least: float, window: float, U: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten flows share 100 B/s with T = D = 2 s. Catches a window of less than a packet, which none ever has."""
    monkeypatch.setattr(one_link, "base_rtt_with_serialisation", lambda scenario, flow: 2.0)
    balance = Balance(0.9, w_ai / 2, 2.0, True, 1.0, 1e4, least, 1.0)
    found = one_link.settled(resolve(flows(10)), balance, 100.0)
    assert found.window == pytest.approx(window, rel=1e-9)
    assert (found.utilisation, found.queue) == pytest.approx((U, (U - 1) * 200), rel=1e-9)
    assert found.rates == pytest.approx([10.0], rel=1e-9)


@pytest.mark.parametrize(
    ("scenario", "until"),
    [
        (flows(16), "5ms"),
        (flows(16, w_ai="300B"), "5ms"),  # a queue stands
        (flows(64), "5ms"),  # windows of one packet
        (flows(16, w_ai="300B", base_rtt="4us"), "5ms"),  # less than the round trip
        (flows(4, w_ai="52B", base_rtt="15us"), "5ms"),  # more
        *(
            pytest.param(scenario, "20ms", marks=pytest.mark.slow)
            for scenario in (
                flows(16, "25Gbps", {"window_unit": "payload"}, w_ai="450B"),
                flows(  # windows of less than a packet
                    40, "25Gbps", {"initial_rate": "0.5Gbps"}, variant="hpcc-sim", base_rtt="5.67us", w_ai="200B"
                ),
                flows(4, network={"initial_rate": "20Gbps"}, form="rate"),
                lot(),
            )
        ),
    ],
)
def test_the_fluid_settles_there(scenario: fc.Scenario, until: str) -> None:
    """Rates and windows to 1e-6, queues to a byte."""
    fixed_point = fc.equilibrium(scenario)
    assert fixed_point.exists
    run = fc.simulate(scenario, until, estimate_error=False)
    expected = [flow["rate_bytes_per_s"] for flow in fixed_point.flows]
    assert run.summary["rate_bytes_per_s"] == pytest.approx(expected, rel=1e-6)
    windows = [flow["window_bytes"] for flow in fixed_point.flows]
    assert run["window"].values[-1] == pytest.approx(windows, rel=1e-6)
    queues = [link["queue_bytes"]["mean"] for link in run.summary["links"]]
    assert queues == pytest.approx([link["queue_bytes"] for link in fixed_point.links], abs=1.0)


@pytest.mark.slow
def test_paths_of_several_lengths() -> None:
    """Equal windows, sent in round trips 1 us apart: the queue is the root of sum W/(D_i + q/C) = C."""
    scenario = fc.incast(
        2, multiplicity=50, rate="100Gbps", scheme=fc.HPCC(w_ai="80B"), delay=["1us", "1.5us"], initial_rate="0.9Gbps"
    )
    found = fc.equilibrium(scenario)
    run = fc.simulate(scenario, "20ms", estimate_error=False)
    rates = [flow["rate_bytes_per_s"] for flow in found.flows]
    assert rates[0] > 1.05 * rates[1]
    assert run.summary["rate_bytes_per_s"] == pytest.approx(rates, rel=1e-6)
    assert run.summary["queue_bytes"]["mean"] == pytest.approx(found.links[0]["queue_bytes"], abs=1.0)


@pytest.mark.slow
def test_without_an_increase_any_shares_rest() -> None:
    """W = W eta/U for every W (A.2): four flows stay where they began, and the equal shares are not all there is."""
    begun = np.array([5.0, 10.0, 20.0, 60.0]) * GBPS
    scenario = fc.incast(
        4, rate="100Gbps", scheme=fc.HPCC(w_ai="0B"), initial_rate=["5Gbps", "10Gbps", "20Gbps", "60Gbps"]
    )
    run = fc.simulate(scenario, "20ms", estimate_error=False)
    assert run.summary["rate_bytes_per_s"] == pytest.approx(begun, rel=1e-6)
    found = fc.equilibrium(scenario)
    assert found.unique is False
    assert "all shares that load the link" in str(found.searched)
    assert fc.equilibrium(fc.incast(1, rate="100Gbps", line_rate="200Gbps", scheme=fc.HPCC(w_ai="0B"))).unique


def test_a_window_is_no_more_than_the_first_one() -> None:
    """W_init of 30 KB holds a lone flow at 48 of 100 Gb/s, which (4) does not know."""
    found = fc.equilibrium(fc.incast(1, rate="100Gbps", scheme=fc.HPCC(initial_window="30KB")))
    assert found.links[0]["utilisation"] < 0.6


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


@pytest.mark.slow
def test_a_rest_that_is_run_to_is_the_one_that_is_solved_for() -> None:
    """Windows of one link: limit_cycle ends at the closed form, to 1e-6."""
    scenario = fc.incast(2, rate="100Gbps", scheme=fc.HPCC(rate_ai="1Gbps"))
    run = fc.limit_cycle(scenario, estimate_error=False)
    assert run.kind == "equilibrium"
    assert run.rates[0] == pytest.approx(fc.equilibrium(scenario).flows[0]["rate_bytes_per_s"], rel=1e-6)


def test_shares_of_a_parking_lot_are_nearly_max_min() -> None:
    shares = np.array([flow["rate_bytes_per_s"] for flow in fc.equilibrium(lot()).flows])
    assert shares == pytest.approx([shares.mean()] * 3, rel=1e-9)
