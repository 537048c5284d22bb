"""Steps of a run, places in its past, meshes and curves by hand: what is compiled stands in, numbers are replayed."""

from __future__ import annotations

import itertools
import math
import warnings
from types import SimpleNamespace
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
import pytest

import fluidcc as fc
from fluidcc.compiling.settings import our_settings
from fluidcc.dde import boundary, history, periodic, solution
from fluidcc.dde import equation as equation_module
from fluidcc.dde import integrate as integrate_module
from fluidcc.dde.equation import Same
from fluidcc.errors import InputError
from tests.engines.fluid.in_numpy import Lax, Numpy

# -- steps that are tried -----------------------------------------------------------------------------------------


class Compiled:
    """In place of the compiled run: states are the time, and what is off by a power of the step; all that was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, order: float = 4.0, size: float = 1.0) -> None:
        self.order, self.size = order, size
        self.made: list[tuple[int, int, tuple[int, ...]]] = []
        self.runs: list[tuple[float, int, int]] = []
        monkeypatch.setattr(solution, "_compiled", self.compiled)

    def compiled(self, kernels: Any, samples: int, depth: int, zero: tuple[int, ...], past: Any, equation: Any) -> Any:
        self.made.append((samples, depth, zero))

        def run(begin: Any, vectors: Any, dt: Any, stride: Any) -> Any:
            self.runs.append((float(dt), int(stride), vectors.shape[1]))
            states = np.linspace(1.0, 2.0, samples + 1) + self.size * float(dt) ** self.order
            return states[:, None, None] * np.ones((1, len(begin), 1)) * np.ones(vectors.shape[1])

        return run


def equation(*lags: Any) -> Any:
    return fc.delay.Equation(lambda t, x, past, p: [-p.a * past[0][0]], list(lags), {"a": 1.0, "tau": 2.0}, ["x"])


def test_steps_are_halved_until_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """From an eighth of the shortest lag on; the error is the change, of the largest modulus."""
    made = Compiled(monkeypatch, size=1.0)
    found = fc.delay.solve(equation(2.0, 4.0), 64.0, past=[1.0], samples=8, tolerance=1e-4)
    steps = [0.25, 0.125, 0.0625, 0.03125]
    assert [dt for dt, *_ in made.runs] == steps
    assert [dt * stride for dt, stride, _ in made.runs] == [8.0] * 4
    changes = [(a**4 - b**4) / (2 + b**4) for a, b in itertools.pairwise(steps)]
    assert changes[-1] < 1e-4 < changes[-2]
    assert (found.dt, found.error) == (0.03125, pytest.approx(changes[-1]))
    assert found["time"].values.tolist() == (8.0 * np.arange(9)).tolist()
    assert found["x"].values[-1] == pytest.approx(2 + 0.03125**4)
    assert {depth for _, depth, _ in made.made} == {history.ring_depth(4.0, dt) for dt in steps}
    made.runs.clear()
    fc.delay.solve(equation(2.0), 1.0, past=[1.0], samples=8, tolerance=1.0)
    assert [dt for dt, *_ in made.runs] == [1 / 256, 1 / 512]  # 256 steps of a run at least


def test_a_step_that_is_given_is_taken_and_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once; a step is no longer than the shortest lag, and divides the samples."""
    made = Compiled(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the tolerance is of no effect
        found = fc.delay.solve(equation(2.0), 64.0, past=[1.0], samples=8, dt=2.0, tolerance=1e-9)
    assert [dt for dt, *_ in made.runs] == [2.0, 1.0]
    assert found.dt == 1.0
    made.runs.clear()
    fc.delay.solve(equation(2.0), 64.0, past=[1.0], samples=8, dt=1.7)
    assert [dt for dt, *_ in made.runs] == [8 / 5, 8 / 10]
    fc.delay.solve(equation(2.0), 64.0, past=[1.0], samples=8, dt=2.0 * (1 + 0.5e-9))
    with pytest.raises(InputError, match="shortest lag, 2"):
        fc.delay.solve(equation(2.0), 64.0, past=[1.0], samples=8, dt=2.0 * (1 + 2e-9))
    made.runs.clear()
    fc.delay.solve(equation(2.0), 4.0, past=[1.0], samples=16, dt=1.0)  # more samples than steps
    assert [dt for dt, *_ in made.runs] == [0.25, 0.125]


def test_a_run_that_still_changes_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    """After eight halvings; what is not finite is refused."""
    made = Compiled(monkeypatch, order=0.01)
    with pytest.warns(UserWarning, match="still changes"):
        fc.delay.solve(equation(2.0), 64.0, past=[1.0], samples=8)
    assert [dt for dt, *_ in made.runs] == [0.25 / 2**k for k in range(9)]
    made.size = math.nan
    with pytest.raises(InputError, match="not finite"):
        fc.delay.solve(equation(2.0), 64.0, past=[1.0], samples=8, dt=1.0)


def test_points_go_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solution, "_POINTS", 3)
    made = Compiled(monkeypatch)
    found = fc.delay.solve(equation(2.0), 64.0, past=[1.0], samples=8, dt=2.0, over={"a": np.arange(1.0, 8.0)})
    assert [points for *_, points in made.runs] == [3, 3, 1] * 2
    assert found["x"].dims == ("time", "a")
    assert found["x"].shape == (9, 7)
    assert found["a"].values.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_runs_that_are_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their steps, halved ones too, by their samples, or by what must be remembered."""
    Compiled(monkeypatch)
    monkeypatch.setattr(solution, "_MOST_STEPS", 64)
    fc.delay.solve(equation(2.0), 32.0, past=[1.0], samples=8, dt=1.0)
    for options in ({"dt": 0.9}, {"dt": 1.0, "samples": 65}, {"dt": 0.4}):
        with pytest.raises(InputError, match=r"until: .* steps"):
            fc.delay.solve(equation(2.0), 32.0, past=[1.0], **{"samples": 8, **options})  # pyright: ignore
    monkeypatch.undo()
    Compiled(monkeypatch)
    monkeypatch.setattr(solution, "_MOST_KEPT", 4 * 2 * 2)  # two steps of one state and of two points
    fc.delay.solve(equation(2.0), 32.0, past=[1.0], samples=8, dt=2.0, over={"a": [1.0, 2.0]})
    with pytest.raises(InputError, match="to remember"):
        fc.delay.solve(equation(2.0), 32.0, past=[1.0], samples=8, dt=2.0, over={"a": [1.0, 2.0, 3.0]})


def test_lags_of_0_are_known_by_all_points(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Compiled(monkeypatch)
    fc.delay.solve(equation(2.0, 0.0), 64.0, past=[1.0], samples=8, dt=1.0)
    assert made.made[0][2] == (1,)
    with pytest.raises(InputError, match="a lag of 0 among longer ones"):
        fc.delay.solve(equation("tau"), 64.0, past=[1.0], over={"tau": [0.0, 1.0]})


# -- places in the past -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    ("lag", "steps"), [(0.3, 3.0), (0.25, 2.5), (0.1, 1.0), (0.1 * (1 - 1e-10), 1.0), (0.30001, 3.0001)]
)
def test_a_place_is_whole_steps_and_a_rest(
    monkeypatch: pytest.MonkeyPatch, node: float, lag: float, steps: float
) -> None:
    """Never later than the step before; a lag of whole steps but for rounding is just that."""
    monkeypatch.setattr(history, "jnp", Numpy())
    monkeypatch.setattr(history, "lax", Lax())
    found = history.place(cast(Any, np.array([lag])), cast(Any, 0.1), node, False)
    offset = min(math.floor(node - steps), -1)
    assert found.offset.tolist() == [offset]
    assert np.asarray(found.theta) == pytest.approx([node - steps - offset], abs=1e-12)
    if steps == round(steps) and node != 0.5:
        aligned = history.place(cast(Any, np.array([lag])), cast(Any, 0.1), node, True)
        assert (aligned.offset.tolist(), aligned.theta.tolist()) == ([round(node - steps)], [0.0])


def test_a_cubic_has_the_values_and_slopes_of_its_ends() -> None:
    theta = np.array([0.0, 0.25, 1.0])
    a, b, c, d = 2.0, -3.0, 5.0, 7.0
    ends: Any = (a, b, a + b + c + d, b + 2 * c + 3 * d)
    value = history.hermite(cast(Any, theta), *ends)
    slope = history.hermite_slope(cast(Any, theta), *ends)
    np.testing.assert_allclose(value, a + b * theta + c * theta**2 + d * theta**3, rtol=1e-14)
    np.testing.assert_allclose(slope, b + 2 * c * theta + 3 * d * theta**2, rtol=1e-13)


@pytest.mark.parametrize(("lag", "depth"), [(0.1, 8), (0.4, 8), (0.5, 16), (1.2, 16), (1.3, 32), (0.001, 4)])
def test_a_ring_holds_the_longest_lag_and_some_steps(lag: float, depth: int) -> None:
    """A power of two, larger than the lag's steps and three, and of four at least."""
    assert history.ring_depth(lag * (1 + 1e-9), 0.1) == depth
    assert depth > lag / 0.1 + 3 or depth == 4


