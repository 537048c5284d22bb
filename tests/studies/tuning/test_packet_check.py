"""The last word of packets, from arrays that are written here and an engine that only says what it was asked."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from fluidcc.engines.packet import run as packet
from fluidcc.studies.tuning import evaluate, packet_check
from fluidcc.studies.tuning.goal import SETTLING, Goal, Objective, goal_of
from fluidcc.studies.tuning.packet_check import Packets, contradictions, more_counted, packets, worse_than_present

USED = goal_of("utilisation", None, "utilisation>=0.9", True, 1.0)
SHORT = goal_of("queue_bytes.p99", None, "queue_bytes.p99<=100KB", True, 1.0)


def cases(name: str, values: list[float], errors: list[float] | None = None) -> Packets:
    """Means of some cases, and their errors, 0 if not given."""
    means = np.array(values)
    return Packets({name: means}, {name: np.zeros(len(means)) if errors is None else np.array(errors)}, {}, [])


def seeds(name: str, *rows: list[float]) -> Packets:
    """Values of each seed, case by case."""
    each = np.array(rows)
    return Packets({name: each.mean(axis=1)}, {name: np.zeros(len(rows))}, {name: each}, [])


# -- bounds in further cases -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "name", "sign", "scale"), [(USED, "utilisation", 1.0, 1.0), (SHORT, "queue_bytes.p99", -1.0, 1e5 / 0.9)]
)
@pytest.mark.parametrize(
    ("ours", "theirs", "error", "missed"),
    [
        (0.85, 0.95, 0.0, True),  # it misses what the present setting keeps
        (0.85, 0.80, 0.0, False),  # by less than that
        (0.75, 0.80, 0.0, True),  # by more
        (0.80, 0.80, 0.0, False),
        (0.95, 0.99, 0.0, False),  # it keeps the bound: worse than the present one is no fault
        (0.85, 0.95, 0.02, False),  # two errors of both together are 0.057
        (0.85, 0.95, 0.017, True),  # 0.048
        (0.85, 0.95, math.nan, True),
    ],
)
def test_a_bound_is_missed_where_the_present_setting_does_better(
    goal: Goal, name: str, sign: float, scale: float, ours: float, theirs: float, error: float, missed: bool
) -> None:
    """A queue stands for utilisation 0.9 mirrored: as far above its bound as that is below."""

    def of(value: float) -> Packets:
        at = value if sign > 0 else 2 * 0.9 - value
        return cases(name, [at * scale], [error * scale])

    found = worse_than_present(goal, of(ours), of(theirs), [{"burst": 16}])
    assert bool(found) is missed


def test_the_case_that_is_missed_most_is_named_with_both_values() -> None:
    found = cases("utilisation", [0.88, 0.70, 0.85])
    present = cases("utilisation", [0.95, 0.80, 0.60])
    (said,) = worse_than_present(USED, found, present, [{"burst": 1}, {"burst": 4, "begin": "line"}, {"burst": 16}])
    assert said == "utilisation>=0.9 is missed with bursts of 4; started at line: 0.7, present 0.8"
    found, present = cases("queue_bytes.p99", [250e3, 120e3]), cases("queue_bytes.p99", [90e3, 90e3])
    (said,) = worse_than_present(SHORT, found, present, [{"burst": 1}, {"burst": 4}])
    assert said == "queue_bytes.p99<=100KB is missed with bursts of 1: 250KB, present 90KB"


def test_without_a_present_setting_or_the_metric_nothing_is_worse() -> None:
    found = cases("utilisation", [0.5])
    assert worse_than_present(USED, found, None, [{}]) == []
    assert worse_than_present(USED, cases("jain", [0.5]), found, [{}]) == []


# -- bounds in the packets' own cases ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "value", "error", "kept"),
    [
        ("utilisation>=0.75", 0.75, 0.0, True),  # exactly
        ("utilisation>=0.75", 0.875, 0.125, True),  # by exactly its error
        ("utilisation>=0.75", 0.875, 0.126, False),
        ("utilisation>=0.75", 0.74, 0.0, False),
        ("utilisation<=0.75", 0.75, 0.0, True),
        ("utilisation<=0.75", 0.625, 0.125, True),
        ("utilisation<=0.75", 0.625, 0.126, False),
        ("utilisation<=0.75", 0.76, 0.0, False),
    ],
)
def test_a_bound_that_is_just_kept_is_kept(bound: str, value: float, error: float, kept: bool) -> None:
    goal = goal_of("jain", None, bound, True, 1.0)
    said = contradictions(goal, cases("utilisation", [value], [error]), None)
    how = "missed" if error == 0 else "kept by less than its error"
    assert said == [] if kept else said[0].startswith(f"{bound} is {how}: {value:g}")
    assert (" +- " in "".join(said)) == (not kept and error > 0)


def test_where_the_mean_counts_its_error_is_that_of_a_mean() -> None:
    """Two cases with errors of 0.03 and 0.04: their mean has 0.05/2, and keeps 0.725 by 0.03 but not by 0.02."""
    goal = Goal((Objective("jain"),), USED.constraints, worst=False)
    for spare, missed in ((0.03, False), (0.02, True)):
        found = cases("utilisation", [0.9 + spare + 0.1, 0.9 + spare - 0.1], [0.03, 0.04])
        assert bool(contradictions(goal, found, None)) is missed


def test_a_bound_without_a_value_is_missed_in_words() -> None:
    (said,) = contradictions(USED, cases("utilisation", [0.95, math.nan]), None)
    assert said == "utilisation>=0.9 is missed: it never comes to one"
    (said,) = contradictions(USED, cases("utilisation", [0.5, 0.3, 0.7]), None)
    assert "0.3" in said  # the worst case speaks


# -- an objective that is worse ----------------------------------------------------------------------------------


@pytest.mark.parametrize("worst", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs", "worse"),
    [
        ([[11.0, 12.0]], [[10.0, 11.0]], True),  # by one in each seed: no chance
        ([[10.0, 11.0]], [[10.0, 11.0]], False),
        ([[10.0, 11.0]], [[11.0, 12.0]], False),
        ([[13.0, 11.0]], [[10.0, 10.0]], False),  # 3 and 1: two errors are 2 x 1.41/1.41, the mean is 2
        ([[13.1, 11.1]], [[10.0, 10.0]], True),
        ([[12.0]], [[10.0]], True),  # one seed has no error to tell
        ([[10.0]], [[10.0]], False),
        ([[math.nan, 1.0]], [[10.0, 10.0]], True),
    ],
)
def test_worse_is_by_more_than_two_errors_seed_by_seed(
    ours: list[list[float]], theirs: list[list[float]], worse: bool, worst: bool
) -> None:
    goal = Goal((Objective("queue_bytes.p99"),), (), worst)
    one, other = (seeds("queue_bytes.p99", *rows) for rows in (ours, theirs))
    assert bool(contradictions(goal, one, other)) is worse
    assert contradictions(goal, one, None) == []


def test_the_worst_case_of_each_is_compared_or_the_mean_of_all() -> None:
    """Worst 10 against 9 is worse, though the mean of 5 and 10 is less than that of 9 and 9."""
    ours, theirs = seeds("queue_bytes.p99", [5.0], [10.0]), seeds("queue_bytes.p99", [9.0], [9.0])
    assert contradictions(Goal((Objective("queue_bytes.p99"),), (), True), ours, theirs)
    assert not contradictions(Goal((Objective("queue_bytes.p99"),), (), False), ours, theirs)


@pytest.mark.parametrize(
    ("ours", "theirs", "worse"), [(1.09, 1.0, False), (1.11, 1.0, True), (0.5, 1.0, False), (math.nan, 1.0, True)]
)
def test_a_settling_time_may_be_a_tenth_longer(ours: float, theirs: float, worse: bool) -> None:
    goal = Goal((Objective(SETTLING),), ())
    found, present = (
        Packets({SETTLING: np.array([value])}, {}, {SETTLING: np.full((1, 2), math.nan)}, [])
        for value in (ours, theirs)
    )
    assert bool(contradictions(goal, found, present)) is worse


def test_an_objective_is_not_held_to_a_setting_that_misses_a_bound() -> None:
    each = {"queue_bytes.p99": np.array([[50.0, 50.0]])}
    found = Packets({"utilisation": np.array([0.95])}, {}, each, [])
    idle, used = (
        Packets({"utilisation": np.array([value])}, {}, {"queue_bytes.p99": np.array([[1.0, 1.0]])}, [])
        for value in (0.5, 0.9)
    )
    goal = goal_of("queue_bytes.p99", None, "utilisation>=0.9", True, 1.0)
    assert contradictions(goal, found, idle) == []
    assert contradictions(goal, found, used) == ["queue_bytes.p99 is worse than the present setting's"]


@pytest.mark.parametrize(("metric", "word"), [("pfc_pauses", "more PAUSEs"), ("drops", "more packets dropped")])
def test_more_losses_than_at_present_speak_against_a_setting(metric: str, word: str) -> None:
    goal = Goal((Objective("queue_bytes.p99"),), ())
    (said,) = contradictions(goal, seeds(metric, [3.0, 5.0], [1.0, 1.0]), seeds(metric, [1.0, 1.0], [1.0, 1.0]))
    assert said == f"{word} than with the present setting: 4 a run, present 1"
    assert contradictions(goal, seeds(metric, [1.0, 1.0]), seeds(metric, [1.0, 1.0])) == []
    assert contradictions(goal, seeds(metric, [3.0, 5.0]), None) == []
    assert contradictions(goal, seeds(metric, [3.0, 5.0]), seeds("jain", [1.0, 1.0])) == []


@pytest.mark.parametrize(
    ("used", "present", "ours", "refused"),
    [
        (0.95, 100.0, 130.0, True),
        (0.5, 100.0, 130.0, False),  # the present setting misses a bound: to twice as many
        (0.5, 100.0, 199.0, False),
        (0.5, 100.0, 201.0, True),
        (0.5, 0.0, 1.0, True),  # twice none are none
    ],
)
def test_pauses_are_to_be_no_more_than_twice_those_of_a_setting_that_misses_a_bound(
    used: float, present: float, ours: float, refused: bool
) -> None:
    """They are said in any case."""
    goal = goal_of("queue_bytes.p99", None, "utilisation>=0.9", True, 1.0)

    def packets(count: float, share: float) -> Packets:
        each = {"pfc_pauses": np.array([[count, count]]), "queue_bytes.p99": np.array([[1.0, 1.0]])}
        return Packets({"utilisation": np.array([share]), "pfc_pauses": np.array([count])}, {}, each, [])

    found, start = packets(ours, 0.95), packets(present, used)
    assert any("more PAUSEs" in said for said in contradictions(goal, found, start)) is refused
    (said,) = more_counted(goal, found, start)
    assert said.endswith(f"{ours:.3g} a run, present {present:.3g}")


# -- running them ------------------------------------------------------------------------------------------------


class Asked:
    """Stand-in for the packet engine: what it was asked, in order; a run has a number for its case and its seed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, numbers: dict[tuple[int, int], float]) -> None:
        self.numbers = numbers
        self.jobs: list[tuple[int, int]] = []
        self.warm: list[Any] = []
        self.intervals: list[float] = []

        def times_of(scenario: Any, until: float, window: Any, interval: float) -> float:
            self.intervals.append(interval)
            return until

        def run_many(one: Any, jobs: Any, **_: Any) -> Any:
            place = SimpleNamespace(compute=lambda function, scenario, times, seed: (scenario.case, seed))
            for job in jobs:
                self.jobs.append(job)
                yield job, one(job, place)

        monkeypatch.setattr(packet, "times_of", times_of)
        monkeypatch.setattr(packet, "prepare", lambda scenario, times, seed: scenario)
        monkeypatch.setattr(packet, "warm_up", self.warm.append)
        monkeypatch.setattr(packet_check, "run_many", run_many)
        monkeypatch.setattr(packet_check, "_metrics", lambda scenario, trace: {"jain": numbers[trace]})
        monkeypatch.setattr(packet_check, "_settled", lambda scenario, runs: float(len(runs)) + scenario.case)


