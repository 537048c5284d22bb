"""Variable AI, Sampling Frequency and probabilistic feedback in fluid models: `packet`'s rules, for a step's ACKs."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from fluidcc.contract.signals import Progress
from fluidcc.schemes.vai_sf.mechanisms import IGNORED_COSTS, VaiSf
from fluidcc.schemes.vai_sf.mechanisms import OBSERVABLES as OBSERVABLES


class Tokens(NamedTuple):
    """State of the mechanisms, each (flows, points); it changes in jumps only."""

    bank: Array
    dampener: Array
    measured: Array  # most congestion of the round trip
    congested: Array  # whether it asked for a decrease at any time in it
    trip_end: Array  # byte whose ACK ends the round trip; 0 before the first ACK
    acks: Array  # since the last adjustment
    drawn: Array  # expected number of ACKs, among those that would decrease, that were not ignored since the last was
    factor: Array  # additive increase over its base


def start(parameters: VaiSf, shape: tuple[int, int], dtype: Any) -> Tokens | None:
    """State before the first ACK; None if no mechanism is on."""
    if not parameters.mechanisms:
        return None
    none = jnp.zeros(shape, dtype)
    return Tokens(none, none, none, none, none, none, none, none + 1.0)


def observed(p: Any, tokens: Tokens, progress: Progress, congestion: Array, congested: Array) -> tuple[Tokens, Array]:
    """Count a step's ACKs; run Algorithm 1 as a round trip ends, and return whether one does (with Variable AI).

    Parameters
    ----------
    p : VaiSf
        With the scheme's ``token_thresh`` and ``ai_div``.
    tokens : Tokens
    progress : Progress
    congestion : Array, shape (flows, points)
        In the unit of ``token_thresh``.
    congested : Array, shape (flows, points)
        Whether the congestion asks for a decrease.
    """
    t = tokens
    acks = t.acks + progress.newly / progress.wire_packet
    if not p.vai:
        return t._replace(acks=acks), jnp.zeros_like(acks, bool)
    any_ack = progress.newly > 0
    measured = jnp.where(any_ack, jnp.maximum(t.measured, congestion), t.measured)
    congested = jnp.where(any_ack & congested, 1.0, t.congested)
    over = progress.acked > t.trip_end
    ends = over & (t.trip_end > 0)
    makes = ends & (measured > p.token_thresh)
    above = p.token_thresh if p.token_rule == "excess" else 0.0
    bank = jnp.where(makes, jnp.minimum((measured - above) / p.ai_div + t.bank, p.bank_cap), t.bank)
    eases = ends & ~makes & (t.bank == 0.0)
    less = jnp.where(measured < p.token_thresh, jnp.maximum(t.dampener - 1.0, 0.0), t.dampener)
    dampener = jnp.where(makes, t.dampener + measured / p.token_thresh, t.dampener)
    dampener = jnp.where(eases, jnp.where(congested > 0, less, 0.0), dampener)
    tokens = t._replace(
        bank=bank,
        dampener=dampener,
        measured=jnp.where(ends, 0.0, measured),
        congested=jnp.where(ends, 0.0, congested),
        trip_end=jnp.where(over, progress.sent, t.trip_end),
        acks=acks,
    )
    return tokens._replace(factor=_factor(p, tokens)), ends


def _factor(p: VaiSf, tokens: Tokens) -> Array:
    """Algorithm 2, lines 2 and 6 to 8."""
    divisor = tokens.dampener / p.dampener_constant + 1.0
    return jnp.maximum(jnp.minimum(p.ai_cap, tokens.bank) / divisor, 1.0)


def adjusts(p: VaiSf, tokens: Tokens, decreases: Array, trip_over: Array) -> Array:
    """Check whether new references, below the old ones or not, may take their place now."""
    return trip_over if p.sampling is None else jnp.where(decreases, tokens.acks >= p.sampling, trip_over)


def ends_period(p: VaiSf) -> bool:
    """Check whether an update that is ignored costs its period."""
    return p.ignored_costs == IGNORED_COSTS[1]


def ignores(p: VaiSf, tokens: Tokens, progress: Progress, would_decrease: Array, share: Array) -> tuple[Array, Tokens]:
    """Check whether ACKs that would decrease references, ``share`` of the largest, are ignored so far (III-D).

    An ACK is used with probability ``share``: on average the decrease comes once the shares of the ACKs that would make
    it add up to 1. Where an ignored one costs its period, the next period's share is added, and increases in between
    leave the sum as it is; the caller begins the next period.
    """
    if not p.probabilistic:
        return jnp.zeros_like(would_decrease), tokens
    if ends_period(p):
        drawn = tokens.drawn + jnp.where(would_decrease, share, 0.0)
        heeded, again = would_decrease & (drawn >= 1.0), would_decrease & (drawn < 1.0)
        left = jnp.where(heeded, drawn - 1.0, drawn)
        return again, tokens._replace(drawn=left, acks=jnp.where(again, 0.0, tokens.acks))
    drawn = tokens.drawn + jnp.where(would_decrease, share * progress.newly / progress.wire_packet, 0.0)
    return would_decrease & (drawn < 1.0), tokens._replace(drawn=drawn)


def adjusted(p: Any, tokens: Tokens, where: Array) -> Tokens:
    """Algorithm 2, lines 3 to 5, where references are adjusted: what the increase used is spent."""
    t = tokens
    t = t._replace(
        bank=jnp.where(where, jnp.maximum(t.bank - jnp.minimum(p.ai_cap, t.bank), 0.0), t.bank),
        acks=jnp.where(where, 0.0, t.acks),
        drawn=t.drawn if ends_period(p) else jnp.where(where, 0.0, t.drawn),
    )
    return t._replace(factor=_factor(p, t)) if p.vai else t


def observables(tokens: Tokens | None) -> dict[str, Array]:
    """Return what a trace shows, as named in `OBSERVABLES`."""
    if tokens is None:
        return {}
    return {"token_bank": tokens.bank, "dampener": tokens.dampener, "increase_factor": tokens.factor}
