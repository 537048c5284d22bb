"""Stability of an equation's equilibrium over one or two parameters, all points at once, and its boundary."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.dde.boundary import traced
from fluidcc.dde.characteristic import roots, size, structural, without
from fluidcc.dde.checks import check_lags, check_parameter, column, shown
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.dde.equation import Array, Equation, check_equation
from fluidcc.dde.fixed_points import equilibrium_near, followed
from fluidcc.dde.hopf import LOOSE
from fluidcc.dde.linear import jacobians
from fluidcc.errors import InputError
from fluidcc.progress import Bar
from fluidcc.results.dataset import DatasetResult, Row
from fluidcc.results.drawing import draw
from fluidcc.results.grid import Grid
from fluidcc.surface import constructor, public

_CHUNK = 1024
_MOST = 5_000_000  # points
NO_EQUILIBRIUM = "the equilibrium is lost on the way"
NO_SLOPE = "no derivative at the equilibrium"
UNRESOLVED = "unresolved: the rightmost root may be missed, because too many lie near"


@constructor()
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Chart(DatasetResult):
    """Stability over one or two parameters, made by `chart`.

    Parameters
    ----------
    dataset : xarray.Dataset
        Over the parameters: ``root`` (real part of the rightmost root), ``frequency`` (its imaginary part), the
        equilibrium's states (``state_NAME``), ``stable`` (1, 0 or NaN) and ``reason`` ("ok", or why there is no
        number). Its attribute ``roots_at_0`` says how many roots are 0 at all points (a sum that the equation keeps, a
        symmetry); they are left out. Of two parameters also ``boundary`` (point, name), in order along each curve,
        whose number is ``curve`` (point).
    """

    def __repr__(self) -> str:
        """Names and sizes."""
        sizes = ", ".join(f"{name}: {size}" for name, size in self.dataset["root"].sizes.items())
        stable, known = ((self.dataset["stable"] == value).sum() for value in (1, 0))
        return f"<Chart {sizes}; stable at {int(stable)} of {int(stable + known)}>"

    def _rows(self) -> list[Row]:
        data = self.dataset
        rows = [(str(n), f"{float(data[n].min()):.6g} to {float(data[n].max()):.6g}") for n in data["root"].dims]
        why, counts = np.unique(data["reason"].values, return_counts=True)
        if zeros := self.dataset.attrs.get("roots_at_0"):
            rows.append(("left out", f"{zeros} root{'s'[: zeros != 1]} at 0 everywhere"))
        return rows + [(str(text), f"{count} points") for text, count in zip(why, counts, strict=True)]

    def _part(self, dataset: xr.Dataset) -> Any:
        """The boundary is one over two names: a chart over fewer has none."""
        both = len(dataset["root"].dims) == 2
        return super()._part(dataset if both else dataset.drop_dims(["point", "name"], errors="ignore"))

    @public()
    def plot(self, *, title: str | None = None) -> Any:
        """The rightmost root's real part over the parameters, and where it is zero.

        Parameters
        ----------
        title : str
            Above the picture.

        Returns
        -------
        fluidcc.plotting.style.Picture
        """
        return draw("plot_delay_chart", self, title=title)


@public()
def chart(equation: Equation, over: Mapping[str, Any], *, at: Any = None) -> Chart:
    """Stability over a grid of one or two parameters.

    Parameters
    ----------
    equation : Equation
        Autonomous.
    over : mapping of str to sequence
        Parameters and their values, ascending.
    at : array_like or mapping, optional
        A state near the equilibrium at the equation's own parameters, from where it is followed to each point; needed
        where there are several.

    Returns
    -------
    Chart
        Points without an equilibrium carry a reason and NaN; they harm no other.

    Raises
    ------
    InputError
        If there is no such parameter, or more than two, or values make no sense.
    """
    check_equation(equation)
    grid = _grid(equation, over)
    begin = equilibrium_near(equation, at)
    with Bar("finding roots", grid.points, "points") as bar:
        zeros, root, frequency, state, x = _points(equation, begin, grid.columns(), None, bar)
    names = list(grid.axes)
    known = np.isfinite(root)
    unit = f"1/{equation.time_unit}" if equation.time_unit else ""
    columns = {
        "root": (root, {"units": unit, "long_name": "real part of the rightmost root"}),
        "frequency": (frequency, {"units": unit, "long_name": "imaginary part of the rightmost root"}),
        "stable": (np.where(known, root < 0, np.nan), {"long_name": "whether all roots lie left of the axis"}),
        "reason": (state.astype(str), {}),
        **{f"state_{s}": (x[:, i], {"long_name": f"{s} at equilibrium"}) for i, s in enumerate(equation.states)},
    }
    data = xr.Dataset(
        {name: (names, v.reshape(grid.shape), attributes) for name, (v, attributes) in columns.items()},
        coords={
            name: (name, values, {"units": equation.time_unit if name in equation.lags else ""})
            for name, values in grid.axes.items()
        },
        attrs={"roots_at_0": zeros},
    )
    if len(names) == 2:

        def along(places: Array) -> Array:
            return _points(equation, begin, dict(zip(names, places.T, strict=True)), zeros)[1]

        first, second = grid.axes.values()
        curves = traced(along, (first, second), root.reshape(grid.shape))
        data["boundary"] = (("point", "name"), np.concatenate([np.empty((0, 2)), *curves]))
        data["curve"] = ("point", np.repeat(np.arange(len(curves)), [len(curve) for curve in curves]))
        data = data.assign_coords(name=names)
    return Chart(data)


def _grid(equation: Equation, over: Any) -> Grid:
    if not isinstance(over, Mapping) or len(over) not in (1, 2):
        given = f"{len(over)} parameters" if isinstance(over, Mapping) else shown(over)
        raise InputError(f"over: {given}; give one or two and their values, for example {{'tau': [1, 2]}}")
    axes: dict[str, Array] = {}
    for name, values in over.items():
        check_parameter(equation, name, "over")
        axes[name] = column(f"over {name}", values)
        if (np.diff(axes[name]) <= 0).any():
            raise InputError(f"over {name}: {shown(values)}; give values that ascend, each once")
        if name in equation.lags and axes[name][0] < 0:
            raise InputError(f"over {name}: {axes[name][0]:g} is a lag; give 0 or more")
    grid = Grid(axes)
    if grid.points > _MOST:
        raise InputError(f"over: {grid.points:,} points are more than {_MOST:,}; give fewer values")
    return grid


def _points(
    equation: Equation,
    begin: Array,
    columns: Mapping[str, Array],
    zeros: int | None,
    report: Callable[[float], None] | None = None,
) -> tuple[int, Array, Array, Array, Array]:
    """Compute the number of roots at 0, the next root's real and imaginary part (points,), the state, equilibria.

    The number of roots at 0, ``zeros``, is determined if it is None.
    """
    count = len(next(iter(columns.values())))
    vectors = np.tile(equation.vector, (count, 1))
    for name, values in columns.items():
        vectors[:, list(equation.parameters).index(name)] = values
    x = np.full((count, len(begin)), np.nan)
    root, frequency = np.full(count, np.nan), np.full(count, np.nan)
    state = np.full(count, NO_EQUILIBRIUM, dtype=object)
    parts: list[tuple[Array, DelaySystem]] = []
    for first in range(0, count, _CHUNK):
        some = np.arange(first, min(first + _CHUNK, count))
        found, good, loose = followed(equation, begin, vectors[some])
        state[some[loose]] = f"the equilibrium moves, but {LOOSE}"
        good = good & np.isfinite(vectors[some]).all(axis=1)  # a boundary's step can lead nowhere
        x[some[good]] = found[good]
        A0, A, lags = jacobians(equation, found, vectors[some])
        check_lags(lags[good])
        smooth = good & np.isfinite(A0).all(axis=(1, 2)) & np.isfinite(A).all(axis=(1, 2, 3))
        state[some[good & ~smooth]] = NO_SLOPE
        if smooth.any():
            parts.append((some[smooth], DelaySystem(A0[smooth], A[smooth], lags[smooth])))
    if zeros is None:
        zeros = min((structural(batch) for _, batch in parts), default=0)
    for at, batch in parts:
        found = roots(batch, 1 + zeros)
        left = without(found.s, zeros, size(batch) if zeros else np.ones(len(at)))
        rightmost: Array = left[:, 0] if left.shape[1] else np.full(len(at), complex(np.nan, np.nan))
        s: Array = np.where(found.number > zeros, rightmost, complex(-np.inf, 0))
        sure = found.state == "ok"
        root[at], frequency[at] = np.where(sure, s.real, np.nan), np.where(sure, np.abs(s.imag), np.nan)
        state[at] = np.where(sure, "ok", UNRESOLVED)
        if report is not None:
            report((at[-1] + 1) / count)
    return zeros, root, frequency, state, x
