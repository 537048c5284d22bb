"""DCQCN at packet level: the reaction point of Zhu et al., SIGCOMM 2015 (section 3.1, Fig. 7).

The congestion point is the switch's marking, the notification point the host's CNP timer. A flow's timers run
from its start, so that a flow that starts below line rate recovers, and alpha decays as in the fluid model.
What NVIDIA's NICs do otherwise is chosen by parameters: a cut may keep the target (``clamp_tgt_rate``), wait for the
end of a period (``rate_decrease_interval``), and use an alpha that moves once in each slot (``alpha_update``). A period
or a slot that ends as a CNP comes ends first; a cut that is due as the increase timer runs out takes its place.
``variant="hpcc-sim"`` is the reaction point of the HPCC authors' public simulator: it observes marks on ACKs and
looks at them at slots of its own, has no byte counter, and keeps its target over consecutive cuts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.packet.calendar import schedule
from fluidcc.engines.packet.layout import NEVER, TIMER
from fluidcc.engines.packet.pacing import repace
from fluidcc.schemes.dcqcn.parameters import DCQCN

ALPHA, INCREASE, DECREASE = range(3)  # timers
EVERY_CUT, ANY_INCREASE, ANY_BY_BYTES, LAST_BY_BYTES = range(4)  # what makes a cut lower the target
UE, CE = 1, 2  # what a CNP tells
_TIMERS = 4
_NANOSECOND = 1000
_SIMULATOR_SLOT = 50e-6  # s
_I, _F = np.int64, np.float64

STATE = np.dtype(
    [
        ("g", _F),
        ("rate_ai", _F),
        ("rate_hai", _F),
        ("byte_counter", _F),
        ("timer", _I),
        ("alpha_timer", _I),
        ("decrease_interval", _I),
        ("steps", _I),
        ("decrease_gain", _F),
        ("max_decrease", _F),
        ("min_rate", _F),
        ("ceiling", _F),  # of R_C and R_T
        ("first_rate", _F),  # 0: the first CNP cuts
        ("lowers", _I),  # what makes a cut lower the target
        ("slotted", _I),
        ("ue_gain", _F),
        ("hyper", _I),
        ("sim", _I),
        ("win", _I),
        ("base_rtt", _F),
        # state
        ("target", _F),  # R_T; R_C is the flow's rate
        ("alpha", _F),
        ("by_timer", _I),  # increase events since the last cut: T and BC of Fig. 7
        ("by_bytes", _I),
        ("bytes", _F),
        ("alpha_due", _I),
        ("increase_due", _I),
        ("increased", _I),  # the last increase since the last cut: 0 none, 1 by the timer, 2 by bytes
        ("cut_due", _I),  # when the cut that waits is made
        ("cut_kind", _I),  # UE or CE
        ("next_cut", _I),  # end of the period that the last cut opened
        ("observed", _I),  # a first CNP has come; hpcc-sim: a first mark
        ("slots_from", _I),  # slotted alpha: when the slots began,
        ("slot", _I),  # in which of them alpha was that,
        ("slot_hit", _I),  # and whether a CNP came in it
        ("alpha_mark", _I),  # hpcc-sim: a mark came in the present slot
        ("decrease_mark", _I),
    ],
    align=True,
)

OBSERVABLES = {"target_rate": ("bytes/s", "target rate R_T"), "alpha": ("1", "rate reduction factor alpha")}


def fill(parameters: DCQCN, flow: Any, me: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    most = flow.line_rate if p.max_rate is None else p.max_rate
    me.g, me.rate_ai, me.rate_hai, me.byte_counter = p.g, p.rate_ai, p.rate_hai, p.byte_counter
    me.timer, me.alpha_timer = round(p.timer * 1e12), round(p.alpha_timer * 1e12)
    me.steps, me.hyper, me.sim = round(p.fast_recovery_steps), p.hyper_increase, p.variant == "hpcc-sim"
    interval = _SIMULATOR_SLOT if me.sim and p.rate_decrease_interval == 0 else p.rate_decrease_interval
    me.decrease_interval, me.cut_due = round(interval * 1e12), NEVER
    me.decrease_gain, me.max_decrease, me.min_rate = p.decrease_gain, p.max_decrease, p.min_rate
    me.ceiling, me.first_rate = min(flow.line_rate, most), p.rate_on_first_cnp
    me.alpha, me.slotted = p.initial_alpha, p.alpha_update == "slotted"
    if p.clamp_tgt_rate:
        me.lowers = EVERY_CUT
    elif p.clamp_tgt_rate_after_time_inc:
        me.lowers = ANY_INCREASE
    else:
        me.lowers = LAST_BY_BYTES if p.clamp_looks_at == "last-increase" else ANY_BY_BYTES
    me.win, me.base_rtt = p.win, p.base_rtt if p.win else 0.0
    me.ue_gain, flow.ternary = p.ue_gain, p.tcd
    if p.variant == "paper":
        flow.cnp_interval, flow.nic_cnp_interval = round(p.cnp_interval * 1e12), round(p.nic_cnp_interval * 1e12)


@kernel
def begin(sim: Any, f: Any, flow: Any, me: Any) -> None:
    """R_C = R_T = the rate at start."""
    core = sim.core[0]
    flow.rate = min(flow.rate, me.ceiling)
    me.target = flow.rate
    follow(flow, me)
    if not me.sim:
        me.alpha_due = core.now + me.alpha_timer
        me.increase_due = core.now + me.timer
        if not me.slotted:
            schedule(core, sim.calendar, me.alpha_due, TIMER, f * _TIMERS + ALPHA)
        schedule(core, sim.calendar, me.increase_due, TIMER, f * _TIMERS + INCREASE)


@kernel
def follow(flow: Any, me: Any) -> None:
    """Set the window that the rate fills in a base RTT (HPCC 5.1), if ``win`` is on."""
    if me.win:
        flow.window = flow.rate * me.base_rtt


@kernel
def on_cnp(sim: Any, f: Any, flow: Any, me: Any, cnp: Any) -> None:
    """A CNP: CutRate of Fig. 7, now or at the end of the period that the last cut opened; gentler if it tells of UE."""
    core = sim.core[0]
    if me.cut_due <= core.now:
        cut(core, flow, me)
    kind = UE if cnp.undetermined else CE
    first = me.observed == 0
    me.observed = 1
    if me.slotted and first:  # sets alpha, which stands at its first value, and is not counted again
        me.slots_from = core.now
    elif me.slotted:
        settle(core, me)
        me.slot_hit = 1
    if first and me.first_rate > 0.0:
        me.target = flow.rate = max(min(flow.rate, me.first_rate), me.min_rate)
        restart(core, flow, me)
    elif core.now >= me.next_cut:
        me.cut_kind = kind
        cut(core, flow, me)
    else:
        me.cut_kind = max(me.cut_kind, kind)
        if me.cut_due == NEVER:
            me.cut_due = me.next_cut
            schedule(core, sim.calendar, me.cut_due, TIMER, f * _TIMERS + DECREASE)
    if not me.slotted:
        me.alpha = (1.0 - me.g) * me.alpha + me.g  # (1)
        me.alpha_due = core.now + me.alpha_timer  # the pending timer event finds that it is early and waits on


@kernel
def cut(core: Any, flow: Any, me: Any) -> None:
    """Lower the target, if this cut does, and the rate by (1)."""
    if (
        me.lowers == EVERY_CUT
        or (me.lowers == ANY_INCREASE and me.increased > 0)
        or (me.lowers == ANY_BY_BYTES and me.by_bytes > 0)
        or (me.lowers == LAST_BY_BYTES and me.increased == 2)
    ):
        me.target = flow.rate
    if me.slotted:
        settle(core, me)
    share = min(me.decrease_gain * me.alpha, me.max_decrease)
    flow.rate = max(flow.rate * (1.0 - (me.ue_gain * share if me.cut_kind == UE else share)), me.min_rate)
    restart(core, flow, me)


@kernel
def restart(core: Any, flow: Any, me: Any) -> None:
    """Restart Fig. 7's timer and counters after a cut, and a period without another cut."""
    me.by_timer = me.by_bytes = me.increased = 0
    me.bytes = 0.0
    me.increase_due = core.now + me.timer  # the pending timer event finds that it is early and waits on
    me.next_cut = core.now + me.decrease_interval
    me.cut_due, me.cut_kind = NEVER, 0
    follow(flow, me)
    repace(core, flow)


