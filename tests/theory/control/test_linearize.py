"""Linearisation of DCQCN's fluid against its own nonlinear run, finite differences, and independent numbers.

Tolerances were set before anything was measured.
"""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.signals import Signals
from fluidcc.dde.characteristic import roots
from fluidcc.dde.response import critical_delay
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve
from fluidcc.scenario.round_trips import largest_base_rtt
from fluidcc.schemes.dcqcn import fluid as model
from fluidcc.theory.control.linearize import NoEquilibriumError, linearize
from fluidcc.units import Rate


def dcqcn(flows: int, delay: str | None = "50us") -> fc.Scenario:
    return fc.incast(flows, rate="40Gbps", scheme=fc.DCQCN(feedback_delay=delay))


def dominant(signal: np.ndarray, spacing: float, modes: int) -> complex:
    """Slowest oscillation of a sum of damped ones, by the matrix pencil method (Hua and Sarkar 1990) [1/s]."""
    half = len(signal) // 2
    rows = np.lib.stride_tricks.sliding_window_view(signal, half)
    kept = np.linalg.svd(rows, full_matrices=False)[2][:modes].T
    poles = np.log(np.linalg.eigvals(np.linalg.pinv(kept[:-1]) @ kept[1:]).astype(complex)) / spacing
    swinging = poles[poles.imag > 1.0]
    return complex(swinging[np.argmax(swinging.real)])


def test_rightmost_root_is_how_the_nonlinear_run_decays() -> None:
    """Eight flows: -47.73 +- 2754i; the run's queue, 100 to 170 ms after a line-rate start, to 1e-3."""
    scenario = dcqcn(8)
    root = linearize(scenario).roots(1).s[0]
    assert root.real == pytest.approx(-47.73, abs=0.005)
    fixed_point = fc.equilibrium(scenario).as_dict()["queue_bytes"]
    run = fc.simulate(scenario, "170ms", dt="1us", sample_interval="10us", estimate_error=False)
    late = run["time"].values >= 100e-3
    found = dominant(run["queue"].values[late, 0][::10] - fixed_point, 1e-4, 6)
    assert found.real == pytest.approx(root.real, rel=1e-3)
    assert found.imag == pytest.approx(root.imag, rel=1e-3)


@pytest.mark.parametrize(("delay", "unstable"), [("50us", range(0)), ("85us", range(3, 21))])
def test_stability_over_the_number_of_flows(delay: str, unstable: range) -> None:
    """At 50 us all are stable. At 85 us, 3 to 14 flows on the ramp are not, nor up to 20 on the line beyond it."""
    for flows in range(2, 24):
        found = linearize(dcqcn(flows, delay))
        assert (found.roots(1).s[0].real > 0) == (flows in unstable), flows
        assert found.equilibrium.on_ramp == (flows <= 14)


def test_equal_flows_are_merged_without_loss() -> None:
    """Two flows and one, told apart by a rounding of line rates: the merged one's roots, and twice the fairness mode's.

    One of these two is how the two equal flows differ.
    """
    merged = linearize(fc.incast(3, rate="40Gbps", scheme=fc.DCQCN()))
    assert len(merged.states) == 4
    (fairness,) = merged.fairness
    assert fairness.modes == 2.0
    rates = [Rate(5e9 * share) for share in (1, 1 + 1e-13)]
    two = fc.incast(2, rate="40Gbps", scheme=fc.DCQCN(), line_rate=rates, initial_rate="1Gbps")
    pair, other = two.flows
    apart = linearize(dataclasses.replace(two, flows=(dataclasses.replace(pair, multiplicity=2.0), other)))
    assert len(apart.states) == 7
    (between,) = apart.fairness
    assert between.modes == 1.0
    both = np.concatenate([roots(merged.system, 8).s, np.repeat(roots(fairness.system, 8).s, 2)])
    found = np.concatenate([roots(apart.system, 16).s, roots(between.system, 8).s])
    both, found = (s[np.lexsort((s.imag, -np.round(s.real, 3)))] for s in (both, found))
    np.testing.assert_allclose(found[:16], both[:16], rtol=1e-6)


