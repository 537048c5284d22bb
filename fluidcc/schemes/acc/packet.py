"""ACC at packet level: Algorithm 1 of Zhang et al., NSDI 2024.

Decisions come at the end of each period T, whose clock starts with a flow's first ACK (section 5). What the paper
leaves open, or prints so that it could not work, is chosen so:

- Line 7 uses the R_s that line 4, as we read it in a garbled copy, has not yet overwritten; its dS is what T_i sent,
  which is known exactly.
- A halt ends with the first eligible ACK (snd_una > snd_nxt_start), which restarts the clock: what was sent before
  it is T_{i-1}. Until then nothing is decided, but for the extension, once, where that is ``printed``.
- N_u counts uncongested periods in a row, N_v those with UE, the present one included, so that P_thresh = 0 halves the
  rate in each (B.1); all other periods reset them.
- Between 0 and ``mark_fraction`` of CE, the rate is held (``some_marks``).
- Without ACKs, or where they acknowledge nothing that others had not (they were overtaken on another path), nothing is
  decided either, and dS grows; but a flow that has nothing in flight, and no ACK left to count, raises its rate.
- ACKs are counted by the packets that they cover and by bytes, so that they may be coalesced. R is these bytes over the
  time from the ACK before the period's first to its last; if that is less than half of T, the next period counts on.
  Line 3's count over T (``ack_rate="count"``), or over the time between two ACKs if that is longer (section 4.3), is
  off by up to a packet in a period, and at 100 Gb/s a period of ten flows has but five of each.
- ``extension="inflight"`` lets the halt branch extend in every period, as printed it may, by what packet conservation
  says is still queued: a burst that comes while a flow halts is otherwise not observed before all of it has drained.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.packet.calendar import schedule
from fluidcc.engines.packet.layout import PS, TIMER
from fluidcc.engines.packet.pacing import repace
from fluidcc.schemes.acc.parameters import ACC, check_period

_TIMERS = 4
_NEVER, _AT_ONCE, _PRINTED, _INFLIGHT = range(4)
_I, _F = np.int64, np.float64

STATE = np.dtype(
    [
        ("period", _I),  # T, ps
        ("ri_low", _F),  # bytes/s
        ("ri_high", _F),
        ("low_periods", _I),
        ("p_thresh", _I),
        ("fraction", _F),
        ("min_rate", _F),
        ("counts", _I),
        ("halts", _I),
        ("extension", _I),
        ("hold", _I),
        # state; positions in the flow are wire bytes
        ("running", _I),  # the clock: from the first ACK on
        ("due", _I),  # end of the period
        ("halted", _I),  # from a halt's beginning to the first eligible ACK
        ("until", _I),  # end of the halt
        ("owed", _I),  # extension that is still to come, ps
        ("nxt_start", _I),  # snd_nxt when the halt began
        ("nxt_0", _I),  # snd_nxt at the beginning of T_{i-1}
        ("nxt_1", _I),  # and of T_i
        ("una_0", _I),  # snd_una at the beginning of T_i
        ("una", _I),  # snd_una
        ("before", _I),  # when the ACK before T_i's first came
        ("last", _I),  # when the last ACK came
        ("packets", _I),  # acknowledged in T_i
        ("ce", _I),
        ("ue", _I),
        ("acked", _I),  # bytes acknowledged in T_i
        ("n_u", _I),
        ("n_v", _I),
        ("halt_time", _I),  # of the last halt, with its extension, ps
        ("ack_rate", _F),  # R, bytes/s
    ],
    align=True,
)

OBSERVABLES = {
    "halt_time": ("s", "last halt, t_Halt + t_extend"),
    "ack_rate": ("bytes/s", "last arrival rate R of ACKs"),
    "halting": ("1", "whether the source halts"),
    "inflight": ("bytes", "bytes in flight"),
}


def fill(parameters: ACC, flow: Any, me: Any) -> None:
    """Write a flow's parameters; packets go round their path, whatever the feedback delay of the fluid."""
    p = parameters
    check_period(p.period, p.empty_rtt)
    me.period = round(p.period * PS)
    me.ri_low, me.ri_high = p.ri_low, p.ri_high
    me.low_periods, me.p_thresh = round(p.low_periods), round(p.p_thresh)
    me.fraction, me.min_rate = p.mark_fraction, min(p.min_rate, flow.line_rate)
    me.counts, me.halts, me.hold = p.ack_rate == "count", p.halt, p.some_marks == "hold"
    me.extension = {"never": _NEVER, "at-once": _AT_ONCE, "printed": _PRINTED, "inflight": _INFLIGHT}[p.extension]


@kernel
def begin(flow: Any, me: Any) -> None:
    """Raise the initial rate to the minimum rate; nothing is acknowledged yet, so nothing is decided."""
    flow.rate = max(flow.rate, me.min_rate)


@inlined
def on_ack(sim: Any, f: Any, flow: Any, me: Any, ack: Any) -> None:
    """Count an ACK, or start the clock with it."""
    core = sim.core[0]
    if not me.running:
        me.running = 1
        schedule(core, sim.calendar, core.now + me.period, TIMER, f * _TIMERS)
        start_clock(core, flow, me)
        return
    if me.halted and flow.acked_wire > me.nxt_start:
        me.halted = 0
        me.owed = 0
        me.nxt_1 = me.una_0 = me.nxt_start
        start_clock(core, flow, me)
        return
    if me.packets == 0:
        me.before = me.last
    me.packets += ack.covers
    me.ce += ack.marks
    me.ue += ack.undetermined
    me.acked += flow.acked_wire - me.una
    me.una = flow.acked_wire
    me.last = core.now


