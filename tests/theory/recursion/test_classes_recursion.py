"""Classes that share a link: fair service, conservation, the one-class map, settles in closed form, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidcc as fc
from fluidcc.theory.recursion import multiq
from fluidcc.theory.recursion.classes import RULES, share_link, water_fill

ETA = 0.95


@st.composite
def links(draw, most=5):
    """Weights that sum to 1, and rates, of so many classes."""
    count = draw(st.integers(1, most))
    weights = np.array(draw(st.lists(st.floats(0.05, 1), min_size=count, max_size=count)))
    rates = draw(st.lists(st.floats(0.01, 3), min_size=count, max_size=count))
    return weights / weights.sum(), np.array(rates)


@given(links(), st.floats(0.1, 4))
def test_service_is_weighted_fair(link, line):
    """All that is offered or the whole line; who gets less than it offers gets no less per weight than any other."""
    weights, offered = link
    served = water_fill(offered, weights, line)
    assert served.sum() == pytest.approx(min(line, offered.sum()))
    assert (served <= offered).all()
    short = served < offered * (1 - 1e-9)
    if short.any():
        level = served[short] / weights[short]
        assert level == pytest.approx(level[0])
        assert (served / weights).max() <= level[0] * (1 + 1e-9)


@given(links(), st.data())
def test_nothing_is_lost_and_the_line_is_not_exceeded(link, data):
    weights, rates = link
    rules = data.draw(st.lists(st.sampled_from(RULES), min_size=len(rates), max_size=len(rates)))
    run = share_link(weights, rates, rules=rules, increase=0.01, steps=30)
    np.testing.assert_allclose(run.backlog[:-1] + run.sent, run.served + run.backlog[1:], rtol=1e-12, atol=1e-15)
    assert (run.backlog >= 0).all()
    assert (run.served.sum(axis=-1) <= 1 + 1e-12).all()
    # What is in flight is the window, unless the window fell below what already waits.
    np.testing.assert_allclose(run.sent, np.maximum(run.rates[:-1] - run.backlog[:-1], 0), atol=1e-15)


@given(st.floats(0.1, 0.8), st.floats(0.1, 1.0), st.sampled_from(multiq.RULES), st.floats(0.01, 0.5))
def test_beside_a_fixed_class_it_is_the_one_class_map(share, start, rule, load):
    """Served at A: what a class of fixed rate leaves, at least w B; as long as the window covers the backlog."""
    served = max(share, 1 - load)
    run = share_link([share, 1 - share], [start, load], rules=[rule, "fixed"], increase=1e-3, steps=20)
    rate = start
    for n in range(20):
        rate = float(multiq.step(rate, share=share, served=served, rule=rule, eta=ETA, increase=1e-3))
        assert run.rates[n + 1, 0] == pytest.approx(rate, rel=1e-9)
        if rate < run.backlog[n + 1, 0]:
            break


def test_rests_of_several_classes():
    """All backlogged: at eta of their share under the slides' rule; at eta B each, mostly waiting, under HPCC's own."""
    weights = [0.5, 0.3, 0.2]
    run = share_link(weights, [1.0, 1.0, 1.0])
    np.testing.assert_allclose(run.rates[-1], ETA * np.array(weights))
    a = 0.01
    run = share_link(weights, [1.0, 0.2, 2.0], rules="class", increase=a, steps=2000)
    # R = eta B + a each, though only w B is served: the rest waits.
    np.testing.assert_allclose(run.rates[-1], ETA + a)
    np.testing.assert_allclose(run.served[-1], weights)
    np.testing.assert_allclose(run.backlog[-1], ETA + a - np.array(weights))


def test_batches_are_the_loop():
    weights = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    rates = np.random.default_rng(0).uniform(0.1, 1, (4, 1, 3))
    run = share_link(weights, rates, rules=["slides", "spare", "class"], steps=12)
    assert run.rates.shape == (13, 4, 2, 3)
    assert run.served.shape == (12, 4, 2, 3)
    one = share_link(weights[1], rates[2, 0], rules=["slides", "spare", "class"], steps=12)
    np.testing.assert_array_equal(run.rates[:, 2, 1], one.rates)


def test_a_small_backlog_counts_as_none_up_to_the_threshold():
    served, backlog = np.array([0.5]), np.array([0.01])
    options = {"guaranteed": 0.4, "line": 1.0, "unused": 0.0}
    assert multiq.of_class(served, backlog, "slides", **options) == pytest.approx(1.02)
    assert multiq.of_class(served, backlog, "slides", threshold=0.02, **options) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: share_link([0.5, 0.4], [1, 1]), "weights: they sum to 0.9; give shares of the line that sum to 1"),
        (lambda: share_link([[1, 1], [3, 1]], [1, 1]), r"weights\[0\]: they sum to 2"),
        (lambda: share_link([1.5, -0.5], [1, 1]), r"weights\[1\]: -0.5; give every class a number greater than 0"),
        (lambda: share_link([1.0, 0.0], [1, 1]), r"weights\[1\]: 0; give every class"),
        (lambda: share_link([0.5, 0.5], [1, 0]), r"R0\[1\]: 0; give every class a number greater than 0"),
        (lambda: share_link([0.5, 0.5], [1, np.nan]), r"R0\[1\]: nan; give finite"),
        (lambda: share_link(1.0, [1]), "weights: 1.0; give a list of one number per class"),
        (lambda: share_link([0.5, 0.5], [1, 1, 1]), r"R0: shape \(3,\), weights \(2,\); give one rate for each class"),
        (lambda: share_link([0.5, 0.5], [1, 1], rules="mine"), "rules: 'mine' is unknown; write slides"),
        (lambda: share_link([0.5, 0.5], [1, 1], rules=["slides"]), "rules: 1 for 2 classes"),
        (lambda: share_link([0.5, 0.5], [1, 1], line=0), "line: 0; give one number greater than 0"),
        (lambda: share_link([0.5, 0.5], [1, 1], eta=1.2), "eta: 1.2; give one number greater than 0, at most 1"),
        (lambda: share_link([0.5, 0.5], [1, 1], increase=-1), "increase: -1; give one number at least 0"),
        (lambda: share_link([0.5, 0.5], [1, 1], steps=0), "steps: 0; give a whole number"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(fc.InputError, match=message):
        call()


def served_by(offered, weights, line):
    """Fill a level up to the line, class by class in the order in which they are served whole."""
    left, room, found = set(range(len(offered))), line, [0.0] * len(offered)
    while left:
        level = room / sum(weights[c] for c in left)
        whole = {c for c in left if offered[c] <= weights[c] * level}
        for c in whole or left:
            found[c] = offered[c] if whole else weights[c] * level
        room -= sum(offered[c] for c in whole)
        left = left - whole if whole else set()
    return found


@pytest.mark.parametrize(
    "rates", [[0.2, 0.3, 0.3, 0.6], [3.0, 1.0, 2.0, 0.9], [9.0, 0.1, 0.1, 0.1], [0.4, 4.0, 0.5, 0.5]]
)
def test_classes_of_all_rules_step_by_step(rates):
    """A replay class by class, of a line of 2: each has its own rule, guarantee and queue; catches one mixed up."""
    rules, weights, B, eta, a, small = ["slides", "spare", "class", "fixed"], [0.4, 0.3, 0.2, 0.1], 2.0, 0.9, 0.03, 0.05
    run = share_link(weights, rates, line=B, rules=rules, eta=eta, increase=a, threshold=small, steps=9)
    R, Q = list(rates), [0.0] * 4
    for n in range(9):
        sent = [max(r - q, 0.0) for r, q in zip(R, Q, strict=True)]
        offered = [q + s for q, s in zip(Q, sent, strict=True)]
        served = served_by(offered, weights, B)
        Q = [o - s for o, s in zip(offered, served, strict=True)]
        idle = max(B - sum(served), 0.0)
        for c, (rule, w) in enumerate(zip(rules, weights, strict=True)):
            s, q = served[c], Q[c]
            if rule == "fixed":
                assert np.isnan(run.utilization[n, c])
                continue
            slides = (s + q) / (w * B) if s <= w * B else q / s + 1 if q > small else 2 * s / (s + B)
            U = {"slides": slides, "spare": (s + q) / max(w * B, s + idle), "class": (s + q) / B}[rule]
            assert run.utilization[n, c] == pytest.approx(U, rel=1e-9)
            R[c] = R[c] * eta / U + a
        assert run.sent[n] == pytest.approx(sent, rel=1e-9, abs=1e-12)
        assert run.served[n] == pytest.approx(served, rel=1e-9)
        assert run.backlog[n + 1] == pytest.approx(Q, rel=1e-9, abs=1e-12)
        assert run.rates[n + 1] == pytest.approx(R, rel=1e-9)
    assert run.rates[0].tolist() == rates
    assert run.backlog[0].tolist() == [0.0] * 4


def test_weights_sum_to_one_to_rounding():
    """Check each link; a threshold, and an increase, of 0 are allowed."""
    share_link([0.5, 0.5 + 0.9e-9], [1, 1], steps=1)
    for weights in ([0.5, 0.5 + 1.1e-9], [0.5, 0.5 - 1.1e-9], [[0.5, 0.5], [0.5, 0.6]]):
        with pytest.raises(fc.InputError, match="sum to"):
            share_link(weights, [1, 1], steps=1)
    with pytest.raises(fc.InputError, match="threshold"):
        share_link([0.5, 0.5], [1, 1], threshold=-1.0)
