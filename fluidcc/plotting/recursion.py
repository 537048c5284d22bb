"""Pictures of the recursions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fluidcc.plotting.style import Picture, figure

if TYPE_CHECKING:
    from fluidcc.theory.recursion.result import Rates
    from fluidcc.theory.recursion.windows import WindowLimit

_MOST_LINES = 12  # more are drawn without a legend


def plot_rates(run: Rates, *, title: str | None = None) -> Picture:
    """Rates of the paths above, utilisation of the links below, over the steps."""
    picture, axes = figure(2, 1, sharex=True)
    for axis, rows, text, what in (
        (axes[0, 0], run.rates, "rate", "path"),
        (axes[1, 0], run.utilization, "utilisation", "link"),
    ):
        for k, column in enumerate(rows.astype(np.float64).T):
            axis.plot(column, lw=1.2, marker="o" if len(column) < 40 else None, ms=3, label=f"{what} {k}")
        axis.set_ylabel(text)
        axis.grid(alpha=0.3)
        if rows.shape[1] <= _MOST_LINES:
            axis.legend(fontsize="small", ncols=2)
    axes[0, 0].set_ylim(bottom=0)
    axes[1, 0].set_xlabel("step")
    picture.suptitle(run.title if title is None else title)
    return picture


def plot_windows(run: WindowLimit, *, title: str | None = None) -> Picture:
    """Root queue above, a source's window below, over time."""
    picture, axes = figure(2, 1, sharex=True)
    axes[0, 0].plot(run.time, run.queue)
    axes[0, 0].set_ylabel("queue [rate × base RTT]")
    axes[1, 0].semilogy(run.time, run.window)
    axes[1, 0].set_ylabel("window [initial windows]")
    axes[1, 0].set_xlabel("time [base RTT]")
    for axis in axes[:, 0]:
        axis.grid(alpha=0.3)
    picture.suptitle("HPCC A.4" if title is None else title)
    return picture
