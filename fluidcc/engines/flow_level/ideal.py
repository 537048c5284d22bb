"""An ideal scheme: max-min fair rates from one event to the next, and what of a transfer's time no rate explains.

All rates rise together, and a flow that meets a full port stays (Bertsekas and Gallager, 6.5.2). ACKs take their
share of the ports on their way back, whatever else wants these: they follow from the rates, and the rates from what
they leave, in a few rounds.

Rates are computed again where something starts or ends. Ends and starts that lie less than ``apart`` from the first
share the work: each has its own exact time, and only the others' rates change up to that much late. With 0 none do.
"""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import entry, kernel
from fluidcc.engines.flow_level.layout import carry, carry_on
from fluidcc.engines.flow_level.transfers import ALL, pass_by, pop, push, tell

_ROUNDS = 12  # of rates and ACKs; each leaves about a tenth of the error
_CLOSE = 1e-4  # change of the ACKs' load, of a port's rate, that ends them
_LEAST = 1e-2  # share of a port that ACKs leave to data
_EQUAL = 1.0 + 1e-12
DONE, STOPPED = 0, 1
NOW, HELD, ACTIVE, LEFT = range(4)  # of the state between calls
_NEVER = 1e300
_CRUMB = 1e-6  # bytes: rounding


@kernel
def fill(
    there: Any, active: Any, flow: Any, count: Any, room: Any, crossing: Any, share: Any, tight: Any, rate: Any,
) -> Any:  # fmt: skip
    """Set the max-min rates of the active transfers in the room of the ports; both are overwritten.

    Round by round: a port is tight if its equal share is the least on the whole path of all that cross it, and these
    have their rates. The port with the least share of all is, so that it ends.
    """
    hops = there.shape[1]
    crossing[:] = 0
    for i in range(count):
        rate[active[i]] = -1.0
        for h in range(hops):
            p = there[flow[active[i]], h]
            if p >= 0:
                crossing[p] += 1
    left = count
    while left > 0:
        for p in range(len(room)):
            if crossing[p] > 0:
                share[p] = max(room[p], 0.0) / crossing[p]
                tight[p] = 1
        for i in range(count):
            a = active[i]
            if rate[a] < 0.0:
                least = _least(there, flow[a], share)
                for h in range(hops):
                    p = there[flow[a], h]
                    if p >= 0 and share[p] > least * _EQUAL:
                        tight[p] = 0
        for i in range(count):
            a = active[i]
            if rate[a] < 0.0:
                least = _least(there, flow[a], share)
                for h in range(hops):
                    p = there[flow[a], h]
                    if p >= 0 and tight[p] == 1 and share[p] <= least * _EQUAL:
                        rate[a] = least
                        left -= 1
                        break
                if rate[a] >= 0.0:
                    for h in range(hops):
                        p = there[flow[a], h]
                        if p >= 0:
                            room[p] -= least
                            crossing[p] -= 1


@kernel
def _least(there: Any, f: Any, share: Any) -> Any:
    least = share[there[f, 0]]
    for h in range(1, there.shape[1]):
        p = there[f, h]
        if p >= 0:
            least = min(least, share[p])
    return least


@kernel
def solve(
    there: Any, back: Any, ack_share: Any, flow: Any, capacity: Any, active: Any, count: Any, acks: Any, room:
    Any, crossing: Any, share: Any, tight: Any, rate: Any,
) -> None:  # fmt: skip
    """Set the active transfers' rates next to the ACKs that they cause; ``acks`` is a guess, and then their load."""
    hops = there.shape[1]
    for _ in range(_ROUNDS):
        for p in range(len(room)):
            room[p] = max(capacity[p] - acks[p], _LEAST * capacity[p])
        fill(there, active, flow, count, room, crossing, share, tight, rate)
        room[:] = 0.0
        for i in range(count):
            f = flow[active[i]]
            for h in range(hops):
                p = back[f, h]
                if p >= 0:
                    room[p] += rate[active[i]] * ack_share[f]
        moved = 0.0
        for p in range(len(room)):
            moved = max(moved, abs(room[p] - acks[p]) / capacity[p])
            acks[p] = room[p]
        if moved < _CLOSE:
            break


