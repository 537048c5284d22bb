"""HPCC, sections 3 to 5: the numbers that follow from other numbers in the paper."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from fluidcc.proofs.papers import HPCC
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.queues import BEHIND, delay_behind
from fluidcc.proofs.verdict.claim import Finding, Way, claim, cut_to, rounds_to
from fluidcc.proofs.verdict.registry import main

ETA = Fraction(19, 20)
ALONE = 1e-4  # s, the run of a message alone


@claim(
    "hpcc-32-overreaction",
    HPCC,
    "3.2, Fig. 5",
    "per-ACK reaction to two ACKs that report U/eta = 2 gives W/4, (4) gives W/2",
)
def overreaction() -> Finding:
    start, used = Fraction(1), 2 * ETA
    # Fig. 5: P1, P2, P3, P4, P5 wait; when P1 leaves four are left, when P2 leaves three and one that came meanwhile.
    queue = ["P1", "P2", "P3", "P4", "P5"]
    left = []
    for newcomer in ("P6", "P7"):
        queue.pop(0)
        left.append(len(queue))
        queue.append(newcomer)
    per_ack = start
    for _ in left:
        per_ack = per_ack / (used / ETA)  # (3) without W_AI
    reference, combined = start, start
    for _ in left:
        combined = reference / (used / ETA)  # (4); W^c stays within a round trip
    return Finding(
        {"as printed": (per_ack, combined) == (start / 4, start / 2) and left == [4, 4]},
        {"per_ack": per_ack, "combined": combined, "queue_seen_by_P1_and_P2": left},
        [Way("per-ACK: iteration, power", per_ack, start / 2 ** len(left)), Way("combined", combined, Fraction(1, 2))],
    )


def table(eps: float, largest: int = 2**22) -> list[int]:
    """Stored n: the next is the first with 1/n_k - 1/n_{k+1} >= eps/n_k, that is n_{k+1} >= n_k/(1-eps)."""
    stored = [1]
    while True:
        following = max(stored[-1] + 1, math.ceil(stored[-1] / (1 - eps)))
        if following > largest:
            return stored
        stored.append(following)


@claim("hpcc-43-inequality", HPCC, "4.3", "n values are stored for which 1/n_{k+1} - 1/n_k >= eps/n_k")
def inequality(eps: Fraction = Fraction(1, 100)) -> Finding:
    printed = [(n, m) for n in range(1, 40) for m in range(n + 1, 400) if Fraction(1, m) - Fraction(1, n) >= eps / n]
    stored = table(float(eps), 4000)
    turned = all(Fraction(1, n) - Fraction(1, m) >= eps / n for n, m in itertools.pairwise(stored))
    # With every skipped n read off the last stored one, the error stays within eps.
    error, at = Fraction(0), 0
    for n in range(1, stored[-1]):
        at += int(stored[at + 1] <= n)
        error = max(error, n * (Fraction(1, stored[at]) - Fraction(1, n)))
    bound = eps / (1 - eps)
    return Finding(
        {"as printed": bool(printed)},
        {"pairs_that_satisfy_it": len(printed), "largest_relative_error_corrected": error, "eps": eps},
        [
            Way("solutions: search, sign of 1/m - 1/n for m > n", len(printed), 0),
            Way("relative error within eps/(1-eps)", bool(error <= bound), True),
        ],
        correction=f"1/n_k - 1/n_{{k+1}} >= eps/n_k, which keeps the relative error to {float(error):.2%} at eps = "
        f"{float(eps):.0%}; as printed {len(printed) or 'no'} pairs satisfy it",
        corrected=turned,
    )


@claim("hpcc-43-table-size", HPCC, "4.3", "about 10 KB represent 1/n for n up to 2^22")
def table_size() -> Finding:
    def needed(entry: int) -> float:
        """Bisect for the eps at which entries of n bytes take 10 KB."""
        low, high = 1e-4, 0.5
        for _ in range(50):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if entry * len(table(middle)) < 10e3 else (middle, high)
        return high

    at = {f"eps_with_{entry}_byte_entries": needed(entry) for entry in (4, 6, 8)}
    eps = at["eps_with_8_byte_entries"]
    sizes = [entry * len(table(e)) for entry in (4, 8) for e in (0.001, 0.01)]
    # All n up to 1/eps, and from there on a factor 1/(1-eps) rounded up, half of one more on average.
    n, count = 1 / eps, 1 / eps
    while n < 2**22:
        n, count = n / (1 - eps) + 0.5, count + 1
    return Finding(
        {"for any eps from 0.1 to 1 %, entries of 4 to 8 B": all(abs(size / 10e3 - 1) < 0.1 for size in sizes)},
        at | {"least_bytes": min(sizes), "most_bytes": max(sizes), "entries_at_1_percent": len(table(0.01))},
        [Way("entries at that eps: greedy, geometric", len(table(eps)), count, 0.03)],
        restricted=all(0.001 < e < 0.01 for e in at.values()),
        conditions="eps between 0.4 and 1 %, which the paper does not print: "
        + ", ".join(f"{value:.2%} ({key.split('_')[2]} B)" for key, value in at.items()),
    )


@claim("hpcc-43-flows", HPCC, "4.3", "9K flows are expected of an ASIC's clock, e.g. 0.2 ns in place of 5 ns")
def concurrent_flows(fpga: Fraction = Fraction(5), asic: Fraction = Fraction(1, 5)) -> Finding:
    """Compute the flows by the example's clocks; and the clock for 9K, if the example is exact to its only digit."""
    # 50 flows per engine, six engines; a scan of the array takes 50 ticks.
    scan = 50 * fpga
    flows = 6 * (scan / asic)
    ticks, time = 0, asic
    while time <= scan:
        ticks, time = ticks + 1, time + asic
    needed = fpga / Fraction(9000, 300)
    return Finding(
        {"with the example's clocks": rounds_to(float(flows) / 1e3, "9")},
        {
            "flows": flows,
            "clock_ratio": fpga / asic,
            "ratio_for_9000": Fraction(9000, 300),
            "clock_for_9000_ns": float(needed),
        },
        [Way("flows: quotient, one in each tick of a scan, counted", flows, 6 * ticks)],
        restricted=rounds_to(float(needed), f"{float(asic):.1f}"),
        conditions=f"an ASIC's tick of {float(needed):.3f} ns, which is the example's {float(asic):g} ns rounded; by "
        f"the example as it stands, and six engines, {flows} flows",
    )


