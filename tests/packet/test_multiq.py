"""HPCC++ MultiQ: HPCC in a class beside others, before and after, and what its three branches lock in at."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.schemes.hpcc_multiq import HPCCMultiQ

LINE = 100.0  # Gb/s
ETA = 0.95


def shares(multiq: str, counts: tuple[int, ...], initial: str | None = None, rate_ai: str = "0.5Gbps") -> np.ndarray:
    """Rates [Gb/s] of classes of equal weight: HPCC in the first, DCTCP marked by its own queue in the others."""
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
    scenario = fc.Scenario((link,), flows, classes=(fc.TrafficClass(),) * 3, packet_size="1500B")
    rates = np.array(fc.simulate(scenario, "10ms", engine="packet").summary["rate_bytes_per_s"]) * 8e-9
    ends = np.cumsum(counts)
    return np.array([part.sum() for part in np.split(rates, ends[:-1])])


def test_unmodified_hpcc_starves_beside_other_classes_and_multiq_does_not() -> None:
    """15-to-1 in three classes: a third each is fair. Tolerances: below half of it before; within 5 % after."""
    before = shares("off", (5, 5, 5))
    assert before[0] < LINE / 3 / 2
    for multiq in ("slides", "spare"):
        assert shares(multiq, (5, 5, 5)) == pytest.approx([LINE / 3] * 3, rel=0.05)


def test_three_branches_lock_in_on_an_idle_link() -> None:
    """Alone, from below: eta of the guaranteed third. From above: where 2 R/(R + B) = eta, R = eta B/(2 - eta)."""
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


def test_the_fluid_has_no_multiq() -> None:
    with pytest.raises(fc.InputError, match="fluid"):
        fc.simulate(fc.incast(2, scheme=HPCCMultiQ(), rate="100Gbps"), "1ms")
