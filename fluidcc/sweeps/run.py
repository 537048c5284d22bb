"""Running a grid in chunks on all cores, on one machine or many."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.engines.fluid.network import REASONS
from fluidcc.engines.fluid.plan import Plan, plan_of
from fluidcc.engines.threads import cores
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.schema import METRICS
from fluidcc.scenario.builders.toml_file import to_toml
from fluidcc.scenario.model import Scenario
from fluidcc.surface import public
from fluidcc.sweeps.batch import SAMPLES, Batch, batch_of, chunk_size, run_chunk, sampled_error, take
from fluidcc.sweeps.grid import Grid, grid_of
from fluidcc.sweeps.result import SweepResult
from fluidcc.sweeps.store import PENDING, Store

QUEUEING_ALLOWANCE = 1e-3  # s of queueing delay that a point's history holds


@public()
def sweep(
    make_scenario: Callable[..., Scenario],
    over: Mapping[str, Any],
    *,
    until: Any = "200ms",
    window: Any = None,
    dt: Any = None,
    method: str = "heun",
    dtype: str = "float64",
    store: str | Path | None = None,
    resume: bool = False,
    dask: Any = None,
    workers: int | None = None,
    estimate_error: bool = True,
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
    until, window, dt, method, dtype
        As in `simulate`.
    store : path
        Zarr folder that receives each chunk as it is done.
    resume : bool
        Whether to go on with an existing store.
    dask : str or distributed.Client
        Scheduler that runs the chunks; the cores of this machine by default.
    workers : int
        Threads on this machine; one per core by default.
    estimate_error : bool
        Whether to repeat 16 points with half the step and report the largest difference.

    Returns
    -------
    SweepResult
        ``dataset.attrs`` holds ``compile_s``, ``wall_s``, ``points_per_s`` and ``discretisation_error``.

    Raises
    ------
    InputError
        If the grid, the scenario or an option makes no sense. A point that does not is NaN in the result,
        with its reason.

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
    grid = grid_of(over)
    batch = batch_of(make_scenario, grid)
    built = time.perf_counter() - began
    valid = batch.reasons == 0
    results: dict[str, np.ndarray] = {}
    error: dict[str, float | None] = {"queue_rel": None, "rate_rel": None}
    compile_s, integrated = built, 0.0
    if valid.any():
        plan = plan_of(
            batch.network,
            until=until,
            window=window,
            dt=dt,
            method=method,
            dtype=dtype,
            samples=SAMPLES,
            queueing_allowance=QUEUEING_ALLOWANCE,
        )
        threads = workers or cores()
        chunk = chunk_size(batch, plan, grid.points, threads)
        keep = None if store is None else Store(store, grid, chunk, _signature(batch, plan, grid), resume)
        started = time.perf_counter()
        results, compiled = _collect(batch, plan, grid, keep.chunk if keep else chunk, keep, dask, threads)
        integrated = time.perf_counter() - started - compiled
        compile_s += compiled
        if estimate_error:
            error = sampled_error(batch, plan, results)
    return SweepResult(_dataset(batch, grid, results, compile_s, integrated, error))


def _signature(batch: Batch, plan: Plan, grid: Grid) -> str:
    """Digest of what is run, to recognise the same sweep again."""
    digest = hashlib.sha256(f"{plan} {grid.signature()} {to_toml(batch.scenario)}".encode())
    return digest.hexdigest()[:16]


def _collect(
    batch: Batch, plan: Plan, grid: Grid, chunk: int, store: Store | None, dask: Any, threads: int
) -> tuple[dict[str, np.ndarray], float]:
    """Run what is not done yet; all results by name, and the seconds that compiling took."""
    results = store.done() if store is not None else {}
    reasons = results.get("reason", np.full(grid.points, PENDING, np.int32))
    starts = [i for i in range(0, grid.points, chunk) if (reasons[i : i + chunk] == PENDING).any()]
    compiled = 0.0
    pending = len(starts)
    with Bar(f"sweeping {grid.points:,} points", grid.points, "points") as bar:
        for done, (first, found) in enumerate(_runs(batch, plan, grid, chunk, starts, dask, threads)):
            compiled += float(found.pop("compile_s"))
            found.pop("wall_s")
            points = slice(first, min(first + chunk, grid.points))
            found = {name: values[: points.stop - first] for name, values in found.items()}
            bad = batch.reasons[points] != 0
            for name, values in found.items():
                if name == "reason":
                    values[bad] = batch.reasons[points][bad]
                else:
                    values[bad] = np.nan
                whole = results.setdefault(name, np.full((grid.points, *values.shape[1:]), np.nan))
                whole[points] = values
            if store is not None:
                store.write(points, found, grid.points)
            bar((done + 1) / pending)
    results["reason"] = results["reason"].astype(np.int32)
    return results, compiled


def _runs(
    batch: Batch, plan: Plan, grid: Grid, chunk: int, starts: list[int], dask: Any, threads: int
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """Results of chunks as they come in; the last is padded so that all have one shape."""
    payload = np.broadcast_to(batch.payload, (grid.points,))

    def job(first: int) -> tuple[Any, ...]:
        indices = np.minimum(np.arange(first, first + chunk), grid.points - 1)
        return take(batch.network, indices), plan, payload[indices], chunk

    if dask is not None:
        yield from _dask_runs(dask, job, starts)
        return
    with ThreadPoolExecutor(threads) as pool:
        futures = {pool.submit(lambda i=first: run_chunk(*job(i))): first for first in starts}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _dask_runs(
    dask: Any, job: Callable[[int], tuple[Any, ...]], starts: list[int]
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    try:
        from distributed import Client
        from distributed import as_completed as dask_completed
    except ImportError:
        raise InputError("dask: needs dask.distributed; install it with: pip install 'fluidcc[sweep]'") from None
    client, own = dask, False
    if isinstance(dask, str):
        try:
            client, own = Client(dask, timeout=10), True
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"dask: no scheduler at {dask[:80]!r} ({error}); write for example tcp://host:8786"
            ) from None
    try:
        futures = {client.submit(run_chunk, *job(first), pure=False): first for first in starts}
        for future in dask_completed(list(futures)):
            yield futures[future], future.result()
    finally:
        if own:
            client.close()


def _dataset(
    batch: Batch,
    grid: Grid,
    results: dict[str, np.ndarray],
    compile_s: float,
    wall_s: float,
    error: dict[str, float | None],
) -> xr.Dataset:
    flows = len(batch.scenario.flows)
    if not results:
        results = {name: np.full(grid.points, np.nan) for name in METRICS} | {
            "rate_bytes_per_s": np.full((grid.points, flows), np.nan),
            "reason": batch.reasons,
        }
    names = list(grid.axes)
    variables: dict[str, Any] = {
        name: (names, results[name].reshape(grid.shape), {"units": unit, "long_name": text})
        for name, (unit, text) in METRICS.items()
    }
    rates = results["rate_bytes_per_s"].reshape(*grid.shape, flows)
    variables["rate_bytes_per_s"] = ([*names, "flow"], rates, {"units": "bytes/s", "long_name": "mean sending rate"})
    meanings = {"units": "1", "long_name": "why a point failed", "flag_meanings": "; ".join(REASONS)}
    variables["reason"] = (names, results["reason"].reshape(grid.shape).astype(np.int32), meanings)
    attrs = {
        "compile_s": compile_s,
        "wall_s": wall_s,
        "points_per_s": grid.points / wall_s if wall_s > 0 else 0.0,
        "scenario": to_toml(batch.scenario),
        **{f"discretisation_error.{k}": np.nan if v is None else v for k, v in error.items()},
    }
    coords = {**grid.axes, "flow": [flow.name or f"flow {i}" for i, flow in enumerate(batch.scenario.flows)]}
    return xr.Dataset(variables, coords, attrs)
