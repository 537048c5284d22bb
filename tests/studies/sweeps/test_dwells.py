"""Runs that move there and back, or settle from a start, with a stand-in for the fluid that notes what it is told."""

from __future__ import annotations

import dataclasses
import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.engines.fluid.network import REASONS
from fluidcc.engines.fluid.plan import Plan
from fluidcc.errors import InputError
from fluidcc.studies.sweeps.batch import NOT_FINITE, Batch

dwells = importlib.import_module("fluidcc.studies.sweeps.hysteresis")
PLAN = Plan(
    dt=1e-6, stride=1, room=501, steps=1000, first=0, last=1000, window=(0.0, 1e-3), every=1, thin=1, depth=64,
    allowance=0.0, aligned=True, method="heun", dtype="float64",
)  # fmt: skip


def summary(mean: Any, ptp: Any = 0.0, rate: Any = 1.0) -> Any:
    """Queues of one link whose points have these means, and swing by so much."""
    at = np.atleast_1d(np.asarray(mean, float))
    swing = np.broadcast_to(ptp, at.shape)
    rates = np.broadcast_to(rate, at.shape)[None]
    return SimpleNamespace(queue_mean=at[None], queue_min=(at - swing)[None], queue_max=at[None] + 0.0, rate_mean=rates)


# -- windows -----------------------------------------------------------------------------------------------------


def test_the_queue_with_the_largest_mean_speaks_for_a_point() -> None:
    """The longer of two links, point by point; one without a number is never the largest."""
    found = dwells._amplitudes(
        SimpleNamespace(
            queue_mean=np.array([[5.0, 1.0, np.nan], [4.0, 2.0, 3.0]]),
            queue_min=np.array([[1.0, 0.0, 0.0], [2.0, 0.5, 1.0]]),
            queue_max=np.array([[9.0, 7.0, 8.0], [6.0, 3.5, 5.0]]),
            rate_mean=np.ones((2, 3)),
        )
    )
    assert found["queue_bytes.mean"].tolist() == [5.0, 2.0, 3.0]
    assert found["queue_bytes.min"].tolist() == [1.0, 0.5, 1.0]
    assert found["queue_bytes.max"].tolist() == [9.0, 3.5, 5.0]
    assert found["peak_to_peak"].tolist() == [8.0, 3.0, 4.0]
    assert found["rate"].shape == (2, 3)


def judged(*windows: tuple[float, float, float], packet: float = 1000.0) -> tuple[str, bool]:
    """Kind of a point whose windows have these swings, means and rates of one of two flows."""
    found, settled = dwells._judged(
        [
            {
                "peak_to_peak": np.array([swing]),
                "queue_bytes.min": np.array([mean]),
                "queue_bytes.max": np.array([mean + swing]),
                "queue_bytes.mean": np.array([mean]),
                "rate": np.array([[1e9], [rate]]),
            }
            for swing, mean, rate in windows
        ],
        packet,
    )
    assert "rate" not in found
    assert found["queue_bytes.mean"].tolist() == [windows[-1][1]]
    return str(found["kind"][0]), bool(settled[0])


@pytest.mark.parametrize(
    ("windows", "kind", "settled"),
    [
        ([(0.0, 0.0, 1e9)] * 3, "equilibrium", True),
        ([(0.0, 0.0, 1e9), (0.0, 0.0, 1e9), (0.0, 0.0, 0.995e9)], "equilibrium", True),  # within a hundredth
        ([(0.0, 0.0, 1e9), (0.0, 0.0, 1e9), (0.0, 0.0, 0.985e9)], "unsettled", False),
        ([(0.0, 0.0, 5e8), (0.0, 0.0, 1e9), (0.0, 0.0, 1e9)], "equilibrium", True),  # the last two count
        ([(0.9, 0.0, 1e9)] * 3, "equilibrium", True),  # a thousandth of a packet
        ([(1.1, 0.0, 1e9)] * 3, "cycle", True),
        ([(9.0, 1e4, 1e9)] * 3, "equilibrium", True),  # of a queue that is longer than one
        ([(11.0, 1e4, 1e9)] * 3, "cycle", True),
        ([(11.0, 1e4, 1e9), (11.0, 1e4, 1e9), (11.0, 1e4, 5e8)], "cycle", True),  # rates of a cycle may move
        ([(9e3, 1e4, 1e9), (6e3, 1e4, 1e9), (4e3, 1e4, 1e9)], "decaying", False),
        ([(np.nan, 1e4, 1e9)] * 3, REASONS[NOT_FINITE], True),
    ],
)
def test_a_point_is_settled_by_its_swings_and_its_rates(
    windows: list[tuple[float, float, float]], kind: str, settled: bool
) -> None:
    assert judged(*windows) == (kind, settled)


