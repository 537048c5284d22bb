"""Plans of fluid runs and what is made of their outcomes, by hand; nothing is compiled."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.engines.fluid import plan, run
from fluidcc.engines.fluid.network import answer_delay, network_of
from fluidcc.errors import InputError
from fluidcc.scenario.model import resolve

PLAN = plan.Plan(
    dt=0.5, stride=3, room=9, steps=21, first=6, last=20, window=(3.0, 10.0), every=2, thin=1, depth=16, allowance=7.0,
    aligned=False, method="heun", dtype="float64", rtol=1e-4, estimates=True,
)  # fmt: skip


def network(**values: Any) -> Any:
    known = {
        "queues": 3, "links": 3, "tracked": False, "flows": [(0, (0,)), (0, (0, 1))], "ingress": None,
        "priorities": (0.0,), "groups": [],
    }  # fmt: skip
    return SimpleNamespace(**{**known, **values})


def test_a_plan_s_own_numbers() -> None:
    assert (PLAN.samples, PLAN.lag_limit) == (8, 6.5)
    half, twice = PLAN.halved(), PLAN.doubled()
    assert (half.dt, half.stride, half.steps, half.first, half.last) == (0.25, 6, 42, 12, 40)
    assert (twice.dt, twice.stride, twice.steps, twice.first, twice.last) == (1.0, 2, 11, 3, 10)
    other = PLAN.to_tolerance(10.0)
    assert (other.rtol, other.estimates, other.dt) == (pytest.approx(1e-3), False, 0.5)


@pytest.mark.parametrize(
    ("values", "doubles"),
    [({}, True), ({"first": 7}, False), ({"last": 21}, False), ({"coarsens": False}, False)],
)
def test_a_step_doubles_where_lags_and_window_do(values: dict[str, Any], doubles: bool) -> None:
    assert dataclasses.replace(PLAN, **values).doubles is doubles


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ({}, 3 + 2),
        ({"tracked": True}, 9 + 2),
        ({"priorities": (0.0, 1.0), "tracked": True, "queues": 6}, 18 + 2 + 12 + 9),
        ({"ingress": SimpleNamespace(hops=(0, 1, 1), count=2)}, 18 + 3 + 2 + 2),
    ],
)
def test_rows_that_are_remembered(values: dict[str, Any], rows: int) -> None:
    given = network(**values)
    assert plan.remembered_rows(given) == rows
    assert plan.history_bytes(given, PLAN, 5) == 16 * rows * 4 * 8 * 5
    single = dataclasses.replace(PLAN, aligned=True, dtype="float32")
    assert plan.history_bytes(given, single) == 16 * rows * 4


@pytest.mark.parametrize(
    ("kmin", "kmax", "jumps"), [(10.0, 59.0, True), (10.0, 60.0, False), (np.inf, np.inf, False), (0.0, 0.0, True)]
)
def test_a_queue_crosses_a_ramp_in_a_step_if_it_fills_as_much(kmin: float, kmax: float, jumps: bool) -> None:
    """100 bytes a second, for half a second; one of two links is enough."""
    given = SimpleNamespace(kmin=[0.0, kmin], kmax=[1e9, kmax], capacity=[100.0, 100.0])
    assert plan._jumps(given, 0.5) is jumps  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("window", "steps"),
    [
        ((2.0, 4.0), (4, 8)),
        ((2.2, 3.8), (4, 8)),
        ((0.0, 10.2), (0, 20)),
        ((0.0, 10.2 * (1 + 1e-10)), (0, 20)),  # rounding
        ((3.9, 4.1), (7, 8)),  # a step at least
        ((0.0, 0.4), (0, 1)),
    ],
)
def test_a_window_is_of_whole_steps(window: tuple[float, float], steps: tuple[int, int]) -> None:
    assert plan._window_steps(window, 10.2, 0.5, 20) == steps


@pytest.mark.parametrize("window", [(-0.1, 4.0), (4.0, 4.0), (5.0, 4.0), (0.0, 10.3)])
def test_a_window_outside_the_run_is_refused(window: tuple[float, float]) -> None:
    with pytest.raises(InputError, match=r"window: .* does not lie inside"):
        plan._window_steps(window, 10.2, 0.5, 20)


def test_lags_are_those_of_marks_the_way_and_flow_control() -> None:
    given = network(marking_lag=np.array([[1.0, 2.0]]), own_lag=None, arrival_lag=np.array([3.0]))
    assert plan._lags(given) == [1.0, 2.0, 3.0]
    given.ingress = SimpleNamespace(delay=np.array([4.0]), hop_lag=np.array([[5.0]]), ack_lag=np.array([6.0]))
    assert plan._lags(given) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def groups(monkeypatch: pytest.MonkeyPatch, **rules: Any) -> list[Any]:
    """Two groups whose fluid sides have rules, by the group's number."""
    monkeypatch.setattr(plan, "fluid_of", lambda k: SimpleNamespace(**{name: rule(k) for name, rule in rules.items()}))
    monkeypatch.setattr(plan, "needs", lambda k: {"delay"} if k == 1 else set())
    return [SimpleNamespace(parameters=k, line_rate=10.0 + k, flows=flows) for k, flows in ((0, (0, 2)), (1, (1,)))]