@claim("hpcc-51-pfc", HPCC, "5.1", "PFC is triggered when an ingress queue takes more than 11 % of the free buffer")
def pfc() -> Finding:
    # Switches set alpha to a power of two: the threshold is alpha times what is free.
    alphas = [Fraction(2) ** k for k in range(-7, 4)]
    of_free = {a: a for a in alphas}
    of_all = {a: a / (1 + a) for a in alphas}  # one queue grows until q = alpha (B - q)
    matching = [a for a in alphas if rounds_to(100 * float(of_free[a]), "11")]
    instead = [a for a in alphas if rounds_to(100 * float(of_all[a]), "11")]
    queue = Fraction(0)
    step = Fraction(1, 10_000)
    while queue + step <= instead[0] * (1 - queue):
        queue += step
    return Finding(
        {
            "of what the queue leaves free, alpha a power of two": bool(matching),
            "of what was free before it grew": len(instead) == 1,
        },
        {"alpha": instead[0], "share_of_free": of_free[instead[0]], "share_of_all": of_all[instead[0]]},
        [Way("share of all that one queue gets: closed form, filling", of_all[instead[0]], queue, 1e-3)],
        restricted=len(instead) == 1,
        conditions=f"of what was free before the queue grew, {float(of_all[instead[0]]):.1%} with alpha = "
        f"{instead[0]}; of what it leaves free that is {float(of_free[instead[0]]):.1%}, and no power of two is 11 %",
    )


