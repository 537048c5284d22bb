"""The fluid's small functions by hand: marking, ends of flows, order, searches, sums, lags and rows, all in NumPy."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde import history
from fluidcc.dde.stepping import METHODS, Clock, method_named
from fluidcc.engines.fluid import completion, marking, run, running_statistics, state, windows
from fluidcc.engines.fluid import network as arrays
from fluidcc.engines.fluid.marking import TernaryState
from fluidcc.engines.fluid.state import Memory, State
from fluidcc.scenario.model import resolve

pytestmark = pytest.mark.usefixtures("numpy_only")


def column(*values: Any) -> np.ndarray:
    return np.array(values, float)[:, None]


def flat(values: Any) -> list[Any]:
    return np.ravel(values).tolist()


def memory(**given: Any) -> Memory:
    return Memory(**{"idle": None, "finish": None, "drain": None, "wait": None, "wait_growth": None, **given})


# -- marking -------------------------------------------------------------------------------------------------------


def test_red_at_its_edges() -> None:
    queue = column(0, 10, 10.5, 20, 30, 30.5)
    found = marking.red(queue, 10.0, 30.0, 0.4)
    np.testing.assert_allclose(found.ravel(), [0, 0, 0.01, 0.2, 0.4, 1.0], atol=1e-15)
    assert flat(marking.red(column(10, 10.1), 10.0, 10.0, 0.4)) == [0.0, 1.0]  # step marking
    assert flat(marking.red(column(1e12), np.inf, np.inf, 1.0)) == [0.0]  # a link without marking
    assert flat(marking.red(column(5.0, 11.0), 10.0, np.inf, 1.0)) == [0.0, 1.0]  # a ramp of no known slope


def test_marks_along_a_path() -> None:
    """Passed unmarked by all hops: (1 - 0.1)(1 - 0.2)(1 - 0.5)."""
    np.testing.assert_allclose(marking.along_path(column(0.1, 0.2, 0.5)), [[1 - 0.9 * 0.8 * 0.5]], rtol=1e-15)
    assert flat(marking.along_path(column(0.3))) == [0.3]


def port(**given: float) -> TernaryState:
    fields = dict.fromkeys(TernaryState._fields, 0.0) | {"on": 5.0, "at_resume": 7000.0} | given
    return TernaryState(**{name: column(value) for name, value in fields.items()})


@pytest.mark.parametrize(
    ("paused", "held", "now", "after"),
    [  # paused and held before; paused now; held, on and the queue at RESUME after
        (0.0, 0.0, 0.0, (0.0, 5.0, 7000.0)),
        (0.0, 0.0, 0.3, (1.0, 5.0, 7000.0)),
        (0.3, 1.0, 1.0, (1.0, 5.0, 7000.0)),
        (1.0, 1.0, 1.0, (1.0, 5.0, 7000.0)),
        (1.0, 1.0, 1.0 - 1e-7, (1.0, 5.0, 7000.0)),  # rounding is no RESUME
        (1.0, 1.0, 1.0 - 1e-6, (1.0, 5.0, 7000.0)),
        (1.0, 1.0, 0.4, (0.0, 0.0, 9000.0)),
        (1.0, 1.0, 0.0, (0.0, 0.0, 9000.0)),
        (0.4, 0.0, 0.0, (0.0, 5.0, 7000.0)),  # that was told before
    ],
)
def test_a_resume_is_where_pauses_grow_shorter(paused: float, held: float, now: float, after: Any) -> None:
    found = marking.after_pause(port(paused=paused, held=held), column(now), column(9000.0), np.float64(1.0))
    assert (found.held.item(), found.on.item(), found.at_resume.item(), found.paused.item()) == (*after, now)


D, U, C = 0.0, 1.0, 2.0  # determined, undetermined, checking


@pytest.mark.parametrize(
    ("given", "queue", "leaves", "marks", "after"),
    [  # CE and UE; state, checked and at_check after, of a step of 2, with max_on 10 and packets of 1000
        ({"on": 10.0, "state": D}, 5000, True, (0, 1), (U, 2, 0)),
        ({"on": 10.5, "state": D}, 5000, True, (0.3, 0), (D, 2, 0)),
        ({"on": 11.0, "state": U}, 6999, True, (0, 0), (C, 2, 6999)),  # shorter than at the RESUME: look again
        ({"on": 11.0, "state": U}, 7000, True, (0.3, 0), (D, 2, 0)),
        ({"on": 11.0, "state": U}, 2000, True, (0, 0), (C, 2, 2000)),
        ({"on": 11.0, "state": C, "checked": 10.0, "at_check": 4000}, 6000, True, (0, 0), (C, 12, 4000)),
        ({"on": 11.0, "state": C, "checked": 10.5, "at_check": 4000}, 4900, True, (1, 0), (D, 12.5, 4000)),
        ({"on": 11.0, "state": C, "checked": 10.5, "at_check": 4000}, 4899, True, (0, 0), (C, 2, 4899)),
        ({"on": 11.0, "state": C, "checked": 3.0, "at_check": 4000}, 2000, True, (0, 0), (D, 5, 4000)),
        ({"on": 11.0, "state": C, "checked": 3.0, "at_check": 4000}, 2001, True, (0, 0), (C, 5, 4000)),
        ({"on": 11.0, "state": U}, 6999, False, (0, 0), (U, 2, 0)),  # nobody looks
        ({"on": 11.0, "state": C, "checked": 10.5, "at_check": 4000}, 4899, False, (0, 0), (C, 12.5, 4000)),
    ],
)
def test_ternary_states_by_hand(given: Any, queue: float, leaves: bool, marks: Any, after: Any) -> None:
    before = port(**given)
    ce, ue, found = marking.ternary(
        before, column(0.3), column(queue), column(leaves) > 0, 10.0, np.float64(1000.0), np.float64(2.0)
    )
    assert (ce.item(), ue.item()) == marks
    assert (found.state.item(), found.checked.item(), found.at_check.item()) == after
    assert found.on.item() == before.on.item() + 2.0


# -- ends of flows ---------------------------------------------------------------------------------------------------

HOPS = ((0, 0, 0), (0, 1, 1), (1, 0, 1))
DT = np.float64(2.0)


def network(**given: Any) -> Any:
    return SimpleNamespace(**{"size": column(100.0, 50.0), "arrival_lag": None, **given})


def test_what_is_left_and_due() -> None:
    y = State(column(7.0, 8.0), (), column(30.0, 60.0), arrived=column(10.0, 0.0, 55.0))
    found = completion.rest(network(), HOPS, y, memory(finish=column(np.inf, np.inf)))
    assert (flat(found.left), flat(found.due), flat(found.queue)) == ([70, 0], [90, 100, 0], [7, 8])
    found = completion.rest(network(), HOPS, y._replace(arrived=None), memory(finish=column(4.0, np.inf)))
    assert flat(found.left) == [0, 0]
    assert found.due is None


def test_when_the_last_byte_is_sent() -> None:
    """End a step at 20: the first has 15 left at 10 a second, so 1.5 s of it; the second goes on."""
    clock = Clock(np.int32(10), np.float64(20.0), DT)
    y = State(None, (), column(100.0 - 1e-14, 49.0))  # type: ignore[arg-type]
    z = memory(finish=column(np.inf, np.inf), left=column(15.0, 1.0))
    pace = column(10.0, 10.0)
    assert flat(completion.sent_by(clock, network().size, y, z, pace)) == [19.5, np.inf]
    assert flat(completion.sent_by(clock, network().size, y, z._replace(stretch=column(3.0, 1.0)), pace))[0] == 18.5
    done = z._replace(finish=column(3.0, np.inf))
    assert flat(completion.sent_by(clock, network().size, y, done, pace))[0] == 3.0
    slow = completion.sent_by(clock, network().size, y, z, column(1.0, 1.0))
    assert flat(slow)[0] == 20.0  # not before the step: 15 at 1 a second would have taken longer


@pytest.mark.parametrize("lag", [None, 3.0])
def test_what_a_last_byte_finds(lag: float | None) -> None:
    """Flow 0 ended at 17.5 less the lag, flow 1 has not; a step from 18 to 20, in which queues go from 40 to 30.

    So the byte came half a second before, when 42.5 stood there; a queue that is empty as the step begins was so then.
    """
    net = network(arrival_lag=None if lag is None else np.array([[lag]]))
    z = memory(
        finish=column(17.5 - (lag or 0.0), np.inf), queue=column(40.0, 0.0), drain=column(np.nan, np.nan, np.nan)
    )
    clock = Clock(np.int32(10), np.float64(20.0), DT)
    there, since, queued = completion.found(net, HOPS, clock, z, column(30.0, -5.0))
    assert flat(there) == [True, True, False]
    assert flat(since)[:2] == [0.5, 0.5]
    assert flat(queued)[:2] == [42.5, 0.0]
    found = completion.waits(net, HOPS, clock, z, column(30.0, -5.0), column(10.0, 20.0))
    assert flat(found.drain)[:2] == [4.25, 0.0]
    assert np.isnan(flat(found.drain)[2])
    again = completion.waits(net, HOPS, clock, found, column(0.0, 0.0), column(10.0, 20.0))
    assert flat(again.drain)[:2] == [4.25, 0.0]  # known once and for all


def test_a_byte_that_comes_on_the_grid_is_there_in_the_next_step() -> None:
    clock = Clock(np.int32(10), np.float64(20.0), DT)
    for finish, there in ((18.001, True), (18.003, False)):
        z = memory(finish=column(finish, np.inf), queue=column(40.0, 40.0))
        assert flat(completion.found(network(), HOPS, clock, z, column(40.0, 40.0))[0]) == [there, there, False]
    clock, z = Clock(np.int32(1), DT, DT), memory(finish=column(0.002, np.inf), queue=column(40.0, 40.0))
    assert completion.found(network(), HOPS, clock, z, column(40.0, 40.0))[0][0].item()  # a thousandth, exactly


def test_what_is_served_step_by_step() -> None:
    """42.5 stood before the byte half a second before the step; 10, 4 and 20 a second are served then, for 2 s each.

    5 go before the step, 20 and 8 in the first two, and the last 9.5 take 0.475 s of the third: 0.5 + 4 + 0.475.
    """
    z = memory(
        finish=column(17.5, np.inf), queue=column(40.0, 0.0), drain=column(*[np.nan] * 3), ahead=column(*[np.inf] * 3)
    )
    net = network()
    for step, (served, queue) in enumerate([(10.0, 30.0), (4.0, 22.0), (20.0, 0.0)]):
        clock = Clock(np.int32(10 + step), np.float64(20.0 + 2 * step), DT)
        z = completion.waits_served(net, HOPS, clock, z, column(queue, 0.0), column(served, 1.0))
        assert flat(z.drain)[1] == 0.0  # an empty queue
        assert np.isnan(flat(z.drain)[0]) == (step < 2)
        z = z._replace(queue=column(queue, 0.0))
    assert flat(z.drain)[0] == pytest.approx(4.975, rel=1e-14)


# -- order -----------------------------------------------------------------------------------------------------------


def test_begun_and_share_at_the_grid() -> None:
    """The step from 20 to 22; what begins at its very end, but for a thousandth, is the next one's."""
    clock = Clock(np.int32(10), np.float64(20.0), DT)
    assert flat(completion.begun(clock, column(19.0, 21.99, 21.998, 21.999))) == [True, True, False, False]
    np.testing.assert_allclose(flat(completion.share(clock, column(19.0, 20.0, 20.5, 22.0, 30.0))), [1, 1, 0.75, 0, 0])


