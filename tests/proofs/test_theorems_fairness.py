"""Theorems of Snyder and Lebeck's paper, evaluated on Variable AI's rules of `fluidcc.schemes.vai_sf` (IV-A).

Congestion and settings are sums of few powers of two, so that tokens and dampener are exact in the rules' floats.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from fluidcc.schemes.vai_sf import packet
from fluidcc.theory.recursion.optimal import equilibrium
from tests.engines.packet.plain import plain
from tests.proofs.coq_statements import Example, defined, verdicts, within

Change = tuple[str, str] | None
Event = tuple[Any, ...]
ROUNDED = within(1e-12)
round_trip_over, increases, adjusted = (
    plain(getattr(packet, name)) for name in ("round_trip_over", "increases", "adjusted")
)


class Settings(NamedTuple):
    """Settings in the order of Coq's record."""

    ai_div: float
    token_thresh: float
    bank_cap: float
    ai_cap: float
    dampener_constant: float
    base_ai: float
    excess: bool


class Sender(NamedTuple):
    """State in the order of Coq's record; what the rules do not count is told from how the bank changes."""

    bank: float
    dampener: float
    made: float = 0.0
    spent: float = 0.0
    lost: float = 0.0


SETTINGS = Settings(4.0, 64.0, 200.0, 30.0, 8.0, 16.0, False), Settings(2.0, 32.0, 64.0, 64.0, 4.0, 1.0, True)
CONGESTION = 0.0, 16.0, 32.0, 64.0, 65.0, 128.0, 3000.0


def record(of: Settings, now: Sender, **state: Any) -> Any:
    """Make a record of the packet engine as far as the rules look at it."""
    above = of.token_thresh if of.excess else 0.0
    given = of._asdict() | {"bank": now.bank, "dampener": now.dampener, "tokens_above": above, "vai": True}
    return SimpleNamespace(**given | state)


def round_trip(of: Settings, congestion: float, none: bool, now: Sender) -> Sender:
    """End a round trip by Algorithm 1."""
    me = record(of, now, measured=congestion, congested=not none)
    from_nothing = record(of._replace(bank_cap=np.inf), Sender(0.0, 0.0), measured=congestion, congested=not none)
    round_trip_over(me)
    round_trip_over(from_nothing)
    made = from_nothing.bank
    return Sender(me.bank, me.dampener, now.made + made, now.spent, now.lost + now.bank + made - me.bank)


def adjust(of: Settings, adjustment: bool, now: Sender) -> Sender:
    """Spend what an increase uses, by Algorithm 2."""
    if not adjustment:
        return now
    me = record(of, now)
    adjusted(me)
    return now._replace(bank=me.bank, spent=now.spent + now.bank - me.bank)


def additive_increase(of: Settings, now: Sender) -> float:
    return increases(record(of, now)) * of.base_ai


def step(of: Settings, happens: Event, now: Sender) -> Sender:
    if happens[0] == "Round_trip":
        return round_trip(of, happens[1], happens[2], now)
    return adjust(of, happens[1], now)


def run(of: Settings, events: tuple[Event, ...], now: Sender) -> Sender:
    return functools.reduce(lambda before, happens: step(of, happens, before), events, now)


@functools.cache
def histories() -> list[tuple[Event, ...]]:
    """Events at random, from none to twelve."""
    draw = random.Random(3)

    def event() -> Event:
        if draw.random() < 0.4:
            return "Increase", draw.random() < 0.7
        congestion = draw.choice(CONGESTION)
        return "Round_trip", congestion, congestion == 0 and draw.random() < 0.8

    return [tuple(event() for _ in range(length)) for length in range(13) for _ in range(4)]


STARTS = list(itertools.product((0.0, 24.0, 64.0), (0.0, 0.5, 12.0)))
IN_SECTION = {
    "round_trip": round_trip,
    "adjust": adjust,
    "additive_increase": additive_increase,
    "step": step,
    "run": run,
}


def of_settings(of: Settings) -> Example:
    """Give the names of Coq's file their meaning, in its section: the rules of the packet engine."""
    inside = {name: functools.partial(rule, of) for name, rule in IN_SECTION.items()}
    known = inside | {
        "of": of,
        "Sender": lambda bank, dampener, made, spent, lost: Sender(bank, dampener, made, spent, lost),
        "tokens_used": lambda now: now.bank - adjust(of, True, now).bank,
    }
    events = [(("Round_trip", c, none),) for c, none in itertools.product(CONGESTION, (False, True))]
    domains = {
        "tokens": sorted({tokens for tokens, _ in STARTS}),
        "damp": sorted({damp for _, damp in STARTS}),
        "events": histories(),
        "happens": [*(each for (each,) in events), ("Increase", True), ("Increase", False)],
        "now": [Sender(*start) for start in STARTS],
        **dict.fromkeys(("congestion", "first"), CONGESTION),
        **dict.fromkeys(("none", "adjustment"), (False, True)),
        "n": range(5),
    }
    return Example(defined("fairness.tokens", known, domains, ROUNDED), domains, ROUNDED)


