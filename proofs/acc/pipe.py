"""ACC, section 3.2: the pipe of a congested flow, in the chain of Fig. 1(a) at N = 20."""

from __future__ import annotations

from collections import deque
from fractions import Fraction

from fluidcc.proofs.papers import ACC
from fluidcc.proofs.verdict.claim import Finding, Way, claim, rounds_to
from fluidcc.proofs.verdict.registry import main

HOSTS, LINE, LINK_DELAY = 20, Fraction(10**11, 8), Fraction(2, 10**6)  # bursts, bytes/s, s
ABOUT = 0.1
ALONE, BESIDE = (1.3e-3, 1.8e-3), (1.1e-3, 3e-3)  # s, windows in which F1's packets are counted
SLOTS = 20_000  # of a count
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


@claim("acc-32-ack-rate", ACC, "3.2", "the arriving rate of F1's ACKs is around 4.7 Gb/s", slow=True)
def ack_rate(hosts: int = HOSTS) -> Finding:
    rate = float(share(hosts) * 8 / 10**9)
    # Until P4 has sent what each host had there before it was paused, its queue is what came; later they take turns.
    alone = arriving(hosts, ("1s", "0s"), ALONE)
    beside = arriving(hosts, ("0s", "0s"), BESIDE)
    return Finding(
        {
            "C/(N+1)": abs(rate / 4.7 - 1) < ABOUT,
            "packets, F0 and F1 at 50 Gb/s each, 1.1 to 3.0 ms": abs(beside / 4.7 - 1) < ABOUT,
        },
        {"share_gbps": rate, "packets_alone_1.3_to_1.8_ms_gbps": alone, "packets_beside_f0_1.1_to_3.0_ms_gbps": beside},
        # In 0.5 ms 297 packets of F1 arrive; the hosts do not stop at once.
        [Way("rate: C/(N+1), packets of F1 alone", rate, alone, 0.05)],
        sample="two runs of packets, over "
        + " and ".join(f"{1e3 * since:g} to {1e3 * until:g} ms" for since, until in (ALONE, BESIDE))
        + "; nothing in them is random",
    )


def arriving(hosts: int, start: tuple[str, str], window: tuple[float, float]) -> float:
    """Rate at which F1's packets arrive, and ACKs leave, in packets without control over a window [Gb/s]."""
    import fluidcc as fc

    rates = ("50Gbps", "100Gbps" if start[0] != start[1] else "50Gbps")
    scenario = fc.chain(hosts, scheme="none", start=start, initial_rate=rates)
    run = fc.simulate(scenario, window[1], window=window, engine="packet")
    return run.summary["goodput_bytes_per_s"][1] * 8 / 1e9


@claim("acc-32-excess", ACC, "3.2", "excessive packets backlogged = packets in flight - pipe capacity")
def excess(trip: int = 400, every: int = 21) -> Finding:
    """A flow whose link serves one of its packets in `every` slots, sending at different rates meanwhile."""
    queue = sent = acknowledged = 0
    flying: deque[int] = deque()  # when each packet or its ACK is back
    apart = steady = 0
    for slot in range(SLOTS):
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
        sample=f"one count of {SLOTS} slots; nothing in it is random",
    )


if __name__ == "__main__":
    main(__name__)
