"""Receiver-based HPCC at packet level: Algorithm 1 where the data arrives (HPCC++, IETF slides)."""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.packet.telemetry import same_path
from fluidcc.schemes.hpcc import packet as hpcc
from fluidcc.schemes.hpcc.packet import OBSERVABLES, ONLY, STATE, compute_wind, measure_inflight, record, shown
from fluidcc.schemes.hpcc_rx.parameters import HPCCRx

__all__ = ["BASE", "OBSERVABLES", "ONLY", "STATE", "fill", "on_answer", "on_packet", "shown"]

BASE = "hpcc"


def fill(parameters: HPCCRx, flow: Any, me: Any) -> None:
    """Copy HPCC's parameters, and set that the receiver runs the algorithm."""
    p = parameters
    hpcc.fill(p, flow, me)
    me.rx, me.threshold, me.headroom = 1, p.np_threshold, p.ai_headroom if p.dynamic_ai else 0.0
    flow.notifies, flow.answer_period = 1, round(p.np_period * 1e12)


@kernel
def on_packet(core: Any, ports: Any, flow: Any, me: Any, packet: Any, flows: Any) -> Any:
    """Algorithm 1 on the telemetry of data. Whether W has changed enough to say so now.

    Line 22's "first packet sent with the new W^c" is the first that left the sender half a base RTT after the
    notification. With ``dynamic_ai`` W_AI is ours: a share of the headroom (1 - eta) W_init, divided by the flows that
    the receiver observes.
    """
    if not same_path(me.format, me.hops, me.L, me.path, packet):
        record(me, packet)
        return False
    if me.headroom > 0.0:
        me.w_ai = me.headroom * (1.0 - me.eta) * me.w_init / max(flows, 1)
    me.fresh = packet.sent >= me.granted_at + int(me.base_rtt * 0.5e12)
    U = measure_inflight(ports, me, packet, flow.line_rate)
    me.W, _ = compute_wind(me, U, 1.0)
    record(me, packet)
    return abs(me.W - me.W_granted) > me.threshold * me.W_granted


@kernel
def on_answer(core: Any, me: Any, packet: Any) -> None:
    """Put W into a notification; it is the new W^c if it rests on packets that were sent under the last one."""
    if me.fresh:
        me.W, me.stage = compute_wind(me, me.U, 1.0)
        me.Wc = me.W
        me.granted_at = core.now
        me.fresh = 0
    me.W_granted = me.W
    packet.granted = me.W
