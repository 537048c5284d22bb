"""What flow control does: whom it pauses, how far that spreads, storms of PAUSE frames, and deadlocks.

What is exact is compared so; the figures of ACC's chain (Zhang et al., NSDI 2024, section 6.3) are none or some. The
victim and the unfairness of DCQCN's paper are in the reproduced figures dcqcn-fig3 and dcqcn-fig4.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.builders import toml_file as scenario_file
from fluidcc.engines.packet import layout
from fluidcc.engines.packet.build import PreparedRun, grown_packets, prepare
from fluidcc.engines.packet.calendar import grown_calendar
from fluidcc.engines.packet.engine import run
from fluidcc.engines.packet.record import stuck_ports
from fluidcc.engines.packet.run import execute, times_of
from fluidcc.scenario.model import resolve

PS = layout.PS
GIGABIT = 1e9 / 8
SWITCHES = ["SW1", "SW2", "SW3"]


# -- ACC's chain ---------------------------------------------------------------------------------------------

CHAIN = {
    "dcqcn": (fc.DCQCN(initial_alpha=0.05), fc.RED("5KB", "200KB", 0.01)),
    "hpcc": (fc.HPCC(), None),
    "acc": (fc.ACC(extension="inflight"), None),
}


@pytest.fixture(scope="module")
def chains() -> dict[str, fc.Trace]:
    made = {}
    for name, (scheme, marking) in CHAIN.items():
        scenario = fc.chain(15, scheme=scheme, marking=marking, buffer="32MB", initial_rate="50Gbps")
        made[name] = fc.simulate(scenario, "3ms", window="1ms:3ms", engine="packet")
    return made


@pytest.mark.parametrize(("name", "spreads"), [("dcqcn", True), ("hpcc", False), ("acc", False)])
def test_pauses_spread_along_the_chain_with_dcqcn_only(chains: dict[str, fc.Trace], name: str, spreads: bool) -> None:
    """Section 6.3, Fig. 11: "ACC and HPCC receive no PAUSEs in SW1 to SW3"."""
    summary = chains[name].summary
    received = summary["pfc"]["pauses_received"]
    assert [received[switch] > 0 for switch in SWITCHES] == [spreads] * 3
    assert received["hosts"] > 0  # the bursts' own
    assert summary["drops"] == 0
    assert summary["pfc"]["deadlock_s"] is None
    assert 0 < summary["pfc"]["suppressed"]["mean"] < summary["pfc"]["suppressed"]["max"] < 1
    depths = summary["pfc"]["depths"]
    assert (sum(depths[1:]) > 0) == spreads
    assert summary["pfc_pauses"] - 20 <= sum(received.values()) <= summary["pfc_pauses"]  # 20 ports may be told


def test_the_victim_suffers_with_dcqcn_and_not_with_acc(chains: dict[str, fc.Trace]) -> None:
    """F0 crosses no congested port. Of its 50 Gb/s it keeps with ACC all, and with DCQCN loses a third at least."""
    rates = {name: chains[name].summary["rate_bytes_per_s"][0] / (50 * GIGABIT) for name in chains}
    assert rates["dcqcn"] < 2 / 3
    assert rates["acc"] > 0.95
    for trace in chains.values():
        queue = trace["queue"].sel(link="SW4->R0").values
        assert queue.max() <= 2 * 1100  # its own port is never congested


# -- counts --------------------------------------------------------------------------------------------------


def row(slow: str = "1kbps", **network: Any) -> fc.Scenario:
    """NIC -> a -> b -> c -> sink, the last of a rate at which nothing leaves."""
    ends, rates = ["a", "b", "c", "sink"], ["10Gbps", "10Gbps", slow]
    links = tuple(
        fc.Link(rate, name=f"{a}>{b}", source=a, target=b) for a, b, rate in zip(ends, ends[1:], rates, strict=False)
    )
    flow = fc.Flow((0, 1, 2), fc.NoControl(), "10Gbps", source="host", target="sink")
    return fc.Scenario(links, (flow,), **{"buffer": "1MB", "pfc": fc.PFC(xoff="20KB"), **network})


def test_depths_are_hops_from_the_root() -> None:
    """One pause each of b>c, a>b and the NIC, one and two and three hops from where nothing leaves."""
    log = fc.simulate(row(), "1ms", engine="packet", log=True)
    events = log.dataset.event_what.values == "pause"
    assert list(log.dataset.event_port.values[events]) == ["b -> c", "a -> b", "host -> a"]
    pfc = log.summary["pfc"]
    assert pfc["depths"] == [1, 1, 1] + [0] * (layout.DEPTHS - 4)
    assert pfc["pauses_received"] == {"a": 1, "b": 1, "c": 0, "hosts": 1}
    assert log.summary["pfc_pauses"] == 3
    # 3 of 8 ports, the hosts' among them, but all of 10 Gb/s but the last pair.
    total = 6 * 10 * GIGABIT + 2 * 125
    assert pfc["suppressed"]["max"] == pytest.approx(30 * GIGABIT / total, rel=1e-12)


def heeded(log: Any, scenario: fc.Scenario, kind: str) -> dict[str, np.ndarray]:
    """When ports observed PAUSE or RESUME [s]: frames of 64 B that began to be sent the other way, and their delay."""
    chosen = (log.event_what.values == "transmit") & (log.event_kind.values == kind)
    observed: dict[str, list[float]] = {}
    for port, time in zip(log.event_port.values[chosen], log.event_time.values[chosen], strict=True):
        source, target = port.split(" -> ")
        observed.setdefault(f"{target} -> {source}", []).append(time + 64 / (10 * GIGABIT) + 1e-6)
    until = float(log.time.values[-1])
    return {port: np.array([t for t in times if t <= until]) for port, times in observed.items()}


def test_suppressed_share_is_that_of_the_log() -> None:
    """Three hosts into one port of four ports' rate: each port's paused time by hand, over all ports' rates."""
    scenario = fc.incast(3, rate="10Gbps", scheme=fc.NoControl(), buffer="1MB", pfc=fc.PFC(xoff="20KB"))
    trace = fc.simulate(scenario, "300us", engine="packet", log=True)
    stops, goes = (heeded(trace.dataset, scenario, kind) for kind in ("pause", "resume"))
    assert len(stops) == 3
    paused = 0.0
    for port, begins in stops.items():
        ends = np.append(goes[port], 300e-6)[: len(begins)]
        assert (ends > begins).all()
        paused += (ends - begins).sum()
    pfc = trace.summary["pfc"]
    assert pfc["suppressed"]["mean"] == pytest.approx(paused / (8 * 300e-6), rel=1e-9)
    assert trace.summary["pfc_paused_s"] == pytest.approx(paused, rel=1e-9)
    assert pfc["suppressed"]["max"] == pytest.approx(3 / 8, rel=1e-12)
    assert pfc["pauses_received"]["hosts"] == sum(map(len, stops.values()))
    sent = (trace.dataset.event_what.values == "pause").sum()
    assert trace.summary["pfc_pauses"] == sent
    assert pfc["depths"][0] == pfc["pauses_received"]["hosts"]


