"""Networks of the fluid as plain functions in NumPy: windows, classes, flow control and delays, by hand or by force."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde.history import constant_past
from fluidcc.dde.stepping import METHODS, Clock, Loop, Read
from fluidcc.engines.fluid import metrics
from fluidcc.engines.fluid.classes import ClassNetwork, system_of
from fluidcc.engines.fluid.lossless import LosslessNetwork
from fluidcc.engines.fluid.marking import TernaryState
from fluidcc.engines.fluid.network import columns_of
from fluidcc.engines.fluid.queues import QueueNetwork
from fluidcc.engines.fluid.state import Counts, Lagged
from fluidcc.engines.fluid.windows import WindowNetwork
from tests.engines.fluid import in_numpy
from tests.engines.fluid.in_numpy import Run, plain_network, queues

GIGABIT = 1e9 / 8
pytestmark = pytest.mark.usefixtures("numpy_only")


def column(*values: Any) -> np.ndarray:
    return np.array(values, float)[:, None]


def lot(scheme: Any = "dcqcn", **options: Any) -> fc.Scenario:
    """Flow 0 over both links, 1 over the first and 2 over the second."""
    links = (
        fc.Link("10Gbps", "3us", fc.RED("10KB", "30KB", 0.2), source="a", target="b"),
        fc.Link("20Gbps", "5us", fc.RED("20KB", "60KB", 0.6), source="b", target="c"),
    )
    made = fc.incast(1, scheme=scheme).flows[0].scheme if isinstance(scheme, str) else scheme
    flows = tuple(
        fc.Flow(path, made, "40Gbps", access_delay="1us", egress_delay="2us", source=f"h{i}", target="cb"[i == 1],
                multiplicity=1 + i)
        for i, path in enumerate([(0, 1), (0,), (1,)])
    )  # fmt: skip
    return fc.Scenario(links, flows, **options)


def system(scenario: fc.Scenario) -> Any:
    return system_of(plain_network(scenario), 1, np.float64(1.0))


# -- the loop --------------------------------------------------------------------------------------------------


class Delayed:
    """x'(t) = t - x(t) x(t - 0.35 - moves 0.1 x(t)); at most 1.5; z counts jumps."""

    def __init__(self, moves: bool, slopes: bool = False) -> None:
        self.state_dependent_lags, self.reads = moves, (Read((0,), slopes=slopes),)

    def remembered(self, y: Any) -> Any:
        return y

    def lags(self, y: Any, z: Any, node: float) -> tuple[Any, ...]:
        return (0.35 + 0.1 * y * self.state_dependent_lags,)

    def look_back(self, history: Any, n: Any, dt: Any, y: Any, z: Any) -> Any:
        return z

    def feedback(self, lagged: tuple[Any, ...]) -> Any:
        return lagged[0]

    def derivative(self, clock: Any, y: Any, z: Any, feedback: Any) -> Any:
        return clock.time - y * feedback[:1] + sum(feedback[1:])

    def limited(self, y: Any) -> Any:
        return np.minimum(y, 1.5)

    def jump(self, clock: Any, y: Any, z: Any, feedback: Any) -> tuple[Any, Any]:
        np.testing.assert_allclose(clock.time, clock.step * clock.dt)
        return np.minimum(y, 1.5), z + feedback[:1]


