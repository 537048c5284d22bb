"""Flows of the hybrid that wait for others, against closed forms, the fluid and packets.

Tolerances were set before measuring: rounding for flows that send alone at their line rate; one packet for each flow in
turn where several share a link, because a flow's last packet may come when the fluid of it has not; three standard
errors of a mean over seeds, and 1 %.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from benchmarks.order import ring
from fluidcc.errors import InputError
from fluidcc.workloads.fabrics import named_topology
from tests.engines.rings import chain, closed_form, ends

EXACT = 1e-9
US = 1e-6


def hybrid(scenario: fc.Scenario, until: str, **options: Any) -> fc.Trace:
    return fc.simulate(scenario, until, engine="hybrid", **options)


@pytest.mark.parametrize("scheme", ["none", "dcqcn"])
def test_one_after_the_other_in_closed_form(scheme: str) -> None:
    scenario = chain(scheme, [((0,), "sent", "3.3us"), ((1,), "receipt", "0us"), ((2,), "answer", "1.77us")])
    trace = hybrid(scenario, "400us")
    wire, way, back = closed_form(scenario)
    first, second, third = wire + 3.3 * US, wire + way, wire + way + back + 1.77 * US
    np.testing.assert_allclose(trace.summary["began_s"], np.cumsum([0.0, first, second, third]), rtol=EXACT)
    np.testing.assert_allclose(trace.summary["fct_s"], wire + way + back, rtol=EXACT)


@pytest.mark.parametrize("hosts", [4, 8])
@pytest.mark.parametrize("scheme", ["none", "dcqcn"])
def test_a_ring_takes_the_closed_form(scheme: str, hosts: int) -> None:
    scenario = named_topology(f"leaf-spine:1x1x{hosts}").scenario(
        ring(range(hosts), 8e5), scheme=scheme, preset="hpcc-eval"
    )
    wire, way, back = closed_form(scenario)
    trace = hybrid(scenario, "300us")
    assert max(ends(trace)) == pytest.approx(2 * (hosts - 1) * (wire + way) + back, rel=EXACT)


def test_the_last_of_several_counts() -> None:
    """Two flows end together, on one link; all of a class wait for all of another."""
    base = chain("none", [((), "known", "2us"), ((0, 1), "answer", "5us"), ((2,), "receipt", "0us")])
    flows = [dataclasses.replace(flow, source="", target="") for flow in base.flows]
    flows[2] = dataclasses.replace(flows[2], multiplicity=2.0)
    trace = hybrid(dataclasses.replace(base, flows=tuple(flows)), "800us")
    packets = fc.simulate(dataclasses.replace(base, flows=tuple(flows)), "800us", engine="packet")
    packet = 0.2 * US
    wire, way, back = closed_form(base)
    # The second sends on after the first: both have 2 us of the other's in front or behind.
    assert trace.summary["began_s"][2] == pytest.approx(2 * wire + way + back + 5 * US, abs=2 * packet)
    assert trace.summary["began_s"][3] == pytest.approx(4 * wire + 2 * way + back + 5 * US, abs=3 * packet)
    np.testing.assert_allclose(trace.summary["began_s"], packets.summary["began_s"], rtol=0, atol=3 * packet)


def test_an_end_that_is_known_first_may_be_the_last() -> None:
    """What has a long way to go beyond its last queue, and what is sent for longer and is soon there."""
    base = chain("none", [((), "known", 0.0), ((0, 1), "answer", "1us")])
    far, near, then = base.flows
    far = dataclasses.replace(far, egress_delay=40 * US, target="far away")
    near = dataclasses.replace(near, path=(1,), size=1.5 * near.size)
    links = (*base.links, dataclasses.replace(base.links[0], name="other", target="elsewhere"))
    trace = hybrid(dataclasses.replace(base, links=links, flows=(far, near, then)), "400us")
    ended = ends(trace)
    assert ended[0] > ended[1] + 30 * US
    assert trace.summary["began_s"][2] == pytest.approx(ended[0] + US, rel=EXACT)


def test_who_waits_in_vain_has_not_begun() -> None:
    scenario = chain("none", [((0,), "answer", "1us"), ((1,), "answer", "1us"), ((0,), "sent", "1ms")])
    trace = hybrid(scenario, "22us")
    assert trace.summary["began_s"][1:] == [None, None, None]
    assert trace.summary["fct_s"][1:] == [None, None, None]
    assert float(trace["rate"][:, 1:].max()) == 0.0
    assert fc.theory.finish_times(trace).tolist()[1:] == [math.inf] * 3


def test_flows_of_a_host_may_follow_each_other() -> None:
    """What waits for the other, be it through a third, cannot send at once; anything else shares a NIC."""
    base = chain("none", [((0,), "answer", 0.0), ((1,), "answer", 0.0)])
    first, second, third = base.flows
    after = dataclasses.replace(third, source=first.source)
    assert hybrid(dataclasses.replace(base, flows=(first, second, after)), "300us").summary["fct_s"][2] is not None
    for free in (dataclasses.replace(after, after=()), dataclasses.replace(after, after=(), source=second.source)):
        with pytest.raises(InputError, match=r"flow 2 source: host 'sender \d' sends flow \d too"):
            hybrid(dataclasses.replace(base, flows=(first, second, free)), "300us")
    both = dataclasses.replace(second, source="", after=(0,)), dataclasses.replace(third, source="", after=(0,))
    siblings = [dataclasses.replace(flow, source="twice") for flow in both]
    with pytest.raises(InputError, match="let one wait for the other"):
        hybrid(dataclasses.replace(base, flows=(first, *siblings)), "300us")


@pytest.mark.slow
@pytest.mark.parametrize("size", [3e6])
def test_jobs_that_share_links_take_as_long_as_in_packets(size: float) -> None:
    """Two rings of four across one spine under DCQCN, whose marks are random: when their last steps begin, over seeds.

    Those wait for data, not for ACKs, which in packets wait in the queues of the way back; the hybrid's take nothing
    of the links, so they are small here.
    """
    fabric = named_topology("leaf-spine:2x1x4", fabric_rate="200Gbps")
    first = ring([0, 4, 1, 5], size)
    second = ring([2, 6, 3, 7], size / 2, first=len(first), start=20 * US, pause=5 * US)
    scenario = fabric.scenario(first + second, scheme="dcqcn", preset="hpcc-eval")
    scenario = dataclasses.replace(scenario, ack_bytes=1.0)
    last = [range(len(first) - 4, len(first)), range(len(first + second) - 4, len(first + second))]
    found = {}
    for engine in ("hybrid", "packet"):
        runs = [fc.simulate(scenario, "40ms", engine=engine, seed=seed).summary["began_s"] for seed in range(32)]
        found[engine] = np.array([[max(began[f] for f in job) for job in last] for began in runs])
    error = np.sqrt(sum(each.var(axis=0, ddof=1) / len(each) for each in found.values()))
    means = {engine: each.mean(axis=0) for engine, each in found.items()}
    assert (np.abs(means["hybrid"] - means["packet"]) < 3 * error + 0.01 * means["packet"]).all(), (means, error)
    assert len(set(found["hybrid"][:, 0])) > 16  # seeds differ
    again = hybrid(scenario, "40ms", seed=5).summary["began_s"]
    assert max(again[f] for f in last[0]) == found["hybrid"][5, 0]  # and repeat
