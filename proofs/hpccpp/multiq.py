"""HPCC++, MultiQ: what its three branches do to a class, and what HPCC as it is does to one.

Unit of rate: the line B, but for packets; of data: B T. A class of N flows with window W each has U* = eta + N a/B at
rest under HPCC's own U, a = W_AI/T: its windows are U B T, which beyond what is served, A T, wait.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import sympy

from fluidcc.proofs.papers import HPCCPP
from fluidcc.proofs.shared import sample
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main
from fluidcc.theory.recursion import multiq
from fluidcc.theory.recursion.classes import share_link

ETA = Fraction(19, 20)
LINE, FLOWS, CLASSES = 100e9, 5, 3  # bit/s; HPCC++ flows; classes of equal weight, the slides' set-up
UNTIL = 10e-3  # s, runs of packets, of which the second half is measured
AI = 0.5e9  # bit/s: 0.005 of the line
PRINTED_AI = 5e9  # bit/s, what the slides add in brackets
INCREASES = (1e6, 0.1e9, AI, PRINTED_AI)  # bit/s a flow, of a class alone; and the default W_AI
ABOUT_LIMIT = 0.05  # of it, below which a class has not found its limit
PACKETS = 0.1  # between a fluid's number and packets': windows are of some five packets each


class Run(NamedTuple):
    """A class of HPCC++ flows in packets, over the second half of 10 ms: shares of the line, BDPs."""

    served: float
    utilisation: float
    queue: float
    pacing: np.ndarray


def _scenario(rule: str, ai: float | None, classes: int, start: str | None, beside: str) -> Any:
    """Make the resolved scenario of `packets`; ``ai`` None: HPCC's default W_AI."""
    import fluidcc as fc
    from fluidcc.scenario.model import resolve
    from fluidcc.schemes.hpcc_multiq import HPCCMultiQ
    from fluidcc.schemes.none import NoControl

    first = HPCCMultiQ(multiq=rule, rate_ai=None if ai is None else f"{ai}bps")
    other = NoControl(schedule=f"0:{beside}") if beside else fc.DCTCP()
    link = fc.Link(f"{LINE}bps", "1us", fc.RED("300KB", "300KB", 1.0), "bottleneck", "switch", "receiver")
    flows = tuple(
        fc.Flow(
            (0,),
            other if c else first,
            f"{LINE}bps",
            initial_rate=None if c else start,
            traffic_class=c,
            source=f"host {c}.{i}",
            target="receiver",
        )
        for c in range(classes)
        for i in range(1 if c and beside else FLOWS)
    )
    kinds = (fc.TrafficClass(),) * (classes if classes > 1 else CLASSES)
    return resolve(fc.Scenario((link,), flows, classes=kinds, packet_size="1500B"))


@functools.cache
def packets(rule: str, ai: float | None, classes: int = CLASSES, start: str | None = None, beside: str = "") -> Run:
    """Run classes of equal weight: HPCC++ in the first, DCTCP in the others, or one scripted sender at a fixed rate.

    ``classes`` have flows; the link has as many, or `CLASSES` if only the first has any. ``ai`` None: the default W_AI.
    """
    import fluidcc as fc
    from fluidcc.scenario.round_trips import largest_base_rtt

    scenario = _scenario(rule, ai, classes, start, beside)
    trace = fc.simulate(scenario, UNTIL, engine="packet", seed=1)
    half = len(trace["time"]) // 2
    product = LINE / 8 * largest_base_rtt(scenario)
    return Run(
        sum(trace.summary["rate_bytes_per_s"][:FLOWS]) / (LINE / 8),
        float(trace["utilisation_estimate"].values[half:, :FLOWS].mean()),
        float(trace["class_queue"].values[half:, 0, 0].mean() / product),
        trace["pacing_rate"].values[half:, :FLOWS].sum(axis=1) / (LINE / 8),
    )


def runs(count: int) -> str:
    """Describe a number of `packets` runs: other classes' marks are at a step, and nothing is drawn."""
    return sample.packets(UNTIL, count, since=UNTIL / 2)


def step(rate: Fraction, share: Fraction, served: Fraction) -> Fraction:
    """R eta/U by the slides' branches, exactly."""
    sent, waits = min(rate, served), max(rate - served, Fraction(0))
    if sent <= share:
        used = (sent + waits) / share
    elif waits:
        used = waits / sent + 1
    else:
        used = sent / ((sent + 1) / 2)
    return rate * ETA / used


