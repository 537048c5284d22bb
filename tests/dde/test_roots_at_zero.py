"""Roots that stay at 0 cross nothing: kept sums and symmetries; and delays at which others do, in closed form."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from tests.dde.equations import EXCHANGE, HAYES, SIR

Equation = fc.delay.Equation
EXACT = 1e-9


def test_an_epidemic():
    """S, I, R: the sum stays, and so does S without the ill; I grows from b S = g on."""
    at = [0.3, 0.0, 0.7]
    for points in (3, 32):
        (point,) = fc.delay.crossings(SIR, "b", (0.1, 1.0), at=at, points=points)
        assert (point.value, point.kind, point.unstable) == (pytest.approx(2 / 3, rel=EXACT), "zero", 1)
    assert fc.delay.crossings(SIR, "tau", (0.1, 10.0), at=at, points=20) == []
    least = fc.delay.critical_delay(SIR, "tau", at=at)
    assert (least.delay, least.state) == (np.inf, "never; left out: 2 roots at 0 for every lag")


@pytest.mark.slow
def test_an_exchange():
    """pi/2, and with 2 pi more: of the one root that moves."""
    found = fc.delay.crossings(EXCHANGE, "tau", (0.1, 10), at=[0.0, 1.0], points=40)
    assert [c.value for c in found] == pytest.approx([np.pi / 2, 5 * np.pi / 2], rel=EXACT)
    assert [c.kind for c in found] == ["hopf", "hopf"]
    least = fc.delay.critical_delay(EXCHANGE, "tau", at=[0.0, 1.0])
    assert least.delay == pytest.approx(np.pi / 2, rel=EXACT)
    assert least.state == "ok; left out: 1 root at 0 for every lag"
    charted = fc.delay.chart(EXCHANGE, {"tau": np.linspace(0.1, 3.0, 30)}, at=[0.0, 1.0])
    assert charted.dataset.attrs["roots_at_0"] == 1
    assert (charted["stable"] == (charted["tau"] < np.pi / 2)).all()
    assert ((charted["root"] < 0) == (charted["tau"] < np.pi / 2)).all()


@pytest.mark.slow
def test_cars_on_a_ring():
    """Headways keep their sum; of each mode e^(i q), s^2 = a e^(-s tau) (e^(i q) - 1 - s) tells w, and then tau."""
    a = 1.5

    def cars(t, x, past, p):
        speed = jnp.tanh(past[0][:3] - 2) + jnp.tanh(2.0)
        return jnp.concatenate([jnp.roll(x[3:], -1) - x[3:], p.a * (speed - past[0][3:])])

    ring = Equation(cars, ["tau"], {"a": a, "tau": 0.3}, states=["h1", "h2", "h3", "v1", "v2", "v3"])
    at = [2.0] * 3 + [float(np.tanh(2))] * 3
    expected = [np.pi / (2 * a)]  # all alike: s = -a e^(-s tau), and the root at 0
    for q in (2 * np.pi / 3, -2 * np.pi / 3):
        c, d = np.cos(q) - 1, np.sin(q)
        w = np.roots([1, 0, -(a**2), 2 * a**2 * d, -(a**2) * (c**2 + d**2)])  # w^4 = a^2 (c^2 + (d - w)^2)
        for each in w.real[(np.abs(w.imag) < 1e-9) & (w.real > 0)]:
            turned = -(each**2) / (a * (c + 1j * (d - each)))  # e^(-i w tau)
            expected.append(-np.angle(turned) % (2 * np.pi) / each)
    found = fc.delay.crossings(ring, "tau", (0, 1.2), at=at, points=50)
    assert [c.value for c in found] == pytest.approx(sorted(v for v in expected if v < 1.2), rel=EXACT)
    assert {(c.kind, c.unstable) for c in found} == {("hopf", 2)}
    least = fc.delay.critical_delay(ring, "tau", at=at)
    assert least.delay == pytest.approx(min(expected), rel=EXACT)


def test_two_lags_of_one_gain():
    """x' = -x(t - t1) - x(t - 0.6): |i w + e^(-0.6 i w)| = 1 at w = 2 sin 0.6 w, and at 0, where nothing crosses."""
    both = Equation(lambda t, x, past, p: [-past[0][0] - past[1][0]], ["t1", 0.6], {"t1": 0.1})
    w = brentq(lambda w: w - 2 * np.sin(0.6 * w), 0.5, 3)
    delay = -np.angle(-(1j * w + np.exp(-0.6j * w))) / w
    assert delay == pytest.approx(1.2358676, abs=1e-7)
    for t1 in (0.1, 0.6):
        least = fc.delay.critical_delay(both.at(t1=t1), "t1")
        assert (least.delay, least.frequency, least.state) == (pytest.approx(delay), pytest.approx(w), "ok")


def test_lags_that_are_one_parameter_move_together():
    """x' = -2 x(t - tau), written as two lags: pi / 4."""
    both = Equation(lambda t, x, past, p: [-past[0][0] - past[1][0]], ["tau", "tau"], {"tau": 0.1})
    assert fc.delay.critical_delay(both, "tau").delay == pytest.approx(np.pi / 4, rel=EXACT)
    assert fc.delay.margins(both, "tau").delay.value == pytest.approx(np.pi / 4 - 0.1, rel=EXACT)


def test_roots_that_come_from_far_left():
    """k tau = pi/2 + 2 pi j. At a lag of 0 there is one root, and the others cross all the same."""
    equation = HAYES.at(k=200, tau=0.001)
    found = fc.delay.crossings(equation, "tau", (0, 0.1), points=2)
    assert [c.value for c in found] == pytest.approx((np.pi / 2 + 2 * np.pi * np.arange(3)) / 200, rel=EXACT)


def test_abscissa_and_count_of_an_equation():
    """Roots of s = -k e^(-s): at k = 5 the first pair is right of the axis."""
    equation = HAYES.at(k=5.0)
    for given in (equation, fc.delay.linearize(equation)):
        found = fc.delay.abscissa(given)
        s = complex(found.value, found.frequency)
        assert s + 5 * np.exp(-s) == pytest.approx(0, abs=1e-12)
        assert found.value > 0
        assert fc.delay.count_right(given) == 2
    with pytest.raises(fc.InputError, match="sigma: 'a' is no number"):
        fc.delay.count_right(equation, "a")
