"""Switches and NICs of a fabric, tier by tier, as their own files set them."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from fluidcc.builders.common import NETWORK
from fluidcc.errors import InputError
from fluidcc.operators import NicSettings, SwitchPort, dcqcn_of, read_nic
from fluidcc.operators.audit import worst_first
from fluidcc.operators.behaviour import buffers_of
from fluidcc.operators.ports import PortGroup
from fluidcc.scenario.frames import payloads, said
from fluidcc.scenario.model import RED
from fluidcc.scenario.parameters import resolve
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.surface import constructor, public
from fluidcc.units import RATE, SIZE, Rate, quantity, show


@constructor()
@dataclasses.dataclass(frozen=True)
class Devices:
    """Settings of a fabric's switches and NICs.

    Parameters
    ----------
    switches : tuple of (tuple of PortGroup)
        Kinds of ports of a ToR, then of a switch of the tier above, ...; the last serves all tiers above it. Of each
        the worst first.
    nic : NicSettings or None
        Of all hosts.
    """

    switches: tuple[tuple[PortGroup, ...], ...]
    nic: NicSettings | None = None

    @property
    def rate(self) -> Rate | None:
        """Rate of the ToR's worst port, which hosts have [bytes/s]; None without a switch."""
        return Rate(self.switches[0][0].switch.rate) if self.switches else None

    @property
    def fabric_rate(self) -> Rate | None:
        """The highest rate of a port of a ToR, which links between switches have [bytes/s]; None without a switch."""
        return Rate(max(group.switch.rate for group in self.switches[0])) if self.switches else None

    @property
    def payloads(self) -> tuple[float, ...]:
        """Payloads of packets [bytes]: the NIC's, or those that are usual."""
        return payloads(self.nic)

    @public(passes_on=["marking", *NETWORK])
    def options(self, *, scheme: Any, payload: Any = None, **others: Any) -> dict[str, Any]:
        """Options of a scheme on a fabric of these devices, as `fluidcc.fabric` takes them in place of a name.

        Parameters
        ----------
        scheme : scheme's parameters
            Those of DCQCN are replaced by the NIC's.
        payload : quantity
            Of packets [bytes]; the NIC's, or the largest that is usual, if not given.
        **others
            Further options of `Topology.scenario`; the files' settings go before them.

        Returns
        -------
        dict
            ``scheme``, ``payload``, and as far as switches give them ``marking``, ``buffer`` and ``pfc``: those of the
            switch with the smallest buffer serve all.

        Raises
        ------
        InputError
            If a ToR's port or a link above does not mark, and the scheme needs marks.

        Examples
        --------
        >>> from fluidcc.operators.devices import read_devices
        >>> found = read_devices(["examples/leaf-100g/config_db.json"], "examples/leaf-100g/nic.txt")
        >>> sorted(found.options(scheme=fc.DCQCN()))
        ['buffer', 'marking', 'payload', 'pfc', 'scheme']
        """
        found: dict[str, Any] = {**others, "scheme": scheme, "payload": payload or max(self.payloads)}
        if self.nic is not None and isinstance(scheme, DCQCN):
            found["scheme"] = dcqcn_of(self.nic)[0]
        if not self.switches:
            return found
        if others.get("marking") is None or others["marking"]("100Gbps") is not None:
            found["marking"] = [partial(_marking, tier) for tier in self.switches]
        of_tiers = [buffers_of(tier[0].switch, others.get("pfc")) for tier in self.switches]
        return found | min(of_tiers, key=lambda one: one.get("buffer", math.inf))

    @public()
    def words(
        self, rates: Iterable[float], options: Iterable[Mapping[str, Any]], *, given_size: bool = False
    ) -> list[str]:
        """Say which settings of the files are used.

        Parameters
        ----------
        rates : iterable of float
            Of the fabric's links [bytes/s].
        options : iterable of mapping
            As of `options`, of each scheme.
        given_size : bool
            Whether the size of packets is a user's, not the NIC's.

        Returns
        -------
        list of str
            A line for each file, and one for the packets.
        """
        each = list(options)
        links = sorted({float(rate) for rate in rates})
        rules: list[Any] = next((one["marking"] for one in each if isinstance(one["marking"], list)), [])
        found = []
        for k, (tier, rule) in enumerate(zip(self.switches, rules, strict=False)):
            told = "; ".join(f"links of {show(rate, RATE)} have {_told(tier, rate, rule(rate))}" for rate in links)
            above = " and above" if k + 1 == len(self.switches) else ""
            found.append(f"{tier[0].switch.source}, tier {k + 1}{above}: {told}")
        for buffer in {one.get("buffer") for one in each if self.switches} - {None}:
            pfc = any(one.get("pfc") is not None for one in each)
            size, known = quantity(buffer, SIZE), any(tier[0].switch.buffer_size is not None for tier in self.switches)
            assumed = "" if known else " (assumed: no file says)"
            found.append(f"each switch shares {show(size, SIZE)} of buffer, with{'' if pfc else 'out'} PFC{assumed}")
        if self.nic is not None:
            found.append(self.nic.assumed or f"{self.nic.source}: all of DCQCN's settings")
        sizes = sorted({payloads(None, one["payload"])[0] for one in each if "payload" in one}, reverse=True)
        return [*found, said(sizes, self.nic, given=given_size)] if sizes else found


def _nearest(tier: Sequence[PortGroup], rate: float) -> SwitchPort:
    """The worst of a switch's ports whose rate is that of a link, or the nearest."""
    return min((group.switch for group in tier), key=lambda port: max(port.rate / rate, rate / port.rate))


def _marking(tier: Sequence[PortGroup], rate: Any) -> RED:
    """Marking of a link of some rate, as the switch's ports are set."""
    port = _nearest(tier, float(rate))
    if port.red is None or not port.ecn:
        raise InputError(
            f"{port.source}: queue {port.queue} of {port.name} does not mark (no WRED profile, or ECN off); "
            "turn ECN on there, or give --set kmin=... --set kmax=... --set pmax=..."
        )
    return port.red


def _told(tier: Sequence[PortGroup], rate: float, red: RED) -> str:
    """Say whose thresholds a link has, or those that replace them."""
    port, red = _nearest(tier, rate), resolve(red)
    source = f"queue {port.queue} of {port.name}"
    if port.rate != rate:
        source += f", of {show(port.rate, RATE)}, the nearest rate"
    if port.red != red:
        source += ", changed"
    return f"Kmin {show(red.kmin, SIZE)}, Kmax {show(red.kmax, SIZE)}, Pmax {100 * red.pmax:g} % ({source})"


@public()
def read_devices(
    switches: Sequence[str | os.PathLike[str]], nic: str | os.PathLike[str] | None = None, port: str | None = None
) -> Devices:
    """Read the settings of a fabric's switches and NICs.

    Parameters
    ----------
    switches : sequence of path
        Of a ToR, then of a switch of the tier above, ..., as `fluidcc.operators.read_sonic` reads them.
    nic : path, optional
        As of `fluidcc.operators.read_nic`.
    port : str, optional
        The ToR's port to hosts; by default the worst of all.

    Returns
    -------
    Devices

    Raises
    ------
    InputError
        If a file cannot be read or understood.
    """
    tiers = [tuple(worst_first(path, nic, port if k == 0 else None)) for k, path in enumerate(switches)]
    return Devices(tuple(tiers), None if nic is None else read_nic(nic))
