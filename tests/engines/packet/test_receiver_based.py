"""Receiver-based HPCC: fewer answers, the same control."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.schemes.hpcc_rx import packet as rx
from tests.engines.hybrid.by_hand import replaced


def run(flows: int, scheme: Any, until: str = "5ms", **options: Any) -> fc.Trace:
    """The slides' rack: 25G NICs, base RTT 8.5 us with stores, T = 9 us."""
    return fc.simulate(
        fc.incast(flows, rate="25Gbps", delay="1.94us", scheme=scheme, **options), until, engine="packet"
    )


@pytest.mark.parametrize(("sent", "fresh"), [(1_004_499_999, False), (1_004_500_000, True)])
def test_a_packet_of_half_a_round_trip_later_is_sent_with_the_new_window(sent: int, fresh: bool) -> None:
    """Line 22, of T = 9 us: the notification that left at 1 ms is at the sender after 4.5 us, in whole picoseconds."""
    state = SimpleNamespace(
        format=1, hops=1, L=0, path=0, headroom=0.0, granted_at=10**9, base_rtt=9e-6, fresh=0,
        W=1.0, W_granted=1.0, threshold=0.1,
    )  # fmt: skip
    rule = replaced(
        rx.on_packet, same_path=lambda *_: True, measure_inflight=lambda *_: 0.5, record=lambda *_: None,
        compute_wind=lambda *_: (2.0, 0),
    )  # fmt: skip
    assert rule(None, None, SimpleNamespace(line_rate=1.0), state, SimpleNamespace(sent=sent), 1)
    assert state.fresh == fresh


@pytest.mark.parametrize("flows", [2, 8])
def test_it_answers_once_a_period_and_controls_as_well(flows: int) -> None:
    """One notification per flow and 4.5 us within 2 %; utilisation within 2 % of HPCC's; Jain at least as good."""
    acked = run(flows, fc.HPCC(base_rtt="9us")).summary
    notified = run(flows, fc.HPCCRx(base_rtt="9us")).summary
    assert acked["acks"] == pytest.approx(acked["packets"], abs=flows + 20)
    assert notified["acks"] == pytest.approx(flows * 5e-3 / 4.5e-6, rel=0.02)
    assert notified["utilisation"] == pytest.approx(acked["utilisation"], rel=0.03)
    assert notified["jain"] >= acked["jain"] - 0.002
    assert notified["queue_bytes"]["mean"] < 2 * 1042


def test_finite_flows_complete_and_nothing_waits_for_ever() -> None:
    """Windows far below a period's packets: the timer answers what no further packet would."""
    scheme = fc.HPCCRx(base_rtt="9us", np_period="40us", np_threshold=1.0)
    summary = run(4, scheme, "20ms", size="200KB").summary
    assert all(t is not None for t in summary["fct_s"])
    assert summary["packets"] == 4 * 200


def test_a_sudden_change_is_told_at_once() -> None:
    """An incast's first telemetry: with a threshold, notifications come before the period is over."""
    slow, quick = (
        run(8, fc.HPCCRx(base_rtt="9us", np_period="500us", np_threshold=threshold), "400us").summary["acks"]
        for threshold in (1.0, 0.25)
    )
    assert slow < quick


def test_no_threshold_explains_the_slides_two_to_one() -> None:
    """They have 2.17 times one notification per flow and period; ours settle: below 1.5 times even with 1 %."""
    summary = run(
        2, fc.HPCCRx(base_rtt="9us", np_threshold=0.01), "10ms", packet_size="512B", header_bytes="33B"
    ).summary
    assert summary["acks"] < 1.5 * 2 * 10e-3 / 4.5e-6


def test_dynamic_increase_follows_the_flows_that_the_receiver_hears() -> None:
    """U* = eta + N W_AI/(B T), and N W_AI is a share of (1 - eta) B T however many there are."""
    for flows in (1, 2, 4):
        scheme = fc.HPCCRx(base_rtt="9us", ai_headroom=0.5)
        trace = run(flows, scheme, "10ms")
        U = trace["utilisation_estimate"].values[-500:].mean()
        assert pytest.approx(0.95 + 0.5 * 0.05, abs=0.01) == U


def test_flows_that_come_and_go_are_heard() -> None:
    trace = run(3, fc.HPCCRx(base_rtt="9us"), "6ms", start=["0s", "1ms", "2ms"], size=[float("inf"), "2MB", "1MB"])
    assert len(trace.summary["fct_s"]) == 2
    assert None not in trace.summary["fct_s"]
    rate = trace["rate"].values[:, 0] * 8e-9
    assert np.mean(rate[-200:]) == pytest.approx(0.975 * 25, rel=0.02)  # alone again, at U*
