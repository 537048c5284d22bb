"""Feedback to senders at the end of a step: marks, round trips and telemetry of the packets whose ACKs come in it."""

from __future__ import annotations

from typing import Any

from fluidcc.contract import red as rules
from fluidcc.contract.law import in_world
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import entry, kernel
from fluidcc.engines.flow_level.hosts import ack_lag
from fluidcc.engines.flow_level.memory import SENDING, STEP, USED

MARKS, DELAY, TELEMETRY = range(3)  # what a scheme looks at
red = in_world(rules.red, scalars, kernel)
FIXED = 12  # rows of `signals` before those of the path's ports


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
        queue = ports.seen[at % records, p, 0]
        stood += queue / net.rate[p] / dt
        came = max(at - int(queue / net.rate[p] / dt), n - records + 1, 0)  # as it joined the queue
        if needs[MARKS]:
            kmin, kmax, pmax = net.marking[p]
            seen = ports.seen[came % records, p, 0] if net.joining[p] else queue
            missed *= 1.0 - red(seen, kmin, kmax, pmax)
        if needs[DELAY]:
            rtt += ports.seen[came % records, p, 0] / net.rate[p]
            behind = net.back[f, h + 1]
            rtt += ports.backlog[behind] / net.rate[behind]
        if needs[TELEMETRY]:
            flow.queue[h], flow.output[h] = queue, ports.seen[at % records, p, 1]
            flow.arriving[h], flow.capacity[h] = ports.seen[at % records, p, 2], net.rate[p]
    flow.rtt = rtt
    # Ports serve in proportion: what has come through this soon has stood behind those before it, and is not yet here.
    flow.marking = 0.0 if left - last - stood < slots.since[s] else 1.0 - missed


@entry
def signals(m: Any, flows: Any, needs: Any, dt: Any, pause: Any, columns: Any) -> None:
    """Write the signals of all slots as columns for `fluidcc.engines.flow_level.fluid_side`, paths at full length."""
    slots, net = m.slots, m.net
    n, records, hops = m.now[STEP] - 1, slots.sent_at.shape[1], (len(columns) - FIXED) // 5
    for i in range(m.now[USED]):
        s = m.used[i]
        f, flow = slots.flow[s], flows[s]
        last = net.hops[f] - 1
        look(m, s, flow, needs, dt, pause)
        for h in range(hops):
            k = min(h, last - 1)
            columns[FIXED + h, s], columns[FIXED + hops + h, s] = flow.queue[k], flow.output[k]
            columns[FIXED + 2 * hops + h, s], columns[FIXED + 3 * hops + h, s] = flow.arriving[k], flow.capacity[k]
            columns[FIXED + 4 * hops + h, s] = h < last
        lag = ack_lag(net, m.ports, f, dt) + 1.0 + pause / dt
        at = max(n - int(min(lag, records - 1.0 - last)) - last, 0)
        columns[0, s], columns[1, s] = flow.marking, slots.sent_at[s, at % records]
        columns[2, s], columns[3, s] = slots.fresh[s], slots.doing[s] == SENDING
        columns[4, s], columns[5, s], columns[6, s] = flow.sent, flow.acked, flow.newly
        columns[7, s], columns[8, s], columns[9, s] = flow.rtt, net.line_rate[f], net.initial_rate[f]
        columns[10, s], columns[11, s] = net.packet[f], net.kind[f]
        slots.fresh[s] = 0
