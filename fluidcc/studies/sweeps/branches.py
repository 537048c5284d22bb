"""Several long-run behaviours of the same settings, side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from fluidcc.results.display import draw, labels_of, span
from fluidcc.results.grid import Grid
from fluidcc.results.result import DatasetResult, Row
from fluidcc.studies.sweeps.grid import axis_text
from fluidcc.surface import constructor, public

APART = 0.1  # of the larger oscillation: by how much oscillates differ that are not the same
_TEXTS = {
    "peak_to_peak": "queue of the most loaded link, largest less smallest",
    "queue_bytes.min": "queue of the most loaded link, min",
    "queue_bytes.max": "queue of the most loaded link, max",
    "queue_bytes.mean": "queue of the most loaded link, mean",
}


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Branches(DatasetResult):
    """Long-run oscillations of the queue on two branches, made by `hysteresis` and `bistability`.

    Parameters
    ----------
    dataset : xarray.Dataset
        Over ``branch`` and the names that were swept: ``peak_to_peak``, ``queue_bytes.min``, ``queue_bytes.max``,
        ``queue_bytes.mean`` [bytes] and ``kind`` (as of `control.settling.kinds`, or why a point failed), all of the
        last window. Over the names: ``bistable``, whether the oscillations differ by more than a tenth of the larger,
        and not because the smaller still grows or the larger decays.
    """

    def __repr__(self) -> str:
        """Names, sizes and where the branches differ."""
        sizes = ", ".join(f"{name}: {self.dataset.sizes[name]}" for name in self.names)
        return f"<Branches {sizes}; bistable at {int(self.dataset['bistable'].sum())}>"

    WHOLE: ClassVar[tuple[str, ...]] = ("branch",)

    def _rows(self) -> list[Row]:
        data = self.dataset
        rows = [(name, axis_text(name, data[name])) for name in self.names]
        for branch in data["branch"].values:
            at = data.sel(branch=branch)
            kinds, counts = np.unique(at["kind"].values, return_counts=True)
            told = ", ".join(f"{kind} {count}" for kind, count in zip(kinds, counts, strict=True))
            rows.append((str(branch), f"{told}; peak to peak {span('queue_bytes', at['peak_to_peak'])}"))
        return rows

    @property
    def names(self) -> list[str]:
        """Names that were swept."""
        return [str(d) for d in self.dataset["bistable"].dims]

    @public()
    def plot(self, *, title: str | None = None, labels: Mapping[str, str] | None = None) -> Any:
        """Oscillation of both branches over one name, or of each as a map over two; ``labels`` of the axes by name.

        Parameters
        ----------
        title : str
            Above the picture; one that says what it is if not given.
        labels : mapping of str to str
            Of the axes, by name.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_branches", self, title=title, labels=labels_of(labels, self.names))


def branches_of(grid: Grid, branches: Mapping[str, Mapping[str, np.ndarray]]) -> Branches:
    """Put branches together: for each its variables by name, (points,)."""
    names = list(grid.axes)
    stacked = {key: np.stack([found[key] for found in branches.values()]) for key in (*_TEXTS, "kind")}
    amplitude, kind = stacked["peak_to_peak"], stacked["kind"]
    larger = np.argmax(np.nan_to_num(amplitude, nan=-1.0), axis=0)[None]
    more, less = (np.take_along_axis(amplitude, at, axis=0)[0] for at in (larger, 1 - larger))
    falls = np.take_along_axis(kind, larger, axis=0)[0] == "decaying"
    rises = np.take_along_axis(kind, 1 - larger, axis=0)[0] == "growing"
    fixed_points = (kind == "equilibrium").all(axis=0)
    apart = (more - less > APART * more) & ~fixed_points & ~falls & ~rises
    shape = (len(branches), *grid.shape)
    data = xr.Dataset(
        {
            **{
                key: (["branch", *names], stacked[key].reshape(shape), {"units": "bytes", "long_name": text})
                for key, text in _TEXTS.items()
            },
            "kind": (["branch", *names], kind.reshape(shape)),
            "bistable": (names, apart.reshape(grid.shape), {"long_name": "whether the branches differ"}),
        },
        coords={"branch": list(branches), **grid.axes},
    )
    return Branches(data)
