"""The fluid network: bounds, symmetries, conservation, delays, finite flows, gradients, methods."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.dde.stepping import METHODS, Loop
from fluidcc.engines.fluid import windows
from fluidcc.engines.fluid.engine import Numbers, begin, numbers_of
from fluidcc.engines.fluid.marking import along_path, red
from fluidcc.engines.fluid.network import Network, network_of, with_points
from fluidcc.engines.fluid.plan import plan_of
from fluidcc.engines.fluid.queues import QueueNetwork
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import RED, Scenario, base_rtt, resolve
from fluidcc.schemes.dcqcn import DCQCN
from fluidcc.units import Rate

GBPS, KB, US = Rate(1e9 / 8), 1e3, 1e-6
C = 40 * GBPS
STEP = 1 * US

# Tolerances, each with its reason.
ROUNDING = 1e-9  # sums in another order: 1e-16, grown over thousands of steps of a marginally stable loop
WAITING = 1e-8  # s: h^2 q''/C at h = 1 us; q'' is the rates' slope, at most about C/50 us, and Newton leaves less
SMOOTH = 1e-6  # Heun at 1 us on smooth solutions with time constants of 50 us and more, off by (h/50 us)^2/12 at most
FLOAT32 = 3e-4  # 24 bits over thousands of steps: 6e-8 times 5000
DIFFERENCES = 1e-5  # central differences with relative steps of 1e-6: 1e-10 of rounding over 1e-6, with a margin

PATH = DCQCN(feedback_delay=None)
RECORDS = 1 << 16  # of the history, where runs share one


def run(scenario: Scenario, until: Any, **options: Any) -> Trace:
    options.setdefault("dt", STEP)
    return fc.simulate(scenario, until=until, estimate_error=False, **options)


def assert_same(one: Trace, other: Trace, tolerance: float) -> None:
    """Compare every variable, relative to its largest value."""
    for name in one.dataset.data_vars:
        a, b = one[name].values, other[name].values
        scale = max(float(np.max(np.abs(a))), 1e-300)
        assert np.max(np.abs(a - b)) <= tolerance * scale, name


# -- bounds ---------------------------------------------------------------------------------------------------

# The shape of every example is the same (rows that may collapse stay distinct), so that all share one compilation.
BUILDERS = {"incast": fc.incast, "parking lot": fc.parking_lot}


@pytest.mark.usefixtures("one_depth")
@pytest.mark.parametrize(
    ("name", "delay"),
    [
        ("incast", "path"),
        ("parking lot", "fixed"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("incast", "fixed"), ("parking lot", "path"))),
    ],
)
def test_bounds(name: str, delay: str) -> None:
    """Queues are not negative, alpha is a share, rates lie between 0 and the line rate."""

    @settings(max_examples=25 if delay == "fixed" else 10)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        def draw(low: float, high: float) -> float:
            return data.draw(st.floats(low, high))

        def distinct(low: int, high: int) -> list[int]:
            return data.draw(st.lists(st.integers(low, high), min_size=3, max_size=3, unique=True))

        line = draw(1, 400) * GBPS
        kmin = draw(0, 300 * KB)
        scenario = BUILDERS[name](
            3,
            rate=draw(1, 200) * GBPS,
            line_rate=line,
            marking=RED(kmin, kmin + draw(0, 500 * KB), draw(1e-4, 1)),
            scheme=DCQCN(
                g=draw(1e-4, 1),
                rate_ai=draw(0, 2) * GBPS,
                byte_counter=draw(100 * KB, 1e10),
                timer=draw(20 * US, 2e-3),
                alpha_timer=draw(20 * US, 200 * US),
                cnp_interval=draw(20 * US, 100 * US),
                initial_alpha=draw(0, 1),
                fast_recovery_steps=data.draw(st.integers(0, 9)),
                feedback_delay=draw(33 * US, 60 * US) if delay == "fixed" else None,
            ),
            initial_rate=[line * share / 1000 for share in distinct(0, 1000)],
            multiplicity=[float(m) for m in distinct(1, 30)],
            start=[t * US for t in distinct(0, 1500)],
        )
        trace = run(scenario, 3e-3)
        assert (trace["queue"].values >= 0).all()
        assert ((trace["alpha"].values >= 0) & (trace["alpha"].values <= 1)).all()
        for rates in ("rate", "pacing_rate", "target_rate"):
            assert ((trace[rates].values >= 0) & (trace[rates].values <= line * (1 + 1e-12))).all(), rates
        assert (np.diff(trace["sent"].values, axis=0) >= -1e-6).all()

    check()


# -- symmetries -----------------------------------------------------------------------------------------------


def permuted(scenario: Scenario, order: list[int]) -> Scenario:
    return dataclasses.replace(scenario, flows=tuple(scenario.flows[i] for i in order))


def several(builder: Any, **changes: Any) -> Scenario:
    """Three flows that differ in everything, of two groups of equations, interleaved."""
    scenario = builder(
        3,
        initial_rate=["40Gbps", "10Gbps", "25Gbps"],
        start=["0", "100us", "40us"],
        size=[math.inf, "100KB", "300KB"],
        multiplicity=[1, 2, 3],
        **changes,
    )
    schemes = [DCQCN(), DCQCN(hyper_increase=True, byte_counter="1MB"), DCQCN(g=1 / 16, timer="100us")]
    flows = [dataclasses.replace(f, scheme=s) for f, s in zip(scenario.flows, schemes, strict=True)]
    return resolve(dataclasses.replace(scenario, flows=tuple(flows)))


@pytest.mark.slow
@pytest.mark.parametrize(("builder", "order"), [(fc.incast, [2, 0, 1]), (fc.parking_lot, [1, 2, 0])])
def test_order_of_flows_does_not_matter(builder: Any, order: list[int]) -> None:
    one = run(several(builder), "4ms")
    other = run(permuted(several(builder), order), "4ms")
    back = Trace(other.dataset.isel(flow=[order.index(i) for i in range(3)]))
    assert back.dataset.flow.values.tolist() == one.dataset.flow.values.tolist()
    assert_same(one, back, ROUNDING)


def scaled(scenario: Scenario, factor: float) -> Scenario:
    """Every quantity with bytes in its unit multiplied."""

    def part(obj: Any) -> Any:
        from fluidcc.scenario.parameters import specs

        return dataclasses.replace(
            obj,
            **{
                name: getattr(obj, name) * factor
                for name, spec in specs(obj).items()
                if "bytes" in spec.dimension and getattr(obj, name) is not None
            },
        )

    links = tuple(dataclasses.replace(part(link), marking=part(link.marking)) for link in scenario.links)
    flows = tuple(dataclasses.replace(part(flow), scheme=part(flow.scheme)) for flow in scenario.flows)
    return dataclasses.replace(part(scenario), links=links, flows=flows)


@pytest.mark.parametrize(("factor", "tolerance"), [(8.0, 0.0), (0.125, 0.0), (3.0, ROUNDING)])
def test_unit_of_data_does_not_matter(factor: float, tolerance: float) -> None:
    """Bytes, bits, or anything else: bit for bit where the factor is a power of two."""
    scenario = several(fc.incast)
    one, other = run(scenario, "4ms"), run(scaled(scenario, factor), "4ms")
    rescaled = other.dataset.copy()
    for name in ("queue", "sent", "rate", "pacing_rate", "target_rate"):
        rescaled[name] = other[name] / factor
    assert_same(one, Trace(rescaled), tolerance)
    assert None not in one.summary["fct_s"]
    assert other.summary["fct_s"] == pytest.approx(one.summary["fct_s"], rel=max(tolerance, 1e-15))
    assert other.summary["jain"] == pytest.approx(one.summary["jain"], rel=max(tolerance, 1e-15))


@pytest.mark.usefixtures("one_depth", "full_columns")
def test_a_class_is_that_many_flows() -> None:
    """Two in one class, and one in two classes of a half each, so that both runs share a shape."""
    one = run(fc.incast(3, multiplicity=[2, 0.5, 0.5], start=["0", "1ms", "1ms"]), "4ms")
    many = run(fc.incast(3, start=["0", "0", "1ms"]), "4ms")
    assert one["queue"].values == pytest.approx(many["queue"].values, rel=ROUNDING, abs=1e-3)
    assert one["rate"].values == pytest.approx(many["rate"].values[:, [1, 2, 2]], rel=ROUNDING)
    assert many["rate"].values[:, 0] == pytest.approx(many["rate"].values[:, 1], rel=ROUNDING)
    for name in ("jain", "utilisation", "flows"):
        assert one.summary[name] == pytest.approx(many.summary[name], rel=ROUNDING), name


# -- conservation, sampling, starts ---------------------------------------------------------------------------


def cumulated(values: np.ndarray, dt: float) -> np.ndarray:
    """Integral by trapezoids over the grid."""
    return np.concatenate([[0.0], np.cumsum((values[1:] + values[:-1]) / 2) * dt])


@pytest.mark.usefixtures("one_depth", "full_columns")
def test_bytes_are_conserved() -> None:
    """What the link sent and what waits is what arrived: the integral of the rates, as trapezoids of each step."""
    counts = np.array([1, 2, 3])
    scenario = fc.incast(3, initial_rate=["10Gbps", "20Gbps", "30Gbps"], multiplicity=counts.tolist())
    trace = run(scenario, "10ms", sample_interval=STEP)
    assert np.diff(trace.dataset.time.values) == pytest.approx(STEP)
    arrived = cumulated(trace["rate"].values @ counts, STEP)
    kept = (trace["sent"] + trace["queue"]).values[:, 0]
    # A step's second stage predicts the rate at its end: off by h^2 R'' of the rates per step, R'' ~ R/(50 us)^2.
    assert np.max(np.abs(kept - arrived)) < 1e-5 * arrived[-1]
    assert (np.diff(trace["sent"].values[:, 0]) <= C * STEP * (1 + 1e-9)).all()


def test_bytes_are_conserved_along_a_path() -> None:
    """With path delays, a link gets what was sent its distance earlier."""
    trace = run(fc.parking_lot(3, scheme=PATH, delay="20us", initial_rate="15Gbps"), "4ms", sample_interval=STEP)
    rate = trace["rate"].values
    for link, parts in ((0, {0: 20, 1: 20}), (1, {0: 40, 2: 20})):  # steps from sender to the link's queue
        arrivals = np.zeros(len(rate))
        for flow, lag in parts.items():
            arrivals += np.concatenate([np.zeros(lag), rate[: len(rate) - lag, flow]])
        arrived = cumulated(arrivals, STEP)
        kept = (trace["sent"] + trace["queue"]).values[:, link]
        # Beside the step's own error: trapezoids see half of the jump when a flow's first bytes arrive.
        assert np.max(np.abs(kept - arrived)) < 1e-5 * arrived[-1] + 2 * C * STEP


def without_clock(summary: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in summary.items() if k not in ("compile_s", "wall_s")}


@pytest.mark.usefixtures("one_depth", "full_columns")
def test_results_do_not_depend_on_the_output_grid() -> None:
    scenario = fc.incast(3, start=["0", "1ms", "2ms"], size=[math.inf, "2MB", math.inf])
    fine = run(scenario, "10ms", sample_interval=STEP)
    for interval in (None, "7us", "50us", "333us", "5ms"):
        coarse = run(scenario, "10ms", sample_interval=interval)
        assert without_clock(coarse.summary) == without_clock(fine.summary)
        places = np.round(coarse.dataset.time.values / STEP).astype(int)
        inside = places < fine.dataset.sizes["time"]
        for name in fine.dataset.data_vars:
            values, expected = coarse[name].values[inside], fine[name].values[places[inside]]
            # Bytes sent are a difference with capacity times time, and times are products that round.
            assert np.max(np.abs(values - expected)) <= (1e-15 * C * 10e-3 * 10 if name == "sent" else 0), name


@pytest.mark.usefixtures("one_depth", "full_columns")
def test_summary_is_that_of_every_step() -> None:
    """Means weigh every step of the window alike and its ends by one half, whatever is sampled."""
    trace = run(fc.incast(3), "2ms", window=("300us", "1745us"), sample_interval=STEP)
    inside, summary = trace.dataset.isel(time=slice(300, 1746)), trace.summary
    queue, seconds = inside["queue"].values[:, 0], 1445 * STEP
    mean = cumulated(queue, STEP)[-1] / seconds
    assert summary["queue_bytes"]["mean"] == pytest.approx(mean, rel=1e-12)
    std = math.sqrt(cumulated((queue - mean) ** 2, STEP)[-1] / seconds)
    assert summary["queue_bytes"]["std"] == pytest.approx(std, rel=1e-9)
    assert summary["queue_bytes"]["max"] == queue.max()
    assert summary["queue_bytes"]["max_whole_run"] == trace["queue"].values.max()
    rates = [cumulated(rate, STEP)[-1] / seconds for rate in inside["rate"].values.T]
    assert summary["rate_bytes_per_s"] == pytest.approx(rates, rel=1e-12)
    sent = inside["sent"].values[[0, -1], 0]
    assert summary["utilisation"] == pytest.approx((sent[1] - sent[0]) / (C * seconds), rel=1e-9)


@pytest.mark.usefixtures("one_depth", "full_columns")
@pytest.mark.parametrize("interval", [7e-6, 333e-6])
def test_samples_are_as_far_apart_as_asked(interval: float) -> None:
    trace = run(fc.incast(3), "2ms", sample_interval=interval)
    assert np.diff(trace.dataset.time.values) == pytest.approx(interval, abs=STEP / 2)


@pytest.mark.usefixtures("one_depth")
@pytest.mark.parametrize("steps", [100, 1999, 2001, 5000, 20000])
def test_a_run_ends_at_its_horizon(steps: int) -> None:
    """However few its steps are: two flows without control fill their queue until then, at the rate of the link."""
    trace = run(fc.incast(2, scheme=fc.NoControl(), rate="40Gbps"), steps * STEP)
    assert trace.dataset.time.values[-1] == pytest.approx(steps * STEP, rel=1e-12)
    filled = pytest.approx(C * (steps - 1) * STEP, rel=1e-9)  # the first bytes come after a microsecond
    assert trace["queue"].values[-1, 0] == filled
    assert trace.summary["queue_bytes"]["max_whole_run"] == filled


@pytest.mark.usefixtures("one_depth", "full_columns")
def test_late_starters_are_frozen() -> None:
    scenario = fc.incast(3, start=["0", "500us", "1200.3us"], initial_rate=["30Gbps", "20Gbps", "10Gbps"])
    trace = run(scenario, "2ms", sample_interval=STEP)
    late = tuple(dataclasses.replace(flow, start=1.0) for flow in scenario.flows[1:])
    with pytest.warns(UserWarning, match="start: 1s is not within the run"):
        alone = run(dataclasses.replace(scenario, flows=(scenario.flows[0], *late)), "2ms", sample_interval=STEP)
    time = trace.dataset.time.values
    for flow, start in ((1, 500e-6), (2, 1200.3e-6)):
        before = time < start - STEP / 2
        initial = scenario.flows[flow].initial_rate
        assert (trace["rate"].values[before, flow] == 0).all()
        assert (trace["pacing_rate"].values[before, flow] == initial).all()
        assert (trace["target_rate"].values[before, flow] == initial).all()
        assert (trace["alpha"].values[before, flow] == 1).all()
        after = time > start + STEP
        assert (trace["rate"].values[after, flow] > 0).all()
        assert trace["alpha"].values[after, flow][0] < 1
    before = time < 500e-6
    for name in ("queue", "rate", "alpha"):
        assert trace[name].values[before, 0] == pytest.approx(alone[name].values[before, 0], rel=1e-12)


# -- finite flows ---------------------------------------------------------------------------------------------

UNMARKED = RED("1GB", "1GB")


def completion(flows: int, size: float, scheme: DCQCN, delay: str) -> tuple[list[float], float]:
    """Completion times; and what they hold beside sending and queueing.

    That is propagation, the last packet's store at the switch, and a 64 B ACK's at switch and receiver. Three flows are
    there always, so that all cases share a shape; those in addition to ``flows`` begin after the run.
    """
    starts = ["0", "1s" if flows == 1 else "0", "1s"]
    scenario = fc.incast(3, size=size, scheme=scheme, delay=delay, marking=UNMARKED, start=starts)
    fixed_point = base_rtt(scenario, scenario.flows[0]) + (min(size, 1000) + 2 * 64) / C
    times = run(scenario, "5ms").summary["fct_s"]
    assert times[flows:] == [None] * (3 - flows)
    return times[:flows], fixed_point


@pytest.mark.usefixtures("one_depth", "full_columns")
@pytest.mark.parametrize("size", [1e6, 1.0021e6, 123.0])
@pytest.mark.parametrize(("scheme", "delay"), [(DCQCN(), "1us"), (PATH, "1us"), (PATH, "100us")])
def test_a_flow_alone_takes_its_size_over_its_rate(size: float, scheme: DCQCN, delay: str) -> None:
    (fct,), rtt = completion(1, size, scheme, delay)
    assert fct == pytest.approx(size / C + rtt, rel=1e-12)


@pytest.mark.usefixtures("one_depth", "full_columns")
def test_two_flows_at_line_rate_wait_for_each_other() -> None:
    """Unmarked, both send at line rate until size/C; the last byte then finds a queue of one size."""
    times, rtt = completion(2, 1e6, DCQCN(), "1us")
    assert times == pytest.approx([2e6 / C + rtt] * 2, rel=1e-12)


@pytest.mark.usefixtures("one_depth", "full_columns")
def test_sizes_that_end_within_a_step() -> None:
    times, rtt = completion(2, 1.0021e6, DCQCN(), "1us")
    assert times == pytest.approx([2.0042e6 / C + rtt] * 2, rel=1e-9)


@pytest.mark.usefixtures("one_depth", "full_columns")
@pytest.mark.parametrize("delay", ["1us", "100us"])
def test_the_last_byte_waits_in_the_queue_it_finds(delay: str) -> None:
    times, rtt = completion(2, 1e6, PATH, delay)
    assert times == pytest.approx([2e6 / C + rtt] * 2, rel=1e-9)


@pytest.mark.usefixtures("one_depth", "full_columns")
def test_finite_flows_leave_the_rest_to_others() -> None:
    scenario = fc.incast(3, size=["2MB", math.inf, "1GB"], start=["0", "0", "100ms"])
    trace = run(scenario, "10ms", sample_interval=STEP)
    times = trace.summary["fct_s"]
    assert times[0] is not None
    assert times[1] is None  # started too late
    done = trace.dataset.time.values > times[0]
    assert (trace["rate"].values[done, 0] == 0).all()
    sent = cumulated(trace["rate"].values[:, 0], STEP)[-1]
    assert sent == pytest.approx(2e6, abs=C * STEP)  # trapezoids see half of the jumps at both ends
    assert trace["rate"].values[-1, 1] > 1.1 * trace["rate"].values[done, 1][0]


# -- delays ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("one_depth")
@pytest.mark.slow
@pytest.mark.parametrize("scheme", [PATH, DCQCN()], ids=["path", "fixed"])
def test_path_delays_and_fixed_delay_have_one_equilibrium(scheme: DCQCN) -> None:
    fixed_point = fc.equilibrium(fc.incast(2)).as_dict()
    last = run(fc.incast(2, scheme=scheme), "200ms").dataset.isel(time=-1)
    assert float(last["queue"][0]) == pytest.approx(fixed_point["queue_bytes"], rel=1e-5)
    assert last["rate"].values == pytest.approx(fixed_point["rate_bytes_per_s"], rel=1e-5)


@pytest.mark.slow
def test_marks_add_up_along_a_parking_lot() -> None:
    """Flow 0 crosses both queues: its probability is 1-(1-p)(1-p), and so are rates and queues."""
    scenario = fc.parking_lot(3, multiplicity=[1, 1, 2])
    fixed_point = fc.equilibrium(scenario)
    p = [link["marking_probability"] for link in fixed_point.links]
    assert fixed_point.flows[0]["marking_probability"] == pytest.approx(1 - (1 - p[0]) * (1 - p[1]), rel=1e-12)
    assert p[1] > p[0] > 0
    last = run(scenario, "300ms").dataset.isel(time=-1)
    assert last["queue"].values == pytest.approx([link["queue_bytes"] for link in fixed_point.links], rel=1e-4)
    assert last["rate"].values == pytest.approx([flow["rate_bytes_per_s"] for flow in fixed_point.flows], rel=1e-4)


def test_marking_of_a_queue_and_of_a_path() -> None:
    with jax.enable_x64(True):
        red_of, path_of = jax.jit(red), jax.jit(along_path)
        queues = jnp.asarray([0.0, 5e3, 102.5e3, 2e5, 2e5 + 1, 1e9])
        found = red_of(queues, *(jnp.asarray(x) for x in (5e3, 2e5, 0.01)))
        assert found.tolist() == pytest.approx([0, 0, 0.005, 0.01, 1, 1], rel=1e-15)
        step_marking = red_of(queues, *(jnp.asarray(x) for x in (2e5, 2e5, 0.5)))
        assert step_marking.tolist() == [0, 0, 0, 0, 1, 1]
        unmarked = red_of(queues, *(jnp.asarray(x) for x in (jnp.inf, jnp.inf, 1.0)))
        assert unmarked.tolist() == [0] * 6
        hops = jnp.asarray([[0.5, 0.1], [0.0, 0.2], [0.5, 1.0]])
        assert path_of(hops).tolist() == [pytest.approx([0.75, 1.0])]


def test_lags_along_a_path() -> None:
    """Links of 2 us: a mark travels on to the receiver, waits a CNP interval of 50 us, and returns.

    Flow 0 crosses access, two queues and egress, 8 us one way; the others 6 us.
    """
    network = network_of(fc.parking_lot(3, scheme=PATH, delay="2us"))
    assert network.paths == ((0, 1), (0,), (1,))
    assert network.marking_lag / US == pytest.approx([6 + 50 + 8, 4 + 50 + 8, 4 + 50 + 6, 4 + 50 + 6])
    assert network.own_lag / US == pytest.approx([16 + 50, 12 + 50, 12 + 50])
    assert network.arrival_lag / US == pytest.approx([2, 4, 2, 2])
    fixed = network_of(fc.parking_lot(3, delay="2us"))
    assert fixed.marking_lag / US == pytest.approx([50] * len(fixed.marking_lag))
    assert fixed.arrival_lag is None


def waiting(scenario: Scenario, until: float, dt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queues (steps, links) [bytes], tracked waits (steps, view hops) [s] and lags without queueing [s]."""
    with jax.enable_x64(True):
        network = network_of(resolve(scenario))
        plan = plan_of(network, until=until, dt=dt)
        network = with_points(network, np.float64)
        numbers = numbers_of(plan)
        options = {"depth": plan.depth, "method": plan.method, "aligned": plan.aligned}

        def integrated(network: Network, numbers: Numbers) -> Any:
            loop = Loop(QueueNetwork(network, 1, numbers.limit), METHODS[plan.method], numbers.dt, plan.aligned)

            def step(carry: Any, _: None) -> Any:
                return loop.step(carry), (carry.y.queue[:, 0], carry.z.wait[:, 0])

            first = begin(network, numbers, points=1, **options).carry
            return jax.lax.scan(step, first, None, length=round(until / dt))[1]

        queues, waits = jax.jit(integrated)(network, numbers)
        return np.asarray(queues), np.asarray(waits), np.asarray(network.marking_lag[:, 0])


