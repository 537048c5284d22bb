"""The packet engine by itself: invariants on random networks, exact small cases, and refusals."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.engines.packet import layout
from fluidcc.engines.packet.build import grown_packets, prepare
from fluidcc.engines.packet.calendar import grown_calendar
from fluidcc.engines.packet.engine import run
from fluidcc.engines.packet.layout import DATA, DONE, GROW_CALENDAR, GROW_PACKETS, REFILL
from fluidcc.engines.packet.run import execute, times_of
from fluidcc.scenario.model import resolve

RATES = ["10Gbps", "25Gbps", "40Gbps", "100Gbps"]
PS = layout.PS


@st.composite
def scenarios(draw: st.DrawFn, lossless: bool = False) -> fc.Scenario:
    """A row of switches with hosts at each; flows of random schemes between them, over the row or against it."""
    switches = draw(st.integers(1, 4))
    classes = draw(st.integers(1, 3))
    delay = st.sampled_from(["0s", "100ns", "1us", "3.7us"])
    marking = st.sampled_from(
        [
            None,
            fc.RED("5KB", "50KB", 0.1),
            fc.RED("20KB", "20KB", 1.0, mark_on="departure"),
            fc.RED("2KB", "2KB", max_on="24us"),
            fc.RED("2KB", "20KB", 0.5, max_on="3us"),
        ]
    )
    links, ports = [], {}

    def link(source: str, target: str) -> int:
        if (source, target) not in ports:
            ports[source, target] = len(links)
            links.append(
                fc.Link(draw(st.sampled_from(RATES)), draw(delay), draw(marking), f"{source}>{target}", source, target)
            )
        return ports[source, target]

    flows = []
    for f in range(draw(st.integers(1, 5))):
        first, last = draw(st.integers(0, switches - 1)), draw(st.integers(0, switches - 1))
        step = 1 if last >= first else -1
        row = list(range(first, last + step, step))
        target = f"host {f}" if draw(st.booleans()) else f"sink {last}"
        path = [link(f"s{a}", f"s{b}") for a, b in itertools.pairwise(row)] + [link(f"s{last}", target)]
        scheme = draw(
            st.sampled_from(
                [
                    fc.DCQCN(timer="20us", cnp_interval="10us", alpha_timer="10us", byte_counter="20KB"),
                    fc.DCQCN(win=True),
                    fc.HPCC(),
                    fc.HPCC(reaction="per-ack", u_rate="rx", int_format="quantised"),
                    fc.HPCC(reaction="per-rtt"),
                    fc.ACC(),
                    fc.ACC(ack_rate="count", extension="printed", p_thresh=0, mark_fraction=0.5),
                    fc.ACC(extension="inflight", some_marks="increase"),
                    fc.DCQCN(tcd=True, cnp_interval="10us", ue_gain=0.3),
                    fc.TIMELY(tcd=True),
                ]
            )
        )
        flows.append(
            fc.Flow(
                tuple(path),
                scheme,
                draw(st.sampled_from(RATES)),
                start=draw(st.sampled_from([0.0, "3us", "50us"])),
                size=draw(st.sampled_from([math.inf, 1, 999, 25_000, 300_000])),
                access_delay=draw(delay),
                traffic_class=draw(st.integers(0, classes - 1)),
                source=f"source {f}",
                target=target,
            )
        )
    storms = ()
    if lossless:
        at, lasts = st.sampled_from(["0s", "5us", "40us"]), st.sampled_from(["1us", "30us", "200us"])
        storms = tuple(
            fc.Storm(links[draw(st.integers(0, len(links) - 1))].name, draw(at), draw(lasts))
            for _ in range(draw(st.sampled_from([0, 0, 1, 3])))
        )
    return fc.Scenario(
        tuple(links),
        tuple(flows),
        packet_size=draw(st.sampled_from(["1000B", "500B", "4096B"])),
        header_bytes=draw(st.sampled_from([0, 48])),
        buffer="2MB" if lossless else draw(st.sampled_from(["20KB", "200KB", "1GB"])),
        ack_interval=draw(st.sampled_from([1, 1, 4])),
        ack_queue=draw(st.sampled_from(["data", "control"])),
        pfc=fc.PFC(alpha=draw(st.sampled_from([1 / 64, 1 / 8, 1.0]))) if lossless else None,
        classes=tuple(
            fc.TrafficClass(priority=draw(st.integers(0, 1)), weight=draw(st.sampled_from([1, 2.5])))
            for _ in range(classes)
        ),
        storms=storms,
    )


def census(sim: layout.Sim) -> int:
    """Data packets in queues and on wires, by walking the lists; checks each port's counts of bytes on the way."""
    found, seen = 0, 0
    kind, wire, following = (sim.packets[name] for name in ("kind", "wire", "next"))  # quicker than record by record
    for port in sim.ports:
        for q, (head, size) in enumerate(zip(port.queues["head"], port.queues["bytes"], strict=True)):
            at, total = head, 0
            while at >= 0:
                found, seen, total = found + (kind[at] == DATA), seen + 1, total + int(wire[at])
                at = following[at]
            assert total == size >= 0
            assert (port.waiting >> q & 1) == (head >= 0)
        assert port.queues["bytes"].sum() == port.queued >= 0
        at = port.wire_head
        while at >= 0:
            found, seen = found + (kind[at] == DATA), seen + 1
            at = following[at]
    assert seen + sim.core[0].spare == len(sim.packets), "a packet is lost from, or twice in, the lists"
    return found


