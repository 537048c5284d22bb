"""Parts that the DCQCN figures share: scenarios side by side in one run, packet runs, the testbed's switch, files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fluidcc.engines.run import simulate
from fluidcc.files import write_netcdf
from fluidcc.progress import PATIENCE, Bar
from fluidcc.results.schema import METRICS
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import PFC, RED, Flow, Link, Scenario
from fluidcc.units import Rate

GBPS = Rate(1e9 / 8)
LINE_RATE = 40 * GBPS
WIDTH = 11.0  # inches: at 100 pixels per inch a text of 9 points stays legible

# DCQCN section 4, Arista 7050QX32: 12 MB for 32 ports and 8 priorities, each with t_flight = 22.4 KB of headroom, and
# RESUME two MTU below PAUSE. With beta = 8, t_PFC = beta (B - 8 n t_flight - s)/8 is all that is free: alpha = 1.
# Our switches have one priority and about four ports, whose headroom the engine sets aside; the others' goes here.
_HEADROOM = 22.4e3
SWITCH: dict[str, Any] = {
    "buffer": 12e6 - (8 * 32 - 4) * _HEADROOM,
    "pfc": PFC(alpha=8 / 8, headroom=_HEADROOM, xon_gap=2 * 1500.0),
}
SWITCH_NOTE = (
    "switches as in section 4: 12 MB less the headroom of 32 ports and 8 priorities, 22.4 KB each; beta = 8 is read as "
    "one port may fill all that is free (t_PFC = B - 8 n t_flight - s); RESUME 3 KB below"
)

# A cell of a picture: scheme, marking, and its flow classes as (number of flows, initial rate).
Cell = tuple[Any, RED | None, Sequence[tuple[float, float]]]


def side_by_side(cells: Sequence[Cell]) -> Scenario:
    """Many single bottlenecks in one scenario, so that one run gives all their traces.

    They share nothing: link k is crossed only by the flows of cell k.
    """
    links = tuple(Link(rate=LINE_RATE, marking=marking) for _, marking, _ in cells)
    flows = tuple(
        Flow(path=(k,), scheme=scheme, line_rate=LINE_RATE, multiplicity=count, initial_rate=rate)
        for k, (scheme, _, classes) in enumerate(cells)
        for count, rate in classes
    )
    return Scenario(links, flows)


def packet_runs(scenarios: Sequence[Scenario], until: Any, **options: Any) -> list[Trace]:
    """Run the packet engine on each scenario, the k-th with seed k; options as of `simulate`."""
    traces: list[Trace] = []
    with Bar("simulating packets", len(scenarios), "runs") as bar:
        for seed, scenario in enumerate(scenarios, 1):
            traces.append(simulate(scenario, until, engine="packet", seed=seed, **options))
            if traces[-1].summary["wall_s"] < PATIENCE:  # a longer run has a bar of its own
                bar(seed / len(scenarios))
    return traces


def save(dataset: xr.Dataset, path: Path) -> Path:
    """Write NetCDF4, whole or not at all."""
    return write_netcdf(path, dataset)


def variable(dims: Sequence[str] | str, values: np.ndarray, unit: str, text: str) -> tuple[Any, ...]:
    """A variable with its unit."""
    return dims, values, {"units": unit, "long_name": text}


def metric(dims: Sequence[str], values: np.ndarray, name: str) -> tuple[Any, ...]:
    """A variable that holds one of `fluidcc.results.schema.METRICS`."""
    return variable(dims, values, *METRICS[name])


class EcmpRun(NamedTuple):
    """Length of a run and time from which it counts [s]; outcomes of ECMP, full and quick."""

    scheme: Any
    until: float
    since: float
    seeds: int
    quick: tuple[float, int]
