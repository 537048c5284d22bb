"""Runs in parts, runs that go on, and what is made of their arrays, in NumPy against the same steps one by one."""

from __future__ import annotations

import dataclasses
import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde.stepping import Clock
from fluidcc.engines.fluid import adaptive_run, engine, metrics, run
from fluidcc.engines.fluid.classes import ClassNetwork, system_of
from fluidcc.engines.fluid.engine import Continued, Outcome, OutgrownError
from fluidcc.engines.fluid.lossless import LosslessNetwork
from fluidcc.engines.fluid.network import Network, columns_of
from fluidcc.engines.fluid.plan import Plan, plan_of
from fluidcc.engines.fluid.queues import QueueNetwork
from fluidcc.engines.fluid.running_statistics import Summary
from fluidcc.engines.fluid.windows import WindowNetwork
from fluidcc.scenario.model import resolve
from tests.engines.fluid.in_numpy import Run, plain_network, queues
from tests.engines.fluid.test_plain_networks import column, lot
from tests.engines.fluid.test_plain_plans import PLAN

pytestmark = pytest.mark.usefixtures("numpy_only")


class Held:
    """A compiled function that is none, and took some seconds."""

    def __init__(self, function: Any, seconds: float) -> None:
        self.function, self.seconds = function, seconds

    def __call__(self, *given: Any, **static: Any) -> Any:
        return self.function(*given, **static)

    def ready(self, *given: Any, **static: Any) -> tuple[Any, float]:
        return functools.partial(self.function, **static), self.seconds


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the engine's loops as they are."""
    monkeypatch.setattr(engine, "_begin", Held(engine.begin, 0.25))
    monkeypatch.setattr(engine, "_proceed", Held(engine.proceed, 0.5))
    monkeypatch.setattr(engine, "with_points", columns_of)


def two(**options: Any) -> tuple[Network, Plan]:
    network = plain_network(fc.incast(2, scheme=fc.DCQCN(feedback_delay=None), rate="10Gbps", initial_rate="8Gbps"))
    return network, plan_of(network, until="20us", dt="1us", queueing_allowance=100e-6, **options)


# -- runs in parts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("segments", [1, 3])
def test_parts_of_a_run_are_those_of_its_steps(plain: None, segments: int) -> None:
    """Samples each 2 us up to the horizon, none beyond; the window of steps 10 to 20; shares of the parts."""
    network, made = two(samples=10)
    assert (made.stride, made.room, made.samples) == (2, 11, 11)
    told: list[float] = []
    found, compile_s, wall_s = engine.execute(network, made, full=True, segments=segments, report=told.append)
    states = Run(network, made.dt, depth=made.depth)
    expected = states.steps(20)
    queue = queues(expected)
    assert queue[-1, 0] > 0
    np.testing.assert_allclose(found.queue[:, :, 0], queue[::2], rtol=1e-12)
    rates = np.array([states.system.rates(each.y)[:, 0] for each in expected[::2]])
    np.testing.assert_allclose(found.trace["pacing_rate"][..., 0], rates, rtol=1e-12)
    np.testing.assert_allclose(found.trace["rate"][..., 0], rates, rtol=1e-12)
    np.testing.assert_allclose(found.trace["idle"][:, 0, 0], [each.z.idle.item() for each in expected[::2]])
    np.testing.assert_allclose(found.summary.queue_mean[0, 0], np.trapezoid(queue[10:, 0]) / 10, rtol=1e-12)
    assert told == pytest.approx([(k + 1) / segments for k in range(segments)])
    assert compile_s == 0.75
    assert 0 <= wall_s < 60
    assert engine.execute(network, made)[0].trace == {}


def test_a_run_to_a_tolerance_keeps_the_samples_up_to_its_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    samples = {"queue": np.arange(9.0)[:, None, None], "rate": 10 + np.arange(9.0)[:, None, None]}

    def execute(network: Any, plan: Any, **options: Any) -> Any:
        given.update(options)
        return SimpleNamespace(summary="summary", samples=dict(samples)), 1.0, 2.0

    monkeypatch.setattr(adaptive_run, "execute", execute)
    found, *seconds = engine.execute(None, PLAN, points=3, full=True)  # pyright: ignore[reportArgumentType]
    assert (found.summary, seconds, given) == ("summary", [1.0, 2.0], {"points": 3, "full": True, "report": None})
    assert found.queue.ravel().tolist() == list(range(8))
    assert found.trace["rate"].ravel().tolist() == list(range(10, 18))
    assert list(found.trace) == ["rate"]


