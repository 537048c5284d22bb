"""Transfers in numbers on random scenarios: units and order do not matter, and no port carries more than its rate."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from fluidcc.engines.flow_level.run import FlowTimes, flow_times
from fluidcc.scenario.model import resolve
from tests.invariants.drawn import Case, drawn, in_units, permuted

SCHEMES = ("hpcc", "swift", "dctcp", "nscc", "none")
FEW = range(10)
MANY = range(10, 110)
ROUNDING = 1e-9  # of times that add up over a run
CRUMBS = 20.0  # bytes: dynamics take a transfer with less than one on its way for through, of 5 flows at 4 ports


def case_of(number: int) -> Case:
    """Draw a case whose flows all end."""
    case = drawn(number, SCHEMES, lossy=False)
    longest = 100.0 * case.scenario.packet_size
    flows = tuple(
        dataclasses.replace(f, size=f.size if math.isfinite(f.size) else longest) for f in case.scenario.flows
    )
    return dataclasses.replace(case, scenario=resolve(dataclasses.replace(case.scenario, flows=flows)))


def ended(case: Case, model: str) -> FlowTimes:
    found = flow_times(case.scenario, model=model, until=100 * case.until)
    assert (found.load >= 0).all(), case.name
    assert (found.load <= 1 + ROUNDING).all(), case.name
    return found


@pytest.mark.parametrize("model", ["ideal", "dynamics"])
@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_units_and_order_do_not_matter(model: str, cases: range) -> None:
    for case in map(case_of, cases):
        crumbs = 0.0 if model == "ideal" else CRUMBS / float(case.scenario.links[0].rate)
        near: dict[str, Any] = {"rtol": ROUNDING, "atol": crumbs}
        one = ended(case, model).answered
        np.testing.assert_array_equal(ended(case, model).answered, one, case.name)
        slower = ended(in_units(case, time=2.0), model).answered / 2.0
        np.testing.assert_allclose(slower, one, **near, err_msg=f"{case.name}, time")
        larger = ended(in_units(case, size=2.0), model).answered
        np.testing.assert_allclose(larger, one, **near, err_msg=f"{case.name}, data")
        order = list(range(len(one)))[::-1]
        other = ended(permuted(case, order), model).answered[order]
        np.testing.assert_allclose(other, one, **near, err_msg=f"{case.name}, order")