# -- there and back ----------------------------------------------------------------------------------------------


class Moved:
    """Stand-in for a run that goes on: at which point it is, and for how many steps."""

    log: list[tuple[str, float]] = []  # noqa: RUF012

    def __init__(self, network: Any, plan: Plan, chunk: int = 1) -> None:
        self.at = np.asarray(network["n"][0], float)
        self.steps = 0
        Moved.log.append(("start", float(self.at[0])))

    def change(self, network: Any) -> None:
        self.at = np.asarray(network["n"][0], float)
        Moved.log.append(("change", float(self.at[0])))

    def perturb(self, share: float) -> None:
        Moved.log.append(("perturb", share))

    def window(self, steps: int) -> Any:
        self.steps += steps
        Moved.log.append(("window", steps))
        return summary(100 * self.at)


def moved(monkeypatch: pytest.MonkeyPatch, values: list[float], bad: tuple[int, ...] = (), **options: Any) -> Any:
    """A run over these values with two steps between them; 40 steps at each, 20 on the way, 30 before."""
    Moved.log = []
    asked: list[Any] = []

    def batch_of(make: Any, grid: Any) -> Batch:
        reasons = np.isin(np.arange(grid.points), bad).astype(int)
        network: Any = {"n": grid.axes["n"][None], "packet": np.array([1000.0])}
        return Batch(Network(network), reasons, np.array(1000.0), SimpleNamespace())  # type: ignore[arg-type]

    def plan_of(network: Any, *, until: float, **_: Any) -> Plan:
        asked.append(until)
        return PLAN

    monkeypatch.setattr(dwells, "_PIECES", 2)
    monkeypatch.setattr(dwells, "batch_of", batch_of)
    monkeypatch.setattr(dwells, "plan_of", plan_of)
    monkeypatch.setattr(dwells, "Continued", Moved)
    monkeypatch.setattr(dwells, "with_room", lambda job, *_: job(None))
    given = {"dwell": 160e-6, "ramp": 20e-6, "before": 30e-6, "perturbation": 0.25}
    found = dwells.hysteresis(lambda n: None, {"n": values}, **given | options)
    return found.dataset, Moved.log, asked


class Network(dict[str, Any]):
    """Columns by name."""

    @property
    def packet(self) -> Any:
        return self["packet"]


def take(network: Any, indices: np.ndarray) -> Any:
    return {"n": network["n"][:, indices]}


@pytest.fixture(autouse=True)
def _taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dwells, "take", take)


@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0], [4.0, 2.0, 1.0]])
def test_a_run_goes_through_all_values_and_back(monkeypatch: pytest.MonkeyPatch, values: list[float]) -> None:
    """Two steps from each to the next; 4 windows of 40 steps at each, twice at the last."""
    data, log, asked = moved(monkeypatch, values)
    one, two, three = values
    stay = [("perturb", 0.25), *[("window", 40)] * 4]

    def go(*places: float) -> list[tuple[str, float]]:
        return [step for at in places for step in (("change", at), ("window", 10))]

    there = [*stay, *go((one + two) / 2, two), *stay, *go((two + three) / 2, three), *stay]
    back = [*stay, *go((two + three) / 2, two), *stay, *go((one + two) / 2, one), *stay]
    assert log == [("start", one), ("window", 30), *there, *back]
    assert asked == [pytest.approx(30e-6 + 6 * 180e-6)]
    rises = values[-1] > values[0]
    assert data["branch"].values.tolist() == (["up", "down"] if rises else ["down", "up"])
    for branch in ("up", "down"):
        assert data["queue_bytes.mean"].sel(branch=branch).values.tolist() == [100 * at for at in values]
        assert data["kind"].sel(branch=branch).values.tolist() == ["equilibrium"] * 3


def test_at_once_it_jumps_and_undisturbed_it_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    _, log, _ = moved(monkeypatch, [1.0, 2.0], ramp=0, before=0, perturbation=0.0)
    assert log == [("start", 1.0), *[("window", 40)] * 4, ("change", 2.0), *[("window", 40)] * 8, ("change", 1.0),
                   *[("window", 40)] * 4]  # fmt: skip


