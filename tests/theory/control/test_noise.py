"""Noise of queues: an exact variance, a Lyapunov equation, the hybrid, and where there is none."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from typer.testing import CliRunner

import fluidcc as fc
from fluidcc.cli.app import app
from fluidcc.dde.delay_system import DelaySystem
from fluidcc.errors import NoClosedFormError
from fluidcc.theory.control.noise import QueueNoise, Source

SHARE = 20e9 / 8  # bytes/s of a flow


def white(density: float):
    return lambda w: np.broadcast_to(np.array([[density + 0j]]), (len(w), 1, 1))


def dcqcn(flows: int, *, delay: str | None = "8us", apart: bool = False, **changes: Any) -> fc.Scenario:
    """Flows of 20 Gb/s each, whose fixed point is stable; thresholds and rate in proportion to their number."""
    return fc.incast(
        flows if apart else 1,
        multiplicity=1 if apart else flows,
        rate=fc.units.Rate(flows * SHARE),
        initial_rate=fc.units.Rate(SHARE),
        scheme=fc.DCQCN(feedback_delay=delay, **changes),
        marking=fc.RED(2500.0 * flows, 100e3 * flows, 0.01),
    )


@pytest.mark.parametrize("angle", [0.0, 0.5, 1.0, 1.5, 1.57, math.pi / 2 - 1e-8])
def test_one_state_with_a_delay(angle: float) -> None:
    """x'(t) = -b x(t - tau) + n has the variance D (1 + sin b tau)/(2 b cos b tau) (Küchler and Mensch 1992), to 1e-3.

    At 1.57 the resonance is a thousandth of its frequency wide, at last a hundred-millionth: found by halving alone,
    it took 20 000 evaluations.
    """
    b, flows = 40.0, 4.0
    system = DelaySystem(np.zeros((1, 1)), np.full((1, 1, 1), -b), np.array([angle / b]))
    asked = []

    def density(w: np.ndarray) -> np.ndarray:
        asked.append(len(w))
        return white(3.0)(w)

    found = QueueNoise(system, 0, (Source((0,), (0,), flows, density),)).std_bytes()
    assert len(asked) < 400
    expected = 3.0 / flows * (1 + math.sin(angle)) / (2 * b * math.cos(angle))
    assert found**2 == pytest.approx(expected, rel=1e-3)


def test_a_state_that_nothing_moves_has_no_part_in_it() -> None:
    """Its root is 0, which is no frequency to begin at; x' = -b x + n of two sources beside it, one of two flows."""
    b = 40.0
    system = DelaySystem(np.diag([0.0, -b]), np.zeros((0, 2, 2)), np.zeros(0))
    sources = (Source((1,), (0,), 1.0, white(3.0)), Source((0, 1), (0, 0), 2.0, white(5.0)))
    noise = QueueNoise(system, 1, sources)
    w = np.array([[1.0, 30.0], [50.0, 900.0]])
    np.testing.assert_allclose(noise.spectrum(w), (3.0 + 5.0 / 2) / (w**2 + b**2), rtol=1e-12)
    assert noise.std_bytes() ** 2 == pytest.approx((3.0 + 5.0 / 2) / (2 * b), rel=1e-3)


def test_on_the_boundary_there_is_no_variance() -> None:
    """A root as near to the axis as roots are exact: its width is rounding, and halving it took a minute to give up."""
    b = 40.0
    system = DelaySystem(np.zeros((1, 1)), np.full((1, 1, 1), -b), np.array([(math.pi / 2 - 1e-12) / b]))
    with pytest.raises(NoClosedFormError, match="too sharp"):
        QueueNoise(system, 0, (Source((0,), (0,), 1.0, white(3.0)),)).std_bytes()


