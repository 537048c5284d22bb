"""Periodic solutions against closed forms, an integrator of the tests' own, and what lies on either side."""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from tests.dde.equations import BLOOD, HARD, PEOPLE, POLAR, SINE

EXACT = 1e-8  # relative, of cycles in closed form
INTEGRATED = 1e-5  # of period and amplitude, relative: the integration's own error, which is asserted
OWN = 1e-6  # of the period, relative: against the integrator below


def van_der_pol(t, x, past, p):
    return [x[1], p.mu * (1 - x[0] ** 2) * x[1] - x[0] + 0.2 * past[0][0] + p.force * jnp.cos(1.1 * t)]


def oscillator(t, x, past, p):
    return [x[1], p.mu * (1 - x[0] ** 2) * x[1] - x[0] + 0.2 * past[0][0]]


def ikeda(t, x, past, p):
    return [-x[0] + 2 * jnp.sin(past[0][0] - jnp.pi / 3)]


VALVE = fc.delay.Equation(oscillator, [1.0], {"mu": 1.0}, states=["x", "v"])
A, W0, K = 0.5, 1.3, 0.4


def wave(t, x, past, p):
    r = x[0] ** 2 + x[1] ** 2
    return [
        (A - r) * x[0] - W0 * x[1] + K * past[0][0],
        (A - r) * x[1] + W0 * x[0] + K * past[0][1],
    ]


WAVE = fc.delay.Equation(wave, ["tau"], {"tau": 1.7}, states=["re", "im"])


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


def own(rate, lag, start, until, steps, level, every=1):
    """Period of x' = rate(x, x(t - lag)), by RK4 in plain numbers with a whole number of steps in the lag."""
    h = lag / steps
    x, slope, ups = [start], [], []
    for k in range(round(until / h)):
        now, i = x[k], k - steps
        if i < 0:
            a = middle = b = start
        else:
            a, b = x[i], x[i + 1]
            middle = (a + b) / 2 + h * (slope[i] - slope[i + 1]) / 8
        k1 = rate(now, a)
        slope.append(k1)
        k2 = rate(now + h / 2 * k1, middle)
        k3 = rate(now + h / 2 * k2, middle)
        x.append(now + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(now + h * k3, b)))
        if now < level <= x[-1]:
            cubic = now - level, x[-1] - level, h * k1, h * rate(x[-1], b)
            ups.append(h * (k + brentq(hermite, 0, 1, args=cubic)))
    return ups[-1] - ups[-1 - every]


def hermite(s, a, b, da, db):
    return a * (1 + 2 * s) * (1 - s) ** 2 + da * s * (1 - s) ** 2 + b * s * s * (3 - 2 * s) + db * s * s * (s - 1)


@pytest.mark.parametrize(
    ("tau", "low", "high"),
    [(1.7, 0.5, 2.0), (40.0, 1.23, 1.29), pytest.param(100.0, 1.31, 1.33, marks=pytest.mark.slow)],
    ids=["quarter", "8", "21"],
)
def test_rotating_wave(tau, low, high):
    """z' = (a + i w0 - |z|^2) z + K z(t - tau) has z = R e^(i W t), W = w0 - K sin W tau, R^2 = a + K cos W tau.

    In axes that turn with it, it stands still, and multipliers are e^(root 2 pi / W). The lag is a quarter of the
    period, and 8 and 21 of them; then there are many waves, of which the one next to its own frequency is taken.
    """
    a, w0 = A, W0
    W = brentq(lambda W: w0 - K * np.sin(W * tau) - W, low, high)
    R = np.sqrt(a + K * np.cos(W * tau))

    def past(t):
        return jnp.array([0.9 * R * jnp.cos(W * t), 0.9 * R * jnp.sin(W * t)])

    found = fc.delay.limit_cycle(WAVE.at(tau=tau), past=past, until=max(10 * tau, 120))
    assert found.error <= EXACT
    assert found.period == pytest.approx(2 * np.pi / W, rel=EXACT)
    assert found.amplitude == pytest.approx({"re": 2 * R, "im": 2 * R}, rel=1e-6)
    assert np.abs(np.hypot(found["re"], found["im"]) - R).max() < EXACT
    c, s, w = np.cos(W * tau), np.sin(W * tau), w0 - W
    turning = fc.delay.DelaySystem(
        np.array([[a - 3 * R**2, -w], [w, a - R**2]]), K * np.array([[[c, s], [-s, c]]]), np.array([tau])
    )
    roots = fc.delay.roots(turning, 6).s
    assert np.abs(roots).min() < 1e-9  # of a shift in time
    others = np.sort(np.abs(np.exp(np.delete(roots, np.abs(roots).argmin()) * found.period)))[::-1]
    assert np.abs(found.multipliers)[0] == pytest.approx(others[0], rel=1e-6)
    assert found.attracts


