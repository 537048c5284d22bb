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


def init_state(parameters: NoControl, flow: Any, state: Any) -> None:
    """Write a flow's schedule."""
    steps = [] if parameters.schedule is None else steps_of(parameters.schedule)
    state.period = parameters.repeat or 0.0
    if state.period:  # what lies beyond is never reached
        steps = [(time, rate) for time, rate in steps if time < state.period]
    state.steps = len(steps)
    for i, (time, rate) in enumerate(steps):
        state.time[i], state.rate[i] = time, min(rate, flow.line_rate)


@kernel
def begin(flow: Any, state: Any, now: Any) -> None:
    """The schedule begins as the flow does."""
    state.began = now
    if state.steps > 0:
        flow.timer = now + state.time[0]


@kernel
def on_timer(flow: Any, state: Any) -> None:
    """A step of the schedule is due."""
    flow.rate = state.rate[state.done]
    state.done += 1
    if state.done == state.steps and state.period > 0.0:
        state.done = 0
        state.began += state.period
    flow.timer = state.began + state.time[state.done] if state.done < state.steps else np.inf