@claim("hpcc-51-half", HPCC, "5.3, footnote 6", "alpha = 1 allows a single congested egress port half of the buffer")
def half() -> Finding:
    buffer, queue, alpha = 100_000, 0, 1
    while queue < alpha * (buffer - queue):
        queue += 1
    share = Fraction(alpha, 1 + alpha)
    return Finding(
        {"as printed": share == Fraction(1, 2)},
        {"share": share},
        [Way("share: alpha/(1 + alpha), filling cell by cell", share, Fraction(queue, buffer))],
    )


def wai_bound(rate: int, round_trip: Fraction, flows: int) -> Fraction:
    """W_AI = W_init (1 - eta)/N [bytes], section 3.3."""
    return Fraction(rate, 8) * round_trip * (1 - ETA) / flows


def _wai(printed: int, rate: int, round_trip: Fraction, flows: int) -> Finding:
    from fluidcc import HPCC as HPCC_SCHEME
    from fluidcc import equilibrium, incast
    from fluidcc.scenario.model import resolve
    from fluidcc.scenario.round_trips import serialisation_rtt

    exact = wai_bound(rate, round_trip, flows)
    # What is printed is a choice at or below the bound, within 5 % of it.
    load = ETA + flows * Fraction(printed) / (Fraction(rate, 8) * round_trip)  # A.3, of windows
    trip = float(round_trip)
    stored = resolve(incast(1, rate=f"{rate}bps", scheme=HPCC_SCHEME()))
    lag = trip - serialisation_rtt(stored, stored.flows[0])  # a path of just that round trip
    settled = equilibrium(
        incast(flows, rate=f"{rate}bps", scheme=HPCC_SCHEME(w_ai=printed, base_rtt=trip, feedback_delay=lag))
    )
    return Finding(
        {"as printed": Fraction(95, 100) <= printed / exact <= 1},
        {"bound_bytes": exact, "printed_bytes": printed, "utilisation_with_the_printed": load},
        [
            Way(
                "utilisation: U* up to 1, fluidcc.equilibrium",
                float(min(load, 1)),
                settled.links[0]["utilisation"],
                1e-9,
            )
        ],
    )


@claim("hpcc-54-wai-16", HPCC, "5.4", "16 flows at 100 Gb/s and 4 us: W_AI should not exceed about 150 B")
def wai_16(printed: int = 150) -> Finding:
    return _wai(printed, 10**11, Fraction(4, 10**6), 16)


@claim("hpcc-51-wai", HPCC, "5.1, footnote 4", "100 flows at 100 Gb/s and 13 us: W_AI = 80 B")
def wai_80(printed: int = 80) -> Finding:
    return _wai(printed, 10**11, Fraction(13, 10**6), 100)


@claim("hpcc-54-wai-100", HPCC, "5.4", "100 flows at 100 Gb/s and 4 us: 25 B")
def wai_25(printed: int = 25) -> Finding:
    return _wai(printed, 10**11, Fraction(4, 10**6), 100)


def _behind(delay: Fraction, queue: Fraction, rate: Fraction) -> Way:
    """A delay [us] against that of packets behind as many others."""
    seen = 1e6 * delay_behind(float(queue), float(rate / 8))
    return Way("us: quotient, packets behind as many others", float(delay), seen, 1e-9)


@claim("hpcc-54-delay", HPCC, "5.4", "a 13 KB queue means 1 us of delay (100 Gb/s)")
def delay_13(queue: Fraction = Fraction(13_000), rate: Fraction = Fraction(10**11)) -> Finding:
    delay = queue * 8 / rate * 10**6
    return Finding(
        {"as printed": rounds_to(float(delay), "1")},
        {"delay_us": delay},
        [_behind(delay, queue, rate)],
        sample=BEHIND,
    )


@claim("hpcc-52-reduction", HPCC, "1, 5.2", "53.9 to 2.70 in FCT slowdown is a 95 % reduction")
def reduction(before: float = 53.9, after: float = 2.70) -> Finding:
    share = 100 * (1 - after / before)
    # Not an effect of rounding: the printed numbers to half their last digits.
    low, high = (100 * (1 - (after + s * 0.005) / (before - s * 0.05)) for s in (1, -1))
    return Finding(
        {"as printed": rounds_to(share, "95")},
        {"reduction_percent": share, "least_percent": low, "most_percent": high},
        [
            Way(
                "reduction: floats, exact",
                share,
                float(100 - 100 * Fraction(str(after)) / Fraction(str(before))),
                1e-12,
            )
        ],
    )


