"""Checks of a lossless priority: traffic in it, headroom for its cable, a watchdog over its PAUSEs, its hosts.

Headroom holds what may still come after a PAUSE is sent: what is on the cable, there and back, at the port's rate; a
packet that is being sent at either end; what leaves the other end before it obeys; and the chip's own delay. SONiC's
published sum for NVIDIA's switches (sonic-swss, `cfgmgr/buffer_headroom_mellanox.lua`) is followed: light at 198 000
km/s in the cable, the response times of IEEE 802.3 31B.3.7, 0.8 KiB in the chip, and 1 KiB of lossless MTU. Its low end
takes full packets; its high end packets of 64 B, each of which fills a cell of 144 B.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from fluidcc.operators import NicSettings, SwitchPort
from fluidcc.operators.finding import Change, Finding, set_fields
from fluidcc.operators.port_fields import ERRDISABLE, least_time
from fluidcc.operators.roce_queue import PFC_MAP, TrafficClass
from fluidcc.operators.sonic import USUAL_DSCP
from fluidcc.operators.switches import SONIC
from fluidcc.units import RATE, SIZE, Rate, show

# -- headroom behind a cable, as a range: vendors call such sums first estimates ---------------------------


_LIGHT = 1.98e8  # m/s
_CHIP, _LOSSLESS_MTU = 0.8 * 1024, 1024  # bytes
_CELL, _LEAST_PACKET = 144, 64  # bytes
_GBPS = Rate(1e9 / 8)
QUANTUM = 512 // 8  # bytes of a pause quantum
# Pause quanta within which a port obeys, by rate [Gb/s].
QUANTA = {10: 67, 25: 80, 40: 118, 50: 147, 100: 394, 200: 453, 400: 905, 800: 905}


def needed(rate: float, cable: float, mtu: float) -> tuple[float, float]:
    """Least and largest estimate of the headroom, SONiC's ``xoff`` [bytes].

    Parameters
    ----------
    rate : float
        Of the port [bytes/s].
    cable : float
        Its length [m].
    mtu : float
        Largest packet of the port [bytes].
    """
    speed = rate / _GBPS
    nearest = min(QUANTA, key=lambda known: abs(known - speed))
    on_the_way = mtu + 2 * cable / _LIGHT * rate + _CHIP + QUANTA[nearest] * QUANTUM
    return _LOSSLESS_MTU + on_the_way, _LOSSLESS_MTU + on_the_way * _CELL / _LEAST_PACKET


# -- checks of the port ------------------------------------------------------------------------------------


STOPS_ANOTHER = "PAUSE stops another queue"
_KIB = 1024
_USUAL = 200  # ms until a queue that stands paused is dealt with, and until it is as before


def traffic(port: SwitchPort, nic: NicSettings | None) -> Iterator[Finding]:
    """Check that the port's maps lead packets to the queue, PFC watches their group, and CNPs go elsewhere."""
    found = port.traffic
    if found is not None and found.lacking:
        maps = ", ".join(f"{table}|{name}" for table, name in found.lacking)
        yield Finding(
            "warn",
            "maps are named that the file lacks",
            f"PORT_QOS_MAP of {port.name} names {maps}: numbers are taken to lead to themselves, and which DSCPs go to "
            f"queue {port.queue} is not checked as far as these say it",
            f"add {maps}, as config qos reload does, or hand over the switch's whole configuration",
        )
    if found is None:
        return
    if found.dscps is None:
        if not found.lacking:
            yield Finding(
                "warn",
                "DSCPs are not checked",
                f"the file does not say which DSCPs go to queue {port.queue} of {port.name}: no map of DSCPs holds "
                "there",
                f"set dscp_to_tc_map of PORT_QOS_MAP|{port.name}, by which RoCE's DSCP goes to queue {port.queue}",
            )
        return
    if not found.dscps:
        if port.marked_in_vain:  # which is said
            return
        yield Finding(
            "bad",
            "no DSCP leads to this queue",
            f"DSCP_TO_TC_MAP|{found.dscp_map} and the port's other maps put no packet into queue {port.queue}: all "
            f"go to queue {_numbers(found.other_queues)}",
            *_led(port, found),
        )
        return
    led = f"DSCP {_numbers(found.dscps)} go to queue {port.queue}"
    led += f", counted in priority group {_numbers(found.groups)}" if found.groups else ""
    elsewhere = [group for group in found.groups if group != found.wanted_group]
    stray = [each for each in found.pauses if each[0] != each[1] and _concerns(port.queue, each, found)]
    if stray and (port.lossless or port.priority in port.lossless_priorities):
        said = "; ".join(
            f"a PAUSE of priority {priority} stops queue {stopped}, but what it is sent for goes to queue "
            f"{_numbers(queues)}"
            for priority, stopped, queues in stray
        )
        wanted = {str(priority): queues[0] for priority, _, queues in found.pauses}
        yield Finding(
            "bad",
            STOPS_ANOTHER,
            f"{said}: its packets are sent on, and lost where they were to wait",
            f"set {_pairs(wanted)} in {PFC_MAP}|{found.pfc_queue_map}",
            set_fields(PFC_MAP, found.pfc_queue_map, **wanted),
        )
    elif port.lossless and elsewhere:
        yield Finding(
            "bad",
            "PFC watches another priority group",
            f"{led}; PFC of priority {port.priority} watches group {found.wanted_group}: packets are lost, not paused",
            *_watched(port, found),
        )
    else:
        yield Finding("ok", "DSCPs lead to this queue", led)
    cnp = nic.given.get("cnp_dscp") if nic is not None else None
    queues = dict(found.queues_of_dscp)
    if cnp is not None and queues.get(int(cnp)) == port.queue:
        yield Finding(
            "warn",
            "CNPs wait behind data",
            f"CNP_DSCP = {int(cnp)} goes to queue {port.queue} as well: feedback is late when it is needed most",
            f"map DSCP {int(cnp)} to a traffic class of its own in DSCP_TO_TC_MAP|{found.dscp_map}",
        )


