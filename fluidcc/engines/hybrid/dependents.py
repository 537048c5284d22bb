"""Flows that wait for others: as one ends, its followers are notified; those that wait for nothing else begin."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.hybrid.calendar import schedule
from fluidcc.engines.hybrid.layout import NEVER
from fluidcc.errors import InputError
from fluidcc.scenario import dependencies
from fluidcc.scenario.model import Scenario

# What of a flow counts: its last byte leaves, arrives, or is acknowledged.
LEFT, RECEIPT, ANSWER = map(np.int64, range(3))
_ENDS = {dependencies.SENT: LEFT, dependencies.RECEIPT: RECEIPT, dependencies.ANSWER: ANSWER}


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


def refuse_sharing(scenario: Scenario) -> None:
    """Refuse flows of one host that may send at once: each has a NIC of its own.

    Raises
    ------
    InputError
        If of two flows of a host neither waits for the other, be it through further ones.
    """
    flows = scenario.flows
    hosts: dict[str, list[int]] = {}
    for f, flow in enumerate(flows):
        if flow.source:
            hosts.setdefault(flow.source, []).append(f)
    if all(len(sent) == 1 for sent in hosts.values()):
        return
    before = _before([flow.after for flow in flows])
    for host, sent in hosts.items():
        in_turn = sorted(sent, key=lambda f: before[f].bit_count())  # a follower waits for more flows
        for first, then in itertools.pairwise(in_turn):
            if not before[then] >> first & 1:
                first, then = sorted((first, then))
                raise InputError(
                    f"flow {then} source: host {host!r} sends flow {first} too, and the hybrid gives each flow a NIC "
                    "of its own; name another host, let one wait for the other (after), or write engine='packet'"
                )


def _before(after: list[tuple[int, ...]]) -> list[int]:
    """Return, as bits for each flow, the flows that it waits for, directly or through others."""
    found = [0] * len(after)
    left = [len(own) for own in after]
    followers: list[list[int]] = [[] for _ in after]
    for f, own in enumerate(after):
        for place in own:
            followers[place].append(f)
    free = [f for f, count in enumerate(left) if count == 0]
    for f in free:  # grows meanwhile
        for each in followers[f]:
            found[each] |= found[f] | 1 << f
            left[each] -= 1
            if left[each] == 0:
                free.append(each)
    return found
