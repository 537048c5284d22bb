"""The last choice: finalists by other seeds, and points that packets' differences make better, by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidcc.studies.sweeps.replications import Draws
from fluidcc.studies.tuning import choice
from fluidcc.studies.tuning.choice import Proof, candidate_of
from fluidcc.studies.tuning.evaluate import Evaluator, Measured
from fluidcc.studies.tuning.goal import Goal, Objective, goal_of
from fluidcc.studies.tuning.packet_check import Packets
from fluidcc.studies.tuning.space import Point, space_of
from fluidcc.studies.tuning.surfaces import smoothed
from fluidcc.studies.tuning.tune import _front

SPACE = space_of({"eta": (0.4, 0.8)})
USED = Goal((Objective("utilisation", True),), (), True)


def measured(used: Any, error: float = 0.0, **more: Any) -> Measured:
    metrics = {"utilisation": np.atleast_1d(np.asarray(used, float))} | {k: np.atleast_1d(v) for k, v in more.items()}
    return Measured(metrics, {name: np.full(len(each), error) for name, each in metrics.items()})


class Checker:
    """Stand-in for an evaluator: utilisation by a function of eta, with some seeds."""

    def __init__(self, of: Any, seeds: int) -> None:
        self.of, self.seeds, self.asked = of, list(range(seeds)), []
        self.threads, self.dask = 1, None
        self.draws = SimpleNamespace(until=1e-3, window=None)

    def __call__(self, points: list[Point], report: Any = None, *, label: str = "") -> list[Measured]:
        self.asked.append((label, [point["eta"] for point in points]))
        return [measured(self.of(point["eta"])) for point in points]

    def scenarios(self, point: Point) -> list[float]:
        return [point["eta"]]


def proof(rows: list[tuple[float, Measured]], *checkers: Checker, goal: Goal = USED, searched: int = 2) -> Proof:
    return Proof(goal, SPACE, checkers, [({"eta": at}, one) for at, one in rows], searched, [1, 2, 3], [{}])


def test_the_lucky_are_found_out_by_other_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """True utilisation 0.9 - |eta - 0.6|; the search has 1 of the worst. 24 finalists are run again, and the best 8.

    Those 24 then weigh 8/2, as the search had two seeds.
    """
    weights: list[np.ndarray] = []

    def watched(goal: Goal, places: np.ndarray, found: Any, seeds: np.ndarray, at: Any) -> list[Measured]:
        weights.append(seeds.copy())
        return smoothed(goal, places, found, seeds, at)

    monkeypatch.setattr(choice, "smoothed", watched)
    places = np.linspace(0.4, 0.8, 41)
    found = [(at, measured(0.9 - abs(at - 0.6) if at > 0.405 else 1.0)) for at in places]
    first, second = (Checker(lambda at: 0.9 - abs(at - 0.61), seeds) for seeds in (8, 32))
    best = proof(found, first, second).by_search()
    assert best.point["eta"] == pytest.approx(0.61)
    assert best.metrics["utilisation"] == pytest.approx(0.9)
    assert [(label, len(at)) for label, at in first.asked + second.asked] == [
        ("checking finalists, 8 seeds", 24),
        ("checking finalists, 32 seeds", 8),
    ]
    assert 0.4 in first.asked[0][1]
    assert [np.unique(each, return_counts=True)[1].tolist() for each in weights] == [[41], [17, 24]]
    assert weights[1].max() == 4.0
    assert sorted(second.asked[0][1]) == pytest.approx(np.linspace(0.57, 0.64, 8), abs=0.011)


class Fabric:
    """Packets by hand: utilisation by a function of eta and of the case, whatever the seed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, of: Any) -> None:
        self.of = of
        self.ran: list[tuple[str, int]] = []

        def packets(scenarios: list[Any], untils: Any, window: Any, seeds: list[int], label: str, **_: Any) -> Packets:
            self.ran.append((label, len(scenarios)))
            used = np.array([of(*each) for each in scenarios])
            return Packets({"utilisation": used}, {"utilisation": 0 * used}, {"utilisation": used[:, None]}, [])

        def evaluator(make: Any, cases: Any, draws: Any, seeds: Any, metrics: Any, *_: Any) -> Any:
            class Run:
                untils = [draws.until] * len(cases)

                def __init__(self, ran: list[tuple[str, int]]) -> None:
                    self.draws, self.ran, self.cases = draws, ran, cases
                    self.traces: dict[Any, Any] = {}

                def scenarios(self, point: Point) -> list[Any]:
                    return [(point["eta"], case) for case in cases]

                def __call__(self, points: list[Point], label: str, hopeless: Any) -> list[Measured]:
                    self.ran.append((label, len(points)))
                    found = []
                    for point in points:
                        used: list[float] = []
                        for each in self.scenarios(point):
                            used.append(of(*each))
                            if hopeless is not None and hopeless(point, measured(used)):
                                break
                        found.append(measured(used))
                    return found

            return Run(self.ran)

        monkeypatch.setattr(choice, "packets", packets)
        monkeypatch.setattr(choice, "OneSeed", evaluator)


