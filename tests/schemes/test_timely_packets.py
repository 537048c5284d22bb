"""TIMELY's fluid against its packets, with the same thresholds in both. Tolerances were set before measuring."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.results.comparison import horizon
from fluidcc.schemes.timely import PRESETS

CAPACITY, SEGMENT = 10e9 / 8, 16e3
PAPER, PLAIN, PATCHED = (PRESETS[name].scheme for name in ("paper", "fluid", "patched"))


def of(flows: int, scheme: fc.TIMELY, start: str | None = None, **options: Any) -> fc.Scenario:
    """An incast; the flows start at their fair share unless another rate is given."""
    rate = f"{10 / flows}Gbps" if start is None else start
    return fc.incast(flows, rate="10Gbps", scheme=dataclasses.replace(scheme, **options), initial_rate=rate)


def merged(scenario: fc.Scenario, until: str) -> fc.Trace:
    """The fluid with equal flows as one class, which is faster."""
    one = dataclasses.replace(scenario.flows[0], multiplicity=float(len(scenario.flows)))
    return fc.simulate(dataclasses.replace(scenario, flows=(one,)), until, estimate_error=False)


def both(scenario: fc.Scenario, until: str) -> tuple[fc.Trace, fc.Trace]:
    return fc.simulate(scenario, until, estimate_error=False), fc.simulate(scenario, until, engine="packet")


def late_peak(trace: fc.Trace) -> float:
    return float(trace["queue"].sel(time=slice(20e-3, None)).max())


@pytest.mark.parametrize("flows", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_patched_timely_rests_at_the_same_queue(flows: int) -> None:
    """Mean queue within 1 %, rates within 1 %, as `fluidcc crosscheck timely --preset patched` has them."""
    comparison = fc.compare(*both(of(flows, PATCHED), "100ms"))
    assert {"queue_mean_rel", "rate_rel_max", "queue_peak_rel"} == set(comparison.tolerance)
    assert comparison.within, comparison
    means = [comparison.fluid["queue_bytes"]["mean"], comparison.packet["queue_bytes"]["mean"]]
    assert means == pytest.approx([62.5e3 * (1 + flows / 8)] * 2, rel=0.01)


@pytest.mark.parametrize(
    ("scheme", "flows"),
    [(PLAIN, 2), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((PAPER, 2), (PAPER, 8), (PLAIN, 8)))],
    ids=["fluid-2", "paper-2", "paper-8", "fluid-8"],
)
def test_timely_swings_about_t_low(scheme: fc.TIMELY, flows: int) -> None:
    """Mean within 50 %, 95th percentile within 25 %, peak after the start within 15 %, utilisation within 5 %.

    The fluid's flows rise and fall together, packets' do not: Jain's index is 1 and less. From equal rates and in
    200 ms; later one of two flows of packets has nearly all, the queue stays up, and means differ by more.
    """
    runs = both(of(flows, scheme), "200ms")
    comparison = fc.compare(*runs)
    assert {"queue_p95_rel", "queue_peak_rel"} == set(comparison.tolerance)
    assert comparison.within, comparison
    assert comparison.difference["queue_mean_rel"] is not None
    assert comparison.difference["queue_mean_rel"] < 0.5  # the fluid's flows rise together
    fluid, packet = runs
    assert late_peak(fluid) == pytest.approx(late_peak(packet), rel=0.15)
    assert fluid.summary["utilisation"] == pytest.approx(packet.summary["utilisation"], rel=0.05)
    assert fluid.summary["jain"] == pytest.approx(1.0, abs=1e-6)
    assert packet.summary["jain"] < 0.999


@pytest.mark.parametrize("flows", [4, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 16))])
def test_a_burst_lasts_as_long_as_segments_take_to_be_served(flows: int) -> None:
    """From line rate: where N is above 2 the fluid's peak is less than half of the packets'; with N Seg/C between its
    completions, which is what the link serves, it is within 10 %: T_high is passed at once, and only tau* differs.
    """
    slow = of(flows, PATCHED, "10Gbps", min_rtt=flows * SEGMENT / CAPACITY)
    plain = of(flows, PATCHED, "10Gbps")
    fluid, served = (merged(each, "80ms").summary["queue_bytes"]["max_whole_run"] for each in (plain, slow))
    packet = fc.simulate(plain, "80ms", engine="packet").summary["queue_bytes"]["max_whole_run"]
    assert served == pytest.approx(packet, rel=0.1)
    assert (fluid < packet / 2) == (flows > 2)


def test_two_flows_of_packets_part() -> None:
    """From equal rates one has more than nine times the other's in the last 100 ms of 800; the fluid's stay equal."""
    scenario = of(2, PLAIN)
    rates = fc.simulate(scenario, "800ms", engine="packet", window="700ms:800ms").summary["rate_bytes_per_s"]
    assert max(rates) > 9 * min(rates)
    together = fc.simulate(scenario, "200ms", estimate_error=False)["rate"].values
    assert together[:, 0] == pytest.approx(together[:, 1], rel=1e-9)


def test_completions_of_the_burst_come_as_the_link_serves_them() -> None:
    """8 flows at 10 Gb/s: segments are answered every 8 Seg/C = 102.4 us, to 1 %; tau* would be D_minRTT, 20 us."""
    log = fc.simulate(of(8, PATCHED, "10Gbps"), "5ms", engine="packet", log=True).dataset
    mine = (log.event_flow.values == 3) & (log.event_what.values == "acknowledge")
    ends, times = log.event_end.values[mine], log.event_time.values[mine]
    completed = times[np.searchsorted(ends, np.arange(SEGMENT, ends[-1], SEGMENT))]
    assert np.diff(completed).mean() == pytest.approx(8 * SEGMENT / CAPACITY, rel=0.01)


def right_roots(flows: int, sampled: bool) -> int:
    """Characteristic roots right of the axis of the aggregate about patched TIMELY's equilibrium, by the winding
    number.

    By hand from the equations; ``sampled``: with Algorithm 1's filter of the gradient, which a completion updates
    before it uses it, in place of the fluid's.
    """
    beta, delta, low, least, a = 0.008, 1.25e6, 50e-6, 20e-6, 0.875
    R, excess = CAPACITY / flows, flows * delta / (beta * CAPACITY)
    tau, there = max(SEGMENT / R, least), 1e-6 + 1000 / CAPACITY
    back = 3e-6 + 1128 / CAPACITY + low * (1 + excess)
    height, width = 1j * np.linspace(-1, 1, 80001) * 4e4, np.linspace(1e-3, 6e3, 4001)
    s = np.concatenate([1e-3 - height, width + height[0], 6e3 + height, width[::-1] + height[-1]])
    smooth = a / (1 - (1 - a) * np.exp(-s * tau)) if sampled else a / (a + s * tau)
    observed = np.exp(-s * back) / CAPACITY
    gradient = smooth * (1 - np.exp(-s * tau)) * observed / least
    moves = -4 * delta * gradient - 0.5 * beta * R / low * observed
    value = s - flows * np.exp(-s * there) * moves / tau / (s + 0.5 * beta * excess / tau)
    return round(float(np.ptp(np.unwrap(np.angle(value))[[0, -1]]) / (2 * np.pi)))


def test_packets_rest_with_a_few_more_flows() -> None:
    """Their filter of the gradient has no lag at a completion: of 20 flows the fluid oscillates, packets settle, of
    28 both oscillate.

    1 KB of standard deviation lies between.
    """
    for flows, oscillations in ((16, (False, False)), (20, (True, False)), (28, (True, True))):
        scenario = of(flows, PATCHED)
        traces = merged(scenario, "300ms"), fc.simulate(scenario, "300ms", engine="packet")
        assert tuple(trace.summary["queue_bytes"]["std"] > 1000 for trace in traces) == oscillations


def test_the_filters_roots_cross_the_axis_at_19_and_24_flows() -> None:
    for sampled, first in ((False, 19), (True, 24)):
        assert [right_roots(flows, sampled) for flows in (first - 1, first)] == [0, 2]


def test_what_has_no_tolerance() -> None:
    """Other networks than an incast, bursts that packets do not drain in time, and equilibria that would be above
    T_high.
    """
    assert horizon(of(2, PATCHED)) == "400ms"

    def tolerance(scenario: fc.Scenario) -> set[str]:
        from fluidcc.results.comparison import tolerances_of
        from fluidcc.scenario.model import resolve

        return set(tolerances_of(resolve(scenario)))

    assert tolerance(of(8, PATCHED, "10Gbps")) == {"queue_mean_rel", "rate_rel_max"}
    assert tolerance(of(16, PATCHED, "10Gbps")) == set()
    assert tolerance(of(80, PATCHED)) == set()
    assert tolerance(of(8, PLAIN, "10Gbps")) == {"queue_p95_rel"}
    assert tolerance(fc.parking_lot(3, rate="10Gbps", scheme=PLAIN)) == set()
