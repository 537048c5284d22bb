"""No congestion control at packet level: the initial rate, or the rates of a schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.packet.calendar import schedule
from fluidcc.engines.packet.layout import PS, TIMER
from fluidcc.engines.packet.pacing import repace
from fluidcc.schemes.none.parameters import MOST_STEPS, NoControl, steps_of

_TIMERS = 4
_I, _F = np.int64, np.float64

STATE = np.dtype(
    [
        ("steps", _I),
        ("done", _I),
        ("period", _I),  # of the schedule; 0: once
        ("began", _I),  # present period, after the flow's start
        ("time", _I, (MOST_STEPS,)),  # after the flow's start
        ("rate", _F, (MOST_STEPS,)),
    ],
    align=True,
)

OBSERVABLES: dict[str, tuple[str, str]] = {}


def init_state(parameters: NoControl, flow: Any, state: Any) -> None:
    """Write a flow's schedule."""
    steps = [] if parameters.schedule is None else steps_of(parameters.schedule)
    state.period = 0 if parameters.repeat is None else round(parameters.repeat * PS)
    if state.period:  # what lies beyond is never reached
        steps = [(time, rate) for time, rate in steps if round(time * PS) < state.period]
    state.steps = len(steps)
    for i, (time, rate) in enumerate(steps):
        state.time[i], state.rate[i] = round(time * PS), min(rate, flow.line_rate)


@kernel
def begin(sim: Any, f: Any, flow: Any, state: Any) -> None:
    """A step at the very start holds from the first packet on."""
    if state.steps > 0 and state.time[0] == 0:
        on_timer(sim, f, flow, state)
    elif state.steps > 0:
        await_next(sim, f, flow, state)


@kernel
def on_timer(sim: Any, f: Any, flow: Any, state: Any) -> None:
    """A step of the schedule is due; at a rate of 0, a window of 0 keeps the flow silent."""
    flow.rate = state.rate[state.done]
    state.done += 1
    flow.window = 0.0 if flow.rate == 0.0 else np.inf
    if flow.rate > 0.0:
        repace(sim.core[0], flow)
    if state.done == state.steps and state.period > 0:
        state.done = 0
        state.began += state.period
    if state.done < state.steps:
        await_next(sim, f, flow, state)


@kernel
def await_next(sim: Any, f: Any, flow: Any, state: Any) -> None:
    """Wake up at the next step."""
    schedule(sim.core[0], sim.calendar, flow.start + state.began + state.time[state.done], TIMER, f * _TIMERS)
