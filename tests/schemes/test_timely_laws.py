"""TIMELY's fluid law against its packet rule: a completion in each moves rate, gradient and streak as far.

Nothing is compiled. Times are multiples of a power of two, so that delays can be exactly at a threshold; to rounding.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.signals import Progress, Signals, Waits
from fluidcc.schemes.timely import fluid, law, packet
from tests.schemes.plain_laws import Draws, bound, check, check_compiled, plain, progress, record, replaced, rows

LAW, RULE = plain(fluid), plain(packet)
UNIT = 2.0**-24  # s
LINE = 1.25e9


def drawn(seed: int, **switches: Any) -> tuple[Any, fluid.State, Signals]:
    """Parameters, states and waits: rates below and above Seg/D_minRTT, delays around and at the thresholds."""
    draw = Draws(seed)
    low = draw(8, 20)
    p = bound(
        fc.TIMELY(**switches),
        ewma=draw(0.875, (0.1, 0.9)),
        beta=draw(0.8, (0.01, 1.0)),
        rate_ai=draw(1.25e6, (1e5, 1e8)),
        hai_gain=draw(1.0, 5.0),
        hai_steps=draw(1.0, 5.0),
        t_low=UNIT * low,
        t_high=UNIT * (low + draw(0, 10, 40)),
        min_rtt=UNIT * draw(5, 9),
        segment=draw(16e3, 64e3),
        min_rate=draw(12.5e6, 5e8),
        own_rtt=UNIT * draw(2, 7),
        empty_rtt=UNIT * draw(2, 7),
    )
    rate = np.maximum(draw(LINE, (1e8, LINE), 12.5e6), p.min_rate)
    state = fluid.State(rate, draw(0.0, 0.1, (-0.5, 0.5), -1.0, 1.5), np.floor(draw(0, 1, 4, 5, (0, 9))))
    waits = Waits(UNIT * np.floor(draw(0, 1, (0, 80))), UNIT * np.floor(draw(0, (0, 80))))
    own = p.own_rtt if p.thresholds == "rtt" else 0.0
    now = np.where(draw(0, 0, 1) > 0, np.maximum(np.where(draw(0, 1) > 0, p.t_low, p.t_high) - own, 0.0), waits.now)
    one = np.ones_like(rate)
    return p, state, Signals(0 * one, one, 1000 * one, waits=waits._replace(now=now))


def by_packets(p: Any, s: fluid.State, now: float, before: float) -> fluid.State:
    """Rate and streak after a completion of the packet rule that leaves the state's gradient, and a next gradient."""
    queueing = p.thresholds == "queueing"
    path = (p.empty_rtt if queueing else p.own_rtt) / UNIT
    me = record(
        packet, ewma=p.ewma, beta=p.beta, rate_ai=p.rate_ai, hai_gain=p.hai_gain, hai_steps=p.hai_steps,
        t_low=p.t_low / UNIT, t_high=p.t_high / UNIT, min_rtt=p.min_rtt / UNIT, min_rate=p.min_rate, patched=p.patched,
        empty_rtt=path if queueing else 0.0, streak=s.streak - 1, rtt=path + now / UNIT,
    )  # fmt: skip
    flow, other = (SimpleNamespace(rate=s.rate, line_rate=LINE, last_size=0) for _ in range(2))
    me.rtt_difference = s.gradient * me.min_rtt / (1.0 - me.ewma)
    RULE.completed(None, flow, me, path + now / UNIT)
    streak = me.streak + (s.gradient <= 0)
    me.rtt, me.rtt_difference = path + before / UNIT, s.gradient * me.min_rtt
    RULE.completed(None, other, me, path + now / UNIT)
    return fluid.State(flow.rate, me.rtt_difference / me.min_rtt, streak)


@pytest.mark.parametrize("patched", [False, True])
@pytest.mark.parametrize("thresholds", ["rtt", "queueing"])
def test_a_completion_is_that_of_packets(thresholds: str, patched: bool) -> None:
    """Every branch of dR/dt and dg/dt: what comes of them in tau* is what the packet rule does at a completion."""
    p, state, signals = drawn(1, thresholds=thresholds, patched=patched)
    assert signals.waits is not None
    moved = LAW.derivative(p, state, LAW.feedback(p, signals))
    assert not moved.streak[state.gradient > 0].any()
    tau = np.maximum(p.segment / state.rate, p.min_rtt)
    assert LAW.interval(p, state) == pytest.approx(tau)
    after = fluid.State(*(leaf + tau * slope for leaf, slope in zip(state, moved, strict=True)))
    line = LINE * np.ones_like(tau)
    streak = LAW.project(p, after._replace(gradient=state.gradient), line).streak
    found = fluid.State(LAW.project(p, after, line).rate, after.gradient, streak)
    check(found, [by_packets(*row) for row in rows(p, state, signals.waits.now, signals.waits.before)], rel=1e-9)


def steps(p: Any, state: fluid.State, signals: Signals, *counts: int) -> tuple[Any, law.State, Progress]:
    """The same states and waits for the flow level; steps complete as many segments as drawn from ``counts``."""
    assert signals.waits is not None
    path = p.empty_rtt if p.thresholds == "queueing" else p.own_rtt
    p = replaced(p, empty_rtt=path * (p.thresholds == "queueing"))
    draw = Draws(5)
    before, count = path + signals.waits.before, draw(*counts)
    completes = p.segment * np.floor(draw(1, (2, 50)))
    acked = completes + p.segment * (count - 1 + draw(0.0, 0.5))
    now = progress(acked=acked, sent=acked, newly=1000.0, rtt=path + signals.waits.now, line_rate=LINE)
    return p, law.State(state.rate, before, state.gradient * p.min_rtt, state.streak, completes), now


