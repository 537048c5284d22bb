"""Names of counters: those of drivers and of SAI, ours for them, and numbers as devices print them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from fluidcc.errors import InputError

PORT, ETHERNET, RDMA = "port", "ethernet", "rdma"
_LARGEST = 2**64
_MISSING = ("", "N/A", "n/a", "-")
_NUMBER = re.compile(r"((?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][+-]?\d{1,3})?)(?: ?([KMG]?)B/s)?", re.ASCII)
_UNITS = {None: 1, "": 1, "K": 10**3, "M": 10**6, "G": 10**9}  # powers of ten, as SONiC prints them

_TRAFFIC = {"sent_packets", "sent_bytes", "pauses_sent", "pauses_received"}
PORT_VALUES = {f"{way}_{what}" for way in ("received", "sent") for what in ("packets", "bytes", "errors", "drops")}
PORT_VALUES |= {"received_bytes_per_s", "sent_bytes_per_s"}
QUEUE_VALUES = _TRAFFIC | {"dropped_packets", "marked_packets", "watermark_bytes", "ingress_dropped_packets"}
QUEUE_VALUES |= {"ingress_watermark_bytes", "headroom_watermark_bytes"}
PRIORITY_VALUES = _TRAFFIC | {"received_packets", "received_bytes", "paused_s", "pausing_s", "discards"}


class Meaning(NamedTuple):
    """Meaning of a device's own counter: our name, the priority in its name, and the factor to our unit.

    One that is a fallback counts only where nothing better was read.
    """

    nic: bool
    counter: str
    queue: int | None = None
    factor: float = 1
    fallback: bool = False


class Entry(NamedTuple):
    """Value of a counter as it was read; those of one counter that have different sources add up."""

    kind: str
    device: str
    unit: str
    queue: int | None
    counter: str
    source: str
    value: float
    where: str
    fallback: bool = False


_NIC = {
    "np_cnp_sent": "cnps_sent",
    "rp_cnp_handled": "cnps_handled",
    "rp_cnp_ignored": "cnps_ignored",
    "np_ecn_marked_roce_packets": "marked_packets",
    "out_of_sequence": "out_of_sequence",
    "packet_seq_err": "sequence_errors",
    "local_ack_timeout_err": "timeouts",
    "roce_adp_retrans": "retransmissions",
    "out_of_buffer": "out_of_buffer",
    "rx_discards_phy": "received_discards",
    "tx_bytes_phy": "sent_bytes",
    "rx_bytes_phy": "received_bytes",
    "rx_crc_errors_phy": "received_errors",
    "rx_symbol_err_phy": "received_errors",
    "rx_in_range_len_errors_phy": "received_errors",
    "rx_fragments_phy": "received_errors",
    "rx_jabbers_phy": "received_errors",
}
NIC_VALUES = set(_NIC.values())
_OF_RDMA_PORT = {  # data in words of 32 bits
    "port_xmit_data": Meaning(True, "sent_bytes", None, 4, True),
    "port_rcv_data": Meaning(True, "received_bytes", None, 4, True),
    "port_rcv_errors": Meaning(True, "received_errors", None, 1, True),
}
_PRIORITY = re.compile(r"([rt]x)_prio(\d)_(packets|bytes|pause|pause_duration|discards)", re.ASCII)
_OF_PRIORITY = {
    "rx_packets": ("received_packets", 1),
    "rx_bytes": ("received_bytes", 1),
    "tx_packets": ("sent_packets", 1),
    "tx_bytes": ("sent_bytes", 1),
    "rx_pause": ("pauses_received", 1),
    "tx_pause": ("pauses_sent", 1),
    "rx_pause_duration": ("paused_s", 1e-6),  # microseconds in the driver's documentation
    "tx_pause_duration": ("pausing_s", 1e-6),
    "rx_discards": ("discards", 1),
}
_PFC = re.compile(r"SAI_PORT_STAT_PFC_(\d)_([RT]X)_PKTS", re.ASCII)
_GROUP = "SAI_INGRESS_PRIORITY_GROUP_STAT_"
_SAI = {
    f"SAI_PORT_STAT_IF_{way}_{sai}": f"{ours}_{what}"
    for way, ours in (("IN", "received"), ("OUT", "sent"))
    for sai, what in (
        *(("UCAST_PKTS", "packets"), ("NON_UCAST_PKTS", "packets")),
        *(("OCTETS", "bytes"), ("ERRORS", "errors"), ("DISCARDS", "drops")),
    )
} | {
    "RX_BPS": "received_bytes_per_s",  # of the table RATES, which has bytes
    "TX_BPS": "sent_bytes_per_s",
    "SAI_QUEUE_STAT_PACKETS": "sent_packets",
    "SAI_QUEUE_STAT_BYTES": "sent_bytes",
    "SAI_QUEUE_STAT_DROPPED_PACKETS": "dropped_packets",
    "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS": "marked_packets",
    "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES": "watermark_bytes",
    f"{_GROUP}DROPPED_PACKETS": "ingress_dropped_packets",
    f"{_GROUP}SHARED_WATERMARK_BYTES": "ingress_watermark_bytes",
    f"{_GROUP}XOFF_ROOM_WATERMARK_BYTES": "headroom_watermark_bytes",
}


def meaning_of(name: str) -> Meaning | None:
    """Return the meaning of a counter's own name; None if it is not read."""
    if name in _SAI:
        return Meaning(False, _SAI[name])
    if found := _PFC.fullmatch(name):
        return Meaning(False, "pauses_received" if found[2] == "RX" else "pauses_sent", int(found[1]))
    if (found := _PRIORITY.fullmatch(name)) and (known := _OF_PRIORITY.get(f"{found[1]}_{found[3]}")):
        return Meaning(True, known[0], int(found[2]), known[1])
    return Meaning(True, _NIC[name]) if name in _NIC else _OF_RDMA_PORT.get(name)


def is_of_queue(sai: str) -> bool:
    """Tell whether a name of SAI is of a queue or a priority group, and not of a port."""
    return sai.startswith(("SAI_QUEUE_", _GROUP))


def number(value: Any, where: str, what: str) -> float | None:
    """Read a number of a text or of JSON, with thousands separators or a unit of rate; None if it is N/A.

    Raises
    ------
    InputError
        If it is no number from 0 to 2^64.
    """
    text = value.strip() if isinstance(value, str) else str(value) if type(value) in (int, float) else "?"
    if text in _MISSING:
        return None
    found = _NUMBER.fullmatch(text) if len(text) <= 40 else None
    plain = found[1].replace(",", "") if found else "inf"
    read = (int(plain) if plain.isdigit() else float(plain)) * (_UNITS[found[2]] if found else 1)
    if read > _LARGEST:
        raise InputError(
            f"{where}: {shown(what)} is {shown(value)}; write a number from 0 to 2^64 such as 1200 or 1,200, or N/A"
        )
    return read


def shown(value: Any) -> str:
    """Show a text of a file in an error message: printable, and short."""
    if isinstance(value, (dict, list)):
        return "a nested object" if isinstance(value, dict) else "a list"
    text = str(value)[:41]
    text = text if len(text) <= 40 else text[:40] + "..."
    return text if text.isprintable() and text.strip() else ascii(text)
