"""HPCC's fluid in the forms of appendix A.3: a register for each link, and rates without windows.

Tolerances were set before anything was measured.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario
from fluidcc.scenario.round_trips import largest_base_rtt
from fluidcc.schemes.hpcc import HPCC
from fluidcc.theory.recursion.networks import linear
from fluidcc.theory.recursion.optimal import alpha_optimum, max_min
from fluidcc.units import Rate

CAPACITY = Rate(12.5e9)  # 100 Gbps
ETA, W_AI = 0.95, 80.0


@pytest.fixture(autouse=True)
def one_depth() -> None:
    """Keep histories as short as they can be: runs here are long, and long ones slow each step."""


def rates(scenario: Scenario, until: str) -> np.ndarray:
    return np.array(fc.simulate(scenario, until, estimate_error=False).summary["rate_bytes_per_s"])


@pytest.mark.parametrize("alpha", [pytest.param(1.0, marks=pytest.mark.slow), 2.0, math.inf])
def test_registers_per_link_are_alpha_fair(alpha: float) -> None:
    """(7) at equilibrium, exact for the capacities U_i C_i of the links, equal here: to the accuracy at which windows
    settle.

    W_AI is large so that 20 ms are 40 times what differences take to shrink to 1/e.
    """
    scenario = fc.parking_lot(3, rate="100Gbps", scheme=HPCC(registers="per-link", alpha_fair=alpha, w_ai="800B"))
    found = rates(scenario, "20ms")
    best = alpha_optimum(*linear(2), alpha=alpha) if alpha < math.inf else max_min(*linear(2))
    assert found / (found[0] + found[1]) == pytest.approx(best, rel=1e-3)


def test_one_register_hears_the_largest() -> None:
    """On one link there is nothing to join: the two forms are the same run, bit for bit."""
    runs = [
        fc.simulate(
            fc.incast(1, multiplicity=4, rate="100Gbps", scheme=HPCC(registers=registers)),
            "300us",
            estimate_error=False,
        ).dataset
        for registers in ("one", "per-link")
    ]
    assert (runs[0].queue.values == runs[1].queue.values).all()
    assert (runs[0].window.values == runs[1].window.values).all()


def calm(flows: int, w_ai: float = W_AI, apart: float = 0.0, **options: Any) -> Scenario:
    """Rate form, from near its equilibrium: shares of the target utilisation, the first flow's larger by a factor."""
    share = ETA * CAPACITY / (flows + apart)
    return fc.incast(
        flows,
        rate="100Gbps",
        scheme=HPCC(form="rate", w_ai=w_ai, **options),
        initial_rate=[share * (1 + apart), *[share] * (flows - 1)],
    )


@pytest.mark.parametrize("w_ai", [pytest.param(80.0, marks=pytest.mark.slow), 300.0])
def test_rate_form_rests_where_appendix_a3_says(w_ai: float) -> None:
    """R = a/(1 - Ut/U), so U* = eta + N a/C, to the accuracy of a fixed point."""
    scenario = calm(4, w_ai)
    T = largest_base_rtt(scenario)
    found = rates(scenario, "10ms")
    fixed_point = ETA + 4 * w_ai / (CAPACITY * T)
    assert found.sum() / CAPACITY == pytest.approx(fixed_point, rel=1e-6)
    assert found == pytest.approx(np.full(4, w_ai / T / (1 - ETA / fixed_point)), rel=1e-6)


@pytest.mark.slow
def test_rate_form_differences_decay_as_one_minus_lambda() -> None:
    """T x' = -(1 - lambda) x for the differences of equal flows, lambda = Ut/(Ut + N a/C): A.3's recursion has lambda
    once per round trip. The first feedback comes a round trip late; 1 % for what the sum does meanwhile."""
    scenario = calm(2, w_ai=400.0, apart=0.2)
    T = largest_base_rtt(scenario)
    data = fc.simulate(scenario, "1ms", sample_interval="10us", estimate_error=False).dataset
    rate = data.pacing_rate.values
    gap = rate[:, 0] - rate[:, 1]
    decay = 1 - ETA / (ETA + 2 * 400.0 / (CAPACITY * T))
    early, late = 20, 80
    measured = math.log(gap[early] / gap[late]) / float(data.time[late] - data.time[early]) * T
    assert measured == pytest.approx(decay, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "grows"), [(0.9, False), (1.1, True)])
def test_rate_form_loses_stability_at_its_critical_delay(share: float, grows: bool) -> None:
    """D/T = arccos(-(1-l)/l)/sqrt(l^2 - (1-l)^2) for the sum, from T s' = -(1-l) s - l s(t-D)."""
    w_ai, flows = 100.0, 2
    loop = largest_base_rtt(calm(flows))
    # T is a parameter: the loop's delay D stays, T is chosen; U* and so lambda follow from T.
    T = loop / 1.7
    for _ in range(50):
        lam = ETA / (ETA + flows * w_ai / (CAPACITY * T))
        T = loop / (share * math.acos(-(1 - lam) / lam) / math.sqrt(lam**2 - (1 - lam) ** 2))
    scenario = calm(flows, w_ai, base_rtt=T)
    data = fc.simulate(scenario, 400 * T, sample_interval=T / 10, dt=T / 80, estimate_error=False).dataset
    fixed_point = ETA + flows * w_ai / (CAPACITY * T)
    off = np.abs(data.pacing_rate.sum("flow").values[-500:] / CAPACITY - fixed_point).max()
    start = fixed_point - ETA  # how far off it began
    assert (off > 10 * start) == grows
    assert (off < 0.01 * start) == (not grows)


@pytest.mark.slow
def test_rate_form_does_not_recover_from_a_burst_and_windows_do() -> None:
    """From line rate the queue makes feedback late, beyond the critical delay: without windows it oscillates for ever.

    A.3 has no queues; HPCC limits bytes in flight (section 3.2).
    """
    from_line = fc.incast(2, rate="100Gbps", scheme=HPCC(form="rate"))
    oscillations = fc.simulate(from_line, "5ms", estimate_error=False).summary
    fixed_points = fc.simulate(calm(2), "5ms", estimate_error=False).summary
    window = fc.simulate(fc.incast(2, rate="100Gbps", scheme=HPCC()), "5ms", estimate_error=False).summary
    assert oscillations["queue_bytes"]["max"] > 50e3
    assert oscillations["utilisation"] < 0.9
    assert fixed_points["queue_bytes"]["max"] == window["queue_bytes"]["max"] == 0.0
    assert min(fixed_points["utilisation"], window["utilisation"]) > ETA


def test_packets_have_windows() -> None:
    with pytest.raises(InputError, match="form"):
        fc.simulate(fc.incast(2, rate="100Gbps", scheme=HPCC(form="rate")), "100us", engine="packet")
