"""HPCC, sections 3.2, 5.1 and 5.4: what bytes in flight tell, an incast's first round, settings that matter little."""

from __future__ import annotations

import functools
from collections import Counter, deque
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from fluidcc.proofs.papers import HPCC
from fluidcc.proofs.shared import sample
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main

LINE = 100e9 / 8  # bytes/s, section 5.4's links
ABOUT = 0.1
SLOTS = 6000  # of a count
ROUND = 1e-3  # s, runs of an incast's first round
QUEUE, LEFT_OUT, MODELLED = 10e-3, 1e-3, 2e-3  # s: runs of queues, what their means leave out; the fluid's run
FINITE, ENDLESS, SINCE = 2e-3, 4e-3, 1e-3  # s, runs of settings; from when on the endless ones' queue is measured
ETAS, STAGES = (0.95, 0.965, 0.98), (0, 1, 5)


class Slots(NamedTuple):
    """Packets in flight of a link's flows, less its estimate (1): in each slot, at its mean; and queues, in packets."""

    least: int
    most: int
    mean: float
    elsewhere: float


def slots(windows: tuple[int, int, int] = (40, 50, 35), trip: int = 60, count: int = SLOTS) -> Slots:
    """Fixed windows of A over links 1 and 2, B over 1, C over 2; one packet per slot, all of the same base RTT.

    Link 1 is looked at. Its txRate is over the last base RTT: what left it in so many slots.
    """
    half = trip // 2
    first: deque[str] = deque("A" * windows[0] + "B" * windows[1])
    second: deque[str] = deque("C" * windows[2])
    coming: tuple[Counter[int], Counter[int], Counter[int], Counter[int]] = (Counter(), Counter(), Counter(), Counter())
    a, b, c, onward = coming
    left: deque[int] = deque()
    over, elsewhere = [], []
    for now in range(count):
        first.extend("A" * a[now] + "B" * b[now])
        second.extend("A" * onward[now] + "C" * c[now])
        if first:
            left.append(now)
            if first.popleft() == "A":
                onward[now + half] += 1
            else:
                b[now + trip] += 1
        if second:
            if second.popleft() == "A":
                a[now + trip - half] += 1
            else:
                c[now + trip] += 1
        while left[0] <= now - trip:
            left.popleft()
        if now >= trip:  # (1) needs a base RTT to count in
            over.append(windows[0] + windows[1] - len(first) - len(left))
            elsewhere.append(sum(one == "A" for one in second))
    settled = slice(count // 2, None)
    return Slots(min(over), max(over), float(np.mean(over[settled])), float(np.mean(elsewhere[settled])))


@claim("hpcc-32-lower-bound", HPCC, "3.2, (1)", "with several bottlenecks I_j is a lower bound of all bytes in flight")
def lower_bound() -> Finding:
    several, one = slots(), slots((0, 90, 20))
    return Finding(
        {"base RTTs alike, txRate over one of them": several.least >= 0 and several.most > 0},
        {
            "missed_packets_least": several.least,
            "missed_packets_most": several.most,
            "missed_packets_with_one_bottleneck": one.most,
        },
        [
            Way("what (1) misses, one bottleneck: counted, nothing", one.most, one.least),
            # A packet that waits at link 2 is back at link 1 that much later than a base RTT after it left.
            Way(
                "what (1) misses, two: counted, A's packets that wait at the other",
                several.mean,
                several.elsewhere,
                0.01,
            ),
        ],
        sample=f"two counts of {SLOTS} slots, of one network each; nothing in them is random",
    )


@functools.cache
def incast(senders: int, engine: str) -> dict[str, float]:
    """Peak of the queue and the time it takes to drain, both over B T and T."""
    import fluidcc as fc
    from fluidcc.proofs.hpcc.common import drain_time, hpcc_incast
    from fluidcc.scenario.model import resolve
    from fluidcc.scenario.round_trips import largest_base_rtt

    scenario = resolve(hpcc_incast(senders))
    T = largest_base_rtt(scenario)
    options: dict[str, Any] = {"seed": 1} if engine == "packet" else {"estimate_error": False}
    trace = fc.simulate(scenario, ROUND, engine=engine, sample_interval=1e-7, **options)
    queue = trace["queue"].values[:, 0]
    return {
        "peak": float(queue.max()) / (LINE * T),
        "drain": drain_time(trace["time"].values, queue) / T,
    }


@claim("hpcc-32-one-round", HPCC, "3.2", "an incast is resolved with only one round of adjustment", slow=True)
def one_round(senders: int = 16) -> Finding:
    from fluidcc.proofs.hpcc.common import hpcc_incast, increase

    # A.2 on one link, exactly, from rates of any ratio.
    rates = [Fraction(n + 1, 3) for n in range(senders)]
    after = [rate / sum(rates) for rate in rates]
    seen = {(n, engine): incast(n, engine) for n in (2, 7, senders) for engine in ("packet", "fluid")}
    late = {n: seen[n, "packet"]["drain"] - seen[n, "packet"]["peak"] for n in (2, 7, senders)}
    over = {n: seen[n, "packet"]["drain"] / seen[n, "packet"]["peak"] for n in (2, 7, senders)}
    fluid = seen[senders, "fluid"]
    return Finding(
        {
            "A.2: on target after one step": sum(after) == 1,
            "packets: the queue drains within one RTT of the least time": max(late.values()) <= 1 + ABOUT,
        },
        {f"round_trips_beyond_the_least_time_{n}": value for n, value in late.items()}
        | {f"drain_over_least_time_{n}": value for n, value in over.items()},
        [
            Way("drain over the least time: packets, fluid", over[senders], fluid["drain"] / fluid["peak"], 0.1),
            Way("peak: packets, what one RTT brings", seen[senders, "packet"]["peak"], senders - 1, 0.1),
        ],
        restricted=sum(after) == 1,
        conditions=f"A.2's rates; in packets ({increase(hpcc_incast(senders))}) the queue takes {late[2]:.1f} (2 "
        f"senders) to {late[senders]:.1f} RTTs longer to drain than if nothing more were sent",
        sample=f"{sample.packets(ROUND, len(late))}; {sample.fluid(ROUND, len(late))}",
    )


@functools.cache
def settled(w_ai: float, preset: str = "hpcc-eval") -> tuple[float, float, float]:
    """Queue of 16:1 in packets over 10 ms, sampled each 1 us: 95th percentile; mean after 1 ms; size of a packet."""
    import fluidcc as fc
    from fluidcc.proofs.hpcc.common import hpcc_incast

    scenario = hpcc_incast(16, preset, w_ai=w_ai)
    trace = fc.simulate(scenario, QUEUE, engine="packet", seed=1, sample_interval=1e-6)
    queue = trace["queue"].values[:, 0]
    return (
        float(np.percentile(queue, 95)),
        float(queue[round(LEFT_OUT / 1e-6) :].mean()),
        scenario.wire_packet_of(scenario.flows[0]),
    )


@claim(
    "hpcc-54-queue",
    HPCC,
    "5.4, Fig. 14b",
    "W_AI up to 150 B: queue within 4 KB at the 95th percentile; 300 B: 13 KB",
    slow=True,
)
def queue_by_increase() -> Finding:
    import fluidcc as fc
    from fluidcc.proofs.hpcc.common import hpcc_incast
    from fluidcc.scenario.model import resolve
    from fluidcc.scenario.round_trips import largest_base_rtt

    presets = ("hpcc-eval", "hpcc-sim")
    found = {(w, preset): settled(float(w), preset) for w in (25, 80, 150, 300) for preset in presets}
    # Half the last digit that is printed, and a packet, by which percentiles of a queue move.
    right = {
        preset: all(found[w, preset][0] <= 4e3 + 500 + found[w, preset][2] for w in (25, 80, 150))
        and abs(found[300, preset][0] - 13e3) <= 500 + found[300, preset][2]
        for preset in presets
    }
    scenario = resolve(hpcc_incast(16, w_ai=300.0))
    fixed_point = 16 * 300 - 0.05 * LINE * largest_base_rtt(scenario)
    fluid = fc.simulate(scenario, MODELLED, estimate_error=False).summary["queue_bytes"]["mean"]
    return Finding(
        {"Algorithm 1": right["hpcc-eval"], "the authors' simulator": right["hpcc-sim"]},
        {f"p95_bytes_{w}_{preset}": found[w, preset][0] for w, preset in found}
        | {
            "mean_bytes_300": found[300, "hpcc-eval"][1],
            "mean_bytes_300_at_equilibrium": fixed_point,
            "mean_over_equilibrium": found[300, "hpcc-eval"][1] / fixed_point,
        },
        [Way("mean queue at 300 B at equilibrium: N W_AI - (1 - eta) B T, fluid model", fixed_point, fluid, 1e-3)],
        sample=f"{sample.packets(QUEUE, len(found))}; {sample.fluid(MODELLED)}",
    )


@claim(
    "hpcc-51-settings",
    HPCC,
    "5.1, footnote 5",
    "maxStage from 0 to 5 and eta from 95 to 98 % all give similar results",
    slow=True,
)
def settings(similar: float = ABOUT) -> Finding:
    """A 16:1 incast of 500 KB each, and one that goes on; "similar" is within 10 %."""
    import fluidcc as fc
    from fluidcc.proofs.hpcc.common import hpcc_incast, increase

    last: dict[tuple[float, int], float] = {}
    waits: dict[tuple[float, int], float] = {}
    for eta in ETAS:
        for stage in STAGES:
            endless = hpcc_incast(16, eta=eta, max_stage=stage)
            finite = fc.incast(16, rate="100Gbps", delay="1us", scheme=endless.flows[0].scheme, size="500KB")
            last[eta, stage] = max(fc.simulate(finite, FINITE, engine="packet", seed=1).summary["fct_s"])
            trace = fc.simulate(endless, ENDLESS, engine="packet", seed=1, window=(SINCE, ENDLESS))
            waits[eta, stage] = trace.summary["queue_bytes"]["p95"]
    plain = hpcc_incast(16)
    wire = plain.wire_packet_of(plain.flows[0]) / 1000
    spread = {name: max(v.values()) / min(v.values()) - 1 for name, v in (("fct", last), ("p95", waits))}
    return Finding(
        {"completion of the incast": spread["fct"] < similar, "queue at the 95th percentile": spread["p95"] < similar},
        {
            "spread_of_completion": spread["fct"],
            "spread_of_p95": spread["p95"],
            "least_p95_bytes": min(waits.values()),
            "most_p95_bytes": max(waits.values()),
        },
        [
            Way(
                f"completion at eta = {eta}: packets, all bytes at eta B",
                last[eta, 5],
                16 * 500e3 * wire / (eta * LINE),
                0.1,
            )
            for eta in (0.95, 0.98)
        ],
        restricted=spread["fct"] < similar,
        conditions=f"completion times ({increase(plain)}); the 95th percentile of the queue goes from "
        f"{min(waits.values()) / 1e3:.1f} to {max(waits.values()) / 1e3:.1f} KB",
        sample=f"an incast for each of {len(last)} settings; {sample.packets(FINITE, len(last))}, and of endless ones: "
        f"{sample.packets(ENDLESS, len(waits), since=SINCE)}",
    )


if __name__ == "__main__":
    main(__name__)