def check(sim: layout.Sim) -> None:
    core = sim.core[0]
    assert core.injected == core.delivered + core.dropped + census(sim)
    for node in sim.nodes:
        assert 0 <= node.used <= node.buffer
        assert node.shared_used >= 0
    for flow in sim.flows:
        assert 0 <= flow.acked <= flow.received_end <= flow.sent <= flow.total
        assert flow.received + flow.lost <= flow.sent
        assert flow.disorder == 0
        assert 0 < flow.rate <= flow.line_rate * (1 + 1e-12)


def stepped(scenario: fc.Scenario, until: float, each: int, log: int = 0) -> layout.Sim:
    """Run a scenario a few events at a time, checking everything in between."""
    scenario = resolve(scenario)
    plan = prepare(scenario, times_of(scenario, until, None, None), log)
    sim, draws = plan.sim, np.random.default_rng(1)
    sim.uniforms[:] = draws.random(len(sim.uniforms))
    while True:
        status = run(sim, plan.times.until, each)
        check(sim)
        if status == DONE:
            return sim
        if status == GROW_PACKETS:
            sim = grown_packets(sim, len(sim.packets))
        elif status == GROW_CALENDAR:
            sim = sim._replace(calendar=grown_calendar(sim.core[0], sim.calendar))
        assert status != REFILL


RANDOM = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@RANDOM
@given(scenarios())
def test_packets_are_conserved_and_queues_are_sound(scenario: fc.Scenario) -> None:
    stepped(scenario, 200e-6, 97)


@RANDOM
@given(scenarios(lossless=True))
def test_flow_control_with_computed_headroom_never_drops(scenario: fc.Scenario) -> None:
    sim = stepped(scenario, 300e-6, 499)
    assert sim.core[0].dropped == 0
    assert sim.core[0].dropped_control == 0


@settings(parent=RANDOM, max_examples=15)
@given(scenarios(), st.integers(0, 2**32))
def test_same_seed_same_bits(scenario: fc.Scenario, seed: int) -> None:
    first, second = (fc.simulate(scenario, "150us", engine="packet", seed=seed, log=True) for _ in range(2))
    for name in first.dataset.variables:
        np.testing.assert_array_equal(first.dataset[name].values, second.dataset[name].values)


@settings(parent=RANDOM, max_examples=25)
@given(scenarios())
def test_nics_keep_to_line_rate_and_windows(scenario: fc.Scenario) -> None:
    scenario = resolve(scenario)
    log = fc.simulate(scenario, "150us", engine="packet", log=True).dataset
    what, port, time = (log[f"event_{name}"].values for name in ("what", "port", "time"))
    flow, value, kind = (log[f"event_{name}"].values for name in ("flow", "value", "kind"))
    ends = log.event_end.values
    for f, each in enumerate(scenario.flows):
        mine = (what == "send") & (flow == f)
        assert (value[mine] <= scenario.wire_packet_of(each)).all(), "a window is exceeded by more than a packet"
        nic = (what == "transmit") & (port == port[mine][0]) & (kind == "data") if mine.any() else mine
        if nic.sum() > 1:
            sizes = np.diff(np.concatenate([[0], ends[nic]])) + scenario.wire_packet_of(each) - scenario.packet_size
            gaps = np.diff(time[nic])
            assert (gaps >= sizes[:-1] / each.line_rate - 1e-12).all()


def star(**options: Any) -> fc.Scenario:
    return fc.incast(2, rate="100Gbps", scheme=fc.HPCC(), **options)


