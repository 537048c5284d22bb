"""Saved results, back as what they were."""

from __future__ import annotations

from pathlib import Path

from fluidcc.errors import InputError
from fluidcc.files import read_netcdf
from fluidcc.results.schema import problem_of_sweep, problem_of_trace
from fluidcc.results.trace import Trace
from fluidcc.studies.sweeps.result import SweepResult
from fluidcc.surface import public


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
    expected = "a file that Trace.save or SweepResult.save wrote"
    loaded = read_netcdf(path, expected)
    trace, sweep = problem_of_trace(loaded), problem_of_sweep(loaded)
    if trace is None:
        return Trace(loaded)
    if sweep is None:
        return SweepResult(loaded)
    problem = trace if "queue" in loaded else sweep if "reason" in loaded else "neither a queue nor reasons"
    raise InputError(f"{str(path)[:200]}: holds neither a run nor a sweep ({problem}); give {expected}")
