"""Faults that counters show by themselves: what cannot be, or is not, with the settings of the files.

Each check compares counts with each other, or with a bound that holds whatever the traffic is. What needs a model of
the traffic is in `fluidcc.operators.marks`.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterator, Sequence

from fluidcc.operators.counters.model import NicCounters, PortCounters
from fluidcc.operators.finding import Finding
from fluidcc.operators.headroom import needed
from fluidcc.operators.sonic import SwitchPort
from fluidcc.units import SIZE, show

STORM = "a NIC pauses without end"
SLOW = "a slow receiver pauses the switch"
UNHEEDED = "a PAUSE is not heeded"
NOBODY = "packets are lost and nobody is paused"
HEADROOM = "packets are lost in spite of PAUSE"
UNMARKED = "a long queue and no marks"
HIGHER = "the queues are those of higher thresholds"
SOONER = "more marks than the queue can make"
PRIORITY = "a host sends by another priority"
IGNORES = "a NIC ignores CNPs"
SILENT = "a NIC answers no marks"
RARE = "CNPs are rarer than the NIC's settings make them"
LOST = "CNPs are lost on their way"
WIRE = "packets are lost on a wire"

_FEW = 100  # counts below which their absence proves nothing
_MUCH_LESS = 50  # times
_STOPPED = 0.1  # share of what others send, below which a paused port stands still, or a host is idle
_STANDS = 0.9  # share of the time that a NIC pauses, above which it is without end
_ELSEWHERE = 0.5  # share of a host's bytes by other priorities that is reported
_SURE = 4.0  # standard deviations of a count
_CLOSED = 0.02  # by which bytes sent and received may differ where all NICs are there
_NAMED = 4


@dataclasses.dataclass(frozen=True)
class Queue:
    """A port's RoCE queue, as it is set and as it counted.

    Parameters
    ----------
    where : str
        The port, after its switch's name where there are several.
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
        Of their links [bytes/s].
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

    def sent(self, nic: NicCounters) -> float | None:
        """Return the bytes that a NIC has sent, by RoCE's priority if that is known."""
        return self.of_priority(nic, "sent_bytes") if nic.priorities else nic.values.get("sent_bytes")

    def total(self, name: str) -> float:
        """Sum a counter over the NICs that have it."""
        return sum(nic.values.get(name, 0.0) for nic in self.counted)

    @property
    def closed(self) -> bool:
        """True if all that these NICs sent was received by these: then none is missing."""
        sent = [self.of_priority(nic, "sent_bytes") for nic in self.counted]
        came = [self.of_priority(nic, "received_bytes") for nic in self.counted]
        if len(self.counted) < 2 or None in sent or None in came:
            return False
        both = sum(filter(None, sent)), sum(filter(None, came))
        return abs(both[0] - both[1]) <= _CLOSED * max(both)


def symptoms(queues: Sequence[Queue], nics: Nics, seconds: float | None = None) -> list[Finding]:
    """List the faults, causes before what follows from them.

    Parameters
    ----------
    queues : sequence of Queue
    nics : Nics
    seconds : float or None
        Time in which was counted; None if not known.
    """
    found = [*_pausing(queues, nics, seconds)]
    found += _lost(queues, nics)
    found += _other_priority(queues, nics)
    found += [*_unmarked(queues)]
    ignoring = [*_ignoring(nics)]
    found += [*ignoring, *_answers(nics)]
    if not ignoring:
        found += _lost_cnps(nics)
    if not any(each.what in (NOBODY, HEADROOM, UNHEEDED) for each in found):
        found += _wire(queues, nics)
    return found


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _pausing(queues: Sequence[Queue], nics: Nics, seconds: float | None) -> Iterator[Finding]:
    """Find who pauses a switch: a NIC that cannot take more, or one that is broken."""
    paused = [queue for queue in queues if (queue.get("pauses_received") or 0.0) > 0]
    pausing = [nic for nic in nics.counted if (nics.of_priority(nic, "pauses_sent") or 0.0) > 0]
    if not paused and not pausing:
        return
    standing = [queue for queue in paused if (queue.get("sent_bytes") or 0.0) < _STOPPED * _typical(queue, queues)]
    times = [nics.of_priority(nic, "pausing_s") for nic in pausing]
    endless = [
        nic
        for nic, time in zip(pausing, times, strict=True)
        if time is not None and seconds is not None and time >= _STANDS * seconds
    ]
    frames = [f"{queue.where} received {_count(queue.get('pauses_received') or 0.0)} PAUSEs" for queue in paused]
    sent = [f"{nic.name} sent {_count(nics.of_priority(nic, 'pauses_sent') or 0.0)}" for nic in pausing]
    why = _listed(frames) + ("; " if frames and sent else "") + _listed(sent)
    if standing or endless:
        by = _listed([nic.name for nic in endless] or [nic.name for nic in pausing])
        still = f"; {_listed([queue.where for queue in standing])} sent next to nothing" if standing else ""
        yield Finding(
            "bad",
            STORM,
            f"{why}{still}: what waits for it fills the switch, which pauses all others. No threshold mends that",
            f"take {by or 'the host behind the port'} off the fabric and look at its NIC and driver; watch such ports "
            "with PFC's watchdog (config pfcwd start)",
        )
        return
    by = _listed([nic.name for nic in pausing]) or f"what is behind {_listed([queue.where for queue in paused])}"
    yield Finding(
        "warn",
        SLOW,
        f"{why}: {by} takes less than its link brings (PCIe, memory or a virtual machine), or is a switch whose own "
        "ports are full. ECN does not see that queue, so that no threshold mends it",
        f"look at {by}: width and speed of its PCIe slot (lspci -vv), rx_out_of_buffer, NUMA node; of a switch, read "
        "its counters too",
    )


