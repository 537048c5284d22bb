"""Chunks of a sweep and what is run again, by hand: an engine that only says what it was asked stands for the fluid."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from fluidcc.engines.fluid.plan import Plan
from fluidcc.studies.sweeps import batch
from fluidcc.studies.sweeps.batch import NOT_FINITE, TOO_LONG, Batch, chunk_size, expected_time, run_chunk, take

STEP = 2.0**-20
PLAN = Plan(
    dt=STEP, stride=2, room=501, steps=1000, first=500, last=1000, window=(0.0, 1e-3), every=1, thin=1, depth=1024,
    allowance=1e-3, aligned=True, method="heun", dtype="float64",
)  # fmt: skip


class Net(NamedTuple):
    """Parts of a network that are looked at: numbers of its points in a row, and 20 signals, of 160 bytes a record."""

    ids: Any = np.arange(5.0)[None]
    marking_lag: Any = np.array([20 * STEP, 100 * STEP])
    own_lag: Any = None
    packet: Any = np.array([1000.0])
    tracked: Any = False
    queues: Any = 19
    flows: Any = (1,)
    ingress: Any = None
    priorities: Any = (0,)


def made(network: Any, count: int = 5) -> Batch:
    return Batch(network, np.zeros(count, int), np.arange(float(count)), SimpleNamespace())  # type: ignore[arg-type]


# -- sizes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "aligned", "rtol", "points", "seconds"),
    [
        (1000, True, None, 1, 1000 * 20 * 15e-9),
        (1000, True, None, 7, 7 * 1000 * 20 * 15e-9),
        (1000, False, None, 1, 1000 * 20 * 200e-9),
        (1000, True, 1e-4, 1, 1000 * 20 * 1.5e-9),
    ],
)
def test_a_step_takes_time_for_each_signal_of_each_point(
    steps: int, aligned: bool, rtol: float | None, points: int, seconds: float
) -> None:
    plan = dataclasses.replace(PLAN, steps=steps, aligned=aligned, rtol=rtol)
    assert expected_time(Net(), plan, points) == pytest.approx(seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("network", "changes", "points", "workers", "room", "size"),
    [
        (Net(), {}, 10**6, 1, batch.ROOM, 485),  # 108 records of 160 bytes, in 8 MiB of a cache
        (Net(own_lag=np.array([208 * STEP])), {}, 10**6, 1, batch.ROOM, 242),  # the longer lag: 216 of them
        (Net(own_lag=np.array([2 * STEP])), {}, 10**6, 1, batch.ROOM, 485),
        (Net(marking_lag=None, own_lag=np.array([100 * STEP])), {}, 10**6, 1, batch.ROOM, 485),
        (Net(queues=1), {}, 10**6, 1, batch.ROOM, 1024),  # no more than that
        (Net(marking_lag=np.array([9999 * STEP])), {}, 10**6, 1, batch.ROOM, 64),  # all of 1024: 51, but no less
        (Net(), {"steps": 10**6}, 10**6, 1, batch.ROOM, 66),  # 0.3 s each, of 20
        (Net(), {"steps": 10**6, "aligned": False}, 10**6, 1, batch.ROOM, 5),  # 4 s
        (Net(), {"steps": 10**6, "aligned": False, "rtol": 1e-3}, 10**6, 1, batch.ROOM, 50),
        (Net(), {"steps": 10**9}, 10**6, 1, batch.ROOM, 1),
        (Net(), {}, 10**6, 1, 10.9 * 1024 * 160, 10),  # whole histories
        (Net(), {}, 10**6, 1, 0.5 * 1024 * 160, 1),
        (Net(), {}, 12, 4, batch.ROOM, 3),  # for all workers
        (Net(), {}, 13, 4, batch.ROOM, 4),
        (Net(), {}, 3, 4, batch.ROOM, 1),
    ],
)
def test_a_chunk_fits_the_cache_the_room_a_minute_and_all_workers(
    network: Any, changes: dict[str, Any], points: int, workers: int, room: float, size: int
) -> None:
    plan = dataclasses.replace(PLAN, **changes)
    assert chunk_size(made(network), plan, points, workers, room) == size


def test_what_has_a_column_for_each_point_is_taken_and_the_rest_left() -> None:
    found: Any = take({"a": np.arange(6.0).reshape(2, 3), "b": np.arange(3.0), "c": 1.0}, np.array([2, 0, 2]))  # type: ignore[arg-type]
    assert found["a"].tolist() == [[2.0, 0.0, 2.0], [5.0, 3.0, 5.0]]
    assert found["b"].tolist() == [0.0, 1.0, 2.0]
    assert found["c"] == 1.0


def test_traced_leaves_fill_the_places_without_a_number() -> None:
    assert batch._merged([1, None, 3, None], ["a", "b"]) == [1, "a", 3, "b"]


# -- a chunk -----------------------------------------------------------------------------------------------------


class Engine:
    """Stand-in for the fluid: a point's queue is its number, and its packets wait as long as is written here."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, waits: list[float], queues: list[float] | None = None) -> None:
        self.waits, self.queues = np.array(waits), np.array(queues if queues is not None else np.arange(len(waits)))
        self.ran: list[tuple[list[int], Plan, dict[str, Any]]] = []
        self.payloads: list[list[float]] = []
        monkeypatch.setattr(batch, "execute", self.execute)
        monkeypatch.setattr(batch, "metrics_of", self.metrics_of)
        monkeypatch.setattr(batch, "longest_waits", lambda network, summary: self.waits[summary.at])

    def execute(self, network: Net, plan: Plan, **options: Any) -> tuple[Any, float, float]:
        at = np.asarray(network.ids[0], int)
        report = options.pop("report")
        for share in (0.5, 1.0):
            report(share)
        self.ran.append((at.tolist(), plan, options))
        queue = self.queues[at] * (1.0 if plan.rtol is None else 1 + plan.rtol)
        mean = np.stack([queue, np.zeros(len(queue))])
        rates = 10 * mean + plan.allowance
        return SimpleNamespace(summary=SimpleNamespace(at=at, queue_mean=mean, rate_mean=rates)), 2.0, 3.0

    def metrics_of(self, network: Net, plan: Plan, outcome: Any, payload: np.ndarray) -> dict[str, np.ndarray]:
        self.payloads.append(np.broadcast_to(payload, len(outcome.summary.at)).tolist())
        return {"queue": outcome.summary.queue_mean[0] + plan.allowance}


