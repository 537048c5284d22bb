"""Jain's index over time and the time to fairness, on traces made by hand and on a run."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.builders import toml_file as scenario_file
from fluidcc.theory.fairness import over_time

US = 1e-6


def made(rates: Any, starts: Any = None, ends: Any = None, counts: Any = None, **others: Any) -> fc.Trace:
    """A trace of these rates (time, flow), a sample each microsecond; other variables likewise."""
    rates = np.asarray(rates, float)
    flows = rates.shape[1]
    starts = [0.0] * flows if starts is None else starts
    ends = [None] * flows if ends is None else ends
    scenario = fc.incast(
        flows,
        start=list(starts),
        size=[float("inf") if end is None else "1MB" for end in ends],
        multiplicity=[1.0] * flows if counts is None else list(counts),
    )
    took = [end - start for start, end in zip(starts, ends, strict=True) if end is not None]
    names = [flow.name for flow in scenario.flows]
    variables = {"rate": rates, **{name: np.asarray(value, float) for name, value in others.items()}}
    dataset = xr.Dataset(
        {name: (("time", "flow"), value) for name, value in variables.items()},
        coords={
            "time": np.arange(len(rates)) * US,
            "flow": names,
            "multiplicity": ("flow", [1.0] * flows if counts is None else list(counts)),
        },
        attrs={"scenario": scenario_file.to_toml(scenario), "summary": json.dumps({"fct_s": took})},
    )
    return fc.Trace(dataset)


def index(*arguments: Any, variable: Any = None, interval: Any = None, **more: Any) -> list[float]:
    return fc.theory.jain_over_time(made(*arguments, **more), variable, interval).values.tolist()


# -- the index -----------------------------------------------------------------------------------------------


def test_known_indices() -> None:
    """Equal shares, one of three, 1 to 3, and nobody."""
    found = index([[2, 2, 2], [0, 7, 0], [1, 3, 0], [1, 2, 3], [0, 0, 0]])
    assert found[:4] == pytest.approx([1, 1 / 3, 16 / 30, 36 / 42], rel=1e-15)
    assert np.isnan(found[4])


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 9)), min_size=1, max_size=8))
@settings(max_examples=40)
def test_a_class_counts_as_its_flows(classes: list[tuple[int, int]]) -> None:
    """(sum x)^2 / (n sum x^2) in fractions, of classes and of their members alike."""
    rates, counts = zip(*classes, strict=True)
    members = [Fraction(rate) for rate, count in classes for _ in range(count)]
    squares = len(members) * sum(x * x for x in members)
    together = index([rates], counts=counts)[0]
    if squares == 0:
        assert np.isnan(together)
        return
    assert together == pytest.approx(float(sum(members) ** 2 / squares), rel=1e-14)
    assert index([[float(x) for x in members]])[0] == pytest.approx(together, rel=1e-14)


def test_flows_count_while_they_run() -> None:
    """The third starts at 1.5 us and the first ends at 3.5 us, whatever the trace holds before and after."""
    rates = [[1, 1, 9], [1, 3, 9], [1, 3, 2], [2, 2, 2], [9, 1, 3], [9, 2, 2]]
    found = index(rates, starts=[0, 0, 1.5 * US], ends=[3.5 * US, None, None])
    assert found == pytest.approx([1, 0.8, 36 / 42, 1, 0.8, 1], rel=1e-15)


def test_a_sample_at_a_start_or_an_end_counts() -> None:
    found = index([[4, 0], [4, 4], [4, 0], [0, 4]], starts=[0, 1 * US], ends=[2 * US, None])
    assert found == pytest.approx([1, 1, 0.5, 1], rel=1e-15)


def test_means_over_an_interval() -> None:
    """Two flows that take turns: one of two at each sample, equal over two samples once both have run so long."""
    turns = [[2, 0], [0, 2], [2, 0], [0, 2], [2, 0], [0, 2]]
    assert index(turns) == pytest.approx([0.5] * 6)
    assert index(turns, interval="2us", starts=[0, 0.5 * US])[3:] == pytest.approx([1] * 3)
    # From 2 us the first counts, from 3.5 us the second.
    assert index(turns, interval="2us", starts=[0, 1.5 * US])[2:] == pytest.approx([1, 1, 1, 1])
    assert index(turns, interval="1us")[1:] == index(turns)[1:]  # of one sample
    assert index(turns, interval="0.6us")[1:] == index(turns)[1:]
    three = index([[0, 3], [3, 3], [6, 0], [3, 3], [0, 3], [0, 3]], interval="3us")
    assert three[3:] == pytest.approx([36 / 40, 25 / 26, 16 / 20], rel=1e-14)  # means 4 2, 3 2, 1 3


def test_a_flow_counts_once_it_has_run_for_the_interval() -> None:
    """The first from 2 us on, the second from 3.5 us on. Catches means over times before a flow's start."""
    found = index([[1, 3]] * 6, interval="2us", starts=[0, 1.5 * US])
    assert np.isnan(found[:2]).all()
    assert found[2:] == pytest.approx([1, 1, 0.8, 0.8], rel=1e-15)


