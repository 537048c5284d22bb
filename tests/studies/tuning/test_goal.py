"""Goals of tuning over cases: the worst in a metric's usual sense, or the mean."""

from __future__ import annotations

import numpy as np
import pytest

from fluidcc.studies.sweeps.constraints import parse_constraint
from fluidcc.studies.tuning.goal import TUNED, Goal, Objective

FOUND = {
    "queue_bytes.p99": np.array([10e3, 40e3]),
    "utilisation": np.array([0.9, 1.0]),
    "jain": np.array([0.5, 0.75]),
}


SHORT = Objective("queue_bytes.p99")


def goal(worst: bool, *bounds: str, objective: Objective = SHORT) -> Goal:
    return Goal((objective,), tuple(parse_constraint(each, known=TUNED) for each in bounds), worst)


def test_the_worst_of_what_should_be_large_is_the_least() -> None:
    assert goal(True).summary(FOUND) == {"queue_bytes.p99": 40e3, "utilisation": 0.9, "jain": 0.5}
    assert goal(False).summary(FOUND) == {"queue_bytes.p99": 25e3, "utilisation": 0.95, "jain": 0.625}
    sought = goal(True, objective=Objective("queue_bytes.p99", maximise=True))
    assert sought.summary(FOUND)["queue_bytes.p99"] == 10e3  # as the objective says, whatever is usual
    assert np.isnan(goal(True).summary({**FOUND, "jain": np.array([0.5, np.nan])})["jain"])


def test_costs_are_less_where_it_is_better() -> None:
    assert goal(True).costs(FOUND).tolist() == [40e3]
    assert goal(True, objective=Objective("utilisation", maximise=True)).costs(FOUND).tolist() == [-0.9]
    assert goal(True).costs({"queue_bytes.p99": np.array([1.0, np.nan])}).tolist() == [np.inf]


def test_a_bound_is_missed_or_kept_by_a_share_of_it() -> None:
    """Utilisation 0.9 misses 0.96 by a sixteenth; the queue keeps 50 KB by a fifth."""
    bounds = goal(True, "utilisation>=0.96", "queue_bytes.p99<=50KB")
    assert bounds.violations(FOUND) == pytest.approx([0.06 / 0.96, 0.0])
    assert bounds.spare(FOUND) == pytest.approx(-0.06 / 0.96)
    assert goal(True, "queue_bytes.p99<=50KB").spare(FOUND) == pytest.approx(0.2)
    assert goal(True).spare(FOUND) == np.inf
    assert goal(False, "utilisation>=0.96").violations(FOUND) == pytest.approx([0.01 / 0.96])
    assert (
        bounds.violations({**FOUND, "utilisation": np.array([np.nan, 1.0])})[0] == 1e3
    )  # what has no value is far off
