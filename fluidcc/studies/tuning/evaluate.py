"""Running points: over cases, with the same seeds at every one, on all cores."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.compiling.threads import cores
from fluidcc.engines.common.bounds import horizon_and_window
from fluidcc.engines.common.outcome import Outcome, metrics_of
from fluidcc.engines.run_many import Place, run_many
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.comparison import SMOOTHING, settling
from fluidcc.results.metrics import most_loaded
from fluidcc.results.schema import METRICS, link_names, metrics_of_summary
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.studies.sweeps.replications import Draws, draws_of, runner_of
from fluidcc.studies.tuning.cases import UNTIL
from fluidcc.studies.tuning.goal import SETTLING, TUNED, Metrics
from fluidcc.studies.tuning.space import Point

_LEAST_BATCH = 32  # points of the fluid that run together
SAMPLES = 400  # instants from which a settling time is read

Key = tuple[float, ...]  # values of a point
Row = tuple[dict[str, float], dict[str, float]]  # metrics of one case, and their standard errors


@dataclasses.dataclass(frozen=True)
class Measured:
    """Metrics of one design point.

    Parameters
    ----------
    metrics : mapping of ndarray, shape (cases,)
        NaN where undefined, and everywhere if the point makes no sense.
    errors : mapping of ndarray, shape (cases,)
        Standard errors over the seeds; NaN where the engine draws none.
    reason : str
        Fault of the point; "" if there is none.
    """

    metrics: Metrics
    errors: Metrics
    reason: str = ""


class Evaluator:
    """Runs points that it has not run before.

    Parameters
    ----------
    make_scenario : callable
        ``make_scenario(**point, **case) -> Scenario``.
    cases : sequence of dict
        What a point must do well in; ``until`` in one is how long it runs, in place of the others' horizon.
    draws : Draws
        Engine, horizon and window.
    seeds : sequence of int
        The same at every point; none for the fluid.
    metrics : set of str
        That are needed beside `METRICS`.
    threads : int or None
    dask : str or distributed.Client, optional
        Scheduler in place of these.

    Attributes
    ----------
    runs : int
        Points that were run.
    """

    def __init__(
        self,
        make_scenario: Callable[..., Scenario],
        cases: Sequence[dict[str, Any]],
        draws: Draws,
        seeds: Sequence[int],
        metrics: set[str],
        threads: int | None = None,
        dask: Any = None,
    ) -> None:
        self.make_scenario, self.cases, self.draws, self.seeds = make_scenario, list(cases), draws, list(seeds)
        self.untils = [case.get(UNTIL, draws.until) for case in self.cases]
        self.settles = SETTLING in metrics
        self.threads, self.dask = threads or cores(), dask
        self.runs = 0
        self._known: dict[Key, Measured] = {}

    def __call__(
        self,
        points: Sequence[Point],
        report: Callable[[int], None] | None = None,
        *,
        label: str = "running settings",
        hopeless: Callable[[Point, Measured], bool] | None = None,
    ) -> list[Measured]:
        """Run points, and return what they do in their order.

        ``report`` hears how many runs have ended so far; without it a bar shows them.

        A point that is ``hopeless`` by its first cases is not run in the others, and these are what it is known by.
        """
        keys = [tuple(point.values()) for point in points]
        new = {key: point for key, point in zip(keys, points, strict=True) if key not in self._known}
        if report is None and new:
            before = self.runs
            with Bar(label, len(new), "points") as bar:
                return self(points, lambda runs: bar((runs - before) / len(new)), hopeless=hopeless)
        if self.draws.engine == "fluid" and not self.settles:
            self._in_batches(new)
        else:
            self._one_by_one(new, report, hopeless or (lambda point, found: False))
        if self.draws.engine == "fluid" and report is not None:
            report(self.runs)
        return [self._known[key] for key in keys]

    def known(self) -> list[tuple[Key, Measured]]:
        """Return all points that were run: their values and their results."""
        return list(self._known.items())

    def scenarios(self, point: Point) -> list[Scenario]:
        """Build the scenario of a point in every case.

        Raises
        ------
        InputError
            If the point makes no sense in a case.
        """
        return [resolve(self.make_scenario(**point, **without_until(case))) for case in self.cases]

    # -- engines ---------------------------------------------------------------------------------------------

    def _one_by_one(
        self,
        new: dict[Key, Point],
        report: Callable[[int], None] | None,
        hopeless: Callable[[Point, Measured], bool],
    ) -> None:
        jobs: list[tuple[Key, list[Scenario]]] = []
        for key, point in new.items():
            try:
                jobs.append((key, self.scenarios(point)))
            except InputError as error:
                self._known[key] = self._failed(str(error))
        if not jobs:
            return
        if self.runs == 0 and self.draws.engine != "fluid" and self.dask is None:
            # Compiled before threads ask for it, each for itself.
            once = dataclasses.replace(self.draws, until=1e-6, window=None)
            for scenario in jobs[0][1]:
                runner_of(scenario, once)(1)

        def work(job: tuple[Key, list[Scenario]], place: Place) -> Measured:
            return self._measured(*job, place, lambda found: hopeless(new[job[0]], found))

        for (key, _), found in run_many(work, jobs, threads=self.threads, dask=self.dask):
            self._known[key] = found
            self.runs += 1
            if report is not None:
                report(self.runs)

    def _measured(
        self, key: Key, scenarios: Sequence[Scenario], place: Place, hopeless: Callable[[Measured], bool]
    ) -> Measured:
        rows: list[Row] = []
        found = Measured({}, {})
        try:
            for k, scenario in enumerate(scenarios):
                rows.append(self._row(key, k, scenario, place))
                metrics, errors = (
                    {name: np.array([row[k][name] for row in rows]) for name in rows[0][k]} for k in (0, 1)
                )
                found = Measured(metrics, errors)
                if hopeless(found):
                    break
        except InputError as error:
            return self._failed(str(error))
        return found

    def _row(self, key: Key, case: int, scenario: Scenario, place: Place) -> Row:
        """Run a point in one of the cases."""
        draws = dataclasses.replace(self.draws, until=self.untils[case])
        return place.compute(_case, scenario, draws, self.seeds, settles=self.settles)

    def _in_batches(self, new: dict[Key, Point]) -> None:
        """The fluid's points at once, case by case."""
        import jax.numpy as jnp

        from fluidcc.studies.sweeps.run import sweep

        if not new:
            return
        # Few sizes, each of which is compiled for itself: the last point is repeated.
        points = list(new.values())
        points += points[-1:] * (max(_LEAST_BATCH, 1 << (len(points) - 1).bit_length()) - len(points))
        columns = {name: np.array([point[name] for point in points]) for name in points[0]}
        results = []
        for case in self.cases:

            def make(point: Any, case: dict[str, Any] = case) -> Scenario:
                at = jnp.asarray(point).astype(int)
                return self.make_scenario(**{name: jnp.asarray(column)[at] for name, column in columns.items()}, **case)

            results.append(
                sweep(
                    make,
                    {"point": np.arange(float(len(points)))},
                    until=self.draws.until,
                    window=self.draws.window,
                    estimate_error=False,
                    workers=self.threads,
                    dask=self.dask,
                )
            )
        for i, key in enumerate(new):
            reasons = [result.isel(point=slice(i, i + 1)).reasons for result in results]
            bad = next((next(iter(each)) for each in reasons if each), "")
            found = {name: np.array([float(result[name][i]) for result in results]) for name in METRICS}
            errors = {name: np.full(len(results), math.nan) for name in METRICS}
            self._known[key] = self._failed(bad) if bad else Measured(found, errors)
            self.runs += 1

    def _failed(self, reason: str) -> Measured:
        nothing = {name: np.full(len(self.cases), math.nan) for name in TUNED}
        return Measured(nothing, nothing, reason)


