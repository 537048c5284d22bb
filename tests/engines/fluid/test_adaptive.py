"""Steps chosen by their error: against exact solutions and small fixed steps, over kinks, and each point for itself."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, lax

import fluidcc as fc
from fluidcc.dde.adaptive import PASSED, Adaptive, Steps, within
from fluidcc.dde.history import History
from fluidcc.dde.integrate import solve
from fluidcc.dde.stepping import Clock, Read
from fluidcc.engines.fluid import adaptive_run
from fluidcc.engines.fluid.network import Network, network_of, with_points
from fluidcc.engines.fluid.plan import plan_of
from fluidcc.errors import InputError
from fluidcc.scenario.model import Scenario, resolve

# Tolerances, each with its reason; set before anything was measured.
PER_STEP = 30.0  # an error of a run over that of a step: some hundred steps, whose errors do not all add up
FINE = 3e-4  # a fixed step of 1/16 us: of first order at the jump at Kmax, 7e-3 at 1 us
SMOOTH = 1e-6  # ... and of order 4 where nothing jumps: far below what is compared
MEAN = 2e-4  # of the metrics at rtol 1e-6, against that fixed step
UNTIL = 0.01
RECORDS = 1 << 12  # of the history of fixed steps, which all share

pytestmark = pytest.mark.usefixtures("one_depth")


class Decay:
    """x'(t) = -x(t - 1), with one lag per point."""

    state_dependent_lags = lags_move = False
    reads = (Read((0,)),)

    def __init__(self, lag: Array) -> None:
        self.lag = lag

    def remembered(self, y: Array) -> Array:
        return y

    def lags(self, y: Array, z: None, node: Any) -> tuple[Array, ...]:
        return (self.lag[None],)

    def look_back(self, history: History, n: Array, dt: Array, y: Array, z: None) -> None: ...

    def feedback(self, lagged: tuple[Array, ...]) -> Array:
        return lagged[0]

    def derivative(self, clock: Clock, y: Array, z: None, feedback: Array) -> Array:
        return -feedback

    def limited(self, y: Array) -> Array:
        return y

    bounded = limited

    def jump(self, clock: Clock, y: Array, z: None, feedback: Array) -> tuple[Array, None]:
        return y, None

    def paced(self, z: None, ratio: Array) -> None: ...

    def settle(self, clock: Clock, z: None, stopped: Array, feedback: Array) -> None: ...


DEPTH = 256  # of the history


@jax.jit
def run_decay(lag: Array, rtol: Array, at: Array) -> tuple[Array, Array, Steps]:
    """x at 6, and read off a step at an instant before; and the steps."""
    stepper = Adaptive(Decay(lag), rtol, lag)
    end = jnp.full(len(lag), 6.0)

    def go(state: tuple[Steps, Array]) -> tuple[Steps, Array]:
        steps, kept = state
        new, step = stepper.attempt(steps, end)
        inside = step.took & (step.time <= at) & (step.time + step.width > at)
        between = within(stepper.system, step, new.y, (at - step.time) / step.width)[0]
        return new, jnp.where(inside, between, kept)

    def going(state: tuple[Steps, Array]) -> Array:
        return jnp.any(end - state[0].time > PASSED * end)

    begun = stepper.start(jnp.ones((1, len(lag))), None, DEPTH), jnp.zeros(len(lag))
    steps, kept = lax.while_loop(going, go, begun)
    return steps.y[0], kept, steps


LAGS = np.array([1.0, 0.7071, 0.3, 1.3])


def decayed(rtol: float) -> tuple[Array, Array, Steps]:
    with jax.enable_x64(True):
        return run_decay(LAGS, np.float64(rtol), np.float64(4.321))


def decay_exact(time: float, lag: float) -> float:
    """Sum over k of (-1)^k (t - (k-1) lag)^k/k!, each term from t = (k-1) lag on."""
    terms = (
        (-1.0) ** k * max(time - (k - 1) * lag, 0.0) ** k / math.factorial(k) for k in range(1, int(time / lag) + 3)
    )
    return 1.0 + sum(terms)


