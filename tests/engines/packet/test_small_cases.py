"""The packet engine in cases that one can count: buffers, thresholds, gaps, routes; nothing of the package is reused.

Senders follow no congestion control, so that what they send is known beforehand.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import fluidcc as fc

GIGABIT = 1e9 / 8
PACKET = 1000  # bytes


def star(senders: int, **options: Any) -> fc.Scenario:
    """Senders at line rate into a switch, towards one receiver at 10 Gb/s."""
    return fc.incast(senders, rate="10Gbps", scheme=fc.NoControl(), marking=lambda rate: None, **options)


@pytest.mark.parametrize(("buffer", "dropped"), [("2000B", 0), ("1999B", 1)])
def test_a_packet_that_just_fits_is_taken(buffer: str, dropped: int) -> None:
    """Three packets arrive at once: one leaves as it comes, two wait."""
    summary = fc.simulate(star(3, size=PACKET, buffer=buffer), "100us", engine="packet").summary
    assert (summary["drops"], summary["packets"]) == (dropped, 3 - dropped)


@pytest.mark.parametrize(("classes", "least"), [(1, 152_000), (2, 302_000)])
def test_every_class_of_every_port_has_its_headroom(classes: int, least: int) -> None:
    """Three ports lead to the switch, with 50 KB for each class; two packets must fit beside that."""
    options: dict[str, Any] = {"pfc": fc.PFC(headroom="50KB"), "classes": (fc.TrafficClass(),) * classes}
    fc.simulate(star(2, buffer=least, **options), "10us", engine="packet")
    with pytest.raises(fc.InputError, match="headroom"):
        fc.simulate(star(2, buffer=least - 1, **options), "10us", engine="packet")


@pytest.mark.parametrize("gap", [10_000, 40_000])
def test_a_port_is_resumed_so_far_below_its_threshold(gap: int) -> None:
    """Between two PAUSEs of a port the gap has left and come again: so many fit into what comes in the run, no more."""
    pfc = fc.PFC(xoff="100KB", xon_gap=gap)
    summary = fc.simulate(star(2, buffer="2MB", pfc=pfc), "2ms", engine="packet").summary
    came = 2e-3 * 10 * GIGABIT + 2 * 110e3  # what has left, and both ports' share of the buffer
    assert summary["drops"] == 0
    assert 10 < summary["pfc_pauses"] <= came / gap + 2


def test_gaps_between_packets_are_rounded_to_picoseconds() -> None:
    """1000 bytes at 3 Gb/s take 2,666,666.67 ps."""
    trace = fc.simulate(star(1, initial_rate="3Gbps"), "100us", engine="packet", log=True)
    log = trace.dataset
    times = log.event_time.values[(log.event_what.values == "send")]
    assert len(times) > 30
    # A double of seconds tells times within 100 us to far less than a picosecond.
    assert set(np.round(np.diff(times) * 1e12)) == {2_666_667.0}


def test_what_has_failed_before_stays_failed() -> None:
    """Of three ways two fail one after the other, before anybody sends: all flows go the third, and nothing is lost."""
    ways = [(a, b) for middle in "xyz" for a, b in (("a", middle), (middle, "b"))]
    links = tuple(fc.Link("10Gbps", name=f"{a}>{b}", source=a, target=b) for a, b in [*ways, ("b", "sink")])
    flows = tuple(
        fc.Flow((0, 1, 6), fc.NoControl(), "1Gbps", start="100us", size="5KB", source=f"host {i}", target="sink")
        for i in range(8)
    )
    failures = (fc.Failure("x>b", "1us", "1us"), fc.Failure("y>b", "10us", "1us"))
    trace = fc.simulate(fc.Scenario(links, flows, failures=failures), "1ms", engine="packet")
    assert trace.summary["drops"] == 0
    assert None not in trace.summary["fct_s"]
    assert trace["sent"].sel(link="z>b").values[-1] == 8 * 5 * PACKET


def test_a_class_is_marked_by_its_own_queue() -> None:
    """A class at a tenth of the line rate, served before one that overloads the link, never waits for two packets."""
    marking = fc.RED("5KB", "5KB", 1.0)
    classes = (fc.TrafficClass(), fc.TrafficClass(priority=1))
    scenario = fc.incast(
        3,
        rate="10Gbps",
        scheme=fc.NoControl(),
        marking=marking,
        classes=classes,
        initial_rate=["10Gbps", "10Gbps", "1Gbps"],
    )
    flows = tuple(dataclasses.replace(flow, traffic_class=int(i == 2)) for i, flow in enumerate(scenario.flows))
    trace = fc.simulate(dataclasses.replace(scenario, flows=flows), "200us", engine="packet", log=True)
    log = trace.dataset
    marked = log.event_flow.values[log.event_what.values == "mark"]
    assert set(marked) == {0, 1}
