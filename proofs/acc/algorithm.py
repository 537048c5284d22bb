"""ACC, sections 4.1 to 4.5: Algorithm 1 as printed, run line by line, and the appendix's model against it.

Rates over C, bytes over C T, times over T. x is the excess of the sum of the rates in T_{i-1}, over C.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import sympy

from fluidcc.proofs.acc.sender import REPAIRS, Link, Sender, share
from fluidcc.proofs.papers import ACC
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main

F = Fraction
PERIODS = 40  # of the runs from line rate
# Our copy of the paper garbles line 4, to "R_c = R^1"; we read R_s, with the mark of a footnote.
ALGORITHM_1 = """
function CONGESTED(recvNum, snd_nxt_start, snd_una)
  if halt == false and snd_una > snd_nxt_start then
    R = recvNum * MTU/T;
    R_s = R;
    SourceHalt(R, dS, dA);
  else if halt == true then
    r = dS - dS * R/R_s;
    t_extend = r/R;
    t_Halt <- t_Halt + t_extend;
    t_NextPkt <- t_NextPkt + t_extend;
function UNCONGESTED
  if N_u < 2 then
    RI = RI_Low;
  else
    RI = RI_High;
  R_s = R_s + (lineRate - R_s)/lineRate * RI;
  N_u = N_u + 1;
function UNDETERMINED
  if N_v > P_thresh then
    R_s = R_s/2;
function SOURCEHALT(R, dS, dA)
  if dS > dA then
    t_Halt = (dS - dA)/R;
    t_NextPkt <- t_NextPkt + t_Halt;
    halt = true;
    snd_nxt_start = snd_nxt;
"""


def assigned(name: str) -> list[str]:
    """Return the expressions that the printed lines assign to a variable."""
    return re.findall(rf"^ +{name} (?:=|<-) (.*);$", ALGORITHM_1, re.MULTILINE)


def run(
    rates: list[Fraction], RI: Fraction, repairs: tuple[str, ...] = (), *, periods: int = 12, stale: bool = False
) -> tuple[list[Sender], Link]:
    """Senders of Algorithm 1 on one link, 4 ticks a period."""
    senders = [Sender(rate, RI, repairs, stale=stale) for rate in rates]
    return senders, share(senders, periods, 4)


def line_rate(*repairs: str, flows: int = 4, **options: bool) -> tuple[list[Sender], Link]:
    """Flows that start at line rate: x = N - 1, and T_i cannot send more than T_{i-1}."""
    return run([F(1)] * flows, F(1, 4), repairs, periods=PERIODS, **options)


def listed(values: Iterable[Any]) -> str:
    """Values in words, each once: "2", or "2.1, 3.2 and 4.2"."""
    texts = list(dict.fromkeys(f"{float(value):g}" for value in values))
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def resumed(link: Link, after: int) -> tuple[Fraction, Fraction]:
    """Find when the senders next send after a time at which they halt [periods], and the queue then."""
    n = next(n for n in range(round(after / link.tick), len(link.sent)) if any(link.sent[n]))
    return n * link.tick, link.queue[n - 1]


@claim("acc-41-states", ACC, "4.1", "at the end of each period the flow is congested, undetermined or uncongested")
def states(acks: int = 20) -> Finding:
    """Check every count of CE, UE and unmarked ACKs in a period against the section's three sentences."""

    def of(ce: int, ue: int) -> list[str]:
        rules = {"congested": ce > 0.9 * acks, "undetermined": ce == 0 and ue > 0, "uncongested": ce == ue == 0}
        return [name for name, holds in rules.items() if holds]

    found = {(ce, ue): of(ce, ue) for ce in range(acks + 1) for ue in range(acks + 1 - ce)}
    none = [ce for (ce, _), names in found.items() if not names]
    few = {ce for ce in range(acks + 1) if 0 < 10 * ce <= 9 * acks}
    return Finding(
        {"as printed": all(len(names) == 1 for names in found.values())},
        {"acks": acks, "markings": len(found), "markings_of_no_state": len(none)},
        [Way("markings of no state: enumerated, 0 < CE <= 90 %", len(none), sum(acks + 1 - ce for ce in few))],
        restricted=all(len(names) == 1 for (ce, _), names in found.items() if ce not in few),
        conditions=f"no CE, or more than {max(none)} of {acks} ACKs with it: with {min(none)} to {max(none)} no state "
        f"is said, nor what to do ({len(none)} of {len(found)} markings)",
    )