def _typical(queue: Queue, queues: Sequence[Queue]) -> float:
    """Return the median of what other ports sent by a queue's number [bytes]; 0 without others."""
    others = [each.get("sent_bytes") or 0.0 for each in queues if each.port.queue == queue.port.queue]
    return statistics.median(others)


def _lost(queues: Sequence[Queue], nics: Nics) -> Iterator[Finding]:
    """Find why packets of a lossless queue are lost."""
    losing = [
        (queue, (queue.get("dropped_packets") or 0.0) + (queue.get("ingress_dropped_packets") or 0.0))
        for queue in queues
        if queue.port.lossless
    ]
    losing = [(queue, lost) for queue, lost in losing if lost > 0]
    if not losing:
        return
    known = [queue for queue in queues if queue.get("pauses_sent") is not None]
    sent = sum(queue.get("pauses_sent") or 0.0 for queue in known)
    where = _listed(
        [f"{queue.where} lost {_count(lost)} packets of priority {queue.port.priority}" for queue, lost in losing]
    )
    port = losing[0][0].port
    heard = [nics.of_priority(nic, "pauses_received") for nic in nics.counted]
    if known and sent == 0:
        yield Finding(
            "bad",
            NOBODY,
            f"{where}, and the switch sent no PAUSE of that priority: PFC is not on where the packets are counted, "
            "whatever the file says",
            f"compare show pfc priority and show priority-group with the file: pfc_enable {port.priority}, and a "
            f"lossless BUFFER_PG profile for group {port.priority}",
        )
    elif sent > 0 and heard and None not in heard and sum(filter(None, heard)) == 0:
        yield Finding(
            "bad",
            UNHEEDED,
            f"{where}; the switch sent {_count(sent)} PAUSEs, and no NIC counts one: PFC of priority {nics.shown} "
            "is off in the NICs",
            f"mlnx_qos -i IFACE --pfc with a 1 for priority {nics.shown}",
        )
    else:
        cable = 5.0 if port.cable is None else port.cable
        low, high = needed(port.rate, cable, port.mtu)
        have = "" if port.headroom is None else f" (the file has {show(port.headroom, SIZE)})"
        yield Finding(
            "bad",
            HEADROOM,
            f"{where} although {_count(sent)} PAUSEs were sent: what came after them found no room{have}",
            f"give the priority group a headroom (xoff) of {show(low, SIZE)} to {show(high, SIZE)} for a cable of "
            f"{cable:g} m, and let the senders' pauses be counted: one that counts none has PFC off",
        )


