"""Theorems of Snyder and Lebeck's section IV-B, evaluated on `fluidcc.theory`'s rates of both rules, and on its roots.

The difference of the rates is computed without cancellation (`lead.relative_difference`), so that its sign is right
near 0 and near its root.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.proofs.verdict.theorems import theorems
from fluidcc.theory.fairness.closed import integrated, solved
from fluidcc.theory.fairness.lead import loads, relative_difference
from fluidcc.theory.fairness.settings import Decrease
from tests.proofs.coq_statements import Example, changed, defined, holds, verdicts, within

Change = tuple[str, str] | None
CLOSED = within(1e-9, 1e-9)  # the second near a root, of rates of about 1 B/ns
SLOPE = 1e-5  # of numerical derivatives
STEP = 1e-4  # of an RTT


class Flows(NamedTuple):
    """A setting, in bytes and ns."""

    beta: float
    r: float
    s: float
    MTU: float
    C1: float
    C0: float

    @property
    def decrease(self) -> Decrease:
        """Return the setting as the package has it."""
        return Decrease(self.s, self.MTU, self.r, self.beta)


FIGURE_4 = Flows(0.5, 30000.0, 30.0, 1000.0, 12.5, 6.25)
SETTINGS = FIGURE_4, Flows(0.25, 20000.0, 10.0, 1000.0, 2.0, 1.0), Flows(0.5, 30000.0, 30.0, 1000.0, 0.5, 0.25)


def per_trip(beta: float, r: float, C: float, t: float) -> float:
    return float(solved(np.array([C]), np.array([t]), Decrease(1.0, 1.0, r, beta))[0, 0, 0])


def per_acks(beta: float, s: float, MTU: float, C: float, t: float) -> float:
    return float(solved(np.array([C]), np.array([t]), Decrease(s, MTU, 1.0, beta))[1, 0, 0])


def difference(beta: float, r: float, s: float, MTU: float, C1: float, C0: float, t: float) -> float:
    a, b = loads(C1, C0, Decrease(s, MTU, r, beta))
    return float((C1 - C0) * relative_difference(beta * t / r, a, b))


@functools.cache
def lead(of: Flows) -> Any:
    beta, r, s, MTU, C1, C0 = (np.array([value]) for value in of)  # numbers in arrays are of any one unit
    return fc.theory.sampling_lead(C1, C0, rtt=r, acks=s, mtu=MTU, beta=beta).isel(dim_0=0)


def integral(rule: int, C: float, of: Flows) -> Callable[[float], float]:
    """Return the rate of a flow by one of the rules as integration finds it, which knows no closed form."""

    @functools.cache
    def rate(t: float) -> float:
        return float(integrated(np.array([C]), np.array([0.0, t]), of.decrease)[rule, -1, 0]) if t else C

    return rate


def has_slope(step: float) -> Callable[..., bool]:
    """Return a derivative in Coq's order of arguments: the slope from a time to a step later, and the one before."""

    def is_derive(f: Callable[[float], float], t: float, slope: float) -> bool:
        near = [f(t), f(t + step), f(t + 2 * step)]
        found = (4 * near[1] - 3 * near[0] - near[2]) / (2 * step)
        return abs(found - slope) <= SLOPE * abs(slope)

    return is_derive


def example(of: Flows) -> Example:
    """Give the names of Coq's file their meaning."""
    r = of.r
    found = {name: float(lead(of)[name]) for name in ("sign_change", "peak_time")}
    known = of._asdict() | {
        "C": of.C1,
        "per_trip": per_trip,
        "per_acks": per_acks,
        "difference": difference,
        "is_derive": has_slope(STEP * r),
        "ahead": bool(lead(of).ahead_at_first),
    }
    change, peak = (found[name] if known["ahead"] else r for name in ("sign_change", "peak_time"))
    times = sorted(
        {0.0, 0.02 * r, 0.1 * r, r, 9 * r, *(k * each for each in (change, peak) for k in (0.5, 1.0, 1.01, 2.0))}
    )
    domains = {
        **dict.fromkeys(("t", "u"), times),
        **dict.fromkeys(("change", "until"), (change,)),
        "peak": [peak],
        "X": [integral(rule, C, of) for rule in (0, 1) for C in (of.C1, of.C0)],
    }
    return Example(defined("fairness.peak", known, {**domains, "t": times[:4]}, CLOSED), domains, CLOSED)