def test_a_ramp_and_the_time_before_are_a_dwell_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    _, log, asked = moved(monkeypatch, [1.0, 2.0], ramp=None, before=None)
    assert log[1] == ("window", 160)
    assert log[log.index(("change", 1.5)) + 1] == ("window", 80)
    assert asked == [pytest.approx(160e-6 * 9)]


@pytest.mark.parametrize(
    ("values", "options", "bad", "says"),
    [
        ([1.0, 1.0], {}, (), "rising or falling"),
        ([1.0, 3.0, 3.0], {}, (), "rising or falling"),
        ([3.0, 1.0, 2.0], {}, (), "rising or falling"),
        ([1.0], {}, (), "two or more values"),
        ([1.0, 2.0], {"dwell": 1e-6}, (), "too short"),  # a quarter of a step
        ([1.0, 2.0], {"ramp": 0.9e-6}, (), "too short"),
        ([1.0, 3.0], {}, (1, 2), f"{REASONS[1]} at 2; leave it out"),
    ],
)
def test_what_cannot_move_is_refused(
    monkeypatch: pytest.MonkeyPatch, values: list[float], options: dict[str, Any], bad: tuple[int, ...], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        moved(monkeypatch, values, bad, **options)


def test_the_shortest_dwell_and_ramp_are_one_step_of_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    _, log, _ = moved(monkeypatch, [1.0, 2.0], dwell=4e-6, ramp=2e-6)
    assert {steps for what, steps in log if what == "window"} == {30, 1}


def test_a_run_that_is_not_finite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Moved, "window", lambda self, steps: summary(np.nan * self.at))
    with pytest.raises(InputError, match="the run is not finite"):
        moved(monkeypatch, [1.0, 2.0])


# -- two starts --------------------------------------------------------------------------------------------------


class Settling(Moved):
    """Points whose swing falls to nothing after as many windows as their number says."""

    windows: list[int] = []  # noqa: RUF012

    def window(self, steps: int) -> Any:
        self.steps += steps
        Settling.windows.append(steps)
        done = self.steps // steps
        return summary(1e4 + self.at, np.where(done > self.at, 0.0, 5e3 * 2.0**-done))


def settled(monkeypatch: pytest.MonkeyPatch, last: list[float], horizon: int, chunk: int = 8) -> tuple[Any, list[int]]:
    Settling.windows = []
    monkeypatch.setattr(dwells, "Continued", Settling)
    monkeypatch.setattr(dwells, "chunk_size", lambda *_: chunk)
    network: Any = Network({"n": np.array(last)[None], "packet": np.array([1000.0])})
    batch: Any = Batch(network, np.zeros(len(last), int), np.array(1000.0), SimpleNamespace())  # type: ignore[arg-type]
    found = dwells._settled(batch, dataclasses.replace(PLAN, steps=horizon), len(last), 10.4e-6, 1, lambda *_: None)
    return found, Settling.windows


def test_a_chunk_ends_when_all_of_its_points_are_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Swings end after one and three windows of ten steps: three more are still."""
    found, windows = settled(monkeypatch, [1.0, 3.0], 1000)
    assert windows == [10] * 6
    assert found["kind"].tolist() == ["equilibrium"] * 2
    assert found["queue_bytes.mean"].tolist() == [10001.0, 10003.0]


@pytest.mark.parametrize(("horizon", "count"), [(50, 5), (49, 4), (1000, 6)])
def test_a_chunk_gives_up_at_the_horizon(monkeypatch: pytest.MonkeyPatch, horizon: int, count: int) -> None:
    found, windows = settled(monkeypatch, [3.0], horizon)
    assert windows == [10] * count
    assert (found["kind"].tolist() == ["equilibrium"]) is (count == 6)


def test_chunks_are_padded_and_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = settled(monkeypatch, [0.0, 1.0, 2.0, 0.0, 1.0], 1000, chunk=2)
    assert found["queue_bytes.mean"].tolist() == [10000.0, 10001.0, 10002.0, 10000.0, 10001.0]
    assert found["kind"].tolist() == ["equilibrium"] * 5


def test_a_window_fits_three_times_into_the_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dwells, "batch_of", lambda *_: pytest.fail("reached"))
    options: dict[str, Any] = {"other": lambda n: None, "until": "3ms"}
    for window in ("1.001ms", 0):
        with pytest.raises(InputError, match="does not fit three times"):
            dwells.bistability(lambda n: None, {"n": [1.0]}, window=window, **options)
    with pytest.raises(pytest.fail.Exception, match="reached"):
        dwells.bistability(lambda n: None, {"n": [1.0]}, window="1ms", **options)
