"""MultiQ at packet level: U of a class that shares a link with others (HPCC++, IETF slides)."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.packet.jit import kernel

OFF, CLASS, SLIDES, SPARE = range(4)
RULES = ("off", "class", "slides", "spare")


@kernel
def class_utilisation(me: Any, rate: Any, tx_rate: Any, own: Any, queue: Any) -> Any:
    """Rate and backlog of a class over what it may count on.

    ``class`` is "HPCC applied for MultiQ w/o any changes": the whole link. The slides' three branches lock an idle
    link's only class at eta of its guaranteed rate. ``spare`` is ours: what it may count on is its guaranteed rate, or
    its present rate and all that nobody uses, whichever is more.
    """
    if me.multiq == CLASS:
        return queue / (rate * me.base_rtt) + own / rate
    guaranteed = me.share * rate
    if me.multiq == SPARE:
        counted = max(guaranteed, own + max(rate - tx_rate, 0.0))
        return queue / (counted * me.base_rtt) + own / counted
    if own <= guaranteed:
        return queue / (guaranteed * me.base_rtt) + own / guaranteed
    if queue > me.min_backlog:
        return queue / (own * me.base_rtt) + 1.0
    return own / ((own + rate) / 2)
