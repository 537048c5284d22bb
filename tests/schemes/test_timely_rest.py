"""Where TIMELY's fluid settles, or does not, and patched TIMELY's: closed forms, Newton, runs, linearisation.

Tolerances were set before anything was measured.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.fields import bound_win
from fluidcc.contract.signals import Signals, Waits
from fluidcc.scenario.model import resolve
from fluidcc.schemes.timely import PRESETS, fluid
from fluidcc.theory.control.equilibrium import equilibria
from fluidcc.theory.control.states import NoEquilibriumError
from tests.oracles.timely_reference import Constants, gradient, interval, rate
from tests.schemes.plain_laws import plain
from tests.theory.control.test_linearize import dominant

model = plain(fluid)
CAPACITY, STORED = 10e9 / 8, 1000 / 1.25e9
PLAIN, PATCHED = PRESETS["fluid"].scheme, PRESETS["patched"].scheme


def of(flows: int, start: str = "10Gbps", **options: Any) -> fc.Scenario:
    """Equal flows of patched TIMELY, as one class."""
    scheme = dataclasses.replace(PATCHED, **options)
    return fc.incast(1, multiplicity=flows, rate="10Gbps", scheme=scheme, initial_rate=start)


def run(scenario: fc.Scenario, until: str, **more: Any) -> fc.Trace:
    return fc.simulate(scenario, until, estimate_error=False, **more)


def rest_of(scenario: fc.Scenario) -> float:
    """q* = N delta q'/(beta C) + q' [bytes]."""
    known = resolve(scenario)
    p, flows = known.flows[0].scheme, sum(flow.multiplicity for flow in known.flows)
    reference = known.links[0].rate * p.t_low
    return flows * p.rate_ai * reference / (p.beta * known.links[0].rate) + reference


# -- patched TIMELY ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flows", [2, 8, 40])
@pytest.mark.parametrize(
    "options", [{}, {"rate_ai": "2Mbps", "t_low": "100us"}, {"beta": 0.02, "segment": "64KB"}], ids=["", "slow", "fast"]
)
def test_the_rest_is_the_closed_form(flows: int, options: dict[str, Any]) -> None:
    """By Newton, of flows as one class: to 1e-9."""
    scenario = of(flows, **options)
    want = pytest.approx(rest_of(scenario), rel=1e-9)
    (found,) = equilibria(scenario)
    assert found.as_dict()["queue_bytes"] == want
    assert found.as_dict()["rate_bytes_per_s"] == pytest.approx(CAPACITY / flows, rel=1e-9)
    assert found.as_dict()["rtt_gradient"] == pytest.approx(0.0, abs=1e-9)
    assert fc.equilibrium(scenario).as_dict()["queue_bytes"] == want


@pytest.mark.slow
def test_the_rest_of_flows_told_apart() -> None:
    (apart,) = equilibria(fc.incast(8, rate="10Gbps", scheme=PATCHED))
    assert apart.as_dict()["queue_bytes"] == pytest.approx(rest_of(of(8)), rel=1e-9)
    rates = [flow["rate_bytes_per_s"] for flow in apart.flows]
    assert rates == pytest.approx([CAPACITY / 8] * 8, rel=1e-9)


@pytest.mark.parametrize(
    ("flows", "options"),
    [(2, {}), (8, {}), (8, {"beta": 0.02, "segment": "64KB"}), (40, {"rate_ai": "2Mbps", "t_low": "100us"})],
)
def test_runs_come_to_rest_there(flows: int, options: dict[str, Any]) -> None:
    """From C/N and an empty queue, where it is stable: the last queue to 1e-6."""
    scenario = of(flows, f"{10 / flows}Gbps", **options)
    assert fc.stability(scenario).stable
    assert run(scenario, "300ms")["queue"].values[-1, 0] == pytest.approx(rest_of(scenario), rel=1e-6)


def test_more_than_18_flows_swing() -> None:
    """The rightmost root crosses between 18 and 19 flows; so do runs, by their standard deviations: 1 and 1000 B."""
    for flows, stable in ((18, True), (20, False)):
        scenario = of(flows, f"{10 / flows}Gbps")
        assert fc.stability(scenario).stable is stable
        deviation = run(scenario, "400ms").summary["queue_bytes"]["std"]
        assert deviation < 1 if stable else deviation > 1000
    assert [fc.stability(of(flows)).stable for flows in (17, 19)] == [True, False]


@pytest.mark.parametrize(("flows", "least"), [(2, 20e-6), (2, 40e-6), pytest.param(8, 150e-6, marks=pytest.mark.slow)])
def test_differences_of_rates_decay_as_printed(flows: int, least: float) -> None:
    """lambda = -N delta/(2 C tau*): linearize's fairness mode to 1e-9, and two rates of a nonlinear run to 1e-2.

    tau* is Seg/R twice, and twice D_minRTT. A difference of 1 % of the rate; its square is the next order. From 100 ms
    on, when oscillations of the sum are gone too (43 per second is the least): their squares change the decay.
    """
    scenario = of(flows, min_rtt=least)
    tau = max(16e3 / (CAPACITY / flows), least)
    root = -flows * 1.25e6 / (2 * CAPACITY * tau)
    (fairness,) = fc.linearize(scenario).fairness
    assert fairness.modes == flows - 1
    found = fc.stability(scenario)
    assert found.stable
    assert found.fairness_root == pytest.approx(complex(root), rel=1e-9)
    starts = [f"{10 / flows * share}Gbps" for share in (1.01, 0.99, *[1.0] * (flows - 2))]
    trace = run(fc.incast(flows, rate="10Gbps", scheme=scenario.flows[0].scheme, initial_rate=starts), "150ms")
    time, rates = trace["time"].values, trace["rate"].values
    late = time > 100e-3
    slope = np.polyfit(time[late], np.log((rates[:, 0] - rates[:, 1])[late]), 1)[0]
    assert slope == pytest.approx(root, rel=1e-2)


@pytest.mark.parametrize("flows", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_aggregate_decays_as_its_rightmost_root(flows: int) -> None:
    """The queue from 15 ms on, after a start at C/N: real part to 1e-2, frequency to 1e-3."""
    scenario = of(flows, f"{10 / flows}Gbps")
    root = fc.stability(scenario).aggregate_root
    assert root is not None
    trace = run(scenario, "40ms", dt="0.5us", sample_interval="20us")
    late = (trace["time"].values > 12e-3) & (trace["time"].values < 32e-3)
    found = dominant(trace["queue"].values[late, 0][::5] - rest_of(scenario), 1e-4, 6)
    assert found.real == pytest.approx(root.real, rel=1e-2)
    assert found.imag == pytest.approx(root.imag, rel=1e-3)


@pytest.mark.parametrize("flows", [2, 8, 40])
def test_linearised_delays(flows: int) -> None:
    """Rates reach the queue after 1 us and a store; tau' = 2 + 1 us, one more store, an ACK's two, and q*/C; tau*."""
    scenario = of(flows)
    back = 3e-6 + STORED + 2 * 64 / CAPACITY + rest_of(scenario) / CAPACITY
    tau = fc.linearize(scenario).system.tau
    assert tau == pytest.approx([1e-6 + STORED, back, back + max(16e3 * flows / CAPACITY, 20e-6)], rel=1e-9)


@pytest.mark.parametrize("flows", [2, 8])
def test_jacobians_against_finite_differences(flows: int) -> None:
    """Of the paper's equations, in float64 and apart from the package: central differences, to 1e-6 of each row."""
    scenario = of(flows)
    found, c = fc.linearize(scenario), Constants(beta=0.008, patched=True)
    assert found.states == ("queue 0", "rate 0", "gradient 0")
    x, scale = np.array([rest_of(scenario), c.C / flows, 0.0]), np.array([rest_of(scenario), c.C / flows, 1.0])

    def f(now: np.ndarray, *lagged: np.ndarray) -> np.ndarray:
        arrived, observed, earlier = lagged
        moves = rate(c, now[2], now[1], observed[0], np), gradient(c, now[2], now[1], observed[0], earlier[0], np)
        return np.array([flows * arrived[1] - c.C, *map(float, moves)])

    assert np.abs(f(x, x, x, x) / scale).max() < 1e-6
    for which, exact in enumerate([found.system.A0, *found.system.A]):
        for k in range(3):
            high, low = ([x.copy() for _ in range(4)] for _ in range(2))
            high[which][k] += 1e-5 * scale[k]
            low[which][k] -= 1e-5 * scale[k]
            column = (f(*high) - f(*low)) / 2e-5 / scale
            want = exact[:, k] * scale[k] / scale
            np.testing.assert_allclose(column, want, atol=1e-6 * np.abs(exact * scale / scale[:, None]).max())


