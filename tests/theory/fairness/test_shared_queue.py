"""The two rules in one queue: their limit without delay, FIFO, conservation, where they settle.

Tolerances, stated before measuring. Against the closed form with base_rtt = e the ACKs are e old: of first order in e,
so a tenth of e leaves a tenth of the error, to 20 %, and the rule per RTT, which knows no delay there, is exact to
RK4's 1e-9. What the queue conserves is a linear invariant of RK4 where the queue is never empty, exact to 1e-9 of what
was sent; FIFO is exact but for steps in which the queue empties: one step's bytes, C dt, times a few (4).
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.theory.fairness.queue import SharedDecrease
from fluidcc.units import Rate

FIG_4 = {"acks": 30, "mtu": "1KB", "beta": 0.5}
PAIR = ["100Gbps", "50Gbps"]


def test_without_delay_it_is_the_closed_form():
    """A link so fast that nothing waits, target 0 so that all the same every ACK tells of congestion, r fixed.

    Both runs are of 800 RTTs, one shape; the errors are those of the first 8 us.
    """
    errors = []
    for base in (2e-7, 2e-8):
        run = fc.theory.shared_decrease(
            PAIR, "1000Tbps", base_rtt=base, until=800 * base, rtt="30us", target=0, steps=5, **FIG_4
        )
        exact = fc.theory.decrease_rates(PAIR, times=run.time.values, rtt="30us", **FIG_4)
        np.testing.assert_allclose(run.rate[0], exact.rate[0], rtol=1e-9)
        early = run.time.values <= 8e-6 * (1 + 1e-9)
        assert 99 < early.sum() < len(early)
        errors.append(float(np.abs(run.rate[1] / exact.rate[1] - 1)[early].max()))
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.2)


@functools.cache
def falling(steps: int) -> SharedDecrease:
    """100 RTTs: a step's half is another's step, so that three shapes are all there are."""
    return fc.theory.shared_decrease(
        PAIR, "100Gbps", base_rtt="10us", until="1ms", increase="50Mbps", steps=steps, **FIG_4
    )


def test_it_reports_its_step_s_error():
    """The difference to the run with half the step, which is of first order where the queue empties: 2 to 4 times."""
    found = [falling(20), falling(40)]
    errors = [run.summary()["discretisation_error_rate_rel"] for run in found]
    rates = [run.rate.values for run in found]
    np.testing.assert_allclose(found[0].time, found[1].time, rtol=1e-9)
    assert errors[0] == pytest.approx(np.abs(rates[0] - rates[1]).max() / rates[1].max(), rel=1e-6)
    assert 0 < errors[1] < errors[0] < 1e-2
    assert found[0].summary()["discretisation_error_queue_rel"] > 0


def test_a_full_queue_slows_sampling_by_what_is_not_delivered():
    """Always a queue: ACKs come at C, so that two equal flows fall as if each sent C/2; S' = -beta S (C/2)/(s MTU)."""
    run = fc.theory.shared_decrease(
        ["100Gbps", "99.9999999Gbps"], "1Gbps", base_rtt="250ns", until="200us", target=0, rtt="30us", steps=5, **FIG_4
    )
    C, start = run.capacity, run.rate.values[1, 0, 0]
    expected = start * np.exp(-0.5 * (C / 2) / 30e3 * run.time.values)
    np.testing.assert_allclose(run.rate[1, :, 0], expected, rtol=1e-6)
    at_once = fc.theory.decrease_rates(["100Gbps", "99.9999999Gbps"], times=run.time.values, rtt="30us", **FIG_4)
    assert run.rate[1, -1, 0] > 20 * at_once.rate[1, -1, 0]


