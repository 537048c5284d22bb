"""Pictures of two branches of long-run behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fluidcc import units
from fluidcc.builders.names import dimension_of
from fluidcc.errors import InputError
from fluidcc.plotting.style import Picture, colour, figure, label, scaled

if TYPE_CHECKING:
    from fluidcc.studies.sweeps.hysteresis import Branches

_LOOKS = ((colour(0), "^"), (colour(1), "v"))


def plot_branches(found: Branches, *, title: str | None, labels: Mapping[str, str]) -> Picture:
    """Oscillation of the queue on both branches.

    Parameters
    ----------
    found : Branches
    title : str
    labels : mapping
        Of the axes, by name.

    Returns
    -------
    Picture

    Raises
    ------
    InputError
        If more than two names were swept, or none is left.
    """
    if len(found.names) > 2:
        raise InputError("plot: there are more than two names; select some first, for example result.sel(g=1 / 256)")
    if not found.names:
        raise InputError("plot: both branches are of one point; leave a name with several values")
    picture = _lines(found, labels) if len(found.names) == 1 else _maps(found, labels)
    picture.suptitle("oscillation of the queue in the long run" if title is None else title)
    return picture


def _axis(found: Branches, name: str, labels: Mapping[str, str]) -> tuple[np.ndarray, str]:
    """Values as they are drawn, and the axis's text."""
    values, dimension = found.dataset[name].values, dimension_of(name)
    if name in labels or dimension in (units.RATIO, units.COUNT):
        return values, labels.get(name, name)
    values, unit = scaled(values, dimension)
    return values, label(name, unit)


def _lines(found: Branches, labels: Mapping[str, str]) -> Picture:
    (name,) = found.names
    x, text = _axis(found, name, labels)
    oscillations, unit = scaled(found.dataset["peak_to_peak"].values, units.SIZE)
    picture, axes = figure(1, 1, size=(7.5, 4.6))
    (axis,) = axes[0]
    for branch, y, kinds, (shade, mark) in zip(
        found.dataset["branch"].values, oscillations, found.dataset["kind"].values, _LOOKS, strict=True
    ):
        axis.plot(x, y, "-", color=shade, lw=1.2)
        for settled, face in ((True, shade), (False, "white")):
            here = np.isin(kinds, ("equilibrium", "cycle", "irregular")) == settled
            axis.plot(x[here], y[here], mark, color=shade, mfc=face, ms=6, label=str(branch) if settled else None)
        if branch in ("up", "down"):
            _arrows(axis, x, y, shade, forwards=(branch == "up") == (x[-1] > x[0]))
    at = found.dataset["bistable"].values
    edges = np.concatenate([[x[0]], (x[1:] + x[:-1]) / 2, [x[-1]]])
    for low, high in zip(edges[:-1][at], edges[1:][at], strict=True):
        axis.axvspan(low, high, color="0.9", lw=0, zorder=0)
    axis.set(xlabel=text, ylabel=label("queue, largest less smallest", unit))
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small", title="hollow: not settled; grey: bistable", title_fontsize="small")
    return picture


def _arrows(axis: object, x: np.ndarray, y: np.ndarray, shade: str, forwards: bool) -> None:
    """An arrow in the middle of each piece, the way the run went."""
    order = slice(None) if forwards else slice(None, None, -1)
    ends = np.stack([x[order], y[order]], axis=1)
    for start, end in pairwise(ends):
        middle = (start + end) / 2
        axis.annotate(  # type: ignore[attr-defined]
            "",
            xy=tuple(middle + 0.05 * (end - start)),
            xytext=tuple(middle),
            arrowprops={"arrowstyle": "->", "color": shade, "lw": 1.2},
        )


def _maps(found: Branches, labels: Mapping[str, str]) -> Picture:
    first, second = found.names
    (y, down), (x, across) = (_axis(found, name, labels) for name in (first, second))
    data = found.dataset.transpose("branch", first, second)
    oscillations, unit = scaled(data["peak_to_peak"].values, units.SIZE)
    picture, axes = figure(1, 2, size=(11.0, 4.6), sharex=True, sharey=True)
    mesh = None
    for axis, branch, values in zip(axes[0], data["branch"].values, oscillations, strict=True):
        mesh = axis.pcolormesh(
            x,
            y,
            np.ma.masked_invalid(values),
            cmap="viridis_r",
            vmin=0,
            vmax=np.nanmax(oscillations),
            shading="nearest",
        )
        if min(values.shape) > 1:
            axis.contourf(
                x, y, data["bistable"].values.astype(float), [0.5, 1.5], colors="none", hatches=["///"], zorder=2
            )
        axis.set_facecolor("0.85")
        axis.set(xlabel=across, title=f"{branch} (hatched: bistable)")
    axes[0, 0].set_ylabel(down)
    picture.colorbar(mesh, ax=axes[0, 1], label=label("queue, largest less smallest", unit))
    return picture
