"""Hopf points that others have published, in closed form or in digits; the bound was stated first: 1e-4."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from tests.dde.equations import BLOOD, DUFFING, FLIES, HAYES, PEOPLE

PUBLISHED = 1e-4  # stated before measuring
EXACT = 1e-9  # of values in closed form, relative


def first(equation, parameter, between, at=None, place=0):
    found = [c for c in fc.delay.crossings(equation, parameter, between, at=at, points=32) if c.kind == "hopf"]
    return found[place]


def test_hayes():
    """x' = -x(t - tau): pi/2; and x' = a x - k x(t - 1), a = w cot w, k = w / sin w (Hayes 1950)."""
    point = first(HAYES, "tau", (0.1, 3))
    assert point.value == pytest.approx(np.pi / 2, abs=1e-12)
    assert point.frequency == pytest.approx(1.0, abs=1e-12)
    assert point.unstable == 2
    for w in (0.5, 1.0, 2.0, 2.8):
        point = first(HAYES.at(a=w / np.tan(w)), "k", (w / np.sin(w) * 0.9, w / np.sin(w) * 1.1))
        assert (point.value, point.frequency) == pytest.approx((w / np.sin(w), w), rel=EXACT)


@pytest.mark.slow
def test_delayed_logistic():
    """Hutchinson's equation: r tau = pi/2 (Wright, J. reine angew. Math. 194, 1955)."""
    point = first(PEOPLE.at(r=1.0), "r", (0.5, 3), at=[1.0])
    assert (point.value, point.frequency) == pytest.approx((np.pi / 2, np.pi / 2), rel=EXACT)


def test_mackey_glass():
    """tau = arccos(gamma / b) / sqrt(b^2 - gamma^2), b the slope of the production (Mackey and Glass, Science 1977)."""
    found = fc.delay.crossings(BLOOD.at(tau=1.0), "tau", (0, 40), at=[1.0], points=64)
    b, g = -0.4, 0.1
    w = np.sqrt(b**2 - g**2)
    expected = (np.arccos(g / b) + 2 * np.pi * np.arange(3)) / w
    assert [c.value for c in found] == pytest.approx(list(expected), rel=EXACT)
    assert [c.frequency for c in found] == pytest.approx([w] * 3, rel=EXACT)
    assert found[0].value == pytest.approx(4.7082, abs=PUBLISHED)
    # The same by n: 1 + x^n stays beta / gamma, so that b = gamma (1 - n (1 - gamma / beta)).
    fast = BLOOD.at(beta=2.0, gamma=1.0, n=3.0, tau=2.0)
    slope = brentq(lambda s: np.arccos(1 / s) / np.sqrt(s**2 - 1) - 2.0, -20, -1.0001)
    assert first(fast, "n", (3, 9), at=[1.0]).value == pytest.approx((1 - slope) / 0.5, rel=EXACT)


@pytest.mark.slow
def test_nicholsons_blowflies():
    """tau = arccos(1 / (1 - ln(P/d))) / (d sqrt((ln(P/d) - 1)^2 - 1)) (Gurney, Blythe and Nisbet, Nature 1980)."""
    steep = 1 - np.log(8.0 / 0.6)
    expected = np.arccos(1 / steep) / (0.6 * np.sqrt(steep**2 - 1))
    assert first(FLIES, "tau", (0, 20), at=[np.log(8.0 / 0.6)]).value == pytest.approx(expected, rel=EXACT)


def test_delayed_duffing():
    """x'' + c x' + w0^2 x + e x^3 = k x(t - tau): (w0^2 - w^2)^2 + (c w)^2 = k^2 gives w, and arg the delays, which
    destabilise and stabilise in turn (Hsu and Bhatt, J. Appl. Mech. 1966)."""
    c, k = 0.1, 0.5
    found = fc.delay.crossings(DUFFING, "tau", (0, 14), at=[0, 0], points=64)
    squares = np.roots([1, c**2 - 2, 1 - k**2])
    expected = sorted(
        (float(tau), float(w), way)
        for w, way in zip(np.sqrt(squares), (2, -2), strict=True)
        for tau in (-np.angle((1 - w**2 + 1j * c * w) / k) % (2 * np.pi) + 2 * np.pi * np.arange(6)) / w
        if tau < 14
    )
    assert len(expected) >= 4
    assert [each.value for each in found] == pytest.approx([tau for tau, _, _ in expected], rel=EXACT)
    assert [each.frequency for each in found] == pytest.approx([w for _, w, _ in expected], rel=EXACT)
    assert [each.unstable for each in found] == [way for _, _, way in expected]


