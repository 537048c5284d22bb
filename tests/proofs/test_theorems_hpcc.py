"""HPCC's theorems on equilibria (3.3, A.3), evaluated on what `fluidcc.theory` computes.

Equilibria of one path's register are rationals: a run's last rates are rounded to small denominators, and kept if they
rest exactly, so that a bound may be met with equality. Per-link registers and delays are floats. Functions of a path or
a link have a value beyond the last one, too, which must not count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.theory.recursion.additive import single_link_modes
from fluidcc.theory.recursion.optimal import equilibrium, max_min
from fluidcc.theory.recursion.result import Rates, on_path
from tests.proofs.coq_statements import Example, defined, verdicts, within

LINKS, PATHS, DRAWN = 3, 4, 150
LARGEST = 200  # denominator of a rate
STEPS = 1000  # enough to settle, as is asserted
FLOATS = within(1e-9)
BEYOND = -7  # value of a function where there is no path or link
Change = tuple[str, str] | None
Vector = Callable[[int], Any]


def vector(values: Sequence[Any] | np.ndarray) -> Vector:
    """Return values of paths or links as Coq has them, a function."""
    return lambda j: values[j] if j < len(values) else BEYOND


def listed(rates: Vector, paths: int) -> list[Any]:
    return [rates(j) for j in range(paths)]


def additive(
    A: np.ndarray, C: Sequence[Any], start: Sequence[Any], *, steps: int = 1, **options: Any
) -> list[list[float]]:
    """Run `fluidcc.theory.additive_increase`, with rationals as floats."""
    plain = {name: value if name == "delays" else float(value) for name, value in options.items()}
    at = [[float(each) for each in values] for values in (C, start)]
    return fc.theory.additive_increase(A, *at, steps=steps, **plain).rates.tolist()


def fields(A: np.ndarray, C: Sequence[Any]) -> dict[str, Any]:
    """Give the fields of Coq's networks their meaning."""
    return {
        "links": A.shape[0],
        "paths": A.shape[1],
        "crosses": lambda i, j: i >= len(A) or bool(vector(A[i])(j)),
        "capacity": vector(C),
    }


def network(A: np.ndarray, C: Sequence[Any]) -> dict[str, Any]:
    """Give names of a network their meaning: utilisations are those of `fluidcc.theory`'s results."""

    def used(rates: Vector) -> np.ndarray:
        return Rates(A, np.array(C), np.array([listed(rates, A.shape[1])]), "").utilization[0]

    return fields(A, C) | {
        "link_use": lambda rates, i: vector(used(rates))(i),
        "link_load": lambda rates, i: vector(used(rates) * C)(i),
        "path_use": lambda rates, j: vector(on_path(A, used(rates)).max(axis=0))(j),
    }


# -- one rate for each path, any network --

TOO_MUCH = {
    "additive_increase.paths_above_target": ("target <", "target + a <"),
    "additive_increase.rate_at_rest": ("target / path_use", "1 / path_use"),
    "additive_increase.smaller_rate_iff_more_used": ("rates j < rates k", "rates j <= rates k"),
    "additive_increase.use_at_rest": ("target / (1", "1 / (1"),
    "additive_increase.below_full_iff_small_increase": ("< 1 <->", "<= 1 <->"),
    "additive_increase.links_close_to_target": ("<= target", "< target"),
    "additive_increase.increase_within_headroom": ("<= 1", "< 1"),
    "additive_increase.increase_below_headroom": ("* a <", "* a <="),
    "additive_increase.rule_of_thumb": ("crossing i <= most ->", ""),
    "additive_increase.room_close_to_target": ("<= target", "< target"),
    "additive_increase.equilibrium_is_max_min_fair": ("rates k <= rates j", "rates k < rates j"),
    "additive_increase.equilibrium_is_unique": ("at_rest target a second ->", ""),
}


