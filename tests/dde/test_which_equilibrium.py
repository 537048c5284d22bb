"""Which equilibrium it is: one is followed and no other, is found once, and at 0 as well as elsewhere."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import lambertw

import fluidcc as fc
from fluidcc.dde import fixed_points
from fluidcc.errors import InputError
from tests.dde.equations import (
    BESIDE,
    CHAIN,
    CONSTANTS,
    GAP,
    LEAKS,
    LOCKED,
    NEAR,
    PARALLEL,
    RIVALS,
    ROUNDED,
    SWINGS,
    THREE,
    VIRUS,
)

EXACT = 1e-9


@pytest.mark.slow
def test_no_other_is_taken_for_it() -> None:
    """However far it is followed: each of 31 points, and the one crossing in closed form."""
    w = np.linspace(0, 60, 31)
    found = fc.delay.chart(LOCKED, {"w": w}, at=[0]).dataset
    assert (found["reason"] == "ok").all()
    assert found["state_x"].values == pytest.approx(w, abs=EXACT)
    assert (found["stable"].values == (1.3 + 0.6 * np.tanh(w / 10) < np.pi / 2)).all()
    wanted = 10 * np.arctanh((np.pi / 2 - 1.3) / 0.6)
    for until in (12, 60):
        (one,) = fc.delay.crossings(LOCKED, "w", (0, until), at=[0], points=60)
        assert one.value == pytest.approx(wanted, rel=EXACT)
        assert one.state == pytest.approx([wanted], rel=EXACT)
    assert fc.delay.crossings(LOCKED, "w", (46, 55.5), at=[0], points=60) == []


@pytest.mark.parametrize("gap", [0.1, 1e-4])
def test_two_that_turn_together_are_told_apart(gap: float) -> None:
    """Parallel parabolas: the upper one is stable, the lower one is not."""
    q = np.linspace(0, 1, 26)
    found = fc.delay.chart(PARALLEL.at(g=gap), {"q": q}, at=[0.0]).dataset
    assert (found["reason"] == "ok").all()
    assert found["state_x"].values == pytest.approx(q**2, abs=1e-3 * gap)
    assert found["root"].values == pytest.approx(float(lambertw(-gap).real), rel=1e-3)  # s = -g e^-s


@pytest.mark.slow
def test_a_way_that_turns_back_and_forth() -> None:
    """15 sin w, and all of its neighbours 2 pi apart."""
    w = np.linspace(0, 20, 101)
    found = fc.delay.chart(SWINGS, {"w": w}, at=[0.0]).dataset
    assert found["state_x"].values == pytest.approx(15 * np.sin(w), abs=1e-9)


@pytest.mark.slow
def test_next_to_another_it_goes_on() -> None:
    """Two branches that nearly meet: m x - x^2 + e."""
    near = NEAR.at(m=1.0)
    m = np.linspace(-2, 2, 9)
    for e in (1e-3, 1e-10):
        upper = fc.delay.chart(near.at(e=e), {"m": m}, at=[1.0]).dataset["state_x"].values
        root = np.hypot(m, 2 * np.sqrt(e))
        assert upper == pytest.approx(np.where(m < 0, 2 * e / (root - m), (m + root) / 2), rel=1e-6)
    lost = fc.delay.chart(near.at(e=-1e-3), {"m": m}, at=[1.0]).dataset  # where they end in a fold
    assert (lost["stable"].notnull().values == (m > 0)).all()
    # With no gap they meet, and which is meant beyond cannot be told.
    with pytest.raises(fc.InputError, match=r"the equilibrium is lost by m = -0\.064.*it ends there, or meets another"):
        fc.delay.crossings(near.at(e=0), "m", (-2, 2), at=[1.0], points=32)
    (one,) = fc.delay.crossings(near.at(e=0), "m", (-2, 2), at=[0.0], points=32)
    assert (one.value, one.kind, one.unstable) == (pytest.approx(0, abs=1e-12), "zero", 1)


@pytest.mark.slow
def test_beyond_a_gap_it_is_lost() -> None:
    a = np.linspace(0, 3, 16)
    found = fc.delay.chart(GAP, {"a": a}, at=[1.1]).dataset
    assert (found["stable"].notnull().values == (a < 0.99)).all()
    assert found["state_x"].values[:5] == pytest.approx(np.sqrt((1 - a[:5]) * (1.2 - a[:5])), rel=EXACT)


def test_constants_that_cancel_hide_no_equilibrium() -> None:
    """Four states on their own, each of which stands still at 0, and only to rounding."""
    assert fc.delay.equilibria(CONSTANTS, (-0.5, 0.9)).tolist() == [[0.0] * 4]
    assert fc.delay.abscissa(CONSTANTS).value == pytest.approx(-0.3181315052047641, rel=EXACT)  # of s = -e^-s, W(-1)


@pytest.mark.parametrize("k", [2e-7, 1e-8])
def test_a_state_at_0_is_an_equilibrium_as_well(k: float) -> None:
    virus = VIRUS.at(k=k)
    T = 0.7 * 13 / (k * 100)
    wanted = [[1e6, 0.0, 0.0], [T, (1e4 - 0.01 * T) / 0.7, (1e4 - 0.01 * T) / 0.7 * 100 / 13]]
    found = fc.delay.equilibria(virus, {"T": (0, 1e7), "I": (-1e6, 1e6), "V": (-1e7, 1e7)})
    assert found == pytest.approx(np.array(sorted(wanted)), rel=EXACT, abs=1e-6)
    for at in ([1e6, 0, 0], [1.01e6, 0, 0], [1e6, 1.0, 1.0]):
        right = fc.delay.roots(virus, 1, at=at).s[0].real > 0
        assert right == (T < 1e6)  # more than one infected for each


def test_one_at_0_is_followed() -> None:
    M = np.linspace(10, 300, 12)
    found = fc.delay.chart(RIVALS, {"M": M}, at=[0, 46]).dataset
    assert found["state_x"].values == pytest.approx(0, abs=EXACT)
    assert found["state_y"].values == pytest.approx(M, rel=EXACT)
    assert (found["stable"].values == (M > 100 / 0.7)).all()
    (one,) = fc.delay.crossings(RIVALS, "M", (10, 300), at=[0, 46], points=12)
    assert one.value == pytest.approx(100 / 0.7, rel=EXACT)


@pytest.mark.slow
def test_a_slow_root_beside_a_kept_sum() -> None:
    """Two states that exchange what they keep, a billion times a second, and one of its own."""
    found = fc.delay.chart(BESIDE, {"p": [-2.0, -1.0, 1.0, 2.0]}, at=[0, 0, 0]).dataset
    assert found.attrs["roots_at_0"] == 1
    assert found["root"].values == pytest.approx([-2, -1, 1, 2], abs=1e-5)
    (one,) = fc.delay.crossings(BESIDE, "p", (-2, 2), at=[0, 0, 0])
    assert (one.value, one.unstable) == (pytest.approx(0, abs=1e-5), 1)


@pytest.mark.parametrize("rate", [1e3, 1e9])
def test_a_sum_that_is_nearly_kept_is_not_kept(rate: float) -> None:
    """What is exchanged grows at p / 2."""
    found = fc.delay.chart(LEAKS.at(K=rate, tau=1 / rate), {"p": [-1.0, 1.0]}, at=[0, 0]).dataset
    assert found.attrs["roots_at_0"] == 0
    assert found["root"].values == pytest.approx([-0.5, 0.5], abs=1e-3)


@pytest.mark.slow
def test_three_roots_at_0_are_left_out() -> None:
    """A chain of three that keeps its last state, mixed, and one state of its own."""
    found = fc.delay.chart(CHAIN, {"r": [-1.0, -0.1, 0.1]}, at=[0] * 4).dataset
    assert found.attrs["roots_at_0"] == 3
    assert found["root"].values == pytest.approx([-1.0101527, -0.1001002, 0.0999002], rel=1e-6)


@pytest.mark.slow
def test_two_in_one_state_and_rounding_in_another_are_two() -> None:
    for a in np.linspace(0.3, 0.9, 12):
        found = fc.delay.equilibria(ROUNDED.at(A=a), {"x": (0, 20), "y": (-2, 2)}, starts=64)
        wanted = np.array([[a / (1 - a), 0], [a / (1 - a), 1e-6]])
        assert found[np.argsort(found[:, 1])] == pytest.approx(wanted, rel=1e-9, abs=1e-15)


def test_roots_that_cross_to_and_fro_are_refused() -> None:
    """One leaves to the right at 1.0001, two come back at 1.0003: no sum of what is found may be wrong."""
    with pytest.raises(fc.InputError, match="cross to and fro between"):
        fc.delay.crossings(THREE, "k", (0, 3), at=[0, 0, 0])
    found = fc.delay.crossings(THREE, "k", (0.999, 1.001), at=[0, 0, 0], points=42)
    assert [(one.value, one.unstable) for one in found] == [(pytest.approx(1.0001), 1), (pytest.approx(1.0003), -2)]


# -- starts that lead to told places ------------------------------------------------------------------------------


class Led:
    """In place of Newton's method: starts lead to told places, and all starts that were asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, to: Any, states: tuple[str, ...] = ("a", "b")) -> None:
        self.to, self.asked = to, np.zeros((0, 2))
        self.equation: Any = SimpleNamespace(states=states, vector=np.array([7.0]))
        monkeypatch.setattr(fixed_points, "newton", self.newton)
        monkeypatch.setattr(fixed_points, "check_equation", lambda equation: None)
        monkeypatch.setattr(fixed_points, "check_autonomous", lambda equation: None)

    def newton(self, equation: Any, x: Any, vectors: Any) -> Any:
        self.asked = x
        assert vectors.tolist() == [[7.0]] * len(x)
        told = [self.to(row) for row in x]
        places = np.array([place for place, *_ in told], float)
        good, singular = (np.array([flags[k] for flags in told]) for k in (1, 2))
        return fixed_points.Found(places, good, 1e-12 + 0 * places, singular)


