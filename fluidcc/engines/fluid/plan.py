"""Choosing step, horizon, sampling and history length of a run, from a network's plain numbers."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from fluidcc.contract.registry import fluid_of
from fluidcc.dde.history import ring_depth
from fluidcc.dde.stepping import method_named
from fluidcc.engines.fluid.network import Group, Network, needs
from fluidcc.errors import InputError
from fluidcc.results.memory_limit import limit, require
from fluidcc.units import RATIO, TIME, interval, quantity, show

# At 1 us the paper's DCQCN is within 1e-5 of its limit where nothing jumps, and within some 1e-3 where the queue
# passes Kmax (docs: DCQCN, Numbers); every run reports its own error.
LARGEST_STEP = 1e-6  # s
STEPS_PER_TIME_SCALE = 4  # steps in the fastest time constant of a scheme
SAMPLES = 2000  # instants that percentiles come from, equally spaced over the run
_QUEUEING_ALLOWANCE = 4e-3  # s
_MARGIN = 1.25  # of the bytes in flight over the windows: those of one step, and of the packet that a window always is
_MOST_HISTORY = 1 << 31  # bytes of one point's history, a power of two long, if nobody allows for more
_MOST_SAMPLES = 1_000_000  # kept in memory at once, for a trace of an odd spacing
TOLERANCES = 1e-9, 1e-1  # least and largest rtol
ADAPTIVE_DEPTH = 256  # records of history to begin with, where steps are chosen by their error
MOST_STEPS = 2**31 - 2**20  # the step counter is an int32


@dataclasses.dataclass(frozen=True)
class Plan:
    """Discretisation of a run.

    Parameters
    ----------
    dt : float
        Step [s].
    stride : int
        Steps between samples.
    room : int
        Samples for which arrays have room, the same for most horizons, so that these share compiled functions.
    steps : int
        Steps to the horizon, at which a run ends.
    first, last : int
        Steps at which the window of the metrics opens and closes.
    window : tuple of float
        The window as asked for [s].
    every : int
        Percentiles use each ``every``-th sample, so that they do not depend on the output grid.
    thin : int
        The trace keeps each ``thin``-th sample.
    depth : int
        Records of history.
    allowance : float
        Queueing delay that it holds in addition to the lags [s]; inf if none is followed.
    aligned : bool
        Whether all lags are whole numbers of steps.
    method : str
    dtype : str
    coarsens : bool
        Whether the lags allow twice the step too, and no queue may cross a ramp in one; if not, and if asked for, the
        history holds a quarter of it.
    rtol : float or None
        Tolerance of steps of each point's own; ``dt`` is then the grid of the samples and the window alone.
    estimates : bool
        Whether each point of a sweep to a tolerance is run again, to ten times of it.
    """

    dt: float
    stride: int
    room: int
    steps: int
    first: int
    last: int
    window: tuple[float, float]
    every: int
    thin: int
    depth: int
    allowance: float
    aligned: bool
    method: str
    dtype: str
    coarsens: bool = True
    rtol: float | None = None
    estimates: bool = False

    @property
    def samples(self) -> int:
        """Samples taken, the first at t = 0, the last at the horizon or less than a stride before."""
        return self.steps // self.stride + 1

    @property
    def lag_limit(self) -> float:
        """Longest lag that the history holds [s]."""
        return (self.depth - 3) * self.dt

    def to_tolerance(self, factor: float) -> Plan:
        """Return the same run to a tolerance ``factor`` times as large."""
        assert self.rtol is not None
        return dataclasses.replace(self, rtol=factor * self.rtol, estimates=False)

    def halved(self) -> Plan:
        """Return the same run with half the step."""
        twice = {name: 2 * getattr(self, name) for name in ("stride", "steps", "first", "last")}
        return dataclasses.replace(self, dt=self.dt / 2, **twice)

    def doubled(self) -> Plan:
        """Return the run with twice the step; it may end a step past the horizon, and its samples fall elsewhere."""
        half = {name: -(-getattr(self, name) // 2) for name in ("stride", "steps", "first", "last")}
        return dataclasses.replace(self, dt=self.dt * 2, **half)

    @property
    def doubles(self) -> bool:
        """Check whether the lags and the window are whole numbers of double steps."""
        return self.coarsens and self.first % 2 == 0 and self.last % 2 == 0


def plan_of(
    network: Network,
    *,
    until: Any,
    window: Any = None,
    dt: Any = None,
    method: str = "heun",
    dtype: str = "float64",
    sample_interval: Any = None,
    samples: int = SAMPLES,
    queueing_allowance: float | None = None,
    halving: bool = False,
    longest_lag: Any = None,
    memory: Any = None,
    rtol: Any = None,
) -> Plan:
    """Plan a run. Times may be text with units.

    Parameters
    ----------
    network : Network
        With plain numbers; columns may have points.
    until : quantity
        Horizon [s].
    window : pair of quantity, or text "A:B"
        Interval of the metrics [s]; the second half of the run by default.
    dt : quantity
        Step [s]; chosen from the lags and the schemes' time constants by default. Where all lags are equal
        it is rounded to divide them.
    method : {"heun", "rk4", "euler"}
    dtype : {"float64", "float32"}
    sample_interval : quantity
        Spacing of the trace [s], rounded to whole steps; ``until/2000`` by default. Percentiles do not
        depend on it.
    samples : int
        Samples for percentiles.
    queueing_allowance : float
        Longest queueing delay that the history holds [s]; by default 4 ms, or what all windows fill if every
        flow has one.
    halving : bool
        Whether the history must also hold the run with half the step, and with a quarter where there is none with twice
        the step (`Plan.doubles`).
    longest_lag : quantity
        Bound on lags that are traced, and so are no plain numbers [s]; ``dt`` must then be given.
    memory : quantity
        What the history of a point may take [bytes]; see `fluidcc.results.memory_limit.limit`.
    rtol : float
        Tolerance of a step, instead of ``dt`` (`fluid.adaptive_run`).

    Raises
    ------
    InputError
        If the horizon, window, step or interval make no sense, or the lags take too much memory.
    """
    until, window = quantity(until, TIME, "until"), interval(window, "window")
    dt, sample_interval, longest_lag = (
        None if value is None else quantity(value, TIME, name)
        for value, name in ((dt, "dt"), (sample_interval, "sample interval"), (longest_lag, "longest lag"))
    )
    method_named(method)
    if rtol is not None:
        rtol = _tolerance(network, rtol, dt, method, dtype)
    if dtype == "float32" and network.tracked:
        raise InputError("dtype: float32 is too coarse to count the bytes in flight; write float64")
    if dtype not in ("float64", "float32"):
        raise InputError(f"dtype: {str(dtype)[:20]!r} is unknown; write float64 or float32")
    if not 0 < until < math.inf:
        raise InputError(f"until: {show(until, TIME)} is no horizon; write for example 100ms")
    lags = _lags(network) if longest_lag is None else [longest_lag]
    shortest = min(lags)
    if shortest <= 0:
        raise InputError("delay: a lag of 0 cannot be modelled as a delay; give a delay or feedback delay above 0")
    step = dt if dt is not None else _default_step(network, shortest)
    if not 0 < step < math.inf:
        raise InputError(f"dt: {show(step, TIME)} is no step; write for example 1us")
    if shortest < step * (1 - 1e-9):
        raise InputError(
            f"dt: {show(step, TIME)} exceeds the shortest lag {show(shortest, TIME)}; give a dt of at most that"
        )
    # An interval between two packets (`queues.Earlier`) is no whole number of steps.
    one_lag = longest_lag is None and not network.queueing and max(lags) - shortest <= 1e-12 * shortest
    aligned = one_lag and not _comparing(network)
    if aligned:
        step = float(f"{shortest / math.ceil(shortest / step * (1 - 1e-9)):.15g}")
    steps = math.ceil(until / step * (1 - 1e-9))
    coarsens = round(shortest / step) % 2 == 0 if aligned and method != "rk4" else shortest >= 2 * step
    coarsens &= not _jumps(network, step)
    window = window or (until / 2, until)
    first, last = _window_steps(window, until, step, steps)
    # In addition to the run with half the step: that with twice, which is cheaper, or else that with a quarter.
    parts = 1 if not halving else 2 if coarsens and first % 2 == last % 2 == 0 else 4
    if steps > MOST_STEPS // parts:
        raise InputError(
            f"until: {show(until, TIME)} takes {steps:.3g} steps of {show(step, TIME)}; "
            "give a shorter one, or a larger dt"
        )
    coarse = max(1, math.ceil(steps / samples))
    # One that divides the steps, if there is one near, so that the last sample is at the horizon.
    coarse = next((k for k in range(coarse, 2 * coarse) if steps % k == 0), coarse)
    every, thin, stride = 1, 1, coarse
    if sample_interval is not None:
        if not 0 < sample_interval < math.inf:
            raise InputError(f"sample interval: {show(sample_interval, TIME)} is none; write for example 10us")
        wanted = max(1, round(sample_interval / step))
        stride = math.gcd(coarse, wanted)
        if samples * (coarse // stride) > _MOST_SAMPLES:  # the nearest spacing that fits
            stride = max(d for d in range(1, min(wanted, coarse) + 1) if coarse % d == 0)
        every, thin = coarse // stride, max(1, round(wanted / stride))
    if queueing_allowance is None:
        queueing_allowance = _longest_wait(network)
    longest = max(lags) + (queueing_allowance if network.queueing else 0.0)
    longest += _longest_interval(network) if longest_lag is None else 0.0
    finest = step / parts
    if not longest <= MOST_STEPS * finest:
        raise InputError(
            f"delay: a lag of up to {show(longest, TIME)} is {longest / finest:.3g} steps of {show(finest, TIME)}; "
            "give shorter delays, fewer bytes in flight, or a larger dt"
        )
    plan = Plan(
        dt=step,
        stride=stride,
        room=samples * every + 1,
        steps=steps,
        first=first,
        last=last,
        window=window,
        every=every,
        thin=thin,
        depth=ring_depth(longest, finest),
        allowance=queueing_allowance if network.queueing else math.inf,
        aligned=aligned and method != "rk4",
        method=method,
        dtype=dtype,
        coarsens=coarsens,
    )
    if rtol is not None:
        plan = dataclasses.replace(
            plan, rtol=rtol, depth=ADAPTIVE_DEPTH, allowance=math.inf, aligned=False, method="rk4"
        )
    waits = f", of queues {show(queueing_allowance, TIME)}," if network.queueing else ""
    require(
        history_bytes(network, plan),
        limit(memory, _MOST_HISTORY),
        f"delay: to remember a lag of {show(longest, TIME)}{waits} in steps of {show(finest, TIME)} takes",
        "give shorter delays, or a larger dt",
    )
    return plan


def _tolerance(network: Network, rtol: Any, dt: Any, method: str, dtype: str) -> float:
    """Parse and check a tolerance, and check that the network can be run to one."""
    value = quantity(rtol, RATIO, "rtol")
    low, high = TOLERANCES
    if not low <= value <= high:
        raise InputError(f"rtol: {value:g} is not between {low:g} and {high:g}; write for example 1e-5")
    if dt is not None or method != "heun" or dtype != "float64":
        raise InputError("dt, method, dtype: rtol chooses steps itself, in float64; leave them out, or leave rtol out")
    if network.tracked or network.ingress is not None or _comparing(network):
        names = {group.parameters.name for group in network.groups if needs(group.parameters)}
        why = f"{', '.join(sorted(names))} changes state in jumps, or compares delays" if names else "traffic classes"
        raise InputError(f"rtol: steps cannot be chosen by their error here ({why}); write dt, or leave both out")
    if network.size is not None:
        raise InputError("rtol: flows that end are counted on a grid of steps; write dt, or leave both out")
    return value


def history_bytes(network: Network, plan: Plan, points: int = 1) -> int:
    """Memory that the history of some points takes [bytes]."""
    rows = remembered_rows(network) * (1 if plan.aligned else 4)
    return plan.depth * rows * np.dtype(plan.dtype).itemsize * points


def remembered_rows(network: Network) -> int:
    """Signals that the history keeps: queue (and traffic) of every link, rate (or bytes) of every flow."""
    rows = (3 if network.tracked else 1) * network.queues + len(network.flows)
    if network.ingress is not None:
        return 6 * len(network.ingress.hops) + network.queues + network.ingress.count + len(network.flows)
    return rows if len(network.priorities) == 1 else rows + 2 * network.queues + 3 * network.links


def _jumps(network: Network, step: float) -> bool:
    """Check whether a queue may cross a link's whole ramp in a step.

    A run may then lock to its grid: runs with a step and with twice of it agree to many digits, and both are wrong.
    """
    if any(isinstance(value, Tracer) for value in (network.kmin, network.kmax, network.capacity)):
        return False
    steepest = np.asarray(network.kmin) + np.asarray(network.capacity) * step
    return bool((np.asarray(network.kmax) < steepest).any())  # both are infinite where nothing is marked


def _comparing(network: Network) -> list[Group]:
    """Return the groups whose scheme compares the delays of two packets."""
    return [group for group in network.groups if "delay" in needs(group.parameters)]


def _longest_interval(network: Network) -> float:
    """Bound on the time between two packets whose delays a scheme compares [s]; 0 if none does."""
    groups = _comparing(network)
    if any(isinstance(leaf, Tracer) for group in groups for leaf in jax.tree.leaves(group.parameters)):
        raise InputError(
            "longest_lag: parameters of a scheme that compares delays are traced; give a bound on all lags"
        )
    rules = [(group.parameters, fluid_of(group.parameters).longest_interval) for group in groups]
    found = [longest(parameters) for parameters, longest in rules if longest is not None]
    return max((float(np.nanmax(np.asarray(each))) for each in found), default=0.0)


def _longest_wait(network: Network) -> float:
    """Bound on the queueing delay along a path [s]."""
    rules = [(group, fluid_of(group.parameters).largest_window) for group in network.groups]
    columns = (network.capacity, network.multiplicity, *(group.parameters for group in network.groups))
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(columns)):
        return _QUEUEING_ALLOWANCE
    windows = np.zeros((len(network.flows), 1))
    for group, largest_window in rules:
        if largest_window is None:
            return _QUEUEING_ALLOWANCE
        largest = np.asarray(largest_window(group.parameters), float)
        windows[list(group.flows)] = np.nanmax(np.atleast_2d(largest.T).T, axis=-1, keepdims=True)
    per_window = np.nanmax(np.asarray(network.packet) / np.min(np.asarray(network.window_packet)))
    counts = np.asarray(network.multiplicity, float)
    with np.errstate(over="ignore"):  # beyond all measure is refused by the lag that follows
        inflight = np.sum(windows * np.nanmax(counts.reshape(len(counts), -1), axis=-1, keepdims=True)) * per_window
    hops = max(len(path) for _, path in network.flows)
    return _MARGIN * hops * float(inflight / np.nanmin(np.asarray(network.capacity)))


def _window_steps(window: tuple[float, float], until: float, step: float, steps: int) -> tuple[int, int]:
    opens, closes = window
    if not 0 <= opens < closes <= until * (1 + 1e-9):
        raise InputError(
            f"window: {show(opens, TIME)}:{show(closes, TIME)} does not lie inside the run of {show(until, TIME)}; "
            f"write for example {show(until / 2, TIME)}:{show(until, TIME)}"
        )
    last = min(round(closes / step), steps)
    return max(0, min(round(opens / step), last - 1)), last


def _lags(network: Network) -> list[float]:
    columns = (network.marking_lag, network.own_lag, network.arrival_lag)
    if network.ingress is not None:
        columns += (network.ingress.delay, network.ingress.hop_lag, network.ingress.ack_lag)
    if any(isinstance(column, Tracer) for column in columns):
        raise InputError("longest_lag: a delay is traced; give a bound on all lags, for example longest_lag='1ms'")
    return [float(lag) for column in columns if column is not None for lag in np.ravel(np.asarray(column))]


def _default_step(network: Network, shortest: float) -> float:
    fastest = min(
        float(np.nanmin(np.asarray(fluid_of(group.parameters).time_scale(group.parameters, group.line_rate))))
        for group in network.groups
    )
    return min(LARGEST_STEP, shortest, fastest / STEPS_PER_TIME_SCALE)
