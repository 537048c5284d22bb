"""Thresholds of marking: what a queue may hold, what a packet is of it, what others set, what they say of marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fluidcc.operators.finding import Change, Finding, set_fields
from fluidcc.operators.sonic import SwitchPort
from fluidcc.scenario.frames import IN_BUFFER, UNKNOWN
from fluidcc.units import RATE, SIZE, TIME, parse, show

if TYPE_CHECKING:
    from fluidcc.theory.queueing import BurstQueue

PACKETS = tuple(payload + IN_BUFFER for payload in UNKNOWN)  # with headers, where the NIC's are not known
FLOWS, BURST = 8, 4  # flows, and packets that a NIC may send back to back, whose queue is none of congestion
_MARKED = 0.01  # share of packets that may be marked for bursts alone: where marking is a step, p99 below Kmin

_ABOVE = "thresholds are above what the queue may hold"


def most(port: SwitchPort) -> float | None:
    """Return what the port's queue may hold at most [bytes]; None if the file says nothing of it."""
    known = [limit for limit in (port.buffer_size, port.queue_limit) if limit is not None]
    return min(known, default=None)


def shown(size: float, limit: float | None) -> str:
    """Return a queue for a person; one that no buffer can hold is an error of the model, and is not repeated."""
    return show(size, SIZE) if limit is None or size <= limit else f"beyond the buffer's {show(limit, SIZE)}"


def least_kmin(packets: Sequence[float] = PACKETS) -> int:
    """Return the least Kmin at which a packet may wait behind another unmarked [bytes]."""
    return round(2 * max(packets))


def queue_of_bursts(packet: float, burst: int = BURST, flows: int = FLOWS) -> BurstQueue:
    """Return the queue that bursts make of packets [bytes] at full load, from NICs as fast as the link."""
    from fluidcc.theory.queueing import burst_queue  # and NumPy, which reading a file does without

    return burst_queue(flows, burst=burst, packet=packet, load=1.0)


def advice(port: SwitchPort, packets: Sequence[float] = PACKETS) -> tuple[int, int] | None:
    """Return thresholds to try: the paper's in proportion to the rate, as far as packets and the buffer allow.

    The lower end is two packets at least, and the upper one at least twice that, so that no packet climbs the ramp.
    None where the buffer holds no such ramp.
    """
    paper = yardsticks(port.rate)[0]
    low = max(round(paper.kmin), least_kmin(packets))
    high = max(round(paper.kmax), 2 * low)
    limit = most(port)
    if limit is not None:
        high = min(high, int(limit))
    return (low, high) if high >= 2 * low else None


def thresholds(
    port: SwitchPort, kmin: float | None = None, kmax: float | None = None, pmax: float | None = None
) -> tuple[Change, ...]:
    """Return changes of the fields of the port's profile that say what is marked; None stays."""
    wanted = {"kmin": kmin, "kmax": kmax, "pmax": None if pmax is None else 100 * pmax}
    names = port.threshold_fields or {}
    fields = {names[name]: round(value) for name, value in wanted.items() if value is not None and name in names}
    return set_fields("WRED_PROFILE", port.profile, **fields)


def grain(kmin: float, kmax: float, packet_bytes: Sequence[float]) -> tuple[bool, bool]:
    """Tell whether Kmin is below two packets, and whether one packet climbs the whole ramp.

    Parameters
    ----------
    kmin, kmax : float
        In bytes.
    packet_bytes : sequence of float
        Sizes that packets may have, with headers; the largest decides.
    """
    packet = max(packet_bytes)
    return kmin < 2 * packet, 0 < kmax - kmin < packet


