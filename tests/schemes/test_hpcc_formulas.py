"""HPCC's formulas, which packets and fluid share, with the papers' numbers put in by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fluidcc.contract.bind import PathInformation
from fluidcc.scenario.switches import TrafficClass
from fluidcc.schemes.hpcc import law

B, T, ETA = 100.0, 2.0, 0.5  # bytes/s, s; so a bandwidth-delay product of 200 bytes


def parameters(**switches: Any) -> Any:
    known = {"eta": ETA, "max_stage": 5, "base_rtt": T, "u_queue": True, "min_backlog": 10.0}
    return SimpleNamespace(**(known | {"counts_link": False, "counts_spare": False, "by_arrivals": False} | switches))


@pytest.mark.parametrize(("queued", "u"), [(True, 0.3 + 0.7), (False, 0.7)])
def test_inflight_bytes_are_a_queue_over_the_product_and_a_rate_over_the_capacity(queued: bool, u: float) -> None:
    """(2), line 5: 60/200 + 70/100."""
    p = parameters(u_queue=queued)
    assert law.link_utilisation(p, 60.0, 70.0, B) == pytest.approx(u, rel=1e-15)


def test_a_step_goes_by_what_is_sent_or_by_what_arrives() -> None:
    for by_arrivals, u in ((False, 0.3 + 0.7), (True, 0.3 + 0.9)):
        assert law.on_hop(parameters(by_arrivals=by_arrivals), 60.0, 70.0, 90.0, B) == pytest.approx(u, rel=1e-15)


@pytest.mark.parametrize(("seconds", "found"), [(0.0, 0.4), (0.5, 0.4 + 0.25 * 0.4), (2.0, 0.8), (9.0, 0.8)])
def test_u_is_averaged_over_a_base_rtt_at_most(seconds: float, found: float) -> None:
    """Lines 8 and 9, from 0.4 towards 0.8."""
    assert law.averaged(parameters(), 0.4, 0.8, seconds) == pytest.approx(found, rel=1e-15)


@pytest.mark.parametrize(
    ("U", "stage", "window", "after"),
    [
        (0.4, 0, 300 + 7, 1),
        (0.4, 4, 300 + 7, 5),
        (0.4, 5, 300 * 0.5 / 0.4 + 7, 0),  # as often as maxStage
        (0.5, 0, 300 + 7, 0),  # at eta: multiplied by 1
        (1.0, 3, 150 + 7, 0),
        (0.0, 5, 300 * 0.5 / 1e-3 + 7, 0),  # U is taken for a thousandth at least
    ],
)
def test_windows_are_multiplied_from_eta_on_and_after_max_stage_increases(
    U: float, stage: int, window: float, after: int
) -> None:
    """Lines 12 to 20, of a W^c of 300 bytes and a W_AI of 7."""
    assert law.reacted(parameters(), 300.0, U, stage, 7.0) == pytest.approx(window, rel=1e-15)
    assert law.next_stage(parameters(), U, stage) == after


@pytest.mark.parametrize(
    ("rule", "own", "queue", "output", "u"),
    [
        ("counts_link", 30.0, 60.0, 70.0, 60 / 200 + 30 / 100),
        # the slides: within the guarantee, beyond it with and without a backlog
        ("", 20.0, 60.0, 70.0, 60 / (25 * 2) + 20 / 25),
        ("", 25.0, 60.0, 70.0, 60 / (25 * 2) + 25 / 25),
        ("", 30.0, 60.0, 70.0, 60 / (30 * 2) + 1),
        ("", 30.0, 10.0, 70.0, 30 / ((30 + 100) / 2)),
        # ours: the guarantee, or what it has and what nobody uses
        ("counts_spare", 20.0, 60.0, 100.0, 60 / (25 * 2) + 20 / 25),
        ("counts_spare", 20.0, 60.0, 60.0, 60 / (60 * 2) + 20 / 60),
        ("counts_spare", 20.0, 60.0, 130.0, 60 / (25 * 2) + 20 / 25),
    ],
)
def test_a_class_counts_on_its_share_of_a_link(rule: str, own: float, queue: float, output: float, u: float) -> None:
    """MultiQ, of a class with a quarter of the link."""
    p = parameters(**({rule: True} if rule else {}))
    assert law.class_utilisation(p, queue, own, output, B, 0.25) == pytest.approx(u, rel=1e-15)


@pytest.mark.parametrize(("own", "share"), [(0, 3 / 4), (1, 1.0), (2, 1 / 4)])
def test_a_class_shares_a_link_with_those_of_its_priority_alone(own: int, share: float) -> None:
    """Weights 3 and 1 of priority 0, and 1 of priority 1. Catches a sum over the weights of all priorities."""
    classes = (TrafficClass(0, 3), TrafficClass(1, 1), TrafficClass(0, 1))
    flow: Any = SimpleNamespace(traffic_class=float(own))
    shared: Any = SimpleNamespace(scenario=SimpleNamespace(classes=classes))
    assert PathInformation(flow, shared).share == share
