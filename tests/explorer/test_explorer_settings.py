"""Settings of the explorer: what can be moved, what it means, and what it is shared as."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.explorer.knobs import MARKING, SCHEME
from fluidcc.explorer.python_text import python_of
from fluidcc.explorer.settings import Setting, preset_names, schemes
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