def _other_priority(queues: Sequence[Queue], nics: Nics) -> Iterator[Finding]:
    """Find hosts whose packets are in another priority than RoCE's."""
    stray = []
    every = [sum(values.get("sent_bytes", 0.0) for values in nic.priorities.values()) for nic in nics.counted]
    for nic, total in zip(nics.counted, every, strict=True):
        sent = {priority: values.get("sent_bytes", 0.0) for priority, values in nic.priorities.items()}
        mine = nics.of_priority(nic, "sent_bytes") or 0.0
        if mine < _ELSEWHERE * total and total > _STOPPED * statistics.median(every):
            busiest = max(sent, key=lambda priority: sent[priority])
            stray.append(
                f"{nic.name} sends {mine / total:.0%} of its bytes by priority {nics.shown}, most by {busiest}"
            )
    if stray:
        all_of_them = len(stray) == len(nics.counted)
        yield Finding(
            "bad" if all_of_them else "warn",
            PRIORITY,
            f"{_listed(stray)}: these packets are neither marked nor kept from loss as RoCE's queue is"
            + ("" if all_of_them else "; right only if they are no RoCE"),
            "set the DSCP of its RDMA traffic (cma_roce_tos, or traffic_class of the queue pairs), trust DSCP "
            "(mlnx_qos --trust dscp), and compare with the switch's DSCP_TO_TC_MAP",
        )
    elif queues and not nics.counted:
        mine = sum(queue.get("sent_bytes") or queue.get("sent_packets") or 0.0 for queue in queues)
        others = {
            number: sum(q.counted.queues.get(number, {}).get("sent_bytes", 0.0) for q in queues)
            for queue in queues
            for number in queue.counted.queues
            if number != queue.port.queue
        }
        busiest = max(others, key=lambda number: others[number], default=None)
        if busiest is not None and mine == 0 < others[busiest]:
            yield Finding(
                "bad",
                PRIORITY,
                f"no byte went through queue {queues[0].port.queue}, {show(others[busiest], SIZE)} through queue "
                f"{busiest}: the hosts' DSCP does not lead to RoCE's queue",
                "compare the DSCP of the hosts' RDMA traffic with the switch's DSCP_TO_TC_MAP",
            )


def ramp_bound(queue: float, kmin: float, kmax: float, pmax: float, packet: float) -> float:
    """Bound from below, on average, the marks of a queue that has once been this long.

    It has grown packet by packet, each of which was marked as the queue then was (DCQCN, Fig. 5); packets that leave
    meanwhile only make more.

    Parameters
    ----------
    queue : float
        The longest [bytes].
    kmin, kmax, pmax : float
    packet : float
        The largest [bytes].
    """
    top = min(queue, kmax)
    ramp = pmax * (top - kmin) ** 2 / (2 * (kmax - kmin)) if top > kmin and kmax > kmin else 0.0
    return max(ramp + max(queue - kmax, 0.0) - packet, 0.0) / packet


def highest_share(queue: float, kmin: float, kmax: float, pmax: float) -> float:
    """Bound from above the probability of a mark where the queue was never longer (DCQCN, Fig. 5)."""
    if queue > kmax:
        return 1.0
    return pmax * max(queue - kmin, 0.0) / (kmax - kmin) if kmax > kmin else 0.0


def _unmarked(queues: Sequence[Queue]) -> Iterator[Finding]:
    """Find queues whose marks cannot be of the thresholds in the file."""
    silent, early = [], []
    for queue in queues:
        red, packet = queue.port.red, queue.port.mtu
        marked, sent, longest = (queue.get(name) for name in ("marked_packets", "sent_packets", "watermark_bytes"))
        if not queue.port.ecn or red is None or marked is None or longest is None or red.kmax < red.kmin:
            continue
        if queue.get("pauses_received"):  # it may have been as long before, when it was paused
            continue
        least = ramp_bound(longest, red.kmin, red.kmax, red.pmax, packet)
        length = f"{queue.where} was {show(longest, SIZE)} long and"
        if marked < least - _SURE * math.sqrt(least):
            silent.append(f"{length} marked {_count(marked)} packets, at least {_count(least)} by its file")
        most = (sent or 0.0) * highest_share(longest + packet, red.kmin, red.kmax, red.pmax)
        if sent and marked > max(most + _SURE * math.sqrt(most), _SURE):
            early.append(
                f"{length} marked {_count(marked)} of {_count(sent)} packets, at most {_count(most)} by its file"
            )
    profile = f"WRED_PROFILE|{queues[0].port.profile} of the file" if queues else ""
    if silent:
        none = not any(queue.get("marked_packets") for queue in queues)
        yield Finding(
            "bad",
            UNMARKED if none else HIGHER,
            f"{_listed(silent)}: " + ("ECN is off there" if none else "another WRED profile is in force"),
            f"compare show ecn and the queue's wred_profile on the switch with {profile}",
        )
    if early:
        yield Finding(
            "bad",
            SOONER,
            f"{_listed(early)}: lower thresholds are in force",
            f"compare show ecn on the switch with {profile}",
        )


