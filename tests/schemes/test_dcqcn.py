"""DCQCN against the paper's figures as recomputed independently, its fixed points, and a second implementation.

The figures' values were taken from samples every 10 us: peaks and minima are of those samples, and the
mean gaps average the samples after the first 10 ms, which the paper leaves out.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax
import numpy as np
import pytest
from scipy.optimize import brentq

import fluidcc as fc
from fluidcc.contract.signals import Signals
from fluidcc.results.metrics import oscillation, rate_gap, time_mean
from fluidcc.results.trace import Trace
from fluidcc.scenario.model import RED, Scenario
from fluidcc.schemes.dcqcn import DCQCN, PRESETS
from fluidcc.schemes.dcqcn import equilibrium as balance
from fluidcc.schemes.dcqcn import fluid as model
from fluidcc.units import Rate
from tests.oracles import dcqcn_reference as reference
from tests.schemes.plain_laws import plain
from tests.shapes import give_depth

GBPS, KB, MS = Rate(1e9 / 8), 1e3, 1e-3
PAPER, RED_ = PRESETS["paper"][:2]
STRAWMAN, STEP_MARKING = PRESETS["strawman"][:2]

# The marking jumps from Pmax to 1 at Kmax, and the queue stops at 0; when is known to within a step. For the rest of
# a step a flow of alpha near 1 would have gained or lost up to h alpha/(2 tau) = 1 % of its rate at h = 1 us, of which
# Heun's second stage takes off most: what crosses neither threshold is far better.
STEP = 1e-3
SMOOTH = 1e-5  # Heun with h = 1 us on time constants of 50 us and more, without crossings of Kmax
SAME_GRID = 1e-9  # two implementations of one method on one grid: rounding, grown over thousands of steps
RESIDUAL = 1e-11  # solved to 1e-14 in log p and log R, then magnified by the stiffness of (8) and (9)

pytestmark = pytest.mark.usefixtures("full_columns")


@pytest.fixture(autouse=True)
def one_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep histories short, and equally long: runs here are long, and long ones slow each step."""
    give_depth(monkeypatch, 128)


def digits(text: str) -> Any:
    """A value known to the digits printed."""
    mantissa = text.split("e")[0]
    decimals = len(mantissa.partition(".")[2])
    return pytest.approx(float(text), rel=0, abs=0.5001 * float(f"1e{text.partition('e')[2] or 0}") * 10.0**-decimals)


def run(scenario: Scenario, until: str) -> Trace:
    return fc.simulate(scenario, until=until, dt="1us", sample_interval="10us", estimate_error=False)


def between(data: Any, start: float, end: float) -> Any:
    return data.sel(time=slice(start - 1e-9, end + 1e-9))


# -- fixed points ---------------------------------------------------------------------------------------------


def fixed_point(flows: float, scheme: DCQCN = PAPER, marking: RED = RED_) -> dict[str, Any]:
    return fc.equilibrium(fc.incast(1, multiplicity=flows, scheme=scheme, marking=marking)).as_dict()


def test_fixed_point_of_two() -> None:
    found = fc.equilibrium(fc.incast(2)).as_dict()
    assert found["exists"]
    assert found["on_ramp"]
    assert found["marking_probability"] == digits("7.7698863e-4")
    assert found["queue_bytes"] / KB == digits("20.151278")
    assert found["alpha"] == digits(".10136422")
    assert found["target_rate_bytes_per_s"] / GBPS == digits("20.21798986")
    assert found["rate_bytes_per_s"] / GBPS == pytest.approx(20, rel=1e-12)


def test_fixed_point_of_eight() -> None:
    found = fixed_point(8)
    assert found["exists"]
    assert found["marking_probability"] == digits("4.5521115e-3")
    assert found["queue_bytes"] / KB == digits("93.766173")
    assert found["rate_bytes_per_s"] / GBPS == pytest.approx(5, rel=1e-12)


