"""Newton's method for equilibria by NumPy, derivatives by complex steps: slopes, steps, and ways along parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from fluidcc.dde import fixed_points, history, stepping
from fluidcc.dde.fixed_points import _followed, _from, _newton, _slope, _with_zeros
from fluidcc.dde.stepping import METHODS
from tests.engines.fluid.in_numpy import Lax

NONE = np.zeros(0)


def jacfwd(function: Callable[..., Any]) -> Callable[..., Any]:
    def found(x: Any, *others: Any) -> Any:
        step = 1e-200j * np.eye(len(x))
        return np.stack([np.imag(function(x + row, *others)) / 1e-200 for row in step], axis=1)

    return found


@pytest.fixture(autouse=True)
def _in_numpy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def vmap(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *columns: np.stack([function(*row) for row in zip(*columns, strict=True)])

    monkeypatch.setattr(fixed_points, "jnp", np)
    monkeypatch.setattr(fixed_points, "lax", Lax())
    monkeypatch.setattr(fixed_points, "jax", SimpleNamespace(jacfwd=jacfwd, vmap=vmap, tree=jax.tree))
    with np.errstate(all="ignore"):
        yield


def kernels(function: Callable[[Any, Any], list[Any]]) -> Any:
    return SimpleNamespace(still=lambda x, vector: np.stack(function(x, vector)))


def found(function: Callable[[Any, Any], list[Any]], begin: list[float], vector: Any = NONE) -> Any:
    x, good, blur, singular = _newton(kernels(function), np.array(begin), np.asarray(vector), np.abs(begin))
    return x.tolist(), bool(good), blur.tolist(), bool(singular)


# -- slopes -------------------------------------------------------------------------------------------------------


def test_a_slope_has_units_in_which_all_of_it_is_alike() -> None:
    """States a billion apart: rows and columns whose largest is 1, the inverse, and the step that solves it."""
    M = np.array([[3.0, 2e9, 0.0], [1e-9, -4.0, 1e3], [2e-6, 0.0, 5e6]])
    b = np.array([4.0, 1e-3, 7.0])
    x = np.array([1.0, 2e-9, 3e-6])
    at = _slope(kernels(lambda x, v: list(M @ x - b)), x, NONE)
    np.testing.assert_allclose(at.value, M @ x - b, rtol=1e-14)
    np.testing.assert_allclose(at.by_x, M, rtol=1e-14)
    scaled = np.abs(at.weights[:, None] * M * at.units)
    np.testing.assert_allclose([scaled.max(axis=0), scaled.max(axis=1)], 1.0, rtol=0.1)
    np.testing.assert_allclose(at.inverse @ M * at.units / at.units[:, None], np.eye(3), atol=1e-9)
    np.testing.assert_allclose(M @ (x + at.move), b, rtol=1e-10)
    rounding = 8 * np.finfo(float).eps * (np.abs(M) @ x)
    np.testing.assert_allclose(at.blur, np.abs(at.inverse) @ rounding, rtol=1e-12)
    assert (bool(at.solves), bool(at.singular)) == (True, False)


@pytest.mark.parametrize(("slope", "singular"), [(1e-11, False), (1e-13, True), (0.0, True)])
def test_a_slope_that_steers_nothing_is_singular(slope: float, singular: bool) -> None:
    """By the least singular value over the largest, scaled; what it does not steer stays."""
    both = kernels(lambda x, v: [x[0] + x[1] - 3.0, x[0] + (1 + slope) * x[1] - 3.0])
    at = _slope(both, np.array([1.0, 1.0]), NONE)
    assert bool(at.singular) is singular
    if singular:
        np.testing.assert_allclose(at.move, [0.5, 0.5], rtol=1e-6)
        np.testing.assert_allclose(at.inverse, np.full((2, 2), 0.25), rtol=1e-6)  # which gives nothing across
    none = _slope(kernels(lambda x, v: [np.nan * x[0]]), np.array([1.0]), NONE)
    assert (bool(none.singular), bool(none.solves)) == (True, False)


def test_a_step_that_solves_nothing_is_told() -> None:
    """Two equations that contradict each other leave a half of each."""
    at = _slope(kernels(lambda x, v: [x[0] - 1.0, x[0] - 2.0 + 0 * x[1]]), np.array([0.0, 0.0]), NONE)
    assert (bool(at.singular), bool(at.solves)) == (True, False)


# -- steps --------------------------------------------------------------------------------------------------------


def test_equilibria_are_found_to_rounding() -> None:
    """Shorten a whole step that leads too far, to a share of it; in any unit."""
    for begin, function, root in (
        ([3.0], lambda x, v: [x[0] ** 2 - 4], 2.0),
        ([3.0], lambda x, v: [x[0] / np.sqrt(1 + x[0] ** 2) - 0.6], 0.75),  # a whole step diverges
        ([3e-12], lambda x, v: [x[0] ** 2 - 4e-24], 2e-12),
        ([50.0], lambda x, v: [np.exp(-x[0]) - 0.5 + 0.01 * x[0]], None),
    ):
        x, good, _, singular = found(function, begin)
        if root is None:
            continue
        assert (x[0], good, singular) == (pytest.approx(root, rel=1e-13, abs=0.0), True, False)
    x, good, *_ = found(lambda x, v: [x[0] * x[1] - 6e9, x[0] - 2e9 * x[1] + 1e9], [1e9, 1.0])
    assert good
    assert x == pytest.approx([3e9, 2.0], rel=1e-12)


def test_what_is_no_equilibrium_is_not_good() -> None:
    assert not found(lambda x, v: [x[0] ** 2 + 1], [3.0])[1]
    assert not found(lambda x, v: [1 + 0 * x[0]], [3.0])[1]
    assert not found(lambda x, v: [np.nan * x[0]], [3.0])[1]


def test_a_state_at_0_is_known_to_a_share_of_the_others() -> None:
    """The difference of two large states that are equal but for rounding has no size of its own."""
    x, good, *_ = found(lambda x, v: [2e12 - x[0] ** 2, x[0] - 1e6 * np.sqrt(2.0) - x[1]], [1.5e6, 0.0])
    assert good
    assert x == pytest.approx([1e6 * np.sqrt(2.0), 0.0], rel=1e-12, abs=1e-8)


def test_others_next_to_it_are_told() -> None:
    """With a kept sum every state with that sum is one; it goes to none of them from where it stands."""
    x, good, _, singular = found(lambda x, v: [x[1] - x[0], x[0] - x[1]], [3.0, 1.0])
    assert (x, good, singular) == (pytest.approx([2.0, 2.0]), True, True)
    x, good, _, singular = found(lambda x, v: [x[1] - x[0], x[0] - x[1]], [3.0, 3.0])
    assert (x, good, singular) == ([3.0, 3.0], True, True)


@pytest.mark.parametrize("off", [1e3, 1e6])
def test_a_constant_that_cancels_hides_no_equilibrium(off: float) -> None:
    """Newton's step cannot mend what it rounds; the blur is that of the derivatives alone."""
    x, good, blur, singular = found(lambda x, v: [3 * ((x[0] + off) - off) - np.pi], [1.0])
    assert (x, good, singular) == (pytest.approx([np.pi / 3], rel=1e-10), True, False)
    assert blur == pytest.approx([8 * np.finfo(float).eps * x[0]], rel=1e-6, abs=0.0)


