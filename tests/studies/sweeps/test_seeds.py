"""Runs of a point with several seeds, from numbers that are written here: when they stop, and what they become."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.hybrid import region
from fluidcc.engines.hybrid import run as hybrid
from fluidcc.errors import InputError
from fluidcc.results.grid import Grid
from fluidcc.results.schema import METRICS
from fluidcc.studies.sweeps import replications
from fluidcc.studies.sweeps.replications import Draws, Points, draws_of, points_of

DRAWS = Draws("packet", 6, None, 1e-3, None)
SCENARIO: Any = SimpleNamespace()


class Runs:
    """Stand-in for an engine: a mean queue for each seed; every third run is by packets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *queues: float) -> None:
        self.queues = queues
        self.look: Any = None
        monkeypatch.setattr(replications, "resolve", lambda scenario: scenario)
        monkeypatch.setattr(replications, "runner_of", self.runner_of)
        monkeypatch.setattr(replications, "metrics_of", self.metrics_of)

    def runner_of(self, scenario: Any, draws: Draws, look: Any = None) -> Any:
        def once(seed: int) -> Any:
            if look is not None:
                look(0.5)
            return SimpleNamespace(queue=self.queues[seed - 1], by_packets=seed % 3 == 0)

        return once

    @staticmethod
    def metrics_of(runs: list[Any]) -> Any:
        queues = np.array([run.queue for run in runs])
        name = "queue_bytes.mean"
        return {name: 10 * queues.mean()}, {name: queues}, np.array([1.0, queues.sum()])


@pytest.mark.parametrize(
    ("queues", "precision", "runs"),
    [
        ((1.0, 2.0, 3.0, 2.0, 2.0, 2.0), None, 6),
        ((1.0, 2.0, 3.0, 2.0, 2.0, 2.0), 0.21, 4),  # deviation 0.816 of the mean 2, its error a half: 0.204 of it
        ((1.0, 2.0, 3.0, 2.0, 2.0, 2.0), 0.20, 5),  # 0.707/5^0.5: 0.158 of it
        ((1.0, 2.0, 3.0, 2.0, 2.0, 2.0), 0.13, 6),  # 0.632/6^0.5/2 is 0.129
        ((2.0, 2.0, 2.0, 2.0, 2.0, 2.0), 0.01, 4),  # no fewer than four
        ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.01, 4),  # of no queue no error is just as much
        ((1.0, 9.0, 1.0, 9.0, 1.0, 9.0), 0.01, 6),  # no more than there are
    ],
)
def test_seeds_stop_once_the_mean_is_known(
    monkeypatch: pytest.MonkeyPatch, queues: tuple[float, ...], precision: float | None, runs: int
) -> None:
    Runs(monkeypatch, *queues)
    heard: list[float] = []
    draws = dataclasses.replace(DRAWS, precision=precision)
    found: list[Any] = replications.outcomes(SCENARIO, draws, heard.append)
    assert [run.queue for run in found] == list(queues[:runs])
    assert heard == pytest.approx([(k + 0.5) / 6 for k in range(runs)])