@functools.cache
def at_rest() -> list[Example]:
    """Networks whose equilibrium is rational, and other rates beside it."""
    random, found = np.random.default_rng(2019), []
    for _ in range(DRAWN):
        A = (random.random((LINKS, PATHS)) < 0.5).astype(int)
        C = [Fraction(int(each)) for each in random.integers(1, 7, LINKS)]
        increase, target = Fraction(int(random.integers(1, 9)), 16), Fraction(int(random.integers(1, 4)), 4)
        if not A.any(axis=0).all():
            continue
        run = additive(A, C, [1] * PATHS, steps=STEPS, increase=increase, target=target)[-1]
        solved = equilibrium(A, [float(c) for c in C], increase=float(increase), target=float(target))
        assert solved == pytest.approx(run)
        rates = [Fraction(rate).limit_denominator(LARGEST) for rate in run]
        known = network(A, C) | {"target": target, "a": increase, "rates": vector(rates)}
        rule = defined("hpcc.additive_increase", known)["next_rate"]
        if [rule(target, increase, known["rates"], j) for j in range(PATHS)] == rates:
            found.append(beside(A, C, rates, known))
    assert len(found) > 20
    return found


def beside(A: np.ndarray, C: list[Fraction], rates: list[Fraction], known: dict[str, Any]) -> Example:
    """Add other rates, some of which fit the links, and the program's judgement of what rests."""

    @functools.cache
    def rests(target: Fraction, increase: Fraction, some: Vector) -> bool:
        before = [float(rate) for rate in listed(some, PATHS)]
        if min(before) <= 0:
            return False
        after = additive(A, C, before, increase=increase, target=target)[-1]
        return after == pytest.approx(before, rel=1e-12)

    up, down = Fraction(1, 5), Fraction(-1, 4)
    others = [[rate + (up if k == j else down) for k, rate in enumerate(rates)] for j in range(PATHS)]
    vectors = [vector(each) for each in (rates, rates[::-1], [2 * rate for rate in rates], *others)]
    domains = {
        "i": range(LINKS + 1),
        **dict.fromkeys(("j", "k"), range(PATHS + 1)),
        **dict.fromkeys(("other", "first", "second"), vectors),
        "most": range(1, PATHS + 1),
        "least": sorted({*C}),
    }
    return Example(defined("hpcc.additive_increase", known | {"at_rest": rests}, domains), domains)


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_theorem_holds_at_the_equilibria_of_random_networks(name: str) -> None:
    """Notice an update, a utilisation or an equilibrium in Coq that is not `additive_increase`'s."""
    assert verdicts(f"hpcc.{name}", TOO_MUCH[name], at_rest()) == (True, False)


@pytest.mark.parametrize(
    "change",
    [
        None,
        ("Rmax target (link_use rates i) * capacity i", "Rmax target (link_use rates i)"),
        ("a rates j = rates j", "a rates j <= rates j"),
    ],
)
def test_rest_in_coq_is_the_recursion_s(change: Change) -> None:
    """Notice rates that rest although they fall, and capacities for which others are max-min fair."""
    same = True
    for known, domains, _ in at_rest():
        own = {name: known[name] for name in ("links", "paths", "crosses", "capacity", "target", "a", "rates")}
        coq = defined("hpcc.additive_increase", own, domains, change=change)
        A = np.array([[own["crosses"](i, j) for j in range(PATHS)] for i in range(LINKS)], dtype=float)
        rooms = [float(coq["room_at_rest"](i)) for i in range(LINKS)]
        same &= max_min(A, rooms) == pytest.approx([float(rate) for rate in listed(own["rates"], PATHS)])
        for some in domains["first"]:
            state = own["target"], own["a"], some
            same &= bool(coq["at_rest"](*state)) is known["at_rest"](*state)
    assert same is (change is None)


@pytest.mark.parametrize("change", [None, ("(target / path_use rates j) + a", "((target + a) / path_use rates j)")])
def test_the_update_in_coq_is_the_recursion_s(change: Change) -> None:
    """Notice an increase that is not added after the division, on rates that do not rest."""
    A, C, start = np.array([[1, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1]]), [3, 2, 4], [0.5, 1, 2, 0.25]
    known = defined("hpcc.additive_increase", fields(A, C), change=change)
    found = [known["next_rate"](0.75, 0.125, vector(start), j) for j in range(PATHS)]
    assert all(map(FLOATS, found, additive(A, C, start, increase=0.125, target=0.75)[-1])) is (change is None)


