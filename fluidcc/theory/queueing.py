"""N*D/D/1 in closed form: the queue of periodic sources of equal period and random phases (HPCC A.1).

Sizes are in packets, times in service times of one. At a load of 1 the queue is still bounded, because its sources
repeat themselves.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fluidcc.errors import InputError


def exceeds(x: ArrayLike, sources: int, load: float) -> Any:
    """P(V > x), V being the unfinished work at a random time, which is the number in the system before rounding up.

    Parameters
    ----------
    x : array_like
        At least 0. The probability that more than k packets wait, without the one in service, is that of V > k + 1.
    sources : int
        N, each with one packet per period D = N/load, at independent uniform phases.
    load : float

    Returns
    -------
    ndarray
        Of the shape of ``x``; all terms are positive, so that small probabilities keep their digits.

    Raises
    ------
    InputError
        If there are no sources, or the load is not in (0, 1].

    Notes
    -----
    Roberts and Virtamo (1991), by the ballot theorem: the sum over n > x of
    C(N,n) ((n-x)/D)^n (1-(n-x)/D)^(N-n) (D-N+x)/(D-n+x).
    """
    from scipy.stats import binom

    N, D = _checked(sources, load)
    at = np.asarray(x, float)[..., None]
    n = np.arange(1.0, N + 1)
    share = np.clip((n - at) / D, 0.0, 1.0)
    # At full load and x = 0 the last term is 0/0: all sources within the period, and the server never idle.
    never_idle = (D - n + at) <= 0
    ballot = (D - N + at) / np.where(never_idle, 1.0, D - n + at)
    terms = np.where(never_idle, 1.0, np.where(n > at, binom.pmf(n, N, share) * ballot, 0.0))
    return terms.sum(axis=-1)


def bridge_exceeds(x: ArrayLike, sources: int, load: float) -> Any:
    """The same by a Brownian bridge: exp(-2 x (x + D - N)/N), for heavy traffic; parameters as of `exceeds`."""
    N, D = _checked(sources, load)
    at = np.asarray(x, float)
    return np.exp(-2 * at * (at + D - N) / N)


def mean_waiting(sources: int, load: float) -> float:
    """Mean number of packets that wait, without the one in service; parameters as of `exceeds`."""
    return float(exceeds(np.arange(sources), sources, load).sum()) - load


def bridge_mean(sources: int) -> float:
    """Mean unfinished work at full load by a Brownian bridge, (pi N/8)^0.5: the integral of `bridge_exceeds`."""
    return math.sqrt(math.pi * _checked(sources, 1.0)[0] / 8)


def _checked(sources: int, load: float) -> tuple[int, float]:
    """Sources and the period that goes with the load."""
    if isinstance(sources, bool) or not isinstance(sources, (int, np.integer)) or sources < 1:
        raise InputError(f"sources: {sources!r}; give a whole number of at least 1")
    if not 0 < load <= 1:
        raise InputError(f"load: {load:g}; give one above 0 and at most 1: beyond, the queue grows for ever")
    return int(sources), sources / load
