"""Queues, ordered flows and flow control of the fluid, step by step in NumPy, against packets and sums by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.fluid import queues as module
from fluidcc.engines.fluid.lossless import LosslessNetwork
from fluidcc.engines.fluid.queues import QueueNetwork
from fluidcc.engines.fluid.state import Counts
from tests.engines.fluid.in_numpy import Run, plain_network, queues

GIGABIT = 1e9 / 8
pytestmark = pytest.mark.usefixtures("numpy_only")


# -- ordered flows ---------------------------------------------------------------------------------------------

PACKET = 100.0  # bytes, so small that a queue by packets is all but that of a fluid


def by_packets(starts: list[float], sizes: list[float], rate: float, lag: float, capacity: float, at: Any) -> Any:
    """Queue at instants, of flows that send packets back to back over a way of a lag [bytes]."""
    came = np.sort(
        np.concatenate(
            [s + lag + PACKET / rate * np.arange(1, n // PACKET + 1) for s, n in zip(starts, sizes, strict=True)]
        )
    )
    found = []
    free, leaves = 0.0, []
    for time in came:
        free = max(free, time) + PACKET / capacity
        leaves.append(free)
    for time in at:
        waiting = (came <= time).sum() - (np.array(leaves) <= time).sum()
        found.append(PACKET * waiting)
    return np.array(found)


@pytest.mark.parametrize("pause", [0.0, 2.3e-6])
def test_what_waits_comes_to_the_second_link_a_lag_later(pause: float) -> None:
    """A flow that waits for another fills a slow second link from its beginning and the way there on, as packets do.

    To three packets, and what the queue grows by in a step: in that in which the first byte comes, the link also serves
    before it.
    """
    rate, slow, size, dt = 40 * GIGABIT, 25 * GIGABIT, 40e3, 0.5e-6
    links = (fc.Link("40Gbps", "6us", source="a", target="b"), fc.Link("25Gbps", "1us", source="b", target="c"))
    first = fc.Flow((0,), fc.NoControl(), "40Gbps", access_delay="1us", size=size, source="h", target="b")
    then = fc.Flow(
        (0, 1), fc.NoControl(), "40Gbps", access_delay="1us", size=size, source="h", target="c", start=pause,
        after=(0,), after_what="sent",
    )  # fmt: skip
    run = Run(fc.Scenario(links, (first, then), header_bytes=0), dt)
    found = queues(run.steps(60))[:, 1]
    expected = by_packets([size / rate + pause], [size], rate, 7e-6, slow, dt * np.arange(61))
    assert expected.max() > 10e3
    assert np.abs(found - expected).max() <= 3 * PACKET + dt * (rate - slow)


# -- flow control ----------------------------------------------------------------------------------------------


def lossless(**pfc: Any) -> LosslessNetwork:
    scenario = fc.incast(1, scheme=fc.ACC(), pfc=fc.PFC(**pfc), buffer="9MB")
    return LosslessNetwork(plain_network(scenario), 1, np.float64(1.0))


@pytest.mark.parametrize("steps", [8, 64, 512])
@pytest.mark.parametrize("gap", [0.0, 30e3])
def test_pauses_last_from_xoff_to_xon(steps: int, gap: float) -> None:
    """Contents rise to 200 KB and fall to 0, twice; the total of pauses is exact at coarse and at fine steps.

    A half of 1 ms goes by until the top: 100 KB is passed at half of it, and xon as much after the top as it is below.
    """
    system = lossless(xoff=100e3, xon_gap=gap)
    period = 1e-3
    dt = period / steps
    zero = np.zeros((3, 1))
    now, stopping = Counts(zero, zero, np.zeros((1, 1))), np.zeros((1, 1))
    told = []
    for step in range(1, 2 * steps + 1):
        left = step / steps % 1.0
        came = np.array([[200e3 * min(2 * left, 2 - 2 * left)], [0.0], [0.0]])
        now, stopping = system._flow_control(now, Counts(came, zero, now.paused), stopping, np.float64(dt))
        told.append(float(stopping[0, 0]))
    top = 0.5 * period
    once = (top - 100e3 / 200e3 * top) + (200e3 - (100e3 - gap)) / 200e3 * top
    assert float(now.paused[0, 0]) == pytest.approx(2 * once, rel=1e-12)
    assert told[steps // 2 - 1] == 1.0
    assert told[steps - 1] == 0.0


@pytest.mark.parametrize(
    ("stopped", "content", "stops"), [(0.0, 100e3, 0.0), (0.0, 101e3, 1.0), (1.0, 70e3, 0.0), (1.0, 71e3, 1.0)]
)
def test_a_threshold_is_passed_by_more_and_reached_again_by_no_more(
    stopped: float, content: float, stops: float
) -> None:
    """Xoff of 100 KB stops what is beyond it; at xon of 70 KB senders go on."""
    system = lossless(xoff=100e3, xon_gap=30e3)
    zero, came = np.zeros((3, 1)), np.array([[content], [0.0], [0.0]])
    now = Counts(came, zero, np.zeros((1, 1)))
    _, found = system._flow_control(now, now, np.array([[stopped]]), np.float64(1e-6))
    assert float(found[0, 0]) == stops


def test_reserve_raises_both_thresholds() -> None:
    system = lossless(xoff=100e3, xon_gap=30e3, reserve=7e3)
    assert float(np.ravel(system._gate.xoff)[0]) == 107e3
    assert float(np.ravel(system._gate.xon)[0]) == 77e3
    assert float(np.ravel(lossless(xoff=10e3, xon_gap=30e3)._gate.xon)[0]) == 0.0


def test_marks_wait_only_in_queues_that_hold_up_their_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark waits in its own queue and all that follow, an ACK in all of them; the second way has fixed delays."""
    monkeypatch.setattr(module, "jnp", np)
    net = SimpleNamespace(
        marking_lag=np.full((3, 1), 10.0), own_lag=np.full((2, 1), 20.0), arrival_lag=None, paths=((0, 1), (1,)),
        waits=(True, False), flows=((0, 0), (1, 0)),
    )  # fmt: skip
    made: Any = SimpleNamespace(network=net, _first_hop=(0, 2))
    z: Any = SimpleNamespace(wait=np.array([[1.0], [2.0], [5.0]]), wait_growth=np.array([[0.5], [-8.0], [1.0]]))
    marking, own = QueueNetwork._lags(made, None, z, 1.0)  # pyright: ignore[reportArgumentType]
    assert np.ravel(marking).tolist() == [11.5, 10.0, 10.0]
    assert np.ravel(own).tolist() == [21.5, 20.0]


