"""Running a network to a tolerance: steps of each point's own, metrics and samples read off them.

Steps land on the instants at which something is set to happen, or to be counted from: a flow's start, its first byte's
arrival at a queue, the edges of the window, the horizon. Everything else is read off the cubic through a step's ends.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fluidcc.compiling.functions import OLDER_FUSION, per_shape
from fluidcc.compiling.settings import our_settings, warn_if_late
from fluidcc.dde.adaptive import PASSED, Adaptive, Step, Steps, within
from fluidcc.dde.history import hermite
from fluidcc.dde.stepping import Clock
from fluidcc.engines.fluid.network import Network, columns_of
from fluidcc.engines.fluid.plan import Plan, history_bytes
from fluidcc.engines.fluid.queues import QueueNetwork
from fluidcc.engines.fluid.running_statistics import Summary
from fluidcc.engines.fluid.state import Memory, State

_DEPTH, _HISTORY = 1 << 13, 1 << 27  # records of history that any point may have; bytes of all points, for more
_ATTEMPTS, _POINT_ATTEMPTS = 4096, 1_000_000  # between two reports: at most, and of all points together
# Gauss's rule of four points on [0, 1], exact for the square of a cubic.
_NODES, _WEIGHTS = (0.5 * (np.polynomial.legendre.leggauss(4)[0] + 1.0), 0.5 * np.polynomial.legendre.leggauss(4)[1])


class Numbers(NamedTuple):
    """The numbers of a `Plan`, traced."""

    rtol: Any
    spacing: Any  # of samples [s]
    samples: Any  # int32
    opens: Any  # the window [s]
    closes: Any
    end: Any  # [s]


class Sums(NamedTuple):
    """Integrals over the window, and extremes; arrays (links or flows, points)."""

    queue: Array  # [bytes s]
    queue_squared: Array
    queue_min: Array
    queue_max: Array
    queue_max_whole_run: Array
    rate: Array  # [bytes]
    idle_before: Array  # idle bytes when the window opened
    idle: Array  # and when it closed


class Progress(NamedTuple):
    """State of a run between two calls."""

    steps: Steps
    sums: Sums
    sampled: Array  # (points,) samples taken
    samples: dict[str, Array]  # (room, rows, points) each


class AdaptiveOutcome(NamedTuple):
    """Arrays of a run; the last axis is the point."""

    summary: Summary
    samples: dict[str, Any]  # (samples, rows, points) each
    taken: Any  # (points,) steps
    failed: Any  # (points,) attempts in addition to them
    lost: Any  # (points,) whether the history was too short


def shortest_lag(network: Network) -> Array:
    """Shortest lag that is read, without queueing: (points,) or (1,) [s]."""
    columns = [lag for lag in (network.marking_lag, network.own_lag, network.arrival_lag) if lag is not None]
    return jnp.min(jnp.stack([jnp.min(column, axis=0) * jnp.ones(1) for column in columns]), axis=0)


def numbers_of(plan: Plan) -> Numbers:
    """Numbers of a plan with a tolerance."""
    times = (plan.stride * plan.dt, plan.first * plan.dt, plan.last * plan.dt, plan.steps * plan.dt)
    spacing, opens, closes, end = map(np.float64, times)
    return Numbers(np.float64(plan.rtol), spacing, np.int32(plan.samples), opens, closes, end)


def begin(network: Network, numbers: Numbers, *, points: int, depth: int, room: int, full: bool) -> Progress:
    """State at t = 0 of a network with a points axis."""
    system, stepper = _stepper(network, numbers, points)
    y, z = system.start(numbers.end.dtype)
    steps = stepper.start(y, z, depth)
    link, flow = jnp.zeros((network.links, points)), jnp.zeros((len(network.flows), points))
    sums = Sums(link, link, link + jnp.inf, link, link, flow, link, link)
    clock = Clock(jnp.float64(0.0), jnp.float64(0.0), jnp.float64(1.0))
    shown = _shown(system, clock, y, z, full)
    buffers = {name: jnp.zeros((room, *values.shape)) for name, values in shown.items()}
    return Progress(steps, sums, jnp.zeros(points, jnp.int32), buffers)


def proceed(
    network: Network,
    numbers: Numbers,
    progress: Progress,
    attempts: Array,
    *,
    points: int,
    depth: int,
    room: int,
    full: bool,
) -> tuple[Progress, AdaptiveOutcome]:
    """Make attempts until all points are at the horizon, or a number of them; pure and traceable."""
    system, stepper = _stepper(network, numbers, points)
    stops = _stops(network, numbers, points)
    last = progress.steps.turn + attempts

    def going(now: Progress) -> Array:
        return (now.steps.turn < last) & jnp.any(numbers.end - now.steps.time > PASSED * numbers.end)

    def attempt(now: Progress) -> Progress:
        to_come = stops - now.steps.time > PASSED * stops
        ahead = jnp.min(jnp.where(to_come, stops, numbers.end), axis=0)
        steps, step = stepper.attempt(now.steps, ahead)
        sums = _observe(system, numbers, now.sums, step, steps)
        sampled, samples = _sample(system, numbers, now, step, steps, full)
        return Progress(steps, sums, sampled, samples)

    progress = lax.while_loop(going, attempt, progress)
    steps, sums = progress.steps, progress.sums
    window = numbers.closes - numbers.opens
    mean = sums.queue / window
    variance = jnp.maximum(sums.queue_squared / window - mean**2, 0.0)
    dead = jnp.where(jnp.isinf(steps.time), jnp.nan, 0.0)
    summary = Summary(
        queue_mean=mean + dead,
        queue_std=jnp.sqrt(variance),
        queue_min=sums.queue_min,
        queue_max=sums.queue_max,
        queue_max_whole_run=sums.queue_max_whole_run,
        rate_mean=sums.rate / window + dead,
        utilisation=1.0 - (sums.idle - sums.idle_before) / (network.link_capacity * window) + dead,
    )
    return progress, AdaptiveOutcome(summary, progress.samples, steps.taken, steps.failed, steps.lost)


def _stepper(network: Network, numbers: Numbers, points: int) -> tuple[QueueNetwork, Adaptive]:
    system = QueueNetwork(network, points, jnp.asarray(jnp.inf, numbers.end.dtype))
    return system, Adaptive(system, numbers.rtol, shortest_lag(network))


def _stops(network: Network, numbers: Numbers, points: int) -> Array:
    """Instants (stops, points) that steps land on [s]."""
    stops = [numbers.opens[None, None], numbers.closes[None, None], numbers.end[None, None]]
    if network.starts:
        stops.append(network.start)
    if network.arrival_lag is not None:  # nothing arrives before, even if all flows start at 0
        hops = [i for i, (_, path) in enumerate(network.flows) for _ in path]
        start = network.start if len(network.start) == 1 else network.start[jnp.asarray(hops)]
        stops.append(start + network.arrival_lag)
    return jnp.concatenate([jnp.broadcast_to(each, (each.shape[0], points)) for each in stops])


def _observe(system: QueueNetwork, numbers: Numbers, sums: Sums, step: Step, steps: Steps) -> Sums:
    """Add a step to the sums."""
    by_link, h, new = system.network.by_link, step.width, steps.y
    end = jnp.where(step.took, step.time + h, 0.0)
    slack = PASSED * numbers.end
    inside = step.took & (step.time >= numbers.opens - slack) & (end <= numbers.closes + slack)
    weight = jnp.where(inside, h, 0.0)
    ends = (by_link(step.y.queue), h * by_link(step.right.queue), by_link(new.queue), h * by_link(step.left.queue))
    nodes = [jnp.maximum(hermite(jnp.asarray(theta), *ends), 0.0) for theta in _NODES]
    low, high = _extremes(*ends)
    clock = Clock(step.time / h, step.time, h)
    rates = [
        jnp.where(step.took, system.sending(clock, y, step.z), 0.0)
        for y in (step.y, within(system, step, new, jnp.full_like(h, 0.5)), new)
    ]

    total, squares = jnp.zeros_like(low), jnp.zeros_like(low)
    for share, node in zip(_WEIGHTS, nodes, strict=True):
        total, squares = total + share * node, squares + share * node**2

    def until(instant: Array, kept: Array) -> Array:
        return jnp.where(step.took & (end <= instant + slack), steps.z.idle, kept)

    def add(total: Array, values: Array) -> Array:
        return total + jnp.where(inside, weight * values, 0.0)

    return Sums(
        queue=add(sums.queue, total),
        queue_squared=add(sums.queue_squared, squares),
        queue_min=jnp.where(inside, jnp.minimum(sums.queue_min, jnp.maximum(low, 0.0)), sums.queue_min),
        queue_max=jnp.where(inside, jnp.maximum(sums.queue_max, high), sums.queue_max),
        queue_max_whole_run=jnp.where(step.took, jnp.maximum(sums.queue_max_whole_run, high), sums.queue_max_whole_run),
        rate=add(sums.rate, (rates[0] + 4.0 * rates[1] + rates[2]) / 6.0),
        idle_before=until(numbers.opens, sums.idle_before),
        idle=until(numbers.closes, sums.idle),
    )


def _extremes(start: Array, right: Array, end: Array, left: Array) -> tuple[Array, Array]:
    """Least and largest value of a cubic on [0, 1], from its ends and slopes there."""
    # Its slope is right + 2 b theta + 3 c theta^2.
    b, c = 3.0 * (end - start) - 2.0 * right - left, right + left - 2.0 * (end - start)
    root = jnp.sqrt(jnp.maximum(b * b - 3.0 * c * right, 0.0))
    far = -(b + jnp.where(b >= 0, root, -root))
    values = [start, end]
    for above, below in ((far, 3.0 * c), (right, far)):
        theta = jnp.clip(above / jnp.where(below == 0, 1.0, below), 0.0, 1.0)
        values.append(hermite(theta, start, right, end, left))
    low, high = values[0], values[0]
    for value in values[1:]:
        low, high = jnp.minimum(low, value), jnp.maximum(high, value)
    return low, high


def _shown(system: QueueNetwork, clock: Clock, y: State, z: Memory, full: bool) -> dict[str, Array]:
    """Return the signals that are sampled, (rows, points) each."""
    queue = {"queue": system.network.by_link(y.queue)}
    if not full:
        return queue
    rates = {"rate": system.sending(clock, y, z), "pacing_rate": system.rates(y)}
    return queue | system.observables(y) | rates | {"idle": z.idle}


def _sample(
    system: QueueNetwork, numbers: Numbers, now: Progress, step: Step, steps: Steps, full: bool
) -> tuple[Array, dict[str, Array]]:
    """Take the samples that lie in a step."""
    end = step.time + step.width
    last = end >= numbers.end * (1.0 - PASSED)

    def due(sampled: Array) -> Array:
        when = sampled * numbers.spacing
        before = (when < end * (1.0 - PASSED)) | (last & (when <= end * (1.0 + PASSED)))
        return step.took & (sampled < numbers.samples) & before

    def take(state: tuple[Array, dict[str, Array]]) -> tuple[Array, dict[str, Array]]:
        sampled, kept = state
        wanted = due(sampled)
        theta = jnp.clip((sampled * numbers.spacing - step.time) / step.width, 0.0, 1.0)
        y = within(system, step, steps.y, theta)
        z = step.z._replace(idle=step.z.idle + theta * (steps.z.idle - step.z.idle))
        shown = _shown(system, Clock(step.time / step.width, step.time, step.width), y, z, full)
        kept = {name: _put(buffer, sampled, wanted, shown[name]) for name, buffer in kept.items()}
        return sampled + wanted, kept

    return lax.while_loop(lambda state: jnp.any(due(state[0])), take, (now.sampled, now.samples))


def _put(buffer: Array, at: Array, wanted: Array, values: Array) -> Array:
    """Write values (rows, points), if wanted, to places (points,) of a buffer (room, rows, points)."""
    if len(at) == 1:  # a scatter copies the buffer, each time
        place = jnp.minimum(at[0], buffer.shape[0] - 1)
        old = lax.dynamic_index_in_dim(buffer, place, 0, keepdims=False)
        return lax.dynamic_update_index_in_dim(buffer, jnp.where(wanted, values, old), place, 0)
    rows, points = (jnp.arange(size) for size in buffer.shape[1:])
    place = jnp.where(wanted, at, buffer.shape[0])
    return buffer.at[place[None, :], rows[:, None], points[None, :]].set(values, mode="drop")


def first(
    network: Network, numbers: Numbers, attempts: Array, *, points: int, depth: int, room: int, full: bool
) -> tuple[Progress, AdaptiveOutcome]:
    """Begin and proceed: all that short runs need."""
    static = {"points": points, "depth": depth, "room": room, "full": full}
    return proceed(network, numbers, begin(network, numbers, **static), attempts, **static)


_first = per_shape(options=OLDER_FUSION)(first)
_proceed = per_shape(donate=(2,), options=OLDER_FUSION)(proceed)  # the progress


def execute(
    network: Network,
    plan: Plan,
    *,
    points: int = 1,
    full: bool = False,
    report: Callable[[float], None] | None = None,
) -> tuple[AdaptiveOutcome, float, float]:
    """Run a network of plain numbers to the tolerance of a plan; as `fluid.engine.execute`.

    A point whose history is too short is run again with all others and a longer one; where that does not help, or
    its state is not finite, its numbers are NaN.
    """
    warn_if_late()
    with our_settings(double=True):
        columns = columns_of(network, np.dtype("float64"))
        numbers = numbers_of(plan)
        static = {"points": points, "depth": plan.depth, "room": plan.room, "full": full}
        attempts = np.int32(max(64, min(_ATTEMPTS, _POINT_ATTEMPTS // points)))
        start, compile_s = _first.ready(columns, numbers, attempts, **static)
        began = time.perf_counter()
        end = plan.steps * plan.dt
        progress, outcome = start(columns, numbers, attempts)
        while True:
            reached = float(np.min(np.asarray(progress.steps.time)))
            if report is not None:
                report(min(reached / end, 1.0))
            if end - reached <= PASSED * end:
                break
            then, more_s = _proceed.ready(columns, numbers, progress, attempts, **static)
            compile_s, began = compile_s + more_s, began + more_s
            progress, outcome = then(columns, numbers, progress, attempts)
        found = jax.tree.map(np.asarray, outcome)
        wall_s = time.perf_counter() - began
    record = history_bytes(network, dataclasses.replace(plan, depth=1), points)
    if found.lost.any() and plan.depth < max(_DEPTH, _HISTORY // record):
        longer = dataclasses.replace(plan, depth=4 * plan.depth)
        found, again_s, wall_s = execute(network, longer, points=points, full=full, report=report)
        compile_s += again_s
    return found, compile_s, wall_s