def test_a_lone_packet_takes_the_time_it_takes() -> None:
    """Two stores of 1042 B and two of a 106 B ACK at 80 ps/B, four delays of 1 us."""
    trace = fc.simulate(fc.incast(1, rate="100Gbps", scheme=fc.HPCC(), size="1000B"), "20us", engine="packet")
    assert trace.summary["fct_s"] == [pytest.approx((2 * 1042 + 2 * 106) * 80e-12 + 4e-6, abs=1e-15)]
    assert trace.summary["packets"] == 1


def test_hpcc_base_rtt_with_serialisation_is_the_measured_one() -> None:
    from fluidcc.scenario.round_trips import largest_base_rtt

    scenario = fc.incast(1, rate="100Gbps", scheme=fc.HPCC(), size="1000B")
    trace = fc.simulate(scenario, "20us", engine="packet")
    assert trace.summary["fct_s"][0] == pytest.approx(largest_base_rtt(resolve(scenario)), rel=1e-12)


def test_queue_statistics_are_those_of_the_samples() -> None:
    trace = fc.simulate(star(), "200us", window="0s:200us", engine="packet", sample_interval="10ns")
    exact, sampled = trace.summary["queue_bytes"], trace["queue"].values[:, 0]
    assert exact["mean"] == pytest.approx(sampled.mean(), rel=2e-3)
    assert exact["std"] == pytest.approx(sampled.std(), rel=2e-3)
    assert exact["p95"] == pytest.approx(np.percentile(sampled, 95), rel=0.02, abs=128)
    assert exact["max"] == sampled.max()


def test_sent_bytes_and_rates_add_up() -> None:
    trace = fc.simulate(star(), "2ms", engine="packet")
    summary = trace.summary
    assert sum(summary["rate_bytes_per_s"]) == pytest.approx(summary["utilisation"] * 12.5e9, rel=1e-3)
    integral = trace.dataset.rate.isel(time=slice(1, None)).sum("time") * (2e-3 / 2000)
    assert integral.sum() == pytest.approx(float(trace.dataset.sent[-1, 0]), rel=0.01)
    share = 1000 / 1042
    assert np.allclose(summary["goodput_bytes_per_s"], np.array(summary["rate_bytes_per_s"]) * share, rtol=2e-3)


def test_strict_priority_starves_and_weights_share() -> None:
    def rates(**second: Any) -> np.ndarray:
        scenario = fc.incast(2, rate="10Gbps", scheme=fc.DCQCN(), marking=fc.RED("1GB", "1GB", 1.0))
        flows = tuple(dataclasses.replace(flow, traffic_class=i) for i, flow in enumerate(scenario.flows))
        classes = (fc.TrafficClass(), fc.TrafficClass(**second))
        scenario = dataclasses.replace(scenario, flows=flows, classes=classes)
        goodput = fc.simulate(scenario, "5ms", engine="packet").summary["goodput_bytes_per_s"]
        return np.array(goodput) / 1.25e9

    assert rates(priority=1) == pytest.approx([0, 1], abs=1e-3)
    assert rates(weight=3) == pytest.approx([0.25, 0.75], abs=1e-3)


def test_flows_of_one_nic_take_turns_and_may_start_at_their_share() -> None:
    link = fc.Link("40Gbps", name="l", source="switch", target="sink")
    flows = tuple(fc.Flow((0,), fc.DCQCN(), "10Gbps", source="host", target="sink") for _ in range(4))
    scenario = fc.Scenario((link,), flows)
    for policy in ("line", "share"):
        shared = dataclasses.replace(scenario, start_policy=policy)
        rates = np.array(fc.simulate(shared, "2ms", engine="packet").summary["rate_bytes_per_s"])
        assert rates == pytest.approx(1.25e9 / 4, rel=0.01)
    start = fc.simulate(dataclasses.replace(scenario, start_policy="share"), "50us", engine="packet")
    assert start["pacing_rate"].values[1] == pytest.approx(1.25e9 / np.arange(1, 5))


def test_a_failed_link_is_routed_around() -> None:
    links = tuple(
        fc.Link("10Gbps", name=f"{a}>{b}", source=a, target=b)
        for a, b in (("a", "x"), ("x", "b"), ("a", "y"), ("y", "b"), ("b", "sink"))
    )
    flow = fc.Flow((0, 1, 4), fc.DCQCN(), "10Gbps", source="host", target="sink")
    scenario = fc.Scenario(links, (flow,), failures=(fc.Failure("x>b", "1ms", "100us"),))
    trace = fc.simulate(scenario, "3ms", engine="packet", sample_interval="10us")
    sent = trace["sent"]
    lost = trace.summary["drops"]
    # 100 us at 10G are 125 packets; 4.6 us more are on their way to the failed link when the route changes.
    assert 125 <= lost <= 132
    broken = sent.sel(link="x>b").sel(time=2e-3, method="nearest")
    assert float(broken) == float(sent.sel(link="x>b")[-1])
    assert float(sent.sel(link="y>b")[-1]) == pytest.approx(1.25e9 * 1.9e-3, rel=0.01)
    with pytest.raises(fc.InputError, match="no path leads"):
        fc.simulate(dataclasses.replace(scenario, failures=(fc.Failure("b>sink", "1ms"),)), "2ms", engine="packet")