def test_a_point_has_means_errors_and_its_values_by_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four of six seeds ran: the others have no value."""
    Runs(monkeypatch, 1.0, 2.0, 3.0, 2.0, 9.0, 9.0)
    found = replications._run_point(SCENARIO, dataclasses.replace(DRAWS, precision=0.21), lambda share: None)
    assert float(found["queue_bytes.mean"]) == 20.0
    assert float(found["queue_bytes.mean_se"]) == pytest.approx((2 / 3) ** 0.5 / 2)
    np.testing.assert_array_equal(found["queue_bytes.mean_by_seed"], [1.0, 2.0, 3.0, 2.0, np.nan, np.nan])
    assert (float(found["seeds"]), float(found["by_packets"])) == (4.0, 1.0)
    assert found["rate_bytes_per_s"].tolist() == [1.0, 8.0]


@pytest.mark.parametrize(("seeds", "error"), [(1, np.nan), (2, 0.5)])
def test_two_seeds_have_an_error_and_one_has_none(monkeypatch: pytest.MonkeyPatch, seeds: int, error: float) -> None:
    Runs(monkeypatch, 1.0, 2.0)
    found = replications._run_point(SCENARIO, dataclasses.replace(DRAWS, seeds=seeds), lambda share: None)
    assert float(found["queue_bytes.mean_se"]) == pytest.approx(error, nan_ok=True)


def test_points_without_a_scenario_have_no_numbers_and_no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    Runs(monkeypatch, 1.0, 3.0)
    heard: list[float] = []
    draws = dataclasses.replace(DRAWS, seeds=2)
    found = replications.run_points([SCENARIO, None, SCENARIO, None], draws, heard.append)
    np.testing.assert_array_equal(found["queue_bytes.mean"], [20.0, np.nan, 20.0, np.nan])
    assert found["queue_bytes.mean_by_seed"].shape == (4, 2)
    assert found["seeds"].tolist() == [2, 0, 2, 0]
    assert found["by_packets"].tolist() == [0, 0, 0, 0]
    assert heard == pytest.approx([0.25 / 4, 0.75 / 4, 2.25 / 4, 2.75 / 4])
    nothing = replications.run_points([None, None], draws)
    assert nothing["jain_by_seed"].shape == (2, 2)
    assert nothing["seeds"].tolist() == [0, 0]
    assert all(np.isnan(nothing[name]).all() for name in METRICS)


# -- hybrid and packets ------------------------------------------------------------------------------------------


class Engines:
    """Stand-in for both engines: the hybrid leaves the buffer with the seeds that are given here."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, beyond: set[int], outside: bool, refuses: bool = False) -> None:
        self.asked: list[tuple[str, int, bool]] = []
        self.given: Any = None  # to packets

        def execute(prepared: Any, seed: int, report: Any, within_buffer: bool = False) -> Any:
            self.asked.append(("hybrid", seed, within_buffer))
            if within_buffer and seed in beyond:
                raise region.BeyondBufferError
            return f"hybrid {seed}", None

        def packets(scenario: Any, draws: Draws, look: Any) -> Any:
            self.given = scenario

            def once(seed: int) -> str:
                self.asked.append(("packet", seed, False))
                if refuses:
                    raise InputError("buffer: below its ports' headroom")
                return f"packet {seed}"

            return once

        monkeypatch.setattr(hybrid, "unsampled", lambda until, window: None)
        monkeypatch.setattr(hybrid, "prepare", lambda scenario, times: None)
        monkeypatch.setattr(hybrid, "execute", execute)
        monkeypatch.setattr(hybrid, "outcome_of", lambda prepared, sim: sim)
        monkeypatch.setattr(region, "outside", lambda scenario: outside)
        monkeypatch.setattr(region, "by_packets", lambda scenario: ("few ACKs", scenario))
        monkeypatch.setattr(replications, "_packet_runner", packets)
        self.run: Any = replications.runner_of(SCENARIO, Draws("hybrid", 3, None, 1e-3, None))


def test_from_the_first_run_beyond_the_buffer_on_packets_run(monkeypatch: pytest.MonkeyPatch) -> None:
    engines = Engines(monkeypatch, {2}, False)
    assert [engines.run(seed) for seed in (1, 2, 3)] == ["hybrid 1", "packet 2", "packet 3"]
    assert engines.asked == [("hybrid", 1, True), ("hybrid", 2, True), ("packet", 2, False), ("packet", 3, False)]


@pytest.mark.parametrize("refuses", [False, True])
def test_outside_of_its_region_the_hybrid_runs_only_if_packets_refuse(
    monkeypatch: pytest.MonkeyPatch, refuses: bool
) -> None:
    engines = Engines(monkeypatch, set(), True, refuses)
    assert engines.run(1) == ("hybrid 1" if refuses else "packet 1")
    assert engines.given == ("few ACKs", SCENARIO)
    assert engines.asked == [("packet", 1, False), ("hybrid", 1, False)][: 1 + refuses]


def test_packets_run_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    engines = Engines(monkeypatch, set(), False)
    run: Any = replications.runner_of(SCENARIO, DRAWS)
    assert run(3) == "packet 3"
    assert engines.given is SCENARIO


# -- settings ----------------------------------------------------------------------------------------------------


def test_eight_seeds_are_usual() -> None:
    found = draws_of("hybrid", None, None, "2ms", ("1ms", "2ms"))
    assert found == Draws("hybrid", 8, None, 2e-3, (1e-3, 2e-3))
    assert draws_of("packet", 10_000, 0.999, "1ms", None).seeds == 10_000
    for seeds in (0, 10_001, 1.5):
        with pytest.raises(InputError, match="seeds"):
            draws_of("packet", seeds, None, "1ms", None)  # type: ignore[arg-type]
    for precision in (0.0, 1.0, -0.1, 1.5):
        with pytest.raises(InputError, match="precision"):
            draws_of("packet", 4, precision, "1ms", None)
    with pytest.raises(InputError, match="engine: 'fluid' is unknown"):
        draws_of("fluid", 4, None, "1ms", None)