def test_a_state_that_is_0_but_for_rounding_is_0() -> None:
    """By a part in 10^12 of its scale, if 0 is no worse."""
    one = kernels(lambda x, v: [-x[0]])
    for x, scale, zero in ((1e-13, 1.0, True), (1e-11, 1.0, False), (1e-13, 1e-3, False)):
        assert (_with_zeros(one, np.array([x]), NONE, np.array([scale])) == 0).all() == zero
    small = kernels(lambda x, v: [1e-13 - x[0]])
    assert _with_zeros(small, np.array([1e-13]), NONE, np.array([1.0])).tolist() == [1e-13]
    x, good, *_ = _from(kernels(lambda x, v: [-x[0], 2.0 - x[1]]), np.array([1.0, 1.0]), NONE)
    assert (x.tolist(), bool(good)) == ([0.0, 2.0], True)


# -- ways ---------------------------------------------------------------------------------------------------------


def followed(function: Any, x: list[float], begin: list[float], end: list[float]) -> tuple[list[float], bool, bool]:
    at, good, loose = _followed(kernels(function), np.array(x), np.array(end), np.array(begin))
    return at.tolist(), bool(good), bool(loose)


def test_an_equilibrium_is_followed_along_parameters() -> None:
    """On a straight way in all of them; past what bends, and to 0."""
    x, good, loose = followed(lambda x, p: [p[0] - x[0] ** 2, p[1] * x[0] - x[1]], [1.0, 3.0], [1.0, 3.0], [9.0, 5.0])
    assert (x, good, loose) == (pytest.approx([3.0, 15.0], rel=1e-12), True, False)
    assert followed(lambda x, p: [p[0] - x[0]], [2.0], [2.0], [0.0]) == ([0.0], True, False)
    assert followed(lambda x, p: [p[0] - x[0]], [2.0], [2.0], [2.0]) == ([2.0], True, False)
    x, good, _ = followed(lambda x, p: [np.exp(p[0]) - x[0]], [1.0], [0.0], [6.0])
    assert (x, good) == (pytest.approx([np.exp(6.0)], rel=1e-12), True)


