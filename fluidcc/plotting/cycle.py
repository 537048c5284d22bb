"""Picture of a limit cycle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fluidcc import units
from fluidcc.plotting.style import Picture, figure, label, scaled

if TYPE_CHECKING:
    from fluidcc.theory.control.limit_cycle import LimitCycle

_MOST_LINES = 12  # flows drawn one by one


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
