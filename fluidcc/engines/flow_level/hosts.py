"""Hosts in a step: they learn of ACKs, and put onto their NICs what pace and window allow."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import entry, kernel
from fluidcc.engines.flow_level.memory import ARRIVING, SENDING, STEP, USED

_LEAST = 1e-2  # share of a NIC that ACKs leave to data
_PASSES = 4  # of a NIC's sharing


@kernel
def acknowledge(m: Any, dt: Any) -> None:
    """Count the bytes that senders know to be acknowledged by the end of the step."""
    slots, net, ports, n = m.slots, m.net, m.ports, m.now[STEP]
    records = slots.delivered_at.shape[1]
    for i in range(m.now[USED]):
        s = m.used[i]
        f = slots.flow[s]
        lag = ack_lag(net, ports, f, dt)
        at = min(max(lag, 1.0), records - 2.0)
        whole = int(at)
        part = at - whole
        later = slots.delivered_at[s, (n + records - whole) % records]
        before = slots.delivered_at[s, (n + records - whole - 1) % records]
        if n - whole - 1 < slots.since[s] - 1:
            before = later = 0.0
        acked = max(slots.acked[s], (1.0 - part) * later + part * before)
        slots.newly[s] = acked - slots.acked[s]
        slots.acked[s] = acked


@kernel
def answering(m: Any) -> Any:
    """Check whether ACKs are on their way."""
    for k in range(len(m.net.used)):
        p = m.net.used[k]
        if m.ports.acks[p] + m.ports.waiting_acks[p] > 0.0:
            return True
    return False


@entry
def answers_left(m: Any) -> Any:
    """Check whether ACKs are on their way; called from Python."""
    return answering(m)


@kernel
def ack_lag(net: Any, ports: Any, f: Any, dt: Any) -> Any:
    """Return the steps from that in which bytes leave the last port to that at whose end their ACK is known."""
    lag = net.rtt[f] - (net.hops[f] - 1) * dt
    for h in range(1, net.hops[f]):
        p = net.back[f, h]
        lag += ports.backlog[p] / net.rate[p]
    return lag / dt - 1.0


@kernel
def send(m: Any, dt: Any, time: Any, begins: Any) -> None:
    """Put onto each NIC what senders' pace and window allow; one that cannot carry it shares itself equally."""
    slots, net, ports, now = m.slots, m.net, m.ports, m.now
    for i in range(now[USED]):
        s = m.used[i]
        p = net.there[slots.flow[s], 0]
        ports.want[p] = ports.count[p] = 0
        m.level[p] = 1e300
    for i in range(now[USED]):
        s = m.used[i]
        slots.want[s] = 0.0
        if slots.doing[s] == SENDING:
            span = min(dt, time + dt - begins[slots.transfer[s]])
            may = slots.window[s] - slots.sent[s] + slots.acked[s]
            slots.want[s] = max(min(slots.pace[s] * span, may), 0.0)
            p = net.there[slots.flow[s], 0]
            ports.want[p] += min(slots.want[s], slots.left[s])
            ports.count[p] += 1
    over = False
    for i in range(now[USED]):
        p = net.there[slots.flow[m.used[i]], 0]
        if ports.want[p] > _room(net, ports, p, dt) and m.level[p] > 1e200:
            over = True
            m.level[p] = _room(net, ports, p, dt) / ports.count[p]
    for _ in range(_PASSES if over else 0):  # a flow that wants less than its share leaves the rest to the others
        for i in range(now[USED]):
            p = net.there[slots.flow[m.used[i]], 0]
            ports.want[p] = ports.count[p] = 0
        for i in range(now[USED]):
            s = m.used[i]
            p = net.there[slots.flow[s], 0]
            want = min(slots.want[s], slots.left[s])
            if slots.doing[s] == SENDING and want > m.level[p]:
                ports.count[p] += 1
            ports.want[p] += min(want, m.level[p])
        for i in range(now[USED]):
            p = net.there[slots.flow[m.used[i]], 0]
            if m.level[p] < 1e200 and ports.count[p] > 0:
                m.level[p] += (_room(net, ports, p, dt) - ports.want[p]) / ports.count[p]
                ports.count[p] = 0  # once
    for i in range(now[USED]):
        s = m.used[i]
        f = slots.flow[s]
        p = net.there[f, 0]
        may = min(slots.want[s], m.level[p])
        x = min(may, slots.left[s])
        if slots.doing[s] == SENDING:
            span = min(dt, time + dt - begins[slots.transfer[s]])
            if slots.left[s] <= may:
                slots.doing[s] = ARRIVING
                slots.end[s] = time + dt - span + span * slots.left[s] / max(may, 1e-300)
                slots.part[s] = (slots.end[s] - time) / dt
                slots.hop[s], slots.ready[s], slots.target[s] = 1, now[STEP] + 1, -1.0
            slots.left[s] -= x
            slots.sent[s] += x
        slots.want[s] = x


@kernel
def _room(net: Any, ports: Any, p: Any, dt: Any) -> Any:
    return 0.0 if ports.paused[p] else max(net.rate[p] * dt - ports.acks[p], _LEAST * net.rate[p] * dt)
