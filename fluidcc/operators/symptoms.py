"""Faults that counters show by themselves: what cannot be, or is not, with the settings of the files.

Each check compares counts with each other, or with a bound that holds whatever the traffic is; what is rare among
packets says nothing, as some of it is always there. `fluidcc.operators.counted` has what needs a model of the traffic.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence

from fluidcc.operators.counters.model import NicCounters, PortCounters
from fluidcc.operators.finding import Finding
from fluidcc.operators.lossless import needed
from fluidcc.operators.sonic import SwitchPort
from fluidcc.operators.thresholds import highest_share, ramp_bound
from fluidcc.units import SIZE, show

STORM = "a port is paused without end"
SLOW = "a receiver pauses the switch"
NEIGHBOUR = "a neighbour pauses the switch"
PAUSED = "PFC stops senders for long"
NOBODY = "packets are lost and nobody is paused"
HEADROOM = "packets are lost in spite of PAUSE"
INGRESS = "packets are lost before they are queued"
EGRESS = "packets of a lossless queue are dropped at the egress"
DISCARDS = "a NIC drops what it receives"
UNMARKED = "a long queue and no marks"
HIGHER = "the queues are those of higher thresholds"
SOONER = "more marks than the queue can make"
ERASED = "marks do not reach the NICs"
PRIORITY = "a host sends by another priority"
EMPTY = "RoCE's queues carried nothing"
IGNORES = "a NIC ignores CNPs"
SILENT = "a NIC answers no marks"
RARE = "CNPs are rarer than the NIC's settings make them"
LOST = "CNPs are lost, or ignored"
WIRE = "packets are lost on a wire"

_FEW = 100  # counts below which their absence proves nothing
_SMALL = 1086.0  # bytes of a small full packet
_SENT = 10_000  # packets of a queue below which its marks prove nothing
_RARELY = 1e-6  # share of packets below which losses and gaps are not reported
_PAUSES, _OFTEN = 10, 1e-5  # PAUSEs, and their share of packets, below which they are not,
_MANY = 1000  # and where the packets were not read
_FRAME = 65535 * 512 / 8  # bytes that a port could have sent while one PAUSE frame stops it, at most
_HALF, _STANDS, _LONG = 0.5, 0.9, 0.1  # shares of the time: stopped by frames, pausing without end, paused for long
_IDLE = 0.1  # share of what others send, below which a paused port stands still
_COMPARABLE = 0.5  # of what others send, from which a host's priorities are compared with theirs
_SURE = 4.0  # standard deviations of a count
_CLOSED = 0.02  # by which bytes sent and received may differ where all NICs are there
_MISSING = 0.1  # share of CNPs
_NAMED = 4


@dataclasses.dataclass(frozen=True)
class Queue:
    """A port's RoCE queue, as it is set and as it counted.

    Parameters
    ----------
    where : str
        The port, after its switch's name where there are several, and with what its file says is behind it.
    port : SwitchPort
    counted : PortCounters
    """

    where: str
    port: SwitchPort
    counted: PortCounters

    def get(self, name: str) -> float | None:
        """Return a counter of the queue, or of its priority; None if it was not read."""
        of = self.port.priority if name.startswith(("pauses", "ingress", "headroom")) else self.port.queue
        return self.counted.queues.get(of, {}).get(name)

    @property
    def stopped(self) -> float:
        """Longest time for which the PAUSEs that it received can have stopped the port [s]."""
        return (self.get("pauses_received") or 0.0) * _FRAME / self.port.rate

    @property
    def often_paused(self) -> bool:
        """True if it received PAUSEs in numbers that matter."""
        return _often(self.get("pauses_received"), self.get("sent_packets"))


@dataclasses.dataclass(frozen=True)
class Nics:
    """NICs of hosts, and what their settings are.

    Parameters
    ----------
    counted : tuple of NicCounters
    priorities : tuple of int
        Of RoCE.
    interval : float
        Least time between two CNPs of a flow [s].
    rate : float
        Of their links, at most [bytes/s].
    packet : float
        The smallest full packet on a link [bytes].
    """

    counted: tuple[NicCounters, ...]
    priorities: tuple[int, ...]
    interval: float
    rate: float
    packet: float

    @property
    def shown(self) -> str:
        """RoCE's priorities, as they are printed."""
        return " or ".join(map(str, self.priorities))

    def enable(self, point: str) -> str:
        """Return commands that turn a part of DCQCN on in a NIC: ``roce_rp`` or ``roce_np``."""
        return "; ".join(f"echo 1 > /sys/class/net/IFACE/ecn/{point}/enable/{each}" for each in self.priorities)

    def of_priority(self, nic: NicCounters, name: str) -> float | None:
        """Return a counter of RoCE's priorities together; None if it was not read."""
        known = [nic.priorities.get(priority, {}).get(name) for priority in self.priorities]
        read = [each for each in known if each is not None]
        return sum(read) if read else None

    def total(self, name: str) -> float:
        """Sum a counter over the NICs that have it."""
        return sum(nic.values.get(name, 0.0) for nic in self.counted)

    @property
    def closed(self) -> bool:
        """True if all that these NICs sent was received by these: then none is missing."""
        sent = [self.of_priority(nic, "sent_bytes") for nic in self.counted]
        came = [self.of_priority(nic, "received_bytes") for nic in self.counted]
        both = sum(filter(None, sent)), sum(filter(None, came))
        return min(both) > 0 and abs(both[0] - both[1]) <= _CLOSED * max(both)