def test_suppressed_share_does_not_depend_on_the_samples() -> None:
    """Nothing happens at the end of this run but samples: the time up to its end counts all the same."""
    means = [
        fc.simulate(row(), "1ms", window="0s:100us", engine="packet", sample_interval=spacing).summary["pfc"]
        for spacing in ("1us", "700us")
    ]
    assert means[0] == means[1]


# -- storms --------------------------------------------------------------------------------------------------


def case_1(*storms: fc.Storm, size: Any = math.inf, **network: Any) -> fc.Scenario:
    """HPCC's Case-1: flow 0 to sink 0, whose port is stormed, and flow 1 to sink 1, over the same link."""
    links = tuple(
        fc.Link("10Gbps", name=f"{a}>{b}", source=a, target=b)
        for a, b in (("a", "b"), ("b", "sink 0"), ("b", "sink 1"))
    )
    flows = tuple(
        fc.Flow(
            (0, i + 1), fc.NoControl(), "10Gbps", size=size, initial_rate="4Gbps", source=f"h{i}", target=f"sink {i}"
        )
        for i in range(2)
    )
    network = {"buffer": "1MB", "pfc": fc.PFC(xoff="20KB"), **network}
    return fc.Scenario(links, flows, storms=storms, **network)


def test_a_storm_stops_its_flow_and_spreads_to_another() -> None:
    trace = fc.simulate(case_1(fc.Storm("b>sink 0", "200us")), "2ms", window="1ms:2ms", engine="packet")
    summary = trace.summary
    assert summary["rate_bytes_per_s"] == [0.0, 0.0]  # flow 1 has nothing to do with sink 0
    assert summary["drops"] == 0
    pfc = summary["pfc"]
    assert pfc["depths"][:4] == [1, 1, 2, 0]  # the port itself, a>b, both NICs
    assert pfc["pauses_received"] == {"a": 1, "b": 0, "hosts": 2}  # a storm's frames are not of our switches
    assert pfc["deadlock"] == "a->b, b->sink 0"
    assert pfc["deadlock_s"] == pytest.approx(200e-6, abs=1e-12)
    before = trace["delivered"].sel(time=200e-6, method="nearest").values
    assert (before > 0.9 * 0.5e9 * 200e-6 - 2 * 5000).all()