@kernel
def settle(core: Any, me: Any) -> None:
    """Bring a slotted alpha to the present slot."""
    me.alpha = slotted_alpha(core, me)
    slot = (core.now - me.slots_from) // me.alpha_timer
    if slot > me.slot:
        me.slot, me.slot_hit = slot, 0


@kernel
def slotted_alpha(core: Any, me: Any) -> Any:
    """A slotted alpha now: what the slots that have ended since it was last looked at make of it."""
    over = (core.now - me.slots_from) // me.alpha_timer - me.slot
    if me.observed == 0 or over == 0:
        return me.alpha
    return ((1.0 - me.g) * me.alpha + me.g * me.slot_hit) * (1.0 - me.g) ** float(over - 1)


@kernel
def on_timer(sim: Any, f: Any, flow: Any, me: Any, which: Any) -> None:
    """A timer: eq. (2), or an increase."""
    core = sim.core[0]
    if me.sim:
        simulator_expired(sim, f, flow, me, which)
        return
    if which == ALPHA:
        if core.now >= me.alpha_due:
            me.alpha *= 1.0 - me.g  # (2)
            me.alpha_due = core.now + me.alpha_timer
        schedule(core, sim.calendar, me.alpha_due, TIMER, f * _TIMERS + ALPHA)
        return
    if me.cut_due <= core.now:
        cut(core, flow, me)
    if which == DECREASE:
        return
    if core.now >= me.increase_due:
        me.by_timer += 1
        me.increased = 1
        increase(flow, me)
        repace(core, flow)
        me.increase_due = core.now + me.timer
    schedule(core, sim.calendar, me.increase_due, TIMER, f * _TIMERS + INCREASE)