@claim(
    "hpccpp-multiq-branches", HPCCPP, "MultiQ", "U is the paper's formula adapted: its branches agree at txRate = w B"
)
def branches() -> Finding:
    w, q, tx, B, T = sympy.symbols("w q tx B T", positive=True)
    below = q / (w * B * T) + tx / (w * B)
    waiting, idle = q / (tx * T) + 1, tx / ((tx + B) / 2)
    at = {tx: w * B}
    with_backlog = sympy.simplify((below - waiting).subs(at)) == 0
    jump = sympy.simplify(idle.subs(at))
    share, near = 0.4, 1e-9
    just = multiq.utilisation(np.array([share - near, share + near]), share=share)
    held = multiq.utilisation(np.array([share - near, share + near]), share=share, served=share)
    number = float(jump.subs(w, share))
    return Finding(
        {"with a backlog": bool(with_backlog), "without one": bool(sympy.simplify(jump - 1) == 0)},
        {"u_above_w_B_without_backlog": str(jump), "at_w_0.4": number},
        [
            Way(
                "U just above w B without backlog, w = 0.4: algebra, fluidcc.theory.recursion",
                number,
                float(just[1]),
                1e-8,
            ),
            Way("U just below it", 1.0, float(just[0]), 1e-8),
            Way("U just above it, backlogged", 1.0, float(held[1]), 1e-8),
        ],
        restricted=bool(with_backlog),
        conditions=f"with a backlog; without one U jumps from 1 to {jump}",
    )


def default_increase() -> float:
    """Additive increase of a flow by HPCC's default W_AI, once per base RTT [bit/s]."""
    from fluidcc.contract.bind import bind

    scenario = _scenario("slides", None, 1, None, "")
    return float(8 * bind(scenario, scenario.flows[0]).rate_ai)


def alone(rate: Fraction, share: Fraction, increase: Fraction) -> float:
    """Rate at which a class alone settles by the slides' branches, from this one, with an increase per round trip."""
    for _ in range(400):
        rate = (step(rate, share, Fraction(1)) + increase).limit_denominator(10**12)
    return float(rate)


@claim("hpccpp-multiq-search", HPCCPP, "MultiQ", "halfway to the line each time: a class finds the limit", slow=True)
def search(share: Fraction = Fraction(1, CLASSES)) -> Finding:
    """A class alone of five flows, from 1 and 20 Gb/s each: its limit is eta B, and what it adds beyond."""
    R, B = sympy.symbols("R B", positive=True)
    eta = sympy.Rational(ETA.numerator, ETA.denominator)
    above = sympy.solve(sympy.Eq(R * R / ((R + B) / 2), R * eta), R)[0].subs(B, 1)
    starts = {"low": (Fraction(1, 20), "1Gbps"), "high": (Fraction(1), "20Gbps")}
    increases = sorted([*INCREASES, default_increase()])
    ends, seen = {}, {}
    for ai in increases:
        total = Fraction(FLOWS * ai / LINE).limit_denominator(10**9)
        for name, (rate, each) in starts.items():
            ends[name, ai] = alone(rate, share, total)
            seen[name, ai] = packets("slides", None if ai == default_increase() else ai, 1, each).served
    ours = {name: packets("spare", INCREASES[0], 1, each).served for name, (_, each) in starts.items()}
    limit, least = float(ETA), float((1 - ETA) * share)
    # The third branch with an increase: R = eta (R + B)/2 + a; the first: R = eta w B + a, up to w B.
    finds = {ai: min(ends["low", ai], ends["high", ai]) > limit * (1 - ABOUT_LIMIT) for ai in increases}
    stays = [ai for ai in increases if ends["low", ai] < share]
    locked = [ai for ai in increases if seen["low", ai] < share]
    first = INCREASES[0]
    return Finding(
        {
            "at 5 Gb/s a flow, as in brackets": finds[PRINTED_AI],
            "at 0.5 Gb/s a flow, 0.005 of the line": finds[AI],
            "at any increase": all(finds.values()),
        },
        {"increase_gbps": [ai / 1e9 for ai in increases], "least_total_increase_over_B": least}
        | {f"rest_over_B_from_{name}": [ends[name, ai] for ai in increases] for name in starts}
        | {f"packets_served_over_B_from_{name}": [seen[name, ai] for ai in increases] for name in starts}
        | {f"counting_what_is_unused_from_{name}": value for name, value in ours.items()},
        [
            *(
                Way(
                    f"rest from below at {ai / 1e9:.3g} Gb/s: eta w B + N a, iteration",
                    float(ETA * share) + FLOWS * ai / LINE,
                    ends["low", ai],
                    1e-8,
                )
                for ai in stays
            ),
            Way("rest from above: root of the third branch, iteration", float(above), ends["high", first], 1e-3),
            # A whole packet of a window of some ten, and W_AI.
            *(
                Way(
                    f"served from {name} at {ai / 1e9:.3g} Gb/s: recursion, packets",
                    min(ends[name, ai], 1.0),
                    seen[name, ai],
                    0.02,
                )
                for name, ai in ends
                if ai not in set(stays) - set(locked)
            ),
        ],
        restricted=finds[PRINTED_AI] and finds[AI] and stays == [ai for ai in increases if FLOWS * ai / LINE < least],
        conditions="a total additive increase of more than (1 - eta) w B, with five flows and w = "
        f"{share}, {least * LINE / FLOWS / 1e9:.3f} Gb/s each. With less the recursion locks in at eta w B + N a; "
        f"packets of 1500 B from 1 Gb/s each do up to {max(locked) / 1e9:g} Gb/s, and are served "
        + ", ".join(f"{seen['low', ai]:.3f} B at {ai / 1e9:.3g}" for ai in increases)
        + f" Gb/s. Without an increase it stays at {float(above):.3f} B from above",
        correction="with U over max(w B, own rate + what no class uses) it is eta B from anywhere, whatever the "
        f"increase: {ours['low']:.3f} and {ours['high']:.3f} B in packets at {first / 1e9:g} Gb/s a flow",
        corrected=all(abs(value / limit - 1) < 0.02 for value in ours.values()),
        sample=f"the verdict is of the recursion, exactly; beside it {runs(len(seen) + len(ours))}",
    )