def packets_and_thresholds(port: SwitchPort, packet_bytes: Sequence[float] = PACKETS) -> Iterator[Finding]:
    """Check the thresholds against the size of a packet, and against the queue that bursts of them make."""
    if port.kmin is None or port.kmax is None or port.kmax < port.kmin:
        return
    bursts = queue_of_bursts(max(packet_bytes))
    marked = bursts.marked(port.kmin, port.kmax, port.pmax or 0.0)
    low, steep = grain(port.kmin, port.kmax, packet_bytes)
    size = f"a packet of {max(packet_bytes):g} B with its headers"
    size += "" if len(packet_bytes) == 1 else f" (of {min(packet_bytes):g} B with a smaller MTU)"
    tried = advice(port, packet_bytes)
    said = f"{FLOWS} flows that fill the link get {100 * marked:.2g} % of packets marked by bursts of {BURST} alone"
    if low:
        wanted = least_kmin(packet_bytes)
        if marked >= _MARKED:
            wanted = max(wanted, round(bursts.quantile(1 - _MARKED)))
        fits = port.kmax >= wanted + max(packet_bytes)  # else one packet climbs what is left of the ramp
        if tried is not None and port.kmax - port.kmin < max(packet_bytes):  # as advised of what is no ramp
            suggest = f"set Kmin {show(tried[0], SIZE)} and Kmax {show(tried[1], SIZE)}, and sweep around them"
            changes = thresholds(port, *tried)
        else:
            suggest = f"raise green_min_threshold to {wanted} or more"
            suggest += "" if fits else f" and green_max_threshold to {2 * wanted} or more"
            changes = thresholds(port, wanted, None if fits else 2 * wanted)
        yield Finding(
            "warn",
            "Kmin is below two packets",
            f"Kmin {show(port.kmin, SIZE)} is less than twice {size}: packets that meet by chance are marked, without "
            "a queue that stays"
            + (f"; {said}" if marked >= _MARKED else "")
            + ("; thresholds are read in bytes: are KB or cells meant?" if port.kmax < max(packet_bytes) else ""),
            suggest,
            changes,
        )
    elif marked >= _MARKED and not (steep and tried is not None):
        yield _bursts(port, bursts, f"where NICs send bursts of packets of {max(packet_bytes):g} B, {said}")
    if steep and tried is not None:
        yield Finding(
            "warn",
            "one packet climbs the ramp",
            f"Kmax - Kmin is {show(port.kmax - port.kmin, SIZE)}, less than {size}: marking is as good as a step"
            + (f"; {said}" if marked >= _MARKED and not low else ""),
            f"set Kmin {show(tried[0], SIZE)} and Kmax {show(tried[1], SIZE)}, and sweep around them",
            thresholds(port, *tried),
        )


def _bursts(port: SwitchPort, bursts: BurstQueue, said: str) -> Finding:
    """Return what bursts alone get marked, and the thresholds beyond their queue."""
    assert port.kmin is not None
    assert port.kmax is not None
    queue, limit = bursts.quantile(1 - _MARKED), most(port)
    low, high = round(port.kmin), _flatter(port, bursts)
    if limit is not None and high > limit:  # no ramp is flat enough
        low = max(round(port.kmin), round(queue))
        high = max(round(port.kmax), 2 * low)
    fits = limit is None or high <= limit
    raised = [
        f"{name} to {wanted} or more"
        for name, value, wanted in (
            ("green_min_threshold", port.kmin, low),
            ("green_max_threshold", port.kmax, high),
        )
        if round(value) != wanted
    ]
    return Finding(
        "warn",
        "bursts alone get packets marked",
        f"{said}: their queue is {show(queue, SIZE)} at p99, Kmin {show(port.kmin, SIZE)} and Kmax "
        f"{show(port.kmax, SIZE)}; nothing is congested",
        f"raise {' and '.join(raised)}" if fits else "enlarge the buffer: it holds no ramp beyond such bursts",
        thresholds(port, low if low != round(port.kmin) else None, high if high != round(port.kmax) else None)
        if fits
        else (),
    )


def _flatter(port: SwitchPort, bursts: BurstQueue) -> int:
    """Return a Kmax with which bursts get less than a percent of packets marked, and Kmin may stay."""
    assert port.kmin is not None
    assert port.kmax is not None
    high = float(port.kmax)
    while bursts.marked(port.kmin, high, port.pmax or 0.0) >= _MARKED:
        high *= 1.25
    return round(high)


def room(port: SwitchPort) -> Iterator[Finding]:
    """Check the thresholds, and where PAUSE comes, against what the queue may hold."""
    limit, tried = most(port), advice(port)
    if limit is None:
        return
    where = f"BUFFER_QUEUE's {port.queue_profile}" if limit == port.queue_limit else "the lossless buffer pool"
    if port.kmin is not None and port.kmax is not None and limit < max(port.kmin, port.kmax):
        why = f"{where} ends at {show(limit, SIZE)}, Kmin is {show(port.kmin, SIZE)} and Kmax {show(port.kmax, SIZE)}: "
        if port.kmin >= limit:
            yield Finding("bad", _ABOVE, f"{why}nothing is ever marked", *_lowered(port, tried, where))
        else:
            ends = round(port.kmin), int(limit)
            yield Finding("warn", _ABOVE, f"{why}the ramp's end is never reached", *_lowered(port, ends, where))
    pause = pause_point(port)
    if port.lossless and pause is not None and port.queue_limit is not None and port.queue_limit < pause:
        yield Finding(
            "bad",
            "the queue overflows before PFC pauses",
            f"BUFFER_PROFILE|{port.queue_profile} ends queue {port.queue} at {show(port.queue_limit, SIZE)}; a sender "
            f"is paused when {show(pause, SIZE)} of its packets wait: until then packets are lost",
            f"let queue {port.queue} hold {show(pause, SIZE)} or more: BUFFER_PROFILE|{port.queue_profile} "
            "(its static_th or dynamic_th) and its pool's size",
        )


