"""Swift's fluid law against its packet rule, ACK by ACK: all of a step's ACKs are one that answers several packets.

Nothing is compiled. Headers are as large as the payload, or none; to rounding.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.contract.signals import Progress, Signals
from fluidcc.schemes.swift import fluid, packet
from fluidcc.schemes.swift.parameters import scaling
from tests.schemes.plain_laws import (
    Chance,
    Draws,
    bound,
    check,
    check_compiled,
    fill,
    filled,
    mechanisms,
    plain,
    progress,
    record,
    replaced,
    rows,
    tokens,
)

LAW, RULE = plain(fluid), plain(packet)
LINE, PAYLOAD, PS = 12.5e9, 1000.0, 1e-12


def drawn(seed: int, **switches: Any) -> tuple[Any, fluid.State, Progress]:
    """Windows from far below a packet on, delays below, at and above the target."""
    draw = Draws(seed)
    ps = np.floor(draw((4e6, 30e6), (4e6, 30e6), (4e4, 2e5)))
    rtt = ps * PS
    wire = PAYLOAD * draw(1.0, 2.0)
    packet = np.where(draw(0, 1) > 0, wire, PAYLOAD)
    target = np.where(draw(0, 1, 1) > 0, draw((4e-6, 20e-6)), rtt)
    ranges = {"fs_range": draw((1e-6, 20e-6)), "fs_min": draw(0.1, 0.5), "fs_max": draw(5.0, 50.0)}
    on = mechanisms(draw, rtt * draw(0.5, 1.0, 1.2), 1e-7, **switches)
    flow_scaling = on.pop("flow_scaling", False)
    p = bound(
        fc.Swift(flow_scaling=flow_scaling),
        **on,
        **ranges,
        ai=draw(1.0, 0.0, (0.1, 3.0)),
        beta=draw(0.8, (0.1, 1.0)),
        max_mdf=draw(0.5, 0.9),
        base_target=target,
        min_cwnd=draw(0.001, 0.5),
        max_window=packet * draw(20.0, (5.0, 60.0)),
        initial_window=packet * draw(50.0, 10.0),
    )
    slope, offset = scaling(p)
    p = replaced(p, fs_slope=slope, fs_offset=offset)
    newly, acked = np.floor(draw(1, 1, 2, 3)), np.floor(draw((5, 30)))
    window = draw(1.0, (0.01, 1.5), (0.5, 0.99), 5.0, (1.0, 60.0))
    sent = acked + np.floor(draw(2, 3, (2, 40)))
    cut_end = acked + draw(-2, -1, 0, 1)
    t = tokens(draw, p, acked * wire, wire)
    last = np.where(draw(0, 1, 1) > 0, (acked + draw(-1, 0, 1)) * wire, draw(-1.0, -1.0, 0.0))
    m = None if t is None else fluid.Mechanisms(t, packet * draw(5.0, (0.5, 60.0)), last, draw(1.0, (1.0, 5.0)))
    rate = draw(LINE, 0.5 * LINE)
    state = fluid.State(rate, window * packet, rtt + 1e-6, target + 1e-6, np.maximum(cut_end, 0) * wire, m)
    return p, state, progress(
        sent=sent * wire, acked=acked * wire, newly=newly * wire, packet=packet, wire_packet=wire, rtt=rtt
    )  # fmt: skip


def by_packets(p: Any, s: fluid.State, now: Progress) -> fluid.State:
    """The ACK through the packet rule."""
    per, covers = PAYLOAD / now.wire_packet, now.newly / now.wire_packet
    core = SimpleNamespace(now=round(now.rtt / PS) + 10**9, payload_window=now.packet == PAYLOAD, recovery=0, drawn=0)
    flow = SimpleNamespace(
        rate=s.rate, line_rate=LINE, last_size=0, sent=now.sent * per, acked=now.acked * per, sent_wire=now.sent,
        acked_wire=now.acked, payload=PAYLOAD, overhead=now.wire_packet - PAYLOAD,
    )  # fmt: skip
    ack = SimpleNamespace(sent=10**9, end=now.acked * per, covers=covers)
    me, m = record(packet), s.mechanisms
    RULE.init_state(p, flow, me)
    RULE.begin(core, flow, me)
    me.W = s.window / now.packet
    me.decreased = ack.sent - (now.acked - s.cut_end) / now.wire_packet + 1.0  # what was sent just after a cut cuts
    chance = Chance(p, 0.0, 0.0, 0.0)
    if m is not None:
        fill(p, m.tokens, me, per)
        me.W_reference, me.factor = m.reference / now.packet, m.factor
        me.last_update = m.last_update * per if m.last_update >= 0 else -1
        share = (s.window if p.sampling is None else m.reference) / p.initial_window
        chance = Chance(p, m.tokens.drawn, share, covers)
    RULE.on_ack(SimpleNamespace(core=[core], uniforms=chance), flow, me, ack)
    cut_end = now.sent if me.decreased == core.now else s.cut_end
    if m is not None:
        heeded = chance.asked and chance.sum >= 1.0
        moved = m.last_update >= 0 or me.W_reference * now.packet != m.reference  # the first ACK begins a round trip
        ignored = chance.asked and not heeded
        updated = p.sampling is not None and me.last_update == flow.sent and moved and not ignored
        t = filled(me, per, chance.left(heeded or updated))
        last = me.last_update / per if me.last_update >= 0 else -1.0
        m = fluid.Mechanisms(t, me.W_reference * now.packet, last, me.factor)
    return fluid.State(flow.rate, flow.window, me.rtt, me.target, cut_end, m)


@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"flow_scaling": True},
        {"vai": True, "token_rule": "excess"},
        {"vai": True, "token_rule": "measured", "probabilistic": True},
        {"probabilistic": True, "ignored_costs": "period"},
        {"sampling": True},
        {"sampling": True, "vai": True, "probabilistic": True},
        {"sampling": True, "vai": True, "probabilistic": True, "ignored_costs": "period"},
    ],
    ids=lambda switches: " ".join(switches) or "plain",
)
def test_an_ack_is_that_of_packets(switches: dict[str, Any]) -> None:
    """Rate, window, target, cuts and all mechanisms."""
    p, state, now = drawn(1, **switches)
    skip = ("cut_end",) if p.sampling is not None else ()  # only Algorithm 1 looks at it
    if not p.vai and p.sampling is None:
        skip += ("acks",)  # which nothing looks at
    if not p.probabilistic:
        skip += ("drawn",)
    check(LAW.jump(p, state, now, 0.0), [by_packets(*row) for row in rows(p, state, now)], rel=1e-9, skip=skip)


@pytest.mark.parametrize("switches", [{}, {"vai": True}, {"sampling": True, "vai": True}])
def test_nothing_moves_without_acks(switches: dict[str, Any]) -> None:
    """Before the first ACK nothing does; in a step without one a window stays, within its limits."""
    p, state, now = drawn(3, **switches)
    nothing = now._replace(newly=0.0 * now.newly)
    before = LAW.jump(p, state, nothing._replace(acked=0.0 * now.acked), 0.0)
    for name in ("rate", "window", "cut_end", "rtt", "target"):
        assert getattr(before, name) == pytest.approx(getattr(state, name))
    if before.mechanisms is not None:
        assert (before.mechanisms.last_update == state.mechanisms.last_update).all()
    later = LAW.jump(p, state, nothing, 0.0)
    limited = np.clip(state.window / now.packet, p.min_cwnd, p.max_window / now.packet) * now.packet
    falls = later.rtt >= later.target
    assert later.window[falls] == pytest.approx(limited[falls])
    if p.sampling is None:
        assert later.window == pytest.approx(limited)
        assert later.cut_end == pytest.approx(state.cut_end)


def test_the_rest() -> None:
    one = np.ones((1, 1))
    for initial, window in ((LINE, 5e4), (2.5e9, 2.5e4)):
        p = bound(fc.Swift(), base_rtt=1e-5, initial_window=5e4)
        begun = LAW.start(p, initial * one, (1, 1), 1)
        assert [leaf.item() for leaf in begun[:5]] == pytest.approx([initial, window, 0.0, p.base_target, 0.0])
        assert begun.mechanisms is None
    m = LAW.start(bound(fc.Swift(vai=True), base_rtt=1e-5, initial_window=5e4), LINE * one, (2, 3), 1).mechanisms
    leaves = (*m[1:], *m.tokens)
    assert [leaf[0, 0] for leaf in leaves] == [5e4, -1.0, 1.0, *[0.0] * 7, 1.0]
    assert {leaf.shape for leaf in leaves} == {(2, 3)}
    p, state, _ = drawn(2, vai=True)
    assert LAW.rate(state) is state.rate
    assert LAW.window(p, state) is state.window
    for first, most in ((1.0, 2.0), (3.0, 2.0)):
        assert LAW.largest_window(bound(fc.Swift(), initial_window=first, max_window=most)) == max(first, most)
    shown = LAW.observables(state)
    assert list(shown) == list(fluid.OBSERVABLES)
    assert shown["window"] is state.window
    assert shown["rtt"] is state.rtt
    assert shown["target_delay"] is state.target
    t = state.mechanisms.tokens
    for name, leaf in (("token_bank", t.bank), ("dampener", t.dampener), ("increase_factor", t.factor)):
        assert shown[name] is leaf
    assert list(LAW.observables(state._replace(mechanisms=None))) == ["window", "rtt", "target_delay"]
    assert LAW.time_scale(bound(fc.Swift(), base_rtt=1e-5), LINE) == pytest.approx(1e-6)
    assert not np.any(LAW.feedback(p, Signals(one, one, one)))
    assert all(not leaf.any() for leaf in LAW.derivative(p, state, one)[:5])
    assert np.isnan(LAW.target_delay(bound(fc.Swift(), fs_min=2 * one, fs_max=one), one))


def test_numpy_s_law_is_the_compiled_one() -> None:
    p, state, now = drawn(2, sampling=True, vai=True, probabilistic=True, flow_scaling=True)
    check_compiled(fluid.jump, fluid, p, state, now, np.zeros((1, 1)))
