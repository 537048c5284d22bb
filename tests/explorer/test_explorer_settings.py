"""Settings of the explorer: what can be moved, what it means, and what it is shared as."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.explorer.answers import Chart, Charts, default_axes
from fluidcc.explorer.python_text import python_of
from fluidcc.explorer.settings import MARKING, SCHEME, Setting, preset_names, schemes
from fluidcc.scenario.model import resolve
from fluidcc.scenario.parameters import specs

EVERY = [(scheme, preset) for scheme in schemes() for preset in preset_names(scheme)]


def run(setting: Setting) -> Any:
    """The scenario that the exported Python makes."""
    lines = python_of(setting).split("\ntrace = ")[0]
    names: dict[str, Any] = {} if setting.given is None else {"scenario": setting.given}
    exec(lines, names)
    return resolve(names["scenario"])


@pytest.mark.parametrize(("scheme", "preset"), EVERY)
def test_every_preset_is_a_setting(scheme: str, preset: str) -> None:
    """Its scheme is the preset's own, and each default is read back from its text, to the last bit."""
    setting = Setting(scheme, preset)
    found = setting.scenario()
    assert found.flows[0].scheme == fc.incast(1, scheme=scheme, preset=preset).flows[0].scheme
    for knob in setting.knobs.values():
        assert knob.read(knob.text(knob.default)) == knob.default
        assert list(knob.stops) == sorted(set(knob.stops))
        for place in (0, len(knob.stops) - 1) if knob.stops else ():
            assert knob.read(knob.stop_text(place)) == pytest.approx(knob.stops[place], rel=1e-9)


def test_knobs_are_the_specifications() -> None:
    """Every parameter of the scheme and of marking can be moved, those with a symbol by a slider in front."""
    setting = Setting()
    of = {name for name, knob in setting.knobs.items() if knob.home == SCHEME}
    assert of == set(specs(fc.DCQCN))
    assert {name for name, knob in setting.knobs.items() if knob.home == MARKING} == set(specs(fc.RED))
    front = {name for name, knob in setting.knobs.items() if knob.main}
    assert {"kmin", "kmax", "pmax", "g", "rate_ai", "flows", "delay", "feedback_delay"} <= front
    assert not front & {"win", "tcd", "clamp_tgt_rate", "variant"}
    assert {"w_ai", "eta", "max_stage"} <= {name for name, knob in Setting("hpcc").knobs.items() if knob.main}