def _lowered(port: SwitchPort, ends: tuple[int, int] | None, where: str) -> tuple[str, tuple[Change, ...]]:
    """Return what to type for other thresholds, and their values."""
    if ends is None:
        return f"enlarge {where}: it holds no ramp of two packets", ()
    lower = zip(("green_min_threshold", "green_max_threshold"), (port.kmin, port.kmax), ends, strict=True)
    changed = [f"{name} to {wanted}" for name, value, wanted in lower if round(value or 0.0) != wanted]
    return f"lower {' and '.join(changed)}", thresholds(port, *ends)


def pause_point(port: SwitchPort) -> float | None:
    """Return the bytes at which a priority group pauses that fills the buffer alone; None if not known."""
    if port.static_th is not None:
        return port.static_th
    if port.beta is None or port.buffer_size is None:
        return None
    return port.beta / (1 + port.beta) * port.buffer_size


# -- thresholds that others use, by port speed, each with its source: to compare with, not to copy ---------


class Yardstick(NamedTuple):
    """Thresholds that somebody uses; sizes in bytes."""

    name: str
    kmin: float
    kmax: float
    pmax: float
    source: str

    def __str__(self) -> str:
        """Format the thresholds and their source in one line."""
        return f"{self.source}: Kmin {show(self.kmin, SIZE)}, Kmax {show(self.kmax, SIZE)}, Pmax {100 * self.pmax:g} %"


_PAPER_RATE, _ALIBABA_RATE = parse("40Gbps", RATE), parse("25Gbps", RATE)


def yardsticks(rate: float) -> tuple[Yardstick, ...]:
    """Return the reference thresholds for a port, the paper's first.

    Parameters
    ----------
    rate : float
        Of the port [bytes/s].

    Returns
    -------
    tuple of Yardstick
    """
    paper, alibaba = rate / _PAPER_RATE, rate / _ALIBABA_RATE
    return (
        Yardstick("paper", 5e3 * paper, 200e3 * paper, 0.01, "DCQCN, Fig. 14, from 40 Gb/s in proportion"),
        Yardstick(
            "alibaba",
            100e3 * alibaba,
            400e3 * alibaba,
            0.2,
            "Alibaba's, published with HPCC's simulator for each 25 Gb/s (High-Precision-Congestion-Control#21)",
        ),
        Yardstick("sonic", 1_048_576.0, 2_097_152.0, 0.05, "SONiC's template AZURE_LOSSLESS, for any speed"),
    )


def guide(rate: float, rtt: float) -> str:
    """A vendor's rule by round trip, in a line: Kmax of two to three bandwidth-delay products, and nothing of Kmin.

    Parameters
    ----------
    rate : float
        Of the port [bytes/s].
    rtt : float
        Round trip of an empty network [s].
    """
    low, high = (show(each * rate * rtt, SIZE) for each in (2, 3))
    return (
        f"a vendor's guide, 2 to 3 bandwidth-delay products at a round trip of {show(rtt, TIME)}: Kmax {low} to {high}"
    )


# -- bounds of the marks that a queue makes, from how long it was (DCQCN, Fig. 5) --------------------------


def ramp_bound(queue: float, kmin: float, kmax: float, pmax: float, packet: float, begin: float = 0.0) -> float:
    """Bound from below, on average, the marks of a queue that has grown to this length.

    It has grown packet by packet, each of which was marked as the queue then was (DCQCN, Fig. 5); packets that leave
    meanwhile only make more.

    Parameters
    ----------
    queue : float
        The longest [bytes].
    kmin, kmax, pmax : float
    packet : float
        The largest [bytes].
    begin : float
        Its length before, at most [bytes].
    """

    def area(length: float) -> float:
        top = min(length, kmax)
        ramp = pmax * (top - kmin) ** 2 / (2 * (kmax - kmin)) if top > kmin and kmax > kmin else 0.0
        return ramp + max(length - kmax, 0.0)

    return max(area(queue) - area(begin) - packet, 0.0) / packet


def highest_share(queue: float, kmin: float, kmax: float, pmax: float) -> float:
    """Bound from above the probability of a mark where the queue was never longer (DCQCN, Fig. 5)."""
    if queue > kmax:
        return 1.0
    return pmax * max(queue - kmin, 0.0) / (kmax - kmin) if kmax > kmin else 0.0
