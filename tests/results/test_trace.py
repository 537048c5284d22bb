"""Traces: metrics on signals whose answers are known, files, and agreement with the engine's own metrics."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.results import metrics
from fluidcc.results.metrics import rate_gap, time_mean, weighted_percentile
from fluidcc.results.trace import Trace

EXACT = 1e-12  # sums of a few doubles
# A sine sampled n times per period: linear interpolation of a crossing errs by (2 pi/n)^3/16 of a period at most,
# the peak by (2 pi/n)^2/8 of the amplitude.
SINE = 2e-3  # n = 60
# The engine sums every step, the samples are 50 steps apart: trapezoids over a quantum of 50 us of a signal that
# moves on time constants of a millisecond.
SAMPLED = 2e-3


def signal(times: Any, values: Any) -> xr.DataArray:
    return xr.DataArray(np.asarray(values, float), dims="time", coords={"time": np.asarray(times, float)})


def synthetic(times: Any, queues: Any, rates: Any, multiplicity: Any = None, sent: Any = None) -> Trace:
    """A trace of columns: queues (time, links), rates (time, flows)."""
    times, queues, rates = (np.asarray(a, float) for a in (times, queues, rates))
    links, flows = queues.shape[1], rates.shape[1]
    dataset = xr.Dataset(
        {
            "queue": (("time", "link"), queues, {"units": "bytes"}),
            "rate": (("time", "flow"), rates, {"units": "bytes/s"}),
            "sent": (("time", "link"), queues * 0 if sent is None else np.asarray(sent, float), {"units": "bytes"}),
        },
        {
            "time": ("time", times, {"units": "s"}),
            "link": [f"link {i}" for i in range(links)],
            "flow": [f"flow {i}" for i in range(flows)],
            "capacity": ("link", np.full(links, 100.0), {"units": "bytes/s"}),
            "multiplicity": ("flow", np.ones(flows) if multiplicity is None else np.asarray(multiplicity, float)),
        },
        {"engine": "fluid", "summary": json.dumps({"jain": 1.0}), "scenario": ""},
    )
    return Trace(dataset)


# -- metrics --------------------------------------------------------------------------------------------------

UNEVEN = [0.0, 1.0, 4.0, 5.0]  # weights 1/2, 2, 2, 1/2


def test_mean_weighs_time_not_samples() -> None:
    # Trapezoids: 1*(0+2)/2 + 3*(2+8)/2 + 1*(8+4)/2 over 5.
    assert float(time_mean(signal(UNEVEN, [0, 2, 8, 4]))) == pytest.approx(22 / 5, rel=EXACT)


def test_a_mean_is_of_its_window() -> None:
    """The time of the whole run in place of the window's, which begins late."""
    times = np.array([3.0, 4.0, 7.0])
    assert float(time_mean(signal(times, [5, 5, 5]))) == pytest.approx(5, rel=EXACT)
    assert float(time_mean(signal(times, [2, 4, 0]))) == pytest.approx((3 + 6) / 4, rel=EXACT)
    assert metrics.statistics(signal(times, [2, 4, 0]))["mean"] == pytest.approx(9 / 4, rel=EXACT)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40))
def test_percentiles_of_bins_are_the_inverse_of_the_distribution(counts: list[int]) -> None:
    """Percentiles between two values are the lower one: as of samples one by one. Whole counts tie often."""
    spent = np.array(counts, float)
    values = 10.0 + 3 * np.arange(len(counts))
    percents = [1, 5, 20, 25, 50, 75, 80, 95, 99, 100]
    found = metrics.binned_percentiles(spent, spent * values, percents)
    if not spent.any():
        assert np.isnan(found).all()
        return
    one_by_one = np.repeat(values, counts)
    assert found == pytest.approx(np.percentile(one_by_one, percents, method="inverted_cdf").tolist(), rel=EXACT)


def test_percentiles_weigh_time_not_samples() -> None:
    # In order 0 2 4 8 with weights .5 2 .5 2: midpoints of the cumulated shares .25 1.5 2.75 4 of 5.
    values = signal(UNEVEN, [0, 2, 8, 4])
    for share, value in [(0.25, 0), (1.5, 2), (2.75, 4), (4.0, 8), (2.125, 3)]:
        assert weighted_percentile(values, 20 * share) == pytest.approx(value, abs=EXACT)
    assert weighted_percentile(values, 0) == 0
    assert weighted_percentile(values, 100) == 8