def test_a_class_of_eight_is_eight_flows() -> None:
    assert fixed_point(8)["queue_bytes"] == pytest.approx(
        fc.equilibrium(fc.incast(8)).as_dict()["queue_bytes"], rel=1e-12
    )


def test_the_ramp_ends_between_14_and_15_flows() -> None:
    crossing = brentq(lambda n: fixed_point(n)["marking_probability"] - 0.01, 14, 16, xtol=1e-9)
    assert crossing == digits("14.963")
    assert fixed_point(14)["exists"]


@pytest.mark.parametrize("flows", [15, 16, 20, 32])
def test_beyond_there_is_no_fixed_point_but_its_line_goes_on(flows: int) -> None:
    found = fixed_point(flows)
    assert not found["exists"]
    assert not found["on_ramp"]
    assert found["marking_probability"] > 0.01
    line = 5 * KB + found["marking_probability"] / 0.01 * 195 * KB
    assert found["queue_bytes"] == pytest.approx(line, rel=1e-12)
    assert found["queue_bytes"] > 200 * KB


def test_a_cut_off_has_no_fixed_point() -> None:
    found = fixed_point(2, marking=STEP_MARKING)
    assert not found["exists"]
    assert not found["on_ramp"]


def test_queue_over_kmin() -> None:
    """An order of magnitude above Kmin for about N = 4 to 10; four times at N = 2."""
    assert fixed_point(2)["queue_bytes"] / (5 * KB) == pytest.approx(4, abs=0.05)
    assert 5 < fixed_point(4)["queue_bytes"] / (5 * KB) < fixed_point(10)["queue_bytes"] / (5 * KB) < 25


@pytest.mark.parametrize("changes", [{"g": 1 / 16}, {"g": 1.0}, {"feedback_delay": "85us"}, {"feedback_delay": None}])
def test_g_and_the_delay_do_not_enter(changes: dict[str, Any]) -> None:
    assert fixed_point(5, dataclasses.replace(PAPER, **changes)) == fixed_point(5)


def column(value: Any) -> np.ndarray:
    return np.full((1, 1), value, float)


VARIANTS = {
    "paper": {},
    "hyper increase": {"hyper_increase": True, "byte_counter": "20KB", "timer": "5us", "fast_recovery_steps": 1},
    "less in hyper increase": {
        "hyper_increase": True,
        "byte_counter": "20KB",
        "timer": "5us",
        "fast_recovery_steps": 1,
        "rate_hai": "10Mbps",
    },
    "fast alpha": {"alpha_timer": 1e-6},
    "limited cut": {"decrease_gain": 1.0, "max_decrease": 0.03},
    "small counter": {"byte_counter": "300KB", "fast_recovery_steps": 1},
}


@pytest.mark.parametrize("flows", [1.5, 2, 8, 14, 40])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_fluid_model_rests_at_the_fixed_point(flows: float, variant: str) -> None:
    """The two are written apart: one in JAX for the run, here by NumPy, one in plain floats for the root.

    The public equilibrium ends on the fluid's own root, so the root is taken from the scheme's solution; both are one.
    """
    scenario = fc.incast(1, multiplicity=flows, scheme=dataclasses.replace(PAPER, **VARIANTS[variant]))
    scheme, line = scenario.flows[0].scheme, 40 * GBPS
    rate, packet = line / flows, 1000.0
    p = float(balance.marking_at(scheme, rate, line, packet))
    _, target, alpha = balance.fixed_point(scheme, rate, p, line, packet)
    if flows == 2:
        assert fc.equilibrium(scenario).as_dict()["marking_probability"] == pytest.approx(p, rel=1e-9)
    law, parameters = plain(model), jax.tree.map(column, scheme)
    observed = law.feedback(parameters, Signals(column(p), column(rate), column(packet)))
    move = law.derivative(parameters, model.State(column(rate), column(target), column(alpha)), observed)
    # In units of the single terms that cancel.
    terms = float(observed.cut[0, 0]) * np.array([rate * alpha / 2, target - rate]), scheme.g / scheme.alpha_timer
    assert abs(float(move.rate[0, 0])) < RESIDUAL * terms[0][0]
    assert abs(float(move.target_rate[0, 0])) < RESIDUAL * terms[0][1]
    assert abs(float(move.alpha[0, 0])) < RESIDUAL * terms[1] * alpha


