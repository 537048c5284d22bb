"""DCQCN's reaction point in packets (variant ``paper``) against section 3.1 and Fig. 7, replayed in plain Python.

The replay shares nothing with the package. Of a run it is told when packets left, CNPs came and ACKs came; rates before
each ACK, R_C, R_T and alpha at each sample, and when each packet leaves are what it works out itself. Tolerances were
stated before anything was measured: rates and alpha to 1e-9 (rounding of some hundred steps), times to 2 ps (two times
are rounded to whole picoseconds).

Further senders do what NVIDIA's NICs do: cuts that keep the target, an alpha that moves once a slot, cuts that wait
for the end of a period, a rate on the first CNP and a largest rate.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest

import fluidcc as fc
from fluidcc.units import Rate

GIGABIT = Rate(1e9 / 8)
PS = 10**12
HEADER = 48
LINE = 3 * GIGABIT
ROUNDING, ROUNDED = 1e-9, 2  # relative; ps
NEVER = 1 << 62


@dataclasses.dataclass(frozen=True)
class Settings:
    """Of one sender, in bytes, bytes/s and ps; timers are such that no two events fall together."""

    timer: int  # T
    alpha_timer: int  # K
    byte_counter: int  # B
    steps: int = 5  # F
    g: float = 1 / 16
    rate_ai: float = 0.02 * GIGABIT
    rate_hai: float = 0.1 * GIGABIT
    hyper: bool = False
    alpha: float = 1.0
    gain: float = 0.5  # 1/2 in (1); of NVIDIA's rpg_gd 2^(10 - gd), at most 1
    most: float = 1.0  # largest share that a CNP takes off (rpg_min_dec_fac)
    least: float = 0.0  # rate (rpg_min_rate)
    rtt: float | None = None  # HPCC 5.1's DCQCN+win: R_C times this is a window
    # NVIDIA's, in the order of its page; see `fluidcc show dcqcn`
    slotted: bool = False
    first: float = 0.0
    period: int = 0
    clamp: bool = True
    after_time: bool = True
    last: bool = False  # without clamp and after_time: whether the last increase must have been by bytes, or any
    largest: float = float("inf")

    def scheme(self) -> fc.DCQCN:
        return fc.DCQCN(
            timer=self.timer / PS,
            alpha_timer=self.alpha_timer / PS,
            byte_counter=self.byte_counter,
            fast_recovery_steps=self.steps,
            g=self.g,
            rate_ai=self.rate_ai,
            rate_hai=self.rate_hai,
            hyper_increase=self.hyper,
            initial_alpha=self.alpha,
            decrease_gain=self.gain,
            max_decrease=self.most,
            min_rate=self.least,
            cnp_interval="10us",
            win=self.rtt is not None,
            base_rtt=self.rtt,
            alpha_update="slotted" if self.slotted else "restarted",
            rate_on_first_cnp=self.first,
            rate_decrease_interval=self.period / PS,
            clamp_tgt_rate=self.clamp,
            clamp_tgt_rate_after_time_inc=self.after_time,
            clamp_looks_at="last-increase" if self.last else "any-increase",
            max_rate=Rate(self.largest) if self.largest < LINE else "line",
        )


class Sender:
    """The paper's text, line by line."""

    def __init__(self, s: Settings, start: int, rate: float) -> None:
        self.s, self.seen = s, Counter[str]()
        self.R_C = self.R_T = min(rate, s.largest)
        self.alpha = s.alpha
        self.increases = ""  # since the last cut: t by the timer, b by bytes
        self.cut_at, self.free = NEVER, start  # a cut that waits; from when on none must
        self.hit = self.marked = False  # a CNP in this slot; ever
        self.by_timer = self.by_bytes = self.counted = 0  # T and BC of Fig. 7, and bytes of the next BC
        self.alpha_at = NEVER if s.slotted else start + s.alpha_timer
        self.timer_at = start + s.timer
        self.left: tuple[int, int] | None = None  # when the last packet left, and its bytes
        self.goes = start  # when the pacer lets the next one go

    def until(self, now: int, leaves: bool) -> None:
        """Timers that run out before something happens; one that raises the rate may let a packet go at once."""
        while (due := min(self.alpha_at, self.timer_at, self.cut_at)) < now + leaves:
            if due == self.alpha_at:
                self.seen["alpha rises in a slot" if self.hit else "alpha decays"] += 1
                self.alpha = (1 - self.s.g) * self.alpha + self.s.g * self.hit  # (2), or once in a slot
                self.hit = False
                self.alpha_at += self.s.alpha_timer
            if due == self.cut_at:
                self.seen["cut that waited"] += 1
                self.cut(due)
                self.pace(due)
            elif due == self.timer_at:
                self.seen["by timer"] += 1
                self.by_timer += 1
                self.increases += "t"
                self.timer_at += self.s.timer
                self.increase()
                self.pace(due)
        assert due != now, "the order of two things at one time would be the engine's"

    def increase(self) -> None:
        """Fast recovery "for F = 5 successive iterations" (3); additive (4); hyper once both are beyond F."""
        s = self.s
        if self.by_timer > s.steps or self.by_bytes > s.steps:
            hyper = s.hyper and self.by_timer > s.steps and self.by_bytes > s.steps
            self.seen["hyper" if hyper else "additive"] += 1
            raised = self.R_T + (s.rate_hai if hyper else s.rate_ai)
            most = min(LINE, s.largest)
            self.seen["at line rate" if most == LINE else "at largest rate"] += raised > most
            self.R_T = raised if raised < most else most
        else:
            self.seen["recovery"] += 1
        self.R_C = (self.R_T + self.R_C) / 2

    def leaves(self, now: int, size: int) -> None:
        """The packet is paced by the rate that it left at; then the byte counter counts it, "for every B bytes"."""
        self.left = now, size
        self.goes = now + round(size / self.R_C * PS)
        self.counted += size
        if self.counted >= self.s.byte_counter:
            self.seen["by bytes"] += 1
            self.counted -= self.s.byte_counter
            self.by_bytes += 1
            self.increases += "b"
            self.increase()

    def pace(self, now: int) -> None:
        """The packet that waits goes by the new rate."""
        if self.left is not None:
            self.goes = max(now, self.left[0] + round(self.left[1] / self.R_C * PS))

    def notified(self, now: int) -> None:
        """A cut, now or when the period is over; and alpha."""
        s = self.s
        if s.first > 0 and not self.marked:
            self.seen["first rate"] += 1
            self.R_C = self.R_T = min(self.R_C, s.first)
            self.anew(now)
        elif now >= self.free:
            self.cut(now)
        else:
            self.seen["CNPs that wait"] += 1
            self.cut_at = self.free
        if not s.slotted:
            self.alpha = (1 - s.g) * self.alpha + s.g
            self.alpha_at = now + s.alpha_timer
        elif not self.marked:
            self.alpha_at = now + s.alpha_timer
        else:
            self.hit = True
        self.marked = True
        self.pace(now)

    def lowers(self) -> bool:
        """Whether this cut lowers the target."""
        s = self.s
        if s.clamp:
            return True
        if s.after_time:
            return self.increases != ""
        return self.increases[-1:] == "b" if s.last else "b" in self.increases

    def cut(self, now: int) -> None:
        """(1)."""
        s = self.s
        cut = s.gain * self.alpha
        if cut > s.most:
            cut = s.most
            self.seen["largest cut"] += 1
        self.seen["stages forgotten"] += self.by_timer > s.steps or self.by_bytes > s.steps
        self.seen["bytes forgotten"] += self.counted > 0
        if self.lowers():
            self.seen["target lowered"] += not s.clamp
            self.R_T = self.R_C
        else:
            self.seen["target kept"] += 1
        rate = self.R_C * (1 - cut)
        self.seen["least rate"] += rate < s.least
        self.R_C = rate if rate > s.least else s.least
        self.anew(now)

    def anew(self, now: int) -> None:
        """Fig. 7: timer and counters begin anew."""
        self.by_timer = self.by_bytes = self.counted = 0
        self.increases = ""
        self.timer_at = now + self.s.timer
        self.cut_at, self.free = NEVER, now + self.s.period