def test_a_ring_is_read_at_one_place_or_at_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that follow each other or not; of one place for all, of one for each row, and of each point its own."""
    monkeypatch.setattr(history, "jnp", Numpy())
    monkeypatch.setattr(history, "lax", Lax())
    rng = np.random.default_rng(1)
    ring = rng.normal(size=(8, 12, 2))  # of three signals: starts, right slopes, ends, left slopes
    kept: Any = history.History(cast(Any, ring), 3, True)
    plain: Any = history.History(cast(Any, ring), 12, False)
    for rows in ((0, 1), (2, 0), (1,)):
        for offset in (np.array([-3]), np.full((len(rows), 1), -3), -3 + np.zeros((len(rows), 2), int)):
            offset = offset - (np.arange(offset.size).reshape(offset.shape) if offset.size > 1 else 0)
            theta = 0.25 + 0.0 * offset
            where = history.Place(cast(Any, offset), cast(Any, theta))
            at = np.broadcast_to(offset.reshape(-1, 1) if offset.ndim == 1 else offset, (len(rows), 2))
            parts = [
                np.array([[ring[(9 + at[i, p]) % 8, 3 * part + row, p] for p in (0, 1)] for i, row in enumerate(rows)])
                for part in range(4)
            ]
            laws: Any = history.hermite, history.hermite_slope
            value, slope = (law(0.25, *parts) for law in laws)
            np.testing.assert_allclose(kept.read(9, where, rows), value, rtol=1e-13)
            both = kept.read(9, where, rows, slopes=True)
            np.testing.assert_allclose(both, np.concatenate([value, slope]), rtol=1e-13)
            line = parts[0] + 0.25 * (parts[2] - parts[0])
            np.testing.assert_allclose(kept.read(9, where, rows, linear=True), line, rtol=1e-13)
            np.testing.assert_allclose(plain.read(9, where, rows), parts[0], rtol=1e-13)
            if offset.size == 2 * len(rows):
                np.testing.assert_allclose(kept.at(9, offset, rows), [parts[0], parts[2]], rtol=1e-13)
    pushed: Any = kept.push(10, np.ones((12, 2)))
    assert (pushed.ring[2] == 1).all()
    np.testing.assert_array_equal(np.delete(np.asarray(pushed.ring), 2, axis=0), np.delete(ring, 2, axis=0))


# -- meshes -------------------------------------------------------------------------------------------------------


def test_intervals_share_slope_bend_and_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    """By plain differences at 41 places: a state of one sign counts by its logarithm too, three times as much."""
    monkeypatch.setattr(periodic, "_FINE", 41)
    t = np.linspace(0, 1, 41)
    x = np.stack([np.sin(2 * np.pi * t), np.exp(3 * t), -2.0 - t**4], axis=1)

    def rate(y: Any) -> Any:
        inner = (y[2:] - y[:-2]) / (t[2:] - t[:-2])
        return np.concatenate([[(y[1] - y[0]) / (t[1] - t[0])], inner, [(y[-1] - y[-2]) / (t[-1] - t[-2])]])

    slopes = np.stack([rate(column / np.ptp(column)) for column in x.T])
    bends = np.stack([rate(row) for row in slopes])
    speed, bend = np.sqrt((slopes**2).sum(axis=0)), (bends**2).sum(axis=0) ** 0.25
    density = 0.5 + speed / speed.mean() + bend / bend.mean()
    for column in x.T[1:]:
        growth = np.abs(rate(np.log(np.abs(column))))
        density = density + 3 * growth / max(growth.mean(), 12.0)
    parts = (density[1:] + density[:-1]) / 2 + 0.05 * density.mean()
    reached = np.concatenate([[0.0], np.cumsum(parts)]) / parts.sum()
    expected = np.interp(np.linspace(0, 1, 8), reached, t)
    assert periodic.mesh_for(lambda theta: x, 7) == pytest.approx(expected, rel=1e-10)


def test_courses_are_compared_in_step() -> None:
    """A shift of a hundredth is none; a tenth of peak to peak is one, of each state's own."""
    even = np.linspace(0, 1, 9)

    def course(theta: Any) -> Any:
        turn = 2 * np.pi * np.asarray(theta)
        return np.stack([np.sin(turn), 100 * np.cos(turn)], axis=1)

    profile = periodic.sampled(course, even, 3.0)
    assert periodic.apart(profile, lambda theta: course(theta + 0.01)) < 1e-6
    off = periodic.apart(profile, lambda theta: course(theta) + np.array([0.2, 0.0]))
    assert off == pytest.approx(0.1, rel=0.1)
    assert periodic.apart(profile, lambda theta: course(theta) + np.array([0.0, 0.2])) == pytest.approx(1e-3, rel=0.1)