def test_who_waits_is_told_of_the_latest_end_and_its_way() -> None:
    """Flow 2 waits for what 0 and 1 sent to be received, flow 3 for 0 to have sent; a step from 18 to 20."""
    ends = arrays.Order(column(1.0, 2.5, 0.0), (0, 1, 0), (True, True, False), ((), (), (0, 1), (2,)))
    clock = Clock(np.int32(10), np.float64(20.0), DT)
    free = completion.at_rest(ends, column(0.0, 1.0, 0.5, 4.0), memory(), (4, 1))
    assert flat(free.began) == [0.0, 1.0, np.inf, np.inf]
    assert flat(free.stretch) == [1.0] * 4
    z = free._replace(finish=column(15.0, 16.0, np.inf, np.inf), drain=column(0.5, 0.25, 0.0, np.nan, np.nan))
    found = completion.told(ends, column(0.0, 1.0, 0.5, 4.0), (0, 0, 1, 2, 3), clock, z)
    # 15 + 0.75 + 1 and 16 + 0 + 2.5, and half a second; 15 and 4 s.
    assert flat(found.began)[2:] == [19.0, 19.0]
    assert flat(found.stretch) == [1.0, 1.0, 1.5, 1.5]  # from 19 on, and the next step ends at 22
    later = completion.told(
        ends, column(0.0, 1.0, 0.5, 4.0), (0, 0, 1, 2, 3), clock._replace(step=np.int32(11), time=22.0), found
    )
    assert flat(later.stretch) == [1.0] * 4  # that was before
    waiting = completion.told(
        ends,
        column(0.0, 1.0, 0.5, 4.0),
        (0, 0, 1, 2, 3),
        clock,
        z._replace(drain=column(0.5, np.nan, 0.0, np.nan, np.nan)),
    )
    assert flat(waiting.began)[2:] == [np.inf, 19.0]  # the last byte of 0 is on its way


