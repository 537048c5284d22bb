"""What a scheme's fluid model is told by the network."""

from __future__ import annotations

from typing import NamedTuple

from jax import Array


class Signals(NamedTuple):
    """Lagged signals as a group of flows sees them when it reacts.

    Parameters
    ----------
    marking : Array, shape (flows, points) or (1, points)
        Probability that a packet was marked on its way; one row if all flows see the same.
    rate : Array, shape (flows, points)
        Own rate [bytes/s] at which the packets that carried the marks were sent.
    packet : Array, shape (1, points)
        Packet size on the wire [bytes].
    """

    marking: Array
    rate: Array
    packet: Array
