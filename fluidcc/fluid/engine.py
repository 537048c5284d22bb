"""Running a network: one compiled loop for every value of every parameter."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fluidcc.fluid import tally as tallies
from fluidcc.fluid.history import constant_past
from fluidcc.fluid.kernel import Carry, Clock, Loop, advance
from fluidcc.fluid.methods import METHODS
from fluidcc.fluid.network import Network, with_points
from fluidcc.fluid.plan import Plan
from fluidcc.fluid.queues import QueueNetwork, State, groups_observables


class Outcome(NamedTuple):
    """Arrays of a run; the last axis is the point."""

    summary: tallies.Summary
    queue: Any  # (samples, links, points) [bytes]
    trace: dict[str, Any]  # (samples, flows, points) each; empty if only metrics were asked for
    state: State
    finish: Any  # (flows, points) time [s] of the last byte; None if all flows are long-lived
    drain: Any  # (flows, points) queueing delay [s] then


def integrate(
    network: Network,
    dt: Array,
    stride: int | Array,
    first: Array,
    last: Array,
    limit: Array,
    *,
    points: int,
    samples: int,
    depth: int,
    method: str,
    aligned: bool,
    full: bool,
) -> Outcome:
    """Integrate a network with a points axis from its start; pure, traceable and differentiable.

    Parameters
    ----------
    network : Network
    dt : Array, shape ()
        Step [s].
    stride : int or Array
        Steps between samples; an int makes the loop differentiable in reverse.
    first, last : Array, shape ()
        Window of the metrics, in steps.
    limit : Array, shape ()
        Longest lag that the history holds [s]; longer ones are read as this.
    points, samples, depth : int
    method : str
    aligned : bool
    full : bool
        Whether to sample every flow, not only the queues.
    """
    system = QueueNetwork(network, points, limit)
    y, z = system.start(dt.dtype)
    loop = Loop(system, METHODS[method], dt, aligned)
    carry = loop.start(y, z, constant_past(system.remembered(y), depth, not aligned))
    tally = tallies.start(network.links, len(network.flows), points, dt.dtype)

    def sample(now: Carry) -> tuple[Array, dict[str, Array]]:
        if not full:
            return now.y.queue, {}
        clock = Clock(now.step, now.step * dt, dt)
        shown = {name: values for name, (values, _, _) in groups_observables(system, now.y).items()}
        shown |= {"rate": system.sending(clock, now.y, now.z), "pacing_rate": system.rates(now.y)}
        return now.y.queue, shown

    def observe(counts: tallies.Tally, now: Carry) -> tallies.Tally:
        return tallies.observe(system, first, last, counts, now, dt)

    carry, tally, (queue, trace) = advance(loop, carry, tally, observe, sample, samples=samples, stride=stride)
    summary = tallies.summarise(system, observe(tally, carry), dt)
    return Outcome(summary, queue, trace, carry.y, carry.z.finish, carry.z.drain)


_STATIC = ("points", "samples", "depth", "method", "aligned", "full")
_jitted = partial(jax.jit, static_argnames=_STATIC)(integrate)
_compiled: dict[Any, Any] = {}
_lock = threading.Lock()


def execute(network: Network, plan: Plan, *, points: int = 1, full: bool = False) -> tuple[Outcome, float, float]:
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

    Returns
    -------
    outcome : Outcome
        NumPy arrays.
    compile_s, wall_s : float
        Seconds spent compiling (0 if this shape of problem was compiled before) and integrating.
    """
    with jax.enable_x64(plan.dtype == "float64"):
        dtype = np.dtype(plan.dtype)
        network = with_points(network, dtype)
        scalars = (
            jnp.asarray(plan.dt, dtype),
            *(jnp.int32(n) for n in (plan.stride, plan.first, plan.last)),
            jnp.asarray(plan.lag_limit, dtype),
        )
        static = {
            "points": points,
            "samples": plan.samples,
            "depth": plan.depth,
            "method": plan.method,
            "aligned": plan.aligned,
            "full": full,
        }
        leaves, treedef = jax.tree.flatten(network)
        key = (treedef, tuple(leaf.shape for leaf in leaves), dtype, tuple(static.values()))
        began = time.perf_counter()
        with _lock:
            fresh = key not in _compiled
            if fresh:
                _compiled[key] = _jitted.lower(network, *scalars, **static).compile()
        compile_s = time.perf_counter() - began if fresh else 0.0
        began = time.perf_counter()
        outcome = jax.block_until_ready(_compiled[key](network, *scalars))
        wall_s = time.perf_counter() - began
        return jax.tree.map(np.asarray, outcome), compile_s, wall_s
