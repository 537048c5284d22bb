"""NSCC's rules one by one and a whole run from its log, against the specification's text. Tolerances came first."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.bind import bind
from fluidcc.engines.packet import layout
from fluidcc.engines.packet.layout import records
from fluidcc.scenario.model import resolve
from fluidcc.scenario.parameters import resolve as resolve_fields
from fluidcc.schemes.nscc import packet as rules
from fluidcc.schemes.nscc.parameters import gains
from fluidcc.workloads.fabrics import named_topology
from tests.engines.packet.plain import plain

US, PACKET, LINE, T = 1e-6, 1000, 12.5e9, 12e-6  # of the specification's reference network: both scalings are 1
BDP = LINE * T
exactly = pytest.approx


class Sender:
    """A sender whose ACKs a test makes up; it starts at 0 with 225 KB."""

    def __init__(self, rate: float = LINE, path: dict[str, Any] | None = None, **parameters: Any) -> None:
        self.core, self.flow = records(layout.CORE, 1)[0], records(layout.FLOW, 1)[0]
        self.me = records(rules.STATE, 1)[0]
        self.flow.line_rate, self.flow.rate, self.flow.sent_wire = LINE, rate, 10_000_000
        given = {
            "largest_base_rtt": T,
            "line_rate": LINE,
            "slowest_rate": LINE,
            "window_packet": PACKET,
            "trims": False,
        }
        known: Any = SimpleNamespace(**{**given, **(path or {})})
        self.known = known
        rules.init_state(resolve_fields(fc.NSCC(**parameters)).bind(known), self.flow, self.me)
        plain(rules.begin)(self.core, self.flow, self.me)

    def lose(self, at: float, why: Any, rtt: float = 13.0, flying: int = 100_000) -> float:
        """News of a lost packet at a time [us], which was sent a round trip before; the window then."""
        self.core.now = round(at * 1e6)
        self.flow.acked_wire = self.flow.sent_wire - flying
        plain(rules.on_loss)(self.core, self.flow, self.me, PACKET, why, self.core.now - round(rtt * 1e6))
        return float(self.me.W)

    def ack(self, at: float, delay: float, marked: bool = False, covers: int = 1, flying: int = 100_000) -> float:
        """An ACK at a time [us] of packets that waited for so long [us]; the window then."""
        self.core.now = round(at * 1e6)
        self.flow.acked_wire = self.flow.sent_wire - flying
        sent = self.core.now - round((T / US + delay) * 1e6)
        observed = SimpleNamespace(marks=int(marked), covers=covers, sent=sent)
        plain(rules.on_ack)(self.core, self.flow, self.me, observed)
        return float(self.me.W)


# -- the four cases ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delay", "each"), [(3.0, 4e3 * 9 / 12), (11.0, 4e3 / 12), (12.0, 5e3), (40.0, 5e3)])
def test_without_marks_windows_grow_by_the_delay_or_fairly(delay: float, each: float) -> None:
    """proportional_increase below the target and fair_increase from it on, applied with the ninth packet."""
    sender = Sender(initial_window="100KB")
    for k in range(8):
        assert sender.ack(1.0 + k, delay) == 100e3  # adjust_period has not come, nor more than 8 packets
    assert sender.ack(9.0, delay) == exactly(100e3 + 9 * PACKET * each / 100e3, rel=1e-12)
    assert sender.ack(10.0, delay) == exactly(100e3 + 9 * PACKET * each / 100e3, rel=1e-12)  # counted anew


def test_marks_without_delay_change_nothing() -> None:
    sender = Sender(initial_window="100KB")
    assert {sender.ack(1.0 + k, 11.9, marked=True) for k in range(11)} == {100e3}
    assert sender.ack(12.0, 11.9, marked=True) == 100e3 + 150.0  # eta, once in a base RTT
    assert sender.ack(23.9, 11.9, marked=True) == 100e3 + 150.0
    assert sender.ack(24.0, 11.9, marked=True) == 100e3 + 300.0


def test_marks_with_delay_cut_by_the_average() -> None:
    """Its first sample counts whole after a base RTT; then each by the time since the last, once in a base RTT."""
    sender = Sender(initial_window="100KB", eta=0.0)
    assert sender.ack(13.0, 20.0, marked=True) == exactly(100e3 * (1 - 0.8 * 8 / 20), rel=1e-12)
    assert sender.me.average == exactly(20 * US)
    assert sender.ack(16.0, 32.0, marked=True) == exactly(68e3, rel=1e-12)
    assert sender.me.average == exactly(23 * US)  # 3 us of 12: a quarter of the difference
    assert sender.ack(25.0, 23.0, marked=True) == exactly(68e3, rel=1e-12)  # exactly a base RTT: not yet
    assert sender.ack(25.1, 35.0, marked=True) == exactly(68e3 * (1 - 0.8 * 11.1 / 23.1), rel=1e-12)


def test_a_cut_waits_for_the_average() -> None:
    """A packet beyond the target is no reason to cut while the average is below it."""
    sender = Sender(initial_window="100KB", eta=0.0)
    sender.ack(13.0, 4.0)
    before = sender.me.W
    assert sender.ack(14.0, 20.0, marked=True) == before
    assert sender.me.average == exactly((4 + 16 / 12) * US)


@pytest.mark.parametrize(("window", "cut"), [("100KB", 50e3), ("1.5KB", 1e3)])
def test_the_largest_cut_and_the_least_window(window: str, cut: float) -> None:
    sender = Sender(initial_window=window, eta=0.0, quick_adapt=False)
    assert sender.ack(200.0, 120.0, marked=True) == cut  # 1 - 0.8 * 0.9 is 0.28


# -- what else moves windows -----------------------------------------------------------------------------------


def test_an_empty_path_is_taken_fast() -> None:
    """After a window of ACKs without delay a quarter of a byte for each, until a delay or the largest window."""
    sender = Sender(initial_window="20KB", proportional_increase=0.0, eta=0.0)
    for k in range(20):
        assert sender.ack(13 + 0.08 * k, 0.9) == 20e3
    assert sender.ack(15.0, 0.9) == 20e3 + 250
    assert sender.ack(15.1, 0.0, covers=4) == 20e3 + 1250
    assert sender.ack(15.2, 1.1) == 20e3 + 1250  # a delay ends it
    for k in range(22):
        sender.ack(16 + 0.08 * k, 0.0)
    grown = sender.me.W
    assert grown > 20e3 + 1250
    sender.ack(18.0, 15.0, marked=True)  # so does a mark with a delay
    assert sender.ack(18.1, 0.0) == grown
    for k in range(5000):
        sender.ack(20 + 0.08 * k, 0.0)
    assert sender.me.W == 1.5 * BDP


def test_quick_adapt_takes_what_came_through() -> None:
    """Once a base RTT and the target, if delays exceed 4 targets and less than an eighth of the largest window came."""
    sender = Sender(eta=0.0)
    sender.ack(13.0, 50.0, marked=True)  # begins the first period, and cuts
    for k in range(9):
        assert sender.ack(15.0 + 2 * k, 50.0, marked=True) >= 225e3 / 4
    assert sender.ack(37.0, 50.0, marked=True, flying=7000) == 10e3  # what came since, this one included
    assert sender.flow.window == 9001.0
    for k in range(6):  # what was in flight tells nothing new
        assert sender.ack(38.0 + 4 * k, 60.0, marked=True, flying=7000) == 10e3
    assert sender.ack(62.0, 60.0, marked=True) == 7e3  # that was all of it, and the period is over: anew


def test_each_loss_takes_its_packet_off_the_window() -> None:
    """OnInferredLoss and OnNACK; only a trim says something of delays, and asks for Quick Adapt."""
    sender = Sender(initial_window="3KB", path={"trims": True})
    for why in (layout.LOST_GAP, layout.LOST_TIMEOUT):
        assert sender.lose(5.0, why) == 3e3 - 1e3 * (1 + (why == layout.LOST_TIMEOUT))
        assert (sender.me.average, sender.me.trigger) == (0.0, 0)
    assert sender.lose(6.0, layout.LOST_TIMEOUT) == 1e3  # no less than a packet
    sender = Sender(initial_window="100KB", path={"trims": True})
    assert sender.lose(3.0, layout.LOST_TRIMMED, rtt=11.0) == 99e3  # there is no period of Quick Adapt yet: it begins
    assert sender.me.average == exactly(3 / 12 * 12 * US)  # as if it had met a queue of the configured base RTT
    assert sender.me.least_rtt == exactly(11 * US)
    assert (sender.me.trigger, sender.flow.window) == (1, 98_001.0)
    assert sender.me.qa_end == (3 + 11 + 9) * 1_000_000


def test_a_trim_asks_for_quick_adapt() -> None:
    """At the end of the period, by a NACK or an ACK without delay; then what was in flight is ignored, NACKs too."""
    for by_nack in (True, False):
        sender = Sender(eta=0.0, path={"trims": True})
        sender.ack(13.0, 0.0)  # begins a period of 12 + 9 us
        for k in range(5):
            sender.ack(14.0 + k, 0.0)
        before = sender.me.W
        assert sender.lose(20.0, layout.LOST_TRIMMED) == before - 1e3
        if by_nack:
            assert sender.lose(34.0, layout.LOST_TRIMMED, flying=4000) == 5e3
            assert sender.lose(34.1, layout.LOST_TRIMMED) == 5e3  # 1000 of 4000
        else:
            assert sender.ack(34.0, 0.0, flying=4000) == 6e3  # the ACK's own packet came through, too
            assert sender.lose(34.1, layout.LOST_TRIMMED) == 6e3
        left = float(sender.me.W)
        for k in range(3):
            assert sender.lose(34.2 + k, layout.LOST_TRIMMED) == left - 1e3 * (k == 2)
            if k == 1:  # the fourth 1000 bytes: no longer ignored
                sender.me.ignored = 4000.0


def test_with_trimming_the_target_is_lower_and_delays_are_not_extreme() -> None:
    p = resolve_fields(fc.NSCC()).bind(Sender(path={"trims": True}).known)
    assert (p.target_delay, p.qa_threshold) == (exactly(9 * US), math.inf)
    assert gains(p).alpha == exactly(4.0 * (9 / 12) * PACKET / (9 * US))
    p = resolve_fields(fc.NSCC(target_delay="12us", qa_threshold="40us")).bind(Sender(path={"trims": True}).known)
    assert (p.target_delay, p.qa_threshold) == (exactly(12 * US), exactly(40 * US))
    scenario = resolve(fc.incast(2, scheme=fc.NSCC(), loss_recovery="trimming"))
    bound = bind(scenario, scenario.flows[0])
    assert bound.target_delay == exactly(0.75 * bound.base_rtt)


@pytest.mark.parametrize(
    ("options", "covers", "delay"),
    [({}, 20, 50.0), ({"qa_gate": 4}, 10, 50.0), ({"quick_adapt": False}, 1, 50.0), ({}, 1, 47.9)],
    ids=["enough came", "another gate", "off", "not extreme"],
)
def test_quick_adapt_stays_out(options: dict[str, Any], covers: int, delay: float) -> None:
    sender = Sender(eta=0.0, gamma=0.0, **options)
    sender.ack(13.0, delay, marked=True)
    sender.ack(30.0, delay, marked=True, covers=covers)
    assert sender.ack(37.0, delay, marked=True, covers=covers) == 225e3


@pytest.mark.parametrize(("below", "window"), [(0.0, 225e3), (1e-12, 10e3)])
def test_a_delay_of_the_threshold_is_not_extreme(below: float, window: float) -> None:
    sender = Sender(eta=0.0, gamma=0.0)
    sender.ack(13.0, 50.0, marked=True)
    sender.me.qa_threshold = sender.me.delay * (1 - below)
    assert sender.ack(37.0, 50.0, marked=True, covers=10) == window


def test_a_packet_has_to_fit_in_whole() -> None:
    """NSCC.CanSend: with W in flight at most; the engine lets a packet go while less than its limit is."""
    for window, most in (("10KB", 9000), ("10999B", 9999), ("1KB", 0)):
        sender = Sender(initial_window=window)
        assert sender.flow.rate == LINE  # no pacing
        assert most < sender.flow.window <= most + 1


def test_a_smaller_round_trip_is_the_base_rtt() -> None:
    sender = Sender(eta=0.0)
    sender.ack(13.0, -3.0)
    assert sender.me.least_rtt == exactly(9 * US)
    assert sender.me.delay == 0.0
    assert sender.me.W == 225e3 * 9 / 12  # MaxWnd goes with it
    sender.ack(14.0, 0.0)
    assert sender.me.delay == exactly(3 * US)


def test_gains_scale_with_the_network() -> None:
    """Twice the rate at half the round trip: scaling_a 1, and scaling_b by the target alone."""
    other = {"line_rate": 50e9, "slowest_rate": 25e9, "largest_base_rtt": 6e-6, "window_packet": 4096}
    me = Sender(path=other, target_delay="3us").me
    assert me.alpha == exactly(4.0 * (3 / 12) * 4096 / 3e-6)
    assert me.fair == exactly(5 * 4096)
    assert me.fast == exactly(0.25)
    assert me.eta == exactly(0.15 * 4096)
    assert me.qa_threshold == exactly(12e-6)
    assert me.max_window == exactly(1.5 * 150e3)
    double = Sender(path={"slowest_rate": 25e9}).me
    assert (double.fair, double.fast, double.eta) == exactly((10e3, 0.5, 300.0))


# -- whole runs --------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Text:
    """One sender, in the words of 3.6.13.5 and 3.6.13.6, in seconds and bytes."""

    p: Any
    cwnd: float
    base_rtt: float
    inc_bytes: float = 0.0
    received_bytes: float = 0.0
    last_adjust: float = 0.0
    last_dec: float = 0.0
    average: float = 0.0
    last_delay: float = 0.0
    fi_count: float = 0.0
    increase: bool = False
    achieved: float = 0.0
    qa_end: float = 0.0
    to_ignore: float = 0.0
    ignored: float = 0.0
    trigger_qa: bool = False

    def quick_adapt(
        self, marked: bool, delay: float, now: float, inflight: float, most: float, is_loss: bool = False
    ) -> bool:
        done = self.ignored < self.to_ignore and marked
        if not done and now >= self.qa_end - 1e-12:
            asked = self.trigger_qa or is_loss or delay > self.p.qa_threshold
            if self.qa_end and asked and self.achieved < most / 8:
                self.cwnd, self.to_ignore, self.ignored = max(self.achieved, self.p.mtu), inflight, 0.0
                done, self.trigger_qa = True, False
            self.achieved, self.qa_end = 0.0, now + self.base_rtt + self.p.target_delay
        return done

    def refuse(self, now: float, rtt: float, inflight: float) -> str:
        """NSCC.OnNACK of a trimmed packet."""
        p = self.p
        self.base_rtt = min(self.base_rtt, rtt)
        self.average += min(1.0, (now - self.last_delay) / p.base_rtt) * (p.base_rtt - self.average)
        self.last_delay = now
        self.ignored, self.trigger_qa = self.ignored + p.mtu, True
        if self.quick_adapt(True, 0.0, now, inflight, 1.5 * p.bdp * self.base_rtt / p.base_rtt, is_loss=True):
            self.inc_bytes = self.received_bytes = 0.0
            return "adapt"
        self.cwnd = max(self.cwnd - p.mtu, p.mtu)
        return "cut"

    def acknowledge(self, now: float, rtt: float, marked: bool, inflight: float) -> str:
        p, g, newly = self.p, gains(self.p), self.p.mtu
        for name in ("ignored", "received_bytes", "achieved"):
            setattr(self, name, getattr(self, name) + newly)
        self.base_rtt = min(self.base_rtt, rtt)
        delay, most = rtt - self.base_rtt, 1.5 * p.bdp * self.base_rtt / p.base_rtt
        self.average += min(1.0, (now - self.last_delay) / p.base_rtt) * (delay - self.average)
        self.last_delay = now
        if self.quick_adapt(marked, delay, now, inflight, most):
            self.inc_bytes = self.received_bytes = 0.0
            return "adapt"
        case = "hold"
        if not marked and delay >= p.target_delay:
            self.inc_bytes, case = self.inc_bytes + g.fair * newly, "fair"
        elif not marked:
            case = "proportional"
            self.fi_count = self.fi_count + newly if delay < 1e-6 else 0.0
            self.increase = delay < 1e-6 and (self.increase or self.fi_count > self.cwnd)
            if self.increase:
                self.cwnd, case = min(self.cwnd + newly * g.fast, most), "fast"
            else:
                self.inc_bytes += g.alpha * newly * (p.target_delay - delay)
        elif delay >= p.target_delay:
            self.increase, self.fi_count = False, 0.0
            if self.average > p.target_delay and now - self.last_dec > self.base_rtt + 1e-15:
                self.cwnd *= max(1 - p.gamma * (self.average - p.target_delay) / self.average, p.max_md_jump)
                self.cwnd, self.last_dec, case = max(self.cwnd, p.mtu), now, "cut"
        late = now - self.last_adjust >= p.base_rtt
        if late or self.received_bytes > 8 * p.mtu:
            self.cwnd += self.inc_bytes / self.cwnd
            if late:
                self.last_adjust, self.cwnd = now, self.cwnd + g.eta
            self.cwnd, self.inc_bytes, self.received_bytes = min(self.cwnd, most), 0.0, 0.0
        return case


@pytest.mark.parametrize(("flows", "delay", "until"), [(4, "3us", "1ms"), (16, "1us", "600us")])
def test_packets_follow_the_text(flows: int, delay: str, until: str) -> None:
    """From the log of a run: what each packet of a flow was let go by is the text's window, to a byte."""
    scenario = fc.incast(flows, rate="100Gbps", delay=delay, scheme="nscc", start=["0"] * (flows - 1) + ["50us"])
    trace = fc.simulate(scenario, until, engine="packet", log=True, seed=3)
    known = resolve(scenario)
    p = bind(known, known.flows[1])
    log = trace.dataset
    rows = np.flatnonzero((log.event_flow.values == 1) & (log.event_kind.values != "cnp"))
    columns = (log[f"event_{name}"].values[rows] for name in ("time", "what", "end", "value"))
    text = Text(p, p.max_window, p.base_rtt)
    began, marks, seen = {}, {}, {"hold": 0, "fair": 0, "proportional": 0, "cut": 0, "fast": 0, "adapt": 0}
    sent = acked = let_go = 0
    for time, what, end, value in zip(*columns, strict=True):
        if what == "send":
            sent, began[int(end)] = int(end), float(time)
            limit = sent - acked - float(value)
            assert limit == pytest.approx(math.floor(text.cwnd) - p.mtu + 1, abs=1.001)
            let_go += 1
        elif what == "receive" and int(end) not in marks:
            marks[int(end)] = value > 0
        elif what == "acknowledge":
            acked = int(end)
            seen[text.acknowledge(float(time), float(time) - began[acked], marks[acked], sent - acked)] += 1
    assert let_go > 200
    assert min(seen["hold"], seen["proportional"], seen["cut"]) > 5
    assert (seen["adapt"] > 5) == (flows == 16)


