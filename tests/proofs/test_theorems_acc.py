"""ACC's theorems, evaluated on `fluidcc.theory.acc_map` in rationals, and on Algorithm 1 run line by line."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

import fluidcc as fc
from fluidcc.proofs.acc.algorithm import run as algorithm_1
from fluidcc.proofs.verdict.theorems import theorems
from fluidcc.schemes.acc.period_map_result import AccMap
from tests.proofs.coq_statements import Example, changed, defined, holds, verdicts

Change = tuple[str, str] | None
Vector = Callable[[int], Any]
F = Fraction


def vector(values: Sequence[Any]) -> Vector:
    """Return rates or shares as Coq has them, a function of the flow."""
    return lambda i: values[i]


# -- the appendix's model --

PERIODS, FAR = 400, 100  # of a run; and after how many of them, or cycles, shares have come to their limit
NEAR = F(1, 1000)
SETTINGS = ((F(1, 4), 3), (F(1, 2), 3), (F(1), 4), (F(1, 10), 2), (F(1, 2), 4))  # r and N


class Row(NamedTuple):
    """State of a run at the beginning of a period."""

    run: AccMap
    n: int


@functools.cache
def mapped(r: Fraction, rates: tuple[Fraction, ...]) -> AccMap:
    return fc.theory.acc_map(rates, r=r, steps=PERIODS, exact=True)


def appendix(r: Fraction, N: int) -> Example:
    """Give the names of Coq's file their meaning in runs of the map."""

    def begun(rates: Vector) -> Row:
        return Row(mapped(r, tuple(rates(i) for i in range(N))), 0)

    raised = defined("acc.halts", {})["raised"]
    known = {
        "r": r,
        "N": N,
        "State": lambda rates, _queue, _halted: begun(rates),
        "resumed": lambda _r, phi: begun(lambda i: raised(r, phi, i)),
        "run": lambda _r, _N, n, state: Row(state.run, state.n + n),
        "period": lambda _r, _N, state: Row(state.run, state.n + 1),
        "rate": lambda state, i: state.run.recorded[state.n][i],
        "sent": lambda state, i: state.run.sent[state.n][i],
        "queue": lambda state: state.run.queue[state.n],
        "share": lambda _N, state, i: state.run.shares[state.n][i],
        "cycle": lambda _r, _N: int(mapped(r, (F(9, 8),) * N).cycle_periods),
        "is_lim_seq": lambda f, limit: abs(f(FAR) - limit) < NEAR,
    }
    low, equal = vector([F(k + 1, N * N + N) for k in range(N)]), vector([F(1, N)] * N)
    shares = [vector([F(2 * k + 1, N * N) for k in range(N)]), equal, vector([F(1), *[F(0)] * (N - 1)]), low]
    domains = {
        "phi": shares,
        "S": [vector([F(1)] * N), vector([F(k + 1, N) for k in range(N)]), equal, low],
        "i": range(N),
        **dict.fromkeys(("m", "n"), range(7)),
        "k": range(5),
    }
    return Example(defined("acc.halts", known, domains), domains)


