"""Runs in parts, runs that go on, and what is made of their arrays, in NumPy against the same steps one by one."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde.adaptive import PASSED
from fluidcc.dde.stepping import Clock
from fluidcc.engines.fluid import adaptive_run, engine, metrics, run
from fluidcc.engines.fluid.classes import ClassNetwork, system_of
from fluidcc.engines.fluid.engine import Continued, Outcome, OutgrownError
from fluidcc.engines.fluid.lossless import LosslessNetwork
from fluidcc.engines.fluid.network import Network, columns_of
from fluidcc.engines.fluid.plan import Plan, plan_of
from fluidcc.engines.fluid.queues import QueueNetwork
from fluidcc.engines.fluid.running_statistics import Summary
from fluidcc.engines.fluid.state import Lagged
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


def two(flow: Any = None, **options: Any) -> tuple[Network, Plan]:
    made = fc.incast(2, scheme=fc.DCQCN(feedback_delay=None), rate="10Gbps", initial_rate="8Gbps")
    flows = tuple(dataclasses.replace(each, **(flow or {})) for each in made.flows)
    network = plain_network(dataclasses.replace(made, flows=flows))
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


@pytest.mark.parametrize(("dtype", "double"), [("float64", True), ("float32", False)])
def test_all_parts_of_a_run_are_in_its_precision(
    plain: None, dtype: str, double: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(engine, "our_settings", lambda double: asked.append(double) or contextlib.nullcontext())
    network, made = two(dtype=dtype, samples=2)
    engine.execute(network, made)
    going = Continued(network, made)
    going.window(2)
    going.perturb(0.1)
    going.change(network)
    going.begin_at(going.state)
    assert len(asked) >= 6
    assert set(asked) == {double}


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


def test_a_run_to_a_tolerance_measures_what_small_steps_do() -> None:
    """Means over the window, extremes and samples, of a run in two parts, of which the first has five attempts.

    An attempt more than was asked for is not made; a point that is lost has no numbers, its neighbour has.
    """
    network, made = two({"access_delay": "6us"}, samples=10, window=("1us", "20us"))
    made = dataclasses.replace(made, rtol=1e-6)
    numbers = adaptive_run.numbers_of(made)
    static: dict[str, Any] = {"points": 1, "depth": 256, "room": made.room, "full": True}
    progress = adaptive_run.begin(network, numbers, **static)
    assert progress.sums.queue_min.item() == np.inf
    part, _ = adaptive_run.proceed(network, numbers, progress, np.int32(5), **static)
    assert part.steps.turn == 5
    _, whole = adaptive_run.proceed(network, numbers, part, np.int32(400), **static)
    run = Run(network, 0.1e-6, depth=2048)
    states = run.steps(200)
    queue = queues(states)[:, 0]
    inside = queue[10:]
    mean = np.trapezoid(inside) / 190
    found = whole.summary
    assert found.queue_mean.item() == pytest.approx(mean, rel=1e-3)
    assert found.queue_std.item() == pytest.approx(np.sqrt(np.trapezoid((inside - mean) ** 2) / 190), rel=1e-3)
    assert found.queue_max.item() == pytest.approx(inside.max(), rel=1e-3)
    assert found.queue_max_whole_run.item() == pytest.approx(queue.max(), rel=1e-3)
    assert found.queue_min.item() == pytest.approx(inside.min(), rel=1e-3)
    rates = np.array([run.system.rates(each.y)[:, 0] for each in states[10:]])
    np.testing.assert_allclose(found.rate_mean, np.trapezoid(rates, axis=0)[:, None] / 190, rtol=1e-3)
    idle = (states[-1].z.idle - states[10].z.idle).item()
    used = 1.0 - idle / (network.capacity.item() * 19e-6)
    assert 0.1 < found.utilisation.item() < 0.99
    assert found.utilisation.item() == pytest.approx(used, abs=1e-3)
    np.testing.assert_allclose(whole.samples["queue"][:, 0, 0], queue[::20], rtol=2e-3, atol=1.0)
    np.testing.assert_allclose(whole.samples["rate"][:, 0, 0], whole.samples["pacing_rate"][:, 0, 0])
    lost = part._replace(steps=part.steps._replace(time=np.array([np.inf])))
    _, gone = adaptive_run.proceed(network, numbers, lost, np.int32(10), **static)
    for name in ("queue_mean", "rate_mean", "utilisation"):
        assert np.isnan(getattr(gone.summary, name)).all()


@pytest.mark.parametrize("behind", [0.0, 1e-6])
def test_an_instant_that_is_there_is_stopped_at_no_more(behind: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that opens as the run begins, or as the step does, to rounding, makes no step of no length."""
    network, made = two(window=("0us", "20us") if not behind else ("1us", "20us"))
    numbers = adaptive_run.numbers_of(dataclasses.replace(made, rtol=1e-4))
    static: dict[str, Any] = {"points": 1, "depth": 64, "room": made.room, "full": False}
    progress = adaptive_run.begin(network, numbers, **static)
    steps = progress.steps._replace(time=np.array([behind * (1.0 - PASSED)]))
    asked: list[float] = []

    def attempt(self: Any, steps: Any, ahead: Any) -> Any:
        asked.append(ahead.item())
        return steps._replace(time=ahead, turn=steps.turn + 1), None

    monkeypatch.setattr(adaptive_run.Adaptive, "attempt", attempt)
    monkeypatch.setattr(adaptive_run, "_observe", lambda system, numbers, sums, step, steps: sums)
    monkeypatch.setattr(adaptive_run, "_sample", lambda system, numbers, now, *rest: (now.sampled, now.samples))
    adaptive_run.proceed(network, numbers, progress._replace(steps=steps), np.int32(50), **static)
    starts = [] if behind else [float(np.ravel(network.arrival_lag)[0])]
    assert asked == pytest.approx([*(at for at in starts if at > behind), 20e-6], rel=1e-9)


