"""Runs whose course is known: no marks, every packet marked, scripted senders, two links."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.hybrid import run as hybrid
from fluidcc.scenario.model import resolve

GBPS = 1e9 / 8
NEVER_MARKS = fc.RED("1GB", "2GB", 1.0)


def test_a_lone_sender_recovers_by_its_timer_alone() -> None:
    """From 10 of 40 Gb/s: R_T stays for F = 5 increases, then grows by R_AI with each (Fig. 7)."""
    scheme = fc.DCQCN(timer="50us", byte_counter="1GB", rate_ai="400Mbps")
    scenario = fc.incast(1, scheme=scheme, marking=NEVER_MARKS, initial_rate="10Gbps")
    trace = fc.simulate(scenario, "1ms", engine="hybrid", sample_interval="10us")
    target, rate = 10 * GBPS, 10 * GBPS
    for k in range(1, 20):
        if k > 5:
            target += 0.4 * GBPS
        rate = (target + rate) / 2
        assert float(trace["pacing_rate"].sel(time=k * 50e-6 + 20e-6, method="nearest")[0]) == pytest.approx(
            rate, rel=1e-12
        )
        assert float(trace["target_rate"].sel(time=k * 50e-6 + 20e-6, method="nearest")[0]) == pytest.approx(
            target, rel=1e-12
        )
    assert trace.summary["cnps"] == 0
    assert trace.summary["queue_bytes"]["max_whole_run"] == 0


def test_its_byte_counter_counts_what_it_sends() -> None:
    scheme = fc.DCQCN(timer="1s", byte_counter="125KB", rate_ai="800Mbps", fast_recovery_steps=0)
    scenario = fc.incast(1, scheme=scheme, marking=NEVER_MARKS, initial_rate="10Gbps")
    trace = fc.simulate(scenario, "1ms", engine="hybrid", sample_interval="1us")
    at, target, rate = 0.0, 10 * GBPS, 10 * GBPS
    for _ in range(8):
        at += 125e3 / rate
        target += 0.8 * GBPS
        rate = (target + rate) / 2
        seen = float(trace["pacing_rate"].sel(time=at + 2e-6, method="nearest")[0])
        assert seen == pytest.approx(rate, rel=1e-12)


def test_where_every_packet_is_marked_a_cnp_goes_each_interval() -> None:
    """Kmin = Kmax = 0 marks all that waits: cuts come tau apart, and alpha follows (1)."""
    scheme = fc.DCQCN(
        cnp_interval="50us", timer="1s", byte_counter="1GB", g=1 / 16, min_rate="10Gbps", alpha_timer="55us"
    )
    scenario = fc.incast(2, scheme=scheme, marking=fc.RED(0, 0, 1.0), rate="10Gbps", initial_rate="10Gbps")
    trace = fc.simulate(scenario, "2ms", engine="hybrid", sample_interval="5us", window="0:2ms")
    alpha = trace["alpha"].values[:, 0]
    cuts = np.flatnonzero(np.diff(trace["alpha"].values[:, 0]) != 0)
    assert trace.summary["cnps"] in (2 * 39, 2 * 40)  # the last may be on its way
    assert np.allclose(np.diff(trace["time"].values[cuts]), 50e-6, atol=6e-6) or len(cuts) == 0
    assert alpha[-1] == 1.0  # (1 - g) 1 + g: it starts at 1 and is never updated by its timer


@pytest.mark.parametrize(("nic_cnp_interval", "flows", "gap"), [(4e-6, 2, 10e-6), (4e-6, 6, 24e-6), (10e-6, 3, 30e-6)])
def test_a_nic_that_keeps_its_cnps_apart_gives_each_flow_its_turn(
    nic_cnp_interval: float, flows: int, gap: float
) -> None:
    """Every packet is marked: a flow has a CNP each interval, or each round of its NIC if that is longer."""
    scheme = fc.DCQCN(cnp_interval="10us", nic_cnp_interval=nic_cnp_interval, min_rate="10Gbps", feedback_delay=None)
    scenario = fc.incast(flows, scheme=scheme, marking=fc.RED("1B", "1B", 1.0), rate=f"{10 * flows - 1}Gbps")
    prepared = hybrid.prepare(resolve(scenario), hybrid.unsampled("2ms", None))
    sim, _ = hybrid.execute(prepared, 0)
    turns = (sim.flows["cnp_next"] - sim.flows["cnp_interval"])[np.argsort(sim.flows["cnp_next"])]
    assert (np.diff(turns) >= nic_cnp_interval * (1 - 1e-9)).all()
    sent = sim.flows["cnps"] + sim.flows["waiting"]
    late = 0.1e-3  # until the first packets are there, and the last turns are given
    assert sent == pytest.approx((2e-3 - late / 2) / gap, abs=late / gap)
    assert np.ptp(sent) <= 1


@pytest.mark.parametrize("engine", ["hybrid", "packet"])
def test_a_packet_waits_for_the_newest_rates_gap_since_the_last_one(engine: str) -> None:
    """Every packet is marked and halves the rate: from the second cut to the third are 4 gaps of the first rate.

    Were what came at the old rate kept as a share of the packet, it would be less by the way of the mark and the CNP.
    """
    scheme = fc.DCQCN(cnp_interval="1us", timer="1s", byte_counter="1GB", alpha_timer="1s")
    senders = [(scheme, "80Mbps"), (fc.NoControl(), "40Gbps"), (fc.NoControl(), "100Mbps")]  # these keep the queue
    flows = [
        fc.Flow((0,), sender, "40Gbps", initial_rate=rate, source=f"h{i}", target=f"r{i}", egress_delay="12us")
        for i, (sender, rate) in enumerate(senders)
    ]
    link = fc.Link("40Gbps", "12us", source="s", target="t", marking=fc.RED(0, 0, 1.0))
    trace = fc.simulate(fc.Scenario((link,), tuple(flows)), "1.2ms", engine=engine, sample_interval="500ns")
    rate = trace["pacing_rate"].values[:, 0]
    cuts = trace["time"].values[1:][np.diff(rate) < 0]
    gap = 1000 / (80e6 / 8)
    assert np.diff(cuts)[:2] == pytest.approx([2 * gap, 4 * gap], abs=3e-6)


def test_a_rare_packet_is_marked_by_the_queue_that_it_joins() -> None:
    """And not by one that was there since the packet before: all CNPs come as the bursts' queue drains."""
    scheme = fc.DCQCN(cnp_interval="1us", timer="1s", byte_counter="1GB", alpha_timer="1s", min_rate="8Mbps", g=1 / 64)
    scheme = dataclasses.replace(scheme, initial_alpha=0.0)
    period, burst = 500e-6, 20e-6
    script = [step for k in range(32) for step in ((k * period, "40Gbps"), (k * period + burst, "0bps"))]
    senders = [scheme, *[fc.NoControl(schedule=script)] * 2]
    link = fc.Link("40Gbps", "1us", source="s", target="t", marking=fc.RED("2KB", "100KB", 1.0))
    phases = []
    for seed, start in enumerate(np.linspace(0, period, 24, endpoint=False)):
        flows = [
            fc.Flow(
                (0,),
                sender,
                "40Gbps",
                initial_rate="40Gbps" if i else "8Mbps",
                source=f"h{i}",
                target=f"r{i}",
                egress_delay="1us",
                start=0.0 if i else start,
            )
            for i, sender in enumerate(senders)
        ]
        trace = fc.simulate(
            fc.Scenario((link,), tuple(flows)), 32 * period, engine="hybrid", seed=seed, sample_interval="2us"
        )
        steps = np.flatnonzero(np.diff(trace["alpha"].values[:, 0]) > 0)
        phases += list(trace["time"].values[steps + 1] % period)
    # 15 packets each; p is 0.5 on average while the queue rises and falls, 39 of 500 us.
    expected = 24 * 15 * 39 / 500 / 2
    assert len(phases) == pytest.approx(expected, abs=4 * np.sqrt(expected))
    assert max(phases) < 2 * burst + burst + 6e-6  # the queue, its wait, the way


