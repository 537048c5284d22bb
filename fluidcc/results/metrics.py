"""Every metric once: pure functions of arrays, or of signals over ``time``.

There are two ways to a number, and no third. `Trace.summary` has what the engine reduced over the run's window at full
resolution. Anything else is one of these functions on a variable of a trace, for example
``time_mean(trace.between("1ms", "2ms")["rate"])``, at the resolution of its samples.

What is reduced inside a compiled loop has its own form there, since neither JAX while it traces nor Numba can call
these: the running statistics of the fluid (`fluidcc.engines.fluid.running_statistics`), `fluidcc.measure`, and the
times that a packet engine's queue spends in bins (`fluidcc.engines.packet.record`), of which `binned_percentiles`
reads percentiles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fluidcc.surface import missing, public

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "Oscillation",
    "drain_time",
    "jain",
    "oscillation",
    "rate_gap",
    "settling_time",
    "statistics",
    "time_mean",
    "utilisation",
    "weighted_percentile",
]

Array = np.ndarray[Any, Any]
Values = TypeVar("Values", Array, "xr.DataArray")

PERCENTILES = (5, 50, 95, 99)
DRAINED = 0.05  # share of its peak at which a queue counts as drained


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    raise missing(__name__, name, __all__)


@dataclasses.dataclass(frozen=True)
class Oscillation:
    """Motion of a signal about its mean: half its peak-to-peak range, and its period [s] (NaN if it has none)."""

    amplitude: float
    period: float


# -- over flows and links ------------------------------------------------------------------------------------


def jain(rates: Any, weights: Any = None, axis: int = -1) -> Any:
    """Jain's fairness index, (sum R)^2/(n sum R^2): 1 if all are equal, 1/n if one has all.

    Parameters
    ----------
    rates : array_like
    weights : array_like
        How many equal flows each rate stands for, to broadcast with the rates; 1 by default, 0 leaves one out.
    axis : int
        The flows.

    Returns
    -------
    ndarray or float
        Of the other axes; NaN where all rates are 0.
    """
    values = np.asarray(rates)
    if values.dtype.kind != "O":  # exact rationals stay what they are
        values = values if values.dtype.kind == "f" else values.astype(np.float64)
        # Scaled by a power of 2, which rounds nothing: rates may be as small or as large as floats are.
        _, exponent = np.frexp(np.max(np.abs(values), axis=axis, keepdims=True, initial=0.0))
        values = np.ldexp(values, -exponent)
    weights = np.ones_like(values) if weights is None else np.broadcast_to(weights, values.shape)
    total = np.sum(weights * values, axis=axis)
    squares = np.sum(weights * values**2, axis=axis) * np.sum(weights, axis=axis)
    with np.errstate(invalid="ignore"):
        return np.where(squares > 0, total**2 / np.where(squares > 0, squares, 1), np.nan)[()]


def rate_gap(rates: Values, axis: int = -1) -> Values:
    """Largest less smallest rate, over the dimension ``flow`` of a signal or an axis of an array."""
    if isinstance(rates, np.ndarray):
        return np.max(rates, axis=axis) - np.min(rates, axis=axis)
    gap = rates.max("flow") - rates.min("flow")
    gap.attrs = {"units": rates.attrs.get("units", "bytes/s"), "long_name": "largest less smallest rate"}
    return gap


def most_loaded(means: Any) -> Any:
    """Index of the link with the largest mean queue (links, ...); of equals the first, NaN counts as the least."""
    return np.argmax(np.nan_to_num(np.asarray(means, dtype=float), nan=-1.0), axis=0)


def utilisation(sent: xr.DataArray) -> float:
    """Share of a link's ``capacity``, a coordinate, that was used, from the bytes that it has sent at each time."""
    seconds = float(sent.time[-1] - sent.time[0])
    return float(sent[-1] - sent[0]) / (float(sent.capacity) * seconds)


# -- over time -----------------------------------------------------------------------------------------------


def time_mean(signal: xr.DataArray) -> xr.DataArray:
    """Time-weighted mean: trapezoids over the samples."""
    seconds = float(signal.time[-1] - signal.time[0])
    return signal.integrate("time") / seconds


def weighted_percentile(signal: xr.DataArray, percent: float) -> float:
    """Time-weighted percentile of one signal; a sample weighs half the gaps to its neighbours."""
    times, values = signal.time.values, signal.values
    gaps = np.diff(times)
    weights = np.concatenate([[0.0], gaps]) / 2 + np.concatenate([gaps, [0.0]]) / 2
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order])
    return float(np.interp(percent / 100 * share[-1], share - weights[order] / 2, values[order]))


