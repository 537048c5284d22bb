"""NSCC at packet level: Ultra Ethernet Specification 1.0, 3.6.13, with and without trimming.

The queueing delay is the round trip of the packet answered less the least that was seen. One window covers all paths
of a flow, and nothing is paced. Windows are real numbers (the specification's are whole bytes), an ACK that answers
several packets is marked if one of them was, and receivers that hold senders back (3.6.13.2) and probes of the base
RTT (3.6.13.7) are not modelled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.packet.layout import LOST_TRIMMED
from fluidcc.engines.packet.pacing import inflight
from fluidcc.schemes.nscc.parameters import NSCC, gains

_I, _F = np.int64, np.float64

STATE = np.dtype(
    [
        ("target", _F),  # s, as are all delays
        ("alpha", _F),  # bytes/s
        ("fair", _F),  # bytes
        ("fast", _F),
        ("eta", _F),  # bytes
        ("gamma", _F),
        ("max_md_jump", _F),
        ("adapts", _I),  # whether there is Quick Adapt
        ("qa_threshold", _F),
        ("qa_share", _F),  # of the largest window
        ("adjust_bytes", _F),
        ("adjust_period", _F),
        ("averaging", _F),
        ("clear_delay", _F),
        ("w_init", _F),  # bytes
        ("w_most", _F),  # bytes, at the configured base RTT
        ("config_rtt", _F),
        ("packet", _F),  # in the bytes that windows count
        # state
        ("W", _F),  # bytes
        ("base_rtt", _F),
        ("delay", _F),  # of the last ACK
        ("average", _F),
        ("sampled", _I),  # when the average was last updated
        ("grown", _F),  # inc_bytes: what increases add up to, times the window [bytes^2]
        ("answered", _F),  # bytes acknowledged since they took effect
        ("adjusted", _I),  # when the last adjustment period ended
        ("decreased", _I),  # when W was last cut
        ("clear", _F),  # bytes acknowledged in a row without marks and delay
        ("fast_mode", _I),
        ("achieved", _F),  # bytes acknowledged in this period of Quick Adapt
        ("qa_end", _I),  # of that period; 0 before the first ACK
        ("trigger", _I),  # whether a trim has asked for Quick Adapt that has not come yet
        ("to_ignore", _F),  # bytes whose marks tell what Quick Adapt has reacted to
        ("ignored", _F),
    ],
    align=True,
)

OBSERVABLES = {
    "window": ("bytes", "window"),
    "queueing_delay": ("s", "RTT of the last ACK less the base RTT"),
    "average_delay": ("s", "average queueing delay, by which decreases are measured"),
    "inflight": ("bytes", "bytes in flight"),
}


def init_state(parameters: NSCC, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    state.target, state.gamma, state.max_md_jump, state.clear_delay = (
        p.target_delay,
        p.gamma,
        p.max_md_jump,
        p.clear_delay,
    )
    state.alpha, state.fair, state.fast, state.eta = gains(p)
    state.adapts, state.qa_threshold, state.qa_share = p.quick_adapt, p.qa_threshold, 2.0**-p.qa_gate
    state.adjust_bytes, state.adjust_period, state.averaging = p.adjust_packets * p.mtu, p.adjust_period, p.averaging
    state.w_init, state.w_most, state.config_rtt, state.packet = p.initial_window, p.max_window, p.base_rtt, p.mtu


@kernel
def begin(core: Any, flow: Any, state: Any) -> None:
    """Start with the largest window, or the share of it that an initial rate is of the line rate."""
    state.W = max(state.w_init * (flow.rate / flow.line_rate), state.packet)
    state.base_rtt = state.config_rtt
    state.sampled = state.adjusted = state.decreased = core.now
    flow.rate = flow.line_rate
    limit(flow, state)


@kernel
def limit(flow: Any, state: Any) -> None:
    """A packet may go if it fits into the window whole, NSCC.CanSend; the engine lets go what begins below a limit."""
    flow.window = math.floor(state.W) - state.packet + 1.0


@kernel
def largest(state: Any) -> Any:
    """MaxWnd, in proportion to the base RTT as it is measured [bytes]."""
    return state.w_most * state.base_rtt / state.config_rtt


@kernel
def adapted(core: Any, flow: Any, state: Any, marked: Any, trimmed: Any) -> Any:
    """quick_adapt: whether it set the window or this mark is to be ignored; either undoes increases under way."""
    if not state.adapts:
        return False
    done = False
    if state.ignored < state.to_ignore and marked:
        done = True
    elif core.now >= state.qa_end:
        extreme = trimmed or state.trigger or state.delay > state.qa_threshold
        if state.qa_end != 0 and extreme and state.achieved < state.qa_share * largest(state):
            state.W = max(state.achieved, state.packet)
            state.to_ignore = inflight(core, flow)
            state.ignored = 0.0
            state.trigger = 0
            done = True
        state.achieved = 0.0
        state.qa_end = core.now + int((state.base_rtt + state.target) * 1e12)
    if done:
        state.grown = 0.0
        state.answered = 0.0
    return done


@kernel
def increase(state: Any, newly: Any) -> None:
    """proportional_increase, or fast_increase in its place once a window has come back from an empty path."""
    if state.delay < state.clear_delay:
        state.clear += newly
        state.fast_mode = state.fast_mode or state.clear > state.W
    else:
        state.clear = 0.0
        state.fast_mode = 0
    if state.fast_mode:
        state.W = min(state.W + newly * state.fast, largest(state))
    else:
        state.grown += state.alpha * newly * (state.target - state.delay)


@kernel
def decrease(core: Any, state: Any) -> None:
    """multiplicative_decrease: once per base RTT, by the average delay's excess over the target."""
    state.fast_mode = 0
    state.clear = 0.0
    if state.average > state.target and (core.now - state.decreased) * 1e-12 > state.base_rtt:
        state.W *= max(1.0 - state.gamma * (state.average - state.target) / state.average, state.max_md_jump)
        state.W = max(state.W, state.packet)
        state.decreased = core.now


