"""Responses, margins and critical delays: closed forms, and the roots of the loop that a margin leads to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidcc.dde.characteristic import abscissa, count_right
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.dde.response import DelayLoop, critical_delay, crossings
from fluidcc.errors import InputError

EXACT = 1e-10  # relative: crossings are refined to rounding, and closed forms are as well conditioned
ON_AXIS = 1e-9  # of the rightmost root at a margin, relative to its frequency: rounding times the root's condition


def undelayed(A0):
    A0 = np.atleast_2d(A0)
    return DelaySystem(A0, np.zeros((0, *A0.shape)), np.zeros(0))


def integrator(gain, delay):
    """Gain e^(-s delay) / s."""
    return DelayLoop(undelayed(0.0), [[gain]], [delay], [1.0])


@given(st.floats(1e-3, 1e9), st.floats(1e-9, 1e3))
def test_integrator_with_delay(gain, delay):
    """Phase pi/2 - K tau, gain pi / (2 K tau), delay (pi/2 - K tau) / K."""
    angle = gain * delay
    if not 1e-5 < angle < 20:
        return
    found = integrator(gain, delay).margins()
    assert found.stable == (angle < np.pi / 2)
    np.testing.assert_allclose(found.gain_crossings, [gain], rtol=EXACT)
    away = np.remainder(np.pi / 2 - angle, 2 * np.pi)  # to the next passage through -1
    assert found.delay.value == pytest.approx(away / gain, rel=EXACT, abs=EXACT / gain)
    assert np.exp(1j * found.phase.value) == pytest.approx(np.exp(1j * away), abs=EXACT)
    crossings = (np.pi / 2 + 2 * np.pi * np.arange(len(found.phase_crossings))) / delay
    np.testing.assert_allclose(found.phase_crossings, crossings, rtol=EXACT)
    factors = (np.pi / 2 + 2 * np.pi * np.arange(50)) / angle
    assert found.gain.value == pytest.approx(factors[np.argmin(np.abs(np.log(factors)))], rel=EXACT)


def test_second_order():
    """4 / (s (s + 1) (s + 2)): gain margin 6 / 4 at sqrt 2, no delay; the phase margin from its quartic."""
    chain = undelayed([[0, 1, 0], [0, -1, 1], [0, 0, -2]])
    found = DelayLoop(chain, [[0, 0, 4]], [0.0], [1, 0, 0]).margins()
    assert found.gain == pytest.approx((1.5, np.sqrt(2)), rel=EXACT)
    square = np.roots([1, 5, 4, -16])
    w = np.sqrt(square[np.abs(square.imag) < 1e-9].real.max())
    phase = np.pi / 2 - np.arctan(w) - np.arctan(w / 2)
    assert found.phase == pytest.approx((phase, w), rel=EXACT)
    assert found.delay == pytest.approx((phase / w, w), rel=EXACT)
    assert found.stable


def test_static_crossing_counts():
    """-1/2 / (s + 1) crosses the negative axis at frequency 0: unstable from gain 2 on."""
    found = DelayLoop(undelayed(-1.0), [[-0.5]], [0.0], [1.0]).margins()
    assert found.gain == (2.0, 0.0)
    assert found.phase == (np.inf, None)
    assert found.stable


def test_lightly_damped_pole_is_not_overlooked():
    """A resonance of relative width 1e-6 raises |L| above 1 for a millionth of its frequency."""
    damping, gain = 1e-6, 5e-6
    loop = DelayLoop(undelayed([[0, 1], [-1, -2 * damping]]), [[0, gain]], [0.3], [1.0, 0.0])
    expected = np.sort(np.sqrt(np.roots([1, 4 * damping**2 - 2, 1 - gain**2]).real))  # |L| = 1
    np.testing.assert_allclose(loop.margins().gain_crossings, expected, rtol=1e-9)  # 1e-16 over the width


def test_the_least_delay_is_not_at_the_least_phase():
    """g e^(-0.3 s) / (s^2 + 1) has gain 1 at sqrt(1 - g), far from -1, and at sqrt(1 + g), just past it.

    Damping moves both by a millionth.
    """
    loop = DelayLoop(undelayed([[0, 1], [-1, -1e-6]]), [[0, 0.5]], [0.3], [1.0, 0.0])
    low, high = np.sqrt([0.5, 1.5])
    found = loop.margins()
    assert found.phase == pytest.approx((-0.3 * high, high), rel=1e-5)
    assert found.delay == pytest.approx(((np.pi - 0.3 * low) / low, low), rel=1e-5)


def test_two_crossings_between_neighbouring_samples():
    """(w - 1)^2 - 0.01^2 is positive at all samples; that it bends says that it may not be between them."""
    found = crossings(lambda w: ((w - 1.0) ** 2 - 1e-4)[:, None], np.array([0.1, 0.5, 2.0, 3.0]))
    # Its values near 1 are good to 1e-16, and its slope at the zeros is 0.02.
    assert [w for w, _ in found] == pytest.approx([0.99, 1.01], rel=1e-13)


def test_margins_lead_to_the_axis():
    """A stable loop with its delay margin added, or its gain margin, has a root on the axis, and not before."""
    rng = np.random.default_rng(1)
    tried = 0
    while tried < 4:
        n = int(rng.integers(1, 4))
        system = DelaySystem(
            rng.normal(size=(n, n)) - 2 * np.eye(n), rng.normal(size=(1, n, n)) / 2, rng.uniform(0, 1, 1)
        )
        loop = DelayLoop(system, 2 * rng.normal(size=(2, n)), rng.uniform(0, 1, 2), rng.normal(size=n))
        found = loop.margins()
        if not (found.stable and found.delay.frequency and abscissa(system).value < 0):
            continue
        tried += 1
        wait, w = found.delay
        assert abs(abscissa(loop.closed(delay=wait)).value) < ON_AXIS * w
        assert all(abscissa(loop.closed(delay=part * wait)).value < 0 for part in np.linspace(0, 0.999, 5))
        assert count_right(loop.closed(delay=0.999 * wait)) == 0
        if found.gain.frequency:
            factor, w = found.gain
            smallest = np.linalg.svd(loop.closed(gain=factor).characteristic(1j * w), compute_uv=False)[-1]
            assert smallest < ON_AXIS * loop.closed(gain=factor).size(1j * w)


def test_response_is_exact():
    """Against the formula by hand, far above any frequency at which a Padé approximation holds."""
    w = np.geomspace(1e-3, 1e4, 50)
    np.testing.assert_allclose(integrator(2.0, 3.0).response(w), 2 * np.exp(-3j * w) / (1j * w), rtol=1e-12)
    assert integrator(2.0, 3.0).response(np.ones((2, 3))).shape == (2, 3)


@given(st.floats(1e-9, 1e9))
def test_critical_delay_of_one_state(rate):
    """x' = -rate x(t - tau): pi / 2 / rate."""
    found = critical_delay(DelaySystem([[0.0]], [[[-rate]]], [0.1]), 0)
    assert found.state == "ok"
    assert (found.delay * rate, found.frequency / rate) == pytest.approx((np.pi / 2, 1), rel=EXACT)
    assert found.residual < 1e-9


