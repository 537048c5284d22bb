"""Simulated moments: the parameters under which a random model has the moments, quantiles and spectra measured.

The numbers are regressed on the parameters over runs of a design (a quadratic), which gives in one go their mean, their
Jacobian and, from what is left over, their covariance in a single run. Each run has a seed of its own, so that chance
averages out over the design, where common seeds would leave all of it in the constant. The next design covers what the
regression leaves possible: chosen by parameters alone, so that nothing is selected by its chance.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.errors import InputError
from fluidcc.studies.fitting.measured import Measured

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_OF_STEPS = (0.02, 0.1, 0.5, 0.9, 0.98)
_BANDS = 8
_PACKETS = 48.0  # of a flow in an interval over which its rate is taken: what is less is packets, not rates
_OF_QUEUE, _OF_RATES = 0.02, 0.005
_MOST_SAMPLES = 1 << 15
ROUNDS = 6
_TO_DIAGONAL = 0.02  # of the covariance: numbers that say the same do not cancel
_LEAST_ERROR = 1e-3
_POSSIBLE = (120.0, 60.0, 40.0)  # squared distance beyond the least, in the first rounds and after: some 6 deviations
_FAR = 1e6  # beyond any such distance
_CANDIDATES = 1 << 13
_NARROWINGS = 12
_TAILS = (0.025, 0.975)
_AT_END = 0.02  # of the range
_UNLIKELY = 3.84  # squared distance beyond the least of a 95 % interval of one unknown


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


@dataclasses.dataclass(frozen=True)
class Solution:
    """A minimum in the unit cube."""

    at: np.ndarray
    low: np.ndarray  # ends of the 95 % intervals
    high: np.ndarray
    jacobian: np.ndarray  # of the weighted numbers
    residual: float
    misfits: np.ndarray  # of each number, in its standard deviations
    inside: np.ndarray  # whether the ends of the range are less likely than the interval's
    numbers: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0))  # of the regression there


@dataclasses.dataclass(frozen=True)
class Regression:
    """The numbers as a quadratic of the parameters, over a box."""

    centre: np.ndarray
    half: np.ndarray
    fitted: np.ndarray  # (terms, numbers)
    weight: np.ndarray  # whitens what is between numbers of one run and the fit
    deviations: np.ndarray
    observed: np.ndarray

    def misfit(self, points: np.ndarray) -> np.ndarray:
        """Compute the misfit at points (n, unknowns), in standard deviations, (n, numbers)."""
        return (_terms((points - self.centre) / self.half) @ self.fitted - self.observed) @ self.weight.T

    def jacobian(self, point: np.ndarray) -> np.ndarray:
        """Compute the Jacobian of the misfit, (numbers, unknowns)."""
        return self.weight @ self.fitted.T @ _slopes((point - self.centre) / self.half) / self.half

    def distance(self, points: np.ndarray) -> np.ndarray:
        """Squared length of the misfit."""
        return (self.misfit(points) ** 2).sum(axis=1)


def minimise(
    run: Callable[[np.ndarray, int], np.ndarray],
    observed: np.ndarray,
    unknowns: int,
    *,
    runs: int,
    errors: np.ndarray,
    first_seed: int,
    chance: float = 1.0,
    known: int = 0,
) -> Solution:
    """Find the point of the unit cube at which runs are like what was observed.

    Parameters
    ----------
    run : callable
        From points (n, unknowns) and the first of n seeds to their numbers (n, numbers).
    observed : ndarray
        The numbers of what was measured.
    unknowns : int
    runs : int
        In all rounds together.
    errors : ndarray
        Standard deviation that each number has beyond chance, as the model is not what was measured.
    first_seed : int
    chance : float
        Variance by chance in what was observed, over that in a run: 1 if it is as long as a run, less if it is longer.
    known : int
        Last of the numbers, without ``errors``, that are conditions and not results: runs are brought to those
        observed.

    Raises
    ------
    InputError
        If hardly any run makes sense.
    """
    from scipy.stats import qmc

    random = np.random.default_rng(first_seed)
    design = qmc.Halton(unknowns, rng=random)
    points, numbers = np.empty((0, unknowns)), np.empty((0, len(observed)))
    each = runs // (ROUNDS + 1)
    candidates = design.random(_CANDIDATES)  # where the parameters may be
    new = design.random(each)
    before = best = np.full(unknowns, 0.5)
    regression, asked = None, 0
    for turn in range(ROUNDS):
        if regression is not None:
            count = each if turn < ROUNDS - 1 else runs - asked
            new = candidates[random.permutation(len(candidates))[:count]]
        found = run(new, first_seed + asked)
        asked += len(new)
        good = np.isfinite(found).all(axis=1)
        points, numbers = np.concatenate([points, new[good]]), np.concatenate([numbers, found[good]])
        if len(points) < each // 2:
            raise InputError(f"over: {len(points)} of {asked} runs made sense; narrow the ranges")
        used = np.arange(len(points))
        if regression is not None:
            beyond = regression.distance(points) - regression.distance(best[None])[0]
            beyond[~_within(points, candidates)] += _FAR
            nearest = np.argsort(beyond)
            used = nearest[: max(int((beyond < _possible_at(turn - 1)).sum()), each // 2)]
        regression = _regress(points[used], numbers[used], observed, errors, chance, known)
        before, (best, candidates) = best, _possible(regression, candidates, _possible_at(turn), random)
    assert regression is not None
    return _solution(regression, best, before, candidates)


def _possible_at(turn: int) -> float:
    return _POSSIBLE[min(turn, len(_POSSIBLE) - 1)]


def _within(points: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return which points are in the box of others, or near its sides."""
    low, high = candidates.min(axis=0), candidates.max(axis=0)
    margin = 0.02 * (high - low)
    return ((points >= low - margin) & (points <= high + margin)).all(axis=1)


