"""The fluid network with flow control: bytes of each flow at each hop, first come first served, and pauses.

All of it goes by counts that never fall. A(t) bytes of a flow have come to a queue, and of all flows A_q(t); as many
leave it in a step as its port sends. The last of these came at s, A_q(s) = D_q(t), so that of the flow D(t) = A(s) have
left: no byte is lost or made, however long it was held. Marks are counted the same way, and pauses, whose total time is
read a link's delay later, so that they begin and end inside steps.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.contract.signals import Signals
from fluidcc.dde.history import History, place
from fluidcc.dde.stepping import Clock, Read
from fluidcc.engines.fluid.marking import TernaryState, after_pause, red, ternary
from fluidcc.engines.fluid.network import Ingress
from fluidcc.engines.fluid.state import Counts, Lagged, Memory, Pauses, State, rows_of
from fluidcc.engines.fluid.windows import ALL_STRIDES, WindowNetwork, search

_BYTE = 1e-9  # a count that is rounding


def _never(record: Array) -> Array:
    """Return False: counts are joined by lines in all records (`search`), since departures are found by bytes."""
    return jnp.zeros(record.shape, bool)


@dataclasses.dataclass(frozen=True)
class LosslessNetwork(WindowNetwork):
    """A `WindowNetwork` with flow control (`Ingress`), reported to the schemes as `Signals.undetermined`."""

    @property
    def _gate(self) -> Ingress:
        assert self.network.ingress is not None
        return self.network.ingress

    @cached_property
    def _by_queue(self) -> Array:
        """Sums over hops to queues, (queues, hops)."""
        at = np.array([queue for _, _, queue in self._hops])
        return jnp.asarray(np.arange(self._count[0])[:, None] == at, float)

    @cached_property
    def _by_ingress(self) -> Array:
        return jnp.asarray(np.arange(self._gate.count)[:, None] == np.array(self._gate.hops), float)

    @cached_property
    def _at(self) -> Array:
        return jnp.asarray([queue for _, _, queue in self._hops])

    # -- what is remembered ----------------------------------------------------------------------------------

    @property
    def reads(self) -> tuple[Read, ...]:
        """None: `look_back` reads what a step needs."""
        return ()

    def lags(self, y: State, z: Memory, node: float) -> tuple[Array, ...]:
        """Return no lags."""
        return ()

    def feedback(self, lagged: tuple[Array, ...]) -> Lagged:
        """Return no feedback: what flows observe is the same throughout a step (`_heard`)."""
        return Lagged((), None, None)

    def remembered(self, y: State) -> Array:
        """Return counts of each hop, came and left; sums of those that came to queues; times of pauses; bytes sent."""
        assert y.counts is not None
        assert y.sent is not None
        came, left, paused = y.counts
        return jnp.concatenate([came, left, self._by_queue @ self._bytes(came), paused, y.sent])

    def _bytes(self, counts: Array) -> Array:
        return counts[: len(self._hops)]

    @cached_property
    def _rows(self) -> tuple[int, int, int]:
        """First rows of the sums, of pauses, and of bytes sent."""
        sums, pauses = 6 * len(self._hops), 6 * len(self._hops) + self._count[0]
        return sums, pauses, pauses + self._gate.count

    def _read(self, history: History, n: Array, dt: Array, lag: Array, rows: tuple[int, ...]) -> Array:
        """Read counts a lag before the end of step n."""
        return history.read(n, place(jnp.minimum(lag, self.limit), dt, 1.0, False), rows, linear=True)

    # -- a step ------------------------------------------------------------------------------------------------

    def look_back(self, history: History, n: Array, dt: Array, y: State, z: Memory) -> Memory:
        """Compute all counts at the end of step n from those a delay ago."""
        net, gate, now, old = self.network, self._gate, y.counts, z.pauses
        assert now is not None
        assert old is not None
        assert y.sent is not None
        sums, pauses, _ = self._rows
        told = self._read(history, n, dt, gate.delay, tuple(range(pauses, pauses + gate.count)))
        paused = jnp.clip(told - old.told, 0.0, dt)
        stops = jnp.concatenate([paused, jnp.zeros((1, self.points))])[jnp.asarray(gate.ports)]  # -1: never
        came = self._came(history, n, dt, now)
        before, after = self._by_queue @ self._bytes(now.came), self._by_queue @ self._bytes(came)
        gone = self._by_queue @ self._bytes(now.left)
        target = jnp.minimum(after, gone + net.capacity * (dt - stops))

        ends = partial(history.at, n, rows=tuple(range(sums, sums + self._count[0])))
        furthest = -self.limit / dt
        since = jnp.maximum(old.at - 1.0, furthest)
        at = search(ends, _never, target, jnp.zeros_like(target), since, ALL_STRIDES)
        through = self._through(history, n, at, (before, target, after), now.came, came)
        through = jnp.clip(through, old.through, came)
        queue = after - self._by_queue @ self._bytes(through)
        left, port = self._marked(after_pause(old.port, stops, queue, dt), now, through - old.through, queue, dt)
        counts, stopping = self._flow_control(now, Counts(came, left, now.paused), old.stopping, dt)
        acks, shares = self._acknowledged(history, n, dt, old)
        asked, rate = self._asked(history, n, acks, jnp.maximum(old.asked - 1.0, furthest))
        round_trip = (1.0 - asked) * dt
        waits = jnp.concatenate([jnp.where(queue > 0, 1.0 - at, 0.0) * dt, round_trip])
        held = paused[jnp.asarray(gate.hosts)] / dt
        flows = len(net.flows)
        acked = acks[:flows]
        pace = jnp.clip((self._windows(y) + acked - y.sent) / dt, 0.0, self._offered(y, z, dt)) * (1.0 - held)
        assert z.acked is not None
        return z._replace(
            pace=pace,
            acked=acked,
            newly=jnp.maximum(acked - z.acked, 0.0),
            arriving=(after - before) / dt,
            service=(target - gone) / dt,
            pauses=Pauses(
                counts, through, at, stopping, told, port, acks, shares, asked, round_trip, rate / dt,
                jnp.maximum(old.longest, waits.max(axis=0)),
            ),
        )  # fmt: skip

    def _came(self, history: History, n: Array, dt: Array, now: Counts) -> Array:
        """Count what has come to each hop by the step's end: what left the previous hop, or the sender, a lag ago."""
        gate, hops = self._gate, len(self._hops)
        sent = self._rows[2]
        rows = [sent + flow if k == 0 else 3 * hops + h - 1 for h, (flow, k, _) in enumerate(self._hops)]
        # A sender's bytes carry no marks.
        marks = [3 * hops + part * hops + max(h - 1, 0) for part in (1, 2) for h in range(hops)]
        own = jnp.asarray(gate.own)[:, None]
        scale = jnp.where(own, rows_of(self.network.multiplicity, self._hop_flows), 1.0)
        carried = jnp.where(own, 0.0, 1.0) * jnp.ones_like(scale)
        read = self._read(history, n, dt, jnp.concatenate([gate.hop_lag] * 3), (*rows, *marks))
        return jnp.maximum(read * jnp.concatenate([scale, carried, carried]), now.came)

    def _through(
        self, history: History, n: Array, at: Array, sums: tuple[Array, Array, Array], now: Array, came: Array
    ) -> Array:
        """Compute how much of each hop's counts had come when the queue's last byte to leave had."""
        before, target, after = sums
        rows = tuple(range(3 * len(self._hops)))
        record = jnp.minimum(jnp.floor(at), -1.0)
        each = jnp.concatenate([self._at] * 3)
        start, end = history.at(n, record.astype(jnp.int32)[each], rows)
        past = start + (at - record)[each] * (end - start)
        share = jnp.clip((target - before) / jnp.maximum(after - before, _BYTE), 0.0, 1.0)  # of the step's own
        return jnp.where((target > before)[each], now + share[each] * (came - now), past)

    def _marked(
        self, port: TernaryState, now: Counts, leaving: Array, queue: Array, dt: Array
    ) -> tuple[Array, TernaryState]:
        """Count what has left each hop by the end of the step, and with which marks: CE goes before UE before none."""
        net, gate = self.network, self._gate
        moved, ce, ue = jnp.split(leaving, 3)
        over = red(queue, net.kmin, net.kmax, net.pmax)
        leaves = self._by_queue @ moved > 0
        packet = jnp.max(net.packet, axis=0)
        congested, undetermined, port = ternary(port, over, queue, leaves, gate.max_on, packet, dt)
        congested, undetermined = congested[self._at], undetermined[self._at]
        with_ce = ce + congested * (moved - ce)
        with_ue = (1.0 - congested) * ue
        with_ue = with_ue + undetermined * (moved - with_ce - with_ue)
        return now.left + jnp.concatenate([moved, with_ce, with_ue]), port

    def _flow_control(self, now: Counts, new: Counts, stopping: Array, dt: Array) -> tuple[Counts, Array]:
        """Stop or resume the senders of ingresses that cross a threshold in the step, from there on."""
        gate = self._gate
        before, after = (
            self._by_ingress @ ((self._bytes(c.came) - self._bytes(c.left)) * gate.share) for c in (now, new)
        )
        above = (stopping == 0) & (after > gate.xoff)
        below = (stopping > 0) & (after <= gate.xon)
        change = jnp.maximum(jnp.abs(after - before), _BYTE)
        beyond = jnp.clip((after - gate.xoff) / change, 0.0, 1.0)
        until = jnp.clip((before - gate.xon) / change, 0.0, 1.0)
        paused = now.paused + dt * jnp.where(above, beyond, jnp.where(below, until, stopping))
        return new._replace(paused=paused), jnp.where(above, 1.0, jnp.where(below, 0.0, stopping))

    def _acknowledged(self, history: History, n: Array, dt: Array, old: Pauses) -> tuple[Array, Array]:
        """Bytes acknowledged by the end of the step, of each flow of a class, and the shares of marks in the step."""
        hops, flows = len(self._hops), len(self.network.flows)
        last = [h for h, (flow, k, _) in enumerate(self._hops) if k == len(self.network.flows[flow][1]) - 1]
        rows = tuple((3 + part) * hops + h for part in range(3) for h in last)
        left = self._read(history, n, dt, jnp.concatenate([self._gate.ack_lag] * 3), rows)
        counts = jnp.broadcast_to(self.network.multiplicity, (flows, self.points))
        acks = jnp.maximum(left / jnp.concatenate([counts] * 3), old.acks)
        newly, ce, ue = jnp.split(acks - old.acks, 3)
        some = jnp.concatenate([newly] * 2)
        shares = jnp.clip(jnp.concatenate([ce, ue]) / jnp.maximum(some, _BYTE), 0.0, 1.0)
        return acks, jnp.where(some > _BYTE, shares, 0.0)

    def _asked(self, history: History, n: Array, acks: Array, begin: Array) -> tuple[Array, Array]:
        """Find when the byte was sent that is acknowledged at the step's end, and at which rate [bytes per step]."""
        flows = len(self.network.flows)
        rows = tuple(range(self._rows[2], self._rows[2] + flows))

        ends = partial(history.at, n, rows=rows)
        asked = search(ends, _never, acks[:flows], jnp.zeros_like(begin), begin, ALL_STRIDES)
        start, end = ends(jnp.minimum(jnp.floor(asked), -1.0).astype(jnp.int32))
        return asked, end - start

    # -- how it moves ------------------------------------------------------------------------------------------

    def start(self, dtype: Any) -> tuple[State, Memory]:
        """Start as the base does; nothing has come, and nothing is paused."""
        y, z = super().start(dtype)
        flows, queues, hops = len(self.network.flows), y.queue, len(self._hops)

        def rows(count: int) -> Array:
            return jnp.zeros((count, self.points), dtype)

        counts = Counts(rows(3 * hops), rows(3 * hops), rows(self._gate.count))
        port = TernaryState(queues, queues, queues + jnp.inf, queues, queues, queues, queues)
        pauses = Pauses(
            counts, rows(3 * hops), queues - 1.0, rows(self._gate.count), rows(self._gate.count), port,
            rows(3 * flows), rows(2 * flows), rows(flows) - 1.0, rows(flows), rows(flows), rows(1)[0],
        )  # fmt: skip
        z = z._replace(pauses=pauses, wait=None, wait_growth=None, arriving=queues, service=queues, reached=None)
        return y._replace(counts=counts), z

    def _observed(self, z: Memory) -> Lagged:
        """Compute the schemes' feedback from the step's ACKs."""
        net, flows = self.network, len(self.network.flows)
        assert z.pauses is not None
        ce, ue = z.pauses.shares[:flows], z.pauses.shares[flows:]
        observed = []
        for group, fluid in zip(net.groups, self._fluid, strict=True):
            rows = tuple(group.flows)
            rate = rows_of(z.pauses.pace, rows)
            packet = rows_of(net.packet, rows)
            signals = Signals(rows_of(ce, rows), rate, packet, None, None, rows_of(ue, rows), group.line_rate)
            observed.append(fluid.feedback(group.parameters, signals))
        return Lagged(tuple(observed), None, None)

    def derivative(self, clock: Clock, y: State, z: Memory, feedback: Lagged) -> State:
        """Compute the derivative as the base does; counts change from step to step only."""
        moved = super().derivative(clock, y, z, self._observed(z))
        assert y.counts is not None
        return moved._replace(counts=Counts(*(jnp.zeros_like(count) for count in y.counts)))

    def jump(self, clock: Clock, y: State, z: Memory, feedback: Lagged) -> tuple[State, Memory]:
        """Jump as the base does, and set the counts; queues are what came and has not left."""
        assert z.pauses is not None
        counts = z.pauses.counts
        queue = jnp.maximum(self._by_queue @ (self._bytes(counts.came) - self._bytes(counts.left)), 0.0)
        return super().jump(clock, y._replace(queue=queue, counts=counts), z, self._observed(z))

    def _drained(self, clock: Clock, z: Memory, queue: Array) -> Memory:
        """Compute the whole wait of last bytes, kept at their first hops [s]; NaN until they are acknowledged."""
        net = self.network
        assert z.acked is not None
        assert z.newly is not None
        assert z.finish is not None
        assert z.drain is not None
        late = jnp.clip((z.acked - net.size) / jnp.maximum(z.newly, _BYTE), 0.0, 1.0) * clock.dt
        waited = jnp.maximum(clock.time - late - z.finish - net.own_lag, 0.0)
        ended = (z.acked >= net.size) & (z.finish < jnp.inf)
        flow = jnp.asarray(self._hop_flows)
        first = jnp.asarray(self._gate.own)[:, None]
        drain = jnp.where(jnp.isnan(z.drain) & ended[flow], jnp.where(first, waited[flow], 0.0), z.drain)
        return z._replace(drain=drain)

    def service(self, z: Memory) -> Array:
        """Rate (queues, points) of the step under way [bytes/s]."""
        assert z.service is not None
        return z.service

    def unused(self, clock: Clock, z: Memory, short: Array) -> Array:
        """Compute the bytes that links could have sent, paused or not, and did not."""
        return (self.network.link_capacity - self.service(z)) * clock.dt

    def _round_trips(self, z: Memory) -> Array:
        assert z.pauses is not None
        return z.pauses.round_trip

    def shown(self, y: State, z: Memory) -> dict[str, Array]:
        """Time for which ports were paused so far, (links, points) [s]."""
        assert z.pauses is not None
        told = jnp.concatenate([z.pauses.told, jnp.zeros((1, self.points))])
        return {"paused": told[jnp.asarray(self._gate.ports)]}
