"""Racing by hand: costs, what is worse than the present setting, the plateau, and who gets more seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from fluidcc.errors import InputError
from fluidcc.studies.tuning import on_fabric
from fluidcc.studies.tuning import race as racing
from fluidcc.studies.tuning.race import (
    MEASURES,
    Racer,
    Rule,
    middle_of,
    race,
    spread_of,
)
from fluidcc.studies.tuning.space import Point, space_of

SMALL, LARGE, TIME = "slowdown.small.p99", "slowdown.large.p99", "collective_time"
SPACE = space_of({"kmin": ("10KB", "1MB"), "pmax": ("1%", "100%")})
BOTH = Rule((SMALL, LARGE))


def racer(
    name: str = "s", seeds: int = 3, cases: int = 1, point: Point | None = None, noise: Any = 0.0, **ratios: Any
) -> Racer:
    """A setting whose measures are these multiples of the present one's, 7, in each case; NaN where none is given."""
    found = np.full((cases, len(MEASURES), seeds, 2), np.nan)
    for key, values in ({"unfinished": 1.0} | ratios).items():
        place = [each.replace(".", "_") for each in MEASURES].index(key)
        found[:, place, :, 1] = 7.0
        ratio = np.broadcast_to(np.atleast_1d(values)[:, None], (cases, seeds))
        found[:, place, :, 0] = 7.0 * ratio * (1.0 if key == "unfinished" else np.exp(noise))
    return Racer(name, point or {"kmin": 1e5, "pmax": 0.1}, found)


def test_the_worst_of_the_cases_counts_or_their_mean() -> None:
    """A mean in place of the worst would hide the case in which a setting is bad."""
    one = racer(cases=2, slowdown_small_p99=[0.5, 0.8], slowdown_large_p99=[1.2, 0.9])
    assert BOTH.cost(one) == pytest.approx((math.log(0.8) + math.log(1.2)) / 2)
    assert Rule((SMALL, LARGE), worst=False).cost(one) == pytest.approx(math.log(0.5 * 0.8 * 1.2 * 0.9) / 4)


def test_what_no_case_measures_is_in_no_cost() -> None:
    """A workload without large flows is judged by its small ones; a setting with nothing to measure comes last."""
    assert Rule((SMALL, LARGE, TIME)).cost(racer(slowdown_small_p99=0.5)) == pytest.approx(math.log(0.5))
    assert BOTH.cost(racer()) == math.inf


@pytest.mark.parametrize(
    ("ratios", "errors_beyond"),
    [
        ({"slowdown_small_p99": 0.2, "slowdown_large_p99": 1.05}, [0.0]),
        ({"slowdown_small_p99": 0.2, "slowdown_large_p99": 1.05 * math.exp(0.2)}, [2.0]),
        ({"slowdown_small_p99": 1.05 * math.exp(0.1), "slowdown_large_p99": 1.05 * math.exp(0.2)}, [1.0, 2.0]),
        ({"slowdown_small_p99": 0.2, "goodput": math.exp(-0.3) / 1.05}, [3.0]),
        ({"slowdown_small_p99": 0.2, "goodput": 2.0}, []),  # more of it is better
        ({"slowdown_small_p99": 0.2, "queue_bytes_p99": 3.0}, []),  # not aimed at
    ],
)
def test_the_chance_that_a_setting_is_worse_in_nothing(ratios: dict[str, float], errors_beyond: list[float]) -> None:
    """By the normal distribution's table, a spread of 0.2 and four seeds: errors of 0.1, beyond 5 %."""
    table = {0.0: 0.5, 1.0: 0.158655, 2.0: 0.022750, 3.0: 0.001350}
    expected = math.prod(table[each] for each in errors_beyond)
    found = math.exp(BOTH.chance(racer(seeds=4, **ratios), np.full(len(MEASURES), 0.2)))
    assert found == pytest.approx(expected, rel=1e-3)


def test_each_case_can_be_the_one_in_which_a_setting_loses() -> None:
    """Chances multiply over the cases: a mean of them would hide one."""
    one = racer(seeds=4, cases=3, slowdown_small_p99=[0.2, 1.05, 1.05], slowdown_large_p99=0.2)
    assert math.exp(BOTH.chance(one, np.full(len(MEASURES), 0.2))) == pytest.approx(0.25)


