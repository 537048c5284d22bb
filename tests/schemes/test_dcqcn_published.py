"""DCQCN's published linearisation: the margins as printed, and the formula by hand.

0.1 degree: the printed margins have five digits, of curves read at their authors' grid of frequencies.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.schemes.dcqcn.published import PublishedLoop, published

PRINTED = {
    "50us": {2: 8.2626, 4: -0.75215, 6: -4.9328, 8: -6.4319, 10: -6.5844, 16: -3.8992, 22: 0.67343},
    "100us": {2: -10.099, 8: -18.252, 32: -1.7638, 64: 15.625},
    "0us": {2: 26.624, 10: 4.7564, 64: 43.472},
}


@pytest.mark.parametrize(
    ("delay", "flows", "margin"), [(delay, n, m) for delay, row in PRINTED.items() for n, m in row.items()]
)
def test_margins_as_printed(delay: str, flows: int, margin: float) -> None:
    loop = published(fc.DCQCN(feedback_delay=delay), flows=flows)
    assert loop.phase_margin() == pytest.approx(margin, abs=0.1)


def test_least_stable_near_ten_flows() -> None:
    margins = {n: published(flows=n).phase_margin() for n in range(2, 33)}
    assert min(margins, key=lambda n: margins[n]) in (8, 9, 10)
    assert margins[2] > 0 > margins[4]


def by_hand(w: Any, N: float, delay: float) -> Any:
    """L(i w) at the paper's settings, written out term by term as printed."""
    C, tau, tau1, T, R_AI, B, F, g = 5e6, 50e-6, 55e-6, 55e-6, 5e3, 1e4, 5, 1 / 256
    R = C / N
    p = (R_AI * N**2 / (tau1 * C**2) * (1 / B + N / (T * C)) ** 2) ** (1 / 3)
    a, b, d = 1 - (1 - p) ** (tau * R), p / ((1 - p) ** -B - 1), p / ((1 - p) ** (-T * R) - 1)
    c, e = (1 - p) ** (F * B) * b, (1 - p) ** (F * T * R) * d
    alpha, R_T = 1 - (1 - p) ** (tau1 * R), R * (1 + (c + e) * tau * R_AI / a)
    A, k = 1 / B + 1 / (T * R), N * 0.01 / 195
    h = 1 / 2 + A / 4
    S = A * R / 2 - h * p * R
    AA = (-(R**2) * alpha / 2 - h * R * R_T + h * R**2) * k
    BB = -p * R * alpha / 2 - A * R / 2 + h * p * R
    CC = -p * R * alpha / 2 - A * R / 2 + A * R_T / 2 + h * p * R - h * p * R_T
    DD = -p * R**2 * g * C * k / 2
    EE = S * (p * R + A * R_AI)
    FF = S * (-p * R_T + p * R + A * R_AI - (1 + 2 * F + A / 2) * R_AI * p)
    GG = S * (-R * R_T + R**2 - (1 + 2 * F + A / 2) * R_AI * R) * k
    s = 1j * w
    slow, fast = N * s + g * C, s + p * R
    num = slow * fast * AA + slow * fast * s * BB + fast * DD + slow * s * FF + slow * GG
    den = -s * slow * fast * s + slow * fast * s * CC + s * slow * EE
    return np.exp(-s * delay) * num / den


@pytest.mark.parametrize("flows", [2, 10])  # (1-p)^(-B) overflows by hand at 64
@pytest.mark.parametrize("delay", [0.0, 50e-6])
def test_response_and_crossovers_by_hand(flows: int, delay: float) -> None:
    """Rounding only; crossovers against a grid of 1e-4 of a frequency, over eight decades."""
    loop = published(fc.DCQCN(feedback_delay=delay), flows=flows)
    w = np.geomspace(1e-1, 1e7, 184_000)
    response = by_hand(w, flows, delay)
    np.testing.assert_allclose(loop.response(w), response, rtol=1e-9)
    crossed = np.flatnonzero(np.diff(np.sign(np.abs(response) - 1)))
    np.testing.assert_allclose(loop.crossovers(), w[crossed], rtol=2e-4)
    assert loop.phase_margins() == pytest.approx(np.degrees(np.angle(-response))[crossed], abs=0.05)


