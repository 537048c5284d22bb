"""ACC's sender in packets against Algorithm 1, section 4 and appendix B.1 of its paper, replayed in plain Python.

The replay shares nothing with the package. Of a run it is told when packets left, which of them were marked CE, when
ports were paused and resumed, and when ACKs came. It works out itself which packets carry UE (section 2.2), the rate
before each ACK and at each sample, R, t_Halt, whether the flow halts, and when each packet leaves.
Tolerances were stated before anything was measured: rates to 1e-12; times to 2 ps, as a halt and its extension are each
cut to whole picoseconds.

Where the paper is silent, the replay does what docs/theory/acc.md says, and in these points what the engine does:

- A halt begins now if t_NextPkt has passed, as it may where flow control holds the packet back (line 30).
- What T_i sent beyond the pipe is not negative (line 7).
- ACKs that are too close for a rate (less than half of T) also decide nothing about UE, or about neither mark.
- Some CE that does not hold the rate goes before UE, so that the rate rises.
- An extension by what is in flight measures R again, and matches the rate to it.
- ``halt_time`` has the printed extension from the halt's beginning on, even if it never comes (line 9).
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

import fluidcc as fc
from fluidcc.schemes.acc import PRESETS
from fluidcc.units import Rate

GIGABIT = Rate(1e9 / 8)
PS = 10**12
US = 10**6  # ps
HEADER = 48
PACKET = 1000 + HEADER
MAX_ON = 24 * US
ROUNDING, ROUNDED = 1e-12, 2  # relative; ps
NEVER = 1 << 62


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of one sender, in bytes/s and ps; None where its preset decides."""

    period: int  # T
    line: float = 10 * GIGABIT
    preset: str = "paper"
    path: tuple[int, ...] = (0, 1)
    low: float | None = None  # RI_Low; 1/250 of the line rate (section 6.1)
    high: float | None = None  # RI_High; ten times RI_Low
    p_thresh: int = 1
    fraction: str = "0.9"
    least: float = 0.01 * GIGABIT
    halt: bool = True
    extension: str | None = None
    ack_rate: str | None = None
    holds: bool = True

    def scheme(self) -> fc.ACC:
        chosen = {"extension": self.extension, "ack_rate": self.ack_rate, "ri_low": self.low, "ri_high": self.high}
        return dataclasses.replace(
            PRESETS[self.preset].scheme,
            period=self.period / PS,
            p_thresh=self.p_thresh,
            mark_fraction=float(self.fraction),
            min_rate=Rate(self.least),
            halt=self.halt,
            some_marks="hold" if self.holds else "increase",
            **{name: Rate(value) if name[:2] == "ri" else value for name, value in chosen.items() if value is not None},
        )


class Ack(NamedTuple):
    """An ACK: wire bytes that it acknowledges, packets that it covers, and how many of them were marked."""

    una: int
    covers: int
    ce: int
    ue: int