def test_what_comes_to_a_hop_is_what_left_the_one_before_with_its_marks() -> None:
    """Rows of a record: left, CE and UE of each hop, then what hosts sent; a way of three hops, one of one."""
    read: list[Any] = []

    def reader(history: Any, n: Any, dt: Any, lag: Any, rows: Any) -> Any:
        read.append(rows)
        return np.array(rows, float)[:, None]

    gate = SimpleNamespace(own=(True, False, False, True), hop_lag=np.zeros((4, 1)))
    hops = ((0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 0, 1))
    net = SimpleNamespace(multiplicity=np.array([[3.0], [7.0]]))
    made: Any = SimpleNamespace(
        _gate=gate, _hops=hops, _rows=(0, 0, 12), network=net, _hop_flows=(0, 0, 0, 1), _read=reader
    )
    now: Any = SimpleNamespace(came=np.zeros((12, 1)))
    came = LosslessNetwork._came(made, None, None, None, now)  # pyright: ignore[reportArgumentType]
    left_of = lambda h: 12 + h  # noqa: E731
    assert read[0][:4] == (12, left_of(0), left_of(1), 13)
    assert read[0][4 + 1 : 4 + 3] == (16, 17)  # CE of hops 0 and 1
    assert read[0][8 + 1 : 8 + 3] == (20, 21)  # UE
    assert np.ravel(came)[:4].tolist() == [3 * 12.0, 12.0, 13.0, 7 * 13.0]
    assert np.ravel(came)[4:].tolist() == [0.0, 16.0, 17.0, 0.0, 0.0, 20.0, 21.0, 0.0]


def test_nothing_is_newly_acknowledged_before_the_first_ack() -> None:
    """A round trip is 4.2 us: of the first 4 us nothing is answered, and then about what a line sends in a step."""
    scenario = fc.incast(1, scheme=fc.ACC(), pfc=fc.PFC(xoff="100KB"), buffer="9MB", rate="100Gbps")
    steps = Run(scenario, 0.5e-6).steps(12)
    newly = [float(carry.z.newly[0, 0]) for carry in steps]
    assert newly[:8] == [0.0] * 8
    assert newly[-1] == pytest.approx(12.5e9 * 0.5e-6, rel=1e-6)
