"""Algorithms 1 and 2 of Snyder and Lebeck, "Fast Convergence to Fairness", line by line, and senders that take them.

Plain Python that shares nothing with the package. The algorithms take fractions as well as floats; the senders are
HPCC's Algorithm 1 (Li et al.) and Swift's (Kumar et al.), told of one ACK at a time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any


class VariableAI:
    """Tokens and dampener; ``rule="excess"`` is the text of IV-A, "dividing the difference"."""

    def __init__(
        self,
        token_thresh: Any,
        ai_div: Any,
        rule: str = "measured",
        ai_cap: Any = 100,
        bank_cap: Any = 1000,
        dampener_constant: Any = 8,
    ) -> None:
        self.token_thresh, self.ai_div, self.rule = token_thresh, ai_div, rule
        self.ai_cap, self.bank_cap, self.dampener_constant = ai_cap, bank_cap, dampener_constant
        self.bank = self.dampener = self.measured = 0
        self.congestion = False
        self.round_trip: int | None = None  # ends with the ACK of the first byte sent after this one
        self.seen: Counter[str] = Counter()

    def hears(self, congestion: Any, congested: bool, end: int, snd_nxt: int) -> bool:
        """An ACK; whether it finishes an RTT."""
        self.measured = max(self.measured, congestion)
        self.congestion = self.congestion or congested
        if self.round_trip is not None and end <= self.round_trip:
            return False
        finished = self.round_trip is not None
        if finished:
            self.algorithm_1()
        self.round_trip = snd_nxt
        return finished

    def algorithm_1(self) -> None:
        if self.measured > self.token_thresh:
            self.seen["tokens"] += 1
            difference = self.measured - (self.token_thresh if self.rule == "excess" else 0)
            self.bank = min(difference / self.ai_div + self.bank, self.bank_cap)
        if self.measured > self.token_thresh:
            self.dampener += self.measured / self.token_thresh
        elif self.bank == 0:
            if not self.congestion:
                self.seen["dampener reset"] += self.dampener > 0
                self.dampener = 0
            elif self.measured < self.token_thresh:
                self.seen["dampener eased"] += self.dampener > 0
                self.dampener = max(self.dampener - 1, 0)
        self.measured = 0
        self.congestion = False

    def algorithm_2(self, rate_adjustment: bool) -> Any:
        """Additive increase over the base AI."""
        tokens = min(self.ai_cap, self.bank)
        if rate_adjustment:
            self.seen["spent"] += tokens > 0
            self.bank = max(self.bank - tokens, 0)
        divisor = self.dampener / self.dampener_constant + 1
        return max(tokens / divisor, 1)


class Sender:
    """What the mechanisms need of a sender: its reference, when it may change, and what its ACKs are counted for."""

    def __init__(
        self,
        vai: VariableAI | None,
        sampling: int | None,
        draw: Callable[[], float] | None,
        costs_period: bool = False,
    ) -> None:
        self.vai, self.sampling, self.draw, self.costs_period = vai, sampling, draw, costs_period
        self.acks = 0
        self.last_update: int | None = None
        self.seen: Counter[str] = Counter()

    def factor(self, spent: bool = False) -> Any:
        return 1 if self.vai is None else self.vai.algorithm_2(spent)

    def adjusts(self, new: float, reference: float, largest: float, end: int) -> bool | None:
        """Whether the reference becomes the new one; None if the ACK is disregarded (III-D)."""
        assert self.last_update is not None
        decreases = new < reference
        due = end > self.last_update
        if decreases and self.sampling is not None:
            due = self.acks >= self.sampling
        if due and decreases and self.draw is not None and reference < self.draw() * largest:
            self.seen["disregarded"] += 1
            return None
        if due:
            self.seen["decrease" if decreases else "increase"] += 1
        return due

    def ignored(self, snd_nxt: int) -> None:
        """Begin the next period, where an ACK that is disregarded costs it."""
        if self.costs_period:
            self.last_update, self.acks = snd_nxt, 0


class HPCC(Sender):
    """Algorithm 1 of HPCC on one link; U starts at 1, the first ACK only records L, W lies in [packet, W_init].

    Rates W/T in place of windows, with W_init = B T. The authors' simulator keeps whole bits per second, and its
    windows are whole bytes.
    """

    def __init__(
        self, T: float, B: float, ai: float, least: float, eta: float, max_stage: int, sim: bool, *mechanisms: Any
    ) -> None:
        super().__init__(*mechanisms)
        self.T, self.B, self.ai, self.least, self.eta, self.max_stage, self.sim = T, B, ai, least, eta, max_stage, sim
        self.rate = self.reference = B
        self.U, self.stage = 1.0, 0
        self.L: tuple[int, int, int] | None = None

    @property
    def W(self) -> float:
        W = self.rate * self.T  # rounding may make a whole number of bytes a hair less
        return math.floor(W + 1e-6) if self.sim and self.L is not None else W

    def hears(self, end: int, snd_nxt: int, stamp: tuple[int, int, int]) -> None:
        """An ACK and what it says of the link: time [ps], bytes sent and queue."""
        if self.L is None:
            self.L, self.last_update = stamp, snd_nxt
            return
        seconds = (stamp[0] - self.L[0]) * 1e-12
        u = min(stamp[2], self.L[2]) / (self.B * self.T) + (stamp[1] - self.L[1]) / seconds / self.B
        tau = min(seconds, self.T)
        self.U = (1 - tau / self.T) * self.U + tau / self.T * u
        self.L = stamp
        self.acks += 1
        C = self.U / self.eta
        if self.vai is not None:
            self.vai.hears(stamp[2], C >= 1, end, snd_nxt)
        multiplies = C >= 1 or self.stage >= self.max_stage
        rate = (self.reference / C if multiplies else self.reference) + self.factor() * self.ai
        if self.sim:
            rate = math.floor(rate * 8) / 8
        rate = min(max(rate, self.least), self.B)
        update = self.adjusts(rate, self.reference, self.B, end)
        if update is None:
            self.ignored(snd_nxt)
            return
        self.rate = rate
        if update:
            self.factor(spent=True)
            self.reference, self.last_update, self.acks = rate, snd_nxt, 0
            self.stage = 0 if multiplies else self.stage + 1


class Swift(Sender):
    """Swift's Algorithm 1, windows in packets; with Sampling Frequency, V-B's reference."""

    beta, max_mdf, least = 0.8, 0.5, 0.001

    def __init__(
        self, fixed: float, W_init: float, most: float, ai: float, scaling: tuple[float, ...] | None, *mechanisms: Any
    ) -> None:
        super().__init__(*mechanisms)
        self.fixed, self.most, self.ai, self.scaling = fixed, most, ai, scaling
        self.W = self.W_init = self.reference = W_init
        self.cut_at = 0
        self.of_round_trip: Any = 1

    def target(self) -> float:
        if self.scaling is None:
            return self.fixed
        fs_range, fs_min, fs_max = self.scaling
        alpha = fs_range / (1 / math.sqrt(fs_min) - 1 / math.sqrt(fs_max))
        return self.fixed + max(0.0, min(alpha / math.sqrt(self.W) - alpha / math.sqrt(fs_max), fs_range))

    def hears(self, end: int, snd_nxt: int, sent: int, now: int, full: bool) -> None:
        """An ACK of a packet sent then [ps]; ``full``: the window held the sender back."""
        rtt, target = (now - sent) * 1e-12, self.target()
        congested = rtt >= target
        cut = max(1 - self.beta * (rtt - target) / rtt, self.max_mdf) if congested else 1.0
        self.acks += 1
        finished = self.vai is not None and self.vai.hears(rtt, congested, end, snd_nxt)
        if self.sampling is not None:
            self.by_reference(cut, end, snd_nxt, full)
            return
        if finished:
            self.of_round_trip = self.factor(spent=True)
        if not congested:
            if full:
                self.seen["increase"] += 1
                self.W += self.ai * self.of_round_trip / max(self.W, 1.0)
        elif sent >= self.cut_at:
            if self.draw is not None and self.draw() * self.W_init > self.W:
                self.seen["disregarded"] += 1
                self.cut_at = now if self.costs_period else self.cut_at
            else:
                self.seen["decrease"] += 1
                self.W, self.cut_at = self.W * cut, now
        self.W = max(min(self.W, self.most), self.least)

    def by_reference(self, cut: float, end: int, snd_nxt: int, full: bool) -> None:
        if self.last_update is None:
            self.last_update = snd_nxt
        new = max(min(self.reference * cut + self.ai * self.factor(), self.most), self.least)
        if new >= self.reference and not full:
            return
        update = self.adjusts(new, self.reference, self.W_init, end)
        if update is None:
            self.ignored(snd_nxt)
            return
        if update:
            self.factor(spent=True)
            self.reference, self.last_update, self.acks = new, snd_nxt, 0
        self.W = new