@kernel
def adjust(core: Any, state: Any) -> None:
    """fulfill_adjustment: increases take effect after some packets or a period, and eta after a period."""
    over = (core.now - state.adjusted) * 1e-12 >= state.adjust_period
    if not over and state.answered <= state.adjust_bytes:
        return
    state.W += state.grown / state.W
    if over:
        state.W += state.eta
        state.adjusted = core.now
    state.W = min(state.W, max(largest(state), state.packet))
    state.grown = 0.0
    state.answered = 0.0


@kernel
def update_delay(core: Any, state: Any, delay: Any) -> None:
    """update_delay: the average moves by each sample as far as the time since the last is of its own."""
    state.average += min((core.now - state.sampled) * 1e-12 / state.averaging, 1.0) * (delay - state.average)
    state.sampled = core.now


@kernel
def on_ack(core: Any, flow: Any, state: Any, ack: Any) -> None:
    """NSCC.OnACK: by the mark and the queueing delay, one of four."""
    newly, marked = ack.covers * state.packet, ack.marks > 0
    state.ignored += newly
    state.answered += newly
    state.achieved += newly
    rtt = (core.now - ack.sent) * 1e-12
    state.base_rtt = min(state.base_rtt, rtt)
    state.delay = rtt - state.base_rtt
    update_delay(core, state, state.delay)
    if not adapted(core, flow, state, marked, False):
        if not marked:
            if state.delay >= state.target:
                state.grown += state.fair * newly  # fair_increase
            else:
                increase(state, newly)
        elif state.delay >= state.target:
            decrease(core, state)
        adjust(core, state)
    limit(flow, state)


@kernel
def on_loss(core: Any, flow: Any, state: Any, size: Any, why: Any, when: Any) -> None:
    """NSCC.OnNACK of a trimmed packet, or NSCC.OnInferredLoss: the window loses the packet, unless Quick Adapt sets it.

    A trimmed packet counts as marked, and as one that met a queue of a base RTT.
    """
    state.ignored += size
    done = False
    if why == LOST_TRIMMED:
        state.base_rtt = min(state.base_rtt, (core.now - when) * 1e-12)
        update_delay(core, state, state.config_rtt)
        state.trigger = 1
        done = adapted(core, flow, state, True, True)
    if not done:
        state.W = max(state.W - size, state.packet)
    limit(flow, state)


@kernel
def observe(core: Any, flow: Any, state: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = state.W
    samples[row, f, 4] = state.delay
    samples[row, f, 5] = state.average
    samples[row, f, 6] = inflight(core, flow)