def _concerns(queue: int, pause: tuple[int, int, tuple[int, ...]], found: TrafficClass) -> bool:
    """Tell whether a stray PAUSE is to be named of a queue: of its own traffic, or of that which no PAUSE stops."""
    stopped = {at for _, at, _ in found.pauses}
    return queue in pause[2] or (queue == pause[1] and not stopped & {*pause[2]})


def _watched(port: SwitchPort, found: TrafficClass) -> tuple[str, tuple[Change, ...]]:
    """Return how PFC comes to watch the traffic's group: in the map whose numbers do not lead to themselves."""
    if found.queue_map and port.priority in found.led_away:
        return _to_queue(port, found)
    if found.pfc_group_map and found.groups == (port.priority,):
        table, name, wanted = (
            "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
            found.pfc_group_map,
            {str(port.priority): port.priority},
        )
    else:
        table, name = "TC_TO_PRIORITY_GROUP_MAP", found.group_map
        wanted = {str(each): found.wanted_group for each in found.classes}
    return f"set {_pairs(wanted)} in {table}|{name}", set_fields(table, name, **wanted) if name else ()


def _led(port: SwitchPort, found: TrafficClass) -> tuple[str, tuple[Change, ...]]:
    """Return how some DSCP comes to a queue that none leads to."""
    if found.queue_map and port.priority in found.led_away:
        return _to_queue(port, found)
    to = found.classes[0] if found.classes else port.queue
    return f"map RoCE's DSCP to traffic class {to} in DSCP_TO_TC_MAP|{found.dscp_map}", ()


def _to_queue(port: SwitchPort, found: TrafficClass) -> tuple[str, tuple[Change, ...]]:
    """Return how the traffic that PFC watches comes to its queue, and what else is there to queues of its own."""
    others = {str(each): each for each in found.classes if each != port.queue}
    wanted = {**others, **{str(each): port.queue for each in found.led_away}}
    return f"set {_pairs(wanted)} in TC_TO_QUEUE_MAP|{found.queue_map}", set_fields(
        "TC_TO_QUEUE_MAP", found.queue_map, **wanted
    )


def _pairs(wanted: Mapping[str, int]) -> str:
    return " and ".join(f"{each} to {to}" for each, to in wanted.items())


def _numbers(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values))


