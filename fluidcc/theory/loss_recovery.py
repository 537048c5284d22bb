"""Goodput that go-back-N leaves on a link that loses packets at random."""

from __future__ import annotations

import math

from fluidcc.errors import InputError
from fluidcc.surface import public


@public()
def go_back_n_goodput(loss: float, round_trip: float, timeout: float = math.inf) -> float:
    """Share of the packets that a sender sends back to back which go-back-N's receiver takes.

    Time is counted in slots of one packet. A loss costs the slots until the sender goes back: the next packet that
    arrives makes the NACK, which is heard a round trip later and obeyed with the next slot. A receiver reports a gap
    once, so that a packet lost again waits for the timeout, as often as it takes.

    Parameters
    ----------
    loss : float
        Probability that a packet is lost [1], independently; NACKs are not.
    round_trip : float
        From the start of a packet to the arrival of its ACK [slots].
    timeout : float
        From the start of a packet that is sent again to the next time [slots]. Infinite: a gap that is still open is
        reported again as soon as the next packet arrives, as textbooks have it.

    Returns
    -------
    float
        1 / (1 + p w + p^2 (1 + K) / (1 - p)) with w = 1 + ceil(round_trip), K = ceil(timeout); without timeout K = w,
        which is (1 - p) / (1 - p + p w) but for p^2.

    Raises
    ------
    InputError
        If there is no such probability, or a time is not positive.

    Examples
    --------
    >>> round(go_back_n_goodput(0.01, 98), 3)
    0.497
    """
    if not 0 <= loss < 1:
        raise InputError(f"loss: {loss:g} is no probability below 1; write for example 0.01")
    if not (0 < round_trip < math.inf and timeout > 0):
        raise InputError("round_trip, timeout: are times above 0, in packets; write for example 100 and 1000")
    window = 1 + math.ceil(round_trip - 1e-9)
    again = window if math.isinf(timeout) else math.ceil(timeout - 1e-9)
    # Between two losses 1/p packets get through, the one that had been lost among them. Before the NACK come, after the
    # loss, p/(1 - p) more; and of those sent again as many are lost again.
    return 1 / (1 + loss * window + loss**2 / (1 - loss) * (1 + again))