def test_percentiles_of_even_samples_are_the_usual_ones() -> None:
    values = np.random.default_rng(0).random(4001)
    even = signal(np.arange(4001), values)
    for percent in (5, 50, 95, 99):
        # Two estimators of one quantile differ by about a gap between neighbours in order.
        assert weighted_percentile(even, percent) == pytest.approx(np.percentile(values, percent), abs=1e-3)


@settings(max_examples=40)
@given(st.data())
def test_percentiles_do_not_depend_on_splitting_the_samples(data: st.DataObject) -> None:
    """A constant stretch counts by its length, however many samples are in it."""
    levels = sorted(data.draw(st.lists(st.integers(0, 99), min_size=3, max_size=3, unique=True)))
    cuts = data.draw(st.lists(st.floats(0.01, 9.99), max_size=20))
    times = np.unique(
        np.concatenate([np.arange(0, 30, 10), np.arange(0, 30, 10) + 9.999, *[[c, c + 20] for c in cuts]])
    )
    values = np.array(levels)[np.minimum(times // 10, 2).astype(int)]
    for percent, level in ((10, levels[0]), (50, levels[1]), (90, levels[2])):
        assert weighted_percentile(signal(times, values), percent) == pytest.approx(level, abs=1e-9)


def test_queue_statistics() -> None:
    times = np.linspace(0, 1, 100001)
    trace = synthetic(times, np.stack([0 * times, 100 * times], axis=1), np.ones((len(times), 1)))
    assert trace.bottleneck() == "link 1"
    stats = metrics.statistics(trace["queue"].sel(link="link 1"))
    assert stats["mean"] == pytest.approx(50, rel=1e-9)
    assert stats["std"] == pytest.approx(100 / math.sqrt(12), rel=1e-6)
    assert [stats[f"p{p}"] for p in (5, 50, 95, 99)] == pytest.approx([5, 50, 95, 99], abs=1e-3)
    assert stats["max"] == 100
    assert metrics.statistics(trace["queue"].sel(link="link 0"))["max"] == 0


@pytest.mark.parametrize(
    ("rates", "multiplicity", "index"),
    [
        ([1, 1, 1], None, 1.0),
        ([1, 0, 0, 0], None, 0.25),
        ([1, 2, 3], None, 36 / (3 * 14)),
        ([3, 1], [1, 9], 144 / (10 * 18)),  # a class of nine counts as nine flows
        ([0, 0], None, math.nan),
    ],
)
def test_jain(rates: list[float], multiplicity: list[float] | None, index: float) -> None:
    trace = synthetic([0, 1, 5], [[0]] * 3, [rates] * 3, multiplicity)
    found = metrics.jain(time_mean(trace["rate"]), trace["multiplicity"])
    assert found == pytest.approx(index, rel=EXACT, nan_ok=True)


def test_rate_gap_and_means() -> None:
    trace = synthetic(UNEVEN, [[0]] * 4, [[1, 5], [3, 3], [0, 7], [2, 2]])
    assert rate_gap(trace["rate"]).values.tolist() == [4, 0, 7, 0]
    assert rate_gap(trace["rate"]).attrs["units"] == "bytes/s"
    # 1*(1+3)/2 + 3*(3+0)/2 + 1*(0+2)/2 and 1*(5+3)/2 + 3*(3+7)/2 + 1*(7+2)/2, over 5.
    assert time_mean(trace["rate"]).values == pytest.approx([7.5 / 5, 23.5 / 5], rel=EXACT)


def test_utilisation_is_bytes_sent_over_capacity() -> None:
    trace = synthetic([0, 1, 4], [[0]] * 3, [[1]] * 3, sent=[[0], [100], [300]])
    assert metrics.utilisation(trace["sent"][:, 0]) == pytest.approx(300 / 400, rel=EXACT)
    assert metrics.utilisation(trace.between(1, 4)["sent"][:, 0]) == pytest.approx(200 / 300, rel=EXACT)


def test_a_queue_drains_to_a_twentieth_of_its_peak() -> None:
    """Peak 100 at t = 2; 5 half way between t = 5 (8) and t = 6 (2); what was less before the peak does not count."""
    queue = signal([0, 1, 2, 3, 5, 6, 8], [0, 1, 100, 40, 8, 2, 9])
    assert metrics.drain_time(queue) == pytest.approx(5.5, rel=EXACT)
    assert metrics.drain_time(queue, between=False) == 6
    assert metrics.drain_time(queue[:5]) is None
    assert metrics.drain_time(signal([0, 1, 2], [0, 0, 0])) is None
    assert metrics.drain_time(signal([0, 1, 2], [100, 5, 0]), between=False) == 1  # at or below


def test_ends_of_flows_are_starts_and_times() -> None:
    found = metrics.end_times([1.0, 2.0, 3.0, 4.0], [10.0, math.inf, 20.0, 30.0], [0.5, None, 0.25])
    assert found.tolist() == [1.5, math.inf, math.inf, 4.25]
    assert metrics.completion_times([0.0, None]).tolist() == [0.0, math.inf]


def test_the_most_loaded_link() -> None:
    assert metrics.most_loaded([1.0, 3.0, 3.0, math.nan]) == 1
    assert metrics.most_loaded([[0.0, math.nan], [math.nan, math.nan]]).tolist() == [0, 0]
    assert metrics.most_loaded([math.nan, 0.0]) == 1


def test_crossings_are_on_the_line_between_samples() -> None:
    times, values = np.array([0.0, 1.0, 3.0, 4.0, 6.0]), np.array([0.0, 4.0, -2.0, 2.0, 2.0])
    assert metrics.upward_crossings(times, values, 1.0) == pytest.approx([0.25, 3.75], rel=EXACT)
    assert metrics.upward_crossings(times, values, 2.0) == pytest.approx([0.5, 4.0], rel=EXACT)  # reached, not passed


def test_settling_time_is_interpolated() -> None:
    times = [0, 1, 3, 4, 5]
    values = signal(times, [10, 0, 8, 2, 0])
    # Last above 5 between t = 3 (8) and t = 4 (2): at half way.
    assert fc.metrics.settling_time(values, 5, target=0) == pytest.approx(3.5, rel=EXACT)
    assert fc.metrics.settling_time(values, 1) == pytest.approx(4.5, rel=EXACT)  # target: the last value
    assert fc.metrics.settling_time(values, 10, target=0) == 0  # on the edge is inside
    assert fc.metrics.settling_time(values, 20) == 0
    assert math.isnan(fc.metrics.settling_time(values, 1, target=5))
    assert math.isnan(fc.metrics.settling_time(signal(times, [1, 1, 1, 1, math.nan]), 1, target=0))


def test_settling_of_an_exponential() -> None:
    times = np.linspace(0, 10, 2001)
    settled = fc.metrics.settling_time(signal(times, 1 + np.exp(-times)), 0.01, target=1)
    assert settled == pytest.approx(math.log(100), abs=1e-4)


@given(st.floats(0.3, 3), st.floats(0.5, 50), st.floats(-1e3, 1e3), st.floats(0, 6))
def test_oscillation_of_a_sine(period: float, amplitude: float, offset: float, phase: float) -> None:
    times = np.arange(0, 6.3 * period, period / 60)
    found = fc.metrics.oscillation(signal(times, offset + amplitude * np.sin(2 * np.pi * times / period + phase)))
    assert found.amplitude == pytest.approx(amplitude, rel=SINE)
    # Over six and a bit periods the mean is off the centre by a hair, but by the same at each crossing.
    assert found.period == pytest.approx(period, rel=SINE)


def test_oscillation_on_uneven_samples() -> None:
    times = np.sort(np.random.default_rng(1).uniform(0, 10, 4000))
    found = fc.metrics.oscillation(signal(times, 3 + 2 * np.sin(2 * np.pi * times)))
    assert found.amplitude == pytest.approx(2, rel=SINE)
    assert found.period == pytest.approx(1, rel=SINE)


@pytest.mark.parametrize("values", [np.full(50, 7.0), np.arange(50.0), np.zeros(50)])
def test_no_period_without_oscillation(values: np.ndarray) -> None:
    found = fc.metrics.oscillation(signal(np.arange(50), values))
    assert found.amplitude == pytest.approx(np.ptp(values) / 2)
    assert math.isnan(found.period)


def test_between() -> None:
    trace = synthetic(np.arange(11) / 10, np.arange(11)[:, None], np.ones((11, 1)))
    assert trace.between("200ms", 0.5)["queue"].values[:, 0].tolist() == [2, 3, 4, 5]
    for window in ((0.21, 0.29), (2, 3), (0.5, 0.2)):
        with pytest.raises(InputError, match="fewer than two samples"):
            trace.between(*window)
    with pytest.raises(InputError, match="between"):
        trace.between("soon", "later")


# -- files ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run() -> Trace:
    """Two flows that reach their equilibrium, one finite one that ends, a class of two."""
    scenario = fc.incast(3, start=["0", "1ms", "0"], size=[math.inf, math.inf, "1MB"], multiplicity=[2, 1, 1])
    return fc.simulate(scenario, until="100ms", window=("30ms", "90ms"))


def test_units_and_names(run: Trace) -> None:
    dataset = run.dataset
    assert set(dataset.dims) == {"time", "link", "flow"}
    expected = {"queue": "bytes", "sent": "bytes", "rate": "bytes/s", "target_rate": "bytes/s", "alpha": "1"}
    for name, unit in expected.items():
        assert dataset[name].attrs["units"] == unit
        assert dataset[name].attrs["long_name"]
    assert dataset.time.attrs["units"] == "s"
    assert dataset.link.values.tolist() == ["bottleneck"]
    assert dataset.flow.values.tolist() == ["flow 0", "flow 1", "flow 2"]
    assert "3 flow" in repr(run)


def test_summary_is_json_without_nan(run: Trace) -> None:
    summary = json.loads(run.dataset.attrs["summary"], parse_constant=pytest.fail)
    assert summary["window_s"] == [0.03, 0.09]
    assert summary["flows"] == 4
    assert len(summary["rate_bytes_per_s"]) == 3
    assert len(summary["fct_s"]) == 1


def test_summary_agrees_with_the_samples(run: Trace) -> None:
    inside, summary = run.between("30ms", "90ms"), run.summary
    stats, means = metrics.statistics(inside["queue"].sel(link=inside.bottleneck())), time_mean(inside["rate"])
    for name in ("mean", "p5", "p50", "p95", "p99", "min", "max"):
        assert stats[name] == pytest.approx(summary["queue_bytes"][name], rel=SAMPLED), name
    assert stats["std"] == pytest.approx(summary["queue_bytes"]["std"], rel=10 * SAMPLED)
    assert metrics.utilisation(inside["sent"][:, 0]) == pytest.approx(summary["utilisation"], rel=1e-9)
    assert means.values == pytest.approx(summary["rate_bytes_per_s"], rel=SAMPLED)
    assert metrics.jain(means, inside["multiplicity"]) == pytest.approx(summary["jain"], rel=SAMPLED)
    assert float(np.ptp(means.values)) == pytest.approx(summary["rate_gap_bytes_per_s"], rel=SAMPLED)
    # The peak of line-rate start falls between samples; a queue falls no faster than its link sends.
    missed = summary["queue_bytes"]["max_whole_run"] - float(run["queue"].max())
    assert 0 <= missed <= float(run.dataset.capacity[0]) * float(run.dataset.time[1])


def test_saved_and_loaded_is_identical(run: Trace, tmp_path: Path) -> None:
    path = run.save(tmp_path / "trace.nc")
    again = Trace.load(path)
    xr.testing.assert_identical(again.dataset, run.dataset)
    assert again.summary == run.summary
    assert list(tmp_path.iterdir()) == [path]
    again.save(path)  # over itself
    xr.testing.assert_identical(Trace.load(str(path)).dataset, run.dataset)


def test_saved_scenario_reads_back(run: Trace) -> None:
    from fluidcc.builders import toml_file as scenario_file

    scenario = scenario_file.from_toml(run.dataset.attrs["scenario"])
    assert [f.multiplicity for f in scenario.flows] == [2, 1, 1]


def test_unwritable_dataset_leaves_nothing(run: Trace, tmp_path: Path) -> None:
    odd = dataclasses.replace(run, dataset=run.dataset.assign_attrs(odd=object()))
    with pytest.raises(Exception):  # noqa: B017, PT011 - a bug's own error, whatever it is
        odd.save(tmp_path / "trace.nc")
    assert list(tmp_path.iterdir()) == []


def test_missing_folder(run: Trace, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder that exists"):
        run.save(tmp_path / "none" / "trace.nc")


def test_what_is_no_trace(tmp_path: Path) -> None:
    other = tmp_path / "other.nc"
    xr.Dataset({"x": ("y", [1.0])}).to_netcdf(other, engine="h5netcdf")
    text = tmp_path / "text.nc"
    text.write_text("not a trace")
    empty = tmp_path / "empty.nc"
    empty.write_bytes(b"")
    for path in (other, text, empty, tmp_path / "none.nc", tmp_path):
        with pytest.raises(InputError, match=r"Trace\.save"):
            Trace.load(path)


def test_a_cut_file_is_refused(run: Trace, tmp_path: Path) -> None:
    path = run.save(tmp_path / "trace.nc")
    whole = path.read_bytes()
    for share in (0.1, 0.5, 0.9, 0.999):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(InputError, match=r"Trace\.save"):
            Trace.load(path)