def ordered(what: str, size: Any) -> Any:
    links = (fc.Link("10Gbps", "3us", source="a", target="b"), fc.Link("20Gbps", "5us", source="b", target="c"))
    flows = [
        fc.Flow((0, 1), fc.NoControl(), "40Gbps", access_delay="1us", egress_delay="2us", size=size, source="h",
                target="c", **more)
        for more in ({}, {"after": (0,), "after_what": what})
    ]  # fmt: skip
    return resolve(fc.Scenario(links, tuple(flows), header_bytes="100B", ack_bytes="50B"))


@pytest.mark.parametrize(("size", "part"), [("1KB", 1.0), ("5KB", 1.0), ("250B", 0.25)])
def test_ways_of_ends_by_hand(size: str, part: float) -> None:
    """Delays of 11 us; a packet of 1100 B, or a part of one, is stored at both links after the host's own.

    ACKs of 50 B cross both links and a wire of the host's rate behind each way's end.
    """
    scenario = ordered("sent", size)
    flow = scenario.flows[0]
    there = 11e-6 + part * 1100 * 8 * (1 / 10e9 + 1 / 20e9)
    assert float(arrays.receipt_delay(scenario, flow)) == pytest.approx(there, rel=1e-12)
    answer = float(arrays.answer_delay(scenario, flow))
    assert 0 < answer - there - 11e-6 == pytest.approx(50 * 8 * (1 / 10e9 + 1 / 20e9 + 1 / 40e9), rel=1e-9)
    made = arrays.order_of(scenario)
    assert made is not None
    assert (made.before, made.queues, made.waits, flat(made.way)) == ((0,), (False,), ((), (0,)), [0.0])
    assert arrays.order_of(resolve(fc.incast(2, size="1KB"))) is None


