"""Stability of DCQCN's fixed point: margins, critical delays, the published linearisation beside them, and edges."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.dde.characteristic import Abscissa, abscissa
from fluidcc.errors import NoClosedFormError
from fluidcc.plotting.stability import plot_stability
from fluidcc.scenario.model import resolve
from fluidcc.schemes.dcqcn.published import published
from fluidcc.schemes.hpcc.equilibrium import balances
from fluidcc.theory.control.linearize import linearize
from fluidcc.theory.control.stability import stability
from fluidcc.units import Rate


def dcqcn(flows: int, delay: str | None = "50us") -> fc.Scenario:
    return fc.incast(flows, rate="40Gbps", scheme=fc.DCQCN(feedback_delay=delay))


def test_least_margin_is_at_nine_flows() -> None:
    """1.92 degrees at 8, 1.845 at 9, to the digits of an independent computation."""
    margins = {n: stability(dcqcn(n)).phase_margin for n in (2, 5, 7, 8, 9, 10, 11, 14)}
    assert all(margin is not None for margin in margins.values())
    assert min(margins, key=lambda n: margins[n] or 0.0) == 9
    assert margins[8] == pytest.approx(1.92, abs=0.005)
    assert margins[9] == pytest.approx(1.845, abs=0.0005)


@pytest.mark.parametrize(("flows", "critical"), [(2, 85.57e-6), (8, 62.17e-6)])
def test_critical_feedback_delay(flows: int, critical: float) -> None:
    """85.57 us at 2 flows, 62.17 us at 8, to a hundredth; there and nowhere before the rightmost root crosses."""
    found = stability(dcqcn(flows)).critical_feedback_delay
    assert found == pytest.approx(critical, abs=0.01e-6)
    roots = [float(abscissa(linearize(dcqcn(flows, f"{share * found}s")).system).value) for share in (0.999, 1.001)]
    assert roots[0] < 0 < roots[1]


@pytest.mark.slow
def test_the_simulated_queue_swings_beyond_the_critical_delay_only() -> None:
    """Two flows, 5 % below and above 85.57 us: the late standard deviation of the queue, under 1 and over 1000 B."""
    deviations = [
        fc.simulate(dcqcn(2, delay), "1s", window="900ms:1s", estimate_error=False).summary["queue_bytes"]["std"]
        for delay in ("81us", "90us")
    ]
    assert deviations[0] < 1.0
    assert deviations[1] > 1000.0


def test_the_loop_closes_to_the_system_it_was_cut_from() -> None:
    """With u = -y the loop's roots are the aggregate mode's."""
    found = linearize(dcqcn(8))
    loop = found.loop()
    assert loop is not None
    closed = loop.closed()
    assert float(abscissa(closed).value) == pytest.approx(float(abscissa(found.system).value), rel=1e-9)


def test_margins_in_time_and_in_phase_agree() -> None:
    """The delay margin is the phase margin over its frequency; added at the cut it takes the root to the axis."""
    found = linearize(dcqcn(9))
    loop = found.loop()
    assert loop is not None
    margins = loop.margins()
    assert margins.delay.value * margins.phase.frequency == pytest.approx(margins.phase.value, rel=1e-9)
    at = abscissa(loop.closed(delay=margins.delay.value))
    assert float(at.value) == pytest.approx(0.0, abs=1e-6 * float(at.frequency))


def test_the_published_margin_stands_beside_the_exact_one() -> None:
    found = stability(dcqcn(4))
    assert found.phase_margin == pytest.approx(4.16, abs=0.005)
    assert found.paper_phase_margin == pytest.approx(published(flows=4).phase_margin())
    assert found.paper_phase_margin < 0


@pytest.mark.slow
def test_the_published_margin_is_of_one_constant_delay() -> None:
    assert stability(dcqcn(4, None)).paper_phase_margin is None


def test_off_the_ramp_says_so() -> None:
    found = stability(dcqcn(20))
    assert (found.exists, found.on_ramp, found.stable) == (False, False, True)


def test_no_equilibrium_is_a_state_not_an_error() -> None:
    step_marking = fc.incast(2, rate="40Gbps", scheme=fc.DCQCN(), marking=fc.RED("40KB", "40KB", 1.0))
    found = stability(step_marking)
    assert found.stable is None
    assert "step marking" in found.state
    assert found.rightmost_root is None


def test_hpccs_rates_have_no_queue_to_cut_at() -> None:
    found = stability(fc.incast(4, rate="100Gbps", scheme=fc.HPCC(form="rate")))
    assert found.stable
    assert found.phase_margin is None
    assert found.critical_feedback_delay is not None
    assert found.paper_phase_margin is None
    assert found.queue_std_bytes is None
    assert found.queue_std_state == "hpcc has no random feedback, or says nothing of it"


@pytest.mark.parametrize("increase", [0.06, 0.1, 0.3])
@pytest.mark.parametrize("u_rate", ["tx", "rx"])
def test_hpccs_rates_behind_a_queue(u_rate: str, increase: float) -> None:
    """Critical delays by hand, to 1e-9: in units of T and C, with v = N a/C and k = (1 - v)^2/eta,

    tx: s^2 + v s + k e^(-sD) = 0; rx: s^2 + v s + k (s + 1) e^(-sD) = 0, put s = i w.
    """
    T, C, v, k = 10e-6, Rate(12.5e9), increase, (1 - increase) ** 2 / 0.95
    scheme = fc.HPCC(form="rate", u_rate=u_rate, base_rtt=T, rate_ai=v * C / 8, feedback_delay=1e-6)
    found = stability(fc.incast(1, multiplicity=8, rate="100Gbps", scheme=scheme))
    if u_rate == "tx":
        w = math.sqrt((math.sqrt(v**4 + 4 * k * k) - v * v) / 2)
        delay = math.atan(v / w) / w
    else:
        b = k * k - v * v
        w = math.sqrt((math.sqrt(b * b + 4 * k * k) + b) / 2)
        delay = (math.atan(w) + math.atan(v / w)) / w
    assert found.critical_feedback_delay == pytest.approx(delay * T, rel=1e-9)
    assert found.crossing_frequency == pytest.approx(w / T, rel=1e-9)
    assert found.gain_margin is not None  # there is a queue to cut at


def test_a_u_that_hears_of_no_queue_is_not_solved_with_one() -> None:
    """The closed form settles behind a queue that U counts; without that term there is no equilibrium."""
    scenario = resolve(fc.incast(64, rate="100Gbps", scheme=fc.HPCC(form="rate", u_queue=False)))
    with pytest.raises(NoClosedFormError, match="u_queue"):
        balances(scenario)(scenario.flows[0])
    assert fc.equilibria(scenario) == ()


def test_hpccs_windows_are_a_state_not_an_error() -> None:
    found = stability(fc.incast(4, rate="100Gbps", scheme=fc.HPCC()))
    assert (found.exists, found.on_ramp, found.stable) == (None, None, None)
    assert "write base_rtt=" in found.state


@pytest.mark.parametrize("scheme", [fc.HPCCMultiQ(), fc.Swift(), fc.DCTCP()])
def test_what_jumps_is_not_said_to_have_no_rest(scheme: object) -> None:
    """Notice an answer where nothing was searched."""
    found = stability(fc.incast(4, rate="100Gbps", scheme=scheme))
    assert (found.exists, found.on_ramp, found.stable) == (None, None, None)
    assert ("no equilibrium side" if isinstance(scheme, fc.HPCCMultiQ) else "jumps") in found.state


def test_timely_has_no_rest() -> None:
    """At a gradient of 0 it increases; the patch makes an equilibrium of it."""
    plain, patched = (fc.TIMELY(thresholds="queueing", hai_gain=1.0, patched=on, beta=0.008) for on in (False, True))
    found = stability(fc.incast(4, rate="10Gbps", scheme=plain))
    assert (found.exists, found.stable) == (False, None)
    assert found.state.startswith("no fixed point")
    assert stability(fc.incast(4, rate="10Gbps", scheme=patched)).exists


@pytest.mark.parametrize(("rate", "last"), [("5Gbps", 9), ("10Gbps", 18), ("20Gbps", 38)])
def test_patched_timely_is_stable_for_few_flows(rate: str, last: int) -> None:
    """The last stable number of flows; the differences between flows decay at delta/(2 Seg) whatever it is."""
    scheme = fc.TIMELY(thresholds="queueing", hai_gain=1.0, patched=True, beta=0.008)
    for flows, stable in ((last, True), (last + 1, False)):
        found = stability(fc.incast(1, multiplicity=flows, rate=rate, scheme=scheme))
        assert found.stable is stable
        assert found.fairness_root is not None
        assert found.fairness_root.real == pytest.approx(-1.25e6 / (2 * 16e3), rel=1e-6)


def test_a_single_flow_fills_nothing() -> None:
    """It is never marked and stays at its line rate: nothing moves."""
    found = stability(dcqcn(1))
    assert found.stable is None
    assert "line rate" in found.state


def test_pictures(tmp_path: Path) -> None:
    found = linearize(dcqcn(8))
    loop = found.loop()
    assert loop is not None
    for name, picture in (("roots", found.plot()), ("loop", loop.plot())):
        picture.write(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_pictures_say_where_nothing_rests() -> None:
    """Grey, and in words where there is nothing to draw."""
    jumps = stability(fc.incast(4, rate="100Gbps", scheme=fc.DCTCP()))
    empty = plot_stability([jumps]).axes[0]
    assert "jumps" in empty.texts[0].get_text()
    assert not empty.lines
    mixed = plot_stability([dataclasses.replace(jumps, flows=1.0), stability(dcqcn(2))]).axes[0]
    (grey,) = mixed.patches
    assert grey.get_extents().transformed(mixed.transData.inverted()).intervalx == pytest.approx((0.5, 1.5))
    assert not mixed.texts


@pytest.mark.parametrize(("found", "stable"), [(-1.0, None), (1.0, False)])
def test_roots_that_may_be_missed_never_make_it_stable(
    monkeypatch: pytest.MonkeyPatch, found: float, stable: bool | None
) -> None:
    """An unresolved abscissa is a lower bound: right of the axis it decides, left of it it does not."""
    one = Abscissa(*map(np.asarray, (found, 0.0, 0.0, "unresolved")))
    monkeypatch.setattr("fluidcc.theory.control.stability.abscissa", lambda system: one)
    got = stability(dcqcn(8))
    assert got.stable is stable
    assert got.state == "unresolved"


def test_a_response_that_cannot_be_sampled_is_a_state_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a feedback delay of 10 s, where it turns a million times below the bound on the roots."""

    def rests(*_: object) -> None:
        raise ArithmeticError("crossings: a curve rests on zero")

    monkeypatch.setattr("fluidcc.dde.response.crossings", rests)
    got = stability(dcqcn(8))
    assert got.stable is True
    assert got.phase_margin is got.gain_margin is got.delay_margin is None
    assert got.state.startswith("unresolved: no margins")