@claim("acc-42-halt-time", ACC, "4.2", "flow k's packets drain in (dS_k - dA_k)/R_k, the queue in sum (dS_k - dA_k)/C")
def halt_time() -> Finding:
    S, total = sympy.symbols("S Sigma", positive=True)
    R = S / total  # the share of what arrives
    own = sympy.simplify((S - R) / R - (total - 1)) == 0
    rates = [F(3, 4), F(1, 2), F(1, 4)]
    senders, link = run(rates, F(1, 4), REPAIRS, periods=3)
    halts = [sender.of("halt")[0] for sender in senders]
    queue = link.queue[round(1 / link.tick) - 1]
    return Finding(
        {"as printed": bool(own) and len(set(halts)) == 1},
        {"t_halt_periods": halts[0], "rates": rates},
        [Way("t_Halt: line 29 run, queue of T_{i-1} over C", halts[0], queue)],
    )


@claim("acc-42-line-7", ACC, "4.2, Alg. 1", "line 7's r is what was sent in T_i beyond the estimated pipe")
def line_7() -> Finding:
    dS, R = sympy.symbols("dS R", positive=True)
    overwritten = sympy.simplify((dS - dS * R / sympy.Symbol("R_s")).subs("R_s", R))  # line 4, then line 7
    printed, link = line_rate()
    kept, _ = line_rate("keep")
    excess = F(1) - F(1, 4)  # a flow sends 1 in T_i and is served 1/4
    r = {name: flows[0].of("extend")[0] * flows[0].R for name, flows in (("printed", printed), ("kept", kept))}
    _, left = resumed(link, 3)
    peak = max(link.queue)
    return Finding(
        {"line 4 first, as we read it": r["printed"] == excess},
        {"excess_of_a_flow": excess, "r_printed": r["printed"], "r_kept": r["kept"], "queue_left_C_T": left},
        [
            Way("r as printed: sympy, run", F(str(overwritten)), r["printed"]),
            Way("queue left as the flows resume: run, N times the excess", left, 4 * excess),
        ],
        restricted=r["kept"] == excess,
        conditions=f"R_s is the rate from before line 4, and r = {r['kept']} C T; line 4, which our "
        f"copy garbles and we read as R_s = R, makes r = {overwritten}, with {left / peak} of the queue left",
    )


@claim("acc-42-drains", ACC, "4.2", "accumulated packets are drained without under-utilizing the link")
def drains() -> Finding:
    from fluidcc.schemes.acc.period_map import acc_map

    left, busy, end = {}, {}, {}
    for name, repairs in (("printed", ()), ("repaired", ("keep", "once"))):
        _, link = line_rate(*repairs)
        end[name], left[name] = resumed(link, 3)
        busy[name] = all(served == link.tick for served in link.served)
    # x below 1: t_Halt is over before the extension comes, and the flows send meanwhile.
    rates, RI = [F(1, 2)] * 2, F(1, 4)
    senders, link = run(rates, RI, ("keep", "once", "halt", "N_u"))
    x = sum(rate + (1 - rate) * RI for rate in rates) - 1
    late = resumed(link, int(next(time for time, kind, _ in senders[0].log if kind == "halt")))[1]
    mapped = acc_map([F(1)] * 4, form="algorithm", r=F(1, 4), r_high=F(1, 4), steps=40, exact=True)
    lasts = mapped.time[3] - mapped.time[2]
    halted = end["repaired"] - 2
    S, total = sympy.symbols("S Sigma", positive=True)
    R = S / total
    both = sympy.simplify((S - R) / R + (S - S * R / S) / R - 2 * (total - 1)) == 0
    return Finding(
        {"as printed": left["printed"] == 0 and busy["printed"]},
        {f"queue_left_{name}_C_T": queue for name, queue in left.items()}
        | {"halt_periods": halted, "queue_left_repaired_x_below_1_C_T": late},
        [
            Way("halt: Algorithm 1 run line by line, fluidcc.theory.acc_map", halted, lasts),
            Way("utilisation: fluidcc.theory.acc_map, a busy link", mapped.utilization, 1),
        ],
        restricted=left["repaired"] == 0 < late and busy["repaired"] and bool(both),
        conditions=f"line 7 with the R_s of before line 4 (as printed {left['printed']} C T are left), one extension, "
        f"and this before t_Halt is over (else {late} C T are left, at x = {x}): from line rate t_Halt + t_extend = "
        f"{halted} periods, just as long as the queue of T_{{i-1}} and T_i takes",
    )