def test_windows_where_all_have_one() -> None:
    rates, windows, holes = [[1, 3]] * 2, [[5, 5]] * 2, [[5, np.nan]] * 2
    assert index(rates, window=windows) == [1, 1]
    assert index(rates, window=windows, variable="rate") == pytest.approx([0.8, 0.8])
    assert index(rates, window=holes) == pytest.approx([0.8, 0.8])
    assert index(rates, delivered=[[1, 1], [1, 0]], variable="delivered") == pytest.approx([1, 0.5])


@pytest.mark.parametrize("variable", ["queue", "windows", "", "rate " * 100])
def test_variables_that_are_none(variable: str) -> None:
    with pytest.raises(fc.InputError, match=r"variable: .* is none of rate"):
        fc.theory.jain_over_time(made([[1, 3]] * 2), variable)


@pytest.mark.parametrize("interval", ["0s", "0.4us", "1KB", "-3us"])
def test_intervals_that_are_none(interval: str) -> None:
    with pytest.raises(fc.InputError, match="interval"):
        fc.theory.jain_over_time(made([[1, 3]] * 4), interval=interval)


# -- the time to fairness ------------------------------------------------------------------------------------

FAIR, UNFAIR = [1.0, 1.0], [1.0, 3.0]


def time_to(*rates: Any, level: float = 0.95, lasting: bool = True, **more: Any) -> float:
    return fc.theory.time_to_fairness(made(rates, **more), level, lasting=lasting)


def test_the_first_time_is_not_for_good() -> None:
    there_and_back = [UNFAIR, FAIR, UNFAIR, FAIR, FAIR]
    assert time_to(*there_and_back) == pytest.approx(3 * US)
    assert time_to(*there_and_back, lasting=False) == pytest.approx(US)
    assert time_to(FAIR, UNFAIR, lasting=False) == 0
    assert np.isnan(time_to(UNFAIR, UNFAIR, lasting=False))
    assert np.isnan(time_to(FAIR, FAIR, starts=[0, 5 * US], lasting=False))


def test_times_by_hand() -> None:
    assert time_to(FAIR, FAIR) == 0
    assert time_to(UNFAIR, UNFAIR, FAIR, FAIR) == pytest.approx(2 * US)
    assert time_to(FAIR, UNFAIR, FAIR, UNFAIR, FAIR) == pytest.approx(4 * US)  # until it stays
    assert np.isnan(time_to(FAIR, UNFAIR))
    assert time_to(UNFAIR, UNFAIR, level=0.8) == 0  # at the level is enough
    assert np.isnan(time_to(UNFAIR, UNFAIR, level=0.8 + 1e-12))
    assert time_to([1, 1.1], FAIR, level=1) == pytest.approx(US)


