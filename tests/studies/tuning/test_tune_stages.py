"""Stages of tuning, with a formula in place of the engines: what is searched, checked, shown and refused."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.run_many import SchedulerError
from fluidcc.errors import InputError
from fluidcc.studies.tuning.evaluate import Measured
from fluidcc.studies.tuning.goal import TUNED
from fluidcc.studies.tuning.space import Point, point_of, space_of
from fluidcc.units import Rate

tuning = importlib.import_module("fluidcc.studies.tuning.tune")
MANY = [{"flows": n} for n in (2, 4)]


def curve(eta: float) -> dict[str, float]:
    """A queue that is the shorter the less is used: (1 - eta)^-1 KB, in tenths of eta from 0.4 to 0.8."""
    return {"queue_bytes.p99": 1e3 / (1 - eta), "utilisation": eta, "jain": 1.0}


class Table:
    """Stand-in for an evaluator: metrics by a formula of the point, and how it was made."""

    made: ClassVar[list[Table]] = []
    formula: ClassVar[Callable[[float], dict[str, float]]] = staticmethod(curve)

    def __init__(
        self, make: Any, cases: Any, draws: Any, seeds: Sequence[int], metrics: set[str], threads: Any, dask: Any
    ) -> None:
        self.cases, self.draws, self.seeds, self.metrics = cases, draws, list(seeds), metrics
        self.threads, self.dask, self.make_scenario = threads, dask, make
        self.table: dict[tuple[float, ...], Measured] = {}
        Table.made.append(self)

    @property
    def runs(self) -> int:
        return len(self.table)

    def __call__(self, points: Sequence[Point], report: Any = None, **_: Any) -> list[Measured]:
        for point in points:
            found = {name: np.array([math.nan]) for name in TUNED}
            told = Table.formula(point["eta"])
            metrics = found | {name: np.array([value]) for name, value in told.items()}
            reason = "eta: no sense" if math.isnan(told["utilisation"]) else ""
            self.table.setdefault(
                tuple(point.values()), Measured(metrics, {name: np.zeros(1) for name in TUNED}, reason)
            )
        return [self.table[tuple(point.values())] for point in points]

    def known(self) -> list[tuple[tuple[float, ...], Measured]]:
        return list(self.table.items())


def tuned(
    monkeypatch: pytest.MonkeyPatch,
    formula: Callable[[float], dict[str, float]] = curve,
    make: Any = lambda eta: fc.incast(2),
    **options: Any,
) -> fc.studies.Tuning:
    """Five points of eta from 0.4 to 0.8, and no packets if not asked for."""
    Table.made = []
    monkeypatch.setattr(Table, "formula", staticmethod(formula))
    monkeypatch.setattr(tuning, "Evaluator", Table)

    def search(space: Any, goal: Any, evaluator: Any, *, known: Any, report: Any, **_: Any) -> None:
        evaluator([*known, *({"eta": round(at, 9)} for at in np.linspace(0.4, 0.8, 5))])
        report(1)

    monkeypatch.setattr(tuning, "search", search)
    given = {"until": "2ms", "packet_seeds": 0, "seeds": 3, "subject_to": "utilisation>=0.55", "defaults": False}
    return fc.tune(make, {"eta": (0.4, 0.8)}, **given | options)


def test_the_best_that_keeps_its_bounds_is_chosen_and_the_front_is_of_those(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuned(monkeypatch)
    assert found.best.point == {"eta": 0.6}
    assert found.best.kept is True
    assert [each.point["eta"] for each in found.pareto] == [0.6, 0.7, 0.8]
    assert found.knee is not None
    assert found.knee.point == {"eta": 0.7}
    assert found.evaluations == 5
    assert found.notes == []
    assert (found.start, found.yardsticks, found.sensitivity, found.confirmed) == (None, {}, None, None)


def test_without_a_point_between_the_front_has_no_knee(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuned(monkeypatch, subject_to="utilisation>=0.65")
    assert [each.point["eta"] for each in found.pareto] == [0.7, 0.8]
    assert found.knee is None


def test_where_no_bound_is_kept_the_best_misses_least_and_lies_at_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuned(monkeypatch, subject_to="utilisation>=0.9")
    assert found.best.point == {"eta": 0.8}
    assert found.best.kept is False
    assert (found.pareto, found.knee) == ([], None)
    assert found.notes == [
        "no setting keeps every bound: the best misses least",
        "eta lies at the end of its range: a wider range may have a better value",
    ]


@pytest.mark.parametrize("seeds", [1, 3])
def test_checks_have_seeds_of_their_own(monkeypatch: pytest.MonkeyPatch, seeds: int) -> None:
    """Four and sixteen times as many, from 1001 on; each in every case."""
    tuned(monkeypatch, lambda eta: curve(eta), lambda eta, flows: fc.incast(2), seeds=seeds, across={"flows": [2, 4]})
    chosen, few, many = Table.made[:3]
    assert chosen.seeds == list(range(1, seeds + 1))
    assert few.seeds == list(range(1001, 1001 + 4 * seeds))
    assert many.seeds == list(range(1001, 1001 + 16 * seeds))
    assert [each.cases for each in (chosen, few, many)] == [MANY] * 3
    assert chosen.draws.engine == "hybrid"
    assert len(few.table) == len(many.table) == 5


@pytest.mark.parametrize(
    ("scheme", "engine", "chosen"),
    [(fc.DCQCN(), None, "hybrid"), (fc.HPCC(), None, "fluid"), (fc.DCQCN(), "fluid", "fluid")],
)
def test_the_fluid_is_for_schemes_without_chance_and_has_no_seeds(
    monkeypatch: pytest.MonkeyPatch, scheme: Any, engine: str | None, chosen: str
) -> None:
    tuned(monkeypatch, make=lambda eta: fc.incast(2, scheme=scheme), engine=engine)
    assert Table.made[0].draws.engine == chosen
    assert Table.made[0].seeds == ([] if chosen == "fluid" else [1, 2, 3])
    assert len(Table.made) == (1 if chosen == "fluid" else 3)


def test_present_settings_and_yardsticks_are_tried_first_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuned(monkeypatch, start={"eta": 0.5}, yardsticks={"paper": {"eta": "65%"}, "other": {"eta": 0.95}})
    assert [values for values, _ in Table.made[0].known()][:3] == [(0.5,), (0.65,), (0.95,)]
    assert found.start is not None
    assert (found.start.point, found.start.kept) == ({"eta": 0.5}, False)
    assert {name: each.point["eta"] for name, each in found.yardsticks.items()} == {"paper": 0.65, "other": 0.95}
    assert found.yardsticks["other"].metrics["utilisation"] == 0.95
    assert found.evaluations == 7  # 0.5 is one of the five
    assert all(len(each.table) <= 7 for each in Table.made)


def test_a_point_without_sense_is_left_out_and_if_there_is_no_other_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def partly(eta: float) -> dict[str, float]:
        return curve(eta) if eta > 0.65 else {"utilisation": math.nan}

    found = tuned(monkeypatch, partly)
    assert found.best.point == {"eta": 0.7}
    assert found.evaluations == 5
    with pytest.raises(InputError, match="over: no point makes sense; eta: no sense"):
        tuned(monkeypatch, lambda eta: {"utilisation": math.nan})


def test_a_target_below_the_link_lowers_the_usual_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    hpcc = lambda eta: fc.incast(2, scheme=fc.HPCC(eta=0.8))  # noqa: E731
    found = tuned(monkeypatch, make=hpcc, subject_to=None, defaults=True)
    assert [str(each) for each in found.goal.constraints] == ["utilisation>=0.784", "jain>=0.9"]


@pytest.mark.parametrize(
    ("option", "good", "bad"),
    [
        ("seeds", 1, 0),
        ("seeds", 1000, 1001),
        ("evaluations", 1, 0),
        ("packet_seeds", 0, -1),
        ("sensitivity", 0, -1),
        ("sensitivity", 0, 3),
        ("sensitivity", 0, 12),
    ],
)
def test_numbers_out_of_range_are_refused(monkeypatch: pytest.MonkeyPatch, option: str, good: int, bad: int) -> None:
    fine: dict[str, Any] = {option: good}
    wrong: dict[str, Any] = {option: bad}
    tuned(monkeypatch, **fine)
    with pytest.raises(InputError, match=option):
        tuned(monkeypatch, **wrong)


@pytest.mark.parametrize("size", [1, 2, 32])
def test_sensitivities_are_of_powers_of_2(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(tuning, "sensitivity_of", lambda *given: asked.append(given[3:]))
    tuned(monkeypatch, sensitivity=size, seed=7)
    assert asked == [({"eta": 0.6}, size, 7)]


# -- packets -----------------------------------------------------------------------------------------------------


class Proof:
    """Stand-in for packets' proof: one that fails as it is told."""

    def __init__(self, *given: Any) -> None:
        self.given, self.notes = given, list[str]()
        self.packets: dict[str, Any] = {"start": None}
        self.confirmed: bool | None = False
        self.guards, self.refused = [{"burst": 16}], list[Point]()
        self.plateau = [{"eta": 0.45}, {"eta": 0.6}]

    def by_search(self) -> str:
        return "by search"

    def by_packets(self, present: Any) -> str:
        if isinstance(present, Exception):
            raise present
        return f"by packets, present {present}"


