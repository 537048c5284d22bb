"""DCTCP's law: section 3.1 of Alizadeh et al., SIGCOMM 2010, for the ACKs of a step.

A packet is marked with a probability, so that a flow's first mark in a window has no time of its own: the flow cuts as
soon as the marks that it would expect since the last cut was acknowledged reach one packet. A step marking queue marks
all, and then that is the first packet. Packets take the formulas.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as xp

from fluidcc.contract.law import held
from fluidcc.contract.signals import Progress

ONLY = {"variant": "paper", "form": "protocol"}


class State(NamedTuple):
    """State of a flow."""

    rate: Any  # W/T [bytes/s]
    window: Any  # W [bytes]
    alpha: Any
    answered: Any  # bytes acknowledged since alpha's last update
    marked: Any  # how many of them carried marks
    expected: Any  # packets with marks since the last cut was acknowledged
    window_end: Any  # alpha's next update comes with data beyond this [bytes]
    cut_end: Any  # a cut holds for the data up to this [bytes]


def start(parameters: Any, initial_rate: Any) -> State:
    """State before the first ACK: the first window, or what an initial rate is of it."""
    p = parameters
    window = xp.minimum(p.initial_window, initial_rate * p.base_rtt)
    return State(initial_rate, window, p.initial_alpha, 0.0, 0.0, 0.0, 0.0, 0.0)


def rate(state: Any) -> Any:
    """Pacing rate [bytes/s]."""
    return state.rate


def window(parameters: Any, state: Any) -> Any:
    """Limit W of the bytes in flight."""
    return state.window


def largest_window(parameters: Any) -> Any:
    """The first window, beyond which W grows only while marks are absent [bytes]."""
    return parameters.initial_window


def averaged(parameters: Any, alpha: Any, marked: Any, answered: Any) -> Any:
    """Return alpha after a window of data, of which some was marked (1)."""
    return (1.0 - parameters.g) * alpha + parameters.g * marked / answered


def cut(size: Any, alpha: Any) -> Any:
    """Return a window, or the simulator's rate, after a mark (2)."""
    return size * (1.0 - alpha / 2.0)


def increase(parameters: Any, window: Any, packet: Any, answered: Any) -> Any:
    """Return the bytes that W grows by for some bytes acknowledged without marks: ``increase`` packets in a window."""
    return parameters.increase * packet * answered / window


def on_step(parameters: Any, state: Any, progress: Progress, observed: Any) -> State:
    """(1) once per window of data; (2) at a mark; else the increase of TCP."""
    p, s, packet, newly = parameters, state, progress.packet, progress.newly
    per_packet = packet / progress.wire_packet
    answered, marked = s.answered + newly, s.marked + observed * newly
    over = progress.acked > s.window_end
    counted = over & (s.window_end > 0.0)
    alpha = xp.where(counted, averaged(p, s.alpha, marked, xp.maximum(answered, 1e-9)), s.alpha)
    free = progress.acked > s.cut_end
    expected = xp.where(free, s.expected + observed * newly / progress.wire_packet, 0.0)
    cuts = free & (expected >= 1.0)
    grows = free & held(s, progress)
    unmarked = (1.0 - observed) * newly * per_packet
    grown = s.window + xp.where(grows, increase(p, s.window, packet, unmarked), 0.0)
    window = xp.where(cuts, xp.maximum(cut(s.window, alpha), packet), grown)
    return State(
        rate=xp.minimum(window / p.base_rtt, progress.line_rate),
        window=window,
        alpha=alpha,
        answered=xp.where(counted, 0.0, answered),
        marked=xp.where(counted, 0.0, marked),
        expected=xp.where(cuts, 0.0, expected),
        window_end=xp.where(over, progress.sent, s.window_end),
        cut_end=xp.where(cuts, progress.sent, s.cut_end),
    )