def test_it_counts_from_the_last_start() -> None:
    assert time_to(UNFAIR, UNFAIR, UNFAIR, FAIR, FAIR, starts=[0, 1.5 * US]) == pytest.approx(1.5 * US)
    assert time_to(UNFAIR, UNFAIR, FAIR, FAIR, starts=[0, 1.5 * US]) == 0


def test_only_while_all_run() -> None:
    """What is fair after the first end is none of it, nor is what is unfair."""
    assert np.isnan(time_to(UNFAIR, UNFAIR, FAIR, FAIR, ends=[1.5 * US, None]))
    assert time_to(UNFAIR, FAIR, FAIR, UNFAIR, ends=[2.5 * US, None]) == pytest.approx(US)
    with pytest.raises(fc.InputError, match="ends before the last one starts"):
        time_to(FAIR, FAIR, FAIR, starts=[0, 2 * US], ends=[1.5 * US, None])


def test_silence_is_not_fair() -> None:
    assert np.isnan(time_to(FAIR, [0, 0]))
    assert time_to([0, 0], FAIR) == pytest.approx(US)


def test_a_trace_that_ends_before_all_have_started_says_nothing() -> None:
    assert np.isnan(time_to(FAIR, FAIR, starts=[0, 5 * US]))
    assert np.isnan(time_to(FAIR, FAIR, FAIR, starts=[0, 0.2 * US], ends=[0.7 * US, None]))


@pytest.mark.parametrize("level", [0, -1, 1.001, float("nan")])
def test_levels_that_are_none(level: float) -> None:
    with pytest.raises(fc.InputError, match="level"):
        time_to(FAIR, FAIR, level=level)


# -- a run ---------------------------------------------------------------------------------------------------


def test_a_run_s_own_times() -> None:
    """Ends are starts and completions; the index begins with one flow, falls as each joins, and ends with one."""
    scenario = fc.incast(4, rate="100Gbps", scheme=fc.HPCC(), size=["400KB", "100KB"], stagger="10us")
    trace = fc.simulate(scenario, "200us", engine="packet", sample_interval="1us")
    ends = fc.theory.finish_times(trace)
    assert ends == pytest.approx(np.arange(4) * 10 * US + trace.summary["fct_s"], rel=1e-12)
    found = fc.theory.jain_over_time(trace)
    assert found.dims == ("time",)
    assert found.sel(time=slice(1 * US, 9 * US)).values == pytest.approx(1)
    assert float(found.sel(time=10.5 * US, method="nearest")) < 1
    after = found.sel(time=slice(np.sort(ends)[-2] + US, ends.max() - US)).values
    assert after == pytest.approx(1)
    assert np.isnan(found.sel(time=slice(ends.max() + US, None)).values).all()
    endless = fc.simulate(fc.incast(2, rate="100Gbps", scheme=fc.HPCC()), "50us", engine="packet")
    assert np.isinf(fc.theory.finish_times(endless)).all()
    assert fc.theory.time_to_fairness(endless) < 50 * US


def test_flows_of_a_trace_are_found_though_two_have_one_name() -> None:
    """A trace of all is in their order; of some, each is the first of its name."""
    network = fc.incast(3, scheme=fc.DCQCN())
    named = [dataclasses.replace(network.flows[0], name=name, multiplicity=1) for name in ("a", "a", "b")]
    text = scenario_file.to_toml(dataclasses.replace(network, flows=tuple(named)))

    def shown(*names: str) -> list[int]:
        flow = SimpleNamespace(values=np.array(names))
        trace: Any = SimpleNamespace(dataset=SimpleNamespace(attrs={"scenario": text}, flow=flow))
        return over_time._shown(trace)

    assert shown("a", "a", "b") == [0, 1, 2]
    assert shown("b", "a") == [2, 0]
    nameless = [dataclasses.replace(flow, name="") for flow in named[:2]] + named[2:]
    text = scenario_file.to_toml(dataclasses.replace(network, flows=tuple(nameless)))
    assert shown("flow 1", "b", "flow 0") == [1, 2, 0]