TOO_MUCH = {
    "halts.recorded_rates_sum_to_capacity": ("1 < total N S ->", ""),
    "halts.queue_of_first_period": ("1 < total N S ->", ""),
    "halts.sum_of_raised_rates": ("- r", ""),
    "halts.raised_rates_exceed_capacity": ("-> 1 <", "-> 1 + r <"),
    "halts.cycle_has_a_halt": ("2 <=", "3 <="),
    "halts.flows_halt": ("m < cycle", "m <= cycle"),
    "halts.queue_of_halted_period": ("m < cycle", "m <= cycle"),
    "halts.queue_positive_while_halted": ("m < cycle", "m <= cycle"),
    "halts.rates_of_halted_period": ("1 <= m", "0 <= m"),
    "halts.queue_empty_after_cycle": ("(cycle r N)", "(cycle r N - 1)"),
    "halts.flows_resume": ("(cycle r N)", "(cycle r N - 1)"),
    "halts.printed_queue_at_most_zero": ("<= 0", "< 0"),
    "halts.printed_queue_empty_iff": ("= 0 <->", "<= 0 <->"),
    "halts.sent_in_a_cycle": ("cycle r N - 1", "cycle r N"),
    "halts.cycle_fills_half": ("1 / 2 <", "2 / 3 <"),
    "halts.cycle_fills_link_iff": ("= 1 <->", "<= 1 <->"),
    "halts.share_after_cycle": ("(S k *", "(k *"),
    "halts.closed_form": ("^ (k + 1)", "^ k"),
    "halts.distance_from_fair_share": ("^ (k + 1)", "^ k"),
    "halts.shares_tend_to_fair_share": ("(1 / INR N)", "(phi i)"),
    "fair_share.shares_never_less_fair": ("<= Rabs", "< Rabs"),
    "fair_share.shares_tend_to_fair_share_from_any_start": ("(1 / INR N)", "(share N (State S 0 false) i)"),
    "fair_share.rates_come_to_exceed_capacity": ("1 < total", "2 < total"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_theorem_holds_in_runs_of_the_period_map(name: str) -> None:
    """Notice a queue, a halt or a cycle in Coq that is not the map's, or is off by a period."""
    assert verdicts(f"acc.{name}", TOO_MUCH[name], [appendix(*each) for each in SETTINGS]) == (True, False)


@pytest.mark.parametrize(
    "change",
    [None, ("queue at_start + total", "total"), ("then State (share N at_start)", "then State (rate at_start)")],
)
def test_a_period_in_coq_is_one_of_the_map(change: Change) -> None:
    """Notice a queue that is not carried on, rates that are not recorded as shares, or a cycle of another length."""
    same = True
    for r, N in SETTINGS:
        coq = defined("acc.halts", {}, change=change)
        same &= coq["cycle"](r, N) == mapped(r, (F(9, 8),) * N).cycle_periods
        rates = tuple(F(2 * k + 1, N) for k in range(N))
        run, now = mapped(r, rates), (vector(rates), F(0), False)
        for n in range(8):
            recorded = [coq["rate"](now)(i) for i in range(N)]
            sent = [coq["sent"](now, i) for i in range(N)]
            same &= (recorded, sent, now[1]) == (list(run.recorded[n]), list(run.sent[n]), run.queue[n])
            now = coq["period"](r, N, (vector(recorded), *now[1:]))
    assert same is (change is None)


# -- flows of unequal increments or line rates, in the same model --


def after_cycle(r: Sequence[Fraction], share: Fraction, lines: Sequence[Fraction] | None = None) -> Fraction:
    """Share of the first flow after a cycle of the map; it begins with this one, and the others with equal ones."""
    others = len(r) - 1
    rates = [F(9, 8) * each for each in (share, *[(1 - share) / others] * others)]
    run = fc.theory.acc_map(rates, r=r, line_rates=lines, steps=20, exact=True)
    resumes = next(n for n in range(1, 20) if run.halted[n - 1] and not run.halted[n])
    return run.shares[resumes][0]


class Unequal(NamedTuple):
    """Name the theorem on a cycle's effect, the map that stands for it, and a statement that says too much."""

    printed: str
    call: str
    cycle: Callable[..., Fraction]
    change: tuple[str, str]


UNEQUAL = {
    "shares_of_two_increments": Unequal(
        "(phi + r1 * (1 - phi)) / (1 + r1 * (1 - phi) + r2 * phi)",
        "cycle r1 r2 phi",
        lambda r1, r2, phi: after_cycle([r1, r2], phi),
        ("phi ^ 2 * r2 =", "phi * r2 ="),
    ),
    "shares_tend_to_line_rates": Unequal(
        "((1 - r) * phi + r * L_i) / (1 - r + r * L)",
        "cycle L_i L phi",
        lambda L_i, L, phi: after_cycle([F(1, 5)] * 2, phi, [L_i, L - L_i]),
        ("(1 - r) / (1 - r + r * L) *", "(1 - r) *"),
    ),
    "equal_shares_stay_iff": Unequal(
        "(1 / INR N + r i * (1 - 1 / INR N)) / total N (fun j => 1 / INR N + r j * (1 - 1 / INR N))",
        "cycle r i",
        lambda r, i: after_cycle([r(i), *[r(j) for j in range(3) if j != i]], F(1, 3)),
        ("<-> r i = total N r / INR N", "<-> r i = r 1"),
    ),
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_a_theorem_on_unequal_flows_holds_for_cycles_of_the_map(name: str) -> None:
    """Notice a rise in Coq that is not towards the flow's own line rate, by its own increment."""
    printed, call, cycle, change = UNEQUAL[name]
    statement = changed(theorems()[f"acc.fair_share.{name}"].statement, printed, call)
    increments = [[F(1, 25), F(1, 4), F(1, 5)], [F(1, 4), F(3, 25), F(19, 50)], [F(1, 4)] * 3]
    domains = {
        **dict.fromkeys(("r1", "r2"), (F(1, 25), F(9, 25), F(1, 4))),
        "phi": [F(1, 4), F(1, 2), F(3, 4), F(2, 7)],
        "L_i": [F(1), F(2)],
        "L": [F(3), F(4)],
        "N": [3],
        "r": [vector(each) for each in increments],
        "i": range(3),
    }
    known = defined("acc.halts", {"cycle": cycle, "r": F(1, 5)})
    assert holds(statement, known, domains)
    assert not holds(changed(statement, *change), known, domains)


# -- Algorithm 1 --

DRAIN = {
    "halt_drains_first_period": ("- 1", ""),
    "queue_after_first_period": ("- 1", ""),
    "queue_after_second_period": ("= 2 *", "= 3 *"),
    "halt_and_extension_drain_both_periods": ("= 2 *", "= 1 *"),
    "no_extension_after_line_4": ("(ack_rate k)", "(S k)"),
    "repeated_extensions_idle": ("(INR n - 1)", "INR n"),
}


def from_line_rate(N: int) -> Example:
    """Flows of Algorithm 1 that start at line rate, line by line, and the queue of the map of it."""
    kept, _ = algorithm_1([F(1)] * N, F(1, 4), ("keep", "once"))
    printed, _ = algorithm_1([F(1)] * N, F(1, 4))
    queue = fc.theory.acc_map([F(1)] * N, form="algorithm", steps=4, exact=True).queue
    known = {
        "N": N,
        "S": vector([F(1)] * N),
        "ack_rate": lambda k: kept[k].of("rate")[0],
        "halt_time": lambda k: kept[k].of("halt")[0],
        # By the R_s that line 7 reads: that of before line 4, or what line 4 has set it to.
        "extension": lambda k, R_s: (kept if R_s == 1 else printed)[k].of("extend")[0],
        "State": lambda _rates, queue, _halted: queue,
        "queue_after": lambda _N, before: queue[1 if before == 0 else 2],
    }
    domains = {"k": range(N), "n": range(4)}
    return Example(defined("acc.drain", known, domains), domains)


@pytest.mark.parametrize("name", DRAIN)
def test_a_theorem_holds_for_algorithm_1(name: str) -> None:
    """Notice a halt or an extension in Coq that is not that of the printed lines."""
    assert verdicts(f"acc.drain.{name}", DRAIN[name], [from_line_rate(N) for N in (2, 4)]) == (True, False)


@pytest.mark.parametrize("change", [None, ("S k - S k * ack_rate k / R_s", "S k - ack_rate k / R_s")])
def test_a_halt_in_coq_is_one_of_the_map(change: Change) -> None:
    """Notice a halt or a rate that is not the map's, where flows start at other rates than the line's."""
    same = True
    for rates in ([F(3, 4), F(1, 2), F(1, 4)], [F(1), F(1)], [F(2), F(1, 3)]):
        run, flows = fc.theory.acc_map(rates, form="algorithm", steps=4, exact=True), range(len(rates))
        coq = defined("acc.drain", {"N": len(rates), "S": vector(rates)}, change=change)
        same &= [coq["ack_rate"](k) for k in flows] == list(run.recorded[2])
        halts = {coq["halt_time"](k) + coq["extension"](k, rates[k]) for k in flows}
        same &= halts == {run.time[3] - run.time[2]}
    assert same is (change is None)