def in_packets(monkeypatch: pytest.MonkeyPatch, of: Any, *, rows: int = 41, worst: bool = True) -> tuple[Proof, Fabric]:
    """The search claims 0.95 everywhere, and packets must have 0.9 with bursts of 1 and 4."""
    goal = goal_of("utilisation", True, "utilisation>=0.9", True, 1.0)
    goal = Goal(goal.objectives[:1], goal.constraints, worst)
    places = np.linspace(0.4, 0.8, rows)
    checker: Any = Checker(lambda at: 0.95, 8)
    checker.make_scenario = lambda eta, **case: (eta, case)
    checker.draws = Draws("hybrid", 1, None, 1e-3, None)
    checker.cases = [{"burst": 1}]
    found = [({"eta": float(at)}, measured(0.95)) for at in places]
    made = Proof(goal, SPACE, [checker], found, 1, [1, 2], [{"burst": 1}, {"burst": 4}])
    return made, Fabric(monkeypatch, of)


def test_packets_choose_what_keeps_bounds_in_every_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paced, 0.99 is had up to eta 0.75; with bursts only about 0.6. The luckiest by one case is not the choice."""
    made, fabric = in_packets(monkeypatch, lambda eta, case: 0.99 - (0.0 if case["burst"] == 1 else 2 * abs(eta - 0.6)))
    best = made.by_packets({"eta": 0.8})
    assert made.confirmed is True
    assert abs(best.point["eta"] - 0.6) < 0.045
    assert min(made.packets["best"].metrics["utilisation"]) > 0.9
    assert min(made.packets["start"].metrics["utilisation"]) < 0.9
    assert all(abs(point["eta"] - 0.6) > 0.044 for point in made.refused)
    assert len(made.refused) > 3  # those too that few cases showed
    assert [label for label, _ in fabric.ran[:7]] == [
        "packets, present setting",
        "packets, finalists",
        "packets, further finalists",
        "packets, around the best",
        "packets, around the best",
        "packets, around the best",
        "packets, 2 cases of one of the best",
    ]
    assert [count for _, count in fabric.ran[1:3]] == [4, 8]


def test_the_plateau_is_what_is_about_as_good_and_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bursts leave 0.99 - 2 |eta - 0.6|, and 0.95 of the best is the least on it."""
    made, _ = in_packets(monkeypatch, lambda eta, case: 0.99 - (0.0 if case["burst"] == 1 else 2 * abs(eta - 0.6)))
    best = made.by_packets({"eta": 0.8})
    places = [point["eta"] for point in made.plateau]
    assert best.point["eta"] in places
    assert len(places) > 2
    assert all(abs(place - 0.6) <= 0.05 * 0.99 / 2 + 1e-9 for place in places)
    made, _ = in_packets(monkeypatch, lambda eta, case: 0.5)  # every point misses its bound
    made.by_packets(None)
    assert made.plateau == []


def test_the_plateau_allows_for_the_error_of_the_case_that_is_known_least() -> None:
    """A twentieth above the least cost, and 0.02 that seeds leave one of two cases. Catches the error of the other."""
    made = proof([(0.6, measured(1.0))])
    made.packets["best"] = SimpleNamespace(errors={"utilisation": np.array([0.0, 0.02])})  # type: ignore[assignment]
    found = made._as_good({"eta": 0.6}, {(0.6,): 1.0, (0.5,): 1.06, (0.7,): 1.08})
    assert [point["eta"] for point in found] == [0.6, 0.5]


