"""Judgement of counters by the settings of the devices that counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from fluidcc.operators import marks
from fluidcc.operators.counters.model import Counters
from fluidcc.operators.finding import Finding
from fluidcc.operators.ports import PortGroup
from fluidcc.operators.symptoms import HIGHER, Nics, Queue, symptoms
from fluidcc.scenario.frames import IN_BUFFER
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


def judge(
    counters: Counters,
    groups: Sequence[PortGroup],
    scheme: DCQCN,
    payloads: Sequence[float],
    *,
    rtt: float,
    flows: int,
    links: int,
    seconds: float | None = None,
) -> Counted:
    """Compare counters with what the settings make.

    Parameters
    ----------
    counters : Counters
    groups : sequence of PortGroup
        Ports of the switch's file, by their settings.
    scheme : DCQCN
        The NICs' settings.
    payloads : sequence of float
        Sizes that packets may have [bytes].
    rtt : float
        Round trip of an empty network [s].
    flows : int
    links : int
        That a packet and its ACK cross.
    seconds : float, optional
        Time in which was counted, where the counters do not say.

    Returns
    -------
    Counted
    """
    seconds = counters.seconds if counters.seconds is not None else seconds
    switches = {port.switch for port in counters.ports}
    queues = [
        Queue(port.label if len(switches) > 1 else port.name, group.switch, port)
        for port in counters.ports
        for group in groups
        if port.name in group.names
    ]
    known = {queue.counted.name for queue in queues}
    nics = Nics(
        counters.nics,
        tuple(sorted({group.switch.priority for group in groups})),
        max(scheme.cnp_interval, scheme.nic_cnp_interval),
        max(group.switch.rate for group in groups),
        min(payloads) + IN_BUFFER,
    )
    found = symptoms(queues, nics, seconds)
    alike: dict[Any, list[Queue]] = {}
    for queue in queues:
        if queue.port.ecn and queue.port.red is not None:
            alike.setdefault((queue.port.rate, queue.port.profile), []).append(queue)
    if not any(each.severity == "bad" and each.what != HIGHER for each in found):  # a broken fabric marks otherwise
        for members in alike.values():
            closer = list(marks.thresholds_in_force(members, scheme, max(payloads), rtt / links))
            if any(each.what == HIGHER for each in closer):
                found = [each for each in found if each.what != HIGHER]
            found += closer
    for members in alike.values():
        found += marks.flows_told(members, scheme, max(payloads), flows)
    strangers = tuple(port.label for port in counters.ports if port.name not in known)
    names = tuple(dict.fromkeys(queue.where for queue in queues)), tuple(nic.name for nic in counters.nics)
    return Counted(found, *names, (*strangers, *counters.left_out), seconds)


__all__ = ["Counted", "judge"]
