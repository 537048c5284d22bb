"""Switches and NICs of a fabric, tier by tier, as their own files set them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from fluidcc.builders.common import NETWORK
from fluidcc.errors import InputError
from fluidcc.operators import NicSettings, SwitchPort, dcqcn_of, read_nic
from fluidcc.operators.audit import worst_first
from fluidcc.operators.behaviour import buffers_of
from fluidcc.operators.config_files import listing
from fluidcc.operators.nvidia import off_in_words
from fluidcc.operators.ports import PortGroup, shown, unmarked
from fluidcc.scenario.frames import payloads, said
from fluidcc.scenario.model import RED
from fluidcc.scenario.parameters import resolve, specs
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.surface import constructor, public
from fluidcc.units import RATE, SIZE, Rate, quantity, show


@constructor()
@dataclasses.dataclass(frozen=True)
class Devices:
    """Settings of a fabric's switches and NICs.

    Parameters
    ----------
    hosts, up : tuple of PortGroup
        The kind of a ToR's ports to hosts, and the kinds of its other ports, the worst first; empty without a switch.
    above : tuple of (tuple of PortGroup)
        Kinds of ports of a switch of the tier above, of the one above that, ..., the worst first. The last serves all
        further tiers, and ``up`` if there is none.
    nic : NicSettings or None
        Of all hosts.
    """

    hosts: tuple[PortGroup, ...] = ()
    up: tuple[PortGroup, ...] = ()
    above: tuple[tuple[PortGroup, ...], ...] = ()
    nic: NicSettings | None = None

    @property
    def rate(self) -> Rate | None:
        """Rate of a ToR's ports to hosts [bytes/s]; None without a switch."""
        return Rate(self.hosts[0].switch.rate) if self.hosts else None

    @property
    def fabric_rate(self) -> Rate | None:
        """The highest rate of a ToR's other ports [bytes/s]; None without a switch."""
        return Rate(max(group.switch.rate for group in self.up)) if self.up else None

    @property
    def payloads(self) -> tuple[float, ...]:
        """Payloads of packets [bytes]: the NIC's, or those that are usual."""
        return payloads(self.nic)

    @property
    def _places(self) -> list[tuple[str, tuple[PortGroup, ...]]]:
        """Kinds of links, in the order of `Topology.scenario`, and the kinds of ports that they leave from."""
        if not self.hosts:
            return []
        tiers = [(f"links of tier {k + 2}", tier) for k, tier in enumerate(self.above)]
        return [("links to hosts", self.hosts), ("ToRs' links up", self.up), *tiers]

    @property
    def _buffered(self) -> SwitchPort | None:
        """The port whose switch has the smallest buffer that is known."""
        ports = [kinds[0].switch for _, kinds in self._places if kinds[0].switch.buffer_size is not None]
        return min(ports, key=lambda port: port.buffer_size or 0.0) if ports else None

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
            If the payload is no packet's.

        Examples
        --------
        >>> from fluidcc.operators.devices import read_devices
        >>> found = read_devices(["examples/leaf-100g/config_db.json"], "examples/leaf-100g/nic.txt")
        >>> sorted(found.options(scheme=fc.DCQCN()))
        ['buffer', 'marking', 'payload', 'pfc', 'scheme']
        """
        found: dict[str, Any] = {**others, "scheme": scheme}
        found["payload"] = max(self.payloads) if payload is None else payloads(None, payload)[0]
        if self.nic is not None and isinstance(scheme, DCQCN):
            found["scheme"] = dcqcn_of(self.nic)[0]
        rule = others.get("marking")
        if self.hosts and not (callable(rule) and rule(self.rate) is None):  # or the scheme looks at no marks
            found["marking"] = [partial(_marking, kinds) for _, kinds in self._places]
        port = self._buffered
        return found if port is None else found | buffers_of(port, others.get("pfc") if port.pauses else None)

    @public()
    def words(
        self,
        links: Iterable[tuple[int, float]],
        options: Iterable[Mapping[str, Any]],
        given: Collection[str] = (),
    ) -> list[str]:
        """Say which settings of the files are used.

        Parameters
        ----------
        links : iterable of (int, float)
            Places and rates [bytes/s] of the fabric's links, as of `Topology.places`.
        options : iterable of mapping
            As of `options`, of each scheme.
        given : collection of str
            Names of values that are a user's.

        Returns
        -------
        list of str
            A line for each kind of link, and lines for buffers, NIC and packets.
        """
        each, found = list(options), []
        rules: list[Any] = next((one["marking"] for one in each if isinstance(one.get("marking"), list)), [])
        places = self._places if rules else []
        for place, rate in sorted(set(links)) if places else []:
            at = min(place, len(places) - 1)
            name, kinds = places[at]
            name = f"links of tier {place}" if place > at > 0 else name
            found.append(f"{name}, {show(rate, RATE)}: {_told(kinds, rate, rules[at](rate))}")
        for buffer in {one.get("buffer") for one in each if self.hosts} - {None}:
            pfc = any(one.get("pfc") is not None for one in each)
            assumed = "" if self._buffered is not None or "buffer" in given else " (assumed: no file says)"
            size = show(quantity(buffer, SIZE), SIZE)
            found.append(f"each switch shares {size} of buffer, with{'' if pfc else 'out'} PFC{assumed}")
        if self.nic is not None:
            mine = [name for name in specs(DCQCN()) if name in given]
            but = f" but {', '.join(mine)}" if mine else ""
            found.append(self.nic.assumed or f"{self.nic.source}: all of DCQCN's settings{but}")
            off = off_in_words(self.nic, self.hosts[0].switch.priority if self.hosts else None)
            found += [off] if off else []
        sizes = sorted({payloads(None, one["payload"])[0] for one in each if "payload" in one}, reverse=True)
        return [*found, said(sizes, self.nic, given="packet_size" in given)] if sizes else found


def _nearest(kinds: Sequence[PortGroup], rate: float) -> PortGroup:
    """The worst of the kinds of ports whose rate is that of a link, or the nearest."""
    return min(kinds, key=lambda group: max(group.switch.rate / rate, rate / group.switch.rate))


def _marking(kinds: Sequence[PortGroup], rate: Any) -> RED:
    """Marking of a link of some rate, as the switch's ports are set."""
    port = _nearest(kinds, float(rate)).switch
    why, red = unmarked(port), port.red
    if why or red is None:
        raise InputError(f"{port.source}: {why}, or give --set kmin=... --set kmax=... --set pmax=...")
    return red