@pytest.mark.parametrize("method", ["euler", "heun", "rk4"])
@pytest.mark.parametrize(("moves", "slopes"), [(False, False), (True, False), (False, True)])
def test_the_loop_is_that_of_its_tableau(method: str, moves: bool, slopes: bool) -> None:
    """Thirty steps of 0.1, written down once more with stages and a dense past of scalars."""
    dt, rule = 0.1, METHODS[method]
    past: list[tuple[float, ...]] = []

    def read(time: float) -> tuple[float, float]:
        if time < 0:
            return 1.0, 0.0
        n = min(int(np.floor(time / dt + 1e-9)), len(past) - 1)
        a, right, b, left = past[n]
        t = time / dt - n
        cubic = np.poly1d([2 * a - 2 * b + dt * (right + left), 3 * (b - a) - dt * (2 * right + left), dt * right, a])
        return float(cubic(t)), float(cubic.deriv()(t)) / dt

    def free(x: float, time: float) -> tuple[float, float]:
        value, slope = read(time - 0.35 - 0.1 * x * moves)
        return time - x * value + slope * slopes, value

    x, expected, jumps = 1.0, [1.0], 0.0
    for n in range(30):
        ks: list[float] = []
        for node, row in zip(rule.nodes, rule.matrix, strict=True):
            at = x + dt * sum(w * k for w, k in zip(row, ks, strict=True))
            ks.append(free(min(at, 1.5) if ks else at, (n + node) * dt)[0])
        new = x + dt * float(np.dot(rule.weights, ks))
        last = x + dt * sum(w * k for w, k in zip(rule.matrix[-1], ks, strict=False))
        if moves:  # told of the last stage where that is at the end, of the new state else
            jumps += read((n + 1) * dt - 0.35 - 0.1 * (min(last, 1.5) if rule.nodes[-1] == 1 else new))[0]
        else:
            jumps += read((n + 1) * dt - 0.35)[0]
        new = min(new, 1.5)
        past.append((x, ks[0], new, ks[-1]))
        x = new
        expected.append(x)
    assert max(expected) == 1.5
    one = np.ones((1, 1))
    loop = Loop(Delayed(moves, slopes), rule, np.float64(dt), False)  # type: ignore[arg-type]
    carry = loop.start(one, 0 * one, constant_past(one, 16, True))
    found = [1.0]
    for _ in range(30):
        carry = loop.step(carry)
        found.append(carry.y.item())
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert carry.z.item() == pytest.approx(jumps, rel=1e-11)


# -- queues ----------------------------------------------------------------------------------------------------


def test_marks_and_lags_by_hand() -> None:
    """Views of three paths; a mark waits in its own queue and in those after it, rates in all of their path."""
    made = system(lot(fc.DCQCN(feedback_delay=None, cnp_interval="7us")))
    assert type(made) is QueueNetwork
    # Hops of the views: 0 over both links, 1 and 2; of packets 10, 30 and 25 KB there.
    np.testing.assert_allclose(
        made._marking(column(20e3, 40e3, 31e3, 10e3)).ravel(), [1 - 0.9 * 0.7, 1.0, 0.0], rtol=1e-12
    )
    y, z = made.start(np.float64)
    z = z._replace(wait=column(1e-6, 2e-6, 3e-6, -4e-6), wait_growth=column(2e-6, 0.0, 0.0, 1e-6))
    marks, own, _ = made.lags(y, z, 0.5)
    back = 11e-6 + 7e-6
    there, waited = np.array([10e-6, 7e-6, 5e-6, 7e-6]), np.array([4e-6, 2e-6, 3e-6, 0.0])
    ways = np.array([back, back, back - 5e-6, back - 3e-6])
    np.testing.assert_allclose(marks.ravel(), there + ways + waited, rtol=1e-12)
    np.testing.assert_allclose(
        own.ravel(), [2 * 11e-6 + 7e-6 + 4e-6, 2 * 6e-6 + 7e-6 + 3e-6, 2 * 8e-6 + 7e-6], rtol=1e-12
    )
    short = dataclasses.replace(made, limit=np.float64(20e-6))
    assert max(float(lag.max()) for lag in short.lags(y, z, 0.5)) == 20e-6


def test_waits_follow_by_one_newton_step() -> None:
    """w = q(u - w)/C, from where it was heading; it neither falls nor grows faster than it may."""
    made = system(lot(fc.DCQCN(feedback_delay=None)))
    _, z = made.start(np.float64)
    wait, growth = column(10e-6, 10e-6, 10e-6, 10e-6), column(1e-6, 1e-6, 1e-6, -30e-6)
    z = z._replace(wait=wait, wait_growth=growth)
    c = np.array([10, 20, 10, 20]) * GIGABIT
    queue = np.array([12e-6, 40e-6, 0.0, 0.1e-6]) * c
    slope = np.array([0.5, 0.0, -0.95, 0.0]) * c
    clock = Clock(np.int32(3), np.float64(3e-6), np.float64(1e-6))
    found = made._waited(clock, z, Lagged((), None, np.concatenate([queue, slope])[:, None]))
    guess = np.array([11e-6, 11e-6, 11e-6, 0.0])
    wanted = guess + (queue / c - guess) / np.array([1.5, 1.0, 1 / 8, 1.0])
    wanted = np.clip(wanted, 3e-6, 11e-6)
    np.testing.assert_allclose(found.wait.ravel(), wanted, rtol=1e-12)
    np.testing.assert_allclose(found.wait_growth.ravel(), wanted - 10e-6, rtol=1e-9, atol=1e-18)
    assert wanted.tolist() != sorted(wanted)


