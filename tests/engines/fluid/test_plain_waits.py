"""Waits of tracked bytes, queue by queue, and rows of what is remembered, in NumPy: against sums over all steps."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde.stepping import Clock
from fluidcc.engines.fluid import classes, completion, lossless
from fluidcc.engines.fluid.completion import sent_by
from fluidcc.engines.fluid.network import answer_delay, order_of, receipt_delay
from fluidcc.engines.fluid.state import Lagged, Memory, State
from fluidcc.engines.fluid.windows import WindowNetwork
from fluidcc.scenario.model import resolve
from tests.engines.fluid.in_numpy import Run, queues
from tests.engines.fluid.test_plain_networks import GIGABIT, column, lot, system, two_classes

pytestmark = pytest.mark.usefixtures("numpy_only")
DT = 1e-6


def test_waits_along_a_path_are_those_of_first_come_first_served() -> None:
    """A byte that came at s leaves at s + q(s)/C, back from the last queue to the first; to a picosecond.

    Also the lags of feedback: marks of a queue wait in it and in those after it, own rates in all, telemetry, which is
    stamped on leaving, in those after it.
    """
    scenario = lot("dctcp")
    rates = ("8Gbps", "4Gbps", "5Gbps")  # of one, two and three flows
    flows = tuple(
        dataclasses.replace(f, initial_rate=r, line_rate=r) for f, r in zip(scenario.flows, rates, strict=True)
    )
    run = Run(dataclasses.replace(scenario, flows=flows), DT)
    made: Any = run.system
    states = run.steps(110)
    long, capacity = queues(states), np.array([10, 20]) * GIGABIT
    times = DT * np.arange(111)
    lag = np.broadcast_to(run.network.marking_lag, (4, 1)).ravel()
    paths, first = run.network.paths, made._first_hop
    assert (paths, first) == (((0, 1), (0,), (1,)), (0, 2, 3))
    compared = np.zeros(4)
    for n in range(1, 111):
        z = states[n].z
        found = np.maximum(z.wait + z.wait_growth, 0.0).ravel()
        before = states[n - 1].z
        np.testing.assert_array_equal(z.wait, np.maximum(before.wait + before.wait_growth, 0.0))  # a step goes on
        for path, at in zip(paths, first, strict=True):
            later = 0.0  # [s]
            for k in reversed(range(len(path))):
                left, q = times[n] - lag[at + k] - later, path[k]
                came = np.interp(left, times + long[:, q] / capacity[q], times) if left > 0 else left
                begin = int(came / DT + 1e-9)
                # Bytes that find a queue as it begins to fill are another rule's (`search`).
                if came <= 0 or long[begin, q] > 0 or long[begin + 1, q] <= 0:
                    assert found[at + k] == pytest.approx(left - came, abs=1e-12)
                    compared[at + k] += left > came
                later += found[at + k]
        w = found
        marks, own, telemetry = made.lags(states[n].y, z, 1.0)
        np.testing.assert_allclose(marks.ravel(), lag + np.array([w[0] + w[1], w[1], w[2], w[3]]), rtol=1e-9)
        ways = np.ravel(run.network.own_lag)
        np.testing.assert_allclose(own.ravel(), ways + np.array([w[0] + w[1], w[2], w[3]]), rtol=1e-9)
        stamped = np.broadcast_to(telemetry, (12, 1)).ravel()
        np.testing.assert_allclose(stamped[:4], lag + np.array([w[1], 0.0, 0.0, 0.0]), rtol=1e-9)
        np.testing.assert_array_equal(stamped, np.tile(stamped[:4], 3))
        np.testing.assert_allclose(made._round_trips(z).ravel(), ways + np.array([w[0] + w[1], w[2], w[3]]), rtol=1e-9)
    assert (compared > 10).all()


def test_where_a_queue_begins_to_fill() -> None:
    ends = SimpleNamespace(at=lambda n, record, rows: (column(0.0, 0.0, 1.0, -1.0), column(1.0, 0.0, 2.0, 2.0)))
    found = WindowNetwork._filling(ends, np.int32(3), (0, 1))  # type: ignore[arg-type]
    assert found(np.int32(-1)).ravel().tolist() == [True, False, False, True]


def test_delays_of_packets_where_one_lag_serves_all() -> None:
    """A fixed feedback delay reads queues themselves, not rows of views."""
    made = system(fc.incast(3, scheme="timely", rate="10Gbps"))
    earlier, group = made._earlier, made.network.groups[0]
    before = column(1e3, 2e3, 3e3)
    present, past = earlier.waits(group, column(7e3), before)
    np.testing.assert_allclose(np.ravel(present), 7e3 / (10 * GIGABIT), rtol=1e-12)
    np.testing.assert_allclose(np.ravel(past), before.ravel() / (10 * GIGABIT), rtol=1e-12)


def test_rows_of_classes_are_those_remembered() -> None:
    """Telemetry reads the link's queue, output and arrivals, and then the class's own queue and output."""
    made = system(two_classes())
    y, _ = made.start(np.float64)
    y = y._replace(
        queue=column(1.0, 2.0, 4.0), traffic=column(10.0, 20.0, 40.0, 100.0, 200.0, 400.0),
        came=column(1001.0, 1002.0, 1004.0), sent=column(5.0, 6.0, 7.0),
    )  # fmt: skip
    kept = made.remembered(y).ravel()
    read = kept[list(made._telemetry_rows)]
    hops = len(made._path_queues)
    assert read.tolist() == [*[7.0] * hops, *[70.0] * hops, *[700.0] * hops, *[1.0, 2.0, 4.0], *[10.0, 20.0, 40.0]]
    assert kept[made._gone_row : made._gone_row + 3].tolist() == [1000.0] * 3
    assert kept[made._gone_row + 3 : made._gone_row + 6].tolist() == [1001.0, 1002.0, 1004.0]
    telemetry = made._telemetry(read[:, None], (0, 1, 2))
    assert telemetry.queue[0, :, 0].tolist() == [7.0] * 3
    assert telemetry.class_queue[0, :, 0].tolist() == [1.0, 2.0, 4.0]
    assert telemetry.class_output[0, :, 0].tolist() == [10.0, 20.0, 40.0]
    assert telemetry.arriving[0, :, 0].tolist() == [700.0] * 3


def test_marks_on_departure_are_those_of_what_is_left_behind() -> None:
    """A queue that marks as packets join is read at their arrival, one that marks as they leave as of telemetry."""
    scenario = lot("hpcc")
    leaving = dataclasses.replace(scenario.links[1], marking=fc.RED("20KB", "60KB", 0.6, mark_on="departure"))
    made = system(dataclasses.replace(scenario, links=(scenario.links[0], leaving)))
    joined, telemetry = column(1, 2, 3, 4), np.arange(10.0, 22.0)[:, None]
    assert made._marked_by(joined, telemetry).ravel().tolist() == [1.0, 11.0, 3.0, 13.0]
    assert system(scenario)._marked_by(joined, telemetry) is joined


def test_of_several_classes_each_is_marked_on_departure_by_its_own_queue() -> None:
    """Telemetry has the three links' queues first, and the class's own as the fourth of five parts."""
    scenario = two_classes()
    leaving = fc.RED("20KB", "60KB", 0.6, mark_on="departure")
    links = tuple(dataclasses.replace(link, marking=leaving) for link in scenario.links)
    made = system(dataclasses.replace(scenario, links=links))
    telemetry = np.arange(100.0, 115.0)[:, None]
    assert made._marked_by(column(1, 2, 3), telemetry).ravel().tolist() == [109.0, 110.0, 111.0]


@pytest.mark.parametrize("scheme", [fc.HPCC(feedback_delay="12us"), fc.DCTCP(feedback_delay="12us")])
def test_bytes_are_kept_where_nothing_travels(scheme: Any) -> None:
    """Without ways to the queue, it holds what was sent and has not left; a link sends what it did not stand idle."""
    run = Run(fc.incast(3, scheme=scheme, rate="10Gbps", initial_rate="9Gbps", line_rate="10Gbps"), DT)
    assert run.network.arrival_lag is None
    states = run.steps(60)
    for n, carry in enumerate(states):
        sent = carry.y.sent.sum()
        left = 10 * GIGABIT * DT * n - carry.z.idle[0, 0]
        assert carry.y.queue[0, 0] == pytest.approx(sent - left, abs=1e-3)
        if n:
            output, arriving = carry.y.traffic.ravel()
            assert arriving == pytest.approx(run.system.sending(SimpleNamespace(step=n, dt=DT), carry.y, carry.z).sum())
            assert output == (10 * GIGABIT if carry.y.queue[0, 0] > 0 else min(arriving, 10 * GIGABIT))
    assert queues(states).max() > 1e4


def test_what_a_paused_link_does_not_send_it_might_have() -> None:
    """Idle bytes are those of its capacity less what has left, at each step."""
    scenario = fc.incast(
        2, scheme=fc.ACC(), rate="10Gbps", line_rate="10Gbps", delay="1us", marking=None, buffer="9MB",
        pfc=fc.PFC(xoff="400KB", xon_gap="20KB"), start=["0", "7us"],
    )  # fmt: skip
    for n, carry in enumerate(Run(scenario, 0.5e-6).steps(40)):
        assert carry.z.idle[0, 0] == pytest.approx(10 * GIGABIT * 0.5e-6 * n - carry.y.counts.left[:2].sum(), abs=1e-3)


@pytest.mark.parametrize(("what", "rule"), [("receipt", receipt_delay), ("answer", answer_delay)])
def test_ends_are_known_by_their_ways(what: str, rule: Any) -> None:
    base = fc.incast(3, scheme=fc.NoControl(), size="10KB", header_bytes="50B")
    flows = (*base.flows[:2], dataclasses.replace(base.flows[2], after=(1, 0), after_what=what))
    scenario = resolve(dataclasses.replace(base, flows=flows))
    made = order_of(scenario)
    assert made is not None
    assert (made.before, made.queues, made.waits) == ((1, 0), (True, True), ((), (), (0, 1)))
    np.testing.assert_allclose(made.way, [float(rule(scenario, scenario.flows[1]))] * 2, rtol=1e-12)


def test_what_is_there_at_the_start() -> None:
    """A row for each flow, and for each hop of each flow, also where flows share a view; nothing sent, none ended."""
    base = lot(fc.DCQCN(feedback_delay=None), packet_size="1KB")
    flows = tuple(dataclasses.replace(flow, size="10KB") for flow in (*base.flows, base.flows[0]))
    made = system(dataclasses.replace(base, flows=flows))
    y, z = made.start(np.float64)
    assert len(made.network.paths) == 3
    assert (y.queue.shape, y.sent.shape, y.arrived.shape) == ((2, 1), (4, 1), (6, 1))
    assert (z.wait.shape, z.drain.shape, z.left.shape, z.due.shape) == ((4, 1), (6, 1), (4, 1), (6, 1))
    assert np.isinf(z.finish).all()
    assert np.isnan(z.drain).all()
    assert not any(np.any(each) for each in (y.queue, y.sent, y.arrived, z.wait, z.wait_growth, z.idle))
    sizes = made.network.size
    np.testing.assert_array_equal(z.left, np.broadcast_to(sizes, (4, 1)))
    np.testing.assert_array_equal(z.due, np.broadcast_to(sizes, (6, 1)))


def test_flow_control_starts_with_nothing_come_stopped_or_told() -> None:
    """Last bytes left, and were sent, a step ago at the latest; no port has seen a RESUME."""
    made = system(lot(fc.ACC(), pfc=fc.PFC(xoff="400KB", xon_gap="20KB"), buffer="9MB"))
    y, z = made.start(np.float64)
    assert not any(np.any(counts) for counts in y.counts)
    pauses = z.pauses
    assert (np.unique(pauses.at).tolist(), np.unique(pauses.asked).tolist()) == ([-1.0], [-1.0])
    for name in ("through", "stopping", "told", "acks", "shares", "round_trip", "pace", "longest"):
        assert not np.any(getattr(pauses, name))
    assert np.isinf(pauses.port.on).all()
    for name in ("paused", "held", "at_resume", "state", "checked", "at_check"):
        assert not np.any(getattr(pauses.port, name))
    hops, flows, ports = len(made._hops), len(made.network.flows), made._gate.count
    assert [len(each) for each in pauses.counts] == [3 * hops, 3 * hops, ports]
    lengths = {"through": 3 * hops, "at": 2, "stopping": ports, "acks": 3 * flows, "shares": 2 * flows, "asked": flows}
    assert {name: len(getattr(pauses, name)) for name in lengths} == lengths
    assert (z.wait, z.wait_growth, z.reached) == (None, None, None)


def test_the_longest_wait_is_no_longer_than_the_run() -> None:
    """Waits under flow control: those of a queue's bytes, found by its counts, or a round trip, whichever is longer."""
    scenario = fc.incast(
        2, scheme=fc.ACC(), rate="10Gbps", line_rate="10Gbps", delay="1us", marking=None, buffer="9MB",
        pfc=fc.PFC(xoff="400KB", xon_gap="20KB"),
    )  # fmt: skip
    longest = 0.0
    for carry in Run(scenario, 0.5e-6).steps(40)[1:]:
        pauses = carry.z.pauses
        wait = (1.0 - pauses.at[0, 0]) * 0.5e-6 if carry.y.queue[0, 0] > 0 else 0.0
        longest = max(longest, wait, pauses.round_trip.max())
        assert pauses.longest[0] == pytest.approx(longest, rel=1e-12)
        if wait:  # what stands there now came in it, at 20 Gb/s at most
            assert carry.y.queue[0, 0] <= 20 * GIGABIT * wait * (1 + 1e-9)
    assert 2e-6 < longest < 20e-6


