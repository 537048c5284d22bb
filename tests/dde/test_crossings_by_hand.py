"""Crossings of the axis by hand: where to sample, how zeros are refined, and what is counted, of formulas."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde import characteristic, hopf, response
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.dde.hopf import Crossing, _between, _range, _unstable, _zero
from fluidcc.dde.response import _distinct, _refine, critical_delay, grid
from fluidcc.errors import InputError

EXACT = 1e-12
SYSTEM: Any = DelaySystem  # also of lists


def test_a_grid_has_decades_turns_and_places_about_each_pole() -> None:
    """Poles on the real axis and mates below it have none; a pole nearly on the axis is as wide as a share of it."""
    high, longest = 100.0, 0.5
    poles = np.array([-2 + 10j, -2 - 10j, -1e-12 + 50j, 0j, -3 + 0j, 400 + 300j])
    decades = 1e-8 * 10 ** (10 * np.arange(240) / 239)
    turns = np.linspace(1e-8, 100.0, 202)  # 4 for each radian: 200, and both ends
    steps = np.array([-9, -3, -1, -0.3, 0.3, 1, 3, 9])
    about = np.concatenate([10 + 2 * steps, 50 + 50e-7 * steps, 300 + 400 * steps])
    wanted = np.concatenate([decades, turns, about])
    wanted = np.sort(wanted[(wanted > 0.9e-8) & (wanted <= 100)])
    found = grid(poles, longest, high)
    assert (np.diff(found) > 0).all()
    assert found[[0, -1]] == pytest.approx([1e-8, 100.0], rel=1e-12)
    assert max(np.abs(found / each - 1).min() for each in wanted) < 1e-9
    assert max(np.abs(wanted / each - 1).min() for each in found) < 1e-9


def test_a_grid_has_an_end_to_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response, "_MOST", 10)
    assert len(grid(np.empty(0), 1e9, 1.0)) == 240 + 12 - 2  # both ends are in both


def test_refining_finds_a_zero_or_the_better_end() -> None:
    """The second curve's zero; one on an end, or none in between, gives the end whose value is the less."""

    def curves(w: np.ndarray) -> np.ndarray:
        return np.stack([w + 1, w**2 - 2], axis=1)

    assert _refine(curves, 1.0, 2.0, 1) == pytest.approx(np.sqrt(2), rel=1e-15)
    assert _refine(curves, 3.0, 4.0, 1) == 3.0
    assert _refine(curves, -4.0, -3.0, 1) == -3.0
    assert _refine(lambda w: w[:, None] - 2, 2.0, 5.0, 0) == 2.0
    assert _refine(lambda w: w[:, None] - 2, 1.0, 2.0, 0) == 2.0
    assert _refine(lambda w: np.ones((len(w), 1)), 1.0, 2.0, 0) == 1.0


def test_a_zero_is_listed_once_for_each_curve() -> None:
    """Two of one curve within a share of 1e-9 are one, unless five others lie in between."""
    near, far = 2 * (1 + 0.9e-9), 2 * (1 + 1.2e-9)
    assert _distinct([(2.0, 0), (near, 0)]) == [(2.0, 0)]
    assert _distinct([(2.0, 0), (near, 1)]) == [(2.0, 0), (near, 1)]
    assert _distinct([(2.0, 0), (far, 0)]) == [(2.0, 0), (far, 0)]
    assert _distinct([(2.0, 0), (2.0, 1), (2.0, 2), (near, 0), (near, 1)]) == [(2.0, 0), (2.0, 1), (2.0, 2)]


def test_crossings_of_two_curves() -> None:
    """By frequency, each with its curve: a straight line, a sine, and one that only comes near zero."""

    def curves(w: np.ndarray) -> np.ndarray:
        return np.stack([w - 2.5, np.sin(w), (w - 2) ** 2 + 1e-4], axis=1)

    found = response.crossings(curves, np.linspace(1.0, 7.0, 5))
    assert [curve for _, curve in found] == [0, 1, 1]
    assert [w for w, _ in found] == pytest.approx([2.5, np.pi, 2 * np.pi], rel=1e-14)
    assert response.crossings(lambda w: (w - 2)[:, None], np.array([1.0, 2.0, 3.0])) == [(2.0, 0)]


