"""PowerTCP's law: Algorithm 1 of Addanki, Michel and Schmid, NSDI 2022, for the ACKs of a step.

A link's power is its current, what arrives, times its voltage, its queue and a bandwidth-delay product. A window rests
where the power that it causes, over that of a full link without a queue, leaves it as it is: with queue N beta.
What the text leaves open: windows stay between a packet and the first window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as xp

from fluidcc.contract.signals import Progress

NEEDS = frozenset({"telemetry"})
OBSERVABLES = {
    "window": ("bytes", "window"),
    "power": ("1", "power of the path, smoothed, over that of a full link without a queue"),
}


class State(NamedTuple):
    """State of a flow."""

    rate: Any  # [bytes/s]
    window: Any  # [bytes]
    power: Any
    old: Any  # window as the last round trip began [bytes]
    noted: Any  # window as this one began [bytes]
    trip_start: Any  # first byte of what was sent in the last round trip, whose ACKs come in this one
    trip_end: Any  # byte whose ACK ends the round trip; -1 before the first ACK


def start(parameters: Any, initial_rate: Any) -> State:
    """First window, or what an initial rate is of it."""
    window = xp.minimum(parameters.initial_window, initial_rate * parameters.base_rtt)
    return State(initial_rate, window, 1.0, window, window, 0.0, -1.0)


def rate(state: Any) -> Any:
    """Pacing rate [bytes/s]."""
    return state.rate


def window(parameters: Any, state: Any) -> Any:
    """Limit of the bytes in flight."""
    return state.window


def largest_window(parameters: Any) -> Any:
    """Windows stay below the first one [bytes]."""
    return parameters.initial_window


def on_hop(parameters: Any, queue: Any, output: Any, arriving: Any, capacity: Any) -> Any:
    """Power of a link over its base power b^2 tau (NORMPOWER)."""
    bdp = capacity * parameters.base_rtt
    return arriving * (queue + bdp) / (capacity * bdp)


def on_step(parameters: Any, state: Any, progress: Progress, observed: Any) -> State:
    """NEWACK for all ACKs of a step: each takes the share gamma of the way to old/power + beta."""
    p, s = parameters, state
    runs = s.trip_end >= 0
    weight = xp.where(runs & (progress.newly > 0), xp.minimum(progress.dt / p.base_rtt, 1.0), 0.0)
    power = s.power + weight * (observed - s.power)
    acks = xp.where(runs, progress.newly / progress.wire_packet, 0.0)
    # GETCWND: the window as what is acknowledged now was sent, between those that were noted.
    sent = (progress.acked - s.trip_start) / xp.maximum(s.trip_end - s.trip_start, progress.packet)
    old = s.old + xp.minimum(sent, 1.0) * (s.noted - s.old)
    aim = old / xp.maximum(power, 1e-3) + p.beta
    moved = aim + (1.0 - p.gamma) ** acks * (s.window - aim)
    window = xp.minimum(xp.maximum(moved, progress.packet), p.initial_window)
    over = progress.acked > xp.maximum(s.trip_end, 0.0)
    return State(
        rate=xp.minimum(window / p.base_rtt, progress.line_rate),
        window=window,
        power=power,
        old=xp.where(over, s.noted, s.old),
        noted=xp.where(over, window, s.noted),
        trip_start=xp.where(over, progress.acked, s.trip_start),
        trip_end=xp.where(over, progress.sent, s.trip_end),
    )
