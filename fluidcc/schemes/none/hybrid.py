"""No congestion control between fluid queues: the initial rate, or the rates of a schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.schemes.none.parameters import MOST_STEPS, NoControl, steps_of

_I, _F = np.int64, np.float64

STATE = np.dtype(
    [
        ("steps", _I),
        ("done", _I),
        ("period", _F),  # of the schedule; 0: once
        ("began", _F),  # present period
        ("time", _F, (MOST_STEPS,)),  # after the flow's start
        ("rate", _F, (MOST_STEPS,)),
    ],
    align=True,
)

OBSERVABLES: dict[str, tuple[str, str]] = {}
PACED_BY = ("repeat",)


def fill(parameters: NoControl, flow: Any, me: Any) -> None:
    """Write a flow's schedule."""
    steps = [] if parameters.schedule is None else steps_of(parameters.schedule)
    me.period = parameters.repeat or 0.0
    if me.period:  # what lies beyond is never reached
        steps = [(time, rate) for time, rate in steps if time < me.period]
    me.steps = len(steps)
    for i, (time, rate) in enumerate(steps):
        me.time[i], me.rate[i] = time, min(rate, flow.line_rate)


@kernel
def begin(flow: Any, me: Any, now: Any) -> None:
    """The schedule begins as the flow does."""
    me.began = now
    if me.steps > 0:
        flow.timer = now + me.time[0]


@kernel
def on_timer(flow: Any, me: Any) -> None:
    """A step of the schedule is due."""
    flow.rate = me.rate[me.done]
    me.done += 1
    if me.done == me.steps and me.period > 0.0:
        me.done = 0
        me.began += me.period
    flow.timer = me.began + me.time[me.done] if me.done < me.steps else np.inf
