"""Branches of DCQCN's cycles, and the region of bistability; what is slow is compared with runs and known numbers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from matplotlib.colors import to_rgba

import fluidcc as fc
from fluidcc.dde.orbit import Orbit
from fluidcc.errors import InputError
from fluidcc.plotting.cycles import BOTH
from fluidcc.studies.sweeps import bistable_region as region_module
from fluidcc.studies.sweeps.cycle_branch import Laws, way_of
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
        (
            lambda: fc.studies.cycle_branch(flows, {"n": [6, 20]}, steps=9),
            "steps: expected a whole number from 10 to 1000000, not 9; write 500 or more",
        ),
        (
            lambda: fc.studies.cycle_branch(flows, {"n": [6, 20]}, steps=cast(Any, 1e3)),
            "steps: expected a whole number from 10",
        ),
        (lambda: fc.studies.cycle_branch(flows, {"n": [6, 20]}, at="ten"), "n: cannot read 'ten'"),
        (lambda: fc.studies.cycle_branch(flows, {"n": [6, 20]}, until="5KB"), "unknown unit 'KB'.*ps\\)$"),
        (lambda: fc.studies.cycle_branch(flows, {"n": [6, 6]}), "over n: 6 and 6 are no two ends"),
        (lambda: fc.studies.cycle_branch(flows, {"n": [6, np.nan]}), "over n: nan and nan are no two ends"),
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
        (
            lambda: fc.studies.bistable_region(lambda n, g: flows(n), {"n": [6, 20], "g": [1]}, steps=9),
            "steps: expected a whole number from 10",
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
        (lambda n: fc.incast(1, multiplicity=n, scheme=fc.HPCC(feedback_delay="50us")), "schemes with windows"),
        (lambda n: fc.incast(1, multiplicity=n - 30), "over: out of range at n=20; give other ends"),
    ],
    ids=["classes", "lags", "window", "range"],
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


def test_a_begin_has_the_units_of_what_is_followed() -> None:
    """A text is read as the ends are."""
    assert way_of("kmin", np.array([5e3, 20e3]), "10KB") == ((5e3, 20e3), 10e3)
    assert way_of("n", np.array([20.0, 6.0]), None) == ((6.0, 20.0), 6.0)


def test_a_region_without_folds_has_a_picture() -> None:
    """Nothing lies beyond a fold; a table without NaN.

    Catches the outline of an empty region being asked for.
    """
    data = region_of().dataset
    none = fc.studies.BistableRegion(data.assign(fold=data["fold"] * np.nan), "n")
    assert dict(none._rows())["fold"] == "none"
    picture: Any = none.plot()
    assert not [each for each in picture.axes[0].collections if each.get_facecolor().tolist() == [list(to_rgba(BOTH))]]


def test_one_value_of_a_region_is_a_region() -> None:
    """Both names stay, whichever is selected; the picture gives no warning."""
    found = region_of()
    for part in (found.sel(g=0.1), found.isel(g=0), found.isel(n=1)):
        assert (part.name, part.second) == ("n", "g")
        repr(part)
    assert found.sel(g=0.1)["bistable"].values.tolist() == [[False], [True], [False]]
    found.sel(g=0.1).plot()


def test_a_second_value_that_makes_no_sense_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values after it are followed from the last good one.

    Catches one Kmin above Kmax that loses the folds of all others.
    """

    def moved(laws: Any, other: str, orbit: Any, old: float, new: float) -> Any:
        if new > 200e3:
            raise InputError("kmin exceeds kmax")
        begun.append((old, new))
        return orbit

    def row(law_at: Any, orbit: Any, ends: Any, way: float, why: str) -> dict[str, Any]:
        found = np.nan if orbit is None else 8.0
        return dict.fromkeys(("fold", "fold_period", "fold_queue_max"), found) | {
            "reason": why if orbit is None else "ok"
        }

    begun: list[tuple[float, float]] = []
    for name, stub in (("first_orbit", lambda *_: object()), ("_moved", moved), ("_row", row)):
        monkeypatch.setattr(region_module, name, stub)
    found = fc.studies.bistable_region(
        lambda n, kmin: fc.incast(1, multiplicity=n, marking=fc.RED(kmin, "200KB", "1%")),
        {"n": [7, 17], "kmin": [5e3, 250e3, 10e3]},
    )
    assert found["reason"].values.tolist() == ["ok", "kmin exceeds kmax", "ok"]
    assert begun == [(5e3, 5e3), (5e3, 10e3)]
    assert not found["bistable"].values[:, 1].any()


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