def test_a_chunk_that_waits_within_its_history_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(monkeypatch, [1e-3, 0.0, 1e-3, 0.0, 0.0])  # just as long as it holds
    heard: list[float] = []
    found = run_chunk(Net(), PLAN, np.arange(5.0), 5, report=heard.append)  # type: ignore[arg-type]
    assert [ran for ran, *_ in engine.ran] == [[0, 1, 2, 3, 4]]
    assert found["queue"].tolist() == pytest.approx([k + 1e-3 for k in range(5)])
    assert found["rate_bytes_per_s"].tolist() == [[10 * k + 1e-3, 1e-3] for k in range(5)]
    assert found["reason"].tolist() == [0] * 5
    assert (float(found["compile_s"]), float(found["wall_s"])) == (2.0, 3.0)
    assert heard == [0.5, 1.0]
    assert "queue_error_rel" not in found


@pytest.mark.parametrize(
    ("steps", "room", "segments"),
    [(1, 501, 1), (166_666, 501, 1), (166_700, 501, 3), (499_900, 501, 3), (500_100, 501, 24), (10**9, 501, 501),
     (10**9, 200, 200)],
)  # fmt: skip
def test_a_run_has_as_many_parts_as_quarter_seconds_about(
    monkeypatch: pytest.MonkeyPatch, steps: int, room: int, segments: int
) -> None:
    """Five points of 20 signals take 1.5 us a step: 166 667 steps a quarter of a second, three of them 500 000."""
    engine = Engine(monkeypatch, [0.0] * 5)
    run_chunk(Net(), dataclasses.replace(PLAN, steps=steps, room=room), np.ones(1), 5)  # type: ignore[arg-type]
    assert engine.ran[0][2]["segments"] == segments


