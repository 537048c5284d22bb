"""Waits of packets in queues, for schemes that compare the delays of two.

One is the packet whose ACK arrives now. The other was sent before it by an interval that the scheme sets, and that may
depend on the scheme's state (TIMELY: a segment at the present rate).
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import jax.numpy as jnp
from jax import Array

from fluidcc.contract.models import Fluid
from fluidcc.contract.signals import Waits
from fluidcc.dde.stepping import Read
from fluidcc.engines.fluid.lags import needs
from fluidcc.engines.fluid.network import Group, Network
from fluidcc.engines.fluid.rows import rows_of
from fluidcc.engines.fluid.state import State


@dataclasses.dataclass(frozen=True)
class Earlier:
    """Queues as the earlier packets found them.

    Parameters
    ----------
    network : Network
    fluid : tuple of Fluid
        Fluid sides of the network's groups.
    """

    network: Network
    fluid: tuple[Fluid, ...]

    @cached_property
    def flows(self) -> tuple[int, ...]:
        """Flows whose scheme observes delays."""
        return tuple(sorted(flow for group in self.network.groups if _compares(group) for flow in group.flows))

    @property
    def read(self) -> Read:
        """The queues of these flows' hops, flow by flow."""
        return Read(tuple(queue for flow in self.flows for queue in self.network.flows[flow][1]))

    def lags(self, y: State, marking: Array) -> Array:
        """Lags (hops of the flows, points) of `read` [s], from those at which present packets are observed."""
        intervals = {}
        for group, fluid, state in zip(self.network.groups, self.fluid, y.schemes, strict=True):
            if fluid.interval is not None and _compares(group):
                interval = fluid.interval(group.parameters, state)
                intervals |= {flow: rows_of(interval, (i,)) for i, flow in enumerate(group.flows)}
        hops = [(flow, row) for flow in self.flows for row in self._rows(flow)]
        return jnp.concatenate([rows_of(marking, (row,)) + intervals[flow] for flow, row in hops])

    def waits(self, group: Group, now: Array, before: Array | None) -> Waits | None:
        """Compute how long packets of a group's flows waited in queues; None if the scheme does not observe it."""
        if before is None or not _compares(group):
            return None
        first = 0
        rows = {}
        for flow in self.flows:
            rows[flow] = tuple(range(first, first := first + len(self.network.flows[flow][1])))
        both = [
            (self._waited(flow, now, self._found(flow)), self._waited(flow, before, rows[flow])) for flow in group.flows
        ]
        return Waits(*(jnp.stack(waits) for waits in zip(*both, strict=True)))

    def _waited(self, flow: int, queues: Array, rows: tuple[int, ...]) -> Array:
        capacity = rows_of(self.network.capacity, self.network.flows[flow][1])
        return jnp.sum(jnp.maximum(rows_of(queues, rows), 0.0) / capacity, axis=0)

    def _rows(self, flow: int) -> tuple[int, ...]:
        """Return the rows of a flow's hops among those of all views."""
        view, path = self.network.flows[flow]
        first = sum(map(len, self.network.paths[:view]))
        return tuple(range(first, first + len(path)))

    def _found(self, flow: int) -> tuple[int, ...]:
        """Return rows of a flow's hops in what is read now: those of views, or of queues where one lag serves all."""
        return self.network.flows[flow][1] if self.network.own_lag is None else self._rows(flow)


def _compares(group: Group) -> bool:
    return "delay" in needs(group.parameters)
