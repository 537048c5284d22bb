"""Packets of random scenarios: bytes are kept, and units, order and neighbours do not matter.

A run is the same to the rounding of sums in other units, but for what has units of its own: the clock's picosecond, to
which pacers round, and Ethernet's least frame of 64 B, of which PFC, CNPs and trimmed headers are made. NSCC's gains
have units too, those of its reference network (UE 3.6.13.3), which `drawn.in_units` takes off.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.packet.build import prepare
from fluidcc.engines.packet.layout import DATA
from fluidcc.engines.packet.run import execute, times_of
from fluidcc.scenario.model import resolve
from fluidcc.studies.sweeps.replications import Draws, outcomes
from tests.invariants.checked import differing, negative, numbers, overfull, run
from tests.invariants.drawn import Case, drawn, in_units, permuted

FEW = range(32)  # each of the eight schemes four times
MANY = range(32, 132)
UNPACED = ("nscc", "none")  # at the line rate, of which a byte takes whole picoseconds, until the window is full
CLOCK = 0.05  # of a mean queue: a packet that a pacer lets go a picosecond sooner may meet others in another order
SLOW = pytest.mark.slow


def lot() -> Case:
    """Two queues that drop a third of what comes, without anybody who recovers it."""
    scheme = fc.parking_lot(
        3, rate="10Gbps", delay="500ns", packet_size=4096, scheme="dcqcn", marking=fc.RED("37KB", "747KB", 1.0),
        pfc=None, buffer="54KB", loss_recovery="none",
    )  # fmt: skip
    return Case(resolve(scheme), 1e-3, 0)


def test_what_is_dropped_is_no_goodput() -> None:
    """ACKs of later packets once counted what was lost before them: 1.6 times what a link can carry."""
    case = lot()
    trace = fc.simulate(case.scenario, "1ms", window="0:1ms", engine="packet")
    assert trace.summary["drops"] > 200
    assert overfull(case, trace.summary) == []
    goodput = np.array(trace.summary["goodput_bytes_per_s"])
    assert trace["delivered"].values[-1] == pytest.approx(goodput * 1e-3)


@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=SLOW)])
def test_no_link_delivers_more_than_it_carries(cases: range) -> None:
    for case in map(drawn, cases):
        found = run(case, "packet")
        assert overfull(case, found) == []
        assert negative(numbers(case, found)) == [], case.name
        assert all(link["queue_bytes"]["max"] <= case.scenario.buffer for link in found["links"]), case.name


@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=SLOW)])
def test_what_is_sent_has_come_was_lost_or_is_under_way(cases: range) -> None:
    for case in map(drawn, cases):
        plan = prepare(case.scenario, times_of(case.scenario, case.until, None, case.until / 4), 0)
        sim, _ = execute(plan, case.seed)
        core, under_way = sim.core[0], payload_under_way(sim)
        packets = sum(count for count, _ in under_way.values())
        assert core.injected == core.delivered + core.dropped + core.trimmed + packets, case.name
        assert (sim.nodes["used_max"] <= sim.nodes["buffer"]).all(), case.name
        if case.scenario.loss_recovery == "none":
            for f, flow in enumerate(sim.flows):
                assert flow.sent == flow.received + flow.lost + under_way.get(f, (0, 0))[1], case.name
                assert flow.confirmed <= flow.received, case.name


def payload_under_way(sim: Any) -> dict[int, tuple[int, int]]:
    """Data packets in queues and on wires, and their payload, by flow."""
    heads = [int(port.wire_head) for port in sim.ports]
    heads += [int(queue.head) for port in sim.ports for queue in port.queues]
    count: Counter[int] = Counter()
    payload: Counter[int] = Counter()
    for k in heads:
        while k >= 0:
            packet = sim.packets[k]
            if packet.kind == DATA:
                count[int(packet.flow)] += 1
                payload[int(packet.flow)] += int(packet.payload)
            k = int(packet.next)
    return {f: (count[f], payload[f]) for f in count}


@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=SLOW)])
def test_order_of_flows_does_not_matter(cases: range) -> None:
    for case in map(drawn, cases):
        order = list(range(len(case.scenario.flows)))
        random.Random(case.seed).shuffle(order)
        other = permuted(case, order)
        assert differing(numbers(case, run(case, "packet")), numbers(other, run(other, "packet"))) == {}, case.name


def small_frames(case: Case, summary: dict[str, Any]) -> bool:
    """Whether a run may have frames of Ethernet's least size, which no unit changes."""
    return case.scheme == "dcqcn" or summary["pfc_pauses"] + summary["trims"] > 0


@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=SLOW)])
def test_unit_of_data_does_not_matter(cases: range) -> None:
    compared = 0
    for case in map(drawn, cases):
        one = run(case, "packet")
        if not small_frames(case, one):
            other = run(in_units(case, size=2.0), "packet")
            assert differing(numbers(case, one), numbers(case, other, size=2.0)) == {}, case.name
            compared += 1
    assert compared > len(cases) / 3


@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=SLOW)])
def test_unit_of_time_does_not_matter(cases: range) -> None:
    far = 0
    for case in map(drawn, cases):
        one, other = run(case, "packet"), run(in_units(case, time=2.0), "packet")
        differ = differing(numbers(case, one), numbers(case, other, time=2.0))
        if case.scheme in UNPACED:
            assert differ == {}, case.name
        means = [pair for name, pair in differ.items() if name.endswith("queue mean")]
        far += any(abs(x - y) > CLOCK * max(x, y) for x, y in means)
    assert far <= len(cases) / 16


def test_same_seed_same_run_and_a_point_of_a_sweep_is_a_run() -> None:
    for case in map(drawn, (0, 3, 6)):
        one = numbers(case, run(case, "packet"))
        assert differing(one, numbers(case, run(case, "packet")), 0.0) == {}
        (point,) = outcomes(case.scenario, Draws("packet", 1, None, case.until, (0.0, case.until)))
        again = run(case, "packet", seed=1)
        assert point.goodput.tolist() == again["goodput_bytes_per_s"]
        assert [link.area / link.span for link in point.links] == [x["queue_bytes"]["mean"] for x in again["links"]]