@entry
def run(
    there: Any, back: Any, ack_share: Any, flow: Any, capacity: Any, wire: Any, free: Any, tail: Any, delay:
    Any, waits: Any, begins: Any, ends: Any, kept: Any, events: Any, apart: Any, until: Any, heap: Any, active:
    Any, to_send: Any, rate: Any, acks: Any, room: Any, crossing: Any, share: Any, tight: Any,
    port_rate: Any, load: Any,
) -> Any:  # fmt: skip
    """Continue until all have ended, or ``until``, or for a number of events.

    ``tail`` is what comes behind the last byte's sending at the slowest port, until it is received, and until its ACK
    is; ``ends`` becomes these two times, and when it had left. What is ``free`` counts to ports' loads as it is sent.
    """
    waits_at, listed, what, awaits = waits
    now, held, count = kept[NOW], int(kept[HELD]), int(kept[ACTIVE])
    hops = there.shape[1]
    if now < 0.0:
        now = 0.0
        for t in range(len(flow)):
            if awaits[t] == 0:
                begins[t] = delay[t]
                push(heap, held, begins, t)
                held += 1
    for _ in range(events):
        first = begins[heap[0]] if held > 0 else _NEVER
        for i in range(count):
            t = active[i]
            first = min(first, now + max(to_send[t], 0.0) / rate[t])
        if first >= until:
            if until > now:
                carry(load, port_rate, now, until)
                for i in range(count):
                    to_send[active[i]] -= rate[active[i]] * (until - now)
                now = until
            break
        onward = max(first, now) + apart
        carry(load, port_rate, now, onward)
        i = 0
        while i < count:
            t = active[i]
            sent = rate[t] * (onward - now)
            if sent >= to_send[t] - _CRUMB:
                end = now + to_send[t] / rate[t]
                ends[t, 0], ends[t, 1], ends[t, 2] = end + tail[t, 0], end + tail[t, 1], end
                held = tell(
                    waits_at, listed, what, awaits, delay, begins, t, ALL, end, ends[t, 0], ends[t, 1], heap, held
                )
                kept[LEFT] -= 1
                count -= 1
                active[i] = active[count]
                more = -rate[t] * wire[t] / (wire[t] - free[t])  # not sent beyond the end
                carry_on(load, there, flow[t], more, end, onward)
                carry_on(load, back, flow[t], more * ack_share[flow[t]], end, onward)
            else:
                to_send[t] -= sent
                i += 1
        now = onward
        before = count
        while held > 0 and begins[heap[0]] <= now:
            t = pop(heap, held, begins)
            held -= 1
            if flow[t] < 0:
                held = pass_by(waits_at, listed, what, awaits, delay, begins, ends, t, heap, held)
                kept[LEFT] -= 1
                continue
            active[count] = t
            to_send[t] = wire[t] - free[t]
            rate[t] = 0.0
            count += 1
        solve(there, back, ack_share, flow, capacity, active, count, acks, room, crossing, share, tight, rate)
        for i in range(before, count):  # what they have sent since they started
            t = active[i]
            to_send[t] -= rate[t] * (now - begins[t])
            more = rate[t] * wire[t] / (wire[t] - free[t])
            carry_on(load, there, flow[t], more, begins[t], now)
            carry_on(load, back, flow[t], more * ack_share[flow[t]], begins[t], now)
        port_rate[:] = 0.0
        for i in range(count):
            t = active[i]
            more = rate[t] * wire[t] / (wire[t] - free[t])
            for h in range(hops):
                p = there[flow[t], h]
                if p >= 0:
                    port_rate[p] += more
                p = back[flow[t], h]
                if p >= 0:
                    port_rate[p] += more * ack_share[flow[t]]
        if count == 0 and held == 0:
            break
    kept[NOW], kept[HELD], kept[ACTIVE] = now, held, count
