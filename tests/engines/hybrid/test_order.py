"""Flows of the hybrid that wait for others, against closed forms, the fluid and packets.

Tolerances were set before measuring: rounding for flows that send alone at their line rate; one packet for each flow in
turn where several share a link, because a flow's last packet may come when the fluid of it has not; three standard
errors of a mean over seeds.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.fabrics import named_topology
from tests.engines.rings import chain, closed_form, ends, ring

EXACT = 1e-9
US = 1e-6


def hybrid(scenario: fc.Scenario, until: str, **options: int) -> fc.Trace:
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


def test_who_waits_in_vain_has_not_begun() -> None:
    scenario = chain("none", [((0,), "answer", "1us"), ((1,), "answer", "1us"), ((0,), "sent", "1ms")])
    trace = hybrid(scenario, "22us")
    assert trace.summary["began_s"][1:] == [None, None, None]
    assert trace.summary["fct_s"][1:] == [None, None, None]
    assert float(trace["rate"][:, 1:].max()) == 0.0
    assert fc.finish_times(trace).tolist()[1:] == [math.inf] * 3


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
def test_jobs_that_share_links_take_as_long_as_in_packets() -> None:
    """Two rings of four across one spine under DCQCN, whose marks are random: means over seeds."""
    fabric = named_topology("leaf-spine:2x1x4", fabric_rate="200Gbps")
    first = ring([0, 4, 1, 5], 3e6)
    second = ring([2, 6, 3, 7], 1.5e6, first=len(first), start=20 * US, pause=5 * US)
    scenario = fabric.scenario(first + second, scheme="dcqcn", preset="hpcc-eval")
    scenario = dataclasses.replace(scenario, ack_bytes=1.0)  # the hybrid's take nothing of the links
    found = {}
    for engine in ("hybrid", "packet"):
        runs = [ends(fc.simulate(scenario, "40ms", engine=engine, seed=seed)) for seed in range(32)]
        found[engine] = np.array([[end[: len(first)].max(), end[len(first) :].max()] for end in runs])
        assert np.isfinite(found[engine]).all()
    error = np.sqrt(sum(each.var(axis=0, ddof=1) / len(each) for each in found.values()))
    assert (np.abs(found["hybrid"].mean(axis=0) - found["packet"].mean(axis=0)) < 3 * error).all()
    assert len(set(found["hybrid"][:, 0])) > 16  # seeds differ
    once = hybrid(scenario, "40ms", seed=5)
    assert max(ends(once)[: len(first)]) == found["hybrid"][5, 0]  # and repeat
