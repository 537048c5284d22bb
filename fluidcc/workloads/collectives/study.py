"""Runs of collectives by kind, scheme and seed: tables, pictures, files."""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.errors import InputError
from fluidcc.results.display import draw
from fluidcc.results.result import Comparable
from fluidcc.results.schema import plain
from fluidcc.surface import constructor, public
from fluidcc.workloads.collectives.run import CollectiveRun
from fluidcc.workloads.fabrics.run_cache import folder_of
from fluidcc.workloads.fabrics.study import check_ran, ratio, spread
from fluidcc.workloads.fabrics.topology import Topology

if TYPE_CHECKING:
    from fluidcc.results.display import Picture

_MOST_ROWS = 200_000  # of a table as text
_SPREAD = ("time_s", "bus_bandwidth_bytes_per_s", "jain")
_MOST = {"jain": 1.0}


@constructor()
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CollectiveStudy(Comparable):
    """Runs of collectives on one fabric.

    Parameters
    ----------
    runs : tuple of CollectiveRun
        All seeds of the first kind under the first scheme, then those under the next, then of the next kind.
    topology : Topology
    says : tuple of str
        What is run, in words, of each kind.
    words : tuple of str
        What is not as in the files of topology and schedule.
    """

    runs: tuple[CollectiveRun, ...]
    topology: Topology
    says: tuple[str, ...]
    words: tuple[str, ...] = ()

    @property
    def schemes(self) -> list[str]:
        """Names of the schemes, in the order in which they were given."""
        return list(dict.fromkeys(each.scheme for each in self.runs))

    @property
    def cases(self) -> list[str]:
        """Kinds of collectives, or the file's name."""
        return list(dict.fromkeys(each.case for each in self.runs))

    @property
    def seeds(self) -> list[int]:
        """Seeds that every scheme ran with."""
        return list(dict.fromkeys(each.seed for each in self.runs))

    def __repr__(self) -> str:
        """Kinds, schemes and seeds."""
        return (
            f"<CollectiveStudy {', '.join(self.says)}: {', '.join(self.schemes)}, "
            f"{len(self.seeds)} seed{'s' * (len(self.seeds) != 1)}>"
        )

    def _case(self, case: str | None) -> str:
        """Return a kind that was run, the first by default."""
        if case is None:
            return self.cases[0]
        if case not in self.cases:
            raise InputError(f"case: {repr(case)[:40]} was not run; write one of {', '.join(self.cases)[:200]}")
        return case

    @public()
    def of(self, scheme: str, case: str | None = None) -> list[CollectiveRun]:
        """Return the runs of a scheme.

        Parameters
        ----------
        scheme : str
        case : str, optional
            Of one kind; all by default.

        Returns
        -------
        list of CollectiveRun
        """
        return [each for each in self.runs if each.scheme == scheme and case in (None, each.case)]

    @public()
    def against(self, scheme: str, other: str) -> dict[str, dict[str, float]]:
        """Ratios of a scheme's times to another's, seed by seed, as both have the same paths.

        Parameters
        ----------
        scheme, other : str
            Names of two that ran.

        Returns
        -------
        dict
            For each kind geometric ``mean``, ``low`` and ``high`` (95 %); NaN where a seed did not end.

        Raises
        ------
        InputError
            If one of them did not run.
        """
        pairs = self.pairs(scheme, other)
        return {case: ratio(np.where(np.isfinite(times).all(), times, np.nan)) for case, times in pairs.items()}

    @public()
    def pairs(self, scheme: str, other: str) -> dict[str, np.ndarray]:
        """Times of two schemes side by side, seed by seed.

        Parameters
        ----------
        scheme, other : str
            Names of two that ran.

        Returns
        -------
        dict of ndarray, shape (seeds, 2)
            For each kind [s]; NaN where a seed did not end.

        Raises
        ------
        InputError
            If one of them did not run.
        """
        check_ran(self.schemes, scheme, other)

        def times(case: str) -> list[list[float | None]]:
            return [[run.numbers["time_s"] for run in self.of(name, case)] for name in (scheme, other)]

        return {case: np.array(times(case), float).T for case in self.cases}

    @public()
    def summary(self) -> list[dict[str, Any]]:
        """Means over seeds with 95 % intervals, of each kind and scheme.

        Returns
        -------
        list of dict
            ``collective``, ``scheme``, ``seeds``, ``unfinished`` transfers in all, ``complete``, how many seeds ended;
            ``time_s``, ``bus_bandwidth_bytes_per_s`` and ``jain``, each with ``mean``, ``low`` and ``high``: None
            where a seed did not end, and for the ends of an interval of fewer than three seeds; ``pfc_pauses``,
            ``drops``, ``trims``, ``retransmissions``, sums;
            ``unchecked``, why runs by the fluid are not known to be as good as packets.
        """
        rows = []
        for case in self.cases:
            for scheme in self.schemes:
                runs = self.of(scheme, case)
                complete = sum(run.numbers["time_s"] is not None for run in runs)
                row: dict[str, Any] = {"collective": case, "scheme": scheme, "seeds": len(runs), "complete": complete}
                row["unfinished"] = sum(run.numbers["unfinished"] for run in runs)
                for name in _SPREAD:
                    values = [run.numbers[name] for run in runs]
                    known = complete == len(runs) and None not in values
                    row[name] = spread(values if known else [], _MOST.get(name, math.inf))
                for name in ("pfc_pauses", "drops", "trims", "retransmissions"):
                    row[name] = sum(run.numbers[name] for run in runs)
                row["unchecked"] = list(dict.fromkeys(doubt for run in runs for doubt in run.numbers["unchecked"]))
                rows.append(row)
        return plain(rows)

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Return every run, and means over seeds, as ``--json`` prints it.

        Returns
        -------
        dict
            ``traffic``, ``hosts``, ``summary`` and ``runs``; None for what is not finite.
        """
        return {
            "traffic": list(self.says),
            "hosts": len(self.topology.hosts),
            "summary": self.summary(),
            "runs": [each.as_dict() for each in self.runs],
        }

    @public()
    def plot(self, case: str | None = None) -> Picture:
        """Draw when each rank was sending, by step: a panel for each scheme, of the first seed.

        Parameters
        ----------
        case : str, optional
            Kind of collective; the first by default.

        Returns
        -------
        Picture

        Raises
        ------
        InputError
            If there is no such kind.
        """
        return draw("plot_steps", self, self._case(case))

    @public()
    def plot_load(self, case: str | None = None) -> Picture:
        """Draw the utilisation of links over time, by tier, of the first seed.

        Parameters
        ----------
        case : str, optional
            Kind of collective; the first by default.

        Returns
        -------
        Picture

        Raises
        ------
        InputError
            If there is no such kind.
        """
        return draw("plot_load", self, self._case(case))

    @public()
    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write pictures of each kind, a table of all runs, and one of each first seed's transfers (many as NetCDF).

        Parameters
        ----------
        folder : str or path
            Made if it is not there.

        Returns
        -------
        list of Path

        Raises
        ------
        InputError
            If it cannot be written.
        """
        import pandas as pd

        from fluidcc.files import write_atomically

        place = folder_of(folder)
        assert place is not None
        written = []
        for case in self.cases:
            stem = Path(case).stem
            written.append(self.plot(case).write(place / f"{stem}-steps.png"))
            written.append(self.plot_load(case).write(place / f"{stem}-load.png"))
            for scheme in self.schemes:
                run = self.of(scheme, case)[0]
                path = place / f"{stem}-{scheme}-transfers.csv"
                if run.transfers.sizes["transfer"] > _MOST_ROWS:
                    run.save(path.with_suffix(".nc"))
                    written.append(path.with_suffix(".nc"))
                    continue
                table = run.transfers.to_dataframe().to_csv(index=False)
                written.append(write_atomically(path, table.encode()))
        table = pd.json_normalize([each.as_dict() for each in self.runs]).drop(columns=["jobs", "paused_ports"])
        written.append(write_atomically(place / "collectives.csv", table.to_csv(index=False).encode()))
        return written