@pytest.mark.parametrize("rtol", [1e-3, 1e-5, 1e-7])
def test_an_exact_solution_to_the_tolerance(rtol: float) -> None:
    """Also between the knots, and with kinks of every order at multiples of lags that differ from point to point."""
    end, between, steps = decayed(rtol)
    for i, lag in enumerate(LAGS):
        assert abs(float(end[i]) - decay_exact(6.0, lag)) < PER_STEP * rtol
        assert abs(float(between[i]) - decay_exact(4.321, lag)) < PER_STEP * rtol
    assert not np.any(np.asarray(steps.lost))
    assert np.max(np.asarray(steps.taken)) < 6.0 / 1e-3  # a fixed step of 1e-3 would not be better


def test_fewer_steps_for_a_looser_tolerance() -> None:
    taken = [np.asarray(decayed(rtol)[2].taken) for rtol in (1e-3, 1e-6)]
    assert (taken[0] < taken[1] / 2).all()


def test_a_history_that_is_too_short_is_noticed() -> None:
    """It holds less of a lag of 0.7 and more than steps of 1e-3 cover, which this tolerance takes."""
    end, _, steps = decayed(1e-13)
    assert np.asarray(steps.lost)[[0, 1, 3]].all()
    assert np.isnan(np.asarray(end)[np.asarray(steps.lost)]).all()


# -- networks -------------------------------------------------------------------------------------------------


def case(name: str) -> Scenario:
    start = {"smooth": (["24Gbps", "17Gbps"], 0.15), "rough": (["40Gbps", "20Gbps"], 1.0)}[name]
    return resolve(fc.incast(2, initial_rate=start[0], scheme=fc.DCQCN(initial_alpha=start[1])))


def simulated(scenario: Scenario, until: Any, **options: Any) -> fc.Trace:
    return fc.simulate(scenario, until, estimate_error=False, **options)


def to_horizon(name: str, rtol: float | None, **options: Any) -> fc.Trace:
    """A case to a tolerance, or with small fixed steps."""
    steps: dict[str, Any] = {"dt": 1e-6 / 16, "method": "rk4"} if rtol is None else {"rtol": rtol}
    return simulated(case(name), UNTIL, **options, **steps)


@pytest.mark.parametrize("name", ["smooth", "rough"])
def test_it_tends_to_what_small_fixed_steps_tend_to(name: str) -> None:
    exact, *ours = (to_horizon(name, rtol)["queue"].values[:, 0] for rtol in (None, 1e-3, 1e-5, 1e-7))
    errors = [float(np.max(np.abs(queue - exact)) / exact.max()) for queue in ours]
    assert errors[2] <= (SMOOTH if name == "smooth" else FINE) + PER_STEP * 1e-7
    assert errors[2] < errors[0] / 5


def test_metrics_are_those_of_small_steps() -> None:
    """The queue passes Kmax, empties and comes back in the window; what the link could have sent is counted."""
    fixed, ours = (to_horizon("rough", rtol, window=("0.1ms", UNTIL)).summary for rtol in (None, 1e-6))
    for name in ("mean", "std", "max", "max_whole_run"):
        assert ours["queue_bytes"][name] == pytest.approx(fixed["queue_bytes"][name], rel=MEAN)
    assert ours["queue_bytes"]["min"] == fixed["queue_bytes"]["min"] == 0.0
    assert ours["utilisation"] == pytest.approx(fixed["utilisation"], abs=MEAN)
    assert ours["utilisation"] < 0.99
    assert ours["rate_bytes_per_s"] == pytest.approx(fixed["rate_bytes_per_s"], rel=MEAN)


@pytest.mark.parametrize("kmax", ["5KB", "5.005KB"])
def test_marking_that_jumps_or_all_but_does(kmax: str) -> None:
    """Step marking, and a ramp of 0.1 % of Kmin, which the queue crosses again and again."""
    scenario = fc.incast(2, marking=fc.RED("5KB", kmax, 1.0), initial_rate=["40Gbps", "39Gbps"])
    options: dict[str, Any] = {"until": "3ms", "window": ("0ms", "3ms")}
    fine = simulated(scenario, dt="0.02us", method="rk4", **options).summary
    coarse = simulated(scenario, dt="0.1us", method="rk4", **options).summary
    ours = simulated(scenario, rtol=1e-6, **options).summary
    off = abs(coarse["queue_bytes"]["mean"] / fine["queue_bytes"]["mean"] - 1.0)
    # Of first order: what is left at 0.02 us is a quarter of the difference to 0.1 us, allow all of it.
    assert abs(ours["queue_bytes"]["mean"] / fine["queue_bytes"]["mean"] - 1.0) <= off + PER_STEP * 1e-6


