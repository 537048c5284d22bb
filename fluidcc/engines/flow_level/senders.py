"""Compiled senders: a record and a state for each slot, and what a step's end makes of them.

CNPs, where they are a scheme's feedback, are random: a transfer's packets of a step are marked with the probability
of their path, and its receiver sends a CNP for the first mark, and one more for all that come in an interval.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from fluidcc.contract import red as rules
from fluidcc.contract.bind import binder
from fluidcc.contract.law import in_world
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import entry, kernel
from fluidcc.engines.flow_level import dispatch, layout
from fluidcc.engines.flow_level.dispatch import CompiledLaw
from fluidcc.engines.flow_level.layout import (
    FLOW,
    FOUND,
    INPUT,
    OUTPUT,
    QUEUE,
    RUNNING,
    SENDING,
    STATUS,
    STEP,
    STOOD,
    USED,
    records,
)
from fluidcc.engines.flow_level.step import ack_lag, advance, answering
from fluidcc.engines.hybrid.random_marks import exponential, hazard
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario

MARKS, DELAY, TELEMETRY = range(3)  # what a scheme looks at
red = in_world(rules.red, scalars, kernel)
NEVER = np.inf


@kernel
def look(m: Any, s: Any, flow: Any, needs: Any, dt: Any, pause: Any) -> None:
    """Write a sender's feedback into its transfer's record; ``pause`` is how long that waits at the receiver [s]."""
    slots, net, ports = m.slots, m.net, m.ports
    n, f, records = m.now[STEP] - 1, slots.flow[s], len(ports.seen)
    last = net.hops[f] - 1
    flow.sent, flow.acked, flow.newly = slots.sent[s], slots.acked[s], slots.newly[s]
    flow.gone = flow.sent
    if not (needs[MARKS] or needs[DELAY] or needs[TELEMETRY]):
        return
    lag = ack_lag(net, ports, f, dt) + 1.0 + pause / dt
    left = n - int(min(lag, records - 1.0 - last))
    missed, rtt, stood = 1.0, net.rtt[f], 0.0
    for h in range(last):
        p = net.there[f, h + 1]
        at = max(left - (last - 1 - h), 0)
        queue, found = ports.seen[at % records, p, QUEUE], ports.seen[at % records, p, FOUND]
        stood += ports.seen[at % records, p, STOOD]
        if needs[MARKS]:
            kmin, kmax, pmax = net.marking[p]
            missed *= 1.0 - red(found if net.joining[p] else queue, kmin, kmax, pmax)
        if needs[DELAY]:
            rtt += found / net.rate[p]
            behind = net.back[f, h + 1]
            rtt += ports.backlog[behind] / net.rate[behind]
        if needs[TELEMETRY]:
            flow.queue[h], flow.output[h] = queue, ports.seen[at % records, p, OUTPUT]
            flow.arriving[h], flow.capacity[h] = ports.seen[at % records, p, INPUT], net.rate[p]
    flow.rtt = rtt
    # Ports serve in proportion: what has come through this soon has stood behind those before it, and is not yet here.
    flow.marking = 0.0 if left - last - stood < slots.since[s] else 1.0 - missed


class Senders(NamedTuple):
    """Senders of a run, as compiled rules take them."""

    core: Any  # (1,) the time [s]
    flows: Any  # FLOW, (slots,)
    senders: Any  # tables of states
    raw: Any  # (slots, words) of the states that are used
    first: Any  # (kinds,) FLOW as it starts
    raw_first: Any  # (kinds, words)
    needs: Any  # (3,) of what the scheme looks at: `MARKS`, ...
    by_cnp: Any  # (1,) whether it gets feedback by CNPs
    seed: Any  # (1,)
    outside: Any  # bytes: the states, if the scheme is from outside,
    calls: Any  # (1, rules) and the addresses of its rules


@entry
def run(m: Any, law: Any, dt: Any, steps: Any, given: Any) -> Any:
    """Take ``steps`` steps, or fewer if no slot is free or nothing happens; return how many were taken."""
    wire, tail, delay, waits, begins, ends, heap, load = given
    for k in range(steps):
        advance(m, dt, wire, tail, delay, waits, begins, ends, heap, load)
        if m.now[STATUS] != RUNNING:
            return k
        tell_all(m, law, dt)
        if m.now[USED] == 0 and not answering(m):
            return k + 1
    return steps


@kernel
def tell_all(m: Any, law: Any, dt: Any) -> None:
    """Notify senders of the step's end; each chooses its rate and window of the next."""
    slots = m.slots
    now = law.core[0] = m.now[STEP] * dt
    for i in range(m.now[USED]):
        s = m.used[i]
        if slots.doing[s] != SENDING:
            continue
        flow = law.flows[s]
        if slots.fresh[s]:
            slots.fresh[s] = 0
            kind = m.net.kind[slots.flow[s]]
            law.flows[s] = law.first[kind]
            for k in range(law.raw.shape[1]):
                law.raw[s, k] = law.raw_first[kind, k]
            flow.row, flow.number, flow.hops = s, slots.transfer[s], m.net.hops[slots.flow[s]] - 1
            if law.by_cnp[0]:
                flow.left = exponential(law.seed[0], flow.number, 0)
                flow.draws = 1
                dispatch.begin(law, s)
        look(m, s, flow, law.needs, dt, 0.0)
        if law.by_cnp[0]:
            _notice(law, flow, s, now)
        else:
            dispatch.on_step(law, s, dt)
        slots.pace[s] = flow.rate
        slots.window[s] = flow.window * (flow.packet / flow.counted)


