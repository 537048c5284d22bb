"""DCQCN's reaction point as formulas: Zhu et al., SIGCOMM 2015, section 3.1, Fig. 7, and what NVIDIA's NICs do.

Packets and the hybrid call them at a CNP, a timer and a count of bytes, each on a clock of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.schemes.dcqcn.parameters import DCQCN

# Of the parameters, under their names, for the reaction point's formulas.
NUMBERS = ("g", "rate_ai", "rate_hai", "byte_counter", "decrease_gain", "max_decrease", "min_rate")
SWITCHES = ("hyper_increase", "clamp_tgt_rate", "clamp_tgt_rate_after_time_inc")
FORMULAS = [
    *((name, np.float64) for name in NUMBERS),
    *((name, np.bool_) for name in (*SWITCHES, "looks_at_last")),
    ("fast_recovery_steps", np.int64),
    ("most_rate", np.float64),  # of R_C and R_T
]


def copy(parameters: DCQCN, flow: Any, state: Any) -> None:
    """Copy what the formulas need into a flow's record."""
    p = parameters
    for name in (*NUMBERS, *SWITCHES):
        setattr(state, name, getattr(p, name))
    state.looks_at_last = p.clamp_looks_at == "last-increase"
    state.fast_recovery_steps = round(p.fast_recovery_steps)
    state.most_rate = flow.line_rate if p.max_rate is None else min(flow.line_rate, p.max_rate)


@kernel
def raised_alpha(parameters: Any, alpha: Any) -> Any:
    """Alpha after a CNP (1)."""
    return (1.0 - parameters.g) * alpha + parameters.g


@kernel
def decayed_alpha(parameters: Any, alpha: Any, periods: Any) -> Any:
    """Alpha after periods of its timer without a CNP (2)."""
    return alpha * (1.0 - parameters.g) ** periods


@kernel
def slotted(parameters: Any, alpha: Any, hit: Any, slots: Any) -> Any:
    """Alpha that moves once in each slot, after ``slots`` more; ``hit``: a CNP came in the first of them."""
    if slots < 1.0:
        return alpha
    return decayed_alpha(parameters, (1.0 - parameters.g) * alpha + parameters.g * hit, slots - 1.0)


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
