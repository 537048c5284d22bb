"""Every port and every lossless priority of a switch; those that are set alike stand together."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from fluidcc.errors import InputError
from fluidcc.operators.config_db import EXPECTED, Assumed, ConfigDB
from fluidcc.operators.config_files import clip, label, listing
from fluidcc.operators.roce_queue import BEST_RANK, Choice, marks, queues_of
from fluidcc.operators.sonic import SwitchPort, describe
from fluidcc.units import SIZE, show

ALL = "all"
_USUAL = 3  # RoCE's queue on a switch whose configuration gives none: that of SONiC's own QoS templates


@dataclasses.dataclass(frozen=True)
class PortGroup:
    """Ports whose RoCE queue of one priority is set alike.

    Parameters
    ----------
    names : tuple of str
    switch : SwitchPort
        That of the first.
    """

    names: tuple[str, ...]
    switch: SwitchPort


def read_ports(
    path: str | os.PathLike[str], port: str | None = ALL, assumed: Assumed | None = None
) -> tuple[list[PortGroup], list[str]]:
    """Read the RoCE queues of ports.

    Parameters
    ----------
    path : str or path
        SONiC's ``config_db.json``, or another form that `fluidcc.operators.read_sonic` reads.
    port : str
        Names or aliases of ports, with commas between, of one of several ASICs as ``asic0:Ethernet0``; "all" (or
        None): those that are up, or all if none is.
    assumed : Assumed, optional
        What to take where a file is silent.

    Returns
    -------
    groups : list of PortGroup
        Of each port its lossless queues, and if none of these has a WRED profile, those that mark; where it has no
        lossless queues, its queues with a WRED profile. If no port has either, as
        switches leave the factory, the queue that is usually RoCE's.
    left_out : list of str
        Ports of "all" without such a queue, where others have one.

    Raises
    ------
    InputError
        As `fluidcc.operators.read_sonic`.
    """
    configs = ConfigDB.all(path, assumed)
    every = port is None or port.strip() == ALL
    named = [] if port is None or every else _named(configs, port)
    found: list[tuple[ConfigDB, str, list[Choice]]] = []
    for config in configs:
        if not config.table("PORT"):
            raise InputError(f"{config.name}: table PORT lists no ports; give {EXPECTED} with at least one port")
        names = config.senders if every else [name for asic, name in named if asic == config.asic]
        found += [(config, name, _roce(config, queues_of(config, name))) for name in names]
    left_out = [_shown(config, name) for config, name, queues in found if not queues]
    if not every or len(left_out) == len(found):
        found = [(config, name, queues or [Choice(name, _USUAL, 0, {}, {})]) for config, name, queues in found]
        left_out = []
    groups: dict[Any, tuple[SwitchPort, list[str]]] = {}
    for config, _, queues in found:
        for choice in queues:
            switch = describe(config, choice, len(config.senders))
            if choice.rank == 0:
                note = f"no queue of {switch.name} has PFC or a WRED profile: queue {_USUAL} is taken, usually RoCE's"
                switch = dataclasses.replace(switch, notes=(note, *switch.notes))
            alike = dataclasses.replace(switch, name="", notes=(), ignored=())
            groups.setdefault(alike, (switch, []))[1].append(switch.name)
    return [PortGroup(tuple(members), switch) for switch, members in groups.values()], left_out


def forgotten(
    configs: Sequence[ConfigDB], groups: Sequence[PortGroup], left_out: Sequence[str]
) -> dict[str, list[str]]:
    """Return ports that were left out, by the first lossless one of their speed; none where most of that speed were."""
    speeds = {_shown(each, name): each.entry("PORT", name).get("speed") for each in configs for name in each.senders}
    lossless: dict[Any, dict[str, None]] = {}  # names in order
    for group in groups:
        for name in group.names if group.switch.lossless else ():
            port = shown(group.switch.asic, name)
            lossless.setdefault(speeds.get(port), {})[port] = None
    found = {next(iter(ports)): [each for each in left_out if speeds[each] == of] for of, ports in lossless.items()}
    return {port: others for port, others in found.items() if 0 < len(others) <= len(lossless[speeds.get(port)])}


def _shown(config: ConfigDB, port: str) -> str:
    """Return a port's name, after its ASIC's where there are several."""
    return shown(config.asic if len(config.asics) > 1 else "", label(port))


def shown(asic: str, port: str) -> str:
    """Return a port's name as it is printed and may be asked for."""
    return f"{asic}:{port}" if asic else port


