"""NSCC's fluid model: Ultra Ethernet Specification 1.0, 3.6.13, per flow class.

The delay is that of the bytes whose ACKs arrive when a step ends. A mark is a probability: the unmarked share of the
step's ACKs raises the window, at once (the specification adds increases up over some packets), and the window is cut
as soon as the marks that are expected since it may be cut again reach one packet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.signals import Progress, Signals
from fluidcc.schemes.nscc.parameters import NSCC, gains

NEEDS = frozenset({"inflight"})
_STEPS_PER_BASE_RTT = 40


class State(NamedTuple):
    """State of the flows, arrays (flows, points); it changes in jumps only."""

    rate: Array  # line rate [bytes/s]
    window: Array  # W [bytes]
    base_rtt: Array  # least RTT, or what was configured [s]
    delay: Array  # queueing delay [s]
    average: Array  # of the delay [s]
    clear: Array  # bytes acknowledged in a row without marks and delay
    fast: Array  # 1 in fast increase
    since_adjust: Array  # time since the last adjustment period ended [s]
    since_cut: Array  # time since the window was cut [s]
    expected: Array  # packets with marks since it may be cut again
    achieved: Array  # bytes acknowledged in this period of Quick Adapt
    qa_left: Array  # what is left of that period [s]; -1 before the first ACK
    to_ignore: Array  # bytes yet to be acknowledged whose marks tell what Quick Adapt has reacted to


def start(parameters: NSCC, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first ACK: the first window, or the share of it that an initial rate is of the line rate."""
    p = parameters
    none = jnp.zeros(shape, jnp.result_type(initial_rate))
    window = none + jnp.maximum(p.initial_window * (initial_rate / p.line_rate), p.mtu)
    return State(none + p.line_rate, window, none + p.base_rtt, *[none] * 10)._replace(qa_left=none - 1.0)


def rate(state: State) -> Array:
    """Pacing rate [bytes/s]."""
    return state.rate


def window(parameters: NSCC, state: State) -> Array:
    """Limit W of the bytes in flight; half a packet less, as the next one has to fit in whole (NSCC.CanSend)."""
    return jnp.maximum(state.window - 0.5 * parameters.mtu, parameters.mtu)


def largest_window(parameters: NSCC) -> Any:
    """The first window, or the largest later one [bytes]."""
    p = parameters
    return np.maximum(np.maximum(p.initial_window, p.max_window), p.mtu)


def feedback(parameters: NSCC, signals: Signals) -> Array:
    """Share of the packets acknowledged now that carry marks; the delay comes with the ACKs (`Progress.rtt`)."""
    return signals.marking


def derivative(parameters: NSCC, state: State, observed: Array) -> State:
    """Return slopes of 0: nothing moves between ACKs."""
    return jax.tree.map(jnp.zeros_like, state)


def jump(parameters: NSCC, state: State, progress: Progress, observed: Array) -> State:
    """NSCC.OnACK for the ACKs of a step: by their marks and their delay, four cases."""
    p, s, g, dt = parameters, state, gains(parameters), progress.dt
    began, answers = progress.acked > 0, progress.newly > 0
    newly = progress.newly * progress.packet / progress.wire_packet
    first = s.qa_left < 0
    base_rtt = jnp.where(began, jnp.minimum(s.base_rtt, progress.rtt), s.base_rtt)
    delay = jnp.where(began, progress.rtt - base_rtt, 0.0)
    gain = jnp.where(first, 1.0, jnp.minimum(dt / p.averaging, 1.0))
    average = jnp.where(answers, s.average + gain * (delay - s.average), s.average)
    most = jnp.maximum(p.max_window * base_rtt / p.base_rtt, p.mtu)
    # quick_adapt
    inflight = (progress.sent - progress.acked) * progress.packet / progress.wire_packet
    achieved, to_ignore = s.achieved + newly, jnp.maximum(s.to_ignore - newly, 0.0)
    ignores = (to_ignore > 0) & (observed > 0)
    over = answers & ~(ignores & (observed >= 1)) & (s.qa_left <= dt)
    adapts = over & ~first & (delay > p.qa_threshold) & (achieved < most * 2.0**-p.qa_gate) & p.quick_adapt
    adapted = jnp.maximum(achieved, p.mtu)
    acts = answers & ~ignores & ~adapts
    # the four cases: increases of the unmarked share, and decreases of the marked
    low, unmarked = delay < p.target_delay, (1.0 - observed) * newly
    empty = low & (delay < p.clear_delay)
    clear = jnp.where(acts, jnp.where(empty, s.clear + unmarked, jnp.where(low, 0.0, s.clear)), s.clear)
    fast = jnp.where(acts, jnp.where(empty & ((s.fast > 0) | (clear > s.window)), 1.0, 0.0), s.fast)
    gentle = jnp.where(low, g.alpha * (p.target_delay - delay), g.fair) * unmarked / s.window
    grown = s.window + jnp.where(fast > 0, g.fast * unmarked, gentle)
    free = acts & ~low & (s.since_cut + dt > base_rtt)
    expected = jnp.where(free, s.expected + observed * newly / progress.packet, 0.0)
    cuts = free & (expected >= 1.0) & (average > p.target_delay)
    clear, fast = (jnp.where(acts & ~low & (observed > 0), 0.0, one) for one in (clear, fast))
    factor = jnp.maximum(1.0 - p.gamma * (average - p.target_delay) / jnp.maximum(average, 1e-12), p.max_md_jump)
    cut = jnp.where(cuts, jnp.maximum(grown * factor, p.mtu), grown)
    ends = acts & (s.since_adjust + dt >= p.adjust_period)
    moved = jnp.minimum(cut + jnp.where(ends, g.eta, 0.0), most)
    return State(
        rate=s.rate,
        window=jnp.where(adapts, adapted, jnp.where(acts, moved, s.window)),
        base_rtt=base_rtt,
        delay=delay,
        average=average,
        clear=clear,
        fast=fast,
        since_adjust=jnp.where(ends, 0.0, s.since_adjust + dt),
        since_cut=jnp.where(cuts, 0.0, s.since_cut + dt),
        expected=jnp.where(cuts, 0.0, expected),
        achieved=jnp.where(over, 0.0, achieved),
        qa_left=jnp.where(over, base_rtt + p.target_delay, jnp.where(first, -1.0, jnp.maximum(s.qa_left - dt, 0.0))),
        to_ignore=jnp.where(adapts, inflight, to_ignore),
    )


OBSERVABLES = {
    "window": ("bytes", "window"),
    "queueing_delay": ("s", "RTT of the last ACK less the base RTT"),
    "average_delay": ("s", "average queueing delay, by which decreases are measured"),
}


def observables(state: State) -> dict[str, Array]:
    """Return what a trace shows in addition to queue and rate, as named in `OBSERVABLES`."""
    return {"window": state.window, "queueing_delay": state.delay, "average_delay": state.average}


def time_scale(parameters: NSCC, line_rate: Any) -> Any:
    """Time [s] from which the step is chosen, four of which are taken in it: events fall between steps."""
    return np.asarray(parameters.base_rtt) * (4 / _STEPS_PER_BASE_RTT)