@given(st.floats(1, 64), st.floats(0, 2e-4), st.floats(1e-4, 1), st.floats(300, 4000))
def test_every_crossover_is_one(flows: float, delay: float, g: float, packet: float) -> None:
    loop = published(fc.DCQCN(feedback_delay=delay, g=g), flows=flows, packet=packet)
    assert np.abs(loop.response(loop.crossovers())) == pytest.approx(1, rel=1e-6)
    assert -180 <= loop.phase_margin() <= 180
    assert loop.phase_margin() == min(loop.phase_margins())


def test_no_crossover_is_an_infinite_margin() -> None:
    """Not reached by DCQCN, whose loop has an integrator: a constant gain of 1/2 has none."""
    one = np.polynomial.Polynomial([1.0])
    loop = PublishedLoop(0.01, 1e4, True, 1e9, 0.1, 5e-5, one, 2 * one, 5e-5)
    assert loop.crossovers().size == 0
    assert loop.phase_margin() == math.inf


def test_units_do_not_matter() -> None:
    """Text or SI; and all amounts of data scaled together leave frequencies and margins."""
    one = published(flows=8, rate="40Gbps", packet="1KB")
    two = published(flows=8.0, rate="5e9B/s", packet=1000.0)
    assert one.phase_margin() == two.phase_margin()
    scheme = dataclasses.replace(fc.DCQCN(), rate_ai="80Mbps", byte_counter="20MB")
    more = published(scheme, fc.RED("10KB", "400KB", "1%"), flows=8, rate="80Gbps", packet="2KB")
    assert more.crossovers() == pytest.approx(one.crossovers(), rel=1e-9)
    assert more.phase_margin() == pytest.approx(one.phase_margin(), abs=1e-6)
    assert more.queue == pytest.approx(2 * one.queue, rel=1e-12)


@pytest.mark.parametrize(("flows", "too_high"), [(2, 0.19), (8, 0.28), (32, 0.44)])
def test_its_marking_is_not_the_fixed_point_s(flows: int, too_high: float) -> None:
    exact = fc.equilibrium(fc.incast(1, multiplicity=flows)).as_dict()
    loop = published(flows=flows)
    assert loop.marking_probability / exact["marking_probability"] - 1 == pytest.approx(too_high, abs=0.005)


def test_its_ramp_ends_earlier_too() -> None:
    """Its p* is Pmax where N (1/B + N/(T C)) = sqrt(tau' C^2 Pmax^3/R_AI), before 12; the fixed point's before 15."""
    B, TC, right = 1e4, 55e-6 * 5e6, math.sqrt(55e-6 * 5e6**2 * 0.01**3 / 5e3)
    ends = TC / 2 * (math.sqrt(1 / B**2 + 4 * right / TC) - 1 / B)
    assert 11 < ends < 12
    assert published(flows=ends).marking_probability == pytest.approx(0.01, rel=1e-9)
    for flows in (2, 11, 12, 14, 15, 32):
        loop = published(flows=flows)
        exact = fc.equilibrium(fc.incast(1, multiplicity=flows)).as_dict()
        assert loop.on_ramp is (flows < ends)
        assert exact["on_ramp"] is (flows <= 14)
        assert loop.queue == pytest.approx(5e3 + loop.marking_probability / 0.01 * 195e3, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"parameters": fc.DCQCN(hyper_increase=True)}, "no hyper_increase = True; write hyper_increase=False"),
        ({"parameters": fc.DCQCN(decrease_gain=0.25)}, "no decrease_gain = 0.25; write decrease_gain=0.5"),
        ({"parameters": fc.DCQCN(min_rate="1Mbps")}, "no min_rate"),
        ({"parameters": fc.DCQCN(feedback_delay=None)}, "no tau"),
        ({"parameters": fc.DCQCN(g=2.0)}, "published: g: 2 is too large"),
        ({"parameters": fc.DCQCN(rate_ai=0.0)}, "p\\* = 0"),
        ({"marking": fc.RED("40KB", "40KB", 1.0)}, "no slope"),
        ({"marking": fc.RED("5KB", "200KB", -2.0)}, "published: marking: pmax"),
        ({"flows": 0}, "flows: 0 is not positive"),
        ({"flows": 10_000}, "no probability below 1"),
        ({"rate": "40GBit"}, "published: rate"),
        ({"packet": -1}, "packet: -1 is not positive"),
    ],
)
def test_errors(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        published(**changes)
    assert "\n" not in str(caught.value)
