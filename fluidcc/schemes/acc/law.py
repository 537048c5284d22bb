"""ACC's law: Algorithm 1 of Zhang et al., NSDI 2024, for the ACKs of a step; packets take the formulas.

A flow is before its first ACK, running (its clock counts a period T), or halted: silent while ``halt`` counts down, and
then until the first ACK of what it sends next, which restarts the clock. Clocks start, periods end and halts end
inside steps: a step's bytes are divided there, and what it sent after a decision, at the rate before it, delays the
next packets. `fluidcc.schemes.acc.packet` says what the paper leaves open.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as xp

from fluidcc.contract.signals import Progress

NEEDS = frozenset({"undetermined"})
SWITCHES = ("holds", "extends_later", "extends_at_once", "extends_again")
NONE = 1e-9  # share of a period's ACKs that is rounding


class State(NamedTuple):
    """State of a flow; it changes in jumps only."""

    rate: Any  # R_s, also while it halts [bytes/s]
    pace: Any  # of it, what the halt leaves in the next step [bytes/s]
    halt: Any  # what is left of the halt [s]
    clock: Any  # since the period began [s]; -1 before the first ACK
    halted: Any  # 1 from a halt's beginning to the first eligible ACK
    silent: Any  # periods before T_i in which no whole packet was acknowledged
    carried: Any  # bytes acknowledged in these
    owed: Any  # extension that is still to come [s]
    nxt_start: Any  # snd_nxt when the last halt began [bytes]
    nxt_0: Any  # snd_nxt at the beginning of T_{i-1}
    nxt_1: Any  # and of T_i
    una_0: Any  # snd_una at the beginning of T_i
    acked: Any  # bytes acknowledged in T_i
    ce: Any  # of these, marked CE
    ue: Any  # and UE only
    n_u: Any  # uncongested periods in a row
    n_v: Any  # periods with UE in a row
    halt_time: Any  # of the last halt, with its extension [s]
    ack_rate: Any  # last R [bytes/s]
    inflight: Any  # [bytes]


def start(parameters: Any, initial_rate: Any) -> State:
    """State before the first ACK."""
    rate = xp.maximum(initial_rate, parameters.min_rate)
    none = 0.0 * rate
    return State(
        rate, rate, none, none - 1.0, none, none, none, none, none, none,
        none, none, none, none, none, none, none, none, none, none,
    )  # fmt: skip


def rate(state: Any) -> Any:
    """Rate of sending [bytes/s]: R_s in the share of a step that lies beyond the halt."""
    return state.pace


def raised(parameters: Any, rate: Any, line_rate: Any, periods: Any) -> Any:
    """Return R_s after one more uncongested period (lines 13 to 21)."""
    increment = xp.where(periods < parameters.low_periods, parameters.ri_low, parameters.ri_high)
    return xp.minimum(rate + (line_rate - rate) / line_rate * increment, line_rate)


def halved(rate: Any, least: Any) -> Any:
    """Return R_s after more than P_thresh periods with UE (lines 23, 24)."""
    return xp.maximum(rate / 2, least)


def matched(ack_rate: Any, least: Any, line_rate: Any) -> Any:
    """Return R_s as the ACKs' rate R (line 4)."""
    return xp.maximum(xp.minimum(ack_rate, line_rate), least)


def beyond(sent: Any, ack_rate: Any, rate: Any) -> Any:
    """Return the bytes that a period's sending adds to the queue (line 7, with the R_s not overwritten yet)."""
    return xp.maximum(sent * (1.0 - ack_rate / rate), 0.0)


def on_step(parameters: Any, state: Any, progress: Progress, observed: Any) -> State:
    """Time passes and ACKs are counted, of which none is UE."""
    return after(parameters, state, progress, observed, 0.0)


