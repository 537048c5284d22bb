"""The kernel against exact solutions, its methods' orders, and two other integrators."""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from fluidcc.dde.history import ring_depth
from fluidcc.dde.integrate import integrate, solve
from fluidcc.errors import InputError

# Tolerances, each with its reason; set before anything was measured.
EXACT = 1e-12  # the solution is a cubic, which RK4 and cubic history reproduce: only rounding is left
JIT = 1e-13  # the same operations, contracted differently: a few roundings
LOOP = 1e-13  # a batch does the same operations as single runs, vectorised
ORDER = 0.1  # observed order: regression over steps that are small but not infinitesimal
JITCDDE = 1e-6  # its local tolerance 1e-9, times some hundred steps, times moderate growth of differences
STEPS = 1e-8  # RK4 with h = 0.01 on rates of order one: h^4 = 1e-8, method of steps far below
DIFFERENCES = 1e-7  # central differences in double precision: rounding/step + step^2 = 1e-16/1e-5 + 1e-10
ONE_SIDED = 1e-4  # one-sided differences with a step of 1e-6: 1e-6 times the curvature

# JiTCDDE, an oracle here, writes C and compiles it; where that cannot be, closed forms still check the kernel.
no_compiler = not (shutil.which("cc") or shutil.which("gcc"))
compiler = pytest.mark.skipif(no_compiler, reason="JiTCDDE needs a C compiler, and there is none")


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@functools.partial(jax.jit, static_argnames=("samples", "depth", "method"))
def decay(dt: Any, lag: Any = 1.0, *, samples: int = 240, depth: int = 128, method: str = "rk4") -> Any:
    """x'(t) = -x(t - lag) from a constant 1, at every step; one compilation for any step and lag."""
    past = lambda t: jnp.ones((1, 1))  # noqa: E731
    found = integrate(
        lambda t, x, lagged: -lagged[0], past, lambda y: [jnp.atleast_1d(lag)], jnp.asarray(dt),
        samples=samples, stride=1, depth=depth, method=method,
    )  # fmt: skip
    return found[:, 0, 0]


def decay_exact(time: np.ndarray, lag: float = 1.0) -> np.ndarray:
    """Sum over k of (-1)^k (t - (k-1) lag)^k/k!, each term from t = (k-1) lag on."""
    total = np.ones_like(time)
    for k in range(1, int(time[-1] / lag) + 3):
        total += (-1.0) ** k * np.maximum(time - (k - 1) * lag, 0.0) ** k / math.factorial(k)
    return total


# -- exactness ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [10, 20, 40, 80])
def test_piecewise_cubic_is_exact(steps: int) -> None:
    found = decay(1 / steps)[: 3 * steps + 1]  # beyond, the solution is no cubic
    assert np.max(np.abs(found - decay_exact(np.arange(3 * steps + 1) / steps))) < EXACT


@pytest.mark.parametrize("steps", [10])
def test_piecewise_cubic_is_exact_as_it_is_asked_for(steps: int) -> None:
    """By `solve`."""

    def run() -> Any:
        return solve(
            lambda t, x, lagged: -lagged[0], past=lambda t: jnp.ones(1), lags=[1.0], until=3.0, dt=1 / steps
        )  # fmt: skip

    solution = jax.jit(run)()
    time = np.arange(3 * steps + 1) / steps
    assert np.max(np.abs(solution.time - time)) < EXACT
    assert np.max(np.abs(solution.state[:, 0] - decay_exact(time))) < EXACT


@pytest.mark.parametrize(("dt", "lag"), [(0.1, 0.3), (0.1, 0.7), (0.01, 0.29), (0.05, 0.15), (1e-3, 0.019)])
def test_lag_that_is_a_whole_number_of_steps_but_for_rounding(dt: float, lag: float) -> None:
    """0.3/0.1 is 2.9999999999999996: read as 2 steps and a fraction near 1, kinks would be smeared."""
    time = np.arange(round(3 * lag / dt) + 1) * dt  # beyond, the solution is no cubic
    found = decay(dt, lag, depth=ring_depth(lag, dt))[: len(time)]
    assert np.max(np.abs(found - decay_exact(time, lag))) < EXACT


