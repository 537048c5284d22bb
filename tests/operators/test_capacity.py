"""Bounds of thresholds, of a port whose buffers are set here, on both sides of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidcc.operators import thresholds
from fluidcc.operators.finding import Finding
from fluidcc.operators.sonic import SwitchPort
from fluidcc.theory.queueing import BurstQueue
from tests.operators.test_checks_by_hand import port, words

ABOVE = "thresholds are above what the queue may hold"
LOW, STEEP = "Kmin is below two packets", "one packet climbs the ramp"
BURSTS = "bursts alone get packets marked"
OVERFLOWS = "the queue overflows before PFC pauses"


def fields(found: Finding) -> dict[str, Any]:
    """Values that a finding applies, by the last part of where they go."""
    return {change.path.rpartition("/")[2]: change.value for change in found.apply}


def ends(kmin: int | None = None, kmax: int | None = None) -> dict[str, str]:
    given = {"green_min_threshold": kmin, "green_max_threshold": kmax}
    return {name: str(value) for name, value in given.items() if value is not None}


def made(kmin: float | None, kmax: float | None, **more: Any) -> SwitchPort:
    plain: dict[str, Any] = {"buffer_size": None, "queue_limit": None, "lossless": False}
    return port(kmin=kmin, kmax=kmax, **plain | more)


@pytest.mark.parametrize(
    ("kmin", "kmax", "low", "steep"),
    [
        (8315, 900e3, ends(8316), None),
        (8316, 900e3, None, None),
        (8315, 8316, ends(12_500, 500_000), ends(12_500, 500_000)),  # as good as a step: both advise the same
        (8315, 58_211, ends(54_054, 108_108), None),
        (8315, 58_212, ends(54_054), None),  # a packet more
        (8315, 12_474, ends(54_054, 108_108), None),
        (9e3, 9e3 + 4157, None, ends(12_500, 500_000)),
        (9e3, 9e3 + 4158, None, None),
        (9e3, 9e3, None, None),  # a step is told as one
        (9e3, 8e3, None, None),  # and so are ends that are exchanged
        (8e3, 8e3, ends(12_500, 500_000), None),  # as what is said of a step
        (None, 9e3, None, None),
        (9e3, None, None, None),
    ],
)
def test_a_kmax_that_would_be_no_more_than_kmin_is_raised_with_it(
    kmin: float | None, kmax: float | None, low: dict[str, str] | None, steep: dict[str, str] | None
) -> None:
    """Two packets of 4096 B and 62 B of headers are 8316 B; the paper's at 100 Gb/s are 12.5 and 500 KB."""
    found = words(thresholds.packets_and_thresholds(made(kmin, kmax)))
    found.pop(BURSTS, None)
    assert {what: fields(each) for what, each in found.items()} == {
        what: applied for what, applied in ((LOW, low), (STEEP, steep)) if applied is not None
    }
    for each in found.values():
        assert "of 1086 B with a smaller MTU" in each.why
        assert ("and green_max_threshold to 108108" in each.suggest) == (fields(each) == ends(54_054, 108_108))


def test_a_ramp_that_one_packet_climbs_is_not_told_where_no_other_fits() -> None:
    assert STEEP in words(thresholds.packets_and_thresholds(made(9e3, 10e3, buffer_size=25e3)))
    assert STEEP not in words(thresholds.packets_and_thresholds(made(9e3, 10e3, buffer_size=24e3)))
    (one,) = thresholds.packets_and_thresholds(made(2171, 9e5), (1086.0,))
    assert "smaller MTU" not in one.why
    assert fields(one) == ends(2172)


# Bursts of 4 packets of 1086 B, from 8 flows at full load: 13 packets wait at p99, 14 118 B.
@pytest.mark.parametrize(
    ("kmin", "kmax", "more", "applied"),
    [
        (14_118, 14_118, {}, None),
        (14_117, 14_117, {}, ends(kmax=17_646)),  # a flatter ramp, so that Kmin may stay
        (5e3, 14_118, {"pmax": 1.0}, ends(kmax=131_484)),
        (5e3, 14_118, {"pmax": 0.01}, None),  # the ramp is marked at 1 % at most
        (5e3, 900e3, {"pmax": 1.0}, None),
        (5e3, 80e3, {"pmax": 1.0}, ends(kmax=125_000)),
        (5e3, 5e3, {"buffer_size": 28e3}, ends(kmax=15_259)),
        (5e3, 5e3, {"buffer_size": 14e3}, {}),
        (2e3, 2e3, {}, ends(12_500, 500_000)),  # below two packets, which says it
    ],
)
def test_a_kmin_below_what_bursts_make_gets_a_percent_of_packets_marked(
    kmin: float, kmax: float, more: dict[str, Any], applied: dict[str, str] | None
) -> None:
    (found,) = [*thresholds.packets_and_thresholds(made(kmin, kmax, **more), (1086.0,))] or (None,)
    if applied is None:
        assert found is None
        return
    assert found is not None
    assert found.what == (LOW if kmin < 2172 else BURSTS)
    assert "8 flows that fill the link get" in found.why
    assert fields(found) == applied
    assert found.severity == "warn"
    assert ("enlarge the buffer" in found.suggest) == (not applied)


