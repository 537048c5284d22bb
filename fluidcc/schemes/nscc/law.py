"""NSCC's law: Ultra Ethernet Specification 1.0, 3.6.13, NSCC.OnACK for the ACKs of a step.

The delay is that of the bytes whose ACKs arrive when a step ends. A mark is a probability: the unmarked share of the
step's ACKs raises the window, at once (the specification adds increases up over some packets), and the window is cut
as soon as the marks that are expected since it may be cut again reach one packet. Packets take the formulas.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as xp

from fluidcc.contract.signals import Progress
from fluidcc.schemes.nscc.parameters import gains

NEEDS = frozenset({"delay"})
OBSERVABLES = {
    "window": ("bytes", "window"),
    "queueing_delay": ("s", "RTT of the last ACK less the base RTT"),
    "average_delay": ("s", "average queueing delay, by which decreases are measured"),
}


class State(NamedTuple):
    """State of a flow."""

    rate: Any  # line rate [bytes/s]
    window: Any  # W [bytes]
    base_rtt: Any  # least RTT, or what was configured [s]
    queueing_delay: Any  # [s]
    average_delay: Any  # [s]
    clear: Any  # bytes acknowledged in a row without marks and delay
    fast: Any  # 1 in fast increase
    since_adjust: Any  # time since the last adjustment period ended [s]
    since_cut: Any  # time since the window was cut [s]
    expected: Any  # packets with marks since it may be cut again
    achieved: Any  # bytes acknowledged in this period of Quick Adapt
    qa_left: Any  # what is left of that period [s]; -1 before the first ACK
    to_ignore: Any  # bytes yet to be acknowledged whose marks tell what Quick Adapt has reacted to


def start(parameters: Any, initial_rate: Any) -> State:
    """State before the first ACK: the first window, or the share of it that an initial rate is of the line rate."""
    p = parameters
    window = xp.maximum(p.initial_window * (initial_rate / p.line_rate), p.mtu)
    return State(p.line_rate, window, p.base_rtt, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0)


def rate(state: Any) -> Any:
    """Pacing rate [bytes/s]."""
    return state.rate


def window(parameters: Any, state: Any) -> Any:
    """Limit W of the bytes in flight; half a packet less, as the next one has to fit in whole (NSCC.CanSend)."""
    return xp.maximum(state.window - 0.5 * parameters.mtu, parameters.mtu)


def largest_window(parameters: Any) -> Any:
    """The first window, or the largest later one [bytes]."""
    p = parameters
    return xp.maximum(xp.maximum(p.initial_window, p.max_window), p.mtu)


def most(parameters: Any, base_rtt: Any) -> Any:
    """Return MaxWnd, in proportion to the base RTT as it is measured [bytes]."""
    return parameters.max_window * base_rtt / parameters.base_rtt


def averaged(parameters: Any, average: Any, delay: Any, seconds: Any) -> Any:
    """Return the average delay after a sample, some time after the last one (update_delay) [s]."""
    return average + xp.minimum(seconds / parameters.averaging, 1.0) * (delay - average)


def growth(parameters: Any, gains: Any, delay: Any, newly: Any) -> Any:
    """Return what unmarked bytes add, times W: proportional_increase below the target, else fair_increase [bytes^2]."""
    p, low = parameters, delay < parameters.target_delay
    return xp.where(low, gains.alpha * newly * (p.target_delay - delay), gains.fair * newly)


def reduced(parameters: Any, window: Any, average: Any) -> Any:
    """Return W after multiplicative_decrease, by the average delay's excess over the target [bytes]."""
    p = parameters
    kept = 1.0 - p.gamma * (average - p.target_delay) / xp.maximum(average, 1e-12)
    return xp.maximum(window * xp.maximum(kept, p.max_md_jump), p.mtu)


def on_step(parameters: Any, state: Any, progress: Progress, observed: Any) -> State:
    """Adjust the window by marks and delay, in four cases, after a check for Quick Adapt."""
    p, s, g, dt = parameters, state, gains(parameters), progress.dt
    began, answers = progress.acked > 0, progress.newly > 0
    newly = progress.newly * progress.packet / progress.wire_packet
    first = s.qa_left < 0
    base_rtt = xp.where(began, xp.minimum(s.base_rtt, progress.rtt), s.base_rtt)
    delay = xp.where(began, progress.rtt - base_rtt, 0.0)
    average = averaged(p, s.average_delay, delay, xp.where(first, p.averaging, dt))
    average = xp.where(answers, average, s.average_delay)
    largest = xp.maximum(most(p, base_rtt), p.mtu)
    # quick_adapt
    inflight = (progress.sent - progress.acked) * progress.packet / progress.wire_packet
    achieved, to_ignore = s.achieved + newly, xp.maximum(s.to_ignore - newly, 0.0)
    ignores = (to_ignore > 0) & (observed > 0)
    over = answers & xp.logical_not(ignores & (observed >= 1)) & (s.qa_left <= dt)
    starved = (delay > p.qa_threshold) & (achieved < largest * 2.0**-p.qa_gate)
    adapts = over & starved & xp.logical_not(first) & p.quick_adapt
    adapted = xp.maximum(achieved, p.mtu)
    acts = answers & xp.logical_not(ignores | adapts)
    # the four cases: increases of the unmarked share, and decreases of the marked
    low, unmarked = delay < p.target_delay, (1.0 - observed) * newly
    high = xp.logical_not(low)
    empty = low & (delay < p.clear_delay)
    clear = xp.where(acts, xp.where(empty, s.clear + unmarked, xp.where(low, 0.0, s.clear)), s.clear)
    fast = xp.where(acts, xp.where(empty & ((s.fast > 0) | (clear > s.window)), 1.0, 0.0), s.fast)
    grown = s.window + xp.where(fast > 0, g.fast * unmarked, growth(p, g, delay, unmarked) / s.window)
    free = acts & high & (s.since_cut + dt > base_rtt)
    expected = xp.where(free, s.expected + observed * newly / progress.packet, 0.0)
    cuts = free & (expected >= 1.0) & (average > p.target_delay)
    warned = acts & high & (observed > 0)
    clear, fast = xp.where(warned, 0.0, clear), xp.where(warned, 0.0, fast)
    cut = xp.where(cuts, reduced(p, grown, average), grown)
    ends = acts & (s.since_adjust + dt >= p.adjust_period)
    moved = xp.minimum(cut + xp.where(ends, g.eta, 0.0), largest)
    return State(
        rate=s.rate,
        window=xp.where(adapts, adapted, xp.where(acts, moved, s.window)),
        base_rtt=base_rtt,
        queueing_delay=delay,
        average_delay=average,
        clear=clear,
        fast=fast,
        since_adjust=xp.where(ends, 0.0, s.since_adjust + dt),
        since_cut=xp.where(cuts, 0.0, s.since_cut + dt),
        expected=xp.where(cuts, 0.0, expected),
        achieved=xp.where(over, 0.0, achieved),
        qa_left=xp.where(over, base_rtt + p.target_delay, xp.where(first, -1.0, xp.maximum(s.qa_left - dt, 0.0))),
        to_ignore=xp.where(adapts, inflight, to_ignore),
    )
