"""Packets that meet where the fluid has no queue: N*D/D/1 against a replay, the limit of many flows, and packets."""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.hybrid.layout import LOADS
from fluidcc.engines.hybrid.packet_scale import as_many_equal, met, waiting


def replayed(flows: int, load: float, rounds: int = 4000) -> np.ndarray:
    """Time shares of 0, 1, ... packets that wait, of periodic flows with random phases, by Lindley's recursion."""
    rng, period = np.random.default_rng(flows), flows / load
    spent = np.zeros(flows + 1)
    for _ in range(rounds):
        arrivals = np.sort(rng.uniform(0, period, flows))
        times = np.concatenate([arrivals, arrivals + period])  # the second period is stationary
        ends, free = [], 0.0
        for time in times:
            free = max(free, time) + 1.0
            ends.append(free)
        changes = np.sort(np.concatenate([times, ends, [period, 2 * period]]))
        inside = (changes[:-1] >= period) & (changes[1:] <= 2 * period)
        middle = (changes[:-1] + changes[1:]) / 2
        there = np.searchsorted(times, middle) - np.searchsorted(np.array(ends), middle)
        np.add.at(spent, np.maximum(there - 1, 0)[inside], np.diff(changes)[inside])
    return spent[:flows] / spent.sum()


@pytest.mark.parametrize(("flows", "load"), [(2, 0.5), (5, 0.75), (8, 1.0), (20, 0.875)])
def test_it_is_what_a_replay_finds(flows: int, load: float) -> None:
    exact, seen = waiting(flows)[round(load * LOADS)], replayed(flows, load)
    assert exact.sum() == pytest.approx(1.0, abs=1e-12)
    error = np.sqrt(exact * flows / 4000)  # of a share, if a phase's shares were no better than single draws
    assert (np.abs(seen - exact) <= 4 * error + 1e-3).all()
    assert exact @ np.arange(flows) == pytest.approx(seen @ np.arange(flows), rel=0.05)


def test_with_many_flows_it_is_as_of_poisson_arrivals() -> None:
    """Pollaczek and Khinchine for M/D/1: load^2 / (2 (1 - load)) packets wait."""
    for load in (0.25, 0.5):
        found = waiting(400)[round(load * LOADS)]
        mean = found @ np.arange(len(found))
        assert mean == pytest.approx(load**2 / (2 * (1 - load)), rel=0.02)


def test_a_lone_flow_never_waits_and_no_time_is_lost() -> None:
    idle = np.random.default_rng(1).uniform(size=LOADS + 1)
    lengths, spent = met(idle, np.array([3.0]), 1000.0)
    assert lengths.tolist() == [0.0]
    assert spent.sum() == pytest.approx(idle.sum())
    lengths, spent = met(idle, np.ones(7), 1000.0)
    assert (lengths == 1000.0 * np.arange(len(lengths))).all()
    assert spent.sum() == pytest.approx(idle.sum())
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