# -- flows on one link --

FLOWS = 3
ONE_LINK = {
    "load_after_one_round_trip": ("INR flows * a", "a"),
    "differences_shrink": ("^ n", "^ (n + 1)"),
    "distance_from_fair_rate": ("after 1 start j - fair_rate", "start j - fair_rate"),
    "use_at_equilibrium": ("still rates ->", ""),
    "rates_at_equilibrium": ("still rates ->", ""),
    "below_full_iff": ("use rates < 1", "use rates <= 1"),
    "excess_at_equilibrium": ("(1 - target) *", ""),
    "rule_uses_headroom": ("* INR flows", ""),
    "rule_keeps_queue_empty_iff": ("<= expected", "< expected"),
    "rule_below_full_iff": ("< expected", "<= expected"),
    "smaller_increase_is_slower": ("a < b ->", "a <= b ->"),
}


def shrinks(flows: int, capacity: int, target: Fraction, increase: Fraction) -> float:
    """Return what is left of a difference between flows, by `single_link_modes`."""
    return float(single_link_modes(flows, increase=float(increase), target=float(target), capacity=capacity)[-1])


def one_link(capacity: int, target: Fraction, expected: int) -> Example:
    """Flows by the rule of thumb for an expected number of them."""
    A, increase = np.ones((1, FLOWS)), (1 - target) * capacity / expected
    options: dict[str, Any] = {"increase": increase, "target": target}
    starts = [vector(start) for start in ([1.0, 2.0, 4.0], [0.25, 0.25, 5.0])]
    final = additive(A, [capacity], [1.0] * FLOWS, steps=STEPS, **options)[-1]
    rest = vector([Fraction(rate).limit_denominator(LARGEST) for rate in final])

    def update(rates: Vector) -> list[float]:
        return additive(A, [capacity], listed(rates, FLOWS), **options)[-1]

    @functools.cache
    def run(start: Vector) -> list[list[float]]:
        return additive(A, [capacity], listed(start, FLOWS), steps=20, **options)

    known = {
        "flows": FLOWS,
        "capacity": capacity,
        "target": target,
        "a": increase,
        "expected": Fraction(expected),
        "rates": rest,
        "use": lambda rates: network(A, [Fraction(capacity)])["link_use"](rates, 0),
        "next": lambda rates: vector(update(rates)),
        "after": lambda n, start: vector(run(start)[n]),
        "still": lambda rates: update(rates) == pytest.approx(listed(rates, FLOWS), rel=1e-12),
        "shrink": shrinks(FLOWS, capacity, target, increase),
        "fair_rate": float(equilibrium(A, [capacity], increase=float(increase), target=float(target))[0]),
    }
    domains = {"n": range(12), **dict.fromkeys(("j", "k"), range(FLOWS)), "start": starts, "rates": [rest, *starts]}
    return Example(defined("hpcc.one_link", known, domains, FLOATS), domains, FLOATS)


@pytest.mark.parametrize("name", ONE_LINK)
def test_a_theorem_holds_for_flows_on_one_link(name: str) -> None:
    """Notice a load, a factor or a fair rate in Coq that is not the recursion's, or a rule off by one flow."""
    examples = [one_link(4, Fraction(3, 4), 2), one_link(2, Fraction(19, 20), FLOWS), one_link(3, Fraction(1, 2), 8)]
    if name == "smaller_increase_is_slower":  # outside of the file's section, so for all parameters
        rates = [Fraction(1, 16), Fraction(1, 4)]
        domains = {"flows": [2, FLOWS], "capacity": [2], "target": [Fraction(3, 4)], "a": rates, "b": rates}
        examples = [Example({"shrink": shrinks}, domains)]
    assert verdicts(f"hpcc.one_link.{name}", ONE_LINK[name], examples) == (True, False)


