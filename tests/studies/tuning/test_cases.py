"""Cases in which packets must keep the bounds."""

from __future__ import annotations

import dataclasses

import pytest

import fluidcc as fc
from fluidcc.results.trace import Trace
from fluidcc.studies.tuning.cases import by_length, changed, in_words, length, packet_cases, packet_guards
from fluidcc.studies.tuning.evaluate import engine_draws
from fluidcc.studies.tuning.packet_check import OneSeed, packets


def test_every_case_has_every_way_and_further_sizes_the_plain_ones() -> None:
    """From the share too: the search takes that of many small packets, which is soon over."""
    found = packet_cases([{"flows": 2}, {"flows": 8}], [1024.0, 4096.0])
    assert len(found) == 2 * 8 + 2 * 2
    assert len({tuple(case.items()) for case in found}) == len(found)
    small = [case for case in found if case["packet_size"] == 1024.0]
    plain = [
        {"burst": 1, "counts_sending": False, "begin": begin, "packet_size": 1024.0} for begin in ("line", "share")
    ]
    assert small == [{"flows": n, **way} for n in (2, 8) for way in plain]
    assert {case["burst"] for case in found} == {1, 4}
    many = [case for case in packet_cases([{"flows": 32}], [1024.0, 4096.0]) if case["packet_size"] == 1024.0]
    assert many == [
        {"flows": 32, **way} for way in plain
    ]  # many small packets from line rate can hold a buffer full as well


def test_cases_that_take_three_times_the_packets_are_long() -> None:
    """Small packets are more in the same time; without times none is long."""
    short = [{"until": 0.02, "packet_size": 4096.0}, {"until": 0.04, "packet_size": 4096.0}]
    long = [{"until": 0.06, "packet_size": 4096.0}, {"until": 0.02, "packet_size": 1024.0}]
    assert by_length([long[1], short[1], long[0], short[0]]) == (short, long)
    assert by_length([{"burst": 4}, {"burst": 1}]) == ([{"burst": 4}, {"burst": 1}], [])
    assert by_length([]) == ([], [])


def test_cases_in_words() -> None:
    """Values once and in order; a way that none of the cases has is not told."""
    cases = packet_cases([{"flows": 8}, {"flows": 2}, {"flows": 32}], (4096.0, 1024.0))
    assert in_words(cases) == (
        "2, 8 or 32 flows; packets of 1024 or 4096 B; bursts of 1 or 4; started at line or share; the packet "
        "in service counted or not"
    )
    assert in_words([{"flows": 8, "counts_sending": False}]) == "8 flows"
    assert in_words([{"counts_sending": True}]) == "the packet in service counted"
    assert in_words([{"g": 0.5}]) == ""


def test_what_is_given_is_left_as_it_is() -> None:
    found = packet_cases([{}], (), {"burst", "begin"})
    assert found == [{"counts_sending": False}, {"counts_sending": True}]


def test_many_senders_that_start_at_line_rate_run_longer() -> None:
    """Four times as many as eight begin with four times as much; starts at a share are soon over."""
    found = packet_cases([{"flows": 8}, {"flows": 32}], [1024.0, 4096.0], link=(50e9, 4178))
    assert {case["until"]: case["begin"] for case in found} == {0.02: "share", 0.04: "line", 0.16: "line"}
    longer = [case for case in found if case["until"] > 0.04]
    assert longer == [case for case in found if case["flows"] == 32 and case["begin"] == "line"]
    guards = packet_guards([{"flows": 8}, {"flows": 32}], link=(50e9, 4178))
    told = [(case["flows"], case["begin"], case["until"]) for case in guards]
    assert told == [(8, "share", 0.02), (32, "share", 0.02), (8, "line", 0.04), (32, "line", 0.16)]
    assert {case["burst"] for case in guards} == {16}
    assert packet_guards([{}], given={"begin"}) == [{"burst": 16}]  # where flows begin is the user's
    assert length(12.5e9, 4178) == 0.051  # 150 000 packets, in whole ms
    assert (length(50e9, 4178), length(50e9, 4178, "share")) == (0.04, 0.02)  # or until a start is over


def test_a_case_runs_as_long_as_it_says() -> None:
    """And what is done of a point is not run again: one trace of two comes from before."""
    draws = dataclasses.replace(engine_draws("hybrid", 2e-4, None), engine="packet")
    cases = [{"burst": 1}, {"burst": 2, "until": 4e-4}]
    asked = OneSeed(lambda kmin, burst: changed(fc.incast(2), burst=burst), cases, draws, [5], {"utilisation"}, 1)
    done: dict[tuple[int, int], Trace] = {}
    scenarios = asked.scenarios({"kmin": 5e3})
    first = packets(scenarios, asked.untils, None, [5], done=done)
    assert [runs[0].summary["until_s"] for runs in first.traces] == [2e-4, 4e-4]
    both = packets(scenarios, asked.untils, None, [5, 6], done=done)
    assert both.traces[1][0] is first.traces[1][0]
    assert sorted(done) == [(0, 5), (0, 6), (1, 5), (1, 6)]
    measured = asked([{"kmin": 5e3}])[0].metrics["utilisation"]
    assert measured.tolist() == [runs[0].summary["utilisation"] for runs in first.traces]
    assert [asked.traces[(5e3,), case].summary["queue_bytes"] for case in (0, 1)] == [
        runs[0].summary["queue_bytes"] for runs in first.traces
    ]


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
