"""ACC's fluid law against Algorithm 1 in plain Python, with what `fluidcc.schemes.acc.packet` says is left open.

Nothing is compiled. Steps and periods are powers of two, so that periods end exactly with a step too; to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.signals import Progress, Signals
from fluidcc.schemes.acc import fluid
from tests.schemes.plain_laws import SHAPE, Draws, bound, check, check_compiled, plain, progress, rows

LAW = plain(fluid)
LINE, PACKET, DT = 12.5e9, 1000.0, 2.0**-22
TINY = 1e-9  # of a period's bytes, which is rounding


def drawn(seed: int, **switches: Any) -> tuple[Any, fluid.State, Progress, fluid.Feedback]:
    """Clocks before, at and after a period's end, halts that last and end, few and many ACKs, marks of every share."""
    draw = Draws(seed)
    one = np.ones(SHAPE)
    p = bound(
        fc.ACC(**switches),
        period=DT * draw(16.0, 8.0),
        ri_low=draw(5e7, 1e7),
        ri_high=draw(5e8, 2e9),
        low_periods=draw(0.0, 2.0),
        p_thresh=draw(0.0, 1.0, 3.0),
        mark_fraction=draw(0.75, 0.5, 1.0),
        min_rate=draw(1.25e6, 1e9, 2e10),
    )
    newly = draw(0.0, 500.0, 1000.0, 2000.0)
    total = PACKET * np.floor(draw((60, 90)))
    sent = total + PACKET * np.floor(draw(0, (0, 60)))
    acked = draw(0.0, 250.0, 500.0, PACKET * 4, PACKET * 8, (0.0, 2e4))
    share = draw(0.0, 0.5, 0.75, 1.0, 1.0)
    nxt_1 = sent - draw(0.0, (0.0, 6e4))
    clock = np.where(draw(0, 1, 1, 1, 1) > 0, p.period - DT * draw(0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 3.0), -1.0)
    state = fluid.State(
        rate=draw(LINE, LINE / 4, (1e8, LINE)), pace=0.0 * one, halt=DT * draw(0.0, 0.0, 0.5, (0.0, 30.0)), clock=clock,
        halted=draw(0.0, 0.0, 1.0), silent=draw(0.0, 0.0, 1.0, 2.0), carried=acked * draw(0.0, 0.0, 0.5, 1.0),
        owed=DT * draw(0.0, (0.0, 9.0)), nxt_start=total - draw(-2e4, 0.0, 500.0, 750.0, 2e4),
        nxt_0=nxt_1 - draw(0.0, (0.0, 6e4)), nxt_1=nxt_1, una_0=total - draw(0.0, (0.0, 3e4)), acked=acked,
        ce=acked * share, ue=acked * draw(0.0, 0.25, 1.0) * (1.0 - share), n_u=draw(0.0, 1.0, 2.0, 3.0),
        n_v=draw(0.0, 1.0, 2.0, 3.0), halt_time=DT * draw(0.0, 5.0), ack_rate=1e9 * one, inflight=5e3 * one,
    )  # fmt: skip
    ce = np.where(draw(0, 1, 1) > 0, share, draw(0.0, 0.5, 1.0))
    line = draw(LINE, LINE, LINE / 2)
    state = state._replace(rate=np.minimum(state.rate, line))
    now = progress(sent=sent, acked=total, newly=newly, line_rate=line, dt=DT)
    return p, state, now, fluid.Feedback(ce, draw(0.0, 0.25) * (1.0 - ce))