def test_the_spectrum_is_two_sided_and_its_integral_the_variance() -> None:
    """By the trapezoidal rule on even logarithms, to 1e-3; shapes are kept."""
    noise = fc.stability(dcqcn(32)).noise
    assert noise is not None
    log = np.linspace(math.log(1e-2), math.log(1e7), 3000)
    variance = np.trapezoid(noise.spectrum(np.exp(log)) * np.exp(log), log) / math.pi
    assert variance == pytest.approx(noise.std_bytes() ** 2, rel=1e-3)
    assert noise.spectrum(np.full((2, 3), 50.0)).shape == (2, 3)


def test_dcqcns_system_by_a_lyapunov_equation() -> None:
    """The delayed system in steps of a twentieth of its delay, with white noise as strong as at 1e3 rad/s.

    Within 2 %: Euler's steps turn the phase by 0.2 us at some 3e3 rad/s, of a margin of 18 degrees.
    """
    scenario = dcqcn(32)
    found, noise = fc.linearize(scenario), fc.stability(scenario).noise
    assert noise is not None
    (source,) = noise.sources
    strength = source.density(np.array([1e3]))[0].real
    flat = dataclasses.replace(
        noise, sources=(source._replace(density=lambda w: np.broadcast_to(strength, (len(w), 3, 3))),)
    )
    n, steps = found.system.order, 20
    (delay,) = found.system.tau
    dt = float(delay) / steps
    scale = np.array([1e6, 1e7, 1e7, 1e-2])[:n]  # or the matrices' entries would lie far apart
    step = np.eye(n * (steps + 1), k=-n)
    step[:n, :n] = np.eye(n) + dt * found.system.A0 * scale / scale[:, None]
    step[:n, -n:] = dt * found.system.A[0] * scale / scale[:, None]
    push = np.zeros((n * (steps + 1),) * 2)
    rows = np.array(source.states)
    push[np.ix_(rows, rows)] = dt * strength / source.flows / np.outer(scale[rows], scale[rows])
    variance = solve_discrete_lyapunov(step, push)[0, 0] * scale[0] ** 2
    assert flat.std_bytes() == pytest.approx(math.sqrt(variance), rel=0.02)


def test_more_flows_at_a_fixed_share_average_it_out() -> None:
    """Rate and thresholds in proportion: the system is the same per flow, so std/mean falls as N^-1/2, to 1e-6."""
    few, many = (fc.stability(dcqcn(n)).queue_std_bytes for n in (8, 128))
    assert few is not None
    assert many is not None
    assert many / 128 == pytest.approx(few / 8 / 4, rel=1e-6)


def test_at_an_equilibrium_that_is_given() -> None:
    scenario = dcqcn(32)
    found = fc.stability(scenario, at=fc.equilibrium(scenario)).queue_std_bytes
    assert found == pytest.approx(fc.stability(scenario).queue_std_bytes, rel=1e-6)


@pytest.mark.slow
def test_classes_add_their_noise() -> None:
    """24 and 8 flows whose NICs differ, which plays no part here: as 32 equal ones, to the integral's 5e-4."""
    scenario = dcqcn(32)
    (flow,) = scenario.flows
    parts = (24.0, flow.line_rate), (8.0, fc.units.Rate(2 * flow.line_rate))
    apart = tuple(dataclasses.replace(flow, multiplicity=many, line_rate=rate) for many, rate in parts)
    found = fc.stability(dataclasses.replace(scenario, flows=apart))
    assert found.noise is not None
    assert len(found.noise.sources) == 2
    assert found.queue_std_bytes == pytest.approx(fc.stability(scenario).queue_std_bytes, rel=5e-4)


@pytest.mark.slow
def test_the_hybrid_is_as_noisy_as_predicted() -> None:
    """32 flows, an equilibrium 3.5 predicted deviations above an empty queue: within 25 %, stated before it was run.

    Two other noises are not: of CNPs alone with the recovery left to the mean, or of a Poisson process.
    """
    predicted = fc.stability(dcqcn(32)).queue_std_bytes
    assert predicted is not None
    scenario = dcqcn(32, delay=None, apart=True)
    runs = [
        fc.simulate(scenario, "400ms", engine="hybrid", seed=seed, window="100ms:400ms").summary["queue_bytes"]
        for seed in range(4)
    ]
    assert math.sqrt(np.mean([run["std"] ** 2 for run in runs])) == pytest.approx(predicted, rel=0.25)  # linear
    assert np.mean([run["mean"] for run in runs]) == pytest.approx(
        fc.equilibrium(dcqcn(32)).links[0]["queue_bytes"], rel=0.05
    )


