"""AIMD's fluid, its packets and its closed form against each other; run it with fluidcc installed and this folder."""

from __future__ import annotations

import math

import aimd_ecn
import numpy as np
import pytest

import fluidcc as fc

FLOWS, RATE = 4, 1.25e9  # bytes/s


@pytest.fixture(scope="module")
def scenario() -> fc.Scenario:
    fc.register(aimd_ecn)  # an installed package's entry point does it as well
    return fc.incast(FLOWS, rate="10Gbps", scheme=aimd_ecn.AIMD())


@pytest.fixture(scope="module")
def queue(scenario: fc.Scenario) -> float:
    """Fair shares R = C/N fill the link where a/T = -ln(1 - b p) R^2/packet; RED says at which queue that is."""
    p, red = aimd_ecn.AIMD(), scenario.links[0].marking
    base_rtt = 2 * (1e-6 + 1e-6) + 2 * (1000 + 64) / RATE  # four links of 1 us; data and ACK are serialised twice
    marking = -math.expm1(-5e6 / base_rtt * FLOWS**2 * 1000 / RATE**2) / p.beta
    return red.kmin + marking / red.pmax * (red.kmax - red.kmin)


def test_the_closed_form_and_the_fluid_have_one_equilibrium(scenario: fc.Scenario, queue: float) -> None:
    (found,) = fc.equilibria(scenario)  # by Newton's method on the slope of the law
    assert found.as_dict()["queue_bytes"] == pytest.approx(queue, rel=1e-9)
    assert fc.stability(scenario).stable


def test_symbols_have_the_same_closed_form(scenario: fc.Scenario, queue: float) -> None:
    found = fc.symbolic(aimd_ecn.AIMD(), flows=FLOWS, rate="10Gbps")
    n = {each.name: each for each in (*found.values, *found.unknowns)}
    assert found.solution is not None
    assert found.number(found.solution[n["q"]]) == pytest.approx(queue, rel=1e-9)
    assert found.solution[n["R"]] == n["C"] / n["N"]
    system = fc.linearize(scenario).system  # by automatic differentiation of the law
    for s in (1e3 + 2e4j, -5e3 + 1e5j, 3e4):
        late = sum(matrix * np.exp(-s * tau) for tau, matrix in zip(system.tau, system.A, strict=True))
        engine = np.linalg.det(s * np.eye(system.order) - system.A0 - late)
        assert found.number(found.characteristic, {"s": s}) == pytest.approx(complex(engine), rel=1e-12)


def test_the_fluid_goes_there(scenario: fc.Scenario, queue: float) -> None:
    summary = fc.simulate(scenario, "40ms").summary
    assert summary["queue_bytes"]["mean"] == pytest.approx(queue, rel=1e-3)
    assert summary["jain"] == pytest.approx(1.0, abs=1e-6)


def test_packets_agree(scenario: fc.Scenario, queue: float) -> None:
    """Marks are random: within the tolerances of `aimd_ecn.crosscheck`."""
    runs = fc.ensemble(scenario, "40ms", seeds=4)
    compared = fc.compare(fc.simulate(scenario, "40ms"), runs)
    assert compared.tolerance
    assert compared.within, compared


def test_packets_grow_by_a_in_a_base_rtt() -> None:
    """A flow of which nothing is marked; over 5 ms to the packet, 1 in 2500, and to an ACK's delay, 4 us of 7.5 ms."""
    free = fc.incast(1, rate="10Gbps", scheme=aimd_ecn.AIMD(base_rtt="100us"), initial_rate="1Gbps")
    grown = fc.simulate(free, "10ms", engine="packet", window=("5ms", "10ms")).summary["rate_bytes_per_s"][0]
    assert grown == pytest.approx(0.125e9 + 5e6 / 100e-6 * 7.5e-3, rel=2e-3)
