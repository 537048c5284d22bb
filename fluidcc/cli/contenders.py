"""Schemes side by side on a fabric, with what ``--from`` and ``--set`` say of its devices."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from fluidcc.errors import InputError

if TYPE_CHECKING:
    from fluidcc.operators.devices import Devices
    from fluidcc.scenario.model import RED
    from fluidcc.workloads.fabrics.topology import Topology


@dataclasses.dataclass(frozen=True)
class Contenders:
    """Options of `Topology.scenario` by the name in results, and the devices whose settings are in them."""

    options: Mapping[str, dict[str, Any]]
    devices: Devices | None = None
    given_size: bool = False  # of packets

    def rates(self, topology: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Rates of a shape's links that a switch's file says and nobody else."""
        if self.devices is None or not self.devices.switches or os.path.exists(topology):
            return {}
        found: dict[str, Any] = {}
        if given.get("rate") is None:
            found["rate"] = self.devices.rate
        if given.get("fabric_rate") is None and given.get("oversubscription") is None:
            found["fabric_rate"] = self.devices.fabric_rate
        return found

    def words(self, topology: Topology) -> list[str]:
        """Say which settings of the files are used; nothing without files."""
        if self.devices is None:
            return []
        rates = [cable.rate for cable in topology.cables]
        return self.devices.words(rates, self.options.values(), given_size=self.given_size)


def with_sets(sets: list[str] | None, **values: str | None) -> list[str] | None:
    """Add options that have a name of their own to those of ``--set``."""
    added = [f"{name}={value}" for name, value in values.items() if value is not None]
    return [*(sets or []), *added] if added else sets


def read(sources: list[str] | None, port: str | None) -> Devices | None:
    """Read the files of ``--from``: switches in the order of their tiers, and a NIC."""
    if not sources:
        if port is not None:
            raise InputError("--port: there is no switch to read it from; write --from config_db.json beside it")
        return None
    from fluidcc.cli.request import is_switch
    from fluidcc.operators.devices import read_devices

    switches = [source for source in sources if is_switch(source)]
    nics = [source for source in sources if source not in switches]
    if len(nics) > 1:
        raise InputError(f"--from: {nics[1][:200]} is one of {len(nics)} NICs; give one at most")
    if port is not None and not switches:
        raise InputError("--port: there is no switch to read it from; write --from config_db.json beside it")
    return read_devices(switches, nics[0] if nics else None, port)


def contenders(
    names: list[str], preset: str, sets: list[str] | None, devices: Devices | None, packet_size: str | None
) -> Contenders:
    """Options of each scheme: those of its preset, then of the devices, then of --set.

    Where a NIC's MTU is not known, each scheme runs with both sizes of packets that are usual.

    Raises
    ------
    InputError
        If a name or a value makes no sense, or a NIC's settings are given and DCQCN does not run.
    """
    from fluidcc.builders.names import check_name, known_names
    from fluidcc.contract.presets import preset as preset_of

    found = {name: preset_of(name, preset).options() for name in names}
    for text in sets or []:
        name = text.partition("=")[0].strip()
        if not any(name in known_names(scheme) for scheme in names):
            check_name(names[0], name, "--set")
    marked = {name for name in names if found[name]["marking"]("100Gbps") is not None}

    def of(name: str, options: dict[str, Any]) -> dict[str, Any]:
        # Thresholds are those of the schemes that look at marks; of one that does not, if there is no other.
        return with_values(name, options, sets, marks=not marked or name in marked)

    if devices is None:
        sets = with_sets(sets, packet_size=packet_size)
        return Contenders({name: of(name, each) for name, each in found.items()})
    if devices.nic is not None and "dcqcn" not in names:
        raise InputError(f"--from: {devices.nic.source} holds DCQCN settings; write dcqcn in place of {names[0]}")
    from fluidcc.scenario.frames import payloads

    given = {text.partition("=")[0].strip(): text.partition("=")[2].strip() for text in sets or []}
    size = packet_size or given.get("packet_size")
    sizes = sorted(payloads(devices.nic, size), reverse=True)
    made = {}
    for name, each in found.items():
        for payload in sizes:
            options = devices.options(payload=payload, **each)
            if "header_bytes" in given:  # of packets that are not RoCE's
                options |= {"packet_size": options.pop("payload")}
            made[name if len(sizes) == 1 else f"{name}-{payload:g}B"] = of(name, options)
    return Contenders(made, devices, size is not None)


def with_values(
    scheme: str, chosen: Mapping[str, Any], sets: list[str] | None, *, marks: bool = True
) -> dict[str, Any]:
    """Options of `Topology.scenario`, with the values of --set that the scheme or the network has."""
    from fluidcc.builders.names import known_names, split
    from fluidcc.builders.replaced import changed_flow_control

    values: dict[str, Any] = {}
    for text in sets or []:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not value.strip():
            raise InputError(f"--set: {text[:60]!r} is no NAME=VALUE; write for example --set g=1/256")
        if name in known_names(scheme):
            values[name] = value.strip()
    parts = split(scheme, values)
    of_links = {name: parts["builder"].pop(name) for name in ("loss",) if name in parts["builder"]}
    alien = next(iter(parts["builder"]), None)
    if alien is not None:
        raise InputError(f"--set: {alien} belongs to other topologies; see fluidcc fabric --help for what a fabric has")
    change = partial(_changed, values=parts["marking"] if marks else {})
    rules = chosen["marking"]
    marking = [partial(change, rule) for rule in rules] if isinstance(rules, list) else partial(change, rules)
    return {
        **chosen,
        **parts["network"],
        **of_links,
        "pfc": changed_flow_control(chosen.get("pfc"), parts["pfc"]),
        "scheme": dataclasses.replace(chosen["scheme"], **parts["scheme"]),
        "marking": [partial(change, rule) for rule in marking]
        if isinstance(marking, list)
        else partial(change, marking),
    }


def _changed(rule: Callable[[Any], RED | None], rate: Any, values: dict[str, Any]) -> RED | None:
    """Marking of a link of some rate with values of --set, which may be all that there is to it."""
    from fluidcc.builders.replaced import changed_marking

    alone = {"kmin", "kmax", "pmax"} <= values.keys()
    try:
        found = rule(rate)
    except InputError:
        if not alone:
            raise
        found = None
    return changed_marking(found, values)
