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
from fluidcc.engines.packet.pacing import repace
from fluidcc.schemes.timely.parameters import TIMELY

_I, _F = np.int64, np.float64
blended, lowered, raised, raises = (
    in_world(rule, scalars, kernel) for rule in (law.blended, law.lowered, law.raised, law.raises)
)

STATE = np.dtype(
    [
        # times in nanoseconds, as in the public simulator
        ("ewma", _F),
        ("beta", _F),
        ("rate_ai", _F),  # bytes/s
        ("hai_gain", _F),
        ("hai_steps", _I),
        ("t_low", _F),
        ("t_high", _F),
        ("min_rtt", _F),
        ("segment", _F),
        ("min_rate", _F),
        ("base_rtt", _F),  # s
        ("empty", _F),  # round trip that delays are counted from
        ("patched", _I),
        ("win", _I),
        ("sim", _I),
        ("ternary", _I),
        ("ue_gain", _F),
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
    state.ewma, state.beta, state.rate_ai, state.min_rate = p.ewma, p.beta, p.rate_ai, p.min_rate
    state.hai_gain, state.hai_steps = p.hai_gain, round(p.hai_steps)
    state.t_low, state.t_high, state.min_rtt = (round(time * 1e12) / 1000 for time in (p.t_low, p.t_high, p.min_rtt))
    state.win, state.base_rtt = p.win, p.base_rtt if p.win else 0.0
    state.patched, state.empty = p.patched, p.empty_rtt * 1e9
    state.ternary, state.ue_gain = p.tcd, p.ue_gain
    state.sim, state.segment = p.variant == "hpcc-sim", p.segment
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
    if not state.ternary or state.marks > 0:
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
    delay = rtt - state.empty
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
