"""Schemes side by side on one fabric, over seeds: who finishes when, where queues stand, what is paused."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from fluidcc.errors import InputError
from fluidcc.results.display import draw
from fluidcc.results.result import Comparable
from fluidcc.results.schema import plain
from fluidcc.surface import constructor, public
from fluidcc.workloads.fabrics.hpcc_files import FlowList, write_fct, write_pfc
from fluidcc.workloads.fabrics.run import FabricRun
from fluidcc.workloads.fabrics.slowdowns import PERCENTILES, bin_ends
from fluidcc.workloads.fabrics.topology import Topology

if TYPE_CHECKING:
    from fluidcc.results.display import Picture

SMALL, LARGE, LARGEST = 100e3, 1e6, 10e6  # bytes, of flows whose percentiles are compared
NO_QUEUE = 10e3  # bytes: a few packets, below which queues are equal
STATISTICS = ("mean", *PERCENTILES)


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FabricStudy(Comparable):
    """Runs of one fabric, by scheme and seed.

    Parameters
    ----------
    runs : tuple of FabricRun
        All seeds of the first scheme, then those of the next.
    topology : Topology
    says : str
        What is sent.
    flows : FlowList or None
        If they are those of a ``flow.txt``.
    """

    runs: tuple[FabricRun, ...]
    topology: Topology
    says: str
    flows: FlowList | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """Differences from the files of topology and flows, in words."""
        return (*self.topology.words, *(self.flows.words if self.flows is not None else ()))

    @property
    def schemes(self) -> list[str]:
        """Names of the schemes, in the order in which they were given."""
        return list(dict.fromkeys(each.scheme for each in self.runs))

    @property
    def seeds(self) -> list[int]:
        """Seeds that every scheme ran with."""
        return list(dict.fromkeys(each.seed for each in self.runs))

    @public()
    def of(self, scheme: str) -> list[FabricRun]:
        """Return the runs of a scheme.

        Parameters
        ----------
        scheme : str

        Returns
        -------
        list of FabricRun
            One per seed; none of a scheme that did not run.
        """
        return [each for each in self.runs if each.scheme == scheme]

    def __repr__(self) -> str:
        """Fabric, traffic and schemes."""
        return (
            f"<FabricStudy {', '.join(self.schemes)} on {len(self.topology.hosts)} hosts: {self.says}, "
            f"{len(self.seeds)} seed{'s' * (len(self.seeds) != 1)}>"
        )

    def _edges(self, bins: Any) -> np.ndarray:
        """Return ends [bytes] of bins for all runs, as `Slowdown.bins` takes them; n bins divide all seeds' sizes."""
        return bin_ends(np.concatenate([each.slowdown["size"].values for each in self.of(self.schemes[0])]), bins)

    @public()
    def statistics(self) -> xr.Dataset:
        """Slowdowns of all flows.

        Returns
        -------
        xarray.Dataset
            Over ``scheme`` and ``seed``: ``flows``, ``unfinished``, ``mean``, ``p50``, ``p95``, ``p99``, ``p999``.
        """
        return self._table([[each.slowdown.statistics() for each in self.of(scheme)] for scheme in self.schemes])

    @public()
    def bins(self, edges: Any = 10) -> xr.Dataset:
        """Summarise the slowdowns by flow size.

        Parameters
        ----------
        edges : int or sequence of quantity
            As of `Slowdown.bins`; the bins are the same for all runs.

        Returns
        -------
        xarray.Dataset
            Over ``scheme``, ``seed`` and ``bin``, with ``from_bytes`` and ``to_bytes``.

        Raises
        ------
        InputError
            If the ends do not grow, or there are none.
        """
        ends = self._edges(edges)
        found = [
            xr.concat([each.slowdown.bins(ends) for each in self.of(scheme)], "seed", join="override")
            for scheme in self.schemes
        ]
        return xr.concat(found, "scheme", join="override").assign_coords(scheme=self.schemes, seed=self.seeds)

    def _table(self, rows: list[list[dict[str, float]]]) -> xr.Dataset:
        variables = {
            name: (("scheme", "seed"), np.array([[each[name] for each in row] for row in rows])) for name in rows[0][0]
        }
        return xr.Dataset(variables, coords={"scheme": self.schemes, "seed": self.seeds})

    @public()
    def against(self, scheme: str, other: str) -> dict[str, dict[str, float]]:
        """Ratios of a scheme's numbers to another's, seed by seed, as both have the same flows.

        Parameters
        ----------
        scheme, other : str
            Names of two that ran.

        Returns
        -------
        dict
            Geometric ``mean``, ``low`` and ``high`` (95 %) of each ratio, as `ratio` has them: of the slowdowns'
            ``p50`` and ``p99``, their ``p99_small`` of flows to 100 KB, ``p99_large`` beyond 1 MB and ``p50_largest``
            beyond 10 MB, of flows that finished in both; of ``goodput``, and of ``queue_p99``, of 10 KB at least; NaN
            of what a run lacks.

        Raises
        ------
        InputError
            If one of them did not run.
        """
        return {name: ratio(pairs) for name, pairs in self.pairs(scheme, other).items()}

    @public()
    def pairs(self, scheme: str, other: str) -> dict[str, np.ndarray]:
        """Numbers of two schemes side by side, seed by seed.

        Parameters
        ----------
        scheme, other : str
            Names of two that ran.

        Returns
        -------
        dict of ndarray, shape (seeds, 2)
            By the names of `against`; NaN of what a run lacks.

        Raises
        ------
        InputError
            If one of them did not run.
        """
        check_ran(self.schemes, scheme, other)
        found = [_measured(one, two) for one, two in zip(self.of(scheme), self.of(other), strict=True)]
        return {name: np.array([[run[name] for run in both] for both in found]) for name in found[0][0]}

    @public()
    def plot(self, bins: Any = 10) -> Picture:
        """Slowdown by flow size, with intervals over seeds.

        Parameters
        ----------
        bins : int or sequence of quantity
            As of `bins`.

        Returns
        -------
        Picture
        """
        return draw("plot_slowdowns", self, bins)

    @public()
    def plot_queues(self) -> Picture:
        """Draw the distribution of queues, and the pauses of each tier.

        Returns
        -------
        Picture
        """
        return draw("plot_fabric_queues", self)

    @public()
    def as_dict(self, bins: Any = 10) -> dict[str, Any]:
        """Return every run, and each scheme's means over seeds with 95 % intervals, as ``--json`` prints it.

        Parameters
        ----------
        bins : int or sequence of quantity
            As of `bins`.

        Returns
        -------
        dict
            ``traffic``, ``hosts``, ``schemes`` and ``runs``; None for what is not finite, and for the ends of an
            interval of fewer than three seeds.
        """
        ends = self._edges(bins)
        table = self.statistics()
        together = []
        for scheme in self.schemes:
            found = table.sel(scheme=scheme)
            together.append(
                {
                    "scheme": scheme,
                    "seeds": len(self.seeds),
                    "flows": int(found["flows"].sum() + found["unfinished"].sum()),
                    "unfinished": int(found["unfinished"].sum()),
                    "slowdown": {name: spread(found[name].values) for name in STATISTICS},
                }
            )  # fmt: skip
        return plain(
            {
                "traffic": self.says,
                "hosts": len(self.topology.hosts),
                "schemes": together,
                "runs": [each.as_dict(ends) for each in self.runs],
            }
        )

    @public()
    def write(self, folder: str | os.PathLike[str], bins: Any = 10) -> list[Path]:
        """Write pictures, a table of the bins, and of flows of a ``flow.txt`` each run's ``fct.txt`` and ``pfc.txt``.

        Parameters
        ----------
        folder : str or path
            Made if it is not there.
        bins : int or sequence of quantity
            As of `bins`.

        Returns
        -------
        list of Path

        Raises
        ------
        InputError
            If it cannot be written.
        """
        from fluidcc.files import write_atomically

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        written = [self.plot(bins).write(place / "slowdown.png"), self.plot_queues().write(place / "queues.png")]
        table = self.bins(bins).to_dataframe().reset_index().to_csv(index=False)
        written.append(write_atomically(place / "slowdown.csv", table.encode()))
        if self.flows is not None:
            written += [
                write_fct(place / f"fct-{each.scheme}-seed{each.seed}.txt", self.flows, each.slowdown)
                for each in self.runs
            ]
            written += [
                write_pfc(
                    place / f"pfc-{each.scheme}-seed{each.seed}.txt", self.topology, each.frames, self.flows.begins
                )
                for each in self.runs
                if each.frames is not None
            ]
        return written