def test_beyond_a_fold_an_equilibrium_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or where nothing is a number; the way there is not."""
    monkeypatch.setattr(fixed_points, "_LEAST", 2.0**-6)
    for end, good in (([0.01], True), ([-0.01], False), ([np.nan], False)):
        assert followed(lambda x, p: [p[0] - x[0] ** 2], [1.0], [1.0], end)[1:] == (good, False)


def test_it_does_not_jump_to_another_branch() -> None:
    """x = p and x = -p meet at 0: the one is not followed into the other's place."""
    x, good, _ = followed(lambda x, p: [(x[0] - p[0]) * (x[0] + p[0] + 4.0)], [1.0], [1.0], [3.0])
    assert (x, good) == (pytest.approx([3.0], rel=1e-12), True)


def test_what_is_0_is_small_next_to_the_largest_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 3 over 4 to 0, and so an end within 1e-12 of 4 is 0."""
    monkeypatch.setattr(fixed_points, "_with_zeros", lambda kernels, x, end, scale: scale)
    scale, good, _ = followed(lambda x, p: [p[0] * (4.0 - p[0]) - x[0]], [3.0], [1.0], [4.0])
    assert (scale, good) == (pytest.approx([4.0], rel=0.05), True)


def test_one_of_many_is_followed_only_where_it_stays() -> None:
    """Keep a sum at a rate that does not move it; else it is loose."""
    assert followed(lambda x, p: [p[0] * (x[1] - x[0]), p[0] * (x[0] - x[1])], [2.0, 2.0], [1.0], [3.0]) == (
        [2.0, 2.0],
        True,
        False,
    )
    moved = followed(lambda x, p: [p[0] * x[1] - x[0], x[0] - p[0] * x[1]], [2.0, 2.0], [1.0], [3.0])
    assert moved[1:] == (False, True)


# -- a step of a delay equation -----------------------------------------------------------------------------------


class Ramp:
    """x' = 3 after a past of x(t) = t, whose lag may grow with the state; all that is read, by stage and at the end."""

    def __init__(self, growth: float) -> None:
        self.growth, self.state_dependent_lags = growth, growth > 0
        self.reads = [SimpleNamespace(rows=(0,), slopes=True, linear=False)]
        self.stages: list[Any] = []
        self.ends: list[Any] = []
        self.read = 0

    def remembered(self, y: Any) -> Any:
        return y

    def lags(self, y: Any, z: Any, node: float) -> Any:
        return (2.0 + self.growth * y[0],)

    def look_back(self, kept: Any, n: Any, dt: Any, y: Any, z: Any) -> Any:
        return z

    def feedback(self, lagged: Any) -> Any:
        self.read += 1
        return lagged[0].ravel().tolist()

    def limited(self, y: Any) -> Any:
        return y

    def derivative(self, clock: Any, y: Any, z: Any, feedback: Any) -> Any:
        self.stages.append((float(clock.time), float(y[0, 0]), feedback))
        return np.full((1, 1), 3.0)

    def jump(self, clock: Any, y: Any, z: Any, feedback: Any) -> Any:
        self.ends.append((int(clock.step), float(clock.time), float(y[0, 0]), feedback))
        return y, z


@pytest.mark.parametrize("method", ["euler", "heun", "rk4"])
@pytest.mark.parametrize("growth", [0.0, 0.5])
def test_each_stage_and_the_end_look_back_by_their_own_lag(
    monkeypatch: pytest.MonkeyPatch, method: str, growth: float
) -> None:
    """The lag is of the stage's state; a constant one is read once for each place in the step."""
    for module in (stepping, history):
        monkeypatch.setattr(module, "jnp", np)
        monkeypatch.setattr(module, "lax", Lax())
    dt, system = np.float64(0.5), Ramp(growth)
    ring = np.zeros((16, 4, 1))
    for j in range(-16, 0):
        ring[j & 15, :, 0] = [0.5 * j, 0.5, 0.5 * (j + 1), 0.5]
    kept: Any = history.History(ring, 1, True)  # type: ignore[arg-type]
    loop: Any = stepping.Loop(system, METHODS[method], dt, False)  # type: ignore[arg-type]
    begun = loop.start(np.zeros((1, 1)), None, kept)
    assert (begun.feedback is None) is (growth > 0)
    system.read = 0
    after = loop.step(begun)
    nodes = METHODS[method].nodes
    for (time, y, feedback), node in zip(system.stages, nodes, strict=True):
        assert (time, y) == (pytest.approx(0.5 * node), pytest.approx(1.5 * node))
        assert feedback == pytest.approx([0.5 * node - 2.0 - growth * y, 1.0])
    ((step, time, y, feedback),) = system.ends
    assert (step, time, y) == (1, 0.5, pytest.approx(1.5))
    assert feedback == pytest.approx([0.5 - 2.0 - growth * 1.5, 1.0])
    assert system.read == (len(nodes) + (method == "euler") if growth else len({*nodes, 1.0}) - 1)
    assert after.interval.ravel() == pytest.approx([0.0, 1.5, 1.5, 1.5])
    assert after.y.ravel() == pytest.approx([1.5])
    assert int(after.step) == 1
    again = loop.step(after)
    assert np.asarray(again.history.ring)[0].ravel() == pytest.approx([0.0, 1.5, 1.5, 1.5])