def test_points_that_wait_longer_run_again_with_a_longer_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of five, two at a time in the room there is: the last is padded by itself, and its payload goes along."""
    engine = Engine(monkeypatch, [0.0, 3e-3, 1e-3, 5e-3, 4e-3])
    depth = 1 << (int((1021 * STEP + 10e-3) / STEP + 3)).bit_length()
    assert depth == 16384
    monkeypatch.setattr(batch, "longest_waits", _only_at_first(engine))
    found = run_chunk(Net(), PLAN, np.arange(5.0), 5, 2.5 * depth * 160)  # type: ignore[arg-type]
    assert [ran for ran, *_ in engine.ran] == [[0, 1, 2, 3, 4], [1, 3], [4, 4]]
    assert engine.payloads == [[0, 1, 2, 3, 4], [1, 3], [4, 4]]
    longer = [plan for _, plan, _ in engine.ran[1:]]
    assert [plan.depth for plan in longer] == [depth] * 2
    assert [plan.allowance for plan in longer] == pytest.approx([11e-3] * 2)  # twice the longest on top of what it was
    assert found["queue"].tolist() == pytest.approx([1e-3, 1.011, 2.001, 3.011, 4.011])
    assert found["rate_bytes_per_s"][:, 0].tolist() == pytest.approx([1e-3, 10.011, 20.001, 30.011, 40.011])
    assert (float(found["compile_s"]), float(found["wall_s"])) == (6.0, 9.0)


def _only_at_first(engine: Engine) -> Any:
    return lambda network, summary: engine.waits[summary.at] if len(engine.ran) == 1 else 0 * engine.waits[summary.at]


@pytest.mark.parametrize(("room", "sizes"), [(3.0, [5, 3]), (9.0, [5, 3]), (1.0, [5, 1, 1, 1])])
def test_as_many_run_again_at_once_as_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch, room: float, sizes: list[int]
) -> None:
    engine = Engine(monkeypatch, [0.0, 3e-3, 1e-3, 5e-3, 4e-3])
    monkeypatch.setattr(batch, "longest_waits", _only_at_first(engine))
    run_chunk(Net(), PLAN, np.ones(1), 5, room * 16384 * 160)  # type: ignore[arg-type]
    assert [len(ran) for ran, *_ in engine.ran] == sizes


def test_points_that_no_history_can_hold_fail_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    Engine(monkeypatch, [0.0, 3e-3, 0.0, 5e-3, 0.0])
    found = run_chunk(Net(), PLAN, np.ones(1), 5, 0.9 * 16384 * 160)  # type: ignore[arg-type]
    assert found["reason"].tolist() == [0, TOO_LONG, 0, TOO_LONG, 0]
    assert np.isnan(found["queue"]).tolist() == [False, True, False, True, False]
    assert np.isnan(found["rate_bytes_per_s"]).all(axis=1).tolist() == [False, True, False, True, False]


def test_a_point_that_is_not_finite_fails_alone_and_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(monkeypatch, [0.0, 9.0, 0.0], [1.0, np.nan, np.inf])
    network = Net(ids=np.arange(3.0)[None])
    found = run_chunk(network, PLAN, np.ones(1), 3)  # type: ignore[arg-type]
    assert found["reason"].tolist() == [0, NOT_FINITE, NOT_FINITE]
    assert found["reason"].dtype == np.int32
    assert np.isnan(found["queue"]).tolist() == [False, True, True]
    assert np.isnan(found["rate_bytes_per_s"]).tolist() == [[False] * 2, [True] * 2, [True] * 2]
    assert len(engine.ran) == 1


def test_to_a_tolerance_points_may_run_to_ten_times_of_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues of 0 to 4000 bytes, a share of rtol more: the difference is nine times it, of 1000 bytes at least."""
    engine = Engine(monkeypatch, [0.0] * 5, [0.0, 500.0, 1000.0, 2000.0, 4000.0])
    plan = dataclasses.replace(PLAN, rtol=0.01)
    heard: list[float] = []
    found = run_chunk(Net(), plan, np.ones(1), 5, report=heard.append)  # type: ignore[arg-type]
    assert np.isnan(found["queue_error_rel"]).all()
    assert np.isnan(found["rate_error_rel"]).all()
    assert heard == [0.5, 1.0]
    heard.clear()
    engine.ran.clear()
    found = run_chunk(Net(), dataclasses.replace(plan, estimates=True), np.ones(1), 5, report=heard.append)  # type: ignore[arg-type]
    assert [plan.rtol for _, plan, _ in engine.ran] == pytest.approx([0.01, 0.1])
    assert found["queue_error_rel"].tolist() == pytest.approx([0.0, 45 / 1000, 90 / 1010, 0.09 / 1.01, 0.09 / 1.01])
    assert found["rate_error_rel"][1:].tolist() == pytest.approx([0.09 / 1.01] * 4, rel=1e-6)
    assert float(found["wall_s"]) == 6.0
    assert heard == [0.25, 0.5, 0.75, 1.0]


# -- errors of the step ------------------------------------------------------------------------------------------


def test_beside_a_run_are_a_finer_and_a_coarser_or_two_finer() -> None:
    """Runs of one shape: records for the finest of both."""
    finer, other = batch.plans_beside(PLAN)
    assert (finer.dt, other.dt) == (STEP / 2, 2 * STEP)
    assert (finer.steps, other.steps) == (2000, 500)
    assert finer.depth == other.depth == 1 << (2 * 1021 + 3).bit_length()
    odd = dataclasses.replace(PLAN, first=501)
    finer, other = batch.plans_beside(odd)
    assert (finer.dt, other.dt) == (STEP / 2, STEP / 4)
    assert finer.depth == other.depth == 1 << (4 * 1021 + 3).bit_length()


