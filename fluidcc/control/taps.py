"""What a fluid network's right-hand side depends on, one lagged scalar after another.

A tap is a queue or a flow's rate at one lag. The present state and the values of all taps make the right-hand side;
both can then be differentiated. Delays that depend on queues are frozen where they are.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.fluid.kernel import Clock
from fluidcc.fluid.queues import QueueNetwork
from fluidcc.fluid.rows import rows_of
from fluidcc.fluid.state import Feedback, Memory, State
from fluidcc.fluid.windows import WindowNetwork

_LATE = Clock(jnp.int32(2**30), jnp.float32(2.0**30), jnp.float32(1.0))  # every flow has started


class Tap(NamedTuple):
    """A signal, its row among queues and then rates, and how old it is [s]; whether flows share it by its sum."""

    row: int
    delay: float
    summed: bool = False


class Plain:
    """Taps of a network whose schemes hear marks: what its history is read for.

    Parameters
    ----------
    system : QueueNetwork
    y, z : State, Memory
        At the equilibrium.
    """

    def __init__(self, system: QueueNetwork, y: State, z: Memory) -> None:
        self.system, self.z = system, z
        self.taps = [
            Tap(row, float(lag))
            for read, lags in zip(system.reads, system.lags(y, z, 0.0), strict=True)
            for row, lag in zip(read.rows, np.broadcast_to(np.ravel(lags), len(read.rows)), strict=True)
        ]

    def complete(self, y: State) -> State:
        """The state with what follows from it at once: nothing, here."""
        return y

    def signals(self, y: State) -> Array:
        """Queues, then rates, (rows, 1)."""
        return self.system.remembered(y)

    def slope(self, y: State, values: Array) -> State:
        """The right-hand side from the present state and the taps' values, (taps, 1)."""
        return slope_of(self.system, self.z, y, values)


def slope_of(system: QueueNetwork, z: Memory, y: State, values: Array) -> State:
    """The right-hand side from the present state and the values of all that is read, (rows of all reads, points)."""
    lagged, first = [], 0
    for read in system.reads:
        part = values[first : first + len(read.rows)]
        lagged.append(jnp.concatenate([part, jnp.zeros_like(part)]) if read.slopes else part)
        first += len(read.rows)
    return system.derivative(_LATE, y, z, system.feedback(tuple(lagged)))


class Tracked:
    """Taps of a network whose schemes hear telemetry and have no windows.

    What a link sends is its capacity while it has a queue, else what arrives: each flow's rate, as old as it was when
    it came. Parameters as of `Plain`.
    """

    def __init__(self, system: WindowNetwork, y: State, z: Memory) -> None:
        self.system, self.z, net = system, z._replace(arriving=None), system.network
        marks, own, telemetry = (np.ravel(np.asarray(lags)) for lags in system.lags(y, z, 0.0))
        queues, hops = net.queues, len(system._path_queues)
        loaded = np.asarray(y.queue[:, 0]) > 0
        forward = np.zeros(len(system._hops)) if net.arrival_lag is None else np.ravel(np.asarray(net.arrival_lag))
        forward = np.broadcast_to(forward, len(system._hops))
        heard = np.broadcast_to(telemetry, 3 * hops)[:hops]
        self.taps = [Tap(q, lag) for q, lag in zip(system._path_queues, np.broadcast_to(marks, hops), strict=True)]
        self.taps += [Tap(queues + i, lag) for i, lag in enumerate(np.broadcast_to(own, len(net.flows)))]
        self.taps += [Tap(q, lag) for q, lag in zip(system._path_queues, heard, strict=True)]
        self._start = len(self.taps)
        many = np.broadcast_to(np.asarray(net.multiplicity)[:, 0], len(net.flows))
        # Rates that make the arrivals of each view's hop as telemetry tells them, then those of each queue now.
        self._of_hop, self._of_queue = np.zeros((hops, 0)), np.zeros((queues, 0))
        for rows, columns in ((list(enumerate(system._path_queues)), heard), ([(q, q) for q in range(queues)], None)):
            for row, queue in rows:
                for k, (flow, _, at) in enumerate(system._hops):
                    if at == queue:
                        delay = forward[k] + (0.0 if columns is None else columns[row])
                        self.taps.append(Tap(queues + flow, delay, True))
                        one = np.zeros((hops, 1)), np.zeros((queues, 1))
                        one[columns is None][row] = many[flow]
                        self._of_hop = np.hstack([self._of_hop, one[0]])
                        self._of_queue = np.hstack([self._of_queue, one[1]])
        self._capacity = np.broadcast_to(np.asarray(net.capacity), (queues, 1))
        self._loaded = loaded[list(system._path_queues)][:, None]
        self.taps = [Tap(int(tap.row), float(tap.delay), tap.summed) for tap in self.taps]

    def complete(self, y: State) -> State:
        """The state with what jumps make of it, such as rates from windows."""
        nothing = Feedback((jnp.zeros(()),) * len(y.schemes), None, None)
        return y._replace(schemes=self.system._jumped(y, self.z, nothing))

    def signals(self, y: State) -> Array:
        """Queues, then rates, (rows, 1)."""
        return jnp.concatenate([y.queue, self.system.rates(y)])

    def slope(self, y: State, values: Array) -> State:
        """The right-hand side from the present state and the taps' values, (taps, 1)."""
        hops, flows = len(self.system._path_queues), len(self.system.network.flows)
        marks, own, queue = jnp.split(values[: self._start], [hops, hops + flows])
        arriving = self._of_hop @ values[self._start :]
        capacity = rows_of(jnp.asarray(self._capacity), self.system._path_queues)
        output = jnp.where(self._loaded, capacity, arriving)
        telemetry = jnp.concatenate([queue, output, arriving])
        feedback = self.system.feedback((marks, jnp.concatenate([own, own]), telemetry))
        moved = self.system.derivative(_LATE, y, self.z, feedback)
        return moved._replace(queue=self._of_queue @ values[self._start :] - self._capacity)


def taps_of(system: QueueNetwork, y: State, z: Memory) -> Plain | Tracked:
    """The taps of a network at an equilibrium."""
    return Tracked(system, y, z) if isinstance(system, WindowNetwork) else Plain(system, y, z)