@pytest.mark.parametrize("points", [1, 2])
def test_the_longest_wait_is_that_along_the_longest_path(points: int) -> None:
    """Queues of 6, 20 and 12 bytes at 2, 10 and 4 bytes a second: 3, 2 and 3 s; classes count as their link."""
    longest = np.array([[6.0, 2.0], [20.0, 10.0], [12.0, 40.0]])[:, :points]
    summary: Any = SimpleNamespace(waited=None, queue_max_whole_run=longest)
    for capacity in (np.array([2.0, 10.0, 4.0]), column(2, 10, 4)):
        network: Any = SimpleNamespace(link_capacity=capacity, priorities=(0.0,), paths=((0, 1), (2,)))
        assert engine.longest_waits(network, summary).tolist() == [5.0, 10.0][:points]
        assert engine.longest_wait(network, summary) == [5.0, 10.0][points - 1]
        network = SimpleNamespace(link_capacity=capacity, priorities=(0.0, 1.0), paths=((1, 3), (5,)))
        assert engine.longest_waits(network, summary).tolist() == [5.0, 10.0][:points]
    summary = SimpleNamespace(waited=np.array([7.0, 9.0]))
    assert engine.longest_waits(network, summary).tolist() == [7.0, 9.0]


def test_what_outgrows_its_history_is_done_again_with_twice_of_what_it_waited() -> None:
    asked: list[float | None] = []

    def job(allowance: float | None) -> str:
        asked.append(allowance)
        if len(asked) < 3:
            raise OutgrownError(3.0 * len(asked))
        return "done"

    assert engine.with_room(job) == "done"
    assert asked == [None, 6.0, 12.0]
    asked[:] = [0.0, 0.0]
    assert engine.with_room(job, 5.0) == "done"
    assert asked[2:] == [5.0]


# -- runs that go on ---------------------------------------------------------------------------------------------------