def test_a_change_of_sign_is_found_or_its_end() -> None:
    """An end is taken only where rounding may hide the change there; else it is refused."""
    assert _zero(lambda v: v**2 - 2, 1.0, 2.0, 1e-9) == pytest.approx(np.sqrt(2), rel=1e-14)
    assert _zero(lambda v: 1e20 * v - 2, 1e-20, 5e-20, 1e-9) == pytest.approx(2e-20, rel=1e-13, abs=0.0)
    assert _zero(lambda v: v + 1e-8, 0.0, 1.0, 1e-7) == 0.0
    assert _zero(lambda v: v - 2 - 1e-8, 1.0, 2.0, 1e-7) == 2.0
    assert _zero(lambda v: 3 - v, 1.0, 3.0, 1e-7) == 3.0
    with pytest.raises(InputError, match="not along one way"):
        _zero(lambda v: v + 1e-8, 0.0, 1.0, 1e-9)
    assert _zero(lambda v: v * 0 + 0.25, 1.0, 2.0, 0.25) == 1.0


def test_a_range_has_a_lesser_and_a_greater_end() -> None:
    one: Any = SimpleNamespace(lags=("tau", 1.0))
    assert _range(one, "k", (-1, 2)) == (-1.0, 2.0)
    assert _range(one, "tau", [0, 2]) == (0.0, 2.0)
    for given in ((1, 1), (2, 1), (0, np.inf), (np.nan, 1), (0, 1, 2), 3, ("a", 1)):
        with pytest.raises(InputError, match="least and largest"):
            _range(one, "k", given)
    with pytest.raises(InputError, match="tau is a lag"):
        _range(one, "tau", (-0.1, 1))


def test_the_period_at_a_crossing() -> None:
    made = Crossing(1.0, 4.0, "hopf", 2, np.zeros(1), "k")
    assert made.period == pytest.approx(np.pi / 2)
    assert made._replace(frequency=0.0).period == np.inf


class Newton:
    """In place of Newton's method: finds what it is told to, and remembers where it began."""

    def __init__(self, off: list[float], blur: float = 0.0, good: bool = True) -> None:
        self.off, self.blur, self.good = np.array(off), blur, good

    def __call__(self, equation: Any, x: np.ndarray, vectors: np.ndarray) -> Any:
        self.begin, self.vectors = x, vectors
        return SimpleNamespace(x=x + self.off, good=np.array([self.good]), blur=np.full((1, 2), self.blur))


