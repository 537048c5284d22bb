"""Running a network: one compiled loop for every value of every parameter."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.compiling.functions import OLDER_FUSION, per_shape
from fluidcc.compiling.settings import our_settings, warn_if_late
from fluidcc.dde.history import constant_past
from fluidcc.dde.stepping import METHODS, Carry, Clock, Loop, advance
from fluidcc.engines.fluid import adaptive_run, running_statistics
from fluidcc.engines.fluid.classes import system_of
from fluidcc.engines.fluid.network import Network, with_points
from fluidcc.engines.fluid.plan import Plan
from fluidcc.engines.fluid.state import State


class Outcome(NamedTuple):
    """Arrays of a run; the last axis is the point."""

    summary: running_statistics.Summary
    queue: Any  # (samples, links, points) [bytes]
    trace: dict[str, Any]  # (samples, flows or links, points) each; empty if only metrics were asked for
    finish: Any  # (flows, points) time [s] of the last byte; None if all flows are long-lived
    drain: Any  # (hops, points) queueing delay [s] of that byte, flow by flow; NaN before
    began: Any = None  # (flows, points) time [s] at which each begins; inf until known; None if no flow waits


class Numbers(NamedTuple):
    """The numbers of a `Plan`, traced, so that one compilation serves all."""

    dt: Array
    first: Array
    last: Array
    end: Array
    limit: Array


class RunState(NamedTuple):
    """State of a run between segments."""

    carry: Carry
    statistics: running_statistics.RunningStatistics


def numbers_of(plan: Plan) -> Numbers:
    """Scalars of a plan in its precision; call inside the precision's context."""
    real = np.dtype(plan.dtype)
    return Numbers(
        dt=jnp.asarray(plan.dt, real),
        first=jnp.int32(plan.first),
        last=jnp.int32(plan.last),
        end=jnp.int32(plan.steps),
        limit=jnp.asarray(plan.lag_limit, real),
    )


def begin(network: Network, numbers: Numbers, *, points: int, depth: int, method: str, aligned: bool) -> RunState:
    """State at t = 0 of a network with a points axis; constant history before."""
    system = system_of(network, points, numbers.limit)
    dtype = numbers.dt.dtype
    y, z = system.start(dtype)
    loop = Loop(system, METHODS[method], numbers.dt, aligned)
    carry = loop.start(y, z, constant_past(system.remembered(y), depth, not aligned))
    return RunState(
        carry, running_statistics.start(network.links, len(network.flows), points, dtype, ends=network.size is not None)
    )


def proceed(
    network: Network,
    numbers: Numbers,
    progress: RunState,
    stride: int | Array,
    *,
    samples: int,
    points: int,
    depth: int,
    method: str,
    aligned: bool,
    full: bool,
) -> tuple[RunState, Outcome]:
    """Take ``samples * stride`` steps, or as many as there are to the horizon; pure and traceable.

    The outcome's summary is that of the run so far, its samples are of this segment. An int as stride makes
    the loop differentiable in reverse.
    """
    system = system_of(network, points, numbers.limit)
    dt = numbers.dt

    def sample(now: Carry) -> tuple[Array, dict[str, Array]]:
        queue = network.by_link(now.y.queue)
        if not full:
            return queue, {}
        clock = Clock(now.step, now.step * dt, dt)
        shown = system.observables(now.y)
        shown |= {"rate": system.sending(clock, now.y, now.z), "pacing_rate": system.rates(now.y)}
        return queue, shown | system.shown(now.y, now.z) | {"idle": now.z.idle}

    def observe(counts: running_statistics.RunningStatistics, now: Carry) -> running_statistics.RunningStatistics:
        return running_statistics.observe(system, numbers.first, numbers.last, counts, now, dt)

    loop = Loop(system, METHODS[method], dt, aligned)
    carry, statistics, (queue, trace) = advance(
        loop, progress.carry, progress.statistics, observe, sample, samples=samples, stride=stride, end=numbers.end
    )
    waited = None if carry.z.pauses is None else carry.z.pauses.longest
    summary = running_statistics.summarise(system, statistics, dt)._replace(waited=waited)
    return RunState(carry, statistics), Outcome(
        summary, queue, trace, carry.z.finish, carry.z.drain, carry.z.began
    )  # fmt: skip


