"""Lost packets and what hosts do about them: go-back-N, IRN, timeouts; wires, classes and failures that lose packets.

Each byte is given to the application once, whatever was lost; go-back-N's goodput is that of its closed form within
2 %, which was stated before anything was measured; IRN's is never less.
"""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import fluidcc as fc
from fluidcc.engines.packet import host, layout, run
from fluidcc.engines.packet.build import prepare
from fluidcc.engines.packet.recovery import round_trip
from fluidcc.engines.packet.run import execute, times_of
from fluidcc.scenario.model import resolve
from fluidcc.theory.loss_recovery import go_back_n_goodput
from tests.engines.packet.plain import plain

PACKET = 1000  # bytes
RATE = 100e9 / 8  # bytes/s
SLOT = PACKET / RATE
TIMEOUT = 100e-6
TOLERANCE = 0.02


def line(loss: float, recovery: str, *, scheme: Any = None, size: Any = math.inf, **options: Any) -> fc.Scenario:
    """A sender and a receiver behind two switches, whose link loses packets; the way back loses none."""
    links = (
        fc.Link("100Gbps", "5us", name="there", source="switch", target="far", loss=loss),
        fc.Link("100Gbps", "5us", name="back", source="far", target="switch"),
    )
    flow = fc.Flow((0,), scheme or fc.NoControl(), "100Gbps", access_delay="5us", size=size, target="receiver")
    settings = {"retransmission_timeout": TIMEOUT, "low_timeout": "50us", "loss_recovery": recovery, **options}
    return fc.Scenario(links, (flow,), **settings)


def ended(scenario: fc.Scenario, until: Any, seed: int = 1) -> layout.Sim:
    """The memory of a run at its end."""
    scenario = resolve(scenario)
    return execute(prepare(scenario, times_of(scenario, until, None, None), 0), seed)[0]


def goodput(loss: float, recovery: str, seconds: float, seed: int = 1) -> float:
    """Share of the link's packets that are acknowledged."""
    options: Any = {"window": (1e-3, seconds), "sample_interval": seconds / 20, "engine": "packet", "seed": seed}
    return fc.simulate(line(loss, recovery), seconds, **options).summary["goodput_bytes_per_s"][0] / RATE


def closed_form(loss: float) -> float:
    scenario = resolve(line(loss, "gbn"))
    return go_back_n_goodput(loss, round_trip(scenario, scenario.flows[0]) / SLOT, TIMEOUT / SLOT)


def test_goodput_of_go_back_n_is_that_of_the_closed_form() -> None:
    """One rate of loss, a second of 12.5 million slots: its standard error is 0.4 %."""
    measured = goodput(0.003, "gbn", 0.5)
    assert measured == pytest.approx(closed_form(0.003), rel=TOLERANCE)
    assert goodput(0.003, "irn", 0.1) >= measured


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "seconds"), [(1e-4, 0.5), (3e-4, 0.5), (1e-3, 0.5), (3e-3, 0.5), (1e-2, 1.0), (5e-2, 1.5)]
)
def test_goodput_at_six_rates_of_loss(loss: float, seconds: float) -> None:
    """The standard error is some 0.4 % at each; IRN is above go-back-N by more than the errors of both.

    Each loss takes a round trip of 250 slots: of a share L of the time in n losses, the error is L/sqrt(n).
    """
    measured = goodput(loss, "gbn", seconds)
    assert measured == pytest.approx(closed_form(loss), rel=TOLERANCE)
    # What IRN loses, a packet at a time, takes a fifth of the time to be known as well.
    assert goodput(loss, "irn", seconds / 5, seed=2) >= measured * (1 - 1e-4)


def test_the_closed_form_is_the_textbooks_without_timeouts() -> None:
    """And refuses what is no probability or time."""
    for loss in (0.0, 1e-4, 1e-2):
        textbook = (1 - loss) / (1 - loss + loss * 101)
        assert go_back_n_goodput(loss, 100) == pytest.approx(textbook, rel=1e-4)
        assert go_back_n_goodput(loss, 100, 1000) <= go_back_n_goodput(loss, 100)
    with pytest.raises(fc.InputError, match="loss"):
        go_back_n_goodput(1.0, 100)
    with pytest.raises(fc.InputError, match="round_trip"):
        go_back_n_goodput(0.1, 0)


