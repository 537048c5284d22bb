"""Flows that wait for others: when those have ended follows from the last byte, and so when these begin.

Who waits for whom is fixed; when is part of the state. A flow's first step sends what goes in it from the flow's
beginning on, which lies between steps, or what would have gone since, if that was known only a step later: else each
flow of a chain would lose or gain up to half a step of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.dde.stepping import Clock
from fluidcc.engines.fluid.rows import column, rows_of
from fluidcc.engines.fluid.state import Memory
from fluidcc.scenario.dependencies import ANSWER, RECEIPT, SENT, end_of
from fluidcc.scenario.model import Flow, Scenario, base_rtt
from fluidcc.scenario.parameters import register
from fluidcc.scenario.round_trips import ack_delay, serialisation_delays, smaller

_ON_GRID = 1e-3  # of a step: what a flow may seem to begin before an instant of the grid on which it does


@register(meta=("before", "queues", "waits"))
class Order:
    """Ends that are waited for, and the flows that wait for them.

    Parameters
    ----------
    way : Array
        From sending the last byte until it counts, without queueing, per end [s].
    before : tuple of int
        Flow of each end.
    queues : tuple of bool
        Of each end, whether the last byte has waited in queues by then.
    waits : tuple of tuple of int
        Ends that each flow waits for.
    """

    way: Any
    before: tuple[int, ...]
    queues: tuple[bool, ...]
    waits: tuple[tuple[int, ...], ...]


def order_of(scenario: Scenario) -> Order | None:
    """Return the ends that flows of a resolved scenario wait for; None if none waits."""
    if not any(flow.after for flow in scenario.flows):
        return None
    ends: dict[tuple[int, str], int] = {}
    waits = tuple(
        tuple(ends.setdefault((before, end_of(flow, scenario.flows[before])), len(ends)) for before in flow.after)
        for flow in scenario.flows
    )
    rules = {RECEIPT: receipt_delay, ANSWER: answer_delay}
    ways = [0.0 if end == SENT else rules[end](scenario, scenario.flows[before]) for before, end in ends]
    return Order(
        column(ways, collapse=False),
        tuple(before for before, _ in ends),
        tuple(end != SENT for _, end in ends),
        waits,
    )


def receipt_delay(scenario: Scenario, flow: Flow) -> Any:
    """Return the time from a flow's last byte on the first wire until its arrival, through empty queues [s]."""
    last = smaller(1.0, flow.size / scenario.packet_size)  # a whole packet is stored at every link
    return base_rtt(scenario, flow) / 2 + last * sum(serialisation_delays(scenario, flow)[1:])


def answer_delay(scenario: Scenario, flow: Flow) -> Any:
    """Compute the time of `receipt_delay`, and until the ACK is back at the sender [s]."""
    return receipt_delay(scenario, flow) + base_rtt(scenario, flow) / 2 + ack_delay(scenario, flow)


def at_rest(order: Order, start: Array, z: Memory, shape: tuple[int, ...]) -> Memory:
    """Return the memory before anything has ended: the first flows begin at their starts, no others are known to."""
    free = np.array([not ends for ends in order.waits])[:, None]
    began = jnp.broadcast_to(jnp.where(free, start, jnp.inf), shape)
    return z._replace(began=began, stretch=jnp.ones(shape, start.dtype))


def _rows(values: Array, rows: Sequence[Sequence[int]]) -> Array:
    """Gather rows of values (rows, points) for each place, padded with zeros: (places, most, points)."""
    # Read from a table, not summed into places: XLA compiles no loop with a scatter in it as one function.
    most = max(map(len, rows))
    table = np.array([[*own, *[len(values)] * (most - len(own))] for own in rows], int)
    return jnp.concatenate([values, jnp.zeros_like(values[:1])])[jnp.asarray(table)]


def begun(clock: Clock, began: Array) -> Array:
    """Check whether flows send in a step, (flows, points)."""
    return (clock.step + (1.0 - _ON_GRID)) * clock.dt > began


def share(clock: Clock, since: Array) -> Array:
    """Compute the part of a step after a given time, as a share of the step."""
    return jnp.clip(clock.step + 1.0 - since / clock.dt, 0.0, 1.0)


def told(order: Order, start: Array, flow_of: tuple[int, ...], clock: Clock, z: Memory) -> Memory:
    """Update when flows begin, as far as that is known at a step's end, and how long the next step is for them.

    Parameters
    ----------
    order : Order
    start : Array, shape (flows, points) or (1, points)
        Delay of a flow that waits, after the last end [s].
    flow_of : tuple of int
        Flow of each hop.
    clock : Clock
        At the step's end.
    z : Memory
    """
    assert z.finish is not None
    assert z.drain is not None
    assert z.began is not None
    first = np.searchsorted(flow_of, np.arange(len(order.waits) + 1))
    hops = [
        range(first[f], first[f + 1]) if queues else () for f, queues in zip(order.before, order.queues, strict=True)
    ]
    queued = jnp.sum(_rows(z.drain, hops), axis=1)
    ends = rows_of(z.finish, order.before) + queued + order.way
    ends = jnp.where(jnp.isnan(ends), jnp.inf, ends)  # a byte that is still under way
    began = jnp.max(_rows(ends, order.waits), axis=1) + start
    new = begun(clock, began) & ~begun(clock._replace(step=clock.step - 1), z.began)
    stretch = jnp.where(new, (clock.time + clock.dt - began) / clock.dt, 1.0)
    return z._replace(began=began, stretch=stretch)
