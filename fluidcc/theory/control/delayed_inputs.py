"""Delayed inputs of a fluid network's right-hand side, one lagged scalar each, for all points of a batch.

A delayed input is a queue or a flow's rate at one lag. The right-hand side is a function of the present state and of
all delayed inputs, and can be differentiated by both. Delays that depend on queues are those at the given state.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.dde.stepping import Clock
from fluidcc.engines.fluid.queues import QueueNetwork
from fluidcc.engines.fluid.state import Lagged, Memory, State, rows_of
from fluidcc.engines.fluid.windows import WindowNetwork
from fluidcc.errors import InputError

# Every flow has started. Of NumPy's numbers: JAX's own would be made as the user has set JAX.
_LATE = Clock._make((np.int32(2**30), np.float32(2.0**30), np.float32(1.0)))


class DelayedInput(NamedTuple):
    """A signal: its row among queues and then rates, and whether flows share it by its sum."""

    row: int
    summed: bool = False


class Plain:
    """Delayed inputs of a network whose schemes observe marks or delays: what its history is read for."""

    def __init__(self, system: QueueNetwork) -> None:
        self.system = system
        self.delayed_inputs = tuple(DelayedInput(row) for read in system.reads for row in read.rows)

    def delays(self, y: State, z: Memory) -> Array:
        """Return the ages of the delayed inputs [s], (delayed inputs, points)."""
        lags = zip(self.system.reads, self.system.lags(y, z, 0.0), strict=True)
        return jnp.concatenate([jnp.broadcast_to(lag, (len(read.rows), self.system.points)) for read, lag in lags])

    def complete(self, y: State, z: Memory) -> State:
        """The state with what follows from it at once: nothing, here."""
        return y

    def signals(self, y: State) -> Array:
        """Values (delayed inputs, points) of a network at equilibrium."""
        return self.system.remembered(y)[jnp.asarray([delayed_input.row for delayed_input in self.delayed_inputs])]

    def slope(self, y: State, z: Memory, values: Array) -> State:
        """The right-hand side from the present state and the delayed inputs' values, (delayed inputs, points)."""
        lagged, first = [], 0
        for read in self.system.reads:
            part = values[first : first + len(read.rows)]
            lagged.append(jnp.concatenate([part, jnp.zeros_like(part)]) if read.slopes else part)
            first += len(read.rows)
        return self.system.derivative(_LATE, y, z, self.system.feedback(tuple(lagged)))


class Tracked:
    """Delayed inputs of a network whose schemes observe telemetry and have no windows.

    What a link sends is its capacity while it has a queue, else what arrives: each flow's rate, as old as it was when
    it came. Members as of `Plain`.
    """

    def __init__(self, system: WindowNetwork) -> None:
        self.system, net = system, system.network
        if len(system.reads) > 3:
            raise InputError(
                "linearize: schemes that observe delays beside such that observe telemetry; give one kind alone"
            )
        self._queues = system._path_queues
        own = tuple(net.queues + flow for flow in range(len(net.flows)))
        # Whose rates make up the arrivals that telemetry tells of at each view's hop, and those at each queue now.
        hops = list(enumerate(system._hops))
        self._told = [(row, k, flow) for row, at in enumerate(self._queues) for k, (flow, _, q) in hops if q == at]
        self._come = [(at, k, flow) for at in range(net.queues) for k, (flow, _, q) in hops if q == at]
        rates = tuple(net.queues + flow for _, _, flow in [*self._told, *self._come])
        self.delayed_inputs = tuple(DelayedInput(row) for row in (*self._queues, *own, *self._queues))
        self.delayed_inputs += tuple(DelayedInput(row, True) for row in rates)

    def delays(self, y: State, z: Memory) -> Array:
        """Return the ages of the delayed inputs [s], (delayed inputs, points)."""
        points, net = self.system.points, self.system.network
        marks, own, telemetry = self.system.lags(y, z, 0.0)
        hops, flows = len(self._queues), len(net.flows)
        observed = jnp.broadcast_to(telemetry, (3 * hops, points))[:hops]
        forward = jnp.zeros((1, 1)) if net.arrival_lag is None else net.arrival_lag
        forward = jnp.broadcast_to(forward, (len(self.system._hops), points))
        parts = [jnp.broadcast_to(marks, (hops, points)), jnp.broadcast_to(own, (flows, points)), observed]
        parts += [forward[k : k + 1] + observed[row : row + 1] for row, k, _ in self._told]
        parts += [forward[k : k + 1] for _, k, _ in self._come]
        return jnp.concatenate(parts)

    def complete(self, y: State, z: Memory) -> State:
        """The state with what jumps make of it, such as rates from windows."""
        nothing = Lagged((jnp.zeros(()),) * len(y.schemes), None, None)
        return y._replace(schemes=self.system._jumped(y, z, nothing))

    def signals(self, y: State) -> Array:
        """Values (delayed inputs, points) of a network at equilibrium."""
        rows = jnp.concatenate([y.queue, self.system.rates(y)])
        return rows[jnp.asarray([delayed_input.row for delayed_input in self.delayed_inputs])]

    def slope(self, y: State, z: Memory, values: Array) -> State:
        """The right-hand side from the present state and the delayed inputs' values, (delayed inputs, points)."""
        net, z = self.system.network, z._replace(arriving=None)
        hops, flows = len(self._queues), len(net.flows)
        marks, own, queue, told, come = jnp.split(values, np.cumsum([hops, flows, hops, len(self._told)]))
        capacity = rows_of(net.capacity, self._queues)
        arriving = self._sums(self._told, told, hops)
        output = jnp.where(queue > 0, capacity, arriving)  # no more than the capacity, where a queue is none
        feedback = self.system.feedback(
            (marks, jnp.concatenate([own, own]), jnp.concatenate([queue, output, arriving]))
        )
        moved = self.system.derivative(_LATE, y, z, feedback)
        return moved._replace(queue=self._sums(self._come, come, net.queues) - net.capacity)

    def _sums(self, parts: list[tuple[int, int, int]], rates: Array, rows: int) -> Array:
        """Rates of classes, added up by row, (rows, points)."""
        many = rows_of(self.system.network.multiplicity, tuple(flow for _, _, flow in parts))
        return jnp.zeros((rows, rates.shape[1])).at[jnp.asarray([row for row, _, _ in parts])].add(many * rates)


def delayed_inputs_of(system: QueueNetwork) -> Plain | Tracked:
    """The delayed inputs of a network."""
    return Tracked(system) if isinstance(system, WindowNetwork) else Plain(system)