class Sender:
    """The paper's text, line by line; bytes are those of the wire, times ps."""

    def __init__(self, s: Settings) -> None:
        self.s, self.seen = s, Counter[str]()
        printed = s.preset == "printed"
        self.extension = s.extension or ("printed" if printed else "at-once")
        self.counts = (s.ack_rate or ("count" if printed else "spacing")) == "count"
        self.ri_low = s.line / 250 if s.low is None else s.low
        self.ri_high = s.line / 25 if s.high is None else s.high
        self.R_s, self.R = s.line, 0.0
        self.snd_una = self.snd_nxt = self.snd_nxt_start = 0
        self.N_u = self.N_v = 0
        self.t_Halt = 0  # of the last halt, with its extension, come or to come
        self.halt = False  # until the first eligible ACK
        self.halts_until = 0
        self.owed = 0  # t_extend, where that is still to come
        self.left, self.size = 0, 0  # when the last packet left, and its bytes
        self.t_NextPkt = 0
        self.decided = 0  # when that last changed: a packet that should have left before leaves then
        # The period T_i, and of T_{i-1} what it sent.
        self.ends = NEVER
        self.dS = self.nxt_began = self.una_began = 0
        self.packets = self.ce = self.ue = 0  # of its ACKs
        self.arrivals: list[int] = []  # of the ACK before its first, and of its ACKs
        self.una_before = 0  # snd_una after the ACK before its first

    def until(self, now: int, leaves: bool) -> None:
        """Periods that end before something happens; the rate then may let a packet go at once."""
        while self.ends < now + leaves:
            self.end(self.ends)
        assert self.ends != now, "the order of two things at one time would be the engine's"

    def leaves(self, now: int, size: int) -> None:
        """The packet is paced by the rate that it left at."""
        self.seen["sent before an eligible ACK"] += self.halt
        self.snd_nxt += size
        self.left, self.size = now, size
        self.t_NextPkt = now + round(size / self.R_s * PS)

    def send_at(self, rate: float, now: int) -> None:
        """A new R_s: t_NextPkt follows from "the latest sending time and pacing delay" (section 5)."""
        self.seen["least rate"] += rate < self.s.least
        self.R_s = min(max(rate, self.s.least), self.s.line)
        self.decided = now
        self.t_NextPkt = self.left + round(self.size / self.R_s * PS)

    def acknowledged(self, now: int, ack: Ack) -> None:
        """The first ACK starts the clock (section 5); so does the first that is eligible after a halt (line 2)."""
        self.snd_una = ack.una
        ends = self.halt and ack.una > self.snd_nxt_start
        if self.ends == NEVER or ends:
            self.seen["halt ends"] += ends
            self.halt = False
            self.ends = now + self.s.period
            self.dS, self.nxt_began = self.snd_nxt - self.snd_nxt_start, self.snd_nxt
            self.una_began = self.snd_nxt_start  # "only ACKs of new packets" (4.2)
            self.begin_counting(now)
            return
        self.packets += ack.covers
        self.ce += ack.ce
        self.ue += ack.ue
        self.arrivals.append(now)

    def begin_counting(self, now: int) -> None:
        """ACKs after the one that came at ``now``."""
        self.una_before, self.arrivals = self.snd_una, [now]
        self.packets = self.ce = self.ue = 0

    def end(self, now: int) -> None:
        """The end of a period: which state the flow is in (4.1)."""
        self.ends = now + self.s.period
        sent = self.snd_nxt - self.nxt_began  # in T_i
        self.nxt_began = self.snd_nxt
        ce = Fraction(self.ce, max(self.packets, 1))
        congested = ce > Fraction(self.s.fraction)
        if self.halt:
            if congested:
                self.halts_on(now)
            self.seen["halt without CE"] += not congested
        elif self.packets == 0:  # "dS should accumulate until an ACK is received" (4.2)
            self.dS += sent
            self.seen["no ACKs"] += 1
            if self.snd_una == self.snd_nxt:
                self.seen["nothing in flight"] += 1
                self.uncongested(now)
            return
        elif not self.counts and 2 * (self.arrivals[-1] - self.arrivals[0]) < self.s.period:
            self.dS += sent
            self.seen["counts on"] += 1
            return
        else:
            if congested:
                self.congested(now, sent)
            elif ce > 0 and self.s.holds:
                self.seen["some CE holds"] += 1
                self.seen["some CE ends periods with UE"] += self.N_v > 0
                self.N_u = self.N_v = 0
            elif ce == 0 and self.ue > 0:
                self.undetermined(now)
            else:
                self.seen["some CE ignored"] += ce > 0
                self.uncongested(now)
            self.dS, self.una_began = sent, self.snd_una
        self.begin_counting(self.arrivals[-1])

    def arrival_rate(self) -> float:
        """R: line 3 divides by T, or by the inter-arrival time of ACKs where one ACK took longer (4.3)."""
        over = self.arrivals[-1] - self.arrivals[0]
        if self.counts:
            longer = len(self.arrivals) == 2 and over > self.s.period
            self.seen["one ACK in several periods"] += longer
            over = over if longer else self.s.period
        return (self.snd_una - self.una_before) / (over / PS)

    def congested(self, now: int, sent: int) -> None:
        """Lines 1 to 5, and 27 to 34."""
        self.seen["congested"] += 1
        self.seen["congestion ends periods with UE"] += self.N_v > 0
        self.N_u = self.N_v = 0
        dA, R_s = self.snd_una - self.una_began, self.R_s
        self.R = self.arrival_rate()
        self.send_at(self.R, now)
        if not self.s.halt or self.dS <= dA:
            self.seen["halt off" if self.dS > dA else "nothing excessive"] += 1
            return
        r = max(sent - sent * self.R / R_s, 0.0)  # line 7, with the R_s of T_i
        self.t_Halt, t_extend = int((self.dS - dA) / self.R * PS), int(r / self.R * PS)
        self.seen[f"halt {self.extension}"] += 1
        at_once = self.extension in ("at-once", "inflight")
        # A packet that flow control has held back could leave now.
        self.halts_until = self.t_NextPkt = max(self.t_NextPkt, now) + self.t_Halt + at_once * t_extend
        self.owed = t_extend if self.extension == "printed" else 0
        self.t_Halt += 0 if self.extension == "never" else t_extend
        self.halt, self.snd_nxt_start = True, self.snd_nxt

    def halts_on(self, now: int) -> None:
        """Lines 6 to 10."""
        if self.owed > 0:
            self.seen["extended later"] += 1
            self.t_NextPkt += self.owed
            self.halts_until, self.owed = self.t_NextPkt, 0
        elif self.extension == "inflight":
            R = self.arrival_rate()
            drained = now + int((self.snd_nxt - self.snd_una - R * self.s.period / PS) / R * PS)
            if drained > self.t_NextPkt:
                self.seen["extended again"] += 1
                self.R = R
                self.send_at(R, now)
                self.t_Halt += drained - max(self.halts_until, now)
                self.halts_until = self.t_NextPkt = drained
                self.snd_nxt_start = self.snd_nxt

    def uncongested(self, now: int) -> None:
        """Lines 13 to 21."""
        self.seen["RI_Low" if self.N_u < 2 else "RI_High"] += 1
        RI = self.ri_low if self.N_u < 2 else self.ri_high
        self.send_at(self.R_s + (self.s.line - self.R_s) / self.s.line * RI, now)
        self.N_u += 1
        self.N_v = 0

    def undetermined(self, now: int) -> None:
        """Lines 22 to 26; the present period is one of N_v, as P_thresh = 0 halves the rate in each (B.1)."""
        self.N_u = 0
        self.N_v += 1
        halves = self.N_v > self.s.p_thresh
        self.seen["UE halves" if halves else "UE keeps"] += 1
        if halves:
            self.send_at(self.R_s / 2, now)


