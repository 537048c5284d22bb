"""Judgement of counters by the settings of the devices that counted."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from fluidcc.errors import InputError
from fluidcc.operators import marks
from fluidcc.operators.config_db import ConfigDB
from fluidcc.operators.config_files import clip
from fluidcc.operators.counters.model import Counters
from fluidcc.operators.finding import Finding
from fluidcc.operators.ports import PortGroup, alike
from fluidcc.operators.symptoms import Nics, Queue, symptoms
from fluidcc.scenario.frames import IN_BUFFER, wire_share
from fluidcc.schemes.dcqcn import DCQCN


@dataclasses.dataclass(frozen=True)
class Counted:
    """Result of comparing counters with settings.

    Parameters
    ----------
    findings : list of Finding
        Causes before what follows from them.
    ports, nics : tuple of str
        Ports and NICs that were read and judged.
    left_out : tuple of str
        Ports that the switch's file does not have, or that were read once only.
    seconds : float or None
        Time in which was counted.
    """

    findings: list[Finding]
    ports: tuple[str, ...]
    nics: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    seconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return keys as in the CLI."""
        return {**dataclasses.asdict(self), "findings": [dataclasses.asdict(each) for each in self.findings]}


@dataclasses.dataclass(frozen=True)
class Conditions:
    """Conditions under which was counted.

    Parameters
    ----------
    scheme : DCQCN
        The NICs' settings.
    payloads : sequence of float
        Sizes that packets may have [bytes].
    delay : float
        Of each link [s].
    flows : int
    seconds : float or None
        Time in which was counted.
    workload : str or None
        Traffic of the hosts; None: not known.
    """

    scheme: DCQCN
    payloads: Sequence[float]
    delay: float
    flows: int = 8
    seconds: float | None = None
    workload: str | None = None


def judge(counters: Counters, groups: Sequence[PortGroup], configs: Sequence[ConfigDB], given: Conditions) -> Counted:
    """Compare counters with what the settings make.

    Parameters
    ----------
    counters : Counters
    groups : sequence of PortGroup
        Ports of the switch's file, by their settings.
    configs : sequence of ConfigDB
        The file, with the ports' aliases and what is behind them.
    given : Conditions

    Returns
    -------
    Counted

    Raises
    ------
    InputError
        If nothing of what was counted is in the file.
    """
    queues, strangers = queues_of(counters, groups, configs)
    if not queues and not counters.nics:
        raise _strange(configs, strangers)
    nics = Nics(
        counters.nics,
        tuple(sorted({group.switch.priority for group in groups})),
        max(given.scheme.cnp_interval, given.scheme.nic_cnp_interval),
        max(group.switch.rate for group in groups),
        min(given.payloads) + IN_BUFFER,
    )
    found = symptoms(queues, nics, given.seconds)
    same: dict[Any, list[Queue]] = {}
    for queue in queues:
        if queue.port.ecn and queue.port.red is not None:
            same.setdefault((queue.port.rate, queue.port.profile), []).append(queue)
    of = given.scheme, max(given.payloads)
    broken = any(each.severity == "bad" for each in found)  # marks are others then
    slowest = min((queue.port.rate for queue in queues), default=0.0)  # faster ones lead to no hosts
    for (rate, _), members in same.items():
        if given.workload is not None and not broken and rate == slowest:
            found += marks.thresholds_in_force(members, *of, given.delay, given.workload, given.seconds)
        found += marks.flows_told(members, *of, given.flows, given.seconds)
    return Counted(
        found,
        tuple(dict.fromkeys(queue.where for queue in queues)),
        tuple(nic.name for nic in counters.nics),
        (*strangers, *counters.left_out),
        given.seconds,
    )


def queues_of(
    counters: Counters, groups: Sequence[PortGroup], configs: Sequence[ConfigDB]
) -> tuple[list[Queue], tuple[str, ...]]:
    """Return the queues that counted of some ports of a switch's file, and the ports that are none of these."""
    names, behind, host = _of_file(configs)
    switches = {port.switch for port in counters.ports}
    ours = {host} if host in switches else switches  # another switch has another file
    queues, judged = [], set()
    for port in sorted(counters.ports, key=lambda each: (each.switch, natural(each.name))):
        name = names.get(port.name, port.name)
        where = " ".join([*([port.switch] if len(ours) > 1 else []), name + behind.get(name, "")])
        for group in groups:
            if port.switch in ours and name in group.names:
                queues.append(Queue(where, group.switch, port))
                judged.add(port.label)
    return queues, tuple(port.label for port in counters.ports if port.label not in judged)


def _strange(configs: Sequence[ConfigDB], strangers: Sequence[str]) -> InputError:
    return InputError(
        f"counters: no port of {configs[0].name} is among those that counted ({', '.join(strangers[:4])}); give "
        "counters of this switch, of ports that are audited"
    )


def shares_of(
    counters: Counters,
    groups: Sequence[PortGroup],
    configs: Sequence[ConfigDB],
    payload: float,
    seconds: float | None = None,
    workload: str | None = None,
) -> dict[str, Any]:
    """Return what `fluidcc.studies.Shares` takes: counts of the ports that are set like the first, and of all NICs.

    Raises
    ------
    InputError
        If none of these ports counted.
    """
    queues, strangers = queues_of(counters, alike(groups, groups[0].switch), configs)
    if not queues:
        raise _strange(configs, strangers)
    queues = [queue for queue in queues if queue.get("sent_packets") is not None]
    ports = marks.counted(queues)
    pairs = [[nic.values.get(name) for name in ("marked_packets", "cnps_sent")] for nic in counters.nics]
    nics = [(marked, cnps) for marked, cnps in pairs if marked is not None and cnps is not None]
    loads = [load for queue in queues if (load := marks.load_of(queue, seconds)) is not None]
    return {
        "sent": sum(port.sent for port in ports) if ports else None,
        "marked": sum(port.marked for port in ports) if ports else None,
        "marked_received": sum(marked for marked, _ in nics) if nics else None,
        "cnps": sum(cnps for _, cnps in nics) if nics else None,
        "load": sum(loads) / len(loads) / wire_share(payload) if loads else None,
        "workload": workload,
        "hosts": marks.hosts_of(queues),
    }


def _of_file(configs: Sequence[ConfigDB]) -> tuple[dict[str, str], dict[str, str], str]:
    """Return ports by their aliases, what each one's description says is behind it, and the switch's name."""
    names, behind = {}, {}
    for config in configs:
        for name in config.table("PORT"):
            fields = config.entry("PORT", name)
            names[str(fields.get("alias", name))] = name
            if fields.get("description"):
                behind[name] = f" ({clip(fields['description']).strip(chr(39))})"
    metadata = configs[0].table("DEVICE_METADATA", needed=False).get("localhost")
    return names, behind, str(metadata.get("hostname", "")) if isinstance(metadata, dict) else ""


def natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names with numbers as one counts."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name, flags=re.ASCII)]


__all__ = ["Conditions", "Counted", "judge", "queues_of", "shares_of"]
