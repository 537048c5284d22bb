"""Running points, with stand-ins for the engines: what is run, what is known already, and the numbers of a case."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.results.schema import METRICS, link_names
from fluidcc.studies.sweeps import run as sweeps
from fluidcc.studies.sweeps.replications import Draws
from fluidcc.studies.tuning import evaluate
from fluidcc.studies.tuning.evaluate import Evaluator, Measured, engine_draws, settled, without_until
from fluidcc.studies.tuning.goal import SETTLING, TUNED
from fluidcc.studies.tuning.space import Point

HYBRID = Draws("hybrid", 1, None, 1e-3, None)
FLUID = Draws("fluid", 1, None, 1e-3, (0.0, 5e-4))


class Ran:
    """Stand-in for the engines: an evaluator whose cases have k times the case's number as their utilisation."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, draws: Draws = HYBRID, **options: Any) -> None:
        self.cases: list[tuple[float, float]] = []  # a point's k and a case's number, in the order of the runs
        self.untils: list[float] = []
        self.warm: list[tuple[float, float]] = []

        def one(scenario: tuple[float, float], draws: Draws, seeds: Any, *, settles: bool, report: Any) -> Any:
            if scenario[0] < 0:
                raise InputError("k: below 0 in a run")
            self.cases.append(scenario)
            self.untils.append(draws.until)
            return {"utilisation": scenario[0] * scenario[1]}, {"utilisation": 0.1 * scenario[1]}

        def run_many(work: Any, jobs: Any, **_: Any) -> Any:
            place = SimpleNamespace(compute=lambda function, *given, **options: one(*given, report=None, **options))
            for job in jobs:
                yield job, work(job, place)

        def make(k: float, case: float) -> tuple[float, float]:
            if k > 100:
                raise InputError("k: too large")
            return k, case

        def runner_of(scenario: Any, draws: Draws) -> Any:
            assert (draws.until, draws.window) == (1e-6, None)
            return lambda seed: self.warm.append(scenario)

        monkeypatch.setattr(evaluate, "resolve", lambda scenario: scenario)
        monkeypatch.setattr(evaluate, "run_many", run_many)
        monkeypatch.setattr(evaluate, "runner_of", runner_of)
        cases = [{"case": 1.0}, {"case": 2.0, "until": 5e-3}]
        self.evaluator = Evaluator(make, cases, draws, [1, 2], {"utilisation"}, 1, **options)  # type: ignore[arg-type]


def points(*values: float) -> list[Point]:
    return [{"k": value} for value in values]


