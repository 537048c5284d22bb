"""Markings that fill links, and groups of flows that share them, by hand: a scheme that settles at a/p stands in."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from fluidcc.errors import InputError, NoClosedFormError
from fluidcc.theory.control import marked_equilibria as module
from fluidcc.theory.control.marked_equilibria import (
    _at_line_rate,
    _determined,
    _iterated,
    _overloaded,
    _root,
    _shared,
    _solution,
    marked_equilibria,
)

A = 3.0  # a flow settles at A/p, no faster than its line


def link(rate: float, marks: bool = True, name: str = "") -> Any:
    return SimpleNamespace(rate=rate, marking=object() if marks else None, name=name)


def flow(*path: int, many: float = 1.0, line_rate: float = 100.0) -> Any:
    return SimpleNamespace(path=path, multiplicity=many, line_rate=line_rate)


def network(links: list[Any], flows: list[Any]) -> Any:
    return SimpleNamespace(links=tuple(links), flows=tuple(flows))


def sender(line_rate: float = 100.0, least: float = 1.0, **others: Any) -> Any:
    side = SimpleNamespace(
        solve_equilibrium=lambda parameters, p, line, packet: SimpleNamespace(rate=min(line, A / max(p, 1e-300)), at=p),
        fixed_point=lambda parameters, rate, p, line, packet: (rate, p, line, packet),
    )
    marked = others.pop("marked", lambda rate: A / rate)
    given = {"side": side, "parameters": None, "line_rate": line_rate, "packet": 7.0, "least": least, "marking": marked}
    return SimpleNamespace(**given | {"falls": True, "searched": "rates", "pieces": [0, 0, 0]} | others)


# -- link by link -----------------------------------------------------------------------------------------------


def test_links_in_a_row_share_the_marks_of_a_path() -> None:
    """Rates are C1 / 3 and C0 - C1; the long path's mark is one of either link: catches a link or a product missed."""
    scenario = network([link(40.0), link(30.0)], [flow(0), flow(0, 1, many=3.0)])
    found = _iterated(scenario, [sender(), sender()])
    short, long = A / 10.0, A / 10.0
    first = A / (40.0 - 30.0)
    assert [state.rate for state in found.states] == pytest.approx([10.0, 10.0], rel=1e-12)
    assert found.probabilities[0] == pytest.approx(first, rel=1e-12)
    assert found.probabilities[1] == pytest.approx(1 - (1 - long) / (1 - short), abs=1e-12)
    assert found.members == ((0, 1.0), (1, 3.0))
    scenario = network([link(60.0), link(30.0), link(999.0)], [flow(2, 0, many=2.0), flow(0, 1, many=3.0)])
    found = _iterated(scenario, [sender(), sender()])
    assert [state.rate for state in found.states] == pytest.approx([15.0, 10.0], rel=1e-12)
    assert found.probabilities == pytest.approx([A / 15, 1 - (1 - A / 10) / (1 - A / 15), 0.0], rel=1e-10)