@pytest.mark.parametrize(("equation", "until"), [(BLOOD, 1500.0), pytest.param(PEOPLE, 300.0, marks=pytest.mark.slow)])
def test_against_integration(equation, until):
    cycle = fc.delay.limit_cycle(equation, past=[0.5])
    period, amplitude = integrated(equation, [0.5], until)
    assert cycle.error < 1e-8
    assert cycle.period == pytest.approx(period, rel=INTEGRATED)
    assert cycle.amplitude["x"] == pytest.approx(amplitude, rel=INTEGRATED)


@pytest.mark.parametrize("r", [2.5, pytest.param(5.0, marks=pytest.mark.slow)])
def test_pulses(r):
    """In logarithms for the other integrator; at r = 5, x falls to 1e-60 between pulses."""
    cycle = fc.delay.limit_cycle(PEOPLE.at(r=r), past=[0.5], until=200.0)
    assert cycle.period == pytest.approx(
        own(lambda u, past: r * (1 - math.exp(past)), 1.0, math.log(0.5), 200.0, 500, 0.0), rel=OWN
    )
    assert cycle["x"].values.min() > 0
    assert cycle.attracts


@pytest.mark.slow
def test_doubled_period():
    """At 13.4 the cycle of half the period repels; at 14 it has left that far behind."""
    doubled = fc.delay.limit_cycle(BLOOD.at(tau=13.4), past=[0.5])
    rate = lambda x, past: 0.2 * past / (1 + past**10) - 0.1 * x  # noqa: E731
    assert doubled.period == pytest.approx(own(rate, 13.4, 0.5, 12000.0, 100, 0.9, every=2), rel=OWN)
    assert doubled.amplitude["x"] == pytest.approx(0.66836, abs=1e-5)
    assert doubled.attracts
    (hopf, *_) = fc.delay.crossings(BLOOD, "tau", (1, 10), at=[1.0], points=32)
    single = fc.delay.limit_cycle(BLOOD.at(tau=13.4), near=hopf)
    assert not single.attracts
    assert single.multipliers[0].real < -1.02  # which doubles the period
    assert 1.9 * single.period < doubled.period < 2.1 * single.period


def test_a_doubling_not_yet_seen():
    """A run that begins on the cycle that repels stays near it for some periods: that is no cycle it ends on."""
    (hopf, *_) = fc.delay.crossings(BLOOD, "tau", (1, 10), at=[1.0], points=32)
    single = fc.delay.limit_cycle(BLOOD.at(tau=13.4), near=hopf)
    t, x = jnp.asarray(single["time"].values), jnp.asarray(single["x"].values)
    with pytest.raises(fc.InputError, match="that repels"):
        fc.delay.limit_cycle(
            BLOOD.at(tau=13.4), past=lambda s: [jnp.interp(jnp.mod(s, single.period), t, x)], until=600.0
        )


@pytest.mark.slow
def test_families():
    """Of equations that conserve something each cycle has others beside it, and none is found for sure."""
    prey = fc.delay.Equation(
        lambda t, x, past, p: [x[0] * (1 - past[0][1]), past[0][1] * (x[0] - 1)], [0.0], states=["x", "y"]
    )
    with pytest.raises(fc.InputError, match="limit_cycle: "):
        fc.delay.limit_cycle(prey, past=[0.5, 1.0], until=100.0)


@pytest.mark.slow
def test_periods_of_others():
    """Van der Pol's relaxation (mu = 6) and Ikeda's, by RK4 with 1000 steps in the lag, on a grid that has the lag."""
    assert fc.delay.limit_cycle(VALVE, past=[1.0, 0.0]).period == pytest.approx(7.06239393, rel=1e-8)
    assert fc.delay.limit_cycle(VALVE.at(mu=6.0), past=[1.0, 0.0]).period == pytest.approx(15.25854998, rel=1e-8)
    found = fc.delay.limit_cycle(fc.delay.Equation(ikeda, [3.0]), past=[0.5])
    assert found.period == pytest.approx(7.6809861, rel=1e-8)


