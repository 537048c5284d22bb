"""HPCC at packet level: Algorithm 1 of Li et al., SIGCOMM 2019, with its lines named at each step.

Choices that it leaves open: U starts at 1, the first ACK only records L, and W stays between one packet
and W_init. ``variant="hpcc-sim"`` is what the authors' public simulator does instead: its state is a rate, the
window follows from it, and U's queue term is normalised by W_init.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidcc.schemes.hpcc.law as law
import fluidcc.schemes.vai_sf.packet as vai_sf
from fluidcc.contract.law import in_world
from fluidcc.engines.common import scalars
from fluidcc.engines.common.jit import inlined, kernel
from fluidcc.engines.common.rules import constants, copy
from fluidcc.engines.packet.layout import COLUMNS, HOPS, PORT_ID, QLEN, QLEN_CLASS, TS, TX_BYTES, TX_CLASS
from fluidcc.engines.packet.pacing import inflight, repace
from fluidcc.engines.packet.telemetry import FORMATS, bytes_between, queue_read, same_path, seconds_between
from fluidcc.schemes.hpcc.parameters import HPCC

ONLY = {"form": "window"}
COMBINED, PER_ACK, PER_RTT = range(3)
_REACTIONS = ("combined", "per-ack", "per-rtt")
_I, _F = np.int64, np.float64
averaged, class_utilisation, link_utilisation, next_stage, reacted = (
    in_world(rule, scalars, kernel)
    for rule in (law.averaged, law.class_utilisation, law.link_utilisation, law.next_stage, law.reacted)
)

_GIVEN = constants(HPCC, ("simulates", "counts_link", "counts_spare", "in_classes"))
STATE = np.dtype(
    [
        *_GIVEN,
        ("least_window", _F),
        ("reaction", _I),
        ("format", _I),  # of telemetry
        ("multi", _I),
        ("per_link", _I),
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


def init_state(parameters: HPCC, flow: Any, state: Any) -> None:
    """Write a flow's parameters and first state."""
    p = parameters
    copy(p, state, _GIVEN)
    state.reaction, state.format = _REACTIONS.index(p.reaction), FORMATS.index(p.int_format)
    state.multi, state.per_link = round(p.int_multi), p.registers == "per-link"
    flow.telemetry = 2 if p.u_rate == "rx" else 1
    vai_sf.init_state(p, state)


def shown(parameters: HPCC) -> int:
    """Return the number of observables, without those of mechanisms that are off."""
    return len(OBSERVABLES) - (0 if parameters.mechanisms else len(vai_sf.OBSERVABLES))


@kernel
def begin(core: Any, flow: Any, state: Any) -> None:
    """Start at line rate: W_init = B_NIC T (section 3.2), or the share that an initial rate is of it."""
    state.least_window = flow.payload if core.payload_window else flow.payload + flow.overhead
    state.W = state.Wc = state.initial_window * (flow.rate / flow.line_rate)
    state.R = state.Rc = flow.rate
    state.U = 1.0
    state.W_granted = state.W
    for i in range(HOPS):
        state.U_link[i] = 1.0
        state.Wc_link[i] = state.W_link[i] = state.Rc if state.simulates else state.Wc
    flow.window = state.W


@kernel
def measure_inflight(ports: Any, state: Any, ack: Any, line_rate: Any) -> Any:
    """Lines 1-10; keeps L as it is."""
    u = 0.0
    tau = 0.0
    for i in range(ack.hops):
        rate = ports[ack.telemetry[i, PORT_ID]].rate
        sent = bytes_between(state.format, state.multi, ack.telemetry[i, TX_BYTES], state.L[i, TX_BYTES])
        seconds = seconds_between(state.format, ack.telemetry[i, TS], state.L[i, TS])
        if seconds <= 0.0:
            continue
        tx_rate = sent / seconds  # line 4
        queue = queue_read(state.format, state.multi, min(ack.telemetry[i, QLEN], state.L[i, QLEN]))
        if state.simulates:
            hop = tx_rate / rate + queue * line_rate / rate / state.initial_window
        elif state.in_classes:
            own = bytes_between(state.format, state.multi, ack.telemetry[i, TX_CLASS], state.L[i, TX_CLASS]) / seconds
            queue = queue_read(state.format, state.multi, min(ack.telemetry[i, QLEN_CLASS], state.L[i, QLEN_CLASS]))
            hop = class_utilisation(state, queue, own, tx_rate, rate, state.share)
        else:
            hop = link_utilisation(state, queue, tx_rate, rate)
        if state.per_link:
            state.U_link[i] = averaged(state, state.U_link[i], hop, seconds)
        if hop > u:  # lines 6-7
            u = hop
            tau = seconds
    state.U = averaged(state, state.U, u, tau)
    return state.U


@kernel
def compute_registers(state: Any, least: Any, most: Any, increase: Any, update: Any) -> Any:
    """Lines 11-20 for the register of each link, and what (7) makes of them: windows, or hpcc-sim's rates."""
    joined = 0.0
    lowest = most
    # Those of links that do not limit the flow grow until they add a hundredth to (7) together, and no further: they
    # must come back when theirs becomes the bottleneck.
    highest = most * (100.0 * state.hops) ** (1.0 / state.alpha_fair)
    for i in range(state.hops):
        new = reacted(state, state.Wc_link[i], state.U_link[i], state.stage_link[i], increase)
        new = min(max(new, least), highest)
        state.W_link[i] = new
        if update:
            state.stage_link[i] = next_stage(state, state.U_link[i], state.stage_link[i])
            state.Wc_link[i] = new
        lowest = min(lowest, new)
        joined += (most / new) ** state.alpha_fair if state.alpha_fair < np.inf else 0.0
    if state.alpha_fair < np.inf:  # (7), by a common factor that keeps the powers finite
        lowest = most * joined ** (-1.0 / state.alpha_fair)
    return max(min(lowest, most), least)


