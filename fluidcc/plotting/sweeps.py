"""Pictures of sweeps: lines and heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter

from fluidcc import units
from fluidcc.builders.names import dimension_of, format_value
from fluidcc.errors import InputError
from fluidcc.plotting.style import Picture, figure, label, scaled
from fluidcc.studies.sweeps.result import Constraint, constraints_of, feasible

if TYPE_CHECKING:
    from fluidcc.studies.sweeps.result import Given, SweepResult

_MOST_TICKS = 10  # swept values ticked one by one
_COLOURS = {True: "viridis_r", False: "viridis"}  # by whether less is better: bright is good


def plot_sweep(
    result: SweepResult,
    metric: str,
    *,
    best: dict[str, float] | None = None,
    mark: dict[str, float] | None = None,
    minimise: bool = True,
    subject_to: Given = None,
    refused: Sequence[dict[str, float]] = (),
) -> Picture:
    """A metric over one swept name as a line, over two as a heat map.

    Parameters
    ----------
    result : SweepResult
    metric : str
    best : dict
        The point to mark as best, at which further names are held; that of the metric alone by default.
    mark : dict
        A point to mark on the heat map, for example the present setting.
    minimise : bool
        Whether less of the metric is better.
    subject_to : str or sequence of str
        What the best must keep, as in `SweepResult.best`.
    refused : sequence of dict
        Points to mark on the heat map at which another engine found that a bound is missed.

    Returns
    -------
    Picture

    Raises
    ------
    InputError
        If nothing is swept any more, one point having been selected.
    """
    if not result.names:
        raise InputError("plot: the sweep is of one point; leave a name with several values")
    chosen = best if best is not None else result.best(metric, minimise=minimise, subject_to=subject_to)
    shown = sorted(result.names, key=lambda n: -result.dataset.sizes[n])[:2]
    shown = [name for name in result.names if name in shown]
    # Where no point keeps the constraints, the map is a slice through the best of all.
    free = result.best(metric, minimise=minimise, subject_to=())
    held = {n: free[n] if chosen.get(n) is None else chosen[n] for n in result.names if n not in shown}
    whole = {n: float(result.dataset[n][0]) if v is None else v for n, v in held.items()}  # where all failed, any
    values = result[metric].sel(whole, method="nearest")
    dimension = str(values.attrs.get("units", ""))
    data, unit = scaled(values.values, dimension)
    picture, axes = figure(1, 1, size=(7.5, 5.0))
    axis = axes[0, 0]
    text = str(values.attrs.get("long_name", metric))
    if len(shown) == 1:
        axis.plot(result.dataset[shown[0]], data, marker="o", ms=3)
        axis.set_ylabel(label(metric, unit))
        axis.grid(alpha=0.3)
        _name_axis(axis, "x", result, shown[0])
    else:
        y, x = (result.dataset[name].values for name in shown)
        finite = np.ma.masked_invalid(data if values.dims == tuple(shown) else data.T)
        wide = finite.count() > 0 and finite.min() > 0 and finite.max() > 20 * finite.min()
        norm = LogNorm() if wide else None
        mesh = axis.pcolormesh(_edges(x), _edges(y), finite, cmap=_COLOURS[minimise], norm=norm)
        axis.set_facecolor("0.85")
        constraints = constraints_of(result.dataset, subject_to, metric, minimise=minimise)
        kept = feasible(result.dataset, constraints).sel(whole, method="nearest").transpose(*shown).values
        _explain_cells(axis, result, (_edges(x), _edges(y)), finite, kept, constraints)
        _name_axis(axis, "x", result, shown[1])
        _name_axis(axis, "y", result, shown[0])
        bar = picture.colorbar(mesh, ax=axis, label=label(metric, unit))
        if wide:
            bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        if refused:
            places = [[point[name] for point in refused] for name in (shown[1], shown[0])]
            axis.plot(*places, "x", color="crimson", ms=7, ls="none", clip_on=False, label="refused by packets")
        _mark_points(axis, shown, chosen, mark)
    fixed = ", ".join(f"{n} = {format_value(n, float(values[n]))}" for n in held)
    axis.set_title(f"{text}" + (f"\nat {fixed}" if fixed else ""), fontsize="medium")
    return picture


def _explain_cells(
    axis: Axes,
    result: SweepResult,
    edges: tuple[np.ndarray, np.ndarray],
    values: np.ma.MaskedArray,
    kept: np.ndarray,
    constraints: tuple[Constraint, ...],
) -> None:
    """Hatch what misses a bound, and say what grey and hatched cells are."""
    empty = np.ma.getmaskarray(values)
    missed = ~kept & ~empty
    patches = []
    if missed.any():
        x, y = edges
        for row, column in np.argwhere(missed).tolist():
            corner = float(x[column]), float(y[row])
            width, height = float(x[column + 1]) - corner[0], float(y[row + 1]) - corner[1]
            axis.add_patch(Rectangle(corner, width, height, fill=False, hatch="////", ec="0.25", lw=0.0))
        bounds = " or ".join(map(str, constraints))
        patches.append(Patch(fill=False, hatch="////", ec="0.25", lw=0.5, label=f"misses {bounds}"))
    if empty.any():
        reasons = list(result.reasons)
        why = "kmin above kmax" if all("kmax" in each for each in reasons) else "; ".join(reasons)[:60]
        patches.append(Patch(fc="0.85", ec="0.5", label=f"no result: {why}"))
    if patches:
        axis.legend(handles=patches, fontsize="x-small", loc="upper left")


def _mark_points(axis: Axes, shown: Sequence[str], best: dict[str, Any], mark: dict[str, float] | None) -> None:
    points = [("best", best, "*", "white")]
    if mark:
        # The map is a slice through the best point: a mark with other held values is not on it, and says so.
        held = [name for name in best if name in mark and name not in shown and best[name] is not None]
        other = [name for name in held if not np.isclose(best[name], mark[name])]
        where = f" (there with another {', '.join(other)})" if other else ""
        points.append((f"present {', '.join(shown)}{where}", mark, "o", "none"))
    style = {"mec": "crimson", "mew": 1.5, "ms": 12, "ls": "none", "clip_on": False}
    for name, point, symbol, fill in points:
        if point[shown[0]] is not None:
            axis.plot(point[shown[1]], point[shown[0]], symbol, mfc=fill, label=name, **style)
    if axis.get_legend_handles_labels()[1]:  # where no point keeps the constraints, none is best
        axis.figure.legend(loc="outside lower center", ncols=2, fontsize="small")


def _name_axis(axis: Axes, which: str, result: SweepResult, name: str) -> None:
    """Label an axis; few values are ticked one by one, logarithmic spacing makes a logarithmic axis."""
    values = result.dataset[name].values
    line = axis.xaxis if which == "x" else axis.yaxis
    if logarithmic(values):
        (axis.set_xscale if which == "x" else axis.set_yscale)("log")
    dimension = dimension_of(name)
    if len(values) <= _MOST_TICKS:
        line.set_ticks(values, labels=[units.show(float(v), dimension, 3) for v in values], fontsize="small")
        line.set_ticks([], minor=True)
    else:
        line.set_major_formatter(FuncFormatter(lambda v, _: units.show(v, dimension, 3)))
    (axis.set_xlabel if which == "x" else axis.set_ylabel)(name)


def _edges(values: np.ndarray) -> np.ndarray:
    """Borders of the cells around values, halfway between them as the axis shows them."""
    if len(values) == 1:
        return np.array([values[0] - 0.5, values[0] + 0.5])
    at = np.log(values) if logarithmic(values) else values
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
    return np.exp(edges) if logarithmic(values) else edges


def logarithmic(values: np.ndarray) -> bool:
    """Check whether positive values are spaced more evenly in the logarithm."""
    if len(values) < 3 or (values <= 0).any():
        return False
    ratios, steps = np.diff(np.log(values)), np.diff(values)
    return bool(np.ptp(ratios) * abs(steps.mean()) < np.ptp(steps) * abs(ratios.mean()))