def symptoms(queues: Sequence[Queue], nics: Nics, seconds: float | None = None) -> list[Finding]:
    """List the faults, causes before what follows from them.

    Parameters
    ----------
    queues : sequence of Queue
    nics : Nics
    seconds : float or None
        Time in which was counted; None if not known.
    """
    found = [*_pausing(queues, nics, seconds), *_lost(queues, nics), *_discards(nics)]
    losses = bool({each.what for each in found} & {NOBODY, HEADROOM, INGRESS, EGRESS, DISCARDS})
    found += [*_other_priority(queues, nics), *_unmarked(queues, nics)]
    ignoring = [*_ignoring(nics)]
    found += [*ignoring, *_answers(nics)]
    if not ignoring:
        found += _lost_cnps(nics)
    if not losses:
        found += _wire(queues, nics)
    if not any(each.what in (STORM, SLOW) for each in found):
        found += _paused_hosts(nics, seconds)
    return found


def _listed(texts: Iterable[str]) -> str:
    names = [*texts]
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _count(number: float, what: str = "") -> str:
    text = f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.2g}"
    return f"{text} {what}{'' if text == '1' else 's'}" if what else text


def _often(pauses: float | None, packets: float | None) -> bool:
    """Tell whether PAUSEs are in numbers that matter, beside the packets if these are known."""
    return (pauses or 0.0) >= (_MANY if packets is None else max(_PAUSES, _OFTEN * packets))


