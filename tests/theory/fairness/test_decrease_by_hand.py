"""Decreases without a compiled run: closed form beside integration, and the slopes of rates in a queue, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.errors import InputError
from fluidcc.theory.fairness import queue
from fluidcc.theory.fairness.closed import integrated, solved
from fluidcc.theory.fairness.rates import with_metrics
from fluidcc.theory.fairness.settings import grid_of, one, rates_of, settings_of, share
from fluidcc.units import COUNT, RATE, TIME, Rate

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


def test_what_a_run_in_a_queue_came_to() -> None:
    """The last ratio and Jain's index, the largest queue, and what was served of what the link could have."""
    names = ("rule", "time", "flow")
    rates = np.array([[[9.0, 1.0], [4.0, 2.0]], [[9.0, 1.0], [3.0, 3.0]]])
    sent = np.array([[[0.0, 0.0], [30.0, 20.0]], [[0.0, 0.0], [40.0, 5.0]]])
    waiting = np.array([[7.0, 2.0], [7.0, 11.0]])
    data = with_metrics(rates, np.array([0.0, 5.0]))
    data["sent"], data["queue"] = (names, sent), (names[:2], waiting)
    data.attrs = {"capacity": 20.0, "discretisation_error.rate_rel": 0.25, "discretisation_error.queue_rel": 0.5}
    found = queue.SharedDecrease(data).summary()
    assert found == {
        "ratio_per_rtt": 2.0,
        "jain_per_rtt": pytest.approx(36 / (2 * 20)),
        "largest_queue_per_rtt_bytes": 7.0,
        "utilisation_per_rtt": pytest.approx((50 + 7 - 2) / 100),
        "ratio_sampling": 1.0,
        "jain_sampling": pytest.approx(1.0),
        "largest_queue_sampling_bytes": 11.0,
        "utilisation_sampling": pytest.approx((45 + 7 - 11) / 100),
        "discretisation_error_rate_rel": 0.25,
        "discretisation_error_queue_rel": 0.5,
    }
    assert data.lead.values.tolist() == [0.0, 2.0]


def test_quantities_of_any_shape() -> None:
    """Text and lists of text are read, arrays are in SI, and what is no number passes; ragged lists are refused."""
    assert grid_of("times", "3us", TIME) == pytest.approx(3e-6)
    assert grid_of("times", ["1us", "2ms"], TIME) == pytest.approx([1e-6, 2e-3])
    assert grid_of("times", [["1us", 2.0]], TIME).tolist() == [[pytest.approx(1e-6), 2.0]]
    for given in (np.array([1, 2]), np.array([1.0, 2.0]), np.array([1, 2], np.uint8)):
        assert grid_of("fast", given, RATE).tolist() == [1.0, 2.0]
    assert np.isnan(grid_of("times", [float("nan"), np.float64("nan")], TIME)).all()
    for bad in ([["1us"], ["1us", "2us"]], "soon", ["soon"], None):
        with pytest.raises(InputError, match="times"):
            grid_of("times", bad, TIME)


def test_settings_at_their_bounds() -> None:
    """Positive and finite; a share is strictly between 0 and 1, and two rates are the fewest."""
    assert one("increase", 0.0, COUNT, zero=True) == 0.0
    for value, zero in ((0.0, False), (-1.0, True), (np.inf, False), (np.nan, False), (np.array([1.0]), False)):
        with pytest.raises(InputError, match="increase: "):
            one("increase", value, COUNT, zero=zero)
    assert share("beta", 0.5) == 0.5
    for value in (0.0, 1.0, -0.5, 1.5):
        with pytest.raises(InputError, match=r"beta: .* is no share"):
            share("beta", value)
    assert rates_of(["1Gbps", "2Gbps"]).tolist() == [125e6, 250e6]
    for rates in (["1Gbps"], "1Gbps", 3.0, []):
        with pytest.raises(InputError, match="rates"):
            rates_of(rates)  # type: ignore[arg-type]
    assert settings_of(4, "50B", "2s", 0.25).sample == 200.0
