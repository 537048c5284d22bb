"""Branches of DCQCN's cycles, and the region of bistability; what is slow is compared with runs and known numbers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde.orbit import Orbit
from fluidcc.errors import InputError
from fluidcc.studies.sweeps import bistable_region as region_module
from fluidcc.studies.sweeps.cycle_branch import Laws
from tests.results.test_results import followed, region_of

FOLD = 0.05  # flows: stated in benchmarks/cycle_branches.py before measuring


def flows(n: Any) -> fc.Scenario:
    """Flows at the paper's settings, 40 Gb/s."""
    return fc.incast(1, multiplicity=n)


# -- by hand ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: fc.studies.cycle_branch(flows, {"n": [6]}), "over: give one name and its two ends"),
        (lambda: fc.studies.cycle_branch(flows, {"n": [6, 20], "g": [1, 2]}), "over: give one name and its two ends"),
        (lambda: fc.studies.cycle_branch(flows, {"n": [6, 20]}, at=21), "at: 21 is not between the ends, 6 and 20"),
        (lambda: fc.studies.cycle_branch(flows, {"n": [6, 20]}, steps=9), "steps: 9 are too few"),
        (
            lambda: fc.studies.bistable_region(flows, {"n": [6, 20]}),
            "over: give the ends of one name and the values of",
        ),
        (
            lambda: fc.studies.bistable_region(flows, {"n": [6], "g": [1]}),
            "over: give the ends of one name and the values of",
        ),
        (
            lambda: fc.studies.bistable_region(lambda n, g: flows(n), {"n": [6, 20], "g": [1]}, at=3),
            "at: 3 is not between the ends",
        ),
    ],
)
def test_options_that_make_no_sense(call: Any, error: str) -> None:
    with pytest.raises(InputError, match=error):
        call()


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda n: fc.incast(2, multiplicity=n, initial_rate=["40Gbps", "20Gbps"]), "1 links and 2 classes of flows"),
        (lambda n: fc.incast(1, multiplicity=n, scheme=fc.DCQCN(feedback_delay=None)), "give one constant lag"),
        (lambda n: fc.incast(1, multiplicity=n - 30), "over: out of range at n=20; give other ends"),
    ],
    ids=["classes", "lags", "range"],
)
def test_scenarios_that_cannot_be_followed(make: Any, error: str) -> None:
    with pytest.raises(InputError, match=error):
        Laws(make, "n")(n=20.0)


