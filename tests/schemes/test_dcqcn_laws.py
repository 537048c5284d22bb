"""DCQCN's fluid law against the paper's (7)-(9) in plain floats, powers of 1-p as printed, and against Fig. 7's events.

Nothing is compiled; to rounding of the printed form, 1e-9 where p is small.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.signals import Signals
from fluidcc.schemes.dcqcn import fluid, packet, reaction_point
from tests.schemes.plain_laws import Draws, bound, check, check_compiled, plain, record, rows

LAW, RULE = plain(fluid), plain(reaction_point)
ROUNDING = 1e-9
US, PACKET = 1e-6, 1000.0


def drawn(seed: int, **switches: Any) -> tuple[Any, fluid.State, Signals]:
    """Intervals in either order, and counters of few packets, so that all of (1-p)^n count."""
    draw = Draws(seed)
    timer = draw(55 * US, (1 * US, 20 * US))
    p = bound(
        fc.DCQCN(**switches),
        g=draw((0.01, 1.0)),
        rate_ai=draw((1e6, 1e8)),
        rate_hai=draw((1e6, 1e9)),
        byte_counter=PACKET * draw((0.5, 40.0)),
        timer=timer,
        cnp_interval=US * draw(50.0, 4.0),
        rate_decrease_interval=US * draw(0.0, 50.0, (1.0, 90.0)),
        alpha_timer=US * draw(55.0, 4.0, (1.0, 90.0)),
        fast_recovery_steps=draw(0.0, 1.0, 2.0, 5.0),
        decrease_gain=draw(0.5, (0.1, 2.0)),
        max_decrease=draw(1.0, (0.1, 0.6)),
    )
    rate = PACKET * draw(0.0, (1e3, 1e6), (1e5, 5e6))
    state = fluid.State(draw((1e6, 5e9)), draw((1e6, 5e9)), draw((0.0, 1.0)))
    return p, state, Signals(draw(0.0, 1.0, (1e-6, 1e-3), (0.01, 0.5)), rate, PACKET * np.ones_like(rate))


def printed(p: Any, s: fluid.State, signals: Signals) -> tuple[fluid.Feedback, fluid.State]:
    """(7)-(9), with what is said to be ours; p = 1 is the next smaller number."""
    mark = min(signals.marking, 1.0 - 2.0**-53)
    R, B = signals.rate / signals.packet, p.byte_counter / signals.packet
    F, T = p.fast_recovery_steps, p.timer

    def none(n: float) -> float:
        return math.exp(n * math.log1p(-mark))  # (1-p)^n

    def some(n: float) -> float:
        return -math.expm1(n * math.log1p(-mark))

    def events(n: float, period: float) -> float:
        """R p/((1-p)^-n - 1), or its limit without marks or packets: one in each period."""
        if n == 0.0:
            return mark / -math.log1p(-mark) / period if mark else 1.0 / period
        exponent = -n * math.log1p(-mark)
        return 1.0 / period if mark == 0.0 else R * mark / math.expm1(exponent) if exponent < 700.0 else 0.0

    apart = max(p.cnp_interval, p.rate_decrease_interval)
    cut = some(apart * R) / apart
    if p.alpha_timer < p.cnp_interval:  # at most one of so many periods holds a CNP
        marked = p.alpha_timer / p.cnp_interval * some(p.cnp_interval * R)
    else:
        marked = some(p.alpha_timer * R)
    by_bytes = events(B, B / R) if R else 0.0
    by_timer = events(T * R, T)
    increase = p.rate_ai * (none(F * B) * by_bytes + none(F * T * R) * by_timer)
    if p.hyper_increase:  # instead of the additive one, where both have run for F
        increase += (p.rate_hai - p.rate_ai) * none(F * max(B, T * R)) * (by_bytes + by_timer)
    fall = cut
    if not p.clamp_tgt_rate:
        fall = cut / 2 * none(min(B, T * R) if p.clamp_tgt_rate_after_time_inc else B)
    recovery = (by_bytes + by_timer) / 2
    moved = fluid.State(
        (s.target_rate - s.rate) * recovery - s.rate * min(p.decrease_gain * s.alpha, p.max_decrease) * cut,
        increase - (s.target_rate - s.rate) * fall,
        p.g / p.alpha_timer * (marked - s.alpha),
    )
    return fluid.Feedback(cut, fall, recovery, increase, marked), moved


@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"hyper_increase": True},
        {"clamp_tgt_rate": False},
        {"clamp_tgt_rate": False, "clamp_tgt_rate_after_time_inc": False, "hyper_increase": True},
    ],
    ids=["paper", "hyper increase", "target kept", "target kept but by bytes"],
)
def test_the_law_is_the_printed_one(switches: dict[str, Any]) -> None:
    p, state, signals = drawn(1, **switches)
    observed = LAW.feedback(p, signals)
    want = [printed(*row) for row in rows(p, state, signals)]
    check(observed, [each for each, _ in want], ROUNDING)
    check(LAW.derivative(p, state, observed), [each for _, each in want], ROUNDING)


def test_hyper_increase_takes_the_place_of_the_additive_one() -> None:
    """Without marks every event is beyond F: its step by Fig. 7's rule, in packets, times events of both kinds."""
    one = np.ones((1, 1))
    for hyper in (False, True):
        p = bound(fc.DCQCN(hyper_increase=hyper), byte_counter=30e3, timer=20 * US)
        flow = SimpleNamespace(rate=1e9)
        more = {"hyper_increase": hyper, "rate_ai": p.rate_ai, "rate_hai": p.rate_hai}
        me = record(packet, fast_recovery_steps=5, by_timer=7, by_bytes=6, **more)
        me.target, me.most_rate = 1.5e9, 5e9
        RULE.increase(flow, me)
        observed = LAW.feedback(p, Signals(0 * one, 1e9 * one, PACKET * one))
        events = 1e9 / 30e3 + 1 / (20 * US)
        assert observed.increase.item() == pytest.approx((me.target - 1.5e9) * events)
        assert observed.recovery.item() == pytest.approx((me.target - flow.rate) / (me.target - 1e9) * events)


