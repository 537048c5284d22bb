"""Steps chosen by their error, attempt by attempt, against the same rules written down once more in NumPy."""

from __future__ import annotations

import bisect
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.dde import adaptive
from fluidcc.dde.adaptive import Adaptive, Step, within
from fluidcc.dde.stepping import Read

pytestmark = pytest.mark.usefixtures("numpy_only")


class Relaxing:
    """x'(t) = 1.7 cos(3 t) - x(t - lag) - x(t)/2, not below a floor; z adds up what the floor stops."""

    state_dependent_lags = lags_move = False
    reads = (Read((0,)),)

    def __init__(self, lag: Any, floor: float) -> None:
        self.lag, self.floor = lag, floor
        self.ratios: list[Any] = []

    def remembered(self, y: Any) -> Any:
        return y

    def lags(self, y: Any, z: Any, node: Any) -> tuple[Any, ...]:
        return (self.lag[None],)

    def feedback(self, lagged: tuple[Any, ...]) -> Any:
        return lagged[0]

    def derivative(self, clock: Any, y: Any, z: Any, feedback: Any) -> Any:
        return 1.7 * np.cos(3 * clock.time) - feedback - 0.5 * y

    def bounded(self, y: Any) -> Any:
        return np.maximum(y, self.floor)

    def paced(self, z: Any, ratio: Any) -> Any:
        self.ratios.append(np.array(ratio))
        return z

    def settle(self, clock: Any, z: Any, stopped: Any, feedback: Any) -> Any:
        np.testing.assert_allclose(clock.step * clock.dt, clock.time, rtol=1e-12)
        return z + stopped


def cubic(theta: float, a: float, right: float, b: float, left: float) -> float:
    """Hermite's, by its four base polynomials."""
    t2, t3 = theta**2, theta**3
    return (2 * t3 - 3 * t2 + 1) * a + (t3 - 2 * t2 + theta) * right + (3 * t2 - 2 * t3) * b + (t3 - t2) * left


def divided(times: list[float], values: list[float]) -> float:
    """Newton's divided difference of all."""
    if len(times) == 1:
        return values[0]
    return (divided(times[1:], values[1:]) - divided(times[:-1], values[:-1])) / (times[-1] - times[0])


def replay(lag: float, floor: float, rtol: float, end: float, attempts: int) -> list[tuple[Any, ...]]:
    """(took, time, length, x, what the floor stopped, next length, ratio to the last step) of each attempt."""
    ends: list[float] = []
    kept: list[tuple[float, ...]] = []

    def past(time: float) -> float:
        if time <= 0:
            return 1.0
        begin, h, x0, r, x1, f = kept[min(bisect.bisect_left(ends, time), len(ends) - 1)]
        return cubic(min((time - begin) / h, 1.0), x0, h * r, x1, h * f)

    def free(x: float, time: float) -> float:
        return 1.7 * np.cos(3 * time) - past(time - lag) - 0.5 * x

    time, x, width, stopped = 0.0, 1.0, 1e-7, 0.0
    before = middle_before = 0.0
    largest = 1.0
    found = []
    for _ in range(attempts):
        left_over = end - time
        if left_over <= 1e-13 * end:
            break
        h = max(min(width, lag, left_over), 1e-12)
        slopes, frees, at = [], [], x
        for ahead, offset in ((0.0, 0.0), (0.5, 0.5), (0.5, 0.5), (1.0, 1.0)):
            at = max(x + h * ahead * slopes[-1], floor) if slopes else max(x, floor)
            frees.append(free(at, time + offset * h))
            slopes.append(0.0 if max(at + h * frees[-1], floor) == at else frees[-1])
        mean, free_mean = (np.dot(each, [1 / 6, 1 / 3, 1 / 3, 1 / 6]) for each in (slopes, frees))
        new = max(x + h * mean, floor)
        last = free(new, time + h)
        last = 0.0 if max(new + h * last, floor) == new else last
        right, middle = slopes[0], 0.5 * (slopes[1] + slopes[2])
        estimate = abs(right - 2 * middle + last) * h / 6
        if before > 0:
            times = [time - before / 2, time, time + h / 2, time + h]
            third = abs(divided(times, [middle_before, right, middle, last])) * h**4 / 8
            estimate = min(estimate, third)
        error = estimate / rtol / max(abs(x), abs(new), 0.1 * largest)
        took = error <= 1
        factor = min(max(0.9 * max(error, 1e-12) ** -0.25, 0.15), 4.0)
        factor = factor if took else min(factor, 0.9)
        following = max(h * factor, width) if took and h < width else h * factor
        ratio = h / before if before > 0 else 0.0
        if took:
            ends.append(time + h)
            kept.append((time, h, x, right, new, last))
            stopped += h * (mean - free_mean)
            before, middle_before, largest = h, middle, max(largest, abs(new))
        found.append((took, time, h, new if took else x, stopped, following, ratio))
        if took:
            time, x = time + h, new
        width = following
    return found