@pytest.mark.parametrize("flows", [2, 8, 14])
def test_hyper_increase_moves_the_fixed_point(flows: int) -> None:
    """Or the case above would say nothing: with counters this small p is a tenth larger with it, at least."""
    with_it = dataclasses.replace(PAPER, **VARIANTS["hyper increase"])
    without = dataclasses.replace(with_it, hyper_increase=False)
    assert fixed_point(flows, with_it)["marking_probability"] > 1.1 * fixed_point(flows, without)["marking_probability"]


@pytest.mark.parametrize("flows", [2, 8, 14])
def test_the_printed_equations_rest_at_the_fixed_point(flows: int) -> None:
    found, s = fixed_point(flows), reference.Settings()
    rate, target = found["rate_bytes_per_s"] / KB, found["target_rate_bytes_per_s"] / KB
    p, alpha = found["marking_probability"], found["alpha"]
    assert reference.marking(s, found["queue_bytes"] / KB) == pytest.approx(p, rel=1e-12)
    d_rate, d_target, d_alpha = reference.derivatives(s, p, rate, rate, target, alpha)
    assert abs(d_rate) < 1e-9 * rate / s.tau
    assert abs(d_target) < 1e-9 * rate / s.tau
    assert abs(d_alpha) < 1e-9 * s.g / s.tau_alpha
    # In closed form, with a to e of the CoNEXT 2016 analysis.
    a = 1 - (1 - p) ** (s.tau * rate)
    b, d = reference.quotient(p, s.byte_counter), reference.quotient(p, s.timer * rate)
    c, e = b * (1 - p) ** (s.steps * s.byte_counter), d * (1 - p) ** (s.steps * s.timer * rate)
    assert alpha == pytest.approx(1 - (1 - p) ** (s.tau_alpha * rate), rel=1e-9)
    assert target - rate == pytest.approx(s.tau * s.rate_ai * rate * (c + e) / a, rel=1e-9)
    assert alpha * a**2 == pytest.approx(s.tau**2 * s.rate_ai * rate * (b + d) * (c + e), rel=1e-9)


# -- Figure 10 ------------------------------------------------------------------------------------------------


@functools.cache
def run_of_figure_10() -> Trace:
    return run(fc.incast(2, start=["0", "10ms"]), "200ms")


@pytest.fixture
def figure_10() -> Trace:
    """Flow 1 at t = 0, flow 2 at 10 ms, both at line rate, alpha 1; the figure's 100 ms, and on to Figure 11's 200."""
    return run_of_figure_10()


def rates_at(trace: Trace, time: float) -> np.ndarray:
    return trace["pacing_rate"].sel(time=time, method="nearest").values / GBPS


def test_figure_10_peak_and_minimum(figure_10: Trace) -> None:
    """Of samples every 10 us. Between them the queue reaches 537.74 KB at 10.164 ms, and R2 1.709 at 10.384."""
    queue = figure_10["queue"].isel(link=0)
    assert float(queue.max()) / KB == pytest.approx(537.5, rel=STEP)
    assert float(queue.time[int(queue.values.argmax())]) / MS == digits("10.16")
    second = between(figure_10["pacing_rate"].isel(flow=1), 10 * MS, 100 * MS)
    assert float(second.min()) / GBPS == pytest.approx(1.761, rel=STEP)
    assert float(second.time[int(second.values.argmin())]) / MS == digits("10.38")


