"""DCTCP's fluid law against its packet rule, ACK by ACK, and with shares of marks against section 3.1 in plain Python.

Nothing is compiled. Headers are as large as the payload, or none; to rounding.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.signals import Progress, Signals
from fluidcc.schemes.dctcp import fluid, packet
from tests.schemes.plain_laws import Draws, bound, check, check_compiled, plain, progress, record, replaced, rows

LAW, RULE = plain(fluid), plain(packet)
LINE, PAYLOAD, T = 12.5e9, 1000.0, 4e-6


def drawn(seed: int, *shares: Any, **switches: Any) -> tuple[Any, fluid.State, Progress, np.ndarray]:
    """Windows of a few packets, ACKs before, of and after the ends of window and cut, and shares of marks."""
    draw = Draws(seed)
    wire = PAYLOAD * draw(1.0, 2.0)
    size = np.where(draw(0, 1) > 0, wire, PAYLOAD)
    p = bound(
        fc.DCTCP(**switches),
        g=draw(1 / 16, (0.1, 1.0)),
        increase=draw(1.0, (0.1, 3.0)),
        base_rtt=T * np.ones_like(wire),
    )
    newly, acked = np.floor(draw(1, 1, 2, 3)), np.floor(draw((5, 30)))
    sent = acked + np.floor(draw(0, 3, (0, 40)))
    window = size * np.maximum(np.floor(draw(1.0, 1.5, 5.0, (1.0, 60.0)) * 4) / 4, 1.0)
    answered = np.floor(draw(0, (1, 20)))
    ends = [np.maximum(acked + draw(-1, 0, 1), 0.0) * draw(0, 1, 1) * wire for _ in range(2)]
    one = np.ones_like(wire)
    state = fluid.State(
        draw(LINE, 0.5 * LINE), window, draw(1.0, (0.0, 1.0)), answered * wire,
        np.floor(answered * draw(0.0, (0, 1))) * wire, draw(0.0, 0.25, 0.5), *ends, draw(0.0, 1e5), draw(0.0, 1e9),
    )  # fmt: skip
    now = progress(
        sent=sent * wire, acked=acked * wire, newly=newly * wire, packet=size, wire_packet=wire, rtt=draw(4e-6, 9e-6)
    )
    return p, state, now, draw(*shares) * one


def by_packets(p: Any, s: fluid.State, now: Progress, marks: float) -> fluid.State:
    """An ACK of several packets, all of them marked or none."""
    per = PAYLOAD / now.wire_packet
    core = SimpleNamespace(payload_window=now.packet == PAYLOAD, recovery=0)
    flow = SimpleNamespace(
        rate=s.rate, line_rate=LINE, last_size=0, sent=now.sent * per, acked=now.acked * per, sent_wire=now.sent,
        acked_wire=now.acked, payload=PAYLOAD, overhead=now.wire_packet - PAYLOAD,
    )  # fmt: skip
    me, covers = record(packet), now.newly / now.wire_packet
    RULE.init_state(p, flow, me)
    RULE.begin(core, flow, me)
    me.W, me.alpha, me.window_end, me.cut_end = s.window, s.alpha, s.window_end * per, s.cut_end * per
    me.answered, me.marked = s.answered / now.wire_packet, s.marked / now.wire_packet
    RULE.on_ack(core, flow, me, SimpleNamespace(covers=covers, marks=marks * covers, end=now.acked * per))
    # The packet rule leaves the rate as it is where the window stays.
    return s._replace(
        rate=min(me.W / T, LINE), window=me.W, alpha=me.alpha, answered=me.answered * now.wire_packet,
        marked=me.marked * now.wire_packet, expected=0.0, window_end=me.window_end / per, cut_end=me.cut_end / per,
    )  # fmt: skip


def test_an_ack_is_that_of_packets() -> None:
    """(1) once per window, (2) at a mark, and the increase of TCP, if the window holds the flow back."""
    p, state, now, marks = drawn(1, 0.0, 1.0)
    state = state._replace(expected=0.0 * marks)
    found = LAW.jump(p, state, now, marks)
    check(found, [by_packets(*row) for row in rows(p, state, now, marks)], rel=1e-9)


def by_hand(p: Any, s: fluid.State, now: Progress, marks: float) -> fluid.State:
    """Section 3.1 with a share of marks: what is unmarked raises the window, and one expected mark cuts it."""
    answered, marked, alpha, window_end = s.answered + now.newly, s.marked + marks * now.newly, s.alpha, s.window_end
    if now.acked > window_end:
        if window_end > 0:
            alpha = (1 - p.g) * alpha + p.g * marked / answered
            answered = marked = 0.0
        window_end = now.sent
    W, expected, cut_end = s.window, 0.0, s.cut_end
    if now.acked > cut_end:
        packets = now.newly / now.wire_packet
        expected = s.expected + marks * packets
        inflight = (now.sent - now.acked) / now.wire_packet + packets
        if expected >= 1.0:
            W, expected, cut_end = max(W * (1 - alpha / 2), now.packet), 0.0, now.sent
        elif s.rate < LINE or inflight * now.packet >= W:
            W += p.increase * now.packet * (1 - marks) * packets / (W / now.packet)
    return s._replace(
        rate=min(W / T, LINE), window=W, alpha=alpha, answered=answered, marked=marked, expected=expected,
        window_end=window_end, cut_end=cut_end,
    )  # fmt: skip


def test_shares_of_marks_by_hand() -> None:
    p, state, now, marks = drawn(2, 0.0, 0.25, 0.5, 1.0, (0.0, 1.0))
    check(LAW.jump(p, state, now, marks), [by_hand(*row) for row in rows(p, state, now, marks)], rel=1e-9)


def test_the_analysis() -> None:
    """dW/dt = 1/RTT - W alpha/(2 RTT) p in packets and dalpha/dt = g/RTT (p - alpha); W grows if it holds back."""
    p, state, now, marks = drawn(3, 0.0, 1.0, (0.0, 1.0), form="analysis")
    moved = LAW.derivative(p, state, marks)
    want = state.growth - state.window * state.alpha / 2 * state.round_trips * marks
    np.testing.assert_allclose(moved.window, want, rtol=1e-12)
    np.testing.assert_allclose(moved.alpha, p.g * state.round_trips * (marks - state.alpha), rtol=1e-12)
    assert not any(leaf.any() for name, leaf in moved._asdict().items() if name not in ("window", "alpha"))
    assert not any(leaf.any() for leaf in LAW.derivative(replaced(p, form="protocol"), state, marks))
    now = now._replace(acked=now.acked * Draws(3)(0.0, 1.0))
    state = state._replace(window=state.window * Draws(4)(0.5, 1.0))

    def jumped(p: Any, s: fluid.State, now: Progress) -> fluid.State:
        W, per_time = max(s.window, now.packet), 1 / now.rtt if now.acked > 0 else 0.0
        inflight = (now.sent - now.acked + now.newly) / now.wire_packet * now.packet
        held = s.rate < LINE or inflight >= s.window
        growth = p.increase * now.packet * per_time if held else 0.0
        return s._replace(rate=min(W / T, LINE), window=W, round_trips=per_time, growth=growth)

    check(LAW.jump(p, state, now, marks), [jumped(*row) for row in rows(p, state, now)])


def test_the_rest() -> None:
    one = np.ones((1, 1))
    p = bound(fc.DCTCP(), base_rtt=T, initial_window=5e4, initial_alpha=0.75)
    for initial, window in ((LINE, 5e4), (LINE / 2, 2.5e4), (2 * LINE, 5e4)):
        begun = LAW.start(p, initial * one, (2, 3), 1)
        assert [leaf[0, 0] for leaf in begun] == [initial, window, 0.75, *[0.0] * 7]
        assert {leaf.shape for leaf in begun} == {(2, 3)}
    state = drawn(1, 0.0)[1]
    assert LAW.rate(state) is state.rate
    assert LAW.window(p, state) is state.window
    assert LAW.largest_window(p) == 5e4
    assert LAW.observables(state) == {"window": state.window, "alpha": state.alpha}
    assert LAW.feedback(p, Signals(one, 2 * one, 3 * one)) is one
    assert LAW.time_scale(bound(fc.DCTCP(), base_rtt=1e-5), LINE) == pytest.approx(1e-6)


@pytest.mark.parametrize("form", ["protocol", "analysis"])
def test_numpy_s_law_is_the_compiled_one(form: str) -> None:
    check_compiled(fluid.jump, fluid, *drawn(2, 0.0, 1.0, (0.0, 1.0), form=form))
