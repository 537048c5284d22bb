"""HPCC's theorems on queues (A.1), evaluated on packets that a FIFO serves one by one, and on N*D/D/1's formula.

The replay is exact. Probabilities are those of `fluidcc.theory.queueing`, in floats.
"""

from __future__ import annotations

import functools
import heapq
from collections import deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from fluidcc.theory import queueing
from tests.proofs.coq_statements import Example, defined, verdicts, within

Change = tuple[str, str] | None

# -- periodic packets --

PACKETS = 24


class Replay:
    """Periodic sources that share a server, which takes the unit of time for a packet.

    Parameters
    ----------
    periods, phases : list of Fraction
        Of each source; packet n of source i arrives at phases[i] + n periods[i].
    """

    def __init__(self, periods: list[Fraction], phases: list[Fraction]) -> None:
        self.periods, self.phases = periods, phases
        coming = [(phase, i) for i, phase in enumerate(phases)]
        heapq.heapify(coming)
        self.source: list[int] = []
        self.arrival: list[Fraction] = []
        self.departure: list[Fraction] = []
        queue: deque[Fraction] = deque()
        while len(self.departure) < PACKETS:
            if queue and self.begin(queue[0]) <= coming[0][0]:
                self.departure.append(self.begin(queue.popleft()) + 1)
            else:
                now, i = heapq.heappop(coming)
                heapq.heappush(coming, (now + periods[i], i))
                self.source.append(i)
                self.arrival.append(now)
                queue.append(now)

    def begin(self, arrival: Fraction) -> Fraction:
        """Time at which the server takes the next packet, which arrived at this time."""
        return max([arrival, *self.departure[-1:]])

    def example(self) -> Example:
        """Give the names of Coq's file their meaning."""
        N = len(self.periods)

        def counted(ends: Callable[[int], Fraction]) -> Callable[[Fraction, int], int]:
            return lambda t, m: sum(self.arrival[k] <= t < ends(k) for k in range(m))

        known = {
            "sources": N,
            "period": lambda i: self.periods[i],
            "phase": lambda i: self.phases[i],
            "source": lambda m: self.source[m],
            "arrival": lambda m: self.arrival[m],
            "departure": lambda m: self.departure[m],
            "wait": lambda m: self.departure[m] - 1 - self.arrival[m],
            "in_system": counted(lambda k: self.departure[k]),
            "waiting": counted(lambda k: self.departure[k] - 1),
        }
        times = sorted({*self.arrival[:12], *self.departure[:12], Fraction(5, 3), Fraction(11, 4)})
        domains = {
            **dict.fromkeys(("m", "l"), range(PACKETS)),
            "i": range(N),
            "t": times,
            "work": [Fraction(n, 4) for n in range(4 * N)],
            "bound": [N - 1],
            "source": [known["source"]],
        }
        return Example(defined("hpcc.queueing", known, domains), domains)

    def outside(self) -> Example:
        """Give the names their meaning outside of the file's section, where they take its variables."""
        known, domains, equal = self.example()

        def taking_variables(name: str) -> Callable[..., Any]:
            return lambda _period, _phase, _source: known[name]

        taking = {name: taking_variables(name) for name in ("wait", "in_system", "waiting", "arrival")}
        taking["load"] = lambda sources, period: sum(1 / period(i) for i in range(sources))
        return Example({**known, **taking}, domains, equal)


def fractions(*values: str) -> list[Fraction]:
    return [Fraction(value) for value in values]


STABLE = (
    Replay(fractions("3", "3", "3"), fractions("0", "1/2", "7/4")),
    Replay(fractions("3", "3", "3"), fractions("0", "0", "0")),
    Replay(fractions("2", "4", "4"), fractions("0", "0", "0")),
    Replay(fractions("2", "5", "7/2"), fractions("1", "1/3", "0")),
    Replay(fractions("7/2", "5"), fractions("1", "1/3")),
)
OVERLOADED = (
    Replay(fractions("2", "2", "3"), fractions("0", "0", "1")),
    Replay(fractions("1", "3"), fractions("1", "0")),
)
TOGETHER = STABLE[1:3]
PERIODIC = {
    "reich_formula": (STABLE + OVERLOADED, "(l <= m)", "(l < m)"),
    "overload_grows": (STABLE + OVERLOADED, "+ 1 + arrival 0", "+ 2 + arrival 0"),
    "wait_at_most_other_sources": (STABLE, "INR sources - 1", "INR sources - 2"),
    "work_at_most_sources": (STABLE, "<= INR sources", "< INR sources"),
    "queue_at_most_sources": (STABLE, "<= sources", "< sources"),
    "waiting_at_most_other_sources": (STABLE, "<= sources - 1", "< sources - 1"),
}
FOR_ALL_SETTINGS = {
    "stable_iff_load_at_most_one": (STABLE + OVERLOADED, "<= 1", "< 1"),
    "more_than_sources_means_overload": (STABLE + OVERLOADED, "(sources < in_system", "(sources <= in_system"),
    "order_exists": (STABLE + OVERLOADED, "+ INR (sent source i m) * period i", ""),
    "bound_is_attained": (TOGETHER, "(sources - 1)", "sources"),
}


@pytest.mark.parametrize("name", PERIODIC)
def test_a_theorem_holds_for_periodic_packets(name: str) -> None:
    """Notice an arrival, a departure or a count of packets in Coq that is not a FIFO's."""
    replays, old, new = PERIODIC[name]
    assert verdicts(f"hpcc.queueing.{name}", (old, new), [each.example() for each in replays]) == (True, False)


