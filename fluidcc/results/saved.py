"""Checks that a dataset from a file is a result: that its content is as `fluidcc.results.schema` declares it.

What an earlier version did not write yet may be missing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from fluidcc.results.schema import COORDINATES, METRICS, VARIABLES

if TYPE_CHECKING:
    import xarray as xr

_NUMBERS = "fiu"
_OF_BEST = ("queue_bytes.mean", "utilisation", "jain")  # what any sweep's best point is found by


def problem_of_trace(data: xr.Dataset) -> str | None:
    """Explain why a dataset is no run; None if it is one."""
    if "queue" not in data or "time" not in data.coords:
        return "no queue over time"
    for name, declared in (COORDINATES | VARIABLES).items():
        if name in data and (problem := _problem(data[name], declared.dims, declared.kind != "U")):
            return problem
    time = data["time"].values
    if not np.isfinite(time).all() or (np.diff(time) <= 0).any():
        return "times that do not grow"
    try:
        whole = isinstance(json.loads(data.attrs.get("summary", "{}")), dict)
    except (TypeError, ValueError):
        whole = False
    return None if whole else "a summary that is no JSON object"


def problem_of_sweep(data: xr.Dataset) -> str | None:
    """Explain why a dataset is no sweep; None if it is one."""
    if "reason" not in data:
        return "no reasons of failed points"
    over = data["reason"].dims
    missing = next((name for name in (*over, *_OF_BEST, "rate_bytes_per_s") if name not in data.variables), None)
    if missing is not None:
        return f"no {missing}"
    expected = {name: over for name in ("reason", *METRICS)} | {"rate_bytes_per_s": (*over, "flow")}
    expected |= {name: (name,) for name in over}
    problems = (_problem(data[name], dims, True) for name, dims in expected.items() if name in data)
    return next((problem for problem in problems if problem is not None), None)


def _problem(array: xr.DataArray, dims: tuple[object, ...], number: bool) -> str | None:
    if array.dims != dims:
        return f"{array.name} over {', '.join(map(str, array.dims)) or 'nothing'}, not {', '.join(map(str, dims))}"
    if number and array.dtype.kind not in _NUMBERS:
        return f"{array.name} that is no number"
    return None