def test_an_equilibrium_between_two_is_near_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun in proportion; as far off as the two differ, a hundredth of it and the blur, and no farther."""
    x, vectors = np.array([[1.0, 10.0], [3.0, 10.0]]), np.array([[5.0, 0.0], [5.0, 8.0]])
    equation: Any = SimpleNamespace(parameters={"a": 5.0, "k": 0.0})
    for off, blur, good, passes in (
        ([2.01, 0.09], 0.0, True, True),
        ([2.02, 0.0], 0.0, True, False),
        ([0.0, 0.11], 0.0, True, False),
        ([0.0, -0.11], 0.0, True, False),
        ([0.0, 0.11], 0.02, True, True),
        ([0.0, 0.0], 0.0, False, False),
    ):
        solve = Newton(off, blur, good)
        monkeypatch.setattr(hopf, "newton", solve)
        if not passes:
            with pytest.raises(InputError, match=r"the equilibrium is lost at k = 2"):
                _between(equation, x, vectors, 1, 2.0)
            continue
        state, vector = _between(equation, x, vectors, 1, 2.0)
        assert solve.begin == pytest.approx(np.array([[1.5, 10.0]]))
        assert state == pytest.approx(np.array([1.5, 10.0]) + off)
        assert vector.tolist() == solve.vectors[0].tolist() == [5.0, 2.0]
        assert vectors.tolist() == [[5.0, 0.0], [5.0, 8.0]]


class Spectrum:
    """In place of `roots`: so many roots of each system right of the axis, and some left of it."""

    def __init__(self, rights: list[int], state: str = "ok", most: int = 999) -> None:
        self.rights, self.state, self.most, self.asked = rights, state, most, []

    def __call__(self, batch: Any, count: int) -> Any:
        self.asked.append((len(batch.rights), count))
        s = np.where(np.arange(count + 1) < np.array(batch.rights)[:, None], 1.0, -1.0).astype(complex)
        number = np.full(len(s), min(count, self.most))
        return SimpleNamespace(s=s[:, :count], number=number, state=np.full(len(s), self.state))


class Batch:
    """Systems that only have a number of roots right of the axis."""

    def __init__(self, rights: Any) -> None:
        self.rights, self.shape = np.asarray(rights), (len(rights),)

    def __getitem__(self, some: Any) -> Batch:
        return Batch(self.rights[some])


def counted(
    monkeypatch: pytest.MonkeyPatch, rights: list[int], zeros: int = 0, state: str = "ok", most: int = 999
) -> Any:
    spectrum, told = Spectrum(rights, state, most), []
    monkeypatch.setattr(hopf, "roots", spectrum)
    monkeypatch.setattr(hopf, "size", lambda batch: np.ones(len(batch.rights)))
    monkeypatch.setattr(hopf, "without", lambda s, zeros, sizes: s)
    found = _unstable(cast(Any, Batch(rights)), zeros, told.append)
    return found, spectrum.asked, told


def test_unstable_roots_are_counted_with_twice_as_many_until_one_is_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    """First at the ends and in the middle; eight unstable of eight may be more, seven are not."""
    (rights, count), asked, told = counted(monkeypatch, [0, 7, 3, 1])
    assert (rights.tolist(), count, asked) == ([0, 7, 3, 1], 8, [(3, 8), (4, 8)])
    assert told == [0.0, 0.75]
    (rights, count), asked, _ = counted(monkeypatch, [0, 8, 3, 1])
    assert (rights.tolist(), count, asked) == ([0, 8, 3, 1], 16, [(3, 8), (4, 8), (4, 16)])
    (rights, count), asked, _ = counted(monkeypatch, [0, 7, 3, 17], zeros=1)
    assert (rights.tolist(), count, asked) == ([0, 7, 3, 17], 32, [(3, 8), (3, 16), (3, 32), (4, 32)])
    assert counted(monkeypatch, [7], zeros=1)[0][1] == 16
    assert counted(monkeypatch, [255])[0][1] == 256
    assert counted(monkeypatch, [2, 1], most=2)[0][1] == 8  # without delays there are no more, and all may be unstable
    with pytest.raises(InputError, match="more than 256 roots are unstable"):
        counted(monkeypatch, [256])
    with pytest.raises(InputError, match="too many roots lie near the axis"):
        counted(monkeypatch, [1], state="unresolved")


def test_long_batches_are_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hopf, "_CHUNK", 2)
    (rights, _), asked, told = counted(monkeypatch, [0, 1, 2, 3, 4, 5])
    assert rights.tolist() == [0, 1, 2, 3, 4, 5]
    assert asked == [(2, 8), (1, 8), (2, 8), (2, 8), (2, 8)]
    assert told == pytest.approx([0.0, 0.0, 1 / 6, 3 / 6, 5 / 6])


def test_roots_next_to_0_are_left_out_by_how_many_stay_there() -> None:
    """Those of least modulus, if within 1e-7 of the gains, or 1e-15^(1/3) and ten times for three at one place."""
    s = np.array([[2.0, 1e-8, -1.0, -5.0], [3.0, -1e-3, -1.0, np.nan]], complex)
    assert characteristic.without(s, 0, np.ones(2)) is s
    found = characteristic.without(s, 1, np.ones(2))
    assert found[0].tolist()[:3] == [2.0, -1.0, -5.0]
    assert np.isnan(found[0, 3])
    assert found[1].tolist()[:3] == [3.0, -1e-3, -1.0]
    assert characteristic.without(s, 1, np.array([1.0, 2e4]))[1].tolist()[:2] == [3.0, -1.0]
    assert characteristic.without(s, 1, np.array([0.09, 1.0]))[0].tolist()[:2] == [2.0, 1e-8]
    near = 10 * np.finfo(float).eps ** (1 / 3)
    for share, left in ((0.99, 1), (1.01, 4)):
        several = np.array([[5.0, near * share, 1j * near * share, -near * share]], complex)
        assert np.isfinite(characteristic.without(several, 3, np.ones(1))).sum() == left


def test_kept_sums_are_counted_as_chains() -> None:
    """Integrators in a row have as many roots at 0; a slow state has none, nor what one system does not keep."""

    def count(A0: Any, A: Any = None, tau: Any = ()) -> int:
        A0 = np.array(A0, float)
        if A0.ndim == 2:
            A0 = A0[None]
        A = np.zeros((0, *A0.shape[1:])) if A is None else np.array(A, float)
        return characteristic.structural(SYSTEM(A0, A[None], np.array([tau], float)))

    assert count([[0.0]]) == 1
    assert count([[0.0, 1.0], [0.0, 0.0]]) == 2
    for gain in (1e-9, 1.0, 1e9):
        assert count(gain * np.diag([1.0, 1.0], 1)) == 3
    assert count([[-1.0, 1.0], [1.0, -1.0]]) == 1
    assert count([[-1e-9, 0.0], [0.0, -1e9]]) == 0
    assert count([[[0.0]], [[-1e-6]]]) == 0
    # s - 1 + e^(-s) = s^2 / 2 - ...: a double root; s + 1 - e^(-s) = 2 s: a single one.
    assert count([[1.0]], [[[-1.0]]], [1.0]) == 2
    assert count([[-1.0]], [[[1.0]]], [1.0]) == 1
    # s - s_0 with x' = 2 x - 2 x(t - 1) has s^2 next, as 1 - 2 is not 0.
    assert count([[2.0]], [[[-2.0]]], [1.0]) == 1
    assert characteristic.structural(SYSTEM(np.zeros((0, 1, 1)), np.zeros((0, 0, 1, 1)), np.zeros((0, 0)))) == 0


def test_sizes_do_not_depend_on_units_of_states() -> None:
    """|A0| + sum |A_k|, of states in units 10^6 apart, over the unit of time."""
    A0, A = np.array([[-1.0, 2.0], [2.0, -1.0]]), np.array([[[0.0, 1.0], [1.0, 0.0]]])
    ratio = np.array([[1.0, 2.0**20], [2.0**-20, 1.0]])
    wanted = np.sqrt(10) + np.sqrt(2)
    for scale, tau in ((1.0, 1.0), (ratio, 3.0)):
        found = characteristic.size(SYSTEM((A0 * scale)[None], (A * scale)[None], [[tau]]))
        assert found == pytest.approx([wanted], rel=EXACT)


class Linear:
    """Systems by the parameter alone: shape, a slice, and which values."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values, float)
        self.shape = self.values.shape