def binned_percentiles(spent: Array, area: Array, percents: Sequence[float]) -> list[float]:
    """Time-weighted percentiles of what was counted in bins; exact where a bin holds one value.

    Parameters
    ----------
    spent : ndarray, shape (bins,)
        Time for which the value was in each bin, in order.
    area : ndarray, shape (bins,)
        Integral of the value over that time.
    percents : sequence of float

    Returns
    -------
    list of float
        NaN if no time was spent.
    """
    so_far = np.cumsum(spent)
    total = float(so_far[-1])
    if total <= 0:
        return [float("nan")] * len(percents)
    found = np.searchsorted(so_far, np.asarray(percents) / 100 * total * (1 - 1e-12))
    places = [min(int(at), len(spent) - 1) for at in found]
    return [float(area[at] / spent[at]) if spent[at] > 0 else 0.0 for at in places]


def statistics(signal: xr.DataArray) -> dict[str, float]:
    """Mean, standard deviation, percentiles and extremes of one signal, time-weighted over its samples."""
    mean = float(time_mean(signal))
    quantiles = {f"p{p}": weighted_percentile(signal, p) for p in PERCENTILES}
    std = float(np.sqrt(time_mean((signal - mean) ** 2)))
    return {"mean": mean, "std": std, **quantiles, "min": float(signal.min()), "max": float(signal.max())}


def lasting_from(holds: Array) -> int | None:
    """The first sample from which on something holds to the end, of (samples,) bool; None if not at the end."""
    fails = np.flatnonzero(~holds)
    first = int(fails[-1]) + 1 if len(fails) else 0
    return first if first < len(holds) else None


@public()
def settling_time(signal: xr.DataArray, band: float, target: float | None = None) -> float:
    """Time after which a signal stays within ``band`` of ``target``.

    Parameters
    ----------
    signal : DataArray, dims (time,)
    band : float
        Half-width, in the signal's unit.
    target : float
        The signal's last value if not given.

    Returns
    -------
    float
        Seconds, interpolated between samples; NaN if it never settles.
    """
    times, values = signal.time.values, np.abs(signal.values - (signal.values[-1] if target is None else target))
    first = lasting_from(values <= band)
    if first is None:
        return float("nan")
    if first == 0 or not np.isfinite(values[first - 1]):  # nothing to interpolate from
        return float(times[first])
    return _crossing(times, values, first, band)


def drain_time(queue: xr.DataArray, *, between: bool = True) -> float | None:
    """First time after a queue's peak at which it is at or below 5 % of it [s].

    Parameters
    ----------
    queue : DataArray, dims (time,)
    between : bool
        Whether to interpolate between samples.

    Returns
    -------
    float or None
        None if it never is, or there is no queue.
    """
    times, values = queue.time.values, queue.values
    peak = int(np.argmax(values))
    threshold = DRAINED * values[peak]
    below = np.flatnonzero(values[peak:] <= threshold)
    if values[peak] <= 0 or not len(below):
        return None
    first = peak + int(below[0])
    return _crossing(times, values, first, threshold) if between else float(times[first])


def _crossing(times: Array, values: Array, first: int, level: float) -> float:
    """Compute when the line from the sample before falls to a level."""
    share = (values[first - 1] - level) / (values[first - 1] - values[first])
    return float(times[first - 1] + share * (times[first] - times[first - 1]))


@public()
def oscillation(signal: xr.DataArray) -> Oscillation:
    """Amplitude and period of one signal, the period from its upward crossings of its mean.

    Parameters
    ----------
    signal : DataArray, dims (time,)
        Of any unit.

    Returns
    -------
    Oscillation
    """
    times, values = signal.time.values, signal.values
    amplitude = float(np.ptp(values)) / 2
    crossings = upward_crossings(times, values, float(time_mean(signal)))
    if len(crossings) < 2 or amplitude <= 1e-9 * max(1.0, float(np.abs(values).max())):
        return Oscillation(amplitude, float("nan"))
    return Oscillation(amplitude, float((crossings[-1] - crossings[0]) / (len(crossings) - 1)))


def upward_crossings(times: Array, values: Array, level: float) -> Array:
    """Times at which values (times,) pass a level upwards, on lines between the samples."""
    centred = values - level
    up = np.flatnonzero((centred[:-1] < 0) & (centred[1:] >= 0))
    return times[up] - centred[up] * (times[up + 1] - times[up]) / (centred[up + 1] - centred[up])


# -- of flows that end ---------------------------------------------------------------------------------------


def completion_times(taken: Iterable[float | None]) -> Array:
    """A summary's ``fct_s`` as an array [s]; infinite where a flow has not ended."""
    return np.array([np.inf if t is None else t for t in taken], dtype=float)


def end_times(starts: Sequence[float], sizes: Sequence[float], taken: Iterable[float | None]) -> Array:
    """Compute when each flow ended, (flows,) [s]; infinite if it has not.

    Parameters
    ----------
    starts, sizes : sequence of float
        Starts and sizes of all flows [s, bytes]; a long-lived one has an infinite size.
    taken : iterable of float or None
        A summary's ``fct_s``: times of the finite flows alone.
    """
    ends = np.full(len(starts), np.inf)
    finite = np.isfinite(np.asarray(sizes, dtype=float))
    ends[finite] = np.asarray(starts, dtype=float)[finite] + completion_times(taken)
    return ends
