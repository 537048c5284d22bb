"""ACC, section 3.2: the pipe of a congested flow, in the chain of Fig. 1(a) at N = 20."""

from __future__ import annotations

from collections import deque
from fractions import Fraction

from fluidcc.claims.claim import Finding, Way, claim, cut_to, rounds_to
from fluidcc.claims.runner import main
from fluidcc.papers import ACC

HOSTS, LINE, LINK_DELAY = 20, Fraction(10**11, 8), Fraction(2, 10**6)  # bursts, bytes/s, s
LINKS = 5  # of F1: host to SW1, SW1 to SW4, SW4 to R1


def share(hosts: int = HOSTS) -> Fraction:
    """F1's share of P4's link, which the N bursts have too [bytes/s]."""
    return LINE / (hosts + 1)


@claim("acc-32-pipe", ACC, "3.2", "the network pipe of F1, C RTT/(N+1), is around 0.012 MB at N = 20")
def pipe() -> Finding:
    import fluidcc as fc
    from fluidcc.scenario.model import resolve
    from fluidcc.scenario.round_trips import base_rtt

    trip = 2 * LINKS * LINK_DELAY
    size = share() * trip
    scenario = resolve(fc.chain())
    engine = base_rtt(scenario, next(flow for flow in scenario.flows if flow.name == "F1"))
    return Finding(
        {"as printed": rounds_to(float(size) / 1e6, "0.012")},
        {"pipe_bytes": size, "rtt_s": trip},
        # The engine's trip also stores a packet of 1 KB at each hop, 80 ns, and its ACK.
        [Way("RTT: propagation, fluidcc.chain's base RTT", trip, float(engine), 0.03)],
    )


@claim("acc-32-ack-rate", ACC, "3.2", "the arriving rate of F1's ACKs is around 4.7 Gb/s")
def ack_rate() -> Finding:
    rate = share() * 8 / 10**9
    # Round robin of 21 senders at P4, counted: each gets one packet in 21.
    slots = 21_000
    counted = sum(slot % (HOSTS + 1) == 0 for slot in range(slots)) / slots * 100
    return Finding(
        {"cut to two digits": cut_to(float(rate), "4.7"), "rounded": rounds_to(float(rate), "4.7")},
        {"ack_rate_gbps": rate},
        [Way("rate: quotient, round robin counted", float(rate), counted, 1e-12)],
        restricted=abs(float(rate) / 4.7 - 1) < 0.02,
        conditions="cut, not rounded; within 2 % of what is printed",
    )


@claim("acc-32-excess", ACC, "3.2", "excessive packets backlogged = packets in flight - pipe capacity")
def excess(trip: int = 400, every: int = 21) -> Finding:
    """A flow whose link serves one of its packets in `every` slots, sending at different rates meanwhile."""
    queue = sent = acknowledged = 0
    flying: deque[int] = deque()  # when each packet or its ACK is back
    apart = steady = 0
    for slot in range(20_000):
        sends = slot % (7 if 3000 < slot < 9000 else every) == 0
        queue += sends
        sent += sends
        if slot % every == 0 and queue:
            queue -= 1
            flying.append(slot + trip)
        while flying and flying[0] <= slot:
            flying.popleft()
            acknowledged += 1
        inflight = sent - acknowledged  # as a sender counts: snd_nxt - snd_una
        if slot > 3500:  # the pipe is full
            apart = max(apart, abs(inflight - queue - trip // every))
            steady += 1
    return Finding(
        {"to one packet, while the bottleneck is busy": apart <= 1},
        {"largest_difference_packets": apart, "pipe_packets": Fraction(trip, every), "slots": steady},
        [
            Way("in flight: sequence numbers, queue and wire", sent - acknowledged, queue + len(flying)),
            Way("the pipe: trip over the gap of departures, counted in flight", trip // every, len(flying), 0.06),
        ],
    )


if __name__ == "__main__":
    main(__name__)
