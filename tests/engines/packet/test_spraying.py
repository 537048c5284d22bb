"""Packets and flowlets of one flow over several paths: shares, order, completion, failures, and who refuses them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.packet.build import prepare
from fluidcc.engines.packet.run import execute, times_of
from fluidcc.scenario.model import resolve
from fluidcc.workloads.fabrics import named_topology
from fluidcc.workloads.fabrics.slowdowns import alone

SPINES = 4
FABRIC = named_topology(
    f"leaf-spine:2x{SPINES}x4", fabric_rate="100Gbps"
)  # hosts 0 to 3 and 4 to 7, under leaves 8 and 9
UP = [f"8->{10 + spine}" for spine in range(SPINES)]


def scenario_of(rows: Any, scheme: str = "none", **options: Any) -> fc.Scenario:
    given = {"preset": "hpcc-eval", "load_balancing": "packet", **options}
    return FABRIC.scenario(rows, scheme=scheme, **given)


def ended(scenario: fc.Scenario, until: Any, seed: int = 1) -> Any:
    scenario = resolve(scenario)
    return execute(prepare(scenario, times_of(scenario, until, None, None), 0), seed)[0]


def sent_up(scenario: fc.Scenario, until: Any, seed: int = 1) -> np.ndarray:
    """Packets that each of the leaf's links up has sent."""
    trace = fc.simulate(scenario, until, engine="packet", seed=seed, log=True)
    d = trace.dataset
    there = (d.event_what.values == "transmit") & (d.event_kind.values == "data")
    return np.array([(there & (d.event_port.values == name.replace("->", " -> "))).sum() for name in UP])


def test_every_path_has_its_share() -> None:
    """2000 packets over four paths: within 4 standard errors of a quarter each, and not in turn."""
    counts = sent_up(scenario_of([(0, 4, 0, "2MB")]), "1ms")
    assert counts.sum() == 2000
    assert (np.abs(counts - 500) < 4 * math.sqrt(2000 * 0.25 * 0.75)).all()
    assert len(set(counts.tolist())) > 1
    assert (sent_up(scenario_of([(0, 4, 0, "2MB")], load_balancing="flow"), "1ms") > 0).sum() == 1


def test_order_is_counted_as_the_log_has_it() -> None:
    rows = [(source, 4 + source, 0, "300KB") for source in range(4)]
    trace = fc.simulate(scenario_of(rows), "1ms", engine="packet", log=True, seed=2)
    d = trace.dataset
    come = d.event_what.values == "receive"
    late = 0
    for flow in range(4):
        ends = d.event_end.values[come & (d.event_flow.values == flow)]
        late += int((ends < np.maximum.accumulate(ends)).sum())
    assert trace.summary["reordered"] == late > 0
    one_path = fc.simulate(scenario_of(rows, load_balancing="flow"), "1ms", engine="packet")
    assert one_path.summary["reordered"] == 0


@pytest.mark.parametrize("scheme", ["none", "hpcc", "hpcc-rx", "dcqcn", "swift", "nscc"])
@pytest.mark.parametrize("interval", [1, 8])
def test_flows_end_when_all_has_come(scheme: str, interval: int) -> None:
    """No sooner than alone, and with every byte there, also if the last packet comes before others."""
    rows = [(source, 4 + (source + k) % 4, 0, "101500B") for source in range(4) for k in range(3)]
    scenario = scenario_of(rows, scheme, ack_interval=interval)
    sim = ended(scenario, "3ms")
    assert (sim.flows["received"] == 101_500).all()
    assert (sim.flows["finish"] > 0).all()
    assert ((sim.flows["finish"] - sim.flows["start"]) * 1e-12 >= alone(scenario) * (1 - 1e-9)).all()
    assert sim.flows["acked"].tolist() == [101_500] * 12
    assert sim.flows["acked_wire"].tolist() == sim.flows["sent_wire"].tolist()


@pytest.mark.parametrize("recovery", ["gbn", "irn"])
def test_recovery_takes_reordering_for_loss(recovery: str) -> None:
    """What each does with a gap that is none: it sends again, and gives every byte once."""
    rows = [(source, 4 + source, 0, "200KB") for source in range(4)]
    sim = ended(scenario_of(rows, "dcqcn", loss_recovery=recovery), "20ms")
    assert sim.flows["received"].tolist() == [200_000] * 4
    assert (sim.flows["finish"] > 0).all()
    assert sim.core[0].retransmissions > 0
    assert sim.core[0].dropped == 0


def test_a_dead_link_is_left_out() -> None:
    """After the reroute nothing is lost any more, and the three paths left share."""
    failure = fc.Failure(UP[0], "20us", "10us")
    scenario = scenario_of([(0, 4, 0, "2MB")], "none", loss_recovery="irn", failures=(failure,))
    trace = fc.simulate(scenario, "5ms", engine="packet", log=True)
    d = trace.dataset
    lost = d.event_time.values[d.event_what.values == "drop"]
    assert len(lost) > 0
    assert lost.max() < 40e-6
    assert trace.summary["fct_s"][0] is not None
    sent = (d.event_what.values == "send") & (d.event_time.values > 40e-6)
    crossed = (d.event_what.values == "transmit") & (d.event_kind.values == "data") & (d.event_time.values > 40e-6)
    counts = [int((crossed & (d.event_port.values == name.replace("->", " -> "))).sum()) for name in UP]
    assert counts[0] == 0
    assert np.allclose(np.array(counts[1:]) / sent.sum(), 1 / 3, atol=4 * math.sqrt(2 / 9 / sent.sum()) + 0.01)


def test_a_flowlet_keeps_its_path() -> None:
    """A train without pauses is one flowlet; a paced one, with a gap shorter than its own, is as many as packets."""
    rows = [(0, 4, 0, "500KB")]
    assert (sent_up(scenario_of(rows, load_balancing="flowlet", flowlet_gap="1s"), "1ms") > 0).sum() == 1
    counts = sent_up(scenario_of(rows, load_balancing="flowlet", flowlet_gap="10ns"), "1ms")
    assert (np.abs(counts - 125) < 4 * math.sqrt(500 * 0.25 * 0.75)).all()


def test_flows_with_one_path_are_what_they_were() -> None:
    """Under one leaf there is no choice, and no random number is drawn for it."""
    rows = [(0, 1, 0, "200KB"), (2, 1, 0, "200KB")]
    runs = [
        fc.simulate(scenario_of(rows, "dcqcn", load_balancing=how), "1ms", engine="packet").summary["fct_s"]
        for how in ("flow", "packet")
    ]
    assert runs[0] == runs[1]


def test_who_has_one_path_says_so() -> None:
    scenario = scenario_of([(0, 4, 0, "1MB")], "dcqcn")
    for engine in ("fluid", "hybrid"):
        with pytest.raises(fc.InputError, match=f"load_balancing: flows of the {engine} engine have one path"):
            fc.simulate(scenario, "100us", engine=engine)
    with pytest.raises(fc.InputError, match="load_balancing: 'spray' is not a choice; write flow or packet or flowlet"):
        scenario_of([(0, 4)], load_balancing="spray")
    with pytest.raises(fc.InputError, match="flowlet_gap"):
        scenario_of([(0, 4)], load_balancing="flowlet", flowlet_gap=0)