def by_hand(p: Any, s: fluid.State, now: Progress, marks: fluid.Feedback) -> fluid.State:
    """A step: its ACKs, and at a period's end, which lies inside it, what Algorithm 1 decides."""
    old, least = s.rate, min(p.min_rate, now.line_rate)
    s = s._replace(halt=max(s.halt - now.dt, 0.0), inflight=now.sent - now.acked)
    beyond_halt = now.acked - s.nxt_start - PACKET / 2  # answered of what was sent after the halt, but half a packet
    if (s.clock < 0 or s.halted) and beyond_halt > 0:
        ago = now.dt * min(beyond_halt / now.newly, 1.0) if now.newly else now.dt
        s = s._replace(
            clock=ago, halted=0.0, owed=0.0, silent=0.0, carried=0.0, nxt_0=s.nxt_start, una_0=s.nxt_start,
            nxt_1=now.sent - s.rate * ago, acked=beyond_halt, ce=marks.ce * beyond_halt, ue=marks.ue * beyond_halt,
        )  # fmt: skip
    else:
        s = s._replace(
            clock=s.clock + now.dt if s.clock >= 0 else s.clock, acked=s.acked + now.newly,
            ce=s.ce + marks.ce * now.newly, ue=s.ue + marks.ue * now.newly,
        )  # fmt: skip
    over = s.clock - p.period
    if over < 0:
        return s
    late = now.newly * over / now.dt
    acked, ce, ue = s.acked - late, s.ce - marks.ce * late, s.ue - marks.ue * late
    una, nxt = now.acked - late, max(now.sent - s.rate * over, s.nxt_1)
    whole, share = acked >= PACKET * (1 - TINY), ce / max(acked, TINY)
    congested = share > min(p.mark_fraction, 1 - TINY)
    after = s._replace(clock=over, nxt_1=nxt, acked=late, ce=marks.ce * late, ue=marks.ue * late)
    if s.halted:
        if not congested:
            return after
        halt = s.halt
        if p.extension == "inflight" and whole:  # what is in flight fits R T
            R = acked / p.period
            until = (now.sent - una) / R - p.period - over
            if until > halt:
                after = after._replace(
                    rate=min(max(R, least), now.line_rate), nxt_start=now.sent, ack_rate=R,
                    halt_time=s.halt_time + until - halt,
                )  # fmt: skip
                halt = until
        return after._replace(halt=halt + s.owed, owed=0.0)
    if not whole:  # dS accumulates
        return s._replace(clock=over, nxt_1=nxt, silent=s.silent + 1, carried=acked)
    after = after._replace(silent=0.0, carried=0.0, nxt_0=s.nxt_1, una_0=una, halt=0.0, n_u=0.0, n_v=0.0, halted=0.0)
    if p.extension == "printed":
        after = after._replace(owed=0.0)
    some = share > TINY
    if congested:
        fresh = acked - s.carried  # in this period itself; if that is no packet, the time between ACKs is longer than T
        R = acked / ((1 + s.silent) * p.period) if fresh < PACKET else fresh / p.period
        rate = min(max(R, least), now.line_rate)
        excess, beyond = (s.nxt_1 - s.nxt_0) - (una - s.una_0), max((nxt - s.nxt_1) * (1 - R / s.rate), 0.0)
        after = after._replace(rate=rate, ack_rate=R)
        if p.halt and excess > 0:
            t_halt, t_extend = excess / R, beyond / R
            told = t_halt + (0.0 if p.extension == "never" else t_extend)
            after = after._replace(halted=1.0, nxt_start=now.sent, halt_time=told)
            later = p.extension == "printed"
            after = after._replace(halt=t_halt if later else told, owed=t_extend if later else after.owed)
    elif some and p.some_marks == "hold":
        pass
    elif not some and ue > TINY * acked:
        after = after._replace(n_v=s.n_v + 1)
        if s.n_v + 1 > p.p_thresh:
            after = after._replace(rate=max(s.rate / 2, least))
    else:
        increment = p.ri_low if s.n_u < p.low_periods else p.ri_high
        raised = s.rate + (1 - s.rate / now.line_rate) * increment
        after = after._replace(rate=min(raised, now.line_rate), n_u=s.n_u + 1)
    # What went since the period's end at the old rate delays the next packet.
    return after._replace(halt=max(after.halt + over * (old / after.rate - 1), 0.0))


CASES = [
    {"extension": "at-once"},
    {"extension": "printed", "some_marks": "increase"},
    {"extension": "never"},
    {"extension": "inflight"},
    {"halt": False, "extension": "printed"},
]


@pytest.mark.parametrize("switches", CASES, ids=lambda switches: " ".join(map(str, switches.values())))
def test_a_step_is_algorithm_1(switches: dict[str, Any]) -> None:
    p, state, now, marks = drawn(1, **switches)
    found = LAW.jump(p, state, now, marks)
    want = [by_hand(*row) for row in rows(p, state, now, marks)]
    # A halt that ends in the next step leaves it the rest.
    want = [row._replace(pace=row.rate * min(max(1.0 - row.halt / DT, 0.0), 1.0)) for row in want]
    halts = np.reshape([row.halted for row in want], SHAPE) > state.halted
    assert (halts.sum() > 20) == switches.get("halt", True)
    check(found, want, rel=1e-9)


def test_the_rest() -> None:
    one = np.ones((1, 1))
    p = bound(fc.ACC(), min_rate=2e9)
    for initial, rate in ((1e9, 2e9), (5e9, 5e9)):
        begun = LAW.start(p, initial * one, (2, 3), 1)
        assert [leaf[0, 0] for leaf in begun] == [rate, rate, 0.0, -1.0, *[0.0] * 16]
        assert {leaf.shape for leaf in begun} == {(2, 3)}
    state = drawn(1)[1]
    assert LAW.rate(state) is state.rate
    halts = begun._replace(halt=np.array([[0.0, 0.25, 1.0]]) * 1e-6, rate=8e9 * np.ones((1, 3)))
    assert LAW.sending(p, halts, 0.5e-6).tolist() == [[8e9, 4e9, 0.0]]
    shown = LAW.observables(state)
    assert list(shown) == list(fluid.OBSERVABLES)
    assert (shown["halt_time"], shown["ack_rate"], shown["inflight"]) == (
        state.halt_time,
        state.ack_rate,
        state.inflight,
    )
    assert (shown["halting"] == (state.halt > 0)).all()
    assert LAW.feedback(p, Signals(one, one, one, undetermined=2 * one)) == (one, 2 * one)
    assert LAW.feedback(p, Signals(one, one, one)) == (one, 0 * one)
    assert not any(leaf.any() for leaf in LAW.derivative(p, state, fluid.Feedback(one, one)))
    assert LAW.time_scale(bound(fc.ACC(), period=1e-5), LINE) == pytest.approx(0.5e-6)


def test_numpy_s_law_is_the_compiled_one() -> None:
    check_compiled(fluid.jump, fluid, *drawn(2, extension="inflight"))
