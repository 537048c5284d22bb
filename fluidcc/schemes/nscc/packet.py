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


def fill(parameters: NSCC, flow: Any, me: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    me.target, me.gamma, me.max_md_jump, me.clear_delay = p.target_delay, p.gamma, p.max_md_jump, p.clear_delay
    me.alpha, me.fair, me.fast, me.eta = gains(p)
    me.adapts, me.qa_threshold, me.qa_share = p.quick_adapt, p.qa_threshold, 2.0**-p.qa_gate
    me.adjust_bytes, me.adjust_period, me.averaging = p.adjust_packets * p.mtu, p.adjust_period, p.averaging
    me.w_init, me.w_most, me.config_rtt, me.packet = p.initial_window, p.max_window, p.base_rtt, p.mtu


@kernel
def begin(core: Any, flow: Any, me: Any) -> None:
    """Start with the largest window, or the share of it that an initial rate is of the line rate."""
    me.W = max(me.w_init * (flow.rate / flow.line_rate), me.packet)
    me.base_rtt = me.config_rtt
    me.sampled = me.adjusted = me.decreased = core.now
    flow.rate = flow.line_rate
    limit(flow, me)


@kernel
def limit(flow: Any, me: Any) -> None:
    """A packet may go if it fits into the window whole, NSCC.CanSend; the engine lets go what begins below a limit."""
    flow.window = math.floor(me.W) - me.packet + 1.0


@kernel
def largest(me: Any) -> Any:
    """MaxWnd, in proportion to the base RTT as it is measured [bytes]."""
    return me.w_most * me.base_rtt / me.config_rtt


@kernel
def adapted(core: Any, flow: Any, me: Any, marked: Any, trimmed: Any) -> Any:
    """quick_adapt: whether it set the window or this mark is to be ignored; either undoes increases under way."""
    if not me.adapts:
        return False
    done = False
    if me.ignored < me.to_ignore and marked:
        done = True
    elif core.now >= me.qa_end:
        extreme = trimmed or me.trigger or me.delay > me.qa_threshold
        if me.qa_end != 0 and extreme and me.achieved < me.qa_share * largest(me):
            me.W = max(me.achieved, me.packet)
            me.to_ignore = inflight(core, flow)
            me.ignored = 0.0
            me.trigger = 0
            done = True
        me.achieved = 0.0
        me.qa_end = core.now + int((me.base_rtt + me.target) * 1e12)
    if done:
        me.grown = 0.0
        me.answered = 0.0
    return done


@kernel
def increase(me: Any, newly: Any) -> None:
    """proportional_increase, or fast_increase in its place once a window has come back from an empty path."""
    if me.delay < me.clear_delay:
        me.clear += newly
        me.fast_mode = me.fast_mode or me.clear > me.W
    else:
        me.clear = 0.0
        me.fast_mode = 0
    if me.fast_mode:
        me.W = min(me.W + newly * me.fast, largest(me))
    else:
        me.grown += me.alpha * newly * (me.target - me.delay)


@kernel
def decrease(core: Any, me: Any) -> None:
    """multiplicative_decrease: once per base RTT, by the average delay's excess over the target."""
    me.fast_mode = 0
    me.clear = 0.0
    if me.average > me.target and (core.now - me.decreased) * 1e-12 > me.base_rtt:
        me.W *= max(1.0 - me.gamma * (me.average - me.target) / me.average, me.max_md_jump)
        me.W = max(me.W, me.packet)
        me.decreased = core.now


@kernel
def adjust(core: Any, me: Any) -> None:
    """fulfill_adjustment: increases take effect after some packets or a period, and eta after a period."""
    over = (core.now - me.adjusted) * 1e-12 >= me.adjust_period
    if not over and me.answered <= me.adjust_bytes:
        return
    me.W += me.grown / me.W
    if over:
        me.W += me.eta
        me.adjusted = core.now
    me.W = min(me.W, max(largest(me), me.packet))
    me.grown = 0.0
    me.answered = 0.0


@kernel
def update_delay(core: Any, me: Any, delay: Any) -> None:
    """update_delay: the average moves by each sample as far as the time since the last is of its own."""
    me.average += min((core.now - me.sampled) * 1e-12 / me.averaging, 1.0) * (delay - me.average)
    me.sampled = core.now


@kernel
def on_ack(core: Any, flow: Any, me: Any, ack: Any) -> None:
    """NSCC.OnACK: by the mark and the queueing delay, one of four."""
    newly, marked = ack.covers * me.packet, ack.marks > 0
    me.ignored += newly
    me.answered += newly
    me.achieved += newly
    rtt = (core.now - ack.sent) * 1e-12
    me.base_rtt = min(me.base_rtt, rtt)
    me.delay = rtt - me.base_rtt
    update_delay(core, me, me.delay)
    if not adapted(core, flow, me, marked, False):
        if not marked:
            if me.delay >= me.target:
                me.grown += me.fair * newly  # fair_increase
            else:
                increase(me, newly)
        elif me.delay >= me.target:
            decrease(core, me)
        adjust(core, me)
    limit(flow, me)


@kernel
def on_loss(core: Any, flow: Any, me: Any, size: Any, why: Any, when: Any) -> None:
    """NSCC.OnNACK of a trimmed packet, or NSCC.OnInferredLoss: the window loses the packet, unless Quick Adapt sets it.

    A trimmed packet counts as marked, and as one that met a queue of a base RTT.
    """
    me.ignored += size
    done = False
    if why == LOST_TRIMMED:
        me.base_rtt = min(me.base_rtt, (core.now - when) * 1e-12)
        update_delay(core, me, me.config_rtt)
        me.trigger = 1
        done = adapted(core, flow, me, True, True)
    if not done:
        me.W = max(me.W - size, me.packet)
    limit(flow, me)


@kernel
def observe(core: Any, flow: Any, me: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = me.W
    samples[row, f, 4] = me.delay
    samples[row, f, 5] = me.average
    samples[row, f, 6] = inflight(core, flow)