def test_without_a_shared_port_a_storm_stays_where_it_is() -> None:
    """Flow 0 ends before the storm: nothing is at the port."""
    scenario = case_1(fc.Storm("b>sink 0", "200us"))
    first = dataclasses.replace(scenario.flows[0], size="20KB")
    scenario = dataclasses.replace(scenario, flows=(first, scenario.flows[1]))
    summary = fc.simulate(scenario, "1ms", window="500us:1ms", engine="packet").summary
    assert summary["rate_bytes_per_s"][1] == pytest.approx(4 * GIGABIT, rel=0.01)
    assert summary["pfc"]["pauses_received"] == {"a": 0, "b": 0, "hosts": 0}


def test_a_storm_of_finite_duration_is_recovered_from() -> None:
    """Both flows lose at most its 300 us, and the time in which the backlog drains."""
    scenario = case_1(fc.Storm("b>sink 0", "100us", "300us"), size="250KB")
    summary = fc.simulate(scenario, "3ms", engine="packet").summary
    end_storm = fc.simulate(case_1(size="250KB"), "3ms", engine="packet").summary
    assert summary["drops"] == 0
    for stormed, without in zip(summary["fct_s"], end_storm["fct_s"], strict=True):
        assert without <= stormed <= without + 300e-6 + 20e-6
    assert summary["fct_s"][0] > end_storm["fct_s"][0] + 100e-6
    assert summary["pfc"]["deadlock_s"] is None


def test_as_many_storms_as_there_are() -> None:
    """More events at the start than a calendar has room for by default; at once they are one."""
    one = fc.simulate(case_1(fc.Storm("b>sink 0", "100us", "300us"), size="250KB"), "3ms", engine="packet")
    many = fc.simulate(case_1(*[fc.Storm("b>sink 0", "100us", "300us")] * 1500, size="250KB"), "3ms", engine="packet")
    assert many.summary["fct_s"] == one.summary["fct_s"]
    apart = [fc.Storm("b>sink 0", f"{1000 + k}us", "1ns") for k in range(1500)]
    assert fc.simulate(case_1(*apart, size="250KB"), "3ms", engine="packet").summary["fct_s"][0] < 1e-3


def test_a_storm_that_will_end_is_not_for_ever() -> None:
    scenario = case_1(fc.Storm("b>sink 0", "100us", "1ms"))
    summary = fc.simulate(scenario, "900us", engine="packet").summary
    assert summary["pfc"]["suppressed"]["max"] > 0
    assert summary["pfc"]["deadlock_s"] is None
    assert summary["pfc"]["deadlock"] is None


def test_storms_may_overlap() -> None:
    """Until 500 us, although the first ends at 200 us."""
    storms = fc.Storm("b>sink 0", "100us", "100us"), fc.Storm("b>sink 0", "150us", "350us")
    sent = fc.simulate(case_1(*storms), "1ms", engine="packet", sample_interval="1us")["sent"].sel(link="b>sink 0")
    values = sent.values
    assert values[101] == values[499]
    assert values[510] > values[499]


def test_the_end_of_a_storm_does_not_let_a_paused_port_go() -> None:
    """b has paused a>b for its own reasons when the storm on a>b ends; what then came would have no room.

    Headroom is just what the paper's formula gives, so that a port that goes on by itself loses packets.
    """
    links = (
        fc.Link("10Gbps", name="a>b", source="a", target="b"),
        fc.Link("100Mbps", name="b>sink", source="b", target="sink"),
    )
    flows = (fc.Flow((0, 1), fc.NoControl(), "10Gbps", source="host", target="sink"),)
    storms = tuple(fc.Storm("a>b", f"{t}us", "5us") for t in range(50, 200, 10))
    scenario = fc.Scenario(links, flows, buffer="100KB", pfc=fc.PFC(xoff="20KB"), storms=storms)
    summary = fc.simulate(scenario, "1ms", engine="packet").summary
    assert summary["drops"] == 0
    assert summary["packets"] == pytest.approx(12.5, abs=2)


