"""Traffic classes in the fluid: how a link is shared, what waits, and HPCC++ MultiQ against its recursion and packets.

Tolerances were set before anything was measured.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.engines.fluid.classes import ClassNetwork
from fluidcc.engines.fluid.network import columns_of, network_of
from fluidcc.errors import InputError
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario, TrafficClass, resolve
from fluidcc.scenario.round_trips import largest_base_rtt
from fluidcc.schemes.hpcc_multiq import HPCCMultiQ
from fluidcc.theory.recursion import multiq
from fluidcc.units import Rate

CAPACITY = Rate(12.5e9)  # 100 Gbps
ETA = 0.95
REST = 1e-3  # windows circle around their fixed point by what changes in a step


def scenario(schemes: list[Any], classes: list[TrafficClass], initial: list[Any], **options: Any) -> Scenario:
    """A flow for each scheme, in the class of its number."""
    link = fc.Link("100Gbps", "1us", fc.RED("300KB", "300KB", 1.0), "bottleneck", "switch", "receiver")
    flows = tuple(
        fc.Flow((0,), scheme, "100Gbps", initial_rate=rate, traffic_class=i % len(classes), source=f"host {i}")
        for i, (scheme, rate) in enumerate(zip(schemes, initial, strict=True))
    )
    return Scenario((link,), flows, classes=tuple(classes), **options)


def run(of: Scenario, until: str = "3ms", **options: Any) -> Trace:
    more = {} if options.get("engine") == "packet" else {"estimate_error": False}
    return fc.simulate(of, until, sample_interval="1us", **more, **options)


# -- how a link is shared --------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.floats(0.1, 10), st.floats(0, 2, allow_subnormal=False)), min_size=2, max_size=5
    ),
    st.integers(1, 3),
)
def test_service_is_strict_by_priority_and_weighted_max_min_among_equals(
    classes: list[tuple[int, float, float]], links: int
) -> None:
    link = fc.Link("8B/s", "1us")
    flow = fc.Flow(tuple(range(links)), fc.NoControl(), "8B/s")
    made = tuple(TrafficClass(priority, weight) for priority, weight, _ in classes)
    several = tuple(dataclasses.replace(link, name=f"{i}") for i in range(links))
    network = columns_of(network_of(resolve(Scenario(several, (flow,), classes=made))), "float64")
    system = ClassNetwork(network, 1, np.asarray(1.0))  # pyright: ignore[reportArgumentType]
    wanted = np.tile([want * 8.0 for _, _, want in classes], links)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fluidcc.engines.fluid.classes.jnp", np)  # eagerly, each shape would be compiled
        served = np.asarray(system._served(wanted[:, None]))[:, 0].reshape(links, -1)  # pyright: ignore[reportArgumentType]
    assert (served == served[0]).all()
    served, wanted = served[0], wanted[: len(classes)]
    assert (served <= wanted * (1 + 1e-12)).all()
    assert served.sum() == pytest.approx(min(8.0, wanted.sum()), rel=1e-12)
    hungry = served < wanted * (1 - 1e-9)
    for i, (priority, weight, _) in enumerate(classes):
        for j, (other, heavy, _) in enumerate(classes):
            if hungry[i] and other < priority:
                assert served[j] == pytest.approx(0, abs=1e-9)
            if hungry[i] and other == priority:  # nobody has more for its weight than one who wants more
                assert served[j] / heavy <= served[i] / weight * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [(1.0, 3.0)])
def test_backlogged_classes_get_their_weights(weights: tuple[float, float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluidcc.engines.fluid.plan._MARGIN", 5.0)  # room for what waits at a quarter of the link
    classes = [TrafficClass(weight=w) for w in weights]
    found = run(scenario([fc.DCTCP(), fc.DCTCP()], classes, [None, None]), "20ms")  # sawteeth of milliseconds
    rates = np.array(found.summary["rate_bytes_per_s"]) / CAPACITY
    assert rates == pytest.approx(np.array(weights) / sum(weights), rel=0.01)
    assert found.summary["utilisation"] == pytest.approx(1.0, rel=1e-6)
    np.testing.assert_allclose(found["class_queue"].sum("traffic_class"), found["queue"], rtol=1e-12, atol=1e-6)


def test_a_higher_priority_goes_first() -> None:
    """30 Gb/s go above what is backlogged: it waits for nothing, and 70 Gb/s are left."""
    classes = [TrafficClass(priority=1), TrafficClass(priority=0, weight=50)]
    found = run(scenario([fc.NoControl(), fc.DCTCP()], classes, ["30Gbps", None]))
    assert found["class_queue"].values[:, 0, 0].max() == 0.0
    assert np.array(found.summary["rate_bytes_per_s"]) / CAPACITY == pytest.approx([0.3, 0.7], rel=0.01)


def test_an_unused_class_changes_nothing() -> None:
    """Waits are found by bytes in place of queue over capacity: the same run but for rounding.

    It can move an update of W^c to the next step, and windows there by a step's share of T, until the next update.
    """
    plain = fc.incast(4, rate="100Gbps", scheme=fc.HPCC())
    classed = dataclasses.replace(plain, classes=(TrafficClass(), TrafficClass()))
    one, two = run(plain, "300us"), run(classed, "300us")
    np.testing.assert_allclose(two["queue"], one["queue"], rtol=1e-3, atol=1.0)
    np.testing.assert_allclose(two["window"], one["window"], rtol=1 / 40)
    np.testing.assert_allclose(two["window"][-100:], one["window"][-100:], rtol=1e-3)
    assert two.summary["utilisation"] == pytest.approx(one.summary["utilisation"], rel=1e-4)


@pytest.mark.slow
def test_classes_over_several_links() -> None:
    """A parking lot whose flows lie in two classes, against packets: goodputs within 10 %, as single runs."""
    plain = fc.parking_lot(3, rate="100Gbps", scheme=fc.DCTCP(), marking=fc.RED("300KB", "300KB", 1.0))
    flows = tuple(dataclasses.replace(flow, traffic_class=i % 2) for i, flow in enumerate(plain.flows))
    both = dataclasses.replace(plain, flows=flows, classes=(TrafficClass(weight=1), TrafficClass(weight=3)))
    fluid, packet = run(both, "5ms"), run(both, "5ms", engine="packet")
    rates = [np.array(each.summary["rate_bytes_per_s"]) / CAPACITY for each in (fluid, packet)]
    assert rates[0] == pytest.approx(rates[1], rel=0.1)
    assert rates[0].sum() == pytest.approx(rates[1].sum(), rel=0.02)


@pytest.mark.slow
def test_a_finite_flow_ends_when_its_class_has_served_it() -> None:
    """1 MB at line rate into a class that gets half of the link; the byte before the last waits what it left behind."""
    both = scenario([fc.NoControl(), fc.NoControl()], [TrafficClass()] * 2, [None, None])
    flows = (dataclasses.replace(both.flows[0], size="1MB"), both.flows[1])
    fluid, packet = (run(dataclasses.replace(both, flows=flows), "1ms", engine=e) for e in ("fluid", "packet"))
    assert fluid.summary["fct_s"][0] == pytest.approx(2e6 / CAPACITY, rel=0.05)
    assert fluid.summary["fct_s"][0] == pytest.approx(packet.summary["fct_s"][0], rel=0.02)


@pytest.mark.slow
def test_dcqcn_with_a_fixed_feedback_delay_in_two_classes() -> None:
    """All lags are one and the same, and no scheme has a window: each class of two flows shares half of the link."""
    plain = fc.incast(4, rate="40Gbps", scheme=fc.DCQCN())
    flows = tuple(dataclasses.replace(flow, traffic_class=i % 2) for i, flow in enumerate(plain.flows))
    found = run(dataclasses.replace(plain, flows=flows, classes=(TrafficClass(), TrafficClass())), "60ms")
    assert np.array(found.summary["rate_bytes_per_s"]) * 8e-9 == pytest.approx([10.0] * 4, rel=0.01)
    queues = found["class_queue"].sel(time=slice(30e-3, None)).mean("time").values[0]
    assert queues[0] == pytest.approx(queues[1], rel=1e-6)


# -- HPCC++ MultiQ ---------------------------------------------------------------------------------------------


def beside(rule: str, other: str, flows: int = 4, rate_ai: str = "1Mbps", initial: Any = None) -> Scenario:
    """HPCC flows guaranteed half of the link, beside a class that sends at a constant rate."""
    schemes: list[Any] = []
    for _ in range(flows):
        schemes += [HPCCMultiQ(multiq=rule, rate_ai=rate_ai), fc.NoControl()]
    return scenario(
        schemes, [TrafficClass(), TrafficClass()], [initial, fc.units.quantity(other, fc.units.RATE) / flows] * flows
    )


def own(found: Trace, name: str = "pacing_rate") -> np.ndarray:
    """Sum over the HPCC flows, as a share of the link."""
    return found[name].values[:, ::2].sum(axis=1) / CAPACITY


@pytest.mark.parametrize(("flows", "rate_ai"), [pytest.param(4, "1Mbps", marks=pytest.mark.slow), (4, "500Mbps")])
def test_unmodified_hpcc_waits_until_its_own_u_is_the_target(flows: int, rate_ai: str) -> None:
    """Served at A with the link's B in U: q = (U* - A/B) B T. Windows rest at U* = eta + N a/B: with the backlog in
    the window, W = U* B T/N. (A rate once per round trip, without it, has U* = eta/(1 - N a/A).)"""
    of = beside("class", "40Gbps", flows, rate_ai)
    found = run(of, "2ms")
    fixed_point = ETA + flows * float(fc.units.quantity(rate_ai, fc.units.RATE)) / CAPACITY
    queue = (fixed_point - 0.6) * CAPACITY * largest_base_rtt(resolve(of))
    assert found["class_queue"].values[-500:, 0, 0].mean() == pytest.approx(queue, rel=REST)
    assert own(found, "rate")[-500:].mean() == pytest.approx(0.6, rel=REST)


@pytest.mark.parametrize(("start", "fixed_point"), [("1Gbps", ETA * 0.5), (None, ETA / (2 - ETA))])
def test_three_branches_rest_where_the_recursion_says(start: str | None, fixed_point: float) -> None:
    assert multiq.orbit(0.05 if start else 1.0, share=0.5).rates == pytest.approx([fixed_point])
    found = run(beside("slides", "0bps", 1, initial=start), "1.5ms")
    assert own(found)[-500:].mean() == pytest.approx(fixed_point, rel=0.002)  # a/B is 0.00001


@pytest.mark.slow
def test_what_is_unused_fills_the_link() -> None:
    for start in ("1Gbps", None):
        assert own(run(beside("spare", "0bps", initial=start)))[-500:].mean() == pytest.approx(ETA, rel=0.002)
    assert own(run(beside("spare", "40Gbps")))[-500:].mean() == pytest.approx(ETA * 0.6, rel=0.002)


@pytest.mark.slow
def test_three_branches_cycle_where_the_recursion_has_no_rest() -> None:
    """Served at 0.6 B with half guaranteed: a two-cycle of the recursion, 0.57 and 0.746; with U averaged over a round
    trip one of several round trips, in the fluid as in packets: extremes within 5 %, period within 10 %."""
    cycle = multiq.orbit(0.6, share=0.5, served=0.6).rates
    assert len(cycle) == 2
    extremes, periods = [], []
    for engine in ("fluid", "packet"):
        rate = own(run(beside("slides", "40Gbps", 1), engine=engine))[1500:]
        extremes.append((rate.min(), rate.max()))
        spectrum = np.abs(np.fft.rfft(rate - rate.mean()))
        periods.append(len(rate) / int(spectrum.argmax()))
    assert extremes[0] == pytest.approx(extremes[1], rel=0.05)
    assert periods[0] == pytest.approx(periods[1], rel=0.1)
    assert extremes[0][0] < cycle[0]
    assert extremes[0][1] > 0.95 * cycle[1]


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["slides", "spare"])
def test_a_fair_share_beside_tcp(rule: str) -> None:
    """The slides' 15-to-1: a third each, the queue of HPCC's class nearly empty; packets within 5 % of it."""
    flows = [HPCCMultiQ(multiq=rule, rate_ai="0.5Gbps"), fc.DCTCP(), fc.DCTCP()] * 5
    found = run(scenario(flows, [TrafficClass()] * 3, [None] * 15, packet_size="1500B"))
    rates = np.array(found.summary["rate_bytes_per_s"]).reshape(5, 3).sum(axis=0) / CAPACITY
    assert rates == pytest.approx([1 / 3] * 3, rel=0.01)
    assert found["class_queue"].values[-1000:, 0, 0].mean() < 1542.0


# -- edges -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_weights_are_swept_in_one_batch() -> None:
    def of(weight: Any) -> Scenario:
        return scenario([fc.DCTCP(), fc.DCTCP()], [TrafficClass(weight=weight), TrafficClass()], [None, None])

    weights = [0.5, 1.0, 3.0]
    found = fc.sweep(of, over={"weight": weights}, until="2ms", estimate_error=False)
    gap = found.dataset["rate_gap_bytes_per_s"].values / CAPACITY
    assert gap == pytest.approx([abs(w - 1) / (w + 1) for w in weights], abs=0.01)


def test_bad_classes_are_refused() -> None:
    with pytest.raises(InputError, match="weight"):
        run(scenario([fc.DCTCP()], [TrafficClass(weight=0)], [None]))
    with pytest.raises(InputError, match="priority"):
        fc.sweep(
            lambda priority: scenario([fc.DCTCP()], [TrafficClass(priority=priority)], [None]),
            over={"priority": [0.0, 1.0]},
            until="1ms",
        )


# -- ends --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "starts"), [(None, 5e-6), pytest.param(3.0, 5e-6, marks=pytest.mark.slow), (None, 12e-6)]
)
def test_a_last_byte_waits_for_all_that_goes_before_it(weight: float | None, starts: float) -> None:
    """Of a class that another takes the link from, whole or in part, when its last byte has come or before.

    The link is busy from the first byte to the last of both, 20 us each. One step of 1 us and a packet, 0.2 us.
    """
    other = TrafficClass(priority=1.0) if weight is None else TrafficClass(weight=weight)
    base = fc.incast(
        2,
        scheme="none",
        line_rate=["80Gbps", "40Gbps"],
        size="100KB",
        start=[0.0, starts],
        classes=(TrafficClass(), other),
    )
    flows = [dataclasses.replace(flow, traffic_class=i) for i, flow in enumerate(base.flows)]
    scenario = resolve(dataclasses.replace(base, flows=tuple(flows)))
    ends = [run(scenario, "200us", engine=engine).summary["fct_s"][0] for engine in ("fluid", "packet")]
    assert ends[0] == pytest.approx(40e-6 + 4e-6 + 0.2e-6 + 0.0256e-6, abs=1.2e-6)
    assert ends[0] == pytest.approx(ends[1], abs=1.2e-6)
