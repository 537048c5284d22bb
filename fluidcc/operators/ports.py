"""Every port and every lossless priority of a SONiC switch; those that are set alike stand together."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from fluidcc.errors import InputError
from fluidcc.operators.config_db import EXPECTED, ConfigDB
from fluidcc.operators.config_files import clip, label, listing
from fluidcc.operators.roce_queue import Choice, queues_of
from fluidcc.operators.sonic import SwitchPort, describe

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


def read_ports(path: str | os.PathLike[str], port: str | None = ALL) -> tuple[list[PortGroup], list[str]]:
    """Read the RoCE queues of ports.

    Parameters
    ----------
    path : str or path
        A SONiC ``config_db.json``.
    port : str
        Names or aliases of ports, with commas between; "all" (or None): those that are up, or all if none is.

    Returns
    -------
    groups : list of PortGroup
        Of each port its lossless queues; where it has none, its queues with a WRED profile. If no port has either, as
        switches leave the factory, the queue that is usually RoCE's.
    left_out : list of str
        Ports of "all" without such a queue, where others have one.

    Raises
    ------
    InputError
        As `fluidcc.operators.read_sonic`.
    """
    config = ConfigDB(path)
    ports = config.table("PORT")
    if not ports:
        raise InputError(f"{config.name}: table PORT lists no ports; give {EXPECTED} with at least one port")
    up = [name for name in ports if config.entry("PORT", name).get("admin_status") == "up"]
    every = port is None or port.strip() == ALL
    names = (up or list(ports)) if port is None or every else _named(config, port)
    found = {name: _roce(queues_of(config, name)) for name in names}
    left_out = [label(name) for name, queues in found.items() if not queues]
    if not every or len(left_out) == len(found):
        found = {name: queues or [Choice(name, _USUAL, 0, {}, {})] for name, queues in found.items()}
        left_out = []
    groups: dict[Any, tuple[SwitchPort, list[str]]] = {}
    for queues in found.values():
        for choice in queues:
            switch = describe(config, choice, len(up) or len(ports))
            if choice.rank == 0:
                note = f"no queue of {switch.name} has PFC or a WRED profile: queue {_USUAL} is taken, usually RoCE's"
                switch = dataclasses.replace(switch, notes=(note, *switch.notes))
            alike = dataclasses.replace(switch, name="", notes=(), ignored=())
            groups.setdefault(alike, (switch, []))[1].append(switch.name)
    return [PortGroup(tuple(members), switch) for switch, members in groups.values()], left_out


def alike(groups: Sequence[PortGroup], switch: SwitchPort) -> list[PortGroup]:
    """Of some groups those with the speed and the WRED profile of a port: what a change of its thresholds means."""
    return [each for each in groups if (each.switch.rate, each.switch.profile) == (switch.rate, switch.profile)]


def _roce(queues: list[Choice]) -> list[Choice]:
    """The lossless ones; if there are none, those with a WRED profile."""
    return [choice for choice in queues if choice.queue in choice.pfc] or queues


def _named(config: ConfigDB, port: str) -> list[str]:
    """Ports by names or aliases."""
    ports = config.table("PORT")
    aliases = {str(config.entry("PORT", name).get("alias")): name for name in ports}
    found = []
    for text in filter(None, map(str.strip, port.split(","))):
        name = text if text in ports else aliases.get(text)
        if name is None:
            raise InputError(
                f"{config.name}: table PORT has no {clip(text)}, as name or alias; its ports are {listing(list(ports))}"
            )
        if name not in found:
            found.append(name)
    if not found:
        raise InputError(f"port: {clip(port)} names none; write a name, an alias, several with commas between, or all")
    return found