# -- searches, rows, places ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("strides", "begin"), [(windows._STRIDES, -31.5), (windows.ALL_STRIDES, -60.0)])
def test_search_finds_the_latest_time_of_a_count(strides: Any, begin: float) -> None:
    """A count of 2 per step, but for a silence from -30 to -20: against a fine grid, to half a thousandth of its span.

    The strides for short ways go 32 records on.
    """
    times = np.arange(-60, 1)
    counts = np.cumsum(np.where((times > -30) & (times <= -20), 0.0, 2.0)) + 100.0

    def ends(record: Any, start_only: bool = False) -> tuple[Any, Any]:
        record = np.asarray(record)
        return counts[record + 60], counts[np.minimum(record + 61, 60)]

    never = lambda record: np.zeros(record.shape, bool)  # noqa: E731
    for target in (103.0,) * (begin == -60) + (161.0, 163.5, 171.0, float(counts[-1]), 500.0):
        for left in (0.0, -7.25):
            grid = np.linspace(-60, left, 60001)
            values = np.interp(grid, times, counts)
            expected = grid[values <= target + 1e-9][-1]
            found = windows.search(ends, never, column(target), column(left), column(begin), strides)
            assert found.item() == pytest.approx(expected, abs=3e-2 / 10)


def test_search_where_a_queue_fills_inside_a_record() -> None:
    """Records end at 0, 0, 1 and 5: what comes in the last but one comes at the next one's pace, at its end."""
    values = np.array([0.0, 0.0, 0.0, 1.0, 5.0])

    def ends(record: Any, start_only: bool = False) -> tuple[Any, Any]:
        return values[record + 4], values[record + 5]

    filling = lambda record: record == -2  # noqa: E731
    for target, expected in ((0.5, -1.125), (0.0, -1.25), (1.0, -1.0), (3.0, -0.5)):
        found = windows.search(ends, filling, column(target), column(0.0), column(-4.0))
        assert found.item() == expected
    assert windows.search(ends, filling, column(0.5), column(-1.5), column(-4.0)).item() == -1.5