def of_histories() -> Iterator[Example]:
    """Give a start and a history their names, too."""
    for of in SETTINGS:
        known, domains, equal = of_settings(of)
        for (tokens, damp), events in itertools.product(STARTS, histories()):
            yield Example({**known, "tokens": tokens, "damp": damp, "events": events}, domains, equal)


BANK = {
    "bank_at_most_cap": ("<= bank_cap", "< bank_cap"),
    "bank_never_negative": ("0 <=", "0 <"),
    "spent_at_once_at_most_cap": ("<= ai_cap", "< ai_cap"),
    "spent_at_most_made": ("<= tokens + made", "<= made"),
    "tokens_balance": ("+ lost (run events (start tokens damp))", ""),
    "dampener_never_negative": ("0 <=", "0 <"),
    "increase_at_least_base": ("<=", "<"),
}
RULES = {
    "increase_at_most_cap": ("<= ai_cap of * base", "< ai_cap of * base"),
    "balance_is_exact_iff": (
        "never_binds events (start tokens damp)",
        "bank (run events (start tokens damp)) < bank_cap of",
    ),
    "line_1_has_no_effect": ("= tokens_used now", "= first"),
    "dampener_rises_by_more_than_one": ("+ 1 <", "+ 2 <"),
    "dampener_resets_only_if": ("dampener now - 1", "dampener now"),
    "unspent_tokens_keep_dampener": ("0 < bank now ->", ""),
    "nothing_happens_at_threshold": ("congestion ==", "congestion <="),
    "mild_congestion_lowers_by_ones": ("bank now == 0 ->", ""),
    "bank_after_adjustments": ("count n * ai_cap", "ai_cap"),
}


@pytest.mark.parametrize("name", BANK)
def test_a_theorem_holds_for_histories_of_the_rules(name: str) -> None:
    """Notice a bank, its loss to the cap or a dampener in Coq that is not the packet engine's."""
    assert verdicts(f"fairness.tokens.{name}", BANK[name], of_histories()) == (True, False)


@pytest.mark.parametrize("name", RULES)
def test_a_theorem_holds_for_each_rule(name: str) -> None:
    """Notice an order of Algorithm 1's branches, or what spends tokens, that is not the packet engine's."""
    assert verdicts(f"fairness.tokens.{name}", RULES[name], [of_settings(of) for of in SETTINGS]) == (True, False)


SLIPS = [
    None,
    ("if none then", "if Qeq_dec congestion 0 then"),
    ("Qmax (dampener now - 1) 0", "dampener now - 1"),
    (": Q := Qmin (ai_cap of) (bank now)", ": Q := bank now"),
]


@pytest.mark.parametrize("change", SLIPS)
def test_rules_in_coq_are_those_of_packets(change: Change) -> None:
    """Notice another rule in one step, from states that no history reaches."""
    same = True
    for of in SETTINGS:
        coq = defined("fairness.tokens", {"of": of}, change=change)
        _, domains, _ = of_settings(of)
        for now in domains["now"]:
            same &= all(ROUNDED(coq["step"](happens, now), step(of, happens, now)) for happens in domains["happens"])
            same &= ROUNDED(coq["additive_increase"](now), additive_increase(of, now))
    assert same is (change is None)


# -- feedback: congestion that increases make --

FEEDBACK = {
    "increase_after_congested_row": ("count (round_trips recent) /", "(count (round_trips recent) + 1) /"),
    "increase_under_lasting_congestion": ("(count n + 1)", "count n"),
    "larger_dampener_no_higher_increase": ("dampener newer <= dampener longer ->", ""),
}
LOOP = {
    "feedback_ends": ("answer (base_ai of) <= token_thresh of ->", ""),
    "feedback_ends_at_base_ai": ("exists n, forall m, (n <= m)%nat ->", "forall m,"),
    "feedback_never_ends": ("(S m)", "m"),
    "feedback_ends_iff": ("<-> answer (base_ai of) <=", "<-> answer (base_ai of) <"),
}
ETA = 0.95
LATE = 200  # round trips after which a loop that ends has ended


class Answer(NamedTuple):
    """Congestion that an increase makes: so many times it, or that of HPCC's flows."""

    times: float = 0.0
    flows: int = 0
    spare: float = 0.0
    trip: float = 0.0

    def congestion(self, increase: float) -> float:
        return hpcc_queue(self.flows, self.spare, self.trip, increase) if self.flows else self.times * increase


def hpcc_queue(flows: int, spare: float, trip: float, increase: float) -> float:
    """Queue of windows at the equilibrium of HPCC's A.3, by `equilibrium`; spare is (1 - eta) C."""
    capacity = spare / (1 - ETA)
    rates = equilibrium(np.ones((1, flows)), [capacity], increase=increase, target=ETA)
    return max(float(rates.sum() - capacity) * trip, 0.0)