# Paths: (0, 1) to the sink over the link that flow control stops, (1,) to the sink alone, (0, 2) past the congestion.
VICTIM = (0, 2)
FLOWS: list[Settings] = [
    Settings(12_000_301),
    Settings(13_000_703, preset="printed"),
    Settings(14_000_449, path=(1,), extension="never", holds=False, fraction="0.6"),
    Settings(15_000_137, path=(1,), extension="inflight", least=0.4 * GIGABIT),
    Settings(12_000_527, extension="printed"),
    Settings(16_000_061, path=(1,), halt=False, ack_rate="count", low=0.1 * GIGABIT),
    Settings(17_000_911, extension="inflight", ack_rate="count", high=2 * GIGABIT),
    Settings(12_000_329, path=VICTIM, line=4 * GIGABIT),
    Settings(13_000_417, path=VICTIM, line=5 * GIGABIT, p_thresh=0, least=0.1 * GIGABIT),
    Settings(14_000_587, path=VICTIM, line=3 * GIGABIT, p_thresh=2, holds=False),
]
BURSTS = 8


def run(ack_interval: int) -> fc.Trace:
    """Senders before and behind a link that is paused whenever bursts to the sink have filled the switch after it."""
    marking = fc.RED("2.5KB", "2.5KB", 1.0, mark_on="departure", max_on="24us")
    any_queue = dataclasses.replace(marking, kmin="0.5KB", kmax="0.5KB")  # some CE among the victims' UE
    links = (
        fc.Link("40Gbps", name="up", source="a", target="b", marking=marking),
        fc.Link("10Gbps", name="out", source="b", target="sink", marking=marking),
        fc.Link("20Gbps", name="side", source="b", target="other", marking=any_queue),
    )
    flows = [
        fc.Flow(s.path, s.scheme(), Rate(s.line), source=f"host {f}", target="other" if s.path == VICTIM else "sink")
        for f, s in enumerate(FLOWS)
    ]
    flows += [
        fc.Flow(
            (1,),
            fc.NoControl(),
            "10Gbps",
            start=f"{400 + 500 * (k // 4)}us",
            size="30KB",
            source=f"burst {k}",
            target="sink",
        )
        for k in range(BURSTS)
    ]
    scenario = fc.Scenario(
        links, tuple(flows), buffer="2MB", pfc=fc.PFC(xoff="10KB"), header_bytes=HEADER, ack_interval=ack_interval
    )
    return fc.simulate(scenario, "2ms", engine="packet", sample_interval="1.99901us", log=True)


Event = tuple[int, str, Any, Any]