@pytest.mark.slow
def test_states_of_other_sizes():
    """One of 1e7 that stands still, and one of 1e-7 that follows a sharp function, change nothing of the others."""
    equation = fc.delay.Equation(
        lambda t, x, past, p: [
            1e7 - x[0],
            x[2],
            (1 - x[1] ** 2) * x[2] - x[1] + 0.2 * past[0][1],
            1e-7 * jnp.tanh(20 * x[1]) - x[3],
        ],
        [1.0],
        states=["N", "x", "v", "z"],
    )
    cycle = fc.delay.limit_cycle(equation, past=[1e7, 1.0, 0.0, 0.0], until=200.0)
    assert cycle.period == pytest.approx(7.06239393, rel=1e-8)
    assert cycle.error < 1e-8
    assert 1.8e-7 < cycle.amplitude["z"] < 1.9e-7


@pytest.mark.slow
def test_lags_that_depend_on_the_state():
    equation = fc.delay.Equation(
        lambda t, x, past, p: [-past[0][0] * (1 + x[0])], [lambda x, p: p.tau * (1 + 0.2 * x[0])], {"tau": 1.8}
    )
    cycle = fc.delay.limit_cycle(equation, past=[0.1], longest_lag=10.0)
    period, amplitude = integrated(equation, [0.1], 300.0, longest_lag=10.0)
    assert cycle.period == pytest.approx(period, rel=INTEGRATED)
    assert cycle.amplitude["x"] == pytest.approx(amplitude, rel=INTEGRATED)
    with pytest.raises(fc.InputError, match="longest_lag: the lags at the begin"):
        fc.delay.limit_cycle(equation.at(tau=0.0), past=[0.1])


@pytest.mark.slow
def test_from_a_hopf_point():
    """Near it amplitude grows as a square root, and the frequency is the root's; far from it a run says the same."""
    (hopf, *_) = fc.delay.crossings(BLOOD, "tau", (1, 10), at=[1.0], points=32)
    assert hopf.parameter == "tau"
    beyond = np.array([0.01, 0.04])
    cycles = [fc.delay.limit_cycle(BLOOD.at(tau=hopf.value + b), near=hopf) for b in beyond]
    grown = cycles[1].amplitude["x"] / cycles[0].amplitude["x"]
    assert grown == pytest.approx(2.0, rel=0.02)
    assert cycles[0].period == pytest.approx(hopf.period, rel=0.005)
    there = fc.delay.limit_cycle(BLOOD.at(tau=hopf.value + 0.06), past=[0.9], until=20000.0)
    followed = fc.delay.limit_cycle(BLOOD.at(tau=hopf.value + 0.06), near=cycles[1])
    assert followed.period == pytest.approx(there.period, rel=EXACT)
    far = fc.delay.limit_cycle(BLOOD.at(tau=10.0), near=hopf)
    assert far.period == pytest.approx(fc.delay.limit_cycle(BLOOD.at(tau=10.0), past=[0.5]).period, rel=EXACT)


def test_a_cycle_that_repels():
    """x' = -a x(t-1) - x(t-1)^3 with a below pi/2: within the cycle all dies out, beyond it grows."""
    hard = HARD
    (hopf,) = fc.delay.crossings(hard, "a", (1, 2), at=[0.0], points=32)
    cycle = fc.delay.limit_cycle(hard.at(a=1.5), near=hopf)
    half = cycle.amplitude["x"] / 2
    assert half == pytest.approx(np.sqrt((np.pi / 2 - 1.5) / 0.75), rel=0.05)  # one harmonic: a + 3/4 A^2 = pi/2
    assert not cycle.attracts
    grow = cycle.multipliers[0].real
    assert grow > 1

    def after(share, until=24.0):
        run = fc.delay.solve(hard, until, past=lambda t: [share * half * jnp.cos(2 * np.pi / cycle.period * t)])
        return float(np.abs(run["x"].values[-100:]).max()) / half

    assert after(0.9) < 0.9
    assert after(1.05) > 1.05
    with pytest.raises(fc.InputError, match=r"does not lead to 1\.6"):
        fc.delay.limit_cycle(hard.at(a=1.6), near=hopf)


def test_a_branch_that_turns_back():
    """x' = -a y - y^3 + y^5/2, y = x(t-1), begins below pi/2, and is back above it with a period of 4 as before."""
    back = HARD.at(c=0.5)
    (hopf,) = fc.delay.crossings(back, "a", (1, 2), at=[0.0], points=32)
    small, large = (fc.delay.limit_cycle(back.at(a=a), near=hopf) for a in (1.5, 1.6))
    assert (small.period, large.period) == pytest.approx((4.0, 4.0), rel=EXACT)
    assert small.amplitude["x"] < 0.7
    assert large.amplitude["x"] > 3


