"""Where packets are asked in place of the hybrid."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.hybrid.packet_scale import meetings
from fluidcc.engines.hybrid.region import by_packets, meeting_share, outside
from fluidcc.scenario.model import resolve
from fluidcc.schemes.dcqcn.equilibrium import marking_at
from fluidcc.studies.sweeps.replications import draws_of, runner_of

SENDER = fc.DCQCN(timer="300us", byte_counter="1GB", rate_ai="5Mbps", cnp_interval="4us")


def incast(kmin: str, kmax: str, pmax: float, flows: int = 8, **more: object) -> fc.Scenario:
    return resolve(fc.incast(flows, rate="400Gbps", scheme=SENDER, marking=fc.RED(kmin, kmax, pmax), **more))


@pytest.mark.parametrize(("flows", "burst"), [(8, 1), (2, 16)])
def test_the_criterion_by_hand(flows: int, burst: int) -> None:
    """Kmin half a packet and Kmax a hundred: p of n packets is a straight line, so p_coll is that of their mean.

    Catches two flows whose bursts meet taken for flows that do not.
    """
    scenario = incast("500B", "100500B", 1.0, flows, burst=burst)
    loads = np.arange(65) / 64
    shares = np.array([np.interp(0.99, loads, column) for column in meetings(flows, burst).found.T])
    chance = np.maximum(np.arange(len(shares)) - 0.5, 0.0) / 100
    needed = float(marking_at(scenario.flows[0].scheme, 50e9 / flows, 50e9, 1000.0))
    assert meeting_share(scenario) == pytest.approx(shares @ chance / needed, rel=1e-9)


@pytest.mark.parametrize(
    ("given", "is_outside"),
    [(("1KB", "20KB", 1.0), True), (("9KB", "40KB", 1.0), False), (("1KB", "20KB", 1.0, 1), False)],
)
def test_low_thresholds_are_outside_high_ones_and_lone_flows_are_not(given: tuple, is_outside: bool) -> None:
    assert outside(incast(*given)) is is_outside


def test_flows_that_are_not_controlled_have_no_criterion() -> None:
    assert meeting_share(resolve(fc.incast(4, scheme=fc.NoControl(), marking=fc.RED(0, 0, 1.0)))) == 0.0
    assert (
        meeting_share(resolve(fc.incast(4, scheme=SENDER, marking=fc.RED("1KB", "2KB", 1.0), line_rate="1Gbps"))) == 0
    )


@pytest.mark.parametrize("given", [("1KB", "20KB", 1.0), ("400KB", "1600KB", 0.01)])
def test_packets_run_where_the_hybrid_does_not_speak_for_them(given: tuple) -> None:
    """Marks of packets that meet in one case, and a start that fills the buffer in the other."""
    scenario = dataclasses.replace(incast(*given, flows=16), buffer=2e6, pfc=fc.PFC())
    scenario = resolve(scenario)
    draws = draws_of("hybrid", 1, None, "1ms", None)
    ours = runner_of(scenario, draws)(3).links[0].statistics()
    theirs = runner_of(scenario, dataclasses.replace(draws, engine="packet"))(3).links[0].statistics()
    assert ours == theirs
    assert ours["queue_bytes"]["max_whole_run"] <= 2e6


def test_a_sweep_counts_what_packets_ran() -> None:
    """One of two points is outside, so it is not called the hybrid's."""
    found = fc.sweep(
        lambda kmin: incast("1KB", "20KB", 1.0) if kmin < 5e3 else incast("9KB", "40KB", 1.0),
        {"kmin": [1e3, 9e3]},
        until="100us",
        engine="hybrid",
        seeds=2,
    )
    assert found["by_packets"].values.tolist() == [2, 0]


@pytest.mark.parametrize(
    "given",
    [
        {"ack_interval": 2}, {"size": "1MB"}, {"loss_recovery": "gbn"}, {"host": "receiver"}, {"link": "back"},
    ],
    ids=str,
)  # fmt: skip
def test_acks_stay_where_they_mean_something(given: dict[str, str]) -> None:
    """Ends of flows, news of losses, an ACK's share of a link that data crosses, and what was asked for."""
    host, link = given.get("host"), given.get("link")
    scenario = incast(
        "9KB", "40KB", 1.0, **{name: each for name, each in given.items() if name not in ("host", "link")}
    )
    if host:  # of flow 0 receives flow 1 too
        flows = (dataclasses.replace(scenario.flows[0], source=host), *scenario.flows[1:])
        scenario = dataclasses.replace(scenario, flows=flows)
    if link:
        back = dataclasses.replace(scenario.links[0], name=link, source="receiver", target="switch")
        scenario = dataclasses.replace(scenario, links=(*scenario.links, back))
    assert by_packets(scenario) is scenario


def test_acks_come_rarely_where_nobody_looks_at_them() -> None:
    scenario = incast("9KB", "40KB", 1.0)
    assert by_packets(scenario) == dataclasses.replace(scenario, ack_interval=8.0)


@pytest.mark.slow
@pytest.mark.parametrize("flows", [2, 32])
def test_queues_and_rates_do_not_depend_on_acks(flows: int) -> None:
    """To the bit: bursts, PAUSE and starts at line rate included; what was acknowledged differs by eight packets."""
    given = incast("100KB", "400KB", 0.2, flows, burst=4, packet_size=4096, pfc=fc.PFC(xoff="200KB"), buffer="32MB")
    one, other = (fc.simulate(each, "4ms", engine="packet", seed=3) for each in (given, by_packets(given)))
    assert other.summary["events"] < 0.85 * one.summary["events"]
    for name in ("queue", "sent", "rate"):
        np.testing.assert_array_equal(one[name], other[name])
    for name in ("queue_bytes", "jain", "utilisation", "pfc_pauses"):
        assert one.summary[name] == other.summary[name]
    delivered = np.array([each.summary["goodput_bytes_per_s"] for each in (one, other)]) * 2e-3
    assert np.abs(np.diff(delivered, axis=0)).max() <= 8 * 4096