@kernel
def _notice(law: Any, flow: Any, s: Any, now: Any) -> None:
    """Handle the CNPs that reach a sender in the step, its timer, and the bytes that it counts."""
    if flow.cnp_interval > 0.0 and flow.marking > 0.0:
        flow.left -= hazard(flow.marking) * flow.newly / flow.packet
        if flow.left <= 0.0:
            flow.pending = 1
            flow.left = exponential(law.seed[0], flow.number, flow.draws)
            flow.draws += 1
    if flow.pending and now >= flow.cnp_next:
        flow.pending = 0
        flow.cnp_next = now + flow.cnp_interval
        dispatch.on_cnp(law, s)
    while flow.timer <= now:
        dispatch.on_timer(law, s)
    while flow.sent >= flow.counter:
        dispatch.on_bytes(law, s)


def senders_of(scenario: Scenario, paths_first: np.ndarray, net: layout.Net, slots: int, seed: int) -> Senders:
    """Return senders of the scheme that all flows of a scenario run.

    Raises
    ------
    InputError
        If its side does not model a switch that is set.
    """
    scheme = scenario.flows[0].scheme
    side = dispatch.SCHEMES.side(scheme.name)
    for name, modelled in side.ONLY.items():
        if getattr(scheme, name) != modelled:
            raise InputError(
                f"flow 0 {name}: {scheme.name} of the flow-level engine has only {name}={modelled}; write that, "
                "model='ideal', or engine='packet'"
            )
    if "undetermined" in getattr(side, "NEEDS", ()) and scenario.pfc is not None and scenario.pfc.xoff is not None:
        raise InputError(
            f"scheme {scheme.name}: the flow-level engine does not follow marks of ports that flow control holds back "
            "(UE), which it needs; write pfc=None, model='ideal', or engine='packet'"
        )
    bind, by_cnp = binder(scenario), not isinstance(side, CompiledLaw)
    kinds = len(paths_first)
    first, state = records(FLOW, kinds), records(side.STATE, kinds)
    for k, i in enumerate(paths_first):
        flow, row = scenario.flows[i], first[k]
        row.scheme = dispatch.SCHEMES.numbers([scheme.name])[scheme.name]
        row.line_rate, row.initial_rate = flow.line_rate, flow.initial_rate
        row.rate, row.window = flow.initial_rate, NEVER
        row.packet = scenario.wire_packet_of(flow)
        row.counted = row.packet if scenario.window_unit == "wire" else scenario.packet_size
        row.timer = row.counter = NEVER
        side.init_state(bind(flow), row, state[k])
        if row.nic_cnp_interval > 0:
            raise InputError("nic_cnp_interval: receivers of the flow-level engine send on their own; write 0")
    needs = np.zeros(3, np.int8)
    needs[MARKS] = np.isfinite(net.marking[:, 0]).any() and (not by_cnp or first["cnp_interval"].any())
    if isinstance(side, CompiledLaw):
        needs[DELAY], needs[TELEMETRY] = "delay" in side.NEEDS, "telemetry" in side.NEEDS
    return _made(first, state, needs, by_cnp, seed, scheme.name, slots)


def _made(first: Any, state: Any, needs: Any, by_cnp: bool, seed: int, scheme: str, slots: int) -> Senders:
    tables, used, outside = dispatch.tables(scheme, slots)
    made = Senders(
        np.zeros(1), records(FLOW, slots), tables, _words(used), first, _words(state), needs,
        np.array([by_cnp]), np.array([seed]), outside, np.zeros((1, 1), np.int64),
    )  # fmt: skip
    return made._replace(calls=dispatch.SCHEMES.calls(dispatch.SCHEMES.from_outside([scheme]), made))


def grown(senders: Senders, scheme: str) -> Senders:
    """Return the senders with twice as many slots."""
    slots = len(senders.flows)
    tables, used, outside = dispatch.tables(scheme, 2 * slots)
    raw = _words(used)
    raw[:slots] = senders.raw
    flows = records(FLOW, 2 * slots)
    flows[:slots] = senders.flows
    return senders._replace(flows=flows, senders=tables, raw=raw, outside=outside)


def _words(table: Any) -> np.ndarray:
    """Return a view of aligned records' memory, row by row; writes to it change the records."""
    return np.asarray(table).view(np.int64).reshape(len(table), -1)


class Compiled:
    """Senders of a run: their compiled rules, and as many slots as there are transfers under way."""

    def __init__(self, scenario: Scenario, first: np.ndarray, net: layout.Net, slots: int, seed: int) -> None:
        self.scheme = scenario.flows[0].scheme.name
        self.all = senders_of(scenario, first, net, slots, seed)

    def prepare(self, m: Any, dt: float, given: Any) -> float:
        """Compile, and return the seconds that it took."""
        began = time.perf_counter()
        run(m, self.all, dt, 0, given)
        return time.perf_counter() - began

    def go(self, m: Any, dt: float, steps: int, given: Any) -> int:
        """Take ``steps`` steps, or fewer."""
        return run(m, self.all, dt, steps, given)

    def grow(self) -> None:
        """Double the number of slots."""
        self.all = grown(self.all, self.scheme)
