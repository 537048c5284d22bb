"""A schedule's fluid law by hand: each rate from its time on, within the line rate, again and again if it repeats."""

from __future__ import annotations

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.signals import Signals
from fluidcc.schemes.none import fluid
from tests.schemes.plain_laws import bound, check_compiled, plain

LAW, GBPS = plain(fluid), 1.25e8
SCHEDULE = "0:30Gbps,10us:0,20us:200Gbps,30us:10Gbps"


@pytest.mark.parametrize(
    ("repeat", "at", "rate"),
    [
        (None, [0.0, 9.9, 10.0, 19.9, 20.0, 29.0, 30.0, 100.0], [30, 30, 0, 0, 100, 100, 10, 10]),
        ("40us", [0.0, 10.0, 39.9, 40.0, 49.9, 50.0, 61.0, 71.0, 81.0], [30, 0, 10, 30, 30, 0, 100, 10, 30]),
        ("25us", [0.0, 24.9, 25.0, 35.0, 49.0], [30, 100, 30, 0, 100]),
    ],
)
def test_the_schedule(repeat: str | None, at: list[float], rate: list[float]) -> None:
    p = bound(fc.NoControl(schedule=SCHEDULE, repeat=repeat))
    elapsed = 1e-6 * np.array([at])
    state = LAW.project(p, fluid.State(77.0 * np.ones_like(elapsed), elapsed), 100 * GBPS)
    assert state.rate == pytest.approx(GBPS * np.array([rate]))
    assert state.elapsed is elapsed


def test_a_sum_of_steps_is_at_its_time_but_for_rounding() -> None:
    p = bound(fc.NoControl(schedule="0:30Gbps,10us:0"))
    for short, rate in ((1e-12, 0.0), (1e-6, 30.0)):
        state = fluid.State(np.ones((1, 1)), np.full((1, 1), 10e-6 * (1 - short)))
        assert LAW.project(p, state, 100 * GBPS).rate.item() == pytest.approx(GBPS * rate)


def test_the_rest() -> None:
    one = np.ones((1, 1))
    for scheme, rate in ((fc.NoControl(), 5.0), (fc.NoControl(schedule="0:3Gbps"), 3 * GBPS),
                         (fc.NoControl(schedule="5us:3Gbps"), 5.0)):  # fmt: skip
        begun = LAW.start(bound(scheme), 5.0 * one, (2, 3), 1)
        assert [leaf.tolist() for leaf in begun] == [np.full((2, 3), x).tolist() for x in (rate, 0.0)]
    assert LAW.rate(begun) is begun.rate
    moved = LAW.derivative(bound(fc.NoControl()), begun, one)
    assert (moved.rate.tolist(), moved.elapsed.tolist()) == (np.zeros((2, 3)).tolist(), np.ones((2, 3)).tolist())
    assert LAW.feedback(bound(fc.NoControl()), Signals(one, 2 * one, one)) == 0.0
    assert LAW.observables(begun) == {}
    assert LAW.time_scale(bound(fc.NoControl()), 1.0) == np.inf


def test_numpy_s_law_is_the_compiled_one() -> None:
    state = fluid.State(np.ones((1, 9)), 1e-6 * np.arange(0.0, 90.0, 10.0)[None])
    check_compiled(fluid.project, fluid, bound(fc.NoControl(schedule=SCHEDULE, repeat="40us")), state, 100 * GBPS)
