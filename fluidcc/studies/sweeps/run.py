"""Running a grid in chunks on all cores, on one machine or many."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.compiling.threads import cores
from fluidcc.engines.fluid.plan import Plan, history_bytes, plan_of
from fluidcc.engines.fluid.run import UNKNOWN, StepError
from fluidcc.engines.run_many import Place, run_many
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.grid import Grid
from fluidcc.results.memory_limit import limit, require
from fluidcc.scenario.model import Scenario
from fluidcc.studies.sweeps.batch import (
    ROOM,
    SAMPLES,
    Batch,
    batch_of,
    chunk_size,
    largest_error,
    plans_beside,
    run_chunk,
    sampled_error,
    take,
)
from fluidcc.studies.sweeps.grid import blocks_of, grid_of
from fluidcc.studies.sweeps.result import SweepResult
from fluidcc.studies.sweeps.store import (
    FLOW,
    Store,
    Variable,
    attributes_of,
    check_store,
    coordinates_of,
    signature_of,
    unfinished,
    variables_of,
)
from fluidcc.surface import public
from fluidcc.units import TIME, quantity

QUEUEING_ALLOWANCE = 1e-3  # s of queueing delay that a point's history holds


@public()
def sweep(
    make_scenario: Callable[..., Scenario],
    over: Mapping[str, Any],
    *,
    until: Any = "200ms",
    window: Any = None,
    dt: Any = None,
    rtol: Any = None,
    method: str = "heun",
    dtype: str = "float64",
    store: str | Path | None = None,
    resume: bool = False,
    dask: Any = None,
    workers: int | None = None,
    estimate_error: bool = True,
    memory: Any = None,
    engine: str = "fluid",
    seeds: int | None = None,
    precision: float | None = None,
) -> SweepResult:
    """Run a scenario at every combination of some values.

    Parameters
    ----------
    make_scenario : callable
        ``make_scenario(**values) -> Scenario``. It is called once, with a traced scalar for each name, so it
        may pass them on and compute with them, but not branch on them; the number of flows of a class is
        swept as ``multiplicity``.
    over : mapping
        For each name its values: numbers in SI or text with units.
    until, window, dt, rtol, method, dtype
        As in `simulate`.
    store : path
        Zarr folder that receives each chunk as it is done, at least every minute or so; `xarray.open_zarr` opens it.
    resume : bool
        Whether to go on with an existing store: with the same settings of all points, the same options and versions,
        and on a processor of the same kind.
    dask : str or distributed.Client
        Scheduler that runs the chunks; the cores of this machine by default.
    workers : int
        Threads on this machine; one per core by default.
    estimate_error : bool
        Whether to repeat 16 points with half the step and report the largest difference. With ``rtol`` every point is
        repeated to ten times of it, and the difference is the point's ``queue_error_rel`` and ``rate_error_rel``.
    memory : quantity
        What the results, and the histories of the points that run at a time, may take [bytes]; by default what the
        environment's ``FLUIDCC_MEMORY`` says, or half of the memory of the machine.
    engine : {"fluid", "hybrid", "packet"}
        The latter two draw random numbers: ``make_scenario`` is called for every point, with plain numbers, and every
        point runs with the same seeds; ``dt``, ``method``, ``dtype``, ``estimate_error`` and ``memory`` are the
        fluid's.
    seeds : int
        Runs of a point, with seeds 1, 2, ... (hybrid, packet); 8 by default.
    precision : float
        Standard error of the mean queue, as a share of it, at which a point needs no more seeds, of at least 4.

    Returns
    -------
    SweepResult
        ``dataset.attrs`` holds ``compile_s``, ``wall_s``, ``points_per_s`` and ``discretisation_error``.

    Raises
    ------
    InputError
        If the grid, the scenario or an option makes no sense, or the memory is not enough, or if values of an axis that
        ``make_scenario`` passes on as it is to a whole number (DCQCN's ``fast_recovery_steps``) have fractions. A point
        that makes none, also by a fraction that ``make_scenario`` works out, is NaN in the result, with its reason.

    Examples
    --------
    >>> import fluidcc as fc
    >>> result = fc.sweep(
    ...     lambda kmin, g: fc.incast(2, marking=fc.RED(kmin, "200KB", "1%"), scheme=fc.DCQCN(g=g)),
    ...     over={"kmin": ["5KB", "20KB"], "g": ["1/256", "1/16"]},
    ...     until="5ms",
    ... )
    >>> result["utilisation"].shape
    (2, 2)
    """
    began = time.perf_counter()
    until = quantity(until, TIME, "until")
    if resume and store is None:
        raise InputError("resume: there is no store to go on with; give the folder, for example store='sweep.zarr'")
    if store is not None:
        check_store(store, resume)
    if engine != "fluid":
        if dt is not None or rtol is not None or method != "heun" or dtype != "float64" or memory is not None:
            raise InputError(f"dt, rtol, method, dtype, memory: are the fluid's; leave them out with engine={engine!r}")
        from fluidcc.studies.sweeps.replications import draws_of, sweep_drawn

        draws = draws_of(engine, seeds, precision, until, window)
        given = {"store": store, "resume": resume, "dask": dask, "workers": workers}
        return SweepResult(sweep_drawn(make_scenario, grid_of(over), draws, **given))
    if seeds is not None or precision is not None:
        raise InputError("seeds, precision: the fluid draws no random numbers; write engine='hybrid' or 'packet'")
    most = limit(memory)
    grid = grid_of(over)
    _require_results(grid, 0, most)
    batch = batch_of(make_scenario, grid)
    _require_results(grid, len(batch.scenario.flows), most)
    built = time.perf_counter() - began
    valid = batch.reasons == 0
    results: dict[str, np.ndarray] = {}
    variables = variables_of(grid, errors=rtol is not None)
    error = UNKNOWN
    compile_s, integrated = built, 0.0
    if valid.any():
        plan = plan_of(
            batch.network,
            until=until,
            window=window,
            dt=dt,
            rtol=rtol,
            method=method,
            dtype=dtype,
            samples=SAMPLES,
            queueing_allowance=QUEUEING_ALLOWANCE,
            memory=most,
        )
        if rtol is not None:
            plan = dataclasses.replace(plan, estimates=estimate_error)
        finest = plans_beside(plan)[0] if estimate_error and rtol is None else plan
        needed = history_bytes(batch.network, finest)
        require(
            needed,
            most,
            "over: the longest lag, in steps of half the size, takes",
            "give shorter delays or a larger dt",
        )
        threads = max(1, min(workers or cores(), int(most // needed)))
        room = min(ROOM, most / threads)
        chunk = chunk_size(batch, plan, grid.points, threads, room)
        blocks, keep = blocks_of(grid.shape, chunk), None
        if store is not None:
            keep = Store(
                store, grid, batch.scenario, blocks, signature_of(batch, plan, grid), resume, variables=variables
            )
            blocks, parts = keep.blocks, keep.blocks.parts()
            chunk = blocks.points
        else:
            parts = [slice(first, min(first + chunk, grid.points)) for first in range(0, grid.points, chunk)]
        started = time.perf_counter()
        work = Work(batch, plan, grid, chunk, max(room, needed), keep)
        results, compiled = _collect(work, parts, dask, threads)
        integrated = time.perf_counter() - started - compiled
        compile_s += compiled
        if rtol is not None:
            error = largest_error(results)
        elif estimate_error:
            error = sampled_error(batch, plan, results, max(room, needed))
    return SweepResult(_dataset(batch, grid, variables, results, compile_s, integrated, error))


def _require_results(grid: Grid, flows: int, most: float) -> None:
    """Refuse a grid whose results do not fit in memory: once as they come in, once as the dataset."""
    each = len(grid.axes) + len(variables_of(grid)) + flows
    require(2 * 8 * each * grid.points, most, f"over: {grid.points:,} points take", "give fewer values")


@dataclasses.dataclass(frozen=True)
class Work:
    """Work on each part of a grid: run it, drop bad points, store it."""

    batch: Batch
    plan: Plan
    grid: Grid
    chunk: int
    room: float
    store: Store | None

    def arguments(self, part: slice) -> tuple[Any, ...]:
        """Return the arguments of `run_chunk`; a part is padded so that all have one shape."""
        indices = np.minimum(np.arange(part.start, part.start + self.chunk), part.stop - 1)
        payload = np.broadcast_to(self.batch.payload, (self.grid.points,))
        return take(self.batch.network, indices), self.plan, payload[indices], self.chunk, self.room

    def run(self, part: slice, place: Place) -> dict[str, np.ndarray]:
        """Run a part, and write its results to the store."""
        return self.kept(part, place.compute(run_chunk, *self.arguments(part)))

    def kept(self, part: slice, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Results of a part without its padding and its bad points, written to the store."""
        reasons = self.batch.reasons[part]
        bad = reasons != 0
        for name, values in found.items():
            if np.ndim(values):
                found[name] = values = np.array(values[: part.stop - part.start])
                values[bad] = reasons[bad] if name == "reason" else np.nan
        if self.store is not None:
            self.store.write(part, found)
        return found


def _collect(work: Work, parts: Sequence[slice], dask: Any, threads: int) -> tuple[dict[str, np.ndarray], float]:
    """Run what is not done yet; all results by name, and the seconds that compiling took."""
    points = work.grid.points
    results = work.store.done() if work.store is not None else {}
    pending = [part for part in parts if not results or unfinished(results, part)]
    compiled = 0.0
    with (
        Bar(f"sweeping {points:,} points", points, "points") as bar,
        contextlib.closing(run_many(work.run, pending, threads=threads, dask=dask, report=bar)) as runs,
    ):
        for part, found in runs:
            compiled += float(found.pop("compile_s"))
            found.pop("wall_s")
            for name, values in found.items():
                if name not in results:
                    results[name] = np.empty((points, *values.shape[1:]), values.dtype)
                results[name][part] = values
    return results, compiled


def _dataset(
    batch: Batch,
    grid: Grid,
    known: dict[str, Variable],
    results: dict[str, np.ndarray],
    compile_s: float,
    wall_s: float,
    error: StepError,
) -> xr.Dataset:
    flows = len(batch.scenario.flows)
    variables: dict[str, Any] = {}
    for name, (dims, attrs, missing) in known.items():
        shape = (*grid.shape, flows) if FLOW in dims else grid.shape
        nothing = batch.reasons if name == "reason" else np.full(shape, missing)
        values = results[name] if results else nothing
        variables[name] = (dims, np.asarray(values, np.asarray(missing).dtype).reshape(shape), attrs)
    attrs = {
        **attributes_of(batch.scenario),
        "compile_s": compile_s,
        "wall_s": wall_s,
        "points_per_s": grid.points / wall_s if wall_s > 0 else 0.0,
        **{f"discretisation_error.{k}": np.nan if v is None else float(v) for k, v in error.items()},
    }
    return xr.Dataset(variables, coordinates_of(grid, batch.scenario), attrs)