def test_limits() -> None:
    """Rates stay between the least and the largest, which the line bounds; the first rate is within the largest."""
    state = fluid.State(np.array([[0.0, 3.0, 50.0]]), np.array([[50.0, 0.0, 4.0]]), np.array([[2.0, -1.0, 0.5]]))
    for least, most, line, rates, targets in (
        (1.0, None, 10.0, [1.0, 3.0, 10.0], [10.0, 1.0, 4.0]),
        (1.0, 5.0, 10.0, [1.0, 3.0, 5.0], [5.0, 1.0, 4.0]),
        (1.0, 20.0, 10.0, [1.0, 3.0, 10.0], [10.0, 1.0, 4.0]),
        (20.0, None, 10.0, [10.0] * 3, [10.0] * 3),
    ):
        p = bound(fc.DCQCN(), min_rate=least, max_rate=most)
        found = LAW.project(p, state, np.array([[line]]))
        assert [leaf.tolist() for leaf in found] == [[rates], [targets], [[2.0, -1.0, 0.5]]]
    for most, first in ((None, 7.0), (5.0, 5.0), (9.0, 7.0)):
        p = bound(fc.DCQCN(), max_rate=most, initial_alpha=0.25)
        begun = LAW.start(p, np.full((1, 1), 7.0), (2, 3), 1)
        assert [leaf.tolist() for leaf in begun] == [np.full((2, 3), x).tolist() for x in (first, first, 0.25)]
    assert LAW.rate(state) is state.rate
    assert LAW.observables(state) == {"target_rate": state.target_rate, "alpha": state.alpha}


@pytest.mark.parametrize(
    ("values", "shortest"),
    [
        ({}, 50 * US),
        ({"cnp_interval": 4 * US, "rate_decrease_interval": 9 * US}, 9 * US),
        ({"cnp_interval": 70 * US, "timer": 20 * US}, 40 * US),
        ({"byte_counter": 100e3}, 40 * US),
        ({"alpha_timer": 8 * US, "g": 0.25}, 32 * US),
    ],
)
def test_the_shortest_time_constant(values: dict[str, Any], shortest: float) -> None:
    assert LAW.time_scale(bound(fc.DCQCN(), **values), 5e9) == pytest.approx(shortest)


def test_numpy_s_law_is_the_compiled_one() -> None:
    p, state, signals = drawn(2, hyper_increase=True, clamp_tgt_rate=False)
    check_compiled(fluid.feedback, fluid, p, signals)
    check_compiled(fluid.derivative, fluid, p, state, LAW.feedback(p, signals))
