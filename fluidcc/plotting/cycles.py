"""Pictures of limit cycles, of branches of them, and of the region where one lies next to a stable equilibrium."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fluidcc import units
from fluidcc.builders.names import dimension_of
from fluidcc.errors import InputError
from fluidcc.plotting.stability import scale_of
from fluidcc.plotting.style import Picture, colour, figure, label, scaled
from fluidcc.plotting.style import label as with_unit
from fluidcc.plotting.sweeps import logarithmic

if TYPE_CHECKING:
    from fluidcc.studies.sweeps.bistable_region import BistableRegion
    from fluidcc.studies.sweeps.cycle_branch import CycleBranch
    from fluidcc.studies.sweeps.hysteresis import Branches
    from fluidcc.theory.control.limit_cycle import LimitCycle

_MOST_LINES = 12  # flows drawn one by one
_LOOKS = ((colour(0), "^"), (colour(1), "v"))
_FINE = 400  # places across
EQUILIBRIUM, BOTH = "#d9e8f5", "#f5c77e"  # as in the figure dcqcn-bistability


def plot_cycle(found: LimitCycle, periods: float, *, title: str | None) -> Picture:
    """Queue and rates over some periods, and the queue against the sum of the rates.

    Parameters
    ----------
    found : LimitCycle
    periods : float
        How many to show; all of the last window if it has no period.
    title : str

    Returns
    -------
    Picture
    """
    data = found.dataset
    if math.isfinite(found.period):
        data = data.sel(time=slice(float(data.time[-1]) - periods * found.period, None))
    time, second = scaled((data.time - data.time[0]).values, units.TIME)
    queue, size = scaled(data["queue"].values, units.SIZE)
    rates, speed = scaled(data["rate"].values, units.RATE)
    crossing = data["crosses"].values
    total = (data["rate"] * data["multiplicity"]).values[:, crossing].sum(axis=1)
    total, whole = scaled(total, units.RATE)
    picture, axes = figure(1, 3, size=(13.0, 4.2))
    above, below, portrait = axes[0]
    above.plot(time, queue, lw=1.2)
    above.set(xlabel=label("time", second), ylabel=label("queue", size))
    for k in range(min(rates.shape[1], _MOST_LINES)):
        below.plot(time, rates[:, k], lw=1.2, label=str(data.flow.values[k]))
    below.set(xlabel=label("time", second), ylabel=label("rate per flow", speed))
    if rates.shape[1] > 1:
        below.legend(fontsize="small")
    portrait.plot(total, queue, lw=1.2)
    portrait.set(xlabel=label("sum of the rates", whole), ylabel=label("queue", size), title="phase portrait")
    for axis in (above, below):
        axis.set_ylim(bottom=0)
    for axis in axes[0]:
        axis.grid(alpha=0.3)
    period = f", period {units.show(found.period, units.TIME, 4)}" if math.isfinite(found.period) else ""
    amplitude = units.show(found.peak_to_peak, units.SIZE, 4)
    picture.suptitle(f"{found.link}: {found.kind}, oscillation {amplitude}{period}" if title is None else title)
    return picture


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


def plot_cycle_branch(found: CycleBranch, *, title: str | None, label: str | None) -> Picture:
    """Largest and least queue of cycles, and the equilibrium's queue, over the parameter.

    Parameters
    ----------
    found : CycleBranch
    title : str
    label : str
        Of the parameter's axis.

    Returns
    -------
    Picture
    """
    data = found.dataset
    top = float(data["queue_bytes.max"].max())
    _, unit = scaled(np.array([top]), units.SIZE)
    factor = top / float(scaled(np.array([top]), units.SIZE)[0][0])
    x, stable = data[found.name].values, data["stable"].values
    picture, axes = figure(1, 1, size=(7.5, 4.6))
    (axis,) = axes[0]
    for kind, style, name in ((True, "-", "stable cycle"), (False, "--", "unstable cycle")):
        # A line to the next point belongs to both.
        here = (stable == kind) | (np.roll(stable, 1) == kind) | data["fold"].values
        for k, which in enumerate(("queue_bytes.max", "queue_bytes.min")):
            y = np.where(here, data[which].values / factor, np.nan)
            axis.plot(x, y, style, color=colour(1), lw=1.4, label=None if k else name)
    value, queue = data["value"].values, data["equilibrium_queue"].values / factor
    settles = data["equilibrium_stable"].values
    for kind, style, name in ((True, "-", "stable equilibrium"), (False, ":", "unstable equilibrium")):
        y = np.where(settles == kind, queue, np.nan)
        if np.isfinite(y).any():
            axis.plot(value, y, style, color=colour(0), lw=1.4, label=name)
    for k, fold in enumerate(found.folds):
        axis.axvline(fold, color="0.5", lw=0.8, ls=":", label=None if k else "fold")
    axis.set(xlabel=found.name if label is None else label, ylabel=with_unit("queue, largest and least", unit))
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small")
    picture.suptitle("cycles and equilibria" if title is None else title)
    return picture


def plot_bistable_region(found: BistableRegion, *, title: str | None, labels: Mapping[str, str]) -> Picture:
    """The region over both names.

    Parameters
    ----------
    found : BistableRegion
    title : str
    labels : mapping
        Of the axes, by name.

    Returns
    -------
    Picture
    """
    picture, axes = figure(1, 1, size=(7.5, 4.6))
    draw_region(axes[0, 0], found, labels)
    picture.suptitle("stable cycle next to a stable equilibrium" if title is None else title)
    return picture


def draw_region(axis: Any, found: BistableRegion, labels: Mapping[str, str]) -> None:
    """Draw a region into one of a picture's axes."""
    data = found.dataset
    across, up = (labels.get(name, f"{name} [SI]") for name in (found.second, found.name))
    x, y = data[found.second].values / scale_of(across), data[found.name].values / scale_of(up)
    data = data.transpose(found.name, found.second)
    axis.set_facecolor("0.93")
    # On the RED ramp the sign of the root decides, beyond it there is no equilibrium. Lines between values are filled
    # in, so that the fold, which is known exactly, has no stairs.
    settles = np.where(data["on_ramp"].values, -data["root"].values, np.nan)
    fine = np.geomspace(x[0], x[-1], _FINE) if logarithmic(x) else np.linspace(x[0], x[-1], _FINE)
    settles = np.stack([np.interp(fine, x, row) for row in settles])
    fold = data["fold"].values / scale_of(up)
    axis.contourf(fine, y, settles, [0, np.inf], colors=[EQUILIBRIUM])
    above = axis.contourf(fine, y, settles, [0, np.inf], colors=[BOTH])
    known = np.isfinite(fold)
    if known.any():
        below = (data["bistable"].values & (y[:, None] < fold)).any()
        region = axis.fill_between(x[known], fold[known], y.min() if below else y.max(), color="none")
        above.set_clip_path(region.get_paths()[0], axis.transData)
    else:
        above.remove()
    axis.plot(x, fold, "o-", ms=3, color=colour(1), lw=1.6)
    if np.nanmin(settles) < 0 < np.nanmax(settles):
        axis.contour(fine, y, settles, [0], colors=[colour(0)], linewidths=1.6, linestyles="-")
    handles = [
        Patch(color=BOTH, label="equilibrium and cycle are stable"),
        Patch(color=EQUILIBRIUM, label="equilibrium is stable, no large cycle"),
        Patch(color="0.93", label="equilibrium is unstable, or not on the ramp"),
        Line2D([], [], color=colour(1), marker="o", ms=3, label="fold: the stable cycle ends"),
        Line2D([], [], color=colour(0), label="the equilibrium starts to oscillate"),
    ]
    axis.set(xlabel=across, ylabel=up, xscale="log" if logarithmic(x) else "linear")
    axis.grid(alpha=0.3)
    axis.set_ylim(y.min(), y.max())
    if len(x) > 1:
        axis.set_xlim(x.min(), x.max())
    axis.legend(handles=handles, fontsize="x-small")
