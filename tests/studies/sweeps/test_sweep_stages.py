"""The driver of fluid sweeps, with stand-ins for the engine: what it asks for, pads, keeps and reports."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.fluid.plan import Plan
from fluidcc.errors import InputError
from fluidcc.results.grid import Grid
from fluidcc.results.schema import METRICS
from fluidcc.studies.sweeps import run
from fluidcc.studies.sweeps.batch import Batch
from fluidcc.studies.sweeps.run import Work
from fluidcc.studies.sweeps.store import PENDING, variables_of

PLAN = Plan(
    dt=1e-6, stride=1, room=501, steps=1000, first=500, last=1000, window=(5e-4, 1e-3), every=1, thin=1, depth=256,
    allowance=1e-3, aligned=True, method="heun", dtype="float64",
)  # fmt: skip
ERRORS = ("queue_error_rel", "rate_error_rel")


class Stood:
    """Stand-ins for all that a sweep asks of the engine; the first call of each is kept by its name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, reasons: list[int], *, one: int = 1000) -> None:
        self.asked: dict[str, Any] = {}
        scenario = fc.incast(2)
        network = np.arange(float(len(reasons)))[None]
        self.batch = Batch(network, np.array(reasons), np.array(1000.0), scenario)  # type: ignore[arg-type]

        def keep(name: str, result: Any) -> Any:
            def stand_in(*arguments: Any, **options: Any) -> Any:
                self.asked.setdefault(name, (arguments, options))
                return result(*arguments, **options)

            monkeypatch.setattr(run, name, stand_in)
            return stand_in

        keep("batch_of", lambda make, grid: self.batch)
        keep("plan_of", lambda network, **options: dataclasses.replace(PLAN, rtol=options["rtol"]))
        keep("history_bytes", lambda network, plan: one * (2 if plan.dt < PLAN.dt else 1))
        keep("plans_beside", lambda plan: (dataclasses.replace(plan, dt=plan.dt / 2), None))
        keep("chunk_size", lambda *_: 2)
        keep("sampled_error", lambda *_: {"queue_rel": 0.01, "rate_rel": 0.02, "as_expected": True})
        keep("largest_error", lambda *_: {"queue_rel": 0.03, "rate_rel": 0.04, "as_expected": None})
        keep("run_chunk", self.run_chunk)

    def run_chunk(self, network: Any, plan: Plan, payload: Any, points: int, room: float, report: Any) -> Any:
        at = network[0]
        assert len(at) == points == 2
        found = {name: at + 0.5 for name in METRICS}
        found |= {name: at * 1e-3 for name in ERRORS} if plan.rtol is not None else {}
        found |= {"rate_bytes_per_s": np.stack([at, -at], axis=1), "reason": np.zeros(points, np.int32)}
        return found | {"compile_s": np.float64(1.0), "wall_s": np.float64(2.0)}

    def swept(self, **options: Any) -> Any:
        over = {"k": np.arange(float(len(self.batch.reasons)))}
        return run.sweep(lambda k: None, over, until="1ms", **{"workers": 1} | options).dataset  # type: ignore[arg-type]