@inlined
def on_sent(flow: Any, me: Any, size: Any) -> None:
    """Count bytes; the packet that ends a count is paced already by the rate at which it left (no paper says)."""
    if me.sim:
        return
    me.bytes += size
    if me.bytes >= me.byte_counter:
        me.bytes -= me.byte_counter
        me.by_bytes += 1
        me.increased = 2
        increase(flow, me)


@kernel
def increase(flow: Any, me: Any) -> None:
    """Fig. 7: fast recovery (3) for F events, then additive (4), then, if on, hyper increase."""
    if max(me.by_timer, me.by_bytes) > me.steps:
        hyper = me.hyper and min(me.by_timer, me.by_bytes) > me.steps
        me.target = min(me.target + (me.rate_hai if hyper else me.rate_ai), me.ceiling)
    flow.rate = (me.target + flow.rate) / 2
    follow(flow, me)


@inlined
def on_ack(sim: Any, f: Any, flow: Any, me: Any, ack: Any) -> None:
    """An ACK; only the public simulator's variant observes marks from it."""
    if not me.sim or ack.marks == 0:
        return
    core = sim.core[0]
    me.alpha_mark = me.decrease_mark = 1
    if not me.observed:
        me.observed = 1
        me.alpha = 1.0
        me.alpha_mark = 0
        me.target = flow.rate
        schedule(core, sim.calendar, core.now + me.alpha_timer, TIMER, f * _TIMERS + ALPHA)
        schedule(core, sim.calendar, core.now + me.decrease_interval + _NANOSECOND, TIMER, f * _TIMERS + DECREASE)


@kernel
def simulator_expired(sim: Any, f: Any, flow: Any, me: Any, which: Any) -> None:
    """The public simulator's slots: alpha, cut and increase each on a timer of its own."""
    core = sim.core[0]
    if which == ALPHA:
        me.alpha = (1.0 - me.g) * me.alpha + (me.g if me.alpha_mark else 0.0)
        me.alpha_mark = 0
        schedule(core, sim.calendar, core.now + me.alpha_timer, TIMER, f * _TIMERS + ALPHA)
    elif which == DECREASE:
        schedule(core, sim.calendar, core.now + me.decrease_interval, TIMER, f * _TIMERS + DECREASE)
        if me.decrease_mark:
            if me.by_timer > 0:  # a cut right after a cut keeps its target
                me.target = flow.rate
            flow.rate = whole_bits(max(flow.rate * (1.0 - me.alpha / 2), me.min_rate))
            me.by_timer = 0
            me.decrease_mark = 0
            if me.increase_due == 0:
                schedule(core, sim.calendar, core.now + me.timer, TIMER, f * _TIMERS + INCREASE)
            me.increase_due = core.now + me.timer
            follow(flow, me)
    else:
        if core.now < me.increase_due:
            schedule(core, sim.calendar, me.increase_due, TIMER, f * _TIMERS + INCREASE)
            return
        if me.by_timer >= me.steps:
            me.target += me.rate_ai if me.by_timer == me.steps else me.rate_hai
            me.target = min(me.target, me.ceiling)
        flow.rate = whole_bits((me.target + flow.rate) / 2)
        me.by_timer += 1
        me.increase_due = core.now + me.timer
        schedule(core, sim.calendar, me.increase_due, TIMER, f * _TIMERS + INCREASE)
        follow(flow, me)


@kernel
def whole_bits(rate: Any) -> Any:
    """The simulator's rates are whole bits per second."""
    return int(rate * 8.0) / 8.0


@kernel
def observe(core: Any, me: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = me.target
    samples[row, f, 4] = slotted_alpha(core, me) if me.slotted else me.alpha