def test_the_share_that_bursts_get_marked_is_counted_by_hand() -> None:
    """Three packets at 3 KB and one at 4 KB of sixteen, on a ramp from 2 KB to 4 KB: 3/16 of a half, 1/16 of it all."""
    queue = BurstQueue(1000.0, np.array([12, 8, 4, 1]) / 16)
    assert queue.marked(2e3, 4e3, 0.5) == pytest.approx(3 / 16 * 0.25 + 1 / 16 * 0.5)
    assert queue.marked(3e3, 3e3, 0.5) == pytest.approx(1 / 16)
    assert (queue.mean, queue.quantile(0.5), queue.quantile(0.95)) == (25_000 / 16, 1e3, 4e3)


@pytest.mark.parametrize(
    ("kmin", "kmax", "limits", "severity", "applied"),
    [
        (400e3, 1e6, {"buffer_size": 1e6}, None, {}),
        (400e3, 1_000_001, {"buffer_size": 1e6}, "warn", ends(400_000, 1_000_000)),
        (999_999, 2e6, {"buffer_size": 1e6}, "warn", ends(999_999, 1_000_000)),
        (1e6, 2e6, {"buffer_size": 1e6}, "bad", ends(12_500, 500_000)),
        (1_000_001, 900e3, {"buffer_size": 1e6}, "bad", ends(12_500, 500_000)),
        (1e6, 1e6, {"buffer_size": 1e6}, None, {}),
        (400e3, 900e3, {"buffer_size": 1e6, "queue_limit": 900e3}, None, {}),
        (400e3, 900e3, {"buffer_size": 1e6, "queue_limit": 899e3}, "warn", ends(400_000, 899_000)),
        (30e3, 40e3, {"buffer_size": 24_999.0}, "bad", {}),  # holds no ramp of the paper's
        (400e3, 900e3, {}, None, {}),
        (None, 2e6, {"buffer_size": 1e6}, None, {}),
        (2e6, None, {"buffer_size": 1e6}, None, {}),
    ],
)
def test_thresholds_beyond_the_buffer_are_told_and_those_at_its_end_are_not(
    kmin: float | None, kmax: float | None, limits: dict[str, float], severity: str | None, applied: dict[str, str]
) -> None:
    found = words(thresholds.room(made(kmin, kmax, **limits)))
    assert {what: each.severity for what, each in found.items()} == ({} if severity is None else {ABOVE: severity})
    for each in found.values():
        assert fields(each) == applied
        assert each.why.startswith("BUFFER_QUEUE's" if "queue_limit" in limits else "the lossless buffer pool")
        assert ("nothing is ever marked" in each.why) == (severity == "bad")
        assert each.suggest.startswith("lower green_m" if applied else "enlarge the lossless buffer pool")


@pytest.mark.parametrize(
    ("limit", "more", "told"),
    [
        (299_999.0, {"static_th": 300e3}, True),
        (300_000.0, {"static_th": 300e3}, False),
        (299_999.0, {"static_th": 300e3, "lossless": False}, False),
        (5_999_999.0, {"dynamic_th": 0.0}, True),  # half of the pool
        (6_000_000.0, {"dynamic_th": 0.0}, False),
        (None, {"static_th": 300e3}, False),
        (299_999.0, {"dynamic_th": None}, False),
    ],
)
def test_a_queue_that_ends_before_pause_loses_packets(limit: float | None, more: dict[str, Any], told: bool) -> None:
    given: dict[str, Any] = {"lossless": True, "dynamic_th": None, "static_th": None, "buffer_size": 12e6} | more
    found = words(thresholds.room(made(10e3, 20e3, queue_limit=limit, **given)))
    assert [(what, each.severity) for what, each in found.items()] == [(OVERFLOWS, "bad")] * told


def test_a_group_pauses_at_its_threshold_or_its_share_of_the_pool() -> None:
    """A group that takes twice what is free has two thirds of 9 MB; a fixed threshold goes before that."""
    at = lambda **more: thresholds.pause_point(made(None, None, **more))  # noqa: E731
    assert at(dynamic_th=1.0, buffer_size=9e6) == pytest.approx(6e6)
    assert at(dynamic_th=-1.0, buffer_size=9e6) == pytest.approx(3e6)
    assert at(dynamic_th=1.0, buffer_size=9e6, static_th=5e3) == 5e3
    assert at(dynamic_th=1.0, buffer_size=None) is None
    assert at(dynamic_th=None, buffer_size=9e6) is None


def test_the_smaller_of_two_limits_is_what_a_queue_may_hold() -> None:
    for buffer, limit, most in ((1e6, 2e6, 1e6), (2e6, 1e6, 1e6), (None, 1e6, 1e6), (1e6, None, 1e6)):
        assert thresholds.most(made(1.0, 2.0, buffer_size=buffer, queue_limit=limit)) == most
    assert thresholds.most(made(1.0, 2.0)) is None


def test_a_queue_at_its_limit_is_shown_and_one_beyond_it_is_not() -> None:
    assert thresholds.shown(30e3, 30e3) == "30KB"
    assert thresholds.shown(30_001.0, 30e3) == "beyond the buffer's 30KB"
    assert thresholds.shown(31e3, None) == "31KB"


def test_a_changed_threshold_is_whole_and_a_probability_in_percent() -> None:
    found = thresholds.thresholds(made(1.0, 2.0), kmin=2000.6, pmax=0.29)
    assert {change.path.rpartition("/")[2]: change.value for change in found} == {
        "green_min_threshold": "2001",
        "green_drop_probability": "29",
    }
    assert thresholds.thresholds(made(1.0, 2.0)) == ()
    assert thresholds.thresholds(made(1.0, 2.0, threshold_fields=None), 1.0, 2.0, 0.5) == ()
