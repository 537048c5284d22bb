"""Decreases without a compiled run: closed form beside integration, and the slopes of rates in a queue, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.theory.fairness import queue
from fluidcc.theory.fairness.closed import integrated, solved
from fluidcc.units import Rate

TARGET, INCREASE, SAMPLING, STEPS = 1.2, 0.06, 0.7, 10


def test_rates_fall_as_the_equations_say() -> None:
    """After one RTT of 2 s with beta 1/2 and loads of 2 and 1 samples in it; signs, factors and which of the rules."""
    setting: Any = SimpleNamespace(beta=0.5, rtt=2.0, sample=10.0)
    initial, times = np.array([10.0, 5.0]), np.array([0.0, 1.0, 2.0])
    by_hand = [[[10.0, 5.0]], [[10.0, 5.0]]]
    for t in times[1:]:
        by_hand[0].append((initial * np.exp(-0.5 * t / 2)).tolist())
        by_hand[1].append([10 / (1 + 0.5 * 10 * t / 10), 5 / (1 + 0.5 * 5 * t / 10)])
    np.testing.assert_allclose(solved(initial, times, setting), by_hand, rtol=1e-14)
    np.testing.assert_allclose(integrated(initial, times, setting), by_hand, rtol=1e-8)


def slopes(monkeypatch: pytest.MonkeyPatch, per_rtt: tuple[float, float] = (0.3, 0.4)) -> Any:
    """Right-hand side that the solver is given, in NumPy, and what else it is given."""
    given: dict[str, Any] = {}

    def solve(slope: Any, **others: Any) -> Any:
        given.update(others, slope=slope)
        return SimpleNamespace(state=None)

    monkeypatch.setattr(queue, "jnp", np)
    monkeypatch.setattr(queue, "solve", solve)
    queue._run.function(
        np.array([0.8, 0.4]), np.float64(0.5), np.array(per_rtt), SAMPLING, TARGET, INCREASE,
        steps=STEPS, stride=4, samples=5, longest=7,
    )  # fmt: skip
    return SimpleNamespace(**given)


def state(rates: list[float], waits: float, tau: float) -> np.ndarray:
    """State of both rules, the second of rates by a tenth larger."""
    rows = [*rates, 0.0, 0.0, 0.0, 0.0, waits, tau]
    return np.array([[each, each * (1.1 if k < 2 else 1.0)] for k, each in enumerate(rows)])


@pytest.mark.parametrize("t", [0.5, 1.5, 9.0])
@pytest.mark.parametrize("tau", [1.0, 1.1, 1.5])
@pytest.mark.parametrize("queues", [(0.0, 0.0), (0.5, 0.5), (0.01, 0.0)])
@pytest.mark.parametrize("then", [[0.8, 0.4], [0.3, 0.2], [0.6, 0.4]])
def test_slopes_of_rates_in_a_queue(
    monkeypatch: pytest.MonkeyPatch, t: float, tau: float, queues: tuple[float, float], then: list[float]
) -> None:
    """The equations at the top of the module, rule by rule in plain Python, with what was sent before the start."""
    now, waited = queues
    y, lagged = state([0.5, 0.3], now, tau), state(then, waited, 1.0)
    found = slopes(monkeypatch).slope(t, y, (lagged,))
    dt = 1 / STEPS
    for rule in (0, 1):
        S, old = y[:2, rule].tolist(), lagged[:2, rule].tolist()
        tau_slope = (1 - tau) / dt
        if waited > 0 or sum(old) > 1:
            tau_slope = max(1 - 1 / sum(old), tau_slope)
        share = 1 - tau_slope
        if t < tau:
            tau_slope, share = 0.0, min(1 / sum(old), 1.0)
        severity = max(0.0, 1 - TARGET / tau)
        acks = [each * share for each in old]
        falls = [S[i] * (0.3 + 0.4 / tau) if rule == 0 else SAMPLING * S[i] * acks[i] for i in (0, 1)]
        rates = [INCREASE / tau - severity * fall for fall in falls]
        expected = [*rates, *S, *acks, max(sum(S) - 1, -now / dt), tau_slope]
        assert found[:, rule] == pytest.approx(expected, rel=1e-12)


def test_a_run_starts_with_its_queue_and_ends_on_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    given = slopes(monkeypatch)
    expected = np.tile([[0.8], [0.4], [0], [0], [0], [0], [0.5], [1.5]], 2)
    np.testing.assert_allclose(given.past(-3.0), expected, rtol=1e-15)
    assert (given.until, given.dt, given.stride, given.longest_lag) == (2.0, 0.1, 4, 7.0)
    assert given.lags(state([0.5, 0.3], 0.2, 1.7))[0].tolist() == [1.7, 1.7]


@pytest.mark.parametrize("fixed", [None, 4.0])
def test_a_run_is_given_in_units_of_the_link(monkeypatch: pytest.MonkeyPatch, fixed: float | None) -> None:
    """C = 1000 bytes/s, a base RTT of 2 s; the second run has half the step, and results are scaled back."""
    runs: list[tuple[Any, ...]] = []

    def run(*numbers: Any, **sizes: Any) -> np.ndarray:
        runs.append((*numbers, sizes))
        found = np.ones((sizes["samples"] + 1, 8, 2)) * np.arange(1.0, 9.0)[:, None]
        found[:, 0] += 0.25 * (len(runs) - 1)
        found[:, -2] += 0.5 * (len(runs) - 1)
        return found

    monkeypatch.setattr(queue, "_run", run)
    made = fc.theory.shared_decrease(
        [Rate(800.0), Rate(400.0)], Rate(1000.0), base_rtt="2s", until="9.9s", acks=4, mtu="50B", beta=0.25,
        rtt=fixed and f"{fixed}s", target="3s", increase=Rate(20.0), queue="7KB", steps=8,
    ).dataset  # fmt: skip
    for parts, (initial, wait, per_rtt, sampling, target, increase, sizes) in enumerate(runs, 1):
        assert initial.tolist() == [0.8, 0.4]
        assert (wait, target, increase) == (3.5, 1.5, 0.02)
        assert per_rtt.tolist() == ([0.0, 0.25] if fixed is None else [0.25 * 2 / 4, 0.0])
        assert sampling == pytest.approx(0.25 * 1000 * 2 / 200)
        assert sizes == {"steps": 8 * parts, "stride": parts, "samples": 40, "longest": 5 + 2 + 4}
    assert len(runs) == 2
    assert made.time.values == pytest.approx(np.arange(41) / 4)
    assert made.rate[0, 0].values.tolist() == [1000.0, 2000.0]
    assert made.sent[1, 0].values.tolist() == [6000.0, 8000.0]
    assert made.acked[1, 0].values.tolist() == [10000.0, 12000.0]
    assert (float(made.queue[0, 0]), float(made.rtt[0, 0])) == (14000.0, 16.0)
    assert made.attrs["discretisation_error.rate_rel"] == pytest.approx(0.25 / 2)
    assert made.attrs["discretisation_error.queue_rel"] == pytest.approx(0.5 / 7.5)
    assert (made.attrs["target_s"], made.attrs["step_s"], made.attrs["increase"]) == (3.0, 0.25, 20.0)