# Settings, start [us], size [bytes] and initial rate of each flow. The first three stay, and have room for their line
# rates between the others, which come at 0 and at 900 us.
FLOWS: list[tuple[Settings, float, float, float]] = [
    (Settings(8_000_301, 9_000_703, 30_500), 0, float("inf"), LINE),
    # rpg_gd 9: twice alpha, limited to alpha; and rpg_min_dec_fac 50.
    (Settings(7_000_211, 5_000_449, 7_300, 1, gain=1.0, most=0.5, hyper=True), 0, float("inf"), LINE),
    # rpg_gd 11 is the paper's 1/2.
    (Settings(11_000_137, 6_000_061, 4_100, 2, most=0.3, least=0.1 * GIGABIT, hyper=True), 0, float("inf"), LINE),
    (Settings(5_000_527, 7_000_793, 9_700, 0, g=1 / 64, gain=0.25, alpha=0.7), 0, 150e3, LINE),
    (Settings(13_000_417, 12_000_329, 3_300, 1, g=1 / 4, gain=1.0, least=0.4 * GIGABIT), 0.0003, 120_500, 2 * GIGABIT),
    (Settings(6_000_283, 9_000_911, 8_900, 3, hyper=True, rtt=9e-6), 0.0007, 200e3, LINE),
    (Settings(9_000_587, 8_000_177, 5_900, 1, hyper=True), 900.0011, 100e3, LINE),
    (Settings(9_000_587, 8_000_177, 2_100, 4, gain=1.0), 900.0013, 100e3, GIGABIT),
]  # fmt: skip


