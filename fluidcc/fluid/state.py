"""What the fluid network is at an instant: what equations move, what jumps change, and what flows heard."""

from __future__ import annotations

from typing import Any, NamedTuple

from jax import Array


class State(NamedTuple):
    """What differential equations move."""

    queue: Array  # (queues, points) [bytes]
    schemes: tuple[Any, ...]  # one scheme state per group
    sent: Array | None  # (flows, points) [bytes]; None if all flows are long-lived and none is tracked
    traffic: Array | None = None  # (2 queues, points) rates of sending and of arrivals [bytes/s]; None if not tracked
    came: Array | None = None  # (queues, points) bytes that reached queues; None without classes


class Memory(NamedTuple):
    """What only jumps change."""

    idle: Array  # (links, points) bytes that links could have sent so far but had not
    finish: Array | None  # (flows, points) time [s] at which the last byte was sent; inf before
    drain: Array | None  # (hops, points) queueing delay [s] of that byte; NaN until it arrives there
    wait: Array | None  # (view hops, points) queueing delay [s] of the packets whose marks arrive now
    wait_growth: Array | None  # by how much it grew in the last step, or will in the next [s]
    pace: Array | None = None  # (flows, points) rate of the step [bytes/s]; None if rates are the schemes'
    acked: Array | None = None  # (flows, points) bytes acknowledged by the step's end; None if not tracked
    newly: Array | None = None  # (flows, points) of these, in the step; None if not tracked
    reached: Array | None = None  # (queues, points) bytes that reached queues by the step's end; None if not tracked
    arriving: Array | None = None  # (queues, points) rate of arrivals in the step [bytes/s]; None if not tracked
    service: Array | None = None  # (queues, points) rate of sending in the step [bytes/s]; None without classes


class Feedback(NamedTuple):
    """Lagged quantities at one instant."""

    schemes: tuple[Any, ...]
    arrivals: Array | None  # rates as they reach the queues, per flow and hop; None without forward lags
    queues: Array | None  # (2 * view hops, points) queue that marked, its slope; None without queueing lags
