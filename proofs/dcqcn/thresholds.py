"""DCQCN, sections 3.3, 4 and 6.1: CNP rates and buffer thresholds, from the numbers printed beside them."""

from __future__ import annotations

import functools
from fractions import Fraction

import sympy

from fluidcc.proofs.papers import DCQCN
from fluidcc.proofs.shared import sample
from fluidcc.proofs.shared.queues import BEHIND, delay_behind
from fluidcc.proofs.verdict.claim import Finding, Way, claim, cut_to, rounds_to
from fluidcc.proofs.verdict.registry import main

BUFFER, PORTS, HEADROOM, BETA = Fraction(12_000_000), 32, Fraction(22_400), 8  # bytes; Arista 7050QX32, section 4
LINE = Fraction(40 * 10**9, 8)  # bytes/s
UNTIL = 2e-3  # s, a run of packets, of which the second half is measured


def shared() -> Fraction:
    """Return the buffer that the headroom of 8 priorities leaves [bytes]."""
    return BUFFER - 8 * PORTS * HEADROOM


@functools.cache
def solved() -> tuple[float, float]:
    """Largest t_PFC, and largest t_ECN under the static bound, by a linear program over the paper's constraints."""
    from scipy.optimize import linprog

    queues = 8.0 * PORTS
    fits = ([queues, 0.0], float(BUFFER) - queues * float(HEADROOM))  # all at t_PFC, and all headroom in use
    first = ([-1.0, float(PORTS)], 0.0)  # what all ports hold for one egress port came through one ingress queue

    def largest(*wanted: float) -> float:
        rows, limits = zip(fits, first, strict=True)
        found = linprog([-one for one in wanted], A_ub=rows, b_ub=limits, method="highs")
        return -float(found.fun)

    return largest(1, 0), largest(0, 1)


@claim("dcqcn-4-pfc", DCQCN, "4", "t_PFC <= 24.47 KB")
def pfc() -> Finding:
    bound = shared() / (8 * PORTS)
    return Finding(
        {"as printed": cut_to(float(bound) / 1e3, "24.47")},
        {"t_pfc_bytes": bound},
        [Way("t_PFC: formula, linear program", float(bound), solved()[0], 1e-9)],
    )


@claim("dcqcn-4-static", DCQCN, "4", "with the static bound, t_PFC > n t_ECN gives t_ECN < 0.85 KB, less than an MTU")
def static() -> Finding:
    bound = shared() / (8 * PORTS) / PORTS
    return Finding(
        {"as printed": rounds_to(float(bound) / 1e3, "0.85") or cut_to(float(bound) / 1e3, "0.85")},
        {"t_ecn_bytes": bound, "printed_times_ports_bytes": Fraction(850) * PORTS},
        [Way("t_ECN: formula, linear program", float(bound), solved()[1], 1e-9)],
        correction=f"t_ECN < {float(bound) / 1e3:.4f} KB; it is less than an MTU all the same",
        corrected=solved()[1] < 1500,
    )


@claim("dcqcn-4-dynamic", DCQCN, "4", "s <= n t_ECN and t_PFC = beta (B - 8 n t_flight - s)/8 give t_ECN < 21.75 KB")
def dynamic() -> Finding:
    from fluidcc.operators.checks import ecn_bound

    t, n, beta, left, k = sympy.symbols("t n beta B k", positive=True)
    # Worst case: all that waits came through one ingress queue, n t_ECN; PFC must not have fired: t_PFC > n t_ECN.
    bound = sympy.solve(sympy.Eq(beta * (left - k * n * t) / 8, n * t), t)[0]
    formula = beta * left / (8 * n * (beta + 1))
    values = {n: PORTS, beta: BETA, left: sympy.Rational(shared().numerator, shared().denominator)}
    at = {share: float(bound.subs(k, share).subs(values)) for share in (1, 8)}
    number = float(formula.subs(values))
    return Finding(
        # What follows from the printed s, and the number from what follows.
        {"as printed": sympy.simplify(bound.subs(k, 1) - formula) == 0 and cut_to(number / 1e3, "21.75")},
        {"t_ecn_bytes": number, "with_s_up_to_n_t_ecn_bytes": at[1], "with_s_up_to_8_n_t_ecn_bytes": at[8]},
        [
            Way("bound: symbols, fluidcc.audit", number, ecn_bound(12e6, 22.4e3, PORTS, BETA), 1e-12),
            Way("bound: printed, solved with s <= 8 n t_ECN", number, at[8], 1e-12),
        ],
        restricted=sympy.simplify(bound.subs(k, 8) - formula) == 0 and cut_to(number / 1e3, "21.75"),
        conditions=f"s <= 8 n t_ECN, all priorities full; with the printed s <= n t_ECN it is {at[1] / 1e3:.1f} KB",
    )


@claim("dcqcn-33-packets", DCQCN, "3.3", "about 166 packets of 1500 B every 50 us at 40 Gb/s")
def packets(size: int = 1500) -> Finding:
    import fluidcc as fc

    count = LINE * Fraction(50, 10**6) / size
    scenario = fc.incast(1, rate="40Gbps", scheme="none", packet_size=float(size))
    run = fc.simulate(scenario, UNTIL, window=(UNTIL / 2, UNTIL), engine="packet")
    seen = run.summary["goodput_bytes_per_s"][0] * 50e-6 / size
    return Finding(
        {"as printed": cut_to(float(count), "166")},
        {"packets": count, "packets_in_the_engine": seen},
        [Way("packets in 50 us: quotient, packet engine over 1 ms (1 of 3333)", float(count), seen, 3e-4)],
        sample=sample.packets(UNTIL, since=UNTIL / 2),
    )


@claim(
    "dcqcn-33-flows", DCQCN, "3.3", "a CNP per 1-5 us typically supports 10-20 congested flows, each with one per 50 us"
)
def cnp_flows(printed: tuple[int, int] = (10, 20)) -> Finding:
    flows = [Fraction(50) / gap for gap in (5, 1)]
    counted = [sum(1 for _ in range(gap, 51, gap)) for gap in (5, 1)]  # CNPs in one interval
    inside = flows[0] <= printed[0] < printed[1] <= flows[1]
    return Finding(
        {"all of 1-5 us": flows == list(printed), "typically: a part of it": inside},
        {"least_flows": flows[0], "most_flows": flows[1]},
        [
            Way(f"flows at a CNP per {gap} us: quotient, counted", f, c)
            for gap, f, c in zip((5, 1), flows, counted, strict=True)
        ],
        restricted=inside,
        conditions=f"a CNP per {float(Fraction(50, printed[1])):g} to {float(Fraction(50, printed[0])):g} us; 1 to 5 "
        f"us are {flows[0]} to {flows[1]} flows",
    )


@claim("dcqcn-61-delay", DCQCN, "6.1", "100 KB translate to 20 us at 40 Gb/s")
def delay(queue: int = 100_000) -> Finding:
    time = queue / LINE * 10**6
    return Finding(
        {"as printed": rounds_to(float(time), "20")},
        {"delay_us": time},
        [Way("us: quotient, packets behind as many others", float(time), 1e6 * delay_behind(queue, float(LINE)), 1e-9)],
        sample=BEHIND,
    )


if __name__ == "__main__":
    main(__name__)
