"""RoCEv2 packets as a switch holds them and as a wire carries them, and how large a NIC makes them.

A switch's MTU (9100 is SONiC's default) says nothing of them: a queue pair cuts messages into packets of its NIC's
active MTU. The first packet of an RDMA WRITE has 16 bytes more (RETH), which are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from fluidcc.errors import InputError
from fluidcc.units import SIZE, quantity

if TYPE_CHECKING:
    from fluidcc.scenario.model import Scenario

HEADERS = {"Ethernet": 14, "IPv4": 20, "UDP": 8, "BTH": 12, "ICRC": 4, "FCS": 4}
BETWEEN = {"preamble": 8, "gap": 12}  # on the wire alone
IN_BUFFER, ON_WIRE_ALONE = sum(HEADERS.values()), sum(BETWEEN.values())  # 62 and 20 bytes
MTUS = (256, 512, 1024, 2048, 4096)  # of InfiniBand's packets (IBTA, vol. 1)
UNKNOWN = (
    1024.0,
    4096.0,
)  # payloads to try where the NIC's is not known: what it is with an Ethernet MTU of 1500, 9000
_LARGEST_HEADERS = 96  # bytes that Linux takes off an Ethernet MTU for those of RoCE (iboe_get_mtu)
_LEAST, _MOST = 64.0, 65536.0


class HasMTU(Protocol):
    """A NIC's settings, of which the size of packets is read here."""

    @property
    def mtu(self) -> float | None:
        """Payload of its packets [bytes]; None if it is not known."""
        ...


def active_mtu(ethernet: float) -> float | None:
    """Return the payload of a RoCE packet with an Ethernet MTU [bytes], as Linux chooses it; None if none fits."""
    fitting = [mtu for mtu in MTUS if mtu <= ethernet - _LARGEST_HEADERS]
    return float(fitting[-1]) if fitting else None


def payloads(nic: HasMTU | None, given: object = None) -> tuple[float, ...]:
    """Payloads of packets to run [bytes]: the one that is given, else the NIC's, else those that are usual.

    Raises
    ------
    InputError
        If a given size is no packet's.
    """
    if given is not None:
        size = quantity(given, SIZE, "packet_size")
        if not _LEAST <= size <= _MOST:
            raise InputError(f"packet_size: {size:.6g} B is no packet's payload; write for example 4096")
        return (size,)
    return (nic.mtu,) if nic is not None and nic.mtu is not None else UNKNOWN


def said(sizes: Sequence[float], nic: HasMTU | None, *, given: bool = False) -> str:
    """Tell the packet sizes, and where they are from."""
    numbers = " and ".join(f"{size:g}" for size in sizes)
    known = nic is not None and nic.mtu is not None
    if given:
        source = "as given"
    elif known:
        source = "the NIC's active MTU"
    else:
        source = (
            "the NIC's active MTU is not known: give --packet-size 1024 or 4096, or ibv_devinfo's active_mtu with its "
            "settings"
        )
    return f"packets of {numbers} B of payload and {IN_BUFFER} B of headers, {ON_WIRE_ALONE} B between them ({source})"


def wire_share(payload: float) -> float:
    """Return the share of a link's rate that its packets have, preamble and gap left out."""
    return (payload + IN_BUFFER) / (payload + IN_BUFFER + ON_WIRE_ALONE)


def framed(scenario: Scenario, payload: float) -> Scenario:
    """Return a scenario whose packets have RoCEv2's headers, and whose rates are those of their bytes in a buffer."""
    share = wire_share(payload)
    return dataclasses.replace(
        scenario,
        packet_size=payload,
        header_bytes=float(IN_BUFFER),
        links=tuple(dataclasses.replace(link, rate=link.rate * share) for link in scenario.links),
        flows=tuple(
            dataclasses.replace(
                flow,
                line_rate=flow.line_rate * share,
                initial_rate=None if flow.initial_rate is None else flow.initial_rate * share,
            )
            for flow in scenario.flows
        ),
    )
