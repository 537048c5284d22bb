"""The fluid network where links serve several traffic classes: strict by priority, by weight among equal ones.

Each class of a link is a queue with its own service rate, constant within a step: what it can use of the link while the
others are served (generalised processor sharing, the fluid that weighted round robin approximates). A byte that arrived
at s leaves when as many bytes have left as had come by s; both counts are remembered.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property, partial
from typing import Any

import jax.numpy as jnp
from jax import Array

from fluidcc.dde.history import History, place
from fluidcc.dde.stepping import Clock
from fluidcc.engines.fluid.completion import waits_served
from fluidcc.engines.fluid.lossless import LosslessNetwork
from fluidcc.engines.fluid.network import Network
from fluidcc.engines.fluid.queues import QueueNetwork
from fluidcc.engines.fluid.state import Lagged, Memory, State
from fluidcc.engines.fluid.windows import WindowNetwork, search


@dataclasses.dataclass(frozen=True)
class ClassNetwork(WindowNetwork):
    """A `WindowNetwork` whose links have a queue for each class."""

    # -- what is remembered and read ---------------------------------------------------------------------

    def remembered(self, y: State) -> Array:
        """Append to the base's rows the bytes that left and that came to each queue, and each link's telemetry."""
        assert y.came is not None
        assert y.traffic is not None
        by_link = self.network.by_link
        output, arriving = jnp.split(y.traffic, 2)
        link = (by_link(y.queue), by_link(output), by_link(arriving))
        return jnp.concatenate([super().remembered(y), y.came - y.queue, y.came, *link])

    @cached_property
    def _gone_row(self) -> int:
        queues, flows = self._count
        return 3 * queues + flows

    @cached_property
    def _telemetry_rows(self) -> tuple[int, ...]:
        """Remembered signals of every view's every hop: the link's queue, output and arrivals, the class's own two."""
        queues, _ = self._count
        net, link = self.network, self._gone_row + 2 * queues
        whole = [link + part * net.links + queue // self._classes for part in range(3) for queue in self._path_queues]
        return (*whole, *(part * queues + queue for part in range(2) for queue in self._path_queues))

    @property
    def _classes(self) -> int:
        return len(self.network.priorities)

    def _share(self, views: tuple[int, ...]) -> Array:
        """Compute the share of a link that the views' classes are guaranteed in their priority, (views, points)."""
        net = self.network
        shares = []
        for view in views:
            own = net.paths[view][0] % self._classes
            equals = [c for c, priority in enumerate(net.priorities) if priority == net.priorities[own]]
            shares.append(net.weight[own] / sum(net.weight[c] for c in equals))
        return jnp.stack([jnp.broadcast_to(share, shares[0].shape) for share in shares])

    def look_back(self, history: History, n: Array, dt: Array, y: State, z: Memory) -> Memory:
        """Look back as the base does, and compute how the classes share each link in the step."""
        z = super().look_back(history, n, dt, y, z)
        clock = Clock(n, n * dt, dt)
        arriving = self._arrivals(clock, self.sending(clock, y, z), z, Lagged((), None, None))
        return z._replace(service=self._served(y.queue / dt + arriving))

    def _served(self, wanted: Array) -> Array:
        """Rates (queues, points) at which queues are served that could use ``wanted`` [bytes/s].

        By falling priority; among equals, those that want less than their share of what is left get it, and leave
        the rest to the others.
        """
        net, shape = self.network, (self.network.links, self._classes, self.points)
        wanted = wanted.reshape(shape)
        left = jnp.broadcast_to(net.link_capacity, (net.links, self.points))[:, None]
        weight = jnp.broadcast_to(net.weight, (self._classes, self.points))
        served = jnp.zeros(shape, wanted.dtype)
        for priority in sorted(set(net.priorities), reverse=True):
            equal = jnp.array([p == priority for p in net.priorities])[None, :, None]
            hungry = jnp.broadcast_to(equal, shape)
            for _ in range(net.priorities.count(priority)):
                share = self._shares(left, weight, hungry)
                sated = hungry & (wanted <= share)
                served = jnp.where(sated, wanted, served)
                left = left - jnp.sum(jnp.where(sated, wanted, 0.0), axis=1, keepdims=True)
                hungry = hungry & ~sated
            share = self._shares(left, weight, hungry)
            served = jnp.where(hungry, share, served)
            left = jnp.maximum(left - jnp.sum(jnp.where(hungry, share, 0.0), axis=1, keepdims=True), 0.0)
        return served.reshape(self._count[0], self.points)

    @staticmethod
    def _shares(left: Array, weight: Array, hungry: Array) -> Array:
        total = jnp.sum(jnp.where(hungry, weight, 0.0), axis=1, keepdims=True)
        return left * weight / jnp.where(total > 0, total, 1.0)

    def _arrived(
        self, history: History, n: Array, dt: Array, queues: tuple[int, ...], left: Array, begin: Array
    ) -> Array:
        """Find arrivals as the base does, but by bytes: as many had come by then as had left at ``left``."""
        gone = tuple(self._gone_row + queue for queue in queues)
        came = tuple(self._gone_row + self._count[0] + queue for queue in queues)
        target = history.read(n, place((1.0 - left) * dt, dt, 1.0, False), gone, linear=True)
        filling = self._filling(history, n, queues)
        return search(partial(history.at, n, rows=came), filling, target, left, begin)

    # -- how it moves --------------------------------------------------------------------------------------

    def start(self, dtype: Any) -> tuple[State, Memory]:
        """Start as the base does, before any byte has come."""
        y, z = super().start(dtype)
        nothing = jnp.zeros_like(y.queue)
        ahead = None if z.drain is None else jnp.full_like(z.drain, jnp.inf)
        return y._replace(came=nothing), z._replace(idle=self.network.by_link(nothing), service=nothing, ahead=ahead)

    def _drained(self, clock: Clock, z: Memory, queue: Array) -> Memory:
        """Compute the waits of last bytes as the base does, by what classes were served meanwhile."""
        return waits_served(self.network, self._hops, clock, z, queue, self.service(z))

    def shown(self, y: State, z: Memory) -> dict[str, Array]:
        """Return the queue of each class."""
        return {"class_queue": y.queue}

    def service(self, z: Memory) -> Array:
        """Rate (queues, points) of the step under way [bytes/s]."""
        assert z.service is not None
        return z.service

    def output(self, y: State, z: Memory, arriving: Array) -> Array:
        """Return the service as the rate of sending: no queue is served more than it has."""
        return self.service(z)

    def unused(self, clock: Clock, z: Memory, short: Array) -> Array:
        """Compute the bytes that each link could have sent beyond what its classes were served in the step."""
        return (self.network.link_capacity - self.network.by_link(self.service(z))) * clock.dt


def system_of(network: Network, points: int, limit: Array) -> QueueNetwork:
    """The system of a network: one that tracks windows, telemetry, classes and flow control only if it must."""
    if network.ingress is not None:
        return LosslessNetwork(network, points, limit)
    if len(network.priorities) > 1:
        return ClassNetwork(network, points, limit)
    return (WindowNetwork if network.tracked else QueueNetwork)(network, points, limit)
