"""HPCC++: the numbers of the slides against each other."""

from __future__ import annotations

from fractions import Fraction

from fluidcc.claims.claim import Finding, Way, claim
from fluidcc.claims.runner import main
from fluidcc.papers import HPCCPP

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


@claim("hpccpp-rx-feedback", HPCCPP, "Rx, experiments", "much less feedback: notifications against ACKs")
def feedback() -> Finding:
    counts = {"in-cast 2": (114_924, 21_913), "in-cast 8": (128_724, 45_249), "come and go": (193_116, 110_940)}
    ratios = {name: acks / nps for name, (acks, nps) in counts.items()}
    # One notification per flow in 4.5 us: how long the run was, if nothing sudden asked for more.
    period = 4.5e-6
    lasted = {name: counts[name][1] / flows * period for name, flows in (("in-cast 2", 2), ("in-cast 8", 8))}
    acked = {name: 0.95 * 25e9 / 8 * lasted[name] / counts[name][0] for name in lasted}
    return Finding(
        {"less than half as many in each experiment": all(ratio > 2 for ratio in ratios.values())},
        {f"acks_per_notification_{name}": ratio for name, ratio in ratios.items()}
        | {f"seconds_at_one_per_flow_and_4.5_us_{name}": value for name, value in lasted.items()}
        | {f"bytes_per_ack_then_{name}": value for name, value in acked.items()},
        [
            Way(f"saved, {name}: from the ratio, from the counts", 1 - 1 / ratios[name], (a - n) / a, 1e-12)
            for name, (a, n) in counts.items()
        ],
        restricted=ratios["in-cast 2"] > 2 and ratios["in-cast 8"] > 2,
        conditions=f"incast; where flows come and go it is {1 / ratios['come and go']:.0%} of the ACKs",
    )


if __name__ == "__main__":
    main(__name__)