def test_storms_need_flow_control_and_a_link() -> None:
    with pytest.raises(fc.InputError, match="storms: without flow control"):
        resolve(case_1(fc.Storm("b>sink 0", "1us"), pfc=None))
    with pytest.raises(fc.InputError, match="storm 0 link"):
        resolve(case_1(fc.Storm("b>c", "1us")))
    for bad, name in ((fc.Storm("a>b", "-1us"), "at"), (fc.Storm("a>b", "1us", "0s"), "duration")):
        with pytest.raises(fc.InputError, match=f"storm 0 {name}"):
            resolve(case_1(bad))


@pytest.mark.parametrize("duration", [math.inf, "300us"])
def test_storms_survive_their_file(duration: Any, tmp_path: Any) -> None:
    scenario = resolve(case_1(fc.Storm("b>sink 0", "100us", duration)))
    path = tmp_path / "storm.toml"
    path.write_text(scenario_file.to_toml(scenario))
    again = scenario_file.load_scenario(path)
    assert again == scenario
    one, other = (fc.simulate(each, "600us", engine="packet").summary for each in (scenario, again))
    drop = {"wall_s", "compile_s"}
    assert {k: v for k, v in one.items() if k not in drop} == {k: v for k, v in other.items() if k not in drop}


# -- deadlocks -----------------------------------------------------------------------------------------------


def ring(switches: int, flows: int, **network: Any) -> fc.Scenario:
    """Switches in a circle, and flows from a host at each over two links of it: each waits for the next.

    At line rate each link is asked for 20 Gb/s, half of it from the link before: that is paused, all are, and what
    stands at each waits for the next. With one flow less the circle is cut: its last link is not asked for more.
    """
    links = tuple(
        fc.Link("10Gbps", name=f"r{i}", source=f"s{i}", target=f"s{(i + 1) % switches}") for i in range(switches)
    )
    made = tuple(
        fc.Flow((i, (i + 1) % switches), fc.NoControl(), "10Gbps", source=f"h{i}", target=f"t{(i + 2) % switches}")
        for i in range(flows)
    )
    return fc.Scenario(links, made, **{"buffer": "1MB", "pfc": fc.PFC(xoff="20KB"), **network})


def ran(scenario: fc.Scenario, until: str) -> PreparedRun:
    scenario = resolve(scenario)
    plan = prepare(scenario, times_of(scenario, until, None, None), 0)
    return dataclasses.replace(plan, sim=execute(plan, 0)[0])


def further(sim: layout.Sim, until: int) -> layout.Sim:
    """Run on to a time [ps]."""
    while (status := run(sim, until, 1 << 18)) != layout.DONE:
        if status == layout.GROW_PACKETS:
            sim = grown_packets(sim, len(sim.packets))
        elif status == layout.GROW_CALENDAR:
            sim = sim._replace(calendar=grown_calendar(sim.core[0], sim.calendar))
        assert status != layout.REFILL
    return sim