def test_the_law_is_the_fluids_own() -> None:
    """Queue, marking and limits as the engine has them, and how they depend on the number of flows.

    Catches a derivative by another parameter, and flows that observe the present queue.
    """
    law = Laws(lambda n, tau: fc.incast(1, multiplicity=n, scheme=fc.DCQCN(feedback_delay=tau)), "n")(n=10.0, tau=4e-5)
    assert law.lag == (4e-5, 0.0)
    assert law.flows == 10.0
    row, kmax, by = law.jump
    assert (kmax, by) == (200e3, 0.0)
    x = np.array([[100e3, 6e8, 6.1e8, 0.1], [0.0, 4e8, 5e8, 0.2]])
    u = x @ law.observed.T
    assert u[:, row].tolist() == [100e3, 0.0]
    assert np.sort(u, axis=1).tolist() == [[100e3, 6e8], [0.0, 4e8]]
    found = law.rates(x, u)
    assert found.slope[:, 0] == pytest.approx([10 * 6e8 - 5e9, 10 * 4e8 - 5e9])
    assert found.by[:, 0] == pytest.approx([6e8, 4e8])  # one flow more
    assert found.slope[1, 1] == pytest.approx(0.5 * 1e8 * (1 / 55e-6 + 4e8 / 10e6), rel=1e-12)  # (9) without marks
    held = law.limits(np.array([[-5.0, 6e9, 4e9, 0.1], [5.0, 6e8, 6e8, 0.1]]))
    assert held.x[:, :3].tolist() == [[0.0, 5e9, 4e9], [5.0, 6e8, 6e8]]
    assert [np.diag(each).tolist() for each in held.own] == [[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]


def test_a_swept_delay_moves_the_lag() -> None:
    """The lag's own derivative is 1 where the delay is followed."""
    law = Laws(lambda tau: fc.incast(1, multiplicity=4.0, scheme=fc.DCQCN(feedback_delay=tau)), "tau")(tau=5e-5)
    assert law.lag == pytest.approx((5e-5, 1.0))


def test_a_part_of_a_branch_is_a_branch() -> None:
    """Folds, numbers and the picture follow from the dataset."""
    found = followed()
    assert found.folds == [8.3]
    assert found.isel(point=[0, 2]).folds == []
    assert [each["fold"] for each in found.as_dict()["cycles"]] == [False, True, False]
    assert found.as_dict()["cycles"][2]["queue_bytes"]["max"] == 210e3
    found.plot(label="flows")


def test_a_region_lies_between_fold_and_equilibrium() -> None:
    """Both are stable beyond the fold, where the root is negative and the equilibrium on the ramp."""
    found = region_of()
    assert found.second == "g"
    assert found["bistable"].values.tolist() == [[False, False], [True, False], [False, False]]
    assert "1 values" in dict(found._rows()).values()
    found.plot(labels={"n": "flows"})


def test_a_cycle_is_carried_to_the_next_value_by_smaller_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many each time; the cycle that is given up is not the next one's guess."""
    tried: list[float] = []

    def solve(law_at: Any, guess: Any) -> Any:
        tried.append(law_at(1.0))
        return guess if abs(law_at(1.0) - guess.period) <= 1.0 else None

    monkeypatch.setattr(region_module, "solve_orbit", solve)
    laws: Any = type("L", (), {"at": lambda self, g: lambda value: g})()
    begin = Orbit(cast(Any, 2.0), np.zeros((1, 1)), 2.0, 1.0)
    assert region_module._moved(laws, "g", begin, 2.0, 3.0) is not None
    assert tried == [3.0]
    tried.clear()
    assert region_module._moved(laws, "g", begin, 2.0, 9.0) is None
    assert tried[:4] == [9.0, 5.5, 3.75, 2.875]


# -- slow: against numbers that runs gave -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def branch() -> fc.studies.CycleBranch:
    return fc.studies.cycle_branch(flows, {"n": [7, 17]}, steps=500)


@pytest.mark.slow
def test_cycles_fold_where_runs_stop_to_cycle(branch: fc.studies.CycleBranch) -> None:
    """A run goes on down to 8.29 flows (benchmarks/cycle_branches.py), and 8 flows settle from every start known."""
    (fold,) = branch.folds
    assert fold == pytest.approx(8.29, abs=FOLD)


@pytest.mark.slow
def test_the_stable_cycle_is_that_of_a_run(branch: fc.studies.CycleBranch) -> None:
    """At 16 flows, within 1 % each."""
    run = fc.limit_cycle(flows(16), estimate_error=False)
    data = branch.dataset
    fold = int(np.flatnonzero(data["fold"].values)[0])
    upper = data.isel(point=slice(fold, None))
    for name, value in (("period", run.period), ("queue_bytes.mean", run.mean), ("queue_bytes.max", run.high)):
        assert np.interp(16.0, upper["n"].values, upper[name].values) == pytest.approx(value, rel=0.01)
    assert upper["queue_bytes.min"].values.max() == 0.0


@pytest.mark.slow
def test_the_unstable_cycle_only_just_meets_the_jump(branch: fc.studies.CycleBranch) -> None:
    """It lies between the equilibrium and the stable cycle, and its largest queue is Kmax and a few bytes."""
    data = branch.dataset
    fold = int(np.flatnonzero(data["fold"].values)[0])
    lower = data.isel(point=slice(0, fold))
    assert not lower["stable"].values[:-3].any()
    assert (lower["multiplier"].values[lower["n"].values > 9] > 100).all()
    assert lower["queue_bytes.max"].values.min() > 200e3
    assert lower["queue_bytes.max"].values.max() < 201e3
    assert data.isel(point=slice(fold + 3, None))["stable"].values.all()


@pytest.mark.slow
def test_folds_over_g() -> None:
    """At the paper's g the fold of the branch; a larger g moves it down; at 1/32 the equilibrium there oscillates."""
    found = fc.studies.bistable_region(
        lambda n, g: fc.incast(1, multiplicity=n, scheme=fc.DCQCN(g=g)),
        {"n": [6, 17], "g": [1 / 256, 1 / 32]},
        steps=500,
    )
    fold = found["fold"].values
    assert fold[0] == pytest.approx(8.29, abs=FOLD)
    assert fold[1] < fold[0] - 0.3
    n = found["n"].values
    assert found["bistable"].values[:, 0].tolist() == ((n > fold[0]) & found["on_ramp"].values[:, 0]).tolist()
    assert not found["bistable"].values[n < 12, 1].any()