def test_coalesced_acks_answer_all_packets() -> None:
    one, four = (fc.simulate(star(size="1MB", ack_interval=n), "1ms", engine="packet").summary for n in (1, 4))
    assert all(t is not None for t in four["fct_s"])
    assert four["packets"] == one["packets"]
    assert (one["acks"], four["acks"]) == (2 * 1000, 2 * 250)  # two flows of 1000 packets
    assert four["events"] < 0.85 * one["events"]


def test_drops_are_counted_and_leave_a_flow_unfinished() -> None:
    scenario = fc.incast(8, rate="40Gbps", size="1MB", buffer="50KB", scheme=fc.DCQCN())
    summary = fc.simulate(scenario, "5ms", engine="packet").summary
    assert summary["drops"] > 100
    assert None in summary["fct_s"]
    assert summary["packets"] + summary["drops"] == 8000


def test_flow_control_stops_the_hosts() -> None:
    scenario = fc.incast(8, rate="40Gbps", buffer="1MB", pfc=fc.PFC(xoff="20KB"), scheme=fc.DCQCN(rate_ai=0))
    trace = fc.simulate(scenario, "1ms", engine="packet", window="0s:100us")
    assert trace.summary["drops"] == 0
    assert trace.summary["pfc_pauses"] > 0
    assert trace.summary["buffer_bytes_max"] <= 1e6


@pytest.mark.parametrize("hosts", [{}, {"source": "a", "target": "b"}], ids=["unnamed", "named"])
def test_a_class_is_so_many_senders_with_a_nic_each(hosts: dict[str, str]) -> None:
    """To the event, those of as many flows: behind one NIC a class had no bottleneck but that."""

    def run(flows: int, multiplicity: int) -> dict[str, Any]:
        scenario = fc.parking_lot(2, rate="40Gbps", multiplicity=[multiplicity, 1])
        first = dataclasses.replace(scenario.flows[0], **hosts)
        rest = [dataclasses.replace(first, source=f"a{k}", target=f"b{k}") for k in range(1, flows)]
        scenario = dataclasses.replace(scenario, flows=(first, *rest, scenario.flows[1]))
        return fc.simulate(scenario, "300us", engine="packet", window="0:300us").summary

    one, many = run(1, 8), run(8, 1)
    assert one["flows"] == many["flows"] == 9
    for name in ("events", "packets", "queue_bytes", "utilisation", "jain"):
        assert one[name] == many[name], name
    assert one["queue_bytes"]["max"] > 100e3
    assert one["rate_bytes_per_s"] == pytest.approx(
        [np.mean(many["rate_bytes_per_s"][:8]), many["rate_bytes_per_s"][8]]
    )


def test_half_a_flow_has_no_packets() -> None:
    with pytest.raises(fc.InputError, match="whole number"):
        fc.simulate(fc.incast(1, multiplicity=1.5), "1ms", engine="packet")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"buffer": "500B"}, "smaller than a packet"),
        ({"packet_size": "0.5B"}, "packet_size"),
        ({"packet_size": "1MB"}, "packet_size"),
        ({"pfc": fc.PFC()}, "unlimited"),
        ({"pfc": fc.PFC(), "buffer": "10KB"}, "headroom"),
        ({"rate": 0}, "rate"),
        ({"delay": "-1us"}, "delay"),
        ({"initial_rate": "200Gbps"}, "initial_rate"),
    ],
)
def test_bad_scenarios_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(fc.InputError, match=reason):
        fc.simulate(fc.incast(**{"rate": "100Gbps", "scheme": fc.HPCC(), **options}), "1ms", engine="packet")