def headroom(port: SwitchPort) -> Iterator[Finding]:
    """Check whether what still arrives after a PAUSE has room."""
    if not port.lossless:
        return
    if port.lossy_group:
        yield _lossy(port)
        return
    if port.headroom is None:
        if port.lossless_profile and not port.dynamic_buffers:
            yield Finding(
                "bad",
                "the priority group has no buffer",
                f"PFC is on for priority {port.priority}, and other groups of {port.name} have a lossless profile, but "
                f"no BUFFER_PG row is of group {port.priority}: it has no headroom, and packets are lost",
                f"add BUFFER_PG|{port.name}|{port.priority} with profile {port.lossless_profile}",
                set_fields("BUFFER_PG", f"{port.name}|{port.priority}", profile=port.lossless_profile),
            )
        if port.dynamic_buffers:
            yield Finding(
                "ok",
                "the switch computes its headroom",
                "buffer_model is dynamic: headroom follows cable length, speed and MTU, and is not in the file",
            )
        return
    if not port.cable:
        said = "the file gives no cable length for" if port.cable is None else "CABLE_LENGTH has 0 m, no cable, for"
        yield Finding(
            "warn",
            "headroom not checked",
            f"{said} {port.name}",
            f'add "{port.name}": "5m", or what it is, to CABLE_LENGTH',
        )
        return
    low, high = needed(port.rate, port.cable, port.mtu)
    text = (
        f"{port.cable:g} m at {show(port.rate, RATE)} with packets of up to {port.mtu:g} B need {show(low, SIZE)} "
        f"after a PAUSE, and up to {show(high, SIZE)} if packets are small and each takes a cell (sonic-swss, "
        f"buffer_headroom_mellanox.lua, a first estimate); xoff is {show(port.headroom, SIZE)}"
    )
    groups = max(1, len(port.lossless_priorities))
    own = (port.reserved or 0.0) >= port.headroom  # reserved for each group: nothing is taken from the pool's
    if port.pool_headroom and port.pool_headroom < groups * port.headroom and not own:
        every = math.ceil(port.ports * groups * port.headroom)
        yield Finding(
            "bad",
            "the shared headroom is too small",
            f"the pool's xoff, {show(port.pool_headroom, SIZE)}, is the headroom of all {port.ports} ports together; "
            f"{groups} lossless group{'s' if groups > 1 else ''} of one port alone may need "
            f"{show(groups * port.headroom, SIZE)}: packets are lost while PAUSE is on its way",
            f"raise xoff of the BUFFER_POOL of BUFFER_PROFILE|{port.buffer_profile}: {every} holds that of all ports",
        )
    if port.headroom >= low:
        yield Finding("ok", "headroom fits the cable", text)
        return
    yield Finding(
        "bad",
        "headroom is too small for the cable",
        f"{text}: packets are lost while PAUSE is on its way",
        f"raise xoff of BUFFER_PROFILE|{port.buffer_profile} to {_KIB * math.ceil(low / _KIB)} or more, or correct the "
        f"length of {port.name} in CABLE_LENGTH",
        set_fields("BUFFER_PROFILE", port.buffer_profile, xoff=_KIB * math.ceil(low / _KIB)),
    )


def _lossy(port: SwitchPort) -> Finding:
    """Return that a priority with PFC has a lossy group, and a profile for it."""
    entry = f"BUFFER_PG|{port.group_key or f'{port.name}|{port.priority}'}"
    other = port.lossless_profile
    first, _, last = port.group_key.rpartition("|")[2].partition("-")
    if first == "0" and int(last or 0) >= port.priority and 0 not in port.lossless_priorities:
        rows = ", ".join(f"BUFFER_PG|{port.name}|{each}" for each in port.lossless_priorities)
        return Finding(
            "bad",
            "the priority group is lossy",
            f"PFC is on for priority {port.priority}, but {entry}, which is of lossy groups too, has "
            f"{port.buffer_profile}, without xoff and xon: the group never pauses a sender",
            f"split {entry}: {rows} with {other or 'a lossless BUFFER_PROFILE'}, the rest as it is",
        )
    return Finding(
        "bad",
        "the priority group is lossy",
        f"PFC is on for priority {port.priority}, but {entry} has {port.buffer_profile}, without xoff and xon: the "
        "group never pauses a sender, and drops what its buffer does not hold",
        f"set profile of {entry} to {other}"
        if other
        else f"add a BUFFER_PROFILE with xoff, xon and dynamic_th, and name it in {entry}",
        set_fields("BUFFER_PG", port.group_key, profile=other) if other and port.group_key else (),
    )


