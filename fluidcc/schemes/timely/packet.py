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

from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.packet.pacing import repace
from fluidcc.schemes.timely.parameters import TIMELY

_I, _F = np.int64, np.float64

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


def fill(parameters: TIMELY, flow: Any, me: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    me.ewma, me.beta, me.rate_ai, me.min_rate = p.ewma, p.beta, p.rate_ai, p.min_rate
    me.hai_gain, me.hai_steps = p.hai_gain, round(p.hai_steps)
    me.t_low, me.t_high, me.min_rtt = (round(time * 1e12) / 1000 for time in (p.t_low, p.t_high, p.min_rtt))
    me.win, me.base_rtt = p.win, p.base_rtt if p.win else 0.0
    me.patched, me.empty = p.patched, p.empty_rtt * 1e9 if p.thresholds == "queueing" else 0.0
    me.ternary, me.ue_gain = p.tcd, p.ue_gain
    me.sim, me.segment = p.variant == "hpcc-sim", p.segment
    me.completes = 0.0 if me.sim else p.segment


@kernel
def begin(flow: Any, me: Any) -> None:
    """Set the window that the rate fills in a base RTT (HPCC 5.1), if ``win`` is on."""
    if me.win:
        flow.window = flow.rate * me.base_rtt


@inlined
def on_ack(core: Any, flow: Any, me: Any, ack: Any) -> None:
    """A completion event, if the ACK makes one."""
    me.marks += ack.marks
    me.undetermined += ack.undetermined
    if me.sim:
        if ack.end <= me.completes:
            return
        me.completes = flow.sent
    else:
        if ack.end < me.completes:
            return
        me.completes = ack.end + me.segment
    completed(core, flow, me, (core.now - ack.sent) / 1000)
    me.marks = me.undetermined = 0


@kernel
def beta(me: Any) -> Any:
    """Multiplicative decrease; with ``tcd``, of it what the marks warrant: delay alone is no congestion."""
    if not me.ternary or me.marks > 0:
        return me.beta
    return me.beta * me.ue_gain if me.undetermined > 0 else 0.0


@kernel
def completed(core: Any, flow: Any, me: Any, rtt: Any) -> None:
    """Algorithm 1 of an RTT [ns]."""
    before = me.rtt
    me.rtt = rtt
    if before == 0.0:
        return
    me.rtt_difference = (1.0 - me.ewma) * me.rtt_difference + me.ewma * (rtt - before)
    gradient = me.rtt_difference / me.min_rtt
    if not me.sim:
        me.streak = me.streak + 1 if gradient <= 0.0 else 0
    delay = rtt - me.empty
    if me.patched and me.t_low <= delay <= me.t_high:
        weight = min(max(2.0 * gradient + 0.5, 0.0), 1.0)
        error = (delay - me.t_low) / me.t_low
        rate = flow.rate * (1.0 - beta(me) * weight * error) + (1.0 - weight) * me.rate_ai
        flow.rate = min(max(rate, me.min_rate), flow.line_rate)
    elif delay < me.t_low or (delay <= me.t_high and gradient <= 0.0):
        hyper = me.streak >= me.hai_steps and (me.sim or delay >= me.t_low)
        if me.sim:
            me.streak += 1
        rate = flow.rate + me.rate_ai * (me.hai_gain if hyper else 1.0)
        flow.rate = min(rate, flow.line_rate)
    else:
        excess = gradient if delay <= me.t_high else 1.0 - me.t_high / delay
        rate = flow.rate * max(1.0 - beta(me) * excess, 0.0)
        if me.sim:
            me.streak = 0
            rate = int(rate * 8.0) / 8.0  # whole bits per second
        flow.rate = max(rate, me.min_rate)
    if me.win:
        flow.window = flow.rate * me.base_rtt
    if not me.sim:  # there, the packet that waits for the pacer keeps its time
        repace(core, flow)


@kernel
def observe(me: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = me.rtt * 1e-9
    samples[row, f, 4] = me.rtt_difference / me.min_rtt
