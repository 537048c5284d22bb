"""Periodic solutions against rotating waves in closed form, direct integration, and what lies on either side."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc

EXACT = 1e-8  # relative, of cycles in closed form
INTEGRATED = 1e-5  # of period and amplitude, relative: the integration's own error, which is asserted


def mackey_glass(t, x, past, p):
    return [p.beta * past[0][0] / (1 + past[0][0] ** p.n) - p.gamma * x[0]]


def logistic(t, x, past, p):
    return [p.r * x[0] * (1 - past[0][0])]


def integrated(equation, past, until, **options):
    """Period and peak to peak of the last half, from crossings of the mean."""
    run = fc.delay.solve(equation, until, past=past, samples=60000, tolerance=1e-8, **options)
    assert run.error <= 1e-7
    name = equation.states[0]
    late = run.dataset.sel(time=slice(until / 2, None))
    t, x = late["time"].values, late[name].values
    level = x.mean()
    up = np.flatnonzero((x[:-1] < level) & (x[1:] >= level))
    ups = t[up] + (level - x[up]) / (x[up + 1] - x[up]) * np.diff(t)[0]
    return np.diff(ups).mean(), np.ptp(x)


def test_rotating_wave():
    """z' = (a + i w0 - |z|^2) z + K z(t - tau) has z = R e^(i W t), W = w0 - K sin W tau, R^2 = a + K cos W tau."""
    a, w0, K, tau = 0.5, 1.3, 0.4, 1.7

    def wave(t, x, past, p):
        r = x[0] ** 2 + x[1] ** 2
        return [
            (p.a - r) * x[0] - w0 * x[1] + K * past[0][0],
            (p.a - r) * x[1] + w0 * x[0] + K * past[0][1],
        ]

    W = brentq(lambda W: w0 - K * np.sin(W * tau) - W, 0.5, 2.0)
    R = np.sqrt(a + K * np.cos(W * tau))
    found = fc.delay.limit_cycle(fc.delay.Equation(wave, [tau], {"a": a}, states=["re", "im"]), past=[0.3, 0.0])
    assert found.period == pytest.approx(2 * np.pi / W, rel=EXACT)
    assert found.amplitude == pytest.approx({"re": 2 * R, "im": 2 * R}, rel=1e-6)
    radius = np.hypot(found["re"], found["im"])
    assert np.abs(radius - R).max() < 1e-8


def test_against_integration():
    cases = [
        (fc.delay.Equation(mackey_glass, ["tau"], {"beta": 0.2, "gamma": 0.1, "n": 10.0, "tau": 6.0}), [0.5], 1500.0),
        (fc.delay.Equation(logistic, [1.0], {"r": 1.8}), [0.5], 300.0),
    ]
    for equation, past, until in cases:
        cycle = fc.delay.limit_cycle(equation, past=past)
        period, amplitude = integrated(equation, past, until)
        assert cycle.error < 1e-8
        assert cycle.period == pytest.approx(period, rel=INTEGRATED)
        assert cycle.amplitude["x"] == pytest.approx(amplitude, rel=INTEGRATED)


def test_lags_that_depend_on_the_state():
    equation = fc.delay.Equation(
        lambda t, x, past, p: [-past[0][0] * (1 + x[0])], [lambda x, p: p.tau * (1 + 0.2 * x[0])], {"tau": 1.8}
    )
    cycle = fc.delay.limit_cycle(equation, past=[0.1])
    period, amplitude = integrated(equation, [0.1], 300.0, longest_lag=10.0)
    assert cycle.period == pytest.approx(period, rel=INTEGRATED)
    assert cycle.amplitude["x"] == pytest.approx(amplitude, rel=INTEGRATED)


def test_from_a_hopf_point():
    """Near it amplitude grows as a square root, and the frequency is the root's."""
    blood = fc.delay.Equation(mackey_glass, ["tau"], {"beta": 0.2, "gamma": 0.1, "n": 10.0, "tau": 4.0})
    (hopf, *_) = fc.delay.crossings(blood, "tau", (1, 10), at=[1.0])
    beyond = np.array([0.01, 0.04])
    cycles = [fc.delay.limit_cycle(blood.at(tau=hopf.value + b), near=hopf) for b in beyond]
    grown = cycles[1].amplitude["x"] / cycles[0].amplitude["x"]
    assert grown == pytest.approx(2.0, rel=0.02)
    assert cycles[0].period == pytest.approx(hopf.period, rel=0.005)
    followed = fc.delay.limit_cycle(blood.at(tau=hopf.value + 0.06), near=cycles[1])
    assert followed.period == pytest.approx(
        fc.delay.limit_cycle(blood.at(tau=hopf.value + 0.06), past=[0.9]).period, rel=EXACT
    )


def test_a_cycle_that_repels():
    """x' = -a x(t-1) - x(t-1)^3 with a below pi/2: within the cycle all dies out, beyond it grows."""
    hard = fc.delay.Equation(lambda t, x, past, p: [-p.a * past[0][0] - past[0][0] ** 3], [1.0], {"a": 1.5})
    (hopf,) = fc.delay.crossings(hard, "a", (1, 2), at=[0.0])
    cycle = fc.delay.limit_cycle(hard.at(a=1.5), near=hopf)
    half = cycle.amplitude["x"] / 2
    assert half == pytest.approx(np.sqrt((np.pi / 2 - 1.5) / 0.75), rel=0.05)  # one harmonic: a + 3/4 A^2 = pi/2

    def after(share):
        run = fc.delay.solve(hard, 24.0, past=lambda t: [share * half * jnp.cos(2 * np.pi / cycle.period * t)])
        return float(np.abs(run["x"].values[-100:]).max()) / half

    assert after(0.9) < 0.9
    assert after(1.05) > 1.05


def test_what_is_refused():
    blood = fc.delay.Equation(mackey_glass, ["tau"], {"beta": 0.2, "gamma": 0.1, "n": 10.0, "tau": 3.0})
    with pytest.raises(fc.InputError, match="come to rest"):
        fc.delay.limit_cycle(blood, past=[0.9], until=2000.0)
    with pytest.raises(fc.InputError, match="give past= to integrate from, or near="):
        fc.delay.limit_cycle(blood)
    with pytest.raises(fc.InputError, match=r"near: .*give a crossing of kind 'hopf'"):
        fc.delay.limit_cycle(blood, near=3)
    with pytest.raises(fc.InputError, match="not periodic by then"):
        fc.delay.limit_cycle(blood.at(tau=23.0), past=[0.5], until=1500.0)