def completed(p: Any, s: law.State, now: Progress) -> law.State:
    """A completion of the packet rule, in units in which its times are whole."""
    me = record(
        packet, ewma=p.ewma, beta=p.beta, rate_ai=p.rate_ai, hai_gain=p.hai_gain, hai_steps=p.hai_steps,
        t_low=p.t_low / UNIT, t_high=p.t_high / UNIT, min_rtt=p.min_rtt / UNIT, min_rate=p.min_rate, patched=p.patched,
        empty_rtt=p.empty_rtt / UNIT, streak=s.streak, rtt=s.rtt / UNIT, rtt_difference=s.rtt_difference / UNIT,
    )  # fmt: skip
    flow = SimpleNamespace(rate=s.rate, line_rate=LINE, last_size=0)
    RULE.completed(None, flow, me, now.rtt / UNIT)
    return law.State(flow.rate, me.rtt * UNIT, me.rtt_difference * UNIT, me.streak, s.completes + p.segment)


@pytest.mark.parametrize("patched", [False, True])
@pytest.mark.parametrize("thresholds", ["rtt", "queueing"])
def test_a_step_with_a_completion_is_that_of_packets(thresholds: str, patched: bool) -> None:
    p, state, signals = drawn(3, thresholds=thresholds, patched=patched)
    p, s, now = steps(p, state, signals, 1)
    s = s._replace(rtt=s.rtt * Draws(6)(0, 1, 1, 1))  # the first completion records its RTT only
    check(law.on_step(p, s, now, 0.0), [completed(*row) for row in rows(p, s, now)], rel=1e-9)


def test_a_step_without_completion_changes_nothing() -> None:
    p, state, signals = drawn(4)
    p, s, now = steps(p, state, signals, 0)
    for before, after in zip(s, law.on_step(p, s, now, 0.0), strict=True):
        np.testing.assert_array_equal(before, after)


def test_completions_of_one_step_share_the_change_of_the_rtt() -> None:
    """The average takes, as often as segments end, an equal part of the change, and the rate the same reaction."""
    p, state, signals = drawn(5, patched=True)
    p, s, now = steps(p, state, signals, 2, 3, 7)

    def by_hand(p: Any, s: law.State, now: Progress) -> law.State:
        count, difference, streak, ends = 0, s.rtt_difference, s.streak, s.completes
        while now.acked >= ends:
            count, ends = count + 1, ends + p.segment
        for _ in range(count):
            difference = (1 - p.ewma) * difference + p.ewma * (now.rtt - s.rtt) / count
        g = difference / p.min_rtt
        streak = streak + count if g <= 0 else 0.0
        rate, weight = s.rate, min(max(2 * g + 0.5, 0.0), 1.0)
        for _ in range(count):
            if p.t_low <= now.rtt <= p.t_high:
                change = (1 - weight) * p.rate_ai - weight * p.beta * s.rate * (now.rtt / p.t_low - 1)
                rate += change
            elif now.rtt < p.t_low:
                rate += p.rate_ai
            else:
                rate *= max(1 - p.beta * (1 - p.t_high / now.rtt), 0.0)
        return law.State(min(max(rate, p.min_rate), LINE), now.rtt, difference, streak, ends)

    check(law.on_step(p, s, now, 0.0), [by_hand(*row) for row in rows(p, s, now)], rel=1e-9)


def test_limits_and_intervals() -> None:
    """The least interval of a rate below the least one is that rate's, or D_minRTT; the line may be below it, too."""
    p, one = bound(fc.TIMELY(), min_rate=12.5e6, segment=16e3, min_rtt=20e-6), np.ones((1, 4))
    state = fluid.State(np.array([[0.0, 12.5e6, 25e6, 2e9]]), 0.25 * one, 3 * one)
    assert LAW.interval(p, state) == pytest.approx(np.array([[16e3 / 12.5e6, 16e3 / 12.5e6, 16e3 / 25e6, 20e-6]]))
    assert LAW.longest_interval(p) == pytest.approx(16e3 / 12.5e6)
    slow = bound(fc.TIMELY(), min_rate=2e9, segment=16e3, min_rtt=20e-6, own_rtt=40e-6)
    assert LAW.interval(slow, state._replace(rate=0 * one)) == pytest.approx(20e-6 * one)
    assert LAW.longest_interval(slow) == pytest.approx(20e-6)
    assert LAW.project(p, state, 1e9 * one).rate.tolist() == [[12.5e6, 12.5e6, 25e6, 1e9]]
    assert LAW.project(p, state, 1e6 * one).rate.tolist() == [[1e6] * 4]
    assert LAW.project(p, state, 1e9 * one).streak.tolist() == [[0.0] * 4]  # a rising round trip ends it
    assert LAW.project(p, state, 1e9 * one).gradient.tolist() == [[0.25] * 4]


def test_the_rest() -> None:
    p = bound(fc.TIMELY())
    begun = LAW.start(p, 3.0 * np.ones((1, 1)), (2, 3), 1)
    assert [leaf.tolist() for leaf in begun] == [np.full((2, 3), x).tolist() for x in (3.0, 0.0, 0.0)]
    state = fluid.State(*(np.full((1, 1), x) for x in (1.0, 2.0, 3.0)))
    assert LAW.rate(state) == 1.0
    assert LAW.observables(state) == {"rtt_gradient": 2.0}
    assert LAW.time_scale(p, LINE) == pytest.approx(20e-6 / 0.875)


def test_numpy_s_law_is_the_compiled_one() -> None:
    p, state, signals = drawn(2)
    check_compiled(fluid.feedback, fluid, p, signals)
    check_compiled(fluid.derivative, fluid, p, state, LAW.feedback(p, signals))