@kernel
def start_clock(core: Any, flow: Any, me: Any) -> None:
    """A period begins with an ACK; what was sent before it is T_{i-1}."""
    me.due = core.now + me.period
    me.nxt_0, me.nxt_1 = me.nxt_1, flow.sent_wire
    me.una = flow.acked_wire
    me.last = me.before = core.now
    clear(me)


@kernel
def clear(me: Any) -> None:
    """Reset the counts of ACKs for a new period."""
    me.packets = me.ce = me.ue = me.acked = 0


@kernel
def on_timer(sim: Any, f: Any, flow: Any, me: Any, which: Any) -> None:
    """End of a period, unless the clock was restarted in it."""
    core = sim.core[0]
    if core.now >= me.due:
        me.due = core.now + me.period
        if me.halted:
            if me.acked > 0 and congested(me):
                extend(core, flow, me)
            clear(me)
        elif me.acked > 0 and (me.counts or 2 * (me.last - me.before) >= me.period):
            decide(core, flow, me)
            me.nxt_0, me.nxt_1, me.una_0 = me.nxt_1, flow.sent_wire, me.una
            clear(me)
        else:  # dS accumulates
            if flow.sent_wire == flow.acked_wire and me.packets == 0:
                uncongested(core, flow, me)
            me.nxt_1 = flow.sent_wire
    schedule(core, sim.calendar, me.due, TIMER, f * _TIMERS)


@kernel
def congested(me: Any) -> Any:
    """Check whether the period's ACKs carry CE steadily: more than the fraction of them, or all."""
    return me.ce > me.fraction * me.packets * (1 + 1e-12) or me.ce == me.packets  # exactly at the fraction is not above


@kernel
def decide(core: Any, flow: Any, me: Any) -> None:
    """Fig. 5: what a period's ACKs say."""
    if congested(me):
        throttle(core, flow, me)
    elif me.ce > 0 and me.hold:
        me.n_u = me.n_v = 0
    elif me.ce == 0 and me.ue > 0:
        me.n_u = 0
        me.n_v += 1
        if me.n_v > me.p_thresh:  # lines 23 and 24
            flow.rate = max(flow.rate / 2, me.min_rate)
            repace(core, flow)
    else:
        uncongested(core, flow, me)


@kernel
def uncongested(core: Any, flow: Any, me: Any) -> None:
    """Lines 13 to 21."""
    increment = me.ri_low if me.n_u < me.low_periods else me.ri_high
    flow.rate = min(flow.rate + (flow.line_rate - flow.rate) / flow.line_rate * increment, flow.line_rate)
    me.n_u += 1
    me.n_v = 0
    repace(core, flow)


@kernel
def throttle(core: Any, flow: Any, me: Any) -> None:
    """Lines 3 to 9, and SourceHalt: match the ACKs' rate, after what is beyond it has drained."""
    R = arrival_rate(me)
    me.ack_rate = R
    beyond = max((flow.sent_wire - me.nxt_1) * (1.0 - R / flow.rate), 0.0)  # line 7
    excess = (me.nxt_1 - me.nxt_0) - (me.una - me.una_0)  # dS - dA
    flow.rate = max(min(R, flow.line_rate), me.min_rate)
    me.n_u = me.n_v = 0
    repace(core, flow)
    if not me.halts or excess <= 0:
        return
    halt, extension = int(excess / R * PS), int(beyond / R * PS)
    me.halted = 1
    me.nxt_start = flow.sent_wire
    me.halt_time = halt + (extension if me.extension != _NEVER else 0)
    me.owed = extension if me.extension == _PRINTED else 0
    flow.next = max(flow.next, core.now) + me.halt_time - me.owed  # (1)
    me.until = flow.next


@kernel
def extend(core: Any, flow: Any, me: Any) -> None:
    """Lines 6 to 10: the halt continues."""
    if me.owed > 0:
        flow.next += me.owed
        me.until = flow.next
        me.owed = 0
    elif me.extension == _INFLIGHT and me.last > me.before:
        R = arrival_rate(me)
        backlog = flow.sent_wire - flow.acked_wire - R * me.period * 1e-12
        halt = int(backlog / R * PS)
        if core.now + halt > flow.next:
            me.ack_rate = R
            flow.rate = max(min(R, flow.line_rate), me.min_rate)
            me.halt_time += core.now + halt - max(me.until, core.now)
            me.until = flow.next = core.now + halt
            me.nxt_start = flow.sent_wire


@kernel
def arrival_rate(me: Any) -> Any:
    """R of the period's ACKs [bytes/s]."""
    spacing = me.last - me.before
    if me.counts and (me.packets > 1 or spacing < me.period):
        spacing = me.period
    return me.acked / (spacing * 1e-12)


@kernel
def observe(core: Any, flow: Any, me: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = me.halt_time * 1e-12
    samples[row, f, 4] = me.ack_rate
    samples[row, f, 5] = me.halted and core.now < me.until
    samples[row, f, 6] = flow.sent_wire - flow.acked_wire