def test_the_longest_wait_is_all_windows_in_flight_at_the_slowest_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of 100 and 400 bytes, of 2, 3 and 4 flows; a quarter more, and for each queue of the longest path."""
    largest = [lambda p: np.array([[90.0, 100.0]]), lambda p: 400.0]
    given = network(
        groups=groups(monkeypatch, largest_window=lambda k: largest[k]), capacity=np.array([[50.0], [20.0]]),
        multiplicity=np.array([[2.0], [3.0], [4.0]]), flows=[(0, (0,)), (0, (0, 1)), (0, (1,))],
        packet=np.array([1.5]), window_packet=np.array([1.0]),
    )  # fmt: skip
    assert plan._longest_wait(given) == pytest.approx(1.25 * 2 * 1.5 * (2 * 100 + 3 * 400 + 4 * 100) / 20.0)
    given.groups = groups(monkeypatch, largest_window=lambda k: None if k else largest[0])
    assert plan._longest_wait(given) == 4e-3


def test_the_longest_interval_is_that_of_who_compares_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = [lambda p: 99.0, lambda p: np.array([3.0, np.nan, 5.0])]
    given = network(groups=groups(monkeypatch, longest_interval=lambda k: longest[k]))
    assert plan._longest_interval(given) == 5.0
    given.groups = groups(monkeypatch, longest_interval=lambda k: None)
    assert plan._longest_interval(given) == 0.0


@pytest.mark.parametrize(
    ("shortest", "scale", "step"), [(1.0, 2e-6, 0.5e-6), (0.25e-6, 2e-6, 0.25e-6), (1.0, 9.0, 1e-6)]
)
def test_a_step_is_a_quarter_of_the_fastest_time_scale(
    shortest: float, scale: float, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    scales = [lambda p, line: np.array([np.nan, 9 * scale]), lambda p, line: scale * line / 11.0]
    given = network(groups=groups(monkeypatch, time_scale=lambda k: scales[k]))
    assert plan._default_step(given, shortest) == step


# -- networks ----------------------------------------------------------------------------------------------------------


def made(*flows: dict[str, Any], **network: Any) -> Any:
    """Flows over one link, each with what it has besides."""
    link = fc.Link("10Gbps", "1us", source="s", target="t", marking=fc.RED("10KB", "40KB", 0.5))
    known = {"path": (0,), "line_rate": "10Gbps", "scheme": fc.DCQCN()}
    return network_of(resolve(fc.Scenario((link,), tuple(fc.Flow(**{**known, **each}) for each in flows), **network)))


@pytest.mark.parametrize(
    ("flows", "starts"),
    [
        ([{}, {}], False),
        ([{}, {"start": "1us"}], True),
        ([{"size": "1MB"}, {"after": (0,)}], True),  # also if it begins at the end itself
        ([{"size": "1MB"}, {}], False),
    ],
)
def test_flows_that_begin_later_are_known(flows: list[dict[str, Any]], starts: bool) -> None:
    assert made(*flows).starts is starts


@pytest.mark.parametrize(
    ("flows", "one", "late"),
    [
        ([{}, {}], True, False),  # a fixed feedback delay is the lag of all
        ([{}, {"scheme": fc.DCQCN(feedback_delay="70us")}], False, False),
        ([{"scheme": fc.DCQCN(feedback_delay=None)}], False, True),
    ],
)
def test_one_lag_serves_all_that_is_seen_alike(flows: list[dict[str, Any]], one: bool, late: bool) -> None:
    found = made(*flows)
    assert (found.own_lag is None) is one
    assert (found.arrival_lag is not None) is late
    assert found.flows[0] == (0, (0,))
    assert len(found.paths) == (1 if one or late else 2)


INCAST = network_of(resolve(fc.incast(2, scheme=fc.DCQCN())))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"samples": 10}, (100, 50, 100, 10, 1, 1)),
        ({"samples": 30}, (100, 50, 100, 4, 1, 1)),  # the next one that divides the steps
        ({"samples": 10, "sample_interval": "5us"}, (100, 50, 100, 5, 2, 1)),
        ({"samples": 10, "sample_interval": "20us"}, (100, 50, 100, 10, 1, 2)),
        ({"samples": 10, "sample_interval": "4us"}, (100, 50, 100, 2, 5, 2)),
        ({"samples": 10, "window": "10us:40us"}, (100, 10, 40, 10, 1, 1)),
        ({"samples": 500}, (100, 50, 100, 1, 1, 1)),
    ],
)
def test_samples_are_on_the_grid_of_steps(options: dict[str, Any], expected: tuple[int, ...]) -> None:
    """A hundred steps of 1 us."""
    found = plan.plan_of(INCAST, until="100us", dt="1us", **options)
    assert found.dt == pytest.approx(1e-6)
    assert (found.steps, found.first, found.last, found.stride, found.every, found.thin) == expected
    assert found.room == options["samples"] * found.every + 1


@pytest.mark.parametrize(("most", "expected"), [(50, (2, 5, 3)), (49, (5, 2, 1))])
def test_samples_of_an_odd_spacing_fit_in_memory(
    most: int, expected: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each 6 us of 100, and ten for percentiles: each third of those of 2 us, or those of 5 if they were too many."""
    monkeypatch.setattr(plan, "_MOST_SAMPLES", most)
    found = plan.plan_of(INCAST, until="100us", dt="1us", samples=10, sample_interval="6us")
    assert (found.stride, found.every, found.thin) == expected