def test_last_coefficients_are_of_what_changes_are_measured_by() -> None:
    """Legendre's of the eighth and seventh degree on each interval; the larger, over the state there."""
    ends = np.array([0.0, 0.5, 1.0])
    series = np.zeros(9)
    series[[0, 7, 8]] = [40.0, 0.03, -0.08]

    def course(theta: Any) -> Any:
        inner = np.where(theta <= 0.5, 4 * theta - 1, 4 * theta - 3)
        found = np.where(theta <= 0.5, np.polynomial.legendre.legval(inner, series), 39.95 - 0.03 * (inner + 1))
        return found[:, None]

    profile = periodic.sampled(course, ends, 1.0)
    found = periodic.tail(profile)
    assert found[0] == pytest.approx(0.08 / 40.0, rel=0.01)
    assert found[1] < 1e-12


# -- curves -------------------------------------------------------------------------------------------------------


def test_slopes_of_a_function_of_cells_are_one_sided_at_the_rim() -> None:
    """Central inside; where one side is not defined, by the other."""

    def at(cells: Any) -> Any:
        u, v = cells.T
        return np.where((u >= 0) & (v <= 4), 3 * u + 5 * v + u * v, np.nan)

    cells = np.array([[2.0, 3.0], [0.0, 3.0], [2.0, 4.0]])
    values, slopes = boundary._jacobians(at, cells)
    assert values == pytest.approx([6 + 15 + 6, 15.0, 6 + 20 + 8])
    assert slopes == pytest.approx(np.array([[6.0, 7.0], [6.0, 5.0], [7.0, 7.0]]), rel=1e-6)


