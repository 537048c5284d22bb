"""The notification point (DCQCN, Fig. 6): a CNP for a marked packet, and one more for all that come in an interval.

A marked packet's way to its receiver is known as it joins its last queue: the wait ahead of it there, and the path. All
that an interval asks is whether a marked packet came in it, so its CNP is known with the first one, and what else is
marked before the interval's end changes nothing: the flow is deaf until then.

Where a NIC also keeps CNPs of all its flows apart (DCQCN 3.3), a flow asks for its CNP when it has one to send, and the
NIC gives it the first free turn: first come, first served, whatever is marked for that flow until then. When the turn
is, depends on what others ask for before, so a request is an event; the marked packets that come after it wait for it.
"""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.hybrid.layout import GROW_CNPS, GROW_MARKS, NEVER

_SLACK = 4  # places that a ring keeps free, more than an event can fill


@kernel
def marked(core: Any, flow: Any, cnps: Any, f: Any, time: Any) -> None:
    """Handle a marked packet that reaches a flow's receiver at a time still to come; they come in order."""
    if time < flow.deaf:
        return
    if time < flow.cnp_next:  # in an interval: the CNP goes at its end
        time = flow.deaf = flow.cnp_next
    notify(core, flow, cnps, f, time)


@kernel
def notify(core: Any, flow: Any, cnps: Any, f: Any, time: Any) -> None:
    """Send a CNP from the receiver of a flow at a time, and open its next interval."""
    flow.cnp_next = time + flow.cnp_interval
    at = flow.head + flow.waiting
    ring = cnps.shape[1]
    cnps[f, at if at < ring else at - ring] = time + flow.back
    flow.waiting += 1
    if flow.waiting > ring - _SLACK:
        core.status = GROW_CNPS


@kernel
def marked_for_nic(core: Any, flow: Any, marks: Any, f: Any, time: Any) -> None:
    """Handle a marked packet where the NIC spaces its CNPs: the flow asks now or at its interval's end."""
    if time < flow.deaf:
        return
    if flow.request == NEVER:
        flow.request = flow.deaf = max(time, flow.cnp_next)
        return
    ring = marks.shape[1]
    marks[f, (flow.first_mark + flow.marks) % ring] = time
    flow.marks += 1
    if flow.marks > ring - _SLACK:
        core.status = GROW_MARKS


@kernel
def ask(core: Any, flow: Any, nics: Any, cnps: Any, marks: Any, f: Any) -> None:
    """Ask a flow's NIC for a CNP now; marked packets on their way to it may make it ask again."""
    turn = max(core.now, nics[flow.nic])
    nics[flow.nic] = turn + flow.nic_cnp_interval
    flow.request, flow.deaf = NEVER, turn
    notify(core, flow, cnps, f, turn)
    while flow.marks > 0:
        time = marks[f, flow.first_mark]
        if time >= flow.deaf:
            if flow.request < NEVER:
                return
            flow.request = flow.deaf = max(time, flow.cnp_next)
        flow.first_mark = (flow.first_mark + 1) % marks.shape[1]
        flow.marks -= 1
