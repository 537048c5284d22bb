"""DCQCN's reaction point, once for packets and hybrid: Zhu et al., SIGCOMM 2015, section 3.1, Fig. 7.

Each engine runs the rules on its own clock: whole picoseconds, or seconds, of which two are the same instant within
one picosecond. A flow's record has its ``rate``, and what the engine calls the rules for: the time ``timer``, and
``counter``, up to which the bytes that are ``gone`` are counted. Both run from the flow's start, so that one that
starts below line rate recovers, and alpha decays as in the fluid model.

What NVIDIA's NICs do otherwise is chosen by parameters: a cut may keep the target (``clamp_tgt_rate``), wait for the
end of a period (``rate_decrease_interval``), and use an alpha that moves once in each slot (``alpha_update``). A period
or a slot that ends as a CNP comes ends first; a cut that is due as the increase timer runs out takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.schemes.dcqcn.parameters import DCQCN

OBSERVABLES = {"target_rate": ("bytes/s", "target rate R_T"), "alpha": ("1", "rate reduction factor alpha")}
# Parameters that the record keeps under their names.
_NUMBERS = ("g", "rate_ai", "rate_hai", "byte_counter", "decrease_gain", "max_decrease", "min_rate")
_NUMBERS += ("rate_on_first_cnp", "ue_gain")
_TIMES = ("timer", "alpha_timer", "rate_decrease_interval")
_SWITCHES = ("hyper_increase", "clamp_tgt_rate", "clamp_tgt_rate_after_time_inc")


def record(time: Any, *more: tuple[str, Any]) -> np.dtype[Any]:
    """Return the record of a flow whose times are of a type, and ``more`` fields."""
    fields = [
        *((name, np.float64) for name in _NUMBERS),
        *((name, time) for name in _TIMES),
        *((name, np.bool_) for name in (*_SWITCHES, "looks_at_last", "slotted")),
        ("fast_recovery_steps", np.int64),
        ("most_rate", np.float64),  # of R_C and R_T
        ("never", time),
        ("tie", time),  # between times that are the same
        # state
        ("target", np.float64),  # R_T; R_C is the flow's rate
        ("alpha", np.float64),
        ("alpha_from", time),  # since when its timer runs, or its slots,
        ("periods", np.int64),  # and how many of them are in alpha
        ("hit", np.int64),  # whether a CNP came in the slot after those
        ("by_timer", np.int64),  # increase events since the last cut: T and BC of Fig. 7
        ("by_bytes", np.int64),
        ("last_by_bytes", np.int64),  # the last increase since the last cut was
        ("increase_at", time),
        ("cut_at", time),  # when the cut that waits is made,
        ("gain", np.float64),  # and how hard it is
        ("free_at", time),  # from when on a CNP cuts at once
        ("notified", np.int64),  # a CNP has come
    ]
    return np.dtype([*fields, *more], align=True)


def init_state(parameters: DCQCN, flow: Any, state: Any, clock: Callable[[float], Any], never: Any, tie: Any) -> None:
    """Write a flow's parameters and first state; ``clock`` makes the engine's time of seconds."""
    p = parameters
    for name in (*_NUMBERS, *_SWITCHES):
        setattr(state, name, getattr(p, name))
    for name in _TIMES:
        setattr(state, name, clock(getattr(p, name)))
    state.looks_at_last, state.slotted = p.clamp_looks_at == "last-increase", p.alpha_update == "slotted"
    state.fast_recovery_steps = round(p.fast_recovery_steps)
    state.most_rate = flow.line_rate if p.max_rate is None else min(flow.line_rate, p.max_rate)
    state.never = state.cut_at = never
    state.tie, state.alpha = tie, p.initial_alpha


# -- formulas ------------------------------------------------------------------------------------------------------


@kernel
def raised_alpha(parameters: Any, alpha: Any) -> Any:
    """Alpha after a CNP (1)."""
    return (1.0 - parameters.g) * alpha + parameters.g


@kernel
def decayed_alpha(parameters: Any, alpha: Any, periods: Any) -> Any:
    """Alpha after periods of its timer without a CNP (2), one by one."""
    for _ in range(periods):
        alpha = alpha * (1.0 - parameters.g)
    return alpha


@kernel
def slotted_alpha(parameters: Any, alpha: Any, hit: Any, slots: Any) -> Any:
    """Alpha that moves once in each slot, after ``slots`` more; ``hit``: a CNP came in the first of them."""
    return ((1.0 - parameters.g) * alpha + parameters.g * hit) * (1.0 - parameters.g) ** (slots - 1.0)


@kernel
def lowers_target(parameters: Any, by_timer: Any, by_bytes: Any, last_by_bytes: Any) -> Any:
    """Check whether a cut lowers the target: each does, or one after an increase (of those that count)."""
    p = parameters
    if p.clamp_tgt_rate:
        return True
    if p.clamp_tgt_rate_after_time_inc:
        return by_timer + by_bytes > 0
    return last_by_bytes > 0 if p.looks_at_last else by_bytes > 0


@kernel
def cut_rate(parameters: Any, rate: Any, alpha: Any, gain: Any) -> Any:
    """Rate after CutRate (1); ``gain`` below 1 is of a CNP that tells of a queue that may be another's."""
    p = parameters
    share = min(p.decrease_gain * alpha, p.max_decrease)
    return max(rate * (1.0 - gain * share), p.min_rate)


