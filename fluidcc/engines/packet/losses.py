"""Settings for lost packets: classes and wires that lose them, timeouts, and the room that IRN needs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidcc.engines.packet.layout import GO_BACK_N, IRN, NEVER, NO_RECOVERY, PS, TRIMMING, UNLIMITED
from fluidcc.errors import InputError
from fluidcc.scenario.model import Flow, Scenario, base_rtt
from fluidcc.scenario.round_trips import largest_base_rtt, serialisation_rtt
from fluidcc.units import TIME, show

_RECOVERY = {"none": NO_RECOVERY, "gbn": GO_BACK_N, "irn": IRN, "trimming": TRIMMING}
_SPAN = 8  # bandwidth-delay products that a flow's packets may span until the first of them is acknowledged


def round_trip(scenario: Scenario, flow: Flow) -> float:
    """Round trip of a flow's packet and its ACK through empty queues [s], as packets take it."""
    return base_rtt(scenario, flow) + serialisation_rtt(scenario, flow)


def check_timeouts(scenario: Scenario) -> None:
    """Refuse timeouts that run out before an ACK can come.

    Raises
    ------
    InputError
    """
    if scenario.loss_recovery == "none":
        return
    names = (
        ("retransmission_timeout", "low_timeout") if scenario.loss_recovery == "irn" else ("retransmission_timeout",)
    )
    kinds: dict[Any, int] = {}
    for f, flow in enumerate(scenario.flows):
        path = (flow.path, flow.line_rate, flow.access_delay, flow.egress_delay, flow.target, flow.scheme.int_bytes)
        kinds.setdefault(path, f)
    for f in kinds.values():
        least = round_trip(scenario, scenario.flows[f])
        for name in names:
            if getattr(scenario, name) <= least:
                raise InputError(
                    f"{name}: {show(getattr(scenario, name), TIME)} is over before flow {f}'s first ACK can come "
                    f"({show(least, TIME)}); write for example {show(10 * least, TIME)}"
                )


def settle_losses(scenario: Scenario, core: Any) -> None:
    """Set which queues and wires lose packets, and how hosts recover them."""
    pfc, classes = scenario.pfc is not None, scenario.classes
    lossless = sum(1 << q for q, each in enumerate(classes, 1) if pfc and each.lossless)
    core.pfc = lossless
    alpha = scenario.egress_alpha
    if alpha is None and (pfc or scenario.loss_recovery != "none"):
        alpha = 1.0
    if alpha is not None and math.isfinite(scenario.buffer):
        core.lossy = sum(1 << q for q in range(1, len(classes) + 1)) & ~lossless
        core.egress_alpha = min(alpha, 1e18)  # finite, so that nothing of it is nothing
    if scenario.loss_recovery == "trimming":
        core.header_queue = 1 + len(classes)
        core.trims = sum(1 << q for q in range(1, len(classes) + 1)) & ~lossless
        if core.lossy:
            core.lossy |= 1 << core.header_queue
    core.lossy_links = any(link.loss > 0 for link in scenario.links)
    core.recovery = _RECOVERY[scenario.loss_recovery]
    core.timeout = round(scenario.retransmission_timeout * PS)
    core.low_timeout = min(core.timeout, round(scenario.low_timeout * PS))
    core.few = round(scenario.low_timeout_packets) if core.recovery == IRN else -1
    interval = scenario.nack_interval
    core.nack_interval = NEVER if interval is None else round(interval * PS)


def set_trimming(scenario: Scenario, ports: Any) -> None:
    """Set the queue above which ports trim; the default is what each port sends in the largest base RTT.

    Raises
    ------
    InputError
        If no class may lose packets.
    """
    if scenario.loss_recovery != "trimming":
        return
    if scenario.pfc is not None and all(each.lossless for each in scenario.classes):
        raise InputError(
            "loss_recovery: PFC keeps all that might be trimmed; write pfc=None (--set pfc=off), or "
            "TrafficClass(lossless=False) for classes that lose packets"
        )
    ports["trims"] = 1
    above = scenario.trim_above
    if above is None:
        ports["trim_above"] = np.ceil(ports["rate"] * largest_base_rtt(scenario))
    else:
        ports["trim_above"] = min(above, UNLIMITED)


def bitmaps_of(flows: Any) -> np.ndarray:
    """Return zeroed marks of the packets that selective recovery knows of, flow after flow; one without it."""
    return np.zeros(max(1, 2 * int(flows["room"].sum())), np.uint8)


def give_room(scenario: Scenario, flow: Flow, row: Any) -> None:
    """Set how far a flow may go before what is lost of it has come, and for how many packets it has marks."""
    row.recovery_cap, row.room = _window(scenario, flow)


def _window(scenario: Scenario, flow: Flow) -> tuple[float, int]:
    """Return a flow's own bandwidth-delay product in the unit of windows (IRN 3.2), and packets under way in it."""
    if scenario.loss_recovery not in ("irn", "trimming"):
        return math.inf, 0
    wire = scenario.wire_packet_of(flow)
    packets = flow.line_rate * round_trip(scenario, flow) / wire
    if scenario.loss_recovery == "trimming":  # payload bytes, whatever windows count
        room = math.ceil(_SPAN * packets) + round(scenario.ack_interval) + 1
        return (room - 1) * float(scenario.packet_size), room
    unit = scenario.packet_size if scenario.window_unit == "payload" else wire
    # A window lets out a packet beyond it, and at least as many as an ACK answers.
    return packets * unit, max(math.ceil(packets) + 1, round(scenario.ack_interval)) + 1