_NIC = Settings(9_000_587, 1_000_177, 40_300, 1, slotted=True, clamp=False, most=0.5, hyper=True)
NICS: list[tuple[Settings, float, float, float]] = [
    (dataclasses.replace(_NIC, g=5 / 1024, period=14_000_233, byte_counter=70_100), 0, float("inf"), LINE),
    (dataclasses.replace(_NIC, after_time=False, timer=15_000_551, largest=0.6 * LINE), 0.0003, float("inf"), LINE),
    (dataclasses.replace(_NIC, after_time=False, last=True, byte_counter=30_700), 0.0007, float("inf"), LINE),
    (dataclasses.replace(_NIC, slotted=False, period=23_000_911, first=0.4 * LINE), 0.0011, float("inf"), LINE),
    (dataclasses.replace(_NIC, first=0.2 * LINE, alpha_timer=3_000_061, period=9_000_043), 700.0011, 300e3, LINE),
]  # fmt: skip


@pytest.fixture(scope="module")
def ran() -> fc.Trace:
    """The paper's senders."""
    return run(FLOWS)


@pytest.fixture(scope="module")
def ran_nics() -> fc.Trace:
    """NVIDIA's."""
    return run(NICS)


def run(flows: list[tuple[Settings, float, float, float]]) -> fc.Trace:
    """10 Gb/s, marking cut off at 20 KB."""
    scenario = fc.incast(
        len(flows),
        rate="10Gbps",
        line_rate=LINE,
        scheme=fc.DCQCN(),
        marking=fc.RED("20KB", "20KB", 1.0),
        start=[start * 1e-6 for _, start, _, _ in flows],
        size=[size for _, _, size, _ in flows],
        initial_rate=[rate for _, _, _, rate in flows],
        header_bytes=HEADER,
    )
    senders = tuple(
        dataclasses.replace(flow, scheme=s.scheme()) for flow, (s, *_) in zip(scenario.flows, flows, strict=True)
    )
    scenario = dataclasses.replace(scenario, flows=senders)
    return fc.simulate(scenario, "2ms", engine="packet", sample_interval="2.99901us", log=True)


