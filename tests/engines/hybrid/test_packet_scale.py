"""Packets that meet: N*D/D/1 against a replay, the limit of many flows, marks by hand, and packets."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.hybrid.layout import KNOTS, LIKELY, LOADS
from fluidcc.engines.hybrid.packet_scale import as_many_equal, marks, meetings, whole
from fluidcc.scenario.parameters import resolve

NAMES = ("waiting", "found", "found_with_sending")


def replayed(flows: int, load: float, rounds: int = 4000) -> dict[str, np.ndarray]:
    """Lindley's recursion, packet by packet: shares of the time, and of the arrivals, with 0, 1, ... packets."""
    rng, period = np.random.default_rng(flows), flows / load
    spent, found, present = np.zeros(flows + 1), np.zeros(flows + 1), np.zeros(flows + 1)
    for _ in range(rounds):
        arrivals = np.sort(rng.uniform(0, period, flows))
        times = np.concatenate([arrivals, arrivals + period])  # the second period is stationary
        ends, free = [], 0.0
        for time in times:
            free = max(free, time) + 1.0
            ends.append(free)
        for time in times[flows:]:
            there = int((times < time).sum() - (np.array(ends) <= time).sum())
            present[there] += 1
            found[max(there - 1, 0)] += 1
        changes = np.sort(np.concatenate([times, ends, [period, 2 * period]]))
        inside = (changes[:-1] >= period) & (changes[1:] <= 2 * period)
        middle = (changes[:-1] + changes[1:]) / 2
        there = np.searchsorted(times, middle) - np.searchsorted(np.array(ends), middle)
        np.add.at(spent, np.maximum(there - 1, 0)[inside], np.diff(changes)[inside])
    return {n: each / each.sum() for n, each in zip(NAMES, (spent, found, present), strict=True)}


@pytest.mark.parametrize(("flows", "load"), [(2, 0.5), (5, 0.75), (8, 1.0), (20, 0.875)])
def test_it_is_what_a_replay_finds(flows: int, load: float) -> None:
    """An arriving packet sees the others, not itself; and the packet that is being sent where that counts."""
    rounds = 4000
    seen = replayed(flows, load, rounds)
    for name in NAMES:
        exact = getattr(meetings(flows), name)[round(load * LOADS)]
        assert exact.sum() == pytest.approx(1.0, abs=1e-12)
        error = np.sqrt(exact * flows / rounds)  # of a share, if a phase's shares were no better than single draws
        assert (np.abs(seen[name][: len(exact)] - exact) <= 4 * error + 1e-3).all(), name
        assert exact @ np.arange(len(exact)) == pytest.approx(seen[name] @ np.arange(flows + 1), rel=0.05), name


def test_the_shares_that_the_criterion_was_found_with() -> None:
    """An independent program's, 8 flows at a load of 0.99."""
    found, at = meetings(8).found, 0.99 * LOADS
    low = int(at)
    shares = found[low] + (at - low) * (found[low + 1] - found[low])
    assert shares[:4] == pytest.approx([0.52, 0.33, 0.13, 0.025], abs=0.01)


def test_with_many_flows_it_is_as_of_poisson_arrivals() -> None:
    """Pollaczek and Khinchine for M/D/1: load^2 / (2 (1 - load)) packets wait."""
    for load in (0.25, 0.5):
        found = meetings(400).waiting[round(load * LOADS)]
        mean = found @ np.arange(len(found))
        assert mean == pytest.approx(load**2 / (2 * (1 - load)), rel=0.02)


@pytest.mark.parametrize("load", [0.5, 0.875, 63 / 64])
def test_bursts_of_one_packet_and_a_little_jitter_are_nearly_the_formula(load: float) -> None:
    """The replay's own check: with next to no jitter it has the exact shares, within its draws' errors."""
    row = round(load * LOADS)
    for name in NAMES:
        exact, seen = (getattr(meetings(8, 1, jitter), name)[row] for jitter in (0.0, 1e-6))
        count = min(len(exact), len(seen))
        assert np.abs(seen[:count] - exact[:count]).max() < 0.02, name


