"""Round trips and idle durations of packets over two links whose times are whole numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.scenario import round_trips
from fluidcc.scenario.model import Flow, Link, Scenario, base_rtt, resolve
from fluidcc.scenario.round_trips import train
from fluidcc.units import Rate


def scenario(scheme: Any = None, **flow: Any) -> Scenario:
    """Payload 800 and header 200 bytes, ACKs of 100; links of 1000 and 500 bytes/s after a NIC of 2000 bytes/s."""
    links = (
        Link(Rate(1000), delay=3.0, name="first", source="a", target="b"),
        Link(Rate(500), delay=4.0, name="second", source="b", target="c"),
    )
    given: dict[str, Any] = {"path": (0, 1), "line_rate": Rate(2000), "access_delay": 1.0, "egress_delay": 0.0}
    flows = (Flow(scheme=fc.NoControl() if scheme is None else scheme, **given | flow),)
    return resolve(Scenario(links, flows, packet_size=800.0, header_bytes=200.0, ack_bytes=100.0))


def both(**flow: Any) -> tuple[Scenario, Flow]:
    made = scenario(**flow)
    return made, made.flows[0]


@pytest.mark.parametrize(
    ("flow", "rates"),
    [
        ({}, [2000.0, 1000.0, 500.0]),
        ({"egress_delay": 2.0}, [2000.0, 1000.0, 500.0, 2000.0]),  # the receiver is beyond another link
        ({"target": "c"}, [2000.0, 1000.0, 500.0]),
        ({"target": "d"}, [2000.0, 1000.0, 500.0, 2000.0]),
        ({"target": "c", "egress_delay": 2.0}, [2000.0, 1000.0, 500.0]),  # names say more than delays
        ({"target": "d", "egress_delay": 0.0}, [2000.0, 1000.0, 500.0, 2000.0]),
    ],
)
def test_a_path_ends_at_its_last_link_or_at_the_receivers(flow: dict[str, Any], rates: list[float]) -> None:
    made, one = both(**flow)
    assert round_trips.hop_rates(made, one) == rates
    assert round_trips.switches(made, one) == len(rates) - 1


def test_a_delay_beyond_the_last_link_that_is_not_known_yet_may_be_one() -> None:
    made, one = both()
    later = dataclasses.replace(one, egress_delay=jnp.asarray(0.0))  # of its kind are traced ones
    assert round_trips.hop_rates(made, later) == [2000.0, 1000.0, 500.0, 2000.0]


def test_a_packet_is_put_onto_every_link_and_its_ack_too() -> None:
    """1000 bytes take 0.5, 1 and 2 s, an ACK of 100 a tenth of it; there and back are 16 s."""
    made, flow = both()
    assert base_rtt(made, flow) == 16.0
    assert round_trips.serialisation_delays(made, flow) == [0.5, 1.0, 2.0]
    assert round_trips.ack_delay(made, flow) == pytest.approx(0.35)
    assert round_trips.serialisation_rtt(made, flow) == pytest.approx(3.85)
    assert round_trips.base_rtt_with_serialisation(made, flow) == pytest.approx(19.85)
    assert round_trips.payload_base_rtt(made, flow) == pytest.approx(16 + 0.4 + 0.8 + 1.6)
    assert round_trips.slowest_rate(made, flow) == 500.0
    assert round_trips.least_bdp(made) == pytest.approx(500 * 19.85)


def test_telemetry_lengthens_packets_and_acks() -> None:
    made, flow = both(scheme=fc.HPCC())
    more = float(flow.scheme.int_bytes)
    assert more > 0
    assert made.wire_packet == 1000.0
    assert made.wire_packet_of(flow) == 1000.0 + more
    assert round_trips.serialisation_delays(made, flow)[1] == pytest.approx((1000.0 + more) / 1000)
    assert round_trips.ack_delay(made, flow) == pytest.approx((100.0 + more) * 3.5e-3)


def test_a_fixed_feedback_delay_takes_the_place_of_propagation_alone() -> None:
    made, flow = both(scheme=fc.DCQCN(feedback_delay=5.0))
    assert round_trips.propagation(made, flow) == 5.0
    assert round_trips.base_rtt_with_serialisation(made, flow) == pytest.approx(8.85)
    made, flow = both(scheme=fc.DCQCN(feedback_delay=None))
    assert round_trips.propagation(made, flow) == 16.0


def test_delays_count_there_and_back() -> None:
    made, flow = both(access_delay=0.5, egress_delay=0.25)
    assert base_rtt(made, flow) == 2 * (0.5 + 3 + 4 + 0.25)
    short = scenario(path=(1,))
    assert base_rtt(short, short.flows[0]) == 2 * (1 + 4)


def test_the_largest_round_trip_and_the_least_product_are_of_any_flow() -> None:
    made = scenario()
    flow = made.flows[0]
    flows = (flow, dataclasses.replace(flow, path=(0,)), dataclasses.replace(flow, path=(1,)))
    several = dataclasses.replace(made, flows=flows)
    assert round_trips.largest_base_rtt(several) == pytest.approx(19.85)
    assert round_trips.largest_base_rtt(several, round_trips.payload_base_rtt) == pytest.approx(18.8)
    assert round_trips.least_bdp(several) == pytest.approx(500 * (10 + 2.5 + 0.25))  # of 1000 bytes/s: 8 + 1.65, 9650


def test_each_kind_of_path_is_worked_out_once() -> None:
    asked: list[Any] = []
    made = scenario()
    flow = made.flows[0]
    alike = dataclasses.replace(flow, start=9.0, size=5.0, name="late")
    others = [
        dataclasses.replace(flow, **{name: value})
        for name, value in (
            ("path", (0,)), ("access_delay", 2.0), ("egress_delay", 2.0), ("line_rate", Rate(1500)),
            ("initial_rate", Rate(100)), ("scheme", fc.NoControl()), ("target", "c"), ("target", "d"),
        )
    ]  # fmt: skip
    several = dataclasses.replace(made, flows=(flow, alike, *others))
    found = round_trips._distinct(several, lambda scenario, each: asked.append(each) or 1.0)
    assert asked == [flow, *others]
    assert found == [1.0] * 9


@pytest.mark.parametrize(("a", "b", "large", "small"), [(1.0, 2.0, 2.0, 1.0), (3, 2.0, 3, 2.0), (2.0, 2.0, 2.0, 2.0)])
def test_of_two_plain_values_one_is_larger(a: float, b: float, large: float, small: float) -> None:
    assert (round_trips.larger(a, b), round_trips.smaller(a, b)) == (large, small)


# -- idle networks -----------------------------------------------------------------------------------------------


def by_hand(rates: list[float], payloads: list[float], header: float, ack: float, there: float) -> tuple[float, float]:
    """Packets one by one: each leaves a hop as soon as it is there and the one before has left."""
    arrived = [0.0] * len(payloads)
    for rate in rates:
        free = 0.0
        for k, payload in enumerate(payloads):
            free = max(free, arrived[k]) + (payload + header) / rate
            arrived[k] = free
    received = arrived[-1] + there
    for rate in rates[::-1]:
        free = 0.0
        for k in range(len(payloads)):
            free = max(free, arrived[k]) + ack / rate
            arrived[k] = free
    return received, arrived[-1] + 2 * there


@pytest.mark.parametrize(
    ("size", "payloads"),
    [
        (1.0, [1.0]),
        (800.0, [800.0]),  # just one
        (801.0, [800.0, 1.0]),
        (1600.0, [800.0, 800.0]),
        (2500.0, [800.0, 800.0, 800.0, 100.0]),
        (8000.0, [800.0] * 10),
    ],
)
@pytest.mark.parametrize(
    "flow", [{}, {"egress_delay": 2.0}, {"path": (1,)}, {"line_rate": Rate(100)}, {"scheme": fc.HPCC()}]
)
def test_a_train_is_stored_and_forwarded_packet_by_packet(
    flow: dict[str, Any], size: float, payloads: list[float]
) -> None:
    made, one = both(**flow)
    rates = [float(rate) for rate in round_trips.hop_rates(made, one)]
    more = float(one.scheme.int_bytes)  # telemetry, there and back
    received, answered = train(made, one, np.array([size]))
    expected = by_hand(rates, payloads, 200.0 + more, 100.0 + more, float(base_rtt(made, one)) / 2)
    assert (received[0], answered[0]) == pytest.approx(expected)


def test_sizes_are_worked_out_at_once() -> None:
    made, flow = both()
    sizes = np.array([1.0, 801.0, 8000.0])
    together, alone = train(made, flow, sizes), [train(made, flow, sizes[[k]]) for k in range(3)]
    for k in range(2):
        assert together[k].tolist() == [each[k][0] for each in alone]