def happened(trace: fc.Trace, f: int, start: int) -> list[tuple[int, str, int, Any]]:
    """What a sender sees, in order: time [ps], what, end of the packet, and what the run shows of the sender."""
    log = trace.dataset
    columns = (log[f"event_{name}"].values for name in ("time", "what", "flow", "end", "value"))
    found: list[tuple[int, str, int, Any]] = [
        (round(float(seconds) * PS), str(what), int(end), float(value))
        for seconds, what, flow, end, value in zip(*columns, strict=True)
        if flow == f and what in ("send", "cnp", "acknowledge")
    ]
    shown = [log[name].values[:, f] for name in ("pacing_rate", "target_rate", "alpha")]
    samples = [
        (round(float(seconds) * PS), "sample", 0, state)
        for seconds, *state in zip(log.time.values, *shown, strict=True)
        if round(float(seconds) * PS) > start
    ]
    return sorted(found + samples, key=lambda each: each[0])


def replayed(trace: fc.Trace, flows: list[tuple[Settings, float, float, float]], f: int) -> Sender:
    """Compare all that a run shows of a sender."""
    s, started, total, rate = flows[f]
    start = round(started * 1e6)
    sender = Sender(s, start, rate)
    sent = acked = compared = 0
    for now, what, end, value in happened(trace, f, start):
        sender.until(now, what == "send")
        if what == "send":
            payload = end - sent
            if s.rtt is None:
                assert now == pytest.approx(sender.goes, abs=ROUNDED)
            else:  # bytes in flight beyond the window, this packet's among them
                assert now >= sender.goes - ROUNDED
                packets = -(-end // 1000) - -(-acked // 1000)
                assert end - acked + packets * HEADER - value == pytest.approx(sender.R_C * s.rtt, rel=ROUNDING)
            sender.leaves(now, payload + HEADER)
            sent = end
        elif what == "cnp":
            sender.notified(now)
        elif what == "acknowledge":
            assert value == pytest.approx(sender.R_C, rel=ROUNDING)
            acked = end
            if end == total:
                break  # the flow is over
        else:
            assert value == pytest.approx([sender.R_C, sender.R_T, sender.alpha], rel=ROUNDING)
        compared += 1
    assert compared > 200
    return sender


@pytest.mark.parametrize("flow", range(len(FLOWS)))
def test_a_sender_follows_its_paper(ran: fc.Trace, flow: int) -> None:
    replayed(ran, FLOWS, flow)


@pytest.mark.parametrize("flow", range(len(NICS)))
def test_a_sender_follows_its_nic(ran_nics: fc.Trace, flow: int) -> None:
    replayed(ran_nics, NICS, flow)


def test_all_of_it_happens(ran: fc.Trace) -> None:
    """Each of what a sender can do, five times at least in all, so that the replay says something."""
    seen = sum((replayed(ran, FLOWS, f).seen for f in range(len(FLOWS))), Counter[str]())
    kinds = {
        "alpha decays", "by timer", "by bytes", "recovery", "additive", "hyper", "at line rate", "largest cut",
        "least rate", "stages forgotten", "bytes forgotten",
    }  # fmt: skip
    assert {kind for kind in kinds if seen[kind] >= 5} == kinds
    done = ran.summary["fct_s"]
    assert all(took is not None for took in done)


def test_all_of_the_nic_happens(ran_nics: fc.Trace) -> None:
    """Likewise; a first CNP comes once to each flow."""
    seen = sum((replayed(ran_nics, NICS, f).seen for f in range(len(NICS))), Counter[str]())
    kinds = {
        "target lowered", "target kept", "CNPs that wait", "cut that waited", "alpha rises in a slot", "alpha decays",
        "hyper", "at largest rate",
    }  # fmt: skip
    assert {kind for kind in kinds if seen[kind] >= 5} == kinds
    assert seen["first rate"] == 2