def test_a_lone_burst_at_the_links_rate_never_waits_and_one_twice_as_fast_does() -> None:
    assert meetings(1, 4).waiting.shape[1] == 1
    fast = meetings(1, 4, 0.0, 0.5).found[LOADS // 2]
    # Packets 0, 1, 2, 3 come at 0, 0.5, 1, 1.5 of a transmission: each finds what is left of the work before it.
    assert fast == pytest.approx([3 / 4, 1 / 4], abs=1e-12)


def test_marks_are_the_ramps_mean_over_what_packets_find() -> None:
    """Kmin 1.5, Kmax 4.5 packets, 60 %: p of 2, 3, 4 packets is 0.1, 0.3, 0.5, and 1 from 5 on."""
    met, red = meetings(5), resolve(fc.RED("1500B", "4500B", 0.6))
    found = marks(red, met, 1000.0)
    p = np.array([0.0, 0.0, 0.1, 0.3, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    for load in (LOADS // 2, LOADS):
        assert found.meeting[load] == pytest.approx(met.found[load] @ p[: met.found.shape[1]], rel=1e-12)
    for packets in range(6):
        exact = met.found[LOADS] @ p[packets : packets + met.found.shape[1]]
        assert np.interp(1000.0 * packets, found.queues, found.chances) == pytest.approx(exact, rel=0.02, abs=2e-5)
    assert found.queues[-1] == 5000.0
    assert found.chances[-1] == pytest.approx(1.0)
    counted = marks(dataclasses.replace(red, counts_sending=True), met, 1000.0)
    assert counted.meeting[LOADS] == pytest.approx(
        met.found_with_sending[LOADS] @ p[: met.found_with_sending.shape[1]], rel=1e-12
    )
    assert counted.chances[0] == pytest.approx(met.found[LOADS] @ p[1 : 1 + met.found.shape[1]], rel=0.02)


@pytest.mark.parametrize(
    ("kmin", "kmax", "pmax"), [(5e3, 2e5, 1.0), (5e3, 2e5, 0.05), (1e3, 2e3, 0.3), (3e3, 9e3, 0.1)]
)
def test_no_piece_of_a_marking_is_likely_in_part(kmin: float, kmax: float, pmax: float) -> None:
    found, met = marks(resolve(fc.RED(kmin, kmax, pmax)), meetings(8), 1000.0), meetings(8)
    likely = found.chances > LIKELY
    assert not any(low < LIKELY < high for low, high in itertools.pairwise(found.chances))
    assert likely[-1]
    assert len(found.queues) <= KNOTS
    if pmax == 1.0:  # the point that is added lies on the curve
        at = found.queues[found.chances == LIKELY] / 1e3
        besides = np.arange(met.found.shape[1])
        chance = np.clip((1e3 * (at[:, None] + besides) - kmin) / (kmax - kmin), 0, 1) @ met.found[LOADS]
        assert chance == pytest.approx([LIKELY], rel=0.02)


def test_a_lone_flows_marks_are_the_ramp_itself() -> None:
    found = marks(resolve(fc.RED("10KB", "50KB", 0.2)), meetings(1), 1000.0)
    queues = np.arange(10e3, 50e3, 1e3)
    assert np.interp(queues, found.queues, found.chances) == pytest.approx(
        0.2 * (queues - 10e3) / 40e3, rel=0.011, abs=2e-5
    )
    assert not found.meeting.any()


def test_queues_of_whole_packets_keep_the_mean_and_the_time() -> None:
    lengths, times = whole(np.array([2500.0, 4000.0]), np.array([3.0, 1.0]), 1000.0)
    assert times.sum() == pytest.approx(4.0)
    assert lengths @ times == pytest.approx(3 * 2500 + 4000)
    assert set(lengths[times > 0] / 1000) == {2.0, 3.0, 4.0}
    assert as_many_equal(np.array([1.0, 1.0, 0.0])) == 2


@pytest.mark.parametrize("load", [0.4, 0.9])
def test_packets_of_flows_that_nothing_controls_wait_as_long(load: float) -> None:
    """Twelve senders of one rate whose starts are drawn; 40 draws of packets, as their phases stay as they are."""
    flows, found = 12, []
    for seed in range(40):
        starts = np.random.default_rng(seed).uniform(0, 30e-6, flows).tolist()
        script = fc.NoControl(schedule=f"0:{40 * load / flows}Gbps")
        scenario = fc.incast(flows, scheme=script, rate="40Gbps", marking=None, start=starts)
        found.append(fc.simulate(scenario, "0.4ms", engine="packet").summary["queue_bytes"])
    ours = fc.simulate(scenario, "0.4ms", engine="hybrid").summary["queue_bytes"]
    for name in ("mean", "std"):
        seen = np.array([each[name] if name == "mean" else each["std"] ** 2 + each["mean"] ** 2 for each in found])
        expected = ours["mean"] if name == "mean" else ours["std"] ** 2 + ours["mean"] ** 2
        assert expected > 0
        assert abs(seen.mean() - expected) < 3 * seen.std(ddof=1) / np.sqrt(len(seen)) + 0.01 * expected