def _told(kinds: Sequence[PortGroup], rate: float, red: RED) -> str:
    """Say whose thresholds a link has, or those that replace them."""
    group, red = _nearest(kinds, rate), resolve(red)
    port = group.switch
    source = f"{port.source}, queue {port.queue} of {port.name}"
    if group.names[1:]:
        source += f" and {len(group.names) - 1} like it"
    if port.rate != rate:
        source += f", of {show(port.rate, RATE)}, the nearest rate"
    if port.assumed_rate:
        source += f", taken as {show(port.rate, RATE)}: the file does not say"
    if port.red != red:
        source += ", changed"
    return f"Kmin {show(red.kmin, SIZE)}, Kmax {show(red.kmax, SIZE)}, Pmax {100 * red.pmax:g} % ({source})"


def simulated(devices: Devices, links: Iterable[tuple[int, float]]) -> list[tuple[tuple[PortGroup, ...], list[str]]]:
    """Return of each switch's file the kinds of ports that a fabric's links stand for, and what is said of the others.

    Parameters
    ----------
    devices : Devices
    links : iterable of (int, float)
        As of `Devices.words`.

    Returns
    -------
    list of (tuple of PortGroup, list of str)
        The kinds that mark and have the speed of a kind that is nearest to some link's.
    """
    places = devices._places
    rates: list[set[float]] = [set() for _ in places]
    for place, rate in set(links) if places else ():
        at = min(place, len(places) - 1)
        rates[at].add(float(_nearest(places[at][1], rate).switch.rate))
    # The ToR's file has the first two places.
    files = [(0, 1), *((at,) for at in range(2, len(places)))] if places else []
    found = []
    for file in files:
        kinds = dict.fromkeys(group for at in file for group in places[at][1])
        used = {rate for at in file for rate in rates[at]}
        marking = [group for group in kinds if group.switch.red is not None and group.switch.ecn]
        chosen = tuple(group for group in marking if float(group.switch.rate) in used)
        stay = [shown(group.switch.asic, name) for group in marking if group not in chosen for name in group.names]
        said = [f"no link of the fabric has the speed of {listing(stay)}: left as they are"] if stay else []
        found.append((chosen, said))
    return found


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
        One of the ToR's ports to hosts; by default the kind with the most ports, as leaves have more of them than
        links up.

    Returns
    -------
    Devices

    Raises
    ------
    InputError
        If a file cannot be read or understood.
    """
    paths = [switches] if isinstance(switches, (str, os.PathLike)) else list(switches)
    settings = None if nic is None else read_nic(nic)
    if not paths:
        return Devices(nic=settings)
    kinds = worst_first(paths[0], nic)
    hosts = worst_first(paths[0], nic, port)[0] if port is not None else max(kinds, key=lambda one: len(one.names))
    mine = {(hosts.switch.asic, name) for name in hosts.names}
    if port is not None:  # and those that are set like it
        mine |= {(one.switch.asic, name) for one in kinds for name in one.names if hosts.names[0] in one.names}
    others = [one for one in kinds if not mine & {(one.switch.asic, name) for name in one.names}]
    above = tuple(_same_queue(worst_first(path, nic), hosts) for path in paths[1:])
    return Devices((hosts,), _same_queue(others, hosts) or (hosts,), above, settings)


def _same_queue(kinds: Sequence[PortGroup], hosts: PortGroup) -> tuple[PortGroup, ...]:
    """The kinds of the queue that leads to hosts, as there is one class of traffic; all if there are none."""
    return tuple([one for one in kinds if one.switch.queue == hosts.switch.queue] or kinds)