def _measured(*runs: FabricRun) -> list[dict[str, float]]:
    """Measures of runs of the same flows, of those that finished in all of them."""
    columns = [(run.slowdown["size"].values, run.slowdown["slowdown"].values) for run in runs]
    same = all(np.array_equal(sizes, columns[0][0]) for sizes, _ in columns)  # else hosts send back to back
    found = []
    for run, (sizes, slowdowns) in zip(runs, columns, strict=True):
        every = np.isfinite(sum(each for _, each in columns) if same else slowdowns)
        parts = {
            "p50": every,
            "p99": every,
            "p99_small": every & (sizes <= SMALL),
            "p99_large": every & (sizes > LARGE),
            "p50_largest": every & (sizes > LARGEST),
        }
        measures = {
            name: float(np.percentile(slowdowns[which], PERCENTILES[name[:3]])) if which.any() else float("nan")
            for name, which in parts.items()
        }
        measures["goodput"] = run.numbers["goodput_bytes_per_s"]
        measures["queue_p99"] = max(run.numbers["queue_bytes"]["p99"], NO_QUEUE)
        found.append(measures)
    return found


LEAST_SEEDS = 3  # of an interval: of two seeds it is 12.7 standard errors each way, which says nothing


def intervals_of(seeds: int, shown: str) -> str:
    """Say of how many seeds something is, and how it shows their intervals, if there are any."""
    if seeds == 1:
        return "one seed"
    return f"{seeds} seeds ({shown})" if seeds >= LEAST_SEEDS else f"{seeds} seeds: no interval below {LEAST_SEEDS}"


