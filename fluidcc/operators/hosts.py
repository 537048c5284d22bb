"""Checks of a host against its switch's port: PFC, trust and DSCP, and sizes of packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fluidcc.operators import NicSettings, SwitchPort
from fluidcc.operators.finding import Finding
from fluidcc.operators.sonic import USUAL_DSCP

_ON_IP = 60  # bytes of IPv4, UDP, BTH, RETH and ICRC, which a switch's MTU counts with the payload


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def host(port: SwitchPort, nic: NicSettings | None) -> Iterator[Finding]:
    """Check that PFC, trust and DSCP of a host are its switch's, and that its packets pass."""
    if nic is None:
        return
    if nic.mtu is not None and port.mtu < nic.mtu + _ON_IP:
        yield Finding(
            "bad",
            "packets are larger than the switch's MTU",
            f"the NIC sends {nic.mtu:g} B of payload, {nic.mtu + _ON_IP:g} B with headers; {port.name} takes "
            f"{port.mtu:g} B: full packets are lost",
            f"set the MTU of {port.name} to {nic.mtu + _ON_IP:g} or more, such as 9100, or the NIC's lower",
        )
    qos, lossless = nic.qos, port.lossless_priorities
    if port.lossless and qos.pfc is not None and port.priority not in qos.pfc:
        wanted = ",".join(str(int(each in {*lossless})) for each in range(8))
        on = f"priority {_listed(qos.pfc)}" if qos.pfc else "no priority"
        said = f"mlnx_qos shows PFC on for {on}; the switch has it for {_listed(lossless)}"
        if {*qos.pfc} & {*lossless}:
            yield Finding("ok", "hosts use another priority", f"{said}: priority {port.priority} is for none of these")
        else:
            yield Finding(
                "bad",
                "the host's PFC is of another priority",
                f"{said}: PAUSEs stop no host",
                f"mlnx_qos -i IFACE --pfc {wanted}, on each host",
            )
    queues = dict(port.traffic.queues_of_dscp) if port.traffic is not None else {}
    if queues and qos.trust == "pcp":
        yield Finding(
            "warn",
            "the host does not trust DSCP",
            "mlnx_qos shows trust state pcp: packets without a VLAN tag have priority 0 in the NIC, whatever their "
            "DSCP, and no PAUSE of another priority stops them",
            "mlnx_qos -i IFACE --trust dscp, on each host",
        )
    right = [dscp for dscp, queue in queues.items() if queue in {port.queue, *lossless}]
    sent = [tos >> 2 for tos in qos.tos] or [USUAL_DSCP]
    pfc = qos.pfc or ()
    for dscp, priority in qos.priorities if port.lossless and qos.trust == "dscp" and pfc else ():
        if dscp in sent and queues.get(dscp) == port.queue and priority not in pfc:
            yield Finding(
                "bad",
                "the host sends RoCE by a priority without PFC",
                f"mlnx_qos maps DSCP {dscp} to priority {priority} and has PFC on for {_listed(pfc)}: no PAUSE stops "
                "what the host sends",
                f"mlnx_qos -i IFACE --dscp2prio set,{dscp},{port.priority}, on each host",
            )
    for tos in qos.tos if right else ():
        if tos >> 2 not in right:
            wanted = USUAL_DSCP if USUAL_DSCP in right else right[0]
            yield Finding(
                "bad",
                "RoCE's packets go to another queue",
                f"the host sends ToS {tos}, DSCP {tos >> 2}, which this switch puts into queue "
                f"{queues.get(tos >> 2, 0)}: RoCE's queues are fed by DSCP {_listed(sorted(right))}",
                f"cma_roce_tos -d DEVICE -t {wanted << 2 | 2} (DSCP {wanted}); traffic_class likewise, on each host",
            )
