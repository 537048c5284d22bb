"""Deficit round robin at a port, against Shreedhar and Varghese's (SIGCOMM 1995) written down once more.

The replay observes what joined a port's queues and says of which class the next packet is, in the order of the log.
Nothing is rounded: every choice has to be the same.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter, deque
from typing import Any

import pytest

import fluidcc as fc

DATA, ACK = 1000, 64  # bytes


class RoundRobin:
    """Classes take turns in their order; a higher priority goes first, and takes neither turn nor credit from others.

    `next` is when the port looks: as it begins a packet, and when it has none to begin. A class that gets a packet
    while its last one leaves has not been empty.
    """

    def __init__(self, classes: tuple[fc.TrafficClass, ...]) -> None:
        lightest = min(each.weight for each in classes)
        self.quantum = [each.weight / lightest * DATA for each in classes]
        self.priority = [each.priority for each in classes]
        self.waiting: list[deque[int]] = [deque() for _ in classes]
        self.credit = [0.0] * len(classes)
        self.rounds = {p: deque(c for c, q in enumerate(self.priority) if q == p) for p in set(self.priority)}
        self.begun = dict.fromkeys(self.rounds, False)  # whether the first of the round has had its quantum
        self.unspent = 0  # times that a class emptied with credit left

    def next(self) -> int | None:
        for c, queue in enumerate(self.waiting):
            if not queue:  # "if there are no more packets in Queue i, DeficitCounter is reset to zero"
                self.unspent += self.credit[c] > 0
                self.credit[c] = 0.0
        some = [self.priority[c] for c, queue in enumerate(self.waiting) if queue]
        if not some:
            return None
        level = max(some)
        order = self.rounds[level]
        while True:
            c = order[0]
            if self.waiting[c]:
                if not self.begun[level]:
                    self.begun[level] = True
                    self.credit[c] += self.quantum[c]
                if self.waiting[c][0] <= self.credit[c]:
                    self.credit[c] -= self.waiting[c].popleft()
                    return c
            order.rotate(-1)
            self.begun[level] = False


def replayed(trace: fc.Trace, scenario: fc.Scenario, port: str) -> tuple[RoundRobin, Counter[int]]:
    """Compare each choice of a port; packets of each class that it sent."""
    log, sent, free = trace.dataset, Counter[int](), 0
    possible = [RoundRobin(scenario.classes)]
    columns = (log[f"event_{name}"].values for name in ("time", "what", "port", "flow", "kind"))
    for seconds, what, where, flow, kind in zip(*columns, strict=True):
        if where != port or what not in ("enqueue", "transmit"):
            continue
        now, mine = round(float(seconds) * 1e12), int(scenario.flows[flow].traffic_class)
        size = DATA if kind == "data" else ACK
        if what == "enqueue":
            if not any(possible[0].waiting) and now >= free:  # it found the port idle; just now, perhaps not yet
                idle = copy.deepcopy(possible)
                possible = [*idle, *possible] if now == free else idle
                for each in idle:
                    each.next()
            for each in possible:
                each.waiting[mine].append(size)
        else:
            possible = [each for each in possible if each.next() == mine]
            assert possible
            sent[mine] += 1
            free = now + size * 800  # 10 Gb/s
    return possible[0], sent


def classes_of(scenario: fc.Scenario, *classes: fc.TrafficClass) -> fc.Scenario:
    """Flow i in class i."""
    flows = tuple(dataclasses.replace(flow, traffic_class=i) for i, flow in enumerate(scenario.flows))
    return dataclasses.replace(scenario, flows=flows, classes=classes)


def scripted(*schedules: str, **options: Any) -> fc.Scenario:
    """Senders by schedules that repeat every 60 us, into one port of 10 Gb/s."""
    scenario = fc.incast(len(schedules), rate="10Gbps", scheme=fc.NoControl(), **options)
    flows = tuple(
        dataclasses.replace(flow, scheme=fc.NoControl(schedule=schedule))
        for flow, schedule in zip(scenario.flows, schedules, strict=True)
    )
    return dataclasses.replace(scenario, flows=flows)


def ran(scenario: fc.Scenario, until: str = "400us") -> fc.Trace:
    return fc.simulate(scenario, until, engine="packet", log=True)


def test_a_class_that_empties_keeps_no_credit() -> None:
    """Single packets of a class of weight 4 for 200 us, each with credit for three more; then a burst of it.

    The other class waits all the time. In the burst four packets go to one, as if nothing had been before; of 200 it is
    off by a round at most. With what it had not used, 36 packets, it would have the link for 29 us.
    """
    made = scripted("0:10Gbps", "0:0.5Gbps,200us:10Gbps", start=["0us", "1.3us"])
    scenario = classes_of(made, fc.TrafficClass(), fc.TrafficClass(weight=4))
    trace = ran(scenario)
    ours, _ = replayed(trace, scenario, "switch -> receiver")
    assert ours.unspent >= 10
    log = trace.dataset
    served = (log.event_what.values == "transmit") & (log.event_port.values == "switch -> receiver")
    served &= (log.event_time.values > 210e-6) & (log.event_kind.values == "data")
    flows = log.event_flow.values[served][:200]
    assert Counter(flows.tolist())[1] == pytest.approx(160, abs=4)


@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 2.5, 1.7), (3, 1, 2)])
@pytest.mark.parametrize("waits", [True, False], ids=["one class always waits", "the port is idle at times"])
def test_three_classes_that_come_and_go(weights: tuple[float, ...], waits: bool) -> None:
    """Data, and ACKs of 64 B of what the receiver itself sends, of which many fit into a quantum."""
    first = "0:9Gbps" if waits else "0:7Gbps,30us:0,70us:5Gbps,130us:0,200us:3Gbps,300us:0"
    made = scripted(
        first,
        "0:0.7Gbps,60us:6Gbps,120us:0,200us:2Gbps",
        "0:0,10us:8Gbps,40us:1Gbps,150us:5Gbps,260us:0",
        start=["0us", "0.37us", "0.71us"],
    )
    scenario = classes_of(made, *(fc.TrafficClass(weight=weight) for weight in weights))
    back = fc.Link("10Gbps", "1.137us", name="back", source="switch", target="sink")
    sends = fc.Flow(
        (1,), fc.NoControl(), "10Gbps", start="0.53us", initial_rate="9.7Gbps", source="receiver", target="sink",
        traffic_class=1,
    )  # fmt: skip
    scenario = dataclasses.replace(scenario, links=(*scenario.links, back), flows=(*scenario.flows, sends))
    ours, sent = replayed(ran(scenario), scenario, "switch -> receiver")
    assert min(sent[c] for c in range(3)) > 50
    assert waits or ours.unspent > 0


@pytest.mark.parametrize("weight", [1, 4])
def test_a_higher_priority_leaves_the_others_their_turns(weight: int) -> None:
    """A packet of it every 1.6 us: each comes while another is served. The rest is shared by weight.

    Of 500 packets of 400 us, 250; the others' shares are off by a round at most.
    """
    made = scripted("0:5Gbps", "0:10Gbps", "0:10Gbps", start=["0.1us", "0us", "0us"])
    scenario = classes_of(made, fc.TrafficClass(priority=1), fc.TrafficClass(weight=weight), fc.TrafficClass())
    _, sent = replayed(ran(scenario), scenario, "switch -> receiver")
    share = sent[1] + sent[2]
    assert sent[0] == pytest.approx(250, abs=3)
    assert sent[1] == pytest.approx(share * weight / (weight + 1), abs=weight + 1)


def test_a_port_with_acks_of_several_classes_lets_its_flows_take_turns() -> None:
    """Three flows of one NIC at its line rate, and an ACK between any two of their packets: a third each."""
    links = tuple(fc.Link("10Gbps", name=name, source="switch", target=name) for name in ("a", "b", "c", "host"))
    flows = [
        fc.Flow((i,), fc.NoControl(), "10Gbps", source="host", target=name, traffic_class=0)
        for i, name in enumerate(("a", "b", "c"))
    ]
    flows.append(fc.Flow((3,), fc.NoControl(), "10Gbps", start="0.3us", source="far", target="host", traffic_class=1))
    scenario = fc.Scenario(links, tuple(flows), classes=(fc.TrafficClass(), fc.TrafficClass()))
    sent = ran(scenario, "200us").dataset
    packets = [int(((sent.event_what.values == "send") & (sent.event_flow.values == f)).sum()) for f in range(3)]
    assert sum(packets) > 200
    assert max(packets) - min(packets) <= 1
