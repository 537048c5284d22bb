"""Counters of switches and NICs under names that do not depend on who printed them.

First those names, for what drivers and SAI call each, and numbers as devices print them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

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


# -- counters of ports and NICs ----------------------------------------------------------------------------


Values = Mapping[str, float]
Queues = Mapping[int, Values]


@dataclass(frozen=True)
class PortCounters:
    """Counters of a switch's port; one that was not read is absent.

    Attributes
    ----------
    switch, name : str
    values : mapping
        Of ``received_packets``, ``received_bytes``, ``received_errors``, ``received_drops`` and the same with ``sent``,
        ``received_bytes_per_s``, ``sent_bytes_per_s``.
    queues : mapping
        By number of the queue, which is the priority: ``sent_packets``, ``sent_bytes``, ``dropped_packets``,
        ``marked_packets`` and ``watermark_bytes`` of the egress queue, of two readings also
        ``watermark_before_bytes``; ``pauses_sent`` and ``pauses_received``;
        ``ingress_dropped_packets``, ``ingress_watermark_bytes`` and ``headroom_watermark_bytes`` of the priority group.
        Multicast queues are left out.
    """

    switch: str
    name: str
    values: Values = field(default_factory=dict)
    queues: Queues = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Names of switch and port."""
        return f"{self.switch} {self.name}"


@dataclass(frozen=True)
class NicCounters:
    """Counters of a NIC; one that was not read is absent.

    Attributes
    ----------
    name : str
        Name of the host; with the interface if the host has several.
    values : mapping
        Of ``cnps_sent``, ``cnps_handled``, ``cnps_ignored``, ``marked_packets``, ``out_of_sequence``,
        ``sequence_errors``, ``timeouts``, ``retransmissions``, ``received_discards``, ``out_of_buffer``,
        ``sent_bytes``, ``received_bytes``; and ``received_errors``, the sum of ``rx_crc_errors_phy``,
        ``rx_symbol_err_phy``, ``rx_in_range_len_errors_phy``, ``rx_fragments_phy`` and ``rx_jabbers_phy``: frames
        that arrived damaged, not those of a wrong MTU. Without ethtool, ``received_errors`` and the bytes are those of
        the RDMA port.
    priorities : mapping
        By priority: ``sent_packets``, ``sent_bytes``, ``received_packets``, ``received_bytes``, ``pauses_sent``,
        ``pauses_received``, ``paused_s`` (time in which the NIC was told not to send), ``pausing_s``, ``discards``.
    """

    name: str
    values: Values = field(default_factory=dict)
    priorities: Queues = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name, as of a port."""
        return self.name


Device = TypeVar("Device", PortCounters, NicCounters)


@dataclass(frozen=True)
class Counters:
    """Counters of ports and NICs.

    Attributes
    ----------
    ports : tuple of PortCounters
    nics : tuple of NicCounters
    seconds : float or None
        Time in which they counted [s]; None if it is unknown.
    left_out : tuple of str
        Ports and NICs that only one of two readings has, and files of a folder that have no counters.
    """

    ports: tuple[PortCounters, ...] = ()
    nics: tuple[NicCounters, ...] = ()
    seconds: float | None = None
    left_out: tuple[str, ...] = ()

    def since(self, before: Counters) -> Counters:
        """Return the growth of every counter that both readings have, with the later rates and both watermarks.

        Devices of which a counter fell, as they were cleared or began anew, are left out.

        Parameters
        ----------
        before : Counters
            The earlier reading.

        Returns
        -------
        Counters

        Raises
        ------
        InputError
            If a reading is of rates, the two share no port and no NIC, a counter fell in all that they share, or
            none grew.
        """
        if self.seconds is not None or before.seconds is not None:
            raise InputError("counters per second need no earlier reading; give two readings of totals, or rates alone")
        every = dict.fromkeys(each.label for each in (*before.ports, *before.nics, *self.ports, *self.nics))
        fell: list[str] = []
        ports = _grown(self.ports, before.ports, "queues", fell)
        nics = _grown(self.nics, before.nics, "priorities", fell)
        shared = {each.label for each in (*ports, *nics)}
        if fell and not shared:
            raise InputError(fell[0])
        if every and not shared:
            raise InputError(
                f"no port and no NIC is in both readings ({', '.join(map(shown, [*every][:8]))}); read the same twice"
            )
        groups = [each.values for each in (*ports, *nics)]
        groups += [each for port in ports for each in port.queues.values()]
        groups += [each for nic in nics for each in nic.priorities.values()]
        if not any(value for values in groups for name, value in values.items() if is_sum(name)):
            raise InputError("no counter grew between both readings; give two that were taken while traffic ran")
        gone = [name for name in every if name not in shared]
        return Counters(ports, nics, None, tuple(dict.fromkeys([*gone, *before.left_out, *self.left_out])))

    def times(self, seconds: float) -> Counters:
        """Return the totals of rates over some time [s]."""

        def total(values: Values) -> Values:
            return {name: value * seconds if is_sum(name) else value for name, value in values.items()}

        def totals(queues: Queues) -> Queues:
            return {queue: total(values) for queue, values in queues.items()}

        ports = tuple(replace(each, values=total(each.values), queues=totals(each.queues)) for each in self.ports)
        nics = tuple(replace(each, values=total(each.values), priorities=totals(each.priorities)) for each in self.nics)
        return replace(self, ports=ports, nics=nics, seconds=seconds)


def is_sum(counter: str) -> bool:
    """Tell whether a counter only grows, unlike a watermark or a rate."""
    return "watermark" not in counter and not counter.endswith("_per_s")


class _FellError(Exception):
    """A counter is smaller than before."""


def _grown(late: Iterable[Device], early: Iterable[Device], queues: str, fell: list[str]) -> tuple[Device, ...]:
    """Return the growth of devices in both readings; what is to be said of those with a counter that fell is added."""
    known = {each.label: each for each in early}
    found = []
    for each in late:
        if each.label in known:
            was = known[each.label]
            try:
                grown: dict[str, Any] = {"values": _growth(each.values, was.values, "")}
                grown[queues] = _each(getattr(each, queues), getattr(was, queues))
            except _FellError as error:
                fell.append(
                    f"{shown(each.label)}{error}, so it was cleared or wrapped, or the readings are in the wrong "
                    "order; take both readings again"
                )
                continue
            found.append(replace(each, **grown))
    return tuple(found)


def _each(late: Queues, early: Queues) -> Queues:
    return {
        queue: _growth(values, early.get(queue, {}), f" queue {queue}")
        for queue, values in late.items()
        if queue in early or not all(map(is_sum, values))
    }


def _growth(late: Values, early: Values, queue: str) -> Values:
    for name, value in late.items():
        if is_sum(name) and value < early.get(name, 0):
            raise _FellError(f"{queue}: {name} fell from {early[name]:.15g} to {value:.15g}")
    grown = {
        name: value - early[name] if is_sum(name) else value
        for name, value in late.items()
        if name in early or not is_sum(name)
    }
    if "watermark_bytes" in late and "watermark_bytes" in early:
        grown["watermark_before_bytes"] = early["watermark_bytes"]
    return grown
