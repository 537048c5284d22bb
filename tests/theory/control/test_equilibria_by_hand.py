"""Equilibria told by the marking, checked on the fluid, or read off the end of a run; what is run stands in."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.scenario.model import RED, resolve
from fluidcc.theory.control import equilibrium as module
from fluidcc.theory.control.equilibrium import Equilibrium, _checked, _kinds, _newton, _run, _solved
from fluidcc.theory.control.fixed_point import _marking, flows_of, links_of
from fluidcc.theory.control.marked_equilibria import along

SCENARIO = resolve(fc.incast(2))


def told(name: str, exists: bool = True, marked: float = 0.0) -> Any:
    return Equilibrium(exists, True, ({"name": name, "marking_probability": marked},), ())


@pytest.mark.parametrize("kind", ["equilibrium", "cycle", "irregular", "growing", "decaying", "unsettled"])
def test_the_end_of_a_run_is_an_equilibrium_if_it_is_of_that_kind(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Its link alone has a queue, the mean of the run; nothing is known of marking."""
    link = SCENARIO.links[-1].name or f"link {len(SCENARIO.links) - 1}"
    cycle = SimpleNamespace(kind=kind, link=link, mean=777.0, rates=(3e9, 4e9))
    monkeypatch.setattr(module, "limit_cycle", lambda scenario, estimate_error: cycle)
    found = _run(SCENARIO)
    assert found.exists is found.on_ramp is (kind == "equilibrium")
    queues = {row["name"]: row["queue_bytes"] for row in found.links}
    assert queues.pop(link) == 777.0
    assert set(queues.values()) <= {None}
    assert {row["marking_probability"] for row in (*found.links, *found.flows)} == {None}
    assert [row["rate_bytes_per_s"] for row in found.flows] == [3e9, 4e9][: len(found.flows)]
    assert cast(Any, found.cycle) is cycle


def test_one_of_each_kind_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "same", lambda one, other: one.links == other.links)
    a, b, c = told("a"), told("b"), told("a")
    assert _kinds([a, b, c, b]) == [a, b]


@pytest.mark.parametrize("steep", [True, False])
@pytest.mark.parametrize("marked", [0.0, 0.3])
def test_what_is_checked_on_the_fluid(monkeypatch: pytest.MonkeyPatch, steep: bool, marked: float) -> None:
    """Marks of a step are not; what stands still is as it is; else it must lead to itself.

    What moves is replaced by what it leads to, if its state could be put together.
    """
    given, polished = told("given", marked=marked), told("polished")
    end = SimpleNamespace(exists=np.array([True]))
    alike, moves = [True], [0.0]
    scenario: Any = SimpleNamespace(links=[0], flows=[0, 0])
    monkeypatch.setattr(module, "_steep", lambda link: steep)
    monkeypatch.setattr(module, "state_of", lambda scenario, found: ("classes", "which", "state"))
    monkeypatch.setattr(module, "network_of", lambda classes: "network")
    monkeypatch.setattr(module, "movement", lambda network, state: moves[0])
    monkeypatch.setattr(module, "near", lambda network, state: end)
    monkeypatch.setattr(module, "described", lambda classes, end: polished)
    monkeypatch.setattr(module, "same", lambda one, other: alike[0])
    monkeypatch.setattr(module, "split_of", lambda scenario, members: "split")
    monkeypatch.setattr(module, "expanded", lambda found, split, which: dataclasses.replace(found, on_ramp=False))
    moves[0] = 2 * module.STILL
    alike[0] = False
    if steep and marked > 0:
        assert _checked(scenario, given) is given
        return
    assert _checked(scenario, given) is None
    moves[0] = 0.5 * module.STILL
    assert _checked(scenario, given) is given
    moves[0], alike[0] = cast(Any, None), True
    assert _checked(scenario, given) is given
    moves[0] = 2 * module.STILL
    found = _checked(scenario, given)
    assert found is not None
    assert found.links == polished.links
    assert found.on_ramp is False
    end.exists = np.array([False])
    assert _checked(scenario, given) is None

    def refused(classes: Any) -> Any:
        raise InputError("no such network")

    monkeypatch.setattr(module, "network_of", refused)
    assert _checked(scenario, given) is given


