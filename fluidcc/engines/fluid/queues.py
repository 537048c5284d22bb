"""The fluid network as a delay-differential system: queues, marking, routing, and the flows' schemes.

Of schemes that compare the delays of two packets, one is that whose ACK arrives now. The other was sent before it by an
interval that the scheme sets, and that may depend on the scheme's state (TIMELY: a segment at the present rate).
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.models import Fluid
from fluidcc.contract.registry import fluid_of
from fluidcc.contract.signals import Signals, Waits
from fluidcc.dde.history import History
from fluidcc.dde.stepping import Clock, Read
from fluidcc.engines.fluid.completion import at_rest, begun, rest, sent_by, share, told, waits
from fluidcc.engines.fluid.marking import along_path, red
from fluidcc.engines.fluid.network import Group, Network, needs
from fluidcc.engines.fluid.state import Lagged, Memory, State, rows_of
from fluidcc.errors import InputError

_FASTEST_CATCH_UP = 8.0  # largest speed, in seconds per second, at which read-out of a silent past catches up


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


@dataclasses.dataclass(frozen=True)
class QueueNetwork:
    """A `System` (see `fluidcc.dde.stepping`) of fluid queues.

    Parameters
    ----------
    network : Network
        With its points axis.
    points : int
        Length of that axis.
    limit : Array, shape ()
        Longest lag that the history holds [s]; longer ones are read as this.
    """

    network: Network
    points: int
    limit: Array

    @cached_property
    def _count(self) -> tuple[int, int]:
        return self.network.queues, len(self.network.flows)

    @cached_property
    def _fluid(self) -> tuple[Fluid, ...]:
        return tuple(fluid_of(group.parameters) for group in self.network.groups)

    @cached_property
    def _hops(self) -> tuple[tuple[int, int, int], ...]:
        """(flow, position on its path, queue) of every hop of every flow."""
        return tuple((i, k, queue) for i, (_, path) in enumerate(self.network.flows) for k, queue in enumerate(path))

    @cached_property
    def _path_queues(self) -> tuple[int, ...]:
        """Queue of every view's every hop."""
        return tuple(queue for path in self.network.paths for queue in path)

    # -- what is remembered and read ---------------------------------------------------------------------

    @property
    def state_dependent_lags(self) -> bool:
        """Check whether some scheme compares delays over an interval that its state sets.

        Queueing delays are memory (`_waited`), so stages can share feedback otherwise.
        """
        return bool(self._earlier.flows)

    @property
    def reads(self) -> tuple[Read, ...]:
        """Queues and own rates for the feedback, rates for arrivals that travel, and queues of earlier packets."""
        return (*self._reads, self._earlier.read) if self._earlier.flows else self._reads

    @cached_property
    def _earlier(self) -> Earlier:
        return Earlier(self.network, self._fluid)

    @cached_property
    def _reads(self) -> tuple[Read, ...]:
        queues, flows = self._count
        own = tuple(range(queues, queues + flows))
        if self.network.own_lag is None:
            reads = [Read(tuple(range(queues + flows)))]
        else:
            marks = self._path_queues
            reads = [Read(marks, slopes=self.network.queueing), Read(own)]
        if self.network.arrival_lag is not None:
            one = self.network.arrival_lag.shape[0] == 1
            reads.append(Read(own if one else tuple(queues + flow for flow, _, _ in self._hops)))
        return tuple(reads)

    def remembered(self, y: State) -> Array:
        """Return the signals to remember: queues, then rates."""
        return jnp.concatenate([y.queue, self.rates(y)])

    def rates(self, y: State) -> Array:
        """Pacing rate (flows, points) of every flow, started or not [bytes/s]."""
        return self._in_order([fluid.rate(state) for fluid, state in zip(self._fluid, y.schemes, strict=True)])

    def _in_order(self, columns: list[Array]) -> Array:
        """Return rows of all flows in order, (flows, points), from those of each group."""
        if len(columns) == 1:
            return columns[0]
        order = [i for group in self.network.groups for i in group.flows]
        return jnp.concatenate(columns)[np.argsort(order)]

    def lags(self, y: State, z: Memory, node: float) -> tuple[Array, ...]:
        """Lags of `reads`: propagation, and what the packets waited."""
        lags = self._lags(y, z, node)
        if self._earlier.flows:
            lags.append(self._earlier.lags(y, lags[0]))
        return tuple(jnp.minimum(lag, self.limit) for lag in lags)

    def _lags(self, y: State, z: Memory, node: float) -> list[Array]:
        net = self.network
        lags = [net.marking_lag] if net.own_lag is None else [net.marking_lag, net.own_lag]
        if z.wait is not None and z.wait_growth is not None:
            # A mark made on arrival leaves with its packet: it waits in its own queue and all that follow.
            wait = jnp.maximum(z.wait + node * z.wait_growth, 0.0)
            onward = [
                jnp.cumsum(wait[first : first + len(path)][::-1], axis=0)[::-1] * waits
                for first, path, waits in zip(self._first_hop, net.paths, net.waits, strict=True)
            ]
            lags[0] = lags[0] + jnp.concatenate(onward)
            whole = jnp.stack([waits[0] for waits in onward])
            lags[1] = lags[1] + rows_of(whole, tuple(view for view, _ in net.flows))
        if net.arrival_lag is not None:
            lags.append(net.arrival_lag)
        return lags

    @cached_property
    def _first_hop(self) -> tuple[int, ...]:
        """Row of each view's first hop among all view hops."""
        return tuple(accumulate((len(path) for path in self.network.paths[:-1]), initial=0))

    def look_back(self, history: History, n: Array, dt: Array, y: State, z: Memory) -> Memory:
        """Return the memory unchanged: waits are computed step by step (`_waited`)."""
        return z

    def feedback(self, lagged: tuple[Array, ...]) -> Lagged:
        """Compute the marks along each path, and the schemes' feedback from them."""
        net = self.network
        count, _ = self._count
        lagged, before = (lagged[:-1], lagged[-1]) if self._earlier.flows else (lagged, None)
        arrivals = lagged[-1] if net.arrival_lag is not None else None
        if net.own_lag is None:
            queues, rates = lagged[0][:count], lagged[0][count:]
        else:
            queues, rates = lagged[0], lagged[1]
        marking = self._marking(queues)
        observed = []
        for group, fluid in zip(net.groups, self._fluid, strict=True):
            seen = rows_of(marking, tuple(net.flows[i][0] for i in group.flows))
            own, packet = rows_of(rates, group.flows), rows_of(net.packet, group.flows)
            waits = self._earlier.waits(group, queues, before)
            signals = Signals(seen, own, packet, waits=waits, line_rate=group.line_rate)
            observed.append(fluid.feedback(group.parameters, signals))
        return Lagged(tuple(observed), arrivals, queues if net.queueing else None)

    def _waited(self, clock: Clock, z: Memory, feedback: Lagged) -> Memory:
        """Queueing delay w of the packets whose marks arrive at the end of the step.

        A packet that arrived at a queue at s left at u = s + q(s)/C. With u known, w = q(u-w)/C is solved by
        one Newton step from the value extrapolated to the step's end, at which q and its slope were read.
        """
        if z.wait is None or z.wait_growth is None or feedback.queues is None:
            return z
        net = self.network
        hops = z.wait.shape[0]
        capacity = rows_of(net.capacity, self._path_queues)
        guess = jnp.maximum(z.wait + z.wait_growth, 0.0)
        queue, slope = feedback.queues[:hops], feedback.queues[hops:]
        # 1 + q'/C is the arrival rate over C; near 0, while nobody sends, any later s is as good.
        pace = jnp.maximum(1.0 + slope / capacity, 1.0 / _FASTEST_CATCH_UP)
        wait = guess + (jnp.maximum(queue, 0.0) / capacity - guess) / pace
        # s never goes back, and never leaps.
        wait = jnp.clip(wait, jnp.maximum(z.wait - (_FASTEST_CATCH_UP - 1) * clock.dt, 0.0), z.wait + clock.dt)
        return z._replace(wait=wait, wait_growth=wait - z.wait)

    def _marking(self, queues: Array) -> Array:
        """Probability (views, points) of a mark along each view's path, from lagged queues."""
        net = self.network
        if net.own_lag is None:
            at = [net.paths[0]]
        else:
            at = [tuple(range(first, first + len(p))) for first, p in zip(self._first_hop, net.paths, strict=True)]
        probabilities = []
        for rows, path in zip(at, net.paths, strict=True):
            red_of = (rows_of(column, path) for column in (net.kmin, net.kmax, net.pmax))
            probabilities.append(along_path(red(rows_of(queues, rows), *red_of)))
        return jnp.concatenate(probabilities) if len(probabilities) > 1 else probabilities[0]

    # -- how it moves --------------------------------------------------------------------------------------

    def start(self, dtype: Any) -> tuple[State, Memory]:
        """State at t = 0: empty queues, flows at their initial rates."""
        net, (queues, flows) = self.network, self._count
        states = []
        for group, fluid in zip(net.groups, self._fluid, strict=True):
            shape = (len(group.flows), self.points)
            hops = max(len(net.flows[i][1]) for i in group.flows)
            states.append(fluid.start(group.parameters, rows_of(net.initial_rate, group.flows), shape, hops))
        nothing = jnp.zeros((queues, self.points), dtype)
        wait = jnp.zeros((sum(map(len, net.paths)), self.points), dtype) if net.queueing else None
        if net.size is None:
            return State(nothing, tuple(states), None), Memory(nothing, None, None, wait, wait)
        sent = jnp.zeros((flows, self.points), dtype)
        hops = jnp.zeros((len(self._hops), self.points), dtype)
        y = State(nothing, tuple(states), sent, arrived=None if net.arrival_lag is None else hops)
        z = Memory(nothing, sent + jnp.inf, hops + jnp.nan, wait, wait, queue=nothing)
        if net.order is not None:
            z = at_rest(net.order, net.start, z, sent.shape)
        return y, rest(net, self._hops, y, z)

    def active(self, clock: Clock, z: Memory) -> Array | None:
        """Check whether flows are sending, (flows, points); return None if all always are.

        Decided once per step, so that a start on the grid is seen as a jump between steps.
        """
        if not self.network.starts and self.network.size is None:
            return None
        on = self._began(clock, self.network.start) if z.began is None else begun(clock, z.began)
        return on if z.finish is None else on & (clock.step * clock.dt < z.finish)

    @property
    def _hop_flows(self) -> tuple[int, ...]:
        return tuple(flow for flow, _, _ in self._hops)

    @staticmethod
    def _began(clock: Clock, start: Array, lag: Array | float = 0.0) -> Array:
        return (clock.step + 0.5) * clock.dt - lag > start

    def observables(self, y: State) -> dict[str, Array]:
        """Return the schemes' observables, (flows, points) each; NaN for flows whose scheme shows none of that name."""
        # Joined, not written in: XLA compiles no loop with a scatter in it as one function.
        found: dict[str, list[Array]] = {}
        for g, (group, fluid, state) in enumerate(zip(self.network.groups, self._fluid, y.schemes, strict=True)):
            for name, values in fluid.observables(state).items():
                if name not in fluid.OBSERVABLES:
                    where, known = group.parameters.name, ", ".join(fluid.OBSERVABLES) or "nothing"
                    raise InputError(f"scheme {where}: observables gives {name!r}; OBSERVABLES has {known}")
                if name not in found:
                    nothing = [jnp.full((len(each.flows), self.points), jnp.nan) for each in self.network.groups]
                    found[name] = [column.astype(values.dtype) for column in nothing]
                found[name][g] = jnp.broadcast_to(values, found[name][g].shape)
        return {name: self._in_order(columns) for name, columns in found.items()}

    def shown(self, y: State, z: Memory) -> dict[str, Array]:
        """Return what else the network shows, (queues or links, points) each."""
        return {}

    def sending(self, clock: Clock, y: State, z: Memory) -> Array:
        """Rate (flows, points) at which each flow of a class sends now [bytes/s]."""
        rates = self.pace(y, z)
        on = self.active(clock, z)
        if z.left is not None:
            rates = jnp.minimum(rates, z.left / clock.dt)  # a flow's last bytes are spread over the step
        return rates if on is None else jnp.where(on, rates, 0.0)

    def pace(self, y: State, z: Memory) -> Array:
        """Rate (flows, points) at which flows send if they are active [bytes/s]."""
        return self.rates(y) if z.stretch is None else self.rates(y) * z.stretch

    def derivative(self, clock: Clock, y: State, z: Memory, feedback: Lagged) -> State:
        """Queues by (6) and (11), schemes by their own equations."""
        net = self.network
        sending = self.sending(clock, y, z)
        on = self.active(clock, z)
        arrivals = self._arrivals(clock, sending, z, feedback)
        queue = arrivals - self.service(z)  # (6), (11)
        moves = []
        for group, fluid, state, observed in zip(net.groups, self._fluid, y.schemes, feedback.schemes, strict=True):
            move = fluid.derivative(group.parameters, state, observed)
            if on is not None:
                mine = rows_of(on, group.flows)
                move = jax.tree.map(lambda m, mine=mine: jnp.where(mine, m, 0.0), move)
            moves.append(move)
        came = None if y.came is None else arrivals
        arrived = None if y.arrived is None else self._coming(clock, sending, z, feedback)
        return State(queue, tuple(moves), None if y.sent is None else sending, came=came, arrived=arrived)

    def limited(self, y: State) -> State:
        """Project the schemes' states; leave queues, which no derivative sees, as they are."""
        return y._replace(schemes=self._projected(y))

    def service(self, z: Memory) -> Array:
        """Rate [bytes/s] at which queues are served: their links' capacity."""
        return self.network.capacity

    def unused(self, clock: Clock, z: Memory, short: Array) -> Array:
        """Bytes (links, points) that links could have sent in a step, where empty queues fell ``short`` of it."""
        return short

    def _arrivals(self, clock: Clock, sending: Array, z: Memory, feedback: Lagged) -> Array:
        """Arrival rate at every queue (queues, points)."""
        counts = rows_of(self.network.multiplicity, self._hop_flows)
        return self._at_queues(counts * self._coming(clock, sending, z, feedback))

    def _coming(self, clock: Clock, sending: Array, z: Memory, feedback: Lagged) -> Array:
        """Rate (hops, points) at which each flow of a class comes to the queues on its path [bytes/s]."""
        net = self.network
        if feedback.arrivals is None:
            return rows_of(sending, self._hop_flows)
        per_hop = len(self._reads[-1].rows) == len(self._hops)
        there = feedback.arrivals if per_hop else rows_of(feedback.arrivals, self._hop_flows)
        if z.due is not None:
            there = jnp.minimum(there, z.due / clock.dt)  # what is sent arrives, and no more
        if z.began is not None:
            return there * share(clock, rows_of(z.began, self._hop_flows) + net.arrival_lag)
        return jnp.where(self._began(clock, rows_of(net.start, self._hop_flows), net.arrival_lag), there, 0.0)

    def _at_queues(self, hops: Array) -> Array:
        """Sum a value of every hop at each queue (queues, points)."""
        queues, _ = self._count
        sums = []
        for queue in range(queues):
            rows = tuple(h for h, (_, _, at) in enumerate(self._hops) if at == queue)
            sums.append(jnp.sum(rows_of(hops, rows), axis=0) if rows else jnp.zeros(self.points, hops.dtype))
        return jnp.stack(sums)

    def jump(self, clock: Clock, y: State, z: Memory, feedback: Lagged) -> tuple[State, Memory]:
        """Keep empty queues empty, project the schemes' states, update the waits, and end finite flows."""
        net = self.network
        schemes = self._jumped(y, z, feedback, clock.dt)
        queue = jnp.maximum(y.queue, 0.0)
        z = self._waited(clock, z._replace(idle=z.idle + self.unused(clock, z, queue - y.queue)), feedback)
        filled, y = y.queue, y._replace(queue=queue, schemes=schemes)
        if net.size is None:
            return y, z
        finish = sent_by(clock, net.size, y, z, self.pace(y, z))
        z = self._drained(clock, z, filled)._replace(finish=finish)
        if net.order is not None:
            z = told(net.order, net.start, self._hop_flows, clock, z)
        return y, rest(net, self._hops, y, z)

    def _drained(self, clock: Clock, z: Memory, queue: Array) -> Memory:
        """Fill in the waits of last bytes, in queues that may have fallen below 0."""
        return waits(self.network, self._hops, clock, z, queue, self.service(z))

    def _jumped(self, y: State, z: Memory, feedback: Lagged, dt: Array | float = 0.0) -> tuple[Any, ...]:
        """Return the schemes' states after a step."""
        return self._projected(y)

    # -- steps of each point's own (`fluidcc.dde.adaptive`) --------------------------------------------------

    @property
    def lags_move(self) -> bool:
        """Check whether lags contain queueing delays."""
        return self.network.queueing

    def bounded(self, y: State) -> State:
        """Keep empty queues empty, and project the schemes' states."""
        return y._replace(queue=jnp.maximum(y.queue, 0.0), schemes=self._projected(y))

    def paced(self, z: Memory, ratio: Array) -> Memory:
        """Scale the growth of waits by ``ratio``, so that they grow as fast as in the last step."""
        return z if z.wait_growth is None else z._replace(wait_growth=z.wait_growth * ratio)

    def settle(self, clock: Clock, z: Memory, stopped: State, feedback: Lagged) -> Memory:
        """Update the waits, and count as idle what links could have sent when their queues could fall no further."""
        return self._waited(clock, z._replace(idle=z.idle + self.network.by_link(stopped.queue)), feedback)

    def _projected(self, y: State) -> tuple[Any, ...]:
        return tuple(
            fluid.project(group.parameters, state, group.line_rate)
            for group, fluid, state in zip(self.network.groups, self._fluid, y.schemes, strict=True)
        )
