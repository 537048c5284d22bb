"""A scenario laid out in the hybrid's memory, by hand: ways, hops, links, looks, and rings that grow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.hybrid import build, layout
from fluidcc.scenario.model import resolve
from fluidcc.units import Rate

TEN = Rate(1.25e9)
PAYLOAD, HEADER, CONTROL = 1000.0, 62.0, 64.0
WHOLE = PAYLOAD + HEADER
NO_SAMPLES = build.Times(1e-3, 0.0, 1e-3, math.inf)


def given(**network: Any) -> fc.Scenario:
    """Two links: flows 0 and 3 take both, 1 and 2 (a class of two) the second."""
    links = (
        fc.Link(rate=TEN, delay=2e-6, marking=fc.RED("100KB", "400KB", 0.2)),
        fc.Link(rate=4 * TEN, delay=3e-6, marking=fc.RED("100KB", "400KB", 0.2)),
    )
    flows = (
        fc.Flow(path=(0, 1), line_rate=TEN, access_delay=1e-6, egress_delay=4e-6, start=1e-4, scheme=fc.DCQCN()),
        fc.Flow(path=(1,), line_rate=2 * TEN, multiplicity=2, size=2500.0, scheme=fc.DCQCN()),
        fc.Flow(path=(0, 1), line_rate=TEN, scheme=fc.DCQCN(), size=500.0),
    )
    options = {"packet_size": PAYLOAD, "header_bytes": HEADER, **network}
    return resolve(fc.Scenario(links, flows, **options))


def laid(**network: Any) -> Any:
    return build.prepare(given(**network), NO_SAMPLES)


def test_classes_are_flows_and_each_has_a_hop_at_each_of_its_links() -> None:
    found = laid()
    sim = found.sim
    assert found.members == [0, 1, 1, 2]
    assert sim.flows["first"].tolist() == [0, 2, 3, 4]
    assert sim.flows["hops"].tolist() == [2, 1, 1, 2]
    assert sim.hops["flow"].tolist() == [0, 0, 1, 2, 3, 3]
    assert sim.hops["link"].tolist() == [0, 1, 1, 1, 0, 1]
    assert sim.hops["last"].tolist() == [0, 1, 1, 1, 0, 1]
    assert sim.hops_at.tolist() == [0, 4, 1, 2, 3, 5]  # link by link
    assert sim.hops["place"].tolist() == [0, 0, 1, 2, 1, 3]
    assert sim.links["first"].tolist() == [0, 2]
    assert sim.links["hops"].tolist() == [2, 4]
    assert sim.links["tree"].tolist() == [0, 4]  # after the first's 2 x 2 places
    assert sim.links["leaves"].tolist() == [2, 4]
    assert sim.trees.shape == (3, 4 + 8)
    assert sim.flows["row"].tolist() == [0, 1, 2, 3]
    assert (sim.hops["packet"] == WHOLE).all()


def test_bytes_of_a_flow_count_a_header_a_packet() -> None:
    sim = laid().sim
    assert sim.flows["total"].tolist() == [math.inf, 2500 + 3 * HEADER, 2500 + 3 * HEADER, 500 + HEADER]
    assert sim.flows["share"] == pytest.approx(PAYLOAD / WHOLE)


def test_times_of_the_way_by_hand() -> None:
    """To the first queue with the packet's time onto the NIC's link; behind the last with each later port's."""
    scenario = given()
    topology = build.topology_of(build.single_flows(scenario))
    sim = laid().sim
    for f, row in enumerate(sim.flows):
        packet = min(WHOLE, row["total"])
        there = [topology.ports[i] for i in topology.routes[topology.forward[f]]]
        back = [topology.ports[i] for i in topology.routes[topology.backward[f]]]
        assert row["ahead"] == pytest.approx(packet / there[0].rate + there[0].delay)
        passed = 1 if f in (1, 2) else 2  # to its last queue
        ack = build.ack_size(scenario, scenario.flows[0])
        assert row["beyond"] == pytest.approx(sum(packet / p.rate + p.delay for p in there[passed:]))
        assert row["answer"] == pytest.approx(sum(ack / p.rate + p.delay for p in back))
        assert row["back"] == pytest.approx(sum(CONTROL / p.rate + p.delay for p in back) + row["ahead"])
    assert sim.flows["start"] == pytest.approx(sim.flows["ahead"] + [1e-4, 0, 0, 0])
    assert sim.core[0].until == pytest.approx(1e-3 + sim.flows["ahead"].max())


