"""State of the fluid network at an instant: what equations move, what jumps change, and what flows observed.

Its arrays are columns, a row for each queue, flow or hop; in those of numbers, a single row may stand for all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.units import is_concrete


def rows_of(column: Array, rows: tuple[int, ...]) -> Array:
    """Rows of a column; one of a single row stands for any."""
    if column.shape[0] == 1 or rows == tuple(range(column.shape[0])):
        return column
    return column[jnp.asarray(rows)]


def same(values: list[Any]) -> bool:
    """Check whether all values are known to be equal: the same object, or plain numbers that compare equal."""
    return all(v is values[0] or (is_concrete(v) and is_concrete(values[0]) and v == values[0]) for v in values)


def column(values: list[Any], collapse: bool = True) -> Any:
    """Stack values into a column, of a single row if they are all the same."""
    if collapse and same(values):
        values = values[:1]
    if all(is_concrete(v) for v in values):
        return np.asarray(values, dtype=np.float64)
    return jnp.stack([jnp.asarray(v) for v in values])


class State(NamedTuple):
    """Variables that differential equations move."""

    queue: Array  # (queues, points) [bytes]
    schemes: tuple[Any, ...]  # one scheme state per group
    sent: Array | None  # (flows, points) [bytes]; None if all flows are long-lived and none is tracked
    traffic: Array | None = None  # (2 queues, points) rates of sending and of arrivals [bytes/s]; None if not tracked
    came: Array | None = None  # (queues, points) bytes that reached queues; None without classes
    arrived: Array | None = None  # (hops, points) bytes of a flow that came there; None if none ends, or without lags
    counts: Counts | None = None  # None without flow control


class Counts(NamedTuple):
    """Bytes so far, and of these those with CE, and with UE only: (3 hops, points), of a whole class of flows."""

    came: Array  # to the hop's queue
    left: Array  # from it
    paused: Array  # (ingresses, points) time for which each has wanted its sender to stop [s]


class Pauses(NamedTuple):
    """Variables that flow control changes from step to step; positions are times in steps from the step's beginning."""

    counts: Counts  # at the end of the step
    through: Array  # (3 hops, points) what had come to the queues when the last byte to leave in the step did
    at: Array  # (queues, points) position of that
    stopping: Array  # (ingresses, points) 1 where the sender is to stop
    told: Array  # (ingresses, points) part of `Counts.paused` that the sender has observed [s]
    port: Any  # state of ternary detection at each queue (`fluid.marking`)
    acks: Array  # (3 flows, points) bytes acknowledged by the step's end, of each flow of a class; with CE; with UE
    shares: Array  # (2 flows, points) of the step's ACKs, with CE and with UE
    asked: Array  # (flows, points) position of the byte acknowledged last, as it was sent
    round_trip: Array  # (flows, points) of that [s]
    pace: Array  # (flows, points) rate at which it was sent [bytes/s]
    longest: Array  # (points,) longest wait in a queue, or round trip, so far [s]


class Memory(NamedTuple):
    """Variables that only jumps change."""

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
    service: Array | None = None  # (queues, points) rate of sending in the step [bytes/s]; None if it is the link's
    pauses: Pauses | None = None  # None without flow control
    left: Array | None = None  # (flows, points) bytes still to be sent when the step begins; None if no flow ends
    due: Array | None = None  # (hops, points) of a flow, still to arrive there; None as `State.arrived`
    queue: Array | None = None  # (queues, points) when the step begins [bytes]; None if no flow ends
    ahead: Array | None = None  # (hops, points) before a flow's last byte there [bytes]; inf before it came; of classes
    began: Array | None = None  # (flows, points) time [s] at which each begins; inf until known; None if none waits
    stretch: Array | None = None  # (flows, points) steps whose bytes the step sends: 1, or those since it began


class Lagged(NamedTuple):
    """Lagged quantities at one instant."""

    schemes: tuple[Any, ...]
    arrivals: Array | None  # rates as they reach the queues, per flow and hop; None without forward lags
    queues: Array | None  # (2 * view hops, points) queue that marked, its slope; None without queueing lags