@pytest.mark.parametrize("fraction", [0.6, 0.8, 0.95, 0.999])
def test_critical_delay_of_a_smoothed_register(fraction):
    """T s' = -(1 - l) s - l s(t - D): D / T = arccos(-(1 - l) / l) / sqrt(l^2 - (1 - l)^2), 1.711269 at l = 0.95."""
    T = 13e-6
    found = critical_delay(DelaySystem([[-(1 - fraction) / T]], [[[-fraction / T]]], [T]), 0)
    ratio = (1 - fraction) / fraction
    expected = np.arccos(-ratio) / np.sqrt(fraction**2 - (1 - fraction) ** 2)
    assert found.delay / T == pytest.approx(expected, rel=EXACT)
    if fraction == 0.95:
        assert found.delay / T == pytest.approx(1.711269, abs=5e-7)


@given(st.floats(0.1, 5), st.floats(0.1, 5))
def test_critical_delay_of_second_order(a, b):
    """x'' = -a x' - b x(t - tau): w^4 + a^2 w^2 = b^2, tau = atan(a / w) / w."""
    found = critical_delay(DelaySystem([[0, 1], [0, -a]], [[[0, 0], [-b, 0]]], [0.0]), 0)
    w = np.sqrt((np.sqrt(a**4 + 4 * b**2) - a**2) / 2)
    assert (found.delay, found.frequency) == pytest.approx((np.arctan2(a, w) / w, w), rel=EXACT)


@given(st.floats(0.1, 2), st.floats(1.1, 5))
def test_critical_delay_where_curves_coincide(a, ratio):
    """x' = -a x + k y(t - tau), y' = -a y - k x(t - tau): mu = +-i k / (s + a), and w tau = atan(a / w) of the one."""
    k = ratio * a
    found = critical_delay(DelaySystem(-a * np.eye(2), [[[0, k], [-k, 0]]], [1.0]), 0)
    w = np.sqrt(k**2 - a**2)
    assert (found.delay, found.frequency) == pytest.approx((np.arctan2(a, w) / w, w), rel=EXACT)


def test_critical_delay_with_matrices_of_full_rank():
    """Several eigenvalue curves, another delay beside: the root is on the axis there, and never before."""
    rng = np.random.default_rng(2)
    tried = 0
    while tried < 4:
        system = DelaySystem(rng.normal(size=(3, 3)) - 3 * np.eye(3), rng.normal(size=(2, 3, 3)), rng.uniform(0, 1, 2))
        found = critical_delay(system, 0)
        if found.state != "ok":
            continue
        tried += 1
        tau = np.array([(part * found.delay, system.tau[1]) for part in [*np.linspace(0, 0.999, 15), 1.0]])
        values = abscissa(DelaySystem(system.A0, system.A, tau)).value
        assert (values[:-1] < 0).all()
        assert abs(values[-1]) < ON_AXIS * found.frequency
        assert found.residual < 1e-9


