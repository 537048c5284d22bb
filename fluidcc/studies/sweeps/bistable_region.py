"""The region of two parameters where a stable limit cycle lies next to a stable equilibrium: its two boundaries.

On one side the stable cycle meets an unstable one and vanishes, at a fold of the cycles' branch
(`fluidcc.studies.sweeps.cycle_branch`). On the other side the equilibrium loses its stability, or leaves the RED ramp.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.dde.orbit import Orbit, solve_orbit
from fluidcc.dde.orbit_branch import NO_DIRECTION, LawAt, next_fold, point_at
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.display import draw, labels_of, span
from fluidcc.results.grid import Grid
from fluidcc.results.result import DatasetResult, Row, write_dataset
from fluidcc.scenario.model import Scenario
from fluidcc.studies.sweeps.chart import RootFinder
from fluidcc.studies.sweeps.cycle_branch import SMALLEST, STEPS, Laws, check_options, first_orbit, way_of
from fluidcc.studies.sweeps.grid import axis_text, grid_of
from fluidcc.surface import constructor, public

_HALVINGS = 6  # of the way from one value to the next, where the cycle changes too much
_LOST = "lost: no cycle is found from that of the last value"
_VALUES = 241  # of the first name, at which equilibria are looked at


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class BistableRegion(DatasetResult):
    """Region in which a stable cycle and a stable equilibrium exist together, made by `bistable_region`.

    Parameters
    ----------
    dataset : xarray.Dataset
        Over the second name: ``fold``, the value of the first at which the stable cycle ends, ``fold_period`` [s],
        ``fold_queue_max`` [bytes] and ``reason`` ("ok", or why there is no fold). Over both names, the first at equal
        distances between its ends: ``root`` (the real part of the equilibrium's rightmost root) [1/s], ``on_ramp``
        (whether the equilibrium exists on the RED ramp) and ``bistable``.
    name : str
        The first.
    """

    name: str

    @property
    def second(self) -> str:
        """The second name."""
        return next(str(name) for name in self.dataset["bistable"].dims if name != self.name)

    def __repr__(self) -> str:
        """Names, and where the folds are."""
        many, told = len(self.dataset["fold"]), self._folds()
        told = f"folds at {told}" if told else "no fold"
        return f"<BistableRegion of {self.name} over {self.second}: {many} values, {told}>"

    def _kept(self) -> tuple[str, ...]:
        return self.name, self.second

    def _folds(self) -> str:
        """Range of the folds; empty if there are none."""
        found = self.dataset["fold"].values
        known = found[np.isfinite(found)]
        return f"{known.min():.6g} to {known.max():.6g}" if len(known) else ""

    def _rows(self) -> list[Row]:
        data = self.dataset
        why, counts = np.unique(data["reason"].values, return_counts=True)
        return [
            (self.second, axis_text(self.second, data[self.second])),
            ("fold", self._folds() or "none"),
            ("period at the fold", span("period_s", data["fold_period"])),
            *((str(text), f"{count} values") for text, count in zip(why, counts, strict=True)),
        ]

    @public()
    def as_dict(self) -> dict[str, Any]:
        """Numbers in SI, with the unit in the key: for each value of the second name its fold, None if there is none.

        ``bistable`` are the least and largest value of the first name at which both are stable; None if there is none.
        """
        data = self.dataset.transpose(..., self.second)
        first = data[self.name].values

        def folded(key: str, k: int) -> float | None:
            value = float(data[key].values[k])
            return value if np.isfinite(value) else None

        values = []
        for k in range(data.sizes[self.second]):
            both = first[data["bistable"].values[:, k]]
            values.append(
                {
                    self.second: float(data[self.second].values[k]),
                    "fold": folded("fold", k),
                    "fold_period_s": folded("fold_period", k),
                    "fold_queue_max_bytes": folded("fold_queue_max", k),
                    "bistable": [float(both.min()), float(both.max())] if len(both) else None,
                    "reason": str(data["reason"].values[k]),
                }
            )
        return {"parameters": [self.name, self.second], "values": values}

    @public()
    def save(self, path: str | Path) -> Path:
        """Write NetCDF4 (``.nc``), which `fluidcc.load` reads, or CSV (``.csv``).

        Parameters
        ----------
        path : str or Path
            Ends in ``.nc`` or ``.csv``; the file appears whole or not at all.

        Returns
        -------
        Path

        Raises
        ------
        InputError
            If the ending is neither, or the file cannot be written.
        """
        attrs = {"result": "BistableRegion", "name": self.name}
        return write_dataset(path, self.dataset.assign_attrs(attrs), lambda: self.dataset.to_dataframe().reset_index())

    @public()
    def plot(self, *, title: str | None = None, labels: Mapping[str, str] | None = None) -> Any:
        """The region between both boundaries, over both names.

        Parameters
        ----------
        title : str
            Above the picture.
        labels : mapping of str to str
            Of the axes, by name; one that ends in a unit, as in "Kmin [KB]", scales its axis to it.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_bistable_region", self, title=title, labels=labels_of(labels, self._kept()))


@public()
def bistable_region(
    make_scenario: Callable[..., Scenario],
    over: Mapping[str, Any],
    *,
    at: Any = None,
    steps: int = STEPS,
    until: Any = "4s",
) -> BistableRegion:
    """Find where a stable cycle and a stable equilibrium exist together, over two parameters.

    Parameters
    ----------
    make_scenario : callable
        As of `cycle_branch`, of two values.
    over : mapping
        Two names. Of the first its ends, between which folds are looked for; of the second all values, in order.
    at : float or str
        Value of the first at which, with the first value of the second, a run from the scenario's start ends in a
        cycle; the last end if not given. From there folds are looked for towards the other end.
    steps : int
        In a period.
    until : quantity
        Time at which to give up that run [s].

    Returns
    -------
    BistableRegion
        A value without a fold carries a reason and NaN; it does not affect the others.

    Raises
    ------
    InputError
        As `cycle_branch`.

    Examples
    --------
    >>> import fluidcc as fc
    >>> region = fc.studies.bistable_region(
    ...     lambda n, g: fc.incast(1, multiplicity=n, scheme=fc.DCQCN(g=g)),
    ...     over={"n": [4, 20], "g": [1 / 512, 1 / 256, 1 / 128]},
    ... )  # doctest: +SKIP
    """
    grid = grid_of(over)
    if len(grid.axes) != 2 or grid.shape[0] < 2:
        raise InputError("over: give the ends of one name and the values of another, for example n and g")
    (name, first), (other, values) = grid.axes.items()
    ends, begin = way_of(name, first, at)
    check_options(steps, until)
    laws = Laws(make_scenario, name)
    way = -1.0 if begin > sum(ends) / 2 else 1.0
    orbit: Orbit | None = first_orbit(laws, {name: begin, other: float(values[0])}, steps, until)
    old = float(values[0])
    rows = []
    with Bar(f"following folds over {other}", len(values), "values") as bar:
        for k, value in enumerate(values.tolist()):
            try:
                new, why = _moved(laws, other, orbit, old, value), _LOST
            except InputError as error:  # the scenario makes no sense there
                new, why = None, str(error)
            if new is not None:
                orbit, old = new, value
            rows.append(_row(laws.at(**{other: value}), new, ends, way, why))
            bar((k + 1) / len(values))
    columns = {
        "fold": ("1", f"{name} at the cycles' fold"),
        "fold_period": ("s", "period at the fold"),
        "fold_queue_max": ("bytes", "largest queue at the fold"),
    }
    places = Grid({name: np.linspace(*ends, _VALUES), other: values})
    found = RootFinder(make_scenario)(places.columns())
    root, ramp = found.root.reshape(places.shape), (found.on_ramp & (found.reason == 0)).reshape(places.shape)
    fold = np.array([row["fold"] for row in rows])
    beyond = (places.axes[name][:, None] - fold) * way < 0
    data = xr.Dataset(
        {
            **{
                key: (other, [row[key] for row in rows], {"units": unit, "long_name": text})
                for key, (unit, text) in columns.items()
            },
            "reason": (other, [row["reason"] for row in rows]),
            "root": ((name, other), root, {"units": "1/s", "long_name": "real part of the rightmost root"}),
            "on_ramp": ((name, other), ramp, {"long_name": "whether the equilibrium exists on the RED ramp"}),
            "bistable": ((name, other), beyond & ramp & (root < 0), {"long_name": "whether both are stable"}),
        },
        coords=places.axes,
    )
    return BistableRegion(data, name)


def _moved(laws: Laws, other: str, orbit: Orbit, old: float, new: float) -> Orbit | None:
    """The orbit at another value of the second name, and the same of the first; by smaller ways if need be."""
    for halvings in range(_HALVINGS):
        found: Orbit | None = orbit
        for value in np.linspace(old, new, 2**halvings + 1)[1:].tolist():
            law_at = laws.at(**{other: value})
            found = solve_orbit(law_at, dataclasses.replace(found, law=law_at(found.value)))
            if found is None:
                break
        if found is not None:
            return found
    return None


def _row(law_at: LawAt, orbit: Orbit | None, ends: tuple[float, float], way: float, why: str) -> dict[str, Any]:
    """Numbers of one value of the second name; ``why`` there is no orbit, if there is none."""
    fold = None
    if orbit is not None:
        begin = point_at(orbit, ends[1] - ends[0], way)
        fold, why = (None, NO_DIRECTION) if begin is None else next_fold(law_at, begin, ends, SMALLEST)
    if fold is None:
        return {"fold": np.nan, "fold_period": np.nan, "fold_queue_max": np.nan, "reason": why}
    found = fold.orbit
    return {
        "fold": found.value,
        "fold_period": found.period,
        "fold_queue_max": float(found.x[:, 0].max()),
        "reason": "ok",
    }