@pytest.mark.parametrize(("flows", "above"), [(8, None), (32, "40KB")])
def test_packets_follow_the_text_with_trimming(flows: int, above: str | None) -> None:
    """The same where packets are trimmed: each goes, new or again, by the text's window, to a byte.

    ACKs come in the order in which a flow's packets reached the receiver; NACKs name their own.
    """
    scenario = fc.incast(flows, rate="100Gbps", delay="3us", scheme="nscc", preset="paper", loss_recovery="trimming",
                         trim_above=above)  # fmt: skip
    trace = fc.simulate(scenario, "400us", engine="packet", log=True, seed=3)
    known = resolve(scenario)
    p = bind(known, known.flows[1])
    log = trace.dataset
    rows = np.flatnonzero(log.event_flow.values == 1)
    columns = (log[f"event_{name}"].values[rows] for name in ("time", "what", "kind", "end", "value"))
    text = Text(p, p.max_window, p.base_rtt)
    began: dict[int, float] = {}
    answers: list[tuple[int, bool]] = []  # what has come whole, and has not been answered
    seen = {"nack cut": 0, "nack adapt": 0, "adapt": 0, "proportional": 0}
    flying = let_go = highest = again = 0
    for time, what, kind, end, value in zip(*columns, strict=True):
        if what == "send":
            flying += PACKET
            assert flying - float(value) == pytest.approx(math.floor(text.cwnd) - p.mtu + 1, abs=1.001)
            began[int(end)] = float(time)
            let_go, again, highest = let_go + 1, again + (end <= highest), max(highest, int(end))
        elif what == "receive" and kind == "data":
            answers.append((int(end), value > 0))
        elif what == "acknowledge":
            flying -= PACKET
            if kind == "nack":
                case = "nack " + text.refuse(float(time), float(time) - began[int(end)], flying)
            else:
                which, marked = answers.pop(0)
                case = text.acknowledge(float(time), float(time) - began[which], marked, flying)
            seen[case] = seen.get(case, 0) + 1
    assert let_go > 200 < 20 * again
    assert min(seen["nack cut"], seen["adapt"] + seen["nack adapt"]) > 5