def scenario(case: int, size: float = 1000.0, flows: int = 2) -> Any:
    return SimpleNamespace(case=case, packet_size=size, flows=[None] * flows)


def test_means_and_standard_errors_are_those_of_the_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """1, 2 and 3 have mean 2 and deviation 1, whose root of three is the error; 4, 4 and 7: 5, and root of 3 too."""
    numbers = {(0, 5): 1.0, (0, 6): 2.0, (0, 7): 3.0, (1, 5): 4.0, (1, 6): 4.0, (1, 7): 7.0}
    asked = Asked(monkeypatch, numbers)
    found = packets([scenario(0), scenario(1)], [1e-3, 2e-3], None, [5, 6, 7])
    assert found.metrics["jain"].tolist() == [2.0, 5.0]
    assert found.errors["jain"].tolist() == pytest.approx([1 / math.sqrt(3), 1.0])
    assert found.each["jain"].tolist() == [[1.0, 2.0, 3.0], [4.0, 4.0, 7.0]]
    assert found.metrics[SETTLING].tolist() == [3.0, 4.0]
    assert found.traces == [[(0, 5), (0, 6), (0, 7)], [(1, 5), (1, 6), (1, 7)]]
    assert asked.intervals == [2.5e-6, 5e-6]  # 400 samples
    assert len(asked.warm) == 2