def _ignoring(nics: Nics) -> Iterator[Finding]:
    """Find NICs that do not slow down when they are told to."""
    told = [(nic, nic.values.get("cnps_handled"), nics.sent(nic)) for nic in nics.counted]
    deaf = []
    for nic, handled, sent in told:
        ignored = nic.values.get("cnps_ignored", 0.0)
        others = [(h, s) for each, h, s in told if each is not nic and h is not None and s]
        if handled is None or not sent:
            continue
        expected = sum(h for h, _ in others) / sum(s for _, s in others) * sent if others else 0.0
        if ignored > max(handled, _FEW):
            deaf.append(f"{nic.name} ignored {_count(ignored)} CNPs and handled {_count(handled)}")
        elif expected > _FEW and handled < expected / _MUCH_LESS:
            deaf.append(
                f"{nic.name} handled {_count(handled)} CNPs; by its share of the bytes it would be {_count(expected)}"
            )
    if deaf:
        yield Finding(
            "bad",
            IGNORES,
            f"{_listed(deaf)}: it keeps its rate, and the others give way to it",
            f"enable DCQCN's reaction point there: {nics.enable('roce_rp')}; and compare mlxconfig's "
            "ROCE_CC_PRIO_MASK_P1",
        )


def _answers(nics: Nics) -> Iterator[Finding]:
    """Find receivers that answer marks with no CNPs, or with fewer than their settings make."""
    # Within the interval behind a CNP, a link brings this many packets at most, marked or not.
    at_most = 1 + nics.rate * nics.interval / nics.packet
    silent, rare = [], []
    for nic in nics.counted:
        marked, sent = nic.values.get("marked_packets"), nic.values.get("cnps_sent")
        if marked is None or sent is None or marked < _FEW:
            continue
        if sent == 0:
            silent.append(f"{nic.name} received {_count(marked)} marked packets and sent no CNP")
        elif sent < marked / at_most - _SURE * math.sqrt(marked / at_most):
            least = f"at least {_count(marked / at_most)} by its settings"
            rare.append(f"{nic.name} sent {_count(sent)} CNPs for {_count(marked)} marked packets, {least}")
    if silent:
        yield Finding(
            "bad",
            SILENT,
            f"{_listed(silent)}: who sends to it is not told to slow down",
            f"enable DCQCN's notification point there: {nics.enable('roce_np')}",
        )
    if rare:
        yield Finding(
            "warn",
            RARE,
            f"{_listed(rare)}",
            "compare min_time_between_cnps of that NIC (ecn/roce_np) with the file",
        )


def _lost_cnps(nics: Nics) -> Iterator[Finding]:
    """Find CNPs that were sent and did not arrive."""
    sent = nics.total("cnps_sent")
    handled = nics.total("cnps_handled") + nics.total("cnps_ignored")
    if nics.closed and sent > _FEW and handled < 0.9 * sent - _SURE * math.sqrt(sent):
        yield Finding(
            "warn",
            LOST,
            f"these NICs sent {_count(sent)} CNPs and received {_count(handled)}, and all their data stays among them",
            "give CNPs a queue of their own above all data (cnp_dscp, cnp_802p_prio) on every switch",
        )


def _wire(queues: Sequence[Queue], nics: Nics) -> Iterator[Finding]:
    """Find losses that no switch counts."""
    gaps = [(nic.name, nic.values.get("out_of_sequence", 0.0)) for nic in nics.counted]
    gaps = [(name, count) for name, count in gaps if count > 0]
    counts = ("dropped_packets", "ingress_dropped_packets")
    if not gaps or any((queue.get(name) or 0.0) > 0 for queue in queues for name in counts):
        return
    errors = [queue.where for queue in queues if queue.counted.values.get("received_errors", 0.0) > 0]
    errors += [nic.name for nic in nics.counted if nic.values.get("received_errors", 0.0) > 0]
    yield Finding(
        "warn",
        WIRE,
        _listed([f"{name} missed packets {_count(count)} times" for name, count in gaps])
        + ", and no switch that was read dropped one"
        + (f"; errors at {_listed(errors)}" if errors else "")
        + ". Paths that change do so too (adaptive routing)",
        f"clean or change the cable or module at {_listed(errors)}"
        if errors
        else "read the counters of all switches on the way, and FEC's (show interfaces counters fec-stats)",
    )


__all__ = ["Nics", "Queue", "symptoms"]
