"""HPCC++ MultiQ: HPCC in a class beside others, before and after, and what its three branches lock in at."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.scenario.model import resolve
from fluidcc.scenario.round_trips import largest_base_rtt
from fluidcc.schemes.hpcc_multiq import HPCCMultiQ

LINE = 100.0  # Gb/s
ETA = 0.95


def classes(
    multiq: str,
    counts: tuple[int, ...],
    initial: str | None = None,
    rate_ai: str = "0.5Gbps",
    weights: tuple[float, ...] = (1, 1, 1),
) -> fc.Scenario:
    """HPCC in the first class, DCTCP marked by its own queue in the others."""
    scheme = HPCCMultiQ(multiq=multiq, rate_ai=rate_ai)
    link = fc.Link("100Gbps", "1us", fc.RED("300KB", "300KB", 1.0), "bottleneck", "switch", "receiver")
    flows = tuple(
        fc.Flow(
            (0,),
            scheme if c == 0 else fc.DCTCP(),
            "100Gbps",
            initial_rate=initial if c == 0 else None,
            traffic_class=c,
            source=f"class {c} host {i}",
            target="receiver",
        )
        for c, count in enumerate(counts)
        for i in range(count)
    )
    of_ports = tuple(fc.TrafficClass(weight=weight) for weight in weights)
    return fc.Scenario((link,), flows, classes=of_ports, packet_size="1500B")


def shares(multiq: str, counts: tuple[int, ...], initial: str | None = None, rate_ai: str = "0.5Gbps") -> np.ndarray:
    """Rates of classes of equal weight [Gb/s]."""
    trace = fc.simulate(classes(multiq, counts, initial, rate_ai), "10ms", engine="packet")
    rates = np.array(trace.summary["rate_bytes_per_s"]) * 8e-9
    ends = np.cumsum(counts)
    return np.array([part.sum() for part in np.split(rates, ends[:-1])])


def test_unmodified_hpcc_starves_beside_other_classes_and_multiq_does_not() -> None:
    """15-to-1 in three classes: a third each is fair. Tolerances: below half of it before; within 5 % after."""
    before = shares("off", (5, 5, 5))
    assert before[0] < LINE / 3 / 2
    for multiq in ("slides", "spare"):
        assert shares(multiq, (5, 5, 5)) == pytest.approx([LINE / 3] * 3, rel=0.05)


@pytest.mark.parametrize("rate_ai", [0.001, 0.5, 5.0])
@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_a_class_served_in_part_keeps_a_queue_that_makes_up_for_it(weight: float, rate_ai: float) -> None:
    """U over the link ("HPCC applied for MultiQ w/o any changes"), served at A: q = (U* - A/B) B T.

    Algorithm 1 adds W_AI to windows, which hold U B T together: U* = eta + N W_AI/(B T). One packet over B T for U, and
    for q two packets: one for whole windows, one for the smaller of two stamps.
    """
    scenario = classes("class", (5, 5, 5), None, f"{rate_ai}Gbps", (weight, 1, 1))
    BT = LINE * 0.125e9 * largest_base_rtt(resolve(scenario))
    late = fc.simulate(scenario, "10ms", engine="packet").dataset.sel(time=slice(5e-3, None))
    sent = late.class_sent.values[:, 0, 0]
    served = (sent[-1] - sent[0]) / 5e-3 / (LINE * 0.125e9)
    assert served == pytest.approx(weight / (weight + 2), rel=0.01)
    fixed_point = ETA + 5 * rate_ai / LINE
    assert late.utilisation_estimate.values[:, :5].mean() == pytest.approx(fixed_point, abs=1542 / BT)
    assert late.class_queue.values[:, 0, 0].mean() == pytest.approx((fixed_point - served) * BT, abs=2 * 1542)


def test_a_trace_shows_each_class_where_there_are_several() -> None:
    """All queues of the bottleneck are data's: the classes' add up to the port's, sample by sample."""
    trace = fc.simulate(classes("slides", (2, 1, 1)), "1ms", engine="packet", sample_interval="1us")
    assert trace["class_queue"].dims == ("time", "link", "traffic_class")
    assert trace["class_queue"].attrs["units"] == "bytes"
    for whole, part in (("queue", "class_queue"), ("sent", "class_sent")):
        np.testing.assert_array_equal(trace[part].values.sum(axis=2), trace[whole].values)
    assert "class_queue" not in fc.simulate(fc.incast(2), "100us", engine="packet").dataset


@pytest.mark.parametrize(("rate_ai", "served"), [("0.1Gbps", 0.322), ("0.15Gbps", 0.919), ("5Gbps", 1.0)])
def test_an_increase_frees_a_class_from_its_guarantee(rate_ai: str, served: float) -> None:
    """Alone from 1 Gb/s each with a third guaranteed: eta w B and 5 a, or where the third branch settles, or the line.

    The recursion is freed by 5 a = (1 - eta) w B, 0.333 Gb/s a flow, packets of 1500 B by the default W_AI already.
    """
    assert shares("slides", (5, 0, 0), "1Gbps", rate_ai)[0] / LINE == pytest.approx(served, abs=0.005)


def test_three_branches_lock_in_on_an_idle_link() -> None:
    """Alone at 1 Mb/s a flow, from below: eta of the guaranteed third. From above: where 2 R/(R + B) = eta."""
    low, high = (shares("slides", (5, 0, 0), start, "1Mbps")[0] for start in ("1Gbps", "20Gbps"))
    assert low == pytest.approx(ETA * LINE / 3, rel=0.01)
    assert high == pytest.approx(ETA / (2 - ETA) * LINE, rel=0.01)


@pytest.mark.parametrize("start", ["1Gbps", "6Gbps", "20Gbps"])
def test_counting_what_is_unused_fills_the_link_from_anywhere(start: str) -> None:
    assert shares("spare", (5, 0, 0), start, "1Mbps")[0] == pytest.approx(ETA * LINE, rel=0.02)


def test_a_single_class_of_the_fix_is_hpcc() -> None:
    """With one class, what is guaranteed is the link: the same run as HPCC's, bit for bit."""
    scenario = fc.incast(4, rate="100Gbps", scheme=fc.HPCC())
    flows = tuple(dataclasses.replace(flow, scheme=HPCCMultiQ(multiq="spare")) for flow in scenario.flows)
    ours = fc.simulate(dataclasses.replace(scenario, flows=flows), "1ms", engine="packet")
    np.testing.assert_array_equal(ours["rate"].values, fc.simulate(scenario, "1ms", engine="packet")["rate"].values)