@kernel
def aimed(parameters: Any, target: Any, by_timer: Any, by_bytes: Any) -> Any:
    """Target after an increase: fast recovery (3) for F events, then additive (4), then, if on, hyper increase."""
    p = parameters
    if max(by_timer, by_bytes) <= p.fast_recovery_steps:
        return target
    hyper = p.hyper_increase and min(by_timer, by_bytes) > p.fast_recovery_steps
    return min(target + (p.rate_hai if hyper else p.rate_ai), p.most_rate)


@kernel
def recovered(rate: Any, target: Any) -> Any:
    """Rate half way to the target (3)."""
    return (target + rate) / 2


# -- rules ---------------------------------------------------------------------------------------------------------


@kernel
def begin(flow: Any, state: Any, now: Any) -> None:
    """R_C = R_T = the rate at start."""
    flow.rate = min(flow.rate, state.most_rate)
    state.target = flow.rate
    state.alpha_from = now
    restart(flow, state, now)


@kernel
def restart(flow: Any, state: Any, now: Any) -> None:
    """Restart the timer and the counters of Fig. 7."""
    state.by_timer = state.by_bytes = state.last_by_bytes = 0
    flow.timer = state.increase_at = now + state.timer
    flow.counter = flow.gone + state.byte_counter


@kernel
def on_cnp(flow: Any, state: Any, now: Any, gain: Any) -> Any:
    """Cut at a CNP, now or at the end of the period that the last cut opened; return whether the rate is a new one.

    ``gain`` below 1 is of a CNP that tells of a queue that may be another's (TCD's UE). Of several that wait for the
    same cut the hardest counts.
    """
    new = state.cut_at <= now + state.tie
    if new:
        cut(flow, state, now)
    first = state.notified == 0
    if state.slotted and first:  # it finds alpha at its first value, is not counted again, and the slots begin
        state.alpha_from = now
    else:
        settle(state, now)
        state.hit = 1
    state.notified = 1
    if first and state.rate_on_first_cnp > 0.0:
        state.target = flow.rate = max(min(flow.rate, state.rate_on_first_cnp), state.min_rate)
        state.free_at = now + state.rate_decrease_interval
        restart(flow, state, now)
        new = True
    elif state.free_at <= now + state.tie:
        state.gain = gain
        cut(flow, state, now)
        new = True
    else:
        state.gain = max(state.gain, gain)
        state.cut_at = state.free_at
        flow.timer = min(state.cut_at, state.increase_at)
    if not state.slotted:
        state.alpha = raised_alpha(state, state.alpha)
        state.alpha_from, state.periods = now, 0
    return new


@kernel
def cut(flow: Any, state: Any, now: Any) -> None:
    """CutRate of Fig. 7: lower the target, if this cut does, and the rate by (1)."""
    if lowers_target(state, state.by_timer, state.by_bytes, state.last_by_bytes):
        state.target = flow.rate
    settle(state, now)
    flow.rate = cut_rate(state, flow.rate, state.alpha, state.gain)
    state.cut_at, state.gain = state.never, 0.0
    state.free_at = now + state.rate_decrease_interval
    restart(flow, state, now)


@kernel
def ended(state: Any, now: Any) -> Any:
    """Periods of alpha's timer, or slots, that have ended and are not in alpha; slots begin with a CNP."""
    if state.slotted and not state.notified:
        return 0
    return math.floor((now + state.tie - state.alpha_from) / state.alpha_timer) - state.periods


@kernel
def alpha_after(state: Any, periods: Any) -> Any:
    """Alpha after so many periods or slots."""
    if periods == 0:
        return state.alpha
    if state.slotted:
        return slotted_alpha(state, state.alpha, state.hit, float(periods))
    return decayed_alpha(state, state.alpha, periods)


@kernel
def settle(state: Any, now: Any) -> None:
    """Bring alpha to the present period or slot."""
    periods = ended(state, now)
    if periods > 0:
        state.alpha = alpha_after(state, periods)
        state.periods += periods
        state.hit = 0


@kernel
def alpha_now(state: Any, now: Any) -> Any:
    """Alpha at an instant.

    One that decays by a timer is brought there, or many looks at it would count all its periods again and again: they
    are multiplied one by one, so that this changes no digit. Slots are a power, which in parts would be another number.
    """
    if not state.slotted:
        settle(state, now)
    return alpha_after(state, ended(state, now))


@kernel
def on_timer(flow: Any, state: Any, now: Any) -> None:
    """Make the cut that waits, or the timer's increase."""
    if state.cut_at <= now + state.tie:
        cut(flow, state, now)
        return
    state.by_timer += 1
    state.last_by_bytes = 0
    state.increase_at = now + state.timer
    flow.timer = min(state.cut_at, state.increase_at)
    increase(flow, state)


@kernel
def on_bytes(flow: Any, state: Any) -> None:
    """Make the byte counter's increase."""
    state.by_bytes += 1
    state.last_by_bytes = 1
    flow.counter += state.byte_counter
    increase(flow, state)


@kernel
def increase(flow: Any, state: Any) -> None:
    """Fig. 7: a higher target, and a rate half way to it."""
    state.target = aimed(state, state.target, state.by_timer, state.by_bytes)
    flow.rate = recovered(flow.rate, state.target)
