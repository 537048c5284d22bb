"""HPCC at packet level: Algorithm 1 of Li et al., SIGCOMM 2019, with its lines named at each step.

Choices that it leaves open: U starts at 1, the first ACK only records L, and W stays between one packet
and W_init. ``variant="hpcc-sim"`` is what the authors' public simulator does instead: its state is a rate, the
window follows from it, and U's queue term is normalised by W_init.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.packet.layout import COLUMNS, HOPS, PORT_ID, QLEN, QLEN_CLASS, TS, TX_BYTES, TX_CLASS
from fluidcc.engines.packet.pacing import inflight, repace
from fluidcc.engines.packet.telemetry import FORMATS, bytes_between, queue_read, same_path, seconds_between
from fluidcc.schemes.hpcc.parameters import HPCC
from fluidcc.schemes.vai_sf import packet as vai_sf

ONLY = {"form": "window"}
COMBINED, PER_ACK, PER_RTT = range(3)
_REACTIONS = ("combined", "per-ack", "per-rtt")
OFF, CLASS, SLIDES, SPARE = range(4)
RULES = ("off", "class", "slides", "spare")
_I, _F = np.int64, np.float64

STATE = np.dtype(
    [
        ("eta", _F),
        ("max_stage", _I),
        ("w_ai", _F),  # bytes
        ("rate_ai", _F),  # bytes/s
        ("base_rtt", _F),  # T, s
        ("w_init", _F),
        ("w_least", _F),
        ("min_rate", _F),
        ("reaction", _I),
        ("format", _I),  # of telemetry
        ("multi", _I),
        ("sim", _I),
        ("queued", _F),  # 1, or 0: the queue is left out of U
        ("per_link", _I),
        ("alpha_fair", _F),
        ("multiq", _I),
        ("share", _F),  # w of the class
        ("min_backlog", _F),
        ("rx", _I),  # the receiver runs the algorithm
        ("threshold", _F),
        ("headroom", _F),  # 0: W_AI is fixed
        # state
        ("W", _F),
        ("Wc", _F),
        ("R", _F),  # hpcc-sim: rates instead of windows
        ("Rc", _F),
        ("U", _F),
        ("stage", _I),
        ("last_update", _I),
        ("hops", _I),
        ("path", _I),  # pathID
        ("L", _I, (HOPS, COLUMNS)),
        ("W_granted", _F),  # rx: what the last notification said, and when
        ("granted_at", _I),
        ("fresh", _I),  # rx: the last packet was sent after that was observed
        # A.3: a register for each link; hpcc-sim: rates, as R and Rc
        ("U_link", _F, (HOPS,)),
        ("Wc_link", _F, (HOPS,)),
        ("W_link", _F, (HOPS,)),
        ("stage_link", _I, (HOPS,)),
        *vai_sf.COLUMNS,
    ],
    align=True,
)

OBSERVABLES = {
    "window": ("bytes", "window W"),
    "reference_window": ("bytes", "reference window W^c"),
    "utilisation_estimate": ("1", "normalised inflight bytes U"),
    "inflight": ("bytes", "bytes in flight"),
    **vai_sf.OBSERVABLES,
}


def fill(parameters: HPCC, flow: Any, me: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    me.eta, me.max_stage, me.base_rtt = p.eta, round(p.max_stage), p.base_rtt
    me.rate_ai, me.w_ai = p.rate_ai, p.w_ai
    me.w_init, me.min_rate = p.initial_window, p.min_rate
    me.reaction = _REACTIONS.index(p.reaction)
    me.format, me.multi = FORMATS.index(p.int_format), round(p.int_multi)
    me.sim, me.queued = p.variant == "hpcc-sim", float(p.u_queue)
    me.per_link, me.alpha_fair = p.registers == "per-link", p.alpha_fair
    me.multiq, me.share, me.min_backlog = RULES.index(p.multiq), p.share or 0.0, p.min_backlog
    flow.telemetry = 2 if p.u_rate == "rx" else 1
    vai_sf.fill(p, me, p.token_thresh)


def shown(parameters: HPCC) -> int:
    """Return the number of observables, without those of mechanisms that are off."""
    return len(OBSERVABLES) - (0 if parameters.mechanisms else len(vai_sf.OBSERVABLES))


@kernel
def begin(core: Any, flow: Any, me: Any) -> None:
    """Start at line rate: W_init = B_NIC T (section 3.2), or the share that an initial rate is of it."""
    me.w_least = flow.payload if core.payload_window else flow.payload + flow.overhead
    me.W = me.Wc = me.w_init * (flow.rate / flow.line_rate)
    me.R = me.Rc = flow.rate
    me.U = 1.0
    me.W_granted = me.W
    for i in range(HOPS):
        me.U_link[i] = 1.0
        me.Wc_link[i] = me.W_link[i] = me.Rc if me.sim else me.Wc
    flow.window = me.W


@kernel
def class_utilisation(me: Any, rate: Any, tx_rate: Any, own: Any, queue: Any) -> Any:
    """MultiQ's U (HPCC++ slides): rate and backlog of a class over what it may count on.

    ``class`` is "HPCC applied for MultiQ w/o any changes": the whole link. The slides' three branches lock an idle
    link's only class at eta of its guaranteed rate if its flows add less than 1 - eta of it. ``spare`` is ours: what it
    may count on is its guaranteed rate, or its present rate and all that nobody uses, whichever is more.
    """
    if me.multiq == CLASS:
        return queue / (rate * me.base_rtt) + own / rate
    guaranteed = me.share * rate
    if me.multiq == SPARE:
        counted = max(guaranteed, own + max(rate - tx_rate, 0.0))
        return queue / (counted * me.base_rtt) + own / counted
    if own <= guaranteed:
        return queue / (guaranteed * me.base_rtt) + own / guaranteed
    if queue > me.min_backlog:
        return queue / (own * me.base_rtt) + 1.0
    return own / ((own + rate) / 2)


@kernel
def measure_inflight(ports: Any, me: Any, ack: Any, line_rate: Any) -> Any:
    """Lines 1-10; keeps L as it is."""
    u = 0.0
    tau = 0.0
    for i in range(ack.hops):
        rate = ports[ack.telemetry[i, PORT_ID]].rate
        sent = bytes_between(me.format, me.multi, ack.telemetry[i, TX_BYTES], me.L[i, TX_BYTES])
        seconds = seconds_between(me.format, ack.telemetry[i, TS], me.L[i, TS])
        if seconds <= 0.0:
            continue
        tx_rate = sent / seconds  # line 4
        queue = queue_read(me.format, me.multi, min(ack.telemetry[i, QLEN], me.L[i, QLEN]))
        if me.sim:
            hop = tx_rate / rate + queue * line_rate / rate / me.w_init
        elif me.multiq != OFF:
            own = bytes_between(me.format, me.multi, ack.telemetry[i, TX_CLASS], me.L[i, TX_CLASS]) / seconds
            queue = queue_read(me.format, me.multi, min(ack.telemetry[i, QLEN_CLASS], me.L[i, QLEN_CLASS]))
            hop = class_utilisation(me, rate, tx_rate, own, queue)
        else:
            hop = me.queued * queue / (rate * me.base_rtt) + tx_rate / rate  # line 5
        if me.per_link:
            weight = min(seconds, me.base_rtt) / me.base_rtt
            me.U_link[i] = (1.0 - weight) * me.U_link[i] + weight * hop
        if hop > u:  # lines 6-7
            u = hop
            tau = seconds
    tau = min(tau, me.base_rtt)  # line 8
    me.U = (1.0 - tau / me.base_rtt) * me.U + tau / me.base_rtt * u  # line 9
    return me.U


@kernel
def compute_registers(me: Any, least: Any, most: Any, increase: Any, update: Any) -> Any:
    """Lines 11-20 for the register of each link, and what (7) makes of them: windows, or hpcc-sim's rates."""
    joined = 0.0
    lowest = most
    # Those of links that do not limit the flow grow until they add a hundredth to (7) together, and no further: they
    # must come back when theirs becomes the bottleneck.
    highest = most * (100.0 * me.hops) ** (1.0 / me.alpha_fair)
    for i in range(me.hops):
        if me.eta <= me.U_link[i] or me.stage_link[i] >= me.max_stage:
            new = me.Wc_link[i] / (me.U_link[i] / me.eta) + increase
            stage = 0
        else:
            new = me.Wc_link[i] + increase
            stage = me.stage_link[i] + 1
        new = min(max(new, least), highest)
        me.W_link[i] = new
        if update:
            me.stage_link[i] = stage
            me.Wc_link[i] = new
        lowest = min(lowest, new)
        joined += (most / new) ** me.alpha_fair if me.alpha_fair < np.inf else 0.0
    if me.alpha_fair < np.inf:  # (7), by a common factor that keeps the powers finite
        lowest = most * joined ** (-1.0 / me.alpha_fair)
    return max(min(lowest, most), least)