@pytest.mark.slow
def test_predator_and_prey():
    """May's model: w from a quartic in closed form (Song and Wei, J. Math. Anal. Appl. 301, 2005)."""
    p = {"r1": 1.0, "a11": 0.5, "a12": 0.5, "r2": 0.5, "a21": 1.0, "a22": 0.25, "tau": 1.0}
    may = fc.delay.Equation(
        lambda t, x, past, p: [
            x[0] * (p.r1 - p.a11 * past[0][0] - p.a12 * x[1]),
            x[1] * (-p.r2 + p.a21 * x[0] - p.a22 * x[1]),
        ],
        ["tau"],
        p,
        states=["prey", "predator"],
    )
    x, y = np.linalg.solve([[0.5, 0.5], [1.0, -0.25]], [1.0, 0.5])
    # s^2 + A s + B + (C s + D) e^(-s tau) = 0
    A, B, C, D = 0.25 * y, 0.5 * x * 1.0 * y, 0.5 * x, 0.5 * x * 0.25 * y
    squares = np.roots([1, A**2 - 2 * B - C**2, B**2 - D**2])
    expected = []
    for w in np.sqrt(squares[squares > 0]):
        turned = -(B - w**2 + 1j * A * w) / (1j * C * w + D)  # e^(-i w tau)
        expected += list((-np.angle(turned) % (2 * np.pi) + 2 * np.pi * np.arange(3)) / w)
    found = fc.delay.crossings(may, "tau", (0, 10), at=[x, y])
    assert [c.value for c in found] == pytest.approx(sorted(t for t in expected if t < 10), rel=EXACT)


@pytest.mark.slow
def test_two_neurons():
    """Shayer and Campbell's neurons as in the manual of DDE-BIFTOOL 2 (its demo): a21 = 0.8071, omega = 0.7820."""
    neurons = fc.delay.Equation(
        lambda t, x, past, p: [
            -p.k * x[0] + p.b * jnp.tanh(past[2][0]) + p.a12 * jnp.tanh(past[1][1]),
            -p.k * x[1] + p.b * jnp.tanh(past[2][1]) + p.a21 * jnp.tanh(past[0][0]),
        ],
        [0.2, 0.2, 1.5],
        {"k": 0.5, "b": -1.0, "a12": 1.0, "a21": 0.5},
        states=["x1", "x2"],
    )
    point = first(neurons, "a21", (0.1, 2), at=[0, 0])
    assert (point.value, point.frequency) == pytest.approx((0.8071, 0.7820), abs=PUBLISHED)


@pytest.mark.slow
def test_two_state_dependent_lags():
    """Humphries et al. (DCDS 32, 2012): lags frozen at x = 0, gamma + sum k e^(-i w a) = -i w."""
    gamma, a1, a2, k2 = 4.75, 1.3, 6.0, 2.0
    both = fc.delay.Equation(
        lambda t, x, past, p: [-gamma * x[0] - p.k1 * past[0][0] - k2 * past[1][0]],
        [lambda x, p: a1 + x[0], lambda x, p: a2 + x[0]],
        {"k1": 0.5},
    )
    point = first(both, "k1", (0.5, 6), at=[0.0])
    left = 1j * point.frequency + gamma + k2 * np.exp(-1j * point.frequency * a2)
    assert left + point.value * np.exp(-1j * point.frequency * a1) == pytest.approx(0, abs=1e-10)
    # The least k1 of all solutions of that equation, from another search: on a fine grid of frequencies.
    w = np.linspace(0.01, 8, 400_001)
    k1 = -(1j * w + gamma + k2 * np.exp(-1j * w * a2)) * np.exp(1j * w * a1)
    least = min(k1.real[:-1][(np.diff(np.sign(k1.imag)) != 0) & (k1.real[:-1] > 0.5)])
    assert point.value == pytest.approx(least, abs=PUBLISHED)


@pytest.mark.slow
def test_what_shrinks_with_a_fold():
    """x' = p - x^2 (t - tau): at p = 0 a real root crosses as two equilibria meet; from there on there is none."""
    fold = fc.delay.Equation(lambda t, x, past, p: [p.p - past[0][0] ** 2], [0.1], {"p": 1.0})
    with pytest.raises(fc.InputError, match="the equilibrium is lost by p ="):
        fc.delay.crossings(fold, "p", (-0.5, 1), at=[1.0])
    exchange = fc.delay.Equation(lambda t, x, past, p: [p.p * x[0] - past[0][0] ** 2], [0.1], {"p": -1.0})
    (point,) = fc.delay.crossings(exchange, "p", (-1, 1.1), at=[0.0])
    assert (point.kind, point.unstable) == ("zero", 1)
    assert point.value == pytest.approx(0, abs=1e-12)
