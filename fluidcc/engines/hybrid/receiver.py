"""The notification point (DCQCN, Fig. 6): a CNP for a marked packet, and one more for all that come in an interval.

A marked packet's way to its receiver is known as it joins its last queue: the wait ahead of it there, and the path. All
that an interval asks is whether a marked packet came in it, so its CNP is known with the first one, and what else is
marked before the interval's end changes nothing: the flow is deaf until then.
"""

from __future__ import annotations

from typing import Any

from fluidcc.engines.packet.jit import kernel


@kernel
def marked(flow: Any, cnps: Any, f: Any, time: Any) -> None:
    """A marked packet reaches the receiver of a flow at a time that is still to come; they come in order."""
    if time < flow.deaf:
        return
    if time < flow.cnp_next:  # in an interval: the CNP goes at its end
        time = flow.deaf = flow.cnp_next
    flow.cnp_next = time + flow.cnp_interval
    at = flow.head + flow.waiting
    ring = cnps.shape[1]
    cnps[f, at if at < ring else at - ring] = time + flow.back
    flow.waiting += 1