def _pausing(queues: Sequence[Queue], nics: Nics, seconds: float | None) -> Iterator[Finding]:
    """Find who pauses a switch: what cannot take more, or is broken."""
    paused = [queue for queue in queues if queue.often_paused]
    pausing = [
        nic
        for nic in nics.counted
        if _often(nics.of_priority(nic, "pauses_sent"), nics.of_priority(nic, "received_packets"))
    ]
    if not paused and not pausing:
        return
    standing, endless = [], []
    if seconds is not None:
        standing = [queue for queue in paused if queue.stopped >= _HALF * seconds and _stands_still(queue, queues)]
        endless = [nic for nic in pausing if (nics.of_priority(nic, "pausing_s") or 0.0) >= _STANDS * seconds]
    counts = [f"{q.where} received {_count(q.get('pauses_received') or 0.0, 'PAUSE')}" for q in standing or paused]
    counts += [
        f"{nic.name} sent {_count(nics.of_priority(nic, 'pauses_sent') or 0.0, 'PAUSE')}"
        for nic in endless or ([] if standing else pausing)
    ]
    if standing or endless:
        still = f"; {_listed([queue.where for queue in standing])} sent next to nothing" if standing else ""
        behind = _listed([nic.name for nic in endless]) or f"what is behind {_listed([q.where for q in standing])}"
        yield Finding(
            "bad",
            STORM,
            f"{_listed(counts)}{still}: what waits there stays in the switch, which pauses others in turn. No "
            "threshold mends that",
            f"look at {behind}: a NIC or driver that hangs is to be reset or taken off; of a switch, read its "
            "counters, as the cause is behind it. PFC's watchdog ends such a pause by itself",
            at=(*(queue.where for queue in standing), *(nic.name for nic in endless)),
        )
        return
    if not pausing and nics.counted and all(nics.of_priority(nic, "pauses_sent") is not None for nic in nics.counted):
        yield Finding(
            "ok",
            NEIGHBOUR,
            f"{_listed(counts)}, and no NIC that was read sent one: it is another switch, whose own ports are full, or "
            "a host that was not read",
            at=tuple(queue.where for queue in paused),
        )
        return
    behind = _listed([nic.name for nic in pausing]) or f"what is behind {_listed([queue.where for queue in paused])}"
    yield Finding(
        "warn",
        SLOW,
        f"{_listed(counts)}: {behind} takes less than the link brings"
        + ("" if pausing else ", or is a switch whose own ports are full")
        + ". Marks do not mend that"
        + ("" if seconds is not None else "; with --interval it is known for how long"),
        f"look at {behind}: width and speed of a NIC's PCIe slot (lspci -vv) and its rx_out_of_buffer; of a switch, "
        "read its counters too",
        at=tuple(nic.name for nic in pausing) or tuple(queue.where for queue in paused),
    )


def _stands_still(queue: Queue, queues: Sequence[Queue]) -> bool:
    """Tell whether a queue sent next to nothing where others with its number sent; by ports where no queue was read."""
    by_port = queue.get("sent_bytes") is None

    def sent(each: Queue) -> float | None:
        return each.counted.values.get("sent_packets") if by_port else each.get("sent_bytes")

    others = [sent(each) for each in queues if each.port.queue == queue.port.queue and each is not queue]
    known, mine = [each for each in others if each is not None], sent(queue)
    return mine is not None and bool(known) and mine < _IDLE * statistics.median(known)


def _paused_hosts(nics: Nics, seconds: float | None) -> Iterator[Finding]:
    """Find hosts that PFC stops for long, where ECN ought to have slowed them down before."""
    times = [(nic.name, nics.of_priority(nic, "paused_s") or 0.0) for nic in nics.counted]
    long = [
        f"{name} for {time / seconds:.0%} of the time" for name, time in times if seconds and time > _LONG * seconds
    ]
    if long:
        yield Finding(
            "warn",
            PAUSED,
            f"{_listed(long)}: the switch stops them before marks slow them down",
            "let marking begin below where PAUSE does: Kmin, Kmax and the buffer's dynamic_th; fluidcc tune",
            at=tuple(name for name, time in times if seconds and time > _LONG * seconds),
        )