def after(parameters: Any, state: Any, progress: Progress, marked: Any, undetermined: Any) -> State:
    """Time passes, ACKs are counted, and if the period has ended they decide (section 4.1).

    ACKs answer whole packets. Of flows whose packets take turns at the bottleneck, the first is answered when the first
    of these ends, the last when one of each has: on average with half a packet. It is not counted in R.
    """
    p, s, now = parameters, state, progress
    whole, least = now.wire_packet * (1.0 - NONE), xp.minimum(p.min_rate, now.line_rate)
    # The clock starts with the first ACK, and again with the first eligible one after a halt.
    eligible = now.acked - s.nxt_start - now.wire_packet / 2
    starts = ((s.clock < 0) | (s.halted > 0)) & (eligible > 0)
    since = now.dt * xp.minimum(eligible / xp.maximum(now.newly, NONE), 1.0)
    halt = xp.maximum(s.halt - now.dt, 0.0)
    clock = xp.where(starts, since, xp.where(s.clock < 0, s.clock, s.clock + now.dt))
    halted, owed = xp.where(starts, 0.0, s.halted), xp.where(starts, 0.0, s.owed)
    silent, carried = xp.where(starts, 0.0, s.silent), xp.where(starts, 0.0, s.carried)
    nxt_0 = xp.where(starts, s.nxt_start, s.nxt_0)
    nxt_1 = xp.where(starts, now.sent - s.rate * since, s.nxt_1)
    una_0 = xp.where(starts, s.nxt_start, s.una_0)
    acked = xp.where(starts, eligible, s.acked + now.newly)
    ce = xp.where(starts, marked * eligible, s.ce + marked * now.newly)
    ue = xp.where(starts, undetermined * eligible, s.ue + undetermined * now.newly)
    # The period ends; what came and went after its end belongs to the next.
    over = clock - p.period
    ends = over >= 0
    late = xp.where(ends, now.newly * over / now.dt, 0.0)
    T_acked, T_ce, T_ue = acked - late, ce - marked * late, ue - undetermined * late
    una, nxt = now.acked - late, xp.maximum(now.sent - s.rate * over, nxt_1)
    share = T_ce / xp.maximum(T_acked, NONE)
    congested = xp.minimum(p.mark_fraction, 1.0 - NONE) < share
    runs, enough = ends & (halted == 0), T_acked >= whole
    decides, waits = runs & enough, runs & xp.logical_not(enough)
    extends = ends & (halted > 0) & congested  # lines 6 to 10, as printed
    # Fig. 5.
    some = share > NONE
    held = some & xp.logical_not(congested) & p.holds
    warned = xp.logical_not(some) & (T_ue > NONE * T_acked)
    raises = xp.logical_not(congested | held | warned)
    n_v = xp.where(warned, s.n_v + 1.0, 0.0)  # counts this period (lines 22 to 26)
    less = xp.where(n_v > p.p_thresh, halved(s.rate, least), s.rate)
    more = xp.where(held, s.rate, raised(p, s.rate, now.line_rate, s.n_u))
    # Lines 3 to 9, and 27 to 34. Where less than a packet was acknowledged in T_i itself, with the inter-arrival time
    # instead of T (4.3).
    R = xp.where(T_acked - carried < now.wire_packet, T_acked / (1.0 + silent), T_acked - carried) / p.period
    R = xp.maximum(R, NONE)
    excess = (nxt_1 - nxt_0) - (una - una_0)  # dS - dA
    halts = congested & (excess > 0) & p.halt
    extension = xp.where(halts, beyond(nxt - nxt_1, R, s.rate) / R, 0.0)
    paused = xp.where(halts, excess / R, 0.0) + xp.where(p.extends_at_once, extension, 0.0)
    decided = xp.where(congested, matched(R, least, now.line_rate), xp.where(warned, less, more))
    rate = xp.where(decides, decided, s.rate)
    whole_halt = paused + xp.where(p.extends_later, extension, 0.0)
    halt_time = xp.where(decides & halts, whole_halt, s.halt_time)
    ack_rate = xp.where(decides & congested, R, s.ack_rate)
    halt, halted = xp.where(decides, paused, halt), xp.where(decides, xp.where(halts, 1.0, 0.0), halted)
    owed = xp.where(decides & p.extends_later, extension, owed)
    nxt_start = xp.where(decides & halts, now.sent, s.nxt_start)
    # Lines 6 to 10 in each period of a halt (ours): it lasts until what is in flight fits R T.
    R = xp.maximum(T_acked / p.period, NONE)
    until = (now.sent - una) / R - p.period - over
    longer = extends & (until > halt) & enough & p.extends_again
    rate = xp.where(longer, matched(R, least, now.line_rate), rate)
    halt_time = xp.where(longer, halt_time + until - halt, halt_time)
    ack_rate, halt = xp.where(longer, R, ack_rate), xp.where(longer, until, halt)
    nxt_start = xp.where(longer, now.sent, nxt_start)
    # At `over` before this step's end the rate changed; what was sent since at the old one delays the next packet.
    halt = halt + (xp.where(decides, over * (s.rate / rate - 1.0), 0.0) + xp.where(extends, owed, 0.0))
    halt = xp.maximum(halt, 0.0)
    return State(
        rate=rate,
        pace=rate * xp.minimum(xp.maximum(1.0 - halt / now.dt, 0.0), 1.0),
        halt=halt,
        clock=xp.where(ends, over, clock),
        halted=halted,
        silent=xp.where(decides, 0.0, silent) + xp.where(waits, 1.0, 0.0),
        carried=xp.where(waits, T_acked, xp.where(decides, 0.0, carried)),
        owed=xp.where(extends, 0.0, owed),
        nxt_start=nxt_start,
        nxt_0=xp.where(decides, nxt_1, nxt_0),  # without ACKs nxt_0 and una_0 stay, and dS accumulates (4.2)
        nxt_1=xp.where(ends, nxt, nxt_1),
        una_0=xp.where(decides, una, una_0),
        acked=xp.where(waits, acked, xp.where(ends, late, acked)),
        ce=xp.where(ends & xp.logical_not(waits), marked * late, ce),
        ue=xp.where(ends & xp.logical_not(waits), undetermined * late, ue),
        n_u=xp.where(decides, xp.where(raises, s.n_u + 1.0, 0.0), s.n_u),
        n_v=xp.where(decides, n_v, s.n_v),
        halt_time=halt_time,
        ack_rate=ack_rate,
        inflight=now.sent - now.acked,
    )
