"""A whole grid as one network: the scenario is built once, with traced scalars for what is swept."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from fluidcc.compiling.settings import our_settings
from fluidcc.dde.history import ring_depth
from fluidcc.engines.fluid.engine import execute, longest_waits
from fluidcc.engines.fluid.metrics import metrics_of
from fluidcc.engines.fluid.network import REASONS, Network, network_of, parts_of, reason_of
from fluidcc.engines.fluid.plan import Plan, history_bytes, remembered_rows
from fluidcc.engines.fluid.run import UNKNOWN, StepError, both, relative, shrinks
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.grid import Grid
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.scenario.parameters import specs
from fluidcc.studies.sweeps.grid import check_takes

NOT_FINITE = REASONS.index("result is not finite")
TOO_LONG = REASONS.index("history takes too much memory")
SAMPLED = 16  # points whose step is estimated, at most
SAMPLES = 500  # instants that percentiles come from, per point
_TOUCHED = 1 << 23  # bytes of history in use per chunk; more leaves the cache of a core
_LEAST_CHUNK, _LARGEST_CHUNK = 64, 1024  # points: enough to pay for the fixed cost of a step
ROOM = 1 << 29  # bytes of history per chunk, unless there is less
_CHUNK_TIME = 20.0  # s that a chunk is expected to take at most: a minute, on a slow machine
_SEGMENT_TIME = 0.25  # s after which a chunk is expected to look whether it is to stop
# s for a row of the history, a point and a step, with lags of whole steps and with others: measured, 12 to 270 ns.
_STEP_TIME = {True: 15e-9, False: 200e-9}
_FEWER_STEPS = 10.0  # where they are chosen by their error: some 500 to 1000 in 20 ms, and a loose tolerance beside
# Parts of a run: few lengths, each of which is compiled for itself, that divide its 501 samples well.
_SEGMENTS = (1, 3, 24, 167, 501)


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
        if not callable(make_scenario):
            raise InputError(
                f"make_scenario: expected a function of what is swept, not a {type(make_scenario).__name__}; "
                "write for example lambda g: incast(2, scheme=DCQCN(g=g))"
            )
        self._make_scenario = make_scenario
        self._shape: dict[str, Any] = {}

        def build(values: dict[str, Any]) -> tuple[list[Any], Any, Any]:
            scenario, shape = resolve(make_scenario(**values)), self._shape
            shape["whole"] = whole_numbers(scenario, values)
            leaves, shape["treedef"] = jax.tree.flatten(network_of(scenario))
            shape["plain"] = [None if isinstance(leaf, Tracer) else leaf for leaf in leaves]
            payload = jnp.asarray(scenario.packet_size)
            parts, shape["scenario"] = jax.tree.flatten(scenario)
            shape["parts"] = [None if isinstance(part, Tracer) else part for part in parts]
            traced = [leaf for leaf in leaves if isinstance(leaf, Tracer)]
            traced_parts = [part for part in parts if isinstance(part, Tracer)]
            return traced, (reason_of(scenario), payload), traced_parts

        self._build = jax.jit(jax.vmap(build, out_axes=(-1, 0, 0)))

    @property
    def whole(self) -> dict[str, str]:
        """Names that are passed on as they are to parameters that are whole numbers, and these; known once called."""
        return self._shape["whole"]

    def __call__(self, columns: Mapping[str, np.ndarray]) -> Batch:
        """The batch of some points, from the value of every name at each.

        Points whose values make no sense get a reason, and the columns of a valid point in place of theirs, so that
        they can harm neither the plan nor their neighbours.
        """
        check_takes(self._make_scenario, columns)
        with our_settings():
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
    """Call ``make_scenario`` once, with a traced scalar per name, for all points of a grid, as `Builder` does.

    Raises
    ------
    InputError
        If an axis that is passed on as it is to a parameter that is a whole number has other values.
    """
    builder = Builder(make_scenario)
    batch = builder(grid.columns())
    for name, parameter in builder.whole.items():
        broken = [value for value in grid.axes[name].tolist() if value % 1 != 0]
        if broken:
            also = "" if parameter == name else f", as {parameter} must be"
            raise InputError(f"over {name}: {broken[0]:g} is no whole number{also}; write for example [1, 2, 5]")
    return batch


def whole_numbers(scenario: Scenario, values: Mapping[str, Any]) -> dict[str, str]:
    """Return traced values that are whole-number parameters of a scenario, with the parameters' names."""
    found = {}
    for part in parts_of(scenario):
        for parameter, spec in specs(part).items():
            for name, value in values.items():
                if spec.integer and getattr(part, parameter) is value:
                    found[name] = parameter
    return found