@claim("hpcc-52-queue-delay", HPCC, "1, 5.2", "22.9 KB are 7.3 us of queueing delay at 25 Gb/s")
def queue_delay(queue: Fraction = Fraction(22_900), rate: Fraction = Fraction(25 * 10**9)) -> Finding:
    delay = queue * 8 / rate * 10**6
    return Finding(
        {"as printed": rounds_to(float(delay), "7.3")},
        {"delay_us": delay, "bytes_in_7.3_us": Fraction(73, 10) / 10**6 * rate / 8},
        [_behind(delay, queue, rate)],
        sample=BEHIND,
    )


@claim("hpcc-52-rtts", HPCC, "5.2", "2 ms are more than 350 RTTs")
def rtts(base: Fraction = Fraction(54, 10), printed: int = 350) -> Finding:
    """Count RTTs by the base RTT within a rack (5.1), which Fig. 9e's mice have; across racks it is 8.5 us."""
    count = 2000 / base
    return Finding(
        {"as printed": count > printed},
        {
            "rtts": count,
            "largest_rtt_us": Fraction(2000, printed),
            "rtts_across_racks": 2000 / Fraction(85, 10),
        },
        # The rack that Fig. 9 is simulated on, whose delays are not ours.
        [Way("RTTs in 2 ms: quotient, messages of 1 KB there and back in packets", float(count), 2e-3 / mouse(), 1e-6)],
        sample=sample.packets(ALONE),
    )


def mouse(size: str = "1KB") -> float:
    """Time until a message of Fig. 9e is acknowledged, on the testbed's rack with nothing else on it [s]."""
    import fluidcc as fc
    from fluidcc.proofs.hpcc import testbed

    run = fc.simulate(testbed.rack("hpcc", 1, size=size), ALONE, engine="packet")
    return run.summary["fct_s"][0]


@claim("hpcc-53-slower", HPCC, "5.3", "long flows are 1.24 times slower: residual capacities 44.6 % and 36.1 %")
def slower(others: float = 44.6, hpcc: float = 36.1) -> Finding:
    ratio = others / hpcc
    low, high = (others - 0.05) / (hpcc + 0.05), (others + 0.05) / (hpcc - 0.05)
    return Finding(
        {"as printed": rounds_to(ratio, "1.24")},
        {"ratio": ratio, "least": low, "most": high},
        [Way("as printed, and within what rounding allows", rounds_to(ratio, "1.24"), low <= 1.245 and high >= 1.235)],
    )


@claim("hpcc-53-residual", HPCC, "5.3", "95 % - load (1 + INT overhead) = 36.1 %, with 42 B per 1 KB packet (4.1, 5.1)")
def residual(others: float = 44.6, payload: float = 1000.0) -> Finding:
    load = 100 - others
    left = 95 - load * (1 + 42 / payload)
    implied = (95 - 36.1) / load - 1
    # Counted in packets: how many of each kind fit into a second of a 25 Gb/s link.
    rate = 25e9 / 8
    number = load / 100 * rate / payload
    counted = 95 - 100 * number * (payload + 42) / rate
    return Finding(
        {"as printed": rounds_to(left, "36.1")},
        {
            "residual_percent": left,
            "times_slower": others / left,
            "overhead_that_gives_36.1": implied,
            "packet_that_gives_36.1_bytes": 42 / implied,
        },
        [Way("residual: formula, packets counted", left, counted, 1e-12)],
        correction=f"{left:.2f} %, and {others / left:.3f} times slower",
        corrected=cut_to(left, "37.2") and rounds_to(95 - load * (1 + implied), "36.1"),
    )


if __name__ == "__main__":
    main(__name__)
