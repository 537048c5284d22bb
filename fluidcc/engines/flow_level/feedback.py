"""Feedback to senders at the end of a step: marks, round trips and telemetry of the packets whose ACKs come in it."""

from __future__ import annotations

from typing import Any

from fluidcc.contract import red as rules
from fluidcc.contract.law import in_world
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import kernel
from fluidcc.engines.flow_level.hosts import ack_lag
from fluidcc.engines.flow_level.memory import FOUND, INPUT, OUTPUT, QUEUE, STEP, STOOD

MARKS, DELAY, TELEMETRY = range(3)  # what a scheme looks at
red = in_world(rules.red, scalars, kernel)


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
