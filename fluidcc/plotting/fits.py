"""Pictures of fits: what was measured against runs at the estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from fluidcc import units
from fluidcc.plotting.style import Picture, colour, figure, label

if TYPE_CHECKING:
    from fluidcc.studies.fitting.measured import Measured
    from fluidcc.studies.fitting.result import Fit

_MOST_POINTS = 2000
_MEASURED, _FITTED = "black", colour(0)


def plot_fit(fit: Fit, *, title: str | None = None) -> Picture:
    """Measured and fitted over time, and their distributions; of counters the shares.

    Parameters
    ----------
    fit : Fit
    title : str

    Returns
    -------
    Picture
    """
    if fit.shares:
        picture, axes = _shares(fit)
    else:
        picture, axes = _samples(fit)
    for axis in axes.ravel():
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="small")
    shown = "; ".join(f"{name} {text}" for name, text in fit.rows)
    picture.suptitle(title if title is not None else shown, fontsize="medium")
    return picture


def _shares(fit: Fit) -> tuple[Picture, np.ndarray]:
    """Each share as it was counted, and at the estimate."""
    picture, axes = figure(1, len(fit.shares), size=(5.5 * len(fit.shares), 3.4))
    for axis, (name, share) in zip(axes[0], fit.shares.items(), strict=True):
        for k, (which, colours) in enumerate((("counted", _MEASURED), ("fitted", _FITTED))):
            axis.bar(k, 100 * share[which], color=colours, width=0.6, label=which)
        axis.set_xticks([])
        axis.set_ylabel(label(name, "%"))
    return picture, axes


def _samples(fit: Fit) -> tuple[Picture, np.ndarray]:
    """Measured and fitted samples over time, and their distributions."""
    samples: Any = fit.measured
    signals = [name for name in ("queue", "rates") if getattr(samples, name) is not None]
    picture, axes = figure(len(signals), 2, size=(11, 0.8 + 2.6 * len(signals)))
    for row, name in zip(axes, signals, strict=True):
        text, dimension = ("queue", units.SIZE) if name == "queue" else ("sum of rates", units.RATE)
        measured, fitted = _column(samples, name), np.stack([_column(run, name) for run in fit.fitted])
        factor, unit = units.scale_of(float(max(np.nanmax(measured), fitted.max())), dimension)
        _over_time(row[0], samples.time, measured / factor, fitted / factor)
        if name == "queue":
            row[0].set_ylim(bottom=0)
        row[0].set_ylabel(label(text, unit))
        _distribution(row[1], measured / factor, fitted / factor)
        row[1].set_xlabel(label(text, unit))
        row[1].set_ylabel("share of time below [1]")
    axes[0, 1].legend(fontsize="small")
    return picture, axes


def _column(of: Measured, name: str) -> np.ndarray:
    return of.queue if name == "queue" and of.queue is not None else np.nansum(of.rates, axis=1)  # type: ignore[arg-type]


def _over_time(axis: Axes, time: np.ndarray, measured: np.ndarray, fitted: np.ndarray) -> None:
    second, unit = units.scale_of(float(time[-1]), units.TIME)
    step = -(-len(time) // _MOST_POINTS)
    shown = time[::step] / second
    if len(fitted) > 1:
        low, high = np.quantile(fitted[:, ::step], (0.05, 0.95), axis=0)
        text = f"fitted: 5 to 95 % of {len(fitted)} seeds"
        axis.fill_between(shown, low, high, color=_FITTED, alpha=0.3, lw=0, label=text)
        axis.plot(shown, measured[::step], color=_MEASURED, lw=0.6, label="measured")
    else:
        axis.plot(shown, measured[::step], color=_MEASURED, lw=1.0, label="measured")
        axis.plot(shown, fitted[0, ::step], color=_FITTED, lw=1.4, ls="--", label="fitted")
    axis.set_xlabel(label("time", unit))


def _distribution(axis: Axes, measured: np.ndarray, fitted: np.ndarray) -> None:
    shares = np.linspace(0, 1, 201)
    each = np.nanquantile(fitted, shares, axis=1).T
    if len(each) > 1:
        range_of = {"alpha": 0.3, "lw": 0, "label": "fitted: range over seeds"}
        axis.fill_betweenx(shares, each.min(axis=0), each.max(axis=0), color=_FITTED, **range_of)
    axis.plot(each.mean(axis=0), shares, color=_FITTED, lw=1.2, ls="--", label="fitted: mean")
    axis.plot(np.nanquantile(measured, shares), shares, color=_MEASURED, lw=1.0, label="measured")
    axis.set_ylim(0, 1)