def test_jacobians_against_finite_differences() -> None:
    """x' = f(x, x(t - tau)), f written here from the scheme's functions; central differences, to 1e-5 of each row."""
    scenario = resolve(dcqcn(8))
    scheme, found = scenario.flows[0].scheme, linearize(scenario)
    assert found.states == ("queue 0", "rate 0", "target_rate 0", "alpha 0")
    assert found.system.tau == pytest.approx([50e-6])
    fixed_point = found.equilibrium.as_dict()
    keys = ("queue_bytes", "rate_bytes_per_s", "target_rate_bytes_per_s", "alpha")
    x = np.array([fixed_point[key] for key in keys])

    def f(now: np.ndarray, past: np.ndarray) -> np.ndarray:
        marking = (past[0] - 5e3) / 195e3 * 0.01
        one = jnp.ones((1, 1))
        observed = model.feedback(scheme, Signals(marking * one, past[1] * one, 1000.0 * one))
        moved = model.derivative(scheme, model.State(*(value * one for value in now[1:])), observed)
        return np.array([8 * now[1] - 5e9, *(float(leaf[0, 0]) for leaf in moved)])

    with jax.enable_x64(True):
        assert np.abs(f(x, x) * 50e-6 / x).max() < 1e-9
        for which, exact in ((0, found.system.A0), (1, found.system.A[0])):
            columns = []
            for k in range(4):
                step = np.zeros(4)
                step[k] = 1e-5 * x[k]
                low, high = ((x - step, x), (x + step, x)) if which == 0 else ((x, x - step), (x, x + step))
                columns.append((f(*high) - f(*low)) / (2 * step[k]))
            # In shares of the state, so that rows of bytes, bytes/s and 1 are alike.
            measured, computed = (matrix * x / x[:, None] for matrix in (np.array(columns).T, exact))
            np.testing.assert_allclose(measured, computed, atol=1e-5 * np.abs(computed).max(axis=1).max())


@pytest.mark.slow
def test_delays_of_paths() -> None:
    """With propagation and waits: forward to the queue, and back with what packets waited at equilibrium."""
    found = linearize(dcqcn(8, None))
    fixed_point = found.equilibrium.as_dict()["queue_bytes"] / 5e9
    assert found.system.tau == pytest.approx([1e-6, 50e-6 + 3e-6 + fixed_point, 50e-6 + 4e-6 + fixed_point])


@pytest.mark.slow
def test_flows_and_links_that_differ() -> None:
    """A parking lot: both queues, three classes, no fairness mode; and a link that nobody fills leaves x."""
    lot = fc.parking_lot(3, rate="40Gbps", scheme=fc.DCQCN())
    assert [name for name in linearize(lot).states if name.startswith("queue")] == ["queue 0", "queue 1"]
    wide = dataclasses.replace(lot, links=(lot.links[0], dataclasses.replace(lot.links[1], rate="400Gbps")))
    assert [name for name in linearize(wide).states if name.startswith("queue")] == ["queue 0"]
    assert "rate 2" not in linearize(wide).states  # alone on the wide link, at its line rate
    assert linearize(wide).roots(1).s[0].real < 0


def test_what_has_nothing_to_linearise_is_refused() -> None:
    with pytest.raises(NoEquilibriumError, match="form='rate'"):
        linearize(fc.incast(2, rate="100Gbps", scheme=fc.HPCC()))
    with pytest.raises(InputError, match="fluidcc simulate dctcp"):
        linearize(fc.incast(2, rate="100Gbps", scheme=fc.DCTCP()))


# -- HPCC's rates (appendix A.3) -------------------------------------------------------------------------------


def rates(flows: int, w_ai: float) -> fc.Scenario:
    return fc.incast(flows, rate="100Gbps", scheme=fc.HPCC(form="rate", w_ai=w_ai))