def test_what_packets_refuse_is_chosen_by_the_search_and_noted() -> None:
    proof: Any = Proof()
    assert tuning._shown(proof, None) == "by packets, present None"
    assert (proof.packets, proof.confirmed, proof.notes) == ({"start": None}, False, [])
    error: Any = InputError("buffer: too small")
    assert tuning._shown(proof, error) == "by search"
    assert (proof.packets, proof.confirmed) == ({}, None)
    assert proof.notes == ["packets were not run: buffer: too small"]
    lost: Any = SchedulerError("dask: gone")
    with pytest.raises(SchedulerError):
        tuning._shown(proof, lost)


@pytest.mark.parametrize("cases", [None, [{"flows": 2, "burst": 4}]])
def test_packets_have_seeds_cases_and_guards_of_their_own(
    monkeypatch: pytest.MonkeyPatch, cases: list[dict[str, Any]] | None
) -> None:
    made: list[Proof] = []

    def proof(*given: Any) -> Any:
        made.append(Proof(*given))
        made[-1].by_packets = lambda present: best  # type: ignore[method-assign]
        return made[-1]

    best: Any = tuned(monkeypatch).best
    monkeypatch.setattr(tuning, "Proof", proof)
    make = lambda eta, flows: fc.incast(2)  # noqa: E731
    guards = [{"burst": 16}]
    found = tuned(
        monkeypatch, make=make, packet_seeds=2, packet_cases=cases, packet_guards=guards, across={"flows": [2, 4]}
    )
    goal, space, checkers, rows, searched, seeds, wider, guarded = made[0].given
    assert (goal, space) == (found.goal, found.space)
    assert checkers == Table.made[1:3]
    assert [point["eta"] for point, _ in rows] == pytest.approx([0.4, 0.5, 0.6, 0.7, 0.8])
    assert (searched, seeds) == (3, [2001, 2002])
    assert wider == (MANY if cases is None else cases) == found.packet_cases
    assert guarded == guards == found.packet_guards
    assert found.plateau == {"eta": (0.45, 0.6)}
    assert found.confirmed is False