@pytest.mark.parametrize("engine", ["hybrid", "packet"])
def test_percentiles_of_a_queue_without_bounds(engine: str) -> None:
    """It grows on a straight line to 200 MB: its lengths are uniform. Catches bins that end below 195 MB.

    Packets had bins to 142 MB once, and lumped all above together. Large packets make for few events.
    """
    scenario = fc.incast(4, scheme=fc.NoControl(), rate="1Gbps", line_rate="400Gbps", packet_size="64KB")
    queue = fc.simulate(scenario, "1ms", engine=engine).summary["queue_bytes"]
    assert queue["max"] == pytest.approx(2e8, rel=0.01)
    for percent in (5, 50, 95):
        assert queue[f"p{percent}"] == pytest.approx(queue["max"] * (0.5 + percent / 200), rel=0.01)


def test_scripted_senders_fill_and_empty_a_queue_on_straight_lines() -> None:
    script = fc.NoControl(schedule="0:10Gbps,1ms:30Gbps,2ms:5Gbps", repeat="3ms")
    scenario = fc.incast(2, scheme=script, rate="40Gbps", marking=None)
    found = fc.simulate(scenario, "9ms", engine="hybrid", window="3ms:9ms").summary
    # 20 Gb/s too much for 1 ms: 2.5 MB, then 30 Gb/s too little for 2/3 ms.
    mean = (2.5e6 * 1e-3 / 2 + 2.5e6 * (2 / 3) * 1e-3 / 2) / 3e-3
    square = (2.5e6**2 * 1e-3 / 3 + 2.5e6**2 * (2 / 3) * 1e-3 / 3) / 3e-3
    # Then half and a quarter of the link's rate: of two flows' packets, load^2/4 wait for one of the other.
    alone = 0.5**2 / 4 * 1e-3 + 0.25**2 / 4 * 1e-3 / 3
    # And a quarter of a packet besides while there is a queue of the fluid, for 5/3 ms.
    mean += 1e3 * (alone + 0.25 * 5e-3 / 3) / 3e-3
    square += (1e6 * (alone + 0.25 * 5e-3 / 3) + 2 * 0.25e3 * 2.5e6 / 2 * 5e-3 / 3) / 3e-3
    # But for half a packet: a burst waits for the new gap after the last one, and the rate changes as one leaves.
    assert found["queue_bytes"]["max"] == pytest.approx(2.5e6 + 0.25e3, abs=500)
    assert found["queue_bytes"]["mean"] == pytest.approx(mean, abs=500)
    assert found["queue_bytes"]["std"] == pytest.approx(math.sqrt(square - mean**2), abs=500)
    # Lengths are uniform over the 5/9 of the time in which there is a queue.
    assert found["queue_bytes"]["p95"] == pytest.approx(2.5e6 * (0.95 - 4 / 9) / (5 / 9), rel=5e-3)
    # Full for 1 ms and the 2/3 ms in which the queue empties, half and a quarter so for the rest: 3/4.
    assert found["utilisation"] == pytest.approx((1 + 2 / 3 + 0.5 + 0.25 / 3) / 3, rel=1e-3)
    assert sum(found["goodput_bytes_per_s"]) == pytest.approx(30 * GBPS, rel=1e-3)