@claim(
    "hpccpp-multiq-between",
    HPCCPP,
    "MultiQ",
    "a class can be served at any rate between its minimum and the line's: MultiQ has an equilibrium for each",
    slow=True,
)
def between(share: Fraction = Fraction(1, 2)) -> Finding:
    low, high = share / ETA, ETA / (2 - ETA)
    fixed_points, periods = {}, {}
    for k in range(1, 20):
        served = low + (high - low) * Fraction(k, 20)
        rate = served  # from above: backlogged a step later
        for _ in range(200):
            rate = step(rate, share, served).limit_denominator(10**12)
        cycle = [rate]
        for _ in range(63):
            cycle.append(step(cycle[-1], share, served))
        fixed_points[served] = step(rate, share, served) == rate
        periods[served] = next((n for n in range(1, 64) if abs(cycle[n] - rate) < Fraction(1, 10**9)), 0)
    # Two steps exactly: from eta A, not backlogged, halfway to the line, backlogged, and back.
    at = Fraction(6, 10)
    one = ETA * at
    two = step(one, share, at)
    back = step(two, share, at)
    orbit = multiq.orbit(float(at), share=float(share), served=float(at)).rates
    seen = {rule: packets(rule, 1e6, 2, None, "40Gbps").pacing for rule in ("slides", "spare")}
    amplitude = {rule: float(np.percentile(p, 95) - np.percentile(p, 5)) for rule, p in seen.items()}
    kept = step(share * ETA, share, share) == share * ETA
    return Finding(
        {"w B/eta < A < eta B/(2 - eta)": all(fixed_points.values()), "A = w B": kept},
        {
            "two_cycle_over_B_at_w_0.5_A_0.6": [one, two],
            "periods": sorted(set(periods.values())),
            "services_without_an_equilibrium": sum(not fixed_point for fixed_point in fixed_points.values()),
            "packets_amplitude_over_B_at_A_0.6": amplitude["slides"],
            "packets_amplitude_over_B_counting_what_is_unused": amplitude["spare"],
        },
        [
            Way("the two-cycle returns, exactly", back, one),
            Way("its lower rate: exact, fluidcc.theory.recursion", float(one), min(orbit), 1e-9),
            Way("its upper rate: exact, fluidcc.theory.recursion", float(two), max(orbit), 1e-9),
            Way(
                "oscillations: recursion, packets (by a tenth of the line)", bool(two != one), amplitude["slides"] > 0.1
            ),
            Way("settles with what is unused counted: recursion, packets", True, amplitude["spare"] < 0.05),
        ],
        restricted=kept and all(periods.values()),
        conditions="A = w B, all others backlogged; for w B/eta < A < eta B/(2 - eta) there are cycles, of "
        f"{min(periods.values())} to {max(periods.values())} steps at w = {share}",
        sample=f"{len(fixed_points)} services, evenly between the ends, exactly; beside them {runs(len(seen))}",
    )


@claim(
    "hpccpp-multiq-fair", HPCCPP, "Before and after", "with MultiQ each class's rate achieves its fair rate", slow=True
)
def fair() -> Finding:
    shares = {rule: packets(rule, AI).served for rule in ("slides", "off")}
    fixed_point = share_link(
        [1 / CLASSES] * CLASSES, [0.2, 2.0, 2.0], rules=["slides", "fixed", "fixed"], increase=0.025
    )
    served = float(fixed_point.served[-1, 0])
    return Finding(
        {"beside backlogged classes": abs(CLASSES * shares["slides"] - 1) < 0.05},
        {
            "share_of_line": shares["slides"],
            "share_of_line_with_the_port_s_queue_and_rate": shares["off"],
            "queue_bdp": packets("slides", AI).queue,
            "queue_bdp_unmodified": packets("class", AI).queue,
        },
        [Way("share of the line: recursion, packets", served, shares["slides"], 0.05)],
        sample=runs(len(shares) + 1),
    )


