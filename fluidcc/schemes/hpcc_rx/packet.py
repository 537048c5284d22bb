"""Receiver-based HPCC at packet level: Algorithm 1 where the data arrives (HPCC++, IETF slides)."""

from __future__ import annotations

from typing import Any

import fluidcc.schemes.hpcc.packet as hpcc
from fluidcc.engines.common.jit import kernel
from fluidcc.engines.packet.telemetry import same_path
from fluidcc.schemes.hpcc.packet import OBSERVABLES, ONLY, STATE, compute_wind, measure_inflight, record, shown
from fluidcc.schemes.hpcc_rx.parameters import HPCCRx

__all__ = ["BASE", "OBSERVABLES", "ONLY", "STATE", "init_state", "on_answer", "on_packet", "shown"]

BASE = "hpcc"


def init_state(parameters: HPCCRx, flow: Any, state: Any) -> None:
    """Copy HPCC's parameters, and set that the receiver runs the algorithm."""
    p = parameters
    hpcc.init_state(p, flow, state)
    state.rx, state.threshold, state.headroom = 1, p.np_threshold, p.ai_headroom if p.dynamic_ai else 0.0
    flow.notifies, flow.answer_period = 1, round(p.np_period * 1e12)


@kernel
def on_packet(core: Any, ports: Any, flow: Any, state: Any, packet: Any, flows: Any) -> Any:
    """Algorithm 1 on the telemetry of data. Whether W has changed enough to say so now.

    Line 22's "first packet sent with the new W^c" is the first that left the sender half a base RTT after the
    notification. With ``dynamic_ai`` W_AI is ours: a share of the headroom (1 - eta) W_init, divided by the flows that
    the receiver observes.
    """
    if not same_path(state.format, state.hops, state.L, state.path, packet):
        record(state, packet)
        return False
    if state.headroom > 0.0:
        state.w_ai = state.headroom * (1.0 - state.eta) * state.initial_window / max(flows, 1)
    state.fresh = packet.sent >= state.granted_at + int(state.base_rtt * 0.5e12)
    U = measure_inflight(ports, state, packet, flow.line_rate)
    state.W, _ = compute_wind(state, U, 1.0)
    record(state, packet)
    return abs(state.W - state.W_granted) > state.threshold * state.W_granted


@kernel
def on_answer(core: Any, state: Any, packet: Any) -> None:
    """Put W into a notification; it is the new W^c if it rests on packets that were sent under the last one."""
    if state.fresh:
        state.W, state.stage = compute_wind(state, state.U, 1.0)
        state.Wc = state.W
        state.granted_at = core.now
        state.fresh = 0
    state.W_granted = state.W
    packet.granted = state.W
