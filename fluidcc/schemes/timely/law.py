"""TIMELY's law: Algorithm 1 of Mittal et al., SIGCOMM 2015, for the ACKs of a step; packets take the formulas.

A step may complete several segments. The RTT is taken to change evenly from the last completion to the step's end, and
all of them react to the gradient and the delay at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as xp

from fluidcc.contract.signals import Progress

NEEDS = frozenset({"delay"})
ONLY = {"variant": "paper", "win": False, "tcd": False}


class State(NamedTuple):
    """State of a flow."""

    rate: Any  # R [bytes/s]
    rtt: Any  # of the last completion; 0 before the first [s]
    rtt_difference: Any  # [s]
    streak: Any  # completions in a row without a rising RTT
    completes: Any  # the next completion is at this much acknowledged data [bytes]


def start(parameters: Any, initial_rate: Any) -> State:
    """State before the first completion."""
    return State(initial_rate, 0.0, 0.0, 0.0, parameters.segment)


def rate(state: Any) -> Any:
    """Sending rate [bytes/s]."""
    return state.rate


def raises(parameters: Any, delay: Any, gradient: Any) -> Any:
    """Check whether the rate rises: always below T_low, never above T_high, else unless the RTT rises."""
    return (delay < parameters.t_low) | ((delay <= parameters.t_high) & (gradient <= 0.0))


def raised(parameters: Any, rate: Any, hyper: Any) -> Any:
    """Return the rate after an increase of delta, or of N delta."""
    return rate + parameters.rate_ai * xp.where(hyper, parameters.hai_gain, 1.0)


def lowered(parameters: Any, rate: Any, delay: Any, gradient: Any, beta: Any) -> Any:
    """Return the rate after a decrease: by the gradient, or above T_high by the delay's excess."""
    p = parameters
    excess = xp.where(delay <= p.t_high, gradient, 1.0 - p.t_high / xp.maximum(delay, p.t_high))
    return rate * xp.maximum(1.0 - beta * excess, 0.0)


def blended(parameters: Any, rate: Any, delay: Any, gradient: Any, beta: Any) -> Any:
    """Return the patched rate between the thresholds: both rules at once (ECN or Delay, Algorithm 2)."""
    p = parameters
    weight = xp.minimum(xp.maximum(2.0 * gradient + 0.5, 0.0), 1.0)
    error = (delay - p.t_low) / p.t_low
    return rate * (1.0 - beta * weight * error) + (1.0 - weight) * p.rate_ai


def on_step(parameters: Any, state: Any, progress: Progress, observed: Any) -> State:
    """React to the completions of a step, as often as there are."""
    p, s, segment = parameters, state, parameters.segment
    count = xp.maximum((progress.acked - s.completes) // segment + 1.0, 0.0)
    done = count > 0.0
    moves = done & (s.rtt > 0.0)  # the first completion only records its RTT
    count = xp.maximum(count, 1.0)
    kept = (1.0 - p.ewma) ** count
    difference = kept * s.rtt_difference + (1.0 - kept) * (progress.rtt - s.rtt) / count
    gradient = difference / p.min_rtt
    streak = xp.where(gradient <= 0.0, s.streak + count, 0.0)
    delay = progress.rtt - p.empty_rtt
    hyper = (streak >= p.hai_steps) & (delay >= p.t_low)
    grown = s.rate + count * (raised(p, s.rate, hyper) - s.rate)
    cut = s.rate * (lowered(p, s.rate, delay, gradient, p.beta) / s.rate) ** count
    new = xp.where(raises(p, delay, gradient), grown, cut)
    if p.patched:
        both = s.rate + count * (blended(p, s.rate, delay, gradient, p.beta) - s.rate)
        new = xp.where((delay >= p.t_low) & (delay <= p.t_high), both, new)
    new = xp.minimum(xp.maximum(new, p.min_rate), progress.line_rate)
    return State(
        rate=xp.where(moves, new, s.rate),
        rtt=xp.where(done, progress.rtt, s.rtt),
        rtt_difference=xp.where(moves, difference, s.rtt_difference),
        streak=xp.where(moves, streak, s.streak),
        completes=xp.where(done, s.completes + count * segment, s.completes),
    )