@functools.partial(jax.jit, static_argnames=("method", "longest"))
def wavy(lag: Any, method: str, longest: float = 1.0) -> Any:
    return solve(
        lambda t, x, lagged: -lagged[0] * (1 + 0.1 * x),
        past=lambda t: jnp.cos(t) * jnp.ones(1),
        lags=[jnp.asarray(lag)],
        until=1.2,
        dt=0.1,
        method=method,
        longest_lag=longest,
    ).state


def test_a_history_no_longer_than_its_lag_holds_it() -> None:
    """Five records back: in a ring of four the oldest would have been written over."""
    assert np.max(np.abs(wavy(0.49, "rk4", longest=0.49) - wavy(0.49, "rk4"))) < JIT


@pytest.mark.parametrize(
    ("lag", "method"),
    [*((lag, "rk4") for lag in (1 / 3, 0.7071067811865476, 0.123456789, 0.9999999, 1.0)), (1 / 3, "heun")],
)
def test_jit_equals_no_jit_for_a_lag_between_steps(lag: float, method: str) -> None:
    """Index and fraction of a look-up that come from differently rounded times differ by 1e-5 and more."""

    with jax.disable_jit():
        plain = wavy(lag, method)
    assert np.max(np.abs(wavy(lag, method) - plain)) < JIT


def test_stride_only_thins_the_samples() -> None:
    def run(stride: int) -> Any:
        return solve(
            lambda t, x, lagged: -lagged[0], past=lambda t: jnp.ones(1), lags=[1.0], until=3, dt=0.1, stride=stride
        )  # fmt: skip

    every, third = (jax.jit(run, static_argnums=0)(stride) for stride in (1, 3))
    np.testing.assert_array_equal(every.state[::3], third.state)
    np.testing.assert_allclose(every.time[::3], third.time, rtol=1e-15)


# -- order ----------------------------------------------------------------------------------------------------


def observed_order(error: Callable[[float], float]) -> float:
    """Slope of log error over log h."""
    steps = np.array([1 / 20, 1 / 40, 1 / 80, 1 / 160])
    return float(np.polyfit(np.log(steps), np.log([error(h) for h in steps]), 1)[0])


@functools.partial(jax.jit, static_argnames=("moving", "method"))
def sine(dt: Any, stride: Any, lag: Any, moving: bool, method: str) -> Any:
    """80 samples of an equation that is solved by sin(t), with a constant lag or one that moves with the state."""

    def lag_of(x: Any) -> Any:
        return jnp.atleast_1d(0.5 + 0.25 * x if moving else lag)

    def function(t: Any, y: Any, lagged: Any) -> Any:
        if moving:
            return jnp.cos(t) - (lagged[0] - jnp.sin(t - lag_of(jnp.sin(t)))) - 0.5 * (y - jnp.sin(t))
        return jnp.cos(t) + jnp.sin(t) * jnp.sin(t - lag) - y * lagged[0]

    options: dict[str, Any] = {"samples": 80, "stride": stride, "method": method, "state_dependent": moving}
    past = lambda t: jnp.sin(t) * jnp.ones((1, 1))  # noqa: E731
    return integrate(function, past, lambda y: [lag_of(y[0])], dt, depth=ring_depth(1.0, 1 / 160), **options)[:, 0, 0]


def order_of(method: str, lag: float | None) -> float:
    def error(dt: float) -> float:
        stride = np.int32(round(1 / 20 / dt))
        found = sine(np.float64(dt), stride, np.float64(lag or 0.0), lag is None, method)
        return float(np.max(np.abs(found - np.sin(np.arange(81) / 20))))

    return observed_order(error)


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("heun", 2), ("rk4", 4)])
@pytest.mark.parametrize("lag", [1.0, 0.7071067811865476])
def test_order_with_a_constant_lag(method: str, order: int, lag: float) -> None:
    assert abs(order_of(method, lag) - order) < ORDER


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("heun", 2), ("rk4", 4)])
def test_order_with_a_state_dependent_lag(method: str, order: int) -> None:
    assert abs(order_of(method, None) - order) < ORDER


# -- other integrators ----------------------------------------------------------------------------------------

TWO_LAGS = (1.0, 0.37)
TWO_START = (0.5, -0.2)
TWO_UNTIL = 6.0


def two_delays(x0: Any, x1: Any, slow0: Any, fast1: Any) -> tuple[Any, Any]:
    """A nonlinear pair with two delays: x0(t - 1) and x1(t - 0.37)."""
    return -1.2 * slow0 * (1 + x0) + 0.3 * fast1, x0 - 0.8 * fast1 - 0.2 * x1**3


