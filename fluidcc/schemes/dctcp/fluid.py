"""DCTCP's fluid model: section 3.1 of Alizadeh et al., SIGCOMM 2010, per flow class.

A packet is marked with a probability, so that a flow's first mark in a window has no time of its own: the flow cuts as
soon as the marks that it would expect since the last cut was acknowledged reach one packet. A step marking queue marks
all, and then that is the first packet. ``form="analysis"`` is another fluid, of `fluidcc.schemes.dctcp.analysis`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.signals import Progress, Signals
from fluidcc.schemes.dctcp import analysis
from fluidcc.schemes.dctcp.parameters import DCTCP

NEEDS = frozenset({"inflight"})
ONLY = {"variant": "paper"}
_STEPS_PER_BASE_RTT = 40


class State(NamedTuple):
    """State of the flows, arrays (flows, points); only W and alpha of the analysis change other than in jumps."""

    rate: Array  # W/T [bytes/s]
    window: Array  # W [bytes]
    alpha: Array
    answered: Array  # bytes acknowledged since alpha's last update
    marked: Array  # how many of them carried marks
    expected: Array  # packets with marks since the last cut was acknowledged
    window_end: Array  # alpha's next update comes with data beyond this [bytes]
    cut_end: Array  # a cut holds for the data up to this [bytes]
    round_trips: Array  # analysis: 1/RTT, and 0 before the first ACK [1/s]
    growth: Array  # analysis: dW/dt without marks [bytes/s]


def start(parameters: DCTCP, initial_rate: Array, shape: tuple[int, int], hops: int) -> State:
    """State before the first ACK: the first window, or what an initial rate is of it."""
    p = parameters
    window = jnp.broadcast_to(jnp.minimum(p.initial_window, initial_rate * p.base_rtt), shape)
    none = jnp.zeros(shape, window.dtype)
    alpha = jnp.broadcast_to(p.initial_alpha, shape)
    return State(jnp.broadcast_to(initial_rate, shape), window, alpha, *[none] * 7)


def rate(state: State) -> Array:
    """Pacing rate [bytes/s]."""
    return state.rate


def window(parameters: DCTCP, state: State) -> Array:
    """Limit W of the bytes in flight."""
    return state.window


def largest_window(parameters: DCTCP) -> Any:
    """The first window, beyond which W grows only while marks are absent [bytes]."""
    return parameters.initial_window


def feedback(parameters: DCTCP, signals: Signals) -> Array:
    """Share of the packets acknowledged now that carry marks."""
    return signals.marking


def derivative(parameters: DCTCP, state: State, observed: Array) -> State:
    """Return slopes of 0 between ACKs, but those of W and alpha of the analysis."""
    still = State(*(jnp.zeros_like(leaf) for leaf in state))
    return analysis.derivative(parameters, state, observed, still) if parameters.form == "analysis" else still


def jump(parameters: DCTCP, state: State, progress: Progress, observed: Array) -> State:
    """Section 3.1 for the ACKs of a step: (1) once per window of data; (2) at a mark; else the increase of TCP."""
    p, s, packet = parameters, state, progress.packet
    # A window that holds nothing back, of a flow at line rate with less in flight, does not grow.
    newly, per_packet = progress.newly, progress.packet / progress.wire_packet
    inflight = (progress.sent - progress.acked + newly) * per_packet
    held = (s.rate < progress.line_rate) | (inflight >= s.window)
    if p.form == "analysis":
        return analysis.jump(p, s, progress, held)
    answered, marked = s.answered + newly, s.marked + observed * newly
    over = progress.acked > s.window_end
    counted = over & (s.window_end > 0)
    share = marked / jnp.maximum(answered, 1e-9)
    alpha = jnp.where(counted, (1.0 - p.g) * s.alpha + p.g * share, s.alpha)  # (1)
    answered, marked = (jnp.where(counted, 0.0, count) for count in (answered, marked))
    free = progress.acked > s.cut_end
    expected = jnp.where(free, s.expected + observed * newly / progress.wire_packet, 0.0)
    cuts = free & (expected >= 1.0)
    grows = free & ~cuts & held
    grown = s.window + jnp.where(grows, p.increase * packet * (1.0 - observed) * newly * per_packet / s.window, 0.0)
    window = jnp.where(cuts, jnp.maximum(s.window * (1.0 - alpha / 2.0), packet), grown)  # (2)
    return s._replace(
        rate=jnp.minimum(window / p.base_rtt, progress.line_rate),
        window=window,
        alpha=alpha,
        answered=answered,
        marked=marked,
        expected=jnp.where(cuts, 0.0, expected),
        window_end=jnp.where(over, progress.sent, s.window_end),
        cut_end=jnp.where(cuts, progress.sent, s.cut_end),
    )


OBSERVABLES = {
    "window": ("bytes", "window W"),
    "alpha": ("1", "estimate alpha of the share of marked packets"),
}


def observables(state: State) -> dict[str, Array]:
    """Return what a trace shows in addition to queue and rate, as named in `OBSERVABLES`."""
    return {"window": state.window, "alpha": state.alpha}


def time_scale(parameters: DCTCP, line_rate: Any) -> Any:
    """Time [s] from which the step is chosen, four of which are taken in it: events fall between steps."""
    return np.asarray(parameters.base_rtt) * (4 / _STEPS_PER_BASE_RTT)