@pytest.mark.parametrize("floor", [-np.inf, 0.2])
@pytest.mark.parametrize("rtol", [1e-3, 1e-6])
def test_the_controller_is_that_of_its_description(floor: float, rtol: float) -> None:
    """Each attempt's length, and whether it is a step, to 1e-4; some are none, and the ring is written round.

    An estimate is a small difference of slopes, which leaves few digits of the lengths that follow from it.
    """
    lags, end, attempts = np.array([1.0, 0.37]), 2.5, 400
    system: Any = Relaxing(lags, floor)
    stepper = Adaptive(system, np.float64(rtol), lags)
    depth = 256 if rtol == 1e-6 else 64
    steps = stepper.start(np.ones((1, 2)), np.zeros((1, 2)), depth)
    log = []
    for _ in range(attempts):
        if not (end - steps.time > 1e-13 * end).any():
            break
        steps, step = stepper.attempt(steps, np.full(2, end))
        log.append((step.took, step.time, step.width, steps.y[0], steps.z[0], steps.width, system.ratios[-1]))
    for point, lag in enumerate(lags):
        expected = replay(float(lag), floor, rtol, end, attempts)
        assert len(expected) == int(steps.taken[point] + steps.failed[point]) <= len(log)
        assert 0 < int(steps.failed[point]) == sum(not each[0] for each in expected)
        for ours, theirs in zip(log, expected, strict=False):
            assert bool(ours[0][point]) == theirs[0]
            np.testing.assert_allclose([each[point] for each in ours[1:]], theirs[1:], rtol=1e-4, atol=1e-9)
        for ours in log[len(expected) :]:
            assert not ours[0][point]
    assert not steps.lost.any()


def test_a_step_is_read_by_its_cubic() -> None:
    system: Any = Relaxing(np.ones(1), 0.35)
    one = np.ones((1, 1))
    step = Step(one > 0, np.zeros(1), np.array([0.5]), 0.5 * one, None, -2.0 * one, 3.0 * one)
    for theta in (0.0, 0.3, 0.6, 1.0):
        expected = max(cubic(theta, 0.5, -1.0, 0.9, 1.5), 0.35)
        assert within(system, step, 0.9 * one, np.array([theta]))[0, 0] == pytest.approx(expected, rel=1e-14)
    assert within(system, step, 0.9 * one, np.array([0.3]))[0, 0] == 0.35


def test_lags_that_move_count_as_an_error() -> None:
    """The largest of what lags were off at the end, times the step, over the tolerance and the shortest lag squared."""
    taken = (np.array([[1.0, 2.0]]), np.array([[3.0, 3.0], [4.0, 1.0]]))
    settled = (np.array([[1.1, 2.0]]), np.array([[3.0, 3.3], [3.8, 1.0]]))
    system: Any = SimpleNamespace(lags=lambda y, z, node: {("z", 1.0): taken, ("new", 0.0): settled}[z, node])
    stepper = Adaptive(system, np.float64(0.01), np.array([0.5, 2.0]))
    found = stepper._lag_error(None, "z", "new", np.array([0.1, 0.4]))
    np.testing.assert_allclose(found, [0.2 * 0.1 / (0.25 * 0.01), 0.3 * 0.4 / (4.0 * 0.01)], rtol=1e-12)