# -- what is given -----------------------------------------------------------------------------------------------


def test_cases_are_all_combinations() -> None:
    assert tuning._cases(None, {}) == tuning._cases({}, {}) == [{}]
    assert tuning._cases({"a": [1, 2], "b": (3,)}, {"c": (0, 1)}) == [{"a": 1, "b": 3}, {"a": 2, "b": 3}]
    assert len(tuning._cases({"a": range(10), "b": range(10)}, {})) == 100


@pytest.mark.parametrize(
    ("across", "says"),
    [
        ({"c": [1, 2]}, "c is tuned"),
        ({"a": []}, "across a: expected a list"),
        ({"a": "12"}, "across a: expected a list"),
        ({"a": 3}, "across a: expected a list"),
        ({"a": range(101)}, "101 cases are more than 100"),
    ],
)
def test_cases_that_are_none_are_refused(across: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        tuning._cases(across, {"c": (0, 1)})


def test_a_setting_is_taken_as_it_is() -> None:
    """Values beyond the range, and between what can be set; rates keep their mark."""
    space = space_of({"kmin": ("1KB", "9KB"), "rate_ai": ("10Mbps", "40Mbps")})
    found = point_of({"rate_ai": "5Mbps", "kmin": 12345.6}, space, "start")
    assert list(found) == ["kmin", "rate_ai"]
    assert found == pytest.approx({"kmin": 12345.6, "rate_ai": 0.625e6})
    assert isinstance(found["rate_ai"], Rate)
    with pytest.raises(InputError, match="start: rate_ai is missing; give a value for each of kmin, rate_ai"):
        point_of({"kmin": 1e3}, space, "start")
    with pytest.raises(InputError, match="start: g is not tuned"):
        point_of({"kmin": 1e3, "rate_ai": 1.0, "g": 1.0}, space, "start")


@pytest.mark.parametrize("sound", [0.9, 0.6, 0.4, 0.8, None])
def test_an_example_is_looked_for_in_what_is_known_the_middle_and_both_corners(
    monkeypatch: pytest.MonkeyPatch, sound: float | None
) -> None:
    tried: list[tuple[float, int]] = []

    def make(eta: float, flows: int) -> Any:
        tried.append((round(eta, 9), flows))
        if tried[-1][0] != sound:
            raise InputError(f"eta: not {eta:g}")
        return SimpleNamespace()

    monkeypatch.setattr(tuning, "resolve", lambda scenario: scenario)
    space, order = space_of({"eta": (0.4, 0.8)}), [0.9, 0.6, 0.4, 0.8]
    if sound is None:
        with pytest.raises(InputError, match=r"over: no point makes sense; eta: not 0\.9"):
            tuning._example(make, space, MANY, [{"eta": 0.9}])
    else:
        tuning._example(make, space, MANY, [{"eta": 0.9}])
        order = order[: order.index(sound) + 1]
    assert tried == [(eta, 2) for eta in order]


def test_a_function_that_does_not_take_a_case_is_refused() -> None:
    with pytest.raises(InputError, match="make_scenario cannot be called with eta, flows"):
        tuning._example(lambda eta: None, space_of({"eta": (0.4, 0.8)}), MANY, [])


def test_a_package_that_is_not_there_is_refused_at_once() -> None:
    tuning._require("math", "tune")
    with pytest.raises(InputError, match="tune: needs no_such_package; install it"):
        tuning._require("no_such_package", "tune")
