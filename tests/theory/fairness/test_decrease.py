"""Decrease per RTT and by sampling: closed form, integration and roots agree for any setting.

Tolerances, stated before measuring: 1e-8 relative between closed form and integration, whose own is 1e-11 a step over
some hundreds of steps; 1e-9 between a root and another solver's, or the value there against the scale of its terms;
1e-12 between a batch and its points, which are the same operations.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.theory.fairness.lead import relative_difference, roots
from fluidcc.theory.fairness.metrics import METRICS, ratio
from fluidcc.units import Rate

INTEGRATED, ROOT, SAME = 1e-8, 1e-9, 1e-12


def decades(low, high):
    return st.floats(low, high).map(lambda power: 10.0**power)


@st.composite
def settings_(draw, low=-2.0, high=4.0):
    """Keywords of a setting whose faster flow fills 10^low to 10^high samples in an RTT, and two rates."""
    rtt, acks, mtu = draw(decades(-7, 0)), draw(decades(0, 3)), draw(decades(1, 4))
    fast = Rate(draw(decades(low, high)) * acks * mtu / rtt)
    slow = fast * draw(st.floats(1e-3, 0.999))
    return {"rtt": rtt, "acks": acks, "mtu": mtu, "beta": draw(st.floats(0.01, 0.99))}, fast, slow


def loads(setting, *rates):
    return [rate * setting["rtt"] / (setting["acks"] * setting["mtu"]) for rate in rates]


# The rates


@given(settings_())
@settings(max_examples=40)
def test_closed_form_is_the_integration(problem):
    setting, fast, slow = problem
    times = np.linspace(0, 20 * setting["rtt"] / setting["beta"], 50)
    exact, found = (
        fc.theory.decrease_rates([fast, slow, fast / 3], times=times, method=method, **setting)
        for method in ("closed form", "integration")
    )
    np.testing.assert_allclose(found.rate, exact.rate, rtol=INTEGRATED)


@given(settings_())
def test_ratio_is_kept_per_rtt_and_goes_to_one_with_sampling(problem):
    setting, fast, slow = problem
    run = fc.theory.decrease_rates([fast, slow], times=np.linspace(0, 30 * setting["rtt"], 40), **setting)
    np.testing.assert_allclose(run.ratio[0], fast / slow, rtol=SAME)
    assert (np.diff(run.ratio[1]) < 0).all()
    # 1 + (C1 - C0)/(C0 + C1 C0 beta t/(s MTU)), which falls below any number above 1.
    grown = slow + fast * slow * setting["beta"] * run.time / (setting["acks"] * setting["mtu"])
    np.testing.assert_allclose(run.ratio[1] - 1, (fast - slow) / grown, atol=SAME * fast / slow, rtol=1e-9)
    assert (np.diff(run.jain[1]) > -SAME).all()


@given(st.lists(st.floats(1, 1e11), min_size=2, max_size=6))
def test_metrics(rates):
    values = np.array(rates)
    difference, jain = (METRICS[name][0] for name in ("difference", "jain"))
    assert jain(values) == pytest.approx(values.sum() ** 2 / (len(values) * (values**2).sum()), rel=SAME)
    assert difference(values) == max(rates) - min(rates)
    assert ratio(values) == max(rates) / min(rates)
    assert jain(1e-250 * values) == pytest.approx(jain(values), rel=SAME)


# The sign change and the peak


@given(settings_(low=-1.0))
@settings(max_examples=40)
def test_one_sign_change_where_it_is_said(problem):
    """The difference as the integrator has it, on times that know nothing of the root but its size."""
    setting, fast, slow = problem
    a, b = loads(setting, fast, slow)
    assume(abs(a + b - 1) > 1e-3)  # nearer, the lead is smaller than the integrator's error
    lead = fc.theory.sampling_lead(fast, slow, **setting)
    assert bool(lead.ahead_at_first) == (a + b > 1)
    per_x = setting["rtt"] / setting["beta"]
    end = lead.sign_change.item() if a + b > 1 else per_x
    times = np.concatenate([[0.0], np.geomspace(end / 1e3, min(5 * end, 600 * per_x), 200)])
    times = times[np.abs(times / end - 1) > 1e-3]
    found = fc.theory.decrease_rates([fast, slow], times=times, method="integration", **setting).lead.values[1:]
    size = fc.theory.decrease_rates([fast, slow], times=times, **setting).difference.values.max(axis=0)[1:]
    clear = np.abs(found) > 1e-6 * size
    expected = np.where(times[1:] < end, 1, -1) if a + b > 1 else np.full(len(found), -1)
    np.testing.assert_array_equal(np.sign(found[clear]), expected[clear])
    assert clear.any()
    if a + b <= 1:
        assert np.isnan([lead.sign_change, lead.peak_time, lead.peak]).all()
        assert lead.reason == 1
        return
    assert 0 < lead.peak_time < end
    assert found.max() <= lead.peak * (1 + INTEGRATED) + 1e-9 * size.max()


@given(decades(-8, 290), decades(-16, 0), st.booleans())
def test_roots_of_any_scale(load, share, near):
    """In 60 digits: (2) is positive just below the root, negative just above; its slope likewise at the peak."""
    a, b = (1 + load, load * share) if not near else (1 + min(load, 1.0), min(load, 1.0) * share)
    assume(a > b)
    end, top = (float(x) for x in roots(np.array(a), np.array(b)))
    assert 0 < top < end < np.inf
    with mpmath.workdps(400):
        # What a + b - 1 loses in floats is not the root's to make good.
        width = mpmath.mpf(max(ROOT, 1e-14 / (a + b - 1)))
        A, B = mpmath.mpf(a), mpmath.mpf(b)
        value = lambda x: mpmath.exp(-x) - 1 / ((1 + A * x) * (1 + B * x))  # noqa: E731
        slope = lambda x: -mpmath.exp(-x) + (A + B + 2 * A * B * x) / ((1 + A * x) * (1 + B * x)) ** 2  # noqa: E731
        for function, root in ((value, mpmath.mpf(end)), (slope, mpmath.mpf(top))):
            assert function(root * (1 - width)) > 0 > function(root * (1 + width))


def test_figure_4():
    """To the digits in which an independent pass had them."""
    lead = fc.theory.sampling_lead("100Gbps", "50Gbps", rtt="30us", acks=30, mtu="1KB", beta=0.5)
    assert lead.peak.item() / 1e9 == pytest.approx(4.323486, abs=5e-7)
    assert lead.peak_time.item() * 1e6 == pytest.approx(11.893, abs=5e-4)
    assert lead.sign_change.item() * 1e6 == pytest.approx(522.957, abs=5e-4)
    summary = fc.theory.decrease_rates(["100Gbps", "50Gbps"]).summary()
    assert summary["sign_change_s"] == lead.sign_change
    assert summary["ratio_per_rtt"] == pytest.approx(2, rel=SAME)


@given(st.lists(settings_(), min_size=2, max_size=5))
@settings(max_examples=15)
def test_batch_is_its_points(problems):
    names = ("rtt", "acks", "mtu", "beta")
    columns = {name: np.array([setting[name] for setting, _, _ in problems]) for name in names}
    fast, slow = (np.array([problem[k] for problem in problems]) for k in (1, 2))
    batch = fc.theory.sampling_lead(fast, slow, **columns)
    for k, (setting, f, s) in enumerate(problems):
        one = fc.theory.sampling_lead(f, s, **setting)
        for name in ("sign_change", "peak_time", "peak", "reason"):
            np.testing.assert_allclose(batch[name].values[k], one[name].values, rtol=SAME)


def test_batches_broadcast_and_leave_neighbours_alone():
    fast = np.array(["100Gbps", "40Gbps", float("nan"), "160Gbps", "1e300B/s", np.inf], dtype=object)
    lead = fc.theory.sampling_lead(fast, "50Gbps", rtt=np.array([[30e-6], [1e-6], [0.0]]), acks=30, mtu="1KB")
    assert lead.sign_change.shape == (3, 6)
    assert lead.reason.values.tolist() == [[0, 2, 2, 0, 0, 2], [1, 2, 2, 1, 0, 2], [2] * 6]
    alone = fc.theory.sampling_lead("160Gbps", "50Gbps")
    assert lead.sign_change[0, 3] == pytest.approx(alone.sign_change.item(), rel=SAME)
    assert np.isnan(lead.sign_change.values[lead.reason.values > 0]).all()
    assert np.isfinite(lead.sign_change.values[lead.reason.values == 0]).all()
    assert relative_difference(0.0, 3.0, 2.0) == 0


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fc.theory.sampling_lead(Rate(1e9), Rate(2e9)), "slow: 2000000000.0 is not below fast"),
        (lambda: fc.theory.sampling_lead("40Gbps", "40Gbps"), "give the larger rate as fast"),
        (lambda: fc.theory.sampling_lead("100", "50Gbps"), "fast: '100' has no unit"),
        (lambda: fc.theory.sampling_lead("100Gbps", "0Gbps"), "slow: 0Gbps does not do; give one finite value above 0"),
        (lambda: fc.theory.sampling_lead("100Gbps", "50Gbps", beta=1), "beta: 1 is no share"),
        (lambda: fc.theory.sampling_lead("100Gbps", "50Gbps", beta=float("nan")), "beta: NaN"),
        (lambda: fc.theory.sampling_lead("100Gbps", "50Gbps", rtt="-1us"), "rtt: -1us does not do"),
        (lambda: fc.theory.sampling_lead("100Gbps", "50Gbps", acks=0), "acks: 0 does not do"),
        (lambda: fc.theory.sampling_lead("100Gbps", "50Gbps", mtu="1 pound"), "mtu: unknown unit 'pound'"),
        (lambda: fc.theory.sampling_lead(Rate(1e305), Rate(1e-300), rtt="1e9s"), "too extreme"),
        (lambda: fc.theory.sampling_lead(np.array([1e9, 2e9]), Rate(1e8), rtt=[1.0, 2.0, 3.0]), "do not broadcast"),
        (lambda: fc.theory.sampling_lead([[1e9], [1, 2]], Rate(1e8)), "fast"),
        (lambda: fc.theory.decrease_rates(["40Gbps"]), "rates: 1 flow; fairness takes two"),
        (lambda: fc.theory.decrease_rates("40Gbps"), "is no list"),
        (lambda: fc.theory.decrease_rates(["40Gbps", "40Gbps"]), "all are 40Gbps"),
        (lambda: fc.theory.decrease_rates(["40Gbps", float("nan")]), r"rates\[1\]: NaN"),
        (
            lambda: fc.theory.decrease_rates(["1GB/s", "2GB/s"], method="guess"),
            "method: 'guess' is unknown; write closed form",
        ),
        (lambda: fc.theory.decrease_rates(["1GB/s", "2GB/s"], times=[1.0, 0.5]), "times: "),
        (lambda: fc.theory.decrease_rates(["1GB/s", "2GB/s"], times=["0us", "1s"]), "at most 42ms, 700 r/beta"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(fc.InputError, match=message):
        call()