@pytest.mark.parametrize(
    ("off", "bend", "good"),
    [(0.0, 0.0, True), (0.1, 0.0, True), (0.1, 0.3, True), (0.7, 0.0, False), (-0.2, 0.3, True)],
)
def test_points_are_moved_along_their_normal(off: float, bend: float, good: bool) -> None:
    """To where the function is 0, no farther than two steps; a value that is none is not good."""

    def at(cells: Any) -> Any:
        v = cells[:, 1] - 1.0
        return 2 * (v + bend * v * v)

    cells = np.array([[3.0, 1.0 - off]])
    found, came = boundary._corrected(at, cells, np.array([[0.0, 1.0]]), np.array([2.0]))
    assert came.tolist() == [good]
    if good:
        assert found == pytest.approx(np.array([[3.0, 1.0]]), abs=1e-8)
    none = boundary._corrected(
        lambda cells: np.full(len(cells), np.nan), cells, np.array([[0.0, 1.0]]), np.array([2.0])
    )
    assert none[1].tolist() == [False]


def test_starts_are_zeros_of_edges_whose_ends_differ_in_sign() -> None:
    """Down and across; one through a corner counts once; a jump is none, and what is not defined is neither."""

    def starts(function: Any) -> Any:
        places = np.stack(np.meshgrid(np.arange(3.0), np.arange(3.0), indexing="ij"), axis=-1)
        values = function(places.reshape(-1, 2)).reshape(3, 3)
        found, jumps = boundary._starts(function, values)
        return sorted(map(tuple, found.round(9).tolist())), sorted(map(tuple, jumps.round(6).tolist()))

    zeros, jumps = starts(lambda at: at[:, 0] ** 3 - 2.0)
    root = round(2.0 ** (1 / 3), 9)
    assert (zeros, jumps) == ([(root, 0.0), (root, 1.0), (root, 2.0)], [])
    zeros, jumps = starts(lambda at: at[:, 1] - 0.25 - 0.5 * at[:, 0])
    assert (zeros, jumps) == ([(0.0, 0.25), (1.0, 0.75), (1.5, 1.0), (2.0, 1.25)], [])
    zeros, jumps = starts(lambda at: np.where(at[:, 0] < 1.4, -1.0, 3.0))
    assert zeros == []
    assert [round(u, 3) for u, _ in jumps] == [1.4] * 3
    assert starts(lambda at: np.where(at[:, 0] < 1.4, -1.0, np.nan)) == ([], [])