def test_markings_that_never_settle_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many rounds: the last must leave all probabilities as they were."""
    scenario = network([link(60.0), link(30.0)], [flow(0, many=2.0), flow(0, 1, many=3.0)])
    for rounds, settles in ((1, False), (500, True)):
        monkeypatch.setattr(module, "_ROUNDS", rounds)
        if settles:
            _iterated(scenario, [sender(), sender()])
            continue
        with pytest.raises(InputError, match="do not settle"):
            _iterated(scenario, [sender(), sender()])


def test_the_root_of_an_excess() -> None:
    """None of a link that is not overloaded, nor of one that the least marking empties; too many if the most does not.

    Marks of a millionth and nearly all are found to rounding.
    """
    for p in (1e-9, 0.3, 1 - 1e-6):
        assert _root(link(1.0), 0, lambda x, p=p: math.log(p / x) if x > 0 else 1.0) == pytest.approx(p, rel=1e-12)
    assert _root(link(1.0), 0, lambda x: 1e-12 - x) == 0.0
    assert _root(link(1.0), 0, lambda x: -1.0) == 0.0
    assert _root(link(1.0), 0, lambda x: 1.0 if x < 1e-16 else -1.0) == 0.0
    assert _root(link(1.0), 0, lambda x: 1.0 if x < 1e-16 else 0.0 if x < 1e-14 else -1.0) == 0.0
    with pytest.raises(InputError, match="link 3 even if all is marked"):
        _root(link(1.0), 3, lambda x: 1e-6)
    with pytest.raises(InputError, match="mine even"):
        _root(link(1.0, name="mine"), 3, lambda x: 1.0)
    assert _root(link(1.0), 0, lambda x: 1 - 1e-12 - x) == pytest.approx(1 - 1e-12, rel=1e-14)


def test_an_overloaded_link_must_mark() -> None:
    assert _overloaded(link(1.0, marks=False), 0, 1e-12) is False
    assert _overloaded(link(1.0), 0, 2e-12) is True
    with pytest.raises(InputError, match="link 4 is overloaded and marks nothing"):
        _overloaded(link(1.0, marks=False), 4, 2e-12)
    with pytest.raises(InputError, match="mine is overloaded"):
        _overloaded(link(1.0, marks=False, name="mine"), 4, 0.1)


def test_the_load_at_line_rates_counts_all_flows_of_a_class() -> None:
    scenario = network([link(40.0)], [flow(0, many=3.0), flow(0, many=2.0)])
    assert _at_line_rate(scenario, [sender(20.0), sender(10.0)]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("links", "flows", "rates", "determined"),
    [
        ([40.0], [flow(0, many=4.0)], [10.0], True),
        ([40.0], [flow(0, many=4.0)], [10.0 * (1 - 2e-9)], True),  # not full: nothing to determine
        ([40.0], [flow(0, many=2.0)], [20.0], False),  # full, and all at line rate
        ([40.0], [flow(0, many=40.0)], [1.0], False),  # or at the least
        ([40.0, 40.0], [flow(0, 1, many=4.0)], [10.0], False),  # two queues for one rate
        ([40.0, 30.0], [flow(0, 1, many=3.0)], [10.0], True),  # the first is not full
        ([40.0, 30.0], [flow(0), flow(0, 1, many=3.0)], [10.0, 10.0], True),
        ([50.0, 30.0], [flow(0), flow(0, 1, many=3.0)], [20.0, 10.0], False),  # who could give way is at line rate
    ],
)
def test_free_rates_determine_the_queues_of_full_links(
    links: list[float], flows: list[Any], rates: list[float], determined: bool
) -> None:
    """Rates strictly between least and line move, one for each full link at least."""
    scenario = network([link(each) for each in links], flows)
    found: Any = SimpleNamespace(states=[SimpleNamespace(rate=rate) for rate in rates])
    assert _determined(scenario, [sender(20.0, 1.0)] * len(flows), found) is determined


def test_a_link_is_full_to_rounding() -> None:
    """A loss of a part in 10^9 is none: full, with nobody free to move."""
    scenario = network([link(40.0)], [flow(0, many=2.0)])
    for short, determined in ((0.5e-9, False), (2e-9, True)):
        found: Any = SimpleNamespace(states=[SimpleNamespace(rate=20.0 * (1 - short))])
        assert _determined(scenario, [sender(20.0 * (1 - short))], found) is determined


# -- equal flows of one link ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flows", "groups", "members"),
    [
        ([4.0], [(4.0, 10.0)], [(0, 4.0, 10.0)]),
        ([4.0], [(1.0, 4.0), (3.0, 12.0)], [(0, 1.0, 4.0), (0, 3.0, 12.0)]),
        ([2.0, 2.0], [(1.0, 4.0), (3.0, 12.0)], [(0, 1.0, 4.0), (0, 1.0, 12.0), (1, 2.0, 12.0)]),
        ([2.0, 2.0], [(2.0, 4.0), (2.0, 16.0)], [(0, 2.0, 4.0), (1, 2.0, 16.0)]),
        ([3.0, 1.0], [(1.0, 4.0), (1.0, 6.0), (2.0, 15.0)], [(0, 1, 4.0), (0, 1, 6.0), (0, 1, 15.0), (1, 1, 15.0)]),
        ([1.0, 1.0, 1.0], [(2.0, 4.0), (1.0 - 1e-15, 32.0)], [(0, 1.0, 4.0), (1, 1.0, 4.0), (2, 1.0, 32.0)]),
    ],
)  # fmt: skip
def test_groups_are_filled_with_flows_in_their_order(
    flows: list[float], groups: list[tuple[float, float]], members: list[tuple[int, float, float]]
) -> None:
    """The last group takes what is left, roundings too; each row has its group's rate."""
    scenario = network([link(40.0)], [flow(0, many=many) for many in flows])
    found = _solution(scenario, sender(25.0), 0.1, groups)
    assert found.members == tuple((index, many) for index, many, _ in members)
    assert cast(Any, found.states) == [(rate, 0.1, 25.0, 7.0) for *_, rate in members]
    assert found.probabilities == [0.1]