def test_a_point_that_ran_in_some_cases_only_is_on_no_plateau(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above 0.6 bursts leave less; those that were behind four others before bursts ran seem to be as good."""
    made, _ = in_packets(
        monkeypatch,
        lambda eta, case: 0.97 - abs(eta - 0.6) / 4 - (0.2 if case["burst"] > 1 and eta > 0.6 else 0.0),
    )
    rounds = iter([(0.56, 0.58, 0.59, 0.57), (0.69,), (0.55,)])
    monkeypatch.setattr(made, "_promising", lambda *_: [{"eta": eta} for eta in next(rounds)])
    made.by_packets(None)
    assert len(made.plateau) > 2
    assert all(point["eta"] <= 0.6 for point in made.plateau)


def test_a_variable_that_the_plateau_covers_half_of_does_not_matter() -> None:
    """By ratios where the range is searched so; four settings say nothing yet."""
    space = space_of({"kmin": (10e3, 1e6), "pmax": (0.1, 0.5)})
    some = [{"kmin": kmin, "pmax": 0.3 + 0.01 * k} for k, kmin in enumerate((20e3, 50e3, 100e3, 150e3, 250e3))]
    assert space.irrelevant(some) == ["kmin"]
    assert space.irrelevant(some[:4]) == []
    assert space.ranges(some) == {"kmin": (20e3, 250e3), "pmax": (0.3, pytest.approx(0.34))}
    assert space.ranges([]) == {}


def test_what_is_behind_by_some_cases_is_not_run_in_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three cases of which the worst counts; the four best are those of a search that runs everything."""

    def used(eta: float, case: int) -> float:
        return 0.9 - abs(eta - 0.5) * (1 + case) / 4

    ran: list[tuple[float, int]] = []

    def one(scenario: Any, *_: Any, **options: Any) -> Any:
        ran.append(scenario)
        return {"utilisation": used(*scenario)}, {"utilisation": 0.0}

    monkeypatch.setattr("fluidcc.studies.tuning.evaluate._case", one)
    monkeypatch.setattr("fluidcc.studies.tuning.evaluate.resolve", lambda scenario: scenario)
    monkeypatch.setattr("fluidcc.studies.tuning.evaluate.runner_of", lambda *_: lambda seed: None)
    cases, draws = [{"case": k} for k in range(3)], Draws("packet", 1, None, 1e-3, None)
    made = Evaluator(lambda eta, case: (eta, case), cases, draws, [1], {"utilisation"}, 1)
    points = [{"eta": 0.01 * round(100 * at)} for at in np.random.default_rng(1).uniform(0.2, 0.8, 30)]
    points = list({point["eta"]: point for point in points}.values())

    def rank(point: Point, found: Measured) -> tuple[float, ...]:
        return choice._rank(USED, found)

    race, found = choice._Race(rank, 3), list[Measured]()
    for point in points:  # each a batch of its own, compared with all before it
        race.begin_batch()
        found += made([point], hopeless=race.hopeless)
    best = sorted(zip(points, found, strict=True), key=lambda row: rank(*row))[:4]
    true = sorted(points, key=lambda point: -min(used(point["eta"], case) for case in range(3)))[:4]
    assert [point for point, _ in best] == true
    assert all(len(one.metrics["utilisation"]) == 3 for _, one in best)
    assert 4 * 3 <= len(ran) < 0.75 * 3 * len(points)


def test_where_the_mean_counts_a_bad_first_case_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """About 0.52 a setting is worst when paced, best with bursts, and best on average; four others run before it."""

    def used(eta: float, case: dict[str, int]) -> float:
        good = abs(eta - 0.52) < 0.03
        return (0.92 if good else 0.97) if case["burst"] == 1 else (1.0 if good else 0.91)

    made, _ = in_packets(monkeypatch, used, worst=False)
    made.checkers[0].cases = [{}]  # so that the few cases are both
    assert abs(made.by_packets(None).point["eta"] - 0.52) < 0.03


def test_one_seed_must_keep_a_share_by_a_fifth_of_what_it_may_miss() -> None:
    goal = goal_of("queue_bytes.p99", None, ["utilisation>=0.99", "jain>=0.9", "queue_bytes.mean<=1e5"], True, 1.0)
    goal = choice._stricter(goal)
    found = {f"{each.metric}{each.sign}": each.bound for each in goal.constraints}
    assert found == pytest.approx({"utilisation>=": 0.992, "jain>=": 0.92, "queue_bytes.mean<=": 1e5})


def test_packets_judge_what_the_front_shows_as_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.999 at a point alone, 0.95 about it: smoothed it is no finalist, and packets refuse it."""
    made, _ = in_packets(monkeypatch, lambda eta, case: 0.8 if eta == 0.5 else 0.95)
    made.rows = [(point, measured(0.999 if point["eta"] == 0.5 else 0.95)) for point, _ in made.rows]
    made.by_packets(None)
    assert made.refused == [{"eta": 0.5}]


def test_packets_few_cases_are_ranked_by_the_stricter_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 0.9 to keep, 0.91 by one seed counts as missed and 0.93 does not."""
    made, _ = in_packets(monkeypatch, lambda eta, case: 0.95)
    ranked: list[Any] = []
    monkeypatch.setattr(
        choice, "_Race", lambda rank, cases: ranked.append(rank) or SimpleNamespace(hopeless=None, begin_batch=int)
    )
    made.by_packets(None)
    assert [ranked[0]({"eta": 0.5}, measured(used))[0] > 0 for used in (0.91, 0.93)] == [True, False]


def test_in_a_guard_a_setting_may_be_as_bad_as_the_present_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bursts of 16 leave the present setting 0.7, below its bound of 0.9: 0.75 will do there, 0.6 will not."""

    def used(eta: float, case: dict[str, int]) -> float:
        return 0.95 if case["burst"] < 16 else 0.7 if eta == 0.8 else 0.75 if eta < 0.6 else 0.6

    made, _ = in_packets(monkeypatch, used)
    made.guards = [{"burst": 16}]
    best = made.by_packets({"eta": 0.8})
    assert made.confirmed is True
    assert 0.4 < best.point["eta"] < 0.6
    made, _ = in_packets(monkeypatch, lambda eta, case: 0.95 if case["burst"] < 16 else 0.7 if eta == 0.9 else 0.6)
    made.guards = [{"burst": 16}]
    made.by_packets({"eta": 0.9})  # beyond the range
    assert made.confirmed is False
    assert any("missed with bursts of 16: 0.6, present 0.7" in note for note in made.notes)


def test_guards_that_take_long_are_left_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The race has two cases and a guard; only the long guard, which its choices run too, sees what is wrong."""
    made, _ = in_packets(monkeypatch, lambda eta, case: 0.5 if case.get("until") == 0.5 and eta != 0.8 else 0.95)
    cases: list[int] = []
    race = choice._Race
    monkeypatch.setattr(choice, "_Race", lambda rank, count: cases.append(count) or race(rank, count))
    made.guards = [{"burst": 16, "until": 0.1}, {"burst": 16, "until": 0.5}]
    made.by_packets({"eta": 0.8})
    assert cases == [3]
    assert made.confirmed is False
    assert any("missed with bursts of 16: 0.5, present 0.95" in note for note in made.notes)


def test_where_nothing_keeps_the_bounds_the_least_violation_and_its_case_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, _ = in_packets(monkeypatch, lambda eta, case: 0.95 if case["burst"] == 1 else 0.5 + eta / 10)
    best = made.by_packets(None)
    assert made.confirmed is False
    assert not best.kept
    assert "misses utilisation>=0.9 with bursts of 4" in made.notes[-1]
    assert len(made.refused) >= 3


def test_of_those_that_miss_in_few_cases_only_two_run_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    made, fabric = in_packets(monkeypatch, lambda eta, case: 0.5 + eta / 10)
    made.by_packets(None)
    assert [label for label, _ in fabric.ran].count("packets, 2 cases of one of the best") == 2


def test_of_those_as_good_the_one_with_most_to_spare_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a twentieth of the least queue, the one furthest from its bound; an end of the range is no choice."""
    goal = goal_of("queue_bytes.p99", None, "utilisation>=0.9", True, 1.0)
    made, _ = in_packets(monkeypatch, lambda eta, case: 1.0)
    made.goal = goal

    def seen(eta: float, queue: float, used: float, against: list[str]) -> Any:
        metrics = {"queue_bytes.p99": np.array([queue]), "utilisation": np.array([used])}
        return choice._Seen({"eta": eta}, Packets(metrics, {name: np.zeros(1) for name in metrics}, {}, []), against)

    def chosen(*rows: Any) -> float:
        return made._most_spare(rows, goal).point["eta"]

    rows = [seen(0.5, 100e3, 0.91, []), seen(0.6, 104e3, 0.97, []), seen(0.7, 106e3, 0.99, [])]
    assert chosen(*rows) == 0.6
    assert chosen(seen(0.4, 50e3, 0.99, []), *rows) == 0.6
    assert chosen(seen(0.4, 50e3, 0.99, [])) == 0.4
    assert chosen(seen(0.5, 50e3, 0.99, ["more PAUSEs"]), *rows) == 0.6


def test_only_what_may_be_as_good_as_one_that_keeps_its_bounds_is_run_in_every_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the least p99 of 100 KB known, few cases of 104 KB may lead to as good a point; those of 106 KB may not.

    At 0.65 few cases have 80 KB and the short ones 106 KB: it is run in these alone.
    """
    goal = goal_of("queue_bytes.p99", None, "utilisation>=0.9", True, 1.0)
    made, _ = in_packets(monkeypatch, lambda eta, case: 1.0)
    made.goal = goal

    def few(queue: float) -> Measured:
        """A guard, whose queue is not asked for, comes first."""
        return measured([0.95, 0.95], **{"queue_bytes.p99": [300e3, queue]})

    asked: list[float] = []

    def run(point: Point, label: str, *, once: bool, cases: Any = None) -> Packets:
        asked.append(point["eta"] if cases is None else -point["eta"])
        metrics = {
            "queue_bytes.p99": np.array([100e3 if cases is None or point["eta"] != 0.65 else 106e3]),
            "utilisation": np.array([0.85 if point["eta"] == 0.41 else 0.95]),
        }
        return Packets(metrics, {name: np.zeros(1) for name in metrics}, {"utilisation": np.ones((1, 1))}, [])

    monkeypatch.setattr(made, "_run", run)
    rows = [
        ({"eta": 0.41}, few(80e3)),
        ({"eta": 0.5}, few(90e3)),
        ({"eta": 0.6}, few(104e3)),
        ({"eta": 0.65}, few(80e3)),
        ({"eta": 0.7}, few(106e3)),
    ]
    found: list[Any] = []
    made._see_in_every_case(rows, found, goal, np.array([False, True]))
    assert asked == [0.41, 0.5, -0.6, 0.6, -0.65]
    assert [bool(each.against) for each in found] == [True, False, False]
    assert [point["eta"] for point, _ in rows] == [0.65, 0.7]
    del rows[0], asked[3:]
    made._see_in_every_case(rows, found[:1], goal, np.array([False, True]))  # once the others failed with further seeds
    assert asked == [0.41, 0.5, -0.6, 0.7]


def test_finalists_lie_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve of forty-one equals: the first is the best, and no two are neighbours where there is room."""
    made, _ = in_packets(monkeypatch, lambda eta, case: 1.0)
    found = sorted(point["eta"] for point in made._differing())
    assert len(found) == 12
    assert np.diff(found).min() > 0.0101 - 1e-9
    made, _ = in_packets(monkeypatch, lambda eta, case: 1.0, rows=3)
    assert len(made._differing()) == 3


def test_a_candidates_error_is_the_largest_and_its_value_the_worst() -> None:
    goal = goal_of("utilisation", True, "utilisation>=0.9", True, 1.0)
    two = Measured({"utilisation": np.array([0.95, 0.91])}, {"utilisation": np.array([0.01, 0.03])})
    found = candidate_of(goal, {"eta": 0.5}, two)
    assert (found.metrics["utilisation"], found.errors["utilisation"], found.kept) == (0.91, 0.03, True)
    assert not candidate_of(goal, {"eta": 0.5}, measured([0.95, 0.89])).kept


def test_the_front_keeps_bounds_with_an_error_to_spare() -> None:
    goal = goal_of("queue_bytes.p99", None, "utilisation>=0.9", True, 1.0)
    rows = [
        ({"eta": at}, Measured({"queue_bytes.p99": np.array([queue]), "utilisation": np.array([used])}, errors))
        for at, queue, used, errors in (
            (0.4, 1.0, 0.91, {"utilisation": np.array([0.02])}),  # within its error of the bound
            (0.5, 2.0, 0.91, {}),
            (0.6, 3.0, 0.90, {}),  # a longer queue, and less used
            (0.7, 4.0, 0.99, {}),
            (0.8, math.nan, 0.999, {}),
        )
    ]
    assert [point["eta"] for point, _ in _front(goal, rows)] == [0.5, 0.7]
    assert _front(goal, rows[:1]) == []


def test_smoothing_is_a_weighted_plane_and_steins_shrinkage() -> None:
    """One point by itself: rows times roots of weights, least squares with a small ridge; seeds weigh, and chance."""
    random = np.random.default_rng(4)
    places, seeds = random.random((90, 2)), random.integers(1, 9, 90).astype(float)
    values = 0.5 + 0.2 * places[:, 0] ** 2 - 0.1 * places[:, 1] + 0.01 * random.normal(size=90)
    errors = 0.008 * (1 + random.random(90))
    rows = [
        Measured({"utilisation": np.array([v])}, {"utilisation": np.array([e])})
        for v, e in zip(values, errors, strict=True)
    ]
    found = smoothed(USED, places, rows, seeds, [3, 50])
    for i, row in zip((3, 50), found, strict=True):
        off = places - places[i]
        square = (off**2).sum(axis=1)
        width = max(0.1, math.sqrt(np.sort(square)[40]) / 2)
        weight = seeds * np.exp(-square / 2 / width**2)
        design = np.column_stack([np.ones(90), off])
        ridge = math.sqrt(1e-3 * weight.sum()) * width * np.eye(3)[1:]
        left = np.vstack([design * np.sqrt(weight)[:, None], ridge])
        plane, *_ = np.linalg.lstsq(left, np.r_[values * np.sqrt(weight), 0, 0], rcond=None)
        strays = np.average((values - design @ plane) ** 2, weights=weight)
        chance = np.average(errors**2, weights=weight)
        own = chance * min(1.0, np.average(seeds, weights=weight) / seeds[i])
        rough = max(strays - chance, 0.0)
        believed = rough / (own + rough)
        assert 0.05 < believed < 0.95
        expected = believed * values[i] + (1 - believed) * plane[0]
        assert row.metrics["utilisation"][0] == pytest.approx(expected, rel=1e-8)


# -- races, cases and places, by hand ----------------------------------------------------------------------------------


def test_a_point_behind_the_fourth_best_is_hopeless_and_one_level_with_it_is_not() -> None:
    """Ranks are the points' own. What has not run in both cases is no yardstick for others."""
    race = choice._Race(lambda point, found: (point["eta"],), 2)

    def hopeless(at: float, cases: int = 2) -> bool:
        return race.hopeless({"eta": at}, measured([0.9] * cases))

    assert [hopeless(at) for at in (1.0, 3.0, 2.0)] == [False] * 3
    assert [hopeless(at, cases=1) for at in (0.1, 0.2, 9.0)] == [False] * 3  # three have run in both so far
    race.begin_batch()
    assert [hopeless(at) for at in (9.0, 4.0, 5.0)] == [False] * 3  # compared with the batch before, which had three
    race.begin_batch()
    assert [hopeless(at, cases=1) for at in (4.0, 4.1, 0.5)] == [False, True, False]
    assert hopeless(2.5) is False
    assert hopeless(3.5) is False  # the fourth is still 4 in this batch, whoever came first
    race.begin_batch()
    assert [hopeless(at, cases=1) for at in (3.0, 3.1)] == [False, True]


def seen_by_all(monkeypatch: pytest.MonkeyPatch, good: int) -> tuple[Proof, list[str]]:
    """All points have 0.95 with one seed; with all seeds this is left to those from the choice of this number on."""
    made, fabric = in_packets(monkeypatch, lambda eta, case: 0.95)
    one_seed, chosen = choice.packets, list[str]()

    def packets(scenarios: Any, untils: Any, window: Any, seeds: Any, *, label: str, **options: Any) -> Packets:
        found = one_seed(scenarios, untils, window, seeds, label=label, **options)
        if "choice" not in label:
            return found
        chosen.append(label)
        return found if len(chosen) >= good else Packets({"utilisation": np.full(2, 0.7)}, {}, {}, [])

    monkeypatch.setattr(choice, "packets", packets)
    assert fabric.ran == []
    return made, chosen


@pytest.mark.parametrize(("good", "choices"), [(1, 1), (2, 2), (3, 3), (4, 3)])
def test_packets_see_the_next_choice_until_they_speak_against_none(
    monkeypatch: pytest.MonkeyPatch, good: int, choices: int
) -> None:
    """Three at most; those before are refused, and noted."""
    made, chosen = seen_by_all(monkeypatch, good)
    best = made.by_packets(None)
    assert chosen == [f"packets, choice {k}" for k in range(1, choices + 1)]
    assert made.confirmed is (good <= 3)
    assert len(made.refused) == min(good - 1, 3)
    assert sum("packets speak against eta" in note for note in made.notes) == min(good - 1, 3)
    assert (best.point in made.refused) is (good > 3)
    assert best.kept is (good <= 3)
    assert "start" not in made.packets
    assert ("no setting keeps every bound" in made.notes[-1] if made.notes else False) is (good > 3)


def test_of_each_searched_case_the_hardest_of_its_beginnings_are_run() -> None:
    """And the first with smaller packets, and the shortest with most senders. A length is no difference; none twice."""
    plain = [{"flows": n, "burst": 1, "begin": "line"} for n in (2, 8)]
    longer = [{**plain[0], "burst": 4}, {**plain[0], "burst": 4, "begin": "share"}, {**plain[0], "until": 9.0}]
    made: Any = SimpleNamespace(
        checkers=[SimpleNamespace(cases=[{"flows": 2}, {"flows": 8}])], packet_cases=[plain[0], *longer, plain[1]]
    )
    assert Proof._telling(made) == [longer[0], longer[1], plain[1]]
    made.packet_cases = [plain[1], {**plain[0], "until": 5.0}, {**plain[0], "burst": 4, "until": 9.0}]
    assert Proof._telling(made) == [made.packet_cases[2], made.packet_cases[1], plain[1]]
    large, small = ([{**case, "packet_size": size} for case in plain] for size in (4096.0, 1024.0))
    made.packet_cases = [*large, *small]
    assert Proof._telling(made) == [small[0], large[0], small[1], large[1]]
    other = [{**case, "burst": 4, "begin": "share"} for case in large]
    made.packet_cases = [large[0], other[0], large[1], other[1], *small]
    assert Proof._telling(made) == [small[0], other[0], small[1], other[1]]
    ways = [
        {"burst": burst, "counts_sending": counts, "begin": begin}
        for burst in (1, 4)
        for counts in (False, True)
        for begin in ("line", "share")
    ]
    soon = {"begin": "share", "until": 1.0}
    made.packet_cases = [{**case, "until": 9.0, **way} for case in large for way in ways]
    made.packet_cases += [{**case, **ways[0], **more} for case in small for more in ({"until": 9.0}, soon)]
    told = [made.packet_cases.index(case) for case in Proof._telling(made)]
    # hard from the line, hard from the share, plain from the share; then small packets: the plainest, and many that end
    assert told == [6, 7, 1, 14, 15, 9, 16, 19]


def test_settling_times_rank_no_single_run() -> None:
    made: Any = SimpleNamespace(goal=goal_of("queue_bytes.p99", None, ["settling_time<=1ms", "jain>=0.9"], True, 1.0))
    coarse = Proof._coarse(made)
    assert [each.metric for each in coarse.constraints] == ["jain"]
    assert [each.metric for each in coarse.objectives] == ["queue_bytes.p99", "utilisation"]
    made.goal = goal_of(["settling_time", "jain"], None, (), True, 1.0)
    assert [each.metric for each in Proof._coarse(made).objectives] == ["jain"]


def test_points_about_the_best_are_those_predicted_best_and_apart() -> None:
    """Packets have more of the link the nearer to 0.6, and ran at 0.5 and 0.66; the search knows nothing of it."""
    checker: Any = Checker(lambda at: 0.9, 8)
    checker.cases = [{}]
    made = proof([(at, measured(0.9)) for at in np.linspace(0.4, 0.8, 9)], checker)
    rows = [({"eta": at}, measured(1 - abs(at - 0.6))) for at in (0.5, 0.54, 0.66, 0.68)]

    def rank(point: Point, found: Measured) -> tuple[float, ...]:
        return (-float(found.metrics["utilisation"][0]),)

    near = [point["eta"] for point in made._promising(rows, [{"burst": 4}], rank, 0.2)]
    assert 5 <= len(near) <= 8
    assert 0.54 < near[0] < 0.66
    for at in near:  # within a fifth of the range of one that ran
        assert min(abs(at - ran) for ran in (0.5, 0.54, 0.66, 0.68)) <= 0.2 * 0.4 + 1e-9
    gaps = np.diff(sorted([*near, 0.5, 0.54, 0.66, 0.68])) / 0.4
    assert np.sort(gaps)[2:].min() >= 0.2 / 4 - 1e-9  # but for those that ran, which are nearer
    assert near == [point["eta"] for point in made._promising(rows, [{"burst": 4}], rank, 0.2)]
    ends = [point["eta"] for point in made._promising([({"eta": 0.8}, measured(0.9))], [{}], rank, 0.2)]
    assert min(ends) >= 0.72 - 1e-12
    assert max(ends) < 0.8


@pytest.mark.parametrize(("cost", "limit"), [(100.0, 105.0), (-0.8, -0.76), (0.0, 0.0)])
def test_about_as_good_is_within_a_twentieth_on_the_worse_side(cost: float, limit: float) -> None:
    assert choice._about(cost) == pytest.approx(limit)


def test_violations_rank_first_and_with_errors_if_asked_for() -> None:
    goal = goal_of("queue_bytes.p99", None, ["utilisation>=0.9", "jain>=0.5"], True, 1.0)
    found = measured(0.81, 0.09, **{"queue_bytes.p99": 70.4, "jain": 0.5})
    assert choice._rank(goal, found) == (pytest.approx(0.1), 70.0, -0.81)
    assert choice._rank(goal, found, spare=1.0) == (pytest.approx(0.2 + 0.18), 70.0, -0.81)
    assert choice._rank(goal, found, spare=0.5) == (pytest.approx(0.15 + 0.09), 70.0, -0.81)


def test_a_point_at_an_end_of_its_range_ranks_behind_one_inside() -> None:
    made = proof([(0.5, measured(0.9))])
    assert made._inside(USED, {"eta": 0.5}, measured(0.7)) == (0.0, 0, -0.7)
    assert made._inside(USED, {"eta": 0.8}, measured(0.9)) == (0.0, 1, -0.9)


def test_a_guard_is_kept_and_not_made_better() -> None:
    """Its bound counts and its queue does not; a point that ran in guards alone may still be the best."""
    made = proof([(0.5, measured(0.9))])
    goal = goal_of("queue_bytes.p99", None, ["utilisation>=0.9"], True, 1.0)
    found = measured([0.81, 0.95], **{"queue_bytes.p99": [500.0, 70.0]})
    asked = np.array([False, True, True])
    assert made._inside(goal, {"eta": 0.5}, found, asked) == (pytest.approx(0.1), 0, 70.0, -0.95)
    first = measured(0.95, **{"queue_bytes.p99": 500.0})
    assert made._inside(goal, {"eta": 0.5}, first, asked) == (0.0, 0, -np.inf, -np.inf)


def test_a_bound_from_above_on_a_share_is_no_stricter() -> None:
    goal = choice._stricter(goal_of("queue_bytes.p99", None, ["utilisation<=0.9", "jain>=0.5"], True, 1.0))
    assert {f"{each.metric}{each.sign}": each.bound for each in goal.constraints} == pytest.approx(
        {"utilisation<=": 0.9, "jain>=": 0.6}
    )


def test_the_bound_missed_most_is_named_with_its_case_and_value() -> None:
    made = proof(
        [(0.5, measured(0.9))], goal=goal_of("queue_bytes.p99", None, ["utilisation>=0.9", "jain>=0.8"], True, 1)
    )
    made.packet_cases = [{"burst": 1}, {"burst": 4, "until": 5.0}, {"burst": 16}]
    metrics = {"utilisation": np.array([0.95, 0.8, 0.85]), "jain": np.array([0.85, 0.6, 0.75])}
    found = Packets(metrics, {}, {}, [])
    assert made._least_missed(found).endswith("the best misses jain>=0.8 with bursts of 4: 0.6")
    metrics["utilisation"][2] = 0.45
    assert made._least_missed(found).endswith("the best misses utilisation>=0.9 with bursts of 16: 0.45")
    fine = Packets({"utilisation": np.ones(3), "jain": np.ones(3)}, {}, {}, [])
    assert made._least_missed(fine).startswith("the last choice keeps every bound in packets")
    made.packet_cases = [{}]
    alone = Packets({"utilisation": np.array([0.45]), "jain": np.ones(1)}, {}, {}, [])
    assert made._least_missed(alone).endswith("with its only case: 0.45")


def test_runs_of_a_point_are_kept_for_its_cases_and_guards_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, list[int], int]] = []
    made, _ = in_packets(monkeypatch, lambda eta, case: 0.95)

    def packets(scenarios: Any, untils: Any, window: Any, seeds: Any, *, done: Any, **_: Any) -> Any:
        asked.append((len(scenarios), list(seeds), len(done)))
        done.update({(case, seed): None for case in range(len(scenarios)) for seed in seeds})

    monkeypatch.setattr(choice, "packets", packets)
    made._run({"eta": 0.5}, "", once=True)
    made._run({"eta": 0.5}, "")
    made._run({"eta": 0.6}, "")
    made._run({"eta": 0.5}, "", cases=[{"burst": 16}])
    made._run({"eta": 0.5}, "")
    assert asked == [(2, [1], 0), (2, [1, 2], 2), (2, [1, 2], 0), (1, [1, 2], 0), (2, [1, 2], 4)]


def test_what_points_ran_in_few_cases_is_kept_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under its case and not its number: the trace would else be another case's."""
    made, _ = in_packets(monkeypatch, lambda eta, case: 0.95)
    made.guards = [{"burst": 16}]
    few: Any = SimpleNamespace(cases=[{"burst": 4}, {"burst": 16}, {"burst": 1}])
    few.traces = {((0.5,), 0): "four", ((0.5,), 1): "guard", ((0.6,), 0): "other", ((0.7,), 2): "one"}
    made._remember(few, [{"eta": 0.5}, {"eta": 0.7}])
    kept = {
        at: {(dict(case)["burst"], seed): trace for (case, seed), trace in of.items()} for at, of in made._done.items()
    }
    assert kept == {(0.5,): {(4, 1): "four", (16, 1): "guard"}, (0.7,): {(1, 1): "one"}}
    assert few.traces == {}