# -- equations of plain functions ---------------------------------------------------------------------------------


def integrated(monkeypatch: pytest.MonkeyPatch, flat: bool = True, **changed: Any) -> Any:
    """Questions to the integration, and what is made of its states (3 samples, 2 rows, points)."""
    asked: dict[str, Any] = {}

    def integrate(function: Any, past: Any, lags: Any, dt: Any, **others: Any) -> Any:
        asked.update(others, function=function, past=past, lags=lags, dt=float(dt))
        points = 1 if flat else 3
        return np.arange(6.0 * points).reshape(3, 2, points)

    monkeypatch.setattr(integrate_module, "integrate", integrate)
    shape = (2,) if flat else (2, 3)
    options: dict[str, Any] = {"past": lambda t: jnp.ones(shape), "lags": [0.5, 1.2], "until": 2.0, "dt": 0.1}
    options |= {"stride": 10} | changed
    function: Any = lambda t, y, lagged: (t, y, lagged)  # noqa: E731
    found = integrate_module.solve(function, **options)
    return SimpleNamespace(**asked), found


def test_a_run_of_a_plain_function_is_asked_for_whole_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A depth for the longest lag, or its bound; one state is a column to the run, and none to the function."""
    asked, found = integrated(monkeypatch)
    assert (asked.samples, asked.stride, asked.dt, asked.state_dependent) == (2, 10, pytest.approx(0.1), False)
    assert asked.depth == history.ring_depth(1.2, 0.1)
    assert integrated(monkeypatch, longest_lag=9.0)[0].depth == history.ring_depth(9.0, 0.1)
    assert np.asarray(found.time) == pytest.approx([0.0, 1.0, 2.0])
    assert found.state.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert asked.past(0.0).shape == (2, 1)
    y = np.array([[1.0], [2.0]])
    t, own, lagged = 3.0, np.array([1.0, 2.0]), (np.array([5.0, 6.0]),)

    def told(t: Any, y: Any, lagged: Any) -> Any:
        assert (t, y.tolist(), lagged[0].tolist()) == (3.0, [1.0, 2.0], [5.0, 6.0])
        return own

    monkeypatch.undo()
    asked_again: dict[str, Any] = {}
    monkeypatch.setattr(
        integrate_module, "integrate", lambda f, *given, **more: asked_again.update(f=f) or np.zeros((3, 2, 1))
    )
    integrate_module.solve(told, past=lambda t: jnp.ones(2), lags=[1.0], until=1.0, dt=0.5)
    assert asked_again["f"](t, y, (lagged[0][:, None],)).tolist() == [[1.0], [2.0]]
    batch, found = integrated(monkeypatch, flat=False)
    assert found.state.shape == (3, 2, 3)
    assert batch.past(0.0).shape == (2, 3)
    assert batch.function(1.0, y, ())[1] is y


def test_lags_of_the_state_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """So have those that are no plain numbers; plain ones are no shorter than the step."""
    asked, _ = integrated(monkeypatch, lags=lambda y: [y[0]], longest_lag=2.0)
    assert asked.state_dependent is True
    assert [lag.tolist() for lag in asked.lags(np.array([[4.0], [5.0]]))] == [[4.0]]
    mixed = [0.5, jnp.asarray(0.7)]
    assert integrated(monkeypatch, lags=mixed, longest_lag=2.0)[0].depth == history.ring_depth(2.0, 0.1)
    for lags in (mixed, lambda y: [y[0]]):
        with pytest.raises(InputError, match="longest_lag: needed"):
            integrated(monkeypatch, lags=lags)
    integrated(monkeypatch, lags=[0.1 * (1 - 0.5e-9), np.array([0.1, 3.0])])
    assert integrated(monkeypatch, lags=[1])[0].depth == history.ring_depth(1.0, 0.1)
    for lags in ([0.1 * (1 - 2e-9)], [np.array([0.05, 3.0])]):
        with pytest.raises(InputError, match="no lag may be shorter"):
            integrated(monkeypatch, lags=lags)


@pytest.mark.parametrize(
    ("until", "stride", "fits"), [(2.0, 10, True), (2.0, 7, False), (2.05, 1, False), (0.04, 1, False), (2.0, 1, True)]
)
def test_steps_and_samples_divide_the_time(
    monkeypatch: pytest.MonkeyPatch, until: float, stride: int, fits: bool
) -> None:
    if fits:
        assert integrated(monkeypatch, until=until, stride=stride)[0].samples == round(until / 0.1) // stride
        return
    with pytest.raises(InputError, match="does not divide until"):
        integrated(monkeypatch, until=until, stride=stride)


# -- Newton's method for cycles -----------------------------------------------------------------------------------

SMALL = periodic.Profile(np.array([0.0, 1.0]), 2.0 + np.arange(16.0).reshape(8, 2), 3.0)


class Moves:
    """In place of the linear equations: moves as told, and all that was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, moves: list[Any]) -> None:
        self.moves, self.asked, self.profiles = list(moves), [], []
        monkeypatch.setattr(periodic, "_phase", lambda guess: 0.5 * np.arange(16.0))
        monkeypatch.setattr(periodic, "_linear", self.linear)
        monkeypatch.setattr(periodic, "newton_step", self.step)

    def linear(self, kernels: Any, vector: Any, profile: Any) -> Any:
        self.profiles.append((vector.copy(), profile.x.copy(), profile.period))
        by_vector = np.stack([np.full(16, 7.0), np.full(16, 8.0)], axis=1)
        return SimpleNamespace(residual=np.full(16, 0.25), by_period=np.full(16, 6.0), by_vector=by_vector)

    def step(self, at: Any, columns: Any, rows: Any, right: Any, scale: Any) -> Any:
        self.asked.append(([each[0] for each in columns], rows, right, scale))
        return self.moves.pop(0)