def shared(monkeypatch: pytest.MonkeyPatch, flows: list[float], two: list[Any], three: list[Any], **others: Any) -> Any:
    monkeypatch.setattr(module, "pairs", lambda sender, flows, capacity: two)
    monkeypatch.setattr(module, "triples", lambda sender, flows, capacity: three)
    scenario = network([link(40.0)], [flow(0, many=many) for many in flows])
    return _shared(scenario, sender(**{"falls": False} | others))


def test_equal_shares_come_first_and_all_groups_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the marking of the fastest group, as the slowest may be at its least rate."""
    found = shared(monkeypatch, [3.0, 1.0], [(1, 4.0, 12.0)], [((1, 1.0), (2, 12.0), (1, 15.0))])
    assert found.unique is False
    assert [each.probabilities for each in found.solutions] == [[A / 10], [A / 12], [A / 15]]
    assert [each.members for each in found.solutions] == [
        ((0, 3.0), (1, 1.0)),
        ((0, 1), (0, 2.0), (1, 1.0)),
        ((0, 1), (0, 2.0), (1, 1.0)),
    ]
    assert [state[0] for state in found.solutions[0].states] == [10.0, 10.0]
    alone = shared(monkeypatch, [4.0], [(1, 4.0, 12.0)], [], falls=True)
    assert (len(alone.solutions), alone.unique) == (1, True)
    assert alone.searched == "rates; each marking holds only one rate"


@pytest.mark.parametrize(
    ("flows", "pieces", "unique", "said"),
    [
        (2.0, 3, True, "rates; flows in two groups of equal rate"),
        (2.0, 5, True, "rates; flows in two groups of equal rate"),
        (3.0, 2, True, "two groups of equal rate with 1 to 2 in the slower one; a marking may hold up to 2 rates"),
        (
            4.0,
            3,
            True,
            "three groups of equal rate with 1 to 3 in the slower one; a marking may hold up to 3 rates",
        ),
        (2.5, 3, True, "three groups of equal rate with 1 to 2 in the slower one; a marking may hold up to 3 rates"),
        (3.0, 4, None, "1 to 2 in the slower one; a marking may hold up to 4 rates, but more groups were not tried"),
        (
            201.0,
            3,
            True,
            "groups of equal rate with 1 to 200 in the slower one; a marking may hold up to 3 rates",
        ),
        (20_000.0, 3, None, "numbers of flows between 1 and 19999 in the slower one; a marking may hold up to 3 rates"),
    ],
)
def test_none_beside_equal_shares_is_claimed_where_all_were_looked_for(
    monkeypatch: pytest.MonkeyPatch, flows: float, pieces: int, unique: bool | None, said: str
) -> None:
    options = {"pieces": [0] * pieces, "least": 1e-9, "marked": lambda rate: 0.1}
    found = shared(monkeypatch, [flows], [], [], **options)
    assert found.unique is unique
    assert said in found.searched
    assert found.searched.endswith(said)
    assert "listed" not in found.searched
    others = shared(monkeypatch, [flows], [(1, 1.0, 2.0)], [], **options)
    assert others.unique is False


def test_a_list_of_triples_that_is_full_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    one = ((1, 1.0), (2, 12.0), (1, 15.0))
    for count in (module.MOST_TRIPLES - 1, module.MOST_TRIPLES):
        found = shared(monkeypatch, [4.0], [], [one] * count)
        assert len(found.solutions) == 1 + count
        said = f"the first {count} solutions with three groups are listed" in found.searched
        assert said is (count == module.MOST_TRIPLES)


def test_shares_that_no_marking_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the least rate, marked all, or not at all; at the least rate a share is one."""
    assert shared(monkeypatch, [4.0], [], [], least=10.0).unique
    for options in ({"least": 10.1}, {"marked": lambda rate: 1.0}):
        with pytest.raises(InputError, match="even if all is marked"):
            shared(monkeypatch, [4.0], [], [], **options)
    with pytest.raises(NoClosedFormError):
        shared(monkeypatch, [4.0], [], [], marked=lambda rate: 0.0)


