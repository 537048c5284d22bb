"""Finite flows: each sends its size and no more, all of it arrives, and it ends when its own pace would have."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import PFC, RED, Scenario, base_rtt, resolve

SIZES = [100.0, 1e3, 123456.7, 1e7]  # bytes, for four flows
SCHEMES = [fc.DCQCN(feedback_delay=None), fc.TIMELY(), fc.DCTCP()]  # ACC and a fixed lag are in tests that follow
MORE = [fc.DCQCN(), fc.HPCC(), fc.Swift(), fc.ACC()]
# Sums of some 1e4 steps in double precision, of which each rounds by 1e-16 of what has been sent.
ROUNDING = 1e-9
RECORDS = 1 << 17  # of the history, where runs share one
SINGLE = 1e-5  # of 24 bits, over the 200 steps of 1 MB


def network(builder: Any, scheme: Any, sizes: list[float] = SIZES, **options: Any) -> Scenario:
    return resolve(builder(len(sizes), size=sizes, scheme=scheme, rate="40Gbps", **options))


def run(scenario: Scenario, until: Any, **options: Any) -> Trace:
    return fc.simulate(scenario, until, estimate_error=False, **options)


def assert_conserved(scenario: Scenario, trace: Trace, tolerance: float) -> None:
    """Every link sends the bytes of its flows in the end, and at no time more."""
    expected = np.zeros(trace["sent"].shape[1])
    for flow in scenario.flows:
        expected[list(flow.path)] += (
            flow.multiplicity * flow.size * scenario.wire_packet_of(flow) / scenario.packet_size
        )
    sent = trace["sent"].values
    assert None not in trace.summary["fct_s"]
    assert sent[-1] == pytest.approx(expected, rel=tolerance)
    assert (sent <= expected * (1 + tolerance)).all()
    assert trace["queue"].values[-1] == pytest.approx(0.0, abs=tolerance * expected.max())


@pytest.mark.usefixtures("one_depth")
@pytest.mark.parametrize(
    "scheme",
    [*SCHEMES, *(pytest.param(scheme, marks=pytest.mark.slow) for scheme in MORE)],
    ids=lambda scheme: f"{scheme.name}-{scheme.feedback_delay}",
)
def test_flows_send_their_sizes(scheme: Any) -> None:
    """Also one by one: 3 KB of three flows took a queue of 37.5 KB at 100 Gb/s and 1 us."""
    scenario = network(fc.incast, scheme)
    assert_conserved(scenario, run(scenario, "12ms"), ROUNDING)
    few = network(fc.incast, scheme, [1e3, 1e3, 1e3, 100.0])
    trace = run(few, "100us")
    assert_conserved(few, trace, ROUNDING)
    assert trace["queue"].values.max() <= 3.1e3 * few.wire_packet_of(few.flows[0]) / 1e3


@pytest.mark.parametrize("scheme", [fc.DCQCN(feedback_delay=None), pytest.param(fc.HPCC(), marks=pytest.mark.slow)])
def test_on_several_links_each_gets_all(scheme: Any) -> None:
    """In classes of several flows, of which some start late."""
    options = {"multiplicity": [1, 2, 3, 1], "start": ["0", "30.3us", "0", "10us"]}
    scenario = network(fc.parking_lot, scheme, [1e6, 1e3, 123456.7, 100.0], **options)
    assert_conserved(scenario, run(scenario, "4ms"), ROUNDING)


@pytest.mark.parametrize(
    ("delay", "method", "dtype"),
    [
        ("50us", "rk4", "float64"),
        (None, "heun", "float32"),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                (None, "rk4", "float64"),
                ("50us", "euler", "float64"),
                (None, "euler", "float64"),
                ("50us", "heun", "float32"),
            )
        ),
    ],
)
def test_whatever_the_method(delay: Any, method: str, dtype: str) -> None:
    scheme = fc.DCQCN(feedback_delay=delay)
    scenario = network(fc.incast, scheme, [1e6, 1e3, 123456.7, 100.0])
    trace = run(scenario, "2ms", method=method, dtype=dtype)
    assert_conserved(scenario, trace, SINGLE if dtype == "float32" else ROUNDING)


@pytest.mark.slow
def test_flow_control_loses_and_makes_none() -> None:
    """Flow 0 is held where flow 2 joins it, and the first link is paused for it."""
    options = {"pfc": PFC(xoff="20KB"), "marking": RED("1MB", "2MB", 1.0), "delay": "1us"}
    scenario = network(fc.parking_lot, fc.ACC(), [300e3, 123456.7, 300e3], **options)
    trace = run(scenario, "1ms")
    assert trace["paused"].values.max() > 0
    assert_conserved(scenario, trace, ROUNDING)


@pytest.mark.usefixtures("one_depth")
def test_an_incast_takes_what_its_bytes_take() -> None:
    """The last byte finds all others before it: (sum of sizes)/C, wherever in a step it comes."""
    for step, size in itertools.product(("1us", "0.25us"), (123456.7, 20.3e3)):
        scenario = network(fc.incast, fc.NoControl(), [size] * 4)
        fixed = base_rtt(scenario, scenario.flows[0]) + (1000 + 2 * 64) / 5e9
        times = run(scenario, "2ms", dt=step).summary["fct_s"]
        assert times == pytest.approx([4 * size / 5e9 + fixed] * 4, rel=1e-9)


@pytest.mark.usefixtures("one_depth")
def test_completion_times_converge_with_the_step() -> None:
    """Of flows that are cut while they send, and end one after the other, beside one that stays."""
    sizes = [1.01e6, 2.003e6, 3.3e6, math.inf]

    def times(dt: float) -> np.ndarray:
        scenario = network(fc.incast, fc.DCQCN(feedback_delay=None), sizes)
        return np.array([t for t in run(scenario, "8ms", dt=dt).summary["fct_s"] if t is not None])

    exact = times(1e-6 / 16)
    for dt in (1e-6, 0.5e-6, 0.25e-6):
        # Of first order where the marking jumps: at 1 us the rates are within some 1e-3 (docs: DCQCN, Numbers).
        assert times(dt) == pytest.approx(exact, rel=1e-3 * dt / 1e-6, abs=dt)


@pytest.mark.parametrize("other", [math.inf, pytest.param(200.3e3, marks=pytest.mark.slow)])
def test_a_size_has_a_gradient(other: float) -> None:
    """What a flow sends in its last step is what it has left; it used to be whole steps, whose gradient is 0."""

    def queue(size: Any) -> Any:
        scenario = fc.incast(2, size=[size, other], marking=RED("1MB", "2MB", 1.0))
        return fc.measure(scenario, until="0.5ms", window="0:0.5ms")["queue_bytes.mean"][0]

    with jax.enable_x64(True):
        found = jax.jit(lambda size: jax.jvp(queue, (size,), (1.0,)))
        size, step = 100.3e3, 1e-2
        slope = (found(size + step)[0] - found(size - step)[0]) / (2 * step)
        assert slope > 0
        assert found(size)[1] == pytest.approx(float(slope), rel=1e-5)  # rounding of 1e-10 over a step of 1e-7
