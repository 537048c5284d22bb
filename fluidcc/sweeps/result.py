"""What a sweep returns."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.errors import InputError
from fluidcc.files import write_atomically
from fluidcc.results.dataset import DatasetResult, Row
from fluidcc.results.drawing import draw
from fluidcc.results.schema import METRICS
from fluidcc.results.text import shown
from fluidcc.surface import public
from fluidcc.sweeps.grid import axis_text, format_value

DEFAULT_METRIC = "queue_bytes.mean"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class SweepResult(DatasetResult):
    """Metrics over a grid.

    Parameters
    ----------
    dataset : xarray.Dataset
        A dimension per swept name, in SI; a variable per metric of `fluidcc.results.schema.METRICS`, NaN where a point
        failed; ``rate_bytes_per_s`` with a further dimension ``flow``; ``reason`` says why it failed (0: it
        did not), with the meanings in its attributes.
    """

    def __repr__(self) -> str:
        """Axes and numbers of points."""
        axes = " x ".join(f"{name} {self.dataset.sizes[name]}" for name in self.names) or "of one point"
        return f"<Sweep {axes}: {self.points} points, {self.failed} failed>"

    def _rows(self) -> list[Row]:
        rows = [(name, axis_text(name, self.dataset[name])) for name in self.names]
        rows.append(("points", f"{self.points:,}, {self.failed:,} failed"))
        if self.points > self.failed:
            best = self.best()
            at = ", ".join(f"{name} = {format_value(name, best[name])}" for name in self.names)
            rows.append((f"least {DEFAULT_METRIC}", shown("_bytes", best["value"]) + (f" at {at}" if at else "")))
        rows += [("time", shown(key, self.dataset.attrs[key])) for key in ("wall_s",) if key in self.dataset.attrs]
        return rows

    @property
    def names(self) -> list[str]:
        """What was swept."""
        return [str(d) for d in self.dataset["reason"].dims]

    @property
    def points(self) -> int:
        """Number of points."""
        return int(self.dataset["reason"].size)

    @property
    def failed(self) -> int:
        """Number of points without a result."""
        return int((self.dataset["reason"] != 0).sum())

    @public()
    def best(self, metric: str = DEFAULT_METRIC, *, minimise: bool = True) -> dict[str, Any]:
        """The point with the best value of a metric.

        Parameters
        ----------
        metric : str
            One of `METRICS`, such as ``"queue_bytes.mean"``.
        minimise : bool
            Whether the least is best.

        Returns
        -------
        dict
            The swept names with their SI values, ``metric`` and ``value``; None if every point failed.

        Raises
        ------
        InputError
            If there is no such metric.
        """
        values = self._metric(metric)
        if not bool(np.isfinite(values).any()):
            return {**dict.fromkeys(self.names), "metric": metric, "value": None}
        point = values
        if self.names:
            at = (values.argmin if minimise else values.argmax)(dim=self.names, skipna=True)
            point = values.isel({name: int(index) for name, index in at.items()})
        return {**{name: float(point[name]) for name in self.names}, "metric": metric, "value": float(point)}

    @public()
    def rank(self, point: dict[str, float], metric: str = DEFAULT_METRIC, *, minimise: bool = True) -> tuple[int, int]:
        """Rank (1 is best) of the grid point nearest to given values, and the number of valid points.

        Parameters
        ----------
        point : dict of float
            Values by name, in SI.
        metric : str
            One of `METRICS`, such as ``"queue_bytes.mean"``.
        minimise : bool
            Whether the least is best.

        Returns
        -------
        rank, valid : int
        """
        values = self._metric(metric)
        here = float(values.sel(point, method="nearest"))
        valid = values.values[np.isfinite(values.values)]
        return 1 + int(np.sum(valid < here if minimise else valid > here)), len(valid)

    def _metric(self, metric: str) -> xr.DataArray:
        if metric not in METRICS:
            raise InputError(f"metric: {str(metric)[:40]!r} is unknown; write one of {', '.join(METRICS)}")
        return self.dataset[metric]

    @public()
    def save(self, path: str | Path) -> Path:
        """Write NetCDF4 (``.nc``) or CSV (``.csv``); the file appears whole or not at all.

        Parameters
        ----------
        path : str or Path
            Ends in ``.nc`` or ``.csv``.

        Returns
        -------
        Path

        Raises
        ------
        InputError
            If the ending is neither, or the file cannot be written.
        """
        kind = Path(path).suffix
        if kind == ".nc":
            return write_atomically(path, lambda target: self.dataset.to_netcdf(target, engine="h5netcdf"))
        if kind == ".csv":
            flat = self.dataset.drop_dims("flow").to_dataframe().reset_index()
            return write_atomically(path, lambda target: flat.to_csv(target, index=False))
        raise InputError(f"{path}: unknown ending {kind!r}; write a name that ends in .nc or .csv")

    @public()
    def plot(
        self,
        metric: str = DEFAULT_METRIC,
        *,
        best: dict[str, float] | None = None,
        mark: dict[str, float] | None = None,
        minimise: bool = True,
    ) -> Any:
        """A metric over one swept name as a line, over two as a heat map.

        Parameters
        ----------
        metric : str
            One of the dataset's.
        best, mark : dict
            Points to mark, values in SI by name; ``best`` is that of `SweepResult.best` if not given.
        minimise : bool
            Whether the best is the least.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_sweep", self, metric, best=best, mark=mark, minimise=minimise)