@functools.cache
def solve_two_delays(dt: float = 0.01) -> Any:
    def function(t: Any, y: Any, lagged: Any) -> Any:
        return jnp.stack(two_delays(y[0], y[1], lagged[0][0], lagged[1][1]))

    def run() -> Any:
        return solve(function, past=lambda t: jnp.asarray(TWO_START), lags=TWO_LAGS, until=TWO_UNTIL, dt=dt)

    return jax.jit(run)()


def mackey_glass(dt: float, until: float) -> Any:
    """x' = 0.2 x(t-15)/(1 + x(t-15)^10) - 0.1 x: periodic at this lag, chaotic from about 17 on."""
    return solve(
        lambda t, x, lagged: 0.2 * lagged[0] / (1 + lagged[0] ** 10) - 0.1 * x,
        past=lambda t: 0.5 * jnp.ones(1),
        lags=[15.0],
        until=until,
        dt=dt,
    )


def jitcdde_solution(equations: list[Any], start: tuple[float, ...], lags: Sequence[float], times: list[float]) -> Any:
    from jitcdde import jitcdde

    dde = jitcdde(equations, delays=[0, *lags], max_delay=max(lags), verbose=False)
    dde.compile_C(simplify=False, verbose=False)
    dde.constant_past(start)
    dde.set_integration_parameters(atol=1e-10, rtol=1e-9, first_step=1e-3, min_step=1e-12, max_step=0.1)
    dde.step_on_discontinuities()
    assert dde.t < times[0]
    return np.array([dde.integrate(t) for t in times])


@compiler
def test_mackey_glass_agrees_with_jitcdde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jitcdde import t, y

    monkeypatch.chdir(tmp_path)  # its build reads a pyproject.toml that it finds here
    times = [40.0, 70.0, 100.0, 150.0]
    equation = 0.2 * y(0, t - 15) / (1 + y(0, t - 15) ** 10) - 0.1 * y(0)
    theirs = jitcdde_solution([equation], (0.5,), [15.0], times)
    ours = jax.jit(lambda: mackey_glass(0.05, times[-1]))()
    at = np.round(np.array(times) / 0.05).astype(int)
    assert np.max(np.abs(ours.state[at] - theirs)) < JITCDDE


@compiler
def test_two_delays_agree_with_jitcdde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jitcdde import t, y

    monkeypatch.chdir(tmp_path)  # its build reads a pyproject.toml that it finds here
    times = [3.0, 4.0, 5.0, TWO_UNTIL]
    equations = list(two_delays(y(0), y(1), y(0, t - TWO_LAGS[0]), y(1, t - TWO_LAGS[1])))
    theirs = jitcdde_solution(equations, TWO_START, TWO_LAGS, times)
    ours = solve_two_delays()
    at = np.round(np.array(times) / 0.01).astype(int)
    assert np.max(np.abs(ours.state[at] - theirs)) < JITCDDE


def test_two_delays_agree_with_the_method_of_steps() -> None:
    """Between sums of delays, where the solution is smooth, an ordinary equation with a known past."""
    slow, fast = TWO_LAGS
    sums = {round(i * slow + j * fast, 9) for i in range(8) for j in range(20)}
    breaks = sorted({b for b in sums if b < TWO_UNTIL} | {TWO_UNTIL})
    pieces: list[Any] = []

    def past(t: float) -> Any:
        if t <= 0 or not pieces:
            return TWO_START
        return pieces[min(bisect.bisect_right(breaks, t) - 1, len(pieces) - 1)](t)

    def function(t: float, y: Any) -> Any:
        return two_delays(y[0], y[1], past(t - slow)[0], past(t - fast)[1])

    state: Any = TWO_START
    for left, right in itertools.pairwise(breaks):
        assert right - left <= fast + 1e-9
        run = solve_ivp(function, (left, right), state, "DOP853", rtol=1e-12, atol=1e-13, dense_output=True)
        pieces.append(run.sol)
        state = run.y[:, -1]
    ours = solve_two_delays()
    known = np.array([past(float(t)) for t in ours.time])
    assert np.max(np.abs(ours.state - known)) < STEPS


# -- batches and derivatives ----------------------------------------------------------------------------------

