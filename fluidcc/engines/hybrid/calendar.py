"""The calendar's entries of flows: which of what a flow waits for comes first."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.hybrid.layout import CNP, COUNTER, END, LOOK, NEVER, PACE, REQUEST, START, TIMER
from fluidcc.engines.hybrid.tree import put_least


@kernel
def schedule(core: Any, flow: Any, f: Any, looks: Any, cnps: Any, calendar: Any) -> None:
    """Find what a flow does next, and enter it in the calendar; of simultaneous things the first here."""
    todo, soonest = LOOK, NEVER
    if flow.look < len(looks):
        soonest = looks[flow.look] + flow.ahead
    if flow.state == 0:
        if flow.start <= soonest:  # what a flow starts with is seen at that instant
            todo, soonest = START, flow.start
    elif flow.state == 1:
        if flow.timer < soonest:
            todo, soonest = TIMER, flow.timer
        if flow.pace > 0.0:
            if flow.repace < NEVER:
                time = flow.at + (flow.repace - flow.sent) / flow.pace
                if time < soonest:
                    todo, soonest = PACE, time
            time = flow.at + (flow.counted - flow.sent) / flow.pace
            if time < soonest:
                todo, soonest = COUNTER, time
            time = flow.at + (flow.total - flow.sent) / flow.pace
            if time < soonest:
                todo, soonest = END, time
        if flow.waiting > 0 and cnps[f, flow.head] < soonest:
            todo, soonest = CNP, cnps[f, flow.head]
    if flow.request < soonest:
        todo, soonest = REQUEST, flow.request
    flow.todo = todo
    put_least(calendar, 0, core.leaves, f, max(soonest, core.now))
