"""HPCC++'s theorems on MultiQ, evaluated on `fluidcc.theory.recursion`'s rates of one class, and of two on a link.

These are floats. Weights, targets and increases are sums of few powers of two, so that a rate which is to meet a bound
does so exactly.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

from fluidcc.theory.recursion import multiq
from fluidcc.theory.recursion.classes import share_link, water_fill
from tests.proofs.coq_statements import Example, defined, verdicts, within

Change = tuple[str, str] | None
ROUNDED = within(1e-9)
B, ETA = 2.0, 0.875

# -- one class --

STEPS = 40


class Class(NamedTuple):
    """Weight, and total increase."""

    w: float
    a: float


CLASSES = [
    Class(w, increase * B)
    for w in (0.25, 0.5, 0.875)
    for increase in (0.0, 0.015625, (1 - ETA) * w, 0.0625, 0.1, (1 - ETA), 0.25)
]
STARTS = tuple(share * B for share in (0.0625, 0.25, 0.46875, 0.75, 1.5))


def used(B: float, w: float, sent: float, waits: float) -> float:
    return float(multiq.of_class(sent, waits, "slides", guaranteed=w * B, line=B, unused=0.0))


def next_rate(B: float, w: float, eta: float, a: float, A: float, r: float) -> float:
    return float(multiq.step(r, eta=eta, increase=a, share=w, line=B, served=A))


def spare_rate(B: float, w: float, eta: float, a: float, A: float, r: float) -> float:
    """Rate by the rule that counts what nobody uses, which is ours."""
    return float(multiq.step(r, eta=eta, increase=a, share=w, line=B, served=A, rule="spare"))


@functools.cache
def run(one: Class, left: tuple[float, ...], start: float) -> list[float]:
    """Rates of a class to which so much is left in each round trip."""
    return list(itertools.accumulate(left, lambda rate, A: next_rate(B, one.w, ETA, one.a, A, rate), initial=start))


def of_class(one: Class, left: list[Any]) -> Example:
    """Give the names of Coq's file their meaning for a class: utilisations and rates are `multiq`'s."""
    known = {
        **one._asdict(),
        "B": B,
        "eta": ETA,
        "utilisation": used,
        "step": next_rate,
        "spare_step": spare_rate,
        "rate": lambda _B, _w, _eta, _a, A, start, n: run(one, tuple(A(m) for m in range(STEPS)), start)[n],
    }
    at_rest = {run(one, (A,) * STEPS, start)[-1] for A in LEFT for start in STARTS}
    domains = {
        **dict.fromkeys(("n", "m"), (*range(12), 30)),
        "first": [0, 30],
        "A": left,
        "start": STARTS,
        "r": sorted({*STARTS, *at_rest, (ETA * B + 2 * one.a) / (2 - ETA)}),
        "sent": (B / 8, one.w * B, 0.75 * B, B),
        **{"B": [B], "w": [one.w], "eta": [ETA], "a": [one.a]},
    }
    return Example(defined("hpccpp.multiq", known, domains, ROUNDED), domains, ROUNDED)


LEFT = tuple(share * B for share in (0.2, 0.34, 0.5, 0.6, 0.7, 0.75, 1.0))
VARYING = [lambda _: B, lambda n: B * (0.75 if n % 2 else 0.5), lambda n: B if n < 4 else B / 4]
ALONE = {
    "utilisation_at_the_guarantee": ("(w * B) 0", "(w * B / 2) 0"),
    "utilisation_jumps_without_backlog": ("w * B < sent", "w * B <= sent"),
    "settles_at_its_guarantee": ("A <= w * B ->", ""),
    "fixed_points": ("w * B < r <= A", "r <= A"),
    "rest_without_increase": ("a = 0 ->", ""),
    "locks_in_iff": ("<-> a <=", "<-> a <"),
    "finds_a_limit": ("(eta / 2) ^ n", "(eta / 4) ^ n"),
    "starts_above_are_not_locked_in": ("w <= eta / (2 - eta) ->", ""),
    "large_increase_keeps_a_backlog": ("(first <= n)%nat ->", ""),
    "no_equilibrium_between": ("< A < eta * B / (2 - eta)", "< A"),
    "cycle_of_two": ("A < eta * (eta * A + B) / 2 ->", ""),
    "spare_rule_finds_the_limit": ("Rmax (w * B) A", "A"),
}
BESIDE = {
    "locks_in": ("a <= (1 - eta) * (w * B) ->", ""),
    "escapes": ("(1 - eta) * (w * B) < a", "(1 - eta) * (w * B) <= a"),
}


@pytest.mark.parametrize("name", ALONE | BESIDE)
def test_a_theorem_holds_for_rates_of_a_class(name: str) -> None:
    """Notice a branch of U, a backlog or a threshold of the increase in Coq that is not `multiq`'s."""
    left = VARYING if name in BESIDE else list(LEFT)
    assert verdicts(f"hpccpp.multiq.{name}", (ALONE | BESIDE)[name], [of_class(one, left) for one in CLASSES]) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    "change",
    [
        None,
        ("if Rle_dec sent (w * B)", "if Rlt_dec sent (w * B)"),
        (
            ": R := r * eta / utilisation B w (Rmin r A) (Rmax (r - A) 0)",
            ": R := r * eta / utilisation B w (Rmin r A) 0",
        ),
    ],
)
def test_a_step_in_coq_is_multiq_s(change: Change) -> None:
    """Notice a branch that begins elsewhere, or a backlog that is forgotten; a rule of ours too."""
    coq, same = defined("hpccpp.multiq", {}, change=change), True
    for one, A, r in itertools.product(CLASSES, LEFT, (*STARTS, B / 2, ETA * B, 3 * B)):
        given = B, one.w, ETA, one.a, A, r
        same &= ROUNDED(coq["step"](*given), next_rate(*given))
        same &= ROUNDED(coq["spare_step"](*given), spare_rate(*given))
    assert same is (change is None)