LAGS = np.array([0.3, 0.41, 0.555, 0.7071, 1.0])
GAINS = np.array([0.5, 0.9, 1.3, 1.7, 2.1])


@functools.partial(jax.jit, static_argnames="points")
def oscillator(gain: Any, lag: Any, *, points: int | None = None) -> Any:
    """A delayed pair, single or batched."""

    def past(t: Any) -> Any:
        rows = jnp.stack([jnp.cos(t), 0.1 * t])
        return rows if points is None else jnp.broadcast_to(rows[:, None], (2, points))

    def function(t: Any, y: Any, lagged: Any) -> Any:
        return jnp.stack([y[1] - 0.1 * y[0] ** 3, -gain * jnp.sin(lagged[0][0])])

    return solve(function, past=past, lags=[lag], until=2.0, dt=0.1, longest_lag=1.1).state


def relative(value: Any, known: Any) -> float:
    return float(np.max(np.abs(np.asarray(value) - known)) / np.max(np.abs(known)))


def test_batch_equals_loop() -> None:
    batch = oscillator(jnp.asarray(GAINS), jnp.asarray(LAGS), points=5)
    loop = [oscillator(gain, lag) for gain, lag in zip(GAINS, LAGS, strict=True)]
    assert relative(batch, np.stack(loop, axis=-1)) < LOOP


@pytest.mark.slow
def test_vmap_equals_loop() -> None:
    mapped = jax.vmap(oscillator)(jnp.asarray(GAINS), jnp.asarray(LAGS))
    loop = [oscillator(gain, lag) for gain, lag in zip(GAINS, LAGS, strict=True)]
    assert relative(mapped, np.stack(loop)) < LOOP


def test_batch_with_state_dependent_lags_equals_loop() -> None:
    @functools.partial(jax.jit, static_argnums=1)
    def run(scale: Any, points: int | None) -> Any:
        def past(t: Any) -> Any:
            return jnp.sin(t) * jnp.ones(1 if points is None else (1, points))

        return solve(
            lambda t, y, lagged: jnp.cos(t) - lagged[0],
            past=past,
            lags=lambda y: [0.5 + scale * y[0]],
            until=2.0,
            dt=0.05,
            longest_lag=1.0,
        ).state

    scales = np.array([0.0, 0.1, 0.2])
    loop = [run(scale, None) for scale in scales]
    assert relative(run(jnp.asarray(scales), 3), np.stack(loop, axis=-1)) < LOOP


@jax.jit
def sensitivity(gain: Any, lag: Any) -> Any:
    state = oscillator(gain, lag)
    return jnp.sum(state[-1] ** 2) + state[10, 1]


slopes_of = jax.jit(jax.grad(sensitivity, argnums=(0, 1)))


@pytest.mark.parametrize("lag", [0.4321, 0.97])
def test_gradient_equals_finite_differences(lag: float) -> None:
    gain, by = 1.3, 1e-5
    slopes = slopes_of(gain, lag)
    by_gain = (sensitivity(gain + by, lag) - sensitivity(gain - by, lag)) / (2 * by)
    by_lag = (sensitivity(gain, lag + by) - sensitivity(gain, lag - by)) / (2 * by)
    np.testing.assert_allclose(slopes, (by_gain, by_lag), rtol=DIFFERENCES)


def test_gradient_by_a_lag_that_is_a_whole_number_of_steps() -> None:
    """There the look-up passes from one interval to the next: the slope is that of one of the two sides."""
    by = 1e-6
    slope = slopes_of(1.3, 0.5)[1]
    sides = [(sensitivity(1.3, 0.5 + d) - sensitivity(1.3, 0.5)) / d for d in (by, -by)]
    assert min(abs(slope - side) for side in sides) < ONE_SIDED * abs(slope)


# -- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"dt": 0.3}, "divide"),
        ({"lags": [0.05]}, "shorter"),
        ({"method": "rk5"}, "rk5"),
        ({"stride": 7}, "stride"),
        ({"lags": lambda y: [0.5]}, "longest_lag"),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], word: str) -> None:
    arguments: dict[str, Any] = {"past": lambda t: jnp.ones(1), "lags": [1.0], "until": 1.0, "dt": 0.1}
    with pytest.raises(InputError, match=word):
        solve(lambda t, y, lagged: -lagged[0], **(arguments | changes))