def _terms(points: np.ndarray) -> np.ndarray:
    """Constant, linear and quadratic terms."""
    count, unknowns = points.shape
    pairs = [points[:, i] * points[:, j] for i in range(unknowns) for j in range(i, unknowns)]
    return np.column_stack([np.ones(count), points, *pairs])


def _slopes(point: np.ndarray) -> np.ndarray:
    """Derivatives of the terms, (terms, unknowns)."""
    unknowns = len(point)
    rows = [np.zeros(unknowns), *np.eye(unknowns)]
    for i in range(unknowns):
        for j in range(i, unknowns):
            row = np.zeros(unknowns)
            row[i] += point[j]
            row[j] += point[i]
            rows.append(row)
    return np.array(rows)


def _regress(
    points: np.ndarray,
    numbers: np.ndarray,
    observed: np.ndarray,
    errors: np.ndarray,
    chance: float = 1.0,
    known: int = 0,
) -> Regression:
    results = len(observed) - known
    conditions = numbers[:, results:] - observed[results:]
    numbers, observed = numbers[:, :results], observed[:results]
    low, high = points.min(axis=0), points.max(axis=0)
    centre, half = (low + high) / 2, np.maximum((high - low) / 2, 1e-6)
    terms = _terms((points - centre) / half)
    explained = np.column_stack([terms, conditions])
    fitted, *_ = np.linalg.lstsq(explained, numbers, rcond=None)
    left = numbers - explained @ fitted
    freedom = max(len(points) - explained.shape[1], 1)
    of_run = left.T @ left / freedom
    of_run = (1 - _TO_DIAGONAL) * of_run + _TO_DIAGONAL * np.diag(np.diag(of_run))
    # The constant is a mean over the design: as uncertain as a run's chance over its runs. A covariance that is
    # estimated has an inverse that is too large (Hartlap et al., Astron. Astrophys. 464, 2007).
    of_run *= (chance + explained.shape[1] / len(points)) * freedom / max(freedom - results - 1, 0.2 * freedom)
    covariance = of_run + np.diag(np.maximum(errors, _LEAST_ERROR) ** 2)
    weight = np.linalg.cholesky(np.linalg.inv(covariance)).T
    return Regression(centre, half, fitted[: terms.shape[1]], weight, np.sqrt(np.diag(covariance)), observed)


def _possible(
    regression: Regression, candidates: np.ndarray, bound: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The best point among those possible before, and points that cover what the regression leaves possible."""
    from scipy.optimize import least_squares
    from scipy.stats import qmc

    low, high = candidates.min(axis=0), candidates.max(axis=0)
    room = np.maximum(high - low, 1e-9)
    starts = candidates[np.argsort(regression.distance(candidates))[:3]]
    jac: Any = regression.jacobian
    tries = [
        least_squares(
            lambda at: regression.misfit(at[None])[0],
            np.clip(start, low + 1e-3 * room, high - 1e-3 * room),
            jac,
            bounds=(low, low + room),
        )
        for start in starts
    ]
    best = min(tries, key=lambda one: one.cost)
    for _ in range(_NARROWINGS):
        near = candidates[regression.distance(candidates) < 2 * best.cost + bound]
        if len(near) >= _CANDIDATES // 4:
            return best.x, near
        below, above = (near.min(axis=0), near.max(axis=0)) if len(near) > 1 else (best.x, best.x)
        margin = 0.1 * (above - below) + 0.02 * room
        low, high = np.maximum(low, below - margin), np.minimum(high, above + margin)
        room = high - low
        fresh = low + room * qmc.Halton(len(low), rng=random).random(_CANDIDATES)
        near = fresh[regression.distance(fresh) < 2 * best.cost + bound]
        candidates = fresh
        if len(near) >= 20 * len(low) ** 2 and len(near) >= _CANDIDATES // 8:
            return best.x, near
    return best.x, candidates[np.argsort(regression.distance(candidates))[: _CANDIDATES // 8]]


def _solution(regression: Regression, best: np.ndarray, before: np.ndarray, candidates: np.ndarray) -> Solution:
    """Intervals from the likelihood over what is possible, which also bends along what cannot be told apart."""
    misfit = regression.misfit(best[None])[0]
    freedom = max(len(misfit) - len(best), 1)
    residual = float(np.sqrt(misfit @ misfit / freedom))
    excess = regression.distance(candidates) - misfit @ misfit
    weights = np.exp(-np.maximum(excess, 0) / 2 / max(1.0, residual) ** 2)
    low, high, inside = np.empty(len(best)), np.empty(len(best)), np.ones(len(best), bool)
    for k in range(len(best)):
        ends_of_range = (candidates[:, k] < _AT_END) | (candidates[:, k] > 1 - _AT_END)
        inside[k] = (excess[ends_of_range] > _UNLIKELY * max(1.0, residual) ** 2).all()
        order = np.argsort(candidates[:, k])
        share = np.cumsum(weights[order]) / weights.sum()
        ends = np.interp(_TAILS, share, candidates[order, k])
        # Where the numbers are no smooth function of the parameters, two designs disagree: that is uncertain too.
        apart = best[k] - before[k]
        low[k] = best[k] - np.hypot(max(best[k] - ends[0], 0), apart)
        high[k] = best[k] + np.hypot(max(ends[1] - best[k], 0), apart)
    deviations = regression.deviations
    left = _terms(((best - regression.centre) / regression.half)[None])[0] @ regression.fitted - regression.observed
    return Solution(
        best, low, high, regression.jacobian(best) / max(1.0, residual), residual, left / deviations, inside,
        regression.observed + left,
    )  # fmt: skip
