"""Counters of switches and NICs under names that do not depend on who printed them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from fluidcc.errors import InputError
from fluidcc.operators.counters.names import shown

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
        ``marked_packets`` and ``watermark_bytes`` of the egress queue; ``pauses_sent`` and ``pauses_received``;
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
        Ports and NICs that only one of two readings has.
    """

    ports: tuple[PortCounters, ...] = ()
    nics: tuple[NicCounters, ...] = ()
    seconds: float | None = None
    left_out: tuple[str, ...] = ()

    def since(self, before: Counters) -> Counters:
        """Return the growth of every counter that both readings have, with the later watermarks and rates.

        A watermark that is as it was may be older than the first reading, and is left out: clear them in between.

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
            If a counter is smaller than before, a reading is of rates, or the two share no port and no NIC.
        """
        if self.seconds is not None or before.seconds is not None:
            raise InputError("counters per second need no earlier reading; give two readings of totals, or rates alone")
        ports = [
            replace(
                late, values=_growth(late, late.values, early.values), queues=_each(late, late.queues, early.queues)
            )
            for late, early in _pairs(self.ports, before.ports)
        ]
        nics = [
            replace(
                late,
                values=_growth(late, late.values, early.values),
                priorities=_each(late, late.priorities, early.priorities),
            )
            for late, early in _pairs(self.nics, before.nics)
        ]
        shared = {each.label for each in (*ports, *nics)}
        every = dict.fromkeys(each.label for each in (*before.ports, *before.nics, *self.ports, *self.nics))
        if every and not shared:
            raise InputError(
                f"no port and no NIC is in both readings ({', '.join(map(shown, [*every][:8]))}); read the same twice"
            )
        return Counters(tuple(ports), tuple(nics), None, tuple(name for name in every if name not in shared))


def is_sum(counter: str) -> bool:
    """Tell whether a counter only grows, unlike a watermark or a rate."""
    return not counter.endswith(("watermark_bytes", "_per_s"))


def _pairs(late: Iterable[Device], early: Iterable[Device]) -> list[tuple[Device, Device]]:
    known = {each.label: each for each in early}
    return [(each, known[each.label]) for each in late if each.label in known]


def _each(device: PortCounters | NicCounters, late: Queues, early: Queues) -> Queues:
    return {
        queue: _growth(device, values, early.get(queue, {}), f" queue {queue}")
        for queue, values in late.items()
        if queue in early or not all(map(is_sum, values))
    }


def _growth(device: PortCounters | NicCounters, late: Values, early: Values, queue: str = "") -> Values:
    for name, value in late.items():
        if is_sum(name) and value < early.get(name, 0):
            raise InputError(
                f"{shown(device.label)}{queue}: {name} fell from {early[name]:.15g} to {value:.15g}, so it was cleared "
                "or wrapped, or the readings are in the wrong order; take both readings again"
            )
    return {
        name: value - early[name] if is_sum(name) else value
        for name, value in late.items()
        if (name in early if is_sum(name) else not _stale(name, value, early))
    }


def _stale(name: str, value: float, early: Values) -> bool:
    """Tell whether a watermark may be older than the first reading, as it was no other then."""
    return name.endswith("watermark_bytes") and value > 0 and value == early.get(name)
