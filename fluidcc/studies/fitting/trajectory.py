"""Least squares on the trajectory of a model without chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fluidcc.studies.fitting.moments import Solution

_STARTS = 16  # for each unknown
_POLISHED = 3
_INTEGRALS, _TRAJECTORIES = 12, 20  # steps of each
_STEP = 2e-3  # of the unit cube, of the differences
_UNFELT = 1e-3  # of the strongest direction's slope: what is weaker is the error of the differences
_PART = 0.05  # of a direction, below which an unknown has no part in it
_LEAST_NOISE = 1e-4  # of the signals: a trajectory is integrated in steps
# 97.5 % of a mean's deviations over the error by lags of a share b of the trace, an eighth (Kiefer and Vogelsang,
# Econometric Theory 21, 2005: 1.96 + 2.9694 b + 0.416 b^2 - 0.5324 b^3).
_QUANTILE = 2.34


def minimise(
    run: Callable[[np.ndarray], np.ndarray], observed: np.ndarray, unknowns: int, report: Callable[[float], None]
) -> Solution:
    """Find the point of the unit cube whose trajectory is nearest.

    Parameters
    ----------
    run : callable
        From a point to its signals (time, signals), each divided by its scale.
    observed : ndarray
        What was measured, likewise; NaN where nothing was.
    unknowns : int
    report : callable
        Told the share done.

    Returns
    -------
    Solution
        Its residual is what is left, as a share of the measured signals' root mean square.
    """
    from scipy.optimize import least_squares
    from scipy.stats import qmc

    there = np.isfinite(observed)
    starts = qmc.Halton(unknowns, rng=np.random.default_rng(0)).random(_STARTS * unknowns)
    most = len(starts) + _POLISHED * (_INTEGRALS + _TRAJECTORIES) * (unknowns + 1)
    calls = 0

    def left(at: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        report(min(calls / most, 0.99))
        return np.where(there, run(at) - np.where(there, observed, 0.0), 0.0)

    def integrated(at: np.ndarray) -> np.ndarray:
        return left(at).cumsum(axis=0)

    def polished(of: Callable[[np.ndarray], np.ndarray], start: np.ndarray, turns: int) -> Any:
        begin = np.clip(start, 0.01, 0.99)
        signals = lambda at: of(at).ravel()  # noqa: E731
        return least_squares(signals, begin, bounds=(0, 1), max_nfev=turns, diff_step=_STEP, xtol=1e-6)

    # Oscillations that are out of step agree nowhere in particular: their integrals lead to where they are in step.
    costs = [float((integrated(start) ** 2).sum()) for start in starts]
    near = [polished(integrated, start, _INTEGRALS).x for start in starts[np.argsort(costs)[:_POLISHED]]]
    best = min((polished(left, start, _TRAJECTORIES) for start in near), key=lambda one: one.cost)
    rest = best.fun.reshape(observed.shape)
    slopes = _slopes(left, best.x)
    sizes, directions = np.linalg.eigh(np.einsum("tsk,tsl->kl", slopes, slopes))
    felt = sizes > _UNFELT**2 * max(sizes.max(), 1e-300)
    inverse = (directions[:, felt] / sizes[felt]) @ directions[:, felt].T
    freedom = there.sum() / max(int(there.sum()) - unknowns, 1)
    spread = inverse @ _long_run(np.einsum("ts,tsk->tk", rest, slopes)) @ inverse * freedom + _LEAST_NOISE**2 * inverse
    reach = _QUANTILE * np.sqrt(np.maximum(np.diag(spread), 0))
    # What a direction without effect has a part in may be anywhere.
    lost = np.asarray((np.abs(directions[:, ~felt]) > _PART).any(axis=1))
    low, high = np.where(lost, 0.0, best.x - reach), np.where(lost, 1.0, best.x + reach)
    # Weighted so that the inverse of the information is what is uncertain along each direction.
    deviation = np.sqrt(np.maximum(np.linalg.eigvalsh(spread), 0)).max() / np.sqrt(
        max(np.linalg.eigvalsh(inverse).max(), 1e-300)
    )
    size = float(np.linalg.norm(np.where(there, observed, 0.0)))
    residual = float(np.linalg.norm(rest) / max(size, 1e-300))
    # Along what is not felt there is no slope but the error of the differences.
    clean = slopes.reshape(-1, unknowns) @ (directions[:, felt] @ directions[:, felt].T)
    jacobian = clean / max(deviation, 1e-300)
    return Solution(best.x, low, high, jacobian, residual, rest.ravel(), np.logical_not(lost))


def _slopes(signals: Callable[[np.ndarray], np.ndarray], at: np.ndarray) -> np.ndarray:
    """Derivatives by the unknowns (time, signals, unknowns), by central differences within the unit cube."""
    found = []
    for k in range(len(at)):
        ends = [at.copy(), at.copy()]
        ends[0][k], ends[1][k] = max(at[k] - _STEP, 0.0), min(at[k] + _STEP, 1.0)
        found.append((signals(ends[1]) - signals(ends[0])) / (ends[1][k] - ends[0][k]))
    return np.stack(found, axis=-1)


def _long_run(scores: np.ndarray) -> np.ndarray:
    """Variance of a sum of scores (time, unknowns), each like those before (Newey and West, Econometrica 55, 1987)."""
    count = len(scores)
    lags = max(1, round(count / 8))
    total = scores.T @ scores
    for lag in range(1, lags + 1):
        product = scores[lag:].T @ scores[:-lag]
        total += (1 - lag / (lags + 1)) * (product + product.T)
    values, vectors = np.linalg.eigh(total)
    least = float(np.trace(scores.T @ scores)) * 1e-6 / len(total)
    return (vectors * np.maximum(values, least)) @ vectors.T
