"""Parts that the HPCC figures share: incast scenarios of a preset, metrics of queues, traces side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.builders import incast
from fluidcc.results import metrics
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import Scenario, resolve
from fluidcc.schemes.hpcc import PRESETS

# Algorithm 1 as printed, and what the authors' public simulator does: section 5.4 was made with a simulator.
PRESET_NAMES = {"hpcc-eval": "Algorithm 1", "hpcc-sim": "the authors' simulator"}


def hpcc_incast(senders: int, preset: str = "hpcc-eval", **parameters: Any) -> Scenario:
    """Section 5.4: senders and one receiver on a switch, links of 100 Gbps and 1 us; further parameters of HPCC."""
    found = PRESETS[preset]
    scheme = dataclasses.replace(found.scheme, **parameters)
    return incast(senders, rate="100Gbps", delay="1us", scheme=scheme, **found.network)


def increase(scenario: Scenario) -> str:
    """Name the conditions that a verdict's numbers depend on: W_AI, and the payload of packets."""
    found = resolve(scenario)
    return f"W_AI = {found.flows[0].scheme.w_ai:g} B, packets of {found.packet_size:g} B"


def drain_time(time: np.ndarray, queue: np.ndarray) -> float:
    """Return the time from a queue's peak to the first sample at which it has drained, or to the end [s]."""
    drained = metrics.drain_time(xr.DataArray(queue, {"time": time}, ("time",)), between=False)
    return float(time[-1] if drained is None else drained) - float(time[queue.argmax()])


def first_since(time: np.ndarray, holds: np.ndarray, start: float) -> float:
    """Return the time from a start to the first sample since at which something holds, or to the end [s]."""
    at = np.flatnonzero(holds & (time >= start))
    return float(time[at[0] if at.size else -1]) - start


def rebounds(queue: np.ndarray, share: float) -> int:
    """Count how often a queue that fell rises again, both by at least a share of its peak."""
    least = share * float(queue.max())
    count, rising, low, high = 0, True, 0.0, 0.0
    for value in queue:
        if rising:
            high = max(high, value)
            if value <= high - least:
                rising, low = False, value
        else:
            low = min(low, value)
            if value >= low + least:
                rising, high, count = True, value, count + 1
    return count


def slope(sums: np.ndarray, spacing: float, every: int) -> np.ndarray:
    """Compute rates from sums sampled at a spacing [s], over intervals of n samples; the first axis is time."""
    return np.diff(sums[::every], axis=0) / (spacing * every)


def aligned(traces: Mapping[str, Trace], dimension: str, variables: tuple[str, ...]) -> xr.Dataset:
    """Variables of traces of the same links and flows in one dataset, along a new dimension."""
    names = xr.DataArray(list(traces), dims=dimension, name=dimension)
    parts = [trace.dataset[list(variables)] for trace in traces.values()]
    return xr.concat(parts, dim=names, combine_attrs="drop_conflicts")