def test_what_is_short_of_an_instant_by_rounding_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter for rounding, which halves and quarters are exact with: at 3/4 of an instant it is just there."""
    monkeypatch.setattr(adaptive_run, "PASSED", 0.25)
    (_, _, _), seen = adaptive(monkeypatch, [7.8, 7.875], [False])
    assert len(seen["attempts"]) == 2
    network, made = two()
    numbers = adaptive_run.numbers_of(dataclasses.replace(made, rtol=1e-4))
    numbers = numbers._replace(opens=np.float64(1.0), closes=np.float64(1.5), end=np.float64(2.0))
    static: dict[str, Any] = {"points": 1, "depth": 64, "room": made.room, "full": False}
    progress = adaptive_run.begin(network, numbers, **static)
    asked: list[float] = []

    def attempt(self: Any, steps: Any, ahead: Any) -> Any:
        asked.append(ahead.item())
        return steps._replace(time=0.75 * ahead, turn=steps.turn + 1), None

    monkeypatch.setattr(adaptive_run.Adaptive, "attempt", attempt)
    monkeypatch.setattr(adaptive_run, "_observe", lambda system, numbers, sums, step, steps: sums)
    monkeypatch.setattr(adaptive_run, "_sample", lambda system, numbers, now, *rest: (now.sampled, now.samples))
    steps = progress.steps._replace(time=np.array([0.5]))
    adaptive_run.proceed(network, numbers, progress._replace(steps=steps), np.int32(20), **static)
    assert asked == [1.0, 1.5, 2.0]


# -- flows of two schemes ----------------------------------------------------------------------------------------------


class Noting:
    """A scheme's fluid side that notes what it is given, and answers by the number of its group."""

    sending = None

    def __init__(self, number: float, rows: int) -> None:
        self.number, self.state = number, number + np.arange(float(rows))[:, None]
        self.seen: dict[str, Any] = {}

    def rate(self, state: Any) -> Any:
        return self.state

    def window(self, parameters: Any, state: Any) -> Any:
        return 100.0 * self.state

    def feedback(self, parameters: Any, signals: Any) -> Any:
        self.seen["signals"] = signals
        return self.number

    def jump(self, parameters: Any, state: Any, progress: Any, observed: Any) -> Any:
        self.seen |= {"progress": progress, "observed": observed}
        return self.number

    def project(self, parameters: Any, state: Any, line_rate: Any) -> Any:
        self.seen["line_rate"] = line_rate
        return -self.number


