"""Fairness of a run over time, and the time at which it becomes fair."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.builders import toml_file as scenario_file
from fluidcc.errors import InputError
from fluidcc.results import metrics
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Flow
from fluidcc.surface import public
from fluidcc.units import TIME, quantity, show


@public()
def time_to_fairness(
    trace: Trace, level: float = 0.95, variable: str | None = None, interval: Any = None, *, lasting: bool = True
) -> float:
    """Time from the last flow's start until Jain's index stays at or above a level, while all flows run [s].

    Parameters
    ----------
    trace : Trace
    level : float
        In (0, 1].
    variable, interval
        As of `jain_over_time`.
    lasting : bool
        False: until it is there for the first time, whether it stays or not.

    Returns
    -------
    float
        NaN if it is below when the first flow ends, or the trace (not lasting: if it is at no time there), or if the
        trace ends before all have started.

    Raises
    ------
    InputError
        As `jain_over_time`; or if a flow ends before the last one starts.
    """
    if not 0 < level <= 1:
        raise InputError(f"level: {level:g} is no fairness index; give one in (0, 1], for example 0.95")
    last = float(_starts(trace).max())
    end = float(finish_times(trace).min())
    if end <= last:
        raise InputError("time_to_fairness: a flow ends before the last one starts; give them more bytes")
    index = jain_over_time(trace, variable, interval)
    index = index[(index.time.values >= last) & (index.time.values <= end)]
    fair = index.values >= level
    first = metrics.lasting_from(fair) if lasting else int(fair.argmax()) if fair.any() else None
    if first is None:
        return float("nan")
    return float(index.time[first]) - last if first else 0.0


@public()
def jain_over_time(trace: Trace, variable: str | None = None, interval: Any = None) -> xr.DataArray:
    """Jain's fairness index at each time, over the flows that have started and not ended by then.

    Parameters
    ----------
    trace : Trace
    variable : str
        What to compare: ``"window"`` by default where all flows have one, else ``"rate"``.
    interval : quantity
        Compare means over so much time before each sample instead [s]: rates of packets are too coarse without.
        A flow counts once it has run so long.

    Returns
    -------
    DataArray, dims (time,)
        NaN where nobody sends.

    Raises
    ------
    InputError
        If there is no such variable, or the interval is shorter than a sample.
    """
    d = trace.dataset
    if variable is None:
        windows = "window" in d and bool(np.isfinite(d["window"]).all())
        variable = "window" if windows else "rate"
    if variable not in d or d[variable].dims != ("time", "flow"):
        known = [str(name) for name, values in d.items() if values.dims == ("time", "flow")]
        raise InputError(f"variable: {variable[:40]!r} is none of {', '.join(known)}")
    values, times = d[variable].values, d.time.values
    back = 0.0
    if interval is not None:
        back = quantity(interval, TIME, "interval")
        steps = round(back / float(times[1] - times[0]))
        if steps < 1:
            raise InputError(f"interval: {show(back, TIME)} is shorter than a sample; give several of them")
        sums = np.cumsum(np.concatenate([np.zeros_like(values[:1]), values]), axis=0)
        ahead = np.maximum(np.arange(len(values)) + 1 - steps, 0)
        values = (sums[1:] - sums[ahead]) / (np.arange(len(values)) + 1 - ahead)[:, None]
    running = (times[:, None] >= _starts(trace) + back) & (times[:, None] <= finish_times(trace))
    weights, shares = d.multiplicity.values * running, np.where(running, values, 0.0)
    found = metrics.jain(shares, weights)
    attrs = {"units": "1", "long_name": f"Jain's index of the flows' {variable}s"}
    return xr.DataArray(found, {"time": d.time}, ("time",), attrs=attrs)


@public()
def finish_times(trace: Trace) -> np.ndarray:
    """Return the end of each flow, (flows,) [s]; infinite if it has not ended.

    Parameters
    ----------
    trace : Trace
        A run of either engine.

    Returns
    -------
    ndarray, shape (flows,)
    """
    sizes = [flow.size for flow in _flows(trace.dataset.attrs["scenario"])]
    return metrics.end_times(_all_starts(trace), sizes, trace.summary["fct_s"])[_shown(trace)]


def _starts(trace: Trace) -> np.ndarray:
    """Return the start of each flow of a trace [s]; infinite if it waited for other flows that never ended."""
    return np.array(_all_starts(trace))[_shown(trace)]


def _all_starts(trace: Trace) -> list[float]:
    flows = _flows(trace.dataset.attrs["scenario"])
    began = trace.summary.get("began_s")  # traces of other engines, or of earlier versions, have none
    if began is None:
        return [float(flow.start) for flow in flows]
    # A flow that had not begun at the end of the run begins as it says, unless it waits.
    return [
        (math.inf if flow.after else float(flow.start)) if at is None else at
        for flow, at in zip(flows, began, strict=True)
    ]


def _shown(trace: Trace) -> list[int]:
    """Return the indices of the scenario's flows that a trace has: some, if flows were selected."""
    names = [flow.name or f"flow {i}" for i, flow in enumerate(_flows(trace.dataset.attrs["scenario"]))]
    there = trace.dataset.flow.values.tolist()
    return list(range(len(names))) if there == names else [names.index(name) for name in there]


@functools.lru_cache(maxsize=16)
def _flows(scenario: str) -> tuple[Flow, ...]:
    """Flows of a trace's scenario; to read a hundred of them takes longer than all that is computed here."""
    return scenario_file.from_toml(scenario).flows
