"""DCQCN's reaction point between fluid queues: the algorithm itself (Zhu et al., SIGCOMM 2015, section 3.1, Fig. 7).

Alpha's decays are a power at the next cut: nothing else reads it. One that falls on the same instant as a CNP comes
first, and so does the end of a slot of alpha or of a period between cuts. A cut that is due as the increase timer runs
out takes its place. Times are the same if they are within a picosecond.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.schemes.dcqcn.parameters import DCQCN

_I, _F = np.int64, np.float64
_SAME = 1e-9  # of a period: rounding of times that are equal
_TIE = 1e-12  # s; times add up rounding over a run

ONLY = {"variant": "paper", "win": False, "tcd": False}
PACED_BY = ("timer", "byte_counter")

STATE = np.dtype(
    [
        ("g", _F),
        ("rate_ai", _F),
        ("rate_hai", _F),
        ("byte_counter", _F),
        ("timer", _F),
        ("alpha_timer", _F),
        ("steps", _I),
        ("decrease_gain", _F),
        ("max_decrease", _F),
        ("min_rate", _F),
        ("hyper", _I),
        ("most_rate", _F),  # of R_C and R_T
        ("cut_period", _F),
        ("first_rate", _F),  # to which the first CNP lowers the rate; 0: it cuts
        ("clamps", _I),  # every cut lowers the target; else one after an increase,
        ("time_counts", _I),  # by the timer too,
        ("last_counts", _I),  # or if the last was by bytes
        ("slotted", _I),
        # state
        ("target", _F),  # R_T; R_C is the flow's rate
        ("alpha", _F),
        ("alpha_at", _F),  # since when its timer runs; slotted: when the slot began in which alpha was that,
        ("hit", _I),  # and whether a CNP came in it
        ("by_timer", _I),  # increase events since the last cut: T and BC of Fig. 7
        ("by_bytes", _I),
        ("last_by_bytes", _I),
        ("increase_at", _F),
        ("cut_at", _F),  # when the cut that waits is made
        ("free_at", _F),  # from when on a CNP cuts at once
        ("notified", _I),  # a CNP has come
    ],
    align=True,
)

OBSERVABLES = {"target_rate": ("bytes/s", "target rate R_T"), "alpha": ("1", "rate reduction factor alpha")}


def fill(parameters: DCQCN, flow: Any, me: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    most = flow.line_rate if p.max_rate is None else p.max_rate
    me.g, me.rate_ai, me.rate_hai, me.byte_counter = p.g, p.rate_ai, p.rate_hai, p.byte_counter
    me.timer, me.alpha_timer = p.timer, p.alpha_timer
    me.steps, me.hyper = round(p.fast_recovery_steps), p.hyper_increase
    me.decrease_gain, me.max_decrease, me.min_rate = p.decrease_gain, p.max_decrease, p.min_rate
    me.most_rate, me.first_rate = min(flow.line_rate, most), p.rate_on_first_cnp
    me.clamps, me.time_counts = p.clamp_tgt_rate, p.clamp_tgt_rate_after_time_inc
    me.last_counts = p.clamp_looks_at == "last-increase"
    me.cut_period, me.cut_at = p.rate_decrease_interval, math.inf
    me.alpha, me.slotted = p.initial_alpha, p.alpha_update == "slotted"
    flow.cnp_interval, flow.nic_cnp_interval = p.cnp_interval, p.nic_cnp_interval


@kernel
def begin(flow: Any, me: Any, now: Any) -> None:
    """R_C = R_T = the rate at start."""
    flow.rate = min(flow.rate, me.most_rate)
    me.target = flow.rate
    me.alpha_at = now
    begin_anew(flow, me, now)


@kernel
def begin_anew(flow: Any, me: Any, now: Any) -> None:
    """Restart the increases of Fig. 7."""
    me.by_timer = me.by_bytes = me.last_by_bytes = 0
    flow.timer = me.increase_at = now + me.timer
    flow.counter = flow.sent + me.byte_counter


@kernel
def on_cnp(flow: Any, me: Any, now: Any) -> None:
    """A CNP: it cuts, or makes a cut due when the period is over."""
    if me.cut_at <= now + _TIE:
        cut(flow, me, now)
    if me.notified == 0 and me.first_rate > 0.0:
        me.target = flow.rate = max(min(flow.rate, me.first_rate), me.min_rate)
        me.free_at = now + me.cut_period
        begin_anew(flow, me, now)
    elif me.free_at > now + _TIE:
        me.cut_at = me.free_at
        flow.timer = min(me.cut_at, me.increase_at)
    else:
        cut(flow, me, now)
    if not me.slotted:
        me.alpha = (1.0 - me.g) * decayed(me, now) + me.g
        me.alpha_at = now
    elif me.notified == 0:  # alpha is its first value, and the slots begin
        me.alpha_at = now
    else:
        turn(me, now)
    me.notified = 1


@kernel
def cut(flow: Any, me: Any, now: Any) -> None:
    """CutRate of Fig. 7, eq. (1)."""
    if me.clamps or lowers(me):
        me.target = flow.rate
    share = min(me.decrease_gain * decayed(me, now), me.max_decrease)
    flow.rate = max(flow.rate * (1.0 - share), me.min_rate)
    me.cut_at, me.free_at = math.inf, now + me.cut_period
    begin_anew(flow, me, now)


@kernel
def lowers(me: Any) -> Any:
    """Check whether an increase came since the last cut that makes this one lower the target."""
    if me.time_counts:
        return me.by_timer + me.by_bytes > 0
    return me.last_by_bytes > 0 if me.last_counts else me.by_bytes > 0


@kernel
def decayed(me: Any, now: Any) -> Any:
    """Alpha now: eq. (2), once for each period of its timer; or what its slots have made of it."""
    if me.slotted:
        slots = ended(me, now)
        if slots < 1.0:
            return me.alpha
        return ((1.0 - me.g) * me.alpha + me.g * me.hit) * (1.0 - me.g) ** (slots - 1.0)
    periods = math.floor((now - me.alpha_at) / me.alpha_timer + _SAME)
    return me.alpha * (1.0 - me.g) ** periods


@kernel
def ended(me: Any, now: Any) -> Any:
    """Slots that have ended since alpha was worked out; none before the first CNP."""
    return float(math.floor((now + _TIE - me.alpha_at) / me.alpha_timer)) if me.notified else 0.0


@kernel
def turn(me: Any, now: Any) -> None:
    """Bring a slotted alpha to the slot that it is now, in which a CNP has come."""
    slots = ended(me, now)
    if slots > 0.0:
        me.alpha = decayed(me, now)
        me.alpha_at += slots * me.alpha_timer
    me.hit = 1


@kernel
def on_timer(flow: Any, me: Any, now: Any) -> None:
    """The cut that waits is due, or the increase timer."""
    if me.cut_at <= now:
        cut(flow, me, now)
        return
    me.by_timer += 1
    me.last_by_bytes = 0
    me.increase_at = now + me.timer
    flow.timer = min(me.cut_at, me.increase_at)
    increase(flow, me)


@kernel
def on_bytes(flow: Any, me: Any) -> None:
    """The byte counter."""
    me.by_bytes += 1
    me.last_by_bytes = 1
    flow.counter += me.byte_counter
    increase(flow, me)


@kernel
def increase(flow: Any, me: Any) -> None:
    """Fig. 7: fast recovery (3) for F events, then additive (4), then, if on, hyper increase."""
    if max(me.by_timer, me.by_bytes) > me.steps:
        hyper = me.hyper and min(me.by_timer, me.by_bytes) > me.steps
        me.target = min(me.target + (me.rate_hai if hyper else me.rate_ai), me.most_rate)
    flow.rate = (me.target + flow.rate) / 2


@kernel
def observe(me: Any, samples: Any, row: Any, f: Any, now: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 2] = me.target
    samples[row, f, 3] = decayed(me, now)