@pytest.mark.parametrize(
    ("time", "first", "second", "queue"),
    [(0.02, 17.3445, 10.1395, None), (0.05, 21.5977, 18.4028, 19.376), (0.1, 20.0367, 19.9633, 20.1448)],
)
def test_figure_10_on_the_way(figure_10: Trace, time: float, first: float, second: float, queue: float | None) -> None:
    assert rates_at(figure_10, time) == pytest.approx([first, second], rel=STEP)
    if queue is not None:
        assert float(figure_10["queue"].sel(time=time, method="nearest")[0]) / KB == pytest.approx(queue, rel=STEP)


def test_figure_10_gap(figure_10: Trace) -> None:
    gap = rate_gap(figure_10["rate"]) / GBPS
    last = np.flatnonzero(gap.values >= 1)[-1]
    # The gap falls by 1/14 of itself per ms there: STEP of it is 14 us.
    assert float(gap.time[last + 1]) / MS == pytest.approx(70.15, abs=0.014)


@pytest.mark.slow
def test_the_run_ends_at_the_fixed_point() -> None:
    trace, found = run(fc.incast(2), "200ms"), fc.equilibrium(fc.incast(2)).as_dict()
    last = trace.dataset.isel(time=-1)
    assert float(last["queue"][0]) == pytest.approx(found["queue_bytes"], rel=SMOOTH)
    assert last["pacing_rate"].values == pytest.approx(found["rate_bytes_per_s"], rel=SMOOTH)
    assert last["target_rate"].values == pytest.approx(found["target_rate_bytes_per_s"], rel=SMOOTH)
    assert last["alpha"].values == pytest.approx(found["alpha"], rel=SMOOTH)


# -- Figure 11 ------------------------------------------------------------------------------------------------


@functools.cache
def figure_11(scheme: DCQCN, marking: RED) -> tuple[float, float, float, float]:
    """Two flows from 40 and 0 Gb/s, 200 ms.

    Returns
    -------
    first, second : float
        Mean rates of the last 20 ms [Gb/s].
    late, mean : float
        Mean gap [Gb/s] of the last 20 ms, and of all samples after 10 ms.
    """
    trace = run(fc.incast(2, scheme=scheme, marking=marking, initial_rate=["40Gbps", 0.0]), "200ms")
    first, second = time_mean(between(trace["pacing_rate"], 0.18, 0.2)).values / GBPS
    gap = trace["pacing_rate"].max("flow") - trace["pacing_rate"].min("flow")
    late = float(time_mean(between(gap, 0.18, 0.2))) / GBPS
    return first, second, late, float(gap[gap.time > 0.01 + 1e-9].mean()) / GBPS


def changed(scheme: DCQCN, **changes: Any) -> DCQCN:
    return dataclasses.replace(scheme, **changes)


def test_strawman_does_not_converge() -> None:
    first, second, late, _ = figure_11(STRAWMAN, STEP_MARKING)
    assert first == pytest.approx(37.99, rel=STEP)
    assert second == pytest.approx(0.83, abs=0.005)
    assert late > 37


def test_faster_timer_alone_cures_it() -> None:
    assert figure_11(changed(STRAWMAN, timer="55us"), STEP_MARKING)[2] == digits("0.080")


def test_slower_byte_counter_alone_helps_little() -> None:
    gaps = [figure_11(changed(STRAWMAN, byte_counter=b), STEP_MARKING)[2] for b in ("150KB", "1MB", "10MB")]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] > 0.8 * gaps[0]


def test_recommended_settings() -> None:
    _, _, late, mean = figure_11(PAPER, RED_)
    assert late == pytest.approx(1e-4, abs=0.5e-4)  # recomputed to one digit: half a unit of it
    assert mean == digits("2.1446")


def test_slower_alpha_changes_little() -> None:
    assert figure_11(changed(PAPER, alpha_timer="110us"), RED_)[3] == digits("2.080")


