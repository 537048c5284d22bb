"""Linear equations of a periodic solution: Newton's step, and the multipliers of a small disturbance.

Each entry says to how many periods before it belongs: all together they are those of the solution itself, each period
apart those that carry a disturbance from one period to the next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs, splu

from fluidcc.dde.equation import Array

_DENSE = 200  # unknowns of an eigenproblem that is solved whole
_MULTIPLIERS, _MOST_MULTIPLIERS = 6, 96  # asked for at first, and where all of them exceed 1
ONE = 1e-4  # from 1: the multiplier of a shift in time
_VECTORS, _MORE_VECTORS = 20, 4  # of an eigenproblem, and for each period of a lag: the longer, the closer its roots


class Linear(NamedTuple):
    """Linear equations about a periodic solution: entries by row, column and period back, and what else they hold."""

    rows: Array
    columns: Array
    back: Array
    entries: Array
    residual: Array  # (equations,)
    by_period: Array
    by_vector: Array  # (equations, parameters)


def newton_step(at: Linear, columns: list[Array], rows: list[Array], right: Array, scale: Array) -> Array | None:
    """Solve the linear equations with columns and rows next to those of the nodes; unknowns and equations to scale."""
    size, more = len(at.residual), len(columns)
    entries, row, column = [at.entries], [at.rows], [at.columns]
    for k, each in enumerate(columns):
        entries.append(each)
        row.append(np.arange(size))
        column.append(np.full(size, size + k))
    for k, each in enumerate(rows):
        entries.append(each)
        row.append(np.full(len(each), size + k))
        column.append(np.arange(len(each)))
    joined = np.concatenate(row), np.concatenate(column)
    content = np.concatenate(entries) * scale[joined[1]]
    if not (np.isfinite(content).all() and np.isfinite(right).all()):
        return None
    largest = np.full(size + more, 1e-300)
    np.maximum.at(largest, joined[0], np.abs(content))
    matrix = coo_matrix((content / largest[joined[0]], joined), shape=(size + more,) * 2).tocsc()
    try:
        found = splu(matrix).solve(right / largest) * scale
    except RuntimeError:  # singular
        return None
    return found if np.isfinite(found).all() else None


def floquet(at: Linear, size: int) -> Array:
    """Floquet multipliers of largest modulus, the largest first, complex (count,).

    What a small disturbance grows by in a period; one is 1, of a shift in time. So many that one is less than 1, unless
    that takes more than `_MOST_MULTIPLIERS`. ``size`` is the number of unknowns.
    """
    most = int(at.back.max())

    def part(back: int) -> Any:
        some = at.back == back
        return coo_matrix((at.entries[some], (at.rows[some], at.columns[some])), shape=(size, size)).tocsc()

    now, before = splu(part(0)), [part(back) for back in range(1, most + 1)]

    def later(past: Array) -> Array:
        """The next period's states and those of all but the first of periods before, newest first."""
        each = past.reshape(most, size)
        new = -now.solve(np.sum([matrix @ one for matrix, one in zip(before, each, strict=True)], axis=0))
        return np.concatenate([new, each[:-1].ravel()])

    whole = size * most
    if whole <= _DENSE:
        return _largest(np.linalg.eigvals(np.stack([later(row) for row in np.eye(whole)], axis=1)))
    operator = LinearOperator((whole, whole), matvec=later, dtype=float)  # pyright: ignore[reportCallIssue]
    start, count = np.random.default_rng(0).normal(size=whole), _MULTIPLIERS
    found: Any
    while True:
        try:
            space = min(whole - 1, _VECTORS + _MORE_VECTORS * most + 2 * (count - _MULTIPLIERS))
            found = eigs(operator, count, ncv=space, v0=start, maxiter=60, return_eigenvectors=False)
        except ArpackNoConvergence as error:  # of those next to 0: all others have
            found = error.eigenvalues
        except ArpackError:
            found = np.empty(0)
        if not len(found) or np.abs(found).min() < 1 - ONE or 2 * count > min(_MOST_MULTIPLIERS, whole // 4):
            return _largest(found)
        count *= 2


def _largest(found: Array) -> Array:
    """The largest few in order, and of more than these all down to the first that is less than 1."""
    found = np.asarray(found, complex)
    found = found[np.argsort(-np.abs(found))]
    return found[: max(_MULTIPLIERS, int((np.abs(found) >= 1 - ONE).sum()) + 1)]
