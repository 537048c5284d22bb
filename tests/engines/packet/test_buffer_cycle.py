"""Circles of buffers: found where flows make one, and only there."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import fluidcc as fc

PAIRS = [(a, b) for a in range(32) for b in range(32) if a // 8 != b // 8]  # all hosts of a unit of four ToRs
BROKEN = {"pods": 1, "tors": 4, "leaves": 2, "hosts": 8, "failed": ("T4-L1", "T1-L2")}


def check_cycle(scenario, ring):
    """Each port of the circle leads to where the next one starts, and some flow or its ACKs take them in turn."""
    ends = [port.split("->") for port in ring]
    ways = set()
    for flow in scenario.flows:
        names = [scenario.links[i].name for i in flow.path]
        back = ["->".join(reversed(name.split("->"))) for name in reversed(names)]
        ways |= set(itertools.pairwise(names)) | set(itertools.pairwise(back))
    for k, here in enumerate(ring):
        there = ring[(k + 1) % len(ring)]
        assert ends[k][1] == ends[(k + 1) % len(ring)][0]
        assert (here, there) in ways


def test_acc_figure_12_has_a_circle_and_the_whole_unit_none():
    """Flows between T1 and T4 come down and go up again at T2 or T3."""
    scenario = fc.clos_unit(PAIRS)
    ring = fc.fabrics.buffer_cycle(scenario)
    assert ring is not None
    assert set(ring) in ({"T3->L2", "L2->T2", "T2->L1", "L1->T3"}, {"T2->L2", "L2->T3", "T3->L1", "L1->T2"})
    check_cycle(scenario, ring)
    assert fc.fabrics.buffer_cycle(scenario, routes="possible") is not None
    assert fc.fabrics.buffer_cycle(fc.clos_unit(PAIRS, failed=()), routes="possible") is None


@pytest.mark.parametrize("ecmp_seed", range(4))
def test_up_down_routing_has_none_whatever_fails(ecmp_seed):
    """With spines, T1 and T4 are linked by paths that go up once and down once; the shortest ones include others."""
    options = {**BROKEN, "spines": 2, "planes": False, "ecmp_seed": ecmp_seed}
    assert fc.fabrics.buffer_cycle(fc.clos(PAIRS, **options, routing="up-down")) is None
    assert fc.fabrics.buffer_cycle(fc.clos(PAIRS, **options)) is not None


def test_up_down_paths_turn_once():
    scenario = fc.clos(PAIRS, **BROKEN, spines=2, planes=False, routing="up-down")
    for flow in scenario.flows:
        tiers = ["TLS".index(scenario.links[i].source[0]) for i in flow.path]
        rising = np.diff(tiers) > 0
        assert (np.sort(rising)[::-1] == rising).all()


def test_without_spines_the_broken_unit_has_no_up_down_path():
    with pytest.raises(fc.InputError, match="up-down"):
        fc.clos([(0, 31)], **BROKEN, spines=0, routing="up-down")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"failed": ("T1-L9",)}, "failed"),
        ({"failed": ("T1",)}, "failed"),
        ({"routing": "random"}, "routing"),
        ({"failed": ("L1-T1", "T1-L2")}, "no path"),
    ],
)
def test_a_clos_that_makes_no_sense_is_refused(options, named):
    with pytest.raises(fc.InputError, match=named):
        fc.clos_unit([(0, 31)], **options)


def test_routes_must_be_known():
    with pytest.raises(fc.InputError, match="routes"):
        fc.fabrics.buffer_cycle(fc.incast(2), routes="all")  # pyright: ignore[reportArgumentType]


def test_acks_count_unless_control_frames_carry_them():
    """a->b->c and b->c->a lack the turn at a, which ACKs of b->a->c make."""
    ends = [("a", "b"), ("b", "c"), ("c", "a"), ("b", "a"), ("a", "c")]
    links = tuple(fc.Link("10Gbps", name=f"{a}->{b}", source=a, target=b) for a, b in ends)
    flows = tuple(
        fc.Flow(path, fc.NoControl(), "10Gbps", source=f"s{k}", target=f"r{k}", egress_delay="1us")
        for k, path in enumerate([(0, 1), (1, 2), (3, 4)])
    )
    ring = fc.fabrics.buffer_cycle(fc.Scenario(links, flows))
    assert ring is not None
    assert set(ring) == {"a->b", "b->c", "c->a"}
    assert fc.fabrics.buffer_cycle(fc.Scenario(links, flows, ack_queue="control")) is None


def ring_of(switches, spans):
    """Switches in a circle, and flows from each to the next but so many."""
    names = [chr(ord("a") + k) for k in range(switches)]
    links = [
        fc.Link("10Gbps", name=f"{a}->{b}", source=a, target=b)
        for k, a in enumerate(names)
        for b in (names[(k + 1) % switches],)
    ]
    flows = [
        fc.Flow(
            tuple((first + j) % switches for j in range(length)), fc.NoControl(), "10Gbps", source=f"s{k}",
            target=f"r{k}", egress_delay="1us",
        )
        for k, (first, length) in enumerate(spans)
    ]  # fmt: skip
    return fc.Scenario(tuple(links), tuple(flows), ack_queue="control")


@given(st.integers(3, 6), st.data())
def test_a_ring_has_a_circle_if_flows_cover_every_turn(switches, data):
    """Counted by hand: a circle needs each port of the ring followed by the next in some flow."""
    span = st.tuples(st.integers(0, switches - 1), st.integers(1, switches - 1))
    spans = data.draw(st.lists(span, min_size=1, max_size=8))
    turns = {(first + j) % switches for first, length in spans for j in range(length - 1)}
    found = fc.fabrics.buffer_cycle(ring_of(switches, spans))
    assert (found is not None) == (len(turns) == switches)
    if found is not None:
        assert len(found) == switches