def test_every_point_has_its_numbers_and_bad_ones_their_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five in chunks of two: the last is padded by a point that is not shown."""
    stood = Stood(monkeypatch, [0, 0, 3, 0, 0])
    found = stood.swept()
    assert found["reason"].values.tolist() == [0, 0, 3, 0, 0]
    for name in METRICS:
        assert found[name].values.tolist() == pytest.approx([0.5, 1.5, np.nan, 3.5, 4.5], nan_ok=True)
    assert found["rate_bytes_per_s"].values[[0, 1, 3, 4]].tolist() == [[k, -k] for k in (0.0, 1.0, 3.0, 4.0)]
    assert np.isnan(found["rate_bytes_per_s"].values[2]).all()
    assert found.attrs["compile_s"] >= 3.0  # of three chunks
    assert found.attrs["discretisation_error.queue_rel"] == 0.01
    assert found.attrs["discretisation_error.as_expected"] == 1.0


@pytest.mark.parametrize(
    ("options", "queue", "estimates", "beside"),
    [
        ({}, 0.01, False, True),
        ({"estimate_error": False}, np.nan, False, False),
        ({"rtol": 1e-4}, 0.03, True, False),
        ({"rtol": 1e-4, "estimate_error": False}, 0.03, False, False),
    ],
)
def test_the_error_is_sampled_or_with_a_tolerance_that_of_every_point(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], queue: float, estimates: bool, beside: bool
) -> None:
    """Room is kept for the finest run that there will be: half the step, if the error is sampled."""
    stood = Stood(monkeypatch, [0, 0, 0])
    found = stood.swept(**options)
    assert found.attrs["discretisation_error.queue_rel"] == pytest.approx(queue, nan_ok=True)
    assert stood.asked["run_chunk"][0][1].estimates is estimates
    assert ("plans_beside" in stood.asked) is beside
    assert stood.asked["history_bytes"][0][1].dt == (PLAN.dt / 2 if beside else PLAN.dt)
    assert (set(ERRORS) <= set(found.variables)) is ("rtol" in options)
    if "rtol" in options:
        assert found["queue_error_rel"].values.tolist() == pytest.approx([0.0, 1e-3, 2e-3])


@pytest.mark.parametrize(
    ("memory", "workers", "threads", "room"),
    [
        ("10GB", 4, 4, 2.0**29),  # the largest chunk
        ("1GB", 4, 4, 2.5e8),  # each thread's part
        ("6MB", 4, 3, 2e6),  # three histories of 2 MB
        ("5.9MB", 4, 2, 2.95e6),
        ("2MB", 4, 1, 2e6),
    ],
)
def test_threads_share_the_memory_that_may_be_taken(
    monkeypatch: pytest.MonkeyPatch, memory: str, workers: int, threads: int, room: float
) -> None:
    stood = Stood(monkeypatch, [0, 0, 0], one=10**6)
    stood.swept(memory=memory, workers=workers)
    batch, plan, points, *shared = stood.asked["chunk_size"][0]
    assert (batch, plan, points) == (stood.batch, PLAN, 3)
    assert shared == [threads, pytest.approx(room)]
    assert stood.asked["run_chunk"][0][4] == pytest.approx(room)


def test_a_history_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stood = Stood(monkeypatch, [0, 0, 0], one=10**6)
    with pytest.raises(InputError, match="over: the longest lag"):
        stood.swept(memory="1.99MB")
    stood.swept(memory="1MB", estimate_error=False)


def test_where_no_point_makes_sense_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    stood = Stood(monkeypatch, [2, 3, 2])
    found = stood.swept()
    assert "plan_of" not in stood.asked
    assert found["reason"].values.tolist() == [2, 3, 2]
    assert np.isnan(found["jain"].values).all()
    assert found["rate_bytes_per_s"].shape == (3, 2)
    assert np.isnan(found.attrs["discretisation_error.queue_rel"])
    assert (found.attrs["wall_s"], found.attrs["points_per_s"]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"engine": "hybrid", "dt": "1us"}, "are the fluid's"),
        ({"engine": "hybrid", "rtol": 1e-3}, "are the fluid's"),
        ({"engine": "hybrid", "method": "euler"}, "are the fluid's"),
        ({"engine": "packet", "dtype": "float32"}, "are the fluid's"),
        ({"engine": "packet", "memory": "1GB"}, "are the fluid's"),
        ({"seeds": 4}, "the fluid draws no random numbers"),
        ({"precision": 0.1}, "the fluid draws no random numbers"),
        ({"resume": True}, "there is no store to go on with"),
    ],
)
def test_options_of_another_engine_are_refused(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], says: str
) -> None:
    stood = Stood(monkeypatch, [0])
    with pytest.raises(InputError, match=says):
        stood.swept(**options)
    assert stood.asked == {}


@pytest.mark.parametrize("engine", ["hybrid", "packet"])
def test_engines_that_draw_have_a_sweep_of_their_own(monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    from fluidcc.studies.sweeps import replications

    asked: list[Any] = []

    def sweep_drawn(make: Any, grid: Grid, draws: Any, **options: Any) -> Any:
        asked.append((grid.points, draws, options))
        return variables

    variables = Stood(monkeypatch, [0]).swept()
    monkeypatch.setattr(replications, "sweep_drawn", sweep_drawn)
    found = run.sweep(lambda k: None, {"k": [1, 2]}, until="1ms", engine=engine, seeds=3, precision=0.1, workers=5)  # type: ignore[arg-type]
    assert found.dataset is variables
    ((points, draws, options),) = asked
    assert (points, draws.engine, draws.seeds, draws.precision, draws.until) == (2, engine, 3, 0.1, 1e-3)
    assert options == {"store": None, "resume": False, "dask": None, "workers": 5}


@pytest.mark.parametrize(("fits", "flows"), [(True, 2), (False, 2), (False, 3)])
def test_results_are_refused_by_what_they_take_twice(fits: bool, flows: int) -> None:
    """A thousand points take 16 bytes for each axis, variable and flow."""
    grid = Grid({"k": np.arange(1000.0)})
    each = 1 + len(variables_of(grid)) + 2
    most = 16.0 * 1000 * each - (0.0 if fits or flows > 2 else 1.0)
    if fits:
        run._require_results(grid, flows, most)
    else:
        with pytest.raises(InputError, match="over: 1,000 points take"):
            run._require_results(grid, flows, most)


# -- parts -------------------------------------------------------------------------------------------------------


class Written:
    """Stand-in for a store."""

    def __init__(self, done: dict[str, np.ndarray] | None = None) -> None:
        self.before = done or {}
        self.parts: list[tuple[slice, dict[str, np.ndarray]]] = []

    def done(self) -> dict[str, np.ndarray]:
        return self.before

    def write(self, part: slice, found: dict[str, np.ndarray]) -> None:
        self.parts.append((part, dict(found)))


def work(reasons: list[int], chunk: int, store: Any = None) -> Work:
    network: Any = {"k": np.arange(float(len(reasons)))[None], "one": np.array(7.0)}
    batch = Batch(network, np.array(reasons), 10.0 * np.arange(len(reasons)), SimpleNamespace())  # type: ignore[arg-type]
    return Work(batch, PLAN, Grid({"k": np.arange(float(len(reasons)))}), chunk, 99.0, store)


@pytest.mark.parametrize(("part", "at"), [(slice(0, 3), [0, 1, 2]), (slice(3, 5), [3, 4, 4])])
def test_a_part_is_padded_by_its_last_point(part: slice, at: list[int]) -> None:
    network, plan, payload, chunk, room = work([0] * 5, 3).arguments(part)
    assert network["k"].tolist() == [at]
    assert network["one"] == 7.0
    assert payload.tolist() == [10.0 * k for k in at]
    assert (plan, chunk, room) == (PLAN, 3, 99.0)


def test_what_is_kept_of_a_part_is_without_padding_and_bad_points() -> None:
    store = Written()
    found = work([0, 0, 0, 4, 0], 3, store).kept(
        slice(2, 4),
        {
            "queue": np.array([1.0, 2.0, 3.0]),
            "rate_bytes_per_s": np.ones((3, 2)),
            "reason": np.zeros(3, np.int32),
            "wall_s": np.array(5.0),
        },
    )
    assert found["queue"].tolist() == pytest.approx([1.0, np.nan], nan_ok=True)
    assert np.isnan(found["rate_bytes_per_s"]).tolist() == [[False, False], [True, True]]
    assert found["reason"].tolist() == [0, 4]
    assert found["wall_s"] == 5.0
    ((part, written),) = store.parts
    assert part == slice(2, 4)
    assert written["reason"].tolist() == [0, 4]


def test_parts_that_are_done_are_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of three parts is whole, and the second has a point that is pending."""
    done = {"queue": np.array([7.0, 7.0, 7.0, np.nan, np.nan]), "reason": np.array([0, 0, 0, PENDING, PENDING])}
    some = work([0] * 5, 2, Written(done))
    ran: list[slice] = []

    def run_many(work: Any, jobs: Any, **_: Any) -> Any:
        for part in jobs:
            ran.append(part)
            at = np.arange(part.start, part.stop)
            yield part, {"queue": 1.0 * at, "reason": 0 * at, "compile_s": np.float64(2.0), "wall_s": np.float64(1.0)}

    def closable(*arguments: Any, **options: Any) -> Any:
        return (each for each in run_many(*arguments, **options))

    monkeypatch.setattr(run, "run_many", closable)
    parts = [slice(0, 2), slice(2, 4), slice(4, 5)]
    results, compiled = run._collect(some, parts, None, 1)
    assert ran == parts[1:]
    assert results["queue"].tolist() == [7.0, 7.0, 2.0, 3.0, 4.0]
    assert results["reason"].tolist() == [0] * 5
    assert compiled == 4.0
    assert "wall_s" not in results
    ran.clear()
    results, _ = run._collect(work([0] * 5, 2), parts, None, 1)
    assert ran == parts
    assert results["queue"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