def test_two_seeds_have_an_error_and_one_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    Asked(monkeypatch, {(0, 1): 1.0, (0, 2): 3.0})
    found = packets([scenario(0, flows=1)], [1e-3], None, [1, 2])
    assert found.errors["jain"].tolist() == [1.0]
    assert SETTLING not in found.metrics  # of a flow alone
    assert np.isnan(packets([scenario(0)], [1e-3], None, [1]).errors["jain"]).tolist() == [True]


def test_the_longest_runs_come_first_and_what_is_done_not_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths by packets: 2 ms of 500 bytes are more than 3 ms of 1000."""
    numbers = {(case, seed): 1.0 for case in range(3) for seed in (1, 2)}
    asked = Asked(monkeypatch, numbers)
    done: Any = {(0, 2): (0, 2)}
    packets([scenario(0), scenario(1, 500.0), scenario(2)], [1e-3, 2e-3, 3e-3], None, [1, 2], done=done, dask="some")
    assert asked.jobs == [(1, 1), (1, 2), (2, 1), (2, 2), (0, 1)]
    assert sorted(done) == sorted(numbers)
    assert asked.warm == []  # workers compile for themselves


class Trace:
    """Numbers of a run, and of its flows."""

    def __init__(self, summary: dict[str, Any], **columns: Any) -> None:
        self.summary, self.columns = summary, columns

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]


def summary(*queues: float | None) -> dict[str, Any]:
    return {
        "queue_bytes": {"mean": 5.0, "p99": None},
        "jain": 0.5,
        "utilisation": 0.9,
        "rate_gap_bytes_per_s": None,
        "pfc_pauses": 3,
        "drops": 0,
        "goodput_bytes_per_s": [2.0, 10.0],
        "links": [{"queue_bytes": {"mean": queue}} for queue in queues],
    }


def test_a_runs_numbers_count_classes_and_settle_on_the_fullest_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "settled", lambda scenario, rates, link: 100.0 * link + rates)
    trace: Any = Trace(summary(1.0, None, 7.0), multiplicity=xr.DataArray([3.0, 1.0]), rate=0.25)
    found = packet_check._metrics(scenario(0), trace)
    assert found["goodput_bytes_per_s"] == 3 * 2.0 + 10.0
    assert found[SETTLING] == 200.25
    assert (found["queue_bytes.mean"], found["pfc_pauses"], found["drops"], found["jain"]) == (5.0, 3.0, 0.0, 0.5)
    assert math.isnan(found["queue_bytes.p99"])
    assert math.isnan(found["rate_gap_bytes_per_s"])


def test_rates_settle_as_the_mean_over_the_seeds_does(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(packet_check, "settled", lambda scenario, rates, link: seen.append((rates, link)) or 0.5)
    traces: Any = [
        Trace(summary(*queues), rate=xr.DataArray(rates, dims=("time", "flow")))
        for queues, rates in (((1.0, 2.0), [[1.0, 3.0], [5.0, 7.0]]), ((9.0, 2.0), [[3.0, 5.0], [9.0, 7.0]]))
    ]
    assert packet_check._settled(scenario(0), traces) == 0.5
    ((rates, link),) = seen
    assert rates.dims == ("time", "flow")
    assert rates.values.tolist() == [[2.0, 4.0], [7.0, 7.0]]
    assert link == 1  # of the first run
