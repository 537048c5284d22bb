"""Traces of two engines on common times, and what makes them traces of two scenarios."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.builders.toml_file import to_toml
from fluidcc.errors import InputError
from fluidcc.results import comparison
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import resolve

SCENARIO = resolve(fc.incast(2))


def traced(times: list[float], slope: float = 1.0, scenario: Any = SCENARIO, **summary: Any) -> Trace:
    """A queue and rates that grow with time."""
    at = np.array(times)
    data = xr.Dataset(
        {
            "queue": (("time", "link"), slope * at[:, None]),
            "rate": (("time", "flow"), slope * at[:, None] * [10.0, 20.0]),
        },
        {"time": at, "link": ["l"], "flow": ["a", "b"], "multiplicity": ("flow", [1.0, 1.0])},
        {"scenario": to_toml(scenario), "summary": json.dumps({"window_s": [0.0, 1.0]} | summary)},
    )
    return Trace(data)


def aligned(ours: list[Trace], theirs: list[Trace]) -> xr.Dataset:
    return comparison._aligned(("fluid", "packet"), ours, theirs, "l")


def test_the_first_is_read_at_the_times_of_the_second_up_to_the_shortest_end() -> None:
    found = aligned([traced([0.0, 2.0, 4.0])], [traced([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 3.0, seed=7)])
    assert found.time.values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert found["queue_fluid"].values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert found["rate_fluid"].isel(flow=1).values.tolist() == [0.0, 20.0, 40.0, 60.0, 80.0]
    assert found["queue_packet"].values.tolist() == [[0.0, 3.0, 6.0, 9.0, 12.0]]
    assert found["seed"].values.tolist() == [7]
    assert "seed_first" not in found.dims
    assert found["queue_fluid"].attrs == {"units": "bytes", "long_name": "queue of the fluid"}
    assert found["rate_packet"].attrs == {"units": "bytes/s", "long_name": "rate of the packet"}


def test_beyond_its_ends_a_trace_stays_as_it_was() -> None:
    """Times within rounding of the last one, and before the first sample."""
    found = aligned([traced([1.0, 2.0 - 1e-9])], [traced([0.0, 1.0, 2.0])])
    assert found["queue_fluid"].values == pytest.approx([1.0, 1.0, 2.0], abs=1e-8)


def test_runs_by_seed_are_side_by_side() -> None:
    found = aligned(
        [traced([0.0, 1.0], 1.0, seed=3), traced([0.0, 1.0], 2.0, seed=4)],
        [traced([0.0, 1.0], 5.0, seed=8), traced([0.0, 0.5, 1.0], 6.0, seed=9)],
    )
    assert found["seed_first"].values.tolist() == [3, 4]
    assert found["seed"].values.tolist() == [8, 9]
    assert found["queue_fluid"].values.tolist() == [[0.0, 1.0], [0.0, 2.0]]
    assert found["queue_packet"].values.tolist() == [[0.0, 5.0], [0.0, 6.0]]
    unnamed = aligned([traced([0.0, 1.0])], [traced([0.0, 1.0])] * 2)
    assert unnamed["seed"].values.tolist() == [0, 1]


def test_windows_may_differ_by_a_thousandth() -> None:
    ours = traced([0.0, 1.0], window_s=[1.0, 2.0])
    comparison._check_same(ours, traced([0.0, 1.0], window_s=[1.0009, 2.0]))
    with pytest.raises(InputError, match=r"the windows are 1s:2s and 1s:2\.003s"):
        comparison._check_same(ours, traced([0.0, 1.0], window_s=[1.0, 2.003]))


def changed(**flow: Any) -> Any:
    first, second = SCENARIO.flows
    return dataclasses.replace(SCENARIO, flows=(dataclasses.replace(first, **flow), second))


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        (changed(scheme=fc.HPCC()), "schemes"),
        (changed(start=1e-3), "flows"),
        (dataclasses.replace(SCENARIO, links=(dataclasses.replace(SCENARIO.links[0], delay=9e-6),)), "links"),
        (dataclasses.replace(SCENARIO, packet_size=500.0), "networks"),
    ],
)
def test_traces_of_other_scenarios_are_refused(scenario: Any, says: str) -> None:
    with pytest.raises(InputError, match=f"compare: the traces differ in their {says}"):
        comparison._check_same(traced([0.0, 1.0]), traced([0.0, 1.0], scenario=scenario))


def test_parameters_of_a_scheme_may_differ() -> None:
    other = changed(scheme=fc.DCQCN(g=0.25))
    comparison._check_same(traced([0.0, 1.0]), traced([0.0, 1.0], scenario=other))


@pytest.mark.parametrize("name", ["flow", "link"])
def test_other_names_are_other_scenarios(name: str) -> None:
    ours = traced([0.0, 1.0])
    names = {"flow": ["a", "c"], "link": ["m"]}[name]
    theirs = Trace(ours.dataset.assign_coords({name: names}))
    with pytest.raises(InputError, match=f"compare: the traces differ in their {name}s"):
        comparison._check_same(ours, theirs)


@pytest.mark.parametrize(
    ("opens", "closes", "times"),
    [
        (1.0, 3.0, [1.0, 2.0, 3.0]),
        (1.0 + 5e-13, 3.0 - 5e-13, [1.0, 2.0, 3.0]),  # as text rounds them
        (1.1, 3.9, [2.0, 3.0]),
        ("0s", "1s", [0.0, 1.0]),
    ],
)
def test_a_part_of_a_trace_has_both_of_its_ends(opens: Any, closes: Any, times: list[float]) -> None:
    assert traced([0.0, 1.0, 2.0, 3.0, 4.0]).between(opens, closes).time.values.tolist() == times


@pytest.mark.parametrize(("opens", "closes"), [(1.0, 1.0), (1.1, 2.9), (5.0, 6.0), (3.0, 1.0)])
def test_a_part_of_fewer_than_two_samples_is_refused(opens: float, closes: float) -> None:
    with pytest.raises(InputError, match="holds fewer than two samples of a trace of 4s"):
        traced([0.0, 1.0, 2.0, 3.0, 4.0]).between(opens, closes)


def test_a_traces_table_has_what_is_there() -> None:
    full = traced([0.0, 1.0], jain=0.5, utilisation=None, fct_s=[], drops=0, queue_bytes={"mean": 5e3, "p99": 9e3})
    rows = dict(full._rows())
    assert {name.split()[0] for name in rows} >= {"queue"}
    assert rows["queue"] == "mean 5KB, p99 9KB"
    assert not any("utilisation" in name or "fct" in name for name in rows)
    assert any(value == "0.5" for value in rows.values())
    assert any(value == "0" for value in rows.values())  # no drops are told too
    assert "queue" not in dict(traced([0.0, 1.0])._rows())


def test_the_bottleneck_has_the_largest_mean_queue() -> None:
    data = traced([0.0, 1.0, 2.0]).dataset.drop_vars("queue").drop_vars("link")
    queues = np.array([[9.0, 4.0], [0.0, 4.0], [0.0, 4.0]])
    both = data.assign(queue=(("time", "link"), queues)).assign_coords(link=["x", "y"])
    assert Trace(both).bottleneck() == "y"
