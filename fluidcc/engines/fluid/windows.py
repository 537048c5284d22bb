"""The fluid network where schemes observe telemetry, or windows limit what they have in flight.

Every flow's bytes are remembered as a running sum S(t): its slope is the sending rate, and what is acknowledged is
S(t - RTT(t)), the round trip including what the packets waited. Within a step a flow sends at one rate, chosen at
its start: the pacing rate, or less if the window would overflow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fluidcc.contract.signals import Progress, Signals, Telemetry
from fluidcc.dde.history import History, place
from fluidcc.dde.stepping import Clock, Read
from fluidcc.engines.fluid.queues import QueueNetwork
from fluidcc.engines.fluid.state import Lagged, Memory, State, rows_of

# The search for the byte whose ACK arrives goes forward by these numbers of records, each if it may. A longer silence
# is crossed in several steps of the integrator.
_STRIDES = (1024, 256, 64, 16, 8, 4, 2, 1, 1)
# Up to 2^14 records, without gaps: where pauses make silences of any length, and bytes must not be held up by them.
ALL_STRIDES = (*(1 << k for k in reversed(range(14))), 1)


def search(
    ends: Callable[..., list[Array]],
    filling: Callable[[Array], Array],
    target: Array,
    left: Array,
    begin: Array,
    strides: tuple[int, ...] = _STRIDES,
) -> Array:
    """Latest time up to ``left`` at which a function that never falls is at most ``target``; times in steps from n.

    Parameters
    ----------
    ends : callable
        The function at the two ends of records, from their numbers; at their start with ``start_only``.
    filling : callable
        Whether queues begin to fill somewhere inside records. What comes in the next then also came in a part of these,
        and nothing before: by a line over the whole record, bytes that many flows send at once would be acknowledged
        as if spread over the step, wrongly for as many steps as there are flows.
    target, left : Array, shape (queues, points)
    begin : Array
        Time not after the one sought, from which the search goes forward.
    strides : tuple of int
        By which it does.
    """
    record = jnp.minimum(jnp.floor(jnp.broadcast_to(begin, left.shape)), -1.0).astype(jnp.int32)
    by = jnp.array(strides, jnp.int32)

    def stepped(k: int, record: Array) -> Array:
        ahead = record + by[k]
        return jnp.where((ahead <= -1) & (ends(jnp.minimum(ahead, -1), start_only=True)[0] <= target), ahead, record)

    # A loop: unrolled, XLA would compute a step again wherever one after it reads it, 2^14 times for the first.
    record = lax.fori_loop(0, len(strides), stepped, record)
    first, last = ends(record)
    share = jnp.clip((target - first) / jnp.maximum(last - first, 1e-9), 0.0, 1.0)
    start, end = ends(jnp.minimum(record + 1, -1))
    bends = filling(record) & (end > start) & (record < -1)
    onward = jnp.maximum(1.0 - (start - target) / jnp.where(bends, end - start, 1.0), 0.0)
    return jnp.minimum(record + jnp.where(bends, onward, share), left)


@dataclasses.dataclass(frozen=True)
class WindowNetwork(QueueNetwork):
    """A `QueueNetwork` that tracks what telemetry and windows need (`fluidcc.contract.signals`)."""

    # -- what is remembered and read ---------------------------------------------------------------------

    @cached_property
    def _reads(self) -> tuple[Read, ...]:
        queues, flows = self._count
        sent = tuple(range(3 * queues, 3 * queues + flows))
        return Read(self._path_queues), Read(sent, slopes=True), Read(self._telemetry_rows, linear=True)

    @cached_property
    def _telemetry_rows(self) -> tuple[int, ...]:
        """Remembered signals of every view's every hop: queues, then output, then arrivals."""
        queues, _ = self._count
        return tuple(part * queues + queue for part in range(3) for queue in self._path_queues)

    def remembered(self, y: State) -> Array:
        """Return queues, their rates of sending and of arrivals, then bytes sent by the flows."""
        assert y.sent is not None
        assert y.traffic is not None
        return jnp.concatenate([y.queue, y.traffic, y.sent])

    def _lags(self, y: State, z: Memory, node: float) -> list[Array]:
        """Compute the base's lags, and telemetry's: stamped at departure, so a packet waits in later queues only."""
        marks, own = (jnp.minimum(lag, self.limit) for lag in super()._lags(y, z, node)[:2])
        wait = self._wait(z, node)
        left = marks - jnp.minimum(wait, marks)
        if all(len(path) == 1 for path in self.network.paths):
            left = jnp.minimum(self.network.marking_lag, self.limit)  # constant
        parts = len(self._telemetry_rows) // len(self._path_queues)
        telemetry = left if left.shape[0] == 1 else jnp.concatenate([left] * parts)
        return [marks, own, telemetry]

    def _wait(self, z: Memory, node: float) -> Array:
        assert z.wait is not None
        assert z.wait_growth is not None
        return jnp.maximum(z.wait + node * z.wait_growth, 0.0)

    def look_back(self, history: History, n: Array, dt: Array, y: State, z: Memory) -> Memory:
        """Compute what arrives in the step, what is acknowledged by its end, and the rates that windows then allow."""
        assert y.sent is not None
        z = self._arrive(history, n, dt, self._wait_longer(history, n, dt, z))
        rows = tuple(3 * self.network.queues + flow for flow in range(len(self.network.flows)))
        acked = history.read(n, place(self.lags(y, z, 1.0)[1], dt, 1.0, False), rows)
        assert z.acked is not None
        # What the step acknowledges is sent again in it.
        pace = jnp.clip((self._windows(y) + acked - y.sent) / dt, 0.0, self._offered(y, z, dt))
        return z._replace(pace=pace, acked=acked, newly=jnp.maximum(acked - z.acked, 0.0))

    def _wait_longer(self, history: History, n: Array, dt: Array, z: Memory) -> Memory:
        """Compute the waits in each queue of the bytes whose ACKs arrive when step n ends.

        A byte that arrived at a queue at s left at s + q(s)/C. For the byte that left at a given time, s is found by
        searching forward from that of the last step: while no flow sends, the departure stays and s leaps.
        """
        net = self.network
        now = self._wait(z, 1.0)  # the last step's growth led here
        later = {view: jnp.zeros((1, self.points), now.dtype) for view in range(len(net.paths))}
        found: dict[int, Array] = {}
        for back in range(1, 1 + max(map(len, net.paths))):
            views = [v for v, path in enumerate(net.paths) if len(path) >= back]
            hops = tuple(self._first_hop[v] + len(net.paths[v]) - back for v in views)
            queues = tuple(net.paths[v][-back] for v in views)
            lag = rows_of(net.marking_lag, hops)
            onward = jnp.concatenate([later[v] for v in views])
            left = 1.0 - jnp.minimum(lag + onward, self.limit) / dt  # in steps from n
            earlier = jnp.stack(
                [
                    jnp.sum(now[h : self._first_hop[v] + len(net.paths[v])], axis=0)
                    for h, v in zip(hops, views, strict=True)
                ]
            )
            begin = -jnp.minimum(lag + earlier, self.limit) / dt
            wait = dt * (left - self._arrived(history, n, dt, queues, left, begin))
            for i, (view, hop) in enumerate(zip(views, hops, strict=True)):
                found[hop] = wait[i : i + 1]
                later[view] = later[view] + wait[i : i + 1]
        wait = jnp.concatenate([found[hop] for hop in range(len(found))])
        return z._replace(wait=now, wait_growth=wait - now)

    def _arrived(
        self, history: History, n: Array, dt: Array, queues: tuple[int, ...], left: Array, begin: Array
    ) -> Array:
        """Find when the bytes arrived that left queues at ``left``; in steps from n, (queues, points), as `search`."""
        per_step = rows_of(self.network.capacity, queues) * dt

        def departures(record: Array, start_only: bool = False) -> list[Array]:
            lengths = history.at(n, record, queues, start_only)
            return [record + end + length / per_step for end, length in enumerate(lengths)]

        return search(departures, self._filling(history, n, queues), left, left, begin)

    @staticmethod
    def _filling(history: History, n: Array, queues: tuple[int, ...]) -> Callable[[Array], Array]:
        """Build the check whether queues are empty when a record begins, and no more when it ends."""

        def filling(record: Array) -> Array:
            queue, after = history.at(n, record, queues)
            return (queue <= 0) & (after > 0)

        return filling

    def _arrive(self, history: History, n: Array, dt: Array, z: Memory) -> Memory:
        """Bytes that reach the queues by the end of step n, whose difference loses none."""
        net, (queues, _) = self.network, self._count
        if net.arrival_lag is None or z.reached is None:
            return z
        flows = tuple(flow for flow, _, _ in self._hops)
        one = net.arrival_lag.shape[0] == 1
        rows = tuple(3 * queues + flow for flow in (range(len(net.flows)) if one else flows))
        sent = history.read(n, place(net.arrival_lag, dt, 1.0, False), rows)
        hops = rows_of(net.multiplicity, flows) * (rows_of(sent, flows) if one else sent)
        reached = self._at_queues(hops)
        return z._replace(reached=reached, arriving=(reached - z.reached) / dt)

    def _arrivals(self, clock: Clock, sending: Array, z: Memory, feedback: Lagged) -> Array:
        """Rate of arrivals (queues, points) in the step under way."""
        return super()._arrivals(clock, sending, z, feedback) if z.arriving is None else z.arriving

    def feedback(self, lagged: tuple[Array, ...]) -> Lagged:
        """Compute marks and telemetry along each path, and the schemes' feedback from them."""
        net = self.network
        queues, own, telemetry, *before = lagged
        rates = own[len(own) // 2 :]
        marking = self._marking(self._marked_by(queues, telemetry))
        observed = []
        for group, fluid in zip(net.groups, self._fluid, strict=True):
            views = tuple(net.flows[i][0] for i in group.flows)
            signals = Signals(
                rows_of(marking, views),
                rows_of(rates, group.flows),
                rows_of(net.packet, group.flows),
                self._telemetry(telemetry, views),
                self._earlier.waits(group, queues, before[0] if before else None),
                line_rate=group.line_rate,
            )
            observed.append(fluid.feedback(group.parameters, signals))
        return Lagged(tuple(observed), None, None)

    def _marked_by(self, queues: Array, telemetry: Array) -> Array:
        """Queues (view hops, points) that decide on marks: as packets join them, or as they leave."""
        net = self.network
        if not any(net.departure):
            return queues
        parts = len(self._telemetry_rows) // len(self._path_queues)
        left = jnp.split(telemetry, parts)[0 if len(net.priorities) == 1 else 3]
        leaving = np.array([net.departure[queue] for queue in self._path_queues])
        return jnp.where(leaving[:, None], left, queues)

    def _telemetry(self, observed: Array, views: tuple[int, ...]) -> Telemetry:
        views = views[:1] if len(set(views)) == 1 else views
        most = max(len(self.network.paths[v]) for v in views)
        hops = np.array(
            [[self._first_hop[v] + min(k, len(self.network.paths[v]) - 1) for v in views] for k in range(most)]
        )
        parts = len(self._telemetry_rows) // len(self._path_queues)
        queue, output, arriving, *own = (part[hops] for part in jnp.split(observed, parts))
        capacity = rows_of(self.network.capacity, self._path_queues)
        capacity = capacity[None] if capacity.shape[0] == 1 else capacity[hops]
        class_queue, class_output = own or (queue, output)
        return Telemetry(queue, output, arriving, capacity, class_queue, class_output, self._share(views))

    def _share(self, views: tuple[int, ...]) -> Array:
        """Return the share of a link that the views' class is guaranteed, (views, points) or less."""
        return jnp.ones((1, 1))

    def _own_hops(self, flows: tuple[int, ...]) -> Array:
        lengths = np.array([len(self.network.flows[i][1]) for i in flows])
        return jnp.asarray((np.arange(lengths.max())[:, None] < lengths)[..., None], float)

    # -- how it moves --------------------------------------------------------------------------------------

    def start(self, dtype: Any) -> tuple[State, Memory]:
        """State at t = 0: nothing sent, flows at their pacing rates."""
        y, z = super().start(dtype)
        queues, flows = self._count
        nothing = jnp.zeros((flows, self.points), dtype)
        y = y._replace(sent=nothing, traffic=jnp.zeros((2 * queues, self.points), dtype), arrived=None)
        z = z._replace(pace=jnp.broadcast_to(self.rates(y), nothing.shape), acked=nothing, newly=nothing, due=None)
        if self.network.arrival_lag is None:
            return y, z
        return y, z._replace(reached=jnp.zeros_like(y.queue), arriving=jnp.zeros_like(y.queue))

    def pace(self, y: State, z: Memory) -> Array:
        """Rate (flows, points) of the step under way [bytes/s]."""
        assert z.pace is not None
        return z.pace

    def derivative(self, clock: Clock, y: State, z: Memory, feedback: Lagged) -> State:
        """Compute the derivative as the base does; traffic changes from step to step only."""
        assert y.traffic is not None
        return super().derivative(clock, y, z, feedback)._replace(traffic=jnp.zeros_like(y.traffic))

    def jump(self, clock: Clock, y: State, z: Memory, feedback: Lagged) -> tuple[State, Memory]:
        """Jump as the base does, and set the queues' traffic."""
        y, z = super().jump(clock, y, z, feedback)
        arriving = self._arrivals(clock, self.sending(clock, y, z), z, feedback)
        return y._replace(traffic=jnp.concatenate([self.output(y, z, arriving), arriving])), z

    def output(self, y: State, z: Memory, arriving: Array) -> Array:
        """Rate (queues, points) at which queues send [bytes/s]."""
        capacity = self.network.capacity
        return jnp.where(y.queue > 0, capacity, jnp.minimum(arriving, capacity))

    def _windows(self, y: State) -> Array:
        """Bytes (flows, points) on the wire that each flow may have in flight; infinite without a window."""
        net = self.network
        limits = []
        for group, fluid, state in zip(net.groups, self._fluid, y.schemes, strict=True):
            shape = (len(group.flows), self.points)
            window = jnp.inf if fluid.window is None else fluid.window(group.parameters, state)
            limits.append(jnp.broadcast_to(window * self._wire_per_window(group.flows), shape))
        return self._in_order(limits)

    def _offered(self, y: State, z: Memory, dt: Array) -> Array:
        """Rate (flows, points) of the step ahead that schemes wish for [bytes/s]."""
        wishes = []
        for group, fluid, state in zip(self.network.groups, self._fluid, y.schemes, strict=True):
            less = fluid.sending
            wishes.append(fluid.rate(state) if less is None else less(group.parameters, state, dt))
        return self._in_order(wishes) if z.stretch is None else self._in_order(wishes) * z.stretch

    def _wire_per_window(self, flows: tuple[int, ...]) -> Array:
        return rows_of(self.network.packet, flows) / rows_of(self.network.window_packet, flows)

    def _jumped(self, y: State, z: Memory, feedback: Lagged, dt: Array | float = 0.0) -> tuple[Any, ...]:
        net = self.network
        assert y.sent is not None
        assert z.acked is not None
        assert z.newly is not None
        states = []
        rtt = self._round_trips(z)
        for group, fluid, state, observed in zip(net.groups, self._fluid, y.schemes, feedback.schemes, strict=True):
            if fluid.jump is None:
                states.append(fluid.project(group.parameters, state, group.line_rate))
                continue
            progress = Progress(
                sent=rows_of(y.sent, group.flows),
                acked=rows_of(z.acked, group.flows),
                newly=rows_of(z.newly, group.flows),
                packet=rows_of(net.window_packet, group.flows),
                wire_packet=rows_of(net.packet, group.flows),
                line_rate=group.line_rate,
                own=self._own_hops(group.flows),
                rtt=rows_of(rtt, group.flows),
                dt=dt,
            )
            states.append(fluid.jump(group.parameters, state, progress, observed))
        return tuple(states)

    def _round_trips(self, z: Memory) -> Array:
        """Round trips (flows, points) [s] that ACKs measure at a step's end: waits count even where no lag has them."""
        net, wait = self.network, self._wait(z, 1.0)
        firsts = zip(self._first_hop, net.paths, strict=True)
        views = jnp.stack([jnp.sum(wait[first : first + len(path)], axis=0) for first, path in firsts])
        return net.own_lag + rows_of(views, tuple(view for view, _ in net.flows))
