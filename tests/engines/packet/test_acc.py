"""ACC's sender: Algorithm 1 line by line on records made by hand, then whole runs.

By hand: 12.5 GB/s, T = 10 us, packets of 1000 B; so line rate sends 125 kB in a period. Rates and times are compared to
1e-12, and picoseconds are whole. What runs may be off by is stated where they are compared.
"""

from __future__ import annotations

import dataclasses
import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.engines.packet import layout
from fluidcc.engines.packet.calendar import new_calendar
from fluidcc.engines.packet.layout import PS, records
from fluidcc.scenario.model import resolve
from fluidcc.scenario.parameters import resolve as resolve_fields
from fluidcc.schemes.acc import PRESETS
from fluidcc.schemes.acc import packet as acc
from fluidcc.units import Rate
from tests.engines.packet.plain import plain

LINE, PERIOD, PACKET = 12.5e9, 10e-6, 1000
T = 10_000_000  # ps
US = 1_000_000
LOW, HIGH = LINE / 250, LINE / 25
exactly = pytest.approx


class Sender:
    """A sender whose packets and ACKs a test makes up."""

    def __init__(self, rate: float = LINE, **parameters: Any) -> None:
        core = records(layout.CORE, 1)
        self.sim = SimpleNamespace(core=core, calendar=new_calendar(core[0], 64, 0.0))
        self.core, self.flow, self.me = self.sim.core[0], records(layout.FLOW, 1)[0], records(acc.STATE, 1)[0]
        self.flow.line_rate, self.flow.rate = LINE, rate
        path: Any = SimpleNamespace(largest_base_rtt=PERIOD, base_rtt=PERIOD, empty_rtt=PERIOD, line_rate=Rate(LINE))
        acc.init_state(resolve_fields(fc.ACC(**parameters)).bind(path), self.flow, self.me)
        plain(acc.begin)(self.flow, self.me)

    def send(self, size: int, at: int | None = None) -> None:
        """So many bytes leave, the last packet of them now."""
        self.core.now = self.core.now if at is None else at
        self.flow.sent_wire += size
        self.flow.last, self.flow.last_size = self.core.now, PACKET
        self.flow.next = self.core.now + round(PACKET / self.flow.rate * PS)

    def ack(self, at: int, size: int = PACKET, ce: int = 0, ue: int = 0, covers: int = 1) -> None:
        self.core.now = at
        self.flow.acked_wire += size
        assert self.flow.acked_wire <= self.flow.sent_wire
        observed = SimpleNamespace(marks=ce, undetermined=ue, covers=covers)
        plain(acc.on_ack)(self.sim, 0, self.flow, self.me, observed)

    def end(self) -> None:
        """The period ends: the timer runs out, once, as soon as it is due."""
        self.core.now, self.sim.calendar = self.me.due, new_calendar(self.core, 64, 0.0)
        plain(acc.on_timer)(self.sim, 0, self.flow, self.me, 0)

    def period(self, ce: int = 0, ue: int = 0, none: int = 10, sends: int = 0) -> float:
        """A period of ACKs at equal distances, the last of them at its end, so that R is what they acknowledge."""
        begins, observed = self.me.due - T, ["ce"] * ce + ["ue"] * ue + ["none"] * none
        self.flow.sent_wire += sends or len(observed) * PACKET
        for k, mark in enumerate(observed, 1):
            self.ack(begins + k * T // len(observed), ce=mark == "ce", ue=mark == "ue")
        self.end()
        return float(self.flow.rate)


def started(rate: float = LINE, sent: int = 125_000, **parameters: Any) -> Sender:
    """A sender whose first ACK, of a packet, comes after 10 us, when it has sent so much."""
    sender = Sender(rate, **parameters)
    sender.send(sent, T)
    sender.ack(T)
    return sender


def congested(**parameters: Any) -> Sender:
    """...and which observes at 1 GB/s, all CE: nine more packets by 19 us; it sends at line rate to 20 us."""
    sender = started(**parameters)
    for k in range(1, 10):
        sender.ack(T + k * US, ce=1)
    sender.send(125_000, 2 * T)
    sender.end()
    return sender


# -- congested: lines 1 to 12 and 27 to 34 -------------------------------------------------------------------


def test_nothing_is_decided_before_the_first_ack() -> None:
    sender = Sender()
    sender.send(10_000_000, 100 * T)
    assert (sender.flow.rate, sender.core.pending) == (LINE, 0)
    sender.ack(100 * T, ce=1)
    assert (sender.flow.rate, sender.core.pending) == (LINE, 1)
    assert sender.me.due == 101 * T


@pytest.mark.parametrize("extension", ["never", "printed", "at-once", "inflight"])
def test_halt_by_hand(extension: str) -> None:
    """R = 9 kB in 9 us. dS = 125 kB, dA = 10 kB: t_Halt = 115 us. r = 125 kB (1 - 1/12.5) = 115 kB: another 115 us.

    Line 7's R_s is the line rate: with the R_s that line 4 has set to R, r would be 0.
    """
    sender = congested(extension=extension)
    assert sender.flow.rate == exactly(1e9, rel=1e-12)
    assert sender.me.ack_rate == exactly(1e9, rel=1e-12)
    halt, beyond = 115 * US, 115 * US
    waits = 2 * T + 1 * US  # the pacer, at R: a packet after the last
    shown = halt if extension == "never" else halt + beyond
    assert sender.me.halt_time == exactly(shown, abs=2)
    begun_with = halt if extension in ("never", "printed") else halt + beyond
    assert sender.flow.next == exactly(waits + begun_with, abs=2)
    assert sender.me.halted == 1
    assert sender.me.nxt_start == 250_000


def test_counted_as_printed() -> None:
    """Line 3: R = 9 packets over T, which is 0.9 GB/s, and the times are longer in proportion."""
    sender = congested(ack_rate="count", extension="never")
    assert sender.flow.rate == exactly(0.9e9, rel=1e-12)
    assert sender.me.halt_time == exactly(115e3 / 0.9e9 * PS, abs=2)


def test_extension_as_printed_comes_once_and_only_if_still_congested() -> None:
    def after(*marks: list[int]) -> int:
        sender = congested(extension="printed")
        before = int(sender.flow.next)
        for period in marks:
            begins = int(sender.me.due) - T
            for k, ce in enumerate(period):
                sender.ack(begins + (k + 1) * US, ce=ce)
            sender.end()
        return int(sender.flow.next) - before

    assert after([]) == 0  # nothing observed
    assert after([1] * 5) == exactly(115 * US, abs=2)
    assert after([1] * 5, [1] * 5) == exactly(115 * US, abs=2)
    assert after([1, 0, 0, 0, 0]) == 0
    assert after([1, 0, 0, 0, 0], [1] * 5) == exactly(115 * US, abs=2)  # as long as it halts


def test_at_once_and_never_do_not_extend_later() -> None:
    for extension in ("at-once", "never"):
        sender = congested(extension=extension)
        before = sender.flow.next
        for k in range(1, 6):
            sender.ack(2 * T + k * US, ce=1)
        sender.end()
        assert sender.flow.next == before


def test_inflight_extends_by_what_is_beyond_the_pipe() -> None:
    """The link has slowed to 0.5 GB/s: 5 packets in 10 us. 250 - 15 kB are in flight, 5 kB of them fill the pipe."""
    sender = congested(extension="inflight")
    before = int(sender.flow.next)
    for k in range(1, 6):
        sender.ack(19 * US + k * 2 * US, ce=1)  # spacing 2 us, from the ACK at 19 us on
    sender.end()
    now, halt = 3 * T, (250e3 - 15e3 - 0.5e9 * PERIOD) / 0.5e9 * PS
    assert now + halt > before
    assert sender.flow.next == exactly(now + halt, abs=2)
    assert sender.flow.rate == exactly(0.5e9, rel=1e-12)
    # The whole halt is from 20 us (a packet's gap at R of 1 us later) until then.
    assert sender.me.halt_time == exactly(now + halt - (2 * T + US), abs=4)


def test_inflight_never_ends_a_halt_earlier() -> None:
    sender = congested(extension="inflight")
    before = int(sender.flow.next)
    sender.ack(29 * US, size=100_000, ce=1, covers=100)
    sender.end()
    assert sender.flow.next == before


def test_acks_of_what_was_sent_before_a_halt_decide_nothing() -> None:
    """Any marks, and however few or many; the first ACK beyond snd_nxt_start starts the clock anew."""
    sender = congested(extension="never")
    rate, until = float(sender.flow.rate), int(sender.flow.next)
    now = 2 * T
    for marks in itertools.cycle([{"ce": 1}, {"ue": 1}, {}]):
        if sender.flow.acked_wire == 250_000:
            break
        now += US
        sender.ack(now, size=8000, covers=8, **marks)
        if now >= sender.me.due:
            sender.end()
        assert (sender.flow.rate, sender.flow.next, sender.me.halted) == (rate, until, 1)
    sender.end()
    assert sender.me.halted == 1  # snd_una is not greater than snd_nxt_start
    sender.send(5000, until)
    sender.ack(until + T, ce=1)
    me = sender.me
    assert (me.halted, me.due, me.packets) == (0, until + 2 * T, 0)
    assert (me.nxt_0, me.nxt_1, me.una_0) == (250_000, 255_000, 250_000)
    assert sender.flow.rate == rate


def test_a_halt_off_matches_the_rate_and_goes_on() -> None:
    sender = congested(halt=False)
    assert sender.flow.rate == exactly(1e9, rel=1e-12)
    assert (sender.me.halted, sender.me.halt_time) == (0, 0)
    assert sender.flow.next == 2 * T + US


def test_no_halt_where_nothing_is_excessive() -> None:
    """Lines 28 to 33: dS = dA."""
    sender = started(rate=1e9, sent=10_000)
    sender.send(10_000)
    for k in range(1, 10):
        sender.ack(T + k * US, ce=1)
    sender.end()
    assert sender.me.halted == 0
    assert sender.flow.rate == exactly(1e9, rel=1e-12)


def test_rates_stay_between_min_rate_and_line_rate() -> None:
    slow = started(min_rate="16Gbps", extension="never")
    for k in range(1, 10):
        slow.ack(T + k * US, ce=1)
    slow.end()
    assert slow.flow.rate == 2e9
    assert slow.me.halt_time == exactly(115 * US, abs=2)  # by R as it is
    assert Sender(rate=0.0).flow.rate == 10e6 / 8
    fast = started(rate=10e9, sent=500_000)
    for k in range(1, 11):
        fast.ack(T + k * US, size=20_000, ce=20, covers=20)  # a burst at 20 GB/s
    fast.end()
    assert fast.flow.rate == LINE


# -- the share of CE -----------------------------------------------------------------------------------------


def is_throttled(ce: int, packets: int, fraction: float, **parameters: Any) -> bool:
    """Of packets whose ACKs come at 1 GB/s; a rate of 2 GB/s is halved if that is congestion, and else not."""
    sender = started(rate=2e9, sent=20_000_000, mark_fraction=fraction, halt=False, **parameters)
    observed = [1] * ce + [0] * (packets - ce)
    for k, each in enumerate(observed, 1):
        sender.ack(T + k * T // packets, size=T // packets // 1000, ce=each)
    sender.end()
    if sender.flow.rate == exactly(1e9, rel=1e-2):
        return True
    assert sender.flow.rate >= 2e9
    return False


@pytest.mark.parametrize(
    ("ce", "packets", "fraction", "throttled"),
    [
        (9, 10, 0.9, False),  # "above a threshold"
        (10, 10, 0.9, True),
        (18, 20, 0.9, False),
        (19, 20, 0.9, True),
        (17, 20, 0.9, False),
        (1, 1, 0.9, True),
        (99, 100, 1.0, False),
        (100, 100, 1.0, True),
        (5, 10, 0.5, False),
        (6, 10, 0.5, True),
        (57, 100, 0.57, False),  # 0.57 * 100 is below 57 in binary
        (58, 100, 0.57, True),
    ],
)
def test_share_of_ce(ce: int, packets: int, fraction: float, throttled: bool) -> None:
    assert is_throttled(ce, packets, fraction) == throttled


@given(st.integers(1, 100), st.integers(1, 100), st.data())
def test_share_of_ce_against_whole_numbers(percent: int, packets: int, data: st.DataObject) -> None:
    ce = data.draw(st.integers(0, packets) | st.just(percent * packets // 100))
    expected = ce > 0 and (100 * ce > percent * packets or ce == packets)
    assert is_throttled(ce, packets, percent / 100) == expected


def test_some_marks_hold_the_rate_or_are_ignored() -> None:
    hold, increase = started(rate=1e9), started(rate=1e9, some_marks="increase")
    assert hold.period(ce=5, none=5) == 1e9
    assert increase.period(ce=5, none=5) == exactly(1e9 + (LINE - 1e9) / LINE * LOW, rel=1e-12)
    # With UE as well: CE goes first.
    assert hold.period(ce=1, ue=9, none=0) == 1e9
    assert (hold.me.n_u, hold.me.n_v) == (0, 0)


def test_some_marks_begin_the_count_of_periods_anew() -> None:
    sender = started(rate=1e9)
    rates = [1e9, sender.period(), sender.period(), sender.period(ce=1), sender.period()]
    assert rates[3] == rates[2]
    assert rates[4] == exactly(rates[3] + (LINE - rates[3]) / LINE * LOW, rel=1e-12)


# -- uncongested and undetermined: lines 13 to 26 ------------------------------------------------------------


@pytest.mark.parametrize("low_periods", [0, 2, 3])
def test_two_periods_of_the_low_increment_then_the_high(low_periods: int) -> None:
    sender = started(rate=1e9, low_periods=low_periods)
    rate = 1e9
    for k in range(6):
        rate += (LINE - rate) / LINE * (LOW if k < low_periods else HIGH)  # line 19
        assert sender.period() == exactly(rate, rel=1e-12)
    sender.period(ue=1)
    rate += (LINE - rate) / LINE * (LOW if low_periods else HIGH)
    assert sender.period() == exactly(rate, rel=1e-12)


def test_increments_given_are_taken_and_line_rate_is_kept() -> None:
    sender = started(rate=10e9, ri_low="40Gbps", ri_high="200Gbps")
    assert sender.period() == exactly(10e9 + 0.2 * 5e9, rel=1e-12)
    assert sender.period() == exactly(11e9 + 0.12 * 5e9, rel=1e-12)
    assert sender.period() == LINE


@pytest.mark.parametrize("p_thresh", [0, 1, 3])
def test_ue_halves_the_rate_from_the_period_after_p_thresh_on(p_thresh: int) -> None:
    sender = started(rate=8e9, p_thresh=p_thresh)
    halvings = [max(k - p_thresh, 0) for k in range(1, 6)]
    assert [sender.period(ue=1, none=9) for _ in halvings] == [8e9 / 2**n for n in halvings]


@pytest.mark.parametrize("between", [{}, {"ce": 1}])
def test_ue_counts_in_a_row_only(between: dict[str, int]) -> None:
    sender = started(rate=8e9, p_thresh=1)
    rates = []
    for _ in range(4):
        before = float(sender.flow.rate)
        rates.append(sender.period(ue=10, none=0) / before)
        sender.period(**between)
    assert rates == [1.0] * 4


def test_halvings_end_at_min_rate() -> None:
    sender = started(rate=1e9, p_thresh=0, min_rate="1Gbps")
    assert [sender.period(ue=1) for _ in range(5)] == [0.5e9, 0.25e9, 0.125e9, 0.125e9, 0.125e9]


# -- sparse and coalesced ACKs -------------------------------------------------------------------------------


@pytest.mark.parametrize("ack_rate", ["spacing", "count"])
def test_one_ack_in_several_periods(ack_rate: str) -> None:
    """An ACK each 35 us at T = 10 us: R is a packet in 35 us, and dS what was sent in all these periods."""
    sender = started(rate=1e9, sent=10_000, ack_rate=ack_rate, extension="never")
    for k in range(1, 4):  # at 20, 30 and 40 us
        sender.send(10_000)
        sender.end()
        assert (sender.flow.rate, sender.me.halted) == (1e9, 0)
        assert (sender.me.nxt_0, sender.me.nxt_1) == (0, 10_000 * (k + 1))
    sender.ack(45 * US, ce=1)
    sender.send(10_000)
    sender.end()
    R = 1000 / 35e-6
    assert sender.me.ack_rate == exactly(R, rel=1e-12)
    assert sender.me.halted == 1
    # Sent until 40 us, less the two packets acknowledged.
    assert sender.me.halt_time == exactly((40_000 - 2000) / R * PS, abs=4)


def test_spacing_waits_for_half_a_period_and_count_does_not() -> None:
    """An ACK 1 us after the first of the flow says nothing of a rate yet; the next period counts it."""
    for ack_rate in ("spacing", "count"):
        sender = started(rate=1e9, ack_rate=ack_rate, halt=False)
        sender.ack(11 * US, ce=1)
        sender.end()
        assert sender.flow.rate == exactly(1e9 if ack_rate == "spacing" else 1000 / PERIOD, rel=1e-12)
        sender.ack(25 * US, ce=1)
        sender.end()
        assert sender.flow.rate == exactly(2000 / 15e-6 if ack_rate == "spacing" else 1000 / 14e-6, rel=1e-12)


def test_a_flow_with_nothing_in_flight_raises_its_rate() -> None:
    sender = started(rate=1e9, sent=1000)
    sender.end()
    assert sender.flow.rate == exactly(1e9 + (LINE - 1e9) / LINE * LOW, rel=1e-12)
    waiting = started(rate=1e9, sent=2000)
    waiting.end()
    assert waiting.flow.rate == 1e9


def test_marks_that_still_count_keep_a_flow_without_anything_in_flight_from_speeding_up() -> None:
    sender = started(rate=1e9, sent=2000)
    sender.ack(11 * US, ce=1)  # all is acknowledged, and by too few ACKs for a rate
    sender.end()
    assert sender.flow.rate == 1e9


def test_acks_that_acknowledge_nothing_new_give_no_rate() -> None:
    """Overtaken on another path: R would be 0, and the halt endless."""
    for ack_rate in ("spacing", "count"):
        sender = started(ack_rate=ack_rate)
        for k in range(1, 10):
            sender.ack(T + k * US, size=0, ce=1)
        sender.end()
        assert (sender.flow.rate, sender.me.halted) == (LINE, 0)
        sender.ack(25 * US, size=10_000, ce=1)
        sender.end()
        assert sender.me.halted == 1
        assert 0 < sender.flow.rate <= LINE
        assert 0 < sender.me.halt_time < PS


@given(st.integers(2, 30), st.integers(2, 8), st.integers(0, 400))
def test_coalesced_acks_give_the_same_halt(groups: int, interval: int, excess: int) -> None:
    """The same packets, answered one by one or by so many: R is the same where the last group is whole.

    Where the period ends within a group, what that has acknowledged is less by up to an interval of packets, and so is
    the excess greater.
    """
    halts = []
    fixed_point = groups % interval  # packets of a group that is not whole at the end
    for together in (1, interval):
        sender = started(sent=(groups * interval + excess + fixed_point + 1) * PACKET, extension="never")
        each = T // (groups * interval + fixed_point + 1)
        for k in range(1, groups * interval + fixed_point + 1):
            if k % together == 0:
                sender.ack(T + k * each, size=together * PACKET, ce=together, covers=together)
        sender.end()
        halts.append(float(sender.me.halt_time) * 1e-12 * float(sender.me.ack_rate) if sender.me.halted else 0.0)
    assert halts[1] - halts[0] == exactly(fixed_point * PACKET, abs=1.0)


# -- whole runs ----------------------------------------------------------------------------------------------


def first_halts(trace: fc.Trace) -> tuple[np.ndarray, np.ndarray]:
    """Each flow's first halt [s], and the rate of ACKs that it had then [bytes/s]."""
    times, rates = trace["halt_time"].values, trace["ack_rate"].values
    rows, columns = (times > 0).argmax(axis=0), np.arange(times.shape[1])
    return times[rows, columns], rates[rows, columns]


@pytest.mark.parametrize("rate", [10, 40, 100])
@pytest.mark.parametrize("flows", [2, 4, 10, 20])
def test_halts_drain_the_queue(flows: int, rate: int) -> None:
    """Section 6.3, Fig. 10(b): the halt is the longest queue over C, here within 10 % in the mean over the flows.

    The sum of the recorded rates is C within 2 %: each flow counts its ACKs from one to another.
    """
    scenario = fc.incast(flows, rate=f"{rate}Gbps", scheme=fc.ACC())
    trace = fc.simulate(scenario, "1ms", engine="packet", sample_interval="500ns")
    halts, rates = first_halts(trace)
    C = rate * 1e9 / 8
    assert halts.mean() == pytest.approx(trace.summary["queue_bytes"]["max_whole_run"] / C, rel=0.10)
    assert rates.sum() == pytest.approx(C, rel=0.02)


@pytest.mark.parametrize("interval", [2, 4])
def test_halts_drain_the_queue_with_coalesced_acks(interval: int) -> None:
    """The same 10 %, and what an interval of each flow's packets takes to drain, of which there is no word yet."""
    scenario = fc.incast(10, rate="100Gbps", scheme=fc.ACC(), ack_interval=interval)
    trace = fc.simulate(scenario, "1ms", engine="packet", sample_interval="500ns")
    halts, _ = first_halts(trace)
    ideal = trace.summary["queue_bytes"]["max_whole_run"] / LINE
    assert halts.mean() == pytest.approx(ideal, abs=0.10 * ideal + interval * 10 * PACKET / LINE)


def test_nothing_is_sent_in_a_halt() -> None:
    """From when the source begins to halt until its halt time is over; sampled each 50 ns."""
    scenario = fc.incast(10, rate="100Gbps", scheme=fc.ACC())
    trace = fc.simulate(scenario, "300us", engine="packet", sample_interval="50ns", log=True)
    log = trace.dataset
    sends = log.event_what.values == "send"
    halted = 0
    for f in range(10):
        times = log.event_time.values[sends & (log.event_flow.values == f)]
        now, halting = log.time.values, np.append(log["halting"].values[:, f], 0)
        begins = np.flatnonzero(np.diff(halting, prepend=0) > 0)
        ends = np.flatnonzero(np.diff(halting, prepend=0) < 0) - 1  # last sample in it
        for first, last in zip(begins, ends, strict=True):
            assert not ((now[first] <= times) & (times <= now[last])).any()
            if last + 1 < len(now):
                halt = float(log["halt_time"].values[last, f])
                # A halt begins with the next packet's turn, less than two packets at R after the decision.
                late = 2 * PACKET / float(log["ack_rate"].values[last, f])
                assert halt - 1e-7 <= now[last] - now[first] <= halt + late + 1e-7
                halted += 1
    assert halted >= 10


def test_a_full_link_and_fair_shares() -> None:
    """Section 6.3: near-full utilisation (asked for: 0.98) and the fair rate, from starts 100 us apart.

    Jain's index over 8 ms, about 2000 periods, is to be above 0.95.
    """
    scenario = fc.incast(10, rate="100Gbps", scheme=fc.ACC(), start=[f"{100 * i}us" for i in range(10)])
    summary = fc.simulate(scenario, "10ms", window="2ms:10ms", engine="packet", seed=1).summary
    assert summary["utilisation"] > 0.98
    assert summary["jain"] > 0.95


def test_halt_off_leaves_the_queue() -> None:
    """ACC without halt (section 6.4): the rates match the link, and what has queued up stays for longer."""
    means = []
    for halt in (True, False):
        scenario = fc.incast(10, rate="100Gbps", scheme=fc.ACC(halt=halt))
        means.append(
            fc.simulate(scenario, "300us", engine="packet", window="150us:300us").summary["queue_bytes"]["mean"]
        )
    assert means[1] > 5 * means[0]


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"p_thresh": -1}, "p_thresh"),
        ({"p_thresh": 1.5}, "p_thresh"),
        ({"ri_low": 0}, "ri_low"),
        ({"ri_high": 0}, "ri_high"),
        ({"mark_fraction": 0}, "mark_fraction"),
        ({"mark_fraction": 1.1}, "mark_fraction"),
        ({"low_periods": -1}, "low_periods"),
        ({"min_rate": 0}, "min_rate"),
        ({"period": "0s"}, "period"),
        ({"extension": "later"}, "extension"),
        ({"ack_rate": "mean"}, "ack_rate"),
        ({"some_marks": "cut"}, "some_marks"),
        ({"halt": "perhaps"}, "halt"),
        ({"period": "1us"}, "period: 1us is shorter than the base RTT"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], name: str) -> None:
    with pytest.raises(fc.InputError, match=name):
        fc.simulate(fc.incast(1, rate="100Gbps", scheme=fc.ACC(**parameters)), "10us", engine="packet")


def test_a_period_of_just_the_base_rtt_is_taken() -> None:
    scenario = fc.incast(1, rate="100Gbps", scheme=fc.ACC())
    from fluidcc.scenario.round_trips import largest_base_rtt

    own = largest_base_rtt(resolve(scenario))
    flows = tuple(dataclasses.replace(flow, scheme=fc.ACC(period=own)) for flow in scenario.flows)
    fc.simulate(dataclasses.replace(scenario, flows=flows), "10us", engine="packet")


@pytest.mark.parametrize("name", list(PRESETS))
def test_presets_run(name: str) -> None:
    """Three of the paper's settings on its ten flows: the link is full over 2 ms, and nothing is lost."""
    preset = PRESETS[name]
    scenario = fc.incast(
        10, rate="100Gbps", scheme=preset.scheme, marking=preset.marking_at("100Gbps"), **preset.network
    )
    summary = fc.simulate(scenario, "3ms", engine="packet", window="1ms:3ms").summary
    assert summary["utilisation"] > 0.9
    assert summary["drops"] == 0
