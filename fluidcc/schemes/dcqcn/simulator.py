"""The reaction point of the HPCC authors' public simulator (``variant="hpcc-sim"``).

It observes marks on ACKs and looks at them at slots of its own, has no byte counter, and keeps its target over
consecutive cuts. Alpha, cuts and increases each have a timer; its rates are whole bits per second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.packet.calendar import schedule
from fluidcc.engines.packet.layout import TIMER
from fluidcc.schemes.dcqcn.parameters import DCQCN

ALPHA, INCREASE, DECREASE = range(3)  # timers
TIMERS = 4
_NANOSECOND = 1000  # ps
_SLOT = 50_000_000  # ps: between looks at whether to cut

FIELDS = (
    ("sim", np.bool_),  # whether the flow is of this variant
    ("alpha_mark", np.int64),  # a mark came in the present slot
    ("decrease_mark", np.int64),
)


def init_state(parameters: DCQCN, state: Any) -> None:
    """Write what differs from the paper's."""
    state.sim = True
    if parameters.rate_decrease_interval == 0:
        state.rate_decrease_interval = _SLOT


@kernel
def on_mark(sim: Any, f: Any, flow: Any, state: Any) -> None:
    """An ACK that reports marks; the first starts the slots."""
    core = sim.core[0]
    state.alpha_mark = state.decrease_mark = 1
    if not state.notified:
        state.notified = 1
        state.alpha = 1.0
        state.alpha_mark = 0
        state.target = flow.rate
        schedule(core, sim.calendar, core.now + state.alpha_timer, TIMER, f * TIMERS + ALPHA)
        look = core.now + state.rate_decrease_interval + _NANOSECOND
        schedule(core, sim.calendar, look, TIMER, f * TIMERS + DECREASE)


@kernel
def on_timer(sim: Any, f: Any, flow: Any, state: Any, which: Any) -> None:
    """A slot of alpha or of cuts ends, or an increase is due."""
    core = sim.core[0]
    if which == ALPHA:
        state.alpha = (1.0 - state.g) * state.alpha + (state.g if state.alpha_mark else 0.0)
        state.alpha_mark = 0
        schedule(core, sim.calendar, core.now + state.alpha_timer, TIMER, f * TIMERS + ALPHA)
    elif which == DECREASE:
        schedule(core, sim.calendar, core.now + state.rate_decrease_interval, TIMER, f * TIMERS + DECREASE)
        if state.decrease_mark:
            if state.by_timer > 0:  # a cut right after a cut keeps its target
                state.target = flow.rate
            flow.rate = whole_bits(max(flow.rate * (1.0 - state.alpha / 2), state.min_rate))
            state.by_timer = 0
            state.decrease_mark = 0
            if state.increase_at == 0:  # it has not begun
                schedule(core, sim.calendar, core.now + state.timer, TIMER, f * TIMERS + INCREASE)
            state.increase_at = core.now + state.timer
    else:
        if core.now < state.increase_at:
            schedule(core, sim.calendar, state.increase_at, TIMER, f * TIMERS + INCREASE)
            return
        if state.by_timer >= state.fast_recovery_steps:
            state.target += state.rate_ai if state.by_timer == state.fast_recovery_steps else state.rate_hai
            state.target = min(state.target, state.most_rate)
        flow.rate = whole_bits((state.target + flow.rate) / 2)
        state.by_timer += 1
        state.increase_at = core.now + state.timer
        schedule(core, sim.calendar, state.increase_at, TIMER, f * TIMERS + INCREASE)


@kernel
def whole_bits(rate: Any) -> Any:
    """Round down to whole bits per second."""
    return int(rate * 8.0) / 8.0