def test_queues_of_a_parking_lot_by_sums() -> None:
    """Constant rates: each queue grows by what arrives, from the way there on, less what is served; nothing below 0."""
    scenario = lot(fc.NoControl())
    flows = tuple(
        dataclasses.replace(flow, initial_rate=rate, multiplicity=m, start=start)
        for flow, rate, m, start in zip(
            scenario.flows, ("6Gbps", "4Gbps", "5Gbps"), (1, 2, 1), (0, "2us", "20us"), strict=True
        )
    )
    run = Run(dataclasses.replace(scenario, flows=flows), 1e-6)
    found = queues(run.steps(60))
    t = 1e-6 * np.arange(61)
    busy = np.maximum(t - 3e-6, 0) * 4  # 14 Gb/s into 10, from when both come
    np.testing.assert_allclose(found[:, 0], busy * GIGABIT, atol=1e-6)
    assert not found[:, 1].any()  # 11 Gb/s into 20
    # What the first link could have sent: 10 until 1 us, 4 until 3 us; the second: all until 4 us, then 14, then 9.
    idle = run.carry.z.idle.ravel() / GIGABIT
    np.testing.assert_allclose(idle, [10e-6 + 2 * 4e-6, 20 * 4e-6 + 14 * 17e-6 + 9 * 39e-6], rtol=1e-9)


def test_own_rates_and_sending() -> None:
    """A flow sends from its start to its last byte, at most what is left in a step."""
    scenario = lot(fc.NoControl())
    flows = tuple(
        dataclasses.replace(f, size=s, start=at)
        for f, s, at in zip(scenario.flows, ("9KB", "1MB", "1MB"), (0, 0, "5us"), strict=True)
    )
    made = system(dataclasses.replace(scenario, flows=flows))
    y, z = made.start(np.float64)
    clock = Clock(np.int32(2), np.float64(2e-6), np.float64(1e-6))
    z = z._replace(left=column(1000.0, 1e6, 1e6))
    np.testing.assert_allclose(made.sending(clock, y, z).ravel(), [1e9, 40 * GIGABIT, 0.0])
    done = z._replace(finish=column(2e-6, 3e-6, np.inf))
    assert made.sending(clock, y, done).ravel().tolist() == [0.0, 40 * GIGABIT, 0.0]
    assert made.active(Clock(np.int32(4), 0.0, np.float64(1e-6)), z).ravel().tolist() == [True, True, False]  # type: ignore[arg-type]
    assert made.active(Clock(np.int32(5), 0.0, np.float64(1e-6)), z).ravel().tolist() == [True] * 3  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["heun", "rk4"])
