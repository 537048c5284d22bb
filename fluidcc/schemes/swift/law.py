"""Swift's law: Algorithm 1 of Kumar et al., SIGCOMM 2020, for the ACKs of a step.

The delay is the round trip of the bytes whose ACKs arrive when a step ends. All of a step's ACKs have it; they raise
the window together, or cut it once for what had been sent by then. The parts are functions of their own: packets take
the formulas, and Variable AI and Sampling Frequency other increases and references.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as xp

from fluidcc.contract.law import held
from fluidcc.contract.signals import Progress

NEEDS = frozenset({"delay"})
ONLY = {"vai": False, "sampling": None}


class State(NamedTuple):
    """State of a flow."""

    rate: Any  # line rate, or below one packet that of the pacer [bytes/s]
    window: Any  # W [bytes]
    rtt: Any  # [s]
    target: Any  # that it was compared with [s]
    cut_end: Any  # a cut holds for the data up to this [bytes]


def start(parameters: Any, initial_rate: Any) -> State:
    """State before the first ACK: the first window, or what an initial rate is of it."""
    p = parameters
    return State(initial_rate, xp.minimum(p.initial_window, initial_rate * p.base_rtt), 0.0, p.base_target, 0.0)


def rate(state: Any) -> Any:
    """Pacing rate [bytes/s]."""
    return state.rate


def window(parameters: Any, state: Any) -> Any:
    """Limit W of the bytes in flight."""
    return state.window


def largest_window(parameters: Any) -> Any:
    """The first window, or the largest later one [bytes]."""
    return xp.maximum(parameters.initial_window, parameters.max_window)


def target_delay(parameters: Any, packets: Any) -> Any:
    """Target of a path, and what flow scaling adds for a small window [s]; NaN unless fs_min is below fs_max."""
    p = parameters
    if not p.flow_scaling:
        return p.base_target
    added = xp.maximum(xp.minimum(p.fs_slope / packets**0.5 + p.fs_offset, p.fs_range), 0.0)
    return p.base_target + xp.where(p.fs_min < p.fs_max, added, math.nan)


def decrease(parameters: Any, delay: Any, target: Any) -> Any:
    """Factor of a multiplicative decrease, (1) of Snyder and Lebeck."""
    return xp.maximum(1.0 - parameters.beta * (delay - target) / delay, parameters.max_mdf)


def bounded(parameters: Any, packets: Any, packet: Any) -> Any:
    """Keep a window [packets] between the least and the largest one."""
    return xp.maximum(xp.minimum(packets, parameters.max_window / packet), parameters.min_cwnd)


def reaction(parameters: Any, state: Any, progress: Progress, target: Any, increase: Any, cuts: Any) -> Any:
    """Window after the step's ACKs [packets]: cut, or grown by ``increase`` packets in a round trip."""
    W, delay = state.window / progress.packet, progress.rtt
    grows = (delay < target) & held(state, progress)
    acks = progress.newly / progress.wire_packet
    grown = xp.where(grows, W + increase * acks / xp.maximum(W, 1.0), W)
    return xp.where(cuts, W * decrease(parameters, delay, target), grown)


def after(parameters: Any, state: Any, progress: Progress, target: Any, packets: Any, cut_end: Any) -> State:
    """State after a step with a window [packets], within its bounds; below one packet the pacer sends W in an RTT."""
    began, delay = progress.acked > 0, progress.rtt
    packets = xp.where(began, bounded(parameters, packets, progress.packet), state.window / progress.packet)
    paced = xp.where(packets < 1.0, packets * progress.wire_packet / delay, progress.line_rate)
    rate = xp.where(began, xp.minimum(paced, progress.line_rate), state.rate)
    rtt, compared = xp.where(began, delay, state.rtt), xp.where(began, target, state.target)
    return State(rate, packets * progress.packet, rtt, compared, cut_end)


def on_step(parameters: Any, state: Any, progress: Progress, observed: Any) -> State:
    """Algorithm 1: an increase by all ACKs, or a decrease once per round trip."""
    target = target_delay(parameters, state.window / progress.packet)
    late = xp.logical_not(progress.rtt < target)  # also of a target that is NaN, so that a bad point shows
    cuts = late & (progress.newly > 0) & (progress.acked > state.cut_end)
    packets = reaction(parameters, state, progress, target, parameters.ai, cuts)
    return after(parameters, state, progress, target, packets, xp.where(cuts, progress.sent, state.cut_end))