def test_rows_and_columns() -> None:
    values = np.arange(6.0).reshape(3, 2)
    assert state.rows_of(values[:1], (0, 2, 1)) is not None
    assert state.rows_of(values[:1], (2, 1)).tolist() == [[0, 1]]
    assert state.rows_of(values, (2, 0)).tolist() == [[4, 5], [0, 1]]
    assert state.rows_of(values, (0, 1)).tolist() == [[0, 1], [2, 3]]
    assert state.column([1.0, 1.0]).tolist() == [1.0]
    assert state.column([1.0, 1.0], collapse=False).tolist() == [1.0, 1.0]
    assert state.column([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert not state.same([1.0, 2.0])
    assert state.same([2.0, 2.0])


@pytest.mark.parametrize(
    ("lag", "node", "offset", "theta"),
    [(3.25, 0.0, -4, 0.75), (3.25, 0.5, -3, 0.25), (3.25, 1.0, -3, 0.75), (3.0, 0.0, -3, 0.0), (3.0, 1.0, -2, 0.0),
     (3.0 - 1e-12, 0.0, -3, 0.0), (1.0, 1.0, -1, 1.0), (1.5, 1.0, -1, 0.5), (3.0 - 1e-6, 0.0, -3, 1e-6)],
)  # fmt: skip
def test_places(lag: float, node: float, offset: int, theta: float) -> None:
    found = history.place(np.array([0.1 * lag]), np.float64(0.1), node, False)
    assert found.offset.tolist() == [offset]
    assert found.theta[0] == pytest.approx(theta, abs=1e-9)
    if node != 0.5 and lag == round(lag):
        found = history.place(np.array([0.1 * lag]), np.float64(0.1), node, True)
        assert (found.offset.tolist(), found.theta.tolist()) == ([round(node - lag)], [0.0])


def test_a_cubic_is_itself() -> None:
    """Interpolate t^3 - 2 t^2 + 3 t + 4 between 1 and 3, with slopes per step of 2."""
    f, g = np.poly1d([1, -2, 3, 4]), np.poly1d([3, -4, 3])
    ends = (f(1), 2 * g(1), f(3), 2 * g(3))
    for theta in (0.0, 0.25, 0.8, 1.0, 1.3):
        assert history.hermite(theta, *ends) == pytest.approx(f(1 + 2 * theta), rel=1e-13)
        assert history.hermite_slope(theta, *ends) == pytest.approx(2 * g(1 + 2 * theta), rel=1e-13)


def test_a_ring_is_read_by_rows_slices_and_lines() -> None:
    rng = np.random.default_rng(1)
    made = history.constant_past(np.zeros((3, 2)), 8, True)
    assert made.ring.shape == (8, 12, 2)
    records = rng.random((12, 12, 2))
    for n, record in enumerate(records):
        made = made.push(np.int32(n), record)
    n = np.int32(12)
    for chosen in ((0, 1), (2, 0), (1,)):
        one = history.Place(np.array([-3]), np.array([0.3]))
        each = history.Place(np.full((len(chosen), 2), -3), np.full((len(chosen), 2), 0.3))
        start, right, end, left = (records[9][part * 3 : part * 3 + 3][list(chosen)] for part in range(4))
        for where in (one, each):
            np.testing.assert_allclose(made.read(n, where, chosen), history.hermite(0.3, start, right, end, left))
            np.testing.assert_allclose(made.read(n, where, chosen, linear=True), start + 0.3 * (end - start))
            both = made.read(n, where, chosen, slopes=True)
            np.testing.assert_allclose(both[len(chosen) :], history.hermite_slope(0.3, start, right, end, left))
        first, last = made.at(n, np.full((len(chosen), 2), -3), chosen)
        np.testing.assert_array_equal(first, start)
        np.testing.assert_array_equal(last, end)
    differ = made.read(n, history.Place(np.array([[-2, -5]]), np.zeros((1, 2))), (1,))
    assert differ.tolist() == [[records[10][1, 0], records[7][1, 1]]]
    steady = history.constant_past(np.full((1, 1), 5.0), 4, True)
    assert steady.read(np.int32(0), history.Place(np.array([-2]), np.array([0.7])), (0,), slopes=True).tolist() == [
        [5],
        [0],
    ]


@pytest.mark.parametrize("longest", [0.1, 4.0, 4.9, 5.0, 12.9, 13.0, 60.0, 61.0])
def test_a_ring_holds_all_that_a_lag_asks_for(longest: float) -> None:
    """Its whole steps, one begun, the record of the present and one to write: a power of two of at least four."""
    depth = history.ring_depth(longest, 1.0)
    assert depth & (depth - 1) == 0
    assert depth >= max(4, int(longest) + 3)
    assert depth <= max(4, 2 * (int(longest) + 3))


@pytest.mark.parametrize("name", ["euler", "heun", "rk4"])
def test_methods_fulfil_the_conditions_of_their_order(name: str) -> None:
    method = METHODS[name]
    assert method is method_named(name)
    c, b = np.array(method.nodes), np.array(method.weights)
    a = np.array([[*row, *[0.0] * (len(c) - len(row))] for row in method.matrix])
    np.testing.assert_allclose(a.sum(axis=1), c)
    conditions = [b.sum() - 1, b @ c - 1 / 2, b @ c**2 - 1 / 3, b @ a @ c - 1 / 6, b @ c**3 - 1 / 4,
                  (b * c) @ a @ c - 1 / 8, b @ a @ c**2 - 1 / 12, b @ a @ a @ c - 1 / 24]  # fmt: skip
    holds = {1: 1, 2: 2, 4: 8}[method.order]
    np.testing.assert_allclose(conditions[:holds], 0.0, atol=1e-15)
    assert method.order == {"euler": 1, "heun": 2, "rk4": 4}[name]
    with pytest.raises(fc.InputError, match="unknown"):
        method_named("leapfrog")


# -- lags ------------------------------------------------------------------------------------------------------------


def way(scheme: Any) -> Any:
    links = (fc.Link("10Gbps", "3us", source="a", target="b"), fc.Link("20Gbps", "5us", source="b", target="c"))
    flow = fc.Flow((0, 1), scheme, "40Gbps", access_delay="1us", egress_delay="2us", source="h", target="c")
    scenario = resolve(fc.Scenario(links, (flow,), header_bytes="100B", ack_bytes="50B"))
    return arrays.lags_of(scenario, scenario.flows[0])


def test_lags_by_hand() -> None:
    """11 us each way. DCQCN counts no packet's storing; windows and delays count that of 1100 B, and of ACKs.

    A queue is met after the way to it, of which a packet has been stored at the hosts and at all links before.
    """
    found = way(fc.DCQCN(feedback_delay=None, cnp_interval="7us"))
    np.testing.assert_allclose(found.arrival, [1e-6, 4e-6], rtol=1e-12)
    np.testing.assert_allclose(found.marking, [10e-6 + 18e-6, 7e-6 + 18e-6], rtol=1e-12)
    assert found.own == pytest.approx(29e-6, rel=1e-12)
    assert not found.fixed
    found = way(fc.DCQCN(feedback_delay="20us"))
    assert (found.marking, found.own, found.arrival, found.fixed) == ((20e-6,) * 2, 20e-6, (0.0, 0.0), True)
    ack = 8 * 50 * (1 / 10e9 + 1 / 20e9 + 1 / 40e9)
    stored = [1100 * 8 / rate for rate in (40e9, 10e9, 20e9)]
    found = way(fc.DCTCP())
    np.testing.assert_allclose(found.arrival, [1e-6 + stored[0], 4e-6 + sum(stored[:2])], rtol=1e-12)
    assert found.own == pytest.approx(22e-6 + sum(stored) + ack, rel=1e-9)
    np.testing.assert_allclose(found.marking, np.array(found.own) - found.arrival, rtol=1e-9)


# -- sums of a run, and errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [True, False])
def test_sums_are_those_of_the_window(ends: bool) -> None:
    """Trapezoids from step 3 to 7 of random numbers, extremes of these steps, and of all; bytes between both."""
    rng = np.random.default_rng(2)
    queue, rate, idle, sent = (rng.random((12, 2, 1)) for _ in range(4))
    idle, sent = idle.cumsum(axis=0), sent.cumsum(axis=0)
    queue[1], dt = 9.0, np.float64(0.5)
    net = SimpleNamespace(by_link=lambda q: q, link_capacity=column(3.0, 4.0), size=column(np.inf, 5.0))
    system: Any = SimpleNamespace(network=net, sending=lambda clock, y, z: rate[round(float(clock.time / clock.dt))])
    kept = running_statistics.start(2, 2, 1, np.float64, ends=ends)
    for n in range(12):
        carry: Any = SimpleNamespace(
            step=np.int32(n), y=State(queue[n], (), sent[n] if ends else None), z=memory(idle=idle[n])
        )
        kept = running_statistics.observe(system, np.int32(3), np.int32(7), kept, carry, dt)
    found = running_statistics.summarise(system, kept, dt)
    weights = np.array([0.5, 1, 1, 1, 0.5])[:, None, None] / 4
    mean = (weights * queue[3:8]).sum(axis=0)
    np.testing.assert_allclose(found.queue_mean, mean)
    np.testing.assert_allclose(found.queue_std, np.sqrt((weights * (queue[3:8] - mean) ** 2).sum(axis=0)))
    np.testing.assert_array_equal(found.queue_min, queue[3:8].min(axis=0))
    np.testing.assert_array_equal(found.queue_max, queue[3:8].max(axis=0))
    np.testing.assert_array_equal(found.queue_max_whole_run, queue.max(axis=0))
    rates = (weights * rate[3:8]).sum(axis=0)
    rates[1] = (sent[7] - sent[3])[1] / 2.0 if ends else rates[1]
    np.testing.assert_allclose(found.rate_mean, rates)
    np.testing.assert_allclose(found.utilisation, 1 - (idle[7] - idle[3]) / (2.0 * column(3.0, 4.0)))
    still = kept._replace(queue=3.0 * kept.weight + 0 * kept.queue, queue_squared=9.0 * kept.weight + 0 * kept.queue)
    assert not running_statistics.summarise(system, still, dt).queue_std.any()
    again = running_statistics.cleared(kept)
    np.testing.assert_array_equal(again.queue_max_whole_run, kept.queue_max_whole_run)
    assert np.isinf(again.queue_min).all()
    for name in ("weight", "queue", "queue_squared", "queue_max", "rate", "idle", "idle_before"):
        assert not np.any(getattr(again, name))


@pytest.mark.parametrize(
    ("before", "after", "method", "said"),
    [
        (1.0, 1.0, "heun", True), (1.0, 1.01, "heun", False), (8.0, 1.0, "heun", True), (8.1, 1.0, "heun", False),
        (4.1, 1.0, "euler", False), (4.0, 1.0, "euler", True), (32.0, 1.0, "rk4", True), (32.1, 1.0, "rk4", False),
        (1e-5, 9e-6, "heun", True), (1e-9, 1e-5, "heun", True), (1e-9, 1.1e-5, "heun", False),
        (None, 1.0, "heun", None), (1.0, None, "heun", None), (np.inf, 1.0, "heun", None), (1.0, np.nan, "heun", None),
    ],
)  # fmt: skip
def test_how_differences_shrink(before: Any, after: Any, method: str, said: Any) -> None:
    """By 2 to 2^order, with a factor of 2 around; below 1e-5 it does not matter."""
    assert run.shrinks(before, after, method) is said


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (1.0, 2.0, True),
        (1.0, 2.1, False),
        (1e-9, 1e-5, True),
        (1e-9, 2e-5, False),
        (None, 1.0, None),
        (1.0, None, None),
    ],
)
def test_differences_that_may_not_grow(before: Any, after: Any, said: Any) -> None:
    assert run._falls(before, after) is said


