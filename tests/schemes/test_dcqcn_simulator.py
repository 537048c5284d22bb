"""DCQCN as the HPCC authors' simulator has it: what its timers do to rate and target, step by step.

By hand: fast recovery halves the way to the target, then the target rises by R_AI once and by R_HAI from then on; rates
are cut to whole bits per second.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fluidcc.schemes.dcqcn import simulator
from tests.engines.hybrid.by_hand import replaced
from tests.engines.packet.plain import plain


def test_a_timer_s_increases_are_fast_additive_and_then_hyper() -> None:
    """The third step of two of fast recovery adds R_AI, all later ones R_HAI; the next is due a timer later."""
    due: list[int] = []
    bits = plain(simulator.whole_bits)
    rule = replaced(simulator.on_timer, schedule=lambda core, calendar, at, *_: due.append(at), whole_bits=bits)
    state = SimpleNamespace(
        by_timer=0, fast_recovery_steps=2, target=800.0, rate_ai=10.0, rate_hai=100.0, most_rate=905.0, timer=300,
        increase_at=1000,
    )  # fmt: skip
    flow, sim = SimpleNamespace(rate=400.0), SimpleNamespace(core=[SimpleNamespace(now=1000)], calendar=None)
    seen = []
    for _ in range(4):
        sim.core[0].now = state.increase_at
        rule(sim, 0, flow, state, simulator.INCREASE)
        seen.append((state.by_timer, state.target, flow.rate))
    assert seen == [(1, 800.0, 600.0), (2, 800.0, 700.0), (3, 810.0, 755.0), (4, 905.0, 830.0)]
    assert due == [1300, 1600, 1900, 2200]
    sim.core[0].now = 2100  # a cut has put it off
    rule(sim, 0, flow, state, simulator.INCREASE)
    assert (state.by_timer, due[-1]) == (4, 2200)


@pytest.mark.parametrize(("rate", "kept"), [(1.3, 1.25), (1.25, 1.25), (99.99, 99.875)])
def test_rates_are_of_whole_bits(rate: float, kept: float) -> None:
    assert plain(simulator.whole_bits)(rate) == kept
