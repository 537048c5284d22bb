"""Running transfers, and when each began and ended."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.engines.flow_level import dynamics, ideal
from fluidcc.engines.flow_level.layout import Alone, Paths, Ports, alone_of, layout_of
from fluidcc.engines.flow_level.load import Load, load_of, shares_of
from fluidcc.engines.flow_level.transfers import Transfers, Waits, transfers_of, waits_of
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.surface import constructor, public
from fluidcc.units import TIME, quantity, show, whole

_APART = 1 / 8  # of the shortest round trip, within which the ideal's events share the work
_STEPS = 8  # of the dynamics, in the longest round trip
MODELS = ("ideal", "dynamics")
_AT_ONCE = 1 << 10  # events between reports


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FlowTimes:
    """Start and end times of transfers, and the load of ports meanwhile.

    Parameters
    ----------
    start, received, answered : ndarray, shape (transfers,)
        Start, arrival of the last byte, and of its ACK at the sender [s]; NaN for those that did not begin or end.
    left : ndarray, shape (transfers,)
        Time at which the last byte had left its host [s].
    alone : ndarray, shape (transfers,)
        Time from the start to the last ACK in an idle network [s].
    ports : list of str
        ``source->target`` of each direction of a cable, NICs among them.
    load : ndarray, shape (intervals, ports)
        Share of its rate that each port sent, on average over an interval, ACKs among it.
    interval : float
        [s].
    numbers : dict
        ``model``, ``setup_s``, ``compile_s``, ``wall_s`` (the loop alone), ``ended``.
    """

    start: np.ndarray
    received: np.ndarray
    answered: np.ndarray
    left: np.ndarray
    alone: np.ndarray
    ports: list[str]
    load: np.ndarray
    interval: float
    numbers: dict[str, Any]

    @property
    def completion(self) -> np.ndarray:
        """Time from the start to the last ACK [s], (transfers,); NaN for those that did not end."""
        return self.answered - self.start

    @property
    def makespan(self) -> float:
        """Time at which the last byte of all arrived [s]; NaN if one did not."""
        return float(np.max(self.received))

    def __repr__(self) -> str:
        """Show how many transfers ended, and when the last did."""
        ended = int(np.isfinite(self.received).sum())
        last = f", the last at {np.nanmax(self.received):.6g} s" if ended else ""
        return f"<FlowTimes of {len(self.start)} transfers ({self.numbers['model']}): {ended} ended{last}>"


@public()
def flow_times(
    scenario: Scenario,
    transfers: Transfers | None = None,
    *,
    model: str = "ideal",
    until: Any = None,
    apart: Any = None,
    dt: Any = None,
    seed: int = 0,
    report: Callable[[float], None] | None = None,
) -> FlowTimes:
    """Compute when flows end, by rates instead of packets.

    Parameters
    ----------
    scenario : Scenario
        Of finite flows, which may wait for others, or of the connections that ``transfers`` take.
    transfers : Transfers, optional
        What is sent; each flow of the scenario once by default.
    model : {"ideal", "dynamics"}
        Max-min fair rates at each moment, those of an ideal scheme; or the flows' own scheme, step by step, over ports
        with queues and flow control.
    until : quantity, optional
        Time at which the run ends [s]; by default, when all transfers have ended.
    apart : quantity, optional
        Events that are less than this apart share the work [s] (ideal): an eighth of the shortest round trip by
        default. 0: none do.
    dt : quantity, optional
        Step [s] (dynamics): an eighth of the longest round trip by default, or less, so that no path has more ports
        than its way there has steps.
    seed : int
        Seed of the marks that make CNPs (dynamics).
    report : callable, optional
        Called with the share of transfers that have ended.

    Returns
    -------
    FlowTimes

    Raises
    ------
    InputError
        If the scenario has what the engine leaves out, transfers wait for each other, or an option makes no sense.

    Examples
    --------
    >>> from fluidcc.workloads.fabrics import named_topology
    >>> flows = [(0, 2, 0.0, "1MB"), (1, 2, 0.0, "1MB", (0,))]  # the second begins as the first has ended
    >>> scenario = named_topology("leaf-spine:2x1x2").scenario(flows, scheme="hpcc")
    >>> times = flow_times(scenario)
    >>> bool(times.start[1] == times.answered[0])
    True
    """
    if model not in MODELS:
        raise InputError(f"model: {str(model)[:20]!r} is unknown; write {', '.join(MODELS)}")
    began = time.perf_counter()
    scenario = resolve(scenario)
    if not isinstance(transfers, Transfers | None):
        raise InputError(f"transfers: {repr(transfers)[:40]} is no Transfers; write Transfers([0, 0], [1e6, 2e6])")
    if report is not None and not callable(report):
        raise InputError(f"report: {repr(report)[:40]} cannot be called; give a function of the share that is done")
    if model == "ideal" and dt is not None:
        raise InputError("dt: the ideal goes from event to event, without steps; leave it out, or write 'dynamics'")
    transfers = transfers_of(scenario) if transfers is None else transfers
    if transfers.flow.min() < -1 or not 0 <= transfers.flow.max() < len(scenario.flows):
        raise InputError(f"transfers flow: names none of the scenario's {len(scenario.flows)}, counted from 0")
    seed = whole(seed, 0, (1 << 63) - 1, "seed")
    horizon = math.inf if until is None else quantity(until, TIME, "until")
    if not horizon > 0:
        raise InputError(f"until: {show(horizon, TIME)} is no horizon; write for example 10ms")
    topology, ports, paths = layout_of(scenario)
    alone, waits = alone_of(scenario, paths, transfers), waits_of(scenario, transfers)
    if apart is None:
        apart = float(paths.rtt.min()) * _APART
    else:
        apart = quantity(apart, TIME, "apart")
        if not 0 <= apart < math.inf:
            raise InputError(f"apart: {show(apart, TIME)} is no time; write 0, or for example 1us")
    setup = time.perf_counter() - began
    if model != "ideal":
        if dt is None:
            # A last byte takes a step from port to port: more steps than half a round trip has would make it late.
            dt = min(float(paths.rtt.max()) / _STEPS, float((paths.rtt / (2 * paths.hops)).min()))
        else:
            dt = quantity(dt, TIME, "dt")
        if not 0 < dt <= paths.rtt.min() / 2:
            raise InputError(
                f"dt: {show(dt, TIME)} is no step; write at most half of the shortest round trip, "
                f"{show(float(paths.rtt.min()) / 2, TIME)}"
            )
        found = dynamics.run(scenario, transfers, topology, ports, paths, alone, waits, dt, horizon, seed, report)
    else:
        found = _ideal(scenario, transfers, ports, paths, alone, waits, horizon, apart, report)
    return _made(transfers, ports, alone, *found, horizon, setup)


def _made(
    transfers: Transfers, ports: Ports, alone: Alone, begins: np.ndarray, ends: np.ndarray, load: Load,
    numbers: dict[str, Any], until: float, setup: float,
) -> FlowTimes:  # fmt: skip
    begins, ends = (np.where(each <= until, each, np.nan) for each in (begins, ends))  # later ones may be known too
    ended = np.isfinite(ends[:, 1])
    last = float(np.max(ends[:, 1])) if ended.all() else until
    return FlowTimes(
        begins,
        ends[:, 0],
        ends[:, 1],
        ends[:, 2],
        alone.answered,
        ports.names,
        shares_of(load, ports.rate, last),
        float(load.width[0]),
        {**numbers, "setup_s": setup, "ended": int(ended.sum())},
    )


def _ideal(
    scenario: Scenario, transfers: Transfers, ports: Ports, paths: Paths, alone: Alone, waits: Waits, until: float,
    apart: float, report: Callable[[float], None] | None,
) -> tuple[np.ndarray, np.ndarray, Load, dict[str, Any]]:  # fmt: skip
    count, many = len(transfers), len(ports.rate)
    utilisation = min(float(getattr(flow.scheme, "target_utilisation", 1.0)) for flow in scenario.flows)
    slowest = np.where(paths.there >= 0, ports.rate[paths.there], np.inf).min(axis=1)
    wire, flow = alone.wire, np.ascontiguousarray(transfers.flow, np.int32)
    # What leaves within a round trip is sent as fast as if nothing were held back.
    first = np.minimum(wire, (slowest * paths.rtt)[flow])
    tail = np.column_stack([alone.received, alone.answered]) - (wire / slowest[flow])[:, None]
    ends = np.full((count, 3), np.nan)
    begins = np.full(count, 0.0)
    kept = np.array([-1.0, 0.0, 0.0, count])
    load = load_of(many, float(paths.rtt.max()))
    zeros = [np.zeros(many) for _ in range(4)]
    arguments = (
        paths.there, paths.back, paths.ack_share, flow, np.where(ports.host, 1.0, utilisation) * ports.rate, wire,
        (1.0 - utilisation) * first, tail, transfers.start, tuple(waits), begins, ends, kept,
    )  # fmt: skip
    work = (
        np.zeros(count, np.int32), np.zeros(count, np.int32), np.zeros(count), np.zeros(count),
        zeros[0], zeros[1], np.zeros(many, np.int64), zeros[2], np.zeros(many, np.int8), zeros[3], tuple(load),
    )  # fmt: skip
    clock = time.perf_counter()
    ideal.run(*arguments, 0, apart, until, *work)
    compile_s, clock = time.perf_counter() - clock, time.perf_counter()
    while kept[ideal.LEFT] > 0:
        before = kept.copy()
        ideal.run(*arguments, _AT_ONCE, apart, until, *work)
        if report is not None:
            report(1.0 - kept[ideal.LEFT] / count)
        if (kept == before).all():
            break
    wall = time.perf_counter() - clock
    waiting = np.flatnonzero(waits.awaits > 0)
    if len(waiting) and kept[ideal.HELD] == kept[ideal.ACTIVE] == 0:
        raise InputError(f"transfer {waiting[0]}: waits for itself by way of others; break the circle in after")
    begins[waits.awaits > 0] = np.nan
    return begins, ends, load, {"model": "ideal", "compile_s": compile_s, "wall_s": wall}
