"""Rates that add a constant and multiply by a target over the load, and what is searched for which scheme, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pytest

from fluidcc.errors import NoClosedFormError
from fluidcc.theory.control import equilibrium as search
from fluidcc.theory.control import utilisation as module
from fluidcc.theory.control.equilibrium import equilibria
from fluidcc.theory.control.fixed_point import Equilibrium
from fluidcc.theory.control.states import NoEquilibriumError
from fluidcc.theory.control.utilisation import utilised_equilibria


class Balance(NamedTuple):
    windows: bool = False
    base_rtt: float = 2.0
    increase: float = 3.0
    target: float = 0.9
    wire: float = 1.0
    least_window: float = 1.0
    largest_window: float = 1e4


def flow(*path: int, many: float = 1.0, line_rate: float = 100.0, name: str = "", **changed: Any) -> Any:
    return SimpleNamespace(
        path=path, multiplicity=many, line_rate=line_rate, name=name, trip=2.0, balance=Balance(), **changed
    )


def network(rates: list[float], *flows: Any) -> Any:
    return SimpleNamespace(links=[SimpleNamespace(rate=rate, name="") for rate in rates], flows=flows)


SIDE: Any = SimpleNamespace(
    balances=lambda scenario: lambda flow: flow.balance,
    observables=lambda window, load: {"window_bytes": window, "load": load},
)


@pytest.fixture(autouse=True)
def _trips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "base_rtt_with_serialisation", lambda scenario, flow: flow.trip)


def rate_of(count: int, capacity: float, increase: float = 3.0, target: float = 0.9) -> float:
    """R = a / (1 - Ut C / (N R)): that is N R = Ut C + N a."""
    return target * capacity / count + increase


def test_rates_of_one_link_sum_to_the_target_and_their_increases() -> None:
    """Two classes of one and three flows: catches a count, a share or the target left out."""
    links, flows, unique, why = utilised_equilibria(network([200.0], flow(0), flow(0, many=3.0)), SIDE)
    rate = rate_of(4, 200.0)
    assert [row["rate_bytes_per_s"] for row in flows] == pytest.approx([rate, rate])
    assert links[0]["utilisation"] == pytest.approx(4 * rate / 200)
    assert links[0]["queue_bytes"] == 0.0
    assert [row["window_bytes"] for row in flows] == pytest.approx([2 * rate] * 2)
    assert [row["load"] for row in flows] == pytest.approx([4 * rate / 200] * 2)
    assert (links[0]["name"], [row["name"] for row in flows]) == ("link 0", ["flow 0", "flow 1"])
    assert {row["marking_probability"] for row in [*links, *flows]} == {0.0}
    assert unique is True
    assert "above 0.9" in str(why)
    assert "no window" not in str(why)


def test_an_increase_that_is_more_than_the_headroom_fills_a_queue() -> None:
    """Rates sum to C, and U C T beyond C T waits, where N a / (1 - Ut / U) is C; a spare link has none."""
    links, flows, unique, _ = utilised_equilibria(network([40.0, 50.0], flow(0, many=2.0), flow(0, many=2.0)), SIDE)
    rate, U = 10.0, 0.9 / (1 - 3 / 10)
    assert [row["rate_bytes_per_s"] for row in flows] == pytest.approx([rate, rate])
    assert [row["queue_bytes"] for row in links] == pytest.approx([(U - 1) * 40 * 2, 0.0])
    assert [row["utilisation"] for row in links] == [1.0, 0.0]
    assert [row["load"] for row in flows] == pytest.approx([U, U])
    assert unique is None  # of several links nobody looked


def test_several_links_are_filled_from_the_lowest_rate_on() -> None:
    """The long flow has the narrow link's rate; the load of a path is that of its fullest link."""
    long, short = flow(0, 1, many=2.0), flow(0, line_rate=1e3)
    links, flows, unique, _ = utilised_equilibria(network([300.0, 100.0], long, short), SIDE)
    narrow = rate_of(2, 100.0)
    low, high = 3.0, 1e3
    for _ in range(200):  # (F + R) (R - a) = Ut C R beside F = 2 R of the long ones
        R = 0.5 * (low + high)
        low, high = (R, high) if (2 * narrow + R) * (R - 3) < 0.9 * 300 * R else (low, R)
    assert [row["rate_bytes_per_s"] for row in flows] == pytest.approx([narrow, low])
    loads = [(2 * narrow + low) / 300, 2 * narrow / 100]
    assert [row["utilisation"] for row in links] == pytest.approx(loads)
    assert [row["load"] for row in flows] == pytest.approx([max(loads), loads[0]])
    assert unique is None


