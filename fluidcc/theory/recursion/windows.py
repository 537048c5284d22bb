"""HPCC A.4: what a limit on the bytes in flight does when many sources start at line rate towards one queue."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from fluidcc.errors import InputError
from fluidcc.results.display import draw
from fluidcc.results.result import Comparable
from fluidcc.theory.recursion.checks import Array, scalar, whole

if TYPE_CHECKING:
    from fluidcc.results.display import Picture

_STAMPS = ("arrival", "departure")


@dataclasses.dataclass(frozen=True, eq=False)
class WindowLimit(Comparable):
    """The burst and what follows, until its last packet is acknowledged.

    Times are in base RTTs, sizes in line rate times base RTT.

    Parameters
    ----------
    time, queue, sent, window : ndarray
        (samples,) Root queue; what one source has sent; its window.
    peak_queue : float
    last_rtt : float
        Round trip of the last packet of the initial burst.
    last_utilization : float
        U of HPCC (2) in that packet's acknowledgement: queue over (rate times base RTT), plus 1.
    last_window : float
        The window after it, in initial windows.
    sent_after_burst : float
        What one source sends between its initial burst and that acknowledgement, in initial windows.
    """

    time: Array
    queue: Array
    sent: Array
    window: Array
    peak_queue: float
    last_rtt: float
    last_utilization: float
    last_window: float
    sent_after_burst: float

    def plot(self, *, title: str | None = None) -> Picture:
        """Queue above, window of a source below, over time."""
        return draw("plot_windows", self, title=title)


def window_limit(
    sources: int = 64,
    *,
    background: float = 0.95,
    target: float = 1.0,
    limited: bool = True,
    stamp: str = "arrival",
    resolution: int = 100,
) -> WindowLimit:
    """Let sources start together at line rate, for one base RTT, towards a link that is already busy.

    Every source has the link's rate and the initial window line rate times base RTT. The queue is at the sources' end
    of the round trip: data reach it at once, acknowledgements come a base RTT after they left it. Each sets
    W = W_init target / U, HPCC (4) without increase: the reference window stays W_init in this first round.

    Parameters
    ----------
    sources : int
    background : float
        Load of the flows that were there before, over the link's rate; it does not react.
    target : float
        Numerator of the window's update: 1 as A.4 counts, 0.95 with HPCC's eta.
    limited : bool
        Whether a source sends no more than its window beyond what is acknowledged. Otherwise it sends at W / base RTT.
    stamp : {"arrival", "departure"}
        Which queue a packet reports: the one it met, as A.4 takes for granted, or the one it left behind, as
        switches stamp telemetry.
    resolution : int
        Steps in a base RTT.

    Returns
    -------
    WindowLimit

    Raises
    ------
    InputError
        If a parameter is out of range, or the burst makes no queue.

    Notes
    -----
    HPCC (SIGCOMM 2019), appendix A.4, its second example. First order in 1 / resolution.
    """
    whole("sources", sources)
    whole("resolution", resolution, least=2)
    scalar("background", background, zero=True)
    scalar("target", target)
    if stamp not in _STAMPS:
        raise InputError(f"stamp: {stamp!r}; give one of {', '.join(_STAMPS)}")
    if sources + background <= 1:
        raise InputError(f"sources: {sources} beside a background of {background:g} make no queue; give more sources")
    h = 1.0 / resolution
    queue, sent, window = [0.0], [0.0], [1.0]
    # What a source sends in a step joins the queue at its end, behind all that others sent in it: entry n of each list
    # is for what had been sent by n h. It leaves at leaves[n] and is acknowledged one base RTT later.
    leaves = [0.0]
    acked, seen, W = 0, 1.0, 1.0
    while acked < resolution:
        now = h * (len(sent) - 1)
        while acked + 1 < len(leaves) and leaves[acked + 1] + 1.0 <= now + h / 2:
            acked += 1
            if sent[acked] > sent[acked - 1]:
                at = acked if stamp == "arrival" else round(leaves[acked] / h)
                seen = queue[at] + 1.0  # HPCC (2): the link is busy
                W = min(1.0, target / seen)
        window.append(W)
        room = W - (sent[-1] - sent[acked]) if limited else W * h
        sent.append(sent[-1] + min(h, max(room, 0.0)))
        arrived = sources * (sent[-1] - sent[-2]) + background * h
        queue.append(max(queue[-1] + arrived - h, 0.0))
        leaves.append(now + h + queue[-1])
    return WindowLimit(
        time=h * np.arange(len(sent)),
        queue=np.array(queue),
        sent=np.array(sent),
        window=np.array(window),
        peak_queue=max(queue),
        last_rtt=leaves[resolution],  # sent at time 1, acknowledged 1 after it left
        last_utilization=seen,
        last_window=W,
        sent_after_burst=sent[-1] - sent[resolution],
    )