@pytest.mark.parametrize(
    "change",
    [
        None,
        ("rates j * (target / use rates) + a", "(rates j + a) * (target / use rates)"),
        ("target / (target + INR flows * a / capacity)", "target / (target + a / capacity)"),
        ("(target * capacity + INR flows * a) / INR flows", "(capacity + INR flows * a) / INR flows"),
    ],
)
def test_one_link_in_coq_is_the_recursion_s(change: Change) -> None:
    """Notice an update, a mode or a fair rate that is computed otherwise."""
    capacity, target, increase, start = 2, 0.75, 0.125, [1.0, 2.0, 4.0]
    A, options = np.ones((1, FLOWS)), {"increase": increase, "target": target}
    variables = {"flows": FLOWS, "capacity": capacity, "target": target, "a": increase}
    coq = defined("hpcc.one_link", variables, change=change)
    after = [coq["after"](n, vector(start), j) for n in range(4) for j in range(FLOWS)]
    run = additive(A, [capacity], start, steps=3, **options)
    found = [*after, coq["shrink"](), coq["fair_rate"]()]
    rest = float(equilibrium(A, [capacity], **options)[0])
    expected = [
        *(rate for row in run for rate in row),
        shrinks(FLOWS, capacity, Fraction(target), Fraction(increase)),
        rest,
    ]
    assert all(map(FLOATS, found, expected)) is (change is None)


# -- a register for each link of a path --

REGISTERS = {
    "links_above_target": ("target <", "target + a <"),
    "register_at_rest": ("target / link_use", "1 / link_use"),
    "registers_give_alpha_fair": ("(forall i, (i < links)%nat -> link_load other i <=", "(forall i, 0 <="),
    "alpha_fair_rates_are_unique": ("other k <> register_rate alpha registers k ->", ""),
    "rate_at_most_register": ("crosses i j = true ->", ""),
    "rate_near_least_register": ("* power (INR links) (- 1 / alpha)", ""),
    "register_links_close_to_target": ("<= target + a * link_load (fun _ => 1) i", "<= target + a"),
}
IDLE = 0.99  # share of the rates that others have, lest rounding decides whether they fit


ALPHAS = 0.5, 1.0, 2.0
OF_TWO = np.array([[1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]])  # each path crosses two links
ROOMY = [3.0, 2.0, 1.5]


def registers(alpha: float) -> Example:
    """Registers of the end of a run of `fluidcc.theory.alpha_fair`, by the utilisations that it reports."""
    A, C, target, increase = OF_TWO, ROOMY, 0.75, 0.25
    run = fc.theory.alpha_fair(A, C, np.ones(PATHS), alpha=alpha, increase=increase, target=target, steps=STEPS)
    held = np.ones(A.shape)
    for U in run.utilization[:-1]:
        held = held * target / U[:, None] + increase
    rates = run.final.tolist()
    known = network(A, C) | {
        "alpha": alpha,
        "target": target,
        "a": increase,
        "registers": lambda i, j: vector(held[i].tolist())(j) if i < LINKS else BEYOND,
        "register_rate": lambda _alpha, _registers, j: vector(rates)(j),
        "power": lambda x, y: x**y,
        "log": lambda x: math.log(x),
    }
    some = np.random.default_rng(1).uniform(0.3, 1.0, (6, PATHS)) * run.final
    moved = [IDLE * run.final + np.eye(PATHS)[j] * 0.2 - 0.1 for j in range(PATHS)]
    others = [
        rates,
        (2 * run.final).tolist(),
        (IDLE * run.final).tolist(),
        *some.tolist(),
        *map(np.ndarray.tolist, moved),
        [0.0] * PATHS,
    ]
    domains = {
        "i": range(LINKS + 1),
        **dict.fromkeys(("j", "k"), range(PATHS + 1)),
        "other": [vector([float(each) for each in other]) for other in others],
        "low": sorted(held[A > 0].tolist()),
    }
    return Example(defined("hpcc.fairness", known, domains, FLOATS), domains, FLOATS)


