"""Algorithm 1 of ACC, line by line, and a link that senders of it share, in exact rationals.

Rates over C, bytes over C T, times over T. Bytes are a fluid, in ticks: what is sent in a tick joins the queue at its
end, first come first served, and what the link serves in a tick is acknowledged T later, with CE where a queue is left.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from typing import NamedTuple

REPAIRS = ("keep", "once", "halt", "N_u", "at once")  # see `Sender`
STEADY = Fraction(9, 10)  # share of CE above which a flow is congested, 4.1


class Sender:
    """Table 1 and Algorithm 1, as printed but for ``repairs``.

    ``keep``: line 7 uses the R_s that line 4 overwrites. ``once``: lines 7 to 10 run once in a halt. ``halt``: the
    first eligible ACK ends a halt, clears the flag and starts the clock. ``N_u``: congestion resets it. ``at once``:
    the extension comes with the halt, by what T_i sent, instead of a period later. ``stale``: dS of line 7 is that of
    T_{i-1}, as of line 29; otherwise what was sent in the period before the one just over, as 4.2 defines it.
    """

    def __init__(self, R_s: Fraction, RI: Fraction, repairs: tuple[str, ...] = (), *, stale: bool = False) -> None:
        self.R_s, self.RI_Low, self.RI_High = R_s, RI, min(10 * RI, Fraction(1))
        self.repairs, self.stale = repairs, stale
        self.snd_una = self.snd_nxt = self.snd_nxt_start = Fraction(0)
        self.t_NextPkt, self.t_Halt, self.halt, self.N_u, self.N_v = Fraction(0), Fraction(0), False, 0, 0
        self.R = self.before = R_s
        self.due: Fraction | None = None  # end of the period; the clock starts with the first ACK (section 5)
        self.began = (Fraction(0), Fraction(0), Fraction(0))  # snd_nxt as T_{i-1} and T_i began, snd_una as T_i did
        self.ce = self.acks = Fraction(0)
        self.log: list[tuple[Fraction, str, Fraction]] = []

    def sends(self, now: Fraction, tick: Fraction) -> Fraction:
        """Bytes of this tick."""
        sent = self.R_s * max(min(tick, now + tick - self.t_NextPkt), Fraction(0))
        self.snd_nxt += sent
        return sent

    def hears(self, now: Fraction, acked: Fraction, marked: bool) -> None:
        """ACKs of this tick, and the end of the period if this is it."""
        if self.due is not None and now >= self.due:
            self.ends_period(now)
        if not acked:
            return
        self.snd_una += acked
        fresh = self.halt and "halt" in self.repairs and self.snd_una > self.snd_nxt_start
        if self.due is None or fresh:
            self.began = (self.snd_nxt_start, self.snd_nxt, self.snd_una - acked)
            self.halt, self.due, self.ce, self.acks = False, now + 1, Fraction(0), Fraction(0)
        self.acks += acked
        self.ce += acked if marked else 0

    def ends_period(self, now: Fraction) -> None:
        """4.1: what the period's ACKs say."""
        first, second, una = self.began
        dS, dA = second - first, self.snd_una - una
        if self.acks and self.ce > STEADY * self.acks:
            self.CONGESTED(now, dA, dS, dA)
        elif self.acks and not self.ce and not (self.halt and "halt" in self.repairs):
            self.UNCONGESTED(now)
        self.began = (second, self.snd_nxt, self.snd_una)
        self.due, self.ce, self.acks = now + 1, Fraction(0), Fraction(0)

    def CONGESTED(self, now: Fraction, recvNum: Fraction, dS: Fraction, dA: Fraction) -> None:
        """Lines 1 to 12; recvNum in bytes, MTU = T = 1."""
        if not self.halt and self.snd_una > self.snd_nxt_start:  # 2
            self.R, self.before = recvNum, self.R_s  # 3
            self.R_s, self.dS, self.extended = self.R, dS, False  # 4
            self.log.append((now, "rate", self.R))
            self.SOURCEHALT(now, self.R, dS, dA)  # 5
            if self.halt and "at once" in self.repairs:
                self.extend(now, self.snd_nxt - self.began[1])
            self.N_u = 0 if "N_u" in self.repairs else self.N_u
        elif self.halt and not ("once" in self.repairs and self.extended):  # 6
            self.extend(now, self.dS if self.stale else dS)

    def extend(self, now: Fraction, dS: Fraction) -> None:
        """Lines 7 to 10."""
        r = dS - dS * self.R / (self.before if "keep" in self.repairs else self.R_s)  # 7
        t_extend = r / self.R  # 8
        self.t_Halt += t_extend  # 9
        self.t_NextPkt = max(self.t_NextPkt, now) + t_extend  # 10
        self.extended = True
        self.log.append((now, "extend", t_extend))

    def UNCONGESTED(self, now: Fraction) -> None:
        """Lines 13 to 21; the line rate is C."""
        RI = self.RI_Low if self.N_u < 2 else self.RI_High  # 14 to 18
        self.R_s = self.R_s + (1 - self.R_s) * RI  # 19
        self.N_u += 1  # 20
        self.log.append((now, "rise", RI))

    def UNDETERMINED(self, P_thresh: int = 1) -> None:
        """Lines 22 to 26."""
        if self.N_v > P_thresh:  # 23
            self.R_s = self.R_s / 2  # 24

    def SOURCEHALT(self, now: Fraction, R: Fraction, dS: Fraction, dA: Fraction) -> None:
        """Lines 27 to 34."""
        if dS > dA:  # 28
            self.t_Halt = (dS - dA) / R  # 29
            self.t_NextPkt = max(self.t_NextPkt, now) + self.t_Halt  # 30
            self.halt = True  # 31
            self.snd_nxt_start = self.snd_nxt  # 32
            self.log.append((now, "halt", self.t_Halt))

    def of(self, what: str) -> list[Fraction]:
        """Values of one kind in the log."""
        return [value for _, kind, value in self.log if kind == what]


class Link(NamedTuple):
    """Queue at the end of each tick, what was served in it, and what each sender sent."""

    queue: list[Fraction]
    served: list[Fraction]
    sent: list[list[Fraction]]
    tick: Fraction


def share(senders: list[Sender], periods: int, ticks: int = 20) -> Link:
    """Let the senders share a link for a number of periods, each of a number of ticks."""
    tick = Fraction(1, ticks)
    fifo: deque[list[Fraction]] = deque()
    acks: list[tuple[list[Fraction], bool]] = []
    run = Link([], [], [], tick)
    for n in range(periods * ticks):
        now = n * tick
        back, marked = acks[n - ticks] if n >= ticks else ([Fraction(0)] * len(senders), False)
        for sender, acked in zip(senders, back, strict=True):
            sender.hears(now, acked, marked)
        fifo.append([sender.sends(now, tick) for sender in senders])
        run.sent.append(fifo[-1])
        served, room = [Fraction(0)] * len(senders), tick
        while fifo and room:
            batch = fifo.popleft()
            total = sum(batch, Fraction(0))
            part = min(room / total, Fraction(1)) if total else Fraction(1)
            served = [got + part * one for got, one in zip(served, batch, strict=True)]
            room -= part * total
            if part < 1:
                fifo.appendleft([(1 - part) * one for one in batch])
        queue = sum((sum(batch, Fraction(0)) for batch in fifo), Fraction(0))
        acks.append((served, queue > 0))
        run.queue.append(queue)
        run.served.append(sum(served, Fraction(0)))
    return run