def test_measures_are_those_of_the_steps(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """Trapezoids over the window, and Jain's index of all flows of all classes, each for itself."""
    jax_by_numpy = SimpleNamespace(checkpoint=lambda function: function, lax=in_numpy.Lax(), tree=jax.tree)
    monkeypatch.setattr(metrics, "jax", jax_by_numpy)
    monkeypatch.setattr(metrics, "with_points", columns_of)
    monkeypatch.setattr(metrics, "_measured", metrics._measured.function)
    scenario = lot(fc.DCQCN(feedback_delay=None, initial_alpha=0.5))
    dt, first, last = 1e-6, 30, 150
    found = metrics.measure(scenario, until="150us", window=("30us", "150us"), dt="1us", method=method)
    run = Run(scenario, dt, method, depth=8192)
    states = run.steps(last)
    weights = np.array([0.5, *[1.0] * (last - first - 1), 0.5]) / (last - first)
    queue = queues(states)[first:]
    np.testing.assert_allclose(found["queue_bytes.mean"], weights @ queue, rtol=1e-9)
    np.testing.assert_allclose(found["queue_bytes.std"], np.sqrt(weights @ (queue - weights @ queue) ** 2), rtol=1e-7)
    np.testing.assert_array_equal(found["queue_bytes.max"], queue.max(axis=0))
    rate = weights @ np.array([run.system.rates(s.y)[:, 0] for s in states[first:]])
    np.testing.assert_allclose(found["rate_bytes_per_s"], rate, rtol=1e-9)
    idle = (states[last].z.idle - states[first].z.idle).ravel()
    used = 1.0 - idle / (np.array([10, 20]) * GIGABIT * (last - first) * dt)
    np.testing.assert_allclose(found["utilisation"], used, rtol=1e-9)
    each = np.repeat(rate, [1, 2, 3])
    assert found["jain"] == pytest.approx(each.sum() ** 2 / (6 * (each**2).sum()), rel=1e-9)
    assert list(found) == [
        *(f"queue_bytes.{one}" for one in ("mean", "std", "max")),
        "utilisation",
        "rate_bytes_per_s",
        "jain",
    ]


# -- delays of two packets ---------------------------------------------------------------------------------------


def test_waits_of_two_packets_by_hand() -> None:
    """TIMELY compares what the present packet found, and one an interval before: sums of queues over capacities."""
    made = system(lot("timely"))
    earlier, group = made._earlier, made.network.groups[0]
    assert earlier.flows == (0, 1, 2)
    assert earlier.read.rows == (0, 1, 0, 1)
    now, before = column(10e3, 20e3, 5e3, -7.0), column(1e3, 2e3, 3e3, 4e3)
    found = earlier.waits(group, now, before)
    c = np.array([10, 20]) * GIGABIT
    present, past = found
    np.testing.assert_allclose(present.ravel(), [10e3 / c[0] + 20e3 / c[1], 5e3 / c[0], 0.0], rtol=1e-12)
    np.testing.assert_allclose(past.ravel(), [1e3 / c[0] + 2e3 / c[1], 3e3 / c[0], 4e3 / c[1]], rtol=1e-12)
    assert earlier.waits(group, now, None) is None
    y, _ = made.start(np.float64)
    marking = column(1e-6, 2e-6, 3e-6, 4e-6)
    intervals = np.broadcast_to(made._fluid[0].interval(group.parameters, y.schemes[0]), (3, 1)).ravel()
    np.testing.assert_allclose(earlier.lags(y, marking).ravel(), marking.ravel() + intervals[[0, 0, 1, 2]], rtol=1e-12)


# -- windows -------------------------------------------------------------------------------------------------------


def test_output_unused_and_windows() -> None:
    made: WindowNetwork = system(lot("hpcc", window_unit="payload", header_bytes="58B"))
    assert type(made) is WindowNetwork
    y, z = made.start(np.float64)
    c = 10 * GIGABIT
    y = y._replace(queue=column(1.0, 0.0))
    assert made.output(y, z, column(1.0, 3 * c)).ravel().tolist() == [c, 2 * c]
    assert (
        made.output(y._replace(queue=column(0.0, 0.0)), z, column(0.5 * c, 0.5 * c)).ravel().tolist() == [0.5 * c] * 2
    )
    wire = float(np.ravel(made.network.packet)[0])
    ratio = wire / 1000.0
    assert ratio > 1.05
    np.testing.assert_allclose(np.ravel(made._wire_per_window((0,))), ratio)
    window = made._fluid[0].window(made.network.groups[0].parameters, y.schemes[0])
    np.testing.assert_allclose(made._windows(y), np.broadcast_to(window * ratio, (3, 1)), rtol=1e-12)
    assert made._own_hops((0, 1, 2))[..., 0].tolist() == [[1, 1, 1], [1, 0, 0]]


def test_telemetry_of_paths_of_different_lengths() -> None:
    """Rows of each view's hops, the last again where a path is shorter; queues, output and arrivals apart."""
    made = system(lot("hpcc"))
    observed = np.arange(12.0)[:, None]
    found = made._telemetry(observed, (0, 1, 2))
    assert found.queue[..., 0].tolist() == [[0, 2, 3], [1, 2, 3]]
    assert found.output[..., 0].tolist() == [[4, 6, 7], [5, 6, 7]]
    assert found.arriving[..., 0].tolist() == [[8, 10, 11], [9, 10, 11]]
    np.testing.assert_allclose(found.capacity[..., 0] / GIGABIT, [[10, 10, 20], [20, 10, 20]])
    one = made._telemetry(observed, (1, 1))
    assert one.queue[..., 0].tolist() == [[2]]


def test_a_window_is_kept_by_counting() -> None:
    """A step sends what the window has room for by its end.

    Acknowledged is, to what comes in a step, what was sent a round trip before: the way, and what a packet of then
    waited.
    """
    scenario = fc.incast(4, scheme="hpcc", rate="100Gbps", delay="2us")
    run = Run(scenario, 0.25e-6)
    made: Any = run.system
    states = run.steps(160)
    sent = np.array([s.y.sent[0, 0] for s in states])
    queue = queues(states)[:, 0]
    times = 0.25e-6 * np.arange(161)
    c = 100 * GIGABIT
    own, forward = float(np.ravel(made.network.own_lag)[0]), float(np.ravel(made.network.arrival_lag)[0])
    leaves = times + queue / c  # of what comes then
    for n in range(100, 160):
        acked = float(states[n].z.acked[0, 0])
        out = times[n] - (own - forward)  # when the byte left the queue
        came = np.interp(out, leaves, times)
        assert acked == pytest.approx(np.interp(came - forward, times, sent), abs=c * 0.25e-6)
        # What the step acknowledges is sent again in it, as far as the window has room and the pace allows.
        window = float(np.ravel(made._windows(states[n].y))[0])
        offered = float(np.ravel(made._offered(states[n].y, states[n].z, np.float64(0.25e-6)))[0])
        room = window + float(states[n + 1].z.acked[0, 0]) - sent[n]
        assert sent[n + 1] - sent[n] == pytest.approx(np.clip(room, 0.0, offered * 0.25e-6), rel=1e-9, abs=1e-6)
    assert queue.max() > 50e3


def test_a_queue_further_on_gets_bytes_of_earlier() -> None:
    """One flow over two links: each queue has what was sent its own lag before the step's end, not the first's."""
    links = (lot().links[0], dataclasses.replace(lot().links[1], source="b"))
    flow = dataclasses.replace(lot("hpcc").flows[0], path=(0, 1))
    run = Run(fc.Scenario(links, (flow,)), 0.25e-6)
    made, z = run.system, run.steps(1)[0].z
    history = SimpleNamespace(read=lambda _, at, rows: np.broadcast_to(at.offset + at.theta, (len(rows), 1)) * 1e3)
    reached = made._arrive(history, 0, np.float64(0.25e-6), z).reached[:, 0]
    np.testing.assert_allclose(reached, 1e3 * (1.0 - np.ravel(made.network.arrival_lag) / 0.25e-6))
    assert reached[0] > reached[1] + 1e4


def test_nothing_is_acknowledged_twice_where_a_round_trip_outgrows_time() -> None:
    """Bytes acknowledged by a step's end fell, as a wait that jumped makes them: a step has none, not fewer."""
    run = Run(fc.incast(2, scheme="hpcc", rate="100Gbps", delay="2us"), 0.25e-6)
    last = run.steps(80)[-1]
    history = SimpleNamespace(read=lambda *_: np.asarray(last.z.acked) - 500.0)
    made = run.system
    plain = SimpleNamespace(**{name: getattr(made, name) for name in ("network", "_offered", "_windows", "lags")})
    plain._wait_longer, plain._arrive = lambda history, n, dt, z: z, lambda history, n, dt, z: z
    then = type(made).look_back(plain, history, 80, np.float64(0.25e-6), last.y, last.z)
    assert np.ravel(then.newly).tolist() == [0.0, 0.0]


# -- classes -------------------------------------------------------------------------------------------------------


def shared(wanted: np.ndarray, capacity: float, weights: np.ndarray, priorities: tuple[float, ...]) -> np.ndarray:
    """By raising a level per priority until the link is full: bisection, no rounds of who is sated."""
    got, left = np.zeros(len(wanted)), capacity
    for priority in sorted(set(priorities), reverse=True):
        mine = np.array(priorities) == priority
        level = 0.0
        if wanted[mine].sum() <= left:
            got[mine] = wanted[mine]
        else:
            low, high = 0.0, left / weights[mine].min()
            for _ in range(200):
                level = 0.5 * (low + high)
                low, high = (level, high) if np.minimum(wanted, level * weights)[mine].sum() < left else (low, level)
            got[mine] = np.minimum(wanted, level * weights)[mine]
        left = max(left - got[mine].sum(), 0.0)
    return got


def test_classes_share_a_link() -> None:
    priorities, weights = (0, 2, 0, 0), (1.0, 1.0, 2.0, 5.0)
    classes = tuple(fc.TrafficClass(priority=p, weight=w) for p, w in zip(priorities, weights, strict=True))
    made: ClassNetwork = system(lot("hpcc", classes=classes))
    assert type(made) is ClassNetwork
    rng = np.random.default_rng(3)
    for _ in range(40):
        wanted = rng.random((2, 4)) * rng.choice([0.0, 0.2, 1.0, 3.0], (2, 4)) * 10 * GIGABIT
        found = made._served(wanted.reshape(-1, 1)).reshape(2, 4)
        for link, capacity in enumerate((10 * GIGABIT, 20 * GIGABIT)):
            expected = shared(wanted[link], capacity, np.array(weights), priorities)
            # A class that wants less than its share has what it wants; the hungry ones' shares may exceed nothing.
            np.testing.assert_allclose(found[link], expected, rtol=1e-9, atol=1.0)
    assert np.ravel(made._share((0, 1, 2))).tolist() == [1 / 8] * 3
    y, z = made.start(np.float64)
    z = z._replace(service=column(*[GIGABIT] * 8))
    assert np.ravel(made.unused(Clock(0, 0.0, 2.0), z, z.service)).tolist() == [12 * GIGABIT, 32 * GIGABIT]  # type: ignore[arg-type]
    assert made.shown(y, z)["class_queue"].shape == (8, 1)


def two_classes(size: Any = float("inf")) -> fc.Scenario:
    """Three flows into 10 Gb/s: 4 of a class that goes first, and 6 and 3 of one at weights of 1 and 2 behind."""
    classes = (fc.TrafficClass(priority=1), fc.TrafficClass(weight=1.0), fc.TrafficClass(weight=2.0))
    made = fc.incast(
        3, rate="10Gbps", delay="1us", line_rate="40Gbps", scheme=fc.NoControl(), marking=None, classes=classes
    )
    flows = tuple(
        dataclasses.replace(flow, traffic_class=i, initial_rate=rate, size=size if i == 1 else float("inf"))
        for i, (flow, rate) in enumerate(zip(made.flows, ("4Gbps", "6Gbps", "3Gbps"), strict=True))
    )
    return dataclasses.replace(made, flows=flows, header_bytes=0)


def test_queues_of_classes_by_hand() -> None:
    """The first has its 4 Gb/s; of the other 6 the second has 3, for 2 and 4 are their shares and the third wants 3."""
    run = Run(two_classes(), 0.5e-6)
    states = run.steps(80)
    lag = float(np.ravel(run.network.arrival_lag)[0])
    late = 0.5e-6 * 80 - lag
    np.testing.assert_allclose(queues(states)[-1], [0.0, 3 * GIGABIT * late, 0.0], atol=1.0)
    came = states[-1].y.came.ravel()
    np.testing.assert_allclose(came, np.array([4, 6, 3]) * GIGABIT * late, rtol=1e-9)
    np.testing.assert_allclose(run.carry.z.service.ravel(), np.array([4, 3, 3]) * GIGABIT, rtol=1e-9)
    np.testing.assert_allclose(run.carry.z.idle.ravel(), [10 * GIGABIT * lag], rtol=1e-6)
    kept = run.system.remembered(states[-1].y).ravel()
    whole = [queues(states)[-1].sum(), 10 * GIGABIT, 13 * GIGABIT]  # of the link: queue, output, arrivals
    np.testing.assert_allclose(kept[-3:], whole, rtol=1e-6)
    np.testing.assert_allclose(kept[12:15], came - queues(states)[-1], rtol=1e-9)


def test_the_last_byte_of_a_class_waits_for_its_own() -> None:
    """30 KB at 6 Gb/s into 3 Gb/s: 40 us to send them, and 15 KB before the last byte, served in 40 us more."""
    run = Run(two_classes(30e3), 0.5e-6)
    run.steps(200)
    z = run.carry.z
    assert z.finish is not None
    assert z.drain is not None
    assert z.finish[1, 0] == pytest.approx(40e-6, rel=1e-9)
    assert z.drain[1, 0] == pytest.approx(40e-6, rel=1e-6)
    assert np.isnan(z.drain[[0, 2], 0]).all()
    # Of a class that has all it wants nothing waits.
    waits = queues([run.carry])[0] / (np.array([4, 3, 3]) * GIGABIT)
    np.testing.assert_allclose(waits, 0.0, atol=1e-12)


# -- steps of each point's own ----------------------------------------------------------------------------------


def test_what_adaptive_steps_ask_of_queues() -> None:
    """Empty queues are empty, waits grow as before, and what a queue lacked to fall its link could have sent."""
    made = system(lot(fc.DCQCN(feedback_delay=None)))
    y, z = made.start(np.float64)
    assert made.lags_move
    assert not system(fc.incast(2, scheme=fc.DCQCN(feedback_delay="4us"))).lags_move
    fast = y.schemes[0]._replace(rate=np.full((3, 1), 90 * GIGABIT))
    found = made.bounded(y._replace(queue=column(-3.0, 5.0), schemes=(fast,)))
    assert found.queue.ravel().tolist() == [0.0, 5.0]
    assert float(np.max(made.rates(found))) <= 40 * GIGABIT * (1 + 1e-12)
    paced = made.paced(z._replace(wait_growth=column(1.0, 2.0, 3.0, 4.0)), np.float64(0.5))
    assert paced.wait_growth.ravel().tolist() == [0.5, 1.0, 1.5, 2.0]
    queue = column(*[0.0] * 8)
    clock = Clock(np.int32(3), np.float64(3e-6), np.float64(1e-6))
    stopped = y._replace(queue=column(7.0, 9.0))
    settled = made.settle(clock, z._replace(idle=column(1.0, 2.0)), stopped, Lagged((), None, queue))
    assert settled.idle.ravel().tolist() == [8.0, 11.0]


# -- flow control ----------------------------------------------------------------------------------------------------


def acc(**pfc: Any) -> LosslessNetwork:
    return system(lot(fc.ACC(), pfc=fc.PFC(xoff="100KB", xon_gap="30KB", **pfc), buffer="9MB"))


def test_ingresses_by_hand() -> None:
    """Hosts have one each, with their access link's delay; the first link leads to the second, and has one."""
    gate = acc()._gate
    assert gate.hops == (0, 1, 2, 3)
    assert gate.own == (True, False, True, True)
    assert gate.ports == (1, -1)
    assert gate.hosts == (0, 2, 3)
    assert gate.count == 4
    np.testing.assert_allclose(np.ravel(gate.delay), [1e-6, 3e-6, 1e-6, 1e-6])
    np.testing.assert_allclose(np.ravel(gate.share), [1.0, 1.0, 1 / 2, 1 / 3])
    lag = plain_network(lot(fc.ACC())).arrival_lag
    assert lag is not None
    ways = np.ravel(lag)
    np.testing.assert_allclose(np.ravel(gate.hop_lag), [ways[0], ways[1] - ways[0], ways[2], ways[3]], rtol=1e-12)


def test_marks_of_what_leaves() -> None:
    """CE goes before UE before none: of 100 B of which 20 had CE and 30 UE, at a queue that marks 0.2, and one that is
    undetermined."""
    made = acc()
    hops, queues_ = 4, 2
    zero = np.zeros((3 * hops, 1))
    now = Counts(zero, zero + 5.0, np.zeros((4, 1)))
    leaving = np.concatenate([np.full(4, 100.0), np.full(4, 20.0), np.full(4, 30.0)])[:, None]
    nothing = np.zeros((queues_, 1))
    port = TernaryState(nothing, nothing, column(np.inf, 0.0), nothing, nothing, nothing, nothing)
    made = dataclasses.replace(
        made,
        network=dataclasses.replace(made.network, ingress=dataclasses.replace(made._gate, max_on=column(-1.0, 1e-6))),
    )
    left, after = made._marked(port, now, leaving, column(30e3, 30e3), np.float64(1e-6))
    moved, ce, ue = np.split(left.ravel() - 5.0, 3)
    np.testing.assert_allclose(moved, [100.0] * 4)
    np.testing.assert_allclose(ce, [20 + 0.2 * 80, 20, 20 + 0.2 * 80, 20], rtol=1e-12)
    np.testing.assert_allclose(ue, [0.8 * 30, 80.0, 0.8 * 30, 80.0], rtol=1e-12)
    assert after.on.ravel().tolist() == [np.inf, 1e-6]


def test_flow_control_keeps_all_bytes_and_stops_senders() -> None:
    """Line rate into a tenth: bytes are kept at each step, and the queue stays below xoff and what still comes."""
    scenario = fc.incast(
        2, scheme=fc.ACC(), rate="10Gbps", line_rate="10Gbps", delay="1us", marking=None, buffer="9MB",
        pfc=fc.PFC(xoff="4KB", xon_gap="2KB"),
    )  # fmt: skip
    run = Run(scenario, 0.5e-6)
    made: Any = run.system
    assert type(made) is LosslessNetwork
    paused = []
    for carry in run.steps(150)[1:]:
        counts, pauses = carry.y.counts, carry.z.pauses
        hops = len(made._hops)
        came, left = counts.came[:hops, 0], counts.left[:hops, 0]
        assert (left <= came + 1e-9).all()
        assert carry.y.queue[0, 0] == pytest.approx((came - left).sum(), abs=1e-6)
        assert (came <= np.ravel(carry.y.sent) + 1e-6).all()
        acks = pauses.acks[:2, 0]
        assert (acks <= left + 1e-6).all()
        assert came[0] - left[0] <= 4e3 + 2 * 2e-6 * 10 * GIGABIT + 2 * 0.5e-6 * 10 * GIGABIT
        paused.append(float(counts.paused[0, 0]))
    assert paused[-1] > 5e-6
    assert np.diff(paused).max() <= 0.5e-6 + 1e-15


def test_pauses_of_links_without_detection_or_with_it() -> None:
    np.testing.assert_array_equal(np.ravel(acc()._gate.max_on), [-1.0, -1.0])
    scenario = lot(fc.ACC(), pfc=fc.PFC(xoff="100KB"), buffer="9MB")
    bare = dataclasses.replace(scenario.links[0], marking=None)
    aware = dataclasses.replace(
        scenario.links[1], marking=fc.RED("20KB", "60KB", 0.6, mark_on="departure", max_on="9us")
    )
    made = system(dataclasses.replace(scenario, links=(bare, aware)))
    np.testing.assert_allclose(np.ravel(made._gate.max_on), [-1.0, 9e-6])
    assert made.network.kmin.ravel().tolist() == [np.inf, 20e3]


def test_round_trips_and_marks_by_counts() -> None:
    """Follow the byte that is acknowledged as a step ends: when it was sent, read off the sums; and the shares of CE.

    A queue that marks one of four from 2 KB on: of what was acknowledged since a step began, as many bytes are marked
    as counts of CE grew. Times are those of lines between the sums, which both follow.
    """
    marking = fc.RED("2KB", "2.001KB", 0.25)
    dt = 0.5e-6
    scenario = fc.incast(
        2, scheme=fc.ACC(), rate="10Gbps", line_rate="10Gbps", delay="1us", marking=lambda rate: marking, buffer="9MB",
        pfc=fc.PFC(xoff="400KB", xon_gap="20KB"),
    )  # fmt: skip
    run = Run(scenario, dt)
    states = run.steps(60)
    times = dt * np.arange(61)
    sent = np.array([s.y.sent[0, 0] for s in states])
    acks = np.array([s.z.pauses.acks[:, 0] for s in states])
    checked = marked = 0
    longest = 0.0
    for n in range(1, 61):
        pauses = states[n].z.pauses
        assert pauses is not None
        trip = pauses.round_trip[0, 0]
        longest = max(longest, *pauses.round_trip[:, 0].tolist())
        assert pauses.longest[0] >= longest * (1 - 1e-12)
        if acks[n, 0] > acks[n - 1, 0] and acks[n, 0] < sent[n]:
            assert trip == pytest.approx(times[n] - np.interp(acks[n, 0], sent, times), abs=1e-12)
            checked += 1
        newly, ce = acks[n, 0] - acks[n - 1, 0], acks[n, 2] - acks[n - 1, 2]
        assert pauses.shares[0, 0] == pytest.approx(ce / newly if newly > 1e-9 else 0.0, abs=1e-12)
        assert pauses.shares[2, 0] == 0.0
        marked += ce > 0
        counts = states[n].y.counts
        assert counts.left[2:4, 0].sum() <= counts.left[:2, 0].sum() * 1.0 + 1e-9
    assert checked > 20
    assert marked > 5
    total = states[-1].y.counts
    late = np.array([s.y.queue[0, 0] > 2001 for s in states])
    assert total.left[2, 0] <= total.left[0, 0]
    assert late.any()