@pytest.mark.parametrize("delay", ["1us", "3us"])
def test_a_flow_alone_fills_the_link(delay: str) -> None:
    """Without a queue: its NIC is as fast as the link."""
    found = fc.simulate(
        fc.incast(1, delay=delay, scheme="nscc", preset="paper", rate="100Gbps"), "1ms", engine="packet"
    )
    assert found.summary["utilisation"] == pytest.approx(1.0, abs=1e-3)
    assert found.summary["queue_bytes"]["max_whole_run"] <= PACKET


def test_a_small_window_takes_an_empty_link() -> None:
    """From a tenth of the BDP: a quarter more in each round trip, 1.25^15 of it, fills the link within 25 of them."""
    scenario = fc.incast(1, delay="3us", rate="100Gbps", scheme=fc.NSCC(initial_window="15KB"))
    found = fc.simulate(scenario, "400us", engine="packet", window="300us:400us")
    assert found.summary["utilisation"] == pytest.approx(1.0, abs=1e-3)


def test_an_incast_is_adapted_to_at_once() -> None:
    """32 windows of 1.5 BDPs are set to what the link lets through in a base RTT and the target, 9.5 KB each.

    Within two packets, and they stay there while the burst drains, in 48 base RTTs; from a few later on the queue is
    below twice the target's. Without Quick Adapt they are halved in every base RTT or so of that, down to a packet.
    """
    base, windows = 12.17e-6, {}
    for adapts in (True, False):
        scheme = fc.NSCC(quick_adapt=adapts)
        trace = fc.simulate(fc.incast(32, rate="100Gbps", delay="3us", scheme=scheme), "1.2ms", engine="packet")
        windows[adapts] = trace["window"].sel(time=300e-6, method="nearest").values
        queue = trace["queue"].sel(time=slice(60 * base, 70 * base)).values
        assert queue.max() < 2 * LINE * base
    assert windows[True] == pytest.approx(np.full(32, LINE * 2 * base / 32), abs=2 * PACKET)
    assert windows[False].max() < 2 * PACKET


