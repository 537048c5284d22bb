"""Counts of a run whose steps are chosen by their error, step by step in NumPy, against its cubics."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.dde.adaptive import PASSED
from fluidcc.engines.fluid import adaptive_run
from tests.engines.fluid.in_numpy import Lax
from tests.engines.fluid.test_plain_plans import PLAN


@pytest.fixture(autouse=True)
def by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive_run, "jnp", np)
    monkeypatch.setattr(adaptive_run, "lax", Lax)


def cubic(start: Any, right: Any, end: Any, left: Any) -> np.polynomial.Polynomial:
    """Hermite's, by its coefficients."""
    rise = end - start
    return np.polynomial.Polynomial([start, right, 3 * rise - 2 * right - left, right + left - 2 * rise])


ENDS = [
    (1.0, 4.0, 2.0, 3.0), (1.0, -4.0, 2.0, 3.0), (3.0, -9.0, 2.0, 8.0), (2.0, 1.0, 2.0, -1.0), (1.0, 1.0, 2.0, 1.0),
    (2.0, 0.0, 2.0, 0.0), (0.5, 5.0, 0.5, 5.0), (5.0, -1.0, 1.0, -1.0), (1.0, 0.0, 3.0, 6.0), (4.0, -8.0, 1.0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("ends", ENDS)
def test_extremes_of_a_cubic_are_at_its_ends_or_where_it_is_flat(ends: tuple[float, ...]) -> None:
    curve = cubic(*ends)
    flat = [root.real for root in curve.deriv().roots() if abs(root.imag) < 1e-9 and 0 < root.real < 1]
    values = [curve(at) for at in (0.0, 1.0, *flat)]
    low, high = adaptive_run._extremes(*(np.array([each]) for each in ends))  # pyright: ignore[reportArgumentType]
    assert (float(low[0]), float(high[0])) == pytest.approx((min(values), max(values)), rel=1e-9)


NUMBERS = adaptive_run.Numbers(1e-4, 0.5, 7, 2.0, 4.0, 5.0)
SLACK = PASSED * NUMBERS.end  # rounding of a time


def observed(monkeypatch: pytest.MonkeyPatch, time: float, width: float, took: bool) -> tuple[Any, Any]:
    """Sums before and after a step whose queue is the first of `ENDS`, slopes being for a second."""
    start, right, end, left = ENDS[1]
    state = lambda queue: SimpleNamespace(queue=np.array([[queue]]))  # noqa: E731
    step = SimpleNamespace(
        took=np.array([took]), time=np.array([time]), width=np.array([width]), y=state(start), z=SimpleNamespace(),
        right=state(right / width), left=state(left / width),
    )  # fmt: skip
    steps = SimpleNamespace(y=state(end), z=SimpleNamespace(idle=np.array([[77.0]])))
    middle = SimpleNamespace(queue=np.array([[20.0]]))
    monkeypatch.setattr(adaptive_run, "within", lambda system, step, new, theta: middle if theta[0] == 0.5 else None)
    system = SimpleNamespace(
        network=SimpleNamespace(by_link=lambda queue: queue), sending=lambda clock, y, z: 10.0 * y.queue
    )
    before = adaptive_run.Sums(*(np.array([[float(value)]]) for value in (100, 200, 0.9, 1.5, 1.6, 300, 8, 9)))  # pyright: ignore[reportArgumentType]
    return before, adaptive_run._observe(system, NUMBERS, before, step, steps)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("time", "width", "took", "counts"),
    [
        (2.0, 0.5, True, True),
        (3.5, 0.5, True, True),  # up to the window's end
        (2.0 - SLACK, 0.5, True, True),  # to rounding, just as far as it goes
        (2.0 - 2 * SLACK, 0.5, True, False),
        (3.5 + SLACK, 0.5, True, True),
        (3.5 + 2 * SLACK, 0.5, True, False),
        (1.9, 0.1, True, False),
        (4.0, 0.5, True, False),
        (2.0, 0.5, False, False),
    ],
)
def test_a_step_in_the_window_is_counted_by_its_cubic(
    time: float, width: float, took: bool, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Integrals of the queue and its square are exact; rates by Simpson's rule; below nothing there is no queue."""
    before, after = observed(monkeypatch, time, width, took)
    curve = cubic(*ENDS[1])
    total, squares = ((part.integ()(1.0) - part.integ()(0.0)) * width for part in (curve, curve**2))
    low = min(curve(np.linspace(0, 1, 10001)))
    if counts:
        positive = np.maximum(curve(np.linspace(0, 1, 100001)), 0.0)
        assert after.queue.item() == pytest.approx(100 + total if low >= 0 else 100 + positive.mean() * width, rel=1e-3)
        assert after.queue_squared.item() == pytest.approx(200 + squares, rel=1e-3)
        assert after.rate.item() == pytest.approx(300 + width * (10 * 1.0 + 4 * 200.0 + 10 * 2.0) / 6)
        assert after.queue_min.item() == pytest.approx(max(low, 0.0), abs=1e-6)
        assert after.queue_max.item() == 2.0
    else:
        for name in ("queue", "queue_squared", "queue_min", "queue_max", "rate"):
            assert getattr(after, name) == getattr(before, name)
    assert after.queue_max_whole_run.item() == (2.0 if took else 1.6)


@pytest.mark.parametrize(
    ("time", "width", "took", "opened", "closed"),
    [
        (1.0, 0.5, True, 77.0, 77.0),
        (1.5, 0.5, True, 77.0, 77.0),  # as the window opens
        (1.5 + SLACK, 0.5, True, 77.0, 77.0),
        (1.5 + 2 * SLACK, 0.5, True, 8.0, 77.0),
        (2.0, 0.5, True, 8.0, 77.0),
        (3.5, 0.5, True, 8.0, 77.0),
        (4.0, 0.5, True, 8.0, 9.0),
        (1.0, 0.5, False, 8.0, 9.0),
    ],
)
def test_idle_bytes_are_those_at_the_window_s_edges(
    time: float, width: float, took: bool, opened: float, closed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, after = observed(monkeypatch, time, width, took)
    assert (after.idle_before.item(), after.idle.item()) == (opened, closed)


@pytest.mark.parametrize(
    ("time", "width", "sampled", "took", "thetas"),
    [
        (0.9, 1.2, 2, True, [0.1 / 1.2, 0.6 / 1.2, 1.1 / 1.2]),  # at 1, 1.5 and 2 s
        (0.5, 0.5, 1, True, [0.0]),  # what is at its end is the next step's
        (0.5, 0.5, 2, True, []),
        (2.5, 0.5, 5, True, [0.0]),
        (0.9, 1.2, 2, False, []),
        (2.9, 2.1, 6, True, [0.1 / 2.1]),  # there are seven samples
        (2.9, 2.1, 7, True, []),
    ],
)
def test_samples_are_read_off_the_step_in_which_they_lie(
    time: float, width: float, sampled: int, took: bool, thetas: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle bytes go from 10 to 20 in the step."""
    monkeypatch.setattr(adaptive_run, "within", lambda system, step, new, theta: theta)
    shown: list[Any] = []

    def show(system: Any, clock: Any, y: Any, z: Any, full: bool) -> dict[str, Any]:
        shown.append((float(clock.time[0]), float(clock.dt[0]), full))
        return {"theta": y[None], "idle": z.idle}

    monkeypatch.setattr(adaptive_run, "_shown", show)
    Idle = dataclasses.make_dataclass("Idle", ["idle"])
    Idle._replace = lambda self, **values: dataclasses.replace(self, **values)  # pyright: ignore[reportAttributeAccessIssue]
    step = SimpleNamespace(
        took=np.array([took]), time=np.array([time]), width=np.array([width]), z=Idle(np.full((1, 1), 10.0))
    )
    steps = SimpleNamespace(y=None, z=Idle(np.full((1, 1), 20.0)))
    kept = {name: np.full((8, 1, 1), -1.0) for name in ("theta", "idle")}
    now = SimpleNamespace(sampled=np.array([sampled]), samples=kept)
    count, found = adaptive_run._sample(None, NUMBERS, now, step, steps, True)  # pyright: ignore[reportArgumentType]
    assert int(count[0]) == sampled + len(thetas)
    expected = np.full(8, -1.0)
    expected[sampled : sampled + len(thetas)] = thetas
    np.testing.assert_allclose(np.ravel(found["theta"]), expected, atol=1e-12)
    np.testing.assert_allclose(np.ravel(found["idle"]), np.where(expected >= 0, 10 + 10 * expected, -1.0), atol=1e-11)
    assert set(shown) <= {(time, width, True)}


def test_the_last_sample_is_at_the_horizon_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of the step that ends there, as there is no next one."""
    monkeypatch.setattr(adaptive_run, "within", lambda system, step, new, theta: theta)
    monkeypatch.setattr(adaptive_run, "_shown", lambda system, clock, y, z, full: {"theta": y[None]})
    z = SimpleNamespace(idle=np.zeros((1, 1)), _replace=lambda **values: None)
    step = SimpleNamespace(took=np.array([True]), time=np.array([4.5]), width=np.array([0.5]), z=z)
    now = SimpleNamespace(sampled=np.array([9]), samples={"theta": np.full((12, 1, 1), -1.0)})
    numbers = NUMBERS._replace(samples=12)
    count, found = adaptive_run._sample(None, numbers, now, step, SimpleNamespace(y=None, z=z), True)  # pyright: ignore[reportArgumentType]
    assert int(count[0]) == 11
    assert np.ravel(found["theta"])[[9, 10, 11]].tolist() == [0.0, 1.0, -1.0]


@pytest.mark.parametrize(
    ("end", "when", "due"),
    [
        (9.0, 1.0 - PASSED, False),  # what is at the step's end, to rounding, is the next step's
        (9.0, 1.0 - 2 * PASSED, True),
        (1.0, 1.0 + PASSED, True),  # or the last one's
        (1.0, 1.0 + 2 * PASSED, False),
        (1.0 / (1.0 - PASSED), 1.0, True),
        (1.0 / (1.0 - 3 * PASSED), 1.0, False),
    ],
)
def test_a_sample_at_a_step_s_end_is_the_next_one_s_if_there_is_one(
    end: float, when: float, due: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptive_run, "within", lambda system, step, new, theta: theta)
    monkeypatch.setattr(adaptive_run, "_shown", lambda system, clock, y, z, full: {"theta": y[None]})
    z = SimpleNamespace(idle=np.zeros((1, 1)), _replace=lambda **values: None)
    step = SimpleNamespace(took=np.array([True]), time=np.array([0.5]), width=np.array([0.5]), z=z)
    now = SimpleNamespace(sampled=np.array([1]), samples={"theta": np.full((3, 1, 1), -1.0)})
    numbers = NUMBERS._replace(spacing=when, end=end)
    count, _ = adaptive_run._sample(None, numbers, now, step, SimpleNamespace(y=None, z=z), True)  # pyright: ignore[reportArgumentType]
    assert int(count[0]) == 1 + due


def test_numbers_of_a_plan_are_its_times() -> None:
    found = adaptive_run.numbers_of(PLAN)
    assert tuple(map(float, found)) == (1e-4, 1.5, 8, 3.0, 10.0, 10.5)


def test_steps_land_on_the_edges_on_starts_and_on_first_arrivals() -> None:
    """Two flows, of which the second has two hops; the shortest lag is the least of all columns, by point."""
    network: Any = SimpleNamespace(
        starts=True, start=np.array([[0.25], [0.75]]), arrival_lag=np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]),
        flows=[(0, (0,)), (0, (0, 1))], marking_lag=np.array([[0.7, 0.05]]), own_lag=None,
    )  # fmt: skip
    numbers = NUMBERS._replace(opens=np.float64(2), closes=np.float64(4), end=np.float64(5))
    stops: Any = adaptive_run._stops(network, numbers, 2)
    expected = [[2, 2], [4, 4], [5, 5], [0.25, 0.25], [0.75, 0.75], [0.35, 0.45], [1.05, 1.15], [1.25, 1.35]]
    np.testing.assert_allclose(stops, expected)
    np.testing.assert_allclose(adaptive_run.shortest_lag(network), [0.1, 0.05])