@kernel
def compute_wind(me: Any, U: Any, factor: Any) -> Any:
    """Lines 11-20, with a factor of the increase (Variable AI): W and incStage."""
    if me.eta <= U or me.stage >= me.max_stage:
        W = me.Wc / (U / me.eta) + factor * me.w_ai  # line 13
        stage = 0
    else:
        W = me.Wc + factor * me.w_ai  # line 17
        stage = me.stage + 1
    return min(max(W, me.w_least), me.w_init), stage


@kernel
def compute_rate(flow: Any, me: Any, U: Any, factor: Any) -> Any:
    """The public simulator's form of lines 11-20: rates in whole bits per second."""
    if me.eta <= U or me.stage >= me.max_stage:
        rate = me.Rc / (U / me.eta) + factor * me.rate_ai
        stage = 0
    else:
        rate = me.Rc + factor * me.rate_ai
        stage = me.stage + 1
    return min(max(int(rate * 8.0) / 8.0, me.min_rate), flow.line_rate), stage


@kernel
def compute_by_ack(core: Any, uniforms: Any, flow: Any, me: Any, ack: Any, U: Any, update: Any) -> Any:
    """Lines 11-20 in either form, with Variable AI and Sampling Frequency; whether that begins a new period."""
    if me.vai or me.sampling > 0:
        vai_sf.observed(flow, me, ack, deepest_queue(me, ack), me.eta <= U)
    factor = vai_sf.increases(me)
    if me.sim:
        new, stage = compute_rate(flow, me, U, factor)
        reference, largest = me.Rc, flow.line_rate
    else:
        new, stage = compute_wind(me, U, factor)
        reference, largest = me.Wc, me.w_init
    update = vai_sf.adjusts(me, new < reference, update)
    if update and new < reference and vai_sf.ignores(core, uniforms, me, reference / largest):
        return me.ignored_ends_period == 1
    if me.sim:
        me.R = new
    else:
        me.W = new
    if update:  # lines 14-15, 18-19
        me.stage = stage
        if me.sim:
            me.Rc = new
        else:
            me.Wc = new
        vai_sf.adjusted(me)
    return update