def happened(trace: fc.Trace) -> list[list[Event]]:
    """Events of each sender, in order: time [ps], what, of what, and what the run shows of the sender."""
    log = trace.dataset
    found: list[list[Event]] = [[] for _ in FLOWS]
    resumed: dict[str, int] = {}
    ce, ue = set[tuple[int, int]](), set[tuple[int, int]]()
    waiting: defaultdict[int, list[int]] = defaultdict(list)  # ends of packets that came and are not acknowledged
    names = ("time", "what", "flow", "kind", "port", "end", "value")
    for seconds, what, flow, kind, port, end, value in zip(
        *(log[f"event_{name}"].values.tolist() for name in names), strict=True
    ):
        now = round(seconds * PS)
        if what == "receive" and kind in ("pause", "resume"):
            there, stopped = port.split(" -> ")
            if kind == "resume":
                resumed[f"{stopped} -> {there}"] = now
            if stopped.startswith("host "):
                found[int(stopped[5:])].append((now, kind, None, None))
        if not 0 <= flow < len(FLOWS):
            continue
        if what == "mark":
            ce.add((flow, end))
        elif what == "transmit" and kind == "data" and not port.startswith("host "):
            if now - resumed.get(port, -NEVER) <= MAX_ON:
                ue.add((flow, end))
        elif what == "receive":
            waiting[flow].append(end)
        elif what == "send":
            found[flow].append((now, "send", end, None))
        elif what == "acknowledge":
            covered = [(flow, each) for each in waiting[flow] if each <= end]
            waiting[flow] = [each for each in waiting[flow] if each > end]
            marked = sum(each in ce for each in covered), sum(each in ue - ce for each in covered)
            found[flow].append((now, "ack", Ack(end // 1000 * PACKET, len(covered), *marked), value))
    for f, events in enumerate(found):
        shown = [log[name].values[:, f].tolist() for name in ("pacing_rate", "ack_rate", "halt_time", "halting")]
        times = [round(seconds * PS) for seconds in log.time.values.tolist()]
        events += [(now, "sample", None, state) for now, *state in zip(times, *shown, strict=True) if now > 0]
        events.sort(key=lambda each: each[0])
    return found


def replayed(events: list[Event], s: Settings) -> Counter[str]:
    """Compare all that a run shows of a sender."""
    sender = Sender(s)
    sent = paused = compared = free = 0
    for now, what, of, shown in events:
        sender.until(now, what == "send")
        due = max(sender.t_NextPkt, sender.decided, free)
        assert paused or now <= due + ROUNDED
        if what == "pause":
            paused = 1
        elif what == "resume":
            paused, free = 0, now
        elif what == "send":
            assert not paused
            assert now == pytest.approx(due, abs=ROUNDED)
            sender.leaves(now, of - sent + HEADER)
            sent = of
        elif what == "ack":
            assert shown == pytest.approx(sender.R_s, rel=ROUNDING)
            sender.acknowledged(now, of)
        else:
            rate, R, t_Halt, halting = shown
            assert [rate, R] == pytest.approx([sender.R_s, sender.R], rel=ROUNDING)
            assert t_Halt * PS == pytest.approx(sender.t_Halt, abs=ROUNDED)
            assert halting == (sender.halt and now < sender.halts_until)
        compared += 1
    assert compared > 200
    return sender.seen


@pytest.fixture(scope="module")
def ran() -> list[list[Event]]:
    """An ACK for every packet."""
    return happened(run(1))


@pytest.fixture(scope="module")
def ran_coalesced() -> list[list[Event]]:
    """An ACK for every three."""
    return happened(run(3))


@pytest.mark.parametrize("flow", range(len(FLOWS)))
def test_a_sender_follows_its_paper(ran: list[list[Event]], flow: int) -> None:
    replayed(ran[flow], FLOWS[flow])


@pytest.mark.parametrize("flow", range(len(FLOWS)))
def test_a_sender_follows_its_paper_with_coalesced_acks(ran_coalesced: list[list[Event]], flow: int) -> None:
    replayed(ran_coalesced[flow], FLOWS[flow])


def test_all_of_it_happens(ran: list[list[Event]], ran_coalesced: list[list[Event]]) -> None:
    """Each of what a sender can do, five times at least in all, so that the replay says something."""
    runs = [(events[f], s) for events in (ran, ran_coalesced) for f, s in enumerate(FLOWS)]
    seen = sum((replayed(events, s) for events, s in runs), Counter[str]())
    kinds = {
        "congested", "nothing excessive", "halt off", "halt at-once", "halt printed", "halt never", "halt inflight",
        "extended later", "extended again", "halt ends", "halt without CE", "sent before an eligible ACK",
        "RI_Low", "RI_High", "UE keeps", "UE halves", "some CE holds", "some CE ignored", "least rate", "no ACKs",
        "some CE ends periods with UE", "nothing in flight", "counts on", "one ACK in several periods",
    }  # fmt: skip
    assert {kind for kind in kinds if seen[kind] >= 5} == kinds
