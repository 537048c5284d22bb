"""Cases in which packets must keep the bounds."""

from __future__ import annotations

import dataclasses

import pytest

import fluidcc as fc
from fluidcc.tuning.cases import changed, packet_cases


def test_every_case_has_every_way_and_further_sizes_the_plain_one() -> None:
    found = packet_cases([{"flows": 2}, {"flows": 8}], [1024.0, 4096.0])
    assert len(found) == 2 * 8 + 2
    assert len({tuple(case.items()) for case in found}) == len(found)
    small = [case for case in found if case["packet_size"] == 1024.0]
    plain = {"burst": 1, "counts_sending": False, "begin": "line", "packet_size": 1024.0}
    assert small == [{"flows": n, **plain} for n in (2, 8)]
    assert {case["burst"] for case in found} == {1, 4}


def test_what_is_given_is_left_as_it_is() -> None:
    found = packet_cases([{}], (), {"burst", "begin"})
    assert found == [{"counts_sending": False}, {"counts_sending": True}]


def test_flows_begin_at_their_share_of_the_fullest_link() -> None:
    """A class of three and one alone share 40 Gb/s: 10 each; one that starts below its NIC's rate stays there."""
    scenario = fc.incast(2, multiplicity=[3.0, 1.0], line_rate=["40Gbps", "5Gbps"], marking=fc.RED("5KB", "9KB", 0.1))
    found = changed(scenario, burst=4, counts_sending=True, begin="share")
    assert [flow.initial_rate for flow in found.flows] == pytest.approx([1.25e9, 0.625e9])
    assert found.burst == 4
    assert found.links[0].marking is not None
    assert found.links[0].marking.counts_sending is True
    assert changed(found) == found  # what is not named stays, such as a burst that the user has set
    ideal = changed(found, burst=1, counts_sending=False)
    assert ideal.burst == 1
    assert ideal.links[0].marking == dataclasses.replace(found.links[0].marking, counts_sending=False)