def test_verdicts_and_relative_differences() -> None:
    for verdicts in itertools.product([True, False, None], repeat=2):
        expected = False if False in verdicts else None if None in verdicts else True
        assert run.both(verdicts) is expected
    ours, theirs = np.array([1.0, -5.0]), np.array([1.5, -4.0])
    assert run.relative(ours, theirs, 0.0) == 0.25
    assert run.relative(ours, theirs, 10.0) == 0.1
    assert run.relative(np.zeros(2), np.zeros(2), 0.0) == 0.0
    assert run.relative(np.array([0.75]), np.array([0.5]), 0.0) == 0.5
    assert run.relative(np.array([np.nan]), np.ones(1), 1.0) is None


def test_errors_are_those_of_their_runs() -> None:
    """Queues of 8, 4 and 3 packets' length and rates of 10, 12 and 12.5: which two are told, and by which scale."""

    def outcome(queue: float, rate: float) -> Any:
        summary = SimpleNamespace(queue_mean=np.array([[queue]]), rate_mean=np.array([[rate]]))
        return SimpleNamespace(summary=summary)

    runs = [outcome(8.0, 10.0), outcome(4.0, 12.0), outcome(3.0, 12.5)]
    found = run.discretisation_error(runs, 0, 5.0, "heun")
    assert found == {"queue_rel": 4 / 5, "rate_rel": 2 / 12, "as_expected": True}
    found = run.discretisation_error(runs, 1, 5.0, "heun")
    assert found == {"queue_rel": 1 / 5, "rate_rel": pytest.approx(0.04), "as_expected": True}
    found = run.tolerance_error(runs, 2.0)
    assert found == {"queue_rel": 1 / 3, "rate_rel": pytest.approx(0.04), "as_expected": True}
    assert run.tolerance_error([outcome(8, 1), outcome(8.1, 1), outcome(2, 1)], 1.0)["as_expected"] is False