def test_what_has_no_closed_form() -> None:
    """Unequal parameters, two overloaded links, NICs that are slower, and windows at their bounds."""
    other = flow(0)
    other.balance = Balance(increase=1.0)
    long = flow(0, many=2.0, line_rate=rate_of(2, 90.0) * (1 - 2e-9))
    equal = flow(0, many=2.0, line_rate=rate_of(2, 90.0) * (1 - 0.5e-9))
    cases = [
        (network([90.0], flow(0), other), "differ"),
        (network([40.0, 90.0], flow(0, many=4.0), flow(1)), "overloads one of several"),
        (network([90.0], long), "line rate"),
    ]
    for scenario, why in cases:
        with pytest.raises(NoClosedFormError, match=why):
            utilised_equilibria(scenario, SIDE)
    utilised_equilibria(network([90.0], equal), SIDE)


@pytest.mark.parametrize(
    ("changes", "trip", "why"),
    [
        ({}, 2.0, None),
        ({}, 2.0 * (1 + 0.5e-9), None),
        ({}, 2.0 * (1 + 2e-9), "longer than T"),
        ({"wire": 1.1}, 2.1, None),
        ({"wire": 0.9}, 2.0, "longer than T"),
        ({"least_window": 2 * rate_of(2, 100.0) * (1 - 1e-9)}, 2.0, None),
        ({"least_window": 2 * rate_of(2, 100.0) * (1 + 1e-9)}, 2.0, "a packet on several"),
        ({"largest_window": 2 * 500.0}, 2.0, None),
        ({"largest_window": 100.0}, 2.0, "more than the first"),
    ],
)
def test_windows_of_several_links_are_rates_times_t(changes: dict[str, Any], trip: float, why: str | None) -> None:
    """Windows are no less than the least nor more than the first, where a round trip is no longer."""
    long, short = flow(0, 1, many=2.0), flow(0, line_rate=1e3)
    long.trip = trip
    long.balance = short.balance = Balance(windows=True, **changes)
    scenario = network([300.0, 100.0], long, short)
    if why is not None:
        with pytest.raises(NoClosedFormError, match=why):
            utilised_equilibria(scenario, SIDE)
        return
    _, flows, *_ = utilised_equilibria(scenario, SIDE)
    assert flows[0]["window_bytes"] == pytest.approx(2 * rate_of(2, 100.0))


def test_windows_of_one_link_are_settled_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though others are there that nobody uses; the one load is that of the link alone."""
    given: list[Any] = []
    found = (7.0, 1.25, 30.0, np.array([4.0, 5.0]), None)
    monkeypatch.setattr(module, "settled", lambda *each: given.append(each) or found)
    flows = flow(1), flow(1, many=2.0)
    for each in flows:
        each.balance = Balance(windows=True)
    scenario = network([50.0, 20.0], *flows)
    links, rows, unique, _ = utilised_equilibria(scenario, SIDE)
    assert given == [(scenario, flows[0].balance, 20.0)]
    assert [row["queue_bytes"] for row in links] == [0.0, 30.0]
    assert [row["utilisation"] for row in links] == [0.0, (4 + 2 * 5) / 20]
    assert [(row["window_bytes"], row["load"]) for row in rows] == [(7.0, 1.25)] * 2
    assert unique is None
    scenario = network([20.0], *(flow(0) for _ in range(2)))
    for each in scenario.flows:
        each.balance = Balance(windows=True)
    *_, unique, why = utilised_equilibria(scenario, SIDE)
    assert unique is True
    assert "as long as no window is at its minimum" in str(why)


def test_without_an_increase_shares_are_any() -> None:
    for many, unique in ((2.0, False), (1.0, True)):
        one = flow(0, many=many)
        one.balance = Balance(increase=0.0)
        *_, found, why = utilised_equilibria(network([20.0], one), SIDE)
        assert found is unique
        assert str(why).startswith("without an increase" if many > 1 else "flows send less")


# -- which search for which scheme --------------------------------------------------------------------------------


def told(name: str, searched: str | None = None, **others: Any) -> Any:
    link = {"name": name, "queue_bytes": 1.0}
    return Equilibrium(True, True, (link,), ({"rate_bytes_per_s": 1.0},), searched=searched, **others)


class Searches:
    """All searches of `equilibrium`, which say which were asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, sides: list[Any], names: tuple[str, ...] = ("a", "a")) -> None:
        schemes = [SimpleNamespace(name=name, side=side) for name, side in zip(names, sides, strict=True)]
        link = SimpleNamespace(marking=None)
        self.scenario: Any = SimpleNamespace(flows=[SimpleNamespace(scheme=each) for each in schemes], links=[link])
        self.asked: list[str] = []
        self.solved: Any = told("solved", "by marking")
        self.newton: Any = [told("newton")]
        self.utilised: Any = ([{"name": "u"}], [{"name": "v"}], True, "by load")
        monkeypatch.setattr(search, "resolve", lambda scenario: scenario)
        monkeypatch.setattr(search, "equilibrium_of", lambda scheme: scheme.side)
        monkeypatch.setattr(search, "same", lambda one, other: one.links == other.links)
        monkeypatch.setattr(search, "_solved", self.answers("solved"))
        monkeypatch.setattr(search, "_newton", self.answers("newton"))
        monkeypatch.setattr(search, "utilised_equilibria", self.answers("utilised"))
        monkeypatch.setattr(search, "_run", lambda scenario: self.asked.append("run") or told("run"))

    def answers(self, name: str) -> Any:
        def answer(*_: Any) -> Any:
            self.asked.append(name)
            found = getattr(self, name)
            if isinstance(found, Exception):
                raise found
            return found

        return answer

    def found(self) -> Any:
        self.asked.clear()
        return search.equilibrium(self.scenario)