def _merged(plain: list[Any], traced: list[Any]) -> list[Any]:
    fixed_point = iter(traced)
    return [next(fixed_point) if leaf is None else leaf for leaf in plain]


def chunk_size(batch: Batch, plan: Plan, points: int, workers: int, room: float = ROOM) -> int:
    """Points per chunk: what stays in cache and in the room there is, takes less than a minute, and serves all workers.

    It depends on the problem alone and not on how fast it goes, so that a sweep has the same chunks when repeated.
    """
    network = batch.network
    one = history_bytes(network, plan)
    lags = [np.max(np.asarray(lag)) for lag in (network.marking_lag, network.own_lag) if lag is not None]
    in_use = min(plan.depth, int(max(lags) / plan.dt) + 8)
    fitting = _TOUCHED // (in_use * one // plan.depth)
    size = max(_LEAST_CHUNK, min(_LARGEST_CHUNK, fitting))
    size = min(size, int(_CHUNK_TIME / expected_time(network, plan, 1)), int(room // one))
    return max(1, min(size, math.ceil(points / workers)))


def expected_time(network: Network, plan: Plan, points: int) -> float:
    """About how long it takes to run some points [s]."""
    seconds = plan.steps * points * remembered_rows(network) * _STEP_TIME[plan.aligned]
    return seconds if plan.rtol is None else seconds / _FEWER_STEPS


def take(network: Network, indices: np.ndarray) -> Network:
    """The network of some points; columns without a points axis stay as they are."""
    return jax.tree.map(lambda a: a[..., indices] if np.ndim(a) == 2 else a, network)


def run_chunk(
    network: Network,
    plan: Plan,
    payload: np.ndarray,
    points: int,
    room: float = ROOM,
    report: Callable[[float], None] | None = None,
) -> dict[str, np.ndarray]:
    """Metrics of a chunk, by name, each (points,); ``rate_bytes_per_s`` is (points, flows).

    Includes ``reason`` (points,), and ``compile_s`` and ``wall_s``. Points whose packets wait longer than the history
    holds are run again with a longer one. ``report`` hears the share of the run that is done; what it raises ends it.
    """

    def look(share: float) -> None:
        if report is not None:
            report(share / (1 + plan.estimates))

    wanted = bisect.bisect_left(_SEGMENTS, expected_time(network, plan, points) / _SEGMENT_TIME)
    segments = min(_SEGMENTS[min(wanted, len(_SEGMENTS) - 1)], plan.room)
    outcome, compile_s, wall_s = execute(network, plan, points=points, segments=segments, report=look)
    found: dict[str, Any] = metrics_of(network, plan, outcome, payload)
    if plan.rtol is not None:
        found |= {name: np.full(points, np.nan) for name in ("queue_error_rel", "rate_error_rel")}
    if plan.estimates:
        other, _, again_s = execute(
            network, plan.to_tolerance(10.0), points=points, report=lambda share: look(1 + share)
        )
        wall_s += again_s
        packet = float(np.max(network.packet))  # as in `discretisation_error`
        found["queue_error_rel"] = _differs(outcome.summary.queue_mean, other.summary.queue_mean, packet)
        found["rate_error_rel"] = _differs(outcome.summary.rate_mean, other.summary.rate_mean, 0.0)
    found["rate_bytes_per_s"] = outcome.summary.rate_mean.T
    finite = np.asarray(np.isfinite([*outcome.summary.queue_mean, *outcome.summary.rate_mean]).all(axis=0))
    reason = np.where(finite, 0, NOT_FINITE).astype(np.int32)
    found = {name: np.where(_like(finite, values), values, np.nan) for name, values in found.items()}
    found |= {"reason": reason, "compile_s": np.float64(compile_s), "wall_s": np.float64(wall_s)}
    waited = longest_waits(network, outcome.summary)
    outgrown = np.flatnonzero(finite & (waited > plan.allowance))
    if len(outgrown):
        waits = 2 * float(waited[outgrown].max())
        depth = ring_depth(plan.lag_limit + waits, plan.dt)
        longer = dataclasses.replace(plan, depth=depth, allowance=plan.allowance + waits)
        size = min(points, int(room // history_bytes(network, longer)))
        if not size:
            return _failed(found, outgrown, TOO_LONG)
        for first in range(0, len(outgrown), size):
            some = outgrown[first : first + size]
            padded = np.resize(some, size if len(outgrown) > size else len(some))
            payloads = np.broadcast_to(payload, points)[padded]
            again = run_chunk(
                take(network, padded), longer, payloads, len(padded), room, lambda _: look(1.0 + plan.estimates)
            )
            for name, values in again.items():
                if np.ndim(values):
                    found[name][some] = values[: len(some)]
                else:
                    found[name] = found[name] + values
    return found


def _differs(ours: np.ndarray, theirs: np.ndarray, least: float) -> np.ndarray:
    """Largest difference of each point, (points,), relative to the largest of its first values or a least scale."""
    scale = np.maximum(np.max(np.abs(ours), axis=0), max(least, np.finfo(float).tiny))
    return np.max(np.abs(ours - theirs), axis=0) / scale


def largest_error(results: dict[str, np.ndarray]) -> StepError:
    """Return the largest step error of all points of a sweep to a tolerance."""
    valid = results["reason"] == 0
    found = [results[name][valid] for name in ("queue_error_rel", "rate_error_rel")]
    largest = [float(np.max(each)) if len(each) and np.isfinite(each).all() else None for each in found]
    return {"queue_rel": largest[0], "rate_rel": largest[1], "as_expected": None}


def _failed(found: dict[str, np.ndarray], points: np.ndarray, reason: int) -> dict[str, np.ndarray]:
    """Results without those of some points."""
    for name, values in found.items():
        if np.ndim(values):
            values[points] = reason if name == "reason" else np.nan
    return found


def _like(mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    return mask.reshape(mask.shape + (1,) * (values.ndim - 1))


def plans_beside(plan: Plan) -> tuple[Plan, Plan]:
    """The same run with half the step, and with twice or else a quarter of it; both of one shape."""
    depth = ring_depth(plan.lag_limit, plan.dt / (2 if plan.doubles else 4))
    finer = dataclasses.replace(plan.halved(), depth=depth)
    return finer, dataclasses.replace(plan.doubled(), depth=depth) if plan.doubles else finer.halved()


def sampled_error(
    batch: Batch, plan: Plan, results: dict[str, np.ndarray], room: float = ROOM, most: int = SAMPLED
) -> StepError:
    """Largest relative difference to the run with half the step, over points spread evenly over the valid ones."""
    valid = np.flatnonzero(results["reason"] == 0)
    if not len(valid):
        return UNKNOWN
    chosen = valid[np.unique(np.linspace(0, len(valid) - 1, most).astype(int))]
    names = {"queue_bytes.mean": np.max(batch.network.packet), "rate_bytes_per_s": 0.0}  # least scale, as in `simulate`
    beside = plans_beside(plan)
    # As many at once as there is room for; always the same number, so that it compiles once.
    size = max(1, min(most, int(room // history_bytes(batch.network, beside[0]))))

    starts = range(0, len(chosen), size)

    def run(other: Plan, report: Callable[[float], None]) -> dict[str, np.ndarray]:
        parts = []
        for done, first in enumerate(starts):
            padded = np.resize(chosen[first : first + size], size)
            payload = np.broadcast_to(batch.payload, batch.reasons.shape)[padded]
            network = take(batch.network, padded)
            told = lambda share, done=done: report((done + share) / len(starts))  # noqa: E731
            parts.append(run_chunk(network, other, payload, size, room, report=told))
        return {name: np.concatenate([part[name] for part in parts]) for name in names}

    runs = [results]
    with Bar(f"running {len(chosen)} points with other steps", len(beside), "runs") as bar:
        for k, other in enumerate(beside):
            runs.append(run(other, lambda share, k=k: bar((k + share) / len(beside))))

    def values(name: str) -> list[np.ndarray]:
        at = [chosen, *[slice(len(chosen))] * 2]
        base, finer, third = (np.atleast_2d(run[name][where].T) for run, where in zip(runs, at, strict=True))
        return [third, base, finer] if plan.doubles else [base, finer, third]

    verdicts: list[bool | None] = []
    errors: list[float | None] = []
    for name, least in names.items():
        three = values(name)
        differences = [  # of each pair, per point, over the flows
            [relative(ours[:, i], theirs[:, i], least) for i in range(len(chosen))]
            for ours, theirs in itertools.pairwise(three)
        ]
        verdicts += [shrinks(before, after, plan.method) for before, after in zip(*differences, strict=True)]
        found = differences[int(plan.doubles)]
        errors.append(None if None in found else max(each for each in found if each is not None))
    return {"queue_rel": errors[0], "rate_rel": errors[1], "as_expected": both(verdicts)}