def _lost(queues: Sequence[Queue], nics: Nics) -> Iterator[Finding]:
    """Find why packets of a lossless queue are lost."""
    lossless = [queue for queue in queues if queue.port.lossless]
    at_ingress = [queue for queue in lossless if _share(queue, "ingress_dropped_packets")]
    at_egress = [queue for queue in lossless if _share(queue, "dropped_packets")]
    if at_ingress:
        same = [queue for queue in lossless if queue.port.priority == at_ingress[0].port.priority]
        known = [pauses for queue in same if (pauses := queue.get("pauses_sent")) is not None]
        sent = sum(known)
        where = _listed(
            [
                f"{queue.where} lost {_count(queue.get('ingress_dropped_packets') or 0.0, 'packet')} of priority "
                f"{queue.port.priority}"
                for queue in at_ingress
            ]
        )
        if known and sent == 0:
            found = _nobody(where, at_ingress[0].port)
        else:
            found = _headroom(where, at_ingress[0], sent if known else None, nics)
        yield dataclasses.replace(found, at=tuple(queue.where for queue in at_ingress))
    elif at_egress:
        where = _listed(
            [
                f"{q.where} dropped {_count(q.get('dropped_packets') or 0.0, 'packet')} of queue {q.port.queue}"
                for q in at_egress
            ]
        )
        watched = [queue.where for queue in at_egress if queue.often_paused]
        yield Finding(
            "warn",
            EGRESS,
            f"{where}: a link that went down does so, PFC's watchdog where a port stays paused"
            + (f" (as {_listed(watched)})" if watched else "")
            + ", or a limit of the egress pool",
            "look at show pfcwd stats, at the ports' flaps, and at show priority-group drop counters",
            at=tuple(queue.where for queue in at_egress),
        )


def _share(queue: Queue, name: str) -> bool:
    """Tell whether a queue's losses are more than what is always there."""
    lost, sent = queue.get(name) or 0.0, queue.get("sent_packets") or 0.0
    return lost > 0 and lost >= _RARELY * sent


def _nobody(where: str, port: SwitchPort) -> Finding:
    return Finding(
        "bad",
        NOBODY,
        f"{where}, and the switch sent no PAUSE of that priority: PFC is not on where the packets are counted, "
        "whatever the file says",
        f"compare show pfc priority and show priority-group with the file: pfc_enable {port.priority}, and a lossless "
        f"BUFFER_PG profile for group {port.priority}",
    )


def _headroom(where: str, first: Queue, sent: float | None, nics: Nics) -> Finding:
    port = first.port
    heard = [nics.of_priority(nic, "pauses_received") for nic in nics.counted]
    deaf = bool(heard) and None not in heard and sum(filter(None, heard)) == 0
    cable = 5.0 if port.cable is None else port.cable
    low, high = needed(port.rate, cable, port.mtu)
    need = f"{show(low, SIZE)} to {show(high, SIZE)} for a cable of {cable:g} m"
    enough = port.headroom is not None and port.headroom >= low
    have = (
        "" if port.headroom is None else f"; {first.where} has {show(port.headroom, SIZE)} by its file and needs {need}"
    )
    advice = f"give the priority group a headroom (xoff) of {need}"
    if enough:
        advice = "compare show buffer configuration with the file, and the cable's length and the MTU with what it says"
    return Finding(
        "bad",
        INGRESS if sent is None else HEADROOM,
        (
            f"{where}; no counter of PAUSEs was read: none was sent, or what came after them found no room{have}"
            if sent is None
            else f"{where} although {_count(sent, 'PAUSE')} were sent: what came after them found no room{have}"
        )
        + (
            f". No NIC that was read counts a PAUSE: if these ports lead to them, PFC of priority {nics.shown} is off "
            "there"
            if deaf
            else ""
        ),
        ("read show pfc counters too; " if sent is None else "")
        + advice
        + "; a sender that heeds no PAUSE does so too (mlnx_qos -i IFACE shows PFC)",
    )


def _discards(nics: Nics) -> Iterator[Finding]:
    """Find NICs that have no room for what comes."""
    losing: dict[str, str] = {}
    for nic in nics.counted:
        of_priority = nics.of_priority(nic, "discards")
        lost = nic.values.get("received_discards", 0.0) if of_priority is None else of_priority
        if lost > 0 and lost >= _RARELY * (nics.of_priority(nic, "received_packets") or 0.0):
            losing[nic.name] = f"{nic.name} {_count(lost, 'packet')}"
    if losing:
        pausing = any(nics.of_priority(nic, "pauses_sent") for nic in nics.counted if nic.name in losing)
        yield Finding(
            "bad",
            DISCARDS,
            f"{_listed(losing.values())}: the host takes less than the link brings, and is not kept from loss"
            + (", though PAUSEs are sent" if pausing else ""),
            (
                "compare the NIC's receive buffer and cable length (mlnx_qos -i IFACE) with its cable"
                if pausing
                else f"turn PFC of priority {nics.shown} on in the NIC (mlnx_qos -i IFACE --pfc)"
            )
            + ", and look at its PCIe slot",
            at=tuple(losing),
        )