def alike(groups: Sequence[PortGroup], switch: SwitchPort) -> list[PortGroup]:
    """Return the groups that have a port's speed, WRED profile and thresholds: what is found for it is for these.

    Each ASIC has its own profiles: one of the same name may have other values there.
    """

    def marked(port: SwitchPort) -> tuple[Any, ...]:
        return port.rate, port.profile, port.kmin, port.kmax, port.pmax, port.shares

    return [each for each in groups if marked(each.switch) == marked(switch)]


def staying(every: Sequence[PortGroup], chosen: Sequence[PortGroup]) -> list[str]:
    """Say which ports have the speed and the thresholds of those that were chosen, and stay as they are."""
    meant = {(each.switch.asic, name) for each in chosen for name in each.names}

    def marked(port: SwitchPort) -> tuple[Any, ...]:
        return port.rate, port.kmin, port.kmax, port.pmax, port.shares, port.unread

    there = {marked(each.switch) for each in chosen if each.switch.profile}
    alike_ = [each for each in every if each.switch.profile and marked(each.switch) in there]
    names = dict.fromkeys(
        shown(each.switch.asic, name) for each in alike_ for name in each.names if (each.switch.asic, name) not in meant
    )
    if not names:
        return []
    return [f"set to the same thresholds, and left as they are: {listing([*names])}; --port names them too"]


def left_alone(groups: Sequence[PortGroup], chosen: Sequence[PortGroup]) -> list[str]:
    """Say which ports have the profile of those that were chosen, of another ASIC, with other values."""
    port = chosen[0].switch
    others = [each for each in groups if each not in chosen and each.switch.profile == port.profile]
    return [
        f"{shown(each.asic, each.name)} marks by another {each.profile} (Kmin {show(each.kmin or 0.0, SIZE)}, Kmax "
        f"{show(each.kmax or 0.0, SIZE)}), which was not compared and stays as it is; tune it by --port "
        f"{shown(each.asic, each.name)}"
        for each in (other.switch for other in others)
        if each.profile and each.asic != port.asic and each.kmin is not None
    ]


def _roce(config: ConfigDB, queues: list[Choice]) -> list[Choice]:
    """Return the lossless queues, after those that mark if none of the former does; without PFC all that have WRED."""
    lossless = [choice for choice in queues if choice.queue in choice.pfc]
    if any(choice.rank == BEST_RANK for choice in lossless):
        return lossless
    marking = [choice for choice in queues if choice not in lossless and marks(config, choice)]
    return [*marking, *lossless] if lossless else queues


def _named(configs: Sequence[ConfigDB], port: str) -> list[tuple[str, str]]:
    """Return ASIC and port of names or aliases; a name that several ASICs have is each of them."""
    found: list[tuple[str, str]] = []
    for text in filter(None, map(str.strip, port.split(","))):
        here = [each for config in configs for each in _of(config, text)]
        if not here:
            known = [_shown(config, name) for config in configs for name in config.table("PORT")]
            raise InputError(
                f"{configs[0].name}: table PORT has no {clip(text)}, as name or alias; its ports are {listing(known)}"
            )
        found += [each for each in here if each not in found]
    if not found:
        raise InputError(f"port: {clip(port)} names none; write a name, an alias, several with commas between, or all")
    return found


def _of(config: ConfigDB, text: str) -> list[tuple[str, str]]:
    """Return the port of a configuration that a name or an alias means; none if none does."""
    ports = config.table("PORT")
    aliases = {str(config.entry("PORT", name).get("alias")): name for name in ports}
    for wanted in (text, text.removeprefix(f"{config.asic}:")):
        name = wanted if wanted in ports else aliases.get(wanted)
        if name is not None:
            return [(config.asic, name)]
    return []


def unmarked(port: SwitchPort) -> str:
    """Say why a port has no thresholds of marking, and what to change in its file; empty if it has them."""
    where = f"queue {port.queue} of {port.name}"
    if port.shares is not None:
        low, high = (f"{100 * share:g}" for share in port.shares)
        return (
            f"{where} marks from {low} to {high} % of a buffer, and the file does not say how large that is; "
            "write both thresholds in bytes there"
        )
    if port.unread:
        return (
            f"{where} marks by `{port.unread}`, of which two thresholds and a whole percent could not be read; write "
            "them there"
        )
    if port.red is None or not port.ecn:
        return f"{where} does not mark (no WRED profile, or ECN off); turn ECN on there"
    return ""