@pytest.mark.parametrize("begin", [-1, 0, 3000])
def test_a_scheme_is_told_of_a_gap_and_of_nothing_else(monkeypatch: pytest.MonkeyPatch, begin: int) -> None:
    learn, told = plain(host.learn), list[tuple[Any, ...]]()
    found = SimpleNamespace(on_ack=lambda *_: begin, tell=lambda sim, *loss: told.append(loss))
    monkeypatch.setitem(learn.__globals__, "recovery", found)
    core = SimpleNamespace(recovery=layout.GO_BACK_N)
    learn(SimpleNamespace(core=[core], flows=[0], packets=[0], calendar=None, bitmaps=None), 0, 0)
    assert told == [(0, begin, layout.LOST_GAP)] * (begin >= 0)


def test_wires_lose_their_share() -> None:
    """Within 4 standard errors, on either wire of a link by itself."""
    sim = ended(line(0.02, "gbn"), "20ms")
    crossed = int(sim.core[0].delivered + sim.core[0].dropped)
    assert abs(sim.core[0].dropped - 0.02 * crossed) < 4 * math.sqrt(0.02 * 0.98 * crossed)
    assert sim.core[0].dropped_control == 0
    one = fc.incast(1, rate="100Gbps", scheme=fc.NoControl(), loss_recovery="gbn")
    both = dataclasses.replace(one, links=(dataclasses.replace(one.links[0], loss=0.02),))
    core = ended(both, "20ms").core[0]
    assert abs(core.dropped_control - 0.02 * core.acks) < 4 * math.sqrt(0.02 * core.acks) + 100  # 100 under way


@pytest.mark.parametrize("recovery", ["gbn", "irn"])
@pytest.mark.parametrize("interval", [1, 8])
@pytest.mark.parametrize("until", ["0us", "5us", "12us", "18us"])
def test_a_flow_that_loses_a_whole_window_recovers(recovery: str, interval: int, until: str) -> None:
    """A way that is down when the first, later or the last packets cross it; the other is taken 50 us later."""
    ways = (("switch", "x"), ("x", "receiver"), ("switch", "y"), ("y", "receiver"))
    links = tuple(fc.Link("100Gbps", "1us", name=f"{a}>{b}", source=a, target=b) for a, b in ways)
    flow = fc.Flow((0, 1), fc.NoControl(), "100Gbps", start="1us", size="200500B", target="receiver")
    failure = fc.Failure("x>receiver", until, "50us")
    scenario = fc.Scenario(links, (flow,), failures=(failure,), loss_recovery=recovery, ack_interval=interval)
    sim = ended(scenario, "2ms")
    assert sim.core[0].dropped > 4
    assert sim.core[0].timeouts >= 1
    found = sim.flows[0]
    assert (found.received, found.acked, found.received_end) == (200_500,) * 3
    assert 0 < found.finish <= 1e9  # ps
    lost = ended(dataclasses.replace(scenario, loss_recovery="none"), "2ms").flows[0]
    assert lost.finish < 0


@pytest.mark.parametrize("recovery", ["gbn", "irn"])
def test_the_last_packet_is_sent_again_after_the_timeout(recovery: str) -> None:
    """Of one packet that is lost half of the times: completion a round trip after a number of timeouts."""
    took = []
    for seed in range(12):
        sim = ended(line(0.5, recovery, size=PACKET), "10ms", seed=seed)
        sent = 1 + int(sim.core[0].timeouts)
        assert sim.core[0].injected == sent == 1 + sim.core[0].retransmissions
        wait = 50e-6 if recovery == "irn" else TIMEOUT  # one packet under way is few
        scenario = resolve(line(0.5, recovery))
        expected = (sent - 1) * wait + round_trip(scenario, scenario.flows[0])
        assert sim.flows[0].finish * 1e-12 == pytest.approx(expected, abs=1e-9)
        took.append(sent)
    assert max(took) > 1 == min(took)