def equilibrium_of_hpcc() -> tuple[sympy.Expr, sympy.Expr, tuple[sympy.Symbol, ...]]:
    """U* and the queue over B T of a class served at A under HPCC's own U, and the symbols eta, a, N, A over B."""
    eta, a, N, A, W, U = sympy.symbols("eta a N A W U", positive=True)
    used = sympy.solve([sympy.Eq(W, W * eta / U + a), sympy.Eq(N * W, U)], [W, U], dict=True)[0][U]
    return used, used - A, (eta, a, N, A)


@claim(
    "hpccpp-unmodified-queue",
    HPCCPP,
    "MultiQ, w/o changes",
    "if txRate is only a fraction of B, qlen must be larger for U to be about 1; the lower, the longer",
    slow=True,
)
def unmodified(ai: float = AI) -> Finding:
    used, waits, symbols = equilibrium_of_hpcc()
    values: Any = dict(zip(symbols, (float(ETA), ai / LINE, FLOWS, 1 / CLASSES), strict=True))
    U, q = float(used.subs(values)), float(waits.subs(values))
    longer = sympy.diff(waits, symbols[-1]) == -1
    run = share_link(
        [1 / CLASSES] * CLASSES,
        [0.2, 2.0, 2.0],
        rules=["class", "fixed", "fixed"],
        increase=FLOWS * ai / LINE,
        steps=400,
    )
    seen = packets("class", ai)
    return Finding(
        {"U within 10 % of 1, and longer as txRate falls": abs(U - 1) < 0.1 and longer},
        {
            "formula": f"q = (U* - A/B) B T, U* = {used}, a over B",
            "utilisation": U,
            "queue_bdp": q,
            "packets_utilisation": seen.utilisation,
            "packets_queue_bdp": seen.queue,
        },
        [
            Way("U: algebra, recursion of classes", U, float(run.utilization[-1, 0]), 1e-9),
            Way("queue: algebra, recursion of classes", q, float(run.backlog[-1, 0]), 1e-9),
            Way("U: algebra, packets", U, seen.utilisation, PACKETS),
            Way("queue: algebra, packets", q, seen.queue, PACKETS),
        ],
        sample=f"the verdict is algebra; beside it {runs(1)}",
    )


@claim(
    "hpccpp-unmodified-above-1",
    HPCCPP,
    "MultiQ, w/o changes (2)",
    "utilization is maintained above 1 due to additive increase",
    slow=True,
)
def above_one() -> Finding:
    used, _, symbols = equilibrium_of_hpcc()
    at = {}
    for name, ai in (("0.5", AI), ("5", 10 * AI)):
        at[name] = float(used.subs(dict(zip(symbols, (float(ETA), ai / LINE, FLOWS, 1 / CLASSES), strict=True))))
    seen = {name: packets("class", ai).utilisation for name, ai in (("0.5", AI), ("5", 10 * AI))}
    # Senders that set a rate and no window, so that N R = A at equilibrium: R = R eta/U + a.
    R, U, eta, a, N, A = sympy.symbols("R U eta a N A", positive=True)
    alone = sympy.solve([sympy.Eq(R, R * eta / U + a), sympy.Eq(N * R, A)], [R, U], dict=True)[0][U]
    rates = {
        name: float(alone.subs({eta: float(ETA), a: ai / LINE, N: FLOWS, A: 1 / CLASSES}))
        for name, ai in (("0.5", AI), ("5", 10 * AI))
    }
    return Finding(
        {
            "0.5 Gb/s a flow, 0.005 of the line": at["0.5"] > 1,
            "5 Gb/s a flow, as in brackets": at["5"] > 1,
        },
        {f"utilisation_at_{name}_gbps": value for name, value in at.items()}
        | {f"packets_utilisation_at_{name}_gbps": value for name, value in seen.items()}
        | {f"with_rates_and_no_windows_at_{name}_gbps": value for name, value in rates.items()},
        [Way(f"U at {name} Gb/s: algebra, packets", at[name], seen[name], PACKETS) for name in at],
        restricted=at["5"] > 1 and seen["5"] > 1,
        conditions=f"N a > (1 - eta) B, {(1 - float(ETA)) * LINE / FLOWS / 1e9:g} Gb/s for each of {FLOWS} flows",
        sample=f"algebra, and beside it {runs(len(seen))}",
    )


if __name__ == "__main__":
    main(__name__)
