"""A scheme's own fluid side (`fluidcc.contract.protocol.FluidSide`) on slots: one state for each transfer under way.

The side is used as it is. A transfer that starts sets its slot's state to the scheme's first; each step then is
Euler's, with the side's limits or jumps behind it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fluidcc.compiling.functions import per_shape
from fluidcc.compiling.settings import our_settings
from fluidcc.contract.bind import binder
from fluidcc.contract.registry import fluid_of, scheme_of
from fluidcc.contract.signals import Progress, Signals, Telemetry
from fluidcc.engines.flow_level.feedback import FIXED, signals
from fluidcc.engines.flow_level.hosts import answering
from fluidcc.engines.flow_level.memory import FLOW, RUNNING, STATUS, USED, records
from fluidcc.engines.flow_level.step import one_step
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario

_KNOWN = frozenset({"telemetry", "inflight"})  # of what schemes may ask for
_WORDS = {
    "delay": "delays of single packets",
    "undetermined": "marks of ports that flow control holds back (UE)",
    "sending": "flows that at times send less than their rate",
}


@per_shape(donate=(1,))
def step(table: Any, state: Any, columns: Any, dt: Any, payload: Any, *, scheme: str) -> tuple[Any, Any]:
    """Return the next state of all slots, and their rates and windows."""
    from fluidcc.contract import registry

    side = registry.scheme(scheme).fluid
    assert side is not None
    hops = (columns.shape[0] - FIXED) // 5
    fixed = [row[:, None] for row in columns[:FIXED]]
    marking, rate, fresh, _, sent, acked, newly, rtt, line, initial, packet = fixed[:11]
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


class Fluid:
    """Senders of a run on their scheme's fluid side.

    Raises
    ------
    InputError
        If it asks for what the engine does not follow, or a switch is set that it does not model.
    """

    def __init__(self, scenario: Scenario, first: np.ndarray, slots: int, hops: int) -> None:
        flows = scenario.flows
        scheme = flows[0].scheme
        side = fluid_of(scheme)
        alien = sorted(side.NEEDS - _KNOWN) + (["sending"] if side.sending is not None else [])
        if alien:
            lacking = _WORDS.get(alien[0], alien[0])
            raise InputError(
                f"scheme {scheme_of(scheme).name}: the flow-level engine does not follow {lacking}, which it needs; "
                "write model='ideal', or engine='packet'"
            )
        for name, modelled in side.ONLY.items():
            if getattr(scheme, name) != modelled:
                raise InputError(
                    f"flow 0 {name}: the fluid model of {scheme.name} has only {name}={modelled}; write that, "
                    "model='ideal', or engine='packet'"
                )
        bind = binder(scenario)
        self.name, self.side, self.hops = scheme.name, side, hops
        self.table = jax.tree.map(lambda *values: np.array(values, float), *[bind(flows[i]) for i in first])
        self.pause = float(scheme.feedback_pause)
        wire = scenario.wire_packet_of(flows[0])
        self.payload = float(scenario.packet_size if scenario.window_unit == "payload" else wire)
        self.columns = np.zeros((FIXED + 5 * hops, slots))
        self.flows = records(FLOW, slots)
        self.needs = np.ones(3, np.int8)
        kinds = jax.tree.map(lambda leaf: np.broadcast_to(leaf[:1, None], (slots, 1)), self.table)
        with our_settings():  # each slot begins afresh: of these, shapes alone matter
            self.state = jax.tree.map(jnp.array, side.start(kinds, jnp.ones((slots, 1)), (slots, 1), hops))

    def prepare(self, m: Any, dt: float, given: Any) -> float:
        """Compile, and return the seconds that it took."""
        with our_settings():
            self.arguments = jnp.asarray(dt), jnp.asarray(self.payload)
            self.on_device = jax.tree.map(jnp.asarray, self.table)
            now = self.on_device, self.state, jnp.asarray(self.columns), *self.arguments
            self.call, seconds = step.ready(*now, scheme=self.name)
        one_step(m, dt, 0, given)
        signals(m, self.flows, self.needs, dt, self.pause, self.columns)
        return seconds

    def go(self, m: Any, dt: float, steps: int, given: Any) -> int:
        """Take ``steps`` steps, or fewer."""
        with our_settings():
            for k in range(steps):
                one_step(m, dt, 1, given)
                if m.now[STATUS] != RUNNING:
                    return k
                signals(m, self.flows, self.needs, dt, self.pause, self.columns)
                self.state, told = self.call(self.on_device, self.state, jnp.asarray(self.columns), *self.arguments)
                m.slots.pace[:], m.slots.window[:] = np.asarray(told)
                if m.now[USED] == 0 and not answering(m):
                    return k + 1
        return steps

    def grow(self) -> None:
        """Double the number of slots."""
        self.columns = np.concatenate([self.columns, np.zeros_like(self.columns)], axis=1)
        self.flows = records(FLOW, 2 * len(self.flows))
        with our_settings():
            self.state = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf], axis=leaf.ndim - 2), self.state)
