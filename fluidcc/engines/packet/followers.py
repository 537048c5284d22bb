"""Flows that wait for others: as one ends, those that waited for it are told, and the last told begin."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.packet.calendar import schedule
from fluidcc.engines.packet.jit import kernel
from fluidcc.engines.packet.layout import FOLLOW, NEVER, TELL, Sim
from fluidcc.engines.packet.network import Topology
from fluidcc.scenario import order
from fluidcc.scenario.model import Scenario

_AT_ONCE = 16  # followers told by one event, which may schedule so many others


@kernel
def ended(core: Any, calendar: Any, flow: Any, f: Any, answered: Any) -> None:
    """A flow's last byte has arrived, or its ACK has: those who wait for that are told, each in its turn."""
    if answered:
        if flow.on_answer < flow.answers:
            schedule(core, calendar, core.now, TELL, 2 * f + 1)
    elif flow.on_receipt < flow.receipts:
        schedule(core, calendar, core.now, TELL, 2 * f)


@kernel
def tell(core: Any, calendar: Any, flows: Any, lists: Any, i: Any) -> None:
    """Some of a flow's followers learn that it has ended; who has waited for nothing else begins after its delay."""
    flow = flows[i // 2]
    answered = i % 2
    at = flow.on_answer if answered else flow.on_receipt
    end = flow.answers if answered else flow.receipts
    last = min(end, at + _AT_ONCE)
    while at < last:
        follower = flows[lists[at]]
        follower.awaits -= 1
        if follower.awaits == 0:
            follower.start += core.now
            schedule(core, calendar, follower.start, FOLLOW, lists[at])
        at += 1
    if answered:
        flow.on_answer = at
    else:
        flow.on_receipt = at
    if at < end:
        schedule(core, calendar, core.now, TELL, i)


def followers_of(scenario: Scenario, topology: Topology, flows: Any, members: np.ndarray, first: int) -> list[int]:
    """Lists of all flows' followers, from a place on; each flow's record gets the ends of its own.

    All flows of a class wait for all of the classes that it names.
    """
    if not any(flow.after for flow in scenario.flows):
        return []
    starts = np.searchsorted(members, np.arange(len(scenario.flows) + 1))
    told: list[tuple[list[int], list[int]]] = [([], []) for _ in members]  # on receipt, on answer
    sources = [topology.ports[topology.routes[way][0]].source for way in topology.forward]
    targets = [topology.ports[topology.routes[way][-1]].target for way in topology.forward]
    for m, flow in enumerate(scenario.flows):
        for f in range(starts[m], starts[m + 1]):
            for place in flow.after:
                for p in range(starts[place], starts[place + 1]):
                    receipt = flow.after_what == order.RECEIPT or (
                        flow.after_what == order.KNOWN and sources[f] == targets[p]
                    )
                    told[p][0 if receipt else 1].append(f)
                    flows[f].awaits += 1
    listed: list[int] = []
    for record, (receipts, answers) in zip(flows, told, strict=True):
        record.on_receipt = first + len(listed)
        record.receipts = record.on_answer = first + len(listed) + len(receipts)
        record.answers = record.on_answer + len(answers)
        listed += [*receipts, *answers]
    return listed


def began(sim: Sim) -> np.ndarray:
    """When each flow began [ps]; `NEVER` if it has not."""
    return np.where(sim.flows["state"] > 0, sim.flows["start"], NEVER)
