"""HPCC, Appendix A.4: 64 sources start at line rate into a root queue that is busy at its target utilisation.

Unit of data: one bandwidth-delay product B T; of time: the base round trip T.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple

from fluidcc.proofs.papers import HPCC
from fluidcc.proofs.verdict.claim import Finding, Way, claim, rounds_to
from fluidcc.proofs.verdict.registry import main

SOURCES, ETA = 64, 0.95
PACKETS = 200  # per B T: a packet is 0.5 % of it
COUNTED = "one count of packets, until the burst's last leaves; nothing in it is random"
ABOUT = 0.1  # "about" and "approximately" are read as 10 %


class Seen(NamedTuple):
    """Queues at the root, in units of B T: the largest, and what the last packet of the bursts meets."""

    peak: float
    at_arrival: float
    at_emission: float
    round_trip: float
    by_emitted_after_one_trip: float


def fluid(sources: int = SOURCES, load: float = ETA) -> Seen:
    """64 + 0.95 arrive and 1 leaves during one T; what comes later is at most the windows of the existing flows."""
    peak = sources + load - 1
    return Seen(peak, peak, load, 1 + peak, peak)


def packets(sources: int = SOURCES, load: float = ETA, per_trip: int = PACKETS) -> Seen:
    """The same in packets: a FIFO root that sends one per slot.

    New sources send their initial bursts and no more ("very few packets" follow). Existing flows keep their window,
    load x B T, although HPCC would reduce it: each packet that leaves lets the next one in a round trip later.
    """
    window = round(load * per_trip)
    coming = Counter(i * per_trip // window for i in range(window))  # evenly, as the flows have been sending
    queue: deque[str] = deque()
    peak = at_arrival = after_one_trip = slot = 0
    while True:
        queue.extend(["existing"] * coming[slot])
        if slot < per_trip:
            queue.extend(["new"] * sources)
        if slot == per_trip - 1:
            queue[-1], at_arrival = "last", len(queue) - 1
        peak = max(peak, len(queue))
        sent = queue.popleft()
        if slot == per_trip:
            after_one_trip = len(queue)
        if sent == "existing":
            coming[slot + per_trip] += 1
        if sent == "last":
            trip = per_trip + slot - (per_trip - 1)
            return Seen(*(n / per_trip for n in (peak, at_arrival, len(queue), trip, after_one_trip)))
        slot += 1


@claim("hpcc-a4-window", HPCC, "A.4", "an ACK that shows the peak queue cuts the window to about 1/65")
def window(sources: int = SOURCES) -> Finding:
    expected, found = fluid(sources), packets(sources)
    used = expected.peak + 1  # (2): the queue over B T, and the link sends all the time
    return Finding(
        {"as printed": abs(used / 65 - 1) <= ABOUT and abs(used / ETA / 65 - 1) <= ABOUT},
        {"utilisation": used, "window_divided_by": used / ETA, "utilisation_rounds_to_65": rounds_to(used, "65")},
        [Way("U at the peak: fluid, packets", used, found.peak + 1, 0.01)],
        sample=COUNTED,
    )


@claim("hpcc-a4-round-trip", HPCC, "A.4", "the round trip of the burst's last packet is about 65 times the base RTT")
def round_trip(sources: int = SOURCES) -> Finding:
    expected, found = fluid(sources), packets(sources)
    return Finding(
        {"as printed": rounds_to(expected.round_trip, "65")},
        {"round_trip_over_base": expected.round_trip},
        [Way("round trip of the last packet: fluid, packets", expected.round_trip, found.round_trip, 0.01)],
        sample=COUNTED,
    )


@claim("hpcc-a4-sees-peak", HPCC, "A.4, 4.1", "the burst's last packet has observed approximately the peak queue")
def sees_peak() -> Finding:
    expected, found = fluid(), packets()
    least = (1 - ABOUT) * found.peak
    return Finding(
        {
            "what was ahead of it as it joined, and made its round trip": found.at_arrival >= least,
            "what its INT shows, stamped when a packet is emitted (4.1)": found.at_emission >= least,
        },
        {
            "peak_over_bdp": found.peak,
            "seen_at_emission_over_bdp": found.at_emission,
            "ahead_when_it_joined_over_bdp": found.at_arrival,
            "seen_by_a_packet_emitted_after_one_rtt_over_bdp": found.by_emitted_after_one_trip,
        },
        [
            Way("peak queue: fluid, packets", expected.peak, found.peak, 0.01),
            Way("ahead of the last as it joined: fluid, packets", expected.at_arrival, found.at_arrival, 0.01),
            Way("queue after one round trip: fluid, packets", expected.peak, found.by_emitted_after_one_trip, 0.01),
        ],
        # The windows of the existing flows bound what can be behind it; some are on their way.
        restricted=found.at_arrival >= least
        and found.at_emission <= expected.at_emission
        and found.by_emitted_after_one_trip >= least,
        conditions=f"as what was ahead of it when it joined, {found.at_arrival:.1f} BDP of a peak of {found.peak:.1f}; "
        f"its INT, stamped at emission, shows what came behind it, {found.at_emission:.2f} BDP, at most the existing "
        f"flows' windows, and the peak is in that of packets emitted one RTT after the start, "
        f"{found.by_emitted_after_one_trip:.1f} BDP",
        sample=COUNTED,
    )


if __name__ == "__main__":
    main(__name__)
