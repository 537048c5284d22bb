"""Sweeps of the engines that draw random numbers: every point with the same seeds, on all cores.

A point runs by itself, so its numbers depend neither on the grid around it nor on chunks and threads. The same seeds at
every point are common random numbers: settings differ by less chance than each of them has.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.builders.toml_file import to_toml
from fluidcc.compiling.folder import processor
from fluidcc.compiling.identity import digest_of
from fluidcc.compiling.threads import cores
from fluidcc.engines.common import jit
from fluidcc.engines.common.outcome import Outcome, metrics_of
from fluidcc.engines.hybrid.build import check as check_hybrid
from fluidcc.engines.run_many import Place, run_many
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.grid import Grid
from fluidcc.results.schema import METRICS
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.studies.sweeps.grid import blocks_of, check_takes
from fluidcc.studies.sweeps.store import (
    COUNTS,
    FLOW,
    SEED,
    Store,
    attributes_of,
    coordinates_of,
    unfinished,
    variables_of,
    with_reasons,
)
from fluidcc.units import TIME, Rate, interval, quantity, whole
from fluidcc.version import VERSION

_LEAST = 4  # seeds before their spread is believed
_CHUNK = {"hybrid": 16, "packet": 1}  # points; a minute at most, on a slow machine
_DIGITS = 16
_MOST_SEEDS = 10_000


@dataclasses.dataclass(frozen=True)
class Draws:
    """Settings of the runs of each point.

    Parameters
    ----------
    engine : {"hybrid", "packet"}
    seeds : int
        Runs of a point, with seeds 1, 2, ...
    precision : float or None
        Standard error of the mean queue, relative to it, at which a point needs no more seeds.
    until, window
        As of `fluidcc.simulate`.
    """

    engine: str
    seeds: int
    precision: float | None
    until: Any
    window: Any


def draws_of(engine: str, seeds: int | None, precision: float | None, until: Any, window: Any) -> Draws:
    """Return the settings of the runs of each point, checked.

    Raises
    ------
    InputError
        If a setting makes no sense.
    """
    if engine not in _CHUNK:
        raise InputError(f"engine: {str(engine)[:20]!r} is unknown; write fluid, hybrid or packet")
    seeds = 8 if seeds is None else whole(seeds, 1, _MOST_SEEDS, "seeds")
    if precision is not None and not 0 < precision < 1:
        raise InputError(f"precision: {precision!r} is no share of the mean queue; write for example 0.02")
    return Draws(engine, seeds, precision, quantity(until, TIME, "until"), interval(window, "window"))


@dataclasses.dataclass(frozen=True)
class Points:
    """The scenario of every point, or the number of what is wrong with it."""

    scenarios: list[Scenario | None]
    reasons: np.ndarray
    words: list[str]  # what the numbers mean

    @property
    def example(self) -> Scenario:
        """The scenario of the first valid point."""
        return next(scenario for scenario in self.scenarios if scenario is not None)


def points_of(make_scenario: Callable[..., Scenario], grid: Grid, draws: Draws) -> Points:
    """Call ``make_scenario`` for every point of a grid.

    Raises
    ------
    InputError
        If no point makes sense, a fixed control-loop delay is swept, which these engines do not read, or points differ
        in the number of their flows.
    """
    check_takes(make_scenario, grid.axes)
    scenarios: list[Scenario | None] = []
    words, reasons = ["ok"], []
    for values in zip(*grid.columns().values(), strict=True):
        try:
            given = {name: Rate(value) for name, value in zip(grid.axes, values, strict=True)}
            scenario = resolve(make_scenario(**given))
            if draws.engine == "hybrid":
                check_hybrid(scenario, draws.until)
            scenarios.append(scenario)
            reasons.append(0)
        except InputError as error:
            scenarios.append(None)
            if str(error) not in words:
                words.append(str(error))
            reasons.append(words.index(str(error)))
    valid = [scenario for scenario in scenarios if scenario is not None]
    if not valid:
        raise InputError(f"over: no point makes sense; {words[1]}")
    if len({len(scenario.flows) for scenario in valid}) > 1:
        raise InputError("over: points differ in their number of flows; sweep the multiplicity of a class")
    if len({tuple(flow.scheme.feedback_delay for flow in scenario.flows) for scenario in valid}) > 1:
        raise InputError(
            f"over: a fixed feedback_delay is swept, which the {draws.engine} engine does not read; "
            "sweep the path's delays, or write engine='fluid'"
        )
    return Points(scenarios, np.array(reasons, np.int32), words)


def sweep_drawn(
    make_scenario: Callable[..., Scenario],
    grid: Grid,
    draws: Draws,
    *,
    store: str | Path | None,
    resume: bool,
    dask: Any,
    workers: int | None,
) -> xr.Dataset:
    """The dataset of a sweep; see `fluidcc.sweep` for the parameters."""
    began = time.perf_counter()
    points = points_of(make_scenario, grid, draws)
    _warm_up(points.example, draws)
    compile_s = time.perf_counter() - began
    threads = workers or cores()
    blocks, keep = blocks_of(grid.shape, _CHUNK[draws.engine]), None
    variables = with_reasons(variables_of(grid, draws.seeds), points.words)
    if store is not None:
        signature = _signature(points, draws, grid)
        keep = Store(store, grid, points.example, blocks, signature, resume, variables, draws.seeds)
        blocks = keep.blocks
    started = time.perf_counter()
    results = _collect(points, draws, blocks.parts(), keep, dask, threads)
    wall_s = time.perf_counter() - started
    made: dict[str, Any] = {}
    sizes = {FLOW: len(points.example.flows), SEED: draws.seeds}
    for name, (dims, attrs, missing) in variables.items():
        shape = tuple(sizes[dim] if dim in sizes else len(grid.axes[dim]) for dim in dims)
        values = np.where(np.isnan(results[name]), missing, results[name])
        made[name] = (dims, values.astype(np.asarray(missing).dtype).reshape(shape), attrs)
    attrs = {
        **attributes_of(points.example),
        "engine": draws.engine,
        "compile_s": compile_s,
        "wall_s": wall_s,
        "points_per_s": grid.points / wall_s if wall_s > 0 else 0.0,
        **{f"discretisation_error.{name}": np.nan for name in ("queue_rel", "rate_rel", "as_expected")},
    }
    return xr.Dataset(made, coordinates_of(grid, points.example, draws.seeds), attrs)


def _warm_up(scenario: Scenario, draws: Draws) -> None:
    """Compile the loop before threads ask for it, each for itself."""
    outcomes(scenario, dataclasses.replace(draws, until=1e-6, window=None, seeds=1))


def _collect(
    points: Points, draws: Draws, parts: Sequence[slice], keep: Store | None, dask: Any, threads: int
) -> dict[str, np.ndarray]:
    """Run what is not done yet; all results by name, (points, ...)."""
    results = keep.done() if keep is not None else {}
    pending = [part for part in parts if not results or unfinished(results, part)]
    count = len(points.scenarios)

    def run(part: slice, place: Place) -> dict[str, np.ndarray]:
        found = place.compute(run_points, points.scenarios[part], draws)
        found["reason"] = points.reasons[part]
        if keep is not None:
            keep.write(part, found)
        return found

    with (
        Bar(f"sweeping {count:,} points", count, "points") as bar,
        contextlib.closing(run_many(run, pending, threads=threads, dask=dask, report=bar)) as runs,
    ):
        for part, found in runs:
            for name, values in found.items():
                if name not in results:
                    results[name] = np.full((count, *values.shape[1:]), 0.0 if name in COUNTS else np.nan)
                results[name][part] = values
    return results


def run_points(
    scenarios: Sequence[Scenario | None], draws: Draws, report: Callable[[float], None] | None = None
) -> dict[str, np.ndarray]:
    """Metrics of some points by name, (points, ...): means, ``_se`` and ``_by_seed``; NaN where there is no scenario.

    ``report`` hears the share that is done; what it raises ends it.
    """

    def look(share: float) -> None:
        if report is not None:
            report((len(rows) + share) / len(scenarios))

    rows: list[dict[str, np.ndarray] | None] = []
    for scenario in scenarios:
        rows.append(None if scenario is None else _run_point(scenario, draws, look))
    some = next((row for row in rows if row is not None), None)
    if some is None:
        return _nothing(len(rows), draws.seeds)
    nothing = {name: np.full_like(values, 0.0 if name in COUNTS else np.nan) for name, values in some.items()}
    full = [nothing if row is None else row for row in rows]
    return {name: np.stack([row[name] for row in full]) for name in some}


def _nothing(points: int, seeds: int) -> dict[str, np.ndarray]:
    found = {name: np.full(points, np.nan) for metric in METRICS for name in (metric, f"{metric}_se")}
    found |= {f"{metric}_by_seed": np.full((points, seeds), np.nan) for metric in METRICS}
    return found | {name: np.zeros(points) for name in COUNTS}


def _run_point(scenario: Scenario, draws: Draws, report: Callable[[float], None]) -> dict[str, np.ndarray]:
    runs = outcomes(scenario, draws, report)
    together, each, rates = metrics_of(runs)
    count = len(runs)
    found: dict[str, np.ndarray] = {}
    for name, values in each.items():
        found[name] = np.asarray(together[name])
        found[f"{name}_se"] = np.asarray(values.std(ddof=1) / count**0.5 if count > 1 else np.nan)
        found[f"{name}_by_seed"] = np.concatenate([values, np.full(draws.seeds - count, np.nan)])
    counts = {"seeds": float(count), "by_packets": float(sum(run.by_packets for run in runs))}
    return found | {"rate_bytes_per_s": rates, **{name: np.asarray(value) for name, value in counts.items()}}


def outcomes(scenario: Scenario, draws: Draws, report: Callable[[float], None] | None = None) -> list[Outcome]:
    """Runs of a resolved scenario with seeds 1, 2, ..., until there are as many or the mean queue is precise enough.

    ``report`` hears the share of all seeds that is done; what it raises ends it.
    """

    def look(share: float) -> None:
        if report is not None:
            report((len(runs) + share) / draws.seeds)

    run = runner_of(resolve(scenario), draws, look)
    runs: list[Outcome] = []
    for seed in range(1, draws.seeds + 1):
        runs.append(run(seed))
        if draws.precision is not None and len(runs) >= _LEAST:
            queue = metrics_of(runs)[1]["queue_bytes.mean"]
            if queue.std(ddof=1) / len(queue) ** 0.5 <= draws.precision * queue.mean():
                break
    return runs


def runner_of(
    scenario: Scenario, draws: Draws, look: Callable[[float], None] | None = None
) -> Callable[[int], Outcome]:
    """Return a function from a seed to the run of a resolved scenario; ``look`` is called as it proceeds.

    Where the hybrid does not speak for packets (`fluidcc.engines.hybrid.region`) packets run in its place.
    """
    if draws.engine == "hybrid":
        return _hybrid_runner(scenario, draws, look)
    return _packet_runner(scenario, draws, look)


def _hybrid_runner(scenario: Scenario, draws: Draws, look: Callable[[float], None] | None) -> Callable[[int], Outcome]:
    from fluidcc.engines.hybrid import run as hybrid
    from fluidcc.engines.hybrid.region import BeyondBufferError, by_packets, outside

    prepared = hybrid.prepare(scenario, hybrid.unsampled(draws.until, draws.window))
    beyond = outside(scenario)

    def once(seed: int) -> Outcome:
        nonlocal beyond
        try:
            if not beyond:
                return hybrid.outcome_of(prepared, hybrid.execute(prepared, seed, report=look, within_buffer=True)[0])
        except BeyondBufferError:
            beyond = True
        try:
            return _packet_runner(by_packets(scenario), draws, look)(seed)
        except InputError:  # packets refuse it, such as a buffer below its ports' headroom
            return hybrid.outcome_of(prepared, hybrid.execute(prepared, seed, report=look)[0])

    return once


def _packet_runner(scenario: Scenario, draws: Draws, look: Callable[[float], None] | None) -> Callable[[int], Outcome]:
    from fluidcc.engines.packet import run as packet

    times = packet.times_of(scenario, draws.until, draws.window, draws.until)

    def once(seed: int) -> Outcome:
        plan = packet.prepare(scenario, times, 0)
        sim, _ = packet.execute(plan, seed, report=look)
        return packet.outcome_of(plan, sim)

    return once


def _signature(points: Points, draws: Draws, grid: Grid) -> dict[str, str]:
    """Return what the numbers depend on, in parts as `signature_of` does for the fluid's."""
    digest = hashlib.sha256(grid.signature().encode())
    for scenario in points.scenarios:
        digest.update((to_toml(scenario) if scenario is not None else "none").encode())
    sources = hashlib.sha256(b"".join(path.read_bytes() for path in jit.sources())).hexdigest()
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("numba", "numpy")]
    return {
        "settings of the points": digest.hexdigest()[:_DIGITS],
        "engine, seeds, precision, horizon and window": repr(draws),
        "metrics": digest_of(*METRICS)[:_DIGITS],
        "equations": sources[:_DIGITS],
        "versions": ", ".join([f"fluidcc {VERSION}", *versions]),
        "processor": digest_of(*processor())[:_DIGITS],
    }