@kernel
def deepest_queue(me: Any, ack: Any) -> Any:
    """Largest queue that an ACK reports of its path [bytes]."""
    column = QLEN if me.multiq == OFF else QLEN_CLASS
    deepest = 0.0
    for i in range(ack.hops):
        deepest = max(deepest, queue_read(me.format, me.multi, ack.telemetry[i, column]))
    return deepest


@kernel
def record(me: Any, ack: Any) -> None:
    """Line 27: L = ack.L."""
    me.hops = ack.hops
    me.path = ack.path
    for i in range(ack.hops):
        for column in range(COLUMNS):
            me.L[i, column] = ack.telemetry[i, column]


@inlined
def on_ack(sim: Any, f: Any, flow: Any, me: Any, ack: Any) -> None:
    """Lines 21-27: procedure NEWACK."""
    if me.rx:
        # What waits for the next notification is in flight too.
        flow.window = ack.granted * (1.0 + flow.answer_period * 1e-12 / me.base_rtt)
        flow.rate = min(ack.granted / me.base_rtt, flow.line_rate)
        repace(sim.core[0], flow)
        return
    # The first ACK, or the first one of another path: throw the records away and build up new ones (section 4.1).
    if not same_path(me.format, me.hops, me.L, me.path, ack):
        record(me, ack)
        me.last_update = flow.sent
        return
    update = ack.end > me.last_update  # line 22
    if me.reaction == PER_ACK:
        update = True
    elif me.reaction == PER_RTT and not update:
        if not me.sim:
            measure_inflight(sim.ports, me, ack, flow.line_rate)
            record(me, ack)
        return
    U = measure_inflight(sim.ports, me, ack, flow.line_rate)
    if me.per_link and me.sim:
        me.R = compute_registers(me, me.min_rate, flow.line_rate, me.rate_ai, update)
        if update:
            me.Rc = me.R
    elif me.per_link:
        me.W = compute_registers(me, me.w_least, me.w_init, me.w_ai, update)
        if update:
            me.Wc = me.W
    else:
        update = compute_by_ack(sim.core[0], sim.uniforms, flow, me, ack, U, update)  # lines 23, 26
    if me.sim:
        flow.rate = me.R
        flow.window = float(int(me.w_init * me.R / flow.line_rate))
        me.W = flow.window
        me.Wc = me.w_init * me.Rc / flow.line_rate
    else:
        flow.window = me.W
        flow.rate = min(me.W / me.base_rtt, flow.line_rate)  # line 27
    repace(sim.core[0], flow)
    if update:
        me.last_update = flow.sent  # line 24
    record(me, ack)


@kernel
def observe(core: Any, flow: Any, me: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = me.W
    samples[row, f, 4] = me.Wc
    samples[row, f, 5] = me.U
    samples[row, f, 6] = inflight(core, flow)
    vai_sf.observe(me, samples, row, f, 7)
