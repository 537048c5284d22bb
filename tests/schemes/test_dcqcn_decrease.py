"""DCQCN's fluid with other cuts than alpha/2 (``decrease_gain``): its fixed point, solved here from the paper's text.

With R = C/N known, (7) gives alpha, (8) R_T - R, and (9) one equation for p, with the gain in place of 1/2. Tolerances,
stated before measuring: 1e-9 for numbers solved to rounding in two ways; residuals of the fluid's right-hand side 1e-9
of the single terms that cancel in it, for p solved to 1e-14 and magnified by the stiffness of (8) and (9).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from fluidcc.contract.signals import Signals
from fluidcc.schemes.dcqcn import fluid
from fluidcc.schemes.dcqcn.equilibrium import marking_at
from tests.schemes.plain_laws import plain

model = plain(fluid)
SOLVED = 1e-9
C, PACKET, KB = 40e9 / 8 / 1000, 1000, 1e3  # packets/s; bytes
R_AI, B, T, TAU, TAU_ALPHA, F = 40e6 / 8 / 1000, 10_000, 55e-6, 50e-6, 55e-6, 5


def fixed_point(flows: int, gain: float) -> tuple[float, float, float]:
    """p, R_T [packets/s] and alpha at which (7)-(9) are 0, from 1-(1-p)^n and p/((1-p)^(-n)-1) as printed."""
    R = C / flows

    def at(p: float) -> tuple[float, float, float, float]:
        hit = -math.expm1(TAU * R * math.log1p(-p))
        alpha = -math.expm1(TAU_ALPHA * R * math.log1p(-p))
        b, d = (p / math.expm1(-n * math.log1p(-p)) for n in (B, T * R))
        gap = TAU * R_AI * R * (b * (1 - p) ** (F * B) + d * (1 - p) ** (F * T * R)) / hit  # (8)
        # (9): recovery less cuts
        return gap / 2 * R * (b + d) - R * gain * alpha * hit / TAU, R + gap, alpha, hit

    p = brentq(lambda p: at(p)[0], 1e-7, 0.06, xtol=1e-18, rtol=1e-14)
    return p, at(p)[1], at(p)[2]


def scenario(flows: int, gain: float) -> fc.Scenario:
    return fc.incast(1, multiplicity=flows, rate="40Gbps", scheme=fc.DCQCN(decrease_gain=gain))


@pytest.mark.parametrize("flows", [2, 8])
@pytest.mark.parametrize("gain", [0.25, 0.5, 1.0])
def test_the_fluid_rests_where_the_equations_do(gain: float, flows: int) -> None:
    """Both of the package's ways, its own solution and a search on the fluid's right-hand side; and that itself."""
    p, target, alpha = fixed_point(flows, gain)
    for found in (fc.equilibrium(scenario(flows, gain)), fc.linearize(scenario(flows, gain)).equilibrium):
        solved = found.as_dict()
        assert solved["marking_probability"] == pytest.approx(p, rel=SOLVED)
        assert solved["queue_bytes"] == pytest.approx(5 * KB + p / 0.01 * 195 * KB, rel=SOLVED)
        assert solved["target_rate_bytes_per_s"] == pytest.approx(target * PACKET, rel=SOLVED)
        assert solved["alpha"] == pytest.approx(alpha, rel=SOLVED)
    rate = C / flows * PACKET

    def column(value: float) -> np.ndarray:
        return np.full((1, 1), value)

    scheme = scenario(flows, gain).flows[0].scheme
    observed = model.feedback(scheme, Signals(column(p), column(rate), column(1000.0)))
    state = model.State(column(rate), column(target * PACKET), column(alpha))
    moved = [leaf.item() for leaf in model.derivative(scheme, state, observed)]
    cuts = observed.cut.item()
    terms = rate * gain * alpha * cuts, (target * PACKET - rate) * cuts, scheme.g / TAU_ALPHA * alpha
    assert np.abs(moved) / terms == pytest.approx(0, abs=SOLVED)


@pytest.mark.parametrize("gain", [0.25, 0.5, 1.0])
def test_the_marking_at_a_rate_is_that_of_the_equations(gain: float) -> None:
    """By bisection, before Newton's method on the fluid corrects what it begins with."""
    scheme = scenario(8, gain).flows[0].scheme
    found = marking_at(scheme, np.array([C / 8 * PACKET]), C * PACKET, PACKET)
    assert found == pytest.approx([fixed_point(8, gain)[0]], rel=1e-9)


def test_gentler_cuts_need_more_marks() -> None:
    """Half the gain at the same p leaves a surplus of recovery: p rises, and with it alpha."""
    full, half = fixed_point(8, 0.5), fixed_point(8, 0.25)
    assert half[0] > full[0]
    assert half[2] > full[2]


@pytest.mark.slow
def test_a_run_settles_there() -> None:
    """From the fair rate, 100 ms: Heun's steps rest where the right-hand side is 0, to 1e-3 after the oscillations."""
    p, target, alpha = fixed_point(2, 0.25)
    start = dataclasses.replace(scenario(2, 0.25).flows[0].scheme, initial_alpha=alpha)
    run = fc.simulate(
        fc.incast(1, multiplicity=2, rate="40Gbps", scheme=start, initial_rate="20Gbps"), "100ms", estimate_error=False
    )
    last = run.dataset.isel(time=-1)
    assert float(last["queue"][0]) == pytest.approx(5 * KB + p / 0.01 * 195 * KB, rel=1e-3)
    assert float(last["target_rate"][0]) == pytest.approx(target * PACKET, rel=1e-3)
