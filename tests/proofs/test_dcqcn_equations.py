"""DCQCN's own Jacobian: roots at one rate and at two, against digits of other programs; fixed points by packet size."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc import incast
from fluidcc.proofs.dcqcn import equations
from fluidcc.proofs.dcqcn.equations import C, jacobians, rightmost, setting
from fluidcc.proofs.dcqcn.fixed_point import HIGH_PMAX, SLOW_T, SMALL_B, marking, most_flows, unequal


def test_two_classes_of_one_rate_move_as_one_does() -> None:
    """Catches a class that is given another's rate, or counted once in (6): 8 flows as 8, or as 3 and 5."""
    p = marking(8)
    one, split = (rightmost(*jacobians(each, p)) for each in ([(8, C / 8)], [(3, C / 8), (5, C / 8)]))
    assert one == pytest.approx(-47.734 + 2754.1j, rel=1e-4)  # docs/theory/stability.md
    assert split == pytest.approx(one, rel=1e-6)


def test_neither_split_of_two_flows_is_stable() -> None:
    """Byte counter 5 KB, timer 10 ms, Pmax 10 %: roots that another program found at 3.6 and 36.4 Gb/s, and at 20."""
    p, low = unequal()
    settings = {"pmax": HIGH_PMAX, "counter": SMALL_B, "timer": SLOW_T}
    apart = rightmost(*jacobians([(1, low), (1, C - low)], p, **settings))
    equal = rightmost(*jacobians([(2, C / 2)], marking(2, counter=SMALL_B, timer=SLOW_T), **settings))
    assert apart == pytest.approx(1005 + 6204j, abs=1)
    assert equal.real == pytest.approx(1657, abs=1)


def test_a_root_without_a_delayed_part_is_an_eigenvalue() -> None:
    """Catches a collocation that mistakes its own polynomial for the state: x' = -3 x, and x' = -x(t - 1)."""
    assert rightmost(np.array([[-3.0]]), np.zeros((1, 1)), 1e-3).real == pytest.approx(-3)
    root = rightmost(np.zeros((1, 1)), np.array([[-1.0]]), 1.0)
    assert root == pytest.approx(-0.318132 + 1.337236j, abs=1e-6)  # Lambert's W of -1


@pytest.mark.parametrize(("packet", "most", "meets"), [(1000.0, 14, 14.963), (1500.0, 10, 10.85)])
def test_the_last_fixed_point_depends_on_the_packets_size(packet: float, most: int, meets: float) -> None:
    found, where = most_flows(packet)
    assert found == most
    assert where == pytest.approx(meets, abs=5e-3)


def test_conditions_are_those_of_the_runs() -> None:
    """Notice settings in a verdict that the engines do not take, or that cannot be left out."""
    scenario = incast(2)
    scheme, marking_of = scenario.flows[0].scheme, scenario.links[0].marking
    assert marking_of is not None
    assert (scenario.packet_size, marking_of.pmax) == (equations.PACKET, equations.PMAX)
    assert scheme.rate_ai == equations.R_AI * equations.PACKET
    assert (scheme.initial_alpha, scheme.alpha_update) == (equations.ALPHA, "restarted")
    whole = "packets of 1000 B, Pmax 1%, R_AI 40 Mb/s, alpha falling from 1 before the first CNP"
    assert setting() == whole
    assert setting("Pmax", runs=False) == "packets of 1000 B, R_AI 40 Mb/s"
