"""What every engine returns: a labelled, unit-carrying dataset, and the metrics on it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from fluidcc.errors import InputError
from fluidcc.files import write_atomically
from fluidcc.results.dataset import DatasetResult
from fluidcc.results.drawing import draw
from fluidcc.units import TIME, quantity, show

Window = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Oscillation:
    """How a signal moves about its mean: half its peak-to-peak range, and its period [s] (NaN if it has none)."""

    amplitude: float
    period: float


@dataclasses.dataclass(frozen=True, repr=False)
class Trace(DatasetResult):
    """A run of a scenario.

    Parameters
    ----------
    dataset : xarray.Dataset
        Dimensions ``time`` [s], ``link``, ``flow``; variables ``queue`` (time, link) [bytes], ``rate`` (time,
        flow) [bytes/s], ``sent`` (time, link) [bytes, cumulative], and the scheme's own. Units are in
        ``attrs["units"]`` of each; the scenario, the window and the engine's own metrics in the dataset's.
    """

    def __repr__(self) -> str:
        """Engine, horizon and sizes in a line."""
        sizes = ", ".join(f"{size} {name}" for name, size in self.dataset.sizes.items())
        return f"<Trace {self.dataset.attrs.get('engine', '?')}: {sizes}>"

    @property
    def summary(self) -> dict[str, Any]:
        """The engine's own metrics over the run's window, reduced at full resolution; keys as in the CLI."""
        return json.loads(self.dataset.attrs["summary"])

    # -- parts -----------------------------------------------------------------------------------------------

    def window(self, opens: Any, closes: Any) -> Trace:
        """Samples between two times (text or seconds).

        Raises
        ------
        InputError
            If the window holds fewer than two samples.
        """
        a, b = quantity(opens, TIME, "window"), quantity(closes, TIME, "window")
        part = self.dataset.sel(time=slice(a - 1e-12, b + 1e-12))
        if part.sizes["time"] < 2:
            end = float(self.dataset.time[-1])
            raise InputError(
                f"window: {show(a, TIME)}:{show(b, TIME)} holds fewer than two samples of a trace of "
                f"{show(end, TIME)}; widen it or sample more finely"
            )
        return Trace(part)

    def bottleneck(self) -> str:
        """Name of the link with the largest mean queue."""
        return str(self.dataset.link.values[int(np.argmax(time_mean(self["queue"]).values))])

    # -- metrics, from the samples ---------------------------------------------------------------------------

    def queue_statistics(self, link: str | None = None) -> dict[str, float]:
        """Mean, standard deviation, percentiles and extremes of a queue [bytes], time-weighted over the samples."""
        queue = self["queue"].sel(link=link or self.bottleneck())
        mean = float(time_mean(queue))
        quantiles = {f"p{p}": weighted_percentile(queue, p) for p in (5, 50, 95, 99)}
        std = float(np.sqrt(time_mean((queue - mean) ** 2)))
        return {"mean": mean, "std": std, **quantiles, "min": float(queue.min()), "max": float(queue.max())}

    def utilisation(self, link: str | None = None) -> float:
        """Share of a link's capacity that was used, from the bytes it sent."""
        sent = self["sent"].sel(link=link or self.bottleneck())
        seconds = float(sent.time[-1] - sent.time[0])
        return float(sent[-1] - sent[0]) / (float(sent.capacity) * seconds)

    def mean_rates(self) -> xr.DataArray:
        """Mean sending rate of every flow [bytes/s]."""
        return time_mean(self["rate"])

    def jain(self) -> float:
        """Jain's fairness index of the mean rates, over all flows of all classes."""
        return jain_index(self.mean_rates().values, self.dataset.multiplicity.values)

    def rate_gap(self) -> xr.DataArray:
        """Largest less smallest sending rate at each time [bytes/s]."""
        rate = self["rate"]
        gap = rate.max("flow") - rate.min("flow")
        gap.attrs = {"units": "bytes/s", "long_name": "largest less smallest rate"}
        return gap

    # -- files and pictures ----------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write NetCDF4; the file appears whole or not at all.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        return write_atomically(path, lambda target: self.dataset.to_netcdf(target, engine="h5netcdf"))

    @staticmethod
    def load(path: str | Path) -> Trace:
        """Read what `save` wrote.

        Raises
        ------
        InputError
            If the file is missing or no trace.
        """
        try:
            with xr.open_dataset(path, engine="h5netcdf") as dataset:
                loaded = dataset.load()
        except (OSError, ValueError, KeyError) as error:
            raise InputError(
                f"{path}: cannot be read as a trace ({error}); give a file that Trace.save wrote"
            ) from None
        if "queue" not in loaded or "time" not in loaded.dims:
            raise InputError(f"{path}: holds no queue over time; give a file that Trace.save wrote")
        return Trace(loaded)

    def plot(self, **options: Any) -> Any:
        """Queue and rates over time; see `fluidcc.plotting.traces.plot_trace`."""
        return draw("plot_trace", self, **options)


def jain_index(rates: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Jain's fairness index of rates (flows,) of classes of ``weights`` equal flows; NaN if all are 0."""
    weights = np.ones_like(rates) if weights is None else weights
    total, squares = (weights * rates).sum(), (weights * rates**2).sum() * weights.sum()
    return float(total**2 / squares) if squares > 0 else float("nan")


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
    outside = np.flatnonzero(~(values <= band))
    if len(outside) == 0:
        return float(times[0])
    last = int(outside[-1])
    if last + 1 >= len(times):
        return float("nan")
    if not np.isfinite(values[last]):  # nothing to interpolate from
        return float(times[last + 1])
    share = (values[last] - band) / (values[last] - values[last + 1])
    return float(times[last] + share * (times[last + 1] - times[last]))


def oscillation(signal: xr.DataArray) -> Oscillation:
    """Amplitude and period of one signal, the period from its upward crossings of its mean."""
    times, values = signal.time.values, signal.values
    amplitude = float(np.ptp(values)) / 2
    crossings = upward_crossings(times, values, float(time_mean(signal)))
    if len(crossings) < 2 or amplitude <= 1e-9 * max(1.0, float(np.abs(values).max())):
        return Oscillation(amplitude, float("nan"))
    return Oscillation(amplitude, float((crossings[-1] - crossings[0]) / (len(crossings) - 1)))


def upward_crossings(times: np.ndarray, values: np.ndarray, level: float) -> np.ndarray:
    """Times at which values (times,) pass a level upwards, on lines between the samples."""
    centred = values - level
    up = np.flatnonzero((centred[:-1] < 0) & (centred[1:] >= 0))
    return times[up] - centred[up] * (times[up + 1] - times[up]) / (centred[up + 1] - centred[up])
