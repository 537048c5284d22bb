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

import fluidcc.schemes.nscc.law as law
from fluidcc.contract.law import in_world
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import kernel
from fluidcc.engines.common.rules import constants, copy
from fluidcc.engines.packet.layout import LOST_TRIMMED
from fluidcc.engines.packet.pacing import inflight
from fluidcc.schemes.nscc.parameters import NSCC, gains

_I, _F = np.int64, np.float64
averaged, growth, most, reduced = (
    in_world(rule, scalars, kernel) for rule in (law.averaged, law.growth, law.most, law.reduced)
)

_GIVEN = constants(NSCC)
STATE = np.dtype(
    [
        *_GIVEN,  # but eta is the gain that follows from it
        ("alpha", _F),  # bytes/s
        ("fair", _F),  # bytes
        ("fast", _F),
        ("qa_share", _F),  # of the largest window
        ("adjust_bytes", _F),
        # state
        ("W", _F),  # bytes
        ("least_rtt", _F),  # seen
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
    copy(p, state, _GIVEN)
    state.alpha, state.fair, state.fast, state.eta = gains(p)
    state.qa_share, state.adjust_bytes = 2.0**-p.qa_gate, p.adjust_packets * p.mtu


@kernel
def begin(core: Any, flow: Any, state: Any) -> None:
    """Start with the largest window, or the share of it that an initial rate is of the line rate."""
    state.W = max(state.initial_window * (flow.rate / flow.line_rate), state.mtu)
    state.least_rtt = state.base_rtt
    state.sampled = state.adjusted = state.decreased = core.now
    flow.rate = flow.line_rate
    limit(flow, state)


@kernel
def limit(flow: Any, state: Any) -> None:
    """A packet may go if it fits into the window whole, NSCC.CanSend; the engine lets go what begins below a limit."""
    flow.window = math.floor(state.W) - state.mtu + 1.0


@kernel
def adapted(core: Any, flow: Any, state: Any, marked: Any, trimmed: Any) -> Any:
    """quick_adapt: whether it set the window or this mark is to be ignored; either undoes increases under way."""
    if not state.quick_adapt:
        return False
    done = False
    if state.ignored < state.to_ignore and marked:
        done = True
    elif core.now >= state.qa_end:
        extreme = trimmed or state.trigger or state.delay > state.qa_threshold
        if state.qa_end != 0 and extreme and state.achieved < state.qa_share * most(state, state.least_rtt):
            state.W = max(state.achieved, state.mtu)
            state.to_ignore = inflight(core, flow)
            state.ignored = 0.0
            state.trigger = 0
            done = True
        state.achieved = 0.0
        state.qa_end = core.now + int((state.least_rtt + state.target_delay) * 1e12)
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
        state.W = min(state.W + newly * state.fast, most(state, state.least_rtt))
    else:
        state.grown += growth(state, state, state.delay, newly)


@kernel
def decrease(core: Any, state: Any) -> None:
    """multiplicative_decrease: once per base RTT, by the average delay's excess over the target."""
    state.fast_mode = 0
    state.clear = 0.0
    if state.average > state.target_delay and (core.now - state.decreased) * 1e-12 > state.least_rtt:
        state.W = reduced(state, state.W, state.average)
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
    state.W = min(state.W, max(most(state, state.least_rtt), state.mtu))
    state.grown = 0.0
    state.answered = 0.0


@kernel
def update_delay(core: Any, state: Any, delay: Any) -> None:
    """update_delay: the average moves by each sample as far as the time since the last is of its own."""
    state.average = averaged(state, state.average, delay, (core.now - state.sampled) * 1e-12)
    state.sampled = core.now


@kernel
def on_ack(core: Any, flow: Any, state: Any, ack: Any) -> None:
    """NSCC.OnACK: by the mark and the queueing delay, one of four."""
    newly, marked = ack.covers * state.mtu, ack.marks > 0
    state.ignored += newly
    state.answered += newly
    state.achieved += newly
    rtt = (core.now - ack.sent) * 1e-12
    state.least_rtt = min(state.least_rtt, rtt)
    state.delay = rtt - state.least_rtt
    update_delay(core, state, state.delay)
    if not adapted(core, flow, state, marked, False):
        if not marked:
            if state.delay >= state.target_delay:
                state.grown += growth(state, state, state.delay, newly)
            else:
                increase(state, newly)
        elif state.delay >= state.target_delay:
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
        state.least_rtt = min(state.least_rtt, (core.now - when) * 1e-12)
        update_delay(core, state, state.base_rtt)
        state.trigger = 1
        done = adapted(core, flow, state, True, True)
    if not done:
        state.W = max(state.W - size, state.mtu)
    limit(flow, state)


@kernel
def observe(core: Any, flow: Any, state: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = state.W
    samples[row, f, 4] = state.delay
    samples[row, f, 5] = state.average
    samples[row, f, 6] = inflight(core, flow)