# -- which of both ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rates", "flows", "classes", "by_rate", "falls", "expected"),
    [
        ([40.0], 1, 1, True, True, ("shared",)),
        ([40.0], 2, 1, True, True, ("shared",)),
        ([40.0], 2, 2, True, True, ("iterated", True)),  # unequal flows
        ([40.0, 50.0], 1, 1, True, True, ("iterated", True)),
        ([200.0], 1, 1, True, True, ("iterated", True)),  # not overloaded
        ([40.0], 2, 2, True, False, ("iterated", None)),
        ([40.0], 1, 1, False, True, ("iterated", None)),  # no marking is known of a rate
    ],
)
def test_one_overloaded_link_of_equal_flows_is_searched_for_unequal_shares(
    monkeypatch: pytest.MonkeyPatch,
    rates: list[float], flows: int, classes: int, by_rate: bool, falls: bool, expected: Any,
) -> None:  # fmt: skip
    scenario = network([link(rate) for rate in rates], [flow(0) for _ in range(flows)])
    scenario.wire_packet_of = lambda flow: 7.0
    monkeypatch.setattr(module, "binder", lambda scenario: lambda flow: "bound")
    monkeypatch.setattr(module, "merged", lambda scenario: (SimpleNamespace(flows=[0] * classes), None))
    monkeypatch.setattr(module, "_shared", lambda scenario, sender: ("shared",))
    monkeypatch.setattr(module, "_iterated", lambda scenario, senders: "iterated")
    monkeypatch.setattr(module, "_determined", lambda scenario, senders, found: determined[0])
    determined = [True]
    side: Any = SimpleNamespace(
        largest_rate=lambda parameters, line_rate: line_rate if parameters == "bound" else 0.0,
        marking_at=(lambda parameters, rate, line, packet: (1 if falls else -1) * (1 - np.asarray(rate) / 200.0)),
        least_rate=lambda parameters, line_rate: 2.0,
        single_marking=lambda parameters: True,
    )
    if not by_rate:
        side.marking_at = None
    found: Any = marked_equilibria(scenario, [side] * flows)
    if expected == ("shared",):
        assert found == expected
        return
    assert (found.solutions, found.unique) == (["iterated"], expected[1])
    if expected[1] is None:
        assert found.searched is None
        return
    assert found.searched.count("rates from") == 1
    assert "queue of any length" not in found.searched
    determined[0] = False
    found = marked_equilibria(scenario, [side] * flows)
    assert found.unique is False
    assert "queue of any length" in found.searched