def _case(
    scenario: Scenario, draws: Draws, seeds: Sequence[int], *, settles: bool, report: Callable[[float], None]
) -> Row:
    """Metrics of one case, and their standard errors."""
    if draws.engine == "fluid":
        return _fluid_case(scenario, draws)
    if settles:
        outcomes, rates = _sampled(scenario, draws, seeds, report)
    else:
        run = runner_of(scenario, draws, report)
        outcomes, rates = [run(seed) for seed in seeds], None
    together, each, _ = metrics_of(outcomes)
    count = len(outcomes)
    spread = {k: float(v.std(ddof=1) / math.sqrt(count)) if count > 1 else math.nan for k, v in each.items()}
    if rates is not None:
        together[SETTLING], spread[SETTLING] = settled(scenario, rates, _busiest(outcomes)), math.nan
    return together, spread


def _fluid_case(scenario: Scenario, draws: Draws) -> Row:
    from fluidcc.engines.run import simulate

    until, window = draws.until, draws.window
    trace = simulate(scenario, until, window=window, sample_interval=until / SAMPLES, estimate_error=False)
    values = tuned_of(scenario, trace)
    return values, dict.fromkeys(values, math.nan)


def tuned_of(scenario: Scenario, trace: Trace) -> dict[str, float]:
    """`TUNED` of a run; NaN for what is undefined."""
    found = metrics_of_summary(trace.summary, trace["multiplicity"].values)
    return found | {SETTLING: settled(scenario, trace["rate"], busiest_link(trace))}


