"""Flows that wait for others: as one ends, its followers are notified; those that wait for nothing else begin."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.common.topology import Topology
from fluidcc.engines.packet.calendar import schedule
from fluidcc.engines.packet.layout import FOLLOW, NEVER, TELL, Sim
from fluidcc.scenario import dependencies
from fluidcc.scenario.model import Scenario

WAYS = 3  # of a flow's end: its last byte
RECEIPT, ANSWER, LEFT = range(WAYS)  # arrives, is acknowledged, leaves
_AT_ONCE = 16  # followers notified by one event, which may schedule as many others


@kernel
def ended(core: Any, calendar: Any, flow: Any, f: Any, what: Any) -> None:
    """Record that a flow's last byte has arrived, been acknowledged or left; schedule notice to flows that wait."""
    if flow.ended[what] < 0:  # what goes again after a loss has left before
        flow.ended[what] = core.now
    if flow.told[what] < flow.to_tell[what]:
        schedule(core, calendar, core.now, TELL, WAYS * f + what)


@kernel
def tell(core: Any, calendar: Any, flows: Any, lists: Any, i: Any) -> None:
    """Notify some of a flow's followers that it has ended; one that waits for nothing else begins after its delay."""
    flow = flows[i // WAYS]
    what = i % WAYS
    at = flow.told[what]
    end = flow.to_tell[what]
    last = min(end, at + _AT_ONCE)
    while at < last:
        follower = flows[lists[at]]
        follower.awaits -= 1
        if follower.awaits == 0:
            follower.start += core.now
            schedule(core, calendar, follower.start, FOLLOW, lists[at])
        at += 1
    flow.told[what] = at
    if at < end:
        schedule(core, calendar, core.now, TELL, i)


def followers_of(scenario: Scenario, topology: Topology, flows: Any, members: np.ndarray, first: int) -> list[int]:
    """Lists of all flows' followers, from a place on; each flow's record gets the ends of its own.

    All flows of a class wait for all of the classes that it names.
    """
    if not any(flow.after for flow in scenario.flows):
        return []
    starts = np.searchsorted(members, np.arange(len(scenario.flows) + 1)).tolist()
    told: list[tuple[list[int], ...]] = [([], [], []) for _ in members]  # by what of a flow counts
    sources = [topology.ports[topology.routes[way][0]].source for way in topology.forward]
    targets = [topology.ports[topology.routes[way][-1]].target for way in topology.forward]
    awaits = [0] * len(members)
    for m, flow in enumerate(scenario.flows):
        if not flow.after:
            continue
        before = [p for place in flow.after for p in range(starts[place], starts[place + 1])]
        for f in range(starts[m], starts[m + 1]):
            awaits[f] = len(before)
            for p in before:
                told[p][_what(flow.after_what, sources[f], sources[p], targets[p])].append(f)
    flows["awaits"] = awaits
    lists = [each for of_flow in told for each in of_flow]
    listed = [f for each in lists for f in each]
    ends = first + np.cumsum([len(each) for each in lists]).reshape(-1, WAYS)
    flows["to_tell"] = ends
    flows["told"] = np.concatenate([[first], ends.ravel()[:-1]]).reshape(-1, WAYS)
    return listed


def _what(after_what: str, mine: str, source: str, target: str) -> int:
    """Return which end of a flow from source to target counts for one that starts at a host."""
    if after_what == dependencies.SENT:
        return LEFT if source == mine else RECEIPT
    return (
        RECEIPT
        if after_what == dependencies.RECEIPT or (after_what == dependencies.KNOWN and mine == target)
        else ANSWER
    )


def began(sim: Sim) -> np.ndarray:
    """Return when each flow began [ps]; `NEVER` if it has not."""
    return np.where(sim.flows["state"] > 0, sim.flows["start"], NEVER)