def test_bad_windows_paths_and_options_are_refused() -> None:
    with pytest.raises(fc.InputError, match="initial_window"):
        fc.simulate(fc.incast(1, rate="100Gbps", scheme=fc.HPCC(initial_window="100B")), "1ms", engine="packet")
    link = [fc.Link("10Gbps", name=f"{a}{b}", source=a, target=b) for a, b in (("a", "b"), ("c", "d"), ("b", "a"))]
    for path, reason in (((0, 1), "meet|leads"), ((0, 2), "twice|loop")):
        scenario = fc.Scenario(tuple(link), (fc.Flow(path, fc.DCQCN(), "10Gbps"),))
        with pytest.raises(fc.InputError, match=reason):
            fc.simulate(scenario, "1ms", engine="packet")
    for options in ({"dt": "1us"}, {"seed": -1}, {"seed": "x"}, {"sample_interval": "1ps"}, {"window": "2ms:1ms"}):
        with pytest.raises(fc.InputError):
            fc.simulate(star(), "1ms", engine="packet", **options)
    with pytest.raises(fc.InputError, match="belong to the other engines"):
        fc.simulate(star(), "1ms", seed=1)


@pytest.mark.parametrize("builder", [fc.incast, fc.parking_lot])
def test_both_engines_know_the_round_trip_that_packets_take(builder: Any) -> None:
    """A lone packet of the longest flow returns after HPCC's T, stores and the receiver's own link included."""
    from fluidcc.scenario.round_trips import largest_base_rtt

    scenario = builder(3, rate="100Gbps", scheme=fc.HPCC(), size="1000B", start=["0s", "1ms"])
    trace = fc.simulate(scenario, "100us", engine="packet")
    assert trace.summary["fct_s"][0] == pytest.approx(largest_base_rtt(resolve(scenario)), rel=1e-12)


def test_a_nic_sends_so_many_cnps_and_no_more() -> None:
    """Four flows to one receiver, all marked: its NIC spaces the CNPs of all of them."""
    scheme = fc.DCQCN(cnp_interval="10us", nic_cnp_interval="4us", min_rate="12Gbps")
    scenario = fc.incast(4, rate="40Gbps", scheme=scheme, marking=fc.RED("0B", "0B", 1.0))
    log = fc.simulate(scenario, "1ms", engine="packet", log=True).dataset
    times = np.sort(log.event_time.values[log.event_what.values == "cnp"])
    assert len(times) > 100
    assert np.diff(times).min() > 3.9e-6  # less what one CNP waits for on its way
    alone = dataclasses.replace(scheme, nic_cnp_interval=0.0)
    free = fc.incast(4, rate="40Gbps", scheme=alone, marking=fc.RED("0B", "0B", 1.0))
    more = fc.simulate(free, "1ms", engine="packet", log=True).dataset
    assert (more.event_what.values == "cnp").sum() > 1.3 * len(times)


@pytest.mark.parametrize("nic_cnp_interval", ["4us", "3us"])
def test_a_nic_gives_its_turns_as_they_are_asked_for(nic_cnp_interval: str) -> None:
    """A flow whose interval ends as its NIC is free again does not overtake one that has waited."""
    scheme = fc.DCQCN(cnp_interval="4us", nic_cnp_interval=nic_cnp_interval, min_rate="18Gbps")
    scenario = fc.incast(3, rate="40Gbps", scheme=scheme, marking=fc.RED("0B", "0B", 1.0))
    log = fc.simulate(scenario, "1ms", engine="packet", log=True).dataset
    flows = log.event_flow.values[log.event_what.values == "cnp"]
    assert len(flows) > 240
    assert (flows[10:-3] == flows[13:]).all()  # in turn
    assert len(set(flows[10:13])) == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"failures": (fc.Failure("bottleneck", "1ms"),)}, "failures"),
        ({"scheme": fc.DCQCN(win=True)}, "win"),
        ({"scheme": fc.DCQCN(variant="hpcc-sim")}, "variant"),
    ],
)
def test_the_fluid_refuses_what_only_packets_have(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(fc.InputError, match=reason):
        fc.simulate(fc.incast(2, **{"scheme": fc.DCQCN(), **change}), "1ms")


def test_a_path_longer_than_16_bits_count() -> None:
    """A packet over 33,000 links, and its ACK back, in the time that they take."""
    links = (fc.Link("100Gbps", "1ns"),) * 33_000
    flow = fc.Flow(tuple(range(len(links))), fc.NoControl(), "100Gbps", size="1KB", access_delay="1ns")
    scenario = resolve(fc.Scenario(links, (flow,)))
    plan = prepare(scenario, times_of(scenario, 10e-3, None, 5e-3), 0)
    sim, _ = execute(plan, 0)
    hops = len(links) + 1  # with the sender's own
    assert sim.core[0].delivered == 1
    assert sim.flows[0].finish == hops * (80_000 + 5_120 + 2 * 1_000)  # ps: 1000 B there, 64 B back, the delays