@pytest.mark.slow
def test_a_branch_that_turns_back_within_a_step():
    """r' = (mu + r^2 - r^4) r: born at 0 towards mu < 0, it turns at -1/4, where a step ends that bent towards it."""
    back = POLAR
    hopf = fc.delay.crossings(back, "mu", (-1.0, 1.0), at=[0, 0])[0]
    cycle = fc.delay.limit_cycle(back, near=hopf)
    assert cycle.amplitude["x"] == pytest.approx(2 * math.sqrt((1 + math.sqrt(1.4)) / 2), rel=EXACT)
    assert cycle.attracts


@pytest.mark.slow
def test_cycles_with_many_multipliers_beyond_1():
    """x' = -sine sin x(t - 1): of period 4/(4i + 1) from the i-th Hopf point, where i pairs of roots grow already."""
    sine = SINE
    crossings = fc.delay.crossings(sine, "sine", (0.5, 35.0), at=[0])
    for i in (3, 5):
        cycle = fc.delay.limit_cycle(sine.at(sine=crossings[i].value + 0.3), near=crossings[i])
        assert cycle.period == pytest.approx(4 / (4 * i + 1), rel=EXACT)
        sizes = np.abs(cycle.multipliers)
        assert (sizes > 1).sum() == 2 * i
        assert sizes[-1] < 1
        assert (np.diff(sizes) <= 0).all()


def test_least_period():
    """Two periods of a cycle, given as one, are one of half that."""
    cycle = fc.delay.limit_cycle(PEOPLE, past=[0.5])
    twice = cycle.dataset.isel(time=slice(None, -1))
    twice = fc.delay.Cycle(
        dataset=_joined(twice, cycle), period=2 * cycle.period, error=0.0, intervals=64, multipliers=cycle.multipliers
    )
    assert fc.delay.limit_cycle(PEOPLE, near=twice).period == pytest.approx(cycle.period, rel=EXACT)


def _joined(first, cycle):
    import xarray as xr

    later = cycle.dataset.assign_coords(time=cycle["time"] + cycle.period)
    return xr.concat([first, later], "time")


@pytest.mark.slow
def test_no_cycle():
    with pytest.raises(fc.InputError, match="come to rest"):
        fc.delay.limit_cycle(BLOOD.at(tau=3.0), past=[0.9], until=2000.0)
    for until in (1300.0, 3400.0):  # chaos
        with pytest.raises(fc.InputError, match=r"not periodic by|uncertain"):
            fc.delay.limit_cycle(BLOOD.at(tau=17.0), past=[0.5], until=until)
    with pytest.raises(fc.InputError, match="not periodic by 40"):
        fc.delay.limit_cycle(BLOOD, past=[0.5], until=40.0)
    forced = fc.delay.Equation(van_der_pol, [1.0], {"mu": 1.0, "force": 5.0}, states=["x", "v"])
    for force in (5.0, 0.0):
        with pytest.raises(fc.InputError, match="depends on time"):
            fc.delay.limit_cycle(forced.at(force=force), past=[1.0, 0.0])


@pytest.mark.slow
def test_chaos_is_never_a_cycle():
    for until in (None, 700.0, 1000.0, 1700.0, 2100.0, 2500.0, 3000.0, 4000.0, 4400.0, 5000.0):
        with pytest.raises(fc.InputError, match=r"not periodic by|uncertain"):
            fc.delay.limit_cycle(BLOOD.at(tau=17.0), past=[0.5], until=until)


def test_what_is_refused():
    for given, words in [
        ({}, "give past= to integrate from, or near="),
        ({"near": 3}, r"near: .*give a crossing of kind 'hopf'"),
        ({"near": 3, "until": 5.0}, "until= and longest_lag= are those of a run"),
        ({"past": [0.5], "until": -1.0}, "until"),
        ({"past": ["a"]}, "past"),
    ]:
        with pytest.raises(fc.InputError, match=words):
            fc.delay.limit_cycle(BLOOD, **given)
    with pytest.raises(fc.InputError, match="equation: "):
        fc.delay.limit_cycle("e", past=[1.0])  # pyright: ignore[reportArgumentType]
    (hopf, *_) = fc.delay.crossings(BLOOD, "tau", (1, 10), at=[1.0], points=32)
    for equation, near, words in [
        (VALVE, hopf, "a crossing of another equation"),
        (BLOOD.at(n=9.0), hopf, "no root of this equation is on the axis"),
        (BLOOD.at(tau=hopf.value), hopf, "has no size yet"),
        (BLOOD, dataclasses.replace, "give a crossing"),
        (VALVE, fc.delay.limit_cycle(PEOPLE, past=[0.5]), "give one of this equation, x, v"),
    ]:
        with pytest.raises(fc.InputError, match=words):
            fc.delay.limit_cycle(equation, near=near)
