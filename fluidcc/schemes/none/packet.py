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


def fill(parameters: NoControl, flow: Any, me: Any) -> None:
    """Write a flow's schedule."""
    steps = [] if parameters.schedule is None else steps_of(parameters.schedule)
    me.period = 0 if parameters.repeat is None else round(parameters.repeat * PS)
    if me.period:  # what lies beyond is never reached
        steps = [(time, rate) for time, rate in steps if round(time * PS) < me.period]
    me.steps = len(steps)
    for i, (time, rate) in enumerate(steps):
        me.time[i], me.rate[i] = round(time * PS), min(rate, flow.line_rate)


@kernel
def begin(sim: Any, f: Any, flow: Any, me: Any) -> None:
    """A step at the very start holds from the first packet on."""
    if me.steps > 0 and me.time[0] == 0:
        on_timer(sim, f, flow, me)
    elif me.steps > 0:
        await_next(sim, f, flow, me)


@kernel
def on_timer(sim: Any, f: Any, flow: Any, me: Any) -> None:
    """A step of the schedule is due; at a rate of 0, a window of 0 keeps the flow silent."""
    flow.rate = me.rate[me.done]
    me.done += 1
    flow.window = 0.0 if flow.rate == 0.0 else np.inf
    if flow.rate > 0.0:
        repace(sim.core[0], flow)
    if me.done == me.steps and me.period > 0:
        me.done = 0
        me.began += me.period
    if me.done < me.steps:
        await_next(sim, f, flow, me)


@kernel
def await_next(sim: Any, f: Any, flow: Any, me: Any) -> None:
    """Wake up at the next step."""
    schedule(sim.core[0], sim.calendar, flow.start + me.began + me.time[me.done], TIMER, f * _TIMERS)
