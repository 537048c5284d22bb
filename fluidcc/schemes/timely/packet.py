"""TIMELY at packet level: Algorithm 1 of Mittal et al., SIGCOMM 2015.

A completion event is the ACK that completes a segment, its RTT that of the packet answered, from the start of its
transmission at the NIC. HPCC's "TIMELY+win" is ``win``. ``variant="hpcc-sim"`` is what the HPCC authors' public
simulator does instead: one update per window of data, and hyperactive increase after five increases of any kind.
``patched`` is Algorithm 2 of Zhu et al. (CoNEXT 2016), its reference RTT T_low. ``tcd`` is TIMELY+TCD (ACC, 6.1), whose
rules the papers do not give: ours lets CE decrease as ever, UE less, and delay without either not at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidcc.schemes.timely.law as law
from fluidcc.contract.law import in_world
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.common.rules import constants, copy
from fluidcc.engines.packet.pacing import repace
from fluidcc.schemes.timely.parameters import TIMELY

_I, _F = np.int64, np.float64
blended, lowered, raised, raises = (
    in_world(rule, scalars, kernel) for rule in (law.blended, law.lowered, law.raised, law.raises)
)

_GIVEN = constants(TIMELY)
_TIMES = ("t_low", "t_high", "min_rtt")
STATE = np.dtype(
    [
        *_GIVEN,  # but `_TIMES` are in nanoseconds, as in the public simulator, and so are those below
        ("sim", _I),
        # state
        ("rtt", _F),
        ("rtt_difference", _F),
        ("streak", _I),  # completions in a row without a rising RTT (hpcc-sim: increases in a row)
        ("marks", _I),  # CE since the last completion
        ("undetermined", _I),  # UE since then
        ("completes", _F),  # the next completion is at this much acknowledged data (hpcc-sim: beyond it)
    ],
    align=True,
)

OBSERVABLES = {"rtt": ("s", "last RTT"), "rtt_gradient": ("1", "normalised gradient of the RTT")}


def init_state(parameters: TIMELY, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    copy(p, state, _GIVEN)
    for name in _TIMES:
        setattr(state, name, round(getattr(p, name) * 1e12) / 1000)
    state.empty_rtt, state.sim = p.empty_rtt * 1e9, p.variant == "hpcc-sim"
    state.completes = 0.0 if state.sim else p.segment


@kernel
def begin(flow: Any, state: Any) -> None:
    """Set the window that the rate fills in a base RTT (HPCC 5.1), if ``win`` is on."""
    if state.win:
        flow.window = flow.rate * state.base_rtt


@inlined
def on_ack(core: Any, flow: Any, state: Any, ack: Any) -> None:
    """A completion event, if the ACK makes one."""
    state.marks += ack.marks
    state.undetermined += ack.undetermined
    if state.sim:
        if ack.end <= state.completes:
            return
        state.completes = flow.sent
    else:
        if ack.end < state.completes:
            return
        state.completes = ack.end + state.segment
    completed(core, flow, state, (core.now - ack.sent) / 1000)
    state.marks = state.undetermined = 0


@kernel
def beta(state: Any) -> Any:
    """Multiplicative decrease; with ``tcd``, of it what the marks warrant: delay alone is no congestion."""
    if not state.tcd or state.marks > 0:
        return state.beta
    return state.beta * state.ue_gain if state.undetermined > 0 else 0.0


@kernel
def completed(core: Any, flow: Any, state: Any, rtt: Any) -> None:
    """Algorithm 1 of an RTT [ns]."""
    before = state.rtt
    state.rtt = rtt
    if before == 0.0:
        return
    state.rtt_difference = (1.0 - state.ewma) * state.rtt_difference + state.ewma * (rtt - before)
    gradient = state.rtt_difference / state.min_rtt
    if not state.sim:
        state.streak = state.streak + 1 if gradient <= 0.0 else 0
    delay = rtt - state.empty_rtt
    if state.patched and state.t_low <= delay <= state.t_high:
        rate = blended(state, flow.rate, delay, gradient, beta(state))
        flow.rate = min(max(rate, state.min_rate), flow.line_rate)
    elif raises(state, delay, gradient):
        hyper = state.streak >= state.hai_steps and (state.sim or delay >= state.t_low)
        if state.sim:
            state.streak += 1
        flow.rate = min(raised(state, flow.rate, hyper), flow.line_rate)
    else:
        rate = lowered(state, flow.rate, delay, gradient, beta(state))
        if state.sim:
            state.streak = 0
            rate = int(rate * 8.0) / 8.0  # whole bits per second
        flow.rate = max(rate, state.min_rate)
    if state.win:
        flow.window = flow.rate * state.base_rtt
    if not state.sim:  # there, the packet that waits for the pacer keeps its time
        repace(core, flow)


@kernel
def observe(state: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = state.rtt * 1e-9
    samples[row, f, 4] = state.rtt_difference / state.min_rtt
