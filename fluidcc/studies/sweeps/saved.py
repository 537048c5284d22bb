"""Saved results, back as what they were."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fluidcc.errors import InputError
from fluidcc.files import read_netcdf
from fluidcc.results.schema import problem_of_sweep, problem_of_trace
from fluidcc.results.trace import Trace
from fluidcc.studies.sweeps.bistable_region import BistableRegion
from fluidcc.studies.sweeps.cycle_branch import CycleBranch
from fluidcc.studies.sweeps.result import SweepResult
from fluidcc.surface import public

if TYPE_CHECKING:
    import xarray as xr

# Variables by which a followed result is known, beside its own attribute.
_FOLLOWED = {"CycleBranch": ("period", "multiplier", "stable", "fold"), "BistableRegion": ("fold", "root", "bistable")}


@public()
def load(path: str | Path) -> Trace | SweepResult | CycleBranch | BistableRegion:
    """Read a trace, a sweep, a branch of cycles or a bistable region that was saved as NetCDF (``.nc``).

    Parameters
    ----------
    path : str or Path
        What ``save`` of one of these wrote, or ``--out``. A scenario's TOML is read by
        `fluidcc.load_scenario`.

    Returns
    -------
    Trace, SweepResult, CycleBranch or BistableRegion

    Raises
    ------
    InputError
        If the file is missing, or none of these.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.load("run.nc").summary["queue_bytes"]["mean"]  # doctest: +SKIP
    """
    expected = "a file that Trace.save or SweepResult.save wrote"
    loaded = read_netcdf(path, expected)
    if (found := _followed(loaded)) is not None:
        return found
    trace, sweep = problem_of_trace(loaded), problem_of_sweep(loaded)
    if trace is None:
        return Trace(loaded)
    if sweep is None:
        return SweepResult(loaded)
    problem = trace if "queue" in loaded else sweep if "reason" in loaded else "neither a queue nor reasons"
    raise InputError(f"{str(path)[:200]}: holds neither a run nor a sweep ({problem}); give {expected}")


def _followed(loaded: xr.Dataset) -> CycleBranch | BistableRegion | None:
    """Return the branch or region that a dataset says it is; None if it is neither."""
    attrs = loaded.attrs
    kind, name, ends = (attrs.pop(key, None) for key in ("result", "name", "ends"))
    if kind not in _FOLLOWED or not isinstance(name, str) or not {name, *_FOLLOWED[kind]} <= set(loaded.variables):
        return None
    texts = {each: loaded[each].astype(str) for each in loaded.variables if loaded[each].dtype.kind == "O"}
    loaded = loaded.assign(texts)
    if kind == "BistableRegion":
        return BistableRegion(loaded, name)
    return CycleBranch(loaded, name, (str(ends[0]), str(ends[1]))) if ends is not None and len(ends) == 2 else None