class Beside:
    """Stand-in for a chunk's run: queues that are off by some share for each step, of points by their payload."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, shares: dict[float, float]) -> None:
        self.shares = shares
        self.ran: list[tuple[float, list[float]]] = []
        monkeypatch.setattr(batch, "run_chunk", self.run_chunk)

    def at(self, step: float, points: np.ndarray) -> dict[str, np.ndarray]:
        queue = 1e4 * (1 + points) * (1 + self.shares[step])
        return {"queue_bytes.mean": queue, "rate_bytes_per_s": np.stack([queue, 0 * queue], axis=1) * 3}

    def run_chunk(self, network: Any, plan: Plan, payload: np.ndarray, size: int, room: float, report: Any) -> Any:
        assert len(payload) == size
        report(1.0)
        self.ran.append((plan.dt / STEP, payload.tolist()))
        return self.at(plan.dt / STEP, payload)


@pytest.mark.parametrize(
    ("first", "shares", "as_expected"),
    [
        (500, {2.0: 0.04, 1.0: 0.02, 0.5: 0.01}, True),  # it halves
        (500, {2.0: 0.30, 1.0: 0.02, 0.5: 0.01}, False),  # by far too fast
        (500, {2.0: 0.022, 1.0: 0.02, 0.5: 0.01}, False),  # and too slowly
        (501, {1.0: 0.02, 0.5: 0.01, 0.25: 0.005}, True),
        (501, {1.0: 0.02, 0.5: 0.01, 0.25: -0.1}, False),
    ],
)
def test_the_error_is_to_half_the_step_and_a_third_bears_it_out(
    monkeypatch: pytest.MonkeyPatch, first: int, shares: dict[float, float], as_expected: bool
) -> None:
    beside = Beside(monkeypatch, shares)
    points = np.arange(5.0)
    results = beside.at(1.0, points) | {"reason": np.zeros(5, int)}
    found = batch.sampled_error(made(Net()), dataclasses.replace(PLAN, first=first), results)
    assert found["queue_rel"] == pytest.approx(0.01 / 1.01)
    assert found["rate_rel"] == pytest.approx(0.01 / 1.01)
    assert found["as_expected"] is as_expected
    other = 2.0 if first == 500 else 0.25
    assert [step for step, _ in beside.ran] == [0.5, other]
    assert sorted(set(beside.ran[0][1])) == points.tolist()


def test_points_are_spread_over_those_that_have_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of 0 to 9 without 0, 4 and 9: the first, the middle and the last; two at a time, the last padded."""
    beside = Beside(monkeypatch, {2.0: 0.04, 1.0: 0.02, 0.5: 0.01})
    results = beside.at(1.0, np.arange(10.0)) | {"reason": np.isin(np.arange(10), [0, 4, 9]).astype(int)}
    room = 2.9 * 2048 * 160
    batch.sampled_error(made(Net(ids=np.arange(10.0)[None]), 10), PLAN, results, room, most=3)
    assert [points for _, points in beside.ran] == [[1, 5], [8, 8]] * 2
    beside.ran.clear()
    batch.sampled_error(made(Net(ids=np.arange(10.0)[None]), 10), PLAN, results, 1.0, most=3)  # one at least
    assert [points for _, points in beside.ran] == [[1], [5], [8]] * 2
    beside.ran.clear()
    batch.sampled_error(made(Net(ids=np.arange(10.0)[None]), 10), PLAN, results, most=3)
    assert [points for _, points in beside.ran] == [[1, 5, 8]] * 2


def test_a_short_queue_differs_by_a_share_of_a_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred bytes where half the step has none: a tenth of a packet."""
    beside = Beside(monkeypatch, {2.0: 0.0, 0.5: 0.0})
    results = beside.at(0.5, np.arange(5.0)) | {"reason": np.zeros(5, int)}
    for at in (2.0, 0.5):
        beside.shares[at] = -1.0
    results["queue_bytes.mean"] = np.full(5, 100.0)
    results["rate_bytes_per_s"] = np.zeros((5, 2))
    found = batch.sampled_error(made(Net()), PLAN, results)
    assert found["queue_rel"] == pytest.approx(0.1)
    assert found["rate_rel"] == 0.0


def test_without_a_result_no_error_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    beside = Beside(monkeypatch, {2.0: 0.04, 1.0: 0.02, 0.5: np.nan})
    results = beside.at(1.0, np.arange(5.0))
    nothing = batch.sampled_error(made(Net()), PLAN, results | {"reason": np.ones(5, int)})
    assert (nothing["queue_rel"], nothing["rate_rel"], nothing["as_expected"]) == (None, None, None)
    assert beside.ran == []
    found = batch.sampled_error(made(Net()), PLAN, results | {"reason": np.zeros(5, int)})
    assert (found["queue_rel"], found["as_expected"]) == (None, None)