def spread(values: Any, most: float = np.inf) -> dict[str, float]:
    """Mean of some seeds and the ends of its 95 % interval, which stay between 0 and ``most``; NaN of too few seeds.

    By Student's t, on the scale on which both bounds are infinitely far: log(x / (1 - x / most)).
    """
    mean, low, high = interval(values)
    if np.isfinite(values).sum() < LEAST_SEEDS:
        low = high = float("nan")
    elif 0 < mean < most:
        odds = mean / (1.0 - mean / most)
        step = np.exp((high - mean) * odds / mean**2)  # the scale's derivative is odds / x^2
        low, high = (float(x / (1.0 + x / most)) for x in (odds / step, odds * step))
    return {"mean": mean, "low": low, "high": high}


def check_ran(schemes: Sequence[str], *names: str) -> None:
    """Refuse names of schemes that did not run.

    Raises
    ------
    InputError
        If one did not.
    """
    for name in names:
        if name not in schemes:
            raise InputError(f"scheme: {str(name)[:60]!r} did not run; there are {', '.join(schemes)}")


def ratio(pairs: Any) -> dict[str, float]:
    """Geometric mean of ratios of seeds and its 95 % interval, by Student's t of their logarithms.

    So those of the ratio turned round are turned round. NaN ends of too few seeds, all NaN of what is not above 0.
    """
    values = np.array(pairs, float).reshape(-1, 2)
    values = values[(values > 0).all(axis=1)]
    mean, low, high = np.exp(interval(np.log(values[:, 0] / values[:, 1]))).tolist()
    if len(values) < LEAST_SEEDS:
        low = high = float("nan")
    return {"mean": mean, "low": low, "high": high}


def interval(values: Any) -> tuple[float, float, float]:
    """Mean of some seeds and the ends of its 95 % interval by Student's t; NaN ends of one seed alone."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if not len(values):
        return float("nan"), float("nan"), float("nan")
    mean = float(values.mean())
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    from scipy import stats

    half = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half