def test_a_lag_beyond_the_ring_loses_the_point() -> None:
    """Its state is NaN and its time over; the other goes on."""
    lags = np.array([1.0, 0.01])
    stepper = Adaptive(Relaxing(lags, -np.inf), np.float64(1e-7), lags)  # type: ignore[arg-type]
    steps = stepper.start(np.ones((1, 2)), np.zeros((1, 2)), 32)
    for _ in range(150):
        steps, _ = stepper.attempt(steps, np.full(2, 2.0))
    assert steps.lost.tolist() == [True, False]
    assert np.isnan(steps.y[0, 0])
    assert np.isinf(steps.time[0])
    assert np.isfinite(steps.y[0, 1])


@pytest.mark.parametrize(("cursor", "gone"), [(0, True), (6, True), (7, False), (19, False)])
def test_what_is_the_next_to_be_overwritten_counts_as_forgotten(cursor: int, gone: bool) -> None:
    """Read 16 records, turn 20: the read of an interval needs its own and the one before, and this turn writes one."""
    ring = adaptive.constant_past(np.ones((1, 1)), 16)
    assert bool(ring.forgotten(np.int32(20), np.array([[cursor]]))[0, 0]) == gone


def test_knots_by_hand() -> None:
    """Two intervals of two points, the second longer for one: values, slopes, and what lies before and after."""
    signals = np.array([[5.0, 6.0], [7.0, 8.0]])
    ring = adaptive.constant_past(signals, 8)
    first = adaptive.Interval(*(signals + k for k in (0.0, 1.0, 2.0, 3.0)))
    second = adaptive.Interval(*(signals - k for k in (0.0, 1.0, 2.0, 3.0)))
    ring = ring.push(np.int32(1), np.array([1.0, 1.0]), first)
    ring = ring.push(np.int32(2), np.array([3.0, 2.0]), second)
    times = np.array([[-1.0, 0.5], [2.0, 1.75], [9.0, 1.0]])
    cursor = ring.find(np.int32(2), np.zeros((3, 2), np.int32), times)
    assert cursor.tolist() == [[0, 0], [1, 1], [1, 0]]
    found = ring.read(cursor, times, (1, 0, 1), True)

    def h(x: Any, theta: float, width: float, sign: float) -> float:
        return cubic(theta, x, width * (x + sign), x + 2 * sign, width * (x + 3 * sign))

    expected = [[7.0, h(8.0, 0.5, 1.0, 1.0)], [h(5.0, 0.5, 2.0, -1.0), h(6.0, 0.75, 1.0, -1.0)], [5.0, 10.0]]
    np.testing.assert_allclose(found[:3], expected, rtol=1e-13)

    def slope(x: Any, theta: float, width: float, sign: float) -> float:
        e = 1e-6
        return (h(x, theta + e, width, sign) - h(x, theta - e, width, sign)) / (2 * e * width)

    rates = [[0.0, slope(8.0, 0.5, 1.0, 1.0)], [slope(5.0, 0.5, 2.0, -1.0), slope(6.0, 0.75, 1.0, -1.0)], [4.0, 11.0]]
    np.testing.assert_allclose(found[3:], rates, rtol=1e-8, atol=1e-8)


def test_an_interval_of_no_length_is_its_end() -> None:
    """A point that stands writes its last interval again: its end's value and slope, and no number divided by 0."""
    signals = np.array([[5.0, 6.0]])
    ring = adaptive.constant_past(signals, 8)
    for turn, ends, more in ((1, [1.0, 2.0], 0.0), (2, [3.0, 2.0], 10.0)):
        parts = adaptive.Interval(*(signals + more + k for k in (0.0, 1.0, 2.0, 3.0)))
        ring = ring.push(np.int32(turn), np.array(ends), parts)
    found = ring.read(np.array([[1, 1]]), np.array([[3.0, 2.0]]), (0,), True)
    np.testing.assert_allclose(found, [[17.0, 18.0], [18.0, 19.0]])
