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
from fluidcc.schemes.dcqcn.reaction_point import (
    FORMULAS,
    aimed,
    copy,
    cut_rate,
    decayed_alpha,
    lowers_target,
    raised_alpha,
    recovered,
    slotted,
)

ALPHA, INCREASE, DECREASE = range(3)  # timers
UE, CE = 1, 2  # what a CNP tells
_TIMERS = 4
_NANOSECOND = 1000
_SIMULATOR_SLOT = 50e-6  # s
_I, _F = np.int64, np.float64

STATE = np.dtype(
    [
        *FORMULAS,
        ("timer", _I),
        ("alpha_timer", _I),
        ("decrease_interval", _I),
        ("first_rate", _F),  # 0: the first CNP cuts
        ("slotted", _I),
        ("ue_gain", _F),
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
        ("last_by_bytes", _I),  # the last increase since the last cut was
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


def init_state(parameters: DCQCN, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    copy(p, flow, state)
    state.timer, state.alpha_timer = round(p.timer * 1e12), round(p.alpha_timer * 1e12)
    state.sim = p.variant == "hpcc-sim"
    interval = _SIMULATOR_SLOT if state.sim and p.rate_decrease_interval == 0 else p.rate_decrease_interval
    state.decrease_interval, state.cut_due = round(interval * 1e12), NEVER
    state.first_rate, state.alpha, state.slotted = p.rate_on_first_cnp, p.initial_alpha, p.alpha_update == "slotted"
    state.win, state.base_rtt = p.win, p.base_rtt if p.win else 0.0
    state.ue_gain, flow.ternary = p.ue_gain, p.tcd
    if p.variant == "paper":
        flow.cnp_interval, flow.nic_cnp_interval = round(p.cnp_interval * 1e12), round(p.nic_cnp_interval * 1e12)


@kernel
def begin(sim: Any, f: Any, flow: Any, state: Any) -> None:
    """R_C = R_T = the rate at start."""
    core = sim.core[0]
    flow.rate = min(flow.rate, state.most_rate)
    state.target = flow.rate
    follow(flow, state)
    if not state.sim:
        state.alpha_due = core.now + state.alpha_timer
        state.increase_due = core.now + state.timer
        if not state.slotted:
            schedule(core, sim.calendar, state.alpha_due, TIMER, f * _TIMERS + ALPHA)
        schedule(core, sim.calendar, state.increase_due, TIMER, f * _TIMERS + INCREASE)


@kernel
def follow(flow: Any, state: Any) -> None:
    """Set the window that the rate fills in a base RTT (HPCC 5.1), if ``win`` is on."""
    if state.win:
        flow.window = flow.rate * state.base_rtt


@kernel
def on_cnp(sim: Any, f: Any, flow: Any, state: Any, cnp: Any) -> None:
    """A CNP: CutRate of Fig. 7, now or at the end of the period that the last cut opened; gentler if it tells of UE."""
    core = sim.core[0]
    if state.cut_due <= core.now:
        cut(core, flow, state)
    kind = UE if cnp.undetermined else CE
    first = state.observed == 0
    state.observed = 1
    if state.slotted and first:  # sets alpha, which stands at its first value, and is not counted again
        state.slots_from = core.now
    elif state.slotted:
        settle(core, state)
        state.slot_hit = 1
    if first and state.first_rate > 0.0:
        state.target = flow.rate = max(min(flow.rate, state.first_rate), state.min_rate)
        restart(core, flow, state)
    elif core.now >= state.next_cut:
        state.cut_kind = kind
        cut(core, flow, state)
    else:
        state.cut_kind = max(state.cut_kind, kind)
        if state.cut_due == NEVER:
            state.cut_due = state.next_cut
            schedule(core, sim.calendar, state.cut_due, TIMER, f * _TIMERS + DECREASE)
    if not state.slotted:
        state.alpha = raised_alpha(state, state.alpha)
        state.alpha_due = core.now + state.alpha_timer  # the pending timer event finds that it is early and waits on


@kernel
def cut(core: Any, flow: Any, state: Any) -> None:
    """Lower the target, if this cut does, and the rate by (1)."""
    if lowers_target(state, state.by_timer, state.by_bytes, state.last_by_bytes):
        state.target = flow.rate
    if state.slotted:
        settle(core, state)
    flow.rate = cut_rate(state, flow.rate, state.alpha, state.ue_gain if state.cut_kind == UE else 1.0)
    restart(core, flow, state)


@kernel
def restart(core: Any, flow: Any, state: Any) -> None:
    """Restart Fig. 7's timer and counters after a cut, and a period without another cut."""
    state.by_timer = state.by_bytes = state.last_by_bytes = 0
    state.bytes = 0.0
    state.increase_due = core.now + state.timer  # the pending timer event finds that it is early and waits on
    state.next_cut = core.now + state.decrease_interval
    state.cut_due, state.cut_kind = NEVER, 0
    follow(flow, state)
    repace(core, flow)


@kernel
def settle(core: Any, state: Any) -> None:
    """Bring a slotted alpha to the present slot."""
    state.alpha = slotted_alpha(core, state)
    slot = (core.now - state.slots_from) // state.alpha_timer
    if slot > state.slot:
        state.slot, state.slot_hit = slot, 0


@kernel
def slotted_alpha(core: Any, state: Any) -> Any:
    """A slotted alpha now: what the slots that have ended since it was last looked at make of it."""
    over = (core.now - state.slots_from) // state.alpha_timer - state.slot
    return slotted(state, state.alpha, state.slot_hit, float(over) if state.observed else 0.0)


@kernel
def on_timer(sim: Any, f: Any, flow: Any, state: Any, which: Any) -> None:
    """A timer: eq. (2), or an increase."""
    core = sim.core[0]
    if state.sim:
        simulator_expired(sim, f, flow, state, which)
        return
    if which == ALPHA:
        if core.now >= state.alpha_due:
            state.alpha = decayed_alpha(state, state.alpha, 1.0)
            state.alpha_due = core.now + state.alpha_timer
        schedule(core, sim.calendar, state.alpha_due, TIMER, f * _TIMERS + ALPHA)
        return
    if state.cut_due <= core.now:
        cut(core, flow, state)
    if which == DECREASE:
        return
    if core.now >= state.increase_due:
        state.by_timer += 1
        state.last_by_bytes = 0
        increase(flow, state)
        repace(core, flow)
        state.increase_due = core.now + state.timer
    schedule(core, sim.calendar, state.increase_due, TIMER, f * _TIMERS + INCREASE)


@inlined
def on_sent(flow: Any, state: Any, size: Any) -> None:
    """Count bytes; the packet that ends a count is paced already by the rate at which it left (no paper says)."""
    if state.sim:
        return
    state.bytes += size
    if state.bytes >= state.byte_counter:
        state.bytes -= state.byte_counter
        state.by_bytes += 1
        state.last_by_bytes = 1
        increase(flow, state)


@kernel
def increase(flow: Any, state: Any) -> None:
    """Fig. 7: a higher target, and a rate half way to it."""
    state.target = aimed(state, state.target, state.by_timer, state.by_bytes)
    flow.rate = recovered(flow.rate, state.target)
    follow(flow, state)


@inlined
def on_ack(sim: Any, f: Any, flow: Any, state: Any, ack: Any) -> None:
    """An ACK; only the public simulator's variant observes marks from it."""
    if not state.sim or ack.marks == 0:
        return
    core = sim.core[0]
    state.alpha_mark = state.decrease_mark = 1
    if not state.observed:
        state.observed = 1
        state.alpha = 1.0
        state.alpha_mark = 0
        state.target = flow.rate
        schedule(core, sim.calendar, core.now + state.alpha_timer, TIMER, f * _TIMERS + ALPHA)
        schedule(core, sim.calendar, core.now + state.decrease_interval + _NANOSECOND, TIMER, f * _TIMERS + DECREASE)


@kernel
def simulator_expired(sim: Any, f: Any, flow: Any, state: Any, which: Any) -> None:
    """The public simulator's slots: alpha, cut and increase each on a timer of its own."""
    core = sim.core[0]
    if which == ALPHA:
        state.alpha = (1.0 - state.g) * state.alpha + (state.g if state.alpha_mark else 0.0)
        state.alpha_mark = 0
        schedule(core, sim.calendar, core.now + state.alpha_timer, TIMER, f * _TIMERS + ALPHA)
    elif which == DECREASE:
        schedule(core, sim.calendar, core.now + state.decrease_interval, TIMER, f * _TIMERS + DECREASE)
        if state.decrease_mark:
            if state.by_timer > 0:  # a cut right after a cut keeps its target
                state.target = flow.rate
            flow.rate = whole_bits(max(flow.rate * (1.0 - state.alpha / 2), state.min_rate))
            state.by_timer = 0
            state.decrease_mark = 0
            if state.increase_due == 0:
                schedule(core, sim.calendar, core.now + state.timer, TIMER, f * _TIMERS + INCREASE)
            state.increase_due = core.now + state.timer
            follow(flow, state)
    else:
        if core.now < state.increase_due:
            schedule(core, sim.calendar, state.increase_due, TIMER, f * _TIMERS + INCREASE)
            return
        if state.by_timer >= state.fast_recovery_steps:
            state.target += state.rate_ai if state.by_timer == state.fast_recovery_steps else state.rate_hai
            state.target = min(state.target, state.most_rate)
        flow.rate = whole_bits((state.target + flow.rate) / 2)
        state.by_timer += 1
        state.increase_due = core.now + state.timer
        schedule(core, sim.calendar, state.increase_due, TIMER, f * _TIMERS + INCREASE)
        follow(flow, state)


@kernel
def whole_bits(rate: Any) -> Any:
    """The simulator's rates are whole bits per second."""
    return int(rate * 8.0) / 8.0


@kernel
def observe(core: Any, state: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = state.target
    samples[row, f, 4] = slotted_alpha(core, state) if state.slotted else state.alpha
