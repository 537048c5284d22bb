"""Counters of switches and NICs under names that do not depend on who printed them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

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