def test_beyond_72_flows_there_is_no_such_rest() -> None:
    """q* is C T_high with 72, and nothing of the form beyond: equilibria says none, linearize refuses."""
    (last,) = equilibria(of(71))
    assert last.as_dict()["queue_bytes"] == pytest.approx(rest_of(of(71)), rel=1e-9)
    assert rest_of(of(72)) == pytest.approx(CAPACITY * 500e-6)
    for flows in (73, 90):
        assert equilibria(of(flows)) == ()
        with pytest.raises(NoEquilibriumError, match="no fixed point"):
            fc.linearize(of(flows))


# -- TIMELY ----------------------------------------------------------------------------------------------------


def test_any_split_rests_but_for_the_increase_at_no_gradient() -> None:
    """Random splits, queues between the thresholds: 0 for g -> 0+, delta/tau* at g = 0 as printed; to rounding."""
    scheme = resolve(fc.incast(1, rate="10Gbps", scheme=PLAIN)).flows[0].scheme
    p = dataclasses.replace(scheme, own_rtt=0.0)
    rng = np.random.default_rng(7)
    for flows in (2, 3, 10):
        R = CAPACITY * rng.dirichlet(np.ones(flows))[:, None]
        wait = np.full_like(R, rng.uniform(50e-6, 500e-6))
        observed = model.feedback(p, Signals(0 * R, R, 0 * R, waits=Waits(wait, wait)))
        for g, want in ((1e-15, np.zeros_like(R)), (0.0, p.rate_ai / interval(Constants(), R, np))):
            found = model.derivative(p, model.State(R, g + 0 * R, 0 * R), observed)
            np.testing.assert_allclose(found.rate, want, rtol=1e-12, atol=1e-9 * CAPACITY)
            assert np.abs(found.gradient).max() < 1e-9