def test_a_second_link_hears_what_the_first_lets_through() -> None:
    """20 + 20 Gb/s over 30: 15 each, of which one goes on over 12; FIFO shares, delayed by the wait."""
    flows = [
        fc.Flow((0, 1), fc.NoControl(), "20Gbps", source="a", target="x", egress_delay="1us"),
        fc.Flow((0,), fc.NoControl(), "20Gbps", source="b", target="y", egress_delay="1us"),
    ]
    links = (
        fc.Link("30Gbps", "1us", source="s", target="t", name="first"),
        fc.Link("12Gbps", "1us", source="t", target="u", name="second"),
    )
    scenario = fc.Scenario(links, tuple(flows))
    trace = fc.simulate(scenario, "1ms", engine="hybrid", sample_interval="10us", window="0:1ms")
    first, second = (trace["queue"].sel(link=name) for name in ("first", "second"))
    packet = 1000.0
    arrives = packet / (20 * GBPS) + 1e-6
    onward = arrives + packet / (30 * GBPS) + 1e-6
    for at in (100e-6, 500e-6, 900e-6):
        assert float(first.sel(time=at, method="nearest")) == pytest.approx(10 * GBPS * (at - arrives), rel=1e-6)
        assert float(second.sel(time=at, method="nearest")) == pytest.approx(3 * GBPS * (at - onward), rel=1e-6)


def test_a_queue_empties_before_what_it_held_goes_on() -> None:
    """A burst leaves the first link at its rate, and comes to the second one stretched."""
    script = fc.NoControl(schedule="0:40Gbps,100us:0bps")
    flows = [fc.Flow((0, 1), script, "40Gbps", source=f"h{i}", target=f"r{i}", egress_delay="1us") for i in range(2)]
    links = tuple(
        fc.Link(rate, "1us", source=f"s{i}", target=f"s{i + 1}", name=f"l{i}")
        for i, rate in enumerate(("40Gbps", "30Gbps"))
    )
    found = fc.simulate(fc.Scenario(links, tuple(flows)), "1ms", engine="hybrid", window="0:1ms").summary
    first, second = (row["queue_bytes"]["max"] for row in found["links"])
    assert first == pytest.approx(40 * GBPS * 100e-6 + 250, rel=1e-9)  # a quarter of a packet meets another
    assert second == pytest.approx(10 * GBPS * 200e-6, rel=1e-9)  # 40 into 30 for as long as the first is busy
    assert [row["utilisation"] for row in found["links"]] == pytest.approx([0.2, 0.2 * 40 / 30], rel=1e-9)


def test_a_finite_flow_sends_its_size_and_ends_as_its_last_ack_is_back() -> None:
    scenario = resolve(fc.incast(1, scheme=fc.NoControl(), rate="40Gbps", size="1MB", marking=None))
    found = fc.simulate(scenario, "1ms", engine="hybrid", window="0:1ms").summary
    packets = fc.simulate(scenario, "1ms", engine="packet", window="0:1ms").summary
    assert found["fct_s"][0] == pytest.approx(packets["fct_s"][0], rel=1e-6)
    assert found["goodput_bytes_per_s"][0] * 1e-3 == pytest.approx(1e6, rel=1e-9)
    assert found["rate_bytes_per_s"][0] * 1e-3 == pytest.approx(1e6, rel=1e-9)


