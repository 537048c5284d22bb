"""Ports that ACKs alone would fill, and how far below its threshold a paused port goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.flow_level import ideal
from fluidcc.engines.flow_level.run import flow_times
from fluidcc.workloads.fabrics import named_topology
from tests.engines.packet.plain import plain


def solved(there: Any, back: Any, ack_share: Any, capacity: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rates, and the ACKs' load of each port."""
    there, back = np.array(there, np.int32), np.array(back, np.int32)
    flows, ports = len(there), len(capacity)
    rate, acks, room = np.zeros(flows), np.zeros(ports), np.zeros(ports)
    number = np.arange(flows)
    plain(ideal.solve)(
        there, back, np.array(ack_share), number, np.array(capacity), number, flows, acks, room,
        np.zeros(ports, np.int64), np.zeros(ports), np.zeros(ports, np.int8), rate,
    )  # fmt: skip
    return rate, acks


@pytest.mark.parametrize("capacity", [1.0, 8.0])
def test_acks_leave_a_hundredth_of_a_port(capacity: float) -> None:
    """Each byte of transfer 0 makes two of ACKs, over the port of transfer 1, which must not stand for ever."""
    rate, acks = solved([[0], [1]], [[1], [0]], [2.0, 0.0], [capacity] * 2)
    np.testing.assert_allclose(rate, [capacity, capacity / 100], rtol=1e-12)
    np.testing.assert_allclose(acks, [0.0, 2.0 * capacity], rtol=1e-12)


def test_acks_that_leave_more_than_the_floor_are_taken_off() -> None:
    rate, acks = solved([[0], [1]], [[1], [0]], [0.3, 0.0], [1.0, 2.0])
    np.testing.assert_allclose(rate, [1.0, 1.7], rtol=1e-12)
    np.testing.assert_allclose(acks, [0.0, 0.3], rtol=1e-12)


def test_acks_are_those_of_the_rates_found() -> None:
    """Two transfers that face each other, at shares of 0.4 and 0.2: r0 + 0.2 r1 = 1 and r1 + 0.4 r0 = 1."""
    rate, acks = solved([[0], [1]], [[1], [0]], [0.4, 0.2], [1.0, 1.0])
    exact = np.linalg.solve([[1.0, 0.2], [0.4, 1.0]], [1.0, 1.0])
    np.testing.assert_allclose(rate, exact, atol=1e-4)  # the change that ends the rounds
    np.testing.assert_allclose(acks, [0.2 * exact[1], 0.4 * exact[0]], atol=1e-4)


GAPS = [50e3, 100e3]


def pauses(gap: float, packets: bool) -> int:
    """PAUSEs of two hosts of 100 Gb/s that share a port of 100 Gb/s, by packets or by steps."""
    topology = named_topology("leaf-spine:1x1x3")
    pfc = fc.PFC(xoff="150KB", xon_gap=gap)
    scenario = topology.scenario(
        [(0, 2, 0.0, 1.5e6), (1, 2, 0.0, 1.5e6)], ecmp_seed=1, scheme=fc.NoControl(), pfc=pfc, buffer="9MB"
    )
    if packets:
        return int(fc.simulate(scenario, "1ms", engine="packet").summary["pfc_pauses"])
    return int(flow_times(scenario, model="dynamics").numbers["pauses"])


def test_a_port_goes_on_a_gap_below_its_threshold() -> None:
    """Count as many pauses as packets do, to a quarter: each takes a gap and what comes until it is heard of.

    Steps hear of it a step late, in which up to a quarter of these gaps comes. Without the gap there would be as many
    pauses for both, and several times too many.
    """
    found = np.array([(pauses(gap, False), pauses(gap, True)) for gap in GAPS])
    assert (found[:, 1] > 5).all()
    assert (np.abs(found[:, 0] / found[:, 1] - 1.0) <= 0.25).all()  # a step's arrivals over a gap
