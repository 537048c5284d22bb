"""Which scheme's rule applies to a flow: a plain chain on the scheme's number, so that the compiled loop can be cached.

A scheme's packet side is ``schemes/<name>/packet.py`` with ``STATE``, ``OBSERVABLES``, ``fill`` and the rules
``begin``, ``acknowledged``, ``notified``, ``expired``, ``sent`` and ``observe``, as far as it has them.
Adding one is a line in `MODULES`, a field of `Senders` and a branch in each rule that it has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fluidcc.engines.packet.jit import inlined, kernel
from fluidcc.engines.packet.layout import records
from fluidcc.schemes.acc import packet as acc
from fluidcc.schemes.dcqcn import packet as dcqcn
from fluidcc.schemes.dctcp import packet as dctcp
from fluidcc.schemes.hpcc import packet as hpcc
from fluidcc.schemes.hpcc_rx import packet as hpcc_rx
from fluidcc.schemes.none import packet as none
from fluidcc.schemes.swift import packet as swift
from fluidcc.schemes.timely import packet as timely

MODULES = {
    "dcqcn": dcqcn,
    "hpcc": hpcc,
    "dctcp": dctcp,
    "timely": timely,
    "swift": swift,
    "acc": acc,
    "none": none,
}
# Schemes that run another's rules with other parameters.
ALIASES = {"hpcc-multiq": "hpcc", "hpcc-rx": "hpcc"}
NUMBER = {name: number for number, name in enumerate(MODULES)}
_DCQCN, _HPCC, _DCTCP, _TIMELY, _SWIFT, _ACC, _NONE = range(7)


class Senders(NamedTuple):
    """A table of states for each scheme; a flow's `row` is in its own scheme's."""

    dcqcn: Any
    hpcc: Any
    dctcp: Any
    timely: Any
    swift: Any
    acc: Any
    none: Any


def home(name: str) -> str:
    """Name of the table in which a scheme's flows are."""
    return ALIASES.get(name, name)


def tables(names: list[str]) -> Senders:
    """Empty tables with a row for each flow of a scheme."""
    return Senders(
        **{
            name: records(module.STATE, max(1, [home(each) for each in names].count(name)))
            for name, module in MODULES.items()
        }
    )


@kernel
def begin(sim: Any, f: Any) -> None:
    """A flow starts."""
    flow = sim.flows[f]
    if flow.scheme == _DCQCN:
        dcqcn.begin(sim, f, flow, sim.senders.dcqcn[flow.row])
    elif flow.scheme == _HPCC:
        hpcc.begin(flow, sim.senders.hpcc[flow.row])
    elif flow.scheme == _DCTCP:
        dctcp.begin(sim.core[0], flow, sim.senders.dctcp[flow.row])
    elif flow.scheme == _TIMELY:
        timely.begin(flow, sim.senders.timely[flow.row])
    elif flow.scheme == _SWIFT:
        swift.begin(sim.core[0], flow, sim.senders.swift[flow.row])
    elif flow.scheme == _ACC:
        acc.begin(flow, sim.senders.acc[flow.row])
    else:
        none.begin(sim, f, flow, sim.senders.none[flow.row])


@inlined
def acknowledged(sim: Any, f: Any, k: Any) -> None:
    """An ACK, packet ``k``, reaches its sender."""
    flow = sim.flows[f]
    if flow.scheme == _HPCC:
        hpcc.acknowledged(sim, f, flow, sim.senders.hpcc[flow.row], sim.packets[k])
    elif flow.scheme == _DCQCN:
        dcqcn.acknowledged(sim, f, flow, sim.senders.dcqcn[flow.row], sim.packets[k])
    elif flow.scheme == _DCTCP:
        dctcp.acknowledged(sim.core[0], flow, sim.senders.dctcp[flow.row], sim.packets[k])
    elif flow.scheme == _TIMELY:
        timely.acknowledged(sim.core[0], flow, sim.senders.timely[flow.row], sim.packets[k])
    elif flow.scheme == _SWIFT:
        swift.acknowledged(sim, flow, sim.senders.swift[flow.row], sim.packets[k])
    elif flow.scheme == _ACC:
        acc.acknowledged(sim, f, flow, sim.senders.acc[flow.row], sim.packets[k])


@kernel
def arrived(sim: Any, f: Any, k: Any, nic: Any) -> Any:
    """Data, packet ``k``, reaches a receiver that decides when it answers; whether it should do so now."""
    flow = sim.flows[f]
    me = sim.senders.hpcc[flow.row]
    return hpcc_rx.arrived(sim.core[0], sim.ports, flow, me, sim.packets[k], sim.ports[nic].incoming)


@kernel
def granting(sim: Any, f: Any, k: Any) -> None:
    """Such a receiver answers by packet ``k``."""
    hpcc_rx.granting(sim.core[0], sim.senders.hpcc[sim.flows[f].row], sim.packets[k])


@kernel
def notified(sim: Any, f: Any, k: Any) -> None:
    """A CNP, packet ``k``, reaches its sender."""
    flow = sim.flows[f]
    if flow.scheme == _DCQCN:
        dcqcn.notified(sim, f, flow, sim.senders.dcqcn[flow.row], sim.packets[k])


@kernel
def expired(sim: Any, f: Any, which: Any) -> None:
    """A flow's timer runs out."""
    flow = sim.flows[f]
    if flow.scheme == _DCQCN:
        dcqcn.expired(sim, f, flow, sim.senders.dcqcn[flow.row], which)
    elif flow.scheme == _ACC:
        acc.expired(sim, f, flow, sim.senders.acc[flow.row], which)
    elif flow.scheme == _NONE:
        none.expired(sim, f, flow, sim.senders.none[flow.row])


@inlined
def sent(sim: Any, f: Any, size: Any) -> None:
    """A flow's packet leaves."""
    flow = sim.flows[f]
    if flow.scheme == _DCQCN:
        dcqcn.sent(flow, sim.senders.dcqcn[flow.row], size)


@kernel
def observe(sim: Any, f: Any, row: Any) -> None:
    """Write what the scheme shows of a flow into row ``row`` of the samples, from column 3 on."""
    flow = sim.flows[f]
    if flow.scheme == _DCQCN:
        dcqcn.observe(sim.senders.dcqcn[flow.row], sim.flow_samples, row, f)
    elif flow.scheme == _HPCC:
        hpcc.observe(sim.core[0], flow, sim.senders.hpcc[flow.row], sim.flow_samples, row, f)
    elif flow.scheme == _DCTCP:
        dctcp.observe(sim.core[0], flow, sim.senders.dctcp[flow.row], sim.flow_samples, row, f)
    elif flow.scheme == _TIMELY:
        timely.observe(sim.senders.timely[flow.row], sim.flow_samples, row, f)
    elif flow.scheme == _SWIFT:
        swift.observe(sim.core[0], flow, sim.senders.swift[flow.row], sim.flow_samples, row, f)
    elif flow.scheme == _ACC:
        acc.observe(sim.core[0], flow, sim.senders.acc[flow.row], sim.flow_samples, row, f)