def busiest_link(trace: Trace) -> int:
    """Index of the link with the largest mean queue."""
    return int(most_loaded([row["queue_bytes"]["mean"] or 0.0 for row in trace.summary["links"]]))


def without_until(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a case makes its scenario."""
    return {name: value for name, value in case.items() if name != UNTIL}


def settled(scenario: Scenario, rates: xr.DataArray, link: int) -> float:
    """Settling time on a link, as `fluidcc.compare` has it [s]; NaN if rates never come together, 0 of one class."""
    if len(scenario.flows) < 2:
        return 0.0
    width = float(rates.time[-1] - rates.time[0]) * SMOOTHING
    found = settling(scenario, link_names(scenario)[link], rates, width)
    return math.nan if found is None else found


def _sampled(
    scenario: Scenario, draws: Draws, seeds: Sequence[int], look: Callable[[float], None]
) -> tuple[list[Outcome], xr.DataArray]:
    """Runs of the hybrid engine, and the mean rates over the seeds, (time, flow)."""
    from fluidcc.engines.hybrid import run as hybrid

    prepared = hybrid.prepare(
        scenario, hybrid.times_in_seconds(scenario, draws.until, draws.window, draws.until / SAMPLES)
    )
    outcomes, rates = [], []
    for seed in seeds:
        sim, _ = hybrid.execute(prepared, seed, report=look)
        outcomes.append(hybrid.outcome_of(prepared, sim))
        rates.append(hybrid.sampled_rates(prepared, sim))
    times = np.arange(len(rates[0])) * prepared.times.interval
    return outcomes, xr.DataArray(np.mean(rates, axis=0), dims=("time", "flow"), coords={"time": times})


def _busiest(outcomes: Sequence[Outcome]) -> int:
    """Link with the largest mean queue over all runs."""
    return int(most_loaded([sum(run.links[at].area for run in outcomes) for at in range(len(outcomes[0].links))]))


def engine_draws(engine: str, until: Any, window: Any) -> Draws:
    """Return the settings of the runs of points; `Draws` of the fluid have no seeds.

    Raises
    ------
    InputError
        If a setting makes no sense.
    """
    horizon_and_window(until, window)
    if engine == "fluid":
        return dataclasses.replace(draws_of("hybrid", 1, None, until, window), engine="fluid")
    if engine != "hybrid":
        raise InputError(f"engine: {str(engine)[:20]!r} is not tuned on; write hybrid or fluid, packets prove")
    return draws_of(engine, 1, None, until, window)
