"""The calendar: which of what a flow waits for comes first, and trees in which the least entry is found.

A tree over a row of numbers holds in its inner nodes the least or the sum of the two below: a change costs a walk up.
With ``leaves``, a power of two, it takes ``2 * leaves`` places of a flat array from ``base`` on; its root is at 1.
Sums are formed again from below at each change: differences would drift, and go negative where rates collapse.

As a flow ends, those that wait for it are notified; those that wait for nothing else begin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.hybrid.layout import CNP, COUNTER, END, LOOK, NEVER, PACE, REQUEST, START, TIMER
from fluidcc.scenario import dependencies
from fluidcc.scenario.model import Scenario

# What of a flow counts: its last byte leaves, arrives, or is acknowledged.
LEFT, RECEIPT, ANSWER = map(np.int64, range(3))
_ENDS = {dependencies.SENT: LEFT, dependencies.RECEIPT: RECEIPT, dependencies.ANSWER: ANSWER}


@kernel
def schedule(core: Any, flow: Any, f: Any, looks: Any, cnps: Any, calendar: Any) -> None:
    """Find what a flow does next, and enter it in the calendar; of simultaneous things the first here."""
    todo, soonest = LOOK, NEVER
    if flow.look < len(looks):
        soonest = looks[flow.look] + flow.ahead
    if flow.state == 0:
        if flow.start <= soonest:  # what a flow starts with is seen at that instant
            todo, soonest = START, flow.start
    elif flow.state == 1:
        if flow.timer < soonest:
            todo, soonest = TIMER, flow.timer
        if flow.pace > 0.0:
            if flow.repace < NEVER:
                time = flow.at + (flow.repace - flow.sent) / flow.pace
                if time < soonest:
                    todo, soonest = PACE, time
            time = flow.at + (flow.counted - flow.sent) / flow.pace
            if time < soonest:
                todo, soonest = COUNTER, time
            time = flow.at + (flow.total - flow.sent) / flow.pace
            if time < soonest:
                todo, soonest = END, time
        if flow.waiting > 0 and cnps[f, flow.head] < soonest:
            todo, soonest = CNP, cnps[f, flow.head]
    if flow.request < soonest:
        todo, soonest = REQUEST, flow.request
    flow.todo = todo
    put_least(calendar, 0, core.leaves, f, max(soonest, core.now))


def leaves(count: int) -> int:
    """Return the least power of two that holds this many, at least two."""
    return max(2, 1 << (count - 1).bit_length())


@kernel
def put_least(tree: Any, base: Any, leaves: Any, i: Any, value: Any) -> None:
    """Set a leaf of a tree of least values."""
    node = leaves + i
    tree[base + node] = value
    while node > 1:
        other = tree[base + (node ^ 1)]
        if other < value:
            value = other
        node >>= 1
        if tree[base + node] == value:
            return
        tree[base + node] = value


@kernel
def least(tree: Any, base: Any, leaves: Any) -> Any:
    """The leaf with the least value, of equals the first."""
    value, node = tree[base + 1], 1
    while node < leaves:
        node *= 2
        if tree[base + node] != value:
            node += 1
    return node - leaves


@kernel
def put_sum(tree: Any, base: Any, leaves: Any, i: Any, value: Any) -> None:
    """Set a leaf of a tree of sums."""
    node = leaves + i
    tree[base + node] = value
    while node > 1:
        node >>= 1
        tree[base + node] = tree[base + 2 * node] + tree[base + 2 * node + 1]


@kernel
def tell(sim: Any, f: Any, left: Any) -> None:
    """Update when followers begin, as a flow's last byte has left or its arrival has become known."""
    core, flow = sim.core[0], sim.flows[f]
    for k in range(flow.followers, flow.followers_end):
        what = sim.waits[k]
        if (what == LEFT) != left:
            continue
        end = core.now - flow.ahead if left else flow.finish - flow.answer if what == RECEIPT else flow.finish
        follower = sim.flows[sim.followers[k]]
        follower.told = max(follower.told, end)
        follower.awaits -= 1
        if follower.awaits == 0:
            follower.start = follower.ahead + follower.told + follower.pause
            schedule(core, follower, sim.followers[k], sim.looks, sim.cnps, sim.calendar)


def followers_of(scenario: Scenario, members: list[int], flows: Any) -> tuple[Any, Any]:
    """Followers of all flows, one flow's after the other's, and what each waits for; records get the rest.

    All flows of a class wait for all of the classes that it names.
    """
    if not any(flow.after for flow in scenario.flows):
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    at = np.searchsorted(members, np.arange(len(scenario.flows) + 1)).tolist()
    told: list[list[tuple[int, Any]]] = [[] for _ in members]
    for m, flow in enumerate(scenario.flows):
        for place in flow.after:
            what = _ENDS[dependencies.end_of(flow, scenario.flows[place])]
            for before in range(at[place], at[place + 1]):
                told[before] += [(f, what) for f in range(at[m], at[m + 1])]
        if flow.after:
            mine = slice(at[m], at[m + 1])
            flows["awaits"][mine] = sum(at[place + 1] - at[place] for place in flow.after)
            flows["pause"][mine], flows["start"][mine] = flow.start, NEVER
    counts = np.array([len(each) for each in told])
    flows["followers_end"] = np.cumsum(counts)
    flows["followers"] = flows["followers_end"] - counts
    pairs = np.array([pair for each in told for pair in each], np.int64)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