@pytest.mark.parametrize(("asked", "at"), [(-7.5, -3.25), (-1000.0, -2000.0)])
def test_searches_go_on_from_the_last_step_s_but_within_what_is_remembered(
    asked: float, at: float, monkeypatch: Any
) -> None:
    """Bytes are sought from where the last was found, a step more ago; 64 records hold 61 steps."""
    run = Run(lot(fc.ACC(), pfc=fc.PFC(xoff="400KB", xon_gap="20KB"), buffer="9MB"), DT, depth=64)
    carry = run.steps(3)[-1]
    begins: list[Any] = []

    def search(ends: Any, filling: Any, target: Any, left: Any, begin: Any, strides: Any) -> Any:
        begins.append(np.unique(begin).tolist())
        return np.broadcast_to(begin, left.shape)

    monkeypatch.setattr(lossless, "search", search)
    pauses = carry.z.pauses
    z = carry.z._replace(pauses=pauses._replace(asked=0 * pauses.asked + asked, at=0 * pauses.at + at))
    found = run.system.look_back(carry.history, carry.step, run.loop.dt, carry.y, z)
    expected = [max(at - 1.0, -61.0), max(asked - 1.0, -61.0)]
    assert begins == [[pytest.approx(each, rel=1e-12)] for each in expected]
    assert found.pauses is not None
    np.testing.assert_allclose(found.pauses.round_trip, (1.0 - expected[1]) * DT, rtol=1e-12)