def watchdog(port: SwitchPort) -> Iterator[Finding]:
    """Check that a storm of PAUSEs would be noticed, and ended."""
    if not port.lossless:
        return
    if port.asymmetric:
        yield Finding(
            "ok",
            "PFC is asymmetric",
            f"pfc_asym is on: {port.name} obeys PAUSE of all eight priorities and sends it for "
            f"{_numbers(port.lossless_priorities)} alone; a queue of another priority may be stopped, and no watchdog "
            "looks at it",
        )
    if port.watchdog_unsaid:
        return
    if port.watchdog is None:
        time = least_time(port.watchdog_poll, _USUAL)
        yield Finding(
            "warn",
            "no PFC watchdog",
            f"one NIC that never stops sending PAUSE stops {port.name}, and from there what feeds it",
            f"add PFC_WD|{port.name} with action drop, detection_time {time} and restoration_time {time}",
            set_fields("PFC_WD", port.name, action="drop", detection_time=time, restoration_time=time),
        )
        return
    faults, dog = port.watchdog.faults, port.watchdog
    if dog.big_red:
        yield Finding(
            "bad",
            "the big red switch is on",
            "BIG_RED_SWITCH in PFC_WD|GLOBAL treats every lossless queue as one in a storm: its packets are dropped or "
            "sent without heeding PAUSEs, all the time",
            "set BIG_RED_SWITCH disable in PFC_WD|GLOBAL",
            set_fields("PFC_WD", "GLOBAL", BIG_RED_SWITCH="disable"),
        )
    if port.unwatched:
        listed = ",".join(map(str, sorted({*(port.watched_priorities or ()), *port.lossless_priorities})))
        yield Finding(
            "warn",
            "the PFC watchdog does not watch this priority",
            f"pfcwd_sw_enable of {port.name} leaves out priority {port.priority}: one NIC that never stops sending "
            "PAUSE of it stops the queue",
            f"set pfcwd_sw_enable of PORT_QOS_MAP|{port.name} to {listed}",
            set_fields("PORT_QOS_MAP", port.name, pfcwd_sw_enable=listed),
        )
        return
    if unlisted := port.watched_priorities is None and dog.sonic:
        listed = _numbers(port.lossless_priorities).replace(" ", "")
        yield Finding(
            "warn",
            "the PFC watchdog may watch nothing",
            "no port has pfcwd_sw_enable: SONiC since 202205, and late builds of 202012, then watch no priority of "
            f"{port.name}, whatever PFC_WD says (sonic-swss#2171)",
            f"set pfcwd_sw_enable of PORT_QOS_MAP|{port.name} to {listed}",
            set_fields("PORT_QOS_MAP", port.name, pfcwd_sw_enable=listed),
        )
    if faults:
        often = (dog.poll is not None and dog.poll > _USUAL) or any("POLL_INTERVAL" in fault for fault in faults)
        yield Finding(
            "warn",
            "the switch does not take the PFC watchdog",
            f"PFC_WD|{port.name}: {'; '.join(faults)}: nothing is watched",
            f"set action drop, detection_time {_USUAL} and restoration_time {_USUAL} in PFC_WD|{port.name}"
            + (f", and POLL_INTERVAL {_USUAL} in PFC_WD|GLOBAL" if often else ""),
            set_fields("PFC_WD", port.name, action="drop", detection_time=_USUAL, restoration_time=_USUAL)
            + (set_fields("PFC_WD", "GLOBAL", POLL_INTERVAL=_USUAL) if often else ()),
        )
    elif dog.action == "alert":
        yield Finding(
            "warn",
            "the PFC watchdog only reports",
            f"action alert writes a line to the log, and {port.name} stays stopped",
            f"set action drop in PFC_WD|{port.name}",
            set_fields("PFC_WD", port.name, action="drop"),
        )
    elif dog.action == ERRDISABLE:
        yield Finding(
            "warn",
            "the PFC watchdog takes the port down",
            f"action errdisable: one NIC that never stops sending PAUSE takes {port.name} down with all its traffic, "
            "until the port is recovered",
            "set action drop",
        )
    elif not unlisted:
        done = "drops what waits" if dog.action == "drop" else "sends on without heeding PAUSEs, which may lose packets"
        after = f"{dog.detection_time} ms" if dog.detection_time else "its own time"
        yield Finding("ok", "PFC watchdog", f"after {after} of PAUSE the switch {done}")


# -- checks of a host against its switch's port: PFC, trust and DSCP, and sizes of packets -----------------


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


# -- PFC and ECN that are on for different queues of a port, of which RoCE's traffic has one ---------------


def marked_in_vain(port: SwitchPort) -> Iterator[Finding]:
    """Say that ECN is on for a queue that is not RoCE's."""
    if port.marked_in_vain:
        there = f": wred_profile {port.profile} in QUEUE|{port.name}|{port.usual_queue}"
        yield Finding(
            "warn",
            "ECN is on for another queue than PFC",
            f"queue {port.queue} of {port.name} marks and is not lossless; RoCE's usual DSCP {USUAL_DSCP} goes to "
            f"queue {port.usual_queue}, which is lossless and has no WRED profile",
            f"give queue {port.usual_queue} the marking of queue {port.queue}"
            + (there if port.system == SONIC.system else ""),
        )


def paused_in_vain(port: SwitchPort) -> Iterator[Finding]:
    """Say that PFC is on for a queue that is not RoCE's."""
    yield Finding(
        "warn",
        "PFC is on for another queue than ECN",
        f"queue {port.queue} of {port.name} is lossless and has no WRED profile; RoCE's usual DSCP {USUAL_DSCP} goes "
        f"to queue {port.usual_queue}, which marks and is not lossless",
        f"take priority {port.priority} out of pfc_enable of PORT_QOS_MAP|{port.name}, unless other traffic needs it",
    )