def test_a_run_goes_on_where_it_was(plain: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten steps, six more rounded up to two blocks of four, and five: means between their ends, and each step's queue.

    A run observes a step before it takes it, so a window of ten steps is of the states of steps 0 to 9.
    """
    monkeypatch.setattr(engine, "_BLOCK", 4)
    network, made = two()
    states = Run(network, made.dt, depth=made.depth).steps(30)
    queue = queues(states)[:, 0]
    going = Continued(network, made)
    assert going.steps == 0
    mean = going.window(10).queue_mean.item()
    assert mean == pytest.approx(np.trapezoid(queue[:10]) / 9, rel=1e-12)
    assert going.steps == 10
    np.testing.assert_allclose(going.state.queue[0, 0], queue[10], rtol=1e-12)
    found, times = going.follow(6)
    np.testing.assert_allclose(times, 1e-6 * np.arange(10, 18), rtol=1e-12)
    np.testing.assert_allclose(found.queue.ravel(), queue[10:18], rtol=1e-12)
    np.testing.assert_allclose(found.summary.queue_mean.item(), np.trapezoid(queue[10:18]) / 7, rtol=1e-12)
    assert set(found.trace) >= {"rate", "pacing_rate", "idle"}
    assert going.window(5).queue_max.item() == pytest.approx(queue[18:23].max(), rel=1e-12)
    assert going.window(1).queue_max_whole_run.item() == pytest.approx(queue[:24].max(), rel=1e-12)
    assert going.steps == 24


def test_a_run_goes_on_with_other_numbers_from_another_state_or_disturbed(plain: None) -> None:
    network, made = two()
    going = Continued(network, made)
    going.window(10)
    queue = going.state.queue.item()
    going.perturb(0.25)
    assert going.state.queue.item() == pytest.approx(1.25 * queue, rel=1e-12)
    going.change(dataclasses.replace(network, capacity=2.0 * network.capacity))
    now = going.state
    going.window(1)
    sent = float(np.sum(QueueNetwork(network, 1, np.float64(1)).rates(now)))
    change = (sent - 2.0 * network.capacity.item()) * made.dt
    assert going.state.queue.item() == pytest.approx(1.25 * queue + change, rel=1e-4)
    going.begin_at(now._replace(queue=column(5e3)))
    assert going.state.queue.item() == 5e3
    assert set(going._progress.carry.history.ring[:, 0].ravel().tolist()) == {5e3}
    tracked = Continued(*_tracked())
    before = tracked.state.queue
    tracked.perturb(0.5)
    assert tracked.state.queue is before


def _tracked() -> tuple[Network, Plan]:
    network = plain_network(fc.incast(1, scheme="hpcc"))
    return network, plan_of(network, until="20us", dt="1us")


def test_a_wait_longer_than_the_history_is_not_gone_on_with(plain: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Just as long is held; a run that was refused has not gone on."""
    network, made = two()
    going = Continued(network, made)
    monkeypatch.setattr(engine, "longest_wait", lambda *given: made.allowance)
    going.window(2)
    monkeypatch.setattr(engine, "longest_wait", lambda *given: 1.01 * made.allowance)
    with pytest.raises(OutgrownError) as refused:
        going.window(3)
    assert refused.value.waited == 1.01 * made.allowance
    assert going.steps == 2


# -- steps of each point's own -----------------------------------------------------------------------------------------


def adaptive(
    monkeypatch: pytest.MonkeyPatch, reached: list[float], lost: list[bool], points: int = 1, depth: int = 256,
    record: int = 1 << 12,
) -> Any:  # fmt: skip
    """Runs whose parts end at given times of 10.5 s: outcome and seconds, and what was asked and told."""
    seen: dict[str, Any] = {"attempts": [], "depths": [], "told": []}
    ends, short = iter(reached), iter(lost)

    def part(*given: Any) -> Any:
        seen["attempts"].append(int(given[-1]))
        steps = SimpleNamespace(time=np.array([next(ends), 99.0]))
        return SimpleNamespace(steps=steps), SimpleNamespace(lost=np.array([False, seen["lost"]]))

    def first(*given: Any, **static: Any) -> Any:
        seen["depths"].append(static["depth"])
        seen["lost"] = next(short)
        return part, 1.0

    clock = iter(range(100))
    monkeypatch.setattr(adaptive_run, "_first", SimpleNamespace(ready=first))
    monkeypatch.setattr(adaptive_run, "_proceed", SimpleNamespace(ready=lambda *given, **static: (part, 0.125)))
    monkeypatch.setattr(adaptive_run.time, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(adaptive_run, "columns_of", lambda network, dtype: network)
    monkeypatch.setattr(adaptive_run, "history_bytes", lambda network, plan, points: record)
    monkeypatch.setattr(adaptive_run.jax.tree, "map", lambda function, outcome: outcome)
    made = dataclasses.replace(PLAN, depth=depth)
    found = adaptive_run.execute(None, made, points=points, report=seen["told"].append)  # pyright: ignore[reportArgumentType]
    return found, seen


def test_a_run_to_a_tolerance_goes_on_until_the_slowest_point_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds to compile, or to load, are none of the run's."""
    reached = [2.1, 8.4, 10.5 * (1 - 2e-13), 10.5 * (1 - 1e-14)]
    (_, compile_s, wall_s), seen = adaptive(monkeypatch, reached, [False])
    assert seen["attempts"] == [4096] * 4
    assert seen["told"] == pytest.approx([0.2, 0.8, 1.0, 1.0])
    assert (compile_s, wall_s) == (1.375, 1.0 - 0.375)


@pytest.mark.parametrize(("points", "attempts"), [(1, 4096), (1000, 1000), (100_000, 64)])
def test_parts_of_many_points_are_shorter(points: int, attempts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _, seen = adaptive(monkeypatch, [10.5], [False], points)
    assert seen["attempts"] == [attempts]


@pytest.mark.parametrize(
    ("lost", "depth", "record", "depths"),
    [
        ([False], 256, 1 << 12, [256]),
        ([True, False], 256, 1 << 12, [256, 1024]),
        ([True, True], 8192, 1 << 12, [8192, 4 * 8192]),  # 2^27 bytes are full
        ([True, True], 4096, 1 << 20, [4096, 4 * 4096]),  # any point may have 2^13 records
        ([True], 8192, 1 << 20, [8192]),
    ],
)
def test_a_history_that_was_too_short_is_made_four_times_as_long(
    lost: list[bool], depth: int, record: int, depths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One point that lost it is enough; as long as there is room for a record's bytes."""
    (_, compile_s, _), seen = adaptive(monkeypatch, [10.5] * 3, lost, depth=depth, record=record)
    assert seen["depths"] == depths
    assert compile_s == len(depths)


# -- metrics -----------------------------------------------------------------------------------------------------------


def outcome(queue: Any) -> Outcome:
    """Two links and two points, of which the second link is the fuller at the first point."""
    values = [np.array([[1.0, 8.0], [2.0, 4.0]]) + 10 * k for k in range(5)]
    rates, used = np.array([[3.0, 4.0], [5.0, 9.0]]), np.array([[0.1, 0.2], [0.3, 0.4]])
    summary = Summary(values[0], values[1], values[2], values[3], values[4], rates, used)
    return Outcome(summary, queue, {}, None, None)


@pytest.mark.parametrize(
    ("first", "last", "inside"),
    [
        (6, 20, slice(1, 4)),  # samples at 0, 6, 12 and 18 of the window's steps
        (7, 17, slice(2, 3)),
        (0, 5, slice(0, 1)),
        (7, 11, slice(2, 3)),  # there is none in it: the next
        (19, 20, slice(3, 4)),  # or the last
        (1, 18, slice(1, 4)),
    ],
)
def test_percentiles_are_those_of_samples_in_the_window(first: int, last: int, inside: slice) -> None:
    """Each second sample of those 3 steps apart counts."""
    queue = np.random.default_rng(3).random((8, 2, 2))
    made = dataclasses.replace(PLAN, first=first, last=last)
    found = metrics.queue_statistics(made, outcome(queue))
    for percent in (5, 50, 95, 99):
        np.testing.assert_allclose(found[f"p{percent}"], np.percentile(queue[::2][inside], percent, axis=0))
    for k, name in enumerate(("mean", "std", "min", "max", "max_whole_run")):
        assert found[name][0, 0] == 1.0 + 10 * k
    assert list(found) == ["mean", "std", "p5", "p50", "p95", "p99", "min", "max", "max_whole_run"]


def test_metrics_are_of_the_fuller_link_and_of_all_flows() -> None:
    """Classes of 2 and 3 flows, packets of 10 and 20 bytes on the wire, of which 8 are payload."""
    network: Any = SimpleNamespace(multiplicity=np.array([2.0, 3.0]), packet=np.array([10.0, 20.0]))
    found = metrics.metrics_of(network, PLAN, outcome(np.zeros((8, 2, 2))), 8.0)
    assert found["queue_bytes.mean"].tolist() == [2.0, 8.0]
    assert found["queue_bytes.max"].tolist() == [32.0, 38.0]
    assert found["utilisation"].tolist() == [0.3, 0.2]
    assert found["rate_gap_bytes_per_s"].tolist() == [2.0, 5.0]
    np.testing.assert_allclose(found["jain"], [21**2 / (5 * (18 + 75)), 35**2 / (5 * (32 + 243))])
    np.testing.assert_allclose(found["goodput_bytes_per_s"], [8 * (6 / 10 + 15 / 20), 8 * (8 / 10 + 27 / 20)])


@pytest.mark.parametrize("waits", [False, True])
def test_a_summary_is_of_the_first_point(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Payloads are 1000 of 1100 bytes; a flow that begins after the run is one that has not begun."""
    taken: list[Any] = []
    monkeypatch.setattr(run.schema, "summary", lambda *given: taken.append(given))
    monkeypatch.setattr(run, "_completion_times", lambda scenario, outcome, began: [sum(began)])
    scenario = resolve(lot(fc.NoControl(), header_bytes="100B"))
    starts = zip(scenario.flows, (0.0, 2.0, 3.0), strict=True)
    scenario = dataclasses.replace(scenario, flows=tuple(dataclasses.replace(f, start=s) for f, s in starts))
    network = plain_network(scenario)
    rates = np.array([[3.0, 4.0], [5.0, 9.0], [7.0, 1.0]])
    made = outcome(np.zeros((8, 2, 2)))
    made = made._replace(summary=made.summary._replace(rate_mean=rates))
    if waits:
        made = made._replace(began=np.array([[0.0, 1.0], [2.5, 1.0], [np.inf, 1.0]]))
    run._summary(scenario, network, PLAN, made, 2.5, {"wall_s": 7.0})
    _, _, links, values = taken[0]
    assert [each["utilisation"] for each in links] == [0.1, 0.3]
    assert [each["queue_bytes"]["max"] for each in links] == [31.0, 32.0]
    assert (values["flows"], values["until_s"], values["window_s"], values["wall_s"]) == (6, 2.5, (3.0, 10.0), 7.0)
    assert values["rate_bytes_per_s"] == [3.0, 5.0, 7.0]
    assert values["goodput_bytes_per_s"] == pytest.approx([3 / 1.1, 5 / 1.1, 7 / 1.1])
    assert values["began_s"] == ([0.0, 2.5, None] if waits else [0.0, 2.0, None])
    assert values["fct_s"] == [np.inf if waits else 5.0]
    assert values["rate_gap_bytes_per_s"] == 4.0
    half = dataclasses.replace(scenario, flows=(dataclasses.replace(scenario.flows[0], multiplicity=1.5),) * 3)
    run._summary(half, network, PLAN, made, 2.5, {})
    assert taken[1][3]["flows"] == 4.5


# -- systems -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        (fc.incast(1, scheme="dcqcn"), QueueNetwork),
        (fc.incast(1, scheme="hpcc"), WindowNetwork),
        (fc.incast(1, scheme="hpcc", classes=(fc.TrafficClass(), fc.TrafficClass())), ClassNetwork),
        (fc.incast(1, scheme=fc.ACC(), pfc=fc.PFC(xoff="100KB"), buffer="9MB"), LosslessNetwork),
    ],
)
def test_a_network_tracks_what_it_must(scenario: fc.Scenario, kind: type) -> None:
    assert type(system_of(plain_network(scenario), 1, np.float64(1.0))) is kind


def test_a_step_since_a_flow_began_sends_as_much_more() -> None:
    """Stretch by 1.5 and 2.5 steps what schemes pace by themselves, not the third's; without an order nothing is."""
    made: Any = system_of(plain_network(lot("hpcc")), 1, np.float64(1.0))
    y, z = made.start(np.float64)
    alone = made._offered(y, z, np.float64(1e-6))
    found = made._offered(y, z._replace(stretch=column(1.5, 2.5, 1.0)), np.float64(1e-6))
    np.testing.assert_allclose(found / alone, column(1.5, 2.5, 1.0), rtol=1e-14)
    assert (alone > 0).all()
    plainly: Any = system_of(plain_network(lot(fc.NoControl())), 1, np.float64(1.0))
    y, z = plainly.start(np.float64)
    rates = plainly.rates(y)
    assert np.ravel(plainly.pace(y, z)).tolist() == np.ravel(rates).tolist()
    stretched = plainly.pace(y, z._replace(stretch=column(1.5, 2.5, 1.0)))
    np.testing.assert_allclose(stretched / rates, column(1.5, 2.5, 1.0), rtol=1e-14)


@pytest.mark.parametrize(
    ("size", "start", "known"),
    [
        (np.inf, 0.0, None),
        (np.inf, 2e-6, [True, False, True]),
        ("1MB", 0.0, [True, True, False]),
        ("1MB", 2e-6, [True, False, False]),
    ],
)
def test_who_sends_is_asked_where_a_flow_begins_late_or_ends(size: Any, start: float, known: Any) -> None:
    """The second flow begins at 2 us, or all are there from the beginning; the third has ended."""
    scenario = lot(fc.NoControl())
    flows = tuple(dataclasses.replace(each, size=size, start=start * (i == 1)) for i, each in enumerate(scenario.flows))
    made: Any = system_of(plain_network(dataclasses.replace(scenario, flows=flows)), 1, np.float64(1.0))
    _, z = made.start(np.float64)
    z = z if z.finish is None else z._replace(finish=column(np.inf, np.inf, 0.5e-6))
    found = made.active(Clock(np.int32(1), np.float64(1e-6), np.float64(1e-6)), z)
    assert (None if found is None else np.broadcast_to(found, (3, 1)).ravel().tolist()) == known