@pytest.mark.parametrize(("flows", "w_ai"), [(2, 80.0), (16, 100.0)])
def test_hpccs_modes_in_closed_form(flows: int, w_ai: float) -> None:
    """T s' = -(1 - l) s - l s(t - D) for the sum, T x' = -(1 - l) x for differences, l = eta/U: to rounding."""
    scenario = rates(flows, w_ai)
    found = linearize(scenario)
    T = largest_base_rtt(resolve(scenario))
    lam = 0.95 / (0.95 + flows * w_ai / (12.5e9 * T))
    assert found.states == ("reference_window 0",)
    assert found.system.tau == pytest.approx([T])
    assert [found.system.A0.item() * T, found.system.A.item() * T] == pytest.approx([lam - 1, -lam], rel=1e-9)
    (fairness,) = found.fairness
    assert fairness.modes == flows - 1
    assert roots(fairness.system, 1).s[0].real * T == pytest.approx(lam - 1, rel=1e-9)
    critical = math.acos(-(1 - lam) / lam) / math.sqrt(lam**2 - (1 - lam) ** 2)
    assert critical_delay(found.system, 0).delay / T == pytest.approx(critical, rel=1e-9)


def test_hpccs_critical_delay_at_the_boundary() -> None:
    """W_AI = (1 - eta) C T/N makes l = 0.95: 1.711269 T; just within it, so that no queue stands."""
    T = largest_base_rtt(resolve(rates(4, 80.0)))
    found = linearize(rates(4, 0.05 * 12.5e9 * T / 4 * (1 - 1e-9)))
    assert critical_delay(found.system, 0).delay / T == pytest.approx(1.711269, abs=1e-6)


@pytest.mark.slow
def test_hpccs_flows_over_several_links() -> None:
    """A parking lot: the slowest root is how its shares settle in the nonlinear run, to 1 %."""
    scheme, start = fc.HPCC(form="rate", w_ai="800B"), ["20Gbps", "60Gbps", "60Gbps"]
    lot = fc.parking_lot(3, rate="100Gbps", scheme=scheme, initial_rate=start)
    found = linearize(lot)
    slowest = found.roots(1).s[0]
    assert slowest.imag == 0
    run = fc.simulate(lot, "3ms", estimate_error=False, sample_interval="20us")
    gap = run["pacing_rate"].values[:, 0] - found.equilibrium.flows[0]["rate_bytes_per_s"]
    late = run["time"].values >= 1e-3
    decay = np.polyfit(run["time"].values[late][:60], np.log(np.abs(gap[late][:60])), 1)[0]
    assert decay == pytest.approx(slowest.real, rel=0.01)


@pytest.mark.slow
def test_hpccs_registers_per_link() -> None:
    """Proportional fairness over a parking lot: half the rate on two links, and the run settles by the slowest root."""
    scheme = fc.HPCC(form="rate", w_ai="800B", registers="per-link", alpha_fair=1.0)
    lot = fc.parking_lot(3, rate="100Gbps", scheme=scheme, initial_rate=["20Gbps", "60Gbps", "60Gbps"])
    found = linearize(lot)
    fixed_point = [flow["rate_bytes_per_s"] for flow in found.equilibrium.flows]
    assert fixed_point == pytest.approx([fixed_point[1] / 2, fixed_point[1], fixed_point[1]], rel=1e-9)
    assert len(found.states) == 4  # a register for each link of a path, and none for hops that a path does not have
    slowest = found.roots(1).s[0]
    run = fc.simulate(lot, "3ms", estimate_error=False, sample_interval="20us")
    gap, late = run["pacing_rate"].values[:, 0] - fixed_point[0], run["time"].values >= 0.5e-3
    decay = np.polyfit(run["time"].values[late], np.log(np.abs(gap[late])), 1)[0]
    assert decay == pytest.approx(slowest.real, rel=0.01)
