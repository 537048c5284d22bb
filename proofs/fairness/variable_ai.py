"""Fast convergence to fairness, section IV-A: Variable AI's Algorithms 1 and 2, line by line, in exact fractions.

Settings of section VI for HPCC: a token per KB (AI_DIV), Token_Thresh 50 KB, Bank_Cap 1000, AI_Cap 100, dampener
constant 8, base_AI 50 Mb/s. Congestion is the queue in KB.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import random
import textwrap
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from fluidcc.proofs.papers import VAI
from fluidcc.proofs.shared.sample import share
from fluidcc.proofs.verdict.claim import Finding, Way, claim
from fluidcc.proofs.verdict.registry import main

DIV, THRESH, BANK_CAP, AI_CAP, CONSTANT, BASE = Fraction(1), Fraction(50), 1000, 100, 8, 50  # KB, KB, tokens, Mb/s
HISTORIES, LENGTH = 60, 60  # drawn; round trips of each
MOST_TRIPS = 3000


@dataclasses.dataclass
class Sender:
    """AI_Bank and dampener, and what the paper does not count: tokens created, spent and lost to Bank_Cap.

    Without a cap (None) nothing is lost, or all tokens are spent at once.
    """

    bank: Fraction = Fraction(0)
    dampener: Fraction = Fraction(0)
    created: Fraction = Fraction(0)
    spent: Fraction = Fraction(0)
    lost: Fraction = Fraction(0)
    bank_cap: int | None = BANK_CAP
    ai_cap: int | None = AI_CAP

    def round_trip(self, congestion: Any, none: bool) -> None:
        """Algorithm 1 at the end of an RTT; ``none``: No Congestion, the scheme's own word for it."""
        if congestion > THRESH:  # 2
            full = congestion / DIV + self.bank
            self.created += congestion / DIV
            self.bank = full if self.bank_cap is None else min(full, Fraction(self.bank_cap))  # 3
            self.lost += full - self.bank
        if congestion > THRESH:  # 5
            self.dampener += congestion / THRESH  # 6
        elif self.bank == 0:  # 7
            if none:  # 8
                self.dampener = Fraction(0)  # 9
            elif congestion < THRESH:  # 10
                self.dampener = max(self.dampener - 1, Fraction(0))  # 11

    def increase(self, adjustment: bool = True) -> Fraction:
        """Algorithm 2 without its line 1: the additive increase [Mb/s]."""
        tokens = self.bank if self.ai_cap is None else min(Fraction(self.ai_cap), self.bank)  # 2
        if adjustment:  # 3
            self.spent += min(tokens, self.bank)
            self.bank = max(self.bank - tokens, Fraction(0))  # 4
        divisor = self.dampener / CONSTANT + 1  # 6
        return max(tokens / divisor, Fraction(1)) * BASE  # 7, 8


def algorithm_2(ai_cap: Fraction, bank: Fraction, dampener: Fraction, adjustment: bool) -> tuple[Fraction, Fraction]:
    """Algorithm 2 as printed, all lines: the additive increase [Mb/s] and AI_Bank afterwards."""
    tokens = Fraction(1)
    tokens = min(ai_cap, bank)
    if adjustment:
        bank = max(bank - tokens, Fraction(0))
    divisor = dampener / CONSTANT + 1
    tokens = max(tokens / divisor, Fraction(1))
    return tokens * BASE, bank


def histories(count: int, length: int, seed: int) -> Iterator[list[tuple[Fraction, bool, bool]]]:
    """Random RTTs as (congestion, no congestion, rate adjustment), often at 0 and at the threshold itself."""
    rng = random.Random(seed)
    for _ in range(count):
        rows = []
        for _ in range(length):
            queue = rng.choice([Fraction(0), THRESH, Fraction(rng.randrange(0, 4000), rng.randrange(1, 40))])
            rows.append((queue, queue == 0 and rng.random() < 0.8, rng.random() < 0.7))
        yield rows


