"""Tests of the map of HPCC's windows: against its own equations step by step, and against the fluid and packets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from benchmarks.hpcc_windows import SETTINGS, Setting, expected, fitted
from fluidcc.errors import NoClosedFormError
from fluidcc.schemes.hpcc.multipliers import characteristic, multipliers, together

PAIRS = ((0.95, 1.0), (0.98, 0.95), (0.99, 0.6), (0.9, 0.3))


def plain_multiplier(kept: float, late: float, *, by_rtt: bool) -> complex:
    """Step the linear equations by Heun's method, and fit a pair to W^c at its last updates."""
    steps = 1000
    ds = late / steps
    before, reference, u, seen = np.zeros(steps + 1), 1.0, 0.0, []
    for _ in range(60 if not by_rtt else 200):
        now = np.empty(steps + 1)
        for at in range(steps + 1):
            now[at] = reference if by_rtt else kept * (reference - u)
            if at < steps:
                first = before[at] - u
                u += ds / 2 * (first + before[at + 1] - (u + ds * first))
        before, reference = now, kept * (reference - u)
        seen.append(reference)
    x = np.array(seen[20:40])
    x /= np.abs(x).max()
    (b, c), *_ = np.linalg.lstsq(np.stack([x[1:-1], x[:-2]], axis=1), x[2:], rcond=None)
    return max(np.roots([1.0, -b, -c]), key=lambda z: (abs(z), z.imag))


@pytest.mark.parametrize("by_rtt", [False, True])
@pytest.mark.parametrize(("kept", "late"), PAIRS)
def test_the_equations_stepped_plainly_shrink_by_the_multiplier(kept: float, late: float, by_rtt: bool) -> None:
    """Notice a slip in the map: W^c of the wrong update, U a round trip too late, a sign."""
    assert abs(plain_multiplier(kept, late, by_rtt=by_rtt) - together(kept, late, by_rtt=by_rtt)) < 2e-3


@pytest.mark.parametrize(("kept", "late"), PAIRS)
def test_the_multiplier_solves_the_characteristic_equation(kept: float, late: float) -> None:
    """Notice a Newton step that goes to the root at -a, which is none of the map's."""
    z = together(kept, late)
    assert abs(characteristic(z, kept, late)) < 1e-12
    assert abs(z + kept) > 0.1


def test_windows_that_change_once_a_round_trip_barely_settle() -> None:
    """Notice a wrong product of the two: it is a whatever the delay."""
    for kept, late in PAIRS:
        assert abs(together(kept, late, by_rtt=True)) == pytest.approx(math.sqrt(kept), rel=1e-12)


def stable(**parameters: Any) -> fc.theory.Stability:
    """Stability of two flows on 100 Gb/s with a round trip of 40.18 us."""
    known: dict[str, Any] = {"w_ai": "5KB"}
    return fc.stability(fc.incast(2, rate="100Gbps", delay="10us", scheme=fc.HPCC(**(known | parameters))))


def test_stability_gives_the_roots_of_the_multipliers() -> None:
    """Notice roots of another period than the round trip, or differences that shrink by another factor."""
    found = stable(base_rtt="45us")
    trip, kept = 40.18368e-6, 0.95 / (0.95 + 2 * 5e3 / (12.5e9 * 45e-6))
    assert found.stable
    assert found.fairness_root is not None
    assert found.aggregate_root is not None
    assert found.fairness_root.real == pytest.approx(math.log(kept) / trip, rel=1e-9)
    assert np.exp(found.aggregate_root * trip) == pytest.approx(together(kept, trip / 45e-6), rel=1e-9)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "write base_rtt=40.99us"),
        ({"base_rtt": "45us", "w_ai": "80KB"}, "write a smaller w_ai"),
        ({"base_rtt": "45us", "reaction": "per-ack"}, "per-ack"),
        ({"base_rtt": "45us", "registers": "per-link"}, "registers=one"),
        ({"base_rtt": "45us", "u_queue": False}, "u_queue=True"),
    ],
)
def test_what_has_no_map_is_refused_with_what_to_write(parameters: dict[str, Any], words: str) -> None:
    """Notice numbers of a map that is not theirs."""
    found = stable(**parameters)
    assert found.stable is None
    assert words in found.state


def test_flows_of_different_round_trips_are_refused() -> None:
    """Notice one flow's period taken for all."""
    scheme = fc.HPCC(w_ai="5KB", base_rtt="60us")
    found = fc.stability(fc.parking_lot(3, rate="100Gbps", delay="5us", scheme=scheme))
    assert found.stable is None
    assert "path" in found.state


def test_the_headroom_is_the_edge() -> None:
    """Notice an equilibrium at full load taken for one below it."""
    p = fc.HPCC(base_rtt=1e-3, w_ai=1e3)
    with pytest.raises(NoClosedFormError, match="queue"):
        multipliers(p, {"utilisation_estimate": 1.0}, 0.5e-3)
    assert abs(multipliers(p, {"utilisation_estimate": 0.999}, 0.5e-3).together) < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_fluid_and_packets_shrink_by_the_multiplier(setting: Setting) -> None:
    """Notice an equation that the engines do not have; a packet is 2 to 20 % of what is fitted, a fluid step 0.5 %."""
    z = expected(setting)
    assert abs(fitted(setting, "fluid") - z) < 0.015
    assert abs(fitted(setting, "packet") - z) < 0.04