def test_a_cycle_moves_until_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """By no more than half of any scale; the period too; the phase holds it in step with its guess."""
    scale = np.append(periodic.local(SMALL.x).ravel(), 3.0)
    far, near = np.zeros(17), np.zeros(17)
    far[3], far[16] = 2.0 * scale[3], 0.6
    near[5] = 0.9e-8 * scale[5]
    made = Moves(monkeypatch, [far.copy(), near.copy()])
    vector = np.array([4.0, 5.0])
    found = periodic.solved(cast(Any, SimpleNamespace(kernels=None)), vector, SMALL)
    assert found is not None
    profile, parameters = found
    moved = SMALL.x.ravel() - 0.25 * far[:16] - near[:16]
    assert profile.x.ravel() == pytest.approx(moved, rel=1e-12)
    assert (profile.period, parameters.tolist()) == (pytest.approx(3.0 - 0.25 * 0.6), [4.0, 5.0])
    (first, second) = made.asked
    assert first[0] == [6.0]
    assert first[1][0].tolist() == (0.5 * np.arange(16)).tolist()
    assert first[2].tolist() == [0.25] * 16 + [0.0]
    assert first[3] == pytest.approx(scale)
    phase = 0.5 * np.arange(16)
    assert second[2][16] == pytest.approx(phase @ (-0.25 * far[:16]))
    assert vector.tolist() == [4.0, 5.0]