def test_an_empty_queue_makes_nobody_wait() -> None:
    made = system(lot(fc.DCQCN(feedback_delay=None)))
    _, z = made.start(np.float64)
    seen = column(0.0, -1e3, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0)  # queues, some of which fell short of 0, and their slopes
    found = made._waited(Clock(np.int32(3), np.float64(3e-6), np.float64(1e-6)), z, Lagged((), None, seen))
    assert not found.wait.any()
    assert not found.wait_growth.any()


@pytest.mark.parametrize(("short", "ended"), [(6, True), (10, False)])
def test_the_last_byte_is_sent_but_for_rounding(short: int, ended: bool) -> None:
    """Eight units in the last place of the size."""
    y = State(column(0.0), (), column(1e6 * (1 - short * 2.0**-52)))
    z = Memory(column(0.0), column(np.inf), None, None, None, left=column(1.0))
    found = sent_by(Clock(np.int32(1), np.float64(1.0), np.float64(1.0)), column(1e6), y, z, column(2.0))
    assert found.item() == (0.5 if ended else np.inf)


def test_marks_go_on_with_their_bytes() -> None:
    """A sender's bytes carry none; to the second link come those that left the first one a delay before."""
    run = Run(lot(fc.ACC(), pfc=fc.PFC(xoff="400KB", xon_gap="20KB"), buffer="9MB"), DT)
    states = run.steps(30)
    lag = round(float(np.ravel(run.system._gate.hop_lag)[1]) / DT)  # type: ignore[attr-defined]
    for before, carry in zip(states, states[lag:], strict=False):
        came, left = (np.split(each[:, 0], 3) for each in (carry.y.counts.came, before.y.counts.left))
        assert came[1][[0, 2, 3]].tolist() == came[2][[0, 2, 3]].tolist() == [0.0] * 3
        for kind in range(3):
            assert abs(came[kind][1] - left[kind][0]) <= 10 * GIGABIT * DT  # what leaves in a step
    assert came[1][1] > 5 * GIGABIT * DT


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("there", "since", "queued", "drain", "ahead", "then", "ahead_then"),
    [
        (True, 0.4, 30.0, NAN, INF, 0.3, -110.0),  # it comes behind 30 bytes, which go in the step in which it comes
        (True, 0.4, 0.0, NAN, INF, 0.0, -140.0),
        (True, 0.4, 140.0, NAN, INF, 1.4, 0.0),  # just as the step ends
        (True, 0.4, 141.0, NAN, INF, NAN, 1.0),
        (True, 1.4, 999.0, NAN, 50.0, 1.9, -50.0),  # what stood before it as the step began
        (True, 1.4, 0.0, NAN, 50.0, 1.9, -50.0),  # though the queue is empty now
        (True, 1.4, 999.0, NAN, 101.0, NAN, 1.0),
        (True, 2.4, 999.0, 1.5, -50.0, 1.5, -150.0),
        (False, -0.4, 30.0, NAN, INF, NAN, INF),
    ],
)
def test_a_last_byte_leaves_as_all_before_it_has_been_served(
    there: bool,
    since: float,
    queued: float,
    drain: float,
    ahead: float,
    then: float,
    ahead_then: float,
    monkeypatch: Any,
) -> None:
    """A hundred bytes are served in a step of a second; it came ``since`` ago as the step begins, behind ``queued``."""
    one = lambda value: np.array([[value]])  # noqa: E731
    monkeypatch.setattr(completion, "found", lambda *given: (one(there), one(since), one(queued)))
    monkeypatch.setattr(completion, "rows_of", lambda service, rows: one(100.0))
    z = SimpleNamespace(drain=one(drain), ahead=one(ahead), _replace=lambda **values: values)
    found: Any = completion.waits_served(None, ((0, 0, 0),), SimpleNamespace(dt=1.0), z, None, None)  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(np.ravel(found["drain"]), [then], atol=1e-12)
    np.testing.assert_allclose(np.ravel(found["ahead"]), [ahead_then], atol=1e-12)