def along(
    monkeypatch: pytest.MonkeyPatch,
    spectrum: Any,
    between: tuple[float, float] = (0.0, 1.0),
    points: int = 5,
    zeros: int = 0,
) -> Any:
    """Crossings of an equilibrium at minus the parameter, whose roots are told by its value."""

    def sorted_roots(value: float) -> Any:
        found = np.array(spectrum(value), complex)
        return found[np.lexsort((-np.imag(found), -np.real(found)))]

    def roots(systems: Linear, count: int, threads: int = 0) -> Any:
        return SimpleNamespace(s=np.array([sorted_roots(value) for value in systems.values]))

    def unstable(systems: Linear, zeros: int, report: Any) -> Any:
        report(1.0)
        right = np.array([(sorted_roots(value).real > 0).sum() - zeros for value in systems.values])
        return right, 4

    def followed(equation: Any, x: Any, vectors: Any) -> Any:
        return -vectors[:, :1], np.ones(len(vectors), bool), np.zeros(len(vectors), bool)

    monkeypatch.setattr(hopf, "followed", followed)
    monkeypatch.setattr(hopf, "equilibrium_near", lambda equation, at: np.zeros(1))
    monkeypatch.setattr(hopf, "systems", lambda equation, x, vectors: Linear(vectors[:, 0]))
    monkeypatch.setattr(hopf, "structural", lambda batch: zeros)
    monkeypatch.setattr(hopf, "size", lambda batch: np.full(batch.shape, 10.0))
    monkeypatch.setattr(hopf, "without", lambda s, zeros, sizes: s[:, zeros:] if zeros else s)
    monkeypatch.setattr(hopf, "roots", roots)
    monkeypatch.setattr(hopf, "_unstable", unstable)
    monkeypatch.setattr(
        hopf, "_between", lambda equation, x, vectors, column, value: (np.array([-value]), np.array([value, 7.0]))
    )
    given = fc.delay.Equation(lambda t, x, past, p: [-p.k * past[0][0] * p.m], [1.0], {"k": 0.4, "m": 7.0}, ["x"])
    return fc.delay.crossings(given, "k", between, points=points)


