"""What the DCQCN figures share: scenarios side by side in one run, units, and files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.files import write_whole
from fluidcc.fluid.metrics import METRICS
from fluidcc.scenario import RED, Flow, Link, Scenario

GBPS = 1e9 / 8  # bytes/s
LINE_RATE = 40 * GBPS
WIDTH = 11.0  # inches: at 100 pixels per inch a text of 9 points stays legible

# A cell of a picture: scheme, marking, and its flow classes as (number of flows, initial rate).
Cell = tuple[Any, RED, Sequence[tuple[float, float]]]


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


def save(dataset: xr.Dataset, path: Path) -> Path:
    """Write NetCDF4, whole or not at all."""
    return write_whole(path, lambda target: dataset.to_netcdf(target, engine="h5netcdf"))


def variable(dims: Sequence[str] | str, values: np.ndarray, unit: str, text: str) -> tuple[Any, ...]:
    """A variable with its unit."""
    return dims, values, {"units": unit, "long_name": text}


def metric(dims: Sequence[str], values: np.ndarray, name: str) -> tuple[Any, ...]:
    """A variable that holds one of `fluid.metrics.METRICS`."""
    return variable(dims, values, *METRICS[name])