def overwritten(function: Callable[..., Any], name: str) -> bool:
    """Check by the syntax tree whether the first value that a function assigns to a local name is never read."""
    body: Any = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    statements: list[Any] = [node for node in body.body if not isinstance(node, ast.Expr)]
    first = next(
        k
        for k, node in enumerate(statements)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name
    )
    after = statements[first + 1]
    reads = [node for node in ast.walk(after) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    return (
        isinstance(after, ast.Assign)
        and getattr(after.targets[0], "id", None) == name
        and name not in {r.id for r in reads}
    )


@claim("vai-dead-store", VAI, "IV-A, Algorithm 2", "line 1: tokens = 1 (line 2: tokens = min(AI_Cap, AI_Bank))")
def dead_store() -> Finding:
    numbers = [Fraction(n, d) for n, d in itertools.product((0, 1, 3, 99, 100, 101, 1000), (1, 2, 7))]
    differ = states = 0
    for bank, dampener, adjustment in itertools.product(numbers, numbers, (False, True)):
        without = Sender(bank=bank, dampener=dampener)
        found = without.increase(adjustment), without.bank
        differ += algorithm_2(Fraction(AI_CAP), bank, dampener, adjustment) != found
        states += 1
    return Finding(
        {"line 1 has an effect": differ > 0 or not overwritten(algorithm_2, "tokens")},
        {"states": states, "states_in_which_it_matters": differ},
        [Way("line 1 is never read: by running with and without it, by the syntax tree",
             int(differ == 0), int(overwritten(algorithm_2, "tokens")))],
        correction=f"line 1 can go: it matters in {differ} of {states} states; that the increase is at least base_AI "
        "is line 7's doing",
        corrected=differ == 0,
    )  # fmt: skip


@claim("vai-bank", VAI, "IV-A", "the AI_Bank cannot exceed Bank_Cap; at most AI_Cap tokens are spent at a time")
def balance(bank_cap: int | None = BANK_CAP, ai_cap: int | None = AI_CAP) -> Finding:
    """Algorithms with these caps, held against the paper's."""
    most = spent_at_once = made = left = Fraction(0)
    for rows in histories(HISTORIES, LENGTH, seed=1):
        sender = Sender(bank_cap=bank_cap, ai_cap=ai_cap)
        for queue, none, adjustment in rows:
            sender.round_trip(queue, none)
            before, spent = sender.bank, sender.spent
            sender.increase(adjustment)
            most, spent_at_once = max(most, before), max(spent_at_once, sender.spent - spent)
        made += sender.created
        left += sender.bank + sender.spent + sender.lost
    return Finding(
        {"as printed": most <= BANK_CAP and spent_at_once <= AI_CAP},
        {
            "most_in_the_bank": most,
            "most_spent_at_once": spent_at_once,
            "tokens_created": float(made),
            "histories": HISTORIES,
        },
        [Way("tokens created; spent, lost to Bank_Cap and left in the bank", made, left)],
        sample=f"{HISTORIES} drawn histories of {LENGTH} round trips, seed 1, each exactly; a search for an exception, "
        "no estimate",
    )


@claim("vai-dampener", VAI, "IV-A", "dampener increases quickly so the elevated AI creates less congestion")
def dampened(queue: int = 100, trips: int = 500) -> Finding:
    """A queue that stays at 100 KB: 100 tokens are made and spent in each RTT, dampener grows by 2."""
    sender, found = Sender(), []
    for _ in range(trips):
        sender.round_trip(Fraction(queue), none=False)
        found.append(sender.increase())
    tokens, growth = min(AI_CAP, queue / DIV), queue / THRESH / CONSTANT
    closed = [max(tokens / (1 + n * growth), Fraction(1)) * BASE for n in range(1, trips + 1)]
    apart = max(abs(a - b) for a, b in zip(found, closed, strict=True))
    return Finding(
        {"falls in each RTT, to base_AI": sorted(found, reverse=True) == found and found[-1] == BASE},
        {
            "mbps_after_1_rtt": float(found[0]),
            "mbps_after_8_rtts": float(found[7]),
            "rtts_to_base_ai": found.index(Fraction(BASE)) + 1,
        },
        [
            Way("largest distance: algorithm, 5000/(1 + n/4) Mb/s after n RTTs, at least 50", apart, Fraction(0)),
        ],
    )


@claim(
    "vai-no-feedback",
    VAI,
    "IV-A",
    "no feedback can occur: no tokens are left and there is no congestion to produce new ones",
)
def no_feedback(
    flows: tuple[int, ...] = (2, 16, 96, 700, 1000), trip_us: int = 13, rate_mbps: int = 100_000
) -> Finding:
    runs = {n: fed_back(n, trip_us, rate_mbps) for n in flows}
    ends = {n: run[1] is not None for n, run in runs.items()}
    # base_AI alone then makes no congestion above Token_Thresh.
    small = {n: (n * BASE - rate_mbps // 20) * trip_us <= 8000 * THRESH for n in flows}
    worst = max(run[2] for run in runs.values())
    made = {n: run[0] for n, run in runs.items()}
    held = at_reset = 0
    for rows in histories(HISTORIES, LENGTH, seed=2):
        sender, congested, holds = Sender(), 0, True
        for queue, none, adjustment in rows:
            before = sender.dampener
            sender.round_trip(queue, none)
            # Congestion adds more than 1; it falls by more than 1 only with an empty bank and no congestion.
            holds &= sender.dampener > before + 1 if queue > THRESH else True
            holds &= sender.dampener >= before - 1 or (sender.bank == 0 and none)
            at_reset += before > 0 and sender.dampener == 0 and sender.bank == 0 and none
            congested = congested + 1 if queue > THRESH else 0
            most = max(AI_CAP * BASE / (1 + Fraction(congested, CONSTANT)), Fraction(BASE))
            holds &= BASE <= sender.increase(adjustment) <= most
        held += holds
    return Finding(
        {
            "an increase makes no tokens": not any(made.values()),
            "none are left and none are made as the dampener is reset": held == HISTORIES and at_reset > 0,
        },
        {
            "resets_with_an_empty_bank_and_no_congestion": at_reset,
            "rtts_in_which_the_increases_made_tokens_by_flows": made,
            "rtts_until_it_ended_by_flows": {n: run[1] for n, run in runs.items()},
            "rtts_run_where_it_does_not_end": MOST_TRIPS,
            "largest_increase_mbps": float(worst),
        },
        [
            Way("histories in which bound and reset hold: checked, all", held, HISTORIES),
            *(Way(f"whether it ends, {n} flows: run, queue of base_AI", ends[n], small[n]) for n in flows),
        ],
        restricted=held == HISTORIES and ends == small and worst <= AI_CAP * BASE,
        conditions=(
            "as boundedness: an increase can itself make tokens, but is at most AI_Cap base_AI, and at most AI_Cap "
            "base_AI/(1 + n/8), or base_AI, in the n-th such RTT in a row; it ends if base_AI alone stays below "
            f"Token_Thresh, with {BASE} Mb/s on {rate_mbps / 1000:g} Gb/s and {trip_us} us, "
            f"as with {named(ends, True)} flows, and does not with {named(ends, False)}"
        ),
        sample=f"{HISTORIES} drawn histories of {LENGTH} round trips, seed 2, each exactly: bound and reset hold in "
        f"{share(held, HISTORIES)}; {len(flows)} runs of up to {MOST_TRIPS} round trips draw nothing",
    )


def named(ends: dict[int, bool], wanted: bool) -> str:
    """The numbers of flows with which it ends, or does not."""
    return ", ".join(str(n) for n, end in ends.items() if end is wanted) or "none"


def fed_back(flows: int, trip_us: int, rate_mbps: int) -> tuple[int, int | None, float]:
    """Flows at the equilibrium of HPCC's A.3: the queue is that of their own increases, (N a - (1 - eta) C) T in KB.

    RTTs in which that made tokens, RTTs until bank and dampener are empty for good (None: not in MOST_TRIPS), and the
    largest increase [Mb/s].
    """
    # Floats: fractions double their digits in each turn of the loop. A newcomer's queue.
    sender, queue = Sender(), 2.0 * float(THRESH)
    made, worst, calm = 0, 0.0, 0
    increase: Any
    for trip in range(MOST_TRIPS):
        sender.round_trip(queue, none=queue == 0)
        increase = sender.increase()
        worst = max(worst, increase)
        queue = max(float(flows * increase - rate_mbps / 20) * trip_us / 8000, 0.0)
        made += queue > THRESH
        calm = calm + 1 if sender.bank == sender.dampener == 0 else 0
        if calm == 20:
            return made, trip - 19, float(worst)
    return made, None, float(worst)


@claim("vai-reset", VAI, "IV-A", "dampener only resets to zero with an empty bank and no congestion over the RTT")
def reset() -> Finding:
    mild = Sender(dampener=Fraction(3))
    steps = 0
    while mild.dampener:  # 10 KB of queue throughout, which is congestion below Token_Thresh
        mild.round_trip(Fraction(10), none=False)
        steps += 1
    rich = Sender(bank=Fraction(BANK_CAP), dampener=Fraction(40))
    kept = []
    while rich.dampener:  # no congestion at all, the bank full: spent first, one AI_Cap in each RTT
        rich.round_trip(Fraction(0), none=True)
        kept.append(rich.increase())
    idle = Sender(bank=Fraction(1), dampener=Fraction(40))
    for _ in range(1000):  # nothing adjusts the rate: tokens are not spent, and the dampener stays
        idle.round_trip(Fraction(0), none=True)
        idle.increase(adjustment=False)
    return Finding(
        {"set to zero": rich.bank == 0 and idle.dampener == 40, "reaches zero": steps != 3},
        {
            "mild_congestion_rtts_from_3_to_0": steps,
            "rtts_without_congestion_until_reset_with_a_full_bank": len(kept),
            "dampener_after_1000_rtts_with_a_token_never_spent": float(idle.dampener),
        },
        [Way("RTTs to reset: algorithm, Bank_Cap/AI_Cap and one", len(kept), BANK_CAP // AI_CAP + 1)],
        restricted=idle.dampener == 40 and len(kept) == BANK_CAP // AI_CAP + 1,
        conditions=f"line 9 only; line 11 takes it there by ones in milder congestion, from 3 in {steps} RTTs; and a "
        f"token unspent keeps it, after 1000 RTTs at {idle.dampener}",
    )


@claim("vai-at-threshold", VAI, "IV-A, Algorithm 1", "an RTT's congestion is above Token_Thresh (5) or below it (10)")
def at_threshold() -> Finding:
    def after(queue: Fraction) -> tuple[Fraction, Fraction]:
        sender = Sender(dampener=Fraction(5))
        sender.round_trip(queue, none=False)
        return sender.bank, sender.dampener

    acts = {str(queue): after(queue) != (0, 5) for queue in (THRESH - 1, THRESH, THRESH + 1)}
    beside = all(acts[str(queue)] for queue in (THRESH - 1, THRESH + 1))
    return Finding(
        {"every congestion acts": all(acts.values())},
        {"acts_at_49_50_51_kb": list(acts.values())},
        [Way("dampener after 50 KB, as it was", after(THRESH)[1], Fraction(5))],
        correction=f"at Token_Thresh neither acts, (tokens, dampener) stay ({', '.join(map(str, after(THRESH)))}); a "
        "plain else in line 10 closes the gap",
        corrected=beside and not acts[str(THRESH)],
    )


@claim(
    "vai-new-joiner", VAI, "V-A", "a new flow could have a higher AI than an existing flow that was congested for long"
)
def new_joiner(queue: int = 100, long: int = 100) -> Finding:
    old = Sender()
    for _ in range(long):
        old.round_trip(Fraction(queue), none=False)
        old.increase()
    new, ratios = Sender(), []
    for _ in range(600):
        for sender in (old, new):
            sender.round_trip(Fraction(queue), none=False)
        ratios.append(new.increase() / old.increase())
    growth = queue / THRESH / CONSTANT
    first = (1 + (long + 1) * growth) / (1 + growth)
    return Finding(
        {"higher": ratios[0] > 1},
        {"ratio_at_first": float(ratios[0]), "after_100_rtts": float(ratios[99]), "after_600_rtts": float(ratios[-1])},
        [Way("ratio at first: algorithm, (1 + 101/4)/(1 + 1/4)", ratios[0], first)],
    )  # fmt: skip


if __name__ == "__main__":
    main(__name__)
