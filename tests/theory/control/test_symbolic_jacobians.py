"""The automatic linearisation against Jacobians that sympy derives from the papers' equations, to 1e-9."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import sympy

import fluidcc as fc

PACKET = 1000.0


@pytest.fixture(scope="module")
def loop() -> Any:
    """The claims' own derivation."""
    return importlib.import_module("fluidcc.proofs.dcqcn.loop")


@pytest.mark.parametrize("flows", [2, 8, 14])
def test_dcqcn(loop: Any, flows: int) -> None:
    """(7)-(9) unexpanded; states alpha, R_T, R there and queue, R, R_T, alpha here; packets there, bytes here."""
    found = fc.linearize(fc.incast(flows, scheme=fc.DCQCN()))
    now, rate, marks = loop.numbers(loop.derived(expanded=False), loop.fixed_point(flows, loop.marking(flows)))
    unit = np.array([1.0, PACKET, PACKET])  # of alpha, R_T, R
    order = [2, 1, 0]
    A0, A = np.zeros((4, 4)), np.zeros((4, 4))
    A0[0, 1] = flows
    A0[1:, 1:] = (now * unit[:, None] / unit)[np.ix_(order, order)]
    A[1:, 1] = (rate[:, 0] * unit / PACKET)[order]
    A[1:, 0] = (marks[:, 0] * unit)[order] * loop.PER_PACKET / PACKET
    assert found.states == ("queue 0", "rate 0", "target_rate 0", "alpha 0")
    for ours, theirs in ((found.system.A0, A0), (found.system.A[0], A)):
        scale = np.abs(theirs).max(axis=1, keepdims=True)
        np.testing.assert_allclose(
            ours / np.where(scale > 0, scale, 1), theirs / np.where(scale > 0, scale, 1), atol=1e-9
        )


@pytest.mark.parametrize("flows", [2, 10])
def test_patched_timely(flows: int) -> None:
    """Zhu et al.'s equations of N equal flows, by the present state, q(t - tau') and q(t - tau' - tau*)."""
    q, R, g, near, far = sympy.symbols("q R g q_1 q_2", real=True)
    N, C, a, b, d, low, span, seg = sympy.symbols("N C alpha beta delta T_low D Seg", positive=True)
    step = seg / R  # tau*, at the rest more than D
    weight = 2 * g + sympy.Rational(1, 2)
    moves = sympy.Matrix(
        [
            N * R - C,
            ((1 - weight) * d - weight * b * R * (near / C - low) / low) / step,
            a / step * ((near - far) / (C * span) - g),
        ]
    )
    at = {
        N: flows,
        C: 1.25e9,
        a: 0.875,
        b: 0.008,
        d: 1.25e6,
        low: 50e-6,
        span: 20e-6,
        seg: 16e3,
        g: 0.0,
        R: 1.25e9 / flows,
    }
    fixed_point = 62500 * (1 + flows * 1.25e6 / (0.008 * 1.25e9))
    at |= dict.fromkeys((q, near, far), fixed_point)
    now, first, second = (
        np.array(moves.jacobian(sympy.Matrix(symbols)).subs(at), float) for symbols in ([q, R, g], [near], [far])
    )
    scheme = fc.TIMELY(patched=True, beta=0.008, thresholds="queueing", hai_gain=1.0)
    found = fc.linearize(fc.incast(flows, rate="10Gbps", scheme=scheme))
    assert found.states == ("queue 0", "rate 0", "gradient 0")
    tau = 16e3 * flows / 1.25e9
    # Lags: rates reach the queue, what it does is observed, and was observed tau* ago.
    assert found.system.tau[-1] - found.system.tau[-2] == pytest.approx(tau, rel=1e-9)
    np.testing.assert_allclose(found.system.A[-2][:, 0], first[:, 0], rtol=1e-9)
    np.testing.assert_allclose(found.system.A[-1][:, 0], second[:, 0], rtol=1e-9)
    arrives = found.system.A[:-2].sum(axis=0)[0, 1] + found.system.A0[0, 1]
    assert arrives == pytest.approx(now[0, 1], rel=1e-12)
    np.testing.assert_allclose(found.system.A0[1:, 1:], now[1:, 1:], rtol=1e-9, atol=1e-9 * abs(now[1, 2]))
