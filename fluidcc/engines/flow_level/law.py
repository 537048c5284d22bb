"""A scheme's own fluid side (`fluidcc.schemes.protocol.FluidSide`) on slots: one state for each transfer under way.

The side is used as it is. A transfer that starts sets its slot's state to the scheme's first; each step then is Euler's,
with the side's limits or jumps behind it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.functions import per_shape
from fluidcc.engines.flow_level.step import FIXED
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario
from fluidcc.schemes.bind import binder
from fluidcc.schemes.registry import fluid_of, scheme_of
from fluidcc.schemes.signals import Progress, Signals, Telemetry

_KNOWN = frozenset({"telemetry", "inflight"})  # of what schemes may ask for


class Law(NamedTuple):
    """A scheme with its parameters for each kind of path."""

    side: Any
    table: Any  # parameters, each number (kinds,)
    pause: float  # for which feedback waits at receivers [s]
    payload: float  # bytes of a packet as windows count it


def law_of(scenario: Scenario, first: np.ndarray) -> Law:
    """What all flows of a scenario run.

    Raises
    ------
    InputError
        If they run several schemes, or one that asks for what the engine does not follow.
    """
    flows = scenario.flows
    names = sorted({flow.scheme.name for flow in flows})
    if len(names) > 1 or len({id(flow.scheme) for flow in flows}) > 1:
        raise InputError(f"scheme: flows of the flow-level engine run one; these run {' and '.join(names)}, or several")
    scheme = flows[0].scheme
    side = fluid_of(scheme)
    alien = sorted(side.NEEDS - _KNOWN) + (["sending"] if side.sending is not None else [])
    if alien:
        raise InputError(
            f"scheme {scheme_of(scheme).name}: the flow-level engine does not follow {alien[0]}, which it needs; write "
            "model='ideal', or engine='packet'"
        )
    for name, modelled in side.ONLY.items():
        if getattr(scheme, name) != modelled:
            raise InputError(f"flow 0 {name}: the fluid model of {scheme.name} has only {name}={modelled}; write that")
    bind = binder(scenario)
    bound = [bind(flows[i]) for i in first]
    table = jax.tree.map(lambda *values: np.array(values, float), *bound)
    payload = scenario.packet_size if scenario.window_unit == "payload" else scenario.wire_packet_of(flows[0])
    return Law(side, table, float(scheme.feedback_pause), float(payload))


@per_shape(donate=(1,))
def step(table: Any, state: Any, columns: Any, dt: Any, payload: Any, *, scheme: str) -> tuple[Any, Any]:
    """The next state of all slots, and their rates and windows."""
    from fluidcc.schemes import registry

    side = registry.scheme(scheme).fluid
    assert side is not None
    hops = (columns.shape[0] - FIXED) // 5
    fixed = [row[:, None] for row in columns[:FIXED]]
    marking, rate, fresh, sends, sent, acked, newly, rtt, line, initial, packet = fixed[:11]
    kind = columns[11].astype(int)
    parameters = jax.tree.map(lambda leaf: leaf[kind][:, None], table)
    queue, output, arriving, capacity, own = columns[FIXED:].reshape(5, hops, -1, 1)
    telemetry = Telemetry(queue, output, arriving, capacity, queue, output, jnp.ones_like(line))
    first = side.start(parameters, initial, line.shape, hops)
    state = jax.tree.map(lambda new, old: jnp.where(fresh > 0, new, old), first, state)
    observed = side.feedback(parameters, Signals(marking, rate, packet, telemetry))
    moves = side.derivative(parameters, state, observed)
    after = jax.tree.map(lambda value, slope: value + dt * slope, state, moves)
    counted = packet if payload is None else jnp.broadcast_to(payload, packet.shape)
    if side.jump is not None:
        progress = Progress(sent, acked, newly, counted, packet, line, own, rtt, dt)
        after = side.jump(parameters, after, progress, observed)
    else:
        after = side.project(parameters, after, line)
    window = jnp.full_like(line, 1e300)
    if side.window is not None:
        window = jnp.broadcast_to(side.window(parameters, after), line.shape) * packet / counted
    return after, jnp.stack([side.rate(after)[:, 0], window[:, 0]])


def empty(law: Law, slots: int, hops: int) -> Any:
    """A state of the right shape, whose values do not matter: each slot begins afresh."""
    kinds = jax.tree.map(lambda leaf: np.broadcast_to(leaf[:1, None], (slots, 1)), law.table)
    made = law.side.start(kinds, jnp.ones((slots, 1)), (slots, 1), hops)
    return jax.tree.map(lambda leaf: jnp.array(leaf), made)


def on_device(table: Any) -> Any:
    """Parameters as arrays of JAX."""
    return jax.tree.map(jnp.asarray, table)


def grown(state: Any) -> Any:
    """The same for twice as many slots."""

    def twice(leaf: Any) -> Any:
        return jnp.concatenate([leaf, leaf], axis=leaf.ndim - 2)

    return jax.tree.map(twice, state)