def test_go_back_n_reports_a_gap_once_or_at_an_interval() -> None:
    """The simulator's receiver repeats a NACK, so that a packet lost twice does not wait for the timeout."""
    rare = goodput_of(line(0.05, "gbn", retransmission_timeout="2ms"))
    often = goodput_of(line(0.05, "gbn", retransmission_timeout="2ms", nack_interval="50us"))
    assert often > 3 * rare


def goodput_of(scenario: fc.Scenario) -> float:
    return fc.simulate(scenario, "50ms", engine="packet", seed=1).summary["goodput_bytes_per_s"][0]


def test_irn_has_one_bandwidth_delay_product_under_way() -> None:
    """And no more than a packet beyond it, while go-back-N has no window of its own."""
    scenario = resolve(line(0.0, "irn"))
    cap = RATE * round_trip(scenario, scenario.flows[0])
    trace = fc.simulate(fc.incast(2, rate="10Gbps", scheme=fc.NoControl(), loss_recovery="irn"), "1ms", engine="packet")
    base = resolve(fc.incast(2, rate="10Gbps", scheme=fc.NoControl()))
    each = 10e9 / 8 * round_trip(base, base.flows[0])
    assert trace.summary["queue_bytes"]["max_whole_run"] <= 2 * (each + PACKET)
    assert goodput_of(scenario) == pytest.approx(RATE, rel=0.02)
    assert ended(scenario, "1ms").flows[0].recovery_cap == pytest.approx(cap)


@pytest.mark.parametrize(("alpha", "most"), [(1.0, 100_000), (0.25, 40_000), (math.inf, 200_000)])
def test_a_queue_fills_its_share_of_the_free_buffer(alpha: float, most: int) -> None:
    """Alone it takes alpha/(1 + alpha) of the buffer: half of it with alpha = 1 (HPCC, footnote 6)."""
    scenario = fc.incast(3, rate="10Gbps", scheme=fc.NoControl(), buffer="200KB", egress_alpha=alpha, marking=None)
    summary = fc.simulate(scenario, "2ms", engine="packet").summary
    assert summary["drops"] > 0
    assert most - 2 * PACKET <= summary["queue_bytes"]["max_whole_run"] <= most


def test_lossy_classes_beside_lossless_ones() -> None:
    """PFC pauses a class and keeps all of it; the other drops and is never paused, and recovers."""
    classes = (fc.TrafficClass(), fc.TrafficClass(lossless=False))
    scenario = fc.incast(
        8,
        rate="10Gbps",
        scheme=fc.NoControl(),
        size="300KB",
        buffer="500KB",
        pfc=fc.PFC(),
        classes=classes,
        loss_recovery="gbn",
    )
    flows = tuple(dataclasses.replace(flow, traffic_class=i % 2) for i, flow in enumerate(scenario.flows))
    trace = fc.simulate(dataclasses.replace(scenario, flows=flows), "20ms", engine="packet", log=True)
    log = trace.dataset
    dropped = log.event_flow.values[log.event_what.values == "drop"]
    assert len(dropped) > 0
    assert set(dropped % 2) == {1}
    paused = log.event_value.values[log.event_what.values == "pause"]
    assert set(paused) == {1.0}  # the first queue of data
    assert None not in trace.summary["fct_s"]
    sim = ended(dataclasses.replace(scenario, flows=flows), "20ms")
    assert (sim.nodes["shared_used"] == 0).all()  # all that was counted has left
    assert (sim.nodes["used"] == 0).all()


def test_two_classes_cannot_be_left_without_flow_control() -> None:
    """Where all classes are lossy, PFC does nothing."""
    classes = (fc.TrafficClass(lossless=False),)
    scenario = fc.incast(4, rate="10Gbps", scheme=fc.NoControl(), buffer="300KB", pfc=fc.PFC(), classes=classes)
    summary = fc.simulate(scenario, "1ms", engine="packet").summary
    assert summary["pfc_pauses"] == 0 < summary["drops"]


