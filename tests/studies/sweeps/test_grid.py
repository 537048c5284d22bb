"""Axes of sweeps: what is read, and what is refused."""

import contextlib
import importlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.results.grid import Grid
from fluidcc.studies.sweeps.grid import grid_of, parse_axis
from fluidcc.units import RATIO, SIZE, TIME


def test_text_among_rates_is_a_rate() -> None:
    """By the others' unit, or by the name of a parameter; numbers are in SI."""
    assert grid_of({"pace": ["10Gbps", 5e9, "0"]}).axes["pace"].tolist() == [1.25e9, 5e9, 0]
    for over in ({"rate": ["10Gbps", "1e9"]}, {"rate": ["1e9"]}, {"rate_ai": ["4e6"]}, {"pace": ["1Gbps", "1e9"]}):
        with pytest.raises(InputError, match=r"has no unit; write .* if bytes/s were meant"):
            grid_of(over)


def test_ranges_include_both_ends():
    assert parse_axis("5KB:20KB:4", SIZE, "kmin") == pytest.approx([5e3, 10e3, 15e3, 20e3])
    assert parse_axis("log:1/1024:1/16:4", RATIO, "g") == pytest.approx([1 / 1024, 1 / 256, 1 / 64, 1 / 16])
    assert parse_axis("50us,1ms", TIME, "timer") == pytest.approx([5e-5, 1e-3])
    assert parse_axis("7us", TIME, "timer") == pytest.approx([7e-6])


@pytest.mark.parametrize(
    "text", ["1KB:2KB", "1KB:2KB:1", "1KB:2KB:x", "log:0B:2KB:4", "1KB:2KB:99999999999", "", ",", "1KB:2KB:-3", "a:b:c"]
)
def test_bad_ranges_say_what_to_type(text):
    with pytest.raises(InputError, match="kmin"):
        parse_axis(text, SIZE, "kmin")


@given(st.text(max_size=30))
def test_any_text_is_an_axis_or_refused(text):
    with contextlib.suppress(InputError):
        assert np.isfinite(parse_axis(text, SIZE, "kmin")).all()


def test_columns_vary_the_last_name_fastest():
    columns = grid_of({"a": [1, 2], "b": ["1KB", "2KB", "3KB"]}).columns()
    assert columns["a"].tolist() == [1, 1, 1, 2, 2, 2]
    assert columns["b"].tolist() == [1e3, 2e3, 3e3] * 2


@pytest.mark.parametrize("over", [{}, {"a": []}, {"a": "1KB"}, {"a": [[1, 2]]}, {"a": ["x"]}, {"a": [object()]}])
def test_bad_grids_are_refused(over):
    with pytest.raises(InputError, match=r"over|a:"):
        grid_of(over)


def test_too_many_points_are_refused():
    with pytest.raises(InputError, match="points"):
        grid_of({name: range(1000) for name in "abc"})


def test_as_many_points_as_may_be_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("fluidcc.studies.sweeps.grid"), "MOST_POINTS", 6)
    assert grid_of({"a": [1, 2], "b": [1, 2, 3]}).points == 6
    with pytest.raises(InputError, match="7 points are more than 6"):
        grid_of({"a": range(7)})
    assert len(parse_axis("1KB:6KB:6", SIZE, "kmin")) == 6
    with pytest.raises(InputError, match="asks for 7 values; write 2, for both ends, to 6"):
        parse_axis("1KB:6KB:7", SIZE, "kmin")
    assert parse_axis("5KB:5KB:1", SIZE, "kmin").tolist() == [5e3]  # of one value alone
    assert parse_axis("log:5KB:5KB:1", SIZE, "kmin") == pytest.approx([5e3])
    assert parse_axis("log:9KB:1KB:3", SIZE, "kmin") == pytest.approx([9e3, 3e3, 1e3])
    for text in ("log:0B:5KB:2", "log:5KB:0B:2", "log:-1KB:5KB:2"):
        with pytest.raises(InputError, match="needs ends above 0"):
            parse_axis(text, SIZE, "kmin")


def test_signature_tells_grids_apart():
    grid = Grid({"a": np.array([1.0, 2.0])})
    assert grid.signature() == Grid({"a": np.array([1.0, 2.0])}).signature()
    assert grid.signature() != Grid({"a": np.array([1.0, 3.0])}).signature()
    assert grid.signature() != Grid({"b": np.array([1.0, 2.0])}).signature()


@pytest.mark.parametrize("values", [np.array(2.0), np.float64(2.0), np.zeros((2, 2)), np.ndarray, b"12", {1: 2}, 3])
def test_what_is_no_list_of_values(values: Any) -> None:
    with pytest.raises(InputError, match=r"^over g: expected a list of values, not [^\n]*; write for example "):
        grid_of({"g": values})


@pytest.mark.parametrize("engine", ["fluid", "hybrid"])
def test_names_that_the_function_does_not_take(engine):
    with pytest.raises(fc.InputError, match=r"over: make_scenario cannot be called with y .*name its parameters"):
        fc.sweep(lambda x: fc.incast(2, scheme=fc.DCQCN(g=x)), over={"y": [0.1, 0.2]}, until="1ms", engine=engine)
    with pytest.raises(fc.InputError, match="did you mean kmin"):
        fc.sweep(lambda kmin: fc.incast(2, scheme="dcqcn"), over={"Kmin": [1e4, 2e4]}, until="1ms", engine=engine)
