"""Metrics of short signals, whose values can be counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

from fluidcc.results import metrics
from fluidcc.results.metrics import Oscillation

NAN, INF = float("nan"), float("inf")


def signal(values: list[float], times: list[float] | None = None) -> xr.DataArray:
    """A signal over time, a sample each second if not told otherwise."""
    at = np.arange(float(len(values))) if times is None else np.array(times)
    return xr.DataArray(np.array(values), dims="time", coords={"time": at})


# -- over flows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rates", "weights", "index"),
    [
        ([1.0, 1.0], None, 1.0),
        ([1.0, 0.0], None, 0.5),
        ([1.0, 3.0], None, 0.8),  # 16/(2 x 10)
        ([1.0, 3.0], [3.0, 1.0], 0.75),  # 36/(4 x 12)
        ([1.0, 3.0], [1.0, 0.0], 1.0),  # left out
        ([0.0, 0.0], None, NAN),
        ([1e-300, 3e-300], None, 0.8),
        ([1e300, 3e300], None, 0.8),
        ([2, 6], None, 0.8),  # whole numbers
        ([1.0, 3.0], [0.0, 0.0], NAN),
    ],
)
def test_jains_index_is_the_square_of_the_sum_over_the_sum_of_squares(
    rates: list[float], weights: list[float] | None, index: float
) -> None:
    assert metrics.jain(np.array(rates), weights) == pytest.approx(index, nan_ok=True)


def test_jains_index_is_along_an_axis_each_scaled_by_itself() -> None:
    rates = np.array([[1e-200, 3e-200], [1e200, 1e200], [0.0, 0.0]])
    assert metrics.jain(rates) == pytest.approx([0.8, 1.0, NAN], nan_ok=True)
    assert metrics.jain(rates.T, axis=0) == pytest.approx([0.8, 1.0, NAN], nan_ok=True)


def test_the_most_loaded_link_is_the_first_of_the_largest_means() -> None:
    assert metrics.most_loaded([1.0, 3.0, 3.0]) == 1
    assert metrics.most_loaded([NAN, 0.0]) == 1
    assert metrics.most_loaded([NAN, NAN]) == 0
    assert metrics.most_loaded([[1.0, 5.0], [2.0, 4.0]]).tolist() == [1, 0]


def test_a_gap_is_between_the_largest_and_the_smallest() -> None:
    assert metrics.rate_gap(np.array([[1.0, 5.0, 3.0], [2.0, 2.0, 2.0]])).tolist() == [4.0, 0.0]
    rates = xr.DataArray([[1.0, 5.0], [2.0, 7.0]], dims=("time", "flow"))
    assert metrics.rate_gap(rates).values.tolist() == [4.0, 5.0]
    assert metrics.rate_gap(rates).attrs["units"] == "bytes/s"


def test_a_link_is_used_by_what_it_sent_over_what_it_could() -> None:
    sent = signal([100.0, 150.0, 700.0], [1.0, 2.0, 4.0]).assign_coords(capacity=400.0)
    assert metrics.utilisation(sent) == 0.5


# -- over time ---------------------------------------------------------------------------------------------------


def test_means_are_of_trapezoids() -> None:
    """(0 + 2)/2 over a second and (2 + 4)/2 over three: 10 of 4 seconds."""
    assert float(metrics.time_mean(signal([0.0, 2.0, 4.0], [1.0, 2.0, 5.0]))) == 2.5


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 0.0), (12.5, 0.0), (37.5, 1.0), (62.5, 1.5), (87.5, 2.0), (100, 2.0), (50, 1.25)]
)
def test_a_percentile_weighs_a_sample_by_half_the_gaps_beside_it(percent: float, value: float) -> None:
    """A first sample of 0 stands for one of 4 s, the second of 2 for two, and the last of 1 for one."""
    found = metrics.weighted_percentile(signal([0.0, 2.0, 1.0], [0.0, 2.0, 4.0]), percent)
    places = {0: 0.0, 12.5: 0.0, 37.5: 1.0, 62.5: 1 + 25 / 37.5, 87.5: 2.0, 100: 2.0, 50: 1 + 12.5 / 37.5}
    assert found == pytest.approx(places[percent])
    assert abs(found - value) < 0.2


@pytest.mark.parametrize(
    ("percent", "value"),
    [(0, 1.0), (25, 1.0), (25.1, 3.0), (75, 3.0), (75.1, 9.0), (100, 9.0)],
)
def test_a_percentile_of_bins_is_the_mean_of_the_bin_that_reaches_it(percent: float, value: float) -> None:
    """One second at 1, two at a mean of 3, none, and one at 9."""
    spent, area = np.array([1.0, 2.0, 0.0, 1.0]), np.array([1.0, 6.0, 0.0, 9.0])
    assert metrics.binned_percentiles(spent, area, [percent]) == [value]


@pytest.mark.parametrize(("percent", "value"), [(5, 2.0), (50, 20.0), (95, 38.0)])
def test_a_bin_that_just_reaches_a_percentile_is_the_one(percent: float, value: float) -> None:
    """Forty tenths of a second, one for each value: their sums round, and the next bin would be taken."""
    spent = np.full(40, 0.1)
    assert metrics.binned_percentiles(spent, spent * np.arange(1, 41), [percent]) == pytest.approx([value])


def test_bins_without_time_have_no_percentiles() -> None:
    assert np.isnan(metrics.binned_percentiles(np.zeros(2), np.zeros(2), [5, 95])).tolist() == [True, True]
    assert metrics.binned_percentiles(np.array([0.0, 1.0]), np.array([0.0, 4.0]), [0, 100]) == [0.0, 4.0]


def test_statistics_are_weighted_by_time() -> None:
    found = metrics.statistics(signal([1.0, 1.0, 5.0, 5.0], [0.0, 3.0, 3.0 + 1e-9, 4.0]))
    assert found["mean"] == pytest.approx(2.0)
    assert found["std"] == pytest.approx(math.sqrt(3.0))
    assert (found["min"], found["max"]) == (1.0, 5.0)


@pytest.mark.parametrize(
    ("holds", "first"),
    [([True, True], 0), ([False, True], 1), ([True, False, True], 2), ([True, False], None), ([False], None)],
)
def test_what_lasts_begins_after_its_last_failure(holds: list[bool], first: int | None) -> None:
    assert metrics.lasting_from(np.array(holds)) == first


@pytest.mark.parametrize(
    ("values", "band", "target", "time"),
    [
        ([8.0, 4.0, 2.0, 2.0], 2.0, 0.0, 2.0),  # just within
        ([8.0, 4.0, 1.0, 1.0], 2.0, 0.0, 1 + 2 / 3),  # between samples
        ([8.0, 4.0, 1.0, 1.0], 2.0, None, 1 + 1 / 3),  # of its last value: 7, 3, 0
        ([-8.0, -4.0, -1.0, 0.0], 2.0, 0.0, 1 + 2 / 3),
        ([1.0, 8.0, 4.0, 0.0], 2.0, 0.0, 2.5),  # it leaves again
        ([1.0, 1.0], 2.0, 0.0, 0.0),  # from the first
        ([1.0, 8.0], 2.0, 0.0, NAN),
        ([INF, 1.0, 1.0], 2.0, 0.0, 1.0),  # nothing to interpolate from
        ([NAN, 1.0, 1.0], 2.0, 0.0, 1.0),
    ],
)
def test_a_signal_settles_where_it_stays_in_its_band(
    values: list[float], band: float, target: float | None, time: float
) -> None:
    assert metrics.settling_time(signal(values), band, target) == pytest.approx(time, nan_ok=True)


@pytest.mark.parametrize(
    ("values", "times", "between", "sampled"),
    [
        ([0.0, 100.0, 50.0, 5.0, 9.0], None, 3.0, 3.0),  # just a twentieth
        ([0.0, 100.0, 50.0, 0.0, 9.0], None, 2.9, 3.0),
        ([0.0, 100.0, 50.0, 0.0, 9.0], [0.0, 1.0, 2.0, 6.0, 7.0], 5.6, 6.0),
        ([1.0, 100.0, 50.0, 5.1], None, None, None),
        ([0.0, 0.0], None, None, None),
        ([0.0, 0.8, 0.4, 0.0], None, 2.9, 3.0),  # of less than a byte too
        ([0.0, 100.0, 0.0, 100.0, 0.0], None, 1.95, 2.0),  # after the first of equal peaks
    ],
)
def test_a_queue_drains_to_a_twentieth_of_its_peak(
    values: list[float], times: list[float] | None, between: float | None, sampled: float | None
) -> None:
    queue = signal(values, times)
    assert metrics.drain_time(queue) == (None if between is None else pytest.approx(between))
    assert metrics.drain_time(queue, between=False) == sampled


@pytest.mark.parametrize(
    ("values", "level", "crossings"),
    [
        ([0.0, 2.0, 0.0, 4.0], 1.0, [0.5, 2.25]),
        ([0.0, 1.0, 0.0], 1.0, [1.0]),  # up to it
        ([1.0, 2.0], 1.0, []),  # from it
        ([2.0, 0.0], 1.0, []),
        ([1.0, 1.0, 0.0, 1.0, 1.0, 3.0], 1.0, [3.0]),
    ],
)
def test_crossings_are_upwards_and_between_samples(values: list[float], level: float, crossings: list[float]) -> None:
    found = metrics.upward_crossings(np.arange(float(len(values))), np.array(values), level)
    assert found.tolist() == pytest.approx(crossings)
    double = metrics.upward_crossings(2.0 * np.arange(len(values)), 3 * np.array(values), 3 * level)
    assert double.tolist() == pytest.approx([2 * at for at in crossings])


def test_a_period_is_between_the_first_and_the_last_crossing() -> None:
    """The mean of 0, 2, 0, 2, ... is crossed upwards every two seconds."""
    assert metrics.oscillation(signal([0.0, 2.0] * 4 + [0.0])) == Oscillation(1.0, 2.0)
    once = metrics.oscillation(signal([0.0, 0.0, 6.0, 6.0]))
    assert once.amplitude == 3.0
    assert math.isnan(once.period)
    flat = metrics.oscillation(signal([5.0, 5.0 + 1e-9] * 4))  # rounding is no oscillation
    assert math.isnan(flat.period)
    small = metrics.oscillation(signal([5e-3, 5e-3 + 1e-6] * 4))
    assert small.period == pytest.approx(2.0)


def test_flows_end_as_long_after_their_start_as_they_took() -> None:
    assert metrics.completion_times([1.0, None, 0.0]).tolist() == [1.0, INF, 0.0]
    found = metrics.end_times([1.0, 2.0, 4.0, 8.0], [10.0, INF, 10.0, 0.0], [0.5, None, 0.25])
    assert found.tolist() == [1.5, INF, INF, 8.25]
