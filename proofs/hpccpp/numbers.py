"""HPCC++: the numbers of the slides against each other."""

from __future__ import annotations

from fractions import Fraction

from fluidcc.proofs.papers import HPCCPP
from fluidcc.proofs.shared import sample
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main

ETA = Fraction(19, 20)


@claim("hpccpp-ai", HPCCPP, "MultiQ, simulation setup", "AI = 0.005 (5.0 Gb/s), line rate 100 Gb/s")
def additive_increase(share: Fraction = Fraction(5, 1000), line: int = 100, printed: int = 5) -> Finding:
    increase = share * line
    # What each would do to five flows in a class served at a third: U* of windows, and of rates without windows.
    flows, served = 5, Fraction(line, 3)
    windows = {each: ETA + flows * Fraction(each) / line for each in (increase, printed)}
    rates = {each: ETA / (1 - flows * each / served) for each in (increase, printed)}
    rate = served / flows
    checked = rate * ETA / rates[printed] + printed  # at equilibrium R = A/N, which no window limits
    return Finding(
        {"as printed": increase == printed},
        {
            "increase_gbps": increase,
            "utilisation_by_windows": {str(each): value for each, value in windows.items()},
            "utilisation_by_rates": {str(each): value for each, value in rates.items()},
        },
        [
            Way("increase: share of the line, and the line from it", increase / share, line),
            Way("U by rates at what is printed: formula, its equilibrium", checked, rate),
        ],
        correction=f"{float(increase):g} Gb/s; {printed} Gb/s would be {float(Fraction(printed, line)):g}",
        corrected=float(share * line) == 0.5,
    )


@claim("hpccpp-flits", HPCCPP, "Rx, configuration", "0.025 flits/ns = 25 Gb/s, and 1.25e-4 flits/ns = 128 Mb/s")
def flits() -> Finding:
    printed = {  # flits/ns and bit/s
        "NIC": (Fraction(25, 1000), 25 * 10**9),
        "W_AI, N = 10": (Fraction(125, 10**6), 128 * 10**6),
        "W_AI, N = 100": (Fraction(125, 10**7), Fraction(128 * 10**5)),
    }
    bits = {name: rate / (per_ns * 10**9) for name, (per_ns, rate) in printed.items()}
    ratio = printed["NIC"][1] / printed["W_AI, N = 10"][1]
    line, other = bits["NIC"], bits["W_AI, N = 10"]
    return Finding(
        {"one size of flit": len(set(bits.values())) == 1},
        {f"flit_bits_{name}": value for name, value in bits.items()},
        [
            Way("size of the flits over each other: quotient, ratios of the rates", other / line, 200 / ratio),
            Way("both W_AI: size of the flit", other, bits["W_AI, N = 100"]),
        ],
        correction=f"{float(line * 125 / 1000):g} Mb/s with flits of {line} bits, or {float(other * 25 / 1000):g} Gb/s "
        f"with {other}",
        corrected=line * Fraction(125, 10**6) * 10**9 == 125 * 10**6,
    )


@claim("hpccpp-wai", HPCCPP, "Rx, configuration", "W_AI = 1.25e-4 flits/ns for N = 10 and 1.25e-5 for 100")
def increase_by_rule(line: Fraction = Fraction(25, 1000)) -> Finding:
    rule = {flows: line * (1 - ETA) / flows for flows in (10, 100)}  # HPCC 3.3, over T
    printed = {10: Fraction(125, 10**6), 100: Fraction(125, 10**7)}
    return Finding(
        {"the rule of thumb": rule == printed},
        {f"flits_per_ns_{flows}": float(value) for flows, value in rule.items()},
        [Way(f"U* of {n} flows: A.3, full", ETA + n * each / Fraction(25, 1000), 1) for n, each in printed.items()],
    )


COUNTED = {"in-cast 2": (114_924, 21_913), "in-cast 8": (128_724, 45_249), "come and go": (193_116, 110_940)}
PERIOD = 4.5e-6  # s, between a flow's notifications if nothing sudden asks for more
LASTED = 5e-3  # s, of the runs in packets
APART = 0.03  # of a count: a run's start, and the queue of it, are not at eta


@claim("hpccpp-rx-feedback", HPCCPP, "Rx, experiments", "much less feedback: notifications against ACKs")
def feedback() -> Finding:
    """The slides' counts; and laws of both, which packets check: an ACK a packet, a notification a flow and period.

    What the slides do not say, packets' size among it, is as in figure hpcc-rx.
    """
    from fluidcc.proofs.hpccpp.rx import LINE, WIRE

    ratios = {name: acks / nps for name, (acks, nps) in COUNTED.items()}
    by_law, ways = {}, []
    for flows in (2, 8):
        name = f"in-cast {flows}"
        acks, nps = float(ETA) * LINE * LASTED / WIRE, flows * LASTED / PERIOD
        counted = answers(flows)
        by_law[name] = acks / nps
        ways += [
            Way(f"ACKs, {name}: eta of the line in packets, counted in packets", acks, counted[0], APART),
            Way(f"notifications, {name}: one a flow and period, counted in packets", nps, counted[1], APART),
        ]
    return Finding(
        {
            "the slides' counts: less than half as many in each experiment": all(
                ratio > 2 for ratio in ratios.values()
            ),
            "one a flow and period: less than half as many in both incasts": all(law > 2 for law in by_law.values()),
        },
        {f"acks_per_notification_{name}": ratio for name, ratio in ratios.items()}
        | {f"acks_per_notification_by_law_{name}": law for name, law in by_law.items()},
        ways,
        restricted=all(ratios[name] > 2 for name in by_law),
        conditions=f"incast; where flows come and go it is {1 / ratios['come and go']:.0%} of the ACKs",
        sample=f"the slides' counts, of {len(COUNTED)} runs of theirs; beside them "
        + sample.packets(LASTED, 2 * len(by_law)),
    )


def answers(flows: int) -> tuple[int, int]:
    """ACKs that HPCC's senders get and notifications that they get in its place, in packets."""
    from fluidcc import HPCC, HPCCRx, simulate
    from fluidcc.proofs.hpccpp.rx import CASES, scenario_of

    case = next(case for case in CASES.values() if case.flows == flows)
    schemes = (HPCC(base_rtt="9us", rate_ai=case.rate_ai), HPCCRx(base_rtt="9us"))
    acks, nps = (
        simulate(scenario_of(case, scheme, LASTED), LASTED, engine="packet", window=(0, LASTED)).summary["acks"]
        for scheme in schemes
    )
    return acks, nps


if __name__ == "__main__":
    main(__name__)