def side(solve: bool = False, marking: bool = False, balances: bool = False) -> Any:
    names = {"solve_equilibrium": solve, "marking_at": marking, "balances": balances}
    return SimpleNamespace(**{name: object() if there else None for name, there in names.items()})


def test_a_scheme_that_settles_on_a_marking_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """If all flows' do; it is taken if it is known where others were searched for, or nobody could."""
    searches = Searches(monkeypatch, [side(solve=True, marking=True)] * 2)
    assert searches.found() is searches.solved
    assert searches.asked == ["solved"]
    searches.solved = told("solved")
    found = searches.found()
    assert searches.asked == ["solved", "newton"]
    assert (found.links, found.unique, [each.links[0]["name"] for each in found.others]) == (
        searches.solved.links,
        False,
        ["newton"],
    )
    searches.newton = [told("solved")]
    found = searches.found()
    assert (found.unique, found.others) == (None, ())  # shares that no start leads to
    assert "7 starts" in found.searched
    for nothing in ([], NoEquilibriumError("jumps")):
        searches.newton = nothing
        found = searches.found()
        assert found.links == searches.solved.links
    searches.solved, searches.newton = None, []
    assert searches.found().links[0]["name"] == "run"
    assert searches.asked == ["solved", "newton", "run"]
    searches.newton = [told("newton")]
    assert searches.found().unique is None
    searches = Searches(monkeypatch, [side(solve=True), side(solve=True, marking=True)])
    searches.solved = told("solved")
    assert searches.found() is searches.solved  # no marking is known of the first one's rates


def test_a_scheme_that_settles_on_a_load_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it is the scheme of all, and has a closed form; else the fluid is searched, and at last run."""
    searches = Searches(monkeypatch, [side(balances=True)] * 2)
    found = searches.found()
    assert searches.asked == ["utilised"]
    assert (found.exists, found.on_ramp, found.unique, found.searched) == (True, True, True, "by load")
    assert (found.links, found.flows) == (({"name": "u"},), ({"name": "v"},))
    searches.utilised = NoClosedFormError("none")
    found = searches.found()
    assert searches.asked == ["utilised", "newton"]
    assert (found.links[0]["name"], found.unique, found.others) == ("newton", True, ())
    searches.newton = [told("one"), told("other"), told("one")]
    found = searches.found()
    assert (found.unique, [each.links[0]["name"] for each in found.others]) == (False, ["other"])
    searches.newton = NoEquilibriumError("jumps")
    assert searches.found().links[0]["name"] == "run"
    searches.newton = []
    assert searches.found().links[0]["name"] == "run"
    for sides, names in (
        ([side(balances=True)] * 2, ("a", "b")),
        ([side(balances=True), None], ("a", "a")),
        ([side(solve=True, marking=True), side(balances=True)], ("a", "b")),
        ([side(), side()], ("a", "a")),
        ([None, None], ("a", "a")),
    ):
        searches = Searches(monkeypatch, sides, names)
        assert searches.found().links[0]["name"] == "newton"
        assert searches.asked == ["newton"]


@pytest.mark.parametrize("red", [None, (5.0, 9.0), (5.0, 5.0)])
@pytest.mark.parametrize("known", [True, False])
def test_equilibria_of_a_marking_join_those_of_the_fluid(
    monkeypatch: pytest.MonkeyPatch, known: bool, red: Any
) -> None:
    """Each once; not where a step marks, nor of a scheme of which no marking is known."""
    searches = Searches(monkeypatch, [side(solve=True, marking=True), side(solve=True, marking=known)])
    searches.scenario.links[0].marking = red and SimpleNamespace(kmin=red[0], kmax=red[1], cell=None)
    searches.newton = [told("newton"), told("shared")]
    searches.solved = told("solved", others=(told("shared"), told("third")))
    names = [each.links[0]["name"] for each in equilibria(searches.scenario)]
    asked = known and red != (5.0, 5.0)
    assert names == ["newton", "shared", *(["solved", "third"] if asked else [])]
    searches.newton, searches.solved = [], None
    assert equilibria(searches.scenario) == ()


@pytest.mark.parametrize(("kmax", "steep", "step"), [(5.0, True, True), (5.004, True, False), (5.006, False, False)])
def test_ramps_shorter_than_a_thousandth_are_steep(kmax: float, steep: bool, step: bool) -> None:
    link: Any = SimpleNamespace(marking=SimpleNamespace(kmin=5.0, kmax=kmax))
    assert (search._steep(link), search._step(link)) == (steep, step)
    none = cast(Any, SimpleNamespace(marking=None))
    assert (search._steep(none), search._step(none)) == (False, False)
