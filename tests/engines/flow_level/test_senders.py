"""Rules of flow-level senders one by one, as plain Python, on records that are written here."""

from __future__ import annotations

import math
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

from fluidcc.contract.signals import Progress
from fluidcc.engines.flow_level import senders
from fluidcc.schemes.nscc import law
from fluidcc.schemes.nscc.parameters import REFERENCE_BDP
from tests.engines.packet.plain import plain

PACKET = 1000.0
HALF = math.log(2.0)  # the hazard of a probability of 1/2


def notice(now: float, monkeypatch: pytest.MonkeyPatch, **values: Any) -> Any:
    """A flow after a step, and what its scheme was told; it asks for the next timer and count a unit later."""
    known = {"cnp_interval": 5.0, "cnp_next": 3.0, "pending": 0, "marking": 0.0, "left": 1.0, "newly": 0.0}
    known |= {"packet": PACKET, "number": 4, "draws": 1, "timer": math.inf, "sent": 0.0, "counter": math.inf}
    flow, told = SimpleNamespace(**{**known, **values}), []

    def on_timer(*_: Any) -> None:
        told.append("timer")
        flow.timer += 1.0

    def on_bytes(*_: Any) -> None:
        told.append("count")
        flow.counter += 1.0

    dispatch = SimpleNamespace(on_cnp=lambda *_: told.append("cnp"), on_timer=on_timer, on_bytes=on_bytes)
    source = plain(senders._notice)
    rule = FunctionType(source.__code__, {**source.__globals__, "dispatch": dispatch, "exponential": lambda *_: 0.75})
    rule(SimpleNamespace(seed=[1]), flow, 0, now)
    flow.told = told
    return flow


@pytest.mark.parametrize(
    ("now", "pending", "told", "next_"),
    [(2.9, 1, [], 3.0), (3.0, 1, ["cnp"], 8.0), (4.0, 1, ["cnp"], 9.0), (4.0, 0, [], 3.0)],
)
def test_a_cnp_waits_for_its_interval(
    now: float, pending: int, told: list[str], next_: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = notice(now, monkeypatch, pending=pending)
    assert (flow.told, flow.cnp_next, flow.pending) == (told, next_, pending and not told)


def test_marks_come_by_the_packets_that_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A packet of half marked takes log 2 off what is left; at nothing a CNP is due and the next is drawn."""
    flow = notice(2.0, monkeypatch, marking=0.5, newly=PACKET)
    assert flow.left == pytest.approx(1.0 - HALF)
    assert (flow.pending, flow.draws) == (0, 1)
    flow = notice(2.0, monkeypatch, marking=0.5, newly=2 * PACKET)
    assert (flow.left, flow.pending, flow.draws, flow.told) == (0.75, 1, 2, [])
    assert notice(3.0, monkeypatch, marking=0.5, newly=2 * PACKET).told == ["cnp"]
    silent = notice(9.0, monkeypatch, marking=0.5, newly=2 * PACKET, cnp_interval=0.0)  # its receiver sends none
    assert (silent.left, silent.pending) == (1.0, 0)


def test_timers_and_counts_are_told_as_often_as_they_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert notice(2.0, monkeypatch, timer=0.0).told == ["timer"] * 3  # at 0, 1 and now
    assert notice(2.0, monkeypatch, timer=2.5).told == []
    assert notice(2.0, monkeypatch, sent=1.0, counter=0.0).told == ["count"] * 2
    assert notice(2.0, monkeypatch, sent=1.0, counter=1.5).told == []


NSCC = SimpleNamespace(
    proportional_increase=0.0, fair_increase=0.0, fast_increase=0.25, eta=0.0, bdp=REFERENCE_BDP, mtu=1000.0,
    target_delay=6e-6, clear_delay=2e-6, averaging=1e-5, gamma=0.8, max_md_jump=0.5, adjust_period=1.0,
    qa_threshold=1.0, qa_gate=3.0, quick_adapt=False, max_window=1e4, base_rtt=10e-6,
)  # fmt: skip
BEGUN = law.State(
    rate=1e10, window=4000.0, base_rtt=10e-6, queueing_delay=0.0, average_delay=0.0, clear=5000.0, fast=1.0,
    since_adjust=0.0, since_cut=0.0, expected=0.0, achieved=0.0, qa_left=1.0, to_ignore=0.0,
)  # fmt: skip
DELAYS = {"none": 0.0, "some": 3e-6, "much": 7e-6}  # 2 us are clear, 6 us the target


@pytest.mark.parametrize(
    ("delay", "marks", "clear", "fast"),
    [
        ("none", 0.0, 5000.0 + 2000.0, 1),
        ("none", 0.5, 5000.0 + 1000.0, 1),  # what is not marked
        ("some", 0.0, 0.0, 0),
        ("some", 0.5, 0.0, 0),
        ("much", 0.0, 5000.0, 0),
        ("much", 0.5, 0.0, 0),
    ],
)
def test_nscc_counts_clear_bytes_until_delay_or_marks_and_delay(
    delay: str, marks: float, clear: float, fast: int
) -> None:
    """It is in fast increase after 5000 bytes in a row, more than its window; 2000 come in this step."""
    rtt = 10e-6 + DELAYS[delay]
    acks = Progress(13000.0, 9000.0, 2000.0, 1000.0, 1000.0, 1e10, 0.0, rtt, 1e-6)
    new = law.on_step(NSCC, BEGUN, acks, marks)
    assert (new.clear, new.fast) == (pytest.approx(clear), fast)
    assert new.window == pytest.approx(4000.0 + (0.25 * 2000.0 * (1 - marks) if fast else 0.0))
    assert law.window(NSCC, new) == pytest.approx(new.window - 500.0)


@pytest.mark.parametrize(("achieved", "window"), [(0.0, 1000.0), (900.0, 1100.0), (1049.0, 1249.0), (1051.0, 4000.0)])
def test_nscc_s_window_is_what_came_through_in_a_period_of_extreme_delay(achieved: float, window: float) -> None:
    """Catches a window of less than a packet, and an eighth of the largest, 1250 bytes, that counts or does not."""
    p = SimpleNamespace(**vars(NSCC) | {"quick_adapt": True, "qa_threshold": 5e-6})
    acks = Progress(13000.0, 9000.0, 200.0, 1000.0, 1000.0, 1e10, 0.0, 17e-6, 1e-6)
    new = law.on_step(p, BEGUN._replace(qa_left=0.0, achieved=achieved), acks, 0.0)
    assert new.window == pytest.approx(window)
    assert new.to_ignore == (4000.0 if window < 4000.0 else 0.0)
    assert new.qa_left == pytest.approx(16e-6)  # a round trip and the target
