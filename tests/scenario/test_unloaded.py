"""Times of a flow alone, against each packet stored and forwarded one by one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.scenario import round_trips
from fluidcc.scenario.model import base_rtt, resolve
from fluidcc.scenario.round_trips import train


def one_by_one(rates: list[float], lengths: list[float], ack: float) -> tuple[float, float]:
    """Time when the last packet is through all hops, and its ACK back through them, without propagation."""
    done = [0.0] * len(lengths)
    for rate in rates:
        free = 0.0
        for k, length in enumerate(lengths):
            free = done[k] = max(done[k], free) + length / rate
    back = done.copy()
    for rate in reversed(rates):
        free = 0.0
        for k in range(len(lengths)):
            free = back[k] = max(back[k], free) + ack / rate
    return done[-1], back[-1]


@pytest.mark.parametrize("rates", [["100Gbps", "400Gbps", "25Gbps"], ["25Gbps", "100Gbps", "40Gbps"]])
@pytest.mark.parametrize("ack", ["64B", "2KB"])
def test_a_train_of_packets_and_a_short_one(rates: list[str], ack: str) -> None:
    """Headers of 48 B in each; ACKs larger than a packet wait for each other, which is left out of the rule."""
    links = tuple(fc.Link(rate, "1us") for rate in rates[1:])
    flow = fc.Flow(tuple(range(len(links))), fc.NoControl(), rates[0], size="1MB")
    scenario = resolve(fc.Scenario(links, (flow,), packet_size="1000B", header_bytes="48B", ack_bytes=ack))
    (flow,) = scenario.flows
    sizes = np.array([1.0, 999.0, 1000.0, 1001.0, 4000.0, 7300.0])
    received, answered = train(scenario, flow, sizes)
    hops = [float(rate) for rate in round_trips.hop_rates(scenario, flow)]
    trip = float(base_rtt(scenario, flow))
    for k, size in enumerate(sizes):
        full = int(np.ceil(size / 1000)) - 1
        there, back = one_by_one(hops, [1048.0] * full + [size - 1000 * full + 48], float(scenario.ack_bytes))
        assert received[k] == pytest.approx(there + trip / 2, rel=1e-12)
        if ack == "64B":
            assert answered[k] == pytest.approx(back + trip, rel=1e-12)


def test_least_and_largest_of_paths() -> None:
    """A NIC of 10 Gb/s before 40: the least product is of the slower flow, the longest trip of the further one."""
    links = (fc.Link("40Gbps", "1us"), fc.Link("100Gbps", "5us"))
    flows = (
        fc.Flow((0,), fc.NoControl(), "10Gbps"),
        fc.Flow((0, 1), fc.NoControl(), "100Gbps"),
        fc.Flow((1,), fc.NoControl(), "100Gbps"),
    )
    scenario = resolve(fc.Scenario(links, flows))
    slowest = [float(round_trips.slowest_rate(scenario, flow)) for flow in scenario.flows]
    assert slowest == [1.25e9, 5e9, 12.5e9]
    trips = [float(round_trips.base_rtt_with_serialisation(scenario, flow)) for flow in scenario.flows]
    assert round_trips.largest_base_rtt(scenario) == max(trips) == trips[1]
    products = [rate * trip for rate, trip in zip(slowest, trips, strict=True)]
    assert round_trips.least_bdp(scenario) == pytest.approx(min(products))
    assert min(products) == products[0]


def test_lines_of_flows_name_what_is_not_usual() -> None:
    """A start of only one of two flows, a size of only one, and another first rate."""
    for name, values, usual in (("start", [0.0, "1ms"], [0.0, 0.0]), ("size", ["1MB", "1GB"], [np.inf, np.inf])):
        scenario = fc.incast(2)
        flows = [dataclasses.replace(f, **{name: v}) for f, v in zip(scenario.flows, values, strict=True)]
        assert f"{name} " in repr(dataclasses.replace(scenario, flows=tuple(flows))).splitlines()[-1]
        flows = [dataclasses.replace(f, **{name: v}) for f, v in zip(scenario.flows, usual, strict=True)]
        assert f"{name} " not in repr(dataclasses.replace(scenario, flows=tuple(flows))).splitlines()[-1]
