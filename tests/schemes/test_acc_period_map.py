"""ACC's two maps: closed forms in rationals, each against the other, conservation, batches, joins, refused input.

Tolerances, stated before measuring: 0 between rationals; 1e-9 relative between floats and rationals over some 200 rows
(each rounds a few times and rates are normalised at every halt, so that errors do not grow); 1e-12 C T for conservation
in a row of floats; batch against loop the same bits.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.schemes.acc.period_map import FORMS

F = Fraction
CASES = [(F(1, 250), 2), (F(1, 100), 10), (F(1, 25), 32), (F(1, 5), 6), (F(1), 3)]  # in two of them r(N-1) is whole
fractions = st.fractions(F(1, 20), F(3, 2), max_denominator=20)


@st.composite
def problems(draw):
    """Rates of 1 to 5 flows and r."""
    return draw(st.lists(fractions, min_size=1, max_size=5)), draw(st.fractions(F(1, 50), F(1), max_denominator=50))


def starts(flows):
    return [F(2 * k + 2, flows) for k in range(flows)]  # sum above 1


def rises(run):
    """Rows in which a cycle begins: the first after a halt."""
    return [n for n in range(1, len(run.halted)) if run.halted[n - 1] and not run.halted[n]]


@pytest.mark.parametrize(("r", "flows"), CASES)
def test_appendix_cycle(r, flows):
    """(2)-(8): M periods, of which one sends; peak r(N-1)."""
    run = fc.theory.acc_map(starts(flows), r=r, exact=True, steps=60)
    M = math.ceil(r * flows - r + 1)
    assert run.cycle == M
    assert run.peak == r * (flows - 1)
    assert run.utilization == (1 + r * (flows - 1)) / M
    assert run.recorded[1].sum() == 1  # Proposition 1
    assert (run.sent[run.halted] == 0).all()
    first = rises(run)[0]
    assert list(run.queue[first + 1 : first + M + 1]) == [max(r * (flows - 1) - m, F(0)) for m in range(M)]  # (7)


@pytest.mark.parametrize(("r", "flows"), CASES)
def test_algorithm_cycle(r, flows):
    """T_{i-1} and T_i above C, a halt of 2r(N-1) T, a round trip and a period at C: the link is never idle."""
    x = r * (flows - 1)
    run = fc.theory.acc_map(starts(flows), form="algorithm", r=r, exact=True, steps=60)
    assert run.cycle == 4 + 2 * x
    assert run.peak == 2 * x
    assert (run.served == np.diff(run.time)).all()
    raised = fc.theory.acc_map(starts(flows), form="algorithm", r=r, raised=True, exact=True, steps=60)
    assert raised.peak == (3 - r) * x
    assert (raised.served == np.diff(raised.time)).all()
    if r < 1:
        as_printed = fc.theory.acc_map(starts(flows), form="algorithm", r=r, reset=False, exact=True, steps=60)
        assert as_printed.peak == 2 * min(10 * r, 1) * (flows - 1)  # RI_High


def test_values_of_the_printed_map():
    assert float(fc.theory.acc_map([0.5, 0.6]).utilization) == pytest.approx(0.502, abs=1e-9)
    assert float(fc.theory.acc_map([0.5] * 32, r=10 / 250).utilization) == pytest.approx(0.746667, abs=5e-7)


@pytest.mark.parametrize(("r", "flows"), CASES)
@pytest.mark.parametrize("form", FORMS)
def test_shares_have_the_closed_form_10(form, r, flows):
    run = fc.theory.acc_map(starts(flows), form=form, r=r, exact=True, steps=60)
    halts = [n for n in range(1, 60) if run.halted[n] and not run.halted[n - 1]]
    factor = (1 - r) / (1 - r + r * flows)
    for k, n in enumerate(halts):
        assert all(run.shares[n] - F(1, flows) == factor**k * (run.shares[0] - F(1, flows)))


@given(problems())
@settings(max_examples=40)
def test_both_forms_have_the_same_shares_cycle_by_cycle_and_conserve_bytes(problem):
    rates, r = problem
    both = fc.theory.acc_maps(rates, r=r, r_high=r, exact=True, steps=40)
    halts = [[run.shares[n] for n in range(1, 41) if run.halted[n] and not run.halted[n - 1]] for run in both]
    # Before the first halt the algorithm's flows rise as often, since excess ends it after the same rise.
    assert all((a == b).all() for a, b in zip(*halts, strict=False))
    for run in both:
        assert (run.queue >= 0).all()
        assert (run.served >= 0).all()
        assert (run.served <= np.diff(run.time)).all()
        assert (run.shares[-1].sum()) == 1
        assert 0 < run.utilization <= 1
    busy = both.algorithm.queue[:-1] > 0
    assert (both.algorithm.served[busy] == np.diff(both.algorithm.time)[busy]).all()


@given(problems(), st.sampled_from(FORMS))
@settings(max_examples=40)
def test_floats_follow_rationals(problem, form):
    rates, r = problem
    exact = fc.theory.acc_map(rates, form=form, r=r, exact=True, steps=60)
    run = fc.theory.acc_map([float(rate) for rate in rates], form=form, r=float(r), steps=60)
    if not (run.halted == exact.halted).all():  # within rounding of C without being above it
        n = int((run.halted != exact.halted).argmax())
        assert min(abs(float(exact.recorded[m].sum()) - 1) for m in range(n)) < 1e-9
        return
    for name in ("time", "recorded", "sent", "queue"):
        np.testing.assert_allclose(getattr(run, name), getattr(exact, name).astype(float), rtol=1e-9, atol=1e-12)


@given(problems(), st.randoms())
@settings(max_examples=20)
def test_order_of_the_flows_does_not_matter(problem, random):
    rates, r = problem
    order = list(range(len(rates)))
    random.shuffle(order)
    run, other = (fc.theory.acc_map(each, r=r, exact=True, steps=20) for each in (rates, [rates[k] for k in order]))
    assert (run.recorded[:, order] == other.recorded).all()


@pytest.mark.parametrize("form", FORMS)
def test_batch_is_loop(form):
    rng = np.random.default_rng(1)
    rates, r = rng.uniform(0.05, 1.5, (3, 1, 4)), rng.uniform(0.005, 0.5, (2, 1))
    join = np.array([0, 0, 9, np.inf])
    capacity = np.array([1.0, 2.0])
    batch = fc.theory.acc_map(rates, form=form, r=r, capacity=capacity, join=join, steps=200)
    assert batch.queue.shape == (201, 3, 2)
    fair = batch.fair()
    for a in range(3):
        for b in range(2):
            run = fc.theory.acc_map(rates[a, 0], form=form, r=r[b], capacity=capacity[b], join=join, steps=200)
            for name in ("time", "recorded", "sent", "queue", "halted", "jain"):
                np.testing.assert_array_equal(getattr(batch[a, b], name), getattr(run, name))
            for name in ("cycle", "utilization", "peak"):
                assert getattr(batch, name)[a, b] == getattr(run, name) == getattr(batch[a, b], name)
            assert (fair.cycles[a, b], fair.periods[a, b]) == tuple(run.fair())


@pytest.mark.parametrize("form", FORMS)
def test_flows_that_join_later_come_to_the_same_share(form):
    run = fc.theory.acc_map([0.9, 0.01, 0.3, 0.5], form=form, r=0.02, join=[0, 100, 200.5, np.inf], steps=2500)
    assert not run.joined[:, 3].any()
    for k, period in ((1, 100), (2, 200.5)):
        began = int(run.joined[:, k].argmax())
        assert run.time[began] >= period
        assert not run.halted[began]
        waits = [n for n in range(began) if run.time[n] >= period]
        # In the appendix only a halt keeps it waiting, in the algorithm T_i too.
        assert all(run.halted[n] or (form == "algorithm" and run.queue[n] > 0) for n in waits)
        assert run.sent[began, k] == (0.01, 0.3)[k - 1]
    np.testing.assert_allclose(run.shares[-1], [1 / 3] * 3 + [0], atol=1e-9)
    assert run.fair(1e-3).periods < 1500


def test_each_flow_has_its_own_n_u():
    """A flow that joins raises by RI_Low twice while the other is at RI_High."""
    run = fc.theory.acc_map([0.1, 0.1], form="algorithm", r=0.01, join=[0, 5], steps=9)
    grown = np.diff(run.recorded, axis=0) / (1 - run.recorded[:-1])
    np.testing.assert_allclose(grown[:8, 0], [0, 0.01, 0.01] + [0.1] * 5, atol=1e-12)
    np.testing.assert_allclose(grown[5:8, 1], [0, 0.01, 0.01], atol=1e-12)


def test_a_start_below_c_rises_until_above():
    """(4) from below: sum S = N - (N - sum S_0)(1-r)^k, above C for the first time after k_0 periods."""
    r, run = 0.02, fc.theory.acc_map([0.1, 0.2], r=0.02)
    k_0 = math.floor(math.log((2 - 1) / (2 - 0.3)) / math.log(1 - r)) + 1
    assert int(run.halted.argmax()) == k_0 + 1
    np.testing.assert_allclose(run.sent[: k_0 + 1].sum(axis=1), 2 - 1.7 * (1 - r) ** np.arange(k_0 + 1), rtol=1e-12)
    assert not run.queue[: k_0 + 1].any()


def test_one_flow_fills_the_link_and_never_halts():
    for form in FORMS:
        run = fc.theory.acc_map([0.1], form=form, r=0.1)
        assert not run.halted.any()
        assert run.cycle == run.cycle_periods == np.inf
        assert run.peak == 0
        assert float(run.utilization) == pytest.approx(1, abs=1e-9)
        assert run.fair().periods == 0


def test_time_to_fairness():
    """The gap shrinks by (1-r)/(1-r+rN) from halt to halt."""
    r, N, tol = 1 / 25, 4, 1e-3
    both = fc.theory.acc_maps([2.0, 0.5, 0.3, 0.2], r=r, r_high=r)
    gap = 2.0 / 3 - 1 / N
    cycles = math.ceil(math.log(tol / gap) / math.log((1 - r) / (1 - r + r * N)))
    for run in both:
        fair = run.fair(tol)
        assert fair.cycles == cycles
        n = int(np.searchsorted(run.time, fair.periods))
        assert abs(run.shares[n:] - 1 / N).max() <= tol < abs(run.shares[n - 1] - 1 / N).max()
        by_jain = run.fair(jain=0.99)
        assert run.jain[np.searchsorted(run.time, by_jain.periods)] >= 0.99
    assert fc.theory.acc_map([0.9, 0.3], steps=10).fair().cycles == np.inf


def test_units():
    """Queues in bytes, times in seconds; the same in units of C and T."""
    run = fc.theory.acc_map(["90Gbps", "50Gbps"], form="algorithm", capacity="100Gbps", period="20us")
    plain = fc.theory.acc_map([0.9, 0.5], form="algorithm")
    assert float(run.peak) == pytest.approx(2 / 250 * 12.5e9 * 20e-6, rel=1e-9)
    assert float(run.peak_periods) == pytest.approx(float(plain.peak), rel=1e-9)
    assert float(run.cycle) == pytest.approx(float(plain.cycle) * 20e-6, rel=1e-9)
    np.testing.assert_allclose(run.sent / 12.5e9, plain.sent, rtol=1e-9)


def test_unequal_increments_and_nics_are_unfair():
    """Shares solve phi_i (sum S - 1 + r_i) = r_i; with RI in proportion to the NIC they are in that proportion."""
    r = np.array([0.01, 0.03, 0.06])
    run = fc.theory.acc_map([0.5, 0.5, 0.5], r=r, steps=4000)
    n = np.flatnonzero(~run.halted)[-1]
    np.testing.assert_allclose(run.shares[n], r / (run.recorded[n].sum() - 1 + r), atol=1e-9)
    run = fc.theory.acc_map([0.5, 0.5], r=0.05, line_rates=[1, 4], steps=1000)
    np.testing.assert_allclose(run.shares[-1], [0.2, 0.8], atol=1e-9)


def test_summary_and_picture():
    both = fc.theory.acc_maps([0.9, 0.5], r=0.2, steps=40)
    summary = both.summary()
    assert summary.keys() == {"appendix", "algorithm"}
    assert float(summary["algorithm"]["utilization"]) == pytest.approx(1)
    picture = both.plot()
    assert [axis.get_ylabel() for axis in picture.axes[::2]] == [
        "rate sent [C]",
        "queue [C T]",
        "share of the recorded rates",
    ]
    labels = [
        axis.get_ylabel()
        for axis in fc.theory.acc_map(["1Gbps"] * 2, capacity="1Gbps", period="1us", steps=9).plot().axes
    ]
    assert labels[:2] == ["rate sent [Gbps]", "queue [B]"]
    with pytest.raises(fc.InputError, match=r"plot: a batch of shape \(2,\); plot one of its runs"):
        fc.theory.acc_map([[0.5, 0.6]] * 2, steps=5).plot()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"r": 0}, "r: 0.0; give numbers above 0, at most 1"),
        ({"r": 1.5}, "r: 1.5; give numbers above 0, at most 1"),
        ({"rates": [-0.1, 0.5]}, "rates: -0.1; give numbers above 0"),
        ({"rates": [0.1, float("nan")]}, "rates: nan; give numbers above 0"),
        ({"rates": []}, "rates: nothing; give numbers above 0"),
        ({"rates": 0.5}, r"rates: shapes do not fit: .* give \(..., N\), the flows last"),
        ({"rates": [[1, 2], [3]]}, "rates: .* are no finite numbers; give lists of equal length"),
        ({"rates": ["1", "2Gbps"]}, "rates: '1' has no unit"),
        ({"capacity": 0}, "capacity: 0.0; give numbers above 0"),
        ({"capacity": "fast"}, "capacity: cannot read 'fast'; write a number and a unit"),
        ({"period": "-1us"}, "period: -1e-06; give numbers above 0"),
        ({"line_rates": [1, 0]}, "line_rates: 0.0; give numbers above 0"),
        ({"r": [0.1, 0.2, 0.3]}, r"shapes do not fit: rates \(2,\), r \(3,\)"),
        ({"rates": [0.5], "r": [0.1, 0.2]}, "shapes do not fit"),
        ({"join": -1}, "join: -1.0; give each flow a period of at least 0, or inf"),
        ({"join": float("nan")}, "join: nan; give each flow"),
        ({"join": "soon"}, "join: 'soon'; give numbers of periods"),
        ({"form": "printed"}, "form: 'printed' is unknown; write appendix or algorithm"),
        ({"steps": 0}, "steps: 0; give a whole number of at least 1"),
        ({"steps": True}, "steps: True; give a whole number"),
        ({"r_high": 0.1}, "r_high: the appendix has no such thing; leave it out, or write form='algorithm'"),
        ({"raised": True}, "raised: the appendix has no such thing"),
        ({"reset": False}, "reset: the appendix has no such thing"),
        ({"r_high": 2, "form": "algorithm"}, "r_high: 2.0; give numbers above 0, at most 1"),
        ({"rates": [float("inf"), 1], "exact": True}, "rates: .* are no finite numbers"),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(fc.InputError, match=message):
        fc.theory.acc_map(**({"rates": [0.5, 0.6]} | options))


@pytest.mark.parametrize("wrong", [{"tol": 0}, {"tol": 1}, {"jain": 0}, {"jain": 1.0}])
def test_bad_tolerance_is_refused(wrong):
    with pytest.raises(fc.InputError, match="give a number between 0 and 1"):
        fc.theory.acc_map([0.5, 0.6], steps=5).fair(**wrong)