def test_equilibria_of_a_box_are_each_once_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those on its edges too, to a ten-millionth of it; what is beyond, or none, is left out."""
    edge = 10.0 * (1 + 0.9e-7)
    places = [
        [3.0, 5.0],
        [3.0, 4.0],
        [1.0, 9.0],
        [edge, 0.0],
        [10.0 * (1 + 1.1e-7), 0.0],
        [1.0 + 1e-14, 9.0],
        [2.0, 2.0],
    ]
    count = [0]

    def to(row: Any) -> Any:
        count[0] += 1
        k = count[0] % len(places)
        return places[k], k != 6, False

    led = Led(monkeypatch, to)
    found = fixed_points.equilibria(led.equation, {"a": (0.0, 10.0), "b": (0.0, 10.0)}, starts=20)
    assert found == pytest.approx(np.array([[1.0, 9.0], [3.0, 4.0], [3.0, 5.0], [edge, 0.0]]))
    assert led.asked.shape == (32, 2)  # a power of two
    assert led.asked.min() >= 0.0
    assert 9.0 < led.asked.max() <= 10.0
    none = fixed_points.equilibria(Led(monkeypatch, lambda row: ([0.0, 0.0], False, False)).equation, (1, 2), starts=1)
    assert none.shape == (0, 2)
    for starts in (0, fixed_points._MOST + 1):
        with pytest.raises(InputError, match="starts"):
            fixed_points.equilibria(led.equation, (0, 1), starts=starts)


def test_a_continuum_is_refused_if_more_than_one_of_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    led = Led(monkeypatch, lambda row: ([0.5, 0.5], True, True))
    assert fixed_points.equilibria(led.equation, (0, 1), starts=4).tolist() == [[0.5, 0.5]]
    led = Led(monkeypatch, lambda row: (row, True, True))
    with pytest.raises(InputError, match="are two of 4 found"):
        fixed_points.equilibria(led.equation, (0, 1), starts=4)


def test_an_equilibrium_that_starts_agree_on_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take those that lead anywhere; two that differ are refused, and so is one of many that was not given itself."""
    led = Led(monkeypatch, lambda row: ([1.0, 2.0], row[0] > 0, False))
    assert fixed_points.equilibrium_near(led.equation).tolist() == [1.0, 2.0]
    assert len(led.asked) == 33
    led = Led(monkeypatch, lambda row: ([np.sign(row[0]), 2.0], True, False))
    with pytest.raises(InputError, match="there are several equilibria"):
        fixed_points.equilibrium_near(led.equation)
    led = Led(monkeypatch, lambda row: ([np.sign(row[0]), 2.0], True, True))
    with pytest.raises(InputError, match="equilibria lie next to each other"):
        fixed_points.equilibrium_near(led.equation)
    led = Led(monkeypatch, lambda row: ([0.0, 0.0], False, False))
    with pytest.raises(InputError, match="no equilibrium found from several starts"):
        fixed_points.equilibrium_near(led.equation)
    with pytest.raises(InputError, match=r"no equilibrium found from \(3, 4\)"):
        fixed_points.equilibrium_near(led.equation, [3.0, 4.0])
    led = Led(monkeypatch, lambda row: (row * (1 + 0.9e-7), True, True))
    assert fixed_points.equilibrium_near(led.equation, {"b": 4.0, "a": 3.0}) == pytest.approx([3.0, 4.0])
    assert led.asked.tolist() == [[3.0, 4.0]]
    led = Led(monkeypatch, lambda row: (row * (1 + 1.1e-7), True, True))
    with pytest.raises(InputError, match="is none itself"):
        fixed_points.equilibrium_near(led.equation, [3.0, 4.0])
    led = Led(monkeypatch, lambda row: (row * 2.0, True, False))
    assert fixed_points.equilibrium_near(led.equation, [3.0, 4.0]).tolist() == [6.0, 8.0]