def _other_priority(queues: Sequence[Queue], nics: Nics) -> Iterator[Finding]:
    """Find hosts that send nothing by RoCE's priorities, where most hosts send most by these."""
    hosts: dict[str, dict[int, float]] = {}
    for nic in nics.counted:  # of a host with several, one may be for other traffic
        sent = hosts.setdefault(nic.name.partition(" ")[0], {})
        for priority, values in nic.priorities.items():
            sent[priority] = sent.get(priority, 0.0) + values.get("sent_bytes", 0.0)
    total = {name: sum(sent.values()) for name, sent in hosts.items()}
    mine = {name: sum(sent.get(each, 0.0) for each in nics.priorities) for name, sent in hosts.items()}
    usual = statistics.median(total.values()) if total else 0.0
    most_do = sum(mine[name] > _HALF * total[name] for name in hosts) > _HALF * len(hosts)
    stray = {
        name: f"{name} sent {show(mine[name], SIZE)} by priority {nics.shown}, {show(max(sent.values()), SIZE)} by "
        f"{max(sent, key=lambda each: sent[each])}"
        for name, sent in hosts.items()
        if most_do and total[name] >= _COMPARABLE * usual > 0 and mine[name] < 0.01 * total[name]
    }
    if stray:
        yield Finding(
            "warn",
            PRIORITY,
            f"{_listed(stray.values())}, where others send most by the former. If that is RoCE, it is neither marked "
            "nor kept from loss",
            "set the DSCP of its RDMA traffic (cma_roce_tos, or traffic_class of the queue pairs), trust DSCP "
            "(mlnx_qos -i IFACE --trust dscp), and compare with the switch's DSCP_TO_TC_MAP",
            at=tuple(stray),
        )
    carried = [queue.get("sent_packets") for queue in queues]
    carried = [each for each in carried if each is not None]
    if carried and not any(carried):
        roce = {queue.port.queue for queue in queues}
        sent = {id(port): port for port in (queue.counted for queue in queues)}
        busy: dict[int, float] = {}
        for number, values in (each for port in sent.values() for each in port.queues.items() if each[0] not in roce):
            busy[number] = busy.get(number, 0.0) + values.get("sent_packets", 0.0)
        most = max(busy, key=lambda each: busy[each], default=0)
        elsewhere = busy.get(most, 0.0) >= _SENT
        yield Finding(
            "warn" if elsewhere else "ok",
            EMPTY,
            f"queue {' and '.join(map(str, sorted(roce)))} sent no packet"
            + (f", queue {most} {_count(busy[most])}" if elsewhere else "")
            + ": no RoCE ran, or its DSCP leads to another queue, and nothing else can be said",
            "compare the DSCP of RoCE (cma_roce_tos, traffic_class) with the switch's map of DSCPs"
            if elsewhere
            else "",
            at=tuple(queue.where for queue in queues),
        )


