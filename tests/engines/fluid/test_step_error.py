"""The step's error is an estimate: a third step says where the difference to half the step cannot be trusted."""

import itertools
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.cli.app import run
from fluidcc.engines.fluid import plan
from fluidcc.engines.fluid.network import network_of
from fluidcc.engines.fluid.plan import plan_of
from fluidcc.engines.fluid.run import NEGLIGIBLE, shrinks
from fluidcc.scenario.model import resolve

UNTIL = "20ms"
RECORDS = 1 << 10  # of the history, where runs share one
# The true error is at most twice the reported difference where that shrinks by half each time, and the difference
# itself may be off by the factor that `SLACK` allows.
TRUSTED = 4.0
STEP = fc.RED(kmin="40KB", kmax="40KB", pmax=0.1)
STEEP = fc.RED(kmin="40KB", kmax="40.04KB", pmax=0.1)


def off(scenario: fc.Scenario) -> tuple[float, object]:
    """How far queue and rates are from those with a step 16 times as small, over what is reported; and as expected?"""
    coarse = fc.simulate(scenario, UNTIL, dt="1us").summary
    fine = fc.simulate(scenario, UNTIL, dt="62.5ns", estimate_error=False).summary
    error = coarse["discretisation_error"]
    pairs = {
        "queue_rel": ([each["queue_bytes"]["mean"] for each in (coarse, fine)], 1e3),
        "rate_rel": ([each["rate_bytes_per_s"][0] for each in (coarse, fine)], 0.0),
    }
    true = {name: abs(a - b) / max(b, least) for name, ((a, b), least) in pairs.items()}
    return max(true[name] / max(error[name], NEGLIGIBLE) for name in true), error["as_expected"]


@pytest.mark.usefixtures("one_depth")
@pytest.mark.parametrize(("flows", "marking"), [(8, STEP), (2, STEEP)])
def test_a_difference_that_is_small_by_chance_is_said_to_be(flows: int, marking: fc.RED) -> None:
    share, as_expected = off(fc.incast(1, multiplicity=flows, marking=marking))
    assert share > TRUSTED
    assert as_expected is False


@pytest.mark.usefixtures("one_depth")
def test_steps_that_lock_to_the_grid() -> None:
    """With twice the step and with half of it rates agree to 2e-6, and those with h/16 are off by 1.5e-3."""
    scenario = fc.incast(1, multiplicity=2, marking=fc.RED("400KB", "400KB", 0.01), scheme=fc.DCQCN(g=1 / 256))
    steps = ("2us", "1us", "0.5us", "0.25us")
    rates = [fc.simulate(scenario, UNTIL, dt=dt, estimate_error=False).summary["rate_bytes_per_s"][0] for dt in steps]
    assert max(abs(a / b - 1) for a, b in itertools.pairwise(rates[:3])) < NEGLIGIBLE
    assert abs(rates[3] / rates[2] - 1) > 10 * NEGLIGIBLE
    assert fc.simulate(scenario, UNTIL, dt="1us").summary["discretisation_error"]["as_expected"] is False


@pytest.mark.usefixtures("one_depth")
@pytest.mark.parametrize("flows", [8, 10])
def test_where_it_shrinks_as_expected_it_is_the_error(flows: int) -> None:
    share, as_expected = off(fc.incast(1, multiplicity=flows))
    assert as_expected is True
    assert share <= TRUSTED


@pytest.mark.parametrize(("delay", "until", "doubles"), [("50us", UNTIL, True), ("49us", UNTIL, False)])
def test_the_history_holds_the_third_step(
    delay: str, until: str, doubles: bool, request: pytest.FixtureRequest
) -> None:
    """Twice the step where the lag is an even number of steps, else a quarter, which must find its past as well."""
    scenario = resolve(fc.incast(1, multiplicity=8, marking=fc.RED("40KB", "60KB", 0.1), feedback_delay=delay))
    plan = plan_of(network_of(scenario), until=until, dt="1us", halving=True)
    assert plan.doubles is doubles
    assert plan_of(network_of(scenario), until=until, window=("1us", until), dt="1us").doubles is False
    found = fc.simulate(scenario, until, dt="1us").summary["discretisation_error"]
    request.getfixturevalue("one_depth")
    steps = ("2us", "1us", "0.5us") if doubles else ("1us", "0.5us", "0.25us")
    means = [fc.simulate(scenario, until, dt=dt, estimate_error=False).summary["queue_bytes"]["mean"] for dt in steps]
    before, after = (abs(a - b) / b for a, b in itertools.pairwise(means))
    assert found["queue_rel"] == pytest.approx(after if doubles else before, rel=1e-6)
    assert found["as_expected"] is shrinks(before, after, "heun")


@pytest.mark.parametrize(
    ("before", "after", "method", "expected"),
    [
        (4e-3, 1e-3, "heun", True),
        (2e-3, 1e-3, "heun", True),
        (0.9e-3, 1e-3, "heun", False),
        (9e-3, 1e-3, "heun", False),
        (9e-3, 1e-3, "rk4", True),
        (5e-3, 1e-3, "euler", False),
        (1e-6, 1e-5, "heun", True),  # neither matters
        (1e-3, 0.0, "heun", False),
        (0.0, 0.0, "heun", True),
        (None, 1e-3, "heun", None),
        (1e-3, float("nan"), "heun", None),
    ],
)
def test_what_is_expected(before: float | None, after: float | None, method: str, expected: bool | None) -> None:
    assert shrinks(before, after, method) is expected


@pytest.mark.slow
@pytest.mark.usefixtures("one_depth")
def test_sweeps_say_it_of_their_sampled_points() -> None:
    def errors(marking: fc.RED, flows: list[int]) -> float:
        def make(n: float) -> fc.Scenario:
            return fc.incast(1, multiplicity=n, marking=marking)

        attrs = fc.sweep(make, {"n": flows}, until=UNTIL, dt="1us").dataset.attrs
        return attrs["discretisation_error.as_expected"]

    assert errors(STEEP, [2, 8]) == 0.0
    assert errors(fc.RED(kmin="5KB", kmax="200KB", pmax=0.01), [8, 10]) == 1.0


def test_the_command_says_what_to_do(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    fc.save_scenario(fc.incast(1, multiplicity=2, marking=STEEP), file)
    assert run(["simulate", "dcqcn", "--topology", str(file), "--dt", "1us", "--until", UNTIL]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "the error did not fall with the step as it should: take it as an order of magnitude; try --dt 250ns" in text


@pytest.mark.parametrize(
    ("kmin", "kmax", "jumps"),
    [
        ([5e3], [5e3 + 0.99e3], True),  # a link serves 1 KB in a step
        ([5e3], [5e3 + 1e3], False),
        ([5e3], [5e3], True),  # a step marking has no ramp
        ([math.inf], [math.inf], False),  # nothing is marked
        ([math.inf, 5e3], [math.inf, 6.1e3], False),
        ([math.inf, 5e3], [math.inf, 5.9e3], True),
    ],
)
def test_a_queue_jumps_over_a_ramp_that_is_shorter_than_a_step(kmin: Any, kmax: Any, jumps: bool) -> None:
    network: Any = SimpleNamespace(kmin=np.array(kmin), kmax=np.array(kmax), capacity=np.full(len(kmin), 1e9))
    assert plan._jumps(network, 1e-6) is jumps