@pytest.mark.parametrize("scheme", [PAPER, STRAWMAN], ids=["recommended", "strawman"])
def test_pmax_is_not_monotone(scheme: DCQCN) -> None:
    """Mean gap after 10 ms over Pmax, with Kmin 5 KB and Kmax 200 KB: least between 1 % and 100 %."""
    gap = {pmax: figure_11(scheme, RED("5KB", "200KB", pmax))[3] for pmax in (0.01, 0.05, 0.1, 1.0)}
    assert gap[0.05] < gap[0.01]
    assert gap[0.1] < gap[0.01]
    assert gap[0.1] < gap[1.0]


# -- oscillation, and where it comes from ---------------------------------------------------------------------


def test_fifteen_flows_cycle() -> None:
    """From line rate, identical flows, 200 ms; the second half is on the cycle."""
    queue = between(run(fc.incast(1, multiplicity=15), "200ms")["queue"].isel(link=0), 0.1, 0.2)
    assert float((queue == 0).mean()) == digits(".39")
    assert oscillation(queue).amplitude > 100 * KB


def amplitude(delay: str, *windows: tuple[float, float]) -> list[float]:
    """Range of the queue in windows, two flows from their fair rate, alpha 1."""
    scenario = fc.incast(1, multiplicity=2, feedback_delay=delay, initial_rate="20Gbps")
    trace = fc.simulate(scenario, until="300ms", dt="1us", estimate_error=False)
    queue = trace["queue"].isel(link=0)
    return [float(np.ptp(between(queue, *window).values)) for window in windows]


def test_stability_boundary_of_two_flows() -> None:
    """The critical delay is 85.57 us: growth rates on both sides of it, interpolated to zero."""
    early, late = (0.1, 0.12), (0.28, 0.3)
    growth = {}
    for delay in (85.4, 85.7):  # close: oscillations stay small, so that growth is the linearisation's
        a, b = amplitude(f"{delay}us", early, late)
        growth[delay] = math.log(b / a)
    assert growth[85.4] < 0 < growth[85.7]
    share = growth[85.4] / (growth[85.4] - growth[85.7])
    # The windows' ranges are sampled every 150 us, 1/10 of a period: 5 % of ranges, spread over 0.18 s.
    assert 85.4 + 0.3 * share == pytest.approx(85.57, abs=0.02)


def test_either_side_of_the_boundary() -> None:
    windows = (0.1, 0.15), (0.25, 0.3)
    below, above = amplitude("85us", *windows), amplitude("86us", *windows)
    assert below[1] < 0.8 * below[0]
    assert above[1] > 1.5 * above[0]


@pytest.mark.slow
def test_beyond_the_boundary_a_limit_cycle() -> None:
    scenario = fc.incast(1, multiplicity=2, feedback_delay="86us", initial_rate="20Gbps")
    queue = fc.simulate(scenario, until="1.5s", dt="1us", estimate_error=False)["queue"].isel(link=0)
    oscillations = [float(np.ptp(between(queue, a, a + 0.25).values)) for a in (1.0, 1.25)]
    assert oscillations[1] == pytest.approx(oscillations[0], rel=0.01)  # it has stopped growing
    assert 10 * KB < oscillations[1] < 20 * KB


def test_bistability_of_ten_flows() -> None:
    """One equilibrium, two long-run behaviours at the paper's own settings; 200 ms, the second half."""
    found = fixed_point(10)
    fair: dict[str, Any] = {"multiplicity": 10, "initial_rate": "4Gbps"}
    cycling = fc.incast(1, scheme=DCQCN(initial_alpha=found["alpha"]), **fair)
    queue = between(run(cycling, "200ms")["queue"].isel(link=0), 0.1, 0.2)
    cycle = oscillation(queue)
    assert float(queue.min()) == 0
    assert float(queue.max()) / KB == pytest.approx(218, abs=0.5)
    assert cycle.period / MS == digits("1.90")
    for settling in (fc.incast(1, **fair), fc.incast(1, multiplicity=10)):  # alpha 1; line rate, alpha 1
        queue = between(run(settling, "200ms")["queue"].isel(link=0), 0.15, 0.2)
        assert float(queue.min()) / KB == pytest.approx(122.6, abs=0.05)
        assert float(queue.max()) / KB == pytest.approx(122.6, abs=0.05)
    assert found["queue_bytes"] / KB == digits("122.6")


