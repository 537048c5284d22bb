"""Saved results, back as what they were."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from fluidcc.errors import InputError
from fluidcc.files import refuse_special
from fluidcc.results.trace import Trace
from fluidcc.surface import public
from fluidcc.sweeps.result import SweepResult


@public()
def load(path: str | Path) -> Trace | SweepResult:
    """Read a trace or a sweep that was saved as NetCDF (``.nc``).

    Parameters
    ----------
    path : str or Path
        What ``Trace.save`` or ``SweepResult.save`` wrote, or ``--out``. A scenario's TOML is read by
        `fluidcc.load_scenario`.

    Returns
    -------
    Trace or SweepResult

    Raises
    ------
    InputError
        If the file is missing, or neither.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.load("run.nc").summary["queue_bytes"]["mean"]  # doctest: +SKIP
    """
    expected = "give a file that Trace.save or SweepResult.save wrote"
    refuse_special(path, "a file that Trace.save or SweepResult.save wrote")
    try:
        with xr.open_dataset(path, engine="h5netcdf") as dataset:
            loaded = dataset.load()
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path}: cannot be read ({error}); {expected} as .nc") from None
    if "queue" in loaded and "time" in loaded.dims:
        return Trace(loaded)
    if "reason" in loaded and "rate_bytes_per_s" in loaded:
        return SweepResult(loaded)
    raise InputError(f"{path}: holds neither a run nor a sweep; {expected}")