def test_roots_that_cross_are_told_with_their_number_and_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real root to the right at 0.3, a pair at 0.62, another back at 0.9: by value, at the equilibrium there."""

    def spectrum(k: float) -> list[complex]:
        return [k - 0.3, k - 0.62 + 2j, k - 0.62 - 2j, 0.9 - k + 5j - 3 * (k < 0.8), 0.9 - k - 5j - 3 * (k < 0.8), -9.0]

    found = along(monkeypatch, spectrum, (0.0, 0.79))
    assert [(each.value, each.frequency, each.kind, each.unstable) for each in found] == [
        (pytest.approx(0.3), 0.0, "zero", 1),
        (pytest.approx(0.62), pytest.approx(2.0), "hopf", 2),
    ]
    assert [each.state.tolist() for each in found] == [[pytest.approx(-0.3)], [pytest.approx(-0.62)]]
    assert found[1].period == pytest.approx(np.pi)
    assert {each.parameter for each in found} == {"k"}
    (back,) = along(monkeypatch, spectrum, (0.81, 1.0))
    assert (back.value, back.frequency, back.unstable) == (pytest.approx(0.9), pytest.approx(5.0), -2)


def test_several_that_cross_between_two_points_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by its place among the real parts: two real ones, and a pair between them."""

    def spectrum(k: float) -> list[complex]:
        return [k - 0.51, k - 0.53 + 1j, k - 0.53 - 1j, k - 0.57, -4.0]

    found = along(monkeypatch, spectrum)
    assert [each.value for each in found] == pytest.approx([0.51, 0.53, 0.57])
    assert [each.unstable for each in found] == [1, 2, 1]
    found = along(monkeypatch, lambda k: [-each for each in spectrum(k)[:4]] + [-5.0])
    assert [each.value for each in found] == pytest.approx([0.51, 0.53, 0.57])
    assert [each.unstable for each in found] == [-1, -2, -1]


def test_roots_that_cross_to_and_fro_ask_for_more_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair is found where one root's worth of change was counted."""

    def spectrum(k: float) -> list[complex]:
        return [k - 0.6 + 1j, k - 0.6 - 1j, -0.1 + 0.0j if k < 0.55 or k > 0.74 else -0.2, -4.0]

    (found,) = along(monkeypatch, spectrum)
    assert found.unstable == 2
    with pytest.raises(InputError, match="to and fro"):
        along(monkeypatch, lambda k: [k - 0.6 + 1j, k - 0.6 - 1j, 0.1 if k < 0.7 else -0.1, -4.0])