def mixed() -> Any:
    """Flows 0 and 2 of DCTCP, 1 of HPCC with 12 bytes of telemetry; their sides note what they are given."""
    scenario = lot(fc.DCTCP(), header_bytes="100B", window_unit="payload")
    schemes = fc.DCTCP(), fc.HPCC(int_bytes=12), fc.DCTCP()
    flows = tuple(dataclasses.replace(f, scheme=each) for f, each in zip(scenario.flows, schemes, strict=True))
    made: Any = system_of(plain_network(dataclasses.replace(scenario, flows=flows)), 1, np.float64(1.0))
    y, z = made.start(np.float64)
    made.__dict__["_fluid"] = Noting(10.0, 2), Noting(20.0, 1)
    return made, y, z


def test_rates_and_windows_are_in_the_order_of_flows() -> None:
    made, y, z = mixed()
    assert [group.flows for group in made.network.groups] == [(0, 2), (1,)]
    assert made.rates(y).ravel().tolist() == [10.0, 20.0, 11.0]
    assert made._offered(y, z, np.float64(1.0)).ravel().tolist() == [10.0, 20.0, 11.0]
    np.testing.assert_allclose(made._windows(y).ravel(), [1000 * 1.1, 2000 * 1.112, 1100 * 1.1])
    made._fluid[1].window = None
    np.testing.assert_allclose(made._windows(y).ravel(), [1000 * 1.1, np.inf, 1100 * 1.1])
    made._fluid[0].sending = lambda parameters, state, dt: made._fluid[0].state * dt
    assert made._offered(y, z, np.float64(0.5)).ravel().tolist() == [5.0, 20.0, 5.5]


def test_a_scheme_s_jump_is_told_of_its_own_flows() -> None:
    """Bytes and packets of each, round trips with what its path's queues add; who has no jump is projected."""
    made, y, z = mixed()
    y = y._replace(sent=column(1, 2, 3))
    z = z._replace(
        acked=column(4, 5, 6), newly=column(7, 8, 9), wait=column(1, 2, 3, 4), wait_growth=column(1, 0, 0, -5)
    )
    states = made._jumped(y, z, Lagged((30.0, 40.0), None, None), np.float64(0.5))
    assert states == (10.0, 20.0)
    first, second = (side.seen["progress"] for side in made._fluid)
    for progress, flows in ((first, [0, 2]), (second, [1])):
        for name, start in (("sent", 1.0), ("acked", 4.0), ("newly", 7.0)):
            assert getattr(progress, name).ravel().tolist() == [start + flow for flow in flows]
        assert progress.dt == 0.5
        assert progress.packet.ravel().tolist() == [1000.0]
    assert (first.wire_packet.ravel().tolist(), second.wire_packet.ravel().tolist()) == ([1100.0, 1100.0], [1112.0])
    assert first.own[..., 0].tolist() == [[1, 1], [1, 0]]
    own = np.ravel(made.network.own_lag)
    np.testing.assert_allclose(first.rtt.ravel(), [own[0] + 1 + 1 + 2, own[2] + 0], rtol=1e-12)
    np.testing.assert_allclose(second.rtt.ravel(), [own[1] + 3], rtol=1e-12)
    assert [side.seen["observed"] for side in made._fluid] == [30.0, 40.0]
    made._fluid[0].jump = None
    assert made._jumped(y, z, Lagged((30.0, 40.0), None, None)) == (-10.0, 20.0)


def test_a_scheme_sees_marks_rates_and_telemetry_of_its_own_flows() -> None:
    """Each second half of what is read of bytes sent is their slope, the rate."""
    made, _, _ = mixed()
    hops = sum(map(len, made.network.paths))
    queue = column(*[20e3] * 4)
    own, telemetry = column(1, 2, 3, 4, 5, 6), np.arange(3.0 * hops)[:, None]
    found = made.feedback((queue, own, telemetry))
    assert found.schemes == (10.0, 20.0)
    assert (found.arrivals, found.queues) == (None, None)
    first, second = (side.seen["signals"] for side in made._fluid)
    marks = made._marking(queue).ravel()
    views = [made.network.flows[flow][0] for flow in range(3)]
    np.testing.assert_allclose(first[0].ravel(), marks[[views[0], views[2]]])
    np.testing.assert_allclose(second[0].ravel(), marks[[views[1]]])
    assert (first[1].ravel().tolist(), second[1].ravel().tolist()) == ([4.0, 6.0], [5.0])
    assert (first[2].ravel().tolist(), second[2].ravel().tolist()) == ([1100.0, 1100.0], [1112.0])
    assert second.telemetry.queue[..., 0].tolist() == [[2]]