def test_a_point_runs_in_every_case_for_as_long_as_that_says(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Ran(monkeypatch)
    found = ran.evaluator(points(3.0, 5.0))
    assert ran.cases == [(3.0, 1.0), (3.0, 2.0), (5.0, 1.0), (5.0, 2.0)]
    assert ran.untils == [1e-3, 5e-3] * 2
    assert [each.metrics["utilisation"].tolist() for each in found] == [[3.0, 6.0], [5.0, 10.0]]
    assert found[0].errors["utilisation"].tolist() == [0.1, 0.2]
    assert ran.evaluator.runs == 2
    assert ran.evaluator.untils == [1e-3, 5e-3]
    assert ran.warm == [(3.0, 1.0), (3.0, 2.0)]  # the first point, once


def test_what_is_known_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Ran(monkeypatch)
    ran.evaluator(points(3.0))
    ran.cases.clear()
    ran.warm.clear()
    heard: list[int] = []
    found = ran.evaluator(points(5.0, 3.0, 5.0, 7.0), heard.append)
    assert [each.metrics["utilisation"][0] for each in found] == [5.0, 3.0, 5.0, 7.0]
    assert ran.cases == [(5.0, 1.0), (5.0, 2.0), (7.0, 1.0), (7.0, 2.0)]
    assert heard == [2, 3]
    assert ran.evaluator.runs == 3
    assert ran.warm == []
    assert [values for values, _ in ran.evaluator.known()] == [(3.0,), (5.0,), (7.0,)]
    ran.evaluator(points(3.0))
    assert ran.evaluator.runs == 3


def test_a_point_that_makes_no_sense_is_known_by_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot be built is no run; one that fails in a run is."""
    ran = Ran(monkeypatch)
    built, failed, sound = ran.evaluator(points(101.0, -1.0, 2.0))
    assert (built.reason, failed.reason, sound.reason) == ("k: too large", "k: below 0 in a run", "")
    for each in (built, failed):
        assert set(each.metrics) == set(TUNED)
        assert all(len(values) == 2 and np.isnan(values).all() for values in each.metrics.values())
    assert ran.evaluator.runs == 2
    ran.cases.clear()
    assert ran.evaluator(points(101.0))[0] is built
    assert ran.cases == []


def test_a_hopeless_point_is_known_by_its_first_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Ran(monkeypatch)
    seen: list[tuple[float, list[float]]] = []

    def hopeless(point: Point, found: Measured) -> bool:
        seen.append((point["k"], found.metrics["utilisation"].tolist()))
        return point["k"] < 4

    few, all_ = ran.evaluator(points(3.0, 5.0), hopeless=hopeless)
    assert few.metrics["utilisation"].tolist() == [3.0]
    assert all_.metrics["utilisation"].tolist() == [5.0, 10.0]
    assert seen == [(3.0, [3.0]), (5.0, [5.0]), (5.0, [5.0, 10.0])]


@pytest.mark.parametrize(("draws", "options"), [(HYBRID, {"dask": "scheduler"}), (FLUID, {})])
def test_workers_and_the_fluid_are_not_warmed_up(
    monkeypatch: pytest.MonkeyPatch, draws: Draws, options: dict[str, Any]
) -> None:
    ran = Ran(monkeypatch, draws, **options)
    ran.evaluator.settles = True  # so that the fluid runs one by one too
    ran.evaluator(points(3.0))
    assert ran.warm == []
    assert ran.cases == [(3.0, 1.0), (3.0, 2.0)]


# -- batches of the fluid ----------------------------------------------------------------------------------------


class Batches:
    """Stand-in for a sweep: jain is k times the case, and a k above 100 has a reason."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.options: list[dict[str, Any]] = []

        def sweep(make: Any, over: Any, **options: Any) -> Any:
            self.sizes.append(len(over["point"]))
            self.options.append(options)
            made = np.array([make(at) for at in over["point"]])
            columns = {name: ("point", made[:, 0] * made[:, 1]) for name in METRICS}
            data = xr.Dataset({**columns, "reason": ("point", (made[:, 0] > 100).astype(int))})
            return Result(data)

        monkeypatch.setattr(sweeps, "sweep", sweep)
        monkeypatch.setattr("jax.numpy.asarray", np.asarray)  # nothing is traced here
        cases = [{"case": 1.0}, {"case": 2.0}]
        make: Any = lambda k, case: (float(k), case)  # noqa: E731
        self.evaluator = Evaluator(make, cases, FLUID, [], {"jain"}, 3)


class Result:
    """Parts of a sweep's result that are looked at."""

    def __init__(self, data: xr.Dataset) -> None:
        self.data = data

    def __getitem__(self, name: str) -> xr.DataArray:
        return self.data[name]

    def isel(self, **at: Any) -> Result:
        return Result(self.data.isel(**at))

    @property
    def reasons(self) -> dict[str, int]:
        bad = int((self.data["reason"] != 0).sum())
        return {"too large": bad} if bad else {}


def test_the_fluids_points_run_at_once_case_by_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of few sizes, of which the last point fills what is left."""
    ran = Batches(monkeypatch)
    heard: list[int] = []
    found = ran.evaluator(points(3.0, 101.0, 5.0), heard.append)
    assert ran.sizes == [32, 32]
    assert ran.options[0] == {
        "until": 1e-3, "window": (0.0, 5e-4), "estimate_error": False, "workers": 3, "dask": None,
    }  # fmt: skip
    assert found[0].metrics["jain"].tolist() == [3.0, 6.0]
    assert found[2].metrics["jain"].tolist() == [5.0, 10.0]
    assert np.isnan(found[0].errors["jain"]).tolist() == [True, True]
    assert (found[0].reason, found[1].reason) == ("", "too large")
    assert np.isnan(found[1].metrics["jain"]).tolist() == [True, True]
    assert ran.evaluator.runs == 3
    assert heard == [3]
    ran.sizes.clear()
    assert ran.evaluator(points(5.0, 3.0))[0].metrics["jain"].tolist() == [5.0, 10.0]
    assert ran.sizes == []


@pytest.mark.parametrize(("count", "size"), [(1, 32), (32, 32), (33, 64), (64, 64), (65, 128)])
def test_batches_have_few_sizes(monkeypatch: pytest.MonkeyPatch, count: int, size: int) -> None:
    ran = Batches(monkeypatch)
    found = ran.evaluator(points(*range(1, count + 1)))
    assert ran.sizes == [size, size]
    assert [each.metrics["jain"][0] for each in found] == list(range(1, count + 1))


# -- a case ------------------------------------------------------------------------------------------------------


def outcomes(monkeypatch: pytest.MonkeyPatch, *queues: float) -> None:
    """Runs by seed, with so long a mean queue each."""
    by_seed = dict(enumerate(queues, 1))
    monkeypatch.setattr(evaluate, "runner_of", lambda scenario, draws, report: lambda seed: by_seed[seed])
    monkeypatch.setattr(
        evaluate,
        "metrics_of",
        lambda runs: ({"queue_bytes.mean": float(np.mean(runs))}, {"queue_bytes.mean": np.array(runs)}, None),
    )


def test_a_cases_error_is_that_of_the_mean_over_its_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """1, 2 and 3 have deviation 1; two seeds have an error, and one has none."""
    scenario: Any = None
    for queues, error in (((1.0, 2.0, 3.0), 1 / math.sqrt(3)), ((1.0, 3.0), 1.0), ((1.0,), math.nan)):
        outcomes(monkeypatch, *queues)
        seeds = range(1, len(queues) + 1)
        metrics, errors = evaluate._case(scenario, HYBRID, seeds, settles=False, report=lambda share: None)
        assert metrics == {"queue_bytes.mean": float(np.mean(queues))}
        assert errors["queue_bytes.mean"] == pytest.approx(error, nan_ok=True)


def test_a_settling_time_comes_from_the_mean_rates_on_the_busiest_link(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [SimpleNamespace(links=[SimpleNamespace(area=area) for area in areas]) for areas in ((5.0, 4.0), (1.0, 4.0))]
    monkeypatch.setattr(evaluate, "_sampled", lambda *_: (runs, "rates"))
    monkeypatch.setattr(evaluate, "metrics_of", lambda runs: ({"jain": 0.5}, {"jain": np.array([0.4, 0.6])}, None))
    monkeypatch.setattr(evaluate, "settled", lambda scenario, rates, link: (rates, link))
    scenario: Any = None
    metrics, errors = evaluate._case(scenario, HYBRID, [1, 2], settles=True, report=lambda share: None)
    assert metrics[SETTLING] == ("rates", 1)  # 8 of both runs, against 6
    assert math.isnan(errors[SETTLING])
    assert errors["jain"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("flows", "found", "time"), [(1, 0.25, 0.0), (2, 0.25, 0.25), (3, 0.25, 0.25), (2, None, math.nan)]
)
def test_two_flows_have_a_settling_time_and_one_has_none(
    monkeypatch: pytest.MonkeyPatch, flows: int, found: float | None, time: float
) -> None:
    """Smoothed over a fiftieth of the run, on the link by its name."""
    asked: list[Any] = []
    monkeypatch.setattr(evaluate, "settling", lambda scenario, link, rates, width: asked.append((link, width)) or found)
    scenario = fc.incast(flows)
    rates = xr.DataArray(np.ones((5, flows)), dims=("time", "flow"), coords={"time": [1.0, 2.0, 3.0, 5.0, 6.0]})
    assert settled(scenario, rates, 0) == pytest.approx(time, nan_ok=True)
    if flows > 1:
        ((link, width),) = asked
        assert link == link_names(scenario)[0]
        assert width == pytest.approx(5.0 * evaluate.SMOOTHING)


def test_the_fluids_case_counts_classes_and_has_no_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    from fluidcc.engines import run as engines

    class Trace(dict[str, Any]):
        summary = {  # noqa: RUF012
            "queue_bytes": {"mean": 5.0, "p99": None},
            "jain": 0.5,
            "utilisation": 0.9,
            "rate_gap_bytes_per_s": None,
            "goodput_bytes_per_s": [2.0, 10.0],
            "links": [{"queue_bytes": {"mean": mean}} for mean in (1.0, None, 7.0)],
        }

    asked: list[Any] = []

    def simulate(scenario: Any, until: float, **options: Any) -> Any:
        asked.append((until, options))
        return Trace(rate="rates", multiplicity=xr.DataArray([3.0, 1.0]))

    monkeypatch.setattr(engines, "simulate", simulate)
    monkeypatch.setattr(evaluate, "settled", lambda scenario, rates, link: 100.0 + link)
    scenario: Any = None
    metrics, errors = evaluate._case(scenario, FLUID, [], settles=True, report=lambda share: None)
    assert asked == [(1e-3, {"window": (0.0, 5e-4), "sample_interval": 2.5e-6, "estimate_error": False})]
    assert metrics["goodput_bytes_per_s"] == 16.0
    assert metrics[SETTLING] == 102.0
    assert (metrics["queue_bytes.mean"], metrics["jain"], metrics["utilisation"]) == (5.0, 0.5, 0.9)
    assert math.isnan(metrics["queue_bytes.p99"])
    assert set(errors) == set(metrics)
    assert all(math.isnan(each) for each in errors.values())


def test_rates_of_seeds_are_averaged_on_the_samples_times(monkeypatch: pytest.MonkeyPatch) -> None:
    from fluidcc.engines.hybrid import run as hybrid

    rates = {1: np.array([[1.0, 3.0], [5.0, 7.0]]), 2: np.array([[3.0, 5.0], [9.0, 7.0]])}
    prepared = SimpleNamespace(times=SimpleNamespace(interval=0.5))
    asked: list[Any] = []
    monkeypatch.setattr(hybrid, "times_in_seconds", lambda *given: asked.append(given[1:]))
    monkeypatch.setattr(hybrid, "prepare", lambda scenario, times: prepared)
    monkeypatch.setattr(hybrid, "execute", lambda prepared, seed, report: (seed, None))
    monkeypatch.setattr(hybrid, "outcome_of", lambda prepared, sim: f"run {sim}")
    monkeypatch.setattr(hybrid, "sampled_rates", lambda prepared, sim: rates[sim])
    scenario: Any = None
    found, mean = evaluate._sampled(scenario, HYBRID, [1, 2], lambda share: None)
    assert found == ["run 1", "run 2"]
    assert asked == [(1e-3, None, 2.5e-6)]
    assert mean.values.tolist() == [[2.0, 4.0], [7.0, 7.0]]
    assert (mean.dims, mean.time.values.tolist()) == (("time", "flow"), [0.0, 0.5])


# -- settings ----------------------------------------------------------------------------------------------------


def test_how_long_a_case_runs_is_no_part_of_its_scenario() -> None:
    case = {"burst": 4, "until": 5e-3}
    assert without_until(case) == {"burst": 4}
    assert case == {"burst": 4, "until": 5e-3}


def test_points_run_on_the_hybrid_or_the_fluid() -> None:
    for engine in ("hybrid", "fluid"):
        found = engine_draws(engine, "2ms", ("1ms", "2ms"))
        assert (found.engine, found.seeds, found.precision, found.until) == (engine, 1, None, 2e-3)
        assert found.window == (1e-3, 2e-3)
    for wrong in ("packet", "lattice"):
        with pytest.raises(InputError, match=f"engine: '{wrong}' is not tuned on"):
            engine_draws(wrong, "2ms", None)
    with pytest.raises(InputError, match="window"):
        engine_draws("fluid", "2ms", ("1ms", "3ms"))