# -- a second implementation ----------------------------------------------------------------------------------

S = reference.Settings()
CUT = dataclasses.replace(S, kmin=40.0, kmax=40.0, pmax=1.0, g=1 / 16, byte_counter=150.0, timer=1.5e-3)
CASES: dict[str, tuple[reference.Settings, DCQCN, RED, list[float], list[float], float]] = {
    "late starter": (S, PAPER, RED_, [0, 3 * MS], [1, 1], 1.0),
    "three on the ramp": (S, PAPER, RED_, [0, 0, 0], [0.3, 0.2, 0.4], 0.1),
    "step marking": (CUT, STRAWMAN, STEP_MARKING, [0, 0], [1, 0.01], 1.0),
    "from nothing": (S, PAPER, RED_, [0, 0], [1, 0], 1.0),
    "no fast recovery": (
        dataclasses.replace(S, steps=0, rate_ai=50.0, tau=4e-6, tau_alpha=20e-6),
        changed(PAPER, fast_recovery_steps=0, rate_ai="400Kbps", cnp_interval="4us", alpha_timer="20us"),
        RED_,
        [0, MS],
        [1, 0.5],
        0.5,
    ),
}


SLOW = ("step marking", "from nothing")  # the runs of Figure 11 have both


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in CASES])
def test_agrees_with_the_equations_as_printed(name: str) -> None:
    """Every sample of 6 ms at 1 us, on one grid by one method: nothing but rounding may differ."""
    settings, scheme, marking, starts, shares, alpha = CASES[name]
    queue, rates = reference.run(settings, starts, [x * S.capacity for x in shares], 6 * MS, 1e-6, alpha)
    scenario = fc.incast(
        len(starts),
        scheme=changed(scheme, initial_alpha=alpha),
        marking=marking,
        start=starts,
        initial_rate=[x * 40 * GBPS for x in shares],
    )
    trace = fc.simulate(scenario, until="6ms", dt="1us", sample_interval="1us", estimate_error=False)
    steps = np.round(trace.dataset.time.values / 1e-6).astype(int)
    assert np.all(np.diff(steps) == 1)
    for flow, expected in enumerate(rates):
        found = trace["pacing_rate"].values[:, flow] / KB
        assert found == pytest.approx(np.array(expected)[steps], rel=0, abs=SAME_GRID * S.capacity)
    assert trace["queue"].values[:, 0] / KB == pytest.approx(np.array(queue)[steps], rel=0, abs=SAME_GRID * max(queue))


@pytest.mark.slow
def test_the_step_converges_to_the_printed_equations() -> None:
    """The same with an eighth of the step: what the default leaves is within the stated tolerance."""
    queue, rates = reference.run(S, [0, 3 * MS], [S.capacity] * 2, 6 * MS, 0.125e-6)
    trace = fc.simulate(fc.incast(2, start=["0", "3ms"]), until="6ms", sample_interval="10us", estimate_error=False)
    assert trace.summary["queue_bytes"]["max_whole_run"] / KB == pytest.approx(max(queue), rel=STEP)
    last = [series[round(float(trace.dataset.time[-1]) / 0.125e-6)] for series in rates]
    assert trace["pacing_rate"].values[-1] / KB == pytest.approx(last, rel=STEP)


def test_a_flow_whose_least_rate_is_above_its_line_rests_at_the_line_rate() -> None:
    """Not beyond it, as where min_rate alone bounds it."""
    scheme = dataclasses.replace(PAPER, min_rate=Rate(2e9))
    assert balance.least_rate(scheme, 1e9) == 1e9
    assert balance.least_rate(scheme, 3e9) == 2e9