def test_links_know_their_feeders_levels_and_what_comes_after() -> None:
    sim = laid(pfc=fc.PFC(xoff="50KB"), buffer="9MB").sim
    assert sim.links["inputs"].tolist() == [2, 3]  # the second: the first link's port and two NICs
    assert sim.links["xoff"].tolist() == [100e3, 150e3]
    assert sim.links["room"].tolist() == [9e6] * 2
    assert sim.links["after"] == pytest.approx([WHOLE / TEN + 2e-6, WHOLE / (4 * TEN) + 3e-6])
    assert sim.links["onward"].tolist() == sim.links["reading"].tolist() == [1, 0]
    assert sim.links["draining"] == pytest.approx(
        sim.links["queues"][:, sim.links["top"][0]] / sim.links["rate"], rel=1e-2
    )
    shared = laid(pfc=fc.PFC(alpha=0.25), buffer="9MB").sim
    assert shared.links["xoff"] == pytest.approx([0.5 * 9e6 / 1.5, 0.75 * 9e6 / 1.75])
    assert laid().sim.links["xoff"].tolist() == [math.inf] * 2


def test_receivers_share_the_nic_that_their_answers_leave_by() -> None:
    nics = laid().sim.flows["nic"]
    assert nics.tolist() == [0, 1, 1, 1]  # hosts of one egress delay behind a link are one


def test_bursts_are_as_fast_as_the_fastest_sender_to_a_link() -> None:
    scenario = given(burst=4, jitter=0.25)
    assert build._pacing(scenario, 0) == (4, 0.25, 1.0)
    assert build._pacing(scenario, 1) == (4, 0.25, 4 / 2)


@pytest.mark.parametrize(
    ("times", "looks", "kinds", "rows"),
    [
        (build.Times(3.0, 1.0, 3.0, 1.0), [0, 1, 1, 2, 3, 3], [0, 1, 0, 0, 0, 2], [0, 0, 1, 2, 3, 0]),
        (build.Times(3.0, 0.5, 2.5, math.inf), [0.5, 2.5], [1, 2], [0, 0]),
        (build.Times(0.3, 0.0, 0.3, 0.1), [0, 0, 0.1, 0.2, 0.3, 0.3], [1, 0, 0, 0, 2, 0], [0, 0, 1, 2, 0, 3]),
    ],
)
def test_looks_are_in_order_and_a_window_opens_before_a_sample(
    times: build.Times, looks: list[float], kinds: list[int], rows: list[int]
) -> None:
    """That 0.3 / 0.1 is a rounding short of 3 loses no sample, though 3 x 0.1 is one beyond 0.3."""
    found = build._instants(times)
    assert found[0] == pytest.approx(looks)
    assert [found[1].tolist(), found[2].tolist()] == [kinds, rows]


@pytest.mark.parametrize(
    ("status", "names", "head"),
    [
        (layout.GROW_CNPS, ("cnps",), "head"),
        (layout.GROW_MARKS, ("marks",), "first_mark"),
        (layout.GROW_OUTPUT, ("output_times", "output_rates"), "head"),
        (layout.GROW_TRANSIT, ("transit_times", "transit_hops"), "transit_head"),
    ],
)
def test_a_ring_that_grows_keeps_its_order(status: int, names: tuple[str, ...], head: str) -> None:
    """From its head on, with as much room again behind; the others stay."""
    sim = laid().sim._replace(marks=np.zeros((4, 8)))
    of = sim.flows if status in (layout.GROW_CNPS, layout.GROW_MARKS) else sim.links
    of[head] = np.arange(len(of)) + 2
    for name in names:
        ring = getattr(sim, name)
        ring[:] = np.arange(ring.size).reshape(ring.shape)
    before = {name: getattr(sim, name).copy() for name in names}
    found = build.grown(sim, status)
    for name in names:
        for i, row in enumerate(before[name]):
            ring = getattr(found, name)[i]
            assert len(ring) == 2 * len(row)
            np.testing.assert_array_equal(ring[: len(row)], [*row[i + 2 :], *row[: i + 2]])
            assert not ring[len(row) :].any()
    heads = (found.flows if of is sim.flows else found.links)[head]
    assert not heads.any()
    others = {"cnps", "marks", "output_times", "output_rates", "transit_times", "transit_hops"} - set(names)
    assert all(getattr(found, name) is getattr(sim, name) for name in others)