def test_a_cycle_along_a_branch_moves_across_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """At right angles to the direction, each part over its own scale squared; the parameter is unknown too."""
    direction = periodic.Direction(0.1 * np.arange(16.0).reshape(8, 2), 0.3, 0.2, 1, 2.5)
    size = np.ptp(SMALL.x, axis=0)
    tangent = np.append((direction.x / size**2 / 8).ravel(), [0.3 / 3.0**2, 0.2 / 2.5**2])
    first, last = np.zeros(18), np.zeros(18)
    first[2], first[16], first[17] = 0.01, 0.03, 0.5
    made = Moves(monkeypatch, [first, last])
    begin = np.array([4.0, 5.0])
    found = periodic.solved(cast(Any, SimpleNamespace(kernels=None)), begin, SMALL, direction)
    assert found is not None
    assert found[1].tolist() == [4.0, 4.5]
    assert begin.tolist() == [4.0, 5.0]
    assert made.asked[0][0] == [6.0, 8.0]
    assert made.asked[0][1][1] == pytest.approx(tangent)
    assert made.asked[0][2][16:].tolist() == [0.0, 0.0]
    assert made.asked[0][3][16:].tolist() == [3.0, 2.5]
    off = np.zeros(18)
    off[2], off[16], off[17] = -0.01, -0.03, -0.5
    assert made.asked[1][2][17] == pytest.approx(tangent @ off)
    assert made.profiles[1][0].tolist() == [4.0, 4.5]


