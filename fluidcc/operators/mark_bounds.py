"""Bounds of the marks that a queue makes, from how long it was (DCQCN, Fig. 5)."""

from __future__ import annotations


def ramp_bound(queue: float, kmin: float, kmax: float, pmax: float, packet: float, begin: float = 0.0) -> float:
    """Bound from below, on average, the marks of a queue that has grown to this length.

    It has grown packet by packet, each of which was marked as the queue then was (DCQCN, Fig. 5); packets that leave
    meanwhile only make more.

    Parameters
    ----------
    queue : float
        The longest [bytes].
    kmin, kmax, pmax : float
    packet : float
        The largest [bytes].
    begin : float
        Its length before, at most [bytes].
    """

    def area(length: float) -> float:
        top = min(length, kmax)
        ramp = pmax * (top - kmin) ** 2 / (2 * (kmax - kmin)) if top > kmin and kmax > kmin else 0.0
        return ramp + max(length - kmax, 0.0)

    return max(area(queue) - area(begin) - packet, 0.0) / packet


def highest_share(queue: float, kmin: float, kmax: float, pmax: float) -> float:
    """Bound from above the probability of a mark where the queue was never longer (DCQCN, Fig. 5)."""
    if queue > kmax:
        return 1.0
    return pmax * max(queue - kmin, 0.0) / (kmax - kmin) if kmax > kmin else 0.0
