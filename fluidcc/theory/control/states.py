"""A fluid network's states that move by themselves as rows of one array, and its right-hand side as their function.

Rows: queues, then the `MOVES` fields of each group's scheme, flow by flow; points of a batch lie on the last axis.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from fluidcc.contract.models import Equilibrium
from fluidcc.contract.registry import equilibrium_of, scheme_of
from fluidcc.engines.fluid.network import Network
from fluidcc.engines.fluid.queues import QueueNetwork
from fluidcc.engines.fluid.state import Lagged, Memory, State
from fluidcc.errors import InputError
from fluidcc.theory.control.delayed_inputs import Plain, Tracked, delayed_inputs_of

_EMPTY = 1e-5  # bytes: a queue that is no more is none, or its link would count as busy


NO_EQUILIBRIUM = (
    "no fixed point: a step marking marks all or nothing, a queue grows for ever, or the flows cycle; "
    "see which with fluidcc.limit_cycle(scenario)"
)


class NoEquilibriumError(InputError):
    """Error of a scenario without an equilibrium to linearise about."""


class UnfilledError(NoEquilibriumError):
    """Error of a scenario whose flows all settle at their line rate, which leaves nothing to linearise."""


def smooth_side(parameters: Any) -> Equilibrium:
    """The equilibrium side of a scheme, from its parameters.

    Raises
    ------
    NoEquilibriumError
        If it has none, or the scheme changes its state in jumps.
    """
    side, name = equilibrium_of(parameters), parameters.name
    see = f"see where it ends with: fluidcc simulate {name}"
    if side is None:
        known = scheme_of(parameters)
        jumps = known.fluid is not None and known.fluid.jump is not None
        why = ": it changes its state in jumps, as ACKs come" if jumps else ""
        raise NoEquilibriumError(
            f"linearize: scheme {name} has no equilibrium side ({known.file('equilibrium')}){why}; {see}"
        )
    if not side.smooth(parameters):
        raise NoEquilibriumError(
            f"linearize: {name} changes its state in jumps, so there is nothing to linearise; "
            f"{side.SMOOTH_INSTEAD or see}"
        )
    return side


def extended(network: Network) -> Network:
    """The same ramps, up to a probability of 1: nothing jumps at kmax. Cut-offs stay."""
    width = network.kmax - network.kmin
    ramp = jnp.isfinite(width) & (width > 0)
    longer = jnp.where(ramp, width, 1.0) / network.pmax
    return dataclasses.replace(
        network,
        kmax=jnp.where(ramp, network.kmin + longer, network.kmax),
        pmax=jnp.where(ramp, 1.0, network.pmax),
    )


class Start(NamedTuple):
    """Start of a search for an equilibrium."""

    rate: float  # of a flow, in fair shares; no more than its line's
    wait: float  # in every queue [s]
    tilt: float = 1.0  # of every other flow's rate


STARTS = (
    Start(1.0, 0.0),
    Start(1.0, 20e-6),
    Start(1.0, 100e-6),
    Start(1.0, 500e-6),
    Start(1e6, 0.0),
    Start(0.1, 0.0, 0.5),
    Start(1.0, 50e-6, 0.2),
)


@dataclasses.dataclass(frozen=True)
class States:
    """A network's states as rows.

    Parameters
    ----------
    system : QueueNetwork

    Raises
    ------
    NoEquilibriumError
        If a scheme changes its state in jumps.
    """

    system: QueueNetwork

    @cached_property
    def delayed_inputs(self) -> Plain | Tracked:
        """Delayed inputs of the right-hand side."""
        return delayed_inputs_of(self.system)

    @cached_property
    def _sides(self) -> tuple[Equilibrium, ...]:
        return tuple(smooth_side(group.parameters) for group in self.system.network.groups)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the rows: "queue 0", then for example "rate 2"; with several registers "reference_window[1] 2"."""
        names = [f"queue {i}" for i in range(self.system.network.queues)]
        for group, side, state in zip(self.system.network.groups, self._sides, self._begun[0].schemes, strict=True):
            for field in side.MOVES:
                registers = getattr(state, field).size // (len(group.flows) * self.system.points)
                texts = [field] if registers == 1 else [f"{field}[{k}]" for k in range(registers)]
                names += [f"{text} {flow}" for text in texts for flow in group.flows]
        return tuple(names)

    @cached_property
    def flow(self) -> tuple[int, ...]:
        """Flow of each row; -1 for queues."""
        return tuple(-1 if name.startswith("queue ") else int(name.rsplit(" ", 1)[1]) for name in self.names)

    @cached_property
    def _begun(self) -> tuple[State, Memory]:
        """A state long after the start: what counts ACKs has seen some."""
        y, z = self.system.start(jnp.float64)
        schemes = tuple(side.late(state) for side, state in zip(self._sides, y.schemes, strict=True))
        return y._replace(schemes=schemes), z

    def first(self, start: Start) -> Array:
        """Rows (rows, points) from which to search."""
        net, points = self.system.network, self.system.points
        load = jnp.zeros((net.queues, points))
        many = jnp.broadcast_to(net.multiplicity, (len(net.flows), points))
        for flow, _, queue in self.system._hops:
            load = load.at[queue].add(many[flow])
        share = net.capacity / jnp.maximum(load, 1e-9)
        fair = jnp.stack([jnp.min(share[jnp.asarray(path)], axis=0) for _, path in net.flows])
        lean = jnp.where(jnp.arange(len(net.flows)) % 2 == 0, start.tilt, 1.0)[:, None]
        network = dataclasses.replace(net, initial_rate=jnp.minimum(start.rate * lean * fair, net.line_rate))
        y, _ = States(dataclasses.replace(self.system, network=network))._begun
        return self.rows(y._replace(queue=start.wait * jnp.broadcast_to(net.capacity, y.queue.shape)))

    def rows(self, y: State) -> Array:
        """Rows of a state."""
        moving = [
            jnp.reshape(getattr(state, field), (-1, self.system.points))
            for side, state in zip(self._sides, y.schemes, strict=True)
            for field in side.MOVES
        ]
        return jnp.concatenate([y.queue, *moving])

    def _filled(self, x: Array) -> State:
        y, _ = self._begun
        schemes, at = [], self.system.network.queues
        for side, state in zip(self._sides, y.schemes, strict=True):
            new = {}
            for field in side.MOVES:
                shape = jnp.shape(getattr(state, field))
                rows = math.prod(shape[:-1])
                new[field] = jnp.reshape(x[at : at + rows], shape)
                at += rows
            schemes.append(state._replace(**new))
        return y._replace(queue=x[: self.system.network.queues], schemes=tuple(schemes))

    def memory(self, x: Array) -> Memory:
        """The memory of a network that settles there: packets wait as long as the queues say."""
        _, z = self._begun
        if z.wait is None:
            return z
        at = jnp.asarray(self.system._path_queues)
        wait = (jnp.maximum(x[: self.system.network.queues], 0.0) / self.system.network.capacity)[at]
        return z._replace(wait=wait, wait_growth=jnp.zeros_like(wait))

    def state(self, x: Array) -> State:
        """The state of rows, with what follows from it at once."""
        return self.delayed_inputs.complete(self._filled(x), self._begun[1])

    def projected(self, x: Array) -> Array:
        """Rows as limits let them be: queues not below 0, rates not above the line's."""
        y = self._filled(x)
        nothing = Lagged((jnp.zeros(()),) * len(y.schemes), None, None)
        schemes = self.system._jumped(y, self._begun[1], nothing)
        return self.rows(y._replace(queue=jnp.where(y.queue > _EMPTY, y.queue, 0.0), schemes=schemes))

    def observed(self, x: Array) -> Array:
        """Values (delayed inputs, points) of what is observed a network that settles there."""
        return self.delayed_inputs.signals(self.state(x))

    def slope(self, x: Array, values: Array) -> Array:
        """The right-hand side (rows, points) from present rows and what is observed."""
        return self.rows(self.delayed_inputs.slope(self.state(x), self._begun[1], values))

    def rates(self, x: Array) -> Array:
        """Rate (flows, points) of every flow [bytes/s]."""
        return self.system.rates(self.state(x))

    def delays(self, x: Array) -> Array:
        """Return the ages of the delayed inputs at an equilibrium with these rows [s], (delayed inputs, points)."""
        return self.delayed_inputs.delays(self.state(x), self.memory(x))
