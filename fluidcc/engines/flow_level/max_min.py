"""Max-min fair rates: all rise together, and a flow that meets a full port stays (Bertsekas and Gallager, 6.5.2).

ACKs take their share of the ports on their way back, whatever else wants these: they follow from the rates, and the
rates from what they leave, in a few rounds.
"""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import kernel

_ROUNDS = 12  # of rates and ACKs; each leaves about a tenth of the error
_CLOSE = 1e-4  # change of the ACKs' load, of a port's rate, that ends them
_LEAST = 1e-2  # share of a port that ACKs leave to data
_EQUAL = 1.0 + 1e-12


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