@pytest.mark.slow
def test_noise_in_the_hybrid_over_settings() -> None:
    """128 flows: the hybrid's deviation follows g and the ramp, within 25 % each, stated before it was run."""
    for g, kmax in ((1 / 16, 100e3), (1 / 1024, 100e3), (1 / 256, 50e3), (1 / 256, 200e3)):
        red = fc.RED(2500.0 * 128, kmax * 128, 0.01)
        wait = fc.equilibrium(dataclasses.replace(dcqcn(128), links=_marked(dcqcn(128), red))).links[0]["queue_bytes"]
        delay = f"{4e-6 + wait / (128 * SHARE)}s"
        at = dcqcn(128, delay=delay, g=g)
        predicted = fc.stability(dataclasses.replace(at, links=_marked(at, red))).queue_std_bytes
        run = dcqcn(128, delay=None, apart=True, g=g)
        run = dataclasses.replace(run, links=_marked(run, red))
        found = [
            fc.simulate(run, "500ms", engine="hybrid", seed=seed, window="200ms:500ms").summary["queue_bytes"]["std"]
            for seed in range(3)
        ]
        assert math.sqrt(np.mean(np.square(found))) == pytest.approx(predicted, rel=0.25)  # linear theory


def _marked(scenario: fc.Scenario, red: fc.RED) -> tuple[fc.Link, ...]:
    return tuple(dataclasses.replace(link, marking=red) for link in scenario.links)


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        (fc.incast(8, scheme=fc.DCQCN(feedback_delay="65us")), "not stable"),
        (fc.incast(20), "not on the RED ramp"),
        pytest.param(fc.incast(2, scheme="dcqcn", preset="vendor"), "clamp_tgt_rate", marks=pytest.mark.slow),
        (fc.incast(2, scheme=fc.HPCC()), "no equilibrium"),
    ],
)
def test_none_says_why(scenario: fc.Scenario, why: str) -> None:
    found = fc.stability(scenario)
    assert found.queue_std_bytes is None
    assert found.noise is None
    assert why in found.queue_std_state
    assert found.as_dict()["queue_std_bytes"] is None


def test_the_command_line_reports_it() -> None:
    """In the table, with what it holds for; in JSON with its state."""
    line = ["stability", "dcqcn", "--flows", "2,20"]
    text = CliRunner().invoke(app, line)
    assert text.exit_code == 0
    assert "queue std" in text.output
    assert "flows 2: queue std in doubt: less than 12 degrees of phase margin and the mean queue is less" in text.output
    assert "flows 20: queue std is not given: the equilibrium is not on the RED ramp" in text.output
    two, twenty = json.loads(CliRunner().invoke(app, [*line, "--json"]).output)["points"]
    assert two["queue_std_bytes"] == pytest.approx(fc.stability(fc.incast(2)).queue_std_bytes)
    assert twenty["queue_std_bytes"] is None


def test_where_it_is_in_doubt() -> None:
    """8 flows of 20 Gb/s are 1.7 deviations above an empty queue, 128 are 7; 50 us leave 8 degrees, 8 us 18."""
    doubt = "in doubt: the mean queue is less than 4 standard deviations above empty"
    assert fc.stability(dcqcn(8)).queue_std_state == doubt
    assert fc.stability(dcqcn(128, delay="50us")).queue_std_state == "in doubt: less than 12 degrees of phase margin"
    assert fc.stability(dcqcn(128)).queue_std_state == "ok"