def test_an_unfinished_flow_makes_a_setting_hopeless() -> None:
    """Its size is in no slowdown: counted in the worst case, and fewer than with the present setting gain nothing."""
    errors = np.full(len(MEASURES), 0.2)
    whole, more, fewer = (racer(slowdown_small_p99=0.2, unfinished=each) for each in (1.0, 8 / 7, 6 / 7))
    assert BOTH.chance(more, errors) == pytest.approx(BOTH.chance(whole, errors) - 10)
    assert BOTH.chance(fewer, errors) == BOTH.chance(whole, errors)
    assert BOTH.kept([more]) == []


def test_what_is_just_allowed_is_not_the_best() -> None:
    """A little more gain at the edge of 5 % is not worth a chance of one half; equal chances leave it to the gain."""
    edge = racer("edge", slowdown_small_p99=0.5, slowdown_large_p99=1.05)
    inside = racer("inside", slowdown_small_p99=0.62, slowdown_large_p99=0.99)
    calm = racer("calm", slowdown_small_p99=0.9, slowdown_large_p99=0.9)
    worse = racer("worse", slowdown_small_p99=1.01, slowdown_large_p99=1.0)
    noisy = racer("noisy", noise=np.array([-0.1, 0.1, 0.0]), slowdown_small_p99=3.0, slowdown_large_p99=3.0)
    found = [each.name for each in BOTH.ranked([worse, calm, edge, inside, noisy])]
    assert found == ["inside", "edge", "calm", "worse", "noisy"]


def test_the_error_of_a_seed_is_that_of_all_settings_together() -> None:
    """Variances are averaged, not deviations, each by n - 1; of a single seed there is none."""
    noise = [np.array([-0.1, 0.1]), np.array([-0.3, 0.3])]
    some = [racer(seeds=2, noise=each, slowdown_small_p99=1.0) for each in noise]
    assert spread_of(some)[0] == pytest.approx(math.sqrt((0.02 + 0.18) / 2))
    assert spread_of([racer(seeds=1, slowdown_small_p99=1.0)])[0] == 0


def test_the_plateau_is_within_5_percent_of_the_best_that_trades_nothing() -> None:
    """A setting with the least cost that pays for it elsewhere is not on it, nor does it set its level."""
    costs = {"a": (0.5, 1.0), "b": (0.54, 1.0), "c": (0.6, 1.0), "trade": (0.1, 1.2), "none": (1.0, 1.0)}
    kmins = {"a": 1e5, "b": 3e5, "c": 2e5, "trade": 9e5, "none": 1e5}
    some = [
        racer(name, point={"kmin": kmins[name], "pmax": 0.1}, slowdown_small_p99=one, slowdown_large_p99=two)
        for name, (one, two) in costs.items()
    ]
    assert [each.name for each in BOTH.plateau(some)] == ["a", "b"]
    assert [each.name for each in BOTH.kept(some)] == ["a", "b", "c"]
    assert [each.name for each in BOTH.ranked(some)] == ["a", "b", "c", "trade", "none"]
    assert SPACE.ranges([each.point for each in BOTH.plateau(some)]) == {"kmin": (1e5, 3e5), "pmax": (0.1, 0.1)}
    assert middle_of(SPACE, some[:3]).name == "c"
    assert {each.name for each in BOTH.front(some)} == {"a", "trade"}