def test_nothing_is_lost_on_the_way() -> None:
    """What flows send is what links let through, or hold; what is acknowledged has been sent."""
    scenario = resolve(fc.incast(6, start=["0", "1ms", "2ms"], rate="25Gbps"))
    prepared = hybrid.prepare(scenario, hybrid.unsampled("20ms", "0:20ms"))
    sim, _ = hybrid.execute(prepared, 3)
    sent, held = sim.flows["sent_close"].sum(), float(sim.links[0].queue)
    way = float((sim.flows["rate"] * sim.flows["ahead"]).sum())  # on its way to the queue, about
    assert sim.links[0].sent_close + held == pytest.approx(sent, rel=1e-4, abs=2 * way)
    assert (sim.flows["acked_close"] <= sim.flows["sent_close"]).all()
    assert (sim.flows["acked_close"] >= sim.flows["acked_open"]).all()


@pytest.mark.parametrize(
    ("mark_on", "nic_cnp_interval"), [("arrival", 0.0), ("departure", 0.0), ("arrival", 0.4e-6), ("departure", 0.4e-6)]
)
def test_rings_grow_behind_long_queues(mark_on: str, nic_cnp_interval: float) -> None:
    """Marks wait behind megabytes, a hundred CNP intervals long; none may be lost."""
    scheme = fc.DCQCN(
        cnp_interval="4us",
        nic_cnp_interval=nic_cnp_interval,
        rate_ai="40Gbps",
        timer="10us",
        min_rate="5Gbps",
        feedback_delay=None,
    )
    marking = fc.RED("1MB", "1MB", 1.0, mark_on=mark_on)
    scenario = resolve(fc.incast(8, scheme=scheme, marking=marking, rate="20Gbps", packet_size="4KB"))
    prepared = hybrid.prepare(scenario, hybrid.unsampled("2.5ms", None))
    sim, _ = hybrid.execute(prepared, 0)
    grown = "marks" if nic_cnp_interval else "cnps"
    assert getattr(sim, grown).shape[1] > getattr(prepared.sim, grown).shape[1] or mark_on == "departure"
    assert int(sim.flows["cnps"].sum()) == int(sim.core[0].cnps)
    packets = fc.simulate(scenario, "2.5ms", engine="packet").summary
    found = hybrid.outcome_of(prepared, sim).links[0].statistics()
    assert found["queue_bytes"]["mean"] == pytest.approx(packets["queue_bytes"]["mean"], rel=0.05)


def test_seeds_differ_and_repeat() -> None:
    scenario = fc.incast(4)
    runs = [fc.simulate(scenario, "20ms", engine="hybrid", seed=seed) for seed in (1, 1, 2)]
    assert runs[0].identical(runs[1])
    assert runs[0].summary["queue_bytes"]["mean"] != runs[2].summary["queue_bytes"]["mean"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"scheme": fc.HPCC()}, "hpcc has no hybrid side"),
        ({"scheme": fc.DCQCN(win=True)}, "win: the hybrid model of dcqcn has only win=off"),
        ({"scheme": fc.DCQCN(tcd=True)}, "tcd: the hybrid model of dcqcn has only tcd=off"),
        ({"scheme": fc.DCQCN(variant="hpcc-sim")}, "variant: the hybrid model of dcqcn has only variant=paper"),
        ({"classes": (fc.TrafficClass(), fc.TrafficClass())}, "classes: "),
        ({"multiplicity": 1.5}, "whole number"),
    ],
)
def test_what_it_does_not_model_is_refused_by_name(change: dict, word: str) -> None:
    with pytest.raises(fc.InputError, match=word):
        fc.simulate(fc.incast(2, **change), "1ms", engine="hybrid")


def test_a_nic_of_two_flows_is_refused() -> None:
    scenario = fc.incast(2)
    flows = tuple(dataclasses.replace(flow, source="a") for flow in scenario.flows)
    with pytest.raises(fc.InputError, match=r"flow 1 source: host 'a' sends flow 0 too"):
        fc.simulate(dataclasses.replace(scenario, flows=flows), "1ms", engine="hybrid")


@pytest.mark.parametrize("size", [1, 100, 999, 1000, 2000])
def test_a_flow_of_less_than_a_packet_is_a_short_one(size: int) -> None:
    scenario = fc.incast(1, size=size)
    times = [fc.simulate(scenario, "1ms", engine=engine).summary["fct_s"][0] for engine in ("hybrid", "packet")]
    assert times[0] == pytest.approx(times[1], rel=1e-9)