def late(starts: list[str], multiplicity: float) -> Scenario:
    """Flows whose lags grow with the queue."""
    return fc.incast(3, start=starts, multiplicity=multiplicity, scheme=fc.DCQCN(feedback_delay=None))


@pytest.fixture
def long_past(one_depth: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history for queueing delays of milliseconds and small steps, so that none is made longer, and all share it."""
    monkeypatch.setattr("fluidcc.engines.fluid.plan.ADAPTIVE_DEPTH", 1 << 16)
    monkeypatch.setattr("fluidcc.engines.fluid.plan._QUEUEING_ALLOWANCE", 1.5e-3)
    monkeypatch.setattr("fluidcc.engines.fluid.plan.ring_depth", lambda longest, dt: 1 << 17)
    monkeypatch.setattr(adaptive_run, "_ATTEMPTS", 1_000_000)


@pytest.mark.slow
@pytest.mark.usefixtures("long_past")
def test_late_flows_and_queueing_delays() -> None:
    """Steps land on starts and on the first byte's arrival; lags that grow with the queue are followed."""
    scenario = late(["0", "0.31ms", "0.7003ms"], 1)
    options: dict[str, Any] = {"until": "1.5ms", "window": ("0ms", "1.5ms")}
    fine, coarse = (simulated(scenario, dt=dt, **options).summary for dt in ("0.05us", "0.2us"))
    ours = simulated(scenario, rtol=1e-6, **options).summary
    for name in ("mean", "max"):
        off = abs(coarse["queue_bytes"][name] / fine["queue_bytes"][name] - 1.0)
        assert abs(ours["queue_bytes"][name] / fine["queue_bytes"][name] - 1.0) <= off + 1e-5
    assert ours["rate_bytes_per_s"] == pytest.approx(fine["rate_bytes_per_s"], rel=1e-3)


def test_flows_that_all_start_at_once_arrive_when_they_do() -> None:
    """Nothing arrives for 1 us, then 20 Gb/s more than is served; the step before once went on into it."""
    script = fc.NoControl(schedule="0:30Gbps")
    trace = fc.simulate(fc.incast(2, scheme=script, marking=None), "10us", window=("0us", "10us"), rtol=1e-3)
    queue = trace["queue"].values[:, 0]
    assert queue == pytest.approx(np.maximum(trace["time"].values - 1e-6, 0.0) * 20e9 / 8, abs=1e-6)


@pytest.mark.usefixtures("long_past")
def test_queueing_delays_are_followed_to_the_tolerance() -> None:
    """Each stricter tolerance is nearer to small fixed steps, and as near as it says, as the queue waits 1 ms."""
    scenario = late(["0", "0", "2ms"], 4)  # two classes of four, and one that is not seen
    options: dict[str, Any] = {"until": "1ms", "window": ("0ms", "1ms")}
    fine = simulated(scenario, dt=1e-6 / 64, **options).summary["queue_bytes"]["mean"]
    for rtol in (1e-4, 1e-6):
        ours = fc.simulate(scenario, rtol=rtol, **options).summary
        off = abs(ours["queue_bytes"]["mean"] / fine - 1.0)
        assert off <= rtol
        assert off <= 10.0 * ours["discretisation_error"]["queue_rel"] + 2e-7  # what the fixed steps leave


def test_a_tolerance_that_outgrows_the_history_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It once gave empty numbers, and an error of 1e8."""
    monkeypatch.setattr(adaptive_run, "_DEPTH", 16)
    monkeypatch.setattr(adaptive_run, "_HISTORY", 0)
    monkeypatch.setattr("fluidcc.engines.fluid.plan.ADAPTIVE_DEPTH", 16)
    with pytest.raises(InputError, match="larger one"):
        fc.simulate(fc.incast(2), "1ms", rtol=1e-8)


def test_steps_land_on_starts_and_first_arrivals() -> None:
    scenario = fc.incast(3, start=["0", "0.31ms", "0.7003ms"], scheme=fc.DCQCN(feedback_delay=None))
    with jax.enable_x64(True):
        network = with_points(network_of(resolve(scenario)), np.dtype("float64"))
        numbers = adaptive_run.numbers_of(plan_of(network, until="1ms", rtol=1e-4))
        stops = np.asarray(adaptive_run._stops(network, numbers, 1)).ravel()
    wanted = [0.31e-3, 0.7003e-3, 0.31e-3 + float(np.max(network.arrival_lag)), 0.5e-3, 1e-3]
    assert all(np.min(np.abs(stops - each)) < 1e-12 for each in wanted)


def test_the_largest_value_of_a_cubic_lies_between_its_ends() -> None:
    """4 x (1 - x), and its mirror image."""
    ends, extremes = (0.0, 4.0, 0.0, -4.0), jax.jit(adaptive_run._extremes)
    assert [float(value) for value in extremes(*ends)] == [0.0, 1.0]
    assert [float(value) for value in extremes(*(-end for end in ends))] == [-1.0, 0.0]


# -- batches --------------------------------------------------------------------------------------------------

GAINS = np.geomspace(1 / 1024, 1 / 64, 6)


def batch(gains: np.ndarray) -> Network:
    network = network_of(case("rough"))
    group = network.groups[0]
    with jax.enable_x64(True):
        columns = jax.tree.map(jnp.asarray, group.parameters)
    parameters = dataclasses.replace(columns, g=gains[None])
    return dataclasses.replace(network, groups=(dataclasses.replace(group, parameters=parameters),))


def run(gains: np.ndarray, rtol: float = 1e-5) -> adaptive_run.AdaptiveOutcome:
    network = batch(gains)
    plan = plan_of(network, until=2e-3, rtol=rtol, samples=50)
    return adaptive_run.execute(network, plan, points=len(gains))[0]


def test_a_point_does_not_depend_on_its_neighbours() -> None:
    """Bit for bit among batches of one size; one of another size is compiled otherwise, and rounds otherwise."""
    together, turned = run(GAINS), run(GAINS[::-1].copy())
    assert np.array_equal(together.samples["queue"], turned.samples["queue"][..., ::-1])
    assert np.array_equal(together.taken, turned.taken[::-1])
    for i in (0, 4):
        alone = run(np.full_like(GAINS, GAINS[i])).samples["queue"]
        assert np.array_equal(alone, np.repeat(together.samples["queue"][..., i : i + 1], len(GAINS), axis=-1))


def test_a_point_that_fails_leaves_the_others_as_they_are() -> None:
    whole, broken = run(GAINS), GAINS.copy()
    broken[2] = np.nan
    found = run(broken)
    others = [0, 1, 3, 4, 5]
    assert np.array_equal(found.samples["queue"][..., others], whole.samples["queue"][..., others])
    assert np.array_equal(found.summary.queue_mean[:, others], whole.summary.queue_mean[:, others])
    assert np.isnan(found.summary.queue_mean[0, 2])


def test_points_take_steps_of_their_own() -> None:
    assert len(set(run(GAINS).taken.tolist())) > 1


@pytest.mark.slow
def test_a_history_that_is_outgrown_is_made_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the usual history does not hold the steps of a lag of 50 us, and all of it does."""
    made: list[int] = []
    first = adaptive_run._first
    ready = lambda *args, **static: made.append(static["depth"]) or first.ready(*args, **static)  # noqa: E731
    monkeypatch.setattr(adaptive_run, "_first", SimpleNamespace(ready=ready))
    network = batch(GAINS)
    plan = plan_of(network, until=2e-4, rtol=1e-7, samples=50)
    short = adaptive_run.execute(network, dataclasses.replace(plan, depth=plan.depth // 4), points=len(GAINS))[0]
    enough = adaptive_run.execute(network, plan, points=len(GAINS))[0]
    assert made == [plan.depth // 4, plan.depth, plan.depth]
    assert not short.lost.any()
    assert np.array_equal(short.samples["queue"], enough.samples["queue"])


# -- as it is asked for ---------------------------------------------------------------------------------------


def test_the_trace_has_the_grid_of_a_fixed_step_and_states_its_error() -> None:
    window = ("0ms", "2ms")
    trace = fc.simulate(case("rough"), "2ms", window=window, rtol=1e-4)
    fixed = simulated(case("rough"), "2ms", window=window, method="rk4")
    assert np.array_equal(trace.dataset["time"], fixed.dataset["time"])
    assert set(trace.dataset) == set(fixed.dataset)
    assert trace.dataset.attrs["rtol"] == 1e-4
    assert fixed.dataset.attrs["rtol"] == 0.0
    exact = fc.simulate(case("rough"), "2ms", window=window, rtol=1e-8, estimate_error=False).summary
    error = trace.summary["discretisation_error"]
    assert error["as_expected"] is True
    true = abs(trace.summary["queue_bytes"]["mean"] / exact["queue_bytes"]["mean"] - 1.0)
    assert true <= 2.0 * error["queue_rel"]  # what a tenth of the tolerance leaves is less than what it takes away


def test_a_sweep_states_the_error_of_every_point() -> None:
    def scenario(kmin: Any) -> Scenario:
        return fc.incast(2, marking=fc.RED(kmin, "200KB", "1%"))

    options: dict[str, Any] = {"over": {"kmin": [5e3, 2e4, 3e5]}, "until": "2ms", "window": ("0ms", "2ms")}
    found = fc.sweep(scenario, rtol=1e-4, **options).dataset
    exact = fc.sweep(scenario, rtol=1e-7, **options).dataset
    assert found["reason"].values.tolist()[:2] == [0, 0]
    assert found["reason"].values[2] != 0
    assert np.isnan(found["queue_error_rel"].values[2])
    errors = found["queue_error_rel"].values[:2]
    mean = [each["queue_bytes.mean"].values[:2] for each in (found, exact)]
    true = np.abs(mean[0] / mean[1] - 1.0)
    assert np.all(true <= 2.0 * errors + 1e-7)
    assert found.attrs["discretisation_error.queue_rel"] == errors.max()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"rtol": 1.0}, "rtol: 1 is not between"),
        ({"rtol": 1e-12}, "write for example 1e-5"),
        ({"rtol": 1e-4, "dt": "1us"}, "dt, method, dtype"),
        ({"rtol": 1e-4, "method": "rk4"}, "dt, method, dtype"),
        ({"rtol": 1e-4, "engine": "packet"}, "belong to the fluid engine"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        fc.simulate(fc.incast(2), "1ms", **options)


@pytest.mark.parametrize(
    ("scenario", "word"),
    [
        (fc.incast(2, scheme=fc.HPCC()), "hpcc changes state in jumps"),
        (fc.incast(2, scheme=fc.TIMELY()), "timely changes state in jumps, or compares delays"),
        (fc.incast(2, size="1MB"), "flows that end"),
    ],
)
def test_what_it_cannot_do_is_said_by_name(scenario: Scenario, word: str) -> None:
    with pytest.raises(InputError, match=word):
        fc.simulate(scenario, "1ms", rtol=1e-4)


def test_a_tolerance_compiles_nothing_anew() -> None:
    from fluidcc.compiling import functions

    fc.simulate(case("rough"), "2ms", rtol=1e-4, estimate_error=False)
    made = functions.made
    fc.simulate(case("smooth"), "3ms", rtol=1e-6, estimate_error=False)
    assert functions.made == made


def test_the_fixed_kernel_agrees_on_the_exact_solution() -> None:
    """The oracle of this file is that of the other kernel."""
    with jax.enable_x64(True):
        fixed = jax.jit(
            lambda: solve(lambda t, x, lagged: -lagged[0], past=lambda t: jnp.ones(1), lags=[0.3], until=6.0, dt=0.01)
        )()
    assert abs(float(fixed.state[-1, 0]) - decay_exact(6.0, 0.3)) < 1e-8
