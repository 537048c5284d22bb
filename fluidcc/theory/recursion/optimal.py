"""The optimisation problems that the recursions are said to solve, solved by other means.

Pareto optimality by a linear programme, max-min fairness and A.3's equilibrium by filling links, alpha-fairness by
convex optimisation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import LinearConstraint, linprog, minimize

from fluidcc.errors import InputError
from fluidcc.theory.recursion.checks import Array, incidence, positive, scalar

_TOLERANCE = 1e-6  # of a share of a link; HiGHS itself meets its constraints to 1e-7


def is_pareto(A: ArrayLike, C: ArrayLike, R: ArrayLike) -> bool:
    """Check whether rates are feasible and no path can have more without another having less.

    The programme: raise rates by d >= 0 with A (R + d) <= C so that the sum of d over the paths, each counted in
    shares of its smallest link, is greatest. R is Pareto optimal if and only if that sum is 0.

    Parameters
    ----------
    A, C, R
        Incidence (links, paths), capacities (links,), rates (paths,); fractions are rounded to floats.

    Returns
    -------
    bool
        Within 1e-6 of a share.
    """
    A, C, R = (np.asarray(values, dtype=np.float64) for values in (A, C, R))
    room = 1 - A @ R / C
    if room.min() < -_TOLERANCE or R.min() < 0:
        return False
    smallest = np.where(A > 0, C[:, None], np.inf).min(axis=0)
    found = linprog(
        -np.ones(len(R)), A_ub=A * smallest / C[:, None], b_ub=np.maximum(room, 0), bounds=(0, None), method="highs"
    )
    return bool(found.status == 0 and -found.fun <= _TOLERANCE)


def max_min(A: ArrayLike, C: ArrayLike) -> Array:
    """Max-min fair rates (paths,): no path can have more without one that has no more having less."""
    return equilibrium(A, C, increase=0.0, target=1.0)


def equilibrium(A: ArrayLike, C: ArrayLike, *, increase: float, target: float = 0.95) -> Array:
    """Rates at which HPCC A.3's additive increase settles: R = a / (1 - Ut / U), U of the path's most loaded link.

    Parameters
    ----------
    A : array_like
        Incidence, (links, paths).
    C : array_like
        Capacities, (links,).
    increase : float
        a, in the unit of ``C``; 0 gives the limit of small increases, max-min fairness within ``target`` of ``C``.
    target : float
        Ut, the target utilisation.

    Returns
    -------
    ndarray
        (paths,)

    Raises
    ------
    InputError
        If the network makes no sense, the increase is negative or the target not within 0 and 1.

    Notes
    -----
    The paper's own recursion: the most loaded link has the least rates R_(1). N paths that are still free beside a
    load F of settled ones fill their link when (F + N R) (R - a) = Ut C R, which has one root above a.
    """
    matrix = incidence(A)
    capacities = positive("C", C, matrix.shape[0], "link")
    a, Ut = scalar("increase", increase, zero=True), scalar("target", target, most=1.0)
    rates = np.zeros(matrix.shape[1])
    free = np.ones(len(rates), dtype=bool)
    while free.any():
        F, N = matrix @ rates, matrix[:, free].sum(axis=1)
        b = Ut * capacities + N * a - F  # of N R² - b R - F a = 0
        root = np.where(N > 0, (b + np.sqrt(b * b + 4 * N * F * a)) / (2 * np.maximum(N, 1)), np.inf)
        k = root.argmin()
        own = free & (matrix[k] > 0)
        rates[own] = root[k]
        free &= ~own
    return rates


def alpha_optimum(A: ArrayLike, C: ArrayLike, *, alpha: float) -> Array:
    """The alpha-fair allocation: rates that maximise the sum of R^(1-alpha) / (1-alpha) within the capacities.

    Parameters
    ----------
    A : array_like
        Incidence, (links, paths).
    C : array_like
        Capacities, (links,).
    alpha : float
        1 stands for the sum of log R, proportional fairness.

    Returns
    -------
    ndarray
        (paths,)

    Raises
    ------
    InputError
        If the network makes no sense, alpha is not positive, or the optimiser fails.
    """
    matrix = incidence(A)
    capacities = positive("C", C, matrix.shape[0], "link")
    alpha = scalar("alpha", alpha)
    # In shares of a fair start, and in their logarithms' slope, so that one tolerance suits all rates.
    start = max_min(matrix, capacities)

    def loss(x: Array) -> float:
        return float(-(np.log(x) if alpha == 1 else x ** (1 - alpha) / (1 - alpha)) @ weight)

    weight = (start / start.mean()) ** (1 - alpha)
    found = minimize(
        loss,
        np.full(len(start), 0.9),
        jac=lambda x: -weight * x**-alpha,
        hess=lambda x: np.diag(alpha * weight * x ** (-alpha - 1)),
        method="trust-constr",
        constraints=LinearConstraint(matrix * start / capacities[:, None], -np.inf, 1.0),
        bounds=[(1e-6, None)] * len(start),
        options={"gtol": 1e-10, "xtol": 1e-12, "barrier_tol": 1e-10, "maxiter": 3000},
    )
    if found.status not in (1, 2):
        raise InputError(f"alpha: {alpha}: the optimiser did not finish ({found.message}); try alpha nearer to 1")
    return start * found.x
