"""Result of a sweep: metrics over a grid, and the best point under constraints.

A queue is shortest where its link is idle, so the best point has bounds on other metrics.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from fluidcc.builders.names import format_value
from fluidcc.errors import InputError
from fluidcc.results.display import draw, shown
from fluidcc.results.result import DatasetResult, Row, write_dataset
from fluidcc.results.schema import METRICS
from fluidcc.studies.sweeps.grid import axis_text
from fluidcc.studies.sweeps.store import words
from fluidcc.surface import constructor, one_of, public
from fluidcc.units import parse, show

if TYPE_CHECKING:
    import pandas as pd

USED, FAIR = 0.98, 0.9  # least utilisation, as a share of what the scheme aims at, and least Jain index
_SAME_QUEUE, _SAME = 1.0, 1e-9  # bytes; relative: within these, values are the same
_DIGITS = 9  # of utilisation and Jain index, which the rounding of sums leaves alone
_TEXT = re.compile(r"\s*([\w.]+)\s*([<>]=)\s*(\S.*)")
DEFAULT_METRIC = "queue_bytes.mean"
SHOWN = ("utilisation", "jain")  # what a best point always comes with


@dataclasses.dataclass(frozen=True)
class Constraint:
    """A bound on a metric.

    Parameters
    ----------
    metric : str
        One of `METRICS`, or what else may be bounded there.
    sign : {">=", "<="}
    bound : float
        In the metric's unit.
    unit : str
    """

    metric: str
    sign: str
    bound: float
    unit: str = ""

    def __str__(self) -> str:
        """Return the constraint as it is written."""
        return f"{self.metric}{self.sign}{show(self.bound, self.unit)}"

    def kept(self, values: Any) -> Any:
        """Check which values satisfy the constraint; NaN does not."""
        return values >= self.bound if self.sign == ">=" else values <= self.bound


def parse_constraint(text: str, name: str = "subject_to", known: Mapping[str, tuple[str, str]] = METRICS) -> Constraint:
    """Read ``METRIC>=VALUE`` or ``METRIC<=VALUE``.

    Raises
    ------
    InputError
        If it is neither, there is no such metric, or the value cannot be read.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise InputError(f"{name}: {text[:60]!r} is no bound; write for example 'utilisation>=0.99'")
    metric, sign, value = match.groups()
    if metric not in known:
        raise InputError(f"{name}: {metric[:40]!r} is no metric; {one_of(metric, known)}")
    unit = known[metric][0]
    return Constraint(metric, sign, parse(value, unit, f"{name} {metric}"), unit)


Given = str | Iterable[str | Constraint] | None


def constraints_of(data: xr.Dataset, given: Given, metric: str, *, minimise: bool) -> tuple[Constraint, ...]:
    """Constraints as given; if None, those that go with a metric.

    Parameters
    ----------
    data : xarray.Dataset
        Of a sweep.
    given : str, or sequence of str
    metric : str
        What is best; a queue that is to be short goes with a link that is used and shared fairly.
    minimise : bool

    Raises
    ------
    InputError
        If one of them cannot be read.
    """
    if given is not None:
        texts = [given] if isinstance(given, str) else given
        return tuple(each if isinstance(each, Constraint) else parse_constraint(each) for each in texts)
    if minimise and metric.startswith("queue_bytes."):
        used = USED * float(data.attrs.get("target_utilisation", 1.0))
        return tuple(
            Constraint(name, ">=", bound, METRICS[name][0]) for name, bound in (("utilisation", used), ("jain", FAIR))
        )
    return ()


def feasible(data: xr.Dataset, constraints: Iterable[Constraint]) -> xr.DataArray:
    """Return where all constraints are satisfied; False where a point failed."""
    found = data["reason"] == 0
    for each in constraints:
        found = found & each.kept(data[each.metric])
    return found


def best_index(data: xr.Dataset, metric: str, constraints: Iterable[Constraint], *, minimise: bool) -> int | None:
    """Index of the best point among those that keep the constraints, counted over the flattened grid; None: none does.

    Where several are the same, that which uses more of the link, and then the fairer one: any W_AI that leaves no queue
    has the shortest.
    """
    columns = [data[name].values.reshape(-1) for name in (metric, "utilisation", "jain")]
    kept = np.flatnonzero(feasible(data, constraints).values.reshape(-1) & np.isfinite(columns[0]))
    if not len(kept):
        return None
    values = columns[0][kept]
    best = values.min() if minimise else values.max()
    apart = _SAME_QUEUE if metric.startswith("queue_bytes.") else 0.0
    same = kept[np.abs(values - best) <= apart + _SAME * abs(best)]
    used, fair = (-np.nan_to_num(column[same]) for column in columns[1:])
    return int(same[np.lexsort((np.arange(len(same)), fair.round(_DIGITS), used.round(_DIGITS)))[0]])


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
            raise InputError(f"metric: {str(metric)[:40]!r} is unknown; {one_of(str(metric), METRICS)}")
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
