"""Windows of a long run by hand: queues that grow or drain evenly, whole periods, and errors of three runs."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.theory.control.limit_cycle import _falls, _finite, _grows, _period, _relative, _step_error, _whole


def ends(lows: list[float], swing: float, times: list[float] | None = None) -> list[tuple[float, float, float]]:
    """Begin, least and largest queue of windows."""
    begins = [float(k) for k in range(len(lows))] if times is None else times
    return [(begin, low, low + swing) for begin, low in zip(begins, lows, strict=True)]


@pytest.mark.parametrize(
    ("lows", "swing", "times", "grows"),
    [
        ([10, 20, 30, 40], 10.0, None, True),
        ([0, 10, 20, 30], 9.0, None, True),
        ([7, 10, 20, 30, 40], 10.0, None, True),  # what was before does not count
        ([20, 30, 40], 10.0, None, False),  # three are not enough
        ([10, 20, 30, 40], 10.1, None, False),  # windows overlap
        ([10, 20, 30, 40.05], 10.0, None, True),  # by half a hundredth faster
        ([10, 20, 30, 40.2], 10.0, None, False),
        ([10, 20, 30, 39.8], 9.0, None, False),
        ([40, 30, 20, 10], 10.0, None, False),
        ([10, 20, 20, 30], 0.0, None, False),
        ([10, 30, 40, 50], 10.0, [0.0, 2.0, 3.0, 4.0], True),  # speeds, not steps
        ([10, 20, 30, 40], 10.0, [0.0, 2.0, 3.0, 4.0], False),
        ([9e3, 9e3 + 10, 9e3 + 20, 9e3 + 30], 10.0, None, True),
        ([11e3, 11e3 + 10, 11e3 + 20, 11e3 + 30], 10.0, None, False),  # by less than a thousandth
    ],
)
def test_a_queue_grows_if_evenly_over_four_windows(lows: Any, swing: float, times: Any, grows: bool) -> None:
    assert _grows(ends(lows, swing, times)) is grows


@pytest.mark.parametrize(
    ("lows", "swing", "times", "falls"),
    [
        ([30, 20, 10], 10.0, None, True),
        ([99, 30, 20, 10], 10.0, None, True),
        ([20, 10], 10.0, None, False),
        ([30, 20, 10], 10.1, None, False),
        ([30, 20, 10], 10 * (1 + 0.5e-5), None, True),
        ([30, 20, 9.95], 10.0, None, True),
        ([30, 20, 9.8], 10.0, None, False),
        ([10, 20, 30], 10.0, None, False),
        ([40, 20, 10], 10.0, [0.0, 2.0, 3.0], True),
        ([30, 20, 10], 10.0, [0.0, 2.0, 3.0], False),
        ([1e6 + 22, 1e6 + 11, 1e6], 0.0, None, True),
        ([1e6 + 18, 1e6 + 9, 1e6], 0.0, None, False),  # by less than a part in 10^5: rounding
    ],
)
def test_a_queue_falls_if_evenly_over_three_windows(lows: Any, swing: float, times: Any, falls: bool) -> None:
    assert _falls(ends(lows, swing, times)) is falls


def test_whole_periods_are_between_the_first_and_the_last_crossing() -> None:
    times = np.arange(10.0)
    assert _whole(times, np.array([1.5, 4.0, 7.2])) == slice(2, 8)
    assert _whole(times, np.array([1.5, 4.0])) == slice(2, 4)
    assert _whole(times, np.array([1.5])) == slice(None)


def test_a_period_repeats_after_the_fewest_crossings() -> None:
    """Two gaps at least, alike to a fiftieth; else the mean gap of what is irregular, or nothing."""
    assert _period(np.array([0.0, 2.0, 4.0])) == (2.0, 0.0, True)
    mean, spread, regular = _period(np.array([0.0, 1.0, 3.0, 4.0, 6.0, 7.0]))
    assert (mean, spread, regular) == (3.0, 0.0, True)
    mean, spread, regular = _period(np.array([0.0, 2.0, 4.07]))
    assert (mean, spread, regular) == (pytest.approx(2.035), pytest.approx(0.035), True)
    assert _period(np.array([0.0, 2.0, 4.2]))[2] is False
    assert _period(np.array([0.0, 2.0]))[::2] == (2.0, False)
    assert math.isnan(_period(np.array([1.0]))[0])
    five = np.cumsum(np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 4))
    assert _period(five)[0] == pytest.approx(np.diff(five).mean())  # five crossings in a period are too many


def test_differences_are_relative_to_the_finer_run() -> None:
    assert _relative(3.0, 2.0) == 0.5
    assert _relative(3.0, -4.0) == 1.75
    assert _relative(1.0, 0.0) is None
    assert _relative(math.nan, 1.0) is None
    assert _finite(math.inf) is None
    assert _finite(0.0) == 0.0


def run(high: float, low: float, period: float, kind: str = "cycle") -> Any:
    return SimpleNamespace(high=high, low=low, period=period, kind=kind)


def test_errors_of_the_run_that_is_reported() -> None:
    """Heun's shrink to a quarter; of the first pair, or of the second where a coarser run came before."""
    runs = [run(11.6, 1.0, 2.16), run(11.1, 1.0, 2.04), run(11.0, 1.025, 2.01)]
    for reported, (size, period) in enumerate([(0.5 / 10.1, 0.12 / 2.04), (0.125 / 9.975, 0.03 / 2.01)]):
        found = _step_error(runs, reported, "heun")
        assert found["peak_to_peak_rel"] == pytest.approx(size)
        assert found["period_rel"] == pytest.approx(period)
        assert found["as_expected"] is True
    runs[2] = run(11.0, 1.0, 2.3)
    assert _step_error(runs, 0, "heun")["as_expected"] is False
    runs[2] = run(11.0, 1.025, 2.01, "irregular")
    assert _step_error(runs, 0, "heun")["as_expected"] is False
