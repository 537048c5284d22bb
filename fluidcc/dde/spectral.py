"""The infinitesimal generator of a linear delay system, discretised on Chebyshev points.

Source: Breda, Maset, Vermiglio, Pseudospectral differencing methods for characteristic roots of delay differential
equations, SIAM J. Sci. Comput. 27 (2005) 482-495. The history on [-1, 0] is a polynomial of degree N: at 0 it is the
state and obeys the equation, at the N other points its derivative is the shift. Components that no delayed term reads
have no history.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.polynomial import chebyshev

from fluidcc.dde.delay_system import Array, DelaySystem


def nodes_needed(system: DelaySystem, sigma: Array) -> Array:
    """N that resolves all roots right of the line Re s = sigma, (batch,); 0 where no delay is read.

    Notes
    -----
    Like Wu and Michiels (Numer. Math. 120, 2012), from a bound on the roots there. For s in that region the
    collocated polynomial differs from e^(s theta) by less than 1e-6 of its largest modulus on [-1, 0]: a fit, within
    one node, to the least N that does, for |s| up to 60 and sigma down to -10. Delays must be in units of the
    longest.
    """
    radius = system.bound(sigma)
    farthest = np.where(sigma < 0, np.hypot(radius, sigma), radius + sigma)
    needed = np.ceil(farthest / 2 + 4 * np.cbrt(farthest) + 2 + 0.4 * np.maximum(-sigma, 0))
    return np.where(system.tau.any(axis=-1), np.minimum(needed, 1e6), 0).astype(int)


def history_columns(system: DelaySystem) -> Array:
    """The states that a delayed term of any system of the batch reads, as indices."""
    return np.flatnonzero((system.A.any(axis=-2) & (system.tau > 0)[..., None]).any(axis=(0, 1)))


def generator(system: DelaySystem, nodes: int) -> Array:
    """Matrices (batch, n + m N, n + m N) whose eigenvalues approximate the roots.

    Parameters
    ----------
    system : DelaySystem
        Normalised: one batch axis, delays at most 1.
    nodes : int
        N; 0 where no delay is read.

    Returns
    -------
    ndarray
        States first, then the m columns with a history, node by node.
    """
    n, columns = system.order, history_columns(system)
    if nodes == 0 or not columns.size:
        return system.A0 + system.A.sum(axis=-3)
    inverse, slopes = _mesh(nodes)
    weights = chebyshev.chebvander(1 - 2 * system.tau, nodes) @ inverse  # (batch, K, N + 1): interpolation at -tau
    size, m = n + columns.size * nodes, columns.size
    matrix = np.zeros((len(system.tau), size, size))
    matrix[:, :n, :n] = system.A0 + np.einsum("bk,bkij->bij", weights[..., 0], system.A)
    unread = np.setdiff1d(np.arange(n), columns)
    if unread.size:  # no history: a column with a positive delay is zero, one without is not delayed
        matrix[:, :n, unread] = (system.A0 + system.A.sum(axis=-3))[:, :, unread]
    lagged = np.einsum("bkp,bkij->bipj", weights[..., 1:], system.A[..., columns])
    matrix[:, :n, n:] = lagged.reshape(-1, n, nodes * m)
    matrix[:, n:, columns] = np.kron(slopes[1:, :1], np.eye(m))
    matrix[:, n:, n:] = np.kron(slopes[1:, 1:], np.eye(m))
    return matrix


@functools.lru_cache(maxsize=256)
def _mesh(nodes: int) -> tuple[Array, Array]:
    """Return matrices on Chebyshev points from 1 to -1: values to coefficients; d/d theta on [-1, 0] (twice d/dx)."""
    points = np.cos(np.pi * np.arange(nodes + 1) / nodes)
    inverse = np.linalg.inv(chebyshev.chebvander(points, nodes))
    slopes = 2 * chebyshev.chebvander(points, nodes - 1) @ chebyshev.chebder(np.eye(nodes + 1)) @ inverse
    return inverse, slopes