@claim("acc-42-extends", ACC, "4.2, Alg. 1", "at the end of T_{i+1} the halt is extended by T_i's excess")
def extends() -> Finding:
    """ACKs of what is queued go on to carry CE while the flow halts, so that lines 6 to 10 run each period."""
    halted, extensions, idle = {}, {}, F(0)
    for dS, stale in (("dS of T_{i-1}", True), ("dS of the period before the last", False)):
        senders, link = line_rate("keep", stale=stale)
        end, _ = resumed(link, 3)
        halted[dS] = end - 2
        extensions[dS] = sum(kind == "extend" and time < end and value > 0 for time, kind, value in senders[0].log)
        idle = max(idle, end - sum(link.served[: round(end / link.tick)]))
    once, link = line_rate("keep", "once", stale=True)
    longest = halted["dS of T_{i-1}"]
    ended = resumed(link, 3)[0] - 2
    return Finding(
        {name: time == 6 for name, time in halted.items()},
        {"needed_periods": 6, "halt_periods": longest, "idle_periods": idle, "extensions": list(extensions.values())},
        [Way("idle link: served, halt beyond 2x", idle, longest - 6)],
        restricted=ended == 6 and len(once[0].of("extend")) == 1,
        conditions=f"once in a halt, which then takes {ended} periods; as printed the branch runs at the end of each "
        f"period with CE, with the dS of T_{{i-1}} that it was given it extends "
        f"{extensions['dS of T_{i-1}']} times, to {longest} periods, {idle} of them idle",
    )


@claim("acc-42-same-rate", ACC, "4.2, Fig. 7", "T_i sends at the same rate as T_{i-1}")
def same_rate() -> Finding:
    """Check T_{i-1}'s end: all ACKs are of earlier packets, so the flow is uncongested and raises its rate."""
    from fluidcc.schemes.acc.period_map import acc_map

    r = F(1, 2)
    senders, link = run([F(1, 2)] * 2, r, REPAIRS, periods=30)
    began = next(n for n, queue in enumerate(link.queue) if queue)  # first tick of T_{i-1}
    before, during = (sum(link.sent[began + shift]) / link.tick for shift in (0, round(1 / link.tick)))
    mapped = acc_map([F(1, 2)] * 2, form="algorithm", r=r, r_high=r, raised=True, steps=60, exact=True)
    starts, start = line_rate(*REPAIRS)
    first = [sum(start.sent[round(n / start.tick)]) / start.tick for n in (0, 1)]
    halts = [time for time, kind, _ in senders[0].log if kind == "halt"]
    peak = max(link.queue[round(halts[1] / link.tick) :])
    return Finding(
        {"as printed": before == during},
        {"sum_of_rates_T_i-1": before, "sum_of_rates_T_i": during, "peak_C_T": peak, "appendix_peak_C_T": before - 1},
        [
            Way("peak queue: Algorithm 1 run line by line, (3 - r) x", peak, (3 - r) * (before - 1)),
            Way("peak queue: run, fluidcc.theory.acc_map(raised=True)", peak, mapped.peak),
            Way("cycle: run, fluidcc.theory.acc_map(raised=True)", halts[2] - halts[1], mapped.cycle),
        ],
        restricted=first[0] == first[1] and bool(starts),
        conditions=f"flows at line rate; others raise it once more at the end of T_{{i-1}}, where no ACK of it is "
        f"back: at r = {r} their sum goes from {before} to {during} C, and the queue peaks at "
        f"{peak / (before - 1)} = 3 - r times the appendix's",
    )


@claim("acc-43-decrease", ACC, "4.3, Alg. 1", "after a halt, ACK arrival rates guide rate decrease")
def decrease() -> Finding:
    printed, _ = line_rate("keep")
    repaired, _ = line_rate(*REPAIRS)
    falls = {name: len(flows[0].of("rate")) for name, flows in (("printed", printed), ("repaired", repaired))}
    cleared = sum(value != "true" for value in assigned("halt"))
    return Finding(
        {"as printed": falls["printed"] > 1},
        {"decreases_printed": falls["printed"], "decreases_repaired": falls["repaired"], "periods": PERIODS}
        | {"rate_at_end_printed": printed[0].R_s, "fair_rate": F(1, 4)},
        [Way("decreases after the first: run, assignments that clear halt", falls["printed"] - 1, cleared)],
        restricted=falls["repaired"] > 2,
        conditions=f"the end of a halt clears the flag: {falls['repaired']} decreases in {PERIODS} periods; as printed "
        f"{cleared or 'no'} lines do, line 2 fails for ever, and decreases: {falls['printed']}",
    )


