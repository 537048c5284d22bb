"""Pictures of branches of limit cycles, and of the region where a stable one lies next to a stable equilibrium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fluidcc import units
from fluidcc.plotting.stability import scale_of
from fluidcc.plotting.style import Picture, colour, figure, scaled
from fluidcc.plotting.style import label as with_unit
from fluidcc.plotting.sweeps import logarithmic

if TYPE_CHECKING:
    from fluidcc.studies.sweeps.bistable_region import BistableRegion
    from fluidcc.studies.sweeps.cycle_branch import CycleBranch

_FINE = 400  # places across
EQUILIBRIUM, BOTH = "#d9e8f5", "#f5c77e"  # as in the figure dcqcn-bistability


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