@kernel
def compute_wind(state: Any, U: Any, factor: Any) -> Any:
    """Lines 11-20, with a factor of the increase (Variable AI): W and incStage."""
    W = reacted(state, state.Wc, U, state.stage, factor * state.w_ai)
    return min(max(W, state.least_window), state.initial_window), next_stage(state, U, state.stage)


@kernel
def compute_rate(flow: Any, state: Any, U: Any, factor: Any) -> Any:
    """The public simulator's form of lines 11-20: rates in whole bits per second."""
    rate = reacted(state, state.Rc, U, state.stage, factor * state.rate_ai)
    return min(max(int(rate * 8.0) / 8.0, state.min_rate), flow.line_rate), next_stage(state, U, state.stage)


@kernel
def compute_by_ack(core: Any, uniforms: Any, flow: Any, state: Any, ack: Any, U: Any, update: Any) -> Any:
    """Lines 11-20 in either form, with Variable AI and Sampling Frequency; whether that begins a new period."""
    if state.vai or state.sampling > 0:
        vai_sf.observed(flow, state, ack, deepest_queue(state, ack), state.eta <= U)
    factor = vai_sf.increases(state)
    if state.simulates:
        new, stage = compute_rate(flow, state, U, factor)
        reference, largest = state.Rc, flow.line_rate
    else:
        new, stage = compute_wind(state, U, factor)
        reference, largest = state.Wc, state.initial_window
    update = vai_sf.adjusts(state, new < reference, update)
    if update and new < reference and vai_sf.ignores(core, uniforms, state, reference / largest):
        return state.ignored_ends_period == 1
    if state.simulates:
        state.R = new
    else:
        state.W = new
    if update:  # lines 14-15, 18-19
        state.stage = stage
        if state.simulates:
            state.Rc = new
        else:
            state.Wc = new
        vai_sf.adjusted(state)
    return update


@kernel
def deepest_queue(state: Any, ack: Any) -> Any:
    """Largest queue that an ACK reports of its path [bytes]."""
    column = QLEN_CLASS if state.in_classes else QLEN
    deepest = 0.0
    for i in range(ack.hops):
        deepest = max(deepest, queue_read(state.format, state.multi, ack.telemetry[i, column]))
    return deepest


@kernel
def record(state: Any, ack: Any) -> None:
    """Line 27: L = ack.L."""
    state.hops = ack.hops
    state.path = ack.path
    for i in range(ack.hops):
        for column in range(COLUMNS):
            state.L[i, column] = ack.telemetry[i, column]


@inlined
def on_ack(sim: Any, f: Any, flow: Any, state: Any, ack: Any) -> None:
    """Lines 21-27: procedure NEWACK."""
    if state.rx:
        # What waits for the next notification is in flight too.
        flow.window = ack.granted * (1.0 + flow.answer_period * 1e-12 / state.base_rtt)
        flow.rate = min(ack.granted / state.base_rtt, flow.line_rate)
        repace(sim.core[0], flow)
        return
    # The first ACK, or the first one of another path: throw the records away and build up new ones (section 4.1).
    if not same_path(state.format, state.hops, state.L, state.path, ack):
        record(state, ack)
        state.last_update = flow.sent
        return
    update = ack.end > state.last_update  # line 22
    if state.reaction == PER_ACK:
        update = True
    elif state.reaction == PER_RTT and not update:
        if not state.simulates:
            measure_inflight(sim.ports, state, ack, flow.line_rate)
            record(state, ack)
        return
    U = measure_inflight(sim.ports, state, ack, flow.line_rate)
    if state.per_link and state.simulates:
        state.R = compute_registers(state, state.min_rate, flow.line_rate, state.rate_ai, update)
        if update:
            state.Rc = state.R
    elif state.per_link:
        state.W = compute_registers(state, state.least_window, state.initial_window, state.w_ai, update)
        if update:
            state.Wc = state.W
    else:
        update = compute_by_ack(sim.core[0], sim.uniforms, flow, state, ack, U, update)  # lines 23, 26
    if state.simulates:
        flow.rate = state.R
        flow.window = float(int(state.initial_window * state.R / flow.line_rate))
        state.W = flow.window
        state.Wc = state.initial_window * state.Rc / flow.line_rate
    else:
        flow.window = state.W
        flow.rate = min(state.W / state.base_rtt, flow.line_rate)  # line 27
    repace(sim.core[0], flow)
    if update:
        state.last_update = flow.sent  # line 24
    record(state, ack)


@kernel
def observe(core: Any, flow: Any, state: Any, samples: Any, row: Any, f: Any) -> None:
    """Write a flow's sample in the order of `OBSERVABLES`."""
    samples[row, f, 3] = state.W
    samples[row, f, 4] = state.Wc
    samples[row, f, 5] = state.U
    samples[row, f, 6] = inflight(core, flow)
    vai_sf.observe(state, samples, row, f, 7)
