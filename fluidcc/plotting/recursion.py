"""Pictures of recursions: rates of paths, windows, and ACC's maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fluidcc import units
from fluidcc.errors import InputError
from fluidcc.plotting.style import Picture, figure, label, scaled

if TYPE_CHECKING:
    from fluidcc.schemes.acc.period_map_result import AccMap
    from fluidcc.theory.recursion.result import Rates
    from fluidcc.theory.recursion.windows import WindowLimit

_MOST_LINES = 12  # more have no legend; of flows, those drawn one by one
_SHOWN = {"time": units.TIME, "sent": units.RATE, "queue": units.SIZE}
_PLAIN = ("T", "C", "C T")


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


def plot_maps(runs: list[AccMap], *, title: str | None = None) -> Picture:
    """Rates sent, queue and shares over time; a column for each run.

    Parameters
    ----------
    runs : list of AccMap
    title : str

    Returns
    -------
    Picture

    Raises
    ------
    InputError
        If a run is a batch.
    """
    for run in runs:
        if run.queue.ndim > 1:
            raise InputError(f"plot: a batch of shape {run.queue.shape[1:]}; plot one of its runs, for example run[0]")
    picture, axes = figure(3, len(runs), sharex="col", sharey="row")
    plain = all(run.capacity == 1 and run.period == 1 for run in runs)  # C and T are the units
    tops = [np.concatenate([getattr(run, name).ravel() for run in runs]).astype(float) for name in _SHOWN]
    scales = (
        [(1.0, unit) for unit in _PLAIN]
        if plain
        else [_scale(*each) for each in zip(tops, _SHOWN.values(), strict=True)]
    )
    (second, time_unit), (rate, rate_unit), (byte, queue_unit) = scales
    for run, (sent, queue, share) in zip(runs, axes.T, strict=True):
        time = run.time.astype(float)
        for k in range(min(run.sent.shape[-1], _MOST_LINES)):
            sent.step(time / second, run.sent[:, k].astype(float) / rate, where="post", lw=1.2, label=f"flow {k}")
            share.step(time / second, run.shares[:, k].astype(float), where="post", lw=1.2)
        when, waiting = _drained(run)
        queue.plot(when / second, waiting / byte, lw=1.2)
        sent.set(title=run.form, ylabel=label("rate sent", rate_unit))
        queue.set(ylabel=label("queue", queue_unit))
        share.set(ylabel="share of the recorded rates", xlabel=label("time", time_unit))
        if 1 < run.sent.shape[-1] <= _MOST_LINES:
            sent.legend(fontsize="small", ncols=2)
    for axis in axes.flat:
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    picture.suptitle("ACC, period by period" if title is None else title)
    return picture


def _scale(values: np.ndarray, dimension: str) -> tuple[float, str]:
    """Divisor and unit, by the largest value."""
    shown, unit = scaled(values, dimension)
    top = values.argmax()
    return (float(values[top] / shown[top]) if values[top] else 1.0), unit


def _drained(run: AccMap) -> tuple[np.ndarray, np.ndarray]:
    """Times and queues, with the moments in which a halt's queue is empty before its last period is over."""
    time, queue = run.time.astype(float), run.queue.astype(float)
    last = run.halted[:-1] & (queue[1:] == 0)
    early = time[:-1][last] + queue[:-1][last] / float(run.capacity)
    inside = early < time[1:][last] * (1 - 1e-12)
    if run.form == "algorithm":
        inside[:] = False
    when = np.concatenate([time, early[inside]])
    order = np.argsort(when, kind="stable")
    return when[order], np.concatenate([queue, np.zeros(inside.sum())])[order]