@pytest.mark.slow
def test_no_rest_is_found() -> None:
    assert equilibria(fc.incast(2, rate="10Gbps", scheme=PLAIN)) == ()
    with pytest.raises(NoEquilibriumError, match="no fixed point"):
        fc.linearize(fc.incast(2, rate="10Gbps", scheme=PLAIN))


@pytest.mark.slow
def test_unequal_rates_stay_with_timely_and_go_with_its_patch() -> None:
    """Two flows from 9 and 1 Gb/s: more than 2:1 in the last 100 ms of 800 and no closer than 200 ms before, to 1 %.

    Patched within 1 % of each other after 200 ms, e^(-39 t) of the difference.
    """
    plain, patched = (
        run(fc.incast(2, rate="10Gbps", scheme=scheme, initial_rate=["9Gbps", "1Gbps"]), until)
        for scheme, until in ((PLAIN, "800ms"), (PATCHED, "200ms"))
    )
    rates = plain["rate"]
    (fast, slow), (fast_before, slow_before) = (
        rates.sel(time=slice(a, a + 0.1)).mean("time").values for a in (0.7, 0.5)
    )
    assert fast / slow > 2
    assert fast / slow == pytest.approx(fast_before / slow_before, rel=0.01)
    assert patched["rate"].values[-1] == pytest.approx([CAPACITY / 2] * 2, rel=0.01)


@pytest.mark.parametrize(
    ("change", "bound"),
    [
        ({}, None),  # without a window nothing is filled in
        ({"base_rtt": 7e-6}, 7e-6),
        ({"win": True}, 5e-6),
        ({"win": True, "variant": "hpcc-sim"}, 4e-6),  # of payloads
        ({"win": True, "base_rtt": 7e-6}, 7e-6),  # what is given stays
    ],
)
def test_a_window_fills_the_largest_base_rtt_if_none_is_given(change: dict[str, Any], bound: float | None) -> None:
    path: Any = SimpleNamespace(largest_base_rtt=5e-6, largest_payload_rtt=4e-6)
    assert bound_win(fc.TIMELY(**change), path).base_rtt == bound