def test_a_byte_alone_waits_for_nobody_where_its_class_is_not_served(monkeypatch: Any) -> None:
    """Nothing is served in the step, and nothing stood before it; a byte behind others stays."""
    there, since, queued = np.array([[True], [True]]), column(0.4, 0.4), column(0.0, 3.0)
    monkeypatch.setattr(completion, "found", lambda *given: (there, since, queued))
    z = SimpleNamespace(drain=column(NAN, NAN), ahead=column(INF, INF), _replace=lambda **values: values)
    hops, clock, idle = ((0, 0, 0), (1, 0, 0)), SimpleNamespace(dt=1.0), np.zeros((1, 1))
    found: Any = completion.waits_served(None, hops, clock, z, None, idle)  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(np.ravel(found["drain"]), [0.0, NAN])
    assert np.ravel(found["ahead"]).tolist() == [0.0, 3.0]


def test_arrivals_of_classes_are_found_by_bytes_that_came_and_had_gone(monkeypatch: Any) -> None:
    """Behind row 10 there are what has gone of three queues, and then what has come to them."""
    read: list[Any] = []
    history = SimpleNamespace(
        read=lambda n, place, rows, linear: read.append((n, place, rows, linear)) or "target",
        at=lambda n, record, rows: (record, rows),
    )
    monkeypatch.setattr(classes, "place", lambda *given: given)
    monkeypatch.setattr(classes, "search", lambda ends, filling, *rest: (ends(-4), filling, *rest))
    made = SimpleNamespace(_gone_row=10, _count=(3,), _filling=lambda *given: given)
    found = classes.ClassNetwork._arrived(made, history, 7, 0.5, (0, 2), -3.0, "begin")  # pyright: ignore[reportArgumentType]
    assert read == [(7, (2.0, 0.5, 1.0, False), (10, 12), True)]
    assert found == ((-4, (13, 15)), (history, 7, (0, 2)), "target", -3.0, "begin")
