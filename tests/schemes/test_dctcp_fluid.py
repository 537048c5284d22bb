"""DCTCP's fluid model against its packets, and by hand. Tolerances were set before anything was measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.signals import Progress
from fluidcc.errors import InputError
from fluidcc.schemes.dctcp import fluid
from tests.schemes.plain_laws import plain

model = plain(fluid)
CAPACITY, PACKET, T = 12.5e9, 1000.0, 4e-6


def of(flows: int, step_marking: str = "300KB", **options: Any) -> Any:
    return fc.incast(flows, rate="100Gbps", scheme=fc.DCTCP(**options), marking=fc.RED(step_marking, step_marking, 1.0))


def merged(flows: int, step_marking: str = "300KB", until: str = "10ms") -> fc.Trace:
    """Run the fluid with equal flows as one class: one shape for all numbers."""
    one = fc.incast(
        1,
        multiplicity=flows,
        rate="100Gbps",
        scheme=fc.DCTCP(),
        marking=fc.RED(step_marking, step_marking, 1.0),
    )
    return fc.simulate(one, until, estimate_error=False)


@pytest.mark.parametrize("flows", [8, pytest.param(16, marks=pytest.mark.slow)])
def test_queue_as_in_packets(flows: int) -> None:
    """Mean within 5 %, standard deviation within 15 %, alpha within 15 %: flows of packets cut nearly together."""
    runs = [merged(flows), fc.simulate(of(flows), "10ms", engine="packet")]
    fluid, packet = (found.summary["queue_bytes"] for found in runs)
    assert fluid["mean"] == pytest.approx(packet["mean"], rel=0.05)
    assert fluid["std"] == pytest.approx(packet["std"], rel=0.15)
    assert fluid["max_whole_run"] == pytest.approx(packet["max_whole_run"], rel=0.05)
    alpha = [float(found["alpha"].sel(time=slice(5e-3, None)).mean()) for found in runs]
    assert alpha[0] == pytest.approx(alpha[1], rel=0.15)


def step(state: fluid.State, acked: float, sent: float, newly: float, marked: float) -> fluid.State:
    scheme = fc.DCTCP(base_rtt=T, initial_window=CAPACITY * T)
    one = np.ones((1, 1))
    sizes = PACKET * one, PACKET * one, CAPACITY * one, one[None]
    observed = Progress(sent * one, acked * one, newly * one, *sizes, T * one)
    new = model.jump(scheme, model.State(*(np.asarray(leaf) for leaf in state)), observed, marked * one)
    return model.State(*(np.asarray(leaf).item() for leaf in new))


def test_section_31_step_by_step() -> None:
    one = np.ones((1, 1))
    state = model.start(fc.DCTCP(base_rtt=T, initial_window=CAPACITY * T), CAPACITY * one, (1, 1), 1)
    first = step(state, 1000.0, 5e4, 1000.0, 0.0)
    assert first.window_end == 5e4
    assert first.window == pytest.approx(5e4 + PACKET * 1000.0 / 5e4)  # a packet in a window
    held = step(first, 2000.0, 2000.0 + 1e4, 1000.0, 0.0)
    assert held.window == first.window  # at line rate with 11 KB of 50 in flight: holds nothing back
    waits = step(first, 1900.0, 5e4, 900.0, 1.0)
    assert waits.window == first.window  # not yet a packet
    cut = step(waits, 2000.0, 5e4, 100.0, 1.0)
    assert cut.window == pytest.approx(first.window / 2)  # alpha is 1
    assert cut.cut_end == 5e4
    again = step(cut, 4e4, 6e4, 38e3, 1.0)
    assert again.window == cut.window  # once for what was in flight
    counted = step(again, 5.5e4, 6e4, 15e3, 0.0)
    share = (900 + 100 + 38e3) / (2e3 + 38e3 + 15e3 - 1e3 + 1e3)  # since the first update, all answered
    assert counted.alpha == pytest.approx(1 - 1 / 16 + share / 16, rel=0.01)
    assert counted.window_end == 6e4


def test_a_cut_off_deeper_than_the_pipe_keeps_the_link_busy() -> None:
    """DCTCP's guideline, K > C T/7: no throughput is lost; with K = 1 KB it is."""
    deep, shallow = (merged(2, step_marking).summary["utilisation"] for step_marking in ("300KB", "1KB"))
    assert deep == pytest.approx(1.0, rel=1e-6)
    assert shallow < 0.99


def test_the_simulators_variant_is_packets_only() -> None:
    with pytest.raises(InputError, match="variant"):
        fc.simulate(of(2, variant="hpcc-sim"), "1ms")


def test_a_schedule_without_control_is_what_packets_send() -> None:
    """30 to 0 to 10 Gb/s: bytes sent by the fluid and by packets, within two packets.

    Steps of 0.25 us, since half a step of the old rate is lost where a rate jumps between steps.
    """
    scenario = fc.incast(1, rate="100Gbps", scheme=fc.NoControl(schedule="0:30Gbps,100us:0,200us:10Gbps"), start="50us")
    sent = []
    for engine in ("fluid", "packet"):
        more = {"estimate_error": False, "dt": "0.25us"} if engine == "fluid" else {}
        trace = fc.simulate(scenario, "500us", engine=engine, sample_interval="1us", **more)
        sent.append(np.interp(np.arange(60e-6, 490e-6, 20e-6), trace["time"], trace["sent"].values[:, 0]))
    assert np.abs(sent[0] - sent[1]).max() <= 2 * PACKET


@pytest.mark.parametrize("engine", [pytest.param("fluid", marks=pytest.mark.slow), "packet"])
def test_a_schedule_repeats(engine: str) -> None:
    """40 Gb/s for a quarter of each 40 us: 10 Gb/s in both engines, to a packet in 1 ms."""
    scheme = fc.NoControl(schedule="0:40Gbps,10us:0,50us:99Gbps", repeat="40us")
    more = {"estimate_error": False} if engine == "fluid" else {}
    trace = fc.simulate(fc.incast(1, rate="100Gbps", scheme=scheme), "1.04ms", engine=engine, **more)
    sent = np.interp([0.035e-3, 1.035e-3], trace["time"], trace["sent"].values[:, 0])
    assert sent[1] - sent[0] == pytest.approx(10e9 / 8 * 1e-3, abs=PACKET)
