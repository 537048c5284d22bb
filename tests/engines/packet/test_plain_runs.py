"""Short runs of the packet engine in plain Python, in which every packet can be counted."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.packet import layout
from fluidcc.engines.packet.host import blocked, finish
from tests.engines.packet.plain import plain, simulated

PACKET = 1000  # bytes; 800 ns at 10 Gb/s


def star(senders: int, **options: Any) -> fc.Scenario:
    """Senders at line rate into a switch, towards one receiver at 10 Gb/s."""
    return fc.incast(senders, rate="10Gbps", scheme=fc.NoControl(), marking=lambda rate: None, **options)


@pytest.mark.parametrize(("window", "held"), [(2 * PACKET, True), (2 * PACKET + 1, False)])
def test_a_window_that_is_exactly_full_holds_a_flow_back(window: int, held: bool) -> None:
    core, flow = (layout.records(kind, 1)[0] for kind in (layout.CORE, layout.FLOW))
    core.ack_interval = core.payload_window = 1
    flow.payload, flow.sent, flow.acked, flow.window = PACKET, 5 * PACKET, 3 * PACKET, window
    assert bool(plain(blocked)(core, flow, 0)) is held


@pytest.mark.parametrize("packets", [5, 8])
def test_the_last_packet_is_answered_however_few_came_before(packets: int) -> None:
    """An ACK for every fourth packet and one for the last, or a flow never ends."""
    summary = simulated(star(1, size=packets * PACKET, ack_interval=4), "100us", sample_interval="10us").summary
    assert (summary["packets"], summary["acks"]) == (packets, 2)
    assert summary["fct_s"][0] is not None


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_flow_that_ends_costs_no_other_its_turn(first: int) -> None:
    """One of three flows of a NIC ends: the two that are left go on by turns."""
    link = fc.Link("10Gbps", name="l", source="switch", target="sink")
    flows = [fc.Flow((0,), fc.NoControl(), "10Gbps", source="host", target="sink") for _ in range(3)]
    flows[first] = dataclasses.replace(flows[first], size=7 * PACKET)
    log = simulated(fc.Scenario((link,), tuple(flows)), "60us", sample_interval="10us", log=True).dataset
    sent = log.event_flow.values[log.event_what.values == "send"]
    others = sent[sent != first]
    assert (sent == first).sum() == 7
    assert len(others) > 50
    assert (others[1:] != others[:-1]).all()


@pytest.mark.parametrize("last", range(4))
@pytest.mark.parametrize("done", range(4))
def test_flows_keep_their_order_as_one_ends(last: int, done: int) -> None:
    """One of four flows has sent last and one ends. Catches a turn that the flow behind it loses."""
    core, port = (layout.records(kind, 1)[0] for kind in (layout.CORE, layout.PORT))
    port.first, port.active, port.turn = 1, 4, last
    lists, flows = np.array([9, 0, 1, 2, 3, 9]), layout.records(layout.FLOW, 4)
    plain(finish)(SimpleNamespace(core=[core], ports=[port], lists=lists, flows=flows, calendar=None), done)
    assert port.active == 3
    turns = [int(lists[1 + (port.turn + k) % 3]) for k in range(1, 4)]
    assert turns == [f % 4 for f in range(last + 1, last + 5) if f % 4 != done]


def test_samples_are_of_their_own_times() -> None:
    """Two senders of 10 Gb/s fill a queue of 10 Gb/s by 12.5 KB in 10 us."""
    queue = simulated(star(2), "100us", sample_interval="10us")["queue"]
    came = 1.25e9 * (queue["time"].values - 2.8e-6)  # a microsecond each to the switch, and the first packets' own time
    np.testing.assert_allclose(queue.values[1:, 0], came[1:], atol=2.5 * PACKET)