TOO_MUCH = {
    "sampling.per_trip_is_the_only_solution": ("X 0 = C ->", ""),
    "sampling.per_acks_is_the_only_solution": ("X 0 = C ->", ""),
    "sampling.interval_of_sampling": ("/ (1 + beta)", "* (1 - beta)"),
    "sampling.interval_per_trip": ("exp (- beta)", "(1 - beta)"),
    "sampling.slope_at_start": ("- 1 / r", ""),
    "sampling.level_at_start": ("C1 C0 0", "C1 C0 r"),
    "sampling.ahead_early": ("< 2 * r *", "< 200 * r *"),
    "sampling.behind_late": ("(8 * (C1 * r / (s * MTU)) - 4)", "(C1 * r / (s * MTU))"),
    "sampling.once_lost_stays_behind": ("0 < t ->", ""),
    "sampling.ahead_until": ("0 <= difference", "0 - C1 <= difference"),
    "sampling.behind_without_condition": ("(C1 + C0) / (s * MTU) <= 1 / r ->", ""),
    "sampling.ahead_at_first_iff": ("forall t, 0 < t < until", "forall t, 0 < t"),
    "sampling.difference_changes_sign_once": ("(forall t, 0 < t < change", "(forall t, 0 <= t < change"),
    "sampling.change_of_sign_is_unique": ("0 < t -> 0 < u", "0 < u"),
    "sampling.difference_diminishes": ("< (C1 - C0)", "< 1 / 2 * (C1 - C0)"),
    "sampling.ratio_with_sampling": ("(C1 - C0) / (C0", "(C1 - C0) / (C1"),
    "sampling.ratio_with_sampling_falls": ("t < u", "t <= u"),
    "sampling.ratio_with_sampling_tends_to_one": ("(beta * C0 * C1)", "(2 * beta * C0 * C1)"),
    "sampling.ratio_per_trip_stays": ("/ per_trip beta r C0 t", "/ per_trip beta r C0 0"),
    "peak.difference_has_one_peak": ("t < u <= peak", "t < u <= change"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_theorem_holds_for_both_rules(name: str) -> None:
    """Notice an equation, a closed form or a root in Coq that is not `fluidcc.theory`'s."""
    assert verdicts(f"fairness.{name}", TOO_MUCH[name], map(example, SETTINGS)) == (True, False)


def test_the_condition_in_coq_is_the_lead_s() -> None:
    """Notice a condition of being ahead at first that is not `sampling_lead`'s."""
    slope = (
        "0 < (- (beta * C1 / r) - - (beta * C0 / r)) - (- (beta * C1 ^ 2 / (s * MTU)) - - (beta * C0 ^ 2 / (s * MTU)))"
    )
    statement = theorems()["fairness.sampling.gap_closes_sooner_iff"].statement
    for old in (slope, changed(statement, slope, "True").partition("<->")[2].strip()):
        assert all(holds(changed(statement, old, "ahead"), *example(of)) for of in SETTINGS)
        assert not all(holds(changed(statement, old, "~ ahead"), *example(of)) for of in SETTINGS)


@pytest.mark.parametrize(
    ("name", "change"), [("figure_4_ahead", ("522000", "523000")), ("figure_4_behind", ("523000", "522000"))]
)
def test_the_microseconds_of_figure_4_are_those_of_the_lead(name: str, change: tuple[str, str]) -> None:
    """Notice settings of Figure 4 in Coq that are not those of the root that `sampling_lead` finds."""
    change_of_sign = float(lead(FIGURE_4).sign_change)
    times = [1.0, 12e3, 522e3, change_of_sign - 1, change_of_sign + 1, 523e3, 1e6]
    examples = [Example({"difference": difference}, {"t": times})]
    assert verdicts(f"fairness.sampling.{name}", change, examples) == (True, False)


@pytest.mark.parametrize(
    "change", [None, ("C * exp (- (beta * t / r))", "C * exp (- (t / r))"), ("1 + beta * C * t", "beta * C * t")]
)
def test_closed_forms_in_coq_are_those_of_the_theory(change: Change) -> None:
    """Notice another solution of either rule."""
    same, coq = True, defined("fairness.sampling", {}, change=change)
    for of in SETTINGS:
        for t in (0.0, 0.3 * of.r, 2 * of.r):
            same &= CLOSED(coq["per_trip"](of.beta, of.r, of.C1, t), per_trip(of.beta, of.r, of.C1, t))
            given = of.beta, of.s, of.MTU, of.C1, t
            same &= bool(change and t == 0) or CLOSED(coq["per_acks"](*given), per_acks(*given))
            same &= bool(change and t == 0) or CLOSED(coq["difference"](*of, t), difference(*of, t))
    assert same is (change is None)
