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

_I, _F = np.int64, np.float64
_SAME = 1e-9  # of a period: rounding of times that are equal
_TIE = 1e-12  # s; times add up rounding over a run

ONLY = {"variant": "paper", "win": False, "tcd": False}
PACED_BY = ("timer", "byte_counter")

STATE = np.dtype(
    [
        *FORMULAS,
        ("timer", _F),
        ("alpha_timer", _F),
        ("cut_period", _F),
        ("first_rate", _F),  # to which the first CNP lowers the rate; 0: it cuts
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


def init_state(parameters: DCQCN, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    copy(p, flow, state)
    state.timer, state.alpha_timer, state.first_rate = p.timer, p.alpha_timer, p.rate_on_first_cnp
    state.cut_period, state.cut_at = p.rate_decrease_interval, math.inf
    state.alpha, state.slotted = p.initial_alpha, p.alpha_update == "slotted"
    flow.cnp_interval, flow.nic_cnp_interval = p.cnp_interval, p.nic_cnp_interval


@kernel
def begin(flow: Any, state: Any, now: Any) -> None:
    """R_C = R_T = the rate at start."""
    flow.rate = min(flow.rate, state.most_rate)
    state.target = flow.rate
    state.alpha_at = now
    begin_anew(flow, state, now)


@kernel
def begin_anew(flow: Any, state: Any, now: Any) -> None:
    """Restart the increases of Fig. 7."""
    state.by_timer = state.by_bytes = state.last_by_bytes = 0
    flow.timer = state.increase_at = now + state.timer
    flow.counter = flow.gone + state.byte_counter


@kernel
def on_cnp(flow: Any, state: Any, now: Any) -> None:
    """A CNP: it cuts, or makes a cut due when the period is over."""
    if state.cut_at <= now + _TIE:
        cut(flow, state, now)
    if state.notified == 0 and state.first_rate > 0.0:
        state.target = flow.rate = max(min(flow.rate, state.first_rate), state.min_rate)
        state.free_at = now + state.cut_period
        begin_anew(flow, state, now)
    elif state.free_at > now + _TIE:
        state.cut_at = state.free_at
        flow.timer = min(state.cut_at, state.increase_at)
    else:
        cut(flow, state, now)
    if not state.slotted:
        state.alpha = raised_alpha(state, decayed(state, now))
        state.alpha_at = now
    elif state.notified == 0:  # alpha is its first value, and the slots begin
        state.alpha_at = now
    else:
        turn(state, now)
    state.notified = 1


@kernel
def cut(flow: Any, state: Any, now: Any) -> None:
    """CutRate of Fig. 7, eq. (1)."""
    if lowers_target(state, state.by_timer, state.by_bytes, state.last_by_bytes):
        state.target = flow.rate
    flow.rate = cut_rate(state, flow.rate, decayed(state, now), 1.0)
    state.cut_at, state.free_at = math.inf, now + state.cut_period
    begin_anew(flow, state, now)


@kernel
def decayed(state: Any, now: Any) -> Any:
    """Alpha now: eq. (2), once for each period of its timer; or what its slots have made of it."""
    if state.slotted:
        return slotted(state, state.alpha, state.hit, ended(state, now))
    return decayed_alpha(state, state.alpha, math.floor((now - state.alpha_at) / state.alpha_timer + _SAME))


@kernel
def ended(state: Any, now: Any) -> Any:
    """Slots that have ended since alpha was worked out; none before the first CNP."""
    return float(math.floor((now + _TIE - state.alpha_at) / state.alpha_timer)) if state.notified else 0.0


@kernel
def turn(state: Any, now: Any) -> None:
    """Bring a slotted alpha to the slot that it is now, in which a CNP has come."""
    slots = ended(state, now)
    if slots > 0.0:
        state.alpha = decayed(state, now)
        state.alpha_at += slots * state.alpha_timer
    state.hit = 1


@kernel
def on_timer(flow: Any, state: Any, now: Any) -> None:
    """The cut that waits is due, or the increase timer."""
    if state.cut_at <= now:
        cut(flow, state, now)
        return
    state.by_timer += 1
    state.last_by_bytes = 0
    state.increase_at = now + state.timer
    flow.timer = min(state.cut_at, state.increase_at)
    increase(flow, state)


@kernel
def on_bytes(flow: Any, state: Any) -> None:
    """The byte counter."""
    state.by_bytes += 1
    state.last_by_bytes = 1
    flow.counter += state.byte_counter
    increase(flow, state)


@kernel
def increase(flow: Any, state: Any) -> None:
    """Fig. 7: a higher target, and a rate half way to it."""
    state.target = aimed(state, state.target, state.by_timer, state.by_bytes)
    flow.rate = recovered(flow.rate, state.target)


@kernel
def observe(state: Any, samples: Any, row: Any, f: Any, now: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 2] = state.target
    samples[row, f, 3] = decayed(state, now)