# -- runs --------------------------------------------------------------------------------------------------------------


def simulated(monkeypatch: pytest.MonkeyPatch, made: plan.Plan, waits: tuple[float, ...] = (), **options: Any) -> Any:
    """Plans that were executed, and what was then compared; each run takes a second to compile and two to run."""
    executed: list[Any] = []
    seen: dict[str, Any] = {"plans": [], "shares": []}
    left = [*waits, 0.0]

    def plan_of(network: Any, **given: Any) -> plan.Plan:
        seen["plans"].append(given)
        return dataclasses.replace(made, allowance=given.get("queueing_allowance", made.allowance))

    def execute(network: Any, plan: plan.Plan, **given: Any) -> Any:
        executed.append(plan)
        for share in (0.0, 1.0) if "report" in given else ():
            given["report"](share)
        means = np.array(options.get("means", [1.0, np.nan]))
        return SimpleNamespace(plan=plan, summary=SimpleNamespace(queue_mean=means)), 1.0, 2.0

    def compared(kind: str) -> Any:
        def compare(runs: Any, *rest: Any) -> Any:
            seen[kind] = [each.plan for each in runs], rest
            return kind

        return compare

    def bar(text: str, total: int, unit: str) -> Any:
        seen["total"] = total
        return contextlib.nullcontext(seen["shares"].append)

    names = {
        "network_of": lambda scenario: SimpleNamespace(packet=np.array([1000.0, 1062.0])), "plan_of": plan_of,
        "execute": execute, "_require_trace": lambda *given: None, "longest_wait": lambda *given: left.pop(0),
        "Bar": bar,
        "discretisation_error": compared("steps"), "tolerance_error": compared("tolerance"),
        "_summary": lambda scenario, network, plan, outcome, seconds, more: seen.update(more=more, seconds=seconds),
        "_trace": lambda *given: None,
    }  # fmt: skip
    for name, value in names.items():
        monkeypatch.setattr(run, name, value)
    run.simulate(fc.incast(1), "10s", estimate_error=options.get("estimate_error", True))
    return executed, seen


def test_errors_are_those_of_ten_times_and_a_tenth_of_the_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    executed, seen = simulated(monkeypatch, PLAN)
    assert [each.rtol for each in executed] == pytest.approx([1e-4, 1e-3, 1e-5])
    runs, rest = seen["tolerance"]
    assert [each.rtol for each in runs] == pytest.approx([1e-3, 1e-4, 1e-5])
    assert rest == (1062.0,)
    assert seen["more"] == {"discretisation_error": "tolerance", "compile_s": 1.0, "wall_s": 2.0}
    assert seen["seconds"] == 10.0


def test_errors_are_those_of_half_and_twice_the_step_or_half_and_a_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    for doubles, steps, reported in ((True, [1.0, 0.5, 0.25], 1), (False, [0.5, 0.25, 0.125], 0)):
        made = dataclasses.replace(PLAN, rtol=None, coarsens=doubles)
        _, seen = simulated(monkeypatch, made)
        runs, rest = seen["steps"]
        assert [each.dt for each in runs] == steps
        assert rest == (reported, 1062.0, "heun")
    executed, seen = simulated(monkeypatch, PLAN, estimate_error=False)
    assert len(executed) == 1
    assert seen["more"]["discretisation_error"] == run.UNKNOWN