@pytest.mark.parametrize("name", FOR_ALL_SETTINGS)
def test_a_theorem_for_all_settings_holds_for_periodic_packets(name: str) -> None:
    """Notice a bound that is not the number of sources, or not only up to full load."""
    replays, old, new = FOR_ALL_SETTINGS[name]
    assert verdicts(f"hpcc.queueing.{name}", (old, new), [each.outside() for each in replays]) == (True, False)


FIRST = 8  # packets; Coq's recursion begins anew for each


@pytest.mark.parametrize(
    "change", [None, ("arrival 0 + 1", "arrival 0"), (": R := departure m - 1", ": R := departure m")]
)
def test_definitions_in_coq_are_what_a_fifo_does(change: Change) -> None:
    """Notice a recursion that is not the server's, or a wait that includes the service."""
    same = True
    for replay in (*STABLE, *OVERLOADED):
        known, domains, _ = replay.example()
        given = {name: known[name] for name in ("sources", "period", "phase", "source")}
        coq = defined("hpcc.queueing", given, change=change)
        for m in range(FIRST):
            same &= all(coq[name](m) == known[name](m) for name in ("arrival", "departure", "wait"))
        for t in domains["t"]:
            same &= all(coq[name](t, FIRST) == known[name](t, FIRST) for name in ("in_system", "waiting"))
    assert same is (change is None)


# -- N*D/D/1 --

ROUNDED = within(1e-9)
SETTINGS = ((2, Fraction(3)), (3, Fraction(4)), (3, Fraction(3)), (50, Fraction(5000, 95)), (50, Fraction(50)))
LENGTHS = {
    "queue_length.mean_is_sum_of_tail": ("mean_in_system", "mean_waiting"),
    "queue_length.mean_waiting_is_less_by_service": ("tail sources p 0", "tail sources p 1"),
    "queue_length.mean_waiting_is_sum_of_tail": ("p (S k)", "p k"),
    "queue_length.tail_ends": ("(sources <= k)", "(sources <= k + 1)"),
    "queue_length.formula_ends": ("(sources <= k)", "(sources <= k + 1)"),
    "queue_length.formula_of_all": ("^ S sources", "^ sources"),
    "queue_length.mean_waiting_at_95_percent": ("mean_waiting", "mean_in_system"),
    "queue_length.busy_at_95_percent": ("= 95/100", "= 94/100"),
    "queue_length.mean_in_system_at_95_percent": ("mean_in_system", "mean_waiting"),
    "queue_length.more_than_20_wait_at_95_percent": (" 21 -", " 20 -"),
    "queue_length.more_than_20_in_system_at_95_percent": (" 20 -", " 21 -"),
    "queue_length.mean_waiting_at_full_load": ("377156", "377256"),
    "queue_length.square_root_at_full_load": ("+ 1/2", ""),
    "queue_length.square_root_below_five": ("< 5", "< 4"),
    "busy_probability.busy_probability": ("INR sources / period", "1 / period"),
    "busy_probability.mean_waiting_is_less_by_load": ("- INR sources / period", "- 1 / period"),
}


@functools.cache
def exceeds(sources: int, period: Fraction | int, k: int) -> float:
    return float(queueing.exceeds(k, sources, float(sources / Fraction(period))))


def lengths(sources: int, period: Fraction) -> Callable[[int], float]:
    """Probability that so many packets are in the system, by `queueing.exceeds`."""
    above = [1.0, *(exceeds(sources, period, k) for k in range(sources + 1))]
    return lambda j: above[j] - above[j + 1] if j <= sources else 0.0


def random_phases(sources: int, period: Fraction, *, binds: int) -> Example:
    """Give the names of Coq's file their meaning for sources of which the statement binds so many."""
    p = lengths(sources, period)
    domains = {"sources": [binds], "period": [period], "k": range(sources + 2), "p": [p]}
    return Example(defined("hpcc.queue_length", {"exceeds": exceeds}, domains, ROUNDED), domains, ROUNDED)


@pytest.mark.parametrize("name", LENGTHS)
def test_a_theorem_holds_for_sources_of_random_phases(name: str) -> None:
    """Notice a tail, a mean or a formula in Coq that is off by the packet in service."""
    one_more = name in ("queue_length.formula_of_all", "queue_length.mean_waiting_is_sum_of_tail")  # of S sources
    examples = [random_phases(*each, binds=each[0] - one_more) for each in SETTINGS]
    assert verdicts(f"hpcc.{name}", LENGTHS[name], examples) == (True, False)


@pytest.mark.parametrize(
    "change", [None, ("(period - INR sources + INR k) /", "(period - INR sources) /"), ("INR (j - 1)", "INR j")]
)
def test_formula_and_mean_in_coq_are_those_of_queueing(change: Change) -> None:
    """Notice another formula of the tail, or a mean that counts the packet in service.

    At full load and k = 0 Coq's last term is 0/0, where `queueing.exceeds` takes 1; no theorem says anything there.
    """
    coq, same = defined("hpcc.queue_length", {}, change=change), True
    for sources, period in SETTINGS:
        first = int(period == sources)
        same &= all(
            ROUNDED(float(coq["exceeds"](sources, period, k)), exceeds(sources, period, k))
            for k in range(first, sources + 1)
        )
        mean = queueing.mean_waiting(sources, float(sources / period))
        same &= ROUNDED(coq["mean_waiting"](sources, lengths(sources, period)), mean)
    assert same is (change is None)