@pytest.mark.parametrize("scheme", ["dcqcn", "hpcc", "hpcc-rx", "swift", "acc", "timely", "dctcp", "nscc", "none"])
@pytest.mark.parametrize("recovery", ["gbn", "irn"])
def test_every_scheme_recovers(scheme: str, recovery: str) -> None:
    """From wires that lose data and ACKs, and from a buffer that is too small."""
    scenario = fc.incast(
        4, rate="25Gbps", scheme=scheme, size="200KB", buffer="60KB", loss_recovery=recovery, pfc=None, ack_interval=2
    )
    scenario = dataclasses.replace(scenario, links=(dataclasses.replace(scenario.links[0], loss=0.01),))
    summary = fc.simulate(scenario, "60ms", engine="packet", seed=3).summary
    assert None not in summary["fct_s"]
    assert summary["retransmissions"] >= summary["drops"] > 0


@st.composite
def networks(draw: st.DrawFn) -> fc.Scenario:
    """Two ways between two switches, either of which may fail; loss, order of flows, spraying, buffers, classes and
    flow control as they come.
    """
    ways = (("a", "x"), ("x", "b"), ("a", "y"), ("y", "b"), ("b", "end"))
    losses = st.sampled_from([0.0, 0.0, 0.01, 0.2])
    links = tuple(
        fc.Link(draw(st.sampled_from(["10Gbps", "25Gbps"])), "1us", name=f"{a}>{b}", source=a, target=b,
                loss=draw(losses))
        for a, b in ways
    )  # fmt: skip
    classes = tuple(
        fc.TrafficClass(priority=draw(st.integers(0, 1)), lossless=draw(st.booleans()))
        for _ in range(draw(st.integers(1, 2)))
    )
    schemes = [fc.NoControl(), fc.DCQCN(), fc.HPCC(), fc.DCTCP(), fc.HPCCRx(), fc.Swift(), fc.NSCC()]
    beyond = draw(st.booleans())
    flows = tuple(
        fc.Flow(
            draw(st.sampled_from([(0, 1, 4), (2, 3, 4)])),
            draw(st.sampled_from(schemes)),
            "25Gbps",
            start=draw(st.sampled_from([0.0, 3e-6, 1e-4])),
            size=draw(st.sampled_from([1, 999, 1000, 20_500, 150_000])),
            traffic_class=draw(st.integers(0, len(classes) - 1)),
            source=f"host {i % 3}",
            target=f"far {i}" if beyond else "end",
            after=tuple(draw(st.sets(st.integers(0, i - 1), max_size=2))) if i and draw(st.booleans()) else (),
        )
        for i in range(draw(st.integers(1, 5)))
    )
    recovery = draw(st.sampled_from(["gbn", "irn", "trimming"]))
    pfc = draw(st.sampled_from([None, fc.PFC()]))
    if recovery == "trimming" and all(each.lossless for each in classes):
        pfc = None  # nothing could be trimmed
    failures = ()
    if draw(st.booleans()):
        name = draw(st.sampled_from(["a>x", "x>b", "y>b"]))
        failures = (fc.Failure(name, draw(st.sampled_from([0.0, 2e-5, 1e-4])), draw(st.sampled_from([0.0, 5e-5]))),)
    return fc.Scenario(
        links,
        flows,
        loss_recovery=recovery,
        trim_above=draw(st.sampled_from([None, "0B", "20KB"])),
        load_balancing=draw(st.sampled_from(["flow", "flow", "packet", "flowlet"])),
        ack_interval=draw(st.sampled_from([1, 1, 4])),
        ack_queue=draw(st.sampled_from(["data", "control"])),
        window_unit=draw(st.sampled_from(["wire", "payload"])),
        nack_interval=draw(st.sampled_from([None, "200us"])),
        buffer=draw(st.sampled_from(["600KB", "1GB"])),
        pfc=pfc,
        classes=classes,
        failures=failures,
    )