def test_the_race_gives_seeds_to_the_best_and_finds_them() -> None:
    """The worst third with more seeds, seeds used twice, or draws far from the leaders would each be seen."""
    ran: list[tuple[int, ...]] = []
    drawn: list[list[float]] = []
    noise = np.random.default_rng(3).normal(scale=0.05, size=100)

    def measure(points: Mapping[str, Point], seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """Best at Kmin of 200 KB; a seed adds the same to all settings."""
        ran.append(tuple(seeds))
        drawn.append([point["kmin"] for point in points.values()])
        found = {}
        for name, point in points.items():
            far = math.log(point["kmin"] / 2e5) ** 2
            one = racer(
                name, len(seeds), noise=noise[[seed - 1000 for seed in seeds]], slowdown_small_p99=0.5 * math.exp(far)
            )
            found[name] = one.found
        return found

    known = {"wide": {"kmin": 2.5e6, "pmax": 0.5}}
    found = race(SPACE, Rule((SMALL,)), measure, known=known, settings=20, seed=1)
    assert len(found) == 20
    first, more, last = (1001, 1002, 1003), (1004, 1005, 1006), (1007, 1008, 1009, 1010, 1011, 1012)
    assert ran == [first] * 4 + [more, last]
    assert [len(each) for each in drawn] == [8, 4, 4, 4, 6, 4]
    assert [each.seeds for each in found] == [12] * 4 + [6] * 2 + [3] * 14
    costs = {each.name: Rule((SMALL,)).cost(each) - noise[1 : each.seeds + 1].mean() for each in found}
    assert sorted(costs, key=lambda name: costs[name])[0] in {each.name for each in found[:4]}
    assert found[0].point["kmin"] == pytest.approx(2e5, rel=0.2)  # 0.07 of a range of 4.6 in logarithms
    assert any(each.point == known["wide"] for each in found[6:])
    even, *_, near = (np.median([abs(math.log(kmin / 2e5)) for kmin in kmins]) for kmins in drawn[:4])
    assert near < 0.6 < even  # 0.07 of a range of 4.6, about the leaders


def test_a_measure_that_no_run_has_is_refused() -> None:
    with pytest.raises(InputError, match="collective_time: no run has it"):
        race(
            SPACE, Rule((TIME,)), lambda points, seeds: {name: racer().found for name in points},
            known={}, settings=8, seed=1,
        )  # fmt: skip


def test_points_are_what_one_would_type() -> None:
    """Two digits within the bounds; a bound that is none itself is kept."""
    assert SPACE.point([0.63, 0.55]) == {"kmin": 180e3, "pmax": 0.13}
    odd = space_of({"kmin": ("123KB", "456KB")})
    assert [odd.point([share])["kmin"] for share in (0.0, 0.5, 1.0)] == [123e3, 290e3, 456e3]


@pytest.mark.parametrize(
    ("ratios", "worse", "better"),
    [
        ({"slowdown_small_p99": 0.5, "slowdown_large_p99": 1.04}, [], True),  # within 5 %
        ({"slowdown_small_p99": 0.5, "slowdown_large_p99": 1.1}, [LARGE], True),
        ({"slowdown_small_p99": 1.0, "slowdown_large_p99": 1.0}, [], False),
        ({"slowdown_small_p99": 0.5, "goodput": 0.9}, ["goodput"], True),
        ({"slowdown_small_p99": 0.5, "goodput": 1.2}, [], True),
        ({"slowdown_small_p99": 0.5, "unfinished": 1.1}, ["unfinished"], True),
    ],
)
def test_the_verdict_of_fresh_seeds(ratios: dict[str, float], worse: list[str], better: bool) -> None:
    """A mean that is worse by more than 5 % is named, sure or not; nothing is better inside its interval."""
    calm = np.array([-0.01, 0.01, 0.0, 0.0])
    one = racer(seeds=4, noise=calm, **ratios)
    assert on_fabric.worse(BOTH, one) == worse
    assert on_fabric.better(BOTH, one) is better
    wild = racer(seeds=4, noise=100 * calm, **ratios)
    assert on_fabric.worse(BOTH, wild) == worse
    assert on_fabric.better(BOTH, wild) is False


def test_the_middle_comes_first_and_an_end_of_a_range_last() -> None:
    """An answer at the edge of its range is not taken while there is another."""
    kmins = {"end": 1e4, "low": 1.2e4, "middle": 2e4, "best": 1e5}
    costs = {"end": 0.5, "low": 0.5, "middle": 0.51, "best": 0.5}
    some = [racer(name, point={"kmin": kmins[name], "pmax": 0.1}, slowdown_small_p99=costs[name]) for name in kmins]
    some.append(racer("worse", slowdown_small_p99=1.01))
    some.append(racer("trade", slowdown_small_p99=0.1, slowdown_large_p99=2.0))
    chosen = on_fabric._recommended(SPACE, BOTH, some)
    assert [each.name for each in chosen] == ["middle", "low", "best", "end"]
    assert [each.name for each in on_fabric._recommended(SPACE, BOTH, some[-2:])] == ["trade"]  # to say what it trades
    assert on_fabric._recommended(SPACE, BOTH, some[-2:-1]) == []


class Fresh:
    """Runs whose seeds differ by so much."""

    def __init__(self, scale: float, better: Mapping[str, float]) -> None:
        self.scale, self.better = scale, better
        self.ran: list[tuple[tuple[str, ...], tuple[int, ...]]] = []

    def measure(self, points: Mapping[str, Point], seeds: Sequence[int]) -> dict[str, np.ndarray]:
        self.ran.append((tuple(points), tuple(seeds)))
        noise = self.scale * np.array([1, -1, 0, 0])
        return {
            name: racer(name, 4, noise=noise, slowdown_small_p99=0.5, slowdown_large_p99=self.better[name]).found
            for name in points
        }


@pytest.mark.parametrize(("scale", "rounds"), [(0.01, 1), (0.15, 2), (1.0, 6)])
def test_fresh_seeds_run_until_the_intervals_are_narrow(scale: float, rounds: int) -> None:
    """Half an interval of at most 10 %: t of 3 degrees 3.18, of 7 2.36, times the error of the mean."""
    runs = Fresh(scale, {"s1": 1.0})
    found = on_fabric._until_narrow(BOTH, runs, {"s1": {"kmin": 1e5, "pmax": 0.1}}, 3000)  # type: ignore[arg-type]
    assert found["s1"].seeds == 4 * rounds
    assert set(on_fabric.wide(BOTH, found["s1"])) == ({SMALL, LARGE} if scale == 1 else set())
    assert [each for _, seeds in runs.ran for each in seeds] == list(range(3001, 3001 + 4 * rounds))


def test_a_setting_that_fresh_seeds_refuse_makes_room_for_the_next() -> None:
    """The yardsticks run once, and nothing runs beyond the first that is worse in nothing."""
    runs = Fresh(0.01, {"s1": 1.2, "s2": 1.0, "s3": 1.0, "paper": 1.0})
    chosen = [racer(name) for name in ("s1", "s2", "s3")]
    known = {"paper": {"kmin": 5e4, "pmax": 0.01}}
    found = on_fabric._proved(BOTH, runs, chosen, known)  # type: ignore[arg-type]
    assert [names for names, _ in runs.ran] == [("s1", "paper"), ("s2",)]
    assert [seeds[0] for _, seeds in runs.ran] == [2001, 3001]  # what refused one has chosen the next
    assert list(found) == ["s1", "paper", "s2"]


def test_few_pauses_are_as_good_as_none() -> None:
    """Ten at least count, in ratios and in costs: from 2 to 7 is nothing, from 7 to 70 is seven times as many."""
    few, many = racer(pfc_pauses=2 / 7), racer(pfc_pauses=10.0)
    assert few.ratios(0)["pfc_pauses"]["mean"] == pytest.approx(1)
    assert many.ratios(0)["pfc_pauses"]["mean"] == pytest.approx(7)
    assert Rule(("pfc_pauses",)).cost(few) == pytest.approx(0)
    assert Rule(("pfc_pauses",)).cost(many) == pytest.approx(math.log(7))


def test_more_goodput_is_better() -> None:
    """Its least ratio must be above 1, where of others the largest must be below."""
    rule, calm = Rule(("goodput",)), np.array([-0.01, 0.01, 0.0, 0.0])
    assert on_fabric.better(rule, racer(seeds=4, noise=calm, goodput=1.2))
    assert not on_fabric.better(rule, racer(seeds=4, noise=calm, goodput=0.8))
    assert not on_fabric.better(rule, racer(seeds=4, noise=40 * calm, goodput=1.2))


def test_a_point_takes_the_next_name_that_is_free() -> None:
    """A user's own setting may have one of the race's names; a point that is there is not added."""
    points = {"present": {"g": 0.1}, "s2": {"g": 0.2}}
    racing._add(points, {"g": 0.3})
    racing._add(points, {"g": 0.2})
    assert points == {"present": {"g": 0.1}, "s2": {"g": 0.2}, "s3": {"g": 0.3}}