def made(kmin: float, n: float) -> fc.Scenario:
    if n > 3:
        raise InputError("n: too many")
    return fc.incast(2 if n < 3 else 3, marking=fc.RED(kmin, "200KB", "1%"))


def test_points_of_the_same_fault_have_the_same_number() -> None:
    grid = Grid({"kmin": np.array([5e3, 3e5]), "n": np.array([1.0, 4.0, 5.0])})
    found = points_of(made, grid, DRAWS)
    assert found.reasons.tolist() == [0, 1, 1, 2, 1, 1]
    assert found.words[:2] == ["ok", "n: too many"]
    assert "kmin: 300KB exceeds kmax" in found.words[2]
    assert [scenario is None for scenario in found.scenarios] == [False] + [True] * 5
    assert found.example is found.scenarios[0]
    late = Points([None, found.example, None], np.array([1, 0, 1]), ["ok", "no"])
    assert late.example is found.example


@pytest.mark.parametrize(
    ("over", "says"),
    [
        ({"kmin": [5e3], "n": [4.0, 5.0]}, "no point makes sense; n: too many"),
        ({"kmin": [5e3], "n": [2.0, 3.0]}, "points differ in their number of flows"),
        ({"kmin": [5e3]}, "cannot be called with kmin"),
    ],
)
def test_grids_that_cannot_be_run_are_refused(over: dict[str, list[float]], says: str) -> None:
    with pytest.raises(InputError, match=says):
        points_of(made, Grid({name: np.array(values) for name, values in over.items()}), DRAWS)


def test_a_swept_feedback_delay_is_refused_but_one_for_all_is_not() -> None:
    grid = Grid({"k": np.array([1.0, 2.0])})
    with pytest.raises(InputError, match="a fixed feedback_delay is swept, which the packet engine does not read"):
        points_of(lambda k: fc.incast(2, feedback_delay=k * 1e-5), grid, DRAWS)
    assert points_of(lambda k: fc.incast(2, feedback_delay=1e-5), grid, DRAWS).reasons.tolist() == [0, 0]


# -- the dataset -------------------------------------------------------------------------------------------------


def test_a_dataset_has_every_points_numbers_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two by two points, of which one has a fault; chunks of two."""
    grid = Grid({"kmin": np.array([5e3, 3e5]), "n": np.array([1.0, 2.0])})

    def run_points(scenarios: Any, draws: Draws, report: Any) -> dict[str, np.ndarray]:
        at = np.array([np.nan if each is None else each.links[0].marking.kmin for each in scenarios])
        found = {f"{name}{end}": at for name in METRICS for end in ("", "_se")}
        found |= {f"{name}_by_seed": np.stack([at, at + 1], axis=1) for name in METRICS}
        ran = np.where(np.isnan(at), 0.0, 2.0)
        return found | {"seeds": ran, "by_packets": 0 * ran, "rate_bytes_per_s": np.stack([at, 2 * at], axis=1)}

    monkeypatch.setattr(replications, "run_points", run_points)
    monkeypatch.setattr(replications, "_warm_up", lambda scenario, draws: None)
    monkeypatch.setitem(replications._CHUNK, "packet", 2)
    draws = dataclasses.replace(DRAWS, seeds=2)
    options: dict[str, Any] = {"store": None, "resume": False, "dask": None, "workers": 1}
    found = replications.sweep_drawn(made, grid, draws, **options)
    np.testing.assert_array_equal(found["jain"], [[5e3, 5e3], [np.nan, np.nan]])
    np.testing.assert_array_equal(found["jain_by_seed"], [[[5e3, 5001.0]] * 2, [[np.nan] * 2] * 2])
    np.testing.assert_array_equal(found["rate_bytes_per_s"], [[[5e3, 1e4]] * 2, [[np.nan] * 2] * 2])
    assert found["seeds"].values.tolist() == [[2, 2], [0, 0]]
    assert found["seeds"].dtype == np.int32
    assert found["reason"].values.tolist() == [[0, 0], [1, 1]]
    assert found["seed"].values.tolist() == [1, 2]
    assert found.attrs["engine"] == "packet"
    assert found.attrs["points_per_s"] == pytest.approx(4 / found.attrs["wall_s"])
    assert "exceeds kmax" in found["reason"].attrs["flag_meanings"]