def test_unequal_windows_become_equal() -> None:
    """Cuts are in proportion and eta is not: differences shrink by e in W/eta periods, 3 ms; after 12 below a tenth."""
    rates = ["100Gbps"] * 4 + ["5Gbps"] * 4
    scenario = fc.incast(8, rate="100Gbps", delay="3us", scheme=fc.NSCC(quick_adapt=False), initial_rate=rates)
    trace = fc.simulate(scenario, "14ms", engine="packet", window="12ms:14ms")
    assert trace.summary["jain"] > 0.99


@pytest.mark.parametrize("spread", ["flow", "packet"])
def test_one_window_for_all_paths(spread: str) -> None:
    """Eight hosts send 1 MB to eight others over eight spines, sprayed or by flow.

    Sprayed, each ends within a fifth of its time alone; on one path each some share a link, and need longer.
    """
    fabric = named_topology("leaf-spine:2x8x8", fabric_rate="100Gbps")
    rows = [(source, 8 + source, 0, "1MB") for source in range(8)]
    scenario = fabric.scenario(rows, scheme="nscc", preset="hpcc-eval", load_balancing=spread)
    found = fc.simulate(scenario, "1ms", engine="packet", seed=2)
    took = np.array(found.summary["fct_s"])
    assert np.isfinite(took).all()
    assert (took.max() < 1.2 * (1e6 / LINE + 12e-6)) == (spread == "packet")
