"""The hybrid against packets: means over seeds, by the standard errors of their difference."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.common.outcome import metrics_of
from fluidcc.studies.sweeps.replications import Draws, outcomes

SEEDS = 6
# Packets of 250 B: with 1000 B, a flow has some five in a CNP interval, and 0.7 % more of the link is used than here.
BEYOND = fc.incast(
    6,
    rate="10Gbps",
    marking=fc.RED("20KB", "60KB", 1.0),
    delay="10us",
    start=["0", "13us", "31us"],
    packet_size="250B",
)
# One receiver, whose NIC has a CNP each 10 us for all eight: they have one each 80 us instead of 50.
SHARED = fc.incast(8, rate="100Gbps", scheme=fc.DCQCN(nic_cnp_interval="10us"), marking=fc.RED("40KB", "200KB", 0.05))


def both(scenario: fc.Scenario, until: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metrics by seed of hybrid and packets."""
    found = [
        metrics_of(outcomes(scenario, Draws(engine, SEEDS, None, until, None)))[1] for engine in ("hybrid", "packet")
    ]
    return found[0], found[1]


def agree(ours: Any, theirs: Any, share: float, least: float) -> bool:
    """Within a share, a least difference, or three standard errors."""
    error = np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / SEEDS)
    return abs(ours.mean() - theirs.mean()) <= max(share * abs(theirs.mean()), least, 3 * error)


def departing(scenario: fc.Scenario) -> fc.Scenario:
    links = tuple(
        dataclasses.replace(link, marking=dataclasses.replace(link.marking, mark_on="departure"))
        for link in scenario.links
    )
    return dataclasses.replace(scenario, links=links)


@pytest.mark.parametrize(
    ("scenario", "until"),
    [
        (fc.incast(4), 0.06),
        (departing(fc.incast(4)), 0.06),
        (fc.parking_lot(3, rate="10Gbps", start=["0", "1ms", "2ms"]), 0.06),
        (BEYOND, 0.06),
        (SHARED, 0.06),
    ],
    ids=["paper", "departure", "three links", "beyond Kmax", "CNPs of a NIC"],
)
def test_queues_utilisation_and_fairness(scenario: fc.Scenario, until: float) -> None:
    ours, theirs = both(scenario, until)
    packet = float(scenario.packet_size)
    assert theirs["queue_bytes.mean"].mean() > packet
    for name, share, least in (
        ("queue_bytes.mean", 0.05, 1.5 * packet),
        ("queue_bytes.std", 0.05, 1.5 * packet),
        ("queue_bytes.p95", 0.05, 1.5 * packet),
        ("utilisation", 0.005, 0.0),
        ("jain", 0.0, 0.01),
    ):
        assert agree(ours[name], theirs[name], share, least), (name, ours[name].mean(), theirs[name].mean())


@pytest.mark.slow
def test_the_fluid_is_further_from_packets_than_the_hybrid() -> None:
    """Eight flows at the paper's settings: what the average says of the tail, and of the idle link."""
    ours, theirs = both(fc.incast(8), 0.2)
    fluid = fc.simulate(fc.incast(8), "200ms", estimate_error=False).summary
    tail = theirs["queue_bytes.p95"].mean()
    assert (
        abs(ours["queue_bytes.p95"].mean() - tail) < 0.05 * tail < 0.3 * tail < abs(fluid["queue_bytes"]["p95"] - tail)
    )
    idle = 1 - theirs["utilisation"].mean()
    assert abs(1 - ours["utilisation"].mean() - idle) < 0.3 * idle  # idle spells are few: they scatter
    assert 1 - fluid["utilisation"] < 0.1 * idle


def test_completion_times_as_means_over_seeds() -> None:
    scenario = fc.incast(4, size="1MB", start=["0", "100us", "300us", "500us"])
    means = {}
    for engine in ("hybrid", "packet"):
        runs = fc.ensemble(scenario, "8ms", 24, engine=engine, window="0:8ms")
        taken = np.array([run.summary["fct_s"] for run in runs], dtype=float)
        assert np.isfinite(taken).all()
        means[engine] = taken.mean(axis=0), taken.std(axis=0, ddof=1) / 24**0.5
    off = np.abs(means["hybrid"][0] - means["packet"][0])
    error = np.hypot(means["hybrid"][1], means["packet"][1])
    assert (off <= np.maximum(3 * error, 0.05 * means["packet"][0])).all(), (means, off)


def test_crosscheck_judges_by_standard_errors() -> None:
    runs = [fc.ensemble(fc.incast(4), "20ms", 4, engine=engine) for engine in ("hybrid", "packet")]
    found = fc.compare(*runs)
    assert found.engines == ("hybrid", "packet")
    assert {"queue_mean_rel", "queue_p95_rel", "jain_abs", "rate_rel_max"} == set(found.tolerance)
    assert found.within
    assert found.as_dict()["hybrid"]["seeds"] == [1, 2, 3, 4]
    far = fc.ensemble(fc.incast(4, marking=fc.RED("100KB", "200KB", "1%")), "20ms", 4, engine="hybrid")
    with pytest.raises(fc.InputError, match="differ in their links"):
        fc.compare(far, runs[1])
