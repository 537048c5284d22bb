"""Simulated moments: the parameters under which a random model has the numbers that were measured.

The numbers are regressed on the parameters over runs of a design around the present best (a quadratic), which gives in one go their
mean, their Jacobian and, from what is left over, their covariance in a single run. Each run has a seed of its own, so that
chance averages out over the design, where common seeds would leave all of it in the constant. Designs shrink around the
best until they are as wide as what is uncertain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

ROUNDS = 6
_SHRINK = 0.45  # of a region's width, at most, in a round
_TO_DIAGONAL = 0.02  # of the covariance: numbers that say the same do not cancel
_LEAST_ERROR = 1e-3
_REACH = 3.0  # standard errors
_NEAREST = 0.08  # share of the runs, of those nearest to what was measured, that a region keeps


@dataclasses.dataclass(frozen=True)
class Solution:
    """A minimum in the unit cube."""

    at: np.ndarray
    covariance: np.ndarray
    jacobian: np.ndarray  # of the weighted numbers
    chi2: float
    freedom: int
    low: np.ndarray  # the last design
    high: np.ndarray
    misfits: np.ndarray  # of each number, in its standard deviations


def minimise(
    run: Callable[[np.ndarray, int], np.ndarray],
    observed: np.ndarray,
    unknowns: int,
    *,
    runs: int,
    errors: np.ndarray,
    first_seed: int,
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
    """
    from scipy.stats import qmc

    design = qmc.Halton(unknowns, rng=np.random.default_rng(first_seed))
    low, high = np.zeros(unknowns), np.ones(unknowns)
    points, numbers = np.empty((0, unknowns)), np.empty((0, len(observed)))
    each = runs // (ROUNDS + 1)
    solution = before = None
    for turn in range(ROUNDS):
        count = each if turn < ROUNDS - 1 else 2 * each
        new = low + (high - low) * design.random(count)
        found = run(new, first_seed + len(points))
        good = np.isfinite(found).all(axis=1)
        points, numbers = np.concatenate([points, new[good]]), np.concatenate([numbers, found[good]])
        inside = ((points >= low) & (points <= high)).all(axis=1)
        before, solution = solution, _solve(points[inside], numbers[inside], observed, low, high, errors)
        if turn < ROUNDS - 1:
            low, high = _next(solution, points[inside], numbers[inside], observed, low, high, turn)
    assert solution is not None and before is not None
    # Where the numbers are no smooth function of the parameters, designs of two widths disagree: that is uncertain too.
    apart = np.outer(solution.at - before.at, solution.at - before.at)
    return dataclasses.replace(solution, covariance=solution.covariance + apart)


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


def _solve(
    points: np.ndarray, numbers: np.ndarray, observed: np.ndarray, low: np.ndarray, high: np.ndarray, errors: np.ndarray
) -> Solution:
    from scipy.optimize import least_squares

    centre, half = (low + high) / 2, (high - low) / 2
    local = (points - centre) / half
    terms = _terms(local)
    fitted, *_ = np.linalg.lstsq(terms, numbers, rcond=None)
    left = numbers - terms @ fitted
    freedom = max(len(points) - terms.shape[1], 1)
    chance = left.T @ left / freedom
    covariance = (1 - _TO_DIAGONAL) * chance + _TO_DIAGONAL * np.diag(np.diag(chance))
    covariance += np.diag(np.maximum(errors, _LEAST_ERROR) ** 2)
    weight = np.linalg.cholesky(np.linalg.inv(covariance)).T

    def misfit(at: np.ndarray) -> np.ndarray:
        return weight @ (_terms(at[None])[0] @ fitted - observed)

    def slopes(at: np.ndarray) -> np.ndarray:
        return weight @ fitted.T @ _slopes(at)

    nearest = np.argsort(((weight @ (numbers - observed).T) ** 2).sum(axis=0))[:4]
    starts = [np.zeros(len(low)), *np.clip(local[nearest], -0.99, 0.99)]
    tries = [least_squares(misfit, start, slopes, bounds=(-1, 1)) for start in starts]
    best = min(tries, key=lambda one: one.cost)
    jacobian = slopes(best.x)
    information = jacobian.T @ jacobian
    inverse = np.linalg.pinv(information, rcond=1e-12)
    # The sandwich: weights are of one run's chance and the model's error, what is uncertain is that and the regression's.
    term = _terms(best.x[None])[0]
    leverage = float(term @ np.linalg.pinv(terms.T @ terms) @ term)
    meat = np.eye(len(observed)) + leverage * weight @ chance @ weight.T
    spread = inverse @ (jacobian.T @ meat @ jacobian) @ inverse
    residual = weight @ (_terms(best.x[None])[0] @ fitted - observed)
    degrees = max(len(observed) - len(low), 1)
    return Solution(
        centre + half * best.x,
        spread * np.outer(half, half),
        jacobian / half,
        float(residual @ residual),
        degrees,
        low,
        high,
        (_terms(best.x[None])[0] @ fitted - observed) / np.sqrt(np.diag(covariance)),
    )


def _next(
    solution: Solution,
    points: np.ndarray,
    numbers: np.ndarray,
    observed: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    turn: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the next design: the best and what is near, never much narrower than before."""
    reach = _REACH * np.sqrt(np.maximum(np.diag(solution.covariance), 0)) * max(1.0, solution.chi2 / solution.freedom) ** 0.5
    half = np.maximum(reach, _SHRINK * (high - low) / 2)
    centre = solution.at
    if turn == 0:  # a quadratic over the whole cube is coarse: the nearest runs have a say
        spread = np.std(numbers, axis=0) + 1e-6
        distance = np.abs((numbers - observed) / spread).mean(axis=1)
        near = points[np.argsort(distance)[: max(4, int(_NEAREST * len(points)))]]
        below, above = np.minimum(near.min(axis=0), centre - half / 2), np.maximum(near.max(axis=0), centre + half / 2)
        return np.clip(below, 0, 1), np.clip(above, 0, 1)
    width = np.minimum(2 * half, 1.0)
    below = np.clip(centre - half, 0, 1 - width)
    return below, below + width
