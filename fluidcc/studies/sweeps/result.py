"""Result of a sweep."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from fluidcc.builders.names import format_value
from fluidcc.errors import InputError
from fluidcc.results.display import draw, shown
from fluidcc.results.result import DatasetResult, Row, write_dataset
from fluidcc.results.schema import METRICS
from fluidcc.studies.sweeps.constraints import Given, best_index, constraints_of, feasible
from fluidcc.studies.sweeps.grid import axis_text
from fluidcc.studies.sweeps.layout import words
from fluidcc.surface import constructor, public

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_METRIC = "queue_bytes.mean"
SHOWN = ("utilisation", "jain")  # what a best point always comes with


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class SweepResult(DatasetResult):
    """Metrics over a grid.

    Parameters
    ----------
    dataset : xarray.Dataset
        A dimension per swept name, in SI; a variable per metric of `fluidcc.results.schema.METRICS`, NaN where a point
        failed; ``rate_bytes_per_s`` with a further dimension ``flow``; ``reason`` says why it failed (0: it
        did not), with the meanings in its attributes. Of engines that draw random numbers a metric is the mean over the
        seeds, a queue's percentile that of all of them; ``METRIC_se`` is its standard error, ``METRIC_by_seed`` has a
        further dimension ``seed``, and ``seeds`` says how many ran.
    """

    def __repr__(self) -> str:
        """Axes and numbers of points."""
        axes = " x ".join(f"{name} {self.dataset.sizes[name]}" for name in self.names) or "of one point"
        return f"<Sweep {axes}: {self.points} points, {self.failed} failed>"

    def _rows(self) -> list[Row]:
        rows = [(name, axis_text(name, self.dataset[name])) for name in self.names]
        rows.append(("points", f"{self.points:,}, {self.failed:,} failed"))
        rows += [(f"  {word}", f"{count:,}") for word, count in self.reasons.items()]
        best = self.best()
        constraints = constraints_of(self.dataset, None, DEFAULT_METRIC, minimise=True)
        bounds = " and ".join(map(str, constraints))
        if best["value"] is not None:
            at = ", ".join(f"{name} = {format_value(name, best[name])}" for name in self.names)
            also = ", ".join(f"{name} {best[name]:.4g}" for name in SHOWN)
            text = shown("_bytes", best["value"]) + (f" at {at}" if at else "")
            rows.append((f"least {DEFAULT_METRIC}", f"{text}, {also} (of those with {bounds})"))
        elif self.points > self.failed:
            rows.append((f"least {DEFAULT_METRIC}", f"no point has {bounds}"))
        rows += [("time", shown(key, self.dataset.attrs[key])) for key in ("wall_s",) if key in self.dataset.attrs]
        return rows

    @property
    def names(self) -> list[str]:
        """Names that were swept."""
        return [str(d) for d in self.dataset["reason"].dims]

    @property
    def points(self) -> int:
        """Number of points."""
        return int(self.dataset["reason"].size)

    @property
    def failed(self) -> int:
        """Number of points without a result."""
        return int((self.dataset["reason"] != 0).sum())

    @property
    def reasons(self) -> dict[str, int]:
        """Number of failed points for each reason, in words."""
        numbers, counts = np.unique(self.dataset["reason"].values, return_counts=True)
        found: dict[str, int] = {}
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            if number != 0:
                found[self._word(number)] = found.get(self._word(number), 0) + count
        return found

    def _word(self, number: int) -> str:
        known = words(self.dataset["reason"].attrs)
        return known[number] if 0 <= number < len(known) else "not done"

    @public()
    def best(
        self,
        metric: str = DEFAULT_METRIC,
        *,
        minimise: bool = True,
        subject_to: Given = None,
    ) -> dict[str, Any]:
        """The point with the best value of a metric, among those that keep some constraints.

        Of points with the same value it is that which uses most of the link, and then the fairest.

        Parameters
        ----------
        metric : str
            One of `METRICS`, such as ``"queue_bytes.mean"``.
        minimise : bool
            Whether the least is best.
        subject_to : str or sequence of str
            Bounds on metrics, ``"utilisation>=0.99"`` or ``"queue_bytes.p99<=100KB"``. None: where a queue is
            minimised, ``utilisation>=0.98`` and ``jain>=0.9``, because a queue is shortest where the link is left idle
            (of a scheme that aims at a share of the link, such as HPCC's eta: 0.98 of that share); else none.
            ``()``: none.

        Returns
        -------
        dict
            The swept names with their SI values, ``metric``, ``value``, and the ``utilisation`` and ``jain`` of that
            point; all None if every point failed, or none keeps the constraints.

        Raises
        ------
        InputError
            If there is no such metric, or a constraint cannot be read.
        """
        self._metric(metric)
        constraints = constraints_of(self.dataset, subject_to, metric, minimise=minimise)
        at = best_index(self.dataset, metric, constraints, minimise=minimise)
        if at is None:
            return {**dict.fromkeys(self.names), "metric": metric, "value": None, **dict.fromkeys(SHOWN)}
        shape = self.dataset["reason"].shape
        found = self.dataset.isel(dict(zip(self.names, map(int, np.unravel_index(at, shape)), strict=True)))
        return {
            **{name: float(found[name]) for name in self.names},
            "metric": metric,
            "value": float(found[metric]),
            **{name: float(found[name]) for name in SHOWN},
        }

    @public()
    def rank(
        self,
        point: dict[str, float],
        metric: str = DEFAULT_METRIC,
        *,
        minimise: bool = True,
        subject_to: Given = None,
    ) -> tuple[int, int]:
        """Rank (1 is best) of the grid point nearest to given values, and the number of valid points.

        Parameters
        ----------
        point : dict of float
            Values by name, in SI.
        metric : str
            One of `METRICS`, such as ``"queue_bytes.mean"``.
        minimise : bool
            Whether the least is best.
        subject_to : str or sequence of str
            As in `best`; points that keep the constraints go before all that do not.

        Returns
        -------
        rank, valid : int
        """
        values = self._metric(metric)
        kept = feasible(self.dataset, constraints_of(self.dataset, subject_to, metric, minimise=minimise))
        here, ours = (float(each.sel(point, method="nearest")) for each in (values, kept))
        better = values < here if minimise else values > here
        ahead = (kept & better) if ours else (kept | better)
        return 1 + int((ahead & np.isfinite(values)).sum()), int(np.isfinite(values).sum())

    def _metric(self, metric: str) -> xr.DataArray:
        if metric not in METRICS:
            raise InputError(f"metric: {str(metric)[:40]!r} is unknown; write one of {', '.join(METRICS)}")
        return self.dataset[metric]

    @public()
    def save(self, path: str | Path) -> Path:
        """Write NetCDF4 (``.nc``) or CSV (``.csv``, reasons in words); the file appears whole or not at all.

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

        def rows() -> pd.DataFrame:
            flat = self.dataset.drop_dims(["flow", "seed"], errors="ignore").to_dataframe().reset_index()
            flat["reason"] = [self._word(number) for number in flat["reason"]]
            return flat

        return write_dataset(path, self.dataset, rows)

    @public()
    def plot(
        self,
        metric: str = DEFAULT_METRIC,
        *,
        best: dict[str, float] | None = None,
        mark: dict[str, float] | None = None,
        minimise: bool = True,
        subject_to: Given = None,
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
        subject_to : str or sequence of str
            As in `SweepResult.best`.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_sweep", self, metric, best=best, mark=mark, minimise=minimise, subject_to=subject_to)