EVERY = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=150, deadline=None, suppress_health_check=EVERY, derandomize=True)
@given(networks(), st.integers(0, 1000))
def test_every_byte_is_delivered_once(scenario: fc.Scenario, seed: int) -> None:
    """Whatever is lost, each flow ends; its receiver has its bytes, no more; and packets are conserved."""
    scenario = resolve(scenario)
    sim = ended(scenario, 0.4, seed)
    core = sim.core[0]
    for m, flow in enumerate(sim.flows):
        assert flow.finish > 0, f"flow {m} has not ended"
        assert flow.received == flow.received_end == flow.acked == flow.sent == scenario.flows[m].size
        assert flow.received_wire == flow.acked_wire
    assert core.injected == core.delivered + core.dropped + core.trimmed
    assert core.trimmed == 0 or scenario.loss_recovery == "trimming"
    assert not sim.flows["away"].any()
    payload = sum(-(-int(f.size) // PACKET) for f in scenario.flows)
    assert core.injected == payload + core.retransmissions
    assert core.retransmissions >= core.dropped
    assert not sim.bitmaps.any() or scenario.loss_recovery != "gbn"
    assert (sim.nodes["used"] == 0).all()
    assert (sim.nodes["shared_used"] == 0).all()


def test_rates_count_what_is_sent_again() -> None:
    """A sender at line rate stays at it; what it gets acknowledged is less."""
    for recovery in ("gbn", "irn"):
        trace = fc.simulate(line(0.01, recovery), "5ms", engine="packet", seed=2)
        sent = trace.summary["rate_bytes_per_s"][0]
        assert trace["rate"].values.min() >= 0  # what is sent again is no step back
        got = trace.summary["goodput_bytes_per_s"][0]
        assert got < (0.5 if recovery == "gbn" else 0.995) * sent
        assert 0.4 * RATE < sent <= RATE * 1.001


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (
            {"loss_recovery": "selective"},
            "loss_recovery: 'selective' is not a choice; write none or gbn or irn or trimming",
        ),
        ({"retransmission_timeout": 0}, "retransmission_timeout: 0s is too small"),
        ({"loss_recovery": "gbn", "retransmission_timeout": "4us"}, "retransmission_timeout: 4us is over before"),
        ({"loss_recovery": "irn", "low_timeout": "4us"}, "low_timeout: 4us is over before"),
        ({"egress_alpha": 0}, "egress_alpha: 0 is too small"),
        ({"low_timeout_packets": 2.5}, "low_timeout_packets: 2.5 is not a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], word: str) -> None:
    with pytest.raises(fc.InputError, match=word):
        fc.simulate(fc.incast(2, **change), "10us", engine="packet")


@pytest.mark.parametrize("engine", ["fluid", "hybrid"])
def test_other_engines_refuse_losses_by_name(engine: str) -> None:
    with pytest.raises(fc.InputError, match="loss_recovery"):
        fc.simulate(fc.incast(2, loss_recovery="irn"), "1ms", engine=engine)
    scenario = fc.incast(2)
    lossy = dataclasses.replace(scenario, links=(dataclasses.replace(scenario.links[0], loss=0.1),))
    with pytest.raises(fc.InputError, match="link 0 loss"):
        fc.simulate(lossy, "1ms", engine=engine)
    with pytest.raises(fc.InputError, match="lossless"):
        fc.simulate(fc.incast(2, pfc=fc.PFC(), classes=(fc.TrafficClass(lossless=False),), buffer="9MB"), engine=engine)


def test_nothing_changes_where_nothing_is_lost() -> None:
    """With go-back-N, no loss and no drop a run is that without recovery, to the last bit, but for its timers."""
    plain = fc.incast(4, rate="25Gbps", scheme=fc.DCQCN(), size=["300KB", math.inf])
    there = dataclasses.replace(plain, loss_recovery="gbn", retransmission_timeout="10ms")
    a, b = (run.simulate(resolve(each), "2ms", seed=5) for each in (plain, there))
    for name in map(str, a.dataset):
        assert np.array_equal(a[name].values, b[name].values, equal_nan=True), name
    assert a.summary["fct_s"] == b.summary["fct_s"]
    assert b.summary["retransmissions"] == 0


def test_a_scenario_file_keeps_all_of_it(tmp_path: Any) -> None:
    scenario = line(0.01, "irn", classes=(fc.TrafficClass(lossless=False),), nack_interval="500us", egress_alpha=0.5)
    path = tmp_path / "scenario.toml"
    fc.save_scenario(scenario, path)
    again = fc.load_scenario(path)
    assert again.links[0].loss == 0.01
    assert (again.loss_recovery, again.nack_interval, again.egress_alpha) == ("irn", 500e-6, 0.5)
    assert again.classes[0].lossless is False