_begin = per_shape(options=OLDER_FUSION)(begin)
_proceed = per_shape(donate=(2,), options=OLDER_FUSION)(proceed)  # the progress


def execute(
    network: Network,
    plan: Plan,
    *,
    points: int = 1,
    full: bool = False,
    segments: int = 1,
    report: Callable[[float], None] | None = None,
) -> tuple[Outcome, float, float]:
    """Run a network of plain numbers.

    Parameters
    ----------
    network : Network
        Columns with or without a points axis.
    plan : Plan
    points : int
        Length of the points axis.
    full : bool
        Whether to sample every flow, not only the queues.
    segments : int
        Parts in which the run is made; between them it can report, and be interrupted.
    report : callable
        Called with the share of the run that is done.

    Returns
    -------
    outcome : Outcome
        NumPy arrays.
    compile_s, wall_s : float
        Seconds spent compiling, or loading what was compiled (0 if the process holds it), and integrating.
    """
    if plan.rtol is not None:
        found, compile_s, wall_s = adaptive_run.execute(network, plan, points=points, full=full, report=report)
        samples = {name: values[: plan.samples] for name, values in found.samples.items()}
        return Outcome(found.summary, samples.pop("queue"), samples, None, None), compile_s, wall_s
    warn_if_late()
    with our_settings(double=plan.dtype == "float64"):
        network = with_points(network, np.dtype(plan.dtype))
        numbers = numbers_of(plan)
        static = {"points": points, **{name: getattr(plan, name) for name in ("depth", "method", "aligned")}}
        samples = -(-plan.room // segments)
        stride = jnp.int32(plan.stride)
        first, compile_s = _begin.ready(network, numbers, **static)
        progress = first(network, numbers)
        then, more_s = _proceed.ready(network, numbers, progress, stride, samples=samples, full=full, **static)
        compile_s += more_s
        began = time.perf_counter()
        parts = []
        for segment in range(segments):
            progress, outcome = then(network, numbers, progress, stride)
            parts.append(jax.tree.map(np.asarray, outcome))
            if report is not None:
                report((segment + 1) / segments)
        wall_s = time.perf_counter() - began
    return _joined(parts, plan.samples), compile_s, wall_s


def _joined(parts: list[Outcome], samples: int) -> Outcome:
    """Join the outcomes of all segments; drop samples beyond the horizon."""
    queue = np.concatenate([part.queue for part in parts])[:samples]
    trace = {name: np.concatenate([part.trace[name] for part in parts])[:samples] for name in parts[0].trace}
    return parts[-1]._replace(queue=queue, trace=trace)


def longest_waits(network: Network, summary: running_statistics.Summary) -> np.ndarray:
    """Bound on what a packet of a run waited in queues, (points,) [s]."""
    if summary.waited is not None:
        return np.asarray(summary.waited)
    capacity = np.asarray(network.link_capacity, float)
    longest = summary.queue_max_whole_run / (capacity[:, None] if capacity.ndim == 1 else capacity)
    paths = [[queue // len(network.priorities) for queue in path] for path in network.paths]
    return np.max([longest[path].sum(axis=0) for path in paths], axis=0)


def longest_wait(network: Network, summary: running_statistics.Summary) -> float:
    """The longest of all points [s]."""
    return float(longest_waits(network, summary).max())


class OutgrownError(Exception):
    """A packet waited longer than the history holds."""

    def __init__(self, waited: float) -> None:
        super().__init__(waited)
        self.waited = waited


def with_room(job: Callable[[float | None], Any], allowance: float | None = None) -> Any:
    """Do ``job(queueing allowance)`` with `Continued` runs; again with more, if they outgrow it: few do."""
    while True:
        try:
            return job(allowance)
        except OutgrownError as error:
            allowance = 2 * error.waited


_BLOCK = 4096  # steps kept at once by `Continued.follow`


class Continued:
    """A run that continues from window to window, whose numbers may be changed in between.

    State, memory and history are carried on, so that a number changes for a running network as it would for a real
    one. Networks of equal shapes go into the same compiled loop.

    Parameters
    ----------
    network : Network
        Of plain numbers; columns with or without a points axis.
    plan : Plan
        Step, method and depth of the history are taken from it.
    points : int
        Length of the points axis.

    Raises
    ------
    OutgrownError
        By `window` and `follow`, if a packet waited longer than the plan allows for; see `with_room`.
    """

    def __init__(self, network: Network, plan: Plan, points: int = 1) -> None:
        self._plan = plan
        self._static = {"points": points, **{name: getattr(plan, name) for name in ("depth", "method", "aligned")}}
        self.steps = 0
        warn_if_late()
        self.change(network)
        with our_settings(double=plan.dtype == "float64"):
            self._progress = _begin(self._network, numbers_of(plan), **self._static)

    def change(self, network: Network) -> None:
        """Go on with other numbers, of the same shapes."""
        with our_settings(double=self._plan.dtype == "float64"):
            self._network = with_points(network, np.dtype(self._plan.dtype))

    @property
    def state(self) -> State:
        """The state now."""
        return self._progress.carry.y

    def begin_at(self, y: State) -> None:
        """Begin in a state that lasted for all time before."""
        plan, points = self._plan, self._static["points"]
        with our_settings(double=plan.dtype == "float64"):
            numbers = numbers_of(plan)
            system = system_of(self._network, points, numbers.limit)
            past = constant_past(system.remembered(y), plan.depth, not plan.aligned)
            carry = Loop(system, METHODS[plan.method], numbers.dt, plan.aligned).start(y, self._progress.carry.z, past)
            # The compiled loop is given its buffers away: no two of them may be one.
            self._progress = self._progress._replace(carry=jax.tree.map(jnp.array, carry))

    def perturb(self, share: float) -> None:
        """Make the queues longer by a share, but not where bytes in flight are counted: there it would be none's."""
        carry = self._progress.carry
        if not self._network.tracked:
            with our_settings(double=self._plan.dtype == "float64"):
                y = carry.y._replace(queue=carry.y.queue * (1.0 + share))
            self._progress = self._progress._replace(carry=carry._replace(y=y))

    def window(self, steps: int) -> running_statistics.Summary:
        """Take steps; what they come to, as NumPy arrays."""
        return self._take(steps, 1, steps, False)[-1].summary

    def follow(self, steps: int) -> tuple[Outcome, np.ndarray]:
        """Take steps, and keep each: the outcome, its samples one for each step, and their times [s].

        Steps are rounded up to whole blocks of 4096.
        """
        first = self.steps
        parts = self._take(-(-steps // _BLOCK) * _BLOCK, _BLOCK, 1, True)
        joined = _joined(parts, self.steps - first)
        return joined, np.arange(first, self.steps) * self._plan.dt

    def _take(self, steps: int, samples: int, stride: int, full: bool) -> list[Outcome]:
        with our_settings(double=self._plan.dtype == "float64"):
            last = self.steps + steps - 1  # a step is observed before it is taken
            steps_of_window = {"first": jnp.int32(self.steps), "last": jnp.int32(last), "end": jnp.int32(last)}
            numbers = numbers_of(self._plan)._replace(**steps_of_window)
            progress = self._progress._replace(statistics=running_statistics.cleared(self._progress.statistics))
            parts = []
            for _ in range(steps // (samples * stride)):
                progress, outcome = _proceed(
                    self._network, numbers, progress, jnp.int32(stride), samples=samples, full=full, **self._static
                )
                parts.append(jax.tree.map(np.asarray, outcome))
            self._progress = progress
        waited = longest_wait(self._network, parts[-1].summary)
        if waited > self._plan.allowance:
            raise OutgrownError(waited)
        self.steps += steps
        return parts