@pytest.mark.parametrize("name", REGISTERS)
def test_a_theorem_holds_for_registers_at_rest(name: str) -> None:
    """Notice a rate, a utility or a register in Coq that is not `alpha_fair`'s."""
    examples = [registers(alpha) for alpha in ALPHAS]
    assert verdicts(f"hpcc.fairness.{name}", REGISTERS[name], examples) == (True, False)


@pytest.mark.parametrize(
    "change",
    [None, ("* (target / link_use", "* (1 / link_use"), ("(- alpha)) j) (- 1 / alpha)", "(- alpha)) j) (1 / alpha)")],
)
def test_registers_in_coq_are_those_of_the_recursion(change: Change) -> None:
    """Notice another rate of registers or another update, before they rest."""
    start, alpha = [0.5, 1.0, 2.0, 0.25], 2.0
    run = fc.theory.alpha_fair(OF_TWO, ROOMY, start, alpha=alpha, increase=0.125, target=0.75, steps=4)
    known = defined("hpcc.fairness", fields(OF_TWO, ROOMY) | {"power": lambda x, y: x**y}, change=change)
    held, same = np.tile(start, (LINKS, 1)), True

    def registers(i: int, j: int) -> float:
        return float(held[i, j])

    for row in run.rates.tolist():
        same &= all(map(FLOATS, [known["register_rate"](alpha, registers, j) for j in range(PATHS)], row))
        update = [
            [known["next_register"](alpha, 0.75, 0.125, registers, i, j) for j in range(PATHS)] for i in range(LINKS)
        ]
        held = np.array(update)
    assert same is (change is None)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_registers_of_the_end_of_a_run_rest_in_coq(alpha: float) -> None:
    """Notice registers that rest where the run's do not, or move where it has settled."""
    known, domains, _ = registers(alpha)
    coq = defined("hpcc.fairness", fields(OF_TWO, ROOMY) | {"power": known["power"]}, domains, FLOATS)
    of = alpha, known["target"], known["a"]
    assert coq["registers_at_rest"](*of, known["registers"])
    assert not coq["registers_at_rest"](*of, lambda i, j: 1.0)


# -- late feedback on one link --

LATE = {
    "in_time_is_stable": ("late 0", "late 1"),
    "one_round_trip_late_decays": ("lambda ^ 2 / 4", "0"),
    "one_round_trip_late_is_stable": ("late 1", "late 2"),
    "two_round_trips_late_stable_iff": ("< 1 / 2", "< 2 / 3"),
    "two_round_trips_late_unstable_at_95_percent": ("late 2", "late 1"),
}
NUDGE = 1e-8  # of the load; what is left of the nonlinear recursion is of its size
LINEAR = within(0.0, 1e-5)


def deviations(ratio: float, late: int) -> Vector:
    """Deviation of the load from its equilibrium after a nudge; U_target / U is the ratio there."""
    target, flows = 0.5, 2
    use = target / ratio
    start = [use / flows * (1 + NUDGE)] * flows
    run = additive(
        np.ones((1, flows)), [1], start, steps=3000, target=target, increase=(use - target) / flows, delays=late
    )
    return vector([(sum(rates) - use) / NUDGE for rates in run])


@pytest.mark.parametrize("name", LATE)
def test_a_theorem_holds_for_late_feedback(name: str) -> None:
    """Notice a delay that is off by a round trip, and a limit of stability that is not the recursion's."""
    examples = []
    for ratio in (0.6, 0.69, 0.73, 0.8, 0.95):
        runs = [deviations(ratio, late) for late in (0, 1, 2)]
        tends = lambda x, limit: abs(x(3000) - limit) < 1e-2  # noqa: E731
        domains = {"n": range(20), "x": runs, "use": [0.95 / ratio]}
        known = {"lambda": ratio, "Un_cv": tends}
        examples.append(Example(defined("hpcc.delayed_feedback", known, domains, LINEAR), domains, LINEAR))
    assert verdicts(f"hpcc.delayed_feedback.{name}", LATE[name], examples) == (True, False)