def _unmarked(queues: Sequence[Queue], nics: Nics) -> Iterator[Finding]:
    """Find queues whose marks cannot be of the thresholds in the file.

    The longest queue counts only where it was read twice: else it may be of another time than the marks. One that grew
    is the longest since before the first reading; one that fell was cleared in between.
    """
    silent, drained, early = list[tuple[str, str]](), list[tuple[str, str]](), list[tuple[str, str]]()
    for queue in queues:
        red, packet = queue.port.red, queue.port.mtu
        names = ("marked_packets", "sent_packets", "watermark_bytes", "watermark_before_bytes")
        marked, sent, longest, before = (queue.get(name) for name in names)
        if not queue.port.ecn or red is None or red.kmax < red.kmin:
            continue
        if marked is None or sent is None or longest is None or before is None or sent < _SENT:
            continue
        length = f"{queue.where} was {show(longest, SIZE)} long and marked {_count(marked)} of {_count(sent)} packets"
        least = ramp_bound(longest, red.kmin, red.kmax, red.pmax, packet, before if longest >= before else 0.0)
        # A queue that was paused may have been as long before.
        if marked < least - _SURE * math.sqrt(least) and not queue.get("pauses_received"):
            told = f"{length}, at least {_count(least)} by its file"
            (silent if longest >= before else drained).append((queue.where, told))
        room = longest + packet + (queue.port.reserved or 0.0)  # watermarks leave out what is reserved
        joined = sent + longest / _SMALL  # some still wait
        most = joined * highest_share(room, red.kmin, red.kmax, red.pmax)
        if longest >= before and marked > max(most + _SURE * math.sqrt(most), _FEW):
            early.append((queue.where, f"{length}, at most {_count(most)} by its file"))
    if len(drained) > 1:  # one may have been long just as its watermark was cleared
        silent += drained
    profile = f"WRED_PROFILE|{queues[0].port.profile} of the file" if queues else ""
    counted = any(queue.get("marked_packets") for queue in queues)
    if silent and (counted or nics.total("marked_packets") == 0):  # else the switch does not count marks
        yield Finding(
            "bad",
            HIGHER if counted else UNMARKED,
            f"{_listed(text for _, text in silent)}: "
            + ("another WRED profile is in force" if counted else "ECN is off there"),
            f"compare show ecn and the queue's wred_profile on the switch with {profile}",
            at=tuple(dict.fromkeys(where for where, _ in silent)),
        )
    if early:
        yield Finding(
            "warn",
            SOONER,
            f"{_listed(text for _, text in early)}: lower thresholds are in force, or the watermark was cleared after "
            "the first reading",
            f"compare show ecn on the switch with {profile}",
            at=tuple(dict.fromkeys(where for where, _ in early)),
        )
    came = nics.total("marked_packets")
    marks = sum(queue.get("marked_packets") or 0.0 for queue in queues)
    told = nics.counted and all("marked_packets" in nic.values for nic in nics.counted)
    if told and nics.closed and marks > _SENT and came < 0.01 * marks:
        yield Finding(
            "warn",
            ERASED,
            f"the switch marked {_count(marks)} packets and the NICs, which received as many bytes as they sent, "
            f"{_count(came)}: something on the way clears the marks, the NICs do not count RoCE's, or some were not "
            "read",
            f"look at what rewrites DSCP and ECN (tunnels, VXLAN), and enable the notification point: "
            f"{nics.enable('roce_np')}",
            at=tuple(nic.name for nic in nics.counted),
        )


def _ignoring(nics: Nics) -> Iterator[Finding]:
    """Find NICs that do not slow down when they are told to."""
    deaf: dict[str, str] = {}
    for nic in nics.counted:
        ignored, handled = nic.values.get("cnps_ignored", 0.0), nic.values.get("cnps_handled", 0.0)
        if ignored > max(handled, _FEW):
            deaf[nic.name] = f"{nic.name} ignored {_count(ignored, 'CNP')} and handled {_count(handled)}"
    if deaf:
        yield Finding(
            "bad",
            IGNORES,
            f"{_listed(deaf.values())}: it keeps its rate, and the others give way to it",
            f"enable DCQCN's reaction point there: {nics.enable('roce_rp')}; and compare mlxconfig -d DEVICE query "
            "with the file (ROCE_CC_PRIO_MASK_P1)",
            at=tuple(deaf),
        )


