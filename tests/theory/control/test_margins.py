"""Gain, phase and delay margins of whole scenarios as numbers: a scan of the printed equations, and closed forms.

DCQCN's loop is made here: (7)-(9) and (11) as printed (`oracles.dcqcn_reference`, in packets and seconds), differences
of them by each argument, and L(i w) on a grid so fine that crossings can be read off. Tolerance, stated before anything
was measured: 1e-4 of each number. Central differences of 1e-5 leave 1e-10 to 1e-6 of a derivative (rounding of terms
that cancel), a grid of 3e-4 relative steps with linear interpolation 1e-7; and a phase margin of two degrees is the
difference of angles a hundred times as large.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.dde.response import DelayLoop
from fluidcc.units import Rate
from tests.oracles import dcqcn_reference as reference

S = reference.Settings()
SCANNED = 1e-4
EXACT = 1e-9  # closed forms; crossings are refined to rounding


def printed_loop(flows: int, delay: float, w: np.ndarray) -> np.ndarray:
    """L(i w) of N flows cut where they observe the queue, by the equations as printed."""
    fixed_point = fc.equilibrium(dcqcn(flows, delay)).as_dict()
    p, rate = fixed_point["marking_probability"], S.capacity / flows
    x = np.array([p, rate, rate, fixed_point["target_rate_bytes_per_s"] / 1e3, fixed_point["alpha"]])
    assert np.abs(reference.derivatives(S, *x)) == pytest.approx(0, abs=1e-6 * rate / S.tau)
    columns = []
    for k in range(5):
        step = np.zeros(5)
        step[k] = 1e-5 * x[k]
        up, down = (np.array(reference.derivatives(S, *(x + sign * step))) for sign in (1, -1))
        columns.append((up - down) / (2 * step[k]))
    by_mark, by_lagged, *by_state = columns
    s, late = 1j * w[:, None, None], np.exp(-1j * w * delay)
    lagged = np.outer(by_lagged, [1, 0, 0])  # the flow's own rate, a lag ago
    inner = s * np.eye(3) - np.transpose(by_state) - late[:, None, None] * lagged
    rates = np.linalg.solve(inner, np.broadcast_to(by_mark[:, None], (len(w), 3, 1)))[:, 0, 0]
    slope = S.pmax / (S.kmax - S.kmin)
    return -flows * rates * slope * late / (1j * w)


def dcqcn(flows: int, delay: float) -> fc.Scenario:
    return fc.incast(1, multiplicity=flows, rate="40Gbps", scheme=fc.DCQCN(feedback_delay=delay))


def scan(L: np.ndarray, w: np.ndarray) -> tuple[float, float, float]:
    """Gain margin [dB], phase margin [degrees] and delay [s], by linear interpolation between grid points."""

    def crossings(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at = np.flatnonzero(np.sign(values[:-1]) != np.sign(values[1:]))
        part = values[at] / (values[at] - values[at + 1])
        return w[at] + part * (w[at + 1] - w[at]), L[at] + part * (L[at + 1] - L[at])

    unit, there = crossings(np.abs(L) - 1)
    phases = np.angle(-there)  # 180 degrees + arg L
    negative = crossings(L.imag)[1]
    decibels = -20 * np.log10(-negative.real[negative.real < 0])
    waits = phases % (2 * np.pi) / unit
    return (
        float(decibels[np.argmin(np.abs(decibels))]),
        math.degrees(phases[np.argmin(np.abs(phases))]),
        float(waits.min()),
    )


GRID = np.geomspace(10.0, 1e6, 40_000)


@pytest.mark.parametrize(("flows", "delay", "stable"), [(2, 50e-6, True), (8, 50e-6, True), (8, 70e-6, False)])
def test_dcqcn_s_margins_are_those_of_the_printed_equations(flows: int, delay: float, stable: bool) -> None:
    """Eight flows oscillate beyond 62.17 us: at 70 us margins are what is missing, and no delay can be added."""
    gain, phase, wait = scan(printed_loop(flows, delay, GRID), GRID)
    found = fc.stability(dcqcn(flows, delay))
    assert found.stable is stable
    assert found.gain_margin == pytest.approx(gain, rel=SCANNED)
    assert found.phase_margin == pytest.approx(phase, rel=SCANNED)
    assert [gain > 0, phase > 0] == [stable, stable]
    assert found.delay_margin == (pytest.approx(wait, rel=SCANNED) if stable else None)
    loop = fc.linearize(dcqcn(flows, delay)).loop()
    assert loop is not None
    margins = loop.margins()
    assert margins.gain.value == pytest.approx(10 ** (gain / 20), rel=SCANNED)
    assert margins.phase.value == pytest.approx(math.radians(phase), rel=SCANNED)
    assert margins.delay.value == pytest.approx(wait, rel=SCANNED)


@pytest.mark.parametrize(("flows", "delay"), [(2, 50e-6), (8, 50e-6), (8, 70e-6)])
def test_python_control_says_the_same(flows: int, delay: float) -> None:
    """From the response on a grid, its own interpolation between points: 1e-3."""
    control = pytest.importorskip("control", reason="python-control is an optional extra")
    loop = fc.linearize(dcqcn(flows, delay)).loop()
    assert loop is not None
    near = np.geomspace(500.0, 2e5, 3000)
    gain, phase, *_ = control.stability_margins(control.frd(loop.response(near), near, smooth=True))
    found = fc.stability(dcqcn(flows, delay))
    assert found.gain_margin == pytest.approx(20 * math.log10(gain), rel=1e-3)
    assert found.phase_margin == pytest.approx(phase, rel=1e-3)


@pytest.mark.parametrize(("increase", "delay"), [(0.1, "1us"), (0.3, "4us"), (0.1, "20us")])
def test_hpcc_s_rates_behind_a_queue_in_closed_form(increase: float, delay: str) -> None:
    """L = k e^(-s D)/(s (s + v)) in units of T and C, with v = N a/C and k = (1 - v)^2/eta, as `test_stability` has it.

    |L| = 1 at w^2 = (sqrt(v^4 + 4 k^2) - v^2)/2, where pi + arg L is atan(v/w) - w D; L < 0 where that is a multiple of
    2 pi, and there 1/|L| = w sqrt(w^2 + v^2)/k. D is the feedback's delay and two stores of 1042 B and of 106 B each.
    """
    T, C, v, k = 10e-6, 12.5e9, increase, (1 - increase) ** 2 / 0.95
    D = (float(delay.removesuffix("us")) * 1e-6 + 2 * (1042 + 106) / C) / T
    scheme = fc.HPCC(form="rate", u_rate="tx", base_rtt=T, rate_ai=Rate(v * C / 8), feedback_delay=delay)
    found = fc.stability(fc.incast(1, multiplicity=8, rate="100Gbps", scheme=scheme))
    w = math.sqrt((math.sqrt(v**4 + 4 * k * k) - v * v) / 2)
    phase = math.atan(v / w) - w * D
    assert found.phase_margin == pytest.approx(math.degrees(phase), rel=EXACT)
    assert found.stable is (phase > 0)
    assert found.delay_margin == (pytest.approx(phase / w * T, rel=EXACT) if phase > 0 else None)
    turns = [brentq(lambda w, n=n: math.atan(v / w) - w * D + 2 * n * math.pi, 1e-6, 1e3, xtol=1e-13) for n in range(5)]
    decibels = [20 * math.log10(turn * math.hypot(turn, v) / k) for turn in turns]
    assert found.gain_margin == pytest.approx(min(decibels, key=abs), rel=EXACT)


def test_of_several_crossings_the_nearest_counts() -> None:
    """A resonance, g e^(-s D)/(s^2 + 2 z s + 1), has |L| = 1 below and above it; w^2 by the quadratic formula."""
    g, z, D = 0.5, 0.1, 0.3
    system = DelaySystem([[0, 1], [-1, -2 * z]], np.zeros((0, 2, 2)), [])
    found = DelayLoop(system, [[0, g]], [D], [1.0, 0.0]).margins()
    half = 1 - 2 * z * z
    w = np.sqrt(half + np.array([-1, 1]) * math.sqrt(half * half - 1 + g * g))
    phases = np.pi - np.arctan2(2 * z * w, 1 - w * w) - w * D
    assert found.gain_crossings == pytest.approx(w, rel=EXACT)
    assert found.phase == pytest.approx((phases[1], w[1]), rel=EXACT)
    assert 0 < phases[1] < phases[0]
    assert found.delay == pytest.approx((phases[1] / w[1], w[1]), rel=EXACT)
