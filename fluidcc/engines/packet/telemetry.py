"""In-band telemetry: the fields of INT headers, and what a sender computes from two stamps of one port.

Stamps in memory hold whole counters. Here they are cut to a header's fields and subtracted as a sender does, modulo the
fields: that is right as long as less than a field's range lies between the two. A port's speed is an enum in both
headers, which says it exactly.
"""

from __future__ import annotations

from typing import Any

from fluidcc.engines.common.jit import kernel
from fluidcc.engines.packet.layout import PORT_ID

EXACT, QUANTISED, IFA = range(3)
FORMATS = ("exact", "quantised", "ifa")

SWITCH_IDS = 1 << 12  # HPCC 4.1

# HPCC, Fig. 7: txBytes in 128 B (20 bits), qLen in 80 B (17 bits), TS in ns (24 bits); all but TS times `int_multi`.
_TX_UNIT, _TX_MASK, _QUEUE_UNIT, _QUEUE_MOST, _TS_MASK = 128, (1 << 20) - 1, 80, (1 << 17) - 1, (1 << 24) - 1
# IFA (HPCC++ slides; widths as in switch software for I-D kumar-ippm-ifa): txBytes of 32 bits, rxTimestamp of 20 bits
# of seconds and 32 of ns, and a residence time in ns: their sum is when the packet left. The queue's unit and width are
# ours.
_IFA_TX_MASK, _IFA_CLOCK, _IFA_QUEUE_UNIT, _IFA_QUEUE_MOST = (1 << 32) - 1, 10**9 << 20, 80, (1 << 24) - 1


@kernel
def bytes_between(form: Any, multi: Any, new: Any, old: Any) -> Any:
    """Difference of two counters of bytes."""
    if form == QUANTISED:
        unit = _TX_UNIT * multi
        return ((new // unit - old // unit) & _TX_MASK) * unit
    if form == IFA:
        return (new - old) & _IFA_TX_MASK
    return new - old


@kernel
def seconds_between(form: Any, new: Any, old: Any) -> Any:
    """Difference of two times of emission [ps], in seconds."""
    if form == QUANTISED:
        return ((new // 1000 - old // 1000) & _TS_MASK) * 1e-9
    if form == IFA:
        return (new // 1000 - old // 1000) % _IFA_CLOCK * 1e-9
    return (new - old) * 1e-12


@kernel
def queue_read(form: Any, multi: Any, queue: Any) -> Any:
    """Return a queue [bytes] as a header reports it."""
    if form == QUANTISED:
        unit = _QUEUE_UNIT * multi
        return min(queue // unit, _QUEUE_MOST) * unit
    if form == IFA:
        return min(queue // _IFA_QUEUE_UNIT, _IFA_QUEUE_MOST) * _IFA_QUEUE_UNIT
    return queue


@kernel
def same_path(form: Any, hops: Any, stamps: Any, path: Any, packet: Any) -> Any:
    """Check whether a packet's telemetry is of the path of recorded stamps.

    HPCC's header has a count of hops and the XOR of the switches' ids (section 4.1: pathID). IFA has deviceID and
    egressPort of each hop, which together are the port.
    """
    if hops != packet.hops:
        return False
    if form == QUANTISED:
        return path == packet.path
    for i in range(hops):  # noqa: SIM110
        if stamps[i, PORT_ID] != packet.telemetry[i, PORT_ID]:
            return False
    return True