# -- two classes --

ROUND_TRIPS = 200
PAIRS = tuple(itertools.product(STARTS, STARTS))
State = tuple[float, float, float, float]  # rate and backlog of each class


@functools.cache
def shared(one: Class) -> list[list[State]]:
    """Run `share_link` from all pairs of starts."""
    found = share_link([one.w, 1 - one.w], list(PAIRS), line=B, eta=ETA, increase=one.a, steps=ROUND_TRIPS)
    rows = np.stack([found.rates[..., 0], found.backlog[..., 0], found.rates[..., 1], found.backlog[..., 1]], axis=-1)
    return [[(state[0], state[1], state[2], state[3]) for state in run] for run in rows.swapaxes(0, 1).tolist()]


def of_two(one: Class) -> Example:
    """Give the names of Coq's file their meaning in runs of `share_link`, in which both classes have one increase."""
    runs = shared(one)
    followed = {state: rows[n:] for rows in runs for n, state in reversed([*enumerate(rows[:-LAST])])}
    ends = {rows[-LAST - 1] for rows in runs}

    def service(B: float, w: float, own: float, other: float) -> float:
        return float(water_fill(np.array([own, other]), np.array([w, 1 - w]), B)[0])

    known = {
        "B": B,
        "w": one.w,
        "eta": ETA,
        "a1": one.a,
        "a2": one.a,
        "low1": ETA * one.w * B + one.a,
        "low2": ETA * (1 - one.w) * B + one.a,
        "share": lambda _B, _w, _eta, _a1, _a2, x: followed[x][1],
        "after": lambda _B, _w, _eta, _a1, _a2, start, n: followed[start][n],
        "service": service,
    }
    offers = B / 8, one.w * B, 0.6 * B, 2 * B
    domains = {
        "x": sorted({*ends, *(rows[n] for rows in runs for n in (0, 1, 2))}),
        "start": [rows[n] for rows in runs for n in (0, 2)],
        "n": range(12),
        **dict.fromkeys(("o1", "o2", "own", "other"), offers),
    }
    return Example(defined("hpccpp.two_queues", known, domains, ROUNDED), domains, ROUNDED)


LAST = 20  # round trips that follow the last state of which a statement speaks
TWO = {
    "link_is_work_conserving": ("Rmin (o1 + o2) B", "(o1 + o2)"),
    "guarantee_is_kept": ("own <= w * B ->", ""),
    "class_locks_in": ("waiting1 start = 0 ->", ""),
    "class_locks_in_iff": ("<-> a1 <=", "<-> a1 <"),
    "backlog_at_rest": ("share B w eta a1 a2 x = x ->", ""),
    "fixed_points_of_two_queues": ("\\/ (w * B <= low1 /\\ (1 - w) * B <= low2)", ""),
    "served_less_only_with_a_small_increase": ("a1 < (1", "a1 < 1 / 2 * (1"),
    "large_increases_are_fair": ("(1 - eta) * ((1 - w) * B) <= a2 ->", ""),
}


@pytest.mark.parametrize("name", TWO)
def test_a_theorem_holds_for_two_classes_on_a_link(name: str) -> None:
    """Notice a service or a backlog in Coq that is not the link's."""
    assert verdicts(f"hpccpp.two_queues.{name}", TWO[name], [of_two(one) for one in CLASSES]) == (True, False)


@pytest.mark.parametrize("change", [None, ("waiting1 x + Rmax (rate1 x - waiting1 x) 0", "rate1 x")])
def test_a_round_trip_in_coq_is_that_of_the_link(change: Change) -> None:
    """Notice a class that sends anew what still waits."""
    coq, same = defined("hpccpp.two_queues", {}, change=change), True
    for one in CLASSES:
        step = functools.partial(coq["share"], B, one.w, ETA, one.a, one.a)
        same &= all(ROUNDED(step(rows[n]), rows[n + 1]) for rows in shared(one) for n in range(6))
    assert same is (change is None)