@pytest.mark.parametrize("switches", [3, 4, 5])
@pytest.mark.parametrize("pfc", [fc.PFC(xoff="20KB"), fc.PFC(alpha=1 / 16)])
def test_a_ring_deadlocks(switches: int, pfc: fc.PFC) -> None:
    plan = ran(ring(switches, switches, pfc=pfc), "2ms")
    trace = fc.simulate(ring(switches, switches, pfc=pfc), "2ms", engine="packet")
    found = trace.summary["pfc"]
    expected = sorted(f"s{i}->s{(i + 1) % switches}" for i in range(switches))
    assert sorted(found["deadlock"].split(", ")) == expected
    assert trace.summary["drops"] == 0
    # From when the last port of the circle was paused; whoever is behind it is paused later.
    closes = max(int(plan.sim.ports[i].paused_since) for i in range(switches)) / PS
    assert found["deadlock_s"] == pytest.approx(closes, abs=1e-12)
    assert (trace["sent"].values[-1000:] == trace["sent"].values[-1]).all()
    # Running on ten times as long sends no further byte over these ports.
    stuck, sent = stuck_ports(plan.sim), plan.sim.ports["queues"]["sent"].copy()
    assert {i for i, _ in stuck} >= set(range(switches))
    sim = further(plan.sim, 20 * PS // 1000)
    for i, q in stuck:
        assert sim.ports[i].queues[q].sent == sent[i, q]
    assert stuck_ports(sim) == stuck


@pytest.mark.parametrize("switches", [3, 4, 5])
def test_a_ring_that_is_cut_does_not_deadlock(switches: int) -> None:
    """Paused again and again, but each pause ends: at no moment is one called a deadlock."""
    seen = 0
    for until in range(50, 450, 20):
        plan = ran(ring(switches, switches - 1), f"{until}us")
        assert stuck_ports(plan.sim) == set()
        seen += bool(plan.sim.ports["paused"][:switches].any())
    assert seen >= 5, "the runs end in pauses of the ring's ports"
    summary = fc.simulate(ring(switches, switches - 1), "2ms", engine="packet").summary
    assert summary["pfc"]["deadlock_s"] is None
    assert summary["utilisation"] > 0.5


@st.composite
def rings(draw: st.DrawFn) -> fc.Scenario:
    """Flows of finite size over up to all but one of a ring's links, with large and small buffers."""
    switches = draw(st.integers(3, 5))
    rates = [draw(st.sampled_from(["10Gbps", "25Gbps"])) for _ in range(switches)]
    marking = draw(st.sampled_from([None, fc.RED("2KB", "2KB", max_on="24us")]))
    links = tuple(
        fc.Link(rate, draw(st.sampled_from(["0s", "1us"])), marking, f"r{i}", f"s{i}", f"s{(i + 1) % switches}")
        for i, rate in enumerate(rates)
    )
    classes = draw(st.integers(1, 2))
    flows = []
    for f in range(draw(st.integers(switches - 1, 2 * switches))):
        first, hops = draw(st.integers(0, switches - 1)), draw(st.integers(1, switches - 1))
        path = tuple((first + h) % switches for h in range(hops))
        scheme = draw(st.sampled_from([fc.NoControl(), fc.NoControl(), fc.DCQCN(), fc.ACC()]))
        flows.append(
            fc.Flow(
                path,
                scheme,
                "10Gbps",
                start=draw(st.sampled_from([0.0, "20us"])),
                size=draw(st.sampled_from(["20KB", "200KB", "400KB"])),
                source=f"h{f}",
                target=f"t{(first + hops) % switches}",
                traffic_class=draw(st.integers(0, classes - 1)),
            )
        )
    pfc = draw(
        st.sampled_from(
            [
                fc.PFC(xoff="10KB"),
                fc.PFC(xoff="20KB", xon_gap="0B", reserve="4KB"),
                *(fc.PFC(alpha=2.0**-k, xon_gap="500B") for k in range(-1, 7)),
                fc.PFC(alpha=1 / 4, reserve="2KB"),
                fc.PFC(alpha=1.0),
            ]
        )
    )
    storms = []
    for link in draw(st.sampled_from([[], [], ["r0"], ["r0", "r1"], ["r1", "r1"]])):
        at, duration = draw(st.sampled_from(["10us", "60us", "150us"])), draw(st.sampled_from(["5us", "80us"]))
        storms.append(fc.Storm(link, at, duration))
    buffer = draw(st.sampled_from(["150KB", "250KB", "400KB"]))
    each = fc.TrafficClass()
    return fc.Scenario(links, tuple(flows), buffer=buffer, pfc=pfc, classes=(each,) * classes, storms=tuple(storms))


@settings(max_examples=100)
@given(rings())
def test_what_is_called_a_deadlock_is_one_and_no_other_is(scenario: fc.Scenario) -> None:
    """Against running on: what is stuck sends nothing more; and when nothing moves any more, what is left is stuck."""
    plan = ran(scenario, "50us")
    sim, sent, stuck = plan.sim, plan.sim.ports["queues"]["sent"].copy(), set()
    for until in (50, 100, 150, 200, 300, 500, 1000, 2000):
        sim = further(sim, until * 1_000_000)
        for i, q in stuck:
            assert sim.ports[i].queues[q].sent == sent[i, q]
        now = stuck_ports(sim)
        assert stuck <= now
        sent, stuck = sim.ports["queues"]["sent"].copy(), now
    sim = further(sim, 50 * PS // 1000)  # all of it takes 4 ms at the slowest
    assert sim.core[0].dropped == 0
    left = int(sim.ports["queued"].sum())
    assert (stuck_ports(sim) != set()) == (left > 0)
    if left == 0:
        assert (sim.flows["received"] == sim.flows["total"]).all()