def inverted(time: np.ndarray, queue: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    """Wait of the packet that leaves at each of ``leaves``: s + q(s)/C = u solved from the whole trace.

    While nobody sends, s + q(s)/C stands still and the wait falls by a leap; the model bridges it at eight
    seconds of s per second, so that its wait falls by at most seven.
    """
    arrived = np.concatenate([[-1.0], time])
    left = np.maximum.accumulate(arrived + np.concatenate([[0.0], queue / C]))
    exact = leaves - np.interp(leaves, left, arrived)
    dt = time[1] - time[0]
    for n in range(1, len(exact)):
        exact[n] = min(max(exact[n], exact[n - 1] - 7 * dt), exact[n - 1] + dt)
    return exact


@pytest.mark.parametrize(
    ("scenario", "steps"),
    [
        (fc.incast(2, scheme=PATH, start=["0", "1ms"]), (STEP,)),
        pytest.param(fc.incast(2, scheme=PATH, start=["0", "1ms"]), (STEP / 4,), marks=pytest.mark.slow),
        pytest.param(fc.incast(2, scheme=PATH, multiplicity=5), (STEP,), marks=pytest.mark.slow),
    ],
    ids=["two flows", "a quarter of the step", "ten flows, then silence"],
)
def test_waiting_time_is_that_of_the_queue_it_was_marked_in(scenario: Scenario, steps: tuple[float, ...]) -> None:
    for dt in steps:
        queues, waits, lags = waiting(scenario, 5e-3, dt)
        time = np.arange(len(queues)) * dt
        exact = inverted(time, queues[:, 0], time - lags[0])
        assert exact.max() > 100 * US
        # Second order: a quarter of the step may leave a sixteenth.
        assert np.max(np.abs(waits[:, 0] - exact)) < WAITING * (dt / STEP) ** 2


def test_waiting_times_along_a_path() -> None:
    """A mark waits in its own queue and all that follow; views are (link 1, link 2), (link 1), (link 2)."""
    queues, waits, lags = waiting(fc.parking_lot(3, scheme=PATH, multiplicity=[1, 1, 2]), 3e-3, STEP)
    time = np.arange(len(queues)) * STEP
    last = inverted(time, queues[:, 1], time - lags[1])
    first = inverted(time, queues[:, 0], time - lags[0] - waits[:, 1])
    # The queue is interpolated linearly here, but its slope jumps where p does: a share of h |jump of q'|/C.
    kink = 0.25 * STEP
    assert np.max(np.abs(waits[:, 1] - last)) < kink
    assert np.max(np.abs(waits[:, 0] - first)) < kink


# -- gradients ------------------------------------------------------------------------------------------------

NAMES = ("kmin", "kmax", "pmax", "g", "rate_ai")
POINT = np.array([5123.0, 201234.0, 0.0117, 1 / 250, 4.9e6])  # off all ties of queue and thresholds at grid instants


def responses(values: Any, byte_counter: Any, rates: Any) -> jax.Array:
    scenario = fc.incast(
        2,
        marking=RED(values[0], values[1], values[2]),
        scheme=DCQCN(g=values[3], rate_ai=values[4], byte_counter=byte_counter),
        initial_rate=[rates[0], rates[1]],
    )
    found = fc.measure(scenario, until="1500us", window=("0s", "1500us"))
    scales = {
        "queue_bytes.mean": 1e4,
        "queue_bytes.std": 1e4,
        "queue_bytes.max": 1e5,
        "rate_bytes_per_s": 1e9,
        "utilisation": 1.0,
    }
    return jnp.concatenate([*(found[name] / scale for name, scale in scales.items()), found["jain"][None]])


@functools.cache
def compiled(reverse: bool) -> Any:
    """Derivatives of the responses forwards, with the responses, or in reverse; a compilation each for all cases."""

    def twice(*arguments: Any) -> tuple[Any, Any]:
        found = responses(*arguments)
        return found, found

    with jax.enable_x64(True):
        arguments = (POINT, 1e7, np.array([C, C]))
        derivative = jax.jacrev(responses) if reverse else jax.jacfwd(twice, has_aux=True)
        return jax.jit(derivative).lower(*arguments).compile()


CASES = {
    "queue crosses kmax and empties": (1e7, (40, 21)),
    "p = 1, and p B > 709 packets": (1e9, (40, 39)),
    "p = 0 until the ramp is reached": (1e7, (19, 20.5)),
    "p = 0 all the time": (1e7, (5, 7)),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_finite_differences(name: str) -> None:
    byte_counter, rates = CASES[name]
    forwards = compiled(reverse=False)
    with jax.enable_x64(True):

        def at(point: np.ndarray) -> np.ndarray:
            return np.asarray(forwards(point, byte_counter, np.array(rates) * GBPS)[1])

        gradient = np.asarray(forwards(POINT, byte_counter, np.array(rates) * GBPS)[0]) * POINT
        scale = np.abs(at(POINT))[:, None]
        differences = np.zeros_like(gradient)
        for i, size in enumerate(POINT):
            shift = np.eye(len(POINT))[i] * size * 1e-6
            differences[:, i] = (at(POINT + shift) - at(POINT - shift)) / 2e-6
    assert np.isfinite(gradient).all()
    assert np.max(np.abs(differences - gradient) - DIFFERENCES * (np.abs(gradient) + scale)) <= 0
    if "all the time" in name:
        assert (gradient[:, :4] == 0).all()
    else:
        assert np.abs(gradient[0, :4]).min() > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_gradients_in_reverse_are_those_forwards(name: str) -> None:
    byte_counter, rates = CASES[name]
    with jax.enable_x64(True):
        arguments = (POINT, byte_counter, np.array(rates) * GBPS)
        gradient, backwards = compiled(reverse=False)(*arguments)[0], compiled(reverse=True)(*arguments)
    assert np.asarray(backwards) * POINT == pytest.approx(np.asarray(gradient) * POINT, rel=1e-9, abs=1e-9)


# -- methods and precision ------------------------------------------------------------------------------------


def means(method: str, dt: float) -> np.ndarray:
    """Mean queue [KB] and rates [Gb/s] of flows that stay on the ramp, from states off the equilibrium."""
    scenario = fc.incast(
        2, scheme=DCQCN(initial_alpha=0.1), marking=RED(0.0, "10MB", 0.5), initial_rate=["19Gbps", "22Gbps"]
    )
    summary = fc.simulate(scenario, until="2ms", dt=dt, method=method, estimate_error=False).summary
    rates = [rate / GBPS for rate in summary["rate_bytes_per_s"]]
    return np.array([summary["queue_bytes"]["mean"] / KB, *rates])


@pytest.mark.slow
@pytest.mark.usefixtures("one_depth")
def test_methods_agree_in_the_limit() -> None:
    limit = means("rk4", STEP / 2)
    assert limit[0] > 1

    def error(method: str, dt: float) -> float:
        return float(np.max(np.abs(means(method, dt) / limit - 1)))

    assert error("heun", STEP / 2) < SMOOTH
    # First order: half the step, half the error; and that of a step of 1/50 of the time constants.
    euler = error("euler", STEP)
    assert euler < 0.02
    assert euler / error("euler", STEP / 2) == pytest.approx(2, abs=0.2)


@pytest.mark.usefixtures("one_depth", "full_columns")
@pytest.mark.parametrize("method", ["heun", pytest.param("rk4", marks=pytest.mark.slow)])
def test_a_limit_that_holds_costs_no_order(method: str) -> None:
    """A slow NIC beside fast ones: its R_T stays at its line rate, where stages would pass it by h dR_T/dt."""
    scenario = fc.incast(
        3,
        scheme=DCQCN(feedback_delay="50us"),
        line_rate=["2Gbps", "40Gbps", "40Gbps"],
        initial_rate=["2Gbps", "15Gbps", "15Gbps"],
        marking=RED("5KB", "20MB", 1.0),  # smooth: the queue stays far below kmax
    )

    def rate(dt: float) -> float:
        trace = run(scenario, "10ms", window=("2ms", "10ms"), dt=dt, method=method)
        assert (trace["target_rate"].values[100:, 0] == 2 * GBPS).all()
        return trace.summary["rate_bytes_per_s"][0]

    exact = rate(STEP / 16)
    errors = [abs(rate(dt) / exact - 1) for dt in (4 * STEP, 2 * STEP)]
    assert errors[0] < SMOOTH
    assert errors[1] < errors[0] / 2  # better than first order; when the limit is reached is not located


@pytest.mark.slow
def test_single_precision_is_close() -> None:
    scenario = fc.incast(2, start=["0", "1ms"])
    double, single = (
        run(scenario, "10ms", window=("500us", "10ms"), dtype=dtype).summary for dtype in ("float64", "float32")
    )
    assert single["queue_bytes"]["mean"] == pytest.approx(double["queue_bytes"]["mean"], rel=FLOAT32)
    assert single["queue_bytes"]["max_whole_run"] == pytest.approx(double["queue_bytes"]["max_whole_run"], rel=FLOAT32)
    assert single["rate_bytes_per_s"] == pytest.approx(double["rate_bytes_per_s"], rel=FLOAT32)


@pytest.mark.usefixtures("one_depth", "full_columns")
def test_halving_estimates_the_error() -> None:
    scenario = fc.incast(3)
    coarse = fc.simulate(scenario, until="40ms", dt=STEP).summary
    fine = fc.simulate(scenario, until="40ms", dt=STEP / 2, estimate_error=False).summary
    difference = abs(coarse["queue_bytes"]["mean"] / fine["queue_bytes"]["mean"] - 1)
    assert coarse["discretisation_error"]["queue_rel"] == pytest.approx(difference, rel=1e-6)


def test_a_further_search_is_no_longer_program() -> None:
    """Were its steps written out, XLA would compute the first again for each later one, 2^14 times."""

    def traced(strides: tuple[int, ...]) -> int:
        def ends(record: Any, start_only: bool = False) -> list[Any]:
            return [jnp.take(jnp.arange(99.0), record)] * 2

        def found(target: Any) -> Any:
            return windows.search(ends, lambda record: record < 0, target, target, target - 5, strides)

        return len(str(jax.make_jaxpr(found)(jnp.zeros((2, 1)))).splitlines())

    assert traced(windows.ALL_STRIDES) == traced(windows.ALL_STRIDES[-3:])
