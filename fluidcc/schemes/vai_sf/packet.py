"""Variable AI, Sampling Frequency and probabilistic feedback at packet level, by ACKs.

A sender that takes them calls, on every ACK: `observed`, which runs Algorithm 1 as a round trip ends; `increases`, by
how much more than its own its additive increase is (Algorithm 2); `adjusts`, whether what follows from the ACK may
become its reference; and `adjusted` if it did.

What the text leaves open: a round trip ends with the first ACK of a packet sent after the last one ended; the ACKs of a
sampling period are counted from the last adjustment of any kind; an adjustment decreases if the new reference is below
the old one, increase included ("if the rate decreases overall"); an ACK that is ignored (III-D) leaves the next one to
draw again, or, with ``ignored_costs="period"``, that of the next period.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.schemes.vai_sf.mechanisms import IGNORED_COSTS, TOKEN_RULES
from fluidcc.schemes.vai_sf.mechanisms import OBSERVABLES as OBSERVABLES

_I, _F = np.int64, np.float64

# In addition to the parameters, which a scheme's record has; ``sampling`` is NaN without Sampling Frequency.
COLUMNS = [
    ("ignored_ends_period", _I),
    ("tokens_above", _F),  # of the congestion measured, what makes no tokens
    # state
    ("bank", _F),
    ("dampener", _F),
    ("measured", _F),  # most congestion of the round trip
    ("congested", _I),  # whether it asked for a decrease at any time in it
    ("trip_end", _I),  # payload byte whose ACK ends the round trip; 0 before the first ACK
    ("acks", _I),  # since the last adjustment
]


def init_state(parameters: Any, state: Any) -> None:
    """Write what follows from the parameters."""
    state.ignored_ends_period = parameters.ignored_costs == IGNORED_COSTS[1]
    state.tokens_above = parameters.token_thresh if parameters.token_rule == TOKEN_RULES[1] else 0.0


@kernel
def round_trip_over(state: Any) -> None:
    """Algorithm 1: generate tokens and set the dampener."""
    if state.measured > state.token_thresh:
        state.bank = min((state.measured - state.tokens_above) / state.ai_div + state.bank, state.bank_cap)
        state.dampener += state.measured / state.token_thresh
    elif state.bank == 0.0:
        if not state.congested:
            state.dampener = 0.0
        elif state.measured < state.token_thresh:
            state.dampener = max(state.dampener - 1.0, 0.0)
    state.measured = 0.0
    state.congested = 0


@kernel
def observed(flow: Any, state: Any, ack: Any, congestion: Any, congested: Any) -> Any:
    """Count an ACK and the congestion that it reports; return whether it ends a round trip (with Variable AI)."""
    state.acks += ack.covers
    if not state.vai:
        return False
    state.measured = max(state.measured, congestion)
    if congested:
        state.congested = 1
    if ack.end <= state.trip_end:
        return False
    over = state.trip_end > 0
    if over:
        round_trip_over(state)
    state.trip_end = flow.sent
    return over


@kernel
def increases(state: Any) -> Any:
    """Algorithm 2, lines 2 and 6 to 8: factor of the additive increase; 1 without Variable AI."""
    if not state.vai:
        return 1.0
    return max(min(state.ai_cap, state.bank) / (state.dampener / state.dampener_constant + 1.0), 1.0)


@kernel
def adjusts(state: Any, decreases: Any, trip_over: Any) -> Any:
    """Check whether a new reference, below the old one or not, may take its place now."""
    return state.acks >= state.sampling if decreases and state.sampling > 0 else trip_over


@kernel
def ignores(core: Any, uniforms: Any, state: Any, share: Any) -> Any:
    """Decide whether an ACK that would decrease the reference, itself ``share`` of the largest, is ignored (III-D).

    Where that ends the period, the caller begins the next one; its ACKs are counted from 0 here.
    """
    if not state.probabilistic:
        return False
    draw = uniforms[core.drawn]
    core.drawn += 1
    ignored = share < draw
    if ignored and state.ignored_ends_period:
        state.acks = 0
    return ignored


@kernel
def adjusted(state: Any) -> None:
    """Algorithm 2, lines 3 to 5: what the increase used is spent."""
    state.acks = 0
    state.bank = max(state.bank - min(state.ai_cap, state.bank), 0.0)


@kernel
def observe(state: Any, samples: Any, row: Any, f: Any, first: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`, from a column on, if the run shows them."""
    if samples.shape[2] > first:
        samples[row, f, first] = state.bank
        samples[row, f, first + 1] = state.dampener
        samples[row, f, first + 2] = increases(state)