def test_solutions_are_those_that_the_fluid_confirms(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the ramps if any is; the only one if none else is left of several."""
    a, b, off = told("a"), told("b"), told("off", exists=False)
    monkeypatch.setattr(module, "_of", lambda scenario, each: each)
    lost: list[Any] = []
    monkeypatch.setattr(module, "_checked", lambda scenario, found: None if found in lost else found)

    def solved(solutions: list[Any], unique: bool | None) -> Any:
        monkeypatch.setattr(module, "marked_equilibria", lambda scenario, sides: (solutions, unique, "so"))
        found = _solved(SCENARIO, [])
        if found is None:
            return None
        return found.links[0]["name"], found.unique, [other.links[0]["name"] for other in found.others]

    assert solved([a], True) == ("a", True, [])
    assert solved([a], False) == ("a", False, [])
    assert solved([a], None) == ("a", None, [])
    assert solved([a, b], False) == ("a", False, ["b"])
    assert solved([a, b], None) == ("a", None, ["b"])
    assert solved([off, b], False) == ("b", True, [])
    assert solved([off], True) == ("off", True, [])
    lost.append(b)
    assert solved([a, b], False) == ("a", True, [])
    assert solved([b, a], False) is None


def test_ends_of_searches_that_differ_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a share of each state, or of 1 where it is less; those that are none are left out."""

    def end(x: list[float], exists: bool = True) -> Any:
        return SimpleNamespace(exists=[exists], slopes=SimpleNamespace(x=[np.array(x)]))

    near = 0.5 * module.SAME
    given = [
        end([100.0, 0.1]),
        end([100.0 * (1 + near), 0.1 + near]),
        end([100.0, 0.1 + 3 * near]),
        end([100.0 * (1 + 3 * near), 0.1]),
        end([7.0, 7.0], False),
    ]
    monkeypatch.setattr(module, "network_of", lambda scenario: None)
    monkeypatch.setattr(module, "multi_start", lambda network: given)
    monkeypatch.setattr(module, "described", lambda scenario, end: end)
    monkeypatch.setattr(module, "expanded", lambda end, whole, classes: end)
    found: list[Any] = _newton(SCENARIO)
    assert [k for k, each in enumerate(given) if any(each is one for one in found)] == [0, 2, 3]


def test_a_mark_of_any_link_of_a_path_is_one() -> None:
    assert along([0.5, 1e-20, 0.2], (1,)) == 1e-20
    assert along([0.5, 0.3, 0.2], (0, 2)) == pytest.approx(1 - 0.5 * 0.8)
    assert along([0.5, 0.3, 0.2], (0, 1, 2)) == pytest.approx(1 - 0.5 * 0.7 * 0.8)


def _link(marking: RED | None, name: str | None = None) -> Any:
    return SimpleNamespace(marking=marking, name=name, rate=10.0)


RAMP, STEP = (
    cast(Any, SimpleNamespace(kmin=100.0, kmax=300.0, pmax=0.1)),
    cast(Any, SimpleNamespace(kmin=100.0, kmax=100.0, pmax=0.1)),
)


def test_the_red_line_is_extended_beyond_kmax_and_not_below_kmin() -> None:
    queues = (0.0, 100.0, 200.0, 300.0, 500.0)
    assert [_marking(_link(RAMP), queue) for queue in queues] == pytest.approx([0.0, 0.0, 0.05, 0.1, 0.2])
    assert [_marking(_link(red), 500.0) for red in (None, STEP)] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("links", "probabilities", "queues", "exists", "on_ramp"),
    [
        ([RAMP], [0.05], [200.0], True, True),
        ([RAMP], [0.1], [300.0], True, True),  # the end of the ramp is on it
        ([RAMP], [0.15], [400.0], False, False),
        ([STEP], [0.05], [100.0], False, False),
        ([RAMP], [0.0], [0.0], True, False),  # nothing is marked
        ([None], [0.0], [0.0], True, True),  # nothing could be
        ([None, RAMP], [0.0, 0.05], [0.0, 200.0], True, True),
        ([RAMP, RAMP], [0.05, 0.15], [200.0, 400.0], False, False),
        ([RAMP, RAMP], [0.15, 0.05], [400.0, 200.0], False, False),
        ([RAMP, RAMP], [0.0, 0.05], [0.0, 200.0], True, True),
    ],
)
def test_links_are_on_their_ramps(links: Any, probabilities: Any, queues: Any, exists: bool, on_ramp: bool) -> None:
    """A marking beyond pmax or of a step has no equilibrium; the queue is where the ramp marks so."""
    flows = [SimpleNamespace(path=(0,), multiplicity=3), SimpleNamespace(path=(len(links) - 1,), multiplicity=2)]
    scenario: Any = SimpleNamespace(links=[_link(each) for each in links], flows=flows)
    rows, *found = links_of(scenario, probabilities, [1.0, 2.0])
    assert found == [exists, on_ramp]
    assert [row["queue_bytes"] for row in rows] == pytest.approx(queues)
    assert [row["marking_probability"] for row in rows] == probabilities
    assert [row["name"] for row in rows] == ["link 0", "link 1"][: len(rows)]
    loads = [row["utilisation"] for row in rows]
    assert loads == pytest.approx([0.7] if len(rows) == 1 else [0.3, 0.4])
    given, *found = links_of(scenario, probabilities, [1.0, 2.0], [7.0, 8.0])
    assert found == [exists, on_ramp]
    assert [row["queue_bytes"] for row in given] == [7.0, 8.0][: len(rows)]


def test_rows_of_flows_have_their_names_paths_and_rates() -> None:
    flows = [SimpleNamespace(name=None, path=(0, 1)), SimpleNamespace(name="mine", path=(1,))]
    rows = flows_of(cast(Any, SimpleNamespace(flows=flows)), [0.5, 0.2], [(1.0, {}), (2.0, {"window_bytes": 3.0})])
    assert [(row["name"], row["rate_bytes_per_s"]) for row in rows] == [("flow 0", 1.0), ("mine", 2.0)]
    assert [row["marking_probability"] for row in rows] == pytest.approx([0.6, 0.2])
    assert rows[1]["window_bytes"] == 3.0