@given(
    st.lists(st.floats(5, 100), min_size=2, max_size=4),
    st.floats(2, 20),
    st.floats(0.1, 0.9),
    st.sampled_from([0.0, 0.05, 1.0]),
    st.sampled_from([0.0, 50e3]),
)
@settings(max_examples=6)
@pytest.mark.slow
def test_conservation_and_fifo(gbps, base_us, beta, increase, queue):
    rates = np.array(gbps) * 1e9 / 8
    C = Rate(40e9 / 8)
    run = fc.theory.shared_decrease(
        [Rate(rate) for rate in rates], C, base_rtt=base_us * 1e-6, until=60 * base_us * 1e-6, beta=beta,
        increase=Rate(increase * 1e9 / 8),
        queue=queue, steps=20,
    )  # fmt: skip
    t, slack = run.time.values, 4 * C * run.step_s
    for k in range(2):
        q, sent, acked, tau = (run[name].values[k] for name in ("queue", "sent", "acked", "rtt"))
        assert (q >= -slack).all()
        # A link serves what it can: C while there is a queue, never more.
        served = queue + sent.sum(axis=1) - q
        assert (np.diff(served) <= C * np.diff(t) * (1 + 1e-9) + 1e-6).all()
        busy = (q[1:] > slack) & (q[:-1] > slack)
        np.testing.assert_allclose(np.diff(served)[busy], (C * np.diff(t))[busy], rtol=1e-9)
        # Once the first packet since the start is acknowledged, so is all up to what the ACK of now belongs to.
        since = t >= run.base_rtt_s + queue / C + 2 * run.step_s
        arrived = t[since] - tau[since]
        first = np.array([np.interp(run.base_rtt_s + queue / C, t, column) for column in acked.T])
        up_to = np.stack([np.interp(arrived, t, column) for column in sent.T], axis=1)
        np.testing.assert_allclose(acked[since] - first, up_to, atol=slack)
        waited = np.interp(arrived, t, q)
        np.testing.assert_allclose(C * (tau[since] - run.base_rtt_s), waited, atol=slack)
    # Per RTT alone nothing makes two rates more equal; the increase does.
    if not increase:
        np.testing.assert_allclose(run.ratio[0], run.ratio[0, 0], rtol=1e-9)


def test_rest_of_the_rule_per_rtt():
    """beta (1 - target/tau) R/tau = a/tau at R = C/N: tau = target/(1 - g), g = a N/(beta C).

    With kappa = beta g the load's mode is s^2 + kappa s + beta (1 - g) exp(-s) = 0 in RTTs: damped for g > 1/2, because
    |sin w| < w, and not for small g, where the rates become equal all the same and oscillate together.
    """
    C, beta = Rate(100e9 / 8), 0.5
    options = {"base_rtt": "10us", "target": "12us", "until": "8ms", "beta": beta, "steps": 5}
    run = fc.theory.shared_decrease(["100Gbps", "20Gbps"], C, increase=0.7 * beta * C / 2, **options)
    np.testing.assert_allclose(run.rate[0, -1], C / 2, rtol=1e-6)
    assert run.rtt[0, -1] == pytest.approx(12e-6 / (1 - 0.7), rel=1e-6)
    swinging = fc.theory.shared_decrease(["100Gbps", "20Gbps"], C, increase=0.04 * beta * C / 2, **options)
    assert swinging.ratio[0, -1] == pytest.approx(1, abs=1e-3)
    assert np.ptp(swinging.rate.values[0, -500:, 0]) > 0.1 * C / 2


def test_delay_takes_sampling_past_fairness():
    """ACKs are those of the faster rate of an RTT ago: the flow that was faster ends slower, as in no closed form."""
    runs = [
        fc.theory.shared_decrease(PAIR, "100Gbps", base_rtt="10us", until="1ms", steps=steps, **FIG_4)
        for steps in (20, 40)
    ]
    coarse, finer = (run.rate.sel(time=100e-6, method="nearest") for run in runs)
    assert finer.time == pytest.approx(100e-6, rel=1e-9)
    assert finer[1, 0] < finer[1, 1]
    assert runs[1].rate[1, 0, 0] > runs[1].rate[1, 0, 1]
    np.testing.assert_allclose(coarse, finer, rtol=5e-3)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"capacity": 0}, "capacity: 0 does not do"),
        ({"base_rtt": "0us"}, "base_rtt: 0us does not do"),
        ({"until": float("nan")}, "until: NaN"),
        ({"target": "-1us"}, "target: -1us does not do; give one finite value of at least 0"),
        ({"increase": "50"}, "increase: '50' has no unit"),
        ({"steps": 1}, "steps: 1; give a whole number of at least 2"),
        ({"rates": ["1Gbps"]}, "fairness takes two"),
        ({"rtt": 0}, "rtt: 0 does not do"),
    ],
)
def test_bad_input(keywords, message):
    good = {"rates": PAIR, "capacity": "100Gbps", "base_rtt": "10us", "until": "1ms"}
    with pytest.raises(fc.InputError, match=message):
        fc.theory.shared_decrease(**(good | keywords))
