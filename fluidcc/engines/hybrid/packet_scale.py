"""Packets that meet: what waits where the fluid's queue is empty.

Traffic that a link could carry as a fluid still queues as packets, since packets of several flows come at once. Over
times as short as a packet's gap all senders pace evenly, with phases that know nothing of each other: N periodic
sources at one server, N*D/D/1, whose unfinished work V, in packets, has

    P(V > n) = sum over k in n+1..N of C(N, k) ((k-n)/D)^k (1-(k-n)/D)^(N-k) (D-N+n)/(D-k+n),  D = N/load

(Roberts, Virtamo: "The Superposition of Periodic Cell Arrival Streams in an ATM Multiplexer", IEEE Trans. Commun. 39,
1991). The queue's longer stories, in which rates exceed the link's, are the fluid's: the decomposition into a packet
scale and a burst scale is that of Roberts, Mocci and Virtamo (eds.), "Broadband Network Teletraffic", 1996. It is of
statistics alone: marks are drawn from the fluid's queue.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from fluidcc.engines.hybrid.layout import LOADS

Array = np.ndarray[Any, Any]
_NEGLIGIBLE = 1e-12


@lru_cache(maxsize=64)
def waiting(flows: int) -> Array:
    """How many packets wait, besides the one in service, of equal flows with random phases.

    Parameters
    ----------
    flows : int

    Returns
    -------
    ndarray, shape (LOADS + 1, lengths)
        Probability of 0, 1, ... packets, at evenly spaced loads from 0 to 1.
    """
    most = min(flows, 10 + math.ceil(5 * math.sqrt(flows)))  # P(V > n) is exp(-2 n^2/N) at full load, and less below
    k, n = np.arange(1, flows + 1)[:, None], np.arange(1, most)
    ahead = np.maximum(k - n, 0)
    ways = gammaln(flows + 1) - gammaln(k + 1) - gammaln(flows - k + 1)
    found = np.zeros((LOADS + 1, most))
    found[0, 0] = 1.0
    for row in range(1, LOADS + 1):
        period = flows * LOADS / row
        share = ahead / period
        terms = np.exp(ways + xlogy(k, share) + xlogy(flows - k, 1 - share)) * (period - flows + n) / (period - k + n)
        more = np.append(np.where(ahead > 0, terms, 0.0).sum(axis=0), 0.0)  # P(V > 1), P(V > 2), ...
        found[row] = np.clip(-np.diff(more, prepend=1.0), 0.0, 1.0)
    return found


def as_many_equal(rates: Array) -> int:
    """The number of equal flows whose rates vary as much, (sum R)^2/(sum R^2); 1 of none."""
    squares = float(np.square(rates).sum())
    return max(round(float(rates.sum()) ** 2 / squares), 1) if squares > 0 else 1


def met(idle: Array, rates: Array, packet: float) -> tuple[Array, Array]:
    """Lengths of the queue while the fluid has none, and the time for which it has each.

    Parameters
    ----------
    idle : ndarray, shape (LOADS + 1,)
        Time for which the fluid's queue was empty, shared out to evenly spaced loads from 0 to 1 [s].
    rates : ndarray, shape (flows,)
        Of the flows through the link.
    packet : float
        [bytes]

    Returns
    -------
    lengths : ndarray
        [bytes], from nothing on.
    spent : ndarray
        [s]; sums to that of ``idle``.
    """
    spent = idle @ waiting(as_many_equal(rates))
    last = int(np.flatnonzero(spent > _NEGLIGIBLE * spent.sum())[-1]) if spent.any() else 0
    return packet * np.arange(last + 1), spent[: last + 1]