def _answers(nics: Nics) -> Iterator[Finding]:
    """Find receivers that answer marks with no CNPs, or with fewer than their settings make."""
    silent, rare = dict[str, str](), dict[str, str]()
    for nic in nics.counted:
        marked, sent = nic.values.get("marked_packets"), nic.values.get("cnps_sent")
        if marked is None or sent is None or marked < _FEW:
            continue
        came, packets = (nics.of_priority(nic, f"received_{what}") for what in ("bytes", "packets"))
        packet = min(came / packets, nics.packet) if came and packets else nics.packet
        # Within the interval behind a CNP, a link brings this many packets of that size, marked or not.
        one = 1 + nics.rate * nics.interval / packet
        least = marked / one
        if sent == 0 and marked >= 2 * one:
            silent[nic.name] = f"{nic.name} received {_count(marked, 'marked packet')} and sent no CNP"
        elif sent < least - _SURE * math.sqrt(least):
            made = f"at least {_count(least)} by its settings"
            rare[nic.name] = f"{nic.name} sent {_count(sent, 'CNP')} for {_count(marked, 'marked packet')}, {made}"
    if silent:
        yield Finding(
            "bad",
            SILENT,
            f"{_listed(silent.values())}: who sends to it is not told to slow down",
            f"enable DCQCN's notification point there: {nics.enable('roce_np')}",
            at=tuple(silent),
        )
    if rare:
        yield Finding(
            "warn",
            RARE,
            f"{_listed(rare.values())}, unless small packets alone are marked",
            "compare min_time_between_cnps of that NIC (ecn/roce_np) with the file",
            at=tuple(rare),
        )


def _lost_cnps(nics: Nics) -> Iterator[Finding]:
    """Find CNPs that were sent and not handled, where no NIC is missing."""
    sent, handled = nics.total("cnps_sent"), nics.total("cnps_handled") + nics.total("cnps_ignored")
    if not nics.closed or sent <= _FEW or handled >= (1 - _MISSING) * sent - _SURE * math.sqrt(sent):
        return
    none = [
        nic.name for nic in nics.counted if nic.values.get("cnps_handled") == 0 and nics.of_priority(nic, "sent_bytes")
    ]
    yield Finding(
        "warn",
        LOST,
        f"these NICs sent {_count(sent, 'CNP')} and handled {_count(handled)}, and received as many bytes as they "
        "sent, so that none seems to be missing" + (f"; {_listed(none)} handled none" if none else ""),
        "give CNPs a queue of their own above all data (cnp_dscp, cnp_802p_prio) on every switch, and look whether "
        "DCQCN's reaction point is on in each NIC",
        at=tuple(none) or tuple(nic.name for nic in nics.counted),
    )


def _wire(queues: Sequence[Queue], nics: Nics) -> Iterator[Finding]:
    """Find losses that no switch counts."""
    gaps = [
        (nic.name, gap)
        for nic in nics.counted
        if (gap := nic.values.get("out_of_sequence", 0.0)) > 0
        and gap >= (_FEW if (came := nics.of_priority(nic, "received_packets")) is None else _RARELY * came)
    ]
    if not gaps or any(queue.get("dropped_packets") or queue.get("ingress_dropped_packets") for queue in queues):
        return
    errors = [queue.where for queue in queues if queue.counted.values.get("received_errors", 0.0) > 0]
    errors += [nic.name for nic in nics.counted if nic.values.get("received_errors", 0.0) > 0]
    errors = [*dict.fromkeys(errors)]
    yield Finding(
        "warn",
        WIRE,
        _listed([f"{name} missed packets {_count(count, 'time')}" for name, count in gaps])
        + (", and no switch that was read dropped one" if queues else "")
        + (f"; damaged frames at {_listed(errors)}" if errors else "")
        + ". Paths that change do so too (adaptive routing)",
        f"clean or change the cable or module at {_listed(errors)}"
        if errors
        else "read the counters of all switches on the way, and show interfaces counters fec-stats",
        at=tuple(errors) or tuple(name for name, _ in gaps),
    )


__all__ = ["Nics", "Queue", "symptoms"]
