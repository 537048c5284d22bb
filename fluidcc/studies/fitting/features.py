"""Numbers that say how a queue and rates behave, whatever the chance in them: moments, quantiles, spectra.

All are logarithms or the like, so that a difference of 0.01 is one of about a percent.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from fluidcc.studies.fitting.measured import Measured

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_OF_STEPS = (0.02, 0.1, 0.5, 0.9, 0.98)
_BANDS = 8
_PACKETS = 48.0  # of a flow in an interval over which its rate is taken: what is less is packets, not rates
_OF_QUEUE, _OF_RATES = 0.02, 0.005
_MOST_SAMPLES = 1 << 15


@dataclasses.dataclass(frozen=True)
class Features:
    """Reduction of a stretch of samples to numbers, the same for measured and for simulated samples.

    Parameters
    ----------
    interval : float
        Spacing of the samples [s].
    packet : float
        A packet on the wire [bytes]: smaller differences say nothing about a queue.
    width : int
        Samples over which a rate is taken.
    has_queue : bool
    rates : int
        Number of measured rates: one for each class of flows, one for their sum, or none.
    """

    interval: float
    packet: float
    width: int
    has_queue: bool
    rates: int

    @property
    def names(self) -> list[str]:
        """Names of the numbers, in order."""
        found = []
        if self.has_queue:
            found += ["queue mean", "queue std", *(f"queue p{100 * q:g}" for q in _QUANTILES)]
            found += ["time without queue", *(f"queue band {band}" for band in range(_BANDS))]
        if self.rates:
            found += ["rate mean", "rate std", *(f"rate step p{100 * q:g}" for q in _OF_STEPS)]
            found += [f"rate band {band}" for band in range(_BANDS)]
            found += ["spread of flows"] if self.rates > 1 else []
        return found

    def __call__(self, stretch: Measured) -> np.ndarray:
        """The numbers of a stretch of evenly spaced samples."""
        found: list[float] = []
        if self.has_queue and stretch.queue is not None:
            found += self._of_queue(stretch.queue)
        if self.rates and stretch.rates is not None:
            found += self._of_rates(stretch.rates)
        return np.array(found)

    def errors(self, stretch: Measured) -> np.ndarray:
        """Compute the tolerance of a fluid queue for each number, beyond chance.

        Up to two packets that meet are added to the measured queue: the model need not explain what that changes. To
        this are added 2 % for the queue's numbers and 0.5 % for those of rates, to which the hybrid agrees with
        packets.
        """
        noise = np.random.default_rng(0).uniform(0, 2 * self.packet, len(stretch.time))
        queue = None if stretch.queue is None else stretch.queue + noise
        noisy = dataclasses.replace(stretch, queue=queue)
        base = [_OF_QUEUE if name.startswith(("queue", "time")) else _OF_RATES for name in self.names]
        return np.hypot(self(noisy) - self(stretch), base)

    def _of_queue(self, queue: np.ndarray) -> list[float]:
        quantiles = np.quantile(queue, _QUANTILES)
        empty = float((queue < 4 * self.packet).mean())
        return [
            float(np.log(queue.mean() + self.packet)),
            float(np.log(queue.std() + self.packet)),
            *np.log(quantiles + 4 * self.packet),
            float(np.arcsin(np.sqrt(empty))),
            *_bands(queue[:, None], self.packet),
        ]

    def _of_rates(self, rates: np.ndarray) -> list[float]:
        count = len(rates) // self.width
        coarse = np.nan_to_num(rates[: count * self.width]).reshape(count, self.width, -1).mean(axis=1)
        mean = coarse.mean(axis=0)
        least = max(float(coarse.mean()) * 1e-3, 1.0)
        steps = np.diff(coarse, axis=0) / (coarse[:-1] + 0.05 * coarse.mean() + least)
        found = [
            float(np.log(mean.sum() + least)),
            float(np.log(np.sqrt(coarse.var(axis=0).mean()) + least)),
            *np.quantile(np.arcsinh(10 * steps), _OF_STEPS),
            *_bands(coarse, least),
        ]
        return [*found, float(np.log(mean.std() + 0.01 * mean.mean() + least))] if self.rates > 1 else found


def features_of(measured: Measured, packet: float) -> Features:
    """Choose how to reduce samples like these to numbers."""
    width = 1
    if measured.rates is not None and not measured.paced:
        mean = float(np.nanmean(measured.rates))
        width = max(1, round(_PACKETS * packet / max(mean, 1.0) / measured.interval))
        width = min(width, max(1, len(measured.time) // 64))
    columns = 0 if measured.rates is None else measured.rates.shape[1]
    return Features(measured.interval, packet, width, measured.queue is not None, columns)


def _bands(values: np.ndarray, floor: float) -> np.ndarray:
    """Logarithm of the power in bands of equal ratio, of columns with one mean power."""
    count = len(values)
    window = np.hanning(count)[:, None]
    power = np.abs(np.fft.rfft((values - values.mean(axis=0)) * window, axis=0)) ** 2
    power = power.mean(axis=1)[1:] / (window**2).sum()
    edges = np.unique(np.round(np.geomspace(2, len(power), _BANDS + 1)).astype(int))
    edges[0] = 0
    found = [np.log(part.mean() + 4 * floor**2) for part in np.split(power, edges[1:-1])]
    return np.array(found + [found[-1]] * (_BANDS - len(found)))


def even(measured: Measured) -> Measured:
    """The same at evenly spaced times, thinned where they are many."""
    count = len(measured.time)
    spacing = measured.interval
    steady = np.allclose(np.diff(measured.time), spacing, rtol=1e-3, atol=0)
    if steady and count <= _MOST_SAMPLES:
        return measured
    span = measured.time[-1] - measured.time[0]
    spacing *= max(1, int(np.ceil(span / spacing / _MOST_SAMPLES)))
    return measured.at(measured.time[0] + spacing * np.arange(int(span / spacing + 1e-9) + 1))
