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

COLUMNS = [
    ("vai", _I),
    ("sampling", _I),  # 0: once per round trip
    ("probabilistic", _I),
    ("ignored_ends_period", _I),
    ("ai_cap", _F),
    ("bank_cap", _F),
    ("ai_div", _F),
    ("token_thresh", _F),
    ("tokens_above", _F),  # of the congestion measured, what makes no tokens
    ("dampener_constant", _F),
    # state
    ("bank", _F),
    ("dampener", _F),
    ("measured", _F),  # most congestion of the round trip
    ("congested", _I),  # whether it asked for a decrease at any time in it
    ("trip_end", _I),  # payload byte whose ACK ends the round trip; 0 before the first ACK
    ("acks", _I),  # since the last adjustment
]


def fill(parameters: Any, me: Any, token_thresh: float) -> None:
    """Write the parameters; ``token_thresh`` is the scheme's, in its unit of congestion."""
    p = parameters
    me.vai, me.probabilistic = p.vai, p.probabilistic
    me.ignored_ends_period = p.ignored_costs == IGNORED_COSTS[1]
    me.sampling = 0 if p.sampling is None else round(p.sampling)
    me.ai_cap, me.bank_cap, me.ai_div, me.dampener_constant = p.ai_cap, p.bank_cap, p.ai_div, p.dampener_constant
    me.token_thresh = token_thresh
    me.tokens_above = token_thresh if p.token_rule == TOKEN_RULES[1] else 0.0


@kernel
def round_trip_over(me: Any) -> None:
    """Algorithm 1: generate tokens and set the dampener."""
    if me.measured > me.token_thresh:
        me.bank = min((me.measured - me.tokens_above) / me.ai_div + me.bank, me.bank_cap)
        me.dampener += me.measured / me.token_thresh
    elif me.bank == 0.0:
        if not me.congested:
            me.dampener = 0.0
        elif me.measured < me.token_thresh:
            me.dampener = max(me.dampener - 1.0, 0.0)
    me.measured = 0.0
    me.congested = 0


@kernel
def observed(flow: Any, me: Any, ack: Any, congestion: Any, congested: Any) -> Any:
    """Count an ACK and the congestion that it reports; return whether it ends a round trip (with Variable AI)."""
    me.acks += ack.covers
    if not me.vai:
        return False
    me.measured = max(me.measured, congestion)
    if congested:
        me.congested = 1
    if ack.end <= me.trip_end:
        return False
    over = me.trip_end > 0
    if over:
        round_trip_over(me)
    me.trip_end = flow.sent
    return over


@kernel
def increases(me: Any) -> Any:
    """Algorithm 2, lines 2 and 6 to 8: factor of the additive increase; 1 without Variable AI."""
    if not me.vai:
        return 1.0
    return max(min(me.ai_cap, me.bank) / (me.dampener / me.dampener_constant + 1.0), 1.0)


@kernel
def adjusts(me: Any, decreases: Any, trip_over: Any) -> Any:
    """Check whether a new reference, below the old one or not, may take its place now."""
    return me.acks >= me.sampling if decreases and me.sampling > 0 else trip_over


@kernel
def ignores(core: Any, uniforms: Any, me: Any, share: Any) -> Any:
    """Decide whether an ACK that would decrease the reference, itself ``share`` of the largest, is ignored (III-D).

    Where that ends the period, the caller begins the next one; its ACKs are counted from 0 here.
    """
    if not me.probabilistic:
        return False
    draw = uniforms[core.drawn]
    core.drawn += 1
    ignored = share < draw
    if ignored and me.ignored_ends_period:
        me.acks = 0
    return ignored


@kernel
def adjusted(me: Any) -> None:
    """Algorithm 2, lines 3 to 5: what the increase used is spent."""
    me.acks = 0
    me.bank = max(me.bank - min(me.ai_cap, me.bank), 0.0)


@kernel
def observe(me: Any, samples: Any, row: Any, f: Any, first: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`, from a column on, if the run shows them."""
    if samples.shape[2] > first:
        samples[row, f, first] = me.bank
        samples[row, f, first + 1] = me.dampener
        samples[row, f, first + 2] = increases(me)