@functools.cache
def turns(of: Settings, answer: Answer, now: tuple[Sender, float]) -> list[tuple[Sender, float]]:
    """Let each round trip's increase make the congestion of the next; it has no congestion where that is 0."""
    found = [now]
    for _ in range(LATE + 20):
        sender, congestion = found[-1]
        after = round_trip(of, congestion, congestion == 0, sender)
        found.append((adjust(of, True, after), answer.congestion(additive_increase(of, after))))
    return found


def outside(of: Settings) -> dict[str, Any]:
    """Give the rules their names outside of the section, where they take the settings."""

    def tokens_made(of: Settings, congestion: float) -> float:
        return round_trip(of, congestion, False, Sender(0.0, 0.0)).made

    return {**of_settings(of).known, **IN_SECTION, "tokens_made": tokens_made}


def under_congestion(of: Settings) -> Example:
    of_one = of_settings(of)
    row: tuple[Event, ...] = ("Round_trip", 65.0, False), ("Increase", True)
    domains = {
        **of_one.domains,
        "before": [(), *histories()[-5:]],
        "recent": [history for history in histories() if len(history) < 5] + [row * n for n in range(4)],
        **dict.fromkeys(("longer", "newer"), tuple(Sender(*start) for start in STARTS)),
    }
    return Example(defined("fairness.feedback", outside(of), domains, ROUNDED), domains, ROUNDED)


@pytest.mark.parametrize("name", FEEDBACK)
def test_a_theorem_holds_for_increases_under_congestion(name: str) -> None:
    """Notice a dampener that grows or divides otherwise than the packet engine's."""
    assert verdicts(f"fairness.feedback.{name}", FEEDBACK[name], map(under_congestion, SETTINGS)) == (True, False)


def loop(times: float, tokens: float, damp: float) -> Example:
    of, answer = SETTINGS[0], Answer(times)
    known = outside(of) | {
        "tokens": tokens,
        "damp": damp,
        "congestion": 0.0,
        "answer": answer.congestion,
        "turns": lambda m, now: turns(of, answer, now)[m],
    }
    domains = {"n": [0, LATE], "m": [*range(4), *range(LATE, LATE + 9)]}
    return Example(defined("fairness.feedback", known, domains, ROUNDED), domains, ROUNDED)


@pytest.mark.parametrize("name", LOOP)
def test_a_theorem_holds_for_loops_of_the_rules(name: str) -> None:
    """Notice tokens that are spent before they count, or a loop that ends at another increase."""
    examples = [loop(times, *start) for times, start in itertools.product((2.0, 4.0, 5.0, 20.0), STARTS)]
    assert verdicts(f"fairness.feedback.{name}", LOOP[name], examples) == (True, False)


def hpcc_loop(of: Settings) -> Example:
    """Loops of HPCC's queue: some end and some do not, by the number of flows."""

    def turn(answer: functools.partial[float], _none: Any, m: int, now: tuple[Any, float]) -> tuple[Sender, float]:
        return turns(of, Answer(0.0, *answer.args), (Sender(*now[0]), now[1]))[m]

    domains = {
        "flows": [2, 40, 100],
        "spare": [64.0, 640.0],
        "trip": [0.05, 0.5],
        "none": [lambda congestion: congestion == 0],
        "congestion": [0.0, 130.0],
        "n": [0, LATE],
        "m": [*range(4), *range(LATE, LATE + 9)],
    }
    known = outside(of) | {"hpcc_queue": hpcc_queue, "turns": turn}
    return Example(defined("fairness.feedback", known, domains, ROUNDED), domains, ROUNDED)


def test_hpcc_s_loop_ends_iff_its_own_increase_makes_no_tokens() -> None:
    """Notice a queue of HPCC's flows in Coq that is not that of A.3's equilibrium."""
    change = "(flows * base_ai of - spare)", "(flows * base_ai of)"
    examples = [hpcc_loop(SETTINGS[0])]
    assert verdicts("fairness.feedback.hpcc_feedback_ends_iff", change, examples) == (True, False)


@pytest.mark.parametrize(
    "change", [None, ("answer (additive_increase of after)", "answer (additive_increase of (fst now))")]
)
def test_a_turn_in_coq_is_one_of_the_rules(change: Change) -> None:
    """Notice an increase that is asked for before the round trip's tokens are there, and another queue of HPCC's."""
    of, (flows, spare, trip) = SETTINGS[0], (40, 64.0, 0.5)
    queue = Answer(0.0, flows, spare, trip)
    coq = defined("fairness.feedback", outside(of) | {"none": lambda congestion: congestion == 0}, change=change)
    coq["answer"] = functools.partial(coq["hpcc_queue"], flows, spare, trip)
    now, same = (Sender(24.0, 0.5), 130.0), True
    for following in turns(of, queue, now)[1:6]:
        now = coq["turn"](now)
        same &= within(1e-9)(now, following)
    assert same is (change is None)
