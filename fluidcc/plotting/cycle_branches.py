"""Pictures of branches of limit cycles, and of the region where a stable one lies next to a stable equilibrium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc import units
from fluidcc.plotting.chart import scale_of
from fluidcc.plotting.style import Picture, colour, figure, scaled
from fluidcc.plotting.style import label as with_unit
from fluidcc.plotting.sweeps import logarithmic

if TYPE_CHECKING:
    from fluidcc.studies.sweeps.bistable_region import BistableRegion
    from fluidcc.studies.sweeps.cycle_branch import CycleBranch


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
    top = float(data["queue_max"].max())
    _, unit = scaled(np.array([top]), units.SIZE)
    factor = top / float(scaled(np.array([top]), units.SIZE)[0][0])
    x, stable = data[found.name].values, data["stable"].values
    picture, axes = figure(1, 1, size=(7.5, 4.6))
    (axis,) = axes[0]
    for kind, style, name in ((True, "-", "stable cycle"), (False, "--", "unstable cycle")):
        # A line to the next point belongs to both.
        here = (stable == kind) | (np.roll(stable, 1) == kind) | data["fold"].values
        for k, which in enumerate(("queue_max", "queue_min")):
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
    x = data[found.second].values / scale_of(across)
    fold, lost = (data[name].values / scale_of(up) for name in ("fold", "lost"))
    axis.fill_between(x, fold, lost, color=colour(1), alpha=0.25, lw=0, label="both are stable")
    axis.plot(x, fold, "o-", ms=3, color=colour(1), lw=1.4, label="fold: the stable cycle ends")
    for k, (why, text) in enumerate(
        (("oscillates", "the equilibrium starts to oscillate"), ("leaves the ramp", "the equilibrium leaves the ramp"))
    ):
        here = data["lost_by"].values == why
        if here.any():
            axis.plot(x, np.where(here, lost, np.nan), "os"[k], color=colour(0), ls="-", ms=3, lw=1.4, label=text)
    axis.set(xlabel=across, ylabel=up, xscale="log" if logarithmic(x) else "linear")
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small")
