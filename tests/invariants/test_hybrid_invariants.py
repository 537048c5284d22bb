"""The hybrid on random scenarios: units do not matter, nor does order but for who gets a mark by chance."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc.studies.sweeps.replications import Draws, outcomes
from tests.invariants.checked import differing, negative, numbers, overfull, run
from tests.invariants.drawn import Case, drawn, in_units, permuted

SCHEMES = ("dcqcn", "none")
FEW = range(12)
MANY = range(12, 112)
SEEDS = 24
ERRORS = 4.0  # standard errors of a difference of means, one of some 50 numbers


def case_of(number: int) -> Case:
    return drawn(number, SCHEMES, lossy=False)


@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_units_do_not_matter_and_links_carry_no_more_than_their_rate(cases: range) -> None:
    """CNPs have 64 B, so that a unit of data moves the time that they take: those runs are left to time alone."""
    for case in map(case_of, cases):
        found = run(case, "hybrid")
        one = numbers(case, found)
        assert overfull(case, found) == []
        assert negative(one) == [], case.name
        assert differing(one, numbers(case, run(case, "hybrid")), 0.0) == {}, case.name
        slower = numbers(case, run(in_units(case, time=2.0), "hybrid"), time=2.0)
        assert differing(one, slower) == {}, case.name
        if case.scheme == "none":
            larger = numbers(case, run(in_units(case, size=2.0), "hybrid"), size=2.0)
            assert differing(one, larger) == {}, case.name
            order = list(range(len(case.scenario.flows)))[::-1]
            assert differing(one, numbers(permuted(case, order), run(permuted(case, order), "hybrid"))) == {}, case.name


@pytest.mark.slow
def test_order_of_flows_does_not_matter_in_the_mean() -> None:
    """Who gets a mark is drawn along the list of flows, so that a seed gives another run."""
    for case in map(case_of, range(0, 40, 2)):
        draws = Draws("hybrid", SEEDS, None, case.until, (0.0, case.until))
        order = list(range(len(case.scenario.flows)))[::-1]
        one, other = outcomes(case.scenario, draws), outcomes(permuted(case, order).scenario, draws)
        queues = [np.array([run.links[0].area / run.links[0].span for run in runs]) for runs in (one, other)]
        error = np.hypot(*(each.std(ddof=1) / SEEDS**0.5 for each in queues))
        assert abs(queues[0].mean() - queues[1].mean()) <= ERRORS * error + 1e-9 * queues[0].mean(), case.name


def test_a_point_of_a_sweep_is_a_run() -> None:
    case = case_of(0)
    (point,) = outcomes(case.scenario, Draws("hybrid", 1, None, case.until, (0.0, case.until)))
    again = run(case, "hybrid", seed=1)
    assert point.goodput.tolist() == pytest.approx(again["goodput_bytes_per_s"], rel=1e-12)
