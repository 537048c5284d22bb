"""A whole grid as one network: the scenario is built once, with traced scalars for what is swept."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from fluidcc.engines.fluid.engine import execute, longest_waits
from fluidcc.engines.fluid.history import ring_depth
from fluidcc.engines.fluid.metrics import metrics_of
from fluidcc.engines.fluid.network import REASONS, Network, network_of, reason_of
from fluidcc.engines.fluid.plan import Plan, remembered_rows
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.sweeps.grid import Grid

NOT_FINITE = REASONS.index("result is not finite")
SAMPLES = 500  # instants that percentiles come from, per point
_TOUCHED = 1 << 23  # bytes of history in use per chunk; more leaves the cache of a core
_LEAST_CHUNK, _LARGEST_CHUNK = 64, 1024  # points: enough to pay for the fixed cost of a step
_MEMORY = 1 << 29  # bytes of history per chunk at most


class Batch(NamedTuple):
    """The network of all points of a grid.

    Parameters
    ----------
    network : Network
        Columns that depend on what is swept have all points on a last axis, the others none.
    reasons : ndarray, shape (points,)
        Index into `REASONS` of what is wrong with a point; 0 if nothing is.
    payload : ndarray
        Payload of a packet [bytes], per point or one for all.
    scenario : Scenario
        The scenario of the first valid point.
    """

    network: Network
    reasons: np.ndarray
    payload: np.ndarray
    scenario: Scenario


class Builder:
    """Makes batches of one function's scenarios; batches of equal length compile once.

    Parameters
    ----------
    make_scenario : callable
        As for `sweep`.
    """

    def __init__(self, make_scenario: Callable[..., Scenario]) -> None:
        self._shape: dict[str, Any] = {}

        def build(values: dict[str, Any]) -> tuple[list[Any], Any, Any]:
            scenario, shape = resolve(make_scenario(**values)), self._shape
            leaves, shape["treedef"] = jax.tree.flatten(network_of(scenario))
            shape["plain"] = [None if isinstance(leaf, Tracer) else leaf for leaf in leaves]
            payload = jnp.asarray(scenario.packet_size)
            parts, shape["scenario"] = jax.tree.flatten(scenario)
            shape["parts"] = [None if isinstance(part, Tracer) else part for part in parts]
            traced = [leaf for leaf in leaves if isinstance(leaf, Tracer)]
            traced_parts = [part for part in parts if isinstance(part, Tracer)]
            return traced, (reason_of(scenario), payload), traced_parts

        self._build = jax.jit(jax.vmap(build, out_axes=(-1, 0, 0)))

    def __call__(self, columns: Mapping[str, np.ndarray]) -> Batch:
        """The batch of some points, from the value of every name at each.

        Points whose values make no sense get a reason, and the columns of a valid point in place of theirs, so that
        they can harm neither the plan nor their neighbours.
        """
        with jax.enable_x64(True):
            try:
                out = self._build({name: jnp.asarray(values) for name, values in columns.items()})
            except jax.errors.ConcretizationTypeError as error:
                raise InputError(
                    f"make_scenario: needs the value of something that is swept ({', '.join(columns)}), but is called "
                    "once for all values; write jnp.where in place of if, and pass numbers on without float() or int()"
                ) from error
            traced, (reasons, payload), parts = jax.tree.map(np.asarray, out)
        shape = self._shape
        valid = np.flatnonzero(reasons == 0)
        first = int(valid[0]) if len(valid) else 0
        source = np.where(reasons == 0, np.arange(len(reasons)), first)
        columns_of_valid = [column[..., source] for column in traced]
        network = jax.tree.unflatten(shape["treedef"], _merged(shape["plain"], columns_of_valid))
        example = [part[first] for part in parts]
        scenario = jax.tree.unflatten(shape["scenario"], _merged(shape["parts"], example))
        return Batch(network, reasons, payload, scenario)


def batch_of(make_scenario: Callable[..., Scenario], grid: Grid) -> Batch:
    """Call ``make_scenario`` once, with a traced scalar per name, for all points of a grid, as `Builder` does."""
    return Builder(make_scenario)(grid.columns())


def _merged(plain: list[Any], traced: list[Any]) -> list[Any]:
    fixed_point = iter(traced)
    return [next(fixed_point) if leaf is None else leaf for leaf in plain]


def chunk_size(batch: Batch, plan: Plan, points: int, workers: int) -> int:
    """Points per chunk: few enough that the history in use stays in cache, and that every worker has some."""
    network = batch.network
    rows = remembered_rows(network) * (1 if plan.aligned else 4)
    item = np.dtype(plan.dtype).itemsize
    lags = [np.max(np.asarray(lag)) for lag in (network.marking_lag, network.own_lag) if lag is not None]
    in_use = min(plan.depth, int(max(lags) / plan.dt) + 8)
    fitting = min(_TOUCHED // (in_use * rows * item), _MEMORY // (plan.depth * rows * item))
    size = max(_LEAST_CHUNK, min(_LARGEST_CHUNK, fitting))
    return max(1, min(size, math.ceil(points / workers)))


def take(network: Network, indices: np.ndarray) -> Network:
    """The network of some points; columns without a points axis stay as they are."""
    return jax.tree.map(lambda a: a[..., indices] if np.ndim(a) == 2 else a, network)


def run_chunk(network: Network, plan: Plan, payload: np.ndarray, points: int) -> dict[str, np.ndarray]:
    """Metrics of a chunk, by name, each (points,); ``rate_bytes_per_s`` is (points, flows).

    Includes ``reason`` (points,), and ``compile_s`` and ``wall_s``. Points whose packets wait longer than the history
    holds are run again with a longer one.
    """
    outcome, compile_s, wall_s = execute(network, plan, points=points)
    found: dict[str, Any] = metrics_of(network, plan, outcome, payload)
    found["rate_bytes_per_s"] = outcome.summary.rate_mean.T
    finite = np.asarray(np.isfinite([*outcome.summary.queue_mean, *outcome.summary.rate_mean]).all(axis=0))
    reason = np.where(finite, 0, NOT_FINITE).astype(np.int32)
    found = {name: np.where(_like(finite, values), values, np.nan) for name, values in found.items()}
    found |= {"reason": reason, "compile_s": np.float64(compile_s), "wall_s": np.float64(wall_s)}
    waited = longest_waits(network, outcome.summary)
    outgrown = np.flatnonzero(finite & (waited > plan.allowance))
    if len(outgrown):
        room = 2 * float(waited[outgrown].max())
        depth = ring_depth(plan.lag_limit + room, plan.dt)
        longer = dataclasses.replace(plan, depth=depth, allowance=plan.allowance + room)
        rows = remembered_rows(network) * (1 if plan.aligned else 4)
        size = max(1, min(points, _MEMORY // (depth * rows * np.dtype(plan.dtype).itemsize)))
        for first in range(0, len(outgrown), size):
            some = outgrown[first : first + size]
            padded = np.resize(some, size if len(outgrown) > size else len(some))
            again = run_chunk(take(network, padded), longer, np.broadcast_to(payload, points)[padded], len(padded))
            for name, values in again.items():
                if np.ndim(values):
                    found[name][some] = values[: len(some)]
                else:
                    found[name] = found[name] + values
    return found


def _like(mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    return mask.reshape(mask.shape + (1,) * (values.ndim - 1))


def sampled_error(batch: Batch, plan: Plan, results: dict[str, np.ndarray], most: int = 16) -> dict[str, float | None]:
    """Largest relative difference to the run with half the step, over points spread evenly over the valid ones."""
    valid = np.flatnonzero(results["reason"] == 0)
    if not len(valid):
        return {"queue_rel": None, "rate_rel": None}
    chosen = valid[np.unique(np.linspace(0, len(valid) - 1, most).astype(int))]
    padded = np.resize(chosen, most)  # always the same shape, so that it compiles once
    finer = dataclasses.replace(plan.halved(), depth=ring_depth(plan.lag_limit, plan.dt / 2))
    payload = np.broadcast_to(batch.payload, batch.reasons.shape)[padded]
    fine = run_chunk(take(batch.network, padded), finer, payload, most)
    queue, rate = "queue_bytes.mean", "rate_bytes_per_s"

    packet = np.max(batch.network.packet)  # a mean queue below one packet counts as one, as in `simulate`

    def worst(name: str, least: float) -> float | None:
        ours, theirs = (np.atleast_2d(values.T) for values in (results[name][chosen], fine[name][: len(chosen)]))
        scale = np.maximum(np.abs(theirs).max(axis=0), least)  # per point, over the flows
        found = np.abs(ours - theirs).max(axis=0) / np.where(scale > 0, scale, 1.0)
        return float(found.max()) if np.isfinite(found).all() else None

    return {"queue_rel": worst(queue, packet), "rate_rel": worst(rate, 0.0)}