@claim("acc-45-consecutive", ACC, "4.5, Table 1", "after two consecutive uncongested periods RI is RI_High, not before")
def consecutive() -> Finding:
    def raises(*repairs: str) -> list[list[Fraction]]:
        """RI of each rise, by the halts that they are between."""
        flows, _ = run([F(1, 4)] * 2, F(1, 25), repairs, periods=60)
        groups: list[list[Fraction]] = [[]]
        for _, kind, value in flows[0].log:
            if kind == "rise":
                groups[-1].append(value)
            elif kind == "halt":
                groups.append([])
        return [group for group in groups if group]

    def gradual(groups: list[list[Fraction]]) -> bool:
        return all((F(1, 25) if k < 2 else F(2, 5)) == RI for group in groups for k, RI in enumerate(group))

    printed, repaired = raises("keep", "once", "halt", "at once"), raises(*REPAIRS)
    resets = sum(value != "N_u + 1" for value in assigned("N_u"))
    low, high = (sum(each == RI for group in printed[1:] for RI in group) for each in (F(1, 25), F(2, 5)))
    return Finding(
        {"as printed": gradual(printed)},
        {"halts_printed": len(printed) - 1, "rises_with_RI_Low_after_the_first_halt": low},
        [Way("rises with RI_Low after the first halt: run, 2 for each assignment that resets N_u", low, 2 * resets)],
        restricted=gradual(repaired) and len(repaired) > 2,
        conditions=f"congestion resets N_u; as printed {resets or 'no'} lines do, it counts all uncongested periods, "
        f"and of {high + low} rises after the first halt {low or 'none'} have RI_Low",
    )


@claim("acc-44-halves", ACC, "4.4, Alg. 1", "more than P_thresh consecutive periods with UE halve the rate")
def halves(periods: int = 5, P_thresh: int = 1) -> Finding:
    sender, counted = Sender(F(1), F(1, 250)), Sender(F(1), F(1, 250))
    for _ in range(periods):
        sender.UNDETERMINED(P_thresh)
        counted.N_v += 1
        counted.UNDETERMINED(P_thresh)
    written = len(assigned("N_v"))
    return Finding(
        {"as printed": sender.R_s < 1},
        {"rate_printed": sender.R_s, "rate_counted": counted.R_s, "periods_with_UE": periods},
        [Way("N_v: run, assignments in Algorithm 1", sender.N_v, written)],
        restricted=counted.R_s == F(1, 2 ** (periods - P_thresh)),
        conditions=f"each such period adds 1 to N_v, and {periods} leave {counted.R_s} of the rate; as printed "
        f"{written or 'no'} lines do, and {sender.R_s} is left",
    )


@claim("acc-46-model", ACC, "4.6, A", "a fluid model of ACC gives its performance, including convergence and fairness")
def model() -> Finding:
    """Compare both maps in rationals, in cycles about fairness and before, with T_i as in 4.2."""
    from fluidcc.schemes.acc.period_map import acc_maps

    ways, same, instead, evidence = [], [], [], {}
    fair, peaks, used, cycles = [], [], ([], []), ([], [])
    for r, flows in ((F(1, 250), 2), (F(10, 250), 32), (F(1, 5), 64)):
        start = [F(k + 1, flows) for k in range(flows)]
        printed, algorithm = acc_maps(start, r=r, r_high=r, steps=150, exact=True)
        x = r * (flows - 1)
        same += [printed.peak == algorithm.peak, printed.cycle == algorithm.cycle]
        same += [printed.utilization == algorithm.utilization]
        # The rates recorded at each cycle's end are the same.
        halts = [
            [run.shares[n] for n in range(1, 151) if run.halted[n] and not run.halted[n - 1]]
            for run in (printed, algorithm)
        ]
        shares = all((one == other).all() for one, other in zip(*halts, strict=False))
        fair.append(shares)
        instead += [
            algorithm.peak == 2 * printed.peak,
            algorithm.utilization == 1,
            algorithm.cycle == 4 + 2 * x,
        ]
        ways.append(Way(f"algorithm's peak over C T, N = {flows}, r = {r}: map, 2r(N-1)", algorithm.peak, 2 * x))
        ways.append(Way(f"appendix's peak over C T, N = {flows}, r = {r}: map, r(N-1)", printed.peak, x))
        peaks.append(algorithm.peak / printed.peak)
        for k, one in enumerate((printed, algorithm)):
            used[k].append(round(float(100 * one.utilization), 1))
            cycles[k].append(one.cycle)
        run_: Any
        for run_ in (printed, algorithm):
            evidence[f"utilisation_{run_.form}_r_{r}_N_{flows}"] = F(run_.utilization)
            evidence[f"cycle_periods_{run_.form}_r_{r}_N_{flows}"] = F(run_.cycle)
    return Finding(
        {
            "convergence and fairness, which it claims: the shares at the end of each cycle": all(fair),
            "queue, cycle and utilisation, of which it claims nothing": all(same),
        },
        evidence,
        ways,
        restricted=all(fair) and all(instead),
        conditions="the shares, which are the same at the end of each cycle, and all that the appendix claims. Under "
        f"Algorithm 1 the queue peaks at {listed(peaks)} times the appendix's, a cycle takes 4 + 2r(N-1) periods "
        f"({listed(cycles[1])} where the appendix has {listed(cycles[0])}, with 2, 32 and 64 flows), and the link is "
        f"used for {listed(used[1])} % of it (the appendix: {listed(used[0])} %)",
    )


if __name__ == "__main__":
    main(__name__)