def test_a_moved_value_is_in_the_scenario() -> None:
    setting = Setting().moved("kmin", "6KB").moved("g", "1/64").moved("flows", "12").moved("rate", "25Gbps")
    found = setting.scenario()
    assert found.links[0].marking == fc.incast(1, marking=fc.RED("6KB", "200KB", "1%")).links[0].marking
    assert found.flows[0].scheme.g == 1 / 64
    assert [flow.multiplicity for flow in found.flows] == [11, 1]
    assert found.links[0].rate == 25e9 / 8
    assert setting.values == (("rate", "25Gbps"), ("flows", "12"), ("kmin", "6KB"), ("g", "1/64"))
    assert setting.moved("kmin", "5KB").values == (("rate", "25Gbps"), ("flows", "12"), ("g", "1/64"))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("kmin", "5 apples", "kmin"),
        ("kmin", "-1KB", "too small"),
        ("g", "2", "too large"),
        ("rate", "40", "no unit"),
        ("flows", "2.5", "whole number"),
        ("kmn", "5KB", "did you mean kmin"),
        ("clamp_tgt_rate", "perhaps", "on"),
    ],
)
def test_bad_values_are_refused(name: str, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Setting().moved(name, text)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("scheme=dcqn", "did you mean dcqcn"),
        ("scheme=dcqcn&preset=none", "preset"),
        ("topology=ring", "incast"),
        ("kmin=5KB&kmax=1KB", "exceeds kmax"),
        ("flows=4&late=4", "late"),
        ("g=1/0", "divides by zero"),
        ("colour=red", "no such value"),
        ("scheme=hpcc-rx", r"'hpcc-rx' has no fluid.*; write one of acc, dcqcn, dctcp, hpcc, hpcc-multiq, none"),
        ("preset=hpcc-sim", "hpcc-sim of dcqcn has no fluid.*; write one of paper, strawman, vendor, hpcc-eval$"),
        ("kmin=" + "1" * 5000, "characters"),
    ],
)
def test_bad_addresses_are_refused(query: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Setting.of_query(query).scenario()


@given(st.data())
def test_addresses_and_python_hold_the_setting(data: st.DataObject) -> None:
    """Both ways of sharing give the same scenario back, whatever a hand did."""
    scheme, preset = data.draw(st.sampled_from(EVERY))
    setting = Setting(scheme, preset, data.draw(st.sampled_from(["incast", "parking-lot"])))
    for name in data.draw(st.lists(st.sampled_from(sorted(setting.knobs)), max_size=4)):
        knob = setting.knobs[name]
        if knob.stops:
            setting = setting.moved(name, knob.stop_text(data.draw(st.integers(0, len(knob.stops) - 1))))
    assert Setting.of_query(setting.query()) == setting
    try:
        scenario = setting.scenario()
    except InputError:  # values that exclude each other
        return
    assert run(setting) == scenario


@pytest.mark.parametrize(
    ("scheme", "name", "text"),
    [
        ("nscc", "qa_threshold", "unlimited"),
        ("acc", "max_on", "off"),
        ("timely", "tcd", "on"),
        ("timely", "max_on", "24us"),
        ("dcqcn", "feedback_delay", "path"),
    ],
)
def test_python_holds_what_is_no_number(scheme: str, name: str, text: str) -> None:
    """What is switched off, unlimited or left to the builder: the program's scenario is the page's."""
    setting = Setting(scheme).moved(name, text)
    assert run(setting) == resolve(setting.scenario())
    assert run(setting) != run(Setting(scheme)) or (scheme, name) == ("timely", "max_on")  # which marks nothing


def test_the_charts_python_holds_the_packets() -> None:
    """Every point of the exported chart's grid has the packets that were moved."""
    setting = Setting().moved("packet_size", "4KB").moved("flows", "20")
    x, y = np.array([2.0, 20.0]), np.array([1e-5, 1e-4])
    chart = Chart(("flows", "feedback_delay"), x, y, np.zeros((2, 2)))
    lines = python_of(setting, chart)
    made: list[fc.Scenario] = []
    names: dict[str, Any] = {"make": made.append}
    head, function = lines.split("\ntrace = ")[0], lines[lines.index("    lambda") : lines.index(",\n    over=")]
    exec(f"{head}\nmake(({function})(20.0, 5e-5))", names)
    found, wanted = resolve(made[0]), setting.moved("late", "0").scenario()
    assert found.packet_size == 4000
    assert found == resolve(wanted)


def test_another_scheme_keeps_the_traffic() -> None:
    setting = Setting().moved("flows", "20").moved("kmin", "6KB").switched(scheme="hpcc")
    assert setting == Setting("hpcc").moved("flows", "20")


def test_a_scenario_that_is_handed_in() -> None:
    scenario = fc.parking_lot(3, scheme="dcqcn")
    setting = Setting.of(scenario)
    assert setting.scenario() == scenario
    moved = setting.moved("g", "1/64").moved("kmin", "6KB")
    assert {flow.scheme.g for flow in moved.scenario().flows} == {1 / 64}
    assert {link.marking.kmin for link in moved.scenario().links} == {6000}  # type: ignore[union-attr]
    assert run(moved) == moved.scenario()
    with pytest.raises(InputError, match="Python"):
        setting.query()
    mixed = [dataclasses.replace(scenario.flows[0], scheme=fc.DCQCN(g="1/16")), *scenario.flows[1:]]
    with pytest.raises(InputError, match="several"):
        Setting.of(dataclasses.replace(scenario, flows=tuple(mixed)))


@pytest.mark.parametrize("name", ["timer", "kmin", "g"])
def test_a_slider_stands_at_its_end_for_what_is_beyond(name: str) -> None:
    """However far: from 1e99 the next key must not lead to the other end."""
    knob = Setting().knobs[name]
    assert [knob.nearest_stop(value) for value in (0.0, -1e99, 1e99, 1e300)] == [0, 0, *[len(knob.stops) - 1] * 2]
    for place in (0, 3, len(knob.stops) - 1):
        assert knob.nearest_stop(knob.stops[place]) == place


def test_a_scheme_without_values_in_front_has_no_chart() -> None:
    """Nothing of it has a range, and it has no equilibrium: that is said in words for who reads a page."""
    setting = Setting.of(fc.incast(4, scheme="none"))
    assert default_axes(setting) == ()
    chart = Charts().of(setting, default_axes(setting))
    assert chart.root.size == 0
    assert chart.why == "no roots: there is no analysis of an equilibrium for none"
    assert "chart" not in python_of(setting, chart)


def test_a_scheme_without_a_fluid_cannot_be_handed_in() -> None:
    with pytest.raises(InputError, match="'hpcc-rx' has no fluid, with which this begins; write one of"):
        Setting.of(fc.incast(4, scheme="hpcc-rx"))
