"""Delay of bytes behind others, packet by packet: the second way of claims about queueing delay."""

from __future__ import annotations

from typing import Any

BEHIND = "two runs of packets, of one message and of two; nothing in them is random"  # what `delay_behind` takes


def delay_behind(queue: float, rate: float, **network: Any) -> float:
    """Return the extra delay of a message if another sender's message of the same size comes to the link with it.

    Parameters
    ----------
    queue : float
        Size of each message [bytes].
    rate : float
        Rate of all links [bytes/s].
    **network
        As in `fluidcc.incast`.

    Returns
    -------
    float
        Difference of the completion times of the last of two and of one alone [s].
    """
    import fluidcc as fc

    last = []
    for senders in (1, 2):
        scenario = fc.incast(senders, rate=f"{rate}B/s", size=queue, scheme="none", **network)
        run = fc.simulate(scenario, 10 * queue / rate + 1e-4, engine="packet")
        last.append(max(run.summary["fct_s"]))
    return last[1] - last[0]