def test_critical_delay_says_where_there_is_none():
    calm = DelaySystem([[-2.0]], [[[-1.0]]], [1.0])
    assert critical_delay(calm, 0) == (np.inf, None, 0.0, "never")
    assert critical_delay(DelaySystem([[-2.0]], [[[0.0]]], [1.0]), 0).state == "never"
    falling = DelaySystem([[0.0]], [[[-1.0]]], [0.0])
    assert critical_delay(falling, 0, start=2.0).state == "unstable"
    assert critical_delay(falling, 0, start=1.5).delay == pytest.approx(np.pi / 2, rel=EXACT)


def test_a_root_on_the_axis_is_not_stable():
    """Rounding must not decide: (1, 2) is an equilibrium of these, and so is every multiple, whatever the delay."""
    neutral = DelaySystem([[-1, 0.5], [2, -1]], [[[-1.0, 0.5], [0, 0]]], [0.3])
    assert critical_delay(neutral, 0).state == "unstable"


def test_stability_where_the_roots_are_unresolved():
    """A delay of 1 s beside 0.1 ms: thousands of roots near the axis, and the argument principle decides."""
    loop = DelayLoop(DelaySystem([[0.0]], [[[-5e3]]], [1e-4]), [[1.0]], [1.0], [2e3])
    assert abscissa(loop.closed()).state == "unresolved"
    assert loop._stable()
    assert not DelayLoop(loop.system, 3 * loop.B, loop.input_delay, loop.C)._stable()


def test_bad_input():
    one = undelayed(-1.0)
    batch = DelaySystem(np.zeros((2, 1, 1)), np.zeros((1, 1, 1)), [1.0])
    for arguments, message in (
        ((batch, [[1.0]], [0.0], [1.0]), "batch"),
        ((one, [1.0], [0.0], [1.0]), "B: shape"),
        ((one, [[1.0]], [0.0, 1.0], [1.0]), "input_delay: shape"),
        ((one, [[1.0]], [-1.0], [1.0]), "input_delay: -1 s"),
        ((one, [[1.0]], [0.0], [1.0, 2.0]), "C: shape"),
        ((one, [[np.nan]], [0.0], [1.0]), "B"),
    ):
        with pytest.raises(InputError, match=message):
            DelayLoop(*arguments)
    with pytest.raises(InputError, match="batch"):
        critical_delay(batch, 0)
    with pytest.raises(InputError, match="open loop has a root"):
        integrator(1.0, 1.0).response([1.0, 0.0])
    with pytest.raises(InputError, match="index: 1"):
        critical_delay(batch[0], 1)
    with pytest.raises(InputError, match="start"):
        critical_delay(batch[0], 0, start=-1.0)


def test_python_control_is_optional():
    control = pytest.importorskip("control.frdata", reason="python-control is an optional extra")
    w = np.geomspace(0.1, 10, 20)
    data = integrator(1.0, 0.5).to_control(w)
    assert isinstance(data, control.FrequencyResponseData)
    np.testing.assert_allclose(np.squeeze(data.complex), integrator(1.0, 0.5).response(w))


@pytest.mark.slow
@given(st.integers(0, 100), st.floats(-9, 9), st.floats(-18, 18))
def test_units_do_not_matter(seed, time, state):
    """Margins and critical delays in nanoseconds, of states whose sizes differ by up to eighteen decades."""
    rng = np.random.default_rng(seed)
    system = DelaySystem(rng.normal(size=(3, 3)) - 3 * np.eye(3), rng.normal(size=(2, 3, 3)), rng.uniform(0, 1, 2))
    B, delays, C = 3 * rng.normal(size=(1, 3)), np.array([0.3]), rng.normal(size=3)
    unit = 10.0**time
    scale = 10.0 ** (state * np.array([0, 0.5, 1]))
    similar = scale / scale[:, None] / unit
    other = DelaySystem(system.A0 * similar, system.A * similar, system.tau * unit)
    a, b = critical_delay(system, 0), critical_delay(other, 0)
    assert a.state == b.state
    assert b.delay / unit == pytest.approx(a.delay, rel=1e-8)  # rounding times the condition of a random system
    assert b.residual < 1e-9
    loops = DelayLoop(system, B, delays, C), DelayLoop(other, B / scale / unit, delays * unit, C * scale)
    one, two = (loop.margins() for loop in loops)
    assert one.stable == two.stable
    assert two.gain.value == pytest.approx(one.gain.value, rel=1e-8)
    assert two.phase.value == pytest.approx(one.phase.value, rel=1e-8)
    assert two.delay.value / unit == pytest.approx(one.delay.value, rel=1e-8)