def test_a_cycle_that_never_stands_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 25 steps; nor where there is no step, or where a last one had to be cut."""
    step = np.zeros(17)
    step[0] = 1.1e-8 * periodic.local(SMALL.x)[0, 0]
    given: Any = SimpleNamespace(kernels=None)
    assert len(Moves(monkeypatch, [step.copy()] * 25).moves) == 25
    assert periodic.solved(given, np.zeros(2), SMALL) is None
    Moves(monkeypatch, [step.copy(), None])
    assert periodic.solved(given, np.zeros(2), SMALL) is None


def test_equations_are_solved_to_their_own_scales() -> None:
    """Rows and columns beside those of the nodes, of unknowns of any size; what is no number, or singular, has none."""
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(6, 6)) * 10.0 ** rng.integers(-8, 8, size=(6, 1))
    right = rng.normal(size=6) * np.abs(matrix).max(axis=1)
    places = np.argwhere(np.ones((4, 4)))
    at: Any = SimpleNamespace(
        entries=matrix[:4, :4].ravel(), rows=places[:, 0], columns=places[:, 1], residual=np.zeros(4)
    )
    columns, rows = [matrix[:4, 4], matrix[:4, 5]], [matrix[4, :4], matrix[5]]
    whole = matrix.copy()
    whole[4, 4:] = 0.0
    scale = 10.0 ** rng.integers(-5, 5, size=6)
    found = periodic.newton_step(at, columns, rows, right, scale)
    assert found is not None
    np.testing.assert_allclose(found, np.linalg.solve(whole, right), rtol=1e-8)
    assert periodic.newton_step(at, columns, rows, right * np.nan, scale) is None
    assert periodic.newton_step(at, [columns[0], np.inf * columns[1]], rows, right, scale) is None
    rows[1] = np.append(matrix[5, :4], [0.0, 1.0])
    assert periodic.newton_step(at, [0 * columns[0], columns[1]], rows, right, scale) is None


def test_a_course_at_rest_has_even_intervals() -> None:
    """Nothing moves, and nothing is divided by it."""
    found = periodic.mesh_for(lambda theta: np.zeros((len(theta), 2)), 5)
    assert found == pytest.approx(np.linspace(0, 1, 6), abs=1e-12)


# -- what is compiled once ----------------------------------------------------------------------------------------


def test_keys_of_one_object_are_equal() -> None:
    """Not those of equal ones, nor anything else."""
    one, other = [1], [1]
    assert Same(one) == Same(one)
    assert hash(Same(one)) == hash(Same(one))
    assert Same(one) != Same(other)
    assert Same(one) != one
    assert len({Same(one), Same(one), Same(other)}) == 2


def test_functions_are_made_once_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equation_module, "_FUNCTIONS", 2)
    kernels = equation_module.Kernels(None, (), (), 1)
    made: list[str] = []

    def make(name: str) -> Any:
        return kernels.once(name, lambda: made.append(name) or name)

    assert [make(name) for name in "aabbcca"] == list("aabbcca")
    assert made == ["a", "b", "c", "a"]
    assert list(kernels.compiled) == ["c", "a"]


def test_lags_are_numbers_parameters_or_functions() -> None:
    kernels = equation_module.Kernels(
        lambda t, x, past, p: [-p.k * past[2][0]], (2.0, "tau", lambda x, p: x[0] * p.k), ("k", "tau"), 1
    )
    x, vector = np.array([3.0]), np.array([5.0, 7.0])
    with our_settings():
        assert np.asarray(kernels.lags(x, vector)).tolist() == [2.0, 7.0, 15.0]
        assert np.asarray(kernels.still(x, vector)).tolist() == [-15.0]
    assert [kernels.uses(name) for name in ("k", "tau")] == [True, False]
    assert kernels.timed is False
    assert equation_module.Kernels(lambda t, x, past, p: [t - x[0]], (1.0,), (), 1).timed is True


# -- multipliers --------------------------------------------------------------------------------------------------


def multipliers(monkeypatch: pytest.MonkeyPatch, parts: list[np.ndarray]) -> Any:
    """Roots of x(n + 1) = P_1 x(n) + P_2 x(n - 1) + ..., with another matrix on the left."""
    size = len(parts[0])
    left = np.eye(size) + 0.25 * np.eye(size, k=1)
    places = np.argwhere(np.ones((size, size)))
    entries = np.concatenate([left.ravel(), *(-(left @ part).ravel() for part in parts)])
    rows, columns = (np.tile(places[:, axis], 1 + len(parts)) for axis in (0, 1))
    back = np.repeat(np.arange(1 + len(parts)), size * size)
    kept = entries != 0
    linear = SimpleNamespace(entries=entries[kept], rows=rows[kept], columns=columns[kept], back=back[kept])
    monkeypatch.setattr(periodic, "_linear", lambda kernels, vector, profile: linear)
    given: Any = SimpleNamespace(kernels=None, vector=None)
    return periodic.multipliers(given, cast(Any, SimpleNamespace(x=np.zeros(size))))


def test_multipliers_are_those_of_a_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """The six largest, of one period back; of two those of z^2 = a z + b."""
    values = np.array([0.3, -2.0, 1.0, 0.5, 0.1, -0.2, 0.7, 0.05])
    found = multipliers(monkeypatch, [np.diag(values)])
    assert found == pytest.approx([-2.0, 1.0, 0.7, 0.5, 0.3, -0.2], abs=1e-12)
    a, b = np.array([0.5, 0.1]), np.array([0.3, -0.4])
    wanted = np.concatenate([np.roots([1, -p, -q]) for p, q in zip(a, b, strict=True)])
    found = multipliers(monkeypatch, [np.diag(a), np.diag(b)])
    order = [np.lexsort((np.imag(each), np.real(each))) for each in (found, wanted)]
    assert found[order[0]] == pytest.approx(wanted[order[1]], abs=1e-12)


def test_multipliers_of_1_but_for_their_error_are_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least of those found is 1 to within that error: more are asked for."""
    asked: list[int] = []

    def eigs(_: Any, count: int, **options: Any) -> np.ndarray:
        asked.append(count)
        return np.full(count, 1 - periodic.ONE if count == 6 else 0.5, complex)

    monkeypatch.setattr(periodic, "eigs", eigs)
    multipliers(monkeypatch, [np.diag(0.5 * np.ones(210))])
    assert asked == [6, 12]


def test_multipliers_of_large_systems_are_looked_for_until_one_is_less_than_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six at first, and twice as many where all of them exceed 1."""
    for large in (3, 9, 17):
        values = 0.5 * np.ones(210)
        values[:large] = 1.5 + 0.25 * np.arange(large)
        values[large] = 1.0
        found = multipliers(monkeypatch, [np.diag(values)])
        assert found[: large + 1] == pytest.approx([*values[:large][::-1], 1.0], rel=1e-6)
        assert np.abs(found[large + 1 :]) == pytest.approx(0.5, rel=1e-6)
        assert len(found) >= large + 2
