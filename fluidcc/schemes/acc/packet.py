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

import fluidcc.schemes.acc.law as law
from fluidcc.contract.law import in_world
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.common.rules import constants, copy
from fluidcc.engines.packet.calendar import schedule
from fluidcc.engines.packet.layout import PS, TIMER
from fluidcc.engines.packet.pacing import repace
from fluidcc.schemes.acc.parameters import ACC, check_period

_TIMERS = 4
_NEVER, _AT_ONCE, _PRINTED, _INFLIGHT = range(4)
_I, _F = np.int64, np.float64
beyond, halved, matched, raised = (
    in_world(rule, scalars, kernel) for rule in (law.beyond, law.halved, law.matched, law.raised)
)

_GIVEN = constants(ACC)
STATE = np.dtype(
    [
        *_GIVEN,
        ("period_ps", _I),
        ("counts", _I),
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
        ("acks", _I),  # that came in T_i
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


def init_state(parameters: ACC, flow: Any, state: Any) -> None:
    """Write a flow's parameters; packets go round their path, whatever the feedback delay of the fluid."""
    p = parameters
    check_period(p.period, p.empty_rtt)
    copy(p, state, _GIVEN)
    state.period_ps, state.min_rate = round(p.period * PS), min(p.min_rate, flow.line_rate)
    state.counts, state.hold = p.ack_rate == "count", p.holds
    state.extension = {"never": _NEVER, "at-once": _AT_ONCE, "printed": _PRINTED, "inflight": _INFLIGHT}[p.extension]


@kernel
def begin(flow: Any, state: Any) -> None:
    """Raise the initial rate to the minimum rate; nothing is acknowledged yet, so nothing is decided."""
    flow.rate = max(flow.rate, state.min_rate)


@inlined
def on_ack(sim: Any, f: Any, flow: Any, state: Any, ack: Any) -> None:
    """Count an ACK, or start the clock with it."""
    core = sim.core[0]
    if not state.running:
        state.running = 1
        schedule(core, sim.calendar, core.now + state.period_ps, TIMER, f * _TIMERS)
        start_clock(core, flow, state)
        return
    if state.halted and flow.acked_wire > state.nxt_start:
        state.halted = 0
        state.nxt_1 = state.una_0 = state.nxt_start
        start_clock(core, flow, state)
        return
    if state.packets == 0:
        state.before = state.last
    state.acks += 1
    state.packets += ack.covers
    state.ce += ack.marks
    state.ue += ack.undetermined
    state.acked += flow.acked_wire - state.una
    state.una = flow.acked_wire
    state.last = core.now


@kernel
def start_clock(core: Any, flow: Any, state: Any) -> None:
    """A period begins with an ACK; what was sent before it is T_{i-1}."""
    state.due = core.now + state.period_ps
    state.nxt_0, state.nxt_1 = state.nxt_1, flow.sent_wire
    state.una = flow.acked_wire
    state.last = state.before = core.now
    clear(state)


@kernel
def clear(state: Any) -> None:
    """Reset the counts of ACKs for a new period."""
    state.acks = state.packets = state.ce = state.ue = state.acked = 0


@kernel
def on_timer(sim: Any, f: Any, flow: Any, state: Any, which: Any) -> None:
    """End of a period, unless the clock was restarted in it."""
    core = sim.core[0]
    if core.now >= state.due:
        state.due = core.now + state.period_ps
        if state.halted:
            if state.acked > 0 and congested(state):
                extend(core, flow, state)
            clear(state)
        elif state.acked > 0 and (state.counts or 2 * (state.last - state.before) >= state.period_ps):
            decide(core, flow, state)
            state.nxt_0, state.nxt_1, state.una_0 = state.nxt_1, flow.sent_wire, state.una
            clear(state)
        else:  # dS accumulates
            if flow.sent_wire == flow.acked_wire and state.packets == 0:
                uncongested(core, flow, state)
            state.nxt_1 = flow.sent_wire
    schedule(core, sim.calendar, state.due, TIMER, f * _TIMERS)


@kernel
def congested(state: Any) -> Any:
    """Check whether the period's ACKs carry CE steadily: more than the fraction of them, or all."""
    return (
        state.ce > state.mark_fraction * state.packets * (1 + 1e-12) or state.ce == state.packets
    )  # exactly at the fraction is not above


@kernel
def decide(core: Any, flow: Any, state: Any) -> None:
    """Fig. 5: what a period's ACKs say."""
    if congested(state):
        throttle(core, flow, state)
    elif state.ce > 0 and state.hold:
        state.n_u = state.n_v = 0
    elif state.ce == 0 and state.ue > 0:
        state.n_u = 0
        state.n_v += 1
        if state.n_v > state.p_thresh:  # lines 23 and 24
            flow.rate = halved(flow.rate, state.min_rate)
            repace(core, flow)
    else:
        uncongested(core, flow, state)


@kernel
def uncongested(core: Any, flow: Any, state: Any) -> None:
    """Lines 13 to 21."""
    flow.rate = raised(state, flow.rate, flow.line_rate, state.n_u)
    state.n_u += 1
    state.n_v = 0
    repace(core, flow)


@kernel
def throttle(core: Any, flow: Any, state: Any) -> None:
    """Lines 3 to 9, and SourceHalt: match the ACKs' rate, after what is beyond it has drained."""
    R = arrival_rate(state)
    state.ack_rate = R
    queued = beyond(flow.sent_wire - state.nxt_1, R, flow.rate)
    excess = (state.nxt_1 - state.nxt_0) - (state.una - state.una_0)  # dS - dA
    flow.rate = matched(R, state.min_rate, flow.line_rate)
    state.n_u = state.n_v = 0
    repace(core, flow)
    if not state.halt or excess <= 0:
        return
    halt, extension = int(excess / R * PS), int(queued / R * PS)
    state.halted = 1
    state.nxt_start = flow.sent_wire
    state.halt_time = halt + (extension if state.extension != _NEVER else 0)
    state.owed = extension if state.extension == _PRINTED else 0
    flow.next = max(flow.next, core.now) + state.halt_time - state.owed  # (1)
    state.until = flow.next


@kernel
def extend(core: Any, flow: Any, state: Any) -> None:
    """Lines 6 to 10: the halt continues."""
    if state.owed > 0:
        flow.next += state.owed
        state.until = flow.next
        state.owed = 0
    elif state.extension == _INFLIGHT and state.last > state.before:
        R = arrival_rate(state)
        backlog = flow.sent_wire - flow.acked_wire - R * state.period_ps * 1e-12
        halt = int(backlog / R * PS)
        if core.now + halt > flow.next:
            state.ack_rate = R
            flow.rate = matched(R, state.min_rate, flow.line_rate)
            state.halt_time += core.now + halt - max(state.until, core.now)
            state.until = flow.next = core.now + halt
            state.nxt_start = flow.sent_wire


@kernel
def arrival_rate(state: Any) -> Any:
    """R of the period's ACKs [bytes/s]."""
    spacing = state.last - state.before
    if state.counts and (state.acks > 1 or spacing < state.period_ps):
        spacing = state.period_ps
    return state.acked / (spacing * 1e-12)


@kernel
def observe(core: Any, flow: Any, state: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = state.halt_time * 1e-12
    samples[row, f, 4] = state.ack_rate
    samples[row, f, 5] = state.halted and core.now < state.until
    samples[row, f, 6] = flow.sent_wire - flow.acked_wire