@pytest.mark.parametrize(
    ("values", "estimate", "total", "parts"),
    [
        ({}, False, 21, [1]),
        ({}, True, 3 * 21, [1, 1, 1]),  # tolerances count as equal
        ({"rtol": None}, True, round(3.5 * 21), [1, 2, 0.5]),  # half the step takes twice as many, twice as long half
        ({"rtol": None, "coarsens": False}, True, 7 * 21, [1, 2, 4]),
        ({"rtol": None}, False, 21, [1]),
    ],
)
def test_progress_goes_through_all_runs_by_their_steps(
    values: dict[str, Any], estimate: bool, total: int, parts: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run goes on where the one before ended, and the last ends at the whole."""
    _, seen = simulated(monkeypatch, dataclasses.replace(PLAN, **values), estimate_error=estimate)
    ends = np.cumsum([0.0, *parts]) / sum(parts)
    assert seen["shares"] == pytest.approx([share for two in itertools.pairwise(ends) for share in two], abs=1e-12)
    assert seen["total"] == total


def test_a_run_whose_queues_are_longer_than_its_history_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """For twice of what was waited; just as long as is held is held."""
    executed, seen = simulated(monkeypatch, PLAN, (8.0, 20.0, 7.0), estimate_error=False)
    assert [each.allowance for each in executed] == [7.0, 16.0, 40.0]
    assert [each.get("queueing_allowance") for each in seen["plans"]] == [None, 16.0, 40.0]
    assert (seen["more"]["compile_s"], seen["more"]["wall_s"]) == (3.0, 2.0)
    executed, _ = simulated(monkeypatch, PLAN, (7.0,), estimate_error=False)
    assert len(executed) == 1


def test_a_tolerance_that_no_point_can_keep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a tolerance nothing is said of it."""
    with pytest.raises(InputError, match=r"rtol: 0\.0001 takes more steps"):
        simulated(monkeypatch, PLAN, means=[np.nan, np.nan])
    simulated(monkeypatch, dataclasses.replace(PLAN, rtol=None), means=[np.nan, np.nan])


def test_traces_that_do_not_fit_in_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice 8 bytes for each sample: of two signals of a queue, and of flows' two with what their scheme shows."""
    asked: list[Any] = []
    monkeypatch.setattr(run, "require", lambda needed, *rest: asked.append(needed))
    monkeypatch.setattr(run, "fluid_of", lambda k: SimpleNamespace(OBSERVABLES=[None] * k))
    parts = [SimpleNamespace(parameters=3, flows=(0, 1)), SimpleNamespace(parameters=0, flows=(2,))]
    run._require_trace(network(groups=parts), PLAN)
    assert asked == [2 * 8 * 9 * (2 * 3 + 2 * 5 + 1 * 2)]


def test_completion_takes_waits_of_the_path_and_the_answer_s_way() -> None:
    """Hops of flows follow each other; what has no end has no time."""
    link = fc.Link(rate="10Gbps", delay="1us")
    flows = tuple(
        fc.Flow(path=path, line_rate="10Gbps", size=size, scheme=fc.NoControl())
        for path, size in (((0, 1), "1MB"), ((1,), math.inf), ((1,), "2MB"))
    )
    scenario = resolve(fc.Scenario((link, link), flows))
    drain = np.array([[1.0], [2.0], [50.0], [4.0]])
    outcome = SimpleNamespace(drain=drain, finish=np.array([[10.0], [20.0], [30.0]]))
    found = run._completion_times(scenario, outcome, [0.5, 0.0, 8.0])  # pyright: ignore[reportArgumentType]
    ways = [answer_delay(scenario, flow) for flow in scenario.flows]
    assert found == pytest.approx([10 + 3 - 0.5 + ways[0], 30 + 4 - 8 + ways[2]], rel=1e-12)


def test_bytes_sent_are_what_the_link_could_have_less_what_it_did_not() -> None:
    """Each second of eight samples, 1.5 s apart; at the link's 1.25 GB/s less what was idle."""
    scenario = resolve(fc.incast(1, rate="10Gbps", scheme=fc.NoControl()))
    idle, queue = np.arange(8.0)[:, None, None] * 1e8, np.arange(8.0)[:, None, None]
    signals = {name: np.zeros((8, 1, 1)) for name in ("rate", "pacing_rate")}
    outcome: Any = SimpleNamespace(queue=queue, trace={"idle": idle, **signals})
    thin = dataclasses.replace(PLAN, thin=2)
    found = run._trace(scenario, network_of(scenario), thin, outcome, {"scheme": "none", "flows": 1})
    times = np.arange(0, 8, 2) * 1.5
    np.testing.assert_allclose(found["time"], times)
    np.testing.assert_allclose(found["sent"].values[:, 0], times * 1.25e9 - np.arange(0, 8, 2) * 1e8)
    np.testing.assert_allclose(found["queue"].values[:, 0], np.arange(0, 8, 2))
