"""Differences between two engines, of numbers that are written here."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.results import comparison
from fluidcc.results import comparison as module
from fluidcc.results.comparison import Comparison, chance_tolerances, differences, settling
from fluidcc.scenario.model import resolve

SAME: dict[str, Any] = {
    "queue": {"mean": 100.0, "p95": 200.0, "max_whole_run": 400.0},
    "rates": [10.0, 20.0],
    "jain": 0.9,
    "drain_time_s": 1.0,
    "settling_time_s": 2.0,
    "window_bytes": 50.0,
}
NOTHING = {
    "queue_mean_rel": 0.0, "queue_p95_rel": 0.0, "queue_peak_rel": 0.0, "drain_time_rel": 0.0, "rate_rel_max": 0.0,
    "window_rel": 0.0, "jain_abs": 0.0, "settling_time_rel": 0.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "theirs", "different"),
    [
        ({}, {}, {}),
        ({"queue": {"mean": 80.0, "p95": 260.0, "max_whole_run": 300.0}}, {},
         {"queue_mean_rel": 0.2, "queue_p95_rel": 0.3, "queue_peak_rel": 0.25}),
        ({"rates": [9.0, 24.0]}, {}, {"rate_rel_max": 0.2}),  # the worst
        ({"rates": [0.0, 20.0]}, {"rates": [0.0, 25.0]}, {"rate_rel_max": 0.2}),
        ({"rates": [1.0, 20.0]}, {"rates": [0.0, 20.0]}, {"rate_rel_max": math.inf}),
        ({"rates": [0.0, 0.0]}, {"rates": [0.0, 0.0]},
         {"rate_rel_max": None, "queue_mean_rel": None, "queue_p95_rel": None}),  # nothing is sent
        ({"rates": [0.0, 0.0]}, {}, {"rate_rel_max": 1.0}),
        ({"jain": 0.7}, {}, {"jain_abs": 0.2}),
        ({"jain": None}, {}, {"jain_abs": None}),
        ({}, {"jain": None}, {"jain_abs": None}),
        ({"drain_time_s": 1.5}, {}, {"drain_time_rel": 0.5}),
        ({"drain_time_s": None}, {}, {"drain_time_rel": math.inf}),
        ({"drain_time_s": None}, {"drain_time_s": None}, {"drain_time_rel": None}),
        ({"drain_time_s": 0.1}, {}, {"drain_time_rel": 0.9}),  # ten samples
        ({"drain_time_s": 0.0999}, {}, {"drain_time_rel": None}),
        ({}, {"drain_time_s": 0.05}, {"drain_time_rel": None}),
        ({"settling_time_s": 3.0}, {}, {"settling_time_rel": 0.5}),
        ({"settling_time_s": 0.0}, {}, {"settling_time_rel": None}),  # it was never apart
        ({}, {"settling_time_s": 0.0}, {"settling_time_rel": math.inf}),
        ({"settling_time_s": None}, {}, {"settling_time_rel": math.inf}),
        ({"window_bytes": 60.0}, {}, {"window_rel": 0.2}),
        ({"window_bytes": None}, {"window_bytes": None}, {"window_rel": None}),
        ({"window_bytes": 0.0}, {"window_bytes": 0.0}, {}),
    ],
)  # fmt: skip
def test_differences_are_relative_to_the_second(
    ours: dict[str, Any], theirs: dict[str, Any], different: dict[str, float | None]
) -> None:
    found = differences(SAME | ours, SAME | theirs, 10.0, 0.01)
    assert found == pytest.approx(NOTHING | different)


def test_a_queue_below_a_packet_counts_as_one() -> None:
    short = {"queue": {"mean": 20.0, "p95": 0.0, "max_whole_run": 400.0}}
    found = differences(SAME | short, SAME | {"queue": {"mean": 10.0, "p95": 5.0, "max_whole_run": 50.0}}, 100.0, 0.01)
    assert found["queue_mean_rel"] == pytest.approx(0.1)
    assert found["queue_p95_rel"] == pytest.approx(0.05)
    assert found["queue_peak_rel"] == pytest.approx(3.5)


# -- settling ----------------------------------------------------------------------------------------------------

TWO = resolve(fc.incast(2))
NAME = TWO.links[0].name or "link 0"


def rates(gaps: list[float], step: float = 1.0, begins: float = 0.0) -> xr.DataArray:
    """Two flows whose rates differ by these shares of their mean."""
    shares = np.array(gaps)
    values = 10.0 * np.stack([1 + shares / 2, 1 - shares / 2], axis=1)
    times = begins + step * np.arange(len(gaps))
    return xr.DataArray(values, dims=("time", "flow"), coords={"time": times})


@pytest.mark.parametrize(
    ("gaps", "width", "time"),
    [
        ([1.0, 0.5, 0.2, 0.1, 0.0], 1.0, 3.0),  # just a tenth
        ([1.0, 0.5, 0.2, 0.05, 0.0], 1.0, 2 + 2 / 3),
        ([0.05, 0.1, 0.0], 1.0, 0.0),  # never apart
        ([0.0, 0.05, 1.0, 0.3, 0.05, 0.5, 0.0], 1.0, 3.8),  # after the widest, the first time
        ([1.0, 0.9, 0.8], 1.0, None),
        ([0.5, 0.0, 1.0], 1.0, None),
        ([1.0, 0.0], 1.0, 0.9),  # two samples will do
        ([1.0], 1.0, None),
        ([1.2, 0.8, 0.2, 0.0, 0.0], 2.0, 1.5 + 1.0),  # of two: 1, 0.5, 0.1 in the middle between them
        ([1.2, 0.8], 2.0, None),  # no room for a mean and another
        ([1.2, 0.8, 0.0, 0.0], 2.4, 2 + 0.75 - 0.5 + 0.0),  # 1, 0.4, 0: a fourth of the way is left
        ([1.2, 0.8, 0.0], 0.2, 2 - 0.125),  # no fewer than one
    ],
)  # fmt: skip
def test_rates_settle_at_a_tenth_of_their_mean(gaps: list[float], width: float, time: float | None) -> None:
    found = settling(TWO, NAME, rates(gaps), width)
    assert found == (None if time is None else pytest.approx(time))


def test_times_count_from_the_last_start_of_the_long_lived() -> None:
    first, second = TWO.flows
    late = dataclasses.replace(TWO, flows=(first, dataclasses.replace(second, start=2.0)))
    found = settling(late, NAME, rates([0.0, 5.0, 1.0, 0.4, 0.05, 0.0]), 1.0)
    assert found == pytest.approx(2 - 0.05 / 0.35)
    finite = dataclasses.replace(TWO, flows=(first, dataclasses.replace(second, size=1e6)))
    assert settling(finite, NAME, rates([1.0, 0.0]), 1.0) is None
    three = dataclasses.replace(TWO, flows=(first, second, dataclasses.replace(second, start=9.0, size=1e6)))
    both = xr.concat([rates([1.0, 0.0]), 1e3 + rates([0.0, 0.0]).isel(flow=[0])], "flow")
    assert settling(three, NAME, both, 1.0) == pytest.approx(0.9)
    assert settling(TWO, NAME, 0 * rates([1.0, 0.0]), 1.0) is None  # silence is no agreement


def test_a_finer_grid_counts_in_seconds() -> None:
    gaps = [1.2, 0.8, 0.2, 0.0, 0.0]
    assert settling(TWO, NAME, rates(gaps, 1e-3), 2e-3) == pytest.approx(2.5e-3)
    assert settling(TWO, NAME, rates(gaps, begins=5.0), 2.0) == pytest.approx(7.5)  # of a trace cut from a longer one


# -- rates and windows -------------------------------------------------------------------------------------------


def test_flows_that_are_alike_are_one_sample() -> None:
    """A class of two and one of one, weighed; one that starts later is another."""
    flow = TWO.flows[0]
    flows = (
        dataclasses.replace(flow, name="a", multiplicity=2.0),
        dataclasses.replace(flow, start=1.0),
        dataclasses.replace(flow, name="b", source="s", multiplicity=2.0),
    )
    scenario = dataclasses.replace(TWO, flows=flows)
    assert module._ensemble_rates(scenario, [10.0, 7.0, 40.0]) == [25.0, 7.0]


def test_windows_are_of_the_second_half_weighed_by_classes() -> None:
    def traced(values: list[list[float]] | None) -> Any:
        times = {"time": [0.0, 1.0, 2.0, 3.0, 4.0]}
        data = xr.Dataset({"rate": ("time", np.ones(5))}, times)
        if values is not None:
            data["window"] = (("time", "flow"), np.array(values))
        data = data.assign_coords(multiplicity=("flow", [3.0, 1.0]))
        return fc.Trace(data)

    still = traced([[99.0, 99.0], [99.0, 99.0], [10.0, 50.0], [10.0, 50.0], [10.0, 50.0]])
    rising = traced([[9.0, 9.0], [9.0, 9.0], [0.0, 0.0], [10.0, 10.0], [20.0, 20.0]])
    assert module._steady_window([still]) == pytest.approx(20.0)
    assert module._steady_window([still, rising]) == pytest.approx(15.0)
    assert module._steady_window([still, traced(None)]) is None


# -- tolerances --------------------------------------------------------------------------------------------------

LINK = "sw"
PACKETS: Any = SimpleNamespace(wire_packet=1000.0)


def run(queue: float = 1e6, p95: float = 1e6, rate: tuple[float, float] = (1e9, 1e9), jain: float | None = 1.0) -> Any:
    """Summary of one run; a queue of another link is beside it."""
    queues = [
        {"name": "other", "queue_bytes": {"mean": 1e9 * queue, "p95": 0.0}},
        {"name": LINK, "queue_bytes": {"mean": queue, "p95": p95}},
    ]
    return {"links": queues, "rate_bytes_per_s": list(rate), "jain": jain}


def allowed(ours: list[Any], theirs: list[Any]) -> dict[str, float]:
    return {key: each.value for key, each in chance_tolerances(ours, theirs, LINK, PACKETS).items()}


def test_alike_runs_are_allowed_a_twentieth_and_a_hundredth_of_fairness() -> None:
    found = allowed([run()] * 2, [run()] * 3)
    assert found == {"queue_mean_rel": 0.05, "queue_p95_rel": 0.05, "rate_rel_max": 0.05, "jain_abs": 0.01}
    assert allowed([run()], [run()] * 3) == allowed([run()] * 3, [run()]) == {}


def test_a_short_queue_is_allowed_one_and_a_half_packets() -> None:
    found = allowed([run(queue=6e3)] * 2, [run(queue=6e3, p95=100.0)] * 2)
    assert found["queue_mean_rel"] == pytest.approx(0.25)
    assert found["queue_p95_rel"] == pytest.approx(1.5)  # of a packet at least


def test_three_standard_errors_of_both_sides_are_allowed() -> None:
    """1 and 3 have variance 2, its mean 1; 2 and 2, 5, 8 and 3: 9/3. Of means of 5 MB."""
    ours = [run(queue=queue * 1e6) for queue in (1.0, 3.0)]
    theirs = [run(queue=queue * 1e6, p95=2e6) for queue in (2.0, 5.0, 8.0)]
    found = allowed(ours, theirs)
    assert found["queue_mean_rel"] == pytest.approx(3 * math.sqrt(1 + 3) / 5)
    assert found["queue_p95_rel"] == 0.05
    apart = allowed([run(jain=0.5), run(jain=0.7)], [run(jain=0.6)] * 2)
    assert apart["jain_abs"] == pytest.approx(3 * 0.1)
    rates = allowed([run(rate=(1e9, 2e9)), run(rate=(1e9, 4e9))], [run(rate=(1e9, 3e9))] * 2)
    assert rates["rate_rel_max"] == pytest.approx(3 * 1e9 / 2e9)  # of the worst, over the mean of all


def test_what_has_no_value_has_no_tolerance() -> None:
    assert "jain_abs" not in allowed([run()] * 2, [run(), run(jain=None)])
    assert "rate_rel_max" not in allowed([run()] * 2, [run(rate=(0.0, 0.0))] * 2)


# -- verdicts ----------------------------------------------------------------------------------------------------


def compared(difference: dict[str, float | None], tolerance: dict[str, float]) -> Comparison:
    told = {key: comparison.Tolerance(value, "") for key, value in tolerance.items()}
    return Comparison(xr.Dataset(attrs={"link": "l"}), ("fluid", "packet"), {}, {}, {}, difference, told)


@pytest.mark.parametrize(
    ("difference", "tolerance", "within", "judged", "worst"),
    [
        ({"a": 0.1, "b": 0.5}, {"a": 0.1}, True, ["a"], ("b", 0.5)),  # just allowed
        ({"a": 0.11, "b": 0.5}, {"a": 0.1}, False, ["a"], ("b", 0.5)),
        ({"a": 0.1, "b": 0.5}, {"a": 0.1, "b": 0.4}, False, ["a", "b"], None),
        ({"a": None, "b": 0.5, "c": 0.7}, {"a": 0.1}, None, [], ("c", 0.7)),
        ({"a": None}, {}, None, [], None),
        ({"a": math.inf}, {"a": 0.1}, False, ["a"], None),
        ({"a": 0.1, "b": math.inf}, {"a": 0.1}, True, ["a"], ("b", math.inf)),
    ],
)
def test_what_is_judged_must_be_within_its_tolerance(
    difference: dict[str, float | None],
    tolerance: dict[str, float],
    within: bool | None,
    judged: list[str],
    worst: tuple[str, float] | None,
) -> None:
    found = compared(difference, tolerance)
    assert (found.within, found.judged, found.worst_not_judged) == (within, judged, worst)
    told = found.as_dict()
    assert told["one_only"] == [key for key, value in difference.items() if value == math.inf]
    assert told["worst_not_judged"] == (None if worst is None else worst[0])
    rows = dict(found._rows())
    assert (rows["judged"] == "nothing") is (judged == [])
    assert ("worst not judged" in rows) is (worst is not None)


def test_each_engines_summary_is_found_by_its_name() -> None:
    found = dataclasses.replace(compared({}, {}), first={"seed": 1}, second={"seed": 2})
    assert (found.fluid, found.packet) == ({"seed": 1}, {"seed": 2})
    with pytest.raises(AttributeError, match="hybrid: these are traces of fluid and packet"):
        _ = found.hybrid


def test_numbers_at_one_place_are_pooled_and_words_stay_if_all_agree() -> None:
    parts = [
        {"a": 1.0, "b": [1.0, 2.0], "c": "x", "d": None, "e": True, "f": {"g": 3.0}, "h": "x", "i": None},
        {"a": 3.0, "b": [3.0, 6.0], "c": "x", "d": 2.0, "e": True, "f": {"g": 3.0}, "h": "y", "i": None},
    ]
    assert comparison._pooled(parts, lambda values: sum(values)) == {
        "a": 4.0, "b": [4.0, 8.0], "c": "x", "d": None, "e": True, "f": {"g": 6.0}, "h": None, "i": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "runs", "seed"), [("fluid", 1, True), ("packet", 1, False), ("packet", 2, False), ("fluid", 2, False)]
)
def test_a_mean_over_seeds_has_no_seed(engine: str, runs: int, seed: bool) -> None:
    """But a fluid's, which is one run, keeps what it has."""
    found = comparison._mean_summary([{"engine": engine, "seed": 3, "queue": 2.0 * (k + 1)} for k in range(runs)])
    assert ("seed" in found) is seed
    assert found["queue"] == (2.0 if runs == 1 else 3.0)
