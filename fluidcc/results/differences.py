"""Quantities compared between a fluid and a packet run, and their differences."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.lib.stride_tricks import sliding_window_view

from fluidcc.results.metrics import drain_time, settling_time, time_mean
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario

SETTLED = 0.1  # share of the fair rate within which rates count as equal
_RESOLVED = 10  # samples that a drain time must last to be one

Measured = dict[str, Any]


def measured(
    scenario: Scenario, dataset: xr.Dataset, summary: dict[str, Any], traces: Sequence[Trace], side: str, width: float
) -> Measured:
    """Collect the compared quantities of one side, from a comparison's ``dataset`` and its summary.

    Parameters
    ----------
    scenario : Scenario
    dataset : Dataset
        As in `fluidcc.results.comparison.Comparison`.
    summary : dict
        Summary of the side, over the seeds.
    traces : sequence of Trace
        Traces of the side.
    side : str
        Name of the side, as in the dataset's names.
    width : float
        Interval over which rates are averaged for the settling time [s].
    """
    link = next(row for row in summary["links"] if row["name"] == dataset.attrs["link"])
    queue, rate = dataset[f"queue_{side}"], dataset[f"rate_{side}"]
    for seeds in ("seed", "seed_first"):
        if seeds in queue.dims:
            queue, rate = queue.mean(seeds), rate.mean(seeds)
    return {
        "queue": link["queue_bytes"],
        "rates": _ensemble_rates(scenario, summary["rate_bytes_per_s"]),
        "jain": summary["jain"],
        "drain_time_s": drain_time(queue),
        "settling_time_s": settling(scenario, dataset.attrs["link"], rate, width),
        "window_bytes": _steady_window(traces),
    }


def _ensemble_rates(scenario: Scenario, rates: Sequence[float]) -> list[float]:
    """Mean rates of flows that the scenario does not tell apart: each is as good a sample as another [bytes/s]."""
    alike: dict[Any, list[int]] = {}
    for i, flow in enumerate(scenario.flows):
        same = dataclasses.replace(flow, name="", source="", target="")
        alike.setdefault(repr(same), []).append(i)
    weights = [flow.multiplicity for flow in scenario.flows]
    means = (float(np.average([rates[i] for i in each], weights=[weights[i] for i in each])) for each in alike.values())
    return list(means)


def settling(scenario: Scenario, link: str, rate: xr.DataArray, width: float) -> float | None:
    """Time from the last start until the smoothed rates of the long-lived flows over a link come within `SETTLED` [s].

    Parameters
    ----------
    scenario : Scenario
    link : str
        Its name.
    rate : DataArray, dims (time, flow)
        [bytes/s]
    width : float
        Interval over which rates are averaged [s].

    Returns
    -------
    float or None
        None with fewer than two such flows, or if they never do.
    """
    index = [each.name or f"link {i}" for i, each in enumerate(scenario.links)].index(link)
    chosen = [i for i, f in enumerate(scenario.flows) if index in f.path and math.isinf(f.size)]
    if len(chosen) < 2:
        return None
    began = max(scenario.flows[i].start for i in chosen)
    # In NumPy: xarray's rolling mean takes ten times as long, and tuning asks for hundreds.
    times = rate.time.values
    values = rate.transpose("time", "flow").values[times >= began][:, chosen]
    times = times[times >= began]
    if len(times) < 2:
        return None
    step = float(times[1] - times[0])
    samples = max(1, round(width / step))
    if samples >= len(times):
        return None
    smooth = sliding_window_view(values, samples, axis=0).mean(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.nan_to_num(np.ptp(smooth, axis=1) / smooth.mean(axis=1), nan=math.inf, posinf=math.inf)
    if bool((gap <= SETTLED).all()):
        return 0.0
    # The first time after the widest gap: later ones are those of the seeds' noise, which no finite ensemble is rid of.
    widest = int(np.argmax(gap))
    below = np.flatnonzero(gap[widest:] <= SETTLED)
    if not len(below):
        return None
    upto = slice(widest, widest + int(below[0]) + 1)
    time = settling_time(xr.DataArray(gap[upto], {"time": times[samples - 1 :][upto]}, "time"), SETTLED, 0.0)
    # The mean of an interval belongs to its middle.
    return time - (samples - 1) / 2 * step - began


def _steady_window(traces: Sequence[Trace]) -> float | None:
    """Mean window over flows, traces and the second half of the run [bytes]; None without windows."""
    if not all("window" in trace.dataset for trace in traces):
        return None
    means = []
    for trace in traces:
        window = trace["window"]
        half = window.sel(time=slice(float(window.time[-1]) / 2, None))
        means.append(float(time_mean(half).weighted(trace["multiplicity"]).mean()))
    return float(np.mean(means))


def differences(fluid: Measured, packet: Measured, least_queue: float, spacing: float) -> dict[str, float | None]:
    """Magnitudes of the differences, keys as in the command line; relative to the packets.

    None where neither side has a value, infinite where only one has. A queue below ``least_queue``, one packet,
    counts as one: what is left of an empty queue has no relative error. Drain times are not compared that samples
    ``spacing`` [s] apart do not resolve.
    """

    def relative(ours: float | None, theirs: float | None, least: float = 0.0) -> float | None:
        if ours is None or theirs is None:
            return None if ours is theirs else math.inf
        scale = max(abs(theirs), least)
        return abs(ours - theirs) / scale if scale > 0 else 0.0 if ours == theirs else math.inf

    # Where nothing is sent in the window on either side, nothing is compared.
    idle = not any(fluid["rates"]) and not any(packet["rates"])
    rates = [relative(a, b) for a, b in zip(fluid["rates"], packet["rates"], strict=True) if a or b]
    jain = (fluid["jain"], packet["jain"])
    drained = (fluid["drain_time_s"], packet["drain_time_s"])
    coarse = any(time is not None and time < _RESOLVED * spacing for time in drained)
    settled = (fluid["settling_time_s"], packet["settling_time_s"])
    queues = {
        key: None
        if idle and name in ("mean", "p95")
        else relative(fluid["queue"][name], packet["queue"][name], least_queue)
        for key, name in (("queue_mean_rel", "mean"), ("queue_p95_rel", "p95"), ("queue_peak_rel", "max_whole_run"))
    }
    return {
        **queues,
        "drain_time_rel": None if coarse else relative(*drained),
        "rate_rel_max": max((rate for rate in rates if rate is not None), default=None),
        "window_rel": relative(fluid["window_bytes"], packet["window_bytes"]),
        "jain_abs": None if None in jain else abs(jain[0] - jain[1]),
        # Rates that noise alone moves apart have nowhere to settle from.
        "settling_time_rel": None if fluid["settling_time_s"] == 0 else relative(*settled),
    }