# -- critical delays ----------------------------------------------------------------------------------------------


def test_a_critical_delay_in_any_unit() -> None:
    """x' = -k x(t - tau) loses it at pi / 2 / k; with damping a < k at acos(-a / k) / sqrt(k^2 - a^2)."""
    for unit in (1.0, 1e-6):
        k, a = 3.0 / unit, 1.0 / unit
        found = critical_delay(SYSTEM([[0.0]], [[[-k]]], [5.0]), 0)
        assert (found.delay, found.frequency, found.state) == (pytest.approx(np.pi / 2 / k), pytest.approx(k), "ok")
        assert found.residual < 1e-14
        damped = critical_delay(SYSTEM([[-a]], [[[-k]]], [5.0]), 0)
        w = np.sqrt(k * k - a * a)
        assert (damped.delay, damped.frequency) == (pytest.approx(np.arccos(-a / k) / w), pytest.approx(w))
        later = critical_delay(SYSTEM([[-a]], [[[-k]]], [5.0]), 0, 0.5 * damped.delay)
        assert later.delay == pytest.approx(damped.delay)
        lost = critical_delay(SYSTEM([[-a]], [[[-k]]], [5.0]), 0, 1.1 * damped.delay)
        assert (lost.delay, lost.state) == (pytest.approx(1.1 * damped.delay), "unstable")
        assert lost.frequency == pytest.approx(w, rel=0.2)
        never = critical_delay(SYSTEM([[-k]], [[[-a]]], [5.0]), 0)
        assert (never.delay, never.frequency, never.residual, never.state) == (np.inf, None, 0.0, "never")


def test_a_critical_delay_beside_others() -> None:
    """Those stay; a delay that nobody reads loses nothing, and a system without gains either."""
    beside = SYSTEM([[0.0]], [[[-0.5]], [[-2.0]]], [0.1, 0.2])
    found = critical_delay(beside, 1)
    w = found.frequency
    assert w is not None
    assert 1j * w == pytest.approx(-0.5 * np.exp(-0.1j * w) - 2 * np.exp(-1j * w * found.delay))
    assert 0 < w * found.delay < np.pi  # the first
    unread = SYSTEM([[-1.0]], [[[0.0]], [[-0.5]]], [0.1, 0.2])
    assert critical_delay(unread, 0).state == "never"
    for index in (2, -1):
        with pytest.raises(InputError, match="delays 0 to 1"):
            critical_delay(beside, index)
    for start in (-1.0, np.nan):
        with pytest.raises(InputError, match="0 s or more"):
            critical_delay(beside, 0, start)


def test_what_cannot_be_told_is_unresolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roots at the begin, or curves that turn faster than they are sampled."""
    system = SYSTEM([[-1.0]], [[[-3.0]]], [2.0])

    def beyond(*_: Any) -> Any:
        raise ArithmeticError

    with monkeypatch.context() as patch:
        patch.setattr(response, "crossings", beyond)
        found = critical_delay(system, 0, 0.25)
        assert (found.delay, found.frequency, found.residual, found.state) == (
            pytest.approx(0.25),
            None,
            0.0,
            "unresolved",
        )
    monkeypatch.setattr(response, "roots", lambda *_, **__: SimpleNamespace(state="unresolved"))
    assert critical_delay(system, 0, 0.5) == (pytest.approx(0.5), None, 0.0, "unresolved")


def test_a_matrix_is_a_product_of_its_rank() -> None:
    for matrix, rank in (
        (np.outer([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]), 1),
        (np.diag([1.0, 1e-12, 0.0]), 2),
        (np.diag([1.0, 1e-14, 0.0]), 1),
        (np.zeros((2, 2)), 0),
    ):
        U, V = response._factored(matrix)
        assert (U.shape[1], V.shape[0]) == (rank, rank)
        np.testing.assert_allclose(U @ V, matrix, atol=1e-13)
