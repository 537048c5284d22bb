"""Fluid flows that wait for others: when they begin, against closed forms, packets, and the same starts as numbers.

Tolerances were set before measuring. A lone flow at its line rate is exact in the fluid whatever the step, so chains
of such are held to rounding. Packets differ by the one packet whose sending ``sent`` does not wait for; their ACKs,
which the fluid has none of, are made as small as can be. With the same starts as numbers, which the engine rounds to
its grid, times may differ by a step for each flow in the chain. Two jobs' slow-down is held to 10 % of that in packets.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

import fluidcc as fc
from benchmarks.order import ring
from fluidcc.engines.fluid.classes import system_of
from fluidcc.engines.fluid.network import network_of
from fluidcc.errors import InputError
from fluidcc.scenario.dependencies import end_of
from fluidcc.scenario.model import Flow, Scenario, TrafficClass, resolve
from fluidcc.workloads.fabrics import named_topology
from tests.engines.rings import chain, closed_form, ends

EXACT = 1e-9
US = 1e-6


def fluid(scenario: Scenario, until: Any, **options: Any) -> fc.Trace:
    return fc.simulate(scenario, until, estimate_error=False, **options)


def began(trace: fc.Trace) -> np.ndarray:
    return np.array(trace.summary["began_s"], float)


def took(trace: fc.Trace) -> np.ndarray:
    return np.array(trace.summary["fct_s"], float)


def numbered(scenario: Scenario, trace: fc.Trace) -> Scenario:
    """The same scenario, whose flows wait for none and begin when they did."""
    starts = trace.summary["began_s"]
    flows = [dataclasses.replace(f, start=at, after=()) for f, at in zip(scenario.flows, starts, strict=True)]
    return dataclasses.replace(scenario, flows=tuple(flows))


# -- what of a flow counts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "source", "end"),
    [
        ("known", "a", "answer"),
        ("known", "b", "receipt"),
        ("known", "c", "answer"),
        ("known", "", "answer"),
        ("receipt", "c", "receipt"),
        ("answer", "b", "answer"),
        ("sent", "a", "sent"),
        ("sent", "b", "receipt"),
        ("sent", "", "receipt"),
    ],
)
def test_what_counts_is_what_the_host_comes_to_know(what: str, source: str, end: str) -> None:
    before = Flow((0,), fc.DCQCN(), "1Gbps", source="a" if source else "", target="b" if source else "")
    assert end_of(Flow((0,), fc.DCQCN(), "1Gbps", source=source, after=(0,), after_what=what), before) == end


# -- one after the other ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["none", "dcqcn", pytest.param("swift", marks=pytest.mark.slow)])
def test_one_after_the_other_in_closed_form(scheme: str) -> None:
    """Pauses that lie on no grid of steps; ``sent``, ``receipt`` and ``answer`` differ by the way there and back."""
    scenario = chain(scheme, [((0,), "sent", "3.3us"), ((1,), "receipt", "0us"), ((2,), "answer", "1.77us")])
    trace = fluid(scenario, "400us")
    wire, way, back = closed_form(scenario)
    first, second, third = wire + 3.3 * US, wire + way, wire + way + back + 1.77 * US
    np.testing.assert_allclose(began(trace), np.cumsum([0.0, first, second, third]), rtol=EXACT)
    np.testing.assert_allclose(took(trace), wire + way + back, rtol=EXACT)
    packets = fc.simulate(scenario, "400us", engine="packet")
    packet = wire / 100
    # Packets count what was sent from when the last packet began to go.
    np.testing.assert_allclose(began(packets)[1:], began(trace)[1:] - packet, rtol=0, atol=1e-6 * packet)


def diamond(first: str = "2us") -> Scenario:
    """Two flows wait for one, and another for both, the shorter of which ends first; on two links, so as not to meet.

    The first of both waits for a given time more.
    """
    base = chain("none", [((0,), "answer", first), ((0,), "answer", "5us"), ((1, 2), "answer", "0us")])
    flows = list(base.flows)
    flows[2] = dataclasses.replace(flows[2], path=(1,), size=flows[2].size / 4)
    link = dataclasses.replace(base.links[0], name="other")
    return resolve(dataclasses.replace(base, links=(*base.links, link), flows=tuple(flows)))


def test_the_last_of_several_counts() -> None:
    scenario = diamond()
    flows = scenario.flows
    trace = fluid(scenario, "400us")
    wire, way, back = closed_form(scenario)
    end = wire + way + back
    np.testing.assert_allclose(began(trace), [0.0, end + 2 * US, end + 5 * US, 2 * end + 2 * US], rtol=EXACT)
    assert took(trace)[2] == pytest.approx(wire / 4 + way + back, rel=EXACT)
    longer = dataclasses.replace(scenario, flows=(*flows[:2], dataclasses.replace(flows[2], start=90 * US), flows[3]))
    trace = fluid(longer, "400us")
    assert began(trace)[3] == pytest.approx(end + 90 * US + wire / 4 + way + back, rel=EXACT)


def test_queueing_of_the_last_byte_counts() -> None:
    """Two flows at once leave a queue, in which a last byte waits before its receipt, but not before it is sent."""
    base = chain("none", [((), "known", 0.0), ((0,), "receipt", 0.0), ((0,), "sent", 0.0)])
    flows = (*base.flows[:3], dataclasses.replace(base.flows[3], source=base.flows[0].source))
    trace = fluid(dataclasses.replace(base, flows=flows), "400us")
    wire, way, _ = closed_form(base)
    np.testing.assert_allclose(began(trace)[2:], [2 * wire + way, wire], rtol=EXACT)


def test_who_waits_in_vain_has_not_begun() -> None:
    """Nothing is NaN: a flow that has not ended by the horizon is unfinished, and so are those behind it."""
    base = diamond()
    scenario = dataclasses.replace(base, flows=(dataclasses.replace(base.flows[0], start=1 * US), *base.flows[1:]))
    trace = fluid(scenario, "20us")
    assert trace.summary["began_s"] == [1e-6, None, None, None]
    assert trace.summary["fct_s"] == [None] * 4
    assert not np.isnan(trace["rate"]).any()
    assert float(trace["rate"][:, 1:].max()) == 0.0
    assert fc.theory.finish_times(trace).tolist() == [np.inf] * 4
    # What is known to begin beyond the horizon has not begun either, nor has who waits for it.
    began_s = fluid(diamond("1ms"), "100us").summary["began_s"]
    assert (began_s[:2], began_s[3]) == ([0.0, None], None)
    assert began_s[2] is not None


# -- rings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "hosts"),
    [
        ("dctcp", 3),
        *(pytest.param(scheme, 8, marks=pytest.mark.slow) for scheme in ("none", "swift")),
    ],
)
def test_a_ring_takes_the_closed_form(scheme: str, hosts: int) -> None:
    """An all-reduce of 2(N-1) steps in which each host passes on what it received as its own last went."""
    star = named_topology(f"leaf-spine:1x1x{hosts}")
    preset = None if scheme == "dctcp" else "hpcc-eval"
    scenario = star.scenario(ring(range(hosts), 8e5), scheme=scheme, preset=preset)
    scenario = resolve(dataclasses.replace(scenario, ack_bytes=1.0))
    wire, way, back = closed_form(scenario)
    steps = 2 * (hosts - 1)
    trace = fluid(scenario, "300us")
    assert max(ends(trace)) == pytest.approx(steps * (wire + way) + back, rel=EXACT)
    packets = fc.simulate(scenario, "300us", engine="packet")
    assert max(ends(packets)) == pytest.approx(max(ends(trace)), rel=2e-3)  # an ACK of 1 B to a packet of 1048 B


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["hpcc"])
def test_two_jobs_slow_each_other_as_in_packets(scheme: str) -> None:
    """Rings of four hosts across one spine, one of them with compute between its steps."""
    fabric = named_topology("leaf-spine:2x1x4", fabric_rate="200Gbps")
    first = ring([0, 4, 1, 5], 3e6)
    second = ring([2, 6, 3, 7], 1.5e6, first=len(first), start=20 * US, pause=5 * US)
    alone = ring([2, 6, 3, 7], 1.5e6, start=20 * US, pause=5 * US)
    slower: dict[str, list[float]] = {}
    for engine in ("fluid", "packet"):
        options: dict[str, Any] = {"estimate_error": False} if engine == "fluid" else {}
        times = [
            ends(fc.simulate(fabric.scenario(rows, scheme=scheme, preset="hpcc-eval"), "2ms", engine=engine, **options))
            for rows in (first + second, first, alone)
        ]
        both = max(times[0][: len(first)]), max(times[0][len(first) :]) - 20 * US
        slower[engine] = [both[0] / max(times[1]), both[1] / (max(times[2]) - 20 * US)]
    np.testing.assert_allclose(slower["fluid"], slower["packet"], rtol=0.1)
    assert min(slower["packet"]) > 1.2


# -- the same as by numbers --------------------------------------------------------------------------------------

CLASSES = (TrafficClass(), TrafficClass(priority=1.0))
KINDS: dict[str, tuple[str, dict[str, Any], int]] = {
    "one lag": ("QueueNetwork", {"scheme": "dcqcn", "feedback_delay": "4us"}, 1),
    "arrivals": ("QueueNetwork", {"scheme": "none"}, 1),
    "delays compared": ("QueueNetwork", {"scheme": "timely"}, 1),
    "windows": ("WindowNetwork", {"scheme": "dctcp"}, 1),
    "classes": ("ClassNetwork", {"scheme": "dctcp", "classes": (TrafficClass(), TrafficClass())}, 2),
    "flow control": ("LosslessNetwork", {"scheme": fc.ACC(), "pfc": fc.PFC("100KB"), "rate": "100Gbps"}, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_start_is_as_if_it_were_given(kind: str) -> None:
    """Every kind of network; flows that begin late begin in the same state, and take what they would take."""
    name, options, classes = KINDS[kind]
    base = fc.incast(4, size="200KB", **options)
    waits = [((), "known", 0.0), ((0,), "known", "3.4us"), ((0,), "receipt", "3.4us"), ((1, 2), "known", 0.0)]
    flows = [
        dataclasses.replace(f, after=after, after_what=what, start=pause, traffic_class=i % classes)
        for i, (f, (after, what, pause)) in enumerate(zip(base.flows, waits, strict=True))
    ]
    scenario = resolve(dataclasses.replace(base, flows=tuple(flows)))
    assert type(system_of(network_of(scenario), 1, 1.0)).__name__ == name  # pyright: ignore[reportArgumentType]
    trace = fluid(scenario, "400us")
    again = fluid(numbered(scenario, trace), "400us")
    step = trace.dataset.attrs["dt_s"]
    # Three flows in turn, half a step each, and one for the last byte.
    np.testing.assert_allclose(took(trace), took(again), rtol=0, atol=2.5 * step)
    assert began(trace)[3] > began(trace)[1] > began(trace)[2] > 0
    queues = [float(np.abs(t["queue"]).mean()) for t in (trace, again)]
    assert queues[0] == pytest.approx(queues[1], rel=0.02)


# -- sweeps, compilations, gradients -----------------------------------------------------------------------------


def paused(rate: Any = "40Gbps", pause: Any = "3us") -> Scenario:
    base = fc.incast(3, scheme="dcqcn", rate=rate, size="300KB")
    a, b, c = base.flows
    waits = dataclasses.replace(b, after=(0,), start=pause), dataclasses.replace(c, after=(0,), after_what="receipt")
    return dataclasses.replace(base, flows=(a, *waits))


def test_points_of_a_sweep_begin_each_at_its_own_time() -> None:
    rates, pauses = ["25Gbps", "40Gbps", "100Gbps"], ["1us", "10us"]
    options: dict[str, Any] = {"until": "300us", "window": "0:300us", "dt": "0.5us"}
    found = fc.sweep(paused, {"rate": rates, "pause": pauses}, estimate_error=False, **options)
    starts = set()
    for i, rate in enumerate(rates):
        for k, pause in enumerate(pauses):
            trace = fluid(paused(rate, pause), **options)
            starts.add(trace.summary["began_s"][1])
            mean = trace.summary["queue_bytes"]["mean"]
            assert float(found["queue_bytes.mean"][i, k]) == pytest.approx(mean, rel=1e-12)
    assert len(starts) == 6
    assert "queue_error_rel" not in found.dataset  # which steps of each point's own have


def test_other_values_compile_nothing() -> None:
    fluid(paused(), "300us", dt="0.5us")
    other = fluid(paused("50Gbps", "7us"), "300us", dt="0.5us")
    assert other.summary["compile_s"] == 0


def test_a_start_has_a_gradient() -> None:
    """By the size of the flow waited for: the later the next one begins, the less of it is there at the end."""

    def sent(size: Any) -> Any:
        base = fc.incast(2, scheme="none", size=[size, "1MB"])
        later = dataclasses.replace(base.flows[1], after=(0,), start="2.3us")
        scenario = dataclasses.replace(base, flows=(base.flows[0], later))
        return fc.measure(scenario, until="100us", window="60us:100us")["rate_bytes_per_s"][1]

    with jax.enable_x64(True):
        found = jax.jit(lambda size: jax.jvp(sent, (size,), (1.0,)))
        slope, step = found(400.3e3)[1], 1.0
        sides = [float(found(400.3e3 + by)[0]) for by in (step, -step)]
        assert float(slope) == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=1e-5)
        # At the line rate from then on: a byte more of the first is a byte less in the window (no headers).
        assert float(slope) == pytest.approx(-1.0 / 40e-6, rel=1e-5)


def test_steps_chosen_by_their_error_are_refused() -> None:
    with pytest.raises(InputError, match="rtol: flows that end are counted on a grid of steps; write dt"):
        fc.simulate(paused(), "300us", rtol=1e-4)
